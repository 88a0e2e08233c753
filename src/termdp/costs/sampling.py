"""Segments of experience for one gradient step; every step is equally likely.

A segment is `segment_length` consecutive rows of one stream. Its first window − 1 rows
are history only; a later label is used if the whole window before it is there. Rows
follow each other in a circle inside the usable part of the buffer, so each row is in
equally many segments, at equally many places: no step is drawn more often than another.

Windows never reach across the seam from the oldest row to the newest. A step shortly
after the seam is used only if its episode began after the seam.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
from flax import struct

from termdp.costs.buffer import NO_LABEL, STOPPED, Buffer
from termdp.costs.config import CostConfig


@struct.dataclass
class Segments:
    """The members' data for one gradient step; time is the second axis.

    Attributes:
        obs: `[M, T, S, *shape]`, or `[M, T, S, bytes]` as the buffer packs them.
        actions: `[M, T, S]` or `[M, T, S, size]`.
        starts: `[M, T, S]`, true where a window must not reach further back.
        labels: `[M, T, S]`, 1 where the observer stopped, else 0.
        weights: `[M, T, S]`, bootstrap weight; 0 where a step is not used.
        expected_steps: the constant that the loss is divided by, a scalar.
        offset: added to the logits, if stops are drawn more often than they happen.
    """

    obs: jax.Array
    actions: jax.Array
    starts: jax.Array
    labels: jax.Array
    weights: jax.Array
    expected_steps: jax.Array
    offset: jax.Array | float = 0.0


def sample(
    key: jax.Array,
    buffer: Buffer,
    window: jax.Array,
    config: CostConfig,
    pieces: jax.Array | None = None,
) -> Segments:
    """Draw `segments_per_step` segments for each member.

    Args:
        key: random key.
        buffer: the steps to draw from; must not be empty.
        window: w, traced or not.
        config: settings.
        pieces: `count_pieces`, computed once for many draws from one buffer; None
            computes it here.
    """
    if config.draw == "segments":
        first, env = draw_segments(key, buffer, config)
        length = config.segment_length - window + 1
        expected = jnp.asarray(config.segments_per_step * length, jnp.float32)
        segments = gather(buffer, first, env, window, config)
        return replace(segments, expected_steps=jnp.maximum(expected, 1.0))
    if pieces is None:
        pieces = count_pieces(buffer, window, config)
    first, env, expected = draw_trajectories(key, buffer, pieces, window, config)
    segments = gather(buffer, first, env, window, config)
    # Only the trajectory that was drawn, not what came after it.
    row = jax.lax.broadcasted_iota(jnp.int32, segments.starts.shape, 1)
    is_over = jax.lax.cummax(
        (segments.starts & (row >= window)).astype(jnp.int8), axis=1
    )
    weights = jnp.where(is_over == 1, 0.0, segments.weights)
    return replace(segments, weights=weights, expected_steps=expected)


def draw_segments(
    key: jax.Array, buffer: Buffer, config: CostConfig
) -> tuple[jax.Array, jax.Array]:
    """First row (0 = oldest usable) and stream of each segment, uniform, `[M, S]`."""
    key_row, key_env = jax.random.split(key)
    shape = (config.members, config.segments_per_step)
    first = jax.random.randint(key_row, shape, 0, buffer.usable)
    env = jax.random.randint(key_env, shape, 0, buffer.num_envs)
    return first, env


def count_pieces(buffer: Buffer, window: jax.Array, config: CostConfig) -> jax.Array:
    """How many pieces of trajectories begin up to each step, `[L·B]`, oldest row first.

    `draw_trajectories` draws pieces: P = segment_length − window + 1 steps of a
    trajectory, or the rest of it. Every step is in exactly one.
    """
    piece = jnp.maximum(config.segment_length - window + 1, 1)
    starts = jnp.roll(buffer.starts, buffer.usable - buffer.cursor, axis=0)
    row = jax.lax.broadcasted_iota(jnp.int32, starts.shape, 0)
    # An episode whose beginning was dropped begins with the oldest row.
    began = jax.lax.cummax(jnp.where(starts, row, 0), axis=0)
    begins_piece = ((row - began) % piece == 0) & (row < buffer.usable)
    return jnp.cumsum(begins_piece.reshape(-1).astype(jnp.int32))


def draw_trajectories(
    key: jax.Array,
    buffer: Buffer,
    pieces: jax.Array,
    window: jax.Array,
    config: CostConfig,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Draw trajectories as the paper does: one per member and segment.

    Appendix D, arXiv:2205.15376: "we then sampled a (different) rollout from the buffer
    for each of the cost networks". Shapes are fixed here, so a trajectory that is too
    long for a segment counts as several pieces. These are drawn like whole
    trajectories, with the window − 1 steps before as history. All pieces are equally
    likely, so no step is drawn more often than another.

    Returns:
        First row (0 = oldest usable) and stream of each segment, `[M, S]`, and the
        expected number of steps in a draw of S pieces.
    """
    total = pieces[-1]
    shape = (config.members, config.segments_per_step)
    drawn = jax.random.randint(key, shape, 0, total)
    place = jnp.searchsorted(pieces, drawn, side="right")
    first = (place // buffer.num_envs - window + 1) % buffer.usable
    steps = buffer.usable * buffer.num_envs * config.segments_per_step
    return first, place % buffer.num_envs, steps / total


def gather(
    buffer: Buffer,
    first: jax.Array,
    env: jax.Array,
    window: jax.Array,
    config: CostConfig,
) -> Segments:
    """The rows of segments, and which of their steps can be used.

    Args:
        buffer: the steps to take them from.
        first: first row of each segment, `[M, S]`, counted from the oldest usable row.
        env: its stream, `[M, S]`.
        window: w, traced or not.
        config: settings.
    """
    offset = jnp.arange(config.segment_length, dtype=jnp.int32)[:, None]
    age = (first[:, None] + offset) % buffer.usable  # [M, T, S], 0 = oldest usable
    row = (buffer.cursor - buffer.usable + age) % buffer.num_rows
    env = jnp.broadcast_to(env[:, None], row.shape)
    member = jnp.arange(row.shape[0])[:, None, None]
    stored, actions, starts, labels, weights = (
        buffer.obs[row, env],
        buffer.actions[row, env],
        buffer.starts[row, env],
        buffer.labels[row, env],
        buffer.weights[row, env, member],
    )
    is_used = (labels != NO_LABEL) & has_history(age == 0, starts, window)
    return Segments(
        obs=stored,
        actions=actions,
        starts=starts | (age == 0),
        labels=(labels == STOPPED).astype(jnp.float32),
        weights=jnp.where(is_used, weights, 0).astype(jnp.float32),
        expected_steps=jnp.ones(()),
        offset=jnp.zeros(()),
    )


def has_history(
    is_oldest: jax.Array, starts: jax.Array, window: jax.Array
) -> jax.Array:
    """Whether a row is past the segment's history and has its whole window in it.

    Args:
        is_oldest: `[M, T, S]`, true on the row after the seam.
        starts: `[M, T, S]`, true on the first step of an episode.
        window: w.
    """
    row = jax.lax.broadcasted_iota(jnp.int32, starts.shape, 1)
    seam = jax.lax.cummax(jnp.where(is_oldest, row, -1), axis=1)
    began = jax.lax.cummax(jnp.where(starts, row, -1), axis=1)
    crosses_seam = (seam >= 0) & (row - seam < window - 1) & (began < seam)
    return (row >= window - 1) & ~crosses_seam
