"""Loops that add to several elements of one array, as loops that processors compute in vectors.

The backward sweep of ``out[i] = f(a[i - 1], a[i], a[i + 1])`` adds to three elements of an adjoint
in each round, and the next round to two of these. Such a loop waits for memory. It is cut into
chunks: a loop computes the terms of a chunk into buffers, and other loops add them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from tinygrad_cg_kernels import elementary

from . import program as ir
from .scalar_operations import OpBuilder

CHUNK = 256  # rounds that are computed before their terms are added
PAD = 8
"""Zeros in front of and behind the terms: the largest distance of elements that are one group."""
MIN_ROUNDS = 16  # loops of fewer rounds are left as they are
Group = Sequence[tuple[ir.Store, ir.Array, int]]
"""Additions to elements near each other: with the buffer of the terms, and the distance."""


def split(program: ir.ArrayProgram, primal: ir.ArrayProgram) -> ir.ArrayProgram:
    """Return a program that does the same with split loops; `primal` is what it was made from."""
    splitting = _Splitting(program, primal)
    body = splitting.block(program.body)
    scratch = [*program.scratch, *splitting.buffers.values()]
    return replace(program, scratch=scratch, body=body)


def are_sums(loop: ir.For) -> bool:
    """Return whether all that rounds hand on is sums in any order, which nothing else reads."""
    ops = ir.definitions(loop.body)
    uses = _uses(loop)
    for carry in loop.carries:
        value = carry.result
        while value in ops and ops[value].function == "accumulate" and uses[value] == 1:
            value = ops[value].args[0]
        if value is not carry.inside or (value is not carry.result and uses[value] > 1):
            return False
    return True


def _inner(loop: ir.For) -> dict[ir.Number, ir.Statement]:
    """Return the values of a loop's rounds, but for its index, and what defines them."""
    inner: dict[ir.Number, ir.Statement] = {c.inside: loop for c in loop.carries}
    return inner | {value: x for x in loop.body for value in x.results()}


def _uses(loop: ir.For) -> Counter[ir.Number]:
    """Return how often the values of a loop of numbers and elements are read."""
    uses = Counter(value for x in loop.body for value in x.operands())
    uses.update(carry.result for carry in loop.carries)
    return uses


def are_rounds_independent(loop: ir.For, ignored: Collection[ir.Statement] = ()) -> bool:
    """Return whether a loop's rounds use nothing of each other, but for sums in any order.

    Stores that are `ignored` take place after the rounds. All places of an array that is written to
    have the same index of some axis, another in each round.
    """
    if not (loop.is_counted and are_sums(loop)):
        return False
    inner = _inner(loop)
    shared: dict[ir.Array, set[tuple[int, ir.Number]]] = {}
    body = [x for x in loop.body if x not in ignored]
    for x in body:
        if isinstance(x, (ir.LoadElement, ir.Store)):
            axes = set(enumerate(x.index))
            shared[x.array] = shared.get(x.array, axes) & axes
        elif not isinstance(x, ir.Op):
            return False
    written = {x.array for x in body if isinstance(x, ir.Store)}
    return all(any(_moves(i, loop.index, inner) for _, i in shared[x]) for x in written)


def totals(loop: ir.For, primal: Collection[ir.Array]) -> tuple[ir.For, ir.Block]:
    """Return a loop that adds up in numbers what it adds to the same element in all rounds.

    And what adds the numbers to the elements after rounds. Sums of `primal` stay as they are.
    """
    inner = ir.defined([loop])
    used = {*primal, *ir.arrays_of(loop.body, ir.LoadElement, ir.Fill)}
    used.update(x.array for x in ir.walk(loop.body) if isinstance(x, ir.Store) and not x.adds)
    b, carries, stores = OpBuilder(), [*loop.carries], []
    for x in loop.body:
        if isinstance(x, ir.Store) and x.adds and x.array not in used and inner.isdisjoint(x.index):
            inside, out = (ir.Number(x.array.element, x.array.hint) for _ in range(2))
            total = b.op("accumulate", inside, x.value)
            carries.append(ir.Carry(inside, ir.zero(x.array), total, out))
            stores.append(ir.Store(x.array, x.index, out, adds=True))
        else:
            b.block.append(x)
    if not stores:
        return loop, []
    around = OpBuilder()
    test = around.op("less" if loop.step.number > 0 else "greater", loop.start, loop.stop)
    after: ir.Block = [*around.block, ir.If(test, stores, [])]
    if test.number is not None:
        after = stores if test.number else []
    return replace(loop, body=b.block, carries=carries), after


def can_be_split(loop: ir.For) -> bool:
    """Return whether a loop has many rounds of numbers and elements alone, one after the other."""
    start, stop = loop.start.number, loop.stop.number
    if None not in (start, stop) and abs(stop - start) < MIN_ROUNDS:
        return False
    if not loop.is_counted or abs(loop.step.number) != 1:
        return False
    return all(isinstance(x, (ir.Op, ir.LoadElement, ir.Store, ir.Pop)) for x in loop.body)


