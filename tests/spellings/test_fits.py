"""Fits, roots and grids of counts: NumPy's numbers, and gradients in all modes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tinygrad_cg as tf
from tests.support.modes import assert_right_in_all_modes
from tinygrad_cg import numpy as tnp

RNG = np.random.default_rng(0)
X, Y = np.linspace(-1, 2, 9), RNG.normal(size=9)
W = RNG.uniform(0.5, 2, 9)


def test_polyfit():
    for y in (Y, np.stack([Y, Y**2], 1)):
        for w in (None, W):
            for cov in (True, "unscaled"):
                fit = np.polyfit(X, tf.constant(y), 2, w=w, cov=cov)
                expected = np.polyfit(X, y, 2, w=w, cov=cov)
                for part, other in zip(fit, expected, strict=True):
                    assert_allclose(part, np.broadcast_to(other, part.shape), rtol=1e-10)
    assert_right_in_all_modes(lambda y: tnp.polyfit(X, y * y, 2), tf.constant(Y))
    assert_right_in_all_modes(lambda x: tnp.polyfit(x, Y, 1, w=W), tf.constant(X))
    for call, text in (
        (lambda: tnp.polyfit(X, Y[:3], 1), "x must be a vector and y have as many rows"),
        (lambda: tnp.polyfit(X, Y, -1), "a degree of 0 or more"),
        (lambda: tnp.polyfit(X, Y, 1, w=[1.0]), "w must have the shape of x"),
        (lambda: tnp.polyfit(X, Y, 1, full=True), "full=True is not supported"),
        (lambda: tnp.polyfit(X[:2], Y[:2], 1, cov=True), r"more than deg \+ 1 = 2 points"),
    ):
        with pytest.raises(ValueError, match=text):
            call()


def test_zeros_and_coefficients():
    polynomial = np.array([0.0, 2.0, -3.0, 1.0, 5.0, 0.0])
    assert_allclose(
        np.sort_complex(tnp.roots(polynomial).numpy()),
        np.sort_complex(np.roots(polynomial)),
        atol=1e-12,
    )
    assert tnp.roots([0.0, 0.0]).shape == tnp.roots([3.0]).shape == (0,)
    assert_allclose(np.poly(tf.constant([1.0, -2.0, 0.5])), np.poly([1.0, -2.0, 0.5]))
    matrix = RNG.normal(size=(3, 3))
    assert_allclose(tnp.poly(matrix), np.poly(matrix), rtol=1e-10)
    assert_allclose(tnp.poly([1j, -1j]), [1, 0, 1])
    assert_right_in_all_modes(lambda x: tnp.poly(x * x), tf.constant([1.0, -2.0, 0.5], tf.float64))

    def magnitude(p):
        return tnp.sum(tnp.abs(tnp.roots(p)) ** 2)

    assert_right_in_all_modes(magnitude, tf.constant([2.0, -3.0, 1.0, 5.0], tf.float64))
    for u, v in (
        ([3.0, 5.0, 2.0], [2.0, 1.0]),
        ([1.0, 2.0], [1.0, 2.0, 3.0]),
        ([1.0, 3, 2], [1.0, 1]),
    ):
        for part, other in zip(np.polydiv(tf.constant(u), v), np.polydiv(u, v), strict=True):
            assert_allclose(part, other, atol=1e-12)
    for name in ("roots", "poly"):
        with pytest.raises(ValueError, match=f"{name}: needs a vector"):
            getattr(tnp, name)(np.ones((2, 3)))


def test_geometric_steps():
    for start, stop, options in (
        (1, 1000, {"num": 4}),
        (-1.0, -8.0, {"num": 4, "endpoint": False}),
        ([1.0, 2.0], 64.0, {"num": 3, "axis": -1}),
        (1, 256, {"num": 9, "dtype": "float32"}),
    ):
        result = np.geomspace(tf.constant(np.asarray(start)), stop, **options)
        assert_allclose(result, np.geomspace(start, stop, **options), rtol=1e-14)
    assert_right_in_all_modes(lambda x: tnp.geomspace(x[0], x[1], 4), tf.constant([1.5, 3.0]))
    with pytest.raises(TypeError, match="complex ends"):
        tnp.geomspace(1j, 2.0)


def test_windows_that_slide():
    x = np.arange(20.0).reshape(4, 5)
    view = np.lib.stride_tricks.sliding_window_view
    for options in ({"window_shape": (2, 3)}, {"window_shape": 2, "axis": 1}):
        assert_array_equal(view(tf.constant(x), **options), view(x, **options))
    assert_right_in_all_modes(lambda x: view(x * x, 3), tf.constant(X))
    for shape, text in (
        (6, "must have a size for each of 2 axes"),
        ((5, 1), "does not fit an axis"),
    ):
        with pytest.raises(ValueError, match=text):
            view(tf.constant(x), shape)


def test_elements_of_one_of_two():
    a, b = np.array([3.0, 1.0, 3.0, 2.0]), np.array([2.0, 5.0, 4.0])
    assert_array_equal(np.setxor1d(tf.constant(a), b), np.setxor1d(a, b))
    slope = tf.grad(lambda a: tnp.sum(tnp.setxor1d(a, b) ** 2))(tf.constant(a))
    assert_array_equal(slope, [6, 2, 0, 0])
    slope = tf.grad(lambda a: tnp.sum(tnp.unique(a) ** 2))(tf.constant(a))  # without a warning
    assert_array_equal(slope, [6, 2, 0, 4])
    with pytest.raises(TypeError, match="setxor1d: the size of its result"):
        tf.function(lambda a: tnp.setxor1d(a, b))(tf.constant(a))


def test_counts_on_a_grid():
    points = RNG.normal(size=(50, 2))
    x, y, weights = points[:, 0], points[:, 1], RNG.uniform(size=50)
    edges = np.array([-1.0, 0.0, 0.5, 2.0])
    for options in (
        {},
        {"bins": 4, "density": True},
        {"bins": [edges, 3], "weights": weights},
        {"bins": edges, "range": None},
        {"bins": (2, 3), "range": [[-1, 1], [0, 2]]},
    ):
        histogram = np.histogram2d(tf.constant(x), y, **options)
        for part, other in zip(histogram, np.histogram2d(x, y, **options), strict=True):
            assert_allclose(part, other)
    histogram, limits = tnp.histogramdd(points, 3)
    assert_array_equal(histogram, np.histogramdd(points, 3)[0])
    assert len(limits) == 2
    slope = tf.grad(lambda w: tnp.histogram2d(x, y, 2, weights=w)[0][0, 0])(tf.constant(weights))
    expected = (x < (x.min() + x.max()) / 2) & (y < (y.min() + y.max()) / 2)
    assert_array_equal(slope, expected)
    with pytest.raises(ValueError, match="a weight for each of 50 points"):
        tnp.histogram2d(x, y, weights=[1.0])


def test_what_counts_takes_no_values_out_of_what_is_differentiated():
    """It warned so: of numbers that only say where others belong."""
    x = tf.constant([3.0, 1.0, 2.0, 1.0])
    slope = tf.grad(lambda x: tf.reduce_sum(tf.unique(x * x)[0]))(x)
    assert_array_equal(slope, [6.0, 2.0, 4.0, 0.0])
    slope = tf.grad(lambda x: tnp.histogram(x, [0.0, 1.5, 3.0], weights=x)[0][0])(x)
    assert_array_equal(slope, [0.0, 1.0, 0.0, 1.0])
