"""Which inputs each element of a traced program depends on, operation by operation.

Each value has a table of sets of input numbers, a row for each of its elements, or None if it
depends on no input. A rule for an operation gives the table of its result, and for second
derivatives the pairs of tables whose rows interact: the derivative of row r by inputs i and j may
be other than zero if i is in row r of the first table and j in row r of the second. An operation
without a rule depends on all elements of its operands, and all of them interact. Values are
computed along where nothing unknown enters them: indices, and constants with zeros.

The idea is that of SparseConnectivityTracer: Hill and Dalle, "Sparser, Better, Faster, Stronger:
Sparsity Detection for Efficient Automatic Differentiation", TMLR 2025.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.linear.conv import Geometry
from tinygrad_cg_kernels.sparse.index_sets import (
    Table,
    merge_rows,
    multiply_rows,
    stack_rows,
    take_rows,
    transpose_rows,
    unit_rows,
)

from .._core.kinds import is_complex, is_inexact
from .._core.primitive import OPS, runner
from .._function.graph.values import FuncGraph, OutputItem, Value
from .._rules.user_ops import Pointwise

Shape = tuple[int, ...]
Pair = tuple[Table, Table]


class Dependence(NamedTuple):
    """What is known of a value: its table, or None, and its array, or None."""

    table: Table | None = None
    array: Any = None


class Effect(NamedTuple):
    """What a rule gives: the table of the result, and the interacting pairs of tables.

    `sources` has for an operand the element that each element of the result depends on, or -1; the
    pairs of an elementwise operation have a row for each element of the result.
    """

    table: Table | None
    pairs: list[Pair] = []  # noqa: RUF012 (never changed)
    sources: dict[int, np.ndarray] = {}  # noqa: RUF012
    is_elementwise: bool = False


_INDICES = ("indices", "index")
# Transposes of selections by the selection, and its parameters with their names in the transpose.
# They add elements up, or choose among them.
_SCATTERS = {
    "getitem_adjoint": ("getitem", {"key": "key"}),
    "gather_adjoint": ("gather", {"axis": "axis", "batch_dims": "batch_dims"}),
    "add_along_axis": ("take_along_axis", {"axis": "axis"}),
    "segment_extremum": ("gather", {"axis": "batch_dims", "batch_dims": "batch_dims"}),
}
# Operations whose second derivatives are zero, apart from jumps.
_PIECEWISE = {"where", "real", "imag", "conj", "relu", "absolute"}
_PIECEWISE |= {"maximum", "minimum", "clip", "remainder", "max", "min", "sort"}
_PRODUCTS = ("multiply", "multiply_upstream", "multiply_tangent")
_QUOTIENTS = ("divide", "divide_upstream")
_WITHOUT_SLOPE = ("sign",)  # of real numbers; others say so in their record
_SOLVERS = {"solve", "triangular_solve", "tridiagonal_solve", "banded_triangular_solve", "lstsq"}
_CONVOLUTIONS = {"conv": "ifo", "conv_input": "ofi", "conv_filter": "iof"}
"""By the operation what its operands and its result are: images, filters or outputs."""
_UNCOMPUTED = ("impure", "user", "control")
_MAX_SIZE = 2**26
"""The largest table of connections, in entries, that is made of a product or convolution."""
MAX_ROUNDS = 4096
"""So many rounds of loops are followed one by one; other loops until their tables stop growing."""


def numbered(shape: Sequence[int]) -> np.ndarray:
    """Return the numbers of the elements of an array, in row-major order."""
    return np.arange(prod(shape)).reshape(shape)


def lines_of(shape: Shape, axes: Iterable[int], result: Shape) -> np.ndarray:
    """Return the row of `IndexFlow.reduced` for each element of a result of broadcast shape."""
    along = {axis % len(shape) for axis in axes}
    lines = [1 if axis in along else size for axis, size in enumerate(shape)]
    return np.broadcast_to(numbered(lines), result).reshape(-1)


Part = Callable[["IndexFlow", Value, list[Any]], tuple[list[Dependence], list[Pair]]]
PARTS: dict[str, Part] = {}
"""The rules of operations with graphs of their own, which `flow_parts` enters."""


class IndexFlow:
    """The propagation through graphs, for inputs with `columns` elements altogether."""

    def __init__(self, columns: int, second: bool = False):
        self.columns, self.second = columns, second
        self.rounds = MAX_ROUNDS
        self.is_declared = False  # whether a part has a pattern that the user declared

    def run(
        self, graph: FuncGraph, inputs: Sequence[Dependence]
    ) -> tuple[list[Dependence], list[Pair]]:
        """Return what the outputs depend on, and the pairs behind them."""
        states: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))
        order = [value for value in graph.values() if value not in states]
        uses = Counter(operand for value in order for operand in value.inputs)
        uses.update(graph.outputs)
        effects: dict[Value, tuple[Effect, Sequence[int]]] = {}
        for value in order:
            operands = [states[operand] for operand in value.inputs]
            states[value], effect, moving = self._step(value, operands)
            if self.second:
                effects[value] = effect, moving
            for operand in value.inputs:
                uses[operand] -= 1
                if not uses[operand]:
                    del states[operand]
        outputs = [states[output] for output in graph.outputs]
        return outputs, self._pairs_behind(graph, order, effects) if self.second else []

    def _pairs_behind(
        self, graph: FuncGraph, order: list[Value], effects: dict[Value, Any]
    ) -> list[Pair]:
        """Return the pairs in elements that an output has derivatives by."""
        pairs: list[Pair] = []
        reached: dict[Value, np.ndarray | None] = dict.fromkeys(graph.outputs)  # None: all
        for value in reversed(order):
            if value not in reached:
                continue
            some = reached[value]
            effect, moving = effects[value]
            if some is None or not effect.is_elementwise:
                pairs += effect.pairs
            else:
                rows = np.flatnonzero(some)
                pairs += [(take_rows(a, rows), take_rows(b, rows)) for a, b in effect.pairs]
            for k in moving:
                operand, sources = value.inputs[k], effect.sources.get(k)
                mask = some if effect.is_elementwise else None
                if sources is not None:
                    sources = sources if some is None else sources[some]
                    mask = np.zeros(prod(operand.shape), bool)
                    mask[sources[sources >= 0]] = True
                before = reached.get(operand, mask)
                reached[operand] = None if before is None or mask is None else mask | before
        return pairs

    def _step(self, value: Value, operands: list[Any]) -> tuple[Any, Effect, Sequence[int]]:
        """Return what a value depends on, its effect, and the operands it has derivatives by."""
        if isinstance(value, OutputItem):
            return operands[0][value.index], Effect(None), [0]
        primitive = value.primitive
        if primitive is None:
            return Dependence(None, value.array), Effect(None), []
        if primitive.name in PARTS:
            states, pairs = PARTS[primitive.name](self, value, operands)
            rule = value.params.get("rule")
            first = 0 if rule is None or rule.pattern is None else len(rule.avals)
            return states, Effect(None, pairs), range(first, len(operands))
        array = None
        if primitive.kind not in _UNCOMPUTED and all(x.array is not None for x in operands):
            array = runner(primitive, value.params)(*[x.array for x in operands])
        moving = [
            k
            for k, x in enumerate(operands)
            if x.table is not None and is_inexact(value.inputs[k].dtype) and _has_slope(value, k)
        ]
        several = isinstance(value.aval, list)
        avals = value.aval if several else [value.aval]
        call = OperationFlow(self, value, operands, moving)
        effect = call.effect(avals) if moving else Effect(None)
        states = [Dependence(self.spread(effect.table, aval), array) for aval in avals]
        return states if several else states[0], effect, moving

    # tables

    def empty(self, rows: int) -> Table:
        return np.zeros(rows + 1, np.int64), np.zeros(0, np.int32)

    def union(self, tables: Sequence[Table]) -> Table | None:
        distinct = {id(table): table for table in tables}
        return functools.reduce(merge_rows, distinct.values()) if tables else None

    def united(self, states: Iterable[Sequence[Dependence]]) -> list[Dependence]:
        """Return the union of what several runs know of each value."""
        tables = [[x.table for x in several if x.table is not None] for several in states]
        return [Dependence(self.union(some)) for some in tables]

    def reduced(self, table: Table, shape: Shape, axes: Iterable[int]) -> Table:
        """Return the union along axes, a row for each element of the other axes."""
        axes = [axis % len(shape) for axis in axes]
        rest = [axis for axis in range(len(shape)) if axis not in axes]
        count, lines = (prod([shape[axis] for axis in some]) for some in (axes, rest))
        members = numbered(shape).transpose(*rest, *axes).reshape(-1).astype(np.int32)
        return multiply_rows((np.arange(lines + 1) * count, members), table, self.columns)

    def interactions(self, pairs: Sequence[Pair]) -> Table:
        """Return as row i all j of a row of a second table for which the first's has i."""
        distinct = {(id(first), id(second)): (first, second) for first, second in pairs}
        if not distinct:
            return self.empty(self.columns)
        first, second = (stack_rows(side) for side in zip(*distinct.values(), strict=True))
        return multiply_rows(transpose_rows(first, self.columns), second, self.columns)

    def compact(self, pairs: list[Pair]) -> list[Pair]:
        """Return pairs with the same interactions, in less memory if there are many."""
        if sum(first[1].size + second[1].size for first, second in pairs) < _MAX_SIZE:
            return pairs
        return [(unit_rows(self.columns), self.interactions(pairs))]

    def spread(self, table: Table | None, aval: Any) -> Table | None:
        """Return the table of a value, of one row for all elements if the table has one row."""
        size = prod(aval.shape)
        if table is None or not is_inexact(aval.dtype):
            return None
        return table if table[0].size == size + 1 else take_rows(table, np.zeros(size, np.int64))

    def grouped(self, rows: np.ndarray, members: np.ndarray, count: int, table: Table) -> Table:
        """Return `count` rows, each the union of the rows of `table` that are its members."""
        each = np.arange(rows.size + 1), rows.reshape(-1).astype(np.int32)
        indptr, order = transpose_rows(each, count)
        groups = indptr, members.reshape(-1)[order].astype(np.int32)
        return multiply_rows(groups, table, self.columns)


