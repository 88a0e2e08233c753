"""Spaces: the same elements and the same draws as gymnax's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces as gymnax_spaces

from termdp.envs.spaces import Box, Discrete


def test_discrete_draws_as_gymnax_does():
    keys = jax.random.split(jax.random.key(0), 200)
    ours, theirs = Discrete(5), gymnax_spaces.Discrete(5)
    draws = jax.vmap(ours.sample)(keys)
    assert np.array_equal(draws, jax.vmap(theirs.sample)(keys))
    assert set(draws.tolist()) == set(range(5))
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    assert [bool(ours.contains(x)) for x in (-1, 0, 4, 5)] == [False, True, True, False]


def test_box_draws_as_gymnax_does():
    keys = jax.random.split(jax.random.key(0), 200)
    low, high = jnp.array([-1.0, 0.0]), jnp.array([1.0, 5.0])
    ours, theirs = Box(low, high, (2,)), gymnax_spaces.Box(low, high, (2,))
    draws = jax.vmap(ours.sample)(keys)
    assert np.array_equal(draws, jax.vmap(theirs.sample)(keys))
    assert all(ours.contains(draw) for draw in draws[:20])
    assert not ours.contains(jnp.array([0.0, 6.0]))
    assert not ours.contains(jnp.zeros(3))


def test_a_boolean_box_draws_both_values():
    draw = Box(False, True, (10, 10), jnp.bool_).sample(jax.random.key(0))
    assert draw.dtype == jnp.bool_ and 20 < draw.sum() < 80


def test_a_space_without_elements_is_refused():
    with pytest.raises(ValueError, match="at least 1 action, got 0"):
        Discrete(0)
