"""check_gradients(against=...): rules that differ from the derivative on purpose."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.check.test_check import rows, words


@tf.custom_gradient
def quantise(x):
    return tf.round(x), lambda dy: dy


@tf.custom_gradient
def spike(x):
    def grad(dy):
        return dy * tf.sigmoid(x) * (1.0 - tf.sigmoid(x))

    return tf.cast(x > 0.0, x.dtype), grad


@tf.custom_gradient
def reverse(x):
    return x * 1.0, lambda dy: -0.5 * dy


@tf.custom_gradient
def clip(x):
    return tf.clip_by_value(x, -1.0, 1.0), lambda dy: dy


@tf.custom_gradient
def sign(x):
    return tf.sign(x), lambda dy: tf.where(tf.abs(x) <= 1.0, dy, tf.zeros_like(dy))


def idiom(x):
    return x + tf.stop_gradient(tf.round(x) - x)


def same(x):
    return x


SURROGATES = {
    "straight-through": (quantise, same),
    "stop_gradient": (idiom, same),
    "spike": (spike, tf.sigmoid),
    "gradient reversal": (reverse, lambda x: -0.5 * x),
    "clipping": (clip, same),
    "hard tanh": (sign, lambda x: tf.clip_by_value(x, -1.0, 1.0)),
}
POINTS = (2.0, np.array([0.3, -1.2, 2.2]), np.array([0.3, -1.2], np.float32), np.zeros((2, 2)))


@pytest.mark.parametrize("point", POINTS, ids=["scalar", "float64", "float32", "zeros"])
@pytest.mark.parametrize("name", SURROGATES)
def test_a_declared_surrogate_is_the_reference(name, point):
    function, surrogate = SURROGATES[name]
    report = tf.check_gradients(function, point, against=surrogate, order=3)
    assert {row.verdict for row in rows(report, 1)} == {"ok"}
    at_zero = {"inconclusive"} if np.ndim(point) == 2 else set()  # where derivatives vanish
    assert {row.verdict for row in report.rows} <= {"ok"} | at_zero, report
    assert {row.order for row in report.rows} == {1, 2, 3}
    assert report.ok
    assert report.against is surrogate
    assert "derivative of the surrogate" in words(report)
    tf.assert_gradients(function, point, against=surrogate)


@pytest.mark.parametrize("name", SURROGATES)
def test_another_surrogate_is_false_at_order_one(name):
    function, _ = SURROGATES[name]
    report = tf.check_gradients(function, np.array([0.3, -1.2]), against=lambda x: 3.0 * x * x)
    assert report.first_false_order == 1
    assert rows(report, 1)[0].false
    with pytest.raises(AssertionError, match=r"wrong from order 1"):
        tf.assert_gradients(function, np.array([0.3, -1.2]), against=lambda x: 3.0 * x * x)


def test_a_false_second_order_of_a_surrogate_is_seen():
    """The slope of the spike is a sigmoid's, but its own rule is not."""

    @tf.custom_gradient
    def false(x):
        def grad(dy):
            slope = tf.custom_gradient(
                lambda x: (tf.sigmoid(x) * (1.0 - tf.sigmoid(x)), lambda ddy: 5.0 * ddy)
            )
            return dy * slope(x)

        return tf.cast(x > 0.0, x.dtype), grad

    report = tf.check_gradients(false, np.array([0.3, -1.2]), against=tf.sigmoid)
    assert report.first_false_order == 2, report


def test_several_arguments_variables_and_full():
    w = tf.Variable(np.array([0.3, -0.8]), name="w")

    def network(x, y):
        return {"q": quantise(x * w) * y, "s": tf.sin(y)}

    def smooth(x, y):
        return {"q": x * w * y, "s": tf.sin(y)}

    x, y = np.array([1.2, 0.7]), np.array([-0.4, 0.9])
    assert not tf.check_gradients(network, x, y, order=1).ok

    def surrogate(x, y):
        return {"q": tf.round(x * w) * y + (x * w) * tf.constant(y0), "s": tf.sin(y)}

    y0 = y
    report = tf.check_gradients(network, x, y, order=1, against=surrogate, full=True)
    assert {row.argument for row in report.rows} == {"x", "y", "w"}
    assert {row.verdict for row in report.rows} == {"ok"}, report
    report = tf.check_gradients(network, x, y, order=1, against=smooth)
    assert {row.argument: row.false for row in report.rows} == {"x": False, "w": False, "y": True}


def test_clipped_upstreams_have_no_surrogate():
    clipped = tf.custom_gradient(lambda x: (x * 1.0, lambda dy: tf.clip_by_value(dy, -1.0, 1.0)))
    report = tf.check_gradients(clipped, np.array([0.3, -1.2]), against=same)
    assert not report.ok
    assert "not linear in the upstream" in words(report)


