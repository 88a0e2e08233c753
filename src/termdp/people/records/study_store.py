"""The study store: studies, rides, supervisors, what was shown to whom, and their stops.

Every method of `StudyStore` is one transaction. A method that writes returns when its
change is on disk. The functions `record_…` work in a transaction of the caller, so that
the server can commit many answers at once (`server.writer`).
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from termdp.people.driving.ride import BACKSEAT, MAX_SEED, ROADS, Ride, studied
from termdp.people.records import audit, plan, tokens
from termdp.people.records.database import (
    BUSY_SECONDS,
    ConflictError,
    Database,
    NotFoundError,
    UnreachableError,
)
from termdp.people.records.fields import (
    NAME_FORM,
    NAME_LENGTH,
    PERSON_FORM,
    PERSON_WORDS,
    TEXT_LENGTH,
)
from termdp.people.records.showings import (
    ReviewInput,
    insert_rides,
    now_ms,
    record_drive,
    record_live,
    record_mistake,
    record_next,
    record_reason,
    record_review,
    record_shown,
    supervisor_row,
    unplanned,
)
from termdp.people.records.tables import (
    Drive,
    Mistake,
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
    "check_person",
    "new_study",
    "record_drive",
    "record_join",
    "record_live",
    "record_mistake",
    "record_next",
    "record_reason",
    "record_review",
    "record_shown",
    "to_ride",
]

DEFAULT_DB = "people.db"
# Names of those who withdrew and left their stops.
WITHDRAWN = "withdrawn-"
KINDS = ("person", "simulated")
_CONSENT = (
    "You will watch short {things} and stop those that make you feel "
    "uncomfortable. We store when you stop, the reasons you give and the times of your "
    "answers under the name on your invitation, and use them for research on agents "
    "that learn from being stopped. Others who have watched all {all} can see when you "
    "stopped, but not who you are. You may close the page at any time. You may also "
    "withdraw at any time, on the first page. You then choose whether everything is "
    "deleted, or your stops are kept without your name."
)
DEFAULT_CONSENT = _CONSENT.format(things="rides of a driving game", all="rides")
GAMES_CONSENT = _CONSENT.format(things="games that a program plays", all="games")


class StudyStore:
    """Studies and all that belongs to them, in a database.

    Example:
        >>> with StudyStore.open("people.db") as store:  # doctest: +SKIP
        ...     study = store.create_study("coins")
    """

    def __init__(self, database: Database):
        self.database = database
        # Named in the audit log, unless a call names somebody else.
        self.who = audit.this_user()

    @classmethod
    def open(cls, url: str = DEFAULT_DB, busy_seconds: float = BUSY_SECONDS) -> Self:
        """Open a store; a new one is created, an old one brought up to date.

        Args:
            url: a file for SQLite, or a URL (`postgresql+psycopg://user@host/name`).
            busy_seconds: how long to wait for another program's transaction.
        """
        return cls(Database.open(url, busy_seconds))

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Settings

    def setting(self, key: str) -> str | None:
        """Read a setting of the store itself."""
        with self.database.reading() as session:
            row = session.get(Setting, key)
            return None if row is None else row.value

    def set_setting(self, key: str, value: str) -> None:
        """Change a setting."""
        with self.database.writing() as session:
            session.merge(Setting(key=key, value=value))

    # Studies

    def create_study(
        self,
        name: str,
        title: str = "",
        consent: str | None = None,
        step_ms: int = 200,
        repeat_share: float = 0.1,
        seed: int = 0,
        env: str = BACKSEAT,
    ) -> Study:
        """A new study without rides."""
        study = new_study(name, title, consent, step_ms, repeat_share, seed, env)
        self.begin_study(study)
        return study

    def begin_study(
        self,
        study: Study,
        rides: Sequence[Ride] = (),
        crashed: Sequence[bool] = (),
        invites: Sequence[str] = (),
        who: str | None = None,
    ) -> dict[str, str]:
        """A new study with its rides and invites: all of it, or nothing.

        Args:
            study: from `new_study`.
            rides: its first rides.
            crashed: for each, whether its last step ends the game.
            invites: names of supervisors.
            who: for the audit log.

        Returns:
            Invite tokens by name.
        """
        who = who or self.who
        with self.database.writing() as session:
            _check_new(session, study.name)
            session.add(study)
            session.flush()
            insert_rides(session, study.id, rides, crashed)
            audit.note(session, who, f"created with {len(rides)} rides", study.name)
            return _invite(session, study, invites, "person", who)

    def check_new(self, name: str) -> None:
        """Refuse the name of a study that exists."""
        with self.database.reading() as session:
            _check_new(session, name)

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
                    "env": study.env,
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
            audit.note(session, self.who, "fitted an observer", study)

    # Rides

    def add_rides(
        self,
        study: str,
        rides: Sequence[Ride],
        crashed: Sequence[bool],
        who: str | None = None,
    ) -> list[int]:
        """Add recorded rides to a study; returns their ids.

        Args:
            study: its name.
            rides: the rides.
            crashed: for each, whether its last step ends the game.
            who: for the audit log.
        """
        with self.database.writing() as session:
            found = _study(session, study)
            rows = insert_rides(session, found.id, rides, crashed)
            audit.note(session, who or self.who, f"added {len(rides)} rides", study)
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
        """A fresh invite token for a supervisor; see `invite_all`."""
        return self.invite_all(study, [name], kind)[name]

    def invite_all(
        self,
        study: str,
        names: Sequence[str],
        kind: str = "person",
        who: str | None = None,
    ) -> dict[str, str]:
        """Fresh invite tokens for supervisors, for all of them or for none.

        People who were invited before must use the new link: the old link and the login
        made with it are void.
        """
        with self.database.writing() as session:
            found = _study(session, study)
            return _invite(session, found, names, kind, who or self.who)

    def invited(
        self, token: str, days: float = tokens.DAYS
    ) -> tuple[Study, Supervisor]:
        """The supervisor an invite is for, if it is not older than so many days."""
        with self.database.reading() as session:
            return _invited(session, token, days)

    def supervisor_of(self, token: str) -> tuple[Study, Supervisor] | None:
        """Who sends this token; None if nobody."""
        with self.database.reading() as session:
            return _supervisor(session, Supervisor.token_hash, token)

    def sign_out(self, supervisor_id: int) -> None:
        """Make a supervisor's login void, and the invite link it was made with."""
        with self.database.writing() as session:
            revoke(supervisor_row(session, supervisor_id))

    def token_digests(self) -> list[str]:
        """Digests of the tokens of everybody who has joined."""
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
        """Showings reviewed and showings in all, without those of the Ride page."""
        planned = (
            select(func.count())
            .select_from(Showing)
            .join(Showing.ride)
            .where(Showing.supervisor_id == supervisor_id, ~StoredRide.live)
        )
        with self.database.reading() as session:
            supervisor = supervisor_row(session, supervisor_id)
            done = session.scalar(planned.join(Showing.review)) or 0
            total = session.scalar(planned) or 0
            share = session.get_one(Study, supervisor.study_id).repeat_share
            more = len(unplanned(session, supervisor))
            return done, total + plan.num_showings(more, share)

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

    def mistakes(self, study: str) -> dict[int, list[Mistake]]:
        """Stops of a study that were taken back, by showing."""
        found: dict[int, list[Mistake]] = defaultdict(list)
        with self.database.reading() as session:
            query = (
                select(Mistake)
                .join(Showing, Mistake.showing_id == Showing.id)
                .join(Showing.supervisor)
                .where(Supervisor.study_id == _study(session, study).id)
                .order_by(Mistake.id)
            )
            for row in session.scalars(query):
                found[row.showing_id].append(row)
        return found

    def mean_steps(self, study_id: int) -> float:
        """How long the recorded rides of a study are; 0 without any."""
        with self.database.reading() as session:
            query = select(func.avg(func.length(StoredRide.actions))).where(
                StoredRide.study_id == study_id, ~StoredRide.live
            )
            return float(session.scalar(query) or 0)

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


