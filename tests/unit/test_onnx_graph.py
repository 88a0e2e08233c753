"""Every operation that is translated computes in ONNX Runtime what JAX computes."""

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
import pytest
from jax import export

from termdp.onnx_graph import ALIKE, OPSET, REDUCTIONS, RULES, graph_of

WEIGHTS = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)

# Name: a function of x `[batch, 3, 4]` and y `[batch, 4]`, both within (0.1, 2).
FUNCTIONS = {
    "arithmetic": lambda x, y: -x + y[:, None] * 2 - x / 3,
    "functions": lambda x, y: jnp.exp(x) + jnp.log(x) + jnp.tanh(x) + jnp.sqrt(x),
    "logistic": lambda x, y: jax.nn.sigmoid(x - 1),
    "powers": lambda x, y: x**3 + jnp.square(x) + jax.lax.rsqrt(x) + x**0.7,
    "log1p": lambda x, y: jnp.log1p(x),
    "softplus": lambda x, y: jax.nn.softplus(x - 1),
    "rounding": lambda x, y: jnp.floor(3 * x) + jnp.ceil(x) + jnp.sign(x - 1),
    "abs": lambda x, y: jnp.abs(x - 1),
    "clip": lambda x, y: jnp.clip(x, 0.5, 1.0),
    "clamp": lambda x, y: jax.lax.clamp(0.5, x, 1.0),
    "extremes": lambda x, y: jnp.maximum(x, 1) + jnp.minimum(x, y[:, None]),
    "comparisons": lambda x, y: jnp.where(
        ((x > 1) & (x >= 1)) | ~((x < 0.5) | (x <= 0.2)), x, 0.0
    ),
    "equal": lambda x, y: jnp.where(x == x.max(-1, keepdims=True), x, -1.0),
    "unequal": lambda x, y: jnp.where(x != x.max(-1, keepdims=True), x, -1.0),
    "flags": lambda x, y: (x > 1).astype(jnp.float32),
    "softmax": lambda x, y: jax.nn.softmax(x) + jax.nn.log_softmax(x),
    "reductions": lambda x, y: x.sum((1, 2)) + x.max(1).min(-1),
    "spread": lambda x, y: x.mean(1) + x.std(1),
    "argmax": lambda x, y: jnp.argmax(x, axis=-1).astype(jnp.float32),
    "one_hot": lambda x, y: jax.nn.one_hot(jnp.argmax(y, axis=-1), 4),
    "product": lambda x, y: x @ WEIGHTS[0],
    "products": lambda x, y: jnp.einsum("bk,mkn->mbn", y, WEIGHTS).transpose(1, 0, 2),
    "products_each": lambda x, y: jnp.einsum("bmk,mkn->bmn", x, WEIGHTS),
    "shapes": lambda x, y: x.reshape(-1, 12)[:, None, :].squeeze(1).reshape(-1, 2, 6),
    "swapped": lambda x, y: jnp.swapaxes(x, 1, 2),
    "parts": lambda x, y: x[:, 1:, 2] + x[:, 0, :2],
    "strides": lambda x, y: x[:, ::2],
    "joined": lambda x, y: jnp.concatenate([x, y[:, None]], axis=1),
    "stacked": lambda x, y: jnp.stack([y, 2 * y], axis=-1),
    "halves": lambda x, y: jnp.multiply(*jnp.split(x, 2, axis=-1)),
    "edges": lambda x, y: jnp.pad(x, [(0, 0), (1, 2), (0, 1)]),
    "repeated": lambda x, y: jnp.repeat(x, 2, axis=1) + jnp.tile(x, (1, 2, 1)),
    "constants": lambda x, y: jnp.zeros((x.shape[0], 2)) + jnp.arange(2.0) * 3,
    "barrier": lambda x, y: jax.lax.optimization_barrier(x) + 1,
    "inner": lambda x, y: jax.jit(lambda z: jax.nn.relu(z - 1))(x),
}


def session(function):
    shapes = {"x": ((3, 4), jnp.float32), "y": ((4,), jnp.float32)}
    model = graph_of(lambda i: {"out": function(i["x"], i["y"])}, shapes, "test")
    return model, onnxruntime.InferenceSession(model.SerializeToString())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_computes_what_jax_does(name):
    _, ready = session(FUNCTIONS[name])
    rng = np.random.default_rng(1)
    for rows in (1, 3):
        x = rng.uniform(0.1, 2, (rows, 3, 4)).astype(np.float32)
        y = rng.uniform(0.1, 2, (rows, 4)).astype(np.float32)
        feeds = {n.name: {"x": x, "y": y}[n.name] for n in ready.get_inputs()}
        (found,) = ready.run(None, feeds)
        expected = FUNCTIONS[name](jnp.asarray(x), jnp.asarray(y))
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_every_translation_is_tried_above():
    (batch,) = export.symbolic_shape("batch")
    shapes = ((batch, 3, 4), (batch, 4))
    inputs = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    seen = set()

    def look(jaxpr):
        for equation in jaxpr.eqns:
            seen.add(equation.primitive.name)
            inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
            if inner is not None:
                look(inner.jaxpr)

    for function in FUNCTIONS.values():
        look(jax.make_jaxpr(function)(*inputs).jaxpr)
    assert {*ALIKE, *REDUCTIONS, *RULES} <= seen


def test_what_depends_on_no_input_is_ready_in_the_file():
    model, _ = session(lambda x, y: y @ jnp.asarray(WEIGHTS).sum(0))
    kinds = [node.op_type for node in model.graph.node]
    assert kinds == ["MatMul", "Identity"]
    assert [i.dims for i in model.graph.initializer] == [[4, 5]]


def test_what_no_output_needs_is_left_out():
    model, _ = session(lambda x, y: (jnp.exp(x), jnp.tanh(y))[1])
    assert [node.op_type for node in model.graph.node] == ["Tanh", "Identity"]
    assert model.opset_import[0].version == OPSET


def test_another_operation_is_refused_by_name():
    with pytest.raises(ValueError, match="translates to ONNX, got 'erf'"):
        session(lambda x, y: jax.lax.erf(y))


def test_places_that_depend_on_the_input_are_refused():
    with pytest.raises(ValueError, match="slices at fixed places"):
        session(lambda x, y: jnp.take_along_axis(y, y.astype(jnp.int32), axis=1))