@pytest.mark.parametrize(
    ("surrogate", "error", "match"),
    [
        (
            3.0,
            TypeError,
            r"against= must be a function of the same arguments as the checked function, got float",
        ),
        (lambda x: tf.reduce_sum(x), ValueError, r"`against` must return .* \[\(2,\)\], got"),
        (lambda x: None, TypeError, r"`against` returned None; return a Tensor"),
        (lambda x: x > 0, TypeError, r"`against` returned no floats"),
    ],
)
def test_bad_surrogates(surrogate, error, match):
    with pytest.raises(error, match=match):
        tf.check_gradients(quantise, np.array([0.3, -1.2]), against=surrogate)


# Recognised without being declared -----------------------------------------------------------

IDENTITY = "against=lambda x: x)"
RECOGNISED = {
    "straight-through": (quantise, "`quantise` is piecewise constant here", IDENTITY),
    "stop_gradient": (idiom, "`idiom` is piecewise constant here", IDENTITY),
    "spike": (spike, "is piecewise constant here", "against=tf.sigmoid)"),
    "gradient reversal": (reverse, "or a gradient reversal?", "against=lambda x: -0.5 * x)"),
    "clipping": (clip, "returns some elements of its argument unchanged", IDENTITY),
    "hard tanh": (sign, "straight-through estimator", "lambda x: tf.clip_by_value(x, -1.0, 1.0))"),
    "inside": (lambda x: quantise(3.0 * x), "piecewise constant", "against=lambda x: 3 * x)"),
    "no surrogate": (
        tf.custom_gradient(lambda x: (tf.floor(x), lambda dy: dy * x**2)),
        "piecewise constant here",
        "pass a function of the same arguments whose derivative the rule returns",
    ),
}


@pytest.mark.parametrize("name", RECOGNISED)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_deliberate_rule_is_recognised(name, dtype):
    function, *sentences = RECOGNISED[name]
    point = np.array([0.3, -1.2, 2.2], dtype)
    report = tf.check_gradients(function, point)
    assert report.first_false_order == 1
    for sentence in sentences:
        assert sentence in words(report), report
    assert "Remove `stop_gradient`" not in words(report)  # nothing is to be mended
    suggested = [text for text in words(report).split("`") if "against=lambda" in text]
    for call in suggested:
        call = call.split(", against=")[1][:-1]
        surrogate = eval(call, {"tf": tf})
        assert tf.check_gradients(function, point, against=surrogate).ok


def test_the_suggestion_for_one_number():
    assert "against=tf.sigmoid)" in words(tf.check_gradients(spike, 1.0))
    assert "against=lambda x: x)" in words(tf.check_gradients(quantise, 1.3))
    assert "against=lambda x: -0.5 * x)" in words(tf.check_gradients(reverse, 1.3))


@pytest.mark.parametrize(
    "function",
    [
        tf.custom_gradient(lambda x: (x**3, lambda dy: 6 * x**2 * dy)),
        tf.custom_gradient(lambda x: (x**2, lambda dy: dy)),
        tf.custom_gradient(lambda x: (x * 0.0 + 2.0, lambda dy: dy)),
        tf.custom_gradient(lambda x: (tf.sin(x), lambda dy: -dy)),
    ],
)
@pytest.mark.parametrize("point", [1.0, 0.0, np.array([1.0, 2.0, -0.5])])
def test_faults_are_not_called_deliberate(function, point):
    assert "against=" not in words(tf.check_gradients(function, point))


def test_saturated_is_not_piecewise_constant():
    """1 - tanh(x)**2 is 4e-13 here; small steps change nothing. A wrong sign is no surrogate."""
    f = tf.custom_gradient(lambda x: (tf.tanh(x), lambda dy: -dy * (1.0 - tf.tanh(x) ** 2)))
    report = tf.check_gradients(f, np.array([15.0, -16.0]))
    assert report.first_false_order == 1
    assert "piecewise constant" not in words(report)


# Where wrong rules may look right, and every element ---------------------------------------------

SQUARED = tf.custom_gradient(lambda x: (tf.round(x), lambda dy: 2.0 * x * dy))
TRIPLED = tf.custom_gradient(lambda x: (tf.round(x), lambda dy: 3.0 * x * dy))
STEP = tf.custom_gradient(
    lambda x: (tf.cast(x > 0.0, x.dtype), lambda dy: dy * tf.cast(x > 0.0, x.dtype))
)
DOUBLED = tf.custom_gradient(
    lambda x: (tf.cast(x > 0.0, x.dtype), lambda dy: 2.0 * dy * tf.cast(x > 0.0, x.dtype))
)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("x", [0.0, np.zeros(3), np.array([0.0, 1.0], np.float32)], ids=str)
def test_a_surrogate_at_a_second_point(x, full):
    """At 0 a factor of 2x does not show, at the kink of a surrogate none does."""
    for right, wrong, surrogate in ((SQUARED, TRIPLED, tf.square), (STEP, DOUBLED, tf.nn.relu)):
        report = tf.check_gradients(right, x, against=surrogate, full=full)
        assert report.ok, report
        report = tf.check_gradients(wrong, x, against=surrogate, full=full)
        assert report.first_false_order == 1, report
        first = [row for row in report.rows if row.false and row.order == 1]
        assert {row.argument for row in first} == {"x"}
        if not np.any(x):
            assert all(row.nearby for row in first), report


