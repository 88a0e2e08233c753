"""What tires the recommender's user (repetition, irritation) and what is a relief."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from termdp.envs.recommender import Recommender
from termdp.envs.recommender_items import Items, make_items


@struct.dataclass(eq=False)  # hashed by identity, so that jax.jit(cost) works
class RecommenderFatigueCost:
    """Real-valued cost of showing an item to a user in this mood.

    c = irritation + repetition·exposure + crowding·category exposure
        + mismatch·max(0, −match) − relief·max(0, match)/(1 + exposure)

    The irritation is the item's. The exposures say how often it and its category were
    shown recently; match = ⟨user's taste, item's taste⟩. A new item that suits the user
    is a relief: c < 0.

    Attributes:
        items: the shop's items (`game.items`).
        repetition: cost for each recent time that the same item was shown.
        crowding: cost for each recent time that the same category was shown.
        mismatch: cost of an item that suits the opposite taste.
        relief: how much a new item that matches perfectly takes away.
    """

    items: Items = struct.field(default_factory=make_items)
    repetition: Any = 0.015
    crowding: Any = 0.01
    mismatch: Any = 0.5
    relief: Any = 0.6

    @classmethod
    def for_game(cls, game: Recommender) -> "RecommenderFatigueCost":
        """The cost that knows this game's items."""
        return cls(items=game.items)

    def __call__(self, observation: Any, action: Any) -> Any:
        """The cost of one unbatched pair, a float32 scalar."""
        xp: Any = jnp if isinstance(observation, jax.Array) else np
        num_items, taste_size = self.items.tastes.shape
        taste = observation[:taste_size]
        exposure = observation[taste_size : taste_size + num_items]
        category_exposure = observation[taste_size + num_items :]
        crowd = xp.sum(self.items.categories * category_exposure, axis=1)
        match = xp.sum(self.items.tastes * taste, axis=1)
        costs = self.items.irritation + self.repetition * exposure
        costs = costs + self.crowding * crowd
        costs = costs + self.mismatch * xp.maximum(-match, 0.0)
        costs = costs - self.relief * xp.maximum(match, 0.0) / (1.0 + exposure)
        is_shown = xp.arange(num_items) == action
        return xp.sum(xp.where(is_shown, costs, 0.0)).astype(np.float32)
