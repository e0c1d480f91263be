"""The elements of a gradient: those that the rules return, and the correct ones, by differences."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .._transforms.batching import Batch
from .._transforms.tape import GradientTape
from . import evaluate
from .check import Check, gradient_of_other_upstream
from .evaluate import WholeBatch
from .operations import Derivation, derive
from .problem import Point, Problem, largest
from .rewrite import Written, read_numbers
from .verdicts import tolerance as tolerance_of

MAX_ELEMENTS = 4096  # elements of an argument to look at one by one
MAX_WORK = 1 << 31  # elements of operands and results to compute
CALL_WORK = 2000  # elements that calling an operation is worth
BATCH = 1 << 21  # elements of the argument to compute with at once
MAX_UNBATCHED = 20  # evaluations if these cannot be batched, in NumPy code for example
MAX_ENTRIES = 1 << 22  # entries of a Jacobian to keep
STEP = 1e-3  # in units of the argument's scale
STEPS = (1.0, -1.0, 0.5, -0.5)  # in units of `STEP`
MOVES = (0.13, -0.29, 0.41)  # further points, in units of the scale

NOTHING = np.empty(0)
UNKNOWN = Derivation(NOTHING, [], {})


class Elements(NamedTuple):
    """The elements of a gradient: the rules' `actual` ones, and the `expected` ones (NaN at kinks).

    `uncertainty` is how far the expected ones may be off, besides the relative `tolerance`.
    `upstream` is what the outputs were weighed with; `jacobian` has a row for each element of the
    outputs, or `slopes` where these and x are complex. They are empty if they are not known.
    `more` has the same at other points, and for another upstream; `parts` for each output alone,
    if there are several. `others` has the values of the other arguments. ``derive(x, upstream)``
    returns the gradient by the operations' own rules. `function` is the checked one, `operations`
    are the names of those that it runs, and ``read()`` returns the numbers in its code.
    """

    name: str
    x: np.ndarray
    actual: np.ndarray
    expected: np.ndarray
    uncertainty: np.ndarray
    tolerance: float
    outputs: np.ndarray = NOTHING
    upstream: np.ndarray = NOTHING
    jacobian: np.ndarray = NOTHING
    slopes: np.ndarray = NOTHING
    more: tuple[Elements, ...] = ()
    parts: tuple[Elements, ...] = ()
    others: Mapping[str, np.ndarray] = MappingProxyType({})
    derive: Callable[[np.ndarray, np.ndarray], Derivation] = lambda x, upstream: UNKNOWN
    function: Any = None
    operations: frozenset[str] = frozenset()
    read: Callable[[], Written] = lambda: Written({})

    @property
    def derivation(self) -> Derivation:
        """Return the gradient by the operations' own rules; empty if it is not known."""
        return self.derive(self.x, self.upstream)

    def runs(self, kind: str) -> bool:
        """Return whether the function runs an operation of a kind, such as "mean"."""
        return any(name.endswith(kind) for name in self.operations)

    @property
    def samples(self) -> tuple[Elements, ...]:
        return (self, *self.more)

    @property
    def at_point(self) -> tuple[Elements, ...]:
        """Return the samples at this point: this one, and that of another upstream."""
        return tuple(sample for sample in self.samples if np.array_equal(sample.x, self.x))

    def agree(self, numbers: np.ndarray, expected: np.ndarray | None = None) -> np.ndarray:
        """Return where numbers equal the expected ones up to their errors, or these are unknown."""
        expected = self.expected if expected is None else expected
        with np.errstate(all="ignore"):
            size = np.maximum(np.abs(numbers), np.abs(expected))
            return ~(np.abs(numbers - expected) > self.tolerance * size + self.uncertainty)

    def match(self, numbers: np.ndarray) -> bool:
        """Return whether numbers are the expected ones, everywhere."""
        return numbers.shape == self.expected.shape and bool(self.agree(numbers).all())

    def match_actual(self, predicted: np.ndarray) -> bool:
        """Return whether numbers are those that the rules returned, everywhere."""
        if np.shape(predicted) != self.actual.shape:
            return False
        is_defined = np.isfinite(predicted) | ~np.isfinite(self.expected)
        return bool((is_defined & self.agree(predicted, self.actual)).all())

    def only(self, mask: np.ndarray) -> Elements:
        """Return the elements at some positions of x."""
        arrays = (self.x, self.actual, self.expected, self.uncertainty)
        more = tuple(sample.only(mask) for sample in self.at_point[1:])
        facts = {name: getattr(self, name) for name in ("others", "function", "operations", "read")}
        x, actual, expected, errors = (array[mask] for array in arrays)
        return Elements(self.name, x, actual, expected, errors, self.tolerance, more=more, **facts)


