"""Traces of passes: a table with one row for each operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ._repeats import Repeat, collapse_repeats
from ._table import TableRow, html, text
from ._watcher import CallSite, Watcher, values


class Event(NamedTuple):
    """One operation, call of a custom gradient, or rule of one, as it was computed.

    Of `site`: kind, name, way, order, rule, inputs, outputs, line, recorded, asked. `norm` is the
    Euclidean norm of all outputs together, None if there are no floats among them; `nans` and
    `infs` count their elements that are not finite. `seconds` is None for a call, whose
    operations are events of their own; that of a rule includes its operations.
    """

    site: CallSite
    norm: float | None
    nans: int
    infs: int
    seconds: float | None

    kind, name, way, order, rule, inputs, outputs, line, recorded, asked = (
        property(attrgetter(f"site.{field}")) for field in CallSite._fields
    )

    @property
    def finite(self) -> bool:
        return not (self.nans or self.infs)


class PassTrace(Watcher):
    """Everything that was computed while it was active. Made by `trace`."""

    label = "debugging.trace"
    limit = 100  # the most rows to show; a longer table lacks its middle

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = []
        self._sites: dict[CallSite, CallSite] = {}

    def sees(self, site: Callable[[], CallSite], inputs: Sequence, outputs: Sequence, seconds: Any):
        call_site = site()
        call_site = self._sites.setdefault(call_site, call_site)
        self.events.append(Event(call_site, *measure(outputs), seconds))

    @property
    def first_nonfinite(self) -> Event | None:
        """Return the first event with a NaN or an infinity among its outputs."""
        return next((event for event in self.events if not event.finite), None)

    @property
    def seconds(self) -> float:
        """Return the time that all operations took together."""
        return sum(event.seconds or 0.0 for event in self.events if event.kind == "operation")

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def rows(self) -> list[TableRow]:
        """Return the rows of the table, repeats collapsed."""
        all_rows: list[TableRow] = []
        remaining = iter(self.events)
        for item in collapse_repeats([event.site for event in self.events]):
            rows = [TableRow(site, mark, []) for site, mark in _flat(item)]
            _fill(item, rows, 0, remaining)
            all_rows += rows
        return all_rows

    def __str__(self) -> str:
        return text(self.rows(), self._summary(), self.limit)

    def _repr_html_(self) -> str:
        return html(self.rows(), self._summary(), self.limit)

    def __repr__(self) -> str:
        return f"<trace of {self._summary()}>"

    def _summary(self) -> str:
        count = sum(event.kind == "operation" for event in self.events)
        first = self.first_nonfinite
        state = "all finite" if first is None else f"the first that is not finite: {first.name}"
        return f"{count} operation{'s' * (count != 1)} in {self.seconds * 1e6:.0f} us, {state}"


def measure(outputs: Sequence) -> tuple[float | None, int, int]:
    """Return the norm of all outputs together, and the numbers of NaNs and infinities."""
    arrays = [array for output in outputs if (array := values(output)) is not None]
    if not arrays:
        return None, 0, 0
    with np.errstate(all="ignore"):
        wide = [np.abs(array).astype(np.float64) for array in arrays]
        norm = float(np.sqrt(sum(float(np.vdot(array, array)) for array in wide)))
        if np.isfinite(norm):
            return norm, 0, 0
        nans = sum(int(np.isnan(array).sum()) for array in wide)
        return norm, nans, sum(int(np.isinf(array).sum()) for array in wide)


def _flat(item: Any) -> list[tuple[CallSite, str]]:
    """Return the call sites of a collapsed item, each with the mark of its repeats."""
    if not isinstance(item, Repeat):
        return [(item, "")]
    leaves = [leaf for part in item.part for leaf in _flat(part)]
    if len(leaves) == 1:
        return leaves
    marks = ["┌", *"│" * (len(leaves) - 2), "└"]
    return [(site, sign + mark) for sign, (site, mark) in zip(marks, leaves, strict=True)]


def _fill(item: Any, rows: list[TableRow], first: int, remaining: Iterator[Event]) -> int:
    """Add the events of an item to its rows, from `first` on; return the row after them."""
    if not isinstance(item, Repeat):
        rows[first].events.append(next(remaining))
        return first + 1
    after = first
    for _ in range(item.count):
        after = first
        for part in item.part:
            after = _fill(part, rows, after, remaining)
    return after


def trace() -> PassTrace:
    """Record everything computed inside a context: ``with tf.debugging.trace() as t:``.

    Operations of the program, of gradient rules in backward passes, and of tangents have a row: the
    way (forward, backward, tangent), the order (how many derivatives have been taken), the rule
    that contains it, dtypes and shapes, the norm of the result, the time in microseconds,
    non-finite values, and your line. Custom gradients have a row for each call and each run of
    their rule, too. ``print(t)`` is the table, which a notebook shows as HTML; repeats are
    collapsed. `t.events` has all rows, `t.first_nonfinite` the first non-finite one.

    Use it anywhere: around tapes, inside them, or around a call of `gradient` only. A `function`
    called inside runs operation by operation. Raises ValueError inside a traced function.
    """
    return PassTrace()
