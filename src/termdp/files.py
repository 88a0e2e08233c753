"""Files written whole or not at all: written to a draft, flushed to disk, renamed."""

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LOCK = ".lock"
MEGABYTE = 2**20


@contextlib.contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """A path to write to; it becomes `path` in one rename if the block succeeds.

    Write a file or a folder there. A kill at any moment leaves the old content or the
    new one, and an error leaves the old.

    Examples:
        >>> from pathlib import Path
        >>> with draft_of(Path("notes.txt")) as draft:  # doctest: +SKIP
        ...     draft.write_text("whole or not at all")
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    _remove(draft)
    try:
        with told_in_words(path):
            yield draft
            if draft.is_dir():
                for inside in draft.iterdir():
                    to_disk(inside)
            to_disk(draft)
            os.replace(draft, path)
            to_disk(path.parent)
    finally:
        _remove(draft)


@contextlib.contextmanager
def told_in_words(path: Path) -> Iterator[None]:
    """Turn a failed write (disk full, no permission) into one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        full = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        advice = "make room" if error.errno in full else "fix that"
        raise OSError(
            f"expected to write {path}, but it cannot be written ({error.strerror}): "
            f"{advice} and try again; the old content is kept"
        ) from error


@contextlib.contextmanager
def room_for(path: Path, size: int) -> Iterator[None]:
    """Fail now, and not after the work, if there is no room for its results.

    The room is reserved until the block ends: leave the block before writing.

    Args:
        path: the file to be written.
        size: the most bytes that it needs.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    held = path.with_name(f".{path.name}.{os.getpid()}.room.draft")
    try:
        with told_in_words(path), held.open("wb") as file:
            # Really written: some disks create files without room for their content.
            for _ in range(-(-size // MEGABYTE)):
                file.write(bytes(MEGABYTE))
            file.flush()
            os.fsync(file.fileno())
        yield
    finally:
        held.unlink(missing_ok=True)


def is_unused(folder: Path) -> bool:
    """Whether a folder is missing or empty, ignoring leftovers of killed writers."""
    if not folder.exists():
        return True
    if not folder.is_dir():
        return False
    return all(is_leftover(path) for path in folder.iterdir())


def is_leftover(path: Path) -> bool:
    """Whether a file is one that a killed process left, or a lock."""
    name = path.name
    return name == LOCK or (name.startswith(".") and name.endswith(".draft"))


def write_json(path: Path, content: Any) -> None:
    """Write plain data as JSON."""
    with draft_of(path) as draft:
        draft.write_text(json.dumps(content, indent=2) + "\n")


def to_disk(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
