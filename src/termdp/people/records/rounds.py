"""A study's rounds in the store: which driver learned from how many stops."""

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from termdp.people.driving.ride import Ride
from termdp.people.records import audit
from termdp.people.records.database import ConflictError
from termdp.people.records.showings import insert_rides, now_ms
from termdp.people.records.study_store import StudyStore
from termdp.people.records.tables import Review, Round, Showing, StoredRide, Study


def rounds_of(store: StudyStore, study: str) -> list[Round]:
    """A study's rounds, in the order of their numbers."""
    study_id = store.study(study).id
    with store.database.reading() as session:
        return _rounds(session, study_id)


def newest_round(store: StudyStore, study_id: int) -> Round | None:
    """The last round in which a driver learned; None if there was none."""
    with store.database.reading() as session:
        query = select(Round).where(Round.study_id == study_id, Round.number > 0)
        return session.scalars(query.order_by(Round.number.desc()).limit(1)).first()


def stops_learned(store: StudyStore, newest: Round, supervisor_id: int) -> int:
    """How many stops of one supervisor a round's driver has learned from."""
    with store.database.reading() as session:
        query = (
            select(func.count())
            .select_from(Review)
            .join(Showing, Review.showing_id == Showing.id)
            .where(
                Showing.supervisor_id == supervisor_id,
                Review.stopped,
                Review.created_ms <= newest.created_ms,
            )
        )
        return session.scalar(query) or 0


def drivers_in_study(store: StudyStore, study: str) -> set[str]:
    """The names of all who drove rides of a study."""
    study_id = store.study(study).id
    with store.database.reading() as session:
        query = select(StoredRide.driver).where(StoredRide.study_id == study_id)
        return set(session.scalars(query.distinct()))


def count_reviews(store: StudyStore, study: str) -> int:
    """How many reviews a study has."""
    study_id = store.study(study).id
    with store.database.reading() as session:
        query = (
            select(func.count())
            .select_from(Review)
            .join(Showing, Review.showing_id == Showing.id)
            .join(StoredRide, Showing.ride_id == StoredRide.id)
            .where(StoredRide.study_id == study_id)
        )
        return session.scalar(query) or 0


def add_round(
    store: StudyStore,
    study: str,
    rounds: Sequence[Round],
    rides: Sequence[Ride],
    crashed: Sequence[bool],
    observer: Path,
) -> None:
    """New drivers, their rides and the study's new observer: all of it, or nothing.

    Args:
        store: the store.
        study: the study's name.
        rounds: the new round; if it is the first, round 0 comes before it.
        rides: what was driven for it.
        crashed: for each ride, whether its last step ends the game.
        observer: the file that the study's Results are drawn with from now on.
    """
    study_id = store.study(study).id
    with store.database.writing() as session:
        known = [row.number for row in _rounds(session, study_id)]
        expected = max(known, default=-1) + 1
        if [row.number for row in rounds] != list(
            range(expected, expected + len(rounds))
        ):
            raise ConflictError(
                f"expected round {expected} of {study}, got {rounds[0].number}: another "
                "program has added rounds meanwhile"
            )
        for row in rounds:
            row.study_id, row.created_ms = study_id, now_ms()
        session.add_all(rounds)
        found = session.get_one(Study, study_id)
        insert_rides(session, study_id, rides, crashed)
        found.observer = str(observer)
        last = rounds[-1]
        what = (
            f"round {last.number}: learned from {last.stops} stops, {len(rides)} rides"
        )
        audit.note(session, store.who, what, study)


def _rounds(session: Session, study_id: int) -> list[Round]:
    query = select(Round).where(Round.study_id == study_id)
    return list(session.scalars(query.order_by(Round.number)))
