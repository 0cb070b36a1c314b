"""A traced JAX function as an ONNX graph, for the operations that our networks are made of.

Each equation of the jaxpr becomes one or a few nodes; what depends on constants alone is worked
out here. The first dimension of the inputs is free (`BATCH`). An operation without a translation
raises `Untranslatable`; nothing is left out or approximated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import export

BATCH = "batch"
#: Operators are those of this version, the file's layout of that one: both read since 2023.
OPSET, IR_VERSION = 18, 9


class Untranslatable(ValueError):
    """A function that ONNX, or we, have no words for; names the operation."""


def translate(
    function: Callable[..., Mapping[str, Any]],
    inputs: Mapping[str, jax.ShapeDtypeStruct],
    name: str,
    notes: Mapping[str, str] | None = None,
) -> Any:
    """The ONNX model of `function(**inputs) -> {name: array}`.

    Args:
      inputs: of one row each; the model takes any number of rows, [B, ...].
      notes: metadata of the model.

    Raises Untranslatable.
    """
    import onnx
    from onnx import helper

    (rows,) = export.symbolic_shape("b")
    given = {k: jax.ShapeDtypeStruct((rows, *x.shape), x.dtype) for k, x in inputs.items()}
    traced, shapes = jax.make_jaxpr(lambda tree: function(**tree), return_shape=True)(given)
    graph = _Graph(next(iter(given)))
    names = sorted(given)  # the order of a flattened dict
    outs = graph.inline(traced, names)
    results = sorted(shapes)
    for out, result in zip(outs, results, strict=True):
        graph.add("Identity", [out], output=result)

    def described(key: str, x: Any) -> Any:
        dims = [d if isinstance(d, int) else BATCH for d in x.shape]
        return helper.make_tensor_value_info(key, _onnx_type(x.dtype), dims)

    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            name,
            [described(key, given[key]) for key in given],
            [described(key, shapes[key]) for key in results],
            graph.tensors,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="jaxgames",
    )
    helper.set_model_props(model, dict(notes or {}))
    onnx.checker.check_model(model, full_check=True)
    return model


def _onnx_type(dtype: Any) -> int:
    from onnx import helper

    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


class _Graph:
    """Nodes and constants so far. A value is the name (str) of a tensor, or an array."""

    def __init__(self, first_input: str):
        self.nodes: list[Any] = []
        self.tensors: list[Any] = []
        self.first_input = first_input
        self._named: dict[tuple, str] = {}
        self._count = 0
        self._rows: str | None = None

    def fresh(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def name(self, value: Any) -> str:
        """The tensor of a value; equal constants are stored once."""
        if isinstance(value, str):
            return value
        from onnx import numpy_helper

        array = np.ascontiguousarray(value)
        key = (array.dtype.str, np.shape(value), array.tobytes())
        if key not in self._named:
            self._named[key] = self.fresh()
            tensor = numpy_helper.from_array(array.reshape(np.shape(value)), self._named[key])
            self.tensors.append(tensor)
        return self._named[key]

    def add(
        self, op: str, inputs: Sequence[Any], output: str | None = None, outputs: int = 1, **attrs
    ) -> Any:
        """A node; returns the name of its output, or their list where there are several."""
        from onnx import helper

        names = [output or self.fresh() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, [self.name(x) for x in inputs], names, **attrs))
        return names[0] if outputs == 1 else names

    def rows(self) -> str:
        """int64[1], the number of rows."""
        if self._rows is None:
            shape = self.add("Shape", [self.first_input])
            self._rows = self.add("Slice", [shape, *_ints([0], [1])])
        return self._rows

    def inline(self, closed: Any, arguments: Sequence[Any]) -> list[Any]:
        """The outputs of a closed jaxpr for these inputs."""
        jaxpr = closed.jaxpr
        values = dict(zip(jaxpr.constvars, map(np.asarray, closed.consts), strict=True))
        values |= dict(zip(jaxpr.invars, arguments, strict=True))

        def read(atom: Any) -> Any:
            return np.asarray(atom.val, atom.aval.dtype) if hasattr(atom, "val") else values[atom]

        for eqn in jaxpr.eqns:
            outs = self.equation(eqn, [read(atom) for atom in eqn.invars])
            values |= dict(zip(eqn.outvars, outs, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def equation(self, eqn: Any, inputs: list[Any]) -> list[Any]:
        for key in ("jaxpr", "call_jaxpr"):
            inner = eqn.params.get(key)
            if hasattr(inner, "consts") and eqn.primitive.name not in _CONTROL:
                return self.inline(inner, inputs)
        fixed = all(isinstance(d, int) for v in eqn.outvars for d in v.aval.shape)
        known = eqn.primitive.name != "dim_as_value"  # the number of rows, which only a call tells
        if known and fixed and not any(isinstance(x, str) for x in inputs):
            out = eqn.primitive.bind(*inputs, **eqn.params)
            return [np.asarray(x) for x in (out if eqn.primitive.multiple_results else [out])]
        if eqn.primitive.name not in _WORDS:
            raise Untranslatable(f"{eqn.primitive.name}: no translation of this operation to ONNX")
        out = _WORDS[eqn.primitive.name](self, eqn, inputs)
        return out if isinstance(out, list) else [out]

    def shaped(self, value: Any, shape: Sequence[Any]) -> str:
        """`value` in another shape, of which one dimension may hang on the number of rows."""
        free = [d for d in shape if not isinstance(d, int)]
        if len(free) > 1:
            raise Untranslatable(f"reshape: two free dimensions in {tuple(shape)}")
        target = [d if isinstance(d, int) else -1 for d in shape]
        return self.add("Reshape", [value, *_ints(target)])


#: They hold jaxprs, but do more than call them.
_CONTROL = {"scan", "while", "cond"}


def _ints(*lists: Sequence[int]) -> list[np.ndarray]:
    return [np.asarray(x, np.int64) for x in lists]


def _plain(op: str) -> Callable:
    """An operation that ONNX has under this name."""
    return lambda graph, eqn, inputs: graph.add(op, inputs)


def _negated(op: str) -> Callable:
    return lambda graph, eqn, inputs: graph.add("Not", [graph.add(op, inputs)])


def _rsqrt(graph, eqn, inputs):
    return graph.add("Reciprocal", [graph.add("Sqrt", inputs)])


def _square(graph, eqn, inputs):
    return graph.add("Mul", inputs * 2)


def _erfc(graph, eqn, inputs):
    one = np.asarray(1, eqn.invars[0].aval.dtype)
    return graph.add("Sub", [one, graph.add("Erf", inputs)])


def _power(graph, eqn, inputs):
    exponent = np.asarray(eqn.params["y"], eqn.invars[0].aval.dtype)
    return graph.add("Pow", [*inputs, exponent])


def _select(graph, eqn, inputs):
    which, *cases = inputs
    if eqn.invars[0].aval.dtype != np.bool_ or len(cases) != 2:
        raise Untranslatable("select_n: between more than two")
    if eqn.invars[0].aval.shape == () and isinstance(which, np.ndarray):
        return graph.add("Identity", [cases[int(which)]])
    return graph.add("Where", [which, cases[1], cases[0]])


def _cast(graph, eqn, inputs):
    return graph.add("Cast", inputs, to=_onnx_type(eqn.params["new_dtype"]))


def _reshape(graph, eqn, inputs):
    if eqn.params.get("dimensions") is not None:
        raise Untranslatable("reshape: of a transposed array")
    return graph.shaped(inputs[0], eqn.outvars[0].aval.shape)


def _reshaped(graph, eqn, inputs):
    return graph.shaped(inputs[0], eqn.outvars[0].aval.shape)


def _broadcast(graph, eqn, inputs):
    target, places = eqn.outvars[0].aval.shape, eqn.params["broadcast_dimensions"]
    has = eqn.invars[0].aval.shape
    spread = [1] * len(target)
    for place, size in zip(places, has, strict=True):
        spread[place] = size
    value = inputs[0]
    if tuple(spread) != tuple(has):
        value = graph.shaped(value, spread)
    if tuple(spread) == tuple(target):
        return graph.add("Identity", [value])
    parts: list[Any] = []
    for old, new in zip(spread, target, strict=True):
        if isinstance(new, int):
            parts.append(np.asarray([new], np.int64))
        elif not isinstance(old, int):
            parts.append(np.asarray([1], np.int64))  # as it is
        elif str(new) == "b":
            parts.append(graph.rows())
        else:
            raise Untranslatable(f"broadcast_in_dim: to {new} rows")
    if all(isinstance(part, np.ndarray) for part in parts):
        shape = np.concatenate(parts)
    else:
        shape = graph.add("Concat", parts, axis=0)
    return graph.add("Expand", [value, shape])


def _transpose(graph, eqn, inputs):
    return graph.add("Transpose", inputs, perm=[int(i) for i in eqn.params["permutation"]])


def _concatenate(graph, eqn, inputs):
    return graph.add("Concat", inputs, axis=int(eqn.params["dimension"]))


def _stack(graph, eqn, inputs):
    axis = int(eqn.params["axis"])
    parts = [graph.add("Unsqueeze", [x, *_ints([axis])]) for x in inputs]
    return graph.add("Concat", parts, axis=axis)


def _slice(graph, eqn, inputs):
    p, shape = eqn.params, eqn.invars[0].aval.shape
    steps = p["strides"] or [1] * len(shape)
    cut = []
    for axis, (start, end, step, size) in enumerate(
        zip(p["start_indices"], p["limit_indices"], steps, shape, strict=True)
    ):
        if isinstance(size, int):
            cut.append((int(start), int(end), axis, int(step)))
        elif start != 0 or end != size or step != 1:
            raise Untranslatable("slice: of the rows")
    starts, ends, axes, steps = zip(*cut, strict=True)
    return graph.add("Slice", [*inputs, *_ints(starts, ends, axes, steps)])


def _gather(graph, eqn, inputs):
    """A slice, or places along one axis, that are known: what an index becomes beside a free
    dimension; or rows of a table that are looked up."""
    numbers, places = eqn.params["dimension_numbers"], inputs[1]
    shape, sizes = eqn.invars[0].aval.shape, eqn.params["slice_sizes"]
    if not isinstance(places, np.ndarray):
        return _looked_up(graph, eqn, inputs)
    if numbers.operand_batching_dims:
        raise Untranslatable("gather: of another part of each row")
    whole = [size == has for size, has in zip(sizes, shape, strict=True)]
    if places.ndim == 2 and len(numbers.start_index_map) == 1:
        (axis,) = numbers.start_index_map
        others = tuple(i for i in range(len(shape)) if i != axis)
        along = numbers.collapsed_slice_dims == (axis,) and numbers.offset_dims == others
        if along and all(whole[i] for i in others):
            rows = np.clip(places[:, 0], 0, shape[axis] - 1).astype(np.int64)
            return graph.add("Gather", [inputs[0], rows], axis=int(axis))
    if places.ndim != 1 or len(numbers.offset_dims) != len(eqn.outvars[0].aval.shape):
        raise Untranslatable("gather: of more than a slice, or places along one axis")
    starts = dict(zip(numbers.start_index_map, places.tolist(), strict=True))
    cut = []
    for axis, (size, has) in enumerate(zip(sizes, shape, strict=True)):
        if isinstance(has, int):
            start = min(max(starts.get(axis, 0), 0), has - size)
            cut.append((start, start + size, axis, 1))
        elif not whole[axis]:
            raise Untranslatable("gather: of some of the rows")
    found = graph.add("Slice", [inputs[0], *_ints(*zip(*cut, strict=True))])
    return graph.shaped(found, eqn.outvars[0].aval.shape)


def _looked_up(graph, eqn, inputs):
    """Rows of a table [N, ...] at places int[..., 1]; what is outside is clipped, or filled in."""
    numbers, mode = eqn.params["dimension_numbers"], eqn.params["mode"]
    (table, *row), at = (v.aval.shape for v in eqn.invars)
    whole = numbers.start_index_map == numbers.collapsed_slice_dims == (0,)
    whole = whole and isinstance(table, int) and not numbers.operand_batching_dims
    out = tuple(range(len(at) - 1, len(at) - 1 + len(row)))
    if not whole or numbers.offset_dims != out or eqn.params["slice_sizes"] != (1, *row):
        raise Untranslatable("gather: at places that hang on the input, but for rows of a table")
    place = eqn.invars[1].aval.dtype.type
    places = graph.add("Squeeze", [inputs[1], *_ints([len(at) - 1])])
    safe = graph.add("Min", [graph.add("Max", [places, place(0)]), place(table - 1)])
    found = graph.add("Gather", [inputs[0], safe], axis=0)
    if mode is not jax.lax.GatherScatterMode.FILL_OR_DROP:
        return found
    if eqn.params["fill_value"] is None:
        raise Untranslatable("gather: with nothing to fill in")
    fill = np.asarray(eqn.params["fill_value"], eqn.invars[0].aval.dtype)
    inside = graph.add("Unsqueeze", [graph.add("Equal", [places, safe]), *_ints(out)])
    return graph.add("Where", [inside, found, fill])


def _remainder(graph, eqn, inputs):
    return graph.add("Mod", inputs, fmod=1)  # of the sign of what is divided


def _scatter_add(graph, eqn, inputs):
    """Numbers added in each row of [B, A] at places [B, K, 1] of that row; others are dropped."""
    numbers = eqn.params["dimension_numbers"]
    rowwise = (
        len(eqn.invars[1].aval.shape) == 3
        and numbers.operand_batching_dims == numbers.scatter_indices_batching_dims == (0,)
        and numbers.inserted_window_dims == numbers.scatter_dims_to_operand_dims == (1,)
        and not numbers.update_window_dims
        and eqn.params["mode"] is not jax.lax.GatherScatterMode.CLIP
    )
    if not rowwise:
        raise Untranslatable("scatter-add: of more than numbers in each row")
    onto, places, add = inputs
    place, number = (v.aval.dtype.type for v in eqn.invars[1:])
    places = graph.add("Squeeze", [places, *_ints([2])])
    above = graph.add("GreaterOrEqual", [places, np.asarray(0, place)])
    below = graph.add("Less", [places, np.asarray(eqn.invars[0].aval.shape[1], place)])
    inside = graph.add("And", [above, below])
    places = graph.add("Where", [inside, places, np.asarray(0, place)])
    add = graph.add("Where", [inside, add, np.asarray(0, number)])
    return graph.add("ScatterElements", [onto, places, add], axis=1, reduction="add")


def _split(graph, eqn, inputs):
    sizes, axis = eqn.params["sizes"], int(eqn.params["axis"])
    found = graph.add("Split", [*inputs, *_ints(sizes)], outputs=len(sizes), axis=axis)
    return found if isinstance(found, list) else [found]


def _pad(graph, eqn, inputs):
    config = eqn.params["padding_config"]
    if any(inner for _, _, inner in config):
        raise Untranslatable("pad: between elements")
    pads = [low for low, _, _ in config] + [high for _, high, _ in config]
    return graph.add("Pad", [inputs[0], *_ints(pads), inputs[1]], mode="constant")


def _reduce(op: str) -> Callable:
    def word(graph, eqn, inputs):
        return graph.add(op, [*inputs, *_ints(eqn.params["axes"])], keepdims=0)

    return word


def _reduce_bool(op: str) -> Callable:
    def word(graph, eqn, inputs):
        number = graph.add("Cast", inputs, to=_onnx_type(np.int32))
        found = graph.add(op, [number, *_ints(eqn.params["axes"])], keepdims=0)
        return graph.add("Cast", [found], to=_onnx_type(np.bool_))

    return word


def _argmax(graph, eqn, inputs):
    (axis,) = eqn.params["axes"]
    found = graph.add("ArgMax", inputs, axis=int(axis), keepdims=0)
    return graph.add("Cast", [found], to=_onnx_type(eqn.params["index_dtype"]))


def _dot(graph, eqn, inputs):
    (left, right), (left_batch, right_batch) = eqn.params["dimension_numbers"]
    a, b = (len(v.aval.shape) for v in eqn.invars)
    if (tuple(left), tuple(right), tuple(left_batch), b) == ((a - 1,), (0,), (), 2):
        return graph.add("MatMul", inputs)
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    first = [next(letters) for _ in range(a)]
    second = [next(letters) for _ in range(b)]
    pairs = zip((*left, *left_batch), (*right, *right_batch), strict=True)
    for i, j in pairs:
        second[j] = first[i]
    out = [first[i] for i in left_batch]
    out += [x for i, x in enumerate(first) if i not in (*left, *left_batch)]
    out += [x for i, x in enumerate(second) if i not in (*right, *right_batch)]
    equation = f"{''.join(first)},{''.join(second)}->{''.join(out)}"
    return graph.add("Einsum", inputs, equation=equation)


def _conv(graph, eqn, inputs):
    p = eqn.params
    if any(d != 1 for d in p["lhs_dilation"]) or p["batch_group_count"] != 1:
        raise Untranslatable("conv_general_dilated: a transposed convolution")
    numbers = p["dimension_numbers"]
    x = graph.add("Transpose", [inputs[0]], perm=list(numbers.lhs_spec))
    kernel = inputs[1]
    if isinstance(kernel, np.ndarray):
        kernel = np.transpose(kernel, numbers.rhs_spec)
    else:
        kernel = graph.add("Transpose", [kernel], perm=list(numbers.rhs_spec))
    pads = [low for low, _ in p["padding"]] + [high for _, high in p["padding"]]
    out = graph.add(
        "Conv",
        [x, kernel],
        pads=[int(n) for n in pads],
        strides=[int(n) for n in p["window_strides"]],
        dilations=[int(n) for n in p["rhs_dilation"]],
        group=int(p["feature_group_count"]),
    )
    return graph.add("Transpose", [out], perm=[int(i) for i in np.argsort(numbers.out_spec)])


_WORDS: dict[str, Callable] = {
    "abs": _plain("Abs"),
    "add": _plain("Add"),
    "and": _plain("And"),
    "argmax": _argmax,
    "broadcast_in_dim": _broadcast,
    "concatenate": _concatenate,
    "conv_general_dilated": _conv,
    "convert_element_type": _cast,
    "copy": _plain("Identity"),
    "cos": _plain("Cos"),
    "div": _plain("Div"),
    "dot_general": _dot,
    "eq": _plain("Equal"),
    "erf": _plain("Erf"),
    "erfc": _erfc,
    "exp": _plain("Exp"),
    "expand_dims": _reshaped,
    "gather": _gather,
    "ge": _plain("GreaterOrEqual"),
    "gt": _plain("Greater"),
    "integer_pow": _power,
    "le": _plain("LessOrEqual"),
    "log": _plain("Log"),
    "logistic": _plain("Sigmoid"),
    "lt": _plain("Less"),
    "max": _plain("Max"),
    "min": _plain("Min"),
    "mul": _plain("Mul"),
    "ne": _negated("Equal"),
    "neg": _plain("Neg"),
    "not": _plain("Not"),
    "or": _plain("Or"),
    "pad": _pad,
    "reduce_and": _reduce_bool("ReduceMin"),
    "reduce_max": _reduce("ReduceMax"),
    "reduce_min": _reduce("ReduceMin"),
    "reduce_or": _reduce_bool("ReduceMax"),
    "reduce_sum": _reduce("ReduceSum"),
    "rem": _remainder,
    "reshape": _reshape,
    "rsqrt": _rsqrt,
    "scatter-add": _scatter_add,
    "select_n": _select,
    "sign": _plain("Sign"),
    "sin": _plain("Sin"),
    "slice": _slice,
    "split": _split,
    "sqrt": _plain("Sqrt"),
    "square": _square,
    "squeeze": _reshaped,
    "stack": _stack,
    "stop_gradient": _plain("Identity"),
    "sub": _plain("Sub"),
    "tanh": _plain("Tanh"),
    "transpose": _transpose,
}
