"""Window sums and stop probabilities against slow twins and hand-worked numbers."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.test_util import check_grads

import termdp
from termdp import termination


def slow_window_sums(costs, window, starts):
    """Episode by episode, step by step."""
    out = np.zeros(len(costs))
    begin = 0
    for t in range(len(costs)):
        if starts[t]:
            begin = t
        first = max(begin, t - window + 1)
        out[t] = math.fsum(float(c) for c in costs[first : t + 1])
    return out


def test_hand_worked_window_of_three():
    costs = jnp.array([1.0, 10.0, 100.0, 1000.0, 10000.0, 5.0, 6.0])
    starts = jnp.array([True, False, False, False, False, True, False])
    sums = termdp.window_sums(costs, 3, starts)
    assert sums.tolist() == [1.0, 11.0, 111.0, 1110.0, 11100.0, 5.0, 11.0]


def test_row_zero_always_begins_an_episode():
    costs = jnp.array([1.0, 2.0, 3.0])
    nobody_said_so = jnp.zeros(3, bool)
    assert termdp.window_sums(costs, 2, nobody_said_so).tolist() == [1.0, 3.0, 5.0]


COSTS = st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=40)


def in_a_long_stream(costs, window, starts):
    """The same function as if the stream were long."""
    longer = np.zeros(termination.SHORT + 1, np.float32)
    flags = np.zeros(termination.SHORT + 1, bool)
    longer[: len(costs)], flags[: len(costs)] = costs, starts
    return LONG(longer, window, flags)[: len(costs)]


DIRECT = jax.jit(termdp.window_sums)
LONG = jax.jit(termdp.window_sums)


@pytest.mark.slow
@pytest.mark.parametrize("sums_of", [DIRECT, in_a_long_stream], ids=["direct", "long"])
@settings(max_examples=150, deadline=None)
@given(costs=COSTS, window=st.integers(1, 60), seed=st.integers(0, 2**16))
def test_equals_the_slow_twin(sums_of, costs, window, seed):
    starts = np.random.default_rng(seed).random(len(costs)) < 0.2
    # One padded length, so that examples share a compiled program.
    padded = np.zeros(40, np.float32)
    padded[: len(costs)] = costs
    flags = np.zeros(40, bool)
    flags[: len(costs)] = starts
    sums = sums_of(padded, window, flags)[: len(costs)]
    magnitude = slow_window_sums(np.abs(costs), window, starts)
    error = np.abs(np.asarray(sums) - slow_window_sums(costs, window, starts))
    assert np.all(error <= 1e-6 * magnitude + 1e-30)


@pytest.mark.parametrize("window", [1, 7, 30, 1000, 10**6])
def test_a_million_steps_after_huge_costs_lose_no_digits(window):
    rng = np.random.default_rng(0)
    costs = rng.random(10**6).astype(np.float32)
    costs[:1000] *= 1e12
    starts = np.zeros(costs.shape, bool)
    sums = np.asarray(jax.jit(termdp.window_sums)(costs, window, starts))
    for t in (1500, 500_000, 999_998, 999_999):
        inside = costs[max(0, t - window + 1) : t + 1].astype(float)
        assert abs(sums[t] - math.fsum(inside)) <= 1e-6 * math.fsum(inside)


def test_further_axes_are_independent(key):
    costs = jax.random.normal(key, (25, 3, 2))
    starts = jax.random.bernoulli(key, 0.2, costs.shape)
    sums = termdp.window_sums(costs, 4, starts)
    for i in range(3):
        for j in range(2):
            slow = slow_window_sums(costs[:, i, j], 4, starts[:, i, j])
            np.testing.assert_allclose(sums[:, i, j], slow, atol=1e-5)


def test_gradient_counts_the_windows_a_cost_is_in():
    starts = jnp.array([True, False, False, False, True, False])
    gradient = jax.grad(lambda c: termdp.window_sums(c, 2, starts).sum())(jnp.ones(6))
    assert gradient.tolist() == [2.0, 2.0, 2.0, 1.0, 2.0, 1.0]


def test_second_order_differentiable(key):
    starts = jax.random.bernoulli(key, 0.2, (12,))
    costs = jax.random.normal(key, (12,))

    def loss(costs):
        return jnp.sum(jnp.sin(termdp.window_sums(costs, 3, starts)))

    check_grads(loss, (costs,), order=2, modes=["fwd", "rev"], atol=1e-2, rtol=1e-2)


def test_window_is_traced_and_vmaps():
    traces = 0

    def counted(costs, window, starts):
        nonlocal traces
        traces += 1
        return termdp.window_sums(costs, window, starts)

    jitted = jax.jit(counted)
    costs, starts = jnp.ones(10), jnp.zeros(10, bool)
    lasts = [int(jitted(costs, window, starts)[-1]) for window in (1, 3, 10, 99)]
    assert lasts == [1, 3, 10, 10]
    assert traces == 1
    windows = jnp.array([1, 3, 10, 99])
    batch = jax.vmap(termdp.window_sums, (None, 0, None))(costs, windows, starts)
    assert batch[:, -1].tolist() == [1.0, 3.0, 10.0, 10.0]


def test_empty_stream():
    empty = jnp.zeros((0, 3))
    assert termdp.window_sums(empty, 2, jnp.zeros((0, 3), bool)).shape == (0, 3)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="window of at least 1 step, got 0"):
        termdp.window_sums(jnp.ones(3), 0, jnp.zeros(3, bool))
    with pytest.raises(ValueError, match=r"same shape, got \(3,\) and \(2,\)"):
        termdp.window_sums(jnp.ones(3), 1, jnp.zeros(2, bool))


def test_stop_probability_by_hand():
    # ρ(0) = 1/2; ρ(ln 3) = 3/4; no cost and b = 6: 1/(1 + e⁶) = 0.0024726
    assert float(termdp.stop_probability(6.0, 6.0)) == 0.5
    assert float(termdp.stop_probability(math.log(3), 0.0)) == pytest.approx(0.75)
    assert float(termdp.stop_probability(0.0, 6.0)) == pytest.approx(0.0024726232)
