"""The work as a user of this library writes it: a tape for each call."""

import numpy as np

import tinygrad_cg as tf
from benchmarks import LENGTH


@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


def value_and_gradient(values: np.ndarray):
    x = tf.constant(values)

    def run():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(log1pexp(x))
        return y, tape.gradient(y, x)

    return run


def compiled_value_and_gradient(values: np.ndarray):
    x = tf.constant(values)

    @tf.function(jit_compile=True)
    def program(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(log1pexp(x))
        return y, tape.gradient(y, x)

    return lambda: program(x)


def chain(value: np.ndarray):
    x = tf.constant(value)

    def run():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(LENGTH):
                y = y * x
        return y, tape.gradient(y, x)

    return run


def constant_chain(value: np.ndarray):
    x, factor = tf.constant(value), tf.constant(value)

    def run():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(LENGTH):
                y = y * factor
        return y, tape.gradient(y, x)

    return run


def second_order(values: np.ndarray):
    x = tf.constant(values)

    def run():
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(log1pexp(x))
            gradient = inner.gradient(y, x)
        return gradient, outer.gradient(gradient, x)

    return run


def rosenbrock_hessian(values: np.ndarray):
    x = tf.constant(values)
    second = tf.hessian(
        lambda x: tf.reduce_sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
    )
    return lambda: (second(x),)


def layer_jacobian(values: np.ndarray):
    x, w = tf.constant(values[0]), tf.constant(values[1:])
    matrix = tf.jacobian(lambda x: tf.tanh(tf.linalg.matvec(w, x)))
    return lambda: (matrix(x),)
