"""`termdp studies restore`: make a store from a backup."""

import json
from dataclasses import dataclass
from pathlib import Path

import tyro

from termdp.people.extra import needs_people_packages


@dataclass(frozen=True)
class Args:
    """Read a backup into a new SQLite or PostgreSQL database.

    Restore only your own backups, because they contain logins; for files from others use
    `studies import`. People who withdrew after the backup are in it again: remove them
    again with `studies forget`.

    Example: termdp studies restore people-2026-05-01.backup --db new.db
    """

    file: tyro.conf.Positional[Path]
    """A file from `termdp studies backup`."""
    db: str
    """File or URL of the new store (postgresql+psycopg://user@host/name)."""
    json: bool = False
    """Print JSON for programs."""


@needs_people_packages()
def run(args: Args) -> None:
    """Restore the backup and print its size."""
    from termdp.people.records.backup import restore
    from termdp.people.records.database import url_without_password

    rows = restore(args.file, args.db)
    if args.json:
        print(json.dumps({"rows": rows}))
    else:
        shown = url_without_password(args.db)
        print(f"{shown}: {rows['studies']} studies, {rows['reviews']} reviews")
