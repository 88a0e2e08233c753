"""The study store: studies, rides, supervisors, what was shown to whom, and their stops.

Every method of `StudyStore` is one transaction. A method that writes returns when its
change is on disk. The functions `record_…` work in a transaction of the caller, so that
the server can commit many answers at once (`server.writer`).
"""

import dataclasses
import re
import time
from collections.abc import Sequence
from typing import Any, Self, cast

import numpy as np
from sqlalchemy import Table, bindparam, func, insert, literal, select
from sqlalchemy.orm import Session

from termdp.people.driving.ride import MAX_SEED, Ride
from termdp.people.records import plan, tokens
from termdp.people.records.database import BUSY_SECONDS, Database, UnreachableError
from termdp.people.records.tables import (
    NAME_LENGTH,
    TEXT_LENGTH,
    Drive,
    Review,
    Setting,
    Showing,
    StoredRide,
    Study,
    Supervisor,
)

__all__ = [
    "DEFAULT_CONSENT",
    "DEFAULT_DB",
    "ConflictError",
    "NotFoundError",
    "ReviewInput",
    "StudyStore",
    "UnreachableError",
    "check_name",
    "record_drive",
    "record_join",
    "record_live",
    "record_next",
    "record_reason",
    "record_review",
    "record_shown",
    "to_ride",
]

DEFAULT_DB = "people.db"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
KINDS = ("person", "simulated")
DEFAULT_CONSENT = (
    "You will watch short rides of a driving game and stop those that make you feel "
    "uncomfortable. The moments of your stops, the reasons you give and the times of "
    "your answers are stored under the name on your invitation and used for research "
    "on agents that learn from being stopped. You may close the page at any time; ask "
    "who invited you to delete what you have sent."
)


class NotFoundError(ValueError):
    """What was asked for is not in the store."""


class ConflictError(ValueError):
    """What was asked for contradicts what the store already holds."""


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


