"""The counter of `tiny_envs` for Gymnasium; worker processes import nothing more."""

from typing import ClassVar

import gymnasium
import numpy as np


class GymCounter(gymnasium.Env):
    """Observation: steps and sum of actions in this episode; reward 1."""

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
