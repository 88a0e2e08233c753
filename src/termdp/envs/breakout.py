"""MinAtar's Breakout: bounce a ball off a paddle to break a wall of bricks.

Rules. The paddle moves along the bottom row, the ball along diagonals. Walls reflect the
ball. A brick sends it back and breaks: +1. A ball that has just hit a brick passes
through any other without breaking it: it must be clear of bricks for one step before it
can strike again. The paddle sends the ball up again if it is under the ball's old column
(the ball keeps its sideways direction) or under its new one (the ball returns the way it
came). There are three rows of bricks. When the ball reaches the bottom row and all are
broken, they are restored. The game is over when the ball reaches the bottom row beside
the paddle.

Channels: paddle, ball, trail (where the ball was), brick. The side from which the ball
starts and the sticky actions are random.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from termdp.envs.minatar import (
    COLUMNS,
    LEFT,
    NONE,
    RIGHT,
    SIZE,
    MinAtarGame,
    MinAtarParams,
    MinAtarState,
    Outcome,
    bit,
    cells,
    column_with,
    random_words,
    uniform,
)

FIRST_BRICK_ROW = 1
NUM_BRICK_ROWS = 3
ALL_BRICKS = (1 << NUM_BRICK_ROWS * SIZE) - 1
BOTTOM = SIZE - 1


@struct.dataclass
class BreakoutState(MinAtarState):
    """Positions are columns and rows; `bricks` has one bit per brick, row by row."""

    paddle_x: jax.Array
    ball_x: jax.Array
    ball_y: jax.Array
    moves_right: jax.Array
    moves_down: jax.Array
    trail_x: jax.Array
    trail_y: jax.Array
    bricks: jax.Array
    in_brick: jax.Array


@struct.dataclass
class BreakoutDraws:
    """What is random in one step."""

    sticky: jax.Array
    """Uniform in [0, 1): the last action is repeated if below `sticky_prob`."""


class Breakout(MinAtarGame):
    """Breakout; see the module for the rules."""

    channels: ClassVar[tuple[str, ...]] = ("paddle", "ball", "trail", "brick")
    minimal_actions: ClassVar[tuple[int, ...]] = (NONE, LEFT, RIGHT)

    @property
    def default_params(self) -> MinAtarParams:
        """Breakout has no ramping."""
        return MinAtarParams()

    def sample_draws(self, key: jax.Array) -> BreakoutDraws:
        """Draw what is random in one step; the other word is for `first_state`."""
        sticky, _ = random_words(key, 2)
        return BreakoutDraws(sticky=uniform(sticky))

    def first_state(self, key: jax.Array) -> BreakoutState:
        """The ball starts at the left or right wall and moves down and inwards."""
        _, side = random_words(key, 2)
        return self.start((side & 1).astype(jnp.bool_))

    def start(self, from_right: jax.Array) -> BreakoutState:
        """The first state, given the ball's side."""
        from_right = jnp.asarray(from_right, jnp.bool_)
        ball_x = jnp.where(from_right, BOTTOM, 0).astype(jnp.int32)
        ball_y = jnp.int32(3)
        return BreakoutState(
            time=jnp.int32(0),
            last_action=jnp.int32(NONE),
            paddle_x=jnp.int32(4),
            ball_x=ball_x,
            ball_y=ball_y,
            moves_right=~from_right,
            moves_down=jnp.bool_(True),
            trail_x=ball_x,
            trail_y=ball_y,
            bricks=jnp.uint32(ALL_BRICKS),
            in_brick=jnp.bool_(False),
        )

    def play(
        self,
        state: BreakoutState,
        move: jax.Array,
        draws: BreakoutDraws,
        params: MinAtarParams,
    ) -> Outcome:
        """Move the paddle, then the ball."""
        del draws, params
        shift = (move == RIGHT).astype(jnp.int32) - (move == LEFT)
        paddle_x = jnp.clip(state.paddle_x + shift, 0, SIZE - 1)

        aimed_x = state.ball_x + jnp.where(state.moves_right, 1, -1)
        aimed_y = state.ball_y + jnp.where(state.moves_down, 1, -1)
        x = jnp.clip(aimed_x, 0, SIZE - 1)
        moves_right = state.moves_right ^ (x != aimed_x)

        hits_top = aimed_y < 0
        # Above and below the wall the bit's position is beyond the bricks: no hit.
        brick = bit((aimed_y - FIRST_BRICK_ROW) * SIZE + x)
        brick = jnp.where(hits_top | (aimed_y > NUM_BRICK_ROWS), 0, brick)
        touches = (state.bricks & brick) != 0
        breaks = touches & ~state.in_brick
        bricks = jnp.where(breaks, state.bricks & ~brick, state.bricks)

        at_bottom = ~hits_top & ~touches & (aimed_y == BOTTOM)
        bricks = jnp.where(at_bottom & (bricks == 0), jnp.uint32(ALL_BRICKS), bricks)
        goes_on = at_bottom & (state.ball_x == paddle_x)
        returns = at_bottom & ~goes_on & (x == paddle_x)
        bounces = goes_on | returns

        state = state.replace(
            paddle_x=paddle_x,
            ball_x=x,
            ball_y=jnp.where(breaks | bounces, state.ball_y, jnp.maximum(aimed_y, 0)),
            moves_right=moves_right ^ returns,
            moves_down=state.moves_down ^ (hits_top | breaks | bounces),
            trail_x=state.ball_x,
            trail_y=state.ball_y,
            bricks=bricks,
            in_brick=touches,
        )
        return Outcome(state, reward=breaks, game_over=at_bottom & ~bounces)

    def board(self, state: BreakoutState) -> jax.Array:
        """The board `bool [10, 10, 4]`."""
        columns = COLUMNS.astype(jnp.uint32)
        bricks = jnp.zeros(SIZE, jnp.uint32)
        for row in range(NUM_BRICK_ROWS):
            is_there = (state.bricks >> (row * SIZE + columns)) & 1
            bricks |= is_there << (FIRST_BRICK_ROW + row)
        return cells(
            [
                column_with(state.paddle_x, jnp.uint32(1 << BOTTOM)),
                column_with(state.ball_x, bit(state.ball_y)),
                column_with(state.trail_x, bit(state.trail_y)),
                bricks,
            ]
        )
