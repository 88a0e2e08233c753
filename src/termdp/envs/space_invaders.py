"""MinAtar's Space Invaders: shoot the aliens before they land or shoot you.

Rules. The cannon moves along the bottom row and fires upwards, at most every fifth
step. Aliens (4 rows of 6) move sideways together. When one of them is at the edge they
are heading for, all move down and turn instead. They move every `move_interval` steps,
or every n steps when only n are left and n is smaller. Every tenth step the lowest alien
in the column nearest to the cannon (the left one of two) fires down. Shooting an alien:
+1. A new wave follows a cleared one. With ramping each wave moves more often than the
last, in the end every 6 steps. The game is over when a bullet or an alien reaches the
cannon's cell, or when the aliens would move below the board.

Channels: cannon, alien, alien_left and alien_right (the aliens again, in the channel of
their heading), friendly_bullet, enemy_bullet. Only the sticky actions are random.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from termdp.envs.minatar import (
    COLUMNS,
    FIRE,
    LEFT,
    NONE,
    RIGHT,
    SIZE,
    MinAtarGame,
    MinAtarState,
    Outcome,
    RampingParams,
    cells,
    column_at,
    column_with,
    highest_bit,
    random_words,
    uniform,
)

CANNON_COOL_DOWN = 5
ALIEN_SHOT_INTERVAL = 10
FIRST_MOVE_INTERVAL = 12
LAST_MOVE_INTERVAL = 6
BOTTOM_BIT = 1 << (SIZE - 1)
COLUMN_BITS = (1 << SIZE) - 1


@struct.dataclass
class SpaceInvadersState(MinAtarState):
    """Bullets and aliens are `uint32 [10]`: bit y of column x is cell (y, x)."""

    cannon_x: jax.Array
    cannon_timer: jax.Array
    aliens: jax.Array
    friendly_bullets: jax.Array
    enemy_bullets: jax.Array
    aliens_go_right: jax.Array
    move_interval: jax.Array
    move_timer: jax.Array
    shot_timer: jax.Array


@struct.dataclass
class SpaceInvadersDraws:
    """What is random in one step."""

    sticky: jax.Array
    """Uniform in [0, 1): the last action is repeated if below `sticky_prob`."""


class SpaceInvaders(MinAtarGame):
    """Space Invaders; see the module for the rules."""

    channels: ClassVar[tuple[str, ...]] = (
        "cannon",
        "alien",
        "alien_left",
        "alien_right",
        "friendly_bullet",
        "enemy_bullet",
    )
    minimal_actions: ClassVar[tuple[int, ...]] = (NONE, LEFT, RIGHT, FIRE)

    def sample_draws(self, key: jax.Array) -> SpaceInvadersDraws:
        """Draw everything that is random in one step."""
        (sticky,) = random_words(key, 1)
        return SpaceInvadersDraws(sticky=uniform(sticky))

    def first_state(self, key: jax.Array) -> SpaceInvadersState:
        """Always the same: a fresh wave."""
        del key
        return SpaceInvadersState(
            time=jnp.int32(0),
            last_action=jnp.int32(NONE),
            cannon_x=jnp.int32(5),
            cannon_timer=jnp.int32(0),
            aliens=wave(),
            friendly_bullets=jnp.zeros(SIZE, jnp.uint32),
            enemy_bullets=jnp.zeros(SIZE, jnp.uint32),
            aliens_go_right=jnp.bool_(False),
            move_interval=jnp.int32(FIRST_MOVE_INTERVAL),
            move_timer=jnp.int32(FIRST_MOVE_INTERVAL),
            shot_timer=jnp.int32(ALIEN_SHOT_INTERVAL),
        )

    def play(
        self,
        state: SpaceInvadersState,
        move: jax.Array,
        draws: SpaceInvadersDraws,
        params: RampingParams,
    ) -> Outcome:
        """Cannon, bullets, aliens, their shot, hits, in this order."""
        del draws
        fires = (move == FIRE) & (state.cannon_timer == 0)
        shift = (move == RIGHT).astype(jnp.int32) - (move == LEFT)
        cannon_x = jnp.clip(state.cannon_x + shift, 0, SIZE - 1)
        muzzle = jnp.where(fires, jnp.uint32(BOTTOM_BIT), jnp.uint32(0))
        friendly = (state.friendly_bullets | column_with(cannon_x, muzzle)) >> 1
        enemy = (state.enemy_bullets << 1) & COLUMN_BITS

        count = jnp.sum(jax.lax.population_count(state.aliens)).astype(jnp.int32)
        aliens, turns = moved_aliens(state)
        lands = turns & jnp.any((state.aliens & BOTTOM_BIT) != 0)
        dangers = column_at(enemy | state.aliens | aliens, cannon_x)
        game_over = lands | ((dangers & BOTTOM_BIT) != 0)

        moves, shoots = state.move_timer == 0, state.shot_timer == 0
        enemy = jnp.where(shoots, enemy | alien_shot(aliens, cannon_x), enemy)
        hits = aliens & friendly
        reward = jnp.sum(jax.lax.population_count(hits)).astype(jnp.int32)
        cleared = reward == count
        sooner = cleared & (state.move_interval > LAST_MOVE_INTERVAL) & params.ramping
        next_move = jnp.where(
            moves, jnp.minimum(count, state.move_interval), state.move_timer
        )
        state = state.replace(
            cannon_x=cannon_x,
            cannon_timer=jnp.where(
                fires, CANNON_COOL_DOWN - 1, jnp.maximum(state.cannon_timer - 1, 0)
            ),
            aliens=jnp.where(cleared, wave(), aliens & ~hits),
            friendly_bullets=friendly & ~hits,
            enemy_bullets=enemy,
            aliens_go_right=state.aliens_go_right ^ turns,
            move_interval=state.move_interval - sooner,
            move_timer=next_move - 1,
            shot_timer=jnp.where(shoots, ALIEN_SHOT_INTERVAL, state.shot_timer) - 1,
        )
        return Outcome(state, reward, game_over)

    def board(self, state: SpaceInvadersState) -> jax.Array:
        """The board `bool [10, 10, 6]`."""
        nothing = jnp.uint32(0)
        return cells(
            [
                column_with(state.cannon_x, jnp.uint32(BOTTOM_BIT)),
                state.aliens,
                jnp.where(state.aliens_go_right, nothing, state.aliens),
                jnp.where(state.aliens_go_right, state.aliens, nothing),
                state.friendly_bullets,
                state.enemy_bullets,
            ]
        )


def wave() -> jax.Array:
    """A fresh wave: rows 0 to 3 of columns 2 to 7."""
    return jnp.where((COLUMNS >= 2) & (COLUMNS < 8), jnp.uint32(0b1111), jnp.uint32(0))


def moved_aliens(state: SpaceInvadersState) -> tuple[jax.Array, jax.Array]:
    """The aliens after their move if it is time for one; whether they turned."""
    aliens, right = state.aliens, state.aliens_go_right
    moves = state.move_timer == 0
    turns = moves & (jnp.where(right, aliens[-1], aliens[0]) != 0)
    # Aliens that move below the board come back at its top, as in the original: the
    # game is over, and this is its last observation.
    down = ((aliens << 1) | (aliens >> (SIZE - 1))) & COLUMN_BITS
    sideways = jnp.where(right, jnp.roll(aliens, 1), jnp.roll(aliens, -1))
    return jnp.where(turns, down, jnp.where(moves, sideways, aliens)), turns


def alien_shot(aliens: jax.Array, cannon_x: jax.Array) -> jax.Array:
    """`uint32 [10]` with the cell of the alien that fires, if any is left."""
    # Nearest first, the left one of two: distance in the high bits, column in the low.
    order = jnp.where(aliens != 0, jnp.abs(COLUMNS - cannon_x) * 16 + COLUMNS, 1 << 10)
    shooter_x = jnp.min(order) & 15
    return column_with(shooter_x, highest_bit(aliens))
