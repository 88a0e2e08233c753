"""`termdp train gym:ID` from the first step to the film, and what it refuses."""

import json

import pytest

from termdp.cli import main
from termdp.observer_file import shipped_path

TINY = (
    *("--num-envs", "2", "--rollout-steps", "16", "--hidden", "8", "--num-epochs", "1"),
    *("--num-minibatches", "2", "--cost-hidden", "4", "--cost-num-steps", "2"),
    *("--cost-segments-per-step", "2", "--cost-buffer-steps", "128"),
    *("--cost-segment-length", "16"),
)


def command(*words):
    return main([str(word) for word in words])


def refused(capsys, *words):
    """The one sentence that a command ends with."""
    with pytest.raises(SystemExit) as caught:
        command(*words)
    assert caught.value.code == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    return lines[0]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("gymnasium") / "run"
    command(
        *("train", "gym:CartPole-v1", "termpg", "--window", 5, "--steps", 64, *TINY),
        *("--out", out, "--set", "max_episode_steps=9"),
    )
    return out


def test_a_run_is_trained_evaluated_filmed_and_resumed(run, tmp_path, capsys):
    summary = json.loads((run / "summary.json").read_text())
    assert summary["env"] == "gym:CartPole-v1" and summary["steps"] == 64
    assert summary["seeds"][0]["length_mean"] <= 9
    capsys.readouterr()
    command("eval", run, "--episodes", 3, "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["all"]["truncated_rate"] + found["all"]["game_over_rate"] == 1
    command("video", run, tmp_path / "film.gif", "--max-steps", 3)
    assert (tmp_path / "film.gif").stat().st_size > 0
    command("train", "--resume", run, "--steps", 96)
    assert json.loads((run / "summary.json").read_text())["steps"] == 96


def test_an_observer_from_a_file_watches_every_copy(tmp_path):
    with shipped_path() as path:
        command(
            *("train", "gym:termdp/BackseatDriver-v0", "pg", "--steps", 32, *TINY),
            *("--observer", path, "--out", tmp_path / "run"),
        )
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["steps"] == 32
    assert (tmp_path / "run" / "observer.safetensors").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["gym:"], "expected gym:ID, as gym:CartPole-v1, got no id"),
        (["gym:CartPool-v1"], "did you mean CartPole-v1"),
        (["gym:no_such:Thing-v0"], "a module that can be imported"),
        (["gym:CartPole-v1", "--bias", "3"], "no bias with a Gymnasium"),
        (["gym:CartPole-v1", "--no-observer"], "no observer=False (--no-observer)"),
        (["gym:CartPole-v1", "--set", "gravity=3"], "got 'gravity'"),
        (["gym:CartPole-v1", "--set", "vectorization=gpu"], "sync, async"),
        (["gym:Blackjack-v1"], "got Tuple"),
    ],
    ids=["none", "misspelt", "module", "bias", "nobody", "number", "vector", "tuple"],
)
def test_bad_input_is_one_sentence(words, sentence, tmp_path, capsys):
    env, *flags = words
    asked = ("train", env, "termpg", *flags, "--out", tmp_path / "run")
    assert sentence in refused(capsys, *asked)
    assert not (tmp_path / "run").exists()
