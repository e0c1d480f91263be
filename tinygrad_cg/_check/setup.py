"""Problems: the checked function with its sources, weights and directions, made from a call."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import nest
from .._core.conversion import convert, is_tensor, is_weak
from .._core.kinds import is_complex, is_differentiable
from .._core.levels import Listener, remove_listener, state
from .._reverse.variable import Variable
from .._rules.definition import Definition
from .evaluate import NO_FLOATS, at, dtypes_of, noted_outputs, reference_outputs, run
from .problem import Primal, Problem, precision_of_dtype, widened
from .rewrite import captured


class _Used(dict, Listener):
    """A listener that collects the trainable Variables that are read, by id."""

    def variable_read(self, variable: Variable) -> None:
        if variable.trainable and is_differentiable(variable._data.dtype):
            self[id(variable)] = variable


def make_problem(
    f: Callable[..., Any],
    args: Sequence,
    kwargs: dict,
    seed: int,
    order: int,
    against: Callable[..., Any] | None = None,
) -> Problem:
    """Return the problem of ``f(*args, **kwargs)`` for derivatives up to `order`."""
    definition = Definition(getattr(f, "_function", f))
    definition.role = "the checked function"
    structure = (list(args), dict(kwargs))
    leaves = nest.flatten(structure)
    indices, sources = _argument_sources(definition, args, kwargs, leaves)
    problem = Problem(f, against, definition, structure, leaves, indices, sources)
    no_source = (
        f"check_gradients: {problem.name} got no argument with a gradient: pass floats, such as "
        "2.0 or np.array([1.0, 2.0])"
    )
    try:
        problem.values = outputs = _find_variables(problem)
    except (AttributeError, TypeError, ValueError) as error:
        if args and not sources:
            if str(error) == NO_FLOATS.format(problem.name):
                raise TypeError(no_source) from None
            error.add_note(no_source)
        _note_arguments(f, args, error)
        raise
    if not problem.sources:
        raise TypeError(no_source)
    problem.point = [source.value for source in problem.sources]
    problem.wide_point = [value.astype(widened(value.dtype)) for value in problem.point]
    has_two = dtypes_of(problem.point) != dtypes_of(problem.wide_point)
    problem.offsets = [] if against is None else _compare_outputs(problem, outputs)
    problem.wide = not has_two
    wide = outputs
    with contextlib.suppress(Exception):
        wide = noted_outputs(problem, problem.wide_point) if has_two else outputs
        others = [] if against is None else reference_outputs(problem, problem.wide_point)
        problem.wide = all(precision_of_dtype(output.dtype) < 1e-15 for output in [*wide, *others])
    problem.has_two_dtypes = has_two and problem.wide
    problem.base_values = wide if problem.wide else outputs
    _choose(problem, np.random.default_rng(seed), order)
    return problem


def _argument_sources(
    definition: Definition, args: Sequence, kwargs: dict, leaves: list
) -> tuple[list[int], list[Primal]]:
    """Return the sources among the leaves of the arguments, and their indices."""
    paths = [(i, path) for i, arg in enumerate(args) for path, _ in nest.flatten_paths(arg)]
    named = [path for key in sorted(kwargs) for path, _ in nest.flatten_paths(kwargs[key], key)]
    names = [*definition.input_names(paths), *named]
    indices, sources = [], []
    dtypes = [leaf.dtype for leaf in leaves if is_tensor(leaf) or isinstance(leaf, np.ndarray)]
    has_wide = any(dtype in (np.float64, np.complex128) for dtype in dtypes)
    for index, (name, leaf) in enumerate(zip(names, leaves, strict=True)):
        if index >= len(paths) and not is_tensor(leaf):
            continue  # by keyword: no input of a custom gradient
        variable = leaf if isinstance(leaf, Variable) else None
        if variable is not None:
            array = np.array(variable._data)
        elif is_tensor(leaf) or is_weak(leaf) or isinstance(leaf, np.ndarray):
            array = np.array(convert(leaf)._values())
            if has_wide and type(leaf) is float:  # it takes the dtype of what it meets
                array = np.array(leaf)
        elif hasattr(leaf, "__array__"):  # a Series or a DataFrame of pandas, for example
            array = np.asarray(leaf)
        else:
            continue
        if is_differentiable(array.dtype):
            indices.append(index)
            sources.append(Primal(name, array, variable))
    return indices, sources


def _find_variables(problem: Problem) -> list[np.ndarray]:
    """Add the Variables that the function reads to the sources; return its outputs."""
    used, look = _Used(), problem.look
    state.listeners.append(used)
    try:
        with at(problem, [source.value for source in problem.sources], level=look) as sources:
            results = run(problem, sources)
            look.look_at(results)
            outputs = [result._values() for result in results]
            if problem.against is not None:
                run(problem, sources, problem.against)
    finally:
        remove_listener(used)
    for source in problem.sources:
        used.pop(id(source.variable), None)
    variables = sorted(used.values(), key=lambda variable: variable._serial)
    look.forget([variable._data for variable in variables])
    own = {id(value): name for name, value in captured(problem.f).items()}
    taken = {source.name for source in problem.sources}
    full = [own.get(id(v), v.name) if v.name == "Variable:0" else v.name for v in variables]
    short = [name.removesuffix(":0") for name in full]
    names = [b if b not in taken else a for a, b in zip(full, short, strict=True)]
    for name, variable in zip(_distinct(names), variables, strict=True):
        problem.sources.append(Primal(name, np.array(variable._data), variable, True))
    return outputs


def _distinct(names: list[str]) -> list[str]:
    """Return the names, numbered where several are the same, as those of unnamed Variables."""
    return [
        f"{name} #{names[: k + 1].count(name)}" if names.count(name) > 1 else name
        for k, name in enumerate(names)
    ]


def _note_arguments(f: Callable[..., Any], args: Sequence, error: Exception) -> None:
    """Note on an error of the function that it got no arguments, types, or lists of numbers."""
    if not args:
        error.add_note(
            "check_gradients: pass the function's arguments after it: check_gradients(f, 1.0)"
        )
    if len(args) == 1 and isinstance(args[0], (list, tuple)) and isinstance(error, TypeError):
        with contextlib.suppress(TypeError, ValueError):
            inspect.signature(f).bind(*args[0])
            own = ", ".join(f"{arg!r:.60}" for arg in args[0])
            error.add_note(
                "check_gradients: pass the arguments one by one: "
                f"check_gradients({getattr(f, '__name__', 'f').replace('<lambda>', 'f')}, {own})"
            )
            return
    for i, arg in enumerate(args):
        if isinstance(arg, type):
            error.add_note(
                f"check_gradients: argument {i} is the type {arg.__name__}: pass a value, such as "
                f"{arg.__name__}(1.0)"
            )
        if isinstance(arg, (list, tuple)) and all(map(is_weak, nest.flatten(arg))):
            error.add_note(
                f"check_gradients: argument {i} is a {type(arg).__name__}: the function receives a "
                f"{type(arg).__name__} of tensors. To pass a single tensor, write "
                f"np.array({arg!r:.60}) or tf.constant({arg!r:.60})"
            )


def _compare_outputs(problem: Problem, outputs: list[np.ndarray]) -> list[np.ndarray]:
    """Return how much f's outputs exceed those of the function that it is checked against.

    Raises ValueError unless their number and shapes are the same.
    """
    others = reference_outputs(problem, problem.point)
    shapes, expected = [other.shape for other in others], [output.shape for output in outputs]
    if shapes != expected:
        raise ValueError(
            f"check_gradients: `against` must return outputs of the shapes that {problem.name} "
            f"returns, {expected}, got {shapes}"
        )
    return [output - other for output, other in zip(outputs, others, strict=True)]


def _choose(problem: Problem, generator: np.random.Generator, order: int) -> None:
    """Draw weights and directions at random; 1 where there is a single number."""
    is_single = sum(output.size for output in problem.values) == 1
    alone = sum(value.size for value in problem.point) == 1
    pairs = list(zip(problem.wide_point, problem.point, strict=True))

    def weights() -> list[np.ndarray]:
        return [
            _ones(output, 1.0 + 1.0j) if is_single else _draw_signed(generator, output)
            for output in problem.values
        ]

    def ways(is_last: bool = False) -> list[np.ndarray]:
        return [
            _ones(value, 1.0 - 0.5j)
            if (value.size == 1 if is_last else alone)
            else _direction(generator, value, own.dtype)
            for value, own in pairs
        ]

    problem.weights, problem.second_weights = weights(), weights()
    problem.third_weights = [
        -1000.0 * generator.uniform(0.5, 1.5, weight.shape) * weight for weight in problem.weights
    ]
    problem.scales = [_typical(_sizes(value)) for value in problem.wide_point]
    problem.ways = [ways() for _ in range(order + 1)]
    problem.last = ways(is_last=True)


def nearby_problem(problem: Problem, generator: np.random.Generator) -> Problem | None:
    """Return the problem at a nearby point; None if the function is not defined there.

    Every element differs, so zeros, integers, ties and bounds are left; to the inner side of a
    bound if the other side is not in the domain.
    """
    finite = [np.isfinite(output) for output in problem.values]
    for sign, signs in ((-1, (-1.0, 1.0)), (1, (-1.0, 1.0)), (-1, (1.0,)), (1, (-1.0,))):
        point = []
        for value, scale in zip(problem.point, problem.scales, strict=True):
            share = generator.uniform(0.02, 0.06, value.shape)
            steps = generator.choice(signs, value.shape) * share * scale
            other = np.where(value == 0, steps, value * (1 + sign * share))
            point.append(other.astype(value.dtype))
        wide = [value.astype(widened(value.dtype)) for value in point]
        scales = [_typical(_sizes(value)) for value in wide]
        moved = replace(problem, point=point, wide_point=wide, scales=scales)
        with contextlib.suppress(Exception):
            outputs = noted_outputs(moved, moved.point)
            pairs = zip(outputs, finite, strict=True)
            if all(bool(np.isfinite(output[mask]).all()) for output, mask in pairs):
                moved.values = moved.base_values = outputs
                if problem.has_two_dtypes:
                    moved.base_values = noted_outputs(moved, moved.wide_point)
                if problem.against is not None:
                    moved.offsets = _compare_outputs(moved, outputs)
                return moved
    return None


def _ones(like: np.ndarray, number: complex) -> np.ndarray:
    """Return ones; for complex `like` another number, whose direction no conjugate has."""
    return np.full(like.shape, number if is_complex(like.dtype) else 1.0)


def _draw_signed(generator: np.random.Generator, like: np.ndarray) -> np.ndarray:
    """Return numbers of both signs, from 1/2 to 3/2 in size; complex for complex `like`."""
    sizes = generator.uniform(0.5, 1.5, like.shape)
    signs = generator.choice((-1.0, 1.0), like.shape)
    if is_complex(like.dtype):
        signs = np.exp(2j * np.pi * generator.uniform(size=like.shape))
    return np.asarray(sizes * signs)


def _direction(generator: np.random.Generator, value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return a direction whose numbers are exact in `dtype`, that of the source."""
    sizes = _sizes(value)
    way = _draw_signed(generator, value) * sizes / _typical(sizes)
    with np.errstate(all="ignore"):
        return way.astype(dtype).astype(value.dtype)


def _sizes(value: np.ndarray) -> np.ndarray:
    """Return a scale for each element: its magnitude, or a typical one where it is tiny."""
    sizes = np.abs(np.where(np.isfinite(value), value, 1.0))
    typical = _typical(sizes)
    return np.where(sizes > 1e-3 * typical, sizes, typical)


def _typical(sizes: np.ndarray) -> float:
    """Return the root mean square; 1 for empty arrays and for zeros."""
    largest = float(sizes.max(initial=0.0))
    return largest * float(np.sqrt(np.mean((sizes / largest) ** 2))) if largest else 1.0
