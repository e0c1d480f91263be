"""Loops: an operation whose body is a graph.

A loop runs `length` rounds. A round takes the carries of the previous round and a slice of each
stack; it returns new carries and a row of each output. The gradient is a loop in the opposite
direction over the carries that each round began with: its body runs the body again, and sweeps it.
This loop has a gradient, a transpose and batches in turn. Modelled on ``jax.lax.scan``.

A loop without a length runs while its last carry is True. The gradient needs memory for the carries
of all rounds. So it is a program for a maximal number of rounds, a power of two, which is made when
a call first needs it; in that program the loop has a length, and stops after the actual number.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..._core import devices
from ..._core.conversion import INT64, convert, is_weak
from ..._core.devices import CPU
from ..._core.kinds import is_differentiable, is_exact
from ..._core.levels import Token, current_trace, run_on, stack, state
from ..._core.primitive import apply
from ..._core.record import Node, run_recorded
from ..._core.tensor import Aval, Tensor, is_zero, leaked_from_trace
from ..._ops.comparison import less
from ..._ops.creation import fill_zeros, zeros, zeros_like
from ..._ops.elementwise import add, where
from ..._ops.reductions import reduce_any, reduce_max
from ..._ops.sampling import replay
from ..._ops.shape import cast, identity
from ..._reverse.sweep import differentiate_once, gradients_of_call
from ..._reverse.variable import Variable, VariableSlice, recorded_assignments, records_assignments
from ..._rules.rebinding import asked_positions, at_positions
from ..._transforms.batching import Batch, BatchTensor, move_axis
from ...errors import InvalidArgumentError
from ..codegen.rounds import TracedLoop, call_rounds, compile_rounds
from ..graph.in_place import in_place
from ..graph.interpret import device_of, is_stepwise
from ..graph.loop_drafts import Body
from ..graph.loop_optimization import optimize
from ..graph.loop_passes import known_rounds
from ..graph.values import FuncGraph, Value
from .outputs import Outputs
from .outside_calls import OutsideCalls
from .part_operations import PartCall, examples_of, part_operation
from .trace import Build, FunctionTrace, TraceTensor, aval_of, literal, record_lost

Round = Callable[[list, list], tuple[list, list]]
"""Takes the carries and a slice of each stack; returns new carries, and a row of each output."""


class BodyTrace(FunctionTrace):
    """The trace of a loop's body. Tensors from around the loop are its constants."""

    has_samples_only = True

    def value(self, tensor: Any) -> Value:
        entry = self.met.get(id(tensor))
        if entry is not None:
            return entry[1]
        own = isinstance(tensor, TraceTensor) and tensor.level is self
        if own or isinstance(tensor, VariableSlice) or not isinstance(tensor._data, Aval):
            return super().value(tensor)
        if getattr(tensor.level, "is_over", False):
            raise leaked_from_trace(tensor)
        value = Value(aval_of(tensor))
        self.met[id(tensor)] = (tensor, value)
        return value

    def record_kept(self, variable: Variable) -> None:
        """Refuse to keep a record of one round for another."""
        raise ValueError(record_lost(f"a round of {self.name}", variable))

    def captured(self) -> tuple[list[tuple[Tensor, Value]], dict[Value, Value]]:
        abstract = [entry for entry in self.met.values() if isinstance(entry[0]._data, Aval)]
        self.met = {
            k: entry for k, entry in self.met.items() if not isinstance(entry[0]._data, Aval)
        }
        outside, literals = super().captured()
        for tensor, value in outside:
            if is_exact(tensor.dtype):  # nobody asks for a gradient with respect to it
                literals[value] = literal(devices.to_host(tensor._data))
            else:
                abstract.append((tensor, value))
        return abstract, literals


class _ChangedDtypeError(TypeError):
    """A round has changed the dtype of a loop variable."""

    def __init__(self, message: str, carry: int, dtype: np.dtype):
        super().__init__(message)
        self.carry, self.dtype = carry, dtype


