"""Keras's scan by an associative operation, with a depth of log2 of the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import nest
from .._core.conversion import convert
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Tensor
from .._ops.indexing import getitem
from .._ops.shape import concatenate, reshape, stack
from .._ops.validation import normalize_axis
from ..errors import InvalidArgumentError


@reads_own_arguments
def associative_scan(
    f: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """Return all partial results ``x0, f(x0, x1), f(f(x0, x1), x2), ...`` along an axis.

    Parameters
    ----------
    f:
        An associative function: ``f(a, f(b, c))`` is ``f(f(a, b), c)``. It is called with many
        elements at once, along `axis`, and returns the structure, shapes and dtypes that it gets.
    elems:
        A tensor, or a structure of tensors, of the same size along `axis`.
    reverse:
        Start with the last element: ``xn, f(xn, xm), ...``, stored in the order of `elems`.

    It combines neighbours in pairs, then pairs of pairs, so it calls `f` about 2 log2(n) times.
    Rounding differs from `scan`. Modelled on ``jax.lax.associative_scan``; G. Blelloch,
    "Prefix sums and their applications" (1990). Raises TypeError if `f` is not callable,
    InvalidArgumentError for different sizes, ValueError if `f` returns another structure or shape.

    Examples
    --------
    >>> from tinygrad_cg.keras import ops
    >>> ops.associative_scan(lambda a, b: a * b, [1.0, 2.0, 3.0, 4.0]).numpy()
    array([ 1.,  2.,  6., 24.], dtype=float32)
    """
    if not callable(f):
        raise TypeError(f"associative_scan: `f` must be callable, got {type(f).__name__}")
    is_list_of_numbers = isinstance(elems, (list, tuple)) and not any(
        nest.is_nested(value) or getattr(value, "ndim", 0) > 0 for value in elems
    )
    structure = convert(elems) if is_list_of_numbers else elems
    tensors = [convert(leaf) for leaf in nest.flatten(structure)]
    if not tensors:
        raise InvalidArgumentError("associative_scan: `elems` has no tensors")
    axes = [normalize_axis("associative_scan", axis, tensor.ndim) for tensor in tensors]
    sizes = [tensor.shape[k] for tensor, k in zip(tensors, axes, strict=True)]
    if len(set(sizes)) > 1:
        raise InvalidArgumentError(
            f"associative_scan: `elems` must have the same size along axis {axis}, got the shapes "
            f"{', '.join(str(tuple(tensor.shape)) for tensor in tensors)}"
        )

    def combine(ones: list[Tensor], others: list[Tensor]) -> list[Tensor]:
        packed = [nest.pack_sequence_as(structure, some) for some in (ones, others)]
        result = f(*packed)
        nest.assert_same_structure(structure, result, check_types=False)
        results = [convert(leaf) for leaf in nest.flatten(result)]
        for leaf, like in zip(results, ones, strict=True):
            if leaf.shape != like.shape or leaf.dtype != like.dtype:
                raise ValueError(
                    "associative_scan: `f` must return tensors like those that it gets: got "
                    f"{leaf.dtype.name}{tuple(leaf.shape)} for {like.dtype.name}{tuple(like.shape)}"
                )
        return results

    def turned(some: list[Tensor]) -> list[Tensor]:
        return _part(some, axes, None, None, -1) if reverse else some

    results = turned(_partial_results(combine, turned(tensors), axes))
    return nest.pack_sequence_as(structure, results)


def _partial_results(
    combine: Callable[[list, list], list], elems: list[Tensor], axes: list[int]
) -> list[Tensor]:
    """Return the results: at odd positions those of pairs, at even positions the others."""
    size = elems[0].shape[axes[0]]
    if size < 2:
        return elems

    pairs = combine(_part(elems, axes, 0, -1, 2), _part(elems, axes, 1, None, 2))
    odd = _partial_results(combine, pairs, axes)
    even = _part(elems, axes, 0, 1)
    if size > 2:
        before = odd if size % 2 else _part(odd, axes, 0, -1)
        rest = combine(before, _part(elems, axes, 2, None, 2))
        even = [concatenate([a, b], k) for a, b, k in zip(even, rest, axes, strict=True)]
    return [_merge(*columns) for columns in zip(even, odd, axes, strict=True)]


def _part(
    some: list[Tensor], axes: list[int], start: int | None, stop: int | None, step: int = 1
) -> list[Tensor]:
    """Return a slice of each tensor along its axis."""
    along = slice(start, stop, step)
    pairs = zip(some, axes, strict=True)
    return [getitem(tensor, (*(slice(None),) * axis, along)) for tensor, axis in pairs]


def _merge(even: Tensor, odd: Tensor, axis: int) -> Tensor:
    """Return the elements of both, alternating; `even` may have one more."""
    count, more = odd.shape[axis], even.shape[axis] - odd.shape[axis]
    before = (slice(None),) * axis
    merged = stack([getitem(even, (*before, slice(count))) if more else even, odd], axis + 1)
    shape = (*odd.shape[:axis], 2 * count, *odd.shape[axis + 1 :])
    whole = reshape(merged, shape)
    if not more:
        return whole
    return concatenate([whole, getitem(even, (*before, slice(count, None)))], axis)
