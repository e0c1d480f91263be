"""The public functions of the commonest primitives: the door again, at the speed of one call.

They are what most programs spend their time in. So the bodies are written out, without helper
calls, and a kernel's compiled entry for 0-d arrays is called directly.
"""

from __future__ import annotations

from typing import Any

from numpy import empty

from .convert import convert, convert_operands, weak_arrays
from .errors import InvalidArgumentError
from .levels import state
from .primitive import Primitive, apply
from .recording import record_one, record_two
from .tensor import Tensor, refuse_leaks

new = object.__new__


def unary_op(primitive: Primitive) -> Any:
    """The public function of a primitive with one operand and no parameters."""
    run = primitive.run
    points = getattr(primitive.kernel, "points", {})

    def op(x: Any, name: str | None = None) -> Any:
        if type(x) is not Tensor:
            x = convert(x, copy=state.frame is not None or primitive.aliases)
        frame = state.frame
        if frame is not None and frame.level is not None:
            return apply(primitive, (x,), {})
        array = x._data
        found = None if array.ndim else points.get(array.dtype)
        try:
            if found is None:
                data = run(array)
            else:
                enter, dtype = found
                data = empty((), dtype)
                enter(array, data)
        except TypeError:
            refuse_leaks(x)
            raise
        out = new(Tensor)
        out._data = data
        out._rec = None
        if x._rec is not None or (frame is not None and frame.everything):
            record_one(frame, primitive, x, None, out)
        return out

    return named(op, primitive)


def binary_op(primitive: Primitive) -> Any:
    """The public function of a primitive with two operands and no parameters.

    Its attribute `reflected` is the function of (y, x).
    """
    return named(_of_two(primitive, False), primitive, _of_two(primitive, True))


def _of_two(primitive: Primitive, swapped: bool) -> Any:
    run = primitive.run
    points = getattr(primitive.kernel, "points", {})

    def op(x: Any, y: Any, name: str | None = None) -> Any:
        if swapped:
            x, y = y, x
        if type(y) is not Tensor:
            if type(x) is Tensor and (type(y) is float or type(y) is int):
                number = weak_arrays[x._data.dtype][y]
                y = new(Tensor)
                y._data = number
                y._rec = None
            else:
                x, y = convert_operands((x, y), state.frame is not None or primitive.aliases)
        elif type(x) is not Tensor:
            if type(x) is float or type(x) is int:
                number = weak_arrays[y._data.dtype][x]
                x = new(Tensor)
                x._data = number
                x._rec = None
            else:
                x, y = convert_operands((x, y), state.frame is not None or primitive.aliases)
        first, second = x._data, y._data
        frame = state.frame
        if frame is not None and frame.level is not None:
            return apply(primitive, (x, y), {})
        dtype = first.dtype
        found = None
        if second.dtype is dtype and not first.ndim and not second.ndim:
            found = points.get(dtype)
        try:
            if found is None:
                data = run(first, second)
            else:
                enter, dtype = found
                data = empty((), dtype)
                enter(first, second, data)
        except ValueError as error:
            raise InvalidArgumentError(str(error)) from None
        except TypeError:
            refuse_leaks(x, y)
            raise
        out = new(Tensor)
        out._data = data
        out._rec = None
        if x._rec is not None or y._rec is not None or (frame is not None and frame.everything):
            record_two(frame, primitive, x, y, out)
        return out

    return op


def named(function: Any, primitive: Primitive, reflected: Any = None) -> Any:
    """`function` as the public face of `primitive`: its name, docstring and attributes."""
    function.__name__ = function.__qualname__ = primitive.name
    function.__doc__ = primitive.doc
    function.primitive = primitive
    function.reflected = reflected
    return function
