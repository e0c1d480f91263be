"""The elements of a gradient: those that the rules give, and the right ones, by differences."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .._core.levels import Level, state
from .._core.primitive import apply
from .._core.tensor import Tensor
from .._rules.rebinding import rebind_outputs
from .._transforms.batching import Batch, BatchTensor
from .check import Check
from .derivatives import gradient_of_other_upstream
from .operations import Share, shares
from .problem import CheckedFunction, Point, Together

LARGEST = 4096  # elements of an argument to look at one by one
WORK = 1 << 31  # elements of operands and results that this may take
CALL = 2000  # elements that an operation counts for besides: calling it takes as long
BATCH = 1 << 21  # elements of the argument to compute with at once
ALONE = 20  # evaluations where these cannot be batched, in NumPy code say
ENTRIES = 1 << 22  # of a Jacobian to keep
STEP = 1e-3  # in units of the argument's scale
EVERY = slice(None)
STEPS = (1.0, -1.0, 0.5, -0.5)  # in units of these
MOVES = (0.13, -0.29, 0.41)  # in units of the scale: other points, where there are few elements


NOTHING = np.empty(0)
Shares = tuple[np.ndarray, list[Share]]


class Elements(NamedTuple):
    """The elements of a gradient: those that the rules gave, and the right ones (NaN at kinks).

    `uncertainty` is how far the right ones may be off, besides the relative `tolerance`.
    `upstream` is what the outputs were weighed with; `jacobian` has a row for each element of the
    outputs, or `slopes` where these and x are complex. These are empty where they are not known.
    `more` has the same at other points, and for another upstream; `parts` for each output alone,
    where there are several. `others` has the values of the other arguments. `shares_of` returns
    the shares of a gradient, for a value of the argument and an upstream.
    """

    name: str
    x: np.ndarray
    actual: np.ndarray
    right: np.ndarray
    uncertainty: np.ndarray
    tolerance: float
    outputs: np.ndarray = NOTHING
    upstream: np.ndarray = NOTHING
    jacobian: np.ndarray = NOTHING
    slopes: np.ndarray = NOTHING
    more: tuple[Elements, ...] = ()
    parts: tuple[Elements, ...] = ()
    others: Mapping[str, np.ndarray] = MappingProxyType({})
    shares_of: Callable[[np.ndarray, np.ndarray], Shares] | None = None

    @property
    def shares(self) -> Shares:
        """Return the gradient by the operations' rules, and its shares; empty where unknown."""
        return self.shares_of(self.x, self.upstream) if self.shares_of else (NOTHING, [])

    @property
    def samples(self) -> tuple[Elements, ...]:
        return (self, *self.more)

    @property
    def at_point(self) -> tuple[Elements, ...]:
        """Return the samples at this point: this, and that of another upstream."""
        return tuple(sample for sample in self.samples if np.array_equal(sample.x, self.x))

    def agree(self, numbers: np.ndarray, right: np.ndarray | None = None) -> np.ndarray:
        """Return where numbers are equal up to the errors of the right ones, or these unknown."""
        right = self.right if right is None else right
        with np.errstate(all="ignore"):
            size = np.maximum(np.abs(numbers), np.abs(right))
            return ~(np.abs(numbers - right) > self.tolerance * size + self.uncertainty)

    def match(self, numbers: np.ndarray) -> bool:
        """Return whether numbers are the right ones, everywhere."""
        return numbers.shape == self.right.shape and bool(self.agree(numbers).all())

    def match_actual(self, predicted: np.ndarray) -> bool:
        """Return whether numbers are those that the rules gave, everywhere."""
        if np.shape(predicted) != self.actual.shape:
            return False
        is_defined = np.isfinite(predicted) | ~np.isfinite(self.right)
        return bool((is_defined & self.agree(predicted, self.actual)).all())

    def only(self, mask: np.ndarray) -> Elements:
        """Return the elements at some positions of x."""
        x, actual, right, uncertainty = (
            array[mask] for array in (self.x, self.actual, self.right, self.uncertainty)
        )
        more = tuple(sample.only(mask) for sample in self.at_point[1:])
        return Elements(self.name, x, actual, right, uncertainty, self.tolerance, more=more)


def largest(numbers: np.ndarray) -> float:
    """Return the largest finite magnitude."""
    return float(np.max(np.abs(numbers), initial=0.0, where=np.isfinite(numbers)))


class TooMuch(Exception):
    """The cost of looking at the elements of an argument, in words."""


