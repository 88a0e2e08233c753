"""Reports of iterations, by hand."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from termdp.runs import metrics
from termdp.runs.cost_features import Accumulated, FreshCosts
from termdp.runs.types import Rollout


def played():
    """Two steps of two environments: a stop, then a truncation and a game over."""
    fields = {field.name: None for field in dataclasses.fields(Rollout)}
    return Rollout(
        **fields
        | {
            "game_over": jnp.array([[False, False], [False, True]]),
            "stopped": jnp.array([[True, False], [False, False]]),
            "truncated": jnp.array([[False, False], [True, False]]),
            "true_costs": jnp.array([[1.0, 0.0], [2.0, 0.0]]),
            "true_stop_probabilities": jnp.array([[0.5, 0.25], [0.25, 0.0]]),
            "true_window_costs": jnp.array([[4.0, 0.0], [2.0, 0.0]]),
            "episode_returns": jnp.array([[10.0, 3.0], [7.0, 5.0]]),
            "episode_lengths": jnp.array([[4, 8], [1, 9]]),
        }
    )


def fresh():
    mean = jnp.array([[3.0, 1.0], [3.0, 3.0]])
    same = jnp.zeros((2, 2))
    # Two members whose mean is (2, 0; 3, 1); the second never changes: dead.
    first = jnp.array([[4.0, 0.0], [6.0, 2.0]])
    members = jnp.stack([first, same], axis=1)
    return FreshCosts(
        accumulated=Accumulated(same, same, same, mean), members=members, bias=3.0
    )


def test_report_of_an_iteration_by_hand():
    sums = jax.jit(metrics.of_iteration)(played(), None)
    assert {name: float(value) for name, value in sums.items()} == {
        "episodes": 3,
        "return_sum": 22,
        "length_sum": 14,
        "stops": 1,
        "game_overs": 1,
        "truncations": 1,
        "true_cost_sum": 3,
        "true_survival_sum": 3,
    }


def test_report_of_costs_by_hand():
    found = metrics.summarise(metrics.of_iteration(played(), fresh()))
    # |2 − 1|, 0, |3 − 2|, |1 − 0| over four steps
    assert found["cost_mae"] == pytest.approx(0.75)
    truth, guess = [1, 0, 2, 0], [2, 0, 3, 1]
    assert found["cost_corr"] == pytest.approx(np.corrcoef(truth, guess)[0, 1], 1e-5)
    # |3 − 4|, |1 − 0|, |3 − 2|, |3 − 0|
    assert found["window_cost_mae"] == pytest.approx(1.5)
    # The game-over step carries no label. Predicted ρ(0), ρ(−2), ρ(0) for stops 1, 0, 0.
    low = 1 / (1 + np.exp(2))
    assert found["brier"] == pytest.approx((0.25 + low**2 + 0.25) / 3, rel=1e-5)
    # Bins by logit: ρ(0) twice against one stop is calibrated, ρ(−2) is not.
    assert found["calibration_error"] == pytest.approx(low / 3, rel=1e-4)
    assert found["discount_mean"] == pytest.approx(0.5)


def test_dead_members_are_counted():
    assert int(metrics.of_iteration(played(), fresh())["dead_members"]) == 1


def test_summary_by_hand_and_none_where_nothing_is_known():
    sums = dict.fromkeys(("return_sum", "length_sum", "stops", "game_overs"), 0.0)
    found = metrics.summarise(sums | {"episodes": 0.0})
    assert set(found.values()) == {None}
    found = metrics.summarise(
        {
            "episodes": 4,
            "return_sum": 10.0,
            "length_sum": 100,
            "stops": 3,
            "game_overs": 1,
        }
    )
    assert found["return_mean"] == 2.5
    assert found["length_mean"] == 25.0
    assert (found["stop_rate"], found["game_over_rate"]) == (0.75, 0.25)
    assert found["cost_mae"] is None
    assert found["cost_corr"] is None


def test_no_correlation_with_costs_that_never_vary():
    report = metrics.of_iteration(played(), fresh())
    flat = report | {"cost_true": 4.0, "cost_true_sq": 4.0, "cost_product": 6.0}
    assert metrics.summarise(flat)["cost_corr"] is None


def test_sums_of_two_iterations_are_the_summary_of_both():
    report = metrics.of_iteration(played(), fresh())
    twice = {name: 2 * value for name, value in report.items()}
    once, both = metrics.summarise(report), metrics.summarise(twice)
    assert both == pytest.approx(once, rel=1e-5)
