"""A JAX environment as a Gymnasium environment: one compiled call per step."""

from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from termdp.render.drawing import Draw, picture
from termdp.wrappers.observe import ObservedState


class JaxEnv(gymnasium.Env):
    """Any JAX environment (`termdp.envs.base.Environment`) as a Gymnasium one.

    `info` is that of the JAX environment, as NumPy scalars and arrays; for an observed
    one `game_over`, `stopped`, `cost`, `window_cost`, `stop_probability`, ….

    Args:
        env: a JAX environment, observed or not.
        params: its parameters.
        render_mode: "rgb_array" for pictures, or None.
        draw: a function from the game's state and observation to a drawing.
    """

    def __init__(
        self,
        env: Any,
        params: Any,
        render_mode: str | None = None,
        draw: Draw | None = None,
    ):
        self.jax_env = env
        self.params = params
        self.observation_space = to_gymnasium(env.observation_space(params))
        self.action_space = to_gymnasium(env.action_space(params))
        self.metadata = {
            "render_modes": ["rgb_array"] if draw else [],
            "render_fps": 10,
        }
        self._draw = draw
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(
                f"expected render_mode to be one of {self.metadata['render_modes']} or "
                f"None, got {render_mode!r}"
            )
        self.render_mode = render_mode
        self._key: Any = None
        self._state: Any = None
        self._observation: Any = None
        self._has_ended = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; a seed determines everything that follows."""
        super().reset(seed=seed)
        if seed is not None or self._key is None:
            self._key = jax.random.key(self.np_random.integers(2**31))
            self._begin()
        elif not self._has_ended:
            self._begin()
        # Otherwise the last step has already begun the next episode, which may depend on
        # the last one (MinAtar's sticky action).
        self._has_ended = False
        return self._observation, {}

    def _begin(self) -> None:
        observation, self._state = self.jax_env.reset(self._next_key(), self.params)
        self._observation = self._as_observation(observation)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one action; the returned observation is never one after a reset."""
        if self._has_ended:
            raise ValueError(
                "expected reset() before step(): the episode has ended or has not begun"
            )
        check_action(action, self.action_space)
        observation, self._state, reward, terminated, truncated, info = (
            self.jax_env.step(self._next_key(), self._state, action, self.params)
        )
        info = jax.tree.map(np.asarray, info)
        self._observation = self._as_observation(observation)
        self._has_ended = bool(terminated | truncated)
        final = self._as_observation(info["final_observation"])
        return final, float(reward), bool(terminated), bool(truncated), info

    def render(self) -> np.ndarray | None:
        """The present state as pixels, if `render_mode` asks for it."""
        if self.render_mode is None or self._draw is None or self._state is None:
            return None
        state = self._state
        game_state = state.game if isinstance(state, ObservedState) else state
        return picture(self._draw(game_state, self._observation))

    def _next_key(self) -> jax.Array:
        self._key, key = jax.random.split(self._key)
        return key

    def _as_observation(self, observation: Any) -> Any:
        return np.asarray(observation, dtype=self.observation_space.dtype)


def check_action(action: Any, space: spaces.Space) -> None:
    """Refuse an action that the space does not contain."""
    if isinstance(space, spaces.Discrete) and isinstance(action, np.ndarray):
        action = action[()] if action.shape == () else action
    if not space.contains(action):
        raise ValueError(f"expected an action in {space}, got {action!r}")


def check_vector_step(env: Any, actions: Any, ended: np.ndarray) -> None:
    """Refuse a step that a vector environment cannot take.

    Args:
        env: with `action_space` and `autoreset_mode`.
        actions: one per copy.
        ended: which copies' episodes ended in the last step.
    """
    if not env.action_space.contains(np.asarray(actions)):
        raise ValueError(f"expected actions in {env.action_space}, got {actions!r}")
    if env.autoreset_mode is AutoresetMode.DISABLED and ended.any():
        raise ValueError(
            "expected reset(options={'reset_mask': …}) before step(): the episodes of "
            f"copies {np.flatnonzero(ended).tolist()} have ended and autoreset is "
            "disabled"
        )


def to_gymnasium(space: Any) -> spaces.Space:
    """The Gymnasium space with the same elements, for a `Discrete` or a `Box`."""
    if hasattr(space, "n"):
        return spaces.Discrete(space.n)
    if hasattr(space, "low"):
        dtype = np.dtype(space.dtype)
        low = np.broadcast_to(np.asarray(space.low, dtype), space.shape)
        high = np.broadcast_to(np.asarray(space.high, dtype), space.shape)
        return spaces.Box(low, high, space.shape, dtype.type)
    raise ValueError(f"expected a Discrete or Box space, got {space}")