class LoopProgram:
    """A loop in a finished graph: the body, and the function that compiles it."""

    first_saved = 0

    def __init__(self, body: Body, build: Build):
        self.body, self.build = body, build
        self._outputs: Outputs | None = None

    @property
    def avals(self) -> list[Aval]:
        """Return the shapes and dtypes of the results."""
        return self.body.avals()

    def __repr__(self) -> str:
        length = self.body.length
        return f"<{self.body.name}, {'rounds' if length is None else f'{length} rounds'}>"

    def with_body(self, body: Body) -> LoopProgram:
        """Return a loop with another body."""
        return LoopProgram(body, self.build)

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the last carries and the stacks of outputs."""
        if self._outputs is None:
            self._compile()
        return self._run(arrays)

    @property
    def sources(self) -> list[str]:
        """Return the source text of the loop, or of its body's program."""
        if self._outputs is None:
            self._compile()
        assert self._outputs is not None
        source = getattr(self._run, "source", None)
        return self._outputs.sources if source is None else [source]

    def traced(self) -> TracedLoop:
        """Return the loop as `compile_rounds` takes it."""
        outputs = Outputs(self.body.graph, self.build)
        return TracedLoop(outputs.graph, outputs.steps, self.body)

    def _compile(self) -> None:
        outputs = Outputs(self.body.graph, self.build)
        called_outputs = Outputs(in_place(self.body), self.build)
        library = np if device_of(self.build) == CPU else devices.library()
        called = call_rounds(self.body, lambda: called_outputs.run, library)
        compiled = None if is_stepwise(self.build) else compile_rounds(self.traced(), called)
        self._run = compiled or called
        self._outputs = outputs if compiled else called_outputs


