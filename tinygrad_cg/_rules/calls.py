"""Calls of custom gradients: the rule in place of the operations that computed the outputs.

The inner operations of a call are carried out, and recorded, like any others. Then each level
of the stack gets the outputs anew: a tape with the call for their producer, if it watches an
input of it (on any other tape the inner operations stand), a transformation in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from .._core.kinds import is_differentiable
from .._core.levels import NOTHING, Frame, Token, run_on, state
from .._core.record import (
    Node,
    attach,
    attach_all,
    expired,
    find,
    find_operands,
    find_tokens,
    narrow,
    new_tensor,
    resolve,
)
from .._core.tensor import Tensor
from .._reverse.variable import Variable
from .definition import Definition, RuleSignature
from .returned import gradients_of_inputs, gradients_of_variables


class Call(NamedTuple):
    """One call of a decorated function: the residuals of its node."""

    rule: RuleSignature
    definition: Definition
    grad_fn: Callable[..., Any]
    count: int  # of inputs: as many gradients must the rule return
    paths: list[tuple] | None  # where each input stood in the call; None: one per argument
    values: Sequence | None  # the inputs, if the rule wants them too
    variables: list[Variable] | None

    def pull(self, dys: Sequence[Any], targets: Sequence) -> list:
        """Return the gradient of each input, then of each Variable, from those of the outputs.

        `targets` have the inputs' and the Variables' shapes and dtypes, which the gradients get.
        """
        returned = self.definition.run(self.rule.run, self, dys)
        if self.variables is None:
            return gradients_of_inputs(self, returned, targets)
        returned, others = gradients_of_variables(self, returned)
        return gradients_of_inputs(self, returned, targets[: self.count]) + others


class TransformedCall(NamedTuple):
    """A call as the levels below a transformation see it: `pull` works on their tensors."""

    definition: Definition
    pull: Callable[[Sequence, Sequence], list]  # of dys and targets, None if nobody asks for one
    # Where the output is the input: from the input's tangent, of an accumulator with some token,
    # to that of the output.
    jvp: Callable[[Any, Token], Any] | None = None
    # The tangents of the outputs, from those of the inputs (None for inputs at rest), where they
    # are known without a transpose.
    push: Callable[[Sequence], list] | None = None


AnyCall: TypeAlias = Call | TransformedCall


def one_output(frame: Frame, call: Call, inputs: Sequence[Tensor], y: Tensor) -> Tensor:
    """Return the output of the commonest call: tensors only, one output, no transformation."""
    group: Any = frame.alone
    first = inputs[0]._rec if len(inputs) == 1 else None
    if first is not None and first.group is group and first.next is None and not frame.natural:
        nodes, mask = (first,), 1
    else:
        group, nodes, mask = _custom_operands(frame, inputs)
    record = y._rec
    result = new_tensor()
    result._data = y._data
    result._rec = None
    if record is not None and (record.group is not group or record.next is not None):
        _keep_producer(frame, call, group, record, result)
    if mask and y._data.dtype.kind in "fc":  # by the letter: a call costs more
        attach(result, group, nodes, _custom_rule, call)
    return result


def rebind_outputs(
    frame: Frame | None, call: AnyCall, inputs: Sequence, outputs: Sequence[Tensor]
) -> list[Tensor]:
    """Return the outputs as new tensors with the call's rule, for `frame` and the levels below it.

    `inputs` are those of the call and then the values of its Variables; None for a number.
    """
    if frame is None:
        return list(map(copy, outputs))
    if frame.level is None:
        results = [output._with_record(None) for output in outputs]
    else:
        results = run_on(frame.lower, frame.level.custom_call, call, inputs, outputs)
    present = [tensor for tensor in inputs if tensor is not None]
    group, found, mask = _custom_operands(frame, present)
    for result, output in zip(results, outputs, strict=True):
        record = output._rec
        if record is not None and (record.group is not group or record.next is not None):
            _keep_producer(frame, call, group, record, result)
    if mask:
        if type(call) is not Call:
            for token in group:
                token.asks = True
        remaining = iter(found)
        nodes = tuple([None if tensor is None else next(remaining) for tensor in inputs])
        rule = _custom_rule if type(call) is Call else _transformed_rule
        if len(results) > 1:
            attach_all(group, nodes, rule, call, results)
        elif results and is_differentiable(results[0]._data.dtype):
            attach(results[0], group, nodes, rule, call)
    return results


def _custom_operands(frame: Frame, inputs: Sequence[Tensor]) -> tuple:
    """Return `find_operands` for the tapes that a custom rule is for; else no group."""
    group, nodes, mask = find_operands(frame, inputs)
    if mask and frame.natural:
        group = frame.active(group - frame.natural)
        mask = mask if group else 0
    return group if mask else NOTHING, nodes, mask


def copy(output: Tensor) -> Tensor:
    """Return the same value as another tensor, so that an output is never an input itself."""
    record = output._rec
    if record is None and type(output) is Tensor:
        result = new_tensor()
        result._data = output._data
        result._rec = None
        return result
    return output._with_record(None if record is None else expired(find_tokens(record)))


def _keep_producer(frame: Frame, call: Any, group: frozenset, record: Any, result: Tensor) -> None:
    """Keep the inner producer of an output for tapes that watch no input of the call."""
    others = frame.active(resolve(frame, (record,))[0] - group)
    if others:
        node = narrow(record, others)
        attach(result, others, (node,), _identity_rule, call.definition.name)
        if any(not (one.everything and one.silent) for one in others - frame.natural):
            call.definition.warn_bypassed()
    elif not group and result._rec is None:
        result._rec = expired(find_tokens(record))


def _identity_rule(node: Node, dy: Tensor) -> tuple:
    return (dy,)


def _transformed_rule(node: Node, dy: Any) -> Sequence:
    dys = dy if type(dy) is list else [dy]
    sweep = state.sweep
    if sweep is not None and sweep.token in node.group:
        targets = [one if find(one, sweep.token) else None for one in node.inputs]
        return node.saved.pull(dys, targets)
    state.sweep = None  # no sweep asks, all targets count
    try:
        return node.saved.pull(dys, node.inputs)
    finally:
        state.sweep = sweep


def _custom_rule(node: Node, dy: Any) -> Sequence:
    """Run the user's rule, and check and adapt what it returns."""
    call: Call = node.saved
    rule, definition, grad_fn, count, _, _, variables = call
    if type(dy) is list or variables is not None or rule.keras:
        return call.pull(dy if type(dy) is list else (dy,), node.inputs)
    rules = state.rules
    rules.append(definition)
    try:
        returned = grad_fn(dy)
    finally:
        rules.pop()
    if count == 1 and type(returned) is Tensor:  # nearly always so, and right
        data = returned._data
        target: Any = node.inputs[0]
        if data.shape == target.shape and data.dtype is target.dtype:
            return (returned,)
    return gradients_of_inputs(call, returned, node.inputs)
