"""Trials of corrected code: it is executed and checked before it is offered."""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.runtime.texts import define

from .. import nest
from .._core.conversion import convert
from .._core.kinds import is_inexact
from .._core.tensor import Tensor
from . import rewrite
from .check import Check
from .compare import run_check
from .problem import Problem
from .recorder import CustomCall
from .setup import make_problem, nearby_problem
from .verdicts import TRUE, DerivativeRow


class Trial(NamedTuple):
    """Corrected code, and the rows and properties of its check; None if it cannot be executed."""

    code: str
    check: Check | None

    @property
    def right(self) -> bool:
        """Return whether the code gives the same values, and right derivatives of each order."""
        if self.check is None:
            return False
        rows = self.check.rows
        true = {row.order for row in rows if row.verdict == TRUE}
        wrong = any(x.false for x in rows) or any(x.holds is False for x in self.check.properties)
        return not wrong and true == set(range(1, self.check.order + 1))


def try_change(
    check: Check,
    seen: CustomCall | None,
    change: Callable[..., None],
    *facts: Any,
    more: Sequence[Any] = (),
    compare: bool = True,
) -> Trial | None:
    """Return a trial of the function as ``change(source, *facts)`` alters it; None unless it does.

    The function is that of `seen`, or the checked one if that is None; `more` are further arguments
    that it takes then. Unless `compare`, its derivatives are not computed.
    """
    function = check.problem.f if seen is None else seen.function
    code = rewrite.corrected(function, change, *facts)
    if code is None:
        return None
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return _try(check, seen, function, code, more, compare)
    except Exception:  # it cannot be called like this
        return Trial(code, None)


def _try(
    check: Check, seen: Any, function: Any, code: str, more: Sequence[Any], compare: bool
) -> Trial:
    problem = check.problem
    altered = _define(code, function)
    if altered is None:
        return Trial(code, None)
    own = seen is None or seen.function is getattr(problem.f, "_function", problem.f)
    if own and not more:
        args, kwargs = problem.structure
        values = problem.values
    else:
        args, kwargs = _arguments(problem, seen, more) if seen else ((), {})
        values = _values(function, args[: len(args) - len(more)], kwargs)
    against = problem.against if own else None
    checked = make_problem(altered, args, kwargs, 0, check.order, against)
    alike = _are_alike(values, checked.values)
    trial = Check(checked, check.order, check.modes, is_brief=True)
    if own and not more:  # the same function
        trial.complex_sources |= check.complex_sources
    if compare and alike:
        run_check(trial)
        if Trial(code, trial).right:
            trial.rows += _false_rows_nearby(trial)
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


def _define(code: str, function: Any) -> Any:
    """Execute the definition of a function, and return it; None for anything but a definition."""
    function = inspect.unwrap(getattr(function, "_function", function))
    tree = ast.parse(code)
    space = dict(function.__globals__)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    space |= {free: cell.cell_contents for free, cell in cells}
    match tree.body:
        case [ast.FunctionDef(name, decorator_list=decorators)]:
            pass
        case [ast.Assign([ast.Name(name)], ast.Lambda())]:
            decorators = []
        case [ast.Assign([ast.Name(name)], ast.Call(decorator, [ast.Lambda()]))]:
            decorators = [decorator]
        case _:
            return None
    if not all(rewrite.is_custom_gradient(decorator, space) for decorator in decorators):
        return None  # executing other decorators again may have an effect
    space.pop(name, None)
    altered = define(code, "corrected code", space, name)
    instance = getattr(function, "__self__", None)
    return altered if instance is None else altered.__get__(instance)


def _arguments(problem: Problem, seen: CustomCall, more: Sequence[Any]) -> list:
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
