"""Verdicts: a derivative that the rules gave, against a reference with an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

from .problem import Product
from .reference import LEVELS, Ladder, Line, Reference, by_complex_step

TRUE = "true"
WRONG = "not a derivative"
DETACHED = "detached"
BYPASSED = "bypassed"
NOT_FINITE = "not finite"
NOT_LINEAR = "not linear in the upstream"
INCONCLUSIVE = "inconclusive"
KINK = "kink"
FAILED = "raises"

FALSE = (WRONG, DETACHED, NOT_FINITE, NOT_LINEAR, FAILED)


@dataclass
class Row:
    """One derivative: what the rules gave, the reference, and the verdict.

    `path` is "x" (what the gradient depends on directly), "upstream" (its dependence on the
    upstream gradient) or "both" (of the squared outputs, whose upstream depends on x). `value`
    is None where the gradient was None. `uncertainty` is the error of the reference.
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

    @property
    def error(self) -> float:
        """The absolute error; NaN if there is no number to compare."""
        return abs((self.value or 0.0) - self.reference)

    @property
    def relative_error(self) -> float:
        """The error in units of the reference (of the value, where the reference is 0)."""
        size = abs(self.reference) or abs(self.value or 0.0)
        return self.error / size if size else 0.0

    @property
    def false(self) -> bool:
        return self.verdict in FALSE


class Accuracy(NamedTuple):
    """The precision that the function computes in, and the largest number on the way."""

    precision: float
    largest: float = 1.0

    @property
    def relative(self) -> float:
        return max(1e-6, 300 * self.precision)


def decide(value: float, reference: Reference, accuracy: Accuracy, floor: float) -> str | None:
    """A verdict, or None for a difference that must be looked at closely."""
    found, error = reference.value, reference.error
    if not (isfinite(found) and isfinite(error)):
        return INCONCLUSIVE
    apart, size = abs(value - found), max(abs(value), abs(found))
    allowed = accuracy.relative * size + floor
    if apart <= allowed and error <= 1e-3 * max(size, 0.01 * reference.size):
        return TRUE
    if apart <= 3 * error + floor:
        sharp = error <= max(1e-4, accuracy.relative) * max(size, reference.size)
        return TRUE if sharp else INCONCLUSIVE
    if apart <= 10 * error + allowed:
        return INCONCLUSIVE
    return None


class Judge:
    """References for one line through the point, refined until a verdict is clear."""

    def __init__(
        self,
        line: Line,
        scale: float,
        accuracy: Accuracy,
        complex_line: Callable[[complex], tuple[complex, float]] | None = None,
        other_line: Line | None = None,
    ):
        self.other_line = other_line or line
        self.scale = scale
        self.accuracy = accuracy
        self.ladder = Ladder(line, scale, accuracy.precision)
        self.exact: Reference | None = None
        if isfinite(self.ladder.middle):
            self.ladder.refine()
            if complex_line is not None:
                self.exact = by_complex_step(complex_line, self.ladder)

    def verdict(self, value: Product, again: Callable[[], list[float]]) -> tuple[str, Reference]:
        """The verdict on a value; `again` gives it at points next to this one, on demand."""
        number = value.value or 0.0
        floor = 16 * self.accuracy.precision * value.size
        if self.exact is not None:
            found = decide(number, self.exact, self.accuracy, floor)
            if found == TRUE:
                return found, self.exact
        reference = self._refined(number, floor, self.ladder)
        found = self._settled(number, floor, reference)
        if found in (TRUE, KINK, INCONCLUSIVE):
            return found, reference
        return self._accuse(number, floor, again)

    def _refined(self, number: float, floor: float, ladder: Ladder) -> Reference:
        """As many levels as it takes to say that the value is right, or all of them."""
        if not isfinite(ladder.middle):
            return Reference(float("nan"), float("inf"))
        while len(ladder.rows) < LEVELS:
            if len(ladder.rows) > 1 and not ladder.may_have_kink():
                reference = ladder.best()
                found = decide(number, reference, self.accuracy, floor)
                if found == TRUE:
                    return reference
                size = max(abs(reference.value), reference.size)
                if found is None and len(ladder.rows) > 4 and reference.error < 1e-8 * size:
                    return reference
            if ladder.has_kink():
                break
            ladder.refine()
        return ladder.best()

    def _settled(self, number: float, floor: float, reference: Reference) -> str | None:
        if reference.kink:
            return KINK
        return decide(number, reference, self.accuracy, floor)

    def _accuse(
        self, number: float, floor: float, again: Callable[[], list[float]]
    ) -> tuple[str, Reference]:
        """Nothing is called wrong before its noise is measured and another reference agrees."""
        self.ladder.measure_noise()
        floor += 10 * max((abs(one - number) for one in again()), default=0.0)
        second = Ladder(self.other_line, self.scale, self.accuracy.precision, factor=0.37)
        second.extra = self.ladder.extra
        while len(second.rows) < LEVELS - 4:
            second.refine()
        one, other = self.ladder.best(), second.best()
        if second.has_kink():
            return KINK, one
        spread = abs(one.value - other.value)
        if self.exact is not None:
            spread = max(spread, abs(one.value - self.exact.value))
        error = max(one.error, spread)
        if not any(row[0] for row in self.ladder.rows):  # rounded to a constant, perhaps
            error = max(
                error, 8 * self.accuracy.precision * self.accuracy.largest / self.ladder.step
            )
        reference = one._replace(error=error)
        found = decide(number, reference, self.accuracy, floor)
        if found is None and self.exact is not None:
            reference = self.exact
        return found or WRONG, reference
