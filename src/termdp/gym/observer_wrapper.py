"""An observer around one Gymnasium environment, in NumPy."""

from typing import Any

import gymnasium
import numpy as np

from termdp.gym.gymnasium_env import check_action
from termdp.observer import Observer, ObserverMemory, check_fits, checked_cost, watch


class ObserverWrapper(gymnasium.Wrapper, gymnasium.utils.RecordConstructorArgs):
    """Puts an observer around any Gymnasium environment.

    A stop ends the episode as `terminated`; `info` says which end it was (`game_over`,
    `stopped`; at most one of these and `truncated` is true) and holds `cost`,
    `window_cost`, `stop_probability` and `final_observation`.

    The observer draws from its own generator, seeded by `reset(seed=…)`: watching does
    not change what the environment does.

    Args:
        env: the environment to watch.
        observer: the observer; its `cost` gets NumPy observations and actions.

    Examples:
        >>> import gymnasium, termdp
        >>> off_centre = lambda observation, action: abs(observation[0])
        >>> env = termdp.gym.ObserverWrapper(
        ...     gymnasium.make("CartPole-v1"), termdp.Observer(off_centre, bias=3.0)
        ... )
    """

    def __init__(self, env: gymnasium.Env, observer: Observer):
        check_observer(observer)
        check_fits(observer, env.observation_space.shape, env.action_space)
        # Lets Gymnasium make the environment again from its specification.
        gymnasium.utils.RecordConstructorArgs.__init__(self, observer=observer)
        gymnasium.Wrapper.__init__(self, env)
        self.observer = observer
        self._generator = np.random.default_rng()
        self._memory: ObserverMemory | None = None
        self._observation: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; the observer forgets the last one."""
        if seed is not None:
            self._generator = observer_generator(seed)
        observation, info = self.env.reset(seed=seed, options=options)
        self._memory = self.observer.initial_memory(xp=np)
        self._observation = observation
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step of the environment, watched by the observer."""
        if self._memory is None:
            raise ValueError("expected reset() before the first step()")
        check_action(action, self.action_space)
        # Computed before the step: some environments reuse their observation's memory.
        cost = checked_cost(self.observer, self._observation, action)
        observation, reward, game_over, truncated, info = self.env.step(action)
        uniform = self._generator.random(dtype=np.float32)
        self._memory, observed = watch(self.observer, self._memory, cost, uniform, np)
        game_over = bool(game_over)
        stopped = bool(observed.stop) and not game_over
        truncated = bool(truncated) and not game_over and not stopped
        self._observation = observation
        info = {
            **info,
            "game_over": game_over,
            "stopped": stopped,
            "truncated": truncated,
            "cost": cost,
            "window_cost": float(observed.window_cost),
            "stop_probability": float(observed.stop_probability),
            "final_observation": observation,
        }
        return observation, reward, game_over or stopped, truncated, info


def observer_generator(seed: int) -> np.random.Generator:
    """The observer's own random stream for a seed, separate from the environment's."""
    return np.random.default_rng([int(seed), 0x0B5E])


def check_observer(observer: Any) -> None:
    """Refuse anything that is not an observer."""
    if not isinstance(observer, Observer):
        raise ValueError(f"expected a termdp.Observer, got {observer!r}")
