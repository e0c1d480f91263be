"""Values and derivatives of operations where their formulas need care."""

import mpmath
import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg.autograd.scipy import special as scipy_names


def derivatives(function, *values):
    """Value, gradient by each argument, and the matrix of second derivatives."""
    xs = [tf.constant(value, tf.float64) for value in values]
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(xs)
        with tf.GradientTape() as inner:
            inner.watch(xs)
            y = function(*xs)
        first = inner.gradient(y, xs)
    second = [
        [float(slope) for slope in outer.gradient(g, xs, unconnected_gradients="zero")]
        for g in first
    ]
    return float(y), [float(g) for g in first], second


@pytest.mark.parametrize("size", [(), 1, 3, 70_000])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_division_by_zero(size, dtype):
    """docs/behaviour.md, decision 16, and no element of a large array may be left unwritten."""
    numerator = np.full(size, 6 + 2j, dtype)
    denominator = np.full(size, 2 + 1j, dtype)
    denominator.reshape(-1)[min(5, denominator.size - 1)] = 0
    with np.errstate(all="ignore"):
        expected = numerator / denominator
    result = (tf.constant(numerator) / tf.constant(denominator)).numpy()
    np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize("function", [tf.sqrt, tf.math.log], ids=["sqrt", "log"])
def test_complex_gradients_at_zero_do_not_raise(function):
    x = tf.constant(0j)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    assert not np.isfinite(tape.gradient(y, x).numpy())


@pytest.mark.parametrize(("x", "y"), [(3.0, 0.0), (2.0, 0.0), (2.0, 1.0), (2.0, 2.0), (1.5, -1.0)])
def test_second_derivatives_of_a_power(x, y):
    log = np.log(x)
    value = x**y
    _, first, second = derivatives(lambda a, b: a**b, x, y)
    mixed = value / x * (1 + y * log)
    np.testing.assert_allclose(first, [y * value / x, value * log], rtol=1e-12)
    np.testing.assert_allclose(
        second, [[y * (y - 1) * value / x**2, mixed], [mixed, value * log**2]], rtol=1e-12
    )


def test_power_of_a_negative_base_is_flat_in_its_exponent():
    """As the original: there is no real logarithm, and the value may be fine all the same."""
    _, first, second = derivatives(lambda a, b: a**b, -2.0, 3.0)
    assert first == [12.0, 0.0]
    assert second == [[-12.0, 4.0], [0.0, 0.0]]


