"""Loops and choices as functions of functions: `while_loop`, `cond`, `map_fn`, `scan`, `foldl`.

They call Python functions in a Python loop, as TensorFlow does eagerly. While a `function` is
traced a loop over elements is unrolled; one that needs the value of a condition is an error there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .. import nest
from .._core.conversion import as_dtype, convert
from .._core.tensor import ArrayLike, Tensor
from .._ops.shape import stack, unstack
from ..errors import InvalidArgumentError


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: Any = None,
) -> Any:
    """Replace `loop_vars` by ``body(*loop_vars)`` as long as ``cond(*loop_vars)`` holds.

    Parameters
    ----------
    cond, body:
        Functions of as many arguments as there are `loop_vars`. `body` returns their new values, in
        the same structure (of a single variable it may return the value alone).
    loop_vars:
        A list or tuple of tensors, or of structures of tensors.
    maximum_iterations:
        The loop ends after as many calls of `body`, whatever `cond` says.

    Returns the last values, as tensors in the structure of `loop_vars`. Each iteration is recorded,
    so the loop is differentiable. `shape_invariants` and the parameters after it, but for
    `maximum_iterations`, make no difference. TypeError for what cannot be called, ValueError for
    values in another structure. In a `function` the condition must not depend on what has no
    value while it is traced.

    Examples
    --------
    >>> import tinygrad_cg as tf
    >>> i, total = tf.while_loop(lambda i, t: i < 5, lambda i, t: (i + 1, t * 2.0), (0, 1.0))
    >>> float(total)
    32.0
    """
    _check_callable("while_loop", cond=cond, body=body)
    if not isinstance(loop_vars, (list, tuple)) or not loop_vars:
        raise ValueError("while_loop: `loop_vars` must be a list or tuple of at least one variable")
    last = None if maximum_iterations is None else int(maximum_iterations)
    values = list(loop_vars)
    count = 0
    while (last is None or count < last) and cond(*values):
        found = body(*values)
        if not isinstance(found, (list, tuple)):
            found = [found]
        nest.assert_same_structure(list(loop_vars), list(found))
        values = list(found)
        count += 1
    return nest.map_structure(_to_tensor, nest.pack_sequence_as(loop_vars, nest.flatten(values)))


def _to_tensor(value: Any) -> Any:
    return value if _keeps_itself(value) else convert(value)


def _keeps_itself(value: Any) -> bool:
    """Return whether a loop hands a value on as it is: a TensorArray, for one."""
    return isinstance(value, Tensor) or (hasattr(value, "stack") and hasattr(value, "write"))


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: Any = None,
) -> Any:
    """Return ``true_fn()`` if `pred` is true, and else ``false_fn()``: one of them is called.

    `pred` is a bool, or a tensor of one element; what the functions return is made of tensors. In a
    `function`, or a batch, `pred` must have a value: `where` chooses by element there. TypeError
    for what cannot be called.
    """
    _check_callable("cond", true_fn=true_fn, false_fn=false_fn)
    assert true_fn is not None
    assert false_fn is not None
    chosen = true_fn() if pred else false_fn()
    return nest.map_structure(lambda leaf: leaf if leaf is None else _to_tensor(leaf), chosen)


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: Any = None,
    fn_output_signature: Any = None,
) -> Any:
    """Return `fn` of each slice of `elems` along the first axis, stacked.

    `elems` is a tensor or a structure of tensors whose first axes have one size (else ValueError);
    `fn` gets the structure of slices, and may return another structure. Its results have one shape.
    `fn_output_signature` (or `dtype`): their dtypes, where they differ from those of `elems`; they
    are checked (TypeError) and need not be given. The other parameters make no difference. The
    calls follow each other; `vectorized_map` makes a single one for all slices.

    Examples
    --------
    >>> import tinygrad_cg as tf
    >>> tf.map_fn(lambda x: x * x, tf.constant([1.0, 2.0, 3.0])).numpy()
    array([1., 4., 9.], dtype=float32)
    """
    _check_callable("map_fn", fn=fn)
    slices = _slices("map_fn", elems)
    if not slices:
        raise InvalidArgumentError("map_fn: `elems` has no slices along the first axis")
    found = _stack("map_fn", [fn(one) for one in slices])
    wanted = fn_output_signature if fn_output_signature is not None else dtype
    if wanted is not None:
        leaves = nest.flatten(wanted)
        given = nest.flatten(found)
        names = [as_dtype(getattr(one, "dtype", one)) for one in leaves]
        if len(names) != len(given) or any(
            name != one.dtype for name, one in zip(names, given, strict=True)
        ):
            raise TypeError(
                f"map_fn: fn_output_signature asks for {[one.name for one in names]}, `fn` "
                f"returned {[one.dtype.name for one in given]}"
            )
    return found


def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: Any = None,
) -> Any:
    """Return all states of a recurrence ``state = fn(state, slice)`` over `elems`, stacked.

    Parameters
    ----------
    fn:
        A function of the state so far and of the next slice of `elems` along its first axis; it
        returns the next state, in the same structure.
    elems:
        A tensor or a structure of tensors whose first axes have one size (else ValueError).
    initializer:
        The state before the first slice. Without it the first slice is the first state.
    reverse:
        Go through the slices from the last to the first; states stay in the order of slices.

    Each state is recorded, so the result is differentiable. The other parameters make no
    difference. In a `function` the loop is unrolled.

    Examples
    --------
    >>> import tinygrad_cg as tf
    >>> tf.scan(lambda total, x: total + x, tf.constant([1, 2, 3, 4])).numpy()
    array([ 1,  3,  6, 10], dtype=int32)
    """
    states = list(_fold("scan", fn, elems, initializer, reverse))
    if not states:
        raise InvalidArgumentError("scan: `elems` has no slices along the first axis")
    return _stack("scan", states[::-1] if reverse else states)


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: Any = None,
) -> Any:
    """Return the last state of ``state = fn(state, slice)`` over `elems`, first to last.

    The parameters are those of `scan`. Without slices it is the `initializer`.
    """
    return _last("foldl", fn, elems, initializer, False)


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: Any = None,
) -> Any:
    """Return the last state of ``state = fn(state, slice)`` over `elems`, last to first.

    The parameters are those of `scan`. Without slices it is the `initializer`.
    """
    return _last("foldr", fn, elems, initializer, True)


def _last(name: str, fn: Any, elems: Any, initializer: Any, reverse: bool) -> Any:
    state = initializer
    for state in _fold(name, fn, elems, initializer, reverse):  # noqa: B007 (the last is wanted)
        pass
    if state is None:
        raise InvalidArgumentError(f"{name}: `elems` has no slices along the first axis")
    return nest.map_structure(_to_tensor, state)


def _fold(name: str, fn: Any, elems: Any, initializer: Any, reverse: bool) -> Iterable[Any]:
    """Yield the states of a recurrence, in the structure of the first."""
    _check_callable(name, fn=fn)
    slices = _slices(name, elems)
    slices = slices[::-1] if reverse else slices
    if initializer is None:
        if not slices:
            return
        state, *slices = slices
        yield state
    else:
        state = nest.map_structure(_to_tensor, initializer)
    first = state
    for one in slices:
        state = fn(state, one)
        if len(nest.flatten(state)) != len(nest.flatten(first)):
            raise ValueError(
                f"{name}: `fn` must return a state of the structure that it got: got "
                f"{len(nest.flatten(state))} tensors for {len(nest.flatten(first))}"
            )
        state = nest.pack_sequence_as(first, nest.flatten(state))
        yield state


def _slices(name: str, elems: Any) -> list[Any]:
    """Return the slices of a structure of tensors along their first axes."""
    leaves = [
        convert(one) for one in ([elems] if isinstance(elems, ArrayLike) else nest.flatten(elems))
    ]
    if not leaves or any(one.ndim == 0 for one in leaves):
        raise ValueError(f"{name}: `elems` must be tensors of at least one dimension")
    sizes = {one.shape[0] for one in leaves}
    if len(sizes) > 1:
        raise ValueError(
            f"{name}: `elems` must have one size along the first axis, got "
            f"{', '.join(str(tuple(one.shape)) for one in leaves)}"
        )
    columns = [unstack(one, 0) for one in leaves]
    if isinstance(elems, ArrayLike) or not nest.is_nested(elems):
        return list(columns[0])
    return [nest.pack_sequence_as(elems, list(row)) for row in zip(*columns, strict=True)]


def _stack(name: str, values: list[Any]) -> Any:
    """Return structures of tensors as one structure of stacks."""
    rows = [nest.flatten(one) for one in values]
    if len({len(row) for row in rows}) > 1:
        raise ValueError(f"{name}: `fn` returned different structures")
    columns = [stack(list(column)) for column in zip(*rows, strict=True)]
    return nest.pack_sequence_as(values[0], columns)


def _check_callable(name: str, **functions: Any) -> None:
    for parameter, value in functions.items():
        if not callable(value):
            raise TypeError(f"{name}: `{parameter}` must be callable, got a {type(value).__name__}")
