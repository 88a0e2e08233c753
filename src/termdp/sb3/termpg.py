"""TermPG as one of Stable-Baselines3's algorithms: its PPO with section 4's additions.

Section 4, arXiv:2205.15376. The policy's input includes the learned accumulated cost
(`termdp.sb3.accumulated_cost`). Costs are learned from every rollout's stops. Advantages
use γ_t = gamma · (1 − ρ(z_t)). With that discount a stopped step still bootstraps from
the state that would have followed: a cut would count the stop twice. A truncation also
bootstraps. The game's own end does not.
"""

import secrets
import warnings
from typing import Any

import gymnasium
import jax
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback, ConvertCallback
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback
from stable_baselines3.common.vec_env import VecEnv

from termdp.advantages import gae
from termdp.sb3.accumulated_cost import (
    AccumulatedCost,
    AccumulatedCostWrapper,
    find,
    without_cost,
    wrapped,
)
from termdp.sb3.cost_learner import CostLearner

_gae = jax.jit(gae)


class TermPG(PPO):
    """PPO that learns what makes an observer stop it.

    The environment sets `info["stopped"]` when an observer ended the episode
    (`termdp.gym.ObserverWrapper`, a person, an emergency stop).

    Args:
        policy: as for PPO; `MultiInputPolicy` for observations that are not vectors.
        env: as for PPO.
        window: steps that the observer is assumed to remember.
        optimism: how the cost networks become one: `mean`, `min`, `std` or `logit`.
        cost_kwargs: numbers of the cost learner (`termdp.costs.config.CostConfig`).
        **kwargs: as for PPO; `gamma` is the constant part of the discount.

    Examples:
        >>> import gymnasium, termdp
        >>> from termdp.sb3 import TermPG
        >>> off_centre = termdp.Observer(lambda obs, action: abs(obs[0]), bias=8.0)
        >>> env = termdp.gym.ObserverWrapper(gymnasium.make("CartPole-v1"), off_centre)
        >>> model = TermPG("MlpPolicy", env, window=30, n_steps=128, device="cpu")
        >>> model = model.learn(128)
    """

    cost_learner: CostLearner

    def __init__(
        self,
        policy: Any,
        env: GymEnv | str | None,
        window: int = 30,
        optimism: str = "mean",
        cost_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ):
        self.window = window
        self.optimism = optimism
        self.cost_kwargs = cost_kwargs or {}
        super().__init__(policy, env, **kwargs)  # type: ignore[arg-type]

    def _setup_model(self) -> None:
        super()._setup_model()
        self.cost_learner = CostLearner(
            without_cost(self.observation_space),
            self.action_space,
            (self.n_envs, self.n_steps),
            self.window,
            self.optimism,
            self.cost_kwargs,
            secrets.randbits(31) if self.seed is None else self.seed,
        )
        self._attach()

    @staticmethod
    def _wrap_env(
        env: GymEnv, verbose: int = 0, monitor_wrapper: bool = True
    ) -> VecEnv:
        return wrapped(PPO._wrap_env(env, verbose, monitor_wrapper))

    def set_env(self, env: GymEnv, force_reset: bool = True) -> None:
        """Continue in another environment; its observations get the accumulated cost."""
        super().set_env(env, force_reset)
        self._attach()

    def _attach(self) -> None:
        wrapper = find(self.env)
        if wrapper is not None:
            wrapper.learner = self.cost_learner

    def wrap(self, env: Any) -> Any:
        """An environment whose observations include this model's accumulated cost.

        Args:
            env: a Gymnasium environment, for loops with `predict`; or a `VecEnv`, for
                `evaluate_policy` and callbacks.
        """
        if isinstance(env, gymnasium.Env):
            return AccumulatedCostWrapper(env, self.cost_learner)
        if not isinstance(env, VecEnv):
            raise ValueError(
                f"expected a Gymnasium environment or a VecEnv, got {env!r:.60}"
            )
        return AccumulatedCost(env, self.cost_learner)

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        state_dicts, variables = super()._get_torch_save_params()
        return [*state_dicts, "cost_learner"], variables

    def _init_callback(
        self, callback: MaybeCallback, progress_bar: bool = False
    ) -> BaseCallback:
        given = callback if isinstance(callback, list) else [callback]
        theirs = [
            one if isinstance(one, BaseCallback) else ConvertCallback(one)
            for one in given
            if one is not None
        ]
        return super()._init_callback([_EachRollout(), *theirs], progress_bar)


