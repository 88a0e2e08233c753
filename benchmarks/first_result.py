"""How long somebody waits for a first result, and for the first commands.

    python benchmarks/first_result.py [--steps 65536] [--rounds 3]

`termdp.train("recommender", "termpg")` with an empty and with a full compilation cache,
split into import, compile (tracing and the first state included) and train; then `termdp
envs`, `termdp methods` and `termdp --help`. Everything runs in a fresh process, and the
round that was fastest in total counts. `other` is the rest: Python's own start, making
the job, leaving. Prints a table in Markdown, in seconds.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

PARTS = ("import", "compile", "train", "other")
COMMANDS = ("envs", "methods", "--help")
FIRST_RUN = """
import json, sys, time
began = time.perf_counter()
import termdp
train = termdp.train
imported = time.perf_counter() - began
found = train("recommender", "termpg", steps=int(sys.argv[1]), on_progress=False).summary
parts = {"import": imported, "compile": found["compile_s"], "train": found["wall_s"]}
print(json.dumps(parts))
"""


def timed(cache, *words):
    """Seconds of a fresh process of Python, and what it printed."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words],
        env=os.environ | {"JAX_COMPILATION_CACHE_DIR": cache},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return time.perf_counter() - began, done.stdout


def first_run(cache, steps):
    """Seconds of a training, by part and in total."""
    seconds, printed = timed(cache, "-c", FIRST_RUN, str(steps))
    parts = json.loads(printed.splitlines()[-1])
    return parts | {"other": seconds - sum(parts.values()), "in all": seconds}


def measure(steps, rounds):
    """By name, the seconds of the fastest round."""
    found = {}

    def note(name, row):
        if name not in found or row["in all"] < found[name]["in all"]:
            found[name] = row

    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            note("train, empty cache", first_run(cache, steps))
            note("train, full cache", first_run(cache, steps))
            for command in COMMANDS:
                seconds, _ = timed(cache, "-m", "termdp", command)
                note(f"termdp {command}", {"in all": seconds})
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=65_536)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    columns = (*PARTS, "in all")
    print(f"| {args.steps:,} steps | {' | '.join(columns)} |")
    print("|---|" + "---:|" * len(columns))
    for name, row in measure(args.steps, args.rounds).items():
        cells = (f"{row[part]:.2f}" if part in row else "" for part in columns)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
