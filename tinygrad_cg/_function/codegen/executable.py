"""Executables: kernels, and operations on arrays between them, in one Python function.

Operations that run on whole arrays cut a program into segments. A small segment is one compiled
function. In a large segment, threads share the blocks of each kernel. How a kernel is cut into
blocks does not depend on the number of threads, so results have the same bits on any number.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime import memory
from tinygrad_cg_kernels.runtime.texts import define

from ..fusion.fuse import Fusion, Kernel
from ..fusion.lower import Lowering
from ..fusion.nodes import ArrayNode, FusionNode, LiteralNode, OpaqueNode, base
from ..graph.values import FuncGraph
from .scalars import Sizes
from .segment import Segment
from .steps import Steps
from .target import Kinds, Target

MAX_CONSTANT_SIZE = 2**20
"""Operations on constants are run beforehand if the result has at most this many elements."""


def build(graph: FuncGraph) -> Executable:
    """Return an executable for arrays of the shapes and dtypes of the graph's inputs."""
    return Executable(Fusion(Lowering(graph)), len(graph.inputs), Target())


class Executable:
    """A compiled graph: a function of arrays that returns new arrays."""

    def __init__(self, fusion: Fusion, inputs: int, target: Target):
        self.texts: list[str] = []
        self.dispatchers: list[Any] = []
        self.kernels = len(fusion.kernels)
        self._fusion, self._target = fusion, target
        self._names = {node: f"v{k}" for k, node in enumerate(fusion.nodes)}
        for node in fusion.nodes:
            if isinstance(node, ArrayNode) and node.constant is None:
                self._names[node] = f"x{node.source}"
        self._shapes: dict[FusionNode, tuple[int, ...]] = {}
        for node in fusion.outputs:
            array = base(node)
            if not array.is_input and not isinstance(array, OpaqueNode):
                self._shapes.setdefault(array, node.shape)
        self._constants: set[FusionNode] = set()  # operations that were run beforehand
        opaque = [node for node in fusion.nodes if isinstance(node, OpaqueNode)]
        self._read_by_opaque = {base(operand) for node in opaque for operand in node.operands}
        self._joined, self._made = _joined(fusion, opaque), set[str]()
        self.scope: dict[str, Any] = dict(target.names)
        self._steps = Steps()
        self._notes: list[str] = []  # comments on the literals of kernels
        wholes = {whole for whole, _ in self._joined.values()}
        self._is_alone = all(node in wholes or target.leaves_cores(node) for node in opaque)
        self._plan(opaque)
        self._finish(inputs)

    def _finish(self, inputs: int) -> None:
        """Write and define the call."""
        names = ", ".join([f"x{position}" for position in range(inputs)])
        lines = ["def call(arrays):", *self._notes, *[f"    {names}, = arrays"] * bool(names)]
        results = [self._result(position) for position in range(len(self._fusion.outputs))]
        returned = {self._names[base(node)] for node in self._fusion.outputs}
        body, self.scratch = self._steps.finish(results, returned, self._target.keeps_arrays)
        if self.scratch is not None:
            self.scope |= {"take": self.scratch.take, "give": self.scratch.give}
        text = "\n".join([*lines, *[f"    {line}" for line in body], ""])
        self.texts.insert(0, text)
        self.call: Callable[[Sequence[np.ndarray]], list[np.ndarray]] = define(
            text, "call of a program", self.scope, "call"
        )

    @property
    def sources(self) -> list[str]:
        """Return the program's texts for readers: the call, then the segments."""
        return self.texts

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        return self.call(arrays)

    def _plan(self, opaque: list[OpaqueNode]) -> None:
        """Add the steps: segments, and between them the operations on arrays of each stage."""
        by_stage: dict[int, list[OpaqueNode]] = {}
        for node in opaque:
            by_stage.setdefault(self._fusion.available[node], []).append(node)
        cuts = sorted(by_stage)
        stages = _cut_segments(self._fusion, self._target, cuts)
        with self._target.compile_batch(
            [(segment, self._kinds(segment)) for some in stages for segment in some]
        ):
            for k, segments in enumerate(stages):
                for node in by_stage[cuts[k - 1]] if k else ():
                    self._run_opaque(node)
                for segment in segments:
                    self.texts.append(segment.source)
                    self._run_segment(segment, len(self.texts) - 1)

    def _note(self, name: str, sizes: Sizes) -> None:
        """Add comments that list the literals in a function's table."""
        self._notes += [f"    # {name}: {literal}" for literal in sizes.shown()]

    def _bind(self, name: str, value: Any) -> str:
        self.scope[name] = value
        return name

    def _name(self, node: FusionNode) -> str:
        """Return the name of a value's array in the call. Constants are globals of the call."""
        name = self._names[node]
        if name not in self.scope:
            if isinstance(node, ArrayNode) and node.constant is not None:
                self.scope[name] = self.scope["contiguous"](node.constant)
            elif isinstance(node, LiteralNode):
                self.scope[name] = self.scope["array"](node.number, node.dtype)
        return name

    def _shape(self, node: FusionNode) -> tuple[int, ...]:
        return self._shapes.get(node, node.shape)

    def _kinds(self, segment: Segment) -> Kinds:
        """Return the dtypes and ranks of the arrays that a segment's function takes."""
        return [(node.dtype, len(self._shape(node))) for node in segment.arrays]

    def _run_opaque(self, node: OpaqueNode) -> None:
        """Add an operation on arrays. If all operands are constants, run it now instead."""
        operands = [base(operand) for operand in node.operands]
        names = [self._name(array) for array in operands]
        views = [  # the shapes of operands that are views of arrays of other shapes
            operand.shape if array.dtype != object and self._shape(array) != operand.shape else None
            for array, operand in zip(operands, node.operands, strict=True)
        ]
        name, run = self._name(node), self._target.operation(node)
        if operands and self._joined.get(operands[0], (None, 0))[0] is node:
            return  # kernels have written all parts
        if self._is_constant(node):
            self._constants.add(node)
            arrays = [
                self.scope[operand] if shape is None else self.scope[operand].reshape(shape)
                for operand, shape in zip(names, views, strict=True)
            ]
            self.scope[name] = self.scope["contiguous"](run(*arrays))
            return
        pairs = zip(names, views, strict=True)
        texts = [
            operand if shape is None else f"{operand}.reshape({shape})" for operand, shape in pairs
        ]
        product = self._target.product(node, name, texts, self._is_alone)
        if product:
            self._make_arrays([node])
            self._steps.add(product, uses=[name, *names])
            return
        if node.name == "transpose":
            text = f"{texts[0]}.transpose({node.params['perm']})"
        else:
            text = f"{self._bind(f'run_{name}', run)}({', '.join(texts)})"
        if node not in self._read_by_opaque and _is_strided(node):
            text = f"contiguous({text})"
        self._steps.operation(name, f"{name} = {text}", names, node.aliases, not node.pure)

    def _is_constant(self, node: OpaqueNode) -> bool:
        """Return whether an operation has the same result in all calls, and a small one."""
        if node.op is None or not node.pure or not node.operands or node.dtype == object:
            return False
        operands = {base(operand) for operand in node.operands} - self._constants
        are_constant = all(isinstance(x, ArrayNode) and x.constant is not None for x in operands)
        return are_constant and node.size <= MAX_CONSTANT_SIZE

    def _run_segment(self, segment: Segment, number: int) -> None:
        if not segment.large:
            roots = [root for root in _roots(segment) if root in self._fusion.stored]
            self._run_small(segment, number, list(dict.fromkeys([*segment.finals, *roots])))
            return
        for k in range(len(segment.blocks)):
            self._run_split(segment, number, k)
        if segment.finals:
            self._run_small(segment, number, segment.finals)

    def _make_arrays(self, nodes: list[FusionNode]) -> None:
        for node in nodes:
            name, shape = self._name(node), self._shape(node)
            if node in self._joined:
                self._make_part(node, *self._joined[node])
                continue
            texts = self._bind(f"shape_{name}", shape), self._bind(f"type_{name}", node.dtype)
            maker = (
                "large" if prod(shape) * node.dtype.itemsize >= memory.MIN_KEPT_BYTES else "empty"
            )
            self._steps.empty(name, shape, node.dtype, f"{name} = {maker}({', '.join(texts)})")

    def _make_part(self, node: FusionNode, whole: FusionNode, start: int) -> None:
        """Make an array that is a part of the result of a concatenation."""
        name, joined = self._name(node), self._name(whole)
        if joined not in self._made:
            self._made.add(joined)
            self._make_arrays([whole])
        part = f"{joined}.reshape(-1)[{start}:{start + node.size}].reshape({self._shape(node)})"
        self._steps.operation(name, f"{name} = {part}", [joined], True, False)

    def _run_small(self, segment: Segment, number: int, written: list[FusionNode]) -> None:
        """Add the call of one compiled function, after making the arrays that it writes."""
        nodes = list(segment.arrays)
        function, dispatcher = self._target.function(segment, self._kinds(segment))
        self.dispatchers.append(dispatcher)
        run = self._bind(f"segment_{number}", function)
        sizes = self._bind(f"sizes_{number}", segment.sizes.array())
        self._note(f"segment_{number}", segment.sizes)
        names = [self._name(node) for node in nodes]
        pairs = zip(names, nodes, strict=True)
        repaired = [name if node in written else f"contiguous({name})" for name, node in pairs]
        self._make_arrays([node for node in written if node in segment.arrays])
        test = f"if {run}({', '.join([*names, sizes])}) is False:"
        self._steps.add(test, f"    {run}({', '.join([*repaired, sizes])})", uses=names)

    def _run_split(self, segment: Segment, number: int, k: int) -> None:
        """Add a kernel whose blocks run on all threads; totals of blocks are combined in order."""
        block, nodes = segment.blocks[k], segment.tables[k]
        partial = [*block.totals, *block.columns]
        run = self._target.splitter(segment, k, self._shapes, self._is_alone)
        name = self._bind(f"split_{number}_{k}", run)
        self._note(name, segment.heads[k])
        results = [self._name(node) for node in partial]
        names = [self._name(node) for node in nodes if node not in partial]
        stored = [node for node in block.kernel.roots if node in self._fusion.stored]
        self._make_arrays([node for node in stored if node not in partial and node in nodes])
        call = f"{name}({', '.join(names)})"
        line = f"{', '.join(results)}, = {call}" if results else call
        self._steps.add(line, uses=[*results, *names], makes=results)

    def _result(self, position: int) -> str:
        """Return the expression of an output: an array that nothing else refers to."""
        outputs = self._fusion.outputs
        array, shape = base(outputs[position]), outputs[position].shape
        name = self._name(array)
        is_repeated = array in map(base, outputs[:position])
        is_kept = is_repeated or array in self._constants
        is_argument = array.aliases if isinstance(array, OpaqueNode) else array.is_input
        if not (is_kept or is_argument):
            return name if self._shape(array) == shape else f"{name}.reshape({shape})"
        return f"array({name}, order='C').reshape({shape})"


