"""Corrected code in reports: it is executed and checked first; cuts are blamed if they matter."""

import re

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.check.test_check import code_of, defined, rows, words
from tests.support import check_rules

V = np.array([0.5, -1.5, 2.0])


@tf.custom_gradient
def two_lines(x):
    def grad(dy):
        factor = x.numpy()
        other = tf.stop_gradient(x)
        return 3.0 * dy * factor * other

    return x**3, grad


@tf.custom_gradient
def prints(x):
    """Its factor is false; the value that is taken out is for nothing but a print."""

    def grad(dy):
        size = float(tf.reduce_sum(x))
        assert size == size
        return 6.0 * dy * x**2

    return x**3, grad


@tf.custom_gradient
def prints_and_cuts(x):
    def grad(dy):
        size = np.asarray(x)
        assert size.shape == x.shape
        return 3.0 * dy * x * tf.stop_gradient(x)

    return x**3, grad


@tf.custom_gradient
def cuts_and_is_false(x):
    def grad(dy):
        return 6.0 * dy * x * tf.stop_gradient(x)

    return x**3, grad


@tf.custom_gradient
def rounds(x):
    """Its derivative is false by a factor; rounding has the derivative 0, and does not matter."""

    def grad(dy):
        return dy * (6.0 * x**2 + 0.0 * tf.round(x))

    return x**3, grad


def outer(x, w):
    @tf.custom_gradient
    def inside(x):
        y = tf.sin(x) * w

        def grad(dy):
            return dy * tf.cos(x) * w

        return y, grad

    return 2.0 * inside(x)


def test_all_lines_that_cut_are_corrected_together():
    report = tf.check_gradients(two_lines, V)
    text = words(report)
    assert "takes NumPy or Python values from a tensor" in text
    assert "uses `stop_gradient`" in text
    corrected = defined(code_of(report), "two_lines")
    assert tf.check_gradients(corrected, V, order=3).ok
    assert sum(finding.code is not None for finding in report.findings) == 1


def test_a_value_that_is_only_printed_is_not_blamed():
    report = tf.check_gradients(prints, 2.0)
    assert report.first_false_order == 1
    assert rows(report, 1)[0].verdict == "wrong"
    assert "It is 2 times the correct gradient." in words(report)
    assert "takes NumPy" not in words(report)
    report = tf.check_gradients(prints_and_cuts, V)
    assert report.first_false_order == 2
    assert "stop_gradient" in words(report)
    assert "takes NumPy" not in words(report)
    corrected = code_of(report)
    assert "np.asarray(x)" in corrected
    assert tf.check_gradients(defined(corrected, "prints_and_cuts"), V).ok


@tf.custom_gradient
def stopped_before_the_rule(x):
    y = tf.stop_gradient(x)
    return x**3, lambda dy: 3.0 * dy * y * y


def test_a_tensor_that_the_function_stops_and_the_rule_uses():
    report = tf.check_gradients(stopped_before_the_rule, V)
    assert report.first_false_order == 2
    text = words(report)
    assert "1. `stopped_before_the_rule` uses `stop_gradient`" in text
    assert "y = tf.stop_gradient(x)`), and its rule uses the result of `stop_gradient`. Der" in text
    assert "NumPy arrays" not in text
    corrected = defined(code_of(report), "stopped_before_the_rule")
    assert tf.check_gradients(corrected, V, order=3).ok


@tf.custom_gradient
def stops_what_its_rule_does_not_use(x):
    assert tf.stop_gradient(x).shape == x.shape
    return x**3, lambda dy: tf.constant(3.0 * dy.numpy() * x.numpy() ** 2)


def test_a_tensor_that_is_stopped_for_nothing_is_not_blamed():
    report = tf.check_gradients(stops_what_its_rule_does_not_use, V)
    assert "uses `stop_gradient`" not in words(report)
    assert "takes NumPy or Python values from a tensor" in words(report)


def score(x):
    return 3.0 * tf.exp(x - tf.stop_gradient(x))


def smoothed(x):
    z, y = tf.tanh(x), x**3
    return z + tf.stop_gradient(y - z)


@pytest.mark.parametrize("f", [score, smoothed])
def test_an_estimator_that_is_meant_is_not_deleted(f):
    report = tf.check_gradients(f, V)
    assert report.first_false_order == 1
    assert all(finding.code is None for finding in report.findings), report
    assert f"`tf.check_gradients({f.__name__}, x, against=surrogate)`" in words(report)
    if f is smoothed:
        assert tf.check_gradients(f, V, against=tf.tanh).ok


def test_code_that_stays_false_is_not_offered():
    report = tf.check_gradients(cuts_and_is_false, V)
    assert report.first_false_order == 1
    assert "tf.vjp(lambda x: x**3, x)" in code_of(report)  # and not without `stop_gradient`
    assert tf.check_gradients(defined(code_of(report), "cuts_and_is_false"), V, order=3).ok
    report = tf.check_gradients(rounds, V)
    assert rows(report, 1)[0].verdict == "wrong"
    assert "`round`" not in words(report)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_captured_tensor_gets_a_gradient(dtype):
    x, w = V.astype(dtype), (V + 3.0).astype(dtype)
    report = tf.check_gradients(outer, x, w)
    code = code_of(report)
    assert "tf.vjp(lambda w: tf.sin(x) * w, w)" in code
    inside = defined(code, "inside")
    assert tf.check_gradients(inside, x, w, order=3).ok


CODE = ("example 1", "example 1, false", "example 2", "NumPy", "stop_gradient", "captured")
CODE += ("not summed", "not finite")


@pytest.mark.parametrize("name", CODE)
def test_code_that_is_offered_is_right(name):
    """Of each case of the table, in the dtype of its arguments."""
    case = check_rules.WRONG[name]
    code = code_of(tf.check_gradients(case.f, *case.args))
    corrected = defined(code, re.findall(r"def (\w+)", code)[0], factor=1.0)
    report = tf.check_gradients(corrected, *case.args)
    assert {row.verdict for row in report.rows} == {"ok"}, report


