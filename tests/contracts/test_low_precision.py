"""What a GPU would run, on this machine: bfloat16, and convolutions by two rows."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from termdp import layers
from termdp.agents.methods import find_method
from termdp.runs.program import Job, Trainer
from termdp.runs.presets import make_config
from termdp.runs.train import make_watched


def small(env, params):
    config = make_config("fast", env, params, 30)
    return dataclasses.replace(
        config,
        num_envs=4,
        rollout_steps=8,
        hidden=32,
        precision="bfloat16",
        ppo=dataclasses.replace(config.ppo, num_epochs=1, num_minibatches=2),
        costs=dataclasses.replace(
            config.costs,
            precision="bfloat16",
            num_steps=2,
            segments_per_step=2,
            segment_length=64,
            buffer_steps=512,
        ),
    )


@pytest.mark.parametrize(
    ("env_id", "options"),
    [
        ("breakout", {}),
        ("backseat", {}),
        ("backseat", {"observation": "image"}),
    ],
)
def test_grids_and_images_train_as_on_a_gpu(env_id, options, monkeypatch):
    monkeypatch.setattr(layers, "fastest_rows", lambda features: 2)
    env, params = make_watched(env_id, **options)
    job = Job(env, params, (find_method("termpg"),), (0,), small(env, params), 2)
    trainer = Trainer(job)
    state, reports = trainer.advance(trainer.init(), 2)
    # Parameters and moments are as precise as ever.
    for leaf in jax.tree.leaves((state.policy, state.costs)):
        assert leaf.dtype != jnp.bfloat16
        if leaf.dtype == jnp.float32:
            assert np.all(np.isfinite(leaf))
    for name, values in reports.items():
        assert np.all(np.isfinite(values)), name
