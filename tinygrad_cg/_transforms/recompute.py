"""recompute_grad: save memory by running a function again in the backward pass."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from .. import _ops as ops
from .. import nest
from .._core.conversion import is_tensor
from .._core.kinds import is_differentiable
from .._core.levels import Listener, remove_listener, state
from .._core.transformed import returns_transformed
from .._ops.shape import optimization_barrier
from .._reverse.variable import Variable
from .._rules.custom_gradient import custom_gradient, flat_inputs
from .._rules.definition import Definition
from .._rules.rebinding import at_positions
from .tape import GradientTape, UnconnectedGradients

P = ParamSpec("P")
Y = TypeVar("Y")


@overload
def recompute_grad(f: Callable[P, Y], segments: None = None) -> Callable[P, Y]: ...
@overload
def recompute_grad(
    f: Iterable[Callable[..., Any]], segments: int | None = None
) -> Callable[..., Any]: ...
@returns_transformed
def recompute_grad(f: Any, segments: int | None = None) -> Any:
    """Decorate `f` so that tapes keep only its inputs and run it again for the gradient.

    Parameters
    ----------
    f:
        A function of (nested structures of) tensors; or a chain: a sequence of functions, each
        called with the previous result.
    segments:
        For a chain only: the number of segments, each recomputed separately. By default the square
        root of the chain's length, so memory grows like this root, too.

    The result is differentiable at every order, with respect to arguments, tensors passed by
    keyword, and the Variables that it reads (with their old values). An argument that the
    result does not depend on gets zeros. `f` gets the same random numbers again. Modelled on
    ``tf.recompute_grad``, which is right only if the upstream gradient does not depend on the
    inputs, and which draws other random numbers. In a `function`, too, the program runs `f` again.

    Examples
    --------
    >>> block = tf.recompute_grad(lambda x: tf.exp(tf.sin(x)))
    >>> tf.grad(block)(0.0).numpy()
    np.float32(1.0)
    """
    if callable(f):
        if segments is not None:
            raise TypeError(
                "recompute_grad: segments= divides a chain: pass a list of functions, got one"
            )
        return _recomputed(f)
    if not isinstance(f, Iterable) or not all(map(callable, f := list(f))) or not f:
        raise TypeError(
            f"recompute_grad needs a function or a list of functions, got {type(f).__name__}"
        )
    count = round(math.sqrt(len(f))) if segments is None else segments
    if not 1 <= count <= len(f):
        raise ValueError(f"recompute_grad: segments must be 1 to {len(f)}, got {segments}")
    bounds = [len(f) * i // count for i in range(count + 1)]
    parts = [_recomputed(_chain(f[start:stop])) for start, stop in itertools.pairwise(bounds)]
    return _chain(parts)


def _chain(functions: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    def chain(*args: Any, **kwargs: Any) -> Any:
        y = functions[0](*args, **kwargs)
        for function in functions[1:]:
            y = function(y)
        return y

    return chain


class _ReadVariables(dict, Listener):
    """A listener that notes the Variables the function reads, by id, with their values."""

    def variable_read(self, variable: Variable) -> None:
        value = state.overrides.get(id(variable), variable._data)
        self.setdefault(id(variable), (variable, value))

    variable_assigned = variable_read


def _recomputed(f: Callable[..., Any]) -> Any:
    definition = Definition(f)

    def run(*args: Any, **kwargs: Any) -> Any:
        snapshot = _ReadVariables()
        draws: list[Any] = []
        around = state.draws
        state.listeners.append(snapshot)
        state.draws = ops.sampling.keep_draws(draws, around)
        try:
            y = f(*args, **kwargs)
        finally:
            state.draws = around
            remove_listener(snapshot)

        def grad(*dys: Any, variables: Any = None) -> Any:
            before, around = state.overrides, state.draws
            state.overrides = before | {key: value for key, (_, value) in snapshot.items()}
            state.draws = ops.sampling.replay(draws, around)
            try:
                return _run_again(f, definition, (args, kwargs), dys, variables)
            finally:
                state.overrides, state.draws = before, around

        return y, grad

    functools.update_wrapper(run, f, updated=())
    decorated = custom_gradient(run)
    decorated.__wrapped__ = f
    return decorated


def _run_again(f: Any, definition: Definition, call: tuple, dys: tuple, variables: Any) -> Any:
    def fresh(leaf: Any) -> Any:
        if not is_tensor(leaf) or isinstance(leaf, Variable):
            return leaf
        return optimization_barrier(leaf) if is_differentiable(leaf.dtype) else leaf

    args, kwargs = nest.map_structure(fresh, call)
    inputs, _ = flat_inputs(definition, args, kwargs)
    asked = [k for k, x in enumerate(inputs) if is_tensor(x) and is_differentiable(x.dtype)]
    sources = [inputs[k] for k in asked]
    with GradientTape() as tape:
        tape.watch(sources)
        targets = [leaf for leaf in nest.flatten(f(*args, **kwargs)) if leaf is not None]
    sought = sources, list(variables or ())
    gradients, others = tape.gradient(targets, sought, dys, UnconnectedGradients.ZERO)
    flat = at_positions(asked, gradients, len(inputs))
    return flat if variables is None else (flat, others)
