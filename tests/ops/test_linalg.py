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
            units = np.moveaxis(wrap(slope)(tf.constant(values)), axis, 1)[:, :5]
            unit = (wide / expected[:, None])[is_normal]
            np.testing.assert_allclose(np.asarray(units)[is_normal], unit, **tolerance)
    special = np.array([[np.inf, 1], [-np.inf, np.inf], [np.nan, 1], [np.inf, np.nan], [0, 0]])
    for values, axis in ((special.astype(dtype), 1), (special.T.astype(dtype), 0)):
        for wrap in (lambda function: function, tf.function):
            units = wrap(partial(tf.norm, axis=axis))(values)
            np.testing.assert_array_equal(units, [np.inf, np.inf, np.nan, np.nan, 0])
    curved = tf.hessian(tf.norm)(tf.constant([3 * sizes[2], 0.0], dtype))
    np.testing.assert_allclose(curved * sizes[2], [[0, 0], [0, 1 / 3]], rtol=1e-6, atol=1e-6)


LENGTHS = {
    **{f"norm, {p}": lambda x, p=p: tf.norm(x, ord=p) for p in (0.5, 1.5, 2, 3, 10)},
    "norm, -2": lambda x: tf.numpy.linalg.vector_norm(x, ord=-2),
    "norms of rows": lambda x: tf.reduce_sum(tf.norm(tf.stack([x, 2 * x]), ord=4, axis=1)),
    "norm of complex numbers": lambda x: tf.norm(tf.complex(x, 2 * x), ord=3),
    "global_norm": lambda x: tf.linalg.global_norm([x[:2], tf.reshape(x[2:], (1, 2)), 0 * x]),
    "global_norm, complex": lambda x: tf.linalg.global_norm([tf.complex(x, x[::-1])]),
}
UNITS = {
    "clip_by_norm": lambda x: tf.clip_by_norm(x, 1.0),
    "clip_by_norm of rows": lambda x: tf.clip_by_norm(tf.stack([x, 2 * x]), 1.5, 1),
    "clip_by_global_norm": lambda x: tf.clip_by_global_norm([x, 2 * x], 1.5)[0][1],
    "l2_normalize": lambda x: tf.math.l2_normalize(x, epsilon=0.0),
    "normalize": lambda x: tf.linalg.normalize(x, 3)[0],
    "keras normalize": lambda x: tf.keras.ops.normalize(x, order=3, epsilon=0.0),
}


@pytest.mark.parametrize("name", [*LENGTHS, *UNITS])
def test_lengths_and_their_derivatives_scale(name):
    """Lengths are as long as vectors, their gradients are not, and their curvature is inverse."""
    function, weights = (LENGTHS | UNITS)[name], tf.constant([0.5, -1, 2, 0.25], tf.float64)
    degree = 1 if name in LENGTHS else 0

    def value_and_derivatives(x):
        def total(x):
            y = function(x)
            return tf.reduce_sum(y * tf.cast(weights, y.dtype)) if degree == 0 else y

        slope = tf.grad(total)
        along = tf.grad(lambda x: tf.tensordot(slope(x), tf.cast(weights, x.dtype), 1))
        forward = tf.vectorized_map(
            lambda v: tf.jvp(slope, (x,), (v,))[1], tf.eye(4, dtype=x.dtype)
        )
        return [function(x), slope(x), along(x), forward]

    exact = np.array([3.0, -1.0, 2.0, 0.5])
    wide_results = value_and_derivatives(tf.constant(exact * 4))
    sizes = {"float64": (2.0**-650, 2.0**650, 4), "float32": (2.0**-96, 2.0**96, 4)}
    for dtype, scales in sizes.items():
        for scale in scales if degree else scales[1:]:  # those that are clipped
            x = tf.constant(exact * scale, dtype)
            for wrap in (lambda function: function, tf.function):
                result = wrap(value_and_derivatives)(x)
                for order, (narrow, wide) in enumerate(zip(result, wide_results, strict=True)):
                    wide = wide.numpy() * (scale / 4) ** (degree - min(order, 2))
                    bound = 200 * np.finfo(dtype).eps
                    least = bound * np.abs(wide).max() + np.finfo(dtype).tiny
                    limits = {"rtol": bound, "atol": least}
                    np.testing.assert_allclose(narrow.numpy(), wide, err_msg=dtype, **limits)


