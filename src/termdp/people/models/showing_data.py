"""Showings as arrays: their labels, and packed into rows for fitting.

Labels follow the paper's classifier, with one addition: people press late. A supervisor
with a reaction delay of d steps who stops at t made up their mind at t − d.

- The positive label stands at t − d. The d steps after it have no label, because
  nothing new is decided while the hand moves.
- When a showing ends for another reason, a stop may already have been decided. So its
  last d steps have no label either.

With d = 0 these are the plain labels: the stopped step is positive, the steps before it
are negative, and the step on which the game ended has no label.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import jax
import numpy as np

from termdp.costs.buffer import NO_LABEL, STOPPED
from termdp.envs.backseat_road import Road
from termdp.envs.passenger_cost import percepts
from termdp.logs.memory import step_labels
from termdp.logs.sessions import CENSORED, GAME_OVER

if TYPE_CHECKING:
    from termdp.people.models.senses import Senses

ENDS = ("stopped", "game_over", "truncated")
PADDING = -1
_CHUNK = 4096


@dataclasses.dataclass(frozen=True, eq=False)
class ShowingData:
    """One showing of one ride to one supervisor, up to where it ended.

    Attributes:
        ride: which ride; showings of the same ride share it.
        supervisor: who watched.
        observations: `[t, *shape]`.
        actions: `[t]`.
        end: `stopped`, `game_over` or `truncated`.
    """

    ride: str
    supervisor: str
    observations: np.ndarray
    actions: np.ndarray
    end: str

    def __post_init__(self) -> None:
        """Refuse what cannot be a showing."""
        if self.end not in ENDS:
            raise ValueError(f"expected an end ({', '.join(ENDS)}), got {self.end!r}")
        if len(self.actions) == 0 or len(self.observations) != len(self.actions):
            raise ValueError(
                "expected as many observations as actions and at least one, got "
                f"{len(self.observations)} and {len(self.actions)}"
            )

    def __len__(self) -> int:
        """Steps until it ended."""
        return len(self.actions)


def showing_labels(length: int, end: str, delay: int) -> np.ndarray:
    """STOPPED, NOT_STOPPED or NO_LABEL for each step of a showing, `[length]`.

    A stop within the first `delay` steps is labelled at the first one.
    """
    kinds = {"stopped": STOPPED, "game_over": GAME_OVER, "truncated": CENSORED}
    return step_labels(np.array([0, length]), np.array([kinds[end]]), delay)


@dataclasses.dataclass(frozen=True, eq=False)
class Packed:
    """Showings laid end to end in rows of equal length; time first.

    Attributes:
        noticed: `[T, N, K]`, what there was to notice (`senses`).
        acted: `[T, N] int32`, actions; zeros where `noticed` includes them.
        starts: `[T, N] bool`, first steps of showings, and of unused rests of rows.
        owner: `[T, N] int32`, index of the showing, −1 where there is none.
        lengths: `[R]`, steps of each showing.
        ends: how each of the R showings ended.
    """

    noticed: np.ndarray
    acted: np.ndarray
    starts: np.ndarray
    owner: np.ndarray
    lengths: np.ndarray
    ends: tuple[str, ...]

    def labels(self, delay: int) -> np.ndarray:
        """`[T, N] int8`; see `showing_labels`."""
        labels = np.full(self.owner.shape, NO_LABEL, np.int8)
        place = self.places()
        for index, (length, end) in enumerate(
            zip(self.lengths, self.ends, strict=True)
        ):
            row, first = place[index]
            labels[first : first + length, row] = showing_labels(length, end, delay)
        return labels

    def places(self) -> np.ndarray:
        """Row and first position of each showing, `[R, 2]`."""
        first, row = np.nonzero(self.starts & (self.owner != PADDING))
        place = np.zeros((len(self.lengths), 2), int)
        place[self.owner[first, row]] = np.stack([row, first], axis=1)
        return place

    @property
    def num_showings(self) -> int:
        """R."""
        return len(self.lengths)


def pack_showings(
    senses: "Senses", showings: Sequence[ShowingData], min_length: int = 256
) -> Packed:
    """Lay showings into rows, the longest first, each in the first row with room."""
    lengths = np.array([len(showing) for showing in showings])
    size = max(min_length, int(lengths.max()))
    used: list[int] = []
    place = []
    for index in np.argsort(-lengths, kind="stable"):
        fits = (
            row for row, filled in enumerate(used) if filled + lengths[index] <= size
        )
        row = next(fits, len(used))
        if row == len(used):
            used.append(0)
        place.append((int(index), row, used[row]))
        used[row] += int(lengths[index])
    shape = (size, len(used))
    actions = np.concatenate([showing.actions for showing in showings])
    found = senses.notice(
        np.concatenate([showing.observations for showing in showings]), actions
    )
    done = senses.act(actions)
    begin = np.concatenate([[0], np.cumsum(lengths)])
    noticed = np.zeros((*shape, found.shape[1]), found.dtype)
    acted = np.zeros(shape, np.int32)
    starts = np.zeros(shape, bool)
    owner = np.full(shape, PADDING, np.int32)
    for index, row, first in place:
        end = first + lengths[index]
        noticed[first:end, row] = found[begin[index] : begin[index + 1]]
        acted[first:end, row] = done[begin[index] : begin[index + 1]]
        owner[first:end, row] = index
        starts[first, row] = True
        if end < size:
            starts[end, row] = True
    ends = tuple(showing.end for showing in showings)
    return Packed(noticed, acted, starts, owner, lengths, ends)


def noticed_in(road: Road, observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Percepts of each step of a ride on a road, `[t, passenger_cost.SIZE] uint8`."""
    found = [
        np.asarray(_look(road, seen, action), np.uint8)[:size]
        for seen, action, size in chunks(observations, actions)
    ]
    return np.concatenate(found)


def chunks(
    observations: np.ndarray, actions: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Steps in chunks of one size, and how many of each count: one program serves all."""
    for first in range(0, len(actions), _CHUNK):
        part = slice(first, first + _CHUNK)
        size = len(actions[part])
        seen, action = (
            np.pad(x[part], [(0, _CHUNK - size)] + [(0, 0)] * (x.ndim - 1))
            for x in (observations, actions)
        )
        yield seen, action, size


@partial(jax.jit, static_argnames=("road",))
def _look(road: Road, observations: jax.Array, actions: jax.Array) -> jax.Array:
    """`percepts` of many steps; compiled once for all callers."""
    return jax.vmap(partial(percepts, road))(observations, actions)


def folds(showings: Sequence[ShowingData], count: int, seed: int) -> np.ndarray:
    """Which fold each showing is held out in, `[R]`; all showings of a ride together."""
    names = sorted({showing.ride for showing in showings})
    order = np.random.default_rng(seed).permutation(len(names))
    fold_of = {names[index]: place % count for place, index in enumerate(order)}
    return np.array([fold_of[showing.ride] for showing in showings])
