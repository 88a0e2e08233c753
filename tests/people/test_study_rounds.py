"""Rounds: a driver learns from stops, and nothing of a round counts before all of it."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from people_server import Server, application, join, recorded, straight
from termdp.cli import main
from termdp.folder_lock import only_writer
from termdp.observer_file import load_observer, shipped_path
from termdp.people.driving.rides import Ride, replay
from termdp.people.improving import rounds
from termdp.people.improving.learning import together
from termdp.people.improving.round_folder import RoundFolder
from termdp.people.improving.rounds import improve
from termdp.people.improving.settings import RoundSettings
from termdp.people.records import tokens
from termdp.people.records.rounds import add_round, rounds_of
from termdp.people.records.study_files import add_study, practice_record
from termdp.people.records.study_store import (
    ReviewInput,
    StudyStore,
    record_join,
    record_live,
    record_review,
)
from termdp.people.records.tables import Round
from termdp.people.server.client import Client
from termdp.people.server.improver import Improver
from termdp.people.server.round_results import rounds_table, share_interval
from termdp.people.simulated.passengers import PASSENGERS

TINY = RoundSettings(
    steps=2048,
    start_steps=2048,
    rides=6,
    ride_steps=20,
    delay=2,
    gradient_steps=2,
)
FLAGS = [
    f"--{name.replace('_', '-')}={value}"
    for name, value in dataclasses.asdict(TINY).items()
    if name not in ("driver", "method")
]


@pytest.fixture(scope="module")
def record():
    return practice_record(40)


def whole(store):
    """What a round would have changed."""
    return len(store.rides("comfort")), len(rounds_of(store, "comfort"))


@pytest.fixture(scope="module")
def improved(record, tmp_path_factory):
    """A study after a round that was killed once and failed once on its way."""
    folder = tmp_path_factory.mktemp("improved")
    db, out = folder / "people.db", folder / "rounds"
    with StudyStore.open(str(db)) as store:
        add_study(store, record, "comfort")
        before = whole(store)
        words = ["studies", "improve", "comfort", "--db", str(db), "--out", str(out)]
        process = subprocess.Popen(
            [sys.executable, "-m", "termdp", *words, *FLAGS],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        here = RoundFolder(out.resolve(), 1)
        while not here.fit() and process.poll() is None:
            time.sleep(0.02)
        process.kill()
        process.wait()
        fit = here.observer.stat().st_mtime_ns
        assert whole(store) == before
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rounds, "add_round", _fail)
            with pytest.raises(OSError, match="as if the power failed"):
                improve(store, "comfort", out, TINY)
        assert whole(store) == before
        trained = (here.run / "summary.json").stat().st_mtime_ns
        done = improve(store, "comfort", out, TINY)
        # It went on with what was there.
        assert here.observer.stat().st_mtime_ns == fit
        assert (here.run / "summary.json").stat().st_mtime_ns == trained
    return db, out, before, done


def _fail(*_):
    raise OSError("as if the power failed")


def test_a_killed_round_goes_on_and_is_added_whole(improved, record):
    db, out, before, done = improved
    with StudyStore.open(str(db)) as store:
        assert whole(store) == (before[0] + TINY.rides, 2)
        rides = store.rides("comfort")[-TINY.rides :]
        assert [r.driver for r in rides] == ["round 1", "round 0"] * 3
        assert len({ride.seed for ride in rides}) == TINY.rides
        study = store.study("comfort")
        assert study.observer == str(
            out.resolve() / "round-01/fit/observer.safetensors"
        )
    stops = sum(showing.stopped for showing in record.showings)
    assert (done["round"], done["stops"]) == (1, stops)
    facts = json.loads((out / "round-01" / "fit" / "fit.json").read_text())
    assert facts["reviews"] == len(record.showings)


def test_without_news_there_is_nothing_to_learn(improved, capsys):
    db, out, *_ = improved
    with pytest.raises(SystemExit) as error:
        main(["studies", "improve", "comfort", f"--db={db}", f"--out={out}"])
    assert error.value.code == 2
    assert "expected reviews since round 1" in capsys.readouterr().err


def test_people_ride_with_the_driver_that_learned_from_them(improved):
    db, *_ = improved
    with StudyStore.open(str(db)) as store, application(store) as client:
        ann = join(client, store)
        found = client.get("/api/learned", headers=ann).json()
        assert (found["round"], found["yours"]) == (1, 0)
        assert found["stops"] == rounds_of(store, "comfort")[1].stops
        driver = None
        for _ in range(600):
            client.post("/api/live", json={}, headers=ann)
            driver = store.rides("comfort", live=True)[-1].driver
            if driver == "round 1":
                break
            time.sleep(0.1)
        assert driver == "round 1"


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["--rounds", "2"], "one round at a time"),
        (["--rounds", "0"], "expected --rounds from 1"),
        (["--rides", "1"], "expected --rides from 2"),
        (["--delay", "35"], "expected --delay from 0"),
        (["--method", "pg_recurrent"], "without memory"),
        (["--method", "best"], "expected a method"),
        (["--driver", "nowhere"], "nowhere"),
        ([], "at least 20 reviewed rides"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, capsys, words, sentence):
    db = tmp_path / "p.db"
    with StudyStore.open(str(db)) as store:
        store.create_study("comfort")
    out = tmp_path / "rounds"
    given = ["studies", "improve", "comfort", "--db", str(db), "--out", str(out)]
    with pytest.raises(SystemExit) as error:
        main([*given, *words])
    said = capsys.readouterr().err.strip()
    assert error.value.code == 2
    assert sentence in said and "\n" not in said
    assert not list(out.rglob("*"))


# What the admin sees


def test_rounds_are_shown_with_intervals(store, client, admin, ann):
    rides = straight(4, driver="round 1")
    new = [
        Round(number=n, driver=f"round {n}", folder="", reviews=9 * n, stops=5 * n)
        for n in (0, 1)
    ]
    add_round(store, "comfort", new, rides, [False] * 4, "observer.safetensors")
    with pytest.raises(ValueError, match="expected round 2 of comfort, got 1"):
        add_round(store, "comfort", [Round(number=1)], (), (), "none")
    ids = {s.name: s.id for s in store.supervisors("comfort")}
    stored = [ride for ride in store.rides("comfort") if ride.driver == "round 1"]
    for index, _ in enumerate(stored):
        showing = recorded(store, record_live, ids["ann"], rides[index], False)
        with store.database.writing() as session:  # long enough ago to have been seen
            session.connection().exec_driver_sql("UPDATE showings SET shown_ms = 1")
        given = ReviewInput(f"review-{index}", stopped=index == 0, step=2, latency_ms=9)
        recorded(store, record_review, ids["ann"], showing, given)
    (study,) = client.get("/api/admin/rounds", headers=admin).json()["studies"]
    none, one = study["rounds"]
    assert (none["reviews"], none["stop_rate"], none["return"]) == (0, None, None)
    assert one["learned_from"] == {"reviews": 9, "stops": 5}
    assert one["stop_rate"]["value"] == 0.25
    assert one["length"]["value"] == np.mean([3, 6, 6, 6])
    assert one["length"]["low"] < one["length"]["value"] < one["length"]["high"]
    assert one["agreement"] is None  # nobody else has seen them
    assert client.get("/api/admin/rounds", headers=ann).status_code == 401
    assert client.get("/api/learned", headers=ann).json()["yours"] == 0
    assert rounds_table([], [], "backseat") == []


def test_shares_have_wilsons_interval():
    """By hand: 0 of 10 → (0, z²/(n + z²))."""
    found = share_interval(0, 10)
    assert found["low"] == 0.0
    assert found["high"] == pytest.approx(1.96**2 / (10 + 1.96**2))
    assert share_interval(0, 0) is None


# While people ride


def test_a_server_and_its_round_may_be_killed_at_any_moment(record, tmp_path):
    db, out = tmp_path / "people.db", tmp_path / "rounds"
    with StudyStore.open(str(db)) as store:
        add_study(store, record, "comfort")
        before = whole(store)
        server = Server(db, "--improve", "0.01", "--improve-folder", str(out))
        server.start()
        client = Client(server.url)
        client.join(store.invite("comfort", "ann"))
        first = round_process(out / "comfort")
        assert os.getpriority(os.PRIO_PROCESS, first) == 19
        os.kill(first, signal.SIGKILL)
        ride = client.next_ride()
        assert client.stop(ride["showing"], 0, 10)["on_disk"]
        assert round_process(out / "comfort", other_than=first) != first
        server.kill()
        client.close()
        until = time.monotonic() + 60
        while is_locked(out / "comfort"):  # a round does not outlive its server
            assert time.monotonic() < until
            time.sleep(0.05)
        assert whole(store) == before
        kept = {showing.id: showing.review for showing in store.showings("comfort")}
        assert kept[ride["showing"]].stopped


def round_process(folder, other_than=None):
    """The process that does a round; waits for it."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        lock = folder / ".lock"
        words = lock.read_text().split() if lock.exists() else []
        if words and int(words[0]) != other_than:
            return int(words[0])
        time.sleep(0.02)
    raise AssertionError("no round has begun")


