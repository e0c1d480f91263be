"""Levels that look at the operations of a function: what they take, and what they choose.

Branches of a function are what comparisons, maxima and roundings choose on the way.

Where these choose the same the function is one smooth formula. A difference over several branches
is no derivative: over many steps of `floor`, or over a kink nearer than the step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .._core.kinds import is_complex, is_inexact
from .._core.levels import Level, state
from .._core.primitive import OPS, apply
from .._core.tensor import Tensor
from .._reverse.observer import Observer
from .._rules.rebinding import rebind_outputs

Chosen = tuple[Any, Any]  # what is chosen for each element, and where that is a tie


def _by_order(x: np.ndarray, other: Any = 0.0) -> Chosen:
    return x > other, x == other


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
        np.stack(pair) for pair in zip(*[_by_order(xs[0], bound) for bound in xs[1:]], strict=True)
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


class Silent(Observer):
    """An observer that takes the warnings of rules, and forgets them."""

    def notice(self, *facts: Any, **named: Any) -> bool:
        return True

    detach = notice


class Constants(Silent, Level):
    """A level that keeps the constants that operations take.

    These are neither arguments, nor results, nor values of Variables. Constants that are others at
    another point are made of the arguments' values: by NumPy code, say, which may do anything
    with complex numbers.
    """

    def __init__(self) -> None:
        self._constants: list[np.ndarray] = []
        self._forgotten: dict[int, np.ndarray] = {}
        self._results: dict[int, Tensor] = {}

    @property
    def constants(self) -> list[np.ndarray]:
        return [array for array in self._constants if id(array) not in self._forgotten]

    def process(self, primitive: Any, inputs: tuple, params: dict) -> Any:
        self.look_at(inputs)
        out = apply(primitive, inputs, params)
        self.add_results(out if isinstance(out, list) else [out])
        return out

    def custom_call(self, call: Any, inputs: Sequence, outputs: Sequence) -> list:
        self.look_at(outputs)
        return self.add_results(rebind_outputs(state.frame, call, inputs, outputs))

    def add_results(self, tensors: Sequence) -> Any:
        self._results |= {id(tensor): tensor for tensor in tensors}
        return tensors

    def look_at(self, tensors: Sequence) -> None:
        self._constants += [tensor._data for tensor in tensors if id(tensor) not in self._results]

    def forget(self, arrays: Iterable[np.ndarray]) -> None:
        """Count these arrays, the values of Variables, for no constants."""
        self._forgotten |= {id(array): array for array in arrays}

    def has_same_constants(self, other: Constants) -> bool:
        here, there = self.constants, other.constants
        same = partial(np.array_equal, equal_nan=True)
        return len(here) == len(there) and all(map(same, here, there))


CONJUGATING = (  # complex results that are no analytic functions of complex operands
    *("log_abs_determinant", "determinant_sign", "cholesky", "sign", "nearest_finite", "relu"),
    *("clip", "round", "floor", "ceil", "floor_divide", "remainder"),
)


class Analytic(Constants):
    """A level that looks whether a function of complex numbers is analytic, as far as is seen."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = True

    def process(self, primitive: Any, inputs: tuple, params: dict) -> Any:
        of_complex = any(is_complex(tensor.dtype) for tensor in inputs)
        if of_complex and not self._is_analytic(primitive):
            self.holds = False
            raise TypeError(f"{primitive.name} is no analytic function of complex numbers")
        out = super().process(primitive, inputs, params)
        outs = out if isinstance(out, list) else [out]
        if of_complex:
            self.holds &= all(is_complex(tensor.dtype) for tensor in outs)
        return out

    @staticmethod
    def _is_analytic(primitive: Any) -> bool:
        takes_complex = any(accepts(np.dtype(np.complex128)) for accepts in primitive.dtypes)
        is_known = primitive.name in OPS  # a user's own kernel may be anything
        listed = primitive.analytic and primitive.name not in CONJUGATING
        return takes_complex and is_known and listed

    def detach(self, *facts: Any, **named: Any) -> bool:
        self.holds = False
        return True


class Branches(Constants):
    """A level that notes what operations choose, too."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[tuple[str, Chosen]] = []
        self.work = 0  # elements of what was computed

    def process(self, primitive: Any, inputs: tuple, params: dict) -> Any:
        out = super().process(primitive, inputs, params)
        name, outs = primitive.name, out if isinstance(out, list) else [out]
        self.work += sum(tensor._data.size for tensor in outs)
        operands, results = ([tensor._data for tensor in some] for some in (inputs, outs))
        chosen: Chosen = (None, True)
        with np.errstate(all="ignore"):
            if not is_inexact(results[0].dtype):  # a comparison, or indices
                is_comparison = len(operands) == 2 and results[0].dtype == bool
                chosen = results[0], is_comparison and operands[0] == operands[1]
            elif name in CHOICES:
                chosen = CHOICES[name](operands, results[0], **params)
        self.taken.append((name, chosen))
        return out

    def holds(self, other: Branches) -> bool:
        """Return whether another point is in the same branches, or near ties of this one."""
        if [name for name, _ in self.taken] != [name for name, _ in other.taken]:
            return False
        pairs = zip(self.taken, other.taken, strict=True)
        return all(
            bool(np.all(tie | (np.asarray(here) == there)))
            for (_, (here, tie)), (_, (there, _)) in pairs
        )
