"""Comparison of order k with order k - 2: for k = 2, with second differences of the function.

If the gradient of order k - 1 is 0, a wrong factor in its rule does not show in its value. It shows
in order k, but that agrees with the derivative of what the rules returned for order k - 1, wrong
factor included. It does not agree with order k - 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from . import evaluate
from .evaluate import total
from .lines import Lines, PathLine
from .problem import InnerProduct, Point, Problem
from .reference import SECOND_DIFFERENCES, Curvature
from .verdicts import WRONG, DerivativeRow, noise_of, tolerance

FEW_LEVELS = 4  # steps of a first look, each half the one before
MANY_LEVELS = 14  # steps before a row is called wrong


def compare_curvature(
    problem: Problem, base: Point, order: int, precision: float
) -> list[DerivativeRow]:
    """Return a row for each source whose `order` is wrong, compared with ``order - 2``."""
    last = [scale * way for scale, way in zip(problem.scales, problem.last, strict=True)]
    if _compare(problem, base, order, precision, (last, last)) is None:
        return []
    rows: list[DerivativeRow] = []
    for j, source in enumerate(problem.sources):
        own = [way if i == j else np.zeros_like(way) for i, way in enumerate(last)]
        numbers = _compare(problem, base, order, precision, (last, own))
        if numbers is not None:
            compared = (*numbers, SECOND_DIFFERENCES, WRONG, f"by differences of order {order - 2}")
            rows.append(DerivativeRow(order, source.name, "x", "reverse", *compared))
    return rows


def _compare(
    problem: Problem, base: Point, order: int, precision: float, pair: tuple[list, list]
) -> tuple[float, float, float] | None:
    """Return the value along two directions, its reference and the reference's error.

    None if the value is right. The derivative along both is a quarter of the difference of those
    along their sum and along their difference.
    """
    first, last = pair
    ways = [*problem.ways[: order - 1], first, *problem.ways[order:]]

    def derivative() -> InnerProduct:
        with evaluate.using(problem, ways=ways):
            return total(last, evaluate.arrays(problem, base, order))

    value, weights, sides = derivative(), [1.0], [first]
    if first is not last:
        weights, sides = [0.25, -0.25], [list(map(f, *pair)) for f in (np.add, np.subtract)]
    along = [Lines(problem, base, side, order - 2, ("x",)) for side in sides]
    lines = [PathLine(each, "x", None) for each in along]
    number, terms = value.number, 16 * max(precision * value.size, value.rounding)

    def reference(levels: int, step: float | None, rounding: Sequence) -> list[float]:
        results = [
            Curvature(line, precision, step, noise).derivative(levels)
            for line, noise in zip(lines, rounding, strict=True)
        ]
        values = [weight * value for weight, (value, *_) in zip(weights, results, strict=True)]
        return [sum(values), *map(sum, zip(*[more for _, *more in results], strict=True))]

    def differs(expected: float, error: float, noise: float = 0.0) -> bool:
        size = max(abs(number), abs(expected))
        relative = max(1e-4, tolerance(precision))
        return abs(number - expected) > 10 * error + relative * size + terms + 3 * noise

    expected, error, _ = reference(FEW_LEVELS, None, [0.0 for _ in lines])
    if not (isfinite(expected) and isfinite(number)) or not differs(expected, error):
        return None
    rounding = [noise_of(problem, line(0.0)[0], lambda f=line: f(0.0)[0]) for line in lines]
    noise = noise_of(problem, number, lambda: derivative().number)
    step = Curvature(lines[0], precision).step
    (expected, error, least), (other, more, _) = (
        reference(MANY_LEVELS, h, rounding) for h in (step, 0.37 * step)
    )
    error = max(error, more) + abs(expected - other)
    oscillates = error > 1e-2 * abs(expected) and error > 100 * least  # between the steps
    if oscillates or not differs(expected, error, noise):
        return None
    is_smooth = all(each.look(0.0).holds(each.look(end)) for each in along for end in (step, -step))
    return (number, expected, error) if is_smooth else None
