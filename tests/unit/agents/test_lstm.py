"""The quick memory against the library's cell, step by step."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from termdp.agents.lstm import LSTM, unroll

SIZE, INPUTS = 3, 2


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def slow(recurrent, projected, carry, starts):
    """h after each step, in a Python loop, differentiated by JAX."""
    c, h = carry
    found = []
    for x, start in zip(projected, starts, strict=True):
        c, h = (jnp.where(start[:, None], 0.0, state) for state in (c, h))
        i, f, g, o = jnp.split(x + h @ recurrent, 4, axis=-1)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        h = nn.sigmoid(o) * jnp.tanh(c)
        found.append(h)
    return jnp.stack(found)


def with_gradients(function):
    def total(recurrent, projected, carry, starts, weights):
        return (function(recurrent, projected, carry, starts) ** 2 * weights).sum()

    return jax.jit(jax.value_and_grad(total, (0, 1, 2)))


QUICK, SLOW = with_gradients(unroll), with_gradients(slow)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    starts=st.lists(
        st.lists(st.booleans(), min_size=2, max_size=2), min_size=1, max_size=5
    ),
    seed=st.integers(0, 99),
)
def test_values_and_gradients_are_those_of_a_loop(starts, seed):
    starts = np.array(starts)
    recurrent = numbers(seed, SIZE, 4 * SIZE)
    projected = numbers(seed + 1, len(starts), 2, 4 * SIZE)
    carry = (numbers(seed + 2, 2, SIZE), numbers(seed + 3, 2, SIZE))
    weights = numbers(seed + 4, len(starts), 2, SIZE)
    given = (recurrent, projected, carry, starts, weights)
    for found, expected in zip(
        jax.tree.leaves(QUICK(*given)), jax.tree.leaves(SLOW(*given)), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-5)


def test_a_step_is_the_librarys():
    cell = nn.OptimizedLSTMCell(SIZE)
    carry, x = (numbers(0, 2, SIZE), numbers(1, 2, SIZE)), numbers(2, 2, INPUTS)
    params = cell.init(jax.random.key(0), carry, x)["params"]
    ours = {
        "inputs": {
            "kernel": jnp.concatenate([params[f"i{g}"]["kernel"] for g in "ifgo"], 1),
            "bias": jnp.concatenate([params[f"h{g}"]["bias"] for g in "ifgo"]),
        },
        "recurrent": jnp.concatenate([params[f"h{g}"]["kernel"] for g in "ifgo"], 1),
    }
    expected = cell.apply({"params": params}, carry, x)
    found = LSTM(SIZE).apply({"params": ours}, carry, x, method="step")
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
        found,
        expected,
    )


@pytest.mark.parametrize("split", [0, 2, 4])
def test_steps_one_by_one_are_a_stretch(split):
    cell, x = LSTM(SIZE), numbers(0, 5, 2, INPUTS)
    carry = (jnp.zeros((2, SIZE)), jnp.zeros((2, SIZE)))
    starts = np.zeros((5, 2), bool)
    starts[split] = True
    params = cell.init(jax.random.key(0), carry, x[0], method="step")
    whole = cell.apply(params, carry, x, starts, method="unroll")
    for row, start, expected in zip(x, starts, whole, strict=True):
        carry = jax.tree.map(lambda s, at=start: jnp.where(at[:, None], 0.0, s), carry)
        carry, found = cell.apply(params, carry, row, method="step")
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
