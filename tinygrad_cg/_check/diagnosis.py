"""The diagnosis: words and corrected code, from verdicts and from what was seen on the way."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from .. import nest
from .._core.conversion import is_tensor
from .._rules.definition import source_line
from ..errors import GradientCountError, GradientShapeError, NotLinearError, is_ours, users_line
from . import rewrite, verdicts
from .check import REPEATS, Check
from .patterns import Explanation, describe_patterns, describe_upstreams
from .problem import product
from .recorder import Bad, Cut, Recorder, Seen, SourceLine, find_captures
from .reference import SECOND_DIFFERENCES
from .report import Finding, RuleReport, number, where
from .state import name_overwritten, name_randomness
from .surrogates import recognise_surrogate
from .trials import Trial, try_change
from .verdicts import DerivativeRow

CONSTANT = ("round", "floor", "ceil", "sign")  # the derivative is 0: nothing is cut off by them


class Evidence:
    """Everything that was seen in the passes of a check."""

    def __init__(self, check: Check):
        self.check = check
        self.rows = check.rows
        recorders = check.recorders.values()
        self.calls = _merge_calls(recorders)
        cuts = [cut for recorder in recorders for cut in recorder.cuts if cut.what not in CONSTANT]
        self.cuts = list(dict.fromkeys(cuts))
        self.without_cuts: str | None = None
        self.is_estimator = False  # whether they belong to an estimator, as it looks
        self._attribute()

    def _attribute(self) -> None:
        """Set the verdicts of rows where a derivative is lost, or a rule was not used."""
        for row in self.rows:
            captured = [seen for seen in self.calls if row.argument in seen.captured and seen.used]
            ends = any(end.order <= row.order for end in (*self.cuts, *captured))
            is_cut = row.value is None or (ends and row.path != "upstream")
            if row.verdict == verdicts.WRONG and is_cut:
                row.verdict = verdicts.DETACHED
        on_x = [row for row in self.rows if (row.path, row.mode) == ("x", "reverse")]
        valued = {(row.order, row.argument) for row in on_x if row.value is not None}
        for row in self.rows:  # the tangent of a gradient of zeros
            is_zero = row.value is None and (row.order, row.argument) in valued
            if is_zero and (row.verdict, row.mode) == (verdicts.DETACHED, "forward"):
                row.verdict = verdicts.WRONG
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

    def acquit_cuts(self) -> None:
        """Drop the cuts without which the derivatives are as false as with them.

        Those are blamed whose removal makes every order right, if there are such, with the code
        `without_cuts`. They have no part in a fault of an order before them.
        """
        false = [row for row in self.rows if row.verdict == verdicts.DETACHED]
        first = min((row.order for row in self.rows if row.false), default=0)
        roots = {id(seen): seen for seen in map(self._root_of, self.cuts)}
        for seen in roots.values() if false else ():
            cuts = [cut for cut in self.cuts if self._root_of(cut) is seen]
            is_later = all(cut.order > first for cut in cuts)
            trial = self._without(seen, cuts, compare=not is_later)
            if trial is None or trial.check is None:
                continue
            if not trial.right:
                if is_later or _same_faults(self.rows, trial.check.rows):
                    self._drop(cuts)
                continue
            for cut in list(cuts):
                others = [other for other in cuts if other.site != cut.site]
                less = self._without(seen, others) if others else None
                if less is not None and less.right:
                    self._drop([other for other in cuts if other.site == cut.site])
                    cuts, trial = others, less
            function = self.check.problem.f if seen is None else seen.function
            self.is_estimator = rewrite.is_estimator(function)
            self.without_cuts = None if self.is_estimator else trial.code

    def _root_of(self, cut: Cut) -> Seen | None:
        return next((seen.root for seen in self.calls if seen.definition is cut.definition), None)

    def _without(self, seen: Seen | None, cuts: list[Cut], compare: bool = True) -> Trial | None:
        lines = dict.fromkeys(cut.site[1] for cut in cuts)
        return try_change(self.check, seen, rewrite.attach, *lines, compare=compare)

    def _drop(self, cuts: list[Cut]) -> None:
        self.cuts = [cut for cut in self.cuts if cut not in cuts]
        for row in self.rows:
            if row.verdict == verdicts.DETACHED:
                row.verdict = verdicts.WRONG
        self._attribute()

    def location(self, site: SourceLine) -> str:
        """Return a line of the user's in parentheses; nothing for the line of the check itself."""
        if site == users_line()[:2]:
            return ""
        line = rewrite.line_of(*site)
        return f" ({where(site)}: {line})" if line else f" ({where(site)})"

    def find_by_name(self, name: str) -> Seen | None:
        return next((seen for seen in self.calls if seen.name == name), None)


