"""Custom gradients to check: some right, some wrong in a known way from a known order on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tinygrad_cg as tf
from tests.support.rules import cube, exponential, log1pexp, with_a_tape

VECTOR = np.array([0.5, -1.5, 2.0])
MATRIX = np.array([[0.5, -1.0, 0.3], [0.2, 0.8, -0.6]])


class Case(NamedTuple):
    """A rule, where it is checked, and what must be said of it.

    `first` is the first false order (None: it is right to order 3), `verdict`, `argument` and
    `path` are of one of the rows of that order, `words` stand in the report.
    """

    f: Callable[..., Any]
    args: tuple
    first: int | None = None
    verdict: str = "ok"
    argument: str = "x"
    path: str = "x"
    words: str = ""


# Right ---------------------------------------------------------------------------------------


@tf.custom_gradient
def bar(x, y):
    return x * y, lambda dy: (dy * y, dy * x)


@tf.custom_gradient
def softplus(x):
    def grad(dy):
        return dy * tf.sigmoid(x)

    return tf.maximum(x, 0.0) + tf.math.log1p(tf.exp(-tf.abs(x))), grad


@tf.custom_gradient
def wrapped(x):
    def grad_fn(dy):
        @tf.custom_gradient
        def slope(x):
            return 3 * x**2, lambda ddy: 6 * x * ddy

        return dy * slope(x)

    return x**3, grad_fn


@tf.custom_gradient
def fused_with_upstream(x):
    x_grad = 3 * x**2

    def first_order(dy):
        @tf.custom_gradient
        def slope(x, dy):
            return dy * x_grad, lambda ddy: (6 * x * dy * ddy, x_grad * ddy)

        return slope(x, dy)

    return x**3, first_order


@tf.custom_gradient
def biased(x, b):
    def grad(dy):
        return dy, tf.reduce_sum(dy, axis=0)

    return x + b, grad


@tf.custom_gradient
def product(a, b):
    def grad(dy):
        return dy @ tf.transpose(b), tf.transpose(a) @ dy

    return a @ b, grad


@tf.custom_gradient
def circle(x):
    s, c = tf.sin(x), tf.cos(x)

    def grad(ds, dc):
        return ds * c - dc * s

    return (s, c), grad


scale = tf.Variable(np.array(3.0), name="scale")


@tf.custom_gradient
def scaled(x):
    def grad(dy, variables=None):
        return dy * variables[0], [tf.reduce_sum(dy * x)]

    return scale * x, grad


@tf.custom_gradient
def rectified(x):
    def grad(dy):
        return tf.where(x > 0, dy, tf.zeros_like(dy))

    return tf.maximum(x, 0.0), grad


@tf.custom_gradient
def cross_entropy(logits, labels):
    def grad(dy):
        return (tf.nn.softmax(logits) - labels) * tf.expand_dims(dy, -1), None

    return tf.reduce_logsumexp(logits, axis=-1) - tf.reduce_sum(logits * labels, axis=-1), grad


recomputed = tf.recompute_grad(lambda x: tf.sin(x) * x)

LABELS = np.array([[1, 0, 0], [0, 0, 1]], np.int32)

RIGHT = {
    "log1pexp": Case(log1pexp, (1.0,)),
    "softplus": Case(softplus, (VECTOR * 30,)),
    "bar": Case(bar, (2.0, 3.0)),
    "cube": Case(cube, (2.0,)),
    "closes over its output": Case(exponential, (VECTOR,)),
    "wrapped": Case(wrapped, (2.0,)),
    "fused, with dy": Case(fused_with_upstream, (VECTOR,)),
    "sums what was broadcast": Case(biased, (MATRIX, VECTOR)),
    "matrix product": Case(product, (MATRIX, MATRIX.T.copy())),
    "two outputs": Case(circle, (VECTOR,)),
    "a Variable": Case(scaled, (VECTOR,)),
    "a tape in the rule": Case(with_a_tape, (VECTOR,)),
    "a mask of x": Case(rectified, (VECTOR,)),
    "cross entropy": Case(lambda logits: cross_entropy(logits, LABELS), (MATRIX,)),
    "recomputed": Case(recomputed, (VECTOR,)),
}


# Wrong ---------------------------------------------------------------------------------------


@tf.custom_gradient
def wrong_sign(x, y):
    return x * y, lambda dy: (dy * y, -dy * x)


@tf.custom_gradient
def wrong_factor(x):
    return x**3, lambda dy: 6 * x**2 * dy


@tf.custom_gradient
def constant_rule(x):
    return x**3, lambda dy: 100.0 * dy


@tf.custom_gradient
def swapped(x, y):
    return x * y, lambda dy: (dy * x, dy * y)


@tf.custom_gradient
def forgets_upstream(x):
    return x**3, lambda dy: 3 * x**2


@tf.custom_gradient
def clips(x):
    return x**3, lambda dy: 3 * x**2 * tf.clip_by_value(dy, -2.0, 2.0)


@tf.custom_gradient
def forgets_an_argument(x, y):
    return x * y, lambda dy: (dy * y, None)


@tf.custom_gradient
def not_summed(x, b):
    return x * b, lambda dy: (dy * b, dy * x)


def example_one(factor):
    """The documents' first nesting; its op3 is `factor` times 3 x**2 ddy."""

    @tf.custom_gradient
    def op(x):
        y = x**3

        @tf.custom_gradient
        def grad_fn(dy):
            def grad_grad_fn(ddy):
                return factor * (3 * x**2 * ddy)

            return 3 * x**2 * dy, grad_grad_fn

        return y, grad_fn

    return op


