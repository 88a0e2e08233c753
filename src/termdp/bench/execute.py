"""One job from compilation to results; both engines run this."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from termdp.bench.plan import BenchJob, Cell, RunKey
from termdp.runs.agent import Agent
from termdp.runs.metrics import SUMMARY_NAMES
from termdp.runs.program import TrainProgram
from termdp.runs.result import agent_of_run
from termdp.runs.runner import Runner, chunk_length

CURVE_POINTS = 100
CURVE_NAMES = (
    *("return_mean", "length_mean", "stop_rate", "discount_mean"),
    *("cost_rmse", "cost_mae", "cost_corr", "bias"),
)


@dataclasses.dataclass(frozen=True)
class RunResult:
    """One finished run.

    Attributes:
        key: its name in the results.
        record: its settings and results, as plain data for JSON.
        curve: by name, one number per point, NaN if unknown.
        agent: the trained agent; None unless asked for.
    """

    key: RunKey
    record: dict[str, Any]
    curve: dict[str, np.ndarray]
    agent: Agent | None = None


@dataclasses.dataclass(frozen=True)
class JobResult:
    """The results of a job.

    Attributes:
        runs: finished runs.
        failures: errors of single runs, by key.
        facts: times and speed of the compiled program, for the manifest.
    """

    runs: list[RunResult]
    failures: dict[RunKey, str]
    facts: dict[str, Any]


def compile_job(job: BenchJob, devices: Sequence[Any] | None = None) -> TrainProgram:
    """Compile a job for some devices; nothing is put on them yet."""
    count = 1 if devices is None else len(devices)
    program = TrainProgram(job.training_job(multiple=count), devices)
    program.compile_all(chunk_length(program.job.num_iterations))
    return program


def run_job(
    job: BenchJob,
    program: TrainProgram,
    on_progress: Callable[[float], None] = lambda fraction: None,
    agents_of: int | None = None,
) -> JobResult:
    """Train all runs of a job to their end.

    Args:
        job: what to run.
        program: its compiled program.
        on_progress: gets the fraction done, between chunks.
        agents_of: also return the agents of this seed; None for no agents.
    """
    runner = Runner(
        program,
        on_progress=lambda progress: on_progress(progress.step / progress.steps),
        raise_troubles=False,
        advise=False,
    )
    runner.run()
    facts = _facts(job, runner)
    # The remaining runs only fill up the devices.
    mine = {run: s for run, s in runner.troubles.items() if run < len(job.runs)}
    failures = {job.keys[run]: sentence for run, sentence in mine.items()}
    runs = [
        run_result(key, cell, runner, index, facts, with_agent=key.seed == agents_of)
        for index, (key, (cell, _)) in enumerate(zip(job.keys, job.runs, strict=True))
        if key not in failures
    ]
    return JobResult(runs, failures, facts)


def _facts(job: BenchJob, runner: Runner) -> dict[str, Any]:
    leaves = jax.tree.leaves(runner.program.method_params)
    devices = sorted(leaves[0].devices(), key=lambda device: device.id)
    found = runner.facts()
    # Runs that only fill up the devices do not count.
    found["steps_per_s"] = round(
        found["steps"] * len(job.runs) / max(runner.seconds, 1e-9), 1
    )
    return {
        "job": job.name,
        "columns": [column.label for column in job.columns],
        "env": job.env,
        "recurrent": job.recurrent,
        "preset": job.preset,
        "runs": len(job.runs),
        "devices": len(devices),
        "device": f"{devices[0].platform} {devices[0].device_kind}",
        **found,
        "compile_s": round(runner.program.compile_seconds, 3),
    }


def run_result(
    key: RunKey,
    cell: Cell,
    runner: Runner,
    run: int,
    facts: dict[str, Any],
    with_agent: bool = False,
) -> RunResult:
    """The record, the curve and, if wanted, the agent of one run."""
    summary = runner.last_tenth(run)
    record = {
        "column": key.column,
        "row": key.row,
        "seed": key.seed,
        "env": cell.column.env,
        "method": cell.row.method,
        "preset": cell.spec.preset,
        "steps": summary["step"],
        **{name: summary[name] for name in SUMMARY_NAMES},
        "job": {
            name: facts[name]
            for name in ("job", "runs", "compile_s", "wall_s", "steps_per_s")
        },
        "settings": cell.settings(),
    }
    total = runner.total
    edges = np.unique(np.linspace(0, total, min(CURVE_POINTS, total) + 1).astype(int))
    points = [runner.row(run, int(a), int(b)) for a, b in itertools.pairwise(edges)]
    curve = {"step": np.array([point["step"] for point in points], np.int64)} | {
        name: np.array([_number(point[name]) for point in points], np.float32)
        for name in CURVE_NAMES
    }
    agent = None
    if with_agent:
        assert runner.state is not None
        earned = summary["return_mean"]
        agent = agent_of_run(cell.spec, runner.job, runner.state, run, earned)
    return RunResult(key, record, curve, agent)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
