"""The target of programs on a GPU: each fused kernel is a CUDA kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.cuda import adapter, elementwise, graphs, programs
from tinygrad_cg_kernels.cuda.launches import Place, Prepared

from ..._core import devices
from ..._core.devices import number
from ..fusion.fuse import Fusion, Kernel
from ..fusion.lower import Lowering
from ..fusion.nodes import ArrayNode, FusionNode, OpaqueNode, ReduceNode, base
from ..graph.interpret import on_gpu
from ..graph.values import FuncGraph
from .device_blocks import THREAD, DeviceBlock, DeviceScalars, Trees, write_kernel
from .emission import combine, identity
from .executable import Executable
from .scalars import Sizes
from .scope import Parameters
from .statements import Code, Expression, Name, Statement, Suite, modules, render
from .target import Kinds, Target


def build(graph: FuncGraph) -> Callable[[Sequence[Any]], list[Any]]:
    """Return an executable for arrays on a GPU, of the shapes and dtypes of the graph's inputs."""
    return DeviceExecutable(graph)


build.device = devices.GPU  # pyright: ignore[reportFunctionMemberAccess]


class DeviceExecutable(Executable):
    """A compiled graph on arrays of a GPU. Scalars may be in the processor's memory.

    If a larger array is in the processor's memory, operations run one by one.
    """

    def __init__(self, graph: FuncGraph):
        super().__init__(Fusion(Lowering(graph)), len(graph.inputs), DeviceTarget())
        self._graph, self._fused = graph, self.call
        self.call = self._run

    @property
    def sources(self) -> list[str]:
        """Return the program's texts, with comments on how kernels are launched."""
        call, *kernels = self.texts
        head, *lines = call.splitlines(keepends=True)
        notes = [
            f"    # segment_{k}: {segment.repeated.note}\n"
            for k, segment in enumerate(self.dispatchers)
            if segment.repeated is not None
        ]
        return ["".join([head, *notes, *lines]), *kernels]

    def _run(self, arrays: Sequence[Any]) -> list[Any]:
        on_cpu = [not isinstance(array, devices.array_types) for array in arrays]
        with devices.memory_for("function"):
            if any(array.ndim for array in compress(arrays, on_cpu)):
                results = on_gpu(self._graph)(arrays)
            else:
                pairs = zip(arrays, on_cpu, strict=True)
                results = self._fused([number(x) if moves else x for x, moves in pairs])
        if devices.WAITS:
            devices.wait("function")
        return results


class DeviceTarget(Target):
    """CUDA kernels: one for each kernel of the program, and others that finish totals."""

    keeps_arrays = False  # the library of arrays has a pool

    def __init__(self) -> None:
        library = devices.library()
        self.names = {"empty": library.empty, "large": library.empty, "array": library.array}
        self.names["contiguous"] = elementwise.contiguous

    def segments(
        self, fusion: Fusion, kernels: list[Kernel], finals: list[FusionNode]
    ) -> list[DeviceSegment]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the kernels between two operations on arrays, as one segment."""
        blocks = [DeviceBlock(fusion, kernel) for kernel in kernels]
        return [DeviceSegment(fusion, blocks, finals)] if blocks or finals else []

    def compile_batch(self, segments: Any) -> AbstractContextManager[None]:
        """Return a context that does nothing, since kernels are compiled when they first run.

        From here on, arrays that only one segment uses belong to that segment.
        """
        for segment, _ in segments:
            others = [other for other, _ in segments if other is not segment]
            segment.keep({node for other in others for node in other.arrays})
        return nullcontext()

    def function(self, segment: Any, kinds: Kinds) -> tuple[Callable[..., Any], Any]:
        """Return a segment's ``run(*arrays, sizes)``, which knows the sizes already."""
        return segment.run, segment

    def operation(self, node: OpaqueNode) -> Callable[..., Any]:
        """Return the function that runs an operation on arrays, with its result on the GPU."""
        return lambda *arrays: _place(node.on_gpu(*arrays))

    def product(self, node: OpaqueNode, out: str, operands: list[str], is_alone: bool) -> str:
        """Return an empty line: all products are operations."""
        return ""


def _place(value: Any) -> Any:
    if type(value) is np.ndarray:
        return devices.move(value, devices.GPU)
    return [_place(item) for item in value] if isinstance(value, (list, tuple)) else value


class _Parts(NamedTuple):
    """Partial results of a reduction, which groups of threads leave in memory."""

    node: ReduceNode
    groups: int
    size: int
    dtype: np.dtype


