"""Where logs come from: Parquet, CSV, tables in memory; read in batches, never whole.

A source has a schema and gives batches of the requested columns. Data sets of Minari and
LeRobot are sources too (`termdp.logs.minari`, `termdp.logs.lerobot`); they also say which
of their columns is which.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from termdp.reading import plain_size
from termdp.settings import nearest

BATCH_ROWS = 2**16
PARQUET, CSV = (".parquet", ".pq"), (".csv",)
# A CSV is read in blocks of this many bytes; the first one gives the types of columns.
CSV_BLOCK = 2**23


@dataclass(frozen=True)
class Source:
    """A log that can be read in batches.

    Attributes:
        name: its name in messages.
        schema: its columns.
        read: batches of some columns, in the order of the rows.
        defaults: which column is which, if the kind of log says so: `session`,
            `stopped`, `ended`, `observations`, `actions`.
    """

    name: str
    schema: pa.Schema
    read: Callable[[Sequence[str]], Iterator[pa.RecordBatch]]
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """Batches of some columns; what cannot be read raises `ValueError`."""
        wanted = list(dict.fromkeys(columns))
        for name in wanted:
            self.check_column(name)
        try:
            yield from self.read(wanted)
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise ValueError(
                f"expected a readable table, got {self.name}: {_reason(error)}"
            ) from error

    def check_column(self, name: str) -> None:
        """Refuse a column that does not exist, and name the nearest ones."""
        names = self.schema.names
        if name in names:
            return
        near = nearest(name, names)
        if near.startswith("no name"):
            near = f"its columns are {', '.join(names[:12])}"
            near += ", …" if len(names) > 12 else ""
        raise ValueError(f"expected a column {name!r} in {self.name}: {near}")


def open_source(log: Any) -> Source:
    """The source of a path, a table in memory, or a source itself."""
    if isinstance(log, Source):
        return log
    if isinstance(log, str | Path):
        return _from_path(str(log))
    if type(log).__module__.startswith("pandas."):
        return _from_pandas(log)
    if type(log).__module__.startswith("minari."):
        from termdp.logs.minari import minari_source

        return minari_source(log)
    try:
        table = log if isinstance(log, pa.Table) else pa.table(log)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ValueError(
            "expected a path, a pyarrow Table, a pandas DataFrame or a dict of columns, "
            f"got a {type(log).__name__}"
        ) from error
    return Source(
        "the table",
        table.schema,
        lambda names: iter(table.select(names).to_batches(BATCH_ROWS)),
    )


def _from_path(log: str) -> Source:
    if log.startswith("minari:"):
        from termdp.logs.minari import minari_source

        return minari_source(log.removeprefix("minari:"))
    path = Path(log)
    if path.is_dir():
        from termdp.logs.lerobot import lerobot_source

        return lerobot_source(path)
    kind = path.suffix.lower()
    if kind not in (*PARQUET, *CSV):
        raise ValueError(
            f"expected a log that ends in .parquet, .pq or .csv, a LeRobot folder or "
            f"minari:ID, got {log}"
        )
    try:
        if plain_size(path) == 0:
            raise OSError("it is empty")
        return _parquet(path) if kind in PARQUET else _csv(path)
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise ValueError(
            f"expected a readable table, got {log}: {_reason(error)}"
        ) from error


def _parquet(path: Path) -> Source:
    schema = pa.parquet.read_schema(path)

    def read(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with pa.parquet.ParquetFile(path) as file:
            yield from file.iter_batches(BATCH_ROWS, columns=list(names))

    return Source(str(path), schema, read)


def _csv(path: Path) -> Source:
    blocks = pa.csv.ReadOptions(block_size=CSV_BLOCK)
    with pa.csv.open_csv(path, read_options=blocks) as reader:
        schema = reader.schema
    # Types come from the first block. A column that is empty there is read as text.
    whole = {
        name: pa.string() if pa.types.is_null(kind) else kind
        for name, kind in zip(schema.names, schema.types, strict=True)
    }

    def read(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        convert = pa.csv.ConvertOptions(
            include_columns=list(names), column_types={n: whole[n] for n in names}
        )
        try:
            with pa.csv.open_csv(
                path, read_options=blocks, convert_options=convert
            ) as reader:
                yield from reader
        except pa.ArrowInvalid as error:
            found = re.search(r"column #(\d+): .* invalid value '(.*)'", str(error))
            if found is None:
                raise
            name = schema.names[int(found[1])]
            raise ValueError(
                f"expected {whole[name]} in column {name!r} of {path}, as in its first "
                f"rows, got {found[2]!r} further down"
            ) from error

    return Source(str(path), schema, read)


def _from_pandas(frame: Any) -> Source:
    """A DataFrame, converted slice by slice."""
    names = [str(name) for name in frame.columns]
    try:
        schema = pa.Schema.from_pandas(frame.set_axis(names, axis=1).head(1000), False)
    except pa.ArrowException as error:
        raise ValueError(
            f"expected a DataFrame of plain columns: {_reason(error)}"
        ) from error

    def read(wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
        places = [names.index(name) for name in wanted]
        for first in range(0, len(frame), BATCH_ROWS):
            part = frame.iloc[first : first + BATCH_ROWS, places]
            yield pa.RecordBatch.from_pandas(
                part.set_axis(list(wanted), axis=1), preserve_index=False
            )

    return Source("the DataFrame", schema, read)


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200].rstrip(".")
