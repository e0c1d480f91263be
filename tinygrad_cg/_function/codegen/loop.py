"""Code of one pass over a row or a range, and code that runs once per row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinygrad_cg_frontend import are_inlined

from ..fusion.domains import ELEMENT, ROW, Access
from ..fusion.nodes import FusionNode, LiteralNode, PadNode, ReduceNode, TransposeNode
from ..graph.values import in_turn
from .emission import INDEX, LEFT, TILE_ROW, combine, combine_any_order, emitter, identity
from .expressions import call
from .scope import BlockScope
from .statements import Code, Expression, Name, Statement, Suite, modules, reads, render

CHUNK = 1024
"""Each chunk of this many elements has its own partial result, to keep rounding errors small."""

FAILED, SIZE, START = map(Name, ("failed", "size", "start"))
"""Variables of block functions: whether the quick formula failed for an element of the chunk, the
size of the chunk, and the position of the row's first element."""


class RowCode:
    """Statements that run once per row, before the next pass."""

    def __init__(self, block: BlockScope):
        self.block = block
        self.operands = block.operands
        self.names: dict[tuple[FusionNode, Access, Any], Name] = {}
        self._code: Code = []

    def take(self) -> Code:
        """Return the statements added since the last call."""
        code, self._code = self._code, []
        return code

    def total(self, node: FusionNode) -> Name:
        return Name(f"row_{self.block.names[node]}")

    def value(self, node: FusionNode, access: Access, column: Any = None) -> Any:
        """Return the variable of a value per row, or of the row's value in a column."""
        block = self.block
        if access.per == "scalar" or isinstance(node, LiteralNode):
            return block.scalar(node)
        if access.per == "anywhere":
            return block.array(node)
        key = node, access, None if access.per == "row" else column
        if key not in self.names:
            value = self._find(*key)
            if not isinstance(value, Expression):
                return value
            name = self.names[key] = block.fresh(node.label)
            self._code.append(Statement(name, value))
        return self.names[key]

    def _find(self, node: FusionNode, access: Access, column: Any) -> Any:
        block = self.block
        if (node, access) in block.saved:
            array, in_row = block.saved[node, access]
        elif block.is_read(node, access):
            array, in_row = block.array(node), access == ELEMENT
        else:
            return emitter(node).emit(self, node, self.operands(node, access), column)
        if in_row:
            return Expression("{}[{} + {}]", array, START, column)
        return self.element(array, INDEX if access.per == "row" else column)

    def element(self, array: Name, position: Any) -> Expression:
        return Expression("{}[{}]", array, position)

    def check(self, test: Callable, operands: list) -> bool:
        """Return False: values per row are never computed by a quick formula."""
        return False

    def store(self, node: FusionNode) -> None:
        """Store a value per row, or add it to a total."""
        if not isinstance(node, ReduceNode):
            self.store_in(node)
            return
        value = self.value(*self.operands(node, ROW)[0])
        total = Name(f"total_{self.block.names[node]}")
        self._add_store(Statement(total, combine(node, total, value)))

    def store_in(self, node: FusionNode) -> None:
        """Store a value per row in its array."""
        target = Expression("{}[{}]", self.block.array(node), INDEX)
        self._add_store(Statement(target, self.value(node, ROW)))

    def _add_store(self, statement: Statement) -> None:
        self._code.append(statement)


