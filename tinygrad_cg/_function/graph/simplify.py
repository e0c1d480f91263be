"""Simplification: the same numbers, bit for bit, with fewer operations.

Each value is built again, operands first, by a table of identities that hold for all IEEE numbers
(not x + 0: -0 + 0 is 0). Equal values are merged, small constants are computed, and values that no
output needs are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime import promotion

from ..._core.kinds import is_inexact, is_native_float, is_real_number
from . import moves
from .masks import Polynomials
from .values import (
    FuncGraph,
    OutputItem,
    Value,
    constant,
    frozen,
    identity_of,
    in_order,
    operation,
    reshaped,
    unrepeated,
    with_operands,
)

_MAX_CONSTANT_SIZE = 1024  # elements

_MAX_PARTS = 16  # of a concatenation

_ROUNDED_ONCE = {"add", "subtract", "multiply", "divide", "negative", "square", "sqrt"}

# The position of the upstream gradient, and the operation if it masks nothing.
_MASKS = {
    "multiply_upstream": (0, "multiply"),
    "divide_upstream": (0, "divide"),
    "divide_unbounded": (1, "divide"),
}


def simplify(graph: FuncGraph, replacements: Mapping[Value, Value] | None = None) -> FuncGraph:
    """Return an equivalent graph with the same inputs, with `replacements` for some values."""
    builder, roots, built = _Builder(), {}, {}
    for value, replacement in (replacements or {}).items():
        builder.build_all([replacement], roots)
        built[value] = roots[replacement]
    builder.build_all(graph.outputs, built)
    return FuncGraph(graph.inputs, [built[output] for output in graph.outputs])


class _Builder:
    """Builds values, equal ones only once."""

    def __init__(self) -> None:
        self.by_identity: dict[Any, Value] = {}
        self.done: set[Value] = set()
        self.polynomials = Polynomials()

    def build_all(self, outputs: Sequence[Value], built: dict[Value, Value]) -> None:
        """Build the values that `outputs` depend on, except those in `built`."""
        for value in in_order(outputs):
            if value not in built:
                built[value] = self.build(value, [built[operand] for operand in value.inputs])

    def build(self, value: Value, operands: list[Value]) -> Value:
        """Return `value` with other operands, or something simpler that equals it."""
        built = self._build(value, operands)
        self.done.add(built)
        return built

    def _build(self, value: Value, operands: list[Value]) -> Value:
        if value.array is not None or isinstance(value, OutputItem):
            rebuilt = with_operands(value, operands)
            return self.by_identity.setdefault(identity_of(value, operands), rebuilt)
        if value.primitive is None:  # an input
            return value
        rebuilt, name = Value(value.aval, value.primitive, operands, value.params), value.name
        if value.is_code:  # two calls of it may differ
            return rebuilt
        rule = _RULES.get(name)
        simpler = rule(rebuilt) if rule is not None else None
        if simpler is None and name in moves.MOVES:
            simpler = moves.marks(rebuilt)
        if simpler is None and name in _MASKS:
            simpler = self._without_mask(rebuilt)
        elif simpler is None and name == "multiply_tangent":
            simpler = self._without_one_mask(rebuilt)
        elif simpler is None and name == "unless_masked":
            simpler = self._never_masked(rebuilt)
        if simpler is None and value.kind == "elementwise":
            simpler = _without_repeats(rebuilt)
        if simpler is not None:
            return self._built(simpler)
        computed = _constant_of(rebuilt)
        if computed is not None:
            return self.build(computed, [])
        return self.by_identity.setdefault(identity_of(value, operands), rebuilt)

    def _built(self, value: Value) -> Value:
        """Return `value` after building what it is made of, unless that is done."""
        if value in self.done:
            return value
        return self.build(value, [self._built(operand) for operand in value.inputs])

    def _without_mask(self, value: Value) -> Value | None:
        """Return an ordinary product or quotient, if no zero upstream gradient meets a pole."""
        position, name = _MASKS[value.name]
        upstream, slope = value.inputs[position], value.inputs[1]
        if name == "divide":
            fits = any(map(self.polynomials.is_nonzero, (upstream, slope)))
        else:
            fits = not self.polynomials.may_mask(upstream, slope)
        return operation(name, value.inputs, {}) if fits else None

    def _without_one_mask(self, value: Value) -> Value | None:
        """Return a product that only one factor masks, if a zero of the other meets no pole."""
        x, y = value.inputs
        for factor, other in ((x, y), (y, x)):
            if not self.polynomials.may_mask(factor, other):
                return operation("multiply_upstream", [other, factor], {})
        return None

    def _never_masked(self, value: Value) -> Value | None:
        """Return the gradient, if no zero upstream gradient meets a slope that is not finite."""
        upstream, slope, gradient = value.inputs
        if self.polynomials.may_mask(upstream, slope) or gradient.aval.dtype != value.aval.dtype:
            return None
        return _in_shape(gradient, value)


def _in_shape(value: Value, like: Value) -> Value:
    """Return `value`, repeated to the shape of `like`."""
    if tuple(value.shape) == tuple(like.shape):
        return value
    return operation("broadcast_to", [value], {"shape": tuple(like.shape)})


def _constant_of(value: Value) -> Value | None:
    """Return the result of an operation on constants; None if it is large or raises."""
    arrays = [operand.array for operand in value.inputs]
    if not arrays or any(array is None for array in arrays) or isinstance(value.aval, list):
        return None
    if value.name == "broadcast_to" or prod(value.shape) > _MAX_CONSTANT_SIZE:
        return None
    run, dtypes = value.primitive.run, {operand.dtype for operand in value.inputs}
    if value.name in _ROUNDED_ONCE and dtypes == {value.dtype} and is_native_float(value.dtype):
        run = value.primitive.ufunc  # gives the same bits without loading a kernel
    with np.errstate(all="ignore"):
        try:
            return constant(np.array(run(*arrays, **value.params)))
        except Exception:  # the operation raises it when the program runs
            return None


def _without_repeats(value: Value) -> Value | None:
    """Return the operation on operands without their explicit broadcasts."""
    operands = list(value.inputs)
    for i, operand in enumerate(operands):
        if operand.name == "broadcast_to":
            shapes = [other.shape for j, other in enumerate(operands) if j != i]
            if promotion.broadcast_shapes(operand.inputs[0].shape, *shapes) == tuple(value.shape):
                operands[i] = operand.inputs[0]
            elif operand.inputs[0].array is not None:
                return _of_numbers(value)
    if all(new is old for new, old in zip(operands, value.inputs, strict=True)):
        return None
    return Value(value.aval, value.primitive, operands, value.params)


def _of_numbers(value: Value) -> Value | None:
    """Return an operation on broadcast numbers as a broadcast number."""
    numbers = list(map(unrepeated, value.inputs))
    number = None
    if all(operand.array is not None and not operand.array.ndim for operand in numbers):
        number = _constant_of(operation(value.primitive, numbers, value.params))
    return number and operation("broadcast_to", [number], {"shape": tuple(value.shape)})


# Identities ----------------------------------------------------------------------------------


def _is_number(value: Value, number: float) -> bool:
    """Return whether all elements are `number`; 0.0 and -0.0 differ."""
    array = unrepeated(value).array
    if array is None or array.ndim or not is_real_number(array.dtype):
        return False
    return array == number and (number != 0 or bool(np.signbit(array)) == bool(np.signbit(number)))


def _if_same(value: Value, operand: Value) -> Value | None:
    """Return `operand`, if it has the shape and the dtype of `value`."""
    same = operand.aval.shape == value.aval.shape and operand.dtype == value.dtype
    return operand if same else None


def _neutral(number: float, sides: tuple[int, ...]) -> Callable[[Value], Value | None]:
    """Return the rule of an operation for which `number` is a neutral element."""

    def rule(value: Value) -> Value | None:
        for side in sides:
            if _is_number(value.inputs[side], number):
                return _if_same(value, value.inputs[1 - side])
        return None

    return rule


def _add(value: Value) -> Value | None:
    zero = -0.0 if is_inexact(value.dtype) else 0
    return _neutral(zero, (0, 1))(value) or _put_together(value) or _joined(value)


def _put_together(value: Value) -> Value | None:
    """Add two gradients of the same part of an array before they are scattered into zeros."""
    x, y = value.inputs
    put = x.primitive
    if put is None or put is not y.primitive or put.name != "getitem_adjoint":
        return None
    parts = [x.inputs[0], y.inputs[0]]
    if any(isinstance(part, np.ndarray) for part in x.params["key"]):  # positions may repeat
        return None
    if frozen(x.params) != frozen(y.params) or parts[0].aval != parts[1].aval:
        return None
    return operation(put, [operation("add", parts, {})], x.params)


def _joined(value: Value) -> Value | None:
    """Return the sum of parts that cover an array along one of its later axes as a concatenation.

    Each part was scattered into zeros, as the gradients of the parts of a matrix of gates are.
    """
    terms: list[Value] = []
    pending = list(value.inputs)
    while pending:
        term = pending.pop()
        if term.primitive is value.primitive:
            pending.extend(term.inputs)
        elif term.name == "getitem_adjoint":
            terms.append(term)
        else:
            return None
        if len(terms) + len(pending) > _MAX_PARTS:
            return None
    spans: list[Any] = [span_along_axis(term.params["key"], term.shape) for term in terms]
    if None in spans:
        return None
    order = sorted(range(len(spans)), key=spans.__getitem__)
    axes, starts, stops = zip(*[spans[k] for k in order], strict=True)
    axis, parts = axes[0], [terms[k].inputs[0] for k in order]
    if not axis or len({*axes}) > 1 or (*starts, value.shape[axis]) != (0, *stops):
        return None
    if any(part.dtype != value.dtype for part in parts):
        return None
    return operation("concatenate", parts, {"axis": axis})


def span_along_axis(key: Sequence[Any], shape: Sequence[int]) -> tuple[int, int, int] | None:
    """Return the axis, start and stop of a key that slices one axis and takes all of the others.

    Return None for any other key.
    """
    if len(key) > len(shape) or any(type(item) is not slice for item in key):
        return None
    parts = [item.indices(size) for item, size in zip(key, shape, strict=False)]
    cut = [axis for axis, part in enumerate(parts) if part != (0, shape[axis], 1)]
    if len(cut) != 1 or parts[cut[0]][2] != 1:
        return None
    start, stop, _ = parts[cut[0]]
    return (cut[0], start, stop) if stop > start else None


def _negative(value: Value) -> Value | None:
    inner = value.inputs[0]
    return _if_same(value, inner.inputs[0]) if inner.primitive is value.primitive else None


def _cast(value: Value) -> Value | None:
    inner = value.inputs[0]
    if inner.dtype == value.dtype:
        return inner
    if inner.primitive is value.primitive and np.can_cast(inner.inputs[0].dtype, inner.dtype):
        return _if_same(value, inner.inputs[0])
    return None


def _merge_reshapes(value: Value) -> Value | None:
    """Return one reshape for a chain of reshapes, expand_dims and squeeze."""
    operand = value.inputs[0]
    while operand.name == "reshape":
        operand = operand.inputs[0]
    if operand.shape == value.shape:
        return operand
    if value.name == "reshape" and operand is value.inputs[0]:
        return None
    return reshaped(operand, value.shape)


def _transpose(value: Value) -> Value | None:
    perm, operand = value.params["perm"], value.inputs[0]
    if tuple(perm) == tuple(range(len(perm))):
        return operand
    if operand.primitive is value.primitive:
        inner = operand.params["perm"]
        combined = tuple([inner[i] for i in perm])
        return operation("transpose", operand.inputs, {"perm": combined})
    return None


def _broadcast_to(value: Value) -> Value | None:
    operand = value.inputs[0]
    if operand.shape == value.shape:
        return operand
    if operand.primitive is value.primitive:
        return operation("broadcast_to", operand.inputs, value.params)
    return None


def _gather(value: Value) -> Value | None:
    """Return a gather at one index, or at indices at equal distances, as a getitem."""
    x, axis = value.inputs[0], value.params["axis"]
    part = _part_at(value, x.shape)
    if part == slice(0, x.shape[axis], 1):
        return x
    if part is None:
        return moves.with_shared_indices(value) or moves.gather_of_joined(value)
    return operation("getitem", [x], {"key": (*[slice(None)] * axis, part)})


def _gather_adjoint(value: Value) -> Value | None:
    shape, part = value.params["shape"], _part_at(value, value.shape)
    params = {"shape": shape, "key": (*[slice(None)] * value.params["axis"], part)}
    if part is None:
        return moves.with_shared_indices(value) or moves.inverse(value)
    return operation("getitem_adjoint", value.inputs[:1], params)


def _part_at(value: Value, shape: tuple[int, ...]) -> int | slice | None:
    """Return the indices of a gather, or of its gradient, as a key; None if they are no slice."""
    numbers = value.inputs[1].array
    if numbers is None or numbers.ndim > 1 or not numbers.size or value.params["batch_dims"]:
        return None
    first, last = int(numbers.flat[0]), int(numbers.flat[-1])
    if min(first, last) < 0 or max(first, last) >= shape[value.params["axis"]]:
        return None
    if not numbers.ndim:
        return first
    step = int(numbers[1]) - first if numbers.size > 1 else 1
    if not step or not np.array_equal(numbers, np.arange(first, last + np.sign(step), step)):
        return None
    return slice(first, last + step if last + step >= 0 else None, step)


class _OnValues:
    """Operations on values by name, for decompositions; see `_ops.composition`."""

    def __getattr__(self, name: str) -> Callable[..., Value]:
        return lambda *operands, **params: operation(name, operands, params)


def _where(value: Value) -> Value | None:
    """Return the branch that a constant condition chooses."""
    condition, x, y = value.inputs
    array = unrepeated(condition).array
    if array is None or array.size != 1:
        return None
    chosen = x if array.item() else y
    return _in_shape(chosen, value) if chosen.dtype == value.dtype else None


def _parts(value: Value) -> Value:
    """Return what a composite operation consists of: loops compute its parts with others."""
    return value.primitive.decomposition(_OnValues(), *value.inputs, **value.params)


def _scalar_power(value: Value) -> Value | None:
    exponent = value.params["exponent"]
    if exponent in (1, 2):  # a square or a copy, which may equal other values
        return _parts(value)
    if exponent == 0:
        return _in_shape(constant(np.ones((), value.dtype)), value)
    return None


_RULES: dict[str, Callable[[Value], Value | None]] = {
    "add": _add,
    "subtract": _neutral(0.0, (1,)),
    "multiply": _neutral(1.0, (0, 1)),
    "divide": _neutral(1.0, (1,)),
    "multiply_upstream": _neutral(1.0, (0,)),
    "negative": _negative,
    "cast": _cast,
    "concatenate": lambda v: _if_same(v, v.inputs[0]) if len(v.inputs) == 1 else None,
    **dict.fromkeys(
        ("identity", "stop_gradient", "values_of_factors"), lambda value: value.inputs[0]
    ),
    **dict.fromkeys(("reshape", "expand_dims", "squeeze"), _merge_reshapes),
    "transpose": _transpose,
    "broadcast_to": _broadcast_to,
    "gather": _gather,
    "gather_adjoint": _gather_adjoint,
    "scalar_power": _scalar_power,
    "sparse_cross_entropy": _parts,
    "where": _where,
}
