"""Running means and variances against NumPy's, over everything at once."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from termdp.runs.observation_scale import FAR, initial_scale, scaled, updated


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 2**16),
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.floats(-100, 100),
)
def test_parts_joined_are_the_whole(seed, sizes, centre):
    generator = np.random.default_rng(seed)
    parts = [generator.normal(centre, 3.0, (4, 2)).astype("f4") for _ in sizes]
    scale = initial_scale("running", (2,))
    for part in parts:
        scale = updated(scale, jnp.asarray(part))
    whole = np.concatenate(parts).astype(float)
    assert np.allclose(scale.mean, whole.mean(axis=0), rtol=1e-4, atol=1e-4)
    assert np.allclose(scale.variance, whole.var(axis=0), rtol=1e-2, atol=1e-3)
    assert float(scale.count) == len(whole)


def test_what_networks_see():
    scale = updated(initial_scale("running", (1,)), jnp.array([[1.0], [3.0]]))
    assert np.allclose(scaled(scale, np.array([[4.0], [2.0]])), [[2.0], [0.0]])
    assert scaled(scale, np.array([[1e9]])).item() == FAR
    pixels = scaled(
        initial_scale("pixels", (1, 1, 1)), np.full((1, 1, 1, 1), 255, "u1")
    )
    assert pixels.item() == pytest.approx(1.0)


def test_without_a_scale_nothing_changes():
    observations = np.zeros((2, 3), bool)
    assert scaled(initial_scale("none", (3,)), observations) is observations
