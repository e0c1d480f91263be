"""Incomplete gamma and beta functions: digits, edges, and derivatives of higher orders."""

import mpmath
import numpy as np
import pytest

import tinygrad_cg as tf
from tests.ops.test_edges import derivatives
from tests.support import references
from tinygrad_cg._ops.incomplete import gamma_transport
from tinygrad_cg.errors import DerivativeOrderError

A = (1e-300, 1e-10, 1e-3, 0.3, 0.9, 1.0, 5.0, 9.99, 10.0, 170.0, 1e4)
OFFSETS = (-5.0, -1.0, -0.01, 0.0, 0.1, 3.0)


def gamma_points():
    pairs = [(a, x) for a in A for x in (1e-300, 1e-5, 0.49, 0.51, 2.0, 30.0, 700.0)]
    near = [(a, a + c * a**0.5) for a in A[4:] for c in OFFSETS if a + c * a**0.5 > 0]
    return np.array(pairs + near).T


def upper_gamma(a, x):
    """Legendre's continued fraction, in mpmath's numbers, for x > a and x > 1/2."""
    value = mpmath.mpf(0)
    for k in range(2000, 0, -1):
        value = -k * (k - a) / (x + 2 * k + 1 - a + value)
    front = mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(a))
    return front / (x + 1 - a + value)


def both_gammas(a, x):
    a, x = mpmath.mpf(float(a)), mpmath.mpf(float(x))
    if x > a and x > 0.5:
        upper = upper_gamma(a, x)
        return 1 - upper, upper
    lower = references.lower_gamma(a, x)
    return lower, 1 - lower


def assert_digits(got, exact, rtol):
    for digits, wanted in zip(got, exact, strict=True):
        assert abs(mpmath.mpf(float(digits)) - wanted) <= rtol * abs(wanted) + 1e-305


def test_igamma_on_a_grid():
    """Relative to each number, in both tails, for tiny and huge arguments."""
    a, x = gamma_points()
    with mpmath.workdps(330):
        exact = [both_gammas(*pair) for pair in zip(a, x, strict=True)]
    assert_digits(tf.math.igamma(a, x).numpy(), [lower for lower, _ in exact], 1e-13)
    assert_digits(tf.math.igammac(a, x).numpy(), [upper for _, upper in exact], 1e-13)


def test_derivative_of_igamma_by_a_on_a_grid():
    a, x = gamma_points()
    a, x = a[a > 1e-4], x[a > 1e-4]
    tensor = tf.constant(a)
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        y = tf.math.igamma(tensor, x)
    with mpmath.workdps(60):
        exact = []
        for order, at in zip(a.tolist(), x.tolist(), strict=True):
            upper = at > order and at > 0.5
            function = upper_gamma if upper else references.lower_gamma
            slope = mpmath.diff(lambda a: function(a, mpmath.mpf(at)), order, h=1e-12 * order)  # noqa: B023
            exact.append(-slope if upper else slope)
    assert_digits(tape.gradient(y, tensor).numpy(), exact, 1.5e-13)


def test_values_at_the_edges_of_igamma():
    """As SciPy, PyTorch and JAX: at a = 0 the limit (TensorFlow has NaN)."""
    inf, nan = np.inf, np.nan
    a = np.array([0, 0, 0, 1, 1, inf, inf, 2, 2, -1, nan, 2])
    x = np.array([0, 1, inf, 0, inf, 1, inf, -1, inf, 1, 1, nan])
    lower = np.array([nan, 1, 1, 0, 1, 0, nan, nan, 1, nan, nan, nan])
    np.testing.assert_array_equal(tf.math.igamma(a, x), lower)
    np.testing.assert_array_equal(tf.math.igammac(a, x), 1 - lower)


def test_values_at_the_edges_of_betainc():
    """As SciPy and JAX."""
    inf, nan = np.inf, np.nan
    a = np.array([0, 1, 0, 1, inf, 1, inf, 1, 1, 2, 2, 2, -1, 0, 1])
    b = np.array([1, 0, 0, 1, 1, inf, inf, nan, 1, 2, 2, 2, 1, 0, 0])
    x = np.array([0.5, 0.5, 0.5, nan, 0.5, 0.5, 0.5, 0.5, -0.1, 0, 1, 1.1, 0.5, 1, 1])
    wanted = np.array([1, 0, nan, nan, 0, 1, nan, nan, nan, 0, 1, nan, nan, nan, nan])
    np.testing.assert_array_equal(tf.math.betainc(a, b, x), wanted)


