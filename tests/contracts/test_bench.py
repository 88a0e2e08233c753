"""Sweeps that really train: on one device and two, killed and resumed."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from runs_long import fused
from termdp.bench.local import run_local
from termdp.bench.plan import RunKey, make_jobs
from termdp.bench.suites import RECOMMENDER, Column, Row
from termdp.bench.sweep import sweep
from termdp.bench.sweep_folder import (
    SweepFolder,
    read_curves,
    read_manifest,
    read_records,
)
from termdp.cli import main
from termdp.runs.metrics import SUMMARY_NAMES
from tiny_bench import BROKEN, STEPS, TINY, tiny_plan

pytestmark = pytest.mark.slow

KEYS = {RunKey("recommender", row, seed) for row in ("pg", "termpg") for seed in (0, 1)}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Two good jobs and two that cannot be compiled: (folder, outcome, events)."""
    plan = tiny_plan("pg", "termpg", columns=(BROKEN, RECOMMENDER))
    folder = SweepFolder.create(
        tmp_path_factory.mktemp("sweep") / "out", plan, "command"
    )
    events = []
    outcome = sweep(run_local(make_jobs(plan)), folder, on_progress=events.append)
    return folder, outcome, events


def test_a_failed_job_is_listed_and_does_not_stop_the_others(swept):
    folder, outcome, _ = swept
    assert set(outcome.finished) == KEYS
    assert len(outcome.failures) == 2, "with and without a cost learner"
    for keys, error in outcome.failures:
        assert {key.column for key in keys} == {"broken"}
        assert "equal minibatches" in error
    stored = read_manifest(folder.path)["failures"]
    assert [failure["error"] for failure in stored] == [e for _, e in outcome.failures]
    assert [len(failure["runs"]) for failure in stored] == [2, 2]


def test_a_run_that_becomes_nan_fails_alone(tmp_path):
    # The penalty's square is no float32: the first update after a stop makes NaN of it.
    spoiled = Row("spoiled", "pg", {"stop_penalty": 1e38})
    plan = tiny_plan("pg", spoiled, "oracle", seeds=1)
    (job,) = make_jobs(plan)
    assert len(job.runs) == 3, "one program, so one job"
    folder = SweepFolder.create(tmp_path / "out", plan, "command")
    outcome = sweep(run_local([job]), folder)
    assert {key.row for key in outcome.finished} == {"pg", "oracle"}
    (((key,), error),) = outcome.failures
    assert key == RunKey("recommender", "spoiled", 0)
    assert error.startswith("expected finite ")
    assert "of seed 0" in error
    (failure,) = read_manifest(folder.path)["failures"]
    assert failure == {"runs": [["recommender", "spoiled", 0]], "error": error}
    records = {record["row"]: record for record in read_records(folder.path)}
    assert set(records) == {"pg", "oracle"}
    assert all(np.isfinite(record["return_mean"]) for record in records.values())
    assert folder.finished() == {RunKey("recommender", row, 0) for row in records}
    alone = tiny_plan("pg", "oracle", seeds=1)
    other = SweepFolder.create(tmp_path / "alone", alone, "command")
    sweep(run_local(make_jobs(alone)), other)
    for record in read_records(other.path):
        found = records[record["row"]]["return_mean"]
        assert found == pytest.approx(record["return_mean"], rel=1e-3)


def numbers_of(plan, path, **cut):
    """What every run of a plan came to, curves included, and how many jobs it took."""
    folder = SweepFolder.create(path, plan, "command")
    jobs = make_jobs(plan, as_alone=True, **cut)
    sweep(run_local(jobs), folder)
    measured = {
        RunKey(r["column"], r["row"], r["seed"]): [r[n] for n in SUMMARY_NAMES]
        for r in read_records(path)
    }
    curves = {
        (key, name): values.tobytes()
        for key, curve in read_curves(path).items()
        for name, values in curve.items()
    }
    return measured, curves, len(jobs)


def test_on_the_cpu_a_run_has_the_same_bits_whatever_runs_beside_it(tmp_path):
    """Two together, and each alone; learning would make much of a bit.

    In `make soak` operations are fused as users' are, which takes twice as long.
    """
    plan = tiny_plan("termpg", seeds=2)
    is_long = "TERMDP_LONG_TESTS" in os.environ
    with fused() if is_long else contextlib.nullcontext():
        *together, few = numbers_of(plan, tmp_path / "together")
        *alone, many = numbers_of(plan, tmp_path / "alone", most_runs=lambda job: 1)
    assert (few, many) == (1, 2)
    assert together == alone


