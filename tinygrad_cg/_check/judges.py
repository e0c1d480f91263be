"""Judges of derivatives along directions, and the values that they judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.kinds import is_complex, is_floating
from . import evaluate, verdicts
from .check import Check
from .evaluate import product
from .lines import Lines, PathLine
from .problem import InnerProduct, move_point
from .reference import FIRST, Ladder, first_step
from .verdicts import Judge, noise_of


def judge_of(
    check: Check,
    order: int,
    j: int,
    path: str = "x",
    lines: Lines | None = None,
    as_weighed: bool = True,
) -> Judge:
    """Return the judge of a derivative by source j; of other weights unless `as_weighed`."""
    problem = check.problem
    lines = lines or lines_along(check, order, j, problem.last[j], (path,))
    middle = check.value_of(order - 1, path) if as_weighed else None
    line = PathLine(lines, path, middle)

    def complex_line(step: complex) -> Any:
        if problem.level is None and j not in check.complex_sources:  # else NumPy code, say
            check.complex_sources[j] = lines.look(0.0).has_same_constants(lines.look(lines.first))
        if problem.level is None and not check.complex_sources[j]:
            return None
        outputs = evaluate.analytic_outputs(problem, move_point(check.base, lines.ways, step))
        if outputs is None:
            check.complex_sources[j] = False
        elif all(is_complex(output.dtype) for output in outputs):
            return complex(sum(map(np.sum, map(np.multiply, problem.weights, outputs))))
        return None

    of_reals = all(is_floating(value.dtype) for value in (*check.base, *problem.values))
    exact = complex_line if order == 1 and of_reals and check.precision < 1e-12 else None
    return Judge(line, problem.scales[j], check.precision, exact, check.whole)


def lines_of(check: Check, order: int, j: int) -> Lines:
    """Return the lines along source j of all paths whose rows an order has."""
    paths = ("x", "both") if (order, "both") in check.gradients and order > 1 else ("x",)
    return lines_along(check, order, j, check.problem.last[j], paths)


def lines_along(check: Check, order: int, j: int, way: np.ndarray, paths: tuple[str, ...]) -> Lines:
    """Return the lines along a direction of source j."""
    ways = [way if i == j else None for i in check.indices]
    return Lines(check.problem, check.base, ways, order - 1, paths)


def first_steps(
    check: Check, lines: Sequence[Lines], scales: Sequence[float], levels: int
) -> list[tuple[Lines, float]]:
    """Return the steps of the first levels along several lines."""
    return [
        (line, sign * first_step(scale, check.precision) * 0.5**level)
        for line, scale in zip(lines, scales, strict=True)
        for level in range(levels)
        for sign in (1, -1)
    ]


def along_another(check: Check, order: int, j: int) -> tuple[float, float]:
    """Return the derivative by source j along another direction, and its reference."""
    way = check.problem.ways[0][j]
    gradients = check.gradients_of(order, "x")
    value = product(way, gradients and gradients[1][j]).number
    line = PathLine(lines_along(check, order, j, way, ("x",)), "x", None)
    ladder = Ladder(line, check.problem.scales[j], check.precision)
    while len(ladder.rows) < FIRST:
        ladder.refine()
    return value, ladder.best().value


def products_along(check: Check, j: int, *gradients: list) -> list[InnerProduct]:
    """Return the products of a source's direction with several gradients."""
    return [product(check.problem.last[j], gradient[j]) for gradient in gradients]


def recomputed(check: Check, order: int, j: int, path: str = "x") -> Callable[[], float]:
    """Return a function that computes the derivative by source j once more."""

    def again() -> float:
        arrays = evaluate.arrays(check.problem, check.base, order, path)
        return products_along(check, j, arrays)[0].number

    return again


def is_known_wrong(check: Check, j: int) -> bool:
    """Return whether there is a wrong row of source j."""
    name = check.names[j]
    return any(row.verdict == verdicts.WRONG for row in check.rows if row.argument == name)


def noise_of_difference(check: Check, difference: Callable[[], float]) -> float:
    """Return how far a difference that should be 0 may be off by rounding."""
    number = difference()
    return noise_of(check.problem, number, difference, abs(number))
