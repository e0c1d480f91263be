"""The public functions of the commonest primitives: the door again, at the speed of one call.

They are what most programs spend their time in. So a kernel is given the operands as they are
(see the kernels' `direct`), and what it does not serve goes the long way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_cg_kernels.loops.small import refuse
from tinygrad_cg_kernels.runtime import objects

from .conversion import convert, convert_operands, weak_arrays
from .levels import Late, state
from .primitive import Primitive, apply, apply_one
from .recording import record_one, record_two
from .tensor import Tensor

new = object.__new__

_sample = np.zeros(1)
objects.register(Tensor, Tensor(_sample), _sample)


def unary_op(primitive: Primitive) -> Any:
    """The public function of a primitive with one operand and no parameters."""
    direct = getattr(primitive.kernel, "direct", [refuse])
    differentiable = primitive.recipes is not None

    def op(x: Any, name: str | None = None) -> Any:
        frame = state.frame
        if frame is None or frame.level is None:
            out = direct[0](x)
            if type(out) is Tensor:
                rec = x._rec
                if rec is None:
                    if frame is not None and frame.everything:
                        record_one(frame, primitive, x, None, out)
                elif frame is not None:
                    record_one(frame, primitive, x, None, out)
                elif differentiable:
                    out._rec = rec if type(rec) is Late else Late(rec.group)
                return out
        if type(x) is not Tensor:
            x = convert(x, copy=frame is not None or primitive.aliases)
        return apply_one(primitive, x, {})

    return named(op, primitive)


def binary_op(primitive: Primitive) -> Any:
    """The public function of a primitive with two operands and no parameters.

    Its attribute `reflected` is the function of (y, x).
    """
    direct = getattr(primitive.kernel, "direct", [refuse])
    differentiable = primitive.recipes is not None

    def op(x: Any, y: Any, name: str | None = None) -> Any:
        frame = state.frame
        if frame is None or frame.level is None:
            out = direct[0](x, y)
            if type(out) is Tensor:
                first = x._rec if type(x) is Tensor else None
                second = y._rec if type(y) is Tensor else None
                if first is None and second is None:
                    if frame is None or not frame.everything:
                        return out
                elif frame is None:
                    if differentiable:
                        rec: Any = first or second
                        out._rec = rec if type(rec) is Late else Late(rec.group)
                    return out
                x, y = _operands(primitive, frame, x, y)
                record_two(frame, primitive, x, y, out)
                return out
        return apply(primitive, _operands(primitive, frame, x, y), {})

    def reflected(x: Any, y: Any) -> Any:  # y is a number, nearly always
        if state.frame is None and type(x) is Tensor:
            out = direct[0](y, x)
            if type(out) is Tensor and type(y) is not Tensor:
                rec: Any = x._rec
                if rec is not None and differentiable:
                    out._rec = rec if type(rec) is Late else Late(rec.group)
                return out
        return op(y, x)

    return named(op, primitive, reflected)


def _operands(primitive: Primitive, frame: Any, x: Any, y: Any) -> tuple[Any, ...]:
    """Two operands as tensors."""
    if type(x) is Tensor:
        if type(y) is Tensor:
            return x, y
        if type(y) is float or type(y) is int:
            return x, _number(y, x)
    elif type(y) is Tensor and (type(x) is float or type(x) is int):
        return _number(x, y), y
    return convert_operands((x, y), frame is not None or primitive.aliases)


def _number(value: float, other: Tensor) -> Tensor:
    """A Python number beside a tensor."""
    tensor = new(Tensor)
    tensor._data = weak_arrays[other._data.dtype][value]
    tensor._rec = None
    return tensor


def named(function: Any, primitive: Primitive, reflected: Any = None) -> Any:
    """`function` as the public face of `primitive`: its name, docstring and attributes."""
    function.__name__ = function.__qualname__ = primitive.name
    function.__doc__ = primitive.doc
    function.primitive = primitive
    function.reflected = reflected
    return function
