"""NumPy's names, on tensors, with NumPy's defaults: Python's floats are float64 here."""

from __future__ import annotations

import sys

import numpy as np
from numpy import (
    __array_namespace_info__,  # noqa: F401 (for the array API)
    bool,
    bool_,
    can_cast,
    complex64,
    complex128,
    e,
    finfo,
    float16,
    float32,
    float64,
    iinfo,
    inf,
    int8,
    int16,
    int32,
    int64,
    nan,
    newaxis,
    pi,
    result_type,
    uint8,
    uint16,
    uint32,
    uint64,
)

from .._ops.dlpack import from_dlpack
from .._ops.protocol import register
from .._spellings.spell import NamespaceReading, spell
from . import _joining as joining
from . import _manipulation as moving
from . import _ordering as ordering
from . import _pointwise as pointwise
from . import _products as products
from . import _reductions as reductions
from . import linalg, random
from ._readers import (  # noqa: F401 (the table calls them)
    _arange,
    _array,
    _as,
    _clip_operands,
    _flat,
    _is_stable,
    _kind,
    _pair,
    _ranks,
    _real,
    _spacing,
    _terms,
    _true_coordinates,
    _widen,
)

__all__ = [
    "bool",
    "bool_",
    "can_cast",
    "complex64",
    "complex128",
    "e",
    "finfo",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "iinfo",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "linalg",
    "nan",
    "newaxis",
    "pi",
    "random",
    "result_type",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

_TABLE = """
    all(a, axis=None, *, keepdims=False) = reduce_all(_array(a), axis, keepdims)
    amax max(a, axis=None, *, keepdims=False) = reduce_max(_array(a), axis, keepdims)
    amin min(a, axis=None, *, keepdims=False) = reduce_min(_array(a), axis, keepdims)
    any(a, axis=None, *, keepdims=False) = reduce_any(_array(a), axis, keepdims)
    arange(start, stop=None, step=1, *, dtype=None) = _arange(start, stop, step, dtype)
        # Return numbers from `start` (0 if only one bound is given) to below `stop`, in steps.
    argmax(a, axis=None, *, keepdims=False) = arg_extremum(argmax, _array(a), axis, keepdims)
        # Return positions of the largest elements along `axis`, by default in the flattened tensor;
        the first where several tie.
    argmin(a, axis=None, *, keepdims=False) = arg_extremum(argmin, _array(a), axis, keepdims)
        # Return positions of the smallest elements along `axis`, by default in the flattened
        tensor; the first where several tie.
    argsort(a, axis=-1, kind=None, *, stable=None)
        = argsort_along(_array(a), axis, _is_stable(kind, stable))
        # Return the indices that sort `a` along `axis`, or flattened if it is None; `stable` keeps
        the order of equal elements.
    around round(a, decimals=0) = round_decimals(_array(a), decimals)
        # Return `a` rounded to `decimals` decimals, half to even. It has no gradient.
    array(object, dtype=None) = _as(_array(object), dtype)
        # Return a tensor of `object`: a number, a nested list, an array or a tensor; cast to
        `dtype` if given.
    array_split(ary, indices_or_sections, axis=0) -> list[Tensor]
        = split_at(_array(ary), indices_or_sections, axis, True)
        # Return the parts of `ary` along `axis` between indices, or a number of parts, of which the
        first may be longer by one; as a list.
    asarray(a, dtype=None) = _as(_array(a), dtype)
        # Return a tensor of `a`: a number, a nested list, an array or a tensor; cast to `dtype` if
        given.
    astype(x, dtype, /) = _as(_array(x), dtype)  # Return `x` as `dtype`. To integers truncates.
    broadcast_to(array, shape) = broadcast_to(_array(array), shape)
    clip(a, a_min=None, a_max=None, *, min=None, max=None)
        = clip(*_clip_operands(a, min if a_min is None else a_min, max if a_max is None else a_max))
        # Return `a` limited to [a_min, a_max]; None is no limit. At a limit the gradient passes.
    concat concatenate(arrays, /, axis=0) = concatenate(*_flat(arrays, axis))
        # Return the arrays joined along an axis that they have; flattened first if it is None.
    copy(a) = identity(_array(a))
    count_nonzero(a, axis=None, *, keepdims=False)
        = reduce_sum(cast(not_equal(_array(a), 0), int64), axis, keepdims)
        # Return the number of elements over axes that are not 0.
    cumprod(a, axis=None, dtype=None) = cumprod(_as(_widen(a), dtype), axis)
        # Return the products of all elements up to each along `axis`, by default of the flattened
        tensor; booleans and integers of fewer bits give integers of 64.
    cumsum(a, axis=None, dtype=None) = cumsum(_as(_widen(a), dtype), axis)
        # Return the sums of all elements up to each along `axis`, by default of the flattened
        tensor; booleans and integers of fewer bits give integers of 64.
    einsum(*operands, optimize=False) = einsum(*_terms(operands))
        # Return the sum over products of elements with equal indices: "ij,jk->ik", then the
        operands; or each operand with a list of numbers for its axes. Operands are multiplied two
        at a time, in the order that takes the fewest steps, whatever `optimize` says.
    expand_dims(a, axis) = expand_dims(_array(a), axis)
    eye(N, M=None, k=0, dtype=float64) = constant(np.eye(N, M, k, dtype))
        # Return `N` by `M` zeros (square by default) with ones on diagonal `k`, float64 by default.
    full(shape, fill_value, dtype=None) = _as(broadcast_to(_array(fill_value), shape), dtype)
        # Return a tensor of `shape` filled with `fill_value`.
    full_like(a, fill_value, dtype=None) = full_like(_array(a), fill_value, _kind(dtype))
        # Return `fill_value` everywhere, with the shape and, unless `dtype` is given, the dtype of
        `a`.
    identity(n, dtype=None) = constant(np.identity(n, dtype))
        # Return the identity matrix of `n` by `n`, float64 by default.
    imag(val) = imag(_array(val))
    isdtype(dtype, kind) -> bool = np.isdtype(np.dtype(dtype), kind)
        # Return whether `dtype` is of a kind: "bool", "integral", "real floating", "numeric" ...
    linspace(start, stop, num=50, endpoint=True, *, dtype=None)
        = space_evenly(start, stop, num, endpoint, _spacing(start, stop, dtype))
        # Return `num` evenly spaced numbers from `start` to `stop`, which `endpoint` includes;
        float64 by default, rounded down if integers are asked for.
    matmul(x1, x2, /) = matmul(*_pair(x1, x2))
        # Return the matrix product over the last two axes; the axes before them broadcast. A 1-D
        operand is a row on the left or a column on the right.
    matvec(x1, x2, /) = matvec(*_pair(x1, x2))
    mean(a, axis=None, dtype=None, *, keepdims=False)
        = reduce_mean(_as(_real(a), dtype), axis, keepdims)
        # Return the mean of elements over axes; booleans and integers are float64 first.
    ndim(a) -> int = convert(a).ndim  # Return the number of dimensions of `a`.
    nonzero(a) -> tuple[Tensor, ...] = _true_coordinates(_array(a))
        # Return the coordinates of what is not 0, one tensor for each axis.
    ones(shape, dtype=None) = ones(shape, _kind(dtype, float64))
        # Return a tensor of ones, float64 by default.
    ones_like(a, dtype=None) = ones_like(_array(a), _kind(dtype))
        # Return ones with the shape and, unless `dtype` is given, the dtype of `a`.
    pad(array, pad_width, mode="constant", *, constant_values=0)
        = pad(_array(array), pad_width, mode, constant_values)
        # Return `array` with more elements before and after along each axis: `pad_width` is a pair
        for each, one pair for all, or one number. `mode` is "constant" (they are the single number
        `constant_values`), "reflect", "symmetric", "edge" or "wrap".
    permute_dims transpose(a, axes=None) = transpose(_array(a), axes)
    prod(a, axis=None, dtype=None, *, keepdims=False)
        = reduce_prod(_as(_widen(a), dtype), axis, keepdims)
        # Return the product of elements over axes; booleans and integers of fewer bits give
        integers of 64.
    ravel(a) = reshape(_array(a), (-1,))
        # Return the elements of `a` in row-major order, in one dimension.
    real(val) = real(_array(val))
    reciprocal(x, /) = divide(1, _array(x))  # Return 1 / x.
    reshape(a, /, shape) = reshape(_array(a), shape)
    rint(x, /) = round_half_even(_real(x))
        # Return `x` rounded to integers, half to even, as floating point. It has no gradient.
    searchsorted(a, v, side="left", sorter=None) = _ranks(a, v, side, sorter)
        # Return where each of `v` stands in the sorted `a`: before those equal to it, or with
        side="right" behind them.
    shape(a) -> tuple[int, ...] = tuple(convert(a).shape)
        # Return the shape of `a`, as a tuple of integers.
    size(a) -> int = convert(a).size  # Return the number of elements of `a`.
    sort(a, axis=-1, kind=None, *, stable=None) = sort_along(_array(a), axis)
        # Return `a` sorted along `axis`, or flattened first if it is None; NaN counts as larger
        than all else. `kind` and `stable` make no difference to the result.
    split(ary, indices_or_sections, axis=0) -> list[Tensor]
        = split_at(_array(ary), indices_or_sections, axis)
        # Return the parts of `ary` along `axis` between indices, or a number of equal ones; as a
        list.
    squeeze(a, axis=None) = squeeze(_array(a), axis)
    stack(arrays, axis=0) = stack(_flat(arrays, axis)[0], axis)
        # Return arrays of one shape joined along a new axis.
    std(a, axis=None, dtype=None, *, ddof=0, keepdims=False)
        = deviation(_as(_real(a), dtype), axis, ddof, keepdims)
        # Return the standard deviation over axes, the root of the variance.
    sum(a, axis=None, dtype=None, *, keepdims=False)
        = reduce_sum(_as(_widen(a), dtype), axis, keepdims)
        # Return the sum of elements over axes; booleans and integers of fewer bits give integers of
        64.
    take(a, indices, axis=None) = take_axis(_array(a), indices, axis)
        # Return slices of `a` along `axis`, by default of the flattened tensor, at integer
        `indices`.
    take_along_axis(arr, indices, axis=-1) = take_along(_array(arr), indices, axis)
        # Return the elements of `arr` at integer `indices` along `axis`, line by line; of the
        flattened tensor if it is None.
    tensordot(a, b, axes=2) = tensordot(*_pair(a, b), axes)
    unstack(x, /, *, axis=0) -> tuple[Tensor, ...] = tuple(unstack(_array(x), axis))
        # Return the slices of `x` along `axis`, as a tuple.
    var(a, axis=None, dtype=None, *, ddof=0, keepdims=False)
        = variance(_as(_real(a), dtype), axis, ddof, keepdims)
        # Return the mean of squared distances from the mean over axes, the sum divided by `ddof`
        less than there are elements.
    where(condition, x=None, y=None, /) -> Tensor | Any
        = _true_coordinates(condition) if neither(x, y) else where(condition, *_pair(x, y))
        # Return `x` where `condition` holds and `y` elsewhere; without both, the coordinates of
        what is true, one tensor for each axis.
    zeros(shape, dtype=None) = zeros(shape, _kind(dtype, float64))
        # Return a tensor of zeros, float64 by default.
    zeros_like(a, dtype=None) = zeros_like(_array(a), _kind(dtype))
        # Return zeros with the shape and, unless `dtype` is given, the dtype of `a`.
"""
_READING = NamespaceReading(one="(x, /) = {}(_array(x))", two="(x1, x2, /) = {}(*_pair(x1, x2))")
spell(globals(), _TABLE, readers=("_array", "_pair"), records="numpy", reading=_READING)

for _module in (reductions, joining, moving, ordering, pointwise, products):
    globals().update({_name: getattr(_module, _name) for _name in _module.__all__})
    globals()["__all__"] += _module.__all__
register(sys.modules[__name__], np, __all__)
register(linalg, np.linalg, linalg.__all__)
