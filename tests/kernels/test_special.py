"""Functions of an order, lgamma and digamma below 0: what `tests.support.accuracy` leaves out."""

import mpmath
import numpy as np
import pytest

from tests.support.references import dawson_derivative, polygamma, spence_derivative
from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.elementary import cylinder, integrals
from tinygrad_cg_kernels.loops.engine import Elementwise

lgamma = Elementwise("lgamma", elementary.lgamma, 1, "float")
digamma = Elementwise("digamma", elementary.digamma, 1, "float")
bessel_i = Elementwise("bessel_i", elementary.bessel_i, 2, "float")
bessel_ie = Elementwise("bessel_ie", elementary.bessel_ie, 2, "float")
zeta = Elementwise("zeta", elementary.zeta, 2, "float")
of_order = Elementwise("polygamma", elementary.polygamma, 2, "float")
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23}


def below_zero(dtype):
    """Numbers between the poles, some close to one."""
    rng = np.random.default_rng(0)
    x = -np.concatenate([rng.uniform(0, 30, 400), np.exp2(rng.uniform(-40, 2, 200))])
    x = np.concatenate([x, -rng.integers(1, 9, 200) + np.exp2(rng.uniform(-12, -2, 200))])
    x = x.astype(dtype)
    return x[x != np.floor(x)]


def assert_close(got, expected, ulps):
    """Within so many ulps of the larger of 1 and the number."""
    room = ulps * EPSILON[got.dtype.name] * np.maximum(np.abs(expected), 1)
    assert (np.abs(got - expected) <= room).all()


@pytest.mark.parametrize("dtype", EPSILON)
def test_lgamma_below_zero(dtype):
    x = below_zero(dtype)
    expected = np.array([float(mpmath.re(mpmath.loggamma(value))) for value in x.tolist()])
    assert_close(lgamma(x), expected, 6 if dtype == "float64" else 1)


@pytest.mark.parametrize("dtype", EPSILON)
def test_digamma_below_zero(dtype):
    x = below_zero(dtype)
    with mpmath.workprec(100):
        expected = np.array([float(mpmath.digamma(value)) for value in x.tolist()])
    assert_close(digamma(x), expected, 6 if dtype == "float64" else 1)


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("order", [1, 2, 3, 7, 30, 170])
def test_polygamma(order, dtype):
    """Right to a few ulps, or what a relative change of `x` by an ulp makes, if that is more."""
    rng = np.random.default_rng(order)
    x = np.exp2(rng.uniform(-3, 8, 100)).astype(dtype)
    x = np.concatenate([x, -rng.uniform(0.1, 6, 50).astype(dtype)])
    x = np.concatenate([x, (-0.5 - np.arange(5) + rng.uniform(-1e-2, 1e-2, 5)).astype(dtype)])
    exact, scale = np.empty(x.size), np.empty(x.size)
    with mpmath.workprec(100):
        for k, value in enumerate(x.tolist()):
            exact[k] = polygamma(order, value)
            change = abs(value * polygamma(min(order + 1, 170), value)) if value < 0 else 0
            scale[k] = max(abs(exact[k]), change)
    with np.errstate(over="ignore"):
        expected = exact.astype(dtype)
    got = of_order(np.full_like(x, order), x)
    assert np.array_equal(np.isfinite(got), np.isfinite(expected))
    kept = np.isfinite(expected)
    room = (16 if dtype == "float64" else 1) * EPSILON[dtype] * scale + np.finfo(dtype).tiny
    assert (np.abs(got[kept] - exact[kept]) <= room[kept]).all()


def test_polygamma_of_no_order():
    orders = np.array([-1, 0.5, 171, np.inf, np.nan])
    assert np.isnan(of_order(orders, np.full(5, 2.0))).all()


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("order", [0, 1, 2, 20, 170])
def test_bessel_functions(order, dtype):
    """Right to a few ulps, and more for high orders, by series, recurrence and expansion."""
    rng = np.random.default_rng(order)
    x = np.exp2(rng.uniform(-10, 9, 60)) * rng.choice([-1, 1], 60)
    x = np.append(x, [3.999, 4.001, 30, 30.1, 700, 712]).astype(dtype)
    largest, room = np.finfo(dtype).max, (6 + order / 4 if dtype == "float64" else 1)
    for scaled, function in ((False, bessel_i), (True, bessel_ie)):
        with mpmath.workprec(100):
            exact = [
                mpmath.besseli(order, value) * (mpmath.exp(-abs(value)) if scaled else 1)
                for value in x.tolist()
            ]
        got = function(np.full_like(x, order), x)
        expected = np.array([float(value) if abs(value) <= largest else np.inf for value in exact])
        kept = np.isfinite(expected)
        np.testing.assert_allclose(
            got[kept], expected[kept], room * EPSILON[dtype], np.finfo(dtype).tiny
        )
        assert np.isinf(got[~kept]).all()
    edges = bessel_ie(np.full(2, order, dtype), np.array([np.inf, np.nan], dtype))
    np.testing.assert_array_equal(edges, [0, np.nan])


@pytest.mark.parametrize("dtype", EPSILON)
def test_zeta(dtype):
    rng = np.random.default_rng(0)
    s = (1 + np.exp2(rng.uniform(-10, 5, 80))).astype(dtype)
    q = np.exp2(rng.uniform(-3, 6, 80)).astype(dtype)
    s, q = np.append(s, s.dtype.type(3)), np.append(q, q.dtype.type(-1.25))
    with mpmath.workprec(400):  # absolute: the numbers are small
        exact = [mpmath.zeta(*pair) for pair in zip(s.tolist(), q.tolist(), strict=True)]
    expected = np.array([float(mpmath.re(value)) for value in exact])
    room = 12 if dtype == "float64" else 1
    np.testing.assert_allclose(zeta(s, q), expected, room * EPSILON[dtype], np.finfo(dtype).tiny)
    s, q = np.array([1, 0.5, 2, 2.5, 2], dtype), np.array([2, 1, -3, -0.5, np.inf], dtype)
    np.testing.assert_array_equal(zeta(s, q), np.array([np.inf, np.nan, np.inf, np.nan, 0]))


