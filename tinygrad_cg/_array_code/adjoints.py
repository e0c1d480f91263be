"""Reverse mode: the program of a program's gradients.

A forward sweep runs the program, and saves what the backward sweep needs and cannot compute again,
or one value instead of several from which it follows. That is pushed at the end of each round of a
loop and of each branch in a loop. The backward sweep runs rounds and statements in reverse order.
In each round it takes back what was saved, computes again what follows from it, loads elements that
nothing has overwritten, and propagates the adjoints.

A loop with checkpoints saves its state at the beginning of rounds 0, 1, 3, 6, 10, ... instead: what
it carries, and arrays that it changes. The backward sweep takes these segments from the last one
on, runs each again from its state, and what that pushes is used at once. Segments, and rounds of
the longest one, are at most sqrt(2 n) + 1 of n rounds, which need not be known before (Griewank
and Walther, Evaluating Derivatives, 2008, chapter 12).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from .._function.graph.values import reach
from . import program as ir
from .program import Thing
from .reloading import Access, Reloading
from .scalar_operations import TEXTS, OpBuilder, scaled

Values = dict[ir.Number, ir.Number]
ACCESSES = ir.LoadElement, ir.Store, ir.Fill
QUICK = {name for name in TEXTS if name not in ("divide", "mod")}
"""Functions that take less time than an element of an array that is loaded."""


def adjoint(
    program: ir.ArrayProgram, wanted: Sequence[int], values: bool = False, checkpoint: int = 0
) -> ir.ArrayProgram:
    """Return the program that has upstream gradients of the float outputs as further inputs.

    It gives the outputs, if `values` are wanted (they are numbers then), and the gradients of the
    inputs at the wanted positions. Loops that are nested at most `checkpoint` deep save their
    state at some rounds.
    """
    sources = [program.inputs[k] for k in wanted]
    first = _Adjoints(program, sources, values, checkpoint)
    result, cuts = first.program(), first.cuts()
    return _Adjoints(program, sources, values, checkpoint, cuts).program() if cuts else result


@dataclass
class _BackwardScope:
    """The backward sweep of a block: its values, saved, computed again, or still there.

    `once` is true of blocks that run once, whose values are there when the backward sweep begins.
    Values that are `asked` for are needed for themselves, not for other ones.
    """

    block: ir.Block
    once: bool
    values: Values = field(default_factory=dict)
    saved: list[ir.Number] = field(default_factory=list)
    asked: dict[ir.Number, None] = field(default_factory=dict)
    prologue: ir.Block = field(default_factory=list)
    backward: ir.Block = field(default_factory=list)


class _Checkpoints(NamedTuple):
    """What a loop with checkpoints saves: its numbers and arrays at some rounds."""

    rounds: ir.Number
    segments: ir.Number
    numbers: list[ir.Number]
    arrays: list[ir.Array]
    ended: list[ir.Array]  # arrays that the loop reads, and that change after it: saved at its end


@dataclass
class _Adjoints:
    primal: ir.ArrayProgram
    sources: Sequence[Thing]
    values: bool
    checkpoint: int
    cut: Collection[ir.Number] = ()

    def __post_init__(self) -> None:
        program = self.primal
        self.depth = 0  # loops around
        self.states: dict[ir.Statement, _Checkpoints] = {}
        targets = [x for x in program.outputs if x.is_float and not isinstance(x, ir.FixedNumber)]
        self.active = ir.varied(program, self.sources) & ir.varied(program, targets, backward=True)
        self.bars: Values = {}
        self.arrays: dict[ir.Array, ir.Array] = {}
        self.scope = _BackwardScope(program.body, True)
        self.scopes = {id(program.body): self.scope}  # by the ids of blocks
        self.b = OpBuilder()
        self.copies: dict[tuple[ir.Array, ir.For], ir.Array] = {}  # of arrays that change later
        self.reloading = places = Reloading(program)
        self.home, self.definitions, self.counts = places.home, places.sources, places.counts

    def program(self) -> ir.ArrayProgram:
        p = self.primal
        result = replace(p, inputs=[*p.inputs], outputs=[], scratch=[*p.scratch])
        backward = self.b.block
        for array in (*ir.arrays_of(p.body, *ACCESSES), *p.inputs):
            if array in self.active and isinstance(array, ir.Array):
                self.arrays[array] = replace(array, hint=f"{array.hint}_bar")
        fresh = dict(self.arrays)
        for x in [output for output in p.outputs if output.is_float]:
            seed = ir.Number(x.type, "dy")
            if isinstance(x, ir.Number):
                self.add(x, seed)
            else:
                seed = replace(x, hint=f"{x.hint}_dy")
                if fresh.pop(x, None) is not None:
                    self.arrays[x] = seed
            result.inputs.append(seed)
        result.scratch += fresh.values()
        zeros = [ir.Fill(array, ir.zero(array)) for array in fresh.values()]
        self.block(p.body)
        forward = self.forward(p.body)
        result.scratch += self.copies.values()
        result.body = [*forward, *zeros, *backward]
        bars: dict[Any, Any] = {**self.bars, **self.arrays}
        gradients = [bars.get(x) or result.zeros(x, "bar") for x in self.sources]
        result.outputs = [*(p.outputs if self.values else ()), *gradients]
        return result

    def source_of(self, value: ir.Number) -> ir.Statement | None:
        """Return what gives a value in the backward sweep: its definition, or a quicker store."""
        if value in self.cut:
            return None
        definition, store = self.definitions.get(value), self.reloading.stored.get(value)
        is_op = isinstance(definition, ir.Op)
        is_quick = is_op and (not self.values or definition.function in QUICK)
        if store is None or is_quick or isinstance(definition, ir.LoadElement):
            return definition
        return store if self.reloading.is_safe(store) else definition

    def cuts(self) -> set[ir.Number]:
        """Return values to save instead of several others from which they would be computed."""
        result: set[ir.Number] = set()
        for scope in self.scopes.values():
            leaves, chosen = {*scope.saved}, set()
            saved, seen = self.reached(scope, leaves)
            for value in [x for x in self.definitions if x in seen] if len(saved) > 1 else ():
                fewer, _ = self.reached(scope, {*leaves, *chosen, value})
                if len(fewer) < len(saved):
                    saved, chosen = fewer, chosen | {value}
            result |= saved - leaves
        return result

    def reached(self, scope: _BackwardScope, ends: Collection[ir.Number]) -> list[set[ir.Number]]:
        """Return the `ends` from which values are computed, and what is computed on the way."""
        home = scope.block

        def following(value: ir.Number) -> Sequence[ir.Number]:
            is_inner = value not in ends and self.home.get(value) is home
            source = self.source_of(value) if is_inner else None
            return () if source is None else source.operands()

        seen = {x for x in reach(scope.asked, following) if self.home.get(x) is home}
        return [seen.intersection(ends), seen.difference(ends)]

    def memory_of(self, load: Access) -> ir.Array | None:
        """Return the array that has an element in the backward sweep: itself, or a copy."""
        if self.reloading.is_safe(load):
            return load.array
        loop = self.reloading.unchanged_in(load)
        if loop is None:
            return None
        copy = replace(load.array, hint=f"{load.array.hint}_saved")
        return self.copies.setdefault((load.array, loop), copy)

    def copied_in(self, loop: ir.For) -> list[ir.Array]:
        return [array for array, around in self.copies if around is loop]

    def forward(self, block: ir.Block) -> ir.Block:
        """Return the block of the forward sweep, which saves what the backward sweep asks for."""
        result: list[Any] = []
        for statement in block:
            state, count = self.states.get(statement), self.counts.get(statement)
            if state is not None:
                result.append(self.forward_segments(statement, state))
            else:
                result.append(statement.with_blocks(self.forward))
            if isinstance(statement, ir.For):
                if state is None and count is not None:
                    counted = _counting(OpBuilder(result[-1].body), count)
                    result[-1].carries = [*statement.carries, counted]
                ended = [] if state is None else state.ended
                result += _saving([*ended, *self.copied_in(statement)])
        scope = self.scopes.get(id(block))
        if scope is not None and scope.saved:
            result.append(ir.Push(tuple(scope.saved)))
        return result

    def forward_segments(self, loop: Any, state: _Checkpoints) -> ir.For:
        """Return a loop that saves its state where a segment begins."""
        b = OpBuilder()
        rounds = _counting(b, state.rounds)
        number, following = ir.Number("i64", "segment", 0), ir.Number("i64", "next", 0)
        begins = b.op("equal", rounds.inside, following)
        ended = b.op("add", number, b.cast(begins, "i64"))
        later = b.op("add", following, b.op("select", begins, ended, 0))
        numbers: ir.Block = [ir.Push(tuple(state.numbers))] if state.numbers else []
        saves = ir.If(begins, [*numbers, *_saving(state.arrays)], [])
        carries = [
            *loop.carries,
            rounds,
            ir.Carry(number, ir.constant(0), ended, state.segments),
            ir.Carry(following, ir.constant(0), later, ir.Number("i64", "next", 0)),
        ]
        return replace(loop, body=[*b.block, saves, *loop.body], carries=carries)

    def add(self, value: ir.Number, adjoint: ir.Number) -> None:
        if value not in self.active:
            return
        adjoint = self.b.cast(adjoint, value.type)
        current = self.bars.get(value)
        if current is not None:
            adjoint = self.b.op("accumulate", current, adjoint)
        self.bars[value] = adjoint

    def fetch(self, value: ir.Number, user: _BackwardScope | None = None) -> ir.Number:
        """Return what has a value in the backward sweep; `user` computes another one of its own."""
        if value not in self.home:
            return value
        scope = self.scopes[id(self.home[value])]
        if scope.once:
            return value
        if scope is not user:
            scope.asked[value] = None
        if value not in scope.values:
            scope.values[value] = self.again(value, scope)
        return scope.values[value]

    def again(self, value: ir.Number, scope: _BackwardScope) -> ir.Number:
        """Compute a value once more, if all that it depends on is there; else save it."""
        source = self.source_of(value)
        out = ir.like(value)
        match source:
            case ir.Op(_, function, args):
                args = tuple(self.fetch(arg, scope) for arg in args)
                scope.prologue.append(ir.Op(out, function, args))
                return out
            case ir.LoadElement(_, _, index) | ir.Store(_, index):
                array = self.memory_of(source)
                if array is not None:
                    index = tuple(self.fetch(i, scope) for i in index)
                    scope.prologue.append(ir.LoadElement(out, array, index))
                    return out
        scope.saved.append(value)
        return out

    def block(self, block: ir.Block) -> None:
        for statement in reversed(block):
            self.statement(statement)

    def statement(self, statement: ir.Statement) -> None:
        b = self.b
        match statement:
            case ir.Op(out, _, args):
                bar = self.bars.pop(out, None)
                for position, arg in enumerate(args):
                    if bar is not None and arg in self.active:
                        part = scaled(b, statement, position, bar, self.fetch)
                        if part is not None:
                            self.add(arg, part)
            case ir.LoadElement(out, array, index):
                bar = self.bars.pop(out, None)
                if bar is not None and array in self.arrays:
                    place = tuple(map(self.fetch, index))
                    b.store(self.arrays[array], place, bar, adds=True)
            case ir.Store(array, index, value, adds):
                if array in self.arrays and not (adds and value not in self.active):
                    bar, place = self.arrays[array], tuple(map(self.fetch, index))
                    if value in self.active:
                        self.add(value, b.load(bar, place, f"{value.hint}_bar"))
                    if not adds:
                        b.store(bar, place, ir.zero(bar))
            case ir.Fill(array, _):
                if array in self.arrays:
                    b.block.append(ir.Fill(self.arrays[array], ir.zero(array)))
            case ir.If():
                self.branch(statement)
            case ir.For():
                self.loop(statement)

    @contextmanager
    def inside(self, block: ir.Block, once: bool, bars: Values) -> Iterator[_BackwardScope]:
        """Write the backward sweep of a block, with adjoints of its own."""
        around = self.b, self.scope, self.bars
        scope = self.scopes[id(block)] = _BackwardScope(block, once)
        self.b, self.scope, self.bars = OpBuilder(), scope, bars
        yield scope
        scope.backward = [*scope.prologue, *self.b.block]
        if scope.saved:
            scope.backward.insert(0, ir.Pop(tuple(scope.values[x] for x in scope.saved)))
        self.b, self.scope, self.bars = around

    def branch(self, statement: ir.If) -> None:
        sides = statement.then, statement.otherwise
        upstream = {m: self.bars.pop(m.out) for m in statement.merges if m.out in self.bars}
        ends = [value for m in upstream for value in (m.then, m.otherwise)]
        outer = [value for value in _free(sides, ends) if value in self.active]
        if not upstream and not any(map(self._has_effect, sides)):
            return
        test = self.fetch(statement.test)
        blocks, after = [], []
        for k, block in enumerate(sides):
            with self.inside(block, self.scope.once, dict(self.bars)) as scope:
                for merge, bar in upstream.items():
                    self.add(merge.otherwise if k else merge.then, bar)
                self.block(block)
                after.append({value: self.bars.get(value) or ir.zero(value) for value in outer})
            blocks.append(scope.backward)
        result = ir.If(test, *blocks)
        for value in outer:
            pair = after[0][value], after[1][value]
            if pair[0] is pair[1]:
                self.bars[value] = pair[0]
            elif any(x.number is None for x in pair):
                out = self.bars[value] = ir.Number(value.type, f"{value.hint}_bar")
                result.merges.append(ir.Merge(out, *pair))
        self.b.block.append(result)

    def _has_effect(self, block: ir.Block) -> bool:
        """Return whether a block uses or changes the memory of adjoints."""
        return not self.arrays.keys().isdisjoint(ir.arrays_of(block, *ACCESSES))

    def loop(self, statement: ir.For) -> None:
        carried = [c for c in statement.carries if c.inside in self.active or c.out in self.active]
        seeds = [self.bars.pop(c.out, None) for c in carried]
        body = statement.body
        if not any(seeds) and not self._has_effect(body):
            return
        free = _free([body], [c.result for c in carried])
        outer = self.active.intersection(free).difference(c.inside for c in carried)
        around = self.b

        def carry(value: ir.Number, init: ir.Number | None) -> ir.Carry:
            bar = ir.like(value, f"{value.hint}_bar")
            return ir.Carry(bar, around.cast(init or ir.zero(bar), bar.type), bar, ir.like(bar))

        carries = [carry(c.inside, seed) for c, seed in zip(carried, seeds, strict=True)]
        totals = {x: carry(x, self.bars.get(x)) for x in free if x in outer}
        bars = {value: total.inside for value, total in totals.items()}
        with self.inside(body, False, bars) as scope:
            index = scope.values[statement.index] = ir.like(statement.index)
            for c, own in zip(carried, carries, strict=True):
                self.add(c.result, own.inside)
            self.depth += 1
            self.block(body)
            self.depth -= 1
            for c, own in zip(carried, carries, strict=True):
                own.result = self.bars.pop(c.inside, None) or ir.zero(own.inside)
            for value, total in totals.items():
                total.result = self.bars[value]
        kept = [total for total in totals.values() if total.result is not total.inside]
        copies = [copy for (_, around), copy in self.copies.items() if around is statement]
        self.b.block += _saving(copies, True)
        if self.depth < self.checkpoint and self.saves(body):
            self.segments(statement, index, scope.backward, [*carries, *kept])
        else:
            bounds = self.rounds(statement)
            self.b.block.append(ir.For(index, *bounds, scope.backward, [*carries, *kept]))
        for value, total in totals.items():
            if total in kept:
                self.bars[value] = total.out
        for c, own in zip(carried, carries, strict=True):
            self.add(c.init, own.out)

    def rounds(self, statement: ir.For) -> ir.Bounds:
        """Return a loop's rounds in reverse order."""
        b, count, jump = self.b, self.counts.get(statement), statement.step.number
        start, stop = self.fetch(statement.start), self.fetch(statement.stop)
        end = b.op("subtract", start, jump)
        if count is not None:
            whole = self.fetch(count)
        elif abs(jump) == 1:
            return b.op("subtract", stop, jump), end, ir.constant(-jump)
        else:
            whole = b.op("maximum", b.rounds(start, stop, jump), 0)
        return b.op("add", end, b.op("multiply", whole, jump)), end, ir.constant(-jump)

    def saves(self, block: ir.Block) -> bool:
        """Return whether rounds of a loop would push anything."""
        inner = (part for x in block for part in x.inner_blocks())
        loops = (x for x in block if isinstance(x, ir.For))
        scope = self.scopes.get(id(block))
        own = (scope is not None and scope.saved) or any(map(self.copied_in, loops))
        return bool(own) or any(map(self.saves, inner))

    def state(self, loop: ir.For) -> _Checkpoints:
        """Return what a loop saves at checkpoints.

        A round that runs again finds arrays as they were later. That is right for an element that
        nothing overwrites after it was read, and for arrays that a round begins to fill.
        """
        accesses = [x for x in ir.walk(loop.body) if isinstance(x, ACCESSES)]
        firsts = {x.array: x for x in reversed(accesses)}
        filled = {x.array for x in loop.body if isinstance(x, ir.Fill) and firsts[x.array] is x}
        read = ir.arrays_of(loop.body, ir.LoadElement)
        written = ir.arrays_of(loop.body, ir.Store, ir.Fill)
        changed = [
            x.array
            for x in accesses
            if (isinstance(x, ir.LoadElement) and not self.reloading.is_safe(x))
            or (isinstance(x, ir.Store) and x.adds)
        ]
        again = [x for x in dict.fromkeys(changed) if x in read and x not in filled]
        counts = ir.Number("i64", "rounds", 0), ir.Number("i64", "segments", 0)
        self.home |= dict.fromkeys(counts, self.scope.block)
        arrays = [x for x in again if x in written], [x for x in again if x not in written]
        return _Checkpoints(*counts, [c.inside for c in loop.carries], *arrays)

    def segments(
        self, loop: ir.For, index: ir.Number, backward: ir.Block, carries: Sequence[ir.Carry]
    ) -> None:
        """Add the backward sweep of a loop with checkpoints: `backward` is that of a round."""
        state = self.states[loop] = self.state(loop)
        self.b.block += _saving(state.ended, True)
        rounds, segments = self.fetch(state.rounds), self.fetch(state.segments)
        number = ir.Number("i64", "segment", 0)
        b = OpBuilder(_saving(state.arrays, True))
        begin = b.op("floor_divide", b.op("multiply", number, b.op("add", number, 1)), 2)
        end = b.op("minimum", b.op("add", b.op("add", begin, number), 1), rounds)
        start, jump = self.fetch(loop.start), loop.step.number
        begin = b.op("add", start, b.op("multiply", begin, jump))  # from rounds to indices
        end = b.op("add", start, b.op("multiply", end, jump))
        again = self.forward(loop.body)
        inits = [*map(ir.like, state.numbers)]
        if inits:
            b.block.append(ir.Pop(tuple(inits)))
        pairs = zip(loop.carries, inits, strict=True)
        around = [ir.Carry(c.inside, init, c.result, ir.Number(c.inside.type)) for c, init in pairs]
        rerun = ir.For(loop.index, begin, end, ir.constant(jump), again, around)
        fetched = {x: self.fetch(x) for x in _free([[rerun]]) if x in self.home}
        b.block += ir.copied([rerun], fetched)
        first, last = b.op("subtract", begin, jump), b.op("subtract", end, jump)
        sums = [ir.Number(c.out.type, c.out.hint) for c in carries]
        parts = [*zip(carries, sums, strict=True)]
        inner = [ir.Carry(c.inside, x, c.result, ir.Number(x.type, x.hint)) for c, x in parts]
        b.block.append(ir.For(index, last, first, ir.constant(-jump), backward, inner))
        top = self.b.op("subtract", segments, 1)
        outer = [ir.Carry(x, c.init, i.out, c.out) for (c, x), i in zip(parts, inner, strict=True)]
        self.b.block.append(ir.For(number, top, ir.constant(-1), ir.constant(-1), b.block, outer))


