"""Learning costs and biases: logistic regression on window sums.

Section 4.1, arXiv:2205.15376. Every labelled step is an example, whose logit is the sum
of a member's costs over the window before it, minus the member's bias. One pass of the
network over a stretch gives the sums of all its windows.

The sum over examples is divided by a constant, never by a trajectory's own length: that
would count the stops of short trajectories more and bias b.
"""

from dataclasses import replace
from numbers import Integral

import jax
import jax.numpy as jnp
from flax import struct

from termdp.costs.buffer import Buffer
from termdp.costs.config import CostConfig
from termdp.costs.ensemble import ADAM, CostParams, CostState, apply_member
from termdp.costs.network import CostNetwork
from termdp.costs.sampling import Segments, sample
from termdp.termination import window_sums


@struct.dataclass
class CostMetrics:
    """What is known after an update, without knowing the true costs.

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
    buffer: Buffer,
    window: jax.Array | int,
    config: CostConfig,
) -> tuple[CostState, CostMetrics]:
    """Run `num_steps` gradient steps on draws from the buffer.

    Algorithm 2, line 9, arXiv:2205.15376.

    Args:
        key: random key.
        state: the ensemble.
        buffer: experience; must not be empty.
        window: w of the learner, static or traced.
        config: settings.
    """
    if isinstance(window, Integral):
        config.check_window(int(window))
    window = jnp.asarray(window, jnp.int32)

    def step(state: CostState, key: jax.Array) -> tuple[CostState, CostMetrics]:
        segments = sample(key, buffer, window, config)
        return gradient_step(state, segments, window, config)

    state, metrics = jax.lax.scan(step, state, jax.random.split(key, config.num_steps))
    metrics = jax.tree.map(lambda x: x.mean(), metrics)
    return state, replace(metrics, bias=state.params.bias.mean())


def gradient_step(
    state: CostState, segments: Segments, window: jax.Array, config: CostConfig
) -> tuple[CostState, CostMetrics]:
    """One step of Adam for all members; each member's loss is its own."""
    gradients, entropy = jax.grad(ensemble_loss, has_aux=True)(
        state.params, state.network, segments, window
    )
    updates, optimiser = ADAM.update(gradients, state.optimiser)
    rate = config.learning_rate
    params = CostParams(
        network=jax.tree.map(
            lambda p, u: p - rate * u, state.params.network, updates.network
        ),
        bias=state.params.bias - rate * config.bias_rate_factor * updates.bias,
    )
    used = jnp.maximum(segments.weights.sum(), 1.0)
    metrics = CostMetrics(
        loss=entropy.sum() / used,
        bias=params.bias.mean(),
        stop_rate=(segments.weights * segments.labels).sum() / used,
    )
    return replace(state, params=params, optimiser=optimiser), metrics


def ensemble_loss(
    params: CostParams, network: CostNetwork, segments: Segments, window: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Sum over members of Σ weight · cross entropy / constant; and Σ per member.

    Members share no parameters, so the gradient of the sum is that of each.
    """

    def of_member(
        weights: CostParams,
        obs: jax.Array,
        actions: jax.Array,
        starts: jax.Array,
    ) -> jax.Array:
        costs = apply_member(network, weights.network, obs, actions)
        return window_sums(costs, window, starts) - weights.bias

    logits = jax.vmap(of_member)(
        params, segments.obs, segments.actions, segments.starts
    )
    entropy = cross_entropy(logits, segments.labels) * segments.weights
    per_member = entropy.sum(axis=(1, 2))
    return per_member.sum() / segments.expected_steps, per_member


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """−y·log ρ(z) − (1 − y)·log(1 − ρ(z)), per example, without overflow."""
    return jax.nn.softplus(logits) - labels * logits
