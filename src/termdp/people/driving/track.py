"""The road of a seed: which cars and coins appear when.

Cars and coins come from the seed alone. Taking a coin changes nothing, because the coins
behind it appeared long before. So the browser gets the whole road ahead of time and draws
it smoothly. A supervisor's own drive needs no message to the server until it is over.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from termdp.envs.backseat_traffic import new_coins, next_wave, no_wave
from termdp.people.driving.rides import Ride, check_seed, game, padded, step_key


def track(seed: int, steps: int) -> dict[str, list[int]]:
    """What appears on the road in the first steps.

    Returns:
        `cars` and `coins`, each a flat list of (time, lane, row): the thing is first on
        the road before step `time`, in `lane` with its upper row at `row`. From then on
        it moves down at its speed.
    """
    check_seed(seed)
    length = padded(steps)
    cars, coins = jax.tree.map(np.asarray, _appearing(jnp.int32(seed), length=length))
    return {"cars": _places(cars[:steps]), "coins": _places(coins[:steps])}


def ride_data(ride: Ride) -> dict[str, Any]:
    """A ride for the browser: its road and its actions; not who drove."""
    return {"actions": ride.digits, **track(ride.seed, len(ride) + 1)}


def ride_data_many(rides: Sequence[Ride]) -> list[dict[str, Any]]:
    """`ride_data` of several rides; one program makes all their roads."""
    length = padded(max(len(ride) for ride in rides) + 1)
    seeds = jnp.asarray([ride.seed for ride in rides], jnp.int32)
    roads = jax.tree.map(np.asarray, _appearing_many(seeds, length=length))
    return [
        {
            "actions": ride.digits,
            "cars": _places(cars[: len(ride) + 1]),
            "coins": _places(coins[: len(ride) + 1]),
        }
        for ride, cars, coins in zip(rides, *roads, strict=True)
    ]


def road_data() -> dict[str, int]:
    """The road's sizes and speeds."""
    road = game().road
    return {
        "lanes": road.lanes,
        "rows": road.rows,
        "agent_row": road.agent_row,
        "car_speed": road.car_speed,
        "coin_speed": road.coin_speed,
    }


@partial(jax.jit, static_argnames=("length",))
def _appearing(seed: jax.Array, length: int) -> tuple[jax.Array, jax.Array]:
    """New cars and coins after each step, a word of bits per lane: `[length, lanes]`."""
    env, params = game(), game().default_params
    road = env.road
    stored = jnp.uint32(road.bits(range(-road.margin, road.rows)))

    def advance(carry: Any, step: jax.Array) -> Any:
        cars, coins, wave = carry
        draws = env.sample_draws(step_key(seed, step))
        fresh_cars, wave = next_wave(road, step, wave, draws, params)
        cars = (cars << road.car_speed) & stored | fresh_cars
        coins = (coins << road.coin_speed) & stored
        fresh_coins = new_coins(road, cars, coins, draws, params)
        return (cars, coins | fresh_coins, wave), (fresh_cars, fresh_coins)

    empty = jnp.zeros(road.lanes, jnp.uint32)
    start = (empty, empty, no_wave(road))
    return jax.lax.scan(advance, start, jnp.arange(length))[1]


@partial(jax.jit, static_argnames=("length",))
def _appearing_many(seeds: jax.Array, length: int) -> tuple[jax.Array, jax.Array]:
    return jax.vmap(partial(_appearing, length=length))(seeds)


def _places(words: np.ndarray) -> list[int]:
    """Time, lane and row of every set bit, flat."""
    road = game().road
    positions = np.arange(road.margin + road.rows, dtype=np.uint32)
    step, lane, bit = np.nonzero((words[:, :, None] >> positions) & 1)
    # What appears in step t stands there before step t + 1.
    return np.stack([step + 1, lane, bit - road.margin], axis=1).ravel().tolist()
