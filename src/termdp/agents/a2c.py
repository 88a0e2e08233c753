"""Advantage actor-critic: one plain policy-gradient step per rollout.

The simplest update that fits the loop. It shows that the policy-gradient algorithm is an
argument (ALG-PG) and not part of TermPG.
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
    forward,
    on_own_scale,
    split,
    standardise,
)
from termdp.settings import number


@dataclasses.dataclass(frozen=True)
class A2CConfig(AdamSettings):
    """Settings of A2C; an `Algorithm`."""

    value_coef: float = number(0.5, "Weight of the value loss.", least=0)
    entropy_coef: float = number(0.01, "Weight of the entropy bonus.", least=0)

    def initial_extra(self) -> tuple[()]:
        """A2C adapts nothing."""
        return ()

    def update(
        self, learner: Learner, state: PolicyState, examples: Examples, key: jax.Array
    ) -> tuple[PolicyState, Metrics]:
        """Improve the policy on one rollout."""
        return update(learner, state, examples, key, self)


def loss(
    params: Any, learner: Learner, batch: Examples, config: A2CConfig
) -> tuple[jax.Array, Metrics]:
    """−log π(a) · A + value error − entropy, on a whole rollout."""
    dist_params, values = forward(learner, params, batch)
    log_prob = learner.distribution.log_prob(dist_params, batch.actions)
    policy_loss = -jnp.mean(log_prob * batch.advantages)
    value_loss = jnp.mean((values - batch.targets) ** 2)
    entropy = jnp.mean(learner.distribution.entropy(dist_params))
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
    state, examples = on_own_scale(state, examples, config)
    examples = dataclasses.replace(
        examples, advantages=standardise(examples.advantages)
    )
    batch = jax.tree.map(lambda x: x[0], split(learner, examples, key, 1))
    grads, parts = jax.grad(loss, has_aux=True)(state.params, learner, batch, config)
    changes, moments = learner.optimiser.update(grads, state.optimiser, state.params)
    params = optax.apply_updates(state.params, changes)
    return dataclasses.replace(state, params=params, optimiser=moments), parts
