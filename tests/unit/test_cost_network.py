"""What the cost networks see, and what is the same for all columns of a grid."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from termdp.cost_network import ActionSpec, CostNetwork, columns_with_neighbours


def test_a_column_lies_between_its_neighbours():
    grid = jnp.arange(1, 7).reshape(2, 3, 1)  # rows 1 2 3 and 4 5 6
    found = columns_with_neighbours(grid)
    expected = [[0, 0, 1, 4, 2, 5], [1, 4, 2, 5, 3, 6], [2, 5, 3, 6, 0, 0]]
    np.testing.assert_array_equal(found, expected)


@pytest.fixture
def lanes():
    network = CostNetwork(ActionSpec(3), kind="columns", channels=2, hidden=4)
    variables = network.init(jax.random.key(0), jnp.zeros((6, 5, 8)), jnp.int32(0))
    return jax.jit(lambda obs, action: network.apply(variables, obs, action))


def test_what_happens_costs_the_same_in_every_lane(lanes, key):
    scene = jax.random.bernoulli(key, 0.5, (6, 1, 8))
    costs = [
        lanes(jnp.zeros((6, 5, 8), bool).at[:, lane : lane + 1].set(scene), action)
        for action in (0, 2)
        for lane in (1, 2, 3)
    ]
    np.testing.assert_allclose(costs[:3], costs[0], atol=1e-6)
    np.testing.assert_allclose(costs[3:], costs[3], atol=1e-6)
    assert abs(costs[0] - costs[3]) > 1e-6  # actions differ


def test_only_the_first_channels_are_seen(lanes, key):
    obs = jax.random.uniform(key, (6, 5, 8))
    assert lanes(obs, 1) == lanes(obs.at[..., 2:].set(0.0), 1)
    assert lanes(obs, 1) != lanes(obs.at[..., 1:].set(0.0), 1)
