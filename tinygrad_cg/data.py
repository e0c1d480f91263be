"""Datasets: the elements and batches of a training loop. Modelled on ``tf.data``."""

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
from ._core.tensor import Tensor, TensorShape
from ._ops.creation import constant
from ._ops.padding import pad
from ._ops.sampling import uniform
from ._ops.shape import stack, unstack
from ._ops.validation import as_count, as_int
from .errors import InvalidArgumentError

__all__ = ["AUTOTUNE", "Dataset"]
__dir__ = __all__.copy  # what dir() shows
__getattr__ = partial(refuse_name, __name__)

AUTOTUNE = -1
_INFINITE, _UNKNOWN = -1, -2


@absent_attributes(DATASETS)
class Dataset:
    """A sequence of elements, tensors or structures of tensors, which each loop creates again.

    `from_tensor_slices`, `from_tensors`, `range` and `zip` create datasets; their methods return
    other datasets. Elements are only computed in a loop. `map` and `filter` call their functions
    with values, once for each element; an element that is a tuple gives several arguments.
    `prefetch`, `num_parallel_calls` and similar options have no effect.

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
        axes, or if their first axes differ.
        """
        structure = _tensors(tensors)
        leaves = nest.flatten(structure)
        sizes = {leaf.shape[0] if leaf.ndim else None for leaf in leaves}
        if len(sizes) != 1 or None in sizes:
            raise InvalidArgumentError(
                "from_tensor_slices: tensors must have first axes of the same size, got shapes "
                f"{', '.join(str(tuple(leaf.shape)) for leaf in leaves) or 'of none'}"
            )
        (size,) = sizes

        def begin() -> Iterator[Any]:
            for row in builtins.zip(*[unstack(leaf, 0) for leaf in leaves], strict=True):
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
        return Dataset(
            lambda: (convert(np.array(number, dtype)) for number in numbers), len(numbers)
        )

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = (),
        output_signature: Any = None,
        name: Any = None,
    ) -> Dataset:
        """Return the elements that ``generator(*args)`` yields; each loop calls it again.

        `output_signature` is a structure of `TensorSpec`s, `output_types` a structure of dtypes.
        Elements get these dtypes; ValueError for another shape. `args` become arrays.
        """
        specs = output_types if output_signature is None else output_signature
        if specs is None or not callable(generator):
            raise TypeError(
                "from_generator: needs a function that returns an iterator, and output_signature, "
                f"such as tf.TensorSpec((), tf.float32); got {generator!r} and {specs!r}"
            )
        arrays = [convert(arg).numpy() for arg in args or ()]

        def fit(spec: Any, value: Any, index: int) -> Tensor:
            tensor = constant(value, spec if output_signature is None else spec.dtype)
            shape = None if output_signature is None else spec.shape
            if shape is not None and not TensorShape(shape).is_compatible_with(tensor.shape):
                raise InvalidArgumentError(
                    f"from_generator: output_signature declares shape {tuple(shape)}, but element "
                    f"{index} of the generator has shape {tuple(tensor.shape)}"
                )
            return tensor

        def begin() -> Iterator[Any]:
            leaves = nest.flatten(specs)
            for i, element in builtins.enumerate(generator(*arrays)):
                pairs = builtins.zip(leaves, _leaves_like(specs, element), strict=True)
                yield nest.pack_sequence_as(specs, [fit(*pair, i) for pair in pairs])

        return Dataset(begin, _UNKNOWN)

    @staticmethod
    def zip(*datasets: Any, name: Any = None) -> Dataset:
        """Return tuples of elements of several datasets, until one of them ends."""
        structure = datasets[0] if len(datasets) == 1 and nest.is_nested(datasets[0]) else datasets
        parts = nest.flatten(structure)
        for dataset in parts:
            if not isinstance(dataset, Dataset):
                raise TypeError(f"zip: needs datasets, got {type(dataset).__name__}")

        def begin() -> Iterator[Any]:
            for row in builtins.zip(*parts, strict=False):
                yield _replace(structure, iter(row))

        finite = [dataset._size for dataset in parts if dataset._size != _INFINITE]
        size = _UNKNOWN if _UNKNOWN in finite else min(finite, default=_INFINITE)
        return Dataset(begin, size)

    def __iter__(self) -> Iterator[Any]:
        return self._begin()

    def as_numpy_iterator(self) -> Iterator[Any]:
        """Return the elements with arrays in place of tensors."""
        return (nest.map_structure(lambda leaf: leaf.numpy(), element) for element in self)

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
        size = as_count("batch", "batch_size", batch_size, 1)
        return self._groups(_stack, size, size, 1, drop_remainder)

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: Any = None,
    ) -> Dataset:
        """Return `batch`es of elements that are padded at their ends, to the largest by default.

        `padded_shapes` has a shape for each tensor of an element, with None for the largest size,
        and `padding_values` a number for each, or one for all (0 by default).
        """
        size = as_count("padded_batch", "batch_size", batch_size, 1)

        def pad_all(elements: list[Any]) -> Any:
            first = elements[0]
            shapes = values = [None] * len(nest.flatten(first))
            if padded_shapes is not None:
                shapes = _leaves_like(first, padded_shapes)
            if nest.is_nested(padding_values):
                values = _leaves_like(first, padding_values)
            elif padding_values is not None:
                values = [padding_values] * len(shapes)
            columns = builtins.zip(shapes, values, strict=True)
            return _join(elements, lambda column: stack(_padded(column, *next(columns))))

        return self._groups(pad_all, size, size, 1, drop_remainder)

    def window(
        self,
        size: Any,
        shift: Any = None,
        stride: Any = 1,
        drop_remainder: bool = False,
        name: Any = None,
    ) -> Dataset:
        """Return datasets of `size` elements, each `shift` (by default `size`) after the last.

        The elements in a window are `stride` apart; the last windows may be smaller, or are
        dropped. For elements that are structures a window is a structure of datasets.
        """
        count = as_count("window", "size", size, 1)
        shift = count if shift is None else as_count("window", "shift", shift, 1)
        datasets = partial(_join, join=lambda column: Dataset(lambda: iter(column), len(column)))
        stride = as_count("window", "stride", stride, 1)
        return self._groups(datasets, count, shift, stride, drop_remainder)

    def _groups(
        self, join: Callable[[list[Any]], Any], size: int, shift: int, stride: int, whole: bool
    ) -> Dataset:
        """Return groups of elements, joined; only `whole` ones, or smaller ones at the end too."""
        span = (size - 1) * stride + 1

        def begin() -> Iterator[Any]:
            elements = iter(self)
            group = list(itertools.islice(elements, span))
            while group:
                if len(group) == span or not whole:
                    yield join(group[::stride])
                for _ in itertools.islice(elements, max(shift - len(group), 0)):
                    pass
                group = group[shift:]
                group.extend(itertools.islice(elements, span - len(group)))

        least = span if whole else 1
        count = self._size if self._size < 0 else max((self._size - least) // shift + 1, 0)
        return Dataset(begin, count)

    def unbatch(self, name: Any = None) -> Dataset:
        """Return the slices of elements along their first axes."""

        def begin() -> Iterator[Any]:
            for element in self:
                leaves = [unstack(leaf, 0) for leaf in nest.flatten(element)]
                for row in builtins.zip(*leaves, strict=True):
                    yield nest.pack_sequence_as(element, list(row))

        return Dataset(begin, _UNKNOWN)

    def map(self, map_func: Callable[..., Any], *args: Any, **options: Any) -> Dataset:
        """Return ``map_func(element)`` for each element."""
        return Dataset(lambda: (_tensors(_call(map_func, element)) for element in self), self._size)

    def filter(self, predicate: Callable[..., Any], name: Any = None) -> Dataset:
        """Return the elements for which `predicate` is true."""
        return Dataset(
            lambda: (element for element in self if bool(_call(predicate, element))), _UNKNOWN
        )

    def take_while(self, predicate: Callable[..., Any], name: Any = None) -> Dataset:
        """Return the elements before the first for which `predicate` is false."""
        holds = partial(_call, predicate)
        return Dataset(lambda: itertools.takewhile(holds, self), _UNKNOWN)

    def flat_map(self, map_func: Callable[..., Any], name: Any = None) -> Dataset:
        """Return the elements of the datasets ``map_func(element)``, one after the other."""
        return self.interleave(map_func)

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: Any = 1,
        block_length: Any = 1,
        **options: Any,
    ) -> Dataset:
        """Return elements of `cycle_length` datasets ``map_func(element)`` in turn.

        Each gives `block_length` elements; when a dataset ends, the next one replaces it.
        """
        cycle = as_count("interleave", "cycle_length", cycle_length or 1, 1)
        length = as_count("interleave", "block_length", block_length or 1, 1)

        def begin() -> Iterator[Any]:
            sources, end = map(partial(_call, map_func), self), object()
            slots: list[Any] = [None] * cycle
            for i in itertools.cycle(builtins.range(cycle)):
                if slots[i] is None and sources is not None:
                    source = next(sources, end)
                    if source is end:
                        sources = None
                    elif not isinstance(source, Dataset):
                        raise TypeError(
                            "flat_map and interleave: map_func must return a Dataset, got "
                            f"{type(source).__name__}: use map"
                        )
                    else:
                        slots[i] = iter(source)
                if slots[i] is not None:
                    block = list(itertools.islice(slots[i], length))
                    slots[i] = slots[i] if len(block) == length else None
                    yield from block
                elif slots.count(None) == cycle:
                    return

        return Dataset(begin, _UNKNOWN)

    def shuffle(
        self,
        buffer_size: Any,
        seed: int | None = None,
        reshuffle_each_iteration: bool = True,
        name: Any = None,
    ) -> Dataset:
        """Return the elements in random order: each drawn from the next `buffer_size`.

        Each loop has a new order, or the same without `reshuffle_each_iteration`. `seed`, or
        otherwise `random.set_seed`, makes the orders reproducible. The orders differ from
        TensorFlow's.
        """
        size = as_count("shuffle", "buffer_size", buffer_size, 1)
        start = seed if seed is not None else int(uniform((), 0, 2**31 - 1, np.int64).numpy())
        loops = itertools.count()

        def begin() -> Iterator[Any]:
            draws = np.random.default_rng([start, next(loops) if reshuffle_each_iteration else 0])
            elements = iter(self)
            buffer = list(itertools.islice(elements, size))
            for element in elements:
                index = int(draws.integers(len(buffer)))
                yield buffer[index]
                buffer[index] = element
            for index in draws.permutation(len(buffer)):
                yield buffer[index]

        return Dataset(begin, self._size)

    def repeat(self, count: Any = None, name: Any = None) -> Dataset:
        """Return the elements `count` times over; without end for None or -1."""
        times = -1 if count is None else as_int("repeat", "count", count)
        if times < 0:
            return Dataset(lambda: _forever(self), _INFINITE if self._size else 0)
        size = self._size * times if self._size >= 0 else self._size

        def loops() -> Iterator[Any]:
            return itertools.chain.from_iterable(itertools.repeat(self, times))

        return Dataset(loops, size if times else 0)

    def take(self, count: Any, name: Any = None) -> Dataset:
        """Return the first `count` elements; all for -1."""
        most = as_int("take", "count", count)
        if most < 0:
            return Dataset(self._begin, self._size)
        size = most if self._size == _INFINITE else min(self._size, most)
        return Dataset(lambda: itertools.islice(iter(self), most), size)

    def skip(self, count: Any, name: Any = None) -> Dataset:
        """Return the elements after the first `count`; -1 leaves no elements."""
        least = as_int("skip", "count", count)
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
        first = as_int("enumerate", "start", start)

        def begin() -> Iterator[Any]:
            for count, element in builtins.enumerate(self, first):
                yield convert(np.int64(count)), element

        return Dataset(begin, self._size)

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any], name: Any = None) -> Any:
        """Return the last of ``state = reduce_func(state, element)``."""
        state = _tensors(initial_state)
        for element in self:
            state = _tensors(reduce_func(state, element))
        return state

    def prefetch(self, buffer_size: Any = None, name: Any = None) -> Dataset:
        """Return the same elements: they are always created on demand."""
        return Dataset(self._begin, self._size)

    def cache(self, filename: str = "", name: Any = None) -> Dataset:
        """Return the same elements, which the first whole loop keeps in memory."""
        kept: list[list[Any]] = []

        def begin() -> Iterator[Any]:
            if kept:
                yield from kept[0]
                return
            elements = []
            for element in self:
                elements.append(element)
                yield element
            kept.append(elements)

        return Dataset(begin, self._size)

    def __repr__(self) -> str:
        text = {_INFINITE: "without end", _UNKNOWN: "of unknown length"}
        return f"<tg.data.Dataset: {text.get(self._size, f'{self._size} elements')}>"


