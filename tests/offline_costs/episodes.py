"""A buffer from a list of whole episodes: recorded data, or tests with known costs."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from termdp.cost_network import ActionSpec
from termdp.costs.buffer import (
    NO_LABEL,
    NOT_STOPPED,
    STOPPED,
    Buffer,
    bootstrap_weights,
    empty,
    pack,
)
from termdp.costs.config import CostConfig

END_LABELS = {"stopped": STOPPED, "game_over": NO_LABEL, "truncated": NOT_STOPPED}


@dataclass(frozen=True, eq=False)
class Episode:
    """One whole episode of t steps.

    Attributes:
        obs: s_1 … s_t, `[t, *shape]`.
        actions: a_1 … a_t, `[t]` or `[t, size]`.
        end: `stopped`, `game_over` or `truncated`.
    """

    obs: np.ndarray
    actions: np.ndarray
    end: str

    def __post_init__(self) -> None:
        """Refuse episodes that make no sense."""
        if self.end not in END_LABELS:
            raise ValueError(
                f"expected end to be one of {tuple(END_LABELS)}, got {self.end!r}"
            )
        if not len(self.obs) or len(self.obs) != len(self.actions):
            raise ValueError(
                "expected as many observations as actions and at least one, got "
                f"{len(self.obs)} and {len(self.actions)}"
            )

    def __len__(self) -> int:
        """Number of steps."""
        return len(self.obs)


def from_episodes(
    key: jax.Array,
    episodes: Sequence[Episode],
    action_spec: ActionSpec,
    config: CostConfig,
    num_streams: int = 64,
    num_rows: int = 0,
) -> Buffer:
    """A full buffer that holds all the episodes, none of them cut.

    Episodes are laid one after the other into streams, each next one (the longest
    first) at the end of the shortest stream; the rest of each stream is
    unlabelled. The limits of the FIFO buffer do not apply: nothing is forgotten.

    Args:
        key: for the bootstrap weights.
        episodes: at least one.
        action_spec: what actions look like.
        config: settings.
        num_streams: B, at most; fewer are used if the episodes would not fill them.
        num_rows: L, at least; gives several buffers the same shape.
    """
    if not episodes:
        raise ValueError("expected at least one episode, got none")
    lengths = np.array([len(episode) for episode in episodes])
    room = max(int(lengths.max()), config.segment_length)
    num_streams = int(np.clip(lengths.sum() // room, 1, num_streams))
    env, row = lay_out(lengths, num_streams)
    usable = int((row + lengths).max())
    num_rows = max(num_rows, usable)

    buffer = empty(num_rows, num_streams, episodes[0].obs[0], action_spec, config)
    obs = np.zeros((num_rows, num_streams, *buffer.obs_shape), buffer.obs_dtype)
    actions = np.zeros(buffer.actions.shape, buffer.actions.dtype)
    labels = np.full(buffer.labels.shape, NO_LABEL, np.int8)
    starts = np.zeros(buffer.starts.shape, bool)
    for episode, e, r in zip(episodes, env, row, strict=True):
        end = r + len(episode)
        obs[r:end, e], actions[r:end, e] = episode.obs, episode.actions
        labels[r:end, e] = NOT_STOPPED
        labels[end - 1, e] = END_LABELS[episode.end]
        starts[r, e] = True
        if end < num_rows:
            starts[end, e] = True  # the next episode, or what is left over
    return replace(
        buffer,
        obs=pack(jnp.asarray(obs), len(buffer.obs_shape)),
        actions=jnp.asarray(actions),
        labels=jnp.asarray(labels),
        starts=jnp.asarray(starts),
        weights=bootstrap_weights(key, jnp.asarray(starts), buffer.episode_weights),
        cursor=jnp.asarray(usable % num_rows, jnp.int32),
        filled=jnp.asarray(usable, jnp.int32),
        usable=jnp.asarray(usable, jnp.int32),
    )


def lay_out(lengths: np.ndarray, num_streams: int) -> tuple[np.ndarray, np.ndarray]:
    """Stream and first row of each episode: longest first, to the shortest stream."""
    env = np.zeros(len(lengths), int)
    row = np.zeros(len(lengths), int)
    streams = [(0, stream) for stream in range(num_streams)]
    for index in np.argsort(-lengths, kind="stable"):
        used, stream = heapq.heappop(streams)
        env[index], row[index] = stream, used
        heapq.heappush(streams, (used + int(lengths[index]), stream))
    return env, row
