"""Copies of a Gymnasium environment stepped together, in any autoreset mode.

`Copies.step` always gives the same: the observation after the step *before* any reset,
the next one to act on, and at most one of three ends: `game_over`, `stopped`,
`truncated`, in this order of precedence. A stop is `info["stopped"]`.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space

from termdp.gym.encoding import Encoding
from termdp.gym.gymnasium_vector_env import JaxVectorEnv

TRUTH = ("cost", "window_cost", "stop_probability")


@dataclass(frozen=True)
class Played:
    """One step of B copies.

    Attributes:
        observations: what the agent acts on next, encoded, `[B, *shape]`.
        finals: observations after the step before any reset, encoded, `[B, *shape]`.
        rewards: `[B]`.
        game_over: the game itself ended, `[B]`.
        stopped: somebody stopped the agent, `[B]`.
        truncated: a time limit was reached, `[B]`.
        infos: as the environment gave them.
    """

    observations: np.ndarray
    finals: np.ndarray
    rewards: np.ndarray
    game_over: np.ndarray
    stopped: np.ndarray
    truncated: np.ndarray
    infos: Mapping[str, Any]

    @property
    def ended(self) -> np.ndarray:
        """Any kind of end."""
        return self.game_over | self.stopped | self.truncated

    def truth(self) -> np.ndarray:
        """True costs and stop probabilities, `[3, B]` in the order of `TRUTH`."""
        count = len(self.rewards)
        found = (read_info(self.infos, name, count) for name in TRUTH)
        return np.stack([np.zeros(count) if x is None else x for x in found])


class Copies:
    """A vector environment with this `step`.

    Args:
        env: the vector environment.
        encoding: of its observations.
        name: the environment's name in messages.
    """

    def __init__(self, env: VectorEnv, encoding: Encoding, name: str):
        self.env, self.encoding, self.name = env, encoding, name
        self.num_envs = env.num_envs
        self.steps = 0
        self._mode = checked_mode(env)
        self._actions = env.single_action_space
        self._floats = encoding.scaling != "pixels"
        check_same_spaces(env)

    def reset(self, seed: int) -> np.ndarray:
        """Reset every copy; returns the first observations, encoded."""
        with self._told():
            observations, _ = self.env.reset(seed=seed)
        return self._encoded(observations)

    def step(self, actions: np.ndarray) -> Played:
        """Play one action in each copy, and reset where an episode ended."""
        with self._told():
            seen, rewards, terminated, truncated, infos = self.env.step(
                self._as_given(actions)
            )
        self.steps += self.num_envs
        ends = which_ends(terminated, truncated, infos)
        ended = ends[0] | ends[1] | ends[2]
        observations = finals = self._encoded(seen)
        if ended.any():
            reset_inside = self._mode is AutoresetMode.SAME_STEP
            by_itself = (terminated | truncated) & reset_inside
            finals = self._finals(observations, by_itself, infos)
            if (ended & ~by_itself).any():
                with self._told():
                    mask = {"reset_mask": ended & ~by_itself}
                    seen, _ = self.env.reset(options=mask)
                observations = self._encoded(seen)
        rewards = np.asarray(rewards, np.float32)
        if not math.isfinite(rewards.sum()):
            self._refuse("rewards", rewards)
        return Played(observations, finals, rewards, *ends, infos)

    def _as_given(self, actions: np.ndarray) -> np.ndarray:
        """Actions as the environment expects them: shifted to its start, or clipped."""
        space = self._actions
        if isinstance(space, Discrete):
            return actions.astype(np.int64) + self.encoding.action_start
        assert isinstance(space, Box)
        return np.clip(actions.astype(space.dtype), space.low, space.high)

    def close(self) -> None:
        """Close the environment, worker processes included."""
        with contextlib.suppress(Exception):
            self.env.close()

    def _finals(
        self, observations: np.ndarray, reset: np.ndarray, infos: Mapping[str, Any]
    ) -> np.ndarray:
        """Observations after the step, also for copies that were reset in it."""
        finals = observations.copy()
        for index in np.flatnonzero(reset):
            last = infos["final_obs"][index]
            finals[index] = self.encoding.encode(last, is_single=True)[0]
        return finals

    def _encoded(self, observations: Any) -> np.ndarray:
        encoded = self.encoding.encode(observations)
        if self._floats and not math.isfinite(encoded.sum()):
            self._refuse("observations", encoded)
        return encoded

    def _refuse(self, what: str, numbers: np.ndarray) -> None:
        """Refuse numbers that are not finite; a sum of finite ones may overflow."""
        if not np.isfinite(numbers).all():
            raise ValueError(
                f"expected finite {what} from {self.name}, got NaN or infinity after "
                f"{self.steps} steps: fix the environment, or wrap it with "
                "gymnasium.wrappers.TransformObservation or TransformReward"
            )

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Turn an error of the environment, here or in a worker, into one sentence."""
        try:
            yield
        except Exception as error:
            raise ValueError(
                f"expected {self.name} to run, but after {self.steps} steps it "
                f"raised {type(error).__name__}: {error}"
            ) from error


