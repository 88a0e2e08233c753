"""Bad input: exit code 2, one sentence, nothing half-written."""

import json
import signal
import sys

import numpy as np
import pytest

import termdp
from probe_envs import BadReward, Broken, no_cost
from termdp.cli import main
from termdp.runs import checkpoint
from termdp.runs.agent import make_card
from termdp.runs.config import flat_numbers
from termdp.runs.folder import RunFolder
from termdp.runs.spec import RunSpec, make_job
from tiny_config import tiny


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Commands run in an empty folder and leave the process as they found it."""
    monkeypatch.chdir(tmp_path)
    handlers = {
        name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)
    }
    yield tmp_path
    for name, handler in handlers.items():
        signal.signal(name, handler)


def refusal(capsys, *words):
    """The one sentence a command refuses with."""
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    captured = capsys.readouterr()
    assert left.value.code == 2
    assert captured.out == ""
    assert "Traceback" not in captured.err
    assert captured.err.count("\n") == 1, captured.err
    assert captured.err.startswith("termdp: ")
    return captured.err


BAD_WORDS = [
    (["fly"], "expected a command (envs,", "got 'fly'"),
    (["train", "pacman", "pg"], "expected an environment", "'pacman'"),
    (["train", "breakout", "ppo"], "expected a method (`termdp methods`", "'ppo'"),
    (["train", "breakout", "termgp"], "did you mean termpg", "'termgp'"),
    (["train", "breakout"], "expected an environment and a method", ""),
    (["train", "breakout", "pg", "--preset", "slow"], "expected a preset", "'slow'"),
    (["train", "breakout", "pg", "--steps", "100"], "at least one rollout", "got 100"),
    (["train", "breakout", "pg", "--steps", "-1"], "steps to be a whole", "got -1"),
    (
        ["train", "breakout", "pg", "--seeds", "0"],
        "seeds to be a whole number of at least 1",
        "got 0",
    ),
    (
        ["train", "breakout", "pg", "--seed", "-2"],
        "seed to be a whole number of at least 0",
        "got -2",
    ),
    (
        ["train", "breakout", "termpg", "--optimism", "max"],
        "optimism to be one of min, std, mean, logit",
        "'max'",
    ),
    (
        ["train", "breakout", "pg", "--seed", "99999999999999999999"],
        "expected seed to be a whole number",
        "99999999999999999999",
    ),
    (
        ["train", "breakout", "termpg", "--window-factor", "40"],
        "expected a window of at most 1024 steps",
        "got 1200",
    ),
    (
        ["video", "nowhere", "film.gif", "--max-steps", "0"],
        "--max-steps of at",
        "got 0",
    ),
    (["video", "nowhere", "film.gif", "--fps", "0"], "--fps above 0", "got 0"),
    (
        ["train", "breakout", "pg", "--stop-handling", "maybe"],
        "end_handling to be one of expected, cut, ignored",
        "'maybe'",
    ),
    (["train", "breakout", "pg", "--discount", "2"], "discount to be a number of", "2"),
    (["train", "breakout", "pg", "--discount", "high"], "--discount to be a", "'high'"),
    (["train", "breakout", "pg", "--learning-rate", "-1"], "above 0", "got -1"),
    (["train", "breakout", "pg", "--learning-rate", "nan"], "above 0", "got nan"),
    (["train", "breakout", "pg", "--num-envs", "0"], "at least 1", "got 0"),
    (["train", "breakout", "pg", "--num-envs", "2.5"], "a whole number", "got 2.5"),
    (["train", "breakout", "pg", "--anneal", "maybe"], "true or false", "'maybe'"),
    (
        ["train", "breakout", "pg", "--seeds", "1000000000"],
        "at most 4096",
        "1000000000",
    ),
    (
        ["train", "breakout", "pg", "--steps", "99999999999999"],
        "at most 68,719",
        "32 b",
    ),
    (
        ["train", "breakout", "pg", "--steps", str(10**30)],
        "steps to be a whole",
        "1000",
    ),
    (["train", "breakout", "pg", "--set", "width"], "--set NAME=VALUE", "'width'"),
    (
        ["train", "breakout", "pg", "--set", "widthh=3"],
        "did you mean width",
        "'widthh'",
    ),
    (
        ["train", "breakout", "pg", "--config", "none.toml"],
        "a config file",
        "none.toml",
    ),
    (
        ["train", "breakout", "pg", "--init-from", "none"],
        "agent's file",
        "no such file",
    ),
    (["train", "breakout", "pg", "--checkpoint-minutes", "nan"], "above 0", "nan"),
    (["train", "breakout", "pg", "--algorithm", "dqn"], "(ppo, a2c)", "'dqn'"),
    (["train", "breakout", "pg", "--optimism", "mean"], "optimism", "learns no costs"),
    (["train", "breakout", "termpg", "--window-factor", "0"], "window_factor", "0"),
    (["train", "--resume", "nowhere"], "expected the folder of a run", "nowhere"),
    (["eval", "nowhere"], "termdp agents", "nowhere"),
    (["video", "nowhere", "film.gif"], "termdp agents", "nowhere"),
    (["export", "nowhere", "policy.onnx"], "termdp agents", "nowhere"),
    (["export", "nowhere", "policy.pt"], "ending in .onnx", "policy.pt"),
    (["video", "nowhere", "film.avi"], "ending in .gif or .mp4", "film.avi"),
    (["eval", "nowhere", "--episodes", "0"], "expected", "nowhere"),
    (["eval", "nowhere", "--seed", str(2**70)], "--seed from 0", str(2**70)),
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


def test_unknown_flags_exit_with_two(capsys, empty_folder):
    with pytest.raises(SystemExit) as left:
        main(["train", "breakout", "pg", "--stepps", "100"])
    assert left.value.code == 2
    assert list(empty_folder.iterdir()) == []


@pytest.mark.parametrize("extra", ["tensorboard", "wandb"])
def test_missing_extras_are_named(extra, capsys, monkeypatch, empty_folder):
    for name in [name for name in sys.modules if name.startswith(f"{extra}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, extra, None)
    sentence = refusal(capsys, "train", "recommender", "pg", f"--{extra}")
    assert f"pip install 'termdp[{extra}]'" in sentence
    assert list(empty_folder.iterdir()) == []


def test_an_existing_run_is_left_alone(capsys, empty_folder):
    run = empty_folder / "run"
    run.mkdir()
    (run / "config.json").write_text("mine")
    sentence = refusal(capsys, "train", "recommender", "pg", "--out", run)
    assert f"--resume {run}" in sentence
    assert [p.read_text() for p in run.iterdir()] == ["mine"]


@pytest.fixture
def begun(empty_folder):
    """A run that was begun but has no checkpoint yet."""
    spec = RunSpec("recommender", "pg", steps=4096)
    job = make_job(spec)
    numbers = flat_numbers(job.methods[0], job.config)
    card = make_card(spec, job)
    return RunFolder.create(empty_folder / "run", spec, card, numbers).path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--steps", "2048"], "at least the 4096 steps"),
        (["--num-envs", "8"], "--num-envs 64"),
        (["--bias", "2"], "--bias None"),
        (["--no-observer"], "has an observer"),
        (["--seeds", "2"], "--seeds 1"),
        (["--seed", "1"], "--seed 0"),
        (["--preset", "paper"], "--preset fast"),
        (["breakout", "pg"], "env recommender"),
        (["recommender", "termpg"], "method pg"),
        (["--discount", "0.5"], "--discount"),
        (["--out", "elsewhere"], "--out"),
    ],
)
def test_resuming_with_other_arguments_is_refused(begun, words, expected, capsys):
    before = sorted(p.name for p in begun.iterdir())
    sentence = refusal(capsys, "train", *words, "--resume", begun)
    assert expected in sentence
    assert sorted(p.name for p in begun.iterdir()) == before


@pytest.mark.parametrize("command", ["train", "eval", "video"])
def test_a_corrupt_checkpoint_is_named_and_kept(begun, command, capsys, empty_folder):
    state = {"weights": np.zeros(3, np.float32)}
    path = checkpoint.save(begun / "checkpoints", state, {}, checkpoint.Manifest(1))
    broken = path / "state.safetensors"
    broken.write_bytes(broken.read_bytes()[:-5])
    words = {
        "train": ["train", "--resume", begun],
        "eval": ["eval", begun],
        "video": ["video", begun, "film.gif"],
    }[command]
    sentence = refusal(capsys, *words)
    assert "damaged" in sentence
    assert str(path) in sentence
    assert broken.exists()
    assert not (empty_folder / "film.gif").exists()


def test_a_checkpoint_of_another_configuration_is_refused(begun, capsys):
    state = {"weights": np.zeros(3, np.float32)}
    checkpoint.save(begun / "checkpoints", state, {}, checkpoint.Manifest(1))
    sentence = refusal(capsys, "train", "--resume", begun)
    assert "same configuration" in sentence


@pytest.mark.parametrize("command", ["eval", "video", "export"])
def test_a_run_without_checkpoint_cannot_be_shown(begun, command, capsys):
    out = {"video": ["film.gif"], "export": ["policy.onnx"]}.get(command, [])
    sentence = refusal(capsys, command, begun, *out)
    assert "expected a run with a checkpoint" in sentence


def test_nan_stops_training_says_where_and_keeps_the_last_good_checkpoint(empty_folder):
    env = termdp.observe(Broken(), termdp.Observer(no_cost, bias=1e6))
    config = tiny(ppo={"num_epochs": 1})
    run = empty_folder / "run"
    # Rollouts of 8 steps; the third meets NaN at its fourth step.
    with pytest.raises(
        ValueError, match=r"finite observations.*Broken at step 96 of seed 0"
    ):
        termdp.train(env, "pg", steps=320, config=config, out=run, checkpoint_seconds=0)
    arrays, _, manifest = checkpoint.load_latest(run / "checkpoints")
    assert manifest.iteration == 2
    assert all(np.all(np.isfinite(a)) for a in arrays.values() if a.dtype.kind == "f")
    rows = [
        json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()
    ]
    assert [row["step"] for row in rows] == [32, 64]
    assert not (run / "summary.json").exists()


@pytest.mark.parametrize("method", ["pg", "termpg"])
def test_a_reward_that_is_no_number_is_named_as_such(method):
    env = termdp.observe(BadReward(), termdp.Observer(no_cost, window=3, bias=1e6))
    with pytest.raises(ValueError, match=r"finite rewards.*from BadReward at step 32"):
        termdp.train(env, method, steps=320, config=tiny())


def test_numbers_from_python_are_refused_before_a_folder_exists(empty_folder):
    for numbers, words in [
        ({"learning_rate": -1}, "learning_rate to be a number above 0"),
        ({"num_envs": 0}, "num_envs to be a whole number"),
        ({"optimizm": "min"}, "did you mean optimism"),
        ({"learning_rte": 1}, "did you mean learning_rate"),
        ({"cost_learning_rte": 1}, "cost_learning_rate"),
        ({"biass": 1}, "did you mean bias"),
    ]:
        with pytest.raises(ValueError, match=words):
            termdp.train("recommender", "termpg", out=empty_folder / "run", **numbers)
    assert list(empty_folder.iterdir()) == []