def _merge_calls(recorders: Iterable[Recorder]) -> list[Seen]:
    """Return each custom gradient once, with what was seen of it in any pass."""
    merged: dict[tuple, Seen] = {}
    for recorder in recorders:
        for seen in recorder.calls:
            first = merged.setdefault(seen.key, seen)
            first.captured |= seen.captured
            first.bypassed |= seen.bypassed
            first.used |= seen.used
            first.standalone &= seen.standalone
            first.through |= seen.through
    return list(merged.values())


def _same_faults(rows: Sequence[DerivativeRow], others: Sequence[DerivativeRow]) -> bool:
    """Return whether the false rows of the first false order are the same, with the same values.

    Of rows of the kinds that `others` has.
    """
    kinds = {(row.path, row.mode) for row in others}

    def faults(all_rows: Sequence[DerivativeRow]) -> dict:
        false = [row for row in all_rows if row.false and (row.path, row.mode) in kinds]
        first = min((row.order for row in false), default=0)
        return {
            (row.order, row.argument, row.path, row.mode): row.value
            for row in false
            if row.order == first
        }

    first, two = faults(rows), faults(others)
    return first.keys() == two.keys() and all(
        (first[key] is None) == (two[key] is None)
        and math.isclose(first[key] or 0.0, two[key] or 0.0, rel_tol=1e-6)
        for key in first
    )


def diagnose(evidence: Evidence, rules: Sequence[RuleReport]) -> list[Finding]:
    """Return the findings, each once; those that explain most come first."""
    parts = (_errors, _captures, _detachments, _upstreams, _not_finite, _not_linear)
    deliberate = recognise_surrogate(evidence.check)
    if deliberate is None:
        evidence.acquit_cuts()
    if deliberate is not None:
        parts = (_upstreams, _not_linear)
    if any(prop.name == REPEATS and prop.holds is False for prop in evidence.check.properties):
        return list(_not_repeated(evidence))
    findings = [finding for part in parts for finding in part(evidence)]
    remarks = [Finding(words, remark=True) for words in _remarks(evidence)]
    remarks = [*_values_not_finite(evidence), *remarks]
    return list(dict.fromkeys([*findings, *_wrong(evidence, rules, deliberate), *remarks]))


def _not_repeated(evidence: Evidence) -> Iterator[Finding]:
    """Yield what is said of a function, or a rule, that gives something else each time."""
    for prop in evidence.check.properties:
        if prop.name == REPEATS and prop.holds is False:
            text = f"{prop.detail[0].upper()}{prop.detail[1:]}."
            yield Finding(f"{text} {name_randomness(evidence.check.problem)}".strip())


# Errors --------------------------------------------------------------------------------------


def _errors(evidence: Evidence) -> Iterator[Finding]:
    errors: dict[str, tuple[int, Exception]] = {}
    for (order, _, mode), error in evidence.check.errors.items():
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
            location = f" ({where((users[-1].filename, users[-1].lineno or 0))})" if users else ""
            name = type(error).__name__
            yield Finding(f"Order {order} cannot be computed: {name}: {words}{location}")


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
        return _written(evidence, text, seen, rewrite.drop_gradients, name, expected)
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
    return _written(evidence, text, seen, *change)


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
    return _written(evidence, text, seen, rewrite.undecorate, seen.name)


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
    more = [tensor for key, tensor in find_captures(seen.function).items() if key == name]
    return _written(evidence, text, seen, rewrite.add_argument, seen.name, name, more=more)


def _detachments(evidence: Evidence) -> Iterator[Finding]:
    false = [r for r in evidence.rows if r.verdict == verdicts.DETACHED and r.path != "upstream"]
    if not false:
        return
    first = min(row.order for row in false)
    explained: dict[SourceLine, Finding] = {}
    for cut in evidence.cuts:
        rows = [row for row in false if row.order >= cut.order]
        if rows and cut.site not in explained:
            code = None if explained else evidence.without_cuts
            explained[cut.site] = _of_cut(evidence, cut, rows, code)
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


