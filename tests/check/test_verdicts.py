"""check_gradients at points where rounding, zeros, kinks and scales deceive: right is right."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support import check_faults, check_runs
from tests.support.check_faults import ruled
from tests.support.right_rules import least_squares

log_softmax, softmax = tf.nn.log_softmax, tf.nn.softmax


def with_rule(f, rule):
    """A custom gradient of `f` with ``rule(x, dy)``."""

    @tf.custom_gradient
    def op(x):
        return f(x), lambda dy: rule(x, dy)

    return op


# Right ---------------------------------------------------------------------------------------

SATURATED = np.array([0.0, -40.0, -52.0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "f",
    [
        pytest.param(log_softmax, id="log softmax"),
        pytest.param(ruled(log_softmax), id="its rule written out"),
        pytest.param(lambda x: log_softmax(x)[0], id="one element"),
        pytest.param(lambda x: x - tf.reduce_logsumexp(x), id="by logsumexp"),
        pytest.param(lambda x: -tf.reduce_sum(softmax(x) * log_softmax(x)), id="entropy"),
    ],
)
def test_saturated_softmax_is_right(f, dtype):
    """The derivative 4e-18 is the rounding of terms of size 1."""
    report = tf.check_gradients(f, SATURATED.astype(dtype))
    assert report.ok, report
    assert {row.verdict for row in report.rows if row.order == 1} == {"ok"}, report


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sigma", [1.0, 10.0, 30.0, 100.0, 300.0])
def test_losses_of_confident_logits_are_right(sigma, dtype):
    rng = np.random.default_rng(int(sigma))
    x, q = [(sigma * rng.normal(size=(3, 5))).astype(dtype) for _ in range(2)]
    labels = np.eye(5)[[0, 2, 4]].astype(dtype)
    losses = (
        lambda x: -tf.reduce_sum(labels * log_softmax(x)),
        lambda x: tf.nn.softmax_cross_entropy_with_logits(labels, x),
        lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(np.array([0, 2, 4]), x),
        lambda x: -tf.reduce_sum(softmax(x) * log_softmax(x), -1),
        lambda x: tf.reduce_sum(softmax(x) * (log_softmax(x) - log_softmax(q)), -1),
    )
    for loss in losses:
        report = tf.check_gradients(loss, x)
        assert report.ok, report
        assert tf.check_gradients(ruled(loss), x, order=1).ok


def test_softmax_after_a_solve_is_right():
    rng = np.random.default_rng(0)
    m = rng.normal(size=(4, 4)) + 4 * np.eye(4)
    for sigma in (3.0, 300.0):
        b = sigma * rng.normal(size=(4, 1))
        assert tf.check_gradients(lambda m, b: softmax(tf.linalg.solve(m, b), axis=0), m, b).ok


def test_a_random_start_is_no_noise():
    """An exact zero of the solution is found as 1e-25 or so, another one each time."""
    rng, d = np.random.default_rng(0), np.array([2.0, 3.0, 4.0])

    @tf.custom_gradient
    def solve(b):
        z = rng.normal(size=3)
        for _ in range(200):
            z = z - 0.25 * (d * z - b.numpy())
        return tf.constant(z), lambda dy: dy / tf.constant(d)

    report = tf.check_gradients(solve, np.array([1.0, 0.0, 2.0]), order=1)
    assert report.ok, report


def at(*rows):
    return np.array(rows)


MIXED = at([3e-3, -1.3e-9, -2.2], [4.9e-5, -6.5e3, 1.9e3]), at([3.6e-2, 4.5e-10, -4.8e-8])
REMAINDERS = {
    "many steps": (at([3.1e-10], [7.4e-7]), at(1.2e-9, 1.5e-11, 3e-3)),
    "up to the last digit": (
        at([3.9e-5, 2e-7, 0.09], [1.7e-5, 63.6, 3.7e-9]),
        at(1.9e-12, 1.7e-6, 1.7e3),
    ),
}


@pytest.mark.parametrize("rule", [lambda f: f, ruled], ids=["library", "rule"])
@pytest.mark.parametrize(
    ("f", "args"),
    [
        pytest.param(tf.minimum, MIXED, id="kinks nearer than the steps"),
        *[pytest.param(tf.math.floormod, case, id=name) for name, case in REMAINDERS.items()],
        pytest.param(lambda x: tf.sin(x**4), (at(1e3, 2e3),), id="oscillations between steps"),
    ],
)
def test_what_no_difference_can_see_is_not_called_wrong(f, args, rule):
    """Differences lead over many branches, or periods: the slope there is no derivative."""
    report = tf.check_gradients(rule(f), *args, order=2)
    assert report.ok, report


def test_a_wrong_rule_is_found_within_the_branches_of_the_point():
    """Where differences have to be smaller than usual."""

    @tf.custom_gradient
    def remainder(x):
        return tf.math.floormod(x, 1e-3), lambda dy: 1.5 * dy

    report = tf.check_gradients(remainder, at(0.1234567, 2.7182818), order=1)
    assert report.first_false_order == 1, report
    false = next(row for row in report.rows if row.false)
    assert false.value == pytest.approx(1.5 * false.reference, rel=1e-5)


def test_ties_of_elements_are_no_limits_of_their_values():
    """At ties the gradient is one of the neighbours', and may leave the slopes along an element."""
    for f, x in (
        (tf.sort, np.zeros(4)),
        (lambda x: tf.nn.max_pool(x, 2, 1, "VALID"), np.zeros((1, 3, 3, 1))),
    ):
        for seed in range(4):
            report = tf.check_gradients(ruled(f), x, order=1, seed=seed)
            assert report.ok, report


