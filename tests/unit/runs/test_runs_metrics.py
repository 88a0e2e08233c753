"""Reports of iterations, by hand."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from termdp.agents.methods import find_method
from termdp.runs import metrics
from termdp.runs.collect import Rollout, Truth
from termdp.runs.cost_features import Accumulated, FreshCosts

TERMPG, PG, ORACLE = (find_method(name) for name in ("termpg", "pg", "oracle"))


def played():
    """Two steps of two environments: a stop, then a truncation and a game over."""
    fields = {field.name: None for field in dataclasses.fields(Rollout)}
    return Rollout(
        **fields
        | {
            "game_over": jnp.array([[False, False], [False, True]]),
            "stopped": jnp.array([[True, False], [False, False]]),
            "truncated": jnp.array([[False, False], [True, False]]),
            "rewards": jnp.array([[1.0, -2.0], [0.5, 0.0]]),
            "truth": Truth(
                costs=jnp.array([[1.0, 0.0], [2.0, 0.0]]),
                window_costs=jnp.array([[4.0, 0.0], [2.0, 0.0]]),
                stop_probabilities=jnp.array([[0.5, 0.25], [0.25, 0.0]]),
            ),
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


def reports(*each):
    """What iterations said, one after the other; `bias` comes from the learner."""
    return {
        name: np.stack([np.asarray((one | {"bias": 4.0})[name]) for one in each])
        for name in each[0] | {"bias": 0.0}
    }


def test_report_of_an_iteration_by_hand():
    sums = jax.jit(metrics.of_iteration)(played(), None)
    assert {name: float(value) for name, value in sums.items()} == {
        "episodes": 3,
        "return_sum": 22,
        "length_sum": 14,
        "stops": 1,
        "game_overs": 1,
        "truncations": 1,
        "steps": 4,
        "reward_sum": -0.5,
        "true_cost": 3,
        "true_cost_sq": 5,
        "true_survival_sum": 3,
    }


def test_report_of_costs_by_hand():
    found = metrics.summarise(reports(metrics.of_iteration(played(), fresh())), TERMPG)
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
    assert found["cost_rmse"] == pytest.approx(np.sqrt(3 / 4))
    # 0.995 × the mean of 1 − ρ(0)
    assert found["discount_mean"] == pytest.approx(0.995 * 0.5)
    assert (found["bias"], found["dead_members"]) == (4.0, 1)


def test_what_nobody_knows_is_absent_not_zero():
    unknown = dataclasses.replace(played(), truth=None)
    report = metrics.of_iteration(unknown, fresh())
    found = metrics.summarise(reports(report), TERMPG)
    for name in ("cost_mae", "cost_rmse", "cost_corr", "window_cost_mae"):
        assert found[name] is None
    assert found["brier"] > 0


def test_a_run_beside_one_that_learns_costs_reports_none_itself():
    both = reports(metrics.of_iteration(played(), fresh()))
    found = metrics.summarise(both, PG)
    assert all(found[name] is None for name in metrics.COST_NAMES)
    assert found["discount_mean"] == 0.99
    # The oracle's discount follows the true probabilities: 3 of 4 survive.
    found = metrics.summarise(both, ORACLE)
    assert found["discount_mean"] == pytest.approx(0.995 * 0.75)


def test_dead_members_are_counted():
    assert int(metrics.of_iteration(played(), fresh())["dead_members"]) == 1


def sums(**changes):
    names = ("return_sum", "length_sum", "stops", "game_overs", "episodes")
    return {name: np.array([float(changes.get(name, 0.0))]) for name in names}


def test_summary_by_hand_and_none_where_nothing_is_known():
    found = metrics.summarise(sums(), PG)
    assert (found.pop("episodes"), found.pop("discount_mean")) == (0, 0.99)
    assert set(found.values()) == {None}
    found = metrics.summarise(
        sums(episodes=4, return_sum=10, length_sum=100, stops=3, game_overs=1), PG
    )
    assert found["return_mean"] == 2.5
    assert found["length_mean"] == 25.0
    assert (found["stop_rate"], found["game_over_rate"]) == (0.75, 0.25)
    assert set(found) == set(metrics.SUMMARY_NAMES)


def test_no_correlation_with_costs_that_never_vary():
    report = metrics.of_iteration(played(), fresh())
    flat = report | {"true_cost": 4.0, "true_cost_sq": 4.0, "cost_product": 6.0}
    assert metrics.summarise(reports(flat), TERMPG)["cost_corr"] is None


def test_two_equal_iterations_are_summarised_as_one():
    report = metrics.of_iteration(played(), fresh())
    once = metrics.summarise(reports(report), TERMPG)
    both = metrics.summarise(reports(report, report), TERMPG)
    assert both.pop("episodes") == 2 * once.pop("episodes")
    assert both == pytest.approx(once, rel=1e-5)


def test_numbers_that_are_not_finite_are_counted():
    found = metrics.troubles(
        jnp.array([1.0, jnp.nan, jnp.inf]), {"w": jnp.ones(3), "n": jnp.arange(2)}
    )
    assert {k: int(v) for k, v in found.items()} == {
        "bad_observations": 2,
        "bad_parameters": 0,
    }
    assert int(metrics.troubles(jnp.zeros(2, bool), ())["bad_observations"]) == 0
