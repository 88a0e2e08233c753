"""Environments whose answers are known: a wrong formula gives a wrong number."""

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments import environment, spaces

# Where the agent of `Rooms` may be. Every episode begins in a random room.
VALUE, DISCOUNT, DISCOUNT_LATER, SIGN, ACTION, LIMIT = range(6)
BEGINNINGS = (VALUE, DISCOUNT, SIGN, ACTION, LIMIT)


@struct.dataclass
class RoomState:
    room: jax.Array
    sign: jax.Array
    time: jax.Array


@struct.dataclass
class NoLimit:
    max_steps_in_episode: int = 10**6


class Rooms(environment.Environment):
    """Five probes in one environment; the observation tells the room.

    VALUE: one step, reward 1. DISCOUNT: two steps, reward 1 at the second. SIGN: one
    step, the reward is the sign that is seen. ACTION: one step, reward 1 for action 1.
    LIMIT: reward 1 and the time is up after one step, although the game goes on.
    """

    @property
    def default_params(self):
        return NoLimit()

    def reset_env(self, key, params):
        key_room, key_sign = jax.random.split(key)
        room = jax.random.choice(key_room, jnp.array(BEGINNINGS))
        sign = jax.random.choice(key_sign, jnp.array([-1.0, 1.0]))
        state = RoomState(room, sign, jnp.int32(0))
        return self.get_obs(state), state

    def step_env(self, key, state, action, params):
        room = state.room
        reward = jnp.select(
            [room == DISCOUNT, room == SIGN, room == ACTION],
            [0.0, state.sign, (action == 1).astype(jnp.float32)],
            1.0,
        )
        game_over = (room != DISCOUNT) & (room != LIMIT)
        room = jnp.where(room == DISCOUNT, DISCOUNT_LATER, room)
        state = RoomState(room, state.sign, state.time + 1)
        return self.get_obs(state), state, reward, game_over, {}

    def is_truncated(self, state, params):
        return (state.room == LIMIT) & (state.time >= 1)

    def get_obs(self, state, params=None, key=None):
        sign = jnp.where(state.room == SIGN, state.sign, 0.0)
        return jnp.append(jax.nn.one_hot(state.room, 6), sign)

    @property
    def num_actions(self):
        return 2

    def action_space(self, params):
        return spaces.Discrete(2)

    def observation_space(self, params):
        return spaces.Box(-1.0, 1.0, (7,), jnp.float32)


@struct.dataclass
class TimeState:
    time: jax.Array


class Endless(environment.Environment):
    """One state, reward 1 per step, no end."""

    @property
    def default_params(self):
        return NoLimit()

    def reset_env(self, key, params):
        state = TimeState(jnp.int32(0))
        return self.get_obs(state), state

    def step_env(self, key, state, action, params):
        state = TimeState(state.time + 1)
        return self.get_obs(state), state, jnp.float32(1), jnp.array(False), {}

    def get_obs(self, state, params=None, key=None):
        return jnp.ones(1)

    @property
    def num_actions(self):
        return 2

    def action_space(self, params):
        return spaces.Discrete(2)

    def observation_space(self, params):
        return spaces.Box(0.0, 1.0, (1,), jnp.float32)


class Clocked(Endless):
    """As above, but the time is up after four steps, which the agent does not see."""

    def is_truncated(self, state, params):
        return state.time >= 4


class Broken(Endless):
    """Observes NaN from the 20th step of an episode on."""

    def get_obs(self, state, params=None, key=None):
        return jnp.where(state.time < 20, jnp.ones(1), jnp.nan)


class BadReward(Endless):
    """Rewards are NaN from the second step of an episode on."""

    def step_env(self, key, state, action, params):
        observation, state, reward, game_over, info = super().step_env(
            key, state, action, params
        )
        reward = jnp.where(state.time < 2, reward, jnp.nan)
        return observation, state, reward, game_over, info


def no_cost(observation, action):
    """Nothing costs anything: stops come from the bias alone."""
    return 0.0


class Chain(environment.Environment):
    """Five states in a row, left or right; begins anywhere.

    The rightmost state pays much but costs the observer's patience. The leftmost pays
    little and is harmless. Nothing happens in between.
    """

    rewards = (0.3, 0.0, 0.0, 0.0, 1.0)
    costs = (0.0, 0.0, 0.0, 0.0, 1.5)

    @property
    def default_params(self):
        return NoLimit(max_steps_in_episode=200)

    def reset_env(self, key, params):
        room = jax.random.randint(key, (), 0, 5)
        state = RoomState(room, jnp.float32(0), jnp.int32(0))
        return self.get_obs(state), state

    def step_env(self, key, state, action, params):
        reward = jnp.array(self.rewards)[state.room]
        room = jnp.clip(state.room + 2 * action - 1, 0, 4)
        state = RoomState(room, state.sign, state.time + 1)
        return self.get_obs(state), state, reward, jnp.array(False), {}

    def get_obs(self, state, params=None, key=None):
        return jax.nn.one_hot(state.room, 5)

    @property
    def num_actions(self):
        return 2

    def action_space(self, params):
        return spaces.Discrete(2)

    def observation_space(self, params):
        return spaces.Box(0.0, 1.0, (5,), jnp.float32)

    @classmethod
    def cost(cls, observation, action):
        """The observer's cost."""
        return jnp.dot(jnp.array(cls.costs), observation)
