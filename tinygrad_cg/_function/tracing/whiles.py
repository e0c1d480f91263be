"""Loops in a program whose number of rounds only a call tells.

Their gradient needs what each round began with, and so room for it: it is a program for at most so
many rounds, the next power of two, made when a call first needs it. There the loop has a length
(see `loops`), and runs as many rounds as there were.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._core.conversion import BOOL, INT32, convert
from ..._core.kinds import is_differentiable
from ..._core.levels import Token, run_on
from ..._core.primitive import Primitive, apply
from ..._core.record import Node, run_recorded
from ..._core.tensor import Aval, Tensor
from ..._ops.comparison import less, logical_and
from ..._ops.creation import zeros
from ..._ops.elementwise import add
from ..._ops.shape import cast, identity, reshape
from ..._reverse.sweep import differentiate_once
from ..._rules.rebinding import asked_inputs
from ..._transforms.batching import Batch, BatchTensor
from ..._transforms.control_flow import set_whiler
from ..graph.loops import optimize
from ..graph.values import FuncGraph
from .compiled import Outputs
from .loops import Loop, Use, Wanted, aval_of, complete, run_loop_of
from .outside_calls import OutsideCalls
from .trace import FunctionTrace, TraceTensor


def run_while(
    name: str,
    goes_on: Callable[[list], Any],
    body: Callable[[list], list],
    carries: Sequence[Any],
    maximum: Any,
) -> list[Tensor]:
    """Return the last of the carries ``carries = body(carries)`` while ``goes_on(carries)``."""
    counted = maximum is not None

    def flag(values: list) -> Tensor:
        found = convert(goes_on(values[counted:]))
        if found._data.dtype != BOOL or any(size != 1 for size in found._data.shape):
            raise TypeError(
                f"{name}: the condition must be one bool, got {found._data.dtype} of shape "
                f"{tuple(found._data.shape)}"
            )
        found = reshape(found, ())
        return logical_and(found, less(values[0], maximum)) if counted else found

    def python(values: list, slices: list) -> tuple[list, list]:
        new = list(map(convert, body(values[counted:-1])))
        if counted:
            new.insert(0, add(values[0], 1))
        return [*new, flag(new)], []

    starts = [*([cast(0, INT32)] if counted else []), *carries]
    ends, _ = complete(
        Wanted(name, python, None, pull=_pull), [*starts, flag(list(map(convert, starts)))], []
    )
    return ends[counted:-1]


def _pull(use: Use, node: Node, dys: Sequence[Tensor]) -> list:
    """Return the gradient of each operand of a loop."""
    inputs, loop, outs = use
    first, last = len(loop.constants), len(inputs) - 1  # the flag is the last carry
    moving = [k for k in range(last - first) if is_differentiable(inputs[first + k]._data.dtype)]

    def body(carries: list, slices: list) -> tuple[list, list]:
        found, _ = loop.python([*carries, None], slices)
        return found[:-1], []

    def value(most: int, operands: Sequence[Tensor]) -> list[Tensor]:
        count, given = operands[0], operands[1:]
        pairs = [(count, count), *zip(loop.constants, given, strict=False)]
        wanted = Wanted(loop.name, body, most, limited=True)
        ends, _ = run_loop_of(wanted, given[first:], [], pairs)
        return [ends[k] for k in moving]

    capped = Capped(loop.name, value, [aval_of(outs[k]) for k in moving], loop)
    asked = [
        k
        for k, one in enumerate(asked_inputs(node)[:last])
        if one is not None and is_differentiable(inputs[k]._data.dtype)
    ]
    count = outs[-1]
    found = capped.gradient(
        (count, *inputs[:last]), [dys[k] for k in moving], [1 + k for k in asked]
    )
    results: list[Any] = [None] * len(inputs)
    for k, one in zip(asked, found, strict=True):
        results[k] = one
    return results


class Capped:
    """A function of a number of rounds and of tensors, for at most so many rounds.

    ``make(most, operands)`` computes it; the shapes of its results are `avals`, whatever the
    number. There is a program for each `most`, a power of two.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[int, Sequence[Tensor]], list[Tensor]],
        avals: Sequence[Aval],
        loop: Loop,
    ):
        self.name, self.make, self.avals, self.loop = name, make, list(avals), loop
        self._programs: dict[int, tuple[Outputs, list[np.ndarray]]] = {}

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the results, by the program for this number of rounds."""
        most = 1 << (max(int(arrays[0].max()), 1) - 1).bit_length()
        if most not in self._programs:
            avals = [Aval(one.shape, one.dtype) for one in arrays]
            with _opened(self.loop.constants):
                self._programs[most] = run_on(None, self._trace, most, avals)
        outputs, captured = self._programs[most]
        return outputs.run([*arrays, *captured])

    def _trace(self, most: int, avals: Sequence[Aval]) -> tuple[Outputs, list[np.ndarray]]:
        trace = FunctionTrace(self.name, False, OutsideCalls())
        trace.build = self.loop.build
        with trace.active():
            found = self.make(most, [trace.argument(one) for one in avals])
            outputs = list(map(trace.value, found))
        captured, literals = trace.captured()
        inputs = [*trace.arguments, *[value for _, value in captured]]
        graph = optimize(FuncGraph(inputs, outputs), literals)
        program = Outputs(graph.inputs, graph.outputs, self.loop.build)
        return program, [tensor._data for tensor, _ in captured]

    def gradient(
        self, operands: Sequence[Tensor], dys: Sequence[Tensor], positions: Sequence[int]
    ) -> list[Tensor]:
        """Return the gradients of the operands at these positions; zeros where there is none."""
        first = len(operands)

        def make(most: int, given: Sequence[Tensor]) -> list[Tensor]:
            arguments, upstream = list(given[:first]), list(given[first:])
            for k in positions:
                arguments[k] = identity(arguments[k])
            sources, token = [arguments[k] for k in positions], Token()
            outs = run_recorded(token, sources, self.make, most, arguments)
            found = differentiate_once(token, outs, upstream, sources)
            pairs = zip(found, sources, strict=True)
            return [zeros(*aval_of(one)) if dy is None else dy for dy, one in pairs]

        avals = [aval_of(operands[k]) for k in positions]
        made = Capped(f"the gradient of {self.name}", make, avals, self.loop)
        return apply(CAPPED, (*operands, *dys), {"capped": made}) if positions else []

    def batch(self, level: Batch, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Return the results for all examples of a batch."""
        flags = [level.has(one) for one in inputs]

        def make(most: int, operands: Sequence[Tensor]) -> list[Tensor]:
            with level:
                examples = [
                    BatchTensor(one, level) if flag else one
                    for one, flag in zip(operands, flags, strict=True)
                ]
                found = self.make(most, examples)
            return list(map(level.physical, found))

        avals = [Aval((level.size, *one.shape), one.dtype) for one in self.avals]
        made = Capped(self.name, make, avals, self.loop)
        operands = [one.physical if level.has(one) else one for one in inputs]
        results = apply(CAPPED, tuple(operands), {"capped": made})
        return [BatchTensor(one, level) for one in results]


