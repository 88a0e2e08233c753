"""The store's tables as they are now; `migrations` makes them out of older ones.

Times are whole milliseconds since 1970 in UTC, the server's clock. Tokens are kept as
SHA-256 digests only: they are 256 random bits, so nothing can be guessed from a digest.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from termdp.people.driving.ride import BACKSEAT
from termdp.people.records.fields import NAME_LENGTH


class Base(DeclarativeBase):
    """All tables."""


class Setting(Base):
    """Facts about the store itself, such as the admin token's digest."""

    __tablename__ = "settings"
    key: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    value: Mapped[str] = mapped_column(Text)


class Study(Base):
    """Some rides that some supervisors review.

    Attributes:
        name: unique, part of addresses and file names.
        title: for people.
        consent: the text that supervisors agree to before anything else.
        step_ms: how long a step is shown at normal speed.
        repeat_share: share of rides that are shown twice.
        seed: of the supervisors' orders.
        observer: path of the fitted observer's file, if there is one.
        env: id of the environment that its rides are of.
        created_ms: when it was created.
    """

    __tablename__ = "studies"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    title: Mapped[str] = mapped_column(Text)
    consent: Mapped[str] = mapped_column(Text)
    step_ms: Mapped[int] = mapped_column(Integer)
    repeat_share: Mapped[float] = mapped_column(Float(53))
    seed: Mapped[int] = mapped_column(Integer)
    created_ms: Mapped[int] = mapped_column(BigInteger)
    observer: Mapped[str | None] = mapped_column(Text)
    env: Mapped[str] = mapped_column(String(NAME_LENGTH), server_default=BACKSEAT)


