"""Which observers would take a given share of an unobserved agent's return?

    python benchmarks/choose_observers.py breakout [--seeds 3] [--steps 1000000]
        [--left 0.42] [--vary width=1,2,3] [--windows 30,60]

Trains PPO without an observer, lets it play on, and records its unpleasant steps. The
record tells what the agent would earn under any window, scale, relief and bias: a reward
counts with the probability that nobody has stopped before. For each window, scale and
relief this prints the bias that leaves the wanted share, as a mean over seeds. A dash
means that even the least bias (ln 3T) leaves more, or that the largest one tried leaves
less. It works for games whose cost has `scale` and `relief` (docs/hard.md).
"""

import argparse

import jax
import numpy as np
from hard_observers import NEVER, trained

from termdp.runs.evaluate import play_steps

FIRST_SEED = 200
COPIES, PLAYED = 64, 2_500
SCALES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
RELIEFS = (0.0, 0.05, 0.1, 0.2, 0.3)
LARGEST = 30.0  # how far above the least bias is searched


def record(result, changes):
    """First episodes of many copies: per seed a list of (rewards, costs at scale 1)."""
    job = result.program.job
    params = job.params.replace(**changes)
    found = []
    for seed in job.seeds:
        agent, key = result.agent(seed), jax.random.fold_in(jax.random.key(7), seed)
        played = play_steps(agent, job.env, params, key, COPIES, PLAYED)
        rewards, ended = np.asarray(played.rewards), np.asarray(played.ended)
        costs = np.asarray(played.truth.costs)
        lengths = np.where(ended.any(0), ended.argmax(0) + 1, PLAYED)
        found.append(
            [
                (rewards[:length, copy], costs[:length, copy])
                for copy, length in enumerate(lengths)
            ]
        )
    return found


def share_left(episodes, scale, relief, window, bias):
    """The return under an observer, divided by the return without one."""
    alone = watched = 0.0
    for rewards, unpleasant in episodes:
        sums = np.cumsum(np.where(unpleasant > 0, scale * unpleasant, -relief))
        before = np.concatenate([np.zeros(window), sums[:-window]])[: len(sums)]
        going_on = np.cumprod(1.0 / (1.0 + np.exp(sums - before - bias)))
        alone += rewards.sum()
        watched += (rewards * np.concatenate([[1.0], going_on[:-1]])).sum()
    return watched / alone


def solve(records, least, left, *observer):
    """The bias that leaves the share, as a mean over seeds; None if there is none."""

    def share(bias):
        return np.mean([share_left(one, *observer, bias) for one in records])

    low, high = least, least + LARGEST
    if share(low) > left or share(high) < left:
        return None
    for _ in range(11):
        middle = (low + high) / 2
        low, high = (low, middle) if share(middle) > left else (middle, high)
    return low


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("env")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--left", type=float, default=0.42)
    parser.add_argument("--vary", default="", help="name=v1,v2 of the cost function")
    parser.add_argument("--windows", default="30,60")
    args = parser.parse_args()
    name, _, values = args.vary.partition("=")
    variants = [{name: int(v)} for v in values.split(",")] if name else [{}]
    alone = {"bias": NEVER, "scale": 1.0, "relief": 0.0}
    # Not the seeds that hard_observers.py reports.
    seeds = range(FIRST_SEED, FIRST_SEED + args.seeds)
    result = trained(args.env, alone, seeds, args.steps)
    for changes in variants:
        records = record(result, changes)
        episodes = [episode for one in records for episode in one]
        length = np.mean([len(rewards) for rewards, _ in episodes])
        least = float(np.log(3 * length))
        rates = [np.mean(np.concatenate([u for _, u in one]) > 0) for one in records]
        print(
            f"{args.env} {changes or ''}: T = {length:.0f}, ln 3T = {least:.2f}, "
            f"unpleasant steps per seed {', '.join(f'{r:.1%}' for r in rates)}"
        )
        print("window relief  bias for scale " + " ".join(f"{s:6g}" for s in SCALES))
        for window in map(int, args.windows.split(",")):
            for relief in RELIEFS:
                found = [
                    solve(records, least, args.left, scale, relief, window)
                    for scale in SCALES
                ]
                cells = ("     –" if b is None else f"{b:6.2f}" for b in found)
                print(f"{window:6d} {relief:6g} {'':15s} {' '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