class StudyStore:
    """Studies and all that belongs to them, in a database.

    Example:
        >>> with StudyStore.open("people.db") as store:  # doctest: +SKIP
        ...     study = store.create_study("coins")
    """

    def __init__(self, database: Database):
        self.database = database

    @classmethod
    def open(cls, url: str = DEFAULT_DB, busy_seconds: float = BUSY_SECONDS) -> Self:
        """Open a store; a new one is created, an old one brought up to date.

        Args:
            url: a file for SQLite, or a URL (`postgresql+psycopg://user@host/name`).
            busy_seconds: how long to wait for another program's transaction.
        """
        return cls(Database.open(url, busy_seconds))

    def close(self) -> None:
        """Give back all connections."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Settings

    def setting(self, key: str) -> str | None:
        """A fact about the store itself."""
        with self.database.reading() as session:
            row = session.get(Setting, key)
            return None if row is None else row.value

    def set_setting(self, key: str, value: str) -> None:
        """Change it."""
        with self.database.writing() as session:
            session.merge(Setting(key=key, value=value))

    # Studies

    def create_study(
        self,
        name: str,
        title: str = "",
        consent: str = DEFAULT_CONSENT,
        step_ms: int = 200,
        repeat_share: float = 0.1,
        seed: int = 0,
    ) -> Study:
        """A new study without rides."""
        check_name(name, "study name")
        _check_text(title, "title")
        if not consent.strip():
            raise ValueError("expected a consent text, got an empty one")
        _check_text(consent, "consent text")
        _check_range("step_ms", step_ms, 20, 5000)
        _check_range("repeat_share", repeat_share, 0, 1)
        _check_range("seed", seed, 0, MAX_SEED)
        study = Study(
            name=name,
            title=title or name,
            consent=consent,
            step_ms=step_ms,
            repeat_share=float(repeat_share),
            seed=seed,
            created_ms=_now_ms(),
        )
        with self.database.writing() as session:
            if _study_or_none(session, name) is not None:
                raise ConflictError(f"expected a new study's name, but {name!r} exists")
            session.add(study)
        return study

    def study(self, name: str) -> Study:
        """A study by its name."""
        with self.database.reading() as session:
            return _study(session, name)

    def studies(self) -> list[dict[str, Any]]:
        """All studies with their counts, oldest first."""
        with self.database.reading() as session:
            return [
                {
                    "name": study.name,
                    "title": study.title,
                    "rides": _count(session, StoredRide, study.id),
                    "supervisors": _count(session, Supervisor, study.id),
                    **_count_reviews(session, study.id),
                    "created_ms": study.created_ms,
                    "observer": study.observer,
                }
                for study in session.scalars(select(Study).order_by(Study.id))
            ]

    def set_observer(self, study: str, path: str | None) -> None:
        """Remember where a study's fitted observer is."""
        with self.database.writing() as session:
            _study(session, study).observer = path

    # Rides

    def add_rides(
        self, study: str, rides: Sequence[Ride], crashed: Sequence[bool]
    ) -> list[int]:
        """Add recorded rides to a study; returns their ids.

        Args:
            study: its name.
            rides: the rides.
            crashed: for each, whether its last step ends the game.
        """
        with self.database.writing() as session:
            found = _study(session, study)
            rows = _insert_rides(session, found.id, rides, crashed)
            return [row.id for row in rows]

    def rides(self, study: str, live: bool | None = False) -> list[StoredRide]:
        """A study's rides by number; `live=None` for those of the Ride page too."""
        with self.database.reading() as session:
            query = select(StoredRide).where(
                StoredRide.study_id == _study(session, study).id
            )
            if live is not None:
                query = query.where(StoredRide.live == live)
            return list(session.scalars(query.order_by(StoredRide.number)))

    # Supervisors

    def invite(self, study: str, name: str, kind: str = "person") -> str:
        """A fresh invite token for a supervisor; an older one is void from then on."""
        check_name(name, "supervisor's name")
        if kind not in KINDS:
            raise ValueError(f"expected a kind ({', '.join(KINDS)}), got {kind!r}")
        token = tokens.make()
        with self.database.writing() as session:
            found = _study(session, study)
            supervisor = session.scalars(
                select(Supervisor).where(
                    Supervisor.study_id == found.id, Supervisor.name == name
                )
            ).one_or_none()
            if supervisor is None:
                supervisor = Supervisor(
                    study_id=found.id, name=name, kind=kind, created_ms=_now_ms()
                )
                session.add(supervisor)
            elif supervisor.kind != kind:
                raise ConflictError(
                    f"expected kind {supervisor.kind!r} for {name!r}, got {kind!r}: a "
                    "supervisor stays what it is"
                )
            supervisor.invite_hash = tokens.digest(token)
            supervisor.nonce_hash = None
        return token

    def invited(self, token: str) -> tuple[Study, Supervisor]:
        """Whom an invite is for."""
        with self.database.reading() as session:
            return _invited(session, token)

    def supervisor_of(self, token: str) -> tuple[Study, Supervisor] | None:
        """Who sends this token; None if nobody."""
        with self.database.reading() as session:
            return _supervisor(session, Supervisor.token_hash, token)

    def token_digests(self) -> list[str]:
        """Of the tokens of all who have joined."""
        with self.database.reading() as session:
            query = select(Supervisor.token_hash)
            found = session.scalars(query.where(Supervisor.token_hash.is_not(None)))
            return [digest for digest in found if digest is not None]

    def supervisors(self, study: str) -> list[Supervisor]:
        """A study's supervisors, in the order of their invitation."""
        with self.database.reading() as session:
            query = select(Supervisor).where(
                Supervisor.study_id == _study(session, study).id
            )
            return list(session.scalars(query.order_by(Supervisor.id)))

    # Showings

    def next_showing(self, supervisor_id: int) -> Showing | None:
        """The showing that comes next; None when all rides have been reviewed."""
        with self.database.writing() as session:
            return record_next(session, supervisor_id)

    def progress(self, supervisor_id: int) -> tuple[int, int]:
        """Rides reviewed and rides in the study, without those of the Ride page."""
        planned = (
            select(func.count())
            .select_from(Showing)
            .join(Showing.ride)
            .where(Showing.supervisor_id == supervisor_id, ~StoredRide.live)
        )
        with self.database.reading() as session:
            supervisor = session.get_one(Supervisor, supervisor_id)
            done = session.scalar(planned.join(Showing.review)) or 0
            total = session.scalar(planned) or 0
            return done, total + len(_unplanned(session, supervisor))

    def showings(self, study: str) -> list[Showing]:
        """All that was shown in a study, by supervisor and position."""
        with self.database.reading() as session:
            query = (
                select(Showing)
                .join(Showing.supervisor)
                .where(Supervisor.study_id == _study(session, study).id)
                .order_by(Showing.supervisor_id, Showing.position)
            )
            return list(session.scalars(query))

    # High scores

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
                    "steps": len(drive.actions),
                    "crashed": drive.crashed,
                }
                for drive, name in rows
            ]


