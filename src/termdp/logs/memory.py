"""An observer's memory: a window of steps, or a leak.

Sums over the memory are taken feature by feature, before any cost is known: if costs are
linear in features, the accumulated cost is linear in these sums.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from termdp.costs.buffer import NO_LABEL, NOT_STOPPED, STOPPED
from termdp.logs.sessions import GAME_OVER, Block

# Steps that a leak has faded to this share are ignored.
_FORGOTTEN = 1e-9


@dataclass(frozen=True, order=True)
class Memory:
    """How far an observer looks back, and how late it reacts.

    Attributes:
        window: steps that count; None with a leak.
        leak: share of the accumulated cost that is kept from step to step.
        delay: steps between a decision and the stop.
    """

    window: int | None = None
    leak: float | None = None
    delay: int = 0

    @property
    def span(self) -> float:
        """Steps that count, or 1 / (1 − leak), which is comparable."""
        if self.window is not None:
            return float(self.window)
        assert self.leak is not None
        return 1.0 / max(1.0 - self.leak, 1e-9)

    def __str__(self) -> str:
        what = f"window {self.window}" if self.leak is None else f"leak {self.leak:.4g}"
        return f"{what}, delay {self.delay}" if self.delay else what

    def to_plain(self) -> dict[str, Any]:
        """The memory as plain data."""
        return {"window": self.window, "leak": self.leak, "delay": self.delay}


def remembered(values: np.ndarray, begin: np.ndarray, memory: Memory) -> np.ndarray:
    """Sums over the memory that ends at each row, the row itself included.

    Args:
        values: `[n]` or `[n, d]`, sessions end to end.
        begin: where each row's session begins, `[n]`.
        memory: window or leak.

    Examples:
        >>> import numpy as np
        >>> remembered(np.ones(4), np.array([0, 0, 0, 3]), Memory(window=2))
        array([1., 2., 2., 1.])
    """
    values = np.asarray(values, np.float64)
    place = np.arange(len(values))
    if memory.leak is not None:
        return _leaky(values, place - begin, memory.leak)
    assert memory.window is not None
    if memory.window == 1:
        return values
    sums = np.zeros((len(values) + 1, *values.shape[1:]))
    np.cumsum(values, axis=0, out=sums[1:])
    return sums[1:] - sums[np.maximum(begin, place - memory.window + 1)]


def _leaky(values: np.ndarray, age: np.ndarray, leak: float) -> np.ndarray:
    """Sums with weights 1, leak, leak², …; each pass doubles their reach."""
    found, reach = values.copy(), 1
    longest = int(age.max(initial=0))
    while reach <= longest and leak**reach > _FORGOTTEN:
        here = np.flatnonzero(age >= reach)
        added = leak**reach * found[here - reach]
        found[here] += added
        reach *= 2
    return found


def step_labels(first: np.ndarray, ends: np.ndarray, delay: int = 0) -> np.ndarray:
    """STOPPED, NOT_STOPPED or NO_LABEL for each row of some sessions, `[n] int8`.

    People react late: a stop at t with a delay of d was decided at t − d. The d steps
    after the decision have no label, because nothing new is decided meanwhile. If a
    session ends in another way, a stop may already have been decided, so its last d steps
    have no label either. The step on which a session ended without a stop could not have
    been a stop. A stop within the first d steps is labelled at the first one.

    Args:
        first: where each session begins, and the end, `[s + 1]`.
        ends: STOPPED, GAME_OVER or CENSORED, `[s]`.
        delay: d.
    """
    lengths = np.diff(first)
    before_end = np.repeat(first[1:], lengths) - 1 - np.arange(first[-1])
    free = np.repeat(np.where(ends == GAME_OVER, delay + 1, delay), lengths)
    labels = np.where(before_end >= free, NOT_STOPPED, NO_LABEL).astype(np.int8)
    stops = np.flatnonzero(ends == STOPPED)
    labels[np.maximum(first[stops + 1] - 1 - delay, first[stops])] = STOPPED
    return labels


def block_labels(block: Block, delay: int = 0) -> np.ndarray:
    """The labels of a block's rows."""
    return step_labels(block.first, block.ends, delay)
