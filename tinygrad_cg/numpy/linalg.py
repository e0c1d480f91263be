"""NumPy's ``numpy.linalg``, as far as it has gradients here."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from .._core.annotations import Axes, DTypeLike, TensorLike
from .._core.conversion import convert
from .._core.tensor import Tensor
from .._ops import decompositions as _decompositions
from .._ops import eigenvectors as _eigenvectors
from .._ops import factorizations as _factorizations
from .._ops import least_squares as _least_squares
from .._ops import linear_algebra as _linear_algebra
from .._ops import norms as _norms
from .._ops.complex import conj
from .._ops.decompositions import cholesky_upper
from .._ops.elementwise import absolute, add, divide, multiply
from .._ops.indexing import getitem
from .._ops.least_squares import relative_tolerance
from .._ops.matrices import adjoint, band, square_matrices
from .._ops.namespaces.namespace import export_functions, spelled
from .._ops.reductions import reduce_sum
from .._ops.shape import broadcast_to, cast, reshape, swap_last, transpose
from .._ops.validation import as_int, normalize_axis
from ..errors import InvalidArgumentError
from . import _products
from ._functions import matmul
from ._manipulation import diagonal as _diagonal
from ._manipulation import matrix_transpose
from ._readers import _array, _as, _pair, _real, _widen

__all__ = ["matmul", "matrix_transpose"]


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
    """Left singular vectors in columns, singular values, descending, and right vectors in rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class SlogdetResult(NamedTuple):
    """The sign of determinants, and the logarithm of their size."""

    sign: Tensor
    logabsdet: Tensor


def _hermitian(name: str, a: Any, triangle: Any) -> Tensor:
    """Return matrices, of which a triangle stands for both if it is named."""
    x = square_matrices(name, _array(a))
    if triangle is None:
        return x
    if str(triangle).upper() not in ("L", "U"):
        raise InvalidArgumentError(f"{name}: UPLO must be 'L' or 'U', got {triangle!r}")
    half = band(x, None, -1) if str(triangle).upper() == "L" else band(x, -1, None)
    return add(add(half, adjoint(half)), band(x, 0, 0))


def cholesky(a: TensorLike, /, *, upper: bool = False) -> Tensor:
    """Return the lower triangular L of each symmetric or Hermitian, positive definite matrix ``a =
    L adjoint(L)``, or `upper` the adjoint of L. The mean of both triangles of `a` is used."""
    return cholesky_upper(_array(a)) if upper else _decompositions.cholesky(_array(a))


def cond(x: TensorLike, p: Any = None) -> Tensor:
    """Return the condition number: the norm of `x` times the norm of its inverse, by default the
    largest singular value over the smallest. `p` is an order of `matrix_norm`."""
    x = _real(x)
    if p is None or p in (2, -2):
        values = _factorizations.svdvals(x)
        first, last = getitem(values, (Ellipsis, 0)), getitem(values, (Ellipsis, -1))
        return divide(last, first) if p == -2 else divide(first, last)
    x = square_matrices("cond", x)
    inverse = _decompositions.inv(x)
    return multiply(_norms.matrix_norm(x, p), _norms.matrix_norm(inverse, p))


def _of_matrices(operation: Callable[..., Tensor]):
    """Return an operation, with its name and docstring, of matrices as NumPy reads them."""

    def matrices(a: TensorLike) -> Tensor:
        return operation(_array(a))

    return spelled(matrices, operation.__name__, operation)


det = _of_matrices(_decompositions.det)
inv = _of_matrices(_decompositions.inv)
eigvals = _of_matrices(_eigenvectors.eigvals)


def eig(a: TensorLike) -> EigResult:
    """Return the eigenvalues and eigenvectors of square matrices: always complex, since dtypes must
    not depend on values. See `eigh` for derivatives."""
    return EigResult(*_eigenvectors.eig(_array(a)))


def eigh(a: TensorLike, UPLO: Any = None) -> EighResult:
    """Return the eigenvalues, ascending, and the eigenvectors of symmetric or Hermitian matrices.
    The mean of both triangles of `a` is used, or only the triangle `UPLO`: "L" or "U". With respect
    to vectors of equal eigenvalues the derivative is set to 0, with an errors.DerivativeWarning."""
    return EighResult(*_factorizations.eigh(_hermitian("eigh", a, UPLO)))


def eigvalsh(a: TensorLike, UPLO: Any = None) -> Tensor:
    """Return the eigenvalues, ascending, of symmetric or Hermitian matrices; see `eigh`."""
    return _factorizations.eigvalsh(_hermitian("eigvalsh", a, UPLO))


