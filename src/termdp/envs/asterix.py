"""MinAtar's Asterix: collect the gold, avoid the enemies.

Rules. The player moves freely in rows 1 to 8. Things (gold with probability 1/3, else
enemies) enter at the left or the right in a free row, chosen uniformly, and cross the
board. A row holds one thing at a time; when no row is free, none enters. Meeting gold
collects it: +1. Meeting an enemy ends the game. With ramping, every 102 steps things
begin to enter more often (from every 10 steps to every step), and every second time they
also begin to move more often (from every 5 steps to every step).

Channels: player, enemy, trail (the cell behind each thing), gold. What enters, where it
enters, and the sticky actions are random.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from termdp.envs.minatar import (
    DOWN,
    LEFT,
    NONE,
    RIGHT,
    SIZE,
    UP,
    MinAtarGame,
    MinAtarState,
    Outcome,
    RampingParams,
    bit,
    cells,
    column_at,
    column_with,
    one_third,
    random_words,
    shift_left,
    shift_right,
    uniform,
)

FIRST_ROW, LAST_ROW = 1, 8
ALL_ROWS = sum(1 << row for row in range(FIRST_ROW, LAST_ROW + 1))
SPAWN_INTERVAL = 10
MOVE_INTERVAL = 5
RAMP_INTERVAL = 100
NUM_ROW_CHOICES = 840
"""Divisible by every number from 1 to 8: fair however many rows are free."""


@struct.dataclass
class AsterixState(MinAtarState):
    """A row holds at most one thing, so a set of things is a word with a bit per row.

    `things` is `uint32 [10]`: the things in each column. `gold` and `goes_right` say
    which are gold and which move to the right; bits of empty rows mean nothing.
    """

    player_x: jax.Array
    player_y: jax.Array
    things: jax.Array
    gold: jax.Array
    goes_right: jax.Array
    spawn_interval: jax.Array
    spawn_timer: jax.Array
    move_interval: jax.Array
    move_timer: jax.Array
    ramp_timer: jax.Array
    ramp_level: jax.Array


@struct.dataclass
class AsterixDraws:
    """What is random in one step; all but `sticky` matter only when a thing enters."""

    sticky: jax.Array
    """Uniform in [0, 1): the last action is repeated if below `sticky_prob`."""
    enters_left: jax.Array
    """Probability 1/2: the thing enters at the left and moves to the right."""
    is_gold: jax.Array
    """Probability 1/3."""
    row_choice: jax.Array
    """Uniform in [0, 840): which of the free rows, modulo their number."""


class Asterix(MinAtarGame):
    """Asterix; see the module for the rules."""

    channels: ClassVar[tuple[str, ...]] = ("player", "enemy", "trail", "gold")
    minimal_actions: ClassVar[tuple[int, ...]] = (NONE, LEFT, UP, RIGHT, DOWN)

    def sample_draws(self, key: jax.Array) -> AsterixDraws:
        """Draw everything that is random in one step."""
        sticky, side, kind, row = random_words(key, 4)
        return AsterixDraws(
            sticky=uniform(sticky),
            enters_left=(side & 1).astype(jnp.bool_),
            is_gold=one_third(kind),
            row_choice=(row % NUM_ROW_CHOICES).astype(jnp.int32),
        )

    def first_state(self, key: jax.Array) -> AsterixState:
        """Always the same: an empty board."""
        del key
        return AsterixState(
            time=jnp.int32(0),
            last_action=jnp.int32(NONE),
            player_x=jnp.int32(5),
            player_y=jnp.int32(5),
            things=jnp.zeros(SIZE, jnp.uint32),
            gold=jnp.uint32(0),
            goes_right=jnp.uint32(0),
            spawn_interval=jnp.int32(SPAWN_INTERVAL),
            spawn_timer=jnp.int32(SPAWN_INTERVAL),
            move_interval=jnp.int32(MOVE_INTERVAL),
            move_timer=jnp.int32(MOVE_INTERVAL),
            ramp_timer=jnp.int32(RAMP_INTERVAL),
            ramp_level=jnp.int32(0),
        )

    def play(
        self,
        state: AsterixState,
        move: jax.Array,
        draws: AsterixDraws,
        params: RampingParams,
    ) -> Outcome:
        """A thing enters; then the player moves, then the things, then the clocks."""
        state = spawn(state, draws)
        right = (move == RIGHT).astype(jnp.int32) - (move == LEFT)
        down = (move == DOWN).astype(jnp.int32) - (move == UP)
        player_x = jnp.clip(state.player_x + right, 0, SIZE - 1)
        player_y = jnp.clip(state.player_y + down, FIRST_ROW, LAST_ROW)
        player_row = bit(player_y)

        moves = state.move_timer == 0
        met = column_at(state.things, player_x) & player_row
        things = state.things & ~(met & state.gold)
        moved = shift_right(things & state.goes_right) | shift_left(
            things & ~state.goes_right
        )
        things = jnp.where(moves, moved, things)
        met_later = column_at(things, player_x) & player_row

        taken, taken_later = met & state.gold, met_later & state.gold
        reward = (taken != 0).astype(jnp.int32) + (taken_later != 0)
        game_over = ((met | met_later) & ~state.gold) != 0
        state = state.replace(
            player_x=player_x,
            player_y=player_y,
            things=things & ~taken_later,
            move_timer=jnp.where(moves, state.move_interval, state.move_timer) - 1,
        )
        return Outcome(ramp(state, params), reward, game_over)

    def board(self, state: AsterixState) -> jax.Array:
        """The board `bool [10, 10, 4]`."""
        behind = shift_left(state.things & state.goes_right) | shift_right(
            state.things & ~state.goes_right
        )
        return cells(
            [
                column_with(state.player_x, bit(state.player_y)),
                state.things & ~state.gold,
                behind,
                state.things & state.gold,
            ]
        )


def spawn(state: AsterixState, draws: AsterixDraws) -> AsterixState:
    """A thing enters if it is time and a row is free; the timer counts down."""
    is_time = state.spawn_timer == 0
    # Things have different rows, so the sum of the columns is their union.
    free = ALL_ROWS & ~jnp.sum(state.things, dtype=jnp.uint32)
    num_free = jax.lax.population_count(free).astype(jnp.int32)
    row = nth_row(free, draws.row_choice % jnp.maximum(num_free, 1))
    new = jnp.where(is_time, row, jnp.uint32(0))
    entrance = jnp.where(draws.enters_left, 0, SIZE - 1)
    return state.replace(
        things=state.things | column_with(entrance, new),
        gold=jnp.where(draws.is_gold, state.gold | new, state.gold & ~new),
        goes_right=jnp.where(
            draws.enters_left, state.goes_right | new, state.goes_right & ~new
        ),
        spawn_timer=jnp.where(is_time, state.spawn_interval, state.spawn_timer) - 1,
    )


def nth_row(rows: jax.Array, n: jax.Array) -> jax.Array:
    """The bit of the n-th of these rows, counted from 0; no bit if there is none."""
    found = jnp.uint32(0)
    for row in range(FIRST_ROW, LAST_ROW + 1):
        is_member = (rows >> row) & 1
        found = jnp.where((n == 0) & (is_member != 0), jnp.uint32(1 << row), found)
        n = n - is_member.astype(jnp.int32)
    return found


def ramp(state: AsterixState, params: RampingParams) -> AsterixState:
    """Make the game harder when it is time."""
    can_ramp = (state.spawn_interval > 1) | (state.move_interval > 1)
    is_on = params.ramping & can_ramp
    is_time = is_on & (state.ramp_timer < 0)
    moves_sooner = is_time & (state.move_interval > 1) & (state.ramp_level % 2 == 1)
    spawns_sooner = is_time & (state.spawn_interval > 1)
    return state.replace(
        ramp_timer=jnp.where(is_time, RAMP_INTERVAL, state.ramp_timer - is_on),
        ramp_level=state.ramp_level + is_time,
        move_interval=state.move_interval - moves_sooner,
        spawn_interval=state.spawn_interval - spawns_sooner,
    )
