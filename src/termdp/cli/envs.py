"""`termdp envs`: the table of environments."""

import json
from dataclasses import dataclass
from typing import Any

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
    table = Table(title="termdp environments", title_justify="left")
    for heading in ("id", "Gymnasium id", "observation", "actions", "cost", "w", "b"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        shape = "×".join(map(str, row["observation_shape"]))
        table.add_row(
            row["id"],
            row["gym_id"],
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
