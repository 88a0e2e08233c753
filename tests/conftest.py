"""Shared by all tests: how their programs are compiled, and what they leave behind."""

import ctypes
import gc
import os
import shutil
from pathlib import Path

# Tests compile many programs and run each for a moment: compiling several times
# faster matters more than running as fast. Programs that were compiled once are kept, for
# both workers, for the commands that tests start, and for the next run (`make clean`
# throws them away). All this is set before JAX is imported.
KEPT_PROGRAMS = Path(__file__).parents[1] / ".cache" / "test-programs"
MOST_BYTES = 2 * 2**30
MOST_RESIDENT_BYTES = 1.8 * 2**30
WORTH_FORGETTING_BYTES = 0.6 * 2**30
CHOICES = {
    "XLA_FLAGS": "--xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1",  # the other core has its own tests
    "JAX_COMPILATION_CACHE_DIR": str(KEPT_PROGRAMS),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    # Beside another worker, threads of linear algebra mostly wait for each other: the
    # first weights of one large network took 34 s of CPU, alone 2 s.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
for name, value in CHOICES.items():
    os.environ.setdefault(name, value)

import jax
import pytest

from runs_long import optimised


def pytest_configure(config):
    """Programs of many versions pile up: begin anew before they take too much room."""
    if hasattr(config, "workerinput") or not KEPT_PROGRAMS.exists():
        return
    if sum(path.stat().st_size for path in KEPT_PROGRAMS.iterdir()) > MOST_BYTES:
        shutil.rmtree(KEPT_PROGRAMS)


def pytest_collection_finish():
    """What was imported stays: collecting garbage need not look at it again.

    Tracing makes many small objects that live on: looking for garbage as often as Python
    does by default takes a tenth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


_left = 0  # what the process took after programs were forgotten


@pytest.fixture(autouse=True)
def memory_is_given_back():
    """Programs are forgotten when they take much room; else a worker grows to 6 GB.

    Much of what a process takes it never gives back, so what counts is growth.
    """
    global _left
    yield
    if _resident_bytes() > max(MOST_RESIDENT_BYTES, _left + WORTH_FORGETTING_BYTES):
        jax.clear_caches()
        gc.collect()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
        _left = _resident_bytes()


def _resident_bytes():
    """The memory this process takes now; 0 where the system does not say so."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def runs_long():
    """For tests whose programs run for long: they are optimised."""
    with optimised():
        yield


@pytest.fixture
def key() -> jax.Array:
    return jax.random.key(0)
