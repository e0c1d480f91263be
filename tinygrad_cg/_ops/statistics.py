"""Moments in two steps, isotonic regression, largest elements along any axis, means of losses."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from .._core import devices
from .._core.annotations import Axes, TensorLike
from .._core.conversion import convert, convert_operands
from .._core.kinds import is_floating
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Aval, Tensor
from ..errors import InvalidArgumentError
from .creation import constant
from .define import Case, Wrong, operation, public
from .elementwise import add, divide, multiply, negative, square, subtract
from .indexing import gather
from .normalizations import batch_normalization
from .reductions import reduce_sum
from .segments import unsorted_segments
from .shape import cast, floating, in_float32, reshape, transpose
from .sorting import top_k
from .validation import as_integers, check_shapes, normalize_axes, normalize_axis

# Moments ------------------------------------------------------------------------------------------


@in_float32
@reads_own_arguments
def sufficient_statistics(
    x: TensorLike, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Any, ...]:
    """Return the count, the sum and the sum of squares of elements minus `shift`, and the shift.

    Modelled on ``tf.nn.sufficient_statistics``: over `axes`; the count is a scalar, the shift None
    if it is not given. ``normalize_moments`` computes the mean and the variance from them.
    """
    x = convert(x)
    dims = normalize_axes("sufficient_statistics", axes, x.ndim)
    count = constant(np.asarray(prod(x.shape[i] for i in dims), x.dtype))
    if shift is not None:
        shift = convert_operands((x, shift))[1]
        x = subtract(x, shift)
    return count, reduce_sum(x, dims, keepdims), reduce_sum(square(x), dims, keepdims), shift


@in_float32
def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance from the results of ``sufficient_statistics``.

    Modelled on ``tf.nn.normalize_moments``.
    """
    mean = divide(mean_ss, counts)
    variance = subtract(divide(variance_ss, counts), square(mean))
    return (mean if shift is None else add(mean, shift)), variance


def batch_norm_with_global_normalization(
    input: TensorLike,
    mean: Any,
    variance: Any,
    beta: Any,
    gamma: Any,
    variance_epsilon: Any,
    scale_after_normalization: Any,
    name: str | None = None,
) -> Tensor:
    """Return ``batch_normalization``; `scale_after_normalization` says whether `gamma` is used.

    Modelled on ``tf.nn.batch_norm_with_global_normalization``.
    """
    scale = gamma if scale_after_normalization else None
    return batch_normalization(input, mean, variance, beta, scale, variance_epsilon)


# Isotonic regression ------------------------------------------------------------------------------


def _pool_adjacent(row: list, decreasing: bool) -> list[int]:
    """Return the number of its block for each element, by pooling adjacent violators."""
    sums: list[float] = []
    counts: list[int] = []
    for value in row:
        total, count = value, 1
        while sums and (
            sums[-1] * count < total * counts[-1]
            if decreasing
            else sums[-1] * count > total * counts[-1]
        ):
            total, count = total + sums.pop(), count + counts.pop()
        sums.append(total)
        counts.append(count)
    return [i for i, count in enumerate(counts) for _ in range(count)]


def _run_blocks(x: np.ndarray, decreasing: bool) -> np.ndarray:
    if not is_floating(x.dtype):
        raise TypeError(f"isotonic_regression: needs real numbers, got {x.dtype}")
    rows = x.reshape(-1, x.shape[-1]).tolist() if x.size else []
    blocks = [_pool_adjacent(row, decreasing) for row in rows]
    return devices.library_of(x).array(blocks, np.int32).reshape(x.shape)


_blocks = operation(
    "isotonic_blocks",
    _run_blocks,
    lambda x, decreasing: Aval(x.shape, np.dtype(np.int32)),
    core=(1,),
    dtypes=(is_floating,),
    samples=[Case(((2, 5),), {"decreasing": True}), Case(((4,),), {"decreasing": False})],
    errors=(Wrong(TypeError, "real numbers", (np.ones(2, np.complex64),)),),
)


