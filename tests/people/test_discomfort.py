"""Under each ride: what the study's fitted observer makes of it."""

import numpy as np
import pytest

import termdp
from termdp.envs.backseat_costs import BackseatCoinCost
from termdp.people.driving.drivers import scripted_driver
from termdp.people.driving.rides import record, replay


@pytest.fixture
def coin_rides(store):
    """Rides of a driver that loves coins, in a study of their own."""
    ride = record(scripted_driver("collector"), 3, 60)
    store.create_study("coins")
    store.add_rides("coins", [ride], [False])
    return ride


def test_the_curve_is_the_observers(
    client, store, admin, coin_rides, tmp_path, monkeypatch
):
    file = tmp_path / "observer.safetensors"
    file.write_bytes(b"stands for a fitted passenger")
    hates_coins = termdp.Observer(BackseatCoinCost(), window=10, bias=4.0)
    monkeypatch.setattr(termdp, "load_observer", lambda path: hates_coins)
    address = "/api/admin/studies/coins/rides/0"
    assert client.get(address, headers=admin).json()["discomfort"] is None
    store.set_observer("coins", str(file))
    found = client.get(address, headers=admin).json()["discomfort"]
    # In this game exactly the steps that collect something cost 1.
    costs = (replay(coin_rides).coins > 0).astype(float)
    sums = [costs[max(0, t - 9) : t + 1].sum() for t in range(len(costs))]
    np.testing.assert_allclose(found["accumulated"], sums, atol=1e-4)
    chances = 1 / (1 + np.exp(4.0 - np.array(sums)))
    np.testing.assert_allclose(found["stop_probability"], chances, atol=1e-4)
    assert found["bias"] == 4.0
    results = client.get("/api/admin/studies/coins/results", headers=admin).json()
    assert results["has_observer"]


def test_a_file_that_is_gone_is_no_observer(client, store, admin, coin_rides, tmp_path):
    store.set_observer("coins", str(tmp_path / "gone"))
    answer = client.get("/api/admin/studies/coins/rides/0", headers=admin).json()
    assert answer["discomfort"] is None
    results = client.get("/api/admin/studies/coins/results", headers=admin).json()
    assert not results["has_observer"]


def test_a_damaged_file_is_said(client, store, admin, coin_rides, tmp_path):
    file = tmp_path / "observer.safetensors"
    file.write_bytes(b"nonsense")
    store.set_observer("coins", str(file))
    answer = client.get("/api/admin/studies/coins/rides/0", headers=admin)
    assert answer.status_code == 422
    assert str(file) in answer.json()["error"]
