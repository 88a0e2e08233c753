"""An observer's discomfort during a recorded ride, step by step."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from termdp.observer import Observer
from termdp.termination import stop_probability, window_sums

# Rides are padded to a multiple of this, so that few lengths are ever compiled.
_BLOCK = 256


class Discomfort(NamedTuple):
    """An observer's discomfort during a ride of t steps; all `[t] float32`.

    Attributes:
        costs: c of each step.
        accumulated: C, the sum over the observer's window including the step.
        stop_probabilities: the chance of a stop at the step: ρ(C − b), and with the
            observer's background chance p of other stops ρ + p·(1 − ρ).
    """

    costs: np.ndarray
    accumulated: np.ndarray
    stop_probabilities: np.ndarray


def discomfort(
    observer: Observer, observations: np.ndarray, actions: np.ndarray
) -> Discomfort:
    """Costs, accumulated costs and stop probabilities along one ride.

    Args:
        observer: for example from `termdp.load_observer(path)`.
        observations: `[t, *shape]`, what the driver saw before each step.
        actions: `[t]`, what it did.

    Example:
        >>> import numpy as np, termdp
        >>> observer = termdp.Observer(lambda obs, action: 1.0 * (action == 1), window=2)
        >>> discomfort(observer, np.zeros((3, 1)), np.array([1, 1, 0])).accumulated
        array([1., 2., 1.], dtype=float32)
    """
    observations, actions = np.asarray(observations), np.asarray(actions)
    if len(observations) != len(actions):
        raise ValueError(
            "expected as many observations as actions, got "
            f"{len(observations)} and {len(actions)}"
        )
    length = len(actions)
    if length == 0:
        nothing = np.zeros(0, np.float32)
        return Discomfort(nothing, nothing, nothing)
    rest = -length % _BLOCK
    padded = [
        jnp.asarray(np.pad(x, [(0, rest)] + [(0, 0)] * (x.ndim - 1)))
        for x in (observations, actions)
    ]
    if jax.tree_util.all_leaves([observer.cost]):
        # A plain function as the cost would be compiled again in every call.
        found = _along(observer, *padded)
    else:
        found = _compiled(observer, *padded)
    return Discomfort(*(np.asarray(x, np.float32)[:length] for x in found))


def _along(
    observer: Observer, observations: jax.Array, actions: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    costs = jax.vmap(observer.cost)(observations, actions).astype(jnp.float32)
    length = len(actions)
    if observer.leak is not None:
        accumulated = _leaky(costs, observer.leak)
    else:
        window = jnp.asarray(length if observer.window is None else observer.window)
        accumulated = window_sums(costs, window, jnp.zeros(length, bool))
    logistic = stop_probability(accumulated, observer.bias)
    probability = logistic + observer.background * (1.0 - logistic)
    return costs, accumulated, probability


def _leaky(costs: jax.Array, leak: jax.Array | float | int | np.ndarray) -> jax.Array:
    def add(before: jax.Array, cost: jax.Array) -> tuple[jax.Array, jax.Array]:
        now = jnp.asarray(leak) * before + cost
        return now, now

    return jax.lax.scan(add, jnp.zeros(()), costs)[1]


_compiled = jax.jit(_along)
