"""One signature of a function: what Python is called with, and the program that it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import nest
from ..._core.conversion import FLOAT32, FLOAT64, convert, is_tensor, is_weak
from ..._core.tensor import Aval, Tensor
from .compiled import Build, Program
from .number import TraceNumber
from .signature import FunctionCall
from .trace import FunctionTrace


class OutputMark:
    """Stands where an output is, in the structure of a result."""


class Traced:
    """A Python function and one signature: how it is traced, and the program that was found.

    `structure` is that of its result, with a mark for each output. ``derive(python)`` makes a
    compiled function that belongs to this one: its gradient.
    """

    def __init__(
        self, python: Callable, name: str, derive: Callable, call: FunctionCall, build: Build
    ):
        self.python, self.name, self.derive, self.build = python, name, derive, build
        self.call_made_of = call.without_leaves()
        self.key = call.key
        self.avals = [_leaf_aval(leaf) for leaf in call.leaves]
        self.program: Program
        self.structure: Any = None

    def arguments(self, trace: FunctionTrace) -> list:
        """Return the leaves of the call as a trace has them."""
        pairs = [(trace.argument(aval), weak) for aval, weak in self.avals]
        return [one if weak is None else TraceNumber(one.value, trace, weak) for one, weak in pairs]

    def run(self, leaves: Sequence) -> tuple[list[Tensor], Any]:
        """Call the Python function; return its outputs as tensors, flat, and their structure."""
        args, kwargs = self.call_made_of.fill_leaves(leaves)
        result = self.python(*args, **kwargs)
        flat = nest.flatten(result)
        marks = [OutputMark if _is_output(self.name, leaf) else leaf for leaf in flat]
        pairs = zip(flat, marks, strict=True)
        outputs = [convert(leaf) for leaf, mark in pairs if mark is OutputMark]
        return outputs, nest.pack_sequence_as(result, marks)

    def trace(self, may_create: bool) -> bool:
        """Make the program, and return whether it can be used: it made no Variables."""
        trace = FunctionTrace(self.name, may_create)
        with trace.active():
            tensors, self.structure = self.run(self.arguments(trace))
            outputs = list(map(trace.value, tensors))
            assigned = trace.assignments()
            del tensors  # what nothing refers to is a constant
        if trace.created:
            return False
        self.program = Program(trace, outputs, assigned, self.build)
        return True


def _leaf_aval(leaf: Any) -> tuple[Aval, np.dtype | None]:
    """Return the aval of an argument; for a float also the dtype of a tensor made of it."""
    if isinstance(leaf, Tensor):
        return Aval(tuple(leaf._data.shape), leaf._data.dtype), None
    return Aval((), FLOAT64), leaf.dtype if isinstance(leaf, np.floating) else FLOAT32


def _is_output(name: str, leaf: Any) -> bool:
    if is_tensor(leaf) or is_weak(leaf) or isinstance(leaf, np.ndarray):
        return True
    if leaf is None or isinstance(leaf, (str, bytes)):
        return False
    raise TypeError(
        f"{name}: functions must return tensors, numbers or None, nested as you like, to be "
        f"compiled; got {type(leaf).__name__}"
    )
