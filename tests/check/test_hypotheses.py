"""The words of a report are true of every element, and name causes of many kinds."""

import re
from functools import partial

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.check.test_check import words
from tests.check.test_patterns import WIDE, V, rule
from tests.check.test_stationary import NEAR

P = np.array([0.2, 0.7, 0.4])
TARGET = tf.constant(np.array([1.0, 0.0, 1.0]))
OTHER = tf.constant(np.array([0.3, -0.8, 1.1]))
BATCH = tf.constant(np.random.default_rng(3).normal(size=(5, 3)))
COMPLEX = tf.constant(np.array([[1 + 1j, 2 - 1j], [0.5j, 1.0]]))
MIXED = np.array([1e6, 2.0, 3e5, 7e5])
GRID = np.array([0.05, -0.2, 0.4, -0.5, 0.7, -0.9, 1.1, -1.3, 0.3])


def single_softmax(factor):
    def gradient(dy, x):
        y = tf.nn.softmax(tf.cast(x, tf.float32))
        pulled = y * (dy - tf.reduce_sum(dy * y, -1, keepdims=True))
        return tf.cast(factor * pulled, x.dtype)

    return rule(lambda x: tf.nn.softmax(tf.cast(x, tf.float32)), gradient)


# Claims that are not true of every element: the rule, its argument, what must be said, and what not
CLAIMS = {
    "a factor of 1.01 in float32": (
        single_softmax(1.01), WIDE.astype(np.float32), "It is 1.01 times the correct gradient.",
        ("softmax over", "permuted"),
    ),
    "a factor of 1.01 of a softmax": (
        rule(
            tf.nn.softmax,
            lambda dy, x: 1.01 * tf.vjp(tf.nn.softmax, x)[1](dy)[0],
        ),
        WIDE, "It is 1.01 times the correct gradient.", ("softmax over", "permuted"),
    ),
    "one small element": (
        rule(tf.square, lambda dy, x: dy * (2 * x + np.array([0.0, 0.5, 0.0, 0.0]))),
        MIXED, "It is wrong only at x[1] (", ("everywhere",),
    ),
    "one small element of a sum": (
        rule(
            lambda p: 1e6 * p[0] ** 2 + 1e-2 * p[1] ** 2,
            lambda dy, p: dy * tf.stack([2e6 * p[0], 1e-2 * p[1]]),
        ),
        np.array([1.3, 0.4]), "The term from differentiating `1e-2 * p[1] ** 2` (",
        ("right along", "A + A^T", "is 0.49"),
    ),
    "a small slope of a large value": (
        rule(lambda x: 1e3 + 1e-9 * x**2, lambda dy, x: dy * 1e-9 * x),
        np.array([1.3, 0.4]), "It is 0.5 times the correct gradient.", (),
    ),
    "the ratio of two numbers": (
        rule(
            lambda x, a: a * tf.reduce_sum(x**2),
            lambda dy, x, a: (dy * 2.0 * a * x, dy * tf.reduce_sum(x)),
        ),
        (V, 1.5), "with respect to y is wrong", ("times the",),
    ),
    "an element for a zero upstream gradient": (
        rule(tf.square, lambda dy, x: dy * 2 * x + 0.5),
        V, "For dy = 0, the largest element of the gradient is 0.5, not 0", ("gradients for two",),
    ),
    "errors that grow with x": (
        rule(tf.sin, lambda dy, x: dy * (1.0 - x**2 / 2.0 + x**4 / 24.0)),
        GRID, "It is wrong by more than 1e-05 of its value where |x| >= 0.5", ("only where",),
    ),
    "a constant with an error in the third digit": (
        rule(
            lambda x: tf.tanh(x + 0.044715 * x**3),
            lambda dy, x: dy * (1.0 - tf.tanh(x + 0.044715 * x**3) ** 2) * (1.0 + 0.14145 * x**2),
        ),
        GRID, "The term from differentiating `0.044715 * x**3` (", ("only where",),
    ),
    "indices of sorted values": (
        rule(
            lambda u: u[2:] - 2.0 * u[1:-1] + u[:-2],
            lambda dy, u: tf.pad(dy, [[2, 0]]) - 2.0 * tf.pad(dy, [[1, 1]]),
        ),
        np.array([-0.9, -0.7, -0.5, -0.3, -0.1, 0.6, 0.8]), "It is wrong only at x[0:5] (5 of 7",
        ("only where",),
    ),
    "elements off the diagonal": (
        rule(
            tf.linalg.logdet,
            lambda dy, x: dy * tf.linalg.inv(x) * (2.0 - np.eye(3)),
        ),
        np.array([[2.0, 0.3, 0.4], [0.3, 1.5, -0.2], [0.4, -0.2, 1.1]]),
        "It is wrong only off the diagonal (6 of 9 elements). There it is 2 times", ("only where",),
    ),
    "two branches without a product": (
        rule(
            lambda x: tf.where(tf.abs(x) < 1.0, x**2, tf.abs(x)),
            lambda dy, x: dy * tf.where(tf.abs(x) < 1.0, x, tf.sign(x)),
        ),
        np.array([0.3, -0.7, 1.5, -2.5, 0.9]), "There it is 0.5 times the correct", ("product",),
    ),
    "two missing terms that look like a wrong sign": (
        rule(
            lambda y, lamb: y + 0.3 * (-lamb * (y + 0.15 * (-lamb * y))),
            lambda dy, y, lamb: (
                dy * (1.0 - 0.3 * lamb + 0.045 * lamb**2), tf.reduce_sum(dy * -0.3 * y)
            ),
        ),
        (V, 1.3), "seems to have the wrong sign", ("has the wrong sign",),
    ),
    "2 and the sizes of two axes": (
        rule(
            lambda x: tf.reduce_mean(tf.reduce_sum(x**2, -1)),
            lambda dy, x: dy * x / 4.0 + 0.0 * x,
        ),
        np.random.default_rng(0).normal(size=(4, 2)), "It is 0.5 times the correct gradient.",
        ("a mean over 2",),
    ),
    "a slope of 2 at a kink": (
        rule(tf.nn.relu, lambda dy, x: 2.0 * dy), 0.0, "outside the one-sided slopes, 0 and 1",
        ("times the correct",),
    ),
    "some of many elements": (
        rule(
            lambda x: x**3,
            lambda dy, x: dy * 3 * x**2 * tf.where(tf.range(5000) < 4999, 2.0, 2.5),
        ),
        np.random.default_rng(0).normal(size=5000), "were not compared one by one",
        ("times the correct",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CLAIMS)
def test_nothing_is_said_that_is_not_true_of_every_element(name):
    function, x, said, unsaid = CLAIMS[name]
    text = words(tf.check_gradients(function, *(x if isinstance(x, tuple) else (x,))))
    assert said in text, text
    for claim in unsaid:
        assert claim not in text, text


@pytest.mark.parametrize("name", NEAR)
def test_what_is_right_at_one_point_alone(name):
    """An order is the derivative of the one before, which is right at this point only."""
    function, args, order = NEAR[name]
    text = words(tf.check_gradients(function, *map(np.array, args), order=order))
    whose = {2: "the function", 3: "the gradient of order 1"}[order]
    assert f"Order {order - 1} is right at this point only, because its derivative is not " in text
    assert f"is not the second derivative of {whose}." in text
    assert text.count(f"The gradient of order {order}") == 1


def stops(x):
    return tf.reduce_sum(tf.stop_gradient(tf.nn.softmax(x)) * x)


def test_what_is_stopped_is_no_numpy_array():
    text = words(tf.check_gradients(stops, V))
    assert "`stops` uses `stop_gradient`" in text
    assert "NumPy" not in text


# Causes ----------------------------------------------------------------------------------------


@tf.custom_gradient
def dice(p):
    overlap = 2.0 * tf.reduce_sum(p * TARGET)
    sizes = tf.reduce_sum(p) + tf.reduce_sum(TARGET)
    return 1.0 - overlap / sizes, lambda dy: dy * (-2.0 * TARGET / sizes)


@tf.custom_gradient
def focal(p):
    weight = (1.0 - p) ** 2
    return -weight * tf.math.log(p), lambda dy: dy * (-weight / p)


@tf.custom_gradient
def cosine(a):
    norms = tf.norm(a) * tf.norm(OTHER)
    return tf.reduce_sum(a * OTHER) / norms, lambda dy: dy * OTHER / norms


@tf.custom_gradient
def least_squares(w):
    errors = BATCH @ w
    return tf.reduce_mean(errors**2), lambda dy: dy * 2 / 20 * tf.transpose(BATCH[:4]) @ errors[:4]


CAUSES = {
    "a quotient whose denominator is constant": (dice, P, "The rule treats `sizes` ("),
    "a weight that is constant": (focal, P, "The rule treats `weight` ("),
    "a norm that is constant": (cosine, P, "The rule treats `norms` ("),
    "a mean over another axis": (
        rule(
            lambda x: x - tf.reduce_mean(x, 1, keepdims=True),
            lambda dy, x: dy - tf.reduce_mean(dy, 0, keepdims=True),
        ),
        WIDE,
        "The rule subtracts the mean over axis 0, but the function subtracts the mean over axis 1.",
    ),
    "a mean over as many as another axis has": (
        rule(lambda x: tf.reduce_mean(x**2, 1), lambda dy, x: dy[:, None] * 2 * x / 3.0),
        WIDE,
        "Does the rule divide by 3, where a mean over 4 elements divides by 4?",
    ),
    "a complex matrix that is not conjugated": (
        rule(
            lambda z: tf.linalg.matvec(COMPLEX, z),
            lambda dy, z: tf.linalg.matvec(tf.transpose(COMPLEX), dy),
        ),
        np.array([1.0 + 2.0j, 0.3 - 1.0j]),
        "It must also conjugate the Jacobian.",
    ),
    "a cumulative sum that is not reversed": (
        rule(lambda x: tf.cumsum(x, 1), lambda dy, x: tf.cumsum(dy, 1)),
        WIDE,
        "The gradient of a cumulative sum must be summed in reverse, along axis 1.",
    ),
    "an example that is left out": (
        rule(lambda w: BATCH @ w, lambda dy, w: tf.transpose(BATCH[:4]) @ dy[:4]),
        WIDE,
        "It lacks the part that comes from output[4]. Does the rule leave out a sample of a batch?",
    ),
    "an example that is left out of a loss": (
        least_squares, WIDE, "Does the rule leave out a sample of a batch?"
    ),
    "few digits of pi": (
        rule(lambda x: np.pi * x**2, lambda dy, x: dy * 2 * 3.1416 * x),
        V,
        "correct gradient. Is the number 3.1416 meant to be np.pi = 3.14159265?",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CAUSES)
def test_causes(name):
    function, x, sentence = CAUSES[name]
    report = tf.check_gradients(function, x)
    assert report.first_false_order == 1, report
    assert sentence in words(report), report


def test_a_dictionary_that_each_call_overwrites():
    saved = {}

    @tf.custom_gradient
    def square(x):
        saved["x"] = x
        return x**2, lambda dy: dy * 2 * saved["x"]

    text = words(tf.check_gradients(lambda x: square(x) * square(2.0 * x), V))
    assert "The rule of `square` reads a value that each call of `square` overwrites" in text


def test_an_attribute_that_the_rule_reads_late():
    class Layer:
        @tf.custom_gradient
        def square(self, x):
            self.x = x
            return x**2, lambda dy: dy * 2 * self.x

    layer = Layer()
    text = words(tf.check_gradients(lambda x: layer.square(x) * layer.square(2.0 * x), V))
    assert "The rule of `square` reads a value that each call of `square` overwrites" in text


def test_numbers_from_a_global_random_state():
    @tf.custom_gradient
    def dropout(x):
        return 2.0 * x, lambda dy: dy * 4.0 * tf.constant(np.random.uniform(size=4))

    report = tf.check_gradients(dropout, V)
    assert not report.ok
    text = words(report)
    assert "The gradient differs between calls" in text
    assert "The function or its rule draws from the global state of `numpy.random`" in text
    report = tf.check_gradients(lambda x: x * np.random.uniform(size=4), V)
    assert "The function or its rule draws from the global state of `numpy.random`" in words(report)


def test_a_constant_term_is_missing_in_the_gradient_of_a_sum():
    @tf.custom_gradient
    def entropy(p):
        return -tf.reduce_sum(p * tf.math.log(p)), lambda dy: -dy * tf.math.log(p)

    report = tf.check_gradients(entropy, np.array([0.2, 0.3, 0.5]))
    text = words(report)
    assert "It has the extra term `dy`." in text
    assert "lambda dy: -dy * tf.math.log(p) - dy" in text


# Words that are true -----------------------------------------------------------------------------

POINT = np.array([0.5, 1.0, -2.0, 3.0])


def huber(slope):
    @tf.custom_gradient
    def f(x):
        a = tf.abs(x)
        y = tf.where(a <= 1.0, 0.5 * x**2, a - 0.5)
        return y, lambda dy: dy * tf.where(a <= 1.0, x, slope(x))

    return f


@tf.custom_gradient
def log_cosh_by_sign(x):
    a = tf.abs(x)
    e = tf.exp(-2.0 * a)
    return a + tf.math.log1p(e), lambda dy: dy * tf.sign(x) * (1.0 - e) / (1.0 + e)


@tf.custom_gradient
def root_mean_square_norm(x):
    r = 1.0 / tf.sqrt(tf.reduce_mean(x**2, axis=1, keepdims=True) + 1e-6)
    return x * r, lambda dy: dy * r


@tf.custom_gradient
def temperature_and_energies(beta, energies):
    return -tf.reduce_logsumexp(-beta * energies), lambda dy: (
        dy * 2.0,
        dy * beta * tf.nn.softmax(-beta * energies),
    )


@tf.custom_gradient
def unit(x):
    n = tf.norm(x)
    return x / n, lambda dy: dy / n


@tf.custom_gradient
def weighted(x):
    return x * tf.sin(x), lambda dy: dy * tf.sin(x)


@tf.custom_gradient
def root(v):
    y = tf.sqrt(v)
    return y, lambda dy: 0.5 * dy / y


TRUE = {
    "a kink of the gradient": (
        huber(tf.sign), (POINT,),
        "The derivative of order 2 with respect to x does not exist at x[1] = 1, because the "
        "gradient of order 1 has a kink there.", "There is a kink",
    ),
    "an element beside a kink of the gradient": (
        huber(tf.ones_like), (POINT,), "at x[2] (expected -dy[2], got dy[2]).", "x[1] (",
    ),
    "gradients in units of the upstream": (
        huber(lambda x: 2.0 * tf.sign(x)), (np.array([0.5, -1.6, 0.2, 3.0]),),
        "only at x[1] (expected -dy[1], got -2 * dy[1]) and x[3] (", "0.76",
    ),
    "a derivative of order 2 at zero": (
        log_cosh_by_sign, (np.array([0.0, 0.5]),),
        "It is wrong only where x is 0 (1 of 2 elements), at x[0] (expected", "<= 0",
    ),
    "a derivative of a rule that returns 0 rightly": (
        log_cosh_by_sign, (np.array([0.0, 0.5]),), "There it is always 0.",
        "The rule returns 0",
    ),
    "a mean of squares": (
        root_mean_square_norm, (WIDE,), "The rule does not differentiate the mean of the squares",
        "variance",
    ),
    "a single number beside an array": (
        temperature_and_energies, (0.7, V), "with respect to beta is wrong: expected",
        "random direction, e",
    ),
    "a divisor": (
        unit, (V,), "The rule treats the divisor `tf.norm(x)` as a constant.", "product",
    ),
    "a factor": (
        weighted, (V,), "The rule treats the factor `tf.sin(x)` as a constant.", "product"
    ),
    "a division by zero": (
        root, (np.array([0.0, 4.0]),), "At v[0] = 0, `0.5 * dy / y` divides by zero (", "-0.5685",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRUE)
def test_what_is_said_is_true(name):
    function, args, said, unsaid = TRUE[name]
    text = words(tf.check_gradients(function, *args))
    assert said in text
    assert unsaid not in text.partition("On its own")[0].partition("1. ")[2]


def test_arguments_whose_gradients_are_linear_are_not_accused():
    @tf.custom_gradient
    def kinetic(p, m):
        return p**2 / (2.0 * m), lambda dy: (p / m, -dy * p**2 / (2.0 * m**2))

    report = tf.check_gradients(kinetic, 1.3, 2.1)
    false = {row.argument for row in report.rows if row.verdict == "not linear in the upstream"}
    assert false == {"p"}


@tf.custom_gradient
def kepler(mean, e):
    anomaly = mean
    for _ in range(8):
        anomaly -= (anomaly - e * tf.sin(anomaly) - mean) / (1.0 - e * tf.cos(anomaly))

    def grad(dy):
        held = tf.stop_gradient(anomaly)
        slope = 1.0 - e * tf.sin(held)
        return dy / slope, tf.reduce_sum(dy * tf.sin(anomaly) / slope)

    return anomaly, grad


@tf.custom_gradient
def clipped(x):
    return x * x, lambda dy: tf.clip_by_value(2.0 * x * dy, -0.5, 0.5)


@pytest.mark.parametrize(
    ("f", "args"), [(kepler, (np.array([0.3, 1.0, 2.0]), 0.4)), (clipped, (V[:3],))]
)
def test_what_follows_from_the_first_finding_is_not_another_one(f, args):
    (finding,) = tf.check_gradients(f, *args).findings
    assert finding.order == 1


def test_findings_are_in_the_order_of_their_derivatives():
    @tf.custom_gradient
    def cube(x):
        values = x.numpy()
        return x**3, lambda dy: 2.0 * dy * tf.constant(values) ** 2

    first, second = tf.check_gradients(cube, V[:3]).findings
    assert first.text.startswith("The gradient of order 1 ")
    assert (first.order, second.order) == (1, 2)
    assert "taken from tensors by `x.numpy()` (test_hypotheses.py:" in words(second.text)


def test_arguments_in_a_tuple_are_to_be_passed_one_by_one():
    with pytest.raises(TypeError) as caught:
        tf.check_gradients(lambda x, y: x * y, (2.0, 3.0))
    note = "check_gradients: pass the arguments one by one: check_gradients(f, 2.0, 3.0)"
    assert caught.value.__notes__ == [note]


A = np.array([[0.3, 1.0], [-0.4, 2.0]])
U = np.array([1.0, 2.0])


def test_a_ratio_for_each_sign_needs_two_elements_of_each():
    bilinear = rule(
        lambda v: tf.reduce_sum(U * tf.linalg.matvec(A, v)),
        lambda dy, v: dy * tf.linalg.matvec(A, tf.constant(U)),
    )
    assert "times the correct gradient" not in words(tf.check_gradients(bilinear, V[:2]))


def standardised(x):
    return (x - tf.reduce_mean(x)) / tf.math.reduce_std(x)


def standard_rule(dy, x, mean=1.0, variance=1.0):
    y = standardised(x)
    means = mean * tf.reduce_mean(dy) + variance * y * tf.reduce_mean(dy * y)
    return (dy - means) / tf.math.reduce_std(x)


def centred_square(x):
    return (x - tf.reduce_mean(x)) ** 2


def square_rule(dy, x, mean=1.0):
    slope = 2.0 * dy * (x - tf.reduce_mean(x))
    return slope - mean * tf.reduce_mean(slope)


@pytest.mark.parametrize(
    ("value", "gradient", "lost"),
    [
        (standardised, partial(standard_rule, mean=0.0), "the mean"),
        (standardised, partial(standard_rule, variance=0.0), "the variance"),
        (standardised, partial(standard_rule, mean=0.0, variance=0.0), "the mean and the variance"),
        (standardised, partial(standard_rule, mean=-1.0), None),
        (standardised, partial(standard_rule, variance=-1.0), None),
        (standardised, partial(standard_rule, variance=2.0), None),
        (standardised, partial(standard_rule, mean=0.0, variance=2.0), None),
        (centred_square, partial(square_rule, mean=0.0), "the mean"),
        (centred_square, partial(square_rule, mean=-1.0), None),
        (lambda x: x - tf.reduce_mean(x), lambda dy, x: dy, "the mean"),
        (lambda x: x - tf.reduce_mean(x), lambda dy, x: dy - 0.5 * tf.reduce_mean(dy), None),
        (lambda x: x - tf.reduce_mean(x), lambda dy, x: dy + tf.reduce_mean(dy), None),
        (lambda x: x - tf.reduce_mean(x), lambda dy, x: dy - tf.reduce_sum(dy), None),
    ],
)
def test_a_mean_is_said_to_be_constant_only_if_its_whole_term_is_missing(value, gradient, lost):
    function = rule(value, lambda dy, x: gradient(dy, x))
    text = words(tf.check_gradients(function, np.array([1.0, 2.0, 4.0, 0.5])))
    claim = f"The rule does not differentiate {lost} over axis 0 with respect to x."
    assert (claim if lost else "does not differentiate") in text or lost is None
    assert lost is not None or "does not differentiate" not in text


def test_a_logarithm_of_an_argument_is_named():
    power = rule(lambda n, r: r**n, lambda dy, n, r: (dy * r**n, dy * n * r ** (n - 1)))
    report = tf.check_gradients(power, 3.0, 2.0)
    assert "The value of 1 / tf.math.log(y) is 1.4427." in words(report)


def test_the_same_is_said_once_of_each_argument():
    triplet = rule(
        lambda a, b: tf.nn.relu(tf.reduce_sum(a * b, -1)),
        lambda dy, a, b: (dy[:, None] * b, dy[:, None] * a),
    )
    a, b = np.random.default_rng(5).normal(size=(2, 5, 3))
    text = words(tf.check_gradients(triplet, a, b))
    assert re.search(r"Each of these gradients is wrong at \d+ of 15 elements\.", text), text
