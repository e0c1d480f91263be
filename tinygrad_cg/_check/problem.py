"""The checked function at a point, and the derivatives that its rules give.

The derivative of order k is that of the number D_{k-1}, which the rules have given so far:
D_0 is the outputs' product with fixed weights, and D_k the product of D_{k-1}'s gradient with
a fixed direction. Each is computed by tapes inside tapes, as users compute it.

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
import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import nest
from .._core.conversion import convert, is_tensor, is_weak
from .._core.kinds import is_complex, is_differentiable
from .._core.levels import Level, Listener, push, remove, remove_listener, state
from .._core.tensor import Tensor
from .._ops.complex import conj, real
from .._ops.elementwise import add, multiply, square
from .._ops.reductions import reduce_sum
from .._ops.shape import cast
from .._reverse.variable import Variable
from .._rules.definition import Definition
from .._transforms.batching import Batch, BatchTensor
from .._transforms.forward import ForwardAccumulator
from .._transforms.tape import GradientTape
from .branches import Analytic, Branches, Constants, Silent
from .rounding import Rough

Point = list[np.ndarray]  # the value of each source


class Primal(NamedTuple):
    """A leaf of the arguments, or a Variable that f `captured`, to differentiate by."""

    name: str
    value: np.ndarray
    variable: Variable | None
    captured: bool = False


class Product(NamedTuple):
    """A product of a gradient with a direction, and the sum of its terms' magnitudes.

    `value` is None where the gradient is None: not connected. `rounding` bounds the effect of the
    gradient's dtype.
    """

    value: float | None
    size: float
    rounding: float = 0.0

    @property
    def number(self) -> float:
        return self.value or 0.0


class Together(Batch):
    """A batch of which nothing is computed one example after the other."""

    def _one_by_one(self, primitive: Any, inputs: tuple, params: dict) -> Any:
        raise TypeError(f"{primitive.name} has no batching rule")


class _Used(dict, Listener):
    """A listener that collects the trainable Variables that are read, by id."""

    def variable_read(self, variable: Variable) -> None:
        if variable.trainable and is_differentiable(variable._data.dtype):
            self[id(variable)] = variable


class _Assigned(dict, Listener):
    """A listener that keeps the values that Variables had before they were assigned."""

    def variable_assigned(self, variable: Variable) -> None:
        self.setdefault(id(variable), (variable, variable._data))

    def restore(self) -> None:
        for variable, data in self.values():
            variable._data = data


_NO_FLOATS = (
    "check_gradients: {} returned no floats: its arguments, and what it returns, must be floats "
    "(2.0, and not 2)"
)


def _note_arguments(args: Sequence, error: Exception) -> None:
    """Note on an error of the function that it got no arguments, or lists of numbers."""
    if not args:
        error.add_note(
            "check_gradients: pass the function's arguments after it: check_gradients(f, 1.0)"
        )
    for i, arg in enumerate(args):
        if isinstance(arg, (list, tuple)) and all(map(is_weak, nest.flatten(arg))):
            error.add_note(
                f"check_gradients: argument {i} is a {type(arg).__name__}: the function gets it as "
                "it is, with a tensor for each number. For one tensor pass np.array("
                f"{arg!r:.60}) or tf.constant({arg!r:.60})"
            )


def _distinct(names: list[str]) -> list[str]:
    """Return the names, numbered where several are the same, as those of unnamed Variables."""
    return [
        f"{name} #{names[: k + 1].count(name)}" if names.count(name) > 1 else name
        for k, name in enumerate(names)
    ]


class CheckedFunction:
    """A function at a point: its sources, fixed weights and directions, and its derivatives."""

    def __init__(
        self,
        f: Callable[..., Any],
        args: Sequence,
        kwargs: dict,
        seed: int,
        order: int,
        against: Callable[..., Any] | None = None,
    ):
        self.f = f
        self.against = against  # the function whose derivative the rules give, if not f
        self.level: Level | None = None
        self.look: Branches | None = None  # what f chooses where it is compared
        self.is_batched = True  # whether it can be computed at several points at once
        self._point: Point = []  # where it is computed just now
        self.definition = Definition(getattr(f, "_function", f))
        self.definition.role = "the checked function"
        self.name = self.definition.name
        self.structure = (list(args), dict(kwargs))
        self.leaves = nest.flatten(self.structure)
        self.leaf_indices: list[int] = []
        self.sources = self._argument_sources(args, kwargs)
        try:
            outputs = self._find_variables()
        except (AttributeError, TypeError, ValueError) as error:
            _note_arguments(args, error)
            raise
        if not self.sources:
            raise TypeError(
                f"check_gradients: {self.name} has no argument to differentiate by: pass floats, "
                "or arrays or tensors of floats"
            )
        self.point = [source.value for source in self.sources]
        self.wide_point = [value.astype(_wide(value.dtype)) for value in self.point]
        self.has_two_dtypes = _dtypes(self.point) != _dtypes(self.wide_point)
        self.offsets = [] if against is None else self._compare_outputs(outputs)
        self.wide = not self.has_two_dtypes  # whether it computes in float64 when given float64
        wide = outputs
        with contextlib.suppress(Exception):
            wide = self._noted_outputs(self.wide_point) if self.has_two_dtypes else outputs
            others = [] if against is None else self.reference_outputs(self.wide_point)
            self.wide = all(_precision(output.dtype) < 1e-15 for output in [*wide, *others])
        self.has_two_dtypes &= self.wide
        self.base_values = wide if self.wide else outputs
        self._choose(outputs, np.random.default_rng(seed), order)

    # The sources -----------------------------------------------------------------------------

    def _argument_sources(self, args: Sequence, kwargs: dict) -> list[Primal]:
        paths = [(i, path) for i, arg in enumerate(args) for path, _ in nest.flatten_paths(arg)]
        named = [path for key in sorted(kwargs) for path, _ in nest.flatten_paths(kwargs[key], key)]
        names = [*self.definition.input_names(paths), *named]
        sources = []
        dtypes = [
            leaf.dtype for leaf in self.leaves if is_tensor(leaf) or isinstance(leaf, np.ndarray)
        ]
        has_wide = any(dtype in (np.float64, np.complex128) for dtype in dtypes)
        for index, (name, leaf) in enumerate(zip(names, self.leaves, strict=True)):
            variable = leaf if isinstance(leaf, Variable) else None
            if variable is not None:
                array = np.array(variable._data)
            elif is_tensor(leaf) or is_weak(leaf) or isinstance(leaf, np.ndarray):
                array = np.array(convert(leaf)._values())
                if has_wide and type(leaf) is float:  # it takes the dtype of what it meets
                    array = np.array(leaf)
            elif hasattr(leaf, "__array__"):  # a Series or a DataFrame of pandas, say
                array = np.asarray(leaf)
            else:
                continue
            if is_differentiable(array.dtype):
                self.leaf_indices.append(index)
                sources.append(Primal(name, array, variable))
        return sources

    def _find_variables(self) -> list[np.ndarray]:
        """Add the Variables that the function reads to the sources; return its outputs."""
        used = _Used()
        self.look = Branches()
        state.listeners.append(used)
        try:
            with self.at([source.value for source in self.sources], level=self.look) as sources:
                results = self.run(sources)
                self.look.look_at(results)
                outputs = [result._values() for result in results]
                if self.against is not None:
                    self.run(sources, self.against)
        finally:
            remove_listener(used)
        for source in self.sources:
            used.pop(id(source.variable), None)
        variables = sorted(used.values(), key=lambda variable: variable._serial)
        self.look.forget([variable._data for variable in variables])
        names = _distinct([variable.name for variable in variables])
        pairs = zip(names, variables, strict=True)
        self.sources += [
            Primal(name, np.array(variable._data), variable, True) for name, variable in pairs
        ]
        return outputs

    def _compare_outputs(self, outputs: list[np.ndarray]) -> list[np.ndarray]:
        """Return what f's outputs have more than those of the function that it is checked against.

        Raises ValueError unless their number and shapes are the same.
        """
        others = self.reference_outputs(self.point)
        shapes, expected = [output.shape for output in others], [output.shape for output in outputs]
        if shapes != expected:
            raise ValueError(
                f"check_gradients: `against` must return outputs of the shapes that {self.name} "
                f"returns, {expected}, got {shapes}"
            )
        return [output - other for output, other in zip(outputs, others, strict=True)]

    # Weights and directions ------------------------------------------------------------------

    def _choose(self, outputs: list[np.ndarray], generator: Any, order: int) -> None:
        """Draw weights and directions at random; 1 where there is one number only."""
        is_single = sum(output.size for output in outputs) == 1

        def chosen() -> list[np.ndarray]:
            drawn = partial(_draw_signed, generator)
            return [np.ones(output.shape) if is_single else drawn(output) for output in outputs]

        def ways(ones: Callable[[np.ndarray], bool]) -> list[np.ndarray]:
            return [
                np.ones(value.shape) if ones(value) else _way(generator, value, own.dtype)
                for value, own in zip(self.wide_point, self.point, strict=True)
            ]

        self.weights, self.second_weights = chosen(), chosen()
        self.others = [-1000.0 * generator.uniform(0.5, 1.5, w.shape) * w for w in self.weights]
        alone = sum(value.size for value in self.point) == 1
        self.scales = [_typical(_sizes(value)) for value in self.wide_point]
        self.ways = [ways(lambda value: alone) for _ in range(order + 1)]
        self.last = ways(lambda value: value.size == 1)
        self.values = outputs

    # Values ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def at(self, point: Point, observer: Any = None, level: Any = None) -> Iterator[list]:
        """Give a tensor for each source, and Variables, which stand for themselves, their values.

        Rules tell `observer` instead of warning, and only `level` and later ones record. Variables
        that the function assigns get their values back.
        """
        before = state.overrides, state.observers, state.frame
        outer, self._point = self._point, point
        pairs = list(zip(self.sources, point, strict=True))
        state.overrides = before[0] | {
            id(source.variable): np.array(value)
            for source, value in pairs
            if source.variable is not None
        }
        state.observers, state.frame = (observer or Silent(),), None
        level = level or self.level
        variables = [source.variable for source, _ in pairs if source.variable is not None]
        records = [variable._rec for variable in variables]
        for variable in variables:
            variable._rec = None  # a tape elsewhere watches it in its own dtype
        assigned = _Assigned()
        state.listeners.append(assigned)
        if level is not None:
            push(level)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                sources = [
                    Tensor(np.array(value)) if source.variable is None else source.variable
                    for source, value in pairs
                ]
                if isinstance(level, (Rough, Constants)):
                    level.add_results(sources)
                if isinstance(level, Constants):
                    level.forget(state.overrides.values())
                yield sources
        finally:
            if level is not None:
                remove(level)
            remove_listener(assigned)
            assigned.restore()
            for variable, record in zip(variables, records, strict=True):
                variable._rec = record
            state.overrides, state.observers, state.frame = before
            self._point = outer

    @contextlib.contextmanager
    def using(self, **changed: Any) -> Iterator[None]:
        """Replace attributes inside: weights, directions, the level."""
        before = {name: getattr(self, name) for name in changed}
        vars(self).update(changed)
        try:
            yield
        finally:
            vars(self).update(before)

    def nearby(self, generator: np.random.Generator) -> CheckedFunction | None:
        """Return the function at a nearby point; None if it is not defined there.

        No element is what it was: zeros and integers, ties and bounds are left, to the inner
        side of bounds if the other side is not in the domain.
        """
        finite = [np.isfinite(output) for output in self.values]
        for sign, signs in ((-1, (-1.0, 1.0)), (1, (-1.0, 1.0)), (-1, (1.0,)), (1, (-1.0,))):
            moved = copy.copy(self)
            moved.point = []
            for value, scale in zip(self.point, self.scales, strict=True):
                share = generator.uniform(0.02, 0.06, value.shape)
                steps = generator.choice(signs, value.shape) * share * scale
                other = np.where(value == 0, steps, value * (1 + sign * share))
                moved.point.append(other.astype(value.dtype))
            moved.wide_point = [value.astype(_wide(value.dtype)) for value in moved.point]
            moved.scales = [_typical(_sizes(value)) for value in moved.wide_point]
            with contextlib.suppress(Exception):
                outputs = moved._noted_outputs(moved.point)
                pairs = zip(outputs, finite, strict=True)
                if all(bool(np.isfinite(output[mask]).all()) for output, mask in pairs):
                    moved.values = moved.base_values = outputs
                    if self.has_two_dtypes:
                        moved.base_values = moved._noted_outputs(moved.wide_point)
                    moved.offsets = [] if self.against is None else moved._compare_outputs(outputs)
                    return moved
        return None

    def rough(self, seed: int, constants: bool = False) -> contextlib.AbstractContextManager[None]:
        """Round everything that is computed inside at random; Python's numbers, too, if asked."""
        return self.using(level=Rough(seed, constants))

    def run(self, sources: list, other: Callable[..., Any] | None = None) -> list[Tensor]:
        """Return the flat outputs that have derivatives, of f or of another function."""
        args, kwargs = self._arguments(sources)
        if other is None:
            name, result = self.name, self.definition.run(lambda: self.f(*args, **kwargs))
        else:
            name, result = "`against`", other(*args, **kwargs)
        outputs = []
        for leaf in nest.flatten(result):
            if leaf is None:
                raise TypeError(f"check_gradients: {name} returned None; return a Tensor")
            if isinstance(leaf, int):
                raise TypeError(_NO_FLOATS.format(name))
            if not is_tensor(leaf):
                raise TypeError(
                    f"check_gradients: {name} returned {type(leaf).__name__}, not a Tensor; "
                    "did the function leave the library?"
                )
            if is_differentiable(leaf.dtype):
                outputs.append(convert(leaf))
        if not outputs:
            raise TypeError(_NO_FLOATS.format(name))
        return outputs

    def _arguments(self, sources: list) -> tuple[list, dict]:
        leaves = list(self.leaves)
        for index, source in zip(self.leaf_indices, sources, strict=False):
            leaves[index] = source
        return nest.pack_sequence_as(self.structure, leaves)

    @property
    def is_one_rule(self) -> bool:
        """Return whether f is a custom gradient, not made of several."""
        return hasattr(self.f, "_function")

    def run_body(self, sources: list) -> list[Tensor]:
        """Return the outputs of f without its rule: of the operations that it is made of."""
        args, kwargs = self._arguments(sources)
        value, _ = self.f._function(*args, **kwargs)
        return [convert(leaf) for leaf in nest.flatten(value)]

    def outputs(self, point: Point) -> list[np.ndarray]:
        with self.at(point) as sources:
            return [output._values() for output in self.run(sources)]

    def _noted_outputs(self, point: Point) -> list[np.ndarray]:
        """Return f's outputs at a point where it is compared, and keep what it chooses there."""
        self.look = Branches()
        with self.at(point, level=self.look) as sources:
            outputs = self.run(sources)
            self.look.look_at(outputs)
            return [output._values() for output in outputs]

    def analytic_outputs(self, point: Point) -> list[np.ndarray] | None:
        """Return the outputs at a complex point; None if they are no analytic function."""
        if self.level is not None:
            return self.reference_outputs(point)
        look = Analytic()
        try:
            with self.at(point, look, look) as sources:
                outputs = [output._values() for output in self.run(sources, self.against)]
        except Exception:
            if look.holds:
                raise
            return None
        return outputs if look.holds else None

    @property
    def call_text(self) -> tuple[str, str]:
        """Return the function's name, and the arguments of its check, as they are written."""
        name = "f" if self.name == "<lambda>" else self.name
        positions = [(i, "") for i in range(len(self.structure[0]))]
        return name, ", ".join([name, *self.definition.input_names(positions)])

    def reference_outputs(self, point: Point) -> list[np.ndarray]:
        """Return the values that derivatives of order 1 are compared with: those of `against`."""
        with self.at(point) as sources:
            outputs = self.run(sources, self.against)
            if isinstance(self.level, Constants):
                self.level.look_at(outputs)
            return [output._values() for output in outputs]

    def measure(self, point: Point, order: int, path: str = "x") -> Product:
        """Return D_order at a point, summed from its terms."""
        return self.measure_all(point, order, (path,))[0]

    def measure_all(self, point: Point, order: int, paths: Sequence[str]) -> list[Product]:
        """Return D_order at a point, on several paths; of order 0 on the path "x" alone."""
        if not order:
            return [total(self.weights, self.reference_outputs(point))]
        gradients = self.arrays_of(point, order, paths)
        return [
            total(self.ways_of(path)[order], arrays)
            for path, arrays in zip(paths, gradients, strict=True)
        ]

    def measure_batch(
        self, points: Sequence[Point], order: int, paths: Sequence[str]
    ) -> list[list[Product]]:
        """Return what `measure_all` does for each of several points, in one evaluation.

        Raises an error if the function cannot be batched, or is not defined at one of the points.
        """
        batch = Together(len(points))
        with self.at(points[0]) as sources, batch:
            for j, source in enumerate(self.sources):
                if all(point[j] is points[0][j] for point in points):
                    continue
                x = BatchTensor(Tensor(np.stack([point[j] for point in points])), batch)
                if source.variable is None:
                    sources[j] = x
                else:
                    state.overrides[id(source.variable)] = x
            if order:
                gradients = self.gradients(sources, order, paths)
            else:
                gradients = [self.run(sources, self.against)]

        def rows(tensor: Tensor | None) -> Any:
            return [None] * len(points) if tensor is None else batch.physical(tensor)._values()

        arrays = [list(zip(*map(rows, tensors), strict=True)) for tensors in gradients]
        ways = [self.ways_of(path)[order] if order else self.weights for path in paths]
        return [
            [total(way, some[i]) for way, some in zip(ways, arrays, strict=True)]
            for i in range(len(points))
        ]

    def arrays(self, point: Point, order: int, path: str = "x", recorder: Any = None) -> list:
        """Return `gradients` at a point, as arrays; "joint" ones by the weights, too."""
        return self.arrays_of(point, order, (path,), recorder)[0]

    def arrays_of(
        self, point: Point, order: int, paths: Sequence[str], recorder: Any = None
    ) -> list[list]:
        """Return the same for several paths, in one run of the function."""
        with self.at(point, recorder, recorder) as sources:
            weights: list[Tensor] = []
            if "joint" in paths:
                narrow = _dtypes(point) == _dtypes(self.point)
                dtypes = [output.dtype if narrow else _wide(output.dtype) for output in self.values]
                weights = list(map(Tensor, map(np.asarray, self.weights, dtypes)))
            if recorder is not None:
                recorder.sources = sources
            gradients = self.gradients(sources, order, paths, weights)
            counts = [None if path == "joint" else len(sources) for path in paths]
            return [
                _arrays(tensors[:count]) for tensors, count in zip(gradients, counts, strict=True)
            ]

    def pull_back(
        self, point: Point, upstreams: Sequence, between: Point | None = None
    ) -> list[list]:
        """Return the gradients of the outputs for each of several upstream gradients.

        The function runs once more `between`, at another point, if there is one.
        """
        with self.at(point) as sources:
            with GradientTape(persistent=True) as tape:
                tape.watch(sources)
                outputs = self.run(sources)
            if between is not None:
                self.outputs(between)
            dtypes = [output.dtype for output in outputs]
            ways = [list(map(Tensor, map(np.asarray, upstream, dtypes))) for upstream in upstreams]
            return [_arrays(tape.gradient(outputs, sources, way)) for way in ways]

    # Derivatives -----------------------------------------------------------------------------

    def ways_of(self, path: str) -> list:
        """Return the directions of a path, by order."""
        if path == "swapped":
            return [self.ways[0], self.ways[2], self.ways[1], *self.ways[3:]]
        return self.ways

    def weigh(self, outputs: list[Tensor], path: str, weights: Sequence) -> Tensor:
        """Return D_0: the outputs' product with the weights, or that of their squares."""
        if path == "both":
            return inner(self.weights, [square(output) for output in self._shifted(outputs)])
        chosen = {"joint": weights, "other": self.second_weights}
        return inner(chosen.get(path, self.weights), outputs)

    def _shifted(self, outputs: list[Tensor]) -> list[Tensor]:
        """Return f's values here, with what `against` adds to them at nearby points."""
        if self.against is None:
            return outputs
        moved = map(np.add, self.reference_outputs(self._point), self.offsets)
        shifts = [there - output._values() for there, output in zip(moved, outputs, strict=True)]
        shifts = [np.asarray(a, output.dtype) for a, output in zip(shifts, outputs, strict=True)]
        return list(map(add, outputs, map(Tensor, shifts)))

    def numbers(
        self, sources: list, order: int, paths: Sequence[str] = ("x",), weights: Sequence = ()
    ) -> list[Tensor]:
        """Return D_order, for each path."""
        if order == 0:
            outputs = self.run(sources)
            return [self.weigh(outputs, path, weights) for path in paths]
        gradients = self.gradients(sources, order, paths, weights, is_inner=True)
        pairs = zip(paths, gradients, strict=True)
        return [inner(self.ways_of(path)[order], gradient) for path, gradient in pairs]

    def gradients(
        self,
        sources: list,
        order: int,
        paths: Sequence[str] = ("x",),
        weights: Sequence[Tensor] = (),
        is_inner: bool = False,
    ) -> list[list]:
        """Return the gradient of D_{order-1} by each source, then by the weights, for each path."""
        targets = [*sources] if is_inner else [*sources, *weights]
        with GradientTape(persistent=len(paths) > 1) as tape:
            tape.watch(targets)
            values = self.numbers(sources, order - 1, paths, weights)
        return [tape.gradient(value, targets) for value in values]

    def tangent(self, point: Point, order: int, source_index: int) -> Product:
        """Return the derivative of D_{order-1} along a source's last direction, forward."""
        with self.at(point) as sources:
            source = sources[source_index]
            way = np.asarray(self.last[source_index], source.dtype)
            with ForwardAccumulator([source], [Tensor(way)]) as accumulator:
                (value,) = self.numbers(sources, order - 1)
            return product(np.ones(()), accumulator.jvp(value))


