"""Notifier: when to send a notification to a user who may switch them off for good.

The smallest game in which the accumulated cost decides everything: two actions, and an
observation of three numbers. These are all the rules:

- **The user's interest** wanders between 0 and 1: ρ(`swing`·z), where z is a normal
  process, z′ = `memory`·z + √(1 − memory²)·noise.
- **Actions**: keep quiet, or send. The probability that a notification is opened is the
  user's interest. The reward is 1 if it is opened, and 0 if not.
- **Observation**: float32 `[interest, sent, opened]`, the last two of the step before.

The game ends only at its time limit. Switching notifications off is the observer's stop,
and annoyance is the observer's cost (`NotifierNuisanceCost`). The observation does not
show how annoyed the user is; only the accumulated cost does. `info` holds `opened`.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from termdp.envs import spaces
from termdp.envs.base import EnvParams, EnvState, Game

QUIET, SEND = 0, 1
SHOWN_STEPS = 40


@struct.dataclass
class NotifierState(EnvState):
    """A user, and what was sent.

    Attributes:
        time: steps made.
        mood: z, which gives the interest.
        sent: whether the last action was to send.
        opened: whether that was opened.
        history: `[SHOWN_STEPS]`, for pictures: 2 opened, 1 sent, 0 quiet, newest last.
    """

    time: jax.Array
    mood: jax.Array
    sent: jax.Array
    opened: jax.Array
    history: jax.Array


@struct.dataclass
class NotifierParams(EnvParams):
    """Numbers that may change without recompiling; the module says what they do."""

    max_steps_in_episode: int = 200
    swing: float = 2.0
    memory: float = 0.8


@struct.dataclass
class NotifierDraws:
    """What is random in one step: a uniform for the choice, a normal for the mood."""

    choice: jax.Array
    noise: jax.Array


class Notifier(Game):
    """The simulator; see the module for the rules."""

    @property
    def default_params(self) -> NotifierParams:
        """The default user."""
        return NotifierParams()

    def sample_draws(self, key: jax.Array) -> NotifierDraws:
        """Draw everything that is random in one step."""
        key_choice, key_mood = jax.random.split(key)
        return NotifierDraws(
            choice=jax.random.uniform(key_choice), noise=jax.random.normal(key_mood)
        )

    def advance(
        self,
        state: NotifierState,
        action: Any,
        draws: NotifierDraws,
        params: NotifierParams,
    ) -> tuple[NotifierState, jax.Array, jax.Array, dict[str, jax.Array]]:
        """One step with given draws: state, reward, game_over, info."""
        sent = jnp.asarray(action) == SEND
        opened = sent & (draws.choice < interest(state, params))
        fresh = jnp.sqrt(1.0 - params.memory**2) * draws.noise
        seen = sent.astype(jnp.int8) + opened.astype(jnp.int8)
        next_state = NotifierState(
            time=state.time + 1,
            mood=params.memory * state.mood + fresh,
            sent=sent,
            opened=opened,
            history=jnp.roll(state.history, -1).at[-1].set(seen),
        )
        return (
            next_state,
            opened.astype(jnp.float32),
            jnp.bool_(False),
            {"opened": opened},
        )

    def reset_env(
        self, key: jax.Array, params: NotifierParams
    ) -> tuple[jax.Array, NotifierState]:
        """A new user who has been sent nothing yet."""
        state = NotifierState(
            time=jnp.int32(0),
            mood=jax.random.normal(key),
            sent=jnp.bool_(False),
            opened=jnp.bool_(False),
            history=jnp.zeros(SHOWN_STEPS, jnp.int8),
        )
        return self.get_obs(state, params), state

    def step_env(
        self,
        key: jax.Array,
        state: NotifierState,
        action: Any,
        params: NotifierParams,
    ) -> tuple[jax.Array, NotifierState, jax.Array, jax.Array, dict[str, jax.Array]]:
        """One step: observation, state, reward, game_over (never), info."""
        draws = self.sample_draws(key)
        next_state, reward, game_over, info = self.advance(state, action, draws, params)
        return self.get_obs(next_state, params), next_state, reward, game_over, info

    def get_obs(
        self, state: NotifierState, params: Any = None, key: Any = None
    ) -> jax.Array:
        """Interest, and whether the last notification was sent and opened."""
        del key
        params = self.default_params if params is None else params
        parts = [interest(state, params), state.sent, state.opened]
        return jnp.stack([jnp.asarray(part, jnp.float32) for part in parts])

    @property
    def name(self) -> str:
        """The game's name."""
        return "Notifier"

    @property
    def num_actions(self) -> int:
        """Quiet and send."""
        return 2

    def action_space(self, params: Any = None) -> spaces.Discrete:
        """Quiet and send."""
        del params
        return spaces.Discrete(self.num_actions)

    def observation_space(self, params: Any = None) -> spaces.Box:
        """Three numbers from 0 to 1."""
        del params
        return spaces.Box(jnp.zeros(3), jnp.ones(3), (3,), jnp.float32)


def interest(state: NotifierState, params: NotifierParams) -> jax.Array:
    """How likely a notification is to be opened now."""
    return jax.nn.sigmoid(params.swing * state.mood)
