"""A run that is killed goes on to the same end, bit for bit (on the CPU)."""

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

import termdp
from full_disk import small_files
from termdp import files
from termdp.agents.a2c import A2CConfig
from termdp.agents.methods import find_method
from termdp.files import write_json
from termdp.runs import checkpoint
from termdp.runs.agent import make_card
from termdp.runs.folder import RunFolder
from termdp.runs.program import Job, TrainProgram
from termdp.runs.result import Result
from termdp.runs.runner import Runner, check_same_configuration
from termdp.runs.spec import RunSpec
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
def program():
    env = termdp.observe(Counter(), termdp.Observer(action_is_cost, window=3, bias=4.0))
    params = env.default_params.replace(game_over_at=30)
    methods = (find_method("termpg"),) * 2
    return TrainProgram(Job(env, params, methods, (0, 1), TINY, ITERATIONS))


SPEC = RunSpec(
    "counter", "termpg", steps=32 * ITERATIONS, seeds=2, unserialised=("env",)
)


def begin(program, path):
    return RunFolder.create(path, SPEC, make_card(SPEC, program.job), {})


def run(program, folder, **options):
    runner = Runner(program, folder, **options)
    runner.run()
    result = Result.of(runner, SPEC)
    if result.summary is not None:
        write_json(folder.summary, result.summary)
    return result


@pytest.fixture(scope="module")
def whole(program, tmp_path_factory):
    path = tmp_path_factory.mktemp("resume") / "whole"
    run(program, begin(program, path))
    return path


def go_on(program, path):
    folder, _ = RunFolder.open(path)
    return run(program, folder, checkpoint_seconds=0)


