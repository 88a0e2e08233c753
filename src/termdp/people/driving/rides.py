"""Record and replay rides, bit for bit.

Nobody watches while a ride is recorded; people stop it afterwards. All that is random in
the game comes from the seed, so seed and actions are the whole ride. The road of a seed
(`termdp.people.driving.track`) does not depend on who drives on it.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from termdp.envs.backseat import BackseatDriver, BackseatState
from termdp.people.driving.drivers import Driver, DriverModel
from termdp.people.driving.ride import MAX_SEED, MAX_STEPS, Ride, check_seed
from termdp.render.backseat import draw
from termdp.render.drawing import Drawing

__all__ = [
    "BATCH",
    "MAX_SEED",
    "MAX_STEPS",
    "Replay",
    "Ride",
    "check_seed",
    "driver_key",
    "game",
    "padded",
    "record",
    "record_many",
    "record_rides",
    "record_with_ends",
    "replay",
    "replay_many",
    "step_key",
]

# Rides are simulated this many at a time.
BATCH = 64
# Simulated lengths are this many steps times a power of two: few programs are compiled.
_SHORTEST = 256


@dataclasses.dataclass(frozen=True)
class Replay:
    """A ride played again, step by step; T steps.

    Attributes:
        ride: what was played.
        observations: `[T, rows, lanes, 12] bool`, what the driver saw before each.
        final_observation: what it would have seen next.
        rewards: `[T] float32`.
        game_over: `[T] bool`, true at the last step of a crash.
        truncated: `[T] bool`, true at the last step of any other ride.
        coins: `[T] int32`, coins collected in each step.
        overtaken: `[T] int32`, cars passed in each step.
        states: the game's states before each step and after the last, `[T + 1]`.
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
        """Steps."""
        return len(self.rewards)

    @property
    def total(self) -> float:
        """The return, summed in double precision."""
        return float(np.sum(self.rewards, dtype=np.float64))

    def drawings(self, step: int) -> list[Drawing]:
        """One drawing for each of a step's 4 frames."""
        state = jax.tree.map(lambda x: x[step], self.states)
        action = jnp.int32(self.ride.actions[step])
        frames = jax.tree.map(np.asarray, _frames(state, action, self.ride.seed, step))
        return [
            draw(jax.tree.map(lambda x, i=i: x[i], frames), game().road)
            for i in range(4)
        ]


@cache
def game() -> BackseatDriver:
    """The game that rides are played on."""
    return BackseatDriver()


def step_key(seed: Any, step: Any) -> jax.Array:
    """All that is random on the road in one step."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 0), step)


def driver_key(seed: Any, step: Any) -> jax.Array:
    """All that is random in the driver in one step."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 1), step)


def record(driver: Driver, seed: int, max_steps: int) -> Ride:
    """Let a driver drive from a seed until it crashes or the time is up."""
    (ride,) = record_many(driver, [seed], max_steps)
    return ride


def record_many(driver: Driver, seeds: Sequence[int], max_steps: int) -> list[Ride]:
    """One ride per seed, simulated in batches by one compiled program.

    The rides are the same as those recorded one by one: batches change only the speed.
    """
    return [ride for ride, _ in record_with_ends(driver, seeds, max_steps)]


def record_with_ends(
    driver: Driver, seeds: Sequence[int], max_steps: int
) -> list[tuple[Ride, bool]]:
    """As `record_many`, each ride with whether it ends in a crash."""
    for seed in seeds:
        check_seed(seed)
    if not 1 <= max_steps <= MAX_STEPS:
        raise ValueError(f"expected 1 to {MAX_STEPS} steps a ride, got {max_steps}")
    rides = []
    length = padded(max_steps)
    for first in range(0, len(seeds), BATCH):
        chunk = list(seeds[first : first + BATCH])
        filled = chunk + [chunk[-1]] * (BATCH - len(chunk))
        played = _drive(driver.model, driver.params, jnp.asarray(filled), length)
        actions, crashes = jax.tree.map(np.asarray, played)
        for row, seed in enumerate(chunk):
            crashed = crashes[row, :max_steps]
            end = int(np.argmax(crashed)) + 1 if crashed.any() else max_steps
            ride = Ride(int(seed), driver.name, actions[row, :end])
            rides.append((ride, bool(crashed.any())))
    return rides


def record_rides(
    drivers: Sequence[Driver],
    count: int,
    max_steps: int,
    seed: int = 0,
    on_progress: Callable[[int], None] = lambda rides: None,
) -> tuple[list[Ride], list[bool]]:
    """`count` rides by drivers in turn, and whether each ends in a crash.

    Every ride has a road of its own.

    Args:
        drivers: who drives.
        count: rides in all.
        max_steps: when a ride is cut off.
        seed: decides on the roads.
        on_progress: called after each driver with the number of rides so far.
    """
    rng = np.random.default_rng(seed)
    roads = rng.choice(MAX_SEED, size=count, replace=False)
    found: dict[int, tuple[Ride, bool]] = {}
    for index, driver in enumerate(drivers):
        turns = range(index, count, len(drivers))
        mine = [int(roads[turn]) for turn in turns]
        if mine:
            driven = record_with_ends(driver, mine, max_steps)
            found.update(zip(turns, driven, strict=True))
            on_progress(len(found))
    in_turn = [found[turn] for turn in range(count)]
    return [ride for ride, _ in in_turn], [crash for _, crash in in_turn]


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
    """Cut off what was played past the ride's end; check that it did not end earlier."""
    states, observations, rewards, crashed, info = played
    num = len(ride)
    if crashed[: num - 1].any():
        raise ValueError(
            f"expected a ride that goes on to its last action, but it crashes at "
            f"step {int(np.argmax(crashed))} of {num}: its seed or actions are wrong"
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


@partial(jax.jit, static_argnames=("model", "length"))
def _drive(model: DriverModel, params: Any, seeds: jax.Array, length: int) -> Any:
    """Actions and crashes, `[B, length]`; ignore what follows a crash."""
    env, env_params = game(), game().default_params

    def one(seed: jax.Array) -> Any:
        observation, state = env.reset_env(jax.random.key(0), env_params)

        def advance(carry: Any, step: jax.Array) -> Any:
            observation, state, memory = carry
            key = driver_key(seed, step)
            action, memory = model.act(params, key, observation, memory)
            observation, state, _, crashed, _ = env.step_env(
                step_key(seed, step), state, action, env_params
            )
            return (observation, state, memory), (action.astype(jnp.uint8), crashed)

        carry = (observation, state, model.start(params))
        return jax.lax.scan(advance, carry, jnp.arange(length))[1]

    return jax.vmap(one)(seeds)


@jax.jit
def _replay(seed: jax.Array, actions: jax.Array) -> Any:
    env, params = game(), game().default_params
    observation, state = env.reset_env(jax.random.key(0), params)

    def advance(state: Any, row: Any) -> Any:
        step, action = row
        observation, state, reward, crashed, info = env.step_env(
            step_key(seed, step), state, action, params
        )
        return state, (state, observation, reward, crashed, info)

    rows = (jnp.arange(len(actions)), actions)
    _, (states, observations, *rest) = jax.lax.scan(advance, state, rows)
    states = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), state, states)
    observations = jnp.concatenate([observation[None], observations])
    return states, observations, *rest


@jax.jit
def _frames(state: Any, action: Any, seed: Any, step: Any) -> Any:
    env = game()
    draws = env.sample_draws(step_key(seed, step))
    return env.frames(state, action, draws, env.default_params)
