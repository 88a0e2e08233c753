"""A study while it runs: who is riding, what was shown and stopped lately."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from termdp.people.records.tables import Review, Showing, StoredRide, Study, Supervisor

MINUTES = 10
LAST_STOPS = 20
_MINUTE_MS = 60_000


def activity(session: Session, study: Study, now: int) -> dict[str, Any]:
    """The last minutes of a study.

    Args:
        session: to read with.
        study: which one.
        now: the server's clock in milliseconds.

    Returns:
        `minutes`: how many; `riding`: who has fetched a ride and not answered, as long
        as they may still be watching it (twice its length and a minute); `rides_shown`
        and `stops`: one number per minute, oldest first; `last_stops`: newest first.
    """
    since = now - MINUTES * _MINUTE_MS
    shown = _shown_since(session, study.id, since)
    stopped = _stopped_since(session, study.id, since)
    return {
        "minutes": MINUTES,
        "riding": _riding(shown, study.step_ms, now),
        "rides_shown": _per_minute((row.shown_ms for row in shown), now),
        "stops": _per_minute((row.created_ms for row in stopped), now),
        "last_stops": [
            {
                "name": row.name,
                "ride": row.number,
                "at_s": round((row.step + 0.5) * study.step_ms / 1000, 1),
                "reason": row.reason,
                "ago_s": (now - row.created_ms) // 1000,
            }
            for row in stopped[:LAST_STOPS]
        ],
    }


def _shown_since(session: Session, study_id: int, since: int) -> Any:
    query = (
        select(
            Supervisor.name,
            Supervisor.kind,
            StoredRide.number,
            StoredRide.live,
            func.length(StoredRide.actions).label("steps"),
            Showing.shown_ms,
            Review.id.label("review"),
        )
        .select_from(Showing)
        .join(Showing.supervisor)
        .join(Showing.ride)
        .outerjoin(Showing.review)
        .where(Supervisor.study_id == study_id, Showing.shown_ms >= since)
        .order_by(Showing.shown_ms.desc())
    )
    return session.execute(query).all()


def _stopped_since(session: Session, study_id: int, since: int) -> Any:
    query = (
        select(
            Supervisor.name,
            StoredRide.number,
            Review.step,
            Review.reason,
            Review.created_ms,
        )
        .select_from(Showing)
        .join(Showing.supervisor)
        .join(Showing.ride)
        .join(Showing.review)
        .where(
            Supervisor.study_id == study_id,
            Review.stopped,
            Review.created_ms >= since,
        )
        .order_by(Review.created_ms.desc())
    )
    return session.execute(query).all()


def _riding(shown: Any, step_ms: int, now: int) -> list[dict[str, Any]]:
    """The newest ride of each, if it is open and not too old."""
    newest = {row.name: row for row in reversed(shown)}
    return [
        {
            "name": name,
            "kind": row.kind,
            "page": "Ride" if row.live else "Review",
            "ride": row.number,
            "for_s": (now - row.shown_ms) // 1000,
        }
        for name, row in sorted(newest.items())
        if row.review is None
        and now - row.shown_ms <= 2 * row.steps * step_ms + _MINUTE_MS
    ]


def _per_minute(times: Iterable[int], now: int) -> list[int]:
    counts = [0] * MINUTES
    for time in times:
        age = max(0, now - time) // _MINUTE_MS
        if age < MINUTES:
            counts[MINUTES - 1 - age] += 1
    return counts