def test_nothing_but_definitions_is_executed():
    """A decorator that the library does not know would run a second time."""
    calls = []

    def registered(f):
        calls.append(f)
        return tf.custom_gradient(f)

    @registered
    def through_numpy(x):
        return x**3, lambda dy: dy * 3 * np.asarray(x) ** 2

    report = tf.check_gradients(through_numpy, 2.0)
    assert report.first_false_order == 2
    assert len(calls) == 1
    assert all(finding.code is None for finding in report.findings)


# NaN in words, and lines ---------------------------------------------------------------------


def test_nan_is_named_in_words():
    def direction(x):
        return x / tf.abs(x)

    report = tf.check_gradients(direction, np.array([1.0, 0.0]))
    text = words(report)
    assert "The value of `direction` is NaN, so" in text
    assert "0 / 0 is NaN (test_corrections.py:" in text
    assert ": `x / tf.abs(x)`)." in text
    assert "At x[1] = 0, " in text
    assert not report.conclusive
    with pytest.raises(AssertionError, match=r"0 / 0 is\s+NaN"):
        tf.assert_gradients(direction, 0.0)

    @tf.custom_gradient
    def bump(x):
        return x**2, lambda dy: dy * 2 * x * x / x

    text = words(tf.check_gradients(bump, 0.0))
    assert "0 / 0 is NaN (test_corrections.py:" in text
    assert "At x = 0, " in text


def test_the_line_of_the_check_is_not_named():
    report = tf.check_gradients(
        tf.divide,
        0.0,
        0.0,
    )
    assert "At x = 0, 0 / 0 is NaN." in words(report)
    report = tf.check_gradients(tf.stop_gradient, 2.0)
    assert "uses `stop_gradient`. Derivatives" in words(report)


# One factor, or one axis -----------------------------------------------------------------------

cg = tf.custom_gradient


@cg
def minus_sine(x):
    return tf.cos(x), lambda dy: dy * tf.sin(x)


@tf.custom_gradient
def product_with_signs(x, y):
    def grad(dy):
        return dy * y / 2.0, -dy * x

    return x * y, grad


@tf.custom_gradient
def softmax_of_columns(x):
    y = tf.nn.softmax(x, axis=0)
    return y, lambda dy: y * (dy - tf.reduce_sum(dy * y, 1, keepdims=True))


@tf.custom_gradient
def centred(x):
    y = x - tf.reduce_mean(x, axis=1, keepdims=True)
    return y, lambda dy: dy - tf.reduce_mean(dy, axis=0, keepdims=True)


MATRIX = np.random.default_rng(0).normal(size=(3, 4))
CORRECTED = {
    "a sign, with another name of the decorator": (minus_sine, (V,), "dy: -(dy * tf.sin(x))"),
    "a ratio and a sign": (
        product_with_signs, (V, V + 1.0), "return dy * y, dy * x"
    ),
    "an axis by position": (softmax_of_columns, (MATRIX,), "tf.reduce_sum(dy * y, 0, keepdims"),
    "an axis by keyword": (centred, (MATRIX,), "tf.reduce_mean(dy, axis=1, keepdims=True)"),
}  # fmt: skip


@pytest.mark.parametrize("name", CORRECTED)
def test_a_factor_or_an_axis_is_corrected(name):
    function, args, line = CORRECTED[name]
    code = code_of(tf.check_gradients(function, *args))
    assert line in code
    corrected = defined(code, function.__name__, cg=cg, MATRIX=MATRIX)
    assert tf.check_gradients(corrected, *args, order=3).ok


def test_the_name_of_the_decorator_is_kept():
    code = code_of(tf.check_gradients(minus_sine, V))
    assert code.startswith("@cg\n")


class Layer:
    def __init__(self, scale):
        self.scale = scale

    @tf.custom_gradient
    def __call__(self, x):
        return self.scale * tf.cos(x), lambda dy: dy * self.scale * tf.sin(x)

    @cg
    def cube(self, x):
        y = tf.stop_gradient(x)
        return x**3, lambda dy: 3.0 * dy * y * y


def test_methods_are_corrected():
    layer = Layer(3.0)
    code = code_of(tf.check_gradients(layer.cube, V))
    assert "lambda dy: 3.0 * dy * x * x" in code
    corrected = defined(code, "cube", cg=cg).__get__(layer)
    assert tf.check_gradients(corrected, V, order=3).ok
    code = code_of(tf.check_gradients(layer.__call__, V))
    assert "lambda dy: -(dy * self.scale * tf.sin(x))" in code
    assert tf.check_gradients(defined(code, "__call__").__get__(layer), V, order=3).ok


def test_a_ratio_that_is_a_size_is_written_as_one():
    @tf.custom_gradient
    def summed(x):
        return tf.reduce_mean(x, 0), lambda dy: dy * tf.ones_like(x)

    report = tf.check_gradients(summed, MATRIX)
    assert "It is 3 times the correct gradient." in words(report)
    assert "lambda dy: dy * tf.ones_like(x) / x.shape[0]" in code_of(report)


def test_a_ratio_is_no_size_unless_the_function_has_a_mean_or_names_a_size():
    @tf.custom_gradient
    def tripled(x):
        return tf.sin(x), lambda dy: dy * 3.0 * tf.cos(x)

    report = tf.check_gradients(tripled, MATRIX)
    assert "It is 3 times the correct gradient." in words(report)
    assert "lambda dy: dy * tf.cos(x)" in code_of(report)


@tf.custom_gradient
def doubled_product(x, w):
    return x * w, lambda dy: (dy * w, 2 * dy * x)


@tf.custom_gradient
def squared_product(x, w):
    return x * w, lambda dy: (dy * w, dy * x * x)


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        (doubled_product, "lambda dy: (dy * w, dy * x)"),
        (squared_product, "lambda dy: (dy * w, tf.vjp(lambda w: x * w, w)[1](dy)[0])"),
    ],
)
def test_code_that_is_right_at_the_point_alone_is_not_offered(rule, code):
    """At x = 2 both are 2 times the gradient dy * x."""
    report = tf.check_gradients(rule, 2.0, 3.0)
    assert "It is 2 times the correct gradient. x is 2, too." in words(report)
    assert code in code_of(report)


