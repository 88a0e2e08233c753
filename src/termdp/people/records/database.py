"""The database under the store: SQLite by default, PostgreSQL by URL.

A transaction that has returned is on disk: SQLite runs with a write-ahead log and
`synchronous=FULL`, PostgreSQL with its own default of `synchronous_commit=on`.

Of all programs one transaction writes at a time: SQLite knows no other way, PostgreSQL is
told so, since jobs that are committed together would wait for each other's rows.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
)
from sqlalchemy.exc import TimeoutError as NoConnectionError
from sqlalchemy.orm import Session

from termdp.people.records.migrations import migrate

# How long a command waits for another program's transaction.
BUSY_SECONDS = 30.0
# As many as a server has threads that read, and its writer.
_SQLITE_CONNECTIONS = 42
# PostgreSQL allows 100 in all by default, of all programs.
_POSTGRES_CONNECTIONS = 16
# The number under which writers of one database take turns on PostgreSQL.
_TURN = 220_515_376


class UnreachableError(OSError):
    """The database does not answer; what was asked has not been done."""


class Database:
    """Transactions on a migrated database."""

    def __init__(self, engine: Engine):
        self.engine = engine

    @classmethod
    def open(cls, url: str, busy_seconds: float = BUSY_SECONDS) -> "Database":
        """Connect and bring the tables up to date.

        Args:
            url: a file's path for SQLite, or a URL of SQLAlchemy (`sqlite:///file.db`,
                `postgresql+psycopg://user@host/name`).
            busy_seconds: how long to wait for another program's transaction, or for a
                free connection, before saying that the database does not answer.
        """
        database = cls(_make_engine(_parse(url), busy_seconds))
        try:
            with database.engine.execution_options(writes=True).begin() as connection:
                migrate(connection)
        except (DBAPIError, OSError) as error:
            database.close()
            raise UnreachableError(
                f"expected a database at {url_without_password(url)}, but it cannot be "
                f"opened: {_first_line(error)}"
            ) from error
        except ValueError:
            database.close()
            raise
        return database

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A transaction that only reads."""
        with _translated(), Session(self.engine) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A transaction that is on disk when the block is left; undone on an error."""
        engine = self.engine.execution_options(writes=True)
        with (
            _translated(),
            Session(engine, expire_on_commit=False) as session,
            session.begin(),
        ):
            if engine.dialect.name == "postgresql":
                session.execute(text(f"SELECT pg_advisory_xact_lock({_TURN})"))
            yield session

    def close(self) -> None:
        """Give back all connections."""
        self.engine.dispose()


def url_without_password(url: str) -> str:
    """For messages."""
    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return url


def _parse(url: str) -> URL:
    if "://" not in url:
        return URL.create("sqlite", database=url)
    try:
        return make_url(url)
    except ArgumentError as error:
        raise ValueError(
            f"expected a file or a database URL such as sqlite:///people.db or "
            f"postgresql+psycopg://user@host/name, got {url!r}"
        ) from error


def _make_engine(url: URL, busy_seconds: float) -> Engine:
    backend = url.get_backend_name()
    if backend not in ("sqlite", "postgresql"):
        raise ValueError(f"expected a URL of sqlite or postgresql, got {backend!r}")
    if backend == "sqlite" and url.database in (None, "", ":memory:"):
        raise ValueError(
            "expected a file for SQLite, got a database in memory: stops must survive"
        )
    try:
        if backend == "postgresql":
            options = f"-c lock_timeout={int(1000 * busy_seconds)}"
            return create_engine(
                url,
                pool_pre_ping=True,
                pool_size=_POSTGRES_CONNECTIONS,
                max_overflow=0,
                pool_timeout=busy_seconds,
                connect_args={
                    "options": options,
                    "connect_timeout": max(1, int(busy_seconds)),
                },
            )
        engine = create_engine(
            url,
            pool_size=_SQLITE_CONNECTIONS,
            max_overflow=0,
            pool_timeout=busy_seconds,
            connect_args={"timeout": busy_seconds},
        )
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise ValueError(
            f"expected a database driver for {url.drivername}, but it is not installed: "
            "`pip install termdp[postgres]` and use postgresql+psycopg://"
        ) from error
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _: Any) -> None:
    # The driver's own handling of transactions begins them too late: we say BEGIN.
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: Any) -> None:
    # A transaction that begins by reading and then writes can fail half-way; one that
    # says at once that it will write waits for its turn instead.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (OperationalError, InterfaceError, NoConnectionError) as error:
        raise UnreachableError(
            f"the database does not answer ({_first_line(error)}): nothing was written"
        ) from error


def _first_line(error: BaseException) -> str:
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    lines = str(cause).strip().splitlines()
    return lines[0] if lines else type(cause).__name__
