"""The diagnosis: words and corrected code, from verdicts and from what was seen on the way."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from .. import nest
from .._core.conversion import is_tensor
from .._rules.definition import source_line
from ..errors import GradientCountError, GradientShapeError, NotLinearError, is_ours
from . import rewrite, verdicts
from .orders import Orders
from .problem import product
from .recorder import Bad, Cut, Recorder, Seen, SourceLine, find_captures
from .report import Finding, RuleReport, number
from .verdicts import DerivativeRow


class Evidence:
    """Everything that was seen in the passes of a check."""

    def __init__(self, orders: Orders):
        self.orders = orders
        self.rows = orders.rows
        recorders = orders.recorders.values()
        self.calls = _merge_calls(recorders)
        self.cuts = list(dict.fromkeys(cut for one in recorders for cut in one.cuts))
        self._attribute()

    def _attribute(self) -> None:
        """Set the verdicts of rows where a derivative is lost, or a rule was not used."""
        for row in self.rows:
            captured = [seen for seen in self.calls if row.argument in seen.captured and seen.used]
            ends = any(one.order <= row.order for one in (*self.cuts, *captured))
            is_cut = row.value is None or (ends and row.path != "upstream")
            if row.verdict == verdicts.WRONG and is_cut:
                row.verdict = verdicts.DETACHED
        lost = {row.order for row in self.rows if row.verdict == verdicts.DETACHED}
        for row in self.rows:
            if row.verdict == verdicts.WRONG and row.path == "both" and row.order in lost:
                row.verdict = verdicts.DETACHED
            if row.verdict == verdicts.TRUE and row.path == "x":
                for seen in self.calls:
                    bypassed = seen.bypassed and not seen.used and seen.order <= row.order
                    if bypassed and row.argument in seen.captured:
                        row.verdict = verdicts.BYPASSED
                        row.detail = f"the rule of `{seen.name}` was not used"

    def find_by_name(self, name: str) -> Seen | None:
        return next((seen for seen in self.calls if seen.name == name), None)


def _merge_calls(recorders: Iterable[Recorder]) -> list[Seen]:
    """Return each custom gradient once, with what was seen of it in any pass."""
    found: dict[tuple, Seen] = {}
    for recorder in recorders:
        for seen in recorder.calls:
            known = found.setdefault(seen.key, seen)
            known.captured |= seen.captured
            known.bypassed |= seen.bypassed
            known.used |= seen.used
            known.standalone &= seen.standalone
            known.through |= seen.through
    return list(found.values())


def diagnose(evidence: Evidence, rules: Sequence[RuleReport]) -> list[Finding]:
    """Return the findings, each once; those that explain most come first."""
    parts = (_errors, _captures, _detachments, _upstreams, _not_finite, _not_linear)
    found = [finding for part in parts for finding in part(evidence)]
    remarks = [Finding(words, remark=True) for words in _remarks(evidence)]
    return list(dict.fromkeys([*found, *_wrong(evidence, rules), *remarks]))


# Errors --------------------------------------------------------------------------------------


def _errors(evidence: Evidence) -> Iterator[Finding]:
    errors: dict[str, tuple[int, Exception]] = {}
    for (order, _, mode), error in evidence.orders.errors.items():
        if not (mode == "forward" and isinstance(error, NotLinearError)):
            errors.setdefault(str(error), (order, error))
    for words, (order, error) in errors.items():
        if isinstance(error, GradientCountError):
            yield _of_count(evidence, order, error)
        elif isinstance(error, GradientShapeError) and error.index is not None:
            yield _of_shape(evidence, error)
        else:
            frames = traceback.extract_tb(error.__traceback__)
            users = [frame for frame in frames if not is_ours(frame.filename)]
            place = f" ({where((users[-1].filename, users[-1].lineno or 0))})" if users else ""
            name = type(error).__name__
            yield Finding(f"Order {order} cannot be computed: {name}: {words}{place}")


def _of_count(evidence: Evidence, order: int, error: GradientCountError) -> Finding:
    name, expected, returned = error.function, error.expected, error.returned
    seen = evidence.find_by_name(name)
    text = (
        f"Order {order} cannot be computed: the rule of `{name}` returns "
        f"{_count_text(returned, 'gradient')}, and `{name}` has {_count_text(expected, 'input')} "
        f"({', '.join(error.names)}). A rule returns one gradient for each input."
    )
    if seen is None:
        return Finding(text)
    if seen.parent is not None and returned > expected:
        text += (
            f" The derivative by the upstream gradient is no business of `{name}`: what the rule "
            f"of `{seen.parent.name}` multiplies it with is differentiated as it stands. A second "
            f"gradient would need a second argument of `{name}`."
        )
        return _written(text, seen.root.function, rewrite.drop_gradients, name, expected)
    if any(is_tensor(leaf) for leaf in nest.flatten(seen.kwargs)):
        text += (
            " Tensors passed by keyword are inputs like any others, after those by position: "
            "return a gradient for each of them, too."
        )
    elif returned < expected:
        text += " Numbers passed by position count: return None for those that have no gradient."
    return Finding(text)


def _of_shape(evidence: Evidence, error: GradientShapeError) -> Finding:
    name, label = error.function, error.label
    text = (
        f"The rule of `{name}` returns a gradient of shape {error.returned} for {label}, which "
        f"has shape {error.expected}."
    )
    seen = evidence.find_by_name(name)
    if not error.remedy or seen is None:
        return Finding(f"{text} A gradient has the shape of its input.")
    text += (
        f" The operation broadcasts {label}, so each of its elements is used several times: the "
        f"gradient is the sum over these uses, over axes {error.axes}."
    )
    change = (rewrite.wrap_gradient, name, error.index or 0, error.remedy)
    return _written(text, seen.root.function, *change)


# What is lost --------------------------------------------------------------------------------


def _captures(evidence: Evidence) -> Iterator[Finding]:
    for seen in evidence.calls:
        rows = [row for row in evidence.rows if row.false and row.argument in seen.captured]
        false = [row for row in rows if row.order >= seen.order]
        if seen.is_gradient_function and false:
            yield _of_gradient_function(evidence, seen, false)
        elif false and seen.used:
            yield _of_captured(evidence, seen, false)
        elif seen.captured and seen.bypassed and not seen.used:
            names = _and(sorted(seen.captured))
            yield Finding(
                f"The rule of `{seen.name}` is not used: no tape watches an argument of it, only "
                f"{names}, which it captures. What you get is the derivative of its own "
                f"operations. Pass {names} as an argument of `{seen.name}`.",
                remark=True,
            )


def _of_gradient_function(evidence: Evidence, seen: Seen, false: list[DerivativeRow]) -> Finding:
    names, upstream = _and(sorted(seen.captured)), seen.names[0] if seen.names else "dy"
    text = (
        f"The inner rule, that of `{seen.name}`, differentiates `{seen.name}` with respect to "
        f"{upstream} only; the direct dependence on {names} is lost. "
        f"{_describe(evidence, false)} Where no tape watches {upstream}, the inner rule is not "
        f"used at all. Let the gradient be differentiated as it is written, or decorate a "
        f"function of {names} inside `{seen.name}`, and multiply its result by {upstream}."
    )
    return _written(text, seen.root.function, rewrite.undecorate, seen.name)


def _of_captured(evidence: Evidence, seen: Seen, false: list[DerivativeRow]) -> Finding:
    names = sorted(seen.captured)
    own = list(find_captures(seen.function))  # the function's own names for what it captures
    name = names[0] if names[0] in own or not own else own[0]
    text = (
        f"`{seen.name}` depends on {_and(names)} not only through its arguments "
        f"({', '.join(seen.names)}): it captures {name}. A rule gives gradients of the arguments "
        f"alone, so what leads through {name} is lost. {_describe(evidence, false)} Pass {name} "
        f"as an argument, and return a gradient for it: the derivative by {name}, times the "
        "upstream."
    )
    return _written(text, seen.root.function, rewrite.add_argument, seen.name, name)


def _detachments(evidence: Evidence) -> Iterator[Finding]:
    false = [r for r in evidence.rows if r.verdict == verdicts.DETACHED and r.path != "upstream"]
    if not false:
        return
    first = min(row.order for row in false)
    explained: dict[SourceLine, Finding] = {}
    for cut in evidence.cuts:
        rows = [row for row in false if row.order >= cut.order]
        if rows and cut.site not in explained:
            explained[cut.site] = _of_cut(evidence, cut, rows)
    yield from explained.values()
    if explained or any(seen.captured for seen in evidence.calls):
        return
    names = sorted({row.argument for row in false if row.order == first})
    why = "the rule returns None for it, or the function does not depend on it in tensors."
    if first > 1:
        why = (
            f"the gradient of order {first - 1} is a constant for tapes. Its rule was computed "
            "from values that are no recorded tensors: NumPy arrays, or tensors that were "
            "computed before the function was called."
        )
    text = f"Nothing leads from {_and(names)} to the gradient of order {first}: {why}"
    yield Finding(f"{text} {_describe(evidence, false)}")


def _of_cut(evidence: Evidence, cut: Cut, rows: list[DerivativeRow]) -> Finding:
    name = cut.definition.name if cut.definition else evidence.orders.problem.name
    of_rule = any(seen.definition is cut.definition for seen in evidence.calls)
    whose = f"The rule of `{name}`" if of_rule else f"`{name}`"
    line = rewrite.line_of(*cut.site)
    place = f"{where(cut.site)}{f': {line}' if line else ''}"
    how = f"uses `{cut.what}`, where derivatives end"
    if cut.what == "NumPy":
        how = "takes NumPy or Python values from a tensor"
    text = (
        f"{whose} {how} ({place}): derivatives of order {cut.order} and higher take this for a "
        f"constant. {_describe(evidence, rows)}"
    )
    seen = evidence.find_by_name(name) if of_rule else None
    function = seen.root.function if seen else evidence.orders.problem.f
    return _written(f"{text} Use tensor operations.", function, rewrite.attach, cut.site[1])


def _upstreams(evidence: Evidence) -> Iterator[Finding]:
    """Find rules of gradient functions that are not the derivative by the upstream."""
    for row in evidence.rows:
        inner = [seen for seen in evidence.calls if seen.order == row.order > 1]
        if row.path == "upstream" and row.verdict in (verdicts.WRONG, verdicts.DETACHED) and inner:
            upstream = inner[-1].names[-1] if inner[-1].names else "dy"
            yield Finding(
                f"Along the upstream gradient the rule of `{inner[-1].name}` is not the "
                f"derivative: expected {_pair(row)}. A gradient is linear in its upstream, so its "
                f"derivative by {upstream}, times ddy, is the gradient itself with ddy in the "
                f"place of {upstream}."
            )
            return


# Numbers -------------------------------------------------------------------------------------


def _not_finite(evidence: Evidence) -> Iterator[Finding]:
    false = [row for row in evidence.rows if row.verdict == verdicts.NOT_FINITE]
    if not false:
        return
    row = min(false, key=lambda row: row.order)
    problem = evidence.orders.problem
    recorder = Recorder([source.name for source in problem.sources], hunting=True)
    try:
        problem.arrays(problem.point, row.order, recorder=recorder)
    except Exception:
        recorder.bad.clear()
    text = (
        f"The derivative of order {row.order} by {row.argument} is {number(row.value)}"
        f"{f' ({row.detail})' if row.detail else ''}, where {number(row.reference)} is right. "
    )
    first = {bad.what: bad for bad in reversed(recorder.bad)}
    for what in ("infinite", "NaN"):
        if what in first:
            text += _of_bad(first[what])
    text += (
        "A rule that is finite itself may be made of parts that are not, and its derivative is "
        "made of these. Write it with operations that stay finite."
    )
    functions = [*(seen.root.function for seen in evidence.calls), problem.f]
    findings = [_written(text, function, rewrite.stabilise) for function in functions]
    yield next((one for one in findings if one.code), findings[0])


def _of_bad(bad: Bad) -> str:
    operands = " and ".join(bad.operands)
    line = rewrite.line_of(*bad.site)
    inside = not line or "check_gradients" in line or "assert_gradients" in line
    place = "" if inside else f" ({where(bad.site)}: {line})"
    does = "overflows" if bad.what == "infinite" else "gives NaN"
    return f"`{bad.operation}` of {operands} {does}{place}. "


def _not_linear(evidence: Evidence) -> Iterator[Finding]:
    for one in evidence.orders.properties:
        if one.name == "linear in the upstream" and one.holds is False:
            row = next(row for row in evidence.rows if row.path == "upstream" and row.order == 1)
            if abs((row.value or 0.0) * 2 - row.reference) <= 1e-6 * abs(row.reference):
                why = "It is the same for every upstream: was the product with it forgotten?"
            else:
                why = (
                    "Clipping, a mask made of the upstream, or its norm do that: what follows is "
                    "no derivative of anything, and forward mode is not defined."
                )
            yield Finding(
                f"The gradient by {row.argument} is not linear in the upstream gradient: "
                f"{row.detail or 'for the sum of two'} it is {number(row.value)}, "
                f"{'not' if row.detail else 'the sum of the two gradients is'} "
                f"{number(row.reference)}. {why}"
            )


def _wrong(evidence: Evidence, rules: Sequence[RuleReport]) -> Iterator[Finding]:
    false = [
        row for row in evidence.rows if row.verdict == verdicts.WRONG and row.path != "upstream"
    ]
    if not false:
        return
    order = min(row.order for row in false)
    if any(row.false and row.order < order for row in evidence.rows):
        return  # a consequence
    rows = [row for row in false if row.order == order]
    rows = [row for row in rows if row.path == "x"] or rows
    before = f" of order {order - 1}" if order > 1 else ""
    text = f"Order {order} is not the derivative{before}. {_describe(evidence, rows)}"
    hint = _describe_swap(evidence, order) or _factor(rows)
    blamed = [rule for rule in rules if rule.first_false_order is not None]
    if blamed:
        one = min(blamed, key=lambda rule: (rule.first_false_order, -rule.order))
        text += f" The rule of `{one.name}` ({one.site}) is false by itself."
    elif inner := [seen for seen in evidence.calls if seen.order == order > 1]:
        name, place = inner[-1].name, where(source_line(inner[-1].function))
        text += (
            f" The rule of `{name}` ({place}) serves this order: it must be the "
            f"derivative of what `{name}` returns."
        )
    yield Finding(f"{text} {hint}".strip())


def _factor(rows: list[DerivativeRow]) -> str:
    ratios = [
        (row.value or 0.0) / row.reference
        for row in rows
        if row.path == "x" and row.mode == "reverse" and row.reference
    ]
    if not ratios or max(ratios) - min(ratios) > 1e-6 * max(map(abs, ratios)):
        return ""
    ratio = ratios[0]
    for simple in (-1.0, 2.0, 0.5, -2.0, -0.5, 3.0, 1 / 3, 4.0, 0.25, 10.0, 0.1, 100.0, 1000.0):
        if math.isclose(ratio, simple, rel_tol=1e-6):
            return "The sign is wrong." if simple == -1 else f"It is {simple:g} times that."
    return ""


def _describe_swap(evidence: Evidence, order: int) -> str:
    """Return a sentence if two arguments have each other's gradients."""
    problem, found = evidence.orders.problem, evidence.orders.first
    rows = {
        row.argument: row
        for row in evidence.rows
        if row.order == order == 1 and row.path == "x" and row.mode == "reverse"
    }
    names = [source.name for source in problem.sources]
    for (i, one), (j, other) in combinations(enumerate(names), 2):
        both_false = {one, other} <= set(rows) and rows[one].false and rows[other].false
        if both_false and problem.point[i].shape == problem.point[j].shape:
            crossed = (product(problem.last[i], found[j]), product(problem.last[j], found[i]))
            wanted = (rows[one].reference, rows[other].reference)
            pairs = zip(crossed, wanted, strict=True)
            if all(math.isclose(a.number, b, rel_tol=1e-6, abs_tol=1e-9) for a, b in pairs):
                return f"The gradients of {one} and {other} stand in each other's place."
    return ""