class TooMuch(Exception):
    """How many elements or evaluations are too many, and of what; "" for elements."""

    def __init__(self, count: int, of: str):
        super().__init__(count, of)
        self.count, self.of = count, of


def look_at_elements(check: Check, order: int, j: int) -> Elements | None:
    """Return the elements of the gradient by source j; None if they are not defined.

    Raises `TooMuch` if there are too many.
    """
    point = check.base
    if point[j].size > MAX_ELEMENTS:
        raise TooMuch(point[j].size, "")
    if not point[j].size:
        return None
    at_point = check.wide_gradients()[j] if order == 1 else None
    try:
        second = gradient_of_other_upstream(check, j) if order == 1 else None
        argument = _Argument(check.problem, order, point, j, check.full)
        return _elements(argument, at_point, second)
    except TooMuch:
        raise
    except Exception:  # it cannot be computed, or is not defined there
        return None


def _elements(
    argument: _Argument, at_point: np.ndarray | None, second: np.ndarray | None
) -> Elements | None:
    """Return the elements; `at_point` is the gradient there, `second` that of another upstream."""
    problem, order, x = argument.problem, argument.order, argument.x
    values = problem.values
    work = (2 * problem.look.work + CALL_WORK * len(problem.look.taken)) * (2 * order - 1)
    if argument.cost.count * work > MAX_WORK and not argument.is_full:
        raise argument.cost
    # A few elements, or a single sum, say little: look at further points as well.
    alone = order == 1 and len(values) == 1 == values[0].size and not np.iscomplexobj(values[0])
    points = [x]
    if x.size < 8 or (alone and x.size <= 64):
        share = np.random.default_rng(0).uniform(0.6, 1.4, x.shape) if x.size > 1 else 1.0
        points += [np.asarray(x + move * argument.scale * share, x.dtype) for move in MOVES]
    weights = _flat(problem.weights) if order == 1 else np.ones(1)
    is_small = x.size * weights.size <= MAX_ENTRIES
    if not is_small:  # differentiate the weighted sum alone
        argument.weights, weights = weights, np.ones(1)
    points, slopes_at = argument.slopes(points)
    actual = argument.gradients(points, at_point)
    if not np.isfinite(actual[0]).all():
        return None
    several = order == 1 and len(values) > 1 and is_small and not np.iscomplexobj(x)
    samples: list[Elements] = []
    for there, gradient, slopes in zip(points, actual, slopes_at, strict=True):
        if np.isfinite(gradient).all():
            samples.append(_sample(argument, there, gradient, slopes, weights, problem.weights))
        if there is x and second is not None and is_small and np.isfinite(second).all():
            others = problem.second_weights
            samples.append(_sample(argument, x, second, slopes, _flat(others), others))
        if there is x and several:
            samples[0] = samples[0]._replace(parts=_parts_by_output(argument, *slopes.columns[0]))
    samples = [_sharpened(sample, argument.is_precise) for sample in samples]
    return samples[0]._replace(more=tuple(samples[1:]))


def _flat(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.ravel(array) for array in arrays])