def test_kinks_of_several_outputs_have_slopes_of_their_own():
    """Both gradients are 0 at 0; the sum of the outputs, weighted, has slopes of one sign."""
    both = ruled(lambda x: tf.stack([tf.nn.relu(x), tf.nn.relu(-x)]))
    for seed in range(6):
        report = tf.check_gradients(both, 0.0, order=1, seed=seed)
        assert report.ok, report


def test_an_inverse_of_mixed_sizes_is_as_exact_as_its_residual():
    """A complex step through LAPACK loses digits, and so does an inverse."""
    m = at([8.7e-5, 3e-3, 2.4e-9], [-3.2e-3, 2.7e-3, 4.5e-9], [9.4e-3, -11.2, 1.1e4])
    for seed in range(6):
        for f in (tf.linalg.det, tf.linalg.inv):
            report = tf.check_gradients(f, m, order=1, seed=seed)
            assert report.ok, report


def test_a_complex_step_that_lost_its_digits_is_no_reference():
    """Powers of negative numbers leave imaginary parts, in polar coordinates."""
    x = np.array([0.154, -0.0164, 0.051, -0.052], np.float32)
    for f in (lambda x: (((x**3) ** 3) ** 3) ** 3, lambda x: x**81):
        for seed in range(4):
            report = tf.check_gradients(ruled(f), x, order=1, seed=seed)
            assert report.ok, report


def test_second_derivatives_are_symmetric_where_they_have_limits():
    """x log(y) has none at (0, 0); nearby, its second derivatives are symmetric."""
    x, y = np.array([0.0, 0.5, -1.0]), np.array([0.0, 1.5, 0.5])
    report = tf.check_gradients(ruled(tf.math.xlogy), x, y)
    assert report.ok, report
    assert "at a nearby point: ok" in str(report)


@pytest.mark.parametrize(("sigma", "seed"), [(200.0, 11), (200.0, 20), (250.0, 7)])
def test_modes_differ_by_rounding_where_no_transpose_can_be_rounded(sigma, seed):
    """Rounded at random a rule is not linear: forward mode is as exact as reverse mode."""
    rng = np.random.default_rng(seed)
    x, q = [sigma * rng.normal(size=(3, 5)) for _ in range(2)]

    def divergence(x):
        return tf.reduce_sum(softmax(x) * (log_softmax(x) - log_softmax(q.astype(x.dtype))), -1)

    report = tf.check_gradients(ruled(divergence), x.astype(np.float32), order=1, seed=seed)
    assert report.ok, report


def test_random_right_runs():
    """A part of those that ``python -m tests.support.check_runs 10000`` makes."""
    assert check_runs.main(24) == 0


# Exact zeros and digits ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "args"),
    [
        pytest.param(
            lambda p, s: tf.math.log(s * p / tf.reduce_sum(s * p)),
            (np.array([0.5, 0.2, 0.9]), 1.7),
            id="a float64 array and a Python float",
        ),
        pytest.param(
            lambda x: tf.reduce_sum(softmax(x)), (np.random.default_rng(0).normal(size=3),), id="1"
        ),
        pytest.param(
            lambda x: tf.sin(x) ** 2 + tf.cos(x) ** 2,
            (np.random.default_rng(3).normal(size=3),),
            id="sin**2 + cos**2",
        ),
    ],
)
def test_what_does_not_change_is_zero(f, args):
    tf.assert_gradients(f, *args)
    assert {row.verdict for row in tf.check_gradients(f, *args).rows} == {"ok"}


def test_random_functions_that_do_not_change():
    """A part of those that ``python -m tests.support.check_runs zeros 4800`` makes."""
    for seed in range(0, 720, 61):
        name, report = check_runs.run_zero(seed)
        assert report.ok, (seed, name, report)
        assert {row.verdict for row in report.rows} == {"ok"}, (seed, name, report)


@pytest.mark.parametrize("share", [1e-6, 1.0])
def test_zero_is_no_excuse(share):
    """A rule that gives 0 for what is not, or something where the derivative is 0, is false."""

    def of_two(f, by_x, by_s):
        return tf.custom_gradient(
            lambda x, s: (f(x, s), lambda dy: (dy * by_x(x, s), tf.reduce_sum(dy * by_s(x, s))))
        )

    x, s = np.array([0.5, 0.2, 0.9]), np.array(1.7)
    unchanged = of_two(lambda x, s: x + s - s, lambda x, s: 1.0, lambda x, s: share + 0.0 * x)
    dropped = of_two(lambda x, s: x + share * s, lambda x, s: 1.0, lambda x, s: 0.0 * x)
    for f in (unchanged, dropped):
        report = tf.check_gradients(f, x, s, order=1)
        assert {row.argument for row in report.rows if row.false} == {"s"}, report


def test_rules_that_are_off_by_the_ninth_digit_are_found():
    """A part of those that ``python -m tests.support.check_runs digits 100`` makes."""
    assert check_runs.check_digits(10) == 0


