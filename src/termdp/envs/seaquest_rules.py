"""The parts of Seaquest: enemies, their bullets, torpedoes, divers.

How many there can be decides how they are stored. The submarine fires at most every
fifth step and a torpedo crosses the board in nine, so at most two torpedoes are under
way, never in the same cell. A diver enters every 30 steps and is gone after 59, so there
are at most two, and they move at the same time. At the hardest level an enemy enters
every step and is gone after 29, so there are at most 30 enemies. Enemy number i is bit i
of a 32-bit word, and a set of enemies is a word. Numbers go by age: a new enemy becomes
bit 31, and the others move down by one. Bits 0 and 1 are never reached; the drawing of
trails uses them for the divers.

All enemies of a row move in the same direction, and so do the bullets of a row.
"""

import jax
import jax.numpy as jnp
from flax import struct

from termdp.envs.minatar import (
    COLUMNS,
    SIZE,
    column_at,
    column_with,
    highest_bit,
    lowest_bit,
    shift_left,
    shift_right,
)

NEWEST = 1 << 31
SHOT_INTERVAL = 10
MAX_DIVERS = 6
NOWHERE = -1


class Torpedoes(struct.PyTreeNode):
    """The submarine's two bullets, the newer first, at x = `NOWHERE` if not there."""

    x: jax.Array
    y: jax.Array
    goes_right: jax.Array


class Divers(struct.PyTreeNode):
    """The two divers, the newer first, at x = `NOWHERE` if not there."""

    x: jax.Array
    y: jax.Array
    goes_right: jax.Array


