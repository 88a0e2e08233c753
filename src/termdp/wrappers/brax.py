"""Brax and MJX environments with the interface of our own (extra `brax`).

`termdp.train(from_brax("inverted_pendulum"), observer=…)` trains on the device, as on our
own games. Brax is imported only when used.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from termdp.envs.base import EnvParams, Game
from termdp.envs.spaces import Box


@struct.dataclass
class BraxState:
    """Brax's state, and the steps played in this episode."""

    inside: Any
    time: jax.Array


class BraxEnvironment(Game):
    """A Brax environment (`brax.envs.Env`, without Brax's own wrappers).

    Args:
        env: with `reset(key)`, `step(state, action)`, `observation_size`, `action_size`.
        name: for display.
        max_steps: the time limit of an episode.
    """

    def __init__(self, env: Any, name: str = "", max_steps: int = 1000):
        self.env, self._name, self.max_steps = env, name, max_steps
        if not isinstance(env.observation_size, int):
            raise ValueError(
                "expected a Brax environment with one vector as observation, got "
                f"{env.observation_size}"
            )

    @property
    def name(self) -> str:
        """The name for display."""
        return self._name or type(self.env).__name__

    @property
    def default_params(self) -> EnvParams:
        """The time limit."""
        return EnvParams(max_steps_in_episode=self.max_steps)

    @property
    def num_actions(self) -> int:
        """The length of an action's vector."""
        return int(self.env.action_size)

    def action_space(self, params: Any = None) -> Box:
        """Numbers from −1 to 1, as Brax expects them."""
        return Box(-1.0, 1.0, (self.num_actions,))

    def observation_space(self, params: Any = None) -> Box:
        """A vector."""
        return Box(-jnp.inf, jnp.inf, (int(self.env.observation_size),))

    def reset_env(self, key: jax.Array, params: Any) -> tuple[Any, BraxState]:
        """First observation and state of an episode."""
        inside = self.env.reset(key)
        return inside.obs, BraxState(inside, jnp.int32(0))

    def step_env(
        self, key: jax.Array, state: BraxState, action: Any, params: Any
    ) -> tuple[Any, BraxState, jax.Array, jax.Array, dict[str, Any]]:
        """One step without reset."""
        inside = self.env.step(state.inside, action)
        after = BraxState(inside, state.time + 1)
        return inside.obs, after, inside.reward, inside.done > 0.5, {}

    def get_obs(self, state: BraxState, params: Any = None, key: Any = None) -> Any:
        """The observation of a state."""
        return state.inside.obs


def from_brax(name: str, max_steps: int = 1000, **options: Any) -> BraxEnvironment:
    """A registered Brax environment by its name.

    Args:
        name: as `brax.envs.get_environment` takes it.
        max_steps: the time limit of an episode.
        **options: other arguments of the environment, such as `backend="mjx"`.
    """
    try:
        from brax import envs
    except ImportError as error:
        raise ValueError(
            "expected Brax for this environment, but it is not installed: pip install "
            f"'termdp[brax]' ({error})"
        ) from error
    try:
        env = envs.get_environment(name, **options)
    except KeyError as error:
        raise ValueError(
            f"expected the name of a Brax environment, got {name!r}"
        ) from error
    return BraxEnvironment(env, name, max_steps)