def test_power_at_zero():
    """Decision 14, at both orders."""
    assert derivatives(lambda a, b: a**b, 0.0, 0.0)[1][0] == 0.0
    assert derivatives(lambda a, b: a**b, 0.0, 2.0)[1:] == ([0.0, 0.0], [[2.0, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize("shape", [(2, 0), (0,)])
def test_gradient_of_an_empty_product(shape):
    x = tf.ones(shape)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_prod(x, -1)
    assert tape.gradient(y, x).shape == shape


@pytest.mark.parametrize(
    ("values", "dtype", "mean"),
    [
        ([100, 100], "int8", 100),
        ([200, 200], "uint8", 200),
        ([2**31 - 1] * 2, "int32", 2**31 - 1),
        ([-1, -2], "int32", -1),
        ([-3, -4, -4], "int16", -3),
        ([-(2**62)], "int64", -(2**62)),
    ],
)
def test_mean_of_integers(values, dtype, mean):
    result = tf.reduce_mean(tf.constant(np.array(values, dtype)))
    assert (int(result), result.dtype) == (mean, dtype)


@pytest.mark.parametrize("size", [(), 3, 70_000])
def test_smallest_integer_by_minus_one(size):
    x = np.full(size, -(2**63))
    with np.errstate(all="ignore"):
        assert ((tf.constant(x) // -1).numpy() == x).all()


def test_logsumexp_of_infinities():
    for values, expected in (([np.inf, 0.0], [np.nan, 0.0]), ([-np.inf, 0.0], [0.0, 1.0])):
        x = tf.constant(values)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_logsumexp(x)
        np.testing.assert_array_equal(tape.gradient(y, x).numpy(), np.float32(expected))


@pytest.mark.parametrize("size", [10, 70_000])
def test_extremes_of_complex_numbers_are_refused(size):
    with pytest.raises(TypeError, match="max: no kernel for dtype complex128"):
        tf.reduce_max(tf.constant(np.full(size, 1j)))


def test_limits_that_cross_have_one_gradient():
    """Where low > high the value is high: nothing depends on x or low."""
    x, low, high = (tf.constant(np.array(v)) for v in ([0.0, 5, -5], [1.0] * 3, [-1.0] * 3))
    with tf.GradientTape() as tape:
        tape.watch([x, low, high])
        y = tf.clip_by_value(x, low, high)
    np.testing.assert_array_equal(y, high)
    for gradient, wanted in zip(tape.gradient(y, [x, low, high]), (0, 0, 1), strict=True):
        np.testing.assert_array_equal(gradient, [wanted] * 3)


def test_the_gradient_of_cross_entropy_counts_labels_that_do_not_sum_to_one():
    labels, logits = tf.constant([0.1, 0.2, 0.3]), tf.constant([0.1, 0.5, -0.3])
    gradient = tf.grad(lambda z: tf.nn.softmax_cross_entropy_with_logits(labels, z))(logits)
    expected = 0.6 * tf.nn.softmax(logits) - labels
    np.testing.assert_allclose(gradient, expected, rtol=1e-5)
    tf.assert_gradients(lambda z: tf.nn.softmax_cross_entropy_with_logits(labels, z), logits)


def test_cross_entropy_with_distributions_of_more_axes():
    """The axis is that of the scores."""
    rng = np.random.default_rng(0)
    labels, logits = rng.dirichlet(np.ones(3), (2, 4)).swapaxes(1, 2), rng.normal(size=(3, 4))
    chances = logits - np.log(np.exp(logits).sum(0))
    loss = tf.nn.softmax_cross_entropy_with_logits(labels, logits, axis=0)
    np.testing.assert_allclose(loss, -(labels * chances).sum(1), rtol=1e-12)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"softmax_cross_entropy_with_logits: .*\(2,\)"
    ):
        tf.nn.softmax_cross_entropy_with_logits(tf.zeros(2), tf.zeros(3))


def test_bessel_functions_by_name():
    """By mpmath: besseli(0, 1.5), its derivatives, and the same of order 1."""
    results = derivatives(tf.math.bessel_i0, 1.5)
    np.testing.assert_allclose(results[0], 1.6467231897728904, 1e-15)
    np.testing.assert_allclose(results[1], 0.9816664285779076, 1e-15)
    np.testing.assert_allclose(results[2], [[0.9922789040542853]], 1e-15)
    value, (first,), _ = derivatives(tf.math.bessel_i1e, 800.0)
    np.testing.assert_allclose(value, 0.014098125406526997, 1e-15)
    np.testing.assert_allclose(first, -8.803057415971415e-06, 1e-10)  # of a difference
    for name, at in (("bessel_i0e", 0.0), ("bessel_i1", 0.0)):
        results = derivatives(getattr(tf.math, name), at)
        assert results[0] == (1 if name == "bessel_i0e" else 0)
    assert results[1] == [0.5]


@pytest.mark.parametrize("x", [-10.0, -2.999999, -2.2, -1.0, 0.0, 0.4999, 0.5, 1.46, 20.0])
def test_derivatives_of_a_reciprocal_gamma_function(x):
    """They are finite at 0, -1, ..., where those of the gamma function are not."""
    value, (first,), ((second,),) = derivatives(scipy_names.rgamma, x)
    with mpmath.workdps(40):
        exact = [float(mpmath.diff(mpmath.rgamma, x, order)) for order in range(3)]
    np.testing.assert_allclose([value, first, second], exact, 1e-13)
    _, _, ((square,),) = derivatives(lambda x: scipy_names.rgamma(x) ** 2, x)
    np.testing.assert_allclose(square, 2 * (exact[1] ** 2 + exact[0] * exact[2]), 1e-12)


def test_ndtri_of_small_shares():
    """By mpmath; SciPy's numbers are the same."""
    shares = np.array([1e-300, 1e-10, 0.5, 0.975])
    quantiles = tf.math.ndtri(tf.constant(shares)).numpy()
    exact = [-37.0470962993611992, -6.3613409024040562, 0, 1.9599639845400539]
    np.testing.assert_allclose(quantiles, exact, 1e-15)
    assert np.isnan(tf.math.ndtri(tf.constant([-0.1, 1.1], tf.float64)).numpy()).all()
    value, (first,), ((second,),) = derivatives(tf.math.ndtri, 0.2)
    density = np.exp(-(value**2) / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose([first, second], [1 / density, value / density**2], 1e-13)


def test_kaisers_window_by_its_shape():
    def window(beta):
        return tf.reduce_sum(tf.numpy.kaiser(6, beta) * np.arange(6.0) ** 2)

    def exact(beta):
        return (np.kaiser(6, beta) * np.arange(6.0) ** 2).sum()

    value, (first,), ((second,),) = derivatives(window, 3.0)
    near = [exact(3.0 + step) for step in (-1e-3, 0, 1e-3)]
    np.testing.assert_allclose(value, near[1], 1e-14)
    np.testing.assert_allclose(first, (near[2] - near[0]) / 2e-3, 1e-6)
    np.testing.assert_allclose(second, (near[2] - 2 * near[1] + near[0]) / 1e-6, 1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_angles_of_short_and_long_arms_have_their_gradients(dtype):
    """The square of the length is 0 or infinite there; gradients go with 1 / length."""
    tiny, huge = (1e-23, 1e20) if dtype == "float32" else (1e-170, 1e155)
    gradient = tf.value_and_grad(tf.math.atan2, argnums=(0, 1))
    for size in (tiny, 1.0, huge):
        y, x = (tf.constant(size * k, dtype) for k in (3.0, 4.0))
        for run in (gradient, tf.function(gradient)):
            _, slopes = run(y, x)
            expected = np.array([0.16, -0.12]) / np.float64(size)
            np.testing.assert_allclose(slopes, expected, rtol=1e-6)
        by_y = tf.jvp(lambda a, x=x: tf.math.atan2(a, x), (y,), (y,))[1]
        np.testing.assert_allclose(by_y, 0.48, rtol=1e-6)
    second = tf.grad(tf.grad(tf.math.atan2))(tf.constant(3 * huge, dtype), x)
    np.testing.assert_allclose(np.float64(second) * huge * huge, -0.0384, rtol=1e-2)


def test_bessel_functions_and_integrals_at_their_edges():
    """SciPy's values; TensorFlow has infinities below 0 of the second kind, NaN of expint."""
    special = tf.math.special
    x = [-np.inf, -2.0, -0.0, 0.0, np.inf, np.nan]
    nan, inf = np.nan, np.inf
    for name, expected in (
        ("bessel_j0", [nan, 0.22389077914123567, 1, 1, nan, nan]),
        ("bessel_y0", [nan, nan, -inf, -inf, nan, nan]),
        ("bessel_y1", [nan, nan, -inf, -inf, nan, nan]),
        ("bessel_k0", [nan, nan, inf, inf, 0, nan]),
        ("bessel_k1e", [nan, nan, inf, inf, 0, nan]),
        ("dawsn", [-0.0, -0.3013403889237920, -0.0, 0, 0, nan]),
        ("expint", [-0.0, -0.04890051070806112, -inf, -inf, inf, nan]),
        ("fresnel_cos", [-0.5, -0.4882534060753408, -0.0, 0, 0.5, nan]),
        ("fresnel_sin", [-0.5, -0.3434156783636982, -0.0, 0, 0.5, nan]),
        ("spence", [nan, nan, np.pi**2 / 6, np.pi**2 / 6, nan, nan]),
    ):
        for dtype, digits in (("float64", 1e-14), ("float32", 1e-6)):
            result = getattr(special, name)(tf.constant(x, dtype)).numpy()
            assert result.dtype == dtype
            np.testing.assert_allclose(result, np.array(expected, dtype), digits, err_msg=name)
            if name in ("dawsn", "fresnel_cos", "fresnel_sin"):
                np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))
    assert special.bessel_j0([1, 2]).dtype == tf.float64
    with pytest.raises(TypeError):
        special.bessel_j0(1j)


def test_derivatives_of_bessel_functions_and_integrals_at_their_edges():
    """The removable point of Spence's function, J(1) at 0, and large arguments of the others."""
    special = tf.math.special
    _, first, second = derivatives(special.spence, 1.0)
    np.testing.assert_allclose([first[0], second[0][0]], [-1.0, 0.5], 1e-15)
    _, first, second = derivatives(special.bessel_j1, 0.0)
    assert (first[0], second[0][0]) == (0.5, 0.0)
    value, first, second = derivatives(special.dawsn, 1e4)  # 1 / (2 x), and its derivatives
    np.testing.assert_allclose([value, first[0], second[0][0]], [5e-5, -5e-9, 1e-12], 1e-7)
    _, first, second = derivatives(special.fresnel_sin, 2.0**30 + 0.5)  # x**2 is 1/4 and a multiple
    at = np.pi / 8
    np.testing.assert_allclose(first[0], np.sin(at), 1e-14)
    np.testing.assert_allclose(second[0][0], np.pi * (2.0**30 + 0.5) * np.cos(at), 1e-14)


def _slope(x):
    return mpmath.exp(-abs(x)) / (1 + mpmath.exp(-abs(x))) ** 2


# Each function, its first, second and (for most) third derivative, and where they are looked at:
# where a derivative is far smaller than the terms of a formula for it, or a square overflows.
EXACT_DERIVATIVES = {
    "tanh": (
        tf.tanh,
        lambda x: mpmath.sech(x) ** 2,
        lambda x: -2 * mpmath.tanh(x) * mpmath.sech(x) ** 2,
        lambda x: (4 * mpmath.tanh(x) ** 2 - 2 * mpmath.sech(x) ** 2) * mpmath.sech(x) ** 2,
        (1e-5, 3.0, 20.0, -40.0),
    ),
    "sigmoid": (
        tf.sigmoid,
        _slope,
        lambda x: -_slope(x) * mpmath.tanh(x / 2),
        lambda x: _slope(x) * (1 - 6 * _slope(x)),
        (1e-5, 3.0, 40.0, -60.0),
    ),
    "logaddexp": (
        lambda x: tf.keras.ops.logaddexp(x, 1.0),
        lambda x: 1 / (1 + mpmath.exp(1 - x)),
        lambda x: _slope(x - 1),
        None,
        (3.0, 40.0, -60.0),
    ),
    "softplus": (
        tf.math.softplus,
        lambda x: 1 / (1 + mpmath.exp(-x)),
        _slope,
        None,
        (3.0, 40.0, -60.0),
    ),
    "expm1": (tf.math.expm1, mpmath.exp, mpmath.exp, mpmath.exp, (-3.0, -40.0, 1e-5)),
    "atan": (
        tf.math.atan,
        lambda x: 1 / (1 + x * x),
        lambda x: -2 * x / (1 + x * x) ** 2,
        lambda x: (6 * x * x - 2) / (1 + x * x) ** 3,
        (1e-5, 3.0, 1e9),
    ),
    "asinh": (
        tf.math.asinh,
        lambda x: (1 + x * x) ** -0.5,
        lambda x: -x * (1 + x * x) ** -1.5,
        lambda x: (2 * x * x - 1) * (1 + x * x) ** -2.5,
        (1e-5, 3.0, 1e11),
    ),
    "atanh": (
        tf.math.atanh,
        lambda x: 1 / (1 - x * x),
        lambda x: 2 * x / (1 - x * x) ** 2,
        None,
        (1e-5, 0.5, 1 - 2.0**-20),
    ),
    "asin": (
        tf.math.asin,
        lambda x: (1 - x * x) ** -0.5,
        lambda x: x * (1 - x * x) ** -1.5,
        None,
        (1e-5, 0.5, 1 - 2.0**-20),
    ),
    "hypot": (
        lambda x: tf.keras.ops.hypot(x, 1.0),
        lambda x: x * (1 + x * x) ** -0.5,
        lambda x: (1 + x * x) ** -1.5,
        None,
        (1e-5, 3.0, 1e5, 1e11),
    ),
    "softsign": (
        tf.nn.softsign,
        lambda x: (1 + abs(x)) ** -2,
        lambda x: -2 * (1 + abs(x)) ** -3,
        None,
        (3.0, 1e11),
    ),
    "logit": (
        scipy_names.logit,
        lambda x: 1 / (x * (1 - x)),
        lambda x: (2 * x - 1) / (x * (1 - x)) ** 2,
        None,
        (1e-9, 0.25, 0.75),
    ),
}
LARGE = {"atan": (1e53, 1e77), "asinh": (1e53, 1e100), "hypot": (1e53, 1e100)}


@pytest.mark.quick
@pytest.mark.parametrize("name", EXACT_DERIVATIVES)
def test_derivatives_keep_their_digits(name):
    """Each within a few units in the last place, though the formula's terms may be far larger."""
    function, *exact, points = EXACT_DERIVATIVES[name]
    for dtype, more in (("float32", ()), ("float64", LARGE.get(name, ()))):
        at = np.array(points + more, dtype)
        derivative = function
        for formula in exact:
            if formula is None:
                continue
            derivative = tf.grad(lambda x, f=derivative: tf.reduce_sum(f(x)))
            result = derivative(tf.constant(at)).numpy()
            with mpmath.workprec(200):
                expected = np.array([float(formula(mpmath.mpf(x))) for x in at.tolist()])
            np.testing.assert_allclose(result, expected, 12 * np.finfo(dtype).eps, err_msg=dtype)


def test_lbeta_of_many_and_of_large_numbers():
    """Within a few units in the last place of what a sum of logarithms of gammas cancels to."""
    for dtype in ("float64", "float32"):
        x = np.array([[1e6, 2.5, 0.25, 3.0], [1.5, 1e-3, 2e4, 7.0]], dtype)
        with mpmath.workprec(200):
            rows = [[mpmath.mpf(value) for value in row] for row in x.tolist()]
            exact = [sum(map(mpmath.loggamma, row)) - mpmath.loggamma(sum(row)) for row in rows]
        result = tf.math.lbeta(x).numpy()
        np.testing.assert_allclose(result, np.array(exact, float), 8 * np.finfo(dtype).eps)
        np.testing.assert_array_equal(tf.math.lbeta(np.ones((2, 1), dtype)), [0, 0])
        np.testing.assert_array_equal(tf.math.lbeta(np.ones((2, 0), dtype)), [-np.inf, -np.inf])