class Work(Level):
    """A level that counts the elements of what is computed."""

    def __init__(self) -> None:
        self.count = 0

    def process(self, primitive: Any, inputs: tuple, params: dict) -> Any:
        out = apply(primitive, inputs, params)
        outs = out if isinstance(out, list) else [out]
        self.count += CALL + sum(math.prod(tensor.shape) for tensor in (*inputs, *outs))
        return out

    def custom_call(self, call: Any, inputs: Sequence, outputs: Sequence) -> list:
        return rebind_outputs(state.frame, call, inputs, outputs)


def look_at_elements(check: Check, order: int, j: int) -> Elements | None:
    """Return the elements of the gradient by source j; None where they are not defined.

    Raises `TooMuch` if they are too many.
    """
    problem = check.problem
    point = problem.wide_point if problem.wide else problem.point
    if point[j].size > LARGEST:
        raise TooMuch(f"there are {point[j].size}, and it is done for up to {LARGEST}")
    if not point[j].size:
        return None
    at_point = check.first[j] if order == 1 and check.first else None
    try:
        second = gradient_of_other_upstream(check, j) if order == 1 else None
        return _elements(Argument(problem, order, point, j), at_point, second)
    except TooMuch:
        raise
    except Exception:  # it cannot be computed, or is not defined there
        return None


def _elements(
    argument: Argument, at_point: np.ndarray | None, second: np.ndarray | None
) -> Elements | None:
    """Return the elements; `at_point` is the gradient there, `second` that of another upstream."""
    problem, order, x = argument.problem, argument.order, argument.x
    values, work = problem.values, Work()
    with problem.using(level=work):
        middle = argument.values(x[None])
    count = len(STEPS) * x.size * (2 if np.iscomplexobj(x) else 1)
    argument.cost = f"that takes {count} evaluations of "
    argument.cost += "f" if order == 1 else f"the gradient of order {order - 1}"
    if count * work.count > WORK:
        raise TooMuch(argument.cost)
    # Several points must be looked at where there are few elements: one says little of a number,
    # or of a sum.
    alone = order == 1 and len(values) == 1 == values[0].size and not np.iscomplexobj(values[0])
    points = [x]
    if x.size < 8 or (alone and x.size <= 64):
        points += [np.asarray(x + move * argument.scale, x.dtype) for move in MOVES]
    weights = np.ones(1)
    if order == 1:
        weights = np.concatenate([np.ravel(weight) for weight in problem.weights])
    is_small = x.size * middle.size <= ENTRIES
    if not is_small:  # the sum that is differentiated is enough
        argument.weights, weights = weights, np.ones(1)
        middle = argument.values(x[None])
    single = order == 1 and len(values) == 1 and is_small
    points, slopes_at = argument.slopes(points, middle[0], single)
    actual = argument.gradients(points, at_point)
    if not np.isfinite(actual[0]).all():
        return None
    several = order == 1 and len(values) > 1 and is_small and not np.iscomplexobj(x)
    samples: list[Elements] = []
    for there, gradient, slopes in zip(points, actual, slopes_at, strict=True):
        if np.isfinite(gradient).all():
            samples.append(_sample(argument, there, gradient, slopes, weights, problem.weights))
        if there is x and second is not None and is_small and np.isfinite(second).all():
            others = np.concatenate([np.ravel(weight) for weight in problem.second_weights])
            samples.append(_sample(argument, x, second, slopes, others, problem.second_weights))
        if there is x and several:
            samples[0] = samples[0]._replace(parts=_parts_by_output(argument, *slopes.columns[0]))
    if not argument.is_precise:
        samples = list(map(_sharpened, samples))
    return samples[0]._replace(more=tuple(samples[1:]))


def _sharpened(sample: Elements) -> Elements:
    """Return elements with the gradient by the operations' rules, if differences agree with it."""
    exact, _ = sample.shares
    if not sample.match(exact):
        return sample
    tolerance = 300.0 * float(np.finfo(exact.dtype).eps)
    uncertainty = np.full(exact.shape, tolerance * largest(exact))
    return sample._replace(right=exact, uncertainty=uncertainty, tolerance=tolerance)


class Slopes(NamedTuple):
    """The values at a point, and their derivatives by each element, with their errors.

    For complex arguments twice: by the real and by the imaginary parts. `is_jacobian` says that
    the values are the function's only output.
    """

    values: np.ndarray
    columns: list[tuple[np.ndarray, np.ndarray]]
    is_jacobian: bool


