"""Rows of a check: verdicts on derivatives, along one direction for each argument."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from ..errors import NotLinearError
from . import verdicts
from .check import Check, Label
from .judges import is_known_false, judge_of, noise_of_difference, products_along, recomputation
from .kinks import is_outside, is_slope_nearby
from .lines import Lines
from .problem import Product, total
from .reference import COMPLEX_STEP, LINEARITY, ReferenceValue
from .verdicts import SHARP, DerivativeRow, Judge, decide, noise_of, tolerance


def row_of(
    check: Check, label: Label, judge: Judge, products: Sequence, again: Callable
) -> DerivativeRow:
    """Return the row for a value in the arguments' precision and in the comparison's."""
    order, j, path, mode = label
    own, value = products
    shown, detail = value.value, ""
    if not math.isfinite(value.number):
        reference = judge.refine_reference()
        size = max(abs(reference.value), reference.size)
        is_sharp = math.isfinite(reference.value) and reference.error <= 1e-3 * size
        verdict = _overflow(check, reference) if is_sharp else verdicts.INCONCLUSIVE
    else:
        verdict, reference = judge.verdict(value, again)
        before = [row for row in check.rows if row.order < order]
        if verdict == verdicts.WRONG and any(row.verdict == verdicts.KINK for row in before):
            verdict = verdicts.KINK  # of the order before
        if verdict == verdicts.KINK and judge.outside:
            detail = judge.outside
            if (
                path == "x"
                and is_outside(check, order, j, judge, value.number)
                and not is_slope_nearby(check, order, j, value, judge)
            ):
                verdict = verdicts.WRONG
        sure = verdict == verdicts.TRUE
        sure |= reference.error <= 1e-3 * reference.size and verdict == verdicts.INCONCLUSIVE
        if not math.isfinite(own.number) and sure:
            verdict, shown = _overflow(check, reference), own.value
            detail = f"in {check.problem.point[j].dtype}; finite in float64"
    compared = (shown, reference.value, reference.error, reference.kind, verdict, detail)
    row = DerivativeRow(order, check.problem.sources[j].name, path, mode, *compared)
    row.rounding = judge.floor / check.precision_of(j)
    row.tolerance = SHARP if reference.kind == COMPLEX_STEP else tolerance(check.precision)
    lost = abs(own.number - value.number) > 0.01 * value.size
    if verdict == verdicts.TRUE and lost and mode == "reverse":
        if path == "x" and _is_false_in_own_dtype(check, order, j, own, value):
            row.verdict, row.value = verdicts.WRONG, own.value
            row.detail = f"in {check.problem.point[j].dtype}; right in float64"
        else:
            check.inaccurate.append(row)
    return row


def _is_false_in_own_dtype(check: Check, order: int, j: int, own: Product, value: Product) -> bool:
    """Return whether rounding cannot explain a value in the arguments' precision."""
    if abs(value.number) < 1e-30:
        return False  # it may underflow
    problem = check.problem

    def again() -> float:
        return products_along(check, j, problem.arrays(problem.point, order))[0].number

    gap = abs(own.number - value.number)
    noise = noise_of(own.number, again, functools.partial(problem.rough, constants=True), gap)
    noise += noise_of(value.number, recomputation(check, order, j), problem.rough, gap)
    return gap > 5 * noise + 100 * own.rounding


def _overflow(check: Check, reference: ReferenceValue) -> str:
    """Return a verdict for a non-finite value: whether the sources' dtypes could hold it."""
    largest = min(float(np.finfo(value.dtype).max) for value in check.problem.point)
    too_large = abs(reference.value) > 0.1 * largest
    return verdicts.INCONCLUSIVE if too_large else verdicts.NOT_FINITE


def x_rows(check: Check, order: int, judges: list[Judge], native: list, wide: list) -> bool:
    """Add the rows of the gradients by each source; return whether there are any."""
    joint = check.gradients_of(order, "joint") if order > 1 else None
    if order > 1 and joint is None:
        return False
    for j, judge in enumerate(judges):
        judge.known_false = wide[j] is None and is_known_false(check, j)
        label = (order, j, "x", "reverse")
        row = row_of(
            check,
            label,
            judge,
            products_along(check, j, native, wide),
            recomputation(check, order, j),
        )
        if joint is not None and not row.false:
            again = recomputation(check, order, j, "joint")
            other = row_of(check, label, judge, products_along(check, j, *joint), again)
            if other.false:
                row = other
                row.detail = row.detail or "where a tape watches the upstream gradient"
        check.rows.append(row)
    return True


