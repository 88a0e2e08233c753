"""Make the example dataset of simulated passengers and the observer fitted to it.

    python docs/make_passenger_data.py [--agents RUN]

Trains an agent without an observer (about two minutes on two cores), lets its snapshots
drive, lets the five simulated passengers stop them over HTTP until there are 512 stops,
exports these (src/termdp/people/data), and fits the observer (src/termdp/envs/data).
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "src" / "termdp" / "people" / "data"
OBSERVERS = ROOT / "src" / "termdp" / "envs" / "data"
NAME = "simulated_passengers"


def termdp(*words: str | Path) -> None:
    """Run one command, showing it first."""
    print("termdp", *words, flush=True)
    subprocess.run([sys.executable, "-m", "termdp", *map(str, words)], check=True)


def main() -> None:
    """Everything, in a folder that is thrown away."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--agents", type=Path, help="a run to use instead of training")
    parser.add_argument("--fit", type=Path, help="keep the folder of results here")
    args = parser.parse_args()
    DATA.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        run, db = args.agents or work / "driver", work / "people.db"
        if args.agents is None:
            train = ("train", "backseat", "pg", "--no-observer", "--snapshots", "12")
            termdp(*train, "--steps", "500000", "--out", run)
        rides = ("studies", "rides", NAME, "--agents", run, "--count", "600")
        termdp(*rides, "--db", db)
        termdp("studies", "simulate", NAME, "--db", db, "--stops", "512")
        file = DATA / f"{NAME}.parquet"
        termdp("studies", "export", NAME, file, "--db", db)
        fit = args.fit or work / "fit"
        termdp("studies", "fit", file, "--window", "35", "--out", fit)
        shutil.copy(fit / "observer.safetensors", OBSERVERS / f"{NAME}.safetensors")


if __name__ == "__main__":
    main()
