"""MinAtar's Seaquest: hunt under water, rescue divers, come up for air in time.

Rules. The submarine moves in rows 0 (the surface) to 8 and fires forwards, at most
every fifth step. Enemies enter at the sides in rows 1 to 8 and cross the board: fish,
and submarines with probability 1/3. Enemy submarines fire ahead every 11 steps. Shooting
an enemy: +1. Divers enter every 30 steps; the submarine takes up to six aboard by meeting
them. Oxygen lasts 200 steps under water. Surfacing refills it and costs one diver. With
six aboard all are landed instead, for a reward of 1 per tenth of the oxygen left. (The
original subtracts one diver even then. The count is then -1, and surfacing is allowed
while it is below zero. This game does the same.) With ramping, every surfacing makes
enemies enter more often (from every 20 steps to every step), and every second one makes
them move more often (from every 6 steps to every 3). The game is over when an enemy or
its bullet meets the submarine's front, when the oxygen is used up, and on surfacing with
no diver aboard.

Channels: sub_front, sub_back, friendly_bullet, trail (the cell behind each enemy and
diver), enemy_bullet, enemy_fish, enemy_sub, oxygen_guage, diver_guage (both in row 9;
the original's spelling), diver. What enters, where it enters, and the sticky actions are
random.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from termdp.envs import seaquest_rules as rules
from termdp.envs.minatar import (
    COLUMNS,
    DOWN,
    FIRE,
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
    column_at,
    column_with,
    one_third,
    random_words,
    shift_left,
    shift_right,
    uniform,
)

DEEPEST_ROW = 8
MAX_OXYGEN = 200
OXYGEN_PER_CELL = MAX_OXYGEN // SIZE
COOL_DOWN = 5
SPAWN_INTERVAL = 20
MOVE_INTERVAL = 5
LAST_MOVE_INTERVAL = 2
DIVER_SPAWN_INTERVAL = 30
DIVER_MOVE_PERIOD = 6


@struct.dataclass
class SeaquestState(MinAtarState):
    """The submarine, its crew and its surroundings."""

    x: jax.Array
    y: jax.Array
    faces_right: jax.Array
    oxygen: jax.Array
    divers_aboard: jax.Array
    is_surfaced: jax.Array
    cool_down: jax.Array
    torpedoes: rules.Torpedoes
    divers: rules.Divers
    diver_timer: jax.Array
    enemies: rules.Enemies
    enemy_bullets: rules.EnemyBullets
    spawn_interval: jax.Array
    spawn_timer: jax.Array
    move_interval: jax.Array
    ramp_level: jax.Array


@struct.dataclass
class SeaquestDraws:
    """What is random in one step; all but `sticky` matter only if something enters."""

    sticky: jax.Array
    """Uniform in [0, 1): the last action is repeated if below `sticky_prob`."""
    enemy_enters_left: jax.Array
    """Probability 1/2: the enemy enters at the left and moves to the right."""
    enemy_is_sub: jax.Array
    """Probability 1/3."""
    enemy_y: jax.Array
    """Uniform in 1 to 8."""
    diver_enters_left: jax.Array
    """Probability 1/2."""
    diver_y: jax.Array
    """Uniform in 1 to 8."""


class Seaquest(MinAtarGame):
    """Seaquest; see the module for the rules."""

    channels: ClassVar[tuple[str, ...]] = (
        "sub_front",
        "sub_back",
        "friendly_bullet",
        "trail",
        "enemy_bullet",
        "enemy_fish",
        "enemy_sub",
        "oxygen_guage",
        "diver_guage",
        "diver",
    )
    minimal_actions: ClassVar[tuple[int, ...]] = (NONE, LEFT, UP, RIGHT, DOWN, FIRE)

    def sample_draws(self, key: jax.Array) -> SeaquestDraws:
        """Draw everything that is random in one step."""
        sticky, kind, enemy, diver = random_words(key, 4)
        return SeaquestDraws(
            sticky=uniform(sticky),
            enemy_enters_left=(enemy & 1).astype(jnp.bool_),
            enemy_is_sub=one_third(kind),
            enemy_y=1 + ((enemy >> 1) & 7).astype(jnp.int32),
            diver_enters_left=(diver & 1).astype(jnp.bool_),
            diver_y=1 + ((diver >> 1) & 7).astype(jnp.int32),
        )

    def first_state(self, key: jax.Array) -> SeaquestState:
        """Always the same: alone at the surface."""
        del key
        no_pair = {
            "x": jnp.full(2, rules.NOWHERE, jnp.int32),
            "y": jnp.zeros(2, jnp.int32),
            "goes_right": jnp.zeros(2, jnp.bool_),
        }
        nothing = jnp.zeros(SIZE, jnp.uint32)
        return SeaquestState(
            time=jnp.int32(0),
            last_action=jnp.int32(NONE),
            x=jnp.int32(5),
            y=jnp.int32(0),
            faces_right=jnp.bool_(False),
            oxygen=jnp.int32(MAX_OXYGEN),
            divers_aboard=jnp.int32(0),
            is_surfaced=jnp.bool_(True),
            cool_down=jnp.int32(0),
            torpedoes=rules.Torpedoes(**no_pair),
            divers=rules.Divers(**no_pair),
            diver_timer=jnp.int32(DIVER_SPAWN_INTERVAL),
            enemies=rules.no_enemies(),
            enemy_bullets=rules.EnemyBullets(nothing, nothing),
            spawn_interval=jnp.int32(SPAWN_INTERVAL),
            spawn_timer=jnp.int32(SPAWN_INTERVAL),
            move_interval=jnp.int32(MOVE_INTERVAL),
            ramp_level=jnp.int32(0),
        )

    def play(
        self,
        state: SeaquestState,
        move: jax.Array,
        draws: SeaquestDraws,
        params: RampingParams,
    ) -> Outcome:
        """In turn: arrivals, submarine, torpedoes, divers, enemies, bullets, oxygen."""
        state = spawn(state, draws)
        state = steer(state, move)
        torpedoes, enemies, num_struck = rules.strike(state.torpedoes, state.enemies)

        divers, aboard = rules.update_divers(
            state.divers,
            (state.x, state.y),
            state.divers_aboard,
            moves=state.diver_timer % DIVER_MOVE_PERIOD == 1,
        )

        touched = enemies.at(state.x, state.y)
        movers, enemies = rules.move_enemies(enemies, state.move_interval)
        touched |= enemies.at(state.x, state.y)
        # A submarine that runs into a torpedo still fires if its shot is due.
        enemies, bullets = rules.fire_enemies(enemies, state.enemy_bullets)
        torpedoes, enemies, num_run_into = rules.run_into(torpedoes, enemies, movers)

        moved_bullets = bullets.moved()
        near = bullets.anywhere() | moved_bullets.anywhere()
        shot = column_at(near, state.x) & bit(state.y)

        state = state.replace(
            torpedoes=torpedoes,
            divers=divers,
            divers_aboard=aboard,
            enemies=enemies,
            enemy_bullets=moved_bullets,
            spawn_timer=jnp.maximum(state.spawn_timer - 1, 0),
            diver_timer=jnp.maximum(state.diver_timer - 1, 0),
            cool_down=jnp.maximum(state.cool_down - 1, 0),
        )
        outcome = breathe(state, params)
        return outcome.replace(
            reward=outcome.reward + num_struck + num_run_into,
            game_over=outcome.game_over | ((touched | shot) != 0),
        )

    def board(self, state: SeaquestState) -> jax.Array:
        """The board `bool [10, 10, 10]`.

        A cell is occupied if the word of its column and the word of its row have a bit
        in common. For enemies the bits are the enemies themselves; for everything else
        the row's word is its own bit.
        """
        enemies, divers, torpedoes = state.enemies, state.divers, state.torpedoes
        back_x = state.x + jnp.where(state.faces_right, -1, 1)
        behind = shift_left(enemies.in_column & enemies.goes_right) | shift_right(
            enemies.in_column & ~enemies.goes_right
        )
        behind_divers = rules.step_sideways(divers.x, ~divers.goes_right)
        trail = behind | rules.pair_columns(
            behind_divers, jnp.array([1, 2], jnp.uint32)
        )
        bottom = jnp.uint32(1 << (SIZE - 1))
        oxygen_cells = jnp.maximum(state.oxygen, 0) // OXYGEN_PER_CELL
        is_diver_cell = (SIZE - 1 - state.divers_aboard <= COLUMNS) & (
            COLUMNS < SIZE - 1
        )
        columns = [
            column_with(state.x, bit(state.y)),
            column_with(back_x, bit(state.y)),
            rules.pair_columns(torpedoes.x, bit(torpedoes.y)),
            trail,
            state.enemy_bullets.anywhere(),
            enemies.in_column & ~enemies.is_sub,
            enemies.in_column & enemies.is_sub,
            jnp.where(oxygen_cells > COLUMNS, bottom, jnp.uint32(0)),
            jnp.where(is_diver_cell, bottom, jnp.uint32(0)),
            rules.pair_columns(divers.x, bit(divers.y)),
        ]
        own_bit = bit(COLUMNS)
        rows = [own_bit] * 10
        rows[3] = enemies.in_row & ~jnp.uint32(3) | rules.pair_rows(divers.y)
        rows[5] = rows[6] = enemies.in_row
        by_column, by_row = jnp.stack(columns, axis=-1), jnp.stack(rows, axis=-1)
        return (by_column[None] & by_row[:, None]) != 0


def spawn(state: SeaquestState, draws: SeaquestDraws) -> SeaquestState:
    """An enemy and a diver enter when it is time."""
    enemy = rules.EnemySpawn(
        is_time=state.spawn_timer == 0,
        enters_left=draws.enemy_enters_left,
        is_sub=draws.enemy_is_sub,
        y=draws.enemy_y,
    )
    is_diver_time = state.diver_timer == 0
    divers = state.divers
    entrance = jnp.where(draws.diver_enters_left, 0, SIZE - 1)
    return state.replace(
        enemies=rules.spawn_enemy(state.enemies, enemy, state.move_interval),
        spawn_timer=jnp.where(enemy.is_time, state.spawn_interval, state.spawn_timer),
        divers=rules.Divers(
            x=rules.enter(divers.x, entrance, is_diver_time),
            y=rules.enter(divers.y, draws.diver_y, is_diver_time),
            goes_right=rules.enter(
                divers.goes_right, draws.diver_enters_left, is_diver_time
            ),
        ),
        diver_timer=jnp.where(is_diver_time, DIVER_SPAWN_INTERVAL, state.diver_timer),
    )


def steer(state: SeaquestState, move: jax.Array) -> SeaquestState:
    """The submarine moves or fires; then the torpedoes move."""
    fires = (move == FIRE) & (state.cool_down == 0)
    torpedoes = rules.Torpedoes(
        x=rules.enter(state.torpedoes.x, state.x, fires),
        y=rules.enter(state.torpedoes.y, state.y, fires),
        goes_right=rules.enter(state.torpedoes.goes_right, state.faces_right, fires),
    )
    right = (move == RIGHT).astype(jnp.int32) - (move == LEFT)
    down = (move == DOWN).astype(jnp.int32) - (move == UP)
    return state.replace(
        x=jnp.clip(state.x + right, 0, SIZE - 1),
        y=jnp.clip(state.y + down, 0, DEEPEST_ROW),
        faces_right=(move == RIGHT) | (state.faces_right & (move != LEFT)),
        cool_down=jnp.where(fires, COOL_DOWN, state.cool_down),
        torpedoes=torpedoes.replace(
            x=rules.step_sideways(torpedoes.x, torpedoes.goes_right)
        ),
    )


def breathe(state: SeaquestState, params: RampingParams) -> Outcome:
    """Use oxygen under water; surfacing costs a diver and makes the game harder."""
    is_under = state.y > 0
    comes_up = ~is_under & ~state.is_surfaced
    game_over = (state.oxygen <= 0) | (comes_up & (state.divers_aboard == 0))

    surfaces = comes_up & (state.divers_aboard != 0)
    lands_all = surfaces & (state.divers_aboard == rules.MAX_DIVERS)
    reward = jnp.where(lands_all, state.oxygen // OXYGEN_PER_CELL, 0)
    aboard = jnp.where(lands_all, 0, state.divers_aboard) - surfaces

    spawns_sooner = surfaces & params.ramping & (state.spawn_interval > 1)
    can_move_sooner = state.move_interval > LAST_MOVE_INTERVAL
    ramps = spawns_sooner | (surfaces & params.ramping & can_move_sooner)
    moves_sooner = ramps & can_move_sooner & (state.ramp_level % 2 == 1)
    state = state.replace(
        oxygen=jnp.where(surfaces, MAX_OXYGEN, state.oxygen - is_under),
        divers_aboard=aboard,
        is_surfaced=~is_under & (state.is_surfaced | surfaces),
        spawn_interval=state.spawn_interval - spawns_sooner,
        move_interval=state.move_interval - moves_sooner,
        ramp_level=state.ramp_level + ramps,
    )
    return Outcome(state, reward, game_over)
