"""`termdp studies export`: the reviews of a study as a Parquet file."""

import json
from dataclasses import dataclass
from pathlib import Path

import tyro

from termdp.people.extra import needs_people_packages


@dataclass(frozen=True)
class Args:
    """Write a study's reviews as Parquet, one row per step shown.

    Example: termdp studies export comfort comfort.parquet --db people.db
    """

    study: tyro.conf.Positional[str]
    """The study's name."""
    out: tyro.conf.Positional[Path]
    """File to write; a failed export leaves no file."""
    db: str = "people.db"
    """File or URL of the store (postgresql+psycopg://user@host/name)."""
    json: bool = False
    """Print JSON for programs."""


@needs_people_packages()
def run(args: Args) -> None:
    """Export, and print the number of steps."""
    from termdp.people.records.study_files import export_study
    from termdp.people.records.study_store import StudyStore

    with StudyStore.open(args.db) as store:
        rows = export_study(store, args.study, args.out)
    if args.json:
        print(json.dumps({"study": args.study, "file": str(args.out), "rows": rows}))
    else:
        print(f"{args.out}: {rows} steps of study {args.study}")