def test_betainc_on_a_grid():
    """Against a series in 50 digits; beyond the mode, by exchange of the parameters."""
    sizes = (1e-10, 0.1, 0.9, 3.0, 30.0, 1e4)
    points = [(a, b, x) for a in sizes for b in sizes for x in (1e-8, 0.2, 0.5, 0.7, 0.999)]
    points += [(2.0, 1e8, 2e-8), (10.0, 1e8, 1.003e-7), (1e8, 1e8, 0.49999)]
    kept, exact = [], []
    with mpmath.workdps(50):
        for a, b, x in points:
            p, q, z = map(mpmath.mpf, (a, b, x))
            far = x > a / (a + b)
            if (1 - x if far else x) > 0.8 or max(a, b) * (1 - x if far else x) > 1e5:
                continue  # the series would be long
            kept.append((a, b, x))
            lower = references.lower_beta
            exact.append(1 - lower(q, p, 1 - z) if far else lower(p, q, z))
    got = tf.math.betainc(*np.array(kept).T)
    assert_digits(got.numpy(), exact, 2e-13)


def test_betainc_far_below_one():
    """The quadrature goes on where a piece is too short to change where the next one starts."""
    x = 10.0 ** np.arange(-300.0, -40.0)
    np.testing.assert_allclose(tf.math.betainc(1e-290, 1.5, x), 1, rtol=1e-13)
    a = np.full_like(x, 1e-3)
    got = tf.grad(lambda a: tf.reduce_sum(tf.math.betainc(a, 2.0, x)))(tf.constant(a)).numpy()
    with mpmath.workdps(40):
        # (1 + a) x**a, since x**(1 + a) is nothing next to it
        size, logs = mpmath.mpf(1e-3), [mpmath.log(mpmath.mpf(number)) for number in x.tolist()]
        exact = [mpmath.exp(size * log) * (1 + (1 + size) * log) for log in logs]
    assert_digits(got, exact, 1e-12)


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (tf.math.igamma, (2.5, 1.75)),
        (tf.math.igamma, (0.25, 0.125)),
        (tf.math.igammac, (12.0, 14.5)),
        (tf.math.betainc, (2.5, 0.75, 0.25)),
        (tf.math.betainc, (12.0, 30.0, 0.375)),
    ],
)
def test_second_derivatives_by_all_arguments(function, values):
    """By mpmath's differences of the references' series."""
    lower = references.lower_beta if len(values) == 3 else references.lower_gamma
    sign = -1 if function is tf.math.igammac else 1
    _, first, second = derivatives(function, *values)
    unit = np.eye(len(values), dtype=int)
    with mpmath.workdps(40):
        point = tuple(map(mpmath.mpf, values))
        for i, row in enumerate(unit):
            slope = mpmath.diff(lower, point, tuple(map(int, row)))
            assert first[i] == pytest.approx(sign * float(slope), rel=1e-12)
            for j, other in enumerate(unit):
                bend = sign * float(mpmath.diff(lower, point, tuple(map(int, row + other))))
                assert second[i][j] == pytest.approx(bend, rel=1e-11, abs=1e-14)


def test_derivatives_where_the_density_starts():
    """At x = 0 and 1 the second and third derivatives are limits, not 0 / 0."""

    def by_x(function, at, order):
        for _ in range(order):
            function = tf.grad(function)
        return float(function(tf.constant(at, tf.float64)))

    unit, two = (tf.constant(value, tf.float64) for value in (1.0, 2.0))
    for a, wanted in ((unit, (1.0, -1.0, 1.0)), (two, (0.0, 1.0, -2.0))):
        for order, value in enumerate(wanted, 1):
            assert by_x(lambda x: tf.math.igamma(a, x), 0.0, order) == value  # noqa: B023
    # 1 - (1 - x)**2 and 3 x**2 - 2 x**3
    for a, at, wanted in ((unit, 0.0, (2.0, -2.0, 0.0)), (two, 1.0, (0.0, -6.0, -12.0))):
        for order, value in enumerate(wanted, 1):
            assert by_x(lambda x: tf.math.betainc(a, two, x), at, order) == value  # noqa: B023


def test_orders_beyond_what_is_known_are_refused():
    def by_a(function, order):
        for _ in range(order):
            function = tf.grad(function)
        return function(2.0)

    assert np.isfinite(float(by_a(lambda a: tf.math.igamma(a, 1.5), 4)))
    known = r"igamma: derivatives with respect to `a` .* up to order 4"
    with pytest.raises(DerivativeOrderError, match=known):
        by_a(lambda a: tf.math.igamma(a, 1.5), 5)
    with pytest.raises(
        DerivativeOrderError, match="betainc: derivatives with respect to `a` and `b`"
    ):
        by_a(lambda a: tf.math.betainc(a, 1.5, 0.25), 3)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nextafter_steps_in_its_dtype(dtype):
    """As NumPy; the gradient by the first operand is 1 and by the second 0, as in TensorFlow."""
    x = np.array([1, np.inf, 0, np.nan, 3], dtype)
    y = np.array([2, 0, -1, 1, 3], dtype)
    for function in (tf.math.nextafter, tf.keras.ops.nextafter, tf.numpy.nextafter, np.nextafter):
        result = function(tf.constant(x), tf.constant(y))
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, np.nextafter(x, y))
    first, second = tf.constant(x), tf.constant(y)
    with tf.GradientTape() as tape:
        tape.watch([first, second])
        z = tf.math.nextafter(first, second)
    by_first, zero = tape.gradient(z, [first, second])
    np.testing.assert_array_equal(by_first, np.ones(5))
    np.testing.assert_array_equal(zero, np.zeros(5))


