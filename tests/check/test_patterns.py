"""The words of a report: how the elements of a false gradient differ from the right ones."""

import inspect
import time

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.check.test_check import words

V = np.array([0.5, -1.5, 2.0, 0.7])
SIGNS = np.array([1.0, -1.0, 2.0, -3.0])
RNG = np.random.default_rng(0)
SQUARE, WIDE = RNG.normal(size=(3, 3)), RNG.normal(size=(3, 4))
MATRIX = tf.constant(RNG.normal(size=(3, 3)))
ORDER = tf.constant([2, 0, 3, 1])
Z = np.array([1.0 + 2.0j, 0.3 - 1.0j])


def rule(value, gradient):
    """A custom gradient: a function, and its gradient as a function of dy and the arguments."""

    @tf.custom_gradient
    def of_one(x):
        return value(x), lambda dy: gradient(dy, x)

    @tf.custom_gradient
    def of_two(x, y):
        return value(x, y), lambda dy: gradient(dy, x, y)

    return of_one if len(inspect.signature(gradient).parameters) == 2 else of_two


def only(*factors):
    return tf.constant(np.array(factors, float))


def cube(x):
    return x**3


def softmax_rule(dy, x):
    y = tf.nn.softmax(x)
    return dy * y * (1.0 - y)


def second_order(dy, x):
    return dy * rule(lambda x: 3 * x**2, lambda ddy, x: 7.0 * x * ddy)(x)


