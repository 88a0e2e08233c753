"""What is kept of observations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from termdp.cost_network import ActionSpec
from termdp.costs import experience
from termdp.costs.buffer import NOT_STOPPED, STOPPED, unpack
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


@pytest.mark.parametrize("keep", ["recent", "stops"])
def test_which_members_have_a_stop(keep, key):
    config = CostConfig(keep=keep, buffer_steps=64, segment_length=4, stop_capacity=4)
    add = jax.jit(experience.add, static_argnums=6)
    obs = jnp.zeros((ROWS, ENVS, 2))
    actions = jnp.zeros((ROWS, ENVS), jnp.int32)
    starts = jnp.zeros((ROWS, ENVS), bool).at[0].set(True)
    labels = jnp.full((ROWS, ENVS), NOT_STOPPED, jnp.int8)
    kept = experience.init(obs[0, 0], ActionSpec(2), (ENVS, ROWS), WINDOW, config)
    assert not experience.members_with_stops(kept).any()
    kept = add(key, kept, obs, actions, starts, labels, config)
    assert not experience.members_with_stops(kept).any()
    # One stop, in stream 1: it counts for the members whose bootstrap has its episode.
    labels = labels.at[3, 1].set(STOPPED)
    found = set()
    for seed in range(6):
        after = add(jax.random.key(seed), kept, obs, actions, starts, labels, config)
        rows = after.recent if keep == "stops" else after
        row = (rows.cursor - ROWS + 3) % rows.num_rows
        expected = np.asarray(rows.weights[row, 1]) > 0
        np.testing.assert_array_equal(experience.members_with_stops(after), expected)
        found |= set(expected.tolist())
    assert found == {True, False}
