"""A full disk: the kernel itself refuses to write beyond a size."""

import contextlib
import resource


@contextlib.contextmanager
def small_files(size):
    """No file can grow beyond this many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
