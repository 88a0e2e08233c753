"""From learned or true costs to what the policy sees and how the values discount.

Section 4 of arXiv:2205.15376: the state is augmented by the optimistic accumulated cost
C, and γ_t = 1 − ρ(C_t − b). With w the learner's window and z the optimistic logit, the
policy sees z + b̄ *before* acting (steps 1 … t−1), the discount of step t uses z *after*
it.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from termdp.agents.method_params import MethodParams
from termdp.costs import ensemble, optimism
from termdp.termination import window_sums

NUM_FEATURES = 2
# Accumulated costs are of the order of b (6 in the benchmarks): keeps inputs near 1.
_SCALE = 5.0


@struct.dataclass
class Accumulated:
    """The learned accumulated cost of some steps, `[...]` each.

    Attributes:
        logit: z, the optimistic logit of a stop.
        policy_input: z + b̄, the optimistic accumulated cost.
        uncertainty: U(C) over the members.
        mean: mean over members of C_m, for reports.
    """

    logit: jax.Array
    policy_input: jax.Array
    uncertainty: jax.Array
    mean: jax.Array


@struct.dataclass
class FreshCosts:
    """What the newest networks make of a rollout.

    Attributes:
        accumulated: of each step, `[T, B]` each.
        members: c_m of each step, `[T, M, B]`.
        bias: b̄.
    """

    accumulated: Accumulated
    members: jax.Array
    bias: jax.Array


def features(
    method_params: MethodParams, logit: jax.Array, window_cost: jax.Array
) -> jax.Array:
    """What a policy sees of costs, `[..., 2]`: C and ρ(z); zeros for plain PPO."""
    both = jnp.stack([window_cost / _SCALE, jax.nn.sigmoid(logit)], axis=-1)
    return method_params.sees_costs * both


def visible_costs(
    method_params: MethodParams,
    costs: Any,
    recent: jax.Array | None,
    true_window_cost: jax.Array,
    bias: Any,
) -> jax.Array:
    """The cost features before acting, `[B, 2]`: learned ones, or true ones if known.

    Args:
        method_params: whose method.
        costs: the ensemble; None where no method of the program learns costs.
        recent: its memory of the episode, `[W, K, B]`; None likewise.
        true_window_cost: C so far, `[B]`.
        bias: the observer's b.
    """
    known = features(method_params, true_window_cost - bias, true_window_cost)
    if recent is None:
        return method_params.knows_costs * known
    sums = recent_sums(recent, method_params.window)
    learned = accumulate(method_params, costs, sums)
    estimate = features(method_params, learned.logit, learned.policy_input)
    return jnp.where(method_params.knows_costs > 0, known, estimate)


def channel_costs(
    method_params: MethodParams, costs: Any, observations: Any, actions: Any
) -> jax.Array:
    """Learned costs of steps `[..., K, B]`: the members', then the optimistic one."""
    members = ensemble.member_costs(costs, observations, actions)
    optimistic = optimism.step_costs(method_params.optimism, members)
    channels = jnp.concatenate([members, optimistic[None]], axis=0)
    return jnp.moveaxis(channels, 0, -2)


def accumulate(method_params: MethodParams, costs: Any, sums: jax.Array) -> Accumulated:
    """From window sums of the channels `[..., K, B]`."""
    members = jnp.moveaxis(sums[..., :-1, :], -2, 0)
    biases = ensemble.biases(costs)
    logit = optimism.optimistic_logit(
        method_params.optimism, sums[..., -1, :], members, biases
    )
    return Accumulated(
        logit=logit,
        policy_input=optimism.policy_input(logit, biases),
        uncertainty=optimism.uncertainty(method_params.optimism, members),
        mean=jnp.mean(members, axis=0),
    )


def empty_memory(window: int, members: int, num_envs: int) -> jax.Array:
    """The memory `[W, K, B]` at the start of an episode."""
    return jnp.zeros((window, members + 1, num_envs))


def remember(recent: jax.Array, newest: jax.Array) -> jax.Array:
    """Shift one step's channels `[K, B]` into the memory `[W, K, B]`."""
    return jnp.concatenate([recent[1:], newest[None]], axis=0)


def recent_sums(recent: jax.Array, window: jax.Array) -> jax.Array:
    """Sums of the last `window` rows of the memory: `[W, K, B]` to `[K, B]`."""
    rows = jnp.arange(recent.shape[0])[:, None, None]
    inside = rows >= recent.shape[0] - window
    return jnp.sum(jnp.where(inside, recent, 0.0), axis=0)


def sums_with_history(
    recent: jax.Array, newest: jax.Array, starts: jax.Array, window: jax.Array
) -> jax.Array:
    """Window sums of a rollout's channels whose first windows reach back before it.

    Args:
        recent: costs before the rollout, `[W, K, B]`, zeros before an episode's start.
        newest: costs of the rollout, `[T, K, B]`.
        starts: first steps of episodes, `[T, B]`.
        window: w ≤ W.

    Returns:
        `[T, K, B]`.
    """
    stream = jnp.concatenate([recent, newest], axis=0)
    # The memory holds zeros before its episode's start, so it needs no start flags.
    none = jnp.zeros((recent.shape[0], *starts.shape[1:]), bool)
    flags = jnp.concatenate([none, starts], axis=0)
    flags = jnp.broadcast_to(flags[:, None, :], stream.shape)
    return window_sums(stream, window, flags)[recent.shape[0] :]


def memory_after(
    recent: jax.Array, newest: jax.Array, starts: jax.Array, ended_last: jax.Array
) -> jax.Array:
    """The memory `[W, K, B]` after a rollout: the present episode's costs only."""
    stream = jnp.concatenate([recent, newest], axis=0)
    first = jnp.concatenate(
        [jnp.zeros((recent.shape[0], starts.shape[1]), bool), starts]
    )
    rows = jnp.arange(stream.shape[0])[:, None]
    last_start = jnp.max(jnp.where(first, rows, 0), axis=0)
    mine = (rows >= last_start) & ~ended_last
    kept = jnp.where(mine[:, None, :], stream, 0.0)
    return kept[newest.shape[0] :]
