"""Rules that seem to differ from the derivative on purpose, and their surrogates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.wording import in_words
from .._ops.elementwise import clip, multiply, sigmoid, tanh
from . import evaluate
from .check import Check
from .problem import Point, Problem, move_point
from .verdicts import tolerance

SMALL_STEPS = (1e-6, 3e-6)  # in units of the arguments: they do not change a step function
LARGE_STEPS = (0.5, 1.0, 2.0, 8.0)  # in units of the arguments: they do
STEPS = ("sign", "round", "floor", "ceil")  # operations with a derivative of 0
MAX_SIZE = 10_000  # elements of arguments to try surrogates with

Surrogate = tuple[str, Callable[[Any], Any]]
"""A function of one argument: as it is written, and itself."""

SURROGATES: tuple[Surrogate, ...] = (
    ("lambda x: x", lambda x: multiply(x, 1.0)),
    ("lambda x: tf.clip_by_value(x, -1.0, 1.0)", lambda x: clip(x, -1.0, 1.0)),
    ("tf.tanh", tanh),
    ("tf.sigmoid", sigmoid),
)


def recognise_surrogate(check: Check) -> str | None:
    """Return words for a wrong rule that looks deliberate, with the surrogate to declare.

    A rule looks deliberate if the function is piecewise constant, or the identity for some
    elements, and the rule is not; or if the function rounds, or takes signs, and the rule returns
    the upstream gradient.
    """
    problem = check.problem
    false = [row for row in check.rows if row.false and row.value and row.order == 1]
    false = [row for row in false if (row.path, row.mode) == ("x", "reverse")]
    if problem.against is not None or not false or check.errors:
        return None
    point = check.base
    try:
        flat = all(abs(row.reference) <= 1e-3 * abs(row.value or 0.0) for row in false)
        names = [row.argument for row in false]
        ways = [w if n in names else None for n, w in zip(check.names, problem.last, strict=True)]
        constant = flat and _is_piecewise_constant(problem, point, ways)
        unchanged = "" if constant else _name_unchanged(problem, point)
        steps = {name for name, _ in problem.look.taken} & {*STEPS}
        passed = bool(steps) and all(map(np.array_equal, problem.weights, check.wide_gradients()))
        if not (constant or unchanged or passed):
            return None
    except Exception:  # it is not defined there
        return None
    name, arguments = problem.call_text
    which = "here" if len(point) == 1 else f"with respect to {in_words(names)}"
    text = (
        f"`{name}` is piecewise constant {which}, but its rule does not return 0. Is the rule a "
        "straight-through estimator, or another surrogate gradient?"
    ) if constant else (
        f"`{name}` uses `{min(steps)}`, and its rule returns the upstream gradient. Is the rule a "
        "straight-through estimator?"
    ) if passed else (
        f"`{name}` returns {unchanged} unchanged, but its rule does not return the derivative. Is "
        "the rule a straight-through estimator, or a gradient reversal?"
    )  # fmt: skip
    surrogate = _find_surrogate(check, point)
    call = f"`tf.check_gradients({arguments}, against={surrogate or 'surrogate'})`"
    if surrogate is not None:
        return f"{text} If so, {call} passes."
    words = "pass a function of the same arguments whose derivative the rule returns"
    return f"{text} If so, {words}: {call}." if constant or passed else None


def _moved(problem: Problem, point: Point, step: float, ways: Sequence | None = None) -> Point:
    """Return the point `step` further, along the `ways` that are not None."""
    pairs = zip(problem.last if ways is None else ways, problem.scales, strict=True)
    return move_point(point, [None if w is None else w * scale for w, scale in pairs], step)


def _is_piecewise_constant(problem: Problem, point: Point, ways: Sequence) -> bool:
    """Return whether small steps change nothing and large ones do."""

    def values(step: float) -> list[np.ndarray]:
        return evaluate.outputs_at(problem, _moved(problem, point, step, ways))

    for sign in (1, -1):
        pairs = zip(*[values(sign * step) for step in SMALL_STEPS], strict=True)
        same = [np.mean(a == b) if a.size else 1.0 for a, b in pairs]
        if min(same, default=0.0) < 0.99:
            return False
    steps = [sign * step for step in LARGE_STEPS for sign in (1, -1)]
    pairs = (pair for step in steps for pair in zip(problem.base_values, values(step), strict=True))
    return any(not np.array_equal(a, b) for a, b in pairs)


def _name_unchanged(problem: Problem, point: Point) -> str:
    """Return what of its one argument the function returns, at other points, too; "" if nothing."""
    is_whole = True
    for step in (0.0, 0.01, -0.02):
        there = _moved(problem, point, step)
        values = evaluate.outputs_at(problem, there) if step else problem.base_values
        if len(there) != 1 or len(values) != 1 or there[0].shape != values[0].shape:
            return ""
        if not np.any(there[0] == values[0]):
            return ""
        is_whole &= bool(np.all(there[0] == values[0]))
    return "its argument" if is_whole else "some elements of its argument"


def _find_surrogate(check: Check, point: Point) -> str | None:
    """Return the first surrogate, in Python, against which the rule is right at every order."""
    problem = check.problem
    outputs = problem.values
    alone = len(point) == len(outputs) == 1 == len(problem.leaves)
    if not alone or point[0].shape != outputs[0].shape or point[0].size > MAX_SIZE:
        return None
    there = _moved(problem, point, 0.1)
    first, nearby = check.wide_gradients(), evaluate.pull_back(problem, there, [problem.weights])[0]
    ratios = np.unique([(gradient / problem.weights[0]).round(6) for gradient in (*first, *nearby)])
    scaled: list[Surrogate] = []
    if ratios.size == 1 and ratios[0] not in (0.0, 1.0) and np.isreal(ratios[0]):
        ratio = float(np.real(ratios[0]))
        scaled = [(f"lambda x: {ratio:g} * x", lambda x: multiply(x, float(f"{ratio:g}")))]
    higher = [(k, at) for k in range(2, check.order + 1) for at in (point, there)]
    for text, surrogate in (*scaled, *SURROGATES):
        with evaluate.using(problem, f=surrogate):
            slopes = [evaluate.arrays(problem, at, 1) for at in (point, there)]
            others = [evaluate.arrays(problem, at, k, "joint") for k, at in higher]
        if all(map(_are_equal, slopes, (first, nearby))):
            computed = (evaluate.arrays(problem, at, k, "joint") for k, at in higher)
            return text if all(map(_are_equal, others, computed)) else None
    return None


def _are_equal(expected: list, actual: list) -> bool:
    """Return whether gradients are the same, but for rounding; None counts as zeros."""
    pairs = zip(expected, actual, strict=True)
    pairs = [(0.0 if a is None else a, 0.0 if b is None else b) for a, b in pairs]
    largest = max(float(np.abs(a).max(initial=0.0)) for a, _ in pairs)
    relative = tolerance(max(float(np.finfo(np.asarray(a).dtype).eps) for a, _ in pairs))
    is_finite = bool(np.isfinite(largest))
    return is_finite and all(np.allclose(a, b, relative, relative * largest) for a, b in pairs)
