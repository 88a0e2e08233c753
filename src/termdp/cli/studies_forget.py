"""`termdp studies forget`: remove one person from a study."""

import json
from dataclasses import dataclass

import tyro

from termdp.people.extra import needs_people_packages


@dataclass(frozen=True)
class Args:
    """Remove a person from a study for good: reviews, drives, live rides, login.

    Earlier exports, fits and backups are separate files: delete them yourself.

    Example: termdp studies forget comfort ann --db people.db
    """

    study: tyro.conf.Positional[str]
    """The study's name."""
    person: tyro.conf.Positional[str]
    """The supervisor's name."""
    db: str = "people.db"
    """File or URL of the store (postgresql+psycopg://user@host/name)."""
    keep_stops: tyro.conf.FlagCreatePairsOff[bool] = False
    """Keep their stops without name, reasons and times of day; only if they agree."""
    json: bool = False
    """Print JSON for programs."""


@needs_people_packages()
def run(args: Args) -> None:
    """Remove the person and print what was deleted."""
    import dataclasses

    from termdp.people.records.study_store import StudyStore
    from termdp.people.records.withdrawal import forget

    with StudyStore.open(args.db) as store:
        gone = forget(store, args.study, args.person, args.keep_stops)
    if args.json:
        print(json.dumps(dataclasses.asdict(gone)))
    elif gone.kept_as is None:
        print(f"{args.person}: {gone.reviews} reviews and {gone.drives} drives deleted")
    else:
        print(f"{args.person}: {gone.reviews} reviews kept as {gone.kept_as}")
