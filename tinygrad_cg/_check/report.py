"""Reports of checks, as text and as HTML."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .._core.wording import in_columns, in_words
from .._rules.definition import source_line
from ..errors import GradientError, is_ours
from .check import DOUBTFUL, Property
from .reference import LINEARITY
from .rewrite import where
from .verdicts import FAILED, INCONCLUSIVE, KINK, TRUE, WRONG, DerivativeRow

HEADINGS = ("order", "wrt", "path", "mode", "value", "reference", "error", "relative", "verdict")
PATHS = {"x": "direct", "both": "f(x)**2"}
LINEAR = {  # paths that are compared with other results of the same rule
    "linearity": "In rows `linearity`, the gradient for a sum, or a multiple, of upstream "
    "gradients is compared with the sum, or the multiple, of their gradients",
    "upstream": "A rule must be linear in dy. Then its derivative with respect to dy, in a "
    "direction v, is what the rule returns for dy = v. Rows `upstream` compare the two",
}
FALSE_ROW = '<tr style="background:#fbdedb;color:#7a1410">'  # readable on dark pages, too


class Finding(NamedTuple):
    """One finding: in words, and as corrected code if there is any."""

    text: str
    code: str | None = None
    remark: bool = False
    """True if it is not a fault: the derivatives are right."""
    order: int = 1
    """The lowest order of the derivatives that it is about."""


@dataclass
class RuleReport:
    """One custom gradient that ran, checked on its own.

    `order` is the order of derivatives that its rule is used for in the whole: 2 if a rule uses it.
    """

    name: str
    site: str
    order: int
    rows: list[DerivativeRow]
    properties: list[Property]

    @property
    def first_false_order(self) -> int | None:
        return min((row.order for row in self.rows if row.false), default=None)

    @property
    def conclusive(self) -> bool:
        """Return whether any row has a definite verdict."""
        return any(row.verdict not in DOUBTFUL for row in self.rows)


@dataclass
class GradientReport:
    """The result of `check_gradients`.

    `rows` has one entry for each order, argument, path and mode, `properties` the structural
    checks, `rules` each custom gradient on its own, and `findings` the diagnosis. `ok` says that
    nothing is wrong, `first_false_order` is the lowest order at which the rules do not return the
    derivative (None if there is none among the orders checked). `against` is the surrogate whose
    derivative was the reference of order 1, if there was one. `undecided` lists the orders and
    arguments without a conclusive row, which `assert_gradients` does not accept. `along` describes
    the directions of the values.
    """

    name: str
    order: int
    rows: list[DerivativeRow] = field(default_factory=list)
    properties: list[Property] = field(default_factory=list)
    rules: list[RuleReport] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    against: Callable[..., Any] | None = None
    along: str = ""

    first_false_order = RuleReport.first_false_order
    conclusive = RuleReport.conclusive

    @property
    def undecided(self) -> list[tuple[int, str]]:
        """Return the orders and arguments without a definite verdict on the path x."""
        rows = [row for row in self.rows if row.path == "x" and row.index is None]
        rows = [row for row in rows if not row.nearby]
        decided = {(row.order, row.argument) for row in rows if row.verdict not in DOUBTFUL}
        labels = dict.fromkeys((row.order, row.argument) for row in rows)
        return [label for label in labels if label not in decided]

    @property
    def ok(self) -> bool:
        broken = any(prop.holds is False for prop in self.properties)
        return self.first_false_order is None and not broken

    def raise_if_wrong(self) -> GradientReport:
        """Return the report itself; raise a `GradientError` with it if anything is wrong."""
        if not self.ok:
            raise GradientError(f"\n{self}", function=self.name, report=self)
        return self

    def summary(self) -> str:
        """Return the first line: up to which order the rules are right."""
        false = self.first_false_order
        if false is not None:
            return f"{self.name}: wrong from order {false} onwards"
        if not self.ok:
            return f"{self.name}: {'; '.join(_broken(self))}"
        if self.rows and not self.conclusive:
            return f"{self.name}: inconclusive"
        unsure = {row.verdict for row in self.rows} & set(DOUBTFUL)
        ends = {KINK: "at kinks", INCONCLUSIVE: "in inconclusive rows"}
        except_for = " and ".join(end for verdict, end in ends.items() if verdict in unsure)
        words = f"{self.name}: correct up to order {self.order}"
        return f"{words}, except {except_for}" if unsure else words

    def __str__(self) -> str:
        parts = [self.summary()]
        if self.rows:
            cells = [HEADINGS, *map(_cells, self.rows)]
            parts.append("\n".join(in_columns(cells, "><<<>>>><")))
        parts.append("\n".join(map(_wrap_text, _lines(self).splitlines())))
        for number, finding in enumerate(self.findings, 1):
            parts.append(_wrap_text(f"{number}. {finding.text}"))
            if finding.code:
                parts.append(textwrap.indent(finding.code, "       "))
        return "\n\n".join(part for part in parts if part)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            (FALSE_ROW if row.false else "<tr>")
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(row))
            + "</tr>"
            for row in self.rows
        )
        head = "".join(f"<th>{name}</th>" for name in HEADINGS)
        parts = [f"<p><b>{html.escape(self.summary())}</b></p>"]
        if rows:
            parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
        parts += [f"<p>{html.escape(line)}</p>" for line in _lines(self).splitlines()]
        for number, finding in enumerate(self.findings, 1):
            parts.append(f"<p>{number}. {html.escape(finding.text)}</p>")
            if finding.code:
                parts.append(f"<pre>{html.escape(finding.code)}</pre>")
        return "\n".join(parts)


def _wrap_text(text: str) -> str:
    return textwrap.fill(text, 88, subsequent_indent="   ", break_on_hyphens=False)


def number(value: float | None) -> str:
    if value is None:
        return "None"
    return "NaN" if math.isnan(value) else f"{value + 0.0:.6g}"


def _cells(row: DerivativeRow) -> tuple[str, ...]:
    value = "-" if row.verdict == FAILED else number(row.value)
    finite = row.verdict != FAILED and math.isfinite(row.error)
    error, relative = _errors(row) if finite else ("-", "-")
    by = row.argument if row.index is None else f"{row.argument}{list(row.index)}"
    reference = "-" if math.isnan(row.reference) else number(row.reference)
    bound = row.error if row.is_rounding else row.uncertainty
    if (row.is_rounding or row.verdict == INCONCLUSIVE) and math.isfinite(bound):
        reference = f"{_rounded(row.reference, bound)} +- {bound:.0e}"
    verdict = row.verdict
    if row.nearby:
        verdict += ", at a nearby point"
    elif row.detail and (row.verdict in (*DOUBTFUL, WRONG) or row.detail.endswith(" alone")):
        verdict += f"{'' if ', right in' in row.detail else ';'} {row.detail}"
    return str(row.order), by, _path(row), row.mode, value, reference, error, relative, verdict


def _path(row: DerivativeRow) -> str:
    is_derivative = row.path != "upstream" or row.order > 1
    return PATHS.get(row.path, row.path) if is_derivative else "linearity"


def _rounded(value: float, error: float) -> str:
    """Return a number with the digits that an error leaves."""
    if not value or not error:
        return number(value)
    digits = math.floor(math.log10(abs(value))) - math.floor(math.log10(error)) + 1
    return f"{value:.{min(digits, 6)}g}" if digits > 0 else "0"


def _errors(row: DerivativeRow) -> tuple[str, str]:
    """Return the absolute and the relative error; bounds where only rounding differs."""
    size = max(abs(row.reference), abs(row.value or 0.0))
    if not row.false and row.error <= 1e-6 * (size or 1.0):
        return f"< {1e-6 * (size or 1.0):.0e}", "< 1e-06"
    return f"{row.error:.3g}", "rounding" if row.is_rounding else f"{row.relative_error:.2g}"


def _broken(report: GradientReport | RuleReport) -> list[str]:
    """Return the properties that fail, in a few words each."""
    return [prop.detail.partition(":")[0] for prop in report.properties if prop.holds is False]


def _references(rows: Sequence[DerivativeRow]) -> list[str]:
    """Return sentences: what the rows of each order, and those of linearity, are compared with."""
    orders: dict[str, list[str]] = {}
    for order in sorted({row.order for row in rows}):
        own = [row for row in rows if row.order == order and row.kind not in ("", LINEARITY)]
        kinds = dict.fromkeys(row.kind for row in own)
        texts = []
        for kind in kinds:
            mine = [row for row in own if row.kind == kind]
            names = in_words(dict.fromkeys(row.argument for row in mine))
            texts.append(f"{kind}{f' for {names}' * (len(kinds) > 1)}{_digits(mine)}")
        orders.setdefault(", and ".join(texts), []).append(str(order))
    sentences = []
    for text, numbers in orders.items():
        subject = f"Orders {in_words(numbers)} are" if numbers[1:] else f"Order {numbers[0]} is"
        sentences += [f"{subject} compared with {text}."] * bool(text)
    for path, words in LINEAR.items():
        mine = [row for row in rows if row.kind == LINEARITY and _path(row) == path]
        sentences += [f"{words}{_digits(mine)}."] * bool(mine)
    return sentences


def _digits(rows: Sequence[DerivativeRow]) -> str:
    digits = min((row.digits for row in rows if row.digits), default=0)
    return f" ({digits} digits)" * bool(digits)


def _lines(report: GradientReport) -> str:
    """Return a line each for references, properties and rules."""
    lines = [" ".join(_references(report.rows)), report.along]
    false = report.first_false_order
    if false and any(row.verdict == TRUE and row.order - 1 == false for row in report.rows):
        lines.append(
            f"Because the gradient of order {false} is wrong, `ok` at order {false + 1} means only "
            "that this wrong gradient is differentiated correctly."
        )
    points = dict.fromkeys(row.nearby for row in report.rows if row.nearby)
    lines += [f"The nearby point is {point}." for point in points]
    if report.against is not None:
        name = getattr(report.against, "__name__", type(report.against).__name__)
        site = source_line(report.against)
        location = f" ({where(site)})" if Path(site[0]).is_file() and not is_ours(site[0]) else ""
        lines.append(
            f"The reference of order 1 is the derivative of the surrogate `{name}`{location}."
        )
    passed = [prop.name for prop in report.properties if prop.holds]
    lines += [f"Passed: {'; '.join(passed)}."] if passed else []
    failed = [prop.detail for prop in report.properties if prop.holds is False]
    said = [finding.text.lower() for finding in report.findings]
    lines += [
        f"Failed: {text}." for text in failed if not any(text.lower() in words for words in said)
    ]
    for rule in report.rules:
        false = rule.first_false_order
        verdict = "is correct" if false is None else f"is wrong at order {false}"
        if false is not None and rule.order > 1:
            verdict += f", which is order {false + rule.order - 1} of `{report.name}`"
        if rule.rows and not rule.conclusive:
            verdict = "is inconclusive"
        if not rule.rows:
            verdict = "was not checked"
        verdict += "".join(f"; {words}" for words in _broken(rule))
        lines.append(f"On its own, the rule of `{rule.name}` ({rule.site}) {verdict}.")
    return "\n".join(filter(None, lines))
