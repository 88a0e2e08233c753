"""Costs that read the columns of a log: linear in features, or a mean of networks.

`termdp fit` makes them. They are data: they load without the user's code, and work in JAX
and Gymnasium environments whose observations and actions have the same columns.
"""

import itertools
import math
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from termdp.boards import board_columns
from termdp.cost_network import ActionSpec, CostNetwork


@dataclass(frozen=True)
class Columns:
    """The columns of a log, and their features.

    Features of a step, in order: those of each observation column, those of the actions,
    then products of columns. A column with bins has a feature for each bin but the
    lowest. A discrete action has one for each choice but `usual`.

    Attributes:
        observations: names of the observation columns.
        actions: names of the action columns; may be none.
        num_actions: choices, if the one action column is a choice; 0 if actions are
            numbers.
        usual: the choice that the others are compared with.
        bins: for each observation the inner edges of its bins; empty for the number
            itself.
        interactions: pairs of columns that are multiplied; numbers count the
            observations first, then the actions.
        board: shape of the boards that the columns are seen on (`termdp.boards`);
            empty if observations are the columns themselves.
    """

    observations: tuple[str, ...]
    actions: tuple[str, ...] = ()
    num_actions: int = 0
    usual: int = 0
    bins: tuple[tuple[float, ...], ...] = ()
    interactions: tuple[tuple[int, int], ...] = ()
    board: tuple[int, ...] = ()

    def read(self, observation: Any, xp: ModuleType) -> Any:
        """The columns of one observation, float32 `[K]`."""
        seen = xp.asarray(observation)
        if self.board:
            self.check_spaces(seen.shape, None)
            return board_columns(seen, xp)
        seen = seen.astype(np.float32).reshape(-1)
        if seen.shape[0] != len(self.observations):
            self.check_spaces(seen.shape, None)
        return seen

    @property
    def action_spec(self) -> ActionSpec:
        """Shape and type of actions, for networks."""
        if self.num_actions:
            return ActionSpec(self.num_actions)
        return ActionSpec(len(self.actions), discrete=False)

    def parts(self) -> list[list[str]]:
        """Names of the features of each column."""
        found = []
        for index, name in enumerate(self.observations):
            edges = self.bins[index] if self.bins else ()
            found.append(_bin_names(name, edges) if edges else [name])
        for name in self.actions:
            others = [k for k in range(self.num_actions) if k != self.usual]
            found.append([f"{name}={k}" for k in others] if others else [name])
        return found

    def names(self) -> list[str]:
        """Names of all features."""
        parts = self.parts()
        pairs = [
            f"{one} × {other}"
            for i, j in self.interactions
            for one in parts[i]
            for other in parts[j]
        ]
        return [name for part in parts for name in part] + pairs

    @property
    def num_features(self) -> int:
        """How many features there are, without naming them."""
        sizes = [len(e) or 1 for e in self.bins] or [1] * len(self.observations)
        sizes += [max(self.num_actions - 1, 1)] * len(self.actions)
        return sum(sizes) + sum(sizes[i] * sizes[j] for i, j in self.interactions)

    def features(self, observations: Any, actions: Any, xp: ModuleType) -> Any:
        """Features `[..., d]` of steps.

        Args:
            observations: `[..., K]`.
            actions: `[...]` choices, or `[..., M]` numbers.
            xp: `numpy` or `jax.numpy`.
        """
        parts = self._observed(observations, xp) + self._done(actions, xp)
        if self.interactions:
            each = parts if self.bins else self._single(parts, observations)
            for i, j in self.interactions:
                both = each[i][..., :, None] * each[j][..., None, :]
                parts.append(both.reshape(*both.shape[:-2], -1))
        return xp.concatenate(parts, axis=-1)

    def _observed(self, observations: Any, xp: ModuleType) -> list[Any]:
        if not self.bins:
            return [observations]
        found = []
        for index, edges in enumerate(self.bins):
            value = observations[..., index : index + 1]
            if edges:
                low = np.asarray(edges, np.float32)
                high = np.append(low[1:], np.float32(np.inf))
                value = (value >= low) & (value < high)
            found.append(value.astype(observations.dtype))
        return found

    def _done(self, actions: Any, xp: ModuleType) -> list[Any]:
        if not self.actions:
            return []
        if not self.num_actions:
            return [actions[..., i : i + 1] for i in range(len(self.actions))]
        others = np.array([k for k in range(self.num_actions) if k != self.usual])
        chosen = xp.asarray(actions)[..., None] == others
        return [chosen.astype(np.float32)]

    def _single(self, parts: list[Any], observations: Any) -> list[Any]:
        count = len(self.observations)
        return [observations[..., i : i + 1] for i in range(count)] + parts[1:]

    def check_spaces(self, observation_shape: Any, action_space: Any) -> None:
        """Refuse an environment whose observations or actions have other columns.

        Args:
            observation_shape: of one observation.
            action_space: Gymnasium's, gymnax's or ours.
        """
        entries = math.prod(observation_shape)
        if self.board and tuple(observation_shape) != self.board:
            raise ValueError(
                f"expected boards of shape {self.board}, which this observer was fitted "
                f"to, got observations of shape {tuple(observation_shape)}"
            )
        if not self.board and entries != len(self.observations):
            raise ValueError(
                f"expected observations of {len(self.observations)} entries "
                f"({_some(self.observations)}), which this observer was fitted to, got "
                f"{entries}: log and environment need the same columns"
            )
        if not self.actions or action_space is None:
            return
        choices = getattr(action_space, "n", None)
        if self.num_actions:
            if choices is None or int(choices) != self.num_actions:
                got = f"{choices} actions" if choices is not None else "a vector"
                raise ValueError(
                    f"expected {self.num_actions} actions ({self.actions[0]}), which "
                    f"this observer was fitted to, got {got}: --num-actions of `termdp "
                    "fit` says how many there are"
                )
            return
        size = math.prod(getattr(action_space, "shape", None) or (1,))
        if choices is not None or size != len(self.actions):
            got = f"{choices} choices" if choices is not None else f"{size}"
            raise ValueError(
                f"expected actions of {len(self.actions)} numbers "
                f"({_some(self.actions)}), which this observer was fitted to, got {got}"
            )


