"""The store's first half: studies, their rides, their supervisors."""

import re
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from termdp.people.driving.ride import Ride
from termdp.people.records import tokens
from termdp.people.records.database import Database
from termdp.people.records.tables import (
    NAME_LENGTH,
    TEXT_LENGTH,
    Assignment,
    Review,
    Setting,
    StoredRide,
    Study,
    Supervisor,
)

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


def now_ms() -> int:
    """The server's clock, as stored."""
    return time.time_ns() // 1_000_000


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
    return Ride(row.seed, row.policy, np.frombuffer(row.actions, np.uint8))


class StudyRecords:
    """What is asked, about which rides, of whom."""

    database: Database

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
        decision_ms: int = 200,
        repeat_share: float = 0.1,
        seed: int = 0,
    ) -> Study:
        """A new study without rides."""
        check_name(name, "study name")
        _check_text(title, "title")
        if not consent.strip():
            raise ValueError("expected a consent text, got an empty one")
        _check_text(consent, "consent text")
        _check_range("decision_ms", decision_ms, 20, 5000)
        _check_range("repeat_share", repeat_share, 0, 1)
        _check_range("seed", seed, 0, 2**31 - 1)
        study = Study(
            name=name,
            title=title or name,
            consent=consent,
            decision_ms=decision_ms,
            repeat_share=float(repeat_share),
            seed=seed,
            created_ms=now_ms(),
        )
        with self.database.writing() as session:
            if _study(session, name) is not None:
                raise ConflictError(f"expected a new study's name, but {name!r} exists")
            session.add(study)
        return study

    def study(self, name: str) -> Study:
        """A study by its name."""
        with self.database.reading() as session:
            return found_study(session, name)

    def studies(self) -> list[dict[str, Any]]:
        """All studies with their counts, oldest first."""
        with self.database.reading() as session:
            return [
                {
                    "name": study.name,
                    "title": study.title,
                    "rides": _count(session, StoredRide, study.id),
                    "supervisors": _count(session, Supervisor, study.id),
                    "reviews": _reviews_of(session, study.id, None),
                    "stops": _reviews_of(session, study.id, True),
                    "created_ms": study.created_ms,
                    "observer": study.observer,
                }
                for study in session.scalars(select(Study).order_by(Study.id))
            ]

    def set_observer(self, study: str, path: str | None) -> None:
        """Remember where a study's fitted observer is."""
        with self.database.writing() as session:
            found_study(session, study).observer = path

    # Rides

    def add_rides(
        self, study: str, rides: Sequence[Ride], crashed: Sequence[bool]
    ) -> list[int]:
        """Add recorded rides to a study; returns their ids.

        Args:
            study: its name.
            rides: the rides.
            crashed: for each, whether its last decision ends the game.
        """
        with self.database.writing() as session:
            found = found_study(session, study)
            rows = insert_rides(session, found.id, rides, crashed, live=False)
            return [row.id for row in rows]

    def rides(self, study: str, live: bool | None = False) -> list[StoredRide]:
        """A study's rides by number; `live=None` for those of the Ride page too."""
        with self.database.reading() as session:
            query = select(StoredRide).where(
                StoredRide.study_id == found_study(session, study).id
            )
            if live is not None:
                query = query.where(StoredRide.live == live)
            return list(session.scalars(query.order_by(StoredRide.number)))

    def ride(self, ride_id: int) -> StoredRide:
        """One ride."""
        with self.database.reading() as session:
            row = session.get(StoredRide, ride_id)
            if row is None:
                raise NotFoundError(
                    f"expected a ride's id, got {ride_id}: no such ride"
                )
            return row

    # Supervisors

    def invite(self, study: str, name: str, kind: str = "person") -> str:
        """A fresh invite token for a supervisor; an older one is void from then on."""
        check_name(name, "supervisor's name")
        if kind not in KINDS:
            raise ValueError(f"expected a kind ({', '.join(KINDS)}), got {kind!r}")
        token = tokens.make()
        with self.database.writing() as session:
            found = found_study(session, study)
            supervisor = session.scalars(
                select(Supervisor).where(
                    Supervisor.study_id == found.id, Supervisor.name == name
                )
            ).one_or_none()
            if supervisor is None:
                supervisor = Supervisor(
                    study_id=found.id, name=name, kind=kind, created_ms=now_ms()
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

    def join(self, invite: str, nonce: str, consent_hash: str) -> str:
        """Use an invite: record the consent, give the token for all further requests.

        Args:
            invite: the invite's token.
            nonce: made by the browser; the same one may join again if the answer was
                lost, another one may not.
            consent_hash: digest of the consent text that was agreed to.
        """
        with self.database.writing() as session:
            return record_join(session, invite, nonce, consent_hash)

    def supervisor_of(self, token: str) -> tuple[Study, Supervisor] | None:
        """Who sends this token; None if nobody."""
        with self.database.reading() as session:
            row = session.execute(
                select(Study, Supervisor)
                .join(Supervisor, Supervisor.study_id == Study.id)
                .where(Supervisor.token_hash == tokens.digest(token))
            ).one_or_none()
            return None if row is None else (row[0], row[1])

    def supervisors(self, study: str) -> list[Supervisor]:
        """A study's supervisors, in the order of their invitation."""
        with self.database.reading() as session:
            query = select(Supervisor).where(
                Supervisor.study_id == found_study(session, study).id
            )
            return list(session.scalars(query.order_by(Supervisor.id)))


def _study(session: Session, name: str) -> Study | None:
    return session.scalars(select(Study).where(Study.name == name)).one_or_none()


def found_study(session: Session, name: str) -> Study:
    """A study by its name."""
    study = _study(session, name)
    if study is None:
        names = list(session.scalars(select(Study.name).order_by(Study.id)))
        known = ", ".join(names) if names else "there is none yet"
        raise NotFoundError(f"expected the name of a study ({known}), got {name!r}")
    return study


def insert_rides(
    session: Session,
    study_id: int,
    rides: Sequence[Ride],
    crashed: Sequence[bool],
    live: bool,
) -> list[StoredRide]:
    """Add rides, numbered on from those that are there."""
    # Who inserts rides waits for who else does, so that numbers stay unique.
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
            policy=ride.policy,
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


def _count(session: Session, table: Any, study_id: int) -> int:
    query = select(func.count()).select_from(table).where(table.study_id == study_id)
    return session.scalar(query) or 0


def _reviews_of(session: Session, study_id: int, stopped: bool | None) -> int:
    query = (
        select(func.count())
        .select_from(Review)
        .join(Assignment, Review.assignment_id == Assignment.id)
        .join(Supervisor, Assignment.supervisor_id == Supervisor.id)
        .where(Supervisor.study_id == study_id)
    )
    if stopped is not None:
        query = query.where(Review.stopped == stopped)
    return session.scalar(query) or 0


def _invited(session: Session, token: str) -> tuple[Study, Supervisor]:
    row = session.execute(
        select(Study, Supervisor)
        .join(Supervisor, Supervisor.study_id == Study.id)
        .where(Supervisor.invite_hash == tokens.digest(token))
    ).one_or_none()
    if row is None:
        raise NotFoundError(
            "this invite link is not valid: it may be mistyped or replaced by a newer "
            "one; ask for another"
        )
    return row[0], row[1]


def record_join(session: Session, invite: str, nonce: str, consent_hash: str) -> str:
    """Use an invite; see `StudyRecords.join`."""
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
    supervisor.joined_ms = supervisor.joined_ms or now_ms()
    return token


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
