"""The public functions of the commonest primitives: the door again, at the speed of one call.

They are what most programs spend their time in. So the bodies are written out, without helper
calls, and a kernel's compiled entry for 0-d arrays is called directly.
"""

from __future__ import annotations

from typing import Any

from numpy import empty

from .convert import convert, convert_operands, weak_tensor
from .errors import InvalidArgumentError
from .levels import Frame, Late, Node, state
from .primitive import Primitive, apply
from .recording import record
from .tensor import Tensor

new = object.__new__


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
            if rec is not None and recipes is not None:
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
            if rec is not None and recipes is not None:
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