def lstsq(a: TensorLike, b: TensorLike, rcond: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the least-squares solution of ``a x = b``, the sums of squared residuals (empty unless
    the columns of `a` are independent), the rank and the singular values of `a`. Singular values
    below `rcond` times the largest count as 0."""
    x, y = (convert(array) for array in _pair(a, b))
    if x.ndim != 2 or y.ndim not in (1, 2):
        raise InvalidArgumentError(
            f"lstsq: a must have 2 dimensions and b 1 or 2, got shapes {tuple(x.shape)} and "
            f"{tuple(y.shape)}"
        )
    bound = relative_tolerance(x) if rcond is None else rcond
    solution = _least_squares.lstsq(x, y, bound)
    values = _factorizations.svdvals(x)
    rank = cast(_least_squares.matrix_rank(x, rtol=bound), np.int32)
    lengths = reduce_sum(
        multiply(distance := absolute(_linear_algebra.matmul(x, solution) - y), distance), 0
    )
    height, width = x.shape
    full = height > width and int(np.asarray(rank)) == width
    residuals = reshape(lengths, (-1,)) if full else reshape(getitem(values, slice(0)), (0,))
    return solution, residuals, rank, values


def cross(x1: TensorLike, x2: TensorLike, /, *, axis: Axes = -1) -> Tensor:
    """Return the cross products of vectors of 3 elements along `axis`; the other axes broadcast."""
    x, y = _products._tensors(x1, x2)
    for vector in (x, y):
        if vector.shape[normalize_axis("cross", axis, vector.ndim)] != 3:
            raise InvalidArgumentError(
                f"cross: vectors must have 3 elements, got shapes {tuple(x.shape)} and "
                f"{tuple(y.shape)}"
            )
    return _products.cross(x, y, axis=axis)


def diagonal(x: TensorLike, /, *, offset: Any = 0) -> Tensor:
    """Return the diagonal `offset` of each matrix in a stack of matrices."""
    return _diagonal(x, offset, -2, -1)


def matrix_norm(x: TensorLike, /, *, keepdims: bool = False, ord: str = "fro") -> Tensor:
    """Return the norm of each matrix in a stack of matrices: "fro", "nuc", 1, -1, 2, -2, inf or
    -inf."""
    return _norms.matrix_norm(_array(x), ord, (-2, -1), keepdims)


def matrix_power(a: TensorLike, n: int) -> Tensor:
    """Return the `n`-th power of each square matrix of `a`, for a negative `n` of its inverse."""
    x = square_matrices("matrix_power", _array(a))
    exponent = as_int("matrix_power", "n", n)
    if exponent < 0:
        x, exponent = _decompositions.inv(x), -exponent
    if not exponent:
        return broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), tuple(x.shape))
    result = None
    while exponent:  # by squaring: the binary digits of n say which squares are multiplied
        if exponent % 2:
            result = x if result is None else _linear_algebra.matmul(result, x)
        exponent //= 2
        x = _linear_algebra.matmul(x, x) if exponent else x
    assert result is not None
    return result


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    """Return the number of singular values above `tol`, or `rtol` times the largest. It has no
    gradient."""
    return _least_squares.matrix_rank(_array(A), tol, rtol)


def multi_dot(arrays: Any) -> Tensor:
    """Return the product of several matrices; the first and the last may be vectors."""
    tensors = [_array(array) for array in arrays]
    if len(tensors) < 2:
        raise ValueError("multi_dot: expecting at least two arrays")
    if tensors[-1].ndim == 1 and tensors[0].ndim > 1:
        return reduce(lambda right, left: _linear_algebra.matmul(left, right), reversed(tensors))
    return reduce(_linear_algebra.matmul, tensors)


def norm(x: TensorLike, ord: Any = None, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return the norm of vectors of any order, along one axis, or of matrices, along two: "fro",
    "nuc", 1, -1, 2, -2, inf or -inf. By default the Euclidean norm of all elements."""
    x, axis = _real(x), tuple(axis) if isinstance(axis, list) else axis
    if axis is None and (ord is None or (ord == 2 and x.ndim == 1)):
        return _norms.vector_norm(x, 2, None, keepdims)
    if axis is None:
        axis = tuple(range(x.ndim)) if x.ndim == 2 else 0
        if x.ndim > 2:
            raise InvalidArgumentError("norm: for more than 2 dimensions, ord needs axis")
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    if isinstance(axis, tuple):
        return _norms.matrix_norm(x, ord, axis, keepdims)
    return _norms.vector_norm(x, ord, axis, keepdims)


def outer(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return the products of each element of `x1` with each of `x2`."""
    return _products.outer(x1, x2)


def pinv(a: TensorLike, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    """Return the Moore-Penrose pseudo-inverse of each matrix. Singular values below `rcond` (or
    `rtol`) times the largest count as 0."""
    if rcond is not None and rtol is not None:
        raise ValueError("pinv: rcond and rtol are the same: give one of them")
    return _least_squares.pinv(_array(a), rcond if rtol is None else rtol)


def qr(a: TensorLike, mode: str = "reduced") -> Tensor | Any:
    """Return Q, with orthonormal columns, and the upper triangular R of matrices ``a = Q R``;
    `mode` "complete" completes Q to square matrices, "r" gives only R."""
    if mode not in ("reduced", "complete", "r"):
        raise InvalidArgumentError(
            f"qr: mode must be 'reduced', 'complete' or 'r', got {mode!r}: LAPACK's own form "
            "('raw') is not supported"
        )
    factors = _factorizations.qr(_array(a), mode == "complete")
    return factors[1] if mode == "r" else QRResult(*factors)


def slogdet(a: TensorLike) -> SlogdetResult:
    """Return the signs (which have a gradient where `a` is complex) and the logarithms of the sizes
    of determinants."""
    return SlogdetResult(*_decompositions.slogdet(_array(a)))


def solve(a: TensorLike, b: TensorLike) -> Tensor:
    """Return the solution x of ``a x = b`` for square matrices `a` (..., n, n) and `b` (..., n, k)
    or (n,). Raises LinAlgError for a singular `a`."""
    return _decompositions.solve(*_pair(a, b))


def svd(
    a: TensorLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Tensor | Any:
    """Return U, the singular values S, descending, and Vh of matrices ``a = U diag(S) Vh``; only S
    unless `compute_uv`. U and Vh are square, or have as many columns and rows as S unless
    `full_matrices`. See `eigh` for derivatives."""
    if not compute_uv:
        return _factorizations.svdvals(_array(a))
    left, values, right = _factorizations.svd(_array(a), full_matrices)
    return SVDResult(left, values, conj(swap_last(right)))


def svdvals(x: TensorLike, /) -> Tensor:
    """Return the singular values, descending, of matrices (..., m, n); see `svd`.

    For functions that do not depend on the order of the values, first and second derivatives are
    right at equal values, too, and at 0 for even functions; see `eigvalsh`.
    """
    return _factorizations.svdvals(_array(x))


def tensordot(x1: TensorLike, x2: TensorLike, /, *, axes: Any = 2) -> Tensor:
    """Return the sum of products over `axes`: a number (last of `x1`, first of `x2`) or two lists.

    Modelled on ``np.tensordot``. The result has the other axes of `x1`, then those of `x2`. Raises
    InvalidArgumentError for axes that an operand does not have or that differ in size.
    """
    return _linear_algebra.tensordot(*_pair(x1, x2), axes)


def tensorinv(a: TensorLike, ind: Any = 2) -> Tensor:
    """Return the inverse of `a` for `tensordot` over its first `ind` axes."""
    x, count = _array(a), as_int("tensorinv", "ind", ind)
    if count <= 0:
        raise ValueError("tensorinv: Invalid ind argument: it must be positive")
    shape = tuple(x.shape)
    size = int(np.prod(shape[:count]))
    inverse = _decompositions.inv(reshape(x, (size, -1)))
    return reshape(inverse, shape[count:] + shape[:count])


def tensorsolve(a: TensorLike, b: TensorLike, axes: Any = None) -> Tensor:
    """Return the solution x of ``tensordot(a, x, x.ndim) = b``; `axes` of `a` are moved to its end
    first."""
    x, y = (convert(array) for array in _pair(a, b))
    if axes is not None:
        order = [i for i in range(x.ndim) if i not in {axis % x.ndim for axis in axes}]
        x = transpose(x, order + [axis % x.ndim for axis in axes])
    shape = tuple(x.shape)[y.ndim :]
    size = int(np.prod(shape))
    return reshape(_decompositions.solve(reshape(x, (-1, size)), reshape(y, (-1,))), shape)


def trace(x: TensorLike, /, *, offset: Any = 0, dtype: DTypeLike | None = None) -> Tensor:
    """Return the sum of the diagonal of each matrix in a stack of matrices."""
    return reduce_sum(_as(_widen(_diagonal(x, offset, -2, -1)), dtype), -1)


def vecdot(x1: TensorLike, x2: TensorLike, /, *, axis: int = -1) -> Tensor:
    """Return the sums of products along `axis`, a complex `x1` conjugated; the other axes
    broadcast."""
    return _products.vecdot(x1, x2, axis=axis)


def vector_norm(
    x: TensorLike, /, *, axis: Axes = None, keepdims: bool = False, ord: Any = 2
) -> Tensor:
    """Return the norm of order `ord` over axes, by default of all elements."""
    axis = tuple(axis) if isinstance(axis, list) else axis
    return _norms.vector_norm(_real(x), ord, axis, keepdims)


__all__ += export_functions(globals())
