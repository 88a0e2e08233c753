"""What is shown to whom, and their answers, in a transaction of the caller.

The server commits many answers at once (`server.writer`), so each function here works in
a transaction that somebody else ends.
"""

import dataclasses
import time
from collections.abc import Sequence
from typing import cast

import numpy as np
from sqlalchemy import Table, bindparam, func, insert, literal, select
from sqlalchemy.orm import Session

from termdp.people.driving.ride import Ride
from termdp.people.records import plan
from termdp.people.records.database import ConflictError, NotFoundError
from termdp.people.records.tables import (
    Drive,
    Mistake,
    Review,
    Showing,
    StoredRide,
    Study,
    Supervisor,
)

# The pages show rides at up to twice the normal speed.
FASTEST = 2.0
# What clocks and connections may be wrong by.
TOLERANCE_MS = 1000
# The page offers it for three seconds; the rest allows for lost connections.
TAKE_BACK_MS = 60_000


@dataclasses.dataclass(frozen=True)
class ReviewInput:
    """What a supervisor sends about a showing; see `tables.Review`."""

    client_id: str
    stopped: bool
    step: int = 0
    latency_ms: int | None = None
    reason: str | None = None
    speed: float = 1.0
    replays: int = 0
    client_ms: int | None = None


def record_next(session: Session, supervisor_id: int) -> Showing | None:
    """The showing that comes next, marked as shown; None when all are reviewed."""
    found = first_open(session, supervisor_id)
    if found is None and plan_group(session, supervisor_row(session, supervisor_id)):
        found = first_open(session, supervisor_id)
    if found is not None:
        found.shown_ms = found.shown_ms or now_ms()
    return found


def record_shown(session: Session, supervisor_id: int, showing_id: int) -> Showing:
    """A showing of this supervisor, marked as shown."""
    found = own_showing(session, supervisor_id, showing_id)
    found.shown_ms = found.shown_ms or now_ms()
    return found


def record_live(session: Session, supervisor_id: int, ride: Ride, crashed: bool) -> int:
    """Add a ride that was made for one supervisor; returns the id of its showing.

    Most requests of a full server are this one and `record_review`: both are two
    statements.
    """
    connection = session.connection()
    now = now_ms()
    values = {
        "new_supervisor": supervisor_id,
        "new_seed": ride.seed,
        "new_driver": ride.driver,
        "new_actions": ride.actions.tobytes(),
        "new_crashed": bool(crashed),
        "new_ms": now,
    }
    ride_id = connection.scalar(_ADD_LIVE_RIDE, values)
    if ride_id is None:
        raise NotFoundError("expected a participant of a study, got somebody who left")
    made = {"new_supervisor": supervisor_id, "new_ride": ride_id, "new_ms": now}
    return connection.scalars(_ADD_LIVE_SHOWING, made).one()


def record_review(
    session: Session, supervisor_id: int, showing_id: int, given: ReviewInput
) -> Review:
    """Record a stop, or that there was none.

    The same input may come again (its answer may have been lost): it is recorded once.
    A different one for the same showing is a `ConflictError`.
    """
    connection = session.connection()
    sought = {"showing": showing_id, "supervisor": supervisor_id}
    found = connection.execute(_TO_REVIEW, sought).one_or_none()
    if found is None:
        raise NotFoundError(f"expected one of your rides, got {showing_id}")
    if found.client_id is not None:
        if found.client_id == given.client_id:
            return Review(stopped=found.stopped, step=found.step)
        said = f"stopped at step {found.step}" if found.stopped else "is over"
        raise ConflictError(f"this ride {said} already: the first answer counts")
    last = found.steps - 1
    step = given.step if given.stopped else last
    if given.stopped:
        _check_moment(step, last, found.crashed)
    arrived = now_ms()
    if found.kind == "person":  # simulated passengers watch no screen
        _check_was_seen(step, found.step_ms, given.speed, found.shown_ms, arrived)
    values = {
        "showing_id": showing_id,
        "client_id": given.client_id,
        "stopped": given.stopped,
        "step": step,
        "latency_ms": given.latency_ms if given.stopped else None,
        "reason": given.reason or None,
        "speed": given.speed,
        "replays": given.replays,
        "skew_ms": None if given.client_ms is None else given.client_ms - arrived,
        "created_ms": arrived,
    }
    connection.execute(_ADD_REVIEW, values)
    return Review(**values)


