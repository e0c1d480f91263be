"""Transforms of functions from Numba code, alone and nested, against operations."""

import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numba import njit

import tinygrad_cg as tf


@njit
def wave(x, y):
    total, power = 0.0, 1.0
    for k in range(1, 4):
        power *= x
        total += power * math.sin(k * y) / k
    return total


def over_arrays(x, y):
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = wave(x[i], y[i])
    return out


def operations(x, y):
    return tf.sin(y) * x + tf.sin(2 * y) * x**2 / 2 + tf.sin(3 * y) * x**3 / 3


elementwise = tf.primitive("wave_of_two_numbers", wave, elementwise=True, replace=True)
arrays = tf.differentiable(over_arrays)
FUNCTIONS = {"elementwise": elementwise, "differentiable": arrays}
X = tf.constant([[0.3, -1.2, 0.8], [1.1, 0.4, -0.6]], tf.float64)
Y = tf.constant([[0.5, 0.1, -0.9], [2.0, -1.3, 0.7]], tf.float64)
x, y, v = X[0], Y[0], tf.constant([1.0, -2.0, 0.5], tf.float64)


def total(f):
    return lambda x, y: tf.reduce_sum(tf.sin(f(x, y)))


def first(f):
    return tf.grad(total(f), (0, 1))


def custom(f, factor=1.0):
    """A custom gradient whose rule differentiates a function; it is wrong by a factor."""

    @tf.custom_gradient
    def wrapped(x, y):
        def rule(dy):
            by_x, by_y = tf.vjp(f, x, y)[1](dy)
            return factor * by_x, factor * by_y

        return f(x, y), rule

    return wrapped


def twice_custom(f):
    """A custom gradient with another one around the gradient that its rule returns."""

    @tf.custom_gradient
    def wrapped(x, y):
        @tf.custom_gradient
        def rule(dy):
            return tf.vjp(f, x, y)[1](dy), lambda *dd: 3.0 * tf.add_n(list(dd)) * dy

        return f(x, y), rule

    return wrapped


def registered(f):
    """A primitive whose registered gradient calls the function."""
    name = f"registered_{'a' if f is arrays else 'e' if f is elementwise else 'o'}"
    op = tf.primitive(
        name, kernel=lambda x, y: np.sin(x) * y, shape=lambda x, y: x.shape, replace=True
    )

    @tf.RegisterGradient(name, replace=True)
    def _(op, dy):
        return dy * f(*op.inputs), dy * tf.square(f(*op.inputs))

    return op


def repeated(f):
    @tf.function
    def program(x, y, count):
        for _ in tf.range(count):
            x = 0.5 * f(x, y)
        return tf.reduce_sum(x)

    return program


