"""Settings of a training run, and the presets `fast` and `paper`."""

import dataclasses
from typing import Any

from termdp.agents.ppo import PPOConfig
from termdp.costs.config import CostConfig

PRESETS = ("fast", "paper")


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """Sizes and rates of one run; the method and the environment stand apart.

    Attributes:
        preset: which preset these settings come from.
        num_envs: environments stepped together.
        rollout_steps: decisions of each per iteration.
        learning_rate: Adam's, for policy and value.
        anneal: let the learning rate fall linearly to zero over the run.
        adam_eps: Adam's ε.
        max_grad_norm: bound on the gradient's norm; None for none.
        gae_lambda: λ of the advantage estimates.
        kl_coef: initial coefficient of PPO's KL penalty.
        network: trunk for the observations: grid, image or vector.
        filters: of the grid network's convolution.
        hidden: width of the dense layer.
        precision: of the trunk on grids and images; `auto` is bfloat16 on GPUs, where it
            waits for memory. Weights, Adam, heads and losses are float32 everywhere.
        lstm_size: memory of recurrent policies.
        ppo: settings of the policy update.
        costs: settings of the cost learner.
    """

    preset: str = "fast"
    num_envs: int = 64
    rollout_steps: int = 32
    learning_rate: float = 2e-3
    anneal: bool = True
    adam_eps: float = 1e-5
    max_grad_norm: float | None = 0.5
    gae_lambda: float = 0.95
    kl_coef: float = 0.2
    network: str = "grid"
    filters: int = 16
    hidden: int = 256
    precision: str = "float32"
    lstm_size: int = 256
    ppo: PPOConfig = PPOConfig(num_epochs=4, num_minibatches=16, kl_target=0.05)
    costs: CostConfig = CostConfig()

    @classmethod
    def from_plain(cls, data: dict[str, Any]) -> "TrainConfig":
        """Undo `dataclasses.asdict`."""
        try:
            parts = {
                "ppo": PPOConfig(**data["ppo"]),
                "costs": CostConfig(**data["costs"]),
            }
            return cls(**data | parts)
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"expected the settings of a TrainConfig, but they are damaged: {error}"
            ) from error

    @property
    def rollout_size(self) -> int:
        """Decisions per iteration."""
        return self.num_envs * self.rollout_steps

    def num_iterations(self, steps: int) -> int:
        """Whole iterations in a budget of decisions."""
        if steps < self.rollout_size:
            raise ValueError(
                f"expected steps to be at least one rollout ({self.rollout_size} "
                f"decisions with preset {self.preset!r}), got {steps}"
            )
        return steps // self.rollout_size