# In a transaction of the caller


def record_join(session: Session, invite: str, nonce: str, consent_hash: str) -> str:
    """Use an invite: record the consent, give the token for all further requests.

    Args:
        session: the transaction.
        invite: the invite's token.
        nonce: made by the browser; the same one may join again if the answer was lost,
            another one may not.
        consent_hash: digest of the consent text that was agreed to.
    """
    token = tokens.make()
    study, supervisor = _invited(session, invite)
    if consent_hash != tokens.digest(study.consent):
        raise ConflictError(
            "expected the consent to the study's present text, got one to "
            "another text: read it again"
        )
    known = supervisor.nonce_hash
    if known is not None and not tokens.same(known, tokens.digest(nonce)):
        raise ConflictError(
            "this invite link has been used already: it works once; ask for a new one"
        )
    supervisor.nonce_hash = tokens.digest(nonce)
    supervisor.token_hash = tokens.digest(token)
    supervisor.consent_hash = consent_hash
    supervisor.joined_ms = supervisor.joined_ms or _now_ms()
    return token


def record_next(session: Session, supervisor_id: int) -> Showing | None:
    """The showing that comes next, from now on shown; None when all are reviewed."""
    found = _first_open(session, supervisor_id)
    if found is None and _plan_group(
        session, _supervisor_by_id(session, supervisor_id)
    ):
        found = _first_open(session, supervisor_id)
    if found is not None:
        found.shown_ms = found.shown_ms or _now_ms()
    return found


def record_shown(session: Session, supervisor_id: int, showing_id: int) -> Showing:
    """A showing of this supervisor, from now on shown."""
    found = _own_showing(session, supervisor_id, showing_id)
    found.shown_ms = found.shown_ms or _now_ms()
    return found


def record_live(session: Session, supervisor_id: int, ride: Ride, crashed: bool) -> int:
    """Add a ride that was made for one supervisor; returns the id of its showing.

    Most requests of a full server are this one and `record_review`: both are two
    statements.
    """
    connection = session.connection()
    now = _now_ms()
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
        raise NotFoundError(f"expected a supervisor's number, got {supervisor_id}")
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
    steps, crashed, known_id, known_stopped, known_step = found
    if known_id is not None:
        if known_id == given.client_id:
            return Review(stopped=known_stopped, step=known_step, client_id=known_id)
        said = f"stopped at step {known_step}" if known_stopped else "is over"
        raise ConflictError(f"this ride {said} already: the first answer counts")
    if given.stopped:
        _check_moment(given.step, steps - 1, crashed)
    arrived = _now_ms()
    values = {
        "showing_id": showing_id,
        "client_id": given.client_id,
        "stopped": given.stopped,
        "step": given.step if given.stopped else steps - 1,
        "latency_ms": given.latency_ms if given.stopped else None,
        "reason": given.reason or None,
        "speed": given.speed,
        "replays": given.replays,
        "skew_ms": None if given.client_ms is None else given.client_ms - arrived,
        "created_ms": arrived,
    }
    connection.execute(_ADD_REVIEW, values)
    return Review(**values)


def record_reason(
    session: Session, supervisor_id: int, showing_id: int, reason: str
) -> None:
    """Say afterwards why."""
    review = _own_showing(session, supervisor_id, showing_id).review
    if review is None:
        raise ConflictError("expected a reviewed ride, got one without stop or end")
    review.reason = reason or None


def record_drive(session: Session, supervisor_id: int, drive: Drive) -> Drive:
    """Keep a supervisor's own drive; a repeated request keeps it once."""
    query = select(Drive).where(
        Drive.supervisor_id == supervisor_id, Drive.client_id == drive.client_id
    )
    known = session.scalars(query).one_or_none()
    if known is not None:
        return known
    drive.supervisor_id, drive.created_ms = supervisor_id, _now_ms()
    session.add(drive)
    session.flush()
    return drive


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
        func.length(_RIDES.c.actions),
        _RIDES.c.crashed,
        _REVIEWS.c.client_id,
        _REVIEWS.c.stopped,
        _REVIEWS.c.step,
    )
    .select_from(_SHOWINGS)
    .join(_RIDES, _RIDES.c.id == _SHOWINGS.c.ride_id)
    .outerjoin(_REVIEWS, _REVIEWS.c.showing_id == _SHOWINGS.c.id)
    .where(
        _SHOWINGS.c.id == bindparam("showing"),
        _SHOWINGS.c.supervisor_id == bindparam("supervisor"),
    )
)
_ADD_REVIEW = insert(_REVIEWS)


