"""What bothers a person: what had happened shortly before their stops.

People need not say why they stop. So we count how often each kind of discomfort came
within the last second before a stop, and how often within a second before any moment
watched. What comes before stops more often than before other moments is a likely
reason. It is no proof, because two things may go together.

Four of the simulated passengers mind one thing above all. In random samples of 40 of
their rides it was among the first two found in 91% to 100% of samples, and the very
first in 42% to 100%. So pages name two.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from termdp.envs.backseat_road import Road
from termdp.envs.passenger_cost import PERCEPT_NAMES
from termdp.people.models.showing_data import noticed_in

SECONDS_BEFORE = 1.0
# With fewer stops we say nothing.
MIN_STOPS = 3
# In words for people, each with the percepts that it is made of (any of them).
DISCOMFORTS: dict[str, tuple[str, ...]] = {
    "changing lanes for nothing": ("changes lane with a free road",),
    "swerving back and forth": (
        "undoes the change 1 ago",
        "undoes the change 2 ago",
    ),
    "hectic steering": ("third change within four decisions",),
    "fetching coins": ("takes a coin by changing",),
    "driving up close": ("car within 1 rows ahead where it goes",),
    "cutting in": ("car within 1 rows behind where it goes",),
}
_PLACES = [[PERCEPT_NAMES.index(p) for p in found] for found in DISCOMFORTS.values()]


@dataclasses.dataclass(frozen=True, eq=False)
class JudgedRide:
    """A ride that a person judged; T steps, D discomforts.

    Attributes:
        felt: `[T, D] bool`, which discomforts there are in each step (`felt_in`).
        watched: how many steps the person saw.
        stops: steps at which they stopped it; two if it was shown twice.
        others: steps at which others stopped it.
        costs: `[T]`, a fitted model's cost of each step; None without a model.
    """

    felt: np.ndarray
    watched: int
    stops: tuple[int, ...]
    others: tuple[int, ...]
    costs: np.ndarray | None = None


def felt_in(road: Road, observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Which of `DISCOMFORTS` there are in each step of a ride, `[T, D] bool`."""
    noticed = noticed_in(road, observations, actions).astype(bool)
    return np.stack([noticed[:, places].any(axis=1) for places in _PLACES], axis=1)


def bothers(rides: Sequence[JudgedRide], step_ms: float) -> list[dict[str, Any]]:
    """One row for each discomfort, what stands out most first.

    Returns:
        Rows of `words`; `mine` and `others`, the shares of stops that it came shortly
        before (None without stops); `usual`, the share of all moments watched;
        `stands_out`, whether `mine` is above `usual` by more than chance explains (two
        standard errors); `extra_cost`, the model's mean cost of steps with it minus
        that of the others (None without a model or such steps).
    """
    reach = max(1, round(1000 * SECONDS_BEFORE / step_ms))
    recent = [_recent(ride.felt, reach) for ride in rides]
    pairs = list(zip(rides, recent, strict=True))
    mine = _shares([felt[list(ride.stops)] for ride, felt in pairs])
    others = _shares([felt[list(ride.others)] for ride, felt in pairs])
    usual = _shares([felt[: ride.watched] for ride, felt in pairs])
    extra = _extra_costs(rides)
    stops = sum(len(ride.stops) for ride in rides)
    rows = [
        {
            "words": words,
            "mine": own,
            "others": theirs,
            "usual": base or 0.0,
            "stands_out": _stands_out(own, base or 0.0, stops),
            "extra_cost": cost,
        }
        for words, own, theirs, base, cost in zip(
            DISCOMFORTS, mine, others, usual, extra, strict=True
        )
    ]
    return [
        rows[place] for place in np.argsort(_differences(mine, usual), kind="stable")
    ]


def _stands_out(own: float | None, usual: float, stops: int) -> bool:
    if own is None or stops < MIN_STOPS:
        return False
    error = np.sqrt(usual * (1 - usual) / stops)
    return bool(own - usual > 2 * error)


def _differences(
    mine: Sequence[float | None], usual: Sequence[float | None]
) -> list[float]:
    """How much rarer each is before the person's stops than before any moment."""
    return [(base or 0.0) - (own or 0.0) for own, base in zip(mine, usual, strict=True)]


def _recent(felt: np.ndarray, reach: int) -> np.ndarray:
    """Whether there was one within so many steps, the present one included."""
    found = felt.copy()
    for age in range(1, min(reach, len(felt))):
        found[age:] |= felt[:-age]
    return found


def _shares(parts: Sequence[np.ndarray]) -> list[float | None]:
    """The share of rows with each discomfort; None where there are no rows."""
    rows = np.concatenate(parts)
    if not len(rows):
        return [None] * len(DISCOMFORTS)
    return [float(share) for share in rows.mean(axis=0)]


def _extra_costs(rides: Sequence[JudgedRide]) -> list[float | None]:
    known = [(ride.felt, ride.costs) for ride in rides if ride.costs is not None]
    if not known:
        return [None] * len(DISCOMFORTS)
    felt = np.concatenate([felt for felt, _ in known])
    costs = np.concatenate([costs for _, costs in known])
    return [
        float(costs[having].mean() - costs[~having].mean())
        if 0 < having.sum() < len(having)
        else None
        for having in felt.T
    ]
