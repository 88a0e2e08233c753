"""`termdp envs`: the table of environments."""

import json
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from termdp.registry import REGISTRY, EnvironmentEntry


@dataclass(frozen=True)
class Args:
    """List the environments, each with its observer.

    Example: termdp envs --json
    """

    json: bool = False
    """Print a JSON list for programs instead of a table."""


def run(args: Args) -> None:
    """Print the list."""
    rows = [describe(entry) for entry in REGISTRY.values()]
    if args.json:
        print(json.dumps(rows, indent=2))
        return
    table = Table(
        title="termdp environments",
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    # Users type these ids elsewhere: never break them.
    table.add_column("id, Gymnasium's id", no_wrap=True)
    for heading in ("observed", "actions", "cost", "w", "b"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        shape = "×".join(map(str, row["observation_shape"]))
        table.add_row(
            f"{row['id']}\n[dim]{row['gym_id']}[/dim]",
            shape,
            str(row["num_actions"]),
            row["cost"],
            str(row["window"]),
            f"{row['bias']:g}",
        )
    Console().print(table)


def describe(entry: EnvironmentEntry) -> dict[str, Any]:
    """One environment in plain data."""
    return {
        "id": entry.id,
        "gym_id": entry.gym_id,
        "observation_shape": list(entry.observation_shape),
        "num_actions": entry.num_actions,
        "cost": entry.cost,
        "window": entry.window,
        "bias": entry.bias,
        "description": entry.description,
    }
