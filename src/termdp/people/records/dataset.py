"""A study as a Parquet file, and back: one row per step that was shown.

The columns are for analysis. The file's metadata holds what a store needs: the study's
texts, whole rides with seeds and actions, reasons. The rows follow from the metadata by
playing the rides again, so an import checks every row against the game. Both are
described in docs/people_data.md.

Files may come from anybody. Nothing is unpacked before `parquet_pages` knows how large
it will be, `study_schema` refuses everything it does not know, and rows are compared
one showing at a time. Reading takes at most 40 bytes of memory per byte of the file.
"""

import contextlib
import dataclasses
import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from termdp.files import draft_of
from termdp.people.driving.ride import BACKSEAT
from termdp.people.driving.rides import Replay, crashes, game, replay
from termdp.people.records import parquet_pages, study_schema
from termdp.people.records.fields import NAME_LENGTH
from termdp.people.records.study_schema import ShowingPart, StudyRecord

METADATA_KEY = b"termdp_study"
SHOWINGS_PER_GROUP = 64
# More than an export can have: its metadata alone take 770 bytes for each showing of at
# most 10,000 rows. Other files would only cost time.
MAX_ROWS_PER_BYTE = 16
_ROWS_AT_ONCE = 8192
_TEXT_LIMIT = 64 << 20
# What pyarrow raises for a damaged file.
_DAMAGES = (pa.ArrowException, OSError, UnicodeError, MemoryError)
# Decimals computed on another processor may differ by this much; bits and whole numbers
# may not.
_TOLERANCE = 1e-4


@dataclasses.dataclass(frozen=True)
class Packing:
    """How a file holds an environment's observations: booleans as bits, else float32.

    Attributes:
        env: id of the environment.
    """

    env: str = BACKSEAT

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        return tuple(_space(self.env).shape)

    @property
    def is_bits(self) -> bool:
        """Whether observations are booleans."""
        return np.dtype(_space(self.env).dtype) == np.bool_

    @property
    def size(self) -> int:
        """Bytes of one observation."""
        entries = int(np.prod(self.shape))
        return -(-entries // 8) if self.is_bits else 4 * entries

    @property
    def columns(self) -> list[pa.Field]:
        """The file's columns."""
        return [
            pa.field("showing", pa.int32(), nullable=False),
            pa.field("step", pa.int32(), nullable=False),
            pa.field("observation", pa.binary(self.size), nullable=False),
            pa.field("action", pa.uint8(), nullable=False),
            pa.field("reward", pa.float32(), nullable=False),
            pa.field("game_over", pa.bool_(), nullable=False),
            pa.field("stopped", pa.bool_(), nullable=False),
            pa.field("truncated", pa.bool_(), nullable=False),
            pa.field("supervisor", pa.string(), nullable=False),
            pa.field("latency_ms", pa.int32(), nullable=True),
        ]

    @property
    def schema(self) -> pa.Schema:
        """The same as a schema."""
        return pa.schema(self.columns)

    def pack(self, observations: np.ndarray) -> bytes:
        """The bytes of observations `[T, *shape]`, one after the other."""
        flat = observations.reshape(len(observations), -1)
        if self.is_bits:
            return np.packbits(flat, axis=1).tobytes()
        return flat.astype("<f4").tobytes()

    def unpack(self, column: Any) -> np.ndarray:
        """The `observation` column (bytes per row) as `[T, *shape]`."""
        together = b"".join(column)
        if not self.is_bits:
            return np.frombuffer(together, "<f4").reshape(-1, *self.shape)
        packed = np.frombuffer(together, np.uint8).reshape(-1, self.size)
        bits = np.unpackbits(packed, axis=1, count=int(np.prod(self.shape)))
        return bits.reshape(-1, *self.shape).astype(bool)

    def same(self, mine: pa.Table, theirs: pa.Table) -> bool:
        """Whether a file's rows (`theirs`) are what the game gives (`mine`)."""
        if self.is_bits or mine.equals(theirs):
            return bool(mine.equals(theirs))
        numbers = ["observation", "reward"]
        if not mine.drop_columns(numbers).equals(theirs.drop_columns(numbers)):
            return False
        pairs = [
            (self.unpack(x["observation"].to_pylist()), x["reward"].to_numpy())
            for x in (mine, theirs)
        ]
        return all(
            np.allclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE)
            for a, b in zip(*pairs, strict=True)
        )


