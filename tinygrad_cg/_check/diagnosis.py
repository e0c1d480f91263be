"""The diagnosis: words and corrected code, from verdicts and from the evidence."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, islice
from numbers import Number
from typing import Any

import numpy as np

from .. import nest
from .._core.conversion import is_tensor
from .._core.wording import in_words
from .._rules.definition import source_line
from ..errors import GradientCountError, GradientShapeError, NotLinearError, is_ours, users_line
from . import evaluate, rewrite, verdicts
from .check import DOUBTFUL, REPEATS
from .evidence import Evidence, acquit_detached
from .hypotheses import MAX_NAMED, Fix
from .patterns import Explanation, describe_patterns, describe_upstreams
from .recorder import CustomCall, DetachSite, NonFinite, Recorder, SourceLine, find_captures
from .reference import SECOND_DIFFERENCES
from .report import Finding, RuleReport, number
from .rewrite import quote, where
from .state import name_overwritten, name_randomness
from .surrogates import recognise_surrogate
from .trials import try_change
from .verdicts import DerivativeRow

MAX_REPAIRS = 6  # corrections to try


def diagnose(evidence: Evidence, rules: Sequence[RuleReport]) -> list[Finding]:
    """Return the findings, each once, by their order; those that explain most come first."""
    if not evidence.check.repeats:
        return list(_not_repeated(evidence))
    deliberate = recognise_surrogate(evidence.check)
    if deliberate is None:
        acquit_detached(evidence)
        parts = (
            _errors,
            _captures,
            _detachments,
            _upstreams,
            _not_finite,
            _not_linear,
        )
    else:
        parts = (_upstreams, _not_linear)
    findings = [finding for part in parts for finding in part(evidence)]
    findings += _wrong(evidence, rules, deliberate, findings)
    findings.sort(key=lambda finding: (finding.remark, finding.order))
    findings += _values_not_finite(evidence)
    findings += [Finding(words, remark=True) for words in _remarks(evidence)]
    return list(dict.fromkeys(findings))


def _not_repeated(evidence: Evidence) -> Iterator[Finding]:
    """Describe a function, or a rule, that returns something else each time."""
    for prop in evidence.check.properties:
        if prop.name == REPEATS and prop.holds is False:
            text = f"{prop.detail[0].upper()}{prop.detail[1:]}."
            yield Finding(f"{text} {name_randomness(evidence.check.problem)}".strip())


def _corrected(
    evidence: Evidence,
    text: str,
    seen: CustomCall | None,
    change: Callable[..., None],
    *facts: Any,
    more: Sequence[Any] = (),
) -> Finding:
    """Return a finding, with the corrected form of a function if that was found to be right."""
    root = seen and (seen if more else seen.root)
    trial = try_change(evidence.check, root, change, *facts, more=more)
    if trial is None or not trial.right:
        return Finding(text)
    return Finding(f"{text} Write it like this:", trial.code)


def _differentiated(evidence: Evidence, text: str, names: Sequence[str]) -> Finding:
    """Return a finding, with code that differentiates by these arguments if that is right."""
    problem, own = evidence.check.problem, evidence.check.names
    if not problem.is_one_rule or not {*names} <= {*own}:
        return Finding(text)

    def change(source: rewrite.SourceCode) -> None:
        for name in names:
            rewrite.differentiate_value(source, problem.name, own.index(name))

    return _corrected(evidence, text, None, change)


def _find_by_name(evidence: Evidence, name: str) -> CustomCall | None:
    return next((seen for seen in evidence.calls if seen.name == name), None)


# Errors --------------------------------------------------------------------------------------


def _errors(evidence: Evidence) -> Iterator[Finding]:
    errors: dict[str, tuple[int, Exception]] = {}
    for (order, _, mode), error in evidence.check.errors.items():
        if not (mode == "forward" and isinstance(error, NotLinearError)):
            errors.setdefault(str(error), (order, error))
    for words, (order, error) in errors.items():
        if isinstance(error, GradientCountError):
            yield _of_count(evidence, order, error)._replace(order=order)
        elif isinstance(error, GradientShapeError) and error.index is not None:
            yield _of_shape(evidence, error)._replace(order=order)
        else:
            frames = traceback.extract_tb(error.__traceback__)
            users = [frame for frame in frames if not is_ours(frame.filename)]
            location = f" ({where((users[-1].filename, users[-1].lineno or 0))})" if users else ""
            text = f"Order {order} cannot be computed: {type(error).__name__}: {words}{location}"
            yield Finding(text, order=order)


def _of_count(evidence: Evidence, order: int, error: GradientCountError) -> Finding:
    name, expected, returned = error.function, error.expected, error.returned
    seen = _find_by_name(evidence, name)
    text = (
        f"Order {order} cannot be computed: the rule of `{name}` returns "
        f"{_count_text(returned, 'gradient')}, and `{name}` has {_count_text(expected, 'input')} "
        f"({', '.join(error.names)}). A rule returns one gradient for each input."
    )
    if seen is None:
        return Finding(text)
    if seen.parent is not None and returned > expected:
        text += (
            " Remove the last gradient. It is the derivative with respect to the upstream gradient "
            f"of `{seen.parent.name}`, but this upstream gradient is not an input of `{name}`. The "
            f"rule of `{seen.parent.name}` uses the upstream gradient outside `{name}`, where "
            "operations are differentiated automatically."
        )
        return _corrected(evidence, text, seen, rewrite.drop_gradients, name, expected)
    if any(is_tensor(leaf) for leaf in nest.flatten(seen.kwargs)):
        text += (
            " Tensors passed by keyword are inputs as well, after those passed by position. Return "
            "a gradient for each."
        )
    elif any(isinstance(leaf, (list, tuple)) for leaf in seen.args):
        text += (
            " In a list or tuple, each number is an input. To pass the numbers as one vector, use "
            "np.array(...)."
        )
    elif returned < expected and any(isinstance(leaf, Number) for leaf in seen.args):
        text += (
            " Positional arguments that are numbers are inputs, too. Return None for those that "
            "have no gradient."
        )
    return Finding(text)


def _of_shape(evidence: Evidence, error: GradientShapeError) -> Finding:
    name, label = error.function, error.label
    text = (
        f"The rule of `{name}` returns a gradient of shape {error.returned} for {label}, which "
        f"has shape {error.expected}."
    )
    seen, index = _find_by_name(evidence, name), error.index or 0
    names, args = ([], []) if seen is None else (seen.names, nest.flatten(seen.args))
    shapes = [np.shape(arg) for arg in args]
    if len(shapes) == len(names) and not error.axes and error.returned in shapes:
        other = shapes.index(error.returned)
        more = f" `{names[other]}` has that shape. Are the two gradients swapped?"
        change = (rewrite.swap_gradients, name, index, other)
        finding = _corrected(evidence, text + more, seen, *change)
        if finding.code or not error.remedy:
            return finding
    if not error.remedy or seen is None:
        return Finding(f"{text} A gradient has the shape of its input.")
    broadcast = f" The function broadcasts {label}, so sum this gradient over axes {error.axes}."
    text += broadcast if error.axes else " Transpose this gradient."
    return _corrected(evidence, text, seen, rewrite.wrap_gradient, name, index, error.remedy)


# Lost derivatives ----------------------------------------------------------------------------


def _captures(evidence: Evidence) -> Iterator[Finding]:
    for seen in evidence.calls:
        rows = [row for row in evidence.rows if row.false and row.argument in seen.captured]
        false = [row for row in rows if row.order >= seen.order]
        if false and (seen.is_gradient_function or seen.used):
            of = _of_gradient_function if seen.is_gradient_function else _of_captured
            order = min(row.order for row in false)
            yield of(evidence, seen, false)._replace(order=order)
        elif seen.captured and seen.bypassed and not seen.used:
            names = in_words(sorted(seen.captured))
            yield Finding(
                f"The rule of `{seen.name}` is not used, because `{seen.name}` captures {names} "
                f"and no tape watches its arguments. The result is the derivative of the "
                f"operations of `{seen.name}`. Pass {names} as an argument of `{seen.name}`.",
                remark=True,
            )


def _of_gradient_function(
    evidence: Evidence, seen: CustomCall, false: list[DerivativeRow]
) -> Finding:
    names, upstream = in_words(sorted(seen.captured)), seen.names[0] if seen.names else "dy"
    text = (
        f"The inner rule (of `{seen.name}`) covers the dependence on {upstream} only; the direct "
        f"dependence on {names} is lost. {_describe(evidence, false)} If no tape watches "
        f"{upstream}, the inner rule is skipped, and the operations of `{seen.name}` are "
        "differentiated instead. Remove the inner decorator, so that the gradient is "
        f"differentiated as written, or decorate a function of {names} inside `{seen.name}` and "
        f"multiply its result by {upstream}."
    )
    return _corrected(evidence, text, seen, rewrite.undecorate, seen.name)


def _of_captured(evidence: Evidence, seen: CustomCall, false: list[DerivativeRow]) -> Finding:
    names = sorted(seen.captured)
    own = list(find_captures(seen.function))  # the function's own names for its captures
    name = names[0] if names[0] in own or not own else own[0]
    own_words = "" if [name] == names else f", which depends on {in_words(names)}"
    text = (
        f"`{seen.name}` captures {name}{own_words}. The rule of `{seen.name}` returns a gradient "
        f"for {in_words(seen.names)} only, so the derivative with respect to {name} is lost. "
        f"{_describe(evidence, false)} Return a gradient for {name}, too, and call "
        f"`{seen.name}({', '.join([*seen.names, name])})`."
    )
    more = [tensor for key, tensor in find_captures(seen.function).items() if key == name]
    return _corrected(evidence, text, seen, rewrite.add_argument, seen.name, name, more=more)


def _detachments(evidence: Evidence) -> Iterator[Finding]:
    false = [row for row in evidence.rows if row.verdict == verdicts.DETACHED]
    false = [row for row in false if row.path != "upstream"] or false
    if all(any(seen.order == row.order > 1 for seen in evidence.calls) for row in false):
        false = [row for row in false if row.path != "upstream"]  # of a rule of a rule
    if not false:
        return
    explained: dict[SourceLine, Finding] = {}
    for point in evidence.detached:
        rows = [row for row in false if row.order >= point.order]
        if rows and point.site not in explained:
            code = None if explained else evidence.attached
            finding = _of_detach_site(evidence, point, rows, code)
            explained[point.site] = finding._replace(order=min(row.order for row in rows))
    yield from explained.values()
    ends = min((point.order for point in evidence.detached), default=math.inf)
    false = [row for row in false if row.order < ends]
    if any(seen.captured for seen in evidence.calls):
        return
    wrong = [row.order for row in evidence.rows if row.verdict == verdicts.WRONG]
    taken = any(recorder.taken for recorder in evidence.check.recorders.values())
    if wrong and not taken:  # no sign of another cause than that of the first wrong order
        false = [row for row in false if row.order <= min(wrong)]
    first = {row.argument: row.order for row in sorted(false, key=lambda row: -row.order)}
    missing = [argument for argument in sorted(first) if first[argument] == 1]
    for names in (missing, [argument for argument in sorted(first) if first[argument] > 1]):
        if names:
            rows = [row for row in false if row.argument in names]
            order = min(map(first.__getitem__, names))
            yield _of_unrecorded(evidence, names, rows, order)._replace(order=order)


def _of_unrecorded(
    evidence: Evidence, names: list[str], rows: list[DerivativeRow], first: int
) -> Finding:
    """Describe gradients that end without a place; `first` is their lowest order."""
    problem, which = evidence.check.problem, in_words(names)
    if first == 1:
        passes = (r for (order, _), r in evidence.check.recorders.items() if order == 1)
        nones = {text for recorder in passes for text in recorder.nones}
        why = (
            f"No operation that a tape records leads from {which} to the value of `{problem.name}`."
        )
        if nones:
            why = f"{' '.join(sorted(nones))} Return a gradient."
            if any(x.name in names and not x.captured for x in problem.sources):
                why += (
                    f" If {which} should have no gradient, let `{problem.name}` capture {which} "
                    "instead of taking it as an argument."
                )
        text = f"The gradient with respect to {which} is None. {why} {_describe(evidence, rows)}"
        return _differentiated(evidence, text, names)
    taken: dict[SourceLine, list[str]] = {}
    for recorder in evidence.check.recorders.values():
        for site, expressions in recorder.taken.items():
            taken.setdefault(site, []).extend(f"`{code}`" for code in expressions if code)
    origins = [
        f"{in_words(dict.fromkeys(codes))}{_location(site)}" for site, codes in taken.items()
    ]
    how = f" taken from tensors by {in_words(origins)}" * any(taken.values())
    text = (
        f"The rule uses NumPy or Python values{how}. Tapes do not record these values, so "
        f"{_describe_lost(evidence, first)}. {_describe(evidence, rows)}"
    )
    lines = [line for _, line in taken]
    call = f"{text} In the rule, get the output of `{problem.name}` by calling it."
    finding = _corrected(evidence, call, None, rewrite.call_again, problem.name)
    if not finding.code:
        text = f"{text} Compute with the tensors themselves, not with their values."
        finding = _corrected(evidence, text, None, rewrite.attach, *lines)
    return finding if finding.code else _differentiated(evidence, text, names)


def _describe_lost(evidence: Evidence, order: int) -> str:
    """Return which derivatives are None, and which lack a part."""
    rows = [row for row in evidence.rows if row.order == order and row.false]
    rows = [row for row in rows if row.path != "both"] or rows
    names = ["the upstream gradient" if r.path == "upstream" else r.argument for r in rows]
    lost = {name: row.value is None for name, row in zip(names, rows, strict=True)}
    subject, parts = f"the gradient of order {order}", []
    for is_whole, words in ((True, "is None"), (False, "lacks a part")):
        if names := [name for name, is_none in lost.items() if is_none is is_whole]:
            parts.append(f"{subject} with respect to {in_words(names)} {words}")
            subject = "the gradient"
    return ", and ".join(parts)


def _of_detach_site(
    evidence: Evidence, point: DetachSite, rows: list[DerivativeRow], code: str | None
) -> Finding:
    name = point.definition.name if point.definition else evidence.check.problem.name
    has_rule = any(seen.definition is point.definition for seen in evidence.calls)
    whose = f"The rule of `{name}`" if has_rule and not point.in_body else f"`{name}`"
    how, result = f"uses `{point.what}`", f"the result of `{point.what}`"
    if point.what == "NumPy":
        how, result = "takes NumPy or Python values from a tensor", "these values"
        how += f" in `{point.expression}`" * bool(point.expression)
    used = f", and its rule uses {result}" * (point.in_body and code is not None)
    text = (
        f"{whose} {how}{_location(point.site)}{used}. Derivatives of order {point.order} and "
        f"higher treat {result} as constant. {_describe(evidence, rows)}"
    )
    if evidence.is_estimator:
        _, arguments = evidence.check.problem.call_text
        return Finding(
            f"{text} If the rule is a deliberate estimator, pass the function whose derivative "
            f"the rule returns: `tf.check_gradients({arguments}, against=surrogate)`."
        )
    advice = (
        "Remove `stop_gradient`." if point.what == "stop_gradient" else "Use tensor operations."
    )
    return Finding(f"{text} {advice}{' Write it like this:' if code else ''}", code)


def _upstreams(evidence: Evidence) -> Iterator[Finding]:
    """Find rules that are wrong with respect to the upstream gradient, of a rule or in a dtype."""
    for row in evidence.rows:
        inner = [seen for seen in evidence.calls if seen.order == row.order > 1]
        if row.path != "upstream" or row.verdict not in (verdicts.WRONG, verdicts.DETACHED):
            continue
        if ", right in" in row.detail:
            text = (
                f"The derivative of order {row.order} with respect to the upstream gradient is "
                f"{row.verdict} {row.detail}: expected {_pair(row)}. "
                f"{row.detail.partition(',')[0].capitalize()}, operations of the rule overflow or "
                "lose digits."
            )
        elif inner:
            name, upstream = inner[-1].name, (inner[-1].names or ["dy"])[-1]
            text = (
                f"The rule of `{name}` returns a wrong derivative with respect to the upstream "
                f"gradient: expected {_pair(row)}. A gradient is linear in {upstream}, so its "
                f"derivative with respect to {upstream}, times ddy, is the gradient for "
                f"{upstream} = ddy."
            )
        else:
            continue
        yield Finding(text, order=row.order)
        return


# Numbers -------------------------------------------------------------------------------------


def _not_finite(evidence: Evidence) -> Iterator[Finding]:
    false = [row for row in evidence.rows if row.verdict == verdicts.NOT_FINITE]
    if not false:
        return
    row = min(false, key=lambda row: row.order)
    detail = f" ({row.detail})" if row.detail else ""
    modes = {other.mode for other in false if other.order == row.order}
    mode = f" in {row.mode} mode" if len(modes) < len(evidence.check.modes) else ""
    text = (
        f"The derivative of order {row.order} with respect to {row.argument}{mode} is "
        f"{number(row.value)}{detail}, but {number(row.reference)} is correct. "
        f"{_origin(evidence, row.order, row.argument)}Order {row.order} is computed from values "
        "that are infinite or NaN. Use operations that stay finite."
    )
    functions = [*evidence.calls, None]
    findings = [_corrected(evidence, text, seen, rewrite.stabilise) for seen in functions]
    finding = next((finding for finding in findings if finding.code), None)
    finding = finding or _differentiated(evidence, text, evidence.check.names)
    yield finding._replace(order=row.order)


def _values_not_finite(evidence: Evidence) -> Iterator[Finding]:
    """Say which operation returns values that are infinite or NaN: they have no derivative."""
    problem = evidence.check.problem
    kinds = {
        "NaN" if np.isnan(value).any() else "infinite"
        for value in problem.values
        if not np.isfinite(value).all()
    }
    for kind in sorted(kinds):
        origin = _origin(evidence, 1, problem.sources[0].name, kind)
        text = f"The value of `{problem.name}` is {kind}, so its derivative cannot be checked here."
        if all(np.isfinite(value).all() for value in problem.base_values):
            dtype = problem.values[0].dtype
            text = f"In {dtype}, the value of `{problem.name}` is {kind}; in float64 it is finite."
        yield Finding(f"{text} {origin}".strip(), remark=True)
    unknown = [row for row in evidence.rows if row.verdict in DOUBTFUL]
    for row in unknown if not kinds else ():
        if row.value is not None and not math.isfinite(row.value) and row.path == "x":
            origin = _origin(evidence, row.order, row.argument)
            mode = " in forward mode" * (row.mode == "forward")
            text = (
                f"The derivative of order {row.order} with respect to {row.argument}{mode} is "
                f"{number(row.value)}."
            )
            yield Finding(f"{text} {origin}".strip(), remark=True)
            return


def _origin(evidence: Evidence, order: int, argument: str, of_values: str = "") -> str:
    """Return words for the first operations that return infinity, and NaN.

    In a gradient; with `of_values`, which says which, in the function's values.
    """
    problem = evidence.check.problem
    recorder = Recorder(evidence.check.names, keeps_non_finite=True)
    gradients: list = []
    try:
        gradients = evaluate.arrays(problem, problem.point, order, recorder=recorder)
    except Exception:
        recorder.non_finite.clear()
    first = {bad.what: bad for bad in reversed(recorder.non_finite)}
    kinds = (of_values,) if of_values else ("infinite", "NaN")
    origins = [_of_non_finite(first[what]) for what in kinds if what in first]
    if not origins:
        return ""
    kind = next(what for what in reversed(kinds) if what in first)
    arrays = problem.values if of_values else gradients
    place = _place(evidence, argument, arrays, kind, min(first[what].size for what in first))
    return f"{place}{'; '.join(origins)}. "


def _place(evidence: Evidence, argument: str, arrays: Sequence, kind: str, size: int) -> str:
    """Return words for the first element of an argument whose gradient is NaN, or infinite.

    If the origin has a smaller `size` than these, such as a norm, no single element is the cause.
    """
    problem, names = evidence.check.problem, evidence.check.names
    j = names.index(argument) if argument in names else 0
    x = problem.point[j]
    for array in arrays:
        if array is not None and array.shape == x.shape:
            bad = np.isnan(array) if kind == "NaN" else np.isinf(array)
            if size < bad.sum():
                return f"Where all of {names[j]} is 0, " if not x.any() else ""
            if bad.any():
                index = tuple(int(i) for i in np.argwhere(bad)[0])
                return f"At {names[j]}{list(index) or ''} = {x[index]:.6g}, "
    return ""


def _of_non_finite(bad: NonFinite) -> str:
    location = _location(bad.site, bad.expression)
    if bad.operation == "divide" and bad.what == "NaN":
        if bad.operands[-1] in ("inf", "-inf") and bad.operands[0] not in ("inf", "-inf"):
            return f"the derivative of a division by {bad.operands[-1]} is NaN{location}"
        return f"{' / '.join(bad.operands).replace('-inf', 'inf')} is NaN{location}"
    if bad.operation == "divide" and bad.operands[-1] == "0" and bad.expression and location:
        return f"`{bad.expression}` divides by zero ({where(bad.site)})"
    if bad.operation == "divide" and bad.operands[-1] == "0":
        return f"{' / '.join(bad.operands)} is infinite{location}"
    is_pole = bad.operation == "divide" or bad.operands == ("0",)
    does = {"NaN": "is NaN", "infinite": "is infinite" if is_pole else "overflows"}[bad.what]
    return f"`{bad.operation}` of {' and '.join(bad.operands)} {does}{location}"


def _not_linear(evidence: Evidence) -> Iterator[Finding]:
    for prop in evidence.check.properties:
        if prop.name == "linear in the upstream" and prop.holds is False:
            row = next(row for row in evidence.rows if row.path == "upstream" and row.order == 1)
            why = describe_upstreams(evidence.check, row.argument) or (
                "Does the rule clip dy, compute a mask from dy, or divide by the norm of dy? "
                "Because the rule is not linear, it is not a vector-Jacobian product, and forward "
                "mode is not defined. To clip on purpose, clip the results of `tape.gradient` "
                "instead."
            )
            got, whole = number(row.value), number(row.reference)
            comparison = (
                f"In a random direction, the gradient for dy = u + v is {got}, but the sum of the "
                f"gradients for dy = u and dy = v is {whole}."
            )
            if row.detail:
                comparison = f"{row.detail[0].upper()}{row.detail[1:]}, expected {_pair(row)}."
            yield Finding(
                f"The gradient with respect to {row.argument} is not linear in the upstream "
                f"gradient dy. {comparison} {why}"
            )


# Wrong derivatives ---------------------------------------------------------------------------


def _wrong(
    evidence: Evidence,
    rules: Sequence[RuleReport],
    deliberate: str | None,
    others: Sequence[Finding],
) -> Iterator[Finding]:
    kinds = (verdicts.WRONG, verdicts.DETACHED) if deliberate else (verdicts.WRONG,)
    false = [row for row in evidence.rows if row.verdict in kinds and row.path != "upstream"]
    if not false:
        return
    order = min(row.order for row in false)
    if any(row.false and row.order < order for row in evidence.rows):
        return  # a consequence
    is_finite = all(row.verdict != verdicts.NOT_FINITE for row in evidence.rows)
    if (
        evidence.check.problem.is_one_rule
        and is_finite
        and any(other.code and other.order <= order for other in others)
    ):
        return  # the same: that code makes every row right
    rows = [row for row in false if row.order == order]
    rows = [row for row in rows if row.path == "x"] or rows
    if all(row.kind == SECOND_DIFFERENCES for row in rows):
        whose = f"the gradient of order {order - 2}" if order > 2 else "the function"
        yield Finding(
            f"Order {order - 1} is right at this point only, because its derivative is not the "
            f"second derivative of {whose}. {_describe(evidence, rows)}",
            order=order,
        )
        return
    names = [*dict.fromkeys(row.argument for row in rows)][:MAX_NAMED]
    groups = ([row for row in rows if row.argument == name] for name in names)
    text = " ".join(_describe(evidence, group, is_next=k > 0) for k, group in enumerate(groups))
    blame = ""
    blamed = [rule for rule in rules if rule.first_false_order is not None]
    inner = [seen for seen in evidence.calls if seen.order == order > 1]
    if blamed:
        rule = min(blamed, key=lambda rule: (rule.first_false_order, -rule.order))
        blame = (
            f"The rule of `{rule.name}` ({rule.site}) is wrong on its own, so it may be the cause."
        )
    elif inner:
        name, site = inner[-1].name, where(source_line(inner[-1].function))
        blame = (
            f"This order uses the rule of `{name}` ({site}), which must return the derivative of "
            f"the result of `{name}`."
        )
    explanation = _explain(evidence, rows, order, bool(blamed))
    is_explained = bool(explanation.text or blame or deliberate)
    if not is_explained and any(row.verdict == verdicts.NOT_LINEAR for row in evidence.rows):
        return  # a consequence: a rule that is not linear is not the derivative
    text = " ".join(filter(None, (text, explanation.text, blame, deliberate)))
    code, ending = None, ""
    if not deliberate:
        code, ending = _fixed(evidence, explanation, inner[-1] if inner else None)
    yield Finding(f"{text}{ending}", code, order=order)


def _explain(
    evidence: Evidence, rows: list[DerivativeRow], order: int, is_blamed: bool
) -> Explanation:
    """Return the cause of wrong rows of one order."""
    swap = _describe_swap(evidence, order)
    if swap.text:
        return swap
    if order == 1 and not is_blamed and not evidence.check.problem.is_one_rule:
        for seen in evidence.calls:
            if seen.standalone and (text := name_overwritten(seen)):
                return Explanation(text)
    if any(prop.holds is False for prop in evidence.check.properties if "linear" in prop.name):
        return Explanation()
    return describe_patterns(evidence.check, rows)


def _fixed(
    evidence: Evidence, explanation: Explanation, inner: CustomCall | None
) -> tuple[str | None, str]:
    """Return corrected code of the checked function and words for it, if nothing is in doubt."""
    problem = evidence.check.problem
    rows = [row for row in evidence.rows if row.index is None]
    seen = {(row.order, row.argument) for row in rows if row.false}
    is_sure = all(row.verdict in (verdicts.TRUE, verdicts.WRONG) for row in rows)
    is_sure &= all(  # a trial compares no single elements
        (row.order, row.argument) in seen and not row.nearby for row in evidence.rows if row.false
    )
    if not problem.is_one_rule:
        return None, ""
    name, names = problem.name, evidence.check.names
    if inner is not None:
        name, names = inner.name, inner.names
    positions = {j: names.index(n) for j, n in enumerate(evidence.check.names) if n in names}

    def change(source: rewrite.SourceCode, fixes: dict[int, Fix]) -> None:
        for j, fix in fixes.items():
            fix(source, name, positions.get(j, len(names)))

    value_words = f" Differentiating the operations of `{name}` gives the correct gradient:"
    trial = try_change(evidence.check, None, change, explanation.fixes) if is_sure else None
    if trial is not None and trial.right:
        return trial.code, " Write it like this:"
    if trial is not None and trial.only_here:
        value_words = (
            " This correction is right for these arguments, but wrong in a trial with larger "
            f"arrays and other numbers. Differentiate the operations of `{name}` instead:"
        )
    squares = {
        name
        for name, x in zip(names, problem.point, strict=False)
        if x.ndim == 2 and 1 < x.shape[0] == x.shape[1]
    }
    for words, repair in islice(rewrite.repairs(problem.f, name, sorted(squares)), MAX_REPAIRS):
        trial = try_change(evidence.check, None, repair)
        if trial is not None and trial.right_everywhere:
            return trial.code, f" {words} Write it like this:"
    trial = try_change(evidence.check, None, change, explanation.others) if is_sure else None
    return (trial.code, value_words) if trial is not None and trial.right else (None, "")


def _describe_swap(evidence: Evidence, order: int) -> Explanation:
    """Return words and a correction if two arguments have each other's gradients."""
    problem, gradients = evidence.check.problem, evidence.check.wide_gradients()
    rows = {
        row.argument: row
        for row in evidence.rows
        if row.order == order == 1 and row.path == "x" and row.mode == "reverse"
    }
    for (i, name), (j, other) in combinations(enumerate(evidence.check.names), 2):
        both_false = {name, other} <= set(rows) and rows[name].false and rows[other].false
        if both_false and problem.point[i].shape == problem.point[j].shape:
            crossed = (
                evaluate.product(problem.last[i], gradients[j]).number,
                evaluate.product(problem.last[j], gradients[i]).number,
            )
            pairs = zip(crossed, (rows[name].reference, rows[other].reference), strict=True)
            if all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9) for a, b in pairs):
                words = f"The gradients of {name} and {other} are swapped."
                return Explanation(words, {i: partial(rewrite.swap_gradients, other=j)})
    return Explanation()


