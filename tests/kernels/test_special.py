"""Functions of an order, lgamma and digamma below 0: what `tests.support.accuracy` leaves out."""

import mpmath
import numpy as np
import pytest

from tests.support.references import polygamma
from tinygrad_cg_kernels import elementary
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
    """Right to a few ulps; below 0 of the sums on both sides whose difference it may be."""
    rng = np.random.default_rng(order)
    x = np.exp2(rng.uniform(-3, 8, 100)).astype(dtype)
    x = np.concatenate([x, -rng.uniform(0.1, 6, 50).astype(dtype)])
    fraction = x - np.floor(x)
    exact, scale = np.empty(x.size), np.empty(x.size)
    with mpmath.workprec(100):
        for k, (value, part) in enumerate(zip(x.tolist(), fraction.tolist(), strict=True)):
            exact[k] = polygamma(order, value)
            sides = abs(polygamma(order, part)) + abs(polygamma(order, 1 - part))
            scale[k] = abs(exact[k]) if value > 0 else sides
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
