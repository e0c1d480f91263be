"""Traced values, which are not known while a program is traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from .._core.conversion import BOOL, INT32, Weak, convert
from .._core.kinds import is_bool
from .._core.levels import ask_for_value, current_trace
from .._core.primitive import Primitive, apply
from .._core.tensor import ArrayLike, Aval, Tensor, is_zero
from .._ops.elementwise import multiply, not_equal
from .._ops.indexing import getitem
from .._ops.shape import cast
from .._rules.rebinding import asked_positions, at_positions
from .._transforms import control_flow
from .._transforms.batching import BatchTensor
from ._merging import undefined
from ._names import NORMAL, RETURN


class Flow(NamedTuple):
    """A way of leaving a region that a tensor decides: its number, and the possible numbers."""

    number: Tensor
    possible: frozenset[int]


class Outcome(NamedTuple):
    """The end of a region: its flow, its result, and its names."""

    flow: Any
    result: Any
    names: dict[str, Any]

    @property
    def result_or_undefined(self) -> Any:
        """Return the result, or `undefined` if no `return` can have left the region."""
        return self.result if RETURN in possible_ways(self.flow) else undefined


class Range:
    """A range whose length a tensor decides. A `for` can loop over it; nothing else can."""

    def __init__(self, bounds: tuple, make: Callable[[], Any]):
        self.bounds, self._make = bounds, make

    def __iter__(self) -> Iterator:
        return iter(self._make())  # raises the maker's error

    def __array__(self, *arguments: Any, **options: Any) -> np.ndarray:
        return np.asarray(self._make())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._make(), name)


MIN_ROUNDS_OF_ROWS = 16
"""With fewer rounds a loop over the rows of a tensor is unrolled, which runs faster."""
MIN_ROUNDS_OF_RANGE = 100
"""The same for a loop over a range, which keeps Python's numbers if it is unrolled."""


class Rows:
    """A tensor with many rows, or a range, whose `for` may become a loop of the program.

    `result` is the result of that loop.
    """

    result: Any = None

    def __init__(self, iterable: Any):
        self.iterable = iterable

    def __iter__(self) -> Iterator:
        return iter(self.iterable)


def has_many_rows(value: Any) -> bool:
    """Return whether a `for` over a value is worth a loop of the program."""
    if type(value) is range:
        return len(value) >= MIN_ROUNDS_OF_RANGE and current_trace() is not None
    if not isinstance(value, ArrayLike) or current_trace() is None:
        return False
    shape = tuple(value.shape)
    return bool(shape) and shape[0] >= MIN_ROUNDS_OF_ROWS


def is_traced(value: Any) -> bool:
    """Return whether a value is a tensor or float without a value that Python could use here."""
    if isinstance(value, ArrayLike):
        tensor = value if isinstance(value, Tensor) else value._read()
        return isinstance(tensor._data, Aval) and ask_for_value(tensor) is None
    return isinstance(value, Weak)


def truth(value: Any, where: str) -> Any:
    """Return the truth value of a value as in Python: a bool, or a scalar bool tensor."""
    if not is_traced(value):
        return bool(value)
    tensor = convert(value)
    if tensor.size != 1:
        raise ValueError(
            f"{where}: the truth value of a tensor of shape {tuple(tensor.shape)} is ambiguous: "
            "use reduce_any or reduce_all"
        )
    if tensor.ndim:
        tensor = getitem(tensor, (0,) * tensor.ndim)
    return tensor if is_bool(tensor.dtype) else not_equal(tensor, 0)


def as_tensor(value: Any) -> Tensor:
    return convert(value, BOOL) if isinstance(value, (bool, np.bool_)) else convert(value)


def possible_ways(flow: Any) -> frozenset[int]:
    return frozenset((flow,)) if isinstance(flow, int) else flow.possible


def flow_number(flow: Any) -> Tensor:
    return flow.number if isinstance(flow, Flow) else convert(flow, INT32)


def without(flow: Any, ways: set[int]) -> Any:
    if isinstance(flow, int):
        return 0 if flow in ways else flow
    possible = flow.possible - ways
    if possible == {NORMAL}:
        return 0
    number = flow.number
    for way in ways & flow.possible:
        number = multiply(number, cast(not_equal(number, way), INT32))
    return Flow(number, possible | {NORMAL} if ways & flow.possible else possible)


def trial() -> AbstractContextManager[None]:
    """Return a context whose operations are discarded."""
    level = current_trace()
    message = "{} is assigned inside vmap, in a case that differs between examples"
    return control_flow.NoAssignments(message) if level is None else level.trial()


def is_trying() -> bool:
    level = current_trace()
    return level is not None and level.trials > 0


def placeholders(tensors: list[Tensor]) -> list[Tensor]:
    """Return tensors with these shapes and dtypes and without values."""
    level = current_trace()
    if level is None:
        return tensors
    return [level.argument(Aval(tuple(tensor.shape), tensor.dtype)) for tensor in tensors]


def stand_ins(tensors: Sequence[Tensor], other: Sequence[Tensor], test: Any = None) -> list[Tensor]:
    """Return stand-ins for the results of a branch in a trial, or of a loop if there is no `test`.

    They have the types of both sequences: the results of both cases, or the loop variables before
    and after a round. Tapes and accumulators record them, so that derivatives have types, too.
    """
    decides = placeholders([convert(False)])[0] if test is None else as_tensor(test)
    params = {"positions": range(1, 1 + len(tensors)), "is_loop": test is None}
    return apply(STAND_IN, (decides, *tensors, *other), params)


def _stand_in_rule(node: Any, dys: Any) -> list:
    """Return the gradients. Each case has its own; in a loop everything depends on everything."""
    inputs, is_loop = node.saved
    some = [None if is_zero(dy) else dy for dy in dys]
    if not is_loop:
        return [None, *some, *some]
    upstream = [dy for dy in some if dy is not None]
    asked = asked_positions(node, inputs) if upstream else []
    params = {"positions": asked, "is_loop": True}
    results = apply(STAND_IN, (*inputs, *upstream), params) if upstream else []
    return at_positions(asked, results, len(inputs))


# Used in trials only, never in programs.
STAND_IN = Primitive(
    "stand_in",
    lambda *arrays, positions, is_loop: [arrays[k] for k in positions],
    ("inputs",),
    lambda *avals, positions, is_loop: [avals[k] for k in positions],
    save=lambda inputs, params, out: (inputs, params["is_loop"]),
    rule=_stand_in_rule,
    kind="control",
    aliases=True,
    carry_out=lambda level, inputs, params: [
        BatchTensor(result, level)
        for result in apply(STAND_IN, tuple(map(level.physical, inputs)), params)
    ],
)


def choose(
    test: Any, cases: Sequence[Callable], samples: Sequence[Any], tensors: Callable[[Any], list]
) -> list[Tensor]:
    """Return the tensors of one of two cases; `samples` are the results of a trial."""
    if is_trying():
        return stand_ins(*map(tensors, samples), test=test)
    if current_trace() is None:  # in a batch the samples are the values
        cases = [lambda: samples[0], lambda: samples[1]]
    padded = [lambda case=case: tuple(tensors(case())) or (convert(0),) for case in cases]
    return list(control_flow.cond(test, *padded))
