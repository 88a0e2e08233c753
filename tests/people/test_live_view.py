"""A running study in numbers; for the admin alone."""

from people_server import join
from termdp.people.records.live import activity
from termdp.people.records.showings import now_ms

ADDRESS = "/api/admin/studies/comfort/live"


def test_riding_shown_stopped(client, store, ann, admin):
    bo = join(client, store, "bo")
    ride = client.get("/api/next", headers=ann).json()["ride"]
    body = {"id": "client-id-1", "step": 2, "latency_ms": 4, "reason": "coins"}
    client.post(f"/api/showings/{ride['showing']}/stop", json=body, headers=ann)
    client.post("/api/live", json={}, headers=bo)
    found = client.get(ADDRESS, headers=admin).json()
    (rider,) = found["riding"]
    assert (rider["name"], rider["page"]) == ("bo", "Ride")
    assert (found["rides_shown"][-1], found["stops"][-1]) == (2, 1)
    (stop,) = found["last_stops"]
    assert (stop["name"], stop["at_s"], stop["reason"]) == ("ann", 0.2, "coins")
    with store.database.reading() as session:
        study = store.study("comfort")
        later = activity(session, study, now_ms() + 2 * 60_000)
        at_last = activity(session, study, now_ms() + 11 * 60_000)
    assert later["riding"] == [] and sum(later["rides_shown"]) == 2
    assert sum(at_last["stops"]) == 0 and at_last["last_stops"] == []


def test_for_the_admin_alone(client, ann, admin):
    assert client.get(ADDRESS).status_code == 401
    assert client.get(ADDRESS, headers=ann).status_code == 401
    answer = client.get("/api/admin/studies/nosuch/live", headers=admin)
    assert answer.status_code == 404
