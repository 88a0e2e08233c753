"""What the driver of Backseat Driver sees: words of bits become grids or images."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from termdp.envs.backseat_road import CAR_LENGTH, Road

NUM_MAPS = 3
HISTORY = 4
CHANNELS = NUM_MAPS * HISTORY
IMAGE_SIZE = 42
# Margins left and right of an object, as parts of a lane: agent, cars, coins.
_SIDE_MARGINS = (1 / 8, 1 / 8, 1 / 4)


def bodies(cars: jax.Array) -> jax.Array:
    """All rows that cars cover, from their upper rows (words)."""
    return cars | (cars << 1)


def current_maps(
    road: Road, agent: jax.Array, cars: jax.Array, coins: jax.Array
) -> jax.Array:
    """The three maps of one moment as words, `[lanes, 3]`."""
    rows = range(road.agent_row, road.agent_row + CAR_LENGTH)
    here = jnp.arange(road.lanes) == agent
    agent_word = jnp.where(here, jnp.uint32(road.bits(rows)), jnp.uint32(0))
    return jnp.stack([agent_word, bodies(cars), coins], axis=1)


def grid(road: Road, maps: jax.Array) -> jax.Array:
    """Unpack words `[lanes, 12]` to bool `[rows, lanes, 12]`."""
    return _unpack(road, maps).reshape(road.rows, *maps.shape)


def image(road: Road, maps: jax.Array) -> jax.Array:
    """The grid enlarged to bool `[42, 42, 12]`, objects narrower than their lanes."""
    height, width, top, left = image_layout(road)
    words = jnp.where(_column_masks(road, width), jnp.repeat(maps, width, axis=0), 0)
    right = IMAGE_SIZE - left - road.lanes * width
    rows = _unpack(road, jnp.pad(words, ((left, right), (0, 0))))
    bottom = IMAGE_SIZE - top - road.rows * height
    tall = jnp.pad(jnp.repeat(rows, height, axis=0), ((top, bottom), (0, 0)))
    return tall.reshape(IMAGE_SIZE, IMAGE_SIZE, CHANNELS)


def _unpack(road: Road, words: jax.Array) -> jax.Array:
    """The visible bits of all words, bool `[rows, number of words]`."""
    # Eight rows at a time: bytes fill four times as many vector slots as words. The
    # barrier keeps XLA from computing the words again for every bit (0.15 µs of 0.7).
    columns = jax.lax.optimization_barrier((words >> road.margin).reshape(-1))
    parts = []
    for first in range(0, road.rows, 8):
        byte = (columns >> first).astype(jnp.uint8)
        rows = jnp.arange(min(8, road.rows - first), dtype=jnp.uint8)
        parts.append(((byte >> rows[:, None]) & 1).astype(bool))
    return jnp.concatenate(parts)


def image_layout(road: Road) -> tuple[int, int, int, int]:
    """Pixels per row, pixels per lane, first pixel row, first pixel column."""
    height, width = IMAGE_SIZE // road.rows, IMAGE_SIZE // road.lanes
    top = (IMAGE_SIZE - road.rows * height) // 2
    left = (IMAGE_SIZE - road.lanes * width) // 2
    return height, width, top, left


def cells(road: Road, observation: Any) -> Any:
    """The grid `[rows, lanes, channels]` of either kind of observation, as bool."""
    if observation.shape[:2] == (road.rows, road.lanes):
        return observation != 0
    if observation.shape[:2] == (IMAGE_SIZE, IMAGE_SIZE):
        height, width, top, left = image_layout(road)
        right = left + road.lanes * width
        middles = observation[top::height, left + width // 2 : right : width]
        return middles[: road.rows] != 0
    raise ValueError(
        f"expected an observation of {road.rows} rows and {road.lanes} lanes or of "
        f"{IMAGE_SIZE}x{IMAGE_SIZE} pixels, got shape {observation.shape}"
    )


def _column_masks(road: Road, width: int) -> np.ndarray:
    """Which pixel columns of a lane each kind of object covers: `[lanes·width, 12]`."""
    column = np.arange(width)
    masks = []
    for margin in _SIDE_MARGINS:
        side = int(margin * width)
        masks.append((column >= side) & (column < width - side))
    return np.tile(np.stack(masks, axis=1), (road.lanes, HISTORY))
