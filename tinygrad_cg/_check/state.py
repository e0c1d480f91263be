"""State that functions and rules keep: random numbers, and values that later calls overwrite."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np

from .._rules.custom_gradient import custom_gradient
from .evaluate import pull_back
from .problem import Problem, move_point
from .recorder import CustomCall
from .setup import make_problem


def _random_states() -> tuple[str, Any]:
    return repr(np.random.get_state()), random.getstate()


def name_randomness(problem: Problem) -> str:
    """Return a sentence if the function, or its rule, draws from a global random state."""
    before = _random_states()
    with contextlib.suppress(Exception):
        pull_back(problem, problem.point, [problem.weights])
    after = _random_states()
    for name, old, other in zip(("`numpy.random`", "`random`"), before, after, strict=True):
        if old != other:
            return (
                f"The function or its rule draws from the global state of {name}. Draw the numbers "
                "outside the function, and use the same numbers in the function and in the rule."
            )
    return ""


def name_overwritten(seen: CustomCall) -> str:
    """Return a sentence if the rule of a custom gradient reads what a later call overwrites."""
    with contextlib.suppress(Exception):  # it cannot be called like this
        args = (custom_gradient(seen.function), seen.args, seen.kwargs)
        problem = make_problem(*args, seed=0, order=1)
        ways = [scale * way for scale, way in zip(problem.scales, problem.last, strict=True)]
        there = move_point(problem.point, ways, 0.1)
        (alone,) = pull_back(problem, problem.point, [problem.weights])
        (later,) = pull_back(problem, problem.point, [problem.weights], between=there)
        pairs = zip(alone, later, strict=True)
        if not all(a is None or b is None or np.allclose(a, b, 1e-6) for a, b in pairs):
            return (
                f"The rule of `{seen.name}` reads a value that each call of `{seen.name}` "
                "overwrites, such as an attribute or an entry of a dictionary. So a second call "
                "changes the gradient of the first. Keep the value in a local variable."
            )
    return ""
