"""Engine `local`: every job is one vmapped program on all devices of this machine.

Programs compile in threads while others run; the runs of a job are split among the
devices.
"""

import os
import queue
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any

import jax

from termdp.bench.events import Event, sentence
from termdp.bench.plan import BenchJob
from termdp.bench.program import Compiled, compile_job, run_job


def run_local(
    jobs: Sequence[BenchJob], compile_threads: int | None = None
) -> Iterator[Event]:
    """Run jobs on this machine, one program at a time.

    Args:
        jobs: what to run.
        compile_threads: programs compiled at once; None for a sensible number.
    """
    devices = jax.devices()
    shared = devices if len(devices) > 1 else None
    threads = compile_threads or _compile_threads(devices[0].platform)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="compile")
    try:
        waiting: dict[Future[Compiled], BenchJob] = {}
        for job in jobs:
            waiting[pool.submit(compile_job, job, shared)] = job
            yield Event("started", job)
        for future in as_completed(list(waiting)):
            # Forget the program when it has run: its memory is needed for the next.
            job = waiting.pop(future)
            yield from _run_one(job, future)
            del future
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _run_one(job: BenchJob, future: "Future[Compiled]") -> Iterator[Event]:
    """Run a job in a thread, telling how far it is."""
    told: queue.Queue[Event] = queue.Queue()

    def work() -> None:
        try:
            result = run_job(
                future.result(),
                lambda fraction: told.put(Event("running", job, fraction)),
            )
            told.put(Event("finished", job, 1.0, result))
        # Whatever goes wrong in one job, out of memory included, the others go on.
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


def _compile_threads(platform: str) -> int:
    """Compilation is the CPU's work: leave it the cores that training does not need."""
    cores = os.cpu_count() or 1
    return 1 if platform == "cpu" else max(1, min(8, cores // 2))


def split_for(platform: str, decisions_per_run: int, speed: float) -> int | None:
    """Runs per job: all on an accelerator, a few minutes' worth on CPUs."""
    if platform != "cpu":
        return None
    return max(1, int(MINUTES_PER_CPU_JOB * 60.0 * speed / decisions_per_run))


MINUTES_PER_CPU_JOB = 5.0


def platform_here() -> Any:
    """The platform of this machine's devices: cpu, gpu, tpu."""
    return jax.devices()[0].platform
