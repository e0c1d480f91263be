"""Inverse, solution, determinant and Cholesky factor of square matrices, by LAPACK.

The rules are those of M. Giles, "An extended collection of matrix derivative results for forward
and reverse mode algorithmic differentiation" (2008), written in operations.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.linear import blas
from tinygrad_cg_kernels.linear import triangular as substitution

from .._core import devices
from .._core.conversion import convert_operands
from .._core.kinds import is_complex
from .._core.tensor import Tensor
from ..errors import DerivativeWarning, InvalidArgumentError, MatrixError, warn
from .complex import conj, imag
from .define import Case, Wrong, operation, public
from .elementwise import add, multiply, negative, subtract, where
from .matrices import (
    MATRIX,
    NOT_SQUARE,
    POSITIVE,
    STACK,
    adjoint,
    band,
    by_lapack,
    copied_aval,
    largest,
    of_matrices,
    of_systems,
    product,
    real_dtype,
    solution_of,
    solve_systems,
    square_matrices,
)
from .reductions import reduce_sum
from .shape import expand_dims, swap_last

_SINGULAR = Wrong(MatrixError, "[Ss]ingular", (np.ones((2, 2)),))


def _to_number(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape[:-2]


def _inverse_rule(dy: Tensor, out: Tensor) -> Tensor:
    transposed = swap_last(out)
    return negative(product(transposed, product(dy, transposed)))


_inverse = of_matrices("inverse", np.linalg.inv, _inverse_rule, errors=(_SINGULAR, NOT_SQUARE))


def _run_cofactors(x: np.ndarray) -> np.ndarray:
    """Return det(x) times the transposed inverse; of singular matrices by singular values."""
    library = devices.library_of(x)
    try:
        transposed = np.swapaxes(np.linalg.inv(x), -1, -2)
        return library.ascontiguousarray(np.linalg.det(x)[..., None, None] * transposed)
    except np.linalg.LinAlgError:
        left, values, right = np.linalg.svd(x)
        others = np.where(library.eye(x.shape[-1], dtype=bool), 1, values[..., None, :]).prod(-1)
        turn = (np.linalg.det(left) * np.linalg.det(right))[..., None, None]
        return turn * (left.conj() * others[..., None, :] @ right.conj())


_cofactors = of_matrices(
    "cofactors",
    _run_cofactors,
    lambda dy, x: _cofactor_change(x, dy),
)


def _run_cofactor_change(x: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return the derivative of the cofactors along `direction`, by the inverse.

    By singular values where that loses digits: by products of all values but two.
    """
    library = devices.library_of(x)
    with contextlib.suppress(np.linalg.LinAlgError):
        inverse = np.linalg.inv(x)
        if _is_regular(x, inverse):
            change = np.einsum("...ij,...ji->...", inverse, direction)[..., None, None] * inverse
            change = change - inverse @ direction @ inverse
            change = library.ascontiguousarray(np.swapaxes(change, -1, -2))
            return np.linalg.det(x)[..., None, None] * change
    left, values, right = np.linalg.svd(x)
    row = values[..., None, :]
    after = library.tri(x.shape[-1], dtype=bool).T & ~library.eye(x.shape[-1], dtype=bool)
    from_row = np.where(after, row, 1).cumprod(-1)  # the product of the values i + 1 to j
    between = np.where(after, np.roll(from_row, 1, -1), 0)
    before = np.where(after.T, row, 1).prod(-1)[..., None]
    behind = np.where(after, row, 1).prod(-1)[..., None, :]
    others = before * between * behind
    others = others + np.swapaxes(others, -1, -2)
    inner = np.swapaxes(left, -1, -2).conj() @ direction @ np.swapaxes(right, -1, -2).conj()
    diagonal = np.einsum("...ii->...i", inner)[..., None, :]
    middle = library.eye(x.shape[-1]) * (others * diagonal).sum(-1)[..., None]
    middle = middle - others * np.swapaxes(inner, -1, -2)
    turn = (np.linalg.det(left) * np.linalg.det(right))[..., None, None]
    return turn * (left.conj() @ middle @ right.conj())


def _is_regular(x: np.ndarray, inverse: np.ndarray) -> bool:
    """Return whether the inverse has at least half of its digits."""
    condition = largest(np.abs(x), (-1, -2)) * largest(np.abs(inverse), (-1, -2))
    return bool((condition < float(np.finfo(x.dtype).eps) ** -0.5).all())


def _run_inverse_of_regular(x: np.ndarray) -> np.ndarray:
    """Return the inverse; warn where it has lost half of its digits."""
    inverse = np.linalg.inv(x)
    if not _is_regular(x, inverse):
        warn(
            "det: the third derivative of a singular or nearly singular matrix is computed from "
            "the inverse and has lost most of its digits",
            DerivativeWarning,
        )
    return inverse


_inverse_of_regular = of_matrices(
    "inverse_of_regular", _run_inverse_of_regular, _inverse_rule, label="det"
)


