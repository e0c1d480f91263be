"""One element of each row by an index: read and written in the row's kernel."""

from typing import Any

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.graph_cases import FLOAT64, apply, assert_same, number, parameter, total
from tinygrad_cg._function.codegen.executable import build
from tinygrad_cg._function.graph.values import FuncGraph, Value, constant
from tinygrad_cg_kernels.runtime import service, threads

RNG = np.random.default_rng(3)


def read_and_written(x: Value, index: Value) -> FuncGraph:
    """An element of exp(x) by row in each spelling, its transpose, and a product with one_hot."""
    y, line = apply("exp", x), apply("expand_dims", index, axis=len(index.shape))
    shape, axis = x.shape, len(x.shape) - 1
    chosen = apply("gather", y, index, axis=axis, batch_dims=axis)
    again = apply("take_along_axis", y, line, axis=axis)
    back = apply("gather_adjoint", chosen, index, shape=shape, axis=axis, batch_dims=axis)
    other = apply("add_along_axis", apply("tanh", again), line, shape=shape, axis=axis)
    ones = apply("one_hot", index, depth=shape[-1], axis=axis, dtype=x.dtype)
    product = apply("multiply", apply("add", back, other), apply("multiply", ones, y))
    outputs = [chosen, again, product, total(product, (axis,)), total(back, (axis,)), total(chosen)]
    return FuncGraph([x] if index.array is not None else [x, index], outputs)


def arrays_for(shape: tuple[int, ...], dtype: Any = FLOAT64, kind: str = "int64") -> list:
    low = 0 if kind.startswith("u") else -shape[-1]
    index = RNG.integers(low, shape[-1], shape[:-1])
    return [RNG.normal(size=shape).astype(dtype), index.astype(kind)]


