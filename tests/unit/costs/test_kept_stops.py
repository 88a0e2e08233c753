"""Every stop is kept with its window; the rest is a fair sample; the odds come right."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from termdp.cost_network import ActionSpec
from termdp.costs import fit, kept_stops
from termdp.costs.buffer import NO_LABEL, NOT_STOPPED, STOPPED
from termdp.costs.config import CostConfig
from termdp.costs.kept_stops import reservoir_slots, some_of

pytestmark = pytest.mark.slow

B, T, W = 4, 4, 3
CONFIG = CostConfig(
    network="vector",
    segment_length=8,
    segments_per_step=2,
    stops_per_step=3,
    stop_capacity=64,
    buffer_steps=64,
    members=2,
)


def streams(rng, rows, stop_rate=0.2):
    """Numbered steps of B streams: starts and labels as an observer would leave them."""
    starts = np.zeros((rows, B), bool)
    labels = np.zeros((rows, B), np.int8)
    for env in range(B):
        begins = True
        for row in range(rows):
            starts[row, env] = begins
            kind = rng.random()
            labels[row, env] = (
                STOPPED
                if kind < stop_rate
                else NO_LABEL
                if kind < stop_rate + 0.1
                else NOT_STOPPED
            )
            begins = labels[row, env] != NOT_STOPPED or rng.random() < 0.05
    number = np.arange(rows * B).reshape(rows, B)
    return number, starts, labels


init = jax.jit(kept_stops.init, static_argnums=(1, 2, 3, 4, 5))
add = jax.jit(kept_stops.add, static_argnums=6)


def fill(number, starts, labels, config=CONFIG, seed=0):
    """The memory after these rows, rollout by rollout."""
    memory = init(jnp.zeros(1), ActionSpec(5), B, T, W, config)
    for first in range(0, len(number), T):
        rows = slice(first, first + T)
        obs = jnp.asarray(number[rows, :, None], jnp.float32)
        key = jax.random.fold_in(jax.random.key(seed), first)
        actions = jnp.asarray(number[rows] % 5)
        memory = add(key, memory, obs, actions, starts[rows], labels[rows], config)
    return memory


def true_windows(number, starts, labels):
    """By plain loops: for each stop, the numbers of the last W steps of its episode."""
    found = []
    for row, env in zip(*np.nonzero(labels == STOPPED), strict=True):
        window = []
        for back in range(W):
            window.insert(0, int(number[row - back, env]))
            if starts[row - back, env]:
                break
        found.append(tuple(window))
    return sorted(found)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 10))
def test_every_stop_is_kept_with_its_own_window(seed, rollouts):
    number, starts, labels = streams(np.random.default_rng(seed), rollouts * T, 0.08)
    stops = jax.device_get(fill(number, starts, labels).stops)
    most = max(1, B * T // 8)
    per_rollout = (labels == STOPPED).reshape(rollouts, -1).sum(axis=1)
    count = int(np.minimum(per_rollout, most).sum())
    assert int(stops.seen) == (labels == STOPPED).sum()
    if (per_rollout > most).any():
        return  # of more than a rollout may bring, some are drawn
    kept = [
        tuple(int(x) for x in stops.obs[i, W - int(stops.lengths[i]) :, 0])
        for i in range(count)
    ]
    assert sorted(kept) == true_windows(number, starts, labels)
    last = np.asarray(stops.obs[:count, -1, 0])
    np.testing.assert_array_equal(np.asarray(stops.actions[:count, -1]), last % 5)


def test_every_row_is_offered_once_and_in_its_order():
    number, starts, labels = streams(np.random.default_rng(3), 8 * T)
    config = dataclasses.replace(CONFIG, buffer_steps=10_000)
    others = jax.device_get(fill(number, starts, labels, config).others)
    kept = int(others.seen)
    # Two turns of two streams each per eight rows.
    assert kept == 8 * 2
    seen = []
    for index in range(kept):
        used = np.asarray(others.labels[index]) != NO_LABEL
        rows = np.asarray(others.obs[index, :, 0]).astype(int)
        # One stream, without gaps: numbers grow by B.
        env = rows[-1] % B
        for place in np.flatnonzero(used):
            row = rows[place] // B
            assert rows[place] % B == env
            assert bool(others.starts[index, place]) == starts[row, env]
            assert int(others.labels[index, place]) == labels[row, env]
            seen.append(rows[place])
    assert len(seen) == len(set(seen))
    assert float(others.negatives_seen) == (labels == NOT_STOPPED).sum()


def test_a_full_reservoir_is_a_uniform_sample():
    capacity, items, repeats = 8, 40, 400
    kept = np.zeros(items)
    for repeat in range(repeats):
        slots = np.full(capacity, -1)
        for first in range(0, items, 4):
            key = jax.random.fold_in(jax.random.key(repeat), first)
            place = _slots(key, first, 4, capacity)
            for item, slot in enumerate(place):
                if slot < capacity:
                    slots[slot] = first + item
        kept[slots] += 1
    # Each item is kept with chance 1/5: 80 ± 8 times of 400.
    assert abs(kept - repeats * capacity / items).max() < 5 * 8
    assert kept.sum() == repeats * capacity


def _slots(key, seen, count, capacity):
    return np.asarray(
        _jitted_slots(key, jnp.int32(seen), jnp.ones(count, bool), capacity)
    )


_some_of = jax.jit(some_of, static_argnums=2)
_jitted_slots = jax.jit(reservoir_slots, static_argnums=3)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.booleans(), min_size=12, max_size=12), st.integers(0, 10_000))
def test_chosen_places_are_all_taken_while_there_is_room(flags, seed):
    chosen, most = np.array(flags), 6
    places, counts = map(np.asarray, _some_of(jax.random.key(seed), chosen, most))
    taken = places[counts]
    assert len(set(taken.tolist())) == len(taken) == min(most, chosen.sum())
    assert chosen[taken].all()


def test_of_too_many_places_each_is_taken_equally_often():
    chosen = np.array([1, 0, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1], bool)  # 9, room for 6
    taken = np.zeros(chosen.size)
    for seed in range(900):
        places, counts = _some_of(jax.random.key(seed), chosen, 6)
        assert np.asarray(counts).all()
        taken[np.asarray(places)] += 1
    # Each with chance 2/3: 600 ± 14 times.
    assert np.abs(taken[chosen] - 600).max() < 5 * 14
    assert not taken[~chosen].any()


def test_two_items_never_share_a_slot():
    key = jax.random.key(0)
    slots = np.asarray(reservoir_slots(key, jnp.int32(100), jnp.ones(50, bool), 4))
    used = slots[slots < 4]
    assert len(used) == len(set(used))


def test_the_offset_by_hand():
    number, starts, labels = streams(np.random.default_rng(1), 6 * T, 0.1)
    memory = fill(number, starts, labels)
    window = 3
    # Per step: 2 segments of 8 // 3 = 2 windows each, of all stops; one segment of the
    # reservoir with so many usable steps on average, of all steps without a stop.
    stored = min(int(memory.others.seen), CONFIG.segments_kept)
    usable = (
        np.asarray(memory.others.labels[:stored, window - 1 :]) == NOT_STOPPED
    ).sum()
    stops, negatives = (labels == STOPPED).sum(), (labels == NOT_STOPPED).sum()
    expected = np.log(4 / stops) - np.log(usable / stored / negatives)
    found = kept_stops.log_odds_offset(memory, jnp.int32(window), CONFIG)
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_a_draw_holds_whole_windows_others_without_stops_and_the_newest_as_they_are():
    number, starts, labels = streams(np.random.default_rng(2), 8 * T, 0.15)
    memory = fill(number, starts, labels)
    draw = jax.jit(kept_stops.sample, static_argnums=3)
    drawn = jax.device_get(draw(jax.random.key(5), memory, jnp.int32(W), CONFIG))
    assert drawn.obs.shape[:3] == (2, 8, 4)
    lengths = {w[-1]: len(w) for w in true_windows(number, starts, labels)}
    for member, segment in np.ndindex(2, 2):
        rows = np.asarray(drawn.obs[member, :, segment, 0]).astype(int)
        begins = np.asarray(drawn.starts[member, :, segment])
        for last in (W - 1, 2 * W - 1):
            assert float(drawn.labels[member, last, segment]) == 1
            length = lengths[rows[last]]
            # What a window sum reaches back to: the episode's own steps, no more.
            begin = max(np.flatnonzero(begins[: last + 1]))
            assert last - begin + 1 == length
            assert list(rows[begin : last + 1]) == [
                rows[last] - B * back for back in reversed(range(length))
            ]
    others, newest = drawn.labels[:, :, 2], drawn.labels[:, :, 3]
    assert np.asarray(others).sum() == 0
    unused = np.asarray(drawn.weights[:, : W - 1, 2:])
    assert unused.sum() == 0
    # The newest steps carry their own labels and no offset: their odds are true.
    steps = np.asarray(drawn.obs[:, :, 3, 0]).astype(int)
    stopped = {int(n) for n in number[labels == STOPPED]}
    np.testing.assert_array_equal(
        np.asarray(newest) == 1, np.isin(steps, list(stopped))
    )
    offset = float(kept_stops.log_odds_offset(memory, jnp.int32(W), CONFIG))
    np.testing.assert_allclose(drawn.offset, [offset, offset, offset, 0.0], rtol=1e-6)
    assert float(drawn.expected_steps) == 4 + (8 - W + 1) * 2


def test_large_observations_leave_room_for_fewer_stops():
    large = jnp.zeros((1000, 1000))
    memory = jax.eval_shape(
        lambda: kept_stops.init(large, ActionSpec(2), B, T, W, CONFIG)
    )
    # 256 MiB are 22 windows of 3 observations of 4 MB each.
    assert memory.stops.obs.shape == (22, W, 1000, 1000)


def test_a_rarely_stopping_observer_is_found_from_all_stops_as_from_everything():
    """A constant hazard: b by the offset equals what all steps would have given."""
    rng = np.random.default_rng(0)
    rows, rate = 400 * T, 0.02
    stopped = rng.random((rows, B)) < rate
    labels = np.where(stopped, STOPPED, NOT_STOPPED).astype(np.int8)
    starts = np.vstack([np.ones((1, B), bool), stopped[:-1]])
    number = np.zeros((rows, B), int)
    config = dataclasses.replace(
        CONFIG,
        stop_capacity=256,
        buffer_steps=2048,
        learning_rate=1e-2,
        stops_per_step=16,
        segments_per_step=16,
        num_steps=1200,
        weight_decay=0.0,
        averaging=0.99,
    )
    memory = fill(number, starts, labels, config)
    from termdp.costs import ensemble

    init_costs = jax.jit(ensemble.init, static_argnums=(2, 3))
    state = init_costs(jax.random.key(1), jnp.zeros(1), ActionSpec(5), config)
    state, _ = jax.jit(lambda *args: fit.update(*args, config))(
        jax.random.key(2), state, memory, jnp.int32(1)
    )
    cost = float(ensemble.member_costs(state, jnp.zeros(1), jnp.int32(0)).mean())
    logit = cost - float(ensemble.biases(state).mean())
    truth = stopped.mean()
    assert logit == pytest.approx(np.log(truth / (1 - truth)), abs=0.25)
