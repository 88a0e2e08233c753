"""Costs from stops, for Stable-Baselines3: the package's own learner behind NumPy arrays.

Section 4.1, arXiv:2205.15376. `termdp.train` compiles all of this into one program. Here
it is one call per step (the accumulated cost) and one per rollout (learning).
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch
from gymnasium import spaces

from termdp.agents.distributions import for_action_space
from termdp.agents.method_params import MethodParams, method_params
from termdp.agents.methods import find_method
from termdp.arrays import named_arrays, restore
from termdp.cost_network import ActionSpec
from termdp.costs import ensemble, experience, fit
from termdp.costs.buffer import step_labels
from termdp.costs.config import COST_PREFIX, CostConfig
from termdp.costs.optimism import dynamic_discount
from termdp.runs import cost_features
from termdp.runs.config import FAST, FAST_ON_ENSEMBLES, TrainConfig, make_config
from termdp.settings import nearest, numbers_of


class Recorded(NamedTuple):
    """A rollout as the cost learner sees it, `[T, B, ...]`, and the memory before it."""

    memory: Any
    observations: Any
    actions: Any
    starts: Any
    stopped: Any
    game_over: Any
    ended: Any


class Learned(NamedTuple):
    """The result of learning from a rollout.

    Attributes:
        survival: 1 − ρ(z_t), by the fresh networks, `[T, B]`.
        memory: after the rollout.
        loss: cross entropy per step.
        bias: b̄.
    """

    survival: np.ndarray
    memory: Any
    loss: float
    bias: float


class CostLearner:
    """Cost networks that learn from rollouts, and the costs of the present episodes.

    Args:
        observation_space: of the environment, a Box `[D]` or `[H, W, C]`.
        action_space: Discrete, or a Box of one axis.
        sizes: environments, and steps of each in a rollout.
        window: steps that the observer is assumed to remember.
        optimism: how the networks become one: `mean`, `min`, `std`, `logit`.
        numbers: of the learner, by the names in `termdp.costs.config.CostConfig`.
        seed: of its randomness.
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        sizes: tuple[int, int],
        window: int,
        optimism: str,
        numbers: dict[str, Any],
        seed: int,
    ):
        self.space, self.window, self.sizes = (
            check_box(observation_space),
            window,
            sizes,
        )
        distribution = for_action_space(action_space)
        self.actions: ActionSpec = distribution.action_spec()
        method = replace(find_method("termpg"), optimism=optimism)
        self.numbers: MethodParams = method_params(method, window)
        compared = FAST_ON_ENSEMBLES if method.compares_networks else {}
        own = {n.removeprefix(COST_PREFIX): v for n, v in compared.items()}
        self.config = _settings(self.space, sizes, window, {**own, **numbers})
        self._key, key = jax.random.split(jax.random.key(seed))
        self.costs = _new_networks(key, self._example(), self.actions, self.config)
        self._experience: Any = None

    def empty_memory(self, num_envs: int) -> Any:
        """The memory at the start of a number of episodes."""
        return cost_features.empty_memory(self.config, self.window, num_envs)

    def features(self, memory: Any) -> np.ndarray:
        """What the policy sees of the costs so far, `[B, 2]`: C / 5 and ρ(z)."""
        return np.array(_features(self.numbers, self.costs, memory))

    def after_step(
        self, memory: Any, observations: Any, actions: Any, ended: Any
    ) -> tuple[Any, np.ndarray, np.ndarray]:
        """One step of all environments.

        Returns:
            The memory, emptied where episodes ended; the features of the states that
            followed, before any reset; and those of the states that are shown next.
        """
        memory, final, shown = _after_step(
            self.numbers, self.costs, memory, observations, actions, ended
        )
        return memory, np.array(final), np.array(shown)

    def learn(self, rollout: Recorded) -> Learned:
        """Learn from a rollout, then compute its costs with the fresh networks."""
        if self._experience is None:
            self._experience = experience.init(
                self._example(), self.actions, self.sizes, self.window, self.config
            )
        self._key, key = jax.random.split(self._key)
        self.costs, self._experience, found = _learn(
            key, self.costs, self._experience, self.numbers, rollout, self.config
        )
        survival, memory, loss, bias = found
        return Learned(np.asarray(survival), memory, float(loss), float(bias))

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Networks and optimiser as SB3 saves them, without the experience."""
        tree = self._state()
        return {k: torch.from_numpy(v.copy()) for k, v in named_arrays(tree).items()}

    def load_state_dict(
        self, state: dict[str, torch.Tensor], strict: bool = True
    ) -> None:
        """Undo `state_dict`."""
        arrays = {name: tensor.cpu().numpy() for name, tensor in state.items()}
        found = restore(self._state(), arrays)
        self._key = jax.random.wrap_key_data(found.pop("key"))
        self.costs = replace(self.costs, **found)

    def _state(self) -> dict[str, Any]:
        costs = self.costs
        return {
            "key": jax.random.key_data(self._key),
            "params": costs.params,
            "average": costs.average,
            "optimiser": costs.optimiser,
            "has_bias": costs.has_bias,
        }

    def _example(self) -> jax.Array:
        return jnp.zeros(self.space.shape, self.space.dtype)


def check_box(space: spaces.Space) -> spaces.Box:
    """The space with the type that is stored (float32 for float64); refuses others."""
    if not isinstance(space, spaces.Box):
        raise ValueError(f"expected observations that are a Box, got {space}")
    kept = np.float32 if space.dtype == np.float64 else space.dtype
    return spaces.Box(space.low, space.high, space.shape, kept)  # type: ignore[arg-type]


def _settings(
    space: spaces.Box, sizes: tuple[int, int], window: int, numbers: dict[str, Any]
) -> CostConfig:
    """The preset's settings, with its ratio of gradient steps to environment steps."""
    known = numbers_of(CostConfig)
    for name in numbers:
        if name not in known:
            raise ValueError(
                f"expected numbers of the cost learner in cost_kwargs, got {name!r}: "
                f"{nearest(name, list(known))}"
            )
    steps = sizes[0] * sizes[1]
    iterations = max(1, round(steps / TrainConfig().rollout_size))
    given = {
        "num_steps": iterations * FAST["cost_num_steps"],
        "buffer_steps": max(CostConfig.buffer_steps, 2 * steps),
        **numbers,
    }
    flat = {COST_PREFIX + name: value for name, value in given.items()}
    flat |= {"num_envs": sizes[0], "rollout_steps": sizes[1]}
    config = make_config("fast", space.shape, window, numbers=flat).costs
    config.check_window(window)
    return config


