"""Which elements of arrays the backward sweep may load again: those that nothing overwrites."""

from __future__ import annotations

from . import program as ir

Access = ir.LoadElement | ir.Store
Place = tuple[int, tuple[ir.For, ...]]  # a statement's number in the text, and its loops


class Reloading:
    """Answers for the loads of one program."""

    def __init__(self, program: ir.ArrayProgram):
        self.places: dict[ir.Statement, Place] = {}
        self.home: dict[ir.Number, ir.Block] = {}  # the blocks that define numbers
        self.sources: dict[ir.Number, ir.Statement] = {}  # the statements that do
        self.counts: dict[ir.Statement, ir.Number] = {}  # rounds that are not known before
        self.stores: dict[ir.Array, list[ir.Store | ir.Fill]] = {}
        self.stored: dict[ir.Number, ir.Store] = {}  # in the block that computes the value
        self.number(program.body, ())
        self.safe: dict[Access, bool] = {}

    def number(self, block: ir.Block, loops: tuple[ir.For, ...]) -> None:
        own: set[ir.Number] = set()
        for statement in block:
            own.update(statement.results())
            self.home |= dict.fromkeys(statement.results(), block)
            self.sources |= dict.fromkeys(statement.results(), statement)
            self.places[statement] = len(self.places), loops
            match statement:
                case ir.Store(array, _, x, False) if x in own and x.type == array.element:
                    self.stored[x] = statement  # as it is
            if isinstance(statement, (ir.Store, ir.Fill)):
                self.stores.setdefault(statement.array, []).append(statement)
            inner = loops
            if isinstance(statement, ir.For):
                inner = (*loops, statement)
                self.home |= dict.fromkeys(statement.bound(), statement.body)
                if not statement.is_counted:
                    count = self.counts[statement] = ir.Number("i64", "rounds", 0)
                    self.home[count] = block
            for part in statement.inner_blocks():
                self.number(part, inner)

    def is_safe(self, load: Access) -> bool:
        """Return whether the element keeps its value until the program ends."""
        if load not in self.safe:
            stores = self.stores.get(load.array, ())
            self.safe[load] = not any(self.may_follow(store, load) for store in stores)
        return self.safe[load]

    def unchanged_in(self, load: Access) -> ir.For | None:
        """Return the outermost loop that goes over an axis of an array and leaves it as it is."""
        _, loops = self.places[load]
        writers = [self.places[store][1] for store in self.stores.get(load.array, ())]
        for k, loop in enumerate(loops):
            if not any(loop in around for around in writers):
                return loop if self.goes_over(loops[k:], load) else None
        return None

    def goes_over(self, loops: tuple[ir.For, ...], load: Access) -> bool:
        """Return whether loops go over all indices of some axes, and the others are the same."""
        spanned = 0
        for size, i in zip(load.array.shape, load.index, strict=True):
            if any(self.spans(loop, i, size) for loop in loops):
                spanned += 1
            elif i.number is None:
                return False
        return spanned > 0

    def spans(self, loop: ir.For, value: ir.Number, size: ir.Number) -> bool:
        """Return whether a loop's index goes over an axis, but for a few elements at the ends."""
        ends = (loop.start, loop.stop) if loop.step.number == 1 else (loop.stop, loop.start)
        if None in (ends[0].number, self.offset(value, loop.index)) or abs(loop.step.number) != 1:
            return False
        if size.number is not None and ends[1].number is not None:
            return 2 * (ends[1].number - ends[0].number) >= size.number
        gap = self.offset(ends[1], size)
        return gap is not None and abs(gap) < 16 and abs(ends[0].number) < 16

    def may_follow(self, store: ir.Store | ir.Fill, load: Access) -> bool:
        """Return whether a store may overwrite an element after a load, or store, was there."""
        (when, loops), (then, others) = self.places[store], self.places[load]
        common = [x for x, y in zip(loops, others, strict=False) if x is y]
        if isinstance(store, ir.Fill):
            return when > then or bool(common)
        pairs = zip(store.index, load.index, strict=True)
        if any(_is_below(x, y) or _is_below(y, x) for x, y in pairs):
            return False
        for loop in common:
            distance = self.distance(loop, store.index, load.index)
            if distance is None or distance > 0:
                return True
            if distance < 0:
                return False
        return when > then

    def distance(self, loop: ir.For, store: ir.Index, load: ir.Index) -> int | None:
        """Return in how many rounds, or None, a store writes the element that a load reads now."""
        for own, other in zip(store, load, strict=True):
            first, second = self.offset(own, loop.index), self.offset(other, loop.index)
            if first is not None and second is not None:
                gap = second - first
                jump = loop.step.number
                return None if gap % jump else gap // jump
        return None

    def offset(self, value: ir.Number, index: ir.Number) -> int | None:
        """Return the number that is added to another one, if a value is such a sum."""
        (base, gap), (other, start) = (ir.term_of(x, self.sources) for x in (value, index))
        return gap - start if base is other else None


def _is_below(x: ir.Number, y: ir.Number) -> bool:
    """Return whether a constant is less than all that another number may be."""
    return x.number is not None and y.low is not None and x.number < y.low
