"""Probe environments with known answers, one per failure.

All probes of one kind share a compiled program; every test reads one number from it.
"""

import dataclasses
import math

import jax
import numpy as np
import pytest

import termdp
from probe_envs import (
    ACTION,
    DISCOUNT,
    DISCOUNT_LATER,
    LIMIT,
    SIGN,
    VALUE,
    Clocked,
    Endless,
    Rooms,
    no_cost,
)
from termdp.agents.methods import find_method
from termdp.agents.ppo import PPOConfig
from termdp.costs.config import CostConfig
from termdp.runs.collect import Mind, collect
from termdp.runs.config import TrainConfig
from termdp.runs.improve import in_units_of_rewards
from termdp.runs.program import Job, TrainProgram

NEVER = 1e6  # a bias under which nobody is ever stopped
CONFIG = TrainConfig(
    num_envs=64,
    rollout_steps=16,
    gae_lambda=0.9,
    network="vector",
    hidden=16,
    lstm_size=8,
    algorithm=PPOConfig(
        learning_rate=1e-2, num_epochs=2, num_minibatches=4, kl_target=0.05
    ),
    costs=CostConfig(
        network="vector", hidden=8, segment_length=16, buffer_steps=64 * 64
    ),
)


def trained(env, methods, num_iterations, config=CONFIG):
    """What each method's policy and value make of 16 further steps."""
    job = Job(
        env=env,
        params=env.default_params,
        methods=tuple(methods),
        seeds=(0,) * len(methods),
        config=config,
        num_iterations=num_iterations,
    )
    program = TrainProgram(job)
    state, _ = program.advance(program.init(), num_iterations)

    def play(method_params, state):
        rollout = collect(
            program.recipe.learner,
            Mind(state.policy.params, state.costs, method_params),
            env,
            env.default_params,
            state.rollout_state,
            state.key,
            16,
        )[1]
        return in_units_of_rewards(state.policy.value_scale, rollout)

    return jax.tree.map(
        np.asarray, jax.jit(jax.vmap(play))(program.method_params, state)
    )


@pytest.fixture(scope="module")
def rooms():
    """Values per room, with discount ½, of honest endings and of ignored ones."""
    env = termdp.observe(Rooms(), termdp.Observer(no_cost, bias=NEVER))
    methods = [
        find_method("pg", discount=0.5),
        find_method("pg_naive", discount=0.5),
    ]
    return dict(zip(["pg", "pg_naive"], each(trained(env, methods, 60)), strict=True))


def each(played):
    return [
        jax.tree.map(lambda x, i=i: x[i], played) for i in range(len(played.values))
    ]


def value(played, room, sign=0.0):
    observations = played.inputs.observation
    here = (observations[..., room] == 1) & (observations[..., -1] == sign)
    assert here.any()
    return float(played.values[here].mean())


def test_value_of_one_step_with_reward_one(rooms):
    assert value(rooms["pg"], VALUE) == pytest.approx(1.0, abs=0.1)


def test_discount_of_the_second_step(rooms):
    assert value(rooms["pg"], DISCOUNT_LATER) == pytest.approx(1.0, abs=0.1)
    assert value(rooms["pg"], DISCOUNT) == pytest.approx(0.5, abs=0.1)


def test_observation_decides(rooms):
    assert value(rooms["pg"], SIGN, 1.0) == pytest.approx(1.0, abs=0.15)
    assert value(rooms["pg"], SIGN, -1.0) == pytest.approx(-1.0, abs=0.15)


def test_action_decides(rooms):
    played = rooms["pg"]
    here = played.inputs.observation[..., ACTION] == 1
    logits = played.dist_params[here]
    probability = np.exp(logits[:, 1]) / np.exp(logits).sum(axis=1)
    assert probability.mean() > 0.9
    assert value(played, ACTION) == pytest.approx(1.0, abs=0.15)


def test_truncation_bootstraps(rooms):
    # V = 1 + ½V; without bootstrapping it would be 1.
    assert value(rooms["pg"], LIMIT) == pytest.approx(2.0, abs=0.15)


