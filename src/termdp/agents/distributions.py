"""Action distributions, as plain functions on their parameters.

A policy's head gives parameters; `Discrete` and `Continuous` interpret them. Both have
the same functions, so that an algorithm need not know which one it has.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from termdp.cost_network import ActionSpec


@dataclass(frozen=True)
class Discrete:
    """Categorical actions 0 … n−1; parameters are logits `[..., n]`."""

    num_actions: int

    @property
    def num_outputs(self) -> int:
        """How many numbers the policy's head gives."""
        return self.num_actions

    def action_spec(self) -> ActionSpec:
        """What actions look like to the cost networks."""
        return ActionSpec(self.num_actions)

    def sample(self, key: jax.Array, logits: jax.Array) -> jax.Array:
        """One action per row."""
        return jax.random.categorical(key, logits)

    def executed(self, actions: jax.Array) -> jax.Array:
        """What the environment gets."""
        return actions

    def mode(self, logits: jax.Array) -> jax.Array:
        """The most probable action."""
        return jnp.argmax(logits, axis=-1)

    def log_prob(self, logits: jax.Array, actions: jax.Array) -> jax.Array:
        """Log π(a)."""
        chosen = jax.nn.one_hot(actions, self.num_actions)
        return jnp.sum(jax.nn.log_softmax(logits) * chosen, axis=-1)

    def entropy(self, logits: jax.Array) -> jax.Array:
        """−Σ π log π."""
        log_probs = jax.nn.log_softmax(logits)
        return -jnp.sum(jnp.exp(log_probs) * log_probs, axis=-1)

    def kl(self, old: jax.Array, new: jax.Array) -> jax.Array:
        """KL(old ‖ new)."""
        old_log, new_log = jax.nn.log_softmax(old), jax.nn.log_softmax(new)
        return jnp.sum(jnp.exp(old_log) * (old_log - new_log), axis=-1)


@dataclass(frozen=True)
class Continuous:
    """Independent normal actions; parameters are means and log standard deviations.

    Actions are sampled without bounds. The environment gets them clipped to [low, high],
    each number to its own bounds.
    """

    size: int
    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def num_outputs(self) -> int:
        """How many numbers the policy's head gives."""
        return 2 * self.size

    def action_spec(self) -> ActionSpec:
        """What actions look like to the cost networks."""
        return ActionSpec(self.size, discrete=False)

    def moments(self, parameters: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Mean and standard deviation."""
        mean, log_std = self._split(parameters)
        return mean, jnp.exp(log_std)

    def _split(self, parameters: jax.Array) -> tuple[jax.Array, jax.Array]:
        mean, log_std = jnp.split(parameters, 2, axis=-1)
        return mean, jnp.clip(log_std, -5.0, 2.0)

    def sample(self, key: jax.Array, parameters: jax.Array) -> jax.Array:
        """One action per row."""
        mean, deviation = self.moments(parameters)
        return mean + deviation * jax.random.normal(key, mean.shape)

    def executed(self, actions: jax.Array) -> jax.Array:
        """What the environment gets: actions within its bounds."""
        return jnp.clip(actions, jnp.asarray(self.low), jnp.asarray(self.high))

    def mode(self, parameters: jax.Array) -> jax.Array:
        """The mean."""
        return self._split(parameters)[0]

    def log_prob(self, parameters: jax.Array, actions: jax.Array) -> jax.Array:
        """Log density of the unclipped action."""
        mean, log_std = self._split(parameters)
        scaled = (actions - mean) * jnp.exp(-log_std)
        density = -0.5 * scaled**2 - log_std - 0.5 * jnp.log(2 * jnp.pi)
        return jnp.sum(density, axis=-1)

    def entropy(self, parameters: jax.Array) -> jax.Array:
        """Differential entropy."""
        _, log_std = self._split(parameters)
        return jnp.sum(log_std + 0.5 * jnp.log(2 * jnp.pi * jnp.e), axis=-1)

    def kl(self, old: jax.Array, new: jax.Array) -> jax.Array:
        """KL(old ‖ new)."""
        (mean, log_std), (new_mean, new_log_std) = self._split(old), self._split(new)
        ratio = jnp.exp(2 * (log_std - new_log_std))
        shift = ((mean - new_mean) * jnp.exp(-new_log_std)) ** 2
        return jnp.sum(new_log_std - log_std + 0.5 * (ratio + shift - 1), axis=-1)


Distribution = Discrete | Continuous


def for_action_space(space: Any) -> Distribution:
    """The distribution for an action space, a `Discrete` or a `Box`."""
    if hasattr(space, "n"):
        return Discrete(int(space.n))
    if len(space.shape) != 1:
        raise ValueError(
            f"expected a Discrete or a one-dimensional Box action space, got {space}"
        )
    bounds = (
        np.broadcast_to(np.asarray(x), space.shape) for x in (space.low, space.high)
    )
    low, high = (tuple(map(float, bound)) for bound in bounds)
    return Continuous(int(space.shape[0]), low, high)