def record_mistake(
    session: Session, supervisor_id: int, showing_id: int, stop_id: str
) -> Mistake:
    """Take a stop back: the ride goes on and may be reviewed again.

    Args:
        session: of the caller.
        supervisor_id: who stopped it.
        showing_id: what.
        stop_id: the stop's `client_id`; a repeated request changes nothing more.
    """
    review = own_showing(session, supervisor_id, showing_id).review
    query = select(Mistake).where(
        Mistake.showing_id == showing_id, Mistake.client_id == stop_id
    )
    known = session.scalars(query).one_or_none()
    if known is not None:
        return known
    if review is None or not review.stopped or review.client_id != stop_id:
        raise ConflictError(
            "expected a stop to take back, got a ride without this stop"
        )
    now = now_ms()
    if now - review.created_ms > TAKE_BACK_MS:
        raise ConflictError(
            f"expected a stop of the last {TAKE_BACK_MS // 1000} s to take back, got one "
            "that is older: it counts"
        )
    mistake = Mistake(
        showing_id=showing_id,
        client_id=stop_id,
        step=review.step,
        latency_ms=review.latency_ms,
        stopped_ms=review.created_ms,
        created_ms=now,
    )
    session.delete(review)
    session.add(mistake)
    session.flush()
    return mistake


def record_reason(
    session: Session, supervisor_id: int, showing_id: int, reason: str
) -> None:
    """Add the reason to a review."""
    review = own_showing(session, supervisor_id, showing_id).review
    if review is None:
        raise ConflictError("expected a reviewed ride, got one without a review")
    review.reason = reason or None


def record_drive(session: Session, supervisor_id: int, drive: Drive) -> Drive:
    """Keep a supervisor's own drive; a repeated request keeps it once."""
    query = select(Drive).where(
        Drive.supervisor_id == supervisor_id, Drive.client_id == drive.client_id
    )
    known = session.scalars(query).one_or_none()
    if known is not None:
        return known
    supervisor_row(session, supervisor_id)
    drive.supervisor_id, drive.created_ms = supervisor_id, now_ms()
    session.add(drive)
    session.flush()
    return drive


def _check_moment(step: int, last: int, crashed: bool) -> None:
    """Refuse a stop after the ride's own end, or in the step in which it crashes."""
    if step > last:
        raise ConflictError(
            f"this ride is over after step {last}: a stop at {step} comes too late"
        )
    if step == last and crashed:
        raise ConflictError(
            f"this ride ends by a crash at step {last}: a stop there comes too late"
        )


def _check_was_seen(
    step: int, step_ms: int, speed: float, shown_ms: int | None, now: int
) -> None:
    """Refuse a review of a step that cannot have been on screen yet.

    The time counts from when the ride was fetched, at the page's fastest speed, because
    the speed may have been changed during the ride.
    """
    if shown_ms is None:
        raise ValueError(
            "expected a review of a ride that was shown, got one of a ride that was not "
            "fetched yet"
        )
    needed = step * step_ms / max(speed, FASTEST) - TOLERANCE_MS
    if now - shown_ms < needed:
        raise ValueError(
            f"expected a review of what was seen: step {step} cannot have been on "
            f"screen {(now - shown_ms) / 1000:.1f} s after the ride was fetched"
        )


# Statements of the two most frequent requests, made once


_RIDES = cast(Table, StoredRide.__table__)
_SHOWINGS = cast(Table, Showing.__table__)
_REVIEWS = cast(Table, Review.__table__)
_LAST_NUMBER = (
    select(func.max(_RIDES.c.number))
    .where(_RIDES.c.study_id == Supervisor.study_id)
    .scalar_subquery()
)
_LIVE_RIDE = {
    _RIDES.c.study_id: Supervisor.study_id,
    _RIDES.c.number: func.coalesce(_LAST_NUMBER + 1, 0),
    _RIDES.c.seed: bindparam("new_seed", type_=_RIDES.c.seed.type),
    _RIDES.c.driver: bindparam("new_driver", type_=_RIDES.c.driver.type),
    _RIDES.c.actions: bindparam("new_actions", type_=_RIDES.c.actions.type),
    _RIDES.c.crashed: bindparam("new_crashed", type_=_RIDES.c.crashed.type),
    _RIDES.c.live: literal(True),
    _RIDES.c.created_ms: bindparam("new_ms", type_=_RIDES.c.created_ms.type),
}
_ADD_LIVE_RIDE = (
    insert(_RIDES)
    .from_select(
        list(_LIVE_RIDE),
        select(*_LIVE_RIDE.values()).where(
            Supervisor.id == bindparam("new_supervisor")
        ),
    )
    .returning(_RIDES.c.id)
)
_NEXT_POSITION = (
    select(func.coalesce(func.max(_SHOWINGS.c.position) + 1, 0))
    .where(_SHOWINGS.c.supervisor_id == bindparam("new_supervisor"))
    .scalar_subquery()
)
_ADD_LIVE_SHOWING = (
    insert(_SHOWINGS)
    .values(
        supervisor_id=bindparam("new_supervisor"),
        ride_id=bindparam("new_ride"),
        position=_NEXT_POSITION,
        is_repeat=False,
        shown_ms=bindparam("new_ms"),
    )
    .returning(_SHOWINGS.c.id)
)
_TO_REVIEW = (
    select(
        func.length(_RIDES.c.actions).label("steps"),
        _RIDES.c.crashed,
        _SHOWINGS.c.shown_ms,
        Supervisor.kind,
        Study.step_ms,
        _REVIEWS.c.client_id,
        _REVIEWS.c.stopped,
        _REVIEWS.c.step,
    )
    .select_from(_SHOWINGS)
    .join(_RIDES, _RIDES.c.id == _SHOWINGS.c.ride_id)
    .join(Supervisor, Supervisor.id == _SHOWINGS.c.supervisor_id)
    .join(Study, Study.id == _RIDES.c.study_id)
    .outerjoin(_REVIEWS, _REVIEWS.c.showing_id == _SHOWINGS.c.id)
    .where(
        _SHOWINGS.c.id == bindparam("showing"),
        _SHOWINGS.c.supervisor_id == bindparam("supervisor"),
    )
)
_ADD_REVIEW = insert(_REVIEWS)


