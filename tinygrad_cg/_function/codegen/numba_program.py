"""Executables as text that Numba compiles: programs to be called from Numba code.

Kernels are those of the processor, one after the other, without threads. Operations on arrays
between them are NumPy's, as far as Numba has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime import service

from ...errors import UnsupportedCodeError
from ..fusion.fuse import Fusion, Kernel
from ..fusion.nodes import ArrayNode, FusionNode, LiteralNode, OpaqueNode, base
from .executable import Executable
from .expressions import type_name
from .segment import Segment
from .target import Kinds, Target

MAX_PART = 256
"""Elements of the largest array that is a part of a block."""


class NumbaTarget(Target):
    """The processor, for kernels that Numba code calls: each runs in the thread that calls it."""

    keeps_arrays = False

    def segments(
        self, fusion: Fusion, kernels: list[Kernel], finals: list[FusionNode]
    ) -> list[Segment]:
        segments = super().segments(fusion, kernels, finals)
        for segment in segments:
            segment.large = False
        return segments

    def compile_batch(self, segments: list[tuple[Segment, Kinds]]) -> Any:
        return service.compile_batch([])

    def function(self, segment: Segment, kinds: Kinds) -> tuple[Callable[..., Any], Any]:
        return service.numba_callable().run_of(segment.source), None


class NumbaProgram(Executable):
    """An executable whose call is Numba code.

    All arrays inside have one axis. `shapes` and `dtypes` are those of the inputs; `values` are the
    arrays of inputs that are known.
    """

    def __init__(
        self,
        name: str,
        fusion: Fusion,
        inputs: Sequence[tuple[np.dtype, tuple[int, ...]]],
        values: dict[int, np.ndarray],
    ):
        self.title, self._inputs, self._values = name, inputs, values
        self.lines: list[str] = []
        self._blocks: dict[str, int] = {}  # elements of all small arrays, by dtype
        self._parts: list[str] = []
        super().__init__(fusion, len(inputs), NumbaTarget())

    def _finish(self, inputs: int) -> None:
        """Write the call, a function of arrays and numbers."""
        self._scope["np"] = np
        head = []
        for k, (dtype, shape) in enumerate(self._inputs):
            if k in self._values:
                self._scope[f"x{k}"] = np.ascontiguousarray(self._values[k]).reshape(-1)
            elif shape:
                error = f"{self.title}: argument {k} has another shape than {shape}"
                head.append(f"if x{k}_.shape != {shape!r}:")
                head.append(f"    raise ValueError({error!r})")
                head.append(f"x{k} = np.ascontiguousarray(x{k}_).reshape({prod(shape)})")
            else:
                self._part(f"x{k}", 1, dtype)
                head.append(f"x{k}[0] = x{k}_")
        parameters = [f"x{k}_" for k in range(inputs) if k not in self._values]
        results = [self._result(k) for k in range(len(self._fusion.outputs))]
        self.results = results
        blocks = [
            f"block_{name} = np.empty({size}, {type_name(np.dtype(name))})"
            for name, size in self._blocks.items()
        ]
        lines = [*blocks, *self._parts, *head]
        self.head = [f"def call({', '.join(parameters)}):", *[f"    {line}" for line in lines]]
        self.body = [f"    {line}" for line in self.lines]

    def text(self, result: str) -> str:
        """Return the text of the call, for the expression of its result."""
        return "\n".join([*self.head, *self.body, f"    return {result}", ""])

    def known(self, position: int) -> np.ndarray:
        """Return the array of an input that is known."""
        return self._values[position]

    @property
    def scope(self) -> dict[str, Any]:
        return self._scope

    def _name(self, node: FusionNode) -> str:
        name = self._names[node]
        if name not in self._scope:
            if isinstance(node, ArrayNode) and node.constant is not None:
                self._scope[name] = np.ascontiguousarray(node.constant).reshape(-1)
            elif isinstance(node, LiteralNode):
                self._scope[name] = np.array([node.number], node.dtype)
        return name

    def _make_arrays(self, nodes: list[FusionNode]) -> None:
        returned = {base(output) for output in self._fusion.outputs if output.shape}
        for node in nodes:
            name, size = self._name(node), prod(self._shape(node))
            if node not in returned and size <= MAX_PART:
                self._part(name, size, node.dtype)
            else:
                self.lines.append(f"{name} = np.empty({size}, {type_name(node.dtype)})")

    def _part(self, name: str, size: int, dtype: np.dtype) -> None:
        """Make an array a part of a block: one allocation serves all small arrays of a dtype."""
        start = self._blocks.get(dtype.name, 0)
        self._blocks[dtype.name] = start + size
        self._parts.append(f"{name} = block_{dtype.name}[{start} : {start + size}]")

    def _run_small(self, segment: Segment, number: int, written: list[FusionNode]) -> None:
        function, _ = self._target.function(segment, self._kinds(segment))
        run = self._bind(f"segment_{number}", function)
        sizes = self._bind(f"sizes_{number}", segment.sizes.array())
        self._make_arrays([node for node in written if node in segment.arrays])
        names = [self._name(node) for node in segment.arrays]
        self.lines.append(f"{run}({', '.join([*names, sizes])})")

    def _run_opaque(self, node: OpaqueNode) -> None:
        name = node.name if node.op is None else node.op.label
        write = OPERATIONS.get(name)
        if write is None:
            raise UnsupportedCodeError(
                f"{self.title}: the operation {name!r} has no form in Numba code: it can only "
                "be part of a program that is called from Python"
            )
        operands = []
        for operand in node.operands:
            name, shape = self._name(base(operand)), operand.shape
            operands.append(f"{name}.reshape({shape!r})" if shape else f"{name}[0]")
        text = write(operands, node)
        self.lines.append(f"{self._name(node)} = np.ascontiguousarray({text}).reshape({node.size})")

    def _result(self, position: int) -> str:
        node = self._fusion.outputs[position]
        name = self._name(base(node))
        if not node.shape:
            return f"{name}[0]"
        fresh = not base(node).is_input and base(node) not in map(
            base, self._fusion.outputs[:position]
        )
        return (
            f"{name}.reshape({node.shape!r})" if fresh else f"{name}.copy().reshape({node.shape!r})"
        )


def _product(operands: list[str], node: OpaqueNode) -> str:
    left, right = operands
    if any(len(operand.shape) > 2 for operand in node.operands):
        raise UnsupportedCodeError("products of stacks of matrices have no form in Numba code")
    left += ".T" * bool(node.params.get("transpose_a") or node.params.get("adjoint_a"))
    right += ".T" * bool(node.params.get("transpose_b") or node.params.get("adjoint_b"))
    return f"np.dot(np.ascontiguousarray({left}), np.ascontiguousarray({right}))"


def _transpose(operands: list[str], node: OpaqueNode) -> str:
    return f"np.transpose({operands[0]}, {tuple(node.params['perm'])!r})"


def _of_linalg(name: str) -> Callable[[list[str], OpaqueNode], str]:
    def write(operands: list[str], node: OpaqueNode) -> str:
        if any(len(operand.shape) > 2 for operand in node.operands):
            raise UnsupportedCodeError(f"{name} of stacks of matrices has no form in Numba code")
        return f"np.linalg.{name}({', '.join(operands)})"

    return write


OPERATIONS: dict[str, Callable[[list[str], OpaqueNode], str]] = {
    **dict.fromkeys(("matmul", "matvec", "dot"), _product),
    "transpose": _transpose,
    "solve": _of_linalg("solve"),
    "inv": _of_linalg("inv"),
    "cholesky": _of_linalg("cholesky"),
}
"""Operations on arrays, by name, as expressions of Numba code."""
