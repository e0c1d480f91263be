"""Norms and products of matrices: values, axes, errors."""

from functools import partial

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_raises, slope_of_sum
from tinygrad_cg._ops import norms as operations


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8"])
def test_norms_square_in_a_dtype_that_holds_squares(dtype):
    """Integers become float64, so no square, sum or size wraps around."""
    values = np.array([100, 100, 100, 3]).astype(dtype)
    if dtype == "int8":
        values[0] = -128
    x, wide = tf.constant(values), values.astype("d")
    for order in (1, 2, 3, np.inf):
        np.testing.assert_allclose(tf.norm(x, order), np.linalg.norm(wide, order))
    np.testing.assert_allclose(tf.math.reduce_euclidean_norm(x), np.linalg.norm(wide))


def test_euclidean_norm_of_complex_numbers():
    """As the original: of their sizes, and of the dtype of the operand."""
    x = tf.constant([3 + 4j, 1j])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.reduce_euclidean_norm(x)
    np.testing.assert_allclose(y, 26**0.5, rtol=1e-12)
    assert y.dtype == "complex128"
    np.testing.assert_allclose(tape.gradient(y, x), x.numpy() / 26**0.5, rtol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "sizes"),
    [
        ("float64", [1e-320, 1e-300, 1e-200, 1e-155, 1e-146, 1.0, 1e153, 1e155, 1e200, 1e307]),
        ("float32", [1e-44, 1e-37, 1e-30, 1e-20, 1e-16, 1.0, 1e18, 1e20, 1e30, 1e37]),
    ],
)
def test_norms_whose_squares_overflow_or_underflow(dtype, sizes):
    """In rows, columns and long rows, with gradients, in programs too; each row by itself."""
    exact = np.random.default_rng(0).uniform(-1, 1, (len(sizes), 5)) * np.array(sizes)[:, None]
    x = exact.astype(dtype)
    wide = x.astype(np.longdouble)  # its exponents have 15 bits
    expected = np.sqrt(np.sum(wide * wide, 1))
    is_normal = expected >= np.finfo(dtype).tiny  # smaller ones have few digits
    tolerance = {"rtol": 4 * np.finfo(dtype).eps, "atol": np.finfo(dtype).smallest_subnormal}
    for name, values, axis in (("rows", x, 1), ("columns", x.T.copy(), 0), ("long", x, 1)):
        if name == "long":
            values = np.concatenate([x, np.zeros((len(x), 40_000), dtype)], 1)
        norm = partial(tf.norm, axis=axis)
        slope = tf.grad(lambda x, norm=norm: tf.reduce_sum(norm(x)))
        for wrap in (lambda function: function, tf.function):
            np.testing.assert_allclose(wrap(norm)(values), expected, **tolerance)
            found = np.moveaxis(wrap(slope)(tf.constant(values)), axis, 1)[:, :5]
            unit = (wide / expected[:, None])[is_normal]
            np.testing.assert_allclose(np.asarray(found)[is_normal], unit, **tolerance)
    special = np.array([[np.inf, 1], [-np.inf, np.inf], [np.nan, 1], [np.inf, np.nan], [0, 0]])
    for values, axis in ((special.astype(dtype), 1), (special.T.astype(dtype), 0)):
        for wrap in (lambda function: function, tf.function):
            found = wrap(partial(tf.norm, axis=axis))(values)
            np.testing.assert_array_equal(found, [np.inf, np.inf, np.nan, np.nan, 0])
    curved = tf.hessian(tf.norm)(tf.constant([3 * sizes[2], 0.0], dtype))
    np.testing.assert_allclose(curved * sizes[2], [[0, 0], [0, 1 / 3]], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("values", [[3.0, 0.0], [3 + 0j, 0j]])
def test_curvature_of_a_norm_where_an_element_is_zero(values):
    x = tf.constant(np.array(values))
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.norm(x)
        slope = inner.gradient(y, x)[1]
    np.testing.assert_allclose(outer.gradient(slope, x), [0, 1 / 3], rtol=1e-12)


INVALID = tf.errors.InvalidArgumentError


def test_tensordot_takes_axes_as_a_tensor_too():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 2, 2)
    expected = np.tensordot(x, y, ((0, 1), (1, 0)))
    for axes in (tf.constant([[0, 1], [1, 0]]), np.array([[0, 1], [1, 0]]), ((0, 1), (1, 0))):
        np.testing.assert_array_equal(tf.tensordot(x, y, axes).numpy(), expected)
    np.testing.assert_array_equal(tf.tensordot(x, y, (1, 0)).numpy(), np.tensordot(x, y, (1, 0)))
    assert tf.tensordot(x, y, 0).shape == (2, 3, 3, 2, 2)


@pytest.mark.parametrize("order", [1, 2, 3.5, np.inf])
def test_the_norm_of_vectors(order):
    x = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
    expected = np.linalg.norm(x, order, axis=1, keepdims=True)
    found = operations.norm(x, order, 1, True)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


def test_the_norm_of_a_matrix_and_of_what_has_none():
    x = np.array([[1.0, -2.0], [0.5, 4.0]])
    np.testing.assert_allclose(operations.norm(x, "fro", (0, 1)).numpy(), np.linalg.norm(x))
    assert_raises(INVALID, "norm: 'ord' must be .* matrix norm", operations.norm, x, 3, (0, 1))
    assert_raises(INVALID, "norm: .*'nuclear'", operations.norm, x, "nuclear")
    assert slope_of_sum(lambda t: operations.norm(tf.stack([t, 4.0]))) == pytest.approx(0.6)


def test_norm_is_that_of_numpy():
    values = np.array([[3.0, -4.0], [1.0, 2.0]])
    for options in ({}, {"axis": 1}, {"ord": 1, "axis": 0}, {"ord": np.inf, "axis": 1}):
        found = np.linalg.norm(tf.constant(values), **options)
        np.testing.assert_allclose(found.numpy(), np.linalg.norm(values, **options))
    kept = np.linalg.norm(tf.constant(values), axis=0, keepdims=True)
    assert kept.shape == (1, 2)
