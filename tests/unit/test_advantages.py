"""Advantages against a plain loop and hand-worked numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import termdp

LENGTH, ENVS = 12, 3


def slow_gae(rewards, values, next_values, discounts, ended, lam):
    """Environment by environment, step by step, from the last to the first."""
    out = np.zeros(rewards.shape)
    for env in range(rewards.shape[1]):
        later = 0.0
        for t in reversed(range(rewards.shape[0])):
            at = t, env
            delta = rewards[at] + discounts[at] * next_values[at] - values[at]
            later = delta + (0.0 if ended[at] else discounts[at] * lam * later)
            out[at] = later
    return out


def draw(seed, end_rate):
    rng = np.random.default_rng(seed)
    shape = (LENGTH, ENVS)
    rewards, values, next_values = rng.normal(size=(3, *shape))
    discounts = rng.random(shape)
    discounts[rng.random(shape) < 0.2] = 0.0
    return rewards, values, next_values, discounts, rng.random(shape) < end_rate


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    end_rate=st.sampled_from([0.0, 0.2, 1.0]),
    lam=st.floats(0, 1, width=32),
)
def test_equals_the_slow_twin(seed, end_rate, lam):
    parts = draw(seed, end_rate)
    fast = jax.jit(termdp.gae)(*parts, lam)
    np.testing.assert_allclose(fast, slow_gae(*parts, lam), atol=1e-5)


def test_hand_worked_numbers_with_a_discount_per_step():
    # δ = (1 + ½·4 − 2, 2 + ¼·8 − 4, 3 + 1·1 − 8) = (1, 0, −4); λ = ½
    # A_2 = −4;  A_1 = 0 + ¼·½·(−4) = −½;  A_0 = 1 + ½·½·(−½) = 7/8
    advantages = termdp.gae(
        rewards=jnp.array([1.0, 2.0, 3.0]),
        values=jnp.array([2.0, 4.0, 8.0]),
        next_values=jnp.array([4.0, 8.0, 1.0]),
        discounts=jnp.array([0.5, 0.25, 1.0]),
        ended=jnp.zeros(3, bool),
        lam=0.5,
    )
    assert advantages.tolist() == [0.875, -0.5, -4.0]


def test_nothing_flows_back_across_an_end():
    one = jnp.ones(3)
    ended = jnp.array([False, True, False])
    advantages = termdp.gae(one, 0 * one, 0 * one, one, ended, 1.0)
    assert advantages.tolist() == [2.0, 1.0, 1.0]


def test_the_games_end_does_not_bootstrap_and_a_truncation_does():
    # Both end after one step with reward 1 and V(what follows) = 10.
    one = jnp.ones((1, 2))
    discounts = jnp.array([[0.0, 0.5]])
    advantages = termdp.gae(one, 0 * one, 10 * one, discounts, one > 0, 0.9)
    assert advantages.tolist() == [[1.0, 6.0]]


def test_lambda_one_without_ends_telescopes_to_the_discounted_return():
    # With V ≡ V' consistent, A_t + V_t is the Monte Carlo return plus the last value.
    rewards = jnp.array([1.0, 1.0, 1.0])
    values = jnp.array([5.0, 6.0, 7.0])
    next_values = jnp.array([6.0, 7.0, 8.0])
    half = jnp.full(3, 0.5)
    advantages = termdp.gae(rewards, values, next_values, half, rewards < 0, 1.0)
    # 1 + ½(1 + ½(1 + ½·8)) = 2.75;  1 + ½(1 + 4) = 3.5;  1 + 4 = 5
    np.testing.assert_allclose(advantages + values, [2.75, 3.5, 5.0], rtol=1e-6)


def test_shapes_that_differ_are_named():
    one = jnp.ones((4, 2))
    with pytest.raises(ValueError, match=r"of one shape, got \[\(3, 2\), \(4, 2\)\]"):
        termdp.gae(one, one, one[:3], one, one > 0, 0.9)