def ordered_sums(loop: ir.For) -> list[ir.Carry]:
    """Return sums in the order of rounds that call functions and have nothing else in common."""
    ops = ir.definitions(loop.body)
    calls = {x.function for x in ops.values() if not isinstance(x.function, str)}
    if not (can_be_split(loop) and loop.step.number == 1 and calls - {elementary.sqrt}):
        return []
    uses = _uses(loop)
    sums = [
        c
        for c in loop.carries
        if c.result in ops
        and ops[c.result].function == "add"
        and c.inside in ops[c.result].args
        and uses[c.inside] == uses[c.result] == 1
    ]
    others = [c for c in loop.carries if c not in sums]
    return sums if sums and are_rounds_independent(replace(loop, carries=others)) else []


class _Splitting:
    def __init__(self, program: ir.ArrayProgram, primal: ir.ArrayProgram) -> None:
        self.buffers: dict[tuple[int, str], ir.Array] = {}
        self.primal = {*primal.inputs, *primal.scratch}
        self.definitions = ir.definitions(program.body)

    def block(self, block: ir.Block) -> ir.Block:
        return [part for statement in block for part in self.statement(statement)]

    def statement(self, statement: ir.Statement) -> ir.Block:
        result = statement.with_blocks(self.block)
        if not isinstance(result, ir.For) or result.test is not None:
            return [result]
        loop, after = totals(result, self.primal)
        stores, sums = self.candidates(loop), ordered_sums(loop)
        return [*(self.both(loop, stores, sums) if stores or sums else [loop]), *after]

    def candidates(self, loop: ir.For) -> list[ir.Store]:
        """Return the additions that can take place after the rounds of a chunk."""
        body = loop.body
        if not can_be_split(loop):
            return []
        inner = _inner(loop)
        inside = {*inner, loop.index}
        stores = [x for x in body if isinstance(x, ir.Store)]
        others = [x for x in body if isinstance(x, ir.LoadElement)]
        others += [x for x in stores if not x.adds]
        adds = [
            x
            for x in stores
            if x.adds
            and all(_is_simple(i, loop.index, inner) for i in x.index)
            and all(self.are_apart(x, other, inside) for other in others)
        ]
        return [x for x in adds if not all(y is x or self.are_apart(x, y, inside) for y in adds)]

    def are_apart(self, store: ir.Store, other: Any, inside: Collection[ir.Number]) -> bool:
        """Return whether two statements never meet: an index of theirs differs by a number."""
        if store.array is not other.array:
            return True
        for pair in zip(store.index, other.index, strict=True):
            (x, gap), (y, other_gap) = (ir.term_of(i, self.definitions) for i in pair)
            if x is y and gap != other_gap and x not in inside:
                return True
        return False

    def both(self, loop: ir.For, stores: Sequence[ir.Store], sums: Sequence[ir.Carry]) -> ir.Block:
        """Return the loop in chunks where it has many rounds, else as it is."""
        b = OpBuilder()
        ends = (loop.stop, loop.start) if loop.step.number < 0 else (loop.start, loop.stop)
        rounds = b.op("subtract", ends[1], ends[0], hint="rounds")
        pairs = [(c, ir.like(c.out)) for c in loop.carries]
        short = replace(loop, carries=[replace(c, out=out) for c, out in pairs])
        chunks, ends_of = self.chunks(loop, stores, sums, rounds)
        merges = [ir.Merge(c.out, end, out) for (c, out), end in zip(pairs, ends_of, strict=True)]
        many = b.op("greater_equal", rounds, MIN_ROUNDS)
        return [*b.block, ir.If(many, chunks, [short], merges)]

    def chunks(
        self, loop: ir.For, stores: Sequence[ir.Store], sums: Sequence[ir.Carry], rounds: ir.Number
    ) -> tuple[ir.Block, list[ir.Number]]:
        first, b, jump = ir.Number("i64", "first", 0), OpBuilder(), loop.step.number
        count = b.op("minimum", b.op("subtract", rounds, first), CHUNK, hint="count")
        forward = "add" if jump > 0 else "subtract"
        start = lowest = b.op(forward, loop.start, first)
        stop = b.op(forward, start, count)
        if jump < 0:
            lowest = b.op("add", stop, 1)
            if are_rounds_independent(loop, stores):
                start, stop, jump = lowest, b.op("add", start, 1), 1
        places = {x: k for k, x in enumerate(dict.fromkeys(store.value for store in stores))}
        terms: dict[ir.Statement, tuple[ir.Array, ir.Number]] = {
            x: (self.buffer(places[x.value], x.array.element), x.value) for x in stores
        }
        ops, insides = ir.definitions(loop.body), {c.inside for c in sums}
        carries, outer, additions = [], [], []
        for c in loop.carries:
            around = ir.like(c.inside)
            if c in sums:
                buffer, op = self.buffer(len(terms), c.inside.type), ops[c.result]
                terms[op] = buffer, next(x for x in op.args if x not in insides)
                end, addition = self.ordered_addition(c, around, buffer, count)
                additions.append(addition)
            else:
                end = ir.like(c.inside)
                carries.append(replace(c, init=around, out=end))
            outer.append(ir.Carry(around, c.init, end, ir.like(c.out)))
        inner = OpBuilder()  # one operation gives the place: `are_rounds_independent` knows it
        place = inner.op("subtract", loop.index, b.op("subtract", lowest, PAD), hint="k")
        for statement in loop.body:
            if statement in terms:
                buffer, value = terms[statement]
                inner.store(buffer, (place,), value)
            else:
                inner.block.append(statement)
        chunk = ir.For(loop.index, start, stop, ir.constant(jump), inner.block, carries)
        b.block += [chunk, *additions]
        groups: dict[Any, list[tuple[ir.Store, int]]] = {}
        for store in stores:
            offset = self.offset(loop, store)
            key = store if offset is None else (store.array, store.index[:-1])
            groups.setdefault(key, []).append((store, offset or 0))
        for group in groups.values():
            own = [(store, terms[store][0], offset) for store, offset in group]
            self.addition(b, loop, own, lowest, count)
        step = ir.constant(CHUNK)
        return [ir.For(first, ir.constant(0), rounds, step, b.block, outer)], [c.out for c in outer]

    def buffer(self, k: int, element: str) -> ir.Array:
        buffer = ir.Array(element, (ir.constant(CHUNK + 2 * PAD),), "terms")
        return self.buffers.setdefault((k, element), buffer)

    @staticmethod
    def ordered_addition(
        carry: ir.Carry, init: ir.Number, buffer: ir.Array, count: ir.Number
    ) -> tuple[ir.Number, ir.For]:
        """Return a sum after the terms of a chunk, and the loop that adds them in their order."""
        position, b = ir.Number("i64", "k", 0), OpBuilder()
        inside, out = (ir.like(carry.inside) for _ in range(2))
        term = b.load(buffer, (b.op("add", position, PAD),), inside.hint)
        own = ir.Carry(inside, init, b.op("add", inside, term), out)
        return out, ir.counting(position, count, b.block, [own])

    def offset(self, loop: ir.For, store: ir.Store) -> int | None:
        """Return what is added to the loop's index for a place, if only the last axis has it."""

        def depends(value: ir.Number) -> bool:
            op = self.definitions.get(value)
            return value is loop.index or (op is not None and any(map(depends, op.args)))

        base, gap = ir.term_of(store.index[-1], self.definitions)
        is_near = base is loop.index and abs(gap) <= PAD
        return gap if is_near and not any(map(depends, store.index[:-1])) else None

    def addition(
        self, b: OpBuilder, loop: ir.For, group: Group, lowest: ir.Number, count: ir.Number
    ) -> None:
        """Add the loop that adds the terms of a chunk to elements of an array."""
        offsets = [offset for _, _, offset in group]
        least, most, place = min(offsets), max(offsets), group[0][0].index
        if most > least:
            end = b.op("add", count, PAD)
            for buffer in dict.fromkeys(buffer for _, buffer, _ in group):
                self.clear(b, buffer, ir.constant(PAD + least - most), most - least)
                self.clear(b, buffer, end, most - least)
            place = (*place[:-1], loop.index)
        else:  # the loop's index is that of the rounds
            least, most, group = 0, 0, [(store, buffer, 0) for store, buffer, _ in group]
        ops, inner = ir.definitions(loop.body), OpBuilder()
        inner.block += [ops[x] for x in dict.fromkeys(place) if x in ops]
        position = inner.op("subtract", loop.index, lowest)
        total: ir.Number | None = None
        for _, buffer, offset in group:
            term = inner.load(buffer, (inner.op("add", position, PAD - offset, hint="k"),), "term")
            total = term if total is None else inner.op("add", total, term)
        assert total is not None
        inner.store(group[0][0].array, place, total, adds=True)
        start, stop = b.op("add", lowest, least), b.op("add", b.op("add", lowest, count), most)
        b.block.append(ir.For(loop.index, start, stop, ir.constant(1), inner.block, []))

    @staticmethod
    def clear(b: OpBuilder, buffer: ir.Array, start: ir.Number, count: int) -> None:
        """Set some elements of a buffer to zero, in front of or behind the terms."""
        position, inner = ir.Number("i64", "k", 0), OpBuilder()
        inner.store(buffer, (inner.op("add", start, position, hint="k"),), ir.zero(buffer))
        b.block.append(ir.counting(position, ir.constant(count), inner.block))


def _is_simple(value: ir.Number, index: ir.Number, inner: dict[ir.Number, ir.Statement]) -> bool:
    """Return whether a place is the loop's index, a constant more, or the same in all rounds."""
    op = inner.get(value)
    if op is None:
        return True
    if not isinstance(op, ir.Op) or op.function not in ("add", "subtract"):
        return False
    return all(arg is index or arg not in inner for arg in op.args)


def _moves(value: ir.Number, index: ir.Number, inner: dict[ir.Number, ir.Statement]) -> bool:
    """Return whether a place is another in each round."""
    own = inner[value].operands() if value in inner else (value,)
    return _is_simple(value, index, inner) and own.count(index) == 1
