"""Loops over the slices of tensors, as functions of functions: `map_fn`, `scan`, `foldl`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from ... import nest
from ..._core import devices
from ..._core.conversion import as_dtype, convert
from ..._core.tensor import ArrayLike, Tensor
from ..._ops.creation import zeros
from ..._ops.shape import concatenate, expand_dims, stack
from ..._transforms.control_flow import (
    Slices,
    check_callable,
    check_checkpoint,
    first_of_loop,
    loop,
    result_leaves,
    to_tensor,
)
from ...errors import InvalidArgumentError, OperatorNotAllowedInGraphError


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
    """Apply `fn` to each slice of `elems` along the first axis and stack the results.

    `elems` is a tensor or a structure of tensors whose first axes have the same size (otherwise
    ValueError); `fn` gets the structure of slices, and may return another structure. Its results
    have the same shape. `fn_output_signature` (or `dtype`) has their dtypes and is optional; other
    dtypes raise a TypeError. The other parameters have no effect. `fn` is called once for each
    slice; `vectorized_map` makes one call for all slices. Without slices the result has no rows:
    `fn` runs once on a tensor without a value, unless `fn_output_signature` has `TensorSpec`s.

    Examples
    --------
    >>> import tinygrad_cg as tf
    >>> tf.map_fn(lambda x: x * x, tf.constant([1.0, 2.0, 3.0])).numpy()
    array([1., 4., 9.], dtype=float32)
    """
    check_callable("map_fn", fn=fn)
    slices = _slices("map_fn", elems)
    wanted = fn_output_signature if fn_output_signature is not None else dtype
    if not slices:
        result = _map_nothing(fn, slices, wanted)
    else:
        run = loop if slices.is_long else run_rounds
        _, result = run("map_fn", lambda _, elem: (None, fn(elem)), None, slices)
    if wanted is not None:
        leaves = nest.flatten(wanted)
        tensors = nest.flatten(result)
        names = [as_dtype(getattr(leaf, "dtype", leaf)) for leaf in leaves]
        if len(names) != len(tensors) or any(
            name != tensor.dtype for name, tensor in zip(names, tensors, strict=True)
        ):
            raise TypeError(
                f"map_fn: fn_output_signature declares {[expected.name for expected in names]}, "
                f"`fn` returned {[tensor.dtype.name for tensor in tensors]}"
            )
    return result


def _map_nothing(fn: Callable[[Any], Any], slices: Slices, wanted: Any) -> Any:
    """Return stacks without rows, with the shapes and dtypes of the results of `fn`."""
    specs = nest.flatten(wanted)
    if specs and all(getattr(spec, "is_known", False) for spec in specs):  # TensorSpec
        with devices.on_device_of(slices.leaves[0]):
            rows = [zeros((0, *spec.shape), spec.dtype) for spec in specs]
        return nest.pack_sequence_as(wanted, rows)
    try:
        return no_rounds("map_fn", lambda _, elem: ((), fn(elem)), (), slices)
    except OperatorNotAllowedInGraphError as error:
        raise InvalidArgumentError(
            "map_fn: `elems` has no slices along the first axis, and `fn` needs values, so the "
            "shape of its results is not known: give it as fn_output_signature=tf.TensorSpec("
            "shape, dtype)"
        ) from error


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
    checkpoint: str | None = None,
) -> Any:
    """Return all states of a recurrence ``state = fn(state, slice)`` over `elems`, stacked.

    Parameters
    ----------
    fn:
        A function of the state so far and of the next slice of `elems` along its first axis; it
        returns the next state, in the same structure.
    elems:
        A tensor or a structure of tensors whose first axes have the same size (otherwise
        ValueError).
    initializer:
        The state before the first slice. Without it the first slice is the first state.
    reverse:
        Go through the slices from the last to the first; states stay in the order of slices.
    checkpoint:
        Values kept for the gradient in a `function`. None: the state of each round, and results
        that take long to compute. "every": the state of each round. "sqrt": about 2 sqrt(n) of the
        n states at a time; `fn` runs once more. Other values raise ValueError. Eager tapes keep all
        results (`recompute_grad` does not).

    Each state is recorded, so the result is differentiable. The other parameters have no effect. In
    a `function` it is a loop of the program; states keep their shapes and dtypes. Without slices
    the result has no rows; without an `initializer`, too, this raises InvalidArgumentError.

    Examples
    --------
    >>> import tinygrad_cg as tf
    >>> tf.scan(lambda total, x: total + x, tf.constant([1, 2, 3, 4])).numpy()
    array([ 1,  3,  6, 10], dtype=int32)
    """
    check_checkpoint("scan", checkpoint)
    first, slices = _start("scan", fn, elems, initializer, reverse)

    def step(state: Any, elem: Any) -> tuple[Any, Any]:
        new = _next("scan", fn, state, elem)
        return new, new

    if slices.is_long:
        _, states = loop("scan", step, first, slices, reverse, checkpoint)
        return states if initializer is not None else _joined(first, states, reverse)
    first = nest.map_structure(to_tensor, first)
    if not slices and initializer is not None:
        with devices.on_device_of(slices.leaves[0] if slices.leaves else nest.flatten(first)[0]):
            return nest.map_structure(lambda tensor: zeros((0, *tensor.shape), tensor.dtype), first)
    return run_rounds(
        "scan", step, first, slices, reverse, () if initializer is not None else [first]
    )[1]


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: Any = None,
    checkpoint: str | None = None,
) -> Any:
    """Return the last state of ``state = fn(state, slice)``, from the first of `elems` to the last.

    See `scan` for the parameters. Without slices it is the `initializer`.

    Examples
    --------
    >>> tf.foldl(lambda total, x: 10 * total + x, tf.constant([1, 2, 3])).numpy()
    np.int32(123)
    """
    return _last("foldl", fn, elems, initializer, False, checkpoint)


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: Any = None,
    checkpoint: str | None = None,
) -> Any:
    """Return the last state of ``state = fn(state, slice)``, from the last of `elems` to the first.

    See `scan` for the parameters. Without slices it is the `initializer`.

    Examples
    --------
    >>> tf.foldr(lambda total, x: 10 * total + x, tf.constant([1, 2, 3])).numpy()
    np.int32(321)
    """
    return _last("foldr", fn, elems, initializer, True, checkpoint)


def _last(
    name: str, fn: Any, elems: Any, initializer: Any, reverse: bool, checkpoint: str | None
) -> Any:
    check_checkpoint(name, checkpoint)
    state, slices = _start(name, fn, elems, initializer, reverse)

    def step(state: Any, elem: Any) -> tuple[Any, None]:
        return _next(name, fn, state, elem), None

    if slices.is_long:
        state, _ = loop(name, step, state, slices, reverse, checkpoint)
    else:
        state, _ = run_rounds(name, step, nest.map_structure(to_tensor, state), slices, reverse)
    return nest.map_structure(to_tensor, state)


def _start(name: str, fn: Any, elems: Any, initializer: Any, reverse: bool) -> tuple[Any, Slices]:
    """Return the initial state, and the slices to loop over."""
    check_callable(name, fn=fn)
    if initializer is not None:
        order = f". They come before the initial state: {name}(fn, elems, initializer)"
        return initializer, _slices(name, elems, order)
    slices = _slices(name, elems)
    if not slices:
        raise InvalidArgumentError(f"{name}: `elems` has no slices along the first axis")
    count = len(slices)
    return slices[count - 1 if reverse else 0], slices.part(0, -1) if reverse else slices.part(1)


def _next(name: str, fn: Any, state: Any, elem: Any) -> Any:
    """Return the state after one slice, in the structure of the state."""
    new = fn(state, elem)
    leaves, new_leaves = nest.flatten(state), nest.flatten(new)
    if len(new_leaves) != len(leaves):
        raise ValueError(
            f"{name}: `fn` must return the state in the structure that it received: expected "
            f"{len(leaves)} tensor(s), got {len(new_leaves)}"
        )
    return nest.pack_sequence_as(state, new_leaves)


def run_rounds(
    name: str,
    step: Callable[[Any, Any], tuple[Any, Any]],
    state: Any,
    slices: Slices,
    reverse: bool = False,
    before: Sequence[Any] = (),
) -> tuple[Any, Any]:
    """Run a loop in Python, and return what `loop` returns; `before` are its first results."""
    state = nest.map_structure(first_of_loop, state)
    results = [*before]
    for elem in reversed(slices) if reverse else slices:
        state, result = step(state, elem)
        results.append(result)
    return state, _stack(name, results[::-1] if reverse else results)


def _joined(first: Any, states: Any, reverse: bool) -> Any:
    """Return the stacked states with the first state added."""
    flat = []
    for leaf, rest in zip(nest.flatten(first), nest.flatten(states), strict=True):
        row = expand_dims(convert(leaf), 0)
        flat.append(concatenate([rest, row] if reverse else [row, rest], 0))
    return nest.pack_sequence_as(states, flat)


def _slices(name: str, elems: Any, order: str = "") -> Slices:
    """Return the slices of a structure of tensors along their first axes.

    An error for `elems` without an axis ends with `order`, of the arguments.
    """
    leaves = [
        convert(elem) for elem in ([elems] if isinstance(elems, ArrayLike) else nest.flatten(elems))
    ]
    if not leaves or any(leaf.ndim == 0 for leaf in leaves):
        shapes = ", ".join(str(tuple(leaf.shape)) for leaf in leaves)
        raise ValueError(
            f"{name}: `elems` must be tensors of at least one dimension, got "
            f"{f'shape {shapes}' if leaves else 'no tensor'}{order}"
        )
    sizes = {leaf.shape[0] for leaf in leaves}
    if len(sizes) > 1:
        raise ValueError(
            f"{name}: `elems` must have the same size along the first axis, got "
            f"{', '.join(str(tuple(leaf.shape)) for leaf in leaves)}"
        )
    return Slices(elems, leaves, sizes.pop())


def no_rounds(
    name: str, step: Callable[[Any, Any], tuple[Any, Any]], start: Any, slices: Slices
) -> Any:
    """Return the results of a loop over no slices: stacks without rows.

    `step` is traced for their shapes and dtypes; its assignments and draws have no effect.
    """
    structure: list[Any] = []

    def rows(carries: list, leaves: list) -> list:
        _, result = step(nest.pack_sequence_as(start, carries), slices.pack(leaves))
        structure[:] = [result]
        return result_leaves(result)

    from .loops import shapes_of  # most programs do without

    avals = iter(shapes_of(name, rows, nest.flatten(start), slices.parts))
    (result,) = structure

    def stacked(leaf: Any) -> Any:
        if leaf is None:
            return None
        aval = next(avals)
        return zeros((0, *aval.shape), aval.dtype)

    sources = [*slices.leaves, *nest.flatten(start)]
    with devices.on_device_of(convert(sources[0])) if sources else nullcontext():
        return None if result is None else nest.map_structure(stacked, result)


def _stack(name: str, values: list[Any]) -> Any:
    """Return a list of structures of tensors as one structure of stacks; None for an empty list."""
    rows = [nest.flatten(value) for value in values]
    if len({len(row) for row in rows}) > 1:
        raise ValueError(f"{name}: `fn` returned different structures")
    columns = [
        None if column[0] is None else _stack_rounds(name, column)
        for column in zip(*rows, strict=True)
    ]
    return nest.pack_sequence_as(values[0], columns) if values else None


def _stack_rounds(name: str, column: Sequence[Any]) -> Tensor:
    """Return the results of all rounds as one tensor."""
    rows = list(map(convert, column))
    shapes = [tuple(row.shape) for row in rows]
    for k, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise InvalidArgumentError(
                f"{name}: each round must return the same shapes, got {shapes[0]} for slice 0 and "
                f"{shape} for slice {k}: give a growing result its final shape at the start, as "
                "zeros that each round fills in part; or pad the results to one shape"
            )
    return stack(rows)
