"""A store on each database, and rides that cost no simulation."""

import numpy as np
import pytest

from services import postgres
from termdp.people.rides import Ride
from termdp.people.store import Store


@pytest.fixture(scope="session")
def postgres_server():
    with postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    """The URL of an empty database."""
    if request.param == "sqlite":
        return str(tmp_path / "people.db")
    return request.getfixturevalue("postgres_server").new_database()


@pytest.fixture
def store(database_url):
    store = Store.open(database_url)
    yield store
    store.close()


@pytest.fixture
def straight_rides():
    """Rides straight on for three decisions: nothing can be hit so early."""
    return [
        Ride(seed, f"straight {seed % 2}", np.zeros(3, np.uint8)) for seed in range(12)
    ]
