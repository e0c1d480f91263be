"""Comparisons, logic, and tests for infinities and nan."""

import numpy as np

from tinygrad_cg_kernels.runtime.compile import jitable, of_numpy
from tinygrad_cg_kernels.runtime.intrinsics import float_absolute

INF = np.inf


@jitable
def equal(x, y):
    return x == y


@jitable
def not_equal(x, y):
    return x != y


@jitable
def less(x, y):
    return x < y


@jitable
def less_equal(x, y):
    return x <= y


@jitable
def greater(x, y):
    return x > y


@jitable
def greater_equal(x, y):
    return x >= y


@jitable
def logical_and(x, y):
    """Return whether both are true."""
    return x & y


@jitable
def logical_or(x, y):
    """Return whether either is true."""
    return x | y


@jitable
def logical_xor(x, y):
    """Return whether exactly one is true."""
    return x ^ y


@jitable
def logical_not(x):
    """Return whether x is false."""
    return not x


@jitable
def isnan(x):
    """Return whether x is nan."""
    return x != x


def _isfinite_complex(x):
    return float_absolute(x.real) < INF and float_absolute(x.imag) < INF


def _isinf_complex(x):
    return float_absolute(x.real) == INF or float_absolute(x.imag) == INF


isfinite = of_numpy(
    __name__,
    "isfinite",
    float=lambda x: float_absolute(x) < INF,
    complex=_isfinite_complex,
    exact=lambda x: True,
)
isinf = of_numpy(
    __name__,
    "isinf",
    float=lambda x: float_absolute(x) == INF,
    complex=_isinf_complex,
    exact=lambda x: False,
)