def assert_near(results: Any, wanted: Any, tolerance: float) -> None:
    tf.nest.assert_same_structure(results, wanted)
    for result, other in zip(tf.nest.flatten(results), tf.nest.flatten(wanted), strict=True):
        assert (result.shape, result.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(result, other, tolerance, tolerance)


# Programs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(5, 7), (3, 2500), (4096, 50), (2, 3, 4)])
def test_reads_and_writes_share_a_pass(shape, dtype):
    graph = read_and_written(parameter(shape, dtype), parameter(shape[:-1], np.int64))
    program = build(graph)
    assert_same(program, graph, arrays_for(shape, dtype))
    assert program.kernels == 1


def test_other_sizes_compile_nothing():
    """Unless only one of them has rows of few whole vectors (see `Block`)."""
    first, second = (
        build(read_and_written(parameter(shape), parameter(shape[:-1], np.int64))).sources[1:]
        for shape in [(5, 7), (30, 41)]
    )
    assert first == second


@pytest.mark.parametrize("kind", ["int8", "uint8", "uint64"])
def test_dtypes_of_indices(kind):
    graph = read_and_written(parameter((6, 9)), parameter((6,), kind))
    assert_same(build(graph), graph, arrays_for((6, 9), kind=kind))


@pytest.mark.parametrize("shape", [(1, 4), (4, 1), (1, 1)])
def test_one_row_or_column(shape):
    graph = read_and_written(parameter(shape), parameter(shape[:1], np.int64))
    assert_same(build(graph), graph, arrays_for(shape))


@pytest.mark.parametrize("columns", [5, 70_000])
def test_one_row_in_a_long_program(columns):
    """Numbers that are looked up among others that are computed."""
    x, index = parameter((1, columns)), parameter((1,), np.int64)
    y, picked = apply("exp", x), apply("gather", x, index, axis=1, batch_dims=1)
    for step in range(120):
        picked = apply("tanh", apply("add", picked, number(step / 9)))
        if step % 7 == 0:
            part = apply("gather", (x, y)[step % 2], index, axis=1, batch_dims=1)
            picked = apply("subtract", part, picked)
    graph = FuncGraph(
        [x, index], [picked, apply("multiply", y, apply("reshape", picked, shape=(1, 1)))]
    )
    assert_same(build(graph), graph, arrays_for((1, columns)))


def test_constant_indices():
    x, index = arrays_for((6, 9))
    graph = read_and_written(parameter((6, 9)), constant(index))
    program = build(graph)
    assert_same(program, graph, [x])
    assert "run_" not in program.sources[0]


def test_indices_that_a_kernel_makes():
    x = parameter((40, 30))
    index = apply("cast", apply("greater", total(x, (1,)), number(0)), dtype=np.dtype(np.int32))
    graph = read_and_written(apply("tanh", x), index)
    graph = FuncGraph([x], graph.outputs)
    assert_same(build(graph), graph, arrays_for((40, 30))[:1])


def test_special_values_stay_what_they_are():
    """What is not read takes no part: 0 times infinity would be nan."""
    x, index = parameter((3, 4)), parameter((3,), np.int64)
    chosen = apply("gather", x, index, axis=1, batch_dims=1)
    back = apply("gather_adjoint", chosen, index, shape=(3, 4), axis=1, batch_dims=1)
    array = np.array([[-0.0, np.inf, np.nan, 1], [np.nan, -np.inf, 2, 3], [5, np.nan, np.inf, 4]])
    picked, scattered = build(FuncGraph([x, index], [chosen, back]))([array, np.array([0, 1, 0])])
    np.testing.assert_array_equal(picked, [-0.0, -np.inf, 5])
    assert np.signbit(picked[0])
    expected = np.zeros((3, 4))
    expected[1, 1], expected[2, 0] = -np.inf, 5
    np.testing.assert_array_equal(scattered, expected)


def test_values_that_are_used_many_times():
    """Each is computed once at an index, however many ways lead to it; and in its own order."""
    x, index = parameter((6, 9)), parameter((6,), np.int64)
    y = x
    for _ in range(25):
        y = apply("subtract", y, apply("multiply", apply("subtract", y, number(0.1)), y))
    chosen = apply("gather", y, index, axis=1, batch_dims=1)
    graph = FuncGraph([x, index], [chosen, apply("tanh", chosen)])
    program = build(graph)
    array, indices = arrays_for((6, 9))
    assert_same(program, graph, [0.1 * array, indices])
    assert len(program.sources[1]) < 10_000


def test_one_hot_of_numbers_beyond_int32():
    index = parameter((3,), np.int64)
    ones = apply("one_hot", index, depth=4, axis=1, dtype=np.dtype(np.float32))
    graph = FuncGraph([index], [ones, total(ones, (0,))])
    assert_same(build(graph), graph, [np.array([2**32 + 1, -(2**32) + 2, 3])])


def test_the_same_bits_on_any_number_of_threads(restore_threads):
    shape, before = (3000, 60), threads.get_num_threads()
    program = build(read_and_written(parameter(shape), parameter(shape[:1], np.int64)))
    arrays, results = arrays_for(shape), []
    for count in {1, before}:
        threads.set_num_threads(count)
        results.append(program(arrays))
    for result, other in zip(results[0], results[-1], strict=True):
        np.testing.assert_array_equal(result, other)


# Rows at indices, and transposes -----------------------------------------------------------------

TABLE, WIDE, NUMBERS = (tf.constant(RNG.normal(size=shape)) for shape in [(50, 40), (30, 40), 50])
INDICES = tf.constant(RNG.integers(-50, 50, size=30))
BATCH = tf.constant(RNG.normal(size=(3, 34, 37)))


def rows_and_elements(x, indices):
    return tf.reduce_sum(tf.sin(x), 1) + tf.gather(x, indices, batch_dims=1)


READS = [
    lambda t, w, n, i, b: tf.gather(t, i) * w,
    lambda t, w, n, i, b: tf.nn.softmax(tf.gather(tf.exp(t), i) + w),
    lambda t, w, n, i, b: tf.gather(t, i) * tf.reduce_sum(tf.gather(t, i) * w),
    lambda t, w, n, i, b: tf.gather(tf.gather(t, i), i[::2] % 30) - w[::2],
    lambda t, w, n, i, b: tf.gather(t, tf.reshape(i, (6, 5)))[1] + w[5:10],
    lambda t, w, n, i, b: tf.reshape(tf.gather(t, i), (60, 20)) * tf.reshape(w, (60, 20)),
    lambda t, w, n, i, b: tf.sin(1e9 * tf.gather(t, i)),
    lambda t, w, n, i, b: tf.gather(n, i)[:, None] * w + tf.gather(n, i)[0],
    lambda t, w, n, i, b: tf.gather(n, i)[1:] - tf.gather(n, i)[:-1],
    lambda t, w, n, i, b: t[np.array([3, 3, -1])] * 2.0,
    lambda t, w, n, i, b: tf.gather(tf.reshape(t, (25, 80)), i % 25) * tf.reshape(w[:2], (80,)),
    lambda t, w, n, i, b: t[np.array([1, 2])] * t[np.array([1, 0, 2, 0], np.int32)][:2],
    lambda t, w, n, i, b: tf.gather(b, tf.reshape(i % 34, (3, 10)), axis=1, batch_dims=1) * 2.0,
    lambda t, w, n, i, b: tf.gather(tf.exp(b), i[:3] // 2, axis=1, batch_dims=1) * b[0, 0],
    lambda t, w, n, i, b: tf.exp(tf.numpy.take_along_axis(w, i[:, None] // 3 + [[0, 5, 9]], 1)),
    lambda t, w, n, i, b: tf.transpose(t)[:30, :40] + w,
    lambda t, w, n, i, b: tf.exp(tf.transpose(t))[np.arange(40), tf.range(40) - i[0] % 9],
    lambda t, w, n, i, b: tf.transpose(t) * n + tf.reduce_sum(tf.transpose(t), 1, keepdims=True),
    lambda t, w, n, i, b: tf.transpose(tf.nn.softmax(tf.transpose(t))) * t,
    lambda t, w, n, i, b: tf.reshape(tf.transpose(b, (0, 2, 1)), (3, -1)),
    lambda t, w, n, i, b: tf.sin(1e9 * tf.transpose(b, (2, 0, 1))),
    lambda t, w, n, i, b: (tf.transpose(t) * 2.0, tf.transpose(t) @ t, tf.transpose(b, (1, 0, 2))),
    lambda t, w, n, i, b: tf.gather(tf.transpose(t), i[:40] % 50, axis=1) * 0.5,
    lambda t, w, n, i, b: rows_and_elements(tf.transpose(t[:, :30]), i),
]


@pytest.mark.parametrize("index", range(len(READS)))
def test_reads_of_rows_and_columns(index):
    """Values and gradients, which write where these read: translated, without Numba."""
    read, inputs = READS[index], (TABLE, WIDE, NUMBERS, INDICES, BATCH)
    before = len(service.fallbacks)

    def loss(*inputs):
        return sum(tf.reduce_sum(tf.sin(y)) for y in tf.nest.flatten(read(*inputs)))

    def both(*inputs):
        return read(*inputs), tf.grad(loss, argnums=(0, 1, 2, 4))(*inputs)

    assert_near(tf.function(both, jit_compile=True)(*inputs), both(*inputs), 1e-6)
    assert service.fallbacks[before:] == []


@pytest.mark.parametrize("shape", [(300, 500), (5000, 40), (100, 40, 60)])
def test_large_reads_of_rows_and_columns(shape):
    """On several threads, by blocks of rows that end within matrices."""
    x, indices = tf.constant(RNG.normal(size=shape)), tf.constant(RNG.integers(-9, 9, size=700))

    def f(x, indices):
        swapped = tf.transpose(x, (*range(len(shape) - 2), -1, -2))
        return swapped + 1.0, tf.gather(x, indices) * 2.0, tf.reduce_sum(swapped, -1)

    program = tf.function(f, jit_compile=True)
    assert_near(program(x, indices), f(x, indices), 1e-12)
    assert program.kernels(x, indices)[0].count("run_") == 1  # the positions


def test_rows_outside():
    f = tf.function(lambda x, i: tf.tanh(tf.gather(x, i)) * 2.0, jit_compile=True)
    for x in (TABLE, NUMBERS):
        for index in (50, -51, 2**40):
            with pytest.raises(IndexError, match=f"gather: index {index} is out of bounds"):
                f(x, tf.constant([0, index]))


# Cross-entropy -----------------------------------------------------------------------------------

ROWS, COLUMNS = 7, 5
SPELLINGS = {
    "gather": lambda y, k: tf.gather(y, k, axis=1, batch_dims=1),
    "gather of lines": lambda y, k: tf.gather(y, k[:, None], axis=-1, batch_dims=1),
    "take_along_axis": lambda y, k: tf.numpy.take_along_axis(y, k[:, None], 1),
    "index": lambda y, k: y[np.arange(ROWS), k],
    "index by range": lambda y, k: y[tf.range(ROWS), k],
    "index by vmap": lambda y, k: tf.vmap(lambda row, i: row[i])(y, k),
    "known index": lambda y, k: y[np.arange(ROWS), LABELS],
    "one_hot": lambda y, k: tf.reduce_sum(tf.one_hot(k, COLUMNS, dtype=y.dtype) * y, 1),
    "sparse": lambda y, k: -tf.nn.sparse_softmax_cross_entropy_with_logits(k, y),
}
LABELS = RNG.integers(COLUMNS, size=ROWS)
LOGITS, WAY = tf.constant(RNG.normal(size=(2, ROWS, COLUMNS)))


def losses(choose):
    """The cross-entropy in two ways, each a sum that weighs rows by themselves."""

    def by_log_softmax(x, labels):
        return tf.reduce_sum(tf.sin(choose(tf.nn.log_softmax(x), labels)))

    def by_hand(x, labels):
        chosen = choose(x, labels)
        total = tf.math.reduce_logsumexp(x, 1)
        return tf.reduce_sum((tf.reshape(chosen, (ROWS,)) - total) ** 2)

    return by_log_softmax, by_hand


@pytest.mark.parametrize("name", SPELLINGS)
def test_derivatives(name):
    def derivatives(x, labels):
        return [
            (tf.value_and_grad(f)(x, labels), tf.hvp(lambda x, f=f: f(x, labels))(x, WAY))
            for f in losses(SPELLINGS[name])
        ]

    inputs = LOGITS, tf.constant(LABELS)
    assert_near(tf.function(derivatives, jit_compile=True)(*inputs), derivatives(*inputs), 1e-12)


@pytest.mark.parametrize("name", SPELLINGS)
def test_one_kernel_without_temporaries(name):
    def loss(x, labels):
        return -tf.reduce_mean(SPELLINGS[name](tf.nn.log_softmax(x), labels))

    f = tf.function(tf.value_and_grad(loss), jit_compile=True)
    call, *texts = f.kernels(LOGITS, tf.constant(LABELS))
    assert sum(text.count("\ndef kernel_") for text in texts) == 1
    assert call.count("empty(") == 2  # the outputs


@pytest.mark.parametrize("index", [COLUMNS, -COLUMNS - 1])
@pytest.mark.parametrize("name", list(SPELLINGS)[:6])
def test_indices_outside(name, index):
    """The error of the call one by one, on the first call and the following."""
    labels = LABELS.copy()
    labels[3] = index
    f = tf.function(tf.value_and_grad(losses(SPELLINGS[name])[0]), jit_compile=True)
    f(LOGITS, tf.constant(LABELS))
    for _ in range(2):
        with pytest.raises(IndexError, match=f"index {index} is out of bounds"):
            f(LOGITS, tf.constant(labels))
    np.testing.assert_allclose(
        f(LOGITS, tf.constant(LABELS))[0], losses(SPELLINGS[name])[0](LOGITS, tf.constant(LABELS))
    )


def test_indices_outside_that_nothing_needs():
    """The second derivative of a cross-entropy is the same for all labels, if these are labels."""

    def loss(x, labels):
        return tf.reduce_sum(SPELLINGS["gather"](tf.nn.log_softmax(x), labels))

    f = tf.function(lambda x, k: tf.hvp(lambda x: loss(x, k))(x, WAY), jit_compile=True)
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        f(LOGITS, tf.constant([0, 1, 2, 9, 0, 0, 0]))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ([0, 1, -1], "label -1 is outside the 5 classes, 0 to 4"),
        ([0, 5, 1], "label 5 is outside"),
        ([0, 1], r"got labels \(2,\) and predictions \(3, 5\)"),
        ([0.0, 1.0, 2.0], "labels must be integers, got float32"),
    ],
)
def test_labels_that_are_refused(labels, text, compiled):
    f = tf.nn.sparse_softmax_cross_entropy_with_logits
    f = tf.function(f, jit_compile=True) if compiled else f
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        f(tf.constant(labels), LOGITS[:3])


# Indices without a value -------------------------------------------------------------------------

CUBE = tf.constant(RNG.normal(size=(4, 5, 3)))
FIRST, LAST = tf.constant([1, 3, 0, 2]), tf.constant([4, 0, -2, 1])
INDEXED = [
    lambda x, i, k: x[i],
    lambda x, i, k: x[i[0]],
    lambda x, i, k: x[i, k],
    lambda x, i, k: x[i, [0, 1, 2, 3]],
    lambda x, i, k: x[2, k],
    lambda x, i, k: x[i, k, 0],
    lambda x, i, k: x[i, :, 1],
    lambda x, i, k: x[i, ..., 0],
    lambda x, i, k: x[i, None, 1:3],
    lambda x, i, k: x[i[0], k[:, None]],
    lambda x, i, k: x[np.arange(4)[:, None], np.arange(5), (i % 3)[:, None]],
    lambda x, i, k: x[np.arange(2), i[:2]],
    lambda x, i, k: x[:, k],
    lambda x, i, k: x[:, k[0], ::-1],
    lambda x, i, k: x[..., i[3]],
    lambda x, i, k: x[i[0], :, -i[3]],
    lambda x, i, k: x[i, :, i % 3],
    lambda x, i, k: x[:, k, i % 3],
    lambda x, i, k: x[:, k[:, None], i % 3],
    lambda x, i, k: x[:, (0, 1, 1, 0), i % 3],
    lambda x, i, k: x[0, :, i % 3],
    lambda x, i, k: x[i[0], :, [0, 2, 2]],
    lambda x, i, k: x[1:, ..., i % 3, None],
    lambda x, i, k: x[None, :, k, None],
    lambda x, i, k: x[i, None, k],
    lambda x, i, k: x[i, k, ..., 0],
]


@pytest.mark.parametrize("index", range(len(INDEXED)))
def test_indices_without_a_value(index):
    f = INDEXED[index]
    expected = f(CUBE, FIRST, LAST)
    for fused in (False, True):
        assert_near(tf.function(f, jit_compile=fused)(CUBE, FIRST, LAST), expected, 0)


def test_derivatives_at_indices_without_a_value():
    def derivatives(x, i, k):
        losses = [lambda x, f=f: tf.reduce_sum(tf.sin(f(x, i, k)) ** 2) for f in INDEXED]
        return [(tf.grad(loss)(x), tf.hvp(loss)(x, CUBE**2)) for loss in losses]

    expected = derivatives(CUBE, FIRST, LAST)
    assert_near(tf.function(derivatives, jit_compile=False)(CUBE, FIRST, LAST), expected, 1e-14)


def test_indices_that_are_variables_of_loops():
    def by_for(x, n):
        total = tf.zeros((4, 5), x.dtype)
        for i in tf.range(n):
            total = tf.sin(total * x[:, :, i]) + x[i, :, -1 - i] * 0.5
        return tf.reduce_sum(total)

    def by_while(x, n):
        def body(i, total):
            return i + 1, tf.sin(total * x[:, :, i]) + x[i, :, -1 - i] * 0.5

        start = tf.constant(0), tf.zeros((4, 5), x.dtype)
        return tf.reduce_sum(tf.while_loop(lambda i, total: i < n, body, start)[1])

    total = np.zeros((4, 5))
    for i in range(3):
        total = np.sin(total * CUBE.numpy()[:, :, i]) + CUBE.numpy()[i, :, -1 - i] * 0.5
    for f in map(tf.function, (by_for, by_while)):

        def derivatives(x, n, f=f):
            return f(x, n), tf.grad(f)(x, n), tf.hvp(lambda x: f(x, n))(x, CUBE**2)

        expected = derivatives(CUBE, tf.constant(3), f)
        np.testing.assert_allclose(expected[0], np.sum(total), rtol=1e-14)
        assert_near(tf.function(derivatives)(CUBE, tf.constant(3)), expected, 1e-13)


@pytest.mark.parametrize("fused", [False, True])
def test_indices_without_a_value_out_of_bounds(fused):
    f = tf.function(lambda x, i, k: (x[:, i], x[0, :, k]), jit_compile=fused)
    for i, k, text in [(5, 0, "index 5"), (0, -4, "index -4"), (-6, 0, "index -6")]:
        with pytest.raises(IndexError, match=f"{text} is out of bounds"):
            f(CUBE, tf.constant(i), tf.constant([0, k]))


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (lambda x, i: x[i > 0], "a mask cannot be an index"),
        (lambda x, i: x[np.ones(4, bool), i], "a mask cannot be an index"),
        (lambda x, i: x[..., i, ...], "a single ellipsis"),
        (lambda x, i: x[i, i, i, i], r"too many indices: 4 for shape \(4, 5, 3\)"),
        (lambda x, i: x[:, i, [0, 1, 2]], r"shapes \(4,\) and \(3,\) do not broadcast"),
    ],
)
def test_indices_without_a_value_that_are_refused(f, text):
    with pytest.raises(IndexError, match=text):
        tf.function(f, jit_compile=False)(CUBE, FIRST)


