"""Logs of other programs: LeRobot, Minari (made by themselves), survival tables."""

import shutil
from pathlib import Path

import gymnasium
import minari
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from minari import DataCollector, StepDataCallback

import termdp
from termdp.logs.sessions import Roles, read_sessions
from termdp.logs.sources import open_source
from termdp.logs.survival import expanded

LEROBOT = Path(__file__).parents[2] / "data" / "lerobot_v3"


def test_a_folder_of_lerobot():
    source = open_source(LEROBOT)
    assert source.defaults["observations"] == (
        "observation.state.x",
        "observation.state.speed",
    )
    found = termdp.fit(LEROBOT, stopped="intervention", window=5)
    roles = found.sessions.roles
    assert roles.actions == ("action.push", "action.grip")
    assert (roles.session, roles.ended) == ("episode_index", "next.success")
    assert len(found.sessions.ids) == 20
    assert found.summary()["costs"]["observation.state.speed"]["interval"][0] > 0
    # The success of an episode may be what is asked for.
    only = open_source(LEROBOT)
    assert only.defaults["stopped"] == "next.success"


def test_folders_that_are_none(tmp_path):
    with pytest.raises(ValueError, match="no readable meta/info.json"):
        open_source(tmp_path)
    copy = shutil.copytree(LEROBOT, tmp_path / "copy")
    info = copy / "meta" / "info.json"
    info.write_text(info.read_text().replace("v3.0", "v2.1"))
    with pytest.raises(ValueError, match="version v3, got v2.1"):
        open_source(copy)
    info.write_text(info.read_text().replace("v2.1", "v3.0"))
    shutil.rmtree(copy / "data")
    with pytest.raises(ValueError, match="expected data/chunk-"):
        open_source(copy)
    info.write_text('{"features": {"x": 3}}')
    with pytest.raises(ValueError, match="no readable meta/info.json"):
        open_source(copy)


class EndsFromTheStart(StepDataCallback):
    """Minari wants the same infos at a reset as at a step."""

    def __call__(self, env, **numbers):
        step = super().__call__(env, **numbers)
        names = ("stopped", "game_over")
        step["info"] = {name: bool(step["info"].get(name)) for name in names}
        return step


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """CartPole under an observer who minds leaning, recorded by Minari."""
    patch = pytest.MonkeyPatch()
    patch.setenv("MINARI_DATASETS_PATH", str(tmp_path_factory.mktemp("minari")))
    leaning = termdp.Observer(lambda obs, a: 20.0 * abs(obs[2]), window=5, bias=4.0)
    env = gymnasium.make("CartPole-v1", max_episode_steps=60)
    env = DataCollector(
        termdp.gym.ObserverWrapper(env, leaning),
        step_data_callback=EndsFromTheStart,
        record_infos=True,
    )
    rng = np.random.default_rng(0)
    for seed in range(60):
        env.reset(seed=seed)
        ended = False
        while not ended:
            _, _, terminated, truncated, _ = env.step(int(rng.integers(2)))
            ended = terminated or truncated
    yield env.create_dataset("termdp/leaning-v0")
    env.close()
    env._tmp_dir.cleanup()  # Minari leaves that to the garbage collector
    patch.undo()


@pytest.mark.filterwarnings("ignore")
def test_a_data_set_of_minari(collected):
    by_id, by_object = open_source("minari:termdp/leaning-v0"), open_source(collected)
    assert by_id.schema == by_object.schema
    assert by_id.defaults["stopped"] == "infos.stopped"
    found = read_sessions(
        by_id, Roles("episode", "infos.stopped", ("observation.2",), ("action",))
    )
    episodes = list(collected.iterate_episodes())
    assert found.lengths.tolist() == [len(episode) for episode in episodes]
    ended = np.array([e.infos["stopped"][-1] for e in episodes], bool)
    assert np.array_equal(found.ends == 1, ended) and ended.sum() > 10
    # The observation that was acted on, not the one that followed.
    assert found.session(3).observations[0, 0] == np.float32(
        episodes[3].observations[0, 2]
    )
    fit = termdp.fit(collected, window=5, bins=4, binned=["observation.2"])
    assert (
        fit.sessions.num_actions == 2 and fit.sessions.roles.ended == "infos.game_over"
    )
    assert len(fit.sessions.roles.observations) == 4
    assert fit.scores.auc > 0.6


def test_a_data_set_that_is_not_there(collected):
    with pytest.raises(ValueError, match="expected a Minari data set on this machine"):
        open_source("minari:termdp/nothing-v0")
    assert minari.__version__


TABLE = {
    "id": [1, 1, 2, 3],
    "start": [0.0, 2.0, 0.0, 0.0],
    "stop": [2.0, 5.0, 3.0, 1.5],
    "event": [0, 1, 0, 1],
    "dose": [1.0, 2.0, 3.0, 4.0],
}
ROLES = Roles("id", "event", ("dose",))


def test_a_survival_table_becomes_steps():
    source = expanded(open_source(TABLE), ("start", "stop"), ROLES, 1.0)
    found = read_sessions(source, ROLES)
    assert found.lengths.tolist() == [5, 3, 2]
    assert found.ends.tolist() == [1, 0, 1]
    dose = found.blocks[0].observations[:, 0]
    assert dose.tolist() == [1, 1, 2, 2, 2, 3, 3, 3, 4, 4]
    days = expanded(open_source(TABLE), ("start", "stop"), ROLES, 0.5)
    assert read_sessions(days, ROLES).lengths.tolist() == [10, 6, 3]


@pytest.mark.parametrize(
    ("change", "step", "sentence"),
    [
        (
            {"stop": [2.0, 1.0, 3.0, 1.5]},
            1.0,
            "stop after they start, got 2 to 1 for 1",
        ),
        ({"start": [0.0, 1.0, 0.0, 0.0]}, 1.0, "one that starts at 1 after .* at 2"),
        ({"stop": [2.0, None, 3.0, 1.5]}, 1.0, "a time in every row of 'stop'"),
        ({"stop": ["a", "b", "c", "d"]}, 1.0, "expected times in column 'stop'"),
        ({"event": [1, 1, 0, 1]}, 1.0, "row 2 of 5 of session 1"),
        ({}, 1e-9, "give a longer step"),
        ({}, 0.0, "a step above 0"),
    ],
)
def test_survival_tables_that_cannot_be(change, step, sentence):
    with pytest.raises(ValueError, match=sentence):
        table = pa.table(TABLE | change)
        source = expanded(open_source(table), ("start", "stop"), ROLES, step)
        read_sessions(source, ROLES)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_people_of_survset():
    """432 men after prison, by week (GPL data: read in tests only)."""
    from SurvSet.data import SurvLoader

    frame = SurvLoader().load_dataset("Rossi")["df"]
    frame = frame.assign(
        aid=(frame["fac_fin"] == "yes").astype(int),
        employed=frame["fac_emp"].astype(int),
    )
    found = termdp.fit(
        frame,
        session="pid",
        stopped="event",
        observations=["aid", "employed", "num_age"],
        interval=("time", "time2"),
        window=1,
    )
    assert len(found.sessions.ids) == 432 and (found.sessions.ends == 1).sum() == 114
    costs = found.summary()["costs"]
    # Known: the employed and the older are arrested less.
    assert costs["employed"]["interval"][1] < 0 and costs["num_age"]["cost"] < 0
    assert isinstance(frame, pd.DataFrame)