def test_reports_say_to_how_many_digits():
    f = with_rule(tf.sin, lambda x, dy: dy * tf.cos(x))
    text = str(tf.check_gradients(f, np.array(0.7)))
    assert (
        "Order 1 is compared with complex steps (10 digits). Order 2 is compared with central "
        "differences (6 digits). A rule must be linear in dy. Then its derivative with "
        "respect to dy, in a direction v, is what the rule returns for dy = v. Rows `upstream` "
        "compare the two (6 digits)." in " ".join(text.split())
    )
    report = tf.check_gradients(lambda x: tf.sin(tf.cast(x, "float32")), np.float32(0.7), order=1)
    assert "Order 1 is compared with central differences (4 digits)." in str(report)
    off = with_rule(tf.sin, lambda x, dy: dy * tf.cos(x) * (1.0 + 1e-8))
    report = tf.check_gradients(off, np.array(0.7), order=1)
    assert "expected 0.7648421872845, got 0.7648421949329" in " ".join(str(report).split())


# Cost ----------------------------------------------------------------------------------------


def counted(by_numpy, f, rule):
    """A custom gradient, and a list with an entry for each call of it."""
    calls = []

    @tf.custom_gradient
    def op(x):
        calls.append(None)
        y = tf.constant(f(x.numpy())) if by_numpy else f(x)
        return y, lambda dy: rule(x, dy)

    return op, calls


@pytest.mark.parametrize("factor", [1.0 + 1e-8, 1.1, -1.0])
@pytest.mark.parametrize("x", [np.array(0.7), np.array([0.3, 0.7, 1.2]), np.linspace(0.1, 1.9, 99)])
def test_a_wrong_rule_takes_at_most_seventy_evaluations(x, factor):
    for by_numpy in (False, True) if abs(factor - 1.0) > 1e-6 else (False,):
        f, rule = np.sin if by_numpy else tf.sin, lambda x, dy: factor * dy * tf.cos(x)
        op, calls = counted(by_numpy, f, rule)
        assert tf.check_gradients(op, x).first_false_order == 1
        assert len(calls) <= 70
    op, calls = counted(False, tf.sin, lambda x, dy: dy * tf.cos(x))
    assert tf.check_gradients(op, x).ok
    assert len(calls) <= 35


@pytest.mark.parametrize("size", [1, 3, 12])
@pytest.mark.parametrize("factor", [1.1, -1.0, 2.0])
def test_a_wrong_rule_of_a_solver_takes_at_most_sixty_evaluations(size, factor):
    """Both rules are of NumPy, and end the derivatives at order 1, too."""

    def solve(x):
        y = np.zeros_like(x)
        for _ in range(60):
            y = 0.5 * np.cos(y) + x
        return y

    def by_matrix(x):
        return np.linalg.solve(np.diag(x * x + 2.0) + 0.3, np.ones_like(x))

    def pulled(x, dy):
        solution = np.linalg.solve(np.diag(x.numpy() ** 2 + 2.0) + 0.3, dy.numpy())
        return tf.constant(-factor * solution * by_matrix(x.numpy()) * 2.0 * x.numpy())

    x = np.linspace(0.3, 1.2, size)
    for f, rule in (
        (solve, lambda x, dy: factor * dy / (1.0 + 0.5 * np.sin(solve(x.numpy())))),
        (by_matrix, pulled),
    ):
        op, calls = counted(True, f, rule)
        assert tf.check_gradients(op, x).first_false_order == 1
        assert len(calls) <= 60


def test_four_numbers_undecided_take_some_hundred_evaluations():
    x = np.array([1.1, 1.3, 1.7, 2.3])
    for f, point in ((lambda x: tf.sin(1e9 * tf.nn.relu(x)), x), (tf.sort, np.ones(4))):
        calls = []
        report = tf.check_gradients(lambda x, f=f, calls=calls: calls.append(x) or f(x), point)
        assert len(calls) < 500
        assert any(row.verdict in ("kink", "inconclusive") for row in report.rows)


# Wrong ---------------------------------------------------------------------------------------


def test_single_faults_at_whole_numbers():
    """A part of those that ``python -m tests.support.check_faults 1000`` makes."""
    for seed in range(30):
        fault, report = check_faults.run_at_integers(seed)
        assert report.first_false_order == fault.first, (seed, fault.name, report)


WHERE_ZERO = with_rule(tf.sin, lambda x, dy: tf.where(tf.equal(x, 0.0), 2.0, tf.cos(x)) * dy)
WHERE_WHOLE = with_rule(
    tf.square, lambda x, dy: tf.where(tf.equal(x, tf.round(x)), 3.0 * x, 2.0 * x) * dy
)
NEAR_A_KINK = with_rule(
    tf.nn.relu, lambda x, dy: dy * tf.where(x > 0, np.array([1.0, 1.0, 1.7]), 0.0)
)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        pytest.param(with_rule(tf.square, lambda x, dy: 3 * x * dy), 0.0, id="factor at 0"),
        pytest.param(with_rule(tf.square, lambda x, dy: 3 * x * dy), np.zeros(3), id="zeros"),
        pytest.param(with_rule(tf.cos, lambda x, dy: 2 * tf.sin(x) * dy), 0.0, id="maximum"),
        pytest.param(
            with_rule(lambda x: (x - 1) ** 2, lambda x, dy: -2 * (x - 1) * dy), 1.0, id="minimum"
        ),
        pytest.param(with_rule(lambda x: x**3, lambda x, dy: 3 * x * dy), 1.0, id="power at 1"),
        pytest.param(with_rule(tf.square, lambda x, dy: x * x * dy), 2.0, id="power at 2"),
        pytest.param(WHERE_WHOLE, np.array([1.0, 2.5]), id="only where whole"),
        pytest.param(WHERE_ZERO, 0.0, id="only where 0"),
        pytest.param(NEAR_A_KINK, np.array([0.0, -1.0, 2.0]), id="near a kink"),
        pytest.param(
            with_rule(tf.nn.relu, lambda x, dy: 2 * dy * tf.cast(x > 0, x.dtype)), 0.0, id="at one"
        ),
        pytest.param(
            with_rule(tf.abs, lambda x, dy: dy * tf.where(tf.equal(x, 0.0), 5.0, tf.math.sign(x))),
            np.array([0.0, 1.0]),
            id="outside the slopes",
        ),
        pytest.param(
            with_rule(tf.square, lambda x, dy: 2 * x * np.array([1.0, 1.5]) * dy),
            np.array([1e4, 1e-4]),
            id="a small argument",
        ),
        pytest.param(
            with_rule(
                lambda x: x * np.array([1.0, 1e-9]), lambda x, dy: dy * np.array([1.0, 2e-9])
            ),
            np.array([1.3, 1.7]),
            id="a small gradient",
        ),
        pytest.param(
            with_rule(lambda x: 1 + tf.exp(x), lambda x, dy: 0.0 * x * dy), -30.3, id="dropped"
        ),
        pytest.param(
            with_rule(tf.tanh, lambda x, dy: 3 * dy * (1 - tf.tanh(x) ** 2)), 15.3, id="saturated"
        ),
    ],
)
@pytest.mark.parametrize("full", [False, True])
def test_no_hiding_place(f, x, full):
    report = tf.check_gradients(f, np.array(x), order=1, full=full)
    assert report.first_false_order == 1, report
    with pytest.raises(tf.errors.GradientError):
        tf.assert_gradients(f, np.array(x), order=1, full=full)


