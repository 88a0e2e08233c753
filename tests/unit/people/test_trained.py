"""Trained policies at the wheel: they see what they saw in training, unstopped."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import termdp
from termdp.people.driving.rides import record, replay
from termdp.people.driving.trained import agent_driver, drivers_in
from termdp.runs.agent import Agent, make_card
from termdp.runs.evaluate import place_of, play_steps
from termdp.runs.program import TrainProgram
from termdp.runs.spec import RunSpec, make_job
from tiny_config import tiny

pytestmark = pytest.mark.slow

TINY = tiny(
    num_envs=2,
    network="grid",
    filters=2,
    lstm_size=4,
    ppo={"num_epochs": 1, "num_minibatches": 1},
    costs={
        "network": "grid",
        "filters": 2,
        "num_steps": 1,
        "segments_per_step": 1,
        "segment_length": 64,
        "buffer_steps": 256,
    },
)


def agent_of(method, env="backseat", **env_numbers):
    """An agent as it is before its first update."""
    spec = RunSpec(env, method, steps=2048, env_numbers=env_numbers)
    job = dataclasses.replace(make_job(spec), config=TINY)
    program = TrainProgram(dataclasses.replace(job, num_iterations=1))
    state = jax.tree.map(lambda x: x[0], program.init())
    return Agent(make_card(spec, program.job), state.policy.params, state.costs)


def decided(agent):
    """The same networks, so sure of themselves that sampling makes no difference."""
    of_policy = np.s_[..., :-1]  # the last column is the value's

    def sharpen(path, leaf):
        in_heads = "heads" in str(path)
        return leaf.at[of_policy].multiply(1e6) if in_heads else leaf

    weights = jax.tree_util.tree_map_with_path(sharpen, agent.mind.weights)
    agent.mind = agent.mind._replace(weights=weights)
    return agent


@pytest.mark.parametrize("method", ["termpg", "pg_recurrent", "oracle"])
def test_a_driver_decides_as_the_policy_did_in_training(method):
    agent = decided(agent_of(method, bias=1e9))
    env, params = place_of(agent)
    played = play_steps(agent, env, params, jax.random.key(3), 1, 60)
    driver = agent_driver("tiny", agent)
    act = jax.jit(driver.model.act)
    memory = driver.model.start(driver.params)
    for step in range(60):
        if played.starts[step, 0]:
            memory = driver.model.start(driver.params)
        observation = played.inputs.observation[step, 0]
        action, memory = act(driver.params, jax.random.key(step), observation, memory)
        assert int(action) == int(played.actions[step, 0]), step


def test_an_observer_in_training_does_not_stop_the_rides():
    agent = agent_of("pg", bias=-50.0)  # would stop at once
    ride = record(agent_driver("tiny", agent), 0, 50)
    assert len(ride) > 3
    assert replay(ride).game_over[-1] or len(ride) == 50


def test_drivers_of_a_run_folder(tmp_path):
    run = tmp_path / "runs" / "a"
    termdp.train("backseat", "pg", steps=32, seeds=2, config=TINY, out=run)
    drivers = drivers_in(tmp_path / "runs")
    assert [d.name for d in drivers] == [f"backseat pg a seed {s}" for s in (0, 1)]
    assert drivers[0].model == drivers[1].model
    leaves = zip(*(jax.tree.leaves(d.params) for d in drivers), strict=True)
    assert any(not np.array_equal(a, b) for a, b in leaves)
    ride = record(drivers[0], 1, 30)
    assert ride.driver == "backseat pg a seed 0"
    assert jnp.asarray(ride.actions).max() <= 2


def test_folders_without_drivers_are_said(tmp_path):
    with pytest.raises(ValueError, match="no such folder"):
        drivers_in(tmp_path / "none")
    with pytest.raises(ValueError, match="found none"):
        drivers_in(tmp_path)
    with pytest.raises(
        ValueError, match="expected a run of backseat, got one of breakout"
    ):
        agent_driver("none", agent_of("pg", "breakout"))
    with pytest.raises(ValueError, match="other sizes, speeds, actions or images"):
        agent_driver("none", agent_of("pg", lanes=4))
