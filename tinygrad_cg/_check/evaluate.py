"""Evaluations of the checked function, and the derivatives that its rules return.

The derivative of order k is that of the number D_{k-1}, which the rules have returned so far: D_0
is the inner product of the outputs and fixed weights, and D_k that of D_{k-1}'s gradient and a
fixed direction. Each is computed by nested tapes, as users compute it.

There are several such numbers, by their path. Those of one point are computed in one run of the
function:

- "x": as above;
- "joint": the same, with a tape that watches the weights, too;
- "both": of the outputs' squares, whose upstream gradients depend on x;
- "other": with other weights, `second_weights`;
- "swapped": with the first two directions in the other order.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import nest
from .._core.conversion import convert, is_tensor
from .._core.kinds import is_complex, is_differentiable
from .._core.levels import Listener, push, remove, remove_listener, state
from .._core.tensor import Tensor
from .._ops.complex import conj, real
from .._ops.elementwise import add, multiply, square
from .._ops.reductions import reduce_sum
from .._ops.shape import cast
from .._reverse.arguments import NO_TENSOR
from .._reverse.variable import Variable
from .._transforms.batching import Batch, BatchTensor
from .._transforms.forward import ForwardAccumulator
from .._transforms.tape import GradientTape
from ..errors import DerivativeWarning
from .branches import Analytic, Branches, Constants
from .observing import ObservingLevel, Silent
from .problem import InnerProduct, Point, Problem, precision_of_dtype, widened


class WholeBatch(Batch):
    """A batch that never computes one example after the other."""

    def _one_by_one(self, primitive: Any, inputs: tuple, params: dict) -> Any:
        raise TypeError(f"{primitive.name} has no batching rule")


class _Assigned(dict, Listener):
    """A listener that keeps the values that Variables had before they were assigned."""

    def variable_assigned(self, variable: Variable) -> None:
        self.setdefault(id(variable), (variable, variable._data))

    def restore(self) -> None:
        for variable, data in self.values():
            variable._data = data


# Values --------------------------------------------------------------------------------------


@contextlib.contextmanager
def at(
    problem: Problem, point: Point, observer: Any = None, level: ObservingLevel | None = None
) -> Iterator[list]:
    """Yield a tensor for each source; a Variable stands for itself and has its value inside.

    Rules tell `observer` instead of warning, and only `level` and later ones record. Variables
    that the function assigns get their values back.
    """
    before = state.overrides, state.observers, state.frame
    outer, problem.here = problem.here, point
    held = [
        (source.variable, np.array(value), source.variable._rec)
        for source, value in zip(problem.sources, point, strict=True)
        if source.variable is not None
    ]
    state.overrides = before[0] | {id(variable): value for variable, value, _ in held}
    state.observers, state.frame = (observer or Silent(),), None
    level = level or problem.level
    for variable, _, _ in held:
        variable._rec = None  # a tape elsewhere watches it in its own dtype
    assigned = _Assigned()
    state.listeners.append(assigned)
    if level is not None:
        push(level)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", DerivativeWarning)
            sources = [
                Tensor(np.array(value)) if source.variable is None else source.variable
                for source, value in zip(problem.sources, point, strict=True)
            ]
            if level is not None:
                level.begin(sources)
            yield sources
            problem.warned |= {str(warning.message) for warning in caught}
    finally:
        if level is not None:
            remove(level)
        remove_listener(assigned)
        assigned.restore()
        for variable, _, record in held:
            variable._rec = record
        state.overrides, state.observers, state.frame = before
        problem.here = outer


@contextlib.contextmanager
def at_several(
    problem: Problem, point: Point, stacked: dict[int, np.ndarray], batch: Batch
) -> Iterator[list]:
    """Yield a tensor for each source as `at` does, with the `stacked` values of some of them."""
    with at(problem, point) as sources, batch:
        for j, values in stacked.items():
            x = BatchTensor(Tensor(values), batch)
            variable = problem.sources[j].variable
            if variable is None:
                sources[j] = x
            else:
                state.overrides[id(variable)] = x
        yield sources


@contextlib.contextmanager
def using(problem: Problem, **changed: Any) -> Iterator[None]:
    """Replace fields of the problem inside: weights, directions, the level."""
    before = {name: getattr(problem, name) for name in changed}
    vars(problem).update(changed)
    try:
        yield
    finally:
        vars(problem).update(before)


NO_FLOATS = (
    "check_gradients: {} returned no floats. Its arguments and its results must be floats, such as "
    "2.0 or np.array([1.0, 2.0]); integers and truth values have no gradient"
)


def run(problem: Problem, sources: list, other: Callable[..., Any] | None = None) -> list[Tensor]:
    """Return the flat outputs that have derivatives, of f or of another function."""
    args, kwargs = arguments(problem, sources)
    if other is None:
        name, result = problem.name, problem.definition.run(lambda: problem.f(*args, **kwargs))
    else:
        name, result = "`against`", other(*args, **kwargs)
    outputs = []
    for leaf in nest.flatten(result):
        if leaf is None:
            raise TypeError(f"check_gradients: {name} returned None; return a Tensor")
        if not is_tensor(leaf) and np.asarray(leaf).dtype.kind in "biu":
            raise TypeError(NO_FLOATS.format(name))
        if not is_tensor(leaf):
            raise TypeError(
                f"check_gradients: {name} returned {type(leaf).__name__}, not a Tensor; {NO_TENSOR}"
            )
        if is_differentiable(leaf.dtype):
            outputs.append(convert(leaf))
    if not outputs:
        raise TypeError(NO_FLOATS.format(name))
    return outputs


def run_body(problem: Problem, sources: list) -> list[Tensor]:
    """Return the outputs of f without its rule: of the operations that it is made of."""
    args, kwargs = arguments(problem, sources)
    value, _ = problem.f._function(*args, **kwargs)
    return [convert(leaf) for leaf in nest.flatten(value)]


def arguments(problem: Problem, sources: list) -> tuple[list, dict]:
    leaves = list(problem.leaves)
    for index, source in zip(problem.leaf_indices, sources, strict=False):
        leaves[index] = source
    return nest.pack_sequence_as(problem.structure, leaves)


def outputs_at(
    problem: Problem, point: Point, other: Any = None, level: Any = None, observer: Any = None
) -> list[np.ndarray]:
    """Return the outputs of f, or of another function; a `level` may look at them."""
    level = level or problem.level
    with at(problem, point, observer, level) as sources:
        outputs = run(problem, sources, other)
        if isinstance(level, Constants):
            level.look_at(outputs)
        return [output._values() for output in outputs]


def noted_outputs(problem: Problem, point: Point) -> list[np.ndarray]:
    """Return f's outputs at the point of the comparison, and keep the branches that it takes."""
    problem.look = Branches()
    return outputs_at(problem, point, level=problem.look)