class DeviceSegment:
    """Kernels and scalars between two operations on arrays: see `segment.Segment`.

    The `arguments` of a launch are nodes, whose arrays come from the caller or belong to the
    segment, partial results, and arrays of literals.
    """

    large = False

    def __init__(self, fusion: Fusion, blocks: list[DeviceBlock], finals: list[FusionNode]):
        self.fusion, self.blocks, self.finals = fusion, blocks, list(finals)
        self.repeated: graphs.Repeated | None = None
        self.arrays: dict[FusionNode, None] = {}
        self.tables: list[list[FusionNode]] = []
        self.sizes = Sizes()
        self.source = ""
        self._texts: list[str] = []
        self._launches: list[tuple[Prepared, list[Any]]] = []  # with the arguments that are arrays
        self._own: dict[FusionNode | _Parts, None] = {}  # what belongs to the segment
        self._totals = {node for block in blocks for node in block.totals}

    def write(self) -> None:
        """Write and compile the kernels in order. Totals are finished before their first use."""
        pending: list[_Parts] = []
        for block in self.blocks:
            source, arguments = block.source()
            for k, argument in enumerate(arguments):
                if isinstance(argument, tuple):
                    arguments[k] = self._parts(*argument)
                elif isinstance(argument, FusionNode):
                    arguments[k] = self._array(argument)
            if any(parts.node is x for parts in pending for x in arguments):
                self._finish(pending, [])
                pending = []
            self._add(source, block.blocks, arguments, block.integers)
            for parts in arguments:
                if isinstance(parts, _Parts) and parts.node in block.columns:
                    self._finish_columns(parts)
                elif isinstance(parts, _Parts):
                    pending.append(parts)
        self._finish(pending, [node for node in self.finals if node not in self._totals])
        self.source = "\n\n".join(self._texts)

    def _add(self, source: str, blocks: int, arguments: list[Any], integers: Sequence[int]) -> None:
        places = [Place(argument.dtype, argument.size) for argument in arguments]
        launch = Prepared(programs.kernel_of(source), blocks, [*places, *integers])
        self._texts.append(source)
        self._launches.append((launch, arguments))

    def _array(self, node: FusionNode) -> FusionNode:
        if node in self._totals and node not in self.finals:
            self._own[node] = None
        else:
            self.arrays.setdefault(node)
        return node

    def _parts(self, node: ReduceNode, groups: int) -> FusionNode | _Parts:
        """Return where a kernel stores partial results. If there is one, it is the result."""
        result = self._array(node)
        if groups == 1:
            return result
        parts = _Parts(node, groups, groups * node.size, node.dtype)
        self._own[parts] = None
        return parts

    def _finish_columns(self, parts: _Parts) -> None:
        """Add the kernel that combines the column sums of all groups."""
        node, trees = parts.node, Trees()
        element = "parts[k * columns + column]"
        code = _combine_parts(node, Name("total"), element, "count", trees.name(node))
        lines = [
            "    for column in range(cuda.blockIdx.x, columns, cuda.gridDim.x):",
            *render(code, "        "),
            f"        if {THREAD} == 0:",
            "            out[column] = total",
        ]
        source = write_kernel(set(), trees, ["parts", "out", "count", "columns"], lines)
        blocks = adapter.blocks_for(node.size * adapter.THREADS)
        self._add(source, blocks, [parts, node], [parts.groups, node.size])

    def _finish(self, pending: list[_Parts], finals: list[FusionNode]) -> None:
        """Add the kernel, of one block, that combines totals and computes scalars from them."""
        if not pending and not finals:
            return
        scope, trees, lines = Parameters(), Trees(), []
        scalars, arguments = DeviceScalars(scope), {}
        for parts in pending:
            node, name = parts.node, f"parts_{scope.names[parts.node]}"
            total = scalars.names[node] = Name(f"total_{scope.names[node]}")
            count, tree = scope.offset(parts.groups), trees.name(node)
            lines += render(_combine_parts(node, total, f"{name}[k]", count, tree))
            arguments[name] = parts
        stores = []
        for node in [*[parts.node for parts in pending], *finals]:
            value = scalars.value(node)
            stores.append(f"        {scope.array(node)}[0] = {value}")
        code = scalars.take()
        lines += [*render(code), f"    if {THREAD} == 0:", *stores]
        arguments |= {name: self._array(node) for node, name in scope.arrays.items()}
        arguments |= scalars.tables()
        source = write_kernel(modules(code), trees, [*arguments, *scope.numbers.values()], lines)
        self._add(source, 1, list(arguments.values()), list(scope.numbers))

    def keep(self, others: set[FusionNode]) -> None:
        """Take over written arrays that no output, no operation and none of `others` uses.

        After this the launches are complete, and they may become a CUDA graph.
        """
        opaque = [node for node in self.fusion.nodes if isinstance(node, OpaqueNode)]
        outside = [*self.fusion.outputs, *[operand for node in opaque for operand in node.operands]]
        read = {base(node) for node in outside}
        roots = [root for block in self.blocks for root in block.kernel.roots]
        written = {*self.finals, *[root for root in roots if root in self.fusion.stored]}
        for node in [array for array in self.arrays if array in written - read - others]:
            del self.arrays[node]
            self._own[node] = None
        if graphs.wanted():
            roles: list[graphs.Role] = [self._role(node, written) for node in self.arrays]
            self.repeated = graphs.Repeated(self._launch, self._make, roles, len(self._launches))

    @staticmethod
    def _role(node: FusionNode, written: set[FusionNode]) -> graphs.Role:
        if node in written:
            return "written"
        is_argument = isinstance(node, ArrayNode) and node.constant is None
        return "constant" if node.is_input and not is_argument else "read"

    def run(self, *arrays: Any) -> None:
        """Run the kernels on the arrays that they read and write, which sizes follow."""
        own_arrays = arrays[: len(self.arrays)]
        if self.repeated is None:
            self._launch(own_arrays, self._make())
        else:
            self.repeated(own_arrays)

    def _make(self) -> dict[Any, Any]:
        empty = devices.library().empty
        return {own: empty(own.size, own.dtype) for own in self._own}

    def _launch(self, arrays: Sequence[Any], own: dict[Any, Any]) -> None:
        by_node = dict(own)
        for node, array in zip(self.arrays, arrays, strict=True):
            by_node[node] = array if array.flags.c_contiguous else elementwise.contiguous(array)
        for launch, arguments in self._launches:
            launch([x if isinstance(x, devices.array_types) else by_node[x] for x in arguments])


def _combine_parts(node: ReduceNode, total: Name, part: str, count: str, tree_name: str) -> Code:
    """Return the statements by which the threads of a block combine partial results."""
    body: Code = [Statement(total, combine(node, total, Name(part)))]
    loop = Suite(Expression(f"for k in range({THREAD}, {count}, cuda.blockDim.x)"), body)
    end = Statement(total, f"{tree_name}({total}, {THREAD}, cuda.blockDim.x)")
    return [Statement(total, identity(node)), loop, end]
