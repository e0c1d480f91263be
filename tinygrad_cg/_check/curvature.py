"""Comparison of order k with order k - 2: for k = 2, with second differences of the function.

Where the gradient of order k - 1 is 0 a wrong factor in its rule does not show in its value; in the
derivative of order k it does. This is compared with the derivative of what the rules gave for order
k - 1, and agrees with it, wrong factor included. It does not agree with order k - 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from .lines import Lines, PathLine
from .problem import CheckedFunction, Point, Product, total
from .reference import SECOND_DIFFERENCES, Curvature
from .verdicts import WRONG, DerivativeRow, noise_of, tolerance

FEW, MANY = 4, 14  # steps, each half the one before


def compare_curvature(
    problem: CheckedFunction, base: Point, order: int, precision: float
) -> list[DerivativeRow]:
    """Return a row for each source by which `order` is false, compared with ``order - 2``."""
    last = [scale * way for scale, way in zip(problem.scales, problem.last, strict=True)]
    if _compare(problem, base, order, precision, (last, last)) is None:
        return []
    rows: list[DerivativeRow] = []
    for j, source in enumerate(problem.sources):
        own = [way if i == j else np.zeros_like(way) for i, way in enumerate(last)]
        numbers = _compare(problem, base, order, precision, (last, own))
        if numbers is not None:
            compared = (*numbers, SECOND_DIFFERENCES, WRONG, f"by order {order - 2}")
            rows.append(DerivativeRow(order, source.name, "x", "reverse", *compared))
    return rows


def _compare(
    problem: CheckedFunction, base: Point, order: int, precision: float, pair: tuple[list, list]
) -> tuple[float, float, float] | None:
    """Return the value along two directions, its reference and the error of that; None if right.

    The derivative along both is a quarter of the difference of those along their sum and along
    their difference.
    """
    first, last = pair
    ways = [*problem.ways[: order - 1], first, *problem.ways[order:]]

    def derivative() -> Product:
        with problem.using(ways=ways):
            return total(last, problem.arrays(base, order))

    value, weights, sides = derivative(), [1.0], [first]
    if first is not last:
        weights, sides = [0.25, -0.25], [list(map(f, *pair)) for f in (np.add, np.subtract)]
    along = [Lines(problem, base, side, order - 2, ("x",)) for side in sides]
    lines = [PathLine(each, "x", None) for each in along]
    number, terms = value.number, 16 * max(precision * value.size, value.rounding)

    def reference(levels: int, step: float | None, rounding: Sequence) -> list[float]:
        results = [
            Curvature(line, precision, step, rough).derivative(levels)
            for line, rough in zip(lines, rounding, strict=True)
        ]
        values = [weight * value for weight, (value, *_) in zip(weights, results, strict=True)]
        return [sum(values), *map(sum, zip(*[more for _, *more in results], strict=True))]

    def differs(expected: float, error: float, noise: float = 0.0) -> bool:
        size = max(abs(number), abs(expected))
        relative = max(1e-4, tolerance(precision))
        return abs(number - expected) > 10 * error + relative * size + terms + 3 * noise

    expected, error, _ = reference(FEW, None, [0.0 for _ in lines])
    if not (isfinite(expected) and isfinite(number)) or not differs(expected, error):
        return None
    rounding = [noise_of(line(0.0)[0], lambda f=line: f(0.0)[0], problem.rough) for line in lines]
    noise = noise_of(number, lambda: derivative().number, problem.rough)
    step = Curvature(lines[0], precision).step
    (expected, error, least), (other, more, _) = (
        reference(MANY, h, rounding) for h in (step, 0.37 * step)
    )
    error = max(error, more) + abs(expected - other)
    clear = (
        error <= 1e-2 * abs(expected) or error <= 100 * least
    )  # no oscillation between the steps
    if not clear or not differs(expected, error, noise):
        return None
    is_smooth = all(each.look(0.0).holds(each.look(end)) for each in along for end in (step, -step))
    return (number, expected, error) if is_smooth else None
