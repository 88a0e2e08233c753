"""What an onlooker sees on a board: where the player is, and what is near.

A few hundred stops cannot teach a network 400 cells. So costs that are fitted to boards
read these columns instead. The player is the board's first channel, as in MinAtar.
"""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

# Cells that count as near, and as not far: Chebyshev distances.
REACHES = (1, 3)


def board_columns(board: Any, xp: ModuleType) -> Any:
    """Zeros and ones, float32 `[..., columns]`; see `board_names`.

    Args:
        board: `[..., rows, columns, channels]`; a cell is empty where it is 0.
        xp: `numpy` or `jax.numpy`.
    """
    there = board != 0
    player, things = there[..., 0], there[..., 1:]
    parts = [player.any(axis=-1), player.any(axis=-2)]
    rows, columns = player.shape[-2:]
    for reach in REACHES:
        around = _within(rows, reach) @ player.astype(np.float32)
        around = around @ _within(columns, reach) > 0
        parts.append((things & around[..., None]).any(axis=(-3, -2)))
    return xp.concatenate(parts, axis=-1).astype(np.float32)


def board_names(shape: Sequence[int], channels: Sequence[str]) -> tuple[str, ...]:
    """What each column says, for boards of a shape whose channels have names."""
    rows, columns, _ = shape
    player, *things = channels
    return (
        *(f"{player} in row {number}" for number in range(1, rows + 1)),
        *(f"{player} in column {number}" for number in range(1, columns + 1)),
        *(f"{thing} within {r} of {player}" for r in REACHES for thing in things),
    )


def num_board_columns(shape: Sequence[int]) -> int:
    """How many columns a board of a shape has."""
    rows, columns, channels = shape
    return rows + columns + len(REACHES) * (channels - 1)


def _within(size: int, reach: int) -> np.ndarray:
    """`[size, size]`: 1 where two places are within a distance of each other."""
    places = np.arange(size)
    return (np.abs(places[:, None] - places) <= reach).astype(np.float32)