class Loop(LoopProgram):
    """A loop that can be differentiated and batched.

    Its operands are the `constants` (tensors and Variables from around the loop that the body
    uses), the initial carries, and the stacks. If the carries that rounds begin with are outputs,
    `kept` is the position of the first; else it is None. `unread` carries are not among them: a
    round only replaces a row of such an array, so no gradient depends on what was in it.
    """

    def __init__(
        self,
        spec: LoopSpec,
        carries: Sequence[Tensor],
        stacks: Sequence[Tensor],
        constants: Sequence[tuple[Any, Tensor]] = (),
    ):
        self.spec, self.carries = spec, len(carries)
        self.kept: int | None = None
        build = current_trace().build
        graph = self._trace(build, carries, stacks, constants)
        counts = len(self.constants), self.carries, spec.length
        body = Body(spec.name, graph, *counts, spec.reverse, spec.limited, spec.lean)
        super().__init__(body, build)
        self.unread = _unread_carries(body)

    def traced_as(self, spec: LoopSpec, graph: FuncGraph, carries: int) -> Loop:
        """Return a copy with a graph that was derived from this loop's graph, without another
        trace.
        """
        loop = copy(self)
        loop.spec, loop.carries, loop._outputs = spec, carries, None
        loop.body = self.body._replace(graph=graph, carries=carries, length=spec.length)
        loop.unread = _unread_carries(loop.body)
        return loop

    def keeping(self) -> Loop:
        """Return the loop with the carries that rounds begin with as further rows, except unread
        ones.
        """
        python, unread, graph = self.spec.python, self.unread, self.body.graph

        def read(carries: Sequence[Any]) -> list:
            return [carry for k, carry in enumerate(carries) if k not in unread]

        def keeping(carries: list, slices: list) -> tuple[list, list]:
            ends, rows = python(carries, slices)
            return ends, [*rows, *read(carries)]

        carried = graph.inputs[len(self.constants) :][: self.carries]
        graph = FuncGraph(graph.inputs, [*graph.outputs, *read(carried)])
        loop = self.traced_as(self.spec._replace(python=keeping), graph, self.carries)
        loop.kept = len(self.body.rows)
        return loop

    def _trace(
        self,
        build: Build,
        carries: Sequence[Tensor],
        stacks: Sequence[Tensor],
        constants: Sequence[tuple[Any, Tensor]],
    ) -> FuncGraph:
        trace = BodyTrace(self.spec.name, False, OutsideCalls(), build)
        bound = []
        for constant, operand in constants:
            bound.append(trace.argument(aval_of(operand)).value)
            if isinstance(constant, Variable):
                trace.reads[id(constant)] = constant, bound[-1]
            else:
                trace.met[id(constant)] = constant, bound[-1]
        begun = [trace.argument(aval_of(carry)) for carry in carries]
        slices = [trace.argument(Aval(tuple(x.shape[1:]), x.dtype)) for x in stacks]
        with trace.active():
            ends, rows = self.spec.python(begun, slices)
            self._check(carries, ends)
            outputs = [trace.value(convert(result)) for result in (*ends, *rows)]
            self.assigned = [variable for variable, _ in trace.assignments()]
            del ends, rows
        self.draws, self.effects = trace.draws, trace.effects
        self.has_effects = bool(self.assigned or self.draws or self.effects)
        reads = [entry for entry in trace.reads.values() if entry[1] not in bound]
        trace.met = {key: entry for key, entry in trace.met.items() if entry[1] not in bound}
        captured, literals = trace.captured()
        more = [*captured, *reads]
        self.constants = [constant for constant, _ in (*constants, *more)]
        inputs = [*bound, *[value for _, value in more], *trace.arguments[len(bound) :]]
        return optimize(FuncGraph(inputs, outputs), literals)

    def _check(self, carries: Sequence[Tensor], ends: Sequence[Any]) -> None:
        for k, (carry, new) in enumerate(zip(carries, map(convert, ends), strict=True)):
            before, after = aval_of(carry), aval_of(new)
            said = (
                f"{self.spec.name}: each round must keep the types of its loop variables: loop "
                f"variable {k} was {before.dtype}{before.shape} before the round, and "
                f"{after.dtype}{after.shape} after it"
            )
            if before.shape != after.shape:
                raise InvalidArgumentError(
                    f"{said}; broadcast or reshape one of them. Give a growing variable its "
                    "final shape at the start, as zeros that each round fills in part"
                )
            if before.dtype != after.dtype:
                raise _ChangedDtypeError(f"{said}; cast one of them", k, after.dtype)

    # derivatives and batches

    def vjp(self, call: PartCall, node: Node, dys: Sequence[Tensor]) -> list:
        """Return the gradient of each operand, by a loop from the last round to the first."""
        if self.spec.length is None:
            return self._vjp_bounded(call, node, dys)
        inputs, outs = call.inputs, call.results
        asked = asked_positions(node, inputs)
        first, count = len(self.constants), self.carries
        operands, stacks = list(inputs[first : first + count]), list(inputs[first + count :])
        pairs = list(zip(self.constants, inputs, strict=False))
        if self.kept is None:
            again = run_loop_of(self.spec, operands, stacks, pairs, keep=True, loop=self)
            kept = again[1][len(self.body.rows) :]
        else:
            kept = outs[count + self.kept :][: count - len(self.unread)]
        moving = [k for k, operand in enumerate(operands) if is_differentiable(operand._data.dtype)]
        rows = [
            k
            for k, row in enumerate(self.body.rows)
            if is_differentiable(row.dtype) and not is_zero(dys[count + k])
        ]
        by_stack = [k - first - count for k in asked if k >= first + count]
        by_constant = [k for k in asked if k < first]
        reached: set[int] = set()  # constants that have a gradient

        def back(carries: list, slices: list) -> tuple[list, list]:
            upstream, totals = carries[: len(moving)], carries[len(moving) :]
            supply = iter(slices)
            values = [
                identity(operands[k] if k in self.unread else next(supply)) for k in range(count)
            ]
            parts = [identity(next(supply)) for _ in stacks]
            own = [values[k] for k in moving] + [parts[k] for k in by_stack]
            sources, token = [*own, *[self.constants[k] for k in by_constant]], Token()
            ends, outputs = run_recorded(token, sources, self.spec.python, values, parts)
            targets = [convert(ends[k]) for k in moving] + [convert(outputs[k]) for k in rows]
            gradients = differentiate_once(token, targets, [*upstream, *supply], sources)
            new = fill_zeros(own, gradients[: len(own)])
            more = gradients[len(own) :]
            reached.update(k for k, dy in zip(by_constant, more, strict=True) if dy is not None)
            sums = [
                total if dy is None else add(total, dy)
                for total, dy in zip(totals, more, strict=True)
            ]
            return [*new[: len(moving)], *sums], new[len(moving) :]

        starts = [dys[k] for k in moving]
        starts += [zeros(*aval_of(inputs[k])) for k in by_constant]
        name, reverse = f"the gradient of {self.spec.name}", not self.spec.reverse
        spec = self.spec._replace(name=name, python=back, reverse=reverse)
        upstream = [dys[count + k] for k in rows]
        ends, stacked = run_loop_of(spec, starts, [*kept, *stacks, *upstream], pairs)
        totals = zip(by_constant, ends[len(moving) :], strict=True)
        gradients = [*ends[: len(moving)], *[x if k in reached else None for k, x in totals]]
        positions = [first + k for k in moving] + by_constant
        positions += [first + count + k for k in by_stack]
        return at_positions(positions, [*gradients, *stacked[: len(by_stack)]], len(inputs))

    def _vjp_bounded(self, call: PartCall, node: Node, dys: Sequence[Tensor]) -> list:
        """Return the gradient of each operand, of a loop without a length."""
        inputs, outs = call.inputs, call.results
        first, last = len(self.constants), len(inputs) - 1  # the flag is the last carry
        moving = [k for k in range(self.carries) if is_differentiable(outs[k]._data.dtype)]

        def ends(most: int, operands: Sequence[Tensor]) -> list[Tensor]:
            count, rest = operands[0], operands[1:]
            pairs = [(count, count), *zip(self.constants, rest, strict=False)]
            spec = LoopSpec(self.spec.name, _without_flag(self.spec.python), most, limited=True)
            results, _ = run_loop_of(spec, rest[first:], [], pairs)
            return [results[k] for k in moving]

        bounded = BoundedLoop(self.spec.name, ends, [aval_of(outs[k]) for k in moving], self)
        asked = [k for k in asked_positions(node, inputs) if k < last]
        upstream = [dys[k] for k in moving]
        gradients = bounded.gradient((outs[-1], *inputs[:last]), upstream, [1 + k for k in asked])
        return at_positions(asked, gradients, len(inputs))

    def batch(self, level: Batch, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Return the results for a batch, by a loop whose rounds compute all examples.

        If the examples have different numbers of rounds, each keeps its carries after its last
        round.
        """
        first, count, until = len(self.constants), self.carries, self.spec.length is None
        stack_operands = inputs[first + count :]
        flags = list(map(level.has, stack_operands))
        constants = []
        for constant, operand in zip(self.constants, inputs, strict=False):
            if level.has(operand) and not level.has(constant):
                raise TypeError(
                    f"{self.spec.name}: a constant of the loop is the same for all examples, but "
                    "its replacement is not: pass it to the loop as a stack or a loop variable"
                )
            if level.has(constant):
                constants.append((constant.physical, level.physical(operand)))
            else:
                constants.append((constant, operand))
        limits = constants[0][0] if self.spec.limited and level.has(inputs[0]) else None

        def python(carries: list, slices: list) -> tuple[list, list]:
            with level:
                examples = [BatchTensor(carry, level) for carry in carries[:count]]
                after, rows = self.spec.python(examples, examples_of(slices, flags, level))
                after, rows = list(map(convert, after)), list(map(convert, rows))
                live = examples[-1] if until else None
                if limits is not None:
                    live = less(slices[-1], BatchTensor(limits, level))
                if live is not None:
                    pairs = zip(after, examples, strict=True)
                    after = [where(live, new, old) for new, old in pairs]
                    rows = [where(live, row, zeros_like(row)) for row in rows]
            ends = list(map(level.physical, after))
            if until:
                counts = add(carries[count], cast(carries[count - 1], INT64))
                ends += [counts, reduce_any(ends[-1])]
            return ends, list(map(level.physical, rows))

        stacks = [
            move_axis(level.physical(operand), 0, 1) if flag else operand
            for operand, flag in zip(stack_operands, flags, strict=True)
        ]
        if limits is not None:
            most = reduce_max(constants[0][1])
            constants.insert(0, (most, most))
            stacks.append(Tensor(np.arange(self.spec.length or 0)))
        carries = [level.physical(operand) for operand in inputs[first : first + count]]
        if until:
            carries += [zeros((level.size,), INT64), reduce_any(carries[-1])]
        spec = self.spec._replace(python=python)
        ends, stacked = run_loop_of(spec, carries, stacks, constants, keep=False)
        rows = [] if until else [move_axis(output, 0, 1) for output in stacked]
        return [BatchTensor(result, level) for result in (*ends[: count + until], *rows)]


class LoopSpec(NamedTuple):
    """A loop to be traced.

    If it is `limited`, the first constant is the number of rounds, `length` at most. If it is
    `lean`, its gradient keeps only the carries that each round began with.
    """

    name: str
    python: Round
    length: int | None
    reverse: bool = False
    lean: bool = False
    limited: bool = False


def complete(
    spec: LoopSpec, carries: Sequence[Any], stacks: Sequence[Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """Run a loop whose body may have side effects.

    A carry that is a Python number takes the dtype that the first round gives it. If the body has
    ordered side effects, the first carry is a mark. The next carries are the Variables that the
    body assigns. Random numbers are drawn before the loop, for all rounds.
    """
    recorded, one_round, trace = records_assignments(), spec.python, current_trace()
    marked = False  # `marked` and `variables` are known after the first trace
    variables: list[Variable] = []

    def python(carries: list, slices: list) -> tuple[list, list]:
        inside, before = current_trace(), state.draws
        numbers, values = slices[len(stacks) :], carries[marked:]
        with recorded_assignments(restore=True) if recorded else contextlib.nullcontext():
            if marked:
                inside.effects.append(inside.value(_mark_of(carries[0])))
            for variable, value in zip(variables, values, strict=False):
                variable.assign(value)
            try:
                if numbers:
                    state.draws = replay(numbers, before)
                ends, rows = one_round(values[len(variables) :], slices[: len(stacks)])
            finally:
                state.draws = before
            marks = [TraceTensor(inside.effects[-1], inside)] if marked else []
            return [*marks, *[variable.read_value() for variable in variables], *ends], rows

    spec = spec._replace(python=python)
    weak = [is_weak(carry) for carry in carries]
    starts = list(map(convert, carries))
    while True:
        try:
            loop = Loop(spec, starts, stacks)
            break
        except _ChangedDtypeError as error:
            if not weak[error.carry]:
                raise TypeError(str(error)) from None
            weak[error.carry] = False
            starts[error.carry] = cast(starts[error.carry], error.dtype)
    if spec.length is None:
        arrays = [start._data if type(start._data) is np.ndarray else None for start in starts]
        count = known_rounds(loop.body.graph, len(loop.constants), arrays)
        if count is not None:
            return _with_length(spec, one_round, count, loop, starts, stacks)
    if not loop.has_effects:
        return run_loop_of(spec, starts, stacks, loop=loop)
    if loop.draws and spec.length is None:
        raise InvalidArgumentError(
            f"{spec.name}: random numbers are drawn in a loop whose length is not known "
            f"while `{trace.name}` is traced: draw them before the loop, or use scan"
        )
    marked, variables = bool(loop.effects), loop.assigned
    marks = [TraceTensor(mark, trace) for mark in trace.effects[-1:]] or [convert(False)]
    reads = [variable._read() for variable in variables]
    ends, rows = run_loop_of(
        spec,
        [*marks[:marked], *reads, *starts],
        [*stacks, *[_draw_all(draw, spec.length or 0) for draw in loop.draws]],
        [] if recorded else list(zip(variables, reads, strict=True)),  # they count as read
    )
    if marked:
        trace.effects.append(trace.value(_mark_of(ends.pop(0))))
    for variable, value in zip(variables, ends, strict=False):
        variable.assign(value)
    return ends[len(variables) :], rows


def _with_length(
    spec: LoopSpec,
    one_round: Round,
    count: int,
    loop: Loop,
    starts: Sequence[Tensor],
    stacks: Sequence[Tensor],
) -> tuple[list[Tensor], list[Tensor]]:
    """Run a loop that ends by its last carry, whose number of rounds is known to be `count`."""
    python = _without_flag(one_round if loop.has_effects else spec.python)
    counted = spec._replace(python=python, length=count)
    if loop.has_effects:
        ends, rows = complete(counted, starts[:-1], stacks)
    else:
        inputs, outputs = list(loop.body.graph.inputs), list(loop.body.graph.outputs)
        del inputs[len(loop.constants) + loop.carries - 1], outputs[loop.carries - 1]
        counts = loop.traced_as(counted, FuncGraph(inputs, outputs), loop.carries - 1)
        ends, rows = run_loop_of(counted, starts[:-1], stacks, loop=counts)
    return [*ends, convert(False)], rows


def _without_flag(one_round: Round) -> Round:
    """Return the round without its last carry, the condition."""

    def python(carries: list, slices: list) -> tuple[list, list]:
        ends, rows = one_round([*carries, None], slices)
        return ends[:-1], rows

    return python


def _mark_of(tensor: Tensor) -> Tensor:
    """Return the mark of a side effect as a scalar: in a batch it happens once for all examples."""
    while isinstance(tensor, BatchTensor):
        tensor = tensor.physical
    return reduce_any(tensor) if tensor.ndim else tensor


def _draw_all(draw: Value, length: int) -> Tensor:
    """Draw the random numbers of all rounds."""
    method, arguments = draw.params["method"], list(draw.params["arguments"])
    at = 2 if method == "integers" else 0
    arguments[at] = (length, *arguments[at])
    return state.draws(method, tuple(arguments))


def run_loop_of(
    spec: LoopSpec,
    carries: Sequence[Tensor],
    stacks: Sequence[Tensor],
    constants: Sequence[tuple[Any, Tensor]] = (),
    keep: bool | None = None,
    loop: Loop | None = None,
) -> tuple[list[Tensor], list[Tensor]]:
    """Return the last carries, and the stacks of outputs.

    `constants` are pairs of a tensor or Variable that the body uses and its operand. With `keep`
    the carries that rounds begin with are further outputs; by default they are if a tape records.
    `loop` is the traced loop, if there is one.
    """
    if keep is None:
        keep = _is_recorded() and spec.length is not None
    loop = loop or Loop(spec, carries, stacks, constants)
    loop = loop.keeping() if keep else loop
    operands = [operand for _, operand in constants]
    for constant in loop.constants[len(operands) :]:
        operands.append(constant._read() if isinstance(constant, Variable) else constant)
    results = apply(LOOP, (*operands, *carries, *stacks), {"loop": loop})
    return results[: len(carries)], results[len(carries) :]


def _unread_carries(body: Body) -> set[int]:
    """Return the carries of which a round only replaces a row."""
    carried = body.graph.inputs[body.constants :][: body.carries]
    values, outputs = body.graph.values(), body.graph.outputs
    uses = Counter(operand for value in values for operand in value.inputs)
    read = Counter(outputs[: body.carries])
    unread = set()
    for k, (start, end) in enumerate(zip(carried, outputs, strict=False)):
        is_write = end.name == "set_row" and end.inputs[0] is start
        if is_write and uses[start] == 1 and not uses[end] and not read[start]:
            unread.add(k)
    return unread


class BoundedLoop:
    """A function of a number of rounds, and of tensors, for a bounded number of rounds.

    ``make(most, operands)`` computes it for at most `most` rounds, a power of two; there is a
    program for each. The results have the shapes `avals` for any number of rounds.
    """

    first_saved = 0

    def __init__(
        self,
        name: str,
        make: Callable[[int, Sequence[Tensor]], list[Tensor]],
        avals: Sequence[Aval],
        loop: Loop,
    ):
        self.name, self.make, self.avals, self.loop = name, make, list(avals), loop
        self._programs: dict[int, tuple[Outputs, list[np.ndarray]]] = {}

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run the program for this number of rounds."""
        counts = arrays[0]
        rounds = counts.item() if counts.size == 1 else int(counts.max())
        most = 1 << (max(rounds, 1) - 1).bit_length()
        if most not in self._programs:
            self.program(most, [Aval(array.shape, array.dtype) for array in arrays])
        outputs, captured = self._programs[most]
        return outputs.run([*arrays, *captured])

    def program(self, most: int, avals: Sequence[Aval]) -> tuple[Outputs, list[np.ndarray]]:
        """Return the program for at most so many rounds, and the arrays that it captures."""
        if most not in self._programs:
            with _opened(self.loop.constants):
                self._programs[most] = run_on(None, self._trace, most, avals)
        return self._programs[most]

    @property
    def sources(self) -> list[str]:
        """Return the source texts of the programs made so far."""
        return [text for outputs, _ in self._programs.values() for text in outputs.sources]

    def _trace(self, most: int, avals: Sequence[Aval]) -> tuple[Outputs, list[np.ndarray]]:
        trace = FunctionTrace(self.name, False, OutsideCalls(), self.loop.build)
        with trace.active():
            results = self.make(most, [trace.argument(aval) for aval in avals])
            outputs = list(map(trace.value, results))
        captured, literals = trace.captured()
        inputs = [*trace.arguments, *[value for _, value in captured]]
        graph = optimize(FuncGraph(inputs, outputs), literals)
        return Outputs(graph, self.loop.build), [tensor._data for tensor, _ in captured]

    def gradient(
        self, operands: Sequence[Tensor], dys: Sequence[Tensor], positions: Sequence[int]
    ) -> list[Tensor]:
        """Return the gradients of the operands at these positions, zeros where there is none."""
        first = len(operands)

        def make(most: int, tensors: Sequence[Tensor]) -> list[Tensor]:
            make_outputs = partial(self.make, most)
            return gradients_of_call(make_outputs, tensors[:first], positions, tensors[first:])

        avals = [aval_of(operands[k]) for k in positions]
        derivative = BoundedLoop(f"the gradient of {self.name}", make, avals, self.loop)
        return apply(BOUNDED_LOOP, (*operands, *dys), {"loop": derivative}) if positions else []

    def vjp(self, call: PartCall, node: Node, dys: Sequence[Tensor]) -> list:
        """Return the gradient of each operand."""
        asked = asked_positions(node, call.inputs)
        return at_positions(asked, self.gradient(call.inputs, dys, asked), len(call.inputs))

    def batch(self, level: Batch, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Return the results for a batch."""
        flags = [level.has(operand) for operand in inputs]

        def make(most: int, operands: Sequence[Tensor]) -> list[Tensor]:
            with level:
                results = self.make(most, examples_of(operands, flags, level))
            return list(map(level.physical, results))

        avals = [Aval((level.size, *aval.shape), aval.dtype) for aval in self.avals]
        batched = BoundedLoop(self.name, make, avals, self.loop)
        operands = [operand.physical if level.has(operand) else operand for operand in inputs]
        results = apply(BOUNDED_LOOP, tuple(operands), {"loop": batched})
        return [BatchTensor(result, level) for result in results]


@contextlib.contextmanager
def _opened(constants: Sequence[Any]) -> Iterator[None]:
    """Return a context in which the loop's constants may be used although their trace is over."""
    levels = set()
    for constant in constants:
        while isinstance(constant, BatchTensor):
            constant = constant.physical
        if isinstance(constant, TraceTensor) and constant.level.is_over:
            levels.add(constant.level)
    for level in levels:
        level.is_over = False
    try:
        yield
    finally:
        for level in levels:
            level.is_over = True


LOOP = part_operation("loop", "loop")
BOUNDED_LOOP = part_operation("bounded_loop", "loop")


def _is_recorded() -> bool:
    """Return whether a tape records what is done here."""
    return any(
        type(level) is Token and not level.silent and level.alive for level in stack(state.frame)
    )


def shapes_of(
    name: str, rows: Callable[[list, list], list], carries: Sequence[Any], parts: Sequence[Aval]
) -> list[Aval]:
    """Trace a round, discard the trace, and return the shapes and dtypes of the results."""
    trace = BodyTrace(name, False, OutsideCalls())
    arguments = [trace.argument(aval_of(convert(carry))) for carry in carries]
    with trace.active():
        return [aval_of(convert(row)) for row in rows(arguments, list(map(trace.argument, parts)))]
