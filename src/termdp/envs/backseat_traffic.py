"""Backseat Driver's new cars and coins: everything that is random in the game.

Cars come in waves, at distances that `backseat_road` proves to be sufficient. Coins come
in trails, in lanes where they will not meet a car.
"""

import jax
import jax.numpy as jnp
from flax import struct

from termdp.envs.backseat_road import CAR_LENGTH, Road
from termdp.envs.base import EnvParams

FAR = 1000


@struct.dataclass
class BackseatParams(EnvParams):
    """Numbers that may change without recompiling.

    Attributes:
        max_steps_in_episode: steps until the time limit.
        wave_rate: probability that a wave of cars is proposed in a step, at first.
        wave_rate_late: the same after `ramp_steps`; linear in between.
        ramp_steps: how long the traffic takes to thicken.
        car_density: probability of a car in each lane of a proposed wave.
        coin_rate: probability of a coin per lane and step, where one may be.
        trail_rate: the same right behind another coin.
    """

    max_steps_in_episode: int = 10_000
    wave_rate: float = 0.25
    wave_rate_late: float = 0.8
    ramp_steps: int = 500
    car_density: float = 0.33
    coin_rate: float = 0.1
    trail_rate: float = 0.75


@struct.dataclass
class BackseatDraws:
    """Everything random in one step; uniforms in [0, 1) unless stated.

    Attributes:
        wave: proposes a wave if below its rate.
        wave_offset: integer in 0…car_speed − 1, rows above the lowest possible one.
        cars: `[lanes]`, a car of the proposed wave if below the density.
        coins: `[lanes]`, a coin if below its rate.
        coin_offset: `[lanes]` integers in 0…coin_speed − 1, rows above the lowest one.
    """

    wave: jax.Array
    wave_offset: jax.Array
    cars: jax.Array
    coins: jax.Array
    coin_offset: jax.Array


@struct.dataclass
class Wave:
    """The newest wave of cars: its row, and the lanes it leaves open as bits."""

    row: jax.Array
    open_lanes: jax.Array


def no_wave(road: Road) -> Wave:
    """Nothing has come yet: no car is near and every lane is open."""
    return Wave(row=jnp.int32(FAR), open_lanes=jnp.uint32((1 << road.lanes) - 1))


def sample_draws(road: Road, key: jax.Array) -> BackseatDraws:
    """Draw everything that is random in one step, from one block of bits."""
    bits = jax.random.bits(key, (road.lanes + 1,), jnp.uint32)
    low = (bits & jnp.uint32(0xFFFF)).astype(jnp.float32) * (1 / 2**16)
    middle = ((bits >> 16) & jnp.uint32(0xFFF)).astype(jnp.float32) * (1 / 2**12)
    high = (bits >> 28).astype(jnp.int32)
    return BackseatDraws(
        wave=low[-1],
        wave_offset=(high[-1] * road.car_speed) >> 4,
        cars=low[:-1],
        coins=middle[:-1],
        coin_offset=(high[:-1] * road.coin_speed) >> 4,
    )


def next_wave(
    road: Road,
    time: jax.Array,
    last: Wave,
    draws: BackseatDraws,
    params: BackseatParams,
) -> tuple[jax.Array, Wave]:
    """New cars `[lanes]` (words) and the newest wave, both after the step."""
    grown = jnp.clip(time / params.ramp_steps, 0.0, 1.0)
    rate = params.wave_rate + grown * (params.wave_rate_late - params.wave_rate)
    is_car = draws.cars < params.car_density
    lane_bits = jnp.uint32(1) << jnp.arange(road.lanes, dtype=jnp.uint32)
    blocked = jnp.sum(jnp.where(is_car, lane_bits, 0), dtype=jnp.uint32)
    open_lanes = jnp.uint32((1 << road.lanes) - 1) & ~blocked

    row = -CAR_LENGTH - draws.wave_offset
    last_row = jnp.minimum(last.row + road.car_speed, FAR)
    is_wave = (draws.wave < rate) & (blocked != 0) & (open_lanes != 0)
    is_wave &= last_row - row >= needed_distance(road, last.open_lanes, open_lanes)

    bit = jnp.uint32(1) << (row + road.margin).astype(jnp.uint32)
    youngest = Wave(
        row=jnp.where(is_wave, row, last_row),
        open_lanes=jnp.where(is_wave, open_lanes, last.open_lanes),
    )
    return jnp.where(is_wave & is_car, bit, jnp.uint32(0)), youngest


def needed_distance(
    road: Road, open_before: jax.Array, open_after: jax.Array
) -> jax.Array:
    """Rows between two waves that let every driver between them reach an open lane."""
    distance = jnp.int32(road.wave_distance(0))
    reachable = open_after
    for changes in range(1, road.lanes):
        is_short = (open_before & ~reachable) != 0
        distance = jnp.where(is_short, road.wave_distance(changes), distance)
        reachable |= (reachable << 1) | (reachable >> 1)
    return distance


def new_coins(
    road: Road,
    cars: jax.Array,
    coins: jax.Array,
    draws: BackseatDraws,
    params: BackseatParams,
) -> jax.Array:
    """Coins `[lanes]` in the rows just above the screen (words).

    `cars` and `coins` are those after the step, including the new cars. A trail continues
    `coin_speed` rows above its last coin.
    """
    near = jnp.uint32(road.bits(range(-road.margin, road.clear_row)))
    fresh = jnp.uint32(road.bits(range(-road.coin_speed, 0)))
    trail = (coins >> road.coin_speed) & fresh
    bit = jnp.uint32(1) << (road.margin - 1 - draws.coin_offset).astype(jnp.uint32)
    rate = jnp.where(trail != 0, params.trail_rate, params.coin_rate)
    is_coin = (draws.coins < rate) & ((cars & near) == 0)
    return jnp.where(is_coin, jnp.where(trail != 0, trail, bit), jnp.uint32(0))
