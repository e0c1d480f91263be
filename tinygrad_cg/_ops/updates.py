"""Tensors with some elements replaced, added to or limited: scatters, and ``x.at[key].set(y)``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.move import scatter as kscatter

from .._core import devices
from .._core.annotations import Axes, Shape, TensorLike
from .._core.conversion import any_tensor, convert, convert_operands
from .._core.device_runs import check_devices, kernel_for
from .._core.kinds import is_bool, is_integer
from .._core.primitive import same_parameters
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Aval, Tensor
from ..errors import InvalidArgumentError
from .comparison import greater_equal
from .creation import zeros
from .define import Case, operation
from .elementwise import add, divide, maximum, multiply, power, subtract, where
from .indexing import gather, getitem, put_at, scatter_rows
from .segments import segment_extremum, segment_product
from .shape import broadcast_to, cast, concatenate, reshape
from .transfer import to_device
from .validation import (
    as_int,
    as_integers,
    as_sizes,
    check_broadcast,
    normalize_axis,
)


def _positions(indices: np.ndarray, sizes: tuple[int, ...], name: str) -> np.ndarray:
    check = partial(_positions, sizes=sizes, name=name)  # on a GPU, errors come later
    try:
        return kernel_for(indices, kscatter.flat_positions)(indices, sizes, check)
    except IndexError as error:
        raise InvalidArgumentError(f"{name}: {error}") from None


_flat_positions = operation(
    "flat_positions",
    _positions,
    lambda indices, sizes, name: Aval(indices.shape[:-1], np.dtype(np.int64)),
    inputs=("indices",),
    batch=same_parameters,
    samples=[
        Case(((),), {"sizes": (4, 5), "name": "gather_nd"}, {0: np.array([[[0, 2], [1, 0]]])})
    ],
)
_last_sources = operation(
    "last_sources",
    kscatter.last_sources,
    lambda indices, size, batch_dims: Aval((*indices.shape[:batch_dims], size), np.dtype(np.int64)),
    inputs=("indices",),
    batch=lambda params, size: params | {"batch_dims": params["batch_dims"] + 1},
    samples=[Case(((),), {"size": 4, "batch_dims": 0}, {0: np.array([0, 2, 0])})],
)


def _replace_rows(x: Tensor, rows: Tensor, values: Tensor) -> Tensor:
    """Return `x` with rows replaced by those of `values`; the last one for a row counts."""
    size = x._data.shape[0]
    sources = _last_sources(rows, size=size, batch_dims=0)
    if not values._data.shape[0]:
        return x
    taken = gather(values, maximum(sources, 0))
    is_replaced = _in_shape(greater_equal(sources, 0), (size, *[1] * (x._data.ndim - 1)))
    return where(is_replaced, taken, x)


def _join_extremum(largest: bool) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Return a function of rows, where updates go, and these: the extremes of all for a row."""

    def join(x: Tensor, rows: Tensor, values: Tensor) -> Tensor:
        size = x._data.shape[0]
        where_to = concatenate([Tensor(np.arange(size)), cast(rows, np.int64)], 0)
        return segment_extremum(concatenate([x, values], 0), where_to, size, largest)

    return join


# TensorFlow's --------------------------------------------------------------------------------


def _read_indices(name: str, indices: Any, shape: tuple[int, ...], shared: int = 0) -> Tensor:
    """Return where `indices` (coordinates along their last axis) point, in row-major order."""
    indices = as_integers(name, "indices", indices)
    index_shape = indices._data.shape
    if (
        not index_shape
        or not shared <= len(index_shape) - 1
        or index_shape[-1] + shared > len(shape)
    ):
        raise InvalidArgumentError(
            f"{name}: the last axis of indices must have at most {len(shape) - shared} coordinates "
            f"for shape {tuple(shape)}, got indices of shape {tuple(index_shape)}"
        )
    sizes = tuple(shape[shared : shared + index_shape[-1]])
    return _flat_positions(indices, sizes=sizes, name=name)


