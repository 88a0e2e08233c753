"""A study as a Parquet file, and back: one row per step that was shown.

The columns are for analysis. The file's metadata hold what a store needs: the study's
texts, whole rides with seeds and actions, reasons. The rows follow from the metadata by
playing the rides again, so an import checks every row against the game. docs/people.md
describes both.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from termdp.files import draft_of
from termdp.people.driving.rides import Replay, Ride, game, replay

FORMAT, FORMAT_VERSION = "termdp study", 2
METADATA_KEY = b"termdp_study"
SHOWINGS_PER_GROUP = 64
_SHAPE = game().observation_space().shape
_PACKED = -(-int(np.prod(_SHAPE)) // 8)

COLUMNS = [
    pa.field("showing", pa.int32(), nullable=False),
    pa.field("step", pa.int32(), nullable=False),
    pa.field("observation", pa.binary(_PACKED), nullable=False),
    pa.field("action", pa.uint8(), nullable=False),
    pa.field("reward", pa.float32(), nullable=False),
    pa.field("game_over", pa.bool_(), nullable=False),
    pa.field("stopped", pa.bool_(), nullable=False),
    pa.field("truncated", pa.bool_(), nullable=False),
    pa.field("supervisor", pa.string(), nullable=False),
    pa.field("latency_ms", pa.int32(), nullable=True),
]


def pack(observations: np.ndarray) -> np.ndarray:
    """Observations `[T, rows, lanes, 12] bool` as bits, `[T, bytes] uint8`."""
    return np.packbits(observations.reshape(len(observations), -1), axis=1)


def unpack(column: Any) -> np.ndarray:
    """The `observation` column (bytes per row) as `[T, rows, lanes, 12] bool`."""
    packed = np.frombuffer(b"".join(column), np.uint8).reshape(-1, _PACKED)
    bits = np.unpackbits(packed, axis=1, count=int(np.prod(_SHAPE)))
    return bits.reshape(-1, *_SHAPE).astype(bool)


def write(path: Path, record: dict[str, Any]) -> int:
    """Write a study's record; the file appears whole or not at all.

    Args:
        path: the file.
        record: of `study_files.study_record`.

    Returns:
        The number of rows.
    """
    content = json.dumps(record, sort_keys=True, ensure_ascii=False)
    schema = pa.schema(COLUMNS, metadata={METADATA_KEY: content.encode()})
    num_rows = 0
    with (
        draft_of(path) as draft,
        pq.ParquetWriter(draft, schema, compression="zstd") as writer,
    ):
        for batch in row_groups(record):
            writer.write_batch(batch)
            num_rows += batch.num_rows
    return num_rows


def row_groups(record: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    """The rows that a record stands for."""
    rides = {row["number"]: row for row in record["rides"]}
    names = [row["name"] for row in record["supervisors"]]
    showings = record["showings"]
    for first in range(0, len(showings), SHOWINGS_PER_GROUP):
        group = showings[first : first + SHOWINGS_PER_GROUP]
        parts = []
        for number, showing in enumerate(group, start=first):
            again = replay(ride_of(rides[showing["ride"]]))
            name = names[showing["supervisor"]]
            parts.append(_showing_rows(number, showing, name, again))
        columns = [
            pa.concat_arrays(list(column)) for column in zip(*parts, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(COLUMNS))


def ride_of(row: dict[str, Any]) -> Ride:
    """A ride of a record."""
    actions = np.frombuffer(row["actions"].encode("ascii"), np.uint8) - ord("0")
    return Ride(row["seed"], row["driver"], actions)


def _showing_rows(
    number: int, showing: dict[str, Any], supervisor: str, again: Replay
) -> list[pa.Array]:
    """One showing: up to the stop, or to the ride's own end."""
    stopped = showing["stopped"]
    num = showing["step"] + 1 if stopped else len(again)
    last = np.arange(num) == num - 1
    none = np.zeros(num, bool)
    packed = pack(again.observations[:num]).tobytes()
    latency = [None] * (num - 1) + [showing["latency_ms"]]
    return [
        pa.array(np.full(num, number, np.int32)),
        pa.array(np.arange(num, dtype=np.int32)),
        pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(_PACKED), num, [None, pa.py_buffer(packed)]
        ),
        pa.array(again.ride.actions[:num]),
        pa.array(again.rewards[:num]),
        pa.array(none if stopped else again.game_over),
        pa.array(last if stopped else none),
        pa.array(none if stopped else again.truncated),
        pa.array([supervisor] * num, pa.string()),
        pa.array(latency, pa.int32()),
    ]


def read_record(path: Path) -> dict[str, Any]:
    """A file's record alone: fast, its rows are not looked at."""
    with _opened(path) as file:
        return _record(path, file.schema_arrow)


def _opened(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        reason = "no such file" if not path.exists() else "it is no Parquet file"
        raise ValueError(f"expected a study's file, got {path}: {reason}") from error


def read(path: Path) -> dict[str, Any]:
    """A file's record, after every row has been checked against the game."""
    with _opened(path) as file:
        record = _record(path, file.schema_arrow)
        groups = 0
        for groups, expected in enumerate(row_groups(record), start=1):
            if groups > file.num_row_groups:
                raise _differs(path, "rows are missing")
            found = file.read_row_group(groups - 1).combine_chunks()
            if not found.equals(pa.Table.from_batches([expected])):
                raise _differs(
                    path, f"row group {groups - 1} is not what the game does"
                )
        if groups != file.num_row_groups:
            raise _differs(path, "there are more rows than showings")
    return record


def _record(path: Path, schema: pa.Schema) -> dict[str, Any]:
    content = (schema.metadata or {}).get(METADATA_KEY)
    record = {} if content is None else json.loads(content)
    if record.get("format") == FORMAT and record.get("version") != FORMAT_VERSION:
        raise ValueError(
            f"expected a study's file of version {FORMAT_VERSION}, got version "
            f"{record.get('version')!r} in {path}: export the study again with this "
            "version of termdp"
        )
    if record.get("format") != FORMAT or schema.remove_metadata() != pa.schema(COLUMNS):
        raise _differs(path, "its columns or metadata are others")
    return record


def _differs(path: Path, how: str) -> ValueError:
    return ValueError(f"expected a file of `termdp studies export`, got {path}: {how}")