def is_locked(folder):
    try:
        with only_writer(folder):
            return False
    except ValueError:
        return True


def test_all_supervisors_in_one_car_add_up():
    """C/b of the sum is the sum of each one's own C/b."""
    with shipped_path() as path:
        first = load_observer(path)
    cost = first.cost.replace(scale=0.5 * first.cost.scale)
    second = first.replace(cost=cost, bias=2.0)
    joint = together([first, second])
    rng = np.random.default_rng(0)
    played = replay(Ride(3, "", rng.integers(0, 3, 5)))
    for seen, action in zip(played.observations, played.ride.actions, strict=True):
        each = [o.cost(seen, action) / o.bias for o in (first, second)]
        whole = joint.cost(seen, action) / joint.bias
        assert float(whole) == pytest.approx(float(sum(each)), abs=1e-5)
    assert joint.bias == pytest.approx((float(first.bias) + 2.0) / 2)
    assert together([first]) is first


def test_a_round_begins_where_people_have_reviewed_since_the_last(store, record):
    improver = Improver(str(store.database.engine.url.database), 1.0, Path("nowhere"))
    add_study(store, record, "with-people")
    assert improver.studies_with_news() == []  # only programs have reviewed
    invite = store.invite("with-people", "ann")
    text = store.study("with-people").consent
    recorded(store, record_join, invite, "n" * 24, tokens.digest(text))
    assert improver.studies_with_news() == ["with-people"]
    row = Round(number=0, driver="", folder="", reviews=len(record.showings), stops=9)
    add_round(store, "with-people", [row], (), (), "observer.safetensors")
    assert improver.studies_with_news() == []


@pytest.mark.slow
def test_simulated_passengers_teach_a_driver_without_anybody(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(rounds, "SMALL", {"hidden": 8, "filters": 2, "num_envs": 8})
    monkeypatch.setattr(rounds, "_SIZES", tuple(rounds.SMALL))
    db, out = str(tmp_path / "people.db"), tmp_path / "rounds"
    main(["studies", "create", "comfort", "--db", db, "--rides", "24"])
    words = ["studies", "improve", "comfort", "--db", db, "--out", str(out)]
    capsys.readouterr()
    shorter = ["--steps=256", "--start-steps=256"]
    main([*words, "--rounds", "2", "--simulated", "--json", *FLAGS, *shorter])
    found = json.loads(capsys.readouterr().out)
    first, second = found["rounds"]
    assert second["reviews"] > first["reviews"] >= 24 * len(PASSENGERS)
    assert [row["round"] for row in found["results"]] == [0, 1, 2]
    assert all(row["reviews"] > 0 for row in found["results"])
    with StudyStore.open(db) as store:
        drivers = [ride.driver for ride in store.rides("comfort")[-TINY.rides :]]
    assert drivers[:4] == ["round 2", "round 0", "round 2", "round 1"]
    assert drivers.count("round 2") == TINY.rides // 2
