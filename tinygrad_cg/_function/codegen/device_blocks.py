"""Kernels of a GPU: the text of one kernel, from the values that fusion assigned to it.

Threads share the elements of a flat domain. In a domain of rows, each group of threads takes a row
and shares its columns. After a pass, all threads of the group have the values per row, which are
combined from partial results (see `groups` of the kernels). Values of earlier passes are computed
again, not saved. Totals and sums of columns are partial results of blocks, which another kernel
combines. Which thread adds what depends on sizes only, so each run gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygrad_cg_kernels.cuda import adapter, elementwise, groups
from tinygrad_cg_kernels.runtime import generated

from ..._core import devices
from ..fusion.domains import ELEMENT, Access
from ..fusion.fuse import Fusion, Kernel
from ..fusion.nodes import FusionNode, LiteralNode, ReduceNode, TransposeNode, base
from .blocks import Block
from .emission import INDEX, LEFT, combine, identity
from .expressions import type_name
from .loop import START, LoopCode, RowCode
from .scalars import Scalars
from .scope import BlockScope, Parameters
from .statements import Code, Expression, Name, Statement, Suite, modules, render

MAX_PARTS = 512
"""A kernel that sums columns has at most this many blocks: each has its own sums in memory. Others
that have totals have at most eight times as many."""

MAX_REPEATED = 16
"""A pass with at most this many statements loads the values of several elements at a time. Others
wait for their arithmetic more than for memory."""

THREAD = "cuda.threadIdx.x"
PART = Name("own")  # where a group's sums of columns begin


class Trees:
    """The functions of one text that combine the values of a group's threads."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}  # by the text of a function
        self.imported: set[str] = set()

    def name(self, node: ReduceNode) -> str:
        """Return the name of the function for a reduction."""
        combined = combine(node, Name("value"), Name("other"))
        if isinstance(combined, Expression):
            self.imported |= set(combined.modules)
        kind = type_name(node.dtype)
        text = groups.TREE.format(
            name="NAME", later="NAME_later", first="NAME_first", kind=kind, combined=combined
        )
        text = f"NAME_later, NAME_first = shuffles({kind})\n\n\n@device{text}".rstrip()
        return self.names.setdefault(text, f"tree_{len(self.names)}")


class DeviceLoop(LoopCode):
    """One pass over a row or a range, which threads share."""

    block: DeviceBlock
    combine = staticmethod(combine)
    column_index = Expression("{} + {}", PART, LEFT)

    @property
    def step(self) -> str:
        """Return how far apart the elements of a thread are."""
        return "cuda.gridsize(1)" if self.row is None else "group"

    def code(self) -> Code:
        """Return the statements of the pass, and those that combine its results per row."""
        self._loads: dict[Name, tuple[np.dtype, Expression]] = {}
        body = self._body()
        starts: Code = [Statement(part, identity(node)) for node, part in self.parts.items()]
        starts.append(Statement(LEFT, Expression(self.begin)))
        head = Expression(f"while {LEFT} < {{}}", self.end)  # a range would divide by the step
        ends: Code = []
        for node, part in self.parts.items():
            name = self._total(node)
            if node.result == "row":
                total = Expression(f"{self.block.trees.name(node)}({{}}, lane, group)", part)
            else:
                total = combine(node, name, part)
            ends.append(Statement(name, total))
        return [*starts, Suite(head, self._repeated(body)), *ends] if body else []

    def _repeated(self, body: Code) -> Code:
        """Return the statements for an element, or for some whose values are loaded at a time."""
        dtypes = [dtype for dtype, _ in self._loads.values()]
        each = elementwise.count_loaded(dtypes) if dtypes and len(body) <= MAX_REPEATED else 1
        code: Code = [Statement(name, load) for name, (_, load) in self._loads.items()]
        for n in range(1, each):  # the last element in place of those outside
            at = Expression(f"min({LEFT} + {n} * {self.step}, {{}} - 1)", self.end)
            for name, (_, load) in self._loads.items():
                code.append(Statement(Name(f"{name}_at_{n}"), load.replaced(LEFT, at)))
        body = [*body, Statement(LEFT, Expression(f"{LEFT} + {self.step}"))]
        code += body
        for n in range(1, each):
            values = [Statement(name, Name(f"{name}_at_{n}")) for name in self._loads]
            code.append(Suite(Expression(f"if {LEFT} < {{}}", self.end), [*values, *body]))
        return code

    def element(self, array: Name, start: Expression) -> Expression:
        return Expression("{}[{}]", array, start)

    def _find_known(self, node: FusionNode, access: Access) -> Any:
        key, count = (node, access), len(self._code)
        new = access == ELEMENT and key not in self._values
        if isinstance(node, TransposeNode) and new and not self.block.is_read(node, access):
            name = self._values[key] = self.block.fresh(node.label)
            self._code.append(Statement(name, self.block.transposed(node, LEFT)))
        value = super()._find_known(node, access)
        if len(self._code) > count:  # what was added is the load of a value
            (load,) = self._code.pop().parts()
            self._loads[value] = node.dtype, load
        return value


