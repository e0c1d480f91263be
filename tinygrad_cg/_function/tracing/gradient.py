"""Gradients of compiled programs: a forward program with residuals, and a backward program.

The Python function is traced once more together with its sweep, under a tape that watches what the
caller's tapes watch; so each rule inside is the one that an eager run would use. The graph of both
is cut in two. A higher derivative differentiates the pullback as a function of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tinygrad_cg_kernels.runtime.locks import no_collection

from ..._core.kinds import is_differentiable
from ..._core.levels import Token, state
from ..._core.record import Node, find_operands, mark_expired, new_mark, run_recorded
from ..._core.tensor import Tensor
from ..._ops.sampling import replay
from ..._ops.shape import identity
from ..._reverse.sweep import differentiate_once
from ..._rules.definition import Definition
from ..._rules.rebinding import TransformedCall
from ..graph.loop_optimization import optimize
from ..graph.partition import cut
from ..graph.values import FuncGraph
from .compiled import Traced, arrays_of, rolled, wrap_array
from .outputs import Outputs
from .trace import FunctionTrace, thread_state


class Gradient:
    """The gradient of one program with respect to the `wanted` inputs."""

    def __init__(self, traced: Traced, wanted: Sequence[bool]):
        self.traced, self.program, self.wanted = traced, traced.program, wanted
        self.positions = [i for i, flag in enumerate(wanted) if flag]
        avals = self.program.avals
        self.upstream = [i for i, aval in enumerate(avals) if is_differentiable(aval.dtype)]
        self.definition = Definition(traced.python, traced.name)
        self.pullback = traced.derive(self._pullback)
        self._parts: ForwardBackward | None = None
        self.asking: list[Definition] = []  # the function or rule that asked for the latest sweep

    @property
    def parts(self) -> ForwardBackward:
        """Return the two programs, which are traced at first use."""
        return self.parts_for(())

    def parts_for(self, leaves: Sequence) -> ForwardBackward:
        """Return the two programs, traced at first use for a call with these `leaves`."""
        if self._parts is None:
            self._parts = ForwardBackward(self, leaves)
        return self._parts

    def sweep(
        self, leaves: Sequence, upstream: Callable[[list], Sequence], draws: Sequence = ()
    ) -> list:
        """Return gradients with respect to the wanted inputs: run the Python function on its own
        tape.

        ``upstream(outputs)`` returns the upstream gradients of the differentiable outputs.
        """
        pairs = zip(leaves, self.wanted, strict=False)
        fresh = [identity(leaf) if flag else leaf for leaf, flag in pairs]
        inputs = [*fresh, *self.program.captures, *self.program.reads]
        sources = [inputs[position] for position in self.positions]
        token = Token()
        with thread_state({"draws": replay(draws, state.draws)} if draws else {}):
            outputs, _ = run_recorded(token, sources, self.traced.run, fresh)
        targets = [output for output in outputs if is_differentiable(output._data.dtype)]
        return differentiate_once(token, targets, upstream(outputs), sources)

    def _pullback(self, *args: Any) -> list:
        """Return gradients; `args` are leaves of a call, upstream gradients and random numbers."""
        leaves, upstream = len(self.traced.avals), len(self.upstream)
        dys, draws = args[leaves:][:upstream], args[leaves + upstream :]
        with thread_state({"rules": [*state.rules, *self.asking]}):
            return self.sweep(args[:leaves], lambda outputs: dys, draws)

    def run(self, inputs: Sequence, count: int, deep: bool) -> tuple[list[Tensor], TransformedCall]:
        """Return the outputs without records, and the call as tapes see it.

        The first `count` of the program's `inputs` are leaves of the call. `deep` says that there
        is more than one tape: the sweep will be recorded, so it needs no residuals.
        """
        program = self.program
        snapshot = {id(variable): variable._data for variable in program.assigned}
        reads = zip(program.reads, inputs[len(inputs) - len(program.reads) :], strict=True)
        snapshot |= {id(variable): tensor._data for variable, tensor in reads}
        saved, draws = None, []
        if deep and not program.draws:
            outputs = program.run(inputs)
        else:
            parts = self.parts_for(inputs[:count])
            outputs, saved, draws = parts.forward(inputs[:count], snapshot)
        call = (inputs, count, saved, draws, snapshot)
        return outputs, TransformedCall(self.definition, lambda dys, targets: self.vjp(call, dys))

    def vjp(self, call: tuple, dys: Sequence) -> list:
        """Return the gradient of each input of a call of `run`, given those of the outputs."""
        inputs, count, saved, draws, snapshot = call
        upstream = [dys[i] for i in self.upstream]
        gradients = None if saved is None else self.parts.backward(inputs, saved, upstream)
        if gradients is None:
            gradients, before = [None] * len(inputs), state.overrides
            self.asking = state.rules[-1:]
            try:
                if snapshot:
                    state.overrides = before | snapshot
                results = self.pullback(*inputs[:count], *upstream, *draws)
            finally:
                state.overrides = before
            for position, gradient in zip(self.positions, results, strict=True):
                gradients[position] = gradient
        return gradients

    def has_entries(self, single: bool) -> bool:
        """Return whether an entry can serve it: nothing is assigned, drawn, or read by the backward
        pass.
        """
        program = self.program
        if program.assigned or program.draws:
            return False
        if not single:
            return True
        parts, reads = self.parts, {id(variable) for variable in program.reads}
        if parts.draws or parts.backward_draws or parts.backward_reads or parts.backward_assigned:
            return False
        return all(id(variable) in reads for variable in parts.reads)

    def entry_vjp(self, node: Node, saved: tuple, dys: Sequence) -> Sequence:
        """Return the gradient of each input for a call by an entry, which made `node`."""
        _, leaves, residuals, reads = saved
        if residuals is None or state.frame is not None:
            program = self.program
            pairs = zip(program.reads, reads, strict=True)
            snapshot = {id(variable): tensor._data for variable, tensor in pairs}
            inputs = [*leaves, *program.captures, *reads]
            return self.vjp((inputs, len(leaves), residuals, [], snapshot), dys)
        parts: Any = self._parts  # they made the residuals
        results = parts.backward_outputs.run([*residuals, *[dys[i]._data for i in self.upstream]])
        mark = new_mark((_tapes(node),))  # as for any operation on recorded tensors
        gradients: list[Any] = [None] * len(node.inputs)
        for position, array in zip(parts.positions, results, strict=False):  # marks of calls follow
            gradients[position] = gradient = wrap_array(array)
            gradient._rec = mark
        return gradients


def _tapes(node: Node) -> frozenset:
    """Return the tapes that watch an operand of the node."""
    group = node.group
    for operand in node.inputs:
        if operand is not None and operand.group is not group:
            group = group | operand.group
    return group


class ForwardBackward:
    """The forward and the backward program of one gradient."""

    @no_collection()
    def __init__(self, gradient: Gradient, leaves: Sequence):
        self.program, build = gradient.program, gradient.traced.build
        trace = FunctionTrace(gradient.traced.name, False, gradient.traced.calls, build)
        trace.argument_values = arrays_of(leaves)
        rules = state.rules[-1:]
        with trace.active():
            state.rules.extend(rules)  # warnings of lost values go to whoever asks
            outputs, assigned_forward, read, self.draws, effects, grads = _trace_sweep(
                gradient, trace
            )
            pairs = trace.assignments()
            assigned = [
                pair for pair in pairs if assigned_forward.get(pair[0]._serial) is not pair[1]
            ]
        count = len(gradient.traced.avals)
        captured, literals = trace.captured()
        reads = list(trace.reads.values())
        self.captures = [tensor for tensor, _ in captured]
        self.reads = [variable for variable, _ in reads[:read]]
        self.backward_reads = [variable for variable, _ in reads[read:]]
        self.backward_assigned = [variable for variable, _ in assigned]
        connected = zip(gradient.positions, grads, strict=True)
        self.positions = [position for position, value in connected if value is not None]
        self.count = len(outputs)
        inputs = [*trace.arguments[:count], *[value for _, value in (*captured, *reads[:read])]]
        backward_inputs = [*trace.arguments[count:], *[value for _, value in reads[read:]]]
        kept = [*outputs, *assigned_forward.values(), *effects, *trace.draws[: self.draws]]
        ends = [value for value in grads if value is not None] + [value for _, value in assigned]
        self.backward_draws = len(trace.draws) - self.draws
        if self.backward_draws:  # the last one, so that all are drawn
            ends.append(trace.draws[-1])
        if trace.effects[-1:] != effects:
            ends.append(trace.effects[-1])
        self.kept = len(kept)
        graph = FuncGraph([*inputs, *backward_inputs], [*kept, *ends])
        joint = optimize(rolled(graph, literals, build), literals)
        kept, ends = joint.outputs[: self.kept], joint.outputs[self.kept :]
        residuals, backward = cut(inputs, kept, backward_inputs, ends)
        self.forward_outputs = Outputs(FuncGraph(inputs, [*kept, *residuals]), build)
        self.backward_outputs = Outputs(backward, build)

    def forward(self, leaves: Sequence, snapshot: dict) -> tuple[list[Tensor], list, list[Tensor]]:
        """Return the outputs, the residuals and the random numbers that were drawn."""
        inputs = [*leaves, *self.captures]
        for variable in self.reads:
            stored = snapshot.get(id(variable))
            inputs.append(wrap_array(variable._current() if stored is None else stored))
        results = self.forward_outputs.run(arrays_of(inputs))
        self.program.assign(results)
        draws = results[self.kept - self.draws : self.kept]
        outputs = list(map(wrap_array, results[: self.count]))
        return outputs, results[self.kept :], list(map(wrap_array, draws))

    def backward(self, inputs: Sequence, saved: list, dys: Sequence[Tensor]) -> list | None:
        """Return each input's gradient; None if a level records the inputs or they lack values."""
        reads = [variable._read() for variable in self.backward_reads]
        frame = state.frame
        tensors = [item for item in inputs if isinstance(item, Tensor)]
        tensors += [*dys, *reads, *self.captures]
        if frame is not None and (frame.level is not None or find_operands(frame, tensors)[2]):
            return None
        results = self.backward_outputs.run([*saved, *arrays_of(dys), *arrays_of(reads)])
        gradients = list(map(wrap_array, results[: len(self.positions)]))
        for variable, array in zip(self.backward_assigned, results[len(gradients) :], strict=False):
            variable._assign(array)
        mark_expired(tensors, gradients)
        by_position = dict(zip(self.positions, gradients, strict=True))
        return [by_position.get(position) for position in range(len(inputs))]


def _trace_sweep(gradient: Gradient, trace: FunctionTrace) -> tuple:
    """Return what the function had done when its sweep began, and the values of the gradients.

    The former are its outputs, the assigned values of Variables, the numbers of Variables read and
    of random draws, and the mark of the last side effect.
    """
    early: list[Any] = []

    def upstream(outputs: list) -> list:
        assigned = {variable._serial: value for variable, value in trace.assignments()}
        early.extend(([trace.value(output) for output in outputs], assigned))
        early.extend((len(trace.reads), len(trace.draws), trace.effects[-1:]))
        avals = [output._data for output in outputs]
        return [trace.argument(aval) for aval in avals if is_differentiable(aval.dtype)]

    gradients = gradient.sweep(gradient.traced.arguments(trace), upstream)
    return *early, [None if tensor is None else trace.value(tensor) for tensor in gradients]
