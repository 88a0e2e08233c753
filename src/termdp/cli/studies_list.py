"""`termdp studies list`: the studies in a store."""

import json
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from termdp.people.extra import needs_people_packages


@dataclass(frozen=True)
class Args:
    """List the studies in a store with their rides, supervisors, reviews and stops.

    Example: termdp studies list --db people.db
    """

    db: str = "people.db"
    """File or URL of the store (postgresql+psycopg://user@host/name)."""
    json: bool = False
    """Print JSON for programs instead of a table."""


@needs_people_packages()
def run(args: Args) -> None:
    """Print the table."""
    from termdp.people.records.study_store import StudyStore

    with StudyStore.open(args.db) as store:
        studies = store.studies()
    if args.json:
        print(json.dumps(studies, indent=2))
        return
    table = Table(title=f"studies in {args.db}", title_justify="left")
    table.add_column("name")
    table.add_column("title")
    table.add_column("environment")
    for heading in ("rides", "supervisors", "reviews", "stops"):
        table.add_column(heading, justify="right")
    for row in studies:
        numbers = [str(row[n]) for n in ("rides", "supervisors", "reviews", "stops")]
        table.add_row(row["name"], row["title"], row["env"], *numbers)
    Console().print(table)