class DeviceRow(RowCode):
    """Statements that all threads of a group run for their row; the first thread stores."""

    block: DeviceBlock

    def __init__(self, block: BlockScope):
        super().__init__(block)
        self.stores: Code = []

    def _find(self, node: FusionNode, access: Access, column: Any) -> Any:
        if isinstance(node, TransposeNode) and not self.block.is_read(node, access):
            return self.block.transposed(node, column)
        return super()._find(node, access, column)

    def _add_store(self, statement: Statement) -> None:
        self.stores.append(statement)


class DeviceScalars(Scalars):
    """Values of one element, which every thread computes from arrays, literals and numbers."""

    def __init__(self, parameters: Parameters):
        self.array, self.number = parameters.array, parameters.offset
        self.names, self._code = {}, []
        self.literals: dict[np.dtype, list[Any]] = {}

    def literal(self, node: LiteralNode) -> Expression:
        """Return a literal as an element of an array, so that it is not part of the text."""
        numbers = self.literals.setdefault(node.dtype, [])
        numbers.append(node.number)
        return Expression(f"literals_{node.dtype.name}[{len(numbers) - 1}]")

    def tables(self) -> dict[str, Any]:
        """Return the arrays of literals, by name."""
        make = devices.library().asarray
        return {f"literals_{t.name}": make(np.array(row, t)) for t, row in self.literals.items()}

    def load(self, node: FusionNode, position: Any) -> Expression:
        return Expression("{}[{}]", self.array(node), position)


