"""Several real worker processes on one database."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from people_server import ADMIN, Server, straight
from termdp.people.records.study_store import StudyStore
from termdp.people.server.client import Client

SUPERVISORS = 4
RIDES = 12


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
        finally:
            server.stop()
    assert server.process.returncode in (0, -signal.SIGTERM)
    recorded = [s for s in shown if not s.ride.live]
    live = [s for s in shown if s.ride.live]
    # Nothing is missing, and no two got the same place or number.
    assert len(recorded) == SUPERVISORS * RIDES
    assert all(s.review is not None and s.review.stopped for s in shown)
    assert {s.id for s in shown} == acknowledged
    assert len({(s.supervisor_id, s.position) for s in shown}) == len(shown)
    assert len({s.ride.number for s in live}) == len(live) == SUPERVISORS * RIDES


def _review_all(server, invites):
    """Everybody stops all recorded rides, and as many live ones, in two tabs."""
    acknowledged, failures, served = set(), [], set()

    def recorded(token):
        while True:
            client = Client(server.url, token)
            ride = client.next_ride()
            if ride is None:
                return
            client.close()
            stop(token, ride)

    def live(token):
        for _ in range(RIDES):
            client = Client(server.url, token)
            ride = client.live_ride()
            client.close()
            stop(token, ride)

    def stop(token, ride):
        client = Client(server.url, token)
        if client.stop(ride["showing"], 0)["on_disk"]:
            acknowledged.add(ride["showing"])
        client.close()

    def guarded(work, token):
        try:
            work(token)
        except Exception as error:
            failures.append(error)

    tokens = []
    for invite in invites:
        client = Client(server.url)
        tokens.append(client.join(invite))
        client.close()
    jobs = [(work, token) for token in tokens for work in (recorded, live)]
    threads = [threading.Thread(target=guarded, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    first, second = children(server.process.pid)
    while len(acknowledged) < 10 and any(t.is_alive() for t in threads):
        time.sleep(0.01)
    os.kill(first, signal.SIGKILL)
    for thread in threads:
        thread.join(timeout=120)
    assert failures == []
    served.update(children(server.process.pid))
    assert second in served and first not in served
    assert Client(server.url, ADMIN).request("GET", "/api/admin/studies")["studies"]
    return acknowledged
