"""What a supervisor notices in a step, and the cost computed from it.

A few hundred stops are too few to learn from raw observations, so models get less. On a
road they get percepts (`termdp.envs.passenger_cost`), on a board where the player is
and what is near (`termdp.boards`), elsewhere the observation's numbers. Except on a
road, they also get the action.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from termdp.boards import board_columns, board_names
from termdp.cost_network import ActionSpec, CostNetwork
from termdp.envs.backseat_road import Road
from termdp.envs.passenger_cost import ACTIONS, PERCEPT_NAMES, PassengerCost
from termdp.log_costs import Columns, NetworkCost
from termdp.people.driving.ride import ROADS
from termdp.people.driving.rides import game
from termdp.people.models.showing_data import ShowingData, chunks, noticed_in


class Senses(Protocol):
    """What supervisors notice in an environment. It is used outside compiled code."""

    @property
    def spec(self) -> ActionSpec:
        """What actions look like to a cost network."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of what can be noticed."""

    def notice(self, observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """What there was to notice in each step, `[t, K]`."""

    def act(self, actions: np.ndarray) -> np.ndarray:
        """Actions as the network takes them, `[t] int32`."""

    def felt(self, noticed: np.ndarray, acted: np.ndarray) -> np.ndarray:
        """Which of `names` each step has, `[t, names] bool`."""

    def cost(self, weights: Any, scale: Any, network: CostNetwork) -> Any:
        """A cost function made of fitted networks."""


@dataclass(frozen=True)
class RoadSenses:
    """A passenger's senses: percepts, computed from observation and action."""

    road: Road

    spec = ACTIONS
    names = PERCEPT_NAMES

    def notice(self, observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Percepts."""
        return noticed_in(self.road, observations, actions)

    def act(self, actions: np.ndarray) -> np.ndarray:
        """No actions: percepts include them already."""
        return np.zeros(len(actions), np.int32)

    def felt(self, noticed: np.ndarray, acted: np.ndarray) -> np.ndarray:
        """Percepts as booleans."""
        return noticed.astype(bool)

    def cost(self, weights: Any, scale: Any, network: CostNetwork) -> PassengerCost:
        """A passenger's cost."""
        return PassengerCost(weights, scale, network, self.road)


@dataclass(frozen=True, eq=False)
class ColumnSenses:
    """An onlooker's senses: columns of a board or of a vector, and the action.

    Attributes:
        columns: what is read from an observation.
        choices: names of the actions.
        centre: subtracted from each column, `[K]`.
        spread: then divides each column, `[K]`.
    """

    columns: Columns
    choices: tuple[str, ...]
    centre: np.ndarray
    spread: np.ndarray

    @property
    def spec(self) -> ActionSpec:
        """A choice."""
        return self.columns.action_spec

    @property
    def names(self) -> tuple[str, ...]:
        """Columns, then actions."""
        numbers = self.columns.observations
        if not self.columns.board:
            numbers = tuple(f"much {name}" for name in numbers)
        return (*numbers, *(f"action: {choice}" for choice in self.choices))

    def notice(self, observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Columns, centred and scaled."""
        seen = _read(self.columns, observations)
        return ((seen - self.centre) / self.spread).astype(np.float32)

    def act(self, actions: np.ndarray) -> np.ndarray:
        """As they are."""
        return actions.astype(np.int32)

    def felt(self, noticed: np.ndarray, acted: np.ndarray) -> np.ndarray:
        """A column that is there, or above its mean; an action that was chosen."""
        chosen = acted[:, None] == np.arange(len(self.choices))
        return np.concatenate([noticed > 0, chosen], axis=1)

    def cost(self, weights: Any, scale: Any, network: CostNetwork) -> NetworkCost:
        """An onlooker's cost; it works in any game with the same columns."""
        centre, spread = (
            jnp.asarray(x, jnp.float32) for x in (self.centre, self.spread)
        )
        return NetworkCost(weights, scale, centre, spread, network, self.columns)


def senses_of(env: str, showings: Sequence[ShowingData]) -> Senses:
    """The senses for an environment; numbers are scaled by what was shown."""
    played = game(env)
    if env in ROADS:
        return RoadSenses(played.road)
    shape = tuple(played.observation_space(played.default_params).shape)
    choices = getattr(played, "action_names", None) or tuple(
        map(str, range(played.num_actions))
    )
    if len(shape) == 3:
        things = getattr(played, "channels", None) or tuple(
            f"channel {number}" for number in range(shape[2])
        )
        columns = _columns(board_names(shape, things), len(choices), shape)
        nothing = np.zeros(len(columns.observations), np.float32)
        return ColumnSenses(columns, tuple(choices), nothing, nothing + 1)
    names = tuple(f"number {place}" for place in range(1, int(np.prod(shape)) + 1))
    columns = _columns(names, len(choices), ())
    seen = np.concatenate([_read(columns, s.observations) for s in showings])
    spread = np.maximum(seen.std(axis=0), 1e-6)
    return ColumnSenses(columns, tuple(choices), seen.mean(axis=0), spread)


def costs_along(cost: Any, noticed: np.ndarray, acted: np.ndarray) -> np.ndarray:
    """A fitted cost of what was noticed in each step, `[t]`."""
    found = []
    for seen, action, size in chunks(noticed.astype(np.float32), acted):
        costs = _costs(cost.network, cost.weights, cost.scale, seen, action)
        found.append(np.asarray(costs)[:size])
    return np.concatenate(found)


@partial(jax.jit, static_argnames=("network",))
def _costs(
    network: CostNetwork, weights: Any, scale: Any, seen: jax.Array, acted: jax.Array
) -> jax.Array:
    """The costs of many steps; compiled once for all networks of a kind."""

    def one(seen: jax.Array, action: jax.Array) -> jax.Array:
        def member(weights: Any) -> jax.Array:
            return jnp.asarray(network.apply({"params": weights}, seen, action))

        return scale * jax.vmap(member)(weights).mean()

    return jax.vmap(one)(seen, acted)


def _columns(
    names: tuple[str, ...], num_actions: int, board: tuple[int, ...]
) -> Columns:
    return Columns(names, ("action",), num_actions, board=board)


def _read(columns: Columns, observations: np.ndarray) -> np.ndarray:
    """`Columns.read` of many observations, `[t, K]`."""
    if columns.board:
        return board_columns(observations, np)
    return observations.astype(np.float32).reshape(len(observations), -1)
