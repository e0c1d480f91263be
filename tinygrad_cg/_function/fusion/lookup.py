"""Gathers as reads inside loops, and scatter-adds as comparisons.

If each row has one index, a loop reads the element at the index when it processes the row. The
transpose, zeros except for that element, is ``where(column == index, g, 0)`` in the loop that needs
it. Neither makes an array of that shape, and each row has one writer on any number of threads.
Loops also read whole rows, and single elements, at indices. The transpose of these may add several
values in one place, so it remains an operation on arrays, which adds in order.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary as kmath
from tinygrad_cg_kernels.move.gather import check_positions
from tinygrad_cg_kernels.runtime.promotion import BOOL, INT64

from ..._core import devices
from ..._core.device_runs import kernel_for
from ..._core.kinds import is_complex, is_integer
from ..graph.values import Value, frozen
from . import nodes
from .domains import pattern
from .nodes import FusionNode, apply, base, cast, view

MIN_COLUMNS = 32
"""Rows with fewer elements are not looked up by loops: copying them takes less time."""
MAX_REPEATED = 2**22
"""Indices that are repeated for each row: more take too much memory."""
Found = FusionNode | None
INT32 = np.dtype(np.int32)


class Lookups:
    """The nodes of operations at indices. Operations with the same indices share one check."""

    def __init__(self) -> None:
        # These run although nothing reads their results: a hvp, too, refuses wrong labels.
        self.checks: list[FusionNode] = []
        self._positions: dict[Any, FusionNode] = {}
        self._columns: dict[tuple[int, ...], FusionNode] = {}
        self.rules: dict[str, Callable[..., FusionNode | None]] = {
            "add_along_axis": self._add_along_axis,
            "gather": self._gather,
            "gather_adjoint": self._gather_adjoint,
            "getitem": self._getitem,
            "getitem_adjoint": self._getitem_adjoint,
            "one_hot": self._one_hot,
            "take_along_axis": self._take_along_axis,
        }

    def _gather(self, value: Value, x: FusionNode, indices: FusionNode) -> Found:
        axis, shared = value.params["axis"], value.params["batch_dims"]
        if axis != shared:
            fits = prod(x.shape[axis + 1 :]) == 1
            repeated = _repeated(indices, x, axis, shared) if fits else None
            if repeated is None:
                return None
            indices = repeated
        return self._read(value, x, indices, axis) or self._rows(value, x, indices, axis)

    def _take_along_axis(self, value: Value, x: FusionNode, indices: FusionNode) -> Found:
        axis = value.params["axis"]
        read = self._read(value, x, indices, axis)
        if read is None and prod(x.shape[axis + 1 :]) == 1:
            return self._rows(value, x, indices, axis)
        return read

    def _getitem(self, value: Value, x: FusionNode) -> Found:
        key = value.params["key"]
        if len(key) == 1 and isinstance(key[0], np.ndarray) and is_integer(key[0].dtype):
            return self._rows(value, x, nodes.ArrayNode(key[0].shape, key[0].dtype, key[0]))
        index = last_index(key, x.shape)
        return None if index is None else self._read(value, x, index, len(x.shape) - 1)

    def _gather_adjoint(self, value: Value, g: FusionNode, indices: FusionNode) -> Found:
        axis, shared = value.params["axis"], value.params["batch_dims"]
        return self._scatter(value, g, indices, axis) if axis == shared else None

    def _add_along_axis(self, value: Value, g: FusionNode, indices: FusionNode) -> Found:
        return self._scatter(value, g, indices, value.params["axis"])

    def _getitem_adjoint(self, value: Value, g: FusionNode) -> Found:
        index = last_index(value.params["key"], value.shape)
        return None if index is None else self._scatter(value, g, index, len(value.shape) - 1)

    def _one_hot(self, value: Value, indices: FusionNode) -> Found:
        """Return ones where the column is the index; an index out of range gives no one."""
        axis, depth = value.params["axis"], value.params["depth"]
        if axis != len(indices.shape) or is_complex(value.dtype):
            return None
        indices = cast(indices, INT64)
        last = nodes.SizeNode(depth, INT64)
        indices = apply(
            kmath.maximum, apply(kmath.minimum, indices, last), nodes.LiteralNode(-1, INT64)
        )
        return cast(self._is_column(indices, value.shape, axis), value.dtype)

    def _read(self, value: Value, x: FusionNode, indices: FusionNode, axis: int) -> Found:
        """Return ``x[row, indices[row]]``, which a loop reads when it processes the row."""
        if not _is_one_by_row(x.shape, axis, indices) or pattern(x.shape, (axis,)) != "kr":
            return None
        rows = x.shape[:axis] + x.shape[axis + 1 :]
        positions = self._check_positions(value, indices, x.shape[axis])
        return view(
            nodes.RowGatherNode("gather", rows, x.dtype, (x, positions), (axis,)), value.shape
        )

    def _rows(self, value: Value, x: FusionNode, indices: FusionNode, axis: int = 0) -> Found:
        """Return elements of `x` at indices, or rows, if these are long enough.

        The axes before `axis` are batch axes: each part of `x` has its own indices.
        """
        table = view(x, (prod(x.shape[: axis + 1]), *x.shape[axis + 1 :]))
        columns = prod(table.shape[1:])
        if table.shape[0] == 1 or (columns > 1 and (columns < MIN_COLUMNS or indices.size == 1)):
            return None
        dtype = INT32 if columns == 1 and table.shape[0] < 2**31 else INT64  # fewer bytes to read
        parts = prod(x.shape[:axis])
        positions = self._check_positions(value, indices, x.shape[axis], parts, dtype)
        return nodes.LookupNode(value.shape, x.dtype, (table, positions))

    def _scatter(self, value: Value, g: FusionNode, indices: FusionNode, axis: int) -> Found:
        """Return the transpose of `_read`: zeros, except one element of each row."""
        shape = value.shape
        if not _is_one_by_row(shape, axis, indices) or shape[axis] == 1:
            return None
        test = self._is_column(self._check_positions(value, indices, shape[axis]), shape, axis)
        rows = view(cast(g, value.dtype), (*shape[:axis], 1, *shape[axis + 1 :]))
        zero = nodes.LiteralNode(0, value.dtype)
        return nodes.ScatterNode((test, rows, zero), shape, axis)

    def _is_column(self, indices: FusionNode, shape: tuple[int, ...], axis: int) -> FusionNode:
        """Return a mask that is True where the position along an axis is the row's index."""
        sizes = shape[axis:]
        if sizes not in self._columns:
            numbers = np.arange(shape[axis], dtype=INT32).reshape(sizes)
            self._columns[sizes] = nodes.ArrayNode(sizes, INT32, numbers)
        rows = cast(view(indices, (*shape[:axis], 1, *shape[axis + 1 :])), INT32)
        return apply(kmath.equal, self._columns[sizes], rows, dtype=BOOL)

    def _check_positions(
        self,
        value: Value,
        indices: FusionNode,
        size: int,
        parts: int = 1,
        dtype: np.dtype = INT64,
    ) -> FusionNode:
        """Return indices counted from 0, by an operation that refuses those out of range.

        Constants get the dtype; computed indices are int64.
        """
        array = base(indices)
        constant = array.constant if isinstance(array, nodes.ArrayNode) else None
        key = array if constant is None else (frozen(constant), dtype), size, parts
        if key not in self._positions:
            check = partial(positions, name=value.name, size=size, parts=parts)
            checked: FusionNode = nodes.OpaqueNode(
                "positions", check, array.shape, INT64, (array,), on_gpu=check
            )
            if constant is not None:
                with suppress(IndexError):  # the program raises it when it runs
                    checked = nodes.ArrayNode(array.shape, dtype, check(constant).astype(dtype))
            self._positions[key] = checked
            self.checks += [checked] * (not checked.is_input)
        return self._positions[key]


