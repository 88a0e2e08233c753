"""Optimistic costs: from an ensemble to the policy's input and the discount.

Section 4.1, arXiv:2205.15376, and its ablations. A method is data: a set of weights
chooses its optimism, so all methods share one compiled program. Each formula is one
function; `M` is the member axis, always first.
"""

import jax
import jax.numpy as jnp
from flax import struct

from termdp.costs.config import OPTIMISMS, UNCERTAINTIES


@struct.dataclass
class Optimism:
    """Which optimism and which uncertainty, as weights that may be traced.

    Attributes:
        min: 1 for the paper's optimism: per step the minimum over members.
        std: 1 for mean − α·std per step.
        mean: 1 for no optimism: the mean over members per step.
        logit: 1 for the minimum over members of the accumulated C_m − b_m.
        alpha: α of `std`.
        spread: 1 for U = standard deviation, 0 for U = max − min over members.
    """

    min: jax.Array | float = 0.0
    std: jax.Array | float = 0.0
    mean: jax.Array | float = 0.0
    logit: jax.Array | float = 0.0
    alpha: jax.Array | float = 1.0
    spread: jax.Array | float = 0.0


def make_optimism(
    kind: str = "min", alpha: float = 1.0, uncertainty: str = "range"
) -> Optimism:
    """Weights of one kind of optimism and one kind of uncertainty."""
    if kind not in OPTIMISMS:
        raise ValueError(f"expected optimism to be one of {OPTIMISMS}, got {kind!r}")
    if uncertainty not in UNCERTAINTIES:
        raise ValueError(
            f"expected uncertainty to be one of {UNCERTAINTIES}, got {uncertainty!r}"
        )
    weights = {name: float(name == kind) for name in OPTIMISMS}
    return Optimism(alpha=alpha, spread=float(uncertainty == "std"), **weights)


def min_costs(costs: jax.Array) -> jax.Array:
    """min_m c_m, from `[M, ...]` to `[...]`; section 4.1, arXiv:2205.15376."""
    return costs.min(axis=0)


def mean_costs(costs: jax.Array) -> jax.Array:
    """Mean over members, from `[M, ...]` to `[...]`."""
    return costs.mean(axis=0)


def mean_minus_std(costs: jax.Array, alpha: jax.Array | float) -> jax.Array:
    """Mean − α·std over members (std over all M, no correction), `[M, ...] → [...]`."""
    return costs.mean(axis=0) - alpha * costs.std(axis=0)


def min_logit(window_costs: jax.Array, biases: jax.Array) -> jax.Array:
    """min_m(C_m − b_m): each member keeps its own bias.

    Args:
        window_costs: C_m, `[M, ...]`.
        biases: b_m, `[M]`.
    """
    return (window_costs - _like(biases, window_costs)).min(axis=0)


def step_costs(optimism: Optimism, costs: jax.Array) -> jax.Array:
    """The optimistic cost of a step, which is then summed over the window.

    For `logit`, whose optimism acts on the sums, it is the mean.

    Args:
        optimism: weights of the kinds.
        costs: c_m of each step, `[M, ...]`.
    """
    return (
        optimism.min * min_costs(costs)
        + optimism.std * mean_minus_std(costs, optimism.alpha)
        + (optimism.mean + optimism.logit) * mean_costs(costs)
    )


def optimistic_logit(
    optimism: Optimism,
    window_cost: jax.Array,
    window_costs: jax.Array,
    biases: jax.Array,
) -> jax.Array:
    """z: C − b̄ of the optimistic costs, or for `logit` min_m(C_m − b_m).

    Args:
        optimism: weights of the kinds.
        window_cost: C, window sum of `step_costs`, `[...]`.
        window_costs: C_m, window sums of the members' costs, `[M, ...]`.
        biases: b_m, `[M]`.
    """
    of_mean_bias = window_cost - biases.mean()
    of_members = min_logit(window_costs, biases)
    return (1.0 - optimism.logit) * of_mean_bias + optimism.logit * of_members


def policy_input(logit: jax.Array, biases: jax.Array) -> jax.Array:
    """What the policy sees: z + b̄, the optimistic accumulated cost.

    Section 4.1, arXiv:2205.15376: s_aug = (s, C_optimistic).
    """
    return logit + biases.mean()


def dynamic_discount(logit: jax.Array) -> jax.Array:
    """γ = 1 − ρ(z), the probability of not being stopped.

    Section 4.2, arXiv:2205.15376. Written as ρ(−z), which is precise near 0.
    """
    return jax.nn.sigmoid(-logit)


def uncertainty(optimism: Optimism, window_costs: jax.Array) -> jax.Array:
    """U(C): max − min, or the standard deviation, of C_m over members.

    Args:
        optimism: which of the two.
        window_costs: C_m, `[M, ...]`.
    """
    full_range = window_costs.max(axis=0) - window_costs.min(axis=0)
    spread = window_costs.std(axis=0)
    return (1.0 - optimism.spread) * full_range + optimism.spread * spread


def _like(biases: jax.Array, costs: jax.Array) -> jax.Array:
    return jnp.reshape(biases, (-1,) + (1,) * (costs.ndim - 1))
