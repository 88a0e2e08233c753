"""Rides ready to be shown: agents drive ahead of time, in batches, in the background.

How an agent drives does not depend on who watches, except that a stop ends the ride. So
the server simulates rides before anybody asks, and a request takes one from the pool. A
request that finds none waits for the next batch: one ride takes as long as 64.
"""

import asyncio
import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from termdp.people.driving.ride import BACKSEAT, MAX_SEED, Ride

if TYPE_CHECKING:
    from termdp.people.driving.drivers import Driver

RIDES_PER_DRIVER = 64
LOW = RIDES_PER_DRIVER // 2
WAIT_SECONDS = 4.0
LOADING_SECONDS = 60.0
_LOOK_SECONDS = 0.05
# The first and the longest wait after a failure.
_RETRY_SECONDS = (0.5, 30.0)


class NotReadyError(OSError):
    """No ride is ready now; there may be one soon."""


@dataclass(frozen=True)
class ReadyRide:
    """A ride that nobody has seen.

    Attributes:
        ride: seed, driver, actions.
        crashed: whether its last step ends the game.
        text: the JSON for the browser; empty if it is made only when the ride is shown.
    """

    ride: Ride
    crashed: bool
    text: str


class RidePool:
    """Drivers, and unseen rides that they recorded.

    Args:
        load: makes the drivers; called in the background, and again if it fails.
        steps: maximum length of a ride.
        encode: turns rides into JSON for the browser.
    """

    def __init__(
        self,
        load: "Callable[[], Sequence[Driver]]",
        steps: int,
        encode: Callable[[Sequence[Ride]], list[str]],
    ):
        self.steps = steps
        self._load = load
        self._encode = encode
        self._wanted = threading.Event()
        self._drivers: Sequence[Driver] = ()
        self._rides: list[deque[ReadyRide]] = []
        self._failure: Exception | None = None
        self._closing = False
        self._worker = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Start loading drivers and recording rides."""
        self._worker.start()

    def close(self) -> None:
        """Stop recording."""
        self._closing = True
        self._wanted.set()

    @property
    def is_ready(self) -> bool:
        """Whether every driver has a ride ready."""
        return bool(self._rides) and all(self._rides)

    async def drivers(self) -> "Sequence[Driver]":
        """The drivers; waits a while for them to load."""
        until = time.monotonic() + LOADING_SECONDS
        while not self._drivers:
            await self._wait(until)
        return self._drivers

    async def take(self) -> ReadyRide:
        """Take an unseen ride by any of the drivers; waits a while for one."""
        until = time.monotonic() + WAIT_SECONDS
        while not (filled := [rides for rides in self._rides if rides]):
            await self._wait(until)
        chosen = secrets.choice(filled)
        found = chosen.popleft()
        if len(chosen) < LOW:
            self._wanted.set()
        return found

    async def _wait(self, until: float) -> None:
        if self._failure is not None:
            raise NotReadyError(f"no drivers: {self._failure}")
        if time.monotonic() > until:
            raise NotReadyError("no ride is ready yet: try again in a moment")
        self._wanted.set()
        await asyncio.sleep(_LOOK_SECONDS)

    def _work(self) -> None:
        """Fill the pool whenever it is low; failures are retried later."""
        wait, longest = _RETRY_SECONDS
        while not self._closing:
            try:
                self._fill()
            except Exception as error:  # every request is told until it succeeds
                self._failure = error
                logging.getLogger(__name__).error("no drivers: %s", error)
                self._wanted.clear()
                self._pause(wait)
                wait = min(2 * wait, longest)
            else:
                self._failure, (wait, _) = None, _RETRY_SECONDS
                self._wanted.wait()

    def _pause(self, seconds: float) -> None:
        """Wait before a retry; closing cuts it short, requests do not."""
        until = time.monotonic() + seconds
        while not self._closing and time.monotonic() < until:
            time.sleep(0.05)

    def _fill(self) -> None:
        self._wanted.clear()
        if not self._drivers:
            drivers = list(self._load())
            self._rides = [deque() for _ in drivers]
            self._drivers = drivers
        for driver, rides in zip(self._drivers, self._rides, strict=True):
            if len(rides) < LOW and not self._closing:
                rides.extend(self._drive(driver))

    def _drive(self, driver: "Driver") -> list[ReadyRide]:
        from termdp.people.driving.rides import record_with_ends

        seeds = [secrets.randbelow(MAX_SEED + 1) for _ in range(RIDES_PER_DRIVER)]
        rides = record_with_ends(driver, seeds, self.steps)
        texts = self._encode([ride for ride, _ in rides])
        return [
            ReadyRide(ride, crashed, text)
            for (ride, crashed), text in zip(rides, texts, strict=True)
        ]


class RidePools:
    """A pool for each environment, made when it is first asked for; the road's at once.

    Args:
        load: makes the drivers of an environment.
        steps: maximum length of a ride.
        encode: turns rides into JSON for the browser.
    """

    def __init__(
        self,
        load: "Callable[[str], Sequence[Driver]]",
        steps: int,
        encode: Callable[[Sequence[Ride]], list[str]],
    ):
        self._make = lambda env: RidePool(partial(load, env), steps, encode)
        self._pools = {BACKSEAT: self._make(BACKSEAT)}

    def start(self) -> None:
        """Start the pool of the road."""
        self._pools[BACKSEAT].start()

    def of(self, env: str) -> RidePool:
        """The pool of an environment."""
        if env not in self._pools:
            self._pools[env] = self._make(env)
            self._pools[env].start()
        return self._pools[env]

    def close(self) -> None:
        """Stop recording."""
        for pool in self._pools.values():
            pool.close()


def usual_drivers(env: str) -> "Sequence[Driver]":
    """The drivers of a server without trained agents; imports the game on first use."""
    from termdp.people.driving import trained

    return trained.usual_drivers(env)
