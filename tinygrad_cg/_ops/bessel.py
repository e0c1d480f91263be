"""Bessel functions of both kinds, and modified ones of the second; of the first of real order."""

from __future__ import annotations

from typing import Any

from tinygrad_cg_kernels.elementary import cylinder as kernels

from .._core.tensor import Tensor
from .define import Real
from .elementwise import POSITIVE, add, multiply, multiply_upstream, of_order, sign, subtract

_ORDERS = (
    "for whole orders up to 10,000 in size; NaN for others. Integers give float64. No gradient "
    "flows to the order; the gradient with respect to `y` is right at every order."
)
_REAL_ORDERS = (
    "for orders from -170 to 170, NaN for others, and below 0 unless the order is whole. Right "
    "to 13 digits. Integers give float64. No gradient flows to the order; the gradient with "
    "respect to `y` is right at every order."
)


def _difference(function: Any, n: Tensor, x: Tensor) -> Tensor:
    """Return half the difference of the functions of orders one less and one more."""
    return multiply(subtract(function(subtract(n, 1), x), function(add(n, 1), x)), 0.5)


def _mean(function: Any, n: Tensor, x: Tensor) -> Tensor:
    """Return half the sum of the functions of orders one less and one more."""
    return multiply(add(function(subtract(n, 1), x), function(add(n, 1), x)), 0.5)


bessel_j = of_order(
    "bessel_j",
    f"Return the Bessel function of the first kind of order `x` at `y`, {_ORDERS} NaN at "
    "infinities, as in SciPy.",
    kernel=kernels.bessel_j,
    vjp=(None, lambda dy, x, y: multiply_upstream(dy, _difference(bessel_j, x, y))),
    samples=(Real(0.0, 1.0), Real(-2.0, 2.0)),
)
bessel_y = of_order(
    "bessel_y",
    f"Return the Bessel function of the second kind of order `x` at `y`, {_ORDERS} Infinite at "
    "0, NaN below and at infinity, as in SciPy.",
    kernel=kernels.bessel_y,
    vjp=(None, lambda dy, x, y: multiply_upstream(dy, _difference(bessel_y, x, y))),
    samples=(Real(0.0, 1.0), POSITIVE),
)
bessel_k = of_order(
    "bessel_k",
    f"Return the modified Bessel function of the second kind of order `x` at `y`, {_ORDERS} "
    "Infinite at 0, NaN below.",
    kernel=kernels.bessel_k,
    vjp=(None, lambda dy, x, y: multiply_upstream(dy, subtract(0, _mean(bessel_k, x, y)))),
    samples=(Real(0.0, 1.0), POSITIVE),
)
bessel_ke = of_order(
    "bessel_ke",
    "Return exp(y) times the modified Bessel function of the second kind of order `x` at `y`, "
    f"{_ORDERS}",
    kernel=kernels.bessel_ke,
    vjp=(
        None,
        lambda dy, x, y, out: multiply_upstream(dy, subtract(out, _mean(bessel_ke, x, y))),
    ),
    samples=(Real(0.0, 1.0), POSITIVE),
)
bessel_iv = of_order(
    "bessel_iv",
    f"Return the modified Bessel function of the first kind of order `x` at `y`, {_REAL_ORDERS}",
    kernel=kernels.bessel_iv,
    vjp=(None, lambda dy, x, y: multiply_upstream(dy, _mean(bessel_iv, x, y))),
    samples=(Real(-1.6, 4.4), POSITIVE),
)
bessel_ive = of_order(
    "bessel_ive",
    "Return exp(-abs(y)) times the modified Bessel function of the first kind of order `x` at `y`, "
    f"{_REAL_ORDERS}",
    kernel=kernels.bessel_ive,
    vjp=(
        None,
        lambda dy, x, y, out: multiply_upstream(
            dy, subtract(_mean(bessel_ive, x, y), multiply(sign(y), out))
        ),
    ),
    samples=(Real(-1.6, 4.4), POSITIVE),
)


def bessel_j0(x: Any) -> Tensor:
    """Return the Bessel function of the first kind of order 0.

    Elementwise; the shape of `x`, and its dtype (integers give float64). Right to 4 units in the
    last place of the larger of the value and sqrt(2 / (pi x)), with gradients at every order. NaN
    at infinities. Modelled on ``tf.math.special.bessel_j0``, by approximations of our own.
    """
    return bessel_j(0, x)


def bessel_j1(x: Any) -> Tensor:
    """Return the Bessel function of the first kind of order 1; otherwise as `bessel_j0`."""
    return bessel_j(1, x)


def bessel_y0(x: Any) -> Tensor:
    """Return the Bessel function of the second kind of order 0.

    Elementwise; -inf at 0, and NaN below (as in SciPy; TensorFlow has -inf) and at infinity.
    Otherwise as `bessel_j0`.
    """
    return bessel_y(0, x)


def bessel_y1(x: Any) -> Tensor:
    """Return the Bessel function of the second kind of order 1; otherwise as `bessel_y0`."""
    return bessel_y(1, x)


def bessel_k0(x: Any) -> Tensor:
    """Return the modified Bessel function of the second kind of order 0.

    Elementwise; the shape of `x`, and its dtype (integers give float64). Right to 4 units in the
    last place, with gradients at every order. Infinite at 0, and NaN below (as in SciPy; TensorFlow
    has inf). Modelled on ``tf.math.special.bessel_k0``, by approximations of our own.
    """
    return bessel_k(0, x)


def bessel_k1(x: Any) -> Tensor:
    """Return the modified Bessel function of the second kind of order 1; see `bessel_k0`."""
    return bessel_k(1, x)


def bessel_k0e(x: Any) -> Tensor:
    """Return ``exp(x) * bessel_k0(x)``, which does not underflow."""
    return bessel_ke(0, x)


def bessel_k1e(x: Any) -> Tensor:
    """Return ``exp(x) * bessel_k1(x)``, which does not underflow."""
    return bessel_ke(1, x)