class Supervisor(Base):
    """A person or program that watches rides and stops them.

    Attributes:
        study_id: the study.
        name: unique within the study; a pseudonym will do.
        kind: `person` or `simulated`.
        invite_hash: digest of the invite link's token.
        nonce_hash: digest of what the browser that used the invite made up, so that it
            alone may repeat a join whose answer was lost.
        token_hash: digest of the token that its requests carry; None before joining.
        consent_hash: digest of the consent text that was agreed to.
        joined_ms: when they agreed and joined; None before.
        created_ms: when first invited.
        invite_ms: when the invite link was made; None without one.
        token_ms: when the token was made; None without one.
    """

    __tablename__ = "supervisors"
    __table_args__ = (UniqueConstraint("study_id", "name"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = mapped_column(ForeignKey("studies.id"))
    name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    kind: Mapped[str] = mapped_column(String(16))
    invite_hash: Mapped[str | None] = mapped_column(String(64), unique=True)
    nonce_hash: Mapped[str | None] = mapped_column(String(64))
    token_hash: Mapped[str | None] = mapped_column(String(64), unique=True)
    consent_hash: Mapped[str | None] = mapped_column(String(64))
    joined_ms: Mapped[int | None] = mapped_column(BigInteger)
    created_ms: Mapped[int] = mapped_column(BigInteger)
    invite_ms: Mapped[int | None] = mapped_column(BigInteger)
    token_ms: Mapped[int | None] = mapped_column(BigInteger)


class StoredRide(Base):
    """A ride of a study: seed, driver, actions.

    Attributes:
        study_id: the study.
        number: from 0 within the study.
        seed: of the road, or of all that is random in another game.
        driver: who drove.
        actions: one byte per step.
        crashed: whether the last step ends the game.
        live: made for one supervisor's Ride page, not for review.
        created_ms: when recorded.
    """

    __tablename__ = "rides"
    __table_args__ = (UniqueConstraint("study_id", "number"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = mapped_column(ForeignKey("studies.id"))
    number: Mapped[int] = mapped_column(Integer)
    seed: Mapped[int] = mapped_column(BigInteger)
    driver: Mapped[str] = mapped_column(Text)
    actions: Mapped[bytes] = mapped_column(LargeBinary)
    crashed: Mapped[bool] = mapped_column(Boolean)
    live: Mapped[bool] = mapped_column(Boolean)
    created_ms: Mapped[int] = mapped_column(BigInteger)


class Showing(Base):
    """One ride shown to one supervisor.

    Attributes:
        supervisor_id: who watches.
        ride_id: what they watch.
        position: its place in the supervisor's own random order.
        is_repeat: whether they have seen this ride before, to measure consistency.
        shown_ms: when the ride was first fetched; None before.
        review: what they did; None before.
    """

    __tablename__ = "showings"
    __table_args__ = (
        UniqueConstraint("supervisor_id", "position"),
        Index("showings_by_ride", "ride_id"),
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    supervisor_id: Mapped[int] = mapped_column(ForeignKey("supervisors.id"))
    ride_id: Mapped[int] = mapped_column(ForeignKey("rides.id"))
    position: Mapped[int] = mapped_column(Integer)
    is_repeat: Mapped[bool] = mapped_column(Boolean)
    shown_ms: Mapped[int | None] = mapped_column(BigInteger)
    supervisor: Mapped[Supervisor] = relationship(lazy="joined", innerjoin=True)
    ride: Mapped[StoredRide] = relationship(lazy="joined", innerjoin=True)
    review: Mapped["Review | None"] = relationship(lazy="joined")


class Review(Base):
    """What a supervisor did at a showing: a stop, or none up to the ride's end.

    Attributes:
        showing_id: the showing.
        client_id: made by the browser, the same in every retry.
        stopped: whether they stopped it.
        step: the step on screen at the stop; the last step without a stop.
        latency_ms: from the beginning of that step on screen to the stop, by the
            supervisor's own clock; None without a stop.
        reason: in their words; None if not said.
        speed: how fast the ride was shown, 1 is normal.
        replays: how often it was started again.
        skew_ms: the supervisor's clock minus the server's at arrival; None if not sent.
        created_ms: when it was written, the server's clock.
    """

    __tablename__ = "reviews"
    id: Mapped[int] = mapped_column(primary_key=True)
    showing_id: Mapped[int] = mapped_column(ForeignKey("showings.id"), unique=True)
    client_id: Mapped[str] = mapped_column(String(64))
    stopped: Mapped[bool] = mapped_column(Boolean)
    step: Mapped[int] = mapped_column(Integer)
    latency_ms: Mapped[int | None] = mapped_column(Integer)
    reason: Mapped[str | None] = mapped_column(Text)
    created_ms: Mapped[int] = mapped_column(BigInteger)
    speed: Mapped[float] = mapped_column(Float(53), server_default="1")
    replays: Mapped[int] = mapped_column(Integer, server_default="0")
    skew_ms: Mapped[int | None] = mapped_column(BigInteger)


class Mistake(Base):
    """A stop that its supervisor took back; fits never use it.

    Attributes:
        showing_id: the showing, which is open again.
        client_id: of the stop.
        step: the step on screen at the stop.
        latency_ms: as in a review.
        stopped_ms: when the stop was written, the server's clock.
        created_ms: when it was taken back.
    """

    __tablename__ = "mistakes"
    id: Mapped[int] = mapped_column(primary_key=True)
    showing_id: Mapped[int] = mapped_column(ForeignKey("showings.id"), index=True)
    client_id: Mapped[str] = mapped_column(String(64))
    step: Mapped[int] = mapped_column(Integer)
    latency_ms: Mapped[int | None] = mapped_column(Integer)
    stopped_ms: Mapped[int] = mapped_column(BigInteger)
    created_ms: Mapped[int] = mapped_column(BigInteger)


class Drive(Base):
    """A supervisor's own drive, for the high scores; played again by the server.

    Attributes:
        supervisor_id: who drove.
        client_id: made by the browser, the same in every retry.
        seed: of the road.
        actions: one byte per step.
        score: the return.
        coins: collected.
        overtaken: cars passed.
        crashed: whether it ended by a crash.
        created_ms: when it was written.
    """

    __tablename__ = "drives"
    __table_args__ = (UniqueConstraint("supervisor_id", "client_id"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    supervisor_id: Mapped[int] = mapped_column(ForeignKey("supervisors.id"))
    client_id: Mapped[str] = mapped_column(String(64))
    seed: Mapped[int] = mapped_column(BigInteger)
    actions: Mapped[bytes] = mapped_column(LargeBinary)
    score: Mapped[float] = mapped_column(Float(53))
    coins: Mapped[int] = mapped_column(Integer)
    overtaken: Mapped[int] = mapped_column(Integer)
    crashed: Mapped[bool] = mapped_column(Boolean)
    created_ms: Mapped[int] = mapped_column(BigInteger)


class Round(Base):
    """A driver that learned from a study's stops; number 0 is the one it began with.

    Attributes:
        study_id: the study.
        number: 0, 1, …
        driver: the name under which it drove rides of the study.
        folder: where it is kept, see `improving.round_folder`.
        reviews: how many reviews it learned from; 0 for number 0.
        stops: how many of them were stops.
        created_ms: when its rides were added.
    """

    __tablename__ = "rounds"
    __table_args__ = (UniqueConstraint("study_id", "number"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = mapped_column(ForeignKey("studies.id"))
    number: Mapped[int] = mapped_column(Integer)
    driver: Mapped[str] = mapped_column(Text)
    folder: Mapped[str] = mapped_column(Text)
    reviews: Mapped[int] = mapped_column(Integer)
    stops: Mapped[int] = mapped_column(Integer)
    created_ms: Mapped[int] = mapped_column(BigInteger)


class AuditEntry(Base):
    """Something that was done to a store; reviews are not logged.

    Attributes:
        at_ms: when.
        who: `admin`, the user of a command, `guest` or `participant`.
        what: in words.
        study: of which study; None for the whole store.
        person: whom it was about; None for nobody in particular.
    """

    __tablename__ = "audit"
    id: Mapped[int] = mapped_column(primary_key=True)
    at_ms: Mapped[int] = mapped_column(BigInteger)
    who: Mapped[str] = mapped_column(Text)
    what: Mapped[str] = mapped_column(Text)
    study: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    person: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
