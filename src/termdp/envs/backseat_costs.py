"""What makes Backseat Driver's passenger uneasy: collecting coins, steering."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from termdp.envs.backseat import LEFT, RIGHT, STAY, BackseatDriver
from termdp.envs.backseat_road import FRAMES, NEW_LANE_FRAMES, OLD_LANE_FRAMES, Road
from termdp.envs.backseat_view import NUM_MAPS, cells
from termdp.envs.cost_functions import charged


@struct.dataclass
class BackseatCoinCost:
    """`scale` if this action, from this observation, collects a coin, else −`relief`.

    Coins lie still and cars keep their speed, so the newest three maps decide exactly
    which coins the step takes: the frames of the move are played through, up to a
    crash. It reads the lane grid or the 42×42 image, as JAX or NumPy arrays.

    Attributes:
        road: sizes and speeds of the game that is watched (`env.road`).
        scale: the cost of collecting.
        relief: subtracted at any other step.
    """

    road: Road = struct.field(pytree_node=False, default=Road())
    scale: Any = 1.0
    relief: Any = 0.0

    @classmethod
    def for_game(cls, game: BackseatDriver) -> "BackseatCoinCost":
        """The cost that reads this game's observations."""
        return cls(road=game.road)

    def __call__(self, observation: Any, action: Any) -> Any:
        """The cost of one unbatched pair, a float32 scalar."""
        xp: Any = jnp if isinstance(observation, jax.Array) else np
        road = self.road
        words = self._words(xp, cells(road, observation))
        old = words[:, 0] != 0
        new = _moved(xp, old, action)
        car_old, coin_old = _pick(xp, words, old)
        car_new, coin_new = _pick(xp, words, new)
        is_crash = is_coin = xp.zeros((), bool)
        for frame in range(1, FRAMES + 1):
            cars = coins = xp.zeros((), np.int32)
            if frame in OLD_LANE_FRAMES:
                cars, coins = cars | car_old, coins | coin_old
            if frame in NEW_LANE_FRAMES:
                cars, coins = cars | car_new, coins | coin_new
            coin_rows = self._mask(road.reach(frame, road.coin_speed))
            is_coin = is_coin | ((coins & coin_rows) != 0) & ~is_crash
            car_rows = self._mask(road.reach(frame, road.car_speed))
            is_crash = is_crash | ((cars & car_rows) != 0)
        return charged(self, is_coin)

    def _words(self, xp: Any, maps: Any) -> Any:
        """The rows near the agent as bits, newest maps only: `[lanes, 3] int32`."""
        near = self.road.near_rows
        bits = np.left_shift(1, np.arange(len(near)), dtype=np.int32)
        block = maps[near.start : near.stop, :, :NUM_MAPS]
        return xp.sum(block * bits[:, None, None], axis=0, dtype=np.int32)

    def _mask(self, rows: tuple[int, ...]) -> int:
        """These rows as bits."""
        return sum(1 << (row - self.road.near_rows.start) for row in rows)


@struct.dataclass
class BackseatSteeringCost:
    """`scale` for steering left or right, even at the edge of the road; else −`relief`.

    Attributes:
        scale: the cost of steering.
        relief: subtracted at any other step.
    """

    scale: Any = 1.0
    relief: Any = 0.0

    def __call__(self, observation: Any, action: Any) -> Any:
        """The cost of one unbatched pair, a float32 scalar."""
        xp: Any = jnp if isinstance(observation, jax.Array) else np
        return charged(self, xp.asarray(action != STAY))


def _pick(xp: Any, words: Any, lane: Any) -> tuple[Any, Any]:
    """Cars and coins (words) of the one lane that is set in the mask `lane`."""
    picked = xp.sum(xp.where(lane[:, None], words, 0), axis=0, dtype=np.int32)
    return picked[1], picked[2]


def _moved(xp: Any, lane: Any, action: Any) -> Any:
    """The one-hot lane after the step; the road's edges hold the car back."""
    none = xp.zeros((1,), bool)
    left = xp.concatenate([lane[1:], none])
    left = left | (lane & ~xp.any(left))
    right = xp.concatenate([none, lane[:-1]])
    right = right | (lane & ~xp.any(right))
    return xp.where(action == LEFT, left, xp.where(action == RIGHT, right, lane))
