"""Pytrees as named arrays and back."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from termdp.arrays import named_arrays, restore


def state(size=3):
    return {"weights": [jnp.arange(size, dtype=jnp.float32)], "key": jax.random.key(7)}


def test_there_and_back():
    arrays = named_arrays(state())
    assert set(arrays) == {"['key']", "['weights'][0]"}
    assert all(isinstance(array, np.ndarray) for array in arrays.values())
    again = restore(jax.eval_shape(state), arrays)
    assert np.array_equal(again["weights"][0], [0, 1, 2])
    assert jax.random.uniform(again["key"]) == jax.random.uniform(jax.random.key(7))


def test_another_configuration_is_refused():
    arrays = named_arrays(state())
    with pytest.raises(ValueError, match=r"weights.* of shape \(4,\) .* got \(3,\)"):
        restore(jax.eval_shape(lambda: state(4)), arrays)
    with pytest.raises(ValueError, match="it differs in .*'key'"):
        restore({"weights": [jnp.zeros(3)]}, arrays)
