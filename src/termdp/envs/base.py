"""The interface of environments, and what all games of this package share.

The API is that of gymnax 1.x, stated here so that gymnax itself is not needed: any
environment with these methods works, whatever its base class.

A game ends by its own rules (`game_over`) or by its time limit (`truncated`), never both:
if they coincide, the game's own end counts. `termdp.observe` adds the third end, an
observer's stop.
"""

from functools import partial
from typing import Any

import jax
from flax import struct

Step = tuple[Any, Any, jax.Array, jax.Array, jax.Array, dict[str, Any]]


class EnvState(struct.PyTreeNode):
    """What every game's state holds: the steps played in this episode."""

    time: jax.Array | int


class EnvParams(struct.PyTreeNode):
    """What every game's parameters hold: the time limit."""

    max_steps_in_episode: int = 1


class Environment:
    """An environment in JAX: pure functions of key, state, action and parameters."""

    @property
    def name(self) -> str:
        """The name for display."""
        return type(self).__name__

    @property
    def default_params(self) -> Any:
        """Parameters, a pytree: they may change without a new compilation."""
        raise NotImplementedError

    @property
    def num_actions(self) -> int:
        """How many actions there are, or the length of an action's vector."""
        raise NotImplementedError

    @property
    def fast_numbers(self) -> dict[str, Any]:
        """Numbers of a run that suit it better than those of the preset `fast`."""
        return {}

    def action_space(self, params: Any = None) -> Any:
        """What actions look like: a `Discrete` or a `Box`."""
        raise NotImplementedError

    def observation_space(self, params: Any = None) -> Any:
        """What observations look like: a `Box`."""
        raise NotImplementedError

    def reset(self, key: jax.Array, params: Any | None = None) -> tuple[Any, Any]:
        """First observation and state of an episode."""
        raise NotImplementedError

    def step(
        self, key: jax.Array, state: Any, action: Any, params: Any | None = None
    ) -> Step:
        """One step with automatic reset.

        Returns:
            observation (of the next episode if this one ended), state, reward,
            terminated, truncated, info with `final_observation`: the observation before
            any reset.
        """
        raise NotImplementedError


class Game(Environment):
    """An environment written as one step and one reset; the base of our own games.

    Subclasses write `reset_env`, `step_env` (returning observation, state, reward,
    game_over, info), `get_obs` and the spaces. They also write `next_episode` if
    something survives the reset, as MinAtar's sticky action does.
    """

    @property
    def default_params(self) -> Any:
        """The time limit alone."""
        return EnvParams()

    def reset_env(self, key: jax.Array, params: Any) -> tuple[Any, Any]:
        """First observation and state of an episode that nothing preceded."""
        raise NotImplementedError

    def step_env(
        self, key: jax.Array, state: Any, action: Any, params: Any
    ) -> tuple[Any, Any, jax.Array, jax.Array, dict[str, Any]]:
        """One step without reset: observation, state, reward, game_over, info."""
        raise NotImplementedError

    def get_obs(self, state: Any, params: Any = None, key: Any = None) -> Any:
        """The observation of a state."""
        raise NotImplementedError

    def is_truncated(self, state: Any, params: Any) -> Any:
        """Whether the time limit is reached."""
        return state.time >= params.max_steps_in_episode

    def next_episode(
        self, key: jax.Array, final_state: Any, params: Any
    ) -> tuple[Any, Any]:
        """First observation and state of the episode after one that ended."""
        del final_state
        return self.reset_env(key, params)

    def split_key(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The keys of a step and of the reset that may follow it.

        A game whose step and reset read different parts of one draw may return the
        same key twice. On the CPU each draw takes a large part of a step's time.
        """
        key_step, key_reset = jax.random.split(key)
        return key_step, key_reset

    def next_obs(
        self, ended: jax.Array, reset_obs: Any, final_obs: Any, state: Any
    ) -> Any:
        """The observation the agent acts on next, that of `state`.

        A game may draw `state` again instead of choosing between two observations,
        where that is cheaper.
        """
        del state
        return jax.tree.map(partial(jax.lax.select, ended), reset_obs, final_obs)

    @partial(jax.jit, static_argnames=("self",))
    def reset(self, key: jax.Array, params: Any | None = None) -> tuple[Any, Any]:
        """First observation and state of an episode."""
        return self.reset_env(key, self.default_params if params is None else params)

    @partial(jax.jit, static_argnames=("self",))
    def step(
        self, key: jax.Array, state: Any, action: Any, params: Any | None = None
    ) -> Step:
        """One step with automatic reset; see `Environment.step`."""
        if params is None:
            params = self.default_params
        key_step, key_reset = self.split_key(key)
        final_obs, final_state, reward, game_over, info = self.step_env(
            key_step, state, action, params
        )
        truncated = self.is_truncated(final_state, params) & ~game_over
        ended = game_over | truncated
        reset_obs, reset_state = self.next_episode(key_reset, final_state, params)
        state = jax.tree.map(partial(jax.lax.select, ended), reset_state, final_state)
        obs = self.next_obs(ended, reset_obs, final_obs, state)
        info = {
            **info,
            "terminated": game_over,
            "truncated": truncated,
            "final_observation": final_obs,
        }
        return obs, state, reward, game_over, truncated, info