def _tensors(structure: Any) -> Any:
    """Return a structure with tensors as leaves; a list becomes one tensor."""
    if isinstance(structure, dict):
        return {key: _tensors(value) for key, value in structure.items()}
    if isinstance(structure, tuple):
        parts = [_tensors(part) for part in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    return convert(structure)


def _replace(structure: Any, values: Iterator[Any]) -> Any:
    """Return a structure of datasets with each dataset replaced by its next element."""
    if isinstance(structure, dict):
        replaced = {key: _replace(structure[key], values) for key in sorted(structure)}
        return {key: replaced[key] for key in structure}
    if isinstance(structure, (tuple, list)):
        return tuple([_replace(part, values) for part in structure])
    return next(values)


def _call(function: Callable[..., Any], element: Any) -> Any:
    return function(*element) if type(element) is tuple else function(element)


def _stack(elements: list[Any]) -> Any:
    return _join(elements, stack)


def _join(elements: list[Any], join: Callable[[list[Any]], Any]) -> Any:
    """Return a structure in which `join` joins the elements' tensors at each place."""
    columns = builtins.zip(*map(nest.flatten, elements), strict=True)
    return nest.pack_sequence_as(elements[0], [join(list(column)) for column in columns])


def _leaves_like(structure: Any, other: Any) -> list[Any]:
    """Return the parts of `other` at the places of the leaves of `structure`."""
    if isinstance(structure, dict):
        structure, other = (
            [mapping[key] for key in sorted(structure)] for mapping in (structure, other)
        )
        structure = tuple(structure)
    if isinstance(structure, tuple):
        pairs = builtins.zip(structure, other, strict=True)
        return [leaf for pair in pairs for leaf in _leaves_like(*pair)]
    return [other]


def _padded(tensors: list[Tensor], shape: Any, value: Any) -> list[Tensor]:
    """Return tensors padded to one shape; a size that is None in `shape` is the largest."""
    largest = np.max([tensor.shape for tensor in tensors], axis=0, initial=0).astype(int).tolist()
    wanted = [None] * len(largest) if shape is None else list(shape)
    pairs = builtins.zip(wanted, largest, strict=True)
    sizes = np.array([most if size in (None, -1) else size for size, most in pairs], int)
    if (sizes < largest).any():
        raise InvalidArgumentError(
            f"padded_batch: padded_shapes must not be smaller than the largest element, {largest}, "
            f"got {wanted}"
        )
    fill = partial(pad, mode="constant", value=0 if value is None else value)
    return [fill(tensor, [(0, more) for more in sizes - tensor.shape]) for tensor in tensors]


def _forever(dataset: Dataset) -> Iterator[Any]:
    while True:
        none = True
        for element in dataset:
            none = False
            yield element
        if none:
            return
