"""Reading a table of measurements: the one that ships with the package, or the user's own."""

import csv
import io
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tinygrad_cg._core.tracking import track

LEAST_OF_A_CLASS = 4
MAX_VALUE = 1e50  # the loss squares the start, which squares the data


class DataError(Exception):
    """The error for an unusable file; its text is one line for the user."""


class Measurements(NamedTuple):
    """Measurements in their own units, and which of two classes each row belongs to."""

    title: str
    note: str
    features: tuple[str, ...]
    constant: tuple[str, ...]  # columns that were left out, having one value only
    measurements: np.ndarray  # float64, (rows, features)
    labels: np.ndarray  # float64, (rows,): 1.0 for classes[1]
    classes: tuple[str, str]


def load_bundled() -> Measurements:
    """Return the Breast Cancer Wisconsin (Diagnostic) data, with its source and licence."""
    folder = resources.files("tinygrad_cg._tour") / "data"
    note = (folder / "breast_cancer.txt").read_text(encoding="utf-8")
    title, _, rest = note.partition("\n")
    text = (folder / "breast_cancer.csv").read_text(encoding="utf-8")
    return parse(text, "diagnosis", title, rest.strip("\n"))


def load(path: str, target: str) -> Measurements:
    """Read a CSV file with a header; `target` names the column of the two classes."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path}: is not text in UTF-8") from None
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None
    try:
        return parse(text, target, Path(path).name, "")
    except (DataError, csv.Error) as error:
        raise DataError(f"{path}: {error}") from None


def parse(text: str, target: str, title: str, note: str) -> Measurements:
    """Check every cell of a CSV text and make a Dataset of it."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header = [name.strip() for name in next(reader, [])]
    check_header(header, target)
    lines = track(reader, "lines read")
    rows = [(reader.line_num, row) for row in lines if any(cell.strip() for cell in row)]
    for line, row in rows:
        if len(row) != len(header):
            raise DataError(f"line {line} has {len(row)} fields, the header has {len(header)}")
    index = header.index(target)
    classes, labels = read_labels([row[index].strip() for _, row in rows], target)
    columns = [column for column in range(len(header)) if column != index]
    checked = track(rows, "rows checked")
    values = np.array([[cell(line, row[c], header[c]) for c in columns] for line, row in checked])
    varies = np.ptp(values, axis=0) > 0
    if not varies.any():
        raise DataError(f"no column other than {target!r} has more than one value")
    names = np.array(header, object)[columns]
    features, constant = tuple(names[varies]), tuple(names[~varies])
    measurements = np.ascontiguousarray(values[:, varies])
    return Measurements(title, note, features, constant, measurements, labels, classes)


def check_header(header: list[str], target: str) -> None:
    """Check that the header names each column once, and the target among them."""
    if not header:
        raise DataError("is empty; a header line with the names of the columns is needed")
    repeated = [name for name, count in Counter(header).items() if count > 1]
    if repeated:
        raise DataError(f"the header names the column {repeated[0]!r} more than once")
    if target not in header:
        shown = ", ".join(header[:8]) + (", ..." if len(header) > 8 else "")
        raise DataError(f"has no column {target!r}; its columns are {shown}")
    if len(header) == 1:
        raise DataError(f"has no column other than {target!r}")


def read_labels(names: list[str], target: str) -> tuple[tuple[str, str], np.ndarray]:
    """Return the two classes, sorted (as numbers, where they are numbers), and each row's label."""
    counts = Counter(names)
    if "" in counts:
        raise DataError(f"column {target!r} has empty cells")
    if len(counts) != 2:
        raise DataError(f"column {target!r} must have two different values, has {len(counts)}")
    rare, count = counts.most_common()[-1]
    if count < LEAST_OF_A_CLASS:
        raise DataError(
            f"column {target!r} has {rare!r} {count} times; {LEAST_OF_A_CLASS} are needed"
        )
    negative, positive = sorted(counts, key=numbers_first)
    return (negative, positive), np.array([float(name == positive) for name in names])


def numbers_first(name: str) -> tuple[bool, float, str]:
    """Return a sorting key: numbers by value, then other names by their letters."""
    try:
        return (False, float(name), name)
    except ValueError:
        return (True, 0.0, name)


def cell(line: int, text: str, column: str) -> float:
    """Return one measurement; anything but a finite number is an error that says where it is."""
    try:
        value = float(text)
    except ValueError:
        raise DataError(f"line {line}, column {column!r}: {text!r} is not a number") from None
    if not abs(value) <= MAX_VALUE:
        raise DataError(f"line {line}, column {column!r}: {text.strip()} is not finite or huge")
    return value