def _sample(
    argument: Argument,
    x: np.ndarray,
    actual: np.ndarray,
    slopes: Slopes,
    weights: np.ndarray,
    upstreams: Sequence[np.ndarray],
) -> Elements:
    parts = [np.real(columns @ np.conj(weights)) for columns, _ in slopes.columns]
    right = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
    uncertainty = np.sum([errors @ np.abs(weights) for _, errors in slopes.columns], axis=0)
    elements = Elements(
        argument.name,
        x,
        actual,
        right.reshape(x.shape),
        uncertainty.reshape(x.shape),
        argument.accuracy,
        others=argument.others,
    )
    if not slopes.is_jacobian:
        return elements
    (upstream,), jacobian = upstreams, slopes.columns[0][0].T
    elements = elements._replace(upstream=upstream, shares_of=argument.shares)
    if np.iscomplexobj(x):
        return elements._replace(slopes=jacobian) if np.iscomplexobj(slopes.values) else elements
    if np.iscomplexobj(slopes.values):
        return elements
    return elements._replace(outputs=slopes.values.reshape(upstream.shape), jacobian=jacobian)


def _parts_by_output(
    argument: Argument, columns: np.ndarray, errors: np.ndarray
) -> tuple[Elements, ...]:
    """Return the elements of the gradient of each output."""
    problem, j, x = argument.problem, argument.j, argument.x
    weights, parts = problem.weights, []
    upstreams = [
        [weight if i == k else np.zeros_like(weight) for i, weight in enumerate(weights)]
        for k in range(len(weights))
    ]
    pulled = problem.pull_back(argument.point, upstreams)
    ends = np.cumsum([weight.size for weight in weights])
    for gradients, end, weight in zip(pulled, ends, weights, strict=True):
        actual = np.zeros_like(x) if gradients[j] is None else gradients[j]
        mine = slice(end - weight.size, end)
        right = np.real(columns[:, mine] @ np.conj(weight.ravel())).reshape(x.shape)
        uncertainty = (errors[:, mine] @ np.abs(weight.ravel())).reshape(x.shape)
        parts.append(Elements(argument.name, x, actual, right, uncertainty, argument.accuracy))
    return tuple(parts)