def gather_nd(
    params: TensorLike, indices: TensorLike, batch_dims: int = 0, name: str | None = None
) -> Tensor:
    """Return the slices of `params` at `indices`, whose last axis has coordinates.

    The result has the shape of `indices` without its last axis, then the shape of a slice; the
    first `batch_dims` axes are common to both. Raises InvalidArgumentError for indices that are not
    integers, or point outside.

    Examples
    --------
    >>> tf.gather_nd([[1.0, 2.0], [3.0, 4.0]], [[0, 1], [1, 0]]).numpy()
    array([2., 3.], dtype=float32)
    """
    params, indices = convert(params), convert(indices)
    shared = as_int("gather_nd", "batch_dims", batch_dims)
    shape = params._data.shape
    if not 0 <= shared < indices._data.ndim or shape[:shared] != indices._data.shape[:shared]:
        raise InvalidArgumentError(
            f"gather_nd: the first {shared} axes of shapes {tuple(shape)} and "
            f"{tuple(indices.shape)} must agree"
        )
    flat = _read_indices("gather_nd", indices, shape, shared)
    count = shared + indices._data.shape[-1]
    joined = (*shape[:shared], prod(shape[shared:count]), *shape[count:])
    return gather(reshape(params, joined), flat, axis=shared, batch_dims=shared)


def _scattered(
    name: str, shape: tuple[int, ...], indices: Any, updates: Any
) -> tuple[tuple[int, ...], Tensor, Tensor]:
    """Return the shape with indexed axes joined, where the rows go, and the rows."""
    indices, updates = convert(indices), convert(updates)
    flat = _read_indices(name, indices, shape)
    sizes = indices._data.shape
    expected = (*sizes[:-1], *shape[sizes[-1] :])
    if updates._data.shape != expected:
        raise InvalidArgumentError(
            f"{name}: updates must have shape {tuple(expected)} for indices of shape "
            f"{tuple(sizes)} and a tensor of shape {tuple(shape)}, got {tuple(updates.shape)}"
        )
    tail = tuple(shape[sizes[-1] :])
    count, size = prod(sizes[:-1]), prod(shape[: sizes[-1]])
    return (size, *tail), _in_shape(flat, (count,)), _in_shape(updates, (count, *tail))


