"""Simulated passengers: what they see, what they mind, and when they press."""

import dataclasses
import os

import numpy as np
import pytest

from termdp.envs.passenger_cost import AHEAD, BEHIND, PERCEPT_NAMES
from termdp.people.driving.drivers import STYLES, scripted_driver
from termdp.people.driving.rides import game, record_with_ends, replay
from termdp.people.driving.track import ride_data
from termdp.people.models.showing_data import noticed_in
from termdp.people.records.study_store import StudyStore
from termdp.people.server.client import Client
from termdp.people.simulated import passengers
from termdp.people.simulated.passengers import PASSENGERS, Passenger, Rules, react
from termdp.people.simulated.sight import FAR, Sight, see
from termdp.people.simulated.simulation import own_server, review_next, simulate

STEADY = {"reaction_spread": 0.0, "distraction": 0.0, "slips": 0.0, "talkative": 1.0}


@pytest.fixture(scope="module")
def rides():
    """Twelve rides of drivers with different manners."""
    drivers = [scripted_driver(style) for style in STYLES]
    return [record_with_ends(d, [7 + i, 70 + i], 120) for i, d in enumerate(drivers)]


def flat(rides):
    return [ride for driven in rides for ride, _ in driven]


def sight(moves, coins=None, free=None, ahead=None, behind=None):
    """A ride by hand."""
    size = len(moves)

    def numbers(values, otherwise):
        return np.full(size, otherwise) if values is None else np.array(values)

    return Sight(
        moves=np.array(moves),
        coins=numbers(coins, 0),
        free_ahead=numbers(free, FAR),
        gap_ahead=numbers(ahead, FAR),
        gap_behind=numbers(behind, FAR),
    )


def test_passengers_see_what_happens(rides):
    """Rebuilt from the page's data alone, against the game itself."""
    road = game().road
    for ride in flat(rides):
        played, seen = replay(ride), see(road, ride_data(ride))
        going_on = ~played.game_over
        assert np.array_equal(seen.coins[going_on], played.coins[going_on])
        lanes = played.observations[:, road.agent_row, :, 0].argmax(axis=1)
        assert np.array_equal(seen.moves[:-1], np.diff(lanes))


def test_percepts_agree_with_what_passengers_see(rides):
    road = game().road
    for ride in flat(rides):
        played, seen = replay(ride), see(road, ride_data(ride))
        noticed = noticed_in(road, played.observations, ride.actions).astype(bool)
        column = {name: noticed[:, i] for i, name in enumerate(PERCEPT_NAMES)}
        changes = seen.moves != 0
        assert np.array_equal(column["changes lane"], changes)
        for rows in AHEAD:
            name = f"car within {rows} rows ahead"
            assert np.array_equal(column[name], seen.free_ahead <= rows)
            name = f"car within {rows} rows ahead where it goes"
            assert np.array_equal(column[name], seen.gap_ahead <= rows)
        for rows in BEHIND:
            # Beside is nearer than behind: the sight calls it a gap of nothing.
            name = f"car within {rows} rows behind where it goes"
            assert not (column[name] & ~(seen.gap_behind <= rows)).any()
        weaving = passengers.weaving(seen) > 0
        assert np.array_equal(column["back and forth with a free road"], weaving)
        jerks = passengers.jerks(seen) > 0
        assert np.array_equal(column["third change within four decisions"], jerks)


def test_rules_by_hand():
    ride = sight(
        moves=[1, -1, 0, 1, 1, 0, 0, -1, 1],
        coins=[1, 0, 2, 0, 0, 0, 0, 0, 1],
        free=[FAR, FAR, FAR, FAR, 3, FAR, FAR, FAR, 8],
        ahead=[FAR, 1, 2, 0, FAR, FAR, FAR, FAR, FAR],
        behind=[FAR, FAR, FAR, FAR, 1, FAR, FAR, FAR, 2],
    )
    assert passengers.weaving(ride).tolist() == [0, 1, 0, 1, 0, 0, 0, 0, 0]
    assert passengers.close_gaps(ride).tolist() == [0, 1, 0, 1, 1, 0, 0, 0, 0]
    assert passengers.coins(ride).tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 1]
    assert passengers.jerks(ride).tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 0]