def test_nextafter_names_shapes_that_do_not_broadcast():
    for function in tf.math.nextafter, tf.function(tf.math.nextafter):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"nextafter: shapes \(2,\) and"):
            function(tf.ones(2), tf.ones(3))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_draws_of_gamma_have_the_implicit_gradient(dtype):
    """The share below a draw stays what it is: -P_a / P_x, as in TensorFlow."""
    alpha = tf.constant([0.3, 2.0, 30.0], dtype)

    def draw(alpha):
        return tf.random.stateless_gamma((4, 3), [1, 2], alpha, None, dtype)

    draws = draw(alpha).numpy()
    wanted, bends = np.empty((4, 3)), np.empty((4, 3))
    with mpmath.workdps(40):
        for k, x in np.ndenumerate(draws):
            a = mpmath.mpf(float(alpha.numpy()[k[1]]))
            slope, steep, bend, mixed, curve = (
                mpmath.diff(references.lower_gamma, (a, mpmath.mpf(float(x))), orders)
                for orders in ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
            )
            wanted[k] = -slope / steep
            bends[k] = -(bend + 2 * mixed * wanted[k] + curve * wanted[k] ** 2) / steep
    rtol = 1e-5 if dtype == "float32" else 1e-10
    jacobian = tf.jacobian(draw)(alpha).numpy()
    np.testing.assert_allclose(np.einsum("ijj->ij", jacobian), wanted, rtol=rtol)
    hessian = tf.grad(lambda a: tf.reduce_sum(tf.grad(lambda b: tf.reduce_sum(draw(b)))(a)))(alpha)
    np.testing.assert_allclose(hessian, bends.sum(0), rtol=100 * rtol)
    with tf.autodiff.ForwardAccumulator(alpha, tf.ones(3, dtype)) as accumulator:
        y = draw(alpha)
    np.testing.assert_allclose(accumulator.jvp(y), wanted, rtol=rtol)


def test_derivatives_of_zeta_by_both_arguments():
    """By mpmath's differences, to second order, with both arguments one variable as well."""
    for s, q in ((2.5, 0.75), (1.0625, 3.0), (14.0, 1.0), (40.0, 0.5), (3.0, 1e4)):
        with mpmath.workdps(60):
            point = (mpmath.mpf(s), mpmath.mpf(q))
            exact = {
                orders: float(mpmath.diff(mpmath.zeta, point, orders))
                for orders in ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
            }
        _, first, second = derivatives(tf.math.zeta, s, q)
        np.testing.assert_allclose(first, [exact[1, 0], exact[0, 1]], rtol=1e-13)
        wanted = [[exact[2, 0], exact[1, 1]], [exact[1, 1], exact[0, 2]]]
        np.testing.assert_allclose(second, wanted, rtol=1e-12)
        whole = derivatives(lambda s, shift=q - s: tf.math.zeta(s, s + shift), s)[1]
        np.testing.assert_allclose(whole, exact[1, 0] + exact[0, 1], rtol=1e-13)
    with pytest.raises(
        DerivativeOrderError, match="zeta: derivatives with respect to its first argument"
    ):
        tf.grad(tf.grad(tf.grad(lambda s: tf.math.zeta(s, 2.0))))(3.0)


@pytest.mark.parametrize(
    ("a", "base", "x"),
    [
        *((5.8e-22, 9e-22, 5e-22), (1e-10, 2e-10, 1e-12), (1e-3, 2e-3, 1e-4)),
        *((0.5, 0.6, 0.59), (0.5, 0.6, 0.61), (20.0, 21.0, 20.5), (20.0, 21.0, 21.1)),
    ],
)
def test_draws_of_another_gamma_distribution(a, base, x):
    """For small shapes, nearly all draws are below the shape, and the upper tail has the digits."""
    operands = [tf.constant(number, tf.float64) for number in (a, base, x)]
    result = float(gamma_transport(*operands))
    np.testing.assert_allclose(result, references.gamma_transport(a, base, x), 1e-12)