@pytest.mark.parametrize("order", [-1, 0.5, 171, np.nan])
def test_bessel_functions_of_no_order(order):
    assert np.isnan(bessel_i(np.array([order]), np.ones(1))).all()
    assert np.isnan(bessel_ie(np.array([order]), np.ones(1))).all()


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("order", [0, 1, -3, 20, 120])
def test_bessel_functions_of_all_kinds(order, dtype):
    """To a few ulps of the value, or of the amplitude where J and Y oscillate; more at high orders.

    Beyond float32's range of orders the values overflow, or vanish.
    """
    rng = np.random.default_rng(abs(order))
    x = np.exp2(rng.uniform(-12, 9, 24))
    x = np.append(x, [0.999, 1.001, 7.99, 8.01, 119.5, 701.0, 1e10]).astype(dtype)
    room = (5 + abs(order) / 3 if dtype == "float64" else 1) * EPSILON[dtype]
    info = np.finfo(dtype)
    for name in ("bessel_j", "bessel_y", "bessel_k", "bessel_ke"):
        function = Elementwise(name, getattr(cylinder, name), 2, "float")
        got = function(np.full_like(x, order), x).astype("d")
        for value, result in zip(x.tolist(), got.tolist(), strict=True):
            with mpmath.workprec(160):
                if name == "bessel_ke":
                    exact = mpmath.besselk(order, value) * mpmath.exp(value)
                else:
                    exact = getattr(mpmath, name.replace("_", ""))(order, value)
            if abs(exact) > float(info.max):
                assert result == float(mpmath.sign(exact)) * np.inf, (name, value)
                continue
            oscillates = name in ("bessel_j", "bessel_y") and value > abs(order)
            scale = max(abs(exact), np.sqrt(2 / np.pi / value) if oscillates else 0)
            error = abs(result - exact)
            assert error <= room * scale + float(info.tiny), (name, value, result, exact)


def test_bessel_functions_of_orders_close_to_the_argument():
    """By their Wronskian: the second kind comes upwards from order 0, the first may not."""
    first = Elementwise("bessel_j", cylinder.bessel_j, 2, "float")
    second = Elementwise("bessel_y", cylinder.bessel_y, 2, "float")
    n = np.array([9_999.0, 9_999.0, 1_000.0, 9_000.0])
    x = np.array([9_990.0, 1e4, 995.0, 8_000.0])
    wronskian = first(n + 1, x) * second(n, x) - first(n, x) * second(n + 1, x)
    np.testing.assert_allclose(wronskian, 2 / np.pi / x, 1e-11)
    assert np.isnan(first(np.array([0.5, 10_001.0, np.nan]), np.ones(3))).all()


@pytest.mark.parametrize("dtype", EPSILON)
def test_derivatives_of_dawsons_integral(dtype):
    """To 4 ulps, but where the recurrence cancels, about its zeros and before the series serves."""
    function = Elementwise("dawson_derivative", integrals.dawson_derivative, 2, "float")
    x = np.array([1e-9, 0.3, 0.8, 1.6, 2.9, 3.1, 4.9, 5.1, 6.3, 6.5, 30.0, 1e4, 1e9], dtype)
    for order, digits in ((0, 1e-15), (1, 3e-14), (2, 3e-12)):
        exact = [dawson_derivative(order, value) for value in x.tolist()]
        got = function(np.full_like(x, order), x)
        np.testing.assert_allclose(got, exact, max(digits, 0.6 * EPSILON[dtype]))
        far = x >= 6.5
        room = (6 if dtype == "float64" else 1) * EPSILON[dtype]
        np.testing.assert_allclose(got[far], np.array(exact)[far], room)


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("order", [0, 1, 2, 3, 20])
def test_derivatives_of_spences_function(order, dtype):
    function = Elementwise("spence_derivative", integrals.spence_derivative, 2, "float")
    near = 1 + np.array([-0.3, -1e-3, -1e-7, 0, 1e-7, 1e-3, 0.3])
    x = np.append(near, [1e-3, 0.249, 0.251, 0.499, 1.99, 2.01, 7.9, 8.1, 50.0]).astype(dtype)
    exact = [spence_derivative(order, value) for value in x.tolist()]
    room = (6 + 4 * order if dtype == "float64" else 1) * EPSILON[dtype]
    with np.errstate(over="ignore"):
        expected = np.array(exact).astype(dtype)
    np.testing.assert_allclose(function(np.full_like(x, order), x), expected, room)


@pytest.mark.parametrize("order", [-5.25, -0.5, 0.5, 24.5, 120.25])
def test_modified_bessel_functions_of_real_orders(order):
    """By the power series, Hankel's and Debye's expansions: to 13 digits."""
    x = np.array([1e-3, 0.7, 4, 31, 599.0, 601.0, 690.0, 1e4])
    exact = [mpmath.besseli(order, value) for value in x.tolist()]
    for name in ("bessel_iv", "bessel_ive"):
        function = Elementwise(name, getattr(cylinder, name), 2, "float")
        kept = 7 if name == "bessel_iv" else 8
        expected = [
            float(value * (mpmath.exp(-at) if name == "bessel_ive" else 1))
            for value, at in zip(exact[:kept], x.tolist(), strict=False)
        ]
        got = function(np.full_like(x, order), x)[:kept]
        np.testing.assert_allclose(got, expected, 2e-13, 1e-300)
