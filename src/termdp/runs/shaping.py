"""How a method changes the rewards, and what it remembers for that.

Section 5 and appendix E of arXiv:2205.15376 (penalties, bonus), and the rules of other
methods (docs/rivals.md). Traced numbers choose the rule, so methods share a program. Only
a policy kept for reference is static: programs that need none do not carry it.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from termdp.agents.method_params import MethodParams
from termdp.agents.update import Learner
from termdp.runs.collect import Rollout
from termdp.runs.cost_features import FreshCosts

# With this bias nobody is ever stopped.
_PATIENCE = 1e9


@struct.dataclass
class ShapingState:
    """The state of a run's reward rules: scalars, and perhaps a policy.

    Attributes:
        reward_min: smallest reward so far, at most 0.
        value_min: smallest value so far, at most `reward_min`.
        value_max: largest value or reward so far, at least 0.
        multiplier: λ.
        pending_cost: cost of the rollouts since the last in which an episode ended.
        observed: whether the observer watches; once true, it stays true.
        reference: weights of the policy at the end of the unobserved phase; None in
            programs that need none.
    """

    reward_min: jax.Array
    value_min: jax.Array
    value_max: jax.Array
    multiplier: jax.Array
    pending_cost: jax.Array
    observed: jax.Array
    reference: Any = None


def initial(reference: Any = None) -> ShapingState:
    """Before the first iteration; `reference` gives the shape of a policy's weights."""
    zero = jnp.zeros(())
    return ShapingState(
        *(zero, zero, zero, zero, zero),
        observed=jnp.asarray(reference is None),
        # A copy, because the policy's own memory may be overwritten in training.
        reference=jax.tree.map(jnp.copy, reference),
    )


# ---- an unobserved phase, and the policy at its end -----------------------------------


def begin_iteration(
    method_params: MethodParams,
    state: ShapingState,
    policy: Any,
    iteration: jax.Array,
    num_iterations: int,
) -> ShapingState:
    """Let the observer watch after ⌊share · N⌋ iterations, and from then on.

    The policy with which that phase begins is kept as the reference.

    Args:
        method_params: the method.
        state: before the iteration.
        policy: the policy's weights now.
        iteration: how many are done.
        num_iterations: N, as planned for the run.
    """
    due = iteration >= jnp.floor(method_params.unobserved_share * num_iterations)
    begins = due & ~state.observed
    reference = jax.tree.map(
        lambda old, new: jnp.where(begins, new, old), state.reference, policy
    )
    return replace(state, observed=state.observed | due, reference=reference)


def watched(state: ShapingState, params: Any) -> Any:
    """The environment's parameters; in the unobserved phase nobody is stopped."""
    observer = params.observer
    unobserved = ~state.observed
    return params.replace(
        observer=observer.replace(
            bias=jnp.where(unobserved, _PATIENCE, observer.bias),
            background=jnp.where(unobserved, 0.0, observer.background),
        )
    )


def reference_divergence(
    learner: Learner, state: ShapingState, rollout: Rollout
) -> jax.Array | None:
    """KL(π ‖ π₀) at every step `[T, B]`; 0 before there is a π₀."""
    if state.reference is None:
        return None
    there, _ = learner.network.apply(
        state.reference, rollout.carry, rollout.inputs, rollout.starts, method="unroll"
    )
    divergence = learner.distribution.kl(rollout.dist_params, there)
    return jnp.where(state.observed, divergence, 0.0)


# ---- once per iteration ---------------------------------------------------------------


def updated(
    method_params: MethodParams,
    state: ShapingState,
    rollout: Rollout,
    fresh: FreshCosts | None,
) -> ShapingState:
    """The state after a rollout, with which the rollout's own rewards are shaped."""
    return with_multiplier(
        method_params,
        with_extremes(state, rollout.rewards, rollout.values),
        rollout,
        fresh,
    )


def with_extremes(
    state: ShapingState, rewards: jax.Array, values: jax.Array
) -> ShapingState:
    """ROSARL (arXiv:2306.00035): extremes of the task's rewards and of values so far."""
    reward_min = jnp.minimum(state.reward_min, jnp.min(rewards))
    lowest = jnp.minimum(reward_min, jnp.min(values))
    highest = jnp.maximum(jnp.max(rewards), jnp.max(values))
    return replace(
        state,
        reward_min=reward_min,
        value_min=jnp.minimum(state.value_min, lowest),
        value_max=jnp.maximum(state.value_max, highest),
    )


def minmax_penalty(state: ShapingState) -> jax.Array:
    """min(r_min, V_min − V_max)."""
    return jnp.minimum(state.reward_min, state.value_min - state.value_max)


def stop_costs(fresh: FreshCosts) -> jax.Array:
    """−log(1 − ρ(z_t)), without loss of precision."""
    return jax.nn.softplus(fresh.accumulated.logit)


def with_multiplier(
    method_params: MethodParams,
    state: ShapingState,
    rollout: Rollout,
    fresh: FreshCosts | None,
) -> ShapingState:
    """λ ← max(0, λ + η·(J − limit)), J the learned cost per episode that ended.

    If no episode ended in a rollout, J is unknown: its cost is kept for the next rollout
    in which one ends.
    """
    if fresh is None:
        return state
    cost = state.pending_cost + jnp.sum(stop_costs(fresh))
    episodes = jnp.sum(rollout.ended)
    excess = cost / jnp.maximum(episodes, 1) - method_params.cost_limit
    stepped = jnp.maximum(
        0.0, state.multiplier + method_params.multiplier_rate * excess
    )
    some = episodes > 0
    return replace(
        state,
        multiplier=jnp.where(some, stepped, state.multiplier),
        pending_cost=jnp.where(some, 0.0, cost),
    )


# ---- the rewards ----------------------------------------------------------------------


def shaped_rewards(
    method_params: MethodParams,
    state: ShapingState,
    rollout: Rollout,
    fresh: FreshCosts | None,
    divergence: jax.Array | None = None,
) -> jax.Array:
    """r_t − p on a stop − α·C_optimistic + α·U(C) − β·KL − λ·cost, over 1 + λ.

    Some methods leave out the task's r_t, or replace the reward of a stop. The division
    keeps values on the scale of the rewards, however large λ grows.
    """
    rewards = method_params.reward_factor * rollout.rewards
    rewards = rewards - method_params.stop_penalty * rollout.stopped
    if divergence is not None:
        rewards = rewards - method_params.kl_penalty * divergence
    if fresh is not None:
        accumulated = fresh.accumulated
        rewards = rewards - method_params.cost_penalty * accumulated.policy_input
        rewards = rewards + method_params.bonus * accumulated.uncertainty
        rewards = rewards - state.multiplier * stop_costs(fresh)
        rewards = rewards / (1.0 + state.multiplier)
    replaced = rollout.stopped & (method_params.minmax_penalty > 0)
    return jnp.where(replaced, minmax_penalty(state), rewards)
