"""`termdp studies backup`: a whole store in one file."""

import json
from dataclasses import dataclass
from pathlib import Path

import tyro

from termdp.people.extra import needs_people_packages


@dataclass(frozen=True)
class Args:
    """Write a whole store, as it is at one moment, to a new file.

    Servers may keep running. The file holds everything, logins included: keep it as
    safe as the store.

    Example: termdp studies backup people-2026-05-01.backup --db people.db
    """

    file: tyro.conf.Positional[Path]
    """The file to write; a failed backup leaves no file."""
    db: str = "people.db"
    """File or URL of the store (postgresql+psycopg://user@host/name)."""
    json: bool = False
    """Print JSON for programs."""


@needs_people_packages()
def run(args: Args) -> None:
    """Copy, and say how much."""
    from termdp.people.records.backup import backup

    rows = backup(args.db, args.file)
    if args.json:
        print(json.dumps({"file": str(args.file), "rows": rows}))
    else:
        print(f"{args.file}: {rows['studies']} studies, {rows['reviews']} reviews")
