"""check_gradients on rules that lose a part of a derivative: which part, where, and why."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.check.test_check import code_of, words
from tests.check.test_rules_table import evaluations

assert evaluations  # a fixture

RNG = np.random.default_rng(1)
V = RNG.normal(size=5)
TABLE = tf.constant(np.float32(RNG.normal(size=(5, 2))))
X, W, B = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 2)), RNG.normal(size=2)
FILTER = np.exp(-np.arange(5.0) + 0.3j * np.arange(5.0))


def filtered(values, weights):
    return tf.constant(np.fft.ifft(np.fft.fft(np.asarray(values)) * weights).real)


@tf.custom_gradient
def smooth(u):
    """Its rule is not conjugated, and takes dy out of its tensor."""
    y = tf.constant(np.fft.ifft(np.fft.fft(np.asarray(u)) * FILTER).real)
    return y, lambda dy: tf.constant(np.fft.ifft(np.fft.fft(np.asarray(dy)) * FILTER).real)


@tf.custom_gradient
def pick(x):
    def grad(dy):
        g = np.zeros(5, np.float32)
        g[[1, 2]] = dy.numpy()
        return tf.constant(g)

    return tf.gather(x, [1, 2]), grad


@tf.custom_gradient
def embed(table):
    """In float32 the row of its square is inconclusive."""

    def grad(dy):
        g = np.zeros((5, 2), np.float32)
        np.add.at(g, [1, 3, 1, 0], dy.numpy())
        return tf.constant(g)

    return tf.gather(table, [1, 3, 1, 0]), grad


@tf.custom_gradient
def elsewhere(u):
    """The rule takes dy out of its tensor in a function of this module."""
    return 2.0 * u, lambda dy: filtered(dy, 2.0)


@tf.custom_gradient
def unseen(x):
    return 3.0 * x, lambda dy: tf.constant(3.0 * dy._data)


@tf.custom_gradient
def dense(x, w, b):
    h = tf.tanh(x @ w + b)
    saved = tf.constant(h.numpy())

    def grad(dy):
        dz = dy * (1.0 - saved**2)
        return dz @ tf.transpose(w), tf.transpose(x) @ dz, tf.reduce_sum(dz, axis=0)

    return h, grad


@tf.custom_gradient
def prints(x):
    """Its factor is wrong; the value that is taken out is for a print, which text reads again."""

    def grad(dy):
        assert f"{float(tf.reduce_sum(x)):.3f}"
        return 6.0 * dy * x**2

    return x**3, grad


W3 = tf.Variable([1.0, 2.0, 3.0], name="scales")


@tf.custom_gradient
def decayed(x):
    def grad(dy, variables=None):
        return dy * W3, [None]

    return x * W3 + 0.1 * tf.reduce_sum(W3**2), grad


@tf.custom_gradient
def sine(x):
    """Its rule reads what NumPy computed, and x itself."""
    y = tf.constant(np.sin(np.asarray(x)))
    return y, lambda dy: dy * tf.cos(x) * (y / tf.sin(x))


LOST = {
    "dy, and the rule is wrong at order 1": (
        smooth, (V,), "2. The rule of `smooth` takes NumPy or Python values from a tensor in "
        "`np.asarray(dy)` (test_detached.py:", "depends on u",
    ),
    "dy, in an array that takes tensors": (
        pick, (tf.constant(np.float32(V)),), "1. The rule of `pick` takes NumPy or Python values "
        "from a tensor in `dy.numpy()` (test_detached.py:", "depends on x",
    ),
    "dy, and no other row is wrong": (
        embed, (TABLE,), "1. The rule of `embed` takes NumPy or Python values from a tensor in "
        "`dy.numpy()` (test_detached.py:", "depends on table",
    ),
    "dy, in a helper": (
        elsewhere, (V,), "takes NumPy or Python values from a tensor in `np.asarray(values)`",
        "depends on u",
    ),
    "dy, at no place that is seen": (
        unseen, (V,), "so the gradient of order 2 with respect to the upstream gradient is None. "
        "The gradient", "respect to x",
    ),
    "a part": (
        dense, (X, W, B), "so the gradient of order 2 with respect to b is None, and the gradient "
        "with respect to x and w lacks a part.", "b, w and x",
    ),
    "the gradient of a Variable": (
        decayed, (tf.constant([0.3, 0.2, 0.1]),), "The gradient with respect to scales is None. "
        "The rule of `decayed` returns None for scales. Return a gradient. The gradient of order 1 "
        "with respect to scales", "captured",
    ),
    "a part, through the output": (
        sine, (V,), "by `np.asarray(x)` (test_detached.py:", "is None"
    ),
    "nothing": (prints, (V,), "It is 2 times the correct gradient.", "takes NumPy"),
}  # fmt: skip


@pytest.mark.parametrize("name", LOST)
def test_what_is_lost_is_named(name, evaluations):
    function, args, said, unsaid = LOST[name]
    text = words(tf.check_gradients(function, *args))  # a line that only prints
    assert said in text
    assert unsaid not in text.partition("1. ")[2]
    assert len(evaluations) <= 110


def test_a_part_that_is_lost_is_called_detached():
    report = tf.check_gradients(sine, V)
    assert {row.verdict for row in report.rows if row.false} == {"detached"}
    assert "so the gradient of order 2 with respect to x lacks a part." in words(report)
    assert "(sine(x) / tf.sin(x))" in code_of(report)


def two_arguments(c, e):
    @tf.custom_gradient
    def stiff(x, y):
        held = tf.stop_gradient(y)
        return c * x**2 + e * tf.sin(y), lambda dy: (2.0 * c * dy * x, e * dy * tf.cos(held))

    return stiff, (1.3, 0.4)


def one_vector(c, e):
    @tf.custom_gradient
    def stiff(p):
        held = tf.stop_gradient(p)
        slopes = tf.stack([2.0 * c * p[0], e * tf.cos(held[1])])
        return c * p[0] ** 2 + e * tf.sin(p[1]), lambda dy: dy * slopes

    return stiff, (np.array([1.3, 0.4]),)


@pytest.mark.parametrize("make", [two_arguments, one_vector])
@pytest.mark.parametrize(("c", "e"), [(1e6, 1e-6), (1e4, 1e-6), (1.0, 1e-9)])
def test_a_derivative_that_is_lost_in_a_small_element_is_seen(make, c, e, evaluations):
    function, args = make(c, e)
    report = tf.check_gradients(function, *args)
    assert "detached" in {row.verdict for row in report.rows if row.order == 2}, report
    if make is one_vector:
        assert "detached; for p[1] of the gradient of order 1 alone" in words(report)
    assert "tf.cos(" in code_of(report)
    assert len(evaluations) <= 120


def test_a_wrong_derivative_of_a_small_output_is_seen():
    @tf.custom_gradient
    def pair(x):
        y = tf.stack([1e7 * x**2, 1e-7 * tf.sin(x)])
        return y, lambda dy: dy[0] * 2e7 * x - dy[1] * 1e-7 * tf.cos(x)

    report = tf.check_gradients(pair, 0.7)
    assert report.first_false_order == 1, report
    assert "wrong; for the output[1] alone" in str(report)
    assert tf.check_gradients(lambda x: pair(x)[0], 0.7).ok


def test_second_derivatives_that_are_none_are_not_called_symmetric():
    @tf.custom_gradient
    def f(x):
        slope = tf.stop_gradient(tf.cos(x))
        return tf.sin(x), lambda dy: dy * slope

    report = tf.check_gradients(f, np.array([0.3, 0.7]))
    assert {row.value for row in report.rows if (row.order, row.path) == (2, "x")} == {None}
    assert "symmetric" not in str(report)
