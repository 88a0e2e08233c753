"""Files that appear whole or not at all: written beside, flushed to disk, renamed."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """A path to write to; it becomes `path` in one rename when the block ends well.

    Write a file or a folder there. A kill at any moment leaves the old content or the
    new one, and an error leaves the old.

    Example:
        >>> from pathlib import Path
        >>> with draft_of(Path("notes.txt")) as draft:  # doctest: +SKIP
        ...     draft.write_text("whole or not at all")
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    _remove(draft)
    try:
        yield draft
        if draft.is_dir():
            for inside in draft.iterdir():
                to_disk(inside)
        to_disk(draft)
        os.replace(draft, path)
        to_disk(path.parent)
    finally:
        _remove(draft)


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