# Remarks and words ---------------------------------------------------------------------------


def _remarks(evidence: Evidence) -> Iterator[str]:
    rows = evidence.rows
    for seen in evidence.calls:
        by_position, by_keyword = (
            any(map(is_tensor, nest.flatten(part))) for part in (seen.args, seen.kwargs)
        )
        if by_keyword and not by_position:
            yield (
                f"`{seen.name}` is called with all its tensors by keyword. Its rule works as usual "
                "here, but TensorFlow silently ignores it in this call: pass tensors by position "
                "in programs that must run there, too."
            )
    for recorder in evidence.check.recorders.values():
        for message in recorder.adapted:
            yield f"{message[0].upper()}{message[1:]}."
    for row, dtype, own, exact in evidence.check.inaccurate:
        yield (
            f"In {dtype}, the derivative of order {row.order} with respect to {row.argument} has "
            f"lost most or all of its digits to rounding: it is {number(own)}, and {number(exact)} "
            "in float64."
        )
    kinks = [row for row in rows if row.verdict == verdicts.KINK]
    order = min((row.order for row in kinks), default=0)
    names = sorted({row.argument for row in kinks if row.order == order})
    nearby = " Check at a nearby point." * (evidence.check.second is None)
    if order == 1:
        yield (
            f"There is a kink with respect to {in_words(names)}. The slopes on both sides differ, "
            f"so the derivative does not exist.{nearby}"
        )
    elif order:
        places = evidence.check.kinks
        at = [place for name in names for place in places.get((order, name), [])][:MAX_NAMED]
        yield (
            f"The derivative of order {order} with respect to {in_words(names)} does not exist"
            f"{f' at {in_words(at)}' if at else ''}, because the gradient of order {order - 1} has "
            f"a kink{' there' * bool(at)}.{nearby}"
        )
    doubtful = [row for row in rows if row.verdict == verdicts.INCONCLUSIVE]
    if doubtful:
        orders = in_words(dict.fromkeys(str(row.order) for row in doubtful))
        doubts = in_words(dict.fromkeys(_doubt(evidence, row) for row in doubtful))
        are = "is" if len(doubtful) == 1 else "are"
        text = f"{_count_text(len(doubtful), 'row')} of order {orders} {are} inconclusive"
        warned = [f"{words}." for words in sorted(evidence.check.problem.warned)]
        yield " ".join([f"{text}.", *warned]) if warned else f"{text}, because {doubts}."


