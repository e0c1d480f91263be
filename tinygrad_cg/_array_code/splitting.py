"""Loops that add to several elements of one array, as loops that processors compute in vectors.

The backward sweep of ``out[i] = f(a[i - 1], a[i], a[i + 1])`` adds to three elements of an adjoint
in each round, and the next round to two of these. Such a loop waits for memory. It is cut into
chunks: a loop computes the terms of a chunk into buffers, and other loops add them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .program import (
    Array,
    ArrayProgram,
    Block,
    Carry,
    FixedNumber,
    For,
    If,
    LoadElement,
    Merge,
    Number,
    Op,
    Statement,
    Store,
    While,
    constant,
    copied,
    results,
    zero,
)
from .scalar_operations import OpBuilder

CHUNK = 256
"""Rounds that are computed before their terms are added."""
PAD = 8
"""Zeros in front of and behind the terms: the largest distance of elements that are one group."""
MIN_ROUNDS = 16
"""Loops of fewer rounds are left as they are."""


def split(program: ArrayProgram) -> ArrayProgram:
    """Return a program that does the same, where loops that add to several elements are split."""
    splitting = _Splitting()
    body = splitting.block(program.body)
    scratch = [*program.scratch, *splitting.buffers.values()]
    return replace(program, scratch=scratch, body=body)


class _Splitting:
    def __init__(self) -> None:
        self.buffers: dict[tuple[int, str], Array] = {}

    def block(self, block: Block) -> Block:
        result: Block = []
        for statement in block:
            result += self.statement(statement)
        return result

    def statement(self, statement: Statement) -> Block:
        match statement:
            case If(_, then, otherwise):
                sides = self.block(then), self.block(otherwise)
                return [replace(statement, then=sides[0], otherwise=sides[1])]
            case While(_, _, body):
                return [replace(statement, body=self.block(body))]
            case For():
                stores = self.candidates(statement)
                if stores:
                    return self.both(statement, stores)
                return [replace(statement, body=self.block(statement.body))]
        return [statement]

    def candidates(self, loop: For) -> list[Store]:
        """Return the additions that can take place after the rounds of a chunk."""
        body = loop.body
        if loop.leaves is not None or abs(int(loop.step.number)) != 1:
            return []
        if not all(isinstance(x, (Op, LoadElement, Store)) for x in body):
            return []
        ends = loop.start, loop.stop
        constants = [int(x.number) for x in ends if isinstance(x, FixedNumber)]
        if len(constants) == 2 and abs(constants[1] - constants[0]) < MIN_ROUNDS:
            return []
        loaded = {x.array for x in body if isinstance(x, LoadElement)}
        inner = {value: x for x in body for value in results(x)}
        adds = [x for x in body if isinstance(x, Store) and x.adds and x.array not in loaded]
        set_by = {x.array for x in body if isinstance(x, Store) and not x.adds}
        adds = [
            x
            for x in adds
            if x.array not in set_by and all(_is_simple(i, loop.index, inner) for i in x.index)
        ]
        counts = Counter(x.array for x in adds)
        return [x for x in adds if counts[x.array] > 1]

    def both(self, loop: For, stores: Sequence[Store]) -> Block:
        """Return the loop in chunks where it has many rounds, else as it is."""
        block: Block = []
        b = OpBuilder(block)
        down = loop.step.number < 0
        ends = (loop.stop, loop.start) if down else (loop.start, loop.stop)
        rounds = b.op("subtract", ends[1], ends[0], hint="rounds")
        outs = [Number(c.out.type, c.out.hint) for c in loop.carries]
        pairs = [*zip(loop.carries, outs, strict=True)]
        plain = [Carry(c.inside, c.init, c.result, out) for c, out in pairs]
        short = For(loop.index, loop.start, loop.stop, loop.step, loop.body, plain)
        chunks, ends_of = self.chunks(loop, stores, rounds)
        merges = [Merge(c.out, end, out) for (c, out), end in zip(pairs, ends_of, strict=True)]
        many = b.op("greater_equal", rounds, MIN_ROUNDS)
        block.append(If(many, chunks, [short], merges))
        return block

    def chunks(
        self, loop: For, stores: Sequence[Store], rounds: Number
    ) -> tuple[Block, list[Number]]:
        block: Block = []
        first, chunk = Number("i64", "first", 0), []
        b = OpBuilder(chunk)
        count = b.op("minimum", b.op("subtract", rounds, first), CHUNK, hint="count")
        if loop.step.number < 0:
            start = b.op("subtract", loop.start, first)
            lowest = b.op("subtract", start, b.op("subtract", count, 1))
        else:
            start = lowest = b.op("add", loop.start, first)
        ascends = loop.step.number > 0 or not loop.carries
        chosen = {id(store): k for k, store in enumerate(stores)}
        carries, outer = [], []
        replaced: dict[Number, Number] = {}
        for c in loop.carries:
            around = Number(c.inside.type, c.inside.hint)
            inside = replaced[c.inside] = Number(c.inside.type, c.inside.hint)
            carries.append(Carry(inside, around, c.result, Number(c.inside.type, c.inside.hint)))
            outer.append(Carry(around, c.init, carries[-1].out, Number(c.out.type, c.out.hint)))
        position = Number("i64", "k", 0)
        body: Block = []
        inner = OpBuilder(body)
        begin = lowest if ascends else start
        index = inner.op("add" if ascends else "subtract", begin, position, hint="i")
        index.low = loop.index.low
        replaced[loop.index] = index
        place = position
        if not ascends:
            place = inner.op("subtract", inner.op("subtract", count, 1), position)
        place = inner.op("add", place, PAD, hint="k")
        buffers = [self.buffer(k, store.array.element) for k, store in enumerate(stores)]
        for statement in loop.body:
            if isinstance(statement, Store) and id(statement) in chosen:
                value = replaced.get(statement.value, statement.value)
                body.append(Store(buffers[chosen[id(statement)]], (place,), value))
            else:
                body += copied([statement], replaced)
        for carry in carries:
            carry.result = replaced.get(carry.result, carry.result)
        chunk.append(For(position, constant(0), count, constant(1), body, carries))
        groups: dict[Any, list[tuple[Store, Array, int]]] = {}
        for k, (store, buffer) in enumerate(zip(stores, buffers, strict=True)):
            offset = self.offset(loop, store)
            rest = tuple(map(_key, store.index[:-1]))
            key = (store.array, rest) if offset is not None else k
            groups.setdefault(key, []).append((store, buffer, offset or 0))
        for group in groups.values():
            self.addition(b, loop, group, lowest, count)
        block.append(For(first, constant(0), rounds, constant(CHUNK), chunk, outer))
        return block, [c.out for c in outer]

    def buffer(self, k: int, element: str) -> Array:
        key = k, element
        if key not in self.buffers:
            self.buffers[key] = Array(element, (constant(CHUNK + 2 * PAD),), "terms")
        return self.buffers[key]

    @staticmethod
    def offset(loop: For, store: Store) -> int | None:
        """Return what is added to the loop's index for a place, if only the last axis has it."""
        definitions = {x.out: x for x in loop.body if isinstance(x, Op)}

        def depends(value: Number) -> bool:
            op = definitions.get(value)
            return value is loop.index or (op is not None and any(map(depends, op.args)))

        if any(map(depends, store.index[:-1])):
            return None
        last = store.index[-1]
        if last is loop.index:
            return 0
        op = definitions.get(last)
        if op is None:
            return None
        (x, y), sign = op.args, -1 if op.function == "subtract" else 1
        if sign == 1 and isinstance(x, FixedNumber):
            x, y = y, x
        if x is not loop.index or not isinstance(y, FixedNumber) or abs(int(y.number)) > PAD:
            return None
        return sign * int(y.number)

    def addition(
        self,
        b: OpBuilder,
        loop: For,
        group: Sequence[tuple[Store, Array, int]],
        lowest: Number,
        count: Number,
    ) -> None:
        """Add the loop that adds the terms of a chunk to elements of an array."""
        offsets = [offset for _, _, offset in group]
        least, most = min(offsets), max(offsets)
        if most > least:
            end = b.op("add", count, PAD)
            for _, buffer, _ in group:
                self.clear(b, buffer, constant(0))
                self.clear(b, buffer, end)
        position = Number("i64", "k", 0)
        body: Block = []
        inner = OpBuilder(body)
        store = group[0][0]
        index = inner.op("add", lowest, position, hint="i")
        index.low = loop.index.low
        replaced = {loop.index: index}
        definitions = {x.out: x for x in loop.body if isinstance(x, Op)}
        for value in store.index:
            op = definitions.get(value)
            if op is not None and value not in replaced:
                body += copied([op], replaced)
        place = [replaced.get(value, value) for value in store.index]
        if most > least:
            place[-1] = inner.op("add", inner.op("add", lowest, position), least, hint="i")
        total: Number | None = None
        for _, buffer, offset in group:
            term = Number(buffer.element, "term")
            own = inner.op("add", position, PAD + least - offset, hint="k")
            body.append(LoadElement(term, buffer, (own,)))
            total = term if total is None else inner.op("add", total, term)
        assert total is not None
        body.append(Store(store.array, tuple(place), total, adds=True))
        stop = b.op("add", count, most - least)
        b.block.append(For(position, constant(0), stop, constant(1), body, []))

    @staticmethod
    def clear(b: OpBuilder, buffer: Array, start: Number) -> None:
        """Set some elements of a buffer to zero, in front of or behind the terms."""
        position = Number("i64", "k", 0)
        body: Block = []
        place = OpBuilder(body).op("add", start, position, hint="k")
        body.append(Store(buffer, (place,), zero(buffer)))
        b.block.append(For(position, constant(0), constant(PAD), constant(1), body, []))


def _key(value: Number) -> Any:
    return value.number if isinstance(value, FixedNumber) else value


def _is_simple(value: Number, index: Number, inner: dict[Number, Statement]) -> bool:
    """Return whether a place is the loop's index, a constant more, or the same in all rounds."""
    op = inner.get(value)
    if op is None:
        return True
    if not isinstance(op, Op) or op.function not in ("add", "subtract"):
        return False
    return all(arg is index or arg not in inner for arg in op.args)
