"""Scalar functions of a vector, on which all ways to differentiate must agree.

`TRUE` are those whose rules are the derivatives. The rules in `FAKE` are something else, so that
nobody finds their numbers without them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import tinygrad_cg as tf
from tests.support.rules import log1pexp, polar, product, with_a_tape
from tinygrad_cg.keras import ops

POINT = np.array([0.4, -0.7, 1.1])
MATRIX = np.array([[0.5, -1.0, 0.3], [0.2, 0.8, -0.6], [1.0, 0.1, 0.4], [-0.3, 0.7, 0.9]])
weight = tf.Variable([0.5, -1.5, 2.0], dtype="float64", name="composite_weight")


def nested(third: Callable[..., Any]) -> Callable[..., Any]:
    """The documents' example of a rule with a rule: x**3, and `third` for the rule's own rule."""

    @tf.custom_gradient
    def cube(x):
        @tf.custom_gradient
        def grad(dy):
            return 3.0 * x**2 * dy, lambda ddy: third(x, ddy)

        return x**3, grad

    return cube


def fused(second: Callable[..., Any]) -> Callable[..., Any]:
    """The documents' example of a fused backpropagation, of x**3, with an input for dy."""

    @tf.custom_gradient
    def cube(x):
        def first_order(dy):
            @tf.custom_gradient
            def slope(unused_x, dy):
                def second_order_and_transpose(ddy):
                    return second(x, dy, ddy), 3.0 * x**2 * ddy

                return 3.0 * x**2 * dy, second_order_and_transpose

            return slope(x, dy)

        return x**3, first_order

    return cube


true_fused = fused(lambda x, dy, ddy: 6.0 * x * dy * ddy)
fake_fused = fused(lambda x, dy, ddy: 1000.0 * dy * ddy)


@tf.recompute_grad
def recomputed(x):
    return tf.tanh(x) * log1pexp(x)


@tf.custom_gradient
def scaled(x):
    """It uses a Variable."""
    w = weight.value()

    def grad(dy, variables):
        return dy * w, [dy * x for _ in variables]

    return x * w, grad


@ops.custom_gradient
def keras_way(x):
    e = ops.exp(x)

    def grad(*args, upstream):
        return ops.multiply(upstream, 1.0 - 1.0 / ops.add(1, e))

    return ops.log(1 + e), grad


@tf.custom_gradient
def sine_and_cosine(x):
    s, c = tf.sin(x), tf.cos(x)
    return {"sin": s, "cos": c}, lambda dc, ds: ds * tf.cos(x) - dc * tf.sin(x)


@tf.custom_gradient
def rule_in_rule_in_rule(x):
    """exp, each of whose first three derivatives has a rule of its own."""

    def grad(dy):
        return product(dy, inner(x))

    @tf.custom_gradient
    def inner(x):
        return tf.exp(x), lambda dy: product(dy, innermost(x))

    @tf.custom_gradient
    def innermost(x):
        return tf.exp(x), lambda dy: dy * tf.exp(x)

    return tf.exp(x), grad


@tf.custom_gradient
def doubled(x):
    y = tf.exp(x)
    return y, lambda dy: 2.0 * dy * y


declared_sine = tf.custom_derivatives(tf.sin, lambda x: declared_cosine(x), beyond="differentiate")
declared_cosine = tf.custom_derivatives(tf.cos, lambda x: -declared_sine(x), beyond="differentiate")


@tf.custom_derivatives
def declared_product(x, y):
    """x y**2, with all its derivatives."""
    return x * y**2


declared_product.derivative(lambda x, y: (y**2, 2.0 * x * y))
declared_product.derivative(((None, lambda x, y: 2 * y), lambda x, y: (2.0 * y, 2.0 * x)))
declared_product.derivative(lambda x, y: ((None, (0.0, 2.0)), ((0.0, 2.0), (2.0, 0.0))))
declared_product.derivative(lambda x, y: ((((0.0,) * 2,) * 2,) * 2,) * 2)

declared_squares = tf.custom_derivatives(
    lambda x: tf.reduce_sum(x * x) * x,
    vjp=[
        lambda dy, x: tf.reduce_sum(x * x) * dy + 2.0 * x * tf.reduce_sum(dy * x),
        lambda dy, way, x: (
            2.0
            * (
                tf.reduce_sum(dy * way) * x
                + dy * tf.reduce_sum(x * way)
                + way * tf.reduce_sum(dy * x)
            )
        ),
    ],
    beyond="differentiate",
)
declared_pushed = tf.custom_derivatives(
    lambda x: tf.reduce_sum(x * x) * x,
    jvp=lambda way, x: tf.reduce_sum(x * x) * way + 2.0 * x * tf.reduce_sum(way * x),
    beyond="differentiate",
)


