"""`termdp studies simulate`: simulated passengers review rides as people do."""

import json
import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import tyro

from termdp.people.extra import needs_people_packages


@dataclass(frozen=True)
class Args:
    """Let five SIMULATED passengers review a study's rides, through the server.

    No human is involved: the passengers are programs with rules, patience, memory,
    reaction times and lapses (docs/passengers.md). Without --url a temporary server is
    started; with --url, the admin token is read from TERMDP_ADMIN_TOKEN.

    Example: termdp studies simulate comfort --stops 512
    """

    study: tyro.conf.Positional[str]
    """The study's name; it needs rides (`termdp studies rides`)."""
    db: str = "people.db"
    """File or URL of the store, for the temporary server."""
    url: str | None = None
    """A running server to use instead."""
    stops: int = 512
    """Total number of stops to collect."""
    seed: int = 0
    """Seed of the passengers' randomness."""
    json: bool = False
    """Print JSON for programs."""


@needs_people_packages()
def run(args: Args) -> None:
    """Collect the stops and print how many."""
    from rich.console import Console
    from rich.progress import Progress

    from termdp.people.records.tokens import ADMIN_VARIABLE
    from termdp.people.simulated.simulation import own_server, simulate

    if args.stops < 1:
        raise ValueError(f"expected at least 1 stop to collect, got {args.stops}")
    token = os.environ.get(ADMIN_VARIABLE, "")
    if args.url is None:
        from termdp.people.records.study_store import StudyStore

        with StudyStore.open(args.db) as store:
            store.study(args.study)  # refuse a wrong name before a server is started
        server: AbstractContextManager[tuple[str, str]] = own_server(args.db)
    elif not token:
        raise ValueError(f"expected the server's admin token in {ADMIN_VARIABLE}")
    else:
        server = nullcontext((args.url, token))
    console = Console(stderr=True)
    with (
        server as (url, token),
        Progress(console=console, disable=not console.is_terminal) as bar,
    ):
        task = bar.add_task("stops", total=args.stops)
        found = simulate(
            url,
            token,
            args.study,
            args.stops,
            args.seed,
            lambda stops, reviews: bar.update(task, completed=stops),
        )
    if args.json:
        print(json.dumps({"study": args.study, "stops": found}))
        return
    for name, count in found.items():
        print(f"{name}: {count} stops")
