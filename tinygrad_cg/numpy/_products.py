"""NumPy's products of vectors, matrices and polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import devices
from .._core.conversion import convert_operands
from .._core.tensor import Aval, Tensor
from .._ops.complex import conj
from .._ops.creation import zeros, zeros_like
from .._ops.elementwise import add, multiply, subtract
from .._ops.indexing import getitem
from .._ops.linear_algebra import matvec, tensordot
from .._ops.reductions import reduce_any, reduce_sum
from .._ops.shape import broadcast_to, cast, concatenate, expand_dims, reshape, stack
from .._ops.validation import normalize_axis
from ..errors import InvalidArgumentError
from ._manipulation import _raise_rank, flip, moveaxis
from ._readers import _array, _pair, _with_int64


def _tensors(a: Any, b: Any) -> tuple[Tensor, ...]:
    return convert_operands(_pair(a, b))


def dot(a: Any, b: Any) -> Tensor:
    """Return the sum of products over the last axis of `a` and the second last (or only) of `b`."""
    x, y = _tensors(a, b)
    if not x.ndim or not y.ndim:
        return multiply(x, y)
    return tensordot(x, y, ([-1], [max(y.ndim - 2, 0)]))


def inner(a: Any, b: Any, /) -> Tensor:
    """Return the sum of products over the last axes of `a` and `b`."""
    x, y = _tensors(a, b)
    return tensordot(x, y, ([-1], [-1])) if x.ndim and y.ndim else multiply(x, y)


def vdot(a: Any, b: Any, /) -> Tensor:
    """Return the sum of products of all elements, with a complex `a` conjugated."""
    x, y = _tensors(a, b)
    return dot(conj(reshape(x, (-1,))), reshape(y, (-1,)))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """Return the sums of products along `axis`, a complex `x1` conjugated; the others broadcast."""
    x, y = (moveaxis(array, axis, -1) for array in _tensors(x1, x2))
    if x.shape[-1] != y.shape[-1]:
        raise InvalidArgumentError(
            f"vecdot: shapes {tuple(x.shape)} and {tuple(y.shape)} differ along the folded axis"
        )
    reduce = reduce_any if x.dtype == y.dtype == bool else reduce_sum
    return reduce(multiply(conj(x), y), -1)


def vecmat(x1: Any, x2: Any, /) -> Tensor:
    """Return a vector (..., m), conjugated if complex, times a matrix (..., m, n): (..., n)."""
    x, y = _tensors(x1, x2)
    return matvec(y, conj(x), transpose_x=True)


def outer(a: Any, b: Any) -> Tensor:
    """Return the products of each element of `a` with each of `b`, both flattened: a matrix."""
    x, y = (reshape(array, (-1,)) for array in _tensors(a, b))
    return multiply(expand_dims(x, 1), y)


def kron(a: Any, b: Any) -> Tensor:
    """Return the Kronecker product: `b` times each element of `a`, as blocks."""
    x, y = _tensors(a, b)
    rank = max(x.ndim, y.ndim)
    x, y = (reshape(array, (*[1] * (rank - array.ndim), *array.shape)) for array in (x, y))
    left = [size for pair in zip(x.shape, [1] * rank, strict=True) for size in pair]
    right = [size for pair in zip([1] * rank, y.shape, strict=True) for size in pair]
    products = multiply(reshape(x, left), reshape(y, right))
    return reshape(products, [m * n for m, n in zip(x.shape, y.shape, strict=True)])


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Tensor:
    """Return the cross products of vectors of 2 or 3 elements along the given axes.

    The third element of a vector of 2 is 0; the product of two such vectors is a scalar, its third
    element. The other axes broadcast.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = _tensors(a, b)
    x, y = moveaxis(x, axisa, -1), moveaxis(y, axisb, -1)
    if not {x.shape[-1], y.shape[-1]} <= {2, 3}:
        raise InvalidArgumentError(
            f"cross: vectors must have 2 or 3 elements, got {x.shape[-1]} and {y.shape[-1]}"
        )
    (x0, x1), (y0, y1) = ([getitem(vector, (Ellipsis, i)) for i in range(2)] for vector in (x, y))
    if x.shape[-1] == y.shape[-1] == 2:
        return subtract(multiply(x0, y1), multiply(x1, y0))
    x2, y2 = (
        getitem(vector, (Ellipsis, 2))
        if vector.shape[-1] == 3
        else zeros_like(x0 if vector is x else y0)
        for vector in (x, y)
    )
    parts = [
        subtract(multiply(x1, y2), multiply(x2, y1)),
        subtract(multiply(x2, y0), multiply(x0, y2)),
        subtract(multiply(x0, y1), multiply(x1, y0)),
    ]
    return stack(parts, normalize_axis("cross", axisc, parts[0].ndim + 1))


