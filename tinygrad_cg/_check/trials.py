"""Trials of corrected code: it is executed and checked before it is offered."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import nest
from .._core.conversion import convert, is_tensor
from .._core.kinds import is_inexact
from .._core.tensor import Tensor
from . import evaluate, rewrite
from .check import Check, Property
from .compare import run_check
from .problem import Problem
from .recorder import CustomCall
from .setup import make_problem, nearby_problem
from .verdicts import TRUE, DerivativeRow

ONLY_HERE = Property("right for other arguments", False, "")
MAX_SIZE = 1 << 14  # elements of an argument to try code with, at other sizes


class Trial(NamedTuple):
    """Corrected code, and the rows and properties of its check; None if it cannot be executed."""

    code: str
    check: Check | None

    @property
    def right(self) -> bool:
        """Return whether the code gives the same values, and right derivatives of each order."""
        check = self.check
        if check is None:
            return False
        rows = [row for row in check.rows if row.order >= check.since]
        true = {row.order for row in rows if row.verdict == TRUE}
        wrong = any(x.false for x in rows) or any(x.holds is False for x in check.properties)
        return not wrong and true == set(range(check.since, check.order + 1))

    @property
    def only_here(self) -> bool:
        """Return whether the code is right at the point, and wrong for other arguments."""
        return self.check is not None and self.check.properties[-1:] == [ONLY_HERE]

    @property
    def right_everywhere(self) -> bool:
        """Return whether it is right, and nothing in its check is in doubt."""
        rows = self.check.rows if self.check is not None else []
        return self.right and all(row.verdict == TRUE for row in rows)


def try_change(
    check: Check,
    seen: CustomCall | None,
    change: Callable[..., None],
    *facts: Any,
    more: Sequence[Any] = (),
    since: int = 1,
) -> Trial | None:
    """Return a trial of the function as ``change(source, *facts)`` alters it; None unless it does.

    The function is that of `seen`, or the checked one if that is None; `more` are further arguments
    that it takes then. Its derivatives are to be right from the order `since` on.
    """
    function = check.problem.f if seen is None else seen.function
    code = rewrite.corrected(function, change, *facts)
    if code is None:
        return None
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return _try(check, seen, function, code, more, since)
    except Exception:  # it cannot be called like this
        return Trial(code, None)


def _try(
    check: Check, seen: Any, function: Any, code: str, more: Sequence[Any], since: int
) -> Trial:
    problem = check.problem
    altered = rewrite.execute(code, function)
    if altered is None:
        return Trial(code, None)
    own = seen is None or seen.function is getattr(problem.f, "_function", problem.f)
    if own and not more:
        args, kwargs = problem.structure
        values = problem.values
    else:
        args, kwargs = arguments_of(problem, seen, more) if seen else ((), {})
        values = _values(function, args[: len(args) - len(more)], kwargs)
    against = problem.against if own else None
    checked = make_problem(altered, args, kwargs, 0, check.order, against)
    alike = _are_alike(values, checked.values)
    trial = Check(checked, check.order, check.modes, is_brief=True, since=since)
    trial.has_hidden = check.has_hidden
    if own and not more:  # the same function
        trial.complex_sources |= check.complex_sources
    if alike:
        run_check(trial)
        if since == 1 and Trial(code, trial).right:
            trial.rows += _false_rows_nearby(trial)
            if own and not more:
                is_size = rewrite.names_more_sizes(code, function)
                if _holds_elsewhere(checked, is_size) is False:  # right here by chance
                    trial.properties.append(ONLY_HERE)
    return Trial(code, trial if alike else None)


def _false_rows_nearby(check: Check) -> list[DerivativeRow]:
    """Return the wrong rows at a second point: code may be right at the first one by chance."""
    problem = nearby_problem(check.problem, np.random.default_rng(0))
    if problem is None:
        return []
    nearby = Check(problem, 1, check.modes, is_brief=True, is_nearby=True)
    try:
        run_check(nearby)
    except Exception:  # the function is not defined there
        return []
    return [row for row in nearby.rows if row.false]


def _holds_elsewhere(problem: Problem, each: bool) -> bool | None:
    """Return whether a rule gives the derivative of its operations for other arguments, too.

    Their axes are longer, and their values have other sizes and signs; floats and vectors that the
    function captures are others, too, if it can be called like this. With `each`, the axes of one
    length, and one axis, are longer alone, too; arguments that would be too large do not hold then.
    None if the function takes no such arguments, or its operations do not give the derivative here.
    """
    arrays = [np.asarray(convert(leaf)._values()) for leaf in problem.leaves if _is_array(leaf)]
    taken = rewrite.captured(problem.f)
    vectors = {k: x for k, x in taken.items() if type(x) in (Tensor, np.ndarray) and x.ndim == 1}
    lengths = sorted({n for array in (*arrays, *vectors.values()) for n in array.shape if n > 1})
    same = [array.shape for array in arrays]
    longer = [{n: k for k, n in enumerate(lengths, 2)}]  # equal lengths stay equal
    longer += [{n: 3} for n in lengths] if each and len(lengths) > 1 else []
    shapes = [[tuple(n * k.get(n, 1) for n in shape) for shape in same] for k in longer]
    for axis in range(max((array.ndim for array in arrays), default=0)) if each else ():
        shapes.append(
            [tuple(n * (1 + (k == axis and n > 1)) for k, n in enumerate(shape)) for shape in same]
        )
    others: dict[str, Any] = {k: 0.6 * x for k, x in taken.items() if type(x) is float}
    for name, x in vectors.items():
        others[name] = np.resize(convert(x)._values(), len(x) * longer[0].get(len(x), 1))
    holds = None
    tried: list[tuple] = [(shapes[0], True, {}), *((some, False, {}) for some in shapes if lengths)]
    tried = [(shapes[0], True, others)] * bool(others) + [*tried, (same, True, {})]
    for some, is_wide, captured in tried:
        if holds and (is_wide or not each):
            continue
        if max(map(math.prod, some), default=0) > MAX_SIZE:
            holds = False if each else holds
            continue
        with contextlib.suppress(Exception):
            with _capturing(problem.f, captured):
                result = _gives_derivative(_altered(problem, some, is_wide))
            if result is False:
                return False if each or _gives_derivative(problem) else None
            holds = holds or result
    return holds


@contextlib.contextmanager
def _capturing(function: Any, values: dict[str, Any]) -> Iterator[None]:
    """Let a function that was executed here capture other values inside."""
    space = getattr(function, "_function", function).__globals__
    own = {name: space[name] for name in values}
    space.update(values)
    try:
        yield
    finally:
        space.update(own)


def _altered(problem: Problem, shapes: Sequence[tuple[int, ...]], is_wide: bool) -> Problem:
    """Return a problem whose arrays have other shapes; values are repeated and moved.

    If it `is_wide`, values also get other sizes and signs.
    """
    generator, leaves, left = np.random.default_rng(0), [], list(shapes)
    for leaf in problem.leaves:
        if _is_array(leaf):
            array = np.resize(convert(leaf)._values(), left.pop(0))
            if is_inexact(array.dtype):
                moved = array * generator.uniform(0.9, 1.1, array.shape)
                if is_wide:
                    sizes = np.where(np.arange(array.size) < array.size / 2, 0.25, 4.0)
                    signs = np.resize([-1.0, 1.0, 1.0], array.size)
                    moved = moved * (sizes * signs).reshape(array.shape)
                array = moved.astype(array.dtype)
            leaves.append(Tensor(array) if is_tensor(leaf) else array)
        else:
            leaves.append(leaf)
    args, kwargs = nest.pack_sequence_as(problem.structure, leaves)
    return make_problem(problem.f, args, kwargs, 0, 1)


def _is_array(leaf: Any) -> bool:
    return is_tensor(leaf) or isinstance(leaf, np.ndarray)


def _gives_derivative(problem: Problem) -> bool | None:
    """Return whether the rule gives the gradients of the operations' own rules.

    None if they are infinite or NaN.
    """
    compared = False
    (pulled,), (correct,) = (
        evaluate.pull_back(problem, problem.point, [problem.weights], runs=runs)
        for runs in (evaluate.run, evaluate.run_body)
    )
    for x, gradient, slope in zip(problem.point, pulled, correct, strict=True):
        actual, expected = (np.zeros_like(x) if g is None else g for g in (gradient, slope))
        finite = np.isfinite(actual - expected)  # NaN says nothing
        gap = np.abs(actual - expected)[finite].max(initial=0.0)
        compared |= bool(finite.any())
        if gap > 0.01 * np.abs(expected)[finite].max(initial=0.0):  # no rounding
            return False
    return compared or None


def arguments_of(problem: Problem, seen: CustomCall, more: Sequence[Any] = ()) -> list:
    """Return the arguments of a call, and `more`, in the dtype that the user gave."""
    narrow = {value.dtype for value in problem.point}
    dtype = narrow.pop() if len(narrow) == 1 else None

    def bare(leaf: Any) -> Any:
        if type(leaf) is not Tensor:
            return leaf
        data = np.asarray(leaf._data)
        as_given = dtype is not None and is_inexact(data.dtype) and data.dtype.kind == dtype.kind
        return Tensor(np.array(data, dtype if as_given else data.dtype))

    return nest.map_structure(bare, [[*seen.args, *more], seen.kwargs])


def _values(function: Any, args: Sequence[Any], kwargs: dict) -> list[np.ndarray]:
    """Return the values of a function that returns its rule, too."""
    leaves = nest.flatten(function(*args, **kwargs)[0])
    arrays = [convert(leaf)._values() for leaf in leaves]
    return [array for array in arrays if is_inexact(array.dtype)]


def _are_alike(values: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> bool:
    """Return whether arrays are the same, wherever they are finite."""
    with np.errstate(all="ignore"):
        return len(values) == len(others) and all(
            value.dtype.kind == other.dtype.kind
            and value.shape == other.shape
            and bool((np.isclose(value, other, rtol=1e-5) | ~np.isfinite(value)).all())
            for value, other in zip(values, others, strict=True)
        )
