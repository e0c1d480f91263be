"""One comparison of a function's derivatives with references: its data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from .._core.kinds import is_complex
from . import evaluate, verdicts
from .problem import InnerProduct, Problem, largest, precision_of_dtype
from .recorder import Recorder
from .verdicts import DerivativeRow

SURE = (verdicts.TRUE, verdicts.WRONG)
DOUBTFUL = (verdicts.KINK, verdicts.INCONCLUSIVE)

REPEATS = "repeated calls agree"

Label = tuple[int, int, str, str]  # of a row: order, index of the source, path, mode


@dataclass
class Property:
    """A property that every rule must have: whether it `holds`, and what is wrong if not.

    `holds` is None where it does so only because gradients were adapted.
    """

    name: str
    holds: bool | None
    detail: str


@dataclass
class Check:
    """The derivatives that rules return at a point, compared with references, order by order.

    If `is_brief`, only up to the first wrong order from `since` on, with respect to x and to the
    upstream gradient, in one mode and at this point. `is_nearby` says that this is the comparison
    at a second point; that one is kept as `second` of the first.
    """

    problem: Problem
    order: int
    modes: Sequence[str]
    full: bool = False
    is_brief: bool = False
    since: int = 1
    is_nearby: bool = False
    second: Check | None = None
    rows: list[DerivativeRow] = field(default_factory=list)
    properties: list[Property] = field(default_factory=list)
    # rows whose value in the arguments' dtype has lost digits: the dtype, that value, in float64
    inaccurate: list[tuple[DerivativeRow, str, float, float]] = field(default_factory=list)
    recorders: dict[tuple[int, str], Recorder] = field(default_factory=dict)
    errors: dict[tuple[int, str, str], Exception] = field(default_factory=dict)
    value: InnerProduct | None = None  # of the function's outputs with the weights
    gradients: dict[tuple[int, str], tuple[list, list]] = field(default_factory=dict)
    raised: dict[tuple[int, str], Exception] = field(default_factory=dict)  # instead of gradients
    complex_sources: dict[int, bool] = field(default_factory=dict)  # whether steps may be complex
    is_linear: bool = True
    has_zeros: bool = False  # whether an element of a gradient is 0
    has_hidden: bool = False  # whether an element is wrong that others hide in a sum
    kinks: dict[tuple[int, str], list[str]] = field(default_factory=dict)  # elements, in words

    @property
    def indices(self) -> range:
        return range(len(self.problem.sources))

    @property
    def whole(self) -> float:
        """Return the size of the terms of the function's value; 0 if it was not computed."""
        return self.value.size if self.value is not None else 0.0

    @property
    def repeats(self) -> bool:
        """Return whether repeated calls agree, as far as is known: otherwise no row is valid."""
        return all(prop.holds is not False for prop in self.properties if prop.name == REPEATS)

    @property
    def names(self) -> list[str]:
        return [source.name for source in self.problem.sources]

    @property
    def along(self) -> str:
        """Return which directions the values of rows are along, in words; "" for numbers."""
        sizes, others = (
            [a.size for a in some] for some in (self.problem.point, self.problem.values)
        )
        is_plain = max(sizes) == 1 and not any(is_complex(a.dtype) for a in self.problem.point)
        what = ["one random direction of each argument"] * (not is_plain)
        what += ["one random upstream gradient"] * (sum(others) > 1)
        is_computed = any(row.kind for row in self.rows)
        has_index = any(row.index is not None for row in self.rows)
        rows = "Rows without an index have values" if has_index else "Values are"
        sentences = [f"{rows} for {' and '.join(what)}."] if what and is_computed else []
        if len(sizes) > 1 and any(row.order > 1 for row in self.rows):
            sentences.append(
                "From order 2 onwards, the elements of all gradients are added up with random "
                "weights, and each value is a derivative of this sum."
            )
        return " ".join(sentences)

    def wide_gradients(self, order: int = 1, path: str = "x") -> list:
        """Return the gradients in the precision of the comparison; an empty list for none."""
        return self.gradients.get((order, path), ([], []))[1]

    @property
    def base(self) -> list[np.ndarray]:
        """Return the point to compute at: in float64 where the function takes it."""
        return self.problem.wide_point if self.problem.wide else self.problem.point

    @property
    def precision(self) -> float:
        """Return the precision that the function computes in."""
        precisions = [recorder.coarsest for recorder in self.recorders.values()]
        return max([*(precision_of_dtype(value.dtype) for value in self.base), *precisions])

    def precision_of(self, j: int) -> float:
        """Return the precision of a source, or that of the function if this is lower."""
        return max(self.precision, precision_of_dtype(self.problem.point[j].dtype))

    def gradients_of(self, order: int, path: str) -> tuple[list, list] | None:
        """Return the gradients in the arguments' precision and in that of the comparison.

        None if they raised an error, which is kept.
        """
        if error := self.raised.get((order, path)):
            self.add_failure(order, path, "reverse", error)
        return self.gradients.get((order, path))

    def value_of(self, order: int, path: str) -> InnerProduct | None:
        """Return D_order at the point; None if it was not computed."""
        if not order:
            return self.value
        gradients = self.wide_gradients(order, path)
        ways = evaluate.ways_of(self.problem, path)[order]
        return evaluate.total(ways, gradients) if gradients else None

    def add_failure(
        self, order: int, path: str, mode: str, error: Exception, verdict: str = verdicts.FAILED
    ) -> None:
        """Keep an error, and add rows of it unless there are some of this order and mode."""
        self.errors[order, path, mode] = error
        rows = [row for row in self.rows if (row.order, row.mode) == (order, mode)]
        if any(row.verdict == verdicts.FAILED for row in rows):
            return
        compared = (None, math.nan, math.nan, "", verdict, f"{type(error).__name__}: {error}")
        names = [row.argument for row in self.rows if row.verdict == verdicts.NOT_LINEAR]
        names = names if verdict == verdicts.NOT_LINEAR and names else self.names
        self.rows += [
            DerivativeRow(order, name, "x", mode, *compared) for name in dict.fromkeys(names)
        ]


