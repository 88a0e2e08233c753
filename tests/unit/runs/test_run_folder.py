"""The folder of a run, its settings, and the checks between chunks."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from termdp.agents.ppo import PPOConfig
from termdp.runs.config import TrainConfig
from termdp.runs.folder import RunFolder, RunSettings, write_json
from termdp.runs.runner import check_health, chunk_length, chunks

SETTINGS = RunSettings(
    env="breakout",
    method="termpg",
    steps=10,
    seeds=3,
    seed=5,
    env_overrides={"bias": 4.0},
    method_changes={"optimism": "std"},
)


def test_settings_come_back_as_they_were(tmp_path):
    RunFolder.create(tmp_path / "run", SETTINGS)
    folder, settings = RunFolder.open(tmp_path / "run")
    assert settings == SETTINGS
    assert settings.all_seeds == (5, 6, 7)
    record = json.loads((folder.path / "config.json").read_text())
    assert {"jax", "numpy", "termdp", "device"} <= set(record["versions"])


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match="expected a new folder .* exists"):
        RunFolder.create(run, SETTINGS)
    assert [p.name for p in run.iterdir()] == ["thesis.tex"]


def test_an_empty_folder_may_be_used(tmp_path):
    RunFolder.create(tmp_path, SETTINGS)
    assert RunFolder.open(tmp_path)[1] == SETTINGS


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(ValueError, match="expected a new folder"):
        RunFolder.create(tmp_path / "run", SETTINGS)
    assert (tmp_path / "run").read_text() == "mine"


@pytest.mark.parametrize(
    "content", [None, b"", b"{", b"[]", b"{}", b'{"settings": {"no": 1}}', b"\xff\xfe"]
)
def test_what_is_no_run_is_said(tmp_path, content):
    if content is not None:
        (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match="expected the folder of a run"):
        RunFolder.open(tmp_path)


def test_metrics_after_a_checkpoint_can_be_forgotten(tmp_path):
    folder = RunFolder.create(tmp_path / "run", SETTINGS)
    length = folder.append_metrics([{"step": 1}, {"step": 2}])
    folder.append_metrics([{"step": 3}])
    folder.cut_metrics(length)
    folder.append_metrics([{"step": 30}])
    lines = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    assert lines == [{"step": 1}, {"step": 2}, {"step": 30}]


def test_json_is_written_in_one_piece(tmp_path):
    path = tmp_path / "summary.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}


@pytest.mark.parametrize("seed", [2**32, 10**20, 2**32 - 1])
def test_seeds_that_would_repeat_others_are_refused(seed):
    with pytest.raises(ValueError, match="expected seeds below 4294967296"):
        dataclasses.replace(SETTINGS, seed=seed, seeds=2)


def test_settings_of_the_wrong_type_are_named(tmp_path):
    RunFolder.create(tmp_path / "run", SETTINGS)
    path = tmp_path / "run" / "config.json"
    path.write_text(path.read_text().replace('"steps": ', '"steps": "many", "was": '))
    with pytest.raises(ValueError, match=r"config\.json is missing or damaged"):
        RunFolder.open(tmp_path / "run")


def test_options_that_cannot_be_written_down_leave_nothing_behind(tmp_path):
    settings = dataclasses.replace(SETTINGS, env_overrides={"cost": print})
    with pytest.raises(ValueError, match="options that can be written down"):
        RunFolder.create(tmp_path / "run", settings)
    assert not (tmp_path / "run").exists()


def test_a_shortened_record_is_not_filled_up(tmp_path):
    folder = RunFolder.create(tmp_path / "run", SETTINGS)
    length = folder.append_metrics([{"step": 1}])
    folder.metrics.write_text("")
    with pytest.raises(ValueError, match=r"metrics\.jsonl .* shorter"):
        folder.cut_metrics(length)


@pytest.mark.parametrize(("name", "value"), [("seeds", 0), ("seed", -1)])
def test_impossible_counts_are_named(name, value):
    with pytest.raises(ValueError, match=f"{name} to be at least .*, got {value}"):
        dataclasses.replace(SETTINGS, **{name: value})


@given(total=st.integers(1, 5000))
def test_chunks_add_up_and_come_at_least_fifty_times(total):
    most, found = chunk_length(total), chunks(total)
    assert sum(found) == total
    assert all(count == most for count in found[:-1])
    assert 1 <= found[-1] <= most
    # 5,000,000 decisions of `fast` are 2,441 iterations, a prime number.
    assert len(found) >= min(total, 50)
    assert len(found) < 100


def test_a_configuration_comes_back_from_plain_data():
    config = TrainConfig(num_envs=4, ppo=PPOConfig(clip=0.1))
    data = json.loads(json.dumps(dataclasses.asdict(config)))
    assert TrainConfig.from_plain(data) == config
    for damaged in (data | {"many": 1}, {k: v for k, v in data.items() if k != "ppo"}):
        with pytest.raises(ValueError, match="settings of a TrainConfig"):
            TrainConfig.from_plain(damaged)


def test_steps_below_one_rollout_are_named():
    config = TrainConfig(num_envs=4, rollout_steps=8)
    assert config.num_iterations(32) == 1
    assert config.num_iterations(127) == 3
    with pytest.raises(ValueError, match=r"at least one rollout \(32 .*got 31"):
        config.num_iterations(31)


JOB = SimpleNamespace(
    env=SimpleNamespace(name="Game"),
    seeds=(5, 6),
    config=TrainConfig(num_envs=4, rollout_steps=8),
)


def health(observation, weight=1.0, **reports):
    state = SimpleNamespace(
        rollout_state=SimpleNamespace(observations=np.array([observation])),
        policy=SimpleNamespace(params={"w": np.ones(2)}),
        costs=SimpleNamespace(params={"w": np.array([weight])}),
    )
    check_health(reports, state, 320, JOB)


def test_health_is_silent_when_all_is_well():
    health(1.0, value_loss=np.zeros((2, 3)), calibration=np.zeros((2, 3, 10)))
    health(True)


def test_health_looks_at_parameters_too():
    with pytest.raises(ValueError, match="finite parameters.* after step 320"):
        health(1.0, weight=np.nan, value_loss=np.zeros((2, 3)))


def test_health_says_which_observation_is_no_number():
    with pytest.raises(
        ValueError, match="finite observations.* from Game after step 3"
    ):
        health(np.nan, value_loss=np.zeros((2, 3)))


def test_health_says_what_where_and_whose():
    losses = np.zeros((2, 3))
    losses[1, 2] = np.inf
    # Two whole rollouts of 32 after step 320, and the third is at fault.
    with pytest.raises(ValueError, match="value_loss became inf at step 416 of seed 6"):
        health(1.0, kl=np.zeros((2, 3)), value_loss=losses)
