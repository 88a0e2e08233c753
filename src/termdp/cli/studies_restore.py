"""`termdp studies restore`: a backup becomes a store again."""

import json
from dataclasses import dataclass
from pathlib import Path

import tyro

from termdp.people.extra import needs_people_packages


@dataclass(frozen=True)
class Args:
    """Read a backup into a new database, of either kind.

    Restore only your own backups: they contain logins. Read files of others with
    `termdp studies import`. People who withdrew after the backup are back: forget them
    again.

    Example: termdp studies restore people-2026-05-01.backup --db new.db
    """

    file: tyro.conf.Positional[Path]
    """A file of `termdp studies backup`."""
    db: str
    """File or URL of the new store (postgresql+psycopg://user@host/name)."""
    json: bool = False
    """Print JSON for programs."""


@needs_people_packages()
def run(args: Args) -> None:
    """Copy, and say how much."""
    from termdp.people.records.backup import restore
    from termdp.people.records.database import url_without_password

    rows = restore(args.file, args.db)
    if args.json:
        print(json.dumps({"rows": rows}))
    else:
        shown = url_without_password(args.db)
        print(f"{shown}: {rows['studies']} studies, {rows['reviews']} reviews")