@tf.custom_gradient
def negated_product(x, w):
    return x * w, lambda dy: (-dy * w, dy * x)


def test_a_wrong_sign_is_not_an_argument_that_is_minus_one():
    report = tf.check_gradients(negated_product, 2.0, -1.0)
    assert "The sign is wrong." in words(report)
    assert "lambda dy: (dy * w, dy * x)" in code_of(report)


SQUARE = np.random.default_rng(3).normal(size=(3, 3))


@tf.custom_gradient
def dense_without_transpose(x, w):
    return tf.matmul(x, w), lambda dy: (tf.matmul(dy, w), tf.matmul(tf.transpose(x), dy))


@tf.custom_gradient
def dense_without_other_transpose(x, w):
    return x @ w, lambda dy: (dy @ tf.transpose(w), x @ dy)


@tf.custom_gradient
def matrix_times_vector(x):
    return tf.linalg.matvec(SQUARE, x), lambda dy: tf.linalg.matvec(SQUARE, dy)


@tf.custom_gradient
def biased(x, b):
    return x + b, lambda dy: (dy, tf.reduce_mean(dy, axis=0))


@pytest.mark.parametrize(
    ("rule", "args", "line"),
    [
        (dense_without_transpose, (MATRIX.T, SQUARE), "(tf.matmul(dy, tf.transpose(w)),"),
        (dense_without_other_transpose, (SQUARE + 1.0, SQUARE), "tf.transpose(x) @ dy)"),
        (matrix_times_vector, (SQUARE[0],), "tf.linalg.matvec(tf.transpose(SQUARE), dy)"),
        (biased, (MATRIX.T, SQUARE[0]), "lambda dy: (dy, tf.reduce_sum(dy, axis=0))"),
    ],
)
def test_a_transpose_or_a_sum_is_written_where_it_lacks(rule, args, line):
    report = tf.check_gradients(rule, *args)
    words_of_cause = "not by its transpose", "It is 0.25 times the correct gradient."
    assert any(cause in words(report) for cause in words_of_cause)
    assert line in code_of(report)


@tf.custom_gradient
def dense_with_a_transpose_too_many(x, w):
    return x @ w, lambda dy: (dy @ tf.transpose(w), tf.transpose(dy) @ x)


@tf.custom_gradient
def dense_swapped(x, w):
    return x @ w, lambda dy: (tf.transpose(x) @ dy, dy @ tf.transpose(w))


@pytest.mark.parametrize(
    ("rule", "sizes", "text", "line"),
    [
        (
            dense_with_a_transpose_too_many,
            (3, 4, 2),
            "Transpose this gradient",
            "tf.transpose(dy) @ x)",
        ),
        (
            dense_with_a_transpose_too_many,
            (3, 4, 3),
            "Transpose this gradient",
            "tf.transpose(dy) @ x)",
        ),
        (dense_swapped, (3, 4, 2), "`w` has that shape", "(dy @ tf.transpose(w), tf.transpose(x)"),
        (dense_swapped, (3, 4, 3), "`w` has that shape", "(dy @ tf.transpose(w), tf.transpose(x)"),
    ],
)
def test_gradients_of_other_shapes_are_transposed_or_swapped(rule, sizes, text, line):
    rng = np.random.default_rng(1)
    report = tf.check_gradients(rule, rng.normal(size=sizes[:2]), rng.normal(size=sizes[1:]))
    assert text in words(report)
    assert line in code_of(report)


def test_a_gradient_of_another_shape_that_is_wrong_too_gets_no_code():
    @tf.custom_gradient
    def dense(x, w):
        return x @ w, lambda dy: (2 * dy @ tf.transpose(w), tf.transpose(dy) @ x)

    report = tf.check_gradients(dense, MATRIX, MATRIX.T)
    assert "Transpose this gradient." in words(report)
    assert all(finding.code is None for finding in report.findings)


def test_a_gradient_in_a_list_is_corrected_inside_it():
    @tf.custom_gradient
    def half_square(x):
        return x**2 / 2.0, lambda dy: [[dy]]

    code = code_of(tf.check_gradients(half_square, V, order=1))
    assert "lambda dy: [[dy * x]]" in code


@pytest.mark.parametrize("digits", ["6.28", "1.128", "0.7071", "0.3989"])
def test_constants_are_named_as_the_code_has_them(digits):
    exact = {"6.28": 2.0 * np.pi, "1.128": 2.0 / np.pi**0.5, "0.7071": 0.5**0.5}
    factor = exact.get(digits, (2.0 * np.pi) ** -0.5)
    space = defined(
        "@tf.custom_gradient\n"
        "def scaled(x):\n"
        f"    return {factor!r} * tf.sin(x), lambda dy: dy * {digits} * tf.cos(x)\n",
        "scaled",
        tf=tf,
    )
    report = tf.check_gradients(space, V, order=1)
    assert f"meant to be {'1 / ' * (factor < 1.0)}" in words(report)
    assert f"= {factor:.9g}?" in words(report)
    assert f"dy * {digits} *" not in code_of(report)
    assert tf.check_gradients(defined(code_of(report), "scaled"), V).ok


def test_a_value_that_the_function_takes_from_a_tensor_is_named_and_recorded():
    @tf.custom_gradient
    def sine(x):
        numbers = np.cos(x.numpy())
        return tf.sin(x), lambda dy: dy * numbers

    report = tf.check_gradients(sine, V)
    assert rows(report, 2)[0].verdict == "detached"
    assert ": `numbers = np.cos(x.numpy())`)" in words(report)
    assert "tf.cos(x)" in code_of(report)