@contextlib.contextmanager
def _opened(constants: Sequence[Any]) -> Iterator[None]:
    """Return a context in which what a loop refers to is no leak, though its trace is over."""
    levels = set()
    for one in constants:
        while isinstance(one, BatchTensor):
            one = one.physical
        if isinstance(one, TraceTensor) and one.level.is_over:
            levels.add(one.level)
    for level in levels:
        level.is_over = False
    try:
        yield
    finally:
        for level in levels:
            level.is_over = True


class _Use(NamedTuple):
    inputs: tuple
    capped: Capped


def _rule(node: Node, dys: Any) -> list:
    inputs, capped = node.saved
    asked = [
        k
        for k, one in enumerate(asked_inputs(node))
        if one is not None and is_differentiable(inputs[k]._data.dtype)
    ]
    results: list[Any] = [None] * len(inputs)
    for k, one in zip(asked, capped.gradient(inputs, dys, asked), strict=True):
        results[k] = one
    return results


CAPPED = Primitive(
    "capped",
    lambda *arrays, capped: capped.run(arrays),
    ("inputs",),
    lambda *avals, capped: capped.avals,
    on_gpu=lambda *arrays, capped: capped.run(arrays),
    save=lambda inputs, params, out: _Use(inputs, params["capped"]),
    rule=_rule,
    kind="control",
    carry_out=lambda level, inputs, params: params["capped"].batch(level, inputs),
)

set_whiler(run_while)