def test_columns_that_share_a_program_learn_as_they_would_alone(swept, tmp_path):
    other = Column("patient", "recommender", {"window": 30, "bias": 5.0, "relief": 0.1})
    both = tiny_plan("termpg", columns=(RECOMMENDER, other))
    (job,) = make_jobs(both)
    assert {key.column for key in job.keys} == {"recommender", "patient"}
    folders = [swept[0]]
    for number, plan in enumerate((both, tiny_plan("termpg", columns=(other,)))):
        folders.append(SweepFolder.create(tmp_path / str(number), plan, "command"))
        sweep(run_local(make_jobs(plan)), folders[-1])
    one, together, two = (
        {
            RunKey(r["column"], r["row"], r["seed"]): r["return_mean"]
            for r in read_records(folder.path)
            if r["row"] == "termpg"
        }
        for folder in folders
    )
    assert len(together) == 4
    assert together == pytest.approx(one | two, rel=1e-3)
    assert together["patient", "termpg", 0] != together["recommender", "termpg", 0]


def test_events_tell_how_far_a_job_is(swept):
    _, _, events = swept
    good = [event for event in events if event.job.name == "recommender"]
    assert good[0].kind == "started"
    assert good[-1].kind == "finished"
    fractions = [event.fraction for event in good if event.kind == "running"]
    assert fractions == sorted(fractions)
    assert len(fractions) > 10


def test_records_say_what_happened(swept):
    folder, _, _ = swept
    records = read_records(folder.path)
    assert {RunKey(r["column"], r["row"], r["seed"]) for r in records} == KEYS
    for record in records:
        assert record["steps"] == STEPS
        assert 0 < record["return_mean"] < 300
        assert 0 <= record["stop_rate"] <= 1
        learns = record["row"] == "termpg"
        assert (record["cost_rmse"] is not None) == learns
        assert 0.5 < record["discount_mean"] <= 1
    curves = read_curves(folder.path)
    assert set(curves) == KEYS
    for curve in curves.values():
        assert curve["step"][-1] == STEPS
        assert np.isfinite(curve["return_mean"]).any()
    programs = read_manifest(folder.path)["programs"]
    assert [program["runs"] for program in programs] == [2, 2]
    for program in programs:
        assert program["steps_per_s"] == pytest.approx(
            2 * STEPS / program["wall_s"], rel=1e-2
        )
        assert program["compile_s"] > 0
    plain, learning = (program["bytes_per_run"] for program in programs)
    assert 0 < plain < learning, "a cost learner remembers"


KILLED = """
import os, signal, sys
from pathlib import Path
from termdp.bench.local import run_local
from termdp.bench.plan import make_jobs
from termdp.bench.sweep import sweep
from termdp.bench.sweep_folder import SweepFolder
from tiny_bench import tiny_plan

plan = tiny_plan("pg", "pg_rs")
folder = SweepFolder.create(Path(sys.argv[1]), plan, "command")

def die(event):
    if event.kind == "finished":
        os.kill(os.getpid(), signal.SIGKILL)

sweep(run_local(make_jobs(plan, most_runs=lambda job: 2)), folder, on_progress=die)
"""

TWO_DEVICES = """
import sys
from pathlib import Path
import jax
from termdp.bench.local import run_local
from termdp.bench.plan import RunKey, make_jobs
from termdp.bench.sweep import sweep
from termdp.bench.sweep_folder import SweepFolder
from tiny_bench import tiny_plan

assert len(jax.devices()) == 2
plan = tiny_plan("pg", "termpg")
folder = SweepFolder.create(Path(sys.argv[1]), plan, "command")
# Three runs for two devices: one is filled up.
jobs = make_jobs(plan, [RunKey("recommender", "pg", 0)])
outcome = sweep(run_local(jobs), folder)
assert not outcome.failures, outcome.failures
"""


