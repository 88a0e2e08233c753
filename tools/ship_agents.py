"""Choose the agents that come with the package, and write their model cards.

    python tools/ship_agents.py --sweeps results/methods_1m/part*    # all of them
    python tools/ship_agents.py notifier/termpg      # one; the other cards stay

An agent of a sweep (`termdp bench … --agents`) is taken as it is; others are trained. It
is always the agent of the first seed: nothing is chosen by how well it plays. The agent
then plays fresh episodes under the observer.
"""

import argparse
import dataclasses
import time
from pathlib import Path

import termdp
from termdp.bench.sweep_folder import AGENTS, read_manifest
from termdp.files import write_json
from termdp.provenance import commit
from termdp.registry import REGISTRY
from termdp.runs.shipped import CARDS, FOLDER, SUFFIX, ShippedAgent, shipped_agents

METHODS = ("pg", "termpg")
STEPS = 300_000
EPISODES = 1024
LICENCE = "Apache-2.0"


def ship(name: str, steps: int, sweeps: list[Path]) -> ShippedAgent:
    """Take an agent from a sweep or train it, save and play it."""
    env, method = name.split("/")
    command = f"termdp train {env} {method} --steps {steps}"
    made_by = commit()
    found = [s for s in sweeps if (s / AGENTS / name).with_suffix(SUFFIX).exists()]
    if found:
        agent = termdp.load((found[0] / AGENTS / name).with_suffix(SUFFIX))
        manifest = read_manifest(found[0])
        command, made_by = manifest["commands"][0], manifest["commits"][0]
    else:
        agent = termdp.train(env, method, steps=steps, on_progress=False).agent()
    path = agent.save((FOLDER / name).with_suffix(SUFFIX), half=True)
    played = termdp.evaluate(path, episodes=EPISODES, seed=2000)
    interval = played.return_interval
    assert interval is not None
    return ShippedAgent(
        name=name,
        command=command,
        seed=agent.card.spec.seed,
        steps=agent.card.spec.steps,
        commit=made_by,
        episodes=EPISODES,
        return_mean=round(played.return_mean, 3),
        return_low=round(interval[0], 3),
        return_high=round(interval[1], 3),
        stopped=round(played.stop_rate, 4),
        licence=LICENCE,
    )


def main() -> None:
    """Read the command line, ship the agents, write the cards after each."""
    everything = [f"{env}/{method}" for env in REGISTRY for method in METHODS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", default=[])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--sweeps", nargs="*", type=Path, default=[])
    args = parser.parse_args()
    cards = {card.name: card for card in shipped_agents()}
    for name in args.names or everything:
        if name not in everything:
            parser.error(f"expected one of {', '.join(everything)}, got {name!r}")
        began = time.perf_counter()
        cards[name] = card = ship(name, args.steps, args.sweeps)
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
