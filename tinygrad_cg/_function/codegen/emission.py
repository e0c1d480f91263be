"""Emitters: how each kind of node is written in loops, once per row, and as a single number.

An emitter returns the expression of a node's value, or a name or number that holds it already. It
asks the code that is being written (`loop.LoopCode`, `loop.RowCode`, `scalars.Scalars`) for the
values of the operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary as kmath

from ..._core.kinds import is_bool, is_floating
from ..fusion import nodes
from ..fusion.domains import ELEMENT, ROW, Access
from ..fusion.lower import importable
from ..fusion.nodes import CAST, COPY, ApplyNode, FusionNode, LookupNode, ReduceNode, base
from .expressions import call, convert_expression, number_text, scalar, type_name
from .statements import Expression, Name

COLUMNS, INDEX, LEFT, TILE_ROW = map(Name, ("columns", "i", "left", "tile_row"))
"""Variables of block functions: the number of columns, the row, the first element of a chunk, and
the position of the current row among the rows of transposes."""

Pairs = list[tuple[FusionNode, Access]]


class Emitter:
    """Emitter of nodes that are loaded from memory, and base class of all others."""

    stem: str | None = None
    """Stem of the names of variables in loops; by default the node's label."""

    def emit(self, code: Any, node: FusionNode, operands: Pairs, column: Any) -> Any:
        """Return the node's value per row, or in a column; in a loop, of the current element."""
        raise TypeError(f"{node!r} is computed by no loop")

    def scalar_operands(self, node: FusionNode) -> tuple[FusionNode, ...]:
        """Return the operands that have to be computed, as scalars, before the node."""
        return ()

    def as_scalar(self, scalars: Any, node: FusionNode) -> Any:
        """Return the value of a node of one element."""
        return scalars.load(node, 0)


class _Literal(Emitter):
    def as_scalar(self, scalars: Any, node: nodes.LiteralNode) -> Any:
        return scalars.literal(node)


class _Apply(Emitter):
    def emit(self, code: Any, node: ApplyNode, operands: Pairs, column: Any) -> Any:
        values = [code.value(*operand, column) for operand in operands]
        guard = kmath.GUARDED.get(node.function)
        if guard and all(map(importable, guard)) and is_floating(node.dtype):
            test, fast = guard
            if code.check(test, values):
                return convert_expression(call(fast, values), node.dtype)
        return apply_scalar(node, values)

    def scalar_operands(self, node: ApplyNode) -> tuple[FusionNode, ...]:
        return node.operands

    def as_scalar(self, scalars: Any, node: ApplyNode) -> Any:
        return apply_scalar(node, [scalars.value(base(operand)) for operand in node.operands])


class _Reduce(Emitter):
    def emit(self, code: Any, node: Any, operands: Pairs, column: Any) -> Any:
        return code.total(node)


class _RowGather(Emitter):
    def emit(self, code: Any, node: Any, operands: Pairs, column: Any) -> Any:
        (x, inner), (index, _) = code.operands(node, ELEMENT)
        return Expression("{}", code.value(x, inner, code.value(index, ROW)))


class _Slice(Emitter):
    def emit(self, code: Any, node: Any, operands: Pairs, column: Any) -> Any:
        return code.value(*operands[0], column)

    def as_scalar(self, scalars: Any, node: nodes.SliceNode) -> Any:
        return scalars.load(base(node.operands[0]), scalars.number(node.start))


class _Pad(Emitter):
    def emit(self, code: Any, node: Any, operands: Pairs, column: Any) -> Any:
        return code.value(*operands[0], column) if operands else number_text(0, node.dtype)


class _Columns(Emitter):
    def emit(self, code: Any, node: Any, operands: Pairs, column: Any) -> Any:
        width, start = code.block.offset(node.width), code.block.offset(node.start)
        index = Expression("{} * {} + {} + {}", INDEX, width, start, column)
        return code.element(code.value(*operands[0], column), index)


class _Lookup(Emitter):
    stem = "gather"

    def emit(self, code: Any, node: LookupNode, operands: Pairs, column: Any) -> Any:
        array, index = [code.value(*operand, column) for operand in operands]
        if node.columns:
            return code.element(array, Expression("{} * {} + {}", index, COLUMNS, column))
        return Expression("{}[np.uintp({})]", array, index)

    def scalar_operands(self, node: LookupNode) -> tuple[FusionNode, ...]:
        return node.operands[1:]

    def as_scalar(self, scalars: Any, node: LookupNode) -> Any:
        table, positions = map(base, node.operands)
        return scalars.load(table, scalars.value(positions))


class _Transpose(Emitter):
    def emit(self, code: Any, node: Any, operands: Pairs, column: Any) -> Any:
        return Expression("{}[{} + {}]", code.block.transpose(node), TILE_ROW, column)


EMITTERS: dict[type[FusionNode], Emitter] = {
    ApplyNode: _Apply(),
    nodes.LiteralNode: _Literal(),
    LookupNode: _Lookup(),
    nodes.ColumnsNode: _Columns(),
    nodes.PadNode: _Pad(),
    ReduceNode: _Reduce(),
    nodes.RowGatherNode: _RowGather(),
    nodes.ScatterNode: _Apply(),
    nodes.SliceNode: _Slice(),
    nodes.TransposeNode: _Transpose(),
}
"""Emitters by class of node. Nodes of other classes are loaded from memory."""
_LOADED = Emitter()


def emitter(node: FusionNode) -> Emitter:
    return EMITTERS.get(type(node), _LOADED)


def apply_scalar(node: ApplyNode, operands: Sequence[Any]) -> Any:
    if node.function == COPY:
        return Expression("{}", operands[0])
    if node.function == CAST:
        if is_bool(node.dtype):
            return Expression("{} != 0", operands[0])
        return Expression(f"{type_name(node.dtype)}({{}})", operands[0])
    return scalar(node.function, operands, node.operands[0].dtype, node.dtype)


# Reductions ----------------------------------------------------------------------------------

_OPERATORS = {"sum": "+", "prod": "*", "any": "|", "all": "&"}
_REASSOCIATING = {"sum": "reassociating_add", "prod": "reassociating_multiply"}
_EXTREMA = {"max": kmath.maximum, "min": kmath.minimum}


def identity(node: ReduceNode) -> str:
    """Return the start value of a reduction."""
    name, dtype = node.name, node.dtype
    if name not in _EXTREMA:
        return number_text(name in ("prod", "all"), dtype)
    if is_floating(dtype):
        lowest, highest = -np.inf, np.inf
    elif is_bool(dtype):
        lowest, highest = 0, 1
    else:
        lowest, highest = np.iinfo(dtype).min, np.iinfo(dtype).max
    return number_text(lowest if name == "max" else highest, dtype)


def combine(node: ReduceNode, total: Any, value: Any) -> Any:
    """Return the total combined with a value, in exactly this order."""
    if node.name in _EXTREMA:
        return call(_EXTREMA[node.name], (total, value))
    return convert_expression(
        Expression(f"{{}} {_OPERATORS[node.name]} {{}}", total, value), node.dtype
    )


def combine_any_order(node: ReduceNode, total: Any, value: Any) -> Any:
    """Return the total combined with a value, in any order, so that LLVM vectorises the loop."""
    if is_floating(node.dtype) and node.name in _REASSOCIATING:
        return Expression(f"{_REASSOCIATING[node.name]}({{}}, {{}})", total, value)
    return combine(node, total, value)
