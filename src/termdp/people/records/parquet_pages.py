"""How much memory a Parquet file will take, found out before any of it is taken.

A Parquet file is unpacked by what it says about itself. A few hundred kilobytes can say
that they are gigabytes. So its own tables (Thrift's compact protocol) are skimmed here
first, without keeping them: how many entries the footer has, and for every page how large
it will be and how it is packed. What no export of termdp needs is refused.
"""

import os
from pathlib import Path
from typing import Any, BinaryIO

MAX_FILE = 1 << 30
MAX_PAGE = 4 << 20
# The reader keeps up to 800 bytes per entry of the footer; exports have 40 bytes or more
# of footer per entry.
_BYTES_PER_ENTRY = 24
_ENTRIES = 200
CODECS = ("UNCOMPRESSED", "SNAPPY", "ZSTD")
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
# Plain values, dictionaries and run lengths. Other encodings can repeat text within a
# page, which would make it larger than it says.
_ENCODINGS = (0, 2, 3, 8)
_MAGIC = b"PAR1"
# The reader makes allowances for the mistakes of other writers, past what is checked.
_WRITER = "parquet-cpp-arrow"
_DEPTH = 16
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY = 0, 1, 2, 3, 7, 8
_NUMBERS, _LISTS, _MAP, _STRUCT = (4, 5, 6), (9, 10), 11, 12


def check_footer(path: Path) -> None:
    """Refuse a file whose footer would grow too much; `ValueError` says why."""
    size = os.path.getsize(path)
    if size > MAX_FILE:
        raise ValueError(f"it has {size} bytes, at most {MAX_FILE} are read")
    with path.open("rb") as file:
        file.seek(max(0, size - 8))
        tail = file.read(8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != _MAGIC or length > size - 12:
            raise ValueError("it is no Parquet file")
        file.seek(size - 8 - length)
        footer = file.read(length)
    skim = _Skim(footer)
    skim.struct()
    if skim.entries > length // _BYTES_PER_ENTRY + _ENTRIES:
        raise ValueError(f"its footer has {skim.entries} entries in {length} bytes")


def check_pages(path: Path, metadata: Any) -> None:
    """Refuse a file with pages that are too large, or packed in other ways.

    Args:
        path: the file.
        metadata: of `pyarrow.parquet.ParquetFile`.
    """
    if not str(metadata.created_by).startswith(_WRITER):
        raise ValueError("it was not written by pyarrow")
    chunks = [
        metadata.row_group(group).column(column)
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    ]
    size = os.path.getsize(path)
    if any(chunk.total_compressed_size < 0 for chunk in chunks) or (
        sum(chunk.total_compressed_size for chunk in chunks) > size
    ):
        raise ValueError("its columns are larger than the file")
    with path.open("rb") as file:
        for chunk in chunks:
            _check_chunk(file, size, chunk)


def _check_chunk(file: BinaryIO, size: int, chunk: Any) -> None:
    """The pages of one column of one row group."""
    if chunk.compression not in CODECS or chunk.file_path:
        raise ValueError(f"a column is packed by {chunk.compression}")
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
        start = chunk.dictionary_page_offset
    if not 4 <= start <= size - chunk.total_compressed_size:
        raise ValueError("a column lies outside the file")
    file.seek(start)
    skim = _Skim(file.read(chunk.total_compressed_size))
    while skim.place < len(skim.content):
        page = skim.struct()
        kind, unpacked, packed = (page.get(field) for field in (1, 2, 3))
        if kind not in (_DATA_PAGE, _DICTIONARY_PAGE):
            raise ValueError("it has pages of an unknown kind")
        # The heading's own part: values, then encoding.
        heading = page.get(5 if kind == _DATA_PAGE else 7)
        encoding = heading.get(2) if isinstance(heading, dict) else None
        if encoding not in _ENCODINGS:
            raise ValueError(f"a page is encoded in an unknown way ({encoding})")
        if not isinstance(unpacked, int) or not 0 <= unpacked <= MAX_PAGE:
            raise ValueError(
                f"a page has {unpacked} bytes, at most {MAX_PAGE} are read"
            )
        if not isinstance(packed, int) or packed < 0:
            raise ValueError("a page has no size")
        skim.place += packed


class _Skim:
    """Thrift's compact protocol, read for its numbers; text and lists are passed over.

    Attributes:
        content: the bytes.
        place: where the next value begins.
        entries: structs so far.
    """

    def __init__(self, content: bytes):
        self.content = content
        self.place = 0
        self.entries = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The numbers and structs in a struct, by field."""
        if depth > _DEPTH:
            raise ValueError("its tables are nested too deeply")
        self.entries += 1
        found: dict[int, Any] = {}
        field = 0
        while (head := self._byte()) != _STOP:
            kind = head & 15
            field = field + (head >> 4) if head >> 4 else self._number()
            found[field] = self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        return self._element(kind, depth)

    def _element(self, kind: int, depth: int) -> Any:
        """A value that takes room of its own; in lists that is so for truths too."""
        if kind in _NUMBERS:
            return self._number()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind == _BINARY:
            self._pass(self._varint())
        elif kind in (_TRUE, _FALSE, _BYTE):
            self._pass(1)
        elif kind == _DOUBLE:
            self._pass(8)
        elif kind in _LISTS:
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._varint()
            self._elements(count, (head & 15,), depth)
        elif kind == _MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            self._elements(count, (kinds >> 4, kinds & 15), depth)
        else:
            raise ValueError("its tables are damaged")
        return None

    def _elements(self, count: int, kinds: tuple[int, ...], depth: int) -> None:
        if depth > _DEPTH or count > len(self.content):
            raise ValueError("its tables are damaged")
        for _ in range(count):
            for kind in kinds:
                self._element(kind, depth + 1)

    def _pass(self, count: int) -> None:
        if count > len(self.content) - self.place:
            raise ValueError("its tables are damaged")
        self.place += count

    def _byte(self) -> int:
        self._pass(1)
        return self.content[self.place - 1]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("its tables are damaged")

    def _number(self) -> int:
        """A signed number; 0, −1, 1, −2 are written as 0, 1, 2, 3."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
