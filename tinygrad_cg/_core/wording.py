"""Lists in words, and tables in columns, as reports print them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def in_words(names: Iterable[str], word: str = "and") -> str:
    """Return names as a list in words."""
    *others, last = [*names] or [""]
    return f"{', '.join(others)} {word} {last}" if others else last


def in_columns(rows: Sequence[Sequence[str]], signs: Sequence[str]) -> list[str]:
    """Return the lines of a table; a sign for each column: "<" to the left, ">" to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map("{:{}{}}".format, row, signs, widths)).rstrip() for row in rows]
