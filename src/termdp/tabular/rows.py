"""Distinct rows of a table of numbers, and the number of a row among them.

The exact planner and the exact evaluation walk over reachable pairs of a state and the
observer's memory. These pairs are rows; this module numbers them.
"""

import numpy as np

from termdp.tabular.model import Array, IntArray


class RowIndex:
    """Numbers the distinct rows of a table, column by column (no integer overflow).

    Attributes:
        rows: the distinct rows, `[n, d]`.
        inverse: for each row of the given table its number in `rows`.
    """

    def __init__(self, table: Array) -> None:
        key = np.zeros(len(table), np.int64)
        self._levels: list[tuple[Array, IntArray]] = []
        for column in table.T:
            values, rank = np.unique(column, return_inverse=True)
            keys, key = np.unique(key * len(values) + rank, return_inverse=True)
            self._levels.append((values, keys))
        self.inverse: IntArray = key
        size = int(key.max()) + 1 if len(key) else 0
        self.rows: Array = np.empty((size, table.shape[1]))
        self.rows[key] = table

    def __len__(self) -> int:
        return len(self.rows)

    def find(self, table: Array) -> IntArray:
        """Number of each row of `table`, −1 where it is not among the known rows."""
        key = np.zeros(len(table), np.int64)
        known = np.ones(len(table), bool)
        for column, (values, keys) in zip(table.T, self._levels, strict=True):
            rank = _position(values, column, known)
            key = _position(keys, key * len(values) + rank, known)
        return np.where(known, key, -1)


def _position(
    values: Array | IntArray, wanted: Array | IntArray, known: Array
) -> IntArray:
    """Index of `wanted` in the sorted `values`; clears `known` where it is missing."""
    place = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    known &= values[place] == wanted
    return place
