"""The termination model: costs add up, and high sums make the observer stop.

Section 2 of "Reinforcement Learning with a Terminator" (arXiv:2205.15376): at step t the
observer adds c(s_t, a_t) to what it remembers and stops the agent with probability
ρ(C_t − b), where ρ is the logistic function and C_t the sum of the remembered costs,
*including the present one*. Section 4 lets the observer forget: C_t then covers the last
min(w, t) steps only. (Appendix B of the paper leaves out the present cost and b. This
package follows section 2.)
"""

from numbers import Integral

import jax
import jax.numpy as jnp
import numpy as np

# Streams of at most this many steps are summed window by window.
SHORT = 128

Number = float | int | jax.Array | np.ndarray


def window_sums(
    costs: jax.Array, window: int | jax.Array, starts: jax.Array
) -> jax.Array:
    """Accumulated cost C_t = Σ of the last min(window, steps so far) costs, inclusive.

    Section 4, arXiv:2205.15376: Σ_{j=1}^{min(w, l)} c(s_{l−j+1}, a_{l−j+1}).

    Sums are never subtracted from each other: after some large costs, a difference of
    prefix sums would have lost all its digits. Short streams are summed window by
    window, which is one small operation to compile. In long ones, sums of 1, 2, 4, …
    steps are each made of two of the sums before. A window is put together from those
    that add up to its length, in O(T log T) work.

    Args:
        costs: c_t, `[T, ...]`, time first.
        window: w ≥ 1; static or traced, so that it can change without recompiling.
        starts: same shape as `costs`, true on the first step of each episode (row 0
            always counts as one).

    Returns:
        C_t, same shape as `costs`.

    Examples:
        >>> import jax.numpy as jnp
        >>> costs = jnp.array([1.0, 2.0, 4.0, 8.0])
        >>> starts = jnp.array([True, False, False, True])
        >>> window_sums(costs, 2, starts).tolist()
        [1.0, 3.0, 6.0, 8.0]
    """
    costs, starts = jnp.asarray(costs), jnp.asarray(starts)
    if costs.ndim == 0 or costs.shape != starts.shape:
        raise ValueError(
            "expected costs [T, ...] and starts of the same shape, got "
            f"{costs.shape} and {starts.shape}"
        )
    if isinstance(window, Integral) and window < 1:
        raise ValueError(f"expected a window of at least 1 step, got {window}")
    if costs.shape[0] == 0:
        return costs
    steps = jax.lax.broadcasted_iota(jnp.int32, costs.shape, 0)
    # A window longer than the stream means the whole stream.
    window = jnp.clip(jnp.asarray(window, jnp.int32), 1, costs.shape[0])
    is_start = starts | (steps == 0)
    episode_start = jax.lax.cummax(jnp.where(is_start, steps, 0), axis=0)
    if costs.shape[0] <= SHORT:
        return _direct_sums(costs, jnp.maximum(steps - window + 1, episode_start))

    return _doubled_sums(costs, window, steps - episode_start)


def stop_probability(window_cost: Number, bias: Number) -> jax.Array:
    """Probability ρ(C − b) that the observer stops now.

    Section 2, arXiv:2205.15376, with ρ(x) = 1 / (1 + exp(−x)).

    Args:
        window_cost: C, the accumulated cost including the present step's.
        bias: b; without any cost the observer still stops with probability ρ(−b).
    """
    return jax.nn.sigmoid(jnp.asarray(window_cost) - bias)


def _direct_sums(costs: jax.Array, window_start: jax.Array) -> jax.Array:
    """Sums from the start of each step's window to the step itself; T² additions."""
    last = jax.lax.broadcasted_iota(jnp.int32, window_start.shape, 0)[:, None]
    pairs = (costs.shape[0], *costs.shape)  # [which window, which step, ...]
    step = jax.lax.broadcasted_iota(jnp.int32, pairs, 1)
    inside = (step >= window_start[:, None]) & (step <= last)
    return jnp.sum(jnp.where(inside, costs[None], 0), axis=1)


def _doubled_sums(costs: jax.Array, window: jax.Array, before: jax.Array) -> jax.Array:
    """The same from sums of 1, 2, 4, … steps; `before`: earlier steps of the episode."""
    ending_here = costs  # sums of `size` steps, or of all since the episode's start
    total = jnp.zeros_like(costs)
    for place in range(costs.shape[0].bit_length()):
        size = 1 << place
        # What ended `size` steps ago adds to what began after it.
        goes_on = before >= size
        earlier = jnp.where(goes_on, _later(total, size), 0)
        is_part = (window >> place) & 1 == 1
        total = jnp.where(is_part, ending_here + earlier, total)
        ending_here += jnp.where(goes_on, _later(ending_here, size), 0)
    return total


def _later(values: jax.Array, steps: int) -> jax.Array:
    """Values moved to a later step, zeros before them."""
    rest = [(0, 0, 0)] * (values.ndim - 1)
    nothing = jnp.zeros((), values.dtype)
    return jax.lax.pad(values, nothing, [(steps, -steps, 0), *rest])
