"""Fuzzing the HTTP interface: whatever comes, an answer below 500 and a sound store."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from people_server import ADMIN, application, join, straight
from termdp.people.records.study_store import StudyStore
from termdp.people.server import admin_api, api

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from([-1, 0, 2**31, 2**63, 2**64, 1e308, "", "\0", "../..", "'; --"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)

# Right values, so that the fuzz gets past the first check of each field.
GOOD = {
    "id": "client-id-1",
    "step": 1,
    "latency_ms": 10,
    "reason": "why",
    "speed": 1.0,
    "replays": 0,
    "client_ms": 5,
    "seed": 3,
    "actions": "0120",
    "name": "fuzz",
    "study": "comfort",
    "title": "Fuzz",
    "consent": "yes?",
    "step_ms": 100,
    "repeat_share": 0.5,
    "count": 1,
    "steps": 5,
    "names": ["zoe"],
    "kind": "person",
    "invite": "i" * 43,
    "nonce": "n" * 43,
    "consent_hash": "0" * 64,
}
FIELDS = st.dictionaries(st.sampled_from(sorted(GOOD)), JSON, max_size=3)
ROUTES = [
    (method, route.path)
    for route in [*api.ROUTES, *admin_api.ROUTES]
    for method in sorted(route.methods - {"HEAD"})
]
# Asked for by name in each route's body; others would be refused as unknown.
WANTED = {
    "/api/invite": ["invite"],
    "/api/guest": ["name", "study"],
    "/api/join": ["invite", "nonce", "consent_hash"],
    "/api/showings/{showing:int}/stop": [
        *("id", "step", "latency_ms", "reason", "speed", "replays", "client_ms")
    ],
    "/api/showings/{showing:int}/finish": ["id", "speed", "replays", "client_ms"],
    "/api/showings/{showing:int}/reason": ["id", "reason"],
    "/api/drives": ["id", "seed", "actions"],
    "/api/admin/studies": [
        *("name", "title", "consent", "step_ms", "repeat_share", "seed")
    ],
    "/api/admin/studies/{study:str}/rides": ["count", "steps", "seed"],
    "/api/admin/studies/{study:str}/invites": ["names", "kind"],
}
SEGMENT = st.sampled_from(["comfort", "nosuch", "..", "%2e%2e", "a%00b", "é", "*"])


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    store = StudyStore.open(str(tmp_path_factory.mktemp("fuzz") / "people.db"))
    store.create_study("comfort", repeat_share=0.0)
    store.add_rides("comfort", straight(40), [False] * 40)
    with application(store, tokens=False) as client:
        ann = join(client, store)
        client.get("/api/next", headers=ann)
        yield client, store, ann["authorization"]
    # Nothing that came broke what was there.
    for shown in store.showings("comfort"):
        if shown.review is not None:
            assert 0 <= shown.review.step < len(shown.ride.actions)
    assert len(store.rides("comfort")) >= 40
    store.close()


def check(response):
    assert response.status_code < 500, (response.request.url, response.text)
    if response.headers["content-type"] == "application/json":
        found = response.json()
        if response.status_code >= 400:
            assert isinstance(found["error"], str) and found["error"]
            assert "Traceback" not in found["error"]


@settings(
    max_examples=250,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    route=st.sampled_from(ROUTES),
    number=st.integers(0, 60) | st.integers(0, 2**70),
    study=SEGMENT,
    changes=FIELDS,
    is_admin=st.booleans(),
)
def test_fields_of_every_route(fuzzed, route, number, study, changes, is_admin):
    client, _, token = fuzzed
    method, path = route
    body = {name: GOOD[name] for name in WANTED.get(path, [])} | changes
    address = path.replace("{showing:int}", str(number))
    address = address.replace("{number:int}", str(number)).replace("{study:str}", study)
    wants_admin = "/admin/" in path or is_admin
    headers = {
        "authorization": f"Bearer {ADMIN}" if wants_admin else token,
        "content-type": "application/json",
    }
    content = json.dumps(body).encode() if method == "POST" else None
    check(client.request(method, address, content=content, headers=headers))


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    route=st.sampled_from(ROUTES),
    content=st.binary(max_size=300) | JSON.map(lambda v: json.dumps(v).encode()),
    kind=st.sampled_from(["application/json", "application/json; charset=x", "a/b"]),
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]),
    authorization=st.sampled_from(["good", "admin", ""])
    | st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), max_size=60),
)
def test_bodies_of_every_kind(fuzzed, route, content, kind, method, authorization):
    client, _, token = fuzzed
    known = {"good": token, "admin": f"Bearer {ADMIN}"}
    headers = {"content-type": kind}
    headers["authorization"] = known.get(authorization, authorization).encode("latin-1")
    path = route[1].replace("{showing:int}", "1").replace("{number:int}", "1")
    path = path.replace("{study:str}", "comfort")
    check(client.request(method, path, content=content, headers=headers))


@settings(max_examples=100, deadline=None)
@given(path=st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_addresses_of_every_kind(fuzzed, path):
    client, _, token = fuzzed
    from urllib.parse import quote

    for prefix in ("/", "/static/", "/api/", "/api/showings/", "/api/admin/studies/"):
        check(client.get(prefix + quote(path), headers={"authorization": token}))
