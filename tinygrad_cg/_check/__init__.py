"""Checks of gradients: `check_gradients` compares rules with references, order by order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core.suggestions import reads_own_arguments
from .._ops.define import as_int
from .._rules.custom_gradient import custom_gradient
from .._rules.definition import source_line
from ..errors import GradientError
from .check import Check, Property
from .compare import run_check
from .diagnosis import Evidence, diagnose
from .problem import CheckedFunction
from .recorder import Seen
from .report import Finding, GradientReport, RuleReport, where
from .verdicts import DerivativeRow

__all__ = [
    "DerivativeRow",
    "Finding",
    "GradientReport",
    "Property",
    "RuleReport",
    "assert_gradients",
    "check_gradients",
]

MODES = ("reverse", "forward")


@reads_own_arguments
def check_gradients(
    f: Callable[..., Any],
    *args: Any,
    order: int = 2,
    modes: Sequence[str] = MODES,
    full: bool = False,
    seed: int = 0,
    against: Callable[..., Any] | None = None,
) -> GradientReport:
    """Compare the derivatives of ``f(*args)`` that its rules give with references.

    Parameters
    ----------
    f:
        A function, or a custom gradient, of floats, arrays, tensors and Variables, nested as
        you like, to tensors, nested as you like, of any shapes. Variables that it reads count
        as arguments.
    order:
        The highest order of derivatives.
    modes:
        "reverse" (tapes in tapes) and "forward" (forward mode, over reverse mode).
    full:
        True to compare every element of the derivatives of each order.
        By default each order is compared in one random direction for each argument, which
        takes about thirty evaluations of f, whatever the sizes; up to sixty if a rule is wrong,
        more at kinks and zeros, for several arguments and for rules in rules. Points that are
        computed in one batch count as one evaluation.
    seed:
        Of the random directions and weights; these are 1 where there is one number only.

    against:
        A surrogate: a function of the same arguments, with outputs of the same shapes, whose
        derivative the rules of `f` are meant to give. For rules that differ from the derivative
        on purpose, as straight-through estimators and gradient reversal do. Order 1 is compared
        with the derivative of `against`, order k with that of what the rules gave for order
        k - 1.

    Returns
    -------
    A `GradientReport`, with a row for each order, argument, path and mode; printing it gives a
    table and a diagnosis. Order k is compared with the derivative of what the rules gave for
    order k - 1, so that the first false order is found. Computed in float64 where f takes that,
    whatever the arguments' dtypes; a result that is infinite or NaN in these alone is reported.
    References are complex steps, compared to 10 digits, or extrapolated differences, compared to
    6, with an estimate of their error: a smaller difference is 'inconclusive', and kinks are not
    errors, unless the value lies outside the slopes to both sides of one.

    Where wrong rules may look right (at zeros, integers, kinks and optima, and where nothing can
    be said) a second, nearby point is checked as well; what is false there is false. Order k is
    compared with second differences of order k - 2, too, which show a wrong factor of a gradient
    that is 0. Differences across other branches than the point's are no reference. At kinks
    each of up to 64 elements is looked at, elsewhere elements of very different size have steps
    of their own. The gradient has to be linear in its upstream from 1e-6 to 1e6 times, and 0 for
    zeros. What rounding explains is no error, and 0 where the function does not change: its effect
    is measured by rounding the terms of each operation at random. Variables that f assigns get
    their values back.

    Raises TypeError if `f` or `against` is no function of floats to tensors, ValueError for wrong
    options and for outputs of `against` of other shapes; what the functions raise, too. Errors of
    gradient rules are reported.

    Examples
    --------
    >>> @tf.custom_gradient
    ... def quantise(x):
    ...     return tf.round(x), lambda dy: dy
    >>> tf.check_gradients(quantise, 1.3).ok
    False
    >>> tf.check_gradients(quantise, 1.3, against=lambda x: x).ok
    True

    The straight-through estimator is that of Bengio, Leonard and Courville, "Estimating or
    propagating gradients through stochastic neurons" (arXiv:1308.3432, 2013).
    """
    if not callable(f):
        raise TypeError(f"check_gradients: f must be a function, got {type(f).__name__}")
    order = as_int("check_gradients", "order", order)
    if order < 1:
        raise ValueError(f"check_gradients: order must be 1 or more, got {order}")
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    if not modes or any(mode not in MODES for mode in modes):
        raise ValueError(f"check_gradients: modes must be among {MODES}, got {modes!r}")
    if against is not None and not callable(against):
        raise TypeError(
            "check_gradients: against must be a function of the arguments of f, got "
            f"{type(against).__name__}"
        )
    problem = CheckedFunction(f, args, {}, seed, order, against)
    check = Check(problem, order, modes, full)
    run_check(check)
    evidence = Evidence(check)
    rules = [
        rule
        for seen in (evidence.calls if against is None else ())
        if seen.key != _key(f) and (rule := _check_alone(seen, check, seed)) is not None
    ]
    findings = diagnose(evidence, rules)
    return GradientReport(
        problem.name, order, check.rows, check.properties, rules, findings, against
    )


def _key(f: Any) -> tuple:
    function = getattr(f, "_function", f)
    return (*source_line(function), getattr(function, "__name__", ""))


def _check_alone(seen: Seen, whole: Check, seed: int) -> RuleReport | None:
    """Return the report of a custom gradient that ran on the way, checked by itself.

    If the `whole` is false, in brief: whether that comes of this rule.
    """
    if not seen.standalone:
        return None
    own, is_false = max(1, whole.order - seen.order + 1), any(row.false for row in whole.rows)
    try:
        problem = CheckedFunction(custom_gradient(seen.function), seen.args, seen.kwargs, seed, own)
        check = Check(problem, own, whole.modes, is_brief=is_false)
        run_check(check)
    except Exception:  # it cannot be called like this: the whole is what counts
        return None
    evidence = Evidence(check)
    if any(call.key == seen.key and not call.through >= seen.through for call in evidence.calls):
        return None  # it captures what its arguments were made of
    site = where(source_line(seen.function))
    return RuleReport(seen.name, site, seen.order, check.rows, check.properties)


@reads_own_arguments
def assert_gradients(
    f: Callable[..., Any],
    *args: Any,
    order: int = 2,
    modes: Sequence[str] = MODES,
    full: bool = False,
    seed: int = 0,
    against: Callable[..., Any] | None = None,
) -> None:
    """Raise a `GradientError`, an AssertionError, unless the rules of `f` are right at `args`.

    The message is the report of `check_gradients`, whose arguments these are. Raises, too, if
    nothing could be found out of an order by an argument: at a kink, say. For tests.

    Examples
    --------
    >>> tf.assert_gradients(lambda x: tf.sin(x) * x, 0.7)
    """
    report = check_gradients(
        f, *args, order=order, modes=modes, full=full, seed=seed, against=against
    )
    report.raise_if_wrong()
    if report.undecided or not report.conclusive:
        what = "; ".join(f"order {k} by {name}" for k, name in report.undecided)
        words = f"\nNothing can be said of {what}. Check at another point." if what else ""
        raise GradientError(f"\n{report}{words}", function=report.name, report=report)