class Enemies(struct.PyTreeNode):
    """Sets of enemies, each a word: enemy i is bit i.

    `in_column` is `uint32 [10]`, the enemies in each column. An enemy exists only if it
    is in some column; the other words may still hold the bits of enemies that are gone.
    `in_row` is the same for rows. The clocks count the steps to each enemy's next move
    and shot in binary: word k holds digit k of all the counters.
    """

    in_column: jax.Array
    in_row: jax.Array
    goes_right: jax.Array
    is_sub: jax.Array
    move_clock: jax.Array
    shot_clock: jax.Array

    def existing(self) -> jax.Array:
        """All enemies on the board."""
        # An enemy is in one column only, so the sum of the columns is their union.
        return jnp.sum(self.in_column, dtype=jnp.uint32)

    def at(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """The enemies in a cell."""
        return column_at(self.in_column, x) & column_at(self.in_row, y)

    def without(self, gone: jax.Array) -> "Enemies":
        """All but these enemies."""
        return self.replace(in_column=self.in_column & ~gone)


class EnemyBullets(struct.PyTreeNode):
    """`uint32 [10]` each: bit y of column x says whether a bullet is in that cell."""

    rightward: jax.Array
    leftward: jax.Array

    def anywhere(self) -> jax.Array:
        """The bullets of both directions."""
        return self.rightward | self.leftward

    def moved(self) -> "EnemyBullets":
        """All bullets one cell on."""
        return EnemyBullets(shift_right(self.rightward), shift_left(self.leftward))


class EnemySpawn(struct.PyTreeNode):
    """An enemy that may enter: when, on which side, which kind, in which row."""

    is_time: jax.Array
    enters_left: jax.Array
    is_sub: jax.Array
    y: jax.Array


def no_enemies() -> Enemies:
    """The enemies at the start of a game."""
    return Enemies(
        in_column=jnp.zeros(SIZE, jnp.uint32),
        in_row=jnp.zeros(SIZE, jnp.uint32),
        goes_right=jnp.uint32(0),
        is_sub=jnp.uint32(0),
        move_clock=jnp.zeros(3, jnp.uint32),
        shot_clock=jnp.zeros(4, jnp.uint32),
    )


def digits(number: jax.Array | int, num_digits: int) -> jax.Array:
    """A word per binary digit of the number: all bits set where the digit is 1."""
    ones = (jnp.asarray(number, jnp.int32) >> jnp.arange(num_digits)) & 1
    return jnp.where(ones != 0, jnp.uint32(0xFFFFFFFF), jnp.uint32(0))


def count_down(
    clock: jax.Array, restart: jax.Array | int
) -> tuple[jax.Array, jax.Array]:
    """One step of all counters: the set of those that restart at 0, and the clock."""
    borrow = ~jnp.uint32(0)
    words = []
    for k in range(clock.shape[0]):
        words.append(clock[k] ^ borrow)
        borrow = borrow & ~clock[k]
    expired = borrow
    restarted = digits(restart, clock.shape[0]) & expired
    return expired, (jnp.stack(words) & ~expired) | restarted


def spawn_enemy(
    enemies: Enemies, spawn: EnemySpawn, move_interval: jax.Array
) -> Enemies:
    """An enemy enters unless one in that row moves the other way."""
    row = column_at(enemies.in_row, spawn.y)
    oncoming = enemies.goes_right ^ jnp.where(
        spawn.enters_left, ~jnp.uint32(0), jnp.uint32(0)
    )
    enters = spawn.is_time & ((row & enemies.existing() & oncoming) == 0)
    age = enters.astype(jnp.uint32)
    new = jnp.where(enters, jnp.uint32(NEWEST), jnp.uint32(0))
    nobody = jnp.uint32(0)
    entrance = jnp.where(spawn.enters_left, 0, SIZE - 1)
    return Enemies(
        in_column=(enemies.in_column >> age) | column_with(entrance, new),
        in_row=(enemies.in_row >> age) | column_with(spawn.y, new),
        goes_right=(enemies.goes_right >> age)
        | jnp.where(spawn.enters_left, new, nobody),
        is_sub=(enemies.is_sub >> age) | jnp.where(spawn.is_sub, new, nobody),
        move_clock=(enemies.move_clock >> age) | (digits(move_interval, 3) & new),
        shot_clock=(enemies.shot_clock >> age) | (digits(SHOT_INTERVAL, 4) & new),
    )


def move_enemies(
    enemies: Enemies, move_interval: jax.Array
) -> tuple[jax.Array, Enemies]:
    """The set of enemies that move in this step, and all enemies after it."""
    movers, move_clock = count_down(enemies.move_clock, move_interval)
    moving = enemies.in_column & movers
    in_column = (
        (enemies.in_column & ~movers)
        | shift_right(moving & enemies.goes_right)
        | shift_left(moving & ~enemies.goes_right)
    )
    return movers, enemies.replace(in_column=in_column, move_clock=move_clock)


def fire_enemies(
    enemies: Enemies, bullets: EnemyBullets
) -> tuple[Enemies, EnemyBullets]:
    """Enemy submarines whose shot is due fire from where they are."""
    expired, shot_clock = count_down(enemies.shot_clock, SHOT_INTERVAL)
    shooters = expired & enemies.is_sub & enemies.existing()
    row_bits = (1 << jnp.arange(SIZE)).astype(jnp.uint32)
    shooters_in_row = enemies.in_row & shooters
    is_shot = (enemies.in_column[:, None] & shooters_in_row[None, :]) != 0
    shots = jnp.sum(jnp.where(is_shot, row_bits, 0), axis=1, dtype=jnp.uint32)
    goes_right = (shooters_in_row & enemies.goes_right) != 0
    rightward = jnp.sum(jnp.where(goes_right, row_bits, 0), dtype=jnp.uint32)
    return enemies.replace(shot_clock=shot_clock), EnemyBullets(
        rightward=bullets.rightward | (shots & rightward),
        leftward=bullets.leftward | (shots & ~rightward),
    )


def on_board(x: jax.Array) -> jax.Array:
    """The column, or `NOWHERE` if it is beyond the edge."""
    return jnp.where((x >= 0) & (x < SIZE), x, NOWHERE)


def step_sideways(x: jax.Array, goes_right: jax.Array) -> jax.Array:
    """The next column of things that are somewhere, `NOWHERE` for the others."""
    return jnp.where(x == NOWHERE, NOWHERE, on_board(x + jnp.where(goes_right, 1, -1)))


def strike(
    torpedoes: Torpedoes, enemies: Enemies
) -> tuple[Torpedoes, Enemies, jax.Array]:
    """Torpedoes hit what is in their new cell: a fish before a sub, the oldest first.

    Returns the torpedoes and the enemies that are left, and how many were hit.
    """
    kills = []
    for i in range(2):
        cell = enemies.at(torpedoes.x[i], torpedoes.y[i])
        fish = cell & ~enemies.is_sub
        kills.append(lowest_bit(jnp.where(fish != 0, fish, cell)))
    return _remove_hit(torpedoes, enemies, jnp.stack(kills))


def run_into(
    torpedoes: Torpedoes, enemies: Enemies, movers: jax.Array
) -> tuple[Torpedoes, Enemies, jax.Array]:
    """Enemies that moved run into torpedoes: a sub before a fish, the newest first."""
    kills = []
    for i in range(2):
        cell = enemies.at(torpedoes.x[i], torpedoes.y[i]) & movers
        subs = cell & enemies.is_sub
        kills.append(highest_bit(jnp.where(subs != 0, subs, cell)))
    return _remove_hit(torpedoes, enemies, jnp.stack(kills))


def _remove_hit(
    torpedoes: Torpedoes, enemies: Enemies, kills: jax.Array
) -> tuple[Torpedoes, Enemies, jax.Array]:
    hits = kills != 0
    left = torpedoes.replace(x=jnp.where(hits, NOWHERE, torpedoes.x))
    count = jnp.sum(hits, dtype=jnp.int32)
    return left, enemies.without(kills[0] | kills[1]), count


def enter(things: jax.Array, newest: jax.Array, is_time: jax.Array) -> jax.Array:
    """Put a new thing at the front of a pair; the oldest has left already."""
    pair = jnp.stack([newest.astype(things.dtype), things[0]])
    return jnp.where(is_time, pair, things)


def update_divers(
    divers: Divers,
    sub_xy: tuple[jax.Array, jax.Array],
    aboard: jax.Array,
    moves: jax.Array,
) -> tuple[Divers, jax.Array]:
    """Divers move; those the submarine meets come aboard while there is room.

    The newest diver comes first. A diver who is already in the submarine's cell comes
    aboard instead of moving on.
    """
    columns = []
    for i in range(2):
        is_same_row = divers.y[i] == sub_xy[1]
        x = divers.x[i]
        stays = (x == sub_xy[0]) & is_same_row & (aboard < MAX_DIVERS)
        x = jnp.where(moves & ~stays, step_sideways(x, divers.goes_right[i]), x)
        taken = (x == sub_xy[0]) & is_same_row & (aboard < MAX_DIVERS)
        # A diver that did not move is in the submarine's cell only if it stays.
        columns.append(jnp.where(taken, NOWHERE, x))
        aboard = aboard + taken
    return divers.replace(x=jnp.stack(columns)), aboard


def pair_columns(x: jax.Array, words: jax.Array) -> jax.Array:
    """`uint32 [10]` with the first word in column x[0] and the second in x[1]."""
    return column_with(x[0], words[0]) | column_with(x[1], words[1])


def pair_rows(y: jax.Array) -> jax.Array:
    """`uint32 [10]`: bit i in row y[i]."""
    rows = COLUMNS.astype(y.dtype)
    return (rows == y[0]).astype(jnp.uint32) | ((rows == y[1]).astype(jnp.uint32) << 1)
