"""Scalarization: the body of a loop on small arrays becomes a function of single numbers.

Each element of an array becomes a node of its own. Transposes and parts of arrays only rename
elements, which happens here. Products of small matrices become arithmetic on numbers, which stay in
registers from round to round.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial, reduce
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels import elementary as kmath
from tinygrad_cg_kernels.move.gather import gather
from tinygrad_cg_kernels.runtime import promotion
from tinygrad_cg_kernels.runtime.promotion import BOOL, INT64

from ..._core.primitive import runner
from ..fusion import nodes
from ..fusion.lower import FUSED, NODES, Lowering
from ..fusion.nodes import ElementsNode, FusionNode, LiteralNode, base
from ..graph.loop_drafts import Body
from ..graph.values import FuncGraph, Value, in_order
from .array_operations import MOVING

MAX_NUMBERS = 3000
"""Loops on more numbers are not scalarized: compiling takes some 50 us for each."""
_REDUCTIONS = ("all", "any", "max", "min", "prod", "sum")
_COMBINING = {"all": kmath.logical_and, "any": kmath.logical_or, "prod": kmath.multiply}
_COMBINING |= {"max": kmath.maximum, "min": kmath.minimum, "sum": kmath.add}
MAX_CHOICES = 16
"""Comparisons choose the part of an array at an index if there are at most this many parts."""


class _NotScalarError(Exception):
    """A loop cannot be scalarized, or its arrays are not small."""


class Scalarized(NamedTuple):
    """The scalarized body of a loop: its outputs, stops and carries.

    The loop is given up when one of the numbers in `stops` is True: an index is out of range.
    `carried` are the loop variables at the start of a round.
    """

    outputs: list[ElementsNode]
    stops: list[FusionNode]
    carried: list[FusionNode]


def scalarize(graph: FuncGraph, steps: Sequence[tuple[int, Any]], body: Body) -> Scalarized | None:
    """Return the scalarized body of a loop; None if it cannot be scalarized.

    `steps` says where the body's outputs come from (see `tracing.outputs.Outputs`).
    """
    values = graph.values()
    if any(isinstance(value.aval, list) or value.dtype not in FUSED for value in values):
        return None
    if sum(prod(value.shape) for value in values if value not in graph.inputs) > MAX_NUMBERS:
        return None
    lowered = Lowering(graph)
    inputs = [lowered.nodes[value] for value in graph.inputs]
    carried = inputs[body.constants :][: body.carries]
    try:
        elements = _ScalarElements(lowered, carried)
        sources: list[Any] = [inputs, None, lowered.outputs]
        outputs = [
            elements.constants(item) if kind == 1 else elements.of(sources[kind][item])
            for kind, item in steps
        ]
    except _NotScalarError:
        return None
    avals = [value.aval for value in body.graph.outputs]
    results = [
        ElementsNode(output.shape, aval.dtype, output.ravel().tolist())
        for output, aval in zip(outputs, avals, strict=True)
    ]
    return Scalarized(results, elements.stops, carried)


class _ScalarElements:
    """The elements of a graph's values: object arrays of nodes, each of one number."""

    def __init__(self, lowered: Lowering, carried: Sequence[FusionNode]):
        self.stops: list[FusionNode] = []
        self._carried = carried
        self._nodes: dict[Any, Any] = {}
        self._values = lowered.values()
        self._arrays: dict[FusionNode, np.ndarray] = {}
        for node in in_order([*lowered.outputs, *lowered.checks], "operands"):
            if not isinstance(node, nodes.ArrayNode):
                self._arrays[node] = self._array(node).reshape(node.shape)

    def of(self, node: FusionNode) -> np.ndarray:
        """Return the elements of a value. Those of inputs are made on first use."""
        if node not in self._arrays:
            assert isinstance(node, nodes.ArrayNode)
            constant = node.constant
            if constant is not None:
                self._arrays[node] = self.constants(constant)
            elif node.size > MAX_NUMBERS:
                raise _NotScalarError
            else:
                flat = nodes.view(node, (node.size,))
                parts = [nodes.SliceNode(1, flat, k) for k in range(node.size)]
                self._arrays[node] = _objects(parts if node.size > 1 else [node], node.shape)
        return self._arrays[node]

    def number(self, number: Any, dtype: np.dtype) -> FusionNode:
        """Return the literal of a number: one node for equal numbers."""
        value = np.asarray(number, dtype)
        key = dtype, value.tobytes()
        return self._nodes.setdefault(key, LiteralNode(value[()], dtype))

    def constants(self, array: np.ndarray) -> np.ndarray:
        return _objects([self.number(item, array.dtype) for item in array.ravel()], array.shape)

    def apply(self, function: Any, *operands: FusionNode, dtype: np.dtype) -> FusionNode:
        """Return a function of numbers: one node for equal operands."""
        key = function, dtype, operands
        if key not in self._nodes:
            if len(self._nodes) > 2 * MAX_NUMBERS:
                raise _NotScalarError
            operands = nodes.in_texts(function, operands)
            self._nodes[key] = nodes.ApplyNode(function, (), dtype, operands)
        return self._nodes[key]

    def _array(self, node: FusionNode) -> np.ndarray:
        if isinstance(node, nodes.OpaqueNode):
            return self._operation(node)
        if isinstance(node, nodes.LookupNode):
            return self._look_up(node)
        if isinstance(node, nodes.RowGatherNode):
            return self._gather_in_rows(node)
        if isinstance(node, nodes.LiteralNode):
            return _objects([node], ())
        operands = [self.of(operand) for operand in node.operands]
        if isinstance(node, nodes.ApplyNode):
            return self._apply(node, operands)
        if type(node) is nodes.ReduceNode:
            return self._reduce(node, operands[0])
        return _moved(node, operands, self)

    def _apply(self, node: nodes.ApplyNode, operands: list[np.ndarray]) -> np.ndarray:
        repeated = [np.broadcast_to(operand, node.shape).ravel() for operand in operands]
        elements = zip(*repeated, strict=True)
        results = [self.apply(node.function, *some, dtype=node.dtype) for some in elements]
        return _objects(results, node.shape)

    def _reduce(self, node: Any, x: np.ndarray) -> np.ndarray:
        kept = [axis for axis in range(x.ndim) if axis not in node.axes]
        rows = x.transpose([*kept, *node.axes]).reshape(prod(x.shape[k] for k in kept), -1)
        combine = partial(self.apply, _COMBINING[node.name], dtype=node.dtype)
        return _objects([reduce(combine, row) for row in rows], node.shape)

    def _operation(self, node: nodes.OpaqueNode) -> np.ndarray:
        if node.name == "positions":
            return self._positions(node)
        value = self._values.get(node)
        if value is None or not value.name:
            raise _NotScalarError
        name = value.name
        if name == "gather" and value.inputs[1].array is None:
            return self._gather(value, *node.operands)
        operands = [self.of(operand) for operand in node.operands]
        if name in ("matmul", "matvec"):
            return self._product(value, *operands)
        if name in _REDUCTIONS and value.inputs[0].dtype == value.dtype:
            reduced = nodes.reduce(name, node.operands[0], value.params["axis"], False)
            if isinstance(reduced, nodes.ReduceNode):
                return self._reduce(reduced, operands[0])
            return operands[0]  # each row has one element
        if name in ("gather_adjoint", "getitem_adjoint"):
            return self._add_up(value, operands)
        if value.primitive.decomposition is not None:
            return self._decompose(value, node)
        if name not in MOVING or any(operand.dtype != value.dtype for operand in value.inputs):
            raise _NotScalarError
        return self._move(value, operands)

    def _decompose(self, value: Value, node: nodes.OpaqueNode) -> np.ndarray:
        """Return the elements of an operation, computed by its decomposition."""
        operands = [nodes.cast(operand, value.dtype) for operand in node.operands]
        result = value.primitive.decomposition(NODES, *operands, **value.params)
        if result is None:
            raise _NotScalarError
        for part in in_order([result], "operands"):
            if part not in self._arrays and not isinstance(part, nodes.ArrayNode):
                self._arrays[part] = self._array(part).reshape(part.shape)
        return self.of(result)

    def _positions(self, node: nodes.OpaqueNode) -> np.ndarray:
        """Return the elements of indices that are counted from 0."""
        size, parts = node.run.keywords["size"], node.run.keywords["parts"]
        indices = self.of(node.operands[0])
        if parts > 1:
            raise _NotScalarError
        return _objects([self._index(at, size) for at in indices.ravel()], node.shape)

    def _gather(self, value: Value, table: FusionNode, index: FusionNode) -> np.ndarray:
        """Return the part of an array at one index, for example the loop's counter."""
        axis = value.params["axis"]
        if index.size != 1 or value.params["batch_dims"]:
            raise _NotScalarError
        (at,) = self.of(index).ravel()
        return self._part(table, axis, self._index(at, table.shape[axis])).reshape(value.shape)

    def _look_up(self, node: nodes.LookupNode) -> np.ndarray:
        table, positions = node.operands
        parts = [self._part(table, 0, at).ravel() for at in self.of(positions).ravel()]
        return np.array(parts, object)

    def _gather_in_rows(self, node: nodes.RowGatherNode) -> np.ndarray:
        x, positions = map(self.of, node.operands)
        rows = x.reshape(positions.size, -1)
        pairs = zip(rows, positions.ravel(), strict=True)
        return _objects([self._one_of(row[:, None], at)[0] for row, at in pairs], node.shape)

    def _part(self, table: FusionNode, axis: int, at: FusionNode) -> np.ndarray:
        array = base(table)
        is_given = isinstance(array, nodes.ArrayNode) and array.constant is None
        if axis == 0 and is_given and array not in self._carried:
            return self._read(array, at, table.shape[1:])
        return self._one_of(np.moveaxis(self.of(table), axis, 0), at)

    def _one_of(self, parts: np.ndarray, at: FusionNode) -> np.ndarray:
        """Return the elements of the part at a non-negative index."""
        shape, parts = parts.shape[1:], parts.reshape(len(parts), -1)
        if isinstance(at, LiteralNode):
            return parts[int(at.number)].reshape(shape)
        if len(parts) > MAX_CHOICES:
            raise _NotScalarError
        chosen = list(parts[-1])
        for k, part in enumerate(parts[:-1]):
            chosen = [self._choose(at, k, *pair) for pair in zip(part, chosen, strict=True)]
        return _objects(chosen, shape)

    def _index(self, at: FusionNode, size: int) -> FusionNode:
        """Return an index counted from 0. If it is out of range, it is 0 and the loop stops."""
        number = partial(self.number, dtype=INT64)
        if at.dtype != INT64:
            at = self.apply(nodes.CAST, at, dtype=INT64)
        is_negative = self.apply(kmath.less, at, number(0), dtype=BOOL)
        wrapped = self.apply(kmath.add, at, number(size), dtype=INT64)
        at = self.apply(kmath.where, is_negative, wrapped, at, dtype=INT64)
        below = self.apply(kmath.less, at, number(0), dtype=BOOL)
        above = self.apply(kmath.greater_equal, at, number(size), dtype=BOOL)
        stop = self.apply(kmath.logical_or, below, above, dtype=BOOL)
        if stop not in self.stops:
            self.stops.append(stop)
        return self.apply(kmath.where, stop, number(0), at, dtype=INT64)

    def _read(self, table: FusionNode, at: FusionNode, shape: tuple[int, ...]) -> np.ndarray:
        """Return the elements of a part of an array, read from memory."""
        columns = prod(shape)
        start = self.apply(kmath.multiply, at, self.number(columns, INT64), dtype=INT64)
        parts = []
        for k in range(columns):
            position = self.apply(kmath.add, start, self.number(k, INT64), dtype=INT64)
            key = "read", table, position
            node = nodes.LookupNode((), table.dtype, (table, position))
            parts.append(self._nodes.setdefault(key, node))
        return _objects(parts, shape)

    def _choose(self, at: FusionNode, k: int, x: FusionNode, y: FusionNode) -> FusionNode:
        """Return the first of two elements if the index is k, else the second."""
        if x is y:
            return x
        test = self.apply(kmath.equal, at, self.number(k, INT64), dtype=BOOL)
        return self.apply(kmath.where, test, x, y, dtype=x.dtype)

    def _product(self, value: Value, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return a matrix product, with terms added in order."""
        if any(operand.dtype != value.dtype for operand in value.inputs):
            raise _NotScalarError
        if prod(value.shape) * x.shape[-1] > MAX_NUMBERS:
            raise _NotScalarError
        if value.name == "matvec":
            y = y[..., None]
        batch = promotion.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        left = np.broadcast_to(x, (*batch, *x.shape[-2:]))
        right = np.broadcast_to(y, (*batch, *y.shape[-2:])).swapaxes(-1, -2)
        product = np.empty((*batch, left.shape[-2], right.shape[-2]), object)
        add = partial(self.apply, kmath.add, dtype=value.dtype)
        for index in np.ndindex(product.shape):
            row, column = left[index[:-1]], right[(*index[:-2], index[-1])]
            pairs = zip(row, column, strict=True)
            terms = [self.apply(kmath.multiply, *pair, dtype=value.dtype) for pair in pairs]
            product[index] = reduce(add, terms) if terms else self.number(0, value.dtype)
        return product.reshape(value.shape)

    def _move(self, value: Value, operands: list[np.ndarray]) -> np.ndarray:
        """Return the result of an operation that moves elements, by moving their positions."""
        elements: list[Any] = []
        indices = []
        for operand in operands:
            start = len(elements)
            indices.append(np.arange(start, start + operand.size).reshape(operand.shape))
            elements += list(operand.ravel())
        moved = runner(value.primitive, value.params)(*indices)
        return _objects([elements[k] for k in np.asarray(moved).ravel()], value.shape)

    def _add_up(self, value: Value, operands: list[np.ndarray]) -> np.ndarray:
        """Return zeros with elements added at indices."""
        shape, zero = value.shape, self.number(0, value.dtype)
        if value.inputs[0].dtype != value.dtype:
            raise _NotScalarError
        indices = np.arange(prod(shape)).reshape(shape)
        if value.name == "getitem_adjoint":
            indices = indices[value.params["key"]]
        elif value.inputs[1].array is not None:
            axis, shared = value.params["axis"], value.params["batch_dims"]
            indices = gather(indices, value.inputs[1].array, axis, shared)
        else:
            return self._put(value, *operands)
        sums, add = np.full(prod(shape), None), partial(self.apply, kmath.add, dtype=value.dtype)
        for to, element in zip(indices.ravel(), operands[0].ravel(), strict=True):
            sums[to] = element if sums[to] is None else add(sums[to], element)
        return _objects([zero if total is None else total for total in sums], shape)

    def _put(self, value: Value, x: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return zeros, with elements at one index that is computed in the loop."""
        axis, zero = value.params["axis"], self.number(0, value.dtype)
        if index.size != 1 or value.params["batch_dims"] or value.shape[axis] > MAX_CHOICES:
            raise _NotScalarError
        at = self._index(index.ravel()[0], value.shape[axis])
        result = np.empty(value.shape, object)
        rows, elements = np.moveaxis(result, axis, 0), x.reshape(np.delete(value.shape, axis))
        for k, *rest in np.ndindex(rows.shape):
            element: Any = elements[tuple(rest)]
            rows[(k, *rest)] = self._choose(at, k, element, zero)
        return result


def _objects(items: Iterable[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Return items as an array of objects."""
    array = np.empty(prod(shape), object)
    array[:] = list(items)
    return array.reshape(shape)


def _moved(node: FusionNode, operands: list[np.ndarray], elements: _ScalarElements) -> np.ndarray:
    """Return the elements of a node that moves the elements of its operand."""
    x = operands[0].ravel()
    if type(node) is nodes.ViewNode:
        return x
    if type(node) is nodes.SliceNode:
        return x[node.start : node.start + node.size]
    if type(node) is nodes.PadNode:
        padded = _objects([elements.number(0, node.dtype)] * node.size, (node.size,))
        padded[node.start : node.start + x.size] = x
        return padded
    if isinstance(node, nodes.ColumnsNode):
        return x.reshape(-1, node.width)[:, node.start : node.start + node.columns]
    if isinstance(node, nodes.TransposeNode):
        return x.reshape(-1, node.columns, node.rows).swapaxes(1, 2)
    raise _NotScalarError
