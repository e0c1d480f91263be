"""Reference derivatives of a function of one number, from its values, with an error.

By a complex step if the function allows it (Squire and Trapp, SIAM Review 40, 1998), otherwise by
central differences, extrapolated to step 0 (Richardson; Ridders, Advances in Engineering Software
4, 1982). The disagreement of the extrapolations estimates the error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .lines import PathLine

EPSILON = float(np.finfo(np.float64).eps)
COMPLEX_STEP = "complex steps"
DIFFERENCES = "central differences"
SECOND_DIFFERENCES = "second differences"
LINEARITY = "results of the same rule"


class ReferenceValue(NamedTuple):
    """A derivative with its error and origin, and whether there is a kink.

    `size` is the typical size of a derivative: that of the function's terms, divided by its scale.
    `terms` is the size of the terms that the derivative is computed from, if these cancel.
    """

    value: float
    error: float
    kind: str = DIFFERENCES
    kink: bool = False
    size: float = 0.0
    terms: float = 0.0

    def with_terms(self, noise: float, precision: float) -> ReferenceValue:
        """Return this for a derivative whose terms cancel, with the noise of their rounding."""
        return self._replace(terms=noise / (3 * precision))


LEVELS = 14  # steps at most; each is half the one before
FIRST = 2  # steps that mostly suffice; the others are computed in one batch
DEPTH = 3  # extrapolations of each level


def first_step(scale: float, precision: float) -> float:
    """Return the largest step for functions that vary as `scale` does."""
    return scale * precision**0.2


class Ladder:
    """Central differences with smaller and smaller steps, computed on demand.

    They begin with `step`, by default with `first_step`. `noises` has what rounding does to each,
    `bends` the differences of the slopes on both sides, `changes` how much the values change on
    the side where they change more. `extra` is noise of the function beyond rounding its terms.
    """

    def __init__(self, line: PathLine, scale: float, precision: float, step: float | None = None):
        self.line = line
        self.scale = scale
        self.precision = precision
        self.step = first_step(scale, precision) if step is None else step
        self.middle, self.size = line(0.0)
        self.rows: list[list[float]] = []
        self.noises: list[float] = []
        self.bends: list[float] = []
        self.changes: list[float] = []
        self.extra = 0.0

    def fetch(self, first: int, levels: int) -> None:
        """Compute the values for several levels in one evaluation, if that is cheap."""
        steps = [self.step * 0.5**level for level in range(first, levels)]
        self.line.fetch([sign * step for step in steps for sign in (1, -1)])

    def refine(self) -> None:
        if len(self.rows) == FIRST:
            self.fetch(FIRST, LEVELS)
        step = self.step * 0.5 ** len(self.rows)
        (right, right_size), (left, left_size) = self.line(step), self.line(-step)
        size = max(right_size, left_size, self.size)
        self._extrapolate((right - left) / (2 * step))
        self.noises.append(2 * self.precision * size / step)
        self.bends.append((right + left - 2 * self.middle) / step)
        self.changes.append(max(abs(right - self.middle), abs(left - self.middle)))

    def difference(self, step: float) -> tuple[float, float]:
        """Return one central difference, and what rounding the values does to it."""
        (right, right_size), (left, left_size) = self.line(step), self.line(-step)
        size = max(right_size, left_size, self.size)
        return (right - left) / (2 * step), 2 * self.precision * size / step

    def largest_change(self) -> float:
        """Return how much the values change at most; infinity if they are not known."""
        changes = [change if np.isfinite(change) else np.inf for change in self.changes]
        return max(changes, default=np.inf)

    def _extrapolate(self, difference: float) -> None:
        row = [difference]
        for depth, below in enumerate(self.rows[-1][:DEPTH] if self.rows else (), 1):
            row.append(row[-1] + (row[-1] - below) / (4**depth - 1))
        self.rows.append(row)

    def best(self) -> ReferenceValue:
        """Return the extrapolation with the smallest error."""
        value, error, _ = self._best()
        return ReferenceValue(value, error, DIFFERENCES, self.has_kink(), self.size / self.scale)

    def has_converged(self, rounding: float, variation: float = 0.0) -> bool:
        """Return whether the steps were small enough to show a derivative, even of an oscillation.

        `variation` is the distance to another reference: steps that are halved may meet an
        oscillation at the same phase each time.
        """
        value, error, level = self._best()
        noise = self.noises[level] + rounding / (self.step * 0.5**level)
        error = max(error, variation)
        return error <= 0.1 * abs(value) or error <= 100 * noise

    def may_oscillate(self, rounding: float) -> bool:
        """Return whether oscillations between the steps look like a slope of 0, by `rounding`."""
        value, error, _ = self._best()
        return error > 0.1 * abs(value) and rounding > self.precision**0.5 * self.size

    def _best(self) -> tuple[float, float, int]:
        """Return the extrapolation with the smallest error, the error and the level.

        The error is at least the difference to finer levels: two coarse ones may agree by chance.
        """
        value, error, level = float("nan"), float("inf"), 0
        finer: list[tuple[float, float]] = []
        for i in range(len(self.rows) - 1, 0, -1):
            row, noise = self.rows[i], self.noises[i] + self.extra / (self.step * 0.5**i)
            for depth in range(1, len(row)):
                others = (row[depth - 1], self.rows[i - 1][depth - 1])
                variation = max(abs(row[depth] - other) for other in others)
                gaps = [abs(row[depth] - finer_value) - more for finer_value, more in finer]
                estimate = max([variation + noise, *gaps])
                if estimate < error:
                    value, error, level = row[depth], estimate, i
            if np.isfinite(row[1]):
                finer.append((row[1], 4 * noise))
        return value, error, level

    def may_have_kink(self) -> bool:
        """Return whether the slopes on both sides did not approach each other at the last step."""
        if len(self.bends) < 2:
            return False
        last, before = abs(self.bends[-1]), abs(self.bends[-2])
        return last > 0.8 * before and self._counts(len(self.bends) - 1)

    def has_kink(self) -> bool:
        """Return whether the slopes on both sides keep their difference as the step goes to 0."""
        if len(self.bends) < 4:
            return False
        last = np.abs(self.bends[-4:])
        steady = bool(last.min() > 0.9 * last.max())
        return steady and all(self._counts(len(self.bends) - i) for i in (1, 2, 3))

    def has_jump(self) -> bool:
        """Return whether the values on both sides keep their difference down to the last step."""
        if len(self.rows) < 4:
            return False
        last = [abs(row[0]) * 0.5**i for i, row in enumerate(self.rows[-4:])]
        if min(last) <= max(0.9 * max(last), 50 * self.noises[-4]):
            return False
        step = self.step * 0.5 ** (LEVELS - 1)
        change = abs(self.line(step)[0] - self.line(-step)[0])
        return change > 0.9 * max(last) * 2 * self.step * 0.5 ** (len(self.rows) - 4)

    def _counts(self, level: int) -> bool:
        bend = abs(self.bends[level])
        slope = abs(self.rows[level][0])
        return bend > 50 * self.noises[level] and bend > 1e-4 * max(slope, self.size / self.scale)

    def slopes(self) -> tuple[float, float]:
        """Return the smaller and the larger of the slopes on both sides."""
        middle, half = self.rows[-1][0], self.bends[-1] / 2
        return middle - abs(half), middle + abs(half)

    def jumps(self) -> float:
        """Return how much the values jump, by fourth differences (Hamming).

        The points are as far apart as the best step; further apart if the values are constant
        there but not further out, as those of a rounded function.
        """
        flat = [row[0] == 0 and bend == 0 for row, bend in zip(self.rows, self.bends, strict=True)]
        stepped = flat[-1] and not all(flat)
        spacing = self.step / 8 if stepped else self.step * 0.5 ** max(self._best()[2], 2)
        differences = np.diff([self.line(i * spacing)[0] for i in range(-4, 5)], 4)
        return float(np.max(np.abs(differences))) / 70**0.5


class Curvature(Ladder):
    """Second differences with smaller and smaller steps, for second derivatives.

    `rounding` is the error of the function's values beyond the rounding of their terms.
    """

    def __init__(
        self, line: PathLine, precision: float, step: float | None = None, rounding: float = 0.0
    ):
        super().__init__(line, 1.0, precision, precision**0.125 if step is None else step)
        self.rounding = rounding

    def refine(self) -> None:
        step = self.step * 0.5 ** len(self.rows)
        (right, right_size), (left, left_size) = self.line(step), self.line(-step)
        self._extrapolate((right + left - 2 * self.middle) / step**2)
        noise = self.precision * max(right_size, left_size, self.size) + self.rounding
        self.noises.append(4 * noise / step**2)

    def derivative(self, levels: int) -> tuple[float, float, float]:
        """Return the derivative, its error, and the part of the error that is rounding."""
        while len(self.rows) < levels:
            self.refine()
        value, error, level = self._best()
        return value, error, self.noises[level]


def difference_all(
    line: Callable[[float], np.ndarray], middle: np.ndarray, scale: float, precision: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the derivatives of several functions of one number, their errors and rounding.

    The same four steps serve all functions; `Ladder` is for those that need others.
    """
    step = scale * precision**0.2
    value, error = np.full(middle.shape, np.nan), np.full(middle.shape, np.inf)
    noise = error
    rows: list[list[np.ndarray]] = []
    for level in range(4):
        here = step * 0.5**level
        right, left = line(here), line(-here)
        row = [(right - left) / (2 * here)]
        for depth, below in enumerate(rows[-1][:DEPTH] if rows else (), 1):
            row.append(row[-1] + (row[-1] - below) / (4**depth - 1))
        sizes = np.maximum(np.abs(middle), np.maximum(np.abs(right), np.abs(left)))
        noise = 2 * precision * sizes / here
        for depth in range(1, len(row)):
            variation = np.abs(row[depth] - row[depth - 1])
            variation = np.maximum(variation, np.abs(row[depth] - rows[-1][depth - 1])) + noise
            better = variation < error
            value, error = np.where(better, row[depth], value), np.where(better, variation, error)
        rows.append(row)
    return value, error, noise


def by_complex_step(line: Callable[[complex], Any] | None, ladder: Ladder) -> ReferenceValue | None:
    """Return the derivative by a complex step; None if differences disagree."""
    derivative = complex_step(line, ladder.scale)
    for step in (ladder.step, 1e-5 * ladder.scale) if np.isfinite(derivative) else ():
        value, noise = ladder.difference(step)
        if abs(value - derivative) <= 1e-3 * max(abs(derivative), abs(value)) + 10 * noise:
            # Without the rounding of the value; where terms cancel to 0, they may have rounded.
            error = 1e-12 * abs(derivative) if derivative else EPSILON * ladder.size
            size = ladder.size / ladder.scale
            return ReferenceValue(derivative, error, COMPLEX_STEP, False, size)
    return None


def complex_step(line: Callable[[complex], Any] | None, scale: float) -> float:
    """Return the imaginary part over a tiny step; NaN if there is none.

    The function may not be made for complex numbers: `line` may return anything, or raise.
    """
    step, value = 1e-30 * scale, None
    with contextlib.suppress(Exception):
        value = line(1j * step) if line is not None else None
    return value.imag / step if isinstance(value, complex) else float("nan")
