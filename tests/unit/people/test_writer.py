"""The writer of stops: one transaction for all that wait."""

import threading

import pytest
from sqlalchemy import text

from termdp.people.records.database import Database
from termdp.people.records.tables import Setting
from termdp.people.server.writer import Writer


@pytest.fixture
def database(database_url):
    database = Database.open(database_url)
    yield database
    database.close()


def add(key):
    def job(session):
        session.add(Setting(key=key, value="x"))
        session.flush()
        return key

    return job


class Held:
    """A job that keeps the writer busy, so that the next ones wait together."""

    def __init__(self, writer):
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.future = writer.submit(self.wait)
        assert self.begun.wait(30)

    def wait(self, session):
        self.begun.set()
        assert self.go_on.wait(30)

    def release(self):
        self.go_on.set()
        self.future.result(timeout=30)


def keys(database):
    with database.reading() as session:
        return set(session.scalars(text("SELECT key FROM settings")))


def test_what_has_a_result_is_committed(database):
    writer = Writer(database)
    futures = [writer.submit(add(f"k{i}")) for i in range(50)]
    for number, future in enumerate(futures):
        assert future.result(timeout=30) == f"k{number}"
        assert f"k{number}" in keys(database)
    writer.close()


def test_a_refused_job_undoes_only_itself(database):
    writer = Writer(database)
    held = Held(writer)

    def refuse(session):
        add("half")(session)
        raise ValueError("no")

    outcomes = [writer.submit(job) for job in (add("a"), refuse, add("b"))]
    held.release()
    assert outcomes[0].result(timeout=30) == "a"
    with pytest.raises(ValueError, match="no"):
        outcomes[1].result(timeout=30)
    assert outcomes[2].result(timeout=30) == "b"
    assert keys(database) == {"a", "b"}
    writer.close()


def test_a_failed_commit_fails_all_of_them(database):
    writer = Writer(database)
    held = Held(writer)

    def broken(session):
        session.execute(text("SELECT * FROM no_such_table"))

    outcomes = [writer.submit(job) for job in (add("a"), broken)]
    held.release()
    for future in outcomes:
        with pytest.raises(Exception, match="no_such_table"):
            future.result(timeout=30)
    assert keys(database) == set()
    assert writer.submit(add("later")).result(timeout=30) == "later"
    writer.close()
