"""NumPy's names, on tensors, with NumPy's defaults: Python's floats are float64 here."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
from numpy import __array_api_version__, __array_namespace_info__  # noqa: F401 (for the array API)

from .._core.suggestions import refuse_name
from .._ops.dlpack import from_dlpack
from .._ops.protocol import register
from .._spellings.spell import spell
from . import _fits as fits
from . import _manipulation as moving
from . import _maps as maps
from . import _pointwise as pointwise
from . import _products as products
from . import _quantiles as quantiles
from . import _readers as readers
from . import _reductions as reductions
from . import _totals as totals
from . import fft, linalg, random
from ._manipulation import (  # noqa: F401 (the table names the classes)
    Concatenator,
    UniqueAllResult,
    UniqueCountsResult,
    UniqueInverseResult,
    c_,
    r_,
)

_OF_NUMPY = (  # public here as they are
    "bool bool_ can_cast complex64 complex128 e finfo float16 float32 float64 "
    "iinfo inf int8 int16 int32 int64 nan newaxis pi result_type uint8 uint16 uint32 uint64"
)
globals().update({_name: getattr(np, _name) for _name in _OF_NUMPY.split()})
_FORWARDED = (  # NumPy's own: questions, indices, files, texts, and what has no gradient
    "allclose argwhere array2string array_equal array_equiv array_repr array_str base_repr "
    "binary_repr bitwise_count broadcast bytes_ cdouble complexfloating copyto csingle "
    "datetime64 diag_indices diag_indices_from digitize double dtype einsum_path errstate "
    "fill_diagonal flatnonzero floating format_float_positional format_float_scientific frexp "
    "frombuffer fromfile fromfunction fromiter fromstring generic genfromtxt get_printoptions "
    "geterr half indices inexact int_ intc integer intp iscomplexobj isrealobj isscalar "
    "issubdtype iterable ix_ lexsort load loadtxt mask_indices may_share_memory "
    "min_scalar_type ndarray ndenumerate ndindex nditer number object_ packbits place "
    "printoptions promote_types put put_along_axis putmask ravel_multi_index real_if_close "
    "save savetxt savez savez_compressed set_printoptions seterr shares_memory signedinteger "
    "single sort_complex spacing str_ timedelta64 tril_indices tril_indices_from triu_indices "
    "triu_indices_from typename ufunc uint unpackbits unravel_index unsignedinteger"
)
__all__ = ["c_", "fft", "from_dlpack", "linalg", "r_", "random"]
__all__ += _OF_NUMPY.split()

_TABLE = """
    append(arr, values, axis=None) = concatenate(*_flat((arr, values), axis))
        # Return `values` joined to the end of `arr` along `axis`; both flattened if it is None.
    arange(start, stop=None, step=1, dtype=None, *, device=None)
        = _on("arange", device, _arange(start, stop, step, dtype))
        # Return numbers from `start` (0 if only one bound is given) to below `stop`, in steps.
    argmax(a, axis=None, out=None, *, keepdims=False)
        = _no_out("argmax", out, _position(argmax, _array(a), axis, keepdims))
        # Return positions of the largest elements along `axis`, by default in the flattened tensor;
        the first where several tie.
    argmin(a, axis=None, out=None, *, keepdims=False)
        = _no_out("argmin", out, _position(argmin, _array(a), axis, keepdims))
        # Return positions of the smallest elements along `axis`, by default in the flattened
        tensor; the first where several tie.
    argpartition(a, kth, axis=-1, kind=None, order=None) = argsort(*flattened(_array(a), axis))
        # Return the indices that sort `a` along `axis`, or flattened if it is None: one of the
        orders that a partition may have.
    argsort(a, axis=-1, kind=None, *, stable=None)
        = argsort(*flattened(_array(a), axis), stable=_is_stable(kind, stable))
        # Return the indices that sort `a` along `axis`, or flattened if it is None; `stable` keeps
        the order of equal elements.
    around round(a, decimals=0, out=None)
        = _no_out("round", out, round_decimals(_array(a), as_int("round", "decimals", decimals)))
        # Return `a` rounded to `decimals` decimals, half to even. It has no gradient.
    array(object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0)
        = _raise_in_front(_converted("array", object, dtype, copy, None), ndmin)
        # Return a tensor of `object`: a number, a nested list, an array or a tensor; cast to
        `dtype` if given, with axes of size 1 in front to have `ndmin`.
    array_split(ary, indices_or_sections, axis=0) -> list[Tensor]
        = split_at(_array(ary), indices_or_sections, axis, True)
        # Return the parts of `ary` along `axis` between indices, or a number of parts, of which the
        first may be longer by one; as a list.
    asarray asanyarray(a, dtype=None, order=None, *, device=None, copy=None)
        = _converted("asarray", a, dtype, copy, device)
        # Return a tensor of `a`: a number, a nested list, an array or a tensor; cast to `dtype` if
        given. With ``copy=False`` a ValueError for all but tensors of that dtype.
    ascontiguousarray asfortranarray(a, dtype=None) = _raise_rank(_as(_array(a), dtype), 1)
        # Return a tensor of `a` with at least one axis; how its elements lie in memory is not said.
    astype(x, dtype, /, *, copy=True, device=None) = _on("astype", device, _as(_array(x), dtype))
        # Return `x` as `dtype`. To integers truncates.
    atleast_1d(*arys) -> Tensor | Any = _all_raised(arys, 1)
        # Return each argument with at least one axis; a tuple for several.
    atleast_2d(*arys) -> Tensor | Any = _all_raised(arys, 2)
        # Return each argument with at least two axes, new ones in front; a tuple for several.
    atleast_3d(*arys) -> Tensor | Any = _all_raised(arys, 3)
        # Return each argument with at least three axes, where NumPy puts them; a tuple for several.
    broadcast_shapes(*shapes) -> tuple[int, ...] = np.broadcast_shapes(*shapes)
        # Return the shape that tensors of these shapes have together; ValueError if there is none.
    broadcast_to(array, shape) = broadcast_to(_array(array), shape)
    clip(a, a_min=None, a_max=None, out=None, *, min=None, max=None)
        = _no_out("clip", out,
        clip(*_clip_operands(a, min if a_min is None else a_min, max if a_max is None else a_max)))
        # Return `a` limited to [a_min, a_max]; None is no limit. At a limit the gradient passes.
    compress(condition, a, axis=None, out=None) = _no_out("compress", out,
        _rearrange(lambda indices: np.compress(_as_mask(condition), indices, axis), a))
        # Return the rows of `axis` (or of `a` flattened) for which the 1-D `condition` holds.
    concat concatenate(arrays, /, axis=0, out=None, *, dtype=None)
        = _no_out("concatenate", out, _as(concatenate(*_flat(arrays, axis)), dtype))
        # Return the arrays joined along an axis that they have; flattened first if it is None.
    copy(a, order="K", subok=False) = identity(_array(a))  # Return `a` as a new tensor.
    count_nonzero(a, axis=None, *, keepdims=False)
        = reduce_sum(cast(not_equal(_array(a), 0), int64), axis, keepdims)
        # Return the number of elements over axes that are not 0.
    cumprod(a, axis=None, dtype=None, out=None)
        = _no_out("cumprod", out, cumprod(*_line(_as(_widen(a), dtype), axis)))
        # Return the products of all elements up to each along `axis`, by default of the flattened
        tensor; booleans and integers of fewer bits give integers of 64.
    cumsum(a, axis=None, dtype=None, out=None)
        = _no_out("cumsum", out, cumsum(*_line(_as(_widen(a), dtype), axis)))
        # Return the sums of all elements up to each along `axis`, by default of the flattened
        tensor; booleans and integers of fewer bits give integers of 64.
    cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
        = _cumulative(cumprod, 1, x, axis, dtype, include_initial)
        # Return the products of all elements up to each along `axis`, with a 1 in front if asked.
        `axis` must be given for more than one dimension, as the array API has it.
    cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
        = _cumulative(cumsum, 0, x, axis, dtype, include_initial)
        # Return the sums of all elements up to each along `axis`, with a 0 in front if asked.
        `axis` must be given for more than one dimension, as the array API has it.
    degrees rad2deg(x, /) = multiply(_real(x), 180 / pi)
        # Convert angles from radians to degrees; the shape of `x`, integers as float64.
    delete(arr, obj, axis=None)
        = _rearrange(lambda indices: np.delete(indices, _as_array(obj), axis), arr)
        # Return `arr` without the rows `obj` (integers, a slice or a mask) of `axis`, or flattened.
    diagflat(v, k=0) = diag(reshape(_array(v), (-1,)), k)
        # Return the matrix that has the elements of `v`, flattened, on its diagonal `k`.
    dsplit(ary, indices_or_sections) -> list[Tensor]
        = _split("dsplit", ary, indices_or_sections, 2, 3)
        # Return the parts of `ary` along its third axis; see `split`.
    dstack(tup) = _join(tup, 2, 3, None)
        # Return the arrays one behind the other: joined along the third axis.
    einsum(*operands, optimize=False) = einsum(*_terms(operands))
        # Return the sum over products of elements with equal indices: "ij,jk->ik", then the
        operands; or each operand with a list of numbers for its axes. Operands are multiplied two
        at a time, in the order that takes the fewest steps, whatever `optimize` says.
    empty(shape, dtype=None, order="C", *, device=None)
        = _on("empty", device, zeros(shape, _kind(dtype, float64)))
        # Return a tensor of `shape` (float64 by default) with any values: here they are zeros.
    empty_like(prototype, dtype=None, order="K", subok=True, shape=None, *, device=None)
        = _filled_like("empty_like", prototype, 0, dtype, shape, device)
        # Return a tensor of the shape (and dtype) of `prototype` with any values: here zeros.
    expand_dims(a, axis) = _expanded(_array(a), axis)
        # Return `a` with a new axis of size 1 at position `axis` of the result, or at several.
        Raises InvalidArgumentError for positions that the result does not have.
    extract(condition, arr)
        = _rearrange(lambda indices: np.extract(_as_mask(condition), indices), arr)
        # Return the elements of `arr` for which `condition` holds, in row-major order.
    eye(N, M=None, k=0, dtype=None, order="C", *, device=None)
        = _on("eye", device, constant(np.eye(N, M, k, _kind(dtype, float64))))
        # Return `N` by `M` zeros (square by default) with ones on diagonal `k`, float64 by default.
    fliplr(m) = flip(m, 1)  # Return `m` in reversed order along its second axis.
    flipud(m) = flip(m, 0)  # Return `m` in reversed order along its first axis.
    fmax(x1, x2, /) = _without_nan_of_two(maximum, x1, x2)
        # Return the larger of both, the other where one is NaN; in a tie `x1` has the gradient.
    fmin(x1, x2, /) = _without_nan_of_two(minimum, x1, x2)
        # Return the smaller of both, the other where one is NaN; in a tie `x1` has the gradient.
    full(shape, fill_value, dtype=None, order="C", *, device=None)
        = _on("full", device, _as(broadcast_to(_array(fill_value), shape), dtype))
        # Return a tensor of `shape` filled with `fill_value`.
    full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, *, device=None)
        = _filled_like("full_like", a, fill_value, dtype, shape, device)
        # Return `fill_value`, which broadcasts, with the shape and the dtype of `a`, unless `shape`
        or `dtype` are given. Its gradient is that of a broadcast value.
    bartlett blackman hamming hanning(M) = {}(M)
    hsplit(ary, indices_or_sections) -> list[Tensor]
        = _split("hsplit", ary, indices_or_sections, 1, 1)
        # Return the parts of `ary` along its second axis, or its only one; see `split`.
    identity(n, dtype=None) = constant(np.identity(n, dtype))
        # Return the identity matrix of `n` by `n`, float64 by default.
    imag real(val) = {}(_array(val))
    iscomplex(x) = not_equal(imag(_array(x)), 0)
        # Return whether the imaginary part of `x` is not 0.
    isdtype(dtype, kind) -> bool = np.isdtype(np.dtype(dtype), kind)
        # Return whether `dtype` is of a kind: "bool", "integral", "real floating", "numeric" ...
    isin(element, test_elements, assume_unique=False, invert=False, *, kind=None)
        = _is_in(_array(element), _array(test_elements), invert)
        # Return whether each of `element` is among `test_elements`; with `invert` whether it is
        not.
    isneginf(x) = logical_and(isinf(_array(x)), less(x, 0))
        # Return whether `x` is negative and infinite.
    isposinf(x) = logical_and(isinf(_array(x)), greater(x, 0))
        # Return whether `x` is positive and infinite.
    isreal(x) = equal(imag(_array(x)), 0)  # Return whether the imaginary part of `x` is 0.
    i0(x) = bessel_i(0, x)  # Return the modified Bessel function of the first kind of order 0.
    kaiser(M, beta) = kaiser(M, beta)
    linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None)
        = _on("linspace", device, _linspace(start, stop, num, endpoint, retstep, dtype, axis))
        # Return `num` evenly spaced numbers from `start` to `stop`, which `endpoint` includes;
        float64 by default, rounded down if integers are asked for. With `retstep` a pair: the
        numbers, and the step between them. `axis` is where they stand if the ends are no scalars.
    matmul(x1, x2, /) = matmul(*_pair(x1, x2))
        # Return the matrix product over the last two axes; the axes before them broadcast. A 1-D
        operand is a row on the left or a column on the right.
    matvec(x1, x2, /) = matvec(*_pair(x1, x2))
    median(a, axis=None, *, keepdims=False) = quantile(a, 0.5, axis, keepdims=keepdims)
        # Return the middle element over axes, or the mean of the two; see ``quantile``.
    nancumprod(a, axis=None, dtype=None, out=None)
        = _no_out("nancumprod", out, cumprod(*_line(_without_nan(a, dtype, 1), axis)))
        # Return the products of all up to each along `axis`, or of flattened `a`; NaN left out.
    nancumsum(a, axis=None, dtype=None, out=None)
        = _no_out("nancumsum", out, cumsum(*_line(_without_nan(a, dtype, 0), axis)))
        # Return the sums of elements up to each along `axis`, or of flattened `a`; NaN left out.
    nanmax(a, axis=None, out=None, keepdims=False, initial=None, where=None)
        = _no_out("nanmax", out,
        _nan_extremum(max, -inf, _array(a), axis, keepdims, initial, where))
        # Return the largest element over axes, NaN left out; NaN where nothing is left.
    nanmin(a, axis=None, out=None, keepdims=False, initial=None, where=None)
        = _no_out("nanmin", out,
        _nan_extremum(min, inf, _array(a), axis, keepdims, initial, where))
        # Return the smallest element over axes, NaN left out; NaN where nothing is left.
    nanmedian(a, axis=None, *, keepdims=False) = nanquantile(a, 0.5, axis, keepdims=keepdims)
        # Return the middle element over axes, or the mean of the two, NaN left out; NaN where
        nothing is left.
    nanpercentile(a, q, axis=None, *, method="linear", keepdims=False)
        = nanquantile(a, _percent(q), axis, method=method, keepdims=keepdims)
        # Return the `q`-th percentiles, with `q` between 0 and 100, NaN left out.
    nanprod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None)
        = prod(_without_nan(a, dtype, 1), axis, None, out, keepdims, initial, where)
        # Return the product of elements over axes, NaN left out.
    nansum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None)
        = sum(_without_nan(a, dtype, 0), axis, None, out, keepdims, initial, where)
        # Return the sum of elements over axes, NaN left out.
    ndim(a) -> int = convert(a).ndim  # Return the number of dimensions of `a`.
    nonzero(a) -> tuple[Tensor, ...] = _true_coordinates(_array(a))
        # Return the coordinates of what is not 0, one tensor for each axis.
    ones(shape, dtype=None, order="C", *, device=None)
        = _on("ones", device, ones(shape, _kind(dtype, float64)))
        # Return a tensor of ones, float64 by default.
    ones_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None)
        = _filled_like("ones_like", a, 1, dtype, shape, device)
        # Return ones with the shape and, unless `dtype` is given, the dtype of `a`.
    pad(array, pad_width, mode="constant", *, constant_values=0)
        = pad(_array(array), pad_width, mode, constant_values)
        # Return `array` with more elements before and after along each axis: `pad_width` is a pair
        for each, one pair for all, or one number. `mode` is "constant" (they are the single number
        `constant_values`), "reflect", "symmetric", "edge" or "wrap".
    partition(a, kth, axis=-1, kind=None, order=None) = sort(*flattened(_array(a), axis))
        # Return `a` sorted along `axis`, or flattened first: one of the orders that a partition may
        have. Whatever `kth` is, the smaller elements stand before it and the larger behind.
    percentile(a, q, axis=None, *, method="linear", keepdims=False, weights=None)
        = quantile(a, _percent(q), axis, method=method, keepdims=keepdims, weights=weights)
        # Return the `q`-th percentiles, with `q` between 0 and 100; see ``quantile``.
    permute_dims transpose(a, axes=None) = transpose(_array(a), axes)
    polyadd(a1, a2) = add(*_of_one_length(a1, a2))
        # Return the coefficients of the sum of two polynomials.
    polymul(a1, a2) = convolve(_trim(a1), _trim(a2))
        # Return the coefficients of the product of two polynomials, without the zeros in front of
        theirs. Inside ``vmap`` and ``function`` those that have no values yet keep their zeros.
    polysub(a1, a2) = subtract(*_of_one_length(a1, a2))
        # Return the coefficients of the difference of two polynomials.
    radians deg2rad(x, /) = multiply(_real(x), pi / 180)
        # Convert angles from degrees to radians; the shape of `x`, integers as float64.
    ravel(a, order="C") = reshape_in(_array(a), (-1,), order)
        # Return the elements of `a` in row-major order, in one dimension; with `order` "F" in
        column-major order.
    reciprocal(x, /) = divide(1, _array(x))  # Return 1 / x.
    repeat(a, repeats, axis=None)
        = _rearrange(lambda indices: np.repeat(indices, _as_array(repeats), axis), a)
        # Return each element of `a` along `axis`, or of it flattened, `repeats` times.
    reshape(a, /, shape, order="C", *, copy=None) = reshape_in(_array(a), shape, order)
        # Return the elements of `a`, in row-major order (column-major if `order` is "F"), with
        another shape. One size may be -1. Raises InvalidArgumentError unless the two shapes have
        equally many elements.
    resize(a, new_shape) = _rearrange(lambda indices: np.resize(indices, new_shape), a)
        # Return `a` with another shape: its elements in row-major order, repeated if too few.
    rint(x, /) = round_half_even(_real(x))
        # Return `x` rounded to integers, half to even, as floating point. It has no gradient.
    rot90(m, k=1, axes=(0, 1)) = _rearrange(lambda indices: np.rot90(indices, k, axes), m)
        # Return `m` rotated `k` times by 90 degrees, from the first to the second of `axes`.
    searchsorted(a, v, side="left", sorter=None)
        = _searchsorted(a, v, side, sorter)
        # Return where each of `v` stands in the sorted `a`: before those equal to it, or with
        side="right" behind them.
    shape(a) -> tuple[int, ...] = tuple(convert(a).shape)
        # Return the shape of `a`, as a tuple of integers.
    size(a, axis=None) -> int = _size(_array(a), axis)
        # Return the number of elements of `a`, or of those along one axis or several.
    sort(a, axis=-1, kind=None, *, stable=None) = sort(*flattened(_array(a), axis))
        # Return `a` sorted along `axis`, or flattened first if it is None; NaN counts as larger
        than all else. `kind` and `stable` make no difference to the result.
    split(ary, indices_or_sections, axis=0) -> list[Tensor]
        = split_at(_array(ary), indices_or_sections, axis)
        # Return the parts of `ary` along `axis` between indices, or a number of equal ones; as a
        list.
    squeeze(a, axis=None) = squeeze(_array(a), axis)
    stack(arrays, axis=0, out=None, *, dtype=None)
        = _no_out("stack", out, _as(stack(_flat(arrays, axis)[0], axis), dtype))
        # Return arrays of one shape joined along a new axis.
    take(a, indices, axis=None, out=None, mode="raise")
        = _no_out("take", out, _taken(_array(a), indices, axis, mode))
        # Return slices of `a` along `axis`, by default of the flattened tensor, at integer
        `indices`. `mode` says what those outside do: "raise" (IndexError), "wrap" or "clip".
    take_along_axis(arr, indices, axis=-1) = taken(take_along_axis, _array(arr), indices, axis)
        # Return the elements of `arr` at integer `indices` along `axis`, line by line; of the
        flattened tensor if it is None.
    tensordot(a, b, axes=2) = tensordot(*_pair(a, b), axes)
    tile(A, reps) = _rearrange(lambda indices: np.tile(indices, _as_array(reps)), A)
        # Return `A` side by side, `reps` times along each axis.
    trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None) = _no_out("trace", out,
        reduce_sum(_as(_widen(diagonal(a, offset, axis1, axis2)), dtype), -1))
        # Return the sums of the diagonals of the matrices along two axes.
    tri(N, M=None, k=0, dtype=float) = constant(np.tri(N, M, k, np.dtype(dtype)))
        # Return `N` by `M` ones on and below the diagonal `k`, and zeros above it.
    union1d(ar1, ar2) = unique(concatenate(*_flat((ar1, ar2), None)))
        # Return the different elements of both, in ascending order; gradients as for ``unique``.
    unique_all(x) -> UniqueAllResult
        = UniqueAllResult(*unique(x, True, True, True, equal_nan=False))
        # Return the different elements of `x`, and all there is to say of them; see ``unique``.
    unique_counts(x) -> UniqueCountsResult
        = UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False))
        # Return the different elements of `x`, and how many there are of each; see ``unique``.
    unique_inverse(x) -> UniqueInverseResult
        = UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False))
        # Return the different elements of `x`, and which of them each element is; see ``unique``.
    unique_values(x) = unique(x, equal_nan=False)
        # Return the different elements of `x` in ascending order; each NaN is one of them.
    unstack(x, /, *, axis=0) -> tuple[Tensor, ...] = tuple(unstack(_array(x), axis))
        # Return the slices of `x` along `axis`, as a tuple.
    vsplit(ary, indices_or_sections) -> list[Tensor]
        = _split("vsplit", ary, indices_or_sections, 0, 2)
        # Return the parts of `ary` along its first axis; see `split`.
    vstack(tup, *, dtype=None) = _join(tup, 0, 2, dtype)
        # Return the arrays one above the other: joined along the first axis, 1-D ones as rows.
    where(condition, x=None, y=None, /) -> Tensor | Any
        = _true_coordinates(condition) if neither(x, y) else where(condition, *_pair(x, y))
        # Return `x` where `condition` holds and `y` elsewhere; without both, the coordinates of
        what is true, one tensor for each axis.
    zeros(shape, dtype=None, order="C", *, device=None)
        = _on("zeros", device, zeros(shape, _kind(dtype, float64)))
        # Return a tensor of zeros, float64 by default.
    zeros_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None)
        = _filled_like("zeros_like", a, 0, dtype, shape, device)
        # Return zeros with the shape and, unless `dtype` is given, the dtype of `a`.
"""
_ROOMS = (readers, maps, totals, reductions, quantiles, moving, pointwise, products, fits)
_functions = {
    name: value
    for room in _ROOMS
    for name, value in vars(room).items()
    if isinstance(value, types.FunctionType) and value.__module__ == room.__name__
}
globals().update(_functions)  # the table calls them
__all__ += [name for name in _functions if not name.startswith("_")]
_READINGS = {1: "(x, /) = {}(_array(x))", 2: "(x1, x2, /) = {}(*_pair(x1, x2))"}
spell(globals(), _TABLE, readers=("_array", "_pair"), records="numpy", readings=_READINGS)


def __getattr__(name: str) -> Any:
    if name not in _FORWARDED.split():
        refuse_name(__name__, name)
    globals()[name] = found = getattr(np, name)
    return found


register(sys.modules[__name__], np, __all__)
register(linalg, np.linalg, linalg.__all__)
_strides = types.SimpleNamespace(sliding_window_view=moving._sliding_window_view)
register(_strides, np.lib.stride_tricks, vars(_strides))
register(fft, np.fft, fft.__all__)
