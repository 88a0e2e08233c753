"""Do participants notice an attack from outside? Prints a table; exits 1 if they do.

People ride along and stop in real time while strangers attack a real server. All of them
have the same address. That is the worst case: a proxy that the server was not told of.
Every promise of docs/people_server.md about attacks is one row. If the first row, without
an attack, is broken, the machine is too busy to tell. Run:

    python benchmarks/server_attack.py                  # about 4 minutes
    python benchmarks/server_attack.py --only half_open startup
"""

import argparse
import asyncio
import os
import resource
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

from crowd import Log, Service, people, stops_in, study

HERE = Path(__file__).parent
# Attack and how strong: connections, or requests a second.
UNDER_ATTACK = {
    "nothing": None,
    "half_open": 1500,
    "slow_body": 1500,
    "silent": 1500,
    "requests": 500,
    "flood_and_half_open": 500,
}
STOP_MS = 250
LOCKED_SECONDS = 10
ANSWER_SECONDS = 5
STARTUP_SECONDS = 60
FEW_FILES = 1024
_, MOST_FILES = resource.getrlimit(resource.RLIMIT_NOFILE)


class Attack:
    """An attack as a process; it begins before the block and ends with it."""

    def __init__(self, name, port, count):
        self.command = [sys.executable, HERE / "attacks.py", name, str(port)]
        self.command += ["--count", str(count)]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, start_new_session=True)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def crowd_under(args, name, count, most_files=MOST_FILES):
    """People who joined before the attack begins, and go on during it."""
    with study(args.people) as (db, store, invites):
        # As on most machines: few files by default, and more for a server that asks.
        files = (FEW_FILES, most_files)
        service = Service(db, args.workers, args.source, files)
        try:
            assert service.wait_until_ready(), "the server did not start"
            log, everybody = Log(), people(service.port, invites, Log(), longest=20)

            async def inside():
                await asyncio.gather(*(person.join() for person in everybody))
                if count is not None:
                    attack.__enter__()
                    await asyncio.sleep(5)
                for person in everybody:
                    person.log = log
                until = time.monotonic() + args.seconds
                riding = (person.take_part(until, arrival=2) for person in everybody)
                await asyncio.wait_for(asyncio.gather(*riding), args.seconds + 60)

            attack = Attack(name, service.port, count or 0)
            try:
                asyncio.run(inside())
            except TimeoutError:
                log.stop_ms.append(float("inf"))
            finally:
                if count is not None:
                    attack.__exit__()
        finally:
            service.stop()
        kept = stops_in(store)
    lost = sum(kept.get(s) != step for s, step in log.acknowledged.items())
    p99 = log.milliseconds("stop_ms", 99)
    found = f"{len(log.stop_ms)} stops, p50 {log.milliseconds('stop_ms', 50):.0f} ms, "
    found += (
        f"p99 {p99:.0f} ms, {lost} lost, {log.broken} broken, {_refused(log)} refused"
    )
    holds = p99 < STOP_MS and not lost and not _refused(log)
    strength = "no attack" if count is None else f"{name} {count}"
    return strength, f"stops p99 < {STOP_MS} ms, none lost", found, holds


def few_files(args):
    """The worst attack on a server that cannot get more files."""
    strength, *rest = crowd_under(args, "flood_and_half_open", 500, FEW_FILES)
    return f"{strength}, {FEW_FILES} files", *rest


def _refused(log):
    return sum(count for status, count in log.answers.items() if status != 200)


def startup(args):
    """A server that is attacked while it starts, with few files to open."""
    with study(1) as (db, _, _):
        service = Service(db, args.workers, args.source, (FEW_FILES, FEW_FILES))
        try:
            with Attack("half_open", service.port, 1500):
                begun = time.monotonic()
                ready = service.wait_until_ready(STARTUP_SECONDS)
                seconds = time.monotonic() - begun
        finally:
            service.stop()
    found = f"ready after {seconds:.0f} s" if ready else "never ready"
    what = f"start under half_open 1500, {FEW_FILES} files"
    return what, f"drivers ready within {STARTUP_SECONDS} s", found, ready


def locked(args):
    """Another program holds the database for a while."""
    with study(args.people) as (db, store, invites):
        service = Service(db, args.workers, args.source)
        try:
            assert service.wait_until_ready(), "the server did not start"
            log = Log()
            everybody = people(service.port, invites, log, longest=20)
            slowest = [0.0]
            for person in everybody:
                _time_answers(person, slowest)

            def lock():
                time.sleep(5)
                other = sqlite3.connect(db, isolation_level=None)
                other.execute("BEGIN EXCLUSIVE")
                time.sleep(LOCKED_SECONDS)
                other.execute("ROLLBACK")
                other.close()

            async def inside():
                until = time.monotonic() + 8 + LOCKED_SECONDS
                riding = (person.take_part(until, arrival=2) for person in everybody)
                await asyncio.gather(*riding)

            holder = threading.Thread(target=lock)
            holder.start()
            asyncio.run(inside())
            holder.join()
        finally:
            service.stop()
        kept = stops_in(store)
    lost = sum(kept.get(s) != step for s, step in log.acknowledged.items())
    found = f"slowest answer {slowest[0]:.1f} s, {lost} of {len(kept)} lost, "
    found += f"503s {log.answers.get(503, 0)}, 500s {log.answers.get(500, 0)}"
    holds = slowest[0] < ANSWER_SECONDS and not lost and 500 not in log.answers
    what = f"database locked {LOCKED_SECONDS} s"
    return what, f"answers within {ANSWER_SECONDS} s, never 500", found, holds


def _time_answers(person, slowest):
    send = person._send

    async def timed(path, body):
        begun = time.monotonic()
        try:
            return await send(path, body)
        finally:
            slowest[0] = max(slowest[0], time.monotonic() - begun)

    person._send = timed


def ambiguous(args):
    """A request with two lengths, which could smuggle another one past a proxy."""
    with study(1) as (db, _, _):
        service = Service(db, args.workers, args.source)
        try:
            assert service.wait_until_ready(), "the server did not start"
            head = "POST /api/invite HTTP/1.1\r\nhost: 127.0.0.1\r\n"
            head += "content-type: application/json\r\ncontent-length: 4\r\n"
            head += "transfer-encoding: chunked\r\n\r\n0\r\n\r\n"
            with socket.create_connection(("127.0.0.1", service.port)) as connection:
                connection.sendall(head.encode())
                answer = connection.recv(4096).decode()
        finally:
            service.stop()
    found = answer.partition("\r\n")[0]
    promise = "400 and the connection closed"
    holds = " 400 " in found and "connection: close" in answer.lower()
    return "two body lengths", promise, found, holds


OTHERS = {
    "few_files": few_files,
    "startup": startup,
    "locked": locked,
    "ambiguous": ambiguous,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    names = [*UNDER_ATTACK, *OTHERS]
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--source", type=Path, help="another src folder to attack")
    parser.add_argument("--workers", type=int, help="processes of the server")
    args = parser.parse_args()
    rows = []
    for name in args.only:
        if name in OTHERS:
            rows.append(OTHERS[name](args))
        else:
            rows.append(crowd_under(args, name, UNDER_ATTACK[name]))
        what, promise, found, holds = rows[-1]
        verdict = "holds" if holds else "BROKEN"
        print(f"{what:40} {promise:36} {found:60} {verdict}", flush=True)
    print(f"{os.cpu_count()} cores, load of the machine {os.getloadavg()[0]:.1f}")
    sys.exit(0 if all(holds for *_, holds in rows) else 1)


if __name__ == "__main__":
    main()
