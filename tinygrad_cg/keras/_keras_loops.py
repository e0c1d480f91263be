"""Keras's loops, branches and maps by functions: Python's own, on tensors.

They run as Python does, and derivatives are those of the operations that ran. In a ``function``
they are loops of the program, whose conditions may depend on its arguments; inside ``vmap``
conditions of `while_loop`, and what chooses a branch, may differ between examples.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .. import nest
from .._core.conversion import INT32, convert
from .._core.tensor import Tensor
from .._function.tracing import scans
from .._ops.comparison import less
from .._ops.elementwise import add, maximum, minimum
from .._ops.shape import cast
from .._ops.validation import as_int
from .._transforms import control_flow
from ..errors import InvalidArgumentError, OperatorNotAllowedInGraphError


def switch(index: Any, branches: Any, *operands: Any) -> Any:
    """Return ``branches[index](*operands)``; an out-of-range index is clamped to the first or last.

    In a `function`, or a batch, `index` may be a tensor without a value: see `cond`.
    """
    functions = list(branches)
    if not functions:
        raise InvalidArgumentError("switch: needs at least one branch, got none")
    last = len(functions) - 1
    unknown = control_flow.without_value("switch", "index", index)
    if unknown is None:
        return functions[min(max(as_int("switch", "index", index), 0), last)](*operands)
    calls = [partial(function, *operands) for function in functions]
    named = [(f"branches[{i}]", call) for i, call in enumerate(calls)]
    return control_flow.branch("switch", cast(maximum(minimum(unknown, last), 0), INT32), named)


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    maximum_iterations: Any = None,
) -> Any:
    """Return `loop_vars` after ``loop_vars = body(*loop_vars)`` while ``cond(*loop_vars)`` holds.

    At most `maximum_iterations` times, if given. A single variable is passed and returned without a
    tuple. Raises ValueError if `body` returns another structure.
    """
    single = not isinstance(loop_vars, (list, tuple))
    values = [loop_vars] if single else loop_vars
    results = control_flow.while_loop(cond, body, values, maximum_iterations=maximum_iterations)
    return results[0] if single else results


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[int, Any], Any], init_val: Any) -> Any:
    """Return the value after ``value = body_fun(i, value)`` for each i from `lower` to `upper`.

    In a `function` it is a loop of the program, and i is a tensor; `lower` and `upper` may be
    tensors without a value. If `body_fun` needs the value of i, or changes outside objects, the
    loop is unrolled.
    """
    ends = [control_flow.without_value("fori_loop", "upper", end) for end in (lower, upper)]
    if any(end is not None for end in ends):
        start = cast(lower, INT32)
        _, value = control_flow.while_loop(
            lambda i, _: less(i, upper), lambda i, v: (add(i, 1), body_fun(i, v)), (start, init_val)
        )
        return value
    rounds = range(as_int("fori_loop", "lower", lower), as_int("fori_loop", "upper", upper))
    numbers = convert(np.arange(rounds.start, rounds.stop, dtype=INT32))
    slices = control_flow.Slices(0, [numbers], len(rounds))
    if slices.is_long:
        try:
            return control_flow.loop(
                *("fori_loop", lambda v, i: (body_fun(i, v), None), init_val, slices),
                unrolls=True,
            )[0]
        except (OperatorNotAllowedInGraphError, TypeError, InvalidArgumentError) as error:
            if control_flow.is_users(error):
                raise
            # it needs the number, changes Python's objects, or its values change their types
    value = nest.map_structure(control_flow.first_of_loop, init_val)
    for i in rounds:
        value = body_fun(i, value)
    return value


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Return ``f(x)`` for each slice x of `xs` along the first axis, stacked.

    `xs` and the result of `f` may be nested: each tensor is sliced and stacked separately.
    """
    return scans.map_fn(f, xs)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
    checkpoint: str | None = None,
) -> tuple[Any, Any]:
    """Return the last carry and the stacked results of ``carry, y = f(carry, x)``.

    It starts with `init` and goes through the slices x of `xs` along the first axis, from the last
    if `reverse`; without `xs`, x is None, `length` times. All may be nested. Raises
    InvalidArgumentError for tensors of different lengths, and without both `xs` and `length`.
    Without slices the carry is `init` and the results have no rows; `f` is traced for their shapes.
    See `tf.scan` for `checkpoint`. Modelled on ``jax.lax.scan``; `unroll` has no effect.
    """
    control_flow.check_checkpoint("scan", checkpoint)
    tensors = [convert(leaf) for leaf in nest.flatten(xs)] if xs is not None else []
    sizes = {_length(tensor) for tensor in tensors} | ({length} if length is not None else set())
    if len(sizes) != 1:
        raise InvalidArgumentError(
            f"scan: xs and length must agree on the number of steps, got {sorted(sizes)}"
        )
    slices = control_flow.Slices(xs, tensors, sizes.pop())
    if not slices:
        return nest.map_structure(convert, init), scans.no_rounds("scan", f, init, slices)
    if slices.is_long:
        return control_flow.loop("scan", f, init, slices, reverse, checkpoint)
    return scans.run_rounds("scan", f, init, slices, reverse)


def _length(x: Tensor) -> int:
    if not x.ndim:
        raise InvalidArgumentError("scan: a scalar has no slices: give it an axis")
    return x.shape[0]
