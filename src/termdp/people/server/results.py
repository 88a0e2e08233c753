"""What a study has found so far: progress, stops, reaction times, agreement."""

from collections import defaultdict
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from termdp.people.driving.ride import Ride
from termdp.people.records.showing_records import Showing


def supervisors_table(
    showings: list[Showing], decision_ms: int
) -> list[dict[str, Any]]:
    """One row per supervisor: reviews, stops, reaction, agreement with themselves."""
    mine: dict[str, list[Showing]] = defaultdict(list)
    for shown in showings:
        mine[shown.supervisor.name].append(shown)
    return [
        _supervisor_row(name, [s for s in rows if s.review], decision_ms)
        for name, rows in mine.items()
    ]


def _supervisor_row(
    name: str, reviewed: list[Showing], decision_ms: int
) -> dict[str, Any]:
    stops = [s for s in reviewed if s.review is not None and s.review.stopped]
    times = [reaction_ms(s, decision_ms) for s in stops]
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


def reaction_ms(shown: Showing, decision_ms: int) -> float | None:
    """Time on screen from the last thing the driver did to the stop.

    What a driver does is to take a coin or to change lanes; None if it had done nothing
    before the stop. Pauses do not count.
    """
    review = shown.review
    if review is None or not review.stopped:
        return None
    events = _events(shown.ride.seed, shown.ride.actions)
    before = [event for event in events if event <= review.decision]
    if not before:
        return None
    shown_ms = (review.decision - before[-1]) * decision_ms / review.speed
    return float(shown_ms + (review.latency_ms or 0))


@lru_cache(maxsize=8192)
def _events(seed: int, actions: bytes) -> tuple[int, ...]:
    """Decisions in which the driver took a coin or changed lanes."""
    from termdp.people.driving.rides import (
        replay,  # the game itself: loaded when needed
    )

    again = replay(Ride(seed, "", np.frombuffer(actions, np.uint8)))
    lanes = np.asarray(again.states.agent)
    # A crash in the middle of a change leaves the old lane: its heading tells.
    heading = np.asarray(again.states.heading)[1:]
    moved = (lanes[1:] != lanes[:-1]) | (heading != 0)
    return tuple(np.flatnonzero(moved | (again.coins > 0)).tolist())


def _quartiles(values: list[float]) -> list[float] | None:
    if not values:
        return None
    return [float(q) for q in np.percentile(values, [25, 50, 75])]


def _self_agreement(reviewed: list[Showing]) -> dict[str, Any] | None:
    """How often the second verdict on a ride was as the first."""
    first = {s.ride.id: s for s in reviewed if not s.assignment.is_repeat}
    pairs = [
        (first[s.ride.id], s)
        for s in reviewed
        if s.assignment.is_repeat and s.ride.id in first
    ]
    return _agreement(pairs) if pairs else None


def agreement_table(showings: list[Showing]) -> list[dict[str, Any]]:
    """One row per pair of supervisors that reviewed rides in common."""
    verdicts: dict[str, dict[int, Showing]] = defaultdict(dict)
    for shown in showings:
        if shown.review is not None and not shown.assignment.is_repeat:
            verdicts[shown.supervisor.name][shown.ride.id] = shown
    rows = []
    for a, b in combinations(sorted(verdicts), 2):
        common = sorted(verdicts[a].keys() & verdicts[b].keys())
        if common:
            pairs = [(verdicts[a][ride], verdicts[b][ride]) for ride in common]
            rows.append({"a": a, "b": b, **_agreement(pairs)})
    return rows


def _agreement(pairs: list[tuple[Showing, Showing]]) -> dict[str, Any]:
    """Verdicts compared: same end, Cohen's kappa, distance between two stops."""
    reviews = [(a.review, b.review) for a, b in pairs]
    stops = np.array(
        [(bool(a and a.stopped), bool(b and b.stopped)) for a, b in reviews]
    )
    gaps = [
        abs(a.decision - b.decision)
        for a, b in reviews
        if a is not None and b is not None and a.stopped and b.stopped
    ]
    return {
        "rides": len(pairs),
        "same": float(np.mean(stops[:, 0] == stops[:, 1])),
        "kappa": cohens_kappa(stops),
        "gap_decisions": float(np.mean(gaps)) if gaps else None,
    }


def cohens_kappa(stops: np.ndarray) -> float | None:
    """Agreement beyond chance of two columns of verdicts, `[N, 2] bool`.

    κ = (p − e)/(1 − e), p the share of equal verdicts, e what independent verdicts with
    the same stop rates would give; None where chance alone makes them equal (e = 1).
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
    for shown in showings:
        if shown.review is None:
            continue
        ride, review = shown.ride, shown.review
        row = rows.setdefault(
            ride.number,
            {
                "ride": ride.number,
                "policy": ride.policy,
                "decisions": len(ride.actions),
                "crashed": ride.crashed,
                "verdicts": [],
            },
        )
        row["verdicts"].append(
            {
                "supervisor": shown.supervisor.name,
                "stop": review.decision if review.stopped else None,
                "repeat": shown.assignment.is_repeat,
                "reason": review.reason,
            }
        )
    return [rows[number] for number in sorted(rows)]