def test_numpy_functions_of_constants_keep_the_precision_of_float64():
    @tf.custom_gradient
    def erf(x):
        def grad(dy):
            return dy * 2 / np.sqrt(np.pi) * np.exp(-(x.numpy() ** 2))

        return tf.math.erf(x), grad

    code = code_of(tf.check_gradients(erf, np.array(0.2)))
    assert "np.sqrt(np.pi) * tf.exp(-x**2)" in code
    gradient = float(tf.grad(defined(code, "erf"))(np.array(0.2)))
    assert gradient == pytest.approx(2 / np.sqrt(np.pi) * np.exp(-0.04), rel=1e-15)


def test_a_quotient_of_exponentials_that_overflows_is_written_as_tanh():
    @tf.custom_gradient
    def log_cosh(x):
        def grad(dy):
            return dy * (tf.exp(x) - tf.exp(-x)) / (tf.exp(x) + tf.exp(-x))

        return tf.abs(x) + tf.math.log1p(tf.exp(-2.0 * tf.abs(x))), grad

    report = tf.check_gradients(log_cosh, np.array([0.3, 800.0]))
    text = words(report)
    assert "with respect to x is NaN, but " in text
    assert "`exp` of 800 overflows (test_corrections.py:" in text
    assert ": `tf.exp(x)`); -inf / inf is NaN" in text or ": `tf.exp(x)`); inf / inf is NaN" in text
    assert "dy * tf.tanh(x)" in code_of(report)


def test_reports_say_what_values_are_along_and_what_order_2_is_compared_with():
    @tf.custom_gradient
    def square(x):
        return x**2, lambda dy: dy * 3.0 * x

    text = words(tf.check_gradients(square, V))
    assert "Values are for one random direction of each argument and one random upstream" in text
    assert "Because the gradient of order 1 is wrong, `ok` at order 2 means only" in text
    assert "random" not in words(tf.check_gradients(square, 2.0))


# Numbers that stand in the function, and other sizes ---------------------------------------------


@tf.custom_gradient
def attention_score(q, k):
    d = 4.0

    def grad(dy):
        return dy @ k, tf.transpose(dy) @ q / tf.sqrt(d)

    return q @ tf.transpose(k) / tf.sqrt(d), grad


@tf.custom_gradient
def attention_score_by_shape(q, k):
    def grad(dy):
        return dy @ k, tf.transpose(dy) @ q / q.shape[-1] ** 0.5

    return q @ tf.transpose(k) / q.shape[-1] ** 0.5, grad


@tf.custom_gradient
def mean_square(pred, target):
    d = pred - target
    return tf.reduce_mean(d**2), lambda dy: (dy * d, -dy * d)


@tf.custom_gradient
def mean_loss(logits, weight):
    n = logits.shape[0]
    return tf.reduce_sum(weight * logits**2) / n, lambda dy: (
        dy * 2.0 * weight * logits,
        dy * logits**2 / n,
    )


@tf.custom_gradient
def phase(z):
    return tf.exp(1.0j * 0.7) * z, lambda dy: dy * tf.exp(1.0j * 0.7)


@tf.custom_gradient
def squared_modulus(z):
    return tf.math.real(z * tf.math.conj(z)), lambda dy: tf.cast(dy, tf.complex128) * z


def normal(*shape):
    return np.random.default_rng(1).normal(size=shape)


