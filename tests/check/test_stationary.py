"""Wrong factors at stationary points, where both the rule's value and the derivative are 0."""

from __future__ import annotations

import numpy as np
import pytest

import tinygrad_cg as tf

AT = 0.37  # no whole number
CENTRE = np.array([AT, 0.0, 0.0])
VECTOR = np.array([AT, 0.7, 1.3])
FIRST = np.array([1.5, 1.0, 1.0])  # a factor of the element that is at an optimum


def nested(*derivatives):
    """A custom gradient of the first function, whose rule is one of the second, and so on."""
    f, *others = derivatives

    @tf.custom_gradient
    def op(x):
        return f(x), lambda dy: dy * nested(*others)(x)

    return op if others else f


def of_two(f, by_x, by_y):
    return tf.custom_gradient(lambda x, y: (f(x, y), lambda dy: (dy * by_x(x, y), dy * by_y(x, y))))


def power(n, factor=1.0, centre=AT):
    return lambda x: factor * (x - centre) ** n


def near(inside, outside):
    """Another function within 1e-3 of the stationary point."""
    return lambda x: tf.where(tf.abs(x - AT) < 1e-3, inside(x), outside(x))


# The rule, its arguments, the order that is wrong, and the argument
WRONG = {
    "order 1": (nested(power(2), power(1, 3.0)), [AT], 1, "x"),
    "order 1, flat": (nested(power(4), power(3, 6.0)), [AT], 1, "x"),
    "order 1, very flat": (nested(power(8), power(7, 12.0)), [AT], 1, "x"),
    "order 1, inflection": (nested(power(3), power(2, 4.5)), [AT], 1, "x"),
    "order 1, maximum": (nested(tf.sin, lambda x: 2.0 * tf.cos(x)), [np.pi / 2], 1, "x"),
    "order 1, an element": (
        nested(power(2, 1.0, CENTRE), power(1, 2.0 * FIRST, CENTRE)), [VECTOR], 1, "x"
    ),
    "order 1, an element of a loss": (
        nested(
            lambda x: tf.reduce_sum((x - CENTRE) ** 2), power(1, 2.0 * FIRST, CENTRE)
        ), [VECTOR], 1, "x",
    ),
    "order 1, by the first of two": (
        of_two(
            lambda x, y: (x - AT) ** 2 * y,
            lambda x, y: 3 * (x - AT) * y,
            lambda x, y: (x - AT) ** 2,
        ), [AT, 1.3], 1, "x",
    ),
    "order 1, by the second of two": (
        of_two(lambda x, y: tf.sin(x) * y, lambda x, y: tf.cos(x) * y, lambda x, y: 2 * tf.sin(x)),
        [np.pi, 1.3], 1, "y",
    ),
    "order 1, a saddle": (
        of_two(lambda x, y: (x - AT) * (y - AT), lambda x, y: 2 * (y - AT), lambda x, y: x - AT),
        [AT, AT], 1, "x",
    ),
    "order 2": (nested(power(3), power(2, 3.0), power(1, 9.0)), [AT], 2, "x"),
    "order 2, with order 3": (
        nested(power(3), power(2, 3.0), power(1, 9.0), power(0, 6.0)), [AT], 2, "x"
    ),
    "order 2, an element": (
        nested(power(3, 1.0, CENTRE), power(2, 3.0, CENTRE), power(1, 6.0 * FIRST, CENTRE)),
        [VECTOR], 2, "x",
    ),
    "order 3": (
        nested(power(4), power(3, 4.0), power(2, 12.0), power(1, 36.0)), [AT], 3, "x"
    ),
    "order 3, an element": (
        nested(
            power(4, 1.0, CENTRE), power(3, 4.0, CENTRE), power(2, 12.0, CENTRE),
            power(1, 24.0 * FIRST, CENTRE),
        ),
        [VECTOR], 3, "x",
    ),
}  # fmt: skip


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_factor_shows_at_a_stationary_point(name, more):
    """At the order that is wrong, whether or not a higher one is asked for."""
    f, args, order, argument = WRONG[name]
    report = tf.check_gradients(f, *map(np.array, args), order=min(order + more, 3))
    assert report.first_false_order == order, report
    assert argument in {row.argument for row in report.rows if row.false}, report
    with pytest.raises(tf.errors.GradientError):
        tf.assert_gradients(f, *map(np.array, args), order=order)


# What is right at the second point: the order after it shows the factor
NEAR = {
    "order 1": (nested(power(2), near(power(1, 3.0), power(1, 2.0))), [AT], 2),
    "order 1, an element": (
        nested(
            power(2, 1.0, CENTRE),
            lambda x: 2.0 * (x - CENTRE) * tf.where(tf.abs(x - AT) < 1e-3, FIRST, 1.0),
        ),
        [VECTOR],
        2,
    ),
    "order 1, by one of two": (
        of_two(
            lambda x, y: (x - AT) ** 2 * y,
            lambda x, y: y * near(power(1, 3.0), power(1, 2.0))(x),
            lambda x, y: (x - AT) ** 2,
        ),
        [AT, 1.3],
        2,
    ),
    "order 2": (
        nested(power(3), power(2, 3.0), near(power(1, 9.0), power(1, 6.0))),
        [AT],
        3,
    ),
}


@pytest.mark.parametrize("name", NEAR)
def test_a_factor_that_is_wrong_beside_the_point_alone(name):
    """Order k agrees with order k - 1, wrong factor included, and not with order k - 2."""
    f, args, order = NEAR[name]
    report = tf.check_gradients(f, *map(np.array, args), order=order)
    (row,) = [row for row in report.rows if row.false]
    assert (row.order, row.argument, row.kind) == (order, "x", "second differences"), report
    assert row.detail == f"by differences of order {order - 2}"
    if np.ndim(args[0]) == 0:
        assert row.value == pytest.approx(1.5 * row.reference)
    with pytest.raises(tf.errors.GradientError):
        tf.assert_gradients(f, *map(np.array, args), order=order)


@pytest.mark.parametrize(
    ("f", "args"),
    [
        pytest.param(nested(power(2), power(1, 2.0)), [AT], id="minimum"),
        pytest.param(nested(power(8), power(7, 8.0)), [AT], id="flat"),
        pytest.param(tf.sin, [np.pi / 2], id="maximum"),
        pytest.param(lambda x: tf.abs(x - AT) ** 3, [AT], id="with a kink of order 3"),
        pytest.param(lambda x, y: (x - AT) * (y - AT) * tf.exp(x), [AT, AT], id="saddle"),
        pytest.param(
            lambda x: tf.reduce_sum((x - CENTRE) ** 2) * tf.exp(-x), [VECTOR], id="an element"
        ),
        pytest.param(lambda x, y: tf.sin(x * 1e8) * y, [AT * 1e-8, 1e6], id="of other sizes"),
        pytest.param(tf.nn.log_softmax, [np.array([0.3, -40.2, 12.7])], id="saturated"),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_right_rules_at_stationary_points(f, args, dtype):
    for seed in range(3):
        report = tf.check_gradients(f, *[np.array(x, dtype) for x in args], order=3, seed=seed)
        assert report.ok, report
