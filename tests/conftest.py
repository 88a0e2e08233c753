"""Shared by all tests."""

import os

# Tests compile many programs and run each for a moment: compiling four times faster
# matters more than running twice as fast. Set before JAX is imported.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
)

import jax
import pytest


@pytest.fixture
def key() -> jax.Array:
    return jax.random.key(0)
