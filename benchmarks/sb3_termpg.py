"""TermPG against PPO, both in Stable-Baselines3, on an observed CartPole.

    pip install 'termdp[sb3]'
    python benchmarks/sb3_termpg.py [--steps 98304] [--seeds 5] [--out FILE]

The observer's cost is |x|, the cart's distance from the centre. It remembers 30 steps and
stops with probability ρ(C − 8). Neither agent is told. Both have the same network, the
same numbers of PPO (Stable-Baselines3's, except for 8 environments × 256 steps and
minibatches of 128) and the same seeds. Each final policy then plays 100 fresh episodes
under the observer, always with the most probable action. Prints the table of docs/sb3.md.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

import termdp
from termdp.intervals import difference
from termdp.sb3 import TermPG

OBSERVER = termdp.Observer(lambda seen, action: abs(seen[0]), window=30, bias=8.0)
NUMBERS: dict[str, Any] = {"n_steps": 256, "batch_size": 128, "device": "cpu"}
EPISODES = 100


def copies(count: int = 8) -> VecEnv:
    def one() -> gymnasium.Env:
        game = gymnasium.make("CartPole-v1")
        return Monitor(termdp.gym.ObserverWrapper(game, OBSERVER))

    return DummyVecEnv([one] * count)


def play(model: PPO, seed: int) -> tuple[float, float]:
    """Mean return and share of stopped episodes of a final policy."""
    fresh = copies()
    fresh.seed(1_000_000 + seed)
    ends = []

    def listen(names: dict[str, Any], _: dict[str, Any]) -> None:
        if names["done"]:
            ends.append(names["info"]["stopped"])

    env = model.wrap(fresh) if isinstance(model, TermPG) else fresh
    returns, _ = evaluate_policy(
        model, env, EPISODES, callback=listen, return_episode_rewards=True
    )
    return float(np.mean(returns)), float(np.mean(ends))


def run(name: str, seed: int, steps: int) -> dict[str, Any]:
    began = time.process_time()
    if name == "PPO":
        model = PPO("MlpPolicy", copies(), seed=seed, **NUMBERS)
    else:
        model = TermPG("MlpPolicy", copies(), window=30, seed=seed, **NUMBERS)
    model.learn(steps)
    seconds = time.process_time() - began
    assert model.ep_info_buffer is not None
    while_learning = float(np.mean([one["r"] for one in model.ep_info_buffer]))
    found, stopped = play(model, seed)
    return {
        "method": name,
        "seed": seed,
        "return": found,
        "stop_rate": stopped,
        "last_returns": while_learning,
        "cpu_seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=98_304)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)  # networks this small only wait for other threads
    rows = []
    for seed in range(args.seeds):
        for name in ("PPO", "TermPG"):
            rows.append(run(name, seed, args.steps))
            print(json.dumps(rows[-1]), flush=True)
    if args.out is not None:
        args.out.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"\n{args.steps:,} steps, {args.seeds} seeds, {EPISODES} episodes each\n")
    print("| | return | stopped | last 100 training episodes | CPU seconds |")
    print("|---|---:|---:|---:|---:|")
    for name in ("PPO", "TermPG"):
        mine = [row for row in rows if row["method"] == name]
        column = {key: np.array([row[key] for row in mine]) for key in mine[0]}
        found, last = column["return"], column["last_returns"]
        print(
            f"| {name} | {found.mean():.0f} ± {found.std(ddof=1):.0f} "
            f"| {column['stop_rate'].mean():.0%} "
            f"| {last.mean():.0f} ± {last.std(ddof=1):.0f} "
            f"| {column['cpu_seconds'].mean():.0f} |"
        )
    of = {
        name: np.array([row["return"] for row in rows if row["method"] == name])
        for name in ("PPO", "TermPG")
    }
    gain = difference(of["TermPG"], of["PPO"])
    print(
        f"\nTermPG − PPO: {gain.value:.0f}, 95% interval {gain.low:.0f} … {gain.high:.0f}"
    )


if __name__ == "__main__":
    main()
