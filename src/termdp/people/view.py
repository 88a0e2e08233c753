"""What a passenger sees: the road from the own lane, and the last manoeuvres.

A few hundred stops cannot teach a network that a lane change in lane 2 is the same as
one in lane 4. So models of passengers look at the road relative to the own car: cars
and coins in the lanes beside it, where the road ends, and the last lane changes. All of
it is read off one observation, so a cost is still a function of (observation, action).
"""

from typing import Any

import jax
import jax.numpy as jnp

from termdp.envs.backseat import LEFT, RIGHT
from termdp.envs.backseat_road import Road
from termdp.envs.backseat_view import HISTORY, NUM_MAPS, cells

# Lanes to either side of the own one; further ones cannot matter within a decision.
REACH = 2
SPAN = 2 * REACH + 1
MOVES = HISTORY - 1


def view_size(road: Road) -> int:
    """Length of the vector that `passenger_view` returns."""
    return 2 * road.rows * SPAN + SPAN + 2 * MOVES


def passenger_view(road: Road, observation: Any) -> jax.Array:
    """The road as seen from the own lane, float32 `[view_size]` of zeros and ones.

    Args:
        road: sizes of the game.
        observation: one observation, grid or image.

    Returns:
        cars `[rows, 5]`, coins `[rows, 5]`, where there is no road `[5]`, and for each
        of the last three decisions whether it went left and whether right, newest
        first; all flattened, one after the other.
    """
    grid = cells(road, jnp.asarray(observation))
    lanes = jnp.stack([_lane(grid, age) for age in range(HISTORY)])
    edge = [(0, 0), (REACH, REACH), (0, 0)]
    wide = jnp.pad(grid[:, :, 1:NUM_MAPS], edge)
    off_road = jnp.pad(jnp.zeros(road.lanes, bool), REACH, constant_values=True)
    # A product with the shifted one-hot lane instead of a dynamic slice: under vmap it
    # stays one small matrix product.
    place = lanes[0] + jnp.arange(SPAN)
    pick = jnp.arange(road.lanes + 2 * REACH)[:, None] == place
    near = jnp.einsum("rlk,ls->krs", wide.astype(jnp.float32), pick.astype(jnp.float32))
    beside = off_road.astype(jnp.float32) @ pick.astype(jnp.float32)
    moves = lanes[:-1] - lanes[1:]
    turns = jnp.stack([moves < 0, moves > 0], axis=1).astype(jnp.float32)
    return jnp.concatenate([near.reshape(-1), beside, turns.reshape(-1)])


def mirrored_view(road: Road, view: jax.Array) -> jax.Array:
    """The same scene with left and right exchanged, `[..., view_size]`."""
    maps = 2 * road.rows * SPAN
    lead = view.shape[:-1]
    near = view[..., :maps].reshape(*lead, 2, road.rows, SPAN)[..., ::-1]
    beside = view[..., maps : maps + SPAN][..., ::-1]
    turns = view[..., maps + SPAN :].reshape(*lead, MOVES, 2)[..., ::-1]
    parts = [near.reshape(*lead, -1), beside, turns.reshape(*lead, -1)]
    return jnp.concatenate(parts, axis=-1)


def mirrored_action(actions: jax.Array) -> jax.Array:
    """Left for right and right for left."""
    actions = jnp.asarray(actions)
    swapped = jnp.where(actions == RIGHT, LEFT, actions)
    return jnp.where(actions == LEFT, RIGHT, swapped)


def _lane(grid: jax.Array, age: int) -> jax.Array:
    """The lane the own car was in, `age` decisions ago."""
    here = grid[:, :, NUM_MAPS * age].any(axis=0)
    return jnp.argmax(here).astype(jnp.int32)
