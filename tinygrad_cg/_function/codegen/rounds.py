"""Loops as functions of arrays: one function in machine code, where the body allows it.

Otherwise the body's program is called for each round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.runtime import service, signatures

from ..fusion.fuse import Fusion, Kernel
from ..fusion.lower import Lowering
from ..fusion.nodes import ArrayNode, FusionNode, HostNode, LiteralNode, base
from ..graph.loop_drafts import Body
from ..graph.values import FuncGraph
from .array_operations import Operations, UnfitError
from .blocks import Block
from .executable import cut_stages
from .loop_segment import LoopSegment, Operation, Stage
from .scalarized import Scalarized, scalarize
from .segment import is_large
from .target import contiguous

Run = Callable[[Sequence[np.ndarray]], list[np.ndarray]]
AT_ONCE = 2**16
"""Rounds of a call of machine code: Python can be interrupted between two of them."""
SMALL = 2**13
"""Elements of a carry, the memory of two of which may stay for one."""
WORK = 2**26
"""Products of numbers in such a call, where matrices are multiplied."""


class Part(NamedTuple):
    """An array of one round, as a row of an array of the loop.

    In round i that is row ``start + ((i + shift) & mask) * step``.
    """

    array: tuple[str, int]
    start: int = 0
    shift: int = 0
    mask: int = 0
    step: int = 0

    def words(self, size: int) -> tuple[int, ...]:
        """Return the numbers that a `Layout` gives."""
        return (self.start * size, self.shift, self.mask, self.step * size, size)


class Rounds(NamedTuple):
    """A loop to be compiled: its body, and the graph of what the body computes.

    The outputs of the body are by `steps` (see `tracing.outputs.Outputs`).
    """

    graph: FuncGraph
    steps: Sequence[tuple[int, Any]]
    body: Body

    def count(self, arrays: Sequence[np.ndarray]) -> int:
        """Return how many rounds a call with these arrays has."""
        assert self.body.length is not None
        return int(arrays[0]) if self.body.limited else self.body.length


def call_rounds(loop: Rounds, body: Callable[[], Run], library: Any = np) -> Run:
    """Return the function of constants, carries and stacks: last carries, and stacks of rows.

    It calls ``body()``, the program of the body, for each round. `library` makes arrays.
    """
    copy = library.array
    first, count = loop.body.constants, loop.body.carries

    def until(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        fixed, values, n = list(arrays[:first]), list(map(copy, arrays[first:])), 0
        call = body()
        while values[-1]:
            values = call([*fixed, *values])[:count]
            n += 1
        return [*map(copy, values), copy(n)]

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        fixed = list(arrays[:first])
        values = list(map(copy, arrays[first : first + count]))
        stacks = list(map(library.ascontiguousarray, arrays[first + count :]))
        new = library.zeros if loop.body.limited else library.empty
        made = [new((loop.body.length or 0, *one.shape), one.dtype) for one in loop.body.rows]
        rounds = range(loop.count(arrays))[:: -1 if loop.body.reverse else 1]
        call: Any = body() if rounds else None
        for i in rounds:
            results = call([*fixed, *values, *[one[i, ...] for one in stacks]])
            values = results[:count]
            for stack, row in zip(made, results[count:], strict=False):
                stack[i] = row
        return [*map(copy, values), *made]  # a value may be a row of a stack

    return until if loop.body.length is None else run


def compile_rounds(loop: Rounds, otherwise: Run) -> CompiledLoop | None:
    """Return the same function as one in machine code; None where operations on arrays forbid it.

    Where there are such operations, and arrays are small, it is made of numbers. `otherwise` runs
    the loop where a matrix is singular, or an index outside of an array, and raises the error.
    """
    graph, body = loop.graph, loop.body
    if not graph.outputs or body.length == 0:
        return None
    lowered = Lowering(graph)
    fusion = Fusion(lowered)
    hosts = [node for node in fusion.nodes if isinstance(node, HostNode)]
    is_empty = not all(prod(value.shape) for value in (*graph.inputs, *graph.outputs))
    numbers = scalarize(graph, loop.steps, body) if hosts or is_empty else None
    if numbers is not None:
        layout = _Layout(loop, [], numbers)
        segment = LoopSegment([Stage((), (), numbers.outputs, numbers.stops)])
        return CompiledLoop(layout, segment, otherwise)
    blocks = {kernel: Block(fusion, kernel) for kernel in fusion.kernels.values()}
    if is_empty or is_large(list(blocks.values())):
        return None
    try:
        operations = Operations(lowered, fusion)
    except UnfitError:
        return None
    segment = _segment(fusion, blocks, operations)
    return CompiledLoop(_Layout(loop, fusion.outputs), segment, otherwise, operations)


def _segment(fusion: Fusion, blocks: dict[Kernel, Block], operations: Operations) -> LoopSegment:
    """Return the body of a loop, not yet written down."""
    by_cut: dict[int, list[Operation]] = {}
    for node in fusion.nodes:
        if node in operations.by_node:
            by_cut.setdefault(fusion.available[node], []).append(operations.by_node[node])
    cuts = sorted(by_cut)
    stages = []
    for k, (kernels, finals) in enumerate(cut_stages(fusion, cuts)):
        roots = [root for kernel in kernels for root in kernel.roots]
        totals = [root for root in roots if root.result == "total" and root in fusion.stored]
        own = [blocks[kernel] for kernel in kernels]
        stages.append(Stage(by_cut[cuts[k - 1]] if k else (), own, [*finals, *totals]))
    return LoopSegment(stages)


class _Layout:
    """The arrays of a loop in machine code.

    Carries are in two rows, which rounds read and write in turn; where an output is the carry that
    the round began with, in as many rows as there are rounds, and one more. Of a loop on numbers
    all others are in one row, since a round has read them before it writes any.
    """

    def __init__(
        self,
        loop: Rounds,
        outputs: Sequence[FusionNode],
        numbers: Scalarized | None = None,
    ):
        self.loop, self._outputs = loop, outputs
        n = loop.body.length or 0
        self.carried: list[tuple[FusionNode, FusionNode]] = []
        self.flag: Sequence[int] | None = None
        self.own_starts: list[tuple[int, int]] = []  # with the elements of a row
        self._along = (n - 1, 0, -1, -1) if loop.body.reverse else (0, 0, -1, 1)
        self._first = loop.body.constants
        self.kept: dict[int, int] = {}  # carries of which a row is an output, and which
        self.parts: dict[FusionNode, Part] = {}  # of what kernels write
        self.constants: list[np.ndarray] = []
        self._copied: list[tuple[Part, Part, int, np.dtype]] = []
        self.copies: list[tuple[Sequence[int], Sequence[int]]] = []
        self._given: list[Part] = []  # of the segment's arrays
        self.filled: list[tuple[int, int, Any]] = []  # rows that are the same in each round
        count = loop.body.carries
        if numbers is None:
            self._place(loop.steps[:count], loop.steps[count:])
        else:
            self.carried += zip(numbers.carried, numbers.outputs, strict=False)
            for k, node in enumerate(numbers.outputs):
                self.parts[node] = self._carry(k, 1) if k < count else self._row(k - count)

    def _place(self, ends: Sequence[tuple[int, Any]], rows: Sequence[tuple[int, Any]]) -> None:
        """Find where the outputs are that kernels write, what is copied, and what is neither."""
        loop = self.loop
        for r, (kind, item) in enumerate(rows):
            if kind == 0 and self._is_carry(item):
                self.kept.setdefault(item - self._first, r)
        goals = [(step, self._carry(k, 1)) for k, step in enumerate(ends)]
        for r, (kind, item) in enumerate(rows):
            if kind == 2:
                goals.append(((kind, item), self._row(r)))
            elif self.kept.get(item - self._first if kind == 0 else -1) != r:
                self.filled.append((r, kind, item))
        for (kind, item), goal in goals:
            source = self._source(kind, item)
            if isinstance(source, FusionNode):
                self.parts[source] = goal
                continue
            which, k = goal.array
            avals = loop.graph.inputs[self._first :] if which == "carry" else loop.body.rows
            size, dtype = prod(avals[k].shape), avals[k].dtype
            self._copied.append((source, goal, size, dtype))
            self.copies.append((source.words(size), words := goal.words(size)))
            if goal == self._carry(loop.body.carries - 1, 1) and loop.body.length is None:
                self.flag = words

    def _row(self, r: int) -> Part:
        return Part(("row", r), *self._along)

    def _is_carry(self, position: int) -> bool:
        return self._first <= position < self._first + self.loop.body.carries

    def _carry(self, k: int, shift: int) -> Part:
        if k not in self.kept:
            return Part(("carry", k)) if self.carried else Part(("carry", k), 0, shift, 1, 1)
        if self.loop.body.reverse:
            return Part(("carry", k), self.loop.body.length or 0, shift, -1, -1)
        return Part(("carry", k), 0, shift, -1, 1)

    def _input(self, position: int) -> Part:
        if self._is_carry(position):
            return self._carry(position - self._first, 0)
        if position < self._first:
            return Part(("input", position))
        return Part(("input", position), *self._along)

    def _constant(self, array: np.ndarray) -> Part:
        self.constants.append(np.require(array, None, ("C", "A")).reshape(-1))
        return Part(("constant", len(self.constants) - 1))

    def _source(self, kind: int, item: Any) -> Part | FusionNode:
        """Return where an output is; the node that a kernel is still to write."""
        if kind == 0:
            return self._input(item)
        if kind == 1:
            return self._constant(item)
        node = base(self._outputs[item])
        if isinstance(node, LiteralNode):
            return self._constant(np.array(node.number, node.dtype))
        if isinstance(node, ArrayNode):
            return self._of_array(node)
        return self.parts.get(node, node)

    def _of_array(self, node: ArrayNode) -> Part:
        if node.constant is not None:
            return self._constant(node.constant)
        assert isinstance(node.source, int)
        return self._input(node.source)

    def part(self, node: FusionNode) -> Sequence[int]:
        """Return where a segment's array is, for the next of its arrays."""
        if isinstance(node, ArrayNode):
            part = self._of_array(node)
        elif isinstance(node, LiteralNode):  # a size
            part = self._constant(np.array(node.number, node.dtype))
        else:
            part = self.parts.get(node) or Part(("work", len(self._given)))
        self._given.append(part)
        words = part.words(node.size)
        if self.loop.body.length is None and part == self._carry(self.loop.body.carries - 1, 1):
            self.flag = words
        return words

    def parts_and_kinds(self, segment: LoopSegment) -> tuple[list[Part], list[tuple]]:
        """Return the arrays that the function of a segment is given, their dtypes and ranks."""
        parts = list(self._given)
        dtypes = [node.dtype for node in segment.arrays]
        for source, goal, _, dtype in self._copied:
            parts += [source, goal]
            dtypes += [dtype, dtype]
        return parts, [(dtype, 1) for dtype in dtypes]

    def work(self, segment: LoopSegment) -> dict[int, tuple[int, np.dtype]]:
        """Return the sizes and dtypes of arrays to work in, by their numbers."""
        return {
            part.array[1]: (node.size, node.dtype)
            for part, node in zip(self._given, segment.arrays, strict=True)
            if part.array[0] == "work"
        }


