"""One job from compilation to results; both engines run this."""

import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from termdp.bench.plan import BenchJob, Cell, RunKey
from termdp.runs.program import Trainer
from termdp.runs.metrics import summarise
from termdp.runs.runner import chunk_length, chunks

CURVE_POINTS = 100
COST_NAMES = (
    "cost_mae",
    "cost_rmse",
    "cost_corr",
    "window_cost_mae",
    "calibration_error",
    "brier",
)
SUMMARY_NAMES = (
    "return_mean",
    "length_mean",
    "stop_rate",
    "game_over_rate",
    "episodes",
    "discount_mean",
    *COST_NAMES,
    "bias",
    "dead_members",
)
CURVE_NAMES = (
    "return_mean",
    "length_mean",
    "stop_rate",
    "discount_mean",
    "cost_rmse",
    "cost_mae",
    "cost_corr",
    "bias",
)
Reports = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class RunResult:
    """One finished run.

    Attributes:
        key: which.
        record: plain data for JSON: what it was and what came out.
        curve: by name, one number per point, NaN where nothing is known.
    """

    key: RunKey
    record: dict[str, Any]
    curve: dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class JobResult:
    """What a job leaves behind.

    Attributes:
        runs: finished runs.
        failures: what went wrong with single runs, by key.
        facts: times and speed of the program.
    """

    runs: list[RunResult]
    failures: dict[RunKey, str]
    facts: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A job whose program is ready."""

    job: BenchJob
    trainer: Trainer
    compile_seconds: float


def compile_job(job: BenchJob, devices: Sequence[Any] | None = None) -> Compiled:
    """Compile a job for some devices; nothing is put on them yet."""
    began = time.perf_counter()
    count = 1 if devices is None else len(devices)
    trainer = Trainer(job.training_job(multiple=count), devices)
    trainer.compile_init()
    trainer.compile(chunk_length(trainer.job.num_iterations))
    return Compiled(job, trainer, time.perf_counter() - began)


def run_job(
    compiled: Compiled, listen: Callable[[float], None] = lambda fraction: None
) -> JobResult:
    """Train all runs of a job to their end.

    Args:
        compiled: the job.
        listen: hears which fraction is done, between chunks.
    """
    total, done = compiled.trainer.job.num_iterations, 0
    began = time.perf_counter()
    state = compiled.trainer.init()
    reports: list[Reports] = []
    waiting: Any = None
    for count in chunks(total):
        state, report = compiled.trainer.advance(state, count)
        # Reading is one chunk behind, so that the device never waits for the host.
        if waiting is not None:
            reports.append(_on_host(waiting))
            listen(done / total)
        waiting, done = report, done + count
    reports.append(_on_host(waiting))
    jax.block_until_ready(state)
    seconds = time.perf_counter() - began
    merged = {k: np.concatenate([r[k] for r in reports], axis=1) for k in reports[0]}
    return _results(compiled, merged, seconds)


def _on_host(report: Any) -> Reports:
    return {name: np.asarray(values) for name, values in report.items()}


def _results(compiled: Compiled, reports: Reports, seconds: float) -> JobResult:
    job, training = compiled.job, compiled.trainer.job
    steps = training.num_iterations * job.config.rollout_size
    devices = sorted(_devices_of(compiled.trainer), key=lambda device: device.id)
    facts = {
        "job": job.name,
        "columns": [column.label for column in job.columns],
        "env": job.env,
        "recurrent": job.recurrent,
        "preset": job.config.preset,
        "runs": len(job.runs),
        "steps": steps,
        "devices": len(devices),
        "device": f"{devices[0].platform} {devices[0].device_kind}",
        "compile_s": round(compiled.compile_seconds, 3),
        "wall_s": round(seconds, 3),
        "steps_per_s": round(steps * len(job.runs) / seconds, 1),
    }
    runs, failures = [], {}
    for index, (key, (cell, _)) in enumerate(zip(job.keys, job.runs, strict=True)):
        mine = {name: values[index] for name, values in reports.items()}
        trouble = _trouble(mine, job.config.rollout_size)
        if trouble:
            failures[key] = trouble
            continue
        runs.append(run_result(key, cell, mine, job, facts))
    return JobResult(runs, failures, facts)


def _devices_of(trainer: Trainer) -> set[Any]:
    return set(jax.tree.leaves(trainer.method_params)[0].devices())


def _trouble(reports: Reports, rollout_size: int) -> str:
    """What became not-a-number first, or nothing."""
    for name, values in sorted(reports.items()):
        bad = ~np.isfinite(values)
        if bad.any():
            iteration = int(np.argwhere(bad)[0][0])
            step = (iteration + 1) * rollout_size
            return (
                f"expected training to stay finite, but {name} did not at step {step}"
            )
    return ""


def run_result(
    key: RunKey, cell: Cell, reports: Reports, job: BenchJob, facts: dict[str, Any]
) -> RunResult:
    """The record and the curve of one run from its reports `[iterations, ...]`."""
    total = len(reports["episodes"])
    size = job.config.rollout_size
    tenth = max(1, total // 10)
    record = {
        "column": key.column,
        "row": key.row,
        "seed": key.seed,
        "env": cell.column.env,
        "method": cell.row.method,
        "preset": job.config.preset,
        "steps": total * size,
        **{
            name: _plain(value)
            for name, value in stretch(
                cell, reports, total - tenth, total, size
            ).items()
            if name in SUMMARY_NAMES
        },
        "job": {
            name: facts[name]
            for name in ("job", "runs", "compile_s", "wall_s", "steps_per_s")
        },
        "settings": cell.settings(),
    }
    edges = np.unique(np.linspace(0, total, min(CURVE_POINTS, total) + 1).astype(int))
    points = [
        stretch(cell, reports, int(a), int(b), size)
        for a, b in itertools.pairwise(edges)
    ]
    curve = {"step": edges[1:].astype(np.int64) * size} | {
        name: np.array([_number(point[name]) for point in points], np.float32)
        for name in CURVE_NAMES
    }
    return RunResult(key, record, curve)


def stretch(
    cell: Cell, reports: Reports, first: int, last: int, rollout_size: int
) -> dict[str, Any]:
    """What happened from one iteration to another."""
    sums = {name: values[first:last].sum(axis=0) for name, values in reports.items()}
    found: dict[str, Any] = dict(summarise(sums))
    found["episodes"] = int(sums["episodes"])
    found["cost_rmse"] = cost_rmse(sums)
    found["bias"] = reports["bias"][last - 1] if "bias" in reports else None
    found["dead_members"] = (
        reports["dead_members"][last - 1] if "dead_members" in reports else None
    )
    decisions = (last - first) * rollout_size
    if not cell.method.learns_costs:
        # The program may learn costs for the runs beside this one.
        found |= dict.fromkeys((*COST_NAMES, "bias", "dead_members"))
    if not cell.method.dynamic_discount:
        found["discount_mean"] = cell.method.discount
    elif cell.method.knows_costs:
        found["discount_mean"] = float(sums["true_survival_sum"]) / decisions
    return found


def cost_rmse(sums: dict[str, Any]) -> float | None:
    """ℓ2 error per step: root of the mean squared difference to the true cost."""
    if "cost_n" not in sums:
        return None
    squares = sums["cost_true_sq"] - 2 * sums["cost_product"] + sums["cost_guess_sq"]
    return math.sqrt(max(float(squares) / float(sums["cost_n"]), 0.0))


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, int):
        return value
    return float(value)