def _counting(b: OpBuilder, out: ir.Number) -> ir.Carry:
    """Return what counts the rounds of a loop."""
    inside = ir.Number("i64", "round", 0)
    return ir.Carry(inside, ir.constant(0), b.op("add", inside, 1), out)


def _saving(arrays: Sequence[ir.Array], back: bool = False) -> ir.Block:
    """Return loops that push all elements of arrays, or that take them `back`."""
    result: ir.Block = []
    for array in arrays[::-1] if back else arrays:
        index = tuple(ir.Number("i64", "k", 0) for _ in array.shape)
        out = ir.Number(array.type, array.hint)
        block: ir.Block = [ir.LoadElement(out, array, index), ir.Push((out,))]
        if back:
            block = [ir.Pop((out,)), ir.Store(array, index, out)]
        for i, size in zip(index[::-1], array.shape[::-1], strict=True):
            around: ir.Block = []
            loop = ir.counting(i, size, block)
            if back:
                last, end = OpBuilder(around).op("subtract", size, 1), ir.constant(-1)
                loop = replace(loop, start=last, stop=end, step=end)
            block = [*around, loop]
        result += block
    return result


def _free(blocks: Sequence[ir.Block], also: Sequence[ir.Number] = ()) -> list[ir.Number]:
    """Return the numbers that blocks use, and that are defined around them."""
    inner: set[ir.Number] = set().union(*map(ir.defined, blocks))
    operands = [x for block in blocks for part in ir.walk(block) for x in part.operands()]
    return [value for value in dict.fromkeys([*also, *operands]) if value not in inner]
