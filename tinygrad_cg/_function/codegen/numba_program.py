"""Executables as text that Numba compiles: programs to be called from Numba code.

Kernels are those of the processor, one after the other, without threads. Loops and choices are
functions of their own; `numba_operations` has the operations on arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np

from tinygrad_cg_kernels.move.array_code import part, write
from tinygrad_cg_kernels.runtime import service
from tinygrad_cg_kernels.runtime.tile_intrinsics import stack_array

from ..._core.tensor import Aval
from ...errors import UnsupportedCodeError
from ..fusion.fuse import Fusion, Kernel
from ..fusion.lower import Lowering
from ..fusion.nodes import ArrayNode, FusionNode, LiteralNode, OpaqueNode, base
from ..graph.loop_drafts import Body
from ..graph.values import FuncGraph
from .array_operations import ArrayOperations
from .executable import Executable
from .expressions import type_name
from .loop_segment import LoopLayout, LoopSegment, RoundOperation, Stage
from .numba_operations import CodeOnArrays, array_code, compiled_lines
from .rounds import GAVE_UP, TracedLoop, compile_rounds
from .segment import Segment
from .target import Kinds, Target

MAX_PART = 256  # elements of the largest array that is a part of a block
MAX_STACK = 2**10  # elements of the largest block on the stack
ROUNDS = [2**6, 2**10, 2**14, 2**18]
"""Maximal rounds of the programs for the gradient of a loop whose length is not known."""


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

    All arrays inside have one axis. `values` are the arrays of inputs that are known. Inputs and
    results of a program that is a `part` of another have one axis, too; the result is a tuple.
    """

    def __init__(
        self, name: str, graph: FuncGraph, values: dict[int, Any] | None = None, part: bool = False
    ):
        self.title, self.values, self._part_of_another = name, values or {}, part
        self._inputs = [(value.dtype, value.shape) for value in graph.inputs]
        self.lines: list[str] = []
        self._blocks: dict[str, int] = {}  # elements of all small arrays, by dtype
        self._parts: list[str] = []
        lowered = Lowering(graph)
        self._values, fusion = lowered.values(), Fusion(lowered)
        self._operations = ArrayOperations(fusion, some=True)
        super().__init__(fusion, len(self._inputs), NumbaTarget())

    def _finish(self, inputs: int) -> None:
        """Write the call, a function of arrays and numbers."""
        self.scope |= {"np": np, "write": write, "part": part, "stack_array": stack_array}
        head = []
        for k, (dtype, shape) in enumerate(self._inputs):
            if k in self.values:
                self.scope[f"x{k}"] = np.ascontiguousarray(self.values[k]).reshape(-1)
            elif shape and not self._part_of_another:
                error = f"{self.title}: argument {k} must have the shape {shape}, got another one"
                head.append(f"if x{k}_.shape != {shape!r}:")
                head.append(f"    raise ValueError({error!r})")
                head.append(f"x{k} = np.ascontiguousarray(x{k}_).reshape({prod(shape)})")
            elif not self._part_of_another:
                self._part(f"x{k}", 1, dtype)
                head.append(f"x{k}[0] = x{k}_")
        mark = "" if self._part_of_another else "_"
        parameters = [f"x{k}{mark}" for k in range(inputs) if k not in self.values]
        self.results = [self._result(k) for k in range(len(self._fusion.outputs))]
        blocks = []
        for name, size in self._blocks.items():
            empty = "stack_array" if size <= MAX_STACK else "np.empty"
            blocks.append(f"block_{name} = {empty}({size}, {type_name(np.dtype(name))})")
        arrays = [name for name, value in self.scope.items() if isinstance(value, np.ndarray)]
        for name in arrays:  # read once, because Numba copies an array wherever code reads it
            self.scope[f"{name}_data"] = self.scope.pop(name)
        copied = [f"{name} = {name}_data" for name in arrays]
        self.head = f"def call({', '.join(parameters)}):"
        self.lines = [*copied, *blocks, *self._parts, *head, *self.lines]

    def text(self, result: str) -> str:
        lines = [f"    {line}" for line in (*self.lines, f"return {result}")]
        return "\n".join([self.head, *lines, ""])

    def function(self) -> Any:
        """Return a part of another program, compiled."""
        text = self.text(f"({', '.join(self.results)},)")
        return service.numba_callable().compile_part(text, self.scope, "call")

    def _name(self, node: FusionNode) -> str:
        name = self._names.setdefault(node, f"table{len(self._names)}")
        if name not in self.scope:
            if isinstance(node, ArrayNode) and node.constant is not None:
                self.scope[name] = np.ascontiguousarray(node.constant).reshape(-1)
            elif isinstance(node, LiteralNode):
                self.scope[name] = np.array([node.number], node.dtype)
        return name

    def _make_arrays(self, nodes: list[FusionNode]) -> None:
        returned = {base(output) for output in self._fusion.outputs if output.shape}
        for node in nodes:
            name, size = self._name(node), prod(self._shape(node))
            is_small = size <= MAX_PART and node.dtype.name in np.sctypeDict
            if node not in returned and not self._part_of_another and is_small:
                self._part(name, size, node.dtype)
            else:
                self.lines.append(f"{name} = np.empty({size}, {type_name(node.dtype)})")

    def _part(self, name: str, size: int, dtype: np.dtype) -> None:
        """Make an array a part of a block: one allocation serves all small arrays of a dtype."""
        start = self._blocks.get(dtype.name, 0)
        self._blocks[dtype.name] = start + size
        self._parts.append(f"{name} = part(block_{dtype.name}, {start}, {size})")

    def _run_small(self, segment: Segment, number: int, written: list[FusionNode]) -> None:
        function, _ = self._target.function(segment, self._kinds(segment))
        run = self._bind(f"segment_{number}", function)
        sizes = self._bind(f"sizes_{number}", segment.sizes.array())
        self._make_arrays([node for node in written if node in segment.arrays])
        names = [self._name(node) for node in segment.arrays]
        self.lines.append(f"{run}({', '.join([*names, sizes])})")

    def _run_opaque(self, node: OpaqueNode) -> None:
        name, operands = self._name(node), [base(operand) for operand in node.operands]
        if self._is_constant(node):
            self._constants.add(node)
            pairs = zip(operands, node.operands, strict=True)
            arrays = [self.scope[self._name(x)].reshape(y.shape) for x, y in pairs]
            self.scope[name] = np.ascontiguousarray(node.run(*arrays)).reshape(-1)
            return
        if node in self._operations.unread:
            return
        names = [self._name(operand) for operand in operands]
        operation = self._operations.by_node.get(node)
        part = next((node.params[key] for key in ("loop", "choice") if key in node.params), None)
        if isinstance(node.run, itemgetter):
            self.lines.append(f"{name} = {names[0]}[{node.run(range(2**20))}]")
        elif operation is not None:
            self._run_in_segment(node, operation)
        elif part is not None:
            function = part_function(part, [Aval(x.shape, x.dtype) for x in node.operands])
            self.lines.append(f"{name} = {self._bind(f'run_{name}', function)}({', '.join(names)})")
        else:
            self._run_code(node, names, self._code(node))

    def _code(self, node: OpaqueNode) -> CodeOnArrays:
        """Return the code of an operation; raise an error if it has none."""
        code = array_code(node, getattr(self._values.get(node), "aval", None))
        if code is not None:
            return code
        what, remedy = f"`{node.label}`", "call the function from Python"
        if any(x.dtype == np.float16 for x in (node, *node.operands)):
            what, remedy = "float16", "pass float32"
        what = f"{self.title}: {what} is not supported in Numba code: {remedy}"
        error = UnsupportedCodeError(what)
        error.operation = node.label
        raise error

    def _run_in_segment(self, node: OpaqueNode, operation: RoundOperation) -> None:
        """Add an operation that compiled loops have, as a loop of one round."""
        segment = LoopSegment([Stage([operation], (), ())])
        everything = FuncGraph((), ())
        body = Body(node.label, everything, 2**30, 0, 1, False, False, False)
        segment.write_rounds(LoopLayout(body, {}, {}, []))
        table = segment.sizes.array()
        rounds = service.numba_callable().run_of(segment.source, "rounds")
        scope = {"rounds": rounds, "table": table}
        lines = ["sizes = table.copy()" if segment.ufuncs else "sizes = table"]
        for position, (ufunc, dtype) in segment.ufuncs.items():
            table[position] = 0  # it is another one in each process
            scope[f"loop{position}"] = service.numba_callable().loop_address(ufunc, dtype)
            lines.append(f"sizes[{position}] = loop{position}()")
        names = [f"x{k}" for k in range(len(segment.arrays))]
        lines += ["plan = np.array([0, 1])", f"rounds({', '.join(names)}, plan, sizes)"]
        error = f"{self.title}: {node.label}{GAVE_UP}"
        lines += ["if plan[0] < 0:", f"    raise ValueError({error!r})"]
        self._make_arrays([node])
        run = self._bind(f"run_{self._name(node)}", compiled_lines(len(names), lines, scope))
        self.lines.append(f"{run}({', '.join(map(self._name, segment.arrays))})")

    def _run_code(self, node: OpaqueNode, names: list[str], code: CodeOnArrays) -> None:
        name, result = self._name(node), node.dtype if code.result is None else code.result
        run = self._bind(f"function_{name}", service.numba_callable().compiled(code.function))
        dtypes = code.dtypes or [x.dtype for x in node.operands]
        target = name if result == node.dtype else f"wide_{name}"
        texts = [] if code.returns else [target]
        for text, x, dtype in zip(names, node.operands, dtypes, strict=True):
            texts.append(text if x.dtype == dtype else f"{text}.astype({type_name(dtype)})")
        if code.shapes is not None:
            pairs = zip(texts, code.shapes, strict=True)
            texts = [x if shape is None else f"{x}.reshape({shape!r})" for x, shape in pairs]
        for k, table in enumerate(code.tables):
            texts.append(self._bind(f"table{k}_{name}", table) + "()" * callable(table))
        line = f"{run}({', '.join(texts)})"
        if code.returns:
            self.lines.append(f"{name} = {line}{'' if node.dtype == object else '[0]'}")
            return
        self._make_arrays([node])
        if target == name:
            self.lines.append(line)
        else:
            empty = f"{target} = np.empty({node.size}, {type_name(result)})"
            self.lines += [empty, line, f"write({name}, {target})"]

    def _result(self, position: int) -> str:
        node = self._fusion.outputs[position]
        own, earlier = base(node), map(base, self._fusion.outputs[:position])
        name = self._name(own)
        if not (node.shape or self._part_of_another):
            return f"{name}[0]"
        if own.is_input or own in self._constants or own in earlier:
            name = f"{name}.copy()"
        return name if self._part_of_another else f"{name}.reshape({node.shape!r})"


