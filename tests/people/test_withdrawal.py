"""Leaving a study: every trace, or the stops without the person; and one's own data."""

import json
import stat
import threading

import pyarrow.parquet as pq
import pytest
from sqlalchemy import select, text

from people_server import application, fill, join, serving, straight
from termdp.cli import main
from termdp.people.records import audit, dataset
from termdp.people.records.study_files import export_study, import_study
from termdp.people.records.study_store import NotFoundError, StudyStore, new_study
from termdp.people.records.tables import Base
from termdp.people.records.withdrawal import forget
from termdp.people.server.client import Client

NAME = "annabel-unmistakable"
REASON = "because of the purple unicorn"
TEXTS = (NAME, REASON)


@pytest.fixture
def store(database_url):
    """A study with two people who stopped, drove and rode along."""
    with StudyStore.open(database_url) as store:
        study = new_study("comfort", step_ms=20, repeat_share=0.5)
        store.begin_study(study, straight(6), [False] * 6)
        with application(store) as client:
            for name in (NAME, "bo"):
                take_part(client, join(client, store, name))
        yield store


def take_part(client, headers):
    for number in range(4):
        ride = client.get("/api/next", headers=headers).json()["ride"]
        body = {"id": f"client-id-{number}", "step": 2, "latency_ms": 5}
        body |= {"reason": REASON, "client_ms": 77}
        path = f"/api/showings/{ride['showing']}"
        assert client.post(f"{path}/stop", json=body, headers=headers).is_success
        if number == 0:  # taken back, then stopped again
            wrong = {"id": "client-id-undo", "stop": body["id"]}
            for _ in range(2):  # the answer may have been lost
                answer = client.post(f"{path}/mistake", json=wrong, headers=headers)
                assert answer.is_success
            body["id"] = "client-id-again"
            assert client.post(f"{path}/stop", json=body, headers=headers).is_success
    for number in range(2):  # one of the two stays without an answer
        ride = client.post("/api/live", json={}, headers=headers).json()
        body = {"id": f"client-id-{number}", "step": 0, "latency_ms": 5}
        path = f"/api/showings/{ride['showing']}/stop"
        if number:
            assert client.post(path, json=body, headers=headers).is_success
    body = {"id": "client-id-9", "seed": 3, "actions": "00"}
    assert client.post("/api/drives", json=body, headers=headers).is_success


def rows(store):
    """Everything in the store, as text, by table."""
    with store.database.reading() as session:
        return {
            table.name: [str(tuple(row)) for row in session.execute(select(table))]
            for table in Base.metadata.sorted_tables
        }


def sound(store):
    """No row points to one that is gone."""
    if store.database.engine.dialect.name == "sqlite":
        with store.database.reading() as session:
            assert session.execute(text("PRAGMA foreign_key_check")).all() == []
    record = rows(store)
    assert record["reviews"], "the other person's reviews must stay"


def others(store):
    """What the other person has, which nobody else may change."""
    return [
        (s.id, s.ride.number, s.position, s.shown_ms, s.review and s.review.reason)
        for s in store.showings("comfort")
        if s.supervisor.name == "bo"
    ]


def test_every_trace_is_gone(store, tmp_path):
    before, bo = rows(store), others(store)
    gone = forget(store, "comfort", NAME)
    assert (gone.reviews, gone.drives, gone.kept_as) == (5, 1, None)
    after = rows(store)
    assert NAME not in json.dumps(after)
    # Of each table, exactly this person's rows.
    lost = {name: len(before[name]) - len(after[name]) for name in before}
    assert lost == {
        "settings": 0,
        "studies": 0,
        "supervisors": 1,
        "rides": 2,
        "showings": 11,
        "reviews": 5,
        "mistakes": 1,
        "drives": 1,
        "rounds": 0,
        "audit": -1,
    }
    assert others(store) == bo
    sound(store)
    # An export made now is clean, and whole.
    path = tmp_path / "clean.parquet"
    export_study(store, "comfort", path)
    assert not any(word.encode() in path.read_bytes() for word in [NAME])
    assert [s.name for s in dataset.read(path).supervisors] == ["bo"]
    with pytest.raises(NotFoundError, match="expected a supervisor of comfort"):
        forget(store, "comfort", NAME)


def test_the_stops_may_stay_without_the_person(store, tmp_path):
    bo = others(store)
    gone = forget(store, "comfort", NAME, keep_stops=True)
    assert (gone.reviews, gone.kept_as) == (5, "withdrawn-1")
    assert NAME not in json.dumps(rows(store))
    assert others(store) == bo
    sound(store)
    mine = [s for s in store.showings("comfort") if s.supervisor.name != "bo"]
    assert len(mine) == 5 and all(s.review.stopped for s in mine)
    for showing in mine:
        review = showing.review
        assert (review.reason, review.skew_ms, showing.shown_ms) == (None, None, None)
        assert review.created_ms % 86_400_000 == 0
        assert not review.client_id.startswith("client-id")
    person = mine[0].supervisor
    hashes = (person.token_hash, person.invite_hash, person.consent_hash)
    assert (*hashes, person.joined_ms) == (None,) * 4
    path = tmp_path / "kept.parquet"
    export_study(store, "comfort", path)
    with StudyStore.open(str(tmp_path / "other.db")) as other:
        import_study(other, path)
        assert [row["stops"] for row in other.studies()] == [10]
    # The next one gets another name, and nobody is invited under the first.
    assert forget(store, "comfort", "bo", keep_stops=True).kept_as == "withdrawn-2"
    with pytest.raises(ValueError, match="given to those who withdrew"):
        store.invite("comfort", "withdrawn-1")


