"""Layers against JAX's own convolution, and the sizes of the paper's network."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

from termdp.networks import (
    ImageTorso,
    PatchConv,
    RowConv,
    enlarge,
    orthogonal,
    patches,
    product,
)


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


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding"),
    [
        (7, 3, 1, "VALID"),
        (7, 3, 1, "SAME"),
        (10, 4, 2, "SAME"),
        (9, 4, 2, "SAME"),
        (9, 4, 2, "VALID"),
        (8, 2, 3, "SAME"),
    ],
)
def test_patch_convolution_is_a_convolution(size, kernel, stride, padding):
    images, bias = numbers(0, 2, size, size + 2, 3), numbers(1, 5)
    weights = numbers(2, kernel, kernel, 3, 5)
    layer = PatchConv(5, kernel, stride, padding)
    dense = {"kernel": weights.reshape(-1, 5), "bias": bias}
    found = jax.jit(layer.apply)({"params": {"Dense_0": dense}}, images)
    expected = convolution(images, weights, stride, padding) + bias
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("kernel", [1, 3])
def test_row_convolution_is_a_convolution(kernel):
    grids, bias = numbers(0, 2, 6, 8, 3), numbers(1, 5)
    weights = numbers(2, kernel, kernel, 3, 5)
    params = {"kernel": weights.reshape(-1, 5), "bias": bias}
    found = jax.jit(RowConv(5, kernel).apply)({"params": params}, grids)
    expected = convolution(grids, weights, 1, "VALID") + bias
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("layer", [PatchConv(5, 3), RowConv(5, 3)])
@pytest.mark.parametrize("dtype", [bool, np.uint8])
def test_flags_and_bytes_count_as_numbers(layer, dtype):
    grids = numbers(0, 2, 6, 8, 3) > 0
    params = layer.init(jax.random.key(0), grids.astype(np.float32))
    expected = layer.apply(params, grids.astype(np.float32))
    np.testing.assert_array_equal(layer.apply(params, grids.astype(dtype)), expected)


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
    assert patches(image, 2, 1, "VALID").tolist() == [
        [[0, 1, 3, 4], [1, 2, 4, 5]],
        [[3, 4, 6, 7], [4, 5, 7, 8]],
    ]
    with pytest.raises(ValueError, match="SAME or VALID, got 'FULL'"):
        patches(image, 2, 1, "FULL")


def test_leading_axes_do_not_matter():
    images = numbers(0, 2, 3, 6, 6, 2)
    cut = jax.jit(lambda images: patches(images, 3, 2, "SAME"))
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

    def twice(images):
        first = patches(images, 4, 2, "SAME")
        return first, patches(first, 4, 2, "SAME")

    first, second = jax.eval_shape(twice, jnp.ones((42, 42, 1)))
    assert (first.shape[:2], second.shape[:2]) == ((21, 21), (11, 11))


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
