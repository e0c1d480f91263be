"""Tensors that are filled or bounded with a tensor: gradients and dtypes."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import slope_of_sum

pytestmark = pytest.mark.quick

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
    np.testing.assert_allclose(slope_of_sum(function), expected, rtol=1e-6)


@pytest.mark.parametrize("function", [FILLED[0][0], FILLED[2][0], FILLED[10][0]])
def test_a_variable_that_fills_or_bounds_gets_its_gradient(function):
    variable = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(function(variable))
    assert tape.gradient(y, variable) is not None


def test_the_gradients_of_a_deviation_and_of_bounds_are_the_draws():
    draws = tf.random.normal([4], seed=1).numpy()
    result = slope_of_sum(lambda x: tf.random.normal([4], mean=1.0, stddev=x, seed=1))
    np.testing.assert_allclose(result, draws.sum(), rtol=1e-6)
    draws = tf.random.uniform([4], seed=1).numpy()
    result = slope_of_sum(lambda x: tf.random.uniform([4], minval=x, maxval=9.0, seed=1))
    np.testing.assert_allclose(result, (1 - draws).sum(), rtol=1e-6)


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
    scaled = tf.random.normal([5], 0.5, 2.0, dtype=dtype, seed=3)
    np.testing.assert_allclose(drawn.numpy(), scaled.numpy(), rtol=4 * np.finfo(dtype).eps)


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
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"fill: value .*\(2,\)"):
            tf.fill([2], value)
