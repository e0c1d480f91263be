"""custom_derivatives: a function declared once with its derivatives, right at each of their orders.

Each declared derivative is a function with a rule of its own, which is the next one. So what a
tape, an accumulator or a batch does with them, at any order, needs nothing new.
"""

from __future__ import annotations

from inspect import CO_VARARGS
from typing import Any

from .._ops.validation import check_function
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
    """Return a function with declared derivatives, each used at its order.

    Parameters
    ----------
    f:
        ``f(*args, **options)``, of tensors or numbers by position. Without it: a decorator.
    derivatives:
        For an elementwise `f`, whose arguments broadcast: its first derivative, its second, and so
        on, as functions of the arguments of `f`. With several arguments, the first returns a tuple
        with one partial derivative for each (None if it does not exist), the second a tuple of
        tuples, and so on; a tuple of functions works, too. NumPy functions are allowed.
        ``name.derivative`` declares one more later.
    vjp, jvp:
        For any other `f`: its products with vectors. ``vjp(dy, *args)`` is the gradient of the
        inner product of `f` and `dy` with respect to each argument. ``jvp(tangent, *args)`` is the
        derivative of `f` along `tangent`, which has the shape of the argument. With several
        arguments, the gradients and `tangent` are tuples; `tangent` has None for numbers and
        integers. Either is enough, since one is the transpose of the other.

        A list of them declares higher orders: ``vjp(dy, tangent, *args)`` is the gradient of the
        inner product of ``first_vjp(dy, *args)`` and `tangent` with respect to each argument,
        ``jvp(tangent, tangent2, *args)`` the derivative of ``first_jvp(tangent, *args)`` along
        `tangent2`. For ``x**3``: ``vjp=[lambda dy, x: dy * 3 * x**2, lambda dy, tangent, x: dy *
        tangent * 6 * x]``.

        All of these may read values (``x.numpy()``) and compute in NumPy. They are then called once
        for each example of a batch, and by the compiled program in a `function`. A declared jvp
        returns all tangents in one call.
    beyond:
        Orders beyond the last one: "error" raises DerivativeOrderError; "differentiate"
        differentiates its operations. A derivative that is itself a custom derivative or custom
        gradient uses its own rule.

    Returns
    -------
    A function like `f`. Complex arguments are for holomorphic functions; the derivatives are then
    complex. Captured values are constants: TypeError if a recording tape watches them. ValueError
    for derivatives of the wrong shape or number.
    """
    if beyond not in BEYOND:
        raise ValueError(f"custom_derivatives: beyond must be one of {BEYOND}, got {beyond!r}")
    if f is None:
        options = {"vjp": vjp, "jvp": jvp, "beyond": beyond}
        return lambda function: custom_derivatives(function, *derivatives, **options)
    check_function("custom_derivatives", f)
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
    for order, function in enumerate(functions, 1):
        code = getattr(function, "__code__", None)
        if code is not None and code.co_argcount <= order and not code.co_flags & CO_VARARGS:
            first = ("tangent", "dy")[name == "vjp"] + ", tangent" * (order - 1)
            raise TypeError(
                f"custom_derivatives: {name} of order {order} must take ({first}, *args), where "
                f"args are the arguments of f, but it takes {code.co_argcount}"
            )
    return functions