@tf.custom_gradient
def verbatim(x):
    y, x_grad = x**3, 3 * x**2

    def first_order_gradient(dy):
        @tf.custom_gradient
        def first_order_custom(unused_x):
            def second_order_and_transpose(ddy):
                return 6 * x * ddy, x_grad * ddy

            return x_grad, second_order_and_transpose

        return dy * first_order_custom(x)

    return y, first_order_gradient


@tf.custom_gradient
def fake_curvature(x):
    def first_order(dy):
        @tf.custom_gradient
        def slope(x):
            return 3 * x**2, lambda ddy: 1000.0 * ddy

        return dy * slope(x)

    return x**3, first_order


@tf.custom_gradient
def wrong_at_three(x):
    def first(dy):
        @tf.custom_gradient
        def slope(x):
            def second(ddy):
                @tf.custom_gradient
                def curvature(x):
                    return 12 * x**2, lambda dddy: 20 * x * dddy

                return ddy * curvature(x)

            return 4 * x**3, second

        return dy * slope(x)

    return x**4, first


@tf.custom_gradient
def through_numpy(x):
    def grad(dy):
        return dy * 3 * np.asarray(x) ** 2

    return x**3, grad


@tf.custom_gradient
def half_detached(x):
    def grad(dy):
        return dy * x * tf.stop_gradient(x) * 3

    return x**3, grad


def captures(x, w):
    @tf.custom_gradient
    def inside(x):
        return x * w, lambda dy: dy * w

    return inside(x)


@tf.custom_gradient
def with_keyword(x, scale=None):
    return x * scale, lambda dy: dy * scale


class Stateful:
    """A rule that counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        @tf.custom_gradient
        def counted(x):
            def grad(dy):
                self.calls += 1
                return dy * self.calls

            return x * 1.0, grad

        return counted(x)


TWO = np.array([0.3, -0.7])

WRONG = {
    "sign": Case(wrong_sign, (2.0, 3.0), 1, "wrong", "y", words="The sign is wrong."),
    "factor": Case(wrong_factor, (2.0,), 1, "wrong", words="It is 2 times the correct gradient."),
    "constant": Case(constant_rule, (2.0,), 1, "wrong", words="expected 12, got 100"),
    "swapped": Case(swapped, (TWO, VECTOR[:2]), 1, "wrong", "y", words="are swapped"),
    "no upstream": Case(
        forgets_upstream,
        (2.0,),
        1,
        "not linear in the upstream",
        path="upstream",
        words="lack a factor dy",
    ),
    "clipping": Case(
        clips,
        (2.0,),
        1,
        "not linear in the upstream",
        path="upstream",
        words="Does the rule clip dy",
    ),
    "None": Case(forgets_an_argument, (2.0, 3.0), 1, "detached", "y", words="returns None for y."),
    "not summed": Case(
        not_summed, (MATRIX, VECTOR), 1, "raises", words="tf.reduce_sum(dy * x, axis=[0])"
    ),
    "example 1": Case(
        example_one(1.0), (2.0,), 2, "detached", words="direct dependence on x is lost"
    ),
    "example 1, false": Case(example_one(500.0), (2.0,), 2, "wrong", "dy", "upstream", "got 6000"),
    "example 2": Case(verbatim, (2.0,), 2, "raises", words="return 6 * x * ddy\n"),
    "false curvature": Case(fake_curvature, (2.0,), 2, "wrong", words="expected 12, got 1000"),
    "false at order 3": Case(wrong_at_three, (2.0,), 3, "wrong", words="expected 48, got 40"),
    "NumPy": Case(through_numpy, (2.0,), 2, "detached", words="return dy * 3 * x**2"),
    "stop_gradient": Case(half_detached, (2.0,), 2, "detached", words="return dy * x * x * 3"),
    "captured": Case(captures, (2.0, 3.0), 1, "detached", "w", words="def inside(x, w):"),
    "not finite": Case(log1pexp, (100.0,), 2, "not finite", words="dy * tf.sigmoid(x)"),
    "keyword": Case(
        lambda x, scale: with_keyword(x, scale=scale), (2.0, 3.0), 1, "raises", words="keyword"
    ),
}
