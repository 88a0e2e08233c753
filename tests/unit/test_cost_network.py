"""What the cost networks see, and what is the same for all columns of a grid."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from termdp.cost_network import (
    ActionSpec,
    CostNetwork,
    columns_with_neighbours,
    magnitudes,
)


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


def test_magnitudes_by_hand():
    found = magnitudes(jnp.array([0.0, 0.1, 3**0.5, -(3**0.5), 100.0]))
    np.testing.assert_allclose(found, [0.0, 0.009975, 2.0, 2.0, 198.01], rtol=1e-3)


def test_costs_of_continuous_actions_may_be_alike_in_both_directions():
    network = CostNetwork(ActionSpec(2, discrete=False), kind="vector", hidden=4)
    variables = network.init(jax.random.key(0), jnp.zeros(3), jnp.zeros(2))
    last = variables["params"]["Dense_0"]["kernel"]
    assert last.shape == (4 + 3 + 2, 1)  # hidden units, observation, action
    variables["params"]["Dense_0"]["kernel"] = jnp.zeros_like(last).at[-1].set(0.5)
    costs = [
        float(network.apply(variables, jnp.ones(3), jnp.array([9.0, a])))
        for a in (-(3**0.5), 0.0, 3**0.5)
    ]
    np.testing.assert_allclose(costs, [1.0, 0.0, 1.0], atol=1e-6)
