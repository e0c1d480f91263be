"""NumPy's ``numpy.linalg``, as far as it has gradients here."""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from .._core.conversion import convert
from .._core.tensor import Tensor
from .._ops.complex import conj
from .._ops.decompositions import cholesky as _lower_factor
from .._ops.decompositions import cholesky_upper
from .._ops.decompositions import inv as _inverse
from .._ops.decompositions import solve as _solution
from .._ops.define import as_int
from .._ops.elementwise import absolute, add, divide, multiply
from .._ops.factorizations import qr as _qr
from .._ops.factorizations import svd as _svd
from .._ops.factorizations import svdvals as _svdvals
from .._ops.indexing import getitem
from .._ops.least_squares import lstsq as _lstsq
from .._ops.least_squares import matrix_rank as _matrix_rank
from .._ops.least_squares import relative_tolerance
from .._ops.linear_algebra import matmul as _matmul
from .._ops.matrices import adjoint, band, square_matrices
from .._ops.norms import matrix_norm as _matrix_norm
from .._ops.norms import vector_norm as _vector_norm
from .._ops.reductions import reduce_sum
from .._ops.shape import broadcast_to, cast, reshape, swap_last, transpose
from .._spellings.spell import spell
from ..errors import InvalidArgumentError
from . import _manipulation as moving
from . import _products as vectors
from ._readers import _array, _as, _pair, _real, _widen  # noqa: F401 (the table calls them)


class EigResult(NamedTuple):
    """The eigenvalues of matrices, and their eigenvectors, in columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """The eigenvalues of Hermitian matrices, ascending, and their eigenvectors, in columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """Matrices with orthonormal columns, and upper triangular ones."""

    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    """Left singular vectors in columns, singular values, falling, and right vectors in rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class SlogdetResult(NamedTuple):
    """The sign of determinants, and the logarithm of their size."""

    sign: Tensor
    logabsdet: Tensor


def _norm(x: Any, order: Any, axis: Any, keepdims: bool) -> Tensor:
    """Return the norm of vectors along one axis, of matrices along two, or of all elements."""
    x, axis = _real(x), tuple(axis) if isinstance(axis, list) else axis
    if axis is None and (order is None or (order == 2 and x.ndim == 1)):
        return _vector_norm(x, 2, None, keepdims)
    if axis is None:
        axis = tuple(range(x.ndim)) if x.ndim == 2 else 0
        if x.ndim > 2:
            raise InvalidArgumentError("norm: with an order, axis must be given beyond matrices")
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    if isinstance(axis, tuple):
        return _matrix_norm(x, order, axis, keepdims)
    return _vector_norm(x, order, axis, keepdims)


def _power(a: Any, n: Any) -> Tensor:
    x = square_matrices("matrix_power", _array(a))
    exponent = as_int("matrix_power", "n", n)
    if exponent < 0:
        x, exponent = _inverse(x), -exponent
    if not exponent:
        return broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), tuple(x.shape))
    result = None
    while exponent:  # by squaring: the binary digits of n say which squares are multiplied
        if exponent % 2:
            result = x if result is None else _matmul(result, x)
        exponent //= 2
        x = _matmul(x, x) if exponent else x
    assert result is not None
    return result


def _multi_dot(arrays: Any) -> Tensor:
    """Multiply matrices from the left, or from the right where this needs fewer multiplications."""
    tensors = [_array(one) for one in arrays]
    if len(tensors) < 2:
        raise ValueError("multi_dot: expecting at least two arrays")
    if tensors[-1].ndim == 1 and tensors[0].ndim > 1:
        return reduce(lambda right, left: _matmul(left, right), reversed(tensors))
    return reduce(_matmul, tensors)


def _vector(x: Any, axis: Any, keepdims: bool, order: Any) -> Tensor:
    """Return the norm along one axis, several, or of all elements (None)."""
    axis = tuple(axis) if isinstance(axis, list) else axis
    return _vector_norm(_real(x), order, axis, keepdims)


def _hermitian(name: str, a: Any, triangle: Any) -> Tensor:
    """Return matrices, of which a triangle stands for both if it is named."""
    x = square_matrices(name, _array(a))
    if triangle is None:
        return x
    if str(triangle).upper() not in ("L", "U"):
        raise InvalidArgumentError(f"{name}: UPLO must be 'L' or 'U', got {triangle!r}")
    half = band(x, None, -1) if str(triangle).upper() == "L" else band(x, -1, None)
    return add(add(half, adjoint(half)), band(x, 0, 0))


def _factor(a: Any, upper: bool) -> Tensor:
    return (cholesky_upper if upper else _lower_factor)(_array(a))


def _singular(a: Any, full_matrices: bool, compute_uv: bool) -> Any:
    if not compute_uv:
        return _svdvals(_array(a))
    left, values, right = _svd(_array(a), full_matrices)
    return SVDResult(left, values, conj(swap_last(right)))


def _orthogonal(a: Any, mode: str) -> Any:
    if mode not in ("reduced", "complete", "r"):
        raise InvalidArgumentError(
            f"qr: mode must be 'reduced', 'complete' or 'r', got {mode!r}: LAPACK's own form "
            "('raw') is not supported"
        )
    found = _qr(_array(a), mode == "complete")
    return found[1] if mode == "r" else QRResult(*found)


def _relative(rcond: Any, rtol: Any) -> Any:
    if rcond is not None and rtol is not None:
        raise ValueError("pinv: rcond and rtol are the same: give one of them")
    return rcond if rtol is None else rtol


def _least_squares(a: Any, b: Any, rcond: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return solution, residuals (none unless the columns are independent), rank and values."""
    x, y = (convert(one) for one in _pair(a, b))
    if x.ndim != 2 or y.ndim not in (1, 2):
        raise InvalidArgumentError(
            f"lstsq: a must have 2 dimensions and b 1 or 2, got shapes {tuple(x.shape)} and "
            f"{tuple(y.shape)}"
        )
    bound = relative_tolerance(x) if rcond is None else rcond
    found = _lstsq(x, y, bound)
    values = _svdvals(x)
    rank = cast(_matrix_rank(x, rtol=bound), np.int32)
    lengths = reduce_sum(multiply(distance := absolute(_matmul(x, found) - y), distance), 0)
    height, width = x.shape
    full = height > width and int(np.asarray(rank)) == width
    residuals = reshape(lengths, (-1,)) if full else reshape(getitem(values, slice(0)), (0,))
    return found, residuals, rank, values