def test_a_second_point_is_named():
    report = tf.check_gradients(with_rule(tf.square, lambda x, dy: 3 * x * dy), 0.0, order=1)
    false = [row for row in report.rows if row.false]
    assert false
    assert all(row.nearby.startswith("x = ") for row in false)
    assert false[0].value == pytest.approx(1.5 * false[0].reference)
    assert "wrong, at a nearby point" in str(report)
    assert "The nearby point is x = " in str(report)
    report = tf.check_gradients(tf.nn.relu, 0.0, order=1)
    assert "kink; at a nearby point: ok" in str(report)


def test_the_second_point_is_in_the_domain():
    for f, x in (
        (tf.sqrt, np.array([0.0, 4.0])),
        (tf.asin, np.array([1.0, -1.0, 0.5])),
        (tf.acosh, np.array([1.0, 2.0])),
        (lambda p: tf.math.log(1.0 - p), np.array([0.0, 0.99])),
    ):
        report = tf.check_gradients(f, x)
        assert report.ok, report


def test_a_library_function_outside_the_slopes_is_a_kink():
    """relu(x) - relu(-x) has the slope 1 at 0; the sum of the parts' gradients is 0 or 2."""
    first, second = np.random.default_rng(0).normal(size=(4, 6)), np.ones(6)

    def network(x):
        return tf.linalg.matvec(tf.nn.relu(x @ first), second)

    report = tf.check_gradients(network, np.zeros((2, 4)), order=1)
    assert report.ok, report


def by_numpy(f, slope):
    """A rule of NumPy code, of order 1."""
    return with_rule(lambda x: tf.constant(f(x.numpy())), lambda x, dy: dy * slope(x))


def by_numpy_function(f, slope):
    return with_rule(lambda x: tf.numpy_function(f, [x], x.dtype), lambda x, dy: dy * slope(x))


squared_by_numpy = tf.primitive(
    "verdicts_squared",
    lambda x: x * np.conj(x),
    shape=lambda x: x.shape,
    replace=True,
)


@tf.RegisterGradient("verdicts_squared", replace=True)
def _squared_rule(op, dy):
    return 2.0 * dy * op.inputs[0]


NOT_ANALYTIC = {  # of real x, with values that complex numbers have otherwise
    "abs": tf.abs,
    "conj": tf.math.conj,
    "real": lambda x: x * tf.math.real(x),
    "imag": lambda x: x + tf.math.imag(x),
    "square by conj": lambda x: x * tf.math.conj(x),
    "power of abs": lambda x: tf.abs(x) ** 1.5,
    "sign": lambda x: x * tf.sign(x),
    "maximum": lambda x: tf.maximum(x, 0.1 * x),
    "relu": lambda x: tf.nn.relu(x) - 0.1 * tf.nn.relu(-x),
    "where": lambda x: tf.where(x > 0.0, x, 0.1 * x),
    "where by real": lambda x: tf.where(tf.math.real(x) > 0.0, x, 0.1 * x),
    "a condition": lambda x: x * (2.0 if tf.math.real(x)[0] > 0.0 else 3.0),
    "clip": lambda x: x * tf.clip_by_value(x, -0.5, 0.5),
    "floor": lambda x: x * (1.5 + tf.floor(x)),
    "norm": tf.norm,
    "unit vector": lambda x: x / tf.norm(x),
    "norm of order 1": lambda x: x * tf.norm(x, ord=1),
    "variance": tf.math.reduce_variance,
    "deviation": tf.math.reduce_std,
    "maximum of all": lambda x: x * tf.reduce_max(x),
    "inner product": lambda x: tf.numpy.vdot(x, x),
    "adjoint": lambda x: tf.linalg.adjoint(x[None]) @ x[None],
    "determinant": lambda x: tf.linalg.slogdet(4.0 * np.eye(3) + x[None] * x[:, None])[1],
    "Cholesky factor": lambda x: tf.linalg.cholesky(4.0 * np.eye(3) + x[None] * x[:, None]),
    "single precision": lambda x: x * tf.cast(tf.cast(x, "complex64"), x.dtype),
    "abs by NumPy": by_numpy(np.abs, tf.sign),
    "square by NumPy": by_numpy(lambda x: x * np.conj(x), lambda x: 2.0 * x),
    "numpy_function": by_numpy_function(lambda x: x * np.conj(x), lambda x: 2.0 * x),
    "a primitive": squared_by_numpy,
}


