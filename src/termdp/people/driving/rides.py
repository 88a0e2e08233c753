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
from termdp.people.driving.ride import (
    MAX_SEED,
    MAX_STEPS,
    Ride,
    check_seed,
    check_steps,
)
from termdp.render.backseat import draw
from termdp.render.drawing import Drawing

__all__ = [
    "BATCH",
    "MAX_SEED",
    "MAX_STEPS",
    "Replay",
    "Ride",
    "check_seed",
    "crashes",
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
    check_steps(max_steps)
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
    """Play rides again, one after the other; one program serves all of them."""
    for ride in rides:
        yield _cut(ride, _played(ride))


def _played(ride: Ride) -> Any:
    """What the game does with a ride's actions, and a little beyond them."""
    first_seen, state = _beginning()
    states = [jax.tree.map(lambda x: np.asarray(x)[None], state)]
    parts = []
    for first in range(0, len(ride), _SHORTEST):
        actions = np.zeros(_SHORTEST, np.int32)
        part = ride.actions[first : first + _SHORTEST]
        actions[: len(part)] = part
        state, (after, *rest) = _replay(jnp.int32(ride.seed), first, state, actions)
        states.append(jax.tree.map(np.asarray, after))
        parts.append(jax.tree.map(np.asarray, tuple(rest)))
    seen, *others = (_joined(part) for part in zip(*parts, strict=True))
    observations = np.concatenate([np.asarray(first_seen)[None], seen])
    return _joined(states), observations, *others


def _joined(trees: Iterable[Any]) -> Any:
    return jax.tree.map(lambda *parts: np.concatenate(parts), *trees)


def crashes(rides: Sequence[Ride]) -> list[bool]:
    """Whether each ride ends in a crash; refuses one that crashes before its end.

    Many rides are played at once and nothing is kept of them: fit for whole files.
    """
    found = []
    for first in range(0, len(rides), BATCH):
        found += _crashes_together(rides[first : first + BATCH])
    return found


def _crashes_together(rides: Sequence[Ride]) -> list[bool]:
    seeds = np.zeros(BATCH, np.int32)
    seeds[: len(rides)] = [ride.seed for ride in rides]
    state = jax.tree.map(lambda x: jnp.repeat(x[None], BATCH, axis=0), _beginning()[1])
    found = [False] * len(rides)
    for first in range(0, max(map(len, rides)), _SHORTEST):
        actions = np.zeros((BATCH, _SHORTEST), np.int32)
        for row, ride in enumerate(rides):
            part = ride.actions[first : first + _SHORTEST]
            actions[row, : len(part)] = part
        state, crashed = _crashed(seeds, first, state, actions)
        for row, ride in enumerate(rides):
            mine = np.asarray(crashed)[row, : max(0, len(ride) - first)]
            last = len(ride) - 1 - first
            _check_goes_on(ride, mine[: max(0, last)], first)
            found[row] |= 0 <= last < len(mine) and bool(mine[last])
    return found


@cache
def _beginning() -> tuple[jax.Array, BackseatState]:
    """Every ride begins alike: what is to be seen, and the state."""
    return game().reset_env(jax.random.key(0), game().default_params)


def _check_goes_on(ride: Ride, crashed: np.ndarray, first: int = 0) -> None:
    """A ride must not crash before its last action."""
    if crashed.any():
        raise ValueError(
            f"expected a ride that goes on to its last action, but it crashes at step "
            f"{first + int(np.argmax(crashed))} of {len(ride)}: its seed or actions are "
            "wrong"
        )


def _cut(ride: Ride, played: Any) -> Replay:
    """Cut off what was played past the ride's end; check that it did not end earlier."""
    states, observations, rewards, crashed, info = played
    num = len(ride)
    _check_goes_on(ride, crashed[: num - 1])
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


def _advance(seed: jax.Array, state: Any, row: Any) -> Any:
    """One step: the state after it, and all that is to be seen of it."""
    step, action = row
    observation, state, reward, crashed, info = game().step_env(
        step_key(seed, step), state, action, game().default_params
    )
    return state, (state, observation, reward, crashed, info)


@jax.jit
def _replay(seed: jax.Array, first: Any, state: Any, actions: jax.Array) -> Any:
    """Some steps from a state: the last state, and what there was in each step."""
    rows = (first + jnp.arange(len(actions)), actions)
    return jax.lax.scan(partial(_advance, seed), state, rows)


@jax.jit
def _crashed(seeds: jax.Array, first: Any, states: Any, actions: jax.Array) -> Any:
    """Some steps of many rides: the last states, and crashes `[B, steps]`."""

    def one(seed: jax.Array, state: Any, actions: jax.Array) -> Any:
        rows = (first + jnp.arange(len(actions)), actions)

        def advance(state: Any, row: Any) -> Any:
            state, (_, _, _, crashed, _) = _advance(seed, state, row)
            return state, crashed

        return jax.lax.scan(advance, state, rows)

    return jax.vmap(one)(seeds, states, actions)


@jax.jit
def _frames(state: Any, action: Any, seed: Any, step: Any) -> Any:
    env = game()
    draws = env.sample_draws(step_key(seed, step))
    return env.frames(state, action, draws, env.default_params)