SIZES = {
    "as many rows as the divisor": (
        attention_score, (normal(2, 4), normal(3, 4)), "return dy @ k / tf.sqrt(d), "
    ),
    "other rows": (attention_score, (normal(5, 4), normal(3, 4)), "return dy @ k / tf.sqrt(d), "),
    "no mean": (
        attention_score_by_shape, (normal(4, 16), normal(3, 16)),
        "return dy @ k / q.shape[-1]**0.5, ",
    ),
    "a power and a mean": (
        mean_square, (normal(6), normal(6) + 1.0),
        "(2.0 * dy * d / pred.shape[0], -dy * 2.0 * d / target.shape[0])",
    ),
    "a name": (mean_loss, (normal(4, 3), normal(4, 3) + 1.0), "(dy * 2.0 * weight * logits / n, "),
    "a factor without its conjugate": (
        phase, (normal(2) + 1.0j,), "lambda dy: dy * tf.math.conj(tf.exp(1j * 0.7))"
    ),
    "a factor 2 of two elements": (
        squared_modulus, (normal(2) + 1.0j,), "2.0 * tf.cast(dy, tf.complex128) * z"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_code_is_right_at_other_sizes(name):
    """The number stands in the function, or is the size of a named axis."""
    function, args, line = SIZES[name]
    report = tf.check_gradients(function, *args)
    assert line in code_of(report)
    assert "where a mean over" not in words(report)
    corrected = defined(code_of(report), function.__name__)
    longer = [np.concatenate([arg, arg + 0.5, arg - 0.3]) for arg in args]
    assert tf.check_gradients(corrected, *longer).ok


TAU, COUNT, SCALE, POWER = 0.25, 3, 1.7, 3


@tf.custom_gradient
def tempered(x, temperature=0.5):
    def grad(dy):
        return tf.vjp(tf.nn.softmax, x / temperature)[1](dy)[0]

    return tf.nn.softmax(x / temperature), grad


@tf.custom_gradient
def scaled(x):
    return tf.reduce_sum(x**2) / (2 * SCALE**2), lambda dy: dy * x / SCALE


@tf.custom_gradient
def shared(x):
    return x**2 / TAU / COUNT, lambda dy: dy * 2 * x


@tf.custom_gradient
def power(x):
    return x**POWER, lambda dy: dy * x ** (POWER - 1)


@pytest.mark.parametrize("function", [tempered, scaled, shared])
def test_no_constant_stands_for_named_numbers(function):
    """The factor that is missing is 1 / temperature, 1 / SCALE or 1 / (TAU * COUNT)."""
    code = code_of(tf.check_gradients(function, V))
    assert "vjp(lambda x: " in code
    assert not re.search(r"\d\.0 \* |/ \d+\.0", code)


@tf.custom_gradient
def hard_swish(x):
    return x * tf.nn.relu6(
        x + 3
    ) / 6, lambda dy: dy * tf.where(x < -3, 0.0, tf.where(x > 3, 1.0, (2 * x + 3) / 3))


@tf.custom_gradient
def elu(x):
    return tf.nn.elu(x), lambda dy: 2 * dy * tf.where(x > 0, 0.5, tf.exp(x))


@tf.custom_gradient
def cubed_modulus(x):
    return tf.abs(x) ** 3, lambda dy: dy * x**2


@tf.custom_gradient
def hinge(u, v):
    d = tf.reduce_sum((u - v) ** 2, axis=-1)

    def grad(dy):
        m = tf.cast(d < 2.0, u.dtype)[:, None]
        return -dy * m * (u - v) / u.shape[0], dy * m * (u - v) / u.shape[0]

    return tf.reduce_mean(tf.nn.relu(2.0 - d)), grad


PARTS = {
    hard_swish: (np.array([-2.0, -1.0, 0.5, 1.0, 2.0]),),
    elu: (np.array([-0.3, -0.5, -0.7]),),
    cubed_modulus: (np.array([0.3, 0.5]),),
    hinge: tuple(np.random.default_rng(0).normal(size=(2, 4, 2))),
}


@pytest.mark.parametrize("function", PARTS)
def test_code_that_is_right_for_a_part_of_the_values_is_not_offered(function):
    """A factor that one branch lacks is wrong for the others, which the arguments do not reach."""
    code = code_of(tf.check_gradients(function, *PARTS[function]))
    assert "vjp(lambda " in code
    corrected = defined(code, function.__name__)
    others = [np.concatenate([4.1 * arg, -1.3 * arg, 0.2 * arg]) for arg in PARTS[function]]
    assert tf.check_gradients(corrected, *others, order=1).ok


DATA = np.array([0.3, -1.1, 2.0, 0.7])
SPEED = 1.0


@tf.custom_gradient
def normal_loss(mean, log_sigma):
    r = (DATA - mean) / tf.exp(log_sigma)
    loss = tf.reduce_sum(0.5 * r**2 + log_sigma)
    return loss, lambda dy: (
        -dy * tf.reduce_sum(r) / tf.exp(log_sigma), -dy * tf.reduce_sum(r**2)
    )  # fmt: skip


@tf.custom_gradient
def kinetic_energy(m, gamma):
    energy = (gamma - 1) * m * SPEED**2
    return energy, lambda dy: (dy * gamma * SPEED**2, dy * m * SPEED**2)


@pytest.mark.parametrize(
    ("function", "args", "term", "others"),
    [
        (normal_loss, (0.4, -0.2), "lacks the term `dy * 4`", {"DATA": np.append(DATA, 1.3)}),
        (kinetic_energy, (V, V + 2.0), "has the extra term `dy`", {"SPEED": 2.0}),
    ],
)
def test_a_number_that_is_a_captured_size_or_value_is_not_offered(function, args, term, others):
    report = tf.check_gradients(function, *args)
    assert term in words(report)
    assert "right for these arguments, but wrong in a trial with" in words(report)
    corrected = defined(code_of(report), function.__name__, **others)
    assert tf.check_gradients(corrected, *args).ok


@tf.custom_gradient
def difference(x):
    return x**2 * (SCALE - COUNT), lambda dy: dy * 2 * x


def test_the_reciprocal_of_an_expression_has_parentheses():
    said = words(tf.check_gradients(difference, V))
    assert "The value of 1 / (SCALE - COUNT) is -0.769231." in said


def test_a_number_that_is_a_size_by_chance_is_not_offered():
    """The value is divided by 3.0, whatever the number of rows."""

    @tf.custom_gradient
    def third(x):
        return tf.reduce_mean(tf.sin(x)), lambda dy: dy * tf.cos(x) / 3.0

    code = code_of(tf.check_gradients(third, normal(6)))
    corrected = defined(code, "third")
    assert tf.check_gradients(corrected, normal(8)).ok


@tf.custom_gradient
def log_cosh_of_exponentials(x):
    e = tf.exp(x)
    f = tf.exp(-x)

    def grad(dy):
        return dy * (e - f) / (e + f)

    return tf.math.log((e + f) / 2.0), grad


@tf.custom_gradient
def log_cosh_of_magnitudes(x):
    def grad(dy):
        return dy * (tf.exp(x) - tf.exp(-x)) / (tf.exp(x) + tf.exp(-x))

    a = tf.abs(x)
    return a + tf.math.log1p(tf.exp(-2.0 * a)) - np.log(2.0), grad


@pytest.mark.parametrize("function", [log_cosh_of_exponentials, log_cosh_of_magnitudes])
def test_hyperbolic_functions_stay_finite_and_are_right_at_zero(function):
    report = tf.check_gradients(function, np.array([0.5, 95.0], np.float32))
    code = code_of(report)
    assert "dy * tf.tanh(x)" in code
    assert "e = " not in code
    assert "in float32, right in float64: expected" in words(report)
    assert "symmetric" not in words(report)
    corrected = defined(code, function.__name__)
    grad = tf.grad(tf.grad(corrected))
    assert float(grad(0.0)) == 1.0
    np.testing.assert_allclose(tf.grad(corrected)(-95.0), -1.0)
    np.testing.assert_allclose(corrected(-95.0), 95.0 - np.log(2.0), rtol=1e-6)


def test_an_alias_of_an_argument_is_dropped_and_numpy_becomes_operations():
    @tf.custom_gradient
    def gelu(x):
        xs = x.numpy()

        def grad(dy):
            s = 1.0 / (1.0 + np.exp(-1.702 * xs))
            return dy * (s + 1.702 * xs * s * (1.0 - s))

        return x * tf.sigmoid(1.702 * x), grad

    code = code_of(tf.check_gradients(gelu, V))
    assert "xs" not in code
    assert "s = 1.0 / (1.0 + tf.exp(-1.702 * x))" in code
    assert tf.check_gradients(defined(code, "gelu"), V).ok


def test_lines_that_are_not_read_any_more_are_dropped_and_small_numbers_are_as_written():
    @tf.custom_gradient
    def normalized(x):
        r = 1.0 / tf.sqrt(tf.reduce_mean(x**2) + 1e-6)

        def grad(dy):
            g = dy * r
            return 1.0 * g

        return x * r, grad

    code = code_of(tf.check_gradients(normalized, V))
    assert "g = " not in code
    assert "1e-6)" in code


def test_a_size_is_told_from_another_one_by_longer_axes():
    """The matrix fits one number of rows only; there are 4 of them, and 8 elements."""
    weights = tf.constant(normal(4, 4))

    @tf.custom_gradient
    def mean_of_squares(x):
        y = weights @ x
        return tf.reduce_mean(y**2), lambda dy: dy * tf.transpose(weights) @ y

    code = code_of(tf.check_gradients(mean_of_squares, normal(4, 2)))
    corrected = defined(code, "mean_of_squares", weights=weights)
    assert tf.check_gradients(corrected, normal(4, 3)).ok


SIGNS = np.array([1.0, -1.0, 1.0, -1.0])
LABELS = np.eye(3)[[0, 2, 1, 0]]


@tf.custom_gradient
def support_vectors(w, x):
    margins = SIGNS * tf.linalg.matvec(x, w)

    def grad(dy):
        inside = SIGNS * tf.cast(margins < 1.0, x.dtype)
        return -dy * tf.linalg.matvec(x, inside, transpose_a=True), -dy * inside[:, None] * w

    return tf.reduce_mean(tf.nn.relu(1.0 - margins)), grad


@tf.custom_gradient
def mean_cross_entropy(w, x):
    z = x @ w
    slopes = tf.nn.softmax(z) - LABELS[:, :2]

    def grad(dy):
        return dy * tf.transpose(x) @ slopes, dy * slopes @ tf.transpose(w)

    losses = tf.reduce_logsumexp(z, -1) - tf.reduce_sum(LABELS[:, :2] * z, -1)
    return tf.reduce_mean(losses), grad


@pytest.mark.parametrize(
    ("f", "w"), [(support_vectors, normal(2)), (mean_cross_entropy, normal(2, 2))]
)
def test_no_size_of_an_argument_stands_for_that_of_captured_labels(f, w):
    """There are 4 labels, 4 samples, and 4 elements of w or twice its 2."""
    for finding in tf.check_gradients(f, w, normal(4, 2)).findings:
        if finding.code:
            corrected = defined(finding.code, f.__name__, SIGNS=SIGNS, LABELS=LABELS)
            longer = np.concatenate([w, w[:1] + 0.5])
            assert tf.check_gradients(corrected, longer, normal(4, 3)).ok, finding.code


# Factors, terms and signs --------------------------------------------------------------------

A = np.array([[2.0, -0.4, 0.7], [0.3, 1.5, -0.2], [0.1, 0.6, 1.8]])
S = 1.3


@tf.custom_gradient
def form(x):
    return tf.tensordot(x, A @ x, 1), lambda dy: dy * (A @ x)


@tf.custom_gradient
def form_of_matrix(x, A):
    def grad(dy):
        return 2.0 * dy * tf.linalg.matvec(A, x), dy * tf.tensordot(x, x, 0)

    return tf.reduce_sum(x * tf.linalg.matvec(A, x)), grad


@tf.custom_gradient
def density(x):
    p = tf.exp(-(x**2) / (2.0 * S**2)) / (S * np.sqrt(2.0 * np.pi))
    return p, lambda dy: dy * p


@tf.custom_gradient
def sine_and_cosine(x):
    s, c = tf.sin(x), tf.cos(x)
    return (s, c), lambda ds, dc: ds * c + dc * s


@tf.custom_gradient
def two_sine_and_cube(x):
    return (tf.sin(2.0 * x), x**3), lambda ds, dc: ds * tf.cos(2.0 * x) + 3.0 * dc * x**2


@tf.custom_gradient
def solution(A, b):
    x = tf.linalg.solve(A, b)

    def grad(dx):
        db = tf.linalg.solve(A, dx)
        return -db @ tf.transpose(x), db

    return x, grad


@tf.custom_gradient
def cross_entropy(z):
    p = tf.nn.softmax(z)
    y = -tf.reduce_mean(tf.reduce_sum(LABELS * tf.nn.log_softmax(z), axis=1))
    return y, lambda dy: dy * (p - LABELS)


@pytest.mark.parametrize(
    ("f", "args", "line"),
    [
        (form, (V,), "dy * ((A + tf.transpose(A)) @ x)"),
        (form_of_matrix, (V, A), "dy * tf.linalg.matvec(A + tf.transpose(A), x), dy * "),
        (density, (V,), "lambda dy: dy * p * -x / S**2"),
        (sine_and_cosine, (V,), "lambda ds, dc: ds * c - dc * s"),
        (two_sine_and_cube, (V,), "2.0 * ds * tf.cos(2.0 * x) + 3.0 * dc * x**2"),
        (solution, (A, A[:, :2]), "db = tf.linalg.solve(tf.transpose(A), dx)"),
        (cross_entropy, (A[[0, 1, 2, 0]],), "dy * (p - LABELS) / z.shape[0]"),
    ],
)
def test_a_factor_a_term_or_a_sign_is_corrected_where_it_is_wrong(f, args, line):
    code = code_of(tf.check_gradients(f, *args))
    assert line in code
    assert "vjp" not in code
    corrected = defined(code, f.__name__, A=A, S=S, LABELS=LABELS)
    assert tf.check_gradients(corrected, *args).ok


@tf.custom_gradient
def norm_and_angle(x, y):
    r = tf.sqrt(x**2 + y**2)

    def grad(dr, dt):
        return dr * x / r - dt * y / r, dr * y / r + dt * x / r

    return (r, tf.atan2(y, x)), grad


def test_a_gradient_of_several_outputs_is_replaced_as_a_whole():
    code = code_of(tf.check_gradients(norm_and_angle, V, V[::-1] + 0.3))
    assert tf.check_gradients(defined(code, "norm_and_angle"), V, V[::-1] + 0.3).ok


def test_corrected_code_keeps_the_list_of_the_gradients_of_variables():
    w = tf.Variable(V)

    @tf.custom_gradient
    def scaled(x):
        def grad(dy, variables=None):
            return dy * w, [2.0 * dy * x]

        return x * w, grad

    code = code_of(tf.check_gradients(scaled, V))
    assert "return dy * w, [dy * x]" in code
    assert tf.check_gradients(defined(code, "scaled", w=w), V).ok


@tf.custom_gradient
def sine_of_array(x):
    x = np.asarray(x)
    return tf.sin(x), lambda dy: dy * tf.cos(x)


def test_corrected_code_assigns_no_name_to_itself():
    code = code_of(tf.check_gradients(sine_of_array, tf.constant(V)))
    assert "x = x" not in code
    assert tf.check_gradients(defined(code, "sine_of_array"), V, order=3).ok


@tf.custom_gradient
def sinc(x, y):
    z = tf.sin(x + y) / (x + y)
    return z, lambda dz: (dz * tf.cos(x + y) / (x + y), dz * (tf.cos(x + y) - z) / (x + y))


@tf.custom_gradient
def product(x, y):
    z = (x + y) * tf.sin(x + y)
    return z, lambda dz: (
        (x + y) * tf.cos(x + y) * dz,
        dz * tf.sin(x + y) + dz * (x + y) * tf.cos(x + y),
    )


@pytest.mark.parametrize(("f", "which"), [(sinc, "second"), (product, "first")])
def test_of_equal_expressions_in_a_line_the_wrong_one_is_named(f, which):
    report = tf.check_gradients(f, np.abs(V), np.abs(V) + 1.0)
    assert f"The rule treats the {which} `x + y` (" in words(report)


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (
            lambda x: (2.718**x, lambda dy: dy * tf.exp(x)),
            "Is the number 2.718 meant to be np.e = 2.71828183?",
        ),
        (
            lambda x: (
                tf.math.erf(x / 1.4142),
                lambda dy: dy * np.sqrt(2.0 / np.pi) * tf.exp(-(x**2) / 2.0),
            ),
            "Is the number 1.4142 meant to be 2.0**0.5 = 1.41421356?",
        ),
    ],
)
def test_a_rounded_constant_of_the_function_is_named(f, said):
    report = tf.check_gradients(tf.custom_gradient(f), np.array([0.7, 1.2, 2.0]))
    assert f"{said} This would explain the error." in words(report)


