"""Who gets in, for how long, and what is believed: invites, tokens, files' modes."""

import os
import stat
import subprocess
import sys

import pytest

from people_server import ADMIN, application, join, straight
from termdp.cli import main
from termdp.people.records import tokens
from termdp.people.records.study_store import StudyStore, new_study
from termdp.people.records.tables import Showing, Supervisor
from termdp.people.server import serving

INVITES = "/api/admin/studies/comfort/invites"


def refused(response, status, words):
    assert response.status_code == status, response.text
    assert words in response.json()["error"]


def age(store, days, *columns):
    """Make everybody's links or logins older than they are."""
    with store.database.writing() as session:
        for person in session.query(Supervisor):
            for column in columns:
                was = getattr(person, column)
                if was is not None:
                    setattr(person, column, was - int(days * tokens.MS_PER_DAY))


# Invites


def test_invites_are_made_for_all_names_or_for_none(client, store, admin):
    first = client.post(INVITES, json={"names": ["ann"]}, headers=admin).json()
    link = {"invite": first["invites"]["ann"]}
    for names in (["ann", "a b"], ["ann", "withdrawn-1"], ["ann", "x" * 64, "../u"]):
        answer = client.post(INVITES, json={"names": names}, headers=admin)
        assert answer.status_code == 422
    # The first link still works, and nobody new was added.
    assert client.post("/api/invite", json=link).json()["name"] == "ann"
    assert [person.name for person in store.supervisors("comfort")] == ["ann"]


def test_a_new_invite_ends_the_old_login_at_once(client, store, admin, ann):
    assert client.get("/api/me", headers=ann).status_code == 200
    made = client.post(INVITES, json={"names": ["ann"]}, headers=admin).json()
    refused(client.get("/api/me", headers=ann), 401, "join by your invite link")
    again = client.post("/api/invite", json={"invite": made["invites"]["ann"]})
    assert again.json()["name"] == "ann"


def test_a_store_that_is_asked_by_another_program_sees_it_too(store):
    token = store.invite("comfort", "ann")
    with application(store) as client:
        headers = join(client, store, "ann")
        assert store.supervisor_of(headers["authorization"].split()[1]) is not None
        with StudyStore.open(str(store.database.engine.url.database)) as other:
            other.invite("comfort", "ann")
        assert store.supervisor_of(headers["authorization"].split()[1]) is None
    assert token != headers["authorization"].split()[1]


# Age


def test_logins_and_links_grow_old(store):
    with application(store, token_days=7) as client:
        ann = join(client, store, "ann")
        invite = {"invite": store.invite("comfort", "bo")}
        age(store, 6.9, "token_ms", "invite_ms")
        client.app.state.known.clear()
        assert client.get("/api/me", headers=ann).status_code == 200
        assert client.post("/api/invite", json=invite).status_code == 200
        age(store, 0.2, "token_ms", "invite_ms")
        client.app.state.known.clear()
        refused(client.get("/api/me", headers=ann), 401, "older than 7 days")
        refused(client.post("/api/invite", json=invite), 404, "older than 7 days")
        body = {**invite, "nonce": "n" * 24, "consent_hash": "0" * 64}
        refused(client.post("/api/join", json=body), 404, "older than 7 days")


@pytest.mark.parametrize("days", ["0", "-1", "nan", "1e9"])
def test_impossible_ages_are_refused(tmp_path, capsys, days):
    with pytest.raises(SystemExit) as exit_info:
        main(["serve", "--db", str(tmp_path / "p.db"), f"--token-days={days}"])
    assert exit_info.value.code == 2
    assert "expected --token-days" in capsys.readouterr().err
    assert not (tmp_path / "p.db").exists()


def test_signing_out_ends_the_login_and_its_link(client, store):
    invite = store.invite("comfort", "ann")
    text = client.post("/api/invite", json={"invite": invite}).json()
    body = {"invite": invite, "nonce": "n" * 24, "consent_hash": text["consent_hash"]}
    token = client.post("/api/join", json=body).json()["token"]
    ann = {"authorization": f"Bearer {token}"}
    assert client.post("/api/sign-out", json={}, headers=ann).status_code == 200
    refused(client.get("/api/me", headers=ann), 401, "join by your invite link")
    # Not even the same browser gets in by the used link.
    refused(client.post("/api/join", json=body), 404, "not valid")


# Files and addresses


