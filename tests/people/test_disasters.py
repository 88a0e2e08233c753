"""Killed servers and lost databases: what was acknowledged is there, the rest is said."""

import contextlib
import socket
import sqlite3
import threading
import time

import pytest

from people_server import ADMIN, Server, application, fill, join, straight
from services import postgres
from termdp.cli import main
from termdp.people.records.study_store import StudyStore
from termdp.people.server.client import Client

STOPS = 30
SUPERVISORS = 4


@pytest.mark.slow
def test_a_killed_server_loses_no_acknowledged_stop(tmp_path):
    """Kill -9 in the middle of many stops, several times, on the same store."""
    db = tmp_path / "people.db"
    fill(db, rides=straight(STOPS), repeat_share=0.0)
    server = Server(db)
    server.start()
    store = StudyStore.open(str(db))
    acknowledged = {}

    def supervise(name):
        client = Client(server.url)
        try:
            client.join(store.invite("comfort", name))
            while ride := client.next_ride():
                answer = client.stop(ride["showing"], 3, 10)
                if answer["on_disk"]:
                    acknowledged[ride["showing"]] = answer["step"]
        except OSError:
            pass  # the server is gone for good
        finally:
            client.close()

    threads = [
        threading.Thread(target=supervise, args=(f"s{i}",), daemon=True)
        for i in range(SUPERVISORS)
    ]
    for thread in threads:
        thread.start()
    for wanted in (15, 50):
        while len(acknowledged) < wanted and any(t.is_alive() for t in threads):
            time.sleep(0.002)
        server.kill()
        before = dict(acknowledged)
        kept = StudyStore.open(str(db))  # readable at once, without repair
        reviews = {s.id: s.review for s in kept.showings("comfort")}
        assert all(reviews[showing].stopped for showing in before)
        kept.close()
        server.start()
    for thread in threads:
        thread.join(timeout=60)
    server.stop()
    # All went on by themselves after each restart, and nothing was counted twice.
    reviews = [s.review for s in store.showings("comfort")]
    assert len(acknowledged) == len(reviews) == SUPERVISORS * STOPS
    assert all(review is not None and review.step == 3 for review in reviews)
    store.close()


@pytest.mark.slow
def test_a_lost_database_is_said_and_nothing_is_lost():
    with postgres() as server:
        store = StudyStore.open(server.new_database())
        store.create_study("comfort", repeat_share=0.0)
        store.add_rides("comfort", straight(2), [False] * 2)
        with application(store) as client:
            ann = join(client, store)
            showing = client.get("/api/next", headers=ann).json()["ride"]["showing"]
            path = f"/api/showings/{showing}/stop"
            body = {"id": "client-id-1", "step": 2, "latency_ms": 40}
            server.crash()
            answer = client.post(path, json=body, headers=ann)
            assert answer.status_code == 503
            assert "does not answer" in answer.json()["error"]
            assert answer.headers["retry-after"]
            server.start()
            answer = client.post(path, json=body, headers=ann)
            assert answer.json() == {"stopped": True, "step": 2, "on_disk": True}
        assert len([s for s in store.showings("comfort") if s.review]) == 1
        store.close()


