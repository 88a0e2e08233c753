"""Studies of other games than Backseat Driver, from the first command to the last."""

import contextlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import termdp
from people_server import ADMIN, application, join, listening, recorded
from termdp.cli import main
from termdp.observer_file import load_observer, read_manifest
from termdp.people.driving.drivers import random_driver
from termdp.people.driving.rides import record_rides, replay
from termdp.people.driving.trained import usual_drivers
from termdp.people.improving import rounds
from termdp.people.models.senses import senses_of
from termdp.people.records import dataset
from termdp.people.records.rounds import rounds_of
from termdp.people.records.study_files import export_study, import_study
from termdp.people.records.study_store import (
    GAMES_CONSENT,
    ReviewInput,
    StudyStore,
    record_join,
    record_next,
    record_review,
    to_ride,
)
from termdp.people.records.tables import StoredRide
from termdp.people.records.tokens import digest
from termdp.people.simulated import simulation
from termdp.people.simulated.passengers import react, spectators

ADMIN_HEADERS = {"authorization": f"Bearer {ADMIN}"}
GAMES = ["breakout", "notifier"]


@pytest.fixture(params=GAMES)
def env(request):
    return request.param


def games(env, count=4, steps=12):
    return record_rides([random_driver(env)], count, steps, seed=3)


@pytest.fixture
def store(database_url, env):
    with StudyStore.open(database_url) as store:
        store.create_study("comfort", env=env, step_ms=20)
        store.add_rides("comfort", *games(env))
        yield store


def run(*words):
    main([str(word) for word in words])


def refusal(capsys, *words):
    capsys.readouterr()
    with pytest.raises(SystemExit) as error:
        run(*words)
    said = capsys.readouterr().err
    assert error.value.code == 2 and said.count("\n") == 1, said
    return said


# The store and files


def test_a_study_keeps_its_environment_and_only_its_rides(store, env):
    assert [row["env"] for row in store.studies()] == [env]
    assert store.study("comfort").consent == GAMES_CONSENT
    other = "asterix" if env == "breakout" else "breakout"
    with pytest.raises(ValueError, match=f"expected rides of {env}, the environment"):
        store.add_rides("comfort", *games(other, 1))
    assert len(store.rides("comfort")) == 4
    with pytest.raises(ValueError, match="expected an environment that can be drawn"):
        store.create_study("other", env="pong")


def reviewed(store):
    """Ann stops every other game at its first step."""
    token = recorded(
        store,
        record_join,
        store.invite("comfort", "ann"),
        "n" * 24,
        digest(GAMES_CONSENT),
    )
    _, ann = store.supervisor_of(token)
    for number in range(4):
        showing = recorded(store, record_next, ann.id)
        with store.database.writing() as session:  # as if it was shown long ago
            session.merge(showing).shown_ms = 1
        stopped = number % 2 == 0 and len(showing.ride.actions) > 1
        given = ReviewInput(f"client-{number}", stopped, 0, 10 if stopped else None)
        recorded(store, record_review, ann.id, showing.id, given)


def test_export_and_import_give_the_same_bytes(store, env, tmp_path):
    reviewed(store)
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    export_study(store, "comfort", first)
    with StudyStore.open(str(tmp_path / "other.db")) as other:
        import_study(other, first)
        export_study(other, "comfort", second)
        assert other.study("comfort").env == env
    assert first.read_bytes() == second.read_bytes()
    table = pq.read_table(first)
    record = json.loads(table.schema.metadata[dataset.METADATA_KEY])
    ride = to_ride(store.rides("comfort")[record["showings"][0]["ride"]], env)
    seen = dataset.unpack(table["observation"].to_pylist(), env)
    np.testing.assert_array_equal(seen[0], replay(ride).observations[0])


