"""A method as the compiled program takes it: numbers only, all traced."""

import math

import jax
import jax.numpy as jnp
from flax import struct

from termdp.agents.methods import Method
from termdp.costs.optimism import Optimism, make_optimism


@struct.dataclass
class MethodParams:
    """The numbers that distinguish methods in one program; see `Method` for meanings.

    Attributes:
        sees_costs: 1 where the policy sees the accumulated cost.
        knows_costs: 1 where that is the true one.
        dynamic_discount: 1 where the discount is multiplied by the chance of no stop.
        discount: the constant.
        stop_weight: β, how much a stop counts as an end, beside its probability.
        stop_bootstraps: 1 where a stopped step bootstraps from the state that follows.
        game_over_bootstraps: 1 where even the game's end does.
        stop_penalty: p.
        cost_penalty: α in r − α·C.
        bonus: α in r + α·U(C).
        optimism: how the cost networks become one.
        window: the learner's w.
        reward_factor: 0 where the task's rewards do not count, else 1.
        minmax_penalty: 1 where ROSARL's penalty replaces the reward of a stop.
        multiplier_rate: η of the Lagrange multiplier; 0 where there is none.
        cost_limit: −log(1 − target stop rate).
        kl_penalty: β.
        unobserved_share: share of the iterations that come first, unobserved.
    """

    sees_costs: jax.Array
    knows_costs: jax.Array
    dynamic_discount: jax.Array
    discount: jax.Array
    stop_weight: jax.Array
    stop_bootstraps: jax.Array
    game_over_bootstraps: jax.Array
    stop_penalty: jax.Array
    cost_penalty: jax.Array
    bonus: jax.Array
    optimism: Optimism
    window: jax.Array
    reward_factor: jax.Array
    minmax_penalty: jax.Array
    multiplier_rate: jax.Array
    cost_limit: jax.Array
    kl_penalty: jax.Array
    unobserved_share: jax.Array


def method_params(method: Method, window: int) -> MethodParams:
    """A method as numbers.

    Args:
        method: its discount must be known (`Method.for_environment`).
        window: how many steps the observer remembers.
    """
    if method.discount is None:
        raise ValueError(
            "expected a discount, got a method that takes it from the environment: "
            "call for_environment first, or give the number"
        )
    optimism = make_optimism(method.optimism, method.std_factor, method.uncertainty)
    return MethodParams(
        sees_costs=jnp.float32(method.learns_costs or method.knows_costs),
        knows_costs=jnp.float32(method.knows_costs),
        dynamic_discount=jnp.float32(method.dynamic_discount),
        discount=jnp.float32(method.discount),
        stop_weight=jnp.float32(method.stop_weight),
        stop_bootstraps=jnp.float32(method.handles_ends != "cut"),
        game_over_bootstraps=jnp.float32(method.handles_ends == "ignored"),
        stop_penalty=jnp.float32(method.stop_penalty),
        cost_penalty=jnp.float32(method.cost_penalty),
        bonus=jnp.float32(method.bonus),
        optimism=jax.tree.map(jnp.float32, optimism),
        window=jnp.int32(method.learner_window(window)),
        reward_factor=jnp.float32(not method.drops_rewards),
        minmax_penalty=jnp.float32(method.minmax_penalty),
        multiplier_rate=jnp.float32(method.constrained * method.multiplier_rate),
        cost_limit=jnp.float32(-math.log1p(-method.stop_rate_target)),
        kl_penalty=jnp.float32(method.kl_penalty),
        unobserved_share=jnp.float32(method.unobserved_share),
    )
