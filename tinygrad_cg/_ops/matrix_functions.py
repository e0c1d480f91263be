"""Exponential, logarithm and square root of square matrices.

The derivative of a function f of matrices stands in f itself: of [[a, e], [0, a]] it is
[[f(a), d], [0, f(a)]], where d is the derivative at ``a`` along e (N. Higham, "Functions of
Matrices", 2008, theorem 3.6). So the rules are f of a matrix of twice the size, at every order, and
are right for equal eigenvalues and for matrices without a basis of eigenvectors.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .._core import devices
from .._core.primitive import Primitive
from .._core.tensor import Tensor
from ..errors import InvalidArgumentError
from .creation import zeros_like
from .define import Wrong, public
from .matrices import (
    MATRIX,
    NOT_SQUARE,
    POSITIVE,
    columns,
    largest,
    of_matrices,
    rows,
    square_matrices,
)
from .shape import concatenate, swap_last


def _each(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Apply a function of one matrix to each of a stack."""

    def run(x: np.ndarray) -> np.ndarray:
        out = np.empty_like(x)
        for index in np.ndindex(x.shape[:-2]):
            out[index] = function(x[index])
        return out

    return run


# Exponential: scaling and squaring with Padé approximants (Higham, "The scaling and squaring method
# for the matrix exponential revisited", 2005).

_PADE_13 = (
    *(64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800),
    *(129060195264000, 10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960),
    *(16380, 182, 1),
)
_PADE_NORM = 5.371920351148152


def _exponential(x: np.ndarray) -> np.ndarray:
    size = x.shape[-1]
    norm = float(largest(np.abs(x).sum(0), 0))
    if not np.isfinite(norm):
        return np.full_like(x, np.nan)
    squarings = max(0, math.ceil(math.log2(norm / _PADE_NORM))) if norm else 0
    x = x / 2.0**squarings
    unit = devices.library_of(x).eye(size, dtype=x.dtype)
    second = x @ x
    fourth = second @ second
    sixth = fourth @ second
    b = [float(number) for number in _PADE_13]
    odd = sixth @ (b[13] * sixth + b[11] * fourth + b[9] * second)
    odd = x @ (odd + b[7] * sixth + b[5] * fourth + b[3] * second + b[1] * unit)
    even = sixth @ (b[12] * sixth + b[10] * fourth + b[8] * second)
    even = even + b[6] * sixth + b[4] * fourth + b[2] * second + b[0] * unit
    result = np.linalg.solve(even - odd, even + odd)
    for _ in range(squarings):
        result = result @ result
    return result


# Square root: Newton's iteration in its product form, with scaling by the determinant (Higham,
# 2008, section 6.3). It needs no Schur form, and no eigenvectors.

_STEPS = 60


def _square_root(x: np.ndarray) -> np.ndarray:
    with contextlib.suppress(np.linalg.LinAlgError), np.errstate(all="ignore"):
        root = _newton(x)
        if root is not None:
            return root
    raise np.linalg.LinAlgError(
        "Newton's iteration does not converge: the matrix has an eigenvalue that is 0 or a "
        "negative number"
    )


def _newton(x: np.ndarray) -> np.ndarray | None:
    size = x.shape[-1]
    if not np.isfinite(x).all():
        return np.full_like(x, np.nan)
    unit = devices.library_of(x).eye(size, dtype=x.dtype)
    eps = float(np.finfo(x.dtype).eps)
    product, root, last = x, x, np.inf
    for _ in range(_STEPS):
        inverse = np.linalg.inv(product)
        scale = np.exp(-np.linalg.slogdet(product)[1] / (2 * size)) if last > 1e-2 else 1.0
        square_scale, change = scale * scale, np.abs(product - unit).sum(0).max()
        if not np.isfinite(change):
            break
        if change <= size * eps or (change <= 1e3 * size * eps and change >= last / 2):
            return root
        last = change
        root = root @ (unit + inverse / square_scale) * (0.5 * scale)
        product = 0.5 * (unit + (square_scale * product + inverse / square_scale) / 2)
    return None


# Logarithm: inverse scaling and squaring, with a Padé approximant in partial fractions (Higham,
# 2008, section 11.4).

_NEAR_UNIT = 0.35


@cache
def _fractions() -> tuple[np.ndarray, np.ndarray]:
    """Return poles and weights: Gauss's formula for the integral of ``x / (1 + t x)`` over t."""
    points, weights = np.polynomial.legendre.leggauss(16)
    return (points + 1) / 2, weights / 2


def _logarithm(x: np.ndarray) -> np.ndarray:
    unit = devices.library_of(x).eye(x.shape[-1], dtype=x.dtype)
    if not np.isfinite(x).all():
        return np.full_like(x, np.nan)
    roots = 0
    while largest(np.abs(x - unit).sum(0), 0) > _NEAR_UNIT:
        x = _square_root(x)
        roots += 1
        if roots > 100:
            raise np.linalg.LinAlgError("the square roots do not approach the identity")
    x = x - unit
    total = np.zeros_like(x)
    for point, weight in zip(*_fractions(), strict=True):
        total += weight * np.linalg.solve(unit + point * x, x)
    return total * 2.0**roots


def _rule_of(primitive: Callable[[], Primitive]) -> Callable[..., Tensor]:
    def rule(dy: Tensor, x: Tensor) -> Tensor:
        transposed, size = swap_last(x), x._data.shape[-1]
        above = concatenate([transposed, dy], -1)
        below = concatenate([zeros_like(transposed), transposed], -1)
        result = primitive()(concatenate([above, below], -2))
        return rows(columns(result, size), 0, size)

    return rule


_expm = of_matrices(
    "expm",
    _each(_exponential),
    _rule_of(lambda: _expm),
    errors=(NOT_SQUARE,),
)
_sqrtm = of_matrices(
    "sqrtm",
    _each(_square_root),
    _rule_of(lambda: _sqrtm),
    samples=(MATRIX, POSITIVE),
    errors=(NOT_SQUARE, Wrong(InvalidArgumentError, "sqrtm: .*converge", (-np.eye(2),))),
)
_logm = of_matrices(
    "logm",
    _each(_logarithm),
    _rule_of(lambda: _logm),
    samples=(MATRIX, POSITIVE),
    errors=(NOT_SQUARE, Wrong(InvalidArgumentError, "logm: .*converge", (-np.eye(2),))),
)


@public(_expm)
def expm(x: Any) -> Tensor:
    """Return the exponential of each square matrix: the sum of its powers over factorials.

    `x` has shape (..., n, n); integers become float64.
    """
    return _expm(square_matrices("expm", x))


@public(_sqrtm)
def sqrtm(x: Any) -> Tensor:
    """Return the square root of each square matrix whose eigenvalues have positive real parts.

    `x` has shape (..., n, n); integers become float64. Raises errors.MatrixError for a matrix
    with an eigenvalue that is 0 or a negative number, since it has no principal square root.
    """
    return _sqrtm(square_matrices("sqrtm", x))


@public(_logm)
def logm(x: Any) -> Tensor:
    """Return the principal logarithm of each square matrix: `expm` returns the matrix.

    Shapes, dtypes and errors as for `sqrtm`.
    """
    return _logm(square_matrices("logm", x))
