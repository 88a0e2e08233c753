"""What is kept of observations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from termdp.cost_network import ActionSpec
from termdp.costs import experience
from termdp.costs.buffer import STOPPED, unpack
from termdp.costs.config import CostConfig

ENVS, ROWS, WINDOW = 2, 8, 2


@pytest.mark.parametrize("keep", ["recent", "stops"])
def test_only_the_channels_that_are_seen_are_kept(keep, key):
    config = CostConfig(
        keep=keep, channels=2, buffer_steps=64, segment_length=4, stop_capacity=4
    )
    obs = jax.random.bernoulli(key, 0.5, (ROWS, ENVS, 3, 3, 5))
    kept = experience.init(obs[0, 0], ActionSpec(2), (ENVS, ROWS), WINDOW, config)
    assert experience.form_of(kept) == ((3, 3, 2), "bool")
    actions = jnp.zeros((ROWS, ENVS), jnp.int32)
    labels = jnp.full((ROWS, ENVS), STOPPED, jnp.int8)
    starts = jnp.ones((ROWS, ENVS), bool)
    add = jax.jit(experience.add, static_argnums=6)
    kept = add(key, kept, obs, actions, starts, labels, config)
    draw, _ = experience.way_to_draw(kept, jnp.int32(WINDOW), config)
    seen = jax.jit(draw)(key).obs
    drawn = unpack(seen, *experience.form_of(kept)).reshape(-1, 18)
    there = np.asarray(obs[..., :2]).reshape(-1, 18)
    assert {tuple(row) for row in np.asarray(drawn)} <= {tuple(row) for row in there}
