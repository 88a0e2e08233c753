"""Many copies of a JAX environment as a Gymnasium vector environment, in one call."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from termdp.gym.gymnasium_env import check_vector_step, to_gymnasium


class JaxVectorEnv(VectorEnv):
    """`num_envs` copies of a JAX environment, stepped together.

    `infos` holds arrays over the copies, among them `final_observation`, the
    observations before any reset.

    Args:
        env: a JAX environment, observed or not.
        params: its parameters.
        num_envs: how many copies.
        autoreset_mode: Gymnasium's `AutoresetMode` or its value.
    """

    def __init__(
        self,
        env: Any,
        params: Any,
        num_envs: int,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ):
        self.jax_env = env
        self.params = params
        self.num_envs = num_envs
        self.autoreset_mode = _known_mode(autoreset_mode)
        self.metadata = {"autoreset_mode": self.autoreset_mode, "render_modes": []}
        self.single_observation_space = to_gymnasium(env.observation_space(params))
        self.single_action_space = to_gymnasium(env.action_space(params))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._key: Any = None
        # After a step each copy's state already begins its next episode, if it ended:
        # the modes differ only in when that episode's first observation is shown.
        self._states: Any = None
        self._observations: Any = None
        self._ended = np.zeros(num_envs, bool)

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Reset all copies, or those of `options["reset_mask"]`."""
        if seed is not None or self._key is None:
            first = seed if seed is None or isinstance(seed, int) else seed[0]
            self._key = jax.random.key(np.random.default_rng(first).integers(2**31))
            self._states = None
        mask = (options or {}).get("reset_mask")
        if mask is None or self._states is None:
            self._observations, self._states = _reset(
                self.jax_env, self._next_key(), self.params, self.num_envs
            )
            self._ended[:] = False
        else:
            self._reset_some(np.asarray(mask, bool))
        return np.array(self._observations), {}

    def _reset_some(self, mask: np.ndarray) -> None:
        # Copies that ended have their next episode ready; the others are cut off.
        cut_short = mask & ~self._ended
        if cut_short.any():
            fresh = _reset(self.jax_env, self._next_key(), self.params, self.num_envs)
            self._observations, self._states = _select(
                cut_short, fresh, (self._observations, self._states)
            )
        self._ended = self._ended & ~mask

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all copies (NEXT_STEP: those whose episode has not ended)."""
        if self._states is None:
            raise ValueError("expected reset() before the first step()")
        check_vector_step(self, actions, self._ended)
        waiting = self._ended & (self.autoreset_mode is AutoresetMode.NEXT_STEP)
        (self._observations, self._states), results = _step(
            self.jax_env,
            self._next_key(),
            (self._observations, self._states),
            jnp.asarray(actions),
            self.params,
            waiting,
        )
        rewards, terminated, truncated, infos = jax.tree.map(np.asarray, results)
        self._ended = terminated | truncated
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            shown = np.array(self._observations)
            if self._ended.any():
                infos = infos | _final_observations(infos, self._ended)
        else:
            shown = np.array(infos["final_observation"])
        return shown, rewards, terminated, truncated, infos

    def _next_key(self) -> jax.Array:
        self._key, key = jax.random.split(self._key)
        return key


@partial(jax.jit, static_argnames=("env", "num_envs"))
def _reset(env: Any, key: jax.Array, params: Any, num_envs: int) -> tuple[Any, Any]:
    keys = jax.random.split(key, num_envs)
    return jax.vmap(env.reset, in_axes=(0, None))(keys, params)


@partial(jax.jit, static_argnames=("env",))
def _step(
    env: Any, key: jax.Array, current: Any, actions: Any, params: Any, waiting: Any
) -> tuple[Any, Any]:
    """Step the copies that are not `waiting` to show a first observation."""
    keys = jax.random.split(key, len(waiting))
    obs, states, rewards, terminated, truncated, infos = jax.vmap(
        env.step, in_axes=(0, 0, 0, None)
    )(keys, current[1], actions, params)
    stepped = (obs, states)
    nothing = jax.tree.map(jnp.zeros_like, (rewards, terminated, truncated, infos))
    nothing[3]["final_observation"] = current[0]
    results = (rewards, terminated, truncated, infos)
    return _select(waiting, current, stepped), _select(waiting, nothing, results)


def _select(which: Any, if_true: Any, if_false: Any) -> Any:
    def choose(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.where(jnp.reshape(which, (-1,) + (1,) * (jnp.ndim(x) - 1)), x, y)

    return jax.tree.map(choose, if_true, if_false)


def _final_observations(
    infos: dict[str, Any], ended: np.ndarray
) -> dict[str, np.ndarray]:
    """The last observations as Gymnasium gives them in SAME_STEP mode."""
    finals = np.full(len(ended), None, object)
    for index in np.flatnonzero(ended):
        finals[index] = infos["final_observation"][index]
    return {"final_obs": finals, "_final_obs": ended.copy()}


def _known_mode(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        known = [m.value for m in AutoresetMode]
        raise ValueError(
            f"expected autoreset_mode to be one of {known}, got {mode!r}"
        ) from None
