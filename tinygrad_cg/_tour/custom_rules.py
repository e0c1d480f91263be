"""The functions that the tour differentiates, and what differentiates them."""

from collections.abc import Callable

import tinygrad_cg as tf


def naive_log1pexp(x):
    """Return log(1 + e^x) as it is written: e^x overflows, and inf / inf is NaN."""
    return tf.math.log(1 + tf.exp(x))


@tf.custom_gradient
def log1pexp(x):
    """Return the documents' rule: right at first order, where the naive gradient is NaN."""
    e = tf.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


@tf.custom_gradient
def softplus(x):
    """Return log(1 + e^x) that is right at every order: nothing in it can overflow.

    The exponent is never positive, and the rule is written with sigmoid, whose own derivatives
    are polynomials of a number between 0 and 1.
    """

    def grad(dy):
        return dy * tf.sigmoid(x)

    return tf.maximum(x, 0.0) + tf.math.log1p(tf.exp(-tf.abs(x))), grad


def derivative(function: Callable, order: int = 1) -> Callable:
    """Return the `order`-th derivative of a function of one tensor, by tapes inside tapes.

    Gives None where the gradient is not connected to the argument.
    """
    if order == 0:
        return function
    lower = derivative(function, order - 1)

    def higher(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = lower(x)
        return None if y is None else tape.gradient(y, x)

    return higher
