"""`termdp methods`: the table of methods."""

import dataclasses
import json
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from termdp.agents.methods import METHODS, unused_numbers


@dataclass(frozen=True)
class Args:
    """List the methods.

    Example: termdp methods --json
    """

    json: bool = False
    """Print a JSON list for programs instead of a table."""


def run(args: Args) -> None:
    """Print the list."""
    rows = [
        {
            "id": name,
            **dataclasses.asdict(method),
            "end_handling": method.handles_ends,
        }
        for name, method in METHODS.items()
    ]
    if args.json:
        print(json.dumps(rows, indent=2))
        return
    table = Table(
        title="termdp methods",
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    # Users type these ids elsewhere: never break them.
    table.add_column("id", no_wrap=True)
    for heading in ("what it is", "discount", "ends", "optimism"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        constant = "matched" if row["discount"] is None else f"{row['discount']:g}"
        discount = f"{constant} × (1 − ρ)" if row["dynamic_discount"] else constant
        unused = unused_numbers(METHODS[row["id"]])
        optimism = "–" if "optimism" in unused else row["optimism"]
        table.add_row(
            row["id"], row["description"], discount, row["end_handling"], optimism
        )
    Console().print(table)