@pytest.mark.parametrize("name", NOT_ANALYTIC)
def test_complex_steps_go_through_analytic_operations_only(name):
    """Also where what is not analytic is too small a part for differences to contradict it."""
    f, x = NOT_ANALYTIC[name], np.array([0.7, -1.3, 0.4])

    def mostly_sine(x):
        return 10.0 * tf.sin(x) + 1e-4 * tf.reduce_sum(f(x))

    for function in (f, mostly_sine):
        for right in (function, ruled(function)):
            report = tf.check_gradients(right, x, order=1)
            assert {row.verdict for row in report.rows} == {"ok"}, report
            assert "complex steps" not in {row.kind for row in report.rows}, report
        for factor in (-1.0, 1.3, 1.001):
            wrong = ruled(function, lambda gs, *_, c=factor: [c * gs[0]])
            report = tf.check_gradients(wrong, x, order=1)
            assert report.first_false_order == 1, report


def test_analytic_functions_have_complex_steps():
    scale = tf.Variable(np.array(1.5))
    for f in (
        lambda x: scale * tf.sin(x) / (2.0 + x * x),
        lambda x: tf.linalg.solve(4.0 * np.eye(3) + x[None] * x[:, None], x[:, None]),
        ruled(lambda x: tf.exp(tf.gather(x, [0, 0, 2])) @ tf.constant(np.ones(3))),
        by_numpy(lambda x: np.round(2.0 * x.real) + 0.0, lambda x: 0.0 * x),
    ):
        report = tf.check_gradients(f, np.array([0.7, -1.3, 0.4]), order=1)
        assert report.ok, report
    report = tf.check_gradients(lambda x: scale * tf.sin(x), np.array([0.7, -1.3, 0.4]), order=1)
    assert {row.kind for row in report.rows} == {"complex steps"}, report


def test_ties_of_several_arguments_are_kinks():
    """The gradient of clip(x, a, a) by x at a is 1 here; by x alone the function is constant."""
    report = tf.check_gradients(tf.clip_by_value, np.zeros(3), np.zeros(3), np.array(0.0), order=1)
    assert report.ok, report
    assert any(row.verdict == "kink" for row in report.rows)
    wrong = tf.custom_gradient(
        lambda x, y: (tf.maximum(x, y), lambda dy: (dy * tf.cast(x >= y, x.dtype), 3.0 * dy))
    )
    assert tf.check_gradients(wrong, np.zeros(3), np.zeros(3), order=1).first_false_order == 1


def test_assert_needs_a_row_of_each_argument():
    tf.assert_gradients(lambda x, y: tf.nn.relu(x) * y, 1.0, 2.0, order=1)
    with pytest.raises(tf.errors.GradientError, match="The check is inconclusive for x at order 1"):
        tf.assert_gradients(lambda x, y: tf.nn.relu(x) + y, 0.0, 2.0, order=1)


def test_ok_needs_digits_that_agree():
    """At 0, rounding changes the gradient of a norm by far more than its size."""
    report = tf.check_gradients(tf.norm, np.zeros(3))
    (row,) = [row for row in report.rows if row.path == "both"]
    assert row.verdict == "inconclusive", report
    assert row.uncertainty >= row.error > 1.0


def test_the_relative_error_is_in_units_of_the_reference():
    report = tf.check_gradients(tf.nn.relu, np.array([0.0, 1.0]), order=1)
    for row in report.rows:
        assert row.relative_error == pytest.approx(row.error / abs(row.reference))
    f = with_rule(tf.sin, lambda x, dy: dy * (tf.cos(x) + 1e3 - 1e3 * tf.exp(x - x)))
    report = tf.check_gradients(f, np.array(np.pi / 2), order=1)
    assert {row.verdict for row in report.rows} == {"ok"}
    assert "rounding  ok" in str(report)


def test_a_rule_that_does_not_repeat_is_not_judged():
    rng = np.random.default_rng(0)
    f = with_rule(tf.sin, lambda x, dy: dy * tf.cos(x) + 0.01 * tf.constant(rng.normal(size=3)))
    report = tf.check_gradients(f, np.ones(3))
    assert report.rows == []
    assert not report.ok
    assert report.summary() == "op: the gradient differs between calls"
    (rule,) = tf.check_gradients(lambda x: f(x) + x, np.ones(3)).rules or [None]
    assert rule is None or not rule.rows


def test_nan_at_a_kink_is_a_kink():
    f = with_rule(tf.norm, lambda x, dy: dy * x / tf.norm(x))
    report = tf.check_gradients(f, np.zeros(3), order=1)
    assert {row.verdict for row in report.rows} == {"kink"}, report
    assert "The derivative of order 1 with respect to x is NaN" in str(report)
    assert "Check at a nearby point" not in str(report)


def test_the_element_that_is_named_is_the_one():
    report = tf.check_gradients(tf.math.log, np.array([0.0, -1.0]))
    assert "At x[1] = -1, `log` of -1 is NaN" in " ".join(str(report).split())