RULES = {
    "any ratio": (rule(tf.sin, lambda dy, x: 3.1 * dy * tf.cos(x)), V, "3.1 times the correct"),
    "a ratio, one number": (rule(tf.sin, lambda dy, x: 0.7 * dy * tf.cos(x)), 1.3, "0.7 times"),
    "sign": (rule(tf.cos, lambda dy, x: dy * tf.sin(x)), V, "The sign is wrong."),
    "float32": (
        rule(tf.sin, lambda dy, x: 2.5 * dy * tf.cos(x)),
        V.astype(np.float32),
        "It is 2.5 times the correct gradient.",
    ),
    "a mean": (
        rule(lambda x: tf.reduce_mean(x**2), lambda dy, x: dy * 2 * x),
        V,
        "Does the rule lack a division by 4, as for a mean over 4 elements, or does it have an",
    ),
    "a mean along an axis": (
        rule(lambda x: tf.reduce_mean(x**2, 1), lambda dy, x: tf.expand_dims(dy, 1) * 2 * x),
        WIDE,
        "Does the rule lack a division by 4, as for a mean over 4 elements, or does it have an",
    ),
    "a sum": (
        rule(lambda x: tf.reduce_sum(x**2), lambda dy, x: dy * x / 2),
        V,
        "Does the rule take a mean over 4 elements instead of a sum, or does it lack a factor",
    ),
    "transposed": (
        rule(tf.sin, lambda dy, x: tf.transpose(dy * tf.cos(x))),
        SQUARE,
        "It is the transpose of the correct gradient.",
    ),
    "permuted": (
        rule(tf.square, lambda dy, x: tf.gather(2 * x * dy, ORDER)),
        V,
        "Its elements are correct, but in another order",
    ),
    "permuted upstream": (
        rule(lambda x: tf.gather(x**2, ORDER), lambda dy, x: 2 * x * tf.gather(dy, ORDER)),
        V,
        "The rule permutes the elements of the upstream gradient",
    ),
    "reversed": (
        rule(lambda x: (x**2)[::-1], lambda dy, x: (2 * x * dy[::-1])[::-1]),
        V,
        "Its elements are in reverse order.",
    ),
    "two in reverse order": (
        rule(tf.square, lambda dy, x: tf.reverse(2 * x * dy, [0])),
        V[:2],
        "Its elements are in reverse order.",
    ),
    "shifted": (
        rule(tf.square, lambda dy, x: tf.gather(2 * x * dy, tf.constant([3, 0, 1, 2]))),
        V,
        "Its elements are shifted by +1.",
    ),
    "the other triangle": (
        rule(tf.cumsum, lambda dy, x: tf.cumsum(dy)),
        V,
        "must be summed in reverse, along axis 0",
    ),
    "not transposed": (
        rule(lambda x: tf.linalg.matvec(MATRIX, x), lambda dy, x: tf.linalg.matvec(MATRIX, dy)),
        V[:3],
        "not by its transpose",
    ),
    "negative x": (
        rule(lambda x: tf.where(x > 0, x**2, 0.1 * x), lambda dy, x: dy * 2 * x),
        V,
        "It is wrong only where x < 0 (1 of 4 elements), at x[1] (expected 0.1 * dy[1], got -3 ",
    ),
    "negative x, a ratio": (
        rule(
            lambda x: tf.where(x > 0, x**2, 3 * x),
            lambda dy, x: dy * tf.where(x > 0, 2 * x, 6 * tf.ones_like(x)),
        ),
        SIGNS,
        "It is wrong only where x < 0 (2 of 4 elements). There it is 2 times the correct gradient.",
    ),
    "zeros": (
        rule(cube, lambda dy, x: dy * tf.where(tf.equal(x, 0.0), tf.ones_like(x), 3 * x**2)),
        np.array([1.0, 0.0, 2.0, 0.0, -1.0]),
        "It is wrong only where x is 0 (2 of 5 elements).",
    ),
    "one index": (
        rule(cube, lambda dy, x: dy * (3 * x**2 + only(0, 0, 0.1, 0))),
        V,
        "It is wrong only at x[2] (",
    ),
    "one row": (
        rule(cube, lambda dy, x: dy * 3 * x**2 * only(1, 1, 2)[:, None]),
        WIDE,
        "It is wrong only at index 2 of axis 0 (4 of 12 elements). There it is 2 times the",
    ),
    "one column": (
        rule(cube, lambda dy, x: dy * 3 * x**2 * only(1, 0, 1, 1)),
        WIDE,
        "It is wrong only at index 1 of axis 1 (3 of 12 elements). There it is always 0.",
    ),
    "large x": (
        rule(cube, lambda dy, x: dy * tf.minimum(3 * x**2, 6.0)),
        np.linspace(-3.0, 3.0, 9),
        "It is wrong only where |x| >= 1.5 (6 of 9 elements), and right where |x| <= ",
    ),
    "above a limit": (
        rule(cube, lambda dy, x: dy * tf.where(x > 0.9, x, 3 * x**2)),
        np.linspace(-3.0, 3.0, 13),
        "It is wrong only where x >= 1 (5 of 13 elements, x[8:13]), and right where x <= ",
    ),
    "softmax": (
        rule(tf.nn.softmax, softmax_rule), V, "It has only the diagonal of the Jacobian"
    ),
    "a factor x": (rule(cube, lambda dy, x: dy * 3 * x), V, "It must be multiplied by x."),
    "a factor x, one number": (
        rule(cube, lambda dy, x: dy * 3 * x), 1.3, "It must be multiplied by x."
    ),
    "one x too much": (
        rule(cube, lambda dy, x: dy * 6 * x**3), V, "It must be divided by x. Besides,"
    ),
    "sigmoid": (
        rule(tf.sigmoid, lambda dy, x: dy * tf.sigmoid(x)), V, "multiplied by 1 - the output."
    ),
    "tanh": (rule(tf.tanh, lambda dy, x: dy * (1 - tf.tanh(x))), V, "by 1 + the output."),
    "abs": (rule(lambda x: x * tf.abs(x), lambda dy, x: 2 * dy * x), V, "by the sign of x."),
    "a constant": (rule(cube, lambda dy, x: 100.0 * dy), V, "100 times the upstream"),
    "an offset": (
        rule(cube, lambda dy, x: dy * (3 * x**2 + 0.5)),
        V,
        "It has the extra term `dy * 0.5`.",
    ),
    "digits": (
        rule(cube, lambda dy, x: dy * 3 * x**2 * (1 + 1e-4 * tf.sin(5 * x))),
        V,
        "of its value at most. Does the rule lack a small term",
    ),
    "conjugated": (
        rule(tf.square, lambda dy, z: dy * 2.0 * z),
        Z,
        "The rule must conjugate the factor that it multiplies dy by.",
    ),
    "zero": (rule(cube, lambda dy, x: 0.0 * dy), V, "It is always 0."),
    "affine": (
        rule(cube, lambda dy, x: 3 * x**2 * dy + 5.0),
        V,
        "For dy = 0, the largest element of the gradient is 5, not 0. Does the rule have a term",
    ),
    "no upstream": (rule(cube, lambda dy, x: 3 * x**2), V, "Does the rule lack a factor dy?"),
    "upstream twice": (rule(cube, lambda dy, x: 3 * x**2 * dy * dy), V, "multiply by dy twice?"),
    "absolute upstream": (
        rule(cube, lambda dy, x: 3 * x**2 * tf.abs(dy)), V, "the absolute value of dy"
    ),
    "normalised": (
        rule(cube, lambda dy, x: 3 * x**2 * dy / tf.norm(dy)), V, "divide by the size of dy?"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_the_cause_is_named(name):
    function, x, sentence = RULES[name]
    report = tf.check_gradients(function, x)
    assert report.first_false_order == 1, report
    assert sentence in words(report), report


def test_a_pattern_of_each_argument():
    both = rule(lambda x, y: x * y, lambda dy, x, y: (2 * dy * y, -dy * x))
    report = words(tf.check_gradients(both, V, V + 1.0))
    assert "The gradient with respect to x is 2 times the correct gradient." in report
    assert "In the gradient with respect to y, the sign is wrong." in report
    bias = rule(lambda x, b: x + b, lambda dy, x, b: (dy, tf.reduce_sum(dy, axis=1)))
    report = words(tf.check_gradients(bias, SQUARE, V[:3]))
    assert "It is the sum over axis 1 instead of axis 0." in report
    product = rule(lambda a, b: a @ b, lambda dy, a, b: (dy @ b, tf.transpose(a) @ dy))
    assert not tf.check_gradients(product, SQUARE, SQUARE + 1.0).ok


def test_a_pattern_of_the_second_order():
    report = tf.check_gradients(rule(cube, second_order), V)
    assert report.first_false_order == 2
    assert "It is 1.16667 times the correct gradient." in words(report)


def test_kinks_and_other_elements():
    """An element at a kink is no evidence, and hides nothing."""
    relu = rule(
        lambda x: tf.maximum(x, 0.0) * 2.0, lambda dy, x: 3.0 * dy * tf.cast(x > 0, x.dtype)
    )
    report = words(tf.check_gradients(relu, np.array([0.3, -0.4, 1.2, 0.8])))
    assert "It is 1.5 times the correct gradient." in report


def test_without_a_pattern_nothing_is_said():
    report = tf.check_gradients(rule(cube, lambda dy, x: dy * tf.exp(x)), V)
    text = report.findings[0].text.partition(" Differentiating the operations")[0]
    assert text.endswith(f"got {report.rows[0].value:.6g}.")


def test_large_arguments_are_not_looked_at_one_by_one():
    calls = []

    def value(x):
        calls.append(None)
        return x**3

    x = np.random.default_rng(0).normal(size=20_000)
    report = tf.check_gradients(rule(value, lambda dy, x: dy * 6 * x**2), x, order=1)
    assert "It is 2 times the correct gradient." in words(report)
    assert len(calls) < 200


def test_some_thousand_elements():
    x = np.random.default_rng(0).normal(size=4096)
    function = rule(cube, lambda dy, x: dy * tf.where(x < 0, 5.0 * x, 3 * x**2))
    report = tf.check_gradients(function, x, order=1, modes="reverse")
    assert "It is wrong only where x < 0 (" in words(report), report


def test_words_do_not_depend_on_the_speed_of_the_machine():
    """What is looked at is a matter of counts: a function that waits has the same words."""

    def waits(x):
        time.sleep(2e-3)
        return x**3

    x = np.random.default_rng(0).normal(size=300)
    false = rule(waits, lambda dy, x: dy * tf.where(x < 0, 5.0 * x, 3 * x**2))
    assert "It is wrong only where x < 0 (" in words(tf.check_gradients(false, x, order=1))


def test_what_was_not_looked_at_is_said():
    def false(value, size, full=False):
        function = rule(value, lambda dy, x: dy * tf.where(x < 0, 5.0 * x, 3 * x**2))
        x = np.random.default_rng(0).normal(size=size)
        return words(tf.check_gradients(function, x, order=1, modes="reverse", full=full))

    text = "The elements of x were not compared one by one"
    assert f"{text}, because 4097 elements are more than the limit of 4096." in false(cube, 4097)

    def large(x):
        return x**3 + 0.0 * tf.reduce_sum(tf.sin(tf.expand_dims(x, 1) * tf.ones([1, 100])))

    text += ", because this takes {} evaluations of `of_one`. To compare them, pass full=True."
    assert text.format(8000) in false(large, 2000)

    def by_numpy(x):
        return tf.constant(x.numpy() ** 3)

    assert text.format(24) in false(by_numpy, 6)
    assert "It is wrong only where x < 0" in false(by_numpy, 6, full=True)
