"""Backup and restore: nothing lost, while people go on; on both databases, and across."""

import json
import stat
import threading
import time

import pytest
from sqlalchemy import select

from people_server import application, fill, serving, straight
from termdp.cli import main
from termdp.people.records import backup as backups
from termdp.people.records.study_store import StudyStore
from termdp.people.records.tables import Base, Showing
from termdp.people.server.client import Client

PEOPLE = 3
RIDES = 20


def in_order(table):
    return select(table).order_by(*table.primary_key)


def rows(url):
    """All rows of all tables but the log of what was done."""
    with StudyStore.open(url) as store, store.database.reading() as session:
        return {
            table.name: [tuple(row) for row in session.execute(in_order(table))]
            for table in Base.metadata.sorted_tables
            if table.name != "audit"
        }


def supervise(server, invite, acknowledged, tokens):
    client = Client(server.url)
    tokens.append(client.join(invite))
    while ride := client.next_ride():
        client.stop(ride["showing"], 2, 10, "why")
        acknowledged.append(ride["showing"])
    client.close()


def test_a_backup_while_people_stop(database_url, tmp_path):
    """What was acknowledged before a backup began is in it; nobody notices."""
    fill(database_url, rides=straight(RIDES), step_ms=20, repeat_share=0.0)
    acknowledged, tokens, backed_up = [], [], []
    with serving(database_url) as server:
        admin = server.admin()
        invites = admin.invite("comfort", [f"p{i}" for i in range(PEOPLE)])
        admin.close()
        threads = [
            threading.Thread(
                target=supervise, args=(server, invite, acknowledged, tokens)
            )
            for invite in invites.values()
        ]
        for thread in threads:
            thread.start()
        while len(acknowledged) < 5:
            time.sleep(0.01)
        while any(thread.is_alive() for thread in threads) and len(backed_up) < 5:
            before = list(acknowledged)
            path = tmp_path / f"{len(backed_up)}.backup"
            backups.backup(database_url, path)
            backed_up.append((path, before))
        for thread in threads:
            thread.join(timeout=120)
        last = tmp_path / "last.backup"
        backups.backup(database_url, last)
        assert len(acknowledged) == PEOPLE * RIDES
    modes = {stat.S_IMODE(p.stat().st_mode) for p in tmp_path.glob("*.backup")}
    assert modes == {0o600}
    for path, before in backed_up:
        with StudyStore.open(str(path)) as store:
            reviewed = {s.id for s in store.showings("comfort") if s.review}
            assert set(before) <= reviewed
    assert 5 <= len(backed_up[0][1]) < PEOPLE * RIDES
    assert rows(str(last)) == rows(database_url)
    # A server on the restored store knows the same logins and goes on from there.
    backups.restore(last, str(tmp_path / "restored.db"))
    with (
        StudyStore.open(str(tmp_path / "restored.db")) as store,
        application(store) as client,
    ):
        known = {"authorization": f"Bearer {tokens[0]}"}
        assert client.get("/api/me", headers=known).json()["reviewed"] == RIDES
        assert client.post("/api/live", json={}, headers=known).is_success


@pytest.mark.parametrize("way", ["sqlite to postgresql", "postgresql to sqlite"])
def test_a_store_moves_from_one_database_to_the_other(way, tmp_path, postgres_server):
    urls = {"sqlite": str(tmp_path / "p.db"), "postgresql": ""}
    urls["postgresql"] = postgres_server.new_database()
    source, target = (urls[word] for word in way.split(" to "))
    fill(source, rides=straight(3))
    with StudyStore.open(source) as store:
        invite = store.invite("comfort", "ann")
        store.next_showing(store.invited(invite)[1].id)
    path = tmp_path / "moved.backup"
    backups.backup(source, path)
    counts = backups.restore(path, target)
    assert (counts["studies"], counts["rides"], counts["showings"]) == (1, 3, 4)
    assert rows(target) == rows(source)
    with StudyStore.open(target) as store:
        # New rows get numbers of their own.
        store.create_study("next")
        assert store.study("next").id == 2
        person = store.invited(invite)[1]
        with store.database.writing() as session:
            session.add(
                Showing(
                    supervisor_id=person.id, ride_id=1, position=77, is_repeat=False
                )
            )
    with pytest.raises(ValueError, match="expected (an empty database|a new file)"):
        backups.restore(path, target)


def test_the_commands_and_what_they_refuse(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fill("people.db")
    main(["studies", "backup", "a.backup"])
    assert "a.backup: 1 studies, 0 reviews" in capsys.readouterr().out
    main(["studies", "restore", "a.backup", "--db", "b.db", "--json"])
    assert json.loads(capsys.readouterr().out)["rows"]["rides"] == 4
    main(["studies", "audit", "--db", "b.db"])
    assert "restored a backup" in capsys.readouterr().out
    assert rows("b.db") == rows("people.db")
    content = (tmp_path / "a.backup").read_bytes()
    middle = len(content) // 2
    (tmp_path / "cut.backup").write_bytes(content[:middle])
    half = content[:4096] + bytes(8192) + content[12288:]
    (tmp_path / "zeros.backup").write_bytes(half)
    (tmp_path / "text.backup").write_text("no backup\n" * 1000)
    (tmp_path / "empty.backup").write_bytes(b"")
    for words, message in (
        (["backup", "a.backup"], "expected a new file"),
        (["backup", "no/where.backup"], "expected a folder"),
        (["backup", "c.backup", "--db", "nosuch.db"], "no such file"),
        (["restore", "nosuch.backup", "--db", "c.db"], "no such file"),
        (["restore", "a.backup", "--db", "b.db"], "expected a new file"),
        (["restore", "cut.backup", "--db", "c.db"], "backup"),
        (["restore", "zeros.backup", "--db", "c.db"], "backup"),
        (["restore", "text.backup", "--db", "c.db"], "not a database"),
        (["restore", "empty.backup", "--db", "c.db"], "studies backup"),
    ):
        with pytest.raises(SystemExit) as exit_info:
            main(["studies", *words])
        assert exit_info.value.code == 2
        said = capsys.readouterr().err
        assert message in said and said.count("\n") == 1
    left = {path.name for path in tmp_path.iterdir()}
    assert not {"c.db", "c.backup", "nosuch.db"} & left
    assert not [name for name in left if "draft" in name]
