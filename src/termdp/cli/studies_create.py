"""`termdp studies create`: a new study with rides and invite links."""

import json
from dataclasses import dataclass
from pathlib import Path

import tyro

from termdp.people.extra import needs_people_packages


@dataclass(frozen=True)
class Args:
    """Create a study: rides to review, and an invite link for each supervisor.

    A study shows Backseat Driver, or any other environment that can be drawn.

    Example: termdp studies create comfort --rides 40 --invite ann bo

    Example: termdp studies create bricks --env breakout --rides 40 --invite ann
    """

    name: tyro.conf.Positional[str]
    """The study's name: letters, digits, '.', '_', '-'."""
    env: str = "backseat"
    """The environment to show (see `termdp envs`)."""
    db: str = "people.db"
    """File or URL of the store (postgresql+psycopg://user@host/name)."""
    title: str = ""
    """Title that supervisors see (default: the name)."""
    consent: Path | None = None
    """File with the consent text that supervisors must agree to first."""
    rides: int = 0
    """How many rides to add. On the road scripted drivers drive; other games are played
    by the shipped agents and a random player. `termdp studies rides` adds others."""
    steps: int = 200
    """Maximum length of a ride, in steps."""
    step_ms: int = 200
    """Milliseconds per step at normal speed."""
    repeat_share: float = 0.1
    """Share of rides that are shown twice, to measure consistency."""
    seed: int = 0
    """Seed for the rides and for the order in which each supervisor sees them."""
    invite: tuple[str, ...] = ()
    """Names of supervisors to invite."""
    url: str = "http://127.0.0.1:8040"
    """The server's address; invite links start with it."""
    json: bool = False
    """Print JSON for programs instead of text."""


@needs_people_packages()
def run(args: Args) -> None:
    """Create the study, add rides, invite supervisors, print the links."""
    from termdp.people.driving.ride import check_steps
    from termdp.people.driving.rides import record_rides
    from termdp.people.driving.trained import usual_drivers
    from termdp.people.records.study_store import (
        StudyStore,
        check_person,
        new_study,
    )

    if args.rides < 0:
        raise ValueError(f"expected 0 rides or more, got {args.rides}")
    for name in args.invite:
        check_person(name)
    study = new_study(
        args.name,
        args.title,
        None if args.consent is None else _text(args.consent),
        args.step_ms,
        args.repeat_share,
        args.seed,
        args.env,
    )
    check_steps(args.steps)
    with StudyStore.open(args.db) as store:
        store.check_new(args.name)
        drivers = usual_drivers(args.env) if args.rides else []
        driven = record_rides(drivers, args.rides, args.steps, args.seed)
        tokens = store.begin_study(study, *driven, args.invite)
    links = {name: f"{args.url}/join#{token}" for name, token in tokens.items()}
    if args.json:
        print(json.dumps({"study": args.name, "rides": args.rides, "invites": links}))
        return
    print(
        f"{args.name}: {args.rides} rides, {len(links)} invite links (each works once)"
    )
    for name, link in links.items():
        print(f"  {name}: {link}")


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except UnicodeDecodeError as error:
        raise ValueError(f"expected a text file in UTF-8, got {path}") from error
