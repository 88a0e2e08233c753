"""Many people on one server at once: is any stop lost, and how long until it is kept?

Every person joins, rides along live and stops at a random moment, again and again. All of
them do so at the same time, in real time. The server is a real process on the same
machine, so the people use some of its cores too. Run:

    python benchmarks/serve.py --people 200 --seconds 30
    python benchmarks/serve.py --people 64 --hurry       # where is the limit?
    python benchmarks/serve.py --people 64 --hurry --source OLD/src src   # faster?
    python benchmarks/serve.py --people 50 --improve     # while a driver learns

With `--hurry` everybody stops each ride at once: the server has as much to do as it can,
and `rides_per_s` is its limit. With several sources their servers are measured in turn,
several times, by the same crowd. With `--improve` a round of `termdp serve --improve` is
under way all the time, in a process of its own; `round_cpu_s` is its processor time.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from crowd import Log, Service, cpu_seconds, people, stops_in, study

from termdp.people.records import tokens
from termdp.people.records.study_files import add_study, practice_record
from termdp.people.records.study_store import record_join

ARRIVAL_SECONDS = 5
LEARNING = "learning"


async def crowd(everybody, args):
    """All of them at once; returns the seconds it took once everybody had joined."""
    await asyncio.gather(*(person.join() for person in everybody))
    begun = time.monotonic()
    arrival = 0 if args.hurry else ARRIVAL_SECONDS
    until = begun + args.seconds
    await asyncio.gather(*(person.take_part(until, arrival) for person in everybody))
    return time.monotonic() - begun


def measure(args, source):
    """One server, one crowd."""
    with study(args.people, args.db) as (db, store, invites):
        rounds = Path(db).parent / "rounds"
        options = ()
        if args.improve:
            something_to_learn(store)
            options = ("--improve", "0.01", "--improve-folder", str(rounds))
        service = Service(db, args.workers, source, options=options)
        try:
            if not service.wait_until_ready():
                sys.exit("expected a server that starts, but this one did not")
            learner = round_under_way(rounds) if args.improve else None
            learned = cpu_seconds(learner) if learner else 0.0
            log = Log()
            longest = 1 if args.hurry else 40
            everybody = people(service.port, invites, log, longest)
            before, mine = cpu_seconds(service.process.pid), time.process_time()
            seconds = asyncio.run(crowd(everybody, args))
            used = cpu_seconds(service.process.pid) - before
            if learner:
                if round_under_way(rounds) != learner:
                    sys.exit("expected one round all the time: measure for less time")
                learned = cpu_seconds(learner) - learned
                used -= learned
        finally:
            service.stop()
        kept = stops_in(store)
    lost = [s for s, step in log.acknowledged.items() if kept.get(s) != step]
    found = {
        "people": args.people,
        "most_riding_at_once": log.most_riding,
        "stops_acknowledged": len(log.acknowledged),
        "stops_in_the_store": len(kept),
        "stops_lost": len(lost),
        "rides_per_s": round(len(log.acknowledged) / seconds, 1),
        "server_cpu_ms_per_ride": round(1000 * used / max(1, len(log.acknowledged)), 2),
        "cores": os.cpu_count(),
        "load_of_the_machine": round(os.getloadavg()[0], 1),
        "server_cpu_s": round(used, 1),
        "crowd_cpu_s": round(time.process_time() - mine, 1),
    }
    if args.improve:
        found["round_cpu_s"] = round(learned, 1)
    for name in ("stop_ms", "ride_ms"):
        for q in (50, 99, 100):
            found[f"{name}_p{q}"] = round(log.milliseconds(name, q), 1)
    return found


def something_to_learn(store):
    """A study with reviews, enough for a first round."""
    add_study(store, practice_record(600), LEARNING)
    text = store.study(LEARNING).consent
    invite = store.invite(LEARNING, "walker")
    with store.database.writing() as session:
        record_join(session, invite, "n" * 32, tokens.digest(text))


def round_under_way(rounds):
    """The process of a round; waits until there is one."""
    lock = rounds / LEARNING / ".lock"
    until = time.monotonic() + 120
    while time.monotonic() < until:
        words = lock.read_text().split() if lock.exists() else []
        if words:
            return int(words[0])
        time.sleep(0.1)
    sys.exit("expected a round to begin, but none did")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--db", help="another database's URL; a file by default")
    parser.add_argument("--hurry", action="store_true", help="stop every ride at once")
    parser.add_argument("--source", type=Path, nargs="+", default=[None])
    parser.add_argument("--rounds", type=int, default=3, help="with several sources")
    parser.add_argument("--workers", type=int, help="processes of the server")
    parser.add_argument("--improve", action="store_true", help="during a round")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rounds = args.rounds if len(args.source) > 1 else 1
    found = [[measure(args, source) for source in args.source] for _ in range(rounds)]
    middle = [_median([row[i] for row in found]) for i in range(len(args.source))]
    if args.json:
        print(json.dumps(middle if len(middle) > 1 else middle[0], indent=2))
    else:
        for name in middle[0]:
            print(f"{name:24}", *(f"{column[name]:<12}" for column in middle))
    sys.exit(1 if any(column["stops_lost"] for row in found for column in row) else 0)


def _median(rows):
    return {
        name: round(float(np.median([r[name] for r in rows])), 2) for name in rows[0]
    }


if __name__ == "__main__":
    main()
