"""Proximal policy optimisation with clipping *and* an adaptive KL penalty.

As in the RLlib version that the paper used: a clip on the ratio, a KL penalty whose
coefficient follows a target, and a value loss with a clip on the change of the value
(the larger of the clipped and the unclipped error; off by default). The paper's numbers
are in appendix D of arXiv:2205.15376.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax

from termdp.agents.update import (
    AdamSettings,
    Examples,
    Learner,
    Metrics,
    PolicyState,
    cast_kernels,
    forward,
    on_own_scale,
    split,
    standardise,
    with_cast_kernels,
)
from termdp.settings import number


@dataclasses.dataclass(frozen=True)
class PPOConfig(AdamSettings):
    """Settings of PPO; an `Algorithm`."""

    num_epochs: int = number(4, "Passes over each rollout.", least=1)
    num_minibatches: int = number(16, "Parts of a rollout, per pass.", least=1)
    clip: float = number(0.3, "How far the probability ratio may be from 1.", above=0)
    value_clip: float | None = number(
        None, "Bound on the change of a value per update; none for no bound.", above=0
    )
    value_coef: float = number(1.0, "Weight of the value loss.", least=0)
    entropy_coef: float = number(0.0, "Weight of the entropy bonus.", least=0)
    kl_coef: float = number(0.2, "First coefficient of the KL penalty.", least=0)
    kl_target: float = number(0.05, "Target KL divergence per update.", above=0)

    def updates(self) -> int:
        """Steps of the optimiser per iteration."""
        return self.num_epochs * self.num_minibatches

    def initial_extra(self) -> jax.Array:
        """The KL penalty's coefficient."""
        return jnp.float32(self.kl_coef)

    def update(
        self, learner: Learner, state: PolicyState, examples: Examples, key: jax.Array
    ) -> tuple[PolicyState, Metrics]:
        """Improve the policy on one rollout."""
        return update(learner, state, examples, key, self)


def clipped_surrogate(ratio: jax.Array, advantage: jax.Array, clip: Any) -> jax.Array:
    """min(ratio · A, clip(ratio, 1 − ε, 1 + ε) · A), to be maximised."""
    bounded = jnp.clip(ratio, 1.0 - clip, 1.0 + clip)
    return jnp.minimum(ratio * advantage, bounded * advantage)


def clipped_value_loss(
    value: jax.Array, old_value: jax.Array, target: jax.Array, clip: Any
) -> jax.Array:
    """max((V − R)², (V_clipped − R)²), V_clipped within `clip` of the old value."""
    near = old_value + jnp.clip(value - old_value, -clip, clip)
    return jnp.maximum((value - target) ** 2, (near - target) ** 2)


def adapt_kl_coef(coef: jax.Array, kl: jax.Array, target: Any) -> jax.Array:
    """×1.5 when the divergence is over twice its target, ×0.5 when under half."""
    factor = jnp.where(kl > 2.0 * target, 1.5, jnp.where(kl < 0.5 * target, 0.5, 1.0))
    return coef * factor


def loss(
    params: Any, learner: Learner, batch: Examples, kl_coef: Any, config: PPOConfig
) -> tuple[jax.Array, Metrics]:
    """PPO's loss on one minibatch, and its parts."""
    distribution = learner.distribution
    dist_params, values = forward(learner, params, batch)
    log_ratio = distribution.log_prob(
        dist_params, batch.actions
    ) - distribution.log_prob(batch.dist_params, batch.actions)
    surrogate = clipped_surrogate(jnp.exp(log_ratio), batch.advantages, config.clip)
    kl = jnp.mean(distribution.kl(batch.dist_params, dist_params))
    entropy = jnp.mean(distribution.entropy(dist_params))
    value_loss = jnp.mean(
        (values - batch.targets) ** 2
        if config.value_clip is None
        else clipped_value_loss(values, batch.values, batch.targets, config.value_clip)
    )
    policy_loss = -jnp.mean(surrogate) + kl_coef * kl
    total = policy_loss + config.value_coef * value_loss - config.entropy_coef * entropy
    parts = {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": entropy,
        "kl": kl,
    }
    return total, parts


def update(
    learner: Learner,
    state: PolicyState,
    examples: Examples,
    key: jax.Array,
    config: PPOConfig,
) -> tuple[PolicyState, Metrics]:
    """Several passes over a rollout in shuffled minibatches, then adapt the penalty."""
    state, examples = on_own_scale(state, examples, config)
    examples = dataclasses.replace(
        examples, advantages=standardise(examples.advantages)
    )
    gradient = jax.value_and_grad(loss, has_aux=True)

    def on_minibatch(carry: Any, batch: Examples) -> tuple[Any, Metrics]:
        params, moments, kernels = carry
        weights = with_cast_kernels(params, kernels)
        (_, parts), grads = gradient(weights, learner, batch, state.extra, config)
        grads = jax.tree.map(lambda g, p: g.astype(p.dtype), grads, params)
        changes, moments = learner.optimiser.update(grads, moments, params)
        params = optax.apply_updates(params, changes)
        return (params, moments, cast_kernels(learner, params)), parts

    def epoch(carry: Any, key: jax.Array) -> tuple[Any, Metrics]:
        batches = split(learner, examples, key, config.num_minibatches)
        carry, parts = jax.lax.scan(on_minibatch, carry, batches)
        return carry, jax.tree.map(jnp.mean, parts)

    keys = jax.random.split(key, config.num_epochs)
    kernels = cast_kernels(learner, state.params)
    (params, moments, _), parts = jax.lax.scan(
        epoch, (state.params, state.optimiser, kernels), keys
    )
    last = jax.tree.map(lambda part: part[-1], parts)
    kl_coef = adapt_kl_coef(state.extra, last["kl"], config.kl_target)
    state = dataclasses.replace(state, params=params, optimiser=moments, extra=kl_coef)
    return state, last | {"kl_coef": kl_coef}
