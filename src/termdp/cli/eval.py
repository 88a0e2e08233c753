"""`termdp eval`: fresh episodes with a trained policy."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Args:
    """Play fresh episodes with a run's policies; print returns and how episodes end.

    Example: termdp eval runs/breakout-termpg --episodes 256 --no-observer
    """

    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """Folder of a run, a file of `agent.save`, or a name from `termdp agents`."""
    episodes: int = 128
    """Episodes per seed."""
    observer: Path | None = None
    """File of an observer to use instead of the one in training."""
    no_observer: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Play without an observer: nobody stops the game."""
    deterministic: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Take the most probable action instead of sampling one."""
    seed: int = 1_000_000
    """Seed of the evaluation episodes."""
    json: bool = False
    """Print JSON for programs instead of a table."""


def run(args: Args) -> None:
    """Evaluate and print."""
    from termdp.runs.evaluate import agents_of, evaluate

    if args.no_observer and args.observer is not None:
        raise ValueError("expected --observer or --no-observer, got both")
    if not 0 <= args.seed < 2**32:
        raise ValueError(f"expected --seed from 0 to {2**32 - 1}, got {args.seed}")
    observer = False if args.no_observer else args.observer
    card = agents_of(args.run)[0].card
    found = evaluate(
        args.run,
        observer=observer,
        episodes=args.episodes,
        deterministic=args.deterministic,
        seed=args.seed,
    )
    parts = found.parts or {card.spec.seed: found}
    rows = [{"seed": seed, **part.to_plain()} for seed, part in parts.items()]
    watched = _who(args, card.spec)
    table = {
        "env": card.spec.env,
        "method": card.spec.method_name,
        "observer": watched,
        "deterministic": args.deterministic,
        "episodes": args.episodes,
        "seeds": rows,
        "all": found.to_plain(),
    }
    if args.json:
        print(json.dumps(table, indent=2))
        return
    _print(table)


def _who(args: Args, spec: Any) -> str:
    """Which observer watches the evaluation, in words."""
    if args.no_observer or (args.observer is None and spec.observer is False):
        return "nobody"
    if args.observer is not None:
        return str(args.observer)
    return "as in training"


def _print(found: dict[str, Any]) -> None:
    title = (
        f"{found['env']} {found['method']}: {found['episodes']} fresh episodes a seed; "
        f"observer: {found['observer']}"
    )
    table = Table(title=title, title_justify="left")
    headings = ("seed", "return", "95% interval", "length", "stopped", "game over")
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in [*found["seeds"], {"seed": "all", **found["all"]}]:
        interval = row["return_interval"]
        shown = "–" if interval is None else "{:.3f} … {:.3f}".format(*interval)
        table.add_row(
            str(row["seed"]),
            f"{row['return_mean']:.3f}",
            shown,
            f"{row['length_mean']:.1f}",
            f"{row['stop_rate']:.1%}",
            f"{row['game_over_rate']:.1%}",
        )
    Console().print(table)
    if len(found["seeds"]) > 1:
        print("intervals: of a seed over its episodes, of all over the seeds' means")
