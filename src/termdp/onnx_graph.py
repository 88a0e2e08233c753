"""A JAX function as an ONNX graph, for any number of rows.

The function is traced with a symbolic batch size, and its operations are translated one
by one. Values that depend on no input are computed now, so a graph holds final weights.
Values that no output needs are left out. Only operations that agents use are supported;
an error names any other.
"""

import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from jax import export
from jax.extend import core
from onnx import TensorProto, helper, numpy_helper

OPSET = 18
IR_VERSION = 8
BATCH = "batch"
TYPES = {
    np.dtype("float32"): TensorProto.FLOAT,
    np.dtype("int32"): TensorProto.INT32,
    np.dtype("int64"): TensorProto.INT64,
    np.dtype("bool"): TensorProto.BOOL,
}
# Operations that ONNX has under another name, with the same inputs.
ALIKE = {
    "abs": "Abs",
    "add": "Add",
    "and": "And",
    "ceil": "Ceil",
    "div": "Div",
    "eq": "Equal",
    "exp": "Exp",
    "floor": "Floor",
    "ge": "GreaterOrEqual",
    "gt": "Greater",
    "le": "LessOrEqual",
    "log": "Log",
    "logistic": "Sigmoid",
    "lt": "Less",
    "max": "Max",
    "min": "Min",
    "mul": "Mul",
    "neg": "Neg",
    "not": "Not",
    "or": "Or",
    "pow": "Pow",
    "sign": "Sign",
    "sqrt": "Sqrt",
    "stop_gradient": "Identity",
    "sub": "Sub",
    "tanh": "Tanh",
}
REDUCTIONS = {
    "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin",
    "reduce_sum": "ReduceSum",
}

Shape = tuple[int, ...]
Function = Callable[[Mapping[str, jax.Array]], Mapping[str, jax.Array]]


