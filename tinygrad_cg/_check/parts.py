"""Rows of parts: elements at kinks, and elements of very different size."""

from __future__ import annotations

import math

import numpy as np

from ..errors import NotLinearError
from . import verdicts
from .check import DOUBTFUL, Check, size_of, unit_directions
from .judges import first_steps, judge_of, lines_along, products_along, recomputation
from .lines import Lines, fetch
from .reference import FIRST, LEVELS
from .rows import row_of
from .verdicts import DerivativeRow, tolerance

MOST_PARTED = 10_000  # elements of which parts are looked at
MOST_SINGLE = 64  # elements that are looked at one by one
MOST_CLASSES = 8  # parts by size


def look_at_parts(check: Check) -> None:
    """Compare parts of the directions: elements at kinks, elements of different size."""
    problem = check.problem
    false = [row for row in check.rows if row.false]
    clear = [row.order for row in false if not row.relative_error <= 1e-6]
    orders = {row.order for row in check.rows if row.order < min(clear, default=math.inf)}
    for order in sorted(orders):
        gradients = check.gradients.get((order, "x"))
        wide = gradients[1] if isinstance(gradients, tuple) else []
        for j in check.indices if wide else ():
            parts = _parts_of(check, order, j)
            judged = []
            lines = _lines_of_parts(check, order, j, parts)
            for (part, scale), line in zip(parts, lines, strict=True):
                last = [part if i == j else way for i, way in enumerate(problem.last)]
                scales = [scale if i == j else other for i, other in enumerate(problem.scales)]
                with problem.using(last=last, scales=scales):
                    judge, again = (
                        judge_of(check, order, j, "x", line),
                        recomputation(check, order, j),
                    )
                    along = products_along(check, j, wide, wide)
                    row = row_of(check, (order, j, "x", "reverse"), judge, along, again)
                if np.count_nonzero(part) == 1:
                    row.index = tuple(int(axis[0]) for axis in np.nonzero(part))
                judged.append(row)
                if row.false:
                    row.detail = row.detail or "in a part of the elements"
                    check.rows.append(row)
            whole = sum(part for part, _ in parts)
            if judged and {row.verdict for row in judged} == {verdicts.TRUE}:
                _add_up(check, order, j, judged, np.asarray(whole))


def _lines_of_parts(check: Check, order: int, j: int, parts: list) -> list[Lines]:
    """Return the lines along parts, with the values of the first levels of each."""
    lines = [lines_along(check, order, j, part, ("x",)) for part, _ in parts]
    is_single = all(np.count_nonzero(part) == 1 for part, _ in parts)  # at kinks
    levels = LEVELS if is_single else FIRST
    fetch(first_steps(check, lines, [scale for _, scale in parts], levels))
    return lines


def _add_up(
    check: Check, order: int, j: int, judged: list[DerivativeRow], whole: np.ndarray
) -> None:
    """Let rows of which nothing could be said be of the sum of parts that are true.

    One step for elements of very different size may see a kink that none of them has.
    """
    problem, name = check.problem, check.problem.sources[j].name
    if not whole.all():  # some elements are in none of the parts
        return
    value = sum(row.value or 0.0 for row in judged)
    reference = sum(row.reference for row in judged)
    uncertainty = sum(row.uncertainty for row in judged)
    rounding = sum(row.rounding for row in judged)
    for row in check.rows:
        mine = (row.order, row.argument, row.path, row.index) == (order, name, "x", None)
        if not mine or row.verdict not in (verdicts.KINK, verdicts.INCONCLUSIVE):
            continue
        derivative = value
        if row.mode == "forward":
            try:
                with problem.using(last=[whole if i == j else None for i in check.indices]):
                    derivative = problem.tangent(check.base, order, j).number
            except NotLinearError:  # or so much rounded that it looks so
                continue
        size = max(abs(value), abs(derivative))
        if (
            abs(derivative - value)
            <= tolerance(check.precision) * size + rounding * check.precision
        ):
            row.value, row.reference, row.uncertainty = derivative, reference, uncertainty
            row.rounding, row.kind = max(row.rounding, rounding), judged[0].kind
            row.verdict, row.detail = verdicts.TRUE, ""


def _parts_of(check: Check, order: int, j: int) -> list[tuple[np.ndarray, float]]:
    """Return the directions of parts that need steps of their own, and their scales."""
    value, way = check.problem.wide_point[j], check.problem.last[j]
    if not 1 < value.size <= MOST_PARTED:
        return []
    name = check.problem.sources[j].name
    kinks = [
        row
        for row in check.rows
        if (row.order, row.argument) == (order, name) and row.verdict in DOUBTFUL
    ]
    if kinks and value.size <= MOST_SINGLE:
        units = [unit[0] for unit, _, _ in unit_directions([value])]
        return [(unit, size_of(value[unit != 0])) for unit in units]
    sizes = np.abs(value)
    gradient = check.first[j] if check.first else None
    share = np.abs(way) * (1.0 if gradient is None else np.abs(gradient))
    keys = 100 * _classes(sizes, 3) + _classes(share, 4)
    classes = np.unique(keys)
    if len(classes) < 2:
        return []
    parts = []
    for key in classes[:MOST_CLASSES]:
        mask = keys == key
        scale = size_of(value[mask])
        own = np.sign(way) if np.isrealobj(way) else way / np.abs(way)
        inside = np.where(sizes[mask] > 0, sizes[mask], scale) / scale
        part = np.zeros_like(way)
        part[mask] = (own[mask] * inside).astype(check.problem.point[j].dtype)
        parts.append((part, scale))
    return parts


def _classes(sizes: np.ndarray, decades: int) -> np.ndarray:
    """Return for each size how many times `decades` powers of ten below the largest it is."""
    largest = float(sizes[np.isfinite(sizes)].max(initial=0.0))
    with np.errstate(all="ignore"):
        below = np.floor(-np.log10(sizes / largest) / decades) if largest else 0.0 * sizes
    return np.clip(np.nan_to_num(below, nan=0.0, posinf=0.0, neginf=0.0), 0, 9).astype(int)
