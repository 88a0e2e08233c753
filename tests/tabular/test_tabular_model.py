"""The model: checks on its arrays, what the observer remembers, the absorbed bias."""

import jax.numpy as jnp
import numpy as np
import pytest
from slow_reference import best_value, logistic, random_model

from termdp import stop_probability
from termdp.tabular import TerMDP, absorb_bias, plan
from termdp.tabular.model import survival


def arguments(**changes):
    usual = {
        "transition": np.full((2, 2, 2), 0.5),
        "reward": np.full((2, 2), 0.5),
        "cost": np.zeros((2, 2)),
        "bias": 1.0,
        "horizon": 3,
        "initial": [1.0, 0.0],
    }
    return {**usual, **changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transition": np.full((2, 2, 2), 0.4)}, r"sum to 1, got 0.8 at index \(0, 0"),
        ({"transition": np.full((2, 2, 3), 1 / 3)}, r"\[S, A, S\]"),
        ({"transition": np.full((4, 2, 2, 2), 0.5)}, "3 steps"),
        ({"transition": np.array([[[1.5, -0.5]] * 2] * 2)}, "≥ 0"),
        ({"reward": np.full((2, 2), 1.5)}, r"rewards in \[0, 1\]"),
        ({"reward": np.zeros((3, 2))}, "expected reward"),
        ({"cost": np.zeros((2, 2, 2))}, "expected cost"),
        ({"cost": np.full((2, 2), np.nan)}, "finite cost"),
        ({"bias": np.inf}, "finite bias"),
        ({"horizon": 0}, "horizon"),
        ({"horizon": 2.5}, "horizon"),
        ({"initial": [0.5, 0.4]}, "sums to 1"),
        ({"initial": [1.0, 0.0, 0.0]}, "over 2 states"),
        ({"initial": 2}, "from 0 to 1, got 2"),
        ({"window": 0}, "window"),
    ],
)
def test_bad_models_are_refused_with_a_reason(changes, message):
    with pytest.raises(ValueError, match=message):
        TerMDP(**arguments(**changes))


def test_stationary_and_per_step_arrays_mean_the_same():
    stationary = TerMDP(**arguments(initial=0))
    per_step = TerMDP(
        **arguments(
            transition=np.full((3, 2, 2, 2), 0.5),
            reward=np.full((3, 2, 2), 0.5),
            cost=np.zeros((3, 2, 2)),
        )
    )
    assert stationary.shape == per_step.shape == (3, 2, 2)
    assert plan(stationary).value == pytest.approx(plan(per_step).value, abs=1e-14)


def test_survival_is_what_the_stop_probability_leaves():
    costs = np.array([-3.0, 0.0, 0.5, 4.0])
    expected = 1 - np.asarray(stop_probability(jnp.asarray(costs), 1.5))
    np.testing.assert_allclose(survival(costs, 1.5), expected, atol=1e-6)


def test_the_observer_adds_the_present_cost_and_forgets_beyond_its_window():
    steps = [np.array([1.0]), np.array([2.0]), np.array([4.0])]
    for window, expected in ((None, [1, 3, 7]), (2, [1, 3, 6]), (1, [1, 2, 4])):
        model = TerMDP(**arguments(window=window))
        memory, seen = model.start_memory(), []
        for cost in steps:
            window_cost, memory = model.advance(memory, cost)
            seen.append(window_cost[0])
        assert seen == expected
        assert memory.shape == (1, model.memory_size)


def test_sums_that_differ_by_rounding_only_are_one():
    model = TerMDP(**arguments())
    one, _ = model.advance(np.array([[0.1]]), np.array([0.2]))
    assert one[0] == 0.3


@pytest.mark.parametrize("window", [None, 1, 2, 3])
def test_an_absorbed_bias_changes_nothing(window):
    model = random_model(3, window=window)
    absorbed = absorb_bias(model)
    assert absorbed.bias == 0.0
    assert best_value(absorbed) == pytest.approx(best_value(model), abs=1e-12)
    assert model.radius == pytest.approx(np.linalg.norm(absorbed.costs))


def test_without_costs_it_is_a_finite_horizon_mdp_with_a_constant_discount():
    """The discount is 1 − ρ(−b) = ρ(b); the paper prints ρ(−b)."""
    model = random_model(5, horizon=5)
    model = TerMDP(
        model.transition, model.reward, model.cost * 0, 1.3, 5, model.initial
    )
    discount = 1 - logistic(-1.3)
    value = np.zeros(model.num_states)
    for h in reversed(range(5)):
        value = (model.rewards[h] + discount * model.transitions[h] @ value).max(axis=1)
    assert plan(model).value == pytest.approx(float(model.initial @ value), abs=1e-12)
    assert discount == pytest.approx(logistic(1.3))
