"""Calls and errors of functions with declared derivatives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from .._core.conversion import convert, is_tensor, is_weak
from .._core.levels import stack, state, tokens_of
from .._core.record import find
from .._core.tensor import Tensor
from .._rules.definition import Definition, source_line
from ..errors import DerivativeOrderError, is_ours
from .batching import BatchTensor


class Declared:
    """Base of functions with declared derivatives, up to the order `last`."""

    last: int
    __call__: Callable[..., Any]

    def __init__(self, f: Callable[..., Any], beyond: str):
        functools.update_wrapper(self, f, updated=())
        self.definition = Definition(f)
        self.beyond = beyond

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<{self.definition.name} with derivatives to order {self.last}>"

    def refuse_order(self) -> NoReturn:
        """Raise an error: no derivative after the last one is declared."""
        name, last = self.definition.name, self.last
        line = source_line(self.definition.function)
        declared = "none is declared"
        remedy = f"Write custom_derivatives({name}, derivative), where derivative(x) is the "
        remedy += f"derivative of `{name}`, or decorate `derivative` with `@{name}.derivative`"
        if last:
            declared = f"the last declared one is of order {last}"
            remedy = f"Declare the derivative of order {last + 1}, or pass "
            remedy += "beyond='differentiate' to differentiate the operations of the last one"
        raise DerivativeOrderError(
            f"`{name}`: the derivative of order {last + 1} was requested, but {declared}"
            f"{'' if is_ours(line[0]) else f' ({self.definition.where()})'}. {remedy}",
            function=name,
            line=line,
            order=last + 1,
            max_order=last,
        )


class CallContext(NamedTuple):
    """One call: its arguments, and the inputs among them."""

    args: list
    positions: list[int]  # of the inputs among the arguments
    inputs: list  # as tensors; None for numbers and arrays, which cannot be watched
    options: dict[str, Any]


def context_of(definition: Definition, args: tuple, options: dict) -> CallContext:
    """Return a call's arguments, with tensors for Variables."""
    for name, option in options.items():
        if is_tensor(option):
            raise TypeError(
                f"{definition.name}: the tensor {name!r} was passed by keyword, and would have no "
                "derivative: pass it by position"
            )
    values = [convert(value) if is_tensor(value) else value for value in args]
    positions = [
        i
        for i, value in enumerate(values)
        if is_weak(value) or isinstance(value, (Tensor, np.ndarray))
    ]
    inputs = [values[i] if isinstance(values[i], Tensor) else None for i in positions]
    return CallContext(values, positions, inputs, options)


def detach(value: Any) -> Any:
    """Return a tensor without its record, and without those of the batches' physical tensors."""
    if isinstance(value, BatchTensor):
        return BatchTensor(detach(value.physical), value.level)
    return value._with_record(None) if isinstance(value, Tensor) else value


def is_recorded_here(tensor: Tensor) -> bool:
    """Return whether a tape or accumulator on this thread's stack has a record of `tensor`."""
    tokens = tokens_of(stack(state.frame))
    return any(find(tensor._rec, token) and not token.everything for token in tokens)


def refuse_captured(definition: Definition, value: Tensor) -> None:
    """Raise TypeError if `value` has a record although its inputs have none."""
    if is_recorded_here(value):
        raise TypeError(
            f"`{definition.name}` captures a tensor or Variable that is watched, and declares no "
            f"derivative for it: pass it as an argument ({definition.where()})"
        )
