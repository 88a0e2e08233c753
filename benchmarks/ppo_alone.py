"""What PPO earns when nobody watches, beside what others have published.

    python benchmarks/ppo_alone.py breakout [--rules original] [--steps 20000000]
    python benchmarks/ppo_alone.py breakout --rules gymnax --steps 5000000 --seeds 5

`original`: MinAtar's rules (sticky actions, difficulty ramps, games of any length), for
which pgx publishes curves; `gymnax`: no sticky actions, games of at most 1,000 steps, as
in gymnax's published PPO. Prints the return of the episodes that end in each tenth of
training, then, as JSON, that of the last tenth: mean ± 95% interval over seeds.
"""

import argparse
import json

import numpy as np

from termdp.intervals import mean_interval
from termdp.runs.program import TrainProgram
from termdp.runs.runner import Runner
from termdp.runs.spec import RunSpec, make_job

RULES = {"original": {}, "gymnax": {"sticky_prob": 0.0, "max_steps_in_episode": 1000}}


def returns(runner, first, last):
    """Mean return of each seed from one iteration to another."""
    rows = [runner.row(run, first, last) for run in range(len(runner.job.seeds))]
    return np.array([row["return_mean"] for row in rows], float)


def train(spec):
    """Train to the end and print each tenth; returns the runner."""
    runner = Runner(TrainProgram(make_job(spec)))
    told = [0]  # the iterations at which something was told

    def tell(progress):
        if runner.taken * 10 // runner.total > told[-1] * 10 // runner.total:
            found = returns(runner, told[-1], runner.taken).round(1)
            told.append(runner.taken)
            tenth = runner.taken * 10 // runner.total
            print(f"{tenth}/10 {found} after {progress.seconds:.0f} s", flush=True)

    runner.on_progress = tell
    runner.run()
    return runner


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("game")
    parser.add_argument("--rules", choices=sorted(RULES), default="original")
    parser.add_argument("--steps", type=int, default=20_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    spec = RunSpec(
        args.game,
        "pg",
        steps=args.steps,
        seeds=args.seeds,
        observer=False,
        env_numbers=RULES[args.rules],
    )
    runner = train(spec)
    tenth = max(1, runner.total // 10)
    last = returns(runner, runner.total - tenth, runner.total)
    mean = mean_interval(last) if args.seeds > 1 else None
    row = {
        "game": args.game,
        "rules": args.rules,
        "steps": runner.facts()["steps"],
        "seeds": args.seeds,
        "return": round(float(last.mean()), 2),
        "interval_95": None if mean is None else round(mean.high - mean.value, 2),
        "returns": last.round(2).tolist(),
        "compile_s": round(runner.compile_seconds, 1),
        "run_s": round(runner.seconds, 1),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