class _EachRollout(BaseCallback):
    """Records a rollout, then learns costs and replaces SB3's advantages."""

    model: TermPG

    def _on_rollout_start(self) -> None:
        self._wrapper().begin_recording()
        self._rewards: list[np.ndarray] = []
        self._followed: list[tuple[int, int]] = []
        self._followers: list[Any] = []

    def _on_step(self) -> bool:
        # A copy: afterwards SB3 adds the values of truncated episodes' last states to
        # these rewards, with a constant discount.
        self._rewards.append(np.array(self.locals["rewards"], np.float32))
        for i in np.flatnonzero(self.locals["dones"]):
            last = self.locals["infos"][i].get("terminal_observation")
            if last is not None:
                self._followed.append((len(self._rewards) - 1, int(i)))
                self._followers.append(last)
        return True

    def _on_rollout_end(self) -> None:
        wrapper, model = self._wrapper(), self.model
        rollout = wrapper.recorded()
        learned = model.cost_learner.learn(rollout)
        wrapper.go_on_with(learned.memory)
        if model.env is wrapper:
            model._last_obs = wrapper.shown()
        discounts = model.gamma * learned.survival
        fill_advantages(
            self.locals["rollout_buffer"],
            np.stack(self._rewards),
            self._next_values(),
            np.where(rollout.game_over, 0.0, discounts),
            rollout.ended,
        )
        self.logger.record("costs/loss", learned.loss)
        self.logger.record("costs/bias", learned.bias)
        self.logger.record("costs/discount", float(discounts.mean()))
        self.logger.record("costs/stops", int(rollout.stopped.sum()))
        if rollout.ended.any() and not wrapper.tells_stops:
            warnings.warn(
                "expected info['stopped'] at the end of episodes, got none so far: there "
                "is nothing to learn costs from. Put the observer around the environment "
                "with termdp.gym.ObserverWrapper",
                stacklevel=2,
            )
            wrapper.tells_stops = True

    def _next_values(self) -> np.ndarray:
        """V of the state that followed each step, before any reset."""
        values = self.locals["rollout_buffer"].values
        last = self.locals["values"].cpu().numpy().reshape(1, -1)
        following = np.concatenate([values[1:], last])
        if self._followers:
            policy = self.model.policy
            seen = _stacked(self._followers)
            with torch.no_grad():
                found = policy.predict_values(policy.obs_to_tensor(seen)[0])
            rows, columns = zip(*self._followed, strict=True)
            following[rows, columns] = found.cpu().numpy().ravel()
        return following

    def _wrapper(self) -> AccumulatedCost:
        wrapper = find(self.training_env)
        assert wrapper is not None, "TermPG wraps its environments"
        return wrapper


def fill_advantages(
    buffer: RolloutBuffer | DictRolloutBuffer,
    rewards: np.ndarray,
    next_values: np.ndarray,
    discounts: np.ndarray,
    ended: np.ndarray,
) -> None:
    """Advantages and returns of a full buffer, with a discount per step.

    Args:
        buffer: with the values of the states.
        rewards: as the environment gave them, `[T, B]`.
        next_values: V of the state that followed, before any reset.
        discounts: γ_t; 0 where nothing follows.
        ended: whether the episode ended there in any way.
    """
    found = _gae(
        rewards,
        buffer.values,
        next_values,
        discounts.astype(np.float32),
        ended,
        buffer.gae_lambda,
    )
    buffer.rewards = rewards
    buffer.advantages = np.array(found)
    buffer.returns = buffer.advantages + buffer.values


def _stacked(observations: list[Any]) -> Any:
    if isinstance(observations[0], dict):
        return {
            key: np.stack([one[key] for one in observations]) for key in observations[0]
        }
    return np.stack(observations)
