"""A run that is killed goes on to the same end, bit for bit (on the CPU)."""

import contextlib
import dataclasses
import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

import termdp
from termdp.agents.methods import find_method
from termdp.runs import checkpoint
from termdp.runs.program import Job, Trainer
from termdp.runs.folder import RunFolder, RunSettings
from termdp.runs.runner import Session
from tiny_config import TINY
from tiny_envs import Counter, action_is_cost

ITERATIONS = 6
STEPS_PER_ITERATION = 2048  # of the preset `fast`


def states(run, iteration=ITERATIONS):
    return load_file(run / f"checkpoints/{iteration:08d}/state.safetensors")


def check_same_end(whole, parts):
    """Parameters, optimiser, random keys, environments, buffer; and the record."""
    expected, found = states(whole), states(parts)
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array, err_msg=name)
    lines = (whole / "metrics.jsonl").read_text()
    assert lines.count("\n") == 2 * ITERATIONS
    assert (parts / "metrics.jsonl").read_text() == lines
    summaries = [
        json.loads((run / "summary.json").read_text()) for run in (whole, parts)
    ]
    for summary in summaries:
        for name in ("compile_s", "wall_s", "steps_per_s"):
            assert summary.pop(name) > 0
    assert summaries[0] == summaries[1]
    for run in (whole, parts):
        names = sorted(p.name for p in run.iterdir())
        assert names == ["checkpoints", "config.json", "metrics.jsonl", "summary.json"]
        assert all(p.name.isdigit() for p in (run / "checkpoints").iterdir())


# TermPG with everything it carries along, in this process: the kill is an exception
# that nothing catches, at any place one likes.


class KilledError(BaseException):
    pass


@pytest.fixture(scope="module")
def trainer():
    env = termdp.observe(Counter(), termdp.Observer(action_is_cost, window=3, bias=4.0))
    params = env.default_params.replace(game_over_at=30)
    methods = (find_method("termpg"),) * 2
    trainer = Trainer(Job(env, params, methods, (0, 1), TINY, ITERATIONS))
    trainer.init = jax.jit(trainer.init)  # compile it once for all tests
    return trainer


SETTINGS = RunSettings("counter", "termpg", steps=32 * ITERATIONS, seeds=2)


@pytest.fixture(scope="module")
def whole(trainer, tmp_path_factory):
    path = tmp_path_factory.mktemp("resume") / "whole"
    Session(trainer, SETTINGS, RunFolder.create(path, SETTINGS)).run()
    return path


def go_on(trainer, path):
    folder, settings = RunFolder.open(path)
    return Session(trainer, settings, folder, checkpoint_seconds=0).run()


