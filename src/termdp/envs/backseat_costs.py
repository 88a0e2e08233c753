"""What makes Backseat Driver's passenger uneasy: collecting coins."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from termdp.envs.backseat import LEFT, RIGHT, BackseatDriver
from termdp.envs.backseat_road import FRAMES, NEW_LANE_FRAMES, OLD_LANE_FRAMES, Road
from termdp.envs.backseat_view import cells


@struct.dataclass
class BackseatCoinCost:
    """1 if this action, from this observation, collects a coin, else 0.

    Coins lie still and cars keep their speed, so the newest three maps decide exactly
    which coins the decision takes: the frames of the move are played through, up to a
    crash. Reads the lane grid and the 42×42 image alike, as JAX or NumPy arrays.

    Attributes:
        road: sizes and speeds of the game that is watched (`env.road`).
    """

    road: Road = struct.field(pytree_node=False, default=Road())

    @classmethod
    def for_game(cls, game: BackseatDriver) -> "BackseatCoinCost":
        """The cost that reads this game's observations."""
        return cls(road=game.road)

    def __call__(self, observation: Any, action: Any) -> Any:
        """The cost of one unbatched pair, a float32 scalar."""
        xp: Any = jnp if isinstance(observation, jax.Array) else np
        road = self.road
        maps = cells(road, observation)
        old = maps[road.agent_row, :, 0]
        new = _moved(xp, old, action)
        is_crash = is_coin = xp.zeros((), bool)
        for frame in range(1, FRAMES + 1):
            held = xp.zeros((), bool)
            if frame in OLD_LANE_FRAMES:
                held = held | old
            if frame in NEW_LANE_FRAMES:
                held = held | new
            coins = _any_row(maps[:, :, 2], road.reach(frame, road.coin_speed))
            is_coin = is_coin | (xp.any(held & coins) & ~is_crash)
            cars = _any_row(maps[:, :, 1], road.reach(frame, road.car_speed))
            is_crash = is_crash | xp.any(held & cars)
        return is_coin.astype(np.float32)


def _moved(xp: Any, lane: Any, action: Any) -> Any:
    """The one-hot lane after the decision; the road's edges hold the car back."""
    none = xp.zeros((1,), bool)
    left = xp.concatenate([lane[1:], none])
    left = left | (lane & ~xp.any(left))
    right = xp.concatenate([none, lane[:-1]])
    right = right | (lane & ~xp.any(right))
    return xp.where(action == LEFT, left, xp.where(action == RIGHT, right, lane))


def _any_row(cells_of_kind: Any, rows: tuple[int, ...]) -> Any:
    """Per lane, whether any of these neighbouring rows is set."""
    found = cells_of_kind[rows[0]]
    for row in rows[1:]:
        found = found | cells_of_kind[row]
    return found