def _doubt(evidence: Evidence, row: DerivativeRow) -> str:
    """Return why a row is inconclusive."""
    check = evidence.check
    j = check.names.index(row.argument) if row.argument in check.names else 0
    if not row.kind:
        return "forward mode raises an error, perhaps by rounding"
    if row.detail.startswith("too large"):
        return f"the derivative is {row.detail.partition(';')[0]}"
    if not math.isfinite(row.reference):
        return "values at the point or near it are infinite, NaN or undefined"
    if row.error <= row.rounding * check.precision_of(j):
        return "the derivative is hidden by rounding"
    return "the reference is not accurate enough"


def _location(site: SourceLine, expression: str = "") -> str:
    """Return a user's line, or a part of it, in parentheses; nothing for that of the check."""
    if site == users_line()[:2]:
        return ""
    return f" ({quote(site, expression)})"


def _describe(evidence: Evidence, rows: Sequence[DerivativeRow], is_next: bool = False) -> str:
    """Describe a wrong row of the lowest order; of both paths together if one is missing.

    `is_next` says that a row of the same order was described before.
    """
    rows = [row for row in rows if row.verdict != verdicts.FAILED and not math.isnan(row.reference)]
    if not rows:
        return ""
    rows = [row for row in rows if row.order == min(other.order for other in rows)]
    row = rows[0]
    if row.relative_error <= 1e-6:
        row = max(rows, key=lambda row: row.relative_error)  # an element, for example
    if row.value is None:
        row = next((row for row in rows if row.path == "both"), row)
    problem = evidence.check.problem
    names = [source.name for source in problem.sources if not source.captured]
    what = f"for {problem.name}({', '.join(names)})**2, ".replace("<lambda>", "f")
    what = what if row.path == "both" else ""
    index = "" if row.index is None else str(list(row.index))
    by = f" with respect to {row.argument}{index}" if len(names) > 1 or index or not what else ""
    mode = " in forward mode" if all(row.mode == "forward" for row in rows) else ""
    location = f"at a nearby point, {row.nearby}, " if row.nearby else ""
    if not index and row.path == "x" and row.order == 1:
        sizes = dict(zip(evidence.check.names, (x.size for x in problem.point), strict=True))
        location += "in a random direction, " * (sizes[row.argument] > 1)
    by = " with respect to the upstream gradient" if row.path == "upstream" else by
    of = f"The gradient of order {row.order}{by} is" if not is_next else f"The gradient{by} is also"
    text = f"{of} wrong{mode}: {what}{location}"
    if row.detail.startswith(verdicts.OUTSIDE):
        return f"{text}there is a kink; {row.detail}: got {number(row.value)}."
    return f"{text}expected {_pair(row)}{f' ({row.detail})' * (', right in' in row.detail)}."


def _pair(row: DerivativeRow) -> str:
    reference, value = number(row.reference), number(row.value)
    if reference == value:
        reference, value = f"{row.reference:.13g}", f"{row.value:.13g}"
    return f"{reference}, got {value}"


def _count_text(count: int, noun: str) -> str:
    return f"{count} {noun}" + "s" * (count != 1)
