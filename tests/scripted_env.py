"""A Gymnasium environment that follows a script: every step is known in advance."""

import gymnasium
import numpy as np
from gymnasium import spaces

GOES_ON, OVER, STOPPED, STOPPED_ALONE, BOTH, LIMIT, STOPPED_LATE = range(7)
ENDS = ("", "game_over", "stopped", "stopped", "game_over", "truncated", "stopped")


class Scripted(gymnasium.Env):
    """Step k of all steps ends as `script[k]` says; episodes follow one another.

    The observation is (steps since the beginning, episode, step of the episode), so
    that each can be told from all others. The reward is 10 × step + action.
    """

    observation_space = spaces.Box(-1e6, 1e6, (3,), np.float32)

    def __init__(self, script=(GOES_ON,), start=0, **kwargs):
        self.script, self.render_mode = tuple(script), kwargs.get("render_mode")
        self.action_space = spaces.Discrete(2, start=start)
        self.at, self.episode, self.time = 0, -1, 0

    def _seen(self):
        return np.array([self.at, self.episode, self.time], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.time = self.episode + 1, 0
        return self._seen(), {}

    def step(self, action):
        kind = self.script[self.at % len(self.script)]
        reward = 10.0 * self.at + float(action)
        self.at, self.time = self.at + 1, self.time + 1
        info = {}
        if kind in (STOPPED, STOPPED_ALONE, BOTH, STOPPED_LATE):
            info["stopped"] = True
        if kind == BOTH:
            info["game_over"] = True
        terminated = kind in (OVER, STOPPED, BOTH)
        return self._seen(), reward, terminated, kind in (LIMIT, STOPPED_LATE), info

    def render(self):
        return np.full((40, 60, 3), 10 * (self.time % 20), np.uint8)


class Broken(Scripted):
    """Raises, or gives NaN: `what` is `raise`, `seen` or `reward`."""

    def __init__(self, what):
        super().__init__()
        self.what = what

    def step(self, action):
        if self.what == "raise":
            raise RuntimeError("the arm is stuck")
        seen, *rest = super().step(action)
        if self.what == "reward":
            rest[0] = np.nan
        return (seen * np.nan if self.what == "seen" else seen), *rest