def _bin_names(name: str, edges: tuple[float, ...]) -> list[str]:
    last = f"{name} from {edges[-1]:.4g}"
    inner = [
        f"{name} {low:.4g} to {high:.4g}" for low, high in itertools.pairwise(edges)
    ]
    return [*inner, last]


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _pair(columns: Columns, observation: Any, action: Any) -> tuple[Any, Any, Any]:
    """One observation and action as flat arrays, and their array module."""
    traced = isinstance(observation, jax.Array) or isinstance(action, jax.Array)
    xp: Any = jnp if traced else np
    seen = columns.read(observation, xp)
    done = xp.asarray(action)
    if columns.num_actions:
        return seen, done.reshape(()), xp
    return seen, done.astype(np.float32).reshape(-1)[: len(columns.actions)], xp


@struct.dataclass
class LinearCost:
    """base + Σ weight · (feature − centre): a pytree, its numbers stay traced.

    Attributes:
        weights: cost per unit of each feature, `[d]`.
        centre: means of the features in the log, `[d]`.
        base: cost of a step with features at their means.
        columns: the columns to read (static).
    """

    weights: Any
    centre: Any
    base: Any
    columns: Columns = struct.field(pytree_node=False)

    def __repr__(self) -> str:
        return f"LinearCost({_some(self.columns.observations + self.columns.actions)})"

    def __call__(self, observation: Any, action: Any) -> Any:
        """The cost of one unbatched pair, a float32 scalar."""
        seen, done, xp = _pair(self.columns, observation, action)
        features = self.columns.features(seen, done, xp)
        return self.base + xp.sum(self.weights * (features - self.centre))

    def check_spaces(self, observation_shape: Any, action_space: Any) -> None:
        """Refuse environments with other columns."""
        self.columns.check_spaces(observation_shape, action_space)


@struct.dataclass
class NetworkCost:
    """scale · mean over members of c_m, on standardised columns; a pytree.

    Attributes:
        weights: parameters of the networks, the member axis first.
        scale: what their costs are multiplied by.
        centre: means of the observations, then of the actions if they are numbers.
        spread: their standard deviations.
        network: the architecture (static).
        columns: what is read (static).
    """

    weights: Any
    scale: Any
    centre: Any
    spread: Any
    network: CostNetwork = struct.field(pytree_node=False)
    columns: Columns = struct.field(pytree_node=False)

    def __repr__(self) -> str:
        return f"NetworkCost({_some(self.columns.observations + self.columns.actions)})"

    def __call__(self, observation: Any, action: Any) -> jax.Array:
        """The cost of one unbatched pair, a float32 scalar."""
        seen, done, _ = _pair(self.columns, observation, action)
        return _network_cost(self, jnp.asarray(seen), jnp.asarray(done))

    def check_spaces(self, observation_shape: Any, action_space: Any) -> None:
        """Refuse environments with other columns."""
        self.columns.check_spaces(observation_shape, action_space)


@jax.jit
def _network_cost(cost: NetworkCost, seen: jax.Array, done: jax.Array) -> jax.Array:
    count = len(cost.columns.observations)
    seen = (seen - cost.centre[:count]) / cost.spread[:count]
    if not cost.columns.num_actions:
        done = (done - cost.centre[count:]) / cost.spread[count:]

    def member(weights: Any) -> jax.Array:
        return jnp.asarray(cost.network.apply({"params": weights}, seen, done))

    return cost.scale * jax.vmap(member)(cost.weights).mean()
