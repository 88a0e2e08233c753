"""What is shown to whom and what they say about it, in a transaction of the caller.

The server commits many answers at once (`server.writer`), so each function here works in
a transaction that somebody else ends.
"""

import dataclasses
import time
from collections.abc import Sequence

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from termdp.people.driving.ride import Ride
from termdp.people.records import plan
from termdp.people.records.database import ConflictError, NotFoundError
from termdp.people.records.tables import (
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


def record_live(
    session: Session, supervisor_id: int, ride: Ride, crashed: bool
) -> Showing:
    """Add a ride that was made for one supervisor, and its showing."""
    supervisor = supervisor_row(session, supervisor_id)
    (row,) = insert_rides(session, supervisor.study_id, [ride], [crashed], live=True)
    showing = Showing(
        supervisor=supervisor,
        ride=row,
        position=next_position(session, supervisor_id),
        is_repeat=False,
        shown_ms=now_ms(),
    )
    session.add(showing)
    session.flush()
    return showing


def record_review(
    session: Session, supervisor_id: int, showing_id: int, given: ReviewInput
) -> Review:
    """Record a stop, or that there was none.

    The same input may come again (its answer may have been lost): it is recorded once.
    A different one for the same showing is a `ConflictError`.
    """
    showing = own_showing(session, supervisor_id, showing_id)
    known = showing.review
    if known is not None:
        if known.client_id == given.client_id:
            return known
        said = f"stopped at step {known.step}" if known.stopped else "is over"
        raise ConflictError(f"this ride {said} already: the first answer counts")
    last = len(showing.ride.actions) - 1
    step = given.step if given.stopped else last
    if given.stopped:
        _check_moment(step, last, showing.ride.crashed)
    arrived = now_ms()
    study = session.get_one(Study, showing.ride.study_id)
    if showing.supervisor.kind == "person":  # the simulated watch no screen
        _check_was_seen(step, study.step_ms, given.speed, showing.shown_ms, arrived)
    review = Review(
        client_id=given.client_id,
        stopped=given.stopped,
        step=step,
        latency_ms=given.latency_ms if given.stopped else None,
        reason=given.reason or None,
        speed=given.speed,
        replays=given.replays,
        skew_ms=None if given.client_ms is None else given.client_ms - arrived,
        created_ms=arrived,
    )
    showing.review = review
    session.flush()
    return review


def _check_moment(step: int, last: int, crashed: bool) -> None:
    """A stop must come before the ride's own end; a crash comes before a stop."""
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
    """Nobody has seen a step that was not on screen yet.

    Counted is from when the ride was fetched, at the fastest speed that the page has:
    the speed may have been changed on the way.
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


# Queries


def supervisor_row(
    session: Session, supervisor_id: int, lock: bool = False
) -> Supervisor:
    """A supervisor; somebody who has withdrawn meanwhile is refused."""
    query = select(Supervisor).where(Supervisor.id == supervisor_id)
    found = session.scalars(query.with_for_update() if lock else query).one_or_none()
    if found is None:
        raise NotFoundError("expected somebody in a study, got one who has withdrawn")
    return found


def insert_rides(
    session: Session,
    study_id: int,
    rides: Sequence[Ride],
    crashed: Sequence[bool],
    live: bool,
) -> list[StoredRide]:
    """Add rides, numbered on from those that are there."""
    # Two inserts at once must not give the same number: one waits for the other.
    session.execute(select(Study.id).where(Study.id == study_id).with_for_update())
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
            live=live,
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
    """Recorded rides that this supervisor has not been given, by number."""
    given = select(Showing.ride_id).where(Showing.supervisor_id == supervisor.id)
    query = select(StoredRide.id).where(
        StoredRide.study_id == supervisor.study_id,
        ~StoredRide.live,
        StoredRide.id.not_in(given),
    )
    return list(session.scalars(query.order_by(StoredRide.number)))


def plan_group(session: Session, supervisor: Supervisor) -> bool:
    """Give the supervisor the next group of rides; False if there are no more."""
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
    """The server's clock, as stored."""
    return time.time_ns() // 1_000_000