def which_ends(
    terminated: Any, truncated: Any, infos: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`game_over`, `stopped`, `truncated`, `[B]` each, at most one of them true.

    A stop may come with `terminated` (as from an `ObserverWrapper`), with `truncated` or
    alone. If the game ended as well, `info["game_over"]` has to say so.
    """
    terminated, truncated = np.asarray(terminated), np.asarray(truncated)
    told = read_info(infos, "stopped", len(terminated))
    if told is None:
        return terminated, np.zeros_like(terminated), truncated & ~terminated
    stopped = told.astype(bool)
    over = read_info(infos, "game_over", len(terminated))
    as_well = np.zeros_like(stopped) if over is None else over.astype(bool)
    game_over = terminated & (~stopped | as_well)
    stopped = stopped & ~game_over
    return game_over, stopped, truncated & ~game_over & ~stopped


def end_of(terminated: Any, truncated: Any, info: Mapping[str, Any]) -> str:
    """How a step of one environment ended its episode; empty if it did not."""
    told = {n: [info[n]] for n in ("stopped", "game_over") if n in info}
    names = ("game_over", "stopped", "truncated")
    ends = which_ends([bool(terminated)], [bool(truncated)], told)
    return next((name for name, end in zip(names, ends, strict=True) if end[0]), "")


def read_info(infos: Mapping[str, Any], name: str, count: int) -> np.ndarray | None:
    """One entry of batched infos, `[B]`; 0 for copies without it, None if no copy has it.

    If a copy was reset in the same step, the entry of its last step is in `final_info`.
    """
    found = None
    if name in infos:
        found = np.asarray(infos[name], float)
        found = np.where(infos.get(f"_{name}", True), found, 0.0)
    final = infos.get("final_info")
    if isinstance(final, Mapping) and name in final:
        there = np.broadcast_to(final.get(f"_{name}", True), (count,))
        before = np.zeros(count) if found is None else found
        found = np.where(there, np.asarray(final[name], float), before)
    return found


def checked_mode(env: VectorEnv) -> AutoresetMode:
    """The autoreset mode of a vector environment whose copies can be reset one by one."""
    mode = env.metadata.get("autoreset_mode")
    if not isinstance(mode, AutoresetMode):
        raise ValueError(
            "expected env.metadata['autoreset_mode'] to be a gymnasium.vector."
            f"AutoresetMode, got {mode!r}: set it to what {env} does"
        )
    resets_some = isinstance(
        env.unwrapped, SyncVectorEnv | AsyncVectorEnv | JaxVectorEnv
    )
    if mode is AutoresetMode.NEXT_STEP and not resets_some:
        raise ValueError(
            f"expected a vector environment that can reset single copies, got {env} with "
            "autoreset in the next step: make it with gymnasium.make_vec(id, num_envs, "
            "vectorization_mode='sync'), or with another autoreset_mode"
        )
    return mode


def check_same_spaces(env: VectorEnv) -> None:
    """Refuse copies with different spaces."""
    for what, single, batched in (
        ("observations", env.single_observation_space, env.observation_space),
        ("actions", env.single_action_space, env.action_space),
    ):
        if batched != batch_space(single, env.num_envs):
            raise ValueError(
                f"expected copies with the same {what}, got {batched}: make them alike"
            )
