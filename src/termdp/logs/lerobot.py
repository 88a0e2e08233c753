"""LeRobot v3 data sets as logs: a folder with `meta/info.json` and `data/*.parquet`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from termdp.logs.sources import BATCH_ROWS, Source
from termdp.reading import read_json

# Pictures lie in files of their own.
_PICTURES = ("image", "video")


def lerobot_source(folder: Path) -> Source:
    """A data set's rows; vectors become a column per entry, as `observation.state.x`.

    By default, sessions are episodes, all `observation.*` are observed, all `action*` are
    actions, and `next.success` is the stop. If another column is the stop, a success is
    an end without a stop.
    """
    try:
        info: dict[str, Any] = read_json(folder / "meta" / "info.json", dict)
        features = info["features"]
        version = str(info.get("codebase_version", "unknown"))
        columns = _columns(features)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"expected a log or a folder of a LeRobot data set, got {folder}: it has no "
            f"readable meta/info.json ({error})"
        ) from error
    if not version.startswith("v3"):
        raise ValueError(
            f"expected a LeRobot data set of version v3, got {version} in {folder}: "
            "convert it with lerobot's convert_dataset_v21_to_v30"
        )
    files = sorted((folder / "data").glob("chunk-*/file-*.parquet"))
    if not files:
        raise ValueError(f"expected data/chunk-*/file-*.parquet in {folder}, got none")

    def read(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        keys = list(dict.fromkeys(columns[name][0] for name in names))
        for path in files:
            with pa.parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(BATCH_ROWS, columns=keys):
                    yield _flat(batch, {name: columns[name] for name in names})

    schema = pa.schema([(name, kind) for name, (_, _, kind) in columns.items()])
    return Source(str(folder), schema, read, _defaults(list(columns)))


def _defaults(names: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "session": "episode_index",
        "observations": tuple(n for n in names if n.startswith("observation.")),
        "actions": tuple(n for n in names if n == "action" or n.startswith("action.")),
    }
    if "next.success" in names:
        found |= {"stopped": "next.success", "ended": "next.success"}
    return found


def _columns(features: Any) -> dict[str, tuple[str, int | None, pa.DataType]]:
    """From column to the data set's feature, the entry in it, and its type."""
    found: dict[str, tuple[str, int | None, pa.DataType]] = {}
    for key, feature in features.items():
        kind, shape = feature["dtype"], tuple(feature["shape"])
        if kind in _PICTURES or len(shape) > 1:
            continue
        size = shape[0] if shape else 1
        if kind == "string":
            found[key] = (key, None, pa.string())
            continue
        arrow = pa.from_numpy_dtype(np.dtype(kind))
        if size == 1:
            found[key] = (key, None, arrow)
            continue
        for index, name in enumerate(_entry_names(feature.get("names"), size)):
            found[f"{key}.{name}"] = (key, index, arrow)
    return found


def _entry_names(given: Any, size: int) -> list[str]:
    if isinstance(given, dict):
        given = [name for names in given.values() for name in names]
    if isinstance(given, list) and len(set(map(str, given))) == size:
        return [str(name) for name in given]
    return [str(index) for index in range(size)]


def _flat(
    batch: pa.RecordBatch, wanted: dict[str, tuple[str, int | None, pa.DataType]]
) -> pa.RecordBatch:
    arrays = []
    for key, index, _ in wanted.values():
        column = batch.column(key)
        if pa.types.is_list(column.type) or pa.types.is_fixed_size_list(column.type):
            column = pa.compute.list_element(column, index or 0)
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, names=list(wanted))
