"""Functions whose pattern the user knows: rules in NumPy, code in loops, custom gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from .. import nest
from .._core.conversion import convert, is_tensor
from .._core.kinds import is_differentiable
from .._core.levels import state
from ..errors import InvalidArgumentError
from .sparsity import SparsityPattern

P = ParamSpec("P")
Y = TypeVar("Y")


def declare_sparsity(pattern: Any) -> Callable[[Callable[P, Y]], Callable[P, Y]]:
    """Return a decorator that declares which results of a function depend on which arguments.

    Parameters
    ----------
    pattern:
        Anything that `SparsityPattern.of` accepts, or a function that returns it for the arguments
        of a call (it may use their shapes, not their values). Rows are the elements of the results
        that are floats, in the order of ``nest.flatten``; columns those of the positional arguments
        that are float tensors, arrays or numbers.

    `jacobian_sparsity`, `hessian_sparsity`, `sparse_jacobian` and `sparse_hessian` then use the
    pattern instead of tracing the function. Without it, custom gradients with a rule in NumPy,
    `differentiable` functions and `numpy_function` count as dense. For second derivatives, all
    arguments of a row interact. Nothing else changes. The function must not capture other tensors
    that depend on the differentiated arguments. At the first call, `sparse_jacobian` compares with
    derivatives in random directions; a missing entry raises InvalidArgumentError.

    Raises InvalidArgumentError at the call for a pattern of another shape, TypeError if the
    function is not callable.

    Examples
    --------
    >>> @tf.declare_sparsity(lambda x: np.eye(x.shape[0]))
    ... @tf.custom_gradient
    ... def sine(x):
    ...     return tf.sin(x), lambda dy: tf.constant(dy.numpy() * np.cos(x.numpy()))
    >>> tf.jacobian_sparsity(sine, np.ones(1000))
    <SparsityPattern 1000 x 1000, 1000 entries>
    """
    fixed = None if callable(pattern) else SparsityPattern.of(pattern)

    def decorate(f: Callable[P, Y]) -> Callable[P, Y]:
        if not callable(f):
            raise TypeError(
                f"declare_sparsity decorates a function, got {type(f).__name__} {f!r}: write "
                "tf.declare_sparsity(pattern)(f)"
            )

        @functools.wraps(f)
        def declared(*args: P.args, **kwargs: P.kwargs) -> Y:
            result = f(*args, **kwargs)
            trace: Any = None if state.frame is None else state.frame.level
            keep_pattern = getattr(getattr(trace, "build", None), "keep_pattern", None)
            if keep_pattern is None:
                return result  # no pattern is looked for
            own = fixed or SparsityPattern.of(pattern(*args, **kwargs))
            leaves = nest.flatten(result)
            rows = [k for k, leaf in enumerate(leaves) if _is_float(leaf)]
            outputs = [convert(leaves[k]) for k in rows]
            inputs = [convert(leaf) for leaf in nest.flatten(args) if _is_float(leaf)]
            shape = sum(x.size for x in outputs), sum(x.size for x in inputs)
            if own.shape != shape:
                raise InvalidArgumentError(
                    f"declare_sparsity: the pattern of {getattr(f, '__name__', f)} must have shape "
                    f"{shape}, its results and its arguments, got {own.shape}; pass a function of "
                    "the arguments if the shape differs from call to call"
                )
            for k, output in zip(rows, keep_pattern(trace, own, inputs, outputs), strict=True):
                leaves[k] = output
            return nest.pack_sequence_as(result, leaves)

        return declared

    return decorate


def _is_float(leaf: Any) -> bool:
    is_array = isinstance(leaf, (np.ndarray, np.generic)) or is_tensor(leaf)
    return isinstance(leaf, float) or (is_array and is_differentiable(convert(leaf).dtype))