COMBINATIONS = {
    "vmap": lambda f: tf.vmap(f)(X, Y),
    "vmap of a gradient": lambda f: tf.vmap(first(f))(X, Y),
    "gradient of vmap": lambda f: first(tf.vmap(f))(X, Y),
    "vmap of one argument": lambda f: tf.vmap(first(f), in_axes=(0, None))(X, y),
    "vmap of vmap": lambda f: tf.vmap(lambda x: tf.vmap(lambda y: first(f)(x, y))(Y))(X),
    "vmap of a Hessian": lambda f: tf.vmap(tf.hessian(lambda x: total(f)(x, y)))(X),
    "Jacobian": lambda f: tf.jacobian(lambda x: f(x, y))(x),
    "Jacobian forward": lambda f: tf.jacobian(lambda x: f(x, y), mode="forward")(x),
    "Hessian": lambda f: tf.hessian(lambda x: total(f)(x, x * y))(x),
    "jvp of a gradient": lambda f: tf.jvp(first(f), (x, y), (v, 2 * v)),
    "gradient of a jvp": lambda f: tf.grad(
        lambda x: tf.reduce_sum(tf.jvp(f, (x, y), (v, v))[1] ** 2)
    )(x),
    "jvp of a jvp": lambda f: tf.jvp(lambda x: tf.jvp(f, (x, y), (v, v))[1], (x,), (v,)),
    "third order": lambda f: tf.jvp(lambda x: tf.jvp(first(f), (x, y), (v, v))[1], (x,), (v,)),
    "function": lambda f: tf.function(f)(x, y),
    "function of a gradient": lambda f: tf.function(first(f))(x, y),
    "gradient of a function": lambda f: first(tf.function(f))(x, y),
    "function of a Hessian": lambda f: tf.function(tf.hessian(lambda x: total(f)(x, y)))(x),
    "function of vmap of a gradient": lambda f: tf.function(tf.vmap(first(f)))(X, Y),
    "function of a jvp": lambda f: tf.function(lambda x: tf.jvp(f, (x, y), (v, v)))(x),
    "loop in a function": lambda f: tf.grad(lambda x: repeated(f)(x, y, 3))(x),
    "loop in a function, Hessian": lambda f: tf.hessian(lambda x: repeated(f)(x, y, 2))(x),
    "recomputed": lambda f: first(tf.recompute_grad(f))(x, y),
    "custom gradient": lambda f: first(custom(f, 3.0))(x, y),
    "custom gradient, second order": lambda f: tf.hessian(lambda x: total(custom(f, 3.0))(x, y))(x),
    "custom gradient, forward": lambda f: tf.jvp(custom(f, 3.0), (x, y), (v, v)),
    "custom gradient, vmap": lambda f: tf.vmap(first(custom(f, 3.0)))(X, Y),
    "custom gradient, function": lambda f: tf.function(first(custom(f, 3.0)))(x, y),
    "of a custom gradient": lambda f: tf.hessian(
        lambda x: total(f)(custom(operations, 3.0)(x, y), y)
    )(x),
    "custom gradient in a rule": lambda f: first(twice_custom(f))(x, y),
    "custom gradient in a rule, second order": lambda f: tf.hessian(
        lambda x: total(twice_custom(f))(x, y)
    )(x),
    "in a registered gradient": lambda f: first(registered(f))(x, y),
    "in a registered gradient, second order": lambda f: tf.hessian(
        lambda x: tf.reduce_sum(registered(f)(x, x * y))
    )(x),
}


@pytest.mark.parametrize("combination", COMBINATIONS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_combinations_give_the_numbers_of_operations(name, combination):
    results, expected = (
        tf.nest.flatten(COMBINATIONS[combination](f)) for f in (FUNCTIONS[name], operations)
    )
    assert len(results) == len(expected)
    for ours, theirs in zip(results, expected, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)


@pytest.mark.quick
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_checked_to_second_order(name):
    f = FUNCTIONS[name]
    assert tf.check_gradients(f, x, y).ok
    assert tf.check_gradients(custom(f), x, y).ok
    report = tf.check_gradients(custom(f, 3.0), x, y)
    assert not report.ok
    assert "3 times the correct gradient" in " ".join(str(report).split())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_processes_derive_the_same(name):
    program = """
import pickle, sys
import tinygrad_cg as tf

f, x, y = pickle.load(sys.stdin.buffer)
gradient = tf.grad(lambda x: tf.reduce_sum(tf.sin(f(x, y))))
pickle.dump((gradient(x).numpy(), tf.jvp(gradient, (x,), (x,))[1].numpy()), sys.stdout.buffer)
"""
    f = FUNCTIONS[name]
    sent = pickle.dumps((f, x, y))
    done = subprocess.run(
        [sys.executable, "-c", program], input=sent, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    gradient = tf.grad(lambda x: total(operations)(x, y))
    expected = gradient(x), tf.jvp(gradient, (x,), (x,))[1]
    for ours, theirs in zip(pickle.loads(done.stdout), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    again = pickle.loads(pickle.dumps(f))
    np.testing.assert_allclose(tf.vmap(first(again))(X, Y)[0], tf.vmap(first(f))(X, Y)[0])


@pytest.mark.quick
def test_a_python_float_is_float64_in_a_call_and_in_a_function():
    function = tf.differentiable(lambda x: x * 2.0)
    traced = tf.function(lambda x: function(x))
    assert function(0.1).dtype == traced(0.1).dtype == tf.float64
    assert float(traced(0.1)) == 0.2
    assert traced.numba(0.5)(0.1) == 0.2
