"""Checks of arguments: each function returns the value that it checked, or raises.

An error names the function, the argument, what was expected and what came.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from tinygrad_cg_kernels.runtime import promotion

from .._core.conversion import convert, is_tensor
from .._core.kinds import COMPLEX, FLOATING, INTEGERS, REAL, is_integer
from .._core.tensor import Tensor
from .._core.wording import in_words
from ..errors import (
    ArgumentTypeError,
    AxisError,
    InvalidArgumentError,
    OperatorNotAllowedInGraphError,
)

T = TypeVar("T")

_ALL_AXES = tuple(tuple(range(ndim)) for ndim in range(65))
INTEGRAL = tuple({"axis": axes, "keepdims": False} for axes in _ALL_AXES)
"""The parameters of a reduction of all elements, by the number of axes."""
_KINDS = {
    INTEGERS: "integers",
    FLOATING: "real floating-point numbers",
    REAL: "real numbers",
    COMPLEX: "complex numbers",
}

# Numbers and words ---------------------------------------------------------------------------


def as_int(name: str, argument: str, value: Any) -> int:
    try:
        return operator.index(value)
    except OperatorNotAllowedInGraphError:
        raise
    except TypeError:
        raise ArgumentTypeError(
            f"{name}: {argument} must be an integer, got {type(value).__name__} {value!r}"
        ) from None


def check_function(name: str, f: Any, argument: str = "f") -> None:
    if not callable(f):
        hint = ": pass the function itself, not its result"
        raise TypeError(
            f"{name}: the argument `{argument}` must be a function, got "
            f"{type(f).__name__}{hint if is_tensor(f) or isinstance(f, np.ndarray) else ''}"
        )


def as_count(name: str, argument: str, value: Any, least: int = 0) -> int:
    """Return an integer of at least `least`; InvalidArgumentError for a smaller one."""
    count = as_int(name, argument, value)
    if count < least:
        expected = "not be negative" if not least else f"be at least {least}"
        raise InvalidArgumentError(f"{name}: {argument} must {expected}, got {count}")
    return count


def as_choice(name: str, argument: str, value: T, choices: Iterable[Any]) -> T:
    """Return `value` if it is one of `choices`; InvalidArgumentError otherwise."""
    choices = tuple(choices)
    if value not in choices:
        listed = in_words(map(repr, choices), "or")
        raise InvalidArgumentError(f"{name}: {argument} must be one of {listed}, got {value!r}")
    return value


# Axes and shapes -----------------------------------------------------------------------------


def normalize_axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Return non-negative axes in ascending order, from None (all), one number, or several."""
    if axis is None:
        return _ALL_AXES[ndim]
    if type(axis) is int:
        return (normalize_axis(name, axis, ndim),)
    if is_tensor(axis) or isinstance(axis, np.ndarray):
        axis = np.asarray(axis).tolist()
    if not isinstance(axis, (list, tuple)):
        return (normalize_axis(name, axis, ndim),)
    axes = tuple(
        sorted(
            [
                dim if type(dim) is int and 0 <= dim < ndim else normalize_axis(name, dim, ndim)
                for dim in axis
            ]
        )
    )
    if len(set(axes)) != len(axes):
        raise InvalidArgumentError(f"{name}: axis {axis} names an axis twice")
    return axes


def normalize_axis(name: str, axis: Any, ndim: int) -> int:
    index = as_int(name, "axis", axis)
    if not -ndim <= index < ndim:
        raise AxisError(f"{name}: axis {index} is out of range for a tensor with {ndim} dimensions")
    return index % ndim


def as_shape(name: str, shape: Any) -> tuple[int, ...]:
    """Return a tuple of Python integers, from a number, a sequence or an integer tensor.

    Raises TypeError if one is not an integer. Sizes may be negative: see `as_sizes`.
    """
    if is_tensor(shape) or isinstance(shape, np.ndarray):
        shape = np.asarray(shape).tolist()
    if not isinstance(shape, (list, tuple)):
        shape = (shape,)
    return tuple([as_int(name, "each size in shape", size) for size in shape])


