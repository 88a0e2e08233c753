"""Learning costs and biases: logistic regression on window sums.

Section 4.1, arXiv:2205.15376. Every labelled step is an example. Its logit is the sum of
a member's costs over the window that ends there, minus the member's bias. One pass of the
network over a segment gives the sums of all its windows.

The sum over examples is divided by a constant, never by a trajectory's own length: that
would count the stops of short trajectories more, and bias b.

Stops are rare, so three things are added to the paper's cross entropy and Adam: weight
decay, a prior that most steps are harmless, and predictions from a running mean of the
parameters. `benchmarks/cost_learning.py --ablate` leaves out one at a time.
"""

from dataclasses import replace
from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import struct

from termdp.cost_network import CostNetwork
from termdp.costs.buffer import unpack
from termdp.costs.config import CostConfig
from termdp.costs.ensemble import (
    ADAM,
    CostParams,
    CostState,
    apply_member,
    biases,
)
from termdp.costs.episode_scorer import EpisodeScorer, unrolled
from termdp.costs.experience import (
    Experience,
    form_of,
    members_with_stops,
    way_to_draw,
)
from termdp.costs.sampling import Segments
from termdp.termination import window_sums

# Bounds the memory that segments take when many steps are drawn at once.
MOST_STEPS_DRAWN = 32


@struct.dataclass
class CostMetrics:
    """Metrics of an update that do not need the true costs.

    Attributes:
        loss: cross entropy per step, mean over members and gradient steps.
        bias: b̄, mean over members.
        stop_rate: share of positive labels in the drawn steps.
    """

    loss: jax.Array
    bias: jax.Array
    stop_rate: jax.Array


def update(
    key: jax.Array,
    state: CostState,
    experience: Experience,
    window: jax.Array | int,
    config: CostConfig,
) -> tuple[CostState, CostMetrics]:
    """Run `num_steps` gradient steps on samples of the experience.

    Algorithm 2, line 9, arXiv:2205.15376. A member whose data has no stop stays as it is.

    Args:
        key: random key.
        state: the ensemble.
        experience: the data; must not be empty.
        window: w of the learner, static or traced.
        config: settings.
    """
    if isinstance(window, Integral):
        config.check_window(int(window))
    window = jnp.asarray(window, jnp.int32)
    draw, share = way_to_draw(experience, window, config)
    sparsity = config.sparsity * share

    def step(state: CostState, segments: Segments) -> tuple[CostState, CostMetrics]:
        obs = unpack(segments.obs, *form_of(experience))
        segments = replace(segments, obs=obs)
        return gradient_step(state, segments, window, sparsity, config)

    # Draw several steps' segments at once, still packed. The draws do not depend on
    # parameters, and on a GPU one large gather takes as long as one step's small ones.
    # This also keeps XLA from fusing it into the networks' patch extraction, which would
    # repeat it for every patch and be 6 to 8 times slower.
    def steps(state: CostState, keys: jax.Array) -> tuple[CostState, CostMetrics]:
        drawn = jax.vmap(draw)(keys)
        return jax.lax.scan(step, state, drawn)

    together = _largest_divisor(config.num_steps, MOST_STEPS_DRAWN)
    keys = jax.random.split(key, config.num_steps).reshape(-1, together)
    after, metrics = jax.lax.scan(steps, state, keys)
    state = of_members(members_with_stops(experience), after, state)
    metrics = jax.tree.map(lambda x: x.mean(), metrics)
    return state, replace(metrics, bias=biases(state).mean())


def _largest_divisor(number: int, most: int) -> int:
    return max(d for d in range(1, most + 1) if number % d == 0)


