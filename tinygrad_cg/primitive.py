"""Primitive, the record of one operation, and the one door that every call goes through.

Without any level the door runs the kernel and wraps the result. Otherwise it lets the levels
see the call, from the innermost outwards, and hangs a node from the result for the tapes that
watch an operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import empty

from .convert import convert, convert_operands, is_differentiable, weak_tensor
from .errors import InvalidArgumentError
from .levels import Frame, Late, Node, find, mark_late, state, watch_tensor
from .recipes import Recipes, SameRecipe
from .registry import OPS
from .tensor import Aval, Tensor

new = object.__new__


class Primitive:
    """One operation: everything the library knows of it.

    Parameters
    ----------
    name, inputs:
        Its name, and the names of its tensor operands.
    run:
        ``run(*arrays, **params)`` computes the array of the result (a list for several).
    abstract:
        ``abstract(*avals, **params)`` gives the Aval of the result without any data.
    vjp:
        For each operand a function to its gradient, or None where there is none. The names of
        the function's parameters say what it needs, and so what a tape keeps: ``dy`` (the
        upstream gradient), ``out`` (the result), an operand's name, ``shape`` (that of the
        operand), or the name of a parameter. Written in operations, hence differentiable.
    save, rule:
        Instead of `vjp`, for operations with any number of operands:
        ``saved = save(inputs, params, out)`` and ``rule(node, dy)``.
    kind, kernel:
        What sort of operation it is, and the kernel object behind `run`.
    linear:
        True if it is linear in all its operands together.
    batch:
        ``batch(params, size)`` gives the parameters for operands with one more axis in front.
    core:
        How many of the last axes of each operand the operation works on, where its other axes
        broadcast: (2, 1) for a matrix times a vector, zeros by default.
    reference, samples:
        The NumPy function it must equal, and arguments to compare them on.
    """

    def __init__(
        self,
        name: str,
        run: Callable[..., Any],
        inputs: Sequence[str],
        abstract: Callable[..., Any],
        vjp: Sequence[Callable[..., Any] | None] | None = None,
        *,
        save: Callable[..., Any] | None = None,
        rule: Callable[..., Any] | None = None,
        kind: str = "move",
        kernel: Any = None,
        linear: bool = False,
        analytic: bool = True,
        aliases: bool = False,
        batch: Callable[[dict, int], dict] | None = None,
        core: tuple[int, ...] = (),
        doc: str | None = None,
        reference: Callable[..., Any] | None = None,
        samples: Any = None,
    ):
        self.name = name
        self.run = run
        self.inputs = tuple(inputs)
        self.abstract = abstract
        self.vjp = tuple(vjp) if vjp is not None else None
        self.kind = kind
        self.kernel = kernel
        self.linear = linear
        self.analytic = analytic  # conj(f'(x)) = f'(conj(x)), so rules see conjugates
        self.aliases = aliases  # the result may be a view of an operand
        self.batch = batch
        self.core = core or (0,) * len(self.inputs)
        self.doc = doc
        self.reference = reference
        self.samples = samples
        self.recipes: Any = None
        if vjp is not None:
            self.recipes = Recipes(self)
        elif rule is not None:
            self.recipes = SameRecipe((save, rule))

    def __call__(self, *inputs: Tensor, **params: Any) -> Any:
        return apply(self, inputs, params)

    def __repr__(self) -> str:
        return f"<Primitive {self.name}>"


def register(primitive: Primitive) -> Primitive:
    if primitive.name in OPS:
        raise KeyError(f"an operation named {primitive.name!r} is registered already")
    OPS[primitive.name] = primitive
    return primitive


# The door ------------------------------------------------------------------------------------


def apply(primitive: Primitive, inputs: tuple[Tensor, ...], params: dict[str, Any]) -> Any:
    """Carry `primitive` out on tensors, for all levels of this thread."""
    frame = state.frame
    if frame is None or frame.level is None:
        if len(inputs) == 1:
            data = primitive.run(inputs[0]._data, **params)
        else:
            data = primitive.run(*[tensor._data for tensor in inputs], **params)
        out = Tensor(data) if type(data) is np.ndarray else [Tensor(part) for part in data]
    else:
        out = _process(frame, primitive, inputs, params)
    if frame is not None:
        record(frame, primitive, inputs, params, out)
    elif primitive.recipes is not None:
        for tensor in inputs:
            if tensor._rec is not None:
                for result in (out,) if isinstance(out, Tensor) else out:
                    result._rec = mark_late(tensor._rec)
                break
    return out


# The two functions below are what most programs spend their time in: the bodies are written
# out, without helper calls, and a kernel's compiled entry for 0-d arrays is called directly.


def unary_op(primitive: Primitive) -> Any:
    """The public function of a primitive with one operand and no parameters."""
    run, recipes = primitive.run, primitive.recipes
    points = getattr(primitive.kernel, "points", {})

    def op(x: Any, name: str | None = None) -> Any:
        if type(x) is not Tensor:
            x = convert(x, copy=state.frame is not None or primitive.aliases)
        frame = state.frame
        if frame is not None and frame.level is not None:
            return apply(primitive, (x,), {})
        array = x._data
        found = None if array.ndim else points.get(array.dtype)
        if found is None:
            data = run(array)
        else:
            enter, dtype = found
            data = empty((), dtype)
            enter(array, data)
        out = new(Tensor)
        out._data = data
        out._rec = None
        rec = x._rec
        if frame is None:
            if rec is not None:
                out._rec = rec if type(rec) is Late else Late(rec.group)
        elif recipes is not None and (rec is not None or frame.everything):
            if rec is not None and rec.group is frame.alone and rec.next is None:
                dtype = data.dtype
                if dtype.kind == "f":
                    save, rule = recipes[1]
                    saved = save((x,), None, out)
                    out._rec = Node(rec.group, (rec,), rule, saved, data.shape, dtype)
                    return out
            record(frame, primitive, (x,), None, out)
        return out

    return named(op, primitive)


def binary_op(primitive: Primitive) -> Any:
    """The public function of a primitive with two operands and no parameters.

    Its attribute `reflected` is the function of (y, x).
    """
    run, recipes = primitive.run, primitive.recipes
    points = getattr(primitive.kernel, "points", {})

    def op(x: Any, y: Any, name: str | None = None) -> Any:
        if type(y) is not Tensor:
            if type(x) is Tensor and (type(y) is float or type(y) is int):
                y = weak_tensor(y, x._data.dtype)
            else:
                x, y = convert_operands((x, y), state.frame is not None or primitive.aliases)
        elif type(x) is not Tensor:
            if type(x) is float or type(x) is int:
                x = weak_tensor(x, y._data.dtype)
            else:
                x, y = convert_operands((x, y), state.frame is not None or primitive.aliases)
        frame = state.frame
        if frame is not None and frame.level is not None:
            return apply(primitive, (x, y), {})
        first, second = x._data, y._data
        found = None
        if not first.ndim and not second.ndim and first.dtype is second.dtype:
            found = points.get(first.dtype)
        if found is None:
            try:
                data = run(first, second)
            except ValueError as error:
                raise InvalidArgumentError(str(error)) from None
        else:
            enter, dtype = found
            data = empty((), dtype)
            enter(first, second, data)
        out = new(Tensor)
        out._data = data
        out._rec = None
        if frame is None:
            rec = x._rec or y._rec
            if rec is not None:
                out._rec = rec if type(rec) is Late else Late(rec.group)
        elif recipes is not None and (x._rec or y._rec or frame.everything):
            _record_pair(frame, primitive, x, y, out)
        return out

    def reflected(y: Any, x: Any) -> Any:
        if type(x) is float or type(x) is int:
            x = weak_tensor(x, y._data.dtype)
        return op(x, y)

    return named(op, primitive, reflected)


def _record_pair(frame: Frame, primitive: Primitive, x: Tensor, y: Tensor, out: Tensor) -> None:
    """As `record`, at the speed that the commonest operations want."""
    first, second = x._rec, y._rec
    alone = frame.alone
    if alone is None:
        mask = 0
    elif first is None:
        mask = 2 if second.group is alone and second.next is None else 0
    elif first.group is alone and first.next is None:
        mask = 1 if second is None else 3 if second.group is alone and second.next is None else 0
    else:
        mask = 0
    data = out._data
    if mask and data.dtype.kind == "f":
        save, rule = primitive.recipes[mask]
        saved = save((x, y), None, out)
        out._rec = Node(frame.group, (first, second), rule, saved, data.shape, data.dtype)
    else:
        record(frame, primitive, (x, y), None, out)


def named(function: Any, primitive: Primitive, reflected: Any = None) -> Any:
    """`function` as the public face of `primitive`: its name, docstring and attributes."""
    function.__name__ = function.__qualname__ = primitive.name
    function.__doc__ = primitive.doc
    function.primitive = primitive
    function.reflected = reflected
    return function


def _process(frame: Frame, primitive: Primitive, inputs: tuple, params: dict) -> Any:
    """Let the transformation below this run of tapes carry the call out, with itself and all
    inner levels switched off."""
    levels, top = state.levels, state.frame
    level: Any = frame.level
    state.levels, state.frame = levels[: levels.index(level)], frame.lower
    try:
        return level.process(primitive, inputs, params)
    finally:
        state.levels, state.frame = levels, top


# Recording -----------------------------------------------------------------------------------


def record(frame: Frame, primitive: Primitive, inputs: tuple, params: Any, out: Any) -> None:
    """Hang a node from `out` for the tapes of `frame` that watch one of `inputs`."""
    recipes = primitive.recipes
    if recipes is None:
        return
    group, nodes, mask = operands(frame, inputs)
    if not mask:
        if group is None:
            _leave_mark(inputs, out)
        return
    if isinstance(out, Tensor):
        data = out._data
        dtype = data.dtype
        if dtype.kind != "f":
            if dtype.kind != "c":
                return
            mask |= 1 << len(inputs)
        save, rule = recipes[mask]
        saved = save(inputs, params, out)
        following = out._rec or _lateness(inputs, nodes)
        out._rec = Node(group, nodes, rule, saved, data.shape, dtype, following)
    else:
        save, rule = recipes[mask]
        hang_parts(group, nodes, rule, save(inputs, params, out), out)


def operands(frame: Frame, inputs: Sequence[Tensor]) -> tuple[Any, tuple, int]:
    """The tapes of `frame` that record an operation on `inputs`, the operands' nodes, and which
    operands these are, as a bit mask. If that is none, the first is None when there are records
    of other tapes.
    """
    active = frame.group
    mask = 0
    if not frame.everything:
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
            late = mark_late(tensor._rec).late
            return Late(frozenset(token for token in late if not token.paused))
    return None


def _leave_mark(inputs: tuple, out: Any) -> None:
    late: frozenset = frozenset()
    for tensor in inputs:
        rec = tensor._rec
        if rec is not None:
            late |= mark_late(rec).late
    late = frozenset(token for token in late if not token.paused)
    if late:
        for result in (out,) if isinstance(out, Tensor) else out:
            if result._rec is None:
                result._rec = Late(late)


def part(node: Node, dy: Any) -> tuple:
    """The rule of a node that stands for one of several outputs: the sweep knows it."""
    raise AssertionError("the sweep collects the parts of a node itself")


def hang_parts(group: Any, nodes: tuple, rule: Any, saved: Any, outs: Sequence[Tensor]) -> None:
    """One node for an operation with several outputs, and a part of it for each output."""
    avals = [Aval(out._data.shape, out._data.dtype) for out in outs]
    whole = Node(group, nodes, rule, saved, avals, avals[0].dtype)
    for i, out in enumerate(outs):
        if is_differentiable(avals[i].dtype):
            out._rec = Node(group, (whole,), part, i, *avals[i], out._rec)