# Queries


def _study_or_none(session: Session, name: str) -> Study | None:
    return session.scalars(select(Study).where(Study.name == name)).one_or_none()


def _study(session: Session, name: str) -> Study:
    study = _study_or_none(session, name)
    if study is None:
        names = list(session.scalars(select(Study.name).order_by(Study.id)))
        known = ", ".join(names) if names else "there is none yet"
        raise NotFoundError(f"expected the name of a study ({known}), got {name!r}")
    return study


def _supervisor(
    session: Session, column: Any, token: str
) -> tuple[Study, Supervisor] | None:
    """The supervisor whose column holds a token's digest, with the study."""
    row = session.execute(
        select(Study, Supervisor)
        .join(Supervisor, Supervisor.study_id == Study.id)
        .where(column == tokens.digest(token))
    ).one_or_none()
    return None if row is None else (row[0], row[1])


def _supervisor_by_id(session: Session, supervisor_id: int) -> Supervisor:
    found = session.get(Supervisor, supervisor_id)
    if found is None:
        raise NotFoundError(f"expected a supervisor's number, got {supervisor_id}")
    return found


def _invited(session: Session, token: str) -> tuple[Study, Supervisor]:
    found = _supervisor(session, Supervisor.invite_hash, token)
    if found is None:
        raise NotFoundError(
            "this invite link is not valid: it may be mistyped or replaced by a newer "
            "one; ask for another"
        )
    return found


def _count(session: Session, table: Any, study_id: int) -> int:
    query = select(func.count()).select_from(table).where(table.study_id == study_id)
    return session.scalar(query) or 0


def _count_reviews(session: Session, study_id: int) -> dict[str, int]:
    reviews = (
        select(func.count())
        .select_from(Showing)
        .join(Showing.review)
        .join(Showing.supervisor)
        .where(Supervisor.study_id == study_id)
    )
    return {
        "reviews": session.scalar(reviews) or 0,
        "stops": session.scalar(reviews.where(Review.stopped)) or 0,
    }


def _insert_rides(
    session: Session, study_id: int, rides: Sequence[Ride], crashed: Sequence[bool]
) -> list[StoredRide]:
    """Add recorded rides, numbered on from those that are there."""
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
            created_ms=_now_ms(),
        )
        for index, (ride, crash) in enumerate(zip(rides, crashed, strict=True))
    ]
    session.add_all(rows)
    session.flush()
    return rows


def _own_showing(session: Session, supervisor_id: int, showing_id: int) -> Showing:
    query = select(Showing).where(
        Showing.id == showing_id, Showing.supervisor_id == supervisor_id
    )
    found = session.scalars(query).one_or_none()
    if found is None:
        raise NotFoundError(f"expected one of your rides, got {showing_id}")
    return found


def _first_open(session: Session, supervisor_id: int) -> Showing | None:
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


def _next_position(session: Session, supervisor_id: int) -> int:
    query = select(func.max(Showing.position))
    last = session.scalar(query.where(Showing.supervisor_id == supervisor_id))
    return 0 if last is None else last + 1


def _unplanned(session: Session, supervisor: Supervisor) -> list[int]:
    """Recorded rides that this supervisor has not been given, by number."""
    given = select(Showing.ride_id).where(Showing.supervisor_id == supervisor.id)
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
    first = _next_position(session, supervisor.id)
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


# Values


def check_name(name: str, what: str = "name") -> str:
    """Names are parts of addresses and of file names."""
    if not _NAME.fullmatch(name) or len(name) > NAME_LENGTH:
        raise ValueError(
            f"expected a {what} of at most {NAME_LENGTH} letters, digits, '.', '_' or "
            f"'-', beginning with a letter or digit, got {name!r}"
        )
    return name


def to_ride(row: StoredRide) -> Ride:
    """A row as the ride it holds."""
    return Ride(row.seed, row.driver, np.frombuffer(row.actions, np.uint8))


def _now_ms() -> int:
    """The server's clock, as stored."""
    return time.time_ns() // 1_000_000


def _check_text(text: str, what: str) -> None:
    if len(text) > TEXT_LENGTH:
        raise ValueError(
            f"expected a {what} of at most {TEXT_LENGTH} characters, got {len(text)}"
        )
    if "\x00" in text:
        raise ValueError(f"expected a {what} without null characters")


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ValueError(f"expected {name} within {low} and {high}, got {value}")
