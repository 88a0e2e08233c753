"""One writer per folder: a lock that ends with its process, even if that is killed."""

import contextlib
import errno
import os
import socket
import warnings
from collections.abc import Iterator
from pathlib import Path

from termdp.files import LOCK, told_in_words

try:
    import fcntl
except ImportError:  # no such locks on Windows
    fcntl = None  # type: ignore[assignment]

_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


@contextlib.contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Make a folder if it is missing, and keep other processes from writing to it.

    The lock is the kernel's, on the open file `.lock`: it ends with the process, even if
    that is killed. The file may stay behind then, but it locks nothing. On a disk
    without locks, there is a warning.
    """
    is_new = not folder.exists()
    if not is_new and not folder.is_dir():
        raise ValueError(f"expected a folder, got the file {folder}")
    with told_in_words(folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle = _locked(folder)
    try:
        yield
    finally:
        # Removed while it is locked; a process that waits for it sees that it is gone.
        (folder / LOCK).unlink(missing_ok=True)
        os.close(handle)
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()  # only if nothing was written


def _locked(folder: Path) -> int:
    """A handle of the folder's lock; it is held until the handle is closed."""
    path = folder / LOCK
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(handle, folder)
            if _is_same(handle, path):
                os.ftruncate(handle, 0)
                os.write(handle, f"{os.getpid()} on {socket.gethostname()}".encode())
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its last owner has just removed the file: try again


def _lock(handle: int, folder: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(handle, 200).decode(errors="replace")
        process = f"process {owner}" if owner else "another process"
        raise ValueError(
            f"expected nobody else to write to {folder}, but {process} does: wait for "
            "it, or use another folder"
        ) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        warnings.warn(
            f"the disk of {folder} has no locks: make sure that no other process "
            "writes there",
            stacklevel=2,
        )


def _is_same(handle: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    mine = os.fstat(handle)
    return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)