def test_nothing_remains_in_the_files_of_sqlite(tmp_path):
    """Read as bytes, while a server runs on them; the button is pressed over HTTP."""
    db = tmp_path / "people.db"
    fill(db, rides=straight(4), step_ms=20)

    def found():
        files = [p for p in tmp_path.iterdir() if p.name.startswith("people.db")]
        content = b"".join(p.read_bytes() for p in files)
        return [word for word in TEXTS if word.encode() in content]

    with serving(db) as server:
        admin = server.admin()
        client = Client(server.url)
        client.join(admin.invite("comfort", [NAME])[NAME])
        while ride := client.next_ride():
            client.stop(ride["showing"], 2, 5, REASON)
        assert found() == list(TEXTS)
        mine = client.request("GET", "/api/me/data")
        assert mine["person"]["name"] == NAME and len(mine["showings"]) == 5
        assert mine["showings"][0]["review"]["reason"] == REASON
        assert "driver" not in json.dumps(mine) and "hash" not in str(mine.keys())
        answer = client.request("POST", "/api/withdraw", {"keep_stops": False})
        assert answer == {"reviews": 5, "kept": False}
        assert found() == []
        with pytest.raises(ValueError, match="join by your invite link"):
            client.me()
        log = admin.request("GET", "/api/admin/audit")["entries"]
        assert [row["what"] for row in log[:2]] == ["withdrew", "invited"]
        assert (log[0]["who"], log[0]["person"]) == ("participant", audit.WITHDRAWN)
        assert (log[1]["who"], log[1]["person"]) == ("admin", audit.WITHDRAWN)
        client.close()
        admin.close()


def test_leaving_in_the_middle_of_ones_own_stops(database_url):
    """Another program forgets a person whose browser goes on: no rest, no failure."""
    with (
        StudyStore.open(database_url) as store,
        StudyStore.open(database_url) as other,
        application(store) as client,
    ):
        store.begin_study(new_study("comfort", step_ms=20), straight(40), [False] * 40)
        people = {name: join(client, store, name) for name in (NAME, "bo")}
        codes = {name: [] for name in people}
        begun = threading.Event()

        def supervise(name, headers):
            for number in range(40):
                answer = client.post("/api/live", json={}, headers=headers)
                codes[name].append(answer.status_code)
                if answer.is_success:
                    path = f"/api/showings/{answer.json()['showing']}/stop"
                    body = {"id": f"client-id-{number}", "step": 0, "latency_ms": 5}
                    answer = client.post(path, json=body, headers=headers)
                    codes[name].append(answer.status_code)
                if number == 5:
                    begun.set()

        threads = [threading.Thread(target=supervise, args=p) for p in people.items()]
        for thread in threads:
            thread.start()
        begun.wait(timeout=60)
        forget(other, "comfort", NAME)
        for thread in threads:
            thread.join()
        assert set(codes["bo"]) == {200}
        assert set(codes[NAME]) <= {200, 401, 404, 409}
        assert NAME not in json.dumps(rows(store))
        assert {s.supervisor.name for s in store.showings("comfort")} == {"bo"}
        sound(store)


def test_the_commands(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with StudyStore.open("people.db") as store:
        study = new_study("comfort", step_ms=20)
        store.begin_study(study, straight(6), [False] * 6)
        with application(store) as client:
            for name in (NAME, "bo", "cy"):
                take_part(client, join(client, store, name))
    main(["studies", "person", "comfort", NAME, "--out", "mine"])
    assert "mine: 5 reviews" in capsys.readouterr().out
    data = json.loads((tmp_path / "mine/person.json").read_text())
    assert data["person"]["name"] == NAME and len(data["drives"]) == 1
    assert len([s for s in data["showings"] if s["review"]]) == 5
    assert [row["what"] for row in data["audit"]] == ["invited"]
    assert "agree" in json.dumps(data) or (tmp_path / "mine/consent.txt").read_text()
    modes = {stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "mine").iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE((tmp_path / "mine").stat().st_mode) == 0o700
    main(["studies", "forget", "comfort", NAME, "--json"])
    assert json.loads(capsys.readouterr().out) == {
        "reviews": 5,
        "drives": 1,
        "kept_as": None,
    }
    main(["studies", "forget", "comfort", "bo", "--keep-stops"])
    assert "5 reviews kept as withdrawn-1" in capsys.readouterr().out
    main(["studies", "export", "comfort", "out.parquet"])
    names = set(pq.read_table("out.parquet")["supervisor"].to_pylist())
    assert names == {"withdrawn-1", "cy"}
    capsys.readouterr()
    main(["studies", "audit", "comfort", "--json"])
    log = json.loads(capsys.readouterr().out)
    assert [row["what"] for row in log] == [
        "exported",
        "withdrew; stops kept without the name",
        "withdrew",
        "handed out a person's data",
        *["invited"] * 3,
        "created with 6 rides",
    ]
    assert all("(command)" in row["who"] for row in log)
    assert NAME not in json.dumps(log) and '"cy"' in json.dumps(log)
    main(["studies", "audit"])
    assert "UTC" in capsys.readouterr().out
    for words, message in (
        (["forget", "comfort", NAME], "expected a supervisor of comfort"),
        (["forget", "nosuch", NAME], "got 'nosuch'"),
        (["person", "comfort", "cy", "--out", "mine"], "expected a new folder"),
        (["person", "comfort", "cy", "--out", "a/b"], "expected a folder for b"),
        (["audit", "nosuch"], "got 'nosuch'"),
    ):
        with pytest.raises(SystemExit) as exit_info:
            main(["studies", *words])
        assert exit_info.value.code == 2
        assert message in capsys.readouterr().err
