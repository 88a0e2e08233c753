"""`termdp studies import`: a study from its file."""

import json
from dataclasses import dataclass
from pathlib import Path

import tyro

from termdp.people.extra import needs_people_packages


@dataclass(frozen=True)
class Args:
    """Read a file of `termdp studies export` into a store; every row is checked.

    Example: termdp studies import comfort.parquet --db other.db
    """

    file: tyro.conf.Positional[Path]
    """The file."""
    db: str = "people.db"
    """File or URL of the store (postgresql+psycopg://user@host/name)."""
    name: str | None = None
    """Another name for the study."""
    json: bool = False
    """Print JSON for programs."""


@needs_people_packages()
def run(args: Args) -> None:
    """Import, and print what is in the study."""
    from termdp.people.records.study_files import import_study
    from termdp.people.records.study_store import StudyStore

    with StudyStore.open(args.db) as store:
        name = import_study(store, args.file, args.name)
        (row,) = [row for row in store.studies() if row["name"] == name]
    if args.json:
        print(json.dumps(row))
    else:
        print(
            f"{name}: {row['rides']} rides, {row['supervisors']} supervisors, "
            f"{row['reviews']} reviews, {row['stops']} stops"
        )
