"""Reinforcement learning when somebody outside can end the episode.

An observer watches an agent, accumulates costs that nobody wrote down, and may stop it
at any step. This package has the model and its environments; see README.md.
"""

from termdp import gym
from termdp.observer import Observer
from termdp.registry import make
from termdp.termination import stop_probability, window_sums
from termdp.wrappers.observe import observe

__all__ = [
    "Observer",
    "gym",
    "make",
    "observe",
    "stop_probability",
    "window_sums",
]