def upstream_row(check: Check, order: int) -> None:
    """Add the row of the upstream gradient, in which a gradient is linear."""
    joint = check.gradients[order, "joint"]
    if isinstance(joint, Exception) or not check.is_linear:
        return
    own, value = map(functools.partial(_by_upstream, check), joint)
    exact = check.value_of(order - 1, "other") or _with_upstream(check, order)
    reference = ReferenceValue(exact.number, 1e-12 * exact.size, LINEARITY, size=exact.size)
    shown = value.value
    if not math.isfinite(value.number):
        is_known = math.isfinite(reference.value)
        verdict, floor = verdicts.NOT_FINITE if is_known else verdicts.INCONCLUSIVE, 0.0
    else:
        floor = 100 * check.precision * max(value.size, exact.size)
        verdict = decide(value.number, reference, check.precision, floor)
        if verdict is None and value.value is None:
            verdict = verdicts.WRONG
        if verdict is None:

            def difference() -> float:
                joint = check.problem.arrays(check.base, order, "joint")
                return _by_upstream(check, joint).number - _with_upstream(check, order).number

            noise = noise_of_difference(check, difference)
            reference = reference._replace(error=reference.error + noise)
            reference = reference.with_terms(noise, check.precision)
            floor += noise
            verdict = decide(value.number, reference, check.precision, floor) or verdicts.WRONG
    if verdict == verdicts.TRUE and not math.isfinite(own.number):
        verdict, shown = _overflow(check, reference), own.value
    comparison = (shown, reference.value, reference.error, LINEARITY, verdict)
    row = DerivativeRow(order, "dy", "upstream", "reverse", *comparison)
    row.rounding, row.tolerance = floor / check.precision, tolerance(check.precision)
    check.rows.append(row)


def _by_upstream(check: Check, gradients: list) -> Product:
    """Return the derivative by the weights, along the direction for these."""
    return total(check.problem.second_weights, gradients[len(check.problem.sources) :])


def _with_upstream(check: Check, order: int) -> Product:
    """Return the derivative of the order before, with that direction for its upstream."""
    return check.problem.measure(check.base, order - 1, "other")


def both_rows(check: Check, order: int, lines: list[Lines]) -> None:
    """Add the derivatives of the squared outputs, where both paths meet."""
    gradients = check.gradients_of(order, "both")
    if gradients is None:
        return
    for j in check.indices:
        judge, again = (
            judge_of(check, order, j, "both", lines[j]),
            recomputation(check, order, j, "both"),
        )
        judge.known_false = is_known_false(check, j)
        along = products_along(check, j, *gradients)
        check.rows.append(row_of(check, (order, j, "both", "reverse"), judge, along, again))


def forward_rows(check: Check, order: int, judges: list[Judge], gradients: list) -> None:
    problem = check.problem
    for j, judge in enumerate(judges):
        try:
            own = value = problem.tangent(check.base, order, j)
            if problem.has_two_dtypes:
                with contextlib.suppress(*[NotLinearError] * check.is_linear):  # by rounding
                    own = problem.tangent(problem.point, order, j)
        except Exception as error:
            verdict = verdicts.FAILED
            if isinstance(error, NotLinearError):  # or so much rounded that it looks so
                verdict = verdicts.INCONCLUSIVE if check.is_linear else verdicts.NOT_LINEAR
            check.add_failure(order, "x", "forward", error, verdict)
            return

        reverse = products_along(check, j, gradients)[0].number

        def again(j: int = j, number: float = value.number, reverse: float = reverse) -> float:
            try:
                return problem.tangent(check.base, order, j).number
            except NotLinearError:  # as rounded at random; reverse mode is rounded alike
                return number + recomputation(check, order, j)() - reverse

        check.rows.append(row_of(check, (order, j, "x", "forward"), judge, (own, value), again))
