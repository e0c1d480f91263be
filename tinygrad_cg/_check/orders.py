"""The rows of a check: each order, argument, path and mode, with its verdict."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._core.kinds import is_complex, is_floating
from .._core.tracking import track
from ..errors import NotLinearError
from . import verdicts
from .curvature import compare_curvature
from .lines import Lines, PathLine, fetch, measure_together
from .problem import CheckedFunction, Point, Product, move_point, product, total
from .recorder import Recorder
from .reference import (
    COMPLEX_STEP,
    FIRST,
    LEVELS,
    LINEARITY,
    Ladder,
    ReferenceValue,
    difference_all,
    first_step,
)
from .verdicts import SHARP, DerivativeRow, Judge, decide, noise_of, tolerance

MOST_PARTED = 10_000  # elements of which parts are looked at
MOST_SINGLE = 64  # elements that are looked at one by one
MOST_DOUBTS = 200  # elements that are looked at again, of those that `full` compares
MOST_SHOWN = 20  # of which rows are shown
MOST_CLASSES = 8  # parts by size
NEARBY = 32  # points around a kink
FEW_NEARBY = 8  # of these, where all slopes are those to both sides of the kink

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


class Orders:
    """Comparison of the derivatives that rules give with references, order by order.

    If `is_brief`, up to the first false order, by x and by the upstream gradient alone, in one mode
    and at this point: what else there is follows from these.
    """

    is_brief = False

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
        self._indices = range(len(problem.sources))
        self.first: list = []  # the gradients of order 1, at the point of the comparison
        self._value: Product | None = None  # of the function, with its weights, there
        self._gradients: dict[tuple[int, str], tuple[list, list] | Exception] = {}
        self._complex: dict[int, bool] = {}  # whether there may be a complex step, by source
        self._linear = True
        self._has_zeros = False  # whether an element of a gradient is 0
        self.is_nearby = False  # whether this is the comparison at the second point
        self.second: Orders | None = None  # that comparison

    def run(self) -> None:
        if self.is_brief and "reverse" in self.modes:
            self.modes = ("reverse",)
        if not self._values_repeat():
            return
        for order in range(1, self.order + 1):
            if not self._one_order(order):
                break
        self._look_at_shapes()
        self._compare_modes()
        if self.is_brief:
            return
        if "reverse" in self.modes:
            self._look_at_parts()
        if not self.is_nearby:
            self._look_closer()
            self._compare_with_curvature()

    # One order -------------------------------------------------------------------------------

    def _one_order(self, order: int) -> bool:
        """Add the rows of an order; return False if higher orders are not to be computed."""
        self._differentiate(order)
        found = self._gradients_of(order, "x")
        if found is None:
            return False
        self._has_zeros |= any(map(self._has_zero, found[1]))
        if order == 1:
            self.first = found[1]
            self._check_linearity()
        lines = [self._lines(order, j) for j in self._indices]
        judges = [self._judge(order, j, "x", lines[j]) for j in self._indices]
        if "reverse" in self.modes:
            self._x_rows(order, judges, *found)
            if order > 1:
                self._upstream_row(order)
                if not self.is_brief:
                    self._both_rows(order, lines)
        if "forward" in self.modes:
            self._forward_rows(order, judges, found[1])
        if order == 2 and "reverse" in self.modes and not self.is_brief:
            self._check_symmetry()
        return not (self.is_brief and any(row.false for row in self.rows))

    @property
    def _base(self) -> list[np.ndarray]:
        """Return the point to compute at: in float64 where the function takes it."""
        return self.problem.wide_point if self.problem.wide else self.problem.point

    @property
    def _precision(self) -> float:
        """Return the precision that the function computes in."""
        precisions = [recorder.coarsest for recorder in self.recorders.values()]
        return max([*(float(np.finfo(one.dtype).eps) for one in self._base), *precisions])

    def _precision_of(self, j: int) -> float:
        """Return the precision of a source, or that of the function where this is less."""
        return max(self._precision, float(np.finfo(self.problem.point[j].dtype).eps))

    def _differentiate(self, order: int) -> None:
        """Compute the gradients of an order, on all paths in one run of the function.

        On one path after the other where that fails.
        """
        paths = ["x"]
        if "reverse" in self.modes:
            paths += ["joint"] * (order > 1)
            if not self.is_brief and self.order > 1:
                paths += ["both"]
            if order < self.order:
                paths += ["other"]
            if order == 2 and not self.is_brief and sum(one.size for one in self._base) > 1:
                paths += ["swapped"]
        try:
            self._pass(order, paths)
        except Exception:
            for path in paths:
                try:
                    self._pass(order, [path])
                except Exception as error:
                    self._gradients[order, path] = error
                    if path == "x":
                        return

    def _pass(self, order: int, paths: list[str]) -> None:
        problem = self.problem
        recorder = Recorder([source.name for source in problem.sources])
        if paths[0] in ("x", "joint"):
            self.recorders[order, paths[0]] = recorder
        found = problem.arrays_of(self._base, order, paths, recorder)
        wide = dict(zip(paths, found, strict=True))
        narrow: dict[str, list] = {}
        watched = [path for path in paths if path in ("x", "joint")]
        if problem.has_two_dtypes and watched:
            own = problem.arrays_of(problem.point, order, watched)
            narrow = dict(zip(watched, own, strict=True))
        for path in paths:
            self._gradients[order, path] = narrow.get(path, wide[path]), wide[path]

    def _gradients_of(self, order: int, path: str) -> tuple[list, list] | None:
        """Return the gradients in the arguments' precision and in that of the comparison.

        None where they raised an error, which is kept.
        """
        found = self._gradients[order, path]
        if isinstance(found, Exception):
            self._add_failure(order, path, "reverse", found)
            return None
        return found

    def _value_of(self, order: int, path: str) -> Product | None:
        """Return D_order at the point; None where it was not computed."""
        if not order:
            return self._value
        found = self._gradients.get((order, path))
        if found is None or isinstance(found, Exception):
            return None
        return total(self.problem.ways_of(path)[order], found[1])

    def along_another(self, order: int, j: int) -> tuple[float, float]:
        """Return the derivative by source j along another direction, and its reference."""
        way = self.problem.ways[0][j]
        gradients = self._gradients_of(order, "x")
        value = product(way, gradients and gradients[1][j]).number
        line = PathLine(self._along(order, j, way, ("x",)), "x", None)
        ladder = Ladder(line, self.problem.scales[j], self._precision)
        while len(ladder.rows) < FIRST:
            ladder.refine()
        return value, ladder.best().value

    def of_other_upstream(self, j: int) -> np.ndarray | None:
        """Return the gradient by source j for the second weights; None if these are the first."""
        problem = self.problem
        if all(map(np.array_equal, problem.weights, problem.second_weights)):
            return None
        found = self._gradients.get((1, "other"))
        if not isinstance(found, tuple):
            (gradients,) = problem.pull_back(self._base, [problem.second_weights])
        else:
            gradients = found[1]
        return np.zeros_like(self._base[j]) if gradients[j] is None else gradients[j]

    def _add_failure(
        self, order: int, path: str, mode: str, error: Exception, verdict: str = verdicts.FAILED
    ) -> None:
        self.errors[order, path, mode] = error
        known = [row for row in self.rows if (row.order, row.mode) == (order, mode)]
        if any(row.verdict == verdicts.FAILED for row in known):
            return
        found = (None, math.nan, math.nan, "", verdict, f"{type(error).__name__}: {error}")
        for source in self.problem.sources:
            self.rows.append(DerivativeRow(order, source.name, "x", mode, *found))

    def _judge(
        self,
        order: int,
        j: int,
        path: str = "x",
        lines: Lines | None = None,
        as_weighed: bool = True,
    ) -> Judge:
        """Return the judge of a derivative by source j; of other weights unless `as_weighed`."""
        problem = self.problem
        if lines is None:
            lines = self._along(order, j, problem.last[j], (path,))
        middle = self._value_of(order - 1, path) if as_weighed else None
        line = PathLine(lines, path, middle)

        def complex_line(step: complex) -> Any:
            if problem.level is None and not self._has_complex_step(j, lines):
                return None
            outputs = problem.analytic_outputs(move_point(self._base, lines.ways, step))
            if outputs is None:
                self._complex[j] = False
            elif all(is_complex(one.dtype) for one in outputs):
                return complex(sum(map(np.sum, map(np.multiply, problem.weights, outputs))))
            return None

        precision = self._precision
        of_reals = all(is_floating(one.dtype) for one in (*self._base, *problem.values))
        exact = complex_line if order == 1 and of_reals and precision < 1e-12 else None
        return Judge(line, problem.scales[j], precision, problem.rough, exact)

    def _has_complex_step(self, j: int, lines: Lines) -> bool:
        """Return whether the function may take complex values of source j, as far as is known."""
        if j not in self._complex:
            self._complex[j] = not lines.has_outside_code
        return self._complex[j]

    def _lines(self, order: int, j: int) -> Lines:
        """Return the lines along source j of all paths whose rows an order has."""
        paths = ("x", "both") if (order, "both") in self._gradients and order > 1 else ("x",)
        return self._along(order, j, self.problem.last[j], paths)

    def _along(self, order: int, j: int, way: np.ndarray, paths: tuple[str, ...]) -> Lines:
        ways: list = [None] * len(self._indices)
        ways[j] = way
        return Lines(self.problem, self._base, ways, order - 1, paths)

    def _x_rows(self, order: int, judges: list[Judge], native: list, wide: list) -> None:
        joint = self._gradients_of(order, "joint") if order > 1 else None
        if order > 1 and joint is None:
            return
        for j, judge in enumerate(judges):
            judge.known_false = wide[j] is None and self._is_known_false(j)
            label = (order, j, "x", "reverse")
            row = self._row(label, judge, self._directional(j, native, wide), self._again(order, j))
            if joint is not None and not row.false:
                again = self._again(order, j, "joint")
                other = self._row(label, judge, self._directional(j, *joint), again)
                if other.false:
                    row = other
                    row.detail = row.detail or "where a tape watches the upstream gradient"
            self.rows.append(row)
        if self.full:
            self._full_rows(order)

    def _is_known_false(self, j: int) -> bool:
        mine = [row for row in self.rows if row.argument == self.problem.sources[j].name]
        return any(row.verdict == verdicts.WRONG for row in mine)

    def _directional(self, j: int, *gradients: list) -> list[Product]:
        """Return the products of a source's direction with several gradients."""
        return [product(self.problem.last[j], one[j]) for one in gradients]

    def _again(self, order: int, j: int, path: str = "x") -> Callable:
        """Return a function that computes the derivative by source j once more."""
        arrays = functools.partial(self.problem.arrays, self._base, order, path)
        return lambda: self._directional(j, arrays())[0].number

    def _row(self, label: Label, judge: Judge, found: Sequence, again: Callable) -> DerivativeRow:
        """Return the row for a value in the arguments' precision and in the comparison's."""
        order, j, path, mode = label
        own, value = found
        shown, detail = value.value, ""
        if not math.isfinite(value.number):
            reference = judge.refine_reference()
            size = max(abs(reference.value), reference.size)
            known = math.isfinite(reference.value) and reference.error <= 1e-3 * size
            verdict = self._overflow(reference) if known else verdicts.INCONCLUSIVE
        else:
            verdict, reference = judge.verdict(value, again)
            before = [row for row in self.rows if row.order < order]
            if verdict == verdicts.WRONG and any(row.verdict == verdicts.KINK for row in before):
                verdict = verdicts.KINK  # of the order before
            if verdict == verdicts.KINK and judge.outside:
                detail = judge.outside
                if (
                    path == "x"
                    and self._is_outside(order, j, judge, value.number)
                    and not self._is_slope_nearby(order, j, value, judge)
                ):
                    verdict = verdicts.WRONG
            sure = verdict == verdicts.TRUE
            sure |= reference.error <= 1e-3 * reference.size and verdict == verdicts.INCONCLUSIVE
            if not math.isfinite(own.number) and sure:
                verdict, shown = self._overflow(reference), own.value
                detail = f"in {self.problem.point[j].dtype}; finite in float64"
        compared = (shown, reference.value, reference.error, reference.kind, verdict, detail)
        row = DerivativeRow(order, self.problem.sources[j].name, path, mode, *compared)
        row.rounding = judge.floor / self._precision_of(j)
        row.tolerance = SHARP if reference.kind == COMPLEX_STEP else tolerance(self._precision)
        lost = abs(own.number - value.number) > 0.01 * value.size
        if verdict == verdicts.TRUE and lost and mode == "reverse":
            if path == "x" and self._is_false_in_own_dtype(order, j, own, value):
                row.verdict, row.value = verdicts.WRONG, own.value
                row.detail = f"in {self.problem.point[j].dtype}; right in float64"
            else:
                self.inaccurate.append(row)
        return row

    def _is_slope_nearby(self, order: int, j: int, value: Product, judge: Judge) -> bool:
        """Return whether a value lies between slopes at points around this one.

        Where elements tie, in a sort say, these are more than the two slopes to both sides
        (the generalised gradient of Clarke, Optimization and Nonsmooth Analysis, 1983).
        """
        problem = self.problem
        generator = np.random.default_rng(order)
        small = self._precision**0.25
        ways: list = [None] * len(problem.sources)
        ways[j] = problem.last[j]
        step = small**2 * problem.scales[j]
        ends: list[Point] = []
        for _ in range(NEARBY):
            around = [
                np.asarray(one + small * scale * generator.uniform(-1.0, 1.0, one.shape), one.dtype)
                for one, scale in zip(self._base, problem.scales, strict=True)
            ]
            ends += [move_point(around, ways, sign * step) for sign in (1.0, -1.0)]
        few = measure_together(problem, ends[: 2 * FEW_NEARBY], order - 1, ("x",)) or []
        numbers = [one.number for (one,) in few]
        slopes = []
        for k in range(0, len(ends), 2):
            try:
                more = [problem.measure(one, order - 1) for one in ends[len(numbers) : k + 2]]
            except Exception:  # it is not defined there
                return False
            numbers += [one.number for one in more]
            slopes.append((numbers[k] - numbers[k + 1]) / (2 * step))
            low, high = min(slopes), max(slopes)
            margin = 10 * small * max(abs(low), abs(high))
            if low - margin <= value.number <= high + margin:
                return True
            gaps = [min(abs(one - side) for side in judge.ladder.slopes()) for one in slopes]
            if len(slopes) == FEW_NEARBY and max(gaps) <= margin:
                break
        return False

    def _is_outside(self, order: int, j: int, judge: Judge, number: float) -> bool:
        """Return whether a value is beyond the slopes to both sides, whatever subgradient it is.

        Asked of one element of one rule, whose kink is not a tie with other elements. What the
        derivative is the sum of may have kinks that partly cancel: each one has its own slopes.
        """
        problem = self.problem
        unit = problem.last[j] != 0
        if not self.problem.is_one_rule or np.count_nonzero(unit) > 1:
            return False
        ways: list = [None] * len(problem.sources)
        ways[j] = problem.last[j]

        def terms(step: float) -> np.ndarray:
            point = move_point(self._base, ways, step)
            one_less = problem.arrays(point, order - 1) if order > 1 else None
            arrays = problem.reference_outputs(point) if one_less is None else one_less
            weights = problem.weights if one_less is None else problem.ways[order - 1]
            pairs = zip(weights, arrays, strict=True)
            found = [np.real(np.conj(way) * one) for way, one in pairs if one is not None]
            return np.concatenate([one.ravel() for one in found])

        step = judge.ladder.step
        try:
            right, middle, left = terms(step), terms(0.0), terms(-step)
            slopes = (right - middle) / step, (middle - left) / step
        except ValueError:  # connected on one side only
            return False
        low, high = float(np.minimum(*slopes).sum()), float(np.maximum(*slopes).sum())
        margin = 0.05 * (high - low)
        if low - margin <= number <= high + margin:
            return False
        nearby = problem.nearby(np.random.default_rng(problem.values[0].size))
        if nearby is None:
            return False
        for points in ("point", "wide_point"):
            own, moved = getattr(problem, points)[j], getattr(nearby, points)[j]
            getattr(nearby, points)[j] = np.where(unit, own, moved)
        other = Orders(nearby, order, self.modes, False)
        other.recorders = self.recorders
        again = other._judge(order, j)
        again.refine_reference()
        pairs = zip(judge.ladder.slopes(), again.ladder.slopes(), strict=True)
        return again.ladder.has_kink() and all(abs(a - b) <= 0.3 * (high - low) for a, b in pairs)

    def _is_false_in_own_dtype(self, order: int, j: int, own: Product, value: Product) -> bool:
        """Return whether rounding cannot explain a value in the arguments' precision."""
        if abs(value.number) < 1e-30:
            return False  # it may underflow
        problem = self.problem

        def again() -> float:
            return self._directional(j, problem.arrays(problem.point, order))[0].number

        gap = abs(own.number - value.number)
        noise = noise_of(own.number, again, functools.partial(problem.rough, constants=True), gap)
        noise += noise_of(value.number, self._again(order, j), problem.rough, gap)
        return gap > 5 * noise + 100 * own.rounding

    def _overflow(self, reference: ReferenceValue) -> str:
        """Return a verdict for a non-finite value: whether the sources' dtypes could hold it."""
        largest = min(float(np.finfo(one.dtype).max) for one in self.problem.point)
        too_large = abs(reference.value) > 0.1 * largest
        return verdicts.INCONCLUSIVE if too_large else verdicts.NOT_FINITE

    # A closer look -------------------------------------------------------------------------

    def _look_closer(self) -> None:
        """Look at a second point where wrong rules may look right."""
        unclear = self._at_ties()
        sure = [row.order for row in self.rows if row.false and row not in unclear]
        order = min(sure) - 1 if sure else self.order  # the orders that look right
        if not order or not self._is_special():
            return
        generator = np.random.default_rng(self.problem.values[0].size)
        problem = self.problem.nearby(generator)
        if problem is None:
            return
        self.second = second = Orders(problem, order, self.modes, self.full)
        second.is_nearby = True
        try:
            second.run()
        except Exception:  # it is not defined there
            return
        point = ", ".join(
            f"{source.name} = {_text(value)}"
            for source, value in zip(problem.sources, problem.point, strict=True)
        )
        for row in second.rows:
            row.nearby = point

        def label(row: DerivativeRow) -> tuple:
            return row.order, row.argument, row.path, row.mode, row.index

        by_label = {label(row): row for row in second.rows}
        for row in self.rows:
            other = by_label.get(label(row))
            if other is not None and row.verdict in DOUBTFUL:
                row.detail += f"{'; ' if row.detail else ''}at a nearby point: {other.verdict}"
        false = [row for row in second.rows if row.false]
        self.rows += false
        known = {one.name for one in self.properties if one.holds is False}
        for one in second.properties:
            if one.holds is False and one.name not in known:
                self.properties.append(replace(one, detail=f"{one.detail}, at a nearby point"))
        for row in unclear if not (false or sure) else ():
            row.verdict, row.detail = verdicts.KINK, "at a nearby point: true"
        if false:
            self.errors.update(second.errors)

    def _at_ties(self) -> list[DerivativeRow]:
        """Return the false rows that may come of a kink by another argument or element.

        As in clip(x, a, a): the gradient by x at a may be 1, and a derivative is 0.
        """
        kinks = {row.order for row in self.rows if row.verdict == verdicts.KINK}
        return [
            row
            for row in self.rows
            if row.verdict == verdicts.WRONG
            and any(order <= row.order for order in kinks)
            and not row.detail.startswith("outside")
        ]

    def _is_special(self) -> bool:
        """Return whether the point is one where wrong rules may look right.

        A zero, an integer, a kink or an optimum, or where nothing can be said.
        """
        if self._has_zeros:
            return True
        for row in self.rows:
            if row.verdict in DOUBTFUL or abs(row.value or 0.0) <= row.rounding * self._precision:
                return True
        return any(bool(np.any(one == np.round(one))) for one in self.problem.point)

    def _has_zero(self, gradient: np.ndarray | None) -> bool:
        """Return whether a gradient is 0 by an element, as at an optimum."""
        sizes = np.abs(gradient) if gradient is not None else np.ones(1)
        return bool(np.any(sizes <= 16 * self._precision * sizes.max(initial=0.0)))

    def _compare_with_curvature(self) -> None:
        """Compare each order with the one before the last, whose gradient may be 0 here."""
        if "reverse" not in self.modes or self.problem.against is not None:
            return
        if not self._is_special():
            return
        for order in range(2, self.order + 1):
            rows = [row for row in self.rows if row.order <= order and row.path == "x"]
            is_complete = any(row.order == order for row in rows)
            fit = (verdicts.TRUE, verdicts.INCONCLUSIVE)
            if not is_complete or any(row.verdict not in fit for row in rows):
                return
            problem = self.problem
            self.rows += compare_curvature(problem, self._base, order, self._precision)

    def _look_at_parts(self) -> None:
        """Compare parts of the directions: elements at kinks, elements of different size."""
        problem = self.problem
        false = [row for row in self.rows if row.false]
        clear = [row.order for row in false if not row.relative_error <= 1e-6]
        orders = {row.order for row in self.rows if row.order < min(clear, default=math.inf)}
        for order in sorted(orders):
            gradients = self._gradients.get((order, "x"))
            found = gradients[1] if isinstance(gradients, tuple) else []
            for j in self._indices if found else ():
                parts = self._parts(order, j)
                judged = []
                lines = self._lines_of_parts(order, j, parts)
                for (part, scale), line in zip(parts, lines, strict=True):
                    last = [part if i == j else one for i, one in enumerate(problem.last)]
                    scales = [scale if i == j else one for i, one in enumerate(problem.scales)]
                    with problem.using(last=last, scales=scales):
                        judge, again = self._judge(order, j, "x", line), self._again(order, j)
                        along = self._directional(j, found, found)
                        row = self._row((order, j, "x", "reverse"), judge, along, again)
                    if np.count_nonzero(part) == 1:
                        row.index = tuple(int(axis[0]) for axis in np.nonzero(part))
                    judged.append(row)
                    if row.false:
                        row.detail = row.detail or "in a part of the elements"
                        self.rows.append(row)
                whole = sum(part for part, _ in parts)
                if judged and {row.verdict for row in judged} == {verdicts.TRUE}:
                    self._add_up(order, j, judged, np.asarray(whole))

    def _lines_of_parts(self, order: int, j: int, parts: list) -> list[Lines]:
        """Return the lines along parts, with the values of the first levels of each."""
        lines = [self._along(order, j, part, ("x",)) for part, _ in parts]
        is_single = all(np.count_nonzero(part) == 1 for part, _ in parts)  # at kinks
        levels = LEVELS if is_single else FIRST
        fetch(
            [
                (one, sign * first_step(scale, self._precision) * 0.5**level)
                for one, (_, scale) in zip(lines, parts, strict=True)
                for level in range(levels)
                for sign in (1, -1)
            ]
        )
        return lines

    def _add_up(self, order: int, j: int, judged: list[DerivativeRow], whole: np.ndarray) -> None:
        """Let rows of which nothing could be said be of the sum of parts that are true.

        One step for elements of very different size may see a kink that none of them has.
        """
        problem, name = self.problem, self.problem.sources[j].name
        if not whole.all():  # some elements are in none of the parts
            return
        value = sum(row.value or 0.0 for row in judged)
        reference = sum(row.reference for row in judged)
        uncertainty = sum(row.uncertainty for row in judged)
        rounding = sum(row.rounding for row in judged)
        for row in self.rows:
            mine = (row.order, row.argument, row.path, row.index) == (order, name, "x", None)
            if not mine or row.verdict not in (verdicts.KINK, verdicts.INCONCLUSIVE):
                continue
            found = value
            if row.mode == "forward":
                try:
                    with problem.using(last=[whole if i == j else None for i in self._indices]):
                        found = problem.tangent(self._base, order, j).number
                except NotLinearError:  # or so much rounded that it looks so
                    continue
            size = max(abs(value), abs(found))
            if abs(found - value) <= tolerance(self._precision) * size + rounding * self._precision:
                row.value, row.reference, row.uncertainty = found, reference, uncertainty
                row.rounding, row.kind = max(row.rounding, rounding), judged[0].kind
                row.verdict, row.detail = verdicts.TRUE, ""

    def _parts(self, order: int, j: int) -> list[tuple[np.ndarray, float]]:
        """Return the directions of parts that need steps of their own, and their scales."""
        value, way = self.problem.wide_point[j], self.problem.last[j]
        if not 1 < value.size <= MOST_PARTED:
            return []
        name = self.problem.sources[j].name
        kinks = [
            row
            for row in self.rows
            if (row.order, row.argument) == (order, name) and row.verdict in DOUBTFUL
        ]
        if kinks and value.size <= MOST_SINGLE:
            units = [unit[0] for unit, _, _ in _units([value])]
            return [(unit, _size_of(value[unit != 0])) for unit in units]
        sizes = np.abs(value)
        gradient = self.first[j] if self.first else None
        share = np.abs(way) * (1.0 if gradient is None else np.abs(gradient))
        keys = 100 * _classes(sizes, 3) + _classes(share, 4)
        found = np.unique(keys)
        if len(found) < 2:
            return []
        parts = []
        for key in found[:MOST_CLASSES]:
            mask = keys == key
            scale = _size_of(value[mask])
            own = np.sign(way) if np.isrealobj(way) else way / np.abs(way)
            inside = np.where(sizes[mask] > 0, sizes[mask], scale) / scale
            part = np.zeros_like(way)
            part[mask] = (own[mask] * inside).astype(self.problem.point[j].dtype)
            parts.append((part, scale))
        return parts

    # Other paths -----------------------------------------------------------------------------

    def _upstream_row(self, order: int) -> None:
        """Add the row of the upstream gradient, in which a gradient is linear."""
        joint = self._gradients[order, "joint"]
        if isinstance(joint, Exception) or not self._linear:
            return
        own, value = map(self._by_upstream, joint)
        exact = self._value_of(order - 1, "other") or self._with_upstream(order)
        reference = ReferenceValue(exact.number, 1e-12 * exact.size, LINEARITY, size=exact.size)
        shown = value.value
        if not math.isfinite(value.number):
            known = math.isfinite(reference.value)
            verdict, floor = verdicts.NOT_FINITE if known else verdicts.INCONCLUSIVE, 0.0
        else:
            floor = 100 * self._precision * max(value.size, exact.size)
            verdict = decide(value.number, reference, self._precision, floor)
            if verdict is None and value.value is None:
                verdict = verdicts.WRONG
            if verdict is None:

                def difference() -> float:
                    joint = self.problem.arrays(self._base, order, "joint")
                    return self._by_upstream(joint).number - self._with_upstream(order).number

                noise = self._noise(difference)
                reference = reference._replace(error=reference.error + noise)
                reference = reference.with_terms(noise, self._precision)
                floor += noise
                verdict = decide(value.number, reference, self._precision, floor) or verdicts.WRONG
        if verdict == verdicts.TRUE and not math.isfinite(own.number):
            verdict, shown = self._overflow(reference), own.value
        found = (shown, reference.value, reference.error, LINEARITY, verdict)
        row = DerivativeRow(order, "dy", "upstream", "reverse", *found)
        row.rounding, row.tolerance = floor / self._precision, tolerance(self._precision)
        self.rows.append(row)

    def _by_upstream(self, gradients: list) -> Product:
        """Return the derivative by the weights, along the direction for these."""
        return total(self.problem.second_weights, gradients[len(self.problem.sources) :])

    def _with_upstream(self, order: int) -> Product:
        """Return the derivative of the order before, with that direction for its upstream."""
        return self.problem.measure(self._base, order - 1, "other")

    def _noise(self, difference: Callable[[], float]) -> float:
        """Return how far a difference that should be 0 may be off by rounding."""
        number = difference()
        return noise_of(number, difference, self.problem.rough, abs(number))

    def _both_rows(self, order: int, lines: list[Lines]) -> None:
        """Add the derivatives of the squared outputs, where both paths meet."""
        found = self._gradients_of(order, "both")
        if found is None:
            return
        for j in self._indices:
            judge, again = self._judge(order, j, "both", lines[j]), self._again(order, j, "both")
            judge.known_false = self._is_known_false(j)
            along = self._directional(j, *found)
            self.rows.append(self._row((order, j, "both", "reverse"), judge, along, again))

    def _forward_rows(self, order: int, judges: list[Judge], gradients: list) -> None:
        problem = self.problem
        for j, judge in enumerate(judges):
            try:
                own = value = problem.tangent(self._base, order, j)
                if problem.has_two_dtypes:
                    with contextlib.suppress(*[NotLinearError] * self._linear):  # by rounding
                        own = problem.tangent(problem.point, order, j)
            except Exception as error:
                verdict = verdicts.FAILED
                if isinstance(error, NotLinearError):  # or so much rounded that it looks so
                    verdict = verdicts.INCONCLUSIVE if self._linear else verdicts.NOT_LINEAR
                self._add_failure(order, "x", "forward", error, verdict)
                return

            reverse = self._directional(j, gradients)[0].number

            def again(j: int = j, number: float = value.number, reverse: float = reverse) -> float:
                try:
                    return problem.tangent(self._base, order, j).number
                except NotLinearError:  # as rounded at random; reverse mode is rounded alike
                    return number + self._again(order, j)() - reverse

            self.rows.append(self._row((order, j, "x", "forward"), judge, (own, value), again))

    def _full_rows(self, order: int) -> None:
        """Compare every element of the derivative; add a row for each element that is not true.

        All elements by one input are compared at once; those that differ are looked at again.
        """
        problem = self.problem
        chosen = problem.weights if order == 1 else problem.ways[order - 1]
        units = [unit for unit, _, _ in _units(chosen)]
        given = [problem.ways[: order - 1], problem.ways[order:]]
        if order == 1:
            found = problem.pull_back(self._base, units)
        else:
            found = []
            for unit in track(units, f"check_gradients: derivatives of order {order}"):
                with problem.using(ways=[*given[0], unit, *given[1]]):
                    found.append(problem.arrays(self._base, order))
        doubts = self._doubts(order, found)
        known: set[tuple] = set()
        doubts = sorted(doubts, key=lambda one: -one[0])[:MOST_DOUBTS]
        for _, number, j, index in track(doubts, f"check_gradients: doubts of order {order}"):
            if (j, index) in known or len(known) >= MOST_SHOWN:
                continue
            last = [np.zeros(one.shape) for one in problem.last]
            last[j][index] = 1.0
            scales = list(problem.scales)
            scales[j] = _size_of(problem.wide_point[j][index]) or scales[j]
            unit = units[number]
            change: dict = {"last": last, "scales": scales}
            change |= {"weights": unit} if order == 1 else {"ways": [*given[0], unit, *given[1]]}
            with problem.using(**change):
                judge, again = self._judge(order, j, as_weighed=False), self._again(order, j)
                along = self._directional(j, found[number], found[number])
                row = self._row((order, j, "x", "reverse"), judge, along, again)
            row.index = index
            if row.verdict != verdicts.TRUE:
                known.add((j, index))
                self.rows.append(row)

    def _doubts(self, order: int, found: list) -> list[tuple[float, int, int, tuple]]:
        """Return where elements of the derivative may differ from differences, and how far.

        `found` has the gradients of each element of the order before.
        """
        problem, base, precision = self.problem, self._base, self._precision

        def elements(point: list) -> np.ndarray:
            at_first = problem.reference_outputs
            arrays = problem.arrays(point, order - 1) if order > 1 else at_first(point)
            pairs = zip(arrays, problem.point, strict=False) if order > 1 else ()
            if order > 1:
                arrays = [np.zeros(own.shape) if one is None else one for one, own in pairs]
            return np.concatenate([np.real(one).astype(np.float64).ravel() for one in arrays])

        middle, doubts = elements(base), []
        count = sum(one.size for one in problem.last)
        for unit, j, index in track(
            _units(problem.last), f"check_gradients: differences of order {order}", count
        ):
            scale = float(np.abs(base[j][index]))
            scale = scale if 0.0 < scale < np.inf else problem.scales[j]

            def line(step: float, unit: list = unit) -> np.ndarray:
                try:
                    return elements(move_point(base, unit, step))
                except Exception:  # it is not defined there
                    return np.full(middle.shape, np.nan)

            values = np.array([0.0 if one[j] is None else np.real(one[j][index]) for one in found])
            with np.errstate(all="ignore"):
                reference, error, noise = difference_all(line, middle, scale, precision)
                gap = np.abs(values - reference)
                size = np.maximum(np.abs(values), np.abs(reference))
                close = gap <= tolerance(precision) * size + 16 * precision * np.abs(values)
                natural = np.abs(middle) / scale
                close &= error <= 1e-3 * np.maximum(size, 0.01 * natural)
                close |= (gap <= 4 * noise) & (size <= 4 * noise)
                weight = np.nan_to_num(gap / np.maximum(size, noise), nan=np.inf)
            doubts += [(float(weight[i]), int(i), j, index) for i in np.flatnonzero(~close)]
        return doubts

    # Properties ------------------------------------------------------------------------------

    def _values_repeat(self) -> bool:
        """Return whether the function is the same when computed again, and keep its value."""
        problem = self.problem
        known = self.is_nearby or self.is_brief
        again = problem.base_values if known else problem.outputs(self._base)
        if _alike(problem.base_values, again):
            values = again if problem.against is None else problem.reference_outputs(self._base)
            self._value = total(problem.weights, values)
            return True
        words = (
            f"{problem.name} gives another value when it is called again: it draws random "
            "numbers, or keeps a state. Nothing can be said of its derivatives before that is "
            "fixed"
        )
        self.properties.append(Property(REPEATS, False, words))
        return False

    def _check_linearity(self) -> None:
        """Compare the gradient for a sum of upstreams with the sum of the gradients."""
        problem = self.problem
        sums = [b - a for a, b in zip(problem.weights, problem.others, strict=True)]
        upstreams = [problem.weights, sums, problem.others]
        precisions = [float(np.finfo(one.dtype).eps) for one in problem.point]
        is_wide = max([self._precision, *precisions]) < 1e-5
        factors = (1e-6, 1e6, 0.0) if is_wide else (0.5, 2.0, 0.0)  # float16 has few powers
        upstreams += [[factor * one for one in problem.weights] for factor in factors]

        def parts(j: int) -> list[Product]:
            return self._directional(j, *problem.pull_back(self._base, upstreams))

        def difference(j: int) -> float:
            one, other, both, *_ = [part.number for part in parts(j)]
            return one + other - both

        try:
            pulled = problem.pull_back(self._base, upstreams)
        except Exception:
            return
        agree = _alike(self.first, pulled[0])
        words = "" if agree else "the gradient is another when the rule runs again: it has a state"
        self.properties.append(Property(REPEATS, agree, words))
        for j, source in enumerate(problem.sources):
            one, other, both, *multiples = self._directional(j, *pulled)
            expected, got = one.number + other.number, both.number
            allowed = tolerance(self._precision) * max(one.size, other.size, both.size)
            allowed += 16 * max(one.rounding, other.rounding, both.rounding)
            if abs(expected - got) > allowed:
                allowed += self._noise(functools.partial(difference, j))
            if abs(expected - got) > allowed:
                self._linear = False
                found = (got, expected, 0.0, LINEARITY, verdicts.NOT_LINEAR)
                self.rows.append(DerivativeRow(1, source.name, "upstream", "reverse", *found))
            self._check_multiples(j, one, dict(zip(factors, multiples, strict=True)), parts)
        multiples = [row.detail for row in self.rows if row.verdict == verdicts.NOT_LINEAR]
        words = "" if self._linear else "two upstreams' gradients do not add up to that of the sum"
        words = next(filter(None, multiples), words)
        self.properties.append(Property("linear in the upstream", self._linear, words))

    def _check_multiples(
        self, j: int, one: Product, multiples: dict[float, Product], parts: Callable
    ) -> None:
        """Compare the gradients of multiples of an upstream with the multiples of its gradient."""
        if not self._linear or not math.isfinite(one.number):
            return
        for k, (factor, found) in enumerate(multiples.items()):
            expected, got = factor * one.number, found.number
            if not math.isfinite(got) and factor > 1.0:
                continue  # too large for its dtype
            size = max(factor * one.size, found.size)
            allowed = tolerance(self._precision) * size if factor else 0.0
            allowed += 1e-30 if self._precision > 1e-12 else 0.0  # numbers that underflow
            if abs(expected - got) <= allowed:
                continue

            def difference(factor: float = factor, k: int = k) -> float:
                found = parts(j)
                return factor * found[0].number - found[3 + k].number

            if math.isfinite(got) and abs(expected - got) <= allowed + self._noise(difference):
                continue
            self._linear = False
            words = f"for {factor:g} times the upstream" if factor else "for an upstream of zeros"
            found = (got, expected, 0.0, LINEARITY, verdicts.NOT_LINEAR, words)
            name = self.problem.sources[j].name
            self.rows.append(DerivativeRow(1, name, "upstream", "reverse", *found))
            return

    def _check_symmetry(self) -> None:
        """Compare a second derivative along two directions with that in the other order."""
        problem = self.problem
        one, other = self._value_of(2, "x"), self._value_of(2, "swapped")
        if one is None or other is None:
            return
        difference = abs(one.number - other.number)
        if not math.isfinite(difference):
            return
        holds = difference <= tolerance(self._precision) * max(one.size, other.size)
        if not holds and not any(row.verdict == verdicts.WRONG for row in self.rows):
            holds = difference <= self._noise(
                lambda: (
                    problem.measure(self._base, 2).number
                    - problem.measure(self._base, 2, "swapped").number
                )
            )
        if not holds and any(row.verdict in DOUBTFUL for row in self.rows):
            return  # they need not be symmetric where they have no limits
        words = f"{one.number:.6g} in one order, {other.number:.6g} in the other"
        name = "second derivatives are symmetric"
        self.properties.append(Property(name, holds, "" if holds else words))

    def _look_at_shapes(self) -> None:
        """Add the property that gradients did not have to be adapted to their inputs."""
        if any("reverse" in key for key in self.errors):
            return
        adapted = [words for one in self.recorders.values() for words in one.adapted]
        detail = adapted[0] if adapted else ""
        self.properties.append(Property("shapes and dtypes fit", None if adapted else True, detail))

    def _compare_modes(self) -> None:
        """Compare forward mode with reverse mode, from the rows."""
        for order, name in ((1, "forward mode is the adjoint"), (2, "forward over reverse agrees")):
            finite = [
                row
                for row in self.rows
                if math.isfinite(row.value or 0.0) and (row.order, "x", row.mode) not in self.errors
            ]
            sure = [row for row in finite if order == 1 or row.verdict in SURE]
            rows = [row for row in sure if (row.order, row.path, row.index) == (order, "x", None)]
            pairs = [
                (row, other)
                for row in rows
                for other in rows
                if (row.mode, other.mode, row.argument) == ("reverse", "forward", other.argument)
            ]
            names, words = [source.name for source in self.problem.sources], []
            for row, other in pairs:
                one, two = row.value or 0.0, other.value or 0.0
                allowed = tolerance(self._precision) * max(abs(one), abs(two))
                rounding = max(row.rounding, other.rounding)
                allowed += rounding * self._precision_of(names.index(row.argument))
                is_true = verdicts.TRUE == row.verdict == other.verdict
                if abs(one - two) > allowed and not is_true:
                    words.append(f"by {row.argument} {one:.6g} in reverse, {two:.6g} forward")
            if pairs:
                self.properties.append(Property(name, not words, "; ".join(words)))


