"""The HTTP interface: what it answers, and what it refuses in which words."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from people_server import join
from termdp.people.driving.drivers import random_driver
from termdp.people.driving.rides import Ride, record, replay
from termdp.people.records import tokens
from termdp.people.server import limits

STOP = {"id": "client-id-1", "step": 2, "latency_ms": 40}


def next_ride(client, headers):
    return client.get("/api/next", headers=headers).json()["ride"]


def stop(client, headers, showing, **changes):
    body = {**STOP, **changes}
    return client.post(f"/api/showings/{showing}/stop", json=body, headers=headers)


def refused(response, status, words):
    assert response.status_code == status, response.text
    assert words in response.json()["error"]


# A supervisor's way


def test_a_review_from_the_invite_to_the_last_ride(client, store, ann):
    me = client.get("/api/me", headers=ann).json()
    assert (me["name"], me["title"], me["step_ms"]) == ("ann", "Comfort", 100)
    seen = []
    while ride := next_ride(client, ann):
        assert ride["actions"] == "000000"
        seen.append(ride["showing"])
        if len(seen) % 2:
            answer = stop(client, ann, ride["showing"], reason="too close").json()
            assert answer == {"stopped": True, "step": 2, "on_disk": True}
        else:
            path = f"/api/showings/{ride['showing']}/finish"
            answer = client.post(path, json={"id": "client-id-2"}, headers=ann).json()
            assert answer == {"stopped": False, "step": 5, "on_disk": True}
    assert len(seen) == 5  # four rides, one of them twice
    me = client.get("/api/me", headers=ann).json()
    assert (me["reviewed"], me["total"]) == (5, 5)
    reviews = [s.review for s in store.showings("comfort")]
    assert sum(r.stopped for r in reviews) == 3
    assert {r.reason for r in reviews if r.stopped} == {"too close"}


def test_nothing_sent_to_a_reviewer_says_who_drove(client, store, ann):
    text = client.get("/api/next", headers=ann).text
    assert "straight" not in text and "seed" not in text and "repeat" not in text


def test_consent_is_recorded_before_anything(client, store):
    invite = store.invite("comfort", "bo")
    text = client.post("/api/invite", json={"invite": invite}).json()
    assert text["consent"] == store.study("comfort").consent
    body = {"invite": invite, "nonce": "n" * 24, "consent_hash": "0" * 64}
    refused(client.post("/api/join", json=body), 409, "another text")
    assert store.supervisors("comfort")[0].joined_ms is None
    body["consent_hash"] = text["consent_hash"]
    assert client.post("/api/join", json=body).status_code == 200
    (bo,) = store.supervisors("comfort")
    assert bo.joined_ms is not None
    assert bo.consent_hash == tokens.digest(text["consent"])


def test_a_live_ride_and_its_stop(client, store, ann):
    ride = client.post("/api/live", json={}, headers=ann).json()
    assert 1 <= len(ride["actions"]) <= 20
    (row,) = store.rides("comfort", live=True)
    assert row.driver == "random"
    again = replay(Ride(row.seed, "", np.frombuffer(row.actions, np.uint8)))
    assert again.game_over[-1] == row.crashed
    answer = stop(client, ann, ride["showing"], step=0)
    assert answer.status_code == 200


def test_a_ride_can_be_fetched_again(client, store, ann):
    ride = next_ride(client, ann)
    again = client.get(f"/api/showings/{ride['showing']}", headers=ann).json()
    assert again == ride
    assert next_ride(client, ann) == ride


def test_a_reason_may_come_later(client, store, ann):
    ride = next_ride(client, ann)
    path = f"/api/showings/{ride['showing']}/reason"
    body = {"id": "client-id-3", "reason": " coins "}
    refused(client.post(path, json=body, headers=ann), 409, "reviewed")
    stop(client, ann, ride["showing"])
    assert client.post(path, json=body, headers=ann).json() == {"reason": "coins"}


def test_a_drive_is_played_again_by_the_server(client, store, ann):
    road = client.get("/api/road", headers=ann).json()
    driven = record(random_driver(), road["seed"], 300)
    actions = "".join(map(str, driven.actions))
    body = {"id": "client-id-4", "seed": road["seed"], "actions": actions}
    found = client.post("/api/drives", json=body, headers=ann).json()
    again = replay(driven)
    assert found["score"] == round(again.total, 4)
    assert found["coins"] == again.coins.sum()
    assert found["overtaken"] == again.overtaken.sum()
    assert found["crashed"] == again.game_over[-1]
    assert found["scores"][0]["name"] == "ann"
    body["actions"] += "0"
    body["id"] = "client-id-5"
    answer = client.post("/api/drives", json=body, headers=ann)
    refused(answer, 422, "crashes at")


def test_own_results(client, store, ann):
    ride = next_ride(client, ann)
    stop(client, ann, ride["showing"])
    found = client.get("/api/results", headers=ann).json()
    assert (found["mine"]["stops"], found["reviewed"], found["total"]) == (1, 1, 5)
    assert "driver" not in found["rides"][0]
    assert found["rides"][0]["steps"] == 3  # how it would have gone on is not told


# The admin's way


def test_an_admin_makes_a_study_and_exports_it(client, store, admin, tmp_path):
    body = {"name": "new", "title": "New", "step_ms": 50}
    answer = client.post("/api/admin/studies", json=body, headers=admin)
    assert (answer.status_code, answer.json()) == (201, {"study": "new"})
    rides = {"count": 3, "steps": 10}
    answer = client.post("/api/admin/studies/new/rides", json=rides, headers=admin)
    assert answer.json() == {"study": "new", "added": 3}
    names = {"names": ["ann", "bo"], "kind": "simulated"}
    answer = client.post("/api/admin/studies/new/invites", json=names, headers=admin)
    assert set(answer.json()["invites"]) == {"ann", "bo"}
    listing = client.get("/api/admin/studies", headers=admin).json()["studies"]
    new = next(row for row in listing if row["name"] == "new")
    assert (new["rides"], new["supervisors"], new["reviews"]) == (3, 2, 0)
    answer = client.get("/api/admin/studies/new/export", headers=admin)
    assert answer.status_code == 200
    path = tmp_path / "new.parquet"
    path.write_bytes(answer.content)
    assert pq.ParquetFile(path).metadata.num_rows == 0


def test_results_of_a_study(client, store, admin):
    for name, step in (("ann", 2), ("bo", 4)):
        headers = join(client, store, name)
        while ride := next_ride(client, headers):
            stop(client, headers, ride["showing"], step=step)
    found = client.get("/api/admin/studies/comfort/results", headers=admin).json()
    assert [row["name"] for row in found["per_supervisor"]] == ["ann", "bo"]
    (pair,) = found["agreement"]
    assert (pair["rides"], pair["same"], pair["gap_steps"]) == (4, 1.0, 2.0)
    assert found["per_ride"][0]["driver"] == "straight"
    ride = client.get("/api/admin/studies/comfort/rides/0", headers=admin).json()
    assert (ride["driver"], ride["discomfort"]) == ("straight", None)
    answer = client.get("/api/admin/studies/comfort/rides/77", headers=admin)
    refused(answer, 404, "number of a ride")


# Bad input


def test_wrong_tokens_are_refused(client, store, ann, admin):
    refused(client.get("/api/me"), 401, "join by your invite link")
    wrong = {"authorization": "Bearer " + "x" * 43}
    refused(client.get("/api/me", headers=wrong), 401, "join by your invite link")
    refused(client.get("/api/me", headers=admin), 401, "join")
    refused(client.get("/api/admin/studies", headers=ann), 401, "admin token")
    refused(client.get("/api/admin/studies", headers=wrong), 401, "admin token")
    for header in ("Basic abc", "Bearer", "Bearer ü", "Bearer a b"):
        encoded = {"authorization": header.encode()}
        refused(client.get("/api/me", headers=encoded), 401, "join")


def test_a_used_invite_is_refused(client, store):
    invite = store.invite("comfort", "bo")
    consent = client.post("/api/invite", json={"invite": invite}).json()["consent_hash"]
    body = {"invite": invite, "nonce": "n" * 24, "consent_hash": consent}
    assert client.post("/api/join", json=body).status_code == 200
    body["nonce"] = "m" * 24
    refused(client.post("/api/join", json=body), 409, "used already")
    refused(client.post("/api/invite", json={"invite": "y" * 43}), 404, "not valid")


def test_two_stops_count_once(client, store, ann):
    showing = next_ride(client, ann)["showing"]
    assert stop(client, ann, showing).status_code == 200
    assert stop(client, ann, showing).status_code == 200  # a retry
    answer = stop(client, ann, showing, id="another-id-1", step=3)
    refused(answer, 409, "stopped at step 2 already")
    assert [s.review.step for s in store.showings("comfort") if s.review] == [2]


def test_a_stop_for_a_ride_that_is_over_is_refused(client, store, ann):
    showing = next_ride(client, ann)["showing"]
    refused(stop(client, ann, showing, step=6), 409, "over after step 5")
    path = f"/api/showings/{showing}/finish"
    client.post(path, json={"id": "client-id-2"}, headers=ann)
    refused(stop(client, ann, showing), 409, "is over already")


def test_other_peoples_rides_are_refused(client, store, ann):
    bo = join(client, store, "bo")
    showing = next_ride(client, ann)["showing"]
    refused(stop(client, bo, showing), 404, "one of your rides")
    refused(stop(client, bo, 2**31), 404, "one of your rides")
    refused(stop(client, bo, 10**30), 404, "one of your rides")


def test_a_clock_that_is_wrong_by_years_changes_nothing(client, store, ann):
    showing = next_ride(client, ann)["showing"]
    assert stop(client, ann, showing, client_ms=1).status_code == 200
    (review,) = [s.review for s in store.showings("comfort") if s.review]
    assert review.created_ms > 1_700_000_000_000
    assert review.skew_ms == 1 - review.created_ms
    showing = next_ride(client, ann)["showing"]
    refused(
        stop(client, ann, showing, latency_ms=-5),
        422,
        "latency_ms to be a whole number from 0 to 600000, got -5",
    )


@pytest.mark.parametrize(
    "body, status, words",
    [
        (b"{", 400, "malformed"),
        (b"", 400, "malformed"),
        (b"\xff\xfe", 400, "malformed"),
        (b"[1]", 400, "JSON object"),
        (b"null", 400, "JSON object"),
        (b'{"step": NaN}', 400, "malformed"),
        (b"[" * 60_000, 400, "malformed"),
        (b'{"step": 1}', 422, "expected a field id (8 to 64"),
        (json.dumps({**STOP, "step": "2"}).encode(), 422, "whole number"),
        (json.dumps({**STOP, "step": True}).encode(), 422, "whole number"),
        (json.dumps({**STOP, "step": 1.5}).encode(), 422, "whole number"),
        (
            json.dumps({**STOP, "step": 10**40}).encode(),
            422,
            "step to be a whole number from 0",
        ),
        (
            json.dumps({**STOP, "speed": 0}).encode(),
            422,
            "speed to be a number from 0.05 to 20, got 0",
        ),
        (json.dumps({**STOP, "id": "short"}).encode(), 422, "8 to 64"),
        (json.dumps({**STOP, "choice": 1}).encode(), 422, "unknown field"),
        (json.dumps({**STOP, "reason": "x" * 1001}).encode(), 422, "1000 characters"),
        (json.dumps({**STOP, "reason": "a\0b"}).encode(), 422, "plain text"),
        (json.dumps({**STOP, "reason": "\ud800"}).encode(), 422, "plain text"),
        (json.dumps({**STOP, "reason": ["x"]}).encode(), 422, 'got ["x"]'),
    ],
)
def test_malformed_bodies_are_refused(client, store, ann, body, status, words):
    showing = next_ride(client, ann)["showing"]
    headers = {**ann, "content-type": "application/json"}
    path = f"/api/showings/{showing}/stop"
    refused(client.post(path, content=body, headers=headers), status, words)
    assert not any(s.review for s in store.showings("comfort"))


def test_other_kinds_of_bodies_are_refused(client, ann):
    answer = client.post("/api/live", content=b"a=b", headers=ann)
    assert answer.status_code == 200  # this one needs no body
    answer = client.post("/api/showings/1/stop", content=b"a=b", headers=ann)
    refused(answer, 415, "application/json")


def test_oversized_bodies_are_refused(client, ann):
    headers = {**ann, "content-type": "application/json"}
    big = b"{" + b" " * limits.MAX_BODY
    refused(client.post("/api/live", content=big, headers=headers), 413, "65536 bytes")

    def endless():
        for _ in range(200):
            yield b" " * 1000

    answer = client.post("/api/live", content=endless(), headers=headers)
    refused(answer, 413, "65536 bytes")


def test_unknown_studies_are_named(client, admin):
    for method, path in (
        ("GET", "results"),
        ("GET", "export"),
        ("GET", "rides/0"),
    ):
        answer = client.request(
            method, f"/api/admin/studies/nosuch/{path}", headers=admin
        )
        refused(answer, 404, "name of a study (comfort), got 'nosuch'")
    for path, body in (("rides", {"count": 1}), ("invites", {"names": ["a"]})):
        answer = client.post(
            f"/api/admin/studies/nosuch/{path}", json=body, headers=admin
        )
        refused(answer, 404, "got 'nosuch'")


def test_bad_studies_and_names_are_refused(client, admin):
    post = lambda path, body: client.post(path, json=body, headers=admin)  # noqa: E731
    refused(post("/api/admin/studies", {"name": "../x"}), 422, "study name")
    refused(post("/api/admin/studies", {"name": "comfort"}), 409, "exists")
    refused(post("/api/admin/studies", {"name": "a", "seed": -1}), 422, "seed")
    invites = "/api/admin/studies/comfort/invites"
    refused(post(invites, {"names": []}), 422, "list of 1 to")
    refused(post(invites, {"names": ["a b"]}), 422, "supervisor's name")
    refused(post(invites, {"names": ["a"], "kind": "robot"}), 422, "kind")
