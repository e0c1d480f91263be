"""Calls of custom gradients: the rule in place of the operations that computed the outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from .._core import devices
from .._core.levels import Frame, Token, stack, state
from .._core.record import Node, attach, find, new_tensor, with_wholes
from .._core.tensor import Tensor
from .._reverse.variable import Variable
from .definition import Definition, runs
from .outside_runs import run_code
from .rebinding import TransformedCall, asked_inputs, custom_operands, keep_producer
from .returned import gradients_of_inputs, gradients_of_variables


class Call(NamedTuple):
    """One call of a decorated function: the residuals of its node."""

    rule: Any  # its RuleSignature; None where the rule has run
    definition: Definition
    grad_fn: Callable[..., Any]
    count: int  # of inputs: as many gradients must the rule return
    paths: list[tuple] | None = None  # where each input stood in the call; None: one per argument
    values: Sequence | None = None  # the inputs, if the rule wants them too
    variables: list[Variable] | None = None
    homes: list[str | None] | None = None  # the inputs' devices, if a GPU is used

    @staticmethod
    def node_rule(node: Node, dy: Any) -> Sequence:
        """Return the gradients of the inputs; the rule of the node of a call."""
        return _custom_rule(node, dy)

    def vjp(self, dys: Sequence[Any], targets: Sequence) -> list:
        """Return the gradient of each input, then of each Variable, from the outputs' gradients.

        `targets` have the inputs' and the Variables' shapes and dtypes, which the gradients get.
        """
        frame = state.frame
        if frame is None or frame.level is None:
            return self._vjp(dys, targets)

        def vjp(*dys: Any) -> list:
            return self._vjp(dys, targets)

        return run_code(self.definition, vjp, dys, self.grad_fn)

    def _vjp(self, dys: Sequence[Any], targets: Sequence) -> list:
        try:
            returned = self.definition.run(self.rule.run, self, dys, targets)
        except Exception as error:
            self.definition.add_note(error, self.grad_fn)
            raise
        if self.variables is None:
            return gradients_of_inputs(self, returned, targets)
        returned, others = gradients_of_variables(self, returned)
        return gradients_of_inputs(self, returned, targets[: self.count]) + others


AnyCall: TypeAlias = Call | TransformedCall


def one_output(frame: Frame, call: Call, inputs: Sequence[Tensor], y: Tensor) -> Tensor:
    """Return the output of the commonest call: tensors only, one output, no transformation."""
    group: Any = frame.alone
    first = inputs[0]._rec if len(inputs) == 1 else None
    if first is not None and first.group is group and first.next is None and not frame.natural:
        nodes, mask = (first,), 1
    else:
        group, nodes, mask = custom_operands(frame, inputs)
    record = y._rec
    result = new_tensor()
    result._data = y._data
    result._rec = None
    if record is not None and (record.group is not group or record.next is not None):
        keep_producer(frame, call, group, record, result)
    if mask and y._data.dtype.kind in "fc":  # inlined: a call costs more
        attach(result, group, nodes, _custom_rule, call)
    return result


def _special_rule(node: Node, dys: Sequence) -> list:
    """Run a rule that asks for more than upstream gradients, or has a rule itself."""
    call: Call = node.saved
    gradients = call.vjp(dys, asked_inputs(node) if call.rule.takes_needs else node.inputs)
    inner, sweep = call.rule.nested, state.sweep
    if inner is not None and sweep is not None:
        results = [*dys, *[gradient for gradient in gradients if gradient is not None]]
        for token in stack(state.frame):
            if type(token) is not Token or token is sweep.token:
                continue
            asked = any(find(tensor, token) for tensor in node.inputs)
            known = chain.from_iterable(map(with_wholes, results))
            if asked and not any(find(tensor._rec, token) for tensor in known):
                inner.warn_unused(call.definition.name)
    return gradients


def gradients_of_function(
    rule: Callable, definition: Definition, inputs: Sequence, returned: Any, targets: Sequence
) -> list:
    """Return what a rule gave for the inputs, checked as the result of a custom gradient."""
    call = Call(None, definition, rule, len(inputs), homes=devices.homes(inputs))
    return gradients_of_inputs(call, returned, targets)


def _custom_rule(node: Node, dy: Any) -> Sequence:
    """Run the user's rule, and check and adapt what it returns."""
    call: Call = node.saved
    rule, definition, grad_fn, count, _, _, variables, homes = call
    frame = state.frame
    on_level = frame is not None and frame.level is not None
    if on_level or type(dy) is list or variables is not None or rule.special:
        dys = dy if type(dy) is list else (dy,)
        return _special_rule(node, dys) if rule.special else call.vjp(dys, node.inputs)
    rules = state.rules
    rules.append(definition)
    try:
        returned = grad_fn(dy)
    except Exception as error:
        definition.add_note(error, grad_fn)
        raise
    finally:
        rules.pop()
    if state.frame is not frame:
        definition.warn_entered(frame)
    is_usual = frame is None or not frame.transposes
    if is_usual and count == 1 and type(returned) is Tensor:  # and right
        data = returned._data
        target: Any = node.inputs[0]
        is_home = homes is None or devices.device_of(data) == homes[0]
        if is_home and data.shape == target.shape and data.dtype is target.dtype:
            return (returned,)
    return gradients_of_inputs(call, returned, node.inputs)


runs[_custom_rule.__code__] = False
