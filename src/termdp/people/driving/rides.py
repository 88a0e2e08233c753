"""Record and replay rides, bit for bit.

No observer watches while a ride is recorded; people stop it afterwards. All that is
random in the game comes from the seed, so environment, seed and actions are the whole
ride. The road of a seed (`termdp.people.driving.track`) does not depend on who
drives on it.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from termdp.people.driving.drivers import Driver, DriverModel
from termdp.people.driving.ride import (
    BACKSEAT,
    MAX_SEED,
    MAX_STEPS,
    ROADS,
    Ride,
    check_seed,
    check_steps,
    studied,
)
from termdp.registry import make
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
        observations: `[T, *shape]`, what the driver saw before each step.
        final_observation: what it would have seen next.
        rewards: `[T] float32`.
        game_over: `[T] bool`, true at the last step of a ride that ends the game.
        truncated: `[T] bool`, true at the last step of any other ride.
        info: what else the game says of each step, by name, `[T]` each; on a road
            `coins_collected` and `cars_overtaken`.
        states: the game's states before each step and after the last, `[T + 1]`.
    """

    ride: Ride
    observations: np.ndarray
    final_observation: np.ndarray
    rewards: np.ndarray
    game_over: np.ndarray
    truncated: np.ndarray
    info: dict[str, np.ndarray]
    states: Any

    def __len__(self) -> int:
        """Steps."""
        return len(self.rewards)

    @property
    def total(self) -> float:
        """The return, summed in double precision."""
        return float(np.sum(self.rewards, dtype=np.float64))

    @property
    def coins(self) -> np.ndarray:
        """Coins collected in each step, on a road."""
        return self.info["coins_collected"]

    @property
    def overtaken(self) -> np.ndarray:
        """Cars passed in each step, on a road."""
        return self.info["cars_overtaken"]

    def drawing(self, step: int) -> Drawing:
        """The picture before a step; for step T, the picture of how the ride ended."""
        seen = self.final_observation
        if step < len(self):
            seen = self.observations[step]
        state = jax.tree.map(lambda x: x[step], self.states)
        entry = studied(self.ride.env)
        drawn = entry.drawer(game(self.ride.env))(state, seen)
        if not isinstance(drawn, Drawing):
            raise ValueError(
                f"expected a renderer that makes a Drawing, got pixels of {entry.id}: "
                "pages draw shapes"
            )
        return drawn


@cache
def game(env: str = BACKSEAT) -> Any:
    """The game that an environment's rides are played in, without its observer."""
    studied(env)
    # Its arrays must be concrete, even if it is first made while a program is compiled.
    with jax.ensure_compile_time_eval():
        found, _ = make(env, observer=False)
    for name in ("reset_env", "step_env"):
        if not hasattr(found, name):
            raise ValueError(
                f"expected a game with {name}, got {env}: see envs/base.py"
            )
    if getattr(found.action_space(found.default_params), "n", None) is None:
        raise ValueError(f"expected a game with a choice of actions, got {env}")
    return found


def step_key(seed: Any, step: Any) -> jax.Array:
    """The random key of the game in one step."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 0), step)


def driver_key(seed: Any, step: Any) -> jax.Array:
    """The random key of the driver in one step."""
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
    """Like `record_many`, and for each ride whether it ends in a crash."""
    for seed in seeds:
        check_seed(seed)
    check_steps(max_steps)
    max_steps = min(
        max_steps, int(game(driver.env).default_params.max_steps_in_episode)
    )
    rides = []
    length = padded(max_steps)
    for first in range(0, len(seeds), BATCH):
        chunk = list(seeds[first : first + BATCH])
        filled = chunk + [chunk[-1]] * (BATCH - len(chunk))
        seeds_now = jnp.asarray(filled)
        played = _drive(driver.model, driver.params, seeds_now, length, driver.env)
        actions, crashes = jax.tree.map(np.asarray, played)
        for row, seed in enumerate(chunk):
            crashed = crashes[row, :max_steps]
            end = int(np.argmax(crashed)) + 1 if crashed.any() else max_steps
            ride = Ride(int(seed), driver.name, actions[row, :end], driver.env)
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
    """Play a ride again, bit for bit."""
    (played,) = replay_many([ride])
    return played


def replay_many(rides: Iterable[Ride]) -> Iterator[Replay]:
    """Play rides again, one after the other; one program serves all of them."""
    for ride in rides:
        yield _cut(ride, _played(ride))


def _played(ride: Ride) -> Any:
    """What the game does with a ride's actions, and a little beyond them."""
    first_seen, state = _beginning(jnp.int32(ride.seed), ride.env)
    states = [jax.tree.map(lambda x: np.asarray(x)[None], state)]
    parts = []
    for first in range(0, len(ride), _SHORTEST):
        actions = np.zeros(_SHORTEST, np.int32)
        part = ride.actions[first : first + _SHORTEST]
        actions[: len(part)] = part
        state, (after, *rest) = _replay(
            jnp.int32(ride.seed), first, state, actions, ride.env
        )
        states.append(jax.tree.map(np.asarray, after))
        parts.append(jax.tree.map(np.asarray, tuple(rest)))
    seen, *others = (_joined(part) for part in zip(*parts, strict=True))
    observations = np.concatenate([np.asarray(first_seen)[None], seen])
    return _joined(states), observations, *others


