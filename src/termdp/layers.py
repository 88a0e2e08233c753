"""The layers of policies, values and cost networks.

Convolutions are written as copies and one matrix product: inside a scan, XLA's CPU
convolutions are several times slower, and on a GPU the product is as good. A kernel as
large as its input is simply a dense layer.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import flax.linen as nn
import jax
import jax.numpy as jnp

from termdp.settings import PRECISIONS


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
    """`[..., K] @ [K, N]`, with the gradient in the layout of the weights.

    JAX's own rule computes `[N, K]` and transposes it. On a CPU the optimiser then reads
    it across its rows, which is slower than all the rest of Adam.
    """
    return x @ weights


def _product_forward(x: jax.Array, weights: jax.Array) -> Any:
    return product(x, weights), (x, weights)


def _product_backward(inputs: Any, gradient: jax.Array) -> Any:
    x, weights = inputs
    along_outputs = (((gradient.ndim - 1,), (1,)), ((), ()))
    of_x = jax.lax.dot_general(gradient, weights, along_outputs)
    rows, columns = x.reshape(-1, x.shape[-1]), gradient.reshape(-1, weights.shape[-1])
    along_rows = (((0,), (0,)), ((), ()))
    return of_x, jax.lax.dot_general(rows, columns, along_rows)


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


PRECOMPUTED = "precomputed"


def precompute_weights(network: nn.Module, variables: Any, *inputs: Any) -> Any:
    """The variables of a network, with weights prepared for multiplication.

    Use it before a loop that calls the network many times: weights are then spread and
    rounded once, not in every step, since XLA does not move this out of the loop. XLA
    removes the rest of the call made here.
    """
    _, made = network.apply(variables, *inputs, mutable=[PRECOMPUTED])
    return {**variables, **made}


def weights_of(layer: nn.Module, make: Callable[[], jax.Array]) -> jax.Array:
    """The weights that a layer multiplies with: precomputed, or made now."""
    if layer.is_mutable_collection(PRECOMPUTED) and not layer.is_initializing():
        return layer.variable(PRECOMPUTED, "weights", make).value
    if layer.has_variable(PRECOMPUTED, "weights"):
        return cast(jax.Array, layer.get_variable(PRECOMPUTED, "weights"))
    return make()


class Dense(nn.Module):
    """A dense layer with orthogonal initial weights, in the precision of its input."""

    features: int
    scale: float = 2**0.5
    use_bias: bool = True

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """`[..., K]` to `[..., features]`."""
        shape = (x.shape[-1], self.features)
        kernel = self.param("kernel", orthogonal(self.scale), shape)
        out = product(x, weights_of(self, lambda: kernel.astype(x.dtype)))
        if not self.use_bias:
            return out
        zeros = nn.initializers.zeros_init()
        return add_offset(out, self.param("bias", zeros, (self.features,)))


def as_numbers(copies: jax.Array, precision: str = "float32") -> jax.Array:
    """Flags or bytes as numbers of a precision.

    Call it after rearranging, so that the small types are copied. The barrier keeps XLA
    from converting first. With bfloat16, which is for accelerators, there is none: XLA
    does both in one pass.
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


class GridConv(nn.Module):
    """A convolution of small grids, stride 1, no padding: one formula, two ways.

    By window, it is `PatchConv`. By rows, the kernel is spread over a banded matrix that
    makes `rows` rows of the output from `rows + kernel - 1` rows of the grid, all of
    their windows at once. That is several times the arithmetic, but copies whole rows
    instead of single cells and multiplies larger matrices. The parameters are the same.

    Attributes:
        features: channels of the output.
        kernel: height and width of a window.
        precision: of the product.
        rows: rows of the output per product; 0 goes by window, None takes the fastest
            way on this machine.
    """

    features: int
    kernel: int
    precision: str = "float32"
    rows: int | None = None

    @nn.compact
    def __call__(self, grids: jax.Array) -> jax.Array:
        """Convolve grids `[..., H, W, C]` to `[..., H', W', features]`."""
        height, width, channels = grids.shape[-3:]
        size = height - self.kernel + 1, width - self.kernel + 1
        flat = (self.kernel * self.kernel * channels, self.features)
        kernel = self.param("kernel", orthogonal(), flat)
        bias = self.param("bias", nn.initializers.zeros_init(), (self.features,))
        most = fastest_rows(self.features) if self.rows is None else self.rows
        rows = max((n for n in range(1, most + 1) if size[0] % n == 0), default=0)

        def weights() -> jax.Array:
            square = kernel.reshape(self.kernel, self.kernel, channels, -1)
            spread = banded(square, width, rows) if rows else kernel
            return spread.astype(self.precision)

        stacked = (
            stacked_rows(grids, self.kernel, rows)
            if rows
            else patches(grids, self.kernel)
        )
        out = product(as_numbers(stacked, self.precision), weights_of(self, weights))
        return add_offset(out.reshape(*grids.shape[:-3], *size, self.features), bias)