class LoopCode:
    """One pass over a row, or over a range of flat data, chunk by chunk.

    The pass computes `roots`. It also computes the values in `saved` and stores them for a later
    pass. The paddings in `live` are not zero in this range; all others are.
    """

    combine = staticmethod(combine_any_order)  # a partial result with an element
    column_index = Expression("{}", LEFT)  # of the current elements among sums of columns

    def __init__(
        self,
        block: BlockScope,
        roots: list[FusionNode],
        begin: Any,
        end: Any,
        saved: list[tuple[FusionNode, Access]],
        live: set[tuple[FusionNode, Access]],
        row: RowCode | None = None,
    ):
        self.block, self.roots, self.begin, self.end = block, roots, begin, end
        self.saved, self.live, self.row = saved, live, row
        self.array = block.array
        self.sections: dict[str, tuple[Name, Expression]] = {}  # by the text of each
        self.reductions = [node for node in roots if isinstance(node, ReduceNode)]
        split = [node for node in self.reductions if node.result != "column"]
        self.parts = {node: block.fresh("part") for node in split}
        self.fast, self.guarded = False, 0

    def code(self) -> Code:
        """Return the statements of the pass.

        Each chunk starts new partial results. Some functions have a quick formula that holds for
        nearly all arguments. The chunk is first computed by these formulas, with a flag that says
        whether all of them held. If one did not, a function of its own computes the chunk again.
        If there are too many such functions to inline, the vector functions that are called do
        this themselves.
        """
        body = self._body()
        general: Code | None = None
        repeats = len(self.parts) == len(self.reductions)  # the chunk may be computed twice
        if repeats and self.guarded and are_inlined(self.guarded):
            general, self.fast = body, True
            body = self._body()
        totals = [(node, self._total(node)) for node in self.parts]
        rows = [(node, name) for node, name in totals if node.result == "row"]
        starts: Code = [Statement(name, identity(node)) for node, name in rows]
        parts: Code = [Statement(part, identity(node)) for node, part in self.parts.items()]
        chunk: Code = [Statement(SIZE, Expression(f"min({CHUNK}, {{}} - {{}})", self.end, LEFT))]
        chunk += [Statement(*section) for section in self.sections.values()]
        counted = Expression("for j in range(np.uintp({}))", SIZE)
        if general is not None:
            again = self._outline([*parts, Suite(counted, general)])
            chunk += [Statement(FAILED, "False"), *parts, Suite(counted, body)]
            chunk.append(Suite(Expression("if {}", FAILED), [again]))
        else:
            chunk += [*parts, Suite(counted, body)]
        chunk += [Statement(name, combine(node, name, self.parts[node])) for node, name in totals]
        if not self.parts and general is None:  # one chunk of any size
            chunk[0] = Statement(SIZE, Expression("max({} - {}, 0)", self.end, LEFT))
            return [Statement(LEFT, self.begin), *chunk]
        head = Expression(f"for {{}} in range({{}}, {{}}, {CHUNK})", LEFT, self.begin, self.end)
        return [*starts, Suite(head, chunk)]

    def _outline(self, code: Code) -> Statement:
        """Move statements that seldom run to a new function, to save registers; return the call."""
        block = self.block
        words = reads(code)
        sections = [section for section in self.sections.values() if section[0] in words]
        code = [*[Statement(*section) for section in sections], *code]
        words = reads(code)
        names = [LEFT, SIZE, START, TILE_ROW, *block.parameters]
        if self.row is not None:
            names += [*self.row.names.values(), *map(self.row.total, block.names)]
        arguments = [name for name in dict.fromkeys(names) if name in words]
        results = "".join(f"{part}, " for part in self.parts.values()).rstrip()
        call = f"{block.name}_far_{len(block.helpers)}({', '.join(arguments)})"
        head = ["@jitable", f"def {call}:", "    outlined()", "    noalias()"]
        block.helpers.append("\n".join([*head, *render(code), f"    return {results or 0}"]))
        block.imported |= modules(code)
        return Statement(Name(results) if results else None, call)

    def _total(self, node: ReduceNode) -> Name:
        return Name(f"{'row' if node.result == 'row' else 'total'}_{self.block.names[node]}")

    def _body(self) -> Code:
        """Return the statements for one element."""
        self._code: Code = []
        self._values: dict[tuple[FusionNode, Access], Any] = {}
        block = self.block
        for node in self.roots:
            if not isinstance(node, ReduceNode):
                value = self.value(node, ELEMENT)
                target = self.element(block.array(node), self._index(ELEMENT))
                self._code.append(Statement(target, value))
                continue
            value = self.value(*block.operands(node, ELEMENT)[0])
            self._code.append(self._add(node, value))
        for node, access in self.saved:
            value = self.value(node, access)
            array, in_row = block.storage_of(node, access)
            if not in_row:  # otherwise it is stored as a root
                self._code.append(Statement(self.element(array, Expression("{}", LEFT)), value))
        return self._code

    def _add(self, node: ReduceNode, value: Any) -> Statement:
        """Return the statement that adds an element to a reduction."""
        if node in self.parts:
            part = self.parts[node]
            return Statement(part, self.combine(node, part, value))
        total = self.element(self.block.column_total(node), self.column_index)
        return Statement(total, combine(node, total, value))

    def element(self, array: Name, start: Expression) -> Expression:
        """Return the loop's current element in the section of an array that begins at `start`."""
        section = Expression("section({}, {}, {})", array, start, SIZE)
        text = str(section)
        if text not in self.sections:
            taken = {name for name, _ in self.sections.values()}
            name = f"{array}_part"
            while name in taken:
                name += "_"
            self.sections[text] = Name(name), section
        return Expression("{}[j]", self.sections[text][0])

    def _index(self, access: Access) -> Expression:
        """Return the index of the chunk's first element in an array with this access."""
        names = [LEFT] if self.block.flat or access.per != "element" else [START, LEFT]
        if access.shift:
            names.append(self.block.offset(access.shift))
        return Expression(" + ".join(["{}"] * len(names)), *names)

    def value(self, node: FusionNode, access: Access, column: Any = LEFT) -> Any:
        """Return the variable of a value, after adding the statements that compute it."""
        for key in in_turn(
            (node, access), self._operands, lambda key: self._find_known(*key) is not None
        ):
            own = key[0]
            value = emitter(own).emit(self, own, self._operands(key), column)
            if isinstance(value, Expression):
                name = self.block.fresh(emitter(own).stem or own.label)
                self._code.append(Statement(name, value))
                value = name
            self._values[key] = value
        return self._find_known(node, access)

    def _operands(self, key: tuple[FusionNode, Access]) -> list[tuple[FusionNode, Access]]:
        zero = isinstance(key[0], PadNode) and key not in self.live
        return [] if zero else self.block.operands(*key)

    def _find_known(self, node: FusionNode, access: Access) -> Any:
        """Return a value that is computed already, or only has to be read; None otherwise."""
        block = self.block
        if access.per == "scalar" or isinstance(node, LiteralNode):
            return block.scalar(node)
        if access.per == "row":
            assert self.row is not None
            return self.row.value(node, access)
        if access.per == "anywhere":
            return block.array(node)
        key = (node, access)
        if key not in self._values:
            if key in block.saved:
                array, in_row = block.saved[key]
                start = self._index(ELEMENT) if in_row else Expression("{}", LEFT)
            elif block.is_read(node, access):
                array, start = block.array(node), self._index(access)
            elif isinstance(node, TransposeNode):
                array, start = block.transpose(node), Expression("{} + {}", TILE_ROW, LEFT)
            else:
                return None
            name = block.fresh(array)
            self._values[key] = name
            self._code.append(Statement(name, self.element(array, start)))
        return self._values[key]

    def check(self, test: Callable, operands: list) -> bool:
        """Test the operands for a quick formula; return whether this pass may use the formula."""
        self.guarded += 1
        if self.fast:
            text = Expression("{} | (not {})", FAILED, call(test, operands))
            self._code.append(Statement(FAILED, text))
        return self.fast
