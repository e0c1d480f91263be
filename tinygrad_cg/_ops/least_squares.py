"""Pseudo-inverse, least squares and rank of matrices of any shape.

The rule is that of G. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear
least squares problems whose variables separate" (1973). It holds where the rank does not change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime import promotion

from .._core import devices
from .._core.conversion import convert, convert_operands
from .._core.tensor import Aval, Tensor
from .comparison import greater
from .define import Case, operation
from .elementwise import add, multiply, subtract
from .factorizations import svdvals
from .matrices import adjoint, by_lapack, matrices, of_matrices, product, result_dtype, solution_of
from .reductions import reduce_max, reduce_sum
from .shape import cast, expand_dims
from .validation import broadcast_shapes

_TALL = np.array([[1.0, 0.5], [-0.25, 2.0], [0.75, -1.0]])


def _pinv_gradient(dy: Tensor, x: Tensor, inverse: Tensor) -> Tensor:
    outer, upstream = adjoint(inverse), adjoint(dy)
    direct = product(product(outer, dy), outer)
    left = product(upstream, product(inverse, outer))
    left = subtract(left, product(x, product(inverse, left)))
    right = product(product(outer, inverse), upstream)
    right = subtract(right, product(product(right, inverse), x))
    return subtract(add(left, right), direct)


_pinv = of_matrices(
    "pinv",
    lambda x, rcond: np.linalg.pinv(x, rcond),
    lambda dy, x, out: _pinv_gradient(dy, x, out),
    lambda shape, rcond: (*shape[:-2], shape[-1], shape[-2]),
    samples=(_TALL, np.stack([_TALL.T, 1.5 - _TALL.T])),
    params=({"rcond": 1e-15},),
    analytic=False,
)


def relative_tolerance(x: Tensor) -> float:
    """Return the bound below which singular values count as 0, by the largest: NumPy's."""
    return max(x._data.shape[-2:]) * float(np.finfo(result_dtype(x.dtype)).eps)


def pinv(x: Any, rtol: Any = None) -> Tensor:
    """Return the Moore-Penrose pseudo-inverse of each matrix of `x`, of shape (..., m, n).

    Singular values below `rtol` times the largest count as 0: a number, by default the larger of m
    and n times the dtype's eps. The derivative assumes a constant rank. Integers become float64.
    Raises InvalidArgumentError for fewer than two dimensions.
    """
    x = matrices("pinv", x)
    bound = relative_tolerance(x) if rtol is None else float(rtol)
    return _pinv(x, rcond=bound)


def _run_lstsq(x: np.ndarray, y: np.ndarray, rcond: float) -> np.ndarray:
    leading = promotion.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = (np.broadcast_to(array, (*leading, *array.shape[-2:])) for array in (x, y))
    shape = *leading, x.shape[-1], y.shape[-1]
    out = devices.library_of(x).empty(shape, np.result_type(x, y))
    for index in np.ndindex(leading):
        out[index] = np.linalg.lstsq(x[index], y[index], rcond)[0]
    return out


_lstsq = operation(
    "lstsq",
    by_lapack("lstsq", _run_lstsq),
    lambda x, y, rcond: Aval(
        (*broadcast_shapes("lstsq", x.shape[:-2], y.shape[:-2]), x.shape[-1], y.shape[-1]),
        result_dtype(x.dtype, y.dtype),
    ),
    (
        lambda dy, x, y, rcond: _pinv_gradient(product(dy, adjoint(y)), x, _pinv(x, rcond=rcond)),
        lambda dy, x, rcond: product(adjoint(_pinv(x, rcond=rcond)), dy),
    ),
    inputs=("x", "y"),
    kind="contraction",
    core=(2, 2),
    analytic=False,
    samples=[
        Case(((3, 2), (3, 2)), {"rcond": 1e-15}, {0: _TALL}),
        Case(((2, 2, 3), (2, 1)), {"rcond": 1e-15}, {0: np.stack([_TALL.T, 1.5 - _TALL.T])}),
    ],
)


def lstsq(x: Any, y: Any, rtol: Any = None) -> Tensor:
    """Return the z of least length for which the length of ``matmul(x, z) - y`` is the least.

    `x` has shape (..., m, n), `y` (..., m, k), or (m,) for one column; z (..., n, k), or (n,). See
    `pinv` for `rtol`, the derivative and dtypes. Raises InvalidArgumentError for wrong shapes.
    """
    x, y = convert_operands((x, y))
    bound = relative_tolerance(matrices("lstsq", x)) if rtol is None else float(rtol)
    return solution_of(_lstsq, matrices("lstsq", x), y, rcond=bound)


def matrix_rank(x: Any, tol: Any = None, rtol: Any = None) -> Tensor:
    """Return the number (int64) of singular values above `tol`, of each matrix of `x`.

    By default above `rtol` times the largest: the larger size of the matrix times eps. A tensor of
    fewer than two dimensions has rank 1, or 0 if it is zero. It has no gradient.
    """
    x = convert(x)
    if x._data.ndim < 2:
        return cast(reduce_max(cast(x != 0, np.int64)), np.int64)
    values = svdvals(x)
    if tol is None:
        bound = relative_tolerance(x) if rtol is None else rtol
        tol = multiply(reduce_max(values, -1, True), bound)
    else:
        tol = expand_dims(tol, -1)
    return reduce_sum(cast(greater(values, tol), np.int64), -1)
