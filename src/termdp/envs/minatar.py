"""What the four MinAtar games share: actions, sticky actions, boards made of words.

The games play exactly as `minatar` 1.0.15 does (K. Young, T. Tian, arXiv:1903.03176);
`tests/contracts` compares them step by step. The code is our own, in JAX. Two ideas
make it fast:

* A board is a few integers. Column x of a channel is a word whose bit y says whether
  cell (y, x) is occupied, so whole columns move, collide and are counted at once.
* Random words are drawn once per step, and `sample_draws` gives them their meaning.
  All the rules are in `advance`, a pure function of those draws.

Sticky actions: with probability `sticky_prob` the action executed last is executed
again instead of the one chosen. The last action survives the end of an episode; it is
"nothing" after an explicit reset.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from termdp.envs import spaces
from termdp.envs.base import EnvParams, EnvState, Game

SIZE = 10
ACTION_NAMES = ("none", "left", "up", "right", "down", "fire")
NONE, LEFT, UP, RIGHT, DOWN, FIRE = range(6)

COLUMNS = jnp.arange(SIZE, dtype=jnp.int32)
"""The column numbers 0 to 9, to compare a position with all columns at once."""

_BITS_PER_ACTION = 3


@struct.dataclass
class MinAtarParams(EnvParams):
    """Parameters of a game; they may change without a new compilation."""

    max_steps_in_episode: int = 10_000
    sticky_prob: float = 0.1


@struct.dataclass
class RampingParams(MinAtarParams):
    """Parameters of a game that can become harder over time."""

    ramping: bool = True


@struct.dataclass
class MinAtarState(EnvState):
    """What the state of every game holds."""

    time: jax.Array
    last_action: jax.Array


class Outcome(struct.PyTreeNode):
    """The result of one action by the rules of a game."""

    state: Any
    reward: jax.Array
    game_over: jax.Array


class MinAtarGame(Game, ABC):
    """A MinAtar game.

    Subclasses write the rules: `sample_draws`, `first_state`, `play` and `board`.

    Args:
        use_minimal_action_set: offer only the actions that matter in this game; else
            all six of `ACTION_NAMES`.
    """

    channels: ClassVar[tuple[str, ...]]
    minimal_actions: ClassVar[tuple[int, ...]]

    def __init__(self, use_minimal_action_set: bool = True):
        super().__init__()
        everything = tuple(range(len(ACTION_NAMES)))
        self.action_set = self.minimal_actions if use_minimal_action_set else everything

    @property
    def default_params(self) -> MinAtarParams:
        """The original's defaults, and 10,000 steps as the time limit."""
        return RampingParams()

    @property
    def num_actions(self) -> int:
        """How many actions the agent can choose from."""
        return len(self.action_set)

    @property
    def action_names(self) -> tuple[str, ...]:
        """What each action does, in order."""
        return tuple(ACTION_NAMES[action] for action in self.action_set)

    def action_space(self, params: Any = None) -> spaces.Discrete:
        """An index into the action set."""
        del params
        return spaces.Discrete(self.num_actions)

    def observation_space(self, params: Any = None) -> spaces.Box:
        """A binary board with one channel per kind of thing."""
        del params
        return spaces.Box(False, True, (SIZE, SIZE, len(self.channels)), jnp.bool_)

    @abstractmethod
    def sample_draws(self, key: jax.Array) -> Any:
        """Draw everything that is random in one step."""

    @abstractmethod
    def first_state(self, key: jax.Array) -> Any:
        """The state an episode begins in."""

    @abstractmethod
    def play(self, state: Any, move: jax.Array, draws: Any, params: Any) -> Outcome:
        """The rules: what the executed `move` (of `ACTION_NAMES`) leads to."""

    @abstractmethod
    def board(self, state: Any) -> jax.Array:
        """The board of a state, `bool [10, 10, channels]`."""

    def get_obs(
        self, state: Any, params: Any = None, key: jax.Array | None = None
    ) -> jax.Array:
        """The observation: the whole board."""
        del params, key
        return self.board(settled(state))

    def split_key(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The same key twice: step and reset read different words of one draw."""
        return key, key

    def reset_env(self, key: jax.Array, params: Any) -> tuple[jax.Array, Any]:
        """First observation and state of an episode that nothing preceded."""
        del params
        state = self.first_state(key)
        return self.get_obs(state), state

    def next_episode(
        self, key: jax.Array, final_state: Any, params: Any
    ) -> tuple[jax.Array, Any]:
        """As after a reset, but the last action is still there to be repeated."""
        obs, state = self.reset_env(key, params)
        return obs, state.replace(last_action=final_state.last_action)

    def next_obs(
        self, ended: jax.Array, reset_obs: Any, final_obs: Any, state: Any
    ) -> jax.Array:
        """Draw the board of the state: one pass over its cells instead of three."""
        del ended, reset_obs, final_obs
        return self.get_obs(state)

    def step_env(
        self, key: jax.Array, state: Any, action: jax.Array, params: Any
    ) -> tuple[jax.Array, Any, jax.Array, jax.Array, dict[str, Any]]:
        """One step without automatic reset."""
        return self.advance(state, action, self.sample_draws(key), params)

    def advance(
        self, state: Any, action: jax.Array, draws: Any, params: Any
    ) -> tuple[jax.Array, Any, jax.Array, jax.Array, dict[str, Any]]:
        """One step with given draws: sticky action, then the game's rules."""
        is_sticky = draws.sticky < params.sticky_prob
        move = jnp.where(is_sticky, state.last_action, self._executed(action))
        outcome = self.play(state, move, draws, params)
        state = outcome.state.replace(time=state.time + 1, last_action=move)
        reward = outcome.reward.astype(jnp.float32)
        return self.get_obs(state), state, reward, outcome.game_over, {}

    def _executed(self, action: jax.Array) -> jax.Array:
        """The action of `ACTION_NAMES` behind an index into the action set."""
        action = jnp.asarray(action, jnp.int32)
        if self.action_set == tuple(range(self.num_actions)):
            return action
        # A table in an integer: gathers are slow in batches on the CPU.
        table = sum(a << (_BITS_PER_ACTION * i) for i, a in enumerate(self.action_set))
        return (table >> (_BITS_PER_ACTION * action)) & 7


def random_words(key: jax.Array, num_words: int) -> list[jax.Array]:
    """`num_words` independent random 32-bit words, drawn at once."""
    words = jax.random.bits(key, (num_words,), jnp.uint32)
    return [words[i] for i in range(num_words)]


def uniform(word: jax.Array) -> jax.Array:
    """A random word as a number in [0, 1), on a grid of 2^-24."""
    return (word >> 8).astype(jnp.float32) * 2.0**-24


def one_third(word: jax.Array) -> jax.Array:
    """A random word as an event of probability 1/3."""
    return word < round(2**32 / 3)


def lowest_bit(word: jax.Array) -> jax.Array:
    """The word with only its lowest bit set; 0 if there is none."""
    return word & (~word + 1)


def highest_bit(word: jax.Array) -> jax.Array:
    """The word with only its highest bit set; 0 if there is none."""
    top = jnp.uint32(1 << 31) >> jnp.minimum(jax.lax.clz(word), 31)
    return word & top


def bit(position: jax.Array) -> jax.Array:
    """The word with only this bit; none if the position is negative or above 31."""
    return jnp.uint32(1) << position.astype(jnp.uint32)


def column_with(x: jax.Array, word: jax.Array) -> jax.Array:
    """`uint32 [10]`: this word in column x, nothing elsewhere."""
    return jnp.where(x == COLUMNS, word, jnp.uint32(0))


def column_at(columns: jax.Array, x: jax.Array) -> jax.Array:
    """The word of column x."""
    return jnp.sum(column_with(x, columns), dtype=jnp.uint32)


def shift_right(columns: jax.Array) -> jax.Array:
    """Every column moves one to the right, the last one off the board."""
    return jnp.pad(columns[:-1], (1, 0))


def shift_left(columns: jax.Array) -> jax.Array:
    """Every column moves one to the left, the first one off the board."""
    return jnp.pad(columns[1:], (0, 1))


def cells(columns: list[jax.Array]) -> jax.Array:
    """The board `bool [10, 10, channels]` of one `uint32 [10]` per channel."""
    rows = jnp.arange(SIZE, dtype=jnp.uint32)[:, None]
    boards = [((column >> rows) & 1).astype(jnp.bool_) for column in columns]
    return jnp.stack(boards, axis=-1)


def settled(state: Any) -> Any:
    """The same state, computed once instead of once per cell of its board.

    XLA on the CPU fuses a game's rules into the drawing of its board and then repeats
    them for each of up to 1000 cells; `optimization_barrier` does not prevent that. It
    never fuses a sum into what follows, so this adds zero.
    """

    def add_nothing(array: jax.Array) -> jax.Array:
        array = jnp.asarray(array)
        if array.dtype == jnp.bool_:
            return add_nothing(array.astype(jnp.uint32)) != 0
        is_first = (jnp.arange(2) == 0).reshape(2, *[1] * array.ndim)
        terms = jnp.where(is_first, array, jnp.zeros((), array.dtype))
        return jnp.sum(terms, axis=0, dtype=array.dtype)

    return jax.tree.map(add_nothing, state)
