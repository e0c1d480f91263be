"""Reports of checks, as text and as HTML."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .._rules.definition import source_line
from ..errors import GradientError, is_ours, location_of
from .check import Property
from .recorder import SourceLine
from .verdicts import FAILED, INCONCLUSIVE, KINK, DerivativeRow

HEADINGS = ("order", "by", "path", "mode", "value", "reference", "error", "relative", "verdict")
PATHS = {"both": "f(x)**2"}
FALSE_ROW = '<tr style="background:#fbdedb;color:#7a1410">'  # readable on dark pages, too


class Finding(NamedTuple):
    """One finding: in words, and as corrected code where there is any."""

    text: str
    code: str | None = None
    remark: bool = False
    """True if it is no fault: the derivatives are right."""


@dataclass
class RuleReport:
    """One custom gradient that ran, checked by itself.

    `order` is the order of derivatives that its rule serves in the whole: 2 if a rule uses it.
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
        """Return whether anything could be found out at all."""
        return any(row.verdict not in (INCONCLUSIVE, KINK) for row in self.rows)


@dataclass
class GradientReport:
    """The result of `check_gradients`.

    `rows` has one entry for each order, argument, path and mode, `properties` the structural
    checks, `rules` each custom gradient by itself, and `findings` the diagnosis. `ok` says
    that nothing is false, `first_false_order` is the order at which the rules stop giving the
    derivative (None: they never do, as far as was checked). `against` is the surrogate, whose
    derivative was the reference of order 1, if there was one. `undecided` lists
    the orders and arguments without a conclusive row, which `assert_gradients` does not accept.
    """

    name: str
    order: int
    rows: list[DerivativeRow] = field(default_factory=list)
    properties: list[Property] = field(default_factory=list)
    rules: list[RuleReport] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    against: Callable[..., Any] | None = None

    first_false_order = RuleReport.first_false_order
    conclusive = RuleReport.conclusive

    @property
    def undecided(self) -> list[tuple[int, str]]:
        """Return the orders and arguments of which nothing could be found out on the path x."""
        decided: dict[tuple[int, str], bool] = {}
        for row in self.rows:
            if row.path == "x" and row.index is None and not row.nearby:
                is_decided = row.verdict not in (INCONCLUSIVE, KINK)
                key = row.order, row.argument
                decided[key] = decided.get(key, False) or is_decided
        return [key for key, is_decided in decided.items() if not is_decided]

    @property
    def ok(self) -> bool:
        broken = any(prop.holds is False for prop in self.properties)
        return self.first_false_order is None and not broken

    def raise_if_wrong(self) -> GradientReport:
        """Return the report itself; raise a `GradientError` with it if anything is false."""
        if not self.ok:
            raise GradientError(f"\n{self}", function=self.name, report=self)
        return self

    def summary(self) -> str:
        """Return the first line: up to which order the rules are right."""
        false = self.first_false_order
        if false is not None:
            return f"{self.name}: false from order {false} on"
        if not self.ok:
            return f"{self.name}: something is wrong"
        if self.rows and not self.conclusive:
            return f"{self.name}: nothing can be said"
        unsure = any(row.verdict in (INCONCLUSIVE, KINK) for row in self.rows)
        words = f"{self.name}: true to order {self.order}"
        return f"{words}, as far as can be said" if unsure else words

    def __str__(self) -> str:
        parts = [self.summary()]
        if self.rows:
            cells = [HEADINGS, *map(_cells, self.rows)]
            widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
            texts = (map("{:{}{}}".format, line, "><<<>>>><", widths) for line in cells)
            parts.append("\n".join("  ".join(text).rstrip() for text in texts))
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
    path = PATHS.get(row.path, row.path)
    reference = "-" if math.isnan(row.reference) else number(row.reference)
    if row.verdict == INCONCLUSIVE and math.isfinite(row.uncertainty):
        reference += f" +- {row.uncertainty:.0e}"
    verdict = row.verdict
    if row.nearby:
        verdict += ", at a nearby point"
    elif row.detail and row.verdict in (INCONCLUSIVE, KINK):
        verdict += f"; {row.detail}"
    return str(row.order), by, path, row.mode, value, reference, error, relative, verdict


def _errors(row: DerivativeRow) -> tuple[str, str]:
    """Return the absolute and the relative error; bounds where only rounding differs."""
    size = max(abs(row.reference), abs(row.value or 0.0))
    if not row.false and row.error <= 1e-6 * (size or 1.0):
        return f"< {1e-6 * (size or 1.0):.0e}", "< 1e-06"
    return f"{row.error:.3g}", f"{row.relative_error:.2g}"


def _lines(report: GradientReport) -> str:
    """Return a line each for references, properties and rules."""
    kinds = dict.fromkeys(row.kind for row in report.rows if row.kind)
    texts: list[str] = []
    for kind in kinds:
        digits = [row.digits for row in report.rows if row.kind == kind and row.digits]
        unit = "" if any(" to " in text for text in texts) else " digits"
        texts.append(f"{kind} to {min(digits)}{unit}" if digits else kind)
    lines = [f"References: {', '.join(texts)}."] if kinds else []
    points = dict.fromkeys(row.nearby for row in report.rows if row.nearby)
    lines += [f"The nearby point: {point}." for point in points]
    if report.against is not None:
        name = getattr(report.against, "__name__", type(report.against).__name__)
        site = source_line(report.against)
        location = f" ({where(site)})" if Path(site[0]).is_file() and not is_ours(site[0]) else ""
        words = "Order 1 is compared with the derivative of the surrogate"
        lines.append(f"{words} `{name}`{location}.")
    fulfilled = [prop.name for prop in report.properties if prop.holds]
    lines += [f"Holds: {'; '.join(fulfilled)}."] if fulfilled else []
    failed = [prop for prop in report.properties if prop.holds is False]
    lines += [f"Fails: {prop.name}: {prop.detail}." for prop in failed]
    for rule in report.rules:
        false = rule.first_false_order
        verdict = "right by itself" if false is None else f"false by itself at order {false}"
        if rule.rows and not rule.conclusive:
            verdict = "nothing can be said of it by itself"
        verdict += "".join(
            f"; fails: {prop.name}" for prop in rule.properties if prop.holds is False
        )
        lines.append(f"Rule of `{rule.name}` ({rule.site}), for order {rule.order}: {verdict}.")
    return "\n".join(lines)


def where(site: SourceLine) -> str:
    """Return a line as reports name it: the file without its folder, or a notebook's cell."""
    location = location_of(*site)
    return location if location.startswith("Cell") else f"{Path(site[0]).name}:{site[1]}"
