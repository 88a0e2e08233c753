"""Rides ready to be shown: agents drive ahead of time, in batches, in the background.

How an agent drives does not depend on who watches, except that a stop ends the ride. So
the server simulates rides before anybody asks, and a request takes one from the pool.
"""

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from termdp.people.driving.ride import MAX_SEED, Ride

if TYPE_CHECKING:
    from termdp.people.driving.drivers import Driver

RIDES_PER_DRIVER = 64
LOW = RIDES_PER_DRIVER // 2
# A short rest after each ride, so that requests come before rides for later.
_PAUSE_SECONDS = 0.002


class RidePool:
    """Drivers, and some unseen rides of each.

    Args:
        load: makes the drivers; called once, in the background.
        steps: longest ride.
        prepare: called with the seed and actions of every ride ahead of time.
    """

    def __init__(
        self,
        load: "Callable[[], Sequence[Driver]]",
        steps: int,
        prepare: Callable[[int, bytes], object] = lambda seed, actions: None,
    ):
        self.steps = steps
        self._prepare = prepare
        self._load = load
        self._ready = threading.Event()
        self._wanted = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._drivers: Sequence[Driver] = ()
        self._rides: list[deque[tuple[Ride, bool]]] = []
        self._failure: Exception | None = None
        self._closing = False
        self._worker = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Begin to load drivers and to record rides."""
        self._worker.start()

    def close(self) -> None:
        """Stop recording."""
        self._closing = True
        self._wanted.release()

    @property
    def is_ready(self) -> bool:
        """Whether a ride can be had at once."""
        return self._ready.is_set()

    def drivers(self) -> "Sequence[Driver]":
        """Who drives here; waits until they are loaded."""
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self._drivers

    def take(self) -> tuple[Ride, bool]:
        """An unseen ride by any of the drivers, and whether it crashes."""
        count = len(self.drivers())
        with self._lock:
            filled = [rides for rides in self._rides if rides]
            if filled:
                chosen = secrets.choice(filled)
                found = chosen.popleft()
                if len(chosen) < LOW:
                    self._wanted.release()
                return found
        return self._drive(secrets.randbelow(count), count=1)[0]

    def _work(self) -> None:
        try:
            drivers = list(self._load())
            self._drivers = drivers
            self._rides = [deque(self._drive(i)) for i in range(len(drivers))]
        except Exception as error:  # raised again for every request
            self._failure = error
            logging.getLogger(__name__).error("no drivers: %s", error)
            return
        finally:
            self._ready.set()
        while not self._closing:
            self._wanted.acquire()
            for index, rides in enumerate(self._rides):
                if len(rides) < LOW and not self._closing:
                    fresh = self._drive(index)
                    with self._lock:
                        rides.extend(fresh)

    def _drive(
        self, index: int, count: int = RIDES_PER_DRIVER
    ) -> list[tuple[Ride, bool]]:
        from termdp.people.driving.rides import record_with_ends

        seeds = [secrets.randbelow(MAX_SEED + 1) for _ in range(count)]
        rides = record_with_ends(self._drivers[index], seeds, self.steps)
        for ride, _ in rides:
            self._prepare(ride.seed, ride.actions.tobytes())
            time.sleep(_PAUSE_SECONDS)
        return rides


def scripted_drivers() -> "list[Driver]":
    """The drivers of a server without trained agents."""
    from termdp.people.driving.drivers import STYLES, scripted_driver

    return [scripted_driver(style) for style in STYLES]
