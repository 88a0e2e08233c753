"""The geometry of Backseat Driver's road: what touches, and why it is always passable.

Everything lies on a lattice that moves with the agent. Rows count downwards from the
top of the screen, lanes from left to right. A step lasts `FRAMES` frames, in which
cars slide down `car_speed` rows and coins (they lie still on the road) `coin_speed`
rows. Cars, the agent's included, are `CAR_LENGTH` rows long, coins one row. A lane
change takes one step: cars are 0.6 lanes wide, so the agent still holds its old
lane in frames 1 and 2 and already holds the new one in frames 2, 3 and 4.

Each lane is stored as the bits of one `uint32` word: bit i is row i − margin. The margin
is the rows above the screen where things appear.

**Why the road is always passable.** Cars come in *waves*: cars side by side, at least
one lane open, all at the same speed. A driver in an open lane of one wave may leave
that lane as soon as the wave's row lies ⌈2 − s/2⌉ rows behind (s = car speed); rows
pass s at a time, so at most s − 1 rows are lost. Its m-th lane change must begin
⌈2 + s/2⌉ rows before the next wave or earlier. So if the waves are

    distance(m) = s·m + ⌈2 − s/2⌉ + ⌈2 + s/2⌉ − 1

rows apart, m the number of lanes to the nearest lane that the next wave leaves open,
counted from the worst open lane of this one, then *every* driver who passes a wave
passes the next one too, in whichever lane it passed. By induction it can drive for ever,
and a driver who can survive the cars on the screen can survive all later ones.
"""

import math
from dataclasses import dataclass

FRAMES = 4
CAR_LENGTH = 2
OLD_LANE_FRAMES = (1, 2)
NEW_LANE_FRAMES = (2, 3, 4)
MAX_BITS = 32


@dataclass(frozen=True)
class Road:
    """Sizes and speeds, fixed at construction (they are shapes and shift widths).

    Attributes:
        lanes: number of lanes, 2 or more.
        rows: visible rows.
        agent_row: upper row of the agent's car.
        car_speed: rows by which the agent gains on every car per step.
        coin_speed: rows of road driven per step; not less than `car_speed`.
    """

    lanes: int = 5
    rows: int = 21
    agent_row: int = 13
    car_speed: int = 2
    coin_speed: int = 4

    def __post_init__(self) -> None:
        if self.lanes < 2:
            raise ValueError(f"expected 2 lanes or more, got {self.lanes}")
        if not 1 <= self.car_speed <= 4:
            raise ValueError(f"expected car_speed from 1 to 4, got {self.car_speed}")
        if not self.car_speed <= self.coin_speed <= 8:
            raise ValueError(
                f"expected coin_speed from {self.car_speed} (car_speed: cars do not "
                f"reverse) to 8 (2 rows a frame), got {self.coin_speed}"
            )
        if self.rows + self.margin > MAX_BITS:
            raise ValueError(
                f"expected at most {MAX_BITS - self.margin} rows at these speeds, got "
                f"{self.rows}"
            )
        lowest = self.rows - CAR_LENGTH
        if not self._first_sight <= self.agent_row <= lowest:
            raise ValueError(
                f"expected agent_row from {self._first_sight} (time to cross "
                f"{self.lanes} lanes) to {lowest} (its length), got {self.agent_row}"
            )

    @property
    def margin(self) -> int:
        """Rows stored above the screen."""
        return max(self.coin_speed, self.car_speed + CAR_LENGTH - 1)

    @property
    def behind_row(self) -> int:
        """Cars whose upper row is this or a lower one lie wholly behind the agent."""
        return self.agent_row + CAR_LENGTH

    @property
    def _first_sight(self) -> int:
        """Rows needed to cross all lanes before a wave that has just come in sight."""
        last_change = math.ceil(2 + self.car_speed / 2)
        return self.car_speed * (self.lanes - 2) + last_change

    @property
    def clear_row(self) -> int:
        """Above this row a new coin's lane must be free: it would catch up with a car.

        A coin gains (coin_speed − car_speed) rows per step on the car below it, for
        (rows + 1)/coin_speed steps, until it is off the screen.
        """
        gain = self.coin_speed - self.car_speed
        return -(-(self.rows + 1) * gain // self.coin_speed)

    def wave_distance(self, changes: int) -> int:
        """Rows between two waves that ask for up to `changes` lane changes."""
        s = self.car_speed
        return s * changes + math.ceil(2 - s / 2) + math.ceil(2 + s / 2) - 1

    def reach(self, frame: int, speed: int) -> tuple[int, ...]:
        """Rows whose cell touches the agent's rows after `frame` frames at `speed`.

        The cell [r, r + 1) has moved to r + frame·speed/4; the agent's car is
        [agent_row, agent_row + 2).
        """
        first, last = FRAMES * (self.agent_row - 1), FRAMES * self.behind_row
        return tuple(
            row
            for row in range(self.rows)
            if first < FRAMES * row + frame * speed < last
        )

    @property
    def near_rows(self) -> range:
        """All rows that a step can reach; the agent's own are among them."""
        first = self.agent_row - max(self.coin_speed, self.car_speed)
        return range(max(first, 0), self.behind_row)

    def bits(self, rows: tuple[int, ...] | range) -> int:
        """The word in which exactly these rows are set."""
        return sum(1 << (row + self.margin) for row in rows)
