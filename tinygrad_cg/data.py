"""Datasets: what a training loop goes through, in batches. After ``tf.data``."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from . import nest
from ._core.conversion import as_dtype, convert
from ._core.suggestions import DATASETS, absent_attributes, refuse_name
from ._core.tensor import Tensor
from ._ops.sampling import uniform
from ._ops.shape import stack, unstack
from .errors import InvalidArgumentError

__all__ = ["AUTOTUNE", "Dataset"]
__dir__ = __all__.copy  # what dir() shows
__getattr__ = partial(refuse_name, __name__)

AUTOTUNE = -1
_INFINITE, _UNKNOWN = -1, -2


@absent_attributes(DATASETS)
class Dataset:
    """A sequence of elements, each a tensor or a structure of tensors, made anew by each loop.

    Datasets are made by `from_tensor_slices`, `from_tensors`, `range` and `zip`; their methods
    return other datasets, and nothing is computed until a loop asks. Functions that are given to
    `map` and `filter` are called with values, for one element after the other: an element that is a
    tuple gives several arguments. `prefetch`, `num_parallel_calls` and the like change nothing.

    Examples
    --------
    >>> data = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0]).map(lambda x: x * x).batch(2)
    >>> [batch.numpy().tolist() for batch in data]
    [[1.0, 4.0], [9.0]]
    """

    def __init__(self, begin: Callable[[], Iterator[Any]], size: int):
        self._begin = begin
        self._size = size

    @staticmethod
    def from_tensor_slices(tensors: Any, name: Any = None) -> Dataset:
        """Return the slices of tensors along their first axes, in the structure of `tensors`.

        A list is one tensor, a tuple or dict a structure. InvalidArgumentError for tensors without
        axes, or with first axes of several sizes.
        """
        structure = _tensors(tensors)
        leaves = nest.flatten(structure)
        sizes = {one.shape[0] if one.ndim else None for one in leaves}
        if len(sizes) != 1 or None in sizes:
            raise InvalidArgumentError(
                "from_tensor_slices: tensors must have first axes of one size, got shapes "
                f"{', '.join(str(tuple(one.shape)) for one in leaves) or 'of none'}"
            )
        (size,) = sizes

        def begin() -> Iterator[Any]:
            for row in builtins.zip(*[unstack(one, 0) for one in leaves], strict=True):
                yield nest.pack_sequence_as(structure, list(row))

        return Dataset(begin, size or 0)

    @staticmethod
    def from_tensors(tensors: Any, name: Any = None) -> Dataset:
        """Return a dataset of one element: `tensors`."""
        structure = _tensors(tensors)
        return Dataset(lambda: iter([structure]), 1)

    @staticmethod
    def range(*args: int, output_type: Any = np.int64, name: Any = None) -> Dataset:
        """Return the integers of Python's ``range(*args)``, as scalars of `output_type`."""
        numbers = builtins.range(*map(int, args))
        dtype = as_dtype(output_type)
        return Dataset(lambda: (convert(np.array(one, dtype)) for one in numbers), len(numbers))

    @staticmethod
    def zip(*datasets: Any, name: Any = None) -> Dataset:
        """Return tuples of elements of several datasets, until one of them ends."""
        given = datasets[0] if len(datasets) == 1 and nest.is_nested(datasets[0]) else datasets
        parts = nest.flatten(given)
        for one in parts:
            if not isinstance(one, Dataset):
                raise TypeError(f"zip: needs datasets, got a {type(one).__name__}")

        def begin() -> Iterator[Any]:
            for row in builtins.zip(*parts, strict=False):
                yield _replace(given, iter(row))

        finite = [one._size for one in parts if one._size != _INFINITE]
        size = _UNKNOWN if _UNKNOWN in finite else min(finite, default=_INFINITE)
        return Dataset(begin, size)

    def __iter__(self) -> Iterator[Any]:
        return self._begin()

    def as_numpy_iterator(self) -> Iterator[Any]:
        """Return the elements with arrays in place of tensors."""
        return (nest.map_structure(lambda leaf: leaf.numpy(), one) for one in self)

    def __len__(self) -> int:
        if self._size < 0:
            kind = "infinite" if self._size == _INFINITE else "unknown"
            raise TypeError(f"The dataset is of {kind} length")
        return self._size

    def __bool__(self) -> bool:
        return True

    def cardinality(self, name: Any = None) -> Tensor:
        """Return the number of elements: -1 if infinite, -2 if it is not known."""
        return convert(np.int64(self._size))

    def batch(self, batch_size: Any, drop_remainder: bool = False, **options: Any) -> Dataset:
        """Return stacks of `batch_size` elements; the last may be smaller, or is dropped."""
        size = _positive("batch", "batch_size", batch_size)

        def begin() -> Iterator[Any]:
            elements = iter(self)
            while group := list(itertools.islice(elements, size)):
                if len(group) == size or not drop_remainder:
                    yield _stack(group)

        whole, rest = divmod(self._size, size)
        count = self._size if self._size < 0 else whole + (rest > 0 and not drop_remainder)
        return Dataset(begin, count)

    def unbatch(self, name: Any = None) -> Dataset:
        """Return the slices of elements along their first axes."""

        def begin() -> Iterator[Any]:
            for one in self:
                leaves = [unstack(leaf, 0) for leaf in nest.flatten(one)]
                for row in builtins.zip(*leaves, strict=True):
                    yield nest.pack_sequence_as(one, list(row))

        return Dataset(begin, _UNKNOWN)

    def map(self, map_func: Callable[..., Any], *args: Any, **options: Any) -> Dataset:
        """Return ``map_func(element)`` for each element."""
        return Dataset(lambda: (_tensors(_call(map_func, one)) for one in self), self._size)

    def filter(self, predicate: Callable[..., Any], name: Any = None) -> Dataset:
        """Return the elements for which `predicate` is true."""
        return Dataset(lambda: (one for one in self if bool(_call(predicate, one))), _UNKNOWN)

    def shuffle(
        self,
        buffer_size: Any,
        seed: int | None = None,
        reshuffle_each_iteration: bool = True,
        name: Any = None,
    ) -> Dataset:
        """Return the elements in random order: each drawn from the next `buffer_size`.

        Each loop has another order, or, without `reshuffle_each_iteration`, the same. With `seed`
        a run of the program repeats them; without, `random.set_seed` does. The orders are not those
        of the original.
        """
        size = _positive("shuffle", "buffer_size", buffer_size)
        start = seed if seed is not None else int(uniform((), 0, 2**31 - 1, np.int64).numpy())
        loops = itertools.count()

        def begin() -> Iterator[Any]:
            draws = np.random.default_rng([start, next(loops) if reshuffle_each_iteration else 0])
            elements = iter(self)
            buffer = list(itertools.islice(elements, size))
            for one in elements:
                index = int(draws.integers(len(buffer)))
                yield buffer[index]
                buffer[index] = one
            for index in draws.permutation(len(buffer)):
                yield buffer[index]

        return Dataset(begin, self._size)

    def repeat(self, count: Any = None, name: Any = None) -> Dataset:
        """Return the elements `count` times over; without end for None or -1."""
        times = -1 if count is None else int(count)
        if times < 0:
            return Dataset(lambda: _forever(self), _INFINITE if self._size else 0)
        size = self._size * times if self._size >= 0 else self._size

        def loops() -> Iterator[Any]:
            return itertools.chain.from_iterable(itertools.repeat(self, times))

        return Dataset(loops, size if times else 0)

    def take(self, count: Any, name: Any = None) -> Dataset:
        """Return the first `count` elements; all for -1."""
        most = int(count)
        if most < 0:
            return Dataset(self._begin, self._size)
        size = most if self._size == _INFINITE else min(self._size, most)
        return Dataset(lambda: itertools.islice(iter(self), most), size)

    def skip(self, count: Any, name: Any = None) -> Dataset:
        """Return the elements after the first `count`; none for -1."""
        least = int(count)
        if least < 0:
            return Dataset(lambda: iter(()), 0)
        size = max(self._size - least, 0) if self._size >= 0 else self._size
        return Dataset(lambda: itertools.islice(iter(self), least, None), size)

    def concatenate(self, dataset: Dataset, name: Any = None) -> Dataset:
        """Return the elements of this dataset, then those of another."""
        sizes = (self._size, dataset._size)
        size = min(sizes) if min(sizes) < 0 else sum(sizes)
        size = _INFINITE if _INFINITE in sizes else size
        return Dataset(lambda: itertools.chain(self, dataset), size)

    def enumerate(self, start: Any = 0, name: Any = None) -> Dataset:
        """Return pairs of a number, counted from `start` (int64), and the element."""
        first = int(start)

        def begin() -> Iterator[Any]:
            for count, one in builtins.enumerate(self, first):
                yield convert(np.int64(count)), one

        return Dataset(begin, self._size)

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any], name: Any = None) -> Any:
        """Return the last of ``state = reduce_func(state, element)``."""
        state = _tensors(initial_state)
        for one in self:
            state = _tensors(reduce_func(state, one))
        return state

    def prefetch(self, buffer_size: Any = None, name: Any = None) -> Dataset:
        """Return the same elements: they are made when they are asked for."""
        return Dataset(self._begin, self._size)

    def cache(self, filename: str = "", name: Any = None) -> Dataset:
        """Return the same elements, which the first whole loop keeps in memory."""
        kept: list[list[Any]] = []

        def begin() -> Iterator[Any]:
            if kept:
                yield from kept[0]
                return
            elements = []
            for one in self:
                elements.append(one)
                yield one
            kept.append(elements)

        return Dataset(begin, self._size)

    def __repr__(self) -> str:
        text = {_INFINITE: "without end", _UNKNOWN: "of unknown length"}
        return f"<tg.data.Dataset: {text.get(self._size, f'{self._size} elements')}>"