def _of_cut(evidence: Evidence, cut: Cut, rows: list[DerivativeRow], code: str | None) -> Finding:
    name = cut.definition.name if cut.definition else evidence.check.problem.name
    of_rule = any(seen.definition is cut.definition for seen in evidence.calls)
    whose = f"The rule of `{name}`" if of_rule else f"`{name}`"
    how = f"uses `{cut.what}`, where derivatives end"
    if cut.what == "NumPy":
        how = "takes NumPy or Python values from a tensor"
    text = (
        f"{whose} {how}{evidence.location(cut.site)}: derivatives of order {cut.order} and higher "
        f"take this for a constant. {_describe(evidence, rows)}"
    )
    if evidence.is_estimator:
        _, arguments = evidence.check.problem.call_text
        return Finding(
            f"{text} If this is an estimator that is meant so, declare the function whose "
            f"derivative it gives: `tf.check_gradients({arguments}, against=surrogate)`."
        )
    text += " Use tensor operations."
    return Finding(f"{text} Write it like this:" if code else text, code)


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
    text = (
        f"The derivative of order {row.order} by {row.argument} is {number(row.value)}"
        f"{f' ({row.detail})' if row.detail else ''}, where {number(row.reference)} is right. "
    )
    text += _hunt(evidence, row.order, row.argument) + (
        "A rule that is finite itself may be made of parts that are not, and its derivative is "
        "made of these. Write it with operations that stay finite."
    )
    functions = [*evidence.calls, None]
    findings = [_written(evidence, text, seen, rewrite.stabilise) for seen in functions]
    yield next((finding for finding in findings if finding.code), findings[0])


def _values_not_finite(evidence: Evidence) -> Iterator[Finding]:
    """Say which operation makes values that are infinite or NaN: they have no derivative."""
    problem = evidence.check.problem
    kinds = {
        "NaN" if np.isnan(value).any() else "infinite"
        for value in problem.values
        if not np.isfinite(value).all()
    }
    for kind in sorted(kinds):
        origin = _hunt(evidence, 1, problem.sources[0].name, kind)
        text = f"The value of `{problem.name}` is {kind} itself, so no derivative is defined there."
        yield Finding(f"{text} {origin}".strip(), remark=True)
    unknown = [row for row in evidence.rows if row.verdict == verdicts.INCONCLUSIVE]
    for row in unknown if not kinds else ():
        if row.value is not None and not math.isfinite(row.value) and row.path == "x":
            origin = _hunt(evidence, row.order, row.argument)
            text = f"The derivative of order {row.order} by {row.argument} is {number(row.value)}."
            yield Finding(f"{text} {origin}".strip(), remark=True)
            return


def _hunt(evidence: Evidence, order: int, argument: str, of_values: str = "") -> str:
    """Return words for the first operations that make something infinite, and NaN.

    Of a gradient, or of values that are infinite or NaN themselves: `of_values` says which.
    """
    problem = evidence.check.problem
    recorder = Recorder([source.name for source in problem.sources], hunting=True)
    gradients: list = []
    try:
        gradients = problem.arrays(problem.point, order, recorder=recorder)
    except Exception:
        recorder.bad.clear()
    first = {bad.what: bad for bad in reversed(recorder.bad)}
    kinds = (of_values,) if of_values else ("infinite", "NaN")
    origins = [_of_bad(evidence, first[what]) for what in kinds if what in first]
    arrays = problem.values if of_values else gradients
    location = _location_of(evidence, argument, arrays) if origins else ""
    return f"{'; '.join(origins)}{location}. " if origins else ""


def _location_of(evidence: Evidence, argument: str, arrays: Sequence) -> str:
    """Return words for the first element of an argument where gradients are not finite."""
    problem = evidence.check.problem
    j = next((j for j, source in enumerate(problem.sources) if source.name == argument), 0)
    x = problem.point[j]
    for array in arrays:
        if array is not None and array.shape == x.shape and not np.isfinite(array).all():
            index = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            return f", at {problem.sources[j].name}{list(index) or ''} = {x[index]:.6g}"
    return ""


