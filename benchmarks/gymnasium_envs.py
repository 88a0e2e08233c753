"""TermPG against PG on Gymnasium environments that are not JAX, each under an observer.

    python benchmarks/gymnasium_envs.py --out results/gymnasium_envs.json
    python benchmarks/gymnasium_envs.py --envs cartpole --steps-scale 0.1
    python benchmarks/gymnasium_envs.py --envs half_cheetah_torque --set stop_weight=1

CartPole, LunarLander (Box2D), HalfCheetah (MuJoCo) and highway-env, all with the
preset's numbers. The file has for each environment and method: the mean return of the
last tenth of training over the seeds, its 95% interval, how often the observer stopped,
and the difference TermPG − PG of the same seeds. Takes half an hour on two cores.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import termdp
from termdp.files import write_json
from termdp.intervals import mean_interval

METHODS = ("pg", "termpg")
# Nothing was chosen by looking at these seeds; those below 100 are for choosing.
SEED = 1000


@dataclass(frozen=True)
class World:
    """An environment, who watches it, and how long it is trained on."""

    make: Callable[[], gymnasium.Env]
    cost: Callable[[Any, Any], float]
    words: str
    bias: float
    window: int
    steps: int
    numbers: dict[str, Any] = field(default_factory=dict)


def highway() -> gymnasium.Env:
    import highway_env  # noqa: F401 - registers its ids

    config = {"vehicles_count": 10, "duration": 40, "simulation_frequency": 5}
    return gymnasium.make("highway-fast-v0", config=config)


def alive(name: str, bonus: float) -> gymnasium.Env:
    """With a bonus per step, so that a stop is a loss and not a relief."""
    env = gymnasium.make(name)
    return gymnasium.wrappers.TransformReward(env, lambda reward: reward + bonus)


WORLDS = {
    "cartpole": World(
        lambda: gymnasium.make("CartPole-v1"),
        lambda seen, action: float(abs(seen[0]) > 0.3),
        "the cart is more than 0.3 from the centre",
        8.0,
        30,
        # Later both methods are perfect, and only the observer's base rate ends episodes:
        # the same draws for the same seed, so the same returns.
        49_152,
    ),
    "lunar_lander": World(
        lambda: gymnasium.make("LunarLander-v3"),
        lambda seen, action: float(action == 2),
        "the main engine fires",
        16.0,
        20,
        100_000,
    ),
    "half_cheetah": World(
        lambda: alive("HalfCheetah-v5", 1.0),
        lambda seen, action: float(abs(seen[1]) > 0.3),
        "the body leans by more than 0.3 rad",
        8.0,
        20,
        # Episodes of 1,000 steps in 8 copies: in the last tenth each copy ends one.
        100_000,
    ),
    # A square of six numbers: harder to learn from stops than the body's angle.
    "half_cheetah_torque": World(
        lambda: alive("HalfCheetah-v5", 1.0),
        lambda seen, action: float(np.mean(np.square(action)) > 0.5),
        "the mean square of the torques is above 0.5",
        10.0,
        20,
        100_000,
    ),
    "highway": World(
        highway,
        lambda seen, action: 2.0 * (action in (0, 2)),
        "a change of lane (2 each)",
        6.0,
        10,
        4_096,
        {"rollout_steps": 32, "num_minibatches": 4},
    ),
}


def run(
    name: str, method: str, seeds: range, scale: float, numbers: dict[str, float]
) -> list[dict[str, Any]]:
    """The summaries of all seeds; the numbers are TermPG's."""
    world = WORLDS[name]
    observer = termdp.Observer(world.cost, window=world.window, bias=world.bias)
    result = termdp.train(
        world.make,
        method,
        steps=max(2048, int(world.steps * scale)),
        seeds=len(seeds),
        seed=seeds[0],
        observer=observer,
        on_progress=False,
        **world.numbers,
        **(numbers if method == "termpg" else {}),
    )
    assert result.summary is not None
    return list(result.summary["seeds"])


def interval(values: list[float]) -> dict[str, float]:
    found = mean_interval(np.asarray(values))
    return {
        "mean": float(np.mean(values)),
        "low": float(found.low),
        "high": float(found.high),
    }


def measured(
    name: str, seeds: range, scale: float, numbers: dict[str, float]
) -> dict[str, Any]:
    """Both methods on one environment."""
    began = time.perf_counter()
    rows = {method: run(name, method, seeds, scale, numbers) for method in METHODS}
    returns = {m: [row["return_mean"] for row in rows[m]] for m in METHODS}
    if None in returns["pg"] + returns["termpg"]:
        raise SystemExit(f"{name}: no episode ended in the last tenth, take more steps")
    pairs = zip(returns["termpg"], returns["pg"], strict=True)
    return {
        "observer": WORLDS[name].words,
        "steps": int(WORLDS[name].steps * scale),
        "seeds": list(seeds),
        "seconds": round(time.perf_counter() - began),
        "returns": returns,
        "biases": [row["bias"] for row in rows["termpg"]],
        "return": {m: interval(returns[m]) for m in METHODS},
        "stop_rate": {
            m: float(np.mean([row["stop_rate"] for row in rows[m]])) for m in METHODS
        },
        "difference": interval([ours - theirs for ours, theirs in pairs]),
    }


def shown(found: dict[str, float]) -> str:
    return f"{found['mean']:.1f} ({found['low']:.1f} … {found['high']:.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--envs", nargs="+", default=list(WORLDS), choices=WORLDS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=SEED, help="the first of the seeds")
    parser.add_argument("--steps-scale", type=float, default=1.0)
    parser.add_argument("--set", nargs="*", default=[], help="TermPG's name=number")
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()
    print(
        "| environment | what costs 1 | pg | termpg | difference | stopped pg, termpg |"
    )
    print("|---|---|---|---|---|---|")
    results: dict[str, Any] = {}
    if args.out is not None and args.out.exists():
        results = json.loads(args.out.read_text())
    seeds = range(args.seed, args.seed + args.seeds)
    numbers = {k: float(v) for k, v in (given.split("=") for given in args.set)}
    for name in args.envs:
        results[name] = found = measured(name, seeds, args.steps_scale, numbers)
        stops = ", ".join(f"{found['stop_rate'][m]:.0%}" for m in METHODS)
        each = " | ".join(shown(found["return"][m]) for m in METHODS)
        print(
            f"| {name} | {found['observer']} | {each} | {shown(found['difference'])} | "
            f"{stops} |",
            flush=True,
        )
        if args.out is not None:
            write_json(args.out, results)


if __name__ == "__main__":
    main()