def inner(ways: Sequence, tensors: Sequence) -> Tensor:
    """Return the real inner product, in which None counts as zeros."""
    total = None
    for way, tensor in zip(ways, tensors, strict=True):
        if tensor is None:
            continue
        if isinstance(way, np.ndarray):
            way = Tensor(np.asarray(way, tensor.dtype))
        term = multiply(conj(way), tensor)
        term = reduce_sum(real(term) if is_complex(term.dtype) else term)
        if total is not None and total.dtype != term.dtype:
            term, total = cast(term, np.float64), cast(total, np.float64)
        total = term if total is None else add(total, term)
    return Tensor(np.zeros(())) if total is None else total


def total(ways: Sequence, gradients: Sequence) -> Product:
    """Return the sum of the products of directions with gradients."""
    products = [product(*pair) for pair in zip(ways, gradients, strict=True)]
    values = [term.value for term in products if term.value is not None]
    size = sum((term.size for term in products), 0.0)
    return Product(sum(values) if values else None, size, sum(term.rounding for term in products))


def _arrays(gradients: Sequence) -> list:
    return [None if gradient is None else np.array(gradient._values()) for gradient in gradients]


def product(way: np.ndarray, gradient: Any) -> Product:
    """Return the real inner product of a direction and a gradient (None: not connected)."""
    if gradient is None:
        return Product(None, 0.0)
    array = gradient._values() if is_tensor(gradient) else np.asarray(gradient)
    with np.errstate(all="ignore"):
        terms = np.real(np.conj(way) * array.astype(_wide(array.dtype)))
        terms = np.where(way == 0, 0.0, terms)  # infinite elements that are not looked at
        size = float(np.abs(terms).sum())
        return Product(float(terms.sum()), size, _precision(array.dtype) * size)


