"""custom_derivatives: a function declared once with its derivatives, right at each of their orders.

Each declared derivative is a function with a rule of its own, which is the next one. So what a
tape, an accumulator or a batch does with them, at any order, needs nothing new.
"""

from __future__ import annotations

from typing import Any

from .._rules.pickling import travels
from .jacobian_products import Products
from .partials import PartialDerivatives

__all__ = ["custom_derivatives"]

travels(PartialDerivatives)
travels(Products)

BEYOND = ("error", "differentiate")


def custom_derivatives(
    f: Any = None, *derivatives: Any, vjp: Any = None, jvp: Any = None, beyond: str = "error"
) -> Any:
    """Return a function together with its derivatives, each declared once and used at its order.

    Parameters
    ----------
    f:
        ``f(*args, **options)``, of tensors or numbers by position. Without it: a decorator.
    derivatives:
        For an elementwise `f`, whose arguments broadcast: its first derivative, its second, and
        so on, functions of the arguments of `f`. With several arguments each gives a tuple with
        one partial derivative for each of them (None where there is none), the second a tuple of
        such tuples, and so on; a tuple of functions does as well. They need not be made of
        operations: NumPy's functions will do. ``name.derivative`` declares one more later.
    vjp, jvp:
        For any other `f`: its products with vectors. ``vjp(dy, *args)`` is the gradient with
        respect to each argument (a tuple, if there are several) of the inner product of `f` with
        `dy`, and ``jvp(way, *args)`` the derivative of f along `way`, which has the shape of the
        argument (a tuple, if there are several, with None for numbers and integers). Either is
        enough, since one is the transpose of the other. A list of them declares higher orders:
        ``vjp(dy, way, *args)`` and ``jvp(way, way, *args)``, and so on, the gradient by, and the
        derivative along one more way of, those before.

        All of these may take values (``x.numpy()``) and compute in NumPy: where a batch or a
        `function` has none to give, they are called for one example after the other, or from the
        compiled program. A declared jvp gives tangents itself, in one call.
    beyond:
        The rule after the last: "error", a DerivativeOrderError; or
        "differentiate", the derivative of its operations. A derivative that is itself a
        custom derivative or custom gradient brings its own rule, whatever `beyond` is.

    Returns
    -------
    A function like `f`. Complex arguments are for holomorphic functions; the
    derivatives are then the complex ones. Values that `f` and the derivatives capture are constants
    to them: TypeError where a tape that records watches it. ValueError for derivatives of the wrong
    shape or number.
    """
    if beyond not in BEYOND:
        raise ValueError(f"custom_derivatives: beyond must be one of {BEYOND}, got {beyond!r}")
    if f is None:
        options = {"vjp": vjp, "jvp": jvp, "beyond": beyond}
        return lambda function: custom_derivatives(function, *derivatives, **options)
    if not callable(f):
        raise TypeError(f"custom_derivatives: f must be a function, got {type(f).__name__} {f!r}")
    if vjp is None and jvp is None:
        return PartialDerivatives(f, derivatives, beyond)
    if derivatives:
        raise TypeError(
            "custom_derivatives: give derivatives of an elementwise function, or vjp= and jvp= of "
            "any other, not both"
        )
    return Products(f, _list_functions("vjp", vjp), _list_functions("jvp", jvp), beyond)


def _list_functions(name: str, declared: Any) -> list:
    if not isinstance(declared, (tuple, list)):
        declared = [] if declared is None else [declared]
    functions = list(declared)
    for function in functions:
        if function is not None and not callable(function):
            raise TypeError(
                f"custom_derivatives: {name} must be a function, or a list with one for each "
                f"order, got {type(function).__name__}"
            )
    return functions
