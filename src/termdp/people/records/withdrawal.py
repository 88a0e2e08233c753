"""A person's own data: handed out to them, or removed from the store.

Earlier exports, fits and backups are separate files; nothing here can change them.
"""

import dataclasses
import secrets
from collections import defaultdict
from pathlib import Path
from typing import Any

from sqlalchemy import delete, exists, select, update
from sqlalchemy.orm import Session

from termdp.files import draft_of, write_json
from termdp.people.records import audit, tokens
from termdp.people.records.database import NotFoundError
from termdp.people.records.showings import supervisor_row
from termdp.people.records.study_store import WITHDRAWN, StudyStore, revoke
from termdp.people.records.tables import (
    Drive,
    Mistake,
    Review,
    Showing,
    StoredRide,
    Study,
    Supervisor,
)

PARTICIPANT = "participant"
_DRIVE = ("seed", "score", "coins", "overtaken", "crashed", "created_ms")
_SHOWING = ("position", "is_repeat", "shown_ms")
_REVIEW = (
    *("stopped", "step", "latency_ms", "reason", "speed", "replays", "skew_ms"),
    *("client_id", "created_ms"),
)
_MISTAKE = ("step", "latency_ms", "stopped_ms", "created_ms", "client_id")
_SUPERVISOR = (
    *("name", "kind", "consent_hash", "created_ms", "joined_ms"),
    *("invite_ms", "token_ms"),
)


@dataclasses.dataclass(frozen=True)
class Forgotten:
    """What a withdrawal took out of the store.

    Attributes:
        reviews: reviews that are gone, or kept without the person.
        drives: their own drives, gone.
        kept_as: under which name the reviews are kept; None if they are gone.
    """

    reviews: int
    drives: int
    kept_as: str | None


def find_person(session: Session, study: str, person: str) -> Supervisor:
    """A supervisor by name."""
    query = (
        select(Supervisor)
        .join(Study, Supervisor.study_id == Study.id)
        .where(Study.name == study, Supervisor.name == person)
    )
    found = session.scalars(query).one_or_none()
    if found is None:
        raise NotFoundError(f"expected a supervisor of {study}, got {person!r}")
    return found


def forget(
    store: StudyStore, study: str, person: str, keep_stops: bool = False
) -> Forgotten:
    """Remove a person from a study, for good.

    Args:
        store: the store.
        study: the study's name.
        person: the supervisor's name.
        keep_stops: keep their reviews, with the day but without name, reasons, times of
            day and the browser's ids.
    """
    store.study(study)
    with store.database.writing() as session:
        found = find_person(session, study, person)
        gone = record_forget(session, found.id, keep_stops, store.who)
    store.database.scrub()
    return gone


def record_forget(
    session: Session, supervisor_id: int, keep_stops: bool, who: str
) -> Forgotten:
    """The same in a transaction of the caller, who scrubs the database afterwards."""
    person = supervisor_row(session, supervisor_id)
    study = session.get_one(Study, person.study_id)
    mine = select(Showing.id).where(Showing.supervisor_id == person.id)
    # Locked: a stop that arrives now is either here already or will be refused.
    session.execute(mine.with_for_update())
    drives = session.execute(delete(Drive).where(Drive.supervisor_id == person.id))
    reviewed = list(session.scalars(select(Review).where(Review.showing_id.in_(mine))))
    session.execute(delete(Mistake).where(Mistake.showing_id.in_(mine)))
    audit.forget_name(session, study.name, person.name)
    kept_as = _new_name(session, study.id) if keep_stops else None
    if kept_as is not None:
        _make_nameless(person, reviewed, kept_as)
        session.flush()
        has_review = exists().where(Review.showing_id == Showing.id)
        session.execute(
            update(Showing).where(Showing.id.in_(mine)).values(shown_ms=None)
        )
        session.execute(delete(Showing).where(Showing.id.in_(mine), ~has_review))
    else:
        session.execute(delete(Review).where(Review.showing_id.in_(mine)))
        session.execute(delete(Showing).where(Showing.supervisor_id == person.id))
        session.execute(delete(Supervisor).where(Supervisor.id == person.id))
    # Rides that were made for this person alone.
    is_shown = exists().where(Showing.ride_id == StoredRide.id)
    session.execute(
        delete(StoredRide).where(
            StoredRide.study_id == study.id, StoredRide.live, ~is_shown
        )
    )
    what = "withdrew; stops kept without the name" if keep_stops else "withdrew"
    audit.note(session, who, what, study.name, audit.WITHDRAWN)
    session.flush()
    return Forgotten(len(reviewed), drives.rowcount, kept_as)  # type: ignore[attr-defined]