def test_changed_numbers_are_found_and_rounding_is_not(store, env, tmp_path):
    """Other processors round floats otherwise; a board is the same everywhere."""
    reviewed(store)
    path = tmp_path / "study.parquet"
    export_study(store, "comfort", path)
    table, packing = pq.read_table(path), dataset.Packing(env)

    def changed(by):
        seen = dataset.unpack(table["observation"].to_pylist(), env).copy()
        seen[0] = ~seen[0] if packing.is_bits else seen[0] + np.float32(by)
        packed = packing.pack(seen)
        cells = [
            packed[i : i + packing.size] for i in range(0, len(packed), packing.size)
        ]
        column = pa.array(cells, pa.binary(packing.size))
        pq.write_table(table.set_column(2, packing.columns[2], column), path)
        return path

    with pytest.raises(ValueError, match="showing 0 is not what the game does"):
        dataset.read(changed(0.1))
    if not packing.is_bits:
        assert dataset.read(changed(1e-6)).study.env == env


# The interface


@pytest.fixture
def client(store):
    with application(store) as client:
        yield client


def test_people_see_frames_and_not_who_played(client, store, env):
    ann = join(client, store)
    me = client.get("/api/me", headers=ann).json()
    assert (me["env"], me["game"]) == (env, termdp.registry.find(env).display_name)
    ride = client.get("/api/next", headers=ann).json()["ride"]
    assert len(ride["frames"]) == len(ride["actions"]) + 1
    assert not ride.keys() & {"driver", "costs", "seed", "cars"}
    live = client.post("/api/live", json={}, headers=ann).json()
    assert live["frames"] and live["shapes"]
    assert [row.live for row in store.rides("comfort", live=True)] == [True]
    assert store.rides("comfort", live=True)[0].driver == "random"


def test_nobody_drives_in_another_game(client, store):
    ann = join(client, store)
    drive = {"id": "client-1", "seed": 1, "actions": "000"}
    for answer in (
        client.get("/api/road", headers=ann),
        client.post("/api/drives", json=drive, headers=ann),
        client.get("/api/warmup", headers=ann),
    ):
        assert answer.status_code == 404
        assert "expected a study of Backseat Driver" in answer.json()["error"]


def test_stops_count_and_are_found_in_the_results(client, store, env):
    ann = join(client, store)
    count = 0
    while (ride := client.get("/api/next", headers=ann).json()["ride"]) is not None:
        stops = len(ride["actions"]) > 1 and count == 0
        body = {"id": f"client-{count}", "speed": 20}
        if stops:
            body |= {"step": 0, "latency_ms": 5, "reason": "clumsy"}
        verb = "stop" if stops else "finish"
        path = f"/api/showings/{ride['showing']}/{verb}"
        answer = client.post(path, json=body, headers=ann)
        assert answer.status_code == 200, answer.text
        count += 1
    mine = client.get("/api/results", headers=ann).json()
    assert mine["mine"]["stops"] == 1 and mine["mine"]["reaction_ms"] is None
    compared = client.get("/api/comparison", headers=ann).json()
    assert compared["bothers"] is None and compared["game"] == mine["game"]
    assert sum(len(ride["mine"]) for ride in compared["rides"]) == 1
    found = client.get(
        "/api/admin/studies/comfort/results", headers=ADMIN_HEADERS
    ).json()
    assert (found["env"], found["stops"]) == (env, 1)
    number = next(r["ride"] for r in found["per_ride"] if r["reviews"][0]["reason"])
    path = f"/api/admin/studies/comfort/rides/{number}"
    ride = client.get(path, headers=ADMIN_HEADERS).json()
    assert ride["frames"] and ride["discomfort"] is None


def test_simulated_spectators_are_told_costs_and_people_are_not(client, store, env):
    invite = store.invite("comfort", "simulated-x", "simulated")
    text = client.post("/api/invite", json={"invite": invite}).json()
    body = {"invite": invite, "nonce": "n" * 24, "consent_hash": text["consent_hash"]}
    token = client.post("/api/join", json=body).json()["token"]
    headers = {"authorization": f"Bearer {token}"}
    ride = client.get("/api/next", headers=headers).json()["ride"]
    with store.database.reading() as session:
        rows = session.query(StoredRide).all()
    row = next(r for r in rows if to_ride(r, env).digits == ride["actions"])
    again = replay(to_ride(row, env))
    _, params = termdp.make(env)
    expected = [
        float(params.observer.cost(seen, action))
        for seen, action in zip(again.observations, again.ride.actions, strict=True)
    ]
    assert ride["costs"] == pytest.approx(expected, abs=1e-4)


