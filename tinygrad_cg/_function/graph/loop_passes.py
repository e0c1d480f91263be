"""Passes over drafts of loops. Each moves work out of the rounds.

* A loop variable that no round changes becomes a constant; one that counts becomes a slice.
* If each round writes its own row of an array, at an index known before the loop, the rows become
  outputs, and the array is built after the loop. The gradient of such a write, which reads the row
  and sets it to zero, is read before the loop.
* What is the same in all rounds is computed once, before the loop. Products of slices of a stack
  become one product of the stack.
* A sum of products over rounds, such as the gradient of a matrix, becomes one product after the
  loop. So does an output whose rows are products.

All passes but the last keep all bits, except for products of stacks, which add in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..._core.kinds import is_inexact, is_integer
from ..._core.tensor import Aval
from .loop_drafts import Body, Draft
from .partition import is_cheap
from .values import (
    FuncGraph,
    Value,
    constant,
    operation,
    reach,
    reshaped,
    rows_at,
    unrepeated,
    with_operands,
)

_MAX_ROUNDS = 10_000_000
_PRODUCTS = ("matmul", "matvec")


# Loop variables that stay, or count --------------------------------------------------------------


def counts_or_writes(loop: Value) -> bool:
    """Return whether the passes in `COUNTING` apply to a loop."""
    body: Body = loop.params["loop"].body
    if body.length is None or body.limited or body.lean:
        return False
    carried = body.graph.inputs[body.constants :][: body.carries]
    pairs = zip(body.graph.outputs, carried, strict=False)
    return any(value.name == "set_row" for value in body.graph.values()) or any(
        _step(end, before) is not None for end, before in pairs
    )


def _step(end: Value, carried: Value) -> Any:
    """Return the integer that each round adds to a loop variable, or None."""
    if end.name != "add" or carried.shape or not is_integer(carried.dtype):
        return None
    steps = [operand for operand in end.inputs if operand is not carried]
    if len(steps) != 1 or steps[0].array is None or steps[0].shape:
        return None
    return steps[0].array[()]


def known_rounds(graph: FuncGraph, constants: int, starts: Sequence[np.ndarray | None]) -> Any:
    """Return the number of rounds of a loop that ends by its last loop variable; None if unknown.

    It is known if the condition compares a counter with a number. `starts` are the initial loop
    variables, as far as they are known.
    """
    carried, ends = graph.inputs[constants:], graph.outputs

    def count(value: Value) -> int | None:
        name = value.name
        if name == "reshape":
            return count(value.inputs[0])
        if name == "logical_and":
            counts = [count(operand) for operand in value.inputs]
            numbers = [number for number in counts if number is not None]
            return min(numbers) if len(numbers) == len(counts) else None
        if name not in ("less", "less_equal", "greater", "greater_equal"):
            return None
        left, right = value.inputs
        if right.array is None:
            return None
        for k, start in enumerate(starts[:-1]):
            step = _step(ends[k], carried[k])
            if ends[k] is left and step is not None and start is not None:
                return _rounds(name, int(start), int(step), right.array)
        return None

    return count(ends[len(starts) - 1])


def _rounds(name: str, start: int, step: int, limit: np.ndarray) -> int | None:
    if limit.size != 1 or not is_integer(limit.dtype):
        return None
    distance = int(limit.reshape(-1)[0]) - start
    if name.startswith("greater"):
        distance, step = -distance, -step
    if step <= 0:
        return None
    count = max(-(-(distance + name.endswith("equal")) // step), 0)
    return count if count <= _MAX_ROUNDS else None


def fix_what_stays(draft: Draft) -> None:
    """Replace loop variables that no round changes by constants of the loop."""
    substitutions: dict[Value, Value] = {}
    for k, carried in enumerate(draft.carried):
        if draft.results[k] is carried:
            substitutions[carried] = new = Value(carried.aval)
            draft.fixed[new] = draft.outside[k] = draft.starts[k]
    draft.replace(substitutions)


def make_slices_of_counters(draft: Draft) -> None:
    """Replace integers that increase by a constant step by slices."""
    substitutions: dict[Value, Value] = {}
    for k, carried in enumerate(draft.carried):
        step, start = _step(draft.results[k], carried), draft.starts[k].array
        if step is None or start is None:
            continue
        exact = int(start) + int(step) * np.arange(draft.length + 1)
        numbers = exact.astype(carried.dtype)
        if np.array_equal(numbers, exact):  # else they overflow
            rounds = numbers[:-1][::-1] if draft.body.reverse else numbers[:-1]
            substitutions[carried] = new = Value(carried.aval)
            draft.slices[new] = constant(np.ascontiguousarray(rounds))
            draft.outside[k] = constant(numbers[-1:].reshape(()))
    draft.replace(substitutions)


def take_rows(draft: Draft) -> None:
    """Replace rows that are slices by the stack of the slices."""
    for k in range(len(draft.carried), len(draft.results)):
        if draft.results[k] in draft.slices:
            draft.outside[k] = draft.slices[draft.results[k]]


# Arrays that are written row by row --------------------------------------------------------------


def is_row(value: Value) -> bool:
    """Return whether a value is the row of an array at an integer index."""
    return _is_part(value) and not value.params["axis"]


def _is_part(value: Value) -> bool:
    return value.name == "gather" and not (value.params["batch_dims"] or value.inputs[1].shape)


def join_writes(draft: Draft) -> None:
    """Join two writes of a row: setting it to zero, and adding to it."""
    substitutions = {}
    for value in draft.values():
        if value.name != "add":
            continue
        for put, added in (value.inputs, value.inputs[::-1]):
            if (
                put.name == "set_row"
                and added.name == "gather_adjoint"
                and not (put.params["batch_dims"] or added.params["axis"] or put.inputs[2].shape)
                and put.inputs[2] is added.inputs[1]
                and _is_zero(put.inputs[1])
                and put.aval == added.aval == value.aval
            ):
                operands = [put.inputs[0], added.inputs[0], put.inputs[2]]
                substitutions[value] = operation("set_row", operands, put.params)
    draft.replace(substitutions)


def _is_zero(value: Value) -> bool:
    array = unrepeated(value).array
    return array is not None and not array.any()


def put_writes_outside(draft: Draft) -> None:
    """Build arrays after the loop if each round writes another row of them."""
    stacks = _of_stacks(draft, _invariant(draft))
    for k, carried in enumerate(draft.carried):
        end = draft.results[k]
        if end.name != "set_row" or end.params["batch_dims"]:
            continue
        array, row, index = end.inputs
        if array is not carried or index not in stacks or not draft.fits(row):
            continue
        uses, pair = draft.uses(), [carried, index]
        reads = [value for value in draft.values() if is_row(value) and [*value.inputs] == pair]
        numbers = _known(stacks[index])
        if uses[end] != 1 or uses[carried] != 1 + len(reads) or numbers is None:
            continue
        size = carried.shape[0]
        is_inside = not numbers.size or 0 <= numbers.min() <= numbers.max() < size
        if is_inside and len(np.unique(numbers)) == len(numbers):
            _put_writes_outside(draft, k, numbers, reads)


def _put_writes_outside(draft: Draft, k: int, numbers: np.ndarray, reads: list[Value]) -> None:
    """Write the rows at these indices after the loop; `reads` are reads before the write."""
    start, substitutions = draft.starts[k], {}
    for read in reads:
        substitutions[read] = new = Value(read.aval)
        draft.slices[new] = rows_at(start, numbers)
    draft.replace(substitutions)
    row = draft.results[k].inputs[1]
    draft.outside[k] = rows = draft.stack(row)
    size = start.shape[0]
    if np.array_equal(numbers, np.arange(size)):
        return
    sources, written = np.zeros(size, np.int64), np.zeros(size, bool)
    sources[numbers], written[numbers] = np.arange(len(numbers)), True
    draft.outside[k] = gathered = rows_at(rows, sources)
    if not written.all():
        mask = constant(written.reshape(-1, *[1] * len(row.shape)))
        draft.outside[k] = operation("where", [mask, gathered, start], {})


def _known(value: Value) -> np.ndarray | None:
    """Return the array of a value that elementwise operations compute from constants, else None."""
    if value.array is not None:
        return value.array
    if value.kind not in ("elementwise", "move"):
        return None
    operands = [_known(operand) for operand in value.inputs]
    if not operands or any(operand is None for operand in operands):
        return None
    return np.asarray(value.primitive.run(*operands, **value.params))


# What need not be in the loop --------------------------------------------------------------------


def _invariant(draft: Draft) -> dict[Value, Value]:
    """Return the values of the body that are equal in all rounds, with their values outside."""
    same = dict(draft.fixed)
    for value in draft.values():
        if value.array is not None:
            same[value] = value
            continue
        is_same = all(operand in same for operand in value.inputs) and bool(value.inputs)
        if is_same and (is_cheap(value) or value.name in _PRODUCTS):
            same[value] = with_operands(value, [same[operand] for operand in value.inputs])
    return same


def _of_stacks(draft: Draft, same: dict[Value, Value]) -> dict[Value, Value]:
    """Return products and elementwise operations of slices, with the stacks of their results."""
    stacks = dict(draft.slices)
    for value in draft.values():
        inputs = value.inputs
        if not any(operand in stacks for operand in inputs) or not draft.fits(value):
            continue
        if not all(operand in stacks or operand in same for operand in inputs):
            continue
        operands = [stacks.get(operand) or same[operand] for operand in inputs]
        is_computed = value.name in _PRODUCTS or value.kind == "elementwise"
        if _is_part(value):
            if inputs[0] in same:
                parts = operation("gather", operands, value.params)
                stacks[value] = move_axis(parts, value.params["axis"], 0)
        elif is_computed and _axes_align(value, stacks):
            stack = operation(value.primitive, operands, value.params)
            if stack.aval == Aval((draft.length, *value.shape), value.dtype):
                stacks[value] = stack
    return stacks


def _axes_align(value: Value, stacks: dict[Value, Value]) -> bool:
    """Return whether a new first axis of the stacked operands broadcasts against no other axis."""
    core = (2, 1) if value.name == "matvec" else (2, 2)
    if value.kind == "elementwise":
        core = (0,) * len(value.inputs)
    rest = [len(operand.shape) - k for operand, k in zip(value.inputs, core, strict=True)]
    most = max(rest)
    return all(
        size == most if operand in stacks else size <= most
        for operand, size in zip(value.inputs, rest, strict=True)
    )


def hoist(draft: Draft) -> None:
    """Compute before the loop what is equal in all rounds, and products of slices."""
    same = _invariant(draft)
    stacks = _of_stacks(draft, same) if draft.has_all_rounds else {}
    substitutions: dict[Value, Value] = {}
    for value in reach(draft.results, lambda value: () if value in substitutions else value.inputs):
        if value in same and (value.kind == "elementwise" or value.name in _PRODUCTS):
            substitutions[value] = new = Value(value.aval)
            draft.fixed[new] = same[value]
        elif value in stacks and (value.name in _PRODUCTS or _is_part(value)):
            substitutions[value] = new = Value(value.aval)
            draft.slices[new] = stacks[value]
    draft.replace(substitutions)


# What need not be summed in the loop -------------------------------------------------------------


def put_sums_outside(draft: Draft) -> None:
    """Compute after the loop sums over rounds, and rows that are products."""
    sums = _Sums(draft)
    left = []
    for k in range(len(draft.carried)):
        terms = sums.terms(k)
        if terms and not sums.put_outside(k, terms, [sums.product, sums.scattered]):
            left.append((k, terms))
    for k, terms in left:  # sums of values that are outputs anyway
        sums.put_outside(k, terms, [sums.product, sums.scattered, sums.sum_of_kept])
    for k in range(len(draft.carried), len(draft.results)):
        row = draft.results[k]
        if sums.is_product_after(row):
            operands = [sums.stack(row.inputs[0]), sums.same[row.inputs[1]]]
            draft.outside[k] = operation("matmul", operands, {})


Make = Callable[[], Value]


class _Sums:
    """The sums over rounds of one loop, and functions that compute their terms for all rounds."""

    def __init__(self, draft: Draft):
        self.draft, self.same = draft, _invariant(draft)
        self.stacks, self.uses = _of_stacks(draft, self.same), draft.uses()

    def terms(self, k: int) -> list[Value]:
        """Return what each round adds to a loop variable; an empty list if it is not such a sum."""
        carried = self.draft.carried[k]
        if not is_inexact(carried.dtype) or self.uses[carried] != 1:
            return []
        leaves, pending = [], [self.draft.results[k]]
        while pending:
            value = pending.pop()
            if value.name == "add" and self.uses[value] == 1:
                pending += value.inputs
            else:
                leaves.append(value)
        if leaves.count(carried) != 1 or any(leaf.aval != carried.aval for leaf in leaves):
            return []
        leaves.remove(carried)
        return leaves

    def put_outside(
        self, k: int, terms: Sequence[Value], kinds: Sequence[Callable[[Value], Make | None]]
    ) -> bool:
        """Compute a sum after the loop if all terms are of these kinds; return whether they are."""
        makers = [next(filter(None, (kind(term) for kind in kinds)), None) for term in terms]
        if None in makers:
            return False
        total = self.draft.starts[k]
        for make in filter(None, makers):
            total = operation("add", [total, make()], {})
        self.draft.outside[k] = total
        return True

    def product(self, value: Value) -> Make | None:
        """Return a function that computes the product of two matrices for all rounds, or None."""
        if value.name != "matmul" or not all(
            len(operand.shape) == 2 and operand not in self.same and self.draft.fits(operand)
            for operand in value.inputs
        ):
            return None
        return partial(self._product, *value.inputs)

    def _product(self, left: Value, right: Value) -> Value:
        inner = self.draft.length * left.shape[1]
        if left.name == "transpose":
            a = reshaped(self.stack(left.inputs[0]), (inner, left.shape[0]))
            a = _transpose(a, (1, 0))
        else:
            a = reshaped(_transpose(self.stack(left), (1, 0, 2)), (left.shape[0], inner))
        if right.name == "transpose":
            b = _transpose(self.stack(right.inputs[0]), (0, 2, 1))
        else:
            b = self.stack(right)
        return operation("matmul", [a, reshaped(b, (inner, right.shape[1]))], {})

    def scattered(self, value: Value) -> Make | None:
        """Return a function that computes the gradient of reads for all rounds, or None."""
        if value.name == "gather_adjoint":
            index = value.inputs[1]
            if index.shape or value.params["batch_dims"]:
                return None
            if index not in self.stacks and index not in self.same:
                return None
        elif value.name != "getitem_adjoint":
            return None
        part = value.inputs[0]
        if part in self.same or not self.draft.fits(part):
            return None
        return partial(self._scattered, value)

    def _scattered(self, value: Value) -> Value:
        stack, rest = self.stack(value.inputs[0]), value.inputs[1:]
        if rest and rest[0] in self.stacks:
            operands = [move_axis(stack, 0, value.params["axis"]), self.stacks[rest[0]]]
        else:
            total = operation("sum", [stack], {"axis": (0,), "keepdims": False})
            operands = [total, *[self.same[operand] for operand in rest]]
        return operation(value.primitive, operands, value.params)

    def sum_of_kept(self, value: Value) -> Make | None:
        """Return a function that sums a value whose rows are outputs over all rounds, or None."""
        if value.name != "sum" or value.params["keepdims"]:
            return None
        x, draft = value.inputs[0], self.draft
        if x not in draft.results[len(draft.carried) :] and x not in draft.slices:
            return None
        axes = (0, *[axis + 1 for axis in value.params["axis"]])
        params = {"axis": axes, "keepdims": False}
        return lambda: operation("sum", [self.stack(x)], params)

    def is_product_after(self, row: Value) -> bool:
        """Return whether a row is only an output, and is a product with a constant matrix."""
        if row.name != "matmul" or self.uses[row] != 1:
            return False
        left, right = row.inputs
        return right in self.same and len(right.shape) == 2 and self.draft.fits(left)

    def stack(self, value: Value) -> Value:
        """Return the stack of a value of the body."""
        if value.name == "reshape":
            stack = self.stack(value.inputs[0])
            return reshaped(stack, (self.draft.length, *value.shape))
        return self.draft.stack(value)


def _transpose(value: Value, perm: tuple[int, ...]) -> Value:
    return operation("transpose", [value], {"perm": perm})


def move_axis(x: Value, source: int, to: int) -> Value:
    """Return an array with an axis moved to another position."""
    perm = [axis for axis in range(len(x.shape)) if axis != source]
    perm.insert(to, source)
    return x if source == to else _transpose(x, tuple(perm))


COUNTING = (join_writes, fix_what_stays, make_slices_of_counters, take_rows)
"""Passes that come first, where a loop counts or writes rows."""

MOVING = (put_writes_outside, hoist, put_sums_outside, take_rows)
"""Passes over all loops."""

OF_ANY_LOOP = frozenset((join_writes, fix_what_stays, hoist))
"""Passes that also suit a limited loop, which has rows of zeros, and a lean one.

A lean loop spares memory.
"""