def _third_rule(dy: Tensor, x: Tensor, direction: Tensor) -> Tensor:
    """Return the third derivative of det(x), by its transposed inverse."""
    inverse = swap_last(_inverse_of_regular(x))
    first, second = (
        product(inverse, product(swap_last(tangent), inverse)) for tangent in (dy, direction)
    )
    along, across = (
        reduce_sum(multiply(tangent, inverse), (-2, -1), True) for tangent in (dy, direction)
    )
    mixed = reduce_sum(multiply(dy, second), (-2, -1), True)
    result = multiply(subtract(multiply(along, across), mixed), inverse)
    result = subtract(result, add(multiply(first, across), multiply(second, along)))
    result = add(result, product(first, product(swap_last(direction), inverse)))
    result = add(result, product(second, product(swap_last(dy), inverse)))
    return multiply(result, expand_dims(expand_dims(_det(x), -1), -1))


_cofactor_change = operation(
    "cofactor_change",
    by_lapack("det", _run_cofactor_change),
    copied_aval,
    (_third_rule, lambda dy, x: _cofactor_change(x, dy)),
    inputs=("x", "direction"),
    kind="contraction",
    core=(2, 2),
    samples=[Case(((3, 3), (3, 3)), {}, {0: MATRIX}), Case(((2, 3, 3), (3, 3)), {}, {0: STACK})],
)


_det = of_matrices(
    "determinant",
    np.linalg.det,
    lambda dy, x: multiply(_cofactors(x), expand_dims(expand_dims(dy, -1), -1)),
    _to_number,
    errors=(NOT_SQUARE,),
)
_log_abs_det = of_matrices(
    "log_abs_determinant",
    lambda x: np.linalg.slogdet(x)[1],
    lambda dy, x: multiply(swap_last(inv(conj(x))), expand_dims(expand_dims(dy, -1), -1)),
    _to_number,
    real_dtype,
    analytic=False,
)


_det_sign = of_matrices("determinant_sign", lambda x: np.linalg.slogdet(x)[0], None, _to_number)


def _phase_rule(dy: Tensor, x: Tensor, out: Tensor) -> Tensor:
    """Return the gradient of exp(i t) for the angle t of the determinant, dt = Im tr(inv(x) dx)."""
    turn = multiply(imag(multiply(dy, conj(out))), 1j)
    return multiply(adjoint(inv(x)), expand_dims(expand_dims(turn, -1), -1))


_det_phase = of_matrices(
    "determinant_phase",
    lambda x: np.linalg.slogdet(x)[0],
    _phase_rule,
    _to_number,
    samples=(MATRIX + 1j * MATRIX.T[::-1],),
    analytic=False,
)


def _cholesky_rule(dy: Tensor, out: Tensor) -> Tensor:
    """Return the gradient by both triangles alike, since the function takes their mean."""
    upper = adjoint(out)
    inner = product(upper, dy)
    size = out._data.shape[-1]
    halves = np.tri(size) - 0.5 * np.eye(size)  # of the diagonal one half
    lower = where(halves > 0, multiply(inner, halves.astype(real_dtype(out.dtype))), 0)
    half = lower
    for _ in range(2):
        half = triangular(upper, adjoint(half), lower=False)
    return multiply(add(half, adjoint(half)), 0.5)


def hermitian(x: np.ndarray) -> np.ndarray:
    """Return the mean of each matrix and its adjoint."""
    turned = np.swapaxes(x, -1, -2)
    total = turned.conj() if is_complex(x.dtype) else turned.copy()  # rows are read in order then
    total += x
    total *= 0.5
    return total


def _run_cholesky(x: np.ndarray) -> np.ndarray:
    with blas.threads_for(x.shape[-1]):
        return np.linalg.cholesky(hermitian(x))


_cholesky = of_matrices(
    "cholesky",
    _run_cholesky,
    _cholesky_rule,
    samples=(POSITIVE[0], POSITIVE),
    analytic=False,
    errors=(
        NOT_SQUARE,
        Wrong(MatrixError, "cholesky: .* not positive definite", (-np.eye(2),)),
    ),
)


_solve = of_systems(
    "solve",
    solve_systems,
    (
        lambda dy, x, out: negative(product(_solve(swap_last(x), dy), swap_last(out))),
        lambda dy, x: _solve(swap_last(x), dy),
    ),
    samples=[
        Case(((3, 3), (3, 2)), {}, {0: MATRIX}),
        Case(((2, 3, 3), (3, 1)), {}, {0: STACK}),
        Case(((3, 3), (2, 3, 2)), {}, {0: MATRIX}),
    ],
    errors=(
        Wrong(MatrixError, "solve: [Ss]ingular", (np.ones((2, 2)), np.ones(2))),
        Wrong(InvalidArgumentError, "solve: for a matrix of .* got", (np.eye(2), np.ones(3))),
    ),
)


@public(_inverse)
def inv(x: Any) -> Tensor:
    """Return the inverse of each square matrix of `x`; shape (..., n, n), integers as float64.

    Raises errors.MatrixError, a LinAlgError as NumPy's, for a singular matrix, and
    InvalidArgumentError for one that is not square.
    """
    return _inverse(square_matrices("inv", x))


