"""Steps per second on a Gymnasium environment: our host loop against Stable-Baselines3.

    python benchmarks/host_speed.py            # two minutes on two cores

All of them have CartPole, 8 copies in one process, rollouts of 256 steps, 4 passes in 16
minibatches, and one trunk of two layers of 64 for policy and value. Rounds alternate and
the median of each counts; compilation is not counted. TermPG also learns costs, under an
observer; SB3's PPO plays without one.
"""

import argparse
import json
import time
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

import termdp
from termdp.runs.host_program import HostProgram
from termdp.runs.spec import make_job, make_spec

ENV, COPIES, ROWS = "CartPole-v1", 8, 256
PASSES, PARTS, WIDTH = 4, 16, 64


class Trunk(BaseFeaturesExtractor):
    """Two layers, shared by policy and value as ours are."""

    def __init__(self, space: Any) -> None:
        super().__init__(space, WIDTH)
        size = int(np.prod(space.shape))
        self.layers = nn.Sequential(
            nn.Linear(size, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh()
        )

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        return self.layers(seen)


class Theirs:
    """SB3's PPO."""

    def __init__(self) -> None:
        self.model = PPO(
            "MlpPolicy",
            make_vec_env(ENV, COPIES),
            n_steps=ROWS,
            batch_size=COPIES * ROWS // PARTS,
            n_epochs=PASSES,
            device="cpu",
            policy_kwargs={"features_extractor_class": Trunk, "net_arch": []},
        )

    def play(self, iterations: int) -> None:
        self.model.learn(iterations * COPIES * ROWS)


class Ours:
    """A method of ours in the host loop."""

    def __init__(self, method: str, observer: Any = None) -> None:
        def make() -> gymnasium.Env:
            return gymnasium.make(ENV)

        numbers = {
            "num_envs": COPIES,
            "rollout_steps": ROWS,
            "hidden": WIDTH,
            "num_epochs": PASSES,
            "num_minibatches": PARTS,
        }
        spec = make_spec(
            make, method, observer=observer, numbers=numbers, steps=10_000_000
        )
        self.program = HostProgram(make_job(spec, env=make, observer=observer))
        self.program.compile_all(1)
        self.state = self.program.init()

    def play(self, iterations: int) -> None:
        self.state, _ = self.program.advance(self.state, iterations)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument(
        "--threads", type=int, default=1, help="of torch; 1 is its best"
    )
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    observer = termdp.Observer(lambda seen, action: abs(seen[0]), window=30, bias=8.0)
    players = {
        "sb3 ppo": Theirs(),
        "termdp pg": Ours("pg"),
        "termdp termpg, observed": Ours("termpg", observer),
    }
    speeds: dict[str, list[float]] = {name: [] for name in players}
    for _ in range(args.rounds + 1):
        for name, player in players.items():
            began = time.perf_counter()
            player.play(args.iterations)
            taken = time.perf_counter() - began
            speeds[name].append(args.iterations * COPIES * ROWS / taken)
    # The first round warms up.
    median = {name: float(np.median(values[1:])) for name, values in speeds.items()}
    found = {
        name: {"steps_per_s": round(v), "ratio": round(v / median["sb3 ppo"], 2)}
        for name, v in median.items()
    }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
