"""Experience for costs: every stop, a uniform sample of the rest, and the newest steps.

P(stop | window) does not depend on the policy, so old stops stay valid, and they are few.
Two things are kept. First, the window before each stop: all of them up to a capacity,
then a uniform sample. Second, a reservoir of segments of ordinary experience, uniform
over everything ever played (Vitter's algorithm R). Memory is bounded for any run.

A gradient step draws from both, so it sees stops far more often than they happen. That
shifts the logit of a stop by a constant: log(rate of drawn stops / rate of drawn others).
The constant is added to the model's logit during learning. Then the likelihood fits the
draw, while costs and bias fit the true rates (Wang et al., arXiv:2110.13048: an offset
wastes less than weights do).

Half of the segments come from the newest steps, unchanged. The costs of the present
policy's behaviour matter most, and gradient steps are few: from the whole past alone,
costs would lag behind (docs/values_costs.md).
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from termdp.cost_network import ActionSpec
from termdp.costs import buffer as buffers
from termdp.costs import sampling
from termdp.costs.buffer import NOT_STOPPED, STOPPED, Buffer
from termdp.costs.config import CostConfig
from termdp.costs.sampling import Segments

# A rollout adds at most one stop for every so many of its steps; of more, a sample.
_MOST_STOPS_SHARE = 8
# Most bytes for windows of stops: fewer are kept if observations are large.
_MOST_BYTES = 2**28


@struct.dataclass
class Stops:
    """Windows before stops; the last row is the stop itself.

    Attributes:
        obs: `[N, W, ...]`, as a `Buffer` stores them.
        actions: `[N, W]` or `[N, W, size]`.
        lengths: `[N]`, how many of the last rows belong to the episode.
        weights: `[N, M]`, how often the episode is in a member's bootstrap.
        seen: how many stops there were so far, a scalar.
        offered: how many of them were offered a slot, a scalar.
    """

    obs: jax.Array
    actions: jax.Array
    lengths: jax.Array
    weights: jax.Array
    seen: jax.Array
    offered: jax.Array


@struct.dataclass
class Others:
    """Segments of ordinary experience; stops in them are not used.

    Attributes:
        obs: `[K, T, ...]`, as a `Buffer` stores them.
        actions: `[K, T]` or `[K, T, size]`.
        starts: `[K, T]`, first steps of episodes.
        labels: `[K, T]`.
        weights: `[K, T, M]`.
        seen: how many segments were offered so far, a scalar.
        negatives_seen: how many negative labels there were so far, a scalar.
    """

    obs: jax.Array
    actions: jax.Array
    starts: jax.Array
    labels: jax.Array
    weights: jax.Array
    seen: jax.Array
    negatives_seen: jax.Array


@struct.dataclass
class KeptStops:
    """The newest rows of every stream, and what is kept of older ones.

    Attributes:
        recent: the newest steps; windows and segments are cut from them.
        stops: windows of stops.
        others: the reservoir.
        rollouts: how many were added, a scalar.
    """

    recent: Buffer
    stops: Stops
    others: Others
    rollouts: jax.Array


def init(
    example_obs: jax.Array,
    action_spec: ActionSpec,
    num_envs: int,
    rollout_length: int,
    max_window: int,
    config: CostConfig,
) -> KeptStops:
    """Empty experience.

    Args:
        example_obs: one observation; only its shape and type matter.
        action_spec: shape and type of actions.
        num_envs: B, environments that run in parallel.
        rollout_length: rows of each `add`.
        max_window: W, the longest window of the cost learners.
        config: settings.
    """
    needed = max(config.segment_length, rollout_length + max_window - 1)
    rows = -(-needed // rollout_length) * rollout_length
    rows = max(rows, config.buffer_rows(num_envs, rollout_length))
    recent = buffers.empty(rows, num_envs, example_obs, action_spec, config)
    window_bytes = max_window * recent.obs[0, 0].nbytes
    stops = (min(config.stop_capacity, max(1, _MOST_BYTES // window_bytes)), max_window)
    others = (config.segments_kept, config.segment_length)

    def room(shape: tuple[int, ...], like: jax.Array) -> jax.Array:
        return jnp.zeros((*shape, *like.shape[2:]), like.dtype)

    return KeptStops(
        recent=recent,
        stops=Stops(
            obs=room(stops, recent.obs),
            actions=room(stops, recent.actions),
            lengths=jnp.zeros(stops[:1], jnp.int32),
            weights=jnp.zeros((stops[0], config.members), jnp.uint8),
            seen=jnp.int32(0),
            offered=jnp.int32(0),
        ),
        others=Others(
            obs=room(others, recent.obs),
            actions=room(others, recent.actions),
            starts=room(others, recent.starts),
            labels=jnp.full(others, buffers.NO_LABEL, jnp.int8),
            weights=room(others, recent.weights),
            seen=jnp.int32(0),
            negatives_seen=jnp.float32(0),
        ),
        rollouts=jnp.int32(0),
    )


def add(
    key: jax.Array,
    memory: KeptStops,
    obs: jax.Array,
    actions: jax.Array,
    starts: jax.Array,
    labels: jax.Array,
    config: CostConfig,
) -> KeptStops:
    """Keep a rollout's stops, and offer some segments to the reservoir.

    Arguments as for `buffer.add`.
    """
    key_recent, key_stops, key_others = jax.random.split(key, 3)
    recent = buffers.add(
        key_recent, memory.recent, obs, actions, starts, labels, config
    )
    stops = _keep_stops(key_stops, memory.stops, recent, labels)
    others = _offer_segments(key_others, memory.others, recent, memory.rollouts, labels)
    return KeptStops(recent, stops, others, memory.rollouts + 1)


def _keep_stops(
    key: jax.Array, stops: Stops, recent: Buffer, labels: jax.Array
) -> Stops:
    """Cut the window before each stop of the newest rows, and put it into its slot."""
    key_order, key_slots = jax.random.split(key)
    stopped = (labels == STOPPED).reshape(-1)
    most = max(1, stopped.size // _MOST_STOPS_SHARE)
    place, is_stop = some_of(key_order, stopped, most)
    time, env = place // labels.shape[1], place % labels.shape[1]
    capacity, width = stops.obs.shape[:2]
    last = recent.cursor - labels.shape[0] + time
    row = (last[:, None] - width + 1 + jnp.arange(width)) % recent.num_rows
    env = jnp.broadcast_to(env[:, None], row.shape)
    first = jnp.max(jnp.where(recent.starts[row, env], jnp.arange(width), 0), axis=1)
    slot = reservoir_slots(key_slots, stops.offered, is_stop, capacity)

    def write(kept: jax.Array, new: jax.Array) -> jax.Array:
        return kept.at[slot].set(new.astype(kept.dtype), mode="drop")

    return Stops(
        obs=write(stops.obs, recent.obs[row, env]),
        actions=write(stops.actions, recent.actions[row, env]),
        lengths=write(stops.lengths, width - first),
        weights=write(stops.weights, recent.weights[row[:, -1], env[:, -1]]),
        seen=stops.seen + jnp.sum(stopped, dtype=jnp.int32),
        offered=stops.offered + jnp.sum(is_stop, dtype=jnp.int32),
    )


def some_of(
    key: jax.Array, chosen: jax.Array, most: int
) -> tuple[jax.Array, jax.Array]:
    """Places of the true values, at most so many; each is among them equally likely.

    They are taken in a circle from a random one on. On a GPU, a sort by random numbers
    would take as long as several gradient steps.

    Args:
        key: random key.
        chosen: `[N]` of booleans.
        most: how many places to return.

    Returns:
        places `[most]`, and which of them count, `[most]`.
    """
    count = jnp.sum(chosen, dtype=jnp.int32)
    first = jax.random.randint(key, (), 0, jnp.maximum(count, 1))
    rank = jnp.cumsum(chosen, dtype=jnp.int32) - 1
    turn = jnp.where(chosen, (rank - first) % jnp.maximum(count, 1), most)
    places = jnp.arange(chosen.size, dtype=jnp.int32)
    found = jnp.zeros(most, jnp.int32).at[turn].set(places, mode="drop")
    return found, jnp.arange(most) < count


def _offer_segments(
    key: jax.Array,
    others: Others,
    recent: Buffer,
    rollouts: jax.Array,
    labels: jax.Array,
) -> Others:
    """Offer the newest rows of some streams, each row once.

    The streams take turns: when one's turn comes again, all its rows are new.
    """
    capacity, length = others.starts.shape
    turns = -(-length // labels.shape[0])
    count = max(1, recent.num_envs // turns)
    env = (rollouts * count + jnp.arange(count)) % recent.num_envs
    row = (recent.cursor - length + jnp.arange(length)) % recent.num_rows
    slot = reservoir_slots(key, others.seen, jnp.ones(count, bool), capacity)

    def write(kept: jax.Array, rows: jax.Array) -> jax.Array:
        new = jnp.swapaxes(rows[row[:, None], env[None, :]], 0, 1)
        return kept.at[slot].set(new, mode="drop")

    negatives = jnp.sum(labels == NOT_STOPPED, dtype=jnp.float32)
    return Others(
        obs=write(others.obs, recent.obs),
        actions=write(others.actions, recent.actions),
        starts=write(others.starts, recent.starts),
        labels=write(others.labels, recent.labels),
        weights=write(others.weights, recent.weights),
        seen=others.seen + count,
        negatives_seen=others.negatives_seen + negatives,
    )


def reservoir_slots(
    key: jax.Array, seen: jax.Array, offered: jax.Array, capacity: int
) -> jax.Array:
    """Slots for new items, so that all items so far are kept with equal probability.

    The n-th item takes slot n while there is room. Later it draws j uniformly from 0 … n
    and takes slot j if there is one. Of two items for one slot, the later one wins.

    Args:
        key: random key.
        seen: how many items came before.
        offered: `[I]`, which of these are items; the others are skipped.
        capacity: how many slots there are.

    Returns:
        `[I]`, `capacity` where an item is not kept.
    """
    number = seen + jnp.cumsum(offered.astype(jnp.int32)) - 1
    uniform = jax.random.uniform(key, offered.shape)
    drawn = jnp.floor(uniform * (number + 1)).astype(jnp.int32)
    slot = jnp.where(number < capacity, number, drawn)
    slot = jnp.where(offered & (slot < capacity), slot, capacity)
    later = jnp.triu(slot[:, None] == slot[None, :], k=1)
    return jnp.where(jnp.any(later, axis=1), capacity, slot)


def sample(
    key: jax.Array, memory: KeptStops, window: jax.Array, config: CostConfig
) -> Segments:
    """Draw windows of stops, segments of the reservoir and of the newest steps.

    Windows of stops are put one after the other into their own segments.
    """
    key_stops, key_others, key_newest = jax.random.split(key, 3)
    stops = _draw_stops(key_stops, memory.stops, config)
    others = _draw_others(key_others, memory.others, window, config)
    of_newest = replace(
        config, segments_per_step=newest_segments(config), draw="segments"
    )
    newest = sampling.sample(key_newest, memory.recent, window, of_newest)
    joined = {
        name: jnp.concatenate([stops[name], others[name], getattr(newest, name)], 2)
        for name in stops
    }
    length = config.segment_length - window + 1
    drawn = stops_per_step(memory, config) + other_segments(config) * length
    is_kept = jnp.arange(joined["starts"].shape[2]) < (
        stops["starts"].shape[2] + others["starts"].shape[2]
    )
    return Segments(
        **joined,
        expected_steps=newest.expected_steps + jnp.asarray(drawn, jnp.float32),
        offset=jnp.where(is_kept, log_odds_offset(memory, window, config), 0.0),
    )


def newest_segments(config: CostConfig) -> int:
    """Segments of the newest steps per member and gradient step."""
    return max(1, config.segments_per_step // 2)


def other_segments(config: CostConfig) -> int:
    """Segments of the reservoir; the rest of the room is for windows of stops."""
    return max(1, config.segments_per_step // 4)


def stops_per_step(memory: KeptStops, config: CostConfig) -> int:
    """Windows of stops per member and gradient step: whole segments of them."""
    width = memory.stops.obs.shape[1]
    return _per_segment(width, config) * _stop_segments(width, config)


def stop_share(memory: KeptStops, window: jax.Array, config: CostConfig) -> jax.Array:
    """Share of kept stops among the steps that a gradient step draws."""
    drawn = stops_per_step(memory, config)
    segments = newest_segments(config) + other_segments(config)
    return drawn / (drawn + segments * (config.segment_length - window + 1))


def log_odds_offset(
    memory: KeptStops, window: jax.Array, config: CostConfig
) -> jax.Array:
    """Log of how often a stop is drawn, minus log of how often another step is.

    A draw has P of the N stops seen so far. Of the n other steps it has as many as S
    segments hold on average. It is 0 while there are no stops or no others.
    """
    others = memory.others
    stored = jnp.minimum(others.seen, others.starts.shape[0])
    row = jnp.arange(others.labels.shape[1])
    usable = jnp.sum((others.labels == NOT_STOPPED) & (row >= window - 1))
    per_segment = usable / jnp.maximum(stored, 1)
    stop_rate = stops_per_step(memory, config) / jnp.maximum(memory.stops.seen, 1)
    other_rate = (
        other_segments(config)
        * jnp.maximum(per_segment, 1e-6)
        / jnp.maximum(others.negatives_seen, 1.0)
    )
    known = (memory.stops.seen > 0) & (usable > 0)
    return jnp.where(known, jnp.log(stop_rate) - jnp.log(other_rate), 0.0)


def _per_segment(width: int, config: CostConfig) -> int:
    return max(1, config.segment_length // width)


def _stop_segments(width: int, config: CostConfig) -> int:
    return -(-config.stops_per_step // _per_segment(width, config))


def _draw_stops(key: jax.Array, stops: Stops, config: CostConfig) -> dict[str, Any]:
    """Segments `[M, T, S′]` that hold windows of stops, one after the other."""
    capacity, width = stops.obs.shape[:2]
    each, segments = _per_segment(width, config), _stop_segments(width, config)
    shape = (config.members, segments, each)
    stored = jnp.minimum(stops.offered, capacity)
    pick = jax.random.randint(key, shape, 0, jnp.maximum(stored, 1))
    row = jnp.arange(width)
    is_first = row == (width - stops.lengths[pick])[..., None]
    member = jnp.arange(config.members)[:, None, None]
    weight = jnp.where(stored > 0, stops.weights[pick, member], 0)
    is_stop = jnp.broadcast_to(row == width - 1, is_first.shape)
    rest = config.segment_length - each * width

    def laid(x: jax.Array) -> jax.Array:
        """`[M, S′, each, W, ...]` to `[M, T, S′, ...]`, the rest zeros."""
        x = x.reshape(*shape[:2], each * width, *x.shape[4:])
        x = jnp.pad(x, [(0, 0), (0, 0), (0, rest)] + [(0, 0)] * (x.ndim - 3))
        return jnp.moveaxis(x, 1, 2)

    return {
        "obs": laid(stops.obs[pick]),
        "actions": laid(stops.actions[pick]),
        # Windows are separate: the rows before one belong to another stop.
        "starts": laid(is_first | (row == 0)),
        "labels": laid(is_stop.astype(jnp.float32)),
        "weights": laid(is_stop * weight[..., None].astype(jnp.float32)),
    }


def _draw_others(
    key: jax.Array, others: Others, window: jax.Array, config: CostConfig
) -> dict[str, Any]:
    """Segments `[M, T, S]` of the reservoir; their steps with a whole window count."""
    shape = (config.members, other_segments(config))
    stored = jnp.minimum(others.seen, others.starts.shape[0])
    pick = jax.random.randint(key, shape, 0, jnp.maximum(stored, 1))
    row = jnp.arange(others.starts.shape[1])
    is_used = (others.labels[pick] == NOT_STOPPED) & (row >= window - 1)
    member = jnp.arange(config.members)[:, None]
    weights = others.weights[pick, :, member]

    def laid(x: jax.Array) -> jax.Array:
        return jnp.moveaxis(x, 1, 2)

    return {
        "obs": laid(others.obs[pick]),
        "actions": laid(others.actions[pick]),
        "starts": laid(others.starts[pick] | (row == 0)),
        "labels": jnp.zeros((shape[0], row.size, shape[1])),
        "weights": laid(jnp.where(is_used, weights, 0).astype(jnp.float32)),
    }
