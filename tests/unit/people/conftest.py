"""A store on each database, and rides that cost no simulation."""

import numpy as np
import pytest

from services import database_url, postgres_server  # noqa: F401 (fixtures)
from termdp.people.driving.rides import Ride
from termdp.people.records.study_store import StudyStore


@pytest.fixture
def store(database_url):  # noqa: F811
    store = StudyStore.open(database_url)
    yield store
    store.close()


@pytest.fixture
def straight_rides():
    """Rides straight on for three steps: nothing can be hit so early."""
    return [
        Ride(seed, f"straight {seed % 2}", np.zeros(3, np.uint8)) for seed in range(12)
    ]
