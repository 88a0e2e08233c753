"""A first-in-first-out buffer of observed steps, on the device.

Each of the B environments fills its own column, row after row, without gaps. So an
episode that spans several rollouts is in one piece, and the window before a step is the
rows before it. All columns advance and wrap around together, so there is one seam between
the newest row and the oldest.

Appendix D, arXiv:2205.15376: "rollouts that were collected in the environments were
added to a finite buffer (FIFO)". The usable part of the buffer is its newest rows, at
most `buffer_steps` steps and at most `buffer_episodes` first steps of episodes.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from termdp.cost_network import ActionSpec
from termdp.costs.config import CostConfig

STOPPED, NOT_STOPPED, NO_LABEL = 1, 0, -1

# P(X ≤ k) of the Poisson law with mean 1, for k = 0 … 8.
_POISSON_CDF = np.cumsum(np.exp(-1.0) / np.cumprod([1, 1, 2, 3, 4, 5, 6, 7, 8]))


@struct.dataclass
class Buffer:
    """Rows of B parallel streams.

    Attributes:
        obs: `[L, B, bytes]` packed bits of boolean observations, or `[L, B, *shape]`.
        actions: `[L, B]` integers or `[L, B, size]` numbers.
        starts: `[L, B]`, true on the first step of an episode.
        labels: `[L, B]`, STOPPED, NOT_STOPPED or NO_LABEL.
        weights: `[L, B, M]`, how often the step's episode is in a member's bootstrap.
        episode_weights: `[B, M]`, those of the unfinished episodes.
        cursor: the next row to write, a scalar.
        filled: how many rows hold data, at most L, a scalar.
        usable: how many of the newest rows may be sampled, a scalar.
        obs_shape: shape of one observation (static).
        obs_dtype: its type's name (static).
    """

    obs: jax.Array
    actions: jax.Array
    starts: jax.Array
    labels: jax.Array
    weights: jax.Array
    episode_weights: jax.Array
    cursor: jax.Array
    filled: jax.Array
    usable: jax.Array
    obs_shape: tuple[int, ...] = struct.field(pytree_node=False)
    obs_dtype: str = struct.field(pytree_node=False)

    @property
    def num_rows(self) -> int:
        """L."""
        return self.starts.shape[0]

    @property
    def num_envs(self) -> int:
        """B."""
        return self.starts.shape[1]


def init(
    example_obs: jax.Array,
    action_spec: ActionSpec,
    num_envs: int,
    rollout_length: int,
    config: CostConfig,
) -> Buffer:
    """An empty buffer of as many whole rollouts as `buffer_steps` allows.

    Args:
        example_obs: one observation; only its shape and type matter.
        action_spec: shape and type of actions.
        num_envs: B, environments that run in parallel.
        rollout_length: T, rows of each `add`.
        config: settings.
    """
    rows = config.buffer_rows(num_envs, rollout_length)
    if rows < config.segment_length:
        raise ValueError(
            f"expected a buffer of at least segment_length = {config.segment_length} "
            f"rows, got {rows} (buffer_steps {config.buffer_steps} over {num_envs} "
            f"environments in rollouts of {rollout_length}); use a larger buffer or "
            "fewer environments"
        )
    return empty(rows, num_envs, example_obs, action_spec, config)


def empty(
    rows: int,
    num_envs: int,
    example_obs: jax.Array,
    action_spec: ActionSpec,
    config: CostConfig,
) -> Buffer:
    """An empty buffer of `rows` rows."""
    example_obs = jnp.asarray(example_obs)
    stored = pack(example_obs, example_obs.ndim)
    action_shape = () if action_spec.discrete else (action_spec.size,)
    action_dtype = jnp.float32
    if action_spec.discrete:
        action_dtype = jnp.uint8 if action_spec.size <= 256 else jnp.int32
    shape = (rows, num_envs)
    return Buffer(
        obs=jnp.zeros((*shape, *stored.shape), stored.dtype),
        actions=jnp.zeros((*shape, *action_shape), action_dtype),
        starts=jnp.zeros(shape, bool),
        labels=jnp.full(shape, NO_LABEL, jnp.int8),
        weights=jnp.zeros((*shape, config.members), jnp.uint8),
        episode_weights=jnp.zeros((num_envs, config.members), jnp.uint8),
        cursor=jnp.zeros((), jnp.int32),
        filled=jnp.zeros((), jnp.int32),
        usable=jnp.zeros((), jnp.int32),
        obs_shape=example_obs.shape,
        obs_dtype=example_obs.dtype.name,
    )


def step_labels(stopped: jax.Array, game_over: jax.Array) -> jax.Array:
    """Labels of steps, from how the episode ended on them, if it did.

    A stop is positive. A step on which the game itself ended could not have been a stop
    and has no label. All others are negative, even the last of a truncated episode.
    """
    labels = jnp.where(stopped, STOPPED, NOT_STOPPED)
    return jnp.where(game_over, NO_LABEL, labels).astype(jnp.int8)


def add(
    key: jax.Array,
    buffer: Buffer,
    obs: jax.Array,
    actions: jax.Array,
    starts: jax.Array,
    labels: jax.Array,
    config: CostConfig,
) -> Buffer:
    """Append a rollout; if the buffer is full, the oldest one is dropped.

    Args:
        key: for the bootstrap weights of episodes that begin.
        buffer: the buffer.
        obs: s_t, `[T, B, *shape]`.
        actions: a_t, `[T, B]` or `[T, B, size]`.
        starts: `[T, B]`, true on the first step of an episode.
        labels: `[T, B]`, see `step_labels`.
        config: settings.
    """
    length = starts.shape[0]
    if buffer.num_rows % length:
        raise ValueError(
            f"expected rollouts whose length divides the buffer's {buffer.num_rows} "
            f"rows, got {length}"
        )
    weights = bootstrap_weights(key, starts, buffer.episode_weights)

    def write(rows: jax.Array, new: jax.Array) -> jax.Array:
        place = (buffer.cursor,) + (0,) * (rows.ndim - 1)
        return jax.lax.dynamic_update_slice(rows, new.astype(rows.dtype), place)

    written = replace(
        buffer,
        obs=write(buffer.obs, pack(obs, len(buffer.obs_shape))),
        actions=write(buffer.actions, actions),
        starts=write(buffer.starts, starts),
        labels=write(buffer.labels, labels),
        weights=write(buffer.weights, weights),
        episode_weights=weights[-1],
        cursor=(buffer.cursor + length) % buffer.num_rows,
    )
    filled = jnp.minimum(buffer.filled + length, buffer.num_rows)
    usable = usable_rows(written.starts, written.cursor, filled, config.buffer_episodes)
    return replace(written, filled=filled, usable=usable)


def usable_rows(
    starts: jax.Array,
    cursor: jax.Array,
    filled: jax.Array,
    max_episodes: jax.Array | int,
) -> jax.Array:
    """How many of the newest rows hold at most `max_episodes` first steps; at least 1.

    Args:
        starts: `[L, B]`, true on first steps.
        cursor: the next row to write, which is the oldest of a full buffer.
        filled: how many rows hold data.
        max_episodes: the limit.
    """
    num_rows = starts.shape[0]
    newest_first = jnp.roll(starts.sum(axis=1), -cursor)[::-1]
    within = jnp.cumsum(newest_first) <= max_episodes
    written = jnp.arange(num_rows) < filled
    return jnp.maximum((within & written).sum(), 1).astype(jnp.int32)


def bootstrap_weights(
    key: jax.Array, starts: jax.Array, going_on: jax.Array
) -> jax.Array:
    """How often each step's episode is in each member's bootstrap sample.

    Drawing N of N episodes with replacement takes each one Binomial(N, 1/N) times; in the
    limit this is Poisson(1), independently. So one draw per episode and member is enough,
    when the episode begins (Oza and Russell's online bootstrap). A single network has
    nothing to differ from: it learns from every episode once.

    Args:
        key: random key.
        starts: `[T, B]`.
        going_on: `[B, M]`, weights of the episodes that began before row 0.

    Returns:
        `[T, B, M]`, constant within each episode.
    """
    if going_on.shape[-1] == 1:
        return jnp.ones((*starts.shape, 1), jnp.uint8)
    uniform = jax.random.uniform(key, (*starts.shape, going_on.shape[-1]))
    draws = (uniform[..., None] > _POISSON_CDF).sum(axis=-1, dtype=jnp.uint8)
    rows = jax.lax.broadcasted_iota(jnp.int32, starts.shape, 0)
    began = jax.lax.cummax(jnp.where(starts, rows, -1), axis=0)[..., None]
    of_episode = jnp.take_along_axis(draws, jnp.maximum(began, 0), axis=0)
    return jnp.where(began < 0, going_on, of_episode)


def pack(obs: jax.Array, num_axes: int) -> jax.Array:
    """Boolean observations `[..., *shape]` as bits `[..., bytes]`; others unchanged."""
    if obs.dtype != bool:
        return obs
    lead = obs.shape[: obs.ndim - num_axes]
    return jnp.packbits(obs.reshape(*lead, -1), axis=-1)


def unpack(stored: jax.Array, shape: tuple[int, ...], dtype: str) -> jax.Array:
    """Undo `pack`; bits come back as numbers 0 and 1 of type uint8."""
    if dtype != "bool":
        return stored
    lead = stored.shape[:-1]
    bits = jnp.unpackbits(stored, axis=-1, count=int(np.prod(shape)))
    return bits.reshape(*lead, *shape)
