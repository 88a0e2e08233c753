"""Simulated passengers review rides over HTTP, as the pages do."""

import contextlib
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from termdp.envs.backseat_road import Road
from termdp.people.driving.ride import BACKSEAT, ROADS
from termdp.people.records import tokens
from termdp.people.server.client import Client, RequestRefusedError
from termdp.people.simulated.passengers import (
    PASSENGERS,
    Watcher,
    react,
    spectators,
)
from termdp.people.simulated.sight import see


def simulate(
    url: str,
    admin_token: str,
    study: str,
    stops: int,
    seed: int = 0,
    on_progress: Callable[[int, int], None] = lambda stops, reviews: None,
    passengers: Sequence[Watcher] = (),
) -> dict[str, int]:
    """Let simulated passengers review a study's rides until enough of them are stopped.

    Args:
        url: a running server.
        admin_token: its admin's, to invite the passengers (as `simulated` supervisors).
        study: the study's name; it needs rides.
        stops: how many stops to collect, all passengers together.
        seed: of everything that is random in the passengers.
        on_progress: called after each review with the numbers of stops and reviews.
        passengers: who reviews, in turn; five of the study's environment unless given.

    Returns:
        Stops by passenger.
    """
    found = _review(url, admin_token, study, stops, seed, on_progress, passengers)
    if sum(found.values()) < stops:
        raise ValueError(
            f"expected enough rides for {stops} stops, but after all of them there are "
            f"{sum(found.values())}: add rides with `termdp studies rides` and run this "
            "again"
        )
    return found


def review_everything(
    url: str,
    admin_token: str,
    study: str,
    seed: int = 0,
    on_progress: Callable[[int, int], None] = lambda stops, reviews: None,
    passengers: Sequence[Watcher] = (),
) -> dict[str, int]:
    """The same until no passenger has a ride left to review."""
    return _review(url, admin_token, study, math.inf, seed, on_progress, passengers)


def _review(
    url: str,
    admin_token: str,
    study: str,
    stops: float,
    seed: int,
    on_progress: Callable[[int, int], None],
    passengers: Sequence[Watcher],
) -> dict[str, int]:
    """Passengers in turn, until there are enough stops or no more rides."""
    admin = Client(url, admin_token)
    studies = admin.request("GET", "/api/admin/studies")["studies"]
    env = {row["name"]: row["env"] for row in studies}.get(study, BACKSEAT)
    passengers = passengers or (PASSENGERS if env in ROADS else spectators(env))
    names = [passenger.name for passenger in passengers]
    invites = admin.invite(study, names, kind="simulated")
    road = Road(**admin.request("GET", "/api/game")["road"])
    admin.close()
    found = dict.fromkeys(names, 0)
    reviews = 0
    with contextlib.ExitStack() as stack:
        seats = []
        for index, passenger in enumerate(passengers):
            client = stack.enter_context(contextlib.closing(Client(url)))
            client.join(invites[passenger.name])
            seats.append((passenger, client, np.random.default_rng([seed, index])))
        while seats and sum(found.values()) < stops:
            passenger, client, rng = seats.pop(0)
            stopped = review_next(client, passenger, road, rng)
            if stopped is None:
                continue
            seats.append((passenger, client, rng))
            found[passenger.name] += stopped
            reviews += 1
            on_progress(sum(found.values()), reviews)
    return found


def review_next(
    client: Client, passenger: Watcher, road: Road, rng: np.random.Generator
) -> bool | None:
    """Review one ride; whether it was stopped, or None when there is none left."""
    ride = client.next_ride()
    if ride is None:
        return None
    seen = see(road, ride) if "cars" in ride else np.asarray(ride["costs"])
    reaction = react(passenger, seen, rng, ride["step_ms"])
    if reaction.step is None or reaction.latency_ms is None:
        client.finish(ride["showing"])
        return False
    try:
        client.stop(
            ride["showing"],
            reaction.step,
            latency_ms=round(reaction.latency_ms),
            reason=reaction.reason or "",
        )
    except RequestRefusedError:
        if reaction.step < len(ride["actions"]) - 1:
            raise
        client.finish(ride["showing"])  # the game was over in that very step
        return False
    return True


@contextlib.contextmanager
def own_server(db: str) -> Iterator[tuple[str, str]]:
    """A server process on a store: its address and its admin's token."""
    token = tokens.make()
    command = [sys.executable, "-m", "termdp", "serve", "--db", db, "--port", "0"]
    process = subprocess.Popen(
        command,
        env={**os.environ, tokens.ADMIN_VARIABLE: token},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        if len(words) < 3:
            raise ValueError(f"expected a server on {db}, but it did not start")
        yield words[2], token
    finally:
        process.terminate()
        process.wait(timeout=20)
        if process.stdout is not None:
            process.stdout.close()
