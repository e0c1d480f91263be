"""Rows of elements: every element of a derivative, compared with differences."""

from __future__ import annotations

import numpy as np

from .._core.tracking import track
from . import verdicts
from .check import Check, size_of, unit_directions
from .judges import judge_of, products_along, recomputation
from .problem import move_point
from .reference import difference_all
from .rows import row_of
from .verdicts import tolerance

MOST_DOUBTS = 200  # elements that are looked at again, of those that `full` compares
MOST_SHOWN = 20  # of which rows are shown


def full_rows(check: Check, order: int) -> None:
    """Compare every element of the derivative; add a row for each element that is not true.

    All elements by one input are compared at once; those that differ are looked at again.
    """
    problem = check.problem
    chosen = problem.weights if order == 1 else problem.ways[order - 1]
    units = [unit for unit, _, _ in unit_directions(chosen)]
    other_ways = [problem.ways[: order - 1], problem.ways[order:]]
    if order == 1:
        gradients = problem.pull_back(check.base, units)
    else:
        gradients = []
        for unit in track(units, f"check_gradients: derivatives of order {order}"):
            with problem.using(ways=[*other_ways[0], unit, *other_ways[1]]):
                gradients.append(problem.arrays(check.base, order))
    doubts = _doubts(check, order, gradients)
    shown: set[tuple] = set()
    doubts = sorted(doubts, key=lambda doubt: -doubt[0])[:MOST_DOUBTS]
    for _, number, j, index in track(doubts, f"check_gradients: doubts of order {order}"):
        if (j, index) in shown or len(shown) >= MOST_SHOWN:
            continue
        last = [np.zeros(way.shape) for way in problem.last]
        last[j][index] = 1.0
        scales = list(problem.scales)
        scales[j] = size_of(problem.wide_point[j][index]) or scales[j]
        unit = units[number]
        change: dict = {"last": last, "scales": scales}
        change |= (
            {"weights": unit} if order == 1 else {"ways": [*other_ways[0], unit, *other_ways[1]]}
        )
        with problem.using(**change):
            judge, again = (
                judge_of(check, order, j, as_weighed=False),
                recomputation(check, order, j),
            )
            along = products_along(check, j, gradients[number], gradients[number])
            row = row_of(check, (order, j, "x", "reverse"), judge, along, again)
        row.index = index
        if row.verdict != verdicts.TRUE:
            shown.add((j, index))
            check.rows.append(row)


def _doubts(check: Check, order: int, gradients: list) -> list[tuple[float, int, int, tuple]]:
    """Return where elements of the derivative may differ from differences, and how far.

    `gradients` has those of each element of the order before.
    """
    problem, base, precision = check.problem, check.base, check.precision

    def elements(point: list) -> np.ndarray:
        at_first = problem.reference_outputs
        arrays = problem.arrays(point, order - 1) if order > 1 else at_first(point)
        pairs = zip(arrays, problem.point, strict=False) if order > 1 else ()
        if order > 1:
            arrays = [np.zeros(own.shape) if array is None else array for array, own in pairs]
        return np.concatenate([np.real(array).astype(np.float64).ravel() for array in arrays])

    middle, doubts = elements(base), []
    count = sum(way.size for way in problem.last)
    for unit, j, index in track(
        unit_directions(problem.last), f"check_gradients: differences of order {order}", count
    ):
        scale = float(np.abs(base[j][index]))
        scale = scale if 0.0 < scale < np.inf else problem.scales[j]

        def line(step: float, unit: list = unit) -> np.ndarray:
            try:
                return elements(move_point(base, unit, step))
            except Exception:  # it is not defined there
                return np.full(middle.shape, np.nan)

        values = np.array(
            [0.0 if gradient[j] is None else np.real(gradient[j][index]) for gradient in gradients]
        )
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
