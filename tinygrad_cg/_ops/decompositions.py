"""Inverse, solution, determinant and Cholesky factor of square matrices, by LAPACK.

The rules are those of M. Giles, "An extended collection of matrix derivative results for forward
and reverse mode algorithmic differentiation" (2008), written in operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime.errstate import cast as cast_array
from tinygrad_cg_kernels.runtime.promotion import loop_dtype

from .._core.conversion import convert, convert_operands, promote
from .._core.kinds import is_complex, is_exact
from .._core.primitive import Primitive, apply
from .._core.tensor import Aval, Tensor
from ..errors import InvalidArgumentError, MatrixError
from .define import Case, Wrong, broadcast_shapes, operation, public
from .elementwise import add, multiply, negative, where
from .linear_algebra import _matmul
from .shape import expand_dims, squeeze, swap_last

_MATRIX = np.array([[3.0, 1.0, 0.5], [-1.0, 2.5, 0.25], [0.5, -0.5, 2.0]])
_STACK = np.stack([_MATRIX, np.eye(3) - 0.25 * _MATRIX])
_STACKS = (_MATRIX, _STACK)
_SINGULAR = Wrong(MatrixError, "[Ss]ingular", (np.ones((2, 2)),))
_NOT_SQUARE = Wrong(InvalidArgumentError, "needs square matrices", (np.ones((2, 3)),))
_POSITIVE = np.stack([_MATRIX @ _MATRIX.T, np.eye(3) + 0.1 * _MATRIX.T @ _MATRIX])


def _result_dtype(*dtypes: np.dtype) -> np.dtype:
    """Return the dtype of the result; float64 for integers."""
    dtype = dtypes[0] if len(dtypes) == 1 else promote(*dtypes)
    return np.dtype(np.float64) if is_exact(dtype) else dtype


def _by_lapack(name: str, function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """Run `function` in a dtype that LAPACK has, and cast the result to that of the operands."""

    def run(*arrays: np.ndarray) -> np.ndarray:
        dtype = _result_dtype(*[array.dtype for array in arrays])
        wide = [cast_array(array, loop_dtype(dtype)) for array in arrays]
        try:
            return cast_array(np.asarray(function(*wide)), dtype)
        except np.linalg.LinAlgError as error:
            raise MatrixError(f"{name}: {error}") from None

    return run


def _product(x: Tensor, y: Tensor) -> Tensor:
    return apply(_matmul, (x, y), {})


def _of_matrices(
    name: str, function: Any, vjp: Any, to_scalar: bool = False, samples: Any = _STACKS, **more: Any
) -> Primitive:
    """Return an operation on each matrix of a stack, to a matrix, or to a number if `to_scalar`."""
    return operation(
        name,
        _by_lapack(name, function),
        lambda x: Aval(x.shape[:-2] if to_scalar else x.shape, _result_dtype(x.dtype)),
        None if vjp is None else (vjp,),
        kind="contraction",
        batch=lambda params, size: params,
        core=(2,),
        samples=[Case((one.shape,), {}, {0: one}) for one in samples],
        **more,
    )


def _inverse_rule(dy: Tensor, out: Tensor) -> Tensor:
    transposed = swap_last(out)
    return negative(_product(transposed, _product(dy, transposed)))


def _scaled_inverse(x: Tensor, scale: Tensor) -> Tensor:
    """Return the transposed inverse of each matrix, times a number of its own."""
    return multiply(swap_last(inv(x)), expand_dims(expand_dims(scale, -1), -1))


_inverse = _of_matrices("inverse", np.linalg.inv, _inverse_rule, errors=(_SINGULAR, _NOT_SQUARE))
_det = _of_matrices(
    "determinant",
    np.linalg.det,
    lambda dy, x, out: _scaled_inverse(x, multiply(dy, out)),
    to_scalar=True,
    errors=(_NOT_SQUARE,),
)
_log_abs_det = _of_matrices(
    "log_abs_determinant",
    lambda x: np.linalg.slogdet(x)[1],
    lambda dy, x: _scaled_inverse(x, dy),
    to_scalar=True,
)


_det_sign = _of_matrices(
    "determinant_sign", lambda x: np.linalg.slogdet(x)[0], None, to_scalar=True
)


def _cholesky_rule(dy: Tensor, out: Tensor) -> Tensor:
    """Return the gradient by both triangles alike, since the function takes their mean."""
    transposed = swap_last(out)
    inner = _product(transposed, dy)
    size = out._data.shape[-1]
    halves = np.tri(size) - 0.5 * np.eye(size)  # of the diagonal one half
    lower = where(halves > 0, multiply(inner, halves), 0)
    half = _apply_solve(transposed, swap_last(_apply_solve(transposed, swap_last(lower))))
    return multiply(add(half, swap_last(half)), 0.5)


_cholesky = _of_matrices(
    "cholesky",
    lambda x: np.linalg.cholesky((x + np.swapaxes(x, -1, -2)) / 2),
    _cholesky_rule,
    samples=(_POSITIVE[0], _POSITIVE),
    errors=(
        _NOT_SQUARE,
        Wrong(MatrixError, "cholesky: .* not positive definite", (-np.eye(2),)),
        Wrong(TypeError, "cholesky: complex matrices", (np.eye(2, dtype=complex),)),
    ),
)


_solve = operation(
    "solve",
    _by_lapack("solve", np.linalg.solve),
    lambda x, y: Aval(
        (*broadcast_shapes("solve", x.shape[:-2], y.shape[:-2]), *y.shape[-2:]),
        _result_dtype(x.dtype, y.dtype),
    ),
    (
        lambda dy, x, out: negative(_product(_apply_solve(swap_last(x), dy), swap_last(out))),
        lambda dy, x: _apply_solve(swap_last(x), dy),
    ),
    inputs=("x", "y"),
    kind="contraction",
    batch=lambda params, size: params,
    core=(2, 2),
    samples=[
        Case(((3, 3), (3, 2)), {}, {0: _MATRIX}),
        Case(((2, 3, 3), (3, 1)), {}, {0: _STACK}),
        Case(((3, 3), (2, 3, 2)), {}, {0: _MATRIX}),
    ],
    errors=(
        Wrong(MatrixError, "solve: [Ss]ingular", (np.ones((2, 2)), np.ones(2))),
        Wrong(InvalidArgumentError, "solve: .* do not fit", (np.eye(2), np.ones(3))),
    ),
)


def _apply_solve(x: Tensor, y: Tensor) -> Tensor:
    return apply(_solve, (x, y), {})


def _square(name: str, x: Any) -> Tensor:
    x = convert(x)
    if x._data.ndim < 2 or x._data.shape[-1] != x._data.shape[-2]:
        raise InvalidArgumentError(
            f"{name}: needs square matrices in the last two axes, got shape {tuple(x.shape)}"
        )
    return x


def _real_matrices(name: str, x: Any) -> Tensor:
    x = _square(name, x)
    if is_complex(x.dtype):
        raise TypeError(f"{name}: complex matrices are not supported yet")
    return x


@public(_inverse)
def inv(x: Any) -> Tensor:
    """Return the inverse of each square matrix of `x`; shape (..., n, n), integers as float64.

    Raises errors.MatrixError, a LinAlgError as NumPy's, for a singular matrix, and
    InvalidArgumentError for one that is not square.
    """
    return apply(_inverse, (_square("inv", x),), {})


@public(_det)
def det(x: Any) -> Tensor:
    """Return the determinant of each square matrix of `x`, of shape (..., n, n): shape (...).

    Its gradient needs the inverse: errors.MatrixError for a singular matrix.
    """
    return apply(_det, (_square("det", x),), {})


def slogdet(x: Any) -> tuple[Tensor, Tensor]:
    """Return the sign (0 or 1 or -1) and the logarithm of the size of the determinants of real `x`.

    The sign has no gradient; -inf is the logarithm for a singular matrix, and its gradient is a
    errors.MatrixError. Raises TypeError for complex matrices.
    """
    x = _real_matrices("slogdet", x)
    return apply(_det_sign, (x,), {}), apply(_log_abs_det, (x,), {})


@public(_cholesky)
def cholesky(x: Any) -> Tensor:
    """Return the lower triangular L of each symmetric positive definite ``x = L transpose(L)``.

    The two triangles of `x` count alike, half each. Raises errors.MatrixError for a
    matrix that is not positive definite, TypeError for complex ones.
    """
    return apply(_cholesky, (_real_matrices("cholesky", x),), {})


@public(_solve)
def solve(x: Any, y: Any) -> Tensor:
    """Return the solution z of ``matmul(x, z) = y`` for square matrices `x`; of the shape of `y`.

    `x` (..., n, n) and `y` (..., n, k) broadcast over their leading axes; a 1-D `y` is one column.
    Raises errors.MatrixError for a singular `x`, InvalidArgumentError for shapes that do not fit.
    """
    x, y = convert_operands((x, y))
    x = _square("solve", x)
    column = y._data.ndim == 1
    y = expand_dims(y, 1) if column else y
    if y._data.ndim < 2 or y._data.shape[-2] != x._data.shape[-1]:
        raise InvalidArgumentError(
            f"solve: shapes {tuple(x.shape)} and {tuple(y.shape)} do not fit: the matrices need "
            "as many columns as y has rows"
        )
    found = _apply_solve(x, y)
    return squeeze(found, -1) if column else found
