"""Engine `local`: every job is one vmapped program on all devices of this machine.

The next program compiles while one runs; the runs of a job are split among the
devices.
"""

import dataclasses
import functools
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax

from termdp.bench.events import Event, sentence
from termdp.bench.execute import JobResult, compile_job, run_job
from termdp.bench.plan import BenchJob
from termdp.runs.program import TrainProgram


def run_local(
    jobs: Sequence[BenchJob], agents_of: int | None = None
) -> Iterator[Event]:
    """Run jobs on this machine, one program at a time, while the next one compiles.

    Only one compiles at a time: XLA uses all cores and tries kernels on the device, so
    two at once take longer than one after the other.

    Args:
        jobs: what to run.
        agents_of: also return the agents of this seed; None for no agents.
    """
    devices = jax.devices()
    shared = devices if len(devices) > 1 else None
    pool = ThreadPoolExecutor(1, thread_name_prefix="compile")
    waiting: deque[tuple[BenchJob, Future[TrainProgram]]] = deque()
    run = functools.partial(run_job, agents_of=agents_of)
    try:
        for job in jobs:
            yield Event("started", job)
            waiting.append((job, pool.submit(compile_job, job, shared)))
            if len(waiting) > 1:
                yield from _run_one(run, *waiting.popleft(), shared)
        while waiting:
            yield from _run_one(run, *waiting.popleft(), shared)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _run_one(
    run: Callable[..., JobResult],
    job: BenchJob,
    future: "Future[TrainProgram]",
    devices: Sequence[Any] | None,
) -> Iterator[Event]:
    """Run a job in a thread, and report its progress."""
    told: queue.Queue[Event] = queue.Queue()

    def on_progress(fraction: float) -> None:
        told.put(Event("running", job, fraction))

    def work() -> None:
        try:
            result = _run_or_halve(run, job, future.result, devices, on_progress)
            told.put(Event("finished", job, 1.0, result))
        # Whatever goes wrong in one job, even out of memory, the others continue.
        except Exception as error:
            told.put(Event("failed", job, error=sentence(error)))

    thread = threading.Thread(target=work, name=f"run {job.name}", daemon=True)
    thread.start()
    while True:
        event = told.get()
        yield event
        if event.kind in ("finished", "failed"):
            break
    thread.join()


def _run_or_halve(
    run: Callable[..., JobResult],
    job: BenchJob,
    compiled: Callable[[], TrainProgram],
    devices: Sequence[Any] | None,
    on_progress: Callable[[float], None],
) -> JobResult:
    """Run a job; if it does not fit into the device's memory, in halves."""
    try:
        return run(job, compiled(), on_progress)
    except Exception as error:
        if _OUT_OF_MEMORY not in str(error) or len(job.runs) < 2:
            raise
    # Here, not above: the error would keep the arrays that filled the memory alive.
    middle = len(job.runs) // 2
    parts = [
        _run_or_halve(
            run,
            half,
            functools.partial(compile_job, half, devices),
            devices,
            on_progress,
        )
        for half in (
            dataclasses.replace(job, runs=job.runs[:middle]),
            dataclasses.replace(job, runs=job.runs[middle:]),
        )
    ]
    return _joined(parts)


_OUT_OF_MEMORY = "RESOURCE_EXHAUSTED"


def _joined(parts: Sequence[JobResult]) -> JobResult:
    """Join the results of two halves; their times add up."""
    facts = dict(parts[0].facts)
    for name in ("runs", "compile_s", "wall_s"):
        facts[name] = round(sum(part.facts[name] for part in parts), 3)
    facts["steps_per_s"] = round(facts["steps"] * facts["runs"] / facts["wall_s"], 1)
    return JobResult(
        runs=[run for part in parts for run in part.runs],
        failures={k: words for part in parts for k, words in part.failures.items()},
        facts=facts,
    )


def runs_per_job(job: BenchJob, platform: str) -> int | None:
    """How many runs share a program: all on an accelerator, some minutes of work on CPUs.

    It depends on steps, not on measured times, so sweeps are split alike everywhere.
    """
    if platform != "cpu":
        return None
    return max(1, STEPS_PER_CPU_JOB // job.steps)


STEPS_PER_CPU_JOB = 2_000_000