def graph_of(
    function: Function, inputs: Mapping[str, tuple[Shape, Any]], name: str
) -> onnx.ModelProto:
    """The ONNX model of a function.

    Args:
        function: from named arrays to named arrays; the batch is the first axis of all.
        inputs: shape of one row and type of each input.
        name: of the graph.
    """
    (batch,) = export.symbolic_shape(BATCH)
    arguments = {
        key: jax.ShapeDtypeStruct((batch, *shape), dtype)
        for key, (shape, dtype) in inputs.items()
    }
    traced, outputs = jax.make_jaxpr(function, return_shape=True)(arguments)
    graph = _Graph(next(iter(inputs)))
    # A dictionary's entries are traced in the order of their names.
    found = graph.translate(traced.jaxpr, traced.consts, sorted(inputs))
    for key, value in zip(sorted(outputs), found, strict=True):
        graph.nodes.append(helper.make_node("Identity", [graph.name_of(value)], [key]))
    model = helper.make_model(
        helper.make_graph(
            _needed(graph.nodes, set(outputs)),
            name,
            [_described(key, arguments[key]) for key in inputs],
            [_described(key, outputs[key]) for key in outputs],
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="termdp",
    )
    used = {one for node in model.graph.node for one in node.input}
    model.graph.initializer.extend(
        numpy_helper.from_array(array, key)
        for key, array in graph.constants.items()
        if key in used
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def _described(name: str, value: Any) -> onnx.ValueInfoProto:
    shape = [size if isinstance(size, int) else BATCH for size in value.shape]
    return helper.make_tensor_value_info(name, TYPES[np.dtype(value.dtype)], shape)


def _needed(nodes: Sequence[onnx.NodeProto], wanted: set[str]) -> list[onnx.NodeProto]:
    kept = []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            wanted |= set(node.input)
            kept.append(node)
    return kept[::-1]


class _Graph:
    """Nodes and constants so far. A value is the name of a tensor, or an array."""

    def __init__(self, sized: str):
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self._known: dict[tuple[Any, ...], str] = {}
        self._batch = self._batch_of(sized)

    def _batch_of(self, name: str) -> str:
        return self.node("Shape", [name], start=0, end=1)

    def node(self, kind: str, inputs: Sequence[Any], **attributes: Any) -> str:
        """One more node; the name of its output."""
        output = f"{kind.lower()}_{len(self.nodes)}"
        names = [self.name_of(value) for value in inputs]
        self.nodes.append(helper.make_node(kind, names, [output], **attributes))
        return output

    def name_of(self, value: Any) -> str:
        """Name of a tensor; arrays become constants, equal arrays share one."""
        if isinstance(value, str):
            return value
        array = np.asarray(value)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = f"constant_{len(self._known)}"
            self.constants[self._known[key]] = array
        return self._known[key]

    def translate(
        self, jaxpr: core.Jaxpr, constants: Sequence[Any], inputs: Sequence[Any]
    ) -> list[Any]:
        """Values of a program's outputs, from those of its inputs."""
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, constants, strict=True))
        values.update(zip(jaxpr.invars, inputs, strict=True))

        def value_of(atom: Any) -> Any:
            if isinstance(atom, core.Literal):
                aval: Any = atom.aval
                return np.asarray(atom.val, aval.dtype)
            return values[atom]

        for equation in jaxpr.eqns:
            found = self._equation(equation, [value_of(one) for one in equation.invars])
            values.update(zip(equation.outvars, found, strict=True))
        return [value_of(one) for one in jaxpr.outvars]

    def _equation(self, equation: Any, inputs: list[Any]) -> list[Any]:
        inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
        if inner is not None:
            return self.translate(inner.jaxpr, inner.consts, inputs)
        outputs = [variable.aval for variable in equation.outvars]
        fixed = all(isinstance(size, int) for out in outputs for size in out.shape)
        if fixed and not any(isinstance(value, str) for value in inputs):
            made = equation.primitive.bind(*map(jnp.asarray, inputs), **equation.params)
            return list(made) if equation.primitive.multiple_results else [made]
        name = equation.primitive.name
        if name in ALIKE:
            return [self.node(ALIKE[name], inputs)]
        if name in REDUCTIONS:
            axes = _whole(equation.params["axes"])
            return [self.node(REDUCTIONS[name], [inputs[0], axes], keepdims=0)]
        if name not in RULES:
            raise ValueError(
                f"expected operations that termdp translates to ONNX, got {name!r}: "
                "add a rule to termdp.onnx_graph"
            )
        return RULES[name](self, equation, inputs)

    def shape(self, sizes: Sequence[Any]) -> Any:
        """Sizes of a tensor for operations that take them as an input."""
        if all(isinstance(size, int) for size in sizes):
            return _whole(sizes)
        parts = [
            _whole([size]) if isinstance(size, int) else self._batch for size in sizes
        ]
        return self.node("Concat", parts, axis=0)

    def reshape(self, value: Any, sizes: Sequence[Any]) -> str:
        """At most one of the sizes depends on the batch."""
        inner = [size if isinstance(size, int) else -1 for size in sizes]
        assert inner.count(-1) <= 1, f"more than one size depends on the batch: {sizes}"
        return self.node("Reshape", [value, _whole(inner)])


def _whole(numbers: Iterable[int]) -> np.ndarray:
    return np.asarray(list(numbers), np.int64)


