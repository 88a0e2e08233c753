"""Steps per second of training: ours against Stable-Baselines3's PPO, in one run.

    pip install 'termdp[sb3]'
    python benchmarks/against_sb3.py [--steps 65536] [--load preset|small]

The game is the same: Breakout with its observer. SB3 plays it twice. First our compiled
call steps it, the best SB3 can hope for. Then it is what users of SB3 have: copies of
the original MinAtar in Python, each with our `ObserverWrapper`, in a `DummyVecEnv`.

Network and updates are the same, too. `preset`: 64 copies, 16 3×3 filters, dense 256,
rollouts of 32 steps, 4 passes in 16 minibatches. `small`: 128 copies, dense 128, 3 passes
in 32 minibatches, and as many cost samples per step for TermPG. A first round, which
compiles, is not timed. Rounds alternate, and the best of each counts.
"""

import argparse
import time
from functools import partial

import gymnasium
import numpy as np
import torch
from minatar.gym import BaseEnv
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from termdp.envs.cost_functions import BreakoutEdgeCost
from termdp.gym.observer_wrapper import ObserverWrapper
from termdp.observer import Observer
from termdp.runs.config import TrainConfig
from termdp.runs.program import TrainProgram
from termdp.runs.runner import Runner
from termdp.runs.spec import RunSpec, make_job
from termdp.sb3 import GridExtractor, make_vec_env

# What differs from the preset `fast`.
LOADS: dict[str, dict[str, int]] = {
    "preset": {},
    "small": {
        "num_envs": 128,
        "hidden": 128,
        "num_epochs": 3,
        "num_minibatches": 32,
        "cost_num_steps": 16,
    },
}


def make_program(load: str, method: str, steps: int) -> TrainProgram:
    """One run of a method with the load's sizes."""
    return TrainProgram(
        make_job(RunSpec("breakout", method, steps=steps, numbers=LOADS[load]))
    )


def python_copies(num_envs: int) -> VecEnv:
    """The original game, as Gymnasium users have it."""

    def one() -> gymnasium.Env:
        game = BaseEnv(game="breakout", use_minimal_action_set=True)
        seen = gymnasium.spaces.Box(0.0, 1.0, game.observation_space.shape, np.float32)
        watched = ObserverWrapper(game, Observer(BreakoutEdgeCost()))
        return gymnasium.wrappers.TransformObservation(
            watched, lambda board: board.astype(np.float32), seen
        )

    return DummyVecEnv([one] * num_envs)


def sb3_agent(config: TrainConfig, copies: VecEnv) -> PPO:
    return PPO(
        "MlpPolicy",
        copies,
        learning_rate=config.algorithm.learning_rate,
        n_steps=config.rollout_steps,
        batch_size=config.rollout_size // config.algorithm.num_minibatches,
        n_epochs=config.algorithm.num_epochs,
        gamma=0.99,
        gae_lambda=config.gae_lambda,
        clip_range=config.algorithm.clip,
        policy_kwargs={
            "features_extractor_class": GridExtractor,
            "features_extractor_kwargs": {
                "filters": config.filters,
                "hidden": config.hidden,
            },
            "net_arch": [],
        },
        device="cpu",
        seed=0,
    )


def seconds_of_sb3(agent: PPO, steps: int) -> float:
    """How long an agent learns for so many steps."""
    began = time.perf_counter()
    agent.learn(steps, reset_num_timesteps=False)
    return time.perf_counter() - began


def seconds_of_ours(program: TrainProgram) -> float:
    """How long a whole run takes; the first one compiles and is not counted."""
    runner = Runner(program, advise=False)
    runner.run()
    return runner.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=65_536)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--load", choices=LOADS, default="preset")
    args = parser.parse_args()
    programs = {
        name: make_program(args.load, name, args.steps) for name in ("pg", "termpg")
    }
    job = programs["pg"].job
    config = job.config
    steps = job.num_iterations * config.rollout_size
    agents = {
        "SB3 PPO, MinAtar in Python": sb3_agent(config, python_copies(config.num_envs)),
        "SB3 PPO, our compiled game": sb3_agent(
            config, make_vec_env("breakout", config.num_envs, 0)
        ),
    }
    for agent in agents.values():
        agent.learn(config.rollout_size)
    for program in programs.values():
        seconds_of_ours(program)
    learners = {
        name: partial(seconds_of_sb3, agent, steps) for name, agent in agents.items()
    } | {name: partial(seconds_of_ours, program) for name, program in programs.items()}
    seconds: dict[str, list[float]] = {name: [] for name in learners}
    for _ in range(args.rounds):
        for name, learn in learners.items():
            seconds[name].append(learn())
    best = {name: steps / min(values) for name, values in seconds.items()}
    first, second = (best[name] for name in agents)
    print(f"{steps:,} steps per round, {args.rounds} rounds, torch {torch.__version__}")
    for name, speed in best.items():
        print(
            f"{name:26s} {speed:10,.0f} steps/s  {speed / first:5.2f}x the first "
            f"{speed / second:5.2f}x the second"
        )
    print(f"termpg / pg wall clock: {best['pg'] / best['termpg']:.2f}x")


if __name__ == "__main__":
    main()
