"""`termdp envs`: the table of environments."""

import json
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from termdp.registry import REGISTRY, make


@dataclass(frozen=True)
class Args:
    """List the environments, each with its observer.

    Example: termdp envs --json
    """

    json: bool = False
    """Print a JSON list for programs instead of a table."""


def run(args: Args) -> None:
    """Print the list."""
    rows = [describe(env_id) for env_id in REGISTRY]
    if args.json:
        print(json.dumps(rows, indent=2))
        return
    table = Table(
        title="termdp environments",
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    # What is typed elsewhere is never cut in two.
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


def describe(env_id: str) -> dict[str, Any]:
    """One environment in plain data."""
    spec = REGISTRY[env_id]
    env, params = make(env_id)
    return {
        "id": spec.id,
        "gym_id": spec.gym_id,
        "observation_shape": list(env.observation_space(params).shape),
        "num_actions": env.num_actions,
        "cost": spec.cost,
        "window": spec.window,
        "bias": spec.bias,
        "description": spec.description,
    }
