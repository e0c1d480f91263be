"""HIPS autograd's names and arguments, for programs that were written for it.

``from tinygrad_cg.autograd import grad`` in place of ``from autograd import grad``; NumPy may stay,
or become `tinygrad_cg.autograd.numpy`. `misc`, `scipy`, `extend` and `test_util` are those of
autograd, made of this library's operations: SciPy is not needed. What
this library has under its own names differs by ``argnums`` only, which autograd calls ``argnum``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import nest
from .._core.suggestions import refuse_name
from .._core.tensor import Tensor
from .._transforms import functional, matrices
from .extend import primitive

__all__ = [
    "elementwise_grad",
    "grad",
    "grad_and_aux",
    "hessian",
    "hessian_tensor_product",
    "hessian_vector_product",
    "jacobian",
    "make_hvp",
    "make_jvp",
    "make_vjp",
    "primitive",
    "value_and_grad",
]
__dir__ = __all__.copy


def __getattr__(name: str) -> Any:
    refuse_name(__name__, name)


def grad(fun: Callable[..., Any], argnum: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return a function that gives the gradient of the scalar function `fun`.

    `argnum` is the positional argument to differentiate by, or several: then the gradient is a
    tuple. The result of `fun` has one element, in any shape. Python's floats are float64, here and
    in all functions of this module. Errors are those of ``tinygrad_cg.value_and_grad``. After
    ``autograd.grad``.
    """
    return _float64(functional.grad(_of_one_number(fun), argnum))


def value_and_grad(fun: Callable[..., Any], argnum: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return a function that gives ``(fun(*args), gradient)``; arguments as for `grad`.

    The value is a scalar, of shape ().
    """
    return _float64(functional.value_and_grad(_of_one_number(fun), argnum))


def grad_and_aux(fun: Callable[..., Any], argnum: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return `grad` of a function that gives (scalar, anything): (gradient, anything)."""
    return _float64(functional.grad(fun, argnum, has_aux=True))


def elementwise_grad(
    fun: Callable[..., Any], argnum: int | Sequence[int] = 0
) -> Callable[..., Any]:
    """Return a function that gives the gradient of the sum of fun's result, of any shape."""
    return _float64(functional.elementwise_grad(fun, argnum))


def jacobian(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return a function that gives the Jacobian, of shape ``output.shape + argument.shape``."""
    return _float64(matrices.jacobian(fun, argnum))


def hessian(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return a function that gives the second derivatives of a scalar function."""
    return _float64(matrices.hessian(_of_one_number(fun), argnum))


def hessian_vector_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return a function of fun's arguments and a vector: the Hessian of `fun` times the vector."""
    return _float64(matrices.hvp(_of_one_number(fun), argnum))


hessian_tensor_product = hessian_vector_product


def make_vjp(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return a function that gives ``(vjp, fun(*args))``.

    ``vjp(cotangent)`` is the gradient by the argument `argnum`. Errors as for
    ``tinygrad_cg.vjp``. After ``autograd.make_vjp``.
    """

    def run(*args: Any, **kwargs: Any) -> tuple[Callable[[Any], Any], Any]:
        value, pullback = functional.vjp(_at(fun, argnum, args, kwargs), args[argnum])
        return _float64(lambda cotangent: pullback(cotangent)[0]), value

    return _float64(run)


def make_jvp(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return a function that gives a function of a tangent, which gives (value, tangent)."""

    def run(*args: Any, **kwargs: Any) -> Callable[[Any], tuple[Any, Any]]:
        at = _at(fun, argnum, args, kwargs)
        return _float64(lambda tangent: functional.jvp(at, (args[argnum],), (tangent,)))

    return _float64(run)


def make_hvp(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return a function that gives ``(hvp, gradient)``: ``hvp(vector)`` is Hessian times vector."""
    return make_vjp(grad(fun, argnum), argnum)


def _float64(derivative: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes Python's floats as float64, in nested arguments too."""

    @functools.wraps(derivative)
    def run(*args: Any, **kwargs: Any) -> Any:
        return derivative(*nest.map_structure(_as_float64, args), **kwargs)

    return run


def _as_float64(leaf: Any) -> Any:
    return np.float64(leaf) if type(leaf) is float else leaf


def _of_one_number(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives the result of `fun`, if it has one element, as a scalar."""

    @functools.wraps(fun, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        result = fun(*args, **kwargs)
        one = isinstance(result, Tensor) and result.shape and set(result.shape) == {1}
        return result.reshape(()) if one else result

    return run


def _at(fun: Callable[..., Any], argnum: int, args: tuple, kwargs: dict) -> Callable[[Any], Any]:
    before, after = args[:argnum], args[argnum:][1:]
    return lambda x: fun(*before, x, *after, **kwargs)
