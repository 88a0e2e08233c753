"""The two presets: `fast` for results in minutes, `paper` for the paper's own set-up."""

import dataclasses
from typing import Any

from termdp.agents.ppo import PPOConfig
from termdp.costs.config import CostConfig
from termdp.training.config import PRESETS, TrainConfig


def make_config(preset: str, env: Any, params: Any, max_window: int) -> TrainConfig:
    """Settings of a preset for an environment.

    Args:
        preset: `fast` or `paper`.
        env: an environment; its observations choose the network.
        params: its parameters.
        max_window: the longest window a method of the job learns with.
    """
    if preset not in PRESETS:
        raise ValueError(f"expected a preset ({', '.join(PRESETS)}), got {preset!r}")
    shape = env.observation_space(params).shape
    kind = network_kind(shape)
    config = FAST if preset == "fast" else PAPER
    if kind == "vector":
        costs = dataclasses.replace(config.costs, network="vector")
        if preset == "fast":
            costs = dataclasses.replace(costs, **FAST_VECTOR_COSTS)
        config = dataclasses.replace(config, network="vector", hidden=64, costs=costs)
    elif kind == "image" and config.network == "grid":
        costs = dataclasses.replace(config.costs, network="image")
        config = dataclasses.replace(config, network="image", costs=costs)
    # A stretch of experience must hold the longest window and something after it.
    rows = config.costs.buffer_rows(config.num_envs, config.rollout_steps)
    if 2 * max_window > rows:
        raise ValueError(
            f"expected a window of at most {rows // 2} steps, half of what the buffer "
            f"keeps of an environment with preset {preset!r}, got {max_window}"
        )
    length = config.costs.segment_length
    while length < 2 * max_window:
        length = min(2 * length, rows)
    costs = dataclasses.replace(config.costs, segment_length=length)
    return dataclasses.replace(config, costs=costs)


def for_preset(preset: str, env_id: str) -> dict[str, Any]:
    """What `paper` makes of a game: Backseat Driver is seen as a 42×42 picture."""
    is_backseat = env_id.startswith("backseat")
    return {"observation": "image"} if preset == "paper" and is_backseat else {}


def network_kind(shape: tuple[int, ...]) -> str:
    """The network that fits observations of a shape."""
    if len(shape) == 1:
        return "vector"
    if len(shape) == 3:
        return "image" if shape[:2] == (42, 42) else "grid"
    raise ValueError(
        "expected observations that are vectors [D] or grids [height, width, "
        f"channels], got shape {shape}"
    )


# The cost learner's rates were chosen online, on Space Invaders, where stops are rare
# and the policy moves: less regularisation and larger steps than for fixed data, which
# is gone through many times.
FAST = TrainConfig(
    preset="fast",
    precision="auto",
    costs=CostConfig(
        learning_rate=3e-3,
        sparsity=0.0,
        weight_decay=0.1,
        num_steps=8,
        precision="auto",
    ),
)

# Where observations are a few numbers of any size, such steps are too large in the end:
# policies find the errors that the last stretches left behind. Chosen on the recommender,
# seeds 100 to 102. More stretches cost little there.
FAST_VECTOR_COSTS: dict[str, Any] = {"rate_decay_steps": 300, "segments_per_step": 16}

# Appendix D, arXiv:2205.15376, and RLlib 1.12's defaults where it is silent.
PAPER = TrainConfig(
    preset="paper",
    num_envs=8,
    rollout_steps=128,
    learning_rate=5e-5,
    anneal=False,
    adam_eps=1e-8,
    max_grad_norm=None,
    gae_lambda=1.0,
    network="image",
    ppo=PPOConfig(num_epochs=3, num_minibatches=32),
    costs=CostConfig(
        num_steps=30,
        segments_per_step=1,
        draw="trajectories",
        network="image",
        weight_decay=0.0,
        sparsity=0.0,
        averaging=0.0,
        precision="auto",
    ),
)
