"""Arrays of pairs: programs compute with each element of a short last axis by itself."""

from math import prod

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._function.graph.components import MAX_COMPONENTS, MIN_PAIRS

ROWS, COLUMNS = 70, 60


def arrays(width, dtype="float64", seed=0):
    """Points of two sets, and weights of pairs."""
    random = np.random.default_rng(seed)
    shapes = (ROWS, width), (COLUMNS, width), (ROWS, COLUMNS)
    return [tf.constant(random.normal(size=shape).astype(dtype)) for shape in shapes]


def differences(x, y):
    return x[:, None] - y[None]


def kernel(x, y, w):
    return tf.reduce_sum(w * tf.exp(-0.5 * tf.reduce_sum(differences(x, y) ** 2, axis=-1)))


def scaled(x, y, w):
    scales = 1.0 + x[0] ** 2
    return tf.reduce_sum(tf.reduce_sum(tf.abs(differences(x, y) / scales), axis=2) * w)


def forces(x, y, w):
    d = differences(x, y)
    cubes = (tf.reduce_sum(d**2, axis=-1, keepdims=True) + 0.1) ** 1.5
    return tf.reduce_sum(tf.reduce_sum(w[:, :, None] * d / cubes, axis=1) ** 2)


def of_all(x, y, w):
    return tf.reduce_sum(tf.sin(differences(x, y)) * w[..., None]) + tf.reduce_sum(
        tf.cos(differences(x, y)), axis=(0, 2), keepdims=True
    )


def with_constants(x, y, w):
    metric = np.linspace(1.0, 2.0, x.shape[-1]).astype(x.dtype)
    return tf.reduce_sum(w * tf.sqrt(tf.reduce_sum(metric * differences(x, y) ** 2, -1) + 0.1))


def chosen(x, y, w):
    d = differences(x, y)
    return tf.reduce_sum(w * tf.reduce_sum(tf.where(d > 0, d, tf.zeros_like(d)), axis=-1))


def in_a_stack(x, y, w):
    d = tf.stack([x, 2.0 * x])[:, :, None] - tf.stack([y, y + 1.0])[:, None]
    return tf.reduce_sum(w * tf.reduce_sum(d**3, axis=-1))


def in_a_loop(x, y):
    d = differences(x, y)
    _, total = tf.while_loop(
        lambda k, total: k < 3, lambda k, total: (k + 1, total + d), (0, tf.zeros_like(d))
    )
    return total


def in_a_choice(x, d):
    return tf.cond(x[0, 0] > 0, lambda: d, lambda: d + 1.0)


FUNCTIONS = [kernel, scaled, forces, of_all, with_constants, chosen, in_a_stack]


def sizes(function, *args):
    """Return the sizes of all arrays with three axes and more in a function's graph."""
    values = tf.function(function).graph(*args).values()
    shapes = [value.shape for value in values if not isinstance(value.aval, list)]
    return [prod(shape) for shape in shapes if len(shape) > 2]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("width", "dtype"), [pytest.param(3, "float64", marks=pytest.mark.quick), (2, "float32")]
)
def test_values_and_gradients_are_those_of_eager_calls(function, width, dtype):
    args = arrays(width, dtype)
    tolerance = 1e-12 if dtype == "float64" else 2e-4

    def everything(x, y, w):
        with tf.GradientTape() as outer:
            outer.watch([x, y, w])
            with tf.GradientTape() as tape:
                tape.watch([x, y, w])
                value = function(x, y, w)
            gradients = tape.gradient(value, [x, y, w])
            total = tf.add_n([tf.reduce_sum(tf.sin(g)) for g in gradients])
        return value, *gradients, *outer.gradient(total, [x, y, w])

    compiled = tf.function(everything)(*args)
    for result, expected in zip(compiled, everything(*args), strict=True):
        scale = np.abs(expected).max()
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("function", [kernel, scaled, forces, with_constants, chosen])
def test_no_array_has_all_differences(function):
    args = arrays(3)
    gradient = tf.grad(function, argnums=(0, 1, 2))
    for f in (function, gradient):
        assert max(sizes(f, *args), default=0) < ROWS * COLUMNS * 3


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: differences(x, y),
        lambda x, y: (tf.reduce_sum(differences(x, y) ** 2, -1), differences(x, y) ** 2),
        lambda x, y: tf.reduce_max(tf.abs(differences(x, y)), axis=-1),
        lambda x, y: tf.transpose(differences(x, y), (2, 0, 1)),
        lambda x, y: tf.reduce_sum(differences(x, y) > 0, axis=-1),
        lambda x, y: in_a_loop(x, y),
        lambda x, y: in_a_choice(x, differences(x, y)),
    ],
)
def test_what_is_read_by_more_than_sums_keeps_its_shape(function):
    x, y, _ = arrays(3)
    assert ROWS * COLUMNS * 3 in sizes(function, x, y)
    results = tf.nest.flatten(tf.function(function)(x, y))
    for result, expected in zip(results, tf.nest.flatten(function(x, y)), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_small_arrays_and_long_axes_keep_their_shape():
    def distances(x):
        return tf.reduce_sum(differences(x, x) ** 2, axis=-1)

    for rows, width in ((20, 3), (100, 5)):
        assert rows**2 < width * MIN_PAIRS or width > MAX_COMPONENTS
        assert rows**2 * width in sizes(distances, tf.ones((rows, width)))


def test_a_nan_and_an_infinity_stay_where_they_are():
    x, y, _ = arrays(3)
    points = x.numpy().copy()
    points[3, 1], points[5, 2] = np.nan, np.inf

    def distances(x, y):
        return tf.reduce_sum(differences(x, y) ** 2, axis=-1)

    result = tf.function(distances)(points, y)
    np.testing.assert_allclose(result, distances(points, y), rtol=1e-14)
    assert np.isnan(result[3]).all()
    assert np.isposinf(result[5]).all()
