"""Lists of functions that work on tensors: NumPy's, and the functions of other libraries'
namespaces.

``python -m tinygrad_cg.numpy`` prints them. NumPy's overridable functions are listed from the
registered names: *recorded* functions are operations with gradients at every order, *answers* never
have gradients (questions, indices, files) and run on the values, *refused* functions raise a
TypeError that names the nearest supported function. ``python -m tinygrad_cg.numpy keras.ops`` lists
the missing names of a namespace of TensorFlow, Keras, the array API standard or autograd.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.testing.overrides import (
    get_overridable_numpy_array_functions,
    get_overridable_numpy_ufuncs,
)

from .._core.sections import read_sections
from .._ops.protocol import ANSWERED_BY_NUMPY, functions, name_of, public, ufuncs

_SECTIONS = read_sections(__file__)
NAMES = {name: text for name, text in _SECTIONS.items() if not name.startswith("without: ")}
"""Functions by namespace, separated by white space."""
LEFT_OUT = {name[9:]: text for name, text in _SECTIONS.items() if name not in NAMES}
"""Names that are left out on purpose, by reason."""
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
    table = {_row(ufunc, True) for ufunc in get_overridable_numpy_ufuncs()}
    table |= {_row(function, False) for function in get_overridable_numpy_array_functions()}
    return sorted(table, key=lambda row: (not row.is_ufunc, row.name))


def _row(function: Any, is_ufunc: bool) -> CoverageRow:
    name = function.__name__ if is_ufunc else name_of(function)
    function = function if is_ufunc else public(function)
    if function in (ufuncs if is_ufunc else functions):
        status = RECORDED
    elif function in ANSWERED_BY_NUMPY:
        status = ANSWERS
    else:
        of_others = name.startswith(("_", *_OTHER_MODULES)) or name in _OTHER_NAMES
        status = OTHER if of_others else REFUSED
    return CoverageRow(name, is_ufunc, status)


def counts(table: Sequence[CoverageRow]) -> dict[str, int]:
    """Return the number of rows of each status."""
    return {
        status: sum(row.status == status for row in table)
        for status in (RECORDED, ANSWERS, REFUSED, OTHER)
    }


class NamespaceCoverage(NamedTuple):
    """The functions of a namespace: those that are here, those that are not, and those left out.

    `refused` has the reason for each of the last.
    """

    present: tuple[str, ...]
    absent: tuple[str, ...]
    refused: dict[str, str]


def of_namespace(name: str) -> NamespaceCoverage:
    """Return which functions of another library's namespace are here.

    Raises KeyError for a namespace that is not in `NAMES`.
    """
    module = _module(name)
    names = NAMES[name].split()
    present = tuple([name for name in names if hasattr(module, name)])
    reasons = {name: reason for reason, text in LEFT_OUT.items() for name in text.split()}
    missing = [name for name in names if name not in present]
    refused = {name: reasons[name] for name in missing if name in reasons}
    return NamespaceCoverage(present, tuple([x for x in missing if x not in refused]), refused)


def _module(name: str) -> Any:
    """Return our module for another library's namespace: "tf.math", "array API linalg"."""
    library, *path = name.replace("array API", "numpy").replace(" ", ".").split(".")
    if path[-1:] == ["special"]:  # an attribute of a module, not a module in a package
        return _module(name.rpartition(".")[0]).special
    return import_module(".".join(["tinygrad_cg", *([library] if library != "tf" else []), *path]))


def _print_namespaces(names: Sequence[str], fully: bool) -> None:
    for name in names:
        report = of_namespace(name)
        count = sum(map(len, report))
        print(
            f"{name}: {len(report.present)} of {count} functions, "
            f"{len(report.absent)} absent, {len(report.refused)} left out"
        )
        if fully:
            for missing in report.absent:
                print(f"  {missing:40} absent")
            for missing, reason in report.refused.items():
                print(f"  {missing:40} left out: {reason}")


def main(argv: Sequence[str] | None = None) -> None:
    """Print the list, or the part of it that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tinygrad_cg.numpy", description=__doc__)
    statuses = (RECORDED, ANSWERS, REFUSED, OTHER)
    parser.add_argument(
        "which", nargs="?", metavar="STATUS or NAMESPACE", choices=(*statuses, *NAMES)
    )
    wanted = parser.parse_args(argv).which
    if wanted in NAMES:
        return _print_namespaces([wanted], True)
    table = rows()
    for title, is_ufunc in (("universal functions", True), ("other functions", False)):
        part = [row for row in table if row.is_ufunc is is_ufunc]
        summary = ", ".join(f"{count} {status}" for status, count in counts(part).items())
        print(f"{len(part)} {title} of NumPy {np.__version__}: {summary}")
        for row in part:
            if wanted in (None, row.status):
                print(f"  {row.name:40} {row.status}")
    if wanted is None:
        _print_namespaces(list(NAMES), False)
    return None
