"""Rules that look as if they differ from the derivative on purpose, and the surrogates of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.tensor import Tensor
from .._ops.elementwise import clip, multiply, sigmoid, tanh
from .._transforms.tape import GradientTape
from .orders import Orders
from .problem import CheckedFunction, Point, move_point
from .verdicts import TRUE

STEPS = (1e-6, 2e-6, 3e-6)  # in units of the arguments: they leave a piecewise constant as it is
FAR = (0.5, 1.0, 2.0, 8.0)  # and these do not
LARGEST = 10_000  # elements of arguments to try surrogates with

Surrogate = tuple[str, Callable[[Any], Any]]
"""A function of one argument: as it is written, and itself."""

SURROGATES: tuple[Surrogate, ...] = (
    ("lambda x: x", lambda x: multiply(x, 1.0)),
    ("lambda x: tf.clip_by_value(x, -1.0, 1.0)", lambda x: clip(x, -1.0, 1.0)),
    ("tf.tanh", tanh),
    ("tf.sigmoid", sigmoid),
)


def recognise_surrogate(orders: Orders) -> str | None:
    """Return words for a false rule that looks deliberate, with the surrogate to declare.

    It does where the function is piecewise constant, or the identity for some elements, and the
    rule says otherwise.
    """
    problem = orders.problem
    false = [row for row in orders.rows if row.false and row.value and row.order == 1]
    false = [row for row in false if (row.path, row.mode) == ("x", "reverse")]
    if problem.against is not None or not false or orders.errors:
        return None
    point = problem.wide_point if problem.wide else problem.point
    try:
        flat = all(abs(row.reference) <= 1e-3 * abs(row.value or 0.0) for row in false)
        constant = flat and _is_piecewise_constant(problem, point)
        if not (constant or _is_identity(problem, point)):
            return None
    except Exception:  # it is not defined there
        return None
    name = "f" if problem.name == "<lambda>" else problem.name
    if constant:
        text = (
            f"`{name}` is piecewise constant here, and its rule is not zero: is it a "
            "straight-through estimator, or another surrogate gradient?"
        )
    else:
        text = (
            f"`{name}` returns elements of its argument as they are, and its rule is not that of "
            "such a function: is it a straight-through estimator, or a gradient reversal?"
        )
    positions = [(i, "") for i in range(len(problem.structure[0]))]
    arguments = ", ".join([name, *problem.definition.input_names(positions)])
    found = _find_surrogate(orders, point)
    if found is None and not constant:
        return None
    if found is None:
        return (
            f"{text} If so, declare the function whose derivative the rule gives, of the same "
            f"arguments: `tf.check_gradients({arguments}, against=surrogate)`."
        )
    return (
        f"{text} If so, declare it: `tf.check_gradients({arguments}, against={found})` finds no "
        "fault."
    )


def _moved(problem: CheckedFunction, point: Point, step: float) -> tuple[Point, list[np.ndarray]]:
    """Return the point `step` further, and the function's values there."""
    ways = [
        np.asarray(way * scale) for way, scale in zip(problem.last, problem.scales, strict=True)
    ]
    there = move_point(point, ways, step)
    return there, problem.outputs(there)


def _is_piecewise_constant(problem: CheckedFunction, point: Point) -> bool:
    """Return whether small steps change nothing and large ones do."""
    for sign in (1, -1):
        first, *others = [_moved(problem, point, sign * step)[1] for step in STEPS]
        for other in others:
            same = [np.mean(a == b) if a.size else 1.0 for a, b in zip(first, other, strict=True)]
            if min(same, default=0.0) < 0.99:
                return False
    here = problem.outputs(point)
    far = [_moved(problem, point, sign * step)[1] for step in FAR for sign in (1, -1)]
    return any(not np.array_equal(a, b) for one in far for a, b in zip(here, one, strict=True))


def _is_identity(problem: CheckedFunction, point: Point) -> bool:
    """Return whether the function of one argument returns elements of it, at other points, too."""
    for step in (0.01, -0.02):
        there, values = _moved(problem, point, step)
        if len(there) != 1 or len(values) != 1 or there[0].shape != values[0].shape:
            return False
        if not np.any(there[0] == values[0]):
            return False
    return True


def _find_surrogate(orders: Orders, point: Point) -> str | None:
    """Return the first surrogate, in Python, against which the rule is right at every order."""
    problem = orders.problem
    outputs = problem.values
    alone = len(point) == len(outputs) == 1 == len(problem.leaves)
    if not alone or point[0].shape != outputs[0].shape or point[0].size > LARGEST:
        return None
    nearby = problem.pull_back(_moved(problem, point, 0.1)[0], [problem.weights])[0]
    ratios = np.unique([(one / problem.weights[0]).round(6) for one in (*orders.first, *nearby)])
    scaled: list[Surrogate] = []
    if ratios.size == 1 and ratios[0] not in (0.0, 1.0) and np.isreal(ratios[0]):
        ratio = float(np.real(ratios[0]))
        scaled = [(f"lambda x: {ratio:g} * x", lambda x: multiply(x, float(f"{ratio:g}")))]
    for text, surrogate in (*scaled, *SURROGATES):
        args, kwargs = problem.structure
        with GradientTape() as tape:
            x = Tensor(np.array(point[0]))
            tape.watch(x)
            value = surrogate(x)
        slopes = np.asarray(
            tape.gradient(value, x, Tensor(np.asarray(problem.weights[0], x.dtype)))
        )
        if not np.allclose(orders.first[0], slopes, rtol=1e-3):
            continue
        try:
            checked = CheckedFunction(problem.f, args, kwargs, 0, orders.order, surrogate)
            other = Orders(checked, orders.order, orders.modes, False)
            other.run()
        except Exception:
            continue
        first = [row.verdict == TRUE for row in other.rows if row.order == 1]
        if first and all(first) and not any(row.false for row in other.rows):
            return text
    return None
