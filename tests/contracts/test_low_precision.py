"""What a GPU would run, on this machine: bfloat16, and convolutions by two rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from termdp import layers
from termdp.runs.program import TrainProgram
from termdp.runs.spec import RunSpec, make_job

SMALL = {
    "num_envs": 2,
    "rollout_steps": 8,
    "hidden": 16,
    "precision": "bfloat16",
    "num_epochs": 1,
    "num_minibatches": 2,
    "cost_precision": "bfloat16",
    "cost_num_steps": 1,
    "cost_segments_per_step": 1,
    "cost_segment_length": 16,
    "cost_buffer_steps": 64,
    "cost_stops_per_step": 2,
    "cost_stop_capacity": 16,
}


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
    spec = RunSpec(env_id, steps=32, numbers=SMALL, env_numbers={"window": 8} | options)
    program = TrainProgram(make_job(spec))
    state, packed = program.advance(program.init(), 2)
    reports = program.unpack(packed)
    # Parameters and moments are as precise as ever.
    for leaf in jax.tree.leaves((state.policy, state.costs)):
        assert leaf.dtype != jnp.bfloat16
        if leaf.dtype == jnp.float32:
            assert np.all(np.isfinite(leaf))
    for name, values in reports.items():
        assert np.all(np.isfinite(values)), name