def _condition(x: Any, order: Any) -> Tensor:
    x = _real(x)
    if order is None or order in (2, -2):
        values = _svdvals(x)
        first, last = getitem(values, (Ellipsis, 0)), getitem(values, (Ellipsis, -1))
        return divide(last, first) if order == -2 else divide(first, last)
    x = square_matrices("cond", x)
    inverse = _inverse(x)
    return multiply(_matrix_norm(x, order), _matrix_norm(inverse, order))


def _tensor_inverse(a: Any, ind: Any) -> Tensor:
    x, count = _array(a), as_int("tensorinv", "ind", ind)
    if count <= 0:
        raise ValueError("tensorinv: Invalid ind argument: it must be positive")
    shape = tuple(x.shape)
    size = int(np.prod(shape[:count]))
    inverse = _inverse(reshape(x, (size, -1)))
    return reshape(inverse, shape[count:] + shape[:count])


def _tensor_solution(a: Any, b: Any, axes: Any) -> Tensor:
    x, y = (convert(one) for one in _pair(a, b))
    if axes is not None:
        order = [i for i in range(x.ndim) if i not in {one % x.ndim for one in axes}]
        x = transpose(x, order + [one % x.ndim for one in axes])
    shape = tuple(x.shape)[y.ndim :]
    size = int(np.prod(shape))
    return reshape(_solution(reshape(x, (-1, size)), reshape(y, (-1,))), shape)


def _two_axes(x: Any, offset: int) -> Tensor:
    return moving.diagonal(x, offset, -2, -1)


