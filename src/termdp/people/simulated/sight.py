"""What can be seen of a ride in the browser, as arrays: for simulated passengers.

The page gets the road's sizes, the cars and coins that appear on it, and the driver's
actions. Simulated passengers get the same and nothing else. This module rebuilds the
ride from it.
"""

import dataclasses
from typing import Any

import numpy as np

from termdp.envs.backseat import LEFT, RIGHT
from termdp.envs.backseat_road import CAR_LENGTH, NEW_LANE_FRAMES, OLD_LANE_FRAMES, Road

# Stands for "no car": further than anything on the screen.
FAR = 99


@dataclasses.dataclass(frozen=True)
class Sight:
    """What a passenger sees of a ride of T steps.

    Attributes:
        moves: `[T]`, −1, 0 or 1: the lane change of each step (0 at the edge).
        coins: `[T]`, coins taken in each step.
        free_ahead: `[T]`, free rows in front of the car in the lane it is in.
        gap_ahead: `[T]`, the same in the lane it goes to.
        gap_behind: `[T]`, free rows behind it in the lane it changes to; FAR without a
            change.
    """

    moves: np.ndarray
    coins: np.ndarray
    free_ahead: np.ndarray
    gap_ahead: np.ndarray
    gap_behind: np.ndarray

    def __len__(self) -> int:
        """Steps."""
        return len(self.moves)


def see(road: Road, data: dict[str, Any]) -> Sight:
    """Rebuild a ride from what the page gets.

    Args:
        road: sizes and speeds.
        data: `actions` (a string of digits), `cars` and `coins`, flat lists of (time,
            lane, row), as `termdp.people.driving.track.ride_data` makes them.
    """
    actions = np.array([int(digit) for digit in data["actions"]])
    lanes = _lanes(road, actions)
    now, then = lanes[:-1], lanes[1:]
    moves = then - now
    cars = np.array(data["cars"], int).reshape(-1, 3)
    ahead_here, _ = _gaps(road, cars, now)
    ahead_there, behind_there = _gaps(road, cars, then)
    return Sight(
        moves=moves,
        coins=_coins_taken(road, np.array(data["coins"], int).reshape(-1, 3), lanes),
        free_ahead=ahead_here,
        gap_ahead=ahead_there,
        gap_behind=np.where(moves == 0, FAR, behind_there),
    )


def _lanes(road: Road, actions: np.ndarray) -> np.ndarray:
    """The lane before each step and after the last, `[T + 1]`."""
    lanes = [road.lanes // 2]
    for action in actions:
        heading = -1 if action == LEFT else 1 if action == RIGHT else 0
        lanes.append(min(max(lanes[-1] + heading, 0), road.lanes - 1))
    return np.array(lanes)


def _rows_at(things: np.ndarray, speed: int, count: int) -> np.ndarray:
    """Row of each thing before each step, `[T, things]`; FAR before it appears."""
    time, row = things[:, 0], things[:, 2]
    ages = np.arange(count)[:, None] - time
    return np.where(ages < 0, FAR, row + speed * ages)


def _gaps(
    road: Road, cars: np.ndarray, lanes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Free rows ahead of and behind the own car if it is in `lanes`, `[T]` each."""
    rows = _rows_at(cars, road.car_speed, len(lanes))
    beside = cars[:, 1] == lanes[:, None]
    seen = beside & (rows < road.rows) & (rows > -CAR_LENGTH)
    ahead = road.agent_row - (rows + CAR_LENGTH)
    behind = rows - road.behind_row
    return (
        _least(np.where(seen & (rows < road.agent_row), np.maximum(ahead, 0), FAR)),
        _least(np.where(seen & (rows >= road.agent_row), np.maximum(behind, 0), FAR)),
    )


def _least(values: np.ndarray) -> np.ndarray:
    """The smallest of each row; FAR in rows without entries."""
    return values.min(axis=1, initial=FAR)


def _coins_taken(road: Road, coins: np.ndarray, lanes: np.ndarray) -> np.ndarray:
    """Coins touched in each step; each counts once, where it is touched first."""
    count = len(lanes) - 1
    rows = _rows_at(coins, road.coin_speed, count)
    touched = np.zeros(rows.shape, bool)
    for frames, held in ((OLD_LANE_FRAMES, lanes[:-1]), (NEW_LANE_FRAMES, lanes[1:])):
        reached = {row for f in frames for row in road.reach(f, road.coin_speed)}
        in_lane = coins[:, 1] == held[:, None]
        touched |= in_lane & np.isin(rows, list(reached))
    first = touched & (np.cumsum(touched, axis=0) == 1)
    return first.sum(axis=1)