def _has_slope(value: Value, k: int) -> bool:
    """Return whether a derivative with respect to operand `k` exists and may be other than 0."""
    primitive: Any = value.primitive
    if primitive.kind in ("user", "control"):
        return True
    if primitive.rules is None:
        return False
    if primitive.name in _WITHOUT_SLOPE and not is_complex(value.inputs[k].dtype):
        return False
    return primitive.vjp is None or primitive.vjp[k] is not None


class OperationFlow:
    """One operation of a graph; its operands at `moving` depend on inputs."""

    def __init__(
        self, flow: IndexFlow, value: Value, operands: Sequence[Dependence], moving: list[int]
    ):
        self.flow, self.value, self.operands, self.moving = flow, value, operands, moving
        self.primitive: Any = value.primitive
        self.name, self.params = self.primitive.name, value.params
        self.shapes: list[Shape] = [tuple(operand.shape) for operand in value.inputs]
        self.tables: dict[int, Any] = {k: operands[k].table for k in moving}

    def effect(self, avals: Sequence[Any]) -> Effect:
        kind, effect = self.primitive.kind, None
        if len(avals) == 1:
            self.shape: Shape = tuple(avals[0].shape)
            elementwise = kind == "user" and isinstance(self.primitive.kernel, Pointwise)
            if kind == "elementwise" or elementwise:
                return self.elementwise()
            rule = _RULES.get(self.name)
            if rule is None and kind == "reduction" and "keepdims" in self.params:
                rule = OperationFlow.reduction
            if rule is None and any(self.primitive.core):
                rule = OperationFlow.by_matrices
            effect = rule and rule(self)
        return effect or self.everything()

    def all_interact(self, table: Table | None) -> list[Pair]:
        """Return the pair in which all inputs of a row interact; none for linear operations."""
        bends = self.name == "absolute" and is_complex(self.value.inputs[0].dtype)
        is_linear = self.primitive.linear or (self.name in _PIECEWISE and not bends)
        return [] if is_linear or table is None else [(table, table)]

    def everything(self) -> Effect:
        """Each element depends on all elements of the operands; the table has one row for all."""
        axes = [range(len(shape)) for shape in self.shapes]
        table = self.flow.union(
            [self.flow.reduced(self.tables[k], self.shapes[k], axes[k]) for k in self.moving]
        )
        return Effect(table, self.all_interact(table))

    # elementwise

    def sources(self, k: int, mask: Any = None) -> np.ndarray | None:
        """Return operand `k`'s element for each of the result, -1 outside `mask`; None if equal."""
        shape = self.shapes[k]
        if mask is None and shape == self.shape:
            return None
        rows = np.broadcast_to(numbered(shape), self.shape)
        return (rows if mask is None else np.where(mask, rows, -1)).reshape(-1)

    def taken(self, k: int, rows: np.ndarray | None) -> Table:
        return self.tables[k] if rows is None else take_rows(self.tables[k], rows)

    def all_taken(self) -> list[Table]:
        """Return for each element of the result what each operand's element depends on."""
        return [self.taken(k, self.sources(k)) for k in self.moving]

    def elementwise(self) -> Effect:
        arrays = [operand.array for operand in self.operands]
        rows = {k: self.sources(k, _kept(self.name, k, arrays)) for k in self.moving}
        total = self.flow.union([self.taken(k, rows[k]) for k in self.moving])
        pairs = self.all_interact(total)
        if self.name in _PRODUCTS or self.name in _QUOTIENTS:
            whole = self.all_taken()  # at a point, slopes are 0
            pairs = [(whole[0], whole[1])] if len(whole) == 2 else []
            if self.name in _QUOTIENTS and 1 in self.moving:
                pairs.append((whole[-1], whole[-1]))
        sources = {k: some for k, some in rows.items() if some is not None}
        return Effect(total, pairs, sources, True)

    # selections and their transposes

    def selection(self) -> Effect:
        """Run the operation on numbers of elements."""
        arrays, tables, starts, count = [], [], {}, 0
        indices = [k for k, name in enumerate(self.primitive.inputs) if name in _INDICES]
        unknown = [k for k in indices if self.operands[k].array is None]
        if unknown and self.name == "set_row":  # any row may be written
            axis, shape = self.params["batch_dims"], self.shapes[1]
            self.shapes[1] = (*shape[:axis], 1, *shape[axis:])
            return Effect(self.flow.union(self.all_taken()))
        for k, (operand, shape) in enumerate(zip(self.operands, self.shapes, strict=True)):
            if k in indices:
                arrays.append(np.zeros(shape, np.int64) if k in unknown else operand.array)
            elif k in self.moving:
                starts[k] = count
                arrays.append(numbered(shape) + count)
                tables.append(self.tables[k])
                count += arrays[-1].size
            else:
                arrays.append(np.full(shape, -1))
        if unknown:  # a lookup gives the union of the axis
            shape, axes = self.shapes[0], [self.params["axis"]]
            lines = self.flow.reduced(tables[0], shape, axes)
            tables = [take_rows(lines, lines_of(shape, axes, shape))]
        if self.name == "cast":
            return Effect(tables[0], is_elementwise=True)
        rows = self.primitive.run(*arrays, **self.params).reshape(-1)
        table, sources = take_rows(stack_rows(tables), rows), {}
        for k, start in starts.items() if self.flow.second and not unknown else ():
            end = start + prod(self.shapes[k])
            sources[k] = np.where((rows >= start) & (rows < end), rows - start, -1)
        return Effect(table, sources=sources)

    def scatter(self) -> Effect | None:
        """Each element of the first operand goes to the element of the result at its target."""
        name, keys = _SCATTERS[self.name]
        indices = [operand.array for operand in self.operands[1:]]
        if any(array is None for array in indices):
            return None
        params = {key: self.params[other] for key, other in keys.items()}
        targets = OPS[name].run(numbered(self.shape), *indices, **params)
        members = np.arange(targets.size)
        return Effect(self.flow.grouped(targets, members, prod(self.shape), self.tables[0]))

    # reductions, and operations on lines and matrices

    def reduction(self) -> Effect:
        axes = self.params["axis"]
        table, array = self.tables[0], self.operands[0].array
        if self.name in ("max", "min") and array is not None:
            # elements other than the extremum and NaN have the derivative 0
            extremum = self.primitive.run(array, axis=axes, keepdims=True)
            rows = np.where((array == extremum) | (array != array), numbered(array.shape), -1)
            table = take_rows(table, rows.reshape(-1))
        table = self.flow.reduced(table, self.shapes[0], axes)
        return Effect(table, self.all_interact(table))

    def along_axes(self) -> Effect:
        """Each element depends on the lines through it, along the axes of the parameters."""
        axes: Any = self.params["axes" if "axes" in self.params else "axis"]
        axes = axes if isinstance(axes, tuple) else (axes,)
        shape, flow = self.shapes[self.moving[0]], self.flow
        reduced = flow.union([flow.reduced(self.tables[k], shape, axes) for k in self.moving])
        assert reduced is not None
        rows = lines_of(shape, axes, self.shape)
        return Effect(take_rows(reduced, rows), self.all_interact(reduced))

    def scan(self) -> Effect:
        """Each element depends on those before it: unions of 2, 4, 8, ... elements."""
        lines = np.moveaxis(numbered(self.shape), self.params["axis"], 0)
        lines = lines[::-1] if self.params["reverse"] else lines

        def earlier(table: Table, step: int) -> Table:
            rows = np.full(lines.size, -1)
            rows[lines[step:]] = lines[: max(len(lines) - step, 0)]
            return take_rows(table, rows)

        table, step = functools.reduce(merge_rows, self.all_taken()), 1
        while step < len(lines):
            table, step = merge_rows(table, earlier(table, step)), 2 * step
        pairs = self.all_interact(table)
        return Effect(earlier(table, 1) if self.params["exclusive"] else table, pairs)

    def by_matrices(self) -> Effect:
        """The result depends on all of the last axes of the operands that belong together."""
        flow, solves, tables, wholes = self.flow, self.name in _SOLVERS, [], []
        cores = list(zip(self.shapes, self.primitive.core, strict=True))
        batch = np.broadcast_shapes(*[shape[: len(shape) - n] for shape, n in cores])
        inner = range(len(batch), len(self.shape))
        for k in self.moving:
            shape, count = cores[k]
            matrices = flow.reduced(self.tables[k], shape, range(-count, 0))
            batches = shape[: len(shape) - count]
            wholes.append(take_rows(matrices, lines_of(batches, (), batch)))
            if solves and k == 1:  # columns of right-hand sides are apart, and do not interact
                lines = flow.reduced(self.tables[1], shape, [-2])
                tables.append(take_rows(lines, lines_of(shape, [-2], self.shape)))
            else:
                rows = lines_of(self.shape, inner, self.shape)
                tables.append(take_rows(wholes[-1], rows))
        if solves:
            pairs = [(wholes[0], whole) for whole in wholes] if 0 in self.moving else []
        else:
            pairs = self.all_interact(flow.union(wholes))
        return Effect(flow.union(tables), pairs)

    # products

    def contraction(self) -> Effect | None:
        """The product of matrices, or of matrices and vectors."""
        flow, vector = self.flow, self.name == "matvec"
        shapes = [self.shapes[0], (*self.shapes[1], 1) if vector else self.shapes[1]]
        batch = np.broadcast_shapes(*[shape[:-2] for shape in shapes])
        (height, inner), width = shapes[0][-2:], shapes[1][-1]
        whole, tables = (*batch, height, width), []
        for k in self.moving:
            factor, axis = self.operands[1 - k].array, -1 if k == 0 else -2
            if factor is not None and not np.all(factor):
                factor = factor[..., None] if vector and k == 0 else factor
                some = np.broadcast_to(factor != 0, (*batch, *factor.shape[-2:]))
                if np.count_nonzero(some) * (height if k == 0 else width) > _MAX_SIZE:
                    return None
                tables.append(self._by_factor(k, shapes[k], some, whole))
            else:
                reduced = flow.reduced(self.tables[k], shapes[k], [axis])
                tables.append(take_rows(reduced, lines_of(shapes[k], [axis], whole)))
        if len(self.moving) < 2:
            return Effect(flow.union(tables))
        left, right = [  # the columns of x, and the rows of y
            take_rows(
                flow.reduced(self.tables[k], shapes[k], [axis]),
                lines_of((*shapes[k][:-2], inner), (), (*batch, inner)),
            )
            for k, axis in ((0, -2), (1, -1))
        ]
        return Effect(flow.union(tables), [(left, right)])

    def _by_factor(self, k: int, shape: Shape, some: np.ndarray, whole: Shape) -> Table:
        """Return the table of a product, of shape `whole`, with a constant that has zeros."""
        numbers = np.broadcast_to(numbered(shape), (*whole[:-2], *shape[-2:]))
        numbers = numbers.reshape(-1, *shape[-2:])
        results = numbered(whole).reshape(-1, *whole[-2:])
        batch, first, last = np.nonzero(some.reshape(-1, *some.shape[-2:]))
        if k == 0:  # x[b, i, k] y[b, k, j]
            members, rows = numbers[batch, :, first], results[batch, :, last]
        else:
            members, rows = numbers[batch, last], results[batch, first]
        return self.flow.grouped(rows, members, prod(whole), self.tables[k])

    def convolution(self) -> Effect | None:
        roles = _CONVOLUTIONS[self.name]
        shapes = dict(zip(roles, [*self.shapes, self.shape], strict=True))
        if any(len(shape) != 4 for shape in shapes.values()):
            return None
        geometry = self.params["geometry"]
        return self.connected(_connections(shapes["i"], shapes["f"], shapes["o"], geometry), roles)

    def connected(self, places: dict[str, np.ndarray] | None, roles: str) -> Effect | None:
        """The result is a sum of products of two operands, at given places."""
        if places is None:
            return None
        flow, keep = self.flow, np.ones(places["o"].size, bool)
        for k, operand in enumerate(self.operands):
            if k not in self.moving and operand.array is not None:
                keep &= operand.array.reshape(-1)[places[roles[k]]] != 0
        places = {role: numbers[keep] for role, numbers in places.items()}
        rows, size = places[roles[-1]], prod(self.shape)
        tables = [flow.grouped(rows, places[roles[k]], size, self.tables[k]) for k in self.moving]
        if len(self.moving) < 2:
            return Effect(flow.union(tables))
        first, second = [take_rows(self.tables[k], places[roles[k]]) for k in (0, 1)]
        return Effect(flow.union(tables), [(first, second)])

    def pool(self) -> Effect | None:
        window, image = self.params["window"], self.name != "mean_pool_adjoint"
        images, outputs = (self.shapes[0], self.shape) if image else (self.shape, self.shapes[0])
        lead, channels = prod(images[:-3]), images[-1]
        filters = (*window.size, 1, channels)
        geometry = Geometry(window.strides, window.padding, (1, 1), channels)
        flat = [(lead, *shape[-3:]) for shape in (images, outputs)]
        places = _connections(flat[0], filters, flat[1], geometry)
        return self.connected(places, "io" if image else "oi")


