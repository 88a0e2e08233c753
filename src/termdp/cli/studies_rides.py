"""`termdp studies rides`: rides by agents at all stages of their training."""

import json
from dataclasses import dataclass
from pathlib import Path

import tyro

from termdp.people.extra import needs_people_packages


@dataclass(frozen=True)
class Args:
    """Add rides to a study, driven by snapshots of agents trained without an observer.

    All drivers drive equally often, and every ride has its own seed. Train an agent
    with: termdp train backseat pg --no-observer --snapshots 12 --out runs/driver
    Shipped agents (`termdp agents`) and random can drive too. If the study does not
    exist, it is created.

    Example: termdp studies rides comfort --agents runs/driver --count 5000
    Example: termdp studies rides bricks --env breakout --agents random breakout/pg
    """

    study: tyro.conf.Positional[str] = "rides"
    """The study's name."""
    agents: tuple[str, ...] = ("runs",)
    """Who drives: run folders with snapshots, files or names of agents, or random."""
    env: str | None = None
    """Environment of a new study (default: backseat); an existing study keeps its own."""
    count: int = 5000
    """Number of rides to add."""
    steps: int = 200
    """Maximum length of a ride, in steps."""
    db: str = "people.db"
    """File or URL of the store."""
    seed: int = 0
    """Seed for the roads."""
    json: bool = False
    """Print JSON for programs."""


@needs_people_packages()
def run(args: Args) -> None:
    """Record the rides and store them."""
    from rich.console import Console
    from rich.progress import Progress

    from termdp.people.driving.rides import record_rides
    from termdp.people.driving.snapshot_drivers import chosen_drivers
    from termdp.people.records.study_store import (
        NotFoundError,
        StudyStore,
        check_name,
        new_study,
    )

    check_name(args.study, "study name")
    if args.count < 1:
        raise ValueError(f"expected at least 1 ride, got {args.count}")
    env = _env(args)
    drivers = chosen_drivers(args.agents, env)
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
            study = new_study(args.study, seed=args.seed, env=env)
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
        f"{args.study}: {len(rides)} rides of {env} by {len(drivers)} drivers, "
        f"{found['steps']} steps, {found['crashes']} ended by the game itself"
    )


def _env(args: Args) -> str:
    """The environment of the study, or of the one to be created."""
    from termdp.people.driving.ride import BACKSEAT, studied
    from termdp.people.records.study_store import StudyStore

    known = {}
    if "://" in args.db or Path(args.db).exists():  # otherwise there is no store yet
        with StudyStore.open(args.db) as store:
            known = {row["name"]: row["env"] for row in store.studies()}
    env = args.env or known.get(args.study, BACKSEAT)
    studied(env)
    if known.get(args.study, env) != env:
        raise ValueError(
            f"expected --env {known[args.study]}, the environment of study {args.study}, "
            f"got {env}"
        )
    return str(env)
