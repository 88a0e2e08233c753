"""Rides of any environment that can be drawn: recorded, replayed, shown as films."""

import json

import jax
import numpy as np
import pytest

from termdp import registry
from termdp.people.driving.drivers import random_driver
from termdp.people.driving.films import film_data, shown
from termdp.people.driving.ride import ROADS, Ride, all_studied, from_digits, studied
from termdp.people.driving.rides import (
    crashes,
    driver_key,
    game,
    record,
    record_rides,
    record_with_ends,
    replay,
    step_key,
)
from termdp.people.driving.snapshot_drivers import chosen_drivers
from termdp.people.driving.trained import usual_drivers

GAMES = [entry.id for entry in all_studied() if entry.id not in ROADS]


def test_all_environments_with_a_renderer_can_be_studied():
    drawn = [e.id for e in registry.REGISTRY.values() if e.renderer is not None]
    assert [entry.id for entry in all_studied()] == drawn
    assert {"breakout", "recommender", "notifier", "seaquest"} <= set(GAMES)


def played_by_hand(env, seed, limit):
    """A random player's game, one step after the other, without scan or batches."""
    there, params = game(env), game(env).default_params
    key = jax.random.fold_in(jax.random.key(seed), 2)
    observation, state = jax.jit(there.reset_env)(key, params)
    play = jax.jit(there.step_env)
    seen, actions, rewards, over = [observation], [], [], False
    while len(actions) < limit and not over:
        step = len(actions)
        logits = np.zeros(there.num_actions, np.float32)
        action = int(jax.random.categorical(driver_key(seed, step), logits))
        observation, state, reward, over, _ = play(
            step_key(seed, step), state, action, params
        )
        seen.append(observation)
        actions.append(action)
        rewards.append(float(reward))
    return np.stack(seen), actions, rewards, bool(over)


@pytest.mark.parametrize("env", ["breakout", "notifier"])
def test_a_game_is_recorded_and_replayed_to_the_same_numbers(env):
    ((ride, over),) = record_with_ends(random_driver(env), [5], 30)
    seen, actions, rewards, is_over = played_by_hand(env, 5, 30)
    assert (ride.env, ride.actions.tolist(), over) == (env, actions, is_over)
    again = replay(ride)
    np.testing.assert_allclose(again.observations, seen[:-1], rtol=1e-5)
    np.testing.assert_allclose(again.final_observation, seen[-1], rtol=1e-5)
    np.testing.assert_allclose(again.rewards, rewards, rtol=1e-5)
    assert again.game_over.tolist() == [False] * (len(ride) - 1) + [over]
    assert again.truncated.tolist() == [False] * (len(ride) - 1) + [not over]


@pytest.mark.slow
@pytest.mark.parametrize("env", GAMES)
def test_films_hold_what_the_renderer_draws_and_stay_small(env):
    rides, over = record_rides(chosen_drivers(["random", f"{env}/pg"], env), 4, 60)
    assert crashes(rides) == over
    assert {ride.driver for ride in rides} == {"random", f"{env}/pg"}
    for ride, is_over in zip(rides[:2], over, strict=False):
        film, again = film_data(ride), replay(ride)
        text = json.dumps(film)
        assert len(text) < 300_000
        assert ride.driver not in text
        assert len(film["frames"]) == len(ride) + 1
        assert film["game_over"] == is_over
        for step in (0, len(ride)):
            drawing = again.drawing(step)
            numbers = [*film["backdrop"], *film["frames"][step]]
            shapes = [film["shapes"][number] for number in numbers]
            assert len(shapes) == len(drawing.shapes)
            for mine, theirs in zip(shapes, drawing.shapes, strict=True):
                assert mine.keys() == theirs.keys()
                assert (mine["kind"], mine["fill"]) == (theirs["kind"], theirs["fill"])
                for name in mine.keys() & {"x", "y", "w", "h", "r"}:
                    assert mine[name] == pytest.approx(float(theirs[name]), abs=6e-4)


def test_a_game_with_a_time_limit_is_cut_off_there():
    ride = record(random_driver("notifier"), 0, 10_000)
    assert len(ride) == game("notifier").default_params.max_steps_in_episode
    assert replay(ride).truncated[-1]


def test_actions_are_digits_and_letters():
    actions = np.arange(16, dtype=np.uint8)
    ride = Ride(0, "all", actions, "recommender")
    assert ride.digits == "0123456789abcdef"
    assert from_digits(ride.digits).tolist() == actions.tolist()
    with pytest.raises(
        ValueError, match="actions of breakout, whole numbers from 0 to 2"
    ):
        Ride(0, "all", actions, "breakout")


def test_without_trained_agents_shipped_ones_play():
    assert [driver.name for driver in usual_drivers("breakout")] == [
        "random",
        "breakout/pg",
        "breakout/termpg",
    ]
    assert {driver.env for driver in usual_drivers("backseat_passenger")} == {
        "backseat_passenger"
    }


@pytest.mark.parametrize(
    "names, sentence",
    [
        (["asterix/pg"], "expected a run of breakout, got one of asterix"),
        (["nobody"], "expected a run's folder, an agent's file, or a name"),
    ],
)
def test_drivers_of_another_game_are_refused(names, sentence):
    with pytest.raises(ValueError, match=sentence):
        chosen_drivers(names, "breakout")


def test_what_cannot_be_drawn_cannot_be_studied(monkeypatch):
    import dataclasses

    plain = dataclasses.replace(
        registry.find("notifier"), id="plain", gym_id="termdp/Plain-v0", renderer=None
    )
    monkeypatch.setitem(registry.REGISTRY, "plain", plain)
    for env in ("plain", "pong"):
        with pytest.raises(
            ValueError, match="expected an environment that can be drawn"
        ):
            studied(env)
    pixels = dataclasses.replace(
        plain,
        id="pixels",
        renderer=lambda game, state, seen: np.zeros((4, 4, 3), np.uint8),
    )
    monkeypatch.setitem(registry.REGISTRY, "pixels", pixels)
    ride = record(random_driver("pixels"), 0, 3)
    with pytest.raises(ValueError, match="expected a renderer that makes a Drawing"):
        shown([ride])