def _sharpened(sample: Elements, is_precise: bool) -> Elements:
    """Return elements that expect the gradient by the operations' rules, if it agrees.

    Not if the differences are as accurate.
    """
    if is_precise and largest(sample.uncertainty) <= sample.tolerance * largest(sample.expected):
        return sample
    exact = sample.derivation.gradient
    if not sample.match(exact):
        return sample
    tolerance = tolerance_of(float(np.finfo(exact.dtype).eps))
    uncertainty = np.full(exact.shape, tolerance * largest(exact))
    return sample._replace(expected=exact, uncertainty=uncertainty, tolerance=tolerance)


class Slopes(NamedTuple):
    """The values at a point, and their derivatives by each element, with their errors.

    For complex arguments twice: by the real and by the imaginary parts.
    """

    values: np.ndarray
    columns: list[tuple[np.ndarray, np.ndarray]]


def _sample(
    argument: _Argument,
    x: np.ndarray,
    actual: np.ndarray,
    slopes: Slopes,
    weights: np.ndarray,
    upstreams: Sequence[np.ndarray],
) -> Elements:
    parts = [np.real(columns @ np.conj(weights)) for columns, _ in slopes.columns]
    expected = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
    uncertainty = np.sum([errors @ np.abs(weights) for _, errors in slopes.columns], axis=0)
    arrays = x, actual, expected.reshape(x.shape), uncertainty.reshape(x.shape)
    elements = Elements(argument.name, *arrays, argument.accuracy)._replace(
        others=argument.others,
        function=argument.problem.f,
        operations=frozenset(name for name, _ in argument.problem.look.taken),
        read=argument.read,
    )
    if argument.order > 1 or len(upstreams) > 1 or argument.weights is not None:
        return elements
    (upstream,), jacobian = upstreams, slopes.columns[0][0].T
    elements = elements._replace(upstream=upstream, derive=argument.derive)
    if np.iscomplexobj(x):
        return elements._replace(slopes=jacobian) if np.iscomplexobj(slopes.values) else elements
    if np.iscomplexobj(slopes.values):
        return elements
    return elements._replace(outputs=slopes.values.reshape(upstream.shape), jacobian=jacobian)


def _parts_by_output(
    argument: _Argument, columns: np.ndarray, errors: np.ndarray
) -> tuple[Elements, ...]:
    """Return the elements of the gradient of each output."""
    problem, j, x = argument.problem, argument.j, argument.x
    weights, parts = problem.weights, []
    upstreams = [
        [weight if i == k else np.zeros_like(weight) for i, weight in enumerate(weights)]
        for k in range(len(weights))
    ]
    pulled = evaluate.pull_back(problem, argument.point, upstreams)
    ends = np.cumsum([weight.size for weight in weights])
    for gradients, end, weight in zip(pulled, ends, weights, strict=True):
        actual = np.zeros_like(x) if gradients[j] is None else gradients[j]
        mine = slice(end - weight.size, end)
        expected = np.real(columns[:, mine] @ np.conj(weight.ravel())).reshape(x.shape)
        uncertainty = (errors[:, mine] @ np.abs(weight.ravel())).reshape(x.shape)
        parts.append(Elements(argument.name, x, actual, expected, uncertainty, argument.accuracy))
    return tuple(parts)


