"""The termination model: costs add up, and high sums make the observer stop.

Section 2 of "Reinforcement Learning with a Terminator" (arXiv:2205.15376): at step t the
observer adds c(s_t, a_t) to what it remembers and stops the agent with probability
ρ(C_t − b), where ρ is the logistic function and C_t the sum of the remembered costs,
*including the present one*. Section 4 lets the observer forget: C_t then covers the last
min(w, t) steps only. (Appendix B of the paper leaves out the present cost and b. This
package follows section 2.)
"""

from functools import partial
from numbers import Integral

import jax
import jax.numpy as jnp
import numpy as np

# Streams of at most this many steps are summed window by window.
SHORT = 256

Number = float | int | jax.Array | np.ndarray


def window_sums(
    costs: jax.Array, window: int | jax.Array, starts: jax.Array
) -> jax.Array:
    """Accumulated cost C_t = Σ of the last min(window, steps so far) costs, inclusive.

    Section 4, arXiv:2205.15376: Σ_{j=1}^{min(w, l)} c(s_{l−j+1}, a_{l−j+1}).

    Sums are never subtracted from each other: after some large costs, a difference of
    prefix sums would have lost all its digits. Short streams are summed window by
    window, which is one small operation to compile. Long ones are cut into blocks of
    `window` steps. Any window spans at most two blocks: it is the end of one plus the
    beginning of the next, in O(T) work.

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
    window_start = jnp.maximum(steps - window + 1, episode_start)
    if costs.shape[0] <= SHORT:
        return _direct_sums(costs, window_start)

    block_start = steps - steps % window
    from_block_start = _running_sums(costs, is_start | (steps == block_start))
    to_block_end = _running_sums(costs, (steps + 1) % window == 0, reverse=True)
    reaches_back = window_start < block_start
    earlier = jnp.take_along_axis(to_block_end, window_start, axis=0)
    return from_block_start + jnp.where(reaches_back, earlier, 0)


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


def _running_sums(
    values: jax.Array, restarts: jax.Array, reverse: bool = False
) -> jax.Array:
    """Cumulative sums along axis 0 that start again wherever `restarts` is true."""

    def combine(
        left: tuple[jax.Array, jax.Array], right: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        left_sum, left_restarts = left
        right_sum, right_restarts = right
        total = jnp.where(right_restarts, right_sum, left_sum + right_sum)
        return total, left_restarts | right_restarts

    scan = partial(jax.lax.associative_scan, combine, reverse=reverse)
    return scan((values, restarts))[0]