def test_a_norm_of_zero_is_no_matter_of_one_element():
    f = with_rule(tf.norm, lambda x, dy: dy * x / tf.norm(x))
    for function in (f, lambda x: x / tf.norm(x)):
        text = " ".join(str(tf.check_gradients(function, np.zeros(3), order=1)).split())
        assert "Where all of x is 0, 0 / 0 is NaN (test_verdicts.py:" in text
    rows = np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
    report = tf.check_gradients(lambda x: x / tf.norm(x, axis=1, keepdims=True), rows, order=1)
    assert "cannot be checked here. 0 / 0 is NaN." in " ".join(str(report).split())
    report = tf.check_gradients(lambda x: tf.sqrt(tf.reduce_sum(x * x)), np.zeros(3), order=1)
    assert "Where all of x is 0, 0.5 / 0 is infinite; " in " ".join(str(report).split())
    report = tf.check_gradients(lambda x: tf.sin(x) / x, np.zeros(3), order=1)
    assert "At x[0] = 0, 0 / 0 is NaN." in " ".join(str(report).split())


def test_a_clipped_upstream_is_not_said_to_lose_its_size():
    f = with_rule(lambda x: 2.0 * x, lambda x, dy: tf.clip_by_value(2.0 * dy, -1.0, 1.0))
    text = " ".join(str(tf.check_gradients(f, 1.5, order=1)).split())
    assert "depends only on the sign" not in text
    assert "clip dy" in text


def test_gradients_of_variables_are_compared_in_float64_too():
    """A rule's gradient was cast to the dtype that the variable has outside of the check."""
    weight = tf.Variable(np.float32([1.0, 2.0]), name="w")

    @tf.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return dy * weight, [dy * x]

        return x * weight, grad

    report = tf.check_gradients(f, np.float32([3.0, 4.0]))
    assert report.findings == []
    assert {row.verdict for row in report.rows} == {"ok"}


def test_true_never_stands_beside_a_relative_error_of_1():
    for f, x in ((log_softmax, SATURATED), (tf.tanh, 20.0), (tf.sigmoid, 700.0), (tf.exp, -80.0)):
        report = tf.check_gradients(f, np.array(x), order=3)
        assert report.ok, report
        for row in report.rows:
            assert row.verdict != "ok" or row.relative_error < 0.5 or row.error < 1e-9, report


# Properties ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        pytest.param(
            lambda x, dy: tf.clip_by_value(dy * tf.cos(x), -1e5, 1e5), "scaled by 1e+06", id="clip"
        ),
        pytest.param(
            lambda x, dy: tf.where(tf.abs(dy) < 1e-3, 0.0, dy) * tf.cos(x),
            "scaled by 1e-06",
            id="drop",
        ),
        pytest.param(
            lambda x, dy: dy * tf.cos(x) + tf.where(tf.equal(dy, 0.0), 1.0, 0.0),
            "for an upstream gradient of zeros",
            id="affine",
        ),
    ],
)
def test_linearity_is_probed_far_out(rule, words):
    report = tf.check_gradients(with_rule(tf.sin, rule), np.array([0.3, 0.4]), order=1)
    (row,) = [row for row in report.rows if row.verdict == "not linear in the upstream"]
    assert words in row.detail
    assert words in " ".join(str(report).split())


def test_a_rule_on_its_own_is_checked_in_the_dtype_of_the_arguments():
    @tf.custom_gradient
    def log_cosh(x):
        return tf.math.log(tf.cosh(x)), lambda dy: dy * tf.sinh(x) / tf.cosh(x)

    report = tf.check_gradients(lambda x: log_cosh(x), np.float32(95.0))
    assert report.rules[0].first_false_order == 1, report
    assert "On its own, the rule of `log_cosh` (test_verdicts.py:" in " ".join(str(report).split())


def test_a_fault_in_float32_alone():
    def rule(x, dy):
        return dy * tf.cos(x) * (1.5 if x.dtype == np.float32 else 1.0)

    f = with_rule(tf.sin, rule)
    report = tf.check_gradients(f, np.float32(0.3), order=1)
    (row,) = [row for row in report.rows if row.false and row.mode == "reverse"]
    assert row.detail == "in float32, right in float64"
    assert row.value == pytest.approx(1.5 * np.cos(0.3), rel=1e-6)
    assert tf.check_gradients(f, np.array(0.3), order=1).ok


@pytest.mark.parametrize("x", [60.0, 100.0])
def test_a_reference_that_rounding_hides_is_not_called_correct(x):
    """A complex step of e / (1 + e) gives 3e-17 or -5e-17: what remains of terms that cancel."""

    @tf.custom_gradient
    def sigmoid(x):
        e = tf.exp(x)
        return e / (1 + e), lambda dy: dy * e / (1 + e) ** 2

    report = tf.check_gradients(sigmoid, np.float32(x), order=1)
    (row,) = [row for row in report.rows if row.false and row.mode == "reverse"]
    assert row.reference == pytest.approx(np.exp(-x), rel=1e-6)
    wide = tf.check_gradients(sigmoid, np.array(x), order=1)
    assert wide.ok
    cells = re.findall(r"(\S+) \+- (\S+) ", str(wide))
    assert len(cells) == len(wide.rows)
    for row, (reference, bound) in zip(wide.rows, cells, strict=True):
        assert abs(float(reference) - row.reference) <= 0.5 * float(bound)
        assert len(reference) <= 6  # as many digits as are known


def test_what_is_nan_is_not_called_linear():
    def rule(x, dy):
        return dy * tf.exp(x) / tf.exp(x)

    report = tf.check_gradients(with_rule(tf.identity, rule), np.array(800.0), order=1)
    assert "linear in the upstream" not in str(report)


