"""Differentiation of functions: grad, vjp, jvp and related transforms.

A transform takes a function and returns another function, or runs the function once. Transforms
nest in each other and in tapes, to any depth. Arguments and results may be nested. Modelled on the
functions of these names in JAX and HIPS autograd.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

from .. import nest
from .._core.levels import Token, state
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Tensor
from .._core.transformed import returns_transformed
from .._ops.creation import fill_zeros
from .._reverse.sweep import differentiate, release
from .differentiable import Differentiable, as_arrays, fit_tensors, sweep_once, wrap
from .forward import ForwardAccumulator
from .transposition import Transposition, UnitTransposition, transpose_sweep

Y = TypeVar("Y")
Aux = TypeVar("Aux")

# Reverse mode --------------------------------------------------------------------------------


@returns_transformed
@reads_own_arguments
def value_and_grad(
    f: Callable[..., Y], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., tuple[Y, Any]]:
    """Return a function that returns ``(f(*args), gradient)``.

    Parameters
    ----------
    f:
        Returns a real scalar tensor; with `has_aux` a pair (scalar, anything), and the result is
        then ``((scalar, anything), gradient)``.
    argnums:
        The positional argument of the derivative, or several; then the gradient is a tuple. Each
        may be nested; the gradient has its structure, zeros where f does not depend on it.
        Arguments may be tensors, Variables, arrays and floats.

    For arrays the value and the gradient are arrays, which ``scipy.optimize`` takes, unless
    something records (docs/behaviour.md, decision 25); otherwise they are tensors.

    Raises TypeError for an output that is not a real tensor and for arguments that are not floats,
    ValueError for an output that is not a scalar. Modelled on ``jax.value_and_grad``.

    Examples
    --------
    >>> value, gradient = tf.value_and_grad(lambda x: tf.reduce_sum(x * x))(tf.constant([1.0, 2.0]))
    >>> float(value), gradient.numpy()
    (5.0, array([2., 4.], dtype=float32))
    """
    transform = Differentiable("value_and_grad", f, argnums, has_aux)

    def run(args: tuple, kwargs: dict) -> Any:
        value, gradient, aux = _value_and_grad(transform, args, kwargs)
        return (value, gradient), aux

    both = wrap(transform, run)
    if not has_aux:
        return both

    def with_aux(*args: Any, **kwargs: Any) -> Any:
        (value, gradient), aux = both(*args, **kwargs)
        return (value, aux), gradient

    return functools.update_wrapper(with_aux, f, updated=())


@returns_transformed
@reads_own_arguments
def grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that returns the gradient of `f`.

    With `has_aux` it returns a pair (gradient, anything). See `value_and_grad` for arguments and
    errors. Modelled on ``jax.grad``.

    Examples
    --------
    >>> cube = lambda x: x**3
    >>> tf.grad(cube)(2.0).numpy()
    np.float32(12.0)
    >>> tf.grad(tf.grad(cube))(2.0).numpy()
    np.float32(12.0)
    """
    return gradient_function(Differentiable("grad", f, argnums, has_aux))


def gradient_function(transform: Differentiable) -> Callable[..., Any]:
    """Return `grad` with the name of the transform in its errors."""

    def run(args: tuple, kwargs: dict) -> Any:
        _, gradient, aux = _value_and_grad(transform, args, kwargs)
        return gradient, aux

    return wrap(transform, run)


@returns_transformed
@reads_own_arguments
def elementwise_grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return a function that returns the derivative of an elementwise `f` at each element.

    It is the gradient of the sum of f's result, which may have any shape. See `value_and_grad` for
    arguments. Modelled on ``autograd.elementwise_grad``.

    Examples
    --------
    >>> tf.elementwise_grad(tf.square)(tf.constant([1.0, 2.0])).numpy()
    array([2., 4.], dtype=float32)
    """
    transform = Differentiable("elementwise_grad", f, argnums)

    def run(args: tuple, kwargs: dict) -> Any:
        token, sources, output, _ = transform.record(args, kwargs)
        targets = transform.tensors(output, real=True)
        return sweep_once(transform, token, targets, None, sources), None

    return wrap(transform, run)


def _value_and_grad(transform: Differentiable, args: tuple, kwargs: dict) -> tuple:
    direct = transform.direct
    if direct is not None and state.frame is None and not kwargs and not transform.has_aux:
        results = direct(args, transform.argnums)
        if results is not None:
            value, gradients = results
            return value, gradients[0] if transform.single else tuple(gradients), None
    token, sources, output, aux = transform.record(args, kwargs)
    value = transform.scalar(output)
    return value, sweep_once(transform, token, [value], None, sources), aux


@overload
def vjp(
    f: Callable[..., Y], *primals: Any, has_aux: Literal[False] = False
) -> tuple[Y, Callable[[Any], tuple[Any, ...]]]: ...
@overload
def vjp(
    f: Callable[..., tuple[Y, Aux]], *primals: Any, has_aux: Literal[True]
) -> tuple[Y, Callable[[Any], tuple[Any, ...]], Aux]: ...
def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return ``(f(*primals), pullback)``, with `has_aux` ``(output, pullback, anything)``.

    ``pullback(cotangent)`` takes an upstream gradient in the structure and the shapes of the output
    (numbers broadcast), and returns a tuple with the gradient with respect to each of `primals`. It
    can be called repeatedly. Raises TypeError for outputs without derivatives, ValueError for a
    cotangent that does not fit. The pullback keeps the values for the gradient, not `f`. Modelled
    on ``jax.vjp``.

    Examples
    --------
    >>> y, pullback = tf.vjp(tf.square, tf.constant([1.0, 2.0]))
    >>> pullback(tf.constant([1.0, 10.0]))[0].numpy()
    array([ 2., 40.], dtype=float32)
    """
    transform = Differentiable("vjp", f, tuple(range(len(primals))), has_aux)
    token, sources, output, aux = transform.record(primals, {})
    targets, flat = transform.tensors(output), nest.flatten(sources)
    result, arrays, transform = output, transform.are_arrays(primals), transform.without_function()

    def pullback(cotangent: Any) -> tuple:
        upstream = fit_tensors(transform, "cotangent", cotangent, result, targets)
        results, _ = differentiate(token, targets, upstream, flat)
        packed = transform.pack(sources, fill_zeros(flat, results))
        return as_arrays(packed) if arrays and state.frame is None else packed

    output = as_arrays(output) if arrays and state.frame is None else output
    return (output, pullback, aux) if has_aux else (output, pullback)


