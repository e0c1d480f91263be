"""Normalizations by moments and norms, limits of norms, and dropout."""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.reduce import moments
from tinygrad_cg_kernels.runtime.promotion import loop_dtype

from .._core import devices
from .._core.annotations import TensorLike
from .._core.conversion import convert, convert_each, convert_operands, is_tensor, promote
from .._core.kinds import FLOATING, REAL, is_complex, is_native_float
from .._core.levels import state
from .._core.primitive import apply
from .._core.record import mark_expired
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Aval, Tensor
from ..errors import InvalidArgumentError
from .comparison import equal, greater_equal, isfinite, less, logical_or
from .complex import conj, real
from .composition import ON_GPU, TENSORS, Operations
from .creation import ones_like
from .define import Case, elementwise, later_axis, operation
from .elementwise import (
    add,
    divide,
    maximum,
    multiply,
    multiply_upstream,
    negative,
    rsqrt,
    sqrt,
    square,
    subtract,
    where,
)
from .indexing import gather
from .reductions import (
    distance_and_variance,
    euclidean_length,
    global_length,
    reduce_mean,
    reduce_sum,
    reduce_variance,
    sum_to_shape,
)
from .sampling import uniform
from .shape import cast, floating, in_float32, reshape, squeeze
from .validation import as_shape, check_broadcast, check_kind, normalize_axes


def _squares(x: Tensor) -> Tensor:
    return real(multiply(x, conj(x))) if is_complex(x.dtype) else square(x)


