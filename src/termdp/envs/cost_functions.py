"""The costs of the MinAtar games: what the observer dislikes.

Each is a callable `cost(observation, action)` on one observation *before* the step and
the action taken there. It returns `scale` (1) for a bad step and −`relief` (0) for a
harmless one. It depends on the board alone, so it works with JAX (under `jit` and
`vmap`), NumPy and any copy of the game with MinAtar's channels, for boards of any type
(bool, integer, float). Parameters are traced: changing them does not recompile. Distances
are Chebyshev distances: the 3 × 3 cells around a cell are within distance 1. Pictures:
`docs/costs.md`.
"""

from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

Array = jax.Array | np.ndarray

BOTTOM_ROW = 9
NUM_COLUMNS = 10


@struct.dataclass
class BreakoutEdgeCost:
    """The paddle is in one of the outermost `width` columns of either side."""

    width: int = 1
    scale: float = 1.0
    relief: float = 0.0

    def __call__(self, observation: Array, action: Any) -> Array:
        """`scale` if the paddle is at an edge, else −`relief`."""
        del action
        xp = array_module(observation)
        columns = xp.arange(NUM_COLUMNS)
        is_edge = (columns < self.width) | (columns >= NUM_COLUMNS - self.width)
        paddle = observation[BOTTOM_ROW, :, 0] != 0
        return charged(self, xp.any(paddle & is_edge))


@struct.dataclass
class SpaceInvadersBulletCost:
    """An enemy bullet is within `distance` of the cannon."""

    distance: int = 1
    scale: float = 1.0
    relief: float = 0.0

    def __call__(self, observation: Array, action: Any) -> Array:
        """`scale` if a bullet is near, else −`relief`."""
        del action
        xp = array_module(observation)
        cannon, bullets = observation[BOTTOM_ROW, :, 0] != 0, observation[:, :, 5] != 0
        column = xp.sum(xp.where(cannon, xp.arange(NUM_COLUMNS), 0))
        near_rows = _within(xp, BOTTOM_ROW, self.distance)
        near_columns = _within(xp, column, self.distance)
        return charged(self, _meets(bullets, near_rows, near_columns))


@struct.dataclass
class SeaquestDepthCost:
    """The submarine's front is in row `row` of the board.

    The submarine moves in rows 0 (the surface) to 8 of the board, so row 4 (the fifth
    from the top) is half of its greatest depth.
    """

    row: int = 4
    scale: float = 1.0
    relief: float = 0.0

    def __call__(self, observation: Array, action: Any) -> Array:
        """`scale` if the submarine is at that depth, else −`relief`."""
        del action
        xp = array_module(observation)
        is_deep = xp.arange(NUM_COLUMNS) == self.row
        front = observation[:, :, 0] != 0
        return charged(self, xp.any(front & is_deep[:, None]))


@struct.dataclass
class AsterixEnemyCost:
    """An enemy is within `distance` of the player."""

    distance: int = 1
    scale: float = 1.0
    relief: float = 0.0

    def __call__(self, observation: Array, action: Any) -> Array:
        """`scale` if an enemy is near, else −`relief`."""
        del action
        xp = array_module(observation)
        player, enemies = observation[:, :, 0] != 0, observation[:, :, 1] != 0
        # One sum finds row and column at once: cells are numbered row by row.
        numbers = xp.arange(NUM_COLUMNS**2).reshape(NUM_COLUMNS, NUM_COLUMNS)
        cell = xp.sum(xp.where(player, numbers, 0))
        near_rows = _within(xp, cell // NUM_COLUMNS, self.distance)
        near_columns = _within(xp, cell % NUM_COLUMNS, self.distance)
        return charged(self, _meets(enemies, near_rows, near_columns))


@struct.dataclass
class AsterixMiddleCost:
    """The player is in one of the middle `rows` rows of the board.

    The player moves in rows 1 to 8, so the middle two are rows 4 and 5.
    """

    rows: int = 2
    scale: float = 1.0
    relief: float = 0.0

    def __call__(self, observation: Array, action: Any) -> Array:
        """`scale` if the player is in the middle, else −`relief`."""
        del action
        xp = array_module(observation)
        from_middle = xp.abs(2 * xp.arange(NUM_COLUMNS) - BOTTOM_ROW)
        player = observation[:, :, 0] != 0
        return charged(self, xp.any(player & (from_middle < self.rows)[:, None]))


def array_module(array: Array) -> ModuleType:
    """NumPy for NumPy's arrays, which then need no device; JAX for all others."""
    return np if isinstance(array, np.ndarray | np.generic) else jnp


def charged(prices: Any, is_unpleasant: Array) -> Array:
    """`scale` for a bad step, −`relief` for any other, as float32."""
    xp = array_module(is_unpleasant)
    rise = prices.scale + prices.relief  # so that no relief is 0, not −0
    return (is_unpleasant * rise - prices.relief).astype(xp.float32)


def _within(xp: ModuleType, place: Any, distance: Any) -> Array:
    """`bool [10]`: the rows or columns within a distance of a given one."""
    return xp.abs(xp.arange(NUM_COLUMNS) - place) <= distance


def _meets(board: Array, rows: Array, columns: Array) -> Array:
    """Whether anything on the board is in these rows and columns."""
    return array_module(board).any(board & rows[:, None] & columns[None, :])
