"""Counts of integers, histograms of equal bins, tables of confusion, permutations, polynomials.

What is counted has no gradient; weights have theirs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import devices
from .._core.annotations import Axes, DTypeLike, TensorLike
from .._core.conversion import INT32, as_dtype, convert, convert_operands
from .._core.kinds import INTEGERS, is_exact
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Aval, Tensor
from ..errors import InvalidArgumentError
from .comparison import greater, less
from .creation import ones, zeros_like
from .define import Case, Wrong, operation, public
from .elementwise import add, clip, divide, floor, multiply, subtract, where
from .segments import unsorted_segments
from .shape import cast, reshape, squeeze, stop_gradient
from .validation import as_count, as_int, as_integers, check_kind, check_same_shape, check_shapes


def _ids(name: str, argument: str, x: Any) -> Tensor:
    """Return integers, bools among them, or nothing at all; InvalidArgumentError for others."""
    x = convert(x)
    if not is_exact(x.dtype) and x.size:
        raise InvalidArgumentError(f"{name}: {argument} must be integers, got {x.dtype}")
    return cast(x, np.int64)


def _check_ids(name: str, argument: str, x: Tensor) -> np.ndarray:
    """Return the values; InvalidArgumentError if one is negative."""
    values = x._values()
    if values.size and values.min() < 0:
        index = tuple(map(int, np.unravel_index(int(values.argmin()), values.shape)))
        raise InvalidArgumentError(
            f"{name}: {argument} contains negative values: {values.min()} at {index}"
        )
    return values


@devices.on_device_of_operands
@reads_own_arguments
def bincount(
    arr: TensorLike,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: DTypeLike = INT32,
    name: str | None = None,
    axis: Axes = None,
    binary_output: bool = False,
) -> Tensor:
    """Return how often each of 0, 1, 2, ... occurs in the integers `arr`, or sums of `weights`.

    Modelled on ``tf.math.bincount``. The counts end at the largest integer, with at least
    `minlength` and at most `maxlength` of them; larger integers are not counted. `axis` None or 0
    counts all elements, -1 each row of a matrix. `binary_output` gives 1 for each integer that
    occurs. Counts are of `dtype`; sums of `weights`, which have the shape of `arr`, are of theirs,
    and differentiable. Raises InvalidArgumentError for negative integers and for wrong shapes.
    Inside ``function`` and ``vmap`` the integers must be known.

    Examples
    --------
    >>> tf.math.bincount([0, 2, 2, 3]).numpy()
    array([1, 0, 2, 1], dtype=int32)
    """
    ids, limits = _ids("bincount", "arr", arr), []
    for argument, value in (("minlength", minlength), ("maxlength", maxlength)):
        limits.append(None if value is None else as_int("bincount", argument, value))
    if axis not in (None, 0, -1) or (axis == -1 and ids.ndim > 2):
        raise InvalidArgumentError(
            "bincount: axis must be None or 0, or -1 for one or two dimensions; got "
            f"{axis} for shape {tuple(ids.shape)}"
        )
    if weights is not None and binary_output:
        raise InvalidArgumentError("bincount: binary_output takes no weights")
    values = _check_ids("bincount", "arr", ids)
    size = max(int(values.max(initial=-1)) + 1, limits[0] or 0)
    size = size if limits[1] is None else min(size, limits[1])
    by_row = axis == -1 and ids.ndim == 2
    if weights is None and not by_row and size >= 0 and not devices.array_types:
        counts = np.bincount(values[values < size], None, size)
        return Tensor((counts > 0 if binary_output else counts).astype(as_dtype(dtype)))
    shares = ones(ids.shape, as_dtype(dtype)) if weights is None else convert(weights)
    check_same_shape("bincount", "weights", shares, "arr", ids)
    ids = where(less(ids, size), ids, -1)
    count = ids.shape[0] if by_row else 1
    if by_row:
        ids = where(less(ids, 0), -1, add(ids, np.arange(count)[:, None] * size))
    flat = reshape(shares, (-1,)), reshape(ids, (-1,))
    counts = unsorted_segments("sum", *flat, count * size)
    counts = reshape(counts, (count, size)) if by_row else counts
    return cast(greater(counts, 0), counts.dtype) if binary_output else counts


def confusion_matrix(
    labels: TensorLike,
    predictions: Any,
    num_classes: int | None = None,
    weights: Any = None,
    dtype: DTypeLike = INT32,
    name: str | None = None,
) -> Tensor:
    """Return how often each class, a row, was predicted to be each class, a column.

    Modelled on ``tf.math.confusion_matrix``: `labels` and `predictions` are integers from 0, of one
    dimension; `num_classes` is by default the largest class plus one. Each prediction counts 1, or
    its element of `weights`, which are cast to `dtype` first and are differentiable if `dtype` is
    floating. Raises InvalidArgumentError for sizes that do not fit. Inside ``function`` and
    ``vmap`` labels and predictions must be known.
    """
    op_name, parts, largest = "confusion_matrix", [], -1
    for argument, values in (("labels", labels), ("predictions", predictions)):
        ids = _ids(op_name, argument, values)
        ids = squeeze(ids, -1) if ids.ndim == 2 and ids.shape[-1] == 1 else ids
        largest = max(largest, int(_check_ids(op_name, argument, ids).max(initial=-1)))
        parts.append(ids)
    rows, columns = parts
    count = largest + 1 if num_classes is None else as_int(op_name, "num_classes", num_classes)
    check_shapes(op_name, {"labels": (rows, "examples"), "predictions": (columns, "examples")})
    if largest >= count:
        raise InvalidArgumentError(
            f"{op_name}: labels and predictions must be below num_classes, {count}; the largest is "
            f"{largest}: out of bound"
        )
    kind = as_dtype(dtype)
    shares = ones(rows.shape, kind) if weights is None else cast(weights, kind)
    check_same_shape(op_name, "weights", shares, "predictions", rows)
    bins = add(multiply(rows, count), columns)
    return reshape(unsorted_segments("sum", shares, bins, count * count), (count, count))


def histogram_fixed_width_bins(
    values: Any,
    value_range: Any,
    nbins: Any = 100,
    dtype: DTypeLike = INT32,
    name: str | None = None,
) -> Tensor:
    """Return the index of the bin, of `nbins` equal bins of a range (a pair), of `values`.

    Modelled on ``tf.histogram_fixed_width_bins``: values outside the range fall into the first or
    last bin. Raises InvalidArgumentError for a range that does not increase, for no bins, and for
    NaN.
    """
    op_name = "histogram_fixed_width_bins"
    x, ends = map(stop_gradient, convert_operands((values, value_range)))
    count = as_count(op_name, "nbins", nbins, 1)
    low, high = np.asarray(ends._values(), np.float64).tolist() if ends.shape == (2,) else (0, 0)
    if not low < high:
        raise InvalidArgumentError(
            f"{op_name}: value_range must be a pair (least, largest) that increases, got "
            f"{np.asarray(ends._values()).tolist()}"
        )
    if bool(np.isnan(x._values()).any()):
        raise InvalidArgumentError(f"{op_name}: values contain NaN, which falls into no bin")
    # As in TensorFlow: the quotient first.
    share = divide(subtract(x, np.asarray(low, x.dtype)), np.asarray(high - low, x.dtype))
    return cast(clip(floor(multiply(share, count)), 0, count - 1), as_dtype(dtype))


@devices.on_device_of_operands
def histogram_fixed_width(
    values: Any,
    value_range: Any,
    nbins: Any = 100,
    dtype: DTypeLike = INT32,
    name: str | None = None,
) -> Tensor:
    """Return how many of `values` fall into each of `nbins` equal bins of a range, a pair.

    Modelled on ``tf.histogram_fixed_width``; see ``histogram_fixed_width_bins``.
    """
    bins = reshape(histogram_fixed_width_bins(values, value_range, nbins, np.int64), (-1,))
    return unsorted_segments("sum", ones(bins.shape, as_dtype(dtype)), bins, nbins)


def _invert(x: np.ndarray) -> np.ndarray:
    check_kind("invert_permutation", "x", x, INTEGERS, error=TypeError)
    size = x.shape[-1]
    if not (np.sort(x, -1) == devices.library_of(x).arange(size)).all():
        raise InvalidArgumentError(
            f"invert_permutation: x must have each of 0 to {size - 1} once, got {x.tolist()}"
        )
    return np.argsort(x, -1).astype(x.dtype)


_invert_permutation = operation(
    "invert_permutation",
    _invert,
    lambda x: Aval(x.shape, x.dtype),
    core=(1,),
    dtypes=INTEGERS,
    samples=[Case(((4,),), {}, {0: np.array([2, 0, 3, 1])})],
    errors=(
        Wrong(InvalidArgumentError, "each of 0 to 2 once", ([1, 2, 2],)),
        Wrong(InvalidArgumentError, "must have shape .elements,.", ([[0, 1]],)),
    ),
)


@public(_invert_permutation)
def invert_permutation(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the inverse of a permutation of 0 to n - 1: at ``x[i]`` it has i.

    Modelled on ``tf.math.invert_permutation``. Raises InvalidArgumentError unless `x` is a
    permutation in one dimension.
    """
    x = as_integers("invert_permutation", "x", x)
    check_shapes("invert_permutation", {"x": (x, "elements")})
    return _invert_permutation(x)


def polyval(coeffs: Any, x: TensorLike, name: str | None = None) -> Tensor:
    """Return the polynomial of `x` with the list `coeffs`, of the highest power first.

    Modelled on ``tf.math.polyval``: by Horner's rule; the coefficients broadcast. No coefficients
    give 0; a tensor of coefficients raises ValueError, as in TensorFlow.
    """
    if not isinstance(coeffs, (list, tuple)):
        raise InvalidArgumentError(
            f"polyval: coeffs must be a list of coefficients, got {type(coeffs).__name__}: use "
            "unstack, or numpy.polyval"
        )
    x, *terms = convert_operands((x, *coeffs))
    if not terms:
        return zeros_like(x)
    result = terms[0]
    for term in terms[1:]:
        result = add(multiply(result, x), term)
    return result
