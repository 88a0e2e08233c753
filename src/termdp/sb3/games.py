"""Our games as a fast `VecEnv`: all copies in one compiled call."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecMonitor
from stable_baselines3.common.vec_env.base_vec_env import (
    VecEnvIndices,
    VecEnvObs,
    VecEnvStepReturn,
)

from termdp.gym.gymnasium_vector_env import JaxVectorEnv
from termdp.registry import make


def make_vec_env(
    env_id: str,
    n_envs: int = 1,
    seed: int | None = None,
    observer: Any = None,
    **overrides: Any,
) -> VecMonitor:
    """Copies of one of our games for Stable-Baselines3, with a `VecMonitor`.

    Args:
        env_id: of the game (`termdp envs`).
        n_envs: how many copies.
        seed: of all of them.
        observer: as for `termdp.make`: None for its own, False for none, or another.
        **overrides: numbers of the game and its observer.
    """
    copies = JaxVecEnv(*make(env_id, observer, **overrides), n_envs)
    copies.seed(seed)
    return VecMonitor(copies)


class JaxVecEnv(VecEnv):
    """A JAX environment as Stable-Baselines3's `VecEnv`.

    `infos` of episodes that ended hold `game_over`, `stopped`, `TimeLimit.truncated` and
    `terminal_observation`.

    Args:
        env: a JAX environment, observed or not.
        params: its parameters.
        num_envs: how many copies.
    """

    def __init__(self, env: Any, params: Any, num_envs: int):
        self.vector_env = JaxVectorEnv(env, params, num_envs, "SameStep")
        super().__init__(
            num_envs,
            self.vector_env.single_observation_space,
            self.vector_env.single_action_space,
        )
        self._actions: Any = None

    def reset(self) -> VecEnvObs:
        """Begin an episode in each copy."""
        seed = self._seeds[0]
        self._reset_seeds()
        return self.vector_env.reset(seed=seed)[0]

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Step all copies."""
        seen, rewards, terminated, truncated, found = self.vector_env.step(
            self._actions
        )
        ended = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(ended):
            infos[i] = {
                name: bool(found[name][i])
                for name in ("game_over", "stopped")
                if name in found
            }
            infos[i]["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
            infos[i]["terminal_observation"] = found["final_observation"][i]
        return seen, rewards.astype(np.float32), ended, infos

    def close(self) -> None:
        """Nothing to close."""

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """An attribute; it is the same for all copies."""
        value = getattr(self.vector_env, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(
        self, attr_name: str, value: Any, indices: VecEnvIndices = None
    ) -> None:
        """Refused: single copies have no attributes."""
        raise ValueError(
            f"expected no attribute of single copies, got {attr_name!r}: the copies are "
            "one compiled program. Make new environments with other numbers"
        )

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Refused: single copies are not objects."""
        raise ValueError(
            f"expected no method of single copies, got {method_name!r}: the copies are "
            "one compiled program"
        )

    def env_is_wrapped(
        self, wrapper_class: Any, indices: VecEnvIndices = None
    ) -> list[bool]:
        """Copies are never wrapped."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Copies are not drawn; use the Gymnasium ids for that."""
        return [None] * self.num_envs
