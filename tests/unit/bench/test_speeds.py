"""Estimates: a formula first, this machine's own speed later."""

from dataclasses import replace

import pytest

from termdp.bench.plan import make_jobs
from termdp.bench.speeds import RECORDED, Speeds
from tiny_bench import tiny_plan


@pytest.fixture
def job():
    (job,) = make_jobs(tiny_plan("pg", seeds=2, steps=1_000_000))
    return job


def test_an_estimate_is_steps_over_speed_and_says_where_it_is_from(job, tmp_path):
    speeds = Speeds("gpu", tmp_path / "speeds.json")
    assert not speeds.is_measured(job)
    assert speeds.of(job) == RECORDED["gpu"]["vector"]
    compiling = RECORDED["gpu"]["compile_s"]
    assert speeds.seconds([job]) == pytest.approx(compiling + 2e6 / speeds.of(job))
    assert speeds.seconds([]) == 0.0


def test_a_measured_speed_is_kept_for_the_next_time(job, tmp_path):
    path = tmp_path / "deep" / "speeds.json"
    Speeds("cpu", path).remember(job, {"steps_per_s": 123.0, "compile_s": 7.0})
    again = Speeds("cpu", path)
    assert again.is_measured(job)
    assert again.of(job) == 123.0
    assert again.seconds([job]) == pytest.approx(7.0 + 2e6 / 123.0)
    assert not Speeds("gpu", path).is_measured(job)


def test_the_next_program_compiles_while_one_runs(job, tmp_path):
    speeds = Speeds("cpu", tmp_path / "speeds.json")
    speeds.remember(job, {"steps_per_s": 1e6, "compile_s": 10.0})
    # Compiled for 10 s, run for 2 s; a similar job needs no compiling.
    assert speeds.seconds([job]) == pytest.approx(12.0)
    assert speeds.seconds([job, job]) == pytest.approx(14.0)
    # Half the runs are another program: it is ready after 20 s and runs for 1 s.
    half = replace(job, runs=job.runs[:1])
    assert speeds.seconds([job, half]) == pytest.approx(21.0)


@pytest.mark.parametrize(
    "text",
    [
        *("[1, 2", "[1, 2]", "{", '{"NAME": 3}', '{"NAME": {"steps_per_s": 0}}'),
        '{"NAME": {"steps_per_s": 0, "compile_s": 1}}',
        '{"NAME": {"steps_per_s": "fast", "compile_s": 1}}',
    ],
)
def test_a_damaged_memory_is_forgotten(job, tmp_path, text):
    path = tmp_path / "speeds.json"
    path.write_text(text.replace("NAME", Speeds("cpu", path)._name(job)))
    speeds = Speeds("cpu", path)
    assert not speeds.is_measured(job)
    assert speeds.seconds([job]) > 0