@public(_blocks)
@devices.on_device_of_operands
@reads_own_arguments
def isotonic_regression(
    inputs: TensorLike, decreasing: bool = True, axis: Axes = -1
) -> tuple[Tensor, Tensor]:
    """Return the nearest non-increasing (or non-decreasing) numbers, and block numbers.

    Modelled on ``tf.nn.isotonic_regression``: nearest in the sum of squares, by the algorithm of M.
    Ayer et al. (1955). Each smallest possible block of elements is replaced by its mean, through
    which gradients flow; the choice of the blocks is constant. Integers become float64. TypeError
    for complex numbers.
    """
    x = convert(inputs)
    dim = normalize_axis("isotonic_regression", axis, x.ndim)
    order = [*[i for i in range(x.ndim) if i != dim], dim]
    back = np.argsort(order).tolist()
    moved = transpose(floating(x), order)
    ids = _blocks(moved, decreasing=bool(decreasing))
    count, size = prod(moved.shape[:-1]), moved.shape[-1]
    starts = (np.arange(count) * size).reshape(*moved.shape[:-1], 1)
    flat = reshape(add(cast(ids, np.int64), starts), (-1,))
    means = unsorted_segments("mean", reshape(moved, (-1,)), flat, count * size)
    means_by_element = reshape(gather(means, flat, 0), moved.shape)
    return transpose(means_by_element, back), transpose(ids, back)


# Largest elements ---------------------------------------------------------------------------------


class ApproxTopK(NamedTuple):
    """The largest (or smallest) elements, and their indices."""

    values: Tensor
    indices: Tensor


def top_k_along(name: str, x: Any, k: Any, axis: Any, largest: bool) -> ApproxTopK:
    """Return the `k` largest (or smallest) elements along an axis, the first first, and indices.

    Modelled on ``tf.math.approx_max_k``, but exact: recall is 1. Raises InvalidArgumentError for a
    `k` that is too large.
    """
    x = convert(x)
    dim = normalize_axis(name, axis, x.ndim)
    order = [*[i for i in range(x.ndim) if i != dim], dim]
    back = np.argsort(order).tolist()
    moved = transpose(x, order)
    values, indices = top_k(moved if largest else negative(moved), k)
    values = values if largest else negative(values)
    return ApproxTopK(transpose(values, back), transpose(indices, back))


# Losses and labels --------------------------------------------------------------------------------


def compute_average_loss(
    per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None
) -> Tensor:
    """Return the weighted sum of losses, divided by the size of the batch.

    Modelled on ``tf.nn.compute_average_loss`` with one replica: the size is by default that of the
    first axis. Raises InvalidArgumentError for a scalar loss.
    """
    loss = convert_operands((per_example_loss, 1 if sample_weight is None else sample_weight))[0]
    if not loss.ndim:
        raise InvalidArgumentError(
            "compute_average_loss: per_example_loss must have a loss for each example, got a scalar"
        )
    count = loss.shape[0] if global_batch_size is None else global_batch_size
    if sample_weight is not None:
        loss = multiply(loss, sample_weight)
    return divide(reduce_sum(loss), cast(count, loss.dtype))


def _labels(name: str, labels: Any) -> np.ndarray:
    x = as_integers(name, "labels", labels)
    check_shapes(name, {"labels": (x, "batch time")})
    return x._values()


def collapse_repeated(
    labels: TensorLike, seq_length: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return sequences without consecutive repetitions of labels, and their lengths (int32).

    Modelled on ``tf.nn.collapse_repeated``: the first `seq_length` elements of each row of `labels`
    are used; the rest of the result is 0. Raises InvalidArgumentError for lengths that do not fit.
    """
    op_name = "collapse_repeated"
    rows, lengths = _labels(op_name, labels), np.asarray(convert(seq_length)._values())
    if lengths.shape != rows.shape[:1] or ((lengths < 0) | (lengths > rows.shape[1])).any():
        raise InvalidArgumentError(
            f"{op_name}: seq_length must be a number from 0 to {rows.shape[1]} for each row, got "
            f"{lengths.tolist()}"
        )
    kept = [
        row[:n][np.r_[True, row[1:n] != row[: n - 1]][:n]]
        for row, n in zip(rows, lengths, strict=True)
    ]
    sizes = np.array([len(row) for row in kept], np.int32)
    padded = np.zeros((len(rows), sizes.max(initial=0)), rows.dtype)
    for line, row in zip(padded, kept, strict=True):
        line[: len(row)] = row
    return constant(padded), constant(sizes)


def ctc_unique_labels(labels: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the distinct labels of each row, in order of appearance, and the index of each label.

    Modelled on ``tf.nn.ctc_unique_labels``: rows are padded with 0; the labels are int64, the
    indices int32.
    """
    rows = _labels("ctc_unique_labels", labels)
    firsts, ranks = np.zeros(rows.shape, np.int64), np.zeros(rows.shape, np.int32)
    for row, line, rank in zip(rows, firsts, ranks, strict=True):
        values, first, inverse = np.unique(row, True, True)
        order = np.argsort(first)
        line[: len(order)] = values[order]
        rank[:] = np.argsort(order)[inverse]
    return constant(firsts), constant(ranks)
