"""The store's second half: what was shown to whom, their stops, the high scores."""

import dataclasses
from typing import Any

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from termdp.people.driving.ride import Ride
from termdp.people.records import plan
from termdp.people.records.database import Database
from termdp.people.records.study_records import (
    ConflictError,
    NotFoundError,
    found_study,
    insert_rides,
    now_ms,
)
from termdp.people.records.tables import (
    Assignment,
    Drive,
    Review,
    StoredRide,
    Study,
    Supervisor,
)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What a supervisor says of a showing; see `tables.Review`."""

    client_id: str
    stopped: bool
    decision: int
    latency_ms: int | None = None
    reason: str | None = None
    speed: float = 1.0
    replays: int = 0
    client_ms: int | None = None


@dataclasses.dataclass(frozen=True)
class Showing:
    """A ride as somebody saw it, and what they said; review is None before that."""

    supervisor: Supervisor
    assignment: Assignment
    ride: StoredRide
    review: Review | None


class ShowingRecords:
    """Who saw what, and stopped when."""

    database: Database

    def next_showing(self, supervisor_id: int) -> tuple[Assignment, StoredRide] | None:
        """The showing that comes next; None when all rides have been reviewed."""
        with self.database.reading() as session:
            row = _first_open(session, supervisor_id)
        if row is not None:
            return row
        with self.database.writing() as session:
            # Wait for another tab of the same supervisor, which may plan at this moment.
            query = select(Supervisor).where(Supervisor.id == supervisor_id)
            supervisor = session.scalars(query.with_for_update()).one()
            row = _first_open(session, supervisor_id)
            if row is None and _plan_group(session, supervisor):
                row = _first_open(session, supervisor_id)
            return row

    def progress(self, supervisor_id: int) -> tuple[int, int]:
        """Rides reviewed and rides in the study, showings for review only."""
        with self.database.reading() as session:
            done = session.scalar(
                select(func.count())
                .select_from(Review)
                .join(Assignment, Review.assignment_id == Assignment.id)
                .join(StoredRide, Assignment.ride_id == StoredRide.id)
                .where(Assignment.supervisor_id == supervisor_id, ~StoredRide.live)
            )
            planned = session.scalar(
                select(func.count())
                .select_from(Assignment)
                .join(StoredRide, Assignment.ride_id == StoredRide.id)
                .where(Assignment.supervisor_id == supervisor_id, ~StoredRide.live)
            )
            supervisor = session.get_one(Supervisor, supervisor_id)
            unplanned = len(_unplanned(session, supervisor))
            return done or 0, (planned or 0) + unplanned

    def live_showing(
        self, supervisor_id: int, ride: Ride, crashed: bool
    ) -> tuple[Assignment, StoredRide]:
        """A ride made for this supervisor alone."""
        with self.database.writing() as session:
            return record_live(session, supervisor_id, ride, crashed)

    def showing(
        self, supervisor_id: int, assignment_id: int
    ) -> tuple[Assignment, StoredRide]:
        """A showing of this supervisor, marked as shown."""
        with self.database.reading() as session:
            assignment, ride = _own(session, supervisor_id, assignment_id)
        if assignment.shown_ms is None:
            with self.database.writing() as session:
                assignment, ride = _own(session, supervisor_id, assignment_id)
                assignment.shown_ms = assignment.shown_ms or now_ms()
        return assignment, ride

    def review(
        self, supervisor_id: int, assignment_id: int, verdict: Verdict
    ) -> Review:
        """Record a stop, or that there was none; on disk when this returns.

        The same verdict may come again (its answer may have been lost): it is recorded
        once. A different one for the same showing is a `ConflictError`.
        """
        with self.database.writing() as session:
            return record_review(session, supervisor_id, assignment_id, verdict)

    def set_reason(self, supervisor_id: int, assignment_id: int, reason: str) -> None:
        """Say afterwards why."""
        with self.database.writing() as session:
            _own(session, supervisor_id, assignment_id)
            review = _review_of(session, assignment_id)
            if review is None:
                raise ConflictError(
                    "expected a reviewed ride, got one without stop or end"
                )
            review.reason = reason or None

    def showings(self, study: str) -> list[Showing]:
        """All that was shown in a study, by supervisor and position."""
        with self.database.reading() as session:
            rows = session.execute(
                select(Supervisor, Assignment, StoredRide, Review)
                .join(Assignment, Assignment.supervisor_id == Supervisor.id)
                .join(StoredRide, Assignment.ride_id == StoredRide.id)
                .outerjoin(Review, Review.assignment_id == Assignment.id)
                .where(Supervisor.study_id == found_study(session, study).id)
                .order_by(Supervisor.id, Assignment.position)
            )
            return [Showing(*row) for row in rows]

    # High scores

    def add_drive(self, supervisor_id: int, drive: Drive) -> Drive:
        """Keep a person's own drive; a repeated request keeps it once."""
        with self.database.writing() as session:
            query = select(Drive).where(
                Drive.supervisor_id == supervisor_id, Drive.client_id == drive.client_id
            )
            known = session.scalars(query).one_or_none()
            if known is not None:
                return known
            drive.supervisor_id, drive.created_ms = supervisor_id, now_ms()
            session.add(drive)
            return drive

    def high_scores(self, study_id: int, count: int = 10) -> list[dict[str, Any]]:
        """The best drives of a study, the earlier of equals first."""
        with self.database.reading() as session:
            rows = session.execute(
                select(Drive, Supervisor.name)
                .join(Supervisor, Drive.supervisor_id == Supervisor.id)
                .where(Supervisor.study_id == study_id)
                .order_by(Drive.score.desc(), Drive.id)
                .limit(count)
            )
            return [
                {
                    "name": name,
                    "score": drive.score,
                    "coins": drive.coins,
                    "overtaken": drive.overtaken,
                    "decisions": len(drive.actions),
                    "crashed": drive.crashed,
                }
                for drive, name in rows
            ]


