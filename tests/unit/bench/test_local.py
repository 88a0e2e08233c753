"""The local engine's decisions, without training."""

import threading

import numpy as np
import pytest

from termdp.bench import local
from termdp.bench.execute import JobResult, RunResult
from termdp.bench.plan import make_jobs
from tiny_bench import tiny_plan


@pytest.fixture
def small_memory(monkeypatch):
    """A device that holds three runs at most; what was tried is noted."""
    tried = []

    def compile_job(job, devices):
        return job

    def run_job(job, program, on_progress, agents_of):
        tried.append(len(job.runs))
        if len(job.runs) > 3:
            raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9e9 bytes")
        on_progress(0.5)
        facts = {"runs": len(job.runs), "compile_s": 1.0, "wall_s": 2.0, "steps": 10}
        curve = {"step": np.zeros(1)}
        return JobResult([RunResult(k, {}, curve) for k in job.keys], {}, facts)

    monkeypatch.setattr(local, "compile_job", compile_job)
    monkeypatch.setattr(local, "run_job", run_job)
    return tried


def test_a_job_that_does_not_fit_runs_in_halves(small_memory):
    (job,) = make_jobs(tiny_plan("pg", "pg_rs", seeds=5))
    events = list(local.run_local([job]))
    assert events[-1].kind == "finished"
    assert small_memory == [10, 5, 2, 3, 5, 2, 3]
    result = events[-1].result
    assert sorted(run.key for run in result.runs) == sorted(job.keys)
    assert result.facts["runs"] == 10
    assert result.facts["wall_s"] == 8.0
    assert result.facts["steps_per_s"] == pytest.approx(10 * 10 / 8.0)


def test_the_next_program_compiles_while_one_runs_and_no_further_one(monkeypatch):
    jobs = make_jobs(tiny_plan("pg", seeds=4), most_runs=lambda job: 1)
    names = [job.name for job in jobs]
    assert len(names) == 4
    compiled, ready = [], {name: threading.Event() for name in names}

    def compile_job(job, devices):
        compiled.append(job.name)
        ready[job.name].set()
        return job

    def run_job(job, program, on_progress, agents_of):
        number = names.index(job.name)
        for name in names[number + 1 : number + 2]:
            assert ready[name].wait(10.0), "the next one was not compiled meanwhile"
        assert compiled == names[: number + 2]
        return JobResult([], {}, {})

    monkeypatch.setattr(local, "compile_job", compile_job)
    monkeypatch.setattr(local, "run_job", run_job)
    events = list(local.run_local(jobs))
    assert [e.job.name for e in events if e.kind == "finished"] == names


def test_other_errors_are_not_tried_again(small_memory, monkeypatch):
    def broken(job, program, on_progress, agents_of):
        small_memory.append(len(job.runs))
        raise RuntimeError("INTERNAL: the device fell off")

    monkeypatch.setattr(local, "run_job", broken)
    (job,) = make_jobs(tiny_plan("pg", seeds=4))
    (_, failed) = local.run_local([job])
    assert failed.kind == "failed"
    assert failed.error == "RuntimeError: INTERNAL: the device fell off"
    assert small_memory == [4]


def test_jobs_are_whole_on_an_accelerator_and_minutes_long_on_cpus():
    (job,) = make_jobs(tiny_plan("pg", seeds=9, steps=500_000))
    assert local.runs_per_job(job, "gpu") is None
    # Two million steps, whatever was measured here before.
    assert local.runs_per_job(job, "cpu") == 4
    (job,) = make_jobs(tiny_plan("pg", seeds=9, steps=5_000_000))
    assert local.runs_per_job(job, "cpu") == 1
