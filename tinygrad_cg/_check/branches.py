"""Levels that look at the operations of a function: their constants, and the branches they take.

A branch is what comparisons, maxima and roundings choose. Within one branch the function is a
smooth formula. A difference across branches is not a derivative: across steps of `floor`, or
across a kink that is nearer than the step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .._core.kinds import is_complex, is_inexact
from .._core.levels import state
from .._core.primitive import OPS
from .._core.tensor import Tensor
from .._rules.custom_gradient import running_functions
from .observing import ObservingLevel, Silent

Chosen = tuple[Any, Any]  # the choice for each element, and where it is a tie


def _by_order(x: np.ndarray, other: Any = 0.0) -> Chosen:
    if is_complex(x.dtype):  # there is no order
        return None, x == other
    return x > other, x == other


def _by_quotient(x: np.ndarray, divisor: np.ndarray) -> Chosen:
    quotient = np.floor_divide(x, divisor)
    return quotient, quotient * divisor == x


def _extremum(x: np.ndarray, out: np.ndarray, axis: Any, keepdims: bool) -> Chosen:
    mask = x == (out if keepdims else np.expand_dims(out, axis))
    return mask, np.broadcast_to(mask.sum(axis, keepdims=True) > 1, mask.shape)


CHOICES = {  # functions of the operands' arrays, the result's array and the parameters
    **dict.fromkeys(("absolute", "relu", "sign"), lambda xs, out: _by_order(xs[0])),
    **dict.fromkeys(("maximum", "minimum"), lambda xs, out: _by_order(*xs)),
    "clip": lambda xs, out: tuple(
        np.stack(pair) for pair in zip(*[_by_order(xs[0], bound) for bound in xs[1:]], strict=True)
    ),
    **dict.fromkeys(("floor", "ceil"), lambda xs, out: (out, out == xs[0])),
    "round": lambda xs, out: (out, abs(xs[0] - out) == 0.5),
    **dict.fromkeys(("remainder", "floor_divide"), lambda xs, out: _by_quotient(*xs)),
    **dict.fromkeys(("max", "min"), lambda xs, out, **params: _extremum(xs[0], out, **params)),
    "sort": lambda xs, out, axis, **_: (
        np.argsort(xs[0], axis),
        not np.diff(out, axis=axis).all(),
    ),
    "max_pool": lambda xs, out, **params: (OPS["max_pool_indices"].run(*xs, **params), False),
    "determinant_sign": lambda xs, out: (out, out == 0),
}


class Constants(Silent, ObservingLevel):
    """A level that collects the constants among the operands.

    Arguments, results and values of Variables are not constants. Constants that differ at another
    point are computed from the arguments' values, by NumPy code for example, which may do anything
    with complex numbers.
    """

    def __init__(self) -> None:
        self._constants: list[np.ndarray] = []
        self._forgotten: dict[int, np.ndarray] = {}
        self._results: dict[int, Tensor] = {}

    @property
    def constants(self) -> list[np.ndarray]:
        return [array for array in self._constants if id(array) not in self._forgotten]

    def begin(self, sources: list) -> None:
        self._results |= {id(tensor): tensor for tensor in sources}
        self.forget(state.overrides.values())

    def see(self, primitive: Any, inputs: tuple, params: dict, outs: list[Tensor]) -> None:
        self.look_at(inputs)
        self._results |= {id(tensor): tensor for tensor in outs}

    def see_rule(self, inputs: Sequence, outputs: Sequence, results: list) -> None:
        self.look_at(outputs)
        self._results |= {id(tensor): tensor for tensor in results}

    def look_at(self, tensors: Sequence) -> None:
        """Collect the constants among these tensors."""
        self._constants += [tensor._data for tensor in tensors if id(tensor) not in self._results]

    def forget(self, arrays: Iterable[np.ndarray]) -> None:
        """Do not count these arrays, the values of Variables, as constants."""
        self._forgotten |= {id(array): array for array in arrays}

    def has_same_constants(self, other: Constants) -> bool:
        here, there = self.constants, other.constants
        same = partial(np.array_equal, equal_nan=True)
        return len(here) == len(there) and all(map(same, here, there))


NOT_ANALYTIC = (  # operations with complex results that are not analytic functions
    *("log_abs_determinant", "determinant_sign", "cholesky", "sign", "nearest_finite", "relu"),
    *("clip", "round", "floor", "ceil", "floor_divide", "remainder"),
)


class Analytic(Constants):
    """A level that tells whether a function of complex numbers looks analytic."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = True

    def process(self, primitive: Any, inputs: tuple, params: dict) -> Any:
        has_complex = any(is_complex(tensor.dtype) for tensor in inputs)
        if has_complex and not (
            any(accepts(np.dtype(np.complex128)) for accepts in primitive.dtypes)
            and primitive.name in OPS  # a user's own kernel may be anything
            and primitive.analytic
            and primitive.name not in NOT_ANALYTIC
        ):
            self.holds = False
            raise TypeError(f"{primitive.name} is not an analytic function of complex numbers")
        out = super().process(primitive, inputs, params)
        if has_complex:
            outs = out if isinstance(out, list) else [out]
            self.holds &= all(is_complex(tensor.dtype) for tensor in outs)
        return out

    def detach(self, *facts: Any, **named: Any) -> bool:
        self.holds &= bool(running_functions())  # a rule replaces what these compute
        return True


class Branches(Constants):
    """A level that notes which branch each operation takes."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[tuple[str, Chosen]] = []
        self.work = 0  # the number of elements computed

    def see(self, primitive: Any, inputs: tuple, params: dict, outs: list[Tensor]) -> None:
        super().see(primitive, inputs, params, outs)
        self.work += sum(tensor._data.size for tensor in outs)
        operands, result = [tensor._data for tensor in inputs], outs[0]._data
        chosen: Chosen = (None, True)
        with np.errstate(all="ignore"):
            if not is_inexact(result.dtype):  # a comparison, or indices
                is_comparison = len(operands) == 2 and result.dtype == bool
                chosen = result, is_comparison and operands[0] == operands[1]
            elif primitive.name in CHOICES:
                chosen = CHOICES[primitive.name](operands, result, **params)
        self.taken.append((primitive.name, chosen))

    def holds(self, other: Branches) -> bool:
        """Return whether another point is in the same branches, ties aside."""
        if [name for name, _ in self.taken] != [name for name, _ in other.taken]:
            return False
        pairs = zip(self.taken, other.taken, strict=True)
        return all(
            bool(np.all(tie | (np.asarray(here) == there)))
            for (_, (here, tie)), (_, (there, _)) in pairs
        )
