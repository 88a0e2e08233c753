"""Advantages with a discount for every step.

One recursion serves plain PPO (a constant discount), the paper's dynamic discount
(γ_t = 1 − ρ(C_t − b), section 4.2 of arXiv:2205.15376) and all ways an episode can end:
the caller chooses with `discounts` and `ended`.
"""

import jax
import jax.numpy as jnp


def gae(
    rewards: jax.Array,
    values: jax.Array,
    next_values: jax.Array,
    discounts: jax.Array,
    ended: jax.Array,
    lam: float | jax.Array,
) -> jax.Array:
    """Generalised advantage estimates over a stream of episodes, time-major.

    δ_t = r_t + discount_t · next_value_t − value_t
    A_t = δ_t + discount_t · λ · (1 − ended_t) · A_{t+1},  A after the last row = 0

    Args:
        rewards: r_t, t = 0 … T−1, `[T, ...]`.
        values: V(s_t), `[T, ...]`.
        next_values: V of the state that followed step t *before* any reset, `[T, ...]`.
        discounts: discount_t `[T, ...]`; 0 where nothing follows (the game ended).
        ended: whether the episode ended at step t in any way, `[T, ...]`.
        lam: λ in [0, 1].

    Returns:
        A_t, `[T, ...]`; the targets of the value function are A_t + V(s_t).

    Examples:
        >>> import jax.numpy as jnp
        >>> one = jnp.ones(2)
        >>> gae(one, 0 * one, 0 * one, 0.5 * one, jnp.array([False, True]), 1.0).tolist()
        [1.5, 1.0]
    """
    shapes = {a.shape for a in (rewards, values, next_values, discounts, ended)}
    if len(shapes) != 1:
        raise ValueError(
            "expected rewards, values, next_values, discounts and ended of one shape, "
            f"got {sorted(shapes)}"
        )
    deltas = rewards + discounts * next_values - values
    weights = jnp.where(ended, 0.0, discounts * lam)

    def backwards(
        later: jax.Array, row: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        delta, weight = row
        advantage = delta + weight * later
        return advantage, advantage

    last = jnp.zeros_like(deltas[0])
    return jax.lax.scan(backwards, last, (deltas, weights), reverse=True)[1]