def _joined(trees: Iterable[Any]) -> Any:
    return jax.tree.map(lambda *parts: np.concatenate(parts), *trees)


def crashes(rides: Sequence[Ride]) -> list[bool]:
    """Whether each ride ends the game; refuses one that does so before its end.

    The rides are of one environment. Many are played at once and nothing of them is kept
    in memory, so this suits whole files.
    """
    found = []
    for first in range(0, len(rides), BATCH):
        found += _crashes_together(rides[first : first + BATCH])
    return found


def _crashes_together(rides: Sequence[Ride]) -> list[bool]:
    seeds = np.zeros(BATCH, np.int32)
    seeds[: len(rides)] = [ride.seed for ride in rides]
    env = rides[0].env
    state = _beginnings(seeds, env)
    found = [False] * len(rides)
    for first in range(0, max(map(len, rides)), _SHORTEST):
        actions = np.zeros((BATCH, _SHORTEST), np.int32)
        for row, ride in enumerate(rides):
            part = ride.actions[first : first + _SHORTEST]
            actions[row, : len(part)] = part
        state, crashed = _crashed(seeds, first, state, actions, env)
        for row, ride in enumerate(rides):
            mine = np.asarray(crashed)[row, : max(0, len(ride) - first)]
            last = len(ride) - 1 - first
            _check_goes_on(ride, mine[: max(0, last)], first)
            found[row] |= 0 <= last < len(mine) and bool(mine[last])
    return found


@partial(jax.jit, static_argnames="env")
def _beginning(seed: jax.Array, env: str) -> tuple[jax.Array, Any]:
    """How a ride begins: the first observation and state. All roads begin alike."""
    key = jax.random.fold_in(jax.random.key(seed), 2)
    return game(env).reset_env(key, game(env).default_params)


@partial(jax.jit, static_argnames="env")
def _beginnings(seeds: jax.Array, env: str) -> Any:
    """The first states of many rides."""
    return jax.vmap(lambda seed: _beginning(seed, env)[1])(seeds)


def _check_goes_on(ride: Ride, crashed: np.ndarray, first: int = 0) -> None:
    """A ride must not end the game before its last action."""
    if crashed.any():
        ends = "it crashes" if ride.env in ROADS else "the game is over"
        raise ValueError(
            f"expected a ride that goes on to its last action, but {ends} at step "
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
        info={name: values[:num] for name, values in info.items()},
        states=jax.tree.map(lambda x: x[: num + 1], states),
    )


def padded(length: int) -> int:
    """The length that is simulated for a ride of this length."""
    simulated = _SHORTEST
    while simulated < length:
        simulated *= 2
    return simulated


@partial(jax.jit, static_argnames=("model", "length", "env"))
def _drive(
    model: DriverModel, params: Any, seeds: jax.Array, length: int, env: str
) -> Any:
    """Actions and ends of the game, `[B, length]`; ignore what follows an end."""

    def one(seed: jax.Array) -> Any:
        observation, state = _beginning(seed, env)

        def advance(carry: Any, step: jax.Array) -> Any:
            observation, state, memory = carry
            key = driver_key(seed, step)
            action, memory = model.act(params, key, observation, memory)
            state, (_, observation, _, over, _) = _advance(
                seed, env, state, (step, action)
            )
            return (observation, state, memory), (action.astype(jnp.uint8), over)

        carry = (observation, state, model.start(params))
        return jax.lax.scan(advance, carry, jnp.arange(length))[1]

    return jax.vmap(one)(seeds)


def _advance(seed: jax.Array, env: str, state: Any, row: Any) -> Any:
    """One step: the state after it, and everything that the step gave."""
    step, action = row
    observation, state, reward, over, info = game(env).step_env(
        step_key(seed, step), state, action, game(env).default_params
    )
    return state, (state, observation, reward, over, info)


@partial(jax.jit, static_argnames="env")
def _replay(
    seed: jax.Array, first: Any, state: Any, actions: jax.Array, env: str
) -> Any:
    """Some steps from a state: the last state, and what each step gave."""
    rows = (first + jnp.arange(len(actions)), actions)
    return jax.lax.scan(partial(_advance, seed, env), state, rows)


@partial(jax.jit, static_argnames="env")
def _crashed(
    seeds: jax.Array, first: Any, states: Any, actions: jax.Array, env: str
) -> Any:
    """Some steps of many rides: the last states, and ends of the game `[B, steps]`."""

    def one(seed: jax.Array, state: Any, actions: jax.Array) -> Any:
        rows = (first + jnp.arange(len(actions)), actions)

        def advance(state: Any, row: Any) -> Any:
            state, (_, _, _, over, _) = _advance(seed, env, state, row)
            return state, over

        return jax.lax.scan(advance, state, rows)

    return jax.vmap(one)(seeds, states, actions)
