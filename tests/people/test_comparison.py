"""What bothers somebody, by what came before their stops."""

from importlib.resources import files

import numpy as np
import pytest

from people_server import join
from termdp.people.driving.rides import game, replay
from termdp.people.models.bothers import DISCOMFORTS, JudgedRide, bothers, felt_in
from termdp.people.records import dataset

WORDS = list(DISCOMFORTS)


def judged(felt, stops, others=(), costs=None):
    return JudgedRide(np.array(felt, bool), len(felt), stops, others, costs)


def one(step, which, steps=20):
    felt = np.zeros((steps, len(WORDS)), bool)
    felt[step, which] = True
    return felt


def test_shares_before_stops_and_before_any_moment():
    rides = [
        judged(one(8, 1), stops=(10,), others=(3,), costs=one(8, 1)[:, 1] * 2.0)
        for _ in range(4)
    ]
    first, *rest = bothers(rides, step_ms=200)  # a second is five steps
    assert first["words"] == WORDS[1]
    assert (first["mine"], first["others"], first["usual"]) == (1.0, 0.0, 0.25)
    assert first["stands_out"] and first["extra_cost"] == 2.0
    assert not any(row["stands_out"] for row in rest)


def test_too_few_stops_say_nothing():
    rows = bothers([judged(one(8, 1), stops=(10,)), judged(one(8, 1), stops=())], 200)
    assert not any(row["stands_out"] for row in rows)
    assert rows[0]["others"] is None


@pytest.mark.parametrize(
    ("who", "what"),
    [
        ("simulated-ada", "swerving back and forth"),
        ("simulated-ben", "cutting in"),
        ("simulated-cleo", "fetching coins"),
        ("simulated-dov", "hectic steering"),
    ],
)
def test_what_the_simulated_passengers_mind_is_found(shipped, who, what):
    """Each minds one thing above all; it is among the first two that are named."""
    record, felt = shipped
    me = [s.name for s in record.supervisors].index(who)
    mine = [s for s in record.showings if s.supervisor == me and s.ride in felt]
    rides = [
        JudgedRide(felt[s.ride], s.step + 1, (s.step,) if s.stopped else (), ())
        for s in mine
    ]
    found = bothers(rides, record.study.step_ms)[:2]
    assert what in [row["words"] for row in found if row["stands_out"]]


@pytest.fixture(scope="module")
def shipped():
    folder = files("termdp.people") / "data"
    record = dataset.read_record(folder / "simulated_passengers.parquet")
    rides = {ride.number: ride.ride("backseat") for ride in record.rides}
    felt = {}
    for number in sorted({s.ride for s in record.showings})[:80]:
        again = replay(rides[number])
        felt[number] = felt_in(game().road, again.observations, again.ride.actions)
    return record, felt


def test_nothing_of_the_others_before_the_end(client, store, ann):
    bo = join(client, store, "bo")
    for headers, count in ((bo, 99), (ann, 4)):
        for _ in range(count):
            ride = client.get("/api/next", headers=headers).json()["ride"]
            if ride is None:
                break
            body = {"id": "client-id-1", "step": 2, "latency_ms": 4}
            path = f"/api/showings/{ride['showing']}/stop"
            client.post(path, json=body, headers=headers)
    answer = client.get("/api/comparison", headers=ann)
    assert answer.status_code == 409
    assert "got 4 of 5" in answer.json()["error"]
    found = client.get("/api/comparison", headers=bo).json()
    assert (found["people"], found["simulated"], found["model"]) == (1, 0, None)
    assert sum(len(ride["people"]) for ride in found["rides"]) == 4
    assert "ann" not in client.get("/api/comparison", headers=bo).text
    assert client.get("/api/comparison").status_code == 401


def test_who_stops_a_ride_and_its_repeat_is_one_person(client, store, ann):
    bo = join(client, store, "bo")
    for headers in (ann, bo):
        while ride := client.get("/api/next", headers=headers).json()["ride"]:
            body = {"id": "client-id-1", "step": 2, "latency_ms": 4}
            path = f"/api/showings/{ride['showing']}/stop"
            client.post(path, json=body, headers=headers)
    rides = client.get("/api/comparison", headers=bo).json()["rides"]
    assert sorted(len(ride["people"]) for ride in rides) == [1, 1, 1, 2]
    assert [(ride["stopped_by"], ride["watched_by"]) for ride in rides] == [(1, 1)] * 4
