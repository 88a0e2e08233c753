"""The pool of rides: ready before anybody asks, shown to nobody before."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

from termdp.people.driving.drivers import random_driver
from termdp.people.driving.rides import replay
from termdp.people.driving.track import ride_data
from termdp.people.server.api import encoded_many
from termdp.people.server.ride_pool import NotReadyError, RidePool


def in_pool(load, requests):
    """What requests to a pool with these drivers come to."""

    async def asked():
        pool = RidePool(load, 30, encoded_many)
        pool.start()
        try:
            return await requests(pool)
        finally:
            pool.close()

    # In a thread of its own: the browser tests leave a loop running in this one.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(asked())).result()


def test_the_pool_hands_out_rides_that_nobody_has_seen():
    async def take(pool):
        return [await pool.take() for _ in range(100)]

    taken = in_pool(lambda: [random_driver()], take)
    assert len({ready.ride.seed for ready in taken}) == 100
    for ready in taken[:5]:
        assert replay(ready.ride).game_over[-1] == ready.crashed
        assert json.loads(ready.text) == ride_data(ready.ride)


def test_drivers_that_cannot_be_loaded_are_said_and_tried_again():
    tried = []

    def load():
        tried.append(1)
        if len(tried) < 3:
            raise OSError("too many open files")
        return [random_driver()]

    async def ask(pool):
        refusals = []
        while True:
            try:
                return refusals, await pool.take()
            except NotReadyError as error:
                refusals.append(str(error))
                await asyncio.sleep(0.1)

    refusals, ready = in_pool(load, ask)
    assert len(tried) == 3 and len(ready.ride) > 0
    assert set(refusals) == {"no drivers: too many open files"}
