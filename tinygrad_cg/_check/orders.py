"""The rows of a check: each order, argument, path and mode, with its verdict."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.kinds import is_floating
from ..errors import NotLinearError
from .problem import CheckedFunction, Product, complex_product, move_point, product, total
from .recorder import Recorder
from .reference import LINEARITY, ReferenceValue
from .verdicts import (
    FAILED,
    INCONCLUSIVE,
    KINK,
    NOT_FINITE,
    NOT_LINEAR,
    TRUE,
    WRONG,
    Accuracy,
    DerivativeRow,
    Judge,
    decide,
    noise_of,
)


@dataclass
class Property:
    """A property that every rule must have: whether it `holds`, and a description.

    `holds` is None where it does so only because gradients were adapted.
    """

    name: str
    holds: bool | None
    detail: str


class Orders:
    """Comparison of the derivatives that rules give with references, order by order."""

    def __init__(self, problem: CheckedFunction, order: int, modes: Sequence[str], full: bool):
        self.problem = problem
        self.order = order
        self.modes = modes
        self.full = full
        self.rows: list[DerivativeRow] = []
        self.recorders: dict[tuple[int, str], Recorder] = {}
        self.errors: dict[tuple[int, str, str], Exception] = {}
        self.properties: list[Property] = []
        self.inaccurate: list[DerivativeRow] = []
        self._linear = True

    def run(self) -> None:
        """Fill the rows and the properties."""
        if not self._values_repeat():
            return
        for order in range(1, self.order + 1):
            if not self._one_order(order):
                break
        self._look_at_shapes()
        self._compare_modes()

    # One order -------------------------------------------------------------------------------

    def _one_order(self, order: int) -> bool:
        """Add the rows of an order; return False if higher orders cannot be computed."""
        found = self._passes(order)
        if found is None:
            return False
        if order == 1:
            self._check_linearity()
        judges = [self._judge(order, j, self.problem.weigh) for j in self._source_indices]
        if "reverse" in self.modes:
            self._x_rows(order, judges, *found)
            if order > 1:
                self._upstream_row(order)
                self._both_rows(order)
        if "forward" in self.modes:
            self._forward_rows(order, judges)
        if order == 2 and "reverse" in self.modes:
            self._check_symmetry()
        return True

    @property
    def _source_indices(self) -> range:
        return range(len(self.problem.sources))

    @property
    def _base(self) -> list[np.ndarray]:
        """Return the point to compute at: in float64 where the function takes it."""
        return self.problem.wide_point if self.problem.wide else self.problem.point

    @functools.cached_property
    def _has_two(self) -> bool:
        """Return whether the arguments have another precision than the comparison."""
        pairs = zip(self.problem.point, self._base, strict=True)
        return any(one.dtype != other.dtype for one, other in pairs)

    @property
    def _accuracy(self) -> Accuracy:
        precisions = [recorder.coarsest for recorder in self.recorders.values()]
        least = max(float(np.finfo(one.dtype).eps) for one in self._base)
        return Accuracy(max([least, *precisions]))

    def _passes(self, order: int, joint: bool = False) -> tuple[list, list] | None:
        """Return the gradients in the arguments' precision and in that of the comparison."""
        problem, path = self.problem, "joint" if joint else "x"
        recorder = Recorder([source.name for source in problem.sources])
        self.recorders[order, path] = recorder
        try:
            if joint:
                wide = problem.joint_arrays(self._base, order, recorder)
            else:
                wide = problem.arrays(self._base, order, problem.weigh, recorder)
            native = wide
            if self._has_two and joint:
                native = problem.joint_arrays(problem.point, order)
            elif self._has_two:
                native = problem.arrays(problem.point, order, problem.weigh)
        except Exception as error:
            self._add_failure(order, path, error)
            return None
        return native, wide

    def _add_failure(self, order: int, path: str, error: Exception) -> None:
        self.errors[order, path, "reverse"] = error
        if any(row.order == order and row.verdict == FAILED for row in self.rows):
            return
        words = f"{type(error).__name__}: {error}"
        for source in self.problem.sources:
            self.rows.append(_without_number(order, source.name, "x", "reverse", FAILED, words))

    def _judge(self, order: int, source_index: int, start: Any) -> Judge:
        problem = self.problem
        ways: list = [None] * len(problem.sources)
        ways[source_index] = problem.last[source_index]

        def line(step: float) -> tuple[float, float]:
            try:
                found = problem.measure(move_point(self._base, ways, step), order - 1, start)
            except Exception:  # it is not defined there
                return math.nan, math.nan
            return found.value or 0.0, found.size

        def complex_line(step: complex) -> tuple[Any, float]:
            outputs = problem.outputs(move_point(self._base, ways, step))
            return complex_product(problem.weights, outputs), 0.0

        of_reals = all(is_floating(one.dtype) for one in (*self._base, *problem.values))
        allowed = order == 1 and of_reals and self._accuracy.precision < 1e-12
        scale = problem.scales[source_index]
        rough, exact = problem.rough, complex_line if allowed else None
        return Judge(line, scale, self._accuracy, rough, exact)

    def _x_rows(self, order: int, judges: list[Judge], native: list, wide: list) -> None:
        self._joint = joint = self._passes(order, joint=True) if order > 1 else None
        if order > 1 and joint is None:
            return
        for source_index in self._source_indices:
            row = self._row(
                order, source_index, "x", judges[source_index], native, wide, self._again(order)
            )
            if joint is not None and not row.false:
                again = self._again(order, joint=True)
                other = self._row(order, source_index, "x", judges[source_index], *joint, again)
                if other.false:
                    row = other
                    row.detail = row.detail or "where a tape watches the upstream gradient"
            self.rows.append(row)
        if self.full:
            self._full_rows(order)

    def _again(self, order: int, start: Any = None, joint: bool = False) -> Callable:
        """Return a function that computes a source's derivative once more."""
        problem = self.problem

        def value(source_index: int) -> float:
            if joint:
                found = problem.joint_arrays(self._base, order)
            else:
                found = problem.arrays(self._base, order, start or problem.weigh)
            return product(problem.last[source_index], found[source_index]).value or 0.0

        return value

    def _row(
        self,
        order: int,
        source_index: int,
        path: str,
        judge: Judge,
        native: list,
        wide: list,
        again: Callable[[int], float],
    ) -> DerivativeRow:
        way = self.problem.last[source_index]
        with np.errstate(all="ignore"):
            own, value = product(way, native[source_index]), product(way, wide[source_index])
        return self._judge_value(order, source_index, path, "reverse", judge, own, value, again)

    def _judge_value(
        self,
        order: int,
        source_index: int,
        path: str,
        mode: str,
        judge: Judge,
        own: Product,
        value: Product,
        again: Callable[[int], float],
    ) -> DerivativeRow:
        """Return the row for a value in the arguments' precision and in the comparison's."""
        shown, detail = value.value, ""
        if not math.isfinite(value.value or 0.0):
            reference = judge.refine_reference()
            verdict = self._non_finite(reference)
        else:
            verdict, reference = judge.verdict(value, lambda: again(source_index))
            if verdict == WRONG and any(row.verdict == KINK for row in self.rows):
                verdict = KINK  # of the order before
            if not math.isfinite(own.value or 0.0) and verdict == TRUE:
                verdict, shown = self._overflow(reference), own.value
                detail = f"in {self.problem.point[source_index].dtype}; finite in float64"
        row = DerivativeRow(
            order,
            self.problem.sources[source_index].name,
            path,
            mode,
            shown,
            reference.value,
            reference.error,
            reference.kind,
            verdict,
            detail,
        )
        lost = abs((own.value or 0.0) - (value.value or 0.0)) > 0.01 * value.size
        if verdict == TRUE and lost and mode == "reverse":
            self.inaccurate.append(row)
        return row

    def _non_finite(self, reference: ReferenceValue) -> str:
        size = max(abs(reference.value), reference.size)
        known = math.isfinite(reference.value) and reference.error <= 1e-3 * size
        return self._overflow(reference) if known else INCONCLUSIVE

    def _overflow(self, reference: ReferenceValue) -> str:
        """Return a verdict for a non-finite value: whether the sources' dtypes could hold it."""
        largest = min(float(np.finfo(one.dtype).max) for one in self.problem.point)
        return INCONCLUSIVE if abs(reference.value) > 0.1 * largest else NOT_FINITE

    # Other paths -----------------------------------------------------------------------------

    def _upstream_row(self, order: int) -> None:
        """Add the row of the upstream gradient, in which a gradient is linear."""
        if self._joint is None or not self._linear:
            return
        own, value = map(self._by_upstream, self._joint)
        exact = self._with_upstream(order)
        reference = ReferenceValue(
            exact.value or 0.0, 1e-12 * exact.size, LINEARITY, size=exact.size
        )
        number, shown = value.value or 0.0, value.value
        if not math.isfinite(number):
            verdict = NOT_FINITE if math.isfinite(reference.value) else INCONCLUSIVE
        else:
            floor = 100 * self._accuracy.precision * max(value.size, exact.size)
            verdict = decide(number, reference, self._accuracy, floor)
            if verdict is None:
                noise = self._noise(lambda: self._upstream_difference(order))
                reference = reference._replace(error=reference.error + noise)
                verdict = decide(number, reference, self._accuracy, floor) or WRONG
        if verdict == TRUE and not math.isfinite(own.value or 0.0):
            verdict, shown = self._overflow(reference), own.value
        found = (shown, reference.value, reference.error, LINEARITY, verdict)
        self.rows.append(DerivativeRow(order, "dy", "upstream", "reverse", *found))

    def _by_upstream(self, gradients: list) -> Product:
        """Return the derivative by the weights, along the direction for these."""
        problem = self.problem
        pairs = zip(problem.second_weights, gradients[len(problem.sources) :], strict=True)
        return total([product(way, one) for way, one in pairs])

    def _with_upstream(self, order: int) -> Product:
        """Return the derivative of the order before, with that direction for its upstream."""
        problem = self.problem
        weights, problem.weights = problem.weights, problem.second_weights
        try:
            return problem.measure(self._base, order - 1, problem.weigh)
        finally:
            problem.weights = weights

    def _upstream_difference(self, order: int) -> float:
        joint = self.problem.joint_arrays(self._base, order)
        one, other = self._by_upstream(joint), self._with_upstream(order)
        return (one.value or 0.0) - (other.value or 0.0)

    def _noise(self, difference: Callable[[], float]) -> float:
        """Return how far a difference that should be 0 may be off by rounding."""
        return 3 * noise_of(difference(), difference, self.problem.rough)

    def _both_rows(self, order: int) -> None:
        """Add the derivatives of the squared outputs, where both paths meet."""
        problem = self.problem
        try:
            wide = problem.arrays(self._base, order, problem.weigh_squares)
        except Exception as error:
            self._add_failure(order, "both", error)
            return
        for source_index in self._source_indices:
            judge = self._judge(order, source_index, problem.weigh_squares)
            again = self._again(order, problem.weigh_squares)
            self.rows.append(self._row(order, source_index, "both", judge, wide, wide, again))

    def _forward_rows(self, order: int, judges: list[Judge]) -> None:
        def again(source_index: int) -> float:
            return self.problem.tangent(self._base, order, source_index).value or 0.0

        for source_index in self._source_indices:
            try:
                value = self.problem.tangent(self._base, order, source_index)
                own = self.problem.tangent(self.problem.point, order, source_index)
            except Exception as error:
                self._forward_failed(order, error)
                return
            row = self._judge_value(
                order, source_index, "x", "forward", judges[source_index], own, value, again
            )
            self.rows.append(row)

    def _forward_failed(self, order: int, error: Exception) -> None:
        self.errors[order, "x", "forward"] = error
        verdict = FAILED
        if isinstance(error, NotLinearError):  # or so much rounded that it looks so
            verdict = INCONCLUSIVE if self._linear else NOT_LINEAR
        for source in self.problem.sources:
            words = f"{type(error).__name__}: {error}"
            self.rows.append(_without_number(order, source.name, "x", "forward", verdict, words))

    # Whole matrices --------------------------------------------------------------------------

    def _full_rows(self, order: int) -> None:
        """Return compare every element of the derivative; add rows for the worst ones."""
        problem = self.problem
        chosen = problem.weights if order == 1 else problem.ways[order - 1]
        for j, kept in enumerate(chosen):
            for index in np.ndindex(kept.shape):
                unit = [np.zeros(one.shape) for one in chosen]
                unit[j][index] = 1.0
                self._full_row(order, unit)

    def _full_row(self, order: int, unit: list[np.ndarray]) -> None:
        """Return compare the derivatives of one element of the order before by every element."""
        problem = self.problem
        before = problem.weights, problem.ways, problem.last
        if order == 1:
            problem.weights = unit
        else:
            problem.ways = [*problem.ways]
            problem.ways[order - 1] = unit
        try:
            found = problem.arrays(self._base, order, problem.weigh)
            for source_index in self._source_indices:
                for index in np.ndindex(self._base[source_index].shape):
                    problem.last = [np.zeros(one.shape) for one in before[2]]
                    problem.last[source_index][index] = 1.0
                    judge = self._judge(order, source_index, problem.weigh)
                    row = self._row(
                        order, source_index, "x", judge, found, found, self._again(order)
                    )
                    row.index = index
                    if row.verdict != TRUE:
                        self.rows.append(row)
        finally:
            problem.weights, problem.ways, problem.last = before

    # Properties ------------------------------------------------------------------------------

    def _values_repeat(self) -> bool:
        """Return whether the function and its gradient are the same when computed again."""
        problem = self.problem
        one, other = problem.outputs(self._base), problem.outputs(self._base)
        if not _alike(one, other):
            self.properties.append(
                Property(
                    "repeated calls agree",
                    False,
                    f"{problem.name} gives another value when it is called again: it draws random "
                    "numbers, or keeps a state. Nothing can be said of its derivatives before "
                    "that is fixed",
                )
            )
            return False
        try:
            first, second = [problem.pull_back(self._base, [problem.weights]) for _ in range(2)]
        except Exception:
            return True
        agree = _alike(first[0], second[0])
        detail = "" if agree else "the gradient is another when the rule runs again: it has a state"
        self.properties.append(Property("repeated calls agree", agree, detail))
        return True

    def _check_linearity(self) -> None:
        """Return compare the gradient for a sum of upstream gradients with the sum of the
        gradients.
        """
        problem = self.problem
        sums = [b - a for a, b in zip(problem.weights, problem.others, strict=True)]
        upstreams = [problem.weights, sums, problem.others]

        def parts(source_index: int) -> list[Product]:
            found = problem.pull_back(self._base, upstreams)
            return [
                product(problem.last[source_index], gradients[source_index]) for gradients in found
            ]

        def difference(source_index: int) -> float:
            one, other, both = [part.value or 0.0 for part in parts(source_index)]
            return one + other - both

        for source_index, source in enumerate(problem.sources):
            try:
                one, other, both = parts(source_index)
            except Exception:
                return
            expected, got = (one.value or 0.0) + (other.value or 0.0), both.value or 0.0
            allowed = self._accuracy.relative * max(one.size, other.size, both.size)
            allowed += 16 * max(one.rounding, other.rounding, both.rounding)
            if abs(expected - got) > allowed:
                allowed += self._noise(functools.partial(difference, source_index))
            if abs(expected - got) > allowed:
                self._linear = False
                found = (got, expected, 0.0, LINEARITY, NOT_LINEAR)
                self.rows.append(DerivativeRow(1, source.name, "upstream", "reverse", *found))
        words = "" if self._linear else "two upstreams' gradients do not add up to that of the sum"
        self.properties.append(Property("linear in the upstream", self._linear, words))

    def _check_symmetry(self) -> None:
        """Return compare second derivatives along two directions, taken in both orders."""
        if sum(one.size for one in self.problem.point) == 1:
            return
        try:
            one, other = self._mixed()
        except Exception:
            return
        difference = abs((one.value or 0.0) - (other.value or 0.0))
        if not math.isfinite(difference):
            return
        holds, words = difference <= self._accuracy.relative * max(one.size, other.size), ""
        if not holds:
            holds = difference <= self._noise(self._asymmetry)
        if not holds:
            words = f"{one.value or 0.0:.6g} in one order, {other.value or 0.0:.6g} in the other"
        self.properties.append(Property("second derivatives are symmetric", holds, words))

    def _mixed(self) -> list[Product]:
        problem, found = self.problem, []
        before = problem.ways
        try:
            for ways in (before, [before[0], before[2], before[1]]):
                problem.ways = ways
                found.append(problem.measure(self._base, 2, problem.weigh))
        finally:
            problem.ways = before
        return found

    def _asymmetry(self) -> float:
        one, other = self._mixed()
        return (one.value or 0.0) - (other.value or 0.0)

    def _look_at_shapes(self) -> None:
        """Add the property that gradients did not have to be adapted to their inputs."""
        if any("reverse" in key for key in self.errors):
            return
        notices = [notice for one in self.recorders.values() for notice in one.notices]
        adapted = [one.message for one in notices if one.kind in ("scalar", "dtype")]
        detail = adapted[0] if adapted else ""
        self.properties.append(Property("shapes and dtypes fit", None if adapted else True, detail))

    def _compare_modes(self) -> None:
        """Return compare forward mode with reverse mode, from the rows."""
        for order, name in ((1, "forward mode is the adjoint"), (2, "forward over reverse agrees")):
            pairs = [
                (row, other)
                for row in self.rows
                for other in self.rows
                if row.order == other.order == order
                and row.path == other.path == "x"
                and row.argument == other.argument
                and (row.mode, other.mode) == ("reverse", "forward")
                and row.index is None
                and {row.verdict, other.verdict} <= {TRUE, WRONG}
            ]
            disagreeing = [pair for pair in pairs if self._differ(*pair)]
            words = "; ".join(
                f"by {row.argument} {row.value or 0.0:.6g} in reverse, {other.value or 0.0:.6g} "
                "forward"
                for row, other in disagreeing
            )
            if pairs:
                self.properties.append(Property(name, not disagreeing, words))

    def _differ(self, row: DerivativeRow, other: DerivativeRow) -> bool:
        if row.verdict == other.verdict == TRUE:
            return False
        one, two = row.value or 0.0, other.value or 0.0
        return abs(one - two) > self._accuracy.relative * max(abs(one), abs(two))


def _without_number(
    order: int, argument: str, path: str, mode: str, verdict: str, detail: str
) -> DerivativeRow:
    nothing = math.nan
    return DerivativeRow(order, argument, path, mode, None, nothing, nothing, "", verdict, detail)


def _alike(ones: Sequence, others: Sequence) -> bool:
    return all(
        (one is None) == (other is None)
        and (one is None or np.allclose(one, other, rtol=1e-6, atol=0.0, equal_nan=True))
        for one, other in zip(ones, others, strict=True)
    )
