"""Trunks: from an observation to features, one for each kind of observation."""

from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp

from termdp.layers import Dense, EnlargedConv, GridConv, PatchConv, to_blocks


class GridTorso(nn.Module):
    """Features of a small grid: one 3×3 convolution, then a dense layer."""

    filters: int = 16
    hidden: int = 128
    precision: str = "float32"

    @nn.compact
    def __call__(self, observations: jax.Array, extra: jax.Array) -> jax.Array:
        """From grids `[..., H, W, C]` and further features `[..., E]`."""
        x = nn.relu(GridConv(self.filters, 3, self.precision)(observations))
        x = x.reshape(*x.shape[:-3], -1)
        x = nn.relu(dense_with_extra(self.hidden, x, extra))
        return x.astype(jnp.float32)


class ImageTorso(nn.Module):
    """The paper's network for 42×42 input: conv 16, 32, 256, then dense 400 and 256.

    Kernels 4, 4, 11 and strides 2, 2, 1 (appendix D, table of CNN hyper-parameters,
    arXiv:2205.15376, which prints kernels as strides and strides as padding), both
    convolutions padded so that 42 become 21 become 11. Smaller grids are enlarged: each
    cell is repeated and the rest padded with zeros.
    """

    size: int = 42
    precision: str = "float32"

    @nn.compact
    def __call__(self, observations: jax.Array, extra: jax.Array) -> jax.Array:
        """From grids `[..., H, W, C]` and further features `[..., E]`."""
        if observations.shape[-3:-1] == (10, 10) and self.size == 42:
            x = nn.relu(EnlargedConv(16, self.precision)(observations))
        else:
            x = to_blocks(enlarge(observations, self.size), 1, 1)
            x = nn.relu(PatchConv(16, 2, self.precision)(x))
            x = to_blocks(x, 1, 2)
        x = nn.relu(PatchConv(32, 2, self.precision)(x))
        x = x.reshape(*x.shape[:-3], -1)  # the 11×11 kernel covers the whole 11×11 map
        x = nn.relu(Dense(256)(x))
        x = nn.relu(dense_with_extra(400, x, extra))
        return nn.relu(Dense(256)(x)).astype(jnp.float32)


class VectorTorso(nn.Module):
    """Features of a plain vector: two dense layers."""

    hidden: Sequence[int] = (64, 64)

    @nn.compact
    def __call__(self, observations: jax.Array, extra: jax.Array) -> jax.Array:
        """From vectors `[..., D]` and further features `[..., E]`."""
        x = observations.astype(jnp.float32)
        x = nn.tanh(dense_with_extra(self.hidden[0], x, extra))
        for size in self.hidden[1:]:
            x = nn.tanh(Dense(size)(x))
        return x


def enlarge(grids: jax.Array, size: int) -> jax.Array:
    """Repeat the cells of `[..., H, W, C]` to fill `size`×`size`, padding the rest."""
    height, width = grids.shape[-3:-1]
    if (height, width) == (size, size):
        return grids
    factors = size // height, size // width
    if 0 in factors:
        raise ValueError(
            f"expected a grid of at most {size}×{size} cells, got {height}×{width}"
        )
    for axis, factor in zip((-3, -2), factors, strict=True):
        grids = jnp.repeat(grids, factor, axis=axis)
    edges = [(0, 0)] * (grids.ndim - 3)
    for cells, factor in zip((height, width), factors, strict=True):
        rest = size - cells * factor
        edges.append((rest // 2, rest - rest // 2))
    return jnp.pad(grids, [*edges, (0, 0)])


def dense_with_extra(features: int, x: jax.Array, extra: jax.Array) -> jax.Array:
    """A dense layer on `[x, extra]`, without copying x to concatenate.

    The further features keep their precision until they are added.
    """
    main = Dense(features)(x)
    if extra.shape[-1] == 0:
        return main
    return (main + Dense(features, use_bias=False)(extra)).astype(x.dtype)
