"""What the reviews say about each round's driver, with 95% intervals."""

import itertools
import math
from collections import defaultdict
from functools import lru_cache
from typing import Any

import numpy as np

from termdp.intervals import mean_interval
from termdp.people.driving.ride import Ride
from termdp.people.records.tables import Round, Showing

# The normal distribution's quantile for 95% intervals.
_Z = 1.96


def rounds_table(
    rounds: list[Round], showings: list[Showing], env: str
) -> list[dict[str, Any]]:
    """One row per round: what the reviews of its driver's rides say.

    Live rides on the Ride page count too, because the same drivers drive them.
    """
    by_driver: dict[str, list[Showing]] = defaultdict(list)
    for showing in showings:
        if showing.review is not None:
            by_driver[showing.ride.driver].append(showing)
    return [_row(row, by_driver[row.driver], env) for row in rounds]


def _row(row: Round, showings: list[Showing], env: str) -> dict[str, Any]:
    reviews = [s.review for s in showings if s.review is not None]
    stops = sum(review.stopped for review in reviews)
    first = [s for s in showings if not s.is_repeat]
    return {
        "round": row.number,
        "driver": row.driver,
        "learned_from": {"reviews": row.reviews, "stops": row.stops},
        "created_ms": row.created_ms,
        "reviews": len(reviews),
        "stop_rate": share_interval(stops, len(reviews)),
        "length": _mean([review.step + 1 for review in reviews]),
        "return": _mean([_return(showing, env) for showing in showings]),
        "agreement": share_interval(*_same_answers(first)),
    }


def share_interval(count: int, total: int) -> dict[str, float] | None:
    """A share with Wilson's interval, which stays between 0 and 1; None without data."""
    if not total:
        return None
    share, spread = count / total, _Z**2 / total
    middle = (share + spread / 2) / (1 + spread)
    half = _Z * math.sqrt(share * (1 - share) / total + spread / (4 * total))
    half /= 1 + spread
    return {
        "value": share,
        "low": max(0.0, middle - half),
        "high": min(1.0, middle + half),
    }


def _mean(values: list[float]) -> dict[str, float | None] | None:
    """A mean with its interval; a single number has no interval."""
    if not values:
        return None
    if len(values) == 1:
        return {"value": float(values[0]), "low": None, "high": None}
    found = mean_interval(values)
    return {"value": found.value, "low": found.low, "high": found.high}


def _return(showing: Showing, env: str) -> float:
    """What the driver earned until the review ended the ride."""
    assert showing.review is not None
    rewards = _rewards(env, showing.ride.seed, showing.ride.actions)
    return float(rewards[: showing.review.step + 1].sum(dtype=np.float64))


@lru_cache(maxsize=8192)
def _rewards(env: str, seed: int, actions: bytes) -> np.ndarray:
    # The game itself: imported only when needed.
    from termdp.people.driving.rides import replay

    return replay(Ride(seed, "", np.frombuffer(actions, np.uint8), env)).rewards


def _same_answers(showings: list[Showing]) -> tuple[int, int]:
    """Pairs of reviews of the same ride: how many agree, and how many there are."""
    answers: dict[int, list[bool]] = defaultdict(list)
    for showing in showings:
        assert showing.review is not None
        answers[showing.ride.id].append(showing.review.stopped)
    pairs = [
        a == b
        for given in answers.values()
        for a, b in itertools.combinations(given, 2)
    ]
    return sum(pairs), len(pairs)