# Forward mode --------------------------------------------------------------------------------


@overload
def jvp(
    f: Callable[..., Y],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
) -> tuple[Y, Y]: ...
@overload
def jvp(
    f: Callable[..., tuple[Y, Aux]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[True],
) -> tuple[Y, Y, Aux]: ...
def jvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """Return ``(f(*primals), tangent)``, with `has_aux` ``(output, tangent, anything)``.

    `tangents` has a tangent for each of `primals`, in its structure and shapes (a number does not
    broadcast); the tangent has the structure of the output: the Jacobian times `tangents`. Errors
    as for `vjp`. Modelled on ``jax.jvp``.

    Examples
    --------
    >>> y, tangent = tf.jvp(tf.square, (tf.constant(3.0),), (tf.constant(1.0),))
    >>> float(y), float(tangent)
    (9.0, 6.0)
    """
    for role, values in (("primals", primals), ("tangents", tangents)):
        if not isinstance(values, (tuple, list)):
            raise TypeError(
                f"jvp: {role} must be a tuple with an entry for each argument of the function, got "
                f"{type(values).__name__}: write jvp(f, (x,), (tangent,))"
            )
    transform = Differentiable("jvp", f, tuple(range(len(primals))), has_aux)
    inner, sources = transform.sources(primals)
    flat = nest.flatten(sources)
    vectors = fit_tensors(transform, "tangent", tuple(tangents), tuple(sources), flat)
    with ForwardAccumulator(flat, vectors) as accumulator:
        output, aux = transform.run(inner, {})
    leaves = accumulator.jvp(transform.tensors(output), "zero")
    tangent = nest.pack_sequence_as(output, leaves)
    if transform.takes_arrays(primals):
        output, tangent = as_arrays(output), as_arrays(tangent)
    return (output, tangent, aux) if has_aux else (output, tangent)


@overload
def linearize(
    f: Callable[..., Y], *primals: Any, has_aux: Literal[False] = False
) -> tuple[Y, Callable[..., Y]]: ...
@overload
def linearize(
    f: Callable[..., tuple[Y, Aux]], *primals: Any, has_aux: Literal[True]
) -> tuple[Y, Callable[..., Y], Aux]: ...
def linearize(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return ``(f(*primals), pushforward)``, with `has_aux` ``(output, pushforward, anything)``.

    ``pushforward(*tangents)`` is the tangent of the output, as `jvp` gives it, without running `f`
    again. Modelled on ``jax.linearize``.

    Examples
    --------
    >>> y, pushforward = tf.linearize(tf.square, tf.constant(3.0))
    >>> float(pushforward(1.0)), float(pushforward(2.0))
    (6.0, 12.0)
    """
    transform = Differentiable("linearize", f, tuple(range(len(primals))), has_aux)
    token, sources, output, aux = transform.record(primals, {})
    targets, flat = transform.tensors(output), nest.flatten(sources)
    transposition = linearize_sweep(token, targets, flat)
    result, arrays, transform = output, transform.are_arrays(primals), transform.without_function()

    def pushforward(*tangents: Any) -> Any:
        vectors = fit_tensors(transform, "tangent", tangents, tuple(sources), flat)
        tangent = nest.pack_sequence_as(result, fill_zeros(targets, transposition(vectors)))
        return as_arrays(tangent) if arrays and state.frame is None else tangent

    output = as_arrays(output) if arrays and state.frame is None else output
    return (output, pushforward, aux) if has_aux else (output, pushforward)


def linearize_sweep(
    token: Token, targets: list[Tensor], sources: list[Tensor]
) -> Transposition | UnitTransposition:
    """Return the map from tangents of `sources` to those of `targets`, by a tape's last sweep."""
    visited: list = []

    def vjp(dys: list) -> list:
        results, visited[:] = differentiate(token, targets, dys, sources)
        return results

    transposition = transpose_sweep(vjp, targets, visited)
    token.alive = False
    release(visited)
    return transposition
