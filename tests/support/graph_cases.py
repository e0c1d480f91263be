"""Graphs for tests of compiled programs: whole workloads, and random ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinygrad_cg._core.primitive import OPS
from tinygrad_cg._core.tensor import Aval
from tinygrad_cg._function.graph.interpret import interpreter
from tinygrad_cg._function.graph.values import FuncGraph, OutputItem, Value, constant, operation

FLOAT64 = np.dtype(np.float64)


def parameter(shape: tuple[int, ...], dtype: Any = FLOAT64) -> Value:
    return Value(Aval(shape, np.dtype(dtype)))


def apply(name: str, *inputs: Value, **params: Any) -> Value:
    return operation(OPS[name], inputs, params)


def number(value: float, dtype: Any = FLOAT64) -> Value:
    return constant(np.array(value, dtype))


def total(x: Value, axis: Sequence[int] | None = None, keepdims: bool = False) -> Value:
    axes = tuple(range(len(x.shape))) if axis is None else tuple(axis)
    return apply("sum", x, axis=axes, keepdims=keepdims)


def of_call(primitive: Any, operands: Sequence[np.ndarray], params: dict) -> FuncGraph:
    """The graph of one operation."""
    inputs = [parameter(operand.shape, operand.dtype) for operand in operands]
    value = operation(primitive, inputs, params)
    if isinstance(value.aval, list):
        return FuncGraph(inputs, [OutputItem(value, index) for index in range(len(value.aval))])
    return FuncGraph(inputs, [value])


# Workloads: values and gradients, as the rules of the operations make them -----------------------


def log1pexp(n: int, dtype: Any = FLOAT64) -> FuncGraph:
    """sum(log(1 + exp(x))) and its gradient, by the rule that is exact for large x."""
    x, unit = parameter((n,), dtype), number(1, dtype)
    power = apply("exp", x)
    upstream = apply("broadcast_to", unit, shape=(n,))
    slope = apply("subtract", unit, apply("divide", unit, apply("add", unit, power)))
    return FuncGraph([x], [total(apply("log1p", power)), apply("multiply", upstream, slope)])


def chain(n: int, dtype: Any = FLOAT64) -> FuncGraph:
    """sum(cos(exp(tanh(sin(x))))) and its gradient."""
    x = parameter((n,), dtype)
    b = apply("tanh", apply("sin", x))
    c = apply("exp", b)
    d = apply("negative", apply("multiply", apply("sin", c), c))
    d = apply("multiply", d, apply("subtract", number(1, dtype), apply("square", b)))
    return FuncGraph([x], [total(apply("cos", c)), apply("multiply", d, apply("cos", x))])


def cross_entropy(rows: int, columns: int, dtype: Any = FLOAT64) -> FuncGraph:
    """The mean cross-entropy of softmax rows, and its gradient."""
    x, y = parameter((rows, columns), dtype), parameter((rows, columns), dtype)
    logs = apply("log_softmax", x, axis=1)
    each = apply("negative", total(apply("multiply", y, logs), (1,)))
    loss = apply("mean", each, axis=(0,), keepdims=False)
    share = apply("divide", number(-1, dtype), number(rows, dtype))
    upstream = apply("multiply", apply("broadcast_to", share, shape=(rows, columns)), y)
    return FuncGraph([x, y], [loss, apply("log_softmax_pull", upstream, logs, axis=1)])


def layer_norm(rows: int, columns: int, dtype: Any = FLOAT64) -> FuncGraph:
    """Normalised rows, scaled and shifted; their sums over rows and over all."""
    x, scale, shift = (
        parameter((rows, columns), dtype),
        parameter((columns,), dtype),
        parameter((columns,), dtype),
    )
    away = apply("subtract", x, apply("mean", x, axis=(1,), keepdims=True))
    variance = apply("mean", apply("square", away), axis=(1,), keepdims=True)
    size = apply("sqrt", apply("add", variance, number(1e-5, dtype)))
    normal = apply("divide", away, size)
    y = apply("add", apply("multiply", normal, scale), shift)
    return FuncGraph([x, scale, shift], [y, total(y, (0,)), total(normal)])


def rosenbrock(n: int, dtype: Any = FLOAT64) -> FuncGraph:
    """The function of Rosenbrock, and its gradient: neighbours are read, and added to."""
    x = parameter((n,), dtype)
    ahead, behind = (slice(1, None),), (slice(None, -1),)
    a, b = apply("getitem", x, key=ahead), apply("getitem", x, key=behind)
    t = apply("subtract", a, apply("square", b))
    u = apply("subtract", number(1, dtype), b)
    hundred, two = number(100, dtype), number(2, dtype)
    value = total(apply("add", apply("multiply", hundred, apply("square", t)), apply("square", u)))
    by_a = apply("multiply", hundred, apply("multiply", t, two))
    by_b = apply("multiply", apply("negative", by_a), apply("multiply", b, two))
    by_b = apply("subtract", by_b, apply("multiply", u, two))
    back_a = apply("getitem_adjoint", by_a, shape=(n,), key=ahead)
    back_b = apply("getitem_adjoint", by_b, shape=(n,), key=behind)
    return FuncGraph([x], [value, apply("add", back_a, back_b)])


def perceptron(batch: int, sizes: tuple[int, int, int], dtype: Any = FLOAT64) -> FuncGraph:
    """A step of a network with one hidden layer: the loss, and the gradients of its weights."""
    width, hidden, classes = sizes
    shapes = [(batch, width), (batch, classes), (width, hidden), (hidden,), (hidden, classes)]
    x, y, w1, b1, w2 = inputs = [parameter(shape, dtype) for shape in shapes]
    h = apply("relu", apply("add", apply("matmul", x, w1), b1))
    logs = apply("log_softmax", apply("matmul", h, w2), axis=1)
    loss = apply("negative", total(apply("multiply", y, logs)))
    upstream = apply("negative", y)
    back = apply("multiply", apply("exp", logs), total(upstream, (1,), True))
    out = apply("subtract", upstream, back)
    by_h = apply("matmul", out, apply("transpose", w2, perm=(1, 0)))
    zero = number(0, dtype)
    by_z = apply("where", apply("greater", h, zero), by_h, zero)
    by_w2 = apply("matmul", apply("transpose", h, perm=(1, 0)), out)
    by_w1 = apply("matmul", apply("transpose", x, perm=(1, 0)), by_z)
    return FuncGraph(inputs, [loss, by_w1, total(by_z, (0,)), by_w2])


# Random graphs -----------------------------------------------------------------------------------

UNARY = ("exp", "tanh", "sin", "negative", "square", "sigmoid", "relu", "absolute", "floor")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum")
COMPARE = ("greater", "less_equal", "equal")


def random_graph(choose: Callable[[int], int], shape: tuple[int, int], steps: int) -> FuncGraph:
    """A graph of some steps; `choose(n)` is a number below n."""
    rows, columns = shape
    dtype = (FLOAT64, np.dtype(np.float32))[choose(2)]
    shapes = [shape, (columns,), (rows, 1), (), shape, (rows,)]
    inputs = [parameter(shape, dtype) for shape in shapes]
    values = list(inputs)
    for _ in range(steps):
        values.append(_step(choose, values, dtype))
    outputs = [values[-1 - choose(min(len(values), 6))] for _ in range(1 + choose(3))]
    return FuncGraph(inputs, outputs)


def _step(choose: Callable[[int], int], values: list[Value], dtype: np.dtype) -> Value:
    def pick() -> Value:
        return values[-1 - choose(len(values))]

    def fitting(x: Value) -> Value:
        fitting = [value for value in values if _broadcast(value.shape, x.shape)]
        return fitting[-1 - choose(len(fitting))]

    x, kind = pick(), choose(10)
    if kind <= 1:
        return apply(UNARY[choose(len(UNARY))], x)
    if kind <= 3:
        return apply(BINARY[choose(len(BINARY))], x, fitting(x))
    if kind == 4:
        test = apply(COMPARE[choose(len(COMPARE))], x, fitting(x))
        return apply("where", test, x, number(choose(3), dtype))
    if kind == 5:
        return apply("multiply", x, number(choose(5) / 4, dtype))
    if not x.shape:
        return apply("broadcast_to", x, shape=values[0].shape)
    axis = choose(len(x.shape))
    if kind == 9:
        return _lookup(choose, x)
    if kind == 6:
        name = ("sum", "max", "mean", "min")[choose(4)]
        axes = (axis,) if choose(3) else tuple(range(len(x.shape)))
        return apply(name, x, axis=axes, keepdims=bool(choose(2)))
    if kind == 7:
        start, size = choose(x.shape[axis]), x.shape[axis]
        key = (slice(None),) * axis + (slice(start, size),)
        part = apply("getitem", x, key=key)
        return apply("getitem_adjoint", apply("tanh", part), shape=x.shape, key=key)
    choice = choose(4)
    if choice == 0:
        return apply("reshape", x, shape=(int(np.prod(x.shape)),))
    if choice == 1:
        return apply("transpose", x, perm=tuple(reversed(range(len(x.shape)))))
    if choice == 2:
        return apply(("log_softmax", "softmax")[choose(2)], x, axis=axis)
    return apply("expand_dims", x, axis=axis)


def _lookup(choose: Callable[[int], int], x: Value) -> Value:
    """Elements or rows at indices, and added there."""
    shape, size = x.shape, x.shape[-1]
    index = constant(np.array([choose(2 * size) - size for _ in range(int(np.prod(shape[:-1])))]))
    lines = apply("reshape", index, shape=(*shape[:-1], 1))
    kind, axis = choose(4), len(shape) - 1
    if kind == 0:
        return apply("gather", x, constant(np.arange(-1, shape[0] - 1)), axis=0, batch_dims=0)
    if kind == 1:
        ones = apply("one_hot", lines, depth=size, axis=axis + 1, dtype=x.dtype)
        return apply("multiply", apply("reshape", ones, shape=shape), x)
    part = apply("take_along_axis", x, lines, axis=axis)
    if kind == 2:
        return part
    return apply("add_along_axis", apply("sin", part), lines, shape=shape, axis=axis)


def _broadcast(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    try:
        return int(np.prod(np.broadcast_shapes(shape, other))) <= 4096
    except ValueError:
        return False


# Comparing ---------------------------------------------------------------------------------------


def arrays_for(graph: FuncGraph, rng: np.random.Generator) -> list[np.ndarray]:
    return [np.asarray(rng.normal(size=value.shape)).astype(value.dtype) for value in graph.inputs]


def assert_same(
    program: Any, graph: FuncGraph, arrays: Sequence[np.ndarray], scale: float = 1
) -> None:
    """The program's outputs are the interpreter's, to rounding, and arrays of their own."""
    before = [array.copy() for array in arrays]
    result, wanted = program(arrays), interpreter(graph)(arrays)
    for actual, other in zip(result, wanted, strict=True):
        assert (actual.shape, actual.dtype) == (other.shape, other.dtype)
        assert actual.flags.c_contiguous
        assert actual.flags.writeable
        assert not any(np.may_share_memory(actual, array) for array in arrays)
        tolerance = scale * (1e-11 if other.dtype == np.float64 else 2e-4)
        np.testing.assert_allclose(actual, other, rtol=tolerance, atol=tolerance)
    for index, actual in enumerate(result):
        assert not any(np.may_share_memory(actual, other) for other in result[:index])
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)