def test_lengths_at_zero_and_beside_infinities():
    for wrap in (lambda function: function, tf.function):
        for p in (1.5, 3):
            norm = partial(tf.norm, ord=p)
            assert wrap(norm)(tf.zeros(3)) == 0
            assert wrap(tf.grad(norm))(tf.zeros(3)).numpy().tolist() == [0, 0, 0]
            assert wrap(norm)(tf.zeros(0)) == 0
            assert wrap(norm)(tf.constant([np.inf, 1])) == np.inf
            assert np.isnan(wrap(norm)(tf.constant([np.nan, 1])))
        assert wrap(lambda x: tf.linalg.global_norm([x, x]))(tf.zeros(3)) == 0
        assert wrap(tf.grad(lambda x: tf.linalg.global_norm([x])))(tf.zeros(2)).numpy().max() == 0
    negative = partial(tf.numpy.linalg.vector_norm, ord=-2)
    assert negative(np.array([0.0, 2])) == 0
    assert negative(np.array([np.inf, np.inf])) == np.inf
    zeros, long = tf.zeros(2, tf.float64), np.array([4e200])
    curved = tf.hessian(lambda x: tf.linalg.global_norm([x, long]))(zeros)
    np.testing.assert_allclose(curved * 4e200, np.eye(2), rtol=1e-12)


def test_clipping_leaves_tiny_and_huge_numbers_as_they_are_where_they_fit():
    for x, limit in (([3e-200, -4e-200], 1e-3), ([3e200, -4e200], 1e201), ([0.1, 0.2], 0.3)):
        for wrap in (lambda function: function, tf.function):
            x = tf.constant(np.array(x))
            assert wrap(tf.clip_by_norm)(x, limit).numpy().tolist() == x.numpy().tolist()
            (result,), _ = wrap(tf.clip_by_global_norm)([x], limit)
            assert result.numpy().tolist() == x.numpy().tolist()
    long = tf.constant(np.array([3e30, -4e30], np.float32))
    np.testing.assert_allclose(tf.clip_by_norm(long, 1e-12), [6e-13, -8e-13], rtol=1e-6)
    mixed = [long, tf.constant(np.array([1.2e31]))]
    np.testing.assert_allclose(tf.linalg.global_norm(mixed), 1.3e31, rtol=1e-7)
    mixed_up = [tf.constant([3e-30], tf.float32), tf.constant([4e-30j])]
    np.testing.assert_allclose(tf.linalg.global_norm(mixed_up), 5e-30, rtol=1e-7)
    (clipped, two), _ = tf.clip_by_global_norm(mixed, 13.0)
    np.testing.assert_allclose(clipped, [3, -4], rtol=1e-6)
    np.testing.assert_allclose(two, [12], rtol=1e-7)
    scaled = tf.keras.utils.normalize(np.array([[3e200, 4e200], [3e-200, 4e-200]]))
    np.testing.assert_allclose(scaled, [[0.6, 0.8]] * 2, rtol=1e-15)


@pytest.mark.parametrize("option", ["clipnorm", "global_clipnorm"])
@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_optimizers_clip_gradients_whose_squares_overflow_or_underflow(option, size):
    variable = tf.Variable(np.zeros(2))
    optimizer = tf.optimizers.SGD(1.0, **{option: size})
    optimizer.apply_gradients([(tf.constant(np.array([6.0, -8]) * size), variable)])
    np.testing.assert_allclose(variable, np.array([-0.6, 0.8]) * size, rtol=1e-15)


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
    result = operations.norm(x, order, 1, True)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


def test_the_norm_of_a_matrix_and_of_what_has_none():
    x = np.array([[1.0, -2.0], [0.5, 4.0]])
    np.testing.assert_allclose(operations.norm(x, "fro", (0, 1)).numpy(), np.linalg.norm(x))
    assert_raises(INVALID, "norm: 'ord' must be .* matrix norm", operations.norm, x, 3, (0, 1))
    assert_raises(INVALID, "norm: .*'nuclear'", operations.norm, x, "nuclear")
    assert slope_of_sum(lambda t: operations.norm(tf.stack([t, 4.0]))) == pytest.approx(0.6)


def test_norm_is_that_of_numpy():
    values = np.array([[3.0, -4.0], [1.0, 2.0]])
    for options in ({}, {"axis": 1}, {"ord": 1, "axis": 0}, {"ord": np.inf, "axis": 1}):
        result = np.linalg.norm(tf.constant(values), **options)
        np.testing.assert_allclose(result.numpy(), np.linalg.norm(values, **options))
    kept = np.linalg.norm(tf.constant(values), axis=0, keepdims=True)
    assert kept.shape == (1, 2)