class Argument:
    """What is differentiated, and its gradient, as functions of one argument.

    At several points at once; one after the other where the function cannot be batched, at a
    `cost` in words. `weights` multiply the values.
    """

    def __init__(self, problem: CheckedFunction, order: int, point: Point, j: int):
        self.problem, self.order, self.point, self.j = problem, order, point, j
        self.x = point[j]
        self.name = problem.sources[j].name
        self.scale = problem.scales[j]
        self.is_precise = all(np.finfo(value.dtype).eps < 1e-12 for value in point)
        self.accuracy = 1e-5 if self.is_precise else 0.02
        self.weights: np.ndarray | None = None
        self.is_batched = True
        self._shares: dict[tuple[bytes, bytes], Shares] = {}
        self.cost = ""

    def shares(self, x: np.ndarray, upstream: np.ndarray) -> Shares:
        """Return the shares of the gradient at a value of the argument; empty if unknown."""
        upstreams = [upstream]
        if x is self.x:  # both are needed there
            upstreams = [self.problem.weights[0], self.problem.second_weights[0]]
        keys = [(x.tobytes(), upstream_gradient.tobytes()) for upstream_gradient in upstreams]
        if keys[0] not in self._shares:
            point = [x if i == self.j else value for i, value in enumerate(self.point)]
            parts: list[Shares] = [(NOTHING, [])] * len(keys)
            if self.problem.is_one_rule and self.problem.against is None:
                with contextlib.suppress(Exception):  # NumPy code, say
                    parts = shares(self.problem, point, self.j, upstreams)
            self._shares |= dict(zip(keys, parts, strict=True))
        return self._shares[x.tobytes(), upstream.tobytes()]

    @property
    def others(self) -> dict[str, np.ndarray]:
        pairs = enumerate(zip(self.problem.sources, self.point, strict=True))
        return {source.name: value for i, (source, value) in pairs if i != self.j}

    def slopes(
        self, points: list[np.ndarray], middle: np.ndarray, is_jacobian: bool
    ) -> tuple[list[np.ndarray], list[Slopes]]:
        """Return the points, fewer if they cannot be batched, with the slopes at each.

        `middle` are the values at the first one.
        """
        units = (1.0, 1j) if np.iscomplexobj(self.x) else (1.0,)
        count = len(STEPS) * len(units) * self.x.size
        batch = max(1, BATCH // self.x.size)
        try:
            if len(points) * (1 + count) > batch:  # of one point, then
                return points, [Slopes(middle, self._in_parts(units, middle, batch), is_jacobian)]
            rows = self.values(self._around(points, units), batch)
        except _NotBatched:
            self.is_batched = False
            if count > ALONE:
                raise TooMuch(self.cost) from None
            points = points[: 1 + ALONE // (10 * self.x.size)]
            rows = self.values(self._around(points, units))
        slopes = []
        for there, row in zip(points, np.split(rows, len(points)), strict=True):
            sides = np.split(row[1:], len(units))
            columns = [self._columns(there, row[0], side) for side in sides]
            slopes.append(Slopes(row[0], columns, is_jacobian))
        return points, slopes

    def _around(self, points: list[np.ndarray], units: Sequence[complex]) -> np.ndarray:
        """Return each point, and those around it for each unit."""
        blocks = [
            block
            for there in points
            for block in (there[None], *(self._shifted(there, unit) for unit in units))
        ]
        return np.concatenate(blocks)

    def _in_parts(self, units: Sequence[complex], middle: np.ndarray, batch: int) -> list:
        """Return the columns of `Slopes`, with some of many elements in each batch."""
        count = max(1, batch // len(STEPS))
        columns = []
        for unit in units:
            parts = []
            for start in range(0, self.x.size, count):
                some = slice(start, min(start + count, self.x.size))
                values = self.values(self._shifted(self.x, unit, some), batch)
                parts.append(self._columns(self.x, middle, values, some))
            columns.append(tuple(map(np.concatenate, zip(*parts, strict=True))))
        return columns

    def _steps(self, there: np.ndarray) -> np.ndarray:
        sizes = np.abs(there.ravel())
        return (STEP if self.is_precise else 0.02) * np.where(sizes > 0, sizes, self.scale)

    def _shifted(self, there: np.ndarray, unit: complex, some: slice = EVERY) -> np.ndarray:
        """Return points around one, in the order of `STEPS`, then of some of the elements."""
        indices, steps = np.arange(there.size)[some], unit * self._steps(there)[some]
        points = np.tile(there.ravel(), (len(STEPS), len(indices), 1))
        for k, factor in enumerate(STEPS):
            moved = factor * (steps if np.iscomplexobj(there) else np.real(steps))
            points[k, range(len(indices)), indices] += moved
        return points.reshape(-1, *there.shape)

    def _columns(
        self, there: np.ndarray, middle: np.ndarray, around: np.ndarray, some: slice = EVERY
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

    def values(self, points: np.ndarray, batch: int = 0) -> np.ndarray:
        """Return a row of values for each of the argument's values.

        In batches of so many; one after the other if that is 0. Raises `_NotBatched`.
        """
        if not batch:
            return np.concatenate([self._values(point[None], None) for point in points])
        rows = []
        for start in range(0, len(points), batch):
            some = points[start : start + batch]
            with _batching():
                rows.append(self._values(some, Together(len(some))))
        return np.concatenate(rows)

    def _values(self, points: np.ndarray, batch: Batch | None) -> np.ndarray:
        problem, order = self.problem, self.order
        with self._at(points, batch) as sources:
            if order == 1:
                results = problem.run(sources, problem.against)
            else:
                results = problem.numbers(sources, order - 1)
        arrays = [
            (result if batch is None else batch.physical(result))._values() for result in results
        ]
        rows = np.concatenate([array.reshape(len(points), -1) for array in arrays], axis=1)
        return rows if self.weights is None else np.real(rows @ np.conj(self.weights))[:, None]

    def gradients(self, points: list[np.ndarray], at_point: np.ndarray | None) -> list[np.ndarray]:
        """Return the gradient that the rules give at each point; `at_point` at the first one."""
        if len(points) > 1 and self.is_batched:
            with contextlib.suppress(_NotBatched):
                with _batching():
                    gradients = self._gradients(np.stack(points), Together(len(points)))
                if at_point is None or np.allclose(gradients[0], at_point, 1e-6, equal_nan=True):
                    return list(gradients)
        first = [] if at_point is None else [at_point]
        return [*first, *(self._gradients(point[None], None)[0] for point in points[len(first) :])]

    def _gradients(self, points: np.ndarray, batch: Batch | None) -> np.ndarray:
        problem = self.problem
        with self._at(points, batch) as sources:
            gradient = problem.gradients(sources, self.order)[0][self.j]
        if gradient is None:
            return np.zeros(points.shape, points.dtype)
        array = (gradient if batch is None else batch.physical(gradient))._values()
        return np.array(np.broadcast_to(array.reshape(-1, *self.x.shape), points.shape))

    @contextlib.contextmanager
    def _at(self, points: np.ndarray, batch: Batch | None) -> Any:
        problem, j = self.problem, self.j
        with problem.at(self.point) as sources, batch or contextlib.nullcontext():
            x = Tensor(np.array(points[0])) if batch is None else BatchTensor(Tensor(points), batch)
            if problem.sources[j].variable is None:
                sources[j] = x
            else:
                state.overrides[id(problem.sources[j].variable)] = x
            yield sources


class _NotBatched(Exception):
    """A function that cannot be computed for several points at once."""


@contextlib.contextmanager
def _batching() -> Any:
    try:
        yield
    except Exception as error:  # NumPy code, say, or a condition
        raise _NotBatched from error
