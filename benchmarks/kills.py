"""Training that is killed again and again ends with the same bits as if left alone.

python benchmarks/kills.py --kills 20

Runs `termdp train` in processes of its own, sends SIGKILL at random moments (during
compilation, training and saving alike) and resumes, until the run is complete. Prints one
line of JSON; exit code 1 if a bit differs.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TRAIN = ("train", "recommender", "termpg", "--seeds", "2", "--steps", "81920")
SIZES = ("--num-envs", "16", "--rollout-steps", "32", "--hidden", "16")
ALWAYS = ("--checkpoint-minutes", "0.000001")


def begin(*words):
    return subprocess.Popen(
        [sys.executable, "-m", "termdp", *map(str, words)],
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(*words):
    process = begin(*words)
    said = process.communicate()[1]
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: exit {process.returncode}: {said}")


def content(run):
    """What must be equal: the last state, the reports, the metrics."""
    newest = sorted((run / "checkpoints").glob("[0-9]*"))[-1]
    files = ("state.safetensors", "reports.safetensors")
    found = {name: (newest / name).read_bytes() for name in files}
    return found | {"metrics": (run / "metrics.jsonl").read_bytes(), "at": newest.name}


def killed_run(out, kills, rng):
    """Kill after a while, later and later into the run."""
    words = (*TRAIN, *SIZES, *ALWAYS, "--out", out)
    done = drafts = 0
    while done < kills:
        resume = ("train", "--resume", out, *ALWAYS)
        process = begin(*(resume if (out / "config.json").exists() else words))
        metrics = out / "metrics.jsonl"
        before = metrics.stat().st_size if metrics.exists() else 0
        until = time.monotonic() + 60.0
        # Half of the kills as soon as training goes on, half anywhere in the start-up.
        if rng.random() < 0.5:
            until = time.monotonic() + rng.uniform(0.0, 8.0)
        while time.monotonic() < until and process.poll() is None:
            if metrics.exists() and metrics.stat().st_size > before:
                time.sleep(rng.uniform(0.0, 0.3))
                break
            time.sleep(0.01)
        if process.poll() is not None:
            break  # it was quicker: the run is complete
        process.kill()
        process.communicate()
        done += 1
        drafts += any((out / "checkpoints").glob(".*.draft"))
    finish(*(resume if (out / "config.json").exists() else words))
    return done, drafts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        whole, parts = Path(place) / "whole", Path(place) / "parts"
        finish(*TRAIN, *SIZES, "--out", whole)
        done, drafts = killed_run(parts, args.kills, random.Random(args.seed))
        same = content(whole) == content(parts)
    found = {"kills": done, "drafts_there": drafts, "same_bits": same}
    print(json.dumps(found | {"seconds": round(time.monotonic() - began)}))
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
