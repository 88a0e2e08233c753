"""Rides: replayed bit for bit, recorded alike in batches; the road does not depend on
who drives."""

import dataclasses

import jax
import numpy as np
import pytest

from termdp.people.driving import track
from termdp.people.driving.drivers import (
    STYLES,
    Style,
    by_name,
    planning_driver,
    random_driver,
    scripted_driver,
)
from termdp.people.driving.rides import (
    Ride,
    crashes,
    driver_key,
    game,
    record,
    record_many,
    record_with_ends,
    replay,
    step_key,
)
from termdp.render.backseat import draw


def play_by_hand(driver, seed, limit):
    """The same ride, one step after the other, without scan or batches."""
    env = game()
    params = env.default_params
    observation, state = jax.jit(env.reset_env)(jax.random.key(0), params)
    memory = driver.model.start(driver.params)
    act, play = jax.jit(driver.model.act), jax.jit(env.step_env)
    actions, rewards, observations = [], [], []
    for step in range(limit):
        key = driver_key(seed, step)
        action, memory = act(driver.params, key, observation, memory)
        observations.append(np.asarray(observation))
        observation, state, reward, crashed, _ = play(
            step_key(seed, step), state, action, params
        )
        actions.append(int(action))
        rewards.append(float(reward))
        if crashed:
            break
    return actions, rewards, observations, bool(crashed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 5])
def test_a_ride_is_what_the_driver_did_and_replays_to_the_same_bits(seed):
    driver = random_driver()
    actions, rewards, observations, crashed = play_by_hand(driver, seed, 40)
    ride = record(driver, seed, 40)
    assert ride.actions.tolist() == actions
    again = replay(ride)
    np.testing.assert_array_equal(again.rewards, np.float32(rewards))
    np.testing.assert_array_equal(again.observations, observations)
    assert again.game_over[-1] == crashed
    assert again.truncated[-1] == (not crashed)
    assert not again.game_over[:-1].any() and not again.truncated[:-1].any()


@pytest.mark.slow
def test_batches_change_nothing():
    driver = scripted_driver("clumsy")
    seeds = [3, 1, 4, 1, 5]
    together = record_many(driver, seeds, 60)
    assert together == [record(driver, seed, 60) for seed in seeds]
    assert together[1] == together[3]


@pytest.mark.slow
def test_a_longer_recording_begins_like_a_shorter_one():
    driver = scripted_driver("weaver")
    short, long = record(driver, 9, 50), record(driver, 9, 300)
    assert len(long) == 300
    np.testing.assert_array_equal(long.actions[:50], short.actions)


@pytest.mark.slow
def test_planners_drive_as_their_style_says():
    def drive(style):
        rides = record_many(scripted_driver(style), list(range(8)), 200)
        replays = [replay(ride) for ride in rides]
        changes = np.mean([np.mean(ride.actions != 0) for ride in rides])
        coins = np.mean([again.coins.sum() / len(again) for again in replays])
        crashes = np.mean([again.game_over[-1] for again in replays])
        return changes, coins, crashes

    calm, collector, weaver, late, clumsy = map(drive, STYLES)
    assert calm[2] == collector[2] == weaver[2] == 0
    assert late[2] > 0 and clumsy[2] > 0
    assert weaver[0] > 2 * calm[0]
    assert collector[1] > 2 * calm[1]


def test_slips_alone_are_the_random_driver():
    ride = record(planning_driver("slips", Style(slips=1.0)), 2, 200)
    assert set(ride.actions.tolist()) == {0, 1, 2}


def test_frames_of_a_step_end_in_the_next_state():
    ride = record(scripted_driver("collector"), 1, 40)
    again = replay(ride)
    before, after = (jax.tree.map(lambda x, i=i: x[i], again.states) for i in (20, 21))
    draws = jax.jit(game().sample_draws)(step_key(ride.seed, 20))
    action = np.int32(ride.actions[20])
    frames = jax.jit(game().frames)(before, action, draws, game().default_params)
    drawings = [
        draw(jax.tree.map(lambda x, i=i: x[i], frames), game().road) for i in range(4)
    ]
    assert drawings[-1].as_json() == again.drawing(21).as_json()
    assert again.drawing(21).as_json() == draw(after, game().road).as_json()
    assert drawings[0].as_json() != drawings[1].as_json()


