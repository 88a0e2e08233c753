"""Results of a study so far: progress, stops, reaction times, agreement."""

from collections import defaultdict
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from termdp.people.driving.ride import ROADS, Ride
from termdp.people.records.tables import Showing, Study


def supervisors_table(showings: list[Showing], study: Study) -> list[dict[str, Any]]:
    """One row per supervisor: reviews, stops, reaction time, agreement on repeats."""
    mine: dict[str, list[Showing]] = defaultdict(list)
    for showing in showings:
        mine[showing.supervisor.name].append(showing)
    return [
        _supervisor_row(name, [s for s in rows if s.review], study)
        for name, rows in mine.items()
    ]


def _supervisor_row(name: str, reviewed: list[Showing], study: Study) -> dict[str, Any]:
    stops = [s for s in reviewed if s.review is not None and s.review.stopped]
    # Only on a road do we know what the driver did that people may react to.
    watched = stops if study.env in ROADS else []
    times = [reaction_ms(s, study.step_ms) for s in watched]
    known = sorted(t for t in times if t is not None)
    return {
        "name": name,
        "kind": reviewed[0].supervisor.kind if reviewed else "person",
        "reviews": len(reviewed),
        "stops": len(stops),
        "stop_rate": len(stops) / len(reviewed) if reviewed else None,
        "reaction_ms": _quartiles(known),
        "repeats": _self_agreement(reviewed),
    }


def reaction_ms(showing: Showing, step_ms: int) -> float | None:
    """Time on screen from the last thing the driver did to the stop.

    That is the last coin or lane change; None if there was neither before the stop.
    Pauses do not count.
    """
    review = showing.review
    if review is None or not review.stopped:
        return None
    events = _events(showing.ride.seed, showing.ride.actions)
    before = [event for event in events if event <= review.step]
    if not before:
        return None
    shown_ms = (review.step - before[-1]) * step_ms / review.speed
    return float(shown_ms + (review.latency_ms or 0))


@lru_cache(maxsize=8192)
def _events(seed: int, actions: bytes) -> tuple[int, ...]:
    """Steps in which the driver took a coin or changed lanes."""
    # The game itself: imported only when needed.
    from termdp.people.driving.rides import replay

    again = replay(Ride(seed, "", np.frombuffer(actions, np.uint8)))
    lanes = np.asarray(again.states.agent)
    # A crash during a lane change leaves the car in its old lane, so look at the heading.
    heading = np.asarray(again.states.heading)[1:]
    moved = (lanes[1:] != lanes[:-1]) | (heading != 0)
    return tuple(np.flatnonzero(moved | (again.coins > 0)).tolist())


def _quartiles(values: list[float]) -> list[float] | None:
    if not values:
        return None
    return [float(q) for q in np.percentile(values, [25, 50, 75])]


def _self_agreement(reviewed: list[Showing]) -> dict[str, Any] | None:
    """How often the second review of a ride agreed with the first."""
    first = {s.ride.id: s for s in reviewed if not s.is_repeat}
    pairs = [
        (first[s.ride.id], s) for s in reviewed if s.is_repeat and s.ride.id in first
    ]
    return _agreement(pairs) if pairs else None


def agreement_table(showings: list[Showing]) -> list[dict[str, Any]]:
    """One row per pair of supervisors who reviewed some of the same rides."""
    reviewed: dict[str, dict[int, Showing]] = defaultdict(dict)
    for showing in showings:
        if showing.review is not None and not showing.is_repeat:
            reviewed[showing.supervisor.name][showing.ride.id] = showing
    rows = []
    for a, b in combinations(sorted(reviewed), 2):
        common = sorted(reviewed[a].keys() & reviewed[b].keys())
        if common:
            pairs = [(reviewed[a][ride], reviewed[b][ride]) for ride in common]
            rows.append({"a": a, "b": b, **_agreement(pairs)})
    return rows


def _agreement(pairs: list[tuple[Showing, Showing]]) -> dict[str, Any]:
    """Compare reviews: share of equal answers, Cohen's κ, distance between stops."""
    reviews = [(a.review, b.review) for a, b in pairs]
    stops = np.array(
        [(bool(a and a.stopped), bool(b and b.stopped)) for a, b in reviews]
    )
    gaps = [
        abs(a.step - b.step)
        for a, b in reviews
        if a is not None and b is not None and a.stopped and b.stopped
    ]
    return {
        "rides": len(pairs),
        "same": float(np.mean(stops[:, 0] == stops[:, 1])),
        "kappa": cohens_kappa(stops),
        "gap_steps": float(np.mean(gaps)) if gaps else None,
    }


def cohens_kappa(stops: np.ndarray) -> float | None:
    """Agreement beyond chance of two columns of stops, `[N, 2] bool`.

    κ = (p − e)/(1 − e), p the share of equal rows, e the share that independent columns
    with the same stop rates would give; None where chance alone makes them equal (e = 1).
    """
    rates = stops.mean(axis=0)
    by_chance = rates.prod() + (1 - rates).prod()
    if by_chance >= 1:
        return None
    same = np.mean(stops[:, 0] == stops[:, 1])
    return float((same - by_chance) / (1 - by_chance))


def rides_table(showings: list[Showing]) -> list[dict[str, Any]]:
    """One row per ride that somebody reviewed: who stopped it when."""
    rows: dict[int, dict[str, Any]] = {}
    for showing in showings:
        if showing.review is None:
            continue
        ride, review = showing.ride, showing.review
        row = rows.setdefault(
            ride.number,
            {
                "ride": ride.number,
                "driver": ride.driver,
                "steps": len(ride.actions),
                "crashed": ride.crashed,
                "reviews": [],
            },
        )
        row["reviews"].append(
            {
                "supervisor": showing.supervisor.name,
                "stop": review.step if review.stopped else None,
                "repeat": showing.is_repeat,
                "reason": review.reason,
            }
        )
    return [rows[number] for number in sorted(rows)]
