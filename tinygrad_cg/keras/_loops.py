"""Keras's loops, branches and maps by functions: Python's own, on tensors.

They run as Python does, and derivatives are those of the operations that ran. The condition of a
loop has to have a value: inside ``vmap`` and ``function`` it may not depend on the arguments. What
chooses a branch may. Numbers of iterations, and sizes, are known there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .. import nest
from .._core.conversion import INT32, convert
from .._core.tensor import Tensor
from .._ops.define import as_int
from .._ops.elementwise import maximum, minimum
from .._ops.indexing import getitem
from .._ops.shape import cast, stack
from .._transforms import control_flow
from ..errors import InvalidArgumentError


def switch(index: Any, branches: Any, *operands: Any) -> Any:
    """Return ``branches[index](*operands)``; an index outside takes the first or last branch.

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
    named = [(f"branches[{place}]", call) for place, call in enumerate(calls)]
    return control_flow.branch("switch", cast(maximum(minimum(unknown, last), 0), INT32), named)


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    maximum_iterations: Any = None,
) -> Any:
    """Return `loop_vars` after ``loop_vars = body(*loop_vars)`` while ``cond(*loop_vars)`` holds.

    At most `maximum_iterations` times, if given. One variable alone is passed and returned as it
    is. Raises ValueError if `body` returns another structure.
    """
    single = not isinstance(loop_vars, (list, tuple))
    given = [loop_vars] if single else loop_vars
    found = control_flow.while_loop(cond, body, given, maximum_iterations=maximum_iterations)
    return found[0] if single else found


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[int, Any], Any], init_val: Any) -> Any:
    """Return the value after ``value = body_fun(i, value)`` for each i from `lower` to `upper`."""
    value = init_val
    for i in range(as_int("fori_loop", "lower", lower), as_int("fori_loop", "upper", upper)):
        value = body_fun(i, value)
    return value


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Return ``f(x)`` for each slice x of `xs` along the first axis, stacked.

    `xs` and what `f` returns may be nested: each tensor in it is sliced and stacked by itself.
    """
    return control_flow.map_fn(f, xs)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[Any, Any]:
    """Return the last carry and the stacked results of ``carry, y = f(carry, x)``.

    It starts with `init` and goes through the slices x of `xs` along the first axis, from the last
    if `reverse`; without `xs` through `length` times None. All may be nested. Raises
    InvalidArgumentError for tensors of different lengths and for none at all. After
    ``jax.lax.scan``; `unroll` makes no difference.
    """
    tensors = [convert(one) for one in nest.flatten(xs)] if xs is not None else []
    sizes = {_length(one) for one in tensors} | ({length} if length is not None else set())
    if len(sizes) != 1:
        raise InvalidArgumentError(
            f"scan: xs and length must say one number of steps, got {sorted(sizes)}"
        )
    (count,) = sizes
    if not count:
        raise InvalidArgumentError("scan: there are no slices, so no results to stack")
    carry, results = init, []
    for i in reversed(range(count)) if reverse else range(count):
        x = None if xs is None else nest.pack_sequence_as(xs, [getitem(one, i) for one in tensors])
        carry, y = f(carry, x)
        results.append(y)
    ordered = results[::-1] if reverse else results
    columns = zip(*[nest.flatten(y) for y in ordered], strict=True)
    stacked = [None if column[0] is None else stack(column) for column in columns]
    return carry, nest.pack_sequence_as(ordered[0], stacked)


def _length(x: Tensor) -> int:
    if not x.ndim:
        raise InvalidArgumentError("scan: a scalar has no slices: give it an axis")
    return x.shape[0]