def cut_stages(fusion: Fusion, cuts: Sequence[int]) -> list[tuple[list[Kernel], list[FusionNode]]]:
    """Return the kernels and the stored scalars before each cut, and after the last one."""
    kernels: list[list[Kernel]] = [[] for _ in range(len(cuts) + 1)]
    finals: list[list[FusionNode]] = [[] for _ in range(len(cuts) + 1)]
    for kernel in sorted(fusion.kernels.values(), key=lambda kernel: kernel.stage):
        kernels[bisect_right(cuts, kernel.stage)].append(kernel)
    for node in fusion.nodes:
        if node in fusion.stored and node.size == 1 and node.among_scalars:
            finals[bisect_left(cuts, fusion.available[node])].append(node)
    return list(zip(kernels, finals, strict=True))


def _cut_segments(fusion: Fusion, target: Target, cuts: Sequence[int]) -> list[list[Segment]]:
    """Return the written segments before each cut, and after the last one."""
    wanted = {node for node in fusion.stored if node.result == "total"}
    stages = [target.segments(fusion, *parts) for parts in cut_stages(fusion, cuts)]
    for segment in reversed([segment for segments in stages for segment in segments]):
        if not segment.large:  # it stores the totals that later segments read
            totals = [root for root in _roots(segment) if root.result == "total"]
            segment.finals += [root for root in totals if root in wanted]
        segment.write()
        wanted.update(segment.arrays, *segment.tables)
    return stages


