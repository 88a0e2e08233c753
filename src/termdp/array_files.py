"""Named arrays on disk: safetensors files, with a manifest in their header.

Reading one never runs code. Its header is checked before memory is taken for its arrays.
"""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from termdp.files import draft_of
from termdp.reading import MEGABYTE, UNREADABLE, plain_size

MOST_HEADER = 8 * MEGABYTE
MOST_BYTES = 16 * 1024 * MEGABYTE
Arrays = dict[str, np.ndarray]


def write_arrays(
    path: Path, arrays: Arrays, name: str = "", manifest: Any = None
) -> None:
    """Write a whole file or nothing: arrays, and under a name a manifest, if given."""
    header = None if manifest is None else {name: json.dumps(manifest, sort_keys=True)}
    with draft_of(path) as draft:
        save_arrays(draft, arrays, header)


def save_arrays(
    path: Path, arrays: Arrays, header: dict[str, str] | None = None
) -> None:
    """Write arrays to a draft; a full disk is an `OSError`, as for all other files."""
    try:
        save_file(arrays, path, header)
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise OSError(f"expected to write {path}, but: {error}") from error
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


def read_arrays(path: Path, most_bytes: int = MOST_BYTES) -> Arrays:
    """All arrays of a file of at most this many bytes; a `ValueError` otherwise."""
    return _read(path, lambda header: most_bytes)[1]


def read_with_manifest(
    path: Path, name: str, room: Callable[[Any], int]
) -> tuple[Any, Arrays]:
    """A file's manifest and its arrays.

    Args:
        path: the file.
        name: the manifest's name in the header.
        room: a function from the manifest to the most bytes that the arrays may take.
            It is called before they are read, and may raise a `ValueError`.
    """

    def limit(header: dict[str, str]) -> int:
        found.append(_parsed(header.get(name)))
        return room(found[-1])

    found: list[Any] = []
    arrays = _read(path, limit)[1]
    return found[-1], arrays


def read_manifest(path: Path, name: str) -> Any:
    """The manifest in a file's header, without the arrays; None if there is none."""
    return _parsed(_read(path, lambda header: -1)[0].get(name))


def _read(
    path: Path, most_bytes: Callable[[dict[str, str]], int]
) -> tuple[dict[str, str], Arrays]:
    """The header and the arrays.

    `most_bytes` says from the header how many bytes the arrays may take; if it is
    negative, they are not read.
    """
    try:
        size = plain_size(path)
        with path.open("rb") as file:
            header_size = int.from_bytes(file.read(8), "little")
        if size < 8 or header_size > size - 8:
            raise ValueError("it is not a safetensors file")
        if size > MOST_BYTES:
            raise ValueError(f"it is larger than {MOST_BYTES // MEGABYTE} MB")
        if header_size > MOST_HEADER:
            raise ValueError(f"its header is larger than {MOST_HEADER // MEGABYTE} MB")
        with safe_open(path, framework="np") as opened:
            header = dict(opened.metadata() or {})
            most = most_bytes(header)
            if most < 0:
                return header, {}
            if size - 8 - header_size > most:
                raise ValueError(f"its arrays have more than the expected {most} bytes")
            names = list(opened.keys())
            return header, {name: opened.get_tensor(name) for name in names}
    except PermissionError as error:
        raise ValueError(UNREADABLE) from error
    except OSError as error:
        raise ValueError(str(error)) from error
    except (SafetensorError, TypeError, KeyError, OverflowError) as error:
        raise ValueError("it is not a safetensors file") from error


def _parsed(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None
