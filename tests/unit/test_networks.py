"""Layers against JAX's own convolution, and the sizes of the paper's network."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

from termdp.layers import (
    EnlargedConv,
    GridConv,
    PatchConv,
    fastest_precision,
    orthogonal,
    patches,
    precompute_weights,
    product,
    to_blocks,
)
from termdp.networks import GridTorso, ImageTorso, enlarge


def convolution(images, kernel, stride, padding):
    """`[N, H, W, C]` with a kernel `[k, k, C, F]`, by the library."""
    return jax.lax.conv_general_dilated(
        images,
        kernel,
        (stride, stride),
        padding,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(("size", "kernel"), [(7, 3), (10, 4), (8, 2), (5, 5)])
def test_patch_convolution_is_a_convolution(size, kernel):
    images, bias = numbers(0, 2, size, size + 2, 3), numbers(1, 5)
    weights = numbers(2, kernel, kernel, 3, 5)
    dense = {"kernel": weights.reshape(-1, 5), "bias": bias}
    found = jax.jit(PatchConv(5, kernel).apply)({"params": {"Dense_0": dense}}, images)
    expected = convolution(images, weights, 1, "VALID") + bias
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(("size", "edges"), [(42, (1, 1)), (21, (1, 2)), (6, (0, 0))])
def test_blocks_make_large_strided_windows_small_ones(size, edges):
    images, weights = numbers(0, 2, size, size, 3), numbers(1, 4, 4, 3, 5)
    # Weights of a 4×4 window, by block of 2×2 and by pixel in the block.
    by_block = weights.reshape(2, 2, 2, 2, 3, 5).transpose(0, 2, 1, 3, 4, 5)
    found = patches(to_blocks(images, *edges), 2) @ by_block.reshape(-1, 5)
    expected = convolution(images, weights, 2, (edges, edges))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_an_enlarged_grid_need_not_be_enlarged():
    grids, outer = numbers(0, 2, 10, 10, 3), numbers(1, 2, 12, 12, 4 * 5)
    params = {"kernel": numbers(2, 4 * 4 * 3, 5), "bias": numbers(3, 5)}

    def from_cells(params):
        return EnlargedConv(5).apply({"params": params}, grids)

    def from_pixels(params):
        kernel = params["kernel"].reshape(4, 4, 3, 5)
        picture = convolution(enlarge(grids, 42), kernel, 2, "SAME") + params["bias"]
        assert picture.shape == (2, 21, 21, 5)
        return to_blocks(picture, 1, 2)

    def made(function):
        gradients = jax.grad(lambda p: (function(p) ** 2 * outer).sum())
        return function(params), gradients(params)

    for found, expected in zip(
        jax.tree.leaves(jax.jit(made, static_argnums=0)(from_cells)),
        jax.tree.leaves(jax.jit(made, static_argnums=0)(from_pixels)),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("rows", [None, 0, 1, 2, 3, 4])
def test_grid_convolution_is_a_convolution(kernel, rows):
    grids, bias = numbers(0, 2, 6, 8, 3), numbers(1, 5)
    weights = numbers(2, kernel, kernel, 3, 5)
    params = {"kernel": weights.reshape(-1, 5), "bias": bias}
    found = jax.jit(GridConv(5, kernel, rows=rows).apply)({"params": params}, grids)
    expected = convolution(grids, weights, 1, "VALID") + bias
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(
    "layer", [PatchConv(5, 3), GridConv(5, 3, rows=0), GridConv(5, 3, rows=2)]
)
@pytest.mark.parametrize("dtype", [bool, np.uint8])
def test_flags_and_bytes_count_as_numbers(layer, dtype):
    grids = numbers(0, 2, 6, 8, 3) > 0
    params = layer.init(jax.random.key(0), grids.astype(np.float32))
    expected = layer.apply(params, grids.astype(np.float32))
    np.testing.assert_array_equal(layer.apply(params, grids.astype(dtype)), expected)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("torso", [GridTorso, ImageTorso])
def test_precomputed_weights_are_the_weights(torso, precision):
    trunk = torso(precision=precision)
    grids, extra = numbers(0, 2, 10, 10, 3) > 0, numbers(1, 2, 2)
    params = trunk.init(jax.random.key(0), grids, extra)
    assert set(params) == {"params"}
    prepared = precompute_weights(trunk, params, grids, extra)
    expected = trunk.apply(params, grids, extra)
    np.testing.assert_array_equal(trunk.apply(prepared, grids, extra), expected)
    # They are what is multiplied with: the parameters' kernels are not asked again.
    doubled = prepared | {
        "precomputed": jax.tree.map(lambda x: 2 * x, prepared["precomputed"])
    }
    assert not np.allclose(trunk.apply(doubled, grids, extra), expected)


def test_unknown_precisions_are_refused():
    with pytest.raises(ValueError, match="expected precision .* got 'float8'"):
        fastest_precision("float8")


@pytest.mark.parametrize("lead", [(), (4,), (2, 3)])
def test_product_and_its_gradients_are_those_of_a_product(lead):
    x, weights, outer = numbers(0, *lead, 6), numbers(1, 6, 5), numbers(2, *lead, 5)

    def loss(multiply, x, weights):
        return (multiply(x, weights) ** 2 * outer).sum()

    def gradients(multiply):
        return jax.value_and_grad(lambda *args: loss(multiply, *args), (0, 1))(
            x, weights
        )

    def under_vmap(multiply):
        return jax.vmap(multiply, (None, 0))(x, np.stack([weights, -weights]))

    for made in (gradients, under_vmap):
        for found, expected in zip(
            jax.tree.leaves(made(product)),
            jax.tree.leaves(made(jnp.matmul)),
            strict=True,
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_patches_by_hand():
    image = jnp.arange(9.0).reshape(3, 3, 1)
    assert patches(image, 2).tolist() == [
        [[0, 1, 3, 4], [1, 2, 4, 5]],
        [[3, 4, 6, 7], [4, 5, 7, 8]],
    ]


def test_blocks_by_hand():
    image = jnp.arange(1, 10).reshape(3, 3, 1)
    assert to_blocks(image, 1, 0).tolist() == [
        [[0, 0, 0, 1], [0, 0, 2, 3]],
        [[0, 4, 0, 7], [5, 6, 8, 9]],
    ]


def test_leading_axes_do_not_matter():
    images = numbers(0, 2, 3, 6, 6, 2)
    cut = jax.jit(lambda images: patches(images, 3))
    np.testing.assert_array_equal(np.asarray(cut(images))[1, 2], cut(images[1, 2]))


def test_enlarge_by_hand():
    grid = jnp.array([[1, 2], [3, 4]])[..., None]
    assert enlarge(grid, 5)[..., 0].tolist() == [
        [1, 1, 2, 2, 0],
        [1, 1, 2, 2, 0],
        [3, 3, 4, 4, 0],
        [3, 3, 4, 4, 0],
        [0, 0, 0, 0, 0],
    ]
    assert enlarge(grid, 2) is grid
    with pytest.raises(ValueError, match="at most 1×1 cells, got 2×2"):
        enlarge(grid, 1)


def test_a_minatar_grid_becomes_42_by_42():
    # 10 cells of 4 make 40; one row of zeros on each side.
    large = np.asarray(enlarge(jnp.ones((10, 10, 4)), 42))
    assert large.shape == (42, 42, 4)
    assert large[1:41, 1:41].all()
    assert large.sum() == 40 * 40 * 4


def test_image_network_goes_from_42_over_21_and_11_to_1(key):
    torso, extra = ImageTorso(), jnp.zeros((2, 3))
    params = jax.eval_shape(torso.init, key, jnp.ones((2, 10, 10, 4)), extra)["params"]
    shapes = {name: layer["kernel"].shape for name, layer in flat(params).items()}
    assert sorted(shapes.values()) == sorted(
        [
            (4 * 4 * 4, 16),
            (4 * 4 * 16, 32),
            (11 * 11 * 32, 256),  # 42 -> 21 -> 11: the third kernel covers it all
            (256, 400),
            (3, 400),
            (400, 256),
        ]
    )


@pytest.mark.slow
def test_cells_and_their_picture_give_the_same_features(key):
    grids, extra, torso = numbers(0, 2, 10, 10, 4), numbers(1, 2, 3), ImageTorso()
    of_cells = torso.init(key, grids, extra)["params"]
    # The picture's first layer is cut into blocks, the cells' is not.
    kernel = of_cells["EnlargedConv_0"]["kernel"]
    kernel = kernel.reshape(2, 2, 2, 2, 4, 16).transpose(0, 2, 1, 3, 4, 5)
    first = {"kernel": kernel.reshape(-1, 16), "bias": jnp.zeros(16)}
    of_picture = dict(of_cells)
    del of_picture["EnlargedConv_0"]
    of_picture["PatchConv_1"] = of_cells["PatchConv_0"]
    of_picture["PatchConv_0"] = {"Dense_0": first}
    found = torso.apply({"params": of_cells}, grids, extra)
    expected = torso.apply({"params": of_picture}, enlarge(grids, 42), extra)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def flat(params):
    found = {}
    for name, part in params.items():
        if "kernel" in part:
            found[name] = part
        else:
            found |= {f"{name}/{k}": v for k, v in flat(part).items()}
    return found


def matrices_of_qr(jaxpr):
    """Number of axes of every operand of a QR decomposition in a program."""
    found = []
    for equation in jaxpr.eqns:
        if "qr" in equation.primitive.name or "householder" in equation.primitive.name:
            found += [equation.invars[0].aval.ndim]
        for inner in jaxprs_in_params(equation.params):
            found += matrices_of_qr(inner)
    return found


def test_initial_weights_are_made_one_matrix_at_a_time():
    # A batch of QR decompositions blocks XLA's thread pool on two cores for ever.
    def init(key):
        return orthogonal(2.0)(key, (6, 3))

    keys = jax.random.split(jax.random.key(0), 4).reshape(2, 2)
    twice = jax.vmap(jax.vmap(init))
    axes = matrices_of_qr(jax.make_jaxpr(twice)(keys).jaxpr)
    assert set(axes) == {2}, axes
    weights = np.asarray(jax.jit(twice)(keys))
    assert weights.shape == (2, 2, 6, 3)
    for one in weights.reshape(4, 6, 3):
        np.testing.assert_allclose(one.T @ one, 4 * np.eye(3), atol=1e-5)
    assert not np.allclose(weights[0, 0], weights[0, 1])
