"""Values: what new tensors depend on, dtypes that do not hang on the order of operands, floats
that are too large, and errors that name the function, the argument and the remedy.

Warnings are errors in these tests: floating point never warns.
"""

import operator
import threading

import numpy as np
import pytest
from tinygrad_cg_kernels.linear import matmul
from tinygrad_cg_kernels.runtime import errstate

import tinygrad_cg as tf
from tinygrad_cg._ops import linear_algebra as operations
from tinygrad_cg_kernels.reduce import reduction as kreduce
from tinygrad_cg_kernels.reduce import softmax as ksoftmax


def slope(function, at=3.0):
    """The derivative of the sum of a function's elements."""
    x = tf.constant(at)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(function(x))
    gradient = tape.gradient(y, x)
    return None if gradient is None else gradient.numpy()


def refused(error, words, function, *arguments, **keywords):
    with pytest.raises(error, match=words):
        function(*arguments, **keywords)


# Tensors that are filled or bounded with a tensor ---------------------------------------------

FILLED = [
    (lambda x: tf.fill([2], x) * x, 12.0),
    (lambda x: tf.constant(x, shape=[2]) * x, 12.0),
    (lambda x: tf.linspace(0.0, x, 3) * x, 9.0),
    (lambda x: tf.linspace(x, 0.0, 3) * x, 9.0),
    (lambda x: tf.linspace([0.0, x], x, 3), 1.5 + 3.0),
    (lambda x: tf.keras.ops.full((2,), x) * x, 12.0),
    (lambda x: tf.keras.ops.full_like(tf.zeros([2, 2]), x), 4.0),
    (lambda x: tf.keras.ops.linspace(0.0, x, 3, endpoint=False), 1.0),
    (lambda x: tf.numpy.linspace(0.0, x, 3) * x, 9.0),
    (lambda x: tf.numpy.full_like([1.0, 2.0], x), 2.0),
    (lambda x: tf.random.normal([2], mean=x), 2.0),
    (lambda x: tf.random.normal([2], mean=x, stddev=0.0) * x, 12.0),
    (lambda x: tf.random.uniform([2], minval=x, maxval=x + 1.0), 2.0),
    (lambda x: tf.keras.random.normal((3,), mean=x), 3.0),
    (lambda x: tf.numpy.full((2,), x) * x, 12.0),
]


@pytest.mark.parametrize(("function", "expected"), FILLED)
def test_a_tensor_that_fills_or_bounds_gets_its_gradient(function, expected):
    """The first, third and eleventh are TensorFlow 2.21's numbers."""
    np.testing.assert_allclose(slope(function), expected, rtol=1e-6)


@pytest.mark.parametrize("function", [FILLED[0][0], FILLED[2][0], FILLED[10][0]])
def test_a_variable_that_fills_or_bounds_gets_its_gradient(function):
    variable = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(function(variable))
    assert tape.gradient(y, variable) is not None


def test_the_gradients_of_a_deviation_and_of_bounds_are_the_draws():
    draws = tf.random.normal([4], seed=1).numpy()
    found = slope(lambda x: tf.random.normal([4], mean=1.0, stddev=x, seed=1))
    np.testing.assert_allclose(found, draws.sum(), rtol=1e-6)
    draws = tf.random.uniform([4], seed=1).numpy()
    found = slope(lambda x: tf.random.uniform([4], minval=x, maxval=9.0, seed=1))
    np.testing.assert_allclose(found, (1 - draws).sum(), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_values_do_not_hang_on_where_the_numbers_come_from(dtype):
    stop = tf.constant(0.7, dtype)
    spaced = tf.linspace(0.1, stop, 7)
    assert spaced.dtype == dtype
    assert spaced[-1] == stop
    np.testing.assert_allclose(
        spaced.numpy(), tf.linspace(0.1, stop.numpy(), 7).numpy(), rtol=2 * np.finfo(dtype).eps
    )
    filled = tf.keras.ops.full((2,), tf.constant(0.1, dtype), "float64")
    np.testing.assert_array_equal(filled.numpy(), np.full(2, stop.dtype.type(0.1), "float64"))
    drawn = tf.random.normal([5], tf.constant(0.5, dtype), 2.0, dtype=dtype, seed=3)
    plain = tf.random.normal([5], 0.5, 2.0, dtype=dtype, seed=3)
    np.testing.assert_allclose(drawn.numpy(), plain.numpy(), rtol=4 * np.finfo(dtype).eps)


def test_what_cannot_have_a_gradient_is_filled_as_before():
    filled = tf.fill([2], tf.constant(3))
    assert (filled.dtype, filled.numpy().tolist()) == (tf.int32, [3, 3])
    with pytest.raises(TypeError, match="Cannot convert"):
        tf.keras.ops.full((2,), tf.constant(2.5), "int32")
    assert tf.linspace([0.0, 1.0], [2.0, 3.0], 3).dtype == tf.float32
    assert tf.keras.ops.linspace(0.0, tf.constant(3.5), 3, dtype="int32").numpy().tolist() == [
        *(0, 1, 3)
    ]


def test_a_fill_with_what_is_no_scalar_is_refused():
    for value in (tf.constant([1.0, 2.0]), [1.0, 2.0]):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"full: value .*\(2,\)"):
            tf.fill([2], value)


