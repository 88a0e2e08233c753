"""Checks of a JAX environment and a cost, before an observer watches.

Both are traced once, with shapes only. Errors are one sentence: what was expected, what
came, how to fix it.
"""

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp

from termdp.observer import Cost, expected_one_number

_API = ("reset", "step", "default_params", "action_space", "observation_space")
_STEP = ("observation", "state", "reward", "terminated", "truncated", "info")
_TRACED = (
    "write it with jax.numpy: jnp.where(condition, a, b) instead of if, "
    "jnp.float32(x) instead of float(x), jnp.abs(x) instead of np.abs(x)"
)


def check_api(env: Any) -> None:
    """Refuse objects without the methods of a JAX environment."""
    kind = type(env).__name__
    wanted = "expected a JAX environment (reset(key, params), step(key, state, action, "
    wanted += (
        "params), default_params, action_space(params), observation_space(params))"
    )
    if isinstance(env, gymnasium.Env | gymnasium.vector.VectorEnv):
        vector = isinstance(env, gymnasium.vector.VectorEnv)
        wrapper = "ObserverVectorWrapper" if vector else "ObserverWrapper"
        raise ValueError(
            f"{wanted}, got the Gymnasium environment {kind}: use "
            f"termdp.gym.{wrapper}(env, observer)"
        )
    missing = [name for name in _API if not hasattr(env, name)]
    if missing:
        raise ValueError(f"{wanted}, got {kind} without {', '.join(missing)}")


def check_environment(env: Any, params: Any) -> tuple[Any, Any]:
    """Refuse an environment that cannot be played, or whose step is malformed.

    Args:
        env: with the methods of `check_api`.
        params: its parameters.

    Returns:
        Shape and type of an observation and of an action.
    """
    key = jax.random.key(0)
    started = _trace("env.reset", env.reset, key, params)
    if not isinstance(started, tuple) or len(started) != 2:
        raise ValueError(
            "expected env.reset(key, params) to return (observation, state), got "
            f"{_described(started)}"
        )
    observation, state = started
    if not _is_array(observation):
        raise ValueError(
            f"expected observations that are one array, got {_described(observation)}: "
            "join its parts in the environment, as jnp.concatenate does"
        )
    action = _trace(
        "env.action_space(params).sample", env.action_space(params).sample, key
    )
    stepped = _trace("env.step", env.step, key, state, action, params)
    if not isinstance(stepped, tuple) or len(stepped) != len(_STEP):
        got = f"{len(stepped)} values" if isinstance(stepped, tuple) else "one value"
        raise ValueError(
            f"expected env.step to return six values ({', '.join(_STEP)}) as gymnax 1.x "
            f"does, got {got}"
        )
    for name, value in zip(_STEP[2:5], stepped[2:5], strict=True):
        if not _is_array(value) or value.shape != ():
            raise ValueError(
                f"expected env.step to return a {name} that is one number, got "
                f"{_described(value)}: return one scalar, as {name}.sum() or "
                f"{name}[0] does"
            )
    return observation, action


def check_cost(cost: Cost, observation: Any, action: Any) -> None:
    """Refuse a cost that JAX cannot trace, or that is not a number.

    Args:
        cost: from one observation and one action to a number.
        observation: shape and type of an observation.
        action: shape and type of an action.
    """
    value = _trace("cost(observation, action)", cost, observation, action)
    kinds = (jnp.bool_, jnp.integer, jnp.floating)
    is_number = _is_array(value) and any(jnp.issubdtype(value.dtype, k) for k in kinds)
    if not is_number or value.shape != ():
        raise expected_one_number(_described(value))


def _trace(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """The shapes that a function returns; an error if it cannot be traced."""
    try:
        return jax.eval_shape(lambda *given: function(*given), *arguments)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        # The original error says no more than this, in pages about tracers.
        raise ValueError(
            f"expected {what} that JAX can trace, got {_untraceable(error)}: {_TRACED}; "
            "or keep plain Python in a Gymnasium environment and use "
            "termdp.gym.ObserverWrapper"
        ) from None
    except Exception as error:
        shapes = ", ".join(_described(argument) for argument in arguments)
        raise ValueError(
            f"expected {what} to work with {shapes}, got {type(error).__name__}: {error}"
        ) from error


def _untraceable(error: Exception) -> str:
    """What was done with a traced value that only works with plain numbers."""
    if isinstance(error, jax.errors.TracerBoolConversionError):
        return "an if, and, or, not, min or max on a traced value"
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return "a NumPy function on a traced value"
    if isinstance(error, jax.errors.TracerIntegerConversionError):
        return "a traced value as an index of a list or in range()"
    if isinstance(error, jax.errors.JAXIndexError):
        return "a selection by a traced condition"
    return "float(), int() or item() on a traced value"


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _described(value: Any) -> str:
    """A value in a few words: its type and shape."""
    if _is_array(value):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, Mapping):
        return f"a dict of {', '.join(map(str, value))}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return "None" if value is None else f"a {type(value).__name__}"