def move_point(point: Point, ways: Sequence, step: complex) -> Point:
    """Return the point `step` along `ways`, of the same dtypes unless the step is complex."""
    return [
        value
        if way is None
        else np.asarray(value + step * way, None if type(step) is complex else value.dtype)
        for value, way in zip(point, ways, strict=True)
    ]


def _wide(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.complex128 if is_complex(dtype) else np.float64)


def _dtypes(point: Point) -> list[np.dtype]:
    return [value.dtype for value in point]


def _precision(dtype: np.dtype) -> float:
    return float(np.finfo(dtype).eps)


def _draw_signed(generator: Any, like: np.ndarray) -> np.ndarray:
    """Return numbers of both signs, from 1/2 to 3/2 in size; complex for complex `like`."""
    sizes = generator.uniform(0.5, 1.5, like.shape)
    signs = generator.choice((-1.0, 1.0), like.shape)
    if is_complex(like.dtype):
        signs = np.exp(2j * np.pi * generator.uniform(size=like.shape))
    return np.asarray(sizes * signs)


def _sizes(value: np.ndarray) -> np.ndarray:
    """Return a scale for each element: its magnitude, or a typical one where it is tiny."""
    sizes = np.abs(np.where(np.isfinite(value), value, 1.0))
    typical = _typical(sizes)
    return np.where(sizes > 1e-3 * typical, sizes, typical)


def _typical(sizes: np.ndarray) -> float:
    """Return the root mean square; 1 for empty arrays and for zeros."""
    largest = float(sizes.max(initial=0.0))
    return largest * float(np.sqrt(np.mean((sizes / largest) ** 2))) if largest else 1.0


def _way(generator: Any, value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return a direction whose numbers are exact in `dtype`, that of the source."""
    sizes = _sizes(value)
    way = _draw_signed(generator, value) * sizes / _typical(sizes)
    with np.errstate(all="ignore"):
        return way.astype(dtype).astype(value.dtype)