def _repeated(indices: FusionNode, x: FusionNode, axis: int, shared: int) -> Found:
    """Return indices for each row before an axis, if they are constants, and not too many."""
    array = base(indices)
    if not isinstance(array, nodes.ArrayNode) or array.constant is None:
        return None
    rows = x.shape[:axis]
    own = array.constant.reshape(indices.shape)
    ones = (1,) * (axis - shared)
    own = own.reshape(*own.shape[:shared], *ones, *own.shape[shared:])
    shape = (*rows, *own.shape[axis:])
    if prod(shape) > MAX_REPEATED:
        return None
    repeated = np.ascontiguousarray(np.broadcast_to(own, shape))
    return nodes.ArrayNode(shape, repeated.dtype, repeated)


def _is_one_by_row(shape: tuple[int, ...], axis: int, indices: FusionNode) -> bool:
    """Return whether the axis is the last one, and each row has one index."""
    return prod(shape[axis + 1 :]) == 1 and indices.size == prod(shape[:axis])


def last_index(key: tuple, shape: tuple[int, ...]) -> FusionNode | None:
    """Return the last of a key's index arrays, if the others enumerate all rows in order."""
    if len(key) != len(shape) or len(key) < 2:
        return None
    if not all(isinstance(part, np.ndarray) and is_integer(part.dtype) for part in key):
        return None
    *others, last = np.broadcast_arrays(*key)
    rows = np.indices(shape[:-1]).reshape(len(others), -1)
    if last.size != rows.shape[1] or not np.array_equal(np.reshape(others, rows.shape), rows):
        return None
    return nodes.ArrayNode(last.shape, last.dtype, last)


def positions(indices: Any, name: str, size: int, parts: int) -> Any:
    """Return indices into an array of `parts` of a size; IndexError if one is out of range."""
    indices = kernel_for(indices, check_positions)(name, indices, size)
    if parts <= 1:
        return indices
    starts = devices.library_of(indices).arange(0, parts * size, size)
    return (indices.reshape(parts, -1) + starts[:, None]).reshape(indices.shape)
