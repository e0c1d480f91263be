"""Gradients of compiled programs: forward with residuals, and backward from these.

The program is traced once more, together with its sweep, under a tape that watches what the
caller's tapes watch, so that each rule inside is found where it belongs. The graph of both is cut
in two. What is differentiated again is all of it, as a function of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._core.kinds import is_differentiable
from ..._core.levels import Token, push, remove, state
from ..._core.record import find_operands, mark_expired, watch_tensor
from ..._core.tensor import Tensor
from ..._ops.sampling import draw
from ..._ops.shape import identity
from ..._reverse.sweep import differentiate, release
from ..._rules.calls import TransformedCall
from ..._rules.definition import Definition
from ..graph.partition import cut
from ..graph.simplify import simplify
from ..graph.values import FuncGraph
from .compiled import Outputs, Program, arrays_of, wrap_array
from .trace import FunctionTrace
from .traced import Traced


class Gradient:
    """The gradient of one program by the inputs that are `wanted`."""

    def __init__(self, traced: Traced, wanted: Sequence[bool]):
        self.traced = traced
        self.program: Program = traced.program
        self.wanted = wanted
        self.positions = [i for i, flag in enumerate(wanted) if flag]
        self.differentiable = [is_differentiable(aval.dtype) for aval in self.program.avals]
        self.definition = Definition(traced.python, traced.name)
        self.pullback = traced.derive(self._pullback)
        self._parts: ForwardBackward | None = None

    @property
    def parts(self) -> ForwardBackward:
        """Return the two programs, traced when they are first wanted."""
        if self._parts is None:
            self._parts = ForwardBackward(self)
        return self._parts

    def sweep(
        self, leaves: Sequence, upstream: Callable[[list], Sequence], draws: Sequence = ()
    ) -> list:
        """Return gradients by the wanted inputs: run the Python function on a tape of its own.

        ``upstream(outputs)`` gives the upstream gradients of those outputs that have any.
        """
        pairs = zip(leaves, self.wanted, strict=False)
        fresh = [identity(leaf) if flag else leaf for leaf, flag in pairs]
        inputs = [*fresh, *self.program.captures, *self.program.reads]
        sources = [inputs[position] for position in self.positions]
        token = Token()
        before = state.draws
        push(token)
        try:
            for source in sources:
                watch_tensor(source, token)
            if draws:
                state.draws = _replay(draws, before)
            outputs = self.traced.run(fresh)
        finally:
            state.draws = before
            remove(token)
        dys = upstream(outputs)
        targets = [one for one in outputs if is_differentiable(one._data.dtype)]
        found, visited = differentiate(token, targets, dys, sources)
        token.alive = False
        release(visited)
        return found

    def _pullback(self, *args: Any) -> list:
        """Return gradients; `args` are leaves of a call, upstream gradients, and numbers drawn."""
        first, second = len(self.traced.avals), len(self.traced.avals) + sum(self.differentiable)
        return self.sweep(args[:first], lambda outputs: args[first:second], args[second:])

    def run(self, inputs: Sequence, count: int, deep: bool) -> tuple[list[Tensor], TransformedCall]:
        """Return the outputs without records, and the call as tapes see it.

        `inputs` are the program's, the first `count` of them leaves of the call. If it is `deep`,
        with more than one tape, the sweep will be recorded too, and needs no residuals.
        """
        program = self.program
        snapshot = {id(variable): variable._data for variable in program.assigned}
        reads = inputs[len(inputs) - len(program.reads) :]
        for variable, tensor in zip(program.reads, reads, strict=True):
            snapshot[id(variable)] = tensor._data
        saved, draws = None, []
        if deep and not program.draws:
            outputs = program.run(inputs)
        else:
            outputs, saved, draws = self.parts.forward(inputs[:count], snapshot)
        call = (inputs, count, saved, draws, snapshot)
        return outputs, TransformedCall(self.definition, lambda dys, targets: self.pull(call, dys))

    def pull(self, call: tuple, dys: Sequence) -> list:
        """Return the gradient of each input of a call of `run`, from those of the outputs."""
        inputs, count, saved, draws, snapshot = call
        pairs = zip(dys, self.differentiable, strict=True)
        upstream = [dy for dy, flag in pairs if flag]
        found = None if saved is None else self.parts.backward(inputs, saved, upstream)
        if found is None:
            before = state.overrides
            try:
                if snapshot:
                    state.overrides = before | snapshot
                found = self.pullback(*inputs[:count], *upstream, *draws)
            finally:
                state.overrides = before
        gradients: list[Any] = [None] * len(inputs)
        for position, gradient in zip(self.positions, found, strict=True):
            gradients[position] = gradient
        return gradients


def _replay(draws: Sequence[Tensor], following: Callable | None) -> Callable:
    """Return a function that gives random numbers again, and new ones after the last of them."""
    remaining = iter(draws)

    def replay(method: str, arguments: tuple) -> Any:
        again = next(remaining, None)
        return (following or draw)(method, arguments) if again is None else again

    return replay


class ForwardBackward:
    """Forward and backward of one gradient."""

    def __init__(self, gradient: Gradient):
        self.program = gradient.program
        trace = FunctionTrace(gradient.traced.name, may_create=False)
        with trace.active():
            leaves = gradient.traced.arguments(trace)
            early, grads = self._run(gradient, trace, leaves)
            known, pairs = early.assigned, trace.assignments()
            assigned = [pair for pair in pairs if known.get(pair[0]._serial) is not pair[1]]
        dys = trace.arguments[len(leaves) :]
        arguments = trace.arguments[: len(leaves)]
        del leaves
        captured, literals = trace.captured()
        self.captures = [tensor for tensor, _ in captured]
        reads = list(trace.reads.values())
        self.reads = [variable for variable, _ in reads[: early.reads]]
        self.backward_reads = [variable for variable, _ in reads[early.reads :]]
        self.backward_assigned = [variable for variable, _ in assigned]
        self.connected = [value is not None for value in grads]
        inputs = [*arguments, *[value for _, value in captured]]
        inputs += [value for _, value in reads[: early.reads]]
        backward_inputs = [*dys, *[value for _, value in reads[early.reads :]]]
        kept = [*early.outputs, *early.assigned.values(), *trace.draws[: early.draws]]
        ends = [value for value in grads if value is not None] + [value for _, value in assigned]
        if len(trace.draws) > early.draws:  # the last of them, so that all are drawn
            ends.append(trace.draws[-1])
        joint = simplify(FuncGraph([*inputs, *backward_inputs], [*kept, *ends]), literals)
        kept, ends = list(joint.outputs[: len(kept)]), list(joint.outputs[len(kept) :])
        residuals, backward = cut(inputs, kept, backward_inputs, ends)
        self.count = len(early.outputs)
        self.draws = early.draws
        self.backward_draws = len(trace.draws) - early.draws
        self.kept = len(kept)
        self.forward_outputs = Outputs(inputs, [*kept, *residuals], gradient.traced.build)
        self.backward_outputs = Outputs(backward.inputs, backward.outputs, gradient.traced.build)

    def _run(self, gradient: Gradient, trace: FunctionTrace, leaves: Sequence) -> tuple:
        early = _EndOfForward()

        def upstream(outputs: list) -> list:
            early.outputs = [trace.value(output) for output in outputs]
            early.assigned = {variable._serial: value for variable, value in trace.assignments()}
            early.reads, early.draws = len(trace.reads), len(trace.draws)
            avals = [output._data for output in outputs]
            return [trace.argument(aval) for aval in avals if is_differentiable(aval.dtype)]

        found = gradient.sweep(leaves, upstream)
        return early, [None if one is None else trace.value(one) for one in found]

    def forward(self, leaves: Sequence, snapshot: dict) -> tuple[list[Tensor], list, list[Tensor]]:
        """Return the outputs, the residuals, and the random numbers drawn."""
        inputs = [*leaves, *self.captures]
        for variable in self.reads:
            known = snapshot.get(id(variable))
            inputs.append(wrap_array(variable._current() if known is None else known))
        results = self.forward_outputs.run(arrays_of(inputs))
        self.program.assign(results)
        draws = results[self.kept - self.draws : self.kept]
        outputs = list(map(wrap_array, results[: self.count]))
        return outputs, results[self.kept :], list(map(wrap_array, draws))

    def backward(self, inputs: Sequence, saved: list, dys: Sequence[Tensor]) -> list | None:
        """Return the gradients; None if somebody records them, or they have no values yet."""
        reads = [variable._read() for variable in self.backward_reads]
        frame = state.frame
        tensors = [one for one in inputs if isinstance(one, Tensor)]
        tensors += [*dys, *reads, *self.captures]
        if frame is not None and (frame.level is not None or find_operands(frame, tensors)[2]):
            return None
        results = self.backward_outputs.run([*saved, *arrays_of(dys), *arrays_of(reads)])
        remaining = iter(results)
        found = [wrap_array(next(remaining)) if flag else None for flag in self.connected]
        for variable in self.backward_assigned:
            variable._assign(next(remaining))
        mark_expired(tensors, [one for one in found if one is not None])
        return found


class _EndOfForward:
    """The state of a trace when the function was over, and its sweep began."""

    outputs: list
    assigned: dict
    reads: int
    draws: int
