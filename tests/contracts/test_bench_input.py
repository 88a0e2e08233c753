"""`termdp bench` and `termdp report`: bad input costs one sentence and nothing else."""

import json
import sys

import pytest

from bench_results import write_results
from termdp.bench import plan as plans
from termdp.cli import main
from tiny_bench import TINY


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(capsys, *words):
    """The one sentence a command refuses with."""
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    captured = capsys.readouterr()
    assert left.value.code == 2
    assert captured.out == ""
    assert captured.err.startswith("termdp: ")
    assert captured.err.count("\n") == 1, captured.err
    return captured.err


BAD_WORDS = [
    (["bench"], "expected a suite (termdp bench paper), or --list", ""),
    (["bench", "everything"], "expected a suite (smoke, paper,", "'everything'"),
    (
        ["bench", "smoke", "--engine", "slurm"],
        "expected an engine (local, ray)",
        "slurm",
    ),
    (
        ["bench", "smoke", "--address", "auto"],
        "--address with --engine ray only",
        "auto",
    ),
    (
        ["bench", "smoke", "--seeds", "0"],
        "seeds to be a whole number of at least 1",
        "got 0",
    ),
    (["bench", "smoke", "--steps", "5"], "at least one rollout", "got 5"),
    (["bench", "smoke", "--preset", "slow"], "expected a preset", "'slow'"),
    (["bench", "paper", "--envs", "pacman"], "environments of the suite", "'pacman'"),
    (["bench", "paper", "--methods", "dqn"], "methods of the suite", "'dqn'"),
    (["bench", "smoke", "--runs-per-job", "0"], "runs-per-job to be at least 1", "0"),
    (["bench", "smoke", "--set", "hidden"], "expected --set NAME=VALUE", "'hidden'"),
    (["bench", "smoke", "--set", "hidden=big"], "expected hidden to be", "'big'"),
    (
        ["bench", "smoke", "--engine", "ray", "--address", "127.0.0.1:9"],
        "expected a Ray cluster at 127.0.0.1:9",
        "nothing answers",
    ),
    (
        ["bench", "smoke", "--engine", "ray", "--address", "here"],
        "expected an address host:port",
        "'here'",
    ),
    (["report", "nowhere"], "expected the folder of a benchmark", "nowhere"),
]


@pytest.mark.parametrize(
    ("words", "expected", "got"), BAD_WORDS, ids=[" ".join(row[0]) for row in BAD_WORDS]
)
def test_bad_words_are_refused_in_one_sentence(
    words, expected, got, capsys, empty_folder
):
    sentence = refusal(capsys, *words)
    assert expected in sentence
    assert got in sentence
    assert list(empty_folder.iterdir()) == [], "something was written"


def test_the_engine_ray_without_ray_says_what_to_install(
    capsys, monkeypatch, empty_folder
):
    monkeypatch.setitem(sys.modules, "ray", None)
    sentence = refusal(capsys, "bench", "smoke", "--engine", "ray")
    assert "pip install 'termdp[ray]'" in sentence
    assert list(empty_folder.iterdir()) == []


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(plans, "make_config", lambda *args, **numbers: TINY)


def test_results_that_are_there_are_left_alone(capsys, empty_folder):
    write_results(empty_folder / "out", lambda *key: 1.0, suite="smoke", seeds=2)
    before = {p: p.read_bytes() for p in (empty_folder / "out").rglob("*.json")}
    sentence = refusal(capsys, "bench", "smoke", "--out", "out")
    assert "--resume" in sentence
    assert {p: p.read_bytes() for p in (empty_folder / "out").rglob("*.json")} == before


@pytest.mark.parametrize("command", ["bench", "report"])
def test_results_of_another_format_are_refused_and_kept(command, capsys, empty_folder):
    folder = write_results(empty_folder / "out", lambda *key: 1.0, suite="smoke")
    folder.manifest["format"] = 99
    folder.save_manifest()
    before = sorted(p for p in folder.path.rglob("*"))
    words = {
        "bench": ["bench", "smoke", "--resume", "--out", "out"],
        "report": ["report", "out"],
    }[command]
    sentence = refusal(capsys, *words)
    assert "expected results of format 1, but out has format 99" in sentence
    assert sorted(p for p in folder.path.rglob("*")) == before


def test_resuming_results_of_another_version_is_refused(capsys, empty_folder):
    folder = write_results(empty_folder / "out", lambda *key: 1.0, suite="smoke")
    folder.manifest["versions"]["termdp"] = "7.7"
    folder.save_manifest()
    words = ["bench", "smoke", "--seeds", "3", "--resume", "--out", "out"]
    sentence = refusal(capsys, *words)
    assert "were made by 7.7" in sentence


def test_resuming_with_another_network_is_refused(capsys, empty_folder, tiny):
    folder = write_results(empty_folder / "out", lambda *key: 1.0, suite="smoke")
    file = folder.path / "runs" / "recommender" / "pg" / "seed0.json"
    record = json.loads(file.read_text())
    record["settings"]["numbers"]["hidden"] = 1
    file.write_text(json.dumps(record))
    sentence = refusal(
        capsys, "bench", "smoke", "--seeds", "3", "--resume", "--out", "out"
    )
    assert "numbers.hidden = 1, now 8" in sentence


def test_a_folder_without_a_finished_run_has_nothing_to_report(capsys, empty_folder):
    (empty_folder / "empty").mkdir()
    assert "expected the folder of a benchmark" in refusal(capsys, "report", "empty")
    write_results(empty_folder / "begun", lambda *key: None, suite="smoke")
    sentence = refusal(capsys, "report", "begun")
    assert "expected finished runs in begun, got none" in sentence
    assert "--resume --out begun" in sentence
    assert not (empty_folder / "begun" / "report.html").exists()


def test_a_half_written_manifest_is_named(capsys, empty_folder):
    folder = write_results(empty_folder / "out", lambda *key: 1.0, suite="smoke")
    manifest = folder.path / "manifest.json"
    manifest.write_text(manifest.read_text()[:-40])
    sentence = refusal(capsys, "report", "out")
    assert "manifest.json is missing or damaged" in sentence


def test_one_seed_is_too_few_for_an_interval(capsys, empty_folder):
    write_results(empty_folder / "out", lambda *key: 1.0, suite="smoke", seeds=1)
    sentence = refusal(capsys, "report", "out")
    assert "expected at least 2 seeds in a cell for an interval" in sentence
    assert "--seeds 2 --resume --out out" in sentence


def test_the_list_says_what_would_run(capsys):
    main(["bench", "--list", "--json"])
    rows = {row["suite"]: row for row in json.loads(capsys.readouterr().out)}
    assert next(iter(rows)) == "smoke"
    assert rows["smoke"]["runs"] == 6
    assert rows["paper"]["seeds"] == 5
    assert rows["paper"]["steps"] == 1_000_000
    assert all(row["seconds"] > 0 for row in rows.values())
    main(["bench", "--list"])
    shown = capsys.readouterr().out
    assert "about" in shown
    assert "termpg_penalty" in shown
    main(["bench", "smoke", "--list", "--seeds", "4"])
    assert "12 runs" in capsys.readouterr().out