def of_members(chosen: jax.Array, after: CostState, before: CostState) -> CostState:
    """The state after the steps for chosen members `[M]`, the one before for others.

    Without a stop the likelihood has no maximum: costs would fall for ever, and with
    them what the policy sees, until the first stop throws both back.
    """

    def choose(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(chosen.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    def choose_all(new: Any, old: Any) -> Any:
        return jax.tree.map(choose, new, old)

    moments = after.optimiser._replace(
        count=jnp.where(jnp.any(chosen), after.optimiser.count, before.optimiser.count),
        mu=choose_all(after.optimiser.mu, before.optimiser.mu),
        nu=choose_all(after.optimiser.nu, before.optimiser.nu),
    )
    return replace(
        after,
        params=choose_all(after.params, before.params),
        average=choose_all(after.average, before.average),
        optimiser=moments,
    )


def gradient_step(
    state: CostState,
    segments: Segments,
    window: jax.Array,
    sparsity: jax.Array,
    config: CostConfig,
) -> tuple[CostState, CostMetrics]:
    """One step of Adam for all members; each member's loss is its own."""
    gradients, entropy = jax.grad(ensemble_loss, has_aux=True)(
        state.params, state.network, segments, window, sparsity
    )
    updates, optimiser = ADAM.update(gradients, state.optimiser)
    rate = learning_rate(config, optimiser.count)
    params = stepped(state.params, updates, rate, config)
    average = running_mean(state.average, params, optimiser.count, config.averaging)
    used = jnp.maximum(segments.weights.sum(), 1.0)
    metrics = CostMetrics(
        loss=entropy.sum() / used,
        bias=params.bias.mean(),
        stop_rate=(segments.weights * segments.labels).sum() / used,
    )
    state = replace(state, params=params, average=average, optimiser=optimiser)
    return state, metrics


def running_mean(
    mean: CostParams, params: CostParams, count: jax.Array, averaging: float
) -> CostParams:
    """Parameters averaged over past steps, over fewer of them at the beginning."""
    if averaging == 0.0:
        return params
    decay = jnp.minimum(averaging, count / (count + 9.0))
    found: CostParams = optax.incremental_update(params, mean, 1.0 - decay)
    return found


def learning_rate(config: CostConfig, count: jax.Array) -> jax.Array | float:
    """Step size of the `count`-th step: constant, or falling like 1 / √count."""
    if config.rate_decay_steps is None:
        return config.learning_rate
    return config.learning_rate / jnp.sqrt(1.0 + count / config.rate_decay_steps)


def stepped(
    params: CostParams,
    updates: CostParams,
    rate: jax.Array | float,
    config: CostConfig,
) -> CostParams:
    """Parameters after a step, with decoupled weight decay (arXiv:1711.05101)."""

    def of_network(path: tuple[Any, ...], p: jax.Array, u: jax.Array) -> jax.Array:
        is_kernel = path[-1].key == "kernel"
        kept = 1.0 - rate * config.weight_decay if is_kernel else 1.0
        return kept * p - rate * u

    return CostParams(
        network=jax.tree_util.tree_map_with_path(
            of_network, params.network, updates.network
        ),
        bias=params.bias - rate * config.bias_rate_factor * updates.bias,
    )


def ensemble_loss(
    params: CostParams,
    network: CostNetwork | EpisodeScorer,
    segments: Segments,
    window: jax.Array,
    sparsity: jax.Array | float = 0.0,
) -> tuple[jax.Array, jax.Array]:
    """Sum over members of Σ weight · cross entropy / constant, and of the prior.

    Members share no parameters, so the gradient of the sum is that of each.

    Returns:
        the loss, and Σ weight · cross entropy of each member, `[M]`.
    """

    def of_member(
        weights: CostParams,
        obs: jax.Array,
        actions: jax.Array,
        starts: jax.Array,
    ) -> tuple[jax.Array, jax.Array]:
        if isinstance(network, EpisodeScorer):
            nothing = network.initial_memory(starts.shape[1:])
            scores, added, _ = unrolled(
                network, {"params": weights.network}, nothing, obs, actions, starts
            )
            return scores - weights.bias, added
        costs = apply_member(network, weights.network, obs, actions)
        return window_sums(costs, window, starts) - weights.bias, costs

    logits, costs = jax.vmap(of_member)(
        params, segments.obs, segments.actions, segments.starts
    )
    logits = logits + segments.offset
    entropy = optax.sigmoid_binary_cross_entropy(logits, segments.labels)
    entropy = entropy * segments.weights
    per_member = entropy.sum(axis=(1, 2))
    prior = sparsity * magnitude(costs).mean(axis=(1, 2)).sum()
    return per_member.sum() / segments.expected_steps + prior, per_member


def magnitude(costs: jax.Array) -> jax.Array:
    """|c|, smoothed below 0.01 so that it can be differentiated."""
    return jnp.sqrt(costs**2 + 0.01**2) - 0.01