def _in_shape(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    return x if x._data.shape == shape else reshape(x, shape)


def scatter_nd(indices: TensorLike, updates: Any, shape: Shape, name: str | None = None) -> Tensor:
    """Return zeros of `shape` with `updates` added at `indices`, whose last axis has coordinates.

    The shape of `updates` is the shape of `indices` without its last axis, then the shape of a
    slice (otherwise InvalidArgumentError). Indices that point outside are an InvalidArgumentError.

    Examples
    --------
    >>> tf.scatter_nd([[1], [3]], [5.0, 7.0], (4,)).numpy()
    array([0., 5., 0., 7.], dtype=float32)
    """
    sizes = as_sizes("scatter_nd", shape)
    joined, rows, updates = _scattered("scatter_nd", sizes, indices, updates)
    return reshape(scatter_rows(updates, rows, joined[0]), sizes)


def tensor_scatter(how: str, tensor: Any, indices: Any, updates: Any) -> Tensor:
    """Return `tensor` with `updates` at `indices`, whose last axis has coordinates.

    The shape of `updates` is the shape of `indices` without its last axis, then the shape of a
    slice (otherwise InvalidArgumentError), and its dtype becomes that of `tensor`. Where several
    updates meet, the last one replaces; sums add up, and extremes share their gradient.
    """
    tensor = convert(tensor)
    updates = cast(convert(updates, tensor.dtype), tensor.dtype)
    name, shape = f"tensor_scatter_nd_{how}", tensor._data.shape
    check_devices(name, tensor=tensor, updates=updates)
    joined, rows, updates = _scattered(name, shape, indices, updates)
    return reshape(_CHANGES[how](_in_shape(tensor, joined), rows, updates), shape)


def _changed(change: Callable[..., Tensor], joined: Callable[..., Tensor]) -> Any:
    """Return a function of rows, where updates go, and these: what `joined` makes of them."""

    def join(x: Tensor, rows: Tensor, values: Tensor) -> Tensor:
        return change(x, joined(values, rows, x._data.shape[0]))

    return join


_added, _subtracted = _changed(add, scatter_rows), _changed(subtract, scatter_rows)


_CHANGES = {
    "update": _replace_rows,
    "add": _added,
    "sub": _subtracted,
    "mul": _changed(multiply, segment_product),
    "div": _changed(divide, segment_product),
    "max": _join_extremum(True),
    "min": _join_extremum(False),
}


@reads_own_arguments
def boolean_mask(
    tensor: TensorLike, mask: Any, axis: Axes = None, name: str | None = "boolean_mask"
) -> Tensor:
    """Return the slices of `tensor` where `mask` is true, in row-major order.

    `mask` has the sizes of consecutive axes of `tensor`, beginning at `axis` (otherwise
    InvalidArgumentError). Inside ``function`` and ``vmap`` its values must be known.

    Examples
    --------
    >>> tf.boolean_mask([1.0, 2.0, 3.0], [True, False, True]).numpy()
    array([1., 3.], dtype=float32)
    """
    tensor, mask = convert(tensor), convert(mask)
    dim = 0 if axis is None else normalize_axis("boolean_mask", axis, tensor._data.ndim)
    shape, sizes = tensor._data.shape, mask._data.shape
    if not sizes or shape[dim : dim + len(sizes)] != sizes or not is_bool(mask.dtype):
        raise InvalidArgumentError(
            f"boolean_mask: mask must be boolean, got {mask.dtype}"
            if not is_bool(mask.dtype)
            else f"boolean_mask: the shape of mask, {tuple(sizes)}, must match the axes of the "
            f"tensor from axis {dim} on; the tensor has shape {tuple(shape)}"
        )
    return getitem(tensor, (*[slice(None)] * dim, mask._values()))


def dynamic_partition(
    data: Any, partitions: Any, num_partitions: Any, name: str | None = None
) -> list[Tensor]:
    """Return `num_partitions` tensors: the slices of `data` by the numbers in `partitions`.

    `partitions` are integers from 0 to num_partitions - 1, with the sizes of the first axes of
    `data` (otherwise InvalidArgumentError). Inside ``function`` and ``vmap`` they must be known.
    """
    data, partitions = convert(data), convert(partitions)
    count = as_int("dynamic_partition", "num_partitions", num_partitions)
    numbers = partitions._values()
    if not is_integer(numbers.dtype) or data._data.shape[: numbers.ndim] != numbers.shape:
        raise InvalidArgumentError(
            "dynamic_partition: partitions must be integers with the sizes of the first axes of "
            f"data, of shape {tuple(data.shape)}; got {numbers.dtype} of shape {numbers.shape}"
        )
    if numbers.size and (numbers.min() < 0 or numbers.max() >= count):
        raise InvalidArgumentError(
            f"dynamic_partition: partitions must be in [0, {count}), got {numbers.min()} to "
            f"{numbers.max()}"
        )
    return [getitem(data, (numbers == i,)) for i in range(count)]


def dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> Tensor:
    """Return the rows of several tensors, each at its position: the inverse of `dynamic_partition`.

    ``data[m][i, ...]`` goes to row ``indices[m][i]``; if several go to one row, the last counts;
    rows without data are 0. The tensors of `data` have the axes of their `indices`, then those of a
    row (otherwise InvalidArgumentError). Inside ``function`` and ``vmap`` indices must be known.
    """
    positions, parts = [convert(tensor) for tensor in indices], [convert(tensor) for tensor in data]
    if not positions or len(positions) != len(parts):
        raise InvalidArgumentError(
            f"dynamic_stitch: needs as many indices as data, at least one: got "
            f"{len(positions)} and {len(parts)}"
        )
    tail = parts[0]._data.shape[positions[0]._data.ndim :]
    for position, part in zip(positions, parts, strict=True):
        if part._data.shape != (*position._data.shape, *tail) or not is_integer(position.dtype):
            raise InvalidArgumentError(
                f"dynamic_stitch: data of shape {tuple(part.shape)} does not fit indices of shape "
                f"{tuple(position.shape)}, with rows of shape {tuple(tail)}"
            )
    rows = np.concatenate([position._values().reshape(-1) for position in positions])
    if rows.size and rows.min() < 0:
        raise InvalidArgumentError(f"dynamic_stitch: index {rows.min()} is negative")
    size = int(rows.max(initial=-1)) + 1
    count = [position.size for position in positions]
    values = concatenate(
        [reshape(part, (n, *tail)) for n, part in zip(count, parts, strict=True)], 0
    )
    return _replace_rows(zeros((size, *tail), values.dtype), Tensor(rows.astype(np.int64)), values)


# x.at[key] -----------------------------------------------------------------------------------


class At:
    """The class of ``x.at``: ``x.at[key].set(y)`` is x with other elements at `key`; x is kept.

    Modelled on ``jax.numpy.ndarray.at``. `key` is what ``x[key]`` takes; an index out of bounds is
    an IndexError.
    """

    __slots__ = ("_x",)

    def __init__(self, x: Any):
        self._x = x

    def __getitem__(self, key: Any) -> Part:
        return Part(self._x, key)

    def __repr__(self) -> str:
        return f"<at of {self._x!r}>"


class Part:
    """The elements of a tensor at a key; its methods return the whole tensor with these changed.

    A value broadcasts to the shape of ``x[key]``, and becomes of the dtype of x: TypeError for a
    float in a tensor of integers, InvalidArgumentError for a shape that does not broadcast. Where
    the key names an element several times, all values count, in their order; with `set` the last.
    """

    __slots__ = ("_key", "_x")

    def __init__(self, x: Any, key: Any):
        self._x, self._key = convert(x), key

    def get(self) -> Tensor:
        """Return ``x[key]``."""
        return getitem(self._x, self._key)

    def set(self, values: Any) -> Tensor:
        """Return x with `values` at the key."""
        mask = self._mask()
        if mask is None:
            return self._change(_replace_rows, values)
        part = self._fit(values, getitem(self._x, self._key)._data.shape)
        return where(mask, put_at(part, self._x._data.shape, self._key), self._x)

    def add(self, values: Any) -> Tensor:
        """Return x with `values` added at the key."""
        return self._change(_added, values)

    def subtract(self, values: Any) -> Tensor:
        """Return x with `values` subtracted at the key."""
        return self._change(_subtracted, values)

    def multiply(self, values: Any) -> Tensor:
        """Return x with the elements at the key multiplied by `values`."""
        return self._by_product(multiply, values)

    def divide(self, values: Any) -> Tensor:
        """Return x with the elements at the key divided by `values`."""
        return self._by_product(divide, values)

    def power(self, values: Any) -> Tensor:
        """Return x with the elements at the key to the power of `values`."""
        return self._by_product(power, values)

    def max(self, values: Any) -> Tensor:
        """Return x with the larger of its elements and `values` at the key; ties share it."""
        return self._change(_join_extremum(True), values)

    def min(self, values: Any) -> Tensor:
        """Return x with the smaller of its elements and `values` at the key; ties share it."""
        return self._change(_join_extremum(False), values)

    def apply(self, function: Callable[[Tensor], Any]) -> Tensor:
        """Return x with ``function(x[key])`` at the key."""
        return self.set(function(self.get()))

    mul, div = multiply, divide

    def _mask(self) -> Tensor | None:
        """Return where a key of slices and numbers points; None for other keys."""
        parts = self._key if isinstance(self._key, tuple) else (self._key,)
        if not all(part is None or part is ... or type(part) in (int, slice) for part in parts):
            return None
        mask = np.zeros(self._x._data.shape, bool)
        mask[self._key] = True
        return Tensor(mask)

    def _by_product(self, change: Callable[[Tensor, Tensor], Tensor], values: Any) -> Tensor:
        return cast(self._change(_changed(change, segment_product), values), self._x.dtype)

    def _change(self, change: Callable[[Tensor, Tensor, Tensor], Tensor], values: Any) -> Tensor:
        x = self._x
        shape, size = x._data.shape, x.size
        positions = getitem(Tensor(np.arange(size).reshape(shape)), self._key)
        parts = self._fit(values, positions._data.shape)
        result = change(reshape(x, (size,)), reshape(positions, (-1,)), reshape(parts, (-1,)))
        return reshape(result, shape)

    def _fit(self, values: Any, shape: tuple[int, ...]) -> Tensor:
        x = self._x
        is_listed = isinstance(values, (list, tuple)) and any_tensor(values)
        values = convert(values) if is_listed else convert_operands((x, values))[1]
        if not np.can_cast(values.dtype, x.dtype, "same_kind"):
            raise TypeError(
                f"at: values of dtype {values.dtype} do not fit a tensor of {x.dtype}: cast one of "
                "them first"
            )
        values = cast(values, x.dtype)
        alone = not values._data.ndim
        if alone and devices.home(values) != devices.home(x):  # a single value is copied there
            values = to_device(values, devices.home(x))
        check_devices("at", x=x, values=values)
        if values._data.shape == shape:
            return values
        check_broadcast("at", "a value for x[key]", values._data.shape, shape)
        return broadcast_to(values, shape)