def _tensors(structure: Any) -> Any:
    """Return a structure with tensors as leaves; a list is one tensor."""
    if isinstance(structure, dict):
        return {key: _tensors(value) for key, value in structure.items()}
    if isinstance(structure, tuple):
        parts = [_tensors(one) for one in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    return convert(structure)


def _replace(structure: Any, values: Iterator[Any]) -> Any:
    """Return a structure of datasets with an element of each in its place."""
    if isinstance(structure, dict):
        found = {key: _replace(structure[key], values) for key in sorted(structure)}
        return {key: found[key] for key in structure}
    if isinstance(structure, (tuple, list)):
        return tuple([_replace(one, values) for one in structure])
    return next(values)


def _call(function: Callable[..., Any], element: Any) -> Any:
    return function(*element) if type(element) is tuple else function(element)


def _stack(elements: list[Any]) -> Any:
    columns = builtins.zip(*map(nest.flatten, elements), strict=True)
    return nest.pack_sequence_as(elements[0], [stack(list(one)) for one in columns])


def _forever(dataset: Dataset) -> Iterator[Any]:
    while True:
        none = True
        for one in dataset:
            none = False
            yield one
        if none:
            return


def _positive(method: str, parameter: str, value: Any) -> int:
    number = int(value)
    if number < 1:
        raise InvalidArgumentError(f"{method}: {parameter} must be greater than zero, got {number}")
    return number