class CompiledLoop:
    """A loop as one function in machine code, and the arrays that it is given.

    `otherwise` runs the loop where a round says that it cannot.
    """

    def __init__(
        self,
        layout: _Layout,
        segment: LoopSegment,
        otherwise: Run,
        operations: Operations | None = None,
    ):
        segment.write_rounds(layout)
        self.loop, self._layout, self._segment = layout.loop, layout, segment
        self.source, self._otherwise = segment.source, otherwise
        self._parts, kinds = layout.parts_and_kinds(segment)
        kinds.append((np.dtype(np.int64), 1))
        source = service.TextSource(segment.source, "rounds")
        self._function, self.owner = service.compile(source, signatures.program(kinds))
        body = self.loop.body
        self._length, self._first = body.length or 0, body.constants
        self._work = layout.work(segment)
        work = operations.work if operations else 1
        self._at_once = max(1, min(AT_ONCE, WORK // max(work, 1)))
        given_back = {item for kind, item in self.loop.steps if kind == 0}
        transposable = operations.transposable(self._first) if operations else {}
        self._transposable = {k: x for k, x in transposable.items() if k not in given_back}
        used = {part.array for part in self._parts}
        own = [item for _, kind, item in layout.filled if kind == 0]
        self._inputs = sorted({*own, *[k for kind, k in used if kind == "input"]})
        self._rows = [(k, (self._length, *one.shape), one.dtype) for k, one in enumerate(body.rows)]
        self._rows = [one for one in self._rows if ("row", one[0]) in used]
        self._new_rows = np.zeros if body.limited else np.empty
        self._carries = []
        for k, value in enumerate(self.loop.graph.inputs[self._first :][: body.carries]):
            is_kept = k in layout.kept
            count = self._length + 1 if is_kept else 1 if layout.carried else 2
            new = self._new_rows if is_kept else np.empty
            self._carries.append((self._first + k, new, (count, *value.shape), value.dtype))
        order = [("input", k) for k in self._inputs]
        order += [("carry", k) for k in range(body.carries)]
        order += [("row", k) for k, _, _ in self._rows]
        order += [("constant", k) for k in range(len(layout.constants))]
        order += [("work", k) for k in self._work]
        self._slots = [order.index(part.array) for part in self._parts]
        self._sizes = lru_cache(8)(self._sizes_for)
        self._usual = self._sizes(self._length, frozenset())

    def _sizes_for(self, n: int, transposes: frozenset[int]) -> np.ndarray:
        """Return the sizes for `n` rounds, where some inputs are transposes of what is given.

        What goes backwards begins where the rounds do.
        """
        sizes = self._segment.sizes.array()
        for (position, elements), part in zip(self._layout.own_starts, self._parts, strict=True):
            if part.step < 0:
                sizes[position] -= (self._length - n) * elements
        nodes = {self._transposable[k] for k in transposes}
        for call, position in self._segment.calls.items() if nodes else ():
            words = call.words(nodes)
            sizes[position : position + len(words)] = words
        return sizes

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the last carries and the stacks of rows, or the number of rounds."""
        body, kept, length = self.loop.body, self._layout.kept, self._length
        inputs = {k: contiguous(arrays[k]) for k in self._inputs}
        transposes = [k for k in self._transposable if _is_transpose(arrays[k])]
        for k in transposes:
            inputs[k] = arrays[k].T
        flat = [one.reshape(-1) for one in inputs.values()]
        n = length if body.length is None else self.loop.count(arrays)
        sizes = self._usual
        if transposes or n != length:
            sizes = self._sizes(n, frozenset(transposes))
        carried = []
        for k, (position, new, shape, dtype) in enumerate(self._carries):
            if shape[0] == 1:
                carry = np.array(arrays[position], order="C")
            else:
                carry = new(shape, dtype)
                carry[n if k in kept and body.reverse else 0] = arrays[position]
            carried.append(carry)
            flat.append(carry.reshape(-1))
        rows: list[Any] = [None] * len(body.rows)
        for r, shape, dtype in self._rows:
            rows[r] = self._new_rows(shape, dtype)
            flat.append(rows[r].reshape(-1))
        flat += self._layout.constants
        flat += [np.empty(*one) for one in self._work.values()]
        count = self._run([flat[slot] for slot in self._slots], sizes, n, carried[-1:])
        if count < 0:
            return self._otherwise(arrays)
        for k, r in kept.items():
            rows[r] = carried[k][1:] if body.reverse else carried[k][:-1]
        for r, kind, item in self._layout.filled:
            array = item if kind == 1 else inputs[item]
            rows[r] = self._filled(r, array, kind, item, carried)
        ends = []
        for k, carry in enumerate(carried):
            if self._carries[k][2][0] > 1:
                carry = carry[(0 if body.reverse else count) if k in kept else count & 1, ...]
                carry = carry.copy() if k in kept or carry.size > SMALL else carry
            ends.append(carry)
        return [*ends, *rows] if body.length is not None else [*ends, np.array(count)]

    def _run(self, given: list[np.ndarray], sizes: np.ndarray, n: int, flags: list) -> int:
        """Return how many rounds have run; -1 if one could not. Without a length a flag ends it."""
        count, plan = 0, np.empty(2, np.int64)
        until = self.loop.body.length is None
        while bool(flags[0].flat[count % flags[0].size]) if until else count < n:
            end = count + self._at_once if until else min(count + self._at_once, n)
            plan[:] = count, end
            if self._function(*given, plan, sizes) is False:
                raise AssertionError("an array of a loop is not contiguous")
            if plan[0] < 0:
                return -1
            count = int(plan[1]) if until else end
        return count

    def _filled(
        self, r: int, array: np.ndarray, kind: int, item: Any, carried: list[np.ndarray]
    ) -> np.ndarray:
        """Return the stack of an output that no kernel writes."""
        body, k = self.loop.body, item - self._first if kind == 0 else -1
        if 0 <= k < body.carries:
            return np.array(carried[k][1:] if body.reverse else carried[k][:-1])
        if kind == 0 and k >= 0:
            return np.array(array)
        return np.array(np.broadcast_to(array, (self._length, *body.rows[r].shape)))


def _is_transpose(array: np.ndarray) -> bool:
    flags = array.flags
    return flags.f_contiguous and not flags.c_contiguous and flags.aligned