def reference_outputs(problem: Problem, point: Point) -> list[np.ndarray]:
    """Return the values whose derivatives are the reference of order 1: those of `against`."""
    return outputs_at(problem, point, problem.against)


def analytic_outputs(problem: Problem, point: Point) -> list[np.ndarray] | None:
    """Return the outputs at a complex point; None if the function is not analytic there."""
    if problem.level is not None:
        return reference_outputs(problem, point)
    look = Analytic()
    try:
        outputs = outputs_at(problem, point, problem.against, look, look)
    except Exception:
        if look.holds:
            raise
        return None
    return outputs if look.holds else None


# Derivatives ---------------------------------------------------------------------------------


def ways_of(problem: Problem, path: str) -> list:
    """Return the directions of a path, by order."""
    ways = problem.ways
    return [ways[0], ways[2], ways[1], *ways[3:]] if path == "swapped" else ways


def numbers(
    problem: Problem,
    sources: list,
    order: int,
    paths: Sequence[str] = ("x",),
    weights: Sequence = (),
) -> list[Tensor]:
    """Return D_order, for each path."""
    if order == 0:
        outputs = run(problem, sources)
        return [_weigh(problem, outputs, path, weights) for path in paths]
    computed = gradients(problem, sources, order, paths, weights, is_inner=True)
    pairs = zip(paths, computed, strict=True)
    return [inner(ways_of(problem, path)[order], gradient) for path, gradient in pairs]


