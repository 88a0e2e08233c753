"""People for `serve.py` and `server_attack.py`: they join, ride along, and stop.

All of them live in one process, with as little work as possible on this side. The server
is a real process on the same machine, so the people use some of its cores too.
"""

import asyncio
import contextlib
import json
import os
import random
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from termdp.people.records.study_store import StudyStore

ADMIN = "benchmark-admin-token"
STUDY = "load"
# Answers after which the page asks again.
AGAIN = (408, 425, 429, 500, 502, 503, 504)


class Log:
    """What happened to a crowd."""

    def __init__(self):
        self.ride_ms = []
        self.stop_ms = []
        self.acknowledged = {}
        self.answers = {}
        self.broken = 0
        self.riding = self.most_riding = 0

    def milliseconds(self, what, percentile):
        times = getattr(self, what)
        return float(np.percentile(times, percentile)) if times else float("nan")


class Person:
    """Somebody with one connection, which is opened again when it breaks.

    Args:
        port: the server's port.
        invite: the token of their invite.
        rng: decides when they stop.
        log: what happened, shared by all.
        longest: the most steps before they stop.
    """

    def __init__(self, port, invite, rng, log, longest=40):
        self.port = port
        self.invite = invite
        self.rng = rng
        self.log = log
        self.longest = longest
        self.token = None
        self.writer = None

    async def join(self):
        found = await self.post("/api/invite", {"invite": self.invite})
        body = {"invite": self.invite, "nonce": "n" * 32}
        body["consent_hash"] = found["consent_hash"]
        self.token = (await self.post("/api/join", body))["token"]

    async def take_part(self, until, arrival=0.0):
        """Join at some time in the first seconds; then ride and stop, over and over."""
        await asyncio.sleep(self.rng.random() * arrival)
        if self.token is None:
            await self.join()
        while time.monotonic() < until:
            await self.ride()
        self.hang_up()

    async def ride(self):
        """One ride with a stop at a random moment, in real time."""
        log, rng = self.log, self.rng
        ride = await self.post("/api/live", {}, log.ride_ms)
        step = rng.randrange(max(1, min(len(ride["actions"]) - 1, self.longest)))
        log.riding += 1
        log.most_riding = max(log.most_riding, log.riding)
        await asyncio.sleep(step * ride["step_ms"] / 1000)
        log.riding -= 1
        body = {"id": f"stop-of-{ride['showing']:08}", "step": step}
        body |= {"latency_ms": rng.randrange(200), "client_ms": int(time.time() * 1000)}
        path = f"/api/showings/{ride['showing']}/stop"
        answer = await self.post(path, body, log.stop_ms)
        log.acknowledged[ride["showing"]] = answer["step"]

    async def post(self, path, body, times=None):
        """Send until there is an answer, as the page does; record the whole time."""
        begun, wait = time.perf_counter(), 0.25
        while True:
            try:
                status, answer = await self._send(path, body)
            except (OSError, asyncio.IncompleteReadError, TimeoutError):
                self.log.broken += 1
                self.hang_up()
                status = None
            else:
                self.log.answers[status] = self.log.answers.get(status, 0) + 1
                if status not in AGAIN:
                    break
            await asyncio.sleep(wait)
            wait = min(2 * wait, 3.0)
        if times is not None:
            times.append(1000 * (time.perf_counter() - begun))
        if status != 200:
            raise RuntimeError(f"{path}: {status} {answer}")
        return answer

    async def _send(self, path, body):
        async with asyncio.timeout(15):
            if self.writer is None:
                opened = await asyncio.open_connection("127.0.0.1", self.port)
                self.reader, self.writer = opened
            content = json.dumps(body).encode()
            lines = [f"POST {path} HTTP/1.1", f"host: 127.0.0.1:{self.port}"]
            lines += ["content-type: application/json"]
            lines += [f"content-length: {len(content)}"]
            if self.token is not None:
                lines.append(f"authorization: Bearer {self.token}")
            self.writer.write("\r\n".join([*lines, "", ""]).encode() + content)
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
            answer = json.loads(await self.reader.readexactly(length))
        if "connection: close" in head:
            self.hang_up()
        return int(head.split(" ", 2)[1]), answer

    def hang_up(self):
        if self.writer is not None:
            self.writer.close()
            self.writer = None


def people(port, invites, log, longest=40):
    return [
        Person(port, invite, random.Random(i), log, longest)
        for i, invite in enumerate(invites)
    ]


def stops_in(store):
    """The steps of all stops that are kept, by showing."""
    return {
        shown.id: shown.review.step
        for shown in store.showings(STUDY)
        if shown.review is not None and shown.review.stopped
    }


def cpu_seconds(pid):
    """Processor time so far of a process and those it started (Linux)."""
    total = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            numbers = (folder / "stat").read_text().rpartition(")")[2].split()
            if pid in (int(folder.name), int(numbers[1])):
                total += (int(numbers[11]) + int(numbers[12])) / os.sysconf(
                    "SC_CLK_TCK"
                )
    return total


class Service:
    """A server process on a store.

    Args:
        db: the store.
        workers: how many processes; None leaves the option out.
        source: folder with the package's sources; by default those of this process.
        files: how many files the server may have open: by default, and at most.
        options: further options of the command.
    """

    def __init__(self, db, workers=None, source=None, files=None, options=()):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = [sys.executable, "-m", "termdp", "serve", "--db", db]
        if workers is not None:
            command += ["--workers", str(workers)]
        environment = os.environ | {"TERMDP_ADMIN_TOKEN": ADMIN}
        if source is not None:
            environment["PYTHONPATH"] = str(source)
        limit = None if files is None else lambda: _limit_files(files)
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port), *options],
            env=environment,
            stdout=subprocess.DEVNULL,
            preexec_fn=limit,
            # Ctrl-C reaches only this process, which then ends the server. The scheduler
            # treats the server as a program of its own.
            start_new_session=True,
        )

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def is_ready(self):
        """Whether it answers and its drivers have driven their first rides."""
        request = (
            b"GET /api/health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n"
        )
        try:
            with socket.create_connection(("127.0.0.1", self.port), 2) as connection:
                connection.sendall(request + b"\r\n")
                answer = b""
                while part := connection.recv(4096):
                    answer += part
        except OSError:
            return False
        return b'"drivers_ready":true' in answer

    def wait_until_ready(self, seconds=120):
        until = time.monotonic() + seconds
        while not self.is_ready():
            if time.monotonic() > until or self.process.poll() is not None:
                return False
            time.sleep(0.2)
        return True


def _limit_files(limits):
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@contextlib.contextmanager
def study(num_people, db=None):
    """A store with a study and invites: `(db, store, invites)`."""
    with tempfile.TemporaryDirectory() as folder:
        url = db or str(Path(folder) / "people.db")
        with StudyStore.open(url) as store:
            store.create_study(STUDY)
            yield url, store, [store.invite(STUDY, f"p{i}") for i in range(num_people)]
