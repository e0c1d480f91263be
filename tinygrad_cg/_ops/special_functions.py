"""Error functions, and what belongs to the gamma function: one record each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary as kmath

from .._core.tensor import Tensor
from .define import Real, binary, unary
from .elementwise import ANY, POSITIVE, add, exp, multiply, negative, square

# What the kernels must equal, at the speed of Python: by other methods than theirs.


def _each(function: Callable[..., float]) -> Callable[..., np.ndarray]:
    """A NumPy function of one of Python numbers."""
    return np.vectorize(function, otypes=[float])


def _erfinv(x: float) -> float:
    """By quantiles of the normal distribution."""
    from statistics import NormalDist  # only tests call this

    if abs(x) < 1:
        return NormalDist().inv_cdf((1 + x) / 2) / math.sqrt(2)
    return x * math.inf if abs(x) == 1 else math.nan


def _lgamma(x: float) -> float:
    is_pole = x == -math.inf or (x <= 0 and x == math.floor(x))
    return math.inf if is_pole else math.lgamma(x)


def _polygamma(order: Any, x: Any) -> Any:
    """The sum of 60 terms, and of the rest by Euler and Maclaurin."""
    order, x = np.broadcast_arrays(np.asarray(order, "g"), np.asarray(x, "g"))
    s, far = order + 1, x + 60
    third = s * (s + 1) * (s + 2) / far**3
    fifth = third * (s + 3) * (s + 4) / far**2
    rest = far**-order * (1 / order + (0.5 + s / far / 12 - third / 720 + fifth / 30240) / far)
    digamma = np.log(far) - (0.5 + (1 / 12 - (1 / 120 - far**-2 / 252) / far**2) / far) / far
    terms = sum((x + k) ** -s for k in range(60))
    factorial = np.asarray(_each(lambda n: math.gamma(n + 1) if 0 <= n <= 170 else math.nan)(order))
    value = np.where(order % 2 == 1, 1, -1) * factorial * (terms + rest)
    value = np.where(order == 0, digamma - terms, value)
    pole = (x <= 0) & (x == np.floor(x))
    at_pole = np.where(order % 2 == 1, np.inf, np.where(x == 0, -1 / x, np.nan))
    value = np.where(pole, at_pole, value)
    value = np.where((x == np.inf) & (order > 0), 0, value)
    known = (order >= 0) & (order <= 170) & (order == np.floor(order)) & (x > -np.inf)
    return np.where(known, value, np.nan).astype(float)


SLOPE = 2 / math.sqrt(math.pi)  # of erf at 0


def _bell(x: Tensor) -> Tensor:
    """The derivative of erf."""
    return multiply(exp(negative(square(x))), SLOPE)


erf = unary(
    "erf",
    kmath.erf,
    doc="The error function, 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x.",
    vjp=lambda dy, x: multiply(dy, _bell(x)),
    reference=_each(math.erf),
    samples=(ANY,),
)
erfc = unary(
    "erfc",
    kmath.erfc,
    doc="1 - erf(x), accurate where that is small.",
    vjp=lambda dy, x: negative(multiply(dy, _bell(x))),
    reference=_each(math.erfc),
    samples=(ANY,),
)
erfinv = unary(
    "erfinv",
    kmath.erfinv,
    doc="The number whose erf is x: infinite at -1 and 1, NaN beyond.",
    vjp=lambda dy, out: multiply(dy, multiply(exp(square(out)), 1 / SLOPE)),
    reference=_each(_erfinv),
    samples=(Real(-0.9, 0.9),),
)
lgamma = unary(
    "lgamma",
    kmath.lgamma,
    doc="The logarithm of the absolute value of gamma(x); infinite at 0, -1, -2, ...",
    vjp=lambda dy, x: multiply(dy, digamma(x)),
    reference=_each(_lgamma),
    samples=(POSITIVE,),
)
digamma = unary(
    "digamma",
    kmath.digamma,
    doc="The derivative of lgamma(x); NaN at -1, -2, ..., and infinite at 0.",
    vjp=lambda dy, x: multiply(dy, polygamma(1, x)),
    reference=lambda x: _polygamma(0, x),
    samples=(POSITIVE,),
)
polygamma = binary(
    "polygamma",
    kmath.polygamma,
    doc="The derivative of order `x` of digamma at `y`, for whole orders from 0 to 170; NaN for "
    "others. Integers give float64. No gradient flows to the order.",
    kind="float",
    vjp=(None, lambda dy, x, y: multiply(dy, polygamma(add(x, 1), y))),
    reference=_polygamma,
    samples=(Real(0.0, 1.0), Real(0.5, 3.0)),
)
