"""Records and curves from reports, by hand."""

import math

import jax
import numpy as np
import pytest

from termdp.bench import program
from termdp.bench.plan import make_jobs
from termdp.runs.program import Trainer
from tiny_bench import tiny_plan

ITERATIONS = 20


def reports(**changes):
    """One run of 20 iterations of 32 decisions; everything is 1 unless said."""
    ones = dict.fromkeys(
        (
            "episodes",
            "return_sum",
            "length_sum",
            "stops",
            "game_overs",
            "truncations",
            "true_cost_sum",
        ),
        np.ones(ITERATIONS),
    )
    return ones | {"true_survival_sum": np.full(ITERATIONS, 24.0)} | changes


def costs():
    n = np.full(ITERATIONS, 32.0)
    return {
        "cost_n": n,
        "labelled": n,
        "calibration": np.zeros((ITERATIONS, 10)),
        "cost_abs_error": n,
        "cost_true": n * 0.5,
        "cost_guess": n * 0.5,
        "cost_true_sq": n * 0.5,
        "cost_guess_sq": n * 0.375,
        "cost_product": n * 0.375,
        "window_cost_abs_error": n,
        "brier_sum": n,
        "discount_sum": n * 0.9,
        "bias": np.arange(ITERATIONS, dtype=float),
        "dead_members": np.zeros(ITERATIONS),
    }


def cell_of(method):
    return tiny_plan(method, seeds=1).cells[0]


def test_the_l2_error_is_the_root_of_the_mean_square():
    truth, guess = np.array([0.0, 1.0, 1.0, 0.0]), np.array([0.5, 1.0, 0.0, 0.0])
    sums = {
        "cost_n": 4,
        "cost_true_sq": np.sum(truth**2),
        "cost_guess_sq": np.sum(guess**2),
        "cost_product": np.sum(truth * guess),
    }
    assert program.cost_rmse(sums) == pytest.approx(math.sqrt(1.25 / 4))
    assert program.cost_rmse({}) is None


@pytest.mark.parametrize(
    ("method", "discount"),
    [("pg", 0.99), ("pg_0.953", 0.953), ("oracle", 24 / 32), ("termpg", 0.9)],
)
def test_the_effective_discount_is_the_methods_own(method, discount):
    found = program.stretch(cell_of(method), reports(**costs()), 0, 10, 32)
    assert found["discount_mean"] == pytest.approx(discount)


def test_costs_learned_for_others_are_not_reported():
    found = program.stretch(cell_of("pg"), reports(**costs()), 0, 10, 32)
    assert {found[name] for name in (*program.COST_NAMES, "bias")} == {None}
    found = program.stretch(cell_of("termpg"), reports(**costs()), 0, 10, 32)
    assert found["cost_rmse"] == pytest.approx(math.sqrt(0.125))
    assert found["bias"] == 9.0


def test_a_record_is_about_the_last_tenth():
    returns = np.arange(ITERATIONS, dtype=float)
    (job,) = make_jobs(tiny_plan("pg", seeds=1))
    facts = {"job": "j", "runs": 1, "compile_s": 1, "wall_s": 2, "steps_per_s": 3}
    found = program.run_result(
        job.keys[0], job.runs[0][0], reports(return_sum=returns), job, facts
    )
    assert found.record["return_mean"] == pytest.approx((18 + 19) / 2)
    assert found.record["steps"] == ITERATIONS * 32
    assert found.record["settings"]["method"]["discount"] == 0.99
    np.testing.assert_allclose(found.curve["return_mean"], returns)
    np.testing.assert_array_equal(found.curve["step"], 32 * np.arange(1, 21))
    assert np.isnan(found.curve["cost_rmse"]).all()


def test_trouble_is_found_where_it_began():
    losses = np.ones(ITERATIONS)
    losses[[4, 9]] = np.nan
    words = program._trouble(reports(policy_loss=losses), 32)
    assert "policy_loss" in words
    assert "step 160" in words
    assert program._trouble(reports(), 32) == ""


def test_a_run_that_fails_does_not_take_the_others_with_it():
    (job,) = make_jobs(tiny_plan("pg", seeds=3))
    compiled = program.Compiled(job, Trainer(job.training_job()), 7.0)
    together = {name: np.tile(values, (3, 1)) for name, values in reports().items()}
    together["return_sum"][1, 4] = np.inf
    found = program._results(compiled, together, 2.0)
    assert [run.key.seed for run in found.runs] == [0, 2]
    ((key, words),) = found.failures.items()
    assert key.seed == 1
    assert "return_sum did not at step 160" in words
    assert found.facts["compile_s"] == 7.0
    assert found.facts["devices"] == 1


def test_runs_that_do_not_divide_among_the_devices_are_refused():
    (job,) = make_jobs(tiny_plan("pg", seeds=3))
    with pytest.raises(ValueError, match="evenly among 2 devices, got 3"):
        Trainer(job.training_job(), devices=jax.devices() * 2)
