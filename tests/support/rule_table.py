"""A table of custom gradients to check: what is false of each, and the words that name the cause.

`RULES` is filled by `right_rules` and `wrong_rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from tinygrad_cg._check import GradientReport

WRONG = "wrong"


class Rule(NamedTuple):
    """A function with a rule, where it is checked, and what a report must say.

    `false` has each false row: the order, the argument with the index of an element, the path
    unless that is x, the mode if the other one is not false, "nearby" for the second point, and
    the verdict unless that is "wrong". An asterisk after the argument stands for what
    follows of it: the row of the outputs' squares of the next order, too. `doubtful` has the
    verdicts besides "ok" of rows that are not false. `words` stand in the report.
    """

    f: Callable[..., Any]
    args: tuple
    false: tuple[str, ...]
    words: tuple[str, ...]
    doubtful: tuple[str, ...]
    options: dict[str, Any]

    @property
    def is_right(self) -> bool:
        return not self.false


RULES: dict[str, Rule] = {}


def add(
    f: Callable[..., Any],
    *args: Any,
    false: Sequence[str] | str = (),
    words: Sequence[str] | str = (),
    doubtful: Sequence[str] | str = (),
    at: str = "",
    **options: Any,
) -> None:
    """Enter a rule into the table; `at` tells entries of one function from each other."""
    name = f"{getattr(f, '__name__', type(f).__name__)}{at and ' at '}{at}"
    assert name not in RULES, name
    if isinstance(false, str):
        false = (false,)
    false = [part for text in false for part in _with_consequence(text)]
    texts = [
        (field,) if isinstance(field, str) else tuple(field) for field in (false, words, doubtful)
    ]
    RULES[name] = Rule(f, args, *texts, options)


wrong = partial(add, false="1 x*")


def _with_consequence(text: str) -> tuple[str, ...]:
    first = text.replace("*", "", 1)
    if first == text:
        return (text,)
    order, _, rest = text.partition(" ")
    argument, _, nearby = rest.partition("*")
    return first, f"{int(order) + 1} {argument} both{nearby.partition(':')[0]}"


def false_rows(report: GradientReport) -> set[str]:
    """Return the false rows of a report, as `Rule` has them."""
    modes: dict[str, set[str]] = {}
    path_of: dict[str, str] = {}
    for row in report.rows:
        if not row.false:
            continue
        index = "" if row.index is None else str(list(row.index))
        path = "" if row.path == "x" else f" {row.path}"
        where = f"{row.order} {row.argument}{index}{path}{' nearby' if row.nearby else ''}"
        verdict = "" if row.verdict == WRONG else f": {row.verdict}"
        modes.setdefault(f"{where}|{verdict}", set()).add(row.mode)
        path_of[f"{where}|{verdict}"] = row.path
    rows = set()
    for text, those in modes.items():
        both = len(those) == 2 or path_of[text] != "x" or "[" in text
        rows.add(text.replace("|", "" if both else f" {min(those)}"))
    return rows