@in_float32
def mean_and_variance(x: Any, axes: Any, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance of elements over `axes`, as a pair; float16 in float32.

    Integers become float64. Raises InvalidArgumentError for an axis that `x` does not have.
    """
    x = floating(x)
    return reduce_mean(x, axes, keepdims), reduce_variance(x, axes, keepdims)


@reads_own_arguments
def weighted_moments(
    x: TensorLike,
    axes: Any,
    frequency_weights: Any,
    keepdims: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance of elements over `axes`, weighted by `frequency_weights`."""
    x = floating(x)
    dims = normalize_axes("weighted_moments", axes, x._data.ndim)
    wide = cast(x, np.float32) if x.dtype == np.float16 else x
    shares = multiply(cast(frequency_weights, wide.dtype), ones_like(wide))
    total = reduce_sum(shares, dims, True)
    mean = divide(reduce_sum(multiply(wide, shares), dims, True), total)
    squares = multiply(_squares(subtract(wide, mean)), shares)
    moments = mean, divide(reduce_sum(squares, dims, True), total)
    mean, variance = (
        cast(moment if keepdims else squeeze(moment, dims), x.dtype) for moment in moments
    )
    return mean, variance


def _normalized_by_mean(dy: Tensor, factor: Tensor, shape: tuple[int, ...]) -> Tensor:
    if factor._data.shape == shape:  # so it is the same for all that is added up
        dy = sum_to_shape(dy, shape)
    return negative(multiply_upstream(dy, factor))


_normalized = elementwise(
    "normalized",
    ("x", "mean", "factor", "offset"),
    "float",
    (
        lambda dy, factor: multiply_upstream(dy, factor),
        _normalized_by_mean,
        lambda dy, x, mean: multiply_upstream(dy, subtract(x, mean)),
        lambda dy: dy,
    ),
    jvp=(
        lambda dx, x, mean, factor, offset, out: multiply_upstream(dx, factor),
        lambda dx, x, mean, factor, offset, out: negative(multiply_upstream(dx, factor)),
        lambda dx, x, mean, factor, offset, out: multiply_upstream(dx, subtract(x, mean)),
        lambda dx, x, mean, factor, offset, out: dx,
    ),
    ulps=None,  # several roundings
    decomposition=lambda ops, x, mean, factor, offset: ops.add(
        ops.multiply(ops.subtract(x, mean), factor), offset
    ),
)


@in_float32
def batch_normalization(
    x: TensorLike,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: Any,
    name: str | None = None,
) -> Tensor:
    """Return ``(x - mean) / sqrt(variance + epsilon) * scale + offset``; None leaves a part out.

    All broadcast. After S. Ioffe and C. Szegedy, "Batch normalization" (2015).
    """
    x = floating(x)
    variance = convert_operands((x, variance))[1]
    factor = rsqrt(add(cast(variance, promote(x.dtype, variance.dtype)), variance_epsilon))
    if scale is not None:
        factor = multiply(factor, scale)
    if offset is None:
        return multiply(subtract(x, mean), factor)
    return apply(_normalized, convert_operands((x, mean, factor, offset)), {})


def _along(argument: str, x: Tensor, values: Any, axes: tuple[int, ...]) -> Tensor:
    """Return `values`, which have the sizes of `axes`, with axes of size 1 for the others."""
    values, _ = convert_each(values, x)
    if values._data.ndim == x._data.ndim or not values._data.ndim:
        return values
    shape = [size if i in axes else 1 for i, size in enumerate(x._data.shape)]
    if values.size != prod(shape):
        raise InvalidArgumentError(
            f"{argument} must have the sizes of the normalized axes of x, "
            f"{tuple([x.shape[i] for i in axes])}, got shape {tuple(values.shape)}"
        )
    return reshape(values, shape)


def _parts(ops: Operations, x: Any, axis: int, epsilon: float) -> tuple[Any, Any]:
    """Return `x` less its mean, and 1 over the root of its variance plus epsilon."""
    distance, variance = distance_and_variance(ops, x, (axis,), True)
    return distance, ops.rsqrt(ops.add(variance, ops.number(epsilon, x)))


def _standardize_by_parts(ops: Operations, x: Any, axis: int, epsilon: float) -> Any:
    if not is_native_float(x.dtype):
        return None  # float16 is computed in float32
    return ops.multiply(*_parts(ops, x, axis, epsilon))


def _standardize_on_gpu(x: Any, axis: int, epsilon: float) -> Any:
    dtype = moments.standardize.result_dtype(x.dtype)
    wide = ON_GPU.cast(x, dtype=loop_dtype(dtype))
    return ON_GPU.cast(_standardize_by_parts(ON_GPU, wide, axis, epsilon), dtype=dtype)


def _standardize_rule(dy: Tensor, x: Tensor, axis: int, epsilon: float) -> Tensor:
    if state.frame is None and type(x._data) is type(dy._data) is np.ndarray:
        out = Tensor(moments.standardize_grad(dy._data, x._data, epsilon))
        mark_expired((dy, x), out)
        return out
    distance, factor = _parts(TENSORS, x, axis, epsilon)
    result = multiply(distance, factor)
    along = reduce_mean(multiply_upstream(dy, result), axis, True)
    slope = subtract(dy, reduce_mean(dy, axis, True))
    return multiply_upstream(subtract(slope, multiply_upstream(along, result)), factor)


_standardize = operation(
    "standardize",
    lambda x, axis, epsilon: moments.standardize(x, epsilon),
    lambda x, axis, epsilon: Aval(x.shape, moments.standardize.result_dtype(x.dtype)),
    (_standardize_rule,),
    kind="normalisation",
    kernel=moments.standardize,
    on_gpu=_standardize_on_gpu,
    batch=later_axis,
    decomposition=_standardize_by_parts,
    dtypes=REAL,
    samples=[Case(((3, 4),), {"axis": 1, "epsilon": 0.1})],
)


@in_float32
def layer_normalization(
    x: Any, gamma: Any = None, beta: Any = None, axis: Any = -1, epsilon: Any = 1e-7
) -> Tensor:
    """Return `x` less its mean over `axis`, over its standard deviation, times gamma, plus beta.

    `epsilon` is added to the variance; `gamma` and `beta` have the sizes of the axes. After J. Ba,
    J. Kiros and G. Hinton, "Layer normalization" (2016).
    """
    x = floating(x)
    axes = normalize_axes("layer_normalization", axis, x._data.ndim)
    scale = None if gamma is None else _along("layer_normalization: gamma", x, gamma, axes)
    offset = None if beta is None else _along("layer_normalization: beta", x, beta, axes)
    if axes != (x._data.ndim - 1,) or not isinstance(epsilon, int | float):
        mean, variance = mean_and_variance(x, axes, True)
        return batch_normalization(x, mean, variance, offset, scale, epsilon)
    result = apply(_standardize, (x,), {"axis": axes[0], "epsilon": float(epsilon)})
    result = result if scale is None else multiply(result, scale)
    return result if offset is None else add(result, offset)


@in_float32
def rms_normalization(x: Any, scale: Any = None, axis: Any = -1, epsilon: Any = 1e-7) -> Tensor:
    """Return `x` over the root of its mean square over `axis`, times `scale`.

    `epsilon` is added to the mean square. After B. Zhang and R. Sennrich, "Root mean square layer
    normalization" (2019).
    """
    x = floating(x)
    axes = normalize_axes("rms_normalization", axis, x._data.ndim)
    result = multiply(x, rsqrt(add(reduce_mean(_squares(x), axes, True), epsilon)))
    if scale is None:
        return result
    return multiply(result, _along("rms_normalization: scale", x, scale, axes))


@in_float32
def l2_normalize(x: Any, axis: Any = None, epsilon: Any = 1e-12) -> Tensor:
    """Return `x` divided by its Euclidean norm over `axis` (by default all), at least
    sqrt(epsilon)."""
    x = floating(x)
    length = maximum(euclidean_length(x, axis, True), sqrt(epsilon))
    return divide(x, cast(length, x.dtype))


@in_float32
def normalize(x: Any, axis: Any = -1, order: Any = 2, epsilon: Any = 1e-7) -> Tensor:
    """Return `x` over its norm of some `order` over `axis`; or over `epsilon`, if that is larger.

    `order` is a number, "inf" included: the root of the sum of powers, or the largest size.
    Raises ValueError for an order below 1.
    """
    from .norms import norm

    x = floating(x)
    if not order >= 1:
        raise ValueError(f"normalize: order must be at least 1, got {order}")
    return divide(x, cast(maximum(norm(x, order, axis, True), epsilon), x.dtype))


# Limits of norms -----------------------------------------------------------------------------


@in_float32
def clip_by_norm(
    t: TensorLike, clip_norm: Any, axes: Any = None, name: str | None = None
) -> Tensor:
    """Return `t`, scaled down to the Euclidean norm `clip_norm` over `axes` if it is longer.

    Examples
    --------
    >>> tf.clip_by_norm([3.0, 4.0], 1.0).numpy().round(3)
    array([0.6, 0.8], dtype=float32)
    """
    t = floating(t)
    divisor, factor = _ratio(euclidean_length(t, axes, True), clip_norm)
    return multiply(divide(t, divisor), factor)


def _ratio(length: Tensor, most: Any) -> tuple[Tensor, Tensor]:
    """Return what to divide by, then multiply by: the derivative of a quotient may underflow."""
    fits = logical_or(less(length, most), equal(length, 0))
    length, most = convert_operands((length, most))
    return where(fits, 1, length), where(fits, 1, most)


def global_norm(t_list: Any, name: str | None = None) -> Tensor:
    """Return the Euclidean norm of all elements of several tensors together; None counts as 0.

    Raises TypeError unless `t_list` is a list or tuple, ValueError if it has no tensor.
    """
    tensors = [floating(tensor) for tensor in _listed("global_norm", t_list) if tensor is not None]
    norm = _global_norm(tensors)
    return cast(norm, np.float16) if all(tensor.dtype == np.float16 for tensor in tensors) else norm


def _global_norm(tensors: list[Tensor]) -> Tensor:
    """Return the norm of all elements together; that of float16 is float32."""
    if not tensors:
        raise ValueError("global_norm: t_list must contain at least one tensor")
    dtype = functools.reduce(promote, [tensor.dtype for tensor in tensors])
    return global_length(
        [cast(tensor, np.float32 if dtype == np.float16 else dtype) for tensor in tensors]
    )


def clip_by_global_norm(
    t_list: Any, clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """Return tensors scaled down to a norm of `clip_norm` all together, and their norm before.

    None stays None. If the norm is not finite, all results are NaN. Pass `use_norm` if you know the
    norm. After R. Pascanu et al., "On the difficulty of training recurrent neural networks" (2012).
    TypeError unless `t_list` is a list or tuple.
    """
    tensors = [
        None if tensor is None else floating(tensor)
        for tensor in _listed("clip_by_global_norm", t_list)
    ]
    if use_norm is None:
        length = _global_norm([tensor for tensor in tensors if tensor is not None])
    else:
        length = convert(use_norm)
    divisor, factor = _ratio(length, clip_norm)
    divisor = where(isfinite(length), divisor, np.nan)
    scaled = [
        None if tensor is None else cast(multiply(divide(tensor, divisor), factor), tensor.dtype)
        for tensor in tensors
    ]
    if use_norm is None and all(tensor is None or tensor.dtype == np.float16 for tensor in scaled):
        length = cast(length, np.float16)
    return scaled, length


def _listed(name: str, tensors: Any) -> list:
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{name}: t_list must be a list of tensors, got {type(tensors).__name__}")
    return list(tensors)


# Dropout, and rows of a table ----------------------------------------------------------------


@reads_own_arguments
@devices.on_device_of_operands
def dropout(
    x: TensorLike,
    rate: Any,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return `x` with a share `rate` of its elements set to 0, the others divided by 1 - rate.

    `noise_shape` broadcasts to the shape of `x`: where it is 1 (or None: the size of `x`), the
    elements are dropped together. `seed` as for `random.uniform`. After N. Srivastava et al.,
    "Dropout" (2014). Raises ValueError for a rate outside [0, 1) or an `x` that is not a float,
    InvalidArgumentError for a `noise_shape` that does not broadcast.
    """
    x = convert(x)
    check_kind("dropout", "x", x, FLOATING, "cast it first", ValueError)
    if not is_tensor(rate):
        rate = float(rate)
        if not 0 <= rate < 1:
            raise ValueError(f"dropout: rate must be in [0, 1), got {rate}")
        if not rate:
            return x
    shape = sizes = tuple(x._data.shape)
    if noise_shape is not None:
        wanted = [-1 if size is None else size for size in noise_shape]
        if len(wanted) == len(shape):
            wanted = [
                full if size == -1 else size for size, full in zip(wanted, shape, strict=True)
            ]
        sizes = as_shape("dropout", wanted)
        check_broadcast("dropout", "noise", sizes, shape)
    draws = uniform(sizes, 0, 1, x.dtype if x.dtype != np.float16 else np.float32, seed)
    return where(greater_equal(draws, rate), divide(x, 1 - rate), 0)


def embedding_lookup(
    params: TensorLike, ids: Any, max_norm: Any = None, name: str | None = None
) -> Tensor:
    """Return the rows of `params` at integer `ids`, of norm `max_norm` at most if given.

    `params` is a tensor, or a list with one. Raises InvalidArgumentError for `ids` that are not
    integers, IndexError for one out of bounds.

    Examples
    --------
    >>> tf.nn.embedding_lookup(tf.eye(2), [1, 1]).numpy()
    array([[0., 1.],
           [0., 1.]], dtype=float32)
    """
    if isinstance(params, (list, tuple)):
        if len(params) != 1:
            raise ValueError(
                "embedding_lookup: params must be one tensor, got a list of "
                f"{len(params)}: use concat(params, 0)"
            )
        params = params[0]
    rows = gather(params, ids)
    if max_norm is None:
        return rows
    return clip_by_norm(rows, max_norm, tuple(range(convert(ids)._data.ndim, rows._data.ndim)))
