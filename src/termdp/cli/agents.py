"""`termdp agents`: the trained agents that come with the package."""

import dataclasses
import json
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from termdp.runs.shipped import ShippedAgent, shipped_agents


@dataclass(frozen=True)
class Args:
    """List the agents that come with the package, and how well they play.

    Example: termdp agents, then termdp video breakout/termpg out.gif
    """

    json: bool = False
    """Print the model cards as JSON, with the command that trained each."""


def run(args: Args) -> None:
    """Print the list."""
    cards = shipped_agents()
    if args.json:
        print(json.dumps([dataclasses.asdict(card) for card in cards], indent=2))
        return
    table = Table(
        title="agents that come with termdp",
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        caption='termdp.load("NAME") · termdp video NAME out.gif · termdp eval NAME',
        caption_justify="left",
    )
    table.add_column("name", no_wrap=True)
    for heading in ("return [95%]", "stopped", "trained for"):
        table.add_column(heading, justify="right")
    for card in cards:
        table.add_row(*_cells(card))
    Console().print(table)


def _cells(card: ShippedAgent) -> tuple[str, ...]:
    interval = f"{card.return_low:.1f} … {card.return_high:.1f}"
    return (
        card.name,
        f"{card.return_mean:.1f} [{interval}]",
        f"{card.stopped:.0%}",
        f"{card.steps:,} steps",
    )
