"""Custom gradients that several tests use."""

import numpy as np

import tinygrad_cg as tf


@tf.custom_gradient
def log1pexp(x):
    """The documents' first example."""
    e = tf.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


@tf.custom_gradient
def exponential(x):
    y = tf.exp(x)
    return y, lambda dy: dy * y


@tf.custom_gradient
def cube_by_products(x):
    return x * x * x, lambda dy: 3 * x * x * dy


@tf.custom_gradient
def cube(x):
    return x**3, lambda dy: 3 * x**2 * dy


@tf.custom_gradient
def product(x, y):
    return x * y, lambda dy: (dy * y, dy * x)


@tf.custom_gradient
def with_a_tape(x):
    """Its rule is the derivative that a tape inside finds."""

    def grad(dy):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sin(x * x)
        return dy * tape.gradient(y, x)

    return tf.sin(x * x), grad


@tf.custom_gradient
def doubled_rule(x):
    """Its rule is twice the derivative, so that nobody can differentiate the graph instead."""

    def grad(dy):
        return 2.0 * dy * tf.cos(x)

    return tf.sin(x), grad


polar = tf.primitive(
    "rules_polar",
    lambda x: (np.cos(x), np.sin(x)),
    shape=lambda x: [x.shape, x.shape],
    replace=True,
)


@tf.RegisterGradient("rules_polar", replace=True)
def _polar_rule(op, dc, ds):
    """Through the outputs."""
    c, s = op.outputs
    return ds * c - dc * s