def _of_bad(evidence: Evidence, bad: Bad) -> str:
    operands = " and ".join(bad.operands)
    does = "overflows" if bad.what == "infinite" else "gives NaN"
    if bad.what == "infinite" and (bad.operation == "divide" or bad.operands == ("0",)):
        does = "is infinite"
    if (
        bad.operation == "divide"
        and bad.what == "NaN"
        and bad.operands[-1:] in (("inf",), ("-inf",))
    ):
        return f"a slope at {bad.operands[-1]} is not known{evidence.location(bad.site)}"
    if bad.operation == "divide" and bad.what == "NaN":
        return f"{' / '.join(bad.operands)} is NaN{evidence.location(bad.site)}"
    return f"`{bad.operation}` of {operands} {does}{evidence.location(bad.site)}"


def _not_linear(evidence: Evidence) -> Iterator[Finding]:
    for prop in evidence.check.properties:
        if prop.name == "linear in the upstream" and prop.holds is False:
            row = next(row for row in evidence.rows if row.path == "upstream" and row.order == 1)
            why = describe_upstreams(evidence.check, row.argument) or (
                "Clipping, a mask made of the upstream, or its norm do that: what follows is "
                "no derivative of anything, and forward mode is not defined."
            )
            yield Finding(
                f"The gradient by {row.argument} is not linear in the upstream gradient: "
                f"{row.detail or 'for the sum of two'} it is {number(row.value)}, "
                f"{'not' if row.detail else 'the sum of the two gradients is'} "
                f"{number(row.reference)}. {why}"
            )


def _wrong(
    evidence: Evidence, rules: Sequence[RuleReport], deliberate: str | None
) -> Iterator[Finding]:
    problem, properties = evidence.check.problem, evidence.check.properties
    kinds = (verdicts.WRONG, verdicts.DETACHED) if deliberate else (verdicts.WRONG,)
    false = [row for row in evidence.rows if row.verdict in kinds and row.path != "upstream"]
    if not false:
        return
    order = min(row.order for row in false)
    if any(row.false and row.order < order for row in evidence.rows):
        return  # a consequence
    rows = [row for row in false if row.order == order]
    rows = [row for row in rows if row.path == "x"] or rows
    if all(row.kind == SECOND_DIFFERENCES for row in rows):
        whose = f"order {order - 2}" if order > 2 else "the function"
        yield Finding(
            f"Order {order - 1} is right at this point alone: order {order}, which is its "
            f"derivative, is not the second derivative of {whose}. {_describe(evidence, rows)}"
        )
        return
    before = f" of order {order - 1}" if order > 1 else ""
    if order == 1 and problem.against is not None:
        before = " of the surrogate"
    text = f"Order {order} is not the derivative{before}. {_describe(evidence, rows)}"
    blamed = [rule for rule in rules if rule.first_false_order is not None]
    explanation = Explanation(_describe_swap(evidence, order), {})
    if not explanation.text and order == 1 and not blamed and not problem.is_one_rule:
        texts = (name_overwritten(seen) for seen in evidence.calls if seen.standalone)
        explanation = Explanation(next(filter(None, texts), ""), {})
    is_linear = all(prop.holds is not False for prop in properties if "linear" in prop.name)
    if not explanation.text and is_linear:
        explanation = describe_patterns(evidence.check, rows)
    hint = " ".join(filter(None, (explanation.text, deliberate)))
    if blamed:
        rule = min(blamed, key=lambda rule: (rule.first_false_order, -rule.order))
        text += f" The rule of `{rule.name}` ({rule.site}) is false by itself."
    elif inner := [seen for seen in evidence.calls if seen.order == order > 1]:
        name, location = inner[-1].name, where(source_line(inner[-1].function))
        text += (
            f" The rule of `{name}` ({location}) serves this order: it must be the "
            f"derivative of what `{name}` returns."
        )
    text = f"{text} {hint}".strip()
    code = None if deliberate else _fixed(evidence, explanation)
    yield Finding(f"{text} Write it like this:" if code else text, code)


def _fixed(evidence: Evidence, explanation: Explanation) -> str | None:
    """Return the corrected code of the checked function, where nothing is in doubt."""
    problem = evidence.check.problem
    is_sure = all(row.verdict in (verdicts.TRUE, verdicts.WRONG) for row in evidence.rows)
    if not explanation.fixes or not is_sure or not problem.is_one_rule:
        return None
    if any(row.nearby or row.index is not None for row in evidence.rows):
        return None

    def change(source: rewrite.SourceCode) -> None:
        for j, fix in explanation.fixes.items():
            fix(source, problem.name, j)

    trial = try_change(evidence.check, None, change)
    return trial.code if trial is not None and trial.right else None


