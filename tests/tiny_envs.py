"""Environments small enough to work out by hand."""

from typing import ClassVar

import gymnasium
import jax.numpy as jnp
import numpy as np
from flax import struct
from gymnax.environments import environment, spaces


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


class GymCounter(gymnasium.Env):
    """The same game for Gymnasium."""

    metadata: ClassVar[dict] = {"render_modes": []}

    def __init__(self, game_over_at: int = 1000, limit: int = 1000):
        self.observation_space = gymnasium.spaces.Box(0.0, 1e6, (2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(3)
        self.game_over_at, self.limit = game_over_at, limit
        self.time = self.total = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = self.total = 0
        return self._observation(), {}

    def step(self, action):
        self.time += 1
        self.total += int(action)
        game_over, truncated = self.time >= self.game_over_at, self.time >= self.limit
        return self._observation(), 1.0, game_over, truncated, {}

    def _observation(self):
        return np.array([self.time, self.total], np.float32)


def action_is_cost(observation, action):
    """Every action costs its number: easy to add up by hand."""
    return jnp.float32(action)