def test_a_sentence_about_random_numbers_is_printed_once():
    @tf.custom_gradient
    def noisy(x):
        n = np.random.normal(size=x.shape)
        return x * n, lambda dy: dy * n

    text = words(tf.check_gradients(noisy, tf.constant(V)))
    assert text.count("the function draws random numbers") == 1


# Terms, axes and matrices -----------------------------------------------------------------------

STIFFNESS = np.array([[2.0, -1.0, 0.3], [0.5, 1.5, -0.7], [1.1, 0.2, 0.9]])


@tf.custom_gradient
def sum_of_products(x):
    return tf.reduce_sum(tf.sin(x) * x), lambda dy: dy * tf.cos(x) * x


@tf.custom_gradient
def yukawa(r):
    return tf.exp(-r) / r, lambda dy: -dy * tf.exp(-r) / r


@tf.custom_gradient
def boltzmann(energies):
    p = tf.nn.softmax(-energies, axis=1)
    return p, lambda dy: -p * (dy - tf.reduce_sum(p * dy, axis=0, keepdims=True))


@tf.custom_gradient
def rayleigh(x):
    n = tf.reduce_sum(x * x)
    q = tf.reduce_sum(x * tf.linalg.matvec(STIFFNESS, x)) / n
    return q, lambda dy: dy * 2 * (tf.linalg.matvec(STIFFNESS, x) - q * x) / n