def _space(env: str) -> Any:
    return game(env).observation_space(game(env).default_params)


def unpack(column: Any, env: str = BACKSEAT) -> np.ndarray:
    """The `observation` column (bytes per row) as `[T, *shape]`."""
    return Packing(env).unpack(column)


def write(path: Path, record: StudyRecord) -> int:
    """Write a study's record; the file appears whole or not at all, for its owner alone.

    Args:
        path: the file.
        record: from `study_files.study_record`.

    Returns:
        The number of rows.
    """
    values = msgspec.to_builtins(record)
    content = json.dumps(values, sort_keys=True, ensure_ascii=False)
    columns = Packing(record.study.env).columns
    schema = pa.schema(columns, metadata={METADATA_KEY: content.encode()})
    num_rows = 0
    with draft_of(path) as draft:
        draft.touch(mode=0o600)
        with pq.ParquetWriter(draft, schema, compression="zstd") as writer:
            for batch in row_groups(record):
                writer.write_batch(batch)
                num_rows += batch.num_rows
    return num_rows


def row_groups(record: StudyRecord) -> Iterator[pa.RecordBatch]:
    """The rows that a record stands for, in the file's groups."""
    for first in range(0, len(record.showings), SHOWINGS_PER_GROUP):
        group = record.showings[first : first + SHOWINGS_PER_GROUP]
        parts = [rows.columns for rows in _showings(record, group, first)]
        columns = [
            pa.concat_arrays(list(column)) for column in zip(*parts, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(
            columns, schema=Packing(record.study.env).schema
        )


def _showings(
    record: StudyRecord, showings: Iterable[ShowingPart], first: int = 0
) -> Iterator[pa.RecordBatch]:
    """The rows of showings, one after the other; `first` is the first one's number."""
    rides, env = {ride.number: ride for ride in record.rides}, record.study.env
    replays = lru_cache(maxsize=8)(lambda number: replay(rides[number].ride(env)))
    for number, showing in enumerate(showings, start=first):
        name = record.supervisors[showing.supervisor].name
        yield _showing_rows(number, showing, name, replays(showing.ride))


def _showing_rows(
    number: int, showing: ShowingPart, supervisor: str, again: Replay
) -> pa.RecordBatch:
    """One showing: up to the stop, or to the ride's own end."""
    stopped = showing.stopped
    num = showing.num_steps
    last = np.arange(num) == num - 1
    none = np.zeros(num, bool)
    packing = Packing(again.ride.env)
    packed = packing.pack(again.observations[:num])
    latency = np.full(num, showing.latency_ms or 0, np.int32)
    has_latency = last if showing.latency_ms is not None else none
    columns = [
        pa.array(np.full(num, number, np.int32)),
        pa.array(np.arange(num, dtype=np.int32)),
        pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(packing.size), num, [None, pa.py_buffer(packed)]
        ),
        pa.array(again.ride.actions[:num]),
        pa.array(again.rewards[:num]),
        pa.array(none if stopped else again.game_over),
        pa.array(last if stopped else none),
        pa.array(none if stopped else again.truncated),
        pa.repeat(pa.scalar(supervisor, pa.string()), num),
        pa.array(latency, mask=~has_latency),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=packing.schema)


def read_record(path: Path) -> StudyRecord:
    """Read only a file's record; this is fast, because its rows are not checked."""
    with _opened(path) as (file, _):
        return _record(path, file.schema_arrow)


def read(path: Path) -> StudyRecord:
    """A file's record, after every row and ride has been checked against the game."""
    with _opened(path) as (file, num_rows):
        record = _record(path, file.schema_arrow)
        _check_size(path, num_rows, record)
        _check_crashes(path, record)
        packing = Packing(record.study.env)
        sizes = [showing.num_steps for showing in record.showings]
        found = _pieces(file, sizes, packing.schema)
        expected = _showings(record, record.showings)
        for number, (mine, theirs) in enumerate(zip(expected, found, strict=True)):
            if not packing.same(pa.Table.from_batches([mine]), theirs):
                raise _differs(path, f"showing {number} is not what the game does")
    return record


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[pq.ParquetFile, int]]:
    """A file that is safe to read, and its number of rows.

    Damage that shows up here or inside the `with` block becomes a `ValueError`.
    """
    if not path.is_file():
        raise ValueError(f"expected a study's file, got {path}: no such file")
    try:
        num_rows = parquet_pages.check(path)
    except ValueError as error:
        raise _differs(path, str(error)) from error
    try:
        file = pq.ParquetFile(
            path,
            read_dictionary=["supervisor"],
            thrift_string_size_limit=_TEXT_LIMIT,
        )
    except KeyError as error:
        raise _differs(path, "its columns or metadata do not match") from error
    except _DAMAGES as error:
        raise _differs(path, "it is damaged") from error
    with file:
        try:
            yield file, num_rows
        except _DAMAGES as error:
            raise _differs(path, "it is damaged") from error


