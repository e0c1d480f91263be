"""Calls of functions one of which a tensor without a value chooses: they become a choice.

Each function is traced once, on a trace of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import nest
from ..._core.conversion import convert, is_tensor, is_weak
from ..._core.tensor import ArrayLike, Aval, Tensor
from ..._ops.shape import identity
from ..._reverse.variable import recorded_assignments, recorded_variables, records_assignments
from ..graph.values import constant
from .branch_trace import BranchTrace
from .choices import TracedChoice, call_choice, find_operands
from .trace import FunctionTrace, TraceTensor, aval_of


def choose(name: str, index: Any, branches: Sequence[tuple[str, Callable[[], Any]]]) -> Any:
    """Return the result of the branch that `index` chooses, by a program that has all of them.

    `branches` are functions without arguments, with the names that errors give them. What they
    return must have one structure, and tensors the same shapes and dtypes.
    """
    outer: FunctionTrace = index.level
    traces = [BranchTrace(outer.name, outer.calls, outer.build) for _ in branches]
    results: list[Any] = []
    leaves: list[list[Any]] = []
    finals: list[dict[int, Tensor]] = []
    recorded = records_assignments()
    present = [(variable, variable._read()) for variable in recorded_variables()]
    for trace, (_, function) in zip(traces, branches, strict=True):
        with trace.active(), recorded_assignments(True) if recorded else contextlib.nullcontext():
            for variable, value in present:  # which has a gradient, other than the Variable
                variable.assign(identity(value))
            result = function()
            results.append(result)
            leaves.append(
                [convert(leaf) if is_tensor(leaf) else leaf for leaf in nest.flatten(result)]
            )
            finals.append({key: variable._read() for key, variable in trace.assigned.items()})
    names = [label for label, _ in branches]
    _check_structures(name, names, results)
    columns = [
        _Column(name, names, i, list(some)) for i, some in enumerate(zip(*leaves, strict=True))
    ]
    variables = {key: variable for trace in traces for key, variable in trace.assigned.items()}
    targets = []
    for k, trace in enumerate(traces):
        with trace.active():
            some = [_own(trace, column.tensor(k)) for column in columns if column.is_tensor]
            for key, variable in variables.items():
                final = finals[k].get(key)
                some.append(_own(trace, variable._read() if final is None else final))
            targets.append(some)
    structure = results[0]
    marks = [trace.effects[-1:] for trace in traces]
    del leaves, finals, results
    for column in columns:
        column.check()
    captures = find_operands(traces, targets, set())
    label = f"{name}({', '.join(names)})"
    slots = [slot for slot, _ in captures]
    choice = TracedChoice(label, traces, slots, targets, [{} for _ in traces], marks)
    outputs = iter(call_choice(choice, index, [tensor for _, tensor in captures]))
    chosen = [next(outputs) if column.is_tensor else column.leaves[0] for column in columns]
    for variable, value in zip(variables.values(), outputs, strict=True):
        variable.assign(value)
    return nest.pack_sequence_as(structure, chosen)


def _own(trace: BranchTrace, tensor: Tensor) -> Tensor:
    """Return a tensor of the trace itself: integers that are known stay outside of it."""
    copied = identity(tensor)
    return copied if isinstance(copied, TraceTensor) else TraceTensor(constant(copied._data), trace)


def _check_structures(name: str, names: list[str], results: list[Any]) -> None:
    for label, result in zip(names[1:], results[1:], strict=True):
        try:
            nest.assert_same_structure(results[0], result)
        except (TypeError, ValueError):
            raise TypeError(
                f"{name}: the branches must return the same structure: `{names[0]}` returned "
                f"{_describe(results[0])}, `{label}` {_describe(result)}"
            ) from None


def _describe(result: Any) -> str:
    def text(leaf: Any) -> str:
        if is_tensor(leaf):
            return f"{leaf.dtype.name}{tuple(leaf.shape)}"
        return repr(leaf) if leaf is None or is_weak(leaf) else type(leaf).__name__

    return str(nest.map_structure(lambda leaf: _Text(text(leaf)), result))


class _Text:
    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


class _Column:
    """One leaf of what branches return."""

    def __init__(self, name: str, names: list[str], position: int, leaves: list[Any]):
        self.name, self.names, self.position, self.leaves = name, names, position, leaves
        kinds = [_is_value(leaf) for leaf in leaves]
        self.is_tensor = all(kinds)
        strong = [leaf._data.dtype for leaf in leaves if isinstance(leaf, Tensor)]
        self.dtype = strong[0] if strong else None
        self.avals: list[Aval] = []
        first = leaves[0]
        if not self.is_tensor and not all(_is_same(first, leaf) for leaf in leaves[1:]):
            raise TypeError(
                f"{name}: the branches return different things as result {position}, and not all "
                f"are tensors or numbers: {self._texts(map(repr, leaves))}"
            )

    def tensor(self, k: int) -> Tensor:
        """Return the leaf of a branch; a number takes the dtype of other branches' tensors."""
        leaf = self.leaves[k]
        if not isinstance(leaf, Tensor) and self.dtype is not None:
            try:
                leaf = convert(leaf, self.dtype)
            except (TypeError, ValueError):
                leaf = convert(leaf)
        leaf = convert(leaf)
        self.avals.append(aval_of(leaf))
        return leaf

    def check(self) -> None:
        """Refuse tensors of different shapes or dtypes; let go of them."""
        if self.is_tensor:
            self.leaves = []
            if any(aval != self.avals[0] for aval in self.avals):
                texts = self._texts(f"{aval.dtype}{aval.shape}" for aval in self.avals)
                raise TypeError(
                    f"{self.name}: the branches must return tensors of the same shape and dtype "
                    f"where a tensor without a value chooses: result {self.position} is {texts}. "
                    "Cast, reshape or pad the results"
                )

    def _texts(self, leaves: Any) -> str:
        pairs = zip(self.names, leaves, strict=True)
        return ", ".join(f"{text} of `{label}`" for label, text in pairs)


def _is_value(leaf: Any) -> bool:
    return isinstance(leaf, (ArrayLike, np.ndarray)) or is_weak(leaf)


def _is_same(leaf: Any, other: Any) -> bool:
    return leaf is other or (type(leaf) is type(other) and leaf == other)
