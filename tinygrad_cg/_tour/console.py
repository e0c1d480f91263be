"""Printing of the tour: headings, paragraphs and tables that fit into 88 columns."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

WIDTH = 88


def heading(title: str) -> None:
    print(f"\n{title}\n{'=' * len(title)}")


def say(text: str) -> None:
    """Print one paragraph, wrapped."""
    print("\n" + textwrap.fill(" ".join(text.split()), WIDTH))


def code(text: str) -> None:
    """Print lines as they stand, indented."""
    print("\n" + textwrap.indent(textwrap.dedent(text).strip("\n"), "    "))


def lines(text: str) -> None:
    """Print lines as they stand, indented by less than code."""
    print("\n" + textwrap.indent(text.strip("\n"), "  "))


def number(value: Any) -> str:
    """Return a tensor or float, short; None stays None."""
    return "None" if value is None else f"{float(value):.7g}"


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under their headers: the first column to the left, the others to the right."""
    lines = [list(headers), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headers))]
    lines.insert(1, ["-" * width for width in widths])
    print()
    for first, *others in lines:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        print("  " + "  ".join([first.ljust(widths[0]), *cells]).rstrip())
