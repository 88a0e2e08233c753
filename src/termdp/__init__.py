"""Reinforcement learning when somebody outside can end the episode.

An observer watches an agent, accumulates costs that nobody wrote down, and may stop it
at any step. This package has the model, its environments, the agents that learn the
costs from the stops alone, and the theory; see README.md.

Names are loaded when first used, so `import termdp` is cheap; it also registers the
Gymnasium ids `termdp/…-v0`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from termdp.provenance import version_of
from termdp.registry import register_environments

if TYPE_CHECKING:
    from termdp import gym, tabular
    from termdp.advantages import gae
    from termdp.agents.methods import Method
    from termdp.logs.fit import Fit, fit
    from termdp.observer import Observer
    from termdp.observer_file import load_observer
    from termdp.registry import make
    from termdp.runs.agent import Agent
    from termdp.runs.config import TrainConfig
    from termdp.runs.evaluate import evaluate
    from termdp.runs.result import Result
    from termdp.runs.train import load, resume, train
    from termdp.termination import stop_probability, window_sums
    from termdp.wrappers.observe import observe

    __version__: str

__all__ = [
    "Agent",
    "Fit",
    "Method",
    "Observer",
    "Result",
    "TrainConfig",
    "__version__",
    "evaluate",
    "fit",
    "gae",
    "gym",
    "load",
    "load_observer",
    "make",
    "observe",
    "resume",
    "stop_probability",
    "tabular",
    "train",
    "window_sums",
]

_HOME = {
    "Agent": "termdp.runs.agent",
    "Fit": "termdp.logs.fit",
    "Method": "termdp.agents.methods",
    "Observer": "termdp.observer",
    "Result": "termdp.runs.result",
    "TrainConfig": "termdp.runs.config",
    "evaluate": "termdp.runs.evaluate",
    "fit": "termdp.logs.fit",
    "gae": "termdp.advantages",
    "load": "termdp.runs.train",
    "load_observer": "termdp.observer_file",
    "make": "termdp.registry",
    "observe": "termdp.wrappers.observe",
    "resume": "termdp.runs.train",
    "stop_probability": "termdp.termination",
    "train": "termdp.runs.train",
    "window_sums": "termdp.termination",
}
# `sb3` needs an extra and takes seconds to import, so it is loaded only on use.
_PARTS = ("gym", "sb3", "tabular")

register_environments()


def __getattr__(name: str) -> Any:
    """Load a public name, or a subpackage, on first use."""
    value: Any
    if name == "__version__":
        value = version_of("termdp")
    elif name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    elif name in _PARTS:
        value = importlib.import_module(f"termdp.{name}")
    else:
        raise AttributeError(f"module 'termdp' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
