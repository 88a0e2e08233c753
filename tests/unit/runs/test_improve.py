"""Discounts and rewards of every method at every end, by hand."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from termdp.agents.method_params import method_params
from termdp.agents.methods import find_method
from termdp.runs.collect import Rollout, Truth
from termdp.runs.cost_features import Accumulated, FreshCosts
from termdp.runs.improve import step_discounts

# Four environments: goes on, game over, stopped, truncated.
TRUE_SURVIVAL, LEARNED_SURVIVAL = 0.75, 0.6


def played():
    fields = {field.name: None for field in dataclasses.fields(Rollout)}
    flags = np.eye(4, dtype=bool)[:, None]
    return Rollout(
        **fields
        | {
            "rewards": jnp.ones((1, 4)),
            "game_over": jnp.asarray(flags[1]),
            "stopped": jnp.asarray(flags[2]),
            "truncated": jnp.asarray(flags[3]),
            "truth": Truth(None, None, jnp.full((1, 4), 1 - TRUE_SURVIVAL)),
        }
    )


def fresh():
    logit = np.log((1 - LEARNED_SURVIVAL) / LEARNED_SURVIVAL)
    full = lambda value: jnp.full((1, 4), value, jnp.float32)  # noqa: E731
    return FreshCosts(
        accumulated=Accumulated(full(logit), full(5.0), full(2.0), full(0.0)),
        members=None,
        bias=None,
    )


DISCOUNTS = [
    # method, handling, γ, and who keeps it: goes on, game over, stopped, truncated
    ("pg", "expected", 0.99, [1, 0, 1, 1]),
    ("pg", "cut", 0.99, [1, 0, 0, 1]),
    ("pg", "ignored", 0.99, [1, 1, 1, 1]),
    ("pg_0.97", None, 0.97, [1, 0, 0, 1]),
    ("pg_naive", None, 0.99, [1, 1, 1, 1]),
    ("termpg", "expected", 0.995 * LEARNED_SURVIVAL, [1, 0, 1, 1]),
    ("termpg", "cut", 0.995 * LEARNED_SURVIVAL, [1, 0, 0, 1]),
    ("termpg", "ignored", 0.995 * LEARNED_SURVIVAL, [1, 1, 1, 1]),
    ("termpg", None, 0.995 * LEARNED_SURVIVAL, [1, 0, 1, 1]),
    ("termpg_fixed_discount", None, 0.995, [1, 0, 0, 1]),
    ("termpg_paper", None, LEARNED_SURVIVAL, [1, 0, 1, 1]),
    ("termpg_paper", "cut", LEARNED_SURVIVAL, [1, 0, 0, 1]),
    ("oracle", None, 0.995 * TRUE_SURVIVAL, [1, 0, 1, 1]),
    ("oracle", "cut", 0.995 * TRUE_SURVIVAL, [1, 0, 0, 1]),
    ("oracle", "ignored", 0.995 * TRUE_SURVIVAL, [1, 1, 1, 1]),
]


@pytest.mark.parametrize(("method", "handling", "discount", "kept"), DISCOUNTS)
def test_discounts_by_hand(method, handling, discount, kept):
    changes = {} if handling is None else {"end_handling": handling}
    numbers = method_params(find_method(method, **changes), 30)
    found = step_discounts(numbers, played(), fresh())
    np.testing.assert_allclose(found[0], discount * np.array(kept), rtol=1e-6)
    if not method.startswith("termpg"):
        # The same in a program in which nobody learns costs.
        found = step_discounts(numbers, played(), None)
        np.testing.assert_allclose(found[0], discount * np.array(kept), rtol=1e-6)


@pytest.mark.parametrize(
    ("weight", "gamma", "gamma_if_stopped"),
    # (1 − β)·0.6 + β, and (1 − β)·0.6
    [(0.0, 0.6, 0.6), (0.25, 0.7, 0.45), (1.0, 1.0, 0.0)],
)
def test_a_stop_counts_as_an_end_by_its_weight(weight, gamma, gamma_if_stopped):
    termpg = find_method("termpg", discount=1.0, stop_weight=weight)
    found = step_discounts(method_params(termpg, 30), played(), fresh())
    expected = [gamma, 0, gamma_if_stopped, gamma]
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)
    # If 0.6 is right, the mean over stops is 0.6 for every weight.
    goes_on, _, stopped, _ = found[0]
    mean = LEARNED_SURVIVAL * goes_on + (1 - LEARNED_SURVIVAL) * stopped
    np.testing.assert_allclose(mean, LEARNED_SURVIVAL, rtol=1e-6)


@pytest.mark.parametrize(
    ("method", "gammas"),
    [
        # 0.8 × 0.9, and what the method makes of ends
        ("pg", [0.72, 0, 0, 0.72]),
        # 0.8 × 0.6 × 0.9
        ("termpg", [0.432, 0, 0.432, 0.432]),
        # Where nothing is an end, the time limit is none.
        ("pg_naive", [0.8, 0.8, 0.8, 0.8]),
    ],
)
def test_a_time_limit_is_expected_like_a_stop(method, gammas):
    numbers = method_params(find_method(method, discount=0.8), 30)
    found = step_discounts(numbers, played(), fresh(), limit_share=0.1)
    np.testing.assert_allclose(found[0], gammas, rtol=1e-6)


def test_a_constant_discount_has_no_weight():
    with pytest.raises(ValueError, match="got stop_weight: its discount is constant"):
        find_method("termpg_fixed_discount", stop_weight=0.5)


def test_nobody_knows_the_truth_of_a_rollout_from_outside():
    unknown = dataclasses.replace(played(), truth=None)
    termpg = method_params(find_method("termpg", discount=1.0), 30)
    found = step_discounts(termpg, unknown, fresh())
    np.testing.assert_allclose(
        found[0], LEARNED_SURVIVAL * np.array([1, 0, 1, 1]), rtol=1e-6
    )
    pg = method_params(find_method("pg"), 30)
    found = step_discounts(pg, unknown, None)
    np.testing.assert_allclose(found[0], 0.99 * np.array([1, 0, 0, 1]), rtol=1e-6)
