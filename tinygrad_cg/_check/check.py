"""One comparison of a function's derivatives with references: its data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from . import verdicts
from .problem import CheckedFunction, Product, total
from .recorder import Recorder
from .verdicts import DerivativeRow

SURE = (verdicts.TRUE, verdicts.WRONG)
DOUBTFUL = (verdicts.KINK, verdicts.INCONCLUSIVE)

REPEATS = "repeated calls agree"

Label = tuple[int, int, str, str]  # of a row: order, index of the source, path, mode


@dataclass
class Property:
    """A property that every rule must have: whether it `holds`, and a description.

    `holds` is None where it does so only because gradients were adapted.
    """

    name: str
    holds: bool | None
    detail: str


@dataclass
class Check:
    """The derivatives that rules give at a point, compared with references, order by order.

    If `is_brief`, up to the first false order, by x and by the upstream gradient alone, in one mode
    and at this point: what else there is follows from these. `is_nearby` says that this is the
    comparison at a second point, which is the `second` of another one.
    """

    problem: CheckedFunction
    order: int
    modes: Sequence[str]
    full: bool = False
    is_brief: bool = False
    is_nearby: bool = False
    second: Check | None = None
    rows: list[DerivativeRow] = field(default_factory=list)
    properties: list[Property] = field(default_factory=list)
    inaccurate: list[DerivativeRow] = field(default_factory=list)
    recorders: dict[tuple[int, str], Recorder] = field(default_factory=dict)
    errors: dict[tuple[int, str, str], Exception] = field(default_factory=dict)
    value: Product | None = None  # of the function, with its weights
    gradients: dict[tuple[int, str], tuple[list, list] | Exception] = field(default_factory=dict)
    complex_sources: dict[int, bool] = field(default_factory=dict)  # whether steps may be complex
    is_linear: bool = True
    has_zeros: bool = False  # whether an element of a gradient is 0

    @property
    def indices(self) -> range:
        return range(len(self.problem.sources))

    @property
    def first(self) -> list:
        """Return the gradients of order 1; an empty list if there are none."""
        gradients = self.gradients.get((1, "x"))
        return gradients[1] if isinstance(gradients, tuple) else []

    @property
    def base(self) -> list[np.ndarray]:
        """Return the point to compute at: in float64 where the function takes it."""
        return self.problem.wide_point if self.problem.wide else self.problem.point

    @property
    def precision(self) -> float:
        """Return the precision that the function computes in."""
        precisions = [recorder.coarsest for recorder in self.recorders.values()]
        return max([*(float(np.finfo(value.dtype).eps) for value in self.base), *precisions])

    def precision_of(self, j: int) -> float:
        """Return the precision of a source, or that of the function where this is less."""
        return max(self.precision, float(np.finfo(self.problem.point[j].dtype).eps))

    def gradients_of(self, order: int, path: str) -> tuple[list, list] | None:
        """Return the gradients in the arguments' precision and in that of the comparison.

        None where they raised an error, which is kept.
        """
        gradients = self.gradients[order, path]
        if isinstance(gradients, Exception):
            self.add_failure(order, path, "reverse", gradients)
            return None
        return gradients

    def value_of(self, order: int, path: str) -> Product | None:
        """Return D_order at the point; None where it was not computed."""
        if not order:
            return self.value
        gradients = self.gradients.get((order, path))
        if gradients is None or isinstance(gradients, Exception):
            return None
        return total(self.problem.ways_of(path)[order], gradients[1])

    def add_failure(
        self, order: int, path: str, mode: str, error: Exception, verdict: str = verdicts.FAILED
    ) -> None:
        """Keep an error, and add rows of it unless there are some of this order and mode."""
        self.errors[order, path, mode] = error
        rows = [row for row in self.rows if (row.order, row.mode) == (order, mode)]
        if any(row.verdict == verdicts.FAILED for row in rows):
            return
        comparison = (None, math.nan, math.nan, "", verdict, f"{type(error).__name__}: {error}")
        for source in self.problem.sources:
            self.rows.append(DerivativeRow(order, source.name, "x", mode, *comparison))


def unit_directions(like: Sequence[np.ndarray]) -> Iterator[tuple[list[np.ndarray], int, tuple]]:
    """Yield a direction along each element of the arrays, with the element's two indices."""
    for j, array in enumerate(like):
        for index in np.ndindex(array.shape):
            unit = [np.zeros(other.shape) for other in like]
            unit[j][index] = 1.0
            yield unit, j, index


def size_of(values: np.ndarray) -> float:
    """Return the largest finite magnitude; 1 for zeros."""
    return norm(values) or 1.0


def norm(array: np.ndarray) -> float:
    """Return the largest finite magnitude."""
    return float(np.abs(array[np.isfinite(array)]).max(initial=0.0))


def alike(ones: Sequence, others: Sequence) -> bool:
    """Return whether arrays agree up to the error of an iterative solution, say."""
    return all(
        (array is None) == (other is None)
        and (array is None or np.allclose(array, other, 1e-6, 1e-6 * norm(other), equal_nan=True))
        for array, other in zip(ones, others, strict=True)
    )
