"""The layers that policies, values and cost networks are built of.

Convolutions are written as patch extraction and one matrix product: inside a scan XLA's
CPU convolutions are several times slower, and on a GPU the product is as good. A kernel
as large as its input is simply a dense layer.
"""

from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp


def patches(images: jax.Array, kernel: int) -> jax.Array:
    """All `kernel`×`kernel` patches of images `[..., H, W, C]`, flattened.

    Returns:
        `[..., H', W', kernel·kernel·C]`, the patch's rows first, its channels last.
    """
    rows, columns = (size - kernel + 1 for size in images.shape[-3:-1])
    shifted = [
        images[..., i : i + rows, j : j + columns, :]
        for i in range(kernel)
        for j in range(kernel)
    ]
    return jnp.concatenate(shifted, axis=-1)


@jax.custom_vjp
def product(x: jax.Array, weights: jax.Array) -> jax.Array:
    """`[..., K] @ [K, N]` in the precision of x, gradients in that of the weights.

    The gradient comes in the layout of the weights, too: JAX's own rule makes it as
    `[N, K]` and transposes it; on a CPU the optimiser then reads it across its rows,
    slower than all the rest of Adam.
    """
    return x @ weights.astype(x.dtype)


def _product_forward(x: jax.Array, weights: jax.Array) -> Any:
    return product(x, weights), (x, weights)


def _product_backward(inputs: Any, gradient: jax.Array) -> Any:
    x, weights = inputs
    along_outputs = (((gradient.ndim - 1,), (1,)), ((), ()))
    of_x = jax.lax.dot_general(gradient, weights.astype(x.dtype), along_outputs)
    rows, columns = x.reshape(-1, x.shape[-1]), gradient.reshape(-1, weights.shape[-1])
    along_rows = (((0,), (0,)), ((), ()))
    of_weights = jax.lax.dot_general(
        rows, columns, along_rows, preferred_element_type=weights.dtype
    )
    return of_x, of_weights


product.defvjp(_product_forward, _product_backward)


@jax.custom_vjp
def add_offset(x: jax.Array, offset: jax.Array) -> jax.Array:
    """`[..., N] + [N]` in the precision of x; the gradient is summed in float32."""
    return x + offset.astype(x.dtype)


def _add_offset_forward(x: jax.Array, offset: jax.Array) -> Any:
    return add_offset(x, offset), None


def _add_offset_backward(_: None, gradient: jax.Array) -> Any:
    others = tuple(range(gradient.ndim - 1))
    return gradient, jnp.sum(gradient, axis=others, dtype=jnp.float32)


add_offset.defvjp(_add_offset_forward, _add_offset_backward)


class Dense(nn.Module):
    """A dense layer with orthogonal initial weights, in the precision of its input."""

    features: int
    scale: float = 2**0.5
    use_bias: bool = True

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """`[..., K]` to `[..., features]`."""
        shape = (x.shape[-1], self.features)
        out = product(x, self.param("kernel", orthogonal(self.scale), shape))
        if not self.use_bias:
            return out
        zeros = nn.initializers.zeros_init()
        return add_offset(out, self.param("bias", zeros, (self.features,)))


def as_numbers(copies: jax.Array, precision: str = "float32") -> jax.Array:
    """To numbers, after rearranging: flags and bytes are copied as such.

    The barrier keeps XLA from converting before it copies; with bfloat16, which is for
    accelerators, it does both in one pass.
    """
    if copies.dtype == jnp.dtype(precision):
        return copies
    if precision == "float32":
        copies = jax.lax.optimization_barrier(copies)
    return copies.astype(precision)


class PatchConv(nn.Module):
    """A convolution, stride 1, no padding, as patch extraction and a matrix product."""

    features: int
    kernel: int
    precision: str = "float32"

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        """Convolve images `[..., H, W, C]` to `[..., H', W', features]`."""
        columns = as_numbers(patches(images, self.kernel), self.precision)
        return Dense(self.features)(columns)


class RowConv(nn.Module):
    """A convolution of small grids, stride 1, no padding, one product per row.

    All windows of a row at once: the kernel is spread over a banded matrix, which
    multiplies `kernel` rows of the grid. That is W / kernel times the arithmetic of
    `PatchConv`, but it copies whole rows instead of single cells and multiplies larger
    matrices: on a CPU faster with few filters, and forwards.
    """

    features: int
    kernel: int
    precision: str = "float32"

    @nn.compact
    def __call__(self, grids: jax.Array) -> jax.Array:
        """Convolve grids `[..., H, W, C]` to `[..., H', W', features]`."""
        height, width, channels = grids.shape[-3:]
        rows, columns = height - self.kernel + 1, width - self.kernel + 1
        shape = (self.kernel, self.kernel, channels, self.features)
        flat = (self.kernel * self.kernel * channels, self.features)
        kernel = self.param("kernel", lambda key: orthogonal()(key, flat)).reshape(
            shape
        )
        bias = self.param("bias", nn.initializers.zeros_init(), (self.features,))
        shifts = jnp.stack([jnp.eye(width, columns, -j) for j in range(self.kernel)])
        banded = jnp.einsum("jwo,ijcf->iwcof", shifts, kernel)
        lines = grids.reshape(*grids.shape[:-3], height, width * channels)
        stacked = jnp.concatenate(
            [lines[..., i : i + rows, :] for i in range(self.kernel)], axis=-1
        )
        out = product(
            as_numbers(stacked, self.precision),
            banded.reshape(stacked.shape[-1], columns * self.features),
        )
        return add_offset(out.reshape(*out.shape[:-1], columns, self.features), bias)


