"""`termdp studies improve`: a driver learns from a study's stops, round by round."""

import json
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from termdp.people.extra import needs_people_packages
from termdp.people.improving.settings import RoundSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from termdp.people.records.study_store import StudyStore

MOST_ROUNDS = 1000


@dataclass(frozen=True)
class Args:
    """Let a driver learn from all stops of a study so far, and drive again: one round.

    A round fits an observer to the stops, trains the last driver further under it, and
    adds new rides to the study: half by the new driver, half by earlier ones, in turn.
    Then supervisors review again (`termdp serve`). An interrupted round continues where
    it was. With --simulated, five SIMULATED passengers review between rounds, so several
    --rounds run without people.

    Example: termdp studies improve comfort
    """

    study: tyro.conf.Positional[str]
    """The study's name; it needs reviews."""
    db: str = "people.db"
    """File or URL of the store (postgresql+psycopg://user@host/name)."""
    rounds: int = 1
    """How many rounds; more than one needs --simulated."""
    simulated: tyro.conf.FlagCreatePairsOff[bool] = False
    """Let simulated passengers review all rides, before each round and at the end."""
    driver: Path | None = None
    """Run of Backseat Driver to start from; one is trained unobserved unless given."""
    out: Path | None = None
    """Folder for the rounds of this study; improve/STUDY unless given."""
    method: str = RoundSettings.method
    """How drivers are trained (`termdp methods`); oracle is told the fitted costs."""
    steps: int = RoundSettings.steps
    """Training steps in each round."""
    start_steps: int = RoundSettings.start_steps
    """Training steps of the first driver."""
    rides: int = RoundSettings.rides
    """Rides to add in each round."""
    ride_steps: int = RoundSettings.ride_steps
    """Longest ride, in steps."""
    window: int = RoundSettings.window
    """Steps that the fitted observer remembers."""
    delay: int | None = RoundSettings.delay
    """Reaction delay in steps; the one that explains held-out rides best unless given."""
    gradient_steps: int = RoundSettings.gradient_steps
    """Gradient steps of the observer's fit."""
    seed: int = RoundSettings.seed
    """Seed of fits, training, roads and simulated passengers."""
    json: bool = False
    """Print JSON for programs."""


@needs_people_packages()
def run(args: Args) -> None:
    """Do the rounds and print their results."""
    from rich.console import Console

    from termdp.people.improving.rounds import improve
    from termdp.people.records.study_store import StudyStore
    from termdp.people.simulated.simulation import own_server

    if not 1 <= args.rounds <= MOST_ROUNDS:
        raise ValueError(
            f"expected --rounds from 1 to {MOST_ROUNDS}, got {args.rounds}"
        )
    if args.rounds > 1 and not args.simulated:
        raise ValueError(
            f"expected one round at a time, got {args.rounds}: people review between "
            "the rounds. Use --simulated to run several without people"
        )
    settings = _settings(args)
    out = args.out or Path("improve") / args.study
    with StudyStore.open(args.db) as store:
        store.study(args.study)  # refuse a wrong name before any work
        server: AbstractContextManager[Any] = nullcontext(None)
        if args.simulated:
            server = own_server(args.db)
        with server as service, Console(stderr=True).status("reading") as status:
            rounds = []
            for _ in range(args.rounds):
                _let_review(args, store, service, status.update)
                done = improve(store, args.study, out, settings, status.update)
                rounds.append(done)
                if not args.json:
                    print(_sentence(done), flush=True)
            _let_review(args, store, service, status.update)
            shown = _table(store, args.study)
    if args.json:
        print(json.dumps({"rounds": rounds, "results": shown}))
        return
    for row in shown:
        print(_row(row))


def _settings(args: Args) -> RoundSettings:
    names = {field.name for field in fields(RoundSettings)} - {"driver"}
    driver = None if args.driver is None else str(args.driver.resolve())
    return RoundSettings(driver=driver, **{name: getattr(args, name) for name in names})


def _let_review(
    args: Args, store: "StudyStore", service: Any, tell: "Callable[[str], None]"
) -> None:
    """Simulated passengers review what they have not seen, if they are asked to."""
    if service is None:
        return
    from termdp.people.records.rounds import rounds_of
    from termdp.people.simulated.simulation import review_everything

    number = len(rounds_of(store, args.study))
    url, token = service
    review_everything(
        url,
        token,
        args.study,
        seed=args.seed + 1000 * number,
        on_progress=lambda stops, reviews: tell(
            f"simulated passengers: {reviews} reviews, {stops} stops"
        ),
    )


def _table(store: "StudyStore", study: str) -> list[dict[str, Any]]:
    from termdp.people.records.rounds import rounds_of
    from termdp.people.server.round_results import rounds_table

    return rounds_table(rounds_of(store, study), store.showings(study))


def _sentence(done: dict[str, Any]) -> str:
    return (
        f"{done['study']}: round {done['round']} learned from {done['stops']} stops in "
        f"{done['reviews']} reviews (reaction delay {done['reaction_delay']} steps) and "
        f"added {done['rides']} rides; kept in {done['folder']}"
    )


def _row(row: dict[str, Any]) -> str:
    if not row["reviews"]:
        return f"{row['driver']}: not reviewed yet"
    rate, total = row["stop_rate"], row["return"]
    return (
        f"{row['driver']}: stopped in {rate['value']:.0%} of {row['reviews']} reviews, "
        f"return {total['value']:.1f}, length {row['length']['value']:.0f} steps"
    )