def _new_name(session: Session, study_id: int) -> str:
    query = select(Supervisor.name).where(
        Supervisor.study_id == study_id, Supervisor.name.startswith(WITHDRAWN)
    )
    taken = set(session.scalars(query))
    number = 1
    while f"{WITHDRAWN}{number}" in taken:
        number += 1
    return f"{WITHDRAWN}{number}"


def _make_nameless(person: Supervisor, reviews: list[Review], name: str) -> None:
    """Keep the stops, but nothing that could identify the person."""
    revoke(person)
    person.name = name
    person.consent_hash = None
    person.joined_ms = None
    person.created_ms = _day(person.created_ms)
    for review in reviews:
        review.reason = review.skew_ms = None
        review.client_id = secrets.token_urlsafe(16)
        review.created_ms = _day(review.created_ms)


def _day(moment: int) -> int:
    return moment - moment % tokens.MS_PER_DAY


# Handing out


def person_data(session: Session, supervisor_id: int) -> dict[str, Any]:
    """All that a store holds about a person, except their login's digests.

    Who drove a ride is left out: it is not about them, and they must not know it while
    they review.
    """
    person = supervisor_row(session, supervisor_id)
    study = session.get_one(Study, person.study_id)
    showings = session.scalars(
        select(Showing)
        .where(Showing.supervisor_id == person.id)
        .order_by(Showing.position)
    )
    drives = session.scalars(
        select(Drive).where(Drive.supervisor_id == person.id).order_by(Drive.id)
    )
    mistakes: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in session.scalars(
        select(Mistake)
        .join(Showing, Mistake.showing_id == Showing.id)
        .where(Showing.supervisor_id == person.id)
        .order_by(Mistake.id)
    ):
        mistakes[row.showing_id].append(_values(row, _MISTAKE))
    noted = audit.entries(session, study.name)
    return {
        "study": {"name": study.name, "title": study.title, "consent": study.consent},
        "person": _values(person, _SUPERVISOR),
        "showings": [
            {
                "ride": {
                    "number": row.ride.number,
                    "seed": row.ride.seed,
                    "actions": "".join(map(str, row.ride.actions)),
                    "crashed": row.ride.crashed,
                },
                **_values(row, _SHOWING),
                "review": row.review and _values(row.review, _REVIEW),
                "mistakes": mistakes[row.id],
            }
            for row in showings
        ],
        "drives": [
            {**_values(row, _DRIVE), "actions": "".join(map(str, row.actions))}
            for row in drives
        ],
        "audit": [row for row in noted if row["person"] == person.name],
    }


def write_person(store: StudyStore, study: str, person: str, out: Path) -> int:
    """Write a person's own data into a new folder; returns the number of reviews."""
    if out.exists():
        raise ValueError(f"expected a new folder, but {out} exists")
    if not out.parent.is_dir():
        raise ValueError(
            f"expected a folder for {out.name}, but {out.parent} is not a folder"
        )
    store.study(study)
    with store.database.writing() as session:
        found = find_person(session, study, person)
        data = person_data(session, found.id)
        audit.note(session, store.who, "handed out a person's data", study, person)
    with draft_of(out) as draft:
        draft.mkdir(mode=0o700)
        write_json(draft / "person.json", data)
        (draft / "consent.txt").write_text(data["study"]["consent"] + "\n")
        for path in draft.iterdir():
            path.chmod(0o600)
    return sum(row["review"] is not None for row in data["showings"])


def _values(row: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}
