"""New outputs of custom calls: on each level, the call becomes the producer of its outputs.

The inner operations of a call run, and are recorded, like any others. Then each level of the stack
gets new outputs. On a tape that watches an input of the call, the call is their producer; on other
tapes the inner operations are. A transformation makes the outputs in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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
from .definition import Definition


class TransformedCall(NamedTuple):
    """A call as the levels below a transformation see it: `vjp` works on their tensors."""

    definition: Definition
    # Takes dys and the targets: None for an input that needs no gradient.
    vjp: Callable[[Sequence, Sequence], list]
    # If the output is an alias of the input: takes the input's tangent, and the token of its
    # accumulator, and returns the output's tangent.
    jvp_of_input: Callable[[Any, Token], Any] | None = None
    # Takes the tangents of the inputs (None for an input at rest), returns those of the outputs.
    # It is None if only a transpose gives them.
    jvp: Callable[[Sequence], list] | None = None


def rebind_outputs(
    frame: Frame | None, call: Any, inputs: Sequence, outputs: Sequence[Tensor]
) -> list[Tensor]:
    """Return the outputs as new tensors with the call's rule, for `frame` and the levels below it.

    `inputs` are the inputs of the call, then the values of its Variables; None for a number.
    """
    if frame is None:
        return list(map(copy, outputs))
    if frame.level is None:
        results = [output._with_record(None) for output in outputs]
    else:
        results = run_on(frame.lower, frame.level.custom_call, call, inputs, outputs)
    present = [tensor for tensor in inputs if tensor is not None]
    group, operand_nodes, mask = custom_operands(frame, present)
    for result, output in zip(results, outputs, strict=True):
        record = output._rec
        if record is not None and (record.group is not group or record.next is not None):
            keep_producer(frame, call, group, record, result)
    if mask:
        if type(call) is TransformedCall:
            for token in group:
                token.asks = True
        remaining = iter(operand_nodes)
        nodes = tuple([None if tensor is None else next(remaining) for tensor in inputs])
        rule: Any = getattr(call, "node_rule", _transformed_rule)
        if len(results) > 1:
            attach_all(group, nodes, rule, call, results)
        elif results and is_differentiable(results[0]._data.dtype):
            attach(results[0], group, nodes, rule, call)
    return results


def custom_operands(frame: Frame, inputs: Sequence[Tensor]) -> tuple:
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


def keep_producer(frame: Frame, call: Any, group: frozenset, record: Any, result: Tensor) -> None:
    """Keep the inner producer of an output for tapes that watch no input of the call."""
    others = frame.active(resolve(frame, (record,))[0] - group)
    if others:
        attach(result, others, (narrow(record, others),), identity_rule, call.definition.name)
        if any(not (token.everything and token.silent) for token in others - frame.natural):
            call.definition.warn_bypassed()
    elif not group and result._rec is None:
        result._rec = expired(find_tokens(record))


def identity_rule(node: Node, dy: Tensor) -> tuple:
    return (dy,)


def _transformed_rule(node: Node, dy: Any) -> Sequence:
    dys = dy if type(dy) is list else [dy]
    sweep = state.sweep
    if sweep is not None and sweep.token in node.group:
        return node.saved.vjp(dys, asked_inputs(node))
    state.sweep = None  # no sweep asks, all targets count
    try:
        return node.saved.vjp(dys, node.inputs)
    finally:
        state.sweep = sweep


def asked_inputs(node: Node) -> list:
    """Return the nodes of the inputs that the tape of the running sweep watches, else None.

    Where that tape is not known those that any tape watches.
    """
    sweep = state.sweep
    if sweep is None or sweep.token not in node.group:
        return list(node.inputs)
    return [node if find(node, sweep.token) else None for node in node.inputs]


def asked_positions(node: Node, inputs: Sequence[Tensor]) -> list[int]:
    """Return the positions of the differentiable inputs whose gradients are asked for."""
    pairs = enumerate(zip(asked_inputs(node), inputs, strict=True))
    return [k for k, (asked, x) in pairs if asked is not None and is_differentiable(x._data.dtype)]


def at_positions(positions: Sequence[int], items: Sequence[Any], count: int) -> list:
    """Return a list of `count` Nones, with items at the given positions."""
    result: list[Any] = [None] * count
    for k, item in zip(positions, items, strict=True):
        result[k] = item
    return result
