"""Against conftest's flags: some programs are compiled otherwise after all."""

import contextlib

import pytest
from jax._src import compiler


@contextlib.contextmanager
def compiled_with(**chosen):
    """What is compiled in this block has other flags; JAX has no setting for it."""
    real = compiler.get_compile_options

    def options(*args, env_options_overrides=None, **named):
        overrides = chosen | (env_options_overrides or {})
        return real(*args, env_options_overrides=overrides, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "get_compile_options", options)
        yield


def optimised():
    """For programs that run for long: they compile in twice the time, and run faster."""
    return compiled_with(xla_backend_optimization_level=1)


def fused():
    """Operations are fused as in users' programs."""
    return compiled_with(xla_cpu_use_fusion_emitters=True)