def test_the_admin_creates_a_study_of_any_game(client, store):
    listed = client.get("/api/admin/studies", headers=ADMIN_HEADERS).json()
    assert "asterix" in {row["id"] for row in listed["envs"]}
    body = {"name": "gold", "env": "asterix", "rides": 2, "steps": 5}
    answer = client.post("/api/admin/studies", json=body, headers=ADMIN_HEADERS)
    assert answer.status_code == 201, answer.text
    assert store.study("gold").env == "asterix" and len(store.rides("gold")) == 2
    more = {"count": 1, "steps": 5}
    path = "/api/admin/studies/gold/rides"
    assert client.post(path, json=more, headers=ADMIN_HEADERS).status_code == 201
    body = {"name": "other", "env": "pong"}
    answer = client.post("/api/admin/studies", json=body, headers=ADMIN_HEADERS)
    assert answer.status_code == 422
    assert "expected an environment that can be drawn" in answer.json()["error"]


# Commands


def test_commands_refuse_other_games_in_one_sentence(tmp_path, capsys):
    db = ["--db", tmp_path / "people.db"]
    said = refusal(capsys, "studies", "create", "x", "--env", "pong", *db)
    assert "expected an environment that can be drawn (breakout" in said
    agents = ["studies", "rides", "x", "--count", 1, *db, "--agents"]
    said = refusal(capsys, *agents, "asterix/pg", "--env", "breakout")
    assert "expected a run of breakout, got one of asterix" in said
    assert not (tmp_path / "people.db").exists()
    run(*agents, "random", "--env", "breakout")
    said = refusal(capsys, *agents, "random", "--env", "asterix")
    assert "expected --env breakout, the environment of study x" in said
    said = refusal(capsys, *agents, "notifier/pg")
    assert "expected a run of breakout, got one of notifier" in said
    run(*agents, "breakout/pg")
    with StudyStore.open(str(tmp_path / "people.db")) as store:
        drivers = [ride.driver for ride in store.rides("x")]
    assert drivers == ["random", "breakout/pg"]


