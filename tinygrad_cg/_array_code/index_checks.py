"""Checks of indices: which ones are needed, and which ones can be made once before a loop."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from . import program as ir
from .scalar_operations import OpBuilder


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """A check that integers from `least` to `most` are indices of an axis of some size.

    An end is None if it is known to be in range. Nothing is checked if one of the `loops`, given by
    the bounds of their indices, has no round.
    """

    least: ir.Number | None
    most: ir.Number | None
    size: ir.Number
    loops: tuple[ir.Bounds, ...] = ()


class IndexRanges:
    """What is known of integers: their operations, and the bounds of loops' indices."""

    def __init__(
        self, definitions: Mapping[ir.Number, ir.Op], ranges: Mapping[ir.Number, ir.Bounds]
    ):
        self.definitions, self.ranges = definitions, ranges

    def check(self, index: ir.Number, size: ir.Number) -> IndexCheck:
        """Return the check of an index, without the ends that are known to be in range."""
        is_low = index.low is not None and index.low >= 0
        own, constant = ir.term_of(size, self.definitions)
        is_high = any(
            base is own and least < constant for base, least in self._upper_bounds(index)
        ) or (isinstance(index, ir.FixedNumber) and index.number < (size.low or 0))
        return IndexCheck(None if is_low else index, None if is_high else index, size)

    def _upper_bounds(self, value: ir.Number) -> Iterator[tuple[ir.Number | None, int]]:
        """Yield numbers, or None for 0, and constants: an integer is at most their sum."""
        base, constant = ir.term_of(value, self.definitions)
        yield base, constant
        bounds: list[tuple[ir.Number, int]] = []
        if base is not None and base in self.ranges:
            start, stop, step = self.ranges[base]
            bounds = [(stop, -1)] if step.number > 0 else [(start, 0)]
        elif base is not None:
            match self.definitions.get(base):
                case ir.Op(_, "minimum", args):
                    bounds = [(x, 0) for x in args]
                case ir.Op(_, "mod", (_, y)) if y.low is not None and y.low >= 0:
                    bounds = [(y, -1)]
                case ir.Op(_, "subtract", (x, y)) if y.low is not None:
                    bounds = [(x, -y.low)]
        for bound, more in bounds:
            for other, own in self._upper_bounds(bound):
                yield other, own + constant + more

    def test(self, b: OpBuilder, check: IndexCheck) -> ir.Number:
        """Add the operations that compute whether a check is passed."""
        result: ir.Number = ir.constant(True)
        if check.most is not None:
            result = b.op("less", check.most, check.size)
        if check.least is not None:
            is_low = b.op("greater_equal", check.least, b.op("negative", check.size))
            result = is_low if check.most is None else b.op("and", is_low, result)
        for start, stop, step in check.loops:
            empty = b.op("greater_equal" if step.number > 0 else "less_equal", start, stop)
            if not (isinstance(empty, ir.FixedNumber) and not empty.number):
                result = b.op("or", empty, result)
        return result

    def before(self, b: OpBuilder, check: IndexCheck, loop: ir.For) -> IndexCheck | None:
        """Return the check of all rounds of a loop before it; None where that is not possible."""
        inside = {loop.index, *ir.defined(loop.body), *(carry.inside for carry in loop.carries)}
        growth = [self._direction(x, loop.index, inside) for x in (check.least, check.most)]
        others = [check.size, *(x for bounds in check.loops for x in bounds)]
        if None in growth or any(self._direction(x, loop.index, inside) != 0 for x in others):
            return None
        start, stop, step = loop.start, loop.stop, int(loop.step.number)
        toward = 1 if step > 0 else -1
        last = b.op("subtract", stop, toward)
        if abs(step) > 1:
            span = b.op("subtract", last, start)
            rounds = b.op("floor_divide", b.op("multiply", span, toward), abs(step))
            last = b.op("add", start, b.op("multiply", rounds, step))

        def at(value: ir.Number, index: ir.Number) -> ir.Number:
            if value is loop.index:
                return index
            if value not in inside:
                return value
            op = self.definitions[value]
            return b.op(str(op.function), *[at(x, index) for x in op.args])

        # the index is least at the start, unless it falls: by itself, or with the loop's index
        ends = (start, last) if toward > 0 else (last, start)
        low, high = [ends if (sign or 0) >= 0 else ends[::-1] for sign in growth]
        return IndexCheck(
            check.least and at(check.least, low[0]),
            check.most and at(check.most, high[1]),
            at(check.size, start),
            (
                *[(at(x, start), at(y, start), step) for x, y, step in check.loops],
                (start, stop, loop.step),
            ),
        )

    def _direction(
        self, value: ir.Number | None, index: ir.Number, inside: Collection[ir.Number]
    ) -> int | None:
        """Return 1 or -1 for what grows or falls with an index, and 0 for what is constant.

        None for what is neither, and for what cannot be computed outside the loop.
        """
        if value is None or value not in inside:
            return 0
        if value is index:
            return 1
        op = self.definitions.get(value)
        if op is None or not isinstance(op.function, str):
            return None
        directions = [self._direction(x, index, inside) for x in op.args]
        y = op.args[-1]
        is_fixed = isinstance(y, ir.FixedNumber)  # a loop without rounds may divide by 0
        if None in directions or (op.function in ("mod", "floor_divide") and not is_fixed):
            return None
        if not any(directions):
            return 0
        first, second = [x or 0 for x in (*directions, 0)[:2]]
        match op.function:
            case "add" | "minimum" | "maximum":
                return first or second if first * second >= 0 else None
            case "subtract":
                return first or -second if first * second <= 0 else None
            case "multiply" if 0 in (first, second):
                factor = op.args[0 if second else 1]
                if isinstance(factor, ir.FixedNumber):
                    return (first or second) * (1 if factor.number >= 0 else -1)
                return first or second if factor.low is not None and factor.low >= 0 else None
            case "floor_divide" if is_fixed and y.number > 0:
                return first
        return None
