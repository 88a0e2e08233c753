"""`termdp`, `termdp envs` and `termdp methods`, for people and for programs."""

import json
import subprocess
import sys

import pytest

from termdp.agents.methods import METHODS
from termdp.cli import COMMANDS, main, train
from termdp.registry import REGISTRY

KEYS = {
    "id",
    "gym_id",
    "observation_shape",
    "num_actions",
    "cost",
    "window",
    "bias",
    "description",
}


def test_environments_as_json(capsys):
    main(["envs", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [row["id"] for row in rows] == list(REGISTRY)
    assert all(set(row) == KEYS for row in rows)
    breakout = next(row for row in rows if row["id"] == "breakout")
    assert breakout["gym_id"] == "termdp/Breakout-v0"
    assert breakout["observation_shape"] == [10, 10, 4]
    assert (breakout["num_actions"], breakout["window"], breakout["bias"]) == (3, 30, 6)


@pytest.mark.parametrize("columns", ["80", "160"])
def test_ids_are_whole_in_the_tables(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    main(["envs"])
    shown = capsys.readouterr().out
    assert all(env_id in shown for env_id in REGISTRY)
    assert all(spec.gym_id in shown for spec in REGISTRY.values())
    main(["methods"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in METHODS)


def test_methods_as_json(capsys):
    main(["methods", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [row["id"] for row in rows] == list(METHODS)


def test_overview_and_version(capsys):
    main([])
    overview = capsys.readouterr().out
    assert all(name in overview for name in COMMANDS)
    main(["--version"])
    assert capsys.readouterr().out.startswith("termdp 0.")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_helps_with_an_example(name, capsys):
    with pytest.raises(SystemExit) as exit_info:
        main([name, "--help"])
    assert exit_info.value.code == 0
    assert f"termdp {name}" in capsys.readouterr().out.replace("\n", " ")


def test_as_a_module():
    found = subprocess.run(
        [sys.executable, "-m", "termdp", "nonsense"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 2
    assert "expected a command" in found.stderr and "Traceback" not in found.stderr


@pytest.mark.parametrize("words", [["methods", "--json"], ["train", "--help"]])
def test_a_reader_who_has_seen_enough_is_no_error(words):
    command = subprocess.Popen(
        [sys.executable, "-m", "termdp", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    command.stdout.close()  # as `| head -0` does, before anything is written
    complaint = command.stderr.read()
    command.stderr.close()
    assert (command.wait(timeout=60), complaint) == (0, b"")


def test_the_table_after_training_is_whole_in_80_columns(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    numbers = {
        "seed": 1,
        "return_mean": -123.456789,
        "length_mean": 1038.3512,
        "stop_rate": 0.0129612,
        "game_over_rate": 0.0870431,
        "cost_mae": 0.0403123,
        "cost_corr": -0.0843456,
        "bias": 6.56812,
    }
    summary = {"env": "breakout", "method": "termpg", "steps": 10**6, "steps_per_s": 1}
    train._show(summary | {"seeds": [numbers]}, tmp_path, as_json=False)
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert "-0.08435" in shown