@contextlib.contextmanager
def served(db):
    """A server in this process; test_passengers.py starts one of its own."""
    with StudyStore.open(db) as store, listening(store) as server:
        yield server.url, ADMIN


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A study of Asterix that spectators have judged."""
    folder = tmp_path_factory.mktemp("watched")
    db = folder / "people.db"
    run("studies", "create", "gold", "--env", "asterix", "--rides", 24, "--db", db)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "own_server", served)
        run("studies", "simulate", "gold", "--stops", 40, "--db", db)
    return folder, db


def test_simulated_spectators_stop_by_the_true_cost(watched):
    _, db = watched
    with StudyStore.open(str(db)) as store:
        reviews = [s for s in store.showings("gold") if s.review]
        stopped = [s for s in reviews if s.review.stopped]
        assert len(stopped) == 40 < len(reviews)
        assert {s.supervisor.kind for s in reviews} == {"simulated"}
        said = {s.review.reason for s in stopped} - {None}
    assert said == {termdp.registry.find("asterix").cost}


def test_a_fitted_onlooker_finds_what_costs_and_trains_agents(watched, capsys):
    folder, db = watched
    out = folder / "fit"
    quick = ["--gradient-steps", 60, "--max-window", 10]
    run("studies", "fit", "gold", "--db", db, "--out", out, *quick)
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["env"], summary["stops"]) == ("asterix", 40)
    assert "termdp train asterix termpg" in (out / "index.html").read_text()
    path = out / "observer.safetensors"
    manifest = read_manifest(path)
    assert manifest["board"] == [10, 10, 4] and manifest["study"] == "gold"
    observer = load_observer(path)
    # An enemy beside the player costs more than one far away: nobody has said so.
    near, far = np.zeros((2, 10, 10, 4), bool)
    near[4, 4, 0] = far[4, 4, 0] = near[4, 5, 1] = far[8, 9, 1] = True
    assert float(observer.cost(near, 0)) > float(observer.cost(far, 0)) + 0.1
    with pytest.raises(ValueError, match="expected boards of shape"):
        termdp.make("seaquest", observer=observer)
    words = ["train", "asterix", "termpg", "--observer", path, "--steps", 256]
    small = ["--num-envs", 8, "--hidden", 16, "--cost-stop-capacity", 64]
    run(*words, *small, "--out", folder / "run")
    assert (folder / "run" / "summary.json").exists()
    with StudyStore.open(str(db)) as store, application(store) as client:
        assert store.study("gold").observer == str(path.resolve())
        ride = next(s.ride.number for s in store.showings("gold") if s.review)
        path = f"/api/admin/studies/gold/rides/{ride}"
        found = client.get(path, headers=ADMIN_HEADERS).json()
        curve = client.get(f"{path}?only=curve", headers=ADMIN_HEADERS).json()
    assert len(found["discomfort"]["stop_probability"]) == len(found["actions"])
    assert curve["discomfort"] == found["discomfort"] and "frames" not in curve


def test_rounds_learn_from_stops_of_another_game(watched, capsys, monkeypatch):
    _, db = watched
    out = db.parent / "rounds"
    words = ["studies", "improve", "gold", "--db", db, "--out", out, "--rides", 4]
    words += ["--ride-steps", 20, "--delay", 2, "--gradient-steps", 2]
    words += ["--steps", 256, "--start-steps", 256]
    monkeypatch.setattr(rounds, "SMALL", {"hidden": 8, "filters": 2, "num_envs": 8})
    monkeypatch.setattr(rounds, "_SIZES", tuple(rounds.SMALL))
    said = refusal(capsys, *words, "--driver", "nowhere")
    assert "nowhere" in said
    run(*words)
    with StudyStore.open(str(db)) as store:
        assert [row.driver for row in rounds_of(store, "gold")] == [
            "round 0",
            "round 1",
        ]
        rides = store.rides("gold")[-4:]
        assert [ride.driver for ride in rides] == ["round 1", "round 0"] * 2
        assert all(len(replay(to_ride(ride, "asterix"))) <= 20 for ride in rides)
    observer = load_observer(out / "round-01" / "fit" / "observer.safetensors")
    _, params = termdp.make("asterix", observer=observer)
    assert params.observer.window == 35


def test_spectators_wait_for_their_own_patience():
    patient = spectators("breakout")[-1]
    assert [s.patience for s in spectators("breakout")] == sorted(
        s.patience for s in spectators("breakout")
    )
    rng = np.random.default_rng(0)
    calm = [react(patient, np.zeros(100), rng, 200).step for _ in range(20)]
    upset = [react(patient, np.ones(100), rng, 200) for _ in range(20)]
    assert sum(step is not None for step in calm) <= 2  # fingers slip
    assert all(reaction.step is not None for reaction in upset)
    assert np.median([r.step for r in upset]) == pytest.approx(
        patient.patience + 2, abs=2
    )


def test_numbers_are_noticed_on_their_own_scale():
    class Shown:
        observations = np.array([[1.0, 0, 0], [3.0, 0, 0]], np.float32)

    senses = senses_of("notifier", [Shown()])
    noticed = senses.notice(Shown.observations, np.array([0, 1]))
    assert noticed[:, 0].tolist() == [-1.0, 1.0]
    felt = senses.felt(noticed, np.array([0, 1]))
    names = [[n for n, f in zip(senses.names, row, strict=True) if f] for row in felt]
    assert names == [["action: 0"], ["much number 1", "action: 1"]]
    assert len(usual_drivers("notifier")) == 3