_TABLE = """
    cholesky(a, /, *, upper=False) = _factor(a, upper)
        # Return the lower triangular L of each symmetric or Hermitian, positive definite matrix
        ``a = L adjoint(L)``, or `upper` the adjoint of L. Both triangles of `a` count alike.
    cond(x, p=None) = _condition(x, p)
        # Return how much a relative error of a right side may grow in the solution: the norm of `x`
        times that of its inverse, by default the largest by the smallest singular value. `p` is an
        order of `matrix_norm`.
    det inv(a) = {}(_array(a))
    eig(a) -> EigResult = EigResult(*eig(_array(a)))
        # Return the eigenvalues and eigenvectors of square matrices: always complex, since shapes
        and dtypes may not depend on values. See `eigh` for what derivatives there are.
    eigh(a, UPLO=None) -> EighResult = EighResult(*eigh(_hermitian("eigh", a, UPLO)))
        # Return the eigenvalues, ascending, and the eigenvectors of symmetric or Hermitian
        matrices. Both triangles of `a` count alike, unless `UPLO` names one: "L" or "U". The
        derivative by vectors of equal values is taken as 0, with an errors.DerivativeWarning.
    eigvals(a) = eigvals(_array(a))
    eigvalsh(a, UPLO=None) = eigvalsh(_hermitian("eigvalsh", a, UPLO))
        # Return the eigenvalues, ascending, of symmetric or Hermitian matrices; see `eigh`.
    lstsq(a, b, rcond=None) -> tuple[Tensor, Tensor, Tensor, Tensor] = _least_squares(a, b, rcond)
        # Return the solution of least squares of ``a x = b``, the sums of squared residuals (none
        unless the columns of `a` are independent), the rank and the singular values of `a`. Those
        below `rcond` times the largest count as 0.
    cross(x1, x2, /, *, axis=-1) = _cross(x1, x2, axis)
        # Return the cross products of vectors of 3 elements along `axis`; the other axes broadcast.
    diagonal(x, /, *, offset=0) = _two_axes(x, offset)
        # Return the diagonal `offset` of each matrix in a stack of matrices.
    matmul(x1, x2, /) = matmul(*_pair(x1, x2))
    matrix_norm(x, /, *, keepdims=False, ord="fro")
        = matrix_norm(_array(x), ord, (-2, -1), keepdims)
        # Return the norm of each matrix in a stack of matrices: "fro", "nuc", 1, -1, 2, -2, inf or
        -inf.
    matrix_power(a, n) = _power(a, n)
        # Return the product of `n` times each square matrix of `a`; of its inverse for a negative
        `n`.
    matrix_rank(A, tol=None, hermitian=False, *, rtol=None) = matrix_rank(_array(A), tol, rtol)
        # Return the number of singular values above `tol`, or `rtol` times the largest. It has no
        gradient.
    matrix_transpose(x, /) = _transposes(x)
        # Return the transpose of each matrix in a stack of matrices.
    multi_dot(arrays) = _multi_dot(arrays)
        # Return the product of several matrices; the first and the last may be vectors.
    norm(x, ord=None, axis=None, keepdims=False) = _norm(x, ord, axis, keepdims)
        # Return the norm of vectors of any order, along one axis, or of matrices, along two: "fro",
        "nuc", 1, -1, 2, -2, inf or -inf. By default the Euclidean norm of all elements.
    outer(x1, x2, /) = _outer(x1, x2)
        # Return the products of each element of `x1` with each of `x2`.
    pinv(a, rcond=None, hermitian=False, *, rtol=None) = pinv(_array(a), _relative(rcond, rtol))
        # Return the Moore-Penrose pseudo-inverse of each matrix. Singular values below `rcond` (or
        `rtol`) times the largest count as 0.
    qr(a, mode="reduced") -> Tensor | Any = _orthogonal(a, mode)
        # Return Q, with orthonormal columns, and the upper triangular R of matrices ``a = Q R``;
        `mode` "complete" completes Q to square matrices, "r" gives R alone.
    slogdet(a) -> SlogdetResult = SlogdetResult(*slogdet(_array(a)))
        # Return the signs (which have a gradient where `a` is complex) and the logarithms of the
        sizes of determinants.
    solve(a, b) = solve(*_pair(a, b))
        # Return the solution x of ``a x = b`` for square matrices `a` (..., n, n) and `b` (..., n,
        k) or (n,). Raises LinAlgError for a singular `a`.
    svd(a, full_matrices=True, compute_uv=True, hermitian=False) -> Tensor | Any
        = _singular(a, full_matrices, compute_uv)
        # Return U, the singular values S, falling, and Vh of matrices ``a = U diag(S) Vh``; S alone
        unless `compute_uv`. U and Vh are square, or have as many columns and rows as S unless
        `full_matrices`. See `eigh` for what derivatives there are.
    svdvals(x, /) = svdvals(_array(x))
    tensordot(x1, x2, /, *, axes=2) = tensordot(*_pair(x1, x2), axes)
    tensorinv(a, ind=2) = _tensor_inverse(a, ind)
        # Return the inverse of `a` for `tensordot` over its first `ind` axes.
    tensorsolve(a, b, axes=None) = _tensor_solution(a, b, axes)
        # Return the solution x of ``tensordot(a, x, x.ndim) = b``; `axes` of `a` are moved to its
        end first.
    trace(x, /, *, offset=0, dtype=None)
        = reduce_sum(_as(_widen(_two_axes(x, offset)), dtype), -1)
        # Return the sum of the diagonal of each matrix in a stack of matrices.
    vecdot(x1, x2, /, *, axis=-1) = _vecdot(x1, x2, axis=axis)
        # Return the sums of products along `axis`, a complex `x1` conjugated; the other axes
        broadcast.
    vector_norm(x, /, *, axis=None, keepdims=False, ord=2) = _vector(x, axis, keepdims, ord)
        # Return the norm of order `ord` over axes, by default of all elements.
"""
_transposes = moving.matrix_transpose
_cross, _outer, _vecdot = vectors._cross_in_space, vectors.outer, vectors.vecdot
__all__: list[str] = []
spell(globals(), _TABLE, readers=("_array", "_pair"))
