"""Against conftest's flags: programs that run for long are optimised after all."""

import contextlib

import pytest
from jax._src import compiler

# Compiles in twice the time of conftest's flags, and runs six times faster.
OPTIMISED = {"xla_backend_optimization_level": 1}


@contextlib.contextmanager
def optimised():
    """What is compiled in this block runs fast; JAX has no setting for it."""
    real = compiler.get_compile_options

    def chosen(*args, env_options_overrides=None, **named):
        options = OPTIMISED | (env_options_overrides or {})
        return real(*args, env_options_overrides=options, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "get_compile_options", chosen)
        yield