@public(_det)
def det(x: Any) -> Tensor:
    """Return the determinant of each square matrix of `x`, of shape (..., n, n): shape (...).

    Its gradient is the matrix of cofactors. The second derivative needs the inverse:
    errors.MatrixError for a singular matrix.
    """
    return _det(square_matrices("det", x))


class LogMatrixDeterminant(NamedTuple):
    """The signs of determinants, and the logarithms of their sizes."""

    sign: Tensor
    log_abs_determinant: Tensor


def slogdet(x: Any) -> LogMatrixDeterminant:
    """Return the sign and the logarithm of the size of the determinants of square matrices `x`.

    The sign is 1, -1 or 0 for real matrices, and has no gradient; for complex matrices it is ``det
    / abs(det)``, with a gradient. For a singular matrix the logarithm is -inf, and its gradient
    raises errors.MatrixError.
    """
    x = square_matrices("slogdet", x)
    sign = _det_phase if is_complex(x.dtype) else _det_sign
    return LogMatrixDeterminant(sign(x), _log_abs_det(x))


@public(_cholesky)
def cholesky(x: Any) -> Tensor:
    """Return the lower triangular L of each positive definite matrix ``x = L adjoint(L)``.

    `x` (..., n, n) is symmetric or Hermitian; the mean of its two triangles is used. Integers
    become float64. Raises errors.MatrixError for a matrix that is not positive definite.
    """
    return _cholesky(square_matrices("cholesky", x))


def cholesky_upper(x: Any) -> Tensor:
    """Return the upper triangular U of each positive definite matrix ``x = adjoint(U) U``."""
    return adjoint(cholesky(x))


@public(_solve)
def solve(x: Any, y: Any) -> Tensor:
    """Return the solution z of ``matmul(x, z) = y`` for square matrices `x`; of the shape of
    `y`."""
    x, y = convert_operands((x, y))
    return solution_of(_solve, square_matrices("solve", x), y)


# Triangular systems ----------------------------------------------------------------------------

_BLOCK = 128  # up to this size, substitution is as quick as products of blocks


def _run_triangular(x: np.ndarray, y: np.ndarray, lower: bool) -> np.ndarray:
    """Solve triangular systems. Large ones go by blocks: half of the unknowns, then the others."""
    size, on_cpu = x.shape[-1], type(x) is np.ndarray
    by_blas = on_cpu and blas.triangular_solver(x.dtype.char) is not None
    if size <= _BLOCK or by_blas or (on_cpu and y.shape[-1] == 1):
        if on_cpu:
            return substitution.triangular_solve(x, y, lower)
        return solve_systems(np.tril(x) if lower else np.triu(x), y)
    half = size // 2
    first, second = (slice(half), slice(half, None)) if lower else (slice(half, None), slice(half))
    head = _run_triangular(x[..., first, first], y[..., first, :], lower)
    with blas.threads_for(size):
        rest = y[..., second, :] - x[..., second, first] @ head
    other = _run_triangular(x[..., second, second], rest, lower)
    return np.concatenate([head, other] if lower else [other, head], -2)


def _triangular_rule(dy: Tensor, x: Tensor, out: Tensor, lower: bool) -> Tensor:
    whole = product(triangular(swap_last(x), dy, lower=not lower), swap_last(out))
    return negative(band(whole, None, 0) if lower else band(whole, 0, None))


triangular = of_systems(
    "triangular_solve",
    _run_triangular,
    (
        _triangular_rule,
        lambda dy, x, lower: triangular(swap_last(x), dy, lower=not lower),
    ),
    samples=[
        Case(((3, 3), (3, 2)), {"lower": True}, {0: MATRIX}),
        Case(((2, 3, 3), (3, 1)), {"lower": False}, {0: STACK}),
    ],
    errors=(
        Wrong(MatrixError, "triangular_solve: [Ss]ingular", (np.zeros((2, 2)), np.ones((2, 1)))),
        Wrong(
            InvalidArgumentError,
            "triangular_solve: for a matrix of .* got",
            (np.eye(2), np.ones(3)),
        ),
    ),
)


@public(triangular)
def triangular_solve(x: Any, y: Any, lower: bool = True) -> Tensor:
    """Return the solution z of ``matmul(x, z) = y``, where only one triangle of `x` is read."""
    x, y = convert_operands((x, y))
    return solution_of(triangular, square_matrices("triangular_solve", x), y, lower=bool(lower))


def cholesky_solve(chol: Any, rhs: Any, upper: bool = False) -> Tensor:
    """Return the solution z of ``matmul(a, z) = rhs`` from the Cholesky factor `chol` of ``a``.

    Shapes and errors as for `triangular_solve`; `upper` says that `chol` is the upper factor.
    """
    chol, rhs = convert_operands((chol, rhs))
    factor = square_matrices("cholesky_solve", chol)
    lower = adjoint(factor) if upper else factor
    return triangular_solve(adjoint(lower), triangular_solve(lower, rhs), lower=False)
