"""One cost network: c(s, a), the observer's cost of an action in a state.

Section 4.1, arXiv:2205.15376: a logistic regression whose summands are a network's
outputs. The published network sees the observation only and ends in a ReLU; this one
sees the action too (the paper's c(s, a)) and ends linearly, because costs may be
negative and a clipped output dies.
"""

from dataclasses import dataclass

import flax.linen as nn
import jax
import jax.numpy as jnp

from termdp.layers import Dense, GridConv, as_numbers
from termdp.networks import ImageTorso, VectorTorso, dense_with_extra


@dataclass(frozen=True)
class ActionSpec:
    """Shape and type of actions.

    Attributes:
        size: number of choices if discrete, length of the vector if not.
        discrete: whether actions are integers 0 … size − 1, or vectors `[..., size]`.
    """

    size: int
    discrete: bool = True

    def features(self, actions: jax.Array) -> jax.Array:
        """Actions as vectors `[..., size]`: one-hot if discrete."""
        if self.discrete:
            return jax.nn.one_hot(actions, self.size)
        return actions.astype(jnp.float32)


class CostNetwork(nn.Module):
    """c(s, a) from an observation and an action.

    Attributes:
        actions: shape and type of actions.
        kind: `grid`, `columns`, `image` or `vector`.
        channels: how many of the first channels are seen; None for all.
        filters: 3×3 filters of the grid network.
        hidden: hidden units of all but the image network.
        nonnegative: whether the output passes through a softplus.
        precision: of grids' and images' hidden layers; the cost itself is float32.
        outputs: None for a cost. A number gives that many features of a step instead,
            each of size about 1.
    """

    actions: ActionSpec
    kind: str = "grid"
    channels: int | None = None
    filters: int = 8
    hidden: int = 32
    nonnegative: bool = False
    precision: str = "float32"
    outputs: int | None = None

    @nn.compact
    def __call__(self, obs: jax.Array, actions: jax.Array) -> jax.Array:
        """From observations `[..., *shape]` and actions `[...]` to costs `[...]`.

        With `outputs`, to features `[..., outputs]`.
        """
        chosen = self.actions.features(actions)
        obs = first_channels(obs, self.channels)
        if self.kind == "grid":
            x = nn.relu(GridConv(self.filters, 3, self.precision)(obs))
            x = x.reshape(*x.shape[:-3], -1)
            features = nn.relu(dense_with_extra(self.hidden, x, chosen))
            features = features.astype(jnp.float32)
        elif self.kind == "columns":
            # The same weights for every column: what is learned in one holds in all.
            x = as_numbers(columns_with_neighbours(obs), self.precision)
            x = nn.relu(Dense(2 * self.hidden)(x))
            x = nn.relu(Dense(self.hidden)(x))
            features = x.astype(jnp.float32).sum(axis=-2)
        elif self.kind == "image":
            features = ImageTorso(precision=self.precision)(obs, chosen)
        else:
            features = VectorTorso((self.hidden, self.hidden))(obs, chosen)
        if self.kind == "vector" and not self.actions.discrete and self.actions.size:
            # Effort, or distance from a target, costs alike in both directions. A few
            # tanh units find that too late.
            seen = jnp.concatenate([obs.astype(jnp.float32), chosen], axis=-1)
            features = jnp.concatenate([features, magnitudes(seen)], axis=-1)
        outputs, scale = self.outputs or 1, 0.01 if self.outputs is None else 1.0
        found = Dense(outputs, scale=scale)(features)
        if self.kind in ("vector", "columns") and self.actions.discrete:
            # "How often was *this* item shown" needs an output per action: a product
            # of observation and action that few hidden units cannot make.
            seen = features
            if self.kind == "vector":
                seen = jnp.concatenate([obs.astype(jnp.float32), features], axis=-1)
            each = Dense(outputs * self.actions.size, scale=scale)(seen)
            each = each.reshape(*each.shape[:-1], outputs, self.actions.size)
            found = found + jnp.sum(each * chosen[..., None, :], axis=-1)
        if self.outputs is not None:
            return found
        cost = found[..., 0]
        return nn.softplus(cost) if self.nonnegative else cost


def magnitudes(x: jax.Array) -> jax.Array:
    """2·(√(1 + x²) − 1): nearly x² near 0, and nearly 2·|x| far from it."""
    return 2.0 * (jnp.sqrt(1.0 + x * x) - 1.0)


def first_channels(observations: jax.Array, channels: int | None) -> jax.Array:
    """The first channels of observations, or all: what a cost network sees."""
    return observations if channels is None else observations[..., :channels]


def columns_with_neighbours(grids: jax.Array) -> jax.Array:
    """Each column of grids `[..., H, W, C]` between its neighbours, zeros beyond edges.

    Returns:
        `[..., W, 3·H·C]`.
    """
    height, width, channels = grids.shape[-3:]
    columns = jnp.moveaxis(grids, -2, -3).reshape(
        *grids.shape[:-3], width, height * channels
    )
    padded = jnp.pad(columns, [(0, 0)] * (columns.ndim - 2) + [(1, 1), (0, 0)])
    beside = [padded[..., shift : shift + width, :] for shift in range(3)]
    return jnp.concatenate(beside, axis=-1)
