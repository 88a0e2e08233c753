"""Trained policies at the wheel: they see what they saw in training, unstopped."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from termdp.training.loop import Job, Trainer

import termdp
from termdp.agents.methods import find_method
from termdp.people.driving.rides import record, replay
from termdp.people.driving.trained import PolicyDriverModel, drivers_in, policy_driver
from tiny_config import tiny

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


def never_stopped(method, **options):
    env, params = termdp.make("backseat", bias=1e9, **options)
    return Trainer(Job(env, params, (find_method(method),), (0,), TINY, 1))


def decided(state):
    """The same networks, so sure of themselves that sampling makes no difference."""
    of_policy = np.s_[..., :-1]  # the last column is the value's

    def sharpen(path, leaf):
        in_heads = "heads" in str(path)
        return leaf.at[of_policy].multiply(1e6) if in_heads else leaf

    params = jax.tree_util.tree_map_with_path(sharpen, state.policy.params)
    return dataclasses.replace(
        state, policy=dataclasses.replace(state.policy, params=params)
    )


@pytest.mark.parametrize("method", ["termpg", "pg_recurrent"])
def test_a_driver_decides_as_the_policy_did_in_training(method):
    trainer = never_stopped(method)
    state = decided(jax.jit(trainer.init)())
    mine = jax.tree.map(lambda x: x[0], (state.policy, state.costs, state.scene))
    policy, costs, scene = mine
    switches = jax.tree.map(lambda x: x[0], trainer.switches)
    _, played = trainer.play(
        policy, costs, switches, scene, jax.random.key(3), num_steps=60
    )
    model = PolicyDriverModel(trainer)
    driver = policy_driver("tiny", model, trainer, state)
    act = jax.jit(model.act)
    memory = model.start(driver.params)
    for step in range(60):
        if played.starts[step, 0]:
            memory = model.start(driver.params)
        seen = played.seen.observation[step, 0]
        action, memory = act(driver.params, jax.random.key(step), seen, memory)
        assert int(action) == int(played.actions[step, 0]), step


def test_an_observer_in_the_policys_world_does_not_stop_its_rides():
    env, params = termdp.make("backseat", bias=-50.0)  # would stop at once
    trainer = Trainer(Job(env, params, (find_method("pg"),), (0,), TINY, 1))
    state = jax.jit(trainer.init)()
    driver = policy_driver("tiny", PolicyDriverModel(trainer), trainer, state)
    ride = record(driver, 0, 50)
    assert len(ride) > 3
    assert replay(ride).game_over[-1] or len(ride) == 50


def test_drivers_of_a_run_folder(tmp_path):
    run = tmp_path / "runs" / "a"
    termdp.train("backseat", "pg", steps=32, seeds=2, config=TINY, out=run)
    drivers = drivers_in(tmp_path / "runs")
    assert [d.name for d in drivers] == [f"backseat pg a seed {s}" for s in (0, 1)]
    assert drivers[0].model is drivers[1].model
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
    env, params = termdp.make("breakout")
    trainer = Trainer(Job(env, params, (find_method("pg"),), (0,), TINY, 1))
    with pytest.raises(ValueError, match="run of Backseat Driver"):
        PolicyDriverModel(trainer)
    with pytest.raises(ValueError, match="other sizes, speeds or images"):
        PolicyDriverModel(never_stopped("pg", lanes=4))
