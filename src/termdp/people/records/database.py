"""The database under the store: SQLite by default, PostgreSQL by URL.

A transaction that has returned is on disk: SQLite runs with a write-ahead log and
`synchronous=FULL`, PostgreSQL with its own default of `synchronous_commit=on`.

Only one transaction writes at a time, across all programs. SQLite works no other way.
PostgreSQL is told to, since jobs committed together would wait for each other's rows.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
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
from termdp.people.records.tables import Base

# How long a command waits for another program's transaction.
BUSY_SECONDS = 30.0
# As many as a server has threads that read, and its writer.
_SQLITE_CONNECTIONS = 42
# PostgreSQL allows 100 in all by default, of all programs.
_POSTGRES_CONNECTIONS = 16
# The number under which writers of one database take turns on PostgreSQL.
_TURN = 220_515_376
TABLES = tuple(table.name for table in Base.metadata.sorted_tables)


class UnreachableError(OSError):
    """The database does not answer; what was asked has not been done."""


class NotFoundError(ValueError):
    """What was asked for is not in the store."""


class ConflictError(ValueError):
    """What was asked for contradicts what the store already holds."""


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
        parsed = _parse(url)
        database = cls(_make_engine(parsed, busy_seconds))
        try:
            _make_private(parsed)
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
        _keep_private(parsed)
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

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        """A transaction that reads everything as it was at one moment."""
        engine = self.engine
        if engine.dialect.name == "postgresql":
            engine = engine.execution_options(isolation_level="REPEATABLE READ")
        with _translated(), Session(engine) as session:
            yield session

    def scrub(self) -> bool:
        """Remove what was deleted from the disk, as far as we can.

        SQLite overwrites deleted rows (`secure_delete`); its log is emptied here.
        PostgreSQL only marks them; its tables are cleared here.

        Returns:
            Whether it was done; somebody who still reads may be in the way.
        """
        try:
            if self.engine.dialect.name == "postgresql":
                engine = self.engine.execution_options(isolation_level="AUTOCOMMIT")
                with engine.connect() as connection:
                    connection.exec_driver_sql(f"VACUUM {', '.join(TABLES)}")
                return True
            raw = self.engine.raw_connection()
            try:
                answer = raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
                return bool(answer.fetchone()[0] == 0)
            finally:
                raw.close()
        except (DBAPIError, sqlite3.Error):
            return False

    def close(self) -> None:
        """Give back all connections."""
        self.engine.dispose()


def url_without_password(url: str) -> str:
    """A database's URL as it may be shown in messages."""
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
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        "secure_delete=ON",
    ):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: Any) -> None:
    # A transaction that begins by reading and then writes can fail half-way; one that
    # says at once that it will write waits for its turn instead.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def file_of(url: str) -> Path | None:
    """The file of an SQLite database; None for another one."""
    return _file(_parse(url))


def _file(url: URL) -> Path | None:
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    return None if url.database.startswith("file:") else Path(url.database)


def _make_private(url: URL) -> None:
    """Create a new file that only its owner can read."""
    path = _file(url)
    if path is not None and path.parent.is_dir() and not path.exists():
        path.touch(mode=0o600)


def _keep_private(url: URL) -> None:
    """Make an existing file and its logs readable only for their owner."""
    path = _file(url)
    for part in () if path is None else (path, *_logs(path)):
        with suppress(FileNotFoundError, PermissionError):
            if part.stat().st_mode & 0o077:
                part.chmod(0o600)


def _logs(path: Path) -> tuple[Path, Path]:
    return Path(f"{path}-wal"), Path(f"{path}-shm")


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
