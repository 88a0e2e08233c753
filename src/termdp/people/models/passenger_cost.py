"""A fitted passenger's cost: a real-valued function of (observation, action)."""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from termdp.costs.ensemble import apply_member
from termdp.costs.network import CostNetwork
from termdp.envs.backseat import BackseatDriver
from termdp.envs.backseat_road import Road
from termdp.people.models.percepts import percepts


@struct.dataclass
class PassengerCost:
    """scale · mean over members of c_m(what is noticed of the decision).

    A pytree: its numbers stay traced, so another passenger of the same make does not
    recompile. Reads the lane grid and the 42×42 image alike, as JAX or NumPy arrays.

    Attributes:
        weights: parameters of the networks, the member axis first.
        scale: what their costs are multiplied by.
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
    """The cost by what is noticed of a decision, `[SIZE]`."""
    member = partial(apply_member, network)
    nothing = jnp.zeros((), jnp.int32)
    costs = jax.vmap(member, in_axes=(0, None, None))(weights, noticed, nothing)
    return scale * costs.mean()