@pytest.fixture
def careless():
    """What most machines have."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder):
    return {p.name: oct(stat.S_IMODE(p.stat().st_mode)) for p in folder.iterdir()}


def test_a_store_is_for_its_owner_alone(tmp_path, careless):
    with StudyStore.open(str(tmp_path / "people.db")) as store:
        store.create_study("comfort")
        found = modes(tmp_path)
        assert {"people.db", "people.db-wal", "people.db-shm"} == set(found)
        assert set(found.values()) == {"0o600"}


def test_an_old_store_becomes_so(tmp_path, careless):
    StudyStore.open(str(tmp_path / "people.db")).close()
    (tmp_path / "people.db").chmod(0o644)
    with StudyStore.open(str(tmp_path / "people.db")):
        assert set(modes(tmp_path).values()) == {"0o600"}


def test_a_file_that_is_no_store_keeps_its_mode(tmp_path, careless):
    path = tmp_path / "notes.db"
    path.write_text("not a database, but dear to somebody\n" * 100)
    with pytest.raises(OSError, match="not a database"):
        StudyStore.open(str(path))
    assert modes(tmp_path) == {"notes.db": "0o644"}


def test_plain_http_that_others_can_reach_is_said_at_the_start(tmp_path):
    command = [sys.executable, "-m", "termdp", "serve", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--db", str(tmp_path / "p.db"), "--host", "0.0.0.0"],
        env=os.environ | {"TERMDP_ADMIN_TOKEN": ADMIN},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert "Backseat Driver: http" in process.stdout.readline()
    process.stdout.readline()  # the invite of a new store
    said = process.stderr.readline()
    assert said.startswith("warning: 0.0.0.0") and "plain HTTP" in said
    process.terminate()
    _, rest = process.communicate(timeout=30)
    assert "plain HTTP" not in rest


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_plain_http_is_said_only_where_others_can_reach_it(
    tmp_path, capsys, monkeypatch, host
):
    """The command alone; tests of attacks read what a real server says."""

    def serve(db, host, port, agents, settings, workers, on_start, beside):
        on_start(serving.Opening(f"http://{host}:{port}", None, None))

    monkeypatch.setattr(serving, "serve", serve)
    main(["serve", "--db", str(tmp_path / "p.db"), "--host", host])
    out, said = capsys.readouterr()
    assert f"Backseat Driver: http://{host}" in out
    assert ("plain HTTP" in said) == (host == "0.0.0.0")


# What is believed


@pytest.fixture
def slow(tmp_path):
    """A study whose steps are shown for five seconds each."""
    with StudyStore.open(str(tmp_path / "slow.db")) as store:
        store.begin_study(
            new_study("comfort", step_ms=5000, repeat_share=0),
            straight(4),
            [False] * 4,
        )
        yield store


def send(client, headers, showing, what, **body):
    path = f"/api/showings/{showing}/{what}"
    return client.post(path, json={"id": "client-id-1", **body}, headers=headers)


def shown_ago(store, showing, seconds):
    with store.database.writing() as session:
        session.get_one(Showing, showing).shown_ms -= int(1000 * seconds)


def test_what_was_not_on_screen_yet_cannot_be_reviewed(slow):
    with application(slow) as client:
        ann = join(client, slow, "ann")
        showing = client.get("/api/next", headers=ann).json()["ride"]["showing"]
        stop = {"step": 4, "latency_ms": 10}
        answer = send(client, ann, showing, "stop", **stop)
        refused(answer, 422, "step 4 cannot have been on screen")
        refused(send(client, ann, showing, "finish"), 422, "step 5 cannot have been")
        # Twice as fast as usual is what the page offers: 4 steps in 10 seconds.
        shown_ago(slow, showing, 8)
        refused(send(client, ann, showing, "stop", **stop), 422, "cannot have been")
        shown_ago(slow, showing, 2)
        assert send(client, ann, showing, "stop", **stop).status_code == 200


def test_a_ride_that_was_never_shown_cannot_be_reviewed(slow):
    with application(slow) as client:
        ann = join(client, slow, "ann")
        first = client.get("/api/next", headers=ann).json()["ride"]["showing"]
        planned = [s.id for s in slow.showings("comfort")]
        later = next(number for number in planned if number != first)
        answer = send(client, ann, later, "stop", step=0, latency_ms=0)
        refused(answer, 422, "not fetched yet")
        assert not any(s.review for s in slow.showings("comfort"))


def test_simulated_passengers_need_no_screen(slow):
    with application(slow) as client:
        invite = slow.invite("comfort", "simulated-ada", "simulated")
        text = client.post("/api/invite", json={"invite": invite}).json()
        hashed = {"nonce": "n" * 24, "consent_hash": text["consent_hash"]}
        token = client.post("/api/join", json={"invite": invite, **hashed}).json()
        ada = {"authorization": f"Bearer {token['token']}"}
        showing = client.get("/api/next", headers=ada).json()["ride"]["showing"]
        assert send(client, ada, showing, "finish").status_code == 200


# Nothing half-done


@pytest.mark.parametrize(
    "options, words",
    [
        (["--rides", "2", "--steps", "0"], "1 to 10000 steps per ride, got 0"),
        (["--rides", "-1"], "0 rides or more"),
        (["--invite", "ann", "withdrawn-1"], "given to those who withdrew"),
        (["--step-ms", "1"], "expected step_ms from 20 to 5000"),
    ],
)
def test_a_study_that_cannot_be_created_is_not_there(tmp_path, capsys, options, words):
    db = str(tmp_path / "p.db")
    StudyStore.open(db).close()
    create = ["studies", "create", "x", "--db", db]
    with pytest.raises(SystemExit) as exit_info:
        main([*create, *options])
    assert exit_info.value.code == 2
    assert words in capsys.readouterr().err
    with StudyStore.open(db) as store:
        assert store.studies() == []


def test_the_admin_page_creates_a_study_whole_or_not_at_all(client, store, admin):
    post = lambda body: client.post(  # noqa: E731
        "/api/admin/studies", json=body, headers=admin
    )
    refused(post({"name": "new", "rides": 3, "steps": 0}), 422, "steps to be")
    assert [row["name"] for row in store.studies()] == ["comfort"]
    assert post({"name": "new", "rides": 3, "steps": 10}).status_code == 201
    assert len(store.rides("new")) == 3
