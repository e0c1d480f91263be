"""Reductions: operations that reduce axes, and the normalisations built on them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.reduce import moments, narrow, search
from tinygrad_cg_kernels.reduce import reduction as kreduce
from tinygrad_cg_kernels.reduce import softmax as ksoftmax
from tinygrad_cg_kernels.runtime import errstate
from tinygrad_cg_kernels.runtime.promotion import loop_dtype

from .._core import devices
from .._core.conversion import FLOAT32, FLOAT64, convert, promote
from .._core.device_runs import kernel_for
from .._core.kinds import (
    NUMBERS,
    REAL,
    is_bool,
    is_complex,
    is_inexact,
    is_integer,
    is_native_float,
    is_unsigned,
)
from .._core.levels import is_transposing, state
from .._core.primitive import Primitive, apply
from .._core.tensor import Aval, Tensor
from ..errors import InvalidArgumentError
from .comparison import equal, isfinite, logical_or
from .complex import imag, real
from .composition import ARRAYS, TENSORS, Operations
from .creation import ones
from .define import (
    Case,
    Wrong,
    in_one_pass,
    later_axis,
    operation,
    public,
    reduced_shape,
    reduction,
)
from .elementwise import (
    add,
    divide,
    divide_upstream,
    exp,
    multiply,
    multiply_tangent,
    multiply_upstream,
    negative,
    power,
    sqrt,
    square,
    subtract,
    where,
)
from .indexing import getitem
from .shape import cast, concatenate, in_float32, repeat, reshape, squeeze, stack, transpose
from .validation import as_int, normalize_axes, normalize_axis


def restore_axes(dy: Tensor, shape: tuple, axis: tuple, keepdims: bool) -> Tensor:
    """Return `dy` with the reduced axes restored, of size 1, so that it broadcasts to `shape`."""
    if keepdims or not dy._data.ndim:
        return dy
    return reshape(dy, reduced_shape(shape, axis, True))


def _broadcast_back(dy: Tensor, shape: tuple, axis: tuple, keepdims: bool) -> Tensor:
    data = dy._data
    if data.ndim:
        return repeat(restore_axes(dy, shape, axis, keepdims), shape)
    if shape == (1,) and dy._rec is None and state.frame is None and type(data) is np.ndarray:
        return Tensor(data.reshape(shape))  # the commonest, without a look at all that may be
    return repeat(dy, shape)


def _count(shape: tuple[int, ...], axis: tuple[int, ...]) -> int:
    return prod([shape[i] for i in axis])


reduce_sum = reduction(
    "sum", kreduce.sum, "Return the sum of elements over axes.", vjp=_broadcast_back, linear=True
)


def sum_to_shape(gradient: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Undo broadcasting: sum over the axes that were repeated (or repeat what was summed)."""
    current = gradient._data.shape
    extra = len(current) - len(shape)
    if extra < 0 or any(size != 1 == current[i + extra] for i, size in enumerate(shape)):
        return repeat(gradient, shape)
    axes = [*range(extra)]
    axes += [i + extra for i, size in enumerate(shape) if size == 1 != current[i + extra]]
    params = {"axis": tuple(axes), "keepdims": not extra}
    total = apply(reduce_sum.primitive, (gradient,), params) if axes else gradient
    return reshape(total, shape) if total._data.shape != shape else total


def _run_mean(x: np.ndarray, axis: tuple[int, ...], keepdims: bool) -> np.ndarray:
    over_all = not keepdims and len(axis) == x.ndim and type(x) is np.ndarray
    if over_all and 0 < x.size < 2**24 and (x.dtype is FLOAT64 or x.dtype is FLOAT32):
        # In a quarter of the time, if x is small. The quotient in float64, rounded to float32, is
        # that of float32.
        return np.array(kreduce.sum(x, axis).item() / x.size, x.dtype)
    if is_bool(x.dtype):
        raise TypeError("mean: needs numbers, got bool; cast them to a float dtype first")
    wanted = loop_dtype(x.dtype)
    if is_integer(x.dtype):  # a mean may fit where the sum does not
        wanted = np.dtype(np.uint64 if is_unsigned(x.dtype) else np.int64)
    total = kernel_for(x, kreduce.sum)(errstate.cast(x, wanted), axis, keepdims)
    count = _count(x.shape, axis)
    if is_inexact(x.dtype):
        return errstate.cast(errstate.quiet.run(np.divide, total, count, total), x.dtype)
    quotient = total // max(count, 1)
    inexact = (total < 0) & (quotient * count != total)  # towards zero, as in TensorFlow
    return devices.library_of(x).asarray(quotient + inexact, x.dtype)