def test_a_declared_jvp_is_compared_with_the_vjp():
    def declared(factor):
        return tf.custom_derivatives(
            lambda x: tf.nn.relu(x),
            vjp=lambda dy, x: dy * tf.cast(x > 0, x.dtype),
            jvp=lambda way, x: factor * way * tf.cast(x > 0, x.dtype),
        )

    x = np.array([0.5, -1.5, 2.5])
    held = {
        prop.name: prop.holds for prop in tf.check_gradients(declared(1.0), x, order=1).properties
    }
    assert held["forward and reverse mode agree"]
    report = tf.check_gradients(declared(1.0 + 1e-4), x, order=1)
    held = {prop.name: prop.holds for prop in report.properties}
    assert held["forward and reverse mode agree"] is False
    assert not report.ok


def test_assigned_variables_get_their_values_back():
    calls, mean = tf.Variable(0.0, name="calls"), tf.Variable([1.0, 2.0], trainable=False)

    def f(x):
        calls.assign_add(1.0)
        mean.assign(0.9 * mean + 0.1 * x)
        return x * x + tf.stop_gradient(mean)

    report = tf.check_gradients(f, np.array([1.5, -0.5], np.float32))
    assert "repeated calls agree" in str(report)
    assert calls.numpy() == 0.0
    assert mean.numpy().tolist() == [1.0, 2.0]


def test_pandas_arguments():
    pd = pytest.importorskip("pandas")
    series = pd.Series([0.5, 1.5, -2.0])
    report = tf.check_gradients(lambda x: tf.sin(x) * x, series)
    assert report.ok
    assert {row.argument for row in report.rows} == {"x", "dy"}
    frame = pd.DataFrame({"a": [0.5, 1.5], "b": [2.5, -1.0]})
    assert tf.check_gradients(lambda x: x @ x, frame).ok
    wrong = with_rule(tf.sin, lambda x, dy: dy * tf.sin(x))
    assert tf.check_gradients(wrong, series).first_false_order == 1


def test_full_of_a_hundred_elements_is_batched():
    """Some evaluations for each element, not for each pair of elements."""
    calls = []

    def function(x):
        calls.append(None)
        return tf.sin(x) @ x

    x = np.random.default_rng(0).normal(size=(10, 10))
    report = tf.check_gradients(function, x, full=True)
    assert {row.verdict for row in report.rows} == {"ok"}
    assert len(calls) < 30 * x.size

    @tf.custom_gradient
    def off(x):
        mask = np.ones((10, 10))
        mask[3, 4] = 1.0 + 1e-4
        y = tf.sin(x) @ x
        return y, lambda dy: dy @ tf.transpose(x) * tf.cos(x) * mask + tf.transpose(tf.sin(x)) @ dy

    report = tf.check_gradients(off, x, full=True, order=1)
    false = [row.index for row in report.rows if row.false and row.index is not None]
    assert false == [(3, 4)]


def test_elements_of_mixed_scale_have_no_kink_in_common():
    """One step for all of them is far too large for the small ones."""
    x, y = np.array([3.0, 0.0, 1e6]), np.array([4.0, 2.0, 1e-3])
    for f, points in (
        (lambda x, y: tf.sqrt(x * x + y * y), (x, y)),
        (tf.sqrt, ([1e-8, 1.0, 1e8],)),
    ):
        report = tf.check_gradients(f, *map(np.array, points), order=1)
        assert {row.verdict for row in report.rows} == {"ok"}, report
        tf.assert_gradients(f, *map(np.array, points), order=1)
    f = with_rule(tf.sqrt, lambda x, dy: dy * tf.where(x < 1e-6, 0.6, 0.5) / tf.sqrt(x))
    report = tf.check_gradients(f, np.array([1e-8, 1.0, 1e8]), order=1)
    assert {row.index for row in report.rows if row.false} == {(0,)}, report


def test_elements_beside_a_kink_are_looked_at_at_the_second_point():
    """The other elements are at kinks for the step of the largest one, here and nearby."""
    f = with_rule(
        lambda x: tf.clip_by_value(x, 0.0, 6.0), lambda x, dy: dy * tf.cast(x > 0, x.dtype)
    )
    report = tf.check_gradients(f, np.array([7e-5, 8e-5, 7e-7, 1e-5, 13.5]), order=1)
    assert report.first_false_order == 1
    assert {row.index for row in report.rows if row.false} == {(4,)}, report


def test_slopes_of_ties_are_more_than_two():
    """Of a sort of equal elements each slope is right, not only those to both sides."""

    @tf.custom_gradient
    def ordered(x):
        order = tf.argsort(x)
        return tf.gather(x, order) ** 2, lambda dy: 2.0 * x * tf.gather(dy, tf.argsort(order))

    report = tf.check_gradients(ordered, np.ones(4))
    assert report.ok, report
    assert any(row.verdict == "kink" for row in report.rows)


def test_an_oscillation_at_the_same_phase_is_not_judged():
    """Steps that are halved see sin(k x) at phases of 2 pi, and a slope that is far too small."""
    finest = 1.3 * np.finfo(float).eps ** 0.2 * 0.5**13
    k = (2.0 * np.pi * 5 + 0.01) / finest
    report = tf.check_gradients(lambda x: tf.sin(k * tf.nn.relu(x)), np.array(1.3), order=1)
    assert report.ok, report
    assert {row.verdict for row in report.rows} == {"inconclusive"}, report
    report = tf.check_gradients(lambda x: tf.sin(7.7 * k * tf.nn.relu(x)), np.array(1.3), order=1)
    assert report.ok, report
    assert check_runs.run(7011)[1].ok


