"""HIPS autograd's names and arguments, for programs that were written for it.

``from tinygrad_cg.autograd import grad`` in place of ``from autograd import grad``; NumPy may stay,
or become `tinygrad_cg.autograd.numpy`. `misc`, `scipy`, `extend` and `test_util` have autograd's
names and use this library's operations: SciPy is not needed. The library's own functions differ in
two ways: they call ``argnum`` ``argnums``, and their gradients with respect to complex arguments
are conjugated, as TensorFlow's.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import nest
from .._core.suggestions import refuse_name
from .._core.tensor import Tensor
from .._core.transformed import returns_transformed
from .._transforms import functional, jacobians
from .._transforms.recompute import recompute_grad
from .extend import conjugated, primitive

__all__ = [
    "checkpoint",
    "deriv",
    "elementwise_grad",
    "grad",
    "grad_and_aux",
    "grad_named",
    "hessian",
    "hessian_tensor_product",
    "hessian_vector_product",
    "holomorphic_grad",
    "jacobian",
    "make_ggnvp",
    "make_hvp",
    "make_jvp",
    "make_jvp_reversemode",
    "make_vjp",
    "multigrad_dict",
    "primitive",
    "tensor_jacobian_product",
    "value_and_grad",
    "vector_jacobian_product",
]
__dir__ = __all__.copy
__getattr__ = functools.partial(refuse_name, __name__)


@returns_transformed
def grad(fun: Callable[..., Any], argnum: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return a function that returns the gradient of the scalar function `fun`.

    `argnum` is the positional argument of the derivative, or several; then the gradient is a tuple.
    The result of `fun` has one element, in any shape. Python's floats are float64, here and in all
    functions of this module. See ``tinygrad_cg.value_and_grad`` for errors. Modelled on
    ``autograd.grad``.
    """
    derivative = functional.grad(_of_one_number(fun), argnum)
    return _float64(lambda *args, **kwargs: conjugated(derivative(*args, **kwargs)))


