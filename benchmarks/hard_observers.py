"""Do the hard observers matter, and can they be lived with? Two numbers for each.

    python benchmarks/hard_observers.py --out results/hard [--seeds 5] [--steps 1000000]

An agent trained without the observer plays with it switched on: what it loses. An agent
that is told the costs while it trains (the better of `oracle` and `oracle_horizon`) plays
with it, too: what it keeps of the unobserved return. All play fresh episodes after their
training. Wanted: a loss of at least a half, three quarters kept. Prints and writes a
table.
"""

import argparse
import json
from pathlib import Path

import jax
import numpy as np
from termdp.runs.presets import make_config

from termdp.agents.methods import find_method
from termdp.bench.suites import HARD_COLUMNS
from termdp.report.analysis import CEILINGS
from termdp.runs.evaluate import evaluate
from termdp.runs.program import Job, Trainer
from termdp.runs.runner import chunks
from termdp.runs.train import make_watched

NEVER = 1e6  # a bias that no cost reaches


def make_trainer(env_id, overrides, seeds, steps, method="pg"):
    """A method in an environment, one run per seed."""
    env, params = make_watched(env_id, **overrides)
    config = make_config("fast", env, params, int(params.observer.window))
    return Trainer(
        Job(
            env=env,
            params=params,
            methods=(find_method(method),) * len(seeds),
            seeds=tuple(seeds),
            config=config,
            num_iterations=config.num_iterations(steps),
        )
    )


def trained(trainer):
    state = trainer.init()
    for count in chunks(trainer.job.num_iterations):
        state, _ = trainer.advance(state, count)
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


def best_told(column, methods, seeds, steps, episodes):
    """Returns of the agents that are told the costs, and which method earned most."""
    by_method = {}
    for method in methods:
        trainer = make_trainer(
            column.env, column.overrides, range(seeds), steps, method
        )
        by_method[method], _, _ = returns(trainer, trained(trainer), episodes)
    best = max(by_method, key=lambda method: by_method[method].mean())
    return by_method[best], best


def measure(column, methods, seeds, steps, episodes):
    never = column.overrides | {"bias": NEVER}
    alone = make_trainer(column.env, never, range(seeds), steps)
    state = trained(alone)
    unobserved, _, length = returns(alone, state, episodes)
    watched = make_trainer(column.env, column.overrides, range(seeds), steps)
    observed, stopped, _ = returns(watched, state, episodes)
    told, best = best_told(column, methods, seeds, steps, episodes)
    return {
        "column": column.label,
        "why": column.why,
        "overrides": column.overrides,
        "unobserved": unobserved.tolist(),
        "switched_on": observed.tolist(),
        "oracle": told.tolist(),
        "oracle_method": best,
        "oracle_measured": "fresh episodes",
        "lost": 1 - float(observed.mean() / unobserved.mean()),
        "kept": float(told.mean() / unobserved.mean()),
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
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--episodes", type=int, default=128)
    parser.add_argument("--columns", nargs="*")
    parser.add_argument("--methods", nargs="*", default=list(CEILINGS))
    args = parser.parse_args()
    rows = []
    args.out.mkdir(parents=True, exist_ok=True)
    for column in HARD_COLUMNS:
        if args.columns and column.label not in args.columns:
            continue
        rows.append(
            measure(column, args.methods, args.seeds, args.steps, args.episodes)
        )
        (args.out / "observers.json").write_text(json.dumps(rows, indent=1) + "\n")
        (args.out / "observers.md").write_text(table(rows))
        print(table(rows[-1:]).splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