# Sliding products ----------------------------------------------------------------------------


@devices.on_device_of_operands
def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """Return the convolution of two 1-D tensors, whole ("full"), "same" (the longer) or "valid"."""
    x, y = _sequences("convolve", a, v)
    if y.shape[0] > x.shape[0]:
        x, y = y, x
    return _slide(x, flip(y), mode)


@devices.on_device_of_operands
def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    """Return the cross-correlation of two 1-D tensors; `mode` as for `convolve`."""
    x, y = _sequences("correlate", a, v)
    if y.shape[0] > x.shape[0]:
        return flip(_slide(conj(y), x, mode))
    return _slide(x, conj(y), mode)


def _sequences(name: str, a: Any, v: Any) -> tuple[Tensor, Tensor]:
    x, y = _tensors(a, v)
    if x.ndim > 1 or y.ndim > 1:
        raise InvalidArgumentError(f"{name}: needs 1-D operands")
    x, y = _raise_rank(x, 1), _raise_rank(y, 1)
    if not x.shape[0] or not y.shape[0]:
        raise InvalidArgumentError(f"{name}: operands must not be empty")
    return x, y


def _slide(x: Tensor, y: Tensor, mode: str) -> Tensor:
    """Return the dot products of `y` with the windows of the longer `x` that `mode` selects."""
    n, m = x.shape[0], y.shape[0]
    before = {"valid": 0, "same": m // 2, "full": m - 1}.get(mode)
    if before is None:
        raise InvalidArgumentError(f"mode must be 'full', 'same' or 'valid', got {mode!r}")
    after = {"valid": 0, "same": m - 1 - m // 2, "full": m - 1}[mode]
    wide = concatenate([zeros(before, x.dtype), x, zeros(after, x.dtype)])
    pieces = np.arange(n + before + after - m + 1)[:, None] + np.arange(m)
    return matvec(getitem(wide, (pieces,)), y)


# Polynomials, the highest power first ---------------------------------------------------------


def polyval(p: Any, x: Any) -> Tensor:
    """Return the polynomial with coefficients `p`, the highest power first, at `x`, by Horner's
    rule."""
    coefficients, points = _tensors(p, x)
    if type(x) is int:  # for NumPy an int64
        coefficients, points = _with_int64(coefficients), _with_int64(points)
    value = multiply(points, 0)
    for i in range(coefficients.shape[0]):
        value = add(multiply(value, points), getitem(coefficients, i))
    return value


def _trim(p: Any) -> Tensor:
    """Return coefficients without leading zeros; traced ones unchanged."""
    x = _raise_rank(p, 1)
    if isinstance(x._data, Aval):
        return x
    used = np.flatnonzero(devices.to_host(x._data))
    return getitem(x, slice(int(used[0]) if used.size else -1, None))


@devices.on_device_of_operands
def _of_one_length(a1: Any, a2: Any) -> list[Tensor]:
    tensors = [_raise_rank(array, 1) for array in _tensors(a1, a2)]
    size = max(tensor.shape[0] for tensor in tensors)
    return [
        concatenate([zeros(size - tensor.shape[0], tensor.dtype), tensor]) for tensor in tensors
    ]


def polyder(p: Any, m: int = 1) -> Tensor:
    """Return the coefficients of the `m`-th derivative of a polynomial."""
    x = _with_int64(p) if m else _array(p)
    for _ in range(m):
        degree = x.shape[0] - 1
        x = multiply(getitem(x, slice(None, -1)), np.arange(degree, 0, -1).astype(x.dtype))
    return x


@devices.on_device_of_operands
def polyint(p: Any, m: int = 1, k: Any = None) -> Tensor:
    """Return the coefficients of the `m`-th integral of a polynomial; its constants are `k` (0)."""
    x = _array(p)
    constants = broadcast_to(_array(0.0 if k is None else k), (m,))
    for i in range(m):
        divided = x / np.arange(x.shape[0], 0, -1)
        x = concatenate([divided, cast(getitem(constants, slice(i, i + 1)), divided.dtype)])
    return x