# Remarks -------------------------------------------------------------------------------------


def _remarks(evidence: Evidence) -> Iterator[str]:
    rows = evidence.rows
    for seen in evidence.calls:
        by_position, by_keyword = (
            any(map(is_tensor, nest.flatten(part))) for part in (seen.args, seen.kwargs)
        )
        if by_keyword and not by_position:
            yield (
                f"`{seen.name}` is called with all its tensors by keyword. Here its rule serves "
                "as always; TensorFlow ignores it, without a word, in such a call: pass tensors "
                "by position in programs that must run there, too."
            )
    for recorder in evidence.orders.recorders.values():
        for message in recorder.adapted:
            yield f"{message[0].upper()}{message[1:]}."
    for row in evidence.orders.inaccurate:
        yield (
            f"Order {row.order} by {row.argument} is right in float64, but in the arguments' "
            "precision it loses more than two digits out of three."
        )
    kinks = sorted({row.argument for row in rows if row.verdict == verdicts.KINK})
    if kinks:
        yield (
            f"There is a kink by {_and(kinks)}: the slopes to both sides differ, so no number is "
            "the derivative. Check at a point beside it."
        )
    if any(row.verdict == verdicts.INCONCLUSIVE for row in rows):
        yield (
            "Where the verdict is 'inconclusive' the difference is smaller than the reference's "
            "own error, or there is no reference: nothing can be said."
        )


