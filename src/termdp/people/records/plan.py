"""In which order a supervisor sees rides, and which ones twice."""

from collections.abc import Sequence

import numpy as np

# Rides are handed out in groups: everybody meets the same rides early on, each in an
# order of their own, so that supervisors can be compared long before all is watched.
GROUP = 50
_MIN_GAP = 3


def showings(
    rides: Sequence[int], repeat_share: float, rng: np.random.Generator
) -> list[tuple[int, bool]]:
    """One group in random order, some rides twice.

    Args:
        rides: their ids.
        repeat_share: share of them to be shown twice, rounded. If it is above 0 and
            there are several rides, at least one is shown twice.
        rng: of this supervisor.

    Returns:
        Ride ids, each with whether it has been shown before. Between two showings of a
        ride there are at least three others, or as many as there are.
    """
    order = [int(rides[i]) for i in rng.permutation(len(rides))]
    count = _num_repeats(len(order), repeat_share)
    shown = [(ride, False) for ride in order]
    chosen = sorted(rng.choice(len(order), size=count, replace=False).tolist())
    for ride in (order[i] for i in chosen):
        first = shown.index((ride, False))
        earliest = min(first + 1 + _MIN_GAP, len(shown))
        place = int(rng.integers(earliest, len(shown) + 1))
        shown.insert(place, (ride, True))
    return shown


def num_showings(num_rides: int, repeat_share: float) -> int:
    """How many showings so many rides come to, repeats included, group by group."""
    groups = [GROUP] * (num_rides // GROUP) + [num_rides % GROUP]
    return num_rides + sum(_num_repeats(size, repeat_share) for size in groups)


def _num_repeats(num_rides: int, repeat_share: float) -> int:
    if repeat_share <= 0 or num_rides <= 1:
        return 0
    return max(round(repeat_share * num_rides), 1)
