"""Loops as functions of arrays: one compiled function if the body allows it.

Otherwise the program of the body is called for each round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.runtime import memory, service, signatures, texts

from ..._core import devices
from ..fusion.fuse import Fusion, Kernel
from ..fusion.lower import FUSED, Lowering
from ..fusion.nodes import COPY, ApplyNode, ArrayNode, FusionNode, OpaqueNode, base
from ..graph.loop_drafts import Body
from ..graph.values import FuncGraph
from .array_operations import ArrayOperations, UnfitError
from .blocks import Block
from .executable import cut_stages
from .expressions import type_name
from .loop_segment import LoopLayout, LoopSegment, RoundOperation, Stage
from .scalarized import scalarize
from .segment import is_large
from .target import contiguous

Run = Callable[[Sequence[np.ndarray]], list[np.ndarray]]
Compiler = Callable[[service.TextSource, signatures.Signature], Any]
MAX_ROUNDS = 2**16
"""One call of machine code runs at most this many rounds: Python may interrupt between calls."""
MAX_KEPT_SIZE = 2**13
"""Larger carries are copied when the loop ends, so that the memory of two is not kept for one."""
GAVE_UP = ": a matrix is singular, or an index out of range"
MAX_MULTIPLICATIONS = 2**26
"""One call of machine code does at most this many multiplications in products of matrices."""


class TracedLoop(NamedTuple):
    """A loop to be compiled: its body, and the graph of what the body computes.

    `steps` says where the body's outputs come from (see `tracing.outputs.Outputs`).
    """

    graph: FuncGraph
    steps: Sequence[tuple[int, Any]]
    body: Body


def call_rounds(body: Body, program: Callable[[], Run], library: Any = np) -> Run:
    """Return a function from constants, carries and stacks to the last carries and stacked rows.

    It calls the body's program, which ``program()`` returns, for each round. `library` makes
    arrays.
    """
    copy = library.array
    first, count = body.constants, body.carries

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        fixed = list(arrays[:first])
        values = list(map(copy, arrays[first : first + count]))
        stacks = list(map(library.ascontiguousarray, arrays[first + count :]))
        kept = memory.empty if library is np else library.empty
        new = library.zeros if body.limited else kept
        rows = [new((body.length or 0, *row.shape), row.dtype) for row in body.rows]
        until, done = body.length is None, 0
        rounds = 0 if until else body.count(arrays)
        call: Any = program() if until or rounds else None
        while bool(devices.to_host(values[-1])) if until else done < rounds:
            i = rounds - 1 - done if body.reverse else done
            results = call([*fixed, *values, *[stack[i, ...] for stack in stacks]])
            values = results[:count]
            for stack, row in zip(rows, results[count:], strict=False):
                stack[i] = row
            done += 1
        ends = list(map(copy, values))  # a value may be a row of a stack
        return [*ends, copy(done)] if until else [*ends, *rows]

    return run


def compile_rounds(
    loop: TracedLoop, otherwise: Run | None, compiler: Compiler = service.compile
) -> CompiledLoop | None:
    """Return the same function compiled; None if an operation on arrays prevents that.

    If the body has operations on arrays, and arrays are small, the loop computes single numbers.
    If a matrix is singular or an index out of range, `otherwise` runs the loop and raises the
    error.
    """
    graph, body = loop.graph, loop.body
    if not graph.outputs or body.length == 0:
        return None
    lowered = Lowering(graph)
    kept = _kept(loop)
    lowered.outputs = outputs = _written(loop, lowered, kept)
    fusion = Fusion(lowered)
    opaque = [node for node in fusion.nodes if isinstance(node, OpaqueNode)]
    is_empty = not all(prod(value.shape) for value in (*graph.inputs, *graph.outputs))
    numbers = scalarize(graph, loop.steps, body) if opaque or is_empty else None
    if numbers is not None:
        carried = list(zip(numbers.carried, numbers.outputs, strict=False))
        layout = LoopLayout(body, dict(enumerate(numbers.outputs)), {}, carried)
        segment = LoopSegment([Stage((), (), numbers.outputs, numbers.stops)])
        return CompiledLoop(loop, layout, segment, otherwise, compiler)
    blocks = {kernel: Block(fusion, kernel) for kernel in fusion.kernels.values()}
    if is_empty or is_large(list(blocks.values())):
        return None
    if any(node.dtype not in FUSED for node in outputs):
        return None
    try:
        operations = ArrayOperations(fusion)
    except UnfitError:
        return None
    written = [k for k in range(len(loop.steps)) if k - body.carries not in kept.values()]
    layout = LoopLayout(body, dict(zip(written, fusion.outputs, strict=True)), kept, [])
    segment = _segment(fusion, blocks, operations)
    return CompiledLoop(loop, layout, segment, otherwise, compiler, operations)


def _kept(loop: TracedLoop) -> dict[int, int]:
    """Return carries whose value at the start of a round is an output, with the output's row."""
    kept: dict[int, int] = {}
    first, count = loop.body.constants, loop.body.carries
    for r, (kind, item) in enumerate(loop.steps[count:]):
        if kind == 0 and first <= item < first + count:
            kept.setdefault(item - first, r)
    return kept


