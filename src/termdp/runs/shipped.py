"""Agents that come with the package, by name: `termdp.load("breakout/termpg")`.

Each is a file of `agent.save` under `termdp/shipped`, made by `tools/ship_agents.py`,
which also records in `cards.json` how it was trained and how well it plays.
"""

from dataclasses import dataclass
from pathlib import Path

from termdp.reading import read_json

FOLDER = Path(__file__).parent.parent / "shipped"
CARDS = "cards.json"
SUFFIX = ".safetensors"


@dataclass(frozen=True)
class ShippedAgent:
    """The model card of one agent.

    Attributes:
        name: environment and method, as `termdp.load` takes it.
        command: the command that trained it.
        seed: its seed.
        steps: steps of its training.
        commit: of the code that trained it.
        episodes: number of fresh episodes that it played under the observer.
        return_mean: over these episodes.
        return_low: lower end of the mean's 95% interval.
        return_high: upper end.
        stopped: share of them that the observer ended.
        licence: of the weights.
    """

    name: str
    command: str
    seed: int
    steps: int
    commit: str
    episodes: int
    return_mean: float
    return_low: float
    return_high: float
    stopped: float
    licence: str


def shipped_agents() -> list[ShippedAgent]:
    """The cards of all agents."""
    path = FOLDER / CARDS
    return read_json(path, list[ShippedAgent]) if path.exists() else []


def agent_path(path: str | Path) -> Path:
    """The path of an agent: the user's file or folder, or a shipped one.

    Args:
        path: a path, or a shipped agent's name such as "breakout/termpg". If both
            exist, the path is meant.
    """
    path = Path(path)
    if path.exists():
        return path
    if any(path.as_posix() == card.name for card in shipped_agents()):
        return (FOLDER / path).with_suffix(SUFFIX)
    raise ValueError(
        "expected a run's folder, an agent's file, or a name that `termdp agents` lists, "
        f"got {path}: no such file"
    )
