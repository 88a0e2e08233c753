"""Values on their own scale: moments, floor, and predictions that do not jump."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from termdp.agents import value_scale
from termdp.agents.actor_critic import PolicyInput, make_actor
from termdp.agents.distributions import Discrete
from termdp.agents.value_scale import ValueScale, initial_scale, updated_scale


def test_the_first_rollout_sets_mean_and_deviation() -> None:
    # Targets 10 and 14: mean 12, mean square 148, deviation √(148 − 144) = 2.
    scale = updated_scale(initial_scale(), jnp.array([10.0, 14.0]), 0.03, 1.0)
    assert float(scale.mean) == pytest.approx(12.0)
    assert float(scale.deviation) == pytest.approx(2.0)
    assert float(scale.count) == 1


def test_later_rollouts_move_the_mean_by_the_rate() -> None:
    old = ValueScale(*(jnp.float32(x) for x in (10.0, 3.0, 109.0, 1000.0)))
    scale = updated_scale(old, jnp.array([20.0, 20.0]), 0.1, 1.0)
    # Mean 10 + 0.1·10 = 11; square 109 + 0.1·(400 − 109) = 138.1; 138.1 − 121 = 17.1.
    assert float(scale.mean) == pytest.approx(11.0)
    assert float(scale.deviation) == pytest.approx(17.1**0.5, rel=1e-5)


def test_a_second_rollout_counts_half_and_not_a_thirtieth() -> None:
    first = updated_scale(initial_scale(), jnp.array([4.0]), 0.03, 1.0)
    second = updated_scale(first, jnp.array([8.0]), 0.03, 1.0)
    assert float(second.mean) == pytest.approx(6.0)


def test_small_deviations_are_not_blown_up() -> None:
    scale = updated_scale(initial_scale(), jnp.array([0.1, 0.3]), 0.03, 1.0)
    assert float(scale.deviation) == 1.0


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.floats(-100, 100),
    st.floats(1, 300),
    st.floats(-100, 100),
    st.floats(1, 300),
    st.integers(0, 5),
)
def test_no_prediction_jumps_when_the_scale_moves(
    mean: float, deviation: float, new_mean: float, new_deviation: float, seed: int
) -> None:
    actor = make_actor(Discrete(3), False, ("vector", 1, 8, "float32"), 8)
    key = jax.random.key(seed)
    inputs = PolicyInput(jax.random.normal(key, (5, 4)), jnp.zeros((5, 2)))
    params = actor.network.init(key, (), inputs)
    before = ValueScale(*map(jnp.float32, (mean, deviation, 0.0, 0.0)))
    after = ValueScale(*map(jnp.float32, (new_mean, new_deviation, 0.0, 0.0)))
    moved = value_scale.rescaled(params, before, after)

    _, (old_policy, old_outputs) = actor.network.apply(params, (), inputs)
    _, (new_policy, new_outputs) = actor.network.apply(moved, (), inputs)

    np.testing.assert_array_equal(old_policy, new_policy)
    np.testing.assert_allclose(
        value_scale.to_values(before, old_outputs),
        value_scale.to_values(after, new_outputs),
        rtol=1e-4,
        atol=1e-2,
    )


def test_an_agent_carries_values_without_a_scale() -> None:
    actor = make_actor(Discrete(2), False, ("vector", 1, 8, "float32"), 8)
    inputs = PolicyInput(jnp.ones((1, 4)), jnp.zeros((1, 2)))
    params = actor.network.init(jax.random.key(0), (), inputs)
    scale = dataclasses.replace(
        initial_scale(), mean=jnp.float32(5), deviation=jnp.float32(3)
    )
    _, (_, outputs) = actor.network.apply(params, (), inputs)
    plain = value_scale.with_plain_values(params, scale)
    _, (_, values) = actor.network.apply(plain, (), inputs)
    np.testing.assert_allclose(values, 5 + 3 * outputs, rtol=1e-5)
