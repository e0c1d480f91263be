"""Branches of a function: what comparisons, maxima and roundings choose on the way.

Where these choose the same the function is one smooth formula. A difference over several branches
is no derivative: over many steps of `floor`, or over a kink nearer than the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.kinds import is_inexact
from .._core.levels import Level, state
from .._core.primitive import OPS, apply
from .._rules.rebinding import rebind_outputs

Chosen = tuple[Any, Any]  # what is chosen for each element, and where that is a tie


def _by_order(one: np.ndarray, other: Any = 0.0) -> Chosen:
    return one > other, one == other


def _by_quotient(operands: Sequence) -> Chosen:
    quotient = np.floor_divide(*operands)
    return quotient, quotient * operands[1] == operands[0]


def _extremum(x: np.ndarray, out: np.ndarray, axis: Any, keepdims: bool) -> Chosen:
    mask = x == (out if keepdims else np.expand_dims(out, axis))
    return mask, np.broadcast_to(mask.sum(axis, keepdims=True) > 1, mask.shape)


def _sorted(x: np.ndarray, out: np.ndarray, axis: int, descending: bool) -> Chosen:
    return np.argsort(x, axis), not np.diff(out, axis=axis).all()


CHOICES = {  # by the arrays of the operands, that of the result, and the parameters
    "absolute": lambda xs, out: _by_order(xs[0]),
    "relu": lambda xs, out: _by_order(xs[0]),
    "sign": lambda xs, out: _by_order(xs[0]),
    "maximum": lambda xs, out: _by_order(*xs),
    "minimum": lambda xs, out: _by_order(*xs),
    "clip": lambda xs, out: tuple(
        np.stack(pair) for pair in zip(*[_by_order(xs[0], one) for one in xs[1:]], strict=True)
    ),
    "floor": lambda xs, out: (out, out == xs[0]),
    "ceil": lambda xs, out: (out, out == xs[0]),
    "round": lambda xs, out: (out, abs(xs[0] - out) == 0.5),
    "remainder": lambda xs, out: _by_quotient(xs),
    "floor_divide": lambda xs, out: _by_quotient(xs),
    "max": lambda xs, out, **params: _extremum(xs[0], out, **params),
    "min": lambda xs, out, **params: _extremum(xs[0], out, **params),
    "sort": lambda xs, out, **params: _sorted(xs[0], out, **params),
    "max_pool": lambda xs, out, **params: (OPS["max_pool_indices"].run(*xs, **params), False),
    "determinant_sign": lambda xs, out: (out, out == 0),
}


class Branches(Level):
    """A level that notes what operations choose."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, Chosen]] = []

    def process(self, primitive: Any, inputs: tuple, params: dict) -> Any:
        out = apply(primitive, inputs, params)
        name, outs = primitive.name, out if isinstance(out, list) else [out]
        operands, results = ([one._data for one in some] for some in (inputs, outs))
        chosen: Chosen = (None, True)
        with np.errstate(all="ignore"):
            if not is_inexact(results[0].dtype):  # a comparison, or indices
                is_comparison = len(operands) == 2 and results[0].dtype == bool
                chosen = results[0], is_comparison and operands[0] == operands[1]
            elif name in CHOICES:
                chosen = CHOICES[name](operands, results[0], **params)
        self.taken.append((name, chosen))
        return out

    def custom_call(self, call: Any, inputs: Sequence, outputs: Sequence) -> list:
        return rebind_outputs(state.frame, call, inputs, outputs)

    def holds(self, other: Branches) -> bool:
        """Return whether another point is in the same branches, or near ties of this one."""
        if [name for name, _ in self.taken] != [name for name, _ in other.taken]:
            return False
        pairs = zip(self.taken, other.taken, strict=True)
        return all(
            bool(np.all(tie | (np.asarray(here) == there)))
            for (_, (here, tie)), (_, (there, _)) in pairs
        )