def test_slices_that_begin_at_a_tensor():
    part = tf.function(lambda x, i, k: tf.slice(x, [i, 1, k], [2, -1, 1]), jit_compile=False)

    def weighed(x, *starts):
        return tf.reduce_sum(part(x, *starts) ** 3)

    for i, k in [(0, 2), (2, 0)]:
        starts = tf.constant(i), tf.constant(k)
        expected = tf.slice(CUBE, [i, 1, k], [2, -1, 1])
        assert_near(part(CUBE, *starts), expected, 0)
        whole = np.zeros(CUBE.shape)
        whole[i : i + 2, 1:, k : k + 1] = expected
        assert_near(tf.grad(weighed)(CUBE, *starts), 3 * whole**2, 1e-14)
        way = tf.hvp(lambda x, starts=starts: weighed(x, *starts))(CUBE, CUBE)
        assert_near(way, 6 * whole**2, 1e-14)
    for i, k in [(3, 0), (-1, 0), (0, 3)]:
        with pytest.raises(IndexError, match="out of bounds"):
            part(CUBE, tf.constant(i), tf.constant(k))
    whole = tf.function(lambda v, i: tf.slice(v, i, [3]), jit_compile=False)
    assert_near(whole(NUMBERS, tf.constant([7])), NUMBERS[7:10], 0)
    rows = tf.vmap(lambda x, i: tf.slice(x, [0, i], [5, 2]))(CUBE, tf.constant([0, 1, 1, 0]))
    assert_near(rows[1], CUBE[1, :, 1:3], 0)
    for size in (-1, 6):
        with pytest.raises(tf.errors.InvalidArgumentError, match="a size from 0 to 4"):
            tf.function(lambda x, i, n=size: tf.slice(x, [i, 0, 0], [n, 1, 1]))(CUBE, starts[0])
