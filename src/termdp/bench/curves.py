"""Learning curves on disk: Parquet, or NumPy's format if pyarrow is missing.

A machine that only trains needs no pyarrow; packing the results later turns its files
into Parquet.
"""

import importlib.util
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from termdp.files import draft_of
from termdp.reading import plain_size

Curve = dict[str, np.ndarray]
WORDS = ("column", "row")
MOST_ROWS = 2_000_000
MOST_COLUMNS = 40
MOST_WORD = 100


def has_parquet() -> bool:
    """Whether Parquet can be written here."""
    return importlib.util.find_spec("pyarrow") is not None


def write_curve(stem: Path, curve: Curve) -> Path:
    """Write columns of equal length, whole or not at all; returns the file's path.

    The suffix is added to `stem`.
    """
    path = with_suffix(stem, ".parquet" if has_parquet() else ".npz")
    with draft_of(path) as draft:
        if path.suffix == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table(curve), draft, compression="zstd")
        else:
            # mypy takes a column for the flag that numpy's signature has.
            columns: dict[str, Any] = curve
            with draft.open("wb") as file:
                np.savez_compressed(file, **columns)
    return path


def read_curve(stem: Path) -> Curve | None:
    """Read what `write_curve` wrote, in either format; None if there is no file.

    Raises `ValueError` if the file is damaged or larger than any curve can be.
    """
    for suffix, read in ((".parquet", _read_parquet), (".npz", _read_npz)):
        path = with_suffix(stem, suffix)
        if path.exists():
            try:
                plain_size(path)
                return _checked(read(path))
            except (
                OSError,
                KeyError,
                TypeError,
                EOFError,
                zipfile.BadZipFile,
            ) as error:
                reason = " ".join(str(error).split())[:200]
                raise ValueError(f"{path.name}: {reason}") from error
    return None


def _read_parquet(path: Path) -> Curve:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(path)
        _check_size(metadata.num_rows, metadata.schema.names)
        words = [name for name in WORDS if name in metadata.schema.names]
        with pq.ParquetFile(path, read_dictionary=words) as file:
            if any(pa.types.is_nested(kind) for kind in file.schema_arrow.types):
                raise ValueError("expected columns of numbers and words")
            table = file.read()
    except pa.ArrowException as error:
        raise ValueError(" ".join(str(error).split())[:200]) from error
    return {name: _column(table[name]) for name in table.column_names}


def _column(values: Any) -> np.ndarray:
    """A column as an array; words are checked before they are copied to every row."""
    import pyarrow as pa

    if not pa.types.is_dictionary(values.type):
        return np.asarray(values.to_numpy())
    values = values.unify_dictionaries().combine_chunks()
    chunk = values.chunk(0) if isinstance(values, pa.ChunkedArray) else values
    words = np.array(chunk.dictionary.to_pylist(), object)
    if chunk.null_count or any(len(str(word)) > MOST_WORD for word in words):
        raise ValueError(f"expected words of at most {MOST_WORD} letters")
    places = chunk.indices.to_numpy()
    if len(places) and not 0 <= places.min() <= places.max() < len(words):
        raise ValueError("expected a word in every row, got rows without one")
    return np.asarray(words[places])


def _read_npz(path: Path) -> Curve:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if entry.file_size > MOST_ROWS * 8 * 4:
                raise ValueError(f"{entry.filename} is larger than any curve")
            with archive.open(entry) as file:
                version = np.lib.format.read_magic(file)
                if version not in _HEADERS:
                    raise ValueError(f"{entry.filename} is no array")
                shape, _, dtype = _HEADERS[version](file)
                size = math.prod(shape) * dtype.itemsize
            if dtype.hasobject or size > entry.file_size:
                raise ValueError(f"{entry.filename} is no array of numbers or words")
    with np.load(path, allow_pickle=False) as file:
        _check_size(0, file.files)
        return {name: file[name] for name in file.files}


_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def _check_size(rows: int, names: list[str]) -> None:
    if rows > MOST_ROWS:
        raise ValueError(f"expected at most {MOST_ROWS} rows, got {rows}")
    if len(names) > MOST_COLUMNS or not all(name.isidentifier() for name in names):
        raise ValueError(f"expected at most {MOST_COLUMNS} columns with plain names")


def _checked(curve: Curve) -> Curve:
    """Columns of equal length: words where words belong, numbers elsewhere."""
    steps = curve["step"]
    _check_size(steps.size, list(curve))
    for name, values in curve.items():
        if values.shape != (steps.size,):
            raise ValueError(f"expected {steps.size} values of {name}")
        if (name in WORDS) != (values.dtype.kind in "OU") or (
            name not in WORDS and values.dtype.kind not in "iuf"
        ):
            kind = "words" if name in WORDS else "numbers"
            raise ValueError(f"expected {kind} in {name}, got {values.dtype}")
        if values.dtype.kind == "O" and not all(isinstance(v, str) for v in values):
            raise ValueError(f"expected words in {name}")
    return curve


def with_suffix(stem: Path, suffix: str) -> Path:
    """The path with a suffix added; `Path.with_suffix` would cut `termpg_0.1`."""
    return stem.with_name(stem.name + suffix)
