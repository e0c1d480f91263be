"""The mistake in the gradients of an order, in words, and how to correct it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from .._core.wording import in_words
from . import evaluate
from .check import Check
from .elements import MAX_ELEMENTS, TooMuch, look_at_elements
from .hypotheses import Fix, Hypothesis, explain, explain_upstreams, gives, times_correct
from .judges import along_another
from .rewrite import differentiate_value, scale_gradient
from .verdicts import DerivativeRow


class Explanation(NamedTuple):
    """What is wrong with gradients, in words, and corrections by the index of the source.

    `others` are corrections to try if `fixes` are empty or fail: they replace a gradient by that
    of the function's operations.
    """

    text: str = ""
    fixes: Mapping[int, Fix] = MappingProxyType({})
    others: Mapping[int, Fix] = MappingProxyType({})


@np.errstate(all="ignore")
def describe_patterns(check: Check, rows: Sequence[DerivativeRow]) -> Explanation:
    """Explain the wrong gradients of one order.

    The words depend on counts of elements, not on the speed of the machine. If there are too many
    elements to look at, they say so, unless the gradient is a multiple of the correct one.
    """
    names = check.names
    if rows[0].nearby and check.second is not None:
        check = check.second
    false = {row.argument: row for row in rows[::-1] if row.path == "x" and row.argument in names}
    hypotheses: dict[str, Hypothesis] = {}
    left: dict[str, dict[str, int]] = {}
    for name, row in reversed(false.items()):
        j = names.index(name)
        try:
            elements = look_at_elements(check, row.order, j)
        except TooMuch as error:
            left.setdefault(error.of, {})[name] = error.count
            elements = None
        hypothesis = _multiple(check, row, j) if elements is None else explain(elements)
        if hypothesis is not None:
            hypotheses[name] = hypothesis
    fixes = {
        names.index(name): hypothesis.fix
        for name, hypothesis in hypotheses.items()
        if hypothesis.fix is not None
    }
    others: dict[int, Fix] = {names.index(name): differentiate_value for name in false}
    texts = {name: hypothesis.words for name, hypothesis in hypotheses.items()}
    alike = {words.split(", first at")[0] for words in texts.values()}
    if not texts:
        text = " ".join(_not_compared(of, counts) for of, counts in left.items())
    elif len(false) == 1:
        (text,) = texts.values()
    elif len(texts) == len(false) and len(alike) == 1:
        text = _about(f"{alike.pop().removesuffix('.')}.", "each of these gradients")
    else:
        text = " ".join(
            _about(words, f"the gradient with respect to {name}") for name, words in texts.items()
        )
    return Explanation(text, fixes, others)


def _about(words: str, subject: str) -> str:
    """Return sentences about "it", or about the rule, as sentences about a subject."""
    for start, whose in (("It ", f"{subject} "), ("Its elements ", f"the elements of {subject} ")):
        if words.startswith(start):
            return f"{whose[0].upper()}{whose[1:]}{words.removeprefix(start)}"
    return f"In {subject}, {words[0].lower()}{words[1:]}"


def _not_compared(of: str, counts: Mapping[str, int]) -> str:
    """Return words for arguments with too many elements, or evaluations of something."""
    which, numbers = in_words(counts), in_words(map(str, counts.values()))
    text = f"The elements of {which} were not compared one by one, because"
    if not of:
        return f"{text} {numbers} elements are more than the limit of {MAX_ELEMENTS}."
    return f"{text} this takes {numbers} evaluations of {of}. To compare them, pass full=True."


RATIOS = (-1.0, 2.0, 0.5, -2.0, -0.5, 3.0, 1 / 3, 4.0, 0.25, 10.0, 0.1, 100.0, 1000.0)


def _multiple(check: Check, row: DerivativeRow, j: int) -> Hypothesis | None:
    """Return the hypothesis of a multiple of the correct gradient, by the sums of its elements.

    Along two directions: if some elements are other multiples, their sums have other ratios.
    """
    if row.detail or not row.reference or row.mode != "reverse":
        return None
    ratio = (row.value or 0.0) / row.reference
    near = next((simple for simple in RATIOS if math.isclose(ratio, simple, rel_tol=1e-6)), None)
    if near is None:
        return None
    value, reference = along_another(check, row.order, j)
    if not math.isclose(value, near * reference, rel_tol=1e-6):
        return None
    fix = partial(scale_gradient, ratio=near)
    return gives(times_correct(near), lambda sample: near * sample.expected, 1, fix)


def describe_upstreams(check: Check, name: str) -> str | None:
    """Return a sentence on how a gradient depends on its upstream, if not as a product with it."""
    problem, j = check.problem, check.names.index(name)
    factors = (0.0, 1.0, 2.0, -1.0, 1e-3)
    upstreams = [[k * weight for weight in problem.weights] for k in factors]
    try:
        pulled = evaluate.pull_back(problem, check.base, upstreams)
    except Exception:
        return None
    none, *others = [gradients[j] for gradients in pulled]
    if any(gradient is None or not np.isfinite(gradient).all() for gradient in others):
        return None
    if not np.isfinite(none).all():  # it divides by the upstream
        none = np.zeros_like(others[0])
    return explain_upstreams(dict(zip(factors, (none, *others), strict=True)))
