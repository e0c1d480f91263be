"""Error functions, Bessel functions, what belongs to the gamma function, and sinc."""

from __future__ import annotations

import math
from typing import Any

from .._core.tensor import Tensor
from .comparison import isnan
from .define import ANY, Real
from .elementwise import (
    POSITIVE,
    absolute,
    add,
    divide_upstream,
    exp,
    multiply,
    multiply_upstream,
    negative,
    of_order,
    of_real,
    sign,
    square,
    subtract,
    where,
)

SLOPE = 2 / math.sqrt(math.pi)  # of erf at 0


def _bell(x: Tensor) -> Tensor:
    """Return the derivative of erf."""
    return multiply(exp(negative(square(x))), SLOPE)


def _bell_of_any(x: Tensor) -> Tensor:
    """Return the derivative of erf; a zero upstream is zero at infinities and NaN, too."""
    outside = isnan(x)
    safe = where(outside, 0, x)
    bell = multiply(exp(negative(multiply_upstream(safe, safe))), SLOPE)
    return where(outside, x, bell)


erf = of_real(
    "erf",
    "Return the error function, 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x.",
    vjp=lambda dy, x: multiply_upstream(dy, _bell(x)),
    spellings=("math.erf", "keras.ops.erf"),
)
erfc = of_real(
    "erfc",
    "Return 1 - erf(x), accurate for small results.",
    vjp=lambda dy, x: negative(multiply_upstream(dy, _bell(x))),
    spellings=("math.erfc",),
)
erfinv = of_real(
    "erfinv",
    "Return the number whose erf is x: infinite at -1 and 1, NaN beyond.",
    vjp=lambda dy, out: divide_upstream(dy, _bell_of_any(out)),
    ulps=(4.0, 1.0),
    spellings=("math.erfinv", "keras.ops.erfinv"),
    samples=(Real(-0.9, 0.9),),
)
erfcinv = of_real(
    "erfcinv",
    "Return the number whose erfc is x, accurate for small x: infinite at 0 and 2, NaN beyond.",
    vjp=lambda dy, out: negative(divide_upstream(dy, _bell_of_any(out))),
    ulps=(4.0, 1.0),
    spellings=("math.erfcinv",),
    samples=(Real(0.1, 1.9),),
)


def bessel_i0(x: Any) -> Tensor:
    """Return the modified Bessel function of the first kind of order 0."""
    return bessel_i(0, x)


def bessel_i1(x: Any) -> Tensor:
    """Return the modified Bessel function of the first kind of order 1."""
    return bessel_i(1, x)


def bessel_i0e(x: Any) -> Tensor:
    """Return ``exp(-abs(x)) * bessel_i0(x)``, which does not overflow."""
    return bessel_ie(0, x)


def bessel_i1e(x: Any) -> Tensor:
    """Return ``exp(-abs(x)) * bessel_i1(x)``, which does not overflow."""
    return bessel_ie(1, x)


lgamma = of_real(
    "lgamma",
    "Return the logarithm of the absolute value of gamma(x); infinite at 0, -1, -2, ...",
    vjp=lambda dy, x: multiply_upstream(dy, digamma(x)),
    ulps=(6.0, 1.0),
    spellings=("math.lgamma",),
    samples=(POSITIVE,),
)
digamma = of_real(
    "digamma",
    "Return the derivative of lgamma(x); NaN at -1, -2, ..., and infinite at 0.",
    vjp=lambda dy, x: multiply_upstream(dy, polygamma(1, x)),
    ulps=(4.0, 1.0),
    spellings=("math.digamma",),
    samples=(POSITIVE,),
)
polygamma = of_order(
    "polygamma",
    "Return the derivative of order `x` of digamma at `y`, for whole orders from 0 to 170; "
    "NaN for others. Integers give float64. No gradient flows to the order.",
    vjp=(None, lambda dy, x, y: multiply_upstream(dy, polygamma(add(x, 1), y))),
    samples=(Real(0.0, 1.0), Real(0.5, 3.0)),
)
sinc_derivative = of_order(
    "sinc_derivative",
    "Return the derivative of order `x` of sinc at `y`, for whole orders from 0 to 170; NaN "
    "for others. Integers give float64. No gradient flows to the order.",
    vjp=(None, lambda dy, x, y: multiply_upstream(dy, sinc_derivative(add(x, 1), y))),
    samples=(Real(0.0, 1.0), ANY),
)
sinc = of_real(
    "sinc",
    "Return sin(pi x) / (pi x), and 1 at 0; NaN for infinities.",
    vjp=lambda dy, x: multiply_upstream(dy, sinc_derivative(1, x)),
    ulps=(3.0, 1.0),
    spellings=("keras.ops.sinc", "numpy.sinc"),
)


def _mean_of_neighbours(function: Any, n: Tensor, x: Tensor) -> Tensor:
    """Return half of the sum of the functions of orders one less and one more; I(-1) is I(1)."""
    return multiply(add(function(absolute(subtract(n, 1)), x), function(add(n, 1), x)), 0.5)


bessel_i = of_order(
    "bessel_i",
    "Return the modified Bessel function of the first kind of order `x` at `y`, for whole orders "
    "from 0 to 170; NaN for others. Integers give float64. No gradient flows to the order.",
    vjp=(None, lambda dy, x, y: multiply_upstream(dy, _mean_of_neighbours(bessel_i, x, y))),
    samples=(Real(0.0, 1.0), ANY),
)
bessel_ie = of_order(
    "bessel_ie",
    "Return exp(-abs(y)) times the modified Bessel function of the first kind of order `x` at `y`, "
    "for whole orders from 0 to 170; NaN for others. Integers give float64. No gradient flows to "
    "the order.",
    vjp=(
        None,
        lambda dy, x, y, out: multiply_upstream(
            dy, subtract(_mean_of_neighbours(bessel_ie, x, y), multiply(sign(y), out))
        ),
    ),
    samples=(Real(0.0, 1.0), POSITIVE),
)
