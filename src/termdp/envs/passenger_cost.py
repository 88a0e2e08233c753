"""A fitted passenger's cost in Backseat Driver, and what a passenger notices.

A few hundred stops cannot teach a network that a gap of two rows in lane 1 is the same as
one in lane 3, or that left is as bad as right. So models of passengers use *percepts*:
features of a step, seen from the driver's car (manoeuvres, gaps to other cars, coins).
They depend on one observation and one action, so the cost is still a function of
(observation, action). Left and right are alike by construction.
"""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from termdp.cost_network import ActionSpec, CostNetwork
from termdp.envs.backseat import LEFT, RIGHT, BackseatDriver
from termdp.envs.backseat_costs import BackseatCoinCost
from termdp.envs.backseat_road import Road
from termdp.envs.backseat_view import HISTORY, NUM_MAPS, cells

# Gaps are described as "at most this many rows", small ones most finely.
AHEAD = (1, 3, 8)
BEHIND = (1, 3)
# This many lane changes within the four visible steps are hectic.
HECTIC = 3
# Percepts already include the action, so the network is given only one.
ACTIONS = ActionSpec(1)

PERCEPT_NAMES = (
    "changes lane",
    "changes lane with a free road",
    *(f"changed lane {age} ago" for age in range(1, HISTORY)),
    *(f"undoes the change {age} ago" for age in range(1, HISTORY)),
    "back and forth with a free road",
    "third change within four decisions",
    "takes a coin",
    "takes a coin by changing",
    *(f"car within {rows} rows ahead" for rows in AHEAD),
    *(f"car within {rows} rows ahead where it goes" for rows in AHEAD),
    *(f"car within {rows} rows behind where it goes" for rows in BEHIND),
    "a car beside",
)
SIZE = len(PERCEPT_NAMES)


def percepts(road: Road, observation: Any, action: Any) -> jax.Array:
    """Percepts of one step, float32 `[SIZE]` of zeros and ones; see `PERCEPT_NAMES`.

    Args:
        road: sizes and speeds of the game.
        observation: one observation, grid or image.
        action: what the driver does.
    """
    observation = jnp.asarray(observation)
    grid = cells(road, observation)
    lanes = jnp.stack([_lane(grid, age) for age in range(HISTORY)])
    heading = jnp.where(action == LEFT, -1, jnp.where(action == RIGHT, 1, 0))
    target = jnp.clip(lanes[0] + heading, 0, road.lanes - 1)
    move = target - lanes[0]
    past = lanes[:-1] - lanes[1:]
    changes = (move != 0)[None]
    undoes = past * move < 0
    coin = BackseatCoinCost(road)(observation, action)[None] > 0
    cars = grid[:, :, 1]
    ahead = _ahead(road, _column(cars, lanes[0]))
    needless = changes & ~ahead[-1]
    parts = [
        changes,
        needless,
        past != 0,
        undoes,
        needless & undoes[:2].any(),
        changes & ((past != 0).sum() + 1 >= HECTIC),
        coin,
        coin & changes,
        ahead,
        _ahead(road, _column(cars, target)),
        _behind(road, _column(cars, target)) & changes,
        _beside(road, cars, lanes[0])[None],
    ]
    return jnp.concatenate([part.astype(jnp.float32) for part in parts])


def _lane(grid: jax.Array, age: int) -> jax.Array:
    """The lane of the driver's car, `age` steps ago."""
    here = grid[:, :, NUM_MAPS * age].any(axis=0)
    return jnp.argmax(here).astype(jnp.int32)


def _column(cars: jax.Array, lane: jax.Array) -> jax.Array:
    """The cells of one lane, `[rows]`."""
    return (cars & (jnp.arange(cars.shape[1]) == lane)).any(axis=1)


def _ahead(road: Road, column: jax.Array) -> jax.Array:
    """Whether there are at most this many free rows ahead, for each of `AHEAD`."""
    nose = road.agent_row
    return jnp.stack([column[max(nose - 1 - n, 0) : nose].any() for n in AHEAD])


def _behind(road: Road, column: jax.Array) -> jax.Array:
    """Whether there are at most this many free rows behind, for each of `BEHIND`."""
    tail = road.behind_row
    return jnp.stack([column[tail : tail + 1 + n].any() for n in BEHIND])


def _beside(road: Road, cars: jax.Array, lane: jax.Array) -> jax.Array:
    """Whether there is a car right beside the driver's."""
    level = cars[road.agent_row : road.behind_row].any(axis=0)
    return (level & (jnp.abs(jnp.arange(road.lanes) - lane) == 1)).any()


@struct.dataclass
class PassengerCost:
    """scale · mean over members of c_m(percepts of the step).

    A pytree: its numbers are traced, so another passenger of the same kind needs no new
    compilation. It reads the lane grid or the 42×42 image, as JAX or NumPy arrays.

    Attributes:
        weights: parameters of the networks, the member axis first.
        scale: what their mean is multiplied by.
        network: their architecture (static).
        road: sizes and speeds of the game that is watched (static).
    """

    weights: Any
    scale: jax.Array | float
    network: CostNetwork = struct.field(pytree_node=False)
    road: Road = struct.field(pytree_node=False, default=Road())

    def __call__(self, observation: Any, action: Any) -> Any:
        """The cost of one unbatched pair, a float32 scalar."""
        noticed = percepts(self.road, observation, action)
        return cost_of(self.weights, self.scale, noticed, self.network)

    def check_game(self, game: Any) -> None:
        """Refuse games that this passenger cannot watch."""
        if not isinstance(game, BackseatDriver):
            raise ValueError(
                f"expected an observer of {game.name}, got a passenger of Backseat "
                "Driver: it can watch backseat and backseat_passenger only"
            )
        if game.road != self.road:
            raise ValueError(
                f"expected a road of {dataclasses.asdict(self.road)}, on which this "
                f"passenger was fitted, got {dataclasses.asdict(game.road)}"
            )


@partial(jax.jit, static_argnames=("network",))
def cost_of(
    weights: Any, scale: Any, noticed: jax.Array, network: CostNetwork
) -> jax.Array:
    """The cost of a step's percepts, `[SIZE]`."""
    nothing = jnp.zeros((), jnp.int32)

    def member_cost(member: Any) -> jax.Array:
        return jnp.asarray(network.apply({"params": member}, noticed, nothing))

    return scale * jax.vmap(member_cost)(weights).mean()