def test_lost_digits_are_named_where_the_reference_is_inconclusive():
    report = tf.check_gradients(lambda x: (1 - tf.cos(x)) / x**2, np.float32(1e-3))
    text = " ".join(str(report).split())
    assert report.ok
    for order, exact in ((1, "-8.3"), (2, "-0.083")):
        words = (
            f"In float32, the derivative of order {order} with respect to x has lost most or all"
        )
        assert f"{words} of its digits to rounding: it is " in text
        assert f"and {exact}" in text.partition(words)[2]


def half_defined(x):
    if float(x) != 2.0:
        raise ValueError("only at 2")
    return x * x


@pytest.mark.parametrize(
    ("f", "x", "why"),
    [
        (tf.exp, tf.constant([89.0, 1.0]), "the derivative is too large for float32."),
        (
            half_defined,
            np.array(2.0),
            "values at the point or near it are infinite, NaN or undefined.",
        ),
        (least_squares, np.ones(3), "the derivative is hidden by rounding"),
        (tf.norm, np.zeros(3), "the reference is not accurate enough."),
    ],
)
def test_why_a_row_is_inconclusive(f, x, why):
    text = " ".join(str(tf.check_gradients(f, x)).split())
    assert text.count("inconclusive, because ") == 1, text
    assert re.search(
        rf"\d rows of order [1, and2]+ are inconclusive, because {re.escape(why)}", text
    )


def test_equal_eigenvalues_are_named_where_their_derivative_is_not_defined():
    text = " ".join(str(tf.check_gradients(tf.linalg.eigh, np.eye(2))).split())
    assert "inconclusive. eigh: the gradient with respect to eigenvectors of equal eigen" in text


@pytest.mark.parametrize("seed", [1, 4, 5])
def test_a_derivative_of_rounding_errors_is_zero(seed):
    """The imaginary part of a real eigenvalue of a real matrix is 0, and stays 0."""
    x = np.random.default_rng(seed).normal(size=(3, 3))
    assert np.linalg.eigvals(x).imag.any()
    assert tf.check_gradients(tf.linalg.eigvals, x, full=True, order=1).ok


def test_a_reference_of_rounding_errors_is_zero():
    @tf.custom_gradient
    def root(a):
        x = tf.stop_gradient(tf.sqrt(a) + 1e-16 * a)
        return x, lambda dy: dy / (2.0 * x)

    report = tf.check_gradients(root, np.array([2.0, 3.0, 5.5]))
    assert {row.reference for row in report.rows if row.path == "both"} == {0.0}, report
    assert "expected 0, got 0.33" in " ".join(str(report).split())


# Rules that compute in float32 outside of tensors --------------------------------------------


@tf.custom_gradient
def scaled_in_float32(x):
    def grad(dy):
        return tf.constant(dy.numpy().astype(np.float32) * np.float32(3.0))

    return 3.0 * x, grad


@tf.custom_gradient
def gathered_in_float32(x):
    def grad(dy):
        g = np.zeros((5, 2), np.float32)
        np.add.at(g, [1, 3, 1, 0], dy.numpy())
        return tf.constant(g)

    return tf.gather(x, [1, 3, 1, 0]), grad


@tf.custom_gradient
def softmax_in_float32(x):
    def grad(dy):
        y, d = (np.asarray(a).astype(np.float32) for a in (tf.nn.softmax(x), dy))
        return tf.constant(y * (d - np.sum(d * y, -1, keepdims=True)), x.dtype)

    return tf.nn.softmax(x), grad


@tf.custom_gradient
def atan_in_float32(x):
    slope = 1.0 / (1.0 + np.asarray(x, np.float32) ** 2)
    return tf.atan(x), lambda dy: dy * tf.constant(slope.astype(np.float64), x.dtype)


IN_FLOAT32 = (scaled_in_float32, gathered_in_float32, softmax_in_float32, atan_in_float32)


@pytest.mark.parametrize("f", IN_FLOAT32)
def test_rounding_of_a_rule_that_computes_in_float32_is_not_called_wrong(f):
    for seed in range(12):
        x = np.random.default_rng(seed).normal(size=(5, 2)).astype(np.float32)
        report = tf.check_gradients(f, tf.constant(x), order=1)
        assert report.ok, report


@pytest.mark.parametrize("f", IN_FLOAT32[:2])
def test_a_rule_that_rounds_float64_to_float32_is_wrong(f):
    x = np.random.default_rng(3).normal(size=(5, 2))
    assert tf.check_gradients(f, tf.constant(x), order=1).first_false_order == 1


@pytest.mark.parametrize("factor", [1.001, 1.0 + 1e-5])
@pytest.mark.parametrize("f", IN_FLOAT32)
def test_a_wrong_factor_of_a_rule_in_float32_is_found(f, factor):
    @tf.custom_gradient
    def wrong(x):
        value, rule = f._function(x)
        return value, lambda dy: rule(factor * dy)

    x = np.random.default_rng(1).normal(size=(5, 2)).astype(np.float32)
    assert tf.check_gradients(wrong, tf.constant(x), order=1).first_false_order == 1


def test_a_rounded_constant_is_found_for_float32():
    @tf.custom_gradient
    def area(r):
        return np.pi * r**2, lambda dy: dy * 2.0 * 3.1416 * r

    for size in (1, 10, 100, 1000):
        r = tf.constant(np.random.default_rng(2).uniform(1, 2, size), tf.float32)
        report = tf.check_gradients(area, r)
        assert report.first_false_order == 1, report
