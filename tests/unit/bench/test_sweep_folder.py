"""Results on disk: complete or not there, the same packed and unpacked."""

import dataclasses
import json

import numpy as np
import pytest

from bench_results import run_result, write_results
from termdp.bench import curves, sweep_folder
from termdp.bench.execute import JobResult
from termdp.bench.plan import RunKey
from termdp.bench.sweep_folder import SweepFolder
from tiny_bench import tiny_plan

FACTS = {"job": "one", "runs": 2, "compile_s": 1.0, "wall_s": 2.0, "steps_per_s": 3.0}


def result_of(plan, *places):
    runs = []
    for place in places:
        cell, seed = plan.runs[place]
        key = RunKey(cell.column.label, cell.row.label, seed)
        runs.append(run_result(key, cell, 10.0 * place, plan))
    return JobResult(runs, {}, FACTS)


@pytest.fixture
def plan():
    return tiny_plan("pg", "termpg")


def test_a_finished_job_is_there_for_whoever_reads_next(plan, tmp_path):
    folder = SweepFolder.create(tmp_path / "out", plan, "termdp bench tiny")
    assert folder.finished() == set()
    folder.add(result_of(plan, 1, 2))
    # Nothing was closed: another process sees it all the same.
    assert [r["return_mean"] for r in sweep_folder.read_records(folder.path)] == [
        10.0,
        20.0,
    ]
    found = sweep_folder.read_curves(folder.path)
    assert set(found) == {
        RunKey("recommender", "pg", 1),
        RunKey("recommender", "termpg", 0),
    }
    assert found[RunKey("recommender", "termpg", 0)]["return_mean"][-1] > 19.0
    manifest = sweep_folder.read_manifest(folder.path)
    assert manifest["programs"] == [FACTS]
    assert manifest["commands"] == ["termdp bench tiny"]
    for name in ("versions", "hardware", "commits", "begun"):
        assert manifest[name]
    assert not list(folder.path.rglob(".*")), "drafts were left behind"


def test_a_run_is_complete_when_its_json_is_there(plan, tmp_path):
    folder = SweepFolder.create(tmp_path / "out", plan, "")
    folder.add(result_of(plan, 0, 1))
    runs = folder.path / "runs" / "recommender" / "pg"
    (runs / "seed1.json").unlink()
    (runs / "seed7.json").write_text('{"column": "recomm')
    assert folder.finished() == {RunKey("recommender", "pg", 0)}


def test_packed_results_are_the_same_and_may_travel_alone(tmp_path):
    write_results(tmp_path / "out", lambda *key: 3.0, envs=["breakout"], seeds=2)
    path = tmp_path / "out"
    before, curves_before = (
        sweep_folder.read_records(path),
        sweep_folder.read_curves(path),
    )
    for file in sorted((path / "runs").rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    assert sweep_folder.read_records(path) == before
    after = sweep_folder.read_curves(path)
    assert set(after) == set(curves_before)
    for key, curve in curves_before.items():
        for name, values in curve.items():
            np.testing.assert_array_equal(after[key][name], values)
    assert len(json.loads((path / "results.json").read_text())["settings"]) == 7


def test_a_machine_without_parquet_writes_what_others_turn_into_it(
    plan, tmp_path, monkeypatch
):
    folder = SweepFolder.create(tmp_path / "out", plan, "")
    with monkeypatch.context() as without:
        without.setattr(curves, "has_parquet", lambda: False)
        folder.add(result_of(plan, 0, 3))
        folder.close(1.0)
        assert (folder.path / "curves.npz").exists()
        assert not list(folder.path.rglob("*.parquet"))
        there = sweep_folder.read_curves(folder.path)
    sweep_folder.pack(folder.path)
    assert (folder.path / "curves.parquet").exists()
    assert not (folder.path / "curves.npz").exists()
    here = sweep_folder.read_curves(folder.path)
    for key, curve in there.items():
        np.testing.assert_array_equal(here[key]["return_mean"], curve["return_mean"])


def test_resuming_adds_commands_and_keeps_results(plan, tmp_path):
    folder = SweepFolder.create(tmp_path / "out", plan, "first")
    folder.add(result_of(plan, 0))
    folder.add_failure([RunKey("recommender", "pg", 1)], "it rained")
    more = tiny_plan("pg", "termpg", "oracle", seeds=3)
    again = SweepFolder.reopen(tmp_path / "out", more, "second")
    assert again.finished() == {RunKey("recommender", "pg", 0)}
    manifest = sweep_folder.read_manifest(folder.path)
    assert manifest["commands"] == ["first", "second"]
    assert manifest["seeds"] == 3
    assert list(manifest["rows"]) == ["pg", "termpg", "oracle"]
    assert manifest["failures"] == [], "what failed is tried again"


def test_resuming_where_nothing_is_begins(plan, tmp_path):
    assert SweepFolder.reopen(tmp_path / "new", plan, "").finished() == set()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 5}, "expected steps 960 as in"),
        ({"preset": "paper"}, "expected preset fast as in"),
        ({"suite": "paper"}, "expected suite tiny as in"),
        ({"seed": 7}, "expected seed 0 as in .*, got 7"),
    ],
)
def test_resuming_something_else_is_refused(plan, tmp_path, change, message):
    SweepFolder.create(tmp_path / "out", plan, "")
    with pytest.raises(ValueError, match=message):
        SweepFolder.reopen(
            tmp_path / "out", dataclasses.replace(plan, **change), "second"
        )


