"""Records, curves and failures from reports, by hand."""

import math

import jax
import numpy as np
import pytest

from termdp.bench.execute import run_job, run_result
from termdp.bench.plan import make_jobs
from termdp.runs.metrics import COST_NAMES
from termdp.runs.program import TrainProgram
from termdp.runs.runner import Runner
from tiny_bench import tiny_plan

ITERATIONS = 30
FACTS = {"job": "j", "runs": 1, "compile_s": 1, "wall_s": 2, "steps_per_s": 3}


def reports(runs=1, **changes):
    """Runs of 30 iterations of 32 steps; everything is 1 unless said."""
    names = (
        "episodes",
        "return_sum",
        "length_sum",
        "stops",
        "game_overs",
        "reward_sum",
    )
    found = dict.fromkeys(names, np.ones(ITERATIONS))
    found |= {"steps": np.full(ITERATIONS, 32.0)}
    found |= {"true_survival_sum": np.full(ITERATIONS, 24.0)} | changes
    return {
        name: np.tile(values, (runs, *[1] * np.ndim(values)))
        for name, values in found.items()
    }


def costs():
    n = np.full(ITERATIONS, 32.0)
    return {
        "labelled": n,
        "calibration": np.zeros((ITERATIONS, 10)),
        "cost_abs_error": n,
        "true_cost": n * 0.5,
        "true_cost_sq": n * 0.5,
        "cost_guess": n * 0.5,
        "cost_guess_sq": n * 0.375,
        "cost_product": n * 0.375,
        "window_cost_abs_error": n,
        "brier_sum": n,
        "survival_sum": n * 0.9,
        "bias": np.arange(ITERATIONS, dtype=float),
        "dead_members": np.zeros(ITERATIONS),
    }


def result_of(method, found):
    """The result of one run of a method that reported this."""
    (job,) = make_jobs(tiny_plan(method, seeds=1))
    runner = Runner(TrainProgram(job.training_job()))
    runner.reports = found
    return run_result(job.keys[0], job.runs[0][0], runner, 0, FACTS)


@pytest.mark.parametrize(
    ("method", "discount"),
    [
        ("pg", 0.99),
        ("pg_0.97", 0.97),
        ("oracle", 0.995 * 24 / 32),
        ("termpg", 0.995 * 0.9),
        ("termpg_paper", 0.9),
    ],
)
def test_the_effective_discount_is_the_methods_own(method, discount):
    record = result_of(method, reports(**costs())).record
    assert record["discount_mean"] == pytest.approx(discount)


def test_costs_learned_for_others_are_not_reported():
    record = result_of("pg", reports(**costs())).record
    assert {record[name] for name in COST_NAMES} == {None}
    record = result_of("termpg", reports(**costs())).record
    assert record["cost_rmse"] == pytest.approx(math.sqrt(0.125))
    assert record["bias"] == ITERATIONS - 1


def test_a_record_is_about_the_last_tenth():
    returns = np.arange(ITERATIONS, dtype=float)
    found = result_of("pg", reports(return_sum=returns))
    assert found.record["return_mean"] == pytest.approx((27 + 28 + 29) / 3)
    assert found.record["steps"] == ITERATIONS * 32
    assert found.record["settings"]["numbers"]["discount"] == 0.99
    np.testing.assert_allclose(found.curve["return_mean"], returns)
    np.testing.assert_array_equal(found.curve["step"], 32 * np.arange(1, 31))
    assert np.isnan(found.curve["cost_rmse"]).all()


def test_a_run_that_fails_does_not_take_the_others_with_it(monkeypatch):
    def run(runner):
        runner.reports, runner.taken, runner.seconds = reports(runs=3), ITERATIONS, 2.0
        runner.troubles = {1: "expected finite parameters at step 160 of seed 1"}

    monkeypatch.setattr(Runner, "run", run)
    (job,) = make_jobs(tiny_plan("pg", seeds=3))
    program = TrainProgram(job.training_job())
    program.compile_seconds = 7.0
    found = run_job(job, program)
    assert [result.key.seed for result in found.runs] == [0, 2]
    ((key, words),) = found.failures.items()
    assert key.seed == 1
    assert "at step 160" in words
    assert found.facts["compile_s"] == 7.0
    assert found.facts["devices"] == 1
    assert found.facts["steps_per_s"] == 3 * ITERATIONS * 32 / 2.0


def test_what_fails_among_runs_that_fill_up_the_devices_is_nobodys(monkeypatch):
    def run(runner):
        runner.reports, runner.taken, runner.seconds = reports(runs=4), ITERATIONS, 2.0
        runner.troubles = {3: "expected finite parameters at step 160 of seed 2"}

    monkeypatch.setattr(Runner, "run", run)
    (job,) = make_jobs(tiny_plan("pg", seeds=3))
    found = run_job(job, TrainProgram(job.training_job(multiple=4)))
    assert [result.key.seed for result in found.runs] == [0, 1, 2]
    assert found.failures == {}


def test_runs_that_do_not_divide_among_the_devices_are_refused():
    (job,) = make_jobs(tiny_plan("pg", seeds=3))
    with pytest.raises(ValueError, match="evenly among 2 devices, got 3"):
        TrainProgram(job.training_job(), devices=jax.devices() * 2)