# Floating point never warns (decision 16) -----------------------------------------------------


def test_products_of_infinities_do_not_warn():
    assert np.isnan(tf.matmul([[np.inf]], [[0.0]]).numpy())
    assert np.isnan(tf.linalg.matvec([[np.inf]], [0.0]).numpy())
    assert np.isinf(tf.matmul([[1e30]], [[1e30]]).numpy())
    large = tf.constant([[6e4]], tf.float16)
    assert np.isinf(tf.matmul(large, large).numpy())
    assert np.isinf(matmul.matmul(large.numpy(), large.numpy()))


def test_numbers_that_are_too_large_are_infinite():
    half = tf.constant([1.0], tf.float16)
    for value in (half * 1e10, tf.math.add(half, [1e10]), half * np.float64(1e10)):
        assert value.dtype == tf.float16
        assert np.isinf(value.numpy()).all()
    assert np.isinf((tf.constant([2.0], tf.float16) ** 1e10).numpy()).all()
    for value in (1e300, [1e300], [[1e300, -1e300]]):
        assert np.isinf(tf.constant(value).numpy()).all()
    for value in (np.array([1e300]), np.float64(1e300), 1e300, [1e300]):
        assert np.isinf(tf.constant(value, tf.float32).numpy()).all()
    assert np.isinf(tf.random.uniform([2], 1e6, 2e6, tf.float16).numpy()).all()


def test_reductions_of_float16_are_rounded_once():
    x = tf.constant([60000.0, 60000.0], tf.float16)
    assert np.isinf(tf.reduce_sum(x).numpy())
    assert tf.reduce_mean(x) == 60000.0
    assert tf.reduce_mean(x).dtype == tf.float16
    assert tf.reduce_mean(tf.constant([[60000.0] * 3] * 2, tf.float16), 0).numpy().tolist() == [
        *(60000.0, 60000.0, 60000.0)
    ]
    huge = np.full(4, 65504, np.float16)
    assert np.isinf(kreduce.sum(huge, (0,)))
    assert ksoftmax.logsumexp(huge, (0,)) == 65504
    assert np.isneginf(ksoftmax.log_softmax(np.array([65504, -65504], np.float16), 0)[1])


def test_the_callers_handling_of_floating_point_stays():
    with np.errstate(all="raise"):
        assert np.isnan(tf.matmul([[np.inf]], [[0.0]]).numpy())
        with pytest.raises(FloatingPointError):
            np.divide(1.0, 0.0)


def test_products_in_other_threads_do_not_warn():
    found = []

    def work():
        for _ in range(50):
            found.append(errstate.quietly(np.matmul, np.array([[np.inf]]), np.array([[0.0]])))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 150


# Promotion with lists -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tensor", "numbers", "expected"),
    [
        (tf.constant([1.0, 2.0], tf.float16), [1.0, 2.0], tf.float16),
        (tf.constant([1.0, 2.0], tf.float64), [1.0, 2.0], tf.float64),
        (tf.constant([1, 2], tf.int8), [1, 2], tf.int8),
        (tf.constant([1, 2], tf.int8), [1.0, 2.0], tf.float32),
        (tf.constant([1.0, 2.0], tf.float16), [1, 2], tf.float16),
        (tf.constant([1.0, 2.0], tf.float16), [1j, 2], tf.complex64),
        (np.array([1.0, 2.0]), [1.0, 2.0], tf.float64),
        (tf.constant([1, 2], tf.int8), range(2), tf.int8),
    ],
)
def test_lists_are_weak_on_both_sides(tensor, numbers, expected):
    assert tf.math.add(tensor, numbers).dtype == expected
    assert tf.math.add(numbers, tensor).dtype == expected
    assert tf.stack([numbers, tensor]).dtype == tf.stack([tensor, numbers]).dtype == expected


def test_a_list_beside_a_wide_tensor_keeps_its_digits():
    product = tf.constant([1.0], tf.float64) * [0.1]
    assert product.numpy()[0] == 0.1