def to_blocks(images: jax.Array, before: int, after: int) -> jax.Array:
    """Pad pictures `[..., H, W, C]` with zeros and cut them into blocks of 2×2 pixels.

    A 4×4 convolution with stride 2 of a picture is a 2×2 one with stride 1 of its
    blocks: a quarter of the copies, and its gradient need not be spread out.

    Returns:
        `[..., H', W', 4·C]` with H' = (before + H + after) / 2.
    """
    around = (before, after)
    edges = [(0, 0)] * (images.ndim - 3) + [around, around, (0, 0)]
    images = jnp.pad(images, edges)
    height, width, channels = images.shape[-3:]
    shape = (*images.shape[:-3], height // 2, 2, width // 2, 2, channels)
    blocks = jnp.swapaxes(images.reshape(shape), -4, -3)
    return blocks.reshape(*blocks.shape[:-3], 4 * channels)


# Of 4 pixels in a row, which lie over the first and the second of two cells of 4 pixels:
# all over the first, or two over each.
OVER_CELLS = (((1, 1, 1, 1), (0, 0, 0, 0)), ((1, 1, 0, 0), (0, 0, 1, 1)))


class EnlargedConv(nn.Module):
    """The 4×4 convolution with stride 2 of grids whose cells became 4×4 pixels each.

    Every window sees at most 2×2 cells, and all pixels of a cell are equal: the kernel's
    weights are added up first, and multiply cells. The numbers are those of a
    convolution of the enlarged picture with two pixels of zeros around it (2·H + 1
    windows in a column), for a third of the arithmetic and a twelfth of the copies.
    They come in blocks as `to_blocks(…, 1, 2)` makes them, ready for the next one.
    """

    features: int
    precision: str = "float32"

    @nn.compact
    def __call__(self, grids: jax.Array) -> jax.Array:
        """From cells `[..., H, W, C]` to `[..., H + 2, W + 2, 4·features]`."""
        height, width, channels = grids.shape[-3:]
        flat = (4 * 4 * channels, self.features)
        kernel = self.param("kernel", orthogonal(), flat)
        bias = self.param("bias", nn.initializers.zeros_init(), (self.features,))
        over = jnp.array(OVER_CELLS, kernel.dtype)
        # Indices: p, q window of a block; a, b cell; k, l pixel; channel and feature.
        weights = jnp.einsum(
            "pak,qbl,klcf->abcpqf",
            over,
            over,
            kernel.reshape(4, 4, channels, self.features),
        )
        edges = [(0, 0)] * (grids.ndim - 3) + [(1, 2), (1, 2), (0, 0)]
        cells = as_numbers(patches(jnp.pad(grids, edges), 2), self.precision)
        out = product(cells, weights.reshape(cells.shape[-1], 4 * self.features))
        out = add_offset(out, jnp.tile(bias, 4))
        inside = self._inside(height)[:, None, :, None] & self._inside(width)[:, None]
        mask = jnp.repeat(inside.reshape(height + 2, width + 2, 4), self.features, -1)
        return jnp.where(mask, out, 0)

    def _inside(self, cells: int) -> jax.Array:
        """Which windows of which block there are, `[cells + 2, 2]`; others are 0."""
        window = 2 * jnp.arange(cells + 2)[:, None] - 1 + jnp.arange(2)
        return (window >= 0) & (window <= 2 * cells)


class GridTorso(nn.Module):
    """Features of a small grid: one 3×3 convolution, then a dense layer."""

    filters: int = 16
    hidden: int = 128

    @nn.compact
    def __call__(self, observations: jax.Array, extra: jax.Array) -> jax.Array:
        """From grids `[..., H, W, C]` and further features `[..., E]`."""
        x = nn.relu(PatchConv(self.filters, 3)(observations))
        x = x.reshape(*x.shape[:-3], -1)
        return nn.relu(dense_with_extra(self.hidden, x, extra))


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


def dense_with_extra(features: int, x: jax.Array, extra: jax.Array) -> Any:
    """A dense layer on `[x, extra]`, without copying x to concatenate."""
    main = Dense(features)(x)
    if extra.shape[-1] == 0:
        return main
    return main + Dense(features, use_bias=False)(extra.astype(x.dtype))


def orthogonal(scale: float = 2**0.5) -> Any:
    """Orthogonal initial weights, one matrix at a time even under `vmap`.

    A batch of QR decompositions blocks all of XLA's CPU threads when there are few of
    them: on two cores initialising several runs or members would hang (jaxlib 0.10).
    """
    draw = nn.initializers.orthogonal(scale)

    def init(key: jax.Array, shape: Sequence[int], dtype: Any = jnp.float32) -> Any:
        one = jax.custom_batching.sequential_vmap(lambda key: draw(key, shape, dtype))
        return one(key)

    return init