@contextlib.contextmanager
def locked(db):
    """Another program is in the middle of a long transaction."""
    other = sqlite3.connect(db, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


def test_a_locked_database_answers_soon_and_nothing_is_lost(tmp_path):
    db = str(tmp_path / "people.db")
    fill(db, repeat_share=0.0)
    with StudyStore.open(db, 0.4) as store, application(store) as client:
        ann, bo = join(client, store, "ann"), join(client, store, "bo")
        showing = client.get("/api/next", headers=ann).json()["ride"]["showing"]
        path = f"/api/showings/{showing}/stop"
        body = {"id": "client-id-1", "step": 2, "latency_ms": 40}
        with locked(db):
            for ask in (
                lambda: client.post(path, json=body, headers=ann),
                lambda: client.get("/api/next", headers=bo),
                lambda: client.post("/api/live", json={}, headers=bo),
            ):
                begun = time.monotonic()
                answer = ask()
                assert time.monotonic() - begun < 5
                assert answer.status_code == 503
                assert answer.headers["retry-after"]
            # Who only reads does not wait for who writes.
            assert client.get("/api/me", headers=ann).status_code == 200
        answer = client.post(path, json=body, headers=ann)
        assert answer.json() == {"stopped": True, "step": 2, "on_disk": True}
        assert client.get("/api/next", headers=bo).status_code == 200


def test_a_pool_without_connections_answers_503(database_url):
    with StudyStore.open(database_url, busy_seconds=0.3) as store:
        store.create_study("comfort", repeat_share=0.0)
        store.add_rides("comfort", straight(2), [False] * 2)
        with application(store) as client, contextlib.ExitStack() as held:
            ann = join(client, store)
            showing = client.get("/api/next", headers=ann).json()["ride"]["showing"]
            path = f"/api/showings/{showing}/stop"
            body = {"id": "client-id-1", "step": 2, "latency_ms": 40}
            pool = store.database.engine.pool
            for _ in range(pool.size()):
                held.enter_context(store.database.engine.connect())
            for answer in (
                client.post(path, json=body, headers=ann),
                client.get("/api/me", headers=ann),
            ):
                assert answer.status_code == 503
                assert "does not answer" in answer.json()["error"]
                assert answer.headers["retry-after"]
            held.close()
            answer = client.post(path, json=body, headers=ann)
            assert answer.json() == {"stopped": True, "step": 2, "on_disk": True}


def refused(capsys, *options):
    """What `termdp serve` says when it does not start."""
    with pytest.raises(SystemExit) as exit_info:
        main(["serve", *options])
    assert exit_info.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_a_taken_port_is_said(tmp_path, capsys):
    db = tmp_path / "people.db"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(capsys, "--db", str(db), "--port", str(port))
    assert f"127.0.0.1:{port} cannot be used" in said
    assert not db.exists()


@pytest.mark.parametrize(
    "options, words",
    [
        (("--host", "0.0.0.0", "--no-tokens"), "must not run with --no-tokens"),
        (("--port", "99999"), "expected a port"),
        (("--host", "no.such.host.invalid"), "host's name or address"),
        (("--agents", "/nowhere"), "no such folder"),
        (("--steps", "0"), "expected --steps from 1 to 2000"),
        (("--workers", "0"), "1 to 64 workers"),
        (("--trusted-proxy", "the-proxy"), "expected a proxy's address or network"),
        (("--db", "postgresql+psycopg://x@127.0.0.1:1/y"), "cannot be opened"),
    ],
)
def test_bad_options_are_said(tmp_path, capsys, options, words):
    port = () if "--port" in options else ("--port", "0")
    db = () if "--db" in options else ("--db", str(tmp_path / "p.db"))
    assert words in refused(capsys, *db, *port, *options)


def test_a_folder_without_runs_is_said(tmp_path, capsys):
    db = str(tmp_path / "p.db")
    said = refused(capsys, "--db", db, "--port", "0", "--agents", str(tmp_path))
    assert "found none" in said


def test_the_first_start_prints_tokens_once(tmp_path):
    from termdp.people.server.app import Settings
    from termdp.people.server.serving import prepare

    store = StudyStore.open(str(tmp_path / "p.db"))
    digest, first = prepare(store, Settings(), "http://here")
    again, second = prepare(store, Settings(), "http://here")
    assert first.admin_token and first.invite
    assert (second.admin_token, second.invite) == (None, None)
    assert digest == again
    assert store.invited(first.invite)[0].name == "practice"
    store.close()


def test_the_admin_token_may_be_given(tmp_path, monkeypatch):
    from termdp.people.records import tokens
    from termdp.people.server.serving import admin_token

    store = StudyStore.open(str(tmp_path / "p.db"))
    monkeypatch.setenv("TERMDP_ADMIN_TOKEN", ADMIN)
    assert admin_token(store) == (None, tokens.digest(ADMIN))
    monkeypatch.setenv("TERMDP_ADMIN_TOKEN", "short")
    with pytest.raises(ValueError, match="16 to 128"):
        admin_token(store)
    store.close()
