"""Recording: from an operation on tensors to the node that its result carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .conversion import is_differentiable
from .levels import NOTHING, Frame, Late, Node, find, late_for, late_tokens, watch_tensor
from .tensor import Aval, Tensor

if TYPE_CHECKING:
    from .primitive import Primitive


def record(frame: Frame, primitive: Primitive, inputs: tuple, params: Any, out: Any) -> None:
    """Hang a node from `out` for the tapes of `frame` that watch one of `inputs`."""
    recipes = primitive.recipes
    if recipes is None:
        return
    if not frame.group:  # a transformation alone
        mark_outputs(inputs, out)
        return
    group, nodes, mask = operands(frame, inputs)
    if not mask:
        if group is None:
            mark_outputs(inputs, out)
        return
    if isinstance(out, Tensor):
        data = out._data
        dtype = data.dtype
        if dtype.kind != "f":
            if dtype.kind != "c":
                return
            mask |= 1 << len(inputs)
        save, rule, _ = recipes[mask]
        saved = save(inputs, params, out)
        following = out._rec or _lateness(inputs, nodes)
        out._rec = Node(group, nodes, rule, saved, data.shape, dtype, following)
    else:
        save, rule, _ = recipes[mask]
        hang_parts(group, nodes, rule, save(inputs, params, out), out)


def late_record(record: Any) -> Late:
    """The mark of what is computed from a recorded tensor while nothing records."""
    return record if type(record) is Late else Late(record.group)


def record_one(
    frame: Frame | None, primitive: Primitive, x: Tensor, params: Any, out: Tensor
) -> None:
    """`record` for an operation on one tensor with a record, at the speed of the commonest."""
    recipes = primitive.recipes
    if recipes is None:
        return
    rec = x._rec
    if frame is None:
        if rec is not None:
            out._rec = late_record(rec)
        return
    if rec is not None and rec.group is frame.alone and rec.next is None:
        hang = recipes[1].hang
        if hang is not None and out._data.dtype.kind == "f":
            hang(rec.group, (rec,), (x,), params, out)
            return
    record(frame, primitive, (x,), params, out)


def record_two(frame: Frame, primitive: Primitive, x: Tensor, y: Tensor, out: Tensor) -> None:
    """As `record_one`, for an operation on two tensors without parameters, under some level."""
    recipes = primitive.recipes
    if recipes is None:
        return
    first, second = x._rec, y._rec
    alone = frame.alone
    mask = 0
    if first is not None and first.group is alone and first.next is None:
        if second is None:
            mask = 1
        elif second.group is alone and second.next is None:
            mask = 3
    elif first is None and second is not None and second.group is alone and second.next is None:
        mask = 2
    if mask and out._data.dtype.kind == "f":
        recipes[mask].hang(alone, (first, second), (x, y), None, out)
    else:
        record(frame, primitive, (x, y), None, out)


def operands(frame: Frame, inputs: Sequence[Tensor]) -> tuple[Any, tuple, int]:
    """The tapes of `frame` that record an operation on `inputs`, the operands' nodes, and which
    operands these are, as a bit mask. If that is none, the first is None when there are records
    of other tapes.
    """
    active = frame.group
    mask = 0
    if frame.alone is not None:
        bit = 1
        for tensor in inputs:
            rec = tensor._rec
            if rec is not None:
                if rec.group is not active or rec.next is not None:
                    break
                mask += bit
            bit += bit
        else:  # all records are for exactly these tapes: nearly always so
            if len(inputs) == 1:
                return active, (inputs[0]._rec,), mask
            return active, tuple([tensor._rec for tensor in inputs]), mask
    group, nodes = resolve(frame, inputs)
    if not group:
        return None, nodes, 0
    return group, nodes, sum(1 << i for i, node in enumerate(nodes) if node is not None)


def resolve(frame: Frame, inputs: Sequence[Tensor]) -> tuple:
    """The tapes of `frame` that record an operation on `inputs`, and the nodes these need."""
    for token in frame.everything:
        for tensor in inputs:
            if is_differentiable(tensor._data.dtype) and find(tensor._rec, token) is None:
                watch_tensor(tensor, token)
    return frame.resolve([tensor._rec for tensor in inputs])


def _lateness(inputs: Sequence[Tensor], nodes: tuple) -> Late | None:
    """A mark for operands whose records are only for tapes that no longer record."""
    for tensor, node in zip(inputs, nodes, strict=True):
        if node is None and tensor._rec is not None:
            return late_for(late_tokens(tensor._rec))
    return None


def mark_outputs(inputs: Sequence[Tensor], out: Any) -> None:
    """Mark what was computed from recorded tensors and is not recorded itself."""
    tokens = NOTHING
    for tensor in inputs:
        if tensor._rec is not None:
            tokens |= late_tokens(tensor._rec)
    mark = late_for(tokens) if tokens else None
    if mark is not None:
        for result in (out,) if isinstance(out, Tensor) else out:
            if result._rec is None:
                result._rec = mark


def part(node: Node, dy: Any) -> tuple:
    """The rule of a node that stands for one of several outputs: the sweep knows it."""
    raise AssertionError("the sweep collects the parts of a node itself")


def hang_parts(group: Any, nodes: tuple, rule: Any, saved: Any, outs: Sequence[Tensor]) -> None:
    """One node for an operation with several outputs, and a part of it for each output."""
    if not outs:
        return
    avals = [Aval(out._data.shape, out._data.dtype) for out in outs]
    whole = Node(group, nodes, rule, saved, avals, avals[0].dtype)
    for i, out in enumerate(outs):
        if is_differentiable(avals[i].dtype):
            out._rec = Node(group, (whole,), part, i, *avals[i], out._rec)