def as_sizes(name: str, shape: Any) -> tuple[int, ...]:
    """Return `as_shape` for the shape of a tensor: InvalidArgumentError for negative sizes."""
    sizes = as_shape(name, shape)
    for size in sizes:
        if size < 0:
            raise InvalidArgumentError(
                f"{name}: sizes in shape must not be negative, got {sizes}: pass the number of "
                "elements"
            )
    return sizes


def broadcast_shapes(name: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return promotion.broadcast_shapes(*shapes)
    except ValueError:
        text = " and ".join(str(tuple(shape)) for shape in shapes)
        raise InvalidArgumentError(f"{name}: shapes {text} do not broadcast") from None


def check_broadcast(name: str, argument: str, shape: Any, sizes: tuple[int, ...]) -> None:
    """Raise InvalidArgumentError unless `shape` broadcasts to `sizes`."""
    if broadcast_shapes(name, tuple(shape), sizes) != sizes:
        raise InvalidArgumentError(
            f"{name}: {argument} of shape {tuple(shape)} does not broadcast to shape {sizes}"
        )


def check_same_shape(name: str, argument: str, x: Any, other: str, y: Any) -> None:
    """Raise InvalidArgumentError unless two tensors have one shape."""
    if x._data.shape != y._data.shape:
        raise InvalidArgumentError(
            f"{name}: {argument} must have the shape of {other}, {tuple(y.shape)}, got "
            f"{tuple(x.shape)}"
        )


def check_shapes(
    name: str, operands: dict[str, tuple[Any, str]], **known: int | None
) -> dict[str, int]:
    """Return the sizes of axes by their names; InvalidArgumentError if shapes are not as declared.

    `operands` has for each argument a tensor and its axes: names or numbers, after ``...`` if any
    axes may come before. An axis has one size under one name; `known` has sizes that are given.

    ``check_shapes("in_top_k", {"predictions": (x, "rows classes"), "targets": (y, "rows")})``
    """
    sizes = {axis: size for axis, size in known.items() if size is not None}
    if all(_fits(x._data.shape, axes.split(), sizes) for x, axes in operands.values()):
        return sizes
    expected = ", ".join(
        f"{argument} must have shape {_written(axes.split(), known)}"
        for argument, (_, axes) in operands.items()
    )
    shapes = in_words(str(tuple(x.shape)) for x, _ in operands.values())
    raise InvalidArgumentError(f"{name}: {expected}; got {shapes}")


def _fits(shape: tuple[int, ...], axes: list[str], sizes: dict[str, int]) -> bool:
    """Return whether a shape is as declared, and note sizes that were not known."""
    if axes[:1] == ["..."]:
        axes = axes[1:]
        shape = shape[max(len(shape) - len(axes), 0) :]
    if len(shape) != len(axes):
        return False
    return all(
        size == (int(axis) if axis.isdigit() else sizes.setdefault(axis, size))
        for axis, size in zip(axes, shape, strict=True)
    )


def _written(axes: list[str], known: dict[str, int | None]) -> str:
    """Return declared axes as a shape, with the sizes that are given."""
    sizes = [axis if known.get(axis) is None else f"{axis} = {known[axis]}" for axis in axes]
    return f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"


# Dtypes --------------------------------------------------------------------------------------


def check_kind(
    name: str,
    argument: str,
    x: Any,
    kinds: tuple,
    remedy: str = "",
    error: type[Exception] = InvalidArgumentError,
) -> None:
    """Raise `error` unless the dtype of `x` is of `kinds`, as records declare them."""
    for is_kind in kinds:
        if is_kind(x.dtype):
            return
    remedy = remedy and f"; {remedy}"
    raise error(f"{name}: {argument} must be {_KINDS[kinds]}, got {x.dtype}{remedy}")


def as_integers(name: str, argument: str, value: Any) -> Tensor:
    """Return a tensor of integers; InvalidArgumentError for another dtype."""
    x = convert(value)
    if not is_integer(x._data.dtype):  # indices are checked often: without a call
        check_kind(name, argument, x, INTEGERS)
    return x