def python(script, *words, **environment):
    path = os.pathsep.join([os.path.dirname(os.path.dirname(__file__)), *sys.path])
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, words)],
        env=os.environ | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_what_was_finished_survives_a_kill_and_only_the_rest_is_run(tmp_path):
    left = python(KILLED, tmp_path / "out")
    assert left.returncode == -signal.SIGKILL, left.stderr
    before = {r["row"]: r for r in read_records(tmp_path / "out")}
    assert len(before) == 1, "one job of two was finished"
    plan = tiny_plan("pg", "pg_rs")
    folder = SweepFolder.reopen(tmp_path / "out", plan, "again")
    jobs = make_jobs(plan, folder.finished(), most_runs=lambda job: 2)
    (job,) = jobs
    assert {key.row for key in job.keys} == {"pg", "pg_rs"} - set(before)
    outcome = sweep(run_local(jobs), folder)
    assert len(outcome.finished) == 2
    assert len(read_records(folder.path)) == 4


def test_two_devices_give_the_results_of_one(swept, tmp_path):
    flags = os.environ["XLA_FLAGS"]
    two = python(
        TWO_DEVICES,
        tmp_path / "two",
        XLA_FLAGS=f"{flags} --xla_force_host_platform_device_count=2",
    )
    assert two.returncode == 0, two.stderr
    assert read_manifest(tmp_path / "two")["programs"][0]["devices"] == 2
    one, _, _ = swept
    assert read_manifest(one.path)["programs"][0]["devices"] == 1
    expected, found = read_curves(one.path), read_curves(tmp_path / "two")
    assert set(found) == set(expected) - {RunKey("recommender", "pg", 0)}
    for key, curve in found.items():
        for name, values in expected[key].items():
            np.testing.assert_allclose(
                curve[name], values, rtol=1e-3, atol=1e-4, err_msg=f"{key} {name}"
            )


@pytest.fixture
def tiny_command(tmp_path, monkeypatch):
    """The command in an empty folder, with tiny networks."""
    import termdp.bench.plan

    monkeypatch.setattr(termdp.bench.plan, "make_config", lambda *args, **numbers: TINY)
    monkeypatch.setattr("termdp.bench.speeds._memory", lambda: tmp_path / "speeds.json")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_runs_resumes_and_reports(tiny_command, capsys):
    words = ["bench", "smoke", "--methods", "pg", "oracle", "--steps", str(STEPS)]
    main([*words, "--seeds", "2", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["finished"], told["failures"]) == (4, [])
    assert told["out"] == "results/smoke"
    main([*words, "--seeds", "2", "--resume"])
    assert "0 runs finished (4 had finished before)" in capsys.readouterr().out
    main(["report", "results/smoke", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["columns"] == ["recommender"]
    assert (tiny_command / "results" / "smoke" / "report.html").exists()
    speeds = json.loads((tiny_command / "speeds.json").read_text())
    assert speeds["cpu/fast/recommender/feed-forward"]["steps_per_s"] > 0


def test_seeds_begin_where_they_are_told_to_and_stay_so(tiny_command, capsys):
    words = ["bench", "smoke", "--methods", "pg", "--steps", str(STEPS)]
    main([*words, "--seed", "7", "--seeds", "2", "--json"])
    assert json.loads(capsys.readouterr().out)["finished"] == 2
    out = tiny_command / "results" / "smoke"
    assert [record["seed"] for record in read_records(out)] == [7, 8]
    assert read_manifest(out)["seed"] == 7
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    for other in ([], ["--seed", "8"]):
        with pytest.raises(SystemExit) as left:
            main([*words, *other, "--seeds", "2", "--resume"])
        assert left.value.code == 2
        assert "expected seed 7 as in results/smoke, got " in capsys.readouterr().err
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == before
    main([*words, "--seed", "7", "--seeds", "3", "--resume"])
    assert "1 runs finished (2 had finished before)" in capsys.readouterr().out
    assert [record["seed"] for record in read_records(out)] == [7, 8, 9]


def test_a_failed_job_means_exit_code_one(tiny_command, capsys, monkeypatch):
    import termdp.bench.local

    def broken(job, devices):
        raise RuntimeError("RESOURCE_EXHAUSTED: out of memory")

    monkeypatch.setattr(termdp.bench.local, "compile_job", broken)
    with pytest.raises(SystemExit) as left:
        main(["bench", "smoke", "--steps", str(STEPS)])
    assert left.value.code == 1
    captured = capsys.readouterr()
    assert "out of memory" in captured.err
    assert "0 runs finished" in captured.out
