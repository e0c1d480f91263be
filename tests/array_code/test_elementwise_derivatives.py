"""Derivatives of elementwise kernels of `primitive`, from their source, to third order."""

import math

import numpy as np
import pytest
from numba import njit

import tinygrad_cg as tf

from .scalar_functions import bessel_upward

TABLE = np.array([0.0, 1.0, 4.0, 9.0, 16.0])


@njit
def kepler(eccentricity, anomaly):
    x = anomaly
    for _ in range(50):
        step = (x - eccentricity * math.sin(x) - anomaly) / (1 - eccentricity * math.cos(x))
        x -= step
        if abs(step) < 1e-15:
            break
    return x


def interpolated(x):
    i = min(max(int(x), 0), 3)
    t = x - i
    return TABLE[i] * (1 - t) + TABLE[i + 1] * t


def polar(x, y):
    return math.sqrt(x * x + y * y), math.atan2(y, x)


def series(x):
    total, term, n = 0.0, 1.0, 0
    while abs(term) > 1e-17:
        total += term
        n += 1
        term *= x / n
    return total


def factorial_like(x):
    """Stirling's series after a shift."""
    shift = 0.0
    while x < 9.0:
        shift += math.log(x)
        x += 1.0
    return (x - 0.5) * math.log(x) - x + 1 / (12 * x) - 1 / (360 * x**3) - shift


CASES = [
    (kepler, ([0.1, 0.4, 0.7], [0.3, 1.1, 2.0])),
    (interpolated, ([0.4, 1.3, 2.8],)),
    (series, ([-0.4, 0.3, 1.2],)),
    (bessel_upward, ([1.5, 2.5, 4.0],)),
    (factorial_like, ([0.7, 3.2, 12.0],)),
]
IDS = [function.__name__ for function, _ in CASES]


def operation(function):
    return tf.primitive(f"derived_{function.__name__}", function, elementwise=True, replace=True)


def differences(function, x, step=1e-3):
    """The derivative at each element, by differences of order four."""

    def at(h):
        return (np.asarray(function(x + h)) - np.asarray(function(x - h))) / (2 * h)

    return (4 * at(step / 2) - at(step)) / 3


@pytest.mark.quick
@pytest.mark.parametrize(("function", "args"), CASES, ids=IDS)
def test_to_third_order_in_reverse_and_forward_mode(function, args):
    op = operation(function)
    *others, x = (tf.constant(arg, tf.float64) for arg in args)
    lower = [lambda x: op(*others, x)]
    for _ in range(3):
        lower.append(tf.elementwise_grad(lower[-1]))
    for order in (1, 2, 3):
        expected = differences(lower[order - 1], x)
        np.testing.assert_allclose(lower[order](x), expected, rtol=1e-6, atol=1e-7)
        tangent = tf.jvp(lower[order - 1], (x,), (tf.ones_like(x),))[1]
        np.testing.assert_allclose(tangent, lower[order](x), rtol=1e-12, atol=1e-13)


@pytest.mark.quick
def test_implicit_derivatives_of_a_fixed_point():
    """Of E - e sin(E) = M by e and M, which Newton's iteration has to give exactly."""
    op = operation(kepler)
    e, m = tf.constant([0.1, 0.4, 0.7], tf.float64), tf.constant([0.3, 1.1, 2.0], tf.float64)
    by_e, by_m = tf.grad(lambda e, m: tf.reduce_sum(op(e, m)), (0, 1))(e, m)
    x = op(e, m).numpy()
    slope = 1 - e.numpy() * np.cos(x)
    np.testing.assert_allclose(by_m, 1 / slope, rtol=1e-14)
    np.testing.assert_allclose(by_e, np.sin(x) / slope, rtol=1e-14)


@pytest.mark.quick
def test_several_outputs_broadcasting_and_float32():
    op = operation(polar)
    x, y = tf.constant([3.0, -1.0]), tf.constant([[4.0], [2.0]])

    def loss(x, y):
        radius, angle = op(x, y)
        return tf.reduce_sum(radius * angle)

    def expected(x, y):
        return tf.reduce_sum(tf.sqrt(x * x + y * y) * tf.atan2(y, x))

    results = tf.grad(loss, (0, 1))(x, y), tf.grad(expected, (0, 1))(x, y)
    for ours, theirs in zip(*results, strict=True):
        assert ours.dtype == tf.float32
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    program = tf.function(lambda x, y: tf.grad(loss)(x, y))
    np.testing.assert_allclose(program(x, y), tf.grad(loss)(x, y), rtol=1e-6)


@pytest.mark.quick
@pytest.mark.parametrize(
    "step", [lambda x: 1 if x > 0 else 0, lambda x: x > 0, lambda x: int(x) % 2]
)
def test_functions_whose_results_are_whole_are_flat(step):
    op = tf.primitive("derived_step", step, elementwise=True, replace=True)
    for dtype in (tf.float64, tf.float32):
        x = tf.constant([-1.5, 0.5, 3.5], dtype)
        np.testing.assert_array_equal(op(x), [step(v) for v in (-1.5, 0.5, 3.5)])
        first = tf.elementwise_grad(op)
        np.testing.assert_array_equal(first(x), np.zeros(3))
        np.testing.assert_array_equal(tf.elementwise_grad(lambda x: x * op(x))(x), op(x))
        np.testing.assert_array_equal(tf.elementwise_grad(first)(x), np.zeros(3))


@pytest.mark.quick
def test_a_registered_rule_comes_first():
    @tf.primitive("derived_or_registered", elementwise=True, replace=True)
    def cube(x):
        return x**3

    x = tf.constant(2.0)
    assert float(tf.grad(cube)(x)) == 12.0
    tf.RegisterGradient("derived_or_registered", replace=True)(lambda op, dy: -dy)
    assert float(tf.grad(cube)(x)) == -1.0


@pytest.mark.quick
def test_a_kernel_outside_the_subset_says_why():
    @tf.primitive("derived_from_a_list", elementwise=True, replace=True)
    def listed(x):
        parts = [x, x * x]
        return parts[1]

    with pytest.raises(LookupError, match=r"cannot be derived .*lists are not supported"):
        tf.grad(listed)(tf.constant(2.0))
