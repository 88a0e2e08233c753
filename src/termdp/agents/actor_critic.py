"""Policy and value from one trunk; with a memory (LSTM) if the method has one.

Both networks have the same two functions, so that rollouts and updates need not know
which one they have: `step` for one time step, `unroll` for a segment of time.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from termdp.agents.distributions import Distribution
from termdp.agents.lstm import LSTM
from termdp.layers import (
    add_offset,
    fastest_precision,
    orthogonal,
    product,
)
from termdp.networks import GridTorso, ImageTorso, VectorTorso

Carry = Any


class PolicyInput(NamedTuple):
    """What an agent sees before acting.

    Attributes:
        observation: o_t, `[..., *shape]`.
        cost: features of the accumulated cost C, `[..., E]`; zero for methods without
            costs.
    """

    observation: jax.Array
    cost: jax.Array


@dataclass(frozen=True)
class Actor:
    """How an agent acts: a network and what its outputs mean; no weights.

    Attributes:
        network: `ActorCritic` or `RecurrentActorCritic`.
        distribution: of the actions.
        is_recurrent: whether the network has a memory.
    """

    network: Any
    distribution: Distribution
    is_recurrent: bool


def make_torso(
    kind: str, filters: int, hidden: int, precision: str = "float32"
) -> nn.Module:
    """The trunk for an observation of kind "grid", "image" or "vector"."""
    precision = fastest_precision(precision)
    match kind:
        case "grid":
            return GridTorso(filters, hidden, precision)
        case "image":
            return ImageTorso(precision=precision)
        case "vector":
            return VectorTorso((hidden, hidden))
    raise ValueError(f"expected a network kind (grid, image, vector), got {kind!r}")


class Heads(nn.Module):
    """Parameters of the action distribution and the value of the state.

    One matrix product gives both; the value's initial weights are larger.
    """

    num_outputs: int

    @nn.compact
    def __call__(self, features: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`[..., F]` to distribution parameters `[..., K]` and values `[...]`."""

        def init(key: jax.Array) -> jax.Array:
            key_policy, key_value = jax.random.split(key)
            size = features.shape[-1]
            policy = orthogonal(0.01)(key_policy, (size, self.num_outputs))
            return jnp.concatenate([policy, orthogonal(1.0)(key_value, (size, 1))], 1)

        zeros = nn.initializers.zeros_init()
        out = add_offset(
            product(features, self.param("kernel", init)),
            self.param("bias", zeros, (self.num_outputs + 1,)),
        )
        return out[..., :-1], out[..., -1]


class ActorCritic(nn.Module):
    """Feed-forward policy and value with a shared trunk."""

    torso: nn.Module
    num_outputs: int

    def setup(self) -> None:
        """Make the parts that `step` and `unroll` share."""
        self.trunk = self.torso.clone()
        self.heads = Heads(self.num_outputs)

    def initial_carry(self, batch_shape: tuple[int, ...]) -> Carry:
        """Nothing to remember."""
        return ()

    def step(self, carry: Carry, inputs: PolicyInput) -> tuple[Carry, Any]:
        """One time step: inputs `[B, ...]`."""
        return carry, self.heads(self.trunk(inputs.observation, inputs.cost))

    def unroll(self, carry: Carry, inputs: PolicyInput, starts: jax.Array) -> Any:
        """All steps at once, in any shape: without a memory time does not matter."""
        return self.heads(self.trunk(inputs.observation, inputs.cost))

    __call__ = step


class RecurrentActorCritic(nn.Module):
    """Policy and value with an LSTM between trunk and heads."""

    torso: nn.Module
    num_outputs: int
    cell_size: int = 256

    def setup(self) -> None:
        """Make the parts that `step` and `unroll` share."""
        self.trunk = self.torso.clone()
        self.cell = LSTM(self.cell_size)
        self.heads = Heads(self.num_outputs)

    def initial_carry(self, batch_shape: tuple[int, ...]) -> Carry:
        """An empty memory."""
        zeros = jnp.zeros((*batch_shape, self.cell_size))
        return zeros, zeros

    def step(self, carry: Carry, inputs: PolicyInput) -> tuple[Carry, Any]:
        """One time step: inputs `[B, ...]`, carry `[B, cell_size]`."""
        features = self.trunk(inputs.observation, inputs.cost)
        carry, remembered = self.cell.step(carry, features)
        return carry, self.heads(remembered)

    def unroll(self, carry: Carry, inputs: PolicyInput, starts: jax.Array) -> Any:
        """A segment `[T, B, ...]`; the memory is cleared where an episode starts."""
        features = self.trunk(inputs.observation, inputs.cost)
        return self.heads(self.cell.unroll(carry, features, starts))

    __call__ = step


def make_actor(
    distribution: Distribution,
    is_recurrent: bool,
    torso: tuple[str, int, int, str],
    lstm_size: int,
) -> Actor:
    """A policy's network, and what its outputs mean.

    Args:
        distribution: of the actions.
        is_recurrent: whether the policy has a memory.
        torso: the trunk's kind, filters, width and precision, as for `make_torso`.
        lstm_size: size of the memory.
    """
    trunk, outputs = make_torso(*torso), distribution.num_outputs
    network = (
        RecurrentActorCritic(trunk, outputs, lstm_size)
        if is_recurrent
        else ActorCritic(trunk, outputs)
    )
    return Actor(network, distribution, is_recurrent)


def forget(carry: Carry, starts: jax.Array) -> Carry:
    """Clear the memory in the rows `[B]` whose episode starts."""
    return jax.tree.map(lambda c: jnp.where(starts[..., None], 0.0, c), carry)