def record_join(
    session: Session,
    invite: str,
    nonce: str,
    consent_hash: str,
    days: float = tokens.DAYS,
) -> str:
    """Use an invite: record the consent, give the token for all further requests.

    Args:
        session: the transaction.
        invite: the invite's token.
        nonce: made by the browser; the same one may join again if the answer was lost,
            another one may not.
        consent_hash: digest of the consent text that was agreed to.
        days: how old the invite may be.
    """
    token = tokens.make()
    study, supervisor = _invited(session, invite, days)
    if consent_hash != tokens.digest(study.consent):
        raise ConflictError(
            "expected consent to the study's present text, got consent to "
            "another text: read it again"
        )
    known = supervisor.nonce_hash
    if known is not None and not tokens.same(known, tokens.digest(nonce)):
        raise ConflictError(
            "this invite link has been used already: it works once; ask for a new one"
        )
    supervisor.nonce_hash = tokens.digest(nonce)
    supervisor.token_hash = tokens.digest(token)
    supervisor.token_ms = now_ms()
    supervisor.consent_hash = consent_hash
    supervisor.joined_ms = supervisor.joined_ms or now_ms()
    return token


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


def _check_new(session: Session, name: str) -> None:
    if _study_or_none(session, name) is not None:
        raise ConflictError(f"expected a new study's name, but {name!r} exists")


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


