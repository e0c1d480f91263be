"""Properties that every rule must have."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from . import evaluate, verdicts
from .check import DOUBTFUL, REPEATS, SURE, Check, Property, is_similar
from .evaluate import total
from .judges import noise_of_difference, products_along
from .problem import InnerProduct
from .reference import LINEARITY
from .verdicts import DerivativeRow, tolerance


def values_repeat(check: Check) -> bool:
    """Return whether the function is the same when computed again, and keep its value."""
    problem = check.problem
    is_repeated = check.is_nearby or check.is_brief
    again = problem.base_values if is_repeated else evaluate.outputs_at(problem, check.base)
    if is_similar(problem.base_values, again):
        values = evaluate.reference_outputs(problem, check.base) if problem.against else again
        check.value = total(problem.weights, values)
        return True
    words = (
        "repeated calls differ: the function draws random numbers or keeps state. Its derivatives "
        "can only be checked if every call returns the same values. Draw random numbers outside "
        "the function, or pass seed= to each operation that draws them"
    )
    check.properties.append(Property(REPEATS, False, words))
    return False


def check_linearity(check: Check) -> None:
    """Compare the gradient for a sum of upstreams with the sum of the gradients."""
    problem = check.problem
    sums = [b - a for a, b in zip(problem.weights, problem.third_weights, strict=True)]
    upstreams = [problem.weights, sums, problem.third_weights]
    is_wide = max(map(check.precision_of, check.indices)) < 1e-5
    factors = (1e-6, 1e6, 0.0) if is_wide else (0.5, 2.0, 0.0)  # float16 has few powers
    upstreams += [[factor * weight for weight in problem.weights] for factor in factors]

    def parts(j: int) -> list[InnerProduct]:
        return products_along(check, j, *evaluate.pull_back(problem, check.base, upstreams))

    def difference(j: int) -> float:
        first, other, both, *_ = [part.number for part in parts(j)]
        return first + other - both

    try:
        pulled = evaluate.pull_back(problem, check.base, upstreams)
    except Exception:
        return
    agree = is_similar(check.wide_gradients(), pulled[0])
    words = "the gradient differs between calls: the rule keeps state or draws random numbers"
    check.properties.append(Property(REPEATS, agree, "" if agree else words))
    if not agree:
        return
    own, _ = check.gradients[1, "x"]  # in the arguments' dtypes
    is_finite = all(np.isfinite(array).all() for array in own if array is not None)
    for j, source in enumerate(problem.sources):
        first, other, both, *multiples = products_along(check, j, *pulled)
        expected, got = first.number + other.number, both.number
        is_finite &= math.isfinite(expected - got)
        allowed = tolerance(check.precision) * max(first.size, other.size, both.size)
        allowed += 16 * max(first.rounding, other.rounding, both.rounding)
        if abs(expected - got) > allowed:
            allowed += noise_of_difference(check, functools.partial(difference, j))
        if abs(expected - got) > allowed:
            check.is_linear = False
            comparison = (got, expected, 0.0, LINEARITY, verdicts.NOT_LINEAR)
            check.rows.append(DerivativeRow(1, source.name, "upstream", "reverse", *comparison))
        _check_multiples(check, j, first, dict(zip(factors, multiples, strict=True)), parts)
    multiples = [row.detail for row in check.rows if row.verdict == verdicts.NOT_LINEAR]
    words = "the gradient for a sum of upstream gradients is not the sum of the gradients"
    words = next((f"not linear {detail}" for detail in multiples if detail), words)
    words = "" if check.is_linear else words
    holds = check.is_linear if is_finite or not check.is_linear else None
    check.properties.append(Property("linear in the upstream", holds, words))


def _check_multiples(
    check: Check, j: int, first: InnerProduct, multiples: dict[float, InnerProduct], parts: Callable
) -> None:
    """Compare the gradients of multiples of an upstream with the multiples of its gradient."""
    if not check.is_linear or not math.isfinite(first.number):
        return
    for k, (factor, multiple) in enumerate(multiples.items()):
        expected, got = factor * first.number, multiple.number
        if not math.isfinite(got) and factor > 1.0:
            continue  # too large for its dtype
        size = max(factor * first.size, multiple.size)
        allowed = tolerance(check.precision) * size if factor else 0.0
        allowed += 1e-30 if check.precision > 1e-12 else 0.0  # numbers that underflow
        if abs(expected - got) <= allowed:
            continue

        def difference(factor: float = factor, k: int = k) -> float:
            products = parts(j)
            return factor * products[0].number - products[3 + k].number

        if math.isfinite(got) and abs(expected - got) <= allowed + noise_of_difference(
            check, difference
        ):
            continue
        check.is_linear = False
        words = f"for an upstream gradient {f'scaled by {factor:g}' if factor else 'of zeros'}"
        multiple = (got, expected, 0.0, LINEARITY, verdicts.NOT_LINEAR, words)
        name = check.problem.sources[j].name
        check.rows.append(DerivativeRow(1, name, "upstream", "reverse", *multiple))
        return


def check_symmetry(check: Check) -> None:
    """Compare a second derivative along two directions with that in the other order."""
    problem = check.problem
    first, other = check.value_of(2, "x"), check.value_of(2, "swapped")
    if first is None or other is None:
        return
    if any(row.verdict == verdicts.NOT_FINITE for row in check.rows):
        return
    if first.value is None and other.value is None:
        return  # no argument depends on the first gradient
    difference = abs(first.number - other.number)
    if not math.isfinite(difference):
        return
    holds = difference <= tolerance(check.precision) * max(first.size, other.size)
    is_narrow = check.precision > 1e-12 or problem.has_two_dtypes
    holds |= difference <= 1e-30 and is_narrow  # numbers that underflow
    if not holds and not any(row.verdict == verdicts.WRONG for row in check.rows):
        holds = difference <= noise_of_difference(
            check,
            lambda: (
                evaluate.measure(problem, check.base, 2)[0].number
                - evaluate.measure(problem, check.base, 2, ("swapped",))[0].number
            ),
        )
    if not holds and any(row.verdict in DOUBTFUL for row in check.rows):
        return  # they need not be symmetric where they are not continuous
    words = (
        "second derivatives are not symmetric: the derivative along two random directions is "
        f"{first.number:.6g}, and {other.number:.6g} with the directions swapped"
    )
    name = "second derivatives are symmetric"
    check.properties.append(Property(name, holds, "" if holds else words))


def look_at_shapes(check: Check) -> None:
    """Add the property that gradients did not have to be adapted to their inputs."""
    if any("reverse" in key for key in check.errors):
        return
    adapted = [words for recorder in check.recorders.values() for words in recorder.adapted]
    detail = adapted[0] if adapted else ""
    check.properties.append(Property("shapes and dtypes fit", None if adapted else True, detail))


def compare_modes(check: Check) -> None:
    """Compare forward mode with reverse mode, from the rows."""
    details, has_pairs = [], False
    for order in (1, 2):
        rows = {
            (row.mode, row.argument): row
            for row in check.rows
            if (row.order, row.path, row.index) == (order, "x", None)
            and (order, "x", row.mode) not in check.errors
            and math.isfinite(row.value or 0.0)
            and (order == 1 or row.verdict in SURE)
        }
        words = []
        for j, name in enumerate(check.names):
            row, other = (rows.get((mode, name)) for mode in ("reverse", "forward"))
            if row is None or other is None:
                continue
            has_pairs = True
            reverse, two = row.value or 0.0, other.value or 0.0
            allowed = tolerance(check.precision) * max(abs(reverse), abs(two))
            allowed += max(row.rounding, other.rounding) * check.precision_of(j)
            is_true = verdicts.TRUE == row.verdict == other.verdict
            if abs(reverse - two) > allowed and not is_true:
                values = f"{reverse:.6g} in reverse and {two:.6g} in forward mode"
                words.append(f"for {name}, {values}")
        if words:
            details.append(f"forward and reverse mode differ at order {order}: {'; '.join(words)}")
    if has_pairs:
        name = "forward and reverse mode agree"
        check.properties.append(Property(name, not details, "; ".join(details)))
