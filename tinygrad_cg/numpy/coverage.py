"""List of NumPy's overridable functions that work on tensors: made from what is registered.

``python -m tinygrad_cg.numpy`` prints it. *Recorded* functions are operations with gradients at
every order, *answers* have none by nature (questions, indices, files) and run on the values,
*refused* ones raise a TypeError that names the nearest function that works.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.testing.overrides import (
    get_overridable_numpy_array_functions,
    get_overridable_numpy_ufuncs,
)

from .._ops.protocol import ANSWERED_BY_NUMPY, functions, name_of, public, ufuncs

RECORDED, ANSWERS, REFUSED, OTHER = "recorded", "answers", "refused", "not for numbers"
# Of strings, dates, files and records: tensors hold numbers, and none of these can be one.
_OTHER_MODULES = ("lib.recfunctions.", "char.")
_OTHER_NAMES = frozenset(
    (
        *("busday_count", "busday_offset", "is_busday", "datetime_as_string", "isnat"),
        *("frombuffer", "fromfile", "fromiter", "fromstring", "fromfunction", "genfromtxt"),
        *("loadtxt", "count", "endswith", "find", "index", "rfind", "rindex", "startswith"),
        *("str_len", "isalnum", "isalpha", "isdecimal", "isdigit", "islower", "isnumeric"),
        *("isspace", "istitle", "isupper"),
    )
)


class CoverageRow(NamedTuple):
    """One function of NumPy: its name after ``np.``, whether it is a ufunc, what happens."""

    name: str
    is_ufunc: bool
    status: str


def rows() -> list[CoverageRow]:
    """Return all functions that NumPy lets others take over, by name, ufuncs first."""
    found = {_row(ufunc, True) for ufunc in get_overridable_numpy_ufuncs()}
    found |= {_row(function, False) for function in get_overridable_numpy_array_functions()}
    return sorted(found, key=lambda row: (not row.is_ufunc, row.name))


def _row(function: Any, is_ufunc: bool) -> CoverageRow:
    if is_ufunc:
        name = function.__name__
        return CoverageRow(name, True, _status(name, function in ufuncs, None))
    name, found = name_of(function), public(function)
    return CoverageRow(name, False, _status(name, found in functions, found))


def _status(name: str, is_recorded: bool, function: Any) -> str:
    if is_recorded:
        return RECORDED
    if function in ANSWERED_BY_NUMPY:
        return ANSWERS
    of_others = name.startswith(("_", *_OTHER_MODULES)) or name in _OTHER_NAMES
    return OTHER if of_others else REFUSED


def counts(table: Sequence[CoverageRow]) -> dict[str, int]:
    """Return the number of rows of each status."""
    return {
        status: sum(row.status == status for row in table)
        for status in (RECORDED, ANSWERS, REFUSED, OTHER)
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Print the list, or the part of it that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tinygrad_cg.numpy", description=__doc__)
    parser.add_argument("status", nargs="?", choices=(RECORDED, ANSWERS, REFUSED, OTHER))
    wanted = parser.parse_args(argv).status
    table = rows()
    for title, is_ufunc in (("universal functions", True), ("other functions", False)):
        part = [row for row in table if row.is_ufunc is is_ufunc]
        summary = ", ".join(f"{count} {status}" for status, count in counts(part).items())
        print(f"{len(part)} {title} of NumPy {np.__version__}: {summary}")
        for row in part:
            if wanted in (None, row.status):
                print(f"  {row.name:40} {row.status}")