class _Argument:
    """The function to differentiate, and its gradient, as functions of one argument.

    They are computed at several points at once; one after the other if the function cannot be
    batched, at a `cost`, which `is_full` allows. `weights` multiply the values.
    """

    def __init__(self, problem: Problem, order: int, point: Point, j: int, is_full: bool):
        self.problem, self.order, self.point, self.j = problem, order, point, j
        self.is_full = is_full
        self.x = point[j]
        self.name = problem.sources[j].name
        self.scale = problem.scales[j]
        self.is_precise = all(np.finfo(value.dtype).eps < 1e-12 for value in point)
        self.accuracy = 1e-5 if self.is_precise else 0.02
        self.weights: np.ndarray | None = None
        self.is_batched = True
        self.units = (1.0, 1j) if np.iscomplexobj(self.x) else (1.0,)
        of = f"`{problem.name}`" if order == 1 else f"the gradient of order {order - 1}"
        count = len(STEPS) * len(self.units) * self.x.size
        self.cost = TooMuch(count, of.replace("`<lambda>`", "the function"))
        self.others = {
            source.name: value
            for i, (source, value) in enumerate(zip(problem.sources, point, strict=True))
            if i != j
        }
        self._derivations: dict[tuple[bytes, bytes], Derivation] = {}

    def derive(self, x: np.ndarray, upstream: np.ndarray) -> Derivation:
        """Return the gradient by the operations' own rules; empty if it is not known."""
        problem, upstreams = self.problem, [upstream]
        if x is self.x:  # both are needed there
            upstreams = [problem.weights[0], problem.second_weights[0]]
        keys = [(x.tobytes(), weights.tobytes()) for weights in upstreams]
        if keys[0] not in self._derivations:
            point = [x if i == self.j else value for i, value in enumerate(self.point)]
            derivations = [UNKNOWN] * len(keys)
            if problem.is_one_rule and problem.against is None:
                with contextlib.suppress(Exception):  # NumPy code, for example
                    derivations = derive(problem, point, self.j, upstreams)
            self._derivations |= dict(zip(keys, derivations, strict=True))
        return self._derivations[x.tobytes(), upstream.tobytes()]

    def read(self) -> Written:
        """Return the numbers in the function's code."""
        problem = self.problem
        if self.order == 1 and problem.is_one_rule:
            with (
                contextlib.suppress(Exception),
                evaluate.at(problem, self.point) as sources,
                GradientTape() as tape,
            ):
                tape.watch(sources)
                call = evaluate.arguments(problem, sources)
                return read_numbers(problem.f._function, self.j, *call)
        return Written({})

    # Differences -----------------------------------------------------------------------------

    def slopes(self, points: list[np.ndarray]) -> tuple[list[np.ndarray], list[Slopes]]:
        """Return the points, fewer if they cannot be batched, with the slopes at each."""
        try:
            return points, self._slopes(points, max(1, BATCH // self.x.size))
        except Exception:  # NumPy code, for example, or a condition
            self.is_batched = False
            if self.cost.count > MAX_UNBATCHED and not self.is_full:
                raise self.cost from None
            points = points[: 1 + MAX_UNBATCHED // (10 * self.x.size)]
            return points, self._slopes(points, 0)

    def _slopes(self, points: list[np.ndarray], batch: int) -> list[Slopes]:
        """Return the slopes at each point, by some elements in each batch, if it is not 0."""
        ways = [(i, unit) for i in range(len(points)) for unit in self.units]
        count = max(1, batch // (len(STEPS) * len(ways))) if batch else self.x.size
        columns: list[list] = [[] for _ in points]
        middles, parts = (), []
        for start in range(0, self.x.size, count):
            some = slice(start, start + count)
            around = [self._shifted(points[i], unit, some) for i, unit in ways]
            rows = self.values(np.concatenate([np.stack(points), *around]), batch)
            middles, sides = rows[: len(points)], np.split(rows[len(points) :], len(ways))
            parts.append(
                [
                    self._columns(points[i], middles[i], side, some)
                    for (i, _), side in zip(ways, sides, strict=True)
                ]
            )
        for (i, _), pairs in zip(ways, zip(*parts, strict=True), strict=True):
            columns[i].append(tuple(map(np.concatenate, zip(*pairs, strict=True))))
        return list(map(Slopes, middles, columns))

    def _steps(self, there: np.ndarray) -> np.ndarray:
        sizes = np.abs(there.ravel())
        return (STEP if self.is_precise else 0.02) * np.where(sizes > 0, sizes, self.scale)

    def _shifted(self, there: np.ndarray, unit: complex, some: slice) -> np.ndarray:
        """Return points around one, in the order of `STEPS`, then of some of the elements."""
        indices, steps = np.arange(there.size)[some], unit * self._steps(there)[some]
        points = np.tile(there.ravel(), (len(STEPS), len(indices), 1))
        for k, factor in enumerate(STEPS):
            moved = factor * (steps if np.iscomplexobj(there) else np.real(steps))
            points[k, range(len(indices)), indices] += moved
        return points.reshape(-1, *there.shape)

    def _columns(
        self, there: np.ndarray, middle: np.ndarray, around: np.ndarray, some: slice
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivative of the values by each element, NaN at kinks, and its error."""
        h = self._steps(there)[some, None]
        values = around.reshape(len(STEPS), len(h), -1)
        slopes = (values[0] - values[1]) / (2 * h), (values[2] - values[3]) / h
        bends = [np.abs(values[k] + values[k + 1] - 2 * middle) / h for k in (0, 2)]
        typical = max(float(np.max(np.abs(middle), initial=0.0)), 1e-300)
        kink = (2 * bends[1] > 0.8 * bends[0]) & (2 * bends[1] > 1e-3 * typical / self.scale)
        # The extrapolation is better than the finer slope by about the square of the step.
        precision = np.finfo(middle.dtype).eps
        rounding = np.where(values[2] == values[3], 0.0, 8 * precision * np.abs(middle) / h)
        errors = 1e-2 * np.abs(slopes[1] - slopes[0]) + rounding
        return np.where(kink, np.nan, (4 * slopes[1] - slopes[0]) / 3), errors

    # Values and gradients --------------------------------------------------------------------

    def values(self, points: np.ndarray, batch: int) -> np.ndarray:
        """Return a row of values for each of the argument's values.

        In batches of this size; one after the other if it is 0.
        """
        rows = []
        for start in range(0, len(points), batch or 1):
            some = points[start : start + (batch or 1)]
            rows.append(self._values(some, WholeBatch(len(some)) if batch else None))
        return np.concatenate(rows)

    def _values(self, points: np.ndarray, batch: Batch | None) -> np.ndarray:
        problem, order = self.problem, self.order
        with self._at(points, batch) as sources:
            if order == 1:
                results = evaluate.run(problem, sources, problem.against)
            else:
                results = evaluate.numbers(problem, sources, order - 1)
        arrays = [(r if batch is None else batch.physical(r))._values() for r in results]
        rows = np.concatenate([array.reshape(len(points), -1) for array in arrays], axis=1)
        return rows if self.weights is None else np.real(rows @ np.conj(self.weights))[:, None]

    def gradients(self, points: list[np.ndarray], at_point: np.ndarray | None) -> list[np.ndarray]:
        """Return the gradient that the rules return at each point; `at_point` at the first one."""
        if len(points) > 1 and self.is_batched:
            with contextlib.suppress(Exception):  # NumPy code, for example, or a condition
                gradients = self._gradients(np.stack(points), WholeBatch(len(points)))
                if at_point is None or np.allclose(gradients[0], at_point, 1e-6, equal_nan=True):
                    return list(gradients)
        first = [] if at_point is None else [at_point]
        return [*first, *(self._gradients(point[None], None)[0] for point in points[len(first) :])]

    def _gradients(self, points: np.ndarray, batch: Batch | None) -> np.ndarray:
        with self._at(points, batch) as sources:
            gradient = evaluate.gradients(self.problem, sources, self.order)[0][self.j]
        if gradient is None:
            return np.zeros(points.shape, points.dtype)
        array = (gradient if batch is None else batch.physical(gradient))._values()
        return np.array(np.broadcast_to(array.reshape(-1, *self.x.shape), points.shape))

    def _at(self, points: np.ndarray, batch: Batch | None) -> Any:
        if batch is not None:
            return evaluate.at_several(self.problem, self.point, {self.j: points}, batch)
        point = [points[0] if i == self.j else value for i, value in enumerate(self.point)]
        return evaluate.at(self.problem, point)