@tf.custom_gradient
def moment(x):
    return tf.reduce_mean(x**POWER), lambda dy: dy * x ** (POWER - 1)


@pytest.mark.parametrize(
    ("f", "x", "said", "line"),
    [
        (
            *(power, V, "The value of 1 / POWER is 0.333333."),
            "lambda dy: dy * x**(POWER - 1) * POWER",
        ),
        (
            moment,
            np.linspace(0.5, 1.5, 5),
            "as if a factor 3 and a division by 5 were missing (a mean over 5 elements).",
            "POWER * (dy * x**(POWER - 1)) / x.shape[0]",
        ),
        (
            *(
                sum_of_products,
                V,
                "It lacks the term `dy * (tf.sin(x))`",
            ),
            "lambda dy: dy * tf.cos(x) * x + dy * tf.sin(x)",
        ),
        (
            *(yukawa, abs(V), "It lacks the term `-dy * output / r`"),
            "lambda dy: -dy * tf.exp(-r) / r - dy * (tf.exp(-r) / r) / r",
        ),
        (
            *(boltzmann, np.outer(V, V) + STIFFNESS, "The rule has axis 0 where it needs axis 1."),
            "tf.reduce_sum(p * dy, axis=1, keepdims=True)",
        ),
        (
            *(rayleigh, V, "The gradient is right along x, and wrong in other directions."),
            "tf.linalg.matvec((STIFFNESS + tf.transpose(STIFFNESS)) / 2.0, x)",
        ),
    ],
)
def test_the_term_the_axis_or_the_matrix_is_corrected(f, x, said, line):
    report = tf.check_gradients(f, x)
    assert said in words(report)
    code = code_of(report)
    assert line in code
    name = code.split("def ")[1].partition("(")[0]
    assert tf.check_gradients(defined(code, name, **globals()), x).ok


