"""What every game of this package shares: gymnax's API and a clean notion of ends.

A game ends by itself (`game_over`) or by its time limit (`truncated`), never both: if
they coincide, the game's own end counts. The third way to end, an observer's stop, is
added from outside by `termdp.observe`.
"""

from functools import partial
from typing import Any

import jax
from gymnax.environments import environment


class Game(environment.Environment):
    """A gymnax environment whose next episode may remember something of the last.

    Subclasses write `reset_env`, `step_env` (returning observation, state, reward,
    game_over, info), `get_obs`, the spaces and, where something survives the reset as
    MinAtar's sticky action does, `next_episode`.
    """

    def next_episode(
        self, key: jax.Array, final_state: Any, params: Any
    ) -> tuple[Any, Any]:
        """First observation and state of the episode after one that ended."""
        del final_state
        return self.reset_env(key, params)

    def split_key(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The keys of a step and of the reset that may follow it.

        A game whose step and reset read different parts of one draw may return the
        same key twice: on the CPU each further draw is a large part of a step's time.
        """
        key_step, key_reset = jax.random.split(key)
        return key_step, key_reset

    def next_obs(
        self, ended: jax.Array, reset_obs: Any, final_obs: Any, state: Any
    ) -> Any:
        """The observation the agent acts on next, that of `state`.

        Where drawing a state is cheaper than choosing between two observations, a game
        may do that instead.
        """
        del state
        return jax.tree.map(partial(jax.lax.select, ended), reset_obs, final_obs)

    @partial(jax.jit, static_argnames=("self",))
    def step(
        self, key: jax.Array, state: Any, action: Any, params: Any | None = None
    ) -> tuple[Any, Any, jax.Array, jax.Array, jax.Array, dict[str, Any]]:
        """One step with automatic reset, in gymnax's six values.

        Returns:
            obs (of the next episode if this one ended), state, reward, terminated,
            truncated, info with `final_observation`: the observation before any reset.
        """
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
