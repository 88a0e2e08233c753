"""The smallest training that still has every part; tests say where theirs differs."""

import dataclasses

from termdp.agents.ppo import PPOConfig
from termdp.costs.config import CostConfig
from termdp.runs.config import TrainConfig

TINY = TrainConfig(
    num_envs=4,
    rollout_steps=8,
    network="vector",
    hidden=8,
    algorithm=PPOConfig(num_epochs=2, num_minibatches=2, kl_target=0.01),
    costs=CostConfig(
        network="vector",
        hidden=4,
        num_steps=2,
        segments_per_step=2,
        segment_length=16,
        buffer_steps=64,
    ),
)


def tiny(ppo=None, costs=None, **changes) -> TrainConfig:
    """`TINY` with other numbers; `ppo` and `costs` are changes of those parts."""
    return dataclasses.replace(
        TINY,
        algorithm=dataclasses.replace(TINY.algorithm, **ppo or {}),
        costs=dataclasses.replace(TINY.costs, **costs or {}),
        **changes,
    )
