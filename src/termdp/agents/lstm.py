"""A long short-term memory that is quick over time: what can be done at once, is.

The library's cell multiplies inputs step by step, and its gradient adds up two weight
matrices step by step. Here inputs are multiplied for all steps together before the
loop, and the recurrent weights' gradient is one product after it: the loop itself only
multiplies by the recurrent weights, once forwards and once backwards.
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from termdp.networks import orthogonal

Carry = tuple[jax.Array, jax.Array]


class LSTM(nn.Module):
    """Gates i, f, g, o; the carry is (c, h), both `[B, size]`."""

    size: int

    def setup(self) -> None:
        """Weights of the inputs and of the memory."""
        self.inputs = nn.Dense(4 * self.size)
        self.recurrent = self.param("recurrent", _four_orthogonal, self.size)

    def step(self, carry: Carry, x: jax.Array) -> tuple[Carry, jax.Array]:
        """One moment: `[B, K]` to the new carry and its h `[B, size]`."""
        c, h = carry
        after, _ = _advance(c, self.inputs(x) + h @ self.recurrent)
        return after, after[1]

    def unroll(self, carry: Carry, x: jax.Array, starts: jax.Array) -> jax.Array:
        """H of a stretch `[T, B, size]`; cleared where an episode starts."""
        return unroll(self.recurrent, self.inputs(x), carry, starts)


def _four_orthogonal(key: jax.Array, size: int) -> jax.Array:
    draws = [orthogonal(1.0)(one, (size, size)) for one in jax.random.split(key, 4)]
    return jnp.concatenate(draws, axis=1)


def _advance(c: jax.Array, gates: jax.Array) -> tuple[Carry, Any]:
    """From c and the gates' sums `[B, 4·size]` to (c, h), and the open gates."""
    i, f, g, o = jnp.split(gates, 4, axis=-1)
    i, f, g, o = nn.sigmoid(i), nn.sigmoid(f), jnp.tanh(g), nn.sigmoid(o)
    c = f * c + i * g
    return (c, o * jnp.tanh(c)), (i, f, g, o)


def _cleared(start: jax.Array, *states: jax.Array) -> tuple[jax.Array, ...]:
    return tuple(jnp.where(start[..., None], 0.0, state) for state in states)


@jax.custom_vjp
def unroll(
    recurrent: jax.Array, projected: jax.Array, carry: Carry, starts: jax.Array
) -> jax.Array:
    """H after each step.

    Args:
        recurrent: weights `[size, 4·size]` of h.
        projected: the inputs' share of the gates' sums, `[T, B, 4·size]`.
        carry: (c, h) before the first step.
        starts: `[T, B]`, true where the memory is cleared before the step.

    Returns:
        `[T, B, size]`.
    """
    return _forward(recurrent, projected, carry, starts)[0]


def _forward(
    recurrent: jax.Array, projected: jax.Array, carry: Carry, starts: jax.Array
) -> tuple[jax.Array, Any]:
    def step(carry: Carry, row: Any) -> tuple[Carry, Any]:
        x, start = row
        c, h = _cleared(start, *carry)
        after, gates = _advance(c, x + h @ recurrent)
        return after, (after, (c, h), gates)

    _, ((cells, hidden), before, gates) = jax.lax.scan(step, carry, (projected, starts))
    return hidden, (recurrent, cells, before, gates, starts)


def _backward(kept: Any, gradient: jax.Array) -> Any:
    recurrent, cells, (cells_before, hidden_before), gates, starts = kept

    def step(later: Carry, row: Any) -> tuple[Carry, jax.Array]:
        dc, dh = later
        given, c, c_before, (i, f, g, o), start = row
        dh, tanh = dh + given, jnp.tanh(c)
        dc = dc + dh * o * (1.0 - tanh**2)
        d_gates = jnp.concatenate(
            [
                dc * g * i * (1.0 - i),
                dc * c_before * f * (1.0 - f),
                dc * i * (1.0 - g**2),
                dh * tanh * o * (1.0 - o),
            ],
            axis=-1,
        )
        dc, dh = _cleared(start, dc * f, d_gates @ recurrent.T)
        return (dc, dh), d_gates

    nothing = jnp.zeros_like(gradient[0])
    d_carry, d_gates = jax.lax.scan(
        step,
        (nothing, nothing),
        (gradient, cells, cells_before, gates, starts),
        reverse=True,
    )
    d_recurrent = jnp.einsum("tbk,tbn->kn", hidden_before, d_gates)
    return d_recurrent, d_gates, d_carry, None


unroll.defvjp(_forward, _backward)
