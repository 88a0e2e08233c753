"""Environments small enough to work out by hand."""

import jax.numpy as jnp
from flax import struct
from gymnax.environments import environment, spaces

from gym_counter import GymCounter

__all__ = ["Counter", "CounterParams", "CounterState", "GymCounter", "action_is_cost"]


@struct.dataclass
class CounterState:
    time: jnp.ndarray
    total: jnp.ndarray


@struct.dataclass
class CounterParams:
    max_steps_in_episode: int = 1000
    game_over_at: int = 1000


class Counter(environment.Environment):
    """Observation: steps played in this episode; reward 1; ends at `game_over_at`."""

    @property
    def default_params(self):
        return CounterParams()

    def reset_env(self, key, params):
        state = CounterState(jnp.int32(0), jnp.int32(0))
        return self.get_obs(state), state

    def step_env(self, key, state, action, params):
        state = CounterState(state.time + 1, state.total + action)
        game_over = state.time >= params.game_over_at
        return self.get_obs(state), state, jnp.float32(1), game_over, {}

    def get_obs(self, state, params=None, key=None):
        return jnp.stack([state.time, state.total]).astype(jnp.float32)

    @property
    def num_actions(self):
        return 3

    def action_space(self, params):
        return spaces.Discrete(3)

    def observation_space(self, params):
        return spaces.Box(0.0, 1e6, (2,), jnp.float32)


def action_is_cost(observation, action):
    """Every action costs its number: easy to add up by hand."""
    return jnp.float32(action)
