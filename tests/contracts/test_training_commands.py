"""Train, look, film: the commands one after the other, as a new user types them."""

import json
import sys

import numpy as np
import onnxruntime
import pytest
from PIL import Image

from termdp.cli import main

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A short run of TermPG with two seeds and TensorBoard's events."""
    out = tmp_path_factory.mktemp("runs") / "notifier"
    words = ["train", "notifier", "termpg", "--steps", "768", "--num-envs", "8"]
    words += ["--seeds", "2", "--seed", "3", "--tensorboard", "--out", str(out)]
    main(words)
    return out


def test_the_summary_has_the_promised_names(run):
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["env"], summary["method"], summary["preset"]) == (
        "notifier",
        "termpg",
        "fast",
    )
    assert summary["steps"] == 768
    speed = summary["steps"] * 2 / summary["wall_s"]
    assert summary["steps_per_s"] == pytest.approx(speed, rel=0.01)
    assert [row["seed"] for row in summary["seeds"]] == [3, 4]
    for row in summary["seeds"]:
        assert row["stop_rate"] + row["game_over_rate"] <= 1.0
        assert row["length_mean"] > 0 and row["bias"] > 0


def test_tensorboard_reads_what_was_logged(run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    lines = [json.loads(x) for x in (run / "metrics.jsonl").read_text().splitlines()]
    events = EventAccumulator(str(run / "tensorboard" / "seed4"))
    events.Reload()
    mine = [line for line in lines if line["seed"] == 4]
    assert len(mine) == 3
    logged = events.Scalars("return_mean")
    assert [event.step for event in logged] == [line["step"] for line in mine]
    np.testing.assert_allclose(
        [event.value for event in logged], [line["return_mean"] for line in mine], 1e-5
    )


def test_eval_plays_fresh_episodes(run, capsys):
    main(["eval", str(run), "--episodes", "16", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [row["seed"] for row in found["seeds"]] == [3, 4]
    for row in (*found["seeds"], found["all"]):
        low, high = row["return_interval"]
        assert low <= row["return_mean"] <= high
        assert 0.0 <= row["stop_rate"] <= 1.0 and row["game_over_rate"] == 0.0


def test_video_is_a_film_also_of_two_runs_at_once(run, tmp_path, capsys):
    film = tmp_path / "episode.gif"
    beside = ["--side-by-side", str(run), "--max-steps", "20"]
    main(["video", str(run), str(film), *beside])
    said = capsys.readouterr().out
    assert said.count("steps, return") == 2
    with Image.open(film) as image:
        assert image.n_frames > 1
        assert image.width >= 2 * 480


def test_export_writes_a_graph_once(run, tmp_path, capsys):
    out = tmp_path / "policy.onnx"
    main(["export", str(run), str(out), "--seed", "4"])
    assert "seed 4" in capsys.readouterr().out
    session = onnxruntime.InferenceSession(out)
    manifest = json.loads(session.get_modelmeta().custom_metadata_map["termdp"])
    assert (manifest["env"], manifest["seed"]) == ("notifier", 4)
    before = out.read_bytes()
    with pytest.raises(SystemExit) as stop:
        main(["export", str(run), str(out)])
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert "expected a file that does not exist" in said and said.count("\n") == 1
    assert out.read_bytes() == before


@pytest.mark.parametrize("blocked", ["onnx"])
def test_a_missing_extra_is_one_sentence(run, tmp_path, blocked, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, blocked, None)
    monkeypatch.delitem(sys.modules, "termdp.onnx_graph", raising=False)
    with pytest.raises(SystemExit) as stop:
        main(["export", str(run), str(tmp_path / "policy.onnx")])
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert said.endswith("pip install 'termdp[onnx]'\n") and said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_papers_preset_trains(tmp_path):
    out = tmp_path / "paper"
    words = ["train", "breakout", "termpg", "--preset", "paper", "--steps", "64"]
    words += ["--num-envs", "4", "--rollout-steps", "16", "--num-epochs", "1"]
    words += ["--num-minibatches", "2", "--window", "8", "--cost-num-steps", "2"]
    words += ["--cost-segment-length", "16"]
    main([*words, "--out", str(out)])
    summary = json.loads((out / "summary.json").read_text())
    assert summary["preset"] == "paper"
    assert summary["seeds"][0]["return_mean"] is not None
    (row,) = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    assert np.isfinite([row["value_loss"], row["cost_loss"]]).all()
    config = json.loads((out / "config.json").read_text())
    assert "paper" in json.dumps(config)
