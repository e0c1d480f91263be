"""Rows of a check: verdicts on derivatives along one direction of each argument."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence

import numpy as np

from ..errors import NotLinearError
from . import evaluate, verdicts
from .check import Check, Label
from .evaluate import total
from .judges import is_known_wrong, judge_of, noise_of_difference, products_along, recomputed
from .kinks import is_outside, is_slope_nearby
from .lines import Lines
from .problem import InnerProduct, Point, largest
from .reference import COMPLEX_STEP, LINEARITY, ReferenceValue
from .verdicts import SHARP, DerivativeRow, Judge, decide, noise_of, tolerance

# One row -------------------------------------------------------------------------------------


def reverse_row(
    check: Check, order: int, j: int, path: str, judge: Judge, *gradients: list, again: str = ""
) -> DerivativeRow:
    """Return the row of gradients of reverse mode: in two precisions, or those of a part."""
    native, wide = gradients if len(gradients) == 2 else gradients * 2
    label = (order, j, path, "reverse")
    products = products_along(check, j, native, wide)
    return row_of(check, label, judge, products, recomputed(check, order, j, again or path))


def row_of(
    check: Check, label: Label, judge: Judge, products: Sequence, again: Callable
) -> DerivativeRow:
    """Return the row of a value in the arguments' precision and in that of the comparison."""
    order, j, path, mode = label
    own, value = products
    shown, detail = value.value, ""
    if not math.isfinite(value.number):
        reference = judge.refine_reference()
        size = max(abs(reference.value), reference.size)
        is_sharp = math.isfinite(reference.value) and reference.error <= 1e-3 * size
        verdict = verdicts.KINK if reference.kink else verdicts.INCONCLUSIVE
        if is_sharp:
            verdict, detail = _overflow(check, reference, path)
    else:
        verdict, reference = judge.verdict(value, again)
        if verdict == verdicts.WRONG and _is_rounded(check, label, value, reference):
            verdict = verdicts.TRUE
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
        is_sure = verdict == verdicts.TRUE
        is_sure |= reference.error <= 1e-3 * reference.size and verdict == verdicts.INCONCLUSIVE
        if not math.isfinite(own.number) and is_sure:
            if verdict == verdicts.TRUE:  # as exact as the reference, or more
                reference = reference._replace(value=value.number)
            verdict, detail = _overflow(check, reference, path)
            shown, detail = own.value, detail or f"in {_narrowest(check).dtype}; finite in float64"
    if verdict == verdicts.WRONG and abs(reference.value) <= reference.error:
        reference = reference._replace(value=0.0)
    if verdict == verdicts.INCONCLUSIVE and math.isfinite(value.number):
        gap = abs(value.number - reference.value)  # rounding or another branch may explain it
        reference = reference._replace(error=max(reference.error, gap))
    compared = (shown, reference.value, reference.error, reference.kind, verdict, detail)
    row = DerivativeRow(order, check.names[j], path, mode, *compared)
    row.rounding = judge.floor / check.precision_of(j)
    row.tolerance = SHARP if reference.kind == COMPLEX_STEP else tolerance(check.precision)
    if (path, mode) == ("x", "reverse"):
        _judge_own_dtype(
            check, row, own, value, lambda arrays: products_along(check, j, arrays)[0].number
        )
    return row


def _is_rounded(check: Check, label: Label, value: InnerProduct, reference: ReferenceValue) -> bool:
    """Return whether the error of a value is rounding outside of tensors: NumPy code in float32.

    For arguments of float64 it is an error: the rule loses half of their digits. Such rounding is
    within some units of the last place, or it differs from point to point, and with the size of the
    upstream gradient; the error of a rule does not.
    """
    problem, (order, j, path, _) = check.problem, label
    gap, unit = abs(value.number - reference.value), float(np.finfo(np.float32).eps)
    if value.value is None or check.precision_of(j) < unit or not gap <= 1e-3 * value.norm:
        return False
    if gap <= 2 * unit * value.norm:
        return True
    numbers, jump = [], gap
    for k, factor in enumerate(np.random.default_rng(0).uniform(1.0, 2.0, 9)):
        point = [value * value.dtype.type(1.0 + 1e-5 * k) for value in check.base]
        with evaluate.using(problem, weights=[factor * weight for weight in problem.weights]):
            arrays = evaluate.arrays(problem, point, order, path)
        numbers.append(products_along(check, j, arrays)[0].number / factor)
        if k > 2:
            jump = float(np.sqrt(np.mean(np.diff(numbers, 3) ** 2) / 20))
        if gap > 1000 * jump:
            return False
    return gap <= 5 * jump


def _judge_own_dtype(
    check: Check, row: DerivativeRow, own: InnerProduct, value: InnerProduct, number_of: Callable
) -> None:
    """Change the verdict on a right row if the value in the arguments' precision is wrong.

    It is wrong if rounding cannot explain it; otherwise it loses digits, and a remark says so once,
    also where the reference is inconclusive: an upstream row has the value of the row of `x` at the
    order before. `number_of` takes the gradients' arrays.
    """
    gap = abs(own.number - value.number)
    if gap <= 0.01 * value.size or row.verdict not in (verdicts.TRUE, verdicts.INCONCLUSIVE):
        return
    problem = check.problem
    path = "joint" if row.path == "upstream" else row.path

    def noise(number: float, point: Point, **options: bool) -> float:
        def again() -> float:
            return number_of(evaluate.arrays(problem, point, row.order, path))

        return noise_of(problem, number, again, gap, **options)

    underflows = abs(value.number) < 1e-30
    if underflows or gap <= 100 * own.rounding + 5 * (
        noise(own.number, problem.point, constants=True) + noise(value.number, check.base)
    ):
        dtype = str(_narrowest(check).dtype)
        check.inaccurate += [(row, dtype, own.number, value.number)] * (row.path == "x")
    elif row.verdict == verdicts.TRUE:
        row.verdict, row.value, row.reference = verdicts.WRONG, own.value, value.number
        row.detail = f"in {_narrowest(check).dtype}, right in float64"