class DeviceBlock(Block):
    """The text of one kernel. Its parameters are arrays, literals, and the `numbers`."""

    def __init__(self, fusion: Fusion, kernel: Kernel):
        self.trees = Trees()
        self.threads = adapter.THREADS
        size, columns = kernel.domain
        self.rows = size // columns if columns else size
        self.group = 1
        while columns and self.group < min(columns, self.threads):
            self.group *= 2
        self.computed = DeviceScalars(self)
        super().__init__(fusion, kernel)

    def scalar(self, node: FusionNode) -> Any:
        """Return the variable of a value of one element, or the number itself."""
        return self.computed.value(node)

    @property
    def blocks(self) -> int:
        """Return how many blocks run the kernel, which depends on sizes only."""
        units = self.rows * self.group
        if self.flat:  # a thread for an element while all can run at once, and then for four
            units = max(units // 4, min(units, 2 * MAX_PARTS * self.threads))
        most = MAX_PARTS if self.columns else 8 * MAX_PARTS if self.totals else adapter.MAX_BLOCKS
        return min(adapter.blocks_for(units), most)

    @property
    def groups(self) -> int:
        """Return how many rows all blocks process at a time."""
        return self.blocks * (self.threads // self.group)

    def transposed(self, node: TransposeNode, column: Any) -> Expression:
        """Return an element of the current row of a transpose, read from the original array."""
        rows, columns = self.offset(node.rows), Name("columns")
        text = "{}[{} // {} * ({} * {}) + {} * {} + {} % {}]"
        array = self.array(base(node.operands[0]))
        return Expression(text, array, INDEX, rows, rows, columns, column, rows, INDEX, rows)

    def _flat_loop(
        self, roots: list[FusionNode], low: int, high: int, live: set[tuple[FusionNode, Access]]
    ) -> Code:
        first = f"{self.offset(low)} + cuda.grid(1)" if low else "cuda.grid(1)"
        return DeviceLoop(self, roots, first, self.offset(high), [], live).code()

    def _saves(self, last: int) -> list[tuple[FusionNode, Access]]:
        return []

    def _row_loop(self, roots: list[FusionNode], saved: list[Any], row: RowCode) -> Code:
        return DeviceLoop(self, roots, "lane", Name("end"), saved, set(), row).code()

    def _rows_body(self) -> Code:
        row = DeviceRow(self)
        code = self._row_code(row)
        if row.stores:
            code.append(Suite(Expression("if live and lane == 0"), row.stores))
        rows = self.offset(self.rows)
        head: Code = [
            Statement(INDEX, Expression("min(first + {} // group, {} - 1)", Name(THREAD), rows)),
            Statement(Name("live"), Expression("first + {} // group < {}", Name(THREAD), rows)),
            Statement(Name("end"), Expression("columns if live else 0")),
            Statement(START, Expression("{} * columns", INDEX)),
        ]
        text = "for first in range(cuda.blockIdx.x * together, {}, cuda.gridDim.x * together)"
        return [Suite(Expression(text, rows), [*head, *code])]

    def source(self) -> tuple[str, list[Any]]:
        """Return the text of the kernel, and its arguments, except numbers.

        These are nodes for their arrays, nodes with a number of partial results, and literals.
        """
        totals = {node: f"total_{self.names[node]}" for node in self.totals}
        scalars = self.computed.take()
        lines = render(scalars)
        if not self.flat:
            lines += ["    together = cuda.blockDim.x // group", f"    lane = {THREAD} % group"]
        if self.columns:
            own = f"(cuda.blockIdx.x * together + {THREAD} // group) * columns"
            lines += [f"    {PART} = {own}", f"    for {LEFT} in range(lane, columns, group):"]
            for node in self.columns:
                target = f"{self.column_total(node)}[{PART} + {LEFT}]"
                lines.append(f"        {target} = {identity(node)}")
        lines += [f"    {name} = {identity(node)}" for node, name in totals.items()]
        lines += render(self.body)
        for node, total in totals.items():
            tree = self.trees.name(node)
            lines += [
                f"    {total} = {tree}({total}, {THREAD}, cuda.blockDim.x)",
                f"    if {THREAD} == 0:",
                f"        parts_{self.names[node]}[cuda.blockIdx.x] = {total}",
            ]
        arguments: dict[str, Any] = {name: node for node, name in self.arrays.items()}
        arguments |= {self.column_total(node): (node, self.groups) for node in self.columns}
        arguments |= {f"parts_{self.names[node]}": (node, self.blocks) for node in self.totals}
        arguments |= self.computed.tables()
        sizes = [] if self.flat else ["columns", "group"]
        names = [*arguments, *sizes, *self.numbers.values()]
        imported = self.imported | modules(scalars)
        return write_kernel(imported, self.trees, names, lines), list(arguments.values())

    @property
    def integers(self) -> list[int]:
        """Return the numbers that follow the arrays in a launch."""
        return [*([] if self.flat else [self.kernel.domain.columns, self.group]), *self.numbers]


HEAD = '''"""Generated by tinygrad_cg from a traced program, for a GPU."""

import numpy as np

{imports}from tinygrad_cg_kernels.cuda.adapter import cuda
from tinygrad_cg_kernels.cuda.adapter import device_function as device
'''
OF_TREES = "from tinygrad_cg_kernels.cuda.groups import WARP, WARPS, shuffles"


def write_kernel(
    imported: set[str], trees: Trees, names: Sequence[str], lines: Sequence[str]
) -> str:
    """Return the source of a module with one kernel."""
    imports = generated.import_lines(imported | trees.imported)
    head = HEAD.format(imports=f"{imports}\n" * bool(imports))
    if trees.names:
        head += OF_TREES
    helpers = [text.replace("NAME", name) for text, name in trees.names.items()]
    kernel = "\n".join([f"def kernel({', '.join(names)}):", *lines])
    return "\n\n\n".join([head.rstrip(), *helpers, kernel]) + "\n"
