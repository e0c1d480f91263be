"""The derivatives that the rules give at the point, of each order and path."""

from __future__ import annotations

import numpy as np

from .check import Check
from .recorder import Recorder


def differentiate(check: Check, order: int) -> None:
    """Compute the gradients of an order, on all paths in one run of the function.

    On one path after the other where that fails.
    """
    paths = ["x"]
    if "reverse" in check.modes:
        paths += ["joint"] * (order > 1)
        if not check.is_brief and check.order > 1:
            paths += ["both"]
        if order < check.order:
            paths += ["other"]
        if order == 2 and not check.is_brief and sum(value.size for value in check.base) > 1:
            paths += ["swapped"]
    try:
        _differentiate_at(check, order, paths)
    except Exception:
        for path in paths:
            try:
                _differentiate_at(check, order, [path])
            except Exception as error:
                check.gradients[order, path] = error
                if path == "x":
                    return


def _differentiate_at(check: Check, order: int, paths: list[str]) -> None:
    problem = check.problem
    recorder = Recorder([source.name for source in problem.sources])
    if paths[0] in ("x", "joint"):
        check.recorders[order, paths[0]] = recorder
    arrays = problem.arrays_of(check.base, order, paths, recorder)
    wide = dict(zip(paths, arrays, strict=True))
    narrow: dict[str, list] = {}
    watched = [path for path in paths if path in ("x", "joint")]
    if problem.has_two_dtypes and watched:
        own = problem.arrays_of(problem.point, order, watched)
        narrow = dict(zip(watched, own, strict=True))
    for path in paths:
        check.gradients[order, path] = narrow.get(path, wide[path]), wide[path]


def gradient_of_other_upstream(check: Check, j: int) -> np.ndarray | None:
    """Return the gradient by source j for the second weights; None if these are the first."""
    problem = check.problem
    if all(map(np.array_equal, problem.weights, problem.second_weights)):
        return None
    computed = check.gradients.get((1, "other"))
    if isinstance(computed, tuple):
        _, gradients = computed
    else:
        (gradients,) = problem.pull_back(check.base, [problem.second_weights])
    return np.zeros_like(check.base[j]) if gradients[j] is None else gradients[j]
