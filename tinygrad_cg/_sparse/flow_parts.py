"""Index sets through loops, branches and custom gradients, which have graphs of their own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.sparse.index_sets import (
    Table,
    multiply_rows,
    stack_rows,
    take_rows,
    transpose_rows,
    unit_rows,
)

from .._core.kinds import is_differentiable
from .._core.levels import add_level
from .._core.primitive import Primitive
from .._core.tensor import Aval, Tensor
from .._function.graph.interpret import interpreter
from .._function.graph.loop_drafts import Body, replaced
from .._function.graph.values import FuncGraph, OutputItem, Value, reach
from .._function.tracing.trace import FunctionTrace, TraceTensor, thread_state
from .._ops.creation import zeros
from .index_flow import PARTS, Dependence, IndexFlow, OperationFlow, Pair
from .sparsity import SparsityPattern

# Loops ---------------------------------------------------------------------------------------


class _Rounds:
    """The rounds of one call of a loop."""

    def __init__(self, flow: IndexFlow, value: Value, operands: list[Dependence]):
        body: Body = value.params["loop"].body
        self.flow, self.body = flow, body
        first, count = body.constants, body.constants + body.carries
        self.fixed, self.stacks = operands[:first], operands[count:]
        self.carries = operands[first:count]
        self.slices = [tuple(x.shape) for x in body.graph.inputs[count:]]
        self.pairs: list[Pair] = []

    def run(self) -> tuple[list[Dependence], list[Pair]]:
        """Follow the rounds if their number is small, else until the tables stop growing."""
        body, flow, rounds = self.body, self.flow, self.body.length
        if body.limited:
            count = self.fixed[0].array
            rounds = None if count is None else int(count)
        rows: dict[int, list[Dependence]] = {}
        done = 0
        while True:
            if body.length is not None:
                goes_on = None if rounds is None or rounds - done > flow.rounds else done < rounds
            else:  # the last carry says whether there is another round
                goes_on = self.carries[-1].array if flow.rounds else None
            if goes_on is None:
                rows = dict.fromkeys(range(body.length or 0), self._until_fixed())
            if not goes_on:
                count = None if goes_on is None else np.asarray(done)
                break
            flow.rounds -= 1
            i = (rounds or 0) - 1 - done if body.reverse else done
            slices = zip(self.stacks, self.slices, strict=True)
            rows[i] = self._round([self._slice(x, shape, i) for x, shape in slices])
            done += 1
        if body.length is None:
            return [*self.carries, Dependence(None, count)], self.pairs
        stacked = []
        for k, aval in enumerate(body.rows):
            tables = [rows[i][k].table if i in rows else None for i in range(body.length)]
            nothing = flow.empty(prod(aval.shape))
            table = stack_rows([table or nothing for table in tables]) if any(tables) else None
            stacked.append(Dependence(table))
        return [*self.carries, *stacked], self.pairs

    def _round(self, slices: list[Dependence]) -> list[Dependence]:
        """Run a round; keep the carries, and return the rows."""
        count = self.body.carries
        inputs = [*self.fixed, *self.carries, *slices]
        results, pairs = self.flow.run(self.body.graph, inputs)
        self.carries = results[:count]
        self.pairs = self.flow.compact([*self.pairs, *pairs])
        return results[count:]

    def _slice(self, stack: Dependence, shape: tuple[int, ...], i: int) -> Dependence:
        array = None if stack.array is None else stack.array[i, ...]
        if stack.table is None:
            return Dependence(None, array)
        size = prod(shape)
        return Dependence(take_rows(stack.table, np.arange(i * size, (i + 1) * size)), array)

    def _until_fixed(self) -> list[Dependence]:
        """Return the rows of any of the rounds, each of which may meet all slices."""
        flow = self.flow
        sizes = [(self.body.length or 0, prod(shape)) for shape in self.slices]
        slices = [
            Dependence(x.table and flow.reduced(x.table, size, [0]))
            for x, size in zip(self.stacks, sizes, strict=True)
        ]
        carries = [Dependence(carry.table) for carry in self.carries]
        before, rows, grows = self.pairs, [], True
        while grows:
            self.carries, self.pairs = carries, before
            rows = self._round(slices)
            self.carries = flow.united(zip(carries, self.carries, strict=True))
            grows = _count(self.carries) > _count(carries)
            carries = self.carries
        return rows


def _count(states: Sequence[Dependence]) -> int:
    return sum(x.table[1].size + 1 for x in states if x.table is not None)


# Branches ------------------------------------------------------------------------------------


def _choice(flow: IndexFlow, value: Value, operands: list[Any]) -> tuple[list[Dependence], list]:
    """Return the union of the branches; only the chosen branch if it is known."""
    graphs = value.params["choice"].graphs
    index = operands[0].array
    graphs = graphs if index is None else [graphs[int(index)]]
    runs = [flow.run(graph, operands[1 : 1 + len(graph.inputs)]) for graph in graphs]
    pairs = [pair for _, some in runs for pair in some]
    if len(runs) == 1:
        return runs[0][0], pairs
    return flow.united(zip(*[results for results, _ in runs], strict=True)), pairs


# Custom gradients ----------------------------------------------------------------------------


class KeptRule:
    """The rule of one call of a custom gradient, as a graph.

    Operands of the operation are the outputs of the function, the `inputs` of the call, and the
    other values that the rule reads. The graph takes the upstream gradients of the outputs in
    `upstream`, and then the operands after the outputs; it returns the gradients of the inputs at
    `positions`. It is None if the rule has no trace. A declared `pattern` replaces it.
    """

    graph: FuncGraph | None = None
    upstream: Sequence[int] = ()
    positions: Sequence[int] = ()
    pattern: SparsityPattern | None = None

    def __init__(self, outputs: Sequence[Value], own: list[Value]):
        self.avals, self.inputs = [output.aval for output in outputs], len(own)

    def __repr__(self) -> str:
        return "<a rule>"


RULED = Primitive(
    "custom_gradient",
    lambda *arrays, rule: [array.copy() for array in arrays[: len(rule.avals)]],
    ("inputs",),
    lambda *avals, rule: rule.avals,
    kind="control",
)


def keep_rule(
    trace: FunctionTrace, call: Any, inputs: Sequence[Any], outputs: Sequence[Value]
) -> list[Value]:
    """Return the outputs of a custom gradient in a trace as those of an operation with its rule."""
    own = [trace.value(x) for x in inputs if x is not None]
    rule, operands = KeptRule(outputs, own), [*outputs, *own]
    with suppress(Exception):
        operands += _trace_rule(rule, trace, call, inputs, own)
    return _outputs(rule, operands)


def _outputs(rule: KeptRule, operands: Sequence[Value]) -> list[Value]:
    kept = Value(rule.avals, RULED, operands, {"rule": rule})
    return [OutputItem(kept, k) for k in range(len(rule.avals))]


def _trace_rule(
    rule: KeptRule, trace: FunctionTrace, call: Any, inputs: Sequence[Any], own: list[Value]
) -> list[Value]:
    """Set the graph of a rule, and return the other values that it reads."""
    mark = Value(Aval((), np.dtype(bool))).serial  # values of the rule are later
    rule.upstream = [k for k, y in enumerate(rule.avals) if is_differentiable(y.dtype)]
    seeds = {k: Value(rule.avals[k]) for k in rule.upstream}
    with thread_state({"frame": add_level(None, trace)}):
        dys = [
            TraceTensor(seeds[k], trace) if k in seeds else zeros(y.shape, y.dtype)
            for k, y in enumerate(rule.avals)
        ]
        returned = call.vjp(dys, list(inputs))
        gradients = [x for x, y in zip(returned, inputs, strict=False) if y is not None]
        rule.positions = [k for k, x in enumerate(gradients) if isinstance(x, Tensor)]
        ends = [trace.value(gradients[k]) for k in rule.positions]
    starts = set(seeds.values())

    def behind(value: Value) -> Sequence[Value]:
        return () if value in starts or value.serial < mark else value.inputs

    leaves = [x for x in reach(ends, behind) if x.array is None and x not in (*starts, *own)]
    closure = [x for x in leaves if x.serial < mark or not (x.primitive or x.inputs)]
    fresh = {x: Value(x.aval) for x in dict.fromkeys([*own, *closure])}
    graph = [*seeds.values(), *[fresh[x] for x in [*own, *closure]]]
    rule.graph = FuncGraph(graph, replaced(ends, fresh))
    return closure


def keep_pattern(
    trace: FunctionTrace,
    pattern: SparsityPattern,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
) -> list[Tensor]:
    """Return the outputs of a function in a trace as those of an operation with this pattern."""
    values, own = list(map(trace.value, outputs)), list(map(trace.value, inputs))
    rule = KeptRule(values, own)
    rule.pattern = pattern
    return [TraceTensor(value, trace) for value in _outputs(rule, [*values, *own])]


def _custom(flow: IndexFlow, value: Value, operands: list[Any]) -> tuple[list[Dependence], list]:
    """Return the union of what the function and the rule depend on."""
    rule: KeptRule = value.params["rule"]
    count = len(rule.avals)
    results, rest = operands[:count], operands[count:]
    own, arrays = rest[: rule.inputs], [x.array for x in results]
    if all(x.table is None for x in rest):
        return results, []
    if rule.pattern is not None:
        flow.is_declared = True
        sizes = [prod(operand.shape) for operand in value.inputs[count:]]
        inputs = [x.table or flow.empty(size) for x, size in zip(own, sizes, strict=True)]
        whole = multiply_rows(rule.pattern.table, stack_rows(inputs), flow.columns)
        ends = np.cumsum([0, *[prod(aval.shape) for aval in rule.avals]])
        parts = [take_rows(whole, np.arange(*span)) for span in pairwise(ends)]
        return list(map(Dependence, parts, arrays)), [(whole, whole)]
    if rule.graph is None:  # everything depends on all inputs
        moving = [k for k, x in enumerate(operands) if x.table is not None]
        effect = OperationFlow(flow, value, operands, moving).everything()
        return [Dependence(flow.spread(effect.table, aval)) for aval in rule.avals], effect.pairs
    ends = np.cumsum([0, *[prod(rule.avals[k].shape) for k in rule.upstream]])
    spans = list(pairwise(ends))
    inner = IndexFlow(int(ends[-1]))
    seeds = [Dependence(unit_rows(end - start, start)) for start, end in spans]
    fixed = [Dependence(None, x.array) for x in rest]
    slopes, _ = inner.run(rule.graph, [*seeds, *fixed])
    tables: list[list[Table]] = [[] if x.table is None else [x.table] for x in results]
    for k, slope in zip(rule.positions, slopes, strict=True):
        table = own[k].table
        if table is None or slope.table is None:
            continue
        through = multiply_rows(transpose_rows(slope.table, inner.columns), table, flow.columns)
        for j, span in zip(rule.upstream, spans, strict=True):
            tables[j].append(take_rows(through, np.arange(*span)))
    still = [Dependence() for _ in seeds]
    changes, _ = flow.run(rule.graph, [*still, *rest])
    pairs = [
        (own[k].table, change.table)
        for k, change in zip(rule.positions, changes, strict=True)
        if own[k].table is not None and change.table is not None
    ]
    return list(map(Dependence, map(flow.union, tables), arrays)), pairs


PARTS |= {"loop": lambda *call: _Rounds(*call).run(), "cond": _choice, "custom_gradient": _custom}

STOPPED = Primitive(
    "stopped_gradient", lambda x: x.copy(), ("x",), lambda x: Aval(x.shape, x.dtype)
)


def build(graph: FuncGraph) -> Any:
    """Return a program that is interpreted, and whose trace keeps what rules depend on."""
    return interpreter(graph)


# the trace keeps the rules of custom gradients, and stop_gradient, which simplification drops
build.stepwise, build.keep_rule, build.keep_pattern = True, keep_rule, keep_pattern
build.instead = {"stop_gradient": STOPPED}
