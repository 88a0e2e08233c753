"""`termdp eval`: fresh episodes with a trained policy."""

import json
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Args:
    """Play fresh episodes with a run's policies: mean, 95% interval, how they end.

    Example: termdp eval runs/breakout-termpg --episodes 256
    """

    run: tyro.conf.Positional[Path]
    """Folder of a run."""
    episodes: int = 128
    """Episodes per seed."""
    seed: int = 1_000_000
    """Seed of the evaluation's own randomness."""
    json: bool = False
    """Print JSON for programs instead of a table."""


def run(args: Args) -> None:
    """Evaluate and print."""
    from termdp.runs.evaluate import evaluation_table, open_run

    if args.episodes < 1:
        raise ValueError(f"expected at least 1 episode, got {args.episodes}")
    found = evaluation_table(open_run(args.run), args.episodes, args.seed)
    if args.json:
        print(json.dumps(found, indent=2))
        return
    table = Table(
        title=f"{found['env']} {found['method']}: {args.episodes} fresh episodes a seed",
        title_justify="left",
    )
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
