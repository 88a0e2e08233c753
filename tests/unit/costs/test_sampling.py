"""Buffer and sampling against a twin that works episode by episode."""

from dataclasses import replace
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from termdp.cost_network import ActionSpec
from termdp.costs import buffer as buffers
from termdp.costs.config import CostConfig
from termdp.costs.sampling import gather, sample
from termdp.termination import window_sums
from unit.costs.stream_twin import Twin, random_stream

pytestmark = pytest.mark.slow

ROLLOUT, ENVS, ROWS = 4, 3, 16
MAX_WINDOW = 7
ACTIONS = ActionSpec(1, discrete=False)


def config_with(**changes):
    settings_ = {
        "members": 2,
        "segments_per_step": 5,
        "segment_length": 9,
        "buffer_steps": ROWS * ENVS,
        "buffer_episodes": 1000,
        "network": "vector",
    }
    return CostConfig(**{**settings_, **changes})


@lru_cache
def compiled(config):
    """Jitted add and gather-every-stretch, once per configuration."""
    return (
        jax.jit(partial(buffers.add, config=config)),
        jax.jit(partial(every_stretch, config=config)),
    )


@lru_cache
def compiled_draw(config):
    """Jitted draw with the window sums of each member's stretches."""

    def draw(key, buffer, window):
        segments = sample(key, buffer, window, config)
        costs = segments.obs[..., 0]
        return segments, jax.vmap(window_sums, in_axes=(0, None, 0))(
            costs, window, segments.starts
        )

    return jax.jit(draw)


def filled_buffer(rng, num_rollouts, end_rate, config):
    """A buffer and its twin; the observation is the cost, the action the place."""
    add, _ = compiled(config)
    twin = Twin()
    buffer = buffers.init(jnp.zeros(1), ACTIONS, ENVS, ROLLOUT, config)
    stream = random_stream(rng, num_rollouts * ROLLOUT, ENVS, end_rate)
    for i in range(num_rollouts):
        costs, starts, stopped, game_over = (
            x[i * ROLLOUT : (i + 1) * ROLLOUT] for x in stream
        )
        place = np.arange(costs.size).reshape(costs.shape) + twin.rows * ENVS
        twin.add(costs, starts, stopped, game_over)
        buffer = add(
            jax.random.key(int(rng.integers(2**31))),
            buffer,
            costs[..., None],
            place[..., None].astype(np.float32),
            starts,
            buffers.step_labels(stopped, game_over),
        )
    return buffer, twin


def every_stretch(buffer, window, config):
    """All stretches of all streams, whatever member 0 may draw."""
    first = jnp.repeat(jnp.arange(ROWS), ENVS)
    env = jnp.tile(jnp.arange(ENVS), ROWS)
    whole = replace(buffer, weights=jnp.ones_like(buffer.weights))
    segments = gather(whole, first[None], env[None], window, config)
    sums = window_sums(segments.obs[0, ..., 0], window, segments.starts[0])
    return segments, sums


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    num_rollouts=st.integers(1, 11),
    window=st.integers(1, MAX_WINDOW),
    end_rate=st.sampled_from([0.02, 0.1, 0.3, 0.7]),
    max_episodes=st.sampled_from([1, 6, 1000]),
)
def test_every_example_is_the_twins_and_is_drawn_equally_often(
    seed, num_rollouts, window, end_rate, max_episodes
):
    config = config_with(buffer_episodes=max_episodes)
    rng = np.random.default_rng(seed)
    buffer, twin = filled_buffer(rng, num_rollouts, end_rate, config)
    oldest = twin.first_usable_row(ROWS, max_episodes)
    usable = int(buffer.usable)
    assert usable == twin.rows - oldest

    segments, sums = compiled(config)[1](buffer, window)
    starts_at = np.repeat(np.arange(ROWS), ENVS)
    is_used = np.asarray(segments.weights[0] > 0) & (starts_at < usable)
    place = np.asarray(segments.actions[0, ..., 0]).astype(int)
    label = np.asarray(segments.labels[0]).astype(int)
    counts = {}
    expected = twin.examples(window, oldest)
    for t, s in zip(*np.nonzero(is_used), strict=True):
        where = divmod(place[t, s], ENVS)
        total, twin_label = expected[where]
        assert label[t, s] == twin_label
        assert sums[t, s] == pytest.approx(total, abs=1e-5)
        counts[where] = counts.get(where, 0) + 1
    assert set(counts) == set(expected)
    # As many placements as a stretch has labelled rows, for every example.
    assert set(counts.values()) <= {config.segment_length - window + 1}


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    num_rollouts=st.integers(1, 9),
    window=st.integers(1, MAX_WINDOW),
    end_rate=st.sampled_from([0.02, 0.1, 0.3]),
)
def test_drawn_trajectories_hold_the_twins_examples_only(
    seed, num_rollouts, window, end_rate
):
    config = config_with(draw="trajectories", segments_per_step=40)
    rng = np.random.default_rng(seed)
    buffer, twin = filled_buffer(rng, num_rollouts, end_rate, config)
    whole = replace(buffer, weights=jnp.ones_like(buffer.weights))
    segments, all_sums = compiled_draw(config)(jax.random.key(seed), whole, window)
    oldest = twin.first_usable_row(ROWS, config.buffer_episodes)
    expected = twin.examples(window, oldest)
    episode_of = {s.place: s.episode for e in twin.episodes for s in e}
    for member in range(config.members):
        sums = np.asarray(all_sums[member])
        place = np.asarray(segments.actions[member, ..., 0]).astype(int)
        label = np.asarray(segments.labels[member])
        is_used = np.asarray(segments.weights[member] > 0)
        for s in range(config.segments_per_step):
            drawn = [divmod(p, ENVS) for p in place[is_used[:, s], s]]
            assert len({episode_of[where] for where in drawn}) <= 1
            assert len(set(drawn)) == len(drawn)
        for t, s in zip(*np.nonzero(is_used), strict=True):
            total, twin_label = expected[divmod(place[t, s], ENVS)]
            assert label[t, s] == twin_label
            assert sums[t, s] == pytest.approx(total, abs=1e-5)


