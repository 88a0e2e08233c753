"""A study from beginning to end: rides, passengers who stop them, an observer, an agent.

    pip install '.[people]'
    python examples/passenger_study.py --folder study        # a few minutes

The passengers are SIMULATED: programs with rules, patience and reaction times
(docs/passengers.md). With people, the only difference is `termdp serve` in place of
`studies simulate`; read docs/responsible_use.md first.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path


def termdp(*words):
    """Show one command, run it, and return what it printed."""
    print("$ termdp", *words, flush=True)
    command = [sys.executable, "-m", "termdp", *map(str, words)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    print(done.stdout, end="")
    return done.stdout


def main(folder, rides=300, stops=256, steps=200_000, fitting=(), training=()):
    """Record rides, let passengers stop them, fit an observer, train under it."""
    folder = Path(folder)
    folder.mkdir(parents=True)
    study, store, fit = "comfort", folder / "people.db", folder / "fit"
    termdp("studies", "create", study, "--rides", rides, "--db", store)
    termdp("studies", "simulate", study, "--stops", stops, "--db", store)
    termdp("studies", "export", study, folder / "stops.parquet", "--db", store)
    termdp("studies", "fit", study, "--db", store, "--out", fit, *fitting)
    observer, run = fit / "observer.safetensors", folder / "run"
    training = ("--observer", observer, "--steps", steps, "--out", run, *training)
    termdp("train", "backseat", "termpg", *training)
    found = json.loads(termdp("eval", run, "--episodes", 16, "--json"))["all"]
    print(
        f"stopped in {found['stop_rate']:.0%} of 16 fresh rides; see {fit}/index.html"
    )
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", default="study", help="a new folder")
    args = parser.parse_args()
    main(args.folder)