def _written(text: str, function: Any, change: Callable[..., None], *facts: Any) -> Finding:
    """Return a finding with the corrected form of a function, where there is one."""
    code = rewrite.corrected(function, change, *facts)
    return Finding(f"{text} Write it like this:" if code else text, code)


# Words ---------------------------------------------------------------------------------------


def _describe(evidence: Evidence, rows: Sequence[DerivativeRow]) -> str:
    """Describe a false row of the lowest order; of both paths together if one is missing."""
    rows = [row for row in rows if row.verdict != verdicts.FAILED and not math.isnan(row.reference)]
    if not rows:
        return ""
    order = min(row.order for row in rows)
    rows = [row for row in rows if row.order == order]
    row = rows[0]
    if row.value is None:
        row = next((row for row in rows if row.path == "both"), row)
    names = [source.name for source in evidence.orders.problem.sources if not source.captured]
    what = f" of {evidence.orders.problem.name}({', '.join(names)})**2"
    what = what.replace("<lambda>", "f") if row.path == "both" else ""
    by = f" by {row.argument}" if len(names) > 1 or not what else ""
    place = f" beside the point, at {row.beside}" if row.beside else ""
    return f"For order {row.order}{what}{by}{place}: expected {_pair(row)}."


def _pair(row: DerivativeRow) -> str:
    return f"{number(row.reference)}, got {number(row.value)}"


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _count_text(count: int, noun: str) -> str:
    return f"{count} {noun}" + "s" * (count != 1)


def where(site: SourceLine) -> str:
    return f"{Path(site[0]).name}:{site[1]}"
