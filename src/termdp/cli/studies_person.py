"""`termdp studies person`: what is stored about one person."""

import json
from dataclasses import dataclass
from pathlib import Path

import tyro

from termdp.people.extra import needs_people_packages


@dataclass(frozen=True)
class Args:
    """Write what is stored about a person into a new folder: person.json, consent.txt.

    They have a right to it; see docs/responsible_use.md.

    Example: termdp studies person comfort ann --out ann
    """

    study: tyro.conf.Positional[str]
    """The study's name."""
    person: tyro.conf.Positional[str]
    """The supervisor's name."""
    out: Path
    """Folder to write; it must be new."""
    db: str = "people.db"
    """File or URL of the store (postgresql+psycopg://user@host/name)."""
    json: bool = False
    """Print JSON for programs."""


@needs_people_packages()
def run(args: Args) -> None:
    """Write, and say how much."""
    from termdp.people.records.study_store import StudyStore
    from termdp.people.records.withdrawal import write_person

    with StudyStore.open(args.db) as store:
        reviews = write_person(store, args.study, args.person, args.out)
    if args.json:
        print(json.dumps({"folder": str(args.out), "reviews": reviews}))
    else:
        print(f"{args.out}: {reviews} reviews of {args.person} in study {args.study}")
