"""NumPy's reductions by one ufunc, with `initial` and `where`, and functions made of them.

They are methods of tensors, too, so they call the operation directly.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any, Never

import numpy as np

from .._core.kinds import is_bool, is_complex, is_inexact
from .._core.primitive import public_function
from .._core.suggestions import hides_others, refuse_call
from .._core.tensor import Tensor
from .._ops.comparison import equal, isnan, logical_and, logical_or
from .._ops.complex import conj, imag, real
from .._ops.complex_parts import complex_of
from .._ops.creation import full_like, zeros
from .._ops.define import reduced_shape
from .._ops.elementwise import add, divide, maximum, minimum, multiply, subtract
from .._ops.elementwise import where as choose
from .._ops.namespaces.adapt import variance
from .._ops.namespaces.namespace import spelled
from .._ops.reductions import (
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    root_of_variance,
)
from .._ops.shape import broadcast_to, cast, in_float32
from .._ops.validation import INTEGRAL, normalize_axes
from ._readers import _array, _as, _axis, _no_out, _real, _widen


def _of_sums(name: str, reduce: Callable[..., Tensor], combine: Any, neutral: int, doc: str):
    def total(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = None,
        dim: None = None,
        keepdim: None = None,
    ) -> Tensor:
        if dim is not None or keepdim is not None:
            refuse_call(total, ["keepdim" if dim is None else "dim"])
        x = _as(_widen(a), dtype)
        if axis is None and initial is None and where is None and out is None:
            return reduce(x, None, keepdims)
        return _total(name, reduce, combine, neutral, x, axis, out, keepdims, initial, where)

    total.__doc__ = f"""{doc} of the elements for which `where` holds.

    Booleans and shorter integers give 64-bit integers.
    """
    return hides_others(spelled(total, name))


_sum = _of_sums("sum", reduce_sum, add, 0, "Return the sum over axes, plus `initial`,")
prod = _of_sums("prod", reduce_prod, multiply, 1, "Return the product over axes, times `initial`,")


# Called most: all of a tensor of floats is the kernel's at once. Dtypes of one kind are one object.
sum = public_function(
    reduce_sum.primitive,
    "a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None, dim=None, "
    "keepdim=None",
    over_all_axes=(
        "axis is None and dtype is None and out is None and keepdims is False and initial is None "
        "and where is None and dim is None and keepdim is None and type(a) is Tensor "
        "and ((kind := a._data.dtype) is FLOAT32 or kind is FLOAT64)",
        INTEGRAL,
    ),
    otherwise=_sum,
)
del sum.primitive  # it takes other arguments
update_wrapper(sum, _sum)


def _of_extremes(name: str, reduce: Callable[..., Tensor], larger: Any, doc: str):
    @hides_others
    def extreme(
        a: Any,
        axis: Any = None,
        out: None = None,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = None,
        **others: Never,
    ) -> Tensor:
        if others:
            refuse_call(extreme, others)
        a = _array(a)
        if axis is None and initial is where is out is None and not is_complex(a.dtype):
            return reduce(a, None, keepdims)
        if initial is None and where is not None and where is not True:
            raise ValueError(f"{name}: where needs initial, the result if nothing is chosen")
        axes = normalize_axes(name, _axis(a, axis), a.ndim)
        shape = reduced_shape(tuple(a.shape), axes, bool(keepdims))
        if initial is not None and not a.size and zeros(shape).size:
            nothing = broadcast_to(cast(_array(initial), a.dtype), shape)
            return _no_out(name, out, nothing)
        end = _limit(a.dtype, reduce is reduce_min)
        find = partial(_complex_extremum, reduce, end) if is_complex(a.dtype) else reduce
        return _total(name, find, larger, end, a, axis, out, keepdims, initial, where)

    extreme.__doc__ = f"""{doc}

    Elements that tie share the gradient. `where` without `initial` raises ValueError.
    """
    return spelled(extreme, name)


max = _of_extremes(
    "max",
    reduce_max,
    maximum,
    "Return the largest element over axes, at least `initial`, of those for which `where` holds.",
)
min = _of_extremes(
    "min",
    reduce_min,
    minimum,
    "Return the smallest element over axes, at most `initial`, of those for which `where` holds.",
)


amax, amin = max, min


def _of_truths(name: str, reduce: Callable[..., Tensor], combine: Any, empty: bool, doc: str):
    @hides_others
    def truth(
        a: Any,
        axis: Any = None,
        out: None = None,
        keepdims: Any = False,
        *,
        where: Any = None,
        **others: Never,
    ) -> Tensor:
        if others:
            refuse_call(truth, others)
        x = _array(a)
        if axis is None and out is None and where is None:
            return reduce(x, None, keepdims)
        x = cast(x, bool)
        return _total(name, reduce, combine, empty, x, axis, out, keepdims, None, where)

    truth.__doc__ = doc
    return spelled(truth, name)


all = _of_truths(
    "all",
    reduce_all,
    logical_and,
    True,
    "Return whether all elements over axes are true, among those for which `where` holds.",
)
any = _of_truths(
    "any",
    reduce_any,
    logical_or,
    False,
    "Return whether any element over axes is true, among those for which `where` holds.",
)


@hides_others
def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: Any = False,
    *,
    where: Any = None,
    **others: Never,
) -> Tensor:
    """Return the mean over axes of the elements for which `where` holds.

    Booleans and integers become float64. NaN without elements.
    """
    if others:
        refuse_call(mean, others)
    x = _as(_real(a), dtype)
    if where is None:
        return _no_out("mean", out, reduce_mean(x, axis, keepdims))
    if x.dtype == np.float16:  # float16 may hold neither the sum nor the count
        wide = cast(x, np.float32)
        return cast(mean(wide, axis, None, out, keepdims, where=where), x.dtype)
    axis = normalize_axes("mean", axis, x.ndim)
    total = _total("mean", reduce_sum, add, 0, x, axis, out, keepdims, None, where)
    return divide(total, _count("mean", x, axis, keepdims, where))


def _of_squares(name: str, finish: Callable[[Callable, Tensor], Tensor], doc: str):
    def spread(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: Any = 0,
        keepdims: Any = False,
        *,
        where: Any = None,
        mean: Any = None,
        correction: Any = None,
    ) -> Tensor:
        less = _degrees(name, ddof, correction)

        def of_squares(x: Tensor) -> Tensor:
            if out is None and where is None and mean is None:
                return variance(x, axis, less, keepdims)
            return _variance(x, axis, out, less, keepdims, where, mean)

        return finish(of_squares, _as(_real(a), dtype))

    spread.__doc__ = doc
    return spelled(spread, name)


var = _of_squares(
    "var",
    lambda of_squares, x: of_squares(x),
    """Return the mean of squared distances from the mean over axes.

    The sum is divided by the number of elements minus `ddof`, also called `correction`. `where`
    selects the elements; `mean` is their mean, with the reduced axes, if it is known.
    """,
)
std = _of_squares(
    "std",
    lambda of_squares, x: in_float32(lambda x: root_of_variance(of_squares(x)))(x),
    "Return the standard deviation over axes, the root of the variance; arguments as for `var`.",
)


def _degrees(name: str, ddof: Any, correction: Any) -> Any:
    if correction is None:
        return ddof
    if ddof:
        raise ValueError(f"{name}: ddof and correction mean the same: give only one")
    return correction


def _variance(
    x: Tensor, axis: Any, out: Any, ddof: Any, keepdims: Any, where: Any, known_mean: Any
) -> Tensor:
    if x.dtype == np.float16:
        wide = cast(x, np.float32)
        return cast(_variance(wide, axis, out, ddof, keepdims, where, known_mean), x.dtype)
    axis = normalize_axes("var", axis, x.ndim)
    center = mean(x, axis, keepdims=True, where=where) if known_mean is None else _array(known_mean)
    centered = subtract(x, center)
    squares = real(multiply(centered, conj(centered)))
    total = _total("var", reduce_sum, add, 0, squares, axis, out, keepdims, None, where)
    count = _count("var", x, axis, keepdims, where)
    return divide(total, maximum(subtract(count, ddof), 0))


def _mask(name: str, where: Any, x: Tensor) -> Tensor | None:
    """Return `where` for each element of `x`, or None if it selects all."""
    if where is None or where is True:
        return None
    mask = _array(where)
    if not is_bool(mask.dtype):
        raise TypeError(f"{name}: where must be booleans, got {mask.dtype}: compare, as in x > 0")
    return broadcast_to(mask, tuple(x.shape))


def _total(
    name: str,
    reduce: Callable,
    combine: Callable,
    neutral: Any,
    x: Tensor,
    axis: Any,
    out: Any,
    keepdims: Any,
    initial: Any,
    where: Any,
) -> Tensor:
    """Return a reduction of the elements that `where` selects, combined with `initial`."""
    mask = _mask(name, where, x)
    chosen = x if mask is None else choose(mask, x, x.dtype.type(neutral))
    result = reduce(chosen, _axis(x, axis), keepdims)
    if initial is not None:
        result = combine(result, cast(_array(initial), result.dtype))
    return _no_out(name, out, result)


def _count(name: str, x: Tensor, axis: Any, keepdims: Any, where: Any) -> Tensor:
    """Return the number of elements that `where` selects, in the real dtype of `x`."""
    kind = real(x).dtype
    mask = _mask(name, where, x)
    counted = full_like(x, 1, kind) if mask is None else cast(mask, kind)
    return reduce_sum(counted, _axis(x, axis), keepdims)


def _complex_extremum(reduce: Callable, end: float, x: Tensor, axis: Any, keepdims: Any) -> Tensor:
    """Return the extremum by real parts, and by imaginary parts where these tie; NaN if one is."""
    a, b = real(x), imag(x)
    first = equal(a, reduce(a, axis, True))
    second = choose(first, b, end)
    chosen = logical_or(logical_and(first, equal(second, reduce(second, axis, True))), isnan(x))
    return complex_of(*[reduce(choose(chosen, part, end), axis, keepdims) for part in (a, b)])


def _limit(dtype: np.dtype, highest: bool) -> Any:
    """Return the largest number of a dtype, or the smallest one; infinite for floats."""
    if is_inexact(dtype):
        return np.inf if highest else -np.inf
    if is_bool(dtype):
        return highest
    return np.iinfo(dtype).max if highest else np.iinfo(dtype).min
