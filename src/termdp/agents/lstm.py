"""A fast long short-term memory: it takes as much as possible out of the time loop.

The library's cell multiplies inputs step by step, and its gradient adds up two weight
matrices step by step. Here inputs are multiplied for all steps together before the loop,
and the recurrent weights' gradient is one product after it. The loop itself only
multiplies by the recurrent weights, once forwards and once backwards.
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from termdp.layers import orthogonal

Carry = tuple[jax.Array, jax.Array]

# Steps of the loop that are unrolled, which saves loop overhead on a GPU.
TOGETHER = 8


class LSTM(nn.Module):
    """Gates i, f, g, o; the carry is (c, h), both `[B, size]`."""

    size: int

    def setup(self) -> None:
        """Weights of the inputs and of the memory."""
        self.inputs = nn.Dense(4 * self.size, bias_init=_forget_gate_open)
        self.recurrent = self.param("recurrent", _four_orthogonal, self.size)

    def step(self, carry: Carry, x: jax.Array) -> tuple[Carry, jax.Array]:
        """One time step: x `[B, K]` to the new carry and its h `[B, size]`."""
        c, h = carry
        after, _ = _advance(c, self.inputs(x) + h @ self.recurrent)
        return after, after[1]

    def unroll(self, carry: Carry, x: jax.Array, starts: jax.Array) -> jax.Array:
        """The h of each step, `[T, B, size]`; cleared where an episode starts."""
        return unroll(self.recurrent, self.inputs(x), carry, starts)


def _four_orthogonal(key: jax.Array, size: int) -> jax.Array:
    draws = [orthogonal(1.0)(one, (size, size)) for one in jax.random.split(key, 4)]
    return jnp.concatenate(draws, axis=1)


def _forget_gate_open(
    key: jax.Array, shape: tuple[int, ...], dtype: Any = jnp.float32
) -> jax.Array:
    """Zeros, but 1 for the forget gate: an untrained LSTM keeps its memory longer."""
    del key
    size = shape[0] // 4
    return jnp.zeros(shape, dtype).at[size : 2 * size].set(1.0)


def _advance(c: jax.Array, gates: jax.Array) -> tuple[Carry, Any]:
    """From c and the gates' sums `[B, 4·size]` to (c, h), and the open gates."""
    i, f, g, o = jnp.split(gates, 4, axis=-1)
    i, f, g, o = nn.sigmoid(i), nn.sigmoid(f), jnp.tanh(g), nn.sigmoid(o)
    c = f * c + i * g
    return (c, o * jnp.tanh(c)), (i, f, g, o)


@jax.custom_vjp
def unroll(
    recurrent: jax.Array, projected: jax.Array, carry: Carry, starts: jax.Array
) -> jax.Array:
    """The h after each step.

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
    # The loop keeps only the memory before each step, as one array: on a GPU every
    # further array is a further launch, and launches take most of the time.
    def step(before: jax.Array, row: Any) -> tuple[jax.Array, jax.Array]:
        x, start = row
        c, h = jnp.where(start[..., None], 0.0, before)
        after, _ = _advance(c, x + h @ recurrent)
        return jnp.stack(after), before

    _, before = jax.lax.scan(
        step, jnp.stack(carry), (projected, starts), unroll=TOGETHER
    )
    # Compute everything else for all steps at once.
    before = jnp.where(starts[:, None, :, None], 0.0, before)
    c, h = before[:, 0], before[:, 1]
    (cells, hidden), gates = _advance(c, projected + h @ recurrent)
    return hidden, (recurrent, cells, c, h, gates, starts)


def _backward(kept: Any, gradient: jax.Array) -> Any:
    recurrent, cells, cells_before, hidden_before, (i, f, g, o), starts = kept
    # How the sums of the gates change with c (the output gate: with h), and c with h.
    tanh = jnp.tanh(cells)
    with_c = jnp.concatenate(
        [g * i * (1.0 - i), cells_before * f * (1.0 - f), i * (1.0 - g**2)], axis=-1
    )
    with_h = tanh * o * (1.0 - o)
    c_with_h = o * (1.0 - tanh**2)
    stays = jnp.where(starts[..., None], 0.0, 1.0)

    def step(later: Carry, row: Any) -> tuple[Carry, jax.Array]:
        dc, d_gates_after = later
        given, stay_after, of_c, of_h, c_of_h, forget = row
        dh = given + stay_after * (d_gates_after @ recurrent.T)
        dc = stay_after * dc + dh * c_of_h
        d_gates = jnp.concatenate([jnp.tile(dc, 3) * of_c, dh * of_h], axis=-1)
        return (dc * forget, d_gates), d_gates

    stays_after = jnp.concatenate([stays[1:], jnp.zeros_like(stays[:1])])
    (dc, d_first), d_gates = jax.lax.scan(
        step,
        (jnp.zeros_like(cells[0]), jnp.zeros((cells.shape[1], recurrent.shape[1]))),
        (gradient, stays_after, with_c, with_h, c_with_h, f),
        reverse=True,
        unroll=TOGETHER,
    )
    d_carry = (stays[0] * dc, stays[0] * (d_first @ recurrent.T))
    d_recurrent = jnp.einsum("tbk,tbn->kn", hidden_before, d_gates)
    return d_recurrent, d_gates, d_carry, None


unroll.defvjp(_forward, _backward)
