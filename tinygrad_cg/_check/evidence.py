"""The evidence of a check: custom gradients that ran, and the places that detach derivatives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from . import rewrite, verdicts
from .check import Check
from .recorder import CustomCall, DetachSite, Recorder
from .reference import SECOND_DIFFERENCES
from .trials import Trial, try_change
from .verdicts import DerivativeRow


@dataclass
class Evidence:
    """What was seen in the passes of a check.

    `attached` is the code without the detaching places, if that was found to be right. With
    `is_estimator` they seem to belong to an estimator that detaches on purpose.
    """

    check: Check
    calls: list[CustomCall]
    detached: list[DetachSite]
    attached: str | None = None
    is_estimator: bool = False

    @property
    def rows(self) -> list[DerivativeRow]:
        return self.check.rows


def gather_evidence(check: Check) -> Evidence:
    """Return the evidence of a check, and set the verdicts of its rows that follow from it."""
    recorders = check.recorders.values()
    points = [point for recorder in recorders for point in recorder.detached]
    evidence = Evidence(check, _merge_calls(recorders), list(dict.fromkeys(points)))
    _attribute(evidence)
    return evidence


def _merge_calls(recorders: Iterable[Recorder]) -> list[CustomCall]:
    """Return each custom gradient once, with what was seen of it in any pass."""
    merged: dict[tuple, CustomCall] = {}
    for recorder in recorders:
        for seen in recorder.calls:
            first = merged.setdefault(seen.key, seen)
            first.captured |= seen.captured
            first.bypassed |= seen.bypassed
            first.used |= seen.used
            first.standalone &= seen.standalone
            first.through |= seen.through
    return list(merged.values())


def _attribute(evidence: Evidence) -> None:
    """Set the verdicts of rows where a derivative is lost, or a rule was not used."""
    rows = evidence.rows
    first = min((row.order for row in rows if row.false), default=0)
    is_taken = any(recorder.taken for recorder in evidence.check.recorders.values())
    is_taken &= first > 1 and not any(seen.order > 1 for seen in evidence.calls)
    for row in rows:
        captured = [seen for seen in evidence.calls if row.argument in seen.captured and seen.used]
        ends = any(end.order <= row.order for end in (*evidence.detached, *captured))
        if is_taken and row.order == first and row.kind != SECOND_DIFFERENCES:
            ends = True  # of a gradient that is right, not at this point only
        is_detached = row.value is None or (ends and row.path != "upstream")
        if row.verdict == verdicts.WRONG and is_detached:
            row.verdict = verdicts.DETACHED
    on_x = [row for row in rows if (row.path, row.mode) == ("x", "reverse")]
    valued = {(row.order, row.argument) for row in on_x if row.value is not None}
    for row in rows:  # the tangent of a gradient of zeros
        is_zero = row.value is None and (row.order, row.argument) in valued
        if is_zero and (row.verdict, row.mode) == (verdicts.DETACHED, "forward"):
            row.verdict = verdicts.WRONG
    lost = {row.order for row in rows if row.verdict == verdicts.DETACHED}
    for row in rows:
        if row.verdict == verdicts.WRONG and row.path == "both" and row.order in lost:
            row.verdict = verdicts.DETACHED
        if row.verdict == verdicts.TRUE and row.path == "x":
            for seen in evidence.calls:
                bypassed = seen.bypassed and not seen.used and seen.order <= row.order
                if bypassed and row.argument in seen.captured:
                    row.verdict = verdicts.BYPASSED
                    row.detail = f"the rule of `{seen.name}` was not used"


def acquit_detached(evidence: Evidence) -> None:
    """Drop the detaching places without which the derivatives are just as wrong.

    Those are blamed whose removal makes every order right, if there are such; then `attached` is
    the code without them. They have no part in a fault of an earlier order: after one they are
    blamed if a derivative is None, and the later orders become right, which are compared with the
    derivatives of the wrong one.
    """
    rows = evidence.rows
    if not any(row.verdict == verdicts.DETACHED for row in rows):
        return
    first = min(row.order for row in rows if row.false)
    roots = {id(seen): seen for seen in (_root_of(evidence, p) for p in evidence.detached)}
    for seen in roots.values():
        points = [point for point in evidence.detached if _root_of(evidence, point) is seen]
        since = 1 if any(point.order <= first for point in points) else first + 1
        if since > 1 and not any(row.false and row.value is None for row in rows):
            _drop(evidence, points)
            continue
        trial = _without(evidence, seen, points, since)
        if trial is None or trial.check is None:
            continue
        if _is_as_wrong(rows, trial.check, points):
            _drop(evidence, points)
        if not trial.right:
            continue
        for point in list(points):
            others = [other for other in points if other.site != point.site]
            less = _without(evidence, seen, others, since) if others else None
            if less is not None and less.right:
                _drop(evidence, [other for other in points if other.site == point.site])
                points, trial = others, less
        function = evidence.check.problem.f if seen is None else seen.function
        evidence.is_estimator = rewrite.is_estimator(function)
        evidence.attached = None if evidence.is_estimator or since > 1 else trial.code


def _root_of(evidence: Evidence, point: DetachSite) -> CustomCall | None:
    calls = (seen.root for seen in evidence.calls if seen.definition is point.definition)
    return next(calls, None)


def _without(
    evidence: Evidence, seen: CustomCall | None, points: list[DetachSite], since: int
) -> Trial | None:
    lines = dict.fromkeys(point.site[1] for point in points)
    return try_change(evidence.check, seen, rewrite.attach, *lines, since=since)


def _drop(evidence: Evidence, points: list[DetachSite]) -> None:
    evidence.detached = [point for point in evidence.detached if point not in points]
    for row in evidence.rows:
        if row.verdict == verdicts.DETACHED:
            row.verdict = verdicts.WRONG
    _attribute(evidence)


def _is_as_wrong(rows: Sequence[DerivativeRow], trial: Check, points: list[DetachSite]) -> bool:
    """Return whether the first wrong rows without detaching places are the same as with them.

    Only rows of the kinds that the trial has count. Not if values are taken there all the same.
    """
    kinds = {(row.path, row.mode) for row in trial.rows}

    def faults(all_rows: Sequence[DerivativeRow]) -> dict:
        false = [row for row in all_rows if row.false and row.order >= trial.since]
        false = [row for row in false if (row.path, row.mode) in kinds]
        first = min((row.order for row in false), default=0)
        return {
            (row.order, row.argument, row.path, row.mode): row.value
            for row in false
            if row.order == first
        }

    before, after = faults(rows), faults(trial.rows)
    again = {point for recorder in trial.recorders.values() for point in recorder.detached}
    is_same = before.keys() == after.keys() and all(
        (before[key] is None) == (after[key] is None)
        and math.isclose(before[key] or 0.0, after[key] or 0.0, rel_tol=1e-6)
        for key in before
    )
    return is_same and (not before or len(again) < len(points))
