"""Checks of gradients: `check_gradients` compares rules with references, order by order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core.suggestions import reads_own_arguments
from .._core.wording import in_words
from .._ops.validation import as_count, check_function
from .._rules.custom_gradient import custom_gradient
from .._rules.definition import source_line
from ..errors import GradientError
from .check import Check, Property
from .compare import run_check
from .diagnosis import diagnose
from .evidence import gather_evidence
from .recorder import CustomCall
from .report import Finding, GradientReport, RuleReport
from .rewrite import where
from .setup import make_problem
from .trials import arguments_of
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
    """Compare the derivatives that the rules of ``f(*args)`` return with references.

    Parameters
    ----------
    f:
        A function or custom gradient. Its arguments are nested structures of floats, arrays,
        tensors and Variables; it returns nested tensors. Variables that it reads are arguments.
    order:
        The highest order of derivatives.
    modes:
        "reverse" (nested tapes) and "forward" (forward mode over reverse mode).
    full:
        True compares every element of the derivatives of each order. False compares one random
        direction for each argument. That takes about thirty evaluations of f for any size, up to
        seventy if a rule is wrong, and more for kinks, zeros, more arguments and nested rules. A
        batch counts as one evaluation.
    seed:
        The seed of the random directions and weights. For a scalar, both are 1.
    against:
        A surrogate, for rules that deliberately differ from the derivative, such as
        straight-through estimators and gradient reversal: a function of the same arguments, with
        outputs of the same shapes, whose derivative is the reference of order 1.

    Returns
    -------
    A `GradientReport`, with a row for each order, argument, path and mode; printing it shows a
    table and a diagnosis. Order k is compared with the derivative of the result at order k - 1, so
    the first wrong order is found. The comparison runs in float64 if f accepts it; results that are
    infinite or NaN only in the arguments' dtypes are reported. References are complex steps,
    compared to 10 digits, or extrapolated differences, compared to 6. A kink is not an error, if
    the value lies between the one-sided slopes. Differences within rounding error are ignored: the
    check estimates it by computing f again, with results of operations rounded at random.

    Wrong rules may look right at zeros, integers, kinks and optima. There, and if a row is
    inconclusive, a second point nearby is checked, and order k is compared with second differences
    of order k - 2. At kinks, up to 64 elements are compared one by one. The gradient must be linear
    in the upstream gradient: it is also computed for upstream gradients that are scaled by 1e-6 to
    1e6, and must be 0 where they are 0. After the check, assigned Variables have their old values.

    Raises TypeError if `f` or `against` is not a function of floats to tensors, ValueError for
    wrong options and if outputs of `against` have other shapes. Errors of the functions propagate;
    errors of gradient rules are reported.

    Examples
    --------
    >>> @tf.custom_gradient
    ... def quantise(x):
    ...     return tf.round(x), lambda dy: dy
    >>> tf.check_gradients(quantise, 1.3).ok
    False
    >>> tf.check_gradients(quantise, 1.3, against=lambda x: x).ok
    True

    The straight-through estimator comes from Bengio, Leonard and Courville, "Estimating or
    propagating gradients through stochastic neurons" (arXiv:1308.3432, 2013).
    """
    check_function("check_gradients", f)
    order = as_count("check_gradients", "order", order, 1)
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    if not modes or any(mode not in MODES for mode in modes):
        raise ValueError(f"check_gradients: modes must be among {MODES}, got {modes!r}")
    if against is not None and not callable(against):
        raise TypeError(
            "check_gradients: against= must be a function of the same arguments as the checked "
            f"function, got {type(against).__name__}"
        )
    problem = make_problem(f, args, {}, seed, order, against)
    run_check(check := Check(problem, order, modes, full))
    evidence = gather_evidence(check)
    function = getattr(f, "_function", f)
    key = (*source_line(function), getattr(function, "__name__", ""))
    rules = [
        rule
        for seen in (evidence.calls if against is None else ())
        if seen.key != key and (rule := _check_alone(seen, check, seed)) is not None
    ]
    inner = getattr(f, "python_function", None)
    if inner is not None and hasattr(inner, "_function") and any(row.false for row in check.rows):
        findings = check_gradients(  # the source of a compiled rule
            inner, *args, order=order, modes=modes, full=full, seed=seed, against=against
        ).findings
    else:
        findings = diagnose(evidence, rules)
    return GradientReport(
        problem.name, order, check.rows, check.properties, rules, findings, against, check.along
    )


def _check_alone(seen: CustomCall, whole: Check, seed: int) -> RuleReport | None:
    """Return the report of a custom gradient that ran in the check, checked on its own.

    If the `whole` is wrong, the check is brief: it tells whether this rule is the cause.
    """
    if not seen.standalone:
        return None
    own, is_false = max(1, whole.order - seen.order + 1), any(row.false for row in whole.rows)
    try:
        args, kwargs = arguments_of(whole.problem, seen)
        problem = make_problem(custom_gradient(seen.function), args, kwargs, seed, own)
        check = Check(problem, own, whole.modes, is_brief=is_false)
        run_check(check)
    except Exception:  # it cannot be called on its own
        return None
    evidence = gather_evidence(check)
    if any(call.key == seen.key and not call.through >= seen.through for call in evidence.calls):
        return None  # it captures what its arguments were computed from
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

    For tests. The message is the report of `check_gradients`, which has the same arguments. It also
    raises if an order is inconclusive for an argument, for example at a kink.

    Examples
    --------
    >>> tf.assert_gradients(lambda x: tf.sin(x) * x, 0.7)
    """
    report = check_gradients(
        f, *args, order=order, modes=modes, full=full, seed=seed, against=against
    )
    report.raise_if_wrong()
    if report.undecided or not report.conclusive:
        what = in_words(f"for {name} at order {k}" for k, name in report.undecided)
        words = f"\nThe check is inconclusive {what}. Check at another point.\n" if what else ""
        raise GradientError(f"{words}\n{report}", function=report.name, report=report)
