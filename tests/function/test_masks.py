"""Products with upstream gradients: ordinary ones where a proof allows it, and only there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinygrad_cg as tf
from tinygrad_cg._core.primitive import OPS
from tinygrad_cg._core.tensor import Aval
from tinygrad_cg._function.graph.interpret import interpreter
from tinygrad_cg._function.graph.masks import Polynomials
from tinygrad_cg._function.graph.simplify import simplify
from tinygrad_cg._function.graph.values import FuncGraph, Value, constant, operation

POINTS = [0.0, -0.0, 1e-320, 1e-200, -1e-160, 0.5, -1.0, 3.0, 1e100, -1e160, 1.7e308]
POINTS = np.array([*POINTS, np.inf, -np.inf, np.nan])
AVAL = Aval((POINTS.size**2,), np.dtype(np.float64))
X, Y = [grid.reshape(-1) for grid in np.meshgrid(POINTS, POINTS)]
NUMBERS = (1.0, -1.0, 2.0, 0.25, -100.0, 1e300, 1e-300)

steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "multiply", "subtract", "square", "negative", "exp", "number"]),
        st.integers(0, 30),
        st.integers(0, 30),
    ),
    min_size=1,
    max_size=12,
)


def build(chosen):
    """Values of two inputs: each step takes earlier ones."""
    inputs = [Value(AVAL), Value(AVAL)]
    values = list(inputs)
    for name, i, j in chosen:
        x, y = values[i % len(values)], values[j % len(values)]
        if name == "number":
            y, name = constant(np.array(NUMBERS[j % len(NUMBERS)])), "multiply"
        operands = [x, y] if name in ("add", "multiply", "subtract") else [x]
        values.append(operation(OPS[name], operands, {}))
    return inputs, values


@settings(max_examples=300, deadline=None)
@given(steps, st.integers(0, 30), st.integers(0, 30))
def test_what_is_called_ordinary_is_so_at_every_point(chosen, i, j):
    inputs, values = build(chosen)
    upstream, slope = values[i % len(values)], values[j % len(values)]
    if Polynomials().may_mask(upstream, slope):
        return
    with np.errstate(all="ignore"):
        run = interpreter(FuncGraph(inputs, [upstream, slope]))
        p, s = run([X, Y])
    assert np.isfinite(np.broadcast_to(s, p.shape)[p == 0]).all()


@settings(max_examples=60, deadline=None)
@given(steps, st.integers(0, 30), st.integers(0, 30))
def test_a_simplified_graph_gives_the_same_numbers(chosen, i, j):
    inputs, values = build(chosen)
    pair = [values[i % len(values)], values[j % len(values)]]
    masked = operation(OPS["multiply_upstream"], pair, {})
    gated = operation(OPS["unless_masked"], [values[-1], pair[1], masked], {})
    tangent = operation(OPS["multiply_tangent"], pair, {})
    graph = FuncGraph(inputs, [masked, gated, tangent])
    with np.errstate(all="ignore"):
        for got, expected in zip(
            interpreter(simplify(graph))([X, Y]), interpreter(graph)([X, Y]), strict=True
        ):
            np.testing.assert_array_equal(got, expected)


def names(function, x):
    return [
        value.primitive.name for value in tf.function(function).graph(x).values() if value.primitive
    ]


def power(count):
    def function(x):
        y = x
        for _ in range(count):
            y = y * x
        return tf.reduce_sum(y)

    return function


@pytest.mark.parametrize("count", [1, 3, 20])
def test_powers_by_products_need_no_mask(count):
    x = tf.constant([1.0, 2.0], tf.float64)
    first = tf.grad(power(count))
    second = tf.grad(lambda x: tf.reduce_sum(first(x)))
    for gradient in (first, second):
        assert not {"multiply_upstream", "unless_masked", "where"} & set(names(gradient, x))


def test_what_a_mask_keeps_out_stays_masked():
    x = tf.constant([1.0, 2.0], tf.float64)

    def f(x):
        return tf.reduce_sum(tf.where(x > 0.0, x * x, 0.0))

    assert "multiply_upstream" in names(tf.grad(f), x)


def test_long_chains_are_looked_at_without_recursion():
    value = x = Value(AVAL)
    for _ in range(5000):
        value = operation(OPS["add"], [value, x], {})
    graph = FuncGraph([x], [operation(OPS["multiply_upstream"], [value, x], {})])
    (output,) = simplify(graph).outputs
    assert output.primitive.name == "multiply"


@pytest.mark.parametrize("name", ["multiply", "divide"])
def test_what_replaces_a_masked_product_has_its_shape(name):
    """Though the operand that is left out is the largest."""
    x, gate = (Value(Aval(shape, np.dtype(np.float64))) for shape in ((5,), (2, 5)))
    two = constant(np.array(2.0))
    slope = operation(OPS["divide"], [constant(np.array(1.0)), two], {})
    product = operation(OPS[f"{name}_upstream"], [x, two], {})
    slope = slope if name == "divide" else two
    masked = operation(OPS["unless_masked"], [gate, slope, product], {})
    total = operation(OPS["sum"], [masked], {"axis": (1,), "keepdims": False})
    graph = simplify(FuncGraph([x, gate], [total]))
    assert [value.primitive.name for value in graph.values() if value.primitive] == [
        name,
        "broadcast_to",
        "sum",
    ]
    row = np.arange(5.0)
    expected = row * 2.0 if name == "multiply" else row / 2.0
    result = interpreter(graph)([row, np.ones((2, 5))])[0]
    assert result.tolist() == [expected.sum()] * 2