def gradients(
    problem: Problem,
    sources: list,
    order: int,
    paths: Sequence[str] = ("x",),
    weights: Sequence[Tensor] = (),
    is_inner: bool = False,
) -> list[list]:
    """Return the gradient of D_{order-1} for each path: by each source, then by the weights."""
    targets = [*sources] if is_inner else [*sources, *weights]
    with GradientTape(persistent=len(paths) > 1) as tape:
        tape.watch(targets)
        values = numbers(problem, sources, order - 1, paths, weights)
    return [tape.gradient(value, targets) for value in values]


def _weigh(problem: Problem, outputs: list[Tensor], path: str, weights: Sequence) -> Tensor:
    """Return D_0: the outputs' product with the weights, or that of their squares."""
    if path == "both":
        return inner(problem.weights, list(map(square, _shifted(problem, outputs))))
    chosen = {"joint": weights, "other": problem.second_weights}
    return inner(chosen.get(path, problem.weights), outputs)


def _shifted(problem: Problem, outputs: list[Tensor]) -> list[Tensor]:
    """Return f's values here, changed as `against` changes at nearby points."""
    if problem.against is None:
        return outputs
    shifted = []
    references = reference_outputs(problem, problem.here)
    for output, reference, offset in zip(outputs, references, problem.offsets, strict=True):
        shift = np.asarray(reference + offset - output._values(), output.dtype)
        shifted.append(add(output, Tensor(shift)))
    return shifted


def tangent(problem: Problem, point: Point, order: int, source_index: int) -> InnerProduct:
    """Return the derivative of D_{order-1} along a source's last direction, by forward mode."""
    with at(problem, point) as sources:
        source = sources[source_index]
        way = np.asarray(problem.last[source_index], source.dtype)
        with ForwardAccumulator([source], [Tensor(way)]) as accumulator:
            (value,) = numbers(problem, sources, order - 1)
        return product(np.ones(()), accumulator.jvp(value))


def arrays(
    problem: Problem, point: Point, order: int, path: str = "x", recorder: Any = None
) -> list:
    """Return `gradients` at a point, as arrays; "joint" ones by the weights, too."""
    return arrays_of(problem, point, order, (path,), recorder)[0]


def arrays_of(
    problem: Problem, point: Point, order: int, paths: Sequence[str], recorder: Any = None
) -> list[list]:
    """Return the same for several paths, in one run of the function."""
    with at(problem, point, recorder, recorder) as sources:
        weights: list[Tensor] = []
        if "joint" in paths:
            is_narrow = dtypes_of(point) == dtypes_of(problem.point)
            dtypes = [v.dtype if is_narrow else widened(v.dtype) for v in problem.values]
            weights = list(map(Tensor, map(np.asarray, problem.weights, dtypes)))
        computed = gradients(problem, sources, order, paths, weights)
        counts = [None if path == "joint" else len(sources) for path in paths]
        return [_arrays(some[:count]) for some, count in zip(computed, counts, strict=True)]


def pull_back(
    problem: Problem,
    point: Point,
    upstreams: Sequence,
    between: Point | None = None,
    runs: Callable[..., list[Tensor]] = run,
) -> list[list]:
    """Return the gradients of the outputs for each of several upstream gradients.

    If `between` is a point, the function runs there before the rules do. `runs` computes the
    outputs.
    """
    with at(problem, point) as sources:
        with GradientTape(persistent=True) as tape:
            tape.watch(sources)
            outputs = runs(problem, sources)
        if between is not None:
            outputs_at(problem, between)
        pulled = []
        for upstream in upstreams:
            pairs = zip(upstream, outputs, strict=True)
            dy = [Tensor(np.asarray(array, output.dtype)) for array, output in pairs]
            pulled.append(_arrays(tape.gradient(outputs, sources, dy)))
        return pulled


