"""Rides: who drove, from which seed, with which actions; replayed bit for bit.

Nobody watches while a ride is recorded: people are the observer, afterwards. All that is
random in the game comes from the seed alone, so seed and actions are the whole ride, and
the road of a seed (`termdp.people.driving.track`) is the same whoever drives on it.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from termdp.envs.backseat import BackseatDriver, BackseatState
from termdp.people.driving.drivers import Driver, Program
from termdp.people.driving.ride import MAX_DECISIONS, MAX_SEED, Ride, check_seed
from termdp.render.backseat import draw
from termdp.render.drawing import Drawing

__all__ = [
    "BATCH",
    "MAX_DECISIONS",
    "MAX_SEED",
    "Replay",
    "Ride",
    "check_seed",
    "driver_key",
    "game",
    "padded",
    "record",
    "record_many",
    "record_with_ends",
    "replay",
    "replay_many",
    "step_key",
]

# Rides are simulated this many at a time, and in lengths that are this many decisions or
# a power of two times as many: few programs are compiled whatever is asked for.
BATCH = 64
_SHORTEST = 256


@dataclasses.dataclass(frozen=True)
class Replay:
    """A ride played again, decision by decision; T decisions.

    Attributes:
        ride: what was played.
        observations: `[T, rows, lanes, 12] bool`, what the driver saw before each.
        final_observation: what it would have seen next.
        rewards: `[T] float32`.
        game_over: `[T] bool`, true at the last decision of a crash.
        truncated: `[T] bool`, true at the last decision of any other ride.
        coins: `[T] int32`, coins collected in each decision.
        overtaken: `[T] int32`, cars passed in each decision.
        states: the game's states before each decision and after the last, `[T + 1]`.
    """

    ride: Ride
    observations: np.ndarray
    final_observation: np.ndarray
    rewards: np.ndarray
    game_over: np.ndarray
    truncated: np.ndarray
    coins: np.ndarray
    overtaken: np.ndarray
    states: BackseatState

    def __len__(self) -> int:
        """Decisions."""
        return len(self.rewards)

    @property
    def total(self) -> float:
        """The return, summed in double precision."""
        return float(np.sum(self.rewards, dtype=np.float64))

    def drawings(self, decision: int) -> list[Drawing]:
        """One drawing for each of a decision's 4 frames."""
        state = jax.tree.map(lambda x: x[decision], self.states)
        action = jnp.int32(self.ride.actions[decision])
        frames = jax.tree.map(
            np.asarray, _frames(state, action, self.ride.seed, decision)
        )
        return [
            draw(jax.tree.map(lambda x, i=i: x[i], frames), game().road)
            for i in range(4)
        ]


@cache
def game() -> BackseatDriver:
    """The game that rides are played on."""
    return BackseatDriver()


def step_key(seed: Any, decision: Any) -> jax.Array:
    """All that is random on the road in one decision."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 0), decision)


def driver_key(seed: Any, decision: Any) -> jax.Array:
    """All that is random in the driver in one decision."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 1), decision)


def record(driver: Driver, seed: int, max_decisions: int) -> Ride:
    """Let a driver drive from a seed until it crashes or the time is up."""
    (ride,) = record_many(driver, [seed], max_decisions)
    return ride


def record_many(driver: Driver, seeds: Sequence[int], max_decisions: int) -> list[Ride]:
    """One ride per seed, simulated in batches by one compiled program.

    The rides are the same as those recorded one by one: batches change only the speed.
    """
    return [ride for ride, _ in record_with_ends(driver, seeds, max_decisions)]


