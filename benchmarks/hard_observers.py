"""Do the hard observers matter, and can they be lived with? Two numbers for each.

    termdp bench hard --out results/hard
    python benchmarks/hard_observers.py --out results/hard [--seeds 3] [--steps 1000000]

An agent trained without the observer plays with it switched on: what it loses. What an
agent that is told the costs while it trains keeps of the unobserved return is read from
the sweep in the same folder (the better of `oracle` and `oracle_horizon`). Wanted: a
loss of at least a half, three quarters kept. Prints and writes a table.
"""

import argparse
import json
from pathlib import Path

import jax
import numpy as np

from termdp.agents.methods import find_method
from termdp.bench.store import read_records
from termdp.bench.suites import HARD_COLUMNS
from termdp.report.analysis import CEILINGS
from termdp.training.evaluate import evaluate
from termdp.training.loop import Job, Trainer
from termdp.training.presets import make_config
from termdp.training.session import chunk_length
from termdp.training.train import make_watched

NEVER = 1e6  # a bias that no cost reaches


def make_trainer(env_id, overrides, seeds, steps):
    """PPO in an environment, one run per seed."""
    env, params = make_watched(env_id, **overrides)
    config = make_config("fast", env, params, int(params.observer.window))
    return Trainer(
        Job(
            env=env,
            params=params,
            methods=(find_method("pg"),) * len(seeds),
            seeds=tuple(seeds),
            config=config,
            num_iterations=config.num_iterations(steps),
        )
    )


def trained(trainer):
    total = trainer.job.num_iterations
    chunk = chunk_length(total)
    state = trainer.init()
    for _ in range(0, total, chunk):
        state, _ = trainer.advance(state, chunk)
    return state


def returns(trainer, state, episodes):
    """Mean return of fresh episodes per seed, share stopped, mean length."""
    played = [
        evaluate(trainer, state, run, episodes, jax.random.key(10_000 + run))
        for run in range(len(trainer.job.seeds))
    ]
    return (
        np.array([p.returns.mean() for p in played]),
        float(np.mean([p.rate("stopped") for p in played])),
        float(np.mean([p.lengths.mean() for p in played])),
    )


def oracles(folder):
    """Returns of the better oracle by column, from the sweep's records."""
    by_row = {}
    for record in read_records(folder):
        if record["row"] in CEILINGS:
            cell = by_row.setdefault(record["column"], {}).setdefault(record["row"], [])
            cell.append(record["return_mean"])
    return {column: max(rows.values(), key=np.mean) for column, rows in by_row.items()}


def measure(column, told, seeds, steps, episodes):
    never = column.overrides | {"bias": NEVER}
    alone = make_trainer(column.env, never, range(seeds), steps)
    state = trained(alone)
    unobserved, _, length = returns(alone, state, episodes)
    watched = make_trainer(column.env, column.overrides, range(seeds), steps)
    observed, stopped, _ = returns(watched, state, episodes)
    oracle = told[column.label]
    return {
        "column": column.label,
        "why": column.why,
        "overrides": column.overrides,
        "unobserved": unobserved.tolist(),
        "switched_on": observed.tolist(),
        "oracle": oracle,
        "lost": 1 - float(observed.mean() / unobserved.mean()),
        "kept": float(np.mean(oracle) / unobserved.mean()),
        "stopped": stopped,
        "length": length,
        "least_bias": float(np.log(3 * length)),
        "bias": float(watched.job.params.observer.bias),
    }


def table(rows):
    lines = [
        "| observer | unobserved | switched on | lost | oracle | kept | b, ln 3T |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        mean = {k: np.mean(row[k]) for k in ("unobserved", "switched_on", "oracle")}
        lines.append(
            f"| {row['column']} | {mean['unobserved']:.2f} | {mean['switched_on']:.2f} | "
            f"{row['lost']:.0%} | {mean['oracle']:.2f} | {row['kept']:.0%} | "
            f"{row['bias']:g}, {row['least_bias']:.1f} |"
        )
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--episodes", type=int, default=128)
    parser.add_argument("--columns", nargs="*")
    args = parser.parse_args()
    told, rows = oracles(args.out), []
    for column in HARD_COLUMNS:
        if args.columns and column.label not in args.columns:
            continue
        rows.append(measure(column, told, args.seeds, args.steps, args.episodes))
        (args.out / "observers.json").write_text(json.dumps(rows, indent=1) + "\n")
        (args.out / "observers.md").write_text(table(rows))
        print(table(rows[-1:]).splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
