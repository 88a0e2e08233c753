"""Choose the memory by the likelihood of held-out sessions.

Windows (or leaks) are compared on a grid that grows by √2, then more finely around the
best one. A bootstrap over sessions gives the interval: which memories might be best if
other sessions had been logged.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from termdp.logs.held_out import HeldOut
from termdp.logs.memory import Memory
from termdp.observer import MOST_WINDOW

GRID = (1, 2, 3, 5, 7, 10, 14, 20, 28, 40, 56, 80, 113, 160, 226, 320)
KINDS = ("window", "leak", "best")
_REFINEMENTS = 3


class Learner(Protocol):
    """Fits models with and without some sessions."""

    def held_out(self, memories: Sequence[Memory]) -> np.ndarray:
        """Log-likelihood of each session by a model that has not seen it, `[W, S]`."""


@dataclass(frozen=True, eq=False)
class Choice:
    """Memories that were compared, and the chosen one.

    Attributes:
        memory: the chosen one.
        memories: all of them, `[W]`.
        held_out: their likelihoods; cases are the memories' spans.
        is_given: whether only one memory was compared, usually the one the user gave.
        seed: of the bootstrap.
    """

    memory: Memory
    memories: tuple[Memory, ...]
    held_out: HeldOut
    is_given: bool
    seed: int

    def interval(self) -> tuple[float, float] | None:
        """95% interval of the best span; None if there was nothing to compare."""
        if self.is_given:
            return None
        _, best = self.of_kind().bootstrap(self.seed)
        low, high = np.quantile(best, [0.025, 0.975], method="nearest")
        return float(low), float(high)

    def of_kind(self) -> HeldOut:
        """The curve over spans of the chosen kind and delay."""
        kept = [
            index
            for index, one in enumerate(self.memories)
            if (one.leak is None) == (self.memory.leak is None)
            and one.delay == self.memory.delay
        ]
        kept.sort(key=lambda index: self.memories[index].span)
        return HeldOut(
            tuple(self.memories[index].span for index in kept),
            self.held_out.log_likelihoods[kept],
        )


def check_windows(window: int | None, windows: Sequence[int] | None) -> None:
    """Refuse impossible windows, and both arguments at once."""
    if window is not None and windows:
        raise ValueError("expected either window or windows, got both")
    for one in [*(windows or ()), *([] if window is None else [window])]:
        if not isinstance(one, int | np.integer) or not 1 <= one <= MOST_WINDOW:
            raise ValueError(
                f"expected windows from 1 to {MOST_WINDOW} steps, got {one!r}"
            )


def check_delays(delays: Sequence[int]) -> None:
    """Refuse impossible delays."""
    for one in delays:
        if not isinstance(one, int | np.integer) or not 0 <= one <= 1000:
            raise ValueError(f"expected delays from 0 to 1000 steps, got {one!r}")
    if not delays:
        raise ValueError("expected at least one delay, got none")


def grid_for(lengths: np.ndarray) -> tuple[int, ...]:
    """Windows to compare: those of `GRID` up to the 90% quantile of the lengths."""
    longest = max(float(np.quantile(lengths, 0.9)), 2.0)
    return tuple(window for window in GRID if window <= longest)


def choose(
    learner: Learner,
    windows: Sequence[int],
    kind: str,
    delays: Sequence[int],
    refine: bool,
    seed: int,
    on_progress: Callable[[str], None] = lambda what: None,
) -> Choice:
    """Compare memories and take the best.

    Args:
        learner: fits the models.
        windows: to compare; for a leak, 1 / (1 − leak).
        kind: `window`, `leak`, or `best` for the better of the two.
        delays: to compare.
        refine: whether to compare more finely around the best.
        seed: of the bootstrap.
        on_progress: called with a few words about the present step.
    """
    memories = _memories(windows, kind, delays)
    on_progress(f"comparing {len(memories)} memories on held-out sessions")
    found = dict(zip(memories, learner.held_out(memories), strict=True))
    for _ in range(_REFINEMENTS if refine else 0):
        best = max(found, key=lambda memory: float(found[memory].mean()))
        finer = _between(best, list(found))
        if not finer:
            break
        on_progress(f"comparing more finely around {best}")
        found |= dict(zip(finer, learner.held_out(finer), strict=True))
    best = max(found, key=lambda memory: float(found[memory].mean()))
    order = tuple(found)
    held_out = HeldOut(
        tuple(memory.span for memory in order), np.stack([found[m] for m in order])
    )
    return Choice(best, order, held_out, len(memories) == 1, seed)


def _memories(windows: Sequence[int], kind: str, delays: Sequence[int]) -> list[Memory]:
    found = []
    for delay in dict.fromkeys(delays):
        for window in sorted(set(windows)):
            if kind in ("window", "best"):
                found.append(Memory(window=int(window), delay=int(delay)))
            if kind in ("leak", "best") and window > 1:
                found.append(Memory(leak=1.0 - 1.0 / window, delay=int(delay)))
    if not found:
        raise ValueError(
            "expected windows of 2 steps or more for a leak, got only windows of 1"
        )
    return found


def _between(best: Memory, known: Sequence[Memory]) -> list[Memory]:
    """Memories halfway between the best one and its neighbours."""
    spans = sorted(
        one.span
        for one in known
        if (one.leak is None) == (best.leak is None) and one.delay == best.delay
    )
    place = spans.index(best.span)
    finer = []
    for other in (spans[max(place - 1, 0)], spans[min(place + 1, len(spans) - 1)]):
        middle = round(float(np.sqrt(other * best.span)))
        if middle not in map(round, spans):
            finer.append(
                replace(best, window=middle)
                if best.leak is None
                else replace(best, leak=1.0 - 1.0 / middle)
            )
    return list(dict.fromkeys(finer))
