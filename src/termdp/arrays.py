"""Pytrees as named arrays and back, for safetensors files."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def named_arrays(state: Any) -> dict[str, np.ndarray]:
    """The leaves of a pytree by path; random keys as plain integers."""
    leaves = jax.tree_util.tree_flatten_with_path(state)[0]
    return {
        jax.tree_util.keystr(path): np.asarray(_without_key(leaf), order="C")
        for path, leaf in leaves
    }


def restore(template: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A state like `template` (shapes are enough) with the saved leaves."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(template)
    names = [jax.tree_util.keystr(path) for path, _ in leaves]
    if set(names) != set(arrays):
        odd = sorted(set(names) ^ set(arrays))
        raise ValueError(
            "expected a checkpoint of the same configuration, but it differs in "
            f"{', '.join(odd[:3])}"
        )
    restored = []
    for name, (_, leaf) in zip(names, leaves, strict=True):
        array = arrays[name]
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        shape = array.shape[:-1] if is_key else array.shape
        if shape != leaf.shape or not (is_key or array.dtype == leaf.dtype):
            raise ValueError(
                f"expected {name} of shape {leaf.shape} and type {leaf.dtype}, got "
                f"{shape} and {array.dtype}: the configuration differs"
            )
        restored.append(
            jax.random.wrap_key_data(jnp.asarray(array))
            if is_key
            else jnp.asarray(array)
        )
    return jax.tree_util.tree_unflatten(structure, restored)


def bytes_of(template: Any) -> int:
    """How many bytes the arrays of a tree take when saved."""
    return sum(
        math.prod(leaf.shape) * _itemsize(leaf) for leaf in jax.tree.leaves(template)
    )


def _itemsize(leaf: Any) -> int:
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return 8  # two words of 32 bits
    return int(np.dtype(leaf.dtype).itemsize)


def _without_key(leaf: Any) -> Any:
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(leaf) if is_key else leaf
