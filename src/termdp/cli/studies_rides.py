"""`termdp studies rides`: rides of agents on their way from random to expert."""

import json
from dataclasses import dataclass
from pathlib import Path

import tyro

from termdp.people.extra import needs_people_packages


@dataclass(frozen=True)
class Args:
    """Add rides to a study, driven by snapshots of agents trained without an observer.

    Every snapshot drives equally often, and every ride has its own road. Train such an
    agent with: termdp train backseat pg --no-observer --snapshots 12 --out runs/driver
    The study is created if it does not exist.

    Example: termdp studies rides comfort --agents runs/driver --count 5000
    """

    study: tyro.conf.Positional[str] = "rides"
    """The study's name."""
    agents: Path = Path("runs")
    """A run's folder, or a folder of runs."""
    count: int = 5000
    """How many rides."""
    steps: int = 200
    """Longest ride, in steps."""
    db: str = "people.db"
    """File or URL of the store."""
    seed: int = 0
    """Seed of the roads."""
    json: bool = False
    """Print JSON for programs."""


@needs_people_packages()
def run(args: Args) -> None:
    """Drive and store."""
    from rich.console import Console
    from rich.progress import Progress

    from termdp.people.driving.rides import record_rides
    from termdp.people.driving.snapshot_drivers import snapshot_drivers
    from termdp.people.records.study_store import (
        NotFoundError,
        StudyStore,
        check_name,
        new_study,
    )

    check_name(args.study, "study name")
    if args.count < 1:
        raise ValueError(f"expected at least 1 ride, got {args.count}")
    drivers = snapshot_drivers(args.agents)
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("rides", total=args.count)
        rides, crashed = record_rides(
            drivers,
            args.count,
            args.steps,
            args.seed,
            lambda done: bar.update(task, completed=done),
        )
    with StudyStore.open(args.db) as store:
        try:
            store.study(args.study)
        except NotFoundError:
            study = new_study(args.study, seed=args.seed)
            store.begin_study(study, rides, crashed)
        else:
            store.add_rides(args.study, rides, crashed)
    found = {
        "study": args.study,
        "rides": len(rides),
        "drivers": len(drivers),
        "crashes": sum(crashed),
        "steps": sum(len(ride) for ride in rides),
    }
    if args.json:
        print(json.dumps(found))
        return
    print(
        f"{args.study}: {len(rides)} rides by {len(drivers)} snapshots, "
        f"{found['steps']} steps, {found['crashes']} crashes"
    )