PLACES = {
    "in the middle of a save": (checkpoint, "_digest"),
    "before files are on disk": (checkpoint, "_to_disk"),
    "while an old checkpoint is put aside": (checkpoint, "_set_aside"),
    "after metrics, before their checkpoint": (RunFolder, "append_metrics"),
    "while forgetting metrics": (RunFolder, "cut_metrics"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("count", [1, 4])
def test_killed_anywhere_it_goes_on_to_the_same_end(
    trainer, whole, tmp_path, monkeypatch, place, count
):
    owner, name = PLACES[place]
    real, calls = getattr(owner, name), 0

    def deadly(*args):
        nonlocal calls
        found = real(*args)
        calls += 1
        if calls == count:
            raise KilledError
        return found

    parts = tmp_path / "parts"
    folder = RunFolder.create(parts, SETTINGS)
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, deadly)
        try:
            Session(trainer, SETTINGS, folder, checkpoint_seconds=0).run()
        except KilledError:
            # And once more, at the same place, if the way on leads there.
            calls = 0
            with contextlib.suppress(KilledError):
                go_on(trainer, parts)
        else:
            assert calls < count, "it was not killed"
    if checkpoint.complete(parts / "checkpoints"):
        checkpoint.load_latest(parts / "checkpoints")
    go_on(trainer, parts)
    check_same_end(whole, parts)


def test_an_interrupted_run_has_no_summary_and_goes_on(trainer, whole, tmp_path):
    parts = tmp_path / "parts"
    asked = iter([False, False, True])
    folder = RunFolder.create(parts, SETTINGS)
    result = Session(trainer, SETTINGS, folder, should_stop=lambda: next(asked)).run()
    assert result.summary is None
    assert not (parts / "summary.json").exists()
    assert checkpoint.load_latest(parts / "checkpoints")[2]["iteration"] == 2
    go_on(trainer, parts)
    check_same_end(whole, parts)


def test_resuming_a_finished_run_changes_nothing(trainer, whole):
    before = states(whole)
    lines = (whole / "metrics.jsonl").read_text()
    result = go_on(trainer, whole)
    assert result.summary["steps"] == 32 * ITERATIONS
    assert (whole / "metrics.jsonl").read_text() == lines
    for name, array in states(whole).items():
        np.testing.assert_array_equal(array, before[name])


def test_resuming_with_another_configuration_is_refused(trainer, whole):
    job = trainer.job
    config = dataclasses.replace(job.config, learning_rate=1e-9, gae_lambda=0.5)
    others = {
        "learning_rate, gae_lambda": dataclasses.replace(job, config=config),
        "policy_update": dataclasses.replace(job, policy_update=print),
        "discount": dataclasses.replace(
            job, methods=(find_method("termpg", discount=0.5),) * 2
        ),
    }
    for name, other in others.items():
        with pytest.raises(ValueError, match=f"another {name}: go on"):
            go_on(Trainer(other), whole)


# The command itself, in processes of its own, with real signals.

# Runs the command and sends itself a signal after the n-th call of a function.
KILLER = """
import os, signal, sys
from termdp.runs import checkpoint, run_folder
from termdp.cli import main

place, count, sent, *words = sys.argv[1:]
owner, name = {
    "metrics": (run_folder.RunFolder, "append_metrics"),
    "digest": (checkpoint, "_digest"),
}[place]
real, calls = getattr(owner, name), 0

def counted(*args):
    global calls
    found = real(*args)
    calls += 1
    if calls == int(count):
        os.kill(os.getpid(), getattr(signal, sent))
    return found

setattr(owner, name, counted)
main(words)
"""
START = [
    *("train", "recommender", "pg", "--seeds", "2"),
    *("--steps", str(STEPS_PER_ITERATION * ITERATIONS)),
]


def command(*words):
    return subprocess.run(
        [sys.executable, *words],
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.slow
def test_the_command_survives_kill_and_ctrl_c(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    always = ["--checkpoint-minutes", "0"]
    done = command("-m", "termdp", *START, "--out", str(whole))
    assert done.returncode == 0, done.stderr
    # Two digests per save; the first save is the beginning. A draft is left over.
    killed = command(
        "-c", KILLER, "digest", "7", "SIGKILL", *START, "--out", str(parts), *always
    )
    assert killed.returncode == -9, killed.stderr
    resume = ["train", "--resume", str(parts), *always]
    stopped = command("-c", KILLER, "metrics", "2", "SIGINT", *resume)
    assert stopped.returncode == 130, stopped.stderr
    assert f"termdp train --resume {parts}" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert not (parts / "summary.json").exists()
    done = command("-m", "termdp", *resume, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads((parts / "summary.json").read_text())
    check_same_end(whole, parts)


def own_parts():
    env = termdp.observe(Counter(), termdp.Observer(action_is_cost, window=4, bias=2.0))
    return {
        "env": env,
        "method": dataclasses.replace(find_method("termpg"), stop_penalty=0.5),
    }


def test_what_was_given_from_python_is_given_again_to_resume(tmp_path):
    own, steps = own_parts(), 32 * ITERATIONS
    begin = {"steps": steps, "seeds": 2, "config": TINY}
    termdp.train(own["env"], own["method"], out=tmp_path / "whole", **begin)
    stopped = termdp.train(
        own["env"],
        own["method"],
        out=tmp_path / "parts",
        should_stop=iter([False, False, True]).__next__,
        **begin,
    )
    assert stopped.summary is None
    with pytest.raises(ValueError, match=r"with its own env: .*resume\(folder, env=…"):
        termdp.resume(tmp_path / "parts", method=own["method"])
    with pytest.raises(ValueError, match="without an own policy_update"):
        termdp.resume(tmp_path / "parts", **own, policy_update=print)
    termdp.resume(tmp_path / "parts", **own)
    check_same_end(tmp_path / "whole", tmp_path / "parts")


def test_an_observer_of_ones_own_leaves_a_folder_that_can_be_resumed(tmp_path):
    observer = termdp.Observer(action_is_cost, window=10, bias=3.0)
    options = {"observer": observer, "steps": 2048, "out": tmp_path / "run"}
    options["discount"] = np.float32(0.5)  # is written down as Python's number
    result = termdp.train("notifier", "pg", **options)
    with pytest.raises(ValueError, match="with its own observer"):
        termdp.resume(tmp_path / "run")
    again = termdp.resume(tmp_path / "run", observer=observer)
    assert again.summary["seeds"] == result.summary["seeds"]


def test_a_manifest_that_lacks_something_is_named(tmp_path):
    termdp.train("notifier", "pg", steps=2048, out=tmp_path / "run")
    (newest,) = (tmp_path / "run" / "checkpoints").glob("*1")
    manifest = json.loads((newest / "manifest.json").read_text())
    del manifest["metrics_length"]
    (newest / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="manifest in .* is damaged"):
        termdp.resume(tmp_path / "run")
