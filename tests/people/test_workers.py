"""Several real worker processes on one database."""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from people_server import Server, straight
from termdp.people.records.study_store import StudyStore
from termdp.people.server.client import Client

SUPERVISORS = 4
RIDES = 6


def children(pid):
    """The processes that a process has started (Linux), the workers among them."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [
        int(child)
        for child in found
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


@pytest.mark.slow
def test_two_workers_share_one_database(database_url):
    """Each request on a connection of its own; one of the workers is killed."""
    with StudyStore.open(database_url) as store:
        store.create_study("comfort", repeat_share=0.0)
        store.add_rides("comfort", straight(RIDES), [False] * RIDES)
        invites = [store.invite("comfort", f"s{i}") for i in range(SUPERVISORS)]
        server = Server(database_url, "--workers", "2")
        server.start()
        try:
            acknowledged = _review_all(server, invites)
            shown = store.showings("comfort")
            workers = _two_workers(server)
        finally:
            server.kill()
    _wait_for_end(workers)  # they do not outlive their parent
    recorded = [s for s in shown if not s.ride.live]
    live = [s for s in shown if s.ride.live]
    # Nothing is missing, and no two got the same place or number.
    assert len(recorded) == SUPERVISORS * RIDES
    assert all(s.review is not None and s.review.stopped for s in shown)
    assert {s.id for s in shown} == acknowledged
    assert len({(s.supervisor_id, s.position) for s in shown}) == len(shown)
    assert len({s.ride.number for s in live}) == len(live) == SUPERVISORS * RIDES


def _two_workers(server):
    """The workers once there are two: a killed one is replaced within a second or so."""
    until = time.monotonic() + 30
    while len(workers := children(server.process.pid)) != 2:
        assert time.monotonic() < until
        time.sleep(0.05)
    return workers


def _is_running(pid):
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        )
    except OSError:
        return False


def _wait_for_end(processes):
    until = time.monotonic() + 30
    while any(_is_running(pid) for pid in processes):
        assert time.monotonic() < until
        time.sleep(0.05)


def asked(server, token, request):
    """The answer to one request on a connection of its own: any worker may give it."""
    with contextlib.closing(Client(server.url, token)) as client:
        return request(client)


class Reviews:
    """Everybody stops all recorded rides, and as many live ones in a second tab."""

    def __init__(self, server, tokens):
        self.server = server
        self.acknowledged = set()
        self.failures = []
        self.live_left = threading.Semaphore(SUPERVISORS * RIDES)
        self.threads = [
            threading.Thread(target=self._work, args=(token, request))
            for token in tokens
            for request in (Client.next_ride, self._live)
        ]

    def _live(self, client):
        return client.live_ride() if self.live_left.acquire(blocking=False) else None

    def _work(self, token, next_ride):
        try:
            while (ride := asked(self.server, token, next_ride)) is not None:
                number = ride["showing"]
                answer = asked(self.server, token, lambda c, n=number: c.stop(n, 0))
                if answer["on_disk"]:
                    self.acknowledged.add(number)
        except Exception as error:
            self.failures.append(error)


def _review_all(server, invites):
    """What was acknowledged, though one of the workers was killed meanwhile."""
    tokens = [asked(server, None, lambda c, i=invite: c.join(i)) for invite in invites]
    reviews = Reviews(server, tokens)
    for thread in reviews.threads:
        thread.start()
    first, second = _two_workers(server)
    while len(reviews.acknowledged) < 10 and not reviews.failures:
        time.sleep(0.01)
    os.kill(first, signal.SIGKILL)
    for thread in reviews.threads:
        thread.join(timeout=120)
    assert reviews.failures == []
    now = children(server.process.pid)
    assert second in now and first not in now
    return reviews.acknowledged
