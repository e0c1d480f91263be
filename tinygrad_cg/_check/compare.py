"""The comparison of derivatives, order by order, at one or two points."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

import numpy as np

from . import verdicts
from .check import DOUBTFUL, Check, differentiate
from .curvature import compare_curvature
from .elementwise_rows import add_full_rows, compare_hidden, compare_parts
from .judges import first_steps, judge_of, lines_of
from .lines import fetch
from .properties import (
    check_linearity,
    check_symmetry,
    compare_modes,
    look_at_shapes,
    values_repeat,
)
from .reference import FIRST
from .rows import add_both_rows, add_forward_rows, add_upstream_row, add_x_rows
from .setup import nearby_problem
from .verdicts import DerivativeRow


def run_check(check: Check) -> None:
    """Fill in the rows and the properties of a check."""
    if check.is_brief and "reverse" in check.modes:
        check.modes = ("reverse",)
    if not values_repeat(check):
        return
    for order in range(1, check.order + 1):
        if not _one_order(check, order):
            break
    if not check.repeats:
        return
    look_at_shapes(check)
    compare_modes(check)
    if "reverse" in check.modes:
        if not check.is_brief:
            compare_parts(check)
        if not check.is_brief or check.has_hidden:
            compare_hidden(check)
    if not (check.is_brief or check.is_nearby):
        _look_closer(check)
        _compare_with_curvature(check)


def _one_order(check: Check, order: int) -> bool:
    """Add the rows of an order; return whether to compute higher orders."""
    differentiate(check, order)
    gradients = check.gradients_of(order, "x")
    if gradients is None:
        return False
    check.has_zeros |= any(_has_zero(check, gradient) for gradient in gradients[1])
    if order == 1:
        check_linearity(check)
        if not check.repeats:
            return False
    lines = [lines_of(check, order, j) for j in check.indices]
    if check.is_brief and (order > 1 or check.complex_sources):
        fetch(first_steps(check, lines, check.problem.scales, FIRST))
    judges = [judge_of(check, order, j, "x", lines[j]) for j in check.indices]
    if "reverse" in check.modes:
        if add_x_rows(check, order, judges, *gradients) and check.full:
            add_full_rows(check, order)
        if order > 1:
            add_upstream_row(check, order)
            if not check.is_brief:
                add_both_rows(check, order, lines)
    if "forward" in check.modes:
        add_forward_rows(check, order, judges, gradients[1])
    if order == 2 and "reverse" in check.modes and not check.is_brief:
        check_symmetry(check)
    return not (check.is_brief and any(row.false for row in check.rows if row.order >= check.since))


def _look_closer(check: Check) -> None:
    """Check a second point if the first one is where wrong rules may look right."""
    unclear = _at_ties(check)
    sure = [row.order for row in check.rows if row.false and row not in unclear]
    order = min(sure) - 1 if sure else check.order  # the orders that look right
    if not order or not _is_special(check):
        return
    problem = nearby_problem(check.problem, np.random.default_rng(check.problem.values[0].size))
    if problem is None:
        return
    check.second = second = Check(problem, order, check.modes, check.full, is_nearby=True)
    try:
        run_check(second)
    except Exception:  # it is not defined there
        return
    point = ", ".join(map("{} = {}".format, check.names, map(_text, problem.point)))
    for row in second.rows:
        row.nearby = point
    label = attrgetter("order", "argument", "path", "mode", "index")
    by_label = {label(row): row for row in second.rows}
    for row in check.rows:
        other = by_label.get(label(row))
        if other is not None and row.verdict in DOUBTFUL:
            row.detail += f"{'; ' if row.detail else ''}at a nearby point: {other.verdict}"
    false = [row for row in second.rows if row.false]
    check.rows += false
    failed = {prop.name for prop in check.properties if prop.holds is False}
    for prop in second.properties:
        if prop.holds is False and prop.name not in failed:
            check.properties.append(replace(prop, detail=f"{prop.detail}, at a nearby point"))
    for row in unclear if not (false or sure) else ():
        row.verdict, row.detail = verdicts.KINK, "at a nearby point: ok"
    if false:
        check.errors.update(second.errors)


def _at_ties(check: Check) -> list[DerivativeRow]:
    """Return the wrong rows that a kink of another argument or element may explain.

    As in clip(x, a, a): the gradient by x at a may be 1, and a derivative is 0.
    """
    kinks = {row.order for row in check.rows if row.verdict == verdicts.KINK}
    return [
        row
        for row in check.rows
        if row.verdict == verdicts.WRONG
        and any(order <= row.order for order in kinks)
        and not row.detail.startswith(verdicts.OUTSIDE)
    ]


def _is_special(check: Check) -> bool:
    """Return whether wrong rules may look right at this point.

    At a zero, an integer, a kink or an optimum, or where the check is inconclusive.
    """
    if check.has_zeros:
        return True
    for row in check.rows:
        if row.verdict in DOUBTFUL or abs(row.value or 0.0) <= row.rounding * check.precision:
            return True
    return any(bool(np.any(value == np.round(value))) for value in check.problem.point)


def _has_zero(check: Check, gradient: np.ndarray | None) -> bool:
    """Return whether an element of a gradient is 0, as at an optimum."""
    sizes = np.abs(gradient) if gradient is not None else np.ones(1)
    return bool(np.any(sizes <= 16 * check.precision * sizes.max(initial=0.0)))


def _compare_with_curvature(check: Check) -> None:
    """Compare each order k with order k - 2, in case the gradient of order k - 1 is 0 here."""
    if "reverse" not in check.modes or check.problem.against is not None or not _is_special(check):
        return
    for order in range(2, check.order + 1):
        rows = [row for row in check.rows if row.order <= order and row.path == "x"]
        is_complete = any(row.order == order for row in rows)
        fit = (verdicts.TRUE, verdicts.INCONCLUSIVE)
        if not is_complete or any(row.verdict not in fit for row in rows):
            return
        check.rows += compare_curvature(check.problem, check.base, order, check.precision)


def _text(value: np.ndarray) -> str:
    words = np.array2string(value, precision=4, threshold=8, edgeitems=2, separator=", ")
    return " ".join(words.split())
