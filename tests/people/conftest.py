"""The application in this process, for tests that need no server of their own."""

import pytest

from people_server import ADMIN, application, join, straight
from services import database_url, postgres_server  # noqa: F401 (fixtures)
from termdp.people.records.study_store import StudyStore


@pytest.fixture
def store(tmp_path):
    store = StudyStore.open(str(tmp_path / "people.db"))
    store.create_study("comfort", title="Comfort", step_ms=100, repeat_share=0.25)
    store.add_rides("comfort", straight(4), [False] * 4)
    yield store
    store.close()


@pytest.fixture
def client(store):
    with application(store) as client:
        yield client


@pytest.fixture
def ann(client, store):
    return join(client, store)


@pytest.fixture
def admin():
    return {"authorization": f"Bearer {ADMIN}"}
