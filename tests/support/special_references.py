"""Special functions of Python numbers, by mpmath and with this library's values at the edges."""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np


def each(function: Callable[..., float]) -> Callable[..., np.ndarray]:
    """A NumPy function of one of Python numbers; integers give float64."""

    def call(*arrays: Any) -> np.ndarray:
        dtype = arrays[0].dtype if arrays[0].dtype.kind == "f" else np.dtype("d")
        return np.vectorize(function, otypes=[dtype])(*[array.astype("d") for array in arrays])

    return call


def _is_pole(x: float) -> bool:
    return x <= 0 and x == math.floor(x) if math.isfinite(x) else x == -math.inf


def lgamma(x: float) -> float:
    if _is_pole(x) or not math.isfinite(x):
        return abs(x) if math.isnan(x) else math.inf
    return float(mpmath.re(mpmath.loggamma(x)))  # math.lgamma loses digits near 1 and 2


def erfinv(x: float) -> float:
    if abs(x) == 1:
        return math.copysign(math.inf, x)
    return math.copysign(float(mpmath.erfinv(x)), x) if abs(x) < 1 else math.nan


def polygamma(n: float, x: float) -> float:
    if not 0 <= n <= 170 or n != math.floor(n) or math.isnan(x) or x == -math.inf:
        return math.nan
    if _is_pole(x):
        return math.inf if n % 2 else (math.copysign(math.inf, -x) if x == 0 else math.nan)
    if x == math.inf:
        return 0.0 if n else math.inf
    return float(mpmath.psi(int(n), x))


def digamma(x: float) -> float:
    return polygamma(0, x)
