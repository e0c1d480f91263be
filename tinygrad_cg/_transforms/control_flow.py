"""Loops and choices as functions of functions: `while_loop`, `cond`, `map_fn`, `scan`, `foldl`.

They call Python functions in a Python loop, as TensorFlow does eagerly. While a `function` is
traced a loop over elements is unrolled; one that needs the value of a condition is an error there.
A choice by a tensor without a value becomes one operation of the program: the compiler registers
what makes it (`set_chooser`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import prod
from operator import itemgetter
from typing import Any

from numpy import ndarray

from .. import nest
from .._core.conversion import BOOL, INT32, Weak, as_dtype, convert
from .._core.kinds import is_exact
from .._core.levels import Listener, ask_for_value, remove_listener, state
from .._core.tensor import ArrayLike, Tensor
from .._ops.comparison import equal, not_equal
from .._ops.creation import zeros
from .._ops.define import as_int
from .._ops.elementwise import where
from .._ops.shape import cast, reshape, stack, unstack
from ..errors import InvalidArgumentError
from .batching import BatchTensor


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


Chooser = Callable[[str, Any, list[tuple[str, Callable[[], Any]]]], Any]


def _no_chooser(name: str, index: Any, branches: Any) -> Any:
    raise AssertionError("only a trace has tensors without values")


_choose: Chooser = _no_chooser


def set_chooser(function: Chooser) -> None:
    """Have `function` make a choice by an index without a value: the compiler knows programs."""
    global _choose
    _choose = function


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: Any = None,
) -> Any:
    """Return ``true_fn()`` if `pred` is true, and else ``false_fn()``: one of them is called.

    Parameters
    ----------
    pred:
        A bool, or a tensor of one element.
    true_fn, false_fn:
        Functions without arguments. What they return is made of tensors, numbers and None.

    Where `pred` has no value, in a `function`, both functions are traced, and a call of the program
    runs the operations of one of them. They must return the same structure, and tensors of the same
    shapes and dtypes (TypeError); numbers take the dtype of the other's tensor. Variables that one
    assigns are assigned if it is chosen. Random numbers are drawn for both. A gradient is zero, and
    not None, where only the other branch depends on a source. Inside ``vmap``, with a `pred` that
    differs between examples, both are computed, and each example takes its own. After ``tf.cond``.
    TypeError for what cannot be called, ValueError for a `pred` of more elements.

    Examples
    --------
    >>> import tinygrad_cg as tf
    >>> f = tf.function(lambda x: tf.cond(x > 0.0, lambda: x * x, lambda: -x))
    >>> float(f(tf.constant(3.0))), float(f(tf.constant(-3.0)))
    (9.0, 3.0)
    """
    _check_callable("cond", true_fn=true_fn, false_fn=false_fn)
    assert true_fn is not None
    assert false_fn is not None
    unknown = without_value("cond", "pred", pred)
    if unknown is None:
        chosen = true_fn() if pred else false_fn()
        return nest.map_structure(lambda leaf: leaf if leaf is None else _to_tensor(leaf), chosen)
    holds = unknown if unknown.dtype == BOOL else not_equal(unknown, 0)
    return branch("cond", cast(holds, INT32), [("false_fn", false_fn), ("true_fn", true_fn)])


def switch_case(
    branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None, name: Any = None
) -> Any:
    """Return what one of several functions returns, chosen by an index.

    Parameters
    ----------
    branch_index:
        A whole number, or a tensor of one integer.
    branch_fns:
        A list of functions without arguments; or a dictionary, or a list of pairs, from whole
        numbers to such functions.
    default:
        What is called for every other index; the function of the largest number, if not given.

    For an index without a value, see `cond`. After ``tf.switch_case``. Raises TypeError for what is
    no integer or no function, ValueError if there are no functions or a number comes twice.

    Examples
    --------
    >>> import tinygrad_cg as tf
    >>> x = tf.constant(3.0)
    >>> float(tf.switch_case(1, [lambda: x, lambda: x * x, lambda: 0.0]))
    9.0
    """
    pairs = _numbered("switch_case", branch_fns)
    for key, function in pairs:
        _check_callable("switch_case", **{f"branch_fns[{key}]": function})
    if default is not None:
        _check_callable("switch_case", default=default)
    otherwise = pairs[-1][1] if default is None else default
    unknown = without_value("switch_case", "branch_index", branch_index)
    if unknown is None:
        chosen = dict(pairs).get(as_int("switch_case", "branch_index", branch_index), otherwise)()
        return nest.map_structure(lambda leaf: leaf if leaf is None else _to_tensor(leaf), chosen)
    if not is_exact(unknown.dtype):
        raise TypeError(
            f"switch_case: `branch_index` must be an integer, got a tensor of {unknown.dtype.name}"
        )
    branches = [(f"branch_fns[{key}]", function) for key, function in pairs]
    index = cast(zeros(()), INT32) + len(pairs) - (default is None)
    for place, (key, _) in enumerate(pairs):
        index = where(equal(unknown, key), place, index)
    if default is not None:
        branches.append(("default", default))
    return branch("switch_case", index, branches)


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: Any = None,
) -> Any:
    """Return what the function of the first true predicate returns.

    Parameters
    ----------
    pred_fn_pairs:
        A list of pairs of a predicate (see `cond`) and a function without arguments.
    default:
        What is called if no predicate is true. Without it that is an InvalidArgumentError.
    exclusive:
        Have it be an InvalidArgumentError if more than one predicate is true.

    `strict` makes no difference. For predicates without a value, see `cond`; there `default` must
    be given, and `exclusive` be False (ValueError). After ``tf.case``.
    """
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    if not pairs or any(not isinstance(one, (tuple, list)) or len(one) != 2 for one in pairs):
        raise TypeError(
            "case: `pred_fn_pairs` must be a list of pairs of a predicate and a function"
        )
    for place, (_, function) in enumerate(pairs):
        _check_callable("case", **{f"pred_fn_pairs[{place}][1]": function})
    if default is not None:
        _check_callable("case", default=default)
    unknown = [without_value("case", "pred", pred) for pred, _ in pairs]
    if all(one is None for one in unknown):
        true = [place for place, (pred, _) in enumerate(pairs) if pred]
        if exclusive and len(true) > 1:
            raise InvalidArgumentError(
                f"case: the predicates {true} are all true, and `exclusive` says that one is"
            )
        if not true and default is None:
            raise InvalidArgumentError("case: no predicate is true, and there is no `default`")
        chosen: Any = pairs[true[0]][1] if true else default
        return nest.map_structure(lambda leaf: leaf if leaf is None else _to_tensor(leaf), chosen())
    if default is None or exclusive:
        raise ValueError(
            "case: where predicates have no value, in a `function`, `default` must be given and "
            "`exclusive` be False: a program cannot raise an error for what they turn out to be"
        )
    otherwise = default
    for pred, function in reversed(pairs):
        otherwise = partial(cond, pred, function, otherwise)
    return otherwise()


def _numbered(name: str, functions: Any) -> list[tuple[int, Any]]:
    """Return the functions by number, in order."""
    listed = list(functions.items() if isinstance(functions, dict) else functions)
    if not listed:
        raise ValueError(f"{name}: `branch_fns` must have at least one function")
    if all(isinstance(one, (tuple, list)) and len(one) == 2 for one in listed):
        pairs = [(as_int(name, "branch_fns", key), one) for key, one in listed]
        if len(dict(pairs)) < len(pairs):
            raise ValueError(f"{name}: a number comes twice in `branch_fns`")
        return sorted(pairs, key=itemgetter(0))
    return list(enumerate(listed))


def without_value(name: str, parameter: str, value: Any) -> Any:
    """Return what decides as a scalar tensor, if it has no value; else None."""
    if not isinstance(value, (ArrayLike, Weak)):
        return None
    tensor = convert(value)
    if type(tensor._data) is ndarray or ask_for_value(tensor) is not None:
        return None
    if prod(tensor.shape) != 1:
        raise ValueError(
            f"{name}: `{parameter}` must be one value, got a tensor of shape "
            f"{tuple(tensor.shape)}; where() chooses by element"
        )
    return reshape(tensor, ())


def branch(name: str, index: Any, branches: list[tuple[str, Callable[[], Any]]]) -> Any:
    """Return the result of a branch, where the index has no value, or one for each example."""
    if not isinstance(index, BatchTensor):
        return _choose(name, index, branches)
    listener = _NoAssignments(name)
    state.listeners.append(listener)
    try:
        results = [function() for _, function in branches]
    finally:
        remove_listener(listener)
    for one in results[1:]:
        nest.assert_same_structure(results[0], one)
    leaves = [nest.flatten(one) for one in results]
    chosen = []
    for column in zip(*leaves, strict=True):
        value = column[-1]
        for place in range(len(column) - 2, -1, -1):
            value = None if value is None else where(equal(index, place), column[place], value)
        chosen.append(value)
    return nest.pack_sequence_as(results[0], chosen)


class _NoAssignments(Listener):
    """Refuses assignments in branches of which each example takes one."""

    def __init__(self, name: str):
        self.name = name

    def variable_assigned(self, variable: Any) -> None:
        raise ValueError(
            f"{self.name}: a branch assigns to {variable.name!r} inside vmap, where the predicate "
            "differs between examples: assign what the call returns"
        )


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
