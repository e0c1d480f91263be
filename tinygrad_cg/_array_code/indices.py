"""Indices and slices of arrays."""

from __future__ import annotations

import ast
from abc import abstractmethod
from typing import Any

from .blocks_of_code import BlockReader, Known
from .program import FixedNumber, Number, constant
from .views import Axis, View


class IndexReader(BlockReader):
    """Reads parts of arrays; what is made of it reads the rest."""

    @abstractmethod
    def binary(self, name: str, left: Any, right: Any) -> Any:
        """Return an operation on numbers or arrays, by the name of Python's operator."""

    @abstractmethod
    def call(self, function: Any, args: Any, keywords: dict[str, Any]) -> Any:
        """Return the result of a function's body."""

    def item(self, view: View, index: Number) -> Any:
        """Return ``view[index]``."""
        return self.evaluated(self.part(view, [index], None))

    def part(self, view: View, parts: list[Any], node: ast.AST | None) -> View:
        """Return the part of a view at integers, slices (tuples), None and Ellipsis."""
        used = sum(not isinstance(part, Known) for part in parts)
        if used > len(view.shape):
            raise self.refuse(f"{used} indices for an array of {len(view.shape)} axes", node)
        full = (None, None, None)
        missing = [full] * (len(view.shape) - used)
        at = parts.index(Known(...)) if Known(...) in parts else len(parts)
        parts = [*parts[:at], *missing, *parts[at + 1 :]]
        new: dict[int, Axis] = {}  # by axes of the view
        shape: list[Number] = []
        axis = 0
        for part in parts:
            if isinstance(part, Known):
                shape.append(constant(1))
                continue
            size = view.shape[axis]
            if isinstance(part, tuple):
                start, step, count = self.sliced(part, size)
                new[axis] = Axis(start, step, len(shape))
                shape.append(count)
            else:
                new[axis] = Axis(self.wrapped(part, size))
            axis += 1
        return View(view.array, tuple(self.compose(old, new) for old in view.axes), tuple(shape))

    def compose(self, old: Axis, new: dict[int, Axis]) -> Axis:
        """Return how memory is indexed by a part of a view."""
        if old.of is None or old.step is None:
            return old
        inner = new[old.of]
        start = self.b.op("add", old.start, self.b.op("multiply", inner.start, old.step), hint="i")
        if inner.step is None:
            return Axis(start)
        return Axis(start, self.b.op("multiply", inner.step, old.step, hint="i"), inner.of)

    def wrapped(self, index: Number, size: Number) -> Number:
        """Return an index that counts from the beginning."""
        if index.low is not None and index.low >= 0:
            return index
        if isinstance(index, FixedNumber):
            return self.b.op("add", size, index, hint="i")
        negative = self.b.op("less", index, 0)
        return self.b.op("select", negative, self.b.op("add", index, size), index, hint="i")

    def sliced(self, part: tuple, size: Number) -> tuple[Number, Number, Number]:
        """Return a slice's start, step and number of elements."""
        start, stop, step = part
        step = constant(1) if step is None else step
        if not isinstance(step, FixedNumber):
            raise self.refuse("the step of a slice must be a constant")
        jump = int(step.number)
        if jump == 0:
            raise self.refuse("the step of a slice must not be 0")
        if start is None and stop is None and jump == 1:
            return constant(0), step, size
        b = self.b

        def clipped(value: Number, low: int, high: Number) -> Number:
            value = self.wrapped(value, size)
            if value.low is None or value.low < low:
                value = b.op("maximum", value, low)
            if isinstance(value, FixedNumber) and value.number == 0 and jump > 0:
                return value
            return b.op("minimum", value, high)

        low, top = (0, size) if jump > 0 else (-1, b.op("subtract", size, 1))
        begin, end = (constant(0), top) if jump > 0 else (top, constant(-1))
        first = begin if start is None else clipped(start, low, top)
        last = end if stop is None else clipped(stop, low, top)
        span = b.op("subtract", *((last, first) if jump > 0 else (first, last)))
        if abs(jump) > 1:
            span = b.op("floor_divide", b.op("add", span, abs(jump) - 1), abs(jump))
        return first, step, b.op("maximum", span, 0, hint="n")
