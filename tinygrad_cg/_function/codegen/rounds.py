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
from ..graph.loops import Body
from ..graph.values import FuncGraph
from .array_operations import Operations, UnfitError
from .blocks import Block
from .executable import cut_stages
from .loop_segment import LoopSegment, Operation, Stage
from .segment import is_large
from .target import contiguous

Run = Callable[[Sequence[np.ndarray]], list[np.ndarray]]
AT_ONCE = 2**16
"""Rounds of a call of machine code: Python can be interrupted between two of them."""
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


def compile_rounds(
    loop: Rounds, otherwise: Run, quicker: Callable[[], Run | None] | None = None
) -> Run | None:
    """Return the same function as one in machine code; None where operations on arrays forbid it.

    Where there are such operations, ``quicker()`` is returned instead if that is not None.
    `otherwise` runs the loop where a matrix is singular, and raises the error.
    """
    graph = loop.graph
    if not graph.outputs or loop.body.length == 0:
        return None
    if not all(prod(value.shape) for value in (*graph.inputs, *graph.outputs)):
        return None
    lowered = Lowering(graph)
    fusion = Fusion(lowered)
    if any(isinstance(node, HostNode) for node in fusion.nodes):
        found = quicker() if quicker else None
        if found is not None:
            return found
    blocks = {kernel: Block(fusion, kernel) for kernel in fusion.kernels.values()}
    if is_large(list(blocks.values())):
        return None
    try:
        operations = Operations(lowered, fusion)
    except UnfitError:
        return None
    segment = _segment(fusion, blocks, operations)
    return _Layout(loop, fusion, operations).compiled(segment, otherwise)


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
    the round began with, in as many rows as there are rounds, and one more.
    """

    def __init__(self, loop: Rounds, fusion: Fusion, operations: Operations):
        self.loop, self._operations = loop, operations
        n = loop.body.length or 0
        self.flag: Sequence[int] | None = None
        self.own_starts: list[tuple[int, int]] = []  # with the elements of a row
        self._along = (n - 1, 0, -1, -1) if loop.body.reverse else (0, 0, -1, 1)
        self._first = loop.body.constants
        self.kept: dict[int, int] = {}  # carries of which a row is an output, and which
        rows = list(enumerate(loop.steps[loop.body.carries :]))
        for r, (kind, item) in rows:
            if kind == 0 and self._is_carry(item):
                self.kept.setdefault(item - self._first, r)
        self.parts: dict[FusionNode, Part] = {}  # of what kernels write
        self.constants: list[np.ndarray] = []
        self._copied: list[tuple[Part, Part, int, np.dtype]] = []
        self.copies: list[tuple[Sequence[int], Sequence[int]]] = []
        self._given: list[Part] = []  # of the segment's arrays
        self.filled: list[tuple[int, int, Any]] = []  # rows that are the same in each round
        pairs = [(k, step, True) for k, step in enumerate(loop.steps[: loop.body.carries])]
        pairs += [(r, step, False) for r, step in rows]
        for k, (kind, item), carried in pairs:
            goal = self._carry(k, 1) if carried else Part(("row", k), *self._along)
            if not carried and kind != 2:
                if self.kept.get(item - self._first if kind == 0 else -1) != k:
                    self.filled.append((k, kind, item))
                continue
            source = self._source(fusion, kind, item)
            if isinstance(source, FusionNode):
                self.parts[source] = goal
            else:
                like = loop.graph.inputs[self._first + k] if carried else loop.body.rows[k]
                size = prod(like.shape)
                self._copied.append((source, goal, size, like.dtype))
                self.copies.append((source.words(size), words := goal.words(size)))
                if carried and k == loop.body.carries - 1 and loop.body.length is None:
                    self.flag = words

    def _is_carry(self, position: int) -> bool:
        return self._first <= position < self._first + self.loop.body.carries

    def _carry(self, k: int, shift: int) -> Part:
        if k not in self.kept:
            return Part(("carry", k), 0, shift, 1, 1)
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

    def _source(self, fusion: Fusion, kind: int, item: Any) -> Part | FusionNode:
        """Return where an output is; the node that a kernel is still to write."""
        if kind == 0:
            return self._input(item)
        if kind == 1:
            return self._constant(item)
        node = base(fusion.outputs[item])
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

    def compiled(self, segment: LoopSegment, otherwise: Run) -> Run:
        """Return the function of a loop's body."""
        loop = self.loop
        segment.write_rounds(self)
        kinds = [(node.dtype, 1) for node in segment.arrays]
        work = {
            part.array[1]: (node.size, node.dtype)
            for part, node in zip(self._given, segment.arrays, strict=True)
            if part.array[0] == "work"
        }
        parts = list(self._given)
        for source, goal, _, dtype in self._copied:
            parts += [source, goal]
            kinds += [(dtype, 1)] * 2
        kinds.append((np.dtype(np.int64), 1))
        source = service.TextSource(segment.source, "rounds")
        function, owner = service.compile(source, signatures.program(kinds))
        at_once = max(1, min(AT_ONCE, WORK // max(self._operations.work, 1)))
        shape = loop.body.length or 0
        first, graph, kept, limited = loop.body.constants, loop.graph, self.kept, loop.body.limited
        used = {part.array[1] for part in parts if part.array[0] == "row"}
        given_back = {item for kind, item in loop.steps if kind == 0}
        transposable = self._operations.transposable(first)
        transposable = {k: one for k, one in transposable.items() if k not in given_back}

        @lru_cache(8)
        def sizes_for(n: int, transposes: frozenset[int]) -> np.ndarray:
            """Return the sizes for `n` rounds, where some inputs are transposes of what is given.

            What goes backwards begins where the rounds do.
            """
            sizes = segment.sizes.array()
            for (position, elements), part in zip(self.own_starts, parts, strict=True):
                if part.step < 0:
                    sizes[position] -= (shape - n) * elements
            nodes = {transposable[k] for k in transposes}
            for call, position in segment.calls.items() if nodes else ():
                words = call.words(nodes)
                sizes[position : position + len(words)] = words
            return sizes

        usual = sizes_for(shape, frozenset())

        def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
            transposes = [k for k in transposable if _is_transpose(arrays[k])]
            inputs = [contiguous(one) for one in arrays]
            for k in transposes:
                inputs[k] = arrays[k].T
            n = shape if loop.body.length is None else loop.count(arrays)
            sizes = usual
            if transposes or n != shape:
                sizes = sizes_for(n, frozenset(transposes))
            carried = []
            for k in range(loop.body.carries):
                value = graph.inputs[first + k]
                new = np.zeros if limited and k in kept else np.empty
                made = new((shape + 1 if k in kept else 2, *value.shape), value.dtype)
                made[n if k in kept and loop.body.reverse else 0] = inputs[first + k]
                carried.append(made)
            rows: list[Any] = [None] * len(loop.body.rows)
            for r in used:
                new = np.zeros if limited else np.empty
                rows[r] = new((shape, *loop.body.rows[r].shape), loop.body.rows[r].dtype)
            tables = {
                "input": inputs,
                "carry": carried,
                "row": rows,
                "constant": self.constants,
                "work": {k: np.empty(*one) for k, one in work.items()},
            }
            given = [tables[part.array[0]][part.array[1]].reshape(-1) for part in parts]
            if loop.body.length is None:
                flags = carried[-1]
                n = run_until(function, given, sizes, lambda n: flags[n & 1], at_once)
                if n < 0:
                    return otherwise(arrays)
            else:
                plan = np.empty(2, np.int64)
                for start in range(0, n, at_once):
                    plan[:] = start, min(start + at_once, n)
                    check(function(*given, plan, sizes))
                    if plan[0] < 0:
                        return otherwise(arrays)
            for k, r in kept.items():
                rows[r] = carried[k][1:] if loop.body.reverse else carried[k][:-1]
            for r, kind, item in self.filled:
                rows[r] = self._filled(r, item if kind == 1 else inputs[item], kind, item, carried)
            ends = []
            for k, made in enumerate(carried):
                last = 0 if loop.body.reverse else n
                ends.append(made[last if k in kept else n & 1, ...].copy())
            return [*ends, *rows] if loop.body.length is not None else [*ends, np.array(n)]

        run.owner = owner
        run.source = segment.source
        return run

    def _filled(
        self, r: int, array: np.ndarray, kind: int, item: Any, carried: list[np.ndarray]
    ) -> np.ndarray:
        """Return the stack of an output that no kernel writes."""
        if kind == 0 and self._is_carry(item):
            made = carried[item - self._first]
            return np.array(made[1:] if self.loop.body.reverse else made[:-1])
        if kind == 0 and item >= self._first:
            return np.array(array)
        shape = (self.loop.body.length or 0, *self.loop.body.rows[r].shape)
        return np.array(np.broadcast_to(array, shape))


def run_until(
    function: Callable[..., Any],
    given: list[np.ndarray],
    sizes: np.ndarray,
    goes_on: Callable[[int], Any],
    at_once: int = AT_ONCE,
) -> int:
    """Return the number of rounds that a loop without a length has run; -1 if it cannot run."""
    n, plan = 0, np.empty(2, np.int64)
    while goes_on(n):
        plan[:] = n, n + at_once
        check(function(*given, plan, sizes))
        if plan[0] < 0:
            return -1
        n = int(plan[1])
    return n


def _is_transpose(array: np.ndarray) -> bool:
    flags = array.flags
    return flags.f_contiguous and not flags.c_contiguous and flags.aligned


def check(done: bool) -> None:
    if done is False:
        raise AssertionError("an array of a loop is not contiguous")