def _mean_by_sum(ops: Operations, x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    if not is_native_float(x.dtype):
        return None  # integers round, and the sum of float16 is taken in float32
    total = ops.sum(x, axis=axis, keepdims=keepdims)
    return ops.divide(total, ops.count(_count(x.shape, axis), x))


reduce_mean = reduction(
    "mean",
    kreduce.sum,
    "Return the mean of elements over axes; the mean of integers is rounded towards zero.",
    run=_run_mean,
    decomposition=_mean_by_sum,
    vjp=lambda dy, shape, axis, keepdims: _broadcast_back(
        divide(dy, float(_count(shape, axis))), shape, axis, keepdims
    ),
    linear=True,
    dtypes=NUMBERS,
)


def _prod_rule(dy: Tensor, x: Tensor, shape: Any, axis: tuple, keepdims: bool) -> Tensor:
    """Return the gradient: for each element the product of the others, right at every order."""
    rest = tuple(i for i in range(len(shape)) if i not in axis)
    perm = (*rest, *axis)
    moved = transpose(x, perm)
    rows = reshape(moved, (_count(shape, rest), _count(shape, axis)))
    others = reshape(_others_product(rows), tuple(moved.shape))
    others = transpose(others, tuple(perm.index(i) for i in range(len(shape))))
    return multiply_upstream(restore_axes(dy, shape, axis, keepdims), others)


def _others_product(rows: Tensor) -> Tensor:
    """Return products of the other elements by a binary tree: 2 log n multiplications of rows."""
    height, count = rows.shape
    if count <= 1:
        return power(rows, 0)  # ones that stay connected: derivatives beyond are 0, not None
    if count % 2:
        rows = concatenate([rows, ones((height, 1), rows.dtype)], 1)
    even = getitem(rows, (slice(None), slice(0, None, 2)))
    odd = getitem(rows, (slice(None), slice(1, None, 2)))
    above = _others_product(multiply(even, odd))
    pairs = stack([multiply(above, odd), multiply(above, even)], 2)
    return getitem(reshape(pairs, tuple(rows.shape)), (slice(None), slice(0, count)))


reduce_prod = reduction(
    "prod", kreduce.prod, "Return the product of elements over axes.", vjp=_prod_rule
)


def _extremum_rule(
    dy: Tensor, x: Tensor, out: Tensor, shape: Any, axis: tuple, keepdims: bool
) -> Tensor:
    ties = cast(equal(x, restore_axes(out, shape, axis, keepdims)), dy.dtype)
    count = reduce_sum(ties, axis, True)
    return share_among_ties(restore_axes(dy, shape, axis, keepdims), ties, count)


def share_among_ties(dy: Tensor, ties: Tensor, count: Tensor) -> Tensor:
    """Return the gradient of an extremum, which elements that tie share evenly.

    It is NaN if none of them equals the extremum, which is NaN then.
    """
    if is_transposing():  # the sum over no ties would be 0
        return multiply_upstream(dy, divide(ties, count))
    return multiply(ties, divide_upstream(dy, count))


_EXTREMUM = "Return the {} element over axes; tied elements share the gradient. NaN if one is NaN."
reduce_max = reduction(
    "max", kreduce.max, _EXTREMUM.format("largest"), vjp=_extremum_rule, dtypes=REAL
)
reduce_min = reduction(
    "min", kreduce.min, _EXTREMUM.format("smallest"), vjp=_extremum_rule, dtypes=REAL
)
reduce_any = reduction("any", kreduce.any, "Return whether any element over axes is true (not 0).")
reduce_all = reduction(
    "all", kreduce.all, "Return whether all elements over axes are true (not 0)."
)


def _by_parts(ops: Operations, x: Any, axis: Any) -> tuple[Any, Any, Any, Any]:
    """Return the largest element over axes, exp(x - that), and the sum of this: none overflows.

    The largest is kept finite, so that infinities come out as limits. It has no gradient.
    """
    axes = axis if isinstance(axis, tuple) else (axis,)
    shift = ops.nearest_finite(ops.max(x, axis=axes, keepdims=True))
    shifted = ops.subtract(x, shift)
    powers = ops.exp(shifted)
    return shift, shifted, powers, ops.sum(powers, axis=axes, keepdims=True)


def _logsumexp_by_parts(ops: Operations, x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    shift, _, _, total = _by_parts(ops, x, axis)
    result = ops.add(shift, ops.log(total))
    return result if keepdims else ops.reshape(result, shape=reduced_shape(x.shape, axis, False))


def _softmax_by_parts(ops: Operations, x: Any, axis: Any) -> Any:
    _, _, powers, total = _by_parts(ops, x, axis)
    return ops.multiply(powers, ops.divide(ops.number(1, x), total))


def _log_softmax_by_parts(ops: Operations, x: Any, axis: Any) -> Any:
    _, shifted, _, total = _by_parts(ops, x, axis)
    return ops.subtract(shifted, ops.log(total))


def _finite(x: Tensor) -> Tensor:
    """Return `x` with 0 for -inf, the logarithm of a sum of nothing: exp(-inf - 0) is 0."""
    return where(equal(x, -np.inf), 0, x)


NARROW = 4
"""Elements at most of rows for which the gradient of log_softmax goes by operations on arrays."""


def is_narrow(name: str, x: Any, axis: int | tuple[int, ...]) -> bool:
    """Return whether an operation has a way for narrow rows, which a program is to call."""
    if not is_native_float(x.dtype) or not narrow.is_narrow(x.shape, axis):
        return False
    return name in narrow.KERNELS or (name == "log_softmax_pull" and x.shape[-1] <= NARROW)


reduce_logsumexp = reduction(
    "logsumexp",
    ksoftmax.logsumexp,
    "Return log(sum(exp(x))) over axes, without overflow.",
    decomposition=_logsumexp_by_parts,
    vjp=lambda dy, x, out, shape, axis, keepdims: multiply_upstream(
        restore_axes(dy, shape, axis, keepdims),
        exp(subtract(x, _finite(restore_axes(out, shape, axis, keepdims)))),
    ),
    dtypes=REAL,
)


_times_distance = in_one_pass(
    "variance", lambda dy, x, mean: multiply_upstream(dy, subtract(x, mean))
)


def _variance_rule(dy: Tensor, x: Tensor, shape: Any, axis: tuple, keepdims: bool) -> Tensor:
    scaled = multiply(restore_axes(dy, shape, axis, keepdims), 2.0)
    count = float(max(_count(shape, axis), 1))
    return _times_distance(divide(scaled, count), x, reduce_mean(x, axis, True))


def distance_and_variance(
    ops: Operations, x: Any, axis: tuple[int, ...], keepdims: bool
) -> tuple[Any, Any]:
    """Return the distances from the mean over axes, and the mean of their squares."""
    count = ops.count(_count(x.shape, axis), x)
    distance = ops.subtract(x, ops.divide(ops.sum(x, axis=axis, keepdims=True), count))
    total = ops.sum(ops.square(distance), axis=axis, keepdims=keepdims)
    return distance, ops.divide(total, count)


def _variance_by_sums(ops: Operations, x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    if not is_native_float(x.dtype):
        return None
    return distance_and_variance(ops, x, axis, keepdims)[1]


_variance = reduction(
    "variance",
    moments.variance,
    "Return the mean of squared distances from the mean over axes. Integers become float64.",
    decomposition=_variance_by_sums,
    vjp=_variance_rule,
    dtypes=REAL,
)


@in_float32
def reduce_variance(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the mean of squared distances from the mean over axes; real for complex `x`.

    `axis` is one axis, several, or None for all; `keepdims` keeps them, with size 1. Integers
    become float64. Raises InvalidArgumentError for an axis that `x` does not have.
    """
    x = convert(x)
    if not is_complex(x.dtype):
        return _variance(x, axis, keepdims)
    return add(_variance(real(x), axis, keepdims), _variance(imag(x), axis, keepdims))


@in_float32
def reduce_std(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the standard deviation over axes, the root of `reduce_variance`; see there.

    Where it is 0 its gradient is 0.
    """
    return root_of_variance(reduce_variance(x, axis, keepdims))


def root_of_variance(variance: Tensor) -> Tensor:
    """Return the square root, with derivatives of 0 at 0, as the deviation of one element has."""
    is_zero = equal(variance, 0)
    return where(is_zero, 0, sqrt(where(is_zero, 1, variance)))


def scaled_squares(ops: Operations, sum_squares: Callable[[Any], Any], like: Any) -> Any:
    """Return one of three sums of squares that is neither too large nor too small, and its scale.

    ``sum_squares(scale)`` is the sum of squares of elements times a scale.
    """
    least, largest, factor = moments.SQUARES[like.dtype]
    scales = [ops.number(number, like) for number in (1.0, factor, 1 / factor)]
    totals = [sum_squares(scale) for scale in scales]
    is_small = ops.less(totals[0], ops.number(least, like))
    is_large = ops.greater(totals[0], ops.number(largest, like))

    def choose(plain: Any, of_small: Any, of_large: Any) -> Any:
        return ops.where(is_small, of_small, ops.where(is_large, of_large, plain))

    return choose(*totals), choose(*scales)


def _norm_by_sums(ops: Operations, x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    if not is_native_float(x.dtype):
        return None

    def sum_squares(scale: Any) -> Any:
        return ops.sum(ops.square(ops.multiply(x, scale)), axis=axis, keepdims=keepdims)

    total, scale = scaled_squares(ops, sum_squares, x)
    return ops.divide(ops.sqrt(total), scale)


euclidean_norm = reduction(
    "euclidean_norm",
    moments.norm,
    "Return the root of the sum of squares over axes, of real numbers. Integers become float64.",
    decomposition=_norm_by_sums,
    vjp=lambda dy, x, out, shape, axis, keepdims: multiply_upstream(
        restore_axes(dy, shape, axis, keepdims),
        divide(x, restore_axes(where(equal(out, 0), 1, out), shape, axis, keepdims)),
    ),
    dtypes=REAL,
)


def euclidean_length(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the Euclidean norm over axes of real or complex numbers.

    It uses no magnitudes of elements: at 0 their second derivatives are not those of their squares.
    """
    if not is_complex(x.dtype):
        return euclidean_norm(x, axis, keepdims)
    axes = (0, *[i + 1 for i in normalize_axes("norm", axis, x._data.ndim)])
    norm = euclidean_norm(stack([real(x), imag(x)], 0), axes, keepdims)
    return squeeze(norm, [0]) if keepdims else norm


def global_length(tensors: Sequence[Tensor]) -> Tensor:
    """Return the Euclidean norm of all elements of tensors of one floating dtype together."""
    if is_complex(tensors[0].dtype):
        tensors = [part(tensor) for tensor in tensors for part in (real, imag)]

    def sum_squares(scale: Any = None) -> Tensor:
        scaled = tensors if scale is None else [multiply(tensor, scale) for tensor in tensors]
        return functools.reduce(add, [reduce_sum(square(tensor)) for tensor in scaled])

    total = sum_squares()
    least, largest, _ = moments.SQUARES[total.dtype]
    if type(total._data) is np.ndarray and least <= total._data <= largest:
        return sqrt(total)
    total, scale = scaled_squares(TENSORS, sum_squares, total)
    return divide(root_of_variance(total), scale)


# Along one axis ------------------------------------------------------------------------------


_ALONG = [Case(((2, 3),), {"axis": 1}), Case(((3, 2, 2),), {"axis": 0})]


def _axis_operation(name: str, kernel: Any, abstract: Any, **record: Any) -> Primitive:
    return operation(
        name,
        lambda x, axis: kernel_for(x, kernel)(x, axis),
        abstract,
        kind="reduction",
        kernel=kernel,
        batch=later_axis,
        dtypes=REAL,
        samples=_ALONG,
        errors=(
            Wrong(InvalidArgumentError, "axis 2 is out of range", (np.ones((2, 3)), 2)),
            Wrong(TypeError, "no kernel for dtype complex", (np.ones(2, complex), 0)),
        ),
        **record,
    )


def _arg_aval(x: Aval, axis: int) -> Aval:
    return Aval(reduced_shape(x.shape, (axis,), False), np.dtype(np.int64))


_argmax = _axis_operation("argmax", search.argmax, _arg_aval)
_argmin = _axis_operation("argmin", search.argmin, _arg_aval)


def _pull(name: str, kernel: Any, decomposition: Any, vjp: Any, jvp: Any) -> Primitive:
    """Return the gradient of a normalisation: a function of the upstream one, and of the result."""

    def run(g: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        dtype = promote(g.dtype, y.dtype)
        g, y = errstate.cast(g, dtype), errstate.cast(y, dtype)
        in_order = g.flags.c_contiguous and y.flags.c_contiguous
        if in_order and type(y) is np.ndarray and is_narrow(name, y, axis):
            return decomposition(ARRAYS, g, y, axis)
        return kernel_for(y, kernel)(g, y, axis)

    return operation(
        name,
        run,
        lambda g, y, axis: Aval(y.shape, kernel.result_dtype(promote(g.dtype, y.dtype))),
        vjp,
        jvp=jvp,
        inputs=("g", "y"),
        kind="normalisation",
        kernel=kernel,
        batch=later_axis,
        decomposition=decomposition,
        dtypes=REAL,
        samples=[Case(case.shapes * 2, case.params) for case in _ALONG],
    )


def _total(ops: Operations, x: Any, axis: int) -> Any:
    return ops.sum(x, axis=(axis,), keepdims=True)


def _sum_axis(x: Tensor, axis: int) -> Tensor:
    return reduce_sum(x, axis, keepdims=True)


def _unmasked(y: Tensor, g: Tensor, axis: int) -> Tensor:
    """Return `y`, and 0 where it is not finite although the upstream gradient of its row is 0."""
    return where(logical_or(isfinite(y), reduce_any(g, axis, True)), y, 0)


def _softmax_pull_by_result(dy: Tensor, g: Tensor, y: Tensor, axis: int) -> Tensor:
    y = _unmasked(y, g, axis)
    kept = multiply_upstream(dy, subtract(g, _sum_axis(multiply_upstream(g, y), axis)))
    return subtract(kept, multiply_upstream(g, _sum_axis(multiply_upstream(dy, y), axis)))


def _softmax_pull_along_result(dy: Tensor, g: Tensor, y: Tensor, axis: int) -> Tensor:
    y = _unmasked(y, g, axis)
    kept = multiply_tangent(dy, subtract(g, _sum_axis(multiply_upstream(g, y), axis)))
    return subtract(kept, multiply_upstream(_sum_axis(multiply_upstream(g, dy), axis), y))


_softmax_pull = _pull(
    "softmax_pull",
    ksoftmax.softmax_grad,
    lambda ops, g, y, axis: ops.multiply_upstream(
        ops.subtract(g, _total(ops, ops.multiply_upstream(g, y), axis)), y
    ),
    (
        lambda dy, g, y, axis: _softmax_pull(dy, _unmasked(y, g, axis), axis=axis),
        _softmax_pull_by_result,
    ),
    (
        lambda dg, g, y, out, axis: _softmax_pull(dg, _unmasked(y, g, axis), axis=axis),
        lambda dy, g, y, out, axis: _softmax_pull_along_result(dy, g, y, axis),
    ),
)


def _log_softmax_pull_by_upstream(dy: Tensor, g: Tensor, y: Tensor, axis: int) -> Tensor:
    powers = _unmasked(exp(y), g, axis)
    return subtract(dy, _sum_axis(multiply_upstream(dy, powers), axis))


def _log_softmax_pull_by_result(dy: Tensor, g: Tensor, y: Tensor, axis: int, by: Any) -> Tensor:
    return by(by(dy, _unmasked(exp(y), g, axis)), negative(_sum_axis(g, axis)))


_log_softmax_pull = _pull(
    "log_softmax_pull",
    ksoftmax.log_softmax_grad,
    lambda ops, g, y, axis: ops.subtract(
        g, ops.multiply_upstream(_total(ops, g, axis), ops.exp(y))
    ),
    (
        _log_softmax_pull_by_upstream,
        lambda dy, g, y, axis: _log_softmax_pull_by_result(dy, g, y, axis, multiply_upstream),
    ),
    (
        lambda dg, g, y, out, axis: subtract(
            dg, multiply_upstream(_sum_axis(dg, axis), _unmasked(exp(y), g, axis))
        ),
        lambda dy, g, y, out, axis: _log_softmax_pull_by_result(dy, g, y, axis, multiply_tangent),
    ),
)


def _normalisation(name: str, kernel: Any, pull: Primitive, decomposition: Any) -> Primitive:
    return _axis_operation(
        name,
        kernel,
        lambda x, axis: Aval(x.shape, kernel.result_dtype(x.dtype)),
        vjp=(lambda dy, out, axis: apply(pull, (dy, out), {"axis": axis}),),
        decomposition=decomposition,
    )


_softmax = _normalisation("softmax", ksoftmax.softmax, _softmax_pull, _softmax_by_parts)
_log_softmax = _normalisation(
    "log_softmax", ksoftmax.log_softmax, _log_softmax_pull, _log_softmax_by_parts
)


@public(_argmax)
def argmax(x: Any, axis: Any = 0) -> Tensor:
    """Return positions (int64) of the largest elements along `axis`; the first if several tie.

    Modelled on ``tf.argmax``: `axis` is 0 by default; None means the flattened tensor. Raises
    InvalidArgumentError for an axis that `x` does not have, and for an empty one.
    """
    return _arg(_argmax, x, axis)


@public(_argmin)
def argmin(x: Any, axis: Any = 0) -> Tensor:
    """Return positions (int64) of the smallest elements along `axis`; the first if several tie.

    `axis` and errors as for `argmax`.
    """
    return _arg(_argmin, x, axis)


def _arg(primitive: Primitive, x: Any, axis: Any) -> Tensor:
    x = convert(x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    return apply(primitive, (x,), {"axis": normalize_axis(primitive.name, axis, x._data.ndim)})


@public(_log_softmax)
def log_softmax(x: Any, axis: Any = -1) -> Tensor:
    """Return ``x - logsumexp(x)`` over one axis, several, or all (None), without overflow.

    The result has the shape of `x`. Raises InvalidArgumentError for axes that `x` does not have.
    """
    return _apply_axis(_log_softmax, x, axis)


@public(_softmax)
def softmax(x: Any, axis: Any = -1) -> Tensor:
    """Return ``exp(x) / sum(exp(x))`` over axes, without overflow; as `log_softmax` otherwise."""
    return _apply_axis(_softmax, x, axis)


def _apply_axis(primitive: Any, x: Any, axis: Any) -> Tensor:
    x = convert(x)
    if axis is None or isinstance(axis, (tuple, list)):  # the kernels go along one axis
        axes = normalize_axes(primitive.name, axis, x._data.ndim)
        if 0 in x._data.shape:
            return exp(x)  # which is empty, and of the dtype of the result
        return primitive.decomposition(TENSORS, x, axis=axes)
    dim = normalize_axis(primitive.name, as_int(primitive.name, "axis", axis), x._data.ndim)
    return apply(primitive, (x,), {"axis": dim})
