"""Do the hard observers matter, and can they be lived with? Two numbers for each.

    python benchmarks/hard_observers.py --out results/hard [--seeds 5] [--steps 1000000]

First: an agent trained without the observer plays with it switched on. What does it lose?
Second: an agent that is told the costs while it trains (the better of the suite's
oracles) plays with it. How much of the unobserved return does it keep? All play fresh
episodes after their training. A good observer takes at least half from the first agent
and leaves at least three quarters to the second. Prints and writes a table.
"""

import argparse
import json
from pathlib import Path

import numpy as np

import termdp
from termdp.bench.suites import HARD, HARD_COLUMNS

NEVER = 1e6  # a bias that no cost reaches
EVALUATION_SEED = 10_000
TOLD = {row.label: row for row in HARD if row.method == "oracle"}


def trained(env, numbers, seeds, steps, method="pg"):
    """A method in an environment, one run per seed."""
    return termdp.train(
        env,
        method,
        steps=steps,
        seeds=len(seeds),
        seed=seeds[0],
        on_progress=False,
        **numbers,
    )


def play(result, episodes, env=None, params=None):
    """Fresh episodes of each seed's agent: one evaluation per seed."""
    return [
        termdp.evaluate(
            result.agent(seed),
            env,
            params=params,
            episodes=episodes,
            seed=EVALUATION_SEED,
        )
        for seed in result.spec.all_seeds
    ]


def returns(evaluations):
    """Mean return of each seed."""
    return np.array([found.return_mean for found in evaluations])


def best_told(column, labels, seeds, steps, episodes):
    """Returns of the agents that are told the costs, and which method earned most."""
    by_label = {}
    for label in labels:
        row = TOLD[label]
        numbers = column.overrides | row.changes
        result = trained(column.env, numbers, range(seeds), steps, row.method)
        by_label[label] = returns(play(result, episodes))
    best = max(by_label, key=lambda label: by_label[label].mean())
    return by_label[best], best


def measure(column, labels, seeds, steps, episodes):
    never = column.overrides | {"bias": NEVER}
    alone = trained(column.env, never, range(seeds), steps)
    by_itself = play(alone, episodes)
    unobserved = returns(by_itself)
    length = np.mean([found.length_mean for found in by_itself])
    env, params = termdp.make(column.env, **column.overrides)
    switched_on = play(alone, episodes, env, params)
    observed = returns(switched_on)
    told, best = best_told(column, labels, seeds, steps, episodes)
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
        "stopped": float(np.mean([found.stop_rate for found in switched_on])),
        "length": float(length),
        "least_bias": float(np.log(3 * length)),
        "bias": float(params.observer.bias),
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
    parser.add_argument("--methods", nargs="*", choices=list(TOLD), default=list(TOLD))
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
