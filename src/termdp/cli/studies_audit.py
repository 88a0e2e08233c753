"""`termdp studies audit`: what was done to a store, by whom and when."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime

import tyro

from termdp.people.extra import needs_people_packages


@dataclass(frozen=True)
class Args:
    """List what was done to a store, newest first; reviews are not listed.

    Example: termdp studies audit comfort --db people.db
    """

    study: tyro.conf.Positional[str | None] = None
    """The study's name (default: all studies)."""
    db: str = "people.db"
    """File or URL of the store (postgresql+psycopg://user@host/name)."""
    json: bool = False
    """Print JSON for programs."""


@needs_people_packages()
def run(args: Args) -> None:
    """Print the log."""
    from termdp.people.records import audit
    from termdp.people.records.study_store import StudyStore

    with StudyStore.open(args.db) as store:
        if args.study is not None:
            store.study(args.study)
        with store.database.reading() as session:
            found = audit.entries(session, args.study)
    if args.json:
        print(json.dumps(found, indent=2))
        return
    for row in found:
        at = datetime.fromtimestamp(row["at_ms"] / 1000, UTC)
        words = [row["who"], row["what"], row["study"] or "", row["person"] or ""]
        print(f"{at:%Y-%m-%d %H:%M:%S} UTC", *filter(None, words), sep="  ")
