"""Recommender: one shopping session; sell, and do not drive the user away.

The paper's second motivation (appendix A of arXiv:2205.15376): top sellers that are
recommended again and again antagonise the user, who leaves. These are all the rules:

- **Items** (`make_items`) have a value to the shop, an appeal to everybody, a direction
  of taste, a category and an irritation. Item 0 is the top seller.
- **A user** is a taste: a unit vector, drawn at the start of the session. It drifts a
  little: after each step `taste_drift` times a normal vector is added, and the length
  is set back to one.
- **Actions**: which item to recommend. The user takes it with probability
  ρ(appeal + `match_gain`·⟨taste, item's taste⟩ − `wear`·exposure). The reward is the
  item's value if it is taken, and 0 if not.
- **Exposure** of each item and each category is a fading count of how often it was
  shown. It is multiplied by `memory` each step, and grows by one when shown.
- **Observation**: float32 `[taste | item exposure | category exposure]`, of sizes
  `taste_size`, `num_items`, `num_categories`.

The game ends only at its time limit. A user who leaves is the observer's stop, and what
tires the user is the observer's cost (`RecommenderFatigueCost`). `info` holds `taken`.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from termdp.envs import spaces
from termdp.envs.base import EnvParams, EnvState, Game
from termdp.envs.recommender_items import make_items

NO_ITEM = -1


@struct.dataclass
class RecommenderState(EnvState):
    """A session.

    Attributes:
        time: recommendations made.
        taste: `[taste_size]`, unit vector.
        item_exposure: `[items]`, fading counts.
        category_exposure: `[categories]`, fading counts.
        shown: the item recommended last, -1 before the first.
        taken: whether the user took it.
    """

    time: jax.Array
    taste: jax.Array
    item_exposure: jax.Array
    category_exposure: jax.Array
    shown: jax.Array
    taken: jax.Array


@struct.dataclass
class RecommenderParams(EnvParams):
    """Numbers that may change without recompiling; the module says what they do."""

    max_steps_in_episode: int = 200
    match_gain: float = 1.5
    wear: float = 0.1
    memory: float = 0.8
    taste_drift: float = 0.02


@struct.dataclass
class RecommenderDraws:
    """What is random in one step: a uniform for the choice, normals for the drift."""

    choice: jax.Array
    drift: jax.Array


class Recommender(Game):
    """The simulator of a session; see the module for the rules.

    Args:
        num_items: how many items the shop has.
        num_categories: how many categories they fall into.
        taste_size: the dimension of a taste.
        seed: decides the shop, not the user.
    """

    def __init__(
        self,
        num_items: int = 16,
        num_categories: int = 4,
        taste_size: int = 2,
        seed: int = 0,
    ):
        super().__init__()
        self.num_items = num_items
        self.num_categories = num_categories
        self.taste_size = taste_size
        self.items = make_items(num_items, num_categories, taste_size, seed)

    @property
    def default_params(self) -> RecommenderParams:
        """The default user."""
        return RecommenderParams()

    def take_probabilities(
        self, state: RecommenderState, params: RecommenderParams
    ) -> jax.Array:
        """How likely the user is to take each item, `[items]`."""
        match = jnp.sum(self.items.tastes * state.taste, axis=1)
        worn = params.wear * state.item_exposure
        return jax.nn.sigmoid(self.items.appeal + params.match_gain * match - worn)

    def sample_draws(self, key: jax.Array) -> RecommenderDraws:
        """Draw everything that is random in one step."""
        key_choice, key_drift = jax.random.split(key)
        return RecommenderDraws(
            choice=jax.random.uniform(key_choice),
            drift=jax.random.normal(key_drift, (self.taste_size,)),
        )

    def advance(
        self,
        state: RecommenderState,
        action: Any,
        draws: RecommenderDraws,
        params: RecommenderParams,
    ) -> tuple[RecommenderState, jax.Array, jax.Array, dict[str, jax.Array]]:
        """One recommendation with given draws: state, reward, game_over, info."""
        is_shown = (jnp.arange(self.num_items) == action).astype(jnp.float32)
        probability = jnp.sum(is_shown * self.take_probabilities(state, params))
        taken = draws.choice < probability
        value = jnp.sum(is_shown * self.items.value)
        categories = jnp.sum(is_shown[:, None] * self.items.categories, axis=0)
        next_state = RecommenderState(
            time=state.time + 1,
            taste=_unit(state.taste + params.taste_drift * draws.drift),
            item_exposure=params.memory * state.item_exposure + is_shown,
            category_exposure=params.memory * state.category_exposure + categories,
            shown=jnp.asarray(action, jnp.int32),
            taken=taken,
        )
        reward = jnp.where(taken, value, 0.0)
        return next_state, reward, jnp.bool_(False), {"taken": taken}

    def reset_env(
        self, key: jax.Array, params: RecommenderParams
    ) -> tuple[jax.Array, RecommenderState]:
        """A new user who has seen nothing yet."""
        del params
        state = RecommenderState(
            time=jnp.int32(0),
            taste=_unit(jax.random.normal(key, (self.taste_size,))),
            item_exposure=jnp.zeros(self.num_items),
            category_exposure=jnp.zeros(self.num_categories),
            shown=jnp.int32(NO_ITEM),
            taken=jnp.bool_(False),
        )
        return self.get_obs(state), state

    def step_env(
        self,
        key: jax.Array,
        state: RecommenderState,
        action: Any,
        params: RecommenderParams,
    ) -> tuple[jax.Array, RecommenderState, jax.Array, jax.Array, dict[str, jax.Array]]:
        """One recommendation: observation, state, reward, game_over (never), info."""
        draws = self.sample_draws(key)
        next_state, reward, game_over, info = self.advance(state, action, draws, params)
        return self.get_obs(next_state), next_state, reward, game_over, info

    def get_obs(
        self, state: RecommenderState, params: Any = None, key: Any = None
    ) -> jax.Array:
        """Taste and exposures in one vector."""
        del params, key
        parts = [state.taste, state.item_exposure, state.category_exposure]
        return jnp.concatenate(parts)

    @property
    def name(self) -> str:
        """The game's name."""
        return "Recommender"

    @property
    def num_actions(self) -> int:
        """One per item."""
        return self.num_items

    def action_space(self, params: Any = None) -> spaces.Discrete:
        """One action per item."""
        del params
        return spaces.Discrete(self.num_actions)

    def observation_space(self, params: Any = None) -> spaces.Box:
        """Tastes within [-1, 1], exposures from 0 to 1/(1 - memory)."""
        params = self.default_params if params is None else params
        most = 1.0 / (1.0 - params.memory)
        counts = self.num_items + self.num_categories
        low = jnp.concatenate([-jnp.ones(self.taste_size), jnp.zeros(counts)])
        high = jnp.concatenate([jnp.ones(self.taste_size), jnp.full(counts, most)])
        return spaces.Box(low, high, low.shape, jnp.float32)


def _unit(vector: jax.Array) -> jax.Array:
    """The vector at length one."""
    length = jnp.sqrt(jnp.maximum(jnp.sum(vector**2), 1e-12))
    return jnp.clip(vector / length, -1.0, 1.0)