def _record(path: Path, schema: pa.Schema) -> StudyRecord:
    content = (schema.metadata or {}).get(METADATA_KEY, b"{}")
    try:
        record = study_schema.decode(content)
    except ValueError as error:
        raise _differs(path, str(error)) from error
    found = [
        field.with_type(pa.string()) if field.name == "supervisor" else field
        for field in schema
    ]
    packing = Packing(record.study.env)
    shape = record.observation_shape
    if pa.schema(found) != packing.schema or shape != packing.shape:
        raise _differs(path, "its columns or metadata do not match")
    return record


def _check_size(path: Path, num_rows: int, record: StudyRecord) -> None:
    """Refuse a file whose rows do not match its record, or too many for its size."""
    wanted = sum(showing.num_steps for showing in record.showings)
    if wanted > MAX_ROWS_PER_BYTE * path.stat().st_size:
        raise _differs(path, f"{wanted} steps were shown, too many for so small a file")
    if num_rows != wanted:
        raise _differs(
            path, f"it has {num_rows} rows for {wanted} steps that were shown"
        )


def _check_crashes(path: Path, record: StudyRecord) -> None:
    try:
        found = crashes([row.ride(record.study.env) for row in record.rides])
    except ValueError as error:
        raise _differs(path, str(error)) from error
    for row, crashed in zip(record.rides, found, strict=True):
        if row.crashed != crashed:
            how = "crashes, but does not" if row.crashed else "does not crash, but does"
            raise _differs(path, f"it says that ride {row.number} {how}")


def _pieces(
    file: pq.ParquetFile, sizes: Iterable[int], schema: pa.Schema
) -> Iterator[pa.Table]:
    """The file's rows in pieces of the given sizes."""
    batches = file.iter_batches(batch_size=_ROWS_AT_ONCE)
    rest = schema.empty_table()
    for size in sizes:
        while rest.num_rows < size:
            batch = next(batches, None)
            if batch is None:
                raise pa.ArrowInvalid("there are fewer rows than the file says")
            rest = pa.concat_tables([rest, _with_names(batch, schema)])
        yield rest.slice(0, size).combine_chunks()
        rest = rest.slice(size)


def _with_names(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """Rows with supervisors' names spelt out in every row.

    Names that are too long are refused first: repeated, they would fill the memory.
    """
    place = batch.schema.get_field_index("supervisor")
    names = batch.column(place)
    if (pc.max(pc.utf8_length(names.dictionary)).as_py() or 0) > NAME_LENGTH:
        raise pa.ArrowInvalid("a name is too long")
    table = pa.Table.from_batches([batch])
    named = table.set_column(place, schema.field(place), names.cast(pa.string()))
    return named.cast(schema)


def _differs(path: Path, how: str) -> ValueError:
    return ValueError(f"expected a file of `termdp studies export`, got {path}: {how}")