def test_trajectories_are_drawn_so_that_every_step_is_equally_likely():
    config = config_with(draw="trajectories", segments_per_step=4000)
    buffer, twin = filled_buffer(np.random.default_rng(3), 4, 0.15, config)
    whole = replace(buffer, weights=jnp.ones_like(buffer.weights))
    window = 3
    segments = sample(jax.random.key(0), whole, window, config)
    is_used = np.asarray(segments.weights > 0)
    place = np.asarray(segments.actions[..., 0]).astype(int)[is_used]
    counts = np.bincount(place, minlength=ROWS * ENVS)
    eligible = twin.examples(window, 0)
    drawn = np.array([counts[row * ENVS + env] for row, env in eligible])
    assert counts.sum() == drawn.sum()
    # Poisson-like counts: none further from the mean than five standard deviations.
    assert np.all(np.abs(drawn - drawn.mean()) < 5 * np.sqrt(drawn.mean()))
    total = float(segments.expected_steps) * config.members
    labelled = len(eligible) / (ROWS * ENVS)
    assert counts.sum() == pytest.approx(total * labelled, rel=0.05)


def test_segments_are_drawn_from_all_places_and_by_each_member_for_itself():
    config = config_with(segments_per_step=2000)
    buffer, _ = filled_buffer(np.random.default_rng(0), 9, 0.1, config)
    segments = sample(jax.random.key(1), buffer, 2, config)
    first = np.asarray(segments.actions[:, 0, :, 0]).astype(int)
    assert not np.array_equal(first[0], first[1])
    counts = np.bincount(first.reshape(-1) - first.min(), minlength=ROWS * ENVS)
    mean = first.size / (ROWS * ENVS)
    assert np.all(np.abs(counts - mean) < 5 * np.sqrt(mean))


def test_one_compiled_program_serves_all_windows():
    config = config_with()
    buffer, _ = filled_buffer(np.random.default_rng(0), 5, 0.1, config)
    drawn = jax.jit(partial(sample, config=config))
    used = [
        float((drawn(jax.random.key(0), buffer, window).weights > 0).sum())
        for window in (1, 3, 9)
    ]
    assert drawn._cache_size() == 1
    assert used[0] > used[1] > used[2]


def test_a_window_longer_than_a_stretch_uses_nothing():
    config = config_with()
    buffer, _ = filled_buffer(np.random.default_rng(0), 5, 0.1, config)
    segments = sample(jax.random.key(0), buffer, jnp.asarray(10), config)
    assert float(segments.weights.sum()) == 0