def _classes(sizes: np.ndarray, decades: int) -> np.ndarray:
    """Return for each size how many times `decades` powers of ten below the largest it is."""
    largest = float(sizes[np.isfinite(sizes)].max(initial=0.0))
    with np.errstate(all="ignore"):
        below = np.floor(-np.log10(sizes / largest) / decades) if largest else 0.0 * sizes
    return np.clip(np.nan_to_num(below, nan=0.0, posinf=0.0, neginf=0.0), 0, 9).astype(int)


def _size_of(values: np.ndarray) -> float:
    """Return the largest finite magnitude; 1 for zeros."""
    return _norm(values) or 1.0


def _text(value: np.ndarray) -> str:
    """Return a value in words that are short for arrays, too."""
    words = np.array2string(value, precision=4, threshold=8, edgeitems=2, separator=", ")
    return " ".join(words.split())


def _units(like: Sequence[np.ndarray]) -> Iterator[tuple[list[np.ndarray], int, tuple]]:
    """Yield a direction along each element of the arrays, with the element's two indices."""
    for j, one in enumerate(like):
        for index in np.ndindex(one.shape):
            unit = [np.zeros(other.shape) for other in like]
            unit[j][index] = 1.0
            yield unit, j, index


def _alike(ones: Sequence, others: Sequence) -> bool:
    """Return whether arrays agree up to the error of an iterative solution, say."""
    return all(
        (one is None) == (other is None)
        and (one is None or np.allclose(one, other, 1e-6, 1e-6 * _norm(other), equal_nan=True))
        for one, other in zip(ones, others, strict=True)
    )


def _norm(array: np.ndarray) -> float:
    """Return the largest finite magnitude."""
    return float(np.abs(array[np.isfinite(array)]).max(initial=0.0))