def test_game_over_never_bootstraps_unless_ignored(rooms):
    assert value(rooms["pg"], VALUE) == pytest.approx(1.0, abs=0.1)
    # Ignoring the end, the room seems to go on for ever: V = 1 + ½V.
    assert value(rooms["pg_naive"], VALUE) == pytest.approx(2.0, abs=0.15)
    assert value(rooms["pg_naive"], LIMIT) == pytest.approx(2.0, abs=0.15)


# Endless game, reward 1, the observer stops with probability ρ(0 − ln 3) = ¼ per step.
STOP = {
    # V = 1 + ¾V
    "oracle": (find_method("oracle", discount=1.0), 4.0, 0.25),
    # The stop counts twice: V = 1 + ¾·¾V
    "oracle, cut": (
        find_method("oracle", discount=1.0, end_handling="cut"),
        1 / (1 - 9 / 16),
        0.2,
    ),
    # Stops are ends: V = 1 + ¾V, this time by sampling
    "pg, cut": (find_method("pg", discount=1.0), 4.0, 0.5),
    # … and each costs 1: V = 1 − ¼ + ¾V
    "pg_rs": (find_method("pg_rs", discount=1.0), 3.0, 0.45),
    # V = 1 + 0.9V, as if nobody ever stopped
    "pg, ignored": (find_method("pg_naive", discount=0.9), 10.0, 0.5),
    # a stop bootstraps with the fixed discount as well: V = 1 + ½V
    "pg, expected": (
        find_method("pg", discount=0.5, end_handling="expected"),
        2.0,
        0.15,
    ),
    # V = 1 + 0.9·¾V
    "pg, cut and discounted": (find_method("pg", discount=0.9), 1 / 0.325, 0.3),
    # As the oracle, with a stop probability learned from stops alone
    "termpg": (find_method("termpg", discount=1.0, optimism="mean"), 4.0, 0.5),
}


@pytest.fixture(scope="module")
def stops():
    observer = termdp.Observer(no_cost, window=1, bias=math.log(3))
    env = termdp.observe(Endless(), observer)
    methods = [row[0] for row in STOP.values()]
    return dict(zip(STOP, each(trained(env, methods, 120)), strict=True))


@pytest.mark.parametrize("name", STOP)
def test_a_stop_is_worth_what_the_method_says(stops, name):
    _, expected, tolerance = STOP[name]
    played = stops[name]
    assert played.stopped.mean() == pytest.approx(0.25, abs=0.05)
    assert played.values.mean() == pytest.approx(expected, abs=tolerance)
    # One state (and one cost, but for TermPG before the first step): one value.
    if name != "termpg":
        assert played.values.std() < 1e-3


# The time is up after four steps, so τ = ¼; nobody is ever stopped.
LIMITED = {
    # V = 1 + ¾V; with a discount of 1 that knows no limit, it would grow for ever
    "pg": (find_method("pg", discount=1.0), 4.0, 0.25),
    # V = 1 + ½·¾V
    "pg, discounted": (find_method("pg", discount=0.5), 1.6, 0.1),
    # V = 1 + ½V, since nothing is an end
    "pg, ignored": (find_method("pg_naive", discount=0.5), 2.0, 0.1),
}


@pytest.fixture(scope="module")
def limited():
    env = termdp.observe(Clocked(), termdp.Observer(no_cost, bias=NEVER))
    methods = [row[0] for row in LIMITED.values()]
    config = dataclasses.replace(CONFIG, time_limit_rate=0.1)
    found = trained(env, methods, 120, config)
    return dict(zip(LIMITED, each(found), strict=True))


@pytest.mark.parametrize("name", LIMITED)
def test_a_hidden_clock_is_worth_what_its_share_says(limited, name):
    _, expected, tolerance = LIMITED[name]
    played = limited[name]
    assert played.truncated.mean() == pytest.approx(0.25, abs=0.01)
    assert played.values.mean() == pytest.approx(expected, abs=tolerance)