PLACES = {
    "in the middle of a save": (checkpoint, "_digest"),
    "before files are on disk": (files, "to_disk"),
    "while an old checkpoint is put aside": (checkpoint, "_set_aside"),
    "after metrics, before their checkpoint": (RunFolder, "append_metrics"),
    "while forgetting metrics": (RunFolder, "set_metrics"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("count", [1, 4])
def test_killed_anywhere_it_goes_on_to_the_same_end(
    program, whole, tmp_path, monkeypatch, place, count
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
    folder = begin(program, parts)
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, deadly)
        try:
            run(program, folder, checkpoint_seconds=0)
        except KilledError:
            # And once more, at the same place, if the way on leads there.
            calls = 0
            with contextlib.suppress(KilledError):
                go_on(program, parts)
        else:
            assert calls < count, "it was not killed"
    if checkpoint.complete(parts / "checkpoints"):
        checkpoint.load_latest(parts / "checkpoints")
    go_on(program, parts)
    check_same_end(whole, parts)


def test_an_interrupted_run_has_no_summary_and_goes_on(program, whole, tmp_path):
    parts = tmp_path / "parts"
    asked = iter([False, False, True])
    result = run(program, begin(program, parts), should_stop=lambda: next(asked))
    assert result.summary is None
    assert not (parts / "summary.json").exists()
    assert checkpoint.load_latest(parts / "checkpoints")[2].iteration == 2
    go_on(program, parts)
    check_same_end(whole, parts)


def test_resuming_a_finished_run_changes_nothing(program, whole):
    before = states(whole)
    lines = (whole / "metrics.jsonl").read_text()
    result = go_on(program, whole)
    assert result.summary["steps"] == 32 * ITERATIONS
    assert (whole / "metrics.jsonl").read_text() == lines
    for name, array in states(whole).items():
        np.testing.assert_array_equal(array, before[name])


def test_resuming_with_another_configuration_is_refused(program, whole):
    job = program.job
    slower = dataclasses.replace(job.config.algorithm, learning_rate=1e-9)
    config = dataclasses.replace(job.config, algorithm=slower, gae_lambda=0.5)
    a2c = dataclasses.replace(job.config, algorithm=A2CConfig())
    others = {
        "learning_rate, gae_lambda": dataclasses.replace(job, config=config),
        "value_coef, entropy_coef, algorithm": dataclasses.replace(job, config=a2c),
        "discount": dataclasses.replace(
            job, methods=(find_method("termpg", discount=0.5),) * 2
        ),
    }
    before = checkpoint.load_latest(whole / "checkpoints")[2].configuration
    for name, other in others.items():
        with pytest.raises(ValueError, match=f"another {name}: continue"):
            check_same_configuration(before, other)
    # The discount is a traced number: this program is compiled already.
    with pytest.raises(ValueError, match="another discount: continue"):
        go_on(TrainProgram(others["discount"]), whole)


# The command itself, in processes of its own, with real signals.

# Runs the command and sends itself a signal after the n-th call of a function.
KILLER = """
import os, signal, sys
from termdp.runs import checkpoint, folder
from termdp.cli import main

place, count, sent, *words = sys.argv[1:]
owner, name = {
    "metrics": (folder.RunFolder, "append_metrics"),
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
    always = ["--checkpoint-minutes", "0.000001"]
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
    with pytest.raises(ValueError, match=r"your own env, .*from Python, with env=…"):
        termdp.resume(tmp_path / "parts")
    with pytest.raises(ValueError, match="expected no algorithm=…"):
        termdp.resume(tmp_path / "parts", env=own["env"], algorithm=print)
    # A method is data: the folder holds it.
    termdp.resume(tmp_path / "parts", env=own["env"])
    check_same_end(tmp_path / "whole", tmp_path / "parts")


def test_an_observer_of_ones_own_leaves_a_folder_that_can_be_resumed(tmp_path):
    observer = termdp.Observer(action_is_cost, window=10, bias=3.0)
    options = {"observer": observer, "steps": 2048, "out": tmp_path / "run"}
    options["discount"] = np.float32(0.5)  # is written down as Python's number
    result = termdp.train("notifier", "pg", **options)
    with pytest.raises(ValueError, match="began with your own observer"):
        termdp.resume(tmp_path / "run")
    again = termdp.resume(tmp_path / "run", observer=observer)
    assert again.summary["seeds"] == result.summary["seeds"]


def test_a_damaged_newest_checkpoint_costs_only_the_way_from_the_one_before(
    program, whole, tmp_path
):
    parts = tmp_path / "parts"
    run(program, begin(program, parts), checkpoint_seconds=0)
    newest = parts / "checkpoints" / f"{ITERATIONS:08d}"
    manifest = json.loads((newest / "manifest.json").read_text())
    manifest["iteration"] = 3  # another model, were it believed
    (newest / "manifest.json").write_text(json.dumps(manifest))
    with pytest.warns(UserWarning, match=r"is damaged.*0000005 is used instead"):
        go_on(program, parts)
    aside = parts / "checkpoints" / f"{ITERATIONS:08d}.damaged"
    assert aside.is_dir(), "nothing is removed"
    for file in aside.iterdir():
        file.unlink()
    aside.rmdir()
    check_same_end(whole, parts)


def test_lost_metrics_come_back_from_the_checkpoint(program, whole, tmp_path):
    parts = tmp_path / "parts"
    asked = iter([False, False, True])
    run(program, begin(program, parts), should_stop=lambda: next(asked))
    (parts / "metrics.jsonl").unlink()
    with pytest.warns(UserWarning, match="restored from the checkpoint"):
        go_on(program, parts)
    check_same_end(whole, parts)


def test_without_its_checkpoints_a_run_never_begins_anew_by_itself(program, tmp_path):
    path = tmp_path / "run"
    asked = iter([False, False, True])
    run(program, begin(program, path), should_stop=lambda: next(asked))
    shutil.rmtree(path / "checkpoints")
    before = (path / "metrics.jsonl").read_text()
    with pytest.raises(ValueError, match="they are gone.* it cannot continue"):
        go_on(program, path)
    assert (path / "metrics.jsonl").read_text() == before


def test_a_full_disk_stops_a_run_that_goes_on_later(program, whole, tmp_path):
    parts = tmp_path / "parts"
    folder = begin(program, parts)
    seen = []

    def fill(progress):
        seen.append(progress.step)
        if len(seen) == 3:
            limit.enter_context(small_files(2000))

    with contextlib.ExitStack() as limit, pytest.raises(OSError, match="make room"):
        run(program, folder, checkpoint_seconds=0, on_progress=fill)
    go_on(program, parts)
    check_same_end(whole, parts)


LOCKED = """
import sys, termdp
def tell(progress):
    print(progress.step, flush=True)
    sys.stdin.readline()
termdp.train("notifier", "pg", steps=8192, out=sys.argv[1], on_progress=tell)
"""


def test_a_run_has_one_writer(tmp_path):
    """Two at once: the second is refused; after a kill -9 nothing is locked."""
    out = tmp_path / "run"
    first = subprocess.Popen(
        [sys.executable, "-c", LOCKED, str(out)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert first.stdout.readline() == "2048\n"
        before = (out / "metrics.jsonl").read_text()
        words = rf"nobody else to write to .*run, but process {first.pid} on .* does"
        with pytest.raises(ValueError, match=words):
            termdp.resume(out)
        with pytest.raises(ValueError, match="expected a new folder"):
            termdp.train("notifier", "pg", steps=2048, out=out)
        assert (out / "metrics.jsonl").read_text() == before
        termdp.load(out)  # reading needs no lock
    finally:
        first.kill()
        first.wait()
        first.stdin.close()
        first.stdout.close()
    assert (out / ".lock").exists(), "left behind by the kill"
    assert termdp.resume(out).summary["steps"] == 8192
    assert not (out / ".lock").exists()


def test_a_run_goes_on_beyond_its_planned_end_as_a_longer_one(tmp_path):
    out = tmp_path / "run"
    short = termdp.train("notifier", "pg", steps=4096, out=out)
    with pytest.raises(ValueError, match="at least the 4096 steps"):
        termdp.resume(out, steps=2048)
    longer = termdp.resume(out, steps=8192)
    assert longer.summary["steps"] == 8192
    assert [row["step"] for row in longer.rows] == [2048, 4096, 6144, 8192]
    assert longer.rows[:2] == short.rows
    assert termdp.load(out).card.spec.steps == 8192
    # The step size goes on as in a run of 8192 steps from there: half of it, then less.
    policy = jax.tree.leaves(longer.state.policy.params)
    before = jax.tree.leaves(short.state.policy.params)
    assert any(not np.array_equal(a, b) for a, b in zip(policy, before, strict=True))
    counts = [
        np.asarray(leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(
            longer.state.policy.optimiser
        )
        if "count" in jax.tree_util.keystr(path)
    ]
    updates = longer.program.job.config.algorithm.updates()
    assert all(int(count[0]) == 4 * updates for count in counts)


SMALL = {"config": TINY, "window": 5}


def test_a_run_begins_with_another_runs_networks(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    begun = termdp.train("notifier", "termpg", steps=64, seeds=2, out=first, **SMALL)
    result = termdp.train(
        "notifier",
        "termpg",
        steps=32,
        seeds=3,
        bias=8.0,
        init_from=first,
        out=second,
        **SMALL,
    )
    start = checkpoint.load(second / "checkpoints" / "00000000")[0]
    weights = np.asarray(begun.state.policy.params["params"]["heads"]["kernel"])
    mine = start[".policy.params['params']['heads']['kernel']"]
    # Seeds are taken in turn: 0, 1, 0.
    np.testing.assert_array_equal(mine, weights[[0, 1, 0]])
    biases = np.asarray(begun.state.costs.average.bias)
    np.testing.assert_array_equal(start[".costs.average.bias"], biases[[0, 1, 0]])
    assert start[".costs.has_bias"].all()
    assert result.spec.init_from == str(first)
    termdp.resume(second)


def test_networks_that_do_not_fit_are_refused(tmp_path):
    first = tmp_path / "first"
    termdp.train("notifier", "pg", steps=32, out=first, **SMALL)
    with pytest.raises(ValueError, match="whose policy fit this one"):
        termdp.train("recommender", "pg", steps=32, init_from=first, **SMALL)
    # From a run without costs only the policy is taken.
    termdp.train("notifier", "termpg", steps=32, init_from=first, **SMALL)
