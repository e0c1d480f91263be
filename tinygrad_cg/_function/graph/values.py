"""Graphs: what a traced program computes, as values that refer to their operands.

A graph has no tensors, tapes or rules; these have done their work when it is made. Values never
change; passes build new graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from ..._core.primitive import OPS
from ..._core.tensor import Aval

_next_serial = count().__next__


class Value:
    """One array of a graph: an input, a constant, or an output of an operation.

    `name` and `kind` are those of the `primitive`; those of inputs and constants are empty.
    `array` is a constant's value. An operation with several outputs is one value whose `aval` is a
    list, and an `OutputItem` for each output. Later values have greater `serial` numbers.
    """

    __slots__ = ("array", "aval", "inputs", "kind", "name", "params", "primitive", "serial")

    def __init__(
        self,
        aval: Any,
        primitive: Any = None,
        inputs: Sequence[Value] = (),
        params: Mapping[str, Any] | None = None,
        array: np.ndarray | None = None,
    ):
        self.aval, self.primitive, self.array = aval, primitive, array
        self.name, self.kind = ("", "") if primitive is None else (primitive.name, primitive.kind)
        self.serial = _next_serial()
        self.inputs = tuple(inputs)
        self.params = dict(params or {})

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        return self.aval.dtype

    @property
    def is_code(self) -> bool:
        """Whether it is the result of code whose calls must not be left out or repeated."""
        return self.kind in ("impure", "user")


class OutputItem(Value):
    """One output of an operation with several outputs; its only input is that operation."""

    __slots__ = ("index",)

    def __init__(self, source: Value, index: int):
        super().__init__(source.aval[index], None, (source,))
        self.index = index


def constant(array: np.ndarray) -> Value:
    return Value(Aval(array.shape, array.dtype), array=array)


def operation(primitive: Any, inputs: Sequence[Value], params: Mapping[str, Any]) -> Value:
    """Return the value of an operation, a primitive or its name; its rule gives shape and dtype."""
    primitive = OPS[primitive] if isinstance(primitive, str) else primitive
    aval = primitive.abstract(*[value.aval for value in inputs], **params)
    return Value(aval, primitive, inputs, params)


def unrepeated(value: Value) -> Value:
    """Return the operand of a broadcast; any other value itself."""
    return value.inputs[0] if value.name == "broadcast_to" else value


def reshaped(value: Value, shape: Sequence[int]) -> Value:
    return operation("reshape", [value], {"shape": tuple(shape)})


def rows_at(x: Value, numbers: np.ndarray, axis: int = 0) -> Value:
    """Return the rows of an array, or its parts along an axis, at constant positions."""
    return operation("gather", [x, constant(numbers)], {"axis": axis, "batch_dims": 0})


def with_operands(value: Value, operands: Sequence[Value]) -> Value:
    """Return the same operation with other operands; the value itself if they are its own."""
    if all(new is old for new, old in zip(operands, value.inputs, strict=True)):
        return value
    if isinstance(value, OutputItem):
        return OutputItem(operands[0], value.index)
    return Value(value.aval, value.primitive, operands, value.params)


def identity_of(value: Value, operands: Sequence[Any]) -> Any:
    """Return a key that is equal for values that are the same function of the same operands."""
    if value.array is not None:
        return frozen(value.array)
    if isinstance(value, OutputItem):
        return operands[0], value.index
    return value.primitive, tuple(operands), frozen(value.params)


class FuncGraph:
    """A function from the arrays of `inputs` to those of `outputs`."""

    def __init__(self, inputs: Sequence[Value], outputs: Sequence[Value]):
        self.inputs: tuple[Value, ...] = tuple(inputs)
        self.outputs: tuple[Value, ...] = tuple(outputs)

    def values(self) -> list[Value]:
        """Return all values that the outputs depend on, operands first."""
        return in_order(self.outputs)

    def __str__(self) -> str:
        """Return one line for each value: ``%3 = multiply(%1, %2) float64(4, 3)``."""
        names = {value: f"x{i}" for i, value in enumerate(self.inputs)}
        numbers = count()
        lines = [f"{name}: {_type(value.aval)}" for value, name in names.items()]
        for value in self.values():
            if value in names:
                continue
            if (array := value.array) is not None:
                names[value] = f"constant {_type(array)}" if array.ndim else repr(array.item())
                continue
            operands = [names[operand] for operand in value.inputs]
            names[value] = name = f"%{next(numbers)}"
            if isinstance(value, OutputItem):
                text = f"{operands[0]}[{value.index}]"
            else:
                operands += [f"{key}={param!r}" for key, param in value.params.items()]
                text = f"{value.name}({', '.join(operands)})"
            lines.append(f"{name} = {text}  {_type(value.aval)}")
        lines.append(f"return {', '.join(names[value] for value in self.outputs)}")
        return "\n".join(lines)


def _type(aval: Any) -> str:
    if isinstance(aval, list):
        return ", ".join(map(_type, aval))
    return f"{aval.dtype}{tuple(aval.shape)}"


def in_order(outputs: Iterable[Any], operands: str = "inputs") -> list[Any]:
    """Return the values that `outputs` depend on, operands first; without recursion."""
    order: dict[Any, None] = {}
    stack = [(output, False) for output in reversed(list(outputs))]
    while stack:
        value, ready = stack.pop()
        if ready:
            order[value] = None
        elif value not in order:
            stack.append((value, True))
            stack.extend((operand, False) for operand in reversed(getattr(value, operands)))
    return list(order)


def reach(starts: Iterable[Any], operands: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
    """Yield `starts` and everything that `operands` leads to from them, each once."""
    pending = list(dict.fromkeys(starts))
    seen = set(pending)
    while pending:
        value = pending.pop()
        yield value
        new = [operand for operand in dict.fromkeys(operands(value)) if operand not in seen]
        pending += new
        seen.update(new)


def in_turn(key: Any, operands: Callable, is_known: Callable[[Any], bool]) -> Iterator[Any]:
    """Yield `key` after its unknown dependencies; the caller makes each of them known."""
    stack = [key]
    while stack:
        if is_known(stack[-1]):
            stack.pop()
        elif missing := [operand for operand in operands(stack[-1]) if not is_known(operand)]:
            stack.extend(missing)
        else:
            yield stack.pop()


def frozen(value: Any) -> Any:
    """Return a hashable key for a parameter of any type, equal for equal parameters."""
    if isinstance(value, np.ndarray):
        return "array", value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, slice):
        return "slice", frozen(value.start), frozen(value.stop), frozen(value.step)
    if isinstance(value, (tuple, list)):
        return tuple([frozen(item) for item in value])
    if isinstance(value, dict):
        return tuple([(key, frozen(value[key])) for key in sorted(value)])
    if isinstance(value, (float, np.floating)):  # 0.0 and -0.0 are two, NaN is one
        return type(value).__name__, float(value).hex()
    if isinstance(value, (complex, np.complexfloating)):
        return type(value).__name__, repr(value)
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, frozenset([frozen(item) for item in value])
    try:
        hash(value)
    except TypeError:
        return "object", id(value)
    return type(value).__name__, value