def fastest_rows(features: int) -> int:
    """Rows of `GridConv` per product (`docs/speed_profile.md`)."""
    if jax.default_backend() == "cpu":
        return 1 if features <= 8 else 0
    return 2


def stacked_rows(grids: jax.Array, kernel: int, rows: int) -> jax.Array:
    """The rows of grids `[..., H, W, C]` that each `rows` rows of a convolution see.

    Returns:
        `[..., H' / rows, (rows + kernel - 1)·W·C]`.
    """
    height, width, channels = grids.shape[-3:]
    last = height - kernel - rows + 1  # first row of the last block
    lines = grids.reshape(*grids.shape[:-3], height, width * channels)
    return jnp.concatenate(
        [lines[..., i : last + i + 1 : rows, :] for i in range(rows + kernel - 1)],
        axis=-1,
    )


def banded(kernel: jax.Array, width: int, rows: int) -> jax.Array:
    """A kernel `[k, k, C, F]` as the matrix that multiplies `stacked_rows`.

    Returns:
        `[(rows + k - 1)·W·C, rows·W'·F]`.
    """
    size, features = kernel.shape[0], kernel.shape[-1]
    columns = width - size + 1
    down = jnp.stack([jnp.eye(rows + size - 1, rows, -i) for i in range(size)])
    right = jnp.stack([jnp.eye(width, columns, -j) for j in range(size)])
    # Indices: i, j of the kernel; h, w of the grid; r, o of the output.
    spread = jnp.einsum("ihr,jwo,ijcf->hwcrof", down, right, kernel)
    return spread.reshape(-1, rows * columns * features)


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

        def weights() -> jax.Array:
            over = jnp.array(OVER_CELLS, kernel.dtype)
            # Indices: p, q window of a block; a, b cell; k, l pixel; channel, feature.
            added = jnp.einsum(
                "pak,qbl,klcf->abcpqf",
                over,
                over,
                kernel.reshape(4, 4, channels, self.features),
            )
            return added.reshape(-1, 4 * self.features).astype(self.precision)

        edges = [(0, 0)] * (grids.ndim - 3) + [(1, 2), (1, 2), (0, 0)]
        cells = as_numbers(patches(jnp.pad(grids, edges), 2), self.precision)
        out = product(cells, weights_of(self, weights))
        out = add_offset(out, jnp.tile(bias, 4))
        inside = self._inside(height)[:, None, :, None] & self._inside(width)[:, None]
        mask = jnp.repeat(inside.reshape(height + 2, width + 2, 4), self.features, -1)
        return jnp.where(mask, out, 0)

    def _inside(self, cells: int) -> jax.Array:
        """Which windows of which block there are, `[cells + 2, 2]`; others are 0."""
        window = 2 * jnp.arange(cells + 2)[:, None] - 1 + jnp.arange(2)
        return (window >= 0) & (window <= 2 * cells)


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


def fastest_precision(precision: str) -> str:
    """`auto` is bfloat16 on GPUs, where networks wait for memory, else float32."""
    if precision not in PRECISIONS:
        raise ValueError(
            f"expected precision to be one of {PRECISIONS}, got {precision!r}"
        )
    if precision != "auto":
        return precision
    return "float32" if jax.default_backend() == "cpu" else "bfloat16"