def test_lists_and_numbers_without_a_tensor():
    assert tf.math.add([1, 2], 3).dtype == tf.int32
    assert tf.math.add(0.5, [1, 2]).dtype == tf.math.add([1, 2], 0.5).dtype == tf.float32
    assert tf.math.add([1, 2], [0.5, 1.0]).dtype == tf.float32
    assert tf.math.add([0.5, 1.0], [1, 2]).dtype == tf.float32
    with pytest.raises(OverflowError, match="int8"):
        tf.math.add([300], tf.constant([1], tf.int8))


# Dtypes ---------------------------------------------------------------------------------------


def test_none_is_no_dtype():
    with pytest.raises(TypeError, match="None is not a supported dtype"):
        tf.cast([1.0], None)


@pytest.mark.parametrize(("name", "type_"), [("float", float), ("int", int), ("bool", bool)])
def test_names_of_pythons_types_mean_the_types(name, type_):
    assert tf.cast([1.0], name).dtype == tf.cast([1.0], type_).dtype
    assert tf.as_dtype("float") == tf.float32
    assert tf.as_dtype("int") == tf.int32


def test_bools_are_not_numbers():
    yes = tf.constant(True)
    for values in (yes, tf.constant([True, False])):
        refused(TypeError, "negative: .*logical_not", operator.neg, values)
        refused(TypeError, "subtract: .*logical_xor", operator.sub, values, values)
        refused(TypeError, "subtract: .*logical_xor", np.subtract, values, values)
    assert (yes - 1).numpy() == 0
    assert (yes - tf.constant(0.5)).numpy() == 0.5


# Random draws ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (1.0, 1.001), (-3.0, 0.1), (1e3, 1001.0)])
def test_uniform_draws_are_below_the_upper_end(dtype, low, high):
    draws = tf.random.uniform([20000], low, high, dtype, seed=5)
    assert draws.dtype == dtype
    least, greatest = np.asarray([low, high], dtype)
    assert draws.numpy().min() >= least
    if least < greatest:
        assert draws.numpy().max() < greatest
    watched = tf.random.uniform([20000], tf.constant(low, dtype), high, dtype, seed=5).numpy()
    assert watched.min() >= least
    assert least == greatest or watched.max() < greatest


def test_uniform_in_float32_never_gives_the_upper_end(monkeypatch):
    """A draw of the largest float64 below 1 is 1 in float32."""
    from tinygrad_cg._ops import sampling as random

    monkeypatch.setattr(random, "_draw", lambda *_: np.array([0.25, 1 - 2.0**-53]))
    for high in (1.0, tf.constant(1.0)):
        assert tf.random.uniform([2], 0.0, high).numpy().tolist() == [0.25, 0.0]


def test_bad_arguments_of_random_draws():
    invalid = tf.errors.InvalidArgumentError
    refused(TypeError, "uniform: .*bool", tf.random.uniform, [2], dtype=tf.bool)
    refused(TypeError, "normal: .*int32.*cast", tf.random.normal, [2], dtype=tf.int32)
    refused(TypeError, "normal: .*complex64", tf.random.normal, [2], dtype=tf.complex64)
    refused(TypeError, "set_seed: seed must be an integer", tf.random.set_seed, "a")
    refused(invalid, "set_seed: .*-1", tf.random.set_seed, -1)
    refused(TypeError, "normal: seed must be an integer", tf.random.normal, [2], seed="a")
    refused(invalid, r"normal: .*mean \(3,\)", tf.random.normal, [2], mean=[1.0, 2.0, 3.0])
    refused(invalid, r"uniform: .*maxval \(3,\)", tf.random.uniform, [2], 0.0, tf.ones([3]))
    refused(invalid, "uniform: .*negative", tf.random.uniform, [-1])
    refused(invalid, "uniform: minval", tf.random.uniform, [2], 5, 5, tf.int32)
    refused(invalid, "within int8", tf.random.uniform, [2], 0, 300, tf.int8)
    refused(TypeError, "maxval must be an integer", tf.random.uniform, [2], 0, 2.5, tf.int32)
    refused(TypeError, "unsupported type", tf.random.normal, [2], mean="a")


def test_bounds_of_integers_reach_their_dtypes_end():
    draws = tf.random.uniform([2000], 0, 256, tf.uint8, seed=1).numpy()
    assert (draws.min(), draws.max()) == (0, 255)


# Errors of shapes and numbers -----------------------------------------------------------------

