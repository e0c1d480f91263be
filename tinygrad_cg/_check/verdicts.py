"""Verdicts on derivatives that rules gave, against references with an error."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from math import inf, isfinite, log10, sqrt
from typing import Any

from .evaluate import using
from .lines import PathLine
from .problem import InnerProduct, Problem
from .reference import LEVELS, Ladder, ReferenceValue, by_complex_step, complex_step
from .rounding import AMPLITUDE, StochasticRounding

TRUE = "ok"
WRONG = "wrong"
DETACHED = "detached"
BYPASSED = "bypassed"
NOT_FINITE = "not finite"
NOT_LINEAR = "not linear in the upstream"
INCONCLUSIVE = "inconclusive"
KINK = "kink"
FAILED = "raises"
OUTSIDE = "the value is outside"
"""What the details of a row begin with, if its value is not a slope on either side of a kink."""

SHARP = 1e-10  # the relative error that a complex step tells from rounding
MAX_DRAWS = 6  # computations with random rounding
SPREAD = 6 / AMPLITUDE  # the noise, in standard deviations of the results
SMALL_NOISE = (1e-8, 1e-4, 0.03)  # relative noise after 1, 2 and more draws that needs no further

FALSE = (WRONG, DETACHED, NOT_FINITE, NOT_LINEAR, FAILED)


@dataclass
class DerivativeRow:
    """One derivative: the value of the rules, the reference, and the verdict.

    `path` is "x" (the direct dependence of the gradient on x), "upstream" (its dependence on the
    upstream gradient) or "both" (of the squared outputs, whose upstream gradient depends on x).
    `value` is None if the gradient was None. `uncertainty` is the error of the reference,
    `rounding` the size of the terms that the value was computed from, if these cancel. `nearby` is
    the second point, in words, if the row belongs to that. `tolerance` is the relative error that
    was allowed.
    """

    order: int
    argument: str
    path: str
    mode: str
    value: float | None
    reference: float
    uncertainty: float
    kind: str
    verdict: str
    detail: str = ""
    index: tuple[int, ...] | None = None
    nearby: str = ""
    rounding: float = 0.0
    tolerance: float = 0.0

    @property
    def digits(self) -> int | None:
        """Return how many digits of the value were compared; None if that is inconclusive."""
        if self.verdict in (INCONCLUSIVE, KINK) or not self.tolerance:
            return None
        size = max(abs(self.reference), abs(self.value or 0.0), self.rounding)
        error = 0.0 if self.false or not size else self.error / size
        return round(-log10(max(self.tolerance, error)) - 0.499)

    @property
    def error(self) -> float:
        """Return the absolute error; NaN if there is no number to compare."""
        return abs((self.value or 0.0) - self.reference)

    @property
    def relative_error(self) -> float:
        """Return the error in units of the reference (of the value if that is 0)."""
        size = abs(self.reference) or abs(self.value or 0.0)
        return self.error / size if size else 0.0

    @property
    def is_rounding(self) -> bool:
        """Return whether the row passed because the difference is rounding: the terms cancel."""
        return self.verdict == TRUE and self.relative_error > max(1e-3, self.tolerance)

    @property
    def false(self) -> bool:
        return self.verdict in FALSE


def tolerance(precision: float) -> float:
    """Return the relative error allowed for a function that computes in this precision."""
    return max(1e-6, 300 * precision)


def agrees(value: float, reference: ReferenceValue, relative: float, floor: float) -> bool:
    """Return whether a value equals a sharp reference up to a relative error and rounding."""
    expected, error = reference.value, reference.error
    size = max(abs(value), abs(expected))
    close = abs(value - expected) <= relative * size + floor
    return close and error <= 1e-3 * max(size, 0.01 * reference.size)


def _gap(value: float, reference: ReferenceValue) -> float:
    return min(abs(value - reference.value), abs(reference.value))


def is_nothing(
    value: float, reference: ReferenceValue, precision: float, whole: float = 0.0
) -> bool:
    """Return whether a value and its reference are within the rounding of the function's terms.

    `whole` is the size of the terms of the function's own value.
    """
    size = max(reference.size, whole)
    return max(abs(value), abs(reference.value)) <= 100 * precision * size


def decide(
    value: float, reference: ReferenceValue, precision: float, floor: float, whole: float = 0.0
) -> str | None:
    """Return a verdict, or None for a difference that needs a closer look."""
    expected, error = reference.value, reference.error
    if not (isfinite(expected) and isfinite(error)):
        return INCONCLUSIVE
    gap, size = abs(value - expected), max(abs(value), abs(expected))
    relative = tolerance(precision)
    if agrees(value, reference, relative, floor):
        return TRUE
    if gap <= 3 * error + floor:
        near = gap <= 0.1 * size or is_nothing(value, reference, precision, whole)
        terms = 0.1 * relative * max(reference.size, reference.terms)
        return TRUE if near and error <= max(1e-4 * size, relative * size, terms) else INCONCLUSIVE
    return INCONCLUSIVE if gap <= 10 * error + relative * size + floor else None


@dataclass(eq=False)
class Judge:
    """References for one line through the point, refined until a verdict is clear.

    If it is `known_wrong` that another derivative is wrong, a clear difference needs no second
    reference.
    """

    line: PathLine
    scale: float
    precision: float
    complex_line: Callable[[complex], Any] | None
    whole: float
    exact: ReferenceValue | None = None
    floor: float = 0.0  # the difference that rounding explains
    outside: str = ""  # in words: the slopes on both sides of a kink that exclude the value
    known_wrong: bool = False

    def __post_init__(self) -> None:
        self.noise_of = partial(noise_of, self.line.lines.problem)
        self.ladder = Ladder(self.line, self.scale, self.precision)
        self._decided: list[tuple[float, tuple[str, ReferenceValue], float, str]] = []
        if isfinite(self.ladder.middle):
            self.ladder.refine()
            self.exact = by_complex_step(self.complex_line, self.ladder)

    def verdict(
        self, value: InnerProduct, again: Callable[[], float]
    ) -> tuple[str, ReferenceValue]:
        """Return the verdict on a value, which `again` computes once more.

        A value that differs from an earlier one in the last digits only has the same verdict.
        """
        number = value.number
        again = again if value.value is not None else float  # not connected: always 0
        for other, decision, floor, outside in self._decided:
            if abs(number - other) <= 1e-13 * abs(other):
                self.floor, self.outside = floor, outside
                return decision
        self.floor, self.outside = 16 * max(self.precision * value.size, value.rounding), ""
        decision = self._compare(number, again)
        self._decided.append((number, decision, self.floor, self.outside))
        return decision

    def _compare(self, number: float, again: Callable[[], float]) -> tuple[str, ReferenceValue]:
        if self.exact is not None:
            verdict = self._compare_with_exact(number, self.exact, again)
            if verdict is not None:
                return verdict, self.exact
        floor = self.floor
        reference = self.refine_reference(number, floor)
        if reference.kink:
            low, high = self.ladder.slopes()
            margin = 1e-2 * (high - low) + 1e-3 * max(abs(low), abs(high)) + floor
            if not low - margin <= number <= high + margin:
                self.outside = f"{OUTSIDE} the one-sided slopes, {low:.4g} and {high:.4g}"
            return KINK, reference
        outcome = decide(number, reference, self.precision, floor)
        if outcome == TRUE or not isfinite(reference.value):
            if is_nothing(number, reference, self.precision):
                self.floor = max(floor, 100 * self.precision * reference.size)
            return outcome or INCONCLUSIVE, reference
        is_clear = len(self.ladder.rows) <= 3 or reference.error < 1e-4 * _gap(number, reference)
        if outcome is None and self.known_wrong and is_clear:
            return WRONG, reference
        flat = self._rounding_of_flat()
        if flat is not None:
            return self._compare_with_zero(number, again, reference, flat)
        noise = self.noise_of(number, again, abs(number - reference.value))
        self.floor += noise
        if outcome is None:
            return self._accuse(number, noise)
        sized = reference.with_terms(noise, self.precision)
        return decide(number, sized, self.precision, self.floor, self.whole) or outcome, reference

    def refine_reference(self, number: float = 0.0, floor: float = 0.0) -> ReferenceValue:
        """Return the reference at the first level that decides about the value, or at the last."""
        ladder = self.ladder
        if not isfinite(ladder.middle):
            return ReferenceValue(float("nan"), float("inf"))
        while len(ladder.rows) < LEVELS:
            if len(ladder.rows) > 1 and not ladder.may_have_kink():
                reference = ladder.best()
                if agrees(number, reference, tolerance(self.precision), floor):
                    return reference
                size = max(abs(reference.value), reference.size)
                if len(ladder.rows) > 4 and reference.error < 1e-8 * size:
                    return reference
                is_lost = abs(reference.value) <= reference.error and reference.size == 0.0
                if len(ladder.rows) > 5 and number == 0.0 and is_lost:
                    return reference  # terms of 0 have no scale
                few, clear = 1 if self.known_wrong else 2, 1e-4 * _gap(number, reference)
                if self.exact is None and len(ladder.rows) > few and reference.error < clear:
                    return reference
            if ladder.has_kink() or ladder.has_jump():
                break
            if len(ladder.rows) > 2 and self._rounding_of_flat() is not None:
                break
            ladder.refine()
        return ladder.best()

    @cached_property
    def rounding(self) -> float:
        """Return the rounding error of the function's values."""
        change = self.ladder.largest_change()
        return self.noise_of(self.ladder.middle, lambda: self.line(0.0)[0], change)

    def _rounding_of_flat(self) -> float | None:
        """Return the rounding error of the values, if it explains all their changes."""
        change, least = self.ladder.largest_change(), 16 * self.precision * self.ladder.size
        if change <= least:
            return least
        return self.rounding if change <= 2 * self.rounding else None

    def reach(self) -> float:
        """Return the largest step of differences that stay in the branches of the point.

        0 if it is so small that the point hardly moves, by its rounding.
        """
        step = self.ladder.step
        here = self.line.look(0.0)
        while step > 1e4 * self.precision * self.scale:
            if all(here.holds(self.line.look(end)) for end in (-step, step)):
                return step
            step /= 4
        return 0.0

    def _compare_with_zero(
        self, number: float, again: Callable[[], float], reference: ReferenceValue, rounding: float
    ) -> tuple[str, ReferenceValue]:
        """Return the verdict if the function's values do not change: their derivative is 0."""
        whole, noise = self.whole, 0.0
        if not is_nothing(number, reference._replace(value=0.0), self.precision):
            rounding = max(rounding, self.rounding)
            noise = self.noise_of(number, again, abs(number))
            self.floor += noise
            terms = max(noise, rounding / self.scale)
            whole = max(whole, terms / (3 * self.precision))
        zero = reference._replace(value=0.0, error=2 * rounding / self.ladder.step + noise)
        if is_nothing(number, zero, self.precision, whole) and abs(number) <= zero.error:
            self.floor = max(self.floor, 100 * self.precision * zero.size)
            return TRUE, zero
        is_clear = abs(number) > 10 * zero.error and not self.ladder.may_oscillate(rounding)
        return WRONG if is_clear else INCONCLUSIVE, zero

    def _compare_with_exact(
        self, number: float, exact: ReferenceValue, again: Callable[[], float]
    ) -> str | None:
        """Return the verdict by the complex step, which sees more than differences.

        None if it has lost its digits.
        """
        if agrees(number, exact, SHARP, self.floor):
            return TRUE
        gap, size = abs(number - exact.value), max(abs(number), abs(exact.value))
        step = partial(complex_step, self.complex_line, self.scale)
        noise = self.noise_of(exact.value, step, gap)
        if noise > max(1e-2 * abs(exact.value), 1e-7 * exact.size):
            return None
        rounding = noise + self.noise_of(number, again, gap) + 10 * exact.error
        if gap <= self.floor + rounding + SHARP * size:
            self.floor += rounding
            is_zero = is_nothing(number, exact, self.precision, self.whole)
            return TRUE if gap <= 0.1 * size or is_zero else INCONCLUSIVE
        if noise > 1e-2 * max(abs(exact.value), gap):
            return None
        if gap <= tolerance(self.precision) * size:  # less than differences need to tell at once
            while len(self.ladder.rows) < 6 and not self.ladder.best().error <= 0.1 * gap:
                self.ladder.refine()
            reference = self.ladder.best()
            if reference.error <= 0.1 * gap and abs(number - reference.value) <= 0.5 * gap:
                return None
        return WRONG

    def _accuse(self, number: float, noise: float) -> tuple[str, ReferenceValue]:
        """Return the verdict after a second reference. `noise` is the rounding of the value.

        The differences stay within the point's own branches; others are not derivatives.
        """
        reach = self.reach()
        if reach == 0.0:
            return INCONCLUSIVE, self.ladder.best()
        if reach < self.ladder.step:
            self.ladder = Ladder(self.line, self.scale, self.precision, reach)
            self.refine_reference(number, self.floor)
        ladder, rounding = self.ladder, self.rounding
        ladder.extra = max(rounding, ladder.jumps())
        second = Ladder(self.line, self.scale, self.precision, 0.37 * ladder.step)
        second.extra = ladder.extra
        second.fetch(0, LEVELS - 4)
        first, variation = ladder.best(), inf
        clear = 1e-2 * min(abs(number - first.value), abs(first.value))
        while len(second.rows) < LEVELS - 4 and not variation <= clear:
            second.refine()
            value = second.best().value if len(second.rows) > 1 else second.rows[0][0]
            variation = abs(first.value - value)
        if second.has_kink():
            return KINK, first
        if self.exact is not None:
            variation = max(variation, abs(first.value - self.exact.value))
        reference = first._replace(error=max(first.error, variation) + noise)
        reference = reference.with_terms(noise, self.precision)
        if not (isfinite(reference.error) and ladder.has_converged(rounding, variation)):
            return INCONCLUSIVE, reference
        verdict = decide(number, reference, self.precision, self.floor, self.whole)
        if verdict is None and (
            self._is_seen_closer(number, reference.value) or ladder.may_oscillate(rounding)
        ):
            return INCONCLUSIVE, reference
        return verdict or WRONG, reference if verdict else self.exact or reference

    def _is_seen_closer(self, number: float, slope_found: float) -> bool:
        """Return whether steps far smaller than those of the reference show the value instead.

        A function that oscillates faster than the reference's steps has another slope there.
        """
        if abs(number) < 2 * abs(slope_found):
            return False
        ladder, seen = self.ladder, []
        step = 1e3 * self.precision * ladder.size / abs(number)
        steps = (step, 3 * step, 10 * step)
        self.line.fetch([sign * closer_step for closer_step in steps for sign in (1, -1)])
        for closer in steps:
            if sum(seen) > 1 or len(seen) - sum(seen) > 1:
                break
            if 0.0 < closer < ladder.step * 0.5 ** len(ladder.rows):
                (right, _), (left, _) = self.line(closer), self.line(-closer)
                slope = (right - left) / (2 * closer)
                seen.append(abs(slope - number) <= 0.05 * abs(number))
        return sum(seen) > 1


def noise_of(
    problem: Problem,
    value: float,
    compute: Callable[[], float],
    difference: float = 0.0,
    constants: bool = False,
) -> float:
    """Return how much a value changes at most when results are rounded at random.

    It is computed again until the noise clearly explains a `difference`, or clearly does not. With
    `constants`, Python's numbers are rounded, too.
    """
    squares: list[float] = []
    noise = 0.0
    for seed in range(MAX_DRAWS):
        with (
            using(problem, level=StochasticRounding(seed, constants)),
            contextlib.suppress(Exception),  # rules may check their arguments
        ):
            change = abs(compute() - value)
            if isfinite(change):
                squares.append(change**2)
        noise = SPREAD * sqrt(sum(squares) / max(len(squares), 1))
        if noise >= 2 * difference > 0.0 or noise <= SMALL_NOISE[min(seed, 2)] * difference:
            break
    return noise