# Queries


def supervisor_row(session: Session, supervisor_id: int) -> Supervisor:
    """A supervisor; somebody who has withdrawn meanwhile is refused."""
    query = select(Supervisor).where(Supervisor.id == supervisor_id)
    found = session.scalars(query).one_or_none()
    if found is None:
        raise NotFoundError("expected a participant of a study, got somebody who left")
    return found


def insert_rides(
    session: Session,
    study_id: int,
    rides: Sequence[Ride],
    crashed: Sequence[bool],
) -> list[StoredRide]:
    """Add recorded rides, numbered on from those that are there."""
    study = session.get_one(Study, study_id)
    for ride in rides:
        if ride.env != study.env:
            raise ValueError(
                f"expected rides of {study.env}, the environment of study {study.name}, "
                f"got one of {ride.env}"
            )
    last = session.scalar(
        select(func.max(StoredRide.number)).where(StoredRide.study_id == study_id)
    )
    first = 0 if last is None else last + 1
    rows = [
        StoredRide(
            study_id=study_id,
            number=first + index,
            seed=ride.seed,
            driver=ride.driver,
            actions=ride.actions.tobytes(),
            crashed=bool(crash),
            live=False,
            created_ms=now_ms(),
        )
        for index, (ride, crash) in enumerate(zip(rides, crashed, strict=True))
    ]
    session.add_all(rows)
    session.flush()
    return rows


def own_showing(session: Session, supervisor_id: int, showing_id: int) -> Showing:
    """A showing of this supervisor; another one's is refused as if there was none."""
    query = select(Showing).where(
        Showing.id == showing_id, Showing.supervisor_id == supervisor_id
    )
    found = session.scalars(query).one_or_none()
    if found is None:
        raise NotFoundError(f"expected one of your rides, got {showing_id}")
    return found


def first_open(session: Session, supervisor_id: int) -> Showing | None:
    """The first showing without a review, those of the Ride page aside."""
    query = (
        select(Showing)
        .join(Showing.ride)
        .outerjoin(Showing.review)
        .where(
            Showing.supervisor_id == supervisor_id,
            ~StoredRide.live,
            Review.id.is_(None),
        )
        .order_by(Showing.position)
        .limit(1)
    )
    return session.scalars(query).one_or_none()


def next_position(session: Session, supervisor_id: int) -> int:
    """The first free place in a supervisor's order."""
    query = select(func.max(Showing.position))
    last = session.scalar(query.where(Showing.supervisor_id == supervisor_id))
    return 0 if last is None else last + 1


def unplanned(session: Session, supervisor: Supervisor) -> list[int]:
    """Ids of recorded rides not yet planned for this supervisor, ordered by number."""
    given = select(Showing.ride_id).where(Showing.supervisor_id == supervisor.id)
    query = select(StoredRide.id).where(
        StoredRide.study_id == supervisor.study_id,
        ~StoredRide.live,
        StoredRide.id.not_in(given),
    )
    return list(session.scalars(query.order_by(StoredRide.number)))


def plan_group(session: Session, supervisor: Supervisor) -> bool:
    """Plan the supervisor's next group of rides; False if there are no more."""
    rides = unplanned(session, supervisor)[: plan.GROUP]
    if not rides:
        return False
    study = session.get_one(Study, supervisor.study_id)
    first = next_position(session, supervisor.id)
    rng = np.random.default_rng([study.seed, supervisor.id, first])
    planned = plan.showings(rides, study.repeat_share, rng)
    for position, (ride_id, is_repeat) in enumerate(planned, start=first):
        session.add(
            Showing(
                supervisor_id=supervisor.id,
                ride_id=ride_id,
                position=position,
                is_repeat=is_repeat,
            )
        )
    session.flush()
    return True


def now_ms() -> int:
    """The server's clock: milliseconds since 1970."""
    return time.time_ns() // 1_000_000
