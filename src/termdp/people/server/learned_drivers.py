"""In a study with rounds, the newest round's driver drives on the Ride page."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from termdp.people.driving.ride import Ride
from termdp.people.records.rounds import newest_round
from termdp.people.records.study_store import StudyStore
from termdp.people.records.tables import Study
from termdp.people.server.ride_pool import ReadyRide, RidePool
from termdp.people.server.storage import read

# How long to wait before checking again for a newer round.
LOOK_SECONDS = 5.0


@dataclass
class _Place:
    """One study's pools, the newest last, and when we last checked for a new round."""

    looked: float
    rounds: list[int]
    pools: list[RidePool]


class LearnedDrivers:
    """Ride pools of the newest drivers, one for each study that has rounds.

    Args:
        store: where the rounds are.
        steps: maximum length of a ride.
        encode: turns rides into JSON for the browser.
    """

    def __init__(
        self,
        store: StudyStore,
        steps: int,
        encode: Callable[[Sequence[Ride]], list[str]],
    ):
        self._store = store
        self._steps = steps
        self._encode = encode
        self._places: dict[int, _Place] = {}

    async def take(self, study: Study) -> ReadyRide | None:
        """A ride by the study's newest driver that is ready; None if there is none.

        While a new driver loads, the one before it keeps driving.
        """
        place = self._places.setdefault(study.id, _Place(-LOOK_SECONDS, [0], []))
        if time.monotonic() - place.looked >= LOOK_SECONDS:
            place.looked = time.monotonic()
            await self._look(study, place)
        ready = [pool for pool in place.pools if pool.is_ready]
        if not ready:
            return None
        newest = place.pools.index(ready[-1])
        for old in place.pools[:newest]:
            old.close()
        del place.pools[:newest]
        return await place.pools[0].take()

    async def _look(self, study: Study, place: _Place) -> None:
        """Start loading a newer driver, if there is one."""
        found = await read(newest_round, self._store, study.id)
        if found is None or found.number <= place.rounds[-1]:
            return
        place.rounds.append(found.number)
        load = _loader(found.folder, found.driver, study.env)
        pool = RidePool(load, self._steps, self._encode)
        place.pools.append(pool)
        pool.start()

    def close(self) -> None:
        """Stop recording."""
        for place in self._places.values():
            for pool in place.pools:
                pool.close()


def _loader(folder: str, name: str, env: str) -> Callable:
    """A function that loads the driver; it imports the game in the pool's thread."""

    def load() -> list:
        from termdp.people.improving.round_folder import driver_in

        return [driver_in(folder, name, env)]

    return load