@returns_transformed
def value_and_grad(fun: Callable[..., Any], argnum: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return a function that returns ``(fun(*args), gradient)``; arguments as for `grad`.

    The value is a scalar, of shape ().
    """
    derivative = functional.value_and_grad(_of_one_number(fun), argnum)

    def run(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        value, gradient = derivative(*args, **kwargs)
        return value, conjugated(gradient)

    return _float64(run)


@returns_transformed
def grad_and_aux(fun: Callable[..., Any], argnum: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return `grad` of a function that returns (scalar, anything): (gradient, anything)."""
    derivative = functional.grad(fun, argnum, has_aux=True)

    def run(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        gradient, aux = derivative(*args, **kwargs)
        return conjugated(gradient), aux

    return _float64(run)


@returns_transformed
def elementwise_grad(
    fun: Callable[..., Any], argnum: int | Sequence[int] = 0
) -> Callable[..., Any]:
    """Return a function that returns the gradient of the sum of fun's result, of any shape."""
    derivative = functional.elementwise_grad(fun, argnum)
    return _float64(lambda *args, **kwargs: conjugated(derivative(*args, **kwargs)))


deriv = elementwise_grad


def grad_named(fun: Callable[..., Any], argname: str) -> Callable[..., Any]:
    """Return `grad` of `fun` by the positional argument of that name.

    Raises ValueError for a name that is not an argument of `fun`. Modelled on
    ``autograd.grad_named``.
    """
    names = list(inspect.signature(fun).parameters)
    if argname not in names:
        raise ValueError(f"grad_named: argname must be one of {names}, got {argname!r}")
    return grad(fun, names.index(argname))


@returns_transformed
def holomorphic_grad(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return the complex derivative of a holomorphic function of one number."""
    return grad(lambda *args, **kwargs: np.real(fun(*args, **kwargs)), argnum)


@returns_transformed
def multigrad_dict(fun: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Return a function that returns the gradients with respect to all arguments, as a dict with
    their names.

    Arguments that are not passed have their defaults. Modelled on ``autograd.multigrad_dict``.
    """
    signature = inspect.signature(fun)

    def run(*args: Any, **kwargs: Any) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def of_dict(arguments: dict[str, Any]) -> Any:
            call = inspect.BoundArguments(signature, arguments)
            return fun(*call.args, **call.kwargs)

        return grad(of_dict)(dict(bound.arguments))

    return run


checkpoint = recompute_grad


@returns_transformed
def jacobian(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return a function that returns the Jacobian, of shape ``output.shape + argument.shape``."""
    return _float64(jacobians.jacobian(fun, argnum))


@returns_transformed
def hessian(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return a function that returns the second derivatives of a scalar function."""
    return _float64(jacobians.hessian(_of_one_number(fun), argnum))


@returns_transformed
def hessian_vector_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return a function of fun's arguments and a vector: the Hessian of `fun` times the vector."""
    return _float64(jacobians.hvp(_of_one_number(fun), argnum))


hessian_tensor_product = hessian_vector_product


@returns_transformed
def tensor_jacobian_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return a function of fun's arguments and a tensor: the tensor times the Jacobian of `fun`.

    The sum runs over all axes of the tensor, which are the first axes of fun's result.
    """

    def product(*args: Any, **kwargs: Any) -> Any:
        *inputs, tensor = args
        return np.tensordot(tensor, fun(*inputs, **kwargs), np.ndim(tensor))

    return jacobian(product, argnum)


vector_jacobian_product = tensor_jacobian_product


@returns_transformed
def make_vjp(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return a function that returns ``(vjp, fun(*args))``.

    ``vjp(cotangent)`` is the gradient with respect to the argument `argnum`. Errors as for
    ``tinygrad_cg.vjp``. Modelled on ``autograd.make_vjp``.
    """

    def run(*args: Any, **kwargs: Any) -> tuple[Callable[[Any], Any], Any]:
        value, pullback = functional.vjp(_at(fun, argnum, args, kwargs), args[argnum])
        return _float64(lambda dy: conjugated(pullback(conjugated(dy))[0])), value

    return _float64(run)


@returns_transformed
def make_jvp(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return a function that returns a function of a tangent, which returns (value, tangent)."""

    def run(*args: Any, **kwargs: Any) -> Callable[[Any], tuple[Any, Any]]:
        at = _at(fun, argnum, args, kwargs)
        return _float64(lambda tangent: functional.jvp(at, (args[argnum],), (tangent,)))

    return _float64(run)


def make_hvp(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return a function that returns ``(hvp, gradient)``; ``hvp(v)`` is the Hessian times v."""
    return make_vjp(grad(fun, argnum), argnum)


@returns_transformed
def make_jvp_reversemode(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return a function that returns a function of a tangent: the tangent of `fun`."""

    def run(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        forward = make_jvp(fun, argnum)(*args, **kwargs)
        return lambda tangent: forward(tangent)[1]

    return run


@returns_transformed
def make_ggnvp(
    f: Callable[..., Any], g: Callable[[Any], Any] | None = None, f_argnum: int = 0
) -> Callable[..., Any]:
    """Return a function of f's arguments that gives the product with the Gauss-Newton matrix.

    The matrix is ``J.T @ H @ J``, with the Jacobian J of `f` and the Hessian H of the scalar
    function `g` of its result: by default half the sum of squares, whose Hessian is 1. Modelled on
    ``autograd.make_ggnvp``.
    """

    def run(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        pullback, value = make_vjp(f, f_argnum)(*args, **kwargs)
        forward = make_jvp_reversemode(f, f_argnum)(*args, **kwargs)
        outer = (lambda dy: dy) if g is None else make_hvp(g)(value)[0]
        return lambda vector: pullback(outer(forward(vector)))

    return run


def _float64(derivative: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes Python's floats as float64, also in nested arguments."""

    @functools.wraps(derivative)
    def run(*args: Any, **kwargs: Any) -> Any:
        wide = nest.map_structure(lambda x: np.float64(x) if type(x) is float else x, args)
        return derivative(*wide, **kwargs)

    return run


def _of_one_number(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function like `fun` that returns a result of one element as a scalar."""
    if not callable(fun):
        raise TypeError(f"autograd: a function is expected, got {type(fun).__name__}")

    @functools.wraps(fun, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        result = fun(*args, **kwargs)
        is_single = isinstance(result, Tensor) and result.shape and set(result.shape) == {1}
        return result.reshape(()) if is_single else result

    return run


def _at(fun: Callable[..., Any], argnum: int, args: tuple, kwargs: dict) -> Callable[[Any], Any]:
    before, after = args[:argnum], args[argnum:][1:]
    return lambda x: fun(*before, x, *after, **kwargs)
