"""The folder of a run: what it holds, and what it does not believe."""

import dataclasses
import json

import pytest

from termdp.runs.agent import make_card
from termdp.runs.folder import RunFolder
from termdp.runs.spec import RunSpec, make_job

SPEC = RunSpec(
    env="recommender",
    method="termpg",
    steps=4096,
    seeds=3,
    seed=5,
    env_numbers={"bias": 4.0},
    numbers={"optimism": "std"},
)


@pytest.fixture(scope="module")
def card():
    return make_card(SPEC, make_job(SPEC))


@pytest.fixture
def create(card):
    return lambda path, spec=SPEC: RunFolder.create(path, spec, card, {"clip": 0.3})


def test_a_spec_comes_back_as_it_was(tmp_path, create, card):
    create(tmp_path / "run")
    folder, spec = RunFolder.open(tmp_path / "run")
    assert spec == SPEC
    assert spec.all_seeds == (5, 6, 7)
    assert folder.card() == card
    assert folder.numbers() == {"clip": 0.3}
    record = json.loads(folder.config.read_text())
    assert {"jax", "numpy", "termdp", "device"} <= set(record["versions"])


def test_a_folder_with_something_in_it_is_left_alone(tmp_path, create):
    run = tmp_path / "run"
    run.mkdir()
    (run / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match="expected a new folder .* exists"):
        create(run)
    assert [p.name for p in run.iterdir()] == ["thesis.tex"]


def test_an_empty_folder_may_be_used(tmp_path, create):
    create(tmp_path)
    assert RunFolder.open(tmp_path)[1] == SPEC


def test_a_file_in_the_way_is_named(tmp_path, create):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(ValueError, match="expected a new folder"):
        create(tmp_path / "run")
    assert (tmp_path / "run").read_text() == "mine"


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"\xff\xfe", b"[" * 99999])
def test_what_is_no_run_is_said(tmp_path, content):
    if content is not None:
        (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match="expected the folder of a run"):
        RunFolder.open(tmp_path)


def test_a_run_of_an_older_termdp_is_refused_in_one_sentence(tmp_path):
    old = {"settings": {"env": "breakout"}, "versions": {"termdp": "0.0.9"}}
    (tmp_path / "config.json").write_text(json.dumps(old))
    with pytest.raises(ValueError, match=r"format 2.*has format 1.*termdp 0\.0\.9"):
        RunFolder.open(tmp_path)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('"steps": 4096', '"steps": "many"'),
        ('"steps": 4096', '"steps": -1'),
        ('"seeds": 3', '"seeds": 1000000000'),
        ('"method": "termpg"', '"method": 7'),
        ('"preset": "fast"', '"preset": "slow"'),
    ],
)
def test_settings_of_the_wrong_type_are_named(tmp_path, create, was, now):
    folder = create(tmp_path / "run")
    text = folder.config.read_text()
    assert was in text
    folder.config.write_text(text.replace(was, now))
    with pytest.raises(ValueError, match="expected"):
        RunFolder.open(tmp_path / "run")


def lines_of(folder):
    return [json.loads(line) for line in folder.metrics.read_text().splitlines()]


def test_metrics_after_a_checkpoint_can_be_forgotten(tmp_path, create):
    folder = create(tmp_path / "run")
    folder.append_metrics([{"step": 1}, {"step": 2}])
    folder.append_metrics([{"step": 3}])
    folder.set_metrics([{"step": 1}, {"step": 2}])
    folder.append_metrics([{"step": 30}])
    assert lines_of(folder) == [{"step": 1}, {"step": 2}, {"step": 30}]


def test_options_that_cannot_be_written_down_leave_nothing_behind(tmp_path, create):
    spec = dataclasses.replace(SPEC, env_numbers={"cost": print})
    with pytest.raises((ValueError, TypeError), match="written down|serial"):
        create(tmp_path / "run", spec)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "lose",
    [
        lambda path: path.unlink(),
        lambda path: path.write_text(""),
        lambda path: path.write_text(path.read_text()[:-3]),
        lambda path: path.write_text(path.read_text().replace("1", "7")),
    ],
)
def test_lost_or_changed_metrics_are_made_anew(tmp_path, create, lose):
    folder = create(tmp_path / "run")
    rows = [{"step": 1}, {"step": 2}]
    folder.append_metrics(rows)
    lose(folder.metrics)
    with pytest.warns(UserWarning, match="is not as it was written: it is restored"):
        folder.set_metrics(rows)
    assert lines_of(folder) == rows


def test_a_longer_run_forgets_its_summary(tmp_path, create):
    folder = create(tmp_path / "run")
    folder.summary.write_text("{}")
    folder.extend(9000)
    assert RunFolder.open(tmp_path / "run")[1].steps == 9000
    assert not folder.summary.exists()


@pytest.mark.parametrize("left", [".config.json.77.draft", "metrics.jsonl"])
def test_a_kill_before_the_run_had_begun_is_no_dead_end(tmp_path, create, left):
    """`train` may begin there, and `--resume` says that it has to."""
    run = tmp_path / "run"
    run.mkdir()
    (run / ".lock").write_text("77 on a machine that was switched off")
    (run / left).write_text("")
    with pytest.raises(ValueError, match="nothing was begun there: begin with"):
        RunFolder.open(run)
    create(run)
    assert RunFolder.open(run)[1] == SPEC
    assert not (run / ".config.json.77.draft").exists()


def test_a_file_of_somebody_else_is_never_a_leftover(tmp_path, create):
    run = tmp_path / "run"
    run.mkdir()
    (run / "observer.safetensors").write_text("mine")
    with pytest.raises(ValueError, match="expected a new folder"):
        create(run)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("command",), "rm"),
        (("spec", "command"), "rm"),
        (("spec", "observer"), "../../etc/passwd"),
        (("spec", "observer"), 7),
        (("spec", "numbers"), {"clipp": 1}),
        (("spec", "numbers"), {"clip": [1]}),
        (("spec", "env_numbers"), {"bias": {"deep": 1}}),
        (("spec", "unserialised"), ["world"]),
        (("agent", "window"), 10**9),
        (("agent", "window"), 0),
        (("agent", "observation_shape"), [10**9]),
        (("agent", "observation_shape"), []),
        (("agent", "costs", "members"), 0),
        (("agent", "lstm_size"), 10**9),
        (("agent", "method", "discount"), 7),
        (("numbers", "clip"), [1]),
        (("versions",), None),
        (("spec", "steps"), 10**400),
    ],
    ids=str,
)
def test_what_no_run_writes_is_not_believed(tmp_path, create, place, value):
    folder = create(tmp_path / "run")
    record = json.loads(folder.config.read_text())
    inside = record
    for name in place[:-1]:
        inside = inside[name]
    inside[place[-1]] = value
    folder.config.write_text(json.dumps(record))
    with pytest.raises(ValueError, match=r"expected .*(damaged|description)") as found:
        RunFolder.open(tmp_path / "run")
    assert "\n" not in str(found.value)