def _narrowest(check: Check) -> np.finfo:
    return min((np.finfo(value.dtype) for value in check.problem.point), key=lambda info: info.max)


def _overflow(check: Check, reference: ReferenceValue, path: str) -> tuple[str, str]:
    """Return the verdict on a value that is not finite: wrong if the dtypes hold it; and why.

    On the path "both" they must hold the outputs' squares, too.
    """
    info, size = _narrowest(check), abs(reference.value)
    if path == "both":
        size = max(size, *(largest(output) ** 2 for output in check.problem.base_values))
    if size > 0.1 * float(info.max):
        return verdicts.INCONCLUSIVE, f"too large for {info.dtype}"
    return verdicts.NOT_FINITE, ""


# The rows of an order ------------------------------------------------------------------------


def add_x_rows(check: Check, order: int, judges: list[Judge], native: list, wide: list) -> bool:
    """Add the rows of the gradients by each source; return whether there are any."""
    joint = check.gradients_of(order, "joint") if order > 1 else None
    if order > 1 and joint is None:
        return False
    for j, judge in enumerate(judges):
        judge.known_wrong = wide[j] is None and is_known_wrong(check, j)
        row = reverse_row(check, order, j, "x", judge, native, wide)
        if joint is not None and not row.false:
            other = reverse_row(check, order, j, "x", judge, *joint, again="joint")
            if other.false:
                row = other
                row.detail = row.detail or "where a tape watches the upstream gradient"
        check.rows.append(row)
    return True


def add_upstream_row(check: Check, order: int) -> None:
    """Add the row of the upstream gradient, in which a gradient is linear."""
    problem, joint = check.problem, check.gradients.get((order, "joint"))
    if joint is None or not check.is_linear:
        return

    def by_upstream(gradients: list) -> InnerProduct:
        return total(problem.second_weights, gradients[len(problem.sources) :])

    def with_upstream() -> InnerProduct:
        return evaluate.measure(problem, check.base, order - 1, ("other",))[0]

    own, value = map(by_upstream, joint)
    exact = check.value_of(order - 1, "other") or with_upstream()
    reference = ReferenceValue(exact.number, 1e-12 * exact.size, LINEARITY, size=exact.size)
    shown, floor = value.value, 0.0
    if not math.isfinite(value.number):
        is_known = math.isfinite(reference.value)
        verdict = verdicts.NOT_FINITE if is_known else verdicts.INCONCLUSIVE
    else:
        floor = 100 * check.precision * max(value.size, exact.size)
        verdict = decide(value.number, reference, check.precision, floor, check.whole)
        if verdict is None and value.value is None:
            verdict = verdicts.WRONG
        if verdict is None:

            def difference() -> float:
                gradients = evaluate.arrays(problem, check.base, order, "joint")
                return by_upstream(gradients).number - with_upstream().number

            noise = noise_of_difference(check, difference)
            reference = reference._replace(error=reference.error + noise)
            reference = reference.with_terms(noise, check.precision)
            floor += noise
            verdict = decide(value.number, reference, check.precision, floor, check.whole)
            verdict = verdict or verdicts.WRONG
    detail = ""
    if verdict == verdicts.TRUE and not math.isfinite(own.number):
        (verdict, detail), shown = _overflow(check, reference, "upstream"), own.value
    comparison = (shown, reference.value, reference.error, LINEARITY, verdict, detail)
    row = DerivativeRow(order, "dy", "upstream", "reverse", *comparison)
    row.rounding, row.tolerance = floor / check.precision, tolerance(check.precision)
    _judge_own_dtype(check, row, own, value, lambda arrays: by_upstream(arrays).number)
    check.rows.append(row)


def add_both_rows(check: Check, order: int, lines: list[Lines]) -> None:
    """Add the derivatives of the squared outputs, where both paths meet."""
    gradients = check.gradients_of(order, "both")
    for j in check.indices if gradients is not None else ():
        judge = judge_of(check, order, j, "both", lines[j])
        judge.known_wrong = is_known_wrong(check, j)
        check.rows.append(reverse_row(check, order, j, "both", judge, *(gradients or ())))


def add_forward_rows(check: Check, order: int, judges: list[Judge], gradients: list) -> None:
    """Add the rows of forward mode over reverse mode."""
    problem = check.problem
    for j, judge in enumerate(judges):
        try:
            own = value = evaluate.tangent(problem, check.base, order, j)
            if problem.has_two_dtypes:
                with contextlib.suppress(*[NotLinearError] * check.is_linear):  # by rounding
                    own = evaluate.tangent(problem, problem.point, order, j)
        except Exception as error:
            verdict = verdicts.FAILED
            if isinstance(error, NotLinearError):  # perhaps by rounding alone
                verdict = verdicts.INCONCLUSIVE if check.is_linear else verdicts.NOT_LINEAR
            check.add_failure(order, "x", "forward", error, verdict)
            return

        reverse = products_along(check, j, gradients)[0].number

        def again(j: int = j, number: float = value.number, reverse: float = reverse) -> float:
            try:
                return evaluate.tangent(problem, check.base, order, j).number
            except NotLinearError:  # when rounded at random; reverse mode is rounded alike
                return number + recomputed(check, order, j)() - reverse

        check.rows.append(row_of(check, (order, j, "x", "forward"), judge, (own, value), again))
