"""NumPy's functions that call an operation or two, with NumPy's parameters and defaults."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Never

import numpy as np

from .._core.annotations import Axes, DTypeLike, Shape, TensorLike
from .._core.conversion import convert
from .._core.kinds import is_exact
from .._core.suggestions import REQUIRED, hides_others, reads_own_arguments, refuse_call
from .._core.tensor import Tensor
from .._ops import comparison as _comparison
from .._ops import complex as _complex
from .._ops import creation as _creation
from .._ops import cumulative as _scans
from .._ops import einsum as _einsum
from .._ops import elementwise as _elementwise
from .._ops import linear_algebra as _linear_algebra
from .._ops import padding as _padding
from .._ops import reductions as _reductions
from .._ops import shape as _shape
from .._ops import sorting as _sorting
from .._ops import special_functions as _special_functions
from .._ops import tapers as _tapers
from .._ops.indexing import gather
from .._ops.namespaces.adapt import flattened, neither, taken
from .._ops.namespaces.namespace import restates, spelled
from .._ops.validation import as_int, normalize_axes, normalize_axis
from . import _manipulation, _products, _quantiles, _totals
from ._along_axes import _count, _without_nan
from ._manipulation import (
    UniqueAllResult,
    UniqueCountsResult,
    UniqueInverseResult,
    _all_raised,
    _join,
    _linspace,
    _raise_rank,
    _split,
)
from ._pointwise import _without_nan_of_two
from ._products import _of_one_length, _trim
from ._quantiles import _percent
from ._readers import (
    _array,
    _as,
    _as_array,
    _as_mask,
    _converted,
    _filled_like,
    _flat,
    _into,
    _kind,
    _no_out,
    _on,
    _pair,
    _position,
    _read,
    _real,
    _rearrange,
    _searchsorted,
    _true_coordinates,
    _widen,
    _with_weak_dtype,
)


def append(arr: TensorLike, values: Any, axis: Axes = None) -> Tensor:
    """Return `values` joined to the end of `arr` along `axis`; both flattened if it is None."""
    return _shape.concatenate(*_flat((arr, values), axis))


@hides_others
def arange(
    start: TensorLike,
    stop: TensorLike | None = None,
    step: Any = 1,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    **others: Never,
) -> Tensor:
    """Return numbers from `start` (0 if only one bound is given) to below `stop`, in steps."""
    if others:
        refuse_call(arange, others)
    first, last, step = map(_as_array, (0, start, step) if stop is None else (start, stop, step))
    return _on("arange", device, _creation.constant(np.arange(first, last, step, dtype=dtype)))


def argmax(a: TensorLike, axis: Axes = None, out: Any = None, *, keepdims: bool = False) -> Tensor:
    """Return positions of the largest elements along `axis`, by default in the flattened tensor;
    the first if several tie."""
    return _no_out("argmax", out, _position(_reductions.argmax, _array(a), axis, keepdims))


def argmin(a: TensorLike, axis: Axes = None, out: Any = None, *, keepdims: bool = False) -> Tensor:
    """Return positions of the smallest elements along `axis`, by default in the flattened tensor;
    the first if several tie."""
    return _no_out("argmin", out, _position(_reductions.argmin, _array(a), axis, keepdims))


def argpartition(
    a: TensorLike, kth: Any, axis: Axes = -1, kind: Any = None, order: Any = None
) -> Tensor:
    """Return the indices that sort `a` along `axis`, or flattened if it is None: a sorted array is
    also partitioned."""
    return _sorting.argsort(*flattened(_array(a), axis))


def argsort(a: TensorLike, axis: Axes = -1, kind: Any = None, *, stable: Any = None) -> Tensor:
    """Return the indices that sort `a` along `axis`, or flattened if it is None; `stable` keeps the
    order of equal elements."""
    if kind is not None and stable is not None:
        raise ValueError("argsort: kind and stable exclude each other: give one of them")
    is_stable = bool(stable) or kind in ("stable", "mergesort")
    return _sorting.argsort(*flattened(_array(a), axis), stable=is_stable)


def around(a: TensorLike, decimals: int = 0, out: Any = None) -> Tensor:
    """Return `a` rounded to `decimals` decimals, half to even. It has no gradient."""
    return _no_out(
        "round", out, _elementwise.round_decimals(_array(a), as_int("round", "decimals", decimals))
    )


round = around


@hides_others
def array(
    object: TensorLike,
    dtype: DTypeLike | None = None,
    *,
    copy: bool = True,
    order: str = "K",
    subok: bool = False,
    ndmin: Any = 0,
    **others: Never,
) -> Tensor:
    """Return a tensor of `object`: a number, a nested list, an array or a tensor; cast to `dtype`
    if given, with axes of size 1 in front to have `ndmin`."""
    if others:
        refuse_call(array, others)
    x = _converted("array", object, dtype, copy, None)
    return _shape.reshape(x, (*[1] * (ndmin - x.ndim), *x.shape)) if x.ndim < ndmin else x


def array_split(ary: TensorLike, indices_or_sections: Any, axis: Axes = 0) -> list[Tensor]:
    """Return a list of the parts of `ary` along `axis` between indices, or a number of parts; the
    first parts may be longer by one."""
    return _shape.split_at(_array(ary), indices_or_sections, axis, True)


def asarray(
    a: TensorLike,
    dtype: DTypeLike | None = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: Any = None,
) -> Tensor:
    """Return a tensor of `a`: a number, a nested list, an array or a tensor; cast to `dtype` if
    given. With ``copy=False`` a ValueError except for tensors of that dtype."""
    return _converted("asarray", a, dtype, copy, device)


asanyarray = asarray


def ascontiguousarray(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return a tensor of `a` with at least one axis; the memory layout is not specified."""
    return _raise_rank(_as(_array(a), dtype), 1)