@partial(jax.jit, static_argnames=("actions", "config"))
def _new_networks(
    key: jax.Array, example: Any, actions: ActionSpec, config: CostConfig
) -> Any:
    return ensemble.init(key, example, actions, config)


@jax.jit
def _features(numbers: MethodParams, costs: Any, memory: Any) -> jax.Array:
    felt = cost_features.so_far(numbers, costs, memory)
    return cost_features.features(numbers, felt.logit, felt.policy_input)


@jax.jit
def _after_step(
    numbers: MethodParams,
    costs: Any,
    memory: Any,
    observations: Any,
    actions: Any,
    ended: Any,
) -> tuple[Any, jax.Array, jax.Array]:
    memory = cost_features.after_step(numbers, costs, memory, observations, actions)
    final = _features(numbers, costs, memory)
    memory = jnp.where(ended, 0.0, memory)
    return memory, final, _features(numbers, costs, memory)


@partial(jax.jit, static_argnames=("config",))
def _learn(
    key: jax.Array,
    costs: Any,
    kept: Any,
    numbers: MethodParams,
    rollout: Recorded,
    config: CostConfig,
) -> tuple[Any, Any, tuple[jax.Array, ...]]:
    """Algorithm 2, lines 5 to 10, arXiv:2205.15376."""
    key_add, key_fit = jax.random.split(key)
    _, observations, actions, starts, stopped, game_over, ended = rollout
    labels = step_labels(stopped, game_over)
    kept = experience.add(key_add, kept, observations, actions, starts, labels, config)
    labelled = jnp.sum(~game_over)
    costs = ensemble.with_initial_bias(costs, jnp.sum(stopped), labelled, config)
    costs, report = fit.update(key_fit, costs, kept, numbers.window, config)
    fresh, memory = cost_features.of_rollout(
        numbers, costs, rollout.memory, observations, actions, starts, ended[-1]
    )
    survival = dynamic_discount(fresh.accumulated.logit)
    return costs, kept, (survival, memory, report.loss, report.bias)
