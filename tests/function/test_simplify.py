"""Graphs: printing, identities that keep every bit, keys, and cutting in two."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.peaks import peak_bytes
from tests.support.python import run_python
from tinygrad_cg._core.primitive import OPS
from tinygrad_cg._core.tensor import Aval
from tinygrad_cg._function.graph import interpret
from tinygrad_cg._function.graph.interpret import interpreter
from tinygrad_cg._function.graph.partition import cut
from tinygrad_cg._function.graph.simplify import simplify
from tinygrad_cg._function.graph.values import (
    FuncGraph,
    Value,
    constant,
    frozen,
    in_order,
    operation,
)

SPECIAL = np.array([[0.0, -0.0, 1.5], [np.inf, -np.inf, np.nan]])


def names(function, *args):
    """The operations of the graph of a function."""
    graph = tf.function(function).graph(*[tf.constant(arg) for arg in args])
    return [value.primitive.name for value in graph.values() if value.primitive is not None]


@pytest.mark.quick
@pytest.mark.parametrize(
    "function",
    [
        *(lambda x: x * 1, lambda x: 1.0 * x, lambda x: x / 1, lambda x: x - 0.0),
        *(lambda x: x + -0.0, lambda x: tf.negative(-x), lambda x: +x, lambda x: x**1),
        *(tf.identity, tf.stop_gradient, lambda x: tf.reshape(x, x.shape)),
        lambda x: tf.reshape(tf.reshape(x, [6]), [2, 3]),
        lambda x: tf.squeeze(tf.expand_dims(x, 0), 0),
        lambda x: tf.transpose(tf.transpose(x)),
        lambda x: tf.transpose(x, [0, 1]),
        lambda x: tf.broadcast_to(x, [2, 3]),
    ],
)
def test_what_changes_nothing_is_left_out(function):
    assert names(function, SPECIAL) == []
    result = tf.function(function)(tf.constant(SPECIAL)).numpy()
    np.testing.assert_array_equal(result, SPECIAL)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(SPECIAL))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("numbers", "is_part"),
    [
        *((1, True), ([1, 2], True), ([2, 1, 0], True), ([2, 0], True), ([0, 1, 2], True)),
        *(([0], True), ([1, 1], False), ([0, 1, 1], False), ([[0, 1]], False)),
    ],
)
def test_gathers_at_numbers_in_steps_are_parts(numbers, is_part, axis):
    x = np.array([*SPECIAL, [2.0, 3.0, 5e-324]])
    run = lambda x: tf.gather(x, numbers, axis=axis)
    assert ("gather" in names(run, x)) is not is_part
    np.testing.assert_array_equal(tf.function(run)(tf.constant(x)), run(tf.constant(x)))
    gradient = tf.grad(lambda x: tf.reduce_sum(run(x) ** 2))
    assert ("gather_adjoint" in names(gradient, x)) is not is_part
    np.testing.assert_array_equal(tf.function(gradient)(tf.constant(x)), gradient(tf.constant(x)))


@pytest.mark.parametrize(
    ("key", "count"),
    [
        ((slice(None, -1),), 1),
        ((Ellipsis, slice(None, None, -2)), 1),
        ((1, None), 1),
        ((np.array([0, 0, 1]),), 2),
        ((np.array([True, False]),), 2),
    ],
)
def test_gradients_of_the_same_part_are_put_in_place_once(key, count):
    def function(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            part = x[key]
        ways = (tf.exp(part), -part), (part * part, part)
        return [
            tape.gradient(part, x, tf.sin(a)) + tape.gradient(part, x, b * -0.0) for a, b in ways
        ]

    assert names(function, SPECIAL).count("getitem_adjoint") == 2 * count
    x = tf.constant(SPECIAL)
    for result, expected in zip(tf.function(function)(x), function(x), strict=True):
        np.testing.assert_array_equal(result.numpy(), expected.numpy())
        is_number = ~np.isnan(expected.numpy())  # the sign of NaN is anything
        signs = [np.signbit(result.numpy()[is_number]) for result in (result, expected)]
        np.testing.assert_array_equal(*signs)


def test_gradients_of_different_parts_are_put_in_place_each():
    def function(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x[1:] * x[:-1])
        return tape.gradient(y, x)

    assert names(function, np.arange(4.0)).count("getitem_adjoint") == 2


@pytest.mark.parametrize(
    ("parts", "joined"),
    [
        ([(0, 2), (2, 5), (5, 7)], 1),
        ([(3, 7), (0, 1), (1, 2), (2, 3)], 1),
        ([(0, 2), (3, 7)], 0),
        ([(0, 4), (3, 7)], 0),
        ([(0, 4), (4, 6)], 0),
    ],
    ids=["three", "four, in another order", "a gap", "an overlap", "not to the end"],
)
def test_gradients_of_parts_that_make_up_a_matrix_are_joined(parts, joined):
    def loss(x):
        return sum(tf.reduce_sum(tf.sin(x[:, start:other]) * other) for start, other in parts)

    x = np.random.default_rng(0).normal(size=(3, 7))
    assert names(tf.grad(loss), x).count("concatenate") == joined
    result = tf.function(tf.grad(loss))(tf.constant(x))
    np.testing.assert_allclose(result, tf.grad(loss)(tf.constant(x)), rtol=1e-15)


@pytest.mark.quick
@pytest.mark.parametrize(
    "function",
    [
        *(lambda x: x + 0.0, lambda x: x - -0.0, lambda x: x * 0.0, lambda x: 0.0 - x),
        *(lambda x: x - x, lambda x: x / x, lambda x: tf.cast(tf.cast(x, tf.float32), x.dtype)),
    ],
)
def test_what_changes_a_bit_is_kept(function):
    assert names(function, SPECIAL)
    x = tf.constant(SPECIAL)
    result, expected = tf.function(function)(x).numpy(), function(x).numpy()
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


def test_widening_and_back_is_nothing():
    assert names(lambda x: tf.cast(tf.cast(x, tf.float64), x.dtype), np.float32([1, 2])) == []


def test_equal_values_are_one_and_unused_ones_none():
    def f(x):
        tf.exp(x * 3)
        return tf.sin(x) * tf.sin(x) + tf.reduce_sum(x, 0) * tf.reduce_sum(x, axis=[0])

    assert sorted(names(f, SPECIAL)) == ["add", "multiply", "multiply", "sin", "sum"]
    parts = names(lambda x: x[np.array([0, 1])] * x[np.array([0, 1])], SPECIAL)
    assert parts == ["getitem", "multiply"]
    parts = names(lambda x: x[np.array([0, 1])] * x[np.array([1, 0])], SPECIAL)
    assert parts == ["getitem", "getitem", "multiply"]
    assert len(names(lambda x: tf.concat([x * 0.0, x * -0.0], 0), SPECIAL)) == 3


def test_small_constants_are_computed_and_large_ones_are_not():
    operations = names(lambda x: x * tf.reduce_sum(tf.exp(tf.constant([1.0, 2.0]))), SPECIAL[0])
    assert operations == ["multiply"]
    assert names(lambda x: x * tf.zeros([3], x.dtype), SPECIAL) == ["multiply"]
    graph = tf.function(lambda x: tf.sin(tf.zeros([10**6])) * x).graph(tf.constant(1.0))
    assert all(value.array is None or value.array.size == 1 for value in graph.values())


def test_repeats_that_an_operation_does_itself():
    assert names(lambda x: tf.broadcast_to(x[0, 0], x.shape) * x, SPECIAL) == [
        "getitem",
        "multiply",
    ]
    assert "broadcast_to" in names(lambda x: tf.sin(tf.broadcast_to(x[0], [5, 3])), SPECIAL)


def test_random_numbers_are_neither_merged_nor_dropped_nor_doubled():
    def f(x):
        a = tf.negative(-tf.random.uniform([3], dtype=tf.float64))
        tf.random.uniform([3])
        return a + tf.random.uniform([3], dtype=tf.float64) + x * a

    assert names(f, SPECIAL).count("draw") == 3


def test_users_operations_are_called_as_often_as_they_stand_there():
    calls = []
    op = tf.primitive("Counting", lambda x: calls.append(1) or x * 2, shape=lambda x: x.shape)
    f = tf.function(lambda x: op(x) + op(x))
    f(tf.constant(SPECIAL))
    calls.clear()
    f(tf.constant(SPECIAL))
    assert len(calls) == 2


@pytest.mark.quick
def test_printing():
    f = tf.function(lambda x, y: (tf.reduce_sum(x * y + 2.0), y))
    text = str(f.graph(tf.ones([2, 3]), tf.ones([3])))
    assert text.splitlines() == [
        "x0: float32(2, 3)",
        "x1: float32(3,)",
        "%0 = multiply(x0, x1)  float32(2, 3)",
        "%1 = add(%0, 2.0)  float32(2, 3)",
        "%2 = sum(%1, axis=(0, 1), keepdims=False)  float32()",
        "return %2, x1",
    ]


# Texts and keys ------------------------------------------------------------------------------

PROGRAM = """
import tinygrad_cg as tf
f = tf.function(lambda x: tf.reduce_sum(tf.exp(x[1:] * 2.5), 0))
print(f.graph(tf.ones([4, 3])))
"""


def test_the_text_of_a_graph_is_the_same_in_every_process():
    runs = [run_python(PROGRAM, PYTHONHASHSEED=seed).stdout for seed in ("1", "2")]
    assert runs[0] == runs[1] != ""


def test_texts_differ_where_programs_do():
    c = tf.constant([1.0, 2.0])
    functions = [
        *(lambda x: x * 2.0, lambda x: x * 3.0, lambda x: x + 2.0, lambda x: 2.0 - x),
        *(lambda x: x * 0.0, lambda x: x * -0.0, lambda x: x * c, lambda x: (x * 2.0, x)),
        *(lambda x: x[0], lambda x: x[1], lambda x: x[:1], lambda x: x**2.5, lambda x: x**1.5),
    ]
    prints = [str(tf.function(f).graph(tf.ones([2]))) for f in functions]
    assert len(set(prints)) == len(functions)
    assert str(tf.function(functions[0]).graph(tf.ones([3]))) not in prints
    again = tf.function(lambda x: x * tf.constant(2.0))
    assert str(again.graph(tf.ones([2]))) == prints[0]


def test_frozen_parameters():
    pairs = [(1, True), (1, 1.0), (0.0, -0.0), (slice(1), slice(2)), (np.ones(2), np.ones(3))]
    for key, other in [*pairs, ((1, 2), (1, 3)), (np.int32(1), np.int64(1))]:
        assert frozen(key) != frozen(other)
    assert frozen(float("nan")) == frozen(float("nan"))
    assert frozen({"b": [1], "a": slice(None)}) == frozen({"a": slice(None), "b": [1]})


# By hand -------------------------------------------------------------------------------------


def apply_by_name(name, *inputs, **params):
    return operation(OPS[name], inputs, params)


def test_a_deep_graph_needs_no_deep_stack():
    x = Value(Aval((2,), np.dtype(np.float64)))
    y = x
    for _ in range(20_000):
        y = apply_by_name("sin", y)
    graph = simplify(FuncGraph([x], [y]))
    assert len(in_order(graph.outputs)) == 20_001
    assert interpreter(graph)([np.ones(2)])[0].shape == (2,)


@pytest.mark.quick
def test_cutting():
    x, w, dy = [Value(Aval((3, 3), np.dtype(np.float64))) for _ in range(3)]
    dear = apply_by_name("matmul", x, w)
    cheap = apply_by_name("exp", apply_by_name("tanh", dear))
    out = apply_by_name("sin", cheap)
    end = apply_by_name("multiply", dy, apply_by_name("multiply", cheap, apply_by_name("cos", w)))
    residuals, backward = cut([x, w], [out], [dy], [end, constant(np.zeros(()))])
    assert residuals == [dear, w] or residuals == [w, dear]
    assert len(backward.inputs) == 3
    rng = np.random.default_rng(0)
    arrays = {value: rng.normal(size=(3, 3)) for value in (x, w, dy)}
    residual_values = interpreter(FuncGraph([x, w], residuals))([arrays[x], arrays[w]])
    gradients = interpreter(backward)([*residual_values, arrays[dy]])
    uncut = interpreter(FuncGraph([x, w, dy], [end]))([arrays[x], arrays[w], arrays[dy]])
    np.testing.assert_array_equal(gradients[0], uncut[0])
    out_residuals, _ = cut([x, w], [cheap], [dy], [end])
    assert cheap in out_residuals
    assert dear not in out_residuals


def test_the_interpreter_plans_once_and_frees_what_was_read_last(monkeypatch):
    planned = []
    runner = interpret.runner
    monkeypatch.setattr(
        interpret, "runner", lambda *arguments: planned.append(1) or runner(*arguments)
    )
    x = y = Value(Aval((10_000,), np.dtype(np.float64)))
    for _ in range(20):
        y = apply_by_name("exp", apply_by_name("negative", y))
    run = interpreter(FuncGraph([x], [y, y, x]))
    arrays = [np.ones(10_000)]
    first, again = run(arrays), run(arrays)
    # three results, an operand and a result
    assert peak_bytes(lambda: run(arrays)) < 5.5 * arrays[0].nbytes
    assert len(planned) == 40
    assert len({id(array) for array in [*first, *again, *arrays]}) == 7
    np.testing.assert_array_equal(first, again)