def _invited(session: Session, token: str, days: float) -> tuple[Study, Supervisor]:
    found = _supervisor(session, Supervisor.invite_hash, token)
    if found is None:
        raise NotFoundError(
            "this invite link is not valid: it may be mistyped or replaced by a newer "
            "one; ask for another"
        )
    if tokens.is_older(found[1].invite_ms, days, now_ms()):
        raise NotFoundError(
            f"this invite link is older than {days:g} days: ask for another"
        )
    return found


def _invite(
    session: Session, study: Study, names: Iterable[str], kind: str, who: str
) -> dict[str, str]:
    """Invite tokens by name; see `StudyStore.invite_all`."""
    if kind not in KINDS:
        raise ValueError(f"expected a kind ({', '.join(KINDS)}), got {kind!r}")
    made = {}
    for name in dict.fromkeys(names):
        check_person(name)
        if name.startswith(WITHDRAWN):
            raise ValueError(
                f"expected a supervisor's name that does not begin with {WITHDRAWN}, "
                f"got {name!r}: such names are given to those who withdrew"
            )
        query = select(Supervisor).where(
            Supervisor.study_id == study.id, Supervisor.name == name
        )
        supervisor = session.scalars(query).one_or_none()
        if supervisor is None:
            supervisor = Supervisor(
                study_id=study.id, name=name, kind=kind, created_ms=now_ms()
            )
            session.add(supervisor)
        elif supervisor.kind != kind:
            raise ConflictError(
                f"expected kind {supervisor.kind!r} for {name!r}, got {kind!r}: a "
                "supervisor's kind cannot change"
            )
        made[name] = tokens.make()
        revoke(supervisor)
        supervisor.invite_hash = tokens.digest(made[name])
        supervisor.invite_ms = now_ms()
        audit.note(session, who, "invited", study.name, name)
    session.flush()
    return made


def revoke(supervisor: Supervisor) -> None:
    """Make a supervisor's invite and login void, in a transaction of the caller."""
    supervisor.invite_hash = supervisor.nonce_hash = supervisor.token_hash = None
    supervisor.invite_ms = supervisor.token_ms = None


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


# Values


def new_study(
    name: str,
    title: str = "",
    consent: str | None = None,
    step_ms: int = 200,
    repeat_share: float = 0.1,
    seed: int = 0,
    env: str = BACKSEAT,
) -> Study:
    """A study that is in no store yet; see `StudyStore.begin_study`.

    Without a consent text it gets a standard one.
    """
    check_name(name, "study name")
    studied(env)
    _check_text(title, "title")
    if consent is None:
        consent = DEFAULT_CONSENT if env in ROADS else GAMES_CONSENT
    if not consent.strip():
        raise ValueError("expected a consent text, got an empty one")
    _check_text(consent, "consent text")
    _check_range("step_ms", step_ms, 20, 5000)
    _check_range("repeat_share", repeat_share, 0, 1)
    _check_range("seed", seed, 0, MAX_SEED)
    return Study(
        name=name,
        title=title or name,
        consent=consent,
        step_ms=step_ms,
        repeat_share=float(repeat_share),
        seed=seed,
        env=env,
        created_ms=now_ms(),
    )


def to_ride(row: StoredRide, env: str = BACKSEAT) -> Ride:
    """The ride in a row; `env` is its study's environment."""
    return Ride(row.seed, row.driver, np.frombuffer(row.actions, np.uint8), env)


def check_name(name: str, what: str = "name") -> str:
    """Refuse a name that does not fit into addresses and file names; returns it."""
    if not re.fullmatch(NAME_FORM, name):
        raise ValueError(
            f"expected a {what} of at most {NAME_LENGTH} letters, digits, '.', '_' or "
            f"'-', beginning with a letter or digit, got {name!r}"
        )
    return name


def check_person(name: str) -> str:
    """Refuse a person's name that is malformed; any script will do, in the form NFC."""
    if (
        not re.fullmatch(PERSON_FORM, name)
        or unicodedata.normalize("NFC", name) != name
    ):
        raise ValueError(
            f"expected a supervisor's name of {PERSON_WORDS}, got {name!r}"
        )
    return name


def _check_text(text: str, what: str) -> None:
    if len(text) > TEXT_LENGTH:
        raise ValueError(
            f"expected a {what} of at most {TEXT_LENGTH} characters, got {len(text)}"
        )
    if "\x00" in text:
        raise ValueError(f"expected a {what} without null characters")


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ValueError(f"expected {name} from {low} to {high}, got {value}")
