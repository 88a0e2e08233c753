"""Fresh rides for a study, or for one person who wants to ride along now."""

from collections.abc import Sequence

import numpy as np

from termdp.people.driving.drivers import Driver
from termdp.people.driving.rides import MAX_SEED, Ride, record_with_ends
from termdp.people.records.study_store import StudyStore


def driven(
    drivers: Sequence[Driver], count: int, steps: int, seed: int
) -> list[tuple[Ride, bool]]:
    """Rides by several drivers in turn, each with whether it ends in a crash.

    Every ride has a road of its own.
    """
    rng = np.random.default_rng(seed)
    seeds = rng.choice(MAX_SEED, size=count, replace=False)
    found: list[tuple[Ride, bool]] = []
    for index, driver in enumerate(drivers):
        mine = [int(s) for s in seeds[index :: len(drivers)]]
        found += record_with_ends(driver, mine, steps)
    # In turn, not driver by driver: the first rides of a study show all of them.
    places = np.concatenate(
        [np.arange(count)[k :: len(drivers)] for k in range(len(drivers))]
    )
    return [found[i] for i in np.argsort(places)]


def add_driven(
    store: StudyStore,
    study: str,
    drivers: Sequence[Driver],
    count: int,
    steps: int,
    seed: int,
) -> None:
    """Let drivers drive, and add their rides to a study."""
    if count:
        rides, ends = zip(*driven(drivers, count, steps, seed), strict=True)
        store.add_rides(study, rides, ends)
