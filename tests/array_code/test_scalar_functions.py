"""Derivatives of functions of numbers, against the same functions in 40 digits, or mpmath's own."""

import math
from types import FunctionType, SimpleNamespace

import mpmath as mp
import numpy as np
import pytest

import tinygrad_cg as tf

from .scalar_functions import CASES

NAMES = [function.__name__ for function, *_ in CASES]
THIRD = {"lanczos_gamma", "stirling", "kepler", "air_density", "bessel_upward", "bessel_downward"}
MATH = SimpleNamespace(**{name: getattr(mp, name, None) for name in dir(math)})
MATH.lgamma, MATH.fabs, MATH.floor = mp.loggamma, abs, lambda x: int(mp.floor(x))
MATH.array, MATH.zeros = list, lambda count: [mp.mpf(0)] * count


def in_many_digits(function):
    """Return a function with mpmath's functions instead of those of `math`."""
    function = getattr(function, "py_func", function)
    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        value = names.get(name)
        if value is math or value is np:
            names[name] = MATH
        elif isinstance(value, np.ndarray):
            names[name] = [mp.mpf(float(x)) for x in value]
        elif hasattr(value, "py_func"):
            names[name] = in_many_digits(value)
    return FunctionType(function.__code__, names, function.__name__, function.__defaults__)


def derivative(f, point, ways):
    """Return a derivative by some of the numbers, from differences of order four."""
    if not ways:
        return f(*point)
    step = (abs(point[ways[0]]) or 1) * mp.mpf(10) ** -6

    def moved(h):
        others = [x + h if k == ways[0] else x for k, x in enumerate(point)]
        return derivative(f, others, ways[1:])

    wide, narrow = moved(2 * step) - moved(-2 * step), moved(step) - moved(-step)
    return (8 * narrow - wide) / (12 * step)


def gradient(f, k):
    return lambda *xs: tf.grad(lambda *xs: tf.reduce_sum(f(*xs)), k)(*xs)


@pytest.mark.parametrize(("function", "points", "exact"), CASES, ids=NAMES)
def test_values_and_derivatives(function, points, exact):
    name, count = function.__name__, len(points)
    op = tf.primitive(f"scalar_{name}", function, elementwise=True, replace=True)
    xs = [tf.constant(p, tf.float64) for p in points]
    ways = [(k,) for k in range(count)] + [(count - 1, k) for k in range(count)]
    ways += [(count - 1,) * 3] if name in THIRD else []
    for way in [(), *ways]:
        with mp.workdps(40):
            exact = exact or in_many_digits(function)
            rows = [[mp.mpf(x) for x in point] for point in zip(*points, strict=True)]
            expected = [float(derivative(exact, row, way)) for row in rows]
        tolerance = {"rtol": 1e-8, "atol": 1e-9 * max(map(abs, expected))}
        lower = op
        for k in way[:-1]:
            lower = gradient(lower, k)
        if not way:
            np.testing.assert_allclose(op(*xs), expected, **tolerance)
            continue
        reverse = gradient(lower, way[-1])(*xs)
        np.testing.assert_allclose(reverse, expected, **tolerance)
        tangents = [tf.ones_like(x) if k == way[-1] else tf.zeros_like(x) for k, x in enumerate(xs)]
        forward = tf.jvp(lower, tuple(xs), tuple(tangents))[1]
        np.testing.assert_allclose(forward, reverse, rtol=1e-12)
    gradients = tf.grad(lambda *xs: tf.reduce_sum(op(*xs)), tuple(range(count)))
    for compiled, eager in zip(tf.function(gradients)(*xs), gradients(*xs), strict=True):
        np.testing.assert_allclose(compiled, eager, rtol=1e-13)
    if NAMES.index(name) % 3:  # a third of them in float32
        return
    narrow = [tf.cast(x, tf.float32) for x in xs]
    for f in (op, gradient(op, count - 1)):
        result, expected = f(*narrow), f(*[tf.cast(x, tf.float64) for x in narrow]).numpy()
        assert result.dtype == tf.float32
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5 * abs(expected).max())
