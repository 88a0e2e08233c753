"""Check files before using them.

A file must be a plain file, then not too large, then have the right fields. Each kind of
file has a class with typed fields, and unknown fields are refused.
"""

import json
import stat
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

MEGABYTE = 2**20
UNREADABLE = "it is unreadable: you have no permission to read it"
Kind = TypeVar("Kind")
# Types of fields that many kinds of files have.
Count = Annotated[int, msgspec.Meta(ge=0, le=10**15)]
Size = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
Name = Annotated[str, msgspec.Meta(max_length=300)]
Plain = bool | int | float | str | None


def read_small(path: Path, most: int = 64 * MEGABYTE) -> bytes:
    """The content of a plain file of at most this many bytes.

    A pipe, a device or a file that is too large is refused before anything is read.
    Errors are `OSError`s whose text says what is wrong.
    """
    if plain_size(path) > most:
        raise OSError(f"it is larger than {most // MEGABYTE} MB")
    try:
        return path.read_bytes()
    except PermissionError:
        raise OSError(UNREADABLE) from None


def plain_size(path: Path) -> int:
    """Size of a plain file in bytes; an `OSError` with a reason if it is not one."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise OSError("it is not a plain file")
    except FileNotFoundError:
        raise OSError("no such file") from None
    except PermissionError:
        raise OSError(UNREADABLE) from None
    return found.st_size


def read_json(path: Path, kind: type[Kind], most: int = 64 * MEGABYTE) -> Kind:
    """Plain data from a JSON file, as `kind` (see `from_plain`).

    Anything else is a `ValueError` with the reason, without the path.
    """
    try:
        content = json.loads(read_small(path, most))
    except OSError as error:
        raise ValueError(str(error)) from error
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    return from_plain(content, kind)


def from_plain(content: Any, kind: Any) -> Any:
    """Plain data as a class with typed fields; unknown fields are an error.

    Args:
        content: what JSON gave.
        kind: a dataclass, a `msgspec.Struct` or any type that msgspec knows.
    """
    try:
        made = msgspec.convert(content, kind)
        _refuse_unknown(content, msgspec.to_builtins(made), "")
    except (msgspec.ValidationError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())[:300]) from error
    return made


def _refuse_unknown(given: Any, known: Any, place: str) -> None:
    if isinstance(given, dict) and isinstance(known, dict):
        for name, value in given.items():
            if name not in known:
                raise ValueError(f"unknown field {place + str(name)!r}"[:200])
            _refuse_unknown(value, known[name], f"{place}{name}.")
