"""Values at kinks: whether they are subgradients, or outside all slopes."""

from __future__ import annotations

import numpy as np

from . import evaluate
from .check import Check
from .judges import judge_of
from .lines import measure_together
from .problem import InnerProduct, Point, move_point
from .setup import nearby_problem
from .verdicts import Judge

MAX_NEARBY = 32  # points to look at around a kink
MIN_NEARBY = 8  # points to look at if all slopes are those on both sides of the kink


def is_slope_nearby(check: Check, order: int, j: int, value: InnerProduct, judge: Judge) -> bool:
    """Return whether a value lies between slopes at points around this one.

    Where elements tie, in a sort for example, there are more of them than the slopes on both sides
    (the generalised gradient of Clarke, Optimization and Nonsmooth Analysis, 1983).
    """
    problem = check.problem
    generator = np.random.default_rng(order)
    small = check.precision**0.25
    ways = [way if i == j else None for i, way in enumerate(problem.last)]
    step = small**2 * problem.scales[j]
    ends: list[Point] = []
    for _ in range(MAX_NEARBY):
        steps = [generator.uniform(-1.0, 1.0, value.shape) for value in check.base]
        moves = list(map(np.multiply, steps, problem.scales))
        around = move_point(check.base, moves, small)
        ends += [move_point(around, ways, sign * step) for sign in (1.0, -1.0)]
    few = measure_together(problem, ends[: 2 * MIN_NEARBY], order - 1, ("x",)) or []
    numbers = [number.number for (number,) in few]
    slopes = []
    for k in range(0, len(ends), 2):
        try:
            for point in ends[len(numbers) : k + 2]:
                numbers.append(evaluate.measure(problem, point, order - 1)[0].number)
        except Exception:  # it is not defined there
            return False
        slopes.append((numbers[k] - numbers[k + 1]) / (2 * step))
        low, high = min(slopes), max(slopes)
        margin = 10 * small * max(abs(low), abs(high))
        if low - margin <= value.number <= high + margin:
            return True
        gaps = [min(abs(slope - side) for side in judge.ladder.slopes()) for slope in slopes]
        if len(slopes) == MIN_NEARBY and max(gaps) <= margin:
            break
    return False


def is_outside(check: Check, order: int, j: int, judge: Judge, number: float) -> bool:
    """Return whether a value is beyond the slopes on both sides, so not a subgradient.

    This applies to one element of one rule, whose kink is not a tie with other elements. The terms
    of the derivative may have kinks that partly cancel: each has its own slopes.
    """
    problem = check.problem
    unit = problem.last[j] != 0
    if not check.problem.is_one_rule or np.count_nonzero(unit) > 1:
        return False
    ways = [way if i == j else None for i, way in enumerate(problem.last)]

    def terms(step: float) -> np.ndarray:
        point = move_point(check.base, ways, step)
        one_less = evaluate.arrays(problem, point, order - 1) if order > 1 else None
        arrays = evaluate.reference_outputs(problem, point) if one_less is None else one_less
        weights = problem.weights if one_less is None else problem.ways[order - 1]
        pairs = zip(weights, arrays, strict=True)
        weighed = [np.real(np.conj(way) * array) for way, array in pairs if array is not None]
        return np.concatenate([array.ravel() for array in weighed])

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
    nearby = nearby_problem(problem, np.random.default_rng(problem.values[0].size))
    if nearby is None:
        return False
    for points in ("point", "wide_point"):
        own, moved = getattr(problem, points)[j], getattr(nearby, points)[j]
        getattr(nearby, points)[j] = np.where(unit, own, moved)
    other = Check(nearby, order, check.modes)
    other.recorders = check.recorders
    again = judge_of(other, order, j)
    again.refine_reference()
    pairs = zip(judge.ladder.slopes(), again.ladder.slopes(), strict=True)
    return again.ladder.has_kink() and all(abs(a - b) <= 0.3 * (high - low) for a, b in pairs)