def measure(
    problem: Problem, point: Point, order: int, paths: Sequence[str] = ("x",)
) -> list[InnerProduct]:
    """Return D_order at a point, for each path; of order 0 on the path "x" alone."""
    if not order:
        return [total(problem.weights, reference_outputs(problem, point))]
    pairs = zip(paths, arrays_of(problem, point, order, paths), strict=True)
    return [total(ways_of(problem, path)[order], computed) for path, computed in pairs]


def measure_batch(
    problem: Problem, points: Sequence[Point], order: int, paths: Sequence[str]
) -> list[list[InnerProduct]]:
    """Return what `measure` does for each of several points, in one evaluation.

    Raises an error if the function cannot be batched, or is not defined at one of the points.
    """
    batch, first = WholeBatch(len(points)), points[0]
    stacked = {
        j: np.stack([point[j] for point in points])
        for j in range(len(first))
        if any(point[j] is not first[j] for point in points)
    }
    with at_several(problem, first, stacked, batch) as sources:
        if order:
            computed = gradients(problem, sources, order, paths)
        else:
            computed = [run(problem, sources, problem.against)]

    def rows(tensor: Tensor | None) -> Any:
        return [None] * len(points) if tensor is None else batch.physical(tensor)._values()

    by_point = [list(zip(*map(rows, tensors), strict=True)) for tensors in computed]
    ways = [ways_of(problem, path)[order] if order else problem.weights for path in paths]
    return [
        [total(way, some[i]) for way, some in zip(ways, by_point, strict=True)]
        for i in range(len(points))
    ]


# Products ------------------------------------------------------------------------------------


def inner(ways: Sequence, tensors: Sequence) -> Tensor:
    """Return the real inner product, in which None counts as zeros."""
    whole = None
    for way, tensor in zip(ways, tensors, strict=True):
        if tensor is None:
            continue
        if isinstance(way, np.ndarray):
            way = Tensor(np.asarray(way, tensor.dtype))
        term = multiply(conj(way), tensor)
        term = reduce_sum(real(term) if is_complex(term.dtype) else term)
        if whole is not None and whole.dtype != term.dtype:
            term, whole = cast(term, np.float64), cast(whole, np.float64)
        whole = term if whole is None else add(whole, term)
    return Tensor(np.zeros(())) if whole is None else whole


def product(way: np.ndarray, gradient: Any) -> InnerProduct:
    """Return the real inner product of a direction and a gradient (None: not connected)."""
    if gradient is None:
        return InnerProduct(None, 0.0)
    array = gradient._values() if is_tensor(gradient) else np.asarray(gradient)
    with np.errstate(all="ignore"):
        terms = np.real(np.conj(way) * array.astype(widened(array.dtype)))
        terms = np.where(way == 0, 0.0, terms)  # elements that are left out may be infinite
        size = float(np.abs(terms).sum())
        rounding, norm = precision_of_dtype(array.dtype) * size, float(np.linalg.norm(terms))
        return InnerProduct(float(terms.sum()), size, rounding, norm)


def total(ways: Sequence, computed: Sequence) -> InnerProduct:
    """Return the sum of the products of directions with gradients."""
    products = [product(*pair) for pair in zip(ways, computed, strict=True)]
    values = [term.value for term in products if term.value is not None]
    size = sum((term.size for term in products), 0.0)
    rounding = sum(term.rounding for term in products)
    return InnerProduct(sum(values) if values else None, size, rounding)


def dtypes_of(point: Point) -> list[np.dtype]:
    return [value.dtype for value in point]


def _arrays(tensors: Sequence) -> list:
    return [None if tensor is None else np.array(tensor._values()) for tensor in tensors]
