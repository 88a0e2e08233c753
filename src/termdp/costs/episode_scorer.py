"""One network that scores an episode step by step, instead of costs in a window.

P(stop at t) = ρ(score_t − b), the score a function of all steps of the episode so far.
Two kinds: `sum` adds up c(s, a) over the whole episode, a logistic classifier without a
window; `gru` is the survival model of TraCeS (arXiv:2504.12557), whose loss
−Σ_{t<T} log c_t − log(1 − c_T), with c_t = 1 − ρ(score_t − b), is the cross entropy that
`termdp.costs.fit` has for windows.
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from termdp.cost_network import CostNetwork
from termdp.layers import Dense, orthogonal

UNITS = 32


def memory_size(memory: str) -> int:
    """S, how many numbers a scorer remembers."""
    return UNITS if memory == "gru" else 1


class EpisodeScorer(nn.Module):
    """A scorer: the memory of an episode `[..., S]`, and its score `[...]`.

    An empty memory scores 0.

    Attributes:
        encoder: costs of steps for `sum`, features of them for `gru`.
        memory: `sum` or `gru`.
    """

    encoder: CostNetwork
    memory: str

    def initial_memory(self, batch_shape: tuple[int, ...]) -> jax.Array:
        """The memory at the start of an episode."""
        return jnp.zeros((*batch_shape, memory_size(self.memory)))

    def setup(self) -> None:
        """The recurrent part, if there is one."""
        if self.memory == "gru":
            self.inputs = Dense(3 * UNITS, scale=1.0)
            shape = (UNITS, 3 * UNITS)
            self.recurrent = self.param("recurrent", orthogonal(1.0), shape)
            self.head = Dense(1, scale=0.01, use_bias=False)

    def __call__(
        self, remembered: jax.Array, obs: jax.Array, actions: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """The memory after one more step, and its score."""
        remembered = self._advance(remembered, self._encode(obs, actions))
        return remembered, self.score(remembered)

    def unroll(
        self,
        remembered: jax.Array,
        obs: jax.Array,
        actions: jax.Array,
        starts: jax.Array,
    ) -> jax.Array:
        """Memories `[T, B, S]` after each step; cleared where an episode starts."""
        encoded = self._encode(obs, actions)

        def step(before: jax.Array, row: Any) -> tuple[jax.Array, jax.Array]:
            x, start = row
            after = self._advance(jnp.where(start[..., None], 0.0, before), x)
            return after, after

        return jax.lax.scan(step, remembered, (encoded, starts))[1]

    def score(self, remembered: jax.Array) -> jax.Array:
        """`[..., S]` to `[...]`."""
        if self.memory == "gru":
            return self.head(remembered)[..., 0]
        return remembered[..., 0]

    def _encode(self, obs: jax.Array, actions: jax.Array) -> jax.Array:
        found = self.encoder(obs, actions)
        return self.inputs(found) if self.memory == "gru" else found[..., None]

    def _advance(self, before: jax.Array, x: jax.Array) -> jax.Array:
        if self.memory == "sum":
            return before + x
        return gru_step(before, x, before @ self.recurrent)


def gru_step(h: jax.Array, x: jax.Array, from_h: jax.Array) -> jax.Array:
    """A gated recurrent unit: h′ = (1 − z)·n + z·h, n = tanh(x_n + r·h_n).

    Args:
        h: `[..., H]`.
        x: the step's part of the gates r, z, n, `[..., 3H]`.
        from_h: h's part of them.
    """
    x_r, x_z, x_n = jnp.split(x, 3, axis=-1)
    h_r, h_z, h_n = jnp.split(from_h, 3, axis=-1)
    r, z = nn.sigmoid(x_r + h_r), nn.sigmoid(x_z + h_z)
    return (1.0 - z) * jnp.tanh(x_n + r * h_n) + z * h


def unrolled(
    network: EpisodeScorer,
    variables: Any,
    remembered: jax.Array,
    obs: jax.Array,
    actions: jax.Array,
    starts: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Score the steps of a segment.

    Args:
        network: the scorer.
        variables: its weights.
        remembered: the memory before the first row, `[B, S]`.
        obs: `[T, B, ...]`.
        actions: `[T, B, ...]`.
        starts: first steps of episodes, `[T, B]`.

    Returns:
        The score after each step, `[T, B]`; what the step added to it, `[T, B]`; and
        the memory after the last row, `[B, S]`.
    """
    memories: Any = network.apply(
        variables, remembered, obs, actions, starts, method="unroll"
    )
    stream = jnp.concatenate([remembered[None], memories])
    scores: Any = network.apply(variables, stream, method="score")
    before = jnp.where(starts, 0.0, scores[:-1])
    return scores[1:], scores[1:] - before, memories[-1]