def strict(**changes):
    """Somebody who stops surely at the third coin within ten steps."""
    settings = {"patience": 2.5, "strictness": 1e6, "memory": 10, "reaction_ms": 400.0}
    return Passenger(
        "simulated-test", rules=Rules(coins=1.0), **(settings | STEADY | changes)
    )


def coin_ride(steps, length=60):
    moves, taken = np.zeros(length, int), np.zeros(length, int)
    moves[steps], taken[steps] = 1, 1
    return sight(moves, coins=taken)


def test_the_hand_is_late_and_the_reason_is_right():
    found = react(strict(), coin_ride([5, 9, 14]), np.random.default_rng(0), 200)
    assert (found.step, found.latency_ms) == (16, 400.0)
    assert found.reason == passengers.REASONS["coins"]


def test_old_coins_are_forgotten():
    rng = np.random.default_rng(0)
    assert react(strict(), coin_ride([5, 9, 15]), rng, 200).step is None
    assert react(strict(memory=11), coin_ride([5, 9, 15]), rng, 200).step == 17


def test_who_presses_after_the_end_has_not_stopped_anything():
    rng = np.random.default_rng(0)
    assert react(strict(), coin_ride([5, 9, 14], 17), rng, 200).step == 16
    assert react(strict(), coin_ride([5, 9, 14], 16), rng, 200).step is None


def test_who_looks_away_notices_nothing():
    away = strict(distraction=1.0, distraction_length=1e9)
    rng = np.random.default_rng(0)
    assert react(away, coin_ride(np.arange(40)), rng, 200).step is None


def test_slips_happen_at_their_rate():
    clumsy = strict(slips=0.1, reaction_ms=0.0)
    rng = np.random.default_rng(0)
    found = [react(clumsy, coin_ride([], 400), rng, 200).step for _ in range(400)]
    assert np.mean(found) == pytest.approx(9, abs=1.5)  # geometric: (1 − p)/p


def test_the_five_differ_and_say_what_they_are():
    assert len(PASSENGERS) == 5 == len({p.rules for p in PASSENGERS})
    assert all(p.name.startswith("simulated-") for p in PASSENGERS)
    assert all(30 <= p.memory <= 40 for p in PASSENGERS)


def test_over_http_as_people_do(tmp_path, rides):
    """A real server in a process of its own; the stops end up in its store."""
    db = str(tmp_path / "people.db")
    store = StudyStore.open(db)
    store.create_study("comfort", repeat_share=0.0)
    every = [pair for driven in rides for pair in driven]
    store.add_rides("comfort", *zip(*every, strict=True))
    impatient = [
        dataclasses.replace(p, patience=1.0, reaction_ms=0.0) for p in PASSENGERS[:2]
    ]
    heard = []
    with own_server(db) as (url, token):
        found = simulate(
            url,
            token,
            "comfort",
            6,
            on_progress=lambda *x: heard.append(x),
            passengers=impatient,
        )
        with pytest.raises(ValueError, match="expected enough rides for 999 stops"):
            simulate(url, token, "comfort", 999, passengers=impatient)
        other = Client(url)
        other.join(store.invite("comfort", "simulated-other", "simulated"))
        calm = dataclasses.replace(PASSENGERS[0], patience=1e9, slips=0.0)
        rng = np.random.default_rng(0)
        assert review_next(other, calm, game().road, rng) is False
        other.close()
    assert sum(found.values()) == 6 == heard[-1][0]
    kept = [shown.review for shown in store.showings("comfort") if shown.review]
    assert sum(review.stopped for review in kept) >= 6
    assert {s.kind for s in store.supervisors("comfort")} == {"simulated"}
    store.close()
    assert os.path.exists(db)
