"""A whole store as one file, and back: also while a server runs on it.

The file is an SQLite store of its own, whatever the database is, so a backup of
PostgreSQL can be restored to SQLite and the other way round. It holds everything, logins
included: keep it as safe as the store. Use `termdp studies import` for files from others.
"""

import shutil
import sqlite3
import tempfile
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from termdp.files import draft_of
from termdp.people.records import audit
from termdp.people.records.database import (
    TABLES,
    Database,
    file_of,
    url_without_password,
)
from termdp.people.records.tables import Base

_ROWS_AT_ONCE = 500


def backup(url: str, path: Path) -> dict[str, int]:
    """Write all of a store, as it is at one moment, to a new file.

    Returns:
        Rows by table.
    """
    source_file = file_of(url)
    if source_file is not None and not source_file.is_file():
        raise ValueError(f"expected a store, got {source_file}: no such file")
    _check_new(path)
    source = Database.open(url)
    try:
        with draft_of(path) as draft:
            counts = _copy(source, str(draft))
        with source.writing() as session:
            audit.note(session, audit.this_user(), "made a backup")
    finally:
        source.close()
    return counts


def restore(path: Path, url: str) -> dict[str, int]:
    """Read a backup into a new database; returns rows by table."""
    if not path.is_file():
        raise ValueError(f"expected a backup, got {path}: no such file")
    target = file_of(url)
    if target is not None:
        _check_new(target)
    with tempfile.TemporaryDirectory(prefix="termdp-restore-") as folder:
        # Opening an older backup brings its tables up to date: do that to a copy.
        copy = Path(folder) / "backup.db"
        shutil.copyfile(path, copy)
        _check_whole(copy, path)
        source = Database.open(str(copy))
        try:
            if target is None:
                return _copy(source, url, "restored a backup")
            with draft_of(target) as draft:
                return _copy(source, str(draft), "restored a backup")
        finally:
            source.close()


def _copy(source: Database, url: str, what: str | None = None) -> dict[str, int]:
    """Copy all rows of one database into an empty one, in one transaction.

    Args:
        source: where the rows are.
        url: the empty database.
        what: for the target's audit log; None writes no entry.

    Returns:
        Rows by table.
    """
    target = Database.open(url)
    options = {"yield_per": _ROWS_AT_ONCE}
    counts = dict.fromkeys(TABLES, 0)
    try:
        with source.snapshot() as reading, target.writing() as writing:
            for table in Base.metadata.sorted_tables:
                if writing.scalar(select(func.count()).select_from(table)):
                    raise ValueError(
                        f"expected an empty database at {url_without_password(url)}, "
                        f"got one with {table.name}: restore to a new one"
                    )
                query = select(table).order_by(*table.primary_key)
                found = reading.execute(query, execution_options=options)
                for rows in found.partitions():
                    values = [dict(row._mapping) for row in rows]
                    writing.execute(table.insert(), values)
                    counts[table.name] += len(values)
            if what is not None:
                _go_on_counting(writing)
                audit.note(writing, audit.this_user(), what)
    finally:
        target.close()
    return counts


def _go_on_counting(session: Session) -> None:
    """Let PostgreSQL give new rows the numbers after those that were copied."""
    if session.connection().dialect.name != "postgresql":
        return
    for table in Base.metadata.sorted_tables:
        if "id" in table.columns:
            last = session.scalar(select(func.max(table.c.id)))
            sequence = func.pg_get_serial_sequence(table.name, "id")
            session.execute(select(func.setval(sequence, last or 1, last is not None)))


def _check_new(path: Path) -> None:
    if path.exists():
        raise ValueError(f"expected a new file, but {path} exists: choose another name")
    if not path.parent.is_dir():
        raise ValueError(
            f"expected a folder for the file, but {path.parent} is not a folder"
        )


def _check_whole(copy: Path, path: Path) -> None:
    """Refuse a file that is no backup, or a damaged one; `path` is its name."""
    connection = sqlite3.connect(copy)
    try:
        (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        lost = connection.execute("PRAGMA foreign_key_check").fetchone()
        connection.execute("SELECT MAX(version) FROM schema_version")
    except sqlite3.Error as error:
        raise ValueError(
            f"expected a file of `termdp studies backup`, got {path}: {error}"
        ) from error
    finally:
        connection.close()
    if said != "ok" or lost is not None:
        raise ValueError(f"expected an intact backup, got {path}: it is damaged")
