"""Advantage actor-critic: one plain policy-gradient step per rollout.

The simplest update that fits the loop; it shows that the policy-gradient algorithm is
an argument (ALG-PG) and not part of TermPG.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax

from termdp.agents.update import (
    Examples,
    Learner,
    Metrics,
    PolicyState,
    forward,
    split,
    standardise,
)


@dataclasses.dataclass(frozen=True)
class A2CConfig:
    """Settings of the update: weights of value loss and entropy bonus."""

    value_coef: float = 0.5
    entropy_coef: float = 0.01


def loss(
    params: Any, learner: Learner, batch: Examples, config: A2CConfig
) -> tuple[jax.Array, Metrics]:
    """−log π(a) · A + value error − entropy, on a whole rollout."""
    policy, values = forward(learner, params, batch)
    log_prob = learner.distribution.log_prob(policy, batch.actions)
    policy_loss = -jnp.mean(log_prob * batch.advantages)
    value_loss = jnp.mean((values - batch.targets) ** 2)
    entropy = jnp.mean(learner.distribution.entropy(policy))
    total = policy_loss + config.value_coef * value_loss - config.entropy_coef * entropy
    parts = {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy}
    return total, parts


def update(
    learner: Learner,
    state: PolicyState,
    examples: Examples,
    key: jax.Array,
    config: A2CConfig,
) -> tuple[PolicyState, Metrics]:
    """One gradient step on the rollout as it is."""
    examples = dataclasses.replace(
        examples, advantages=standardise(examples.advantages)
    )
    batch = jax.tree.map(lambda x: x[0], split(learner, examples, key, 1))
    grads, parts = jax.grad(loss, has_aux=True)(state.params, learner, batch, config)
    changes, moments = learner.optimiser.update(grads, state.optimiser, state.params)
    params = optax.apply_updates(state.params, changes)
    return PolicyState(params, moments, state.kl_coef), parts
