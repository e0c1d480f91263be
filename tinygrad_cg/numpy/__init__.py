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
from .._spellings.spell import Reading, spell
from . import _joining as joining
from . import _manipulation as moving
from . import _ordering as ordering
from . import _pointwise as pointwise
from . import _products as products
from . import _reductions as folding
from . import linalg, random
from ._readers import (  # noqa: F401 (the table calls them)
    _arange,
    _array,
    _as,
    _bounded,
    _flat,
    _is_stable,
    _kind,
    _pair,
    _places,
    _ranks,
    _real,
    _spacing,
    _summed,
    _terms,
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
        # Numbers from `start` (0 if only one bound is given) to below `stop`, in steps.
    argmax(a, axis=None, *, keepdims=False) = arg_extremum(argmax, _array(a), axis, keepdims)
        # Positions of the largest elements along `axis`, by default in the flattened tensor; the
        first where several tie.
    argmin(a, axis=None, *, keepdims=False) = arg_extremum(argmin, _array(a), axis, keepdims)
        # Positions of the smallest elements along `axis`, by default in the flattened tensor; the
        first where several tie.
    argsort(a, axis=-1, kind=None, *, stable=None)
        = order_along(_array(a), axis, _is_stable(kind, stable))
        # The places of the elements of `a` in their order along `axis`, or in the flattened tensor
        if it is None; `stable` keeps the order of equal ones.
    around round(a, decimals=0) = rounded(_array(a), decimals)
        # `a` to so many decimals, half to even. It has no gradient.
    array(object, dtype=None) = _as(_array(object), dtype)
        # A tensor of `object`: a number, a nested list, an array or a tensor; cast to `dtype` if
        given.
    array_split(ary, indices_or_sections, axis=0) -> list[Tensor]
        = split_at(_array(ary), indices_or_sections, axis, True)
        # The parts of `ary` along `axis` between indices, or a number of parts, of which the first
        may be longer by one; as a list.
    asarray(a, dtype=None) = _as(_array(a), dtype)
        # A tensor of `a`: a number, a nested list, an array or a tensor; cast to `dtype` if
        given.
    astype(x, dtype, /) = _as(_array(x), dtype)  # `x` as `dtype`. To integers truncates.
    broadcast_to(array, shape) = broadcast_to(_array(array), shape)
    clip(a, a_min=None, a_max=None, *, min=None, max=None)
        = clip(*_bounded(a, min if a_min is None else a_min, max if a_max is None else a_max))
        # `a` limited to [a_min, a_max]; None is no limit. At a limit the gradient passes.
    concat concatenate(arrays, /, axis=0) = concatenate(*_flat(arrays, axis))
        # The arrays joined along an axis that they have; flattened first if it is None.
    copy(a) = identity(_array(a))
    count_nonzero(a, axis=None, *, keepdims=False)
        = reduce_sum(cast(not_equal(_array(a), 0), int64), axis, keepdims)
        # How many elements over axes are not 0.
    cumprod(a, axis=None, dtype=None) = cumprod(_as(_summed(a), dtype), axis)
        # The products of all elements up to each along `axis`, by default of the flattened tensor;
        booleans and integers of fewer bits give integers of 64.
    cumsum(a, axis=None, dtype=None) = cumsum(_as(_summed(a), dtype), axis)
        # The sums of all elements up to each along `axis`, by default of the flattened tensor;
        booleans and integers of fewer bits give integers of 64.
    einsum(*operands, optimize=False) = einsum(*_terms(operands))
        # The sum over products of elements with equal indices: "ij,jk->ik", then the operands; or
        each operand with a list of numbers for its axes. Operands are multiplied two at a time,
        in the order that takes the fewest steps, whatever `optimize` says.
    expand_dims(a, axis) = expand_dims(_array(a), axis)
    eye(N, M=None, k=0, dtype=float64) = constant(np.eye(N, M, k, dtype))
        # `N` by `M` zeros (square by default) with ones on diagonal `k`, float64 by default.
    full(shape, fill_value, dtype=None) = _as(broadcast_to(_array(fill_value), shape), dtype)
        # A tensor of `shape` filled with `fill_value`.
    full_like(a, fill_value, dtype=None) = full_like(_array(a), fill_value, _kind(dtype))
        # `fill_value` everywhere, with the shape and, unless `dtype` is given, the dtype of `a`.
    identity(n, dtype=None) = constant(np.identity(n, dtype))
        # The identity matrix of `n` by `n`, float64 by default.
    imag(val) = imag(_array(val))
    isdtype(dtype, kind) -> bool = np.isdtype(np.dtype(dtype), kind)
        # Whether `dtype` is of a kind: "bool", "integral", "real floating", "numeric" ...
    linspace(start, stop, num=50, endpoint=True, *, dtype=None)
        = spaced(start, stop, num, endpoint, _spacing(start, stop, dtype))
        # `num` evenly spaced numbers from `start` to `stop`, which `endpoint` includes; float64
        by default, rounded down if integers are asked for.
    matmul(x1, x2, /) = matmul(*_pair(x1, x2))
        # The matrix product over the last two axes; the axes before them broadcast. A 1-D operand
        is a row on the left or a column on the right.
    matvec(x1, x2, /) = matvec(*_pair(x1, x2))
    mean(a, axis=None, dtype=None, *, keepdims=False)
        = reduce_mean(_as(_real(a), dtype), axis, keepdims)
        # The mean of elements over axes; booleans and integers are float64 first.
    ndim(a) -> int = convert(a).ndim  # How many dimensions `a` has.
    nonzero(a) -> tuple[Tensor, ...] = _places(_array(a))
        # The coordinates of what is not 0, one tensor for each axis.
    ones(shape, dtype=None) = ones(shape, _kind(dtype, float64))
        # A tensor of ones, float64 by default.
    ones_like(a, dtype=None) = ones_like(_array(a), _kind(dtype))
        # Ones with the shape and, unless `dtype` is given, the dtype of `a`.
    pad(array, pad_width, mode="constant", *, constant_values=0)
        = pad(_array(array), pad_width, mode, constant_values)
        # `array` with more elements before and after along each axis: `pad_width` is a pair for
        each, one pair for all, or one number. `mode` is "constant" (they are the single number
        `constant_values`), "reflect", "symmetric", "edge" or "wrap".
    permute_dims transpose(a, axes=None) = transpose(_array(a), axes)
    prod(a, axis=None, dtype=None, *, keepdims=False)
        = reduce_prod(_as(_summed(a), dtype), axis, keepdims)
        # The product of elements over axes; booleans and integers of fewer bits
        give integers of 64.
    ravel(a) = reshape(_array(a), (-1,))
        # The elements of `a` in row-major order, in one dimension.
    real(val) = real(_array(val))
    reciprocal(x, /) = divide(1, _array(x))  # 1 / x.
    reshape(a, /, shape) = reshape(_array(a), shape)
    rint(x, /) = round_half_even(_real(x))
        # `x` rounded to integers, half to even, as floating point. It has no gradient.
    searchsorted(a, v, side="left", sorter=None) = _ranks(a, v, side, sorter)
        # Where each of `v` stands in the sorted `a`: before those equal to it, or with
        side="right" behind them.
    shape(a) -> tuple[int, ...] = tuple(convert(a).shape)
        # The shape of `a`, as a tuple of integers.
    size(a) -> int = convert(a).size  # How many elements `a` has.
    sort(a, axis=-1, kind=None, *, stable=None) = sorted_along(_array(a), axis)
        # `a` sorted along `axis`, or flattened first if it is None; NaN counts as larger than all
        else. `kind` and `stable` make no difference to the result.
    split(ary, indices_or_sections, axis=0) -> list[Tensor]
        = split_at(_array(ary), indices_or_sections, axis)
        # The parts of `ary` along `axis` between indices, or a number of equal ones; as a list.
    squeeze(a, axis=None) = squeeze(_array(a), axis)
    stack(arrays, axis=0) = stack(_flat(arrays, axis)[0], axis)
        # Arrays of one shape joined along a new axis.
    std(a, axis=None, dtype=None, *, ddof=0, keepdims=False)
        = deviation(_as(_real(a), dtype), axis, ddof, keepdims)
        # The standard deviation over axes, the root of the variance.
    sum(a, axis=None, dtype=None, *, keepdims=False)
        = reduce_sum(_as(_summed(a), dtype), axis, keepdims)
        # The sum of elements over axes; booleans and integers of fewer bits
        give integers of 64.
    take(a, indices, axis=None) = taken(_array(a), indices, axis)
        # Slices of `a` along `axis`, by default of the flattened tensor, at integer `indices`.
    take_along_axis(arr, indices, axis=-1) = taken_along(_array(arr), indices, axis)
        # The elements of `arr` at integer `indices` along `axis`, line by line; of the flattened
        tensor if it is None.
    tensordot(a, b, axes=2) = tensordot(*_pair(a, b), axes)
    unstack(x, /, *, axis=0) -> tuple[Tensor, ...] = tuple(unstack(_array(x), axis))
        # The slices of `x` along `axis`, as a tuple.
    var(a, axis=None, dtype=None, *, ddof=0, keepdims=False)
        = variance(_as(_real(a), dtype), axis, ddof, keepdims)
        # The mean of squared distances from the mean over axes, the sum divided by `ddof` less
        than there are elements.
    where(condition, x=None, y=None, /) -> Tensor | Any
        = _places(condition) if neither(x, y) else where(condition, *_pair(x, y))
        # `x` where `condition` holds and `y` elsewhere; without both, the coordinates of what is
        true, one tensor for each axis.
    zeros(shape, dtype=None) = zeros(shape, _kind(dtype, float64))
        # A tensor of zeros, float64 by default.
    zeros_like(a, dtype=None) = zeros_like(_array(a), _kind(dtype))
        # Zeros with the shape and, unless `dtype` is given, the dtype of `a`.
"""
_READING = Reading(one="(x, /) = {}(_array(x))", two="(x1, x2, /) = {}(*_pair(x1, x2))")
spell(globals(), _TABLE, readers=("_array", "_pair"), records="numpy", reading=_READING)

for _module in (folding, joining, moving, ordering, pointwise, products):
    globals().update({_name: getattr(_module, _name) for _name in _module.__all__})
    globals()["__all__"] += _module.__all__
register(sys.modules[__name__], np, __all__)
register(linalg, np.linalg, linalg.__all__)