def test_the_road_is_the_same_whoever_drives_on_it():
    road = game().road
    for driver in (random_driver(), scripted_driver("collector")):
        ride = record(driver, 11, 80)
        again = replay(ride)
        found = track.track(11, len(ride) + 1)
        for kind, speed in (("cars", road.car_speed), ("coins", road.coin_speed)):
            places = np.array(found[kind]).reshape(-1, 3)
            for time in range(len(ride)):
                appeared = places[places[:, 0] <= time]
                rows = appeared[:, 2] + speed * (time - appeared[:, 0])
                there = {
                    (int(lane), int(row))
                    for (_, lane, _), row in zip(appeared, rows, strict=True)
                    if row < road.rows
                }
                words = np.asarray(getattr(again.states, kind)[time])
                shown = {
                    (lane, bit - road.margin)
                    for lane in range(road.lanes)
                    for bit in range(32)
                    if words[lane] >> bit & 1
                }
                if kind == "cars":
                    assert shown == there
                else:  # the driver may have taken some
                    assert shown <= there


def test_ride_data_does_not_say_who_drove():
    data = track.ride_data(record(scripted_driver("late"), 7, 30))
    assert set(data) == {"actions", "cars", "coins"}
    assert set(data["actions"]) <= set("012")


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"seed": -1}, "expected a seed"),
        ({"seed": 2**31}, "expected a seed"),
        ({"actions": np.array([], np.uint8)}, "1 to 10000 steps"),
        ({"actions": np.array([0, 3])}, "whole numbers from 0 to 2"),
        ({"actions": np.array([0, -1])}, "whole numbers from 0 to 2"),
        ({"actions": np.array([0.5])}, "whole numbers from 0 to 2"),
        ({"actions": np.zeros((2, 2), np.uint8)}, "shape"),
        ({"env": "pong"}, "expected an environment that can be drawn"),
    ],
)
def test_bad_rides_are_refused(changes, message):
    good = Ride(0, "someone", np.array([0, 1, 2]))
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(good, **changes)


def test_actions_after_a_crash_are_refused():
    ride = record(random_driver(), 0, 200)
    assert replay(ride).game_over[-1]
    longer = Ride(0, "random", np.append(ride.actions, 0))
    with pytest.raises(ValueError, match="crashes at"):
        replay(longer)


@pytest.mark.slow
def test_long_rides_are_played_in_parts_to_the_same_end():
    """Rides across several parts, against the driver's own single pass."""
    found = record_with_ends(scripted_driver("calm"), [0, 1], 900)
    found += record_with_ends(scripted_driver("late"), list(range(6)), 900)
    assert max(len(ride) for ride, crash in found if crash) > 256
    assert {crash for _, crash in found} == {True, False}
    again = [replay(ride) for ride, _ in found]
    assert [bool(one.game_over[-1]) for one in again] == [crash for _, crash in found]
    for one in again:
        assert len(one.observations) == len(one.rewards) == len(one)
        assert len(one.states.agent) == len(one) + 1
    assert crashes([ride for ride, _ in found]) == [crash for _, crash in found]


def test_rides_that_do_not_reach_their_end_are_found_in_a_batch():
    rides = [ride for ride, _ in record_with_ends(random_driver(), range(70), 300)]
    assert all(crashes(rides))
    late = rides[68]
    rides[68] = Ride(late.seed, "", np.append(late.actions, 0))
    with pytest.raises(ValueError, match=f"at step {len(late) - 1} of {len(late) + 1}"):
        crashes(rides)


def test_unknown_names_and_lengths_are_refused():
    with pytest.raises(ValueError, match="expected a style"):
        by_name("scripted reckless")
    with pytest.raises(ValueError, match="steps per ride"):
        record(random_driver(), 0, 0)
