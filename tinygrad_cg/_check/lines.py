"""Numbers of a checked function along lines through the point, each computed once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from . import evaluate
from .branches import Branches
from .problem import InnerProduct, Point, Problem, move_point

MAX_BATCH_WORK = 1 << 18  # elements to compute in one evaluation


@dataclass(eq=False)
class Lines:
    """D_order along a line through the point, on several paths; computed once at each step.

    At the first steps the branches that the function takes are noted.
    """

    problem: Problem
    base: Point
    ways: list
    order: int
    paths: tuple[str, ...]
    first: float = 0.0
    computed: dict[float, dict[str, tuple[float, float]]] = field(default_factory=dict)
    looks: dict[float, Branches] = field(default_factory=dict)

    def values(self, step: float) -> dict[str, tuple[float, float]]:
        """Return D_order at a step by path, and the size of its terms."""
        self.first = self.first or abs(step)
        if step not in self.computed:
            if not self.order and step and abs(step) == self.first:
                self.look(step)
            else:
                self.computed[step] = self.compute(step, self.paths)
        return self.computed[step]

    def look(self, step: float) -> Branches:
        """Return the branches that the function takes at a step."""
        problem = self.problem
        if not step and not self.order and problem.against is None:
            return problem.look
        if step not in self.looks:
            self.looks[step] = look = Branches()
            with evaluate.using(problem, level=look):
                self.computed[step] = self.compute(step, self.paths)
        return self.looks[step]

    def fetch(self, steps: Sequence[float]) -> None:
        """Compute the values at several steps in one evaluation, if that is cheap."""
        fetch([(self, step) for step in steps])

    def compute(self, step: float, paths: tuple[str, ...]) -> dict[str, tuple[float, float]]:
        point = move_point(self.base, self.ways, step)
        try:
            products = evaluate.measure(self.problem, point, self.order, paths)
        except Exception:  # it is not defined there
            return dict.fromkeys(paths, (math.nan, math.nan))
        return _pairs(paths, products)


def _pairs(paths: tuple[str, ...], products: Sequence[InnerProduct]) -> dict:
    return {path: (p.number, p.size) for path, p in zip(paths, products, strict=True)}


class PathLine:
    """One path of lines as a function of the step, with its value in the `middle` if known."""

    def __init__(self, lines: Lines, path: str, middle: InnerProduct | None):
        self.lines, self.path, self.middle = lines, path, middle
        self.fetch, self.look = lines.fetch, lines.look

    def __call__(self, step: float) -> tuple[float, float]:
        if self.lines.problem.level is not None:
            return self.lines.compute(step, (self.path,))[self.path]
        if step == 0.0 and self.middle is not None:
            return self.middle.number, self.middle.size
        return self.lines.values(step)[self.path]


def fetch(wanted: Sequence[tuple[Lines, float]]) -> None:
    """Compute lines of one order at several steps in one evaluation, if that is cheap."""
    wanted = [(lines, step) for lines, step in wanted if step not in lines.computed]
    if not wanted:
        return
    first = wanted[0][0]
    points = [move_point(lines.base, lines.ways, step) for lines, step in wanted]
    values = measure_together(first.problem, points, first.order, first.paths)
    for (lines, step), products in zip(wanted, values or (), strict=values is not None):
        lines.computed[step] = _pairs(lines.paths, products)


def measure_together(
    problem: Problem, points: Sequence[Point], order: int, paths: Sequence[str]
) -> list[list[InnerProduct]] | None:
    """Return D_order at several points, for each path; None unless one evaluation is cheap."""
    work = problem.look.work * len(points) * (1 + 2 * order)
    is_cheap = problem.is_batched and work <= MAX_BATCH_WORK and len(points) >= 3
    if problem.level is not None or not is_cheap:
        return None
    try:
        return evaluate.measure_batch(problem, points, order, paths)
    except Exception:  # NumPy code, for example, or a condition, or it is not defined there
        problem.is_batched = False
        return None
