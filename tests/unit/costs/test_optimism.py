"""Every formula of optimism on numbers worked out by hand."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from termdp.costs import optimism as opt

# Three members, two steps.
COSTS = jnp.array([[1.0, 4.0], [2.0, 4.0], [6.0, 4.0]])
BIASES = jnp.array([5.0, 6.0, 10.0])
STD = math.sqrt((4 + 1 + 9) / 3)  # of 1, 2, 6 around 3


def test_formulas_on_hand_worked_numbers():
    assert opt.min_costs(COSTS).tolist() == [1.0, 4.0]
    assert opt.mean_costs(COSTS).tolist() == [3.0, 4.0]
    assert opt.mean_minus_std(COSTS, 2.0).tolist() == pytest.approx([3 - 2 * STD, 4])
    # 1 − 5, 2 − 6, 6 − 10 are all −4; 4 − 5, 4 − 6, 4 − 10 have the minimum −6.
    assert opt.min_logit(COSTS, BIASES).tolist() == [-4.0, -6.0]


@pytest.mark.parametrize(
    ("kind", "alpha", "expected"),
    [
        ("min", 1.0, [1.0, 4.0]),
        ("mean", 1.0, [3.0, 4.0]),
        ("std", 0.5, [3 - 0.5 * STD, 4.0]),
        ("logit", 1.0, [3.0, 4.0]),
    ],
)
def test_step_costs_of_each_kind(kind, alpha, expected):
    costs = opt.step_costs(opt.make_optimism(kind, alpha), COSTS)
    assert costs.tolist() == pytest.approx(expected)


def test_logit_policy_input_and_discount():
    window_cost = opt.min_costs(COSTS)
    # b̄ = 7
    z = opt.optimistic_logit(opt.make_optimism("min"), window_cost, COSTS, BIASES)
    assert z.tolist() == [-6.0, -3.0]
    assert opt.policy_input(z, BIASES).tolist() == [1.0, 4.0]
    expected = [1 - 1 / (1 + math.exp(6)), 1 - 1 / (1 + math.exp(3))]
    assert opt.dynamic_discount(z).tolist() == pytest.approx(expected)
    z = opt.optimistic_logit(opt.make_optimism("logit"), window_cost, COSTS, BIASES)
    assert z.tolist() == [-4.0, -6.0]
    assert opt.policy_input(z, BIASES).tolist() == [3.0, 1.0]


def test_uncertainty_is_the_range_or_the_standard_deviation():
    by_range = opt.uncertainty(opt.make_optimism(uncertainty="range"), COSTS)
    by_spread = opt.uncertainty(opt.make_optimism(uncertainty="std"), COSTS)
    assert by_range.tolist() == [5.0, 0.0]
    assert by_spread.tolist() == pytest.approx([STD, 0.0])


def test_a_method_is_data_one_program_serves_all_kinds():
    compiled = jax.jit(opt.step_costs)
    for kind in opt.OPTIMISMS:
        optimism = jax.tree.map(jnp.asarray, opt.make_optimism(kind))
        np.testing.assert_allclose(
            compiled(optimism, COSTS), opt.step_costs(optimism, COSTS), rtol=1e-6
        )
    assert compiled._cache_size() == 1


def test_the_discount_keeps_its_digits():
    assert float(opt.dynamic_discount(jnp.asarray(80.0))) > 0


def test_unknown_kinds_are_refused():
    with pytest.raises(ValueError, match="expected optimism to be one of"):
        opt.make_optimism("max")
    with pytest.raises(ValueError, match="expected uncertainty to be one of"):
        opt.make_optimism(uncertainty="iqr")
