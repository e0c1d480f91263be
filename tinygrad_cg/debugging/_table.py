"""Tables of traces: text, and HTML for notebooks."""

from __future__ import annotations

import linecache
import os
from html import escape
from typing import Any, NamedTuple

from .._core.wording import in_columns
from ._watcher import CallSite, Line

HEADERS = ("", "way", "order", "operation", "in the rule of", "operands", "result")
HEADERS += ("norm", "us", "not finite", "line")
_NUMBERS = ("order", "norm", "us")


class TableRow(NamedTuple):
    """Events of one call site in a trace: one, or one per repeat of the part at `mark`."""

    site: CallSite
    mark: str
    events: list[Any]

    @property
    def finite(self) -> bool:
        return all(event.finite for event in self.events)

    def cells(self) -> tuple[str, ...]:
        site, events = self.site, self.events
        times = f" x{len(events)}" if len(events) > 1 else ""
        name = {"operation": "", "call": "custom ", "rule": "rule of "}[site.kind] + site.name
        norms = [event.norm for event in events if event.norm is not None]
        low, high = (f"{most(norms):.4g}" if norms else "" for most in (min, max))
        seconds = [event.seconds for event in events if event.seconds is not None]
        counts = {
            "nan": sum(event.nans for event in events),
            "inf": sum(event.infs for event in events),
        }
        line, written = site.line, self.written()
        return (
            self.mark,
            site.way,
            str(site.order),
            name + times,
            site.rule,
            ", ".join(site.inputs),
            ", ".join(site.outputs),
            low if low == high else f"{low} to {high}",
            f"{sum(seconds) * 1e6:.1f}" if seconds else "",
            ", ".join(f"{count} {what}" for what, count in counts.items() if count),
            where(line) if line == written else f"{where(line)} for {where(written)}",
        )

    def written(self) -> Line:
        """Return the line to show; in the rule of an operation, the line of that operation."""
        site = self.site
        inside = site.kind == "operation" and site.line == site.asked
        return site.recorded if inside and site.recorded is not None else site.line


def where(line: Line) -> str:
    """Return a line of user code as ``file:line``."""
    return f"{os.path.basename(line[0])}:{line[1]}"


def source(line: Line) -> str:
    return linecache.getline(*line).strip()


def _select_rows(rows: list[TableRow], limit: int) -> tuple[list[TableRow], int, list[TableRow]]:
    """Return the first rows, the number of those left out, and the last ones."""
    if len(rows) <= limit:
        return rows, 0, []
    return rows[: limit - limit // 2], len(rows) - limit, rows[-(limit // 2) :]


def text(rows: list[TableRow], summary: str, limit: int) -> str:
    first, left_out, last = _select_rows(rows, limit)
    cells = [HEADERS, *[row.cells() for row in (*first, *last)]]
    lines = in_columns(cells, [">" if header in _NUMBERS else "<" for header in HEADERS])
    if left_out:
        lines.insert(1 + len(first), f"... {left_out} more rows ...")
    return "\n".join([*lines, summary])


def html(rows: list[TableRow], summary: str, limit: int) -> str:
    """Return the table in HTML.

    Rows with NaN or infinity stand out; lines show their text.
    """
    first, left_out, last = _select_rows(rows, limit)
    body = [_html_row(row) for row in first]
    if left_out:
        body.append(f'<tr><td colspan="{len(HEADERS)}">... {left_out} more rows ...</td></tr>')
    body += [_html_row(row) for row in last]
    head = "".join(f"<th>{escape(header)}</th>" for header in HEADERS)
    return (
        f"<table><caption>{escape(summary)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table>"
    )


def _html_row(row: TableRow) -> str:
    style = "" if row.finite else ' style="color: #b00020; font-weight: bold"'
    cells = list(map(escape, row.cells()))
    cells[-1] += f" <code>{escape(source(row.written()))}</code>"
    sides = ["right" if header in _NUMBERS else "left" for header in HEADERS]
    pairs = zip(sides, cells, strict=True)
    columns = "".join(f'<td style="text-align: {side}">{cell}</td>' for side, cell in pairs)
    return f"<tr{style}>{columns}</tr>"
