"""Many people on one server at once: is any stop lost, and how long until it is kept?

Every person joins, rides along live and stops at a random moment, again and again; all
of them at the same time, in real time, against a real server process on the same machine
(the people take part of its cores too). Run:

    python benchmarks/serve.py --people 200 --seconds 30
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from termdp.people.records.study_store import StudyStore
from termdp.people.server.client import Client

ADMIN = "benchmark-admin-token"
PORT = 8947
ARRIVAL_SECONDS = 5


class Person:
    """Somebody with one open connection; as little work as possible on this side."""

    def __init__(self, invite, rng, log):
        self.invite = invite
        self.rng = rng
        self.log = log
        self.token = None

    async def take_part(self, until):
        """Come some time in the first seconds; ride, stop, again."""
        await asyncio.sleep(self.rng.random() * ARRIVAL_SECONDS)
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", PORT)
        found = await self.post("/api/invite", {"invite": self.invite})
        joining = {"invite": self.invite, "nonce": "n" * 32}
        joining["consent_hash"] = found["consent_hash"]
        self.token = (await self.post("/api/join", joining))["token"]
        number = 0
        while time.monotonic() < until:
            await self.ride(number)
            number += 1
        self.writer.close()

    async def ride(self, number):
        """One ride with a stop at a random moment, in real time."""
        log, rng = self.log, self.rng
        ride = await self.post("/api/live", {}, log["ride_ms"])
        step = rng.randrange(max(1, min(len(ride["actions"]) - 1, 40)))
        log["riding"] += 1
        log["most_riding"] = max(log["most_riding"], log["riding"])
        await asyncio.sleep(step * ride["step_ms"] / 1000)
        log["riding"] -= 1
        body = {"id": f"stop-number-{number}", "step": step}
        body |= {"latency_ms": rng.randrange(200), "client_ms": int(time.time() * 1000)}
        path = f"/api/showings/{ride['showing']}/stop"
        answer = await self.post(path, body, log["stop_ms"])
        log["acknowledged"][ride["showing"]] = answer["step"]

    async def post(self, path, body, times=None):
        """Send a request and read the answer; its time is noted."""
        content = json.dumps(body).encode()
        lines = [f"POST {path} HTTP/1.1", f"host: 127.0.0.1:{PORT}"]
        lines += ["content-type: application/json", f"content-length: {len(content)}"]
        if self.token is not None:
            lines.append(f"authorization: Bearer {self.token}")
        begun = time.perf_counter()
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + content)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        answer = json.loads(await self.reader.readexactly(length))
        if times is not None:
            times.append(1000 * (time.perf_counter() - begun))
        if " 200 " not in head.partition("\r\n")[0]:
            raise RuntimeError(f"{path}: {answer}")
        return answer


async def crowd(invites, seconds):
    """All of them at once."""
    log = {"ride_ms": [], "stop_ms": [], "acknowledged": {}, "riding": 0}
    log["most_riding"] = 0
    until = time.monotonic() + seconds
    people = [Person(invite, random.Random(i), log) for i, invite in enumerate(invites)]
    await asyncio.gather(*(person.take_part(until) for person in people))
    return log


def cpu_seconds(pid):
    """Processor time of a process so far (Linux)."""
    numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


def wait_until_ready():
    """Until the server's drivers have driven their first rides."""
    client = Client(f"http://127.0.0.1:{PORT}")
    while not client.request("GET", "/api/health")["drivers_ready"]:
        time.sleep(0.1)
    client.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--db", help="another database's URL; a file by default")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        db = args.db or str(Path(folder) / "people.db")
        store = StudyStore.open(db)
        store.create_study("load")
        invites = [store.invite("load", f"p{i}") for i in range(args.people)]
        command = [sys.executable, "-m", "termdp", "serve", "--db", db]
        server = subprocess.Popen(
            [*command, "--port", str(PORT)],
            env=os.environ | {"TERMDP_ADMIN_TOKEN": ADMIN},
            stdout=subprocess.DEVNULL,
        )
        try:
            wait_until_ready()
            before = cpu_seconds(server.pid)
            log = asyncio.run(crowd(invites, args.seconds))
            log["server_cpu_s"] = cpu_seconds(server.pid) - before
        finally:
            server.terminate()
            server.wait()
        kept = {
            shown.id: shown.review.step
            for shown in store.showings("load")
            if shown.review is not None and shown.review.stopped
        }
        store.close()
    report(args, log, kept)


def report(args, log, kept):
    lost = [s for s, d in log["acknowledged"].items() if kept.get(s) != d]
    found = {
        "people": args.people,
        "most_riding_at_once": log["most_riding"],
        "stops_acknowledged": len(log["acknowledged"]),
        "stops_in_the_store": len(kept),
        "stops_lost": len(lost),
        "cores": os.cpu_count(),
        "load_of_the_machine": round(os.getloadavg()[0], 1),
        "server_cpu_s": round(log["server_cpu_s"], 1),
        "crowd_cpu_s": round(time.process_time(), 1),
    }
    for name in ("stop_ms", "ride_ms"):
        for q in (50, 99, 100):
            found[f"{name}_p{q}"] = round(float(np.percentile(log[name], q)), 1)
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        for name, value in found.items():
            print(f"{name:24} {value}")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
