"""Train the agents that come with the package, and write their model cards.

    python tools/ship_agents.py                      # all of them
    python tools/ship_agents.py breakout/termpg      # one; the other cards stay

One seed each, the first: nothing is chosen by how well it came out. The agent then plays
fresh episodes under the observer.
"""

import argparse
import dataclasses
import time
from pathlib import Path

import termdp
from termdp.files import write_json
from termdp.provenance import commit
from termdp.registry import REGISTRY
from termdp.runs.shipped import CARDS, FOLDER, SUFFIX, ShippedAgent, shipped_agents

METHODS = ("pg", "termpg")
STEPS = 300_000
EPISODES = 1024
LICENCE = "Apache-2.0"


def ship(name: str, steps: int) -> ShippedAgent:
    """Train, save and play one agent."""
    env, method = name.split("/")
    agent = termdp.train(env, method, steps=steps, on_progress=False).agent()
    path = agent.save((FOLDER / name).with_suffix(SUFFIX), half=True)
    played = termdp.evaluate(path, episodes=EPISODES, seed=1000)
    interval = played.return_interval
    assert interval is not None
    return ShippedAgent(
        name=name,
        command=f"termdp train {env} {method} --steps {steps}",
        seed=agent.card.spec.seed,
        steps=steps,
        commit=commit(),
        episodes=EPISODES,
        return_mean=round(played.return_mean, 3),
        return_low=round(interval[0], 3),
        return_high=round(interval[1], 3),
        stopped=round(played.stop_rate, 4),
        licence=LICENCE,
    )


def main() -> None:
    """Read the command line, ship, write the cards down after each."""
    everything = [f"{env}/{method}" for env in REGISTRY for method in METHODS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", default=[])
    parser.add_argument("--steps", type=int, default=STEPS)
    args = parser.parse_args()
    cards = {card.name: card for card in shipped_agents()}
    for name in args.names or everything:
        if name not in everything:
            parser.error(f"expected one of {', '.join(everything)}, got {name!r}")
        began = time.perf_counter()
        cards[name] = card = ship(name, args.steps)
        rows = [dataclasses.asdict(cards[n]) for n in everything if n in cards]
        write_json(Path(FOLDER / CARDS), rows)
        seconds = time.perf_counter() - began
        print(
            f"{name}: {card.return_mean:g}, stopped {card.stopped:.0%} "
            f"({seconds:.0f} s)",
            flush=True,
        )


if __name__ == "__main__":
    main()
