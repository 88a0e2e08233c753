"""Packing, labels, bootstrap weights, layout of episodes, and bad sizes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offline_costs.episodes import Episode, from_episodes, lay_out
from termdp.cost_network import ActionSpec
from termdp.costs import buffer as buffers
from termdp.costs.config import CostConfig

count_usable = jax.jit(buffers.usable_rows)

CONFIG = CostConfig(segment_length=8, buffer_steps=64, network="vector")


@pytest.mark.parametrize("shape", [(10, 10, 4), (7, 5, 3), (3,)])
def test_bits_come_back(shape):
    grids = jax.random.bernoulli(jax.random.key(0), 0.3, (2, 5, *shape))
    stored = buffers.pack(grids, len(shape))
    assert stored.dtype == jnp.uint8
    assert stored.shape == (2, 5, -(-int(np.prod(shape)) // 8))
    back = buffers.unpack(stored, shape, "bool")
    np.testing.assert_array_equal(back, grids)


def test_numbers_are_stored_as_they_are():
    values = jnp.arange(6.0).reshape(2, 3)
    assert buffers.unpack(buffers.pack(values, 1), (3,), "float32") is values


def test_labels_of_the_three_ends():
    stopped = jnp.array([False, True, False, True])
    game_over = jnp.array([False, False, True, True])
    labels = buffers.step_labels(stopped, game_over)
    # The last one cannot happen; the game's own end would win, as everywhere.
    assert labels.tolist() == [0, 1, -1, -1]


def test_bootstrap_weights_stay_within_an_episode_and_cross_rollouts():
    starts = jax.random.bernoulli(jax.random.key(1), 0.1, (50, 40))
    going_on = jnp.full((40, 3), 77, jnp.uint8)
    weights = buffers.bootstrap_weights(jax.random.key(2), starts, going_on)
    before = jnp.concatenate([going_on[None], weights[:-1]])
    is_same = np.asarray((weights == before).all(axis=-1))
    assert is_same[~np.asarray(starts)].all()
    assert (np.asarray(weights[0])[~np.asarray(starts[0])] == 77).all()
    new = np.asarray(weights)[np.asarray(starts)]
    assert not (new == 77).any()


def test_a_single_network_learns_from_every_episode_once():
    starts = jax.random.bernoulli(jax.random.key(1), 0.1, (50, 40))
    going_on = jnp.zeros((40, 1), jnp.uint8)  # an empty buffer's
    weights = buffers.bootstrap_weights(jax.random.key(2), starts, going_on)
    assert weights.shape == (50, 40, 1)
    assert (np.asarray(weights) == 1).all()


def test_bootstrap_weights_follow_the_poisson_law_with_mean_one():
    starts = jnp.ones((100, 200), bool)
    weights = buffers.bootstrap_weights(
        jax.random.key(0), starts, jnp.zeros((200, 3), jnp.uint8)
    )
    drawn = np.asarray(weights).reshape(-1, 3).astype(float)
    assert drawn.mean() == pytest.approx(1.0, abs=0.02)
    assert drawn.var() == pytest.approx(1.0, abs=0.03)
    assert (drawn == 0).mean() == pytest.approx(np.exp(-1), abs=0.01)
    members = np.corrcoef(drawn.T) - np.eye(3)
    assert np.abs(members).max() < 0.03


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**20), cursor=st.integers(0, 19), limit=st.integers(1, 60))
def test_usable_rows_count_episodes_from_the_newest_row(seed, cursor, limit):
    rng = np.random.default_rng(seed)
    starts = rng.random((20, 4)) < 0.4
    filled = 20 if rng.random() < 0.5 else max(cursor, 1)
    usable = int(count_usable(starts, cursor, filled, limit))
    count, expected = 0, 0
    for back in range(1, filled + 1):
        count += starts[(cursor - back) % 20].sum()
        if count > limit:
            break
        expected = back
    assert usable == max(expected, 1)


def test_discrete_and_continuous_actions_and_uint8_images():
    obs = jnp.zeros((4, 4, 1), jnp.uint8)
    discrete = buffers.init(obs, ActionSpec(3), 2, 4, CONFIG)
    assert (discrete.actions.dtype, discrete.actions.shape) == (jnp.uint8, (32, 2))
    assert discrete.obs.shape == (32, 2, 4, 4, 1)
    many = buffers.init(obs, ActionSpec(1000), 2, 4, CONFIG)
    assert many.actions.dtype == jnp.int32
    continuous = buffers.init(obs, ActionSpec(5, discrete=False), 2, 4, CONFIG)
    assert continuous.actions.shape == (32, 2, 5)


def test_sizes_that_cannot_work_are_refused():
    obs = jnp.zeros(2)
    with pytest.raises(ValueError, match="at least segment_length = 8 rows, got 4"):
        buffers.init(obs, ActionSpec(2), 16, 4, CONFIG)
    buffer = buffers.init(obs, ActionSpec(2), 2, 4, CONFIG)
    with pytest.raises(ValueError, match="length divides the buffer's 32 rows"):
        zeros = jnp.zeros((5, 2))
        buffers.add(
            jax.random.key(0),
            buffer,
            jnp.zeros((5, 2, 2)),
            zeros,
            zeros > 0,
            zeros,
            CONFIG,
        )


def episodes_of(lengths, ends):
    return [
        Episode(
            obs=np.full((length, 2), index, np.float32) + np.arange(length)[:, None],
            actions=np.zeros(length, int),
            end=end,
        )
        for index, (length, end) in enumerate(zip(lengths, ends, strict=True))
    ]


@settings(max_examples=20, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 20), min_size=1, max_size=30),
    streams=st.integers(1, 5),
)
def test_episodes_are_laid_out_without_overlap(lengths, streams):
    env, row = lay_out(np.array(lengths), streams)
    taken = {
        (int(e), int(r) + i)
        for e, r, n in zip(env, row, lengths, strict=True)
        for i in range(n)
    }
    assert len(taken) == sum(lengths)
    fill = np.bincount(env, weights=lengths, minlength=streams)
    assert fill.max() - fill.min() <= max(lengths)


def test_a_buffer_of_whole_episodes_holds_all_of_them():
    ends = ["stopped", "game_over", "truncated"] * 4
    lengths = [3, 5, 2, 9, 4, 4, 1, 7, 6, 2, 3, 8]
    buffer = from_episodes(
        jax.random.key(0),
        episodes_of(lengths, ends),
        ActionSpec(2),
        CONFIG,
        num_rows=40,
    )
    labels = np.asarray(buffer.labels)
    assert buffer.num_rows == 40
    assert (labels == 1).sum() == 4
    assert (labels == 0).sum() == sum(lengths) - 8
    assert int(buffer.usable) < 40
    assert np.asarray(buffer.starts).sum() >= len(lengths)


def test_episodes_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="expected end to be one of"):
        episodes_of([2], ["done"])
    with pytest.raises(ValueError, match="as many observations as actions"):
        Episode(np.zeros((2, 1)), np.zeros(3), "stopped")
    with pytest.raises(ValueError, match="at least one episode"):
        from_episodes(jax.random.key(0), [], ActionSpec(2), CONFIG)