def part_function(part: Any, avals: Sequence[Aval]) -> Any:
    """Return a loop or a choice as a function from arrays of one axis to a tuple of such arrays."""
    if hasattr(part, "graphs"):
        return _choice(part)
    return _loop(part.traced()) if hasattr(part, "traced") else _bounded(part, avals)


def _choice(choice: Any) -> Any:
    count = len(choice.graphs[0].inputs)
    operands = ", ".join([f"x{1 + k}" for k in range(count)])
    scope, lines = {}, []
    for k, graph in enumerate(choice.graphs):
        scope[f"branch{k}"] = NumbaProgram(choice.label, graph, part=True).function()
        lines += [f"if x0[0] == {k}:", f"    return branch{k}({operands})"]
    lines[-2:] = [f"return branch{len(choice.graphs) - 1}({operands})"]
    return compiled_lines(1 + count, lines, scope)


def _loop(loop: TracedLoop) -> Any:
    body, count = loop.body, len(loop.body.graph.inputs)

    def compiler(source: service.TextSource, _: Any) -> Any:
        return service.numba_callable().run_of(source.text, "rounds"), None

    compiled = compile_rounds(loop, None, compiler)
    if compiled is not None:
        return compiled_lines(count, *compiled.numba_lines())
    program = NumbaProgram(body.name, body.graph, part=True)
    first, last = body.constants, body.constants + body.carries
    sizes = enumerate([prod(x.shape) for x in body.graph.inputs])
    slices = [f"x{k}[i * {size} : (i + 1) * {size}]" for k, size in sizes]
    operands = [f"x{k}" for k in range(first)] + [f"carry{k}" for k in range(body.carries)]
    carried = [f"carry{k} = x{first + k}.copy()" for k in range(body.carries)]
    until, length = body.length is None, body.length or 0
    new = "zeros" if body.limited else "empty"
    made, kept = [], []
    for r, row in enumerate(body.rows):
        size = prod(row.shape)
        made.append(f"row{r} = np.{new}({length * size}, {type_name(row.dtype)})")
        kept.append(f"    write(row{r}[i * {size} :], results[{body.carries + r}])")
    lines = [*carried, *made, f"n = {'x0[0]' if body.limited else length}", "count = 0"]
    lines.append(f"while carry{body.carries - 1}[0]:" if until else "while count < n:")
    lines.append(f"    i = {'n - 1 - count' if body.reverse else 'count'}")
    lines.append(f"    results = body({', '.join([*operands, *slices[last:]])})")
    lines += [f"    carry{k} = results[{k}]" for k in range(body.carries)]
    ends = [f"carry{k}" for k in range(body.carries)]
    ends += ["np.array([count])"] if until else [f"row{r}" for r in range(len(body.rows))]
    lines += [*kept, "    count += 1", f"return ({', '.join(ends)},)"]
    return compiled_lines(count, lines, {"body": program.function()})


def _bounded(loop: Any, avals: Sequence[Aval]) -> Any:
    """Return the gradient of a loop whose length is not known, for at most 2**18 rounds."""
    scope, lines = {}, []
    operands = ", ".join([f"x{k}" for k in range(len(avals))])
    for most in ROUNDS:
        outputs, captured = loop.program(most, avals)
        values = dict(enumerate(captured, len(avals)))
        program = NumbaProgram(loop.name, outputs.whole, values, part=True)
        scope[f"most{most}"] = program.function()
        lines += [f"if x0[0] <= {most}:", f"    return most{most}({operands})"]
    error = f"{loop.name}: in Numba code, a loop has at most {ROUNDS[-1]} rounds"
    return compiled_lines(len(avals), [*lines, f"raise ValueError({error!r})"], scope)
