"""NumPy's ``numpy.linalg``, as far as it has gradients here."""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from .._core.tensor import Tensor
from .._ops import decompositions
from .._ops import linear_algebra as products
from .._ops.comparison import not_equal
from .._ops.define import as_int
from .._ops.elementwise import absolute
from .._ops.linear_algebra import matmul
from .._ops.reductions import reduce_max, reduce_min, reduce_sum
from .._ops.shape import broadcast_to, cast, reshape
from .._spellings.spell import spell
from ..errors import InvalidArgumentError
from . import _manipulation as moving
from . import _products as vectors
from ._readers import _array, _as, _pair, _real, _widen  # noqa: F401 (the table calls them)


class SlogdetResult(NamedTuple):
    """The sign of determinants, and the logarithm of their size."""

    sign: Tensor
    logabsdet: Tensor


def _norm(x: Any, order: Any, axis: Any, keepdims: bool) -> Tensor:
    """Return the norm of vectors along one axis, of matrices along two, or of all elements."""
    x, axis = _real(x), tuple(axis) if isinstance(axis, list) else axis
    if axis is None and (order is None or (order in ("fro", 2) and x.ndim == 1)):
        return products.norm(x, "euclidean", None, keepdims)
    if axis is None:
        axis = tuple(range(x.ndim)) if x.ndim == 2 else 0
        if x.ndim > 2:
            raise InvalidArgumentError("norm: with an order, axis must be given beyond matrices")
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    if isinstance(axis, tuple):
        return _matrix_norm(x, order, axis, keepdims)
    return _vector_norm(x, order, axis, keepdims)


def _vector_norm(x: Tensor, order: Any, axis: Any, keepdims: bool) -> Tensor:
    if order is None:
        order = 2
    if isinstance(order, str):
        raise ValueError(f"norm: {order!r} is no order for vectors")
    if order == 2:
        return products.norm(x, "euclidean", axis, keepdims)
    if order == -np.inf:
        return reduce_min(absolute(x), axis, keepdims)
    if order == 0:
        return reduce_sum(cast(not_equal(x, 0), absolute(x).dtype), axis, keepdims)
    if order in (1, np.inf):
        return (reduce_sum if order == 1 else reduce_max)(absolute(x), axis, keepdims)
    return products.norm(x, order, axis, keepdims)


def _matrix_norm(x: Tensor, order: Any, axis: tuple, keepdims: bool) -> Tensor:
    if len(axis) != 2:
        raise InvalidArgumentError(f"norm: axis must name one or two axes, got {axis}")
    if order in (None, "fro"):
        return products.norm(x, "euclidean", axis, keepdims)
    if order not in (1, -1, np.inf, -np.inf):
        raise InvalidArgumentError(
            f"norm: of matrices 'fro', 1, -1, inf and -inf are supported, got {order!r}"
        )
    summed, other = axis if abs(order) == 1 else axis[::-1]
    sums = reduce_sum(absolute(x), summed, keepdims=True)
    found = (reduce_max if order > 0 else reduce_min)(sums, other, keepdims=True)
    if keepdims:
        return found
    kept = [i for i in range(x.ndim) if i not in {dim % x.ndim for dim in axis}]
    return reshape(found, [x.shape[i] for i in kept])


def _power(a: Any, n: Any) -> Tensor:
    x = _array(a)
    exponent = as_int("matrix_power", "n", n)
    if exponent < 0:
        x, exponent = decompositions.inv(x), -exponent
    if not exponent:
        return broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), tuple(x.shape))
    result = None
    while exponent:  # by squaring: the binary digits of n say which squares are multiplied
        if exponent % 2:
            result = x if result is None else matmul(result, x)
        exponent //= 2
        x = matmul(x, x) if exponent else x
    assert result is not None
    return result


def _multi_dot(arrays: Any) -> Tensor:
    """Multiply matrices from the left, or from the right where this needs fewer multiplications."""
    tensors = [_array(one) for one in arrays]
    if len(tensors) < 2:
        raise ValueError("multi_dot: expecting at least two arrays")
    if tensors[-1].ndim == 1 and tensors[0].ndim > 1:
        return reduce(lambda right, left: matmul(left, right), reversed(tensors))
    return reduce(matmul, tensors)


def _vector(x: Any, axis: Any, keepdims: bool, order: Any) -> Tensor:
    """Return the norm along one axis, several, or of all elements (None)."""
    axis = tuple(axis) if isinstance(axis, list) else axis
    return _vector_norm(_real(x), order, axis, keepdims)


def _two_axes(x: Any, offset: int) -> Tensor:
    return moving.diagonal(x, offset, -2, -1)


_TABLE = """
    cholesky(a, /) = cholesky(_array(a))
    det inv(a) = {}(_array(a))
    cross(x1, x2, /, *, axis=-1) = _cross(x1, x2, axis=axis)
        # Return the cross products of vectors of 3 elements along `axis`; the other axes broadcast.
    diagonal(x, /, *, offset=0) = _two_axes(x, offset)
        # Return the diagonal `offset` of each matrix in a stack of matrices.
    matmul(x1, x2, /) = matmul(*_pair(x1, x2))
    matrix_norm(x, /, *, keepdims=False, ord="fro")
        = _matrix_norm(_real(x), ord, (-2, -1), keepdims)
        # Return the norm of each matrix in a stack of matrices: "fro", 1, -1, inf or -inf.
    matrix_power(a, n) = _power(a, n)
        # Return the product of `n` times each square matrix of `a`; of its inverse for a negative
        `n`.
    matrix_transpose(x, /) = _transposes(x)
        # Return the transpose of each matrix in a stack of matrices.
    multi_dot(arrays) = _multi_dot(arrays)
        # Return the product of several matrices; the first and the last may be vectors.
    norm(x, ord=None, axis=None, keepdims=False) = _norm(x, ord, axis, keepdims)
        # Return the norm of vectors of any order, along one axis, or of matrices, along two: "fro",
        1, -1, inf or -inf. By default the Euclidean norm of all elements.
    outer(x1, x2, /) = _outer(x1, x2)
        # Return the products of each element of `x1` with each of `x2`.
    slogdet(a) -> SlogdetResult = SlogdetResult(*slogdet(_array(a)))
        # Return the signs, which have no gradient, and the logarithms of the sizes of determinants.
    solve(a, b) = solve(*_pair(a, b))
        # Return the solution x of ``a x = b`` for square matrices `a` (..., n, n) and `b` (..., n,
        k) or (n,). Raises LinAlgError for a singular `a`.
    tensordot(x1, x2, /, *, axes=2) = tensordot(*_pair(x1, x2), axes)
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
_cross, _outer, _vecdot = vectors.cross, vectors.outer, vectors.vecdot
__all__: list[str] = []
spell(globals(), _TABLE, readers=("_array", "_pair"))
