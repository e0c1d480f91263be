"""Patterns of false gradients: how the elements that a rule gave differ from the right ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from .check import Check
from .elements import TooMuch, look_at_elements
from .hypotheses import Hypothesis, explain, explain_upstreams, gives
from .judges import along_another
from .rewrite import SourceCode, scale_gradient
from .verdicts import DerivativeRow


class Explanation(NamedTuple):
    """What is wrong with gradients, in words, and how to correct them all, by source."""

    text: str
    fixes: dict[int, Callable[[SourceCode, str, int], None]]


def describe_patterns(check: Check, rows: Sequence[DerivativeRow]) -> Explanation:
    """Return sentences on how the false gradients of one order differ from the right ones.

    These depend on counts of elements, not on the speed of the machine. Where elements were too
    many to look at, that is said, unless the gradient is a multiple of the right one.
    """
    names = [source.name for source in check.problem.sources]
    if rows[0].nearby and check.second is not None:
        check = check.second
    with np.errstate(all="ignore"):
        return _describe(check, rows, names)


def _describe(check: Check, rows: Sequence[DerivativeRow], names: list[str]) -> Explanation:
    false = {
        row.argument: row for row in reversed(rows) if row.path == "x" and row.argument in names
    }
    hypotheses: dict[str, Hypothesis] = {}
    left = []
    for name, row in reversed(false.items()):
        j = names.index(name)
        try:
            elements = look_at_elements(check, row.order, j)
        except TooMuch as error:
            left.append(f"The elements of {name} were not looked at one by one: {error}.")
            elements = None
        hypothesis = _multiple(check, row, j) if elements is None else explain(elements)
        if hypothesis is not None:
            hypotheses[name] = hypothesis
    texts = {name: hypothesis.words for name, hypothesis in hypotheses.items()}
    fixes = {
        names.index(name): hypothesis.fix
        for name, hypothesis in hypotheses.items()
        if hypothesis.fix is not None
    }
    if len(fixes) < len(false):
        fixes = {}
    if not hypotheses:
        return Explanation(" ".join(left), {})
    if len(names) == 1 or (len(hypotheses) == len(false) and len(set(texts.values())) == 1):
        return Explanation(next(iter(texts.values())), fixes)
    by_name = (f"By {name}: {text[0].lower()}{text[1:]}" for name, text in texts.items())
    return Explanation(" ".join(by_name), fixes)


RATIOS = (-1.0, 2.0, 0.5, -2.0, -0.5, 3.0, 1 / 3, 4.0, 0.25, 10.0, 0.1, 100.0, 1000.0)


def _multiple(check: Check, row: DerivativeRow, j: int) -> Hypothesis | None:
    """Return the hypothesis of a multiple of the right gradient, by the sums of its elements.

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
    words = "The sign is wrong." if near == -1.0 else f"It is {near:g} times that."
    return gives(words, lambda sample: near * sample.right, 1, partial(scale_gradient, ratio=near))


def describe_upstreams(check: Check, name: str) -> str | None:
    """Return a sentence on how a gradient depends on its upstream, if not as a product with it."""
    problem = check.problem
    j = [source.name for source in problem.sources].index(name)
    upstreams = [
        [factor * weight for weight in problem.weights] for factor in (0.0, 1.0, 2.0, -1.0)
    ]
    try:
        none, *others = [gradients[j] for gradients in problem.pull_back(check.base, upstreams)]
    except Exception:
        return None
    if any(gradient is None or not np.isfinite(gradient).all() for gradient in others):
        return None
    if not np.isfinite(none).all():  # it divides by the upstream
        none = np.zeros_like(others[0])
    return explain_upstreams(none, *others)
