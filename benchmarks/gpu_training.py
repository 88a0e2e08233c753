"""TermPG, PPO and the oracle on an accelerator: scores, speed, and the arithmetic floor.

    python benchmarks/gpu_training.py --out results/fast_1m [--seeds 5] [--steps 1000000]

Scores are over the episodes that finished in the last tenth of training, per seed; the
speed rows run 60 seeds of one method side by side, and three with the paper's preset. The
floor is the time of the matrix products alone at the card's fp32 peak. Results are
written as they come.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import numpy as np

from termdp.agents.methods import find_method
from termdp.training.config import TrainConfig
from termdp.training.loop import Job, Trainer
from termdp.training.metrics import summarise
from termdp.training.presets import make_config
from termdp.training.run_folder import versions
from termdp.training.session import chunk_length
from termdp.training.train import make_watched

GAMES = (
    "space_invaders",
    "breakout",
    "asterix",
    "seaquest",
    "backseat",
    "recommender",
)
METHODS = ("pg", "termpg", "oracle")


FP32_FLOPS = 67e12  # one H200, by its data sheet


def flops_per_decision(config, shape, num_actions, learns_costs):
    """Additions and multiplications of the matrix products, per decision (grids).

    A product of m weights is 2m operations forwards, twice that backwards. Per decision
    the policy plays twice (next observation, and the one before a reset) and is trained
    `num_epochs` times; costs are evaluated twice per member (old and fresh networks) and
    trained on `samples` rows. The first layer's input needs no gradient.
    """
    height, width, channels = shape
    cells = (height - 2) * (width - 2)

    def weights(filters, hidden, outputs, extra):
        first = cells * 9 * channels * filters
        rest = (cells * filters + extra) * hidden + hidden * outputs
        return first, rest

    first, rest = weights(config.filters, config.hidden, num_actions + 1, 2)
    total = 2 * 2 * (first + rest)
    total += config.ppo.num_epochs * (4 * first + 6 * rest)
    if learns_costs:
        costs = config.costs
        first, rest = weights(costs.filters, costs.hidden, 1, num_actions)
        rows = costs.num_steps * costs.segments_per_step * costs.segment_length
        samples = costs.members * rows / config.rollout_size
        total += 2 * 2 * costs.members * (first + rest)
        total += samples * (4 * first + 6 * rest)
    return total


def run(env_id, methods, seeds, steps, preset="fast"):
    """Train methods × seeds in one program."""
    env, params = make_watched(env_id)
    pairs = [(name, seed) for name in methods for seed in range(seeds)]
    chosen = tuple(find_method(name) for name, _ in pairs)
    config = make_config(preset, env, params, 30)
    total = config.num_iterations(steps)
    job = Job(env, params, chosen, tuple(s for _, s in pairs), config, total)
    trainer = Trainer(job)
    began = time.perf_counter()
    state = trainer.init()
    chunk = chunk_length(total)
    trainer.compile(chunk)
    jax.block_until_ready(state)
    compiled = time.perf_counter()
    reports = []
    for _ in range(total // chunk):
        state, report = trainer.advance(state, chunk)
        reports.append(report)
    reports = [jax.tree.map(np.asarray, report) for report in reports]
    seconds = time.perf_counter() - compiled
    merged = {k: np.concatenate([r[k] for r in reports], axis=1) for k in reports[0]}
    decisions = total * config.rollout_size * len(pairs)
    rows = []
    for index, (name, seed) in enumerate(pairs):
        last = {k: v[index, -max(1, total // 10) :] for k, v in merged.items()}
        row = summarise({k: v.sum(axis=0) for k, v in last.items()})
        row["bias"] = float(last["bias"][-1]) if "bias" in last else None
        rows.append({"env": env_id, "method": name, "seed": seed, **row})
    speed = {
        "env": env_id,
        "methods": list(methods),
        "runs": len(pairs),
        "decisions_per_run": total * config.rollout_size,
        "compile_s": round(compiled - began, 1),
        "run_s": round(seconds, 2),
        "decisions_per_s": round(decisions / seconds),
        "preset": preset,
    }
    if config.network == "grid":
        shape = env.observation_space(params).shape
        learns = any(method.learns_costs for method in chosen)
        flops = flops_per_decision(config, shape, env.num_actions, learns)
        speed["mflop_per_decision"] = round(flops / 1e6, 2)
        speed["times_the_floor"] = round(
            FP32_FLOPS / flops / speed["decisions_per_s"], 2
        )
    return rows, speed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--games", nargs="*", default=GAMES)
    parser.add_argument("--speed-steps", type=int, default=400_000)
    parser.add_argument("--paper-steps", type=int, default=51_200)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    found = {"versions": versions(), "config": str(TrainConfig()), "rows": []}
    found["speed"] = []

    def save():
        (args.out / "results.json").write_text(json.dumps(found, indent=1))

    for game in args.games:
        rows, speed = run(game, METHODS, args.seeds, args.steps)
        found["rows"] += rows
        found["speed"].append(speed)
        save()
        for method in METHODS:
            mine = [row for row in rows if row["method"] == method]
            scores = np.array([row["return_mean"] for row in mine], float)
            half = 2.776 * scores.std(ddof=1) / np.sqrt(len(scores))
            corr = [row["cost_corr"] for row in mine if row["cost_corr"] is not None]
            print(
                f"{game:15s} {method:8s} {scores.mean():7.2f} ± {half:.2f} "
                f"stop {np.mean([r['stop_rate'] for r in mine]):.2f} "
                f"corr {np.mean(corr) if corr else float('nan'):.2f} "
                f"γ {np.mean([r['discount_mean'] for r in mine]):.4f} "
                f"{speed['decisions_per_s']:,}/s compile {speed['compile_s']}",
                flush=True,
            )
    for preset, runs, steps in (
        ("fast", 60, args.speed_steps),
        ("paper", 3, args.paper_steps),
    ):
        for method in ("pg", "termpg"):
            _, speed = run("breakout", (method,), runs, steps, preset)
            found["speed"].append(speed)
            save()
            print(speed, flush=True)


if __name__ == "__main__":
    main()