_cube = tf.primitive("composites_cube", lambda x: x**3, shape=lambda x: x.shape, replace=True)


@tf.RegisterGradient("composites_cube", replace=True)
def _cube_rule(op, dy):
    return 3.0 * dy * op.inputs[0] ** 2


def rosenbrock(x):
    return tf.reduce_sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


TRUE = {
    "rosenbrock": rosenbrock,
    "layer": lambda x: tf.reduce_sum(tf.tanh(tf.linalg.matvec(MATRIX, x)) ** 2),
    "softmax": lambda x: tf.reduce_sum(tf.nn.softmax(x * x) * tf.sin(x)),
    "logsumexp": lambda x: tf.reduce_logsumexp(tf.stack([x, x * x, tf.sin(x)])) ** 2,
    "norm": lambda x: tf.norm(x - 2.0) * tf.reduce_prod(x),
    "indices": lambda x: tf.reduce_sum(
        tf.gather(x, [0, 0, 2]) * x[::-1] * tf.concat([x[1:], x[:1]], 0)
    ),
    "branches": lambda x: tf.reduce_sum(tf.where(x > 0, x**3, tf.exp(x)) * tf.maximum(x, x * x)),
    "matrix": lambda x: tf.reduce_sum(tf.matmul(x[:, None] * x, x[:, None] + x) ** 2) / 10.0,
    "log1pexp": lambda x: tf.reduce_sum(log1pexp(x) ** 2) * tf.reduce_mean(x),
    "fused": lambda x: tf.reduce_sum(true_fused(x)) * tf.reduce_sum(x * x),
    "fused in fused": lambda x: tf.reduce_sum(true_fused(true_fused(x) * 0.5) * x),
    "a tape in the rule": lambda x: tf.reduce_sum(with_a_tape(x) * x) ** 2,
    "recomputed": lambda x: tf.reduce_sum(recomputed(x) ** 2),
    "recomputed fused": lambda x: tf.reduce_sum(tf.recompute_grad(true_fused)(x) ** 2),
    "a Variable": lambda x: tf.reduce_sum(tf.sin(scaled(scaled(x)))),
    "Keras's way": lambda x: tf.reduce_sum(keras_way(x) * keras_way(2.0 * x)),
    "two outputs": lambda x: tf.reduce_sum(
        sine_and_cosine(x)["sin"] * sine_and_cosine(x * x)["cos"] + sine_and_cosine(x)["sin"]
    ),
    "rules in rules": lambda x: tf.reduce_sum(rule_in_rule_in_rule(x)) * tf.reduce_sum(x),
    "declared": lambda x: tf.reduce_sum(declared_sine(x * x) * declared_cosine(x)),
    "declared partials": lambda x: tf.reduce_sum(declared_product(x, tf.sin(x[::-1]))) ** 2,
    "declared products": lambda x: tf.reduce_sum(tf.sin(declared_squares(x)) * x),
    "a declared tangent": lambda x: tf.reduce_sum(declared_pushed(tf.sin(x)) ** 2),
    "the user's operation": lambda x: tf.reduce_sum(_cube(x) * tf.sin(x)),
    "the user's, two outputs": lambda x: tf.reduce_sum(polar(x)[0] * polar(x * x)[1] * x),
}
FAKE = {
    "nested, a true rule": lambda x: tf.reduce_sum(nested(lambda x, d: 3.0 * x**2 * d)(x)) ** 2,
    "nested, a fake rule": lambda x: tf.reduce_sum(nested(lambda x, d: 1000.0 * d)(x)) ** 2,
    "nested, of x": lambda x: tf.reduce_sum(nested(lambda x, d: 7.0 * x * d)(x) ** 2 * x),
    "fused, fake": lambda x: tf.reduce_sum(fake_fused(x)) ** 2,
    "fake, captured output": lambda x: tf.reduce_sum(doubled(x) ** 2 * x),
    "passing through": lambda x: tf.reduce_sum(tf.grad_pass_through(tf.round)(3.0 * x) * x * x),
}
