"""Check what a Parquet file says about itself before it is unpacked.

Readers trust a Parquet file's own description. A few hundred kilobytes can claim to be
gigabytes, and some values crash the reader's whole process. So its tables (in Thrift's
compact protocol) are read here first: how many entries the footer has, where its
columns lie, and for every page how large it will be and how it is packed. Anything that
no export of termdp needs is refused.
"""

import os
from pathlib import Path
from typing import Any, BinaryIO

MAX_FILE = 1 << 30
MAX_PAGE = 4 << 20
# Some 800 bytes are kept per entry of the footer; exports have 40 bytes or more of footer
# per entry.
_BYTES_PER_ENTRY = 24
_ENTRIES = 200
# The reader makes allowances for the mistakes of other writers, past what is checked.
_WRITER = b"parquet-cpp-arrow"
_CODECS = {0: "UNCOMPRESSED", 1: "SNAPPY", 6: "ZSTD"}
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
# Plain values, dictionaries and run lengths. Other encodings can repeat text within a
# page, which would make it larger than it says.
_ENCODINGS = (0, 2, 3, 8)
_MAGIC = b"PAR1"
_DEPTH = 16
_TEXT_KEPT = 64
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY = 0, 1, 2, 3, 7, 8
_NUMBERS, _LISTS, _MAP, _STRUCT = (4, 5, 6), (9, 10), 11, 12


def check(path: Path) -> int:
    """The number of rows of a file that is safe to read; `ValueError` says why not."""
    size = os.path.getsize(path)
    if size > MAX_FILE:
        raise ValueError(f"it has {size} bytes, at most {MAX_FILE} are read")
    with path.open("rb") as file:
        footer = _footer(file, size)
        # Fields by number, as in parquet.thrift: FileMetaData, RowGroup, ColumnChunk.
        if not _text(footer.get(6)).startswith(_WRITER):
            raise ValueError("it was not written by pyarrow")
        groups = [_fields(group) for group in _list(footer.get(4))]
        chunks = [_fields(c) for group in groups for c in _list(group.get(1))]
        columns = [_fields(chunk.get(3)) for chunk in chunks]
        if any(1 in chunk for chunk in chunks):
            raise ValueError("its columns lie in other files")
        if sum(_size(column.get(7)) for column in columns) > size:
            raise ValueError("its columns are larger than the file")
        for column in columns:
            _check_column(file, size, column)
    rows = sum(_size(group.get(3)) for group in groups)
    if rows != footer.get(3):
        raise ValueError("its numbers of rows differ")
    return rows


def _footer(file: BinaryIO, size: int) -> dict[int, Any]:
    file.seek(max(0, size - 8))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or length > size - 12:
        raise ValueError("it is not a Parquet file")
    file.seek(size - 8 - length)
    return _Tables(file.read(length), length // _BYTES_PER_ENTRY + _ENTRIES).struct()


def _check_column(file: BinaryIO, size: int, column: dict[int, Any]) -> None:
    """One column of one row group (ColumnMetaData), page by page (PageHeader)."""
    codec = _of_kind(column.get(4), int)
    if codec not in _CODECS:
        raise ValueError(f"a column is packed in an unknown way ({codec})")
    length, start = _size(column.get(7)), _size(column.get(9))
    if 11 in column:
        start = min(start, _size(column[11]) or start)
    if not 4 <= start <= size - length:
        raise ValueError("a column lies outside the file")
    file.seek(start)
    pages = _Tables(file.read(length), length)
    while pages.place < length:
        page = pages.struct()
        kind, unpacked, packed = page.get(1), _size(page.get(2)), _size(page.get(3))
        if kind not in (_DATA_PAGE, _DICTIONARY_PAGE):
            raise ValueError("it has pages of an unknown kind")
        encoding = _fields(page.get(5 if kind == _DATA_PAGE else 7)).get(2)
        if encoding not in _ENCODINGS:
            raise ValueError(f"a page is encoded in an unknown way ({encoding})")
        if unpacked > MAX_PAGE:
            raise ValueError(
                f"a page has {unpacked} bytes, at most {MAX_PAGE} are read"
            )
        pages.place += packed


def _fields(value: Any) -> dict[int, Any]:
    return _of_kind(value, dict)


def _list(value: Any) -> list[Any]:
    return _of_kind(value, list)


def _text(value: Any) -> bytes:
    return _of_kind(value, bytes)


def _size(value: Any) -> int:
    if _of_kind(value, int) < 0:
        raise ValueError("its tables are damaged")
    return int(value)


def _of_kind(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError("its tables are damaged")
    return value


class _Tables:
    """Values in Thrift's compact protocol; long text is passed over.

    Attributes:
        content: the bytes.
        place: where the next value begins.
        left: how many structs may still come.
    """

    def __init__(self, content: bytes, entries: int):
        self.content = content
        self.place = 0
        self.left = entries

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The values of a struct, by field."""
        self.left -= 1
        if depth > _DEPTH or self.left < 0:
            raise ValueError("it has too many entries for its size")
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
            return self._text(self._varint())
        if kind in (_TRUE, _FALSE, _BYTE):
            self._pass(1)
        elif kind == _DOUBLE:
            self._pass(8)
        elif kind in _LISTS:
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._varint()
            return self._elements(count, (head & 15,), depth)
        elif kind == _MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            self._elements(count, (kinds >> 4, kinds & 15), depth)
        else:
            raise ValueError("its tables are damaged")
        return None

    def _elements(self, count: int, kinds: tuple[int, ...], depth: int) -> list[Any]:
        if depth > _DEPTH or count > len(self.content):
            raise ValueError("its tables are damaged")
        return [self._element(kind, depth + 1) for _ in range(count) for kind in kinds]

    def _text(self, length: int) -> bytes | None:
        self._pass(length)
        end = self.place
        return self.content[end - length : end] if length <= _TEXT_KEPT else None

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