# The derivatives that the rules return -------------------------------------------------------


def differentiate(check: Check, order: int) -> None:
    """Compute the gradients of an order, on all paths in one run of the function.

    If that fails, on one path after the other.
    """
    paths = ["x"]
    if "reverse" in check.modes:
        paths += ["joint"] * (order > 1)
        if not check.is_brief and check.order > 1:
            paths += ["both"]
        if order < check.order:
            paths += ["other"]
        if order == 2 and not check.is_brief and sum(value.size for value in check.base) > 1:
            paths += ["swapped"]
    try:
        _differentiate_at(check, order, paths)
    except Exception:
        for path in paths:
            try:
                _differentiate_at(check, order, [path])
            except Exception as error:
                check.raised[order, path] = error
                if path == "x":
                    return


def _differentiate_at(check: Check, order: int, paths: list[str]) -> None:
    problem = check.problem
    recorder = Recorder(check.names)
    if paths[0] in ("x", "joint"):
        check.recorders[order, paths[0]] = recorder
    arrays = evaluate.arrays_of(problem, check.base, order, paths, recorder)
    wide = dict(zip(paths, arrays, strict=True))
    narrow: dict[str, list] = {}
    watched = [path for path in paths if path in ("x", "joint", "both")]
    if problem.has_two_dtypes and watched:
        own = evaluate.arrays_of(problem, problem.point, order, watched)
        narrow = dict(zip(watched, own, strict=True))
    for path in paths:
        check.gradients[order, path] = narrow.get(path, wide[path]), wide[path]


def gradient_of_other_upstream(check: Check, j: int) -> np.ndarray | None:
    """Return the gradient by source j for the second weights; None if these are the first."""
    problem = check.problem
    if all(map(np.array_equal, problem.weights, problem.second_weights)):
        return None
    gradients = check.wide_gradients(1, "other")
    if not gradients:
        (gradients,) = evaluate.pull_back(problem, check.base, [problem.second_weights])
    return np.zeros_like(check.base[j]) if gradients[j] is None else gradients[j]


def unit_directions(like: Sequence[np.ndarray]) -> Iterator[tuple[list[np.ndarray], int, tuple]]:
    """Yield a direction along each element of the arrays, with the element's two indices.

    For complex numbers there are two: along the real and along the imaginary part.
    """
    for j, array in enumerate(like):
        for index in np.ndindex(array.shape):
            for number in (1.0, 1j) if np.iscomplexobj(array) else (1.0,):
                unit = [np.zeros(other.shape, other.dtype) for other in like]
                unit[j][index] = number
                yield unit, j, index


def is_similar(arrays: Sequence, others: Sequence) -> bool:
    """Return whether arrays agree up to the error of an iterative solution, for example."""
    return all(
        (array is None) == (other is None)
        and (
            array is None or np.allclose(array, other, 1e-6, 1e-6 * largest(other), equal_nan=True)
        )
        for array, other in zip(arrays, others, strict=True)
    )