def record_live(
    session: Session, supervisor_id: int, ride: Ride, crashed: bool
) -> tuple[Assignment, StoredRide]:
    """Add a ride that was made for one supervisor, and its showing."""
    supervisor = session.get_one(Supervisor, supervisor_id)
    (row,) = insert_rides(session, supervisor.study_id, [ride], [crashed], live=True)
    assignment = Assignment(
        supervisor_id=supervisor_id,
        ride_id=row.id,
        position=_next_position(session, supervisor_id),
        is_repeat=False,
        shown_ms=now_ms(),
    )
    session.add(assignment)
    session.flush()
    return assignment, row


def record_review(
    session: Session, supervisor_id: int, assignment_id: int, verdict: Verdict
) -> Review:
    """Check a verdict against what is there and add it."""
    _, ride = _own(session, supervisor_id, assignment_id)
    known = _review_of(session, assignment_id)
    if known is not None:
        if known.client_id == verdict.client_id:
            return known
        said = f"stopped at decision {known.decision}" if known.stopped else "is over"
        raise ConflictError(f"this ride {said} already: the first answer counts")
    _check_moment(ride, verdict)
    arrived = now_ms()
    skew = None if verdict.client_ms is None else verdict.client_ms - arrived
    review = Review(
        assignment_id=assignment_id,
        client_id=verdict.client_id,
        stopped=verdict.stopped,
        decision=verdict.decision if verdict.stopped else len(ride.actions) - 1,
        latency_ms=verdict.latency_ms if verdict.stopped else None,
        reason=verdict.reason or None,
        speed=verdict.speed,
        replays=verdict.replays,
        skew_ms=skew,
        created_ms=arrived,
    )
    session.add(review)
    session.flush()
    return review


def _check_moment(ride: StoredRide, verdict: Verdict) -> None:
    """A stop must come before the ride's own end; a crash comes before a stop."""
    if not verdict.stopped:
        return
    last = len(ride.actions) - 1
    if verdict.decision > last:
        raise ConflictError(
            f"this ride is over after decision {last}: a stop at {verdict.decision} "
            "comes too late"
        )
    if verdict.decision == last and ride.crashed:
        raise ConflictError(
            f"this ride ends by a crash at decision {last}: a stop there comes too late"
        )


def _review_of(session: Session, assignment_id: int) -> Review | None:
    query = select(Review).where(Review.assignment_id == assignment_id)
    return session.scalars(query).one_or_none()


def _own(
    session: Session, supervisor_id: int, assignment_id: int
) -> tuple[Assignment, StoredRide]:
    row = session.execute(
        select(Assignment, StoredRide)
        .join(StoredRide, Assignment.ride_id == StoredRide.id)
        .where(
            Assignment.id == assignment_id, Assignment.supervisor_id == supervisor_id
        )
    ).one_or_none()
    if row is None:
        raise NotFoundError(f"expected one of your rides, got {assignment_id}")
    return row[0], row[1]


def _first_open(
    session: Session, supervisor_id: int
) -> tuple[Assignment, StoredRide] | None:
    """The first showing for review without a review."""
    row = session.execute(
        select(Assignment, StoredRide)
        .join(StoredRide, Assignment.ride_id == StoredRide.id)
        .outerjoin(Review, Review.assignment_id == Assignment.id)
        .where(
            Assignment.supervisor_id == supervisor_id,
            ~StoredRide.live,
            Review.id.is_(None),
        )
        .order_by(Assignment.position)
        .limit(1)
    ).one_or_none()
    return None if row is None else (row[0], row[1])


def _next_position(session: Session, supervisor_id: int) -> int:
    query = select(func.max(Assignment.position))
    last = session.scalar(query.where(Assignment.supervisor_id == supervisor_id))
    return 0 if last is None else last + 1


def _unplanned(session: Session, supervisor: Supervisor) -> list[int]:
    """Rides for review that this supervisor has not been given, by number."""
    given = select(Assignment.ride_id).where(Assignment.supervisor_id == supervisor.id)
    query = select(StoredRide.id).where(
        StoredRide.study_id == supervisor.study_id,
        ~StoredRide.live,
        StoredRide.id.not_in(given),
    )
    return list(session.scalars(query.order_by(StoredRide.number)))


def _plan_group(session: Session, supervisor: Supervisor) -> bool:
    """Give the supervisor the next group of rides; False if there are no more."""
    rides = _unplanned(session, supervisor)[: plan.GROUP]
    if not rides:
        return False
    study = session.get_one(Study, supervisor.study_id)
    position = _next_position(session, supervisor.id)
    rng = np.random.default_rng([study.seed, supervisor.id, position])
    for ride_id, is_repeat in plan.showings(rides, study.repeat_share, rng):
        session.add(
            Assignment(
                supervisor_id=supervisor.id,
                ride_id=ride_id,
                position=position,
                is_repeat=is_repeat,
            )
        )
        position += 1
    session.flush()
    return True