@tf.custom_gradient
def kepler(mean, eccentricity):
    """The rule reads what NumPy computed; the body takes Python numbers, too."""
    start, factor = np.asarray(mean), np.asarray(eccentricity)
    angle = start.copy()
    for _ in range(60):
        angle = angle - (angle - factor * np.sin(angle) - start) / (1 - factor * np.cos(angle))
    result = tf.constant(angle)

    def grad(dy):
        slope = 1.0 - eccentricity * tf.cos(result)
        return dy / slope, tf.reduce_sum(dy * tf.sin(result) / slope)

    return result, grad


@tf.custom_gradient
def square_root(a):
    y = tf.constant(np.sqrt(np.asarray(a)))
    return y, lambda dy: dy / (y + y)


@pytest.mark.parametrize(
    ("f", "args", "line"),
    [
        (kepler, (np.array([0.3, 1.0, 2.0]), 0.4), "result = kepler(mean, eccentricity)"),
        (square_root, (V**2,), "return y, lambda dy: dy / (square_root(a) + square_root(a))"),
    ],
)
def test_a_rule_that_reads_an_output_computed_by_numpy_calls_its_function(f, args, line):
    report = tf.check_gradients(f, *args, order=3)
    assert f"In the rule, get the output of `{f.__name__}` by calling it." in words(report)
    assert line in code_of(report)
    assert "np.asarray" in code_of(report)
    corrected = defined(code_of(report), f.__name__)
    assert tf.check_gradients(corrected, *args, order=3).ok


@tf.custom_gradient
def bilinear(h, w, t):
    def grad(dy):
        dy = dy[:, None]
        by_h = dy * tf.matmul(t, w)
        return by_h, tf.matmul(dy * h, t, transpose_a=True), dy * tf.matmul(h, w)

    return tf.reduce_sum(tf.matmul(h, w) * t, axis=-1), grad


@tf.custom_gradient
def tilted(x):
    return x**3, lambda dy: 2.0 * dy * x**2 + 0.3 * dy


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    ("f", "args", "line"),
    [
        (bilinear, (A, A + 0.3, 2.0 * A), "h)[1](upstream_dy)[0], tf.matmul(dy * h"),
        (tilted, (V,), "tf.vjp(lambda x: x**3, x)[1](dy)[0]"),
    ],
)
def test_code_is_offered_for_a_rule_that_assigns_dy_and_for_every_element(f, args, line, full):
    code = code_of(tf.check_gradients(f, *args, full=full))
    assert line in code
    assert tf.check_gradients(defined(code, f.__name__, **globals()), *args).ok


@tf.custom_gradient
def cosine(a, b):
    na = tf.norm(a); nb = tf.norm(b)  # fmt: skip  # noqa: E702
    c = tf.reduce_sum(a * b) / (na * nb)
    return c, lambda dy: (dy * (b / (na * nb) - c * a / na**2), dy * a / (na * nb))


def test_a_variable_is_named_if_its_line_has_two_statements():
    text = words(tf.check_gradients(cosine, V, V[::-1] + 0.3))
    assert "The rule treats `nb` (test_corrections.py:" in text


@tf.custom_gradient
def singular_values(a):
    u, s, vt = np.linalg.svd(np.asarray(a), full_matrices=False)
    return tf.constant(s.sum()), lambda dy: dy * tf.constant(u @ vt)


@tf.custom_gradient
def gated_by_numpy(x):
    s = tf.sigmoid(x)
    c = s.numpy()
    return x * s, lambda dy: dy * (c + x * c * (1 - c))


@pytest.mark.parametrize("function", [singular_values, gated_by_numpy])
def test_a_call_of_the_function_is_advised_only_for_its_output(function):
    text = words(tf.check_gradients(function, np.array([[1.0, 2.0], [0.3, -1.0], [1.5, 0.2]])))
    assert "Compute with the tensors themselves" in text
    assert f"Call `{function.__name__}`" not in text


@tf.custom_gradient
def spring(k, force):
    x = np.float64(0.1)
    for _ in range(60):
        x = x - (float(k) * x + x**3 - float(force)) / (float(k) + 3 * x**2)
    x = tf.constant(x)
    slope = k + 3 * x**2
    return x, lambda dy: (-dy * x / slope, dy / slope)


def test_each_value_that_is_taken_on_a_line_is_named():
    text = words(tf.check_gradients(spring, np.float64(2.0), np.float64(1.5)))
    assert "taken from tensors by `float(k)` and `float(force)` (" in text
    assert (
        "the gradient of order 2 with respect to force is None, and the gradient with respect to k "
        "lacks a part."
    ) in text


@tf.custom_gradient
def capturing_rule(x):
    s = tf.sigmoid(x)

    def grad(dy):
        @tf.custom_gradient
        def g(dy):
            return dy * s * (1 - s), lambda ddy: ddy * s * (1 - s)

        return g(dy)

    return s, grad


def test_the_call_that_a_new_argument_needs_is_shown():
    report = tf.check_gradients(capturing_rule, V)
    assert "Return a gradient for s, too, and call `g(dy, s)`." in words(report)
    assert "def g(dy, s):" in code_of(report)


@tf.custom_gradient
def softmax_of_two_axes(z):
    p = tf.nn.softmax(z, axis=-1)

    def grad(dy):
        p = tf.nn.softmax(z, axis=0)
        scaled = dy * p
        return scaled - p * tf.reduce_sum(scaled * 3.0, axis=-1, keepdims=True)

    return p, grad


def test_corrected_code_has_no_dead_lines():
    code = code_of(tf.check_gradients(softmax_of_two_axes, np.stack([V, V + 1.0, V**2])))
    assert "vjp(lambda z: " in code
    assert "axis=0" not in code
    assert "scaled" not in code


@tf.custom_gradient
def gelu_without_root(x):
    c = 0.5 * (1 + tf.math.erf(x / np.sqrt(2.0)))
    return x * c, lambda dy: dy * (c + x * tf.exp(-x * x / 2) / np.sqrt(np.pi))


def test_the_rule_of_a_compiled_function_is_explained():
    plain, compiled = (
        tf.check_gradients(f, V) for f in (gelu_without_root, tf.function(gelu_without_root))
    )
    assert code_of(compiled) == code_of(plain)
    assert compiled.findings == plain.findings
