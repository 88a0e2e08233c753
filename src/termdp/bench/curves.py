"""Learning curves on disk: Parquet, or NumPy's format where pyarrow is missing.

A machine that only trains needs no pyarrow; whoever packs the results later on turns
its files into Parquet.
"""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from termdp.files import draft_of

Curve = dict[str, np.ndarray]


def has_parquet() -> bool:
    """Whether Parquet can be written here."""
    return importlib.util.find_spec("pyarrow") is not None


def write_curve(stem: Path, curve: Curve) -> Path:
    """Write columns of equal length in one rename; returns the file's path."""
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
    """Read what `write_curve` wrote, whichever it was; None if nothing is there."""
    path = with_suffix(stem, ".parquet")
    if path.exists():
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        return {name: table[name].to_numpy() for name in table.column_names}
    path = with_suffix(stem, ".npz")
    if path.exists():
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    return None


def with_suffix(stem: Path, suffix: str) -> Path:
    """The path with something added: names such as `termpg_0.1` have dots already."""
    return stem.with_name(stem.name + suffix)
