"""Compiled functions in each transformation, and each transformation compiled, as eagerly."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.compiled import unfused
from tests.support.composites import FAKE, POINT, TRUE
from tests.support.orders import gradient_function, tangent_function

ALL = TRUE | FAKE
WAY = tf.constant([0.3, -1.2, 0.8], dtype="float64")
POINTS = tf.constant(np.stack([POINT, POINT[::-1], 0.5 * POINT]))
pytestmark = pytest.mark.filterwarnings("ignore::tinygrad_cg.CustomGradientWarning")


def at(function):
    """The function at what is computed from its argument, so that outer tapes watch that."""
    return lambda x: function(tf.identity(x))


def in_a_rule(f):
    """A custom gradient whose value and rule are f and its gradient."""

    @tf.custom_gradient
    def outer(x):
        def grad(dy, variables=()):
            gradient = dy * tf.grad(f)(x)
            return (gradient, [None for _ in variables]) if variables else gradient

        return f(x) * 1.0, grad

    return gradient_function(lambda x: outer(x) ** 2)


WAYS = {
    "tape": gradient_function,
    "tapes": lambda f: gradient_function(
        lambda x: tf.reduce_sum(at(gradient_function(f))(x) * WAY)
    ),
    "grad": tf.grad,
    "hvp": lambda f: lambda x: tf.hvp(f)(x, WAY),
    "hessian": tf.hessian,
    "hessian by columns": lambda f: tf.jacobian(tf.grad(f), mode="forward"),
    "third": lambda f: tf.jacobian(lambda x: tf.hvp(f)(x, WAY)),
    "tangent": lambda f: tangent_function(f, WAY),
    "tangent of gradient": lambda f: tangent_function(at(gradient_function(f)), WAY),
    "gradient of tangent": lambda f: gradient_function(at(tangent_function(f, WAY))),
    "rule": in_a_rule,
    "rule, twice": lambda f: gradient_function(lambda x: tf.reduce_sum(in_a_rule(f)(x) * WAY)),
}
BATCHED = ("tape", "hvp", "tangent", "rule")


def assert_close(result, expected):
    result, expected = result.numpy(), expected.numpy()
    scale = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-11 * scale)


@pytest.mark.parametrize("name", ALL)
def test_transformations(name):
    f, x = ALL[name], tf.constant(POINT)
    compiled = unfused(f)
    for transform in WAYS.values():
        expected = transform(f)(x)
        both = unfused(transform(compiled))
        for function in (transform(compiled), unfused(transform(f)), both, both):
            assert_close(function(x), expected)


@pytest.mark.parametrize("name", ALL)
def test_batches(name):
    f = ALL[name]
    compiled = unfused(f)
    for way in BATCHED:
        expected = tf.vmap(WAYS[way](f))(POINTS)
        assert_close(tf.vmap(WAYS[way](compiled))(POINTS), expected)
        assert_close(unfused(tf.vmap(WAYS[way](compiled)))(POINTS), expected)

    def total(points):
        return tf.reduce_sum(tf.vmap(compiled)(points) ** 2)

    wanted = gradient_function(lambda points: tf.reduce_sum(tf.vmap(f)(points) ** 2))(POINTS)
    assert_close(gradient_function(total)(POINTS), wanted)
    assert_close(gradient_function(unfused(total))(POINTS), wanted)