def test_the_value_at_a_second_point_is_the_function_s():
    """In f(x)**2 it is f's value that counts, not that of the surrogate: 0 here, and not x**2."""
    report = tf.check_gradients(TRIPLED, 0.0, against=tf.square, modes="reverse")
    (row,) = [row for row in report.rows if row.nearby and row.path == "both"]
    x = float(row.nearby.removeprefix("x = "))
    assert 0.0 < abs(x) < 0.1
    assert row.value == pytest.approx(2.0 * (3.0 * x) ** 2, rel=1e-2)


def test_full_of_a_surrogate_is_batched():
    calls = []

    def factor(mask):
        @tf.custom_gradient
        def product(x):
            calls.append(None)
            rounded = tf.round(x)
            rule = lambda dy: (dy @ tf.transpose(x) + tf.transpose(x) @ dy) * mask
            return rounded @ rounded, rule

        return product

    x = np.random.default_rng(0).normal(size=(10, 10))
    right, wrong = np.ones((10, 10)), np.ones((10, 10))
    wrong[3, 4] = 1.0 + 1e-4
    report = tf.check_gradients(factor(right), x, full=True, against=lambda x: x @ x)
    assert {row.verdict for row in report.rows} == {"ok"}, report
    assert len(calls) < 30 * x.size
    report = tf.check_gradients(factor(wrong), x, full=True, order=1, against=lambda x: x @ x)
    assert [row.index for row in report.rows if row.false and row.index] == [(3, 4)]
    assert "It is wrong only at x[3, 4] (" in words(report)


def test_a_false_second_order_of_a_surrogate_is_found_element_by_element():
    @tf.custom_gradient
    def curved(x):
        def grad(dy):
            slope = tf.custom_gradient(
                lambda x: (3.0 * x * x, lambda ddy: ddy * x * np.array([6.0, 6.0, 7.0]))
            )
            return dy * slope(x)

        return tf.round(x), grad

    report = tf.check_gradients(
        curved, np.array([0.3, 1.2, 2.2]), full=True, against=lambda x: x**3
    )
    assert report.first_false_order == 2
    assert {row.index for row in report.rows if row.false and row.index} == {(2,)}, report


@tf.custom_gradient
def by_sign(x, w):
    signs = tf.sign(w)
    return x * signs, lambda dy: (dy * signs, dy * x)


@tf.custom_gradient
def product_with_signs(x, w):
    signs = tf.sign(w)
    return x @ signs, lambda dy: (dy @ tf.transpose(signs), tf.transpose(x) @ dy)


@tf.custom_gradient
def nearest(x, book):
    distance = tf.reduce_sum((x[:, None] - book[None]) ** 2, -1)
    return tf.gather(book, tf.argmin(distance, -1)), lambda dy: (dy, None)


@tf.custom_gradient
def scaled_sign(w):
    return tf.sign(w) * tf.reduce_mean(tf.abs(w)), lambda dy: dy


RNG = np.random.default_rng(0)
ESTIMATORS = {
    by_sign: (np.array([1.0, 2.0]), np.array([0.3, -0.4])),
    product_with_signs: (RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2))),
    nearest: (RNG.normal(size=(5, 2)), RNG.normal(size=(4, 2))),
    scaled_sign: (np.array([0.5, -1.0, 2.0]),),
}


@pytest.mark.parametrize("function", ESTIMATORS)
def test_an_estimator_of_several_arguments_is_recognised(function):
    report = tf.check_gradients(function, *ESTIMATORS[function])
    assert not report.ok
    assert "Is the rule a straight-through estimator" in words(report)
    assert not any(finding.code for finding in report.findings)


def test_a_wrong_rule_of_a_rounded_number_is_not_called_an_estimator():
    @tf.custom_gradient
    def soft(x):
        shrunk = tf.nn.relu(tf.abs(x) - 0.2)
        return tf.sign(x) * shrunk, lambda dy: 2.0 * dy * tf.cast(shrunk > 0.0, x.dtype)

    report = tf.check_gradients(soft, np.array([0.5, -1.0, 2.0]))
    assert "estimator" not in words(report)
    assert report.findings[0].code