def _broadcast(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    before, after = equation.invars[0].aval.shape, equation.params["shape"]
    axes = equation.params["broadcast_dimensions"]
    placed: list[Any] = [1] * len(after)
    for axis, size in zip(axes, before, strict=True):
        placed[axis] = size
    value = inputs[0]
    if len(before) != len(after):
        value = graph.reshape(value, placed)
    if any(a is not b and a != b for a, b in zip(placed, after, strict=True)):
        value = graph.node("Expand", [value, graph.shape(after)])
    return [value]


def _cast(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    kind = TYPES[np.dtype(equation.params["new_dtype"])]
    return [graph.node("Cast", inputs, to=kind)]


def _reshape(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    return [graph.reshape(inputs[0], equation.outvars[0].aval.shape)]


def _concatenate(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    return [graph.node("Concat", inputs, axis=equation.params["dimension"])]


def _stack(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    axis = equation.params["axis"]
    rows = [graph.node("Unsqueeze", [value, _whole([axis])]) for value in inputs]
    return [graph.node("Concat", rows, axis=axis)]


def _split(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    axis, start, parts = equation.params["axis"], 0, []
    for size in equation.params["sizes"]:
        bounds = [_whole([start]), _whole([start + size]), _whole([axis])]
        parts.append(graph.node("Slice", [inputs[0], *bounds]))
        start += size
    return parts


def _gather(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    """Slices: tracing with a batch of any size writes them as gathers."""
    numbers = equation.params["dimension_numbers"]
    sizes = equation.params["slice_sizes"]
    axes = [int(axis) for axis in numbers.start_index_map]
    gone = [int(axis) for axis in numbers.collapsed_slice_dims]
    places = None if isinstance(inputs[1], str) else np.asarray(inputs[1])
    if places is not None and places.shape == (len(axes),):
        ends = [start + sizes[axis] for start, axis in zip(places, axes, strict=True)]
        bounds = [_whole(places), _whole(ends), _whole(axes)]
        value = graph.node("Slice", [inputs[0], *bounds])
        return [graph.node("Squeeze", [value, _whole(gone)]) if gone else value]
    others = [axis for axis in range(len(sizes)) if axis not in axes]
    in_place = axes == gone and list(numbers.offset_dims) == others
    if places is not None and len(axes) == 1 and places.ndim == 2 and in_place:
        rows = places[:, 0].astype(np.int64)
        return [graph.node("Gather", [inputs[0], rows], axis=axes[0])]
    raise ValueError(
        "expected slices at fixed places, which ONNX has, got places that depend on "
        "the input"
    )


def _squeeze(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    return [graph.node("Squeeze", [inputs[0], _whole(equation.params["dimensions"])])]


def _transpose(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    order = [int(axis) for axis in equation.params["permutation"]]
    return [graph.node("Transpose", inputs, perm=order)]


def _tile(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    return [graph.node("Tile", [inputs[0], _whole(equation.params["reps"])])]


def _pad(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    before, after, between = zip(*equation.params["padding_config"], strict=True)
    assert not any(between), "cells are never spread out"
    return [graph.node("Pad", [inputs[0], _whole([*before, *after]), inputs[1]])]


def _select(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    which, if_false, if_true = inputs
    return [graph.node("Where", [which, if_true, if_false])]


def _clamp(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    low, value, high = inputs
    return [graph.node("Min", [graph.node("Max", [value, low]), high])]


def _argmax(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    (axis,) = equation.params["axes"]
    found = graph.node("ArgMax", inputs, axis=int(axis), keepdims=0)
    return [graph.node("Cast", [found], to=TYPES[equation.outvars[0].aval.dtype])]


def _square(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    return [graph.node("Mul", [inputs[0], inputs[0]])]


def _integer_pow(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    return [graph.node("Pow", [inputs[0], np.float32(equation.params["y"])])]


def _rsqrt(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    return [graph.node("Reciprocal", [graph.node("Sqrt", inputs)])]


def _log1p(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    return [graph.node("Log", [graph.node("Add", [inputs[0], np.float32(1)])])]


def _not_equal(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    return [graph.node("Not", [graph.node("Equal", inputs)])]


def _barrier(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    return inputs


def _product(graph: _Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    """A sum of products over shared axes, in Einstein's notation."""
    (left, right), (left_batch, right_batch) = equation.params["dimension_numbers"]
    ranks = [variable.aval.ndim for variable in equation.invars]
    letters = iter(string.ascii_lowercase)
    of_left = [next(letters) for _ in range(ranks[0])]
    of_right = [next(letters) for _ in range(ranks[1])]
    shared = zip((*left, *left_batch), (*right, *right_batch), strict=True)
    for mine, its in shared:
        of_right[its] = of_left[mine]
    batch = [of_left[axis] for axis in left_batch]
    summed = [of_left[axis] for axis in left]
    rest = [one for one in (*of_left, *of_right) if one not in (*batch, *summed)]
    if ranks[1] == 2 and not batch and tuple(left) == (ranks[0] - 1,) and right == (0,):
        return [graph.node("MatMul", inputs)]
    words = f"{''.join(of_left)},{''.join(of_right)}->{''.join(batch + rest)}"
    return [graph.node("Einsum", inputs, equation=words)]


RULES: dict[str, Callable[[_Graph, Any, list[Any]], list[Any]]] = {
    "argmax": _argmax,
    "broadcast_in_dim": _broadcast,
    "clamp": _clamp,
    "concatenate": _concatenate,
    "convert_element_type": _cast,
    "dot_general": _product,
    "gather": _gather,
    "integer_pow": _integer_pow,
    "log1p": _log1p,
    "ne": _not_equal,
    "optimization_barrier": _barrier,
    "pad": _pad,
    "reshape": _reshape,
    "rsqrt": _rsqrt,
    "select_n": _select,
    "split": _split,
    "square": _square,
    "squeeze": _squeeze,
    "stack": _stack,
    "tile": _tile,
    "transpose": _transpose,
}
