"""Choices: an operation of a program that runs one of several graphs, chosen by an index.

All levels see one operation. Its gradient is a choice of the branches' gradients. These are found
by a sweep in each branch's own trace, so custom gradients inside keep their rules. The gradient
computes the values of the branch again, except for the results of code that must not be repeated.
Higher derivatives, tangents (the transpose of the gradient) and batches are choices, too.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import nest
from ..._core import devices
from ..._core.conversion import BOOL, INT32, convert, is_tensor, is_weak
from ..._core.kinds import is_differentiable
from ..._core.primitive import Primitive, apply
from ..._core.record import Node
from ..._core.tensor import ArrayLike, Aval, Tensor, is_zero
from ..._ops.comparison import equal
from ..._ops.creation import zeros
from ..._ops.elementwise import where
from ..._ops.reductions import reduce_sum
from ..._ops.shape import identity, reshape
from ..._reverse.sweep import differentiate
from ..._reverse.variable import recorded_assignments, recorded_variables, records_assignments
from ..._rules.rebinding import asked_positions, at_positions
from ..._transforms.batching import Batch, BatchTensor
from ...errors import InvalidArgumentError
from ..graph.interpret import interpreter
from ..graph.simplify import simplify
from ..graph.values import FuncGraph, OutputItem, Value, constant, reach
from .branch_trace import BranchTrace
from .outputs import Outputs
from .outside_calls import OutsideCalls
from .part_operations import PartCall, part_operation
from .trace import Build, FunctionTrace, TraceTensor, aval_of, literal


class Slot(NamedTuple):
    """One operand of a choice: a tensor from outside, or a value that each branch has of its own.

    `watched` is that tensor, or the Variable that it is the value of.
    """

    aval: Aval
    watched: Any = None
    own: tuple[Any, ...] = ()  # a Value, or the tensor that has it, or None

    def value(self, k: int, trace: BranchTrace) -> Value | None:
        """Return the value of the operand in the trace of branch `k`, or None if that does not use
        it.
        """
        if self.watched is None:
            own = self.own[k]
            return own.value if isinstance(own, TraceTensor) else own
        capture = trace.captures.get(id(self.watched))
        return None if capture is None else capture[1]

    def source(self, k: int, trace: BranchTrace) -> Any:
        """Return the source of a sweep in branch `k`; None if the operand is not differentiable
        there.
        """
        if self.watched is None:
            return self.own[k] if isinstance(self.own[k], TraceTensor) else None
        return self.watched if id(self.watched) in trace.captures else None


class Pullback(NamedTuple):
    """The gradient of a choice: a choice, its operands, and the positions that it is with respect
    to.

    An operand is ("operand", i), ("kept", i), ("dy", i) or ("extra", tensor).
    """

    choice: Choice
    operands: list[tuple[str, Any]]
    positions: list[int]


class Choice(ABC):
    """Several graphs with the same operands. A call runs one of them.

    The results are the outputs, then the `kept` results of code that cannot be repeated. If the
    choice is `stateful`, the last result is a mark, which orders it after earlier side effects.
    """

    avals: list[Aval]  # of the outputs, of what is kept, and of a mark
    count: int  # of the outputs
    kept: int
    stateful = False
    build: Build
    label: str

    def __init__(self) -> None:
        self._graphs: list[FuncGraph] | None = None
        self._programs: dict[int, Outputs] = {}
        self._pullbacks: dict[tuple[tuple[int, ...], ...], Pullback] = {}

    @property
    def graphs(self) -> list[FuncGraph]:
        """Return the graph of each branch, as a function of the operands."""
        if self._graphs is None:
            self._graphs = self._make_graphs()
        return self._graphs

    @property
    def primitive(self) -> Primitive:
        """Return the primitive: there is another one for choices that must not be repeated."""
        values = [value for graph in self.graphs for value in graph.values()]
        return CHOICE_OF_CODE if any(value.is_code for value in values) else CHOICE

    @property
    def first_saved(self) -> int:
        """Return the position of the first `kept` result."""
        return self.count

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run the branch whose number is in the first array; it is compiled at its first run."""
        index = int(devices.to_host(arrays[0]))
        program = self._programs.get(index)
        if program is None:
            program = self._programs[index] = Outputs(self.graphs[index], self.build)
        return program.run(arrays[1 : 1 + len(program.graph.inputs)])

    def pullback(self, wanted: tuple[int, ...], upstream: tuple[int, ...]) -> Pullback:
        """Return the gradient of the `upstream` outputs with respect to the `wanted` operands."""
        pullback = self._pullbacks.get((wanted, upstream))
        if pullback is None:
            pullback, again = self._make_pullback(wanted, upstream)
            if again:
                self._pullbacks[wanted, upstream] = pullback
        return pullback

    def vjp(self, call: PartCall, node: Node, dys: Sequence[Tensor]) -> list:
        """Return the gradient of each input: a choice of the branches' gradients."""
        inputs = call.inputs
        wanted = tuple([k - 1 for k in asked_positions(node, inputs)])
        upstream = tuple(
            i
            for i, dy in enumerate(dys[: self.count])
            if is_differentiable(self.avals[i].dtype) and not is_zero(dy)
        )
        gradient = self.pullback(wanted, upstream)
        tables = {"operand": inputs[1:], "kept": call.results, "dy": dys}
        operands = [tables[kind][of] if kind in tables else of for kind, of in gradient.operands]
        positions = [1 + i for i in gradient.positions]
        results = call_choice(gradient.choice, inputs[0], operands) if positions else []
        return at_positions(positions, results, len(inputs))

    def batch(self, level: Batch, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Return the results for a batch: of all branches, if the index differs in it."""
        index: Any = inputs[0]
        operands = inputs[1:]
        if self.stateful:
            raise InvalidArgumentError(
                f"vmap: {self.label} prints or calls Python code in a fixed order: inside vmap, "
                "keep such calls outside the branches"
            )
        flags = [level.has(operand) for operand in operands]
        physical: list[Any] = [x.physical if level.has(x) else x for x in operands]
        whole = BatchedChoice(self, flags, level)
        if not level.has(index):
            outputs = apply(whole.primitive, (index, *physical), {"choice": whole})
            return [BatchTensor(tensor, level) for tensor in outputs]
        each = []
        for k in range(len(self.graphs)):
            branch = whole.select(k)
            first = Tensor(np.zeros((), INT32))
            each.append(apply(branch.primitive, (first, *physical), {"choice": branch}))
        results = []
        for column in zip(*each, strict=True):
            chosen = column[-1]
            for k, output in enumerate(column[:-1]):
                rank = len(output._data.shape)
                takes = reshape(equal(index.physical, k), (level.size, *(1,) * (rank - 1)))
                chosen = where(takes, output, chosen)
            results.append(BatchTensor(chosen, level))
        return results

    @abstractmethod
    def _make_graphs(self) -> list[FuncGraph]:
        """Return the graph of each branch."""

    @abstractmethod
    def _make_pullback(
        self, wanted: tuple[int, ...], upstream: tuple[int, ...]
    ) -> tuple[Pullback, bool]:
        """Trace the gradient. Return it, and whether it may be cached: it must not draw numbers."""

    @abstractmethod
    def select(self, index: int) -> Choice:
        """Return a choice that has only the branch `index`."""

    def __repr__(self) -> str:
        return f"<{self.label}>"


class TracedChoice(Choice):
    """A choice whose branches have traces; `targets` has each branch's outputs in its trace."""

    def __init__(
        self,
        label: str,
        traces: Sequence[BranchTrace],
        slots: list[Slot],
        targets: Sequence[list[Any]],
        substitutions: Sequence[dict[Value, Value]],
        marks: Sequence[list[Value]],
    ):
        super().__init__()
        self.label, self.traces, self.slots, self.targets = label, traces, slots, targets
        self.substitutions, self.marks = substitutions, marks
        self.build = traces[0].build
        self.count = len(targets[0])
        self.stateful = any(marks)
        self.ends = [
            [*map(trace.value, some), *mark]
            for trace, some, mark in zip(traces, targets, marks, strict=True)
        ]
        self.once = [_results_of_code(*pair) for pair in zip(self.ends, substitutions, strict=True)]
        kept = [value.aval for some in self.once for value in some]
        self.kept = len(kept)
        self.avals = [*map(aval_of, targets[0]), *kept, *[Aval((), BOOL)] * self.stateful]

    def _make_graphs(self) -> list[FuncGraph]:
        graphs = []
        for k, trace in enumerate(self.traces):
            inputs = [Value(slot.aval) for slot in self.slots]
            pairs = zip(self.slots, inputs, strict=True)
            replacements: dict[Any, Value] = {slot.value(k, trace): value for slot, value in pairs}
            replacements |= {
                value: replacements.get(replacement, replacement)
                for value, replacement in self.substitutions[k].items()
            }
            replacements.pop(None, None)
            kept = [
                value if j == k else literal(np.zeros(value.shape, value.dtype))
                for j, some in enumerate(self.once)
                for value in some
            ]
            ends = [*self.ends[k][: self.count], *kept]
            if self.stateful:
                ends += self.marks[k] or [constant(np.zeros((), BOOL))]
            graphs.append(simplify(FuncGraph(inputs, ends), trace.literals | replacements))
        return graphs

    def _make_pullback(
        self, wanted: tuple[int, ...], upstream: tuple[int, ...]
    ) -> tuple[Pullback, bool]:
        slots: list[Slot] = [*self.slots]
        operands: list[tuple[str, Any]] = [("operand", i) for i in range(len(slots))]
        substitutions = [dict(mapping) for mapping in self.substitutions]
        position = 0
        for k, some in enumerate(self.once):
            for value in some:
                substitutions[k][value] = fresh = Value(value.aval)
                values = tuple(fresh if j == k else None for j in range(len(self.traces)))
                slots.append(Slot(value.aval, None, values))
                operands.append(("kept", position))
                position += 1
        dys: list[list[Any]] = []
        by_branch: list[list[Any]] = []
        drew = False
        for k, trace in enumerate(self.traces):
            trace.has_drawn = False
            with trace.active():
                dys.append([trace.argument(self.avals[i]) for i in upstream])
                sources = [self.slots[i].source(k, trace) for i in wanted]
                asked = [source for source in sources if source is not None]
                targets = [self.targets[k][i] for i in upstream]
                some = differentiate(trace.graph._token, targets, dys[k], asked)[0]
                gradients = iter(some)
                by_branch.append(
                    [None if source is None else next(gradients) for source in sources]
                )
            drew = drew or trace.has_drawn
        for position, i in enumerate(upstream):
            slots.append(Slot(self.avals[i], None, tuple([some[position] for some in dys])))
            operands.append(("dy", i))
        kept = [j for j in range(len(wanted)) if any(some[j] is not None for some in by_branch)]
        targets = []
        for trace, some in zip(self.traces, by_branch, strict=True):
            with trace.active():
                pairs = [(some[j], self.slots[wanted[j]].aval) for j in kept]
                targets.append([identity(zeros(*aval) if x is None else x) for x, aval in pairs])
                del pairs
        by_branch.clear()
        watched = {id(slot.watched) for slot in slots if slot.watched is not None}
        extras = find_operands(self.traces, targets, watched)
        slots += [slot for slot, _ in extras]
        operands += [("extra", tensor) for _, tensor in extras]
        label = f"the gradient of {self.label}"
        marks: list[list[Value]] = [[] for _ in self.traces]
        choice = TracedChoice(label, self.traces, slots, targets, substitutions, marks)
        positions = [wanted[j] for j in kept]
        return Pullback(choice, operands, positions), not drew

    def select(self, index: int) -> Choice:
        slots = [slot._replace(own=slot.own[index:][:1]) for slot in self.slots]
        some = slice(index, index + 1)
        return TracedChoice(
            self.label,
            self.traces[some],
            slots,
            self.targets[some],
            self.substitutions[some],
            self.marks[some],
        )


class BatchedChoice(Choice):
    """A choice for a batch, with one index for all examples.

    `batched` says which operands differ between examples. Outputs in `summed` are summed over them.
    """

    def __init__(
        self, made_of: Choice, batched: Sequence[bool], level: Batch, summed: Sequence[bool] = ()
    ):
        super().__init__()
        self.label, self.build = f"{made_of.label}, batched", made_of.build
        self.made_of, self.batched, self.level = made_of, tuple(batched), level
        self.count, self.kept = made_of.count, made_of.kept
        self.summed = [*summed, *[False] * (len(made_of.avals) - len(summed))]
        self.avals = [
            aval if alone else Aval((level.size, *aval.shape), aval.dtype)
            for aval, alone in zip(made_of.avals, self.summed, strict=True)
        ]

    def _make_graphs(self) -> list[FuncGraph]:
        return [self._make_graph(graph) for graph in self.made_of.graphs]

    def _make_graph(self, graph: FuncGraph) -> FuncGraph:
        """Return the graph for all examples, by applying the operations once more in a batch."""
        trace, level = BranchTrace(self.label, OutsideCalls(), interpreter), Batch(self.level.size)
        with trace.active():
            tensors: dict[Value, Any] = {}
            for value, flag in zip(graph.inputs, self.batched, strict=True):
                shape = (level.size, *value.shape) if flag else value.shape
                tensor = trace.argument(Aval(shape, value.dtype))
                tensors[value] = BatchTensor(tensor, level) if flag else tensor
            inputs = list(trace.arguments)
            with level:
                for value in graph.values():
                    if value not in tensors:
                        tensors[value] = _replay(
                            value, [tensors[operand] for operand in value.inputs]
                        )
            outputs = []
            for value, alone in zip(graph.outputs, self.summed, strict=True):
                tensor = level.physical(tensors[value])
                outputs.append(trace.value(reduce_sum(tensor, 0) if alone else tensor))
        constants = {value: literal(tensor._data) for tensor, value, _ in trace.captures.values()}
        return simplify(FuncGraph(inputs, outputs), constants)

    def _make_pullback(
        self, wanted: tuple[int, ...], upstream: tuple[int, ...]
    ) -> tuple[Pullback, bool]:
        inner = self.made_of.pullback(wanted, upstream)
        batched, operands = [], []
        for kind, which in inner.operands:
            flag, what = True, which
            if kind == "operand":
                flag = self.batched[which]
            elif kind == "dy":
                flag = not self.summed[which]
            elif kind == "extra":
                flag = self.level.has(which)
                what = which.physical if flag else which
            batched.append(flag)
            operands.append((kind, what))
        summed = [not self.batched[i] for i in inner.positions]
        choice = BatchedChoice(inner.choice, batched, self.level, summed)
        return Pullback(choice, operands, inner.positions), not any(
            kind == "extra" for kind, _ in operands
        )

    def select(self, index: int) -> Choice:
        return BatchedChoice(self.made_of.select(index), self.batched, self.level, self.summed)


def _replay(value: Value, operands: list) -> Any:
    """Apply an operation of a graph to tensors."""
    if value.array is not None:
        return Tensor(value.array)
    if isinstance(value, OutputItem):
        return operands[0][value.index]
    return apply(value.primitive, tuple(operands), value.params)


def _results_of_code(ends: list[Value], substitutions: dict[Value, Value]) -> list[Value]:
    """Return the results of calls that must not be repeated, if `ends` depend on them."""
    results = []
    for value in reach(ends, lambda value: () if value in substitutions else value.inputs):
        producer = value.inputs[0] if isinstance(value, OutputItem) else value
        if producer.is_code and not isinstance(value.aval, list) and value not in substitutions:
            results.append(value)
    return results


def find_operands(
    traces: Sequence[BranchTrace], targets: Sequence[list[Any]], excluded: set[int]
) -> list[tuple[Slot, Any]]:
    """Return the tensors that branches captured from outside, except those in `excluded`."""
    tensors: dict[int, tuple[Any, Any]] = {}
    for trace, some in zip(traces, targets, strict=True):
        trace.find_literals(some)
        for tensor, _, watched in trace.captured_tensors():
            if id(watched) not in excluded:
                tensors[id(watched)] = tensor, watched
    return [(Slot(aval_of(tensor), watched), tensor) for tensor, watched in tensors.values()]


def call_choice(choice: Choice, index: Any, operands: Sequence[Any]) -> list:
    """Apply a choice at all levels, and return its outputs."""
    return apply(choice.primitive, (index, *operands), {"choice": choice})[: choice.count]


CHOICE = part_operation("cond", "choice", aliases=True)
CHOICE_OF_CODE = part_operation("cond", "choice", "user", aliases=True)


# Calls of functions -------------------------------------------------------------------------


def choose(name: str, index: Any, branches: Sequence[tuple[str, Callable[[], Any]]]) -> Any:
    """Return the result of the branch that `index` chooses; the program has all branches.

    `branches` are pairs of a name, for errors, and a function without arguments. Their results must
    have one structure, and their tensors the same shapes and dtypes.
    """
    outer: FunctionTrace = index.level
    traces = [BranchTrace(outer.name, outer.calls, outer.build) for _ in branches]
    results: list[Any] = []
    leaves: list[list[Any]] = []
    finals: list[dict[int, Tensor]] = []
    recorded = records_assignments()
    present = [(variable, variable._read()) for variable in recorded_variables()]
    for trace, (_, function) in zip(traces, branches, strict=True):
        with trace.active(), recorded_assignments(True) if recorded else contextlib.nullcontext():
            for variable, value in present:  # the value has a gradient, unlike the Variable
                variable.assign(identity(value))
            result = function()
            results.append(result)
            leaves.append(
                [convert(leaf) if is_tensor(leaf) else leaf for leaf in nest.flatten(result)]
            )
            finals.append({key: variable._read() for key, variable in trace.assigned.items()})
    names = [label for label, _ in branches]
    _check_structures(name, names, results)
    columns = [
        _Column(name, names, i, list(some)) for i, some in enumerate(zip(*leaves, strict=True))
    ]
    variables = {key: variable for trace in traces for key, variable in trace.assigned.items()}
    targets = []
    for k, trace in enumerate(traces):
        with trace.active():
            some = [_own(trace, column.tensor(k)) for column in columns if column.is_tensor]
            for key, variable in variables.items():
                final = finals[k].get(key)
                some.append(_own(trace, variable._read() if final is None else final))
            targets.append(some)
    structure = results[0]
    marks = [trace.effects[-1:] for trace in traces]
    del leaves, finals, results
    for column in columns:
        column.check()
    captures = find_operands(traces, targets, set())
    label = f"{name}({', '.join(names)})"
    slots = [slot for slot, _ in captures]
    choice = TracedChoice(label, traces, slots, targets, [{} for _ in traces], marks)
    outputs = iter(call_choice(choice, index, [tensor for _, tensor in captures]))
    chosen = [next(outputs) if column.is_tensor else column.leaves[0] for column in columns]
    for variable, value in zip(variables.values(), outputs, strict=True):
        variable.assign(value)
    return nest.pack_sequence_as(structure, chosen)


def _own(trace: BranchTrace, tensor: Tensor) -> Tensor:
    """Return a copy of a tensor that belongs to the trace, also of a known integer."""
    copied = identity(tensor)
    return copied if isinstance(copied, TraceTensor) else TraceTensor(constant(copied._data), trace)


def _check_structures(name: str, names: list[str], results: list[Any]) -> None:
    for label, result in zip(names[1:], results[1:], strict=True):
        try:
            nest.assert_same_structure(results[0], result)
        except (TypeError, ValueError):
            raise TypeError(
                f"{name}: the branches must return the same structure: `{names[0]}` returned "
                f"{_describe(results[0])}, `{label}` {_describe(result)}"
            ) from None


def _describe(result: Any) -> str:
    def text(leaf: Any) -> _Text:
        if is_tensor(leaf):
            return _Text(f"{leaf.dtype.name}{tuple(leaf.shape)}")
        return _Text(repr(leaf) if leaf is None or is_weak(leaf) else type(leaf).__name__)

    return str(nest.map_structure(text, result))


class _Text(str):
    __repr__ = str.__str__  # without quotes


class _Column:
    """One leaf of the results, for all branches."""

    def __init__(self, name: str, names: list[str], position: int, leaves: list[Any]):
        self.name, self.names, self.position, self.leaves = name, names, position, leaves
        self.is_tensor = all(
            isinstance(leaf, (ArrayLike, np.ndarray)) or is_weak(leaf) for leaf in leaves
        )
        strong = [leaf._data.dtype for leaf in leaves if isinstance(leaf, Tensor)]
        self.dtype = strong[0] if strong else None
        self.avals: list[Aval] = []
        first = leaves[0]
        if not self.is_tensor and not all(
            leaf is first or (type(leaf) is type(first) and leaf == first) for leaf in leaves
        ):
            raise TypeError(
                f"{name}: the branches return different things as result {position}, and not all "
                f"are tensors or numbers: {self._texts(map(repr, leaves))}"
            )

    def tensor(self, k: int) -> Tensor:
        """Return the leaf of branch `k`; a number takes the dtype of another branch's tensor."""
        leaf = self.leaves[k]
        if not isinstance(leaf, Tensor) and self.dtype is not None:
            with contextlib.suppress(TypeError, ValueError):
                leaf = convert(leaf, self.dtype)
        leaf = convert(leaf)
        self.avals.append(aval_of(leaf))
        return leaf

    def check(self) -> None:
        """Raise TypeError if shapes or dtypes differ; release the leaves."""
        if self.is_tensor:
            self.leaves = []
            if any(aval != self.avals[0] for aval in self.avals):
                texts = self._texts(f"{aval.dtype} of shape {aval.shape}" for aval in self.avals)
                raise TypeError(
                    f"{self.name}: a traced tensor chooses the branch, so all branches must return "
                    f"tensors of the same shape and dtype, but result {self.position} is {texts}. "
                    "Cast, reshape or pad the results"
                )

    def _texts(self, leaves: Any) -> str:
        pairs = zip(self.names, leaves, strict=True)
        return ", ".join(f"{text} in `{label}`" for label, text in pairs)
