"""An observer around a Gymnasium vector environment, in NumPy, in all autoreset modes.

The vector environment inside does not know of the observer's stops and would continue. So
the wrapper resets the stopped copies itself (`reset_mask`), in the step that the
environment's autoreset mode prescribes.
"""

import copy
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

from termdp.gym.gymnasium_env import check_vector_step
from termdp.gym.observer_wrapper import check_observer, observer_generator
from termdp.observer import (
    Observer,
    ObserverMemory,
    ObserverStep,
    check_fits,
    checked_cost,
    forget,
    watch,
)


class ObserverVectorWrapper(VectorWrapper):
    """One observer, with a memory per copy, around any Gymnasium vector environment.

    Follows the autoreset mode of the environment inside:

    - `NEXT_STEP`: the step after an end resets the copy and ignores its action; it has
      no reward, no cost and no stop.
    - `SAME_STEP`: the step that ends an episode returns the next one's first
      observation; the last one is in `infos["final_obs"]`.
    - `DISABLED`: the caller resets with `reset(options={"reset_mask": …})`.

    `infos` holds arrays over the copies: `game_over`, `stopped`, `truncated`, `cost`,
    `window_cost`, `stop_probability`, `final_observation`.
    """

    def __init__(self, env: VectorEnv, observer: Observer):
        super().__init__(env)
        check_observer(observer)
        space = env.single_observation_space
        check_fits(observer, space.shape, env.single_action_space)
        self.observer = observer
        self.autoreset_mode = _autoreset_mode(env)
        self._generator = np.random.default_rng()
        self._memory: ObserverMemory | None = None
        self._observations: Any = None
        # Copies whose episode ended in the last step (NEXT_STEP: reset in this one).
        self._ended = np.zeros(self.num_envs, bool)
        self._stopped = np.zeros(self.num_envs, bool)

    def reset(
        self,
        *,
        seed: Any = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Reset all copies, or those of `options["reset_mask"]`."""
        if seed is not None:
            first = seed if isinstance(seed, int) else next(iter(seed))
            if first is not None:
                self._generator = observer_generator(first)
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, bool))
        # Gymnasium's vector environments take the mask out of the dictionary.
        options = None if options is None else dict(options)
        self._observations, infos = self.env.reset(seed=seed, options=options)
        self._forget(mask)
        self._ended = self._ended & ~mask
        self._stopped = self._stopped & ~mask
        return self._observations, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One step of all copies, watched by the observer."""
        self._check(actions)
        next_step = self.autoreset_mode is AutoresetMode.NEXT_STEP
        playing = ~self._ended if next_step else np.ones(self.num_envs, bool)
        costs = self._costs(actions, playing)
        observations, rewards, game_over, truncated, infos = self.env.step(actions)
        if next_step and self._stopped.any():
            # The environment inside does not know of the stop and took a step: undo it.
            observations, _ = self._reset_inside(self._stopped)
            rewards = np.where(self._stopped, 0.0, rewards)
            game_over = game_over & ~self._stopped
            truncated = truncated & ~self._stopped

        observed = self._watch(costs, playing)
        stopped = observed.stop & ~game_over & playing
        truncated = truncated & ~game_over & ~stopped
        ended = game_over | stopped | truncated
        final_observations = observations
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            observations, final_observations, infos = self._reset_now(
                observations, stopped, ended, infos
            )
        if self.autoreset_mode is not AutoresetMode.DISABLED:
            self._forget(ended)
        self._ended, self._stopped = ended, stopped
        self._observations = observations
        infos = infos | {
            "game_over": np.asarray(game_over),
            "stopped": stopped,
            "truncated": truncated,
            "cost": costs,
            "window_cost": observed.window_cost,
            "stop_probability": observed.stop_probability,
            "final_observation": final_observations,
        }
        return observations, rewards, game_over | stopped, truncated, infos

    def _check(self, actions: Any) -> None:
        if self._memory is None:
            raise ValueError("expected reset() before the first step()")
        check_vector_step(self, actions, self._ended)

    def _costs(self, actions: Any, playing: np.ndarray) -> np.ndarray:
        pairs = zip(
            iterate(self.observation_space, self._observations),
            iterate(self.action_space, np.asarray(actions)),
            playing,
            strict=True,
        )
        return np.array(
            [
                checked_cost(self.observer, observation, action) if plays else 0.0
                for observation, action, plays in pairs
            ],
            np.float32,
        )

    def _watch(self, costs: np.ndarray, playing: np.ndarray) -> ObserverStep:
        uniform = self._generator.random(self.num_envs, dtype=np.float32)
        assert self._memory is not None
        memory, observed = watch(self.observer, self._memory, costs, uniform, np)
        # A copy that is being reset is not watched: its memory stays empty.
        self._memory = forget(memory, ~playing, np)
        return ObserverStep(
            np.where(playing, observed.window_cost, np.float32(0)),
            np.where(playing, observed.stop_probability, np.float32(0)),
            observed.stop,
        )

    def _reset_now(
        self, observations: Any, stopped: np.ndarray, ended: np.ndarray, infos: dict
    ) -> tuple[Any, Any, dict[str, Any]]:
        """SAME_STEP: first observations of the next episodes, last ones, and infos."""
        last = [copy.deepcopy(o) for o in iterate(self.observation_space, observations)]
        finals = np.full(self.num_envs, None, object)
        for index in np.flatnonzero(ended):
            if not stopped[index]:
                last[index] = infos["final_obs"][index]
            finals[index] = last[index]
        if stopped.any():
            observations, _ = self._reset_inside(stopped)
        if ended.any():
            infos = infos | {"final_obs": finals, "_final_obs": ended.copy()}
        space = self.single_observation_space
        batch = concatenate(space, last, create_empty_array(space, self.num_envs))
        return observations, batch, infos

    def _reset_inside(self, mask: np.ndarray) -> tuple[Any, dict[str, Any]]:
        return self.env.reset(options={"reset_mask": mask.copy()})

    def _forget(self, mask: np.ndarray) -> None:
        if self._memory is None:
            self._memory = self.observer.initial_memory((self.num_envs,), np)
        self._memory = forget(self._memory, mask, np)


def _autoreset_mode(env: VectorEnv) -> AutoresetMode:
    mode = env.metadata.get("autoreset_mode")
    if isinstance(mode, AutoresetMode):
        return mode
    raise ValueError(
        "expected env.metadata['autoreset_mode'] to be one of "
        f"{[str(m) for m in AutoresetMode]}, got {mode!r}: set it to what "
        f"{type(getattr(env, 'unwrapped', env)).__name__} does (Gymnasium "
        f"{gymnasium.__version__})"
    )
