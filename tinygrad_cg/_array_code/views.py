"""Arrays as functions see them: views of memory, and expressions that are not computed yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .program import DTYPES, Array, Index, Number, constant
from .scalar_operations import OpBuilder


@dataclass(frozen=True, slots=True)
class Axis:
    """How an axis of memory is indexed: ``start``, or ``start + step * index`` by a view's axis."""

    start: Number
    step: Number | None = None
    of: int | None = None


@dataclass(slots=True)
class View:
    """Elements of an array in memory; `axes` are those of the memory. Equal ones are the same."""

    array: Array
    axes: tuple[Axis, ...]
    shape: tuple[Number, ...]

    @property
    def type(self) -> str:
        return self.array.type

    @property
    def element(self) -> str:
        return self.array.element

    @property
    def reads(self) -> frozenset[Array]:
        return frozenset((self.array,))

    def place(self, b: OpBuilder, index: Index) -> Index:
        place = []
        for axis in self.axes:
            start = axis.start
            if axis.of is not None and axis.step is not None:
                step = b.op("multiply", index[axis.of], axis.step, hint="i")
                start = b.op("add", start, step, hint="i")
            place.append(start)
        return tuple(place)

    def at(self, b: OpBuilder, index: Index) -> Number:
        return b.load(self.array, self.place(b, index))

    def put(self, b: OpBuilder, index: Index, value: Number, adds: bool = False) -> None:
        value = b.cast(value, self.type)
        b.store(self.array, self.place(b, index), value, adds)


def whole(array: Array) -> View:
    axes = tuple(Axis(constant(0), constant(1), k) for k in range(len(array.shape)))
    return View(array, axes, array.shape)


@dataclass(eq=False, slots=True)
class Lazy:
    """An array whose elements are computed where they are read."""

    type: str
    shape: tuple[Number, ...]
    at: Callable[[OpBuilder, Index], Number]
    reads: frozenset[Array] = field(default_factory=frozenset)

    @property
    def element(self) -> str:
        return self.type


Arraylike = View | Lazy
ELEMENTS = {dtype: name for name, dtype in DTYPES.items()}


def element_of(dtype: Any) -> str:
    """Return the name of an array's dtype; TypeError for one that programs do not know."""
    name = ELEMENTS.get(dtype) or ELEMENTS.get(np.dtype(dtype))
    if name is None:
        raise TypeError(f"arrays of dtype {np.dtype(dtype)} are not supported")
    return name


def element(b: OpBuilder, operand: Number | Arraylike, index: Index) -> Number:
    """Return the element of an operand that is broadcast to the shape of an index."""
    if isinstance(operand, Number):
        return operand
    own = index[len(index) - len(operand.shape) :]
    pairs = zip(own, operand.shape, strict=True)
    return operand.at(b, tuple(constant(0) if size.number == 1 else i for i, size in pairs))


def broadcast(
    shapes: Sequence[tuple[Number, ...]], check_equal: Callable[[Number, Number], None]
) -> tuple[Number, ...]:
    """Return the common shape; axes of size 1 that are known to be are repeated."""
    rank = max(map(len, shapes))
    result: list[Number] = []
    for axis in range(-rank, 0):
        sizes = [shape[axis] for shape in shapes if len(shape) >= -axis]
        chosen, *others = [size for size in sizes if size.number != 1] or sizes[:1]
        for size in others:
            check_equal(chosen, size)
        result.append(chosen)
    return tuple(result)


def transposed(view: View, order: Sequence[int]) -> View:
    """Return a view with its axes in another order."""
    places: dict[Any, int] = {old: new for new, old in enumerate(order)}
    axes = tuple(replace(axis, of=places.get(axis.of)) for axis in view.axes)
    return View(view.array, axes, tuple(view.shape[k] for k in order))