def _connections(
    images: Shape, filters: Shape, outputs: Shape, geometry: Geometry
) -> dict[str, np.ndarray] | None:
    """Return the numbers of images' (i), filters' (f) and outputs' (o) elements in each product."""
    rows, columns, channels, outs = filters
    if prod(outputs) * rows * columns * channels > _MAX_SIZE:
        return None
    n, y, x, o, r, s, c = np.ogrid[
        tuple(slice(size) for size in (*outputs[:3], outs, rows, columns, channels))
    ]
    (down, across), ((top, _), (left, _)) = geometry.strides, geometry.padding
    line = y * down - top + r * geometry.dilations[0]
    column = x * across - left + s * geometry.dilations[1]
    group = o // (outs // geometry.groups)
    i = ((n * images[1] + line) * images[2] + column) * images[3] + group * channels + c
    inside = (line >= 0) & (line < images[1]) & (column >= 0) & (column < images[2])
    f = ((r * columns + s) * channels + c) * outs + o
    out = ((n * outputs[1] + y) * outputs[2] + x) * outs + o
    i, f, out, inside = np.broadcast_arrays(i, f, out, inside)
    return {"i": i[inside], "f": f[inside], "o": out[inside]}


def _kept(name: str, k: int, arrays: Sequence[Any]) -> Any:
    """Return where the slope of an elementwise operation by operand `k` is not known to be 0."""
    if name in _PRODUCTS or (name in _QUOTIENTS and k == 1):
        other = arrays[1 - k]
        return None if other is None or np.all(other) else other != 0
    if name == "where" and arrays[0] is not None:
        return arrays[0] if k == 1 else ~arrays[0]
    if name in ("maximum", "minimum") and arrays[0] is not None and arrays[1] is not None:
        own, other = arrays[k], arrays[1 - k]
        return ~(own < other) if name == "maximum" else ~(own > other)
    if name == "relu" and arrays[0] is not None:
        return ~(arrays[0] < 0)
    return None


_RULES: dict[str, Callable[[OperationFlow], Effect | None]] = {
    name: rule
    for rule, names in {
        OperationFlow.selection: "getitem gather set_row identity optimization_barrier cast pad "
        "reshape expand_dims squeeze transpose broadcast_to concatenate stack take_along_axis",
        OperationFlow.scatter: _SCATTERS,
        OperationFlow.scan: "cumsum cumprod recurrence",
        OperationFlow.along_axes: "softmax log_softmax softmax_pull log_softmax_pull sort fft rfft "
        "irfft",
        OperationFlow.convolution: _CONVOLUTIONS,
        OperationFlow.pool: "max_pool mean_pool mean_pool_adjoint",
        OperationFlow.contraction: "matmul matvec",
    }.items()
    for name in (names.split() if isinstance(names, str) else names)
}
