"""The device that kernels run on: it compiles segments to functions of arrays, and makes arrays.

`Target` is the interface between executables and kernels. An executable knows when each kernel runs
and which arrays it reads and writes. A target writes and compiles the kernel. A GPU is another
target.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from math import prod
from typing import Any

import numpy as np
from numpy import empty

from tinygrad_cg_kernels.linear import products
from tinygrad_cg_kernels.runtime import errstate, memory, service, signatures, threads
from tinygrad_cg_kernels.runtime.promotion import FLOAT32, FLOAT64

from ..fusion.fuse import Fusion, Kernel
from ..fusion.nodes import FusionNode, OpaqueNode, ReduceNode
from .blocks import Block
from .segment import Segment, cut_rows, group_blocks

Shapes = dict[FusionNode, tuple[int, ...]]
"""The shapes of arrays, for nodes whose array has another shape than the node."""

Kinds = list[tuple[np.dtype, int]]
"""Dtypes and ranks of arrays."""

_COMBINE = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
_COMBINE |= {"any": np.logical_or, "all": np.logical_and}


class Target:
    """The processor: kernels in the kernel language, in blocks that all threads share."""

    names: dict[str, Any]
    """Globals of a call: ``empty(shape, dtype)`` and ``large(shape, dtype)`` make arrays,
    ``array(value)`` copies one, ``contiguous(array)`` returns one that kernels can read."""

    keeps_arrays = True
    """Whether programs keep the memory of small arrays between calls."""

    def __init__(self) -> None:
        memory.keep_heap()  # small arrays come from the allocator
        self.names = {"empty": empty, "large": memory.empty, "contiguous": contiguous}
        self.names |= {"array": np.array, "matmul": np.matmul, "quiet": errstate.quiet}
        self.names["product"] = products.product

    def segments(
        self, fusion: Fusion, kernels: list[Kernel], finals: list[FusionNode]
    ) -> list[Segment]:
        """Return the segments of kernels that run between two operations on arrays."""
        *groups, last = group_blocks([Block(fusion, kernel) for kernel in kernels])
        segments = [*[Segment(group, []) for group in groups], Segment(last, finals)]
        return [segment for segment in segments if segment.blocks or segment.finals]

    def compile_batch(self, segments: list[tuple[Segment, Kinds]]) -> AbstractContextManager[None]:
        """Return a context in which the methods below find the segments compiled, on all cores."""
        wanted = []
        for segment, kinds in segments:
            wanted += [(name, segment, signatures.BLOCKS) for name in segment.threads]
            if segment.finals or not segment.large:
                wanted.append(("run", segment, signatures.program(kinds)))
        return service.compile_batch(
            (service.TextSource(segment.source, name), signature)
            for name, segment, signature in wanted
        )

    def function(self, segment: Segment, kinds: Kinds) -> tuple[Callable[..., Any], Any]:
        """Return a segment's ``run(*arrays, sizes)`` for dtypes and ranks, and the code's owner.

        The function returns False, and does nothing, if kernels cannot read the arrays.
        """
        source = service.TextSource(segment.source, "run")
        return service.compile(source, signatures.program(kinds))

    def operation(self, node: OpaqueNode) -> Callable[..., Any]:
        """Return the function that runs an operation on arrays."""
        return node.run

    def leaves_cores(self, node: OpaqueNode) -> bool:
        """Return whether an operation uses no threads of BLAS."""
        if node.name != "matmul":
            return node.op is not None and node.op.kind != "contraction"
        left, right = [operand.shape for operand in node.operands]
        rows = prod(left[:-1]) if len(right) == 2 else left[-2]
        count = rows * prod(right[-2:])
        most = products.LARGE // node.dtype.itemsize if len(right) == 2 else products.SHARED
        return count <= most

    def product(self, node: OpaqueNode, out: str, operands: list[str], is_alone: bool) -> str:
        """Return the line that writes a product of matrices to an array.

        It is empty for other operations, and where `node.run` does more than to call NumPy.
        """
        dtypes = {node.dtype, *[operand.dtype for operand in node.operands]}
        if node.name not in ("matmul", "matvec") or dtypes not in ({FLOAT32}, {FLOAT64}):
            return ""
        (x, y), (left, right) = operands, [operand.shape for operand in node.operands]
        if node.name == "matvec":
            if (len(left), len(right)) != (2, 1):
                return ""
        elif len(right) == 2 < len(left) and prod(left):  # one product in place of many
            x, out = f"{x}.reshape((-1, {left[-1]}))", f"{out}.reshape((-1, {right[1]}))"
        elif len(left) != 2 or len(right) != 2:
            return f"quiet.run(matmul, {x}, {y}, {out})"
        if products.is_shared(prod(left[:-1]), left[-1], prod(right[1:]), node.dtype):
            return f"product({x}, {y}, {out}, {is_alone})"
        return f"quiet.run({x}.dot, {y}, {out})"

    def splitter(
        self, segment: Segment, k: int, shapes: Shapes, is_alone: bool
    ) -> Callable[..., Any]:
        """Return a function that runs one kernel of a large segment on all threads.

        It takes the kernel's arrays. It returns the kernel's totals and column sums, with the
        blocks combined in order. `is_alone` says that no threads of BLAS work in the program.
        """
        block, nodes = segment.blocks[k], segment.tables[k]
        source = service.TextSource(segment.source, segment.threads[k])
        address, owner = service.compile(source, signatures.BLOCKS)
        rows, columns, stride = cut_rows(block)
        blocks = -(-rows // stride)
        partial = [(node, (blocks,)) for node in block.totals]
        partial += [(node, (blocks, columns)) for node in block.columns]
        task = threads.Task(address, 0, 0, rows, stride, max(columns, 1), is_alone)
        share = threads.runner(len(nodes), segment.heads[k].values, task, task)

        def run(*arrays: np.ndarray) -> list[np.ndarray]:
            parts = [empty(shape, node.dtype) for node, shape in partial]
            share(*map(contiguous, arrays), *parts)
            return [
                _combine_totals(node, part, shapes.get(node, node.shape))
                for (node, _), part in zip(partial, parts, strict=True)
            ]

        run.owner = owner
        return run


def contiguous(array: np.ndarray) -> np.ndarray:
    """Return an array that kernels can read: aligned, and in row-major order."""
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else np.array(array, order="C")


def _combine_totals(node: ReduceNode, partial: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Combine the partial results of blocks, in an order that does not depend on threads."""
    combine = _COMBINE[node.name]
    if partial.ndim > 1:
        return combine.reduce(partial, axis=0, dtype=node.dtype).reshape(shape)
    combine.accumulate(partial, out=partial)
    return np.array(partial[-1]).reshape(shape)