asfortranarray = ascontiguousarray


def astype(x: TensorLike, dtype: DTypeLike, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Return `x` as `dtype`. Casts to integers truncate."""
    return _on("astype", device, _as(_array(x), dtype))


def atleast_1d(*arys: Any) -> Tensor | Any:
    """Return each argument with at least one axis; a tuple for several."""
    return _all_raised(arys, 1)


def atleast_2d(*arys: Any) -> Tensor | Any:
    """Return each argument with at least two axes, new axes in front; a tuple for several."""
    return _all_raised(arys, 2)


def atleast_3d(*arys: Any) -> Tensor | Any:
    """Return each argument with at least three axes, where NumPy puts them; a tuple for several."""
    return _all_raised(arys, 3)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Return the common shape of shapes that broadcast; ValueError if they do not."""
    return np.broadcast_shapes(*shapes)


@restates(_shape.broadcast_to)
def broadcast_to(array: TensorLike, shape: Shape) -> Tensor:
    return _shape.broadcast_to(_array(array), shape)


def clip(
    a: TensorLike,
    a_min: TensorLike | None = None,
    a_max: TensorLike | None = None,
    out: Any = None,
    *,
    min: TensorLike | None = None,
    max: TensorLike | None = None,
) -> Tensor:
    """Return `a` limited to [a_min, a_max]; None means no limit. At a limit the gradient passes."""
    x, limits = _array(a), (min if a_min is None else a_min, max if a_max is None else a_max)
    low, high = (_with_weak_dtype(_read(limit), x.dtype) for limit in limits)
    return _no_out("clip", out, _elementwise.clip(x, low, high))


def compress(
    condition: TensorLike, a: TensorLike, axis: int | None = None, out: Any = None
) -> Tensor:
    """Return the rows of `axis` (or of `a` flattened) for which the 1-D `condition` holds."""
    return _no_out(
        "compress",
        out,
        _rearrange(lambda indices: np.compress(_as_mask(condition), indices, axis), a),
    )


def concat(
    arrays: Any, /, axis: Axes = 0, out: Any = None, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Return the arrays joined along an axis that they have; flattened first if it is None."""
    return _no_out("concatenate", out, _as(_shape.concatenate(*_flat(arrays, axis)), dtype))


concatenate = concat


def copy(a: TensorLike, order: str = "K", subok: bool = False) -> Tensor:
    """Return `a` as a new tensor."""
    return _shape.identity(_array(a))


@reads_own_arguments
def count_nonzero(a: TensorLike, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """Return the number of elements over axes that are not 0."""
    return _reductions.reduce_sum(
        _shape.cast(_comparison.not_equal(_array(a), 0), np.int64), axis, keepdims
    )


def _from_first(name: str, scan: Callable[..., Tensor], start: int, what: str):
    def scanned(
        x: TensorLike,
        /,
        *,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        include_initial: bool = False,
    ) -> Tensor:
        x = _as(_widen(x), dtype)
        if axis is None and x.ndim != 1:
            raise ValueError("cumulative_sum and cumulative_prod need an axis, except in 1-D")
        dim = normalize_axis("cumulative_sum", 0 if axis is None else axis, x.ndim)
        totals = scan(x, dim)
        if not include_initial:
            return totals
        first = np.full((*x.shape[:dim], 1, *x.shape[dim + 1 :]), start, x.dtype)
        return _shape.concatenate([first, totals], dim)

    scanned.__doc__ = f"""Return the {what} of all elements up to each along `axis`;
    `include_initial` starts with {start}. As in the array API, `axis` is required for more than
    one dimension."""
    return spelled(scanned, name)


cumulative_prod = _from_first("cumulative_prod", _scans.cumprod, 1, "products")
cumulative_sum = _from_first("cumulative_sum", _scans.cumsum, 0, "sums")


def degrees(x: TensorLike, /) -> Tensor:
    """Convert angles from radians to degrees; the shape of `x`, integers as float64."""
    return _elementwise.multiply(_real(x), 180 / np.pi)


rad2deg = degrees


def delete(arr: TensorLike, obj: Any, axis: int | None = None) -> Tensor:
    """Return `arr` without the rows `obj` (integers, a slice or a mask) of `axis`, or flattened."""
    return _rearrange(lambda indices: np.delete(indices, _as_array(obj), axis), arr)


def diagflat(v: TensorLike, k: int = 0) -> Tensor:
    """Return the matrix that has the elements of `v`, flattened, on its diagonal `k`."""
    return _manipulation.diag(_shape.reshape(_array(v), (-1,)), k)


def dsplit(ary: TensorLike, indices_or_sections: Any) -> list[Tensor]:
    """Return the parts of `ary` along its third axis; see `split`."""
    return _split("dsplit", ary, indices_or_sections, 2, 3)


def dstack(tup: Any) -> Tensor:
    """Return the arrays joined along the third axis."""
    return _join(tup, 2, 3, None)


def einsum(*operands: Any, optimize: bool = False) -> Tensor:
    """Return the sum over products of elements with equal indices: "ij,jk->ik", then the operands;
    or each operand with a list of numbers for its axes. Operands are multiplied two at a time, in
    the order with the fewest operations; `optimize` has no effect."""
    subscripts, *arrays = _einsum.from_lists(operands)
    return _einsum.einsum(subscripts, *map(_array, arrays))


def _filled(name: str, fill: Callable[..., Tensor], doc: str):
    @hides_others
    def filled(
        shape: Shape,
        dtype: DTypeLike | None = None,
        order: str = "C",
        *,
        device: Any = None,
        **others: Never,
    ) -> Tensor:
        if others:
            refuse_call(filled, others)
        return _on(name, device, fill(shape, _kind(dtype, np.float64)))

    filled.__doc__ = doc
    return spelled(filled, name)


empty = _filled(
    "empty",
    _creation.zeros,
    "Return a tensor of `shape` (float64 by default) with any values: here they are zeros.",
)
ones = _filled("ones", _creation.ones, "Return a tensor of ones, float64 by default.")
zeros = _filled("zeros", _creation.zeros, "Return a tensor of zeros, float64 by default.")


@reads_own_arguments
def empty_like(
    prototype: Any,
    dtype: DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: Shape | None = None,
    *,
    device: Any = None,
) -> Tensor:
    """Return a tensor of the shape (and dtype) of `prototype` with any values: here zeros."""
    return _filled_like("empty_like", prototype, 0, dtype, shape, device)


@hides_others
def expand_dims(a: TensorLike, axis: Axes = REQUIRED, **others: Never) -> Tensor:
    """Return `a` with a new axis of size 1 at position `axis` of the result, or at several. Raises
    InvalidArgumentError for positions that the result does not have."""
    if others or axis is REQUIRED:
        refuse_call(expand_dims, others)
    x = _array(a)
    if not isinstance(axis, (list, tuple)):
        return _shape.expand_dims(x, axis)
    for dim in normalize_axes("expand_dims", axis, x.ndim + len(axis)):
        x = _shape.expand_dims(x, dim)
    return x


def extract(condition: TensorLike, arr: TensorLike) -> Tensor:
    """Return the elements of `arr` for which `condition` holds, in row-major order."""
    return _rearrange(lambda indices: np.extract(_as_mask(condition), indices), arr)


@reads_own_arguments
def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    order: str = "C",
    *,
    device: Any = None,
) -> Tensor:
    """Return `N` by `M` zeros (square by default) with ones on diagonal `k`, float64 by default."""
    return _on("eye", device, _creation.constant(np.eye(N, M, k, _kind(dtype, np.float64))))


def fliplr(m: Any) -> Tensor:
    """Return `m` in reversed order along its second axis."""
    return _manipulation.flip(m, 1)


def flipud(m: Any) -> Tensor:
    """Return `m` in reversed order along its first axis."""
    return _manipulation.flip(m, 0)


def fmax(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return the larger of both, the other where one is NaN; in a tie `x1` has the gradient."""
    return _without_nan_of_two(_elementwise.maximum, x1, x2)


def fmin(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return the smaller of both, the other where one is NaN; in a tie `x1` has the gradient."""
    return _without_nan_of_two(_elementwise.minimum, x1, x2)


@hides_others
def full(
    shape: Shape,
    fill_value: TensorLike,
    dtype: DTypeLike | None = None,
    order: str = "C",
    *,
    device: Any = None,
    **others: Never,
) -> Tensor:
    """Return a tensor of `shape` filled with `fill_value`."""
    if others:
        refuse_call(full, others)
    return _on("full", device, _as(_shape.broadcast_to(_array(fill_value), shape), dtype))


@reads_own_arguments
def full_like(
    a: TensorLike,
    fill_value: TensorLike,
    dtype: DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: Shape | None = None,
    *,
    device: Any = None,
) -> Tensor:
    """Return `fill_value`, which broadcasts, with the shape and the dtype of `a`, unless `shape` or
    `dtype` are given. Its gradient is the gradient of a broadcast value."""
    return _filled_like("full_like", a, fill_value, dtype, shape, device)


def _window(operation: Callable[..., Tensor]):
    def window(M: int | None) -> Tensor:
        return operation(M)

    return spelled(window, operation.__name__, operation)


bartlett = _window(_tapers.bartlett)
blackman = _window(_tapers.blackman)
hamming = _window(_tapers.hamming)
hanning = _window(_tapers.hanning)


def hsplit(ary: TensorLike, indices_or_sections: Any) -> list[Tensor]:
    """Return the parts of `ary` along its second axis, or its only one; see `split`."""
    return _split("hsplit", ary, indices_or_sections, 1, 1)


def identity(n: int, dtype: DTypeLike | None = None) -> Tensor:
    """Return the identity matrix of `n` by `n`, float64 by default."""
    return _creation.constant(np.identity(n, dtype))


def _part(operation: Callable[..., Tensor]):
    def part(val: TensorLike) -> Tensor:
        return operation(_array(val))

    return spelled(part, operation.__name__, operation)


imag, real = _part(_complex.imag), _part(_complex.real)


def iscomplex(x: TensorLike) -> Tensor:
    """Return whether the imaginary part of `x` is not 0."""
    return _comparison.not_equal(_complex.imag(_array(x)), 0)


def isdtype(dtype: DTypeLike, kind: Any) -> bool:
    """Return whether `dtype` is of a kind: "bool", "integral", "real floating", "numeric" ..."""
    return np.isdtype(np.dtype(dtype), kind)


def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
) -> Tensor:
    """Return whether each of `element` is among `test_elements`; with `invert` whether it is
    not."""
    x, table = _array(element), _sorting.sort(_shape.reshape(_array(test_elements), (-1,)))
    if not table.shape[0]:
        return _creation.full(x.shape, bool(invert))
    at = _elementwise.minimum(_searchsorted(table, x, "left", None), table.shape[0] - 1)
    compare = _comparison.not_equal if invert else _comparison.equal
    return compare(gather(table, at), x)


def isneginf(x: TensorLike) -> Tensor:
    """Return whether `x` is negative and infinite."""
    return _comparison.logical_and(_comparison.isinf(_array(x)), _comparison.less(x, 0))


def isposinf(x: TensorLike) -> Tensor:
    """Return whether `x` is positive and infinite."""
    return _comparison.logical_and(_comparison.isinf(_array(x)), _comparison.greater(x, 0))


def isreal(x: TensorLike) -> Tensor:
    """Return whether the imaginary part of `x` is 0."""
    return _comparison.equal(_complex.imag(_array(x)), 0)


def i0(x: TensorLike) -> Tensor:
    """Return the modified Bessel function of the first kind of order 0."""
    return _special_functions.bessel_i(0, x)


def kaiser(M: int | None, beta: Any) -> Tensor:
    """Return Kaiser's window of `M` points, float64, with the shape parameter `beta`, a scalar.

    It is differentiable with respect to a tensor `beta`; for a number it is NumPy's window.
    """
    return _tapers.kaiser(M, beta)


def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: Axes = 0,
    *,
    device: Any = None,
) -> Tensor:
    """Return `num` evenly spaced numbers from `start` to `stop` (included if `endpoint`); float64
    by default, an integer `dtype` rounds down. With `retstep`, return the numbers and the step.
    `axis` is their axis if the ends are not scalars.
    """
    return _on("linspace", device, _linspace(start, stop, num, endpoint, retstep, dtype, axis))


def _of_pair(operation: Callable[..., Tensor]):
    def product(x1: TensorLike, x2: TensorLike, /) -> Tensor:
        return operation(*_pair(x1, x2))

    return spelled(product, operation.__name__, operation)


matmul, matvec = _of_pair(_linear_algebra.matmul), _of_pair(_linear_algebra.matvec)


def median(a: TensorLike, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """Return the middle element over axes, or the mean of the two; see ``quantile``."""
    return _quantiles.quantile(a, 0.5, axis, keepdims=keepdims)


def _running(name: str, scan: Callable[..., Tensor], read: Callable[..., Tensor], doc: str):
    def running(
        a: TensorLike, axis: Axes = None, dtype: DTypeLike | None = None, out: Any = None
    ) -> Tensor:
        x = read(a, dtype)
        return _no_out(name, out, scan(x if x.ndim else _shape.reshape(x, (-1,)), axis))

    running.__doc__ = doc
    return spelled(running, name)


_UP_TO_EACH = """up to each along `axis`, by default of the flattened
    tensor; booleans and shorter integers give 64-bit integers."""
_NOT_NAN = "up to each along `axis`, or of flattened `a`; NaN is ignored."
cumprod = _running(
    "cumprod",
    _scans.cumprod,
    lambda a, dtype: _as(_widen(a), dtype),
    f"Return the products of all elements {_UP_TO_EACH}",
)
cumsum = _running(
    "cumsum",
    _scans.cumsum,
    lambda a, dtype: _as(_widen(a), dtype),
    f"Return the sums of all elements {_UP_TO_EACH}",
)
nancumprod = _running(
    "nancumprod",
    _scans.cumprod,
    lambda a, dtype: _without_nan(a, dtype, 1),
    f"Return the products of all {_NOT_NAN}",
)
nancumsum = _running(
    "nancumsum",
    _scans.cumsum,
    lambda a, dtype: _without_nan(a, dtype, 0),
    f"Return the sums of elements {_NOT_NAN}",
)


def _without_nan_over(reduce: Callable[..., Tensor], end: float, which: str):
    def extremum(
        a: TensorLike,
        axis: Axes = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Tensor:
        x = _array(a)
        if is_exact(x.dtype):
            result = reduce(x, axis, None, keepdims, initial, where)
        else:
            x_or_end = _elementwise.where(_comparison.isnan(x), end, x)
            result = reduce(x_or_end, axis, None, keepdims, initial, where)
            if initial is None:
                nothing = _comparison.equal(_count(x, axis, keepdims), 0)
                result = _elementwise.where(nothing, np.nan, result)
        return _no_out(extremum.__name__, out, result)

    extremum.__doc__ = f"Return the {which} element over axes, ignoring NaN; NaN if all are NaN."
    return spelled(extremum, f"nan{reduce.__name__}")


nanmax = _without_nan_over(_totals.max, -np.inf, "largest")
nanmin = _without_nan_over(_totals.min, np.inf, "smallest")


def nanmedian(a: TensorLike, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """Return the middle element over axes, or the mean of the two, ignoring NaN; NaN if all are
    NaN."""
    return _quantiles.nanquantile(a, 0.5, axis, keepdims=keepdims)


def nanpercentile(
    a: TensorLike, q: Any, axis: Axes = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return the `q`-th percentiles, with `q` between 0 and 100, ignoring NaN."""
    return _quantiles.nanquantile(a, _percent(q), axis, method=method, keepdims=keepdims)


def _of_others(reduce: Callable[..., Tensor], neutral: int, what: str):
    def total(
        a: TensorLike,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Tensor:
        x = _without_nan(a, dtype, neutral)
        return reduce(x, axis, None, out, keepdims, initial, where)

    total.__doc__ = f"Return the {what} of elements over axes, ignoring NaN."
    return spelled(total, f"nan{reduce.__name__}")


nanprod = _of_others(_totals.prod, 1, "product")
nansum = _of_others(_totals.sum, 0, "sum")


def ndim(a: TensorLike) -> int:
    """Return the number of dimensions of `a`."""
    return convert(a).ndim


def nonzero(a: TensorLike) -> tuple[Tensor, ...]:
    """Return the coordinates of nonzero elements, one tensor for each axis."""
    return _true_coordinates(_array(a))


def _like(name: str, value: int, doc: str):
    def like(
        a: TensorLike,
        dtype: DTypeLike | None = None,
        order: str = "K",
        subok: bool = True,
        shape: Shape | None = None,
        *,
        device: Any = None,
    ) -> Tensor:
        return _filled_like(name, a, value, dtype, shape, device)

    like.__doc__ = doc
    return reads_own_arguments(spelled(like, name))


ones_like = _like(
    "ones_like", 1, "Return ones with the shape and, unless `dtype` is given, the dtype of `a`."
)
zeros_like = _like(
    "zeros_like", 0, "Return zeros with the shape and, unless `dtype` is given, the dtype of `a`."
)


def pad(
    array: TensorLike, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0
) -> Tensor:
    """Return `array` with more elements before and after along each axis: `pad_width` is a pair for
    each, one pair for all, or one number. `mode` is "constant" (they are the single number
    `constant_values`), "reflect", "symmetric", "edge" or "wrap"."""
    return _padding.pad(_array(array), pad_width, mode, constant_values)


@hides_others
def partition(
    a: TensorLike, kth: Any, axis: Axes = -1, kind: Any = None, order: Any = None, **others: Never
) -> Tensor:
    """Return `a` sorted along `axis`, or flattened if it is None: a sorted array is also
    partitioned for any `kth`."""
    if others:
        refuse_call(partition, others)
    return _sorting.sort(*flattened(_array(a), axis))


def percentile(
    a: TensorLike,
    q: Any,
    axis: Axes = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: Any = None,
) -> Tensor:
    """Return the `q`-th percentiles, with `q` between 0 and 100; see ``quantile``."""
    return _quantiles.quantile(
        a, _percent(q), axis, method=method, keepdims=keepdims, weights=weights
    )


@restates(_shape.transpose)
def permute_dims(a: TensorLike, axes: Any = None) -> Tensor:
    return _shape.transpose(_array(a), axes)


transpose = permute_dims


def polyadd(a1: Any, a2: Any) -> Tensor:
    """Return the coefficients of the sum of two polynomials."""
    return _elementwise.add(*_of_one_length(a1, a2))


def polymul(a1: Any, a2: Any) -> Tensor:
    """Return the coefficients of the product of two polynomials. Leading zeros are dropped, except
    for tensors without values in ``vmap`` and ``function``."""
    return _products.convolve(_trim(a1), _trim(a2))


def polysub(a1: Any, a2: Any) -> Tensor:
    """Return the coefficients of the difference of two polynomials."""
    return _elementwise.subtract(*_of_one_length(a1, a2))


def radians(x: TensorLike, /) -> Tensor:
    """Convert angles from degrees to radians; the shape of `x`, integers as float64."""
    return _elementwise.multiply(_real(x), np.pi / 180)


deg2rad = radians


def ravel(a: TensorLike, order: str = "C") -> Tensor:
    """Return the elements of `a` in row-major order, in one dimension; with `order` "F" in
    column-major order."""
    return _shape.reshape_in(_array(a), (-1,), order)


def reciprocal(x: TensorLike, /) -> Tensor:
    """Return 1 / x."""
    return _elementwise.divide(1, _array(x))


def repeat(a: TensorLike, repeats: Any, axis: int | None = None) -> Tensor:
    """Return each element of `a` along `axis`, or of it flattened, `repeats` times."""
    return _rearrange(lambda indices: np.repeat(indices, _as_array(repeats), axis), a)


def reshape(a: TensorLike, /, shape: Shape, order: str = "C", *, copy: Any = None) -> Tensor:
    """Return the elements of `a`, in row-major order (column-major if `order` is "F"), with another
    shape. One size may be -1. Raises InvalidArgumentError unless the two shapes have equally many
    elements."""
    return _shape.reshape_in(_array(a), shape, order)


def resize(a: TensorLike, new_shape: Any) -> Tensor:
    """Return `a` with another shape: its elements in row-major order, repeated if too few."""
    return _rearrange(lambda indices: np.resize(indices, new_shape), a)


def rint(x: TensorLike, /) -> Tensor:
    """Return `x` rounded to integers, half to even, as floating point. It has no gradient."""
    return _elementwise.round_half_even(_real(x))


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Tensor:
    """Return `m` rotated `k` times by 90 degrees, from the first to the second of `axes`."""
    return _rearrange(lambda indices: np.rot90(indices, k, axes), m)


def searchsorted(a: TensorLike, v: TensorLike, side: str = "left", sorter: Any = None) -> Tensor:
    """Return the positions at which `v` can be inserted in the sorted `a`: before equal elements,
    or after them with side="right"."""
    return _searchsorted(a, v, side, sorter)


def shape(a: TensorLike) -> tuple[int, ...]:
    """Return the shape of `a`, as a tuple of integers."""
    return tuple(convert(a).shape)


@hides_others
def size(a: TensorLike, axis: Axes = None, **others: Never) -> int:
    """Return the number of elements of `a`, or of those along one axis or several."""
    if others:
        refuse_call(size, others)
    sizes = _array(a).shape
    return prod(sizes[i] for i in normalize_axes("size", axis, len(sizes)))


@hides_others
def sort(
    a: TensorLike, axis: Axes = -1, kind: Any = None, *, stable: Any = None, **others: Never
) -> Tensor:
    """Return `a` sorted along `axis`, or flattened first if it is None; NaN counts as the largest.
    `kind` and `stable` have no effect."""
    if others:
        refuse_call(sort, others)
    return _sorting.sort(*flattened(_array(a), axis))


def split(ary: TensorLike, indices_or_sections: Any, axis: Axes = 0) -> list[Tensor]:
    """Return the parts of `ary` along `axis` between indices, or a number of equal parts; as a
    list."""
    return _shape.split_at(_array(ary), indices_or_sections, axis)


@hides_others
@restates(_shape.squeeze)
def squeeze(a: TensorLike, axis: Axes = None, **others: Never) -> Tensor:
    if others:
        refuse_call(squeeze, others)
    return _shape.squeeze(_array(a), axis)


def stack(
    arrays: Any, axis: Axes = 0, out: Any = None, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Return arrays of the same shape joined along a new axis."""
    return _no_out("stack", out, _as(_shape.stack(_flat(arrays, axis)[0], axis), dtype))


def take(
    a: TensorLike, indices: TensorLike, axis: Axes = None, out: Any = None, mode: str = "raise"
) -> Tensor:
    """Return slices of `a` along `axis`, by default of the flattened tensor, at integer `indices`.
    `mode` is for out-of-range indices: "raise" (IndexError), "wrap" or "clip"."""
    x, dim = flattened(_array(a), axis)
    size = x.shape[normalize_axis("take", dim, x.ndim)]
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"take: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    return _no_out("take", out, gather(x, _into(_array(indices), size, mode), dim))


def take_along_axis(arr: TensorLike, indices: TensorLike, axis: Axes = -1) -> Tensor:
    """Return the elements of `arr` at integer `indices` along `axis`, line by line; of the
    flattened tensor if it is None."""
    return taken(_sorting.take_along_axis, _array(arr), indices, axis)


@restates(_linear_algebra.tensordot)
def tensordot(a: TensorLike, b: TensorLike, axes: Any = 2) -> Tensor:
    return _linear_algebra.tensordot(*_pair(a, b), axes)


def tile(A: Any, reps: Any) -> Tensor:
    """Return `A` side by side, `reps` times along each axis."""
    return _rearrange(lambda indices: np.tile(indices, _as_array(reps)), A)


def trace(
    a: TensorLike,
    offset: Any = 0,
    axis1: Any = 0,
    axis2: Any = 1,
    dtype: DTypeLike | None = None,
    out: Any = None,
) -> Tensor:
    """Return the sums of the diagonals of the matrices along two axes."""
    return _no_out(
        "trace",
        out,
        _reductions.reduce_sum(
            _as(_widen(_manipulation.diagonal(a, offset, axis1, axis2)), dtype), -1
        ),
    )


@reads_own_arguments
def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = float) -> Tensor:
    """Return `N` by `M` ones on and below the diagonal `k`, and zeros above it."""
    return _creation.constant(np.tri(N, M, k, np.dtype(dtype)))


def union1d(ar1: Any, ar2: Any) -> Tensor:
    """Return the distinct elements of both, in ascending order; gradients as for ``unique``."""
    return _manipulation.unique(_shape.concatenate(*_flat((ar1, ar2), None)))


def unique_all(x: TensorLike) -> UniqueAllResult:
    """Return the distinct elements of `x`, first indices, inverse indices and counts; see
    ``unique``."""
    return UniqueAllResult(*_manipulation.unique(x, True, True, True, equal_nan=False))


def unique_counts(x: TensorLike) -> UniqueCountsResult:
    """Return the distinct elements of `x` and their counts; see ``unique``."""
    return UniqueCountsResult(*_manipulation.unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: TensorLike) -> UniqueInverseResult:
    """Return the distinct elements of `x` and the inverse indices; see ``unique``."""
    return UniqueInverseResult(*_manipulation.unique(x, return_inverse=True, equal_nan=False))


def unique_values(x: TensorLike) -> Tensor:
    """Return the distinct elements of `x` in ascending order; each NaN is one of them."""
    return _manipulation.unique(x, equal_nan=False)


def unstack(x: TensorLike, /, *, axis: Axes = 0) -> tuple[Tensor, ...]:
    """Return the slices of `x` along `axis`, as a tuple."""
    return tuple(_shape.unstack(_array(x), axis))


def vsplit(ary: TensorLike, indices_or_sections: Any) -> list[Tensor]:
    """Return the parts of `ary` along its first axis; see `split`."""
    return _split("vsplit", ary, indices_or_sections, 0, 2)


def vstack(tup: Any, *, dtype: DTypeLike | None = None) -> Tensor:
    """Return the arrays joined along the first axis; 1-D arrays count as rows."""
    return _join(tup, 0, 2, dtype)


def where(
    condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None, /
) -> Tensor | Any:
    """Return `x` where `condition` holds and `y` elsewhere; without both, the coordinates of true
    elements, one tensor for each axis."""
    if neither(x, y):
        return _true_coordinates(condition)
    return _elementwise.where(condition, *_pair(x, y))
