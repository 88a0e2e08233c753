"""A stop reaches the disk whatever the server answers first, in a real Chromium."""

import contextlib
import sqlite3

import pytest

from people_server import fill, listening
from termdp.people.records.study_store import StudyStore


def playing(visitor, name):
    """In the middle of a slow ride; returns the statuses of stops, as they come."""
    visitor.sign_in(name)
    statuses = []

    def note(answer):
        if answer.url.endswith("/stop"):
            statuses.append(answer.status)

    visitor.page.on("response", note)
    visitor.open("/review?speed=0.25")
    visitor.page.click("#start")
    visitor.page.wait_for_selector("body[data-state=playing]")
    visitor.past_dead_time()
    return statuses


def stops_of(server, name):
    with StudyStore.open(server.db) as store:
        shown = store.showings("comfort")
        return [s.review for s in shown if s.supervisor.name == name and s.review]


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503])
def test_a_stop_is_sent_again_after_an_answer_that_is_not_final(visit, server, status):
    visitor = visit(hurried=status != 503)
    statuses = playing(visitor, f"again-{status}")
    page, left = visitor.page, [2]

    def answer(route):
        left[0] -= 1
        if left[0] < 0:
            route.continue_()
        else:
            route.fulfill(status=status, body="<p>a proxy's own page</p>")

    page.route("**/stop", answer)
    page.keyboard.press("Space")
    visitor.wait_for("#status:has-text('Saved')")
    assert statuses == [status, status, 200]
    (review,) = stops_of(server, f"again-{status}")
    assert review.stopped


def test_a_final_refusal_is_said_and_not_sent_again(visit, server):
    visitor = visit(hurried=True)
    statuses, asked = playing(visitor, "refused"), []
    page = visitor.page
    page.on("request", lambda request: asked.append(request.url))
    page.route("**/stop", lambda route: route.fulfill(status=403, body="<p>no</p>"))
    page.keyboard.press("Space")
    page.wait_for_selector("#status:has-text('does not allow')")
    visitor.wait(10_000)
    page.evaluate("async () => (await fetch('/api/health')).text()")
    assert [url.rpartition("/")[2] for url in asked] == ["stop", "health"]
    assert statuses == [403]


def test_a_stop_survives_a_locked_database(visit, server):
    """Another program holds the real SQLite file for longer than the server waits."""
    visitor = visit(hurried=True)
    statuses = playing(visitor, "locked")
    page = visitor.page
    with contextlib.closing(sqlite3.connect(server.db, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        page.keyboard.press("Space")
        page.wait_for_selector(".banner:has-text('Trying again')", timeout=5_000)
        assert statuses == [503]
        assert "Saving" in visitor.text("#status")
        other.execute("ROLLBACK")
    visitor.wait_for("#status:has-text('Saved')")
    assert statuses[-1] == 200 and set(statuses) == {503, 200}
    assert len(stops_of(server, "locked")) == 1


def test_a_stop_survives_an_exhausted_pool(visit, tmp_path):
    """All connections of the server's real pool are taken when the stop comes."""
    db = str(tmp_path / "people.db")
    fill(db)
    with StudyStore.open(db, busy_seconds=0.2) as store, listening(store) as server:
        visitor = visit(hurried=True)
        visitor.server = server
        statuses = playing(visitor, "pooled")
        page, engine = visitor.page, store.database.engine
        with contextlib.ExitStack() as held:
            for _ in range(engine.pool.size()):
                held.enter_context(engine.connect())
            page.keyboard.press("Space")
            page.wait_for_selector(".banner:has-text('Trying again')", timeout=5_000)
            assert statuses == [503]
        visitor.wait_for("#status:has-text('Saved')")
        assert set(statuses) == {503, 200}
        visitor.context.close()