def _describe_swap(evidence: Evidence, order: int) -> str:
    """Return a sentence if two arguments have each other's gradients."""
    problem, gradients = evidence.check.problem, evidence.check.first
    rows = {
        row.argument: row
        for row in evidence.rows
        if row.order == order == 1 and row.path == "x" and row.mode == "reverse"
    }
    names = [source.name for source in problem.sources]
    for (i, name), (j, other) in combinations(enumerate(names), 2):
        both_false = {name, other} <= set(rows) and rows[name].false and rows[other].false
        if both_false and problem.point[i].shape == problem.point[j].shape:
            crossed = (
                product(problem.last[i], gradients[j]),
                product(problem.last[j], gradients[i]),
            )
            wanted = (rows[name].reference, rows[other].reference)
            pairs = zip(crossed, wanted, strict=True)
            if all(math.isclose(a.number, b, rel_tol=1e-6, abs_tol=1e-9) for a, b in pairs):
                return f"The gradients of {name} and {other} stand in each other's place."
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
    for recorder in evidence.check.recorders.values():
        for message in recorder.adapted:
            yield f"{message[0].upper()}{message[1:]}."
    for row in evidence.check.inaccurate:
        yield (
            f"Order {row.order} by {row.argument} is right in float64, but in the arguments' "
            "precision it loses more than two digits out of three."
        )
    kinks = sorted({row.argument for row in rows if row.verdict == verdicts.KINK})
    if kinks:
        yield (
            f"There is a kink by {_and(kinks)}: the slopes to both sides differ, so no number is "
            "the derivative. Check at a nearby point."
        )
    if any(row.verdict == verdicts.INCONCLUSIVE for row in rows):
        yield (
            "Where the verdict is 'inconclusive' the difference is smaller than the reference's "
            "own error, or there is no reference: nothing can be said."
        )


def _written(
    evidence: Evidence,
    text: str,
    seen: Seen | None,
    change: Callable[..., None],
    *facts: Any,
    more: Sequence[Any] = (),
) -> Finding:
    """Return a finding with the corrected form of a function, where one was found to be right."""
    root = seen and (seen if more else seen.root)
    trial = try_change(evidence.check, root, change, *facts, more=more)
    if trial is None or not trial.right:
        return Finding(text)
    return Finding(f"{text} Write it like this:", trial.code)


# Words ---------------------------------------------------------------------------------------


def _describe(evidence: Evidence, rows: Sequence[DerivativeRow]) -> str:
    """Describe a false row of the lowest order; of both paths together if one is missing."""
    rows = [row for row in rows if row.verdict != verdicts.FAILED and not math.isnan(row.reference)]
    if not rows:
        return ""
    order = min(row.order for row in rows)
    rows = [row for row in rows if row.order == order]
    row = rows[0]
    if row.relative_error <= 1e-6:
        row = max(rows, key=lambda row: row.relative_error)  # an element, say
    if row.value is None:
        row = next((row for row in rows if row.path == "both"), row)
    names = [source.name for source in evidence.check.problem.sources if not source.captured]
    what = f" of {evidence.check.problem.name}({', '.join(names)})**2"
    what = what.replace("<lambda>", "f") if row.path == "both" else ""
    index = "" if row.index is None else str(list(row.index))
    by = f" by {row.argument}{index}" if len(names) > 1 or index or not what else ""
    location = f" at a nearby point, {row.nearby}" if row.nearby else ""
    if row.detail.startswith("outside"):
        return (
            f"For order {row.order}{what}{by}{location} there is a kink, and the value lies "
            f"{row.detail}: got {number(row.value)}."
        )
    only = f" ({row.detail})" if "; right in" in row.detail else ""
    return f"For order {row.order}{what}{by}{location}: expected {_pair(row)}{only}."


def _pair(row: DerivativeRow) -> str:
    reference, value = number(row.reference), number(row.value)
    if reference == value:
        reference, value = f"{row.reference:.13g}", f"{row.value:.13g}"
    return f"{reference}, got {value}"


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _count_text(count: int, noun: str) -> str:
    return f"{count} {noun}" + "s" * (count != 1)
