"""Indexing: basic and advanced, gather, and their adjoints, which scatter and add."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygrad_cg_kernels.move import gather as kmove
from tinygrad_cg_kernels.runtime import promotion
from tinygrad_cg_kernels.runtime.errstate import quiet

from .._core import device_runs, devices
from .._core.conversion import convert, is_tensor, refuse_masked
from .._core.device_runs import kernel_for
from .._core.kinds import is_bool, is_integer
from .._core.primitive import OPS, apply
from .._core.tensor import Aval, NoValueError, Tensor, operations
from ..errors import InvalidArgumentError, OperatorNotAllowedInGraphError, users_expression
from .define import Case, operation
from .validation import as_int, as_integers, normalize_axis

_FEW = 4096  # elements, which are copied in less time than a general kernel needs to start
_IS_BOUND = {int, type(None)}.__contains__


def _batched_key(key: tuple, size: int) -> tuple:
    """Return the key for operands with one more axis in front, which the result has in front too.

    Where other parts stand between integers and arrays, NumPy puts the axes of these before all
    the others; so there the new axis needs an array as well, which broadcasts with them.
    """
    arrays = [part for part in key if isinstance(part, np.ndarray)]
    positions = [i for i, part in enumerate(key) if isinstance(part, (int, np.ndarray))]
    if not arrays or positions[-1] - positions[0] < len(positions):
        return (slice(None), *key)
    rank = max(1 if is_bool(part.dtype) else part.ndim for part in arrays)
    return (np.arange(size).reshape(size, *(1,) * rank), *key)


def _getitem_on_gpu(x: Any, key: tuple) -> Any:
    """Return ``x[key]``; IndexError for what is out of bounds, which nothing there looks at."""
    np.broadcast_to(np.zeros((), bool), x.shape)[key]
    return x[device_runs.moved(key)]


def _part(x: Any, key: tuple) -> Any:
    part = x[key]
    return part if isinstance(part, np.ndarray) else x[(*key, ...)]


def _run_getitem(x: np.ndarray, key: tuple) -> np.ndarray:
    """Return ``x[key]``; a copy of few elements with gaps, which small kernels do not take."""
    part = _part(x, key)
    return part if part.flags.c_contiguous or part.size > _FEW else part.copy()


def _add_to_part(total: np.ndarray, dy: np.ndarray, key: tuple) -> bool:
    """Add to ``total[key]``; not at arrays, where an element may occur several times."""
    if any(isinstance(part, np.ndarray) for part in key):
        return False
    part = _part(total, key)
    quiet.run(np.add, part, dy, part)
    return True


_getitem = operation(
    "getitem",
    _run_getitem,
    lambda x, key: Aval(np.broadcast_to(np.zeros((), x.dtype), x.shape)[key].shape, x.dtype),
    (lambda dy, shape, key: apply(_getitem_adjoint, (dy,), {"shape": shape, "key": key}),),
    linear=True,
    aliases=True,
    add_to=_add_to_part,
    on_gpu=_getitem_on_gpu,
    batch=lambda params, size: {"key": _batched_key(params["key"], size)},
    samples=[
        Case(((4, 3),), {"key": (slice(1, 4, 2), 0)}),
        Case(((4, 3),), {"key": (None, Ellipsis, slice(None, None, -1))}),
        Case(((4, 3),), {"key": (np.array([0, 0, 2]),)}),
        Case(((4, 3),), {"key": (np.array([[0], [-1]]), np.array([1, 1]))}),
        Case(((3,),), {"key": (np.array([True, False, True]),)}),
        Case(((2, 4, 3),), {"key": (slice(None), np.array([3, 0, 3]), np.array([1, 1, 1]))}),
        Case(((4, 2, 3),), {"key": (np.array([[3], [0]]), slice(None), np.array([1, -1]))}),
        Case(((2, 4, 3),), {"key": (1, slice(1, 3), np.array([2, 2]))}),
        Case(((3, 2),), {"key": (np.array([True, False, True]), None, 1)}),
        Case(((3, 2),), {"key": (np.array(True), Ellipsis, np.array([1]))}),
    ],
)


_getitem_adjoint = operation(
    "getitem_adjoint",
    lambda x, shape, key: kernel_for(x, kmove.index_add)(shape, x.dtype, key, x),
    lambda x, shape, key: Aval(shape, x.dtype),
    (lambda dy, key: apply(_getitem, (dy,), {"key": key}),),
    linear=True,
    kernel=kmove.index_add,
    batch=lambda params, size: {
        "shape": (size, *params["shape"]),
        "key": _batched_key(params["key"], size),
    },
    samples=[
        Case(((2,),), {"shape": (4, 3), "key": (slice(1, 4, 2), 0)}),
        Case(((3, 3),), {"shape": (4, 3), "key": (np.array([0, 0, 2]),)}),
        Case(((2, 2),), {"shape": (4, 2, 3), "key": (np.array([3, 3]), slice(None), 1)}),
        Case(((1, 3),), {"shape": (3,), "key": (np.array(True),)}),
    ],
)


def getitem(x: Any, key: Any) -> Tensor:
    """Return ``x[key]`` as NumPy: integers, slices, None, ..., integer and boolean arrays."""
    x = convert(x)
    parts = key if isinstance(key, tuple) else (key,)
    if any(map(_has_no_value, parts)):
        return _getitem_by_gathers(x, parts)
    try:
        key = tuple([_index_part(part) for part in parts])
    except (
        OperatorNotAllowedInGraphError,
        NoValueError,
    ):  # perhaps a list holds a tensor without a value
        parts = tuple([convert(part) if isinstance(part, list) else part for part in parts])
        if not any(_has_no_value(part) for part in parts):
            raise
        return _getitem_by_gathers(x, parts)
    try:
        return apply(_getitem, (x,), {"key": key})
    except IndexError as error:
        count = sum(part is not None and part is not Ellipsis for part in key)
        shape = tuple(x._data.shape)
        words = str(error)
        if count > len(shape):
            words = f"too many indices: {count} for shape {shape}"
        else:
            words += f"; the shape is {shape}"
        if not shape:
            words += ": it is a single number, so leave out the index"
        raise IndexError(f"{users_expression() or 'x[...]'}: {words}") from None


def put_at(values: Tensor, shape: tuple[int, ...], key: Any) -> Tensor:
    """Return zeros of `shape` with `values`, of the shape of ``x[key]``, added at `key`."""
    parts = tuple([_index_part(part) for part in (key if isinstance(key, tuple) else (key,))])
    return apply(_getitem_adjoint, (values,), {"shape": shape, "key": parts})


def _has_no_value(part: Any) -> bool:
    """Return whether an index differs between examples of a batch, or is not known yet."""
    return isinstance(part, Tensor) and isinstance(part._data, Aval)


def _getitem_by_gathers(x: Tensor, parts: tuple) -> Tensor:
    """Return ``x[parts]`` by gathers along the axes of its integer indices.

    Slices, None and integers come first, since they leave less to gather from; then each number
    without a value, along its axis; then the arrays. The axes of these are where NumPy has them.
    """
    key: list[Any] = [part if _has_no_value(part) else _index_part(part) for part in parts]
    if any(_is_array(part) and not is_integer(part.dtype) for part in key):
        raise IndexError(
            "inside vmap or function, a mask cannot be an index, since the size of the result "
            "would depend on values: use where(mask, x, 0), or integer indices"
        )
    count = sum(part is not None and part is not Ellipsis for part in key)
    if count > x._data.ndim:
        raise IndexError(f"too many indices: {count} for shape {tuple(x.shape)}")
    indexed = [i for i, part in enumerate(key) if type(part) is int or _is_array(part)]
    after = indexed[0] if indexed[-1] - indexed[0] < len(indexed) else 0
    dots = [i for i, part in enumerate(key) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if dots:
        key[dots[0] : dots[0] + 1] = [slice(None)] * (x._data.ndim - count)
        after += (x._data.ndim - count - 1) * (dots[0] < after)
    basic = [slice(None) if _is_array(part) else part for part in key]
    x = getitem(x, tuple(basic)) if any(part != slice(None) for part in basic) else x
    key = [part for part in key if type(part) is not int]
    for axis in reversed(range(len(key))):
        if _is_array(key[axis]) and not key[axis].ndim:
            x = gather(x, key.pop(axis), axis)
    axes = [axis for axis, part in enumerate(key) if _is_array(part)]
    return _gather_together(x, [convert(key[axis]) for axis in axes], axes, after) if axes else x


def _gather_together(x: Tensor, indices: list[Tensor], axes: list[int], after: int) -> Tensor:
    """Return `x` at `indices` of `axes`, which broadcast; their axes stand after so many others."""
    shapes = [tuple(index._data.shape) for index in indices]
    try:
        shape = promotion.broadcast_shapes(*shapes)
    except ValueError:
        text = " and ".join(map(str, shapes))
        raise IndexError(f"indices of shapes {text} do not broadcast together") from None
    start = 0 if len(axes) > 1 else axes[0]
    x = _with_axes_after(x, axes, start)
    done = shared = len(shape) if _are_all(indices, shape, x._data.shape[start:]) else 0
    for index in indices[done:]:
        index = apply(OPS["broadcast_to"], (index,), {"shape": shape})
        x, shared = gather(x, index, max(start, shared), shared), len(shape)
    return _with_axes_after(x, range(start, start + len(shape)), after)


def _with_axes_after(x: Tensor, axes: Sequence[int], after: int) -> Tensor:
    """Return `x` with some of its axes moved together, to stand after so many of the others."""
    order = [axis for axis in range(x._data.ndim) if axis not in axes]
    order[after:after] = axes
    return x if order == sorted(order) else apply(OPS["transpose"], (x,), {"perm": tuple(order)})


def _is_array(part: Any) -> bool:
    return isinstance(part, (Tensor, np.ndarray))


def _are_all(indices: list[Tensor], shape: tuple[int, ...], sizes: tuple[int, ...]) -> bool:
    """Return whether the first indices, one for each of their axes, are all of `sizes` in order."""
    first = indices[: len(shape)]
    if sizes[: len(shape)] != shape or len(first) < len(shape) or any(map(_has_no_value, first)):
        return False
    arrays = [np.broadcast_to(index._data, shape) for index in first]
    return all(map(np.array_equal, arrays, np.indices(shape)))


def _index_part(part: Any) -> Any:
    if part is None or part is Ellipsis or type(part) is int:
        return part
    if isinstance(part, slice):
        bounds = (part.start, part.stop, part.step)
        if all(map(_IS_BOUND, map(type, bounds))):
            return part
        return slice(
            *[
                None if bound is None else as_int("getitem", "a slice's bound", bound)
                for bound in bounds
            ]
        )
    if isinstance(part, (bool, np.bool_)):
        return np.array(part)
    if is_tensor(part) or isinstance(part, (np.ndarray, np.generic, list, tuple, range)):
        refuse_masked(part)
        array = np.array(part)
        if is_integer(array.dtype):
            return int(array) if not array.ndim else array
        if is_bool(array.dtype):
            return array
        if not array.size:
            return array.astype(np.int64)
        got = f"an array of {array.dtype}"
    else:
        try:
            return operator.index(part)
        except TypeError:
            got = type(part).__name__
            if got == "str":
                got += ": a tensor has no keys. If the output of a custom gradient is a dict, its "
                got += "rule takes one upstream gradient for each value, sorted by the keys"
    raise IndexError(
        f"{users_expression() or 'x[...]'}: only integers, slices (`:`), ellipsis (`...`), None, "
        f"and integer or boolean arrays are valid indices, got {got}"
    )


# Gather --------------------------------------------------------------------------------------


def _gather_batch(params: dict, size: int) -> dict:
    """Return the parameters for operands that share one more axis: the batch."""
    shape = {"shape": (size, *params["shape"])} if "shape" in params else {}
    return {"axis": params["axis"] + 1, "batch_dims": params["batch_dims"] + 1} | shape


_gather = operation(
    "gather",
    lambda x, indices, axis, batch_dims: kernel_for(x, kmove.gather)(x, indices, axis, batch_dims),
    lambda x, indices, axis, batch_dims: Aval(
        (*x.shape[:axis], *indices.shape[batch_dims:], *x.shape[axis + 1 :]), x.dtype
    ),
    (
        lambda dy, indices, shape, axis, batch_dims: apply(
            _gather_adjoint, (dy, indices), {"shape": shape, "axis": axis, "batch_dims": batch_dims}
        ),
        None,
    ),
    inputs=("x", "indices"),
    linear=True,
    kernel=kmove.gather,
    batch=_gather_batch,
    samples=[
        Case(((4, 3), ()), {"axis": 0, "batch_dims": 0}, {1: np.array([[0, 2], [2, 3]])}),
        Case(((2, 5), ()), {"axis": 1, "batch_dims": 0}, {1: np.array([4, 0, -1])}),
        Case(((2, 5), ()), {"axis": 1, "batch_dims": 1}, {1: np.array([[4, 0, 4], [1, 1, -2]])}),
        Case(((2, 3, 2, 2), ()), {"axis": 2, "batch_dims": 1}, {1: np.array([[1, 0], [1, 1]])}),
    ],
)
_gather_adjoint = operation(
    "gather_adjoint",
    lambda x, indices, shape, axis, batch_dims: kernel_for(x, kmove.scatter_add)(
        shape, x.dtype, indices, x, axis, batch_dims
    ),
    lambda x, indices, shape, axis, batch_dims: Aval(shape, x.dtype),
    (
        lambda dy, indices, axis, batch_dims: apply(
            _gather, (dy, indices), {"axis": axis, "batch_dims": batch_dims}
        ),
        None,
    ),
    inputs=("x", "indices"),
    linear=True,
    kernel=kmove.scatter_add,
    batch=_gather_batch,
    samples=[
        Case(((3, 3), ()), {"shape": (4, 3), "axis": 0, "batch_dims": 0}, {1: np.array([0, 0, 2])}),
        Case(
            ((2, 3, 2), ()),
            {"shape": (2, 3, 4), "axis": 2, "batch_dims": 1},
            {1: np.array([[3, 3], [0, -1]])},
        ),
    ],
)


def gather(x: Any, indices: Any, axis: Any = 0, batch_dims: int = 0) -> Tensor:
    """Return slices of `x` along `axis` at integer `indices`; negative indices count from the end.

    With `batch_dims` the first axes of `x` and `indices` are common.
    """
    x, indices = convert(x), as_integers("gather", "indices", indices)
    shared = as_int("gather", "batch_dims", batch_dims)
    dim = max(normalize_axis("gather", axis, x._data.ndim), shared)
    if (
        not 0 <= shared <= indices._data.ndim
        or x._data.shape[:shared] != indices._data.shape[:shared]
    ):
        raise InvalidArgumentError(
            f"gather: the first {shared} axes of shapes {tuple(x.shape)} and "
            f"{tuple(indices.shape)} must agree"
        )
    return apply(_gather, (x, indices), {"axis": dim, "batch_dims": shared})


def _with_row(x: np.ndarray, value: np.ndarray, index: np.ndarray, batch_dims: int) -> np.ndarray:
    """Return a copy of `x` with a row replaced: in a batch, one of each example.

    In a batch an out-of-range index replaces no row: an example whose loop has ended continues with
    the others, and its results are not used.
    """
    result, size = x.copy(), x.shape[batch_dims]
    fits = (index >= 0) & (index < size)
    if not batch_dims:
        if not fits:
            raise IndexError(f"set_row: index {int(index)} is outside of {size} rows")
        result[int(index)] = value
        return result
    shared = x.shape[:batch_dims]
    positions = np.nonzero(np.broadcast_to(fits, shared))
    result[(*positions, np.broadcast_to(index, shared)[positions])] = value[positions]
    return result


def _zero_row(dy: Tensor, shape: tuple[int, ...], batch_dims: int) -> Tensor:
    row = (*shape[:batch_dims], *shape[batch_dims + 1 :])
    with devices.on_device_of(dy):
        return Tensor(devices.create("set_row", "zeros", row, dy._data.dtype))


_set_row = operation(
    "set_row",
    _with_row,
    lambda x, value, index, batch_dims: Aval(x.shape, x.dtype),
    (
        lambda dy, index, shape, batch_dims: apply(
            _set_row, (dy, _zero_row(dy, shape, batch_dims), index), {"batch_dims": batch_dims}
        ),
        lambda dy, index, batch_dims: apply(
            _gather, (dy, index), {"axis": batch_dims, "batch_dims": batch_dims}
        ),
        None,
    ),
    inputs=("x", "value", "index"),
    linear=True,
    batch=lambda params, size: {"batch_dims": params["batch_dims"] + 1},
    samples=[
        Case(((4, 3), (3,), ()), {"batch_dims": 0}, {2: np.array(2)}),
        Case(((4,), (), ()), {"batch_dims": 0}, {2: np.array(0)}),
        Case(((2, 4, 3), (2, 3), (2,)), {"batch_dims": 1}, {2: np.array([3, 0])}),
    ],
)


def set_row(x: Tensor, value: Tensor, index: Tensor) -> Tensor:
    """Return `x` with `value` in place of its row `index`, an integer of no dimensions."""
    return apply(_set_row, (x, value, index), {"batch_dims": 0})


def scatter_rows(values: Tensor, indices: Tensor, size: int, batch_dims: int = 0) -> Tensor:
    """Return `size` rows, zeros to which the rows of `values` are added at `indices`.

    The first `batch_dims` axes are common to both; `indices` may have several more.
    """
    values_shape, rank = values._data.shape, indices._data.ndim
    shape = (*values_shape[:batch_dims], size, *values_shape[rank:])
    params = {"shape": shape, "axis": batch_dims, "batch_dims": batch_dims}
    return apply(_gather_adjoint, (values, indices), params)


operations.scatter_slices = lambda values, indices, shape: apply(
    _gather_adjoint, (values, indices), {"shape": shape, "axis": 0, "batch_dims": 0}
)
