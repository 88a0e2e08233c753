"""Bring a store of any older schema up to date when it is opened.

Each version is a function that turns the tables of the version before into its own; a
new store runs all of them. Never edit an old version's function: stores made by it
exist. A test compares the outcome with `tables`.
"""

import time
from collections.abc import Callable

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    inspect,
    text,
)


def _version_1(connection: Connection) -> None:
    """Studies, supervisors, rides, assignments, reviews."""
    meta = MetaData()
    Table(
        "settings",
        meta,
        Column("key", String(64), primary_key=True),
        Column("value", Text, nullable=False),
    )
    Table(
        "studies",
        meta,
        Column("id", Integer, primary_key=True),
        Column("name", String(64), nullable=False, unique=True),
        Column("title", Text, nullable=False),
        Column("consent", Text, nullable=False),
        Column("decision_ms", Integer, nullable=False),
        Column("repeat_share", Float(53), nullable=False),
        Column("seed", Integer, nullable=False),
        Column("created_ms", BigInteger, nullable=False),
    )
    Table(
        "supervisors",
        meta,
        Column("id", Integer, primary_key=True),
        Column("study_id", ForeignKey("studies.id"), nullable=False),
        Column("name", String(64), nullable=False),
        Column("kind", String(16), nullable=False),
        Column("invite_hash", String(64), unique=True),
        Column("nonce_hash", String(64)),
        Column("token_hash", String(64), unique=True),
        Column("consent_hash", String(64)),
        Column("joined_ms", BigInteger),
        Column("created_ms", BigInteger, nullable=False),
        UniqueConstraint("study_id", "name"),
    )
    _rides_of_version_1(meta)
    meta.create_all(connection)


def _rides_of_version_1(meta: MetaData) -> None:
    Table(
        "rides",
        meta,
        Column("id", Integer, primary_key=True),
        Column("study_id", ForeignKey("studies.id"), nullable=False),
        Column("number", Integer, nullable=False),
        Column("seed", BigInteger, nullable=False),
        Column("policy", Text, nullable=False),
        Column("actions", LargeBinary, nullable=False),
        Column("crashed", Boolean, nullable=False),
        Column("live", Boolean, nullable=False),
        Column("created_ms", BigInteger, nullable=False),
        UniqueConstraint("study_id", "number"),
    )
    Table(
        "assignments",
        meta,
        Column("id", Integer, primary_key=True),
        Column("supervisor_id", ForeignKey("supervisors.id"), nullable=False),
        Column("ride_id", ForeignKey("rides.id"), nullable=False),
        Column("position", Integer, nullable=False),
        Column("is_repeat", Boolean, nullable=False),
        Column("shown_ms", BigInteger),
        UniqueConstraint("supervisor_id", "position"),
        Index("assignments_by_ride", "ride_id"),
    )
    Table(
        "reviews",
        meta,
        Column("id", Integer, primary_key=True),
        Column(
            "assignment_id", ForeignKey("assignments.id"), nullable=False, unique=True
        ),
        Column("client_id", String(64), nullable=False),
        Column("stopped", Boolean, nullable=False),
        Column("decision", Integer, nullable=False),
        Column("latency_ms", Integer),
        Column("reason", Text),
        Column("created_ms", BigInteger, nullable=False),
    )


def _version_2(connection: Connection) -> None:
    """High scores, how a ride was shown, and where a study's observer is."""
    for change in (
        "ALTER TABLE studies ADD COLUMN observer TEXT",
        "ALTER TABLE reviews ADD COLUMN speed FLOAT NOT NULL DEFAULT '1'",
        "ALTER TABLE reviews ADD COLUMN replays INTEGER NOT NULL DEFAULT '0'",
        "ALTER TABLE reviews ADD COLUMN skew_ms BIGINT",
    ):
        connection.execute(text(change))
    meta = MetaData()
    Table("supervisors", meta, Column("id", Integer, primary_key=True))
    Table(
        "drives",
        meta,
        Column("id", Integer, primary_key=True),
        Column("supervisor_id", ForeignKey("supervisors.id"), nullable=False),
        Column("client_id", String(64), nullable=False),
        Column("seed", BigInteger, nullable=False),
        Column("actions", LargeBinary, nullable=False),
        Column("score", Float(53), nullable=False),
        Column("coins", Integer, nullable=False),
        Column("overtaken", Integer, nullable=False),
        Column("crashed", Boolean, nullable=False),
        Column("created_ms", BigInteger, nullable=False),
        UniqueConstraint("supervisor_id", "client_id"),
    )
    meta.create_all(connection)