INVALID = tf.errors.InvalidArgumentError
MATRIX = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda: tf.broadcast_to([1.0], (-1,)), INVALID, r"broadcast_to: .*negative.*\(-1,\)"),
        (lambda: tf.zeros([-1]), INVALID, r"zeros: .*negative.*\(-1,\)"),
        (lambda: tf.ones([2, -3]), INVALID, r"ones: .*negative.*\(2, -3\)"),
        (lambda: tf.fill([-1], 1.0), INVALID, r"full: .*negative"),
        (lambda: tf.constant(1.0, shape=[-1]), INVALID, "constant: .*negative"),
        (lambda: tf.eye(-1), INVALID, "eye: .*negative, got -1"),
        (lambda: tf.eye(2, -1), INVALID, "eye: .*negative, got 2 and -1"),
        (lambda: tf.range(tf.constant([1, 2])), INVALID, r"range: stop .*scalar.*\(2,\)"),
        (lambda: tf.range(0, 5, [1]), INVALID, r"range: step .*scalar.*\(1,\)"),
        (lambda: tf.range(0.0, np.nan), INVALID, "range: .*finite"),
        (lambda: tf.range("a"), TypeError, "unsupported type"),
        (lambda: tf.linspace([0.0, 1.0], [1.0, 2.0, 3.0], 3), INVALID, r"linspace: .*\(2,\)"),
        (lambda: tf.constant(2**70), OverflowError, f"{2**70} does not fit into int64"),
        (lambda: tf.constant([1, 2**70]), OverflowError, f"{2**70} does not fit into int64"),
        (lambda: tf.constant([1.0]) * 10**400, OverflowError, "too large for float32.*inf"),
        (lambda: 10**400 + tf.constant([1.0]), OverflowError, "too large for float32.*inf"),
        (lambda: tf.constant([1.0]) ** 10**400, OverflowError, "too large for float32"),
        (lambda: tf.constant([1], tf.int8) + 300, OverflowError, "300 does not fit into int8"),
        (lambda: tf.tensordot(MATRIX, MATRIX, [[0], [0], [1]]), INVALID, "tensordot: .*3 parts"),
        (lambda: tf.tensordot(MATRIX, MATRIX, 5), INVALID, "tensordot: axes is 5.*2 dimensions"),
        (lambda: tf.tensordot(MATRIX, MATRIX, -1), INVALID, "tensordot: axes is -1"),
        (lambda: tf.tensordot(MATRIX, MATRIX, [[0, 1], [0]]), INVALID, "tensordot: .*equally"),
        (lambda: tf.tensordot(MATRIX, MATRIX, [[0, 0], [0, 1]]), INVALID, "tensordot: .*once"),
        (lambda: tf.tensordot(MATRIX, MATRIX, "a"), TypeError, "tensordot: axes .*integer"),
        (lambda: tf.tensordot(MATRIX, MATRIX, [["a"], [0]]), TypeError, "tensordot: .*integer"),
        (lambda: tf.linalg.matvec(MATRIX, [1.0, 2.0], True, True), INVALID, "matvec: transpose"),
        (lambda: tf.matmul(MATRIX, MATRIX, True, adjoint_a=True), INVALID, "matmul: transpose"),
    ],
)
def test_errors_name_function_argument_and_remedy(function, error, words):
    refused(error, words, function)


def test_tensordot_takes_axes_as_a_tensor_too():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 2, 2)
    expected = np.tensordot(x, y, ((0, 1), (1, 0)))
    for axes in (tf.constant([[0, 1], [1, 0]]), np.array([[0, 1], [1, 0]]), ((0, 1), (1, 0))):
        np.testing.assert_array_equal(tf.tensordot(x, y, axes).numpy(), expected)
    np.testing.assert_array_equal(tf.tensordot(x, y, (1, 0)).numpy(), np.tensordot(x, y, (1, 0)))
    assert tf.tensordot(x, y, 0).shape == (2, 3, 3, 2, 2)


# The norm, an operation -----------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 3.5, np.inf])
def test_the_norm_of_vectors(order):
    x = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
    expected = np.linalg.norm(x, order, axis=1, keepdims=True)
    found = operations.norm(x, order, 1, True)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


def test_the_norm_of_a_matrix_and_of_what_has_none():
    x = np.array([[1.0, -2.0], [0.5, 4.0]])
    np.testing.assert_allclose(operations.norm(x, "fro", (0, 1)).numpy(), np.linalg.norm(x))
    refused(INVALID, "norm: of matrices", operations.norm, x, 1, (0, 1))
    refused(INVALID, "norm: order .*'nuclear'", operations.norm, x, "nuclear")
    assert slope(lambda t: operations.norm(tf.stack([t, 4.0]))) == pytest.approx(0.6)
