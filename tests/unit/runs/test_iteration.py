"""Discounts and rewards of every method at every end, by hand."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from termdp.agents.methods import find_method
from termdp.runs.cost_features import Accumulated, FreshCosts
from termdp.runs.improve import shaped_rewards, step_discounts
from termdp.runs.types import Rollout

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
            "true_stop_probabilities": jnp.full((1, 4), 1 - TRUE_SURVIVAL),
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
    ("pg_0.953", None, 0.953, [1, 0, 0, 1]),
    ("pg_naive", None, 0.99, [1, 1, 1, 1]),
    ("termpg", "expected", LEARNED_SURVIVAL, [1, 0, 1, 1]),
    ("termpg", "cut", LEARNED_SURVIVAL, [1, 0, 0, 1]),
    ("termpg", "ignored", LEARNED_SURVIVAL, [1, 1, 1, 1]),
    ("termpg", None, LEARNED_SURVIVAL, [1, 0, 1, 1]),
    ("termpg_fixed_discount", None, 0.99, [1, 0, 0, 1]),
    ("termpg_horizon", None, 0.97 * LEARNED_SURVIVAL, [1, 0, 1, 1]),
    ("termpg_horizon", "cut", 0.97 * LEARNED_SURVIVAL, [1, 0, 0, 1]),
    ("oracle_horizon", None, 0.97 * TRUE_SURVIVAL, [1, 0, 1, 1]),
    ("oracle", None, TRUE_SURVIVAL, [1, 0, 1, 1]),
    ("oracle", "cut", TRUE_SURVIVAL, [1, 0, 0, 1]),
    ("oracle", "ignored", TRUE_SURVIVAL, [1, 1, 1, 1]),
]


@pytest.mark.parametrize(("method", "handling", "discount", "kept"), DISCOUNTS)
def test_discounts_by_hand(method, handling, discount, kept):
    method_params = find_method(method, stop_handling=handling).method_params(30)
    found = step_discounts(method_params, played(), fresh())
    np.testing.assert_allclose(found[0], discount * np.array(kept), rtol=1e-6)
    if not method.startswith("termpg"):
        # The same in a program in which nobody learns costs.
        found = step_discounts(method_params, played(), None)
        np.testing.assert_allclose(found[0], discount * np.array(kept), rtol=1e-6)


REWARDS = [
    ("pg", {}, [1, 1, 1, 1]),
    ("pg_rs", {}, [1, 1, 0, 1]),
    ("pg_rs", {"stop_penalty": 2.5}, [1, 1, -1.5, 1]),
    ("termpg", {}, [1, 1, 1, 1]),
    ("termpg_rs", {}, [1, 1, 0, 1]),
    ("termpg_penalty", {}, [0.5, 0.5, 0.5, 0.5]),  # 1 − 0.1·5
    ("termpg_bonus_0.1", {}, [1.2, 1.2, 1.2, 1.2]),  # 1 + 0.1·2
    ("termpg_bonus_1", {}, [3, 3, 3, 3]),
    ("oracle", {}, [1, 1, 1, 1]),
]


@pytest.mark.parametrize(("method", "changes", "expected"), REWARDS)
def test_rewards_by_hand(method, changes, expected):
    method_params = find_method(method, **changes).method_params(30)
    found = shaped_rewards(method_params, played(), fresh())
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)
    if method.startswith("pg"):
        found = shaped_rewards(method_params, played(), None)
        np.testing.assert_allclose(found[0], expected, rtol=1e-6)