def _written(loop: TracedLoop, lowered: Lowering, kept: dict[int, int]) -> list[FusionNode]:
    """Return the outputs that kernels write. Outputs that exist already are copied."""
    inputs = [lowered.nodes[value] for value in loop.graph.inputs]
    written: dict[FusionNode, FusionNode] = {}  # by the node that is written
    for k, (kind, item) in enumerate(loop.steps):
        if k - loop.body.carries in kept.values():
            continue
        if kind == 1:
            node: FusionNode = ArrayNode(item.shape, item.dtype, item)
        else:
            node = inputs[item] if kind == 0 else lowered.outputs[item]
        if base(node).is_input or base(node) in written:
            node = ApplyNode(COPY, node.shape, node.dtype, (node,))
        written[base(node)] = node
    return list(written.values())


def _segment(
    fusion: Fusion, blocks: dict[Kernel, Block], operations: ArrayOperations
) -> LoopSegment:
    """Return the segment of a loop's body, without its text."""
    by_cut: dict[int, list[RoundOperation]] = {}
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


class CompiledLoop:
    """A loop as one compiled function, and the arrays that the function takes.

    `otherwise` runs the loop if a round gives up.
    """

    def __init__(
        self,
        loop: TracedLoop,
        layout: LoopLayout,
        segment: LoopSegment,
        otherwise: Run | None,
        compiler: Compiler,
        operations: ArrayOperations | None = None,
    ):
        segment.write_rounds(layout)
        self.body, self._layout, self._segment = loop.body, layout, segment
        self.source, self._otherwise = segment.source, otherwise
        kinds = [(node.dtype, 1) for node in segment.arrays] + [(np.dtype(np.int64), 1)]
        source = service.TextSource(segment.source, "rounds")
        self._function, self.owner = compiler(source, signatures.program(kinds))
        work = operations.work if operations else 1
        self._at_once = max(1, min(MAX_ROUNDS, MAX_MULTIPLICATIONS // max(work, 1)))
        self._inputs = [value.aval for value in loop.graph.inputs]
        self._length = self.body.length or 0
        self._sizes = lru_cache(8)(self._sizes_for)
        constants = enumerate(layout.constants)
        self._constants = {f"constant{k}": array for k, array in constants}
        self._call: Run | None = None

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the last carries and the stacks of rows, or the number of rounds."""
        if self._call is None:
            self._call = self._defined()
        return self._call(arrays)

    def _defined(self) -> Run:
        """Return the call as a function in Python."""
        body = self.body
        lines, arguments, results = self._lines(in_numba=False)
        flags = f"[carry{body.carries - 1}]" if body.length is None else "()"
        names = [f"x{k}" for k in range(len(self._inputs))]
        flattened = [
            f"{name} = {name}.reshape(-1)"
            for name, aval in zip(names, self._inputs, strict=True)
            if len(aval.shape) != 1
        ]
        text = [
            *(f"[{', '.join(names)}] = arrays", *flattened),
            f"n = {'x0.item()' if body.limited else self._length}",
            *lines,
            f"count = run([{', '.join(arguments)}], sizes(n), n, {flags})",
            *["if count < 0:", "    return otherwise(arrays)"] * (self._otherwise is not None),
            f"return [{', '.join(results)}]",
        ]
        scope = {"np": np, "run": self._run, "sizes": self._sizes, "otherwise": self._otherwise}
        scope |= {"empty": memory.empty, **self._constants}
        code = "\n    ".join(["def call(arrays):", *text])
        return texts.define(code, "call of a loop", scope, "call")

    def _run(self, arrays: list[np.ndarray], sizes: np.ndarray, n: int, flags: Any) -> int:
        """Run rounds; return how many, or -1 if one gave up. A flag ends a `while` loop."""
        count, until = 0, self.body.length is None
        while flags[0].item(count % flags[0].size) if until else count < n:
            end = count + self._at_once
            plan = np.array((count, end if until or end < n else n))
            while self._function(*arrays, plan, sizes) is False:
                arrays = list(map(contiguous, arrays))
            if plan[0] < 0:
                return -1
            count = int(plan[1])
        return count

    def _sizes_for(self, n: int) -> np.ndarray:
        """Return the sizes for `n` rounds.

        Arrays that are read backwards begin at the row of the first of these rounds.
        """
        sizes = self._segment.sizes.array()
        for position, elements, step in self._segment.own_starts:
            if step < 0:
                sizes[position] -= (self._length - n) * elements
        return sizes

    def numba_lines(self) -> tuple[list[str], dict[str, Any]]:
        """Return a call as lines of Numba code, and their globals.

        The arrays x0, x1, ... and the results have one axis.
        """
        body, until = self.body, self.body.length is None
        scope = {"rounds": self._function, "usual": self._sizes(self._length).copy()}
        lines = [f"n = {'x0[0]' if body.limited else self._length}", "sizes = usual.copy()"]
        for position, (ufunc, dtype) in self._segment.ufuncs.items():
            scope["usual"][position] = 0  # it is another one in each process
            scope[f"loop{position}"] = service.numba_callable().loop_address(ufunc, dtype)
            lines.append(f"sizes[{position}] = loop{position}()")
        for position, elements, step in self._segment.own_starts:
            if step < 0 and body.limited:
                lines.append(f"sizes[{position}] -= ({self._length} - n) * {elements}")
        creation, arguments, results = self._lines(in_numba=True)
        lines += [*creation, "plan = np.array([0, 0])", f"plan[1] = {2**62 if until else 'n'}"]
        lines.append(f"if carry{body.carries - 1}[0]:" if until else "if n > 0:")
        lines += [f"    rounds({', '.join(arguments)}, plan, sizes)", "else:", "    plan[1] = 0"]
        lines += ["if plan[0] < 0:", f"    raise ValueError({body.name + GAVE_UP!r})"]
        lines += ["count = plan[1]", f"return ({', '.join(results)},)"]
        return lines, scope | self._constants

    def _lines(self, in_numba: bool) -> tuple[list[str], list[str], list[str]]:
        """Return lines that make the arrays of a call, the arguments of `rounds`, and the results.

        The arrays x0, x1, ... have one axis, as all arrays have in Numba code.
        """
        body, kept, length, lines = self.body, self._layout.kept, self._length, list[str]()

        def add(name: str, size: int, dtype: np.dtype, returned: bool = True) -> None:
            if returned and not in_numba and size * dtype.itemsize >= memory.MIN_MMAPPED_BYTES:
                text = f"empty(({size},), np.dtype({dtype.name!r}))"
            else:
                text = f"np.empty({size}, {type_name(dtype)})"
            if returned and body.limited:
                text = f"np.zeros({size}, {type_name(dtype)})"
            lines.append(f"{name} = {text}")

        def shaped(text: str, shape: tuple[int, ...]) -> str:
            return text if in_numba or len(shape) == 1 else f"{text}.reshape({shape})"

        ends, rows = list[str](), dict[int, str]()
        for k, aval in enumerate(self._inputs[body.constants :][: body.carries]):
            size, is_kept = prod(aval.shape), k in kept
            count = length + 1 if is_kept else 1 if self._layout.carried else 2
            add(f"carry{k}", count * size, aval.dtype, is_kept)
            start = f"n * {size}" if is_kept and body.reverse else "0"
            first, x = f"carry{k}[{start} : {start} + {size}]", f"x{body.constants + k}"
            lines.append(f"write({first}, {x})" if in_numba else f"{first} = {x}")
            row = "0" if count == 1 or (is_kept and body.reverse) else "count"
            row += " % 2" * (count == 2 and not is_kept)
            end = f"carry{k}[{row} * {size} : ({row} + 1) * {size}]"
            copied = in_numba or is_kept or (count > 1 and size > MAX_KEPT_SIZE)
            ends.append(shaped(end + ".copy()" * copied, aval.shape))
            if is_kept:
                part = f"[{size}:]" if body.reverse else f"[: {length * size}]"
                rows[kept[k]] = shaped(f"carry{k}{part}", (length, *aval.shape))
        used = {part.array for part in self._layout.chosen}
        for r, aval in enumerate(body.rows):
            if ("row", r) in used:
                add(f"row{r}", length * prod(aval.shape), aval.dtype)
                rows[r] = shaped(f"row{r}", (length, *aval.shape))
        for part, node in zip(self._layout.chosen, self._segment.arrays, strict=True):
            if part.array[0] == "work":
                add(f"work{part.array[1]}", node.size, node.dtype, False)
        arguments = [
            f"x{k}" if kind == "input" else f"{kind}{k}"
            for kind, k in [part.array for part in self._layout.chosen]
        ]
        if body.length is None:
            return lines, arguments, [*ends, f"np.array({'[count]' if in_numba else 'count'})"]
        return lines, arguments, [*ends, *[rows[r] for r in range(len(body.rows))]]