def _version_3(connection: Connection) -> None:
    """One name per concept: showings, steps and drivers."""
    for change in (
        "ALTER TABLE assignments RENAME TO showings",
        "ALTER TABLE reviews RENAME COLUMN assignment_id TO showing_id",
        "ALTER TABLE reviews RENAME COLUMN decision TO step",
        "ALTER TABLE studies RENAME COLUMN decision_ms TO step_ms",
        "ALTER TABLE rides RENAME COLUMN policy TO driver",
        "DROP INDEX assignments_by_ride",
        "CREATE INDEX showings_by_ride ON showings (ride_id)",
    ):
        connection.execute(text(change))


def _version_4(connection: Connection) -> None:
    """Logins have an age; what is done to a store is written down."""
    for change in (
        "ALTER TABLE supervisors ADD COLUMN invite_ms BIGINT",
        "ALTER TABLE supervisors ADD COLUMN token_ms BIGINT",
        "UPDATE supervisors SET invite_ms = created_ms WHERE invite_hash IS NOT NULL",
        "UPDATE supervisors SET token_ms = joined_ms WHERE token_hash IS NOT NULL",
    ):
        connection.execute(text(change))
    meta = MetaData()
    Table(
        "audit",
        meta,
        Column("id", Integer, primary_key=True),
        Column("at_ms", BigInteger, nullable=False),
        Column("who", Text, nullable=False),
        Column("what", Text, nullable=False),
        Column("study", String(64)),
        Column("person", String(64)),
    )
    meta.create_all(connection)


def _version_5(connection: Connection) -> None:
    """Stops that were taken back."""
    meta = MetaData()
    Table("showings", meta, Column("id", Integer, primary_key=True))
    Table(
        "mistakes",
        meta,
        Column("id", Integer, primary_key=True),
        Column("showing_id", ForeignKey("showings.id"), nullable=False, index=True),
        Column("client_id", String(64), nullable=False),
        Column("step", Integer, nullable=False),
        Column("latency_ms", Integer),
        Column("stopped_ms", BigInteger, nullable=False),
        Column("created_ms", BigInteger, nullable=False),
    )
    meta.create_all(connection)


def _version_6(connection: Connection) -> None:
    """Rounds in which a driver learned from a study's stops."""
    meta = MetaData()
    Table("studies", meta, Column("id", Integer, primary_key=True))
    Table(
        "rounds",
        meta,
        Column("id", Integer, primary_key=True),
        Column("study_id", ForeignKey("studies.id"), nullable=False),
        Column("number", Integer, nullable=False),
        Column("driver", Text, nullable=False),
        Column("folder", Text, nullable=False),
        Column("reviews", Integer, nullable=False),
        Column("stops", Integer, nullable=False),
        Column("created_ms", BigInteger, nullable=False),
        UniqueConstraint("study_id", "number"),
    )
    meta.create_all(connection)


def _version_7(connection: Connection) -> None:
    """Studies of any environment; until then all were of Backseat Driver."""
    change = (
        "ALTER TABLE studies ADD COLUMN env VARCHAR(64) NOT NULL DEFAULT 'backseat'"
    )
    connection.execute(text(change))


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (
    _version_1,
    _version_2,
    _version_3,
    _version_4,
    _version_5,
    _version_6,
    _version_7,
)
NEWEST = len(MIGRATIONS)
# Any number that nothing else on the server uses.
_LOCK = 7_301_225


def migrate(connection: Connection, target: int = NEWEST) -> None:
    """Bring a store's tables up to `target`, in the connection's transaction."""
    if connection.dialect.name == "postgresql":
        # Two servers that start at once must not both create the tables.
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    present = version(connection)
    if present > target:
        raise ValueError(
            f"expected a store of schema version {target} or older, got version "
            f"{present}: it was made by a newer termdp; install that one"
        )
    for number in range(present + 1, target + 1):
        MIGRATIONS[number - 1](connection)
        connection.execute(
            text("INSERT INTO schema_version (version, applied_ms) VALUES (:v, :t)"),
            {"v": number, "t": time.time_ns() // 1_000_000},
        )


def version(connection: Connection) -> int:
    """The schema's version; 0 for an empty database, which then gets its first table."""
    tables = inspect(connection).get_table_names()
    if "schema_version" not in tables:
        if "studies" in tables or "rides" in tables:
            raise ValueError(
                "expected an empty database or a store of termdp, got one with other "
                "tables of the same names: give another --db"
            )
        connection.execute(
            text(
                "CREATE TABLE schema_version "
                "(version INTEGER PRIMARY KEY, applied_ms BIGINT NOT NULL)"
            )
        )
        return 0
    return (
        connection.execute(text("SELECT MAX(version) FROM schema_version")).scalar()
        or 0
    )
