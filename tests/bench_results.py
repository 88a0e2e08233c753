"""Result folders without training: numbers of our choosing, written by the real code."""

import dataclasses

import numpy as np

from termdp.bench.execute import CURVE_NAMES, JobResult, RunResult
from termdp.bench.plan import RunKey, make_plan
from termdp.bench.suites import Row, find_suite
from termdp.bench.sweep_folder import SweepFolder
from termdp.report.names import split_discount
from termdp.runs.metrics import SUMMARY_NAMES


def write_results(path, score, suite="paper", seeds=3, points=20, also=(), **choice):
    """A finished sweep in which a run's return is `score(column, row, seed)`.

    Runs for which the score is None are missing. `also` adds rows with a discount of
    their own, such as `termpg_discount_0.97`, to those of the suite.
    """
    plan = make_plan(find_suite(suite), seeds=seeds, **choice)
    plan = dataclasses.replace(plan, cells=[*plan.cells, *_with_discount(plan, also)])
    folder = SweepFolder.create(path, plan, f"termdp bench {suite}")
    runs = []
    for cell, seed in plan.runs:
        key = RunKey(cell.column.label, cell.row.label, seed)
        value = score(*key)
        if value is not None:
            runs.append(run_result(key, cell, value, plan, points))
    facts = {
        "job": "everything",
        "columns": ["several"],
        "env": "several",
        "recurrent": False,
        "preset": plan.preset,
        "runs": len(runs),
        "steps": plan.steps,
        "devices": 1,
        "compile_s": 20.0,
        "wall_s": 50.0,
        "steps_per_s": plan.steps * len(runs) / 50.0,
    }
    folder.add(JobResult(runs, {}, facts))
    folder.close(75.0)
    return folder


def _with_discount(plan, labels):
    found = []
    for label in labels:
        method, discount = split_discount(label)
        for cell in plan.cells:
            if cell.row.label == method:
                row = Row(label, method, {"discount": float(discount)})
                found.append(dataclasses.replace(cell, row=row))
    return found


def run_result(key, cell, value, plan, points=20):
    """One run: its curve rises to the score."""
    learns = cell.method.learns_costs
    steps = np.linspace(plan.steps / points, plan.steps, points).astype(np.int64)
    rise = 1 - np.exp(-4 * steps / plan.steps)
    nothing = np.full(points, np.nan, np.float32)
    curve = {"step": steps} | dict.fromkeys(CURVE_NAMES, nothing)
    curve["return_mean"] = (value * rise).astype(np.float32)
    summary = dict.fromkeys(SUMMARY_NAMES) | {
        "return_mean": float(value),
        "length_mean": 100.0,
        "stop_rate": 0.25,
        "game_over_rate": 0.75,
        "episodes": 50,
        "discount_mean": 0.99,
    }
    if learns:
        summary |= {"cost_rmse": 0.1, "cost_mae": 0.05, "cost_corr": 0.9, "bias": 5.5}
        summary |= {"window_cost_mae": 0.5, "calibration_error": 0.001, "brier": 0.01}
        curve["cost_rmse"] = (0.1 + 0.2 * (1 - rise)).astype(np.float32)
        curve["cost_corr"] = (0.9 * rise).astype(np.float32)
    record = {
        "column": key.column,
        "row": key.row,
        "seed": key.seed,
        "env": cell.column.env,
        "method": cell.row.method,
        "preset": plan.preset,
        "steps": plan.steps,
        **summary,
        "job": {"job": "everything", "runs": 1, "wall_s": 50.0},
        "settings": cell.settings(),
    }
    return RunResult(key, record, curve)
