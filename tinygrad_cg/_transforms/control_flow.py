"""Loops and choices as functions of functions: `while_loop`, `cond`, `case`.

They call Python functions in a Python loop, as TensorFlow does eagerly. While a `function` is
traced a loop becomes one operation of the program, and so does a choice by a tensor without a
value: the trace makes them (`Level.loop`, `Level.choose`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from math import prod
from opcode import opmap
from operator import itemgetter
from typing import Any

from numpy import ndarray

from .. import nest
from .._core.conversion import BOOL, INT32, Weak, convert, is_weak
from .._core.kinds import is_differentiable, is_exact
from .._core.levels import Listener, ask_for_value, current_trace, remove_listener, state
from .._core.tensor import ArrayLike, Aval, Tensor
from .._ops.comparison import equal, less, logical_and, not_equal
from .._ops.creation import zeros
from .._ops.elementwise import add, where
from .._ops.indexing import getitem
from .._ops.shape import cast, concatenate, identity, reshape, unstack
from .._ops.validation import as_int
from ..errors import InvalidArgumentError, OperatorNotAllowedInGraphError, is_ours
from .batching import BatchTensor
from .differentiable import skeleton
from .tensor_array import TensorArray


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
    """Replace `loop_vars` with ``body(*loop_vars)`` while ``cond(*loop_vars)`` holds.

    Parameters
    ----------
    cond, body:
        Functions with one argument for each of `loop_vars`. `body` returns their new values in the
        same structure (for a single variable it may return just the value).
    loop_vars:
        A list or tuple of tensors, or of structures of tensors.
    maximum_iterations:
        The loop ends after this many calls of `body`, whatever `cond` says.

    Returns the last values, as tensors in the structure of `loop_vars`. Each iteration is recorded,
    so the loop is differentiable. `shape_invariants` and the parameters after it, except
    `maximum_iterations`, have no effect. TypeError unless `cond` and `body` are callable,
    ValueError for values in another structure.

    In a `function` it is a loop of the program: variables keep their shapes and dtypes
    (InvalidArgumentError, TypeError). If the condition is known while tracing, and the body needs
    values, or changes shapes, it is unrolled instead.

    Examples
    --------
    >>> import tinygrad_cg as tf
    >>> i, total = tf.while_loop(lambda i, t: i < 5, lambda i, t: (i + 1, t * 2.0), (0, 1.0))
    >>> float(total)
    32.0
    """
    check_callable("while_loop", cond=cond, body=body)
    if not isinstance(loop_vars, (list, tuple)) or not loop_vars:
        raise ValueError("while_loop: `loop_vars` must be a list or tuple of at least one variable")
    trace = current_trace()
    if trace is not None and all(
        isinstance(value, ArrayLike | ndarray | TensorArray) or is_weak(value)
        for value in nest.flatten(loop_vars)
    ):
        result = _traced_while(trace, cond, body, loop_vars, maximum_iterations)
        if result is not None:
            return result
    last = None if maximum_iterations is None else int(maximum_iterations)
    values = nest.map_structure(first_of_loop, list(loop_vars))
    count = 0
    while last is None or count < last:
        goes_on = cond(*values)
        if isinstance(goes_on, BatchTensor) and ask_for_value(goes_on) is None:
            values = _rounds_of_examples(cond, body, values, goes_on, last and last - count)
            break
        if not goes_on:
            break
        values = _after_round(body, values)
        count += 1
    return nest.map_structure(to_tensor, nest.pack_sequence_as(loop_vars, nest.flatten(values)))


def _after_round(body: Callable[..., Any], values: list) -> list:
    results = body(*values)
    if not isinstance(results, (list, tuple)):
        results = [results]
    try:
        nest.assert_same_structure(list(values), list(results))
    except (TypeError, ValueError) as error:
        raise type(error)(
            "while_loop: body must return a new value for each of loop_vars: expected the "
            f"structure {skeleton(list(values))}, where * is a tensor or a number, but body "
            f"returned {skeleton(list(results))}"
        ) from None
    return list(results)


def _rounds_of_examples(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    values: list,
    goes_on: BatchTensor,
    last: int | None,
) -> list:
    """Run a loop for a batch: an example keeps its values once its condition fails."""
    live: Any = _scalar_truth(goes_on)
    count = 0
    with _no_assignments("while_loop"):
        while (last is None or count < last) and _any_example(live):
            old = list(map(convert, nest.flatten(values)))
            new = list(map(convert, nest.flatten(_after_round(body, values))))
            for k, (a, b) in enumerate(zip(old, new, strict=True)):
                if tuple(a.shape) != tuple(b.shape):
                    raise InvalidArgumentError(
                        f"while_loop: the condition differs between examples of vmap, so a round "
                        f"must keep shapes: loop variable {k} was of shape {tuple(a.shape)} before "
                        f"the round, and of {tuple(b.shape)} after it"
                    )
            chosen = [where(live, b, a) for a, b in zip(old, new, strict=True)]
            values = nest.pack_sequence_as(values, chosen)
            count += 1
            live = logical_and(live, _scalar_truth(cond(*values)))
    return values


def _scalar_truth(value: Any) -> Tensor:
    tensor = reshape(convert(value), ())
    return tensor if tensor.dtype == BOOL else not_equal(tensor, 0)


def _any_example(tensor: Tensor) -> bool:
    """Return whether a condition holds for any example of the batches around."""
    while isinstance(tensor, BatchTensor):
        tensor = tensor.physical
    return bool(tensor.numpy().any())


class _Carries:
    """The loop variables of a loop in a program.

    A `TensorArray` is carried as a tensor of all its elements. ``run(variables)`` runs one round;
    it is called to find the shapes of elements.
    """

    def __init__(
        self, name: str, structure: Any, run: Callable[[Any, list], Any], parts: Sequence[Aval]
    ):
        self.name, self.structure = name, structure
        self.flat = [] if structure is None else nest.flatten(structure)
        self.arrays = {k: leaf for k, leaf in enumerate(self.flat) if isinstance(leaf, TensorArray)}
        self.shapes: dict[int, tuple[int, ...] | None] = dict.fromkeys(self.arrays)
        if self.arrays:
            elements = partial(self._elements, run)
            others = [leaf for k, leaf in enumerate(self.flat) if k not in self.arrays]
            avals = current_trace().shapes_of(name, elements, others, parts)
            for k, aval in zip(self.arrays, avals, strict=True):
                self.shapes[k] = tuple(aval.shape[1:])

    def _elements(self, run: Callable[[Any, list], Any], others: list, parts: list) -> list:
        supply = iter(others)
        values = [
            self.arrays[k].identity() if k in self.arrays else next(supply)
            for k in range(len(self.flat))
        ]
        elements = nest.flatten(run(nest.pack_sequence_as(self.structure, values), parts))
        return [self._rows(k, elements[k]) for k in self.arrays]

    def _rows(self, k: int, array: Any) -> Tensor:
        if not isinstance(array, TensorArray):
            what = "a tensor" if isinstance(array, ArrayLike) else f"a {type(array).__name__}"
            raise TypeError(
                f"{self.name}: each round must keep the types of its loop variables: loop variable "
                f"{k} was a TensorArray before the round, and {what} after it"
            )
        return array.rows(self.shapes[k])

    def tensors(self, structure: Any) -> list:
        """Return the variables as the list that a loop carries."""
        flat = [] if structure is None else nest.flatten(structure)
        return [self._rows(k, leaf) if k in self.arrays else leaf for k, leaf in enumerate(flat)]

    def values(self, tensors: Sequence[Any]) -> Any:
        """Return the variables in their structure."""
        if self.structure is None:
            return None
        flat = [
            self.arrays[k].with_rows(tensor) if k in self.arrays else tensor
            for k, tensor in enumerate(tensors)
        ]
        return nest.pack_sequence_as(self.structure, flat)


def _traced_while(trace: Any, cond: Any, body: Any, loop_vars: Any, maximum: Any) -> Any:
    """Return the last values of a loop in a program, or None if Python has to unroll it.

    Python unrolls a loop whose condition is known while tracing and whose body needs the values of
    the variables. The loop carries the number of rounds if there is a `maximum`, the variables, and
    whether another round follows.
    """
    first = cond(*loop_vars)
    is_known = not isinstance(first, ArrayLike) or not isinstance(convert(first)._data, Aval)
    counted = maximum is not None

    def run(values: Any, _: list) -> list:
        return _after_round(body, values)

    def goes_on(values: list) -> Tensor:
        with again():
            holds = _one_bool(cond(*carries.values(values[counted:])))
        return logical_and(holds, less(values[0], maximum)) if counted else holds

    def one_round(values: list, _: list) -> tuple[list, list]:
        with again():
            new = carries.tensors(run(carries.values(values[counted:-1]), []))
        new = list(map(convert, new))
        if counted:
            new.insert(0, add(values[0], 1))
        return [*new, goes_on(new)], []

    try:
        with trace.unchanged("while_loop", [cond, body], is_known) as again:
            carries = _Carries("while_loop", loop_vars, run, [])
            starts = carries.tensors(loop_vars)
            if counted:
                starts.insert(0, cast(0, INT32))
            starts.append(goes_on(list(map(convert, starts))))
            ends, _ = trace.loop(starts, [], "while_loop", one_round, None)
    except (OperatorNotAllowedInGraphError, InvalidArgumentError, TypeError, ValueError) as error:
        if is_known and not is_users(error):
            return None
        raise
    return carries.values(ends[counted:-1])


def _one_bool(value: Any) -> Tensor:
    """Return a condition of `while_loop` as a scalar."""
    tensor = convert(value)
    if tensor._data.dtype != BOOL or tensor.size != 1:
        raise TypeError(
            f"while_loop: the condition must be one bool, got {tensor._data.dtype} of shape "
            f"{tuple(tensor._data.shape)}"
        )
    return reshape(tensor, ())


def is_users(error: BaseException) -> bool:
    """Return whether a `raise` statement in the user's code raised an error.

    Such an error may be about a value, so nothing else is tried.
    """
    last = error.__traceback__
    if last is None or isinstance(error, OperatorNotAllowedInGraphError):
        return False
    while last.tb_next is not None:
        last = last.tb_next
    frame = last.tb_frame
    home = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    if is_ours(frame.f_code.co_filename) or home in _FOREIGN:
        return False
    return frame.f_code.co_code[last.tb_lasti] == _RAISE


_RAISE = opmap["RAISE_VARARGS"]
_FOREIGN = frozenset((*sys.stdlib_module_names, "numpy", "scipy")) - {"__main__"}


def to_tensor(value: Any) -> Any:
    """Return a loop variable as a tensor; a TensorArray is returned unchanged."""
    keeps_itself = isinstance(value, Tensor) or (
        hasattr(value, "stack") and hasattr(value, "write")
    )
    return value if keeps_itself else convert(value)


def first_of_loop(value: Any) -> Any:
    """Return the start of a loop variable, as a tensor of the loop's own.

    A tape in the body that watches the variable does not watch the tensor it started with, as in a
    program.
    """
    owned = isinstance(value, Tensor) and is_differentiable(value.dtype)
    return identity(value) if owned else value


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: Any = None,
) -> Any:
    """Return ``true_fn()`` if `pred` is true, else ``false_fn()``; only one of them is called.

    Parameters
    ----------
    pred:
        A bool, or a tensor of one element.
    true_fn, false_fn:
        Functions without arguments that return nested tensors, numbers and None.

    If `pred` has no value, in a `function`, both functions are traced, and the program runs the
    operations of one of them. They must return the same structure, and tensors of the same shapes
    and dtypes (TypeError); numbers take the dtype of the other's tensor. Variables are assigned
    only by the chosen branch. Random numbers are drawn for both. If only the other branch depends
    on a source, the gradient is zero, not None. Inside ``vmap``, if `pred` differs between
    examples, both are computed and the result is selected for each example. Modelled on
    ``tf.cond``. TypeError unless the functions are callable, ValueError for a `pred` with several
    elements.

    Examples
    --------
    >>> import tinygrad_cg as tf
    >>> f = tf.function(lambda x: tf.cond(x > 0.0, lambda: x * x, lambda: -x))
    >>> float(f(tf.constant(3.0))), float(f(tf.constant(-3.0)))
    (9.0, 3.0)
    """
    check_callable("cond", true_fn=true_fn, false_fn=false_fn)
    assert true_fn is not None
    assert false_fn is not None
    unknown = without_value("cond", "pred", pred)
    if unknown is None:
        chosen = true_fn() if pred else false_fn()
        return nest.map_structure(lambda leaf: leaf if leaf is None else to_tensor(leaf), chosen)
    holds = unknown if unknown.dtype == BOOL else not_equal(unknown, 0)
    return branch("cond", cast(holds, INT32), [("false_fn", false_fn), ("true_fn", true_fn)])


def switch_case(
    branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None, name: Any = None
) -> Any:
    """Return the result of one of several functions, chosen by an index.

    Parameters
    ----------
    branch_index:
        A whole number, or a tensor of one integer.
    branch_fns:
        A list of functions without arguments; or a dictionary, or a list of pairs, from whole
        numbers to such functions.
    default:
        Called for every other index; by default the function of the largest number.

    For an index without a value, see `cond`. Modelled on ``tf.switch_case``. Raises TypeError for
    an index or functions of other types, ValueError without functions, and if a number comes twice.

    Examples
    --------
    >>> import tinygrad_cg as tf
    >>> x = tf.constant(3.0)
    >>> float(tf.switch_case(1, [lambda: x, lambda: x * x, lambda: 0.0]))
    9.0
    """
    pairs = _numbered(branch_fns)
    for key, function in pairs:
        check_callable("switch_case", **{f"branch_fns[{key}]": function})
    if default is not None:
        check_callable("switch_case", default=default)
    otherwise = pairs[-1][1] if default is None else default
    unknown = without_value("switch_case", "branch_index", branch_index)
    if unknown is None:
        chosen = dict(pairs).get(as_int("switch_case", "branch_index", branch_index), otherwise)()
        return nest.map_structure(lambda leaf: leaf if leaf is None else to_tensor(leaf), chosen)
    if not is_exact(unknown.dtype):
        raise TypeError(
            f"switch_case: `branch_index` must be an integer, got a tensor of {unknown.dtype.name}"
        )
    branches = [(f"branch_fns[{key}]", function) for key, function in pairs]
    index = cast(zeros(()), INT32) + len(pairs) - (default is None)
    for position, (key, _) in enumerate(pairs):
        index = where(equal(unknown, key), position, index)
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
    """Return the result of the first function whose predicate is true.

    Parameters
    ----------
    pred_fn_pairs:
        A list of pairs of a predicate (see `cond`) and a function without arguments.
    default:
        Called if no predicate is true. Without it, this raises InvalidArgumentError.
    exclusive:
        Raise InvalidArgumentError if more than one predicate is true.

    `strict` has no effect. For predicates without a value see `cond`; `default` is then required,
    and `exclusive` must be False (ValueError). Modelled on ``tf.case``.

    Examples
    --------
    >>> x = tf.constant(2.0)
    >>> tf.case([(x < 1.0, lambda: x), (x < 3.0, lambda: -x)], default=lambda: 0.0 * x).numpy()
    np.float32(-2.0)
    """
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    if not pairs or any(not isinstance(pair, (tuple, list)) or len(pair) != 2 for pair in pairs):
        raise TypeError(
            "case: `pred_fn_pairs` must be a list of pairs of a predicate and a function"
        )
    for position, (_, function) in enumerate(pairs):
        check_callable("case", **{f"pred_fn_pairs[{position}][1]": function})
    if default is not None:
        check_callable("case", default=default)
    unknown = [without_value("case", "pred", pred) for pred, _ in pairs]
    if all(value is None for value in unknown):
        true = [position for position, (pred, _) in enumerate(pairs) if pred]
        if exclusive and len(true) > 1:
            raise InvalidArgumentError(
                f"case: the predicates {true} are all true, but `exclusive` allows only one"
            )
        if not true and default is None:
            raise InvalidArgumentError("case: no predicate is true, and `default` is missing")
        chosen: Any = pairs[true[0]][1] if true else default
        return nest.map_structure(lambda leaf: leaf if leaf is None else to_tensor(leaf), chosen())
    if default is None or exclusive:
        raise ValueError(
            "case: if predicates have no value, in a `function`, give `default` and leave "
            "`exclusive` False: a program cannot raise an error that depends on them"
        )
    otherwise = default
    for pred, function in reversed(pairs):
        otherwise = partial(cond, pred, function, otherwise)
    return otherwise()


def _numbered(functions: Any) -> list[tuple[int, Any]]:
    """Return the functions by number, in order."""
    listed = list(functions.items() if isinstance(functions, dict) else functions)
    if not listed:
        raise ValueError("switch_case: `branch_fns` must have at least one function")
    if all(isinstance(entry, (tuple, list)) and len(entry) == 2 for entry in listed):
        pairs = [(as_int("switch_case", "branch_fns", key), branch) for key, branch in listed]
        if len(dict(pairs)) < len(pairs):
            raise ValueError("switch_case: `branch_fns` has a number twice")
        return sorted(pairs, key=itemgetter(0))
    return list(enumerate(listed))


def without_value(name: str, parameter: str, value: Any) -> Any:
    """Return the condition or index as a scalar tensor if it has no value, else None."""
    if not isinstance(value, (ArrayLike, Weak)):
        return None
    tensor = convert(value)
    if not isinstance(tensor._data, Aval) or ask_for_value(tensor, ready=True) is not None:
        return None
    if prod(tensor.shape) != 1:
        raise ValueError(
            f"{name}: `{parameter}` must be one value, got a tensor of shape "
            f"{tuple(tensor.shape)}; choose element by element with where()"
        )
    return reshape(tensor, ())


def branch(name: str, index: Any, branches: list[tuple[str, Callable[[], Any]]]) -> Any:
    """Return the result of a branch whose index has no value, or one value for each example."""
    trace, functions = current_trace(), [function for _, function in branches]
    with nullcontext() if trace is None else trace.unchanged(name, functions):
        if isinstance(index, BatchTensor):
            return _branches_of_examples(name, index, functions)
        return index.level.choose(name, index, branches)


def _branches_of_examples(name: str, index: BatchTensor, functions: list[Callable[[], Any]]) -> Any:
    with _no_assignments(name):
        results = [function() for function in functions]
    for result in results[1:]:
        nest.assert_same_structure(results[0], result)
    leaves = [nest.flatten(result) for result in results]
    chosen = []
    for column in zip(*leaves, strict=True):
        value = column[-1]
        for position in range(len(column) - 2, -1, -1):
            if value is not None:
                value = where(equal(index, position), column[position], value)
        chosen.append(value)
    return nest.pack_sequence_as(results[0], chosen)


class NoAssignments(Listener):
    """A context that refuses assignments to Variables, where examples of a batch differ."""

    def __init__(self, message: str):
        self.message = message

    def __enter__(self) -> None:
        state.listeners.append(self)

    def __exit__(self, *_: object) -> None:
        remove_listener(self)

    def variable_assigned(self, variable: Any) -> None:
        message = self.message.format(repr(variable.name))
        raise ValueError(f"{message}: assign the result of the call")


def _no_assignments(name: str) -> NoAssignments:
    place = "inside vmap, where the predicate differs between examples"
    return NoAssignments(f"{name}: a branch assigns to {{}} {place}")


class Slices(Sequence[Any]):
    """The slices of a structure of tensors along their first axes.

    A structure that is None has `length` slices that are None. `is_long` says that a program has a
    loop over the slices.
    """

    def __init__(self, elems: Any, leaves: Sequence[Tensor], length: int):
        self._elems, self.leaves, self._length = elems, leaves, length
        self._columns: list[list[Tensor]] | None = None

    @property
    def is_long(self) -> bool:
        return self._length > 1 and current_trace() is not None

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        if not -self._length <= index < self._length:
            raise IndexError(index)
        if self.is_long:  # the loop reads the others
            return self.pack([leaf[index] for leaf in self.leaves])
        if self._columns is None:
            self._columns = [unstack(leaf, 0) for leaf in self.leaves]
        return self.pack([column[index] for column in self._columns])

    @property
    def parts(self) -> list[Aval]:
        """Return the shapes and dtypes of one slice of each tensor."""
        return [Aval(tuple(leaf.shape[1:]), leaf.dtype) for leaf in self.leaves]

    def pack(self, leaves: Sequence[Tensor]) -> Any:
        """Return one slice of each tensor, in the structure of the tensors."""
        if self._elems is None:
            return None
        if isinstance(self._elems, ArrayLike) or not nest.is_nested(self._elems):
            return leaves[0]
        return nest.pack_sequence_as(self._elems, list(leaves))

    def part(self, start: int, stop: int | None = None) -> Slices:
        """Return some of the slices."""
        rows = range(self._length)[start:stop]
        return self.like([getitem(leaf, slice(start, stop)) for leaf in self.leaves], len(rows))

    def like(self, leaves: Sequence[Tensor], length: int) -> Slices:
        """Return the slices of other tensors in the same structure."""
        return Slices(self._elems, leaves, length)


def loop(
    name: str,
    step: Callable[[Any, Any], tuple[Any, Any]],
    start: Any,
    slices: Slices,
    reverse: bool = False,
    checkpoint: str | None = None,
    unrolls: bool = False,
) -> tuple[Any, Any]:
    """Return the last state, and the stacked results, of ``state, result = step(state, slice)``.

    The loop is one operation of the traced program. States and results may be None. `unrolls` says
    that the caller unrolls a loop whose function changes Python's objects.
    """
    if checkpoint == "sqrt":
        return _in_segments(name, step, start, slices, reverse)
    structure: list[Any] = []

    def run(state: Any, leaves: list) -> Any:
        return step(state, slices.pack(leaves))[0]

    def one_round(values: list, leaves: list) -> tuple[list, list]:
        with again():
            state, result = step(carries.values(values), slices.pack(leaves))
        structure[:] = [result]
        return carries.tensors(state if start is not None else None), result_leaves(result)

    trace, lean = current_trace(), checkpoint is not None
    with trace.unchanged(name, [step], unrolls) as again:
        carries = _Carries(name, start, run, slices.parts)
        first = carries.tensors(start)
        length = len(slices)
        ends, rows = trace.loop(first, slices.leaves, name, one_round, length, reverse, lean)
    state = carries.values(ends)
    (result,) = structure
    return state, None if result is None else nest.pack_sequence_as(
        result, rows[: len(result_leaves(result))]
    )


def _in_segments(
    name: str,
    step: Callable[[Any, Any], tuple[Any, Any]],
    state: Any,
    slices: Slices,
    reverse: bool,
) -> tuple[Any, Any]:
    """Run the loop in segments, each a loop whose gradient runs it again.

    There are about as many segments as rounds in a segment. The remaining rounds are a loop after
    the segments.
    """
    size = round(len(slices) ** 0.5)
    whole = len(slices) // size * size
    leaves = [
        reshape(getitem(leaf, slice(whole)), (-1, size, *leaf.shape[1:])) for leaf in slices.leaves
    ]
    segments = Slices(leaves or None, leaves, whole // size)

    def run(state: Any, parts: list | None) -> tuple[Any, Any]:
        return loop(name, step, state, slices.like(parts or [], size), reverse, "every")

    results: list[Any] = []
    for is_whole in (False, True) if reverse else (True, False):
        if is_whole:
            state, result = loop(name, run, state, segments, reverse, "every")
            stacks = nest.flatten(result)
            stacks = [x if x is None else reshape(x, (-1, *x.shape[2:])) for x in stacks]
            results.append(nest.pack_sequence_as(result, stacks))
        elif whole < len(slices):
            state, result = loop(name, step, state, slices.part(whole), reverse, "every")
            results.append(result)
    first, *rest = results[::-1] if reverse else results
    if not rest or first is None:
        return state, first
    return state, nest.map_structure(lambda *parts: concatenate(parts, 0), first, *rest)


def check_checkpoint(name: str, checkpoint: Any) -> None:
    """Raise ValueError if `checkpoint` does not say what a gradient keeps."""
    if checkpoint not in (None, "every", "sqrt"):
        raise ValueError(
            f"{name}: `checkpoint` must be None, 'every' or 'sqrt', got {checkpoint!r}: the "
            "gradient keeps results that take long to compute, the states of every round, or "
            "about 2 sqrt(n) of n states"
        )


def result_leaves(result: Any) -> list:
    return [convert(leaf) for leaf in nest.flatten(result) if leaf is not None]


def check_callable(name: str, **functions: Any) -> None:
    for parameter, value in functions.items():
        if not callable(value):
            raise TypeError(f"{name}: `{parameter}` must be callable, got {type(value).__name__}")
