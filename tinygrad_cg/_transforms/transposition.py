"""Transposes of gradient rules: from gradients of outputs back to tangents of outputs.

A rule is linear in the upstream gradient. So the gradient of a rule is its transpose, which forward
mode needs. Users' rules are checked for linearity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from math import prod
from typing import Any, TypeAlias

import numpy as np

from .._core.devices import device_of, move, on_device_of, to_current, to_host
from .._core.kinds import is_complex, is_differentiable
from .._core.levels import Token, run_on, state, unrecorded_frame
from .._core.record import Node, run_recorded
from .._core.tensor import Tensor
from .._ops.comparison import greater
from .._ops.complex import conj, real
from .._ops.creation import zeros
from .._ops.elementwise import absolute, add, multiply
from .._ops.reductions import reduce_sum
from .._ops.shape import cast, reshape, stack
from .._reverse.sweep import differentiate
from .._rules.definition import Definition, source_line
from .._rules.user_ops import NoGradientError
from ..errors import NotLinearError
from .batching import unbatched_values

LEAST = 2.0**-38  # of an upstream gradient: what rounding leaves of a gradient that is 0
NEAR = {4: 2.0**-19, 8: 2.0**-42}
"""A change of upstream gradients that rounds sums otherwise, by the size of their numbers. NOISE
times it is below the tolerance, so that no other error passes."""
NOISE = 64.0  # times the change of a gradient by such changes may be rounding

Vjp: TypeAlias = Callable[[list], Sequence]


def transpose_vjp(
    vjp: Vjp,
    outputs: Sequence,
    tangents: Sequence,
    definition: Definition | None = None,
    diagonal: bool = False,
    whole: bool = False,
) -> list[Tensor | None]:
    """Return the tangent of each output of an operation with the gradients `vjp`.

    A rule of the user's, which `definition` names, is checked for being linear, TypeError if not.
    If it has a rule of its own, which is not its transpose, the tangent is that of its operations.
    If it is not made of operations alone (NumPy code), it is called for each unit vector; and once
    if it is `diagonal`, that of a real elementwise operation. If it is to be taken as a `whole`,
    what it calls is not called so.
    """
    first = next((tangent for tangent in tangents if tangent is not None), None)
    with nullcontext() if first is None else on_device_of(first):
        for natural in (False, True):
            try:
                with no_unit_vectors() if whole else nullcontext():
                    transposition = Transposition(vjp, outputs, natural)
                    results = transposition(tangents)
            except UnitVectorsNeeded:
                if not whole:
                    raise
                continue
            except NoGradientError:  # of an operation that may be linear
                if definition is None:
                    raise
                continue
            arguments = vjp, transposition, tangents, results
            if definition is None or run_on(unrecorded_frame(), _is_transpose, *arguments):
                return results
        if not run_on(unrecorded_frame(), _is_linear, vjp, outputs):
            raise _not_linear(definition)
        if diagonal:
            return [_along_diagonal(vjp, outputs, tangents)]
        return UnitTransposition(vjp, outputs)(tangents)


def _along_diagonal(vjp: Vjp, outputs: Sequence, tangents: Sequence) -> Tensor:
    """Return the tangent of an elementwise operation, whose gradients for ones are its slopes."""
    ones = Tensor(to_current(np.ones(outputs[0].shape, outputs[0].dtype)))
    total = zeros(outputs[0].shape, outputs[0].dtype)
    for slope, tangent in zip(vjp([ones]), tangents, strict=True):
        if slope is not None and tangent is not None:
            total = add(total, multiply(slope, tangent))
    return cast(total, outputs[0].dtype)


class UnitVectorsNeeded(Exception):
    """A transpose would need unit vectors; another method may be better."""


@contextmanager
def no_unit_vectors() -> Iterator[None]:
    """Return a context in which a transpose by unit vectors raises UnitVectorsNeeded."""
    before, state.refuses_units = state.refuses_units, True
    try:
        yield
    finally:
        state.refuses_units = before


class UnitTransposition:
    """The transpose of any `vjp`, by one call per unit vector.

    Where <vjp(e), w> = <e, Q(w)>, the calls give the elements of Q(w). Linear over the reals.
    """

    def __init__(self, vjp: Vjp, outputs: Sequence[Any]):
        if state.refuses_units:
            raise UnitVectorsNeeded
        self.vjp = vjp
        self.avals = [(tuple(output.shape), np.dtype(output.dtype)) for output in outputs]
        self.calls = [self._calls(i) for i in range(len(self.avals))]

    def __call__(self, tangents: Sequence[Tensor | None]) -> list[Tensor | None]:
        results: list[Tensor | None] = []
        for (shape, dtype), parts in zip(self.avals, self.calls, strict=True):
            if not is_differentiable(dtype):
                results.append(None)
                continue
            products = [[_inner(call, tangents) for call in calls] for calls in parts]
            values = [stack(numbers) if numbers else zeros((0,)) for numbers in products]
            value = values[0] if len(values) == 1 else add(values[0], multiply(values[1], 1j))
            results.append(cast(reshape(value, shape), dtype))
        return results

    def _calls(self, index: int) -> list[list[Sequence]]:
        """Return the gradients for each unit vector of an output, then for each imaginary one."""
        shape, dtype = self.avals[index]
        calls = []
        for factor in (1, 1j) if is_complex(dtype) else (1,) * is_differentiable(dtype):
            units = factor * np.eye(prod(shape), dtype=dtype).reshape(prod(shape), *shape)
            calls.append([self.vjp(self._upstream(index, unit)) for unit in units])
        return calls

    def _upstream(self, index: int, unit: np.ndarray) -> list:
        arrays = [np.asarray(np.zeros(shape), _floating(dtype)) for shape, dtype in self.avals]
        arrays[index] = np.asarray(unit, arrays[index].dtype)
        return [Tensor(to_current(array)) for array in arrays]


def _floating(dtype: Any) -> np.dtype:
    return dtype if is_differentiable(dtype) else np.dtype(np.float64)


def _inner(ones: Sequence, others: Sequence) -> Tensor:
    """Return the real inner product of two lists of tensors."""
    total: Any = None
    for tensor, other in zip(ones, others, strict=True):
        if tensor is not None and other is not None:
            terms = reduce_sum(real(multiply(conj(tensor), other)))
            total = terms if total is None else add(total, terms)
    return zeros(()) if total is None else total


class Transposition:
    """The transpose of `vjp`: from tangents of operands to tangents of `outputs`.

    `vjp` is linear. Its transpose is the gradient of <vjp(dy), tangents> with respect to dy. The
    object can be called any number of times.
    """

    def __init__(self, vjp: Vjp, outputs: Sequence[Any], natural: bool = False):
        generator = np.random.default_rng(0)
        self.dys = [_random(generator, output) for output in outputs]
        self.token = Token()
        self.token.natural = natural
        self.token.silent = True  # the result is checked later
        self.token.transposes = True
        self.gradients = run_recorded(self.token, self.dys, vjp, list(self.dys))

    def __del__(self) -> None:
        self.token.alive = False

    def __call__(self, tangents: Sequence[Tensor | None]) -> list[Tensor | None]:
        pairs = zip(self.gradients, tangents, strict=True)
        present = [pair for pair in pairs if pair[0] is not None and pair[1] is not None]
        targets, upstream = ([pair[k] for pair in present] for k in (0, 1))
        return differentiate(self.token, targets, upstream, self.dys, transposes=True)[0]


def _random(generator: np.random.Generator, aval: Any) -> Tensor:
    """Return a random tensor with the shape of `aval`, and its dtype if it has derivatives."""
    values = generator.standard_normal(aval.shape)
    return Tensor(to_current(np.asarray(values, _floating(aval.dtype))))


def transpose_sweep(
    vjp: Vjp, targets: Sequence[Tensor], visited: Sequence[Node]
) -> Transposition | UnitTransposition:
    """Return the transpose of a sweep; `vjp` collects the sweep's nodes in `visited`.

    If the rules of users' rules are not their transposes, the transpose does without them. It uses
    unit vectors if a rule is not made of operations. TypeError if a rule is not linear.
    """
    with on_device_of(targets[0]):
        transposition = Transposition(vjp, targets)
        nodes = [node for node in tuple(visited) if getattr(node.saved, "definition", None)]
        here = unrecorded_frame()
        if all(run_on(here, _transposes, node, False) for node in nodes):
            return transposition
        if all(run_on(here, _transposes, node, True) for node in nodes):
            return Transposition(vjp, targets, natural=True)
        for node in nodes:
            if not run_on(here, _is_linear, *_vjp_of(node)):
                raise _not_linear(getattr(node.saved, "definition", None))
        return UnitTransposition(vjp, targets)


def _vjp_of(node: Any) -> tuple[Vjp, Sequence]:
    """Return the rule of a node, as a function of a list of upstream gradients, and its outputs."""
    multi_output = type(node.shape) is list

    def vjp(dys: list) -> Sequence:
        return node.rule(node, dys if multi_output else dys[0])

    return vjp, node.shape if multi_output else [node]


def _transposes(node: Any, natural: bool) -> bool:
    """Return whether the given method finds the transpose of the rule of `node`."""
    generator = np.random.default_rng(2)
    tangents = [None if tensor is None else _random(generator, tensor) for tensor in node.inputs]
    vjp, outputs = _vjp_of(node)
    transposition = Transposition(vjp, outputs, natural)
    try:
        return _is_transpose(vjp, transposition, tangents, transposition(tangents))
    except NoGradientError:
        return False


def _is_transpose(
    vjp: Vjp, transposition: Transposition, tangents: Sequence, results: Sequence
) -> bool:
    """Return whether <vjp(dy), tangents> is <dy, results>, for another dy as well."""
    dys, gradients = transposition.dys, transposition.gradients
    tolerance = 0.02 if any(dy._data.dtype.itemsize == 2 for dy in dys) else 1e-3
    others = [_scaled(dy, -1000.0, 500.0) for dy in dys]  # large, and not multiples
    for upstream, pulled in ((dys, gradients), (others, vjp(list(others)))):
        left, size = _product(pulled, tangents)
        right, more = _product(upstream, results)
        error = absolute(left - right)
        if unbatched_values(greater(error, tolerance * (size + more))).any():
            least = LEAST * _size(upstream) * _size(tangents)
            if unbatched_values(greater(error, least)).any():
                _, noise = _product(_rounding(vjp, upstream, pulled), tangents)
                if unbatched_values(greater(error, NOISE * noise)).any():
                    return False
    return True


def _is_linear(vjp: Vjp, outputs: Sequence[Any]) -> bool:
    """Return whether the rule maps sums and multiples to sums and multiples."""
    generator = np.random.default_rng(0)
    ones, others = ([_random(generator, output) for output in outputs] for _ in range(2))
    for factor in (1.0, -1000.0):  # large, with other signs
        pairs = zip(ones, others, strict=True)
        sums = [add(multiply(dy, factor), other) for dy, other in pairs]
        results = [vjp(list(dys)) for dys in (ones, others, sums)]
        least = LEAST * (abs(factor) * _size(ones) + _size(others)) / NOISE
        if not all(_is_sum(factor, least, *gradients) for gradients in zip(*results, strict=True)):
            noise = _rounding(vjp, ones, results[0], abs(factor) + 1.0)
            if not all(_is_sum(factor, *both) for both in zip(noise, *results, strict=True)):
                return False
        others = [multiply(dy, factor) for dy in others]
    return True


def _is_sum(factor: float, noise: Any, first: Any, other: Any, total: Any) -> bool:
    """Return whether ``factor * first + other`` is `total`, up to rounding."""
    if first is None or other is None or total is None:
        return first is other is total
    first = multiply(first, factor)
    tolerance = 0.02 if total._data.dtype.itemsize == 2 else 1e-3
    error = reduce_sum(absolute(add(first, other) - total))
    size = reduce_sum(add(absolute(first), absolute(other)))
    allowed = add(multiply(size, tolerance), reduce_sum(multiply(noise, NOISE)))
    return not unbatched_values(greater(error, allowed)).any()


def _size(tensors: Sequence) -> float:
    """Return the sum of the absolute values of all elements."""
    arrays = [to_host(unbatched_values(tensor)) for tensor in tensors if tensor is not None]
    return sum(float(np.abs(array).sum()) for array in arrays)


def _rounding(
    vjp: Vjp, dys: Sequence[Tensor], gradients: Sequence, factor: float = 1.0
) -> list[Tensor | None]:
    """Return, times a factor, how much gradients change for a small change of the upstream ones.

    For a gradient that is 0, a sum of terms that cancel, this is the size of rounding errors.
    """
    bounds: list[Any] = [None if gradient is None else 0.0 for gradient in gradients]
    near = [NEAR.get(dy._data.real.itemsize, 0.0) for dy in dys]  # float16 has too few digits
    for seed in range(8):
        changed = vjp([_scaled(dy, 1, each, seed) for dy, each in zip(dys, near, strict=True)])
        for k, (moved, other) in enumerate(zip(changed, gradients, strict=True)):
            if moved is not None and other is not None:
                bounds[k] = add(bounds[k], multiply(absolute(moved - other), factor))
    return bounds


def _not_linear(definition: Any) -> NotLinearError:
    return NotLinearError(
        f"forward mode: the rule of `{definition.name}` is not linear in its upstream gradient, so "
        "it has no transpose and no tangent: use reverse mode, or a linear rule "
        f"({definition.where()})",
        function=definition.name,
        line=source_line(definition.function),
    )


def _scaled(dy: Tensor, factor: float, spread: float, seed: int = 1) -> Tensor:
    """Return an upstream gradient times random factors that differ by up to `spread`."""
    data = dy._data
    factors = factor + np.random.default_rng(seed).uniform(-spread, spread, data.shape)
    return Tensor(move(np.asarray(factors * to_host(data), data.dtype), device_of(data)))


def _product(ones: Sequence, others: Sequence) -> tuple[Tensor, Tensor]:
    """Return the real inner product of two lists, and the sum of the absolute terms."""
    total = size = Tensor(np.zeros(()))
    for tensor, other in zip(ones, others, strict=True):
        if tensor is not None and other is not None:
            terms = real(multiply(_wide(tensor), conj(_wide(other))))
            total = add(total, reduce_sum(terms))
            size = add(size, reduce_sum(absolute(terms)))
    return total, size


def _wide(tensor: Tensor) -> Tensor:
    return cast(tensor, np.complex128 if is_complex(tensor._data.dtype) else np.float64)
