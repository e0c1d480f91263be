"""Printing of the tour: headings, paragraphs and tables that fit into 88 columns."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from .._core.wording import in_columns

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
    lines = [headers, *rows]
    lines.insert(1, ["-" * max(map(len, column)) for column in zip(*lines, strict=True)])
    print("", *in_columns(lines, "<" + ">" * (len(headers) - 1)), sep="\n  ")
