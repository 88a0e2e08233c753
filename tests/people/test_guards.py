"""What stands before the interface: headers, folders, rates, hosts, guests."""

import pytest

from people_server import application, join
from termdp.people.server import limits
from termdp.people.server.app import web_files


def refused(response, status, words):
    assert response.status_code == status, response.text
    assert words in response.json()["error"]


def test_every_answer_has_the_security_headers(client, ann):
    for path in ("/", "/drive", "/static/app.css", "/api/me", "/nosuch", "/api/nosuch"):
        headers = client.get(path).headers
        for name, value in limits.SECURITY_HEADERS.items():
            assert headers[name] == value
    assert client.get("/api/me", headers=ann).headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static/....//app.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/index.html%00.css",
        "/static/",
        "/static/index.html",
        "/..%2f..%2fetc/passwd",
    ],
)
def test_no_way_out_of_the_folder(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert "error" in answer.json()


def test_pages_are_served_with_their_kinds(client):
    for path, kind in (
        ("/", "text/html"),
        ("/review", "text/html"),
        ("/static/app.css", "text/css"),
        ("/static/world.js", "text/javascript"),
        ("/static/icon.svg", "image/svg+xml"),
        ("/static/app.webmanifest", "application/manifest+json"),
        ("/worker.js", "text/javascript"),
    ):
        answer = client.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(kind)


def test_nothing_is_loaded_from_elsewhere(client):
    for name, content in web_files().items():
        if name.endswith((".html", ".css", ".js", ".webmanifest")):
            text = content.decode().replace("http://www.w3.org/2000/svg", "")
            assert "http://" not in text and "https://" not in text, name


def test_who_asks_too_often_waits(store):
    slow = limits.Rate(per_second=0.001, burst=5)
    with application(store, address_rate=slow) as client:
        codes = [client.get("/api/me").status_code for _ in range(7)]
        assert codes == [401] * 5 + [429] * 2
        answer = client.get("/api/me")
        assert "too many requests" in answer.json()["error"]
        assert int(answer.headers["retry-after"]) > 100
        # Made-up tokens get no bucket of their own.
        wrong = {"authorization": "Bearer " + "z" * 43}
        assert client.get("/api/me", headers=wrong).status_code == 429
        assert client.get("/").status_code == 200  # pages are free


def test_a_good_token_has_a_rate_of_its_own(store):
    rates = {
        "address_rate": limits.Rate(0.001, 4),
        "supervisor_rate": limits.Rate(0.001, 3),
    }
    with application(store, **rates) as client:
        ann = join(client, store)  # two requests by address
        codes = [client.get("/api/me", headers=ann).status_code for _ in range(4)]
        assert codes == [200, 200, 200, 429]


def test_buckets_fill_with_time():
    now = [0.0]
    buckets = limits.Buckets(limits.Rate(per_second=2, burst=2), clock=lambda: now[0])
    assert [buckets.seconds_to_wait("a") for _ in range(3)] == [0, 0, 0.5]
    now[0] = 0.5
    assert buckets.seconds_to_wait("a") == 0
    assert buckets.seconds_to_wait("b") == 0


def test_guests_may_come_only_where_there_are_no_tokens(client, store):
    refused(client.post("/api/guest", json={"name": "eve"}), 403, "invite link")
    store.create_study("practice")
    with application(store, tokens=False) as open_client:
        answer = open_client.post("/api/guest", json={"name": "eve"}).json()
        text = open_client.post("/api/invite", json=answer).json()
        assert text["study"] == "practice" and text["name"].startswith("eve-")


def test_strange_hosts_are_refused(store):
    with application(store, allowed_hosts=("localhost", "testserver")) as client:
        assert client.get("/api/health").status_code == 200
        strange = {"host": "evil.example"}
        assert client.get("/api/health", headers=strange).status_code == 400