def _roots(segment: Segment) -> list[FusionNode]:
    return [root for block in segment.blocks for root in block.kernel.roots]


def _is_strided(node: OpaqueNode) -> bool:
    """Return whether an operation on arrays of these shapes returns a non-contiguous view."""
    if node.op is None or not node.aliases:
        return False
    result = node.run(*[np.zeros(operand.shape, operand.dtype) for operand in node.operands])
    return not result.flags.c_contiguous


def _joined(
    fusion: Fusion, opaque: Sequence[OpaqueNode]
) -> dict[FusionNode, tuple[FusionNode, int]]:
    """Return the arrays that kernels write into their place in a concatenation, and this place.

    The parts of such a concatenation follow each other in memory.
    """
    placed: dict[FusionNode, tuple[FusionNode, int]] = {}
    returned = {base(node) for node in fusion.outputs}
    for node in opaque:
        if node.name not in ("concatenate", "stack"):
            continue
        parts = [base(operand) for operand in node.operands]
        fit = all(
            part in fusion.homes
            and part.result == ""
            and 1 < part.size == operand.size
            and part.dtype == node.dtype
            and part not in placed
            and part not in returned
            for part, operand in zip(parts, node.operands, strict=True)
        )
        if fit and len(set(parts)) == len(parts) and prod(node.shape[: node.params["axis"]]) == 1:
            starts = np.cumsum([0, *[part.size for part in parts]]).tolist()
            placed.update((part, (node, start)) for part, start in zip(parts, starts, strict=False))
    return placed