def test_results_of_other_settings_are_not_mixed(plan, tmp_path):
    folder = SweepFolder.create(tmp_path / "out", plan, "")
    folder.add(result_of(plan, 2))
    config = plan.cells[1].config
    faster = dataclasses.replace(config.algorithm, learning_rate=0.5)
    config = dataclasses.replace(config, algorithm=faster)
    cells = (plan.cells[0], dataclasses.replace(plan.cells[1], config=config))
    with pytest.raises(ValueError, match=r"numbers.learning_rate = 0.002, now 0.5"):
        SweepFolder.reopen(folder.path, dataclasses.replace(plan, cells=cells), "")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("format", 99, "expected results of format 1, but .* has format 99"),
        ("versions", {"termdp": "7.7"}, "were made by 7.7"),
    ],
)
def test_results_of_another_version_are_refused(plan, tmp_path, name, value, message):
    folder = SweepFolder.create(tmp_path / "out", plan, "")
    folder.manifest[name] = value
    folder.save_manifest()
    with pytest.raises(ValueError, match=message):
        SweepFolder.reopen(folder.path, plan, "")


def test_a_folder_of_something_else_is_left_alone(plan, tmp_path):
    (tmp_path / "precious").write_text("mine")
    with pytest.raises(ValueError, match="expected a new folder"):
        SweepFolder.create(tmp_path, plan, "")
    with pytest.raises(ValueError, match="manifest.json is missing or damaged"):
        SweepFolder.reopen(tmp_path, plan, "")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["mine"]


def test_damaged_packed_results_are_named(plan, tmp_path):
    folder = SweepFolder.create(tmp_path / "out", plan, "")
    (folder.path / "results.json").write_text("{")
    with pytest.raises(ValueError, match=r"results.json to hold packed results"):
        folder.finished()


def test_what_to_type_to_go_on(tmp_path):
    manifest = {"commands": ["termdp bench smoke --steps 8192 --seeds 1 --out 'a b'"]}
    resume = sweep_folder.command_to_resume(manifest, tmp_path)
    assert resume == (
        f"termdp bench smoke --steps 8192 --seeds 1 --resume --out {tmp_path}"
    )
    more = sweep_folder.command_to_resume(manifest, tmp_path, seeds=2)
    assert more.startswith("termdp bench smoke --steps 8192 --seeds 2 --resume --out ")


def test_a_manifest_that_lacks_something_is_named(tmp_path):
    (tmp_path / "manifest.json").write_text('{"format": 1}')
    with pytest.raises(ValueError, match="manifest.json is damaged .*`suite`"):
        sweep_folder.read_manifest(tmp_path)


def test_a_run_without_settings_is_missing(plan, tmp_path):
    folder = SweepFolder.create(tmp_path / "out", plan, "termdp bench tiny")
    folder.add(result_of(plan, 0, 1))
    file = folder.path / "runs" / "recommender" / "pg" / "seed0.json"
    record = json.loads(file.read_text())
    del record["settings"]
    file.write_text(json.dumps(record))
    assert folder.finished() == {RunKey("recommender", "pg", 1)}


def test_a_damaged_curve_is_named_with_what_to_do(plan, tmp_path):
    folder = SweepFolder.create(tmp_path / "out", plan, "termdp bench tiny")
    folder.add(result_of(plan, 0))
    (file,) = (folder.path / "runs").rglob("seed0.parquet")
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"it is damaged: remove .*seed0\.json"):
        sweep_folder.read_curves(folder.path)
