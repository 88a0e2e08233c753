"""From learned or true costs to the policy's inputs and the discounts.

Section 4 of arXiv:2205.15376: the state is augmented by the optimistic accumulated cost
C, and γ_t = 1 − ρ(C_t − b). Let z be the optimistic logit of a stop. The policy sees
z + b̄ *before* acting (costs of steps 1 … t−1). The discount of step t uses z *after* it.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from termdp.agents.method_params import MethodParams
from termdp.costs import ensemble, optimism
from termdp.costs.config import CostConfig
from termdp.costs.episode_scorer import EpisodeScorer, memory_size, unrolled
from termdp.layers import precompute_weights
from termdp.termination import window_sums

NUM_FEATURES = 2
# C is divided by this. It is about as large as b (6 in the benchmarks): inputs near 1.
_SCALE = 5.0
# How far below 0 and above b a policy sees C. Learned costs have no bound, and beyond
# these a stop is impossible or certain.
_FAR = 50.0


@struct.dataclass
class Accumulated:
    """The learned accumulated cost of some steps, `[...]` each.

    Attributes:
        logit: z, the optimistic logit of a stop.
        policy_input: z + b̄, the optimistic accumulated cost, within bounds.
        uncertainty: U(C) over the members.
        mean: mean over members of C_m, for reports.
    """

    logit: jax.Array
    policy_input: jax.Array
    uncertainty: jax.Array
    mean: jax.Array


@struct.dataclass
class FreshCosts:
    """The newest networks' costs of a rollout.

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
    """What a policy sees of costs, `[..., 2]`: C / 5 and ρ(z); zeros for plain PPO."""
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
        costs: the ensemble; None if no method of the program learns costs.
        recent: its memory of the episode; None in the same case.
        true_window_cost: C so far, `[B]`.
        bias: the observer's b.
    """
    known = features(method_params, true_window_cost - bias, true_window_cost)
    if recent is None:
        return method_params.knows_costs * known
    learned = so_far(method_params, costs, recent)
    estimate = features(method_params, learned.logit, learned.policy_input)
    return jnp.where(method_params.knows_costs > 0, known, estimate)


# ---- what learned costs remember of an episode: a window, or a scorer's memory -------


def empty_memory(config: CostConfig, window: int, num_envs: int) -> jax.Array:
    """The memory at the start of an episode, the environments B last.

    Either `[W, K, B]`, a window of costs: each member's, then the optimistic one. Or
    `[S, B]`, what a scorer of whole episodes remembers.
    """
    if config.memory == "window":
        return jnp.zeros((window, config.members + 1, num_envs))
    return jnp.zeros((memory_size(config.memory), num_envs))


def so_far(method_params: MethodParams, costs: Any, recent: jax.Array) -> Accumulated:
    """The learned accumulated cost of the remembered steps, `[B]` each."""
    if isinstance(costs.network, EpisodeScorer):
        memory = jnp.moveaxis(recent, 0, -1)
        scores: Any = costs.network.apply(_weights(costs), memory, method="score")
        return _of_scores(costs, scores)
    return accumulate(method_params, costs, recent_sums(recent, method_params.window))


def after_step(
    method_params: MethodParams,
    costs: Any,
    recent: jax.Array,
    observations: Any,
    actions: Any,
) -> jax.Array:
    """The memory after one more step of each environment."""
    if isinstance(costs.network, EpisodeScorer):
        memory = jnp.moveaxis(recent, 0, -1)
        memory, _ = costs.network.apply(_weights(costs), memory, observations, actions)
        return jnp.moveaxis(memory, -1, 0)
    newest = channel_costs(method_params, costs, observations, actions)
    return remember(recent, newest)


def of_rollout(
    method_params: MethodParams,
    costs: Any,
    recent: jax.Array,
    observations: Any,
    actions: Any,
    starts: jax.Array,
    ended_last: jax.Array,
) -> tuple[FreshCosts, jax.Array]:
    """C after each step of a rollout, and the memory after it.

    Args:
        method_params: whose method.
        costs: the newest networks.
        recent: the memory before the rollout.
        observations: `[T, B, ...]`.
        actions: `[T, B, ...]`.
        starts: first steps of episodes, `[T, B]`.
        ended_last: where an episode ended on the last row, `[B]`.
    """
    bias = jnp.mean(ensemble.biases(costs))
    if isinstance(costs.network, EpisodeScorer):
        memory = jnp.moveaxis(recent, 0, -1)
        scores, added, memory = unrolled(
            costs.network, _weights(costs), memory, observations, actions, starts
        )
        memory = jnp.where(ended_last, 0.0, jnp.moveaxis(memory, -1, 0))
        return FreshCosts(_of_scores(costs, scores), added[:, None], bias), memory
    newest = channel_costs(method_params, costs, observations, actions)
    sums = sums_with_history(recent, newest, starts, method_params.window)
    memory = memory_after(recent, newest, starts, ended_last)
    accumulated = accumulate(method_params, costs, sums)
    return FreshCosts(accumulated, newest[:, :-1], bias), memory


def prepared(costs: Any, observations: Any, actions: Any) -> Any:
    """The cost networks with precomputed weights, for loops."""
    if isinstance(costs.network, EpisodeScorer):
        memory = costs.network.initial_memory(jnp.shape(observations)[:1])
        inputs = (memory, observations, actions)
        variables = precompute_weights(costs.network, _weights(costs), *inputs)
        return replace(costs, variables=variables)
    return ensemble.precompute_weights(costs, observations, actions)


def _weights(costs: Any) -> Any:
    """Weights of the single episode scorer, precomputed if possible."""
    alone = jax.tree.map(lambda leaf: leaf[0], costs.average.network)
    return costs.variables or {"params": alone}


def _of_scores(costs: Any, scores: jax.Array) -> Accumulated:
    bias = ensemble.biases(costs)[0]
    return Accumulated(
        logit=scores - bias,
        policy_input=jnp.clip(scores, -_FAR, bias + _FAR),
        uncertainty=jnp.zeros_like(scores),
        mean=scores,
    )


# ---- windows -------------------------------------------------------------------------


def channel_costs(
    method_params: MethodParams, costs: Any, observations: Any, actions: Any
) -> jax.Array:
    """Learned costs of steps `[..., K, B]`: the members', then the optimistic one."""
    members = ensemble.member_costs(costs, observations, actions)
    optimistic = optimism.step_costs(method_params.optimism, members)
    channels = jnp.concatenate([members, optimistic[None]], axis=0)
    return jnp.moveaxis(channels, 0, -2)


def accumulate(method_params: MethodParams, costs: Any, sums: jax.Array) -> Accumulated:
    """The accumulated cost from window sums of the channels `[..., K, B]`."""
    members = jnp.moveaxis(sums[..., :-1, :], -2, 0)
    biases = ensemble.biases(costs)
    logit = optimism.optimistic_logit(
        method_params.optimism, sums[..., -1, :], members, biases
    )
    seen = optimism.policy_input(logit, biases)
    return Accumulated(
        logit=logit,
        policy_input=jnp.clip(seen, -_FAR, biases.mean() + _FAR),
        uncertainty=optimism.uncertainty(method_params.optimism, members),
        mean=jnp.mean(members, axis=0),
    )


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