def record_with_ends(
    driver: Driver, seeds: Sequence[int], max_decisions: int
) -> list[tuple[Ride, bool]]:
    """As `record_many`, each ride with whether it ends in a crash."""
    for seed in seeds:
        check_seed(seed)
    if not 1 <= max_decisions <= MAX_DECISIONS:
        raise ValueError(
            f"expected 1 to {MAX_DECISIONS} decisions a ride, got {max_decisions}"
        )
    rides = []
    length = padded(max_decisions)
    for first in range(0, len(seeds), BATCH):
        chunk = list(seeds[first : first + BATCH])
        filled = chunk + [chunk[-1]] * (BATCH - len(chunk))
        played = _drive(driver.program, driver.params, jnp.asarray(filled), length)
        actions, crashes = jax.tree.map(np.asarray, played)
        for row, seed in enumerate(chunk):
            crashed = crashes[row, :max_decisions]
            end = int(np.argmax(crashed)) + 1 if crashed.any() else max_decisions
            ride = Ride(int(seed), driver.name, actions[row, :end])
            rides.append((ride, bool(crashed.any())))
    return rides


def replay(ride: Ride) -> Replay:
    """Play a ride again, to the same bits."""
    (played,) = replay_many([ride])
    return played


def replay_many(rides: Iterable[Ride]) -> Iterator[Replay]:
    """Play rides again, one after the other; the same programs serve all of them."""
    for ride in rides:
        actions = np.zeros(padded(len(ride)), np.int32)
        actions[: len(ride)] = ride.actions
        played = _replay(jnp.int32(ride.seed), jnp.asarray(actions))
        yield _cut(ride, jax.tree.map(np.asarray, played))


def _cut(ride: Ride, played: Any) -> Replay:
    """Forget what was played past the ride's end, and check that it ends there."""
    states, observations, rewards, crashed, info = played
    num = len(ride)
    if crashed[: num - 1].any():
        raise ValueError(
            f"expected a ride that goes on to its last action, but it crashes at "
            f"decision {int(np.argmax(crashed))} of {num}: its seed or actions are wrong"
        )
    last = np.arange(num) == num - 1
    return Replay(
        ride=ride,
        observations=observations[:num],
        final_observation=observations[num],
        rewards=rewards[:num],
        game_over=crashed[:num],
        truncated=last & ~crashed[:num],
        coins=info["coins_collected"][:num],
        overtaken=info["cars_overtaken"][:num],
        states=jax.tree.map(lambda x: x[: num + 1], states),
    )


def padded(length: int) -> int:
    """The length that is simulated for a ride of this length."""
    simulated = _SHORTEST
    while simulated < length:
        simulated *= 2
    return simulated


@partial(jax.jit, static_argnames=("program", "length"))
def _drive(program: Program, params: Any, seeds: jax.Array, length: int) -> Any:
    """Actions and crashes, `[B, length]`; what follows a crash means nothing."""
    env, env_params = game(), game().default_params

    def one(seed: jax.Array) -> Any:
        observation, state = env.reset_env(jax.random.key(0), env_params)

        def step(carry: Any, decision: jax.Array) -> Any:
            observation, state, memory = carry
            key = driver_key(seed, decision)
            action, memory = program.act(params, key, observation, memory)
            observation, state, _, crashed, _ = env.step_env(
                step_key(seed, decision), state, action, env_params
            )
            return (observation, state, memory), (action.astype(jnp.uint8), crashed)

        carry = (observation, state, program.start(params))
        return jax.lax.scan(step, carry, jnp.arange(length))[1]

    return jax.vmap(one)(seeds)


@jax.jit
def _replay(seed: jax.Array, actions: jax.Array) -> Any:
    env, params = game(), game().default_params
    observation, state = env.reset_env(jax.random.key(0), params)

    def step(state: Any, row: Any) -> Any:
        decision, action = row
        observation, state, reward, crashed, info = env.step_env(
            step_key(seed, decision), state, action, params
        )
        return state, (state, observation, reward, crashed, info)

    rows = (jnp.arange(len(actions)), actions)
    _, (states, observations, *rest) = jax.lax.scan(step, state, rows)
    states = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), state, states)
    observations = jnp.concatenate([observation[None], observations])
    return states, observations, *rest


@jax.jit
def _frames(state: Any, action: Any, seed: Any, decision: Any) -> Any:
    env = game()
    draws = env.sample_draws(step_key(seed, decision))
    return env.frames(state, action, draws, env.default_params)
