"""Arrays with a short last axis, as one array for each of its elements.

The differences of all pairs of points, ``x[:, None] - y[None]``, have three axes, and operands that
repeat along different ones: no loop over rows and columns has such elements. Without the last axis,
the operands are a number per row and one per column, so that one loop computes the differences,
their sums and their gradients, and stores none of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from .simplify import simplify
from .values import FuncGraph, Value, operation, reach, reshaped, with_operands

MAX_COMPONENTS = 4
MIN_PAIRS = 512
"""So many pairs for each element of the last axis make up for the operations that take arrays apart
and join them: at 100 x 100 pairs programs are 1.9 to 5 times as fast, at 300 x 300 2.6 to 8."""


def by_components(graph: FuncGraph) -> FuncGraph:
    """Return a graph in which arrays of pairs have no short last axis, if only sums read them."""
    values = graph.values()
    pairs = [value for value in values if _may_split(value) and any(_repeats(value))]
    if not pairs:
        return graph
    readers: dict[Value, list[Value]] = {value: [] for value in values}
    for value in values:
        for operand in value.inputs:
            readers[operand].append(value)

    def neighbours(value: Value) -> Iterable[Value]:
        near = [*value.inputs, *readers[value]]
        near = [x for x in near if not isinstance(x.aval, list)]  # a loop has several results
        return [x for x in near if x.name != "sum" and x.shape == value.shape]

    split: set[Value] = set()
    for value in pairs:
        if value not in split:
            group = set(reach([value], neighbours))
            users = {user for member in group for user in readers[member]} - group
            is_read = any(output in group for output in graph.outputs)
            if not is_read and all(map(_may_split, group)) and all(map(_is_sum, users)):
                split |= group
    return simplify(_Components(split).rebuilt(graph)) if split else graph


def _may_split(value: Value) -> bool:
    """Return whether the operation is one on each element of a last axis that is short."""
    is_split = value.kind == "elementwise" or value.name == "broadcast_to"
    if not is_split or len(value.shape) < 3:
        return False
    *shape, count = value.shape
    return 1 < count <= MAX_COMPONENTS and prod(shape) >= MIN_PAIRS * count


def _repeats(value: Value) -> Iterable[bool]:
    """Yield for each operand whether it repeats along an axis between two others."""
    for operand in value.inputs:
        padded = (1,) * (len(value.shape) - len(operand.shape)) + operand.shape
        kept = [own == size for own, size in zip(padded, value.shape, strict=True) if size != 1]
        first = kept.index(True) if True in kept else len(kept)
        yield kept[-1] and not all(kept[first:])


def _is_sum(value: Value) -> bool:
    return value.name == "sum" and value.dtype == value.inputs[0].dtype


class _Components:
    """The values of a graph, built again; those in `split` as lists of components."""

    def __init__(self, split: set[Value]):
        self._split = split
        self._built: dict[Value, Value] = {}
        self._components: dict[Value, list[Value]] = {}

    def rebuilt(self, graph: FuncGraph) -> FuncGraph:
        built, components = self._built, self._components
        for value in graph.values():
            if value in self._split:
                components[value] = self._components_of(value)
            elif value.inputs and value.inputs[0] in components:
                built[value] = self._sum(value)
            else:
                built[value] = with_operands(value, [built[x] for x in value.inputs])
        return FuncGraph(graph.inputs, [built[output] for output in graph.outputs])

    def _components_of(self, value: Value) -> list[Value]:
        params = dict(value.params)
        if "shape" in params:
            params["shape"] = value.shape[:-1]
        columns = [self._parts(operand, value.shape[-1]) for operand in value.inputs]
        return [operation(value.primitive, row, params) for row in zip(*columns, strict=True)]

    def _parts(self, operand: Value, count: int) -> list[Value]:
        """Return the parts of an operand along the last axis; the same one if it repeats."""
        if operand in self._components:
            return self._components[operand]
        x, shape = self._built[operand], operand.shape
        if not shape or shape[-1] == 1:
            return [reshaped(x, shape[:-1])] * count
        while x.inputs and x.inputs[0].shape[-1:] == shape[-1:] and _is_view(x):
            x = x.inputs[0]
        rows = [slice(None)] * (len(x.shape) - 1)
        parts = [operation("getitem", [x], {"key": (*rows, k)}) for k in range(count)]
        return [reshaped(part, shape[:-1]) for part in parts]

    def _sum(self, value: Value) -> Value:
        parts = self._components[value.inputs[0]]
        last = len(parts[0].shape)
        axes = tuple(axis for axis in value.params["axis"] if axis != last)
        is_whole = last in value.params["axis"]
        if is_whole:
            total, *others = parts
            for part in others:
                total = operation("add", [total, part], {})
            parts = [total]
        if axes:
            params = {"axis": axes, "keepdims": False}
            parts = [operation("sum", [part], params) for part in parts]
        if is_whole:
            return reshaped(parts[0], value.shape)
        joined = operation("stack", parts, {"axis": len(parts[0].shape)})
        return reshaped(joined, value.shape)


def _is_view(value: Value) -> bool:
    """Return whether an operation only reshapes its operand."""
    if value.name == "getitem":
        return prod(value.shape) == prod(value.inputs[0].shape) and all(
            key is None or key == slice(None) for key in value.params["key"]
        )
    return value.name in ("reshape", "expand_dims", "squeeze")
