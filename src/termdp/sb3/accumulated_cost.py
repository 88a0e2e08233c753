"""The learned accumulated cost as part of the observation.

The policy sees C *before* acting (the costs of steps 1 … t−1, zero at an episode's
start), as two numbers: C / 5 and the learned stop probability so far. A vector gets them
at its end. Any other observation becomes a dictionary of `observation` and `cost`.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecTransposeImage
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from termdp.runs.cost_features import NUM_FEATURES
from termdp.sb3.cost_learner import CostLearner, Recorded, check_box

_COST = spaces.Box(
    np.array([-np.inf, 0.0], np.float32), np.array([np.inf, 1.0], np.float32)
)


def with_cost(space: spaces.Space) -> spaces.Space:
    """The space of observations with costs."""
    space = check_box(space)
    if len(space.shape) != 1:
        return spaces.Dict({"observation": space, "cost": _COST})
    low = np.concatenate([space.low, _COST.low]).astype(np.float32)
    high = np.concatenate([space.high, _COST.high]).astype(np.float32)
    return spaces.Box(low, high)


def without_cost(space: spaces.Space) -> spaces.Box:
    """Undo `with_cost`."""
    if isinstance(space, spaces.Dict):
        return check_box(space["observation"])
    space = check_box(space)
    return spaces.Box(space.low[:-NUM_FEATURES], space.high[:-NUM_FEATURES])


def joined(observations: np.ndarray, cost: np.ndarray) -> Any:
    """Observations `[..., *shape]` with costs `[..., 2]`; for one or for many."""
    if observations.ndim != cost.ndim:
        return {"observation": observations, "cost": cost}
    return np.concatenate([observations, cost], axis=-1, dtype=np.float32)


def ends(ended: np.ndarray, infos: Any) -> tuple[np.ndarray, np.ndarray]:
    """Which environments were stopped, and in which the game itself ended.

    Game over wins over stopped, and stopped over truncated.
    """
    stopped, game_over = np.zeros_like(ended), np.zeros_like(ended)
    for i in np.flatnonzero(ended):
        info = infos[i]
        stopped[i] = info.get("stopped", False) and not info.get("game_over", False)
        truncated = info.get("TimeLimit.truncated", False)
        game_over[i] = info.get("game_over", not stopped[i] and not truncated)
    return stopped, game_over


class AccumulatedCost(VecEnvWrapper):
    """Puts the learned accumulated cost into the observations of a `VecEnv`.

    `TermPG` wraps its own environment automatically; `model.wrap(env)` wraps another one.
    Windows are kept per environment. `terminal_observation` has the cost of the state
    that would have followed.

    Args:
        venv: the environments.
        learner: the cost learner; None until an algorithm attaches its own.
    """

    def __init__(self, venv: VecEnv, learner: CostLearner | None = None):
        super().__init__(venv, with_cost(venv.observation_space))
        self.inner_space = check_box(venv.observation_space)
        self.learner = learner
        self.tells_stops = False
        self._memory: Any = None
        self._observations: Any = None
        self._actions: Any = None
        self._starts = np.ones(self.num_envs, bool)
        self._rows: list[tuple[np.ndarray, ...]] | None = None
        self._memory_before: Any = None

    def reset(self) -> VecEnvObs:
        """Begin episodes with an empty memory."""
        learner = self._learner()
        self._observations = self._kept(self.venv.reset())
        self._memory = learner.empty_memory(self.num_envs)
        self._starts = np.ones(self.num_envs, bool)
        return self.shown()

    def shown(self) -> Any:
        """The present observations, with costs by the newest networks."""
        return joined(self._observations, self._learner().features(self._memory))

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions: costs need both observation and action."""
        self._actions = np.array(actions)
        self.venv.step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """One step of all environments."""
        observations, rewards, ended, infos = self.venv.step_wait()
        ended = np.asarray(ended, bool)
        self._memory, final, cost = self._learner().after_step(
            self._memory, self._observations, self._actions, ended
        )
        stopped, game_over = ends(ended, infos)
        if self._rows is not None:
            row = (self._observations, self._actions, self._starts)
            self._rows.append((*row, stopped, game_over, ended))
        infos = list(infos)
        for i in np.flatnonzero(ended):
            self.tells_stops |= "stopped" in infos[i]
            last = infos[i].get("terminal_observation")
            if last is not None:
                seen = joined(self._kept(last), final[i])
                infos[i] = infos[i] | {"terminal_observation": seen}
        self._observations, self._starts = self._kept(observations), ended.copy()
        return joined(self._observations, cost), rewards, ended, infos

    def begin_recording(self) -> None:
        """Record the steps from now on."""
        self._rows, self._memory_before = [], self._memory

    def recorded(self) -> Recorded:
        """The steps since `begin_recording`."""
        assert self._rows, "nothing was recorded"
        columns = [np.stack(column) for column in zip(*self._rows, strict=True)]
        self._rows = None
        return Recorded(self._memory_before, *columns)

    def go_on_with(self, memory: Any) -> None:
        """Continue with a memory that newer networks have computed."""
        self._memory = memory

    def _kept(self, observations: Any) -> np.ndarray:
        return np.array(observations, self.inner_space.dtype)

    def _learner(self) -> CostLearner:
        if self.learner is None:
            raise ValueError(
                "expected the costs of a model, got none: use model.wrap(env)"
            )
        return self.learner


class AccumulatedCostWrapper(gymnasium.Wrapper, gymnasium.utils.RecordConstructorArgs):
    """`AccumulatedCost` for one Gymnasium environment, for loops with `predict`.

    Args:
        env: the environment, with or without an observer.
        learner: the cost learner, `model.cost_learner`.
    """

    def __init__(self, env: gymnasium.Env, learner: CostLearner):
        gymnasium.utils.RecordConstructorArgs.__init__(self, learner=learner)
        gymnasium.Wrapper.__init__(self, env)
        self.observation_space = with_cost(env.observation_space)
        self.learner = learner
        self._dtype = check_box(env.observation_space).dtype
        self._memory: Any = None
        self._observation: Any = None

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode with an empty memory."""
        observation, info = self.env.reset(**options)
        self._memory = self.learner.empty_memory(1)
        return self._shown(observation, self.learner.features(self._memory)), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step; the observation has the cost after it, also at an episode's end."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._memory, cost, _ = self.learner.after_step(
            self._memory, self._observation, np.asarray(action)[None], np.zeros(1, bool)
        )
        return self._shown(observation, cost), reward, terminated, truncated, info

    def _shown(self, observation: Any, cost: np.ndarray) -> Any:
        self._observation = np.array(observation, self._dtype)[None]
        return joined(self._observation[0], cost[0])


def find(env: VecEnv | None) -> AccumulatedCost | None:
    """The wrapper among an environment's wrappers."""
    while isinstance(env, VecEnvWrapper):
        if isinstance(env, AccumulatedCost):
            return env
        env = env.venv
    return None


def wrapped(env: VecEnv) -> VecEnv:
    """An environment with the wrapper; wrappers that reorder image axes stay outside."""
    if find(env) is not None:
        return env
    if isinstance(env, VecTransposeImage):
        return VecTransposeImage(AccumulatedCost(env.venv))
    return AccumulatedCost(env)
