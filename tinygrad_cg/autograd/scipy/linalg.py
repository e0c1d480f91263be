"""Linear algebra under SciPy's names, if autograd or this library has gradients.

They return arrays for arrays and numbers, and tensors for tensors. ``check_finite`` and
``overwrite_*`` of SciPy are accepted without effect: no argument is written to.
"""

from __future__ import annotations

from typing import Any

from ... import linalg as ours
from ... import numpy as np
from ..._ops.namespaces.namespace import own_functions
from ..numpy._numpy_functions import for_arrays
from .special import real


def _square(name: str, argument: str, x: Any) -> Any:
    x = real(x)
    if x.ndim != 2 or x.shape[0] != x.shape[1]:
        raise ValueError(f"{name}: {argument} must be a square matrix, got shape {tuple(x.shape)}")
    return x


def _as_columns(name: str, b: Any, rows: int) -> tuple[Any, bool]:
    """Return right-hand sides as a matrix, and whether they were a vector."""
    b = real(b)
    if b.ndim not in (1, 2) or b.shape[0] != rows:
        raise ValueError(f"{name}: b must have {rows} rows, got shape {tuple(b.shape)}")
    return (b[:, None], True) if b.ndim == 1 else (b, False)


@for_arrays
def sqrtm(A: Any, disp: bool = True, blocksize: int = 64) -> Any:
    """Return the square root of a square matrix; ``disp=False`` raises ValueError."""
    if not disp:
        raise ValueError("sqrtm: disp=False is not supported: compare sqrtm(A) @ sqrtm(A) with A")
    return ours.sqrtm(_square("sqrtm", "A", A))


@for_arrays
def expm(A: Any) -> Any:
    """Return the exponential of a square matrix, or of each in a batch."""
    return ours.expm(real(A))


@for_arrays
def logm(A: Any) -> Any:
    """Return the logarithm of a square matrix; LinAlgError if an eigenvalue is 0 or negative."""
    return ours.logm(_square("logm", "A", A))


@for_arrays
def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Return the solution x of a x = b for a triangular `a`; the other triangle is not read.

    `trans`: 0 or "N" solves with `a`, 1 or "T" with its transpose, 2 or "C" with its conjugate
    transpose. `b` is a vector or a matrix of columns.
    """
    name = "solve_triangular"
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ValueError(f"{name}: trans must be 0, 1, 2, 'N', 'T' or 'C', got {trans!r}")
    a = _square(name, "a", a)
    b, was_vector = _as_columns(name, b, a.shape[0])
    if unit_diagonal:
        strict = np.tril(a, -1) if lower else np.triu(a, 1)
        a = strict + np.eye(a.shape[0], dtype=a.dtype)
    if trans in (1, "T"):
        a, lower = a.T, not lower
    dtype = np.result_type(a.dtype, b.dtype)
    a, b = np.astype(a, dtype), np.astype(b, dtype)
    x = ours.triangular_solve(a, b, lower=lower, adjoint=trans in (2, "C"))
    return x[:, 0] if was_vector else x


@for_arrays
def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """Return the Cholesky factor of a positive definite matrix: upper, unless `lower`.

    It reads the triangle of `a` that it returns.
    """
    a = _square("cholesky", "a", a)
    triangle = np.tril(a) if lower else np.conj(np.triu(a)).T
    factor = np.linalg.cholesky(triangle + np.conj(np.tril(triangle, -1)).T)
    return factor if lower else np.conj(factor).T


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Any, bool]:
    """Return the Cholesky factor and `lower`, for `cho_solve`; the other triangle is 0."""
    return cholesky(a, lower), lower


def cho_solve(
    c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """Return the solution x of a x = b, from ``cho_factor(a)``."""
    factor, lower = c_and_lower
    first = solve_triangular(factor, b, "N" if lower else "C", lower)
    return solve_triangular(factor, first, "C" if lower else "N", lower)


@for_arrays
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """Return the solution x of a x + x b = q, for square `a` and `b`; `q` has the rows of `a` and
    the columns of `b`.

    It solves a system with an unknown for each element of `q`: for small matrices. Raises
    LinAlgError if `a` and -`b` have a common eigenvalue.
    """
    a, b, q = _square("solve_sylvester", "a", a), _square("solve_sylvester", "b", b), real(q)
    if tuple(q.shape) != (a.shape[0], b.shape[0]):
        raise ValueError(
            f"solve_sylvester: q must have shape {(a.shape[0], b.shape[0])}, got {tuple(q.shape)}"
        )
    rows, columns = (np.eye(size.shape[0], dtype=size.dtype) for size in (a, b))
    system = np.kron(a, columns) + np.kron(rows, b.T)
    return np.reshape(np.linalg.solve(system, np.reshape(q, (-1,))), q.shape)


@for_arrays
def solve_banded(
    l_and_u: tuple[int, int],
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Return the solution x of a x = b for a banded `a`, whose diagonals are the rows of `ab`.

    ``ab[u + i - j, j]`` is ``a[i, j]``, for `l` diagonals below and `u` above the main one. A
    tridiagonal system takes linear time; others are solved as full matrices.
    """
    below, above = l_and_u
    ab = real(ab)
    if ab.ndim != 2 or ab.shape[0] != below + above + 1:
        raise ValueError(
            f"solve_banded: ab must have l + u + 1 = {below + above + 1} rows, "
            f"got shape {tuple(ab.shape)}"
        )
    size = ab.shape[1]
    b, was_vector = _as_columns("solve_banded", b, size)
    dtype = np.result_type(ab.dtype, b.dtype)
    ab, b = np.astype(ab, dtype), np.astype(b, dtype)
    if (below, above) == (1, 1):
        zero = np.zeros(1, dtype)
        upper, lower = np.concatenate([ab[0, 1:], zero]), np.concatenate([zero, ab[2, :-1]])
        bands = np.stack([upper, ab[1], lower])
        x = ours.tridiagonal_solve(bands, b, partial_pivoting=True)
    else:
        full = np.zeros((size, size), dtype)
        for k in range(-below, above + 1):
            row = ab[above - k]
            full = full + np.diag(row[max(k, 0) : size + min(k, 0)], k)
        x = np.linalg.solve(full, b)
    return x[:, 0] if was_vector else x


@for_arrays
def block_diag(*arrays: Any) -> Any:
    """Return a matrix with the given matrices along its diagonal, and 0 elsewhere."""
    blocks = [np.atleast_2d(real(array)) for array in arrays] or [np.zeros((1, 0))]
    columns = sum(block.shape[1] for block in blocks)
    rows, start = [], 0
    for block in blocks:
        end = start + block.shape[1]
        rows.append(np.pad(block, ((0, 0), (start, columns - end))))
        start = end
    return np.concatenate(rows)


__all__ = own_functions(globals())
__dir__ = __all__.copy
