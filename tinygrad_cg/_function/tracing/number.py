"""Python floats among the arguments of a traced function: numbers without a value.

They stay weak, as Python's floats are: they take the dtype of the tensor they meet. Operations on
such numbers alone compute in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..._core.conversion import FLOAT32, FLOAT64, Weak, is_tensor
from ..._core.kinds import is_inexact
from ..._core.levels import stack, state
from ..._core.primitive import OPS, Primitive
from ..._core.tensor import ArrayLike, Tensor
from ..._ops import protocol
from ..._ops.shape import cast
from ..graph.values import Value, constant, operation
from .trace import FunctionTrace, TraceTensor, refuse_value, value_or_refuse


class TraceNumber(Weak):
    """A Python float in a traced program, or a result of such floats alone."""

    __slots__ = ("_tensor", "dtype", "level", "value")
    __array_priority__ = 900.0

    def __init__(self, value: Value, level: Any, dtype: np.dtype = FLOAT32):
        self.value, self.level = value, level
        self.dtype = dtype  # of a tensor made from it
        self._tensor: TraceTensor | None = None

    @property
    def tensor(self) -> TraceTensor:
        """Return the float64 tensor of the number, always the same object, so that loops recognize
        it.
        """
        if self._tensor is None:
            self._tensor = TraceTensor(self.value, self.level)
        return self._tensor

    def strong(self, dtype: np.dtype | None = None) -> Tensor:
        """Return a tensor of the given dtype, by default float32."""
        wanted = self.dtype if dtype is None else dtype
        if not is_inexact(wanted):
            raise TypeError(f"Cannot convert a float to a Tensor of dtype {wanted}")
        tensor = self.tensor
        if state.frame is None:
            tensor._values()
        return cast(tensor, wanted)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"'float' object has no attribute {name!r}: a Python float in a traced function is a "
            "number; tf.constant(number) makes a tensor of it"
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(value_or_refuse(self), dtype)

    def __float__(self) -> float:
        return float(value_or_refuse(self))

    def __int__(self) -> int:
        return int(float(self))

    def __bool__(self) -> bool:
        return bool(float(self))

    def __complex__(self) -> complex:
        return complex(float(self))

    def __pos__(self) -> TraceNumber:
        return self

    def __round__(self, digits: Any = None) -> Any:
        return round(float(self), digits)

    def __index__(self) -> NoReturn:
        refuse_value(repr(self), self.level)

    def __repr__(self) -> str:
        return "<float argument, traced>"

    def __format__(self, spec: str) -> str:
        return repr(self) if not spec else format(float(self), spec)

    __hash__: Any = None

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        op = protocol.ufuncs.get(ufunc)
        primitive = getattr(op, "primitive", None)
        if (
            any(is_tensor(operand) for operand in inputs)
            and op is not None
            and method == "__call__"
        ):
            return op(*inputs)
        if primitive is None or method != "__call__" or options or not _are_numbers(inputs):
            refuse_value(repr(self), self.level)
        return _compute(primitive, inputs)


_OPERANDS = (ArrayLike, Weak, np.ndarray, np.generic, list, int, float, complex)


def _are_numbers(values: tuple) -> bool:
    return all(isinstance(value, (int, float, np.floating, TraceNumber)) for value in values)


def _compute(primitive: Primitive, operands: tuple) -> Any:
    """Apply an operation to numbers alone; a comparison returns a tensor."""
    own = next(operand.level for operand in operands if isinstance(operand, TraceNumber))
    active = (level for level in reversed(stack(state.frame)) if isinstance(level, FunctionTrace))
    level = next(active, own)  # a loop's body also uses numbers from around it
    values = [
        level.value(operand.tensor)
        if isinstance(operand, TraceNumber)
        else constant(np.asarray(operand, FLOAT64))
        for operand in operands
    ]
    result = operation(primitive, values, {})
    return TraceNumber(result, level) if result.dtype == FLOAT64 else TraceTensor(result, level)


def _operator(name: str, swapped: bool = False) -> Callable[..., Any]:
    primitive = OPS[name]

    def operate(self: TraceNumber, *others: Any) -> Any:
        operands = (*others, self) if swapped else (self, *others)
        if _are_numbers(operands):
            return _compute(primitive, operands)
        if not all(isinstance(other, _OPERANDS) for other in others):
            return NotImplemented
        return primitive.function(*operands)

    return operate


_TWO = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide"}
_TWO |= {"floordiv": "floor_divide", "mod": "remainder", "pow": "power"}
_COMPARE = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
_COMPARE |= {"eq": "equal", "ne": "not_equal"}
_ONE = {"neg": "negative", "abs": "absolute"}
for _name, _op in (_TWO | _COMPARE | _ONE).items():
    setattr(TraceNumber, f"__{_name}__", _operator(_op))
    if _name in _TWO:
        setattr(TraceNumber, f"__r{_name}__", _operator(_op, swapped=True))
