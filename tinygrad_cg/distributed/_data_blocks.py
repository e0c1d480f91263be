"""Blocks of data, the result of a block, and sums of results."""

from __future__ import annotations

import functools
import operator
import os
import pickle
import traceback
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.linear import blas
from tinygrad_cg_kernels.runtime import threads
from tinygrad_cg_kernels.runtime.locks import ForkLock

from .. import nest
from .._core.conversion import is_tensor
from .._function.tracing.function import function
from .._ops.validation import as_count
from .._transforms import functional, jacobians
from ..errors import BlockError, InvalidArgumentError

# Functions for other processes ---------------------------------------------------------------


class Packed(bytes):
    """A pickled object."""

    def unpack(self, build: Callable[..., Any] | None = None) -> Any:
        """Return the object, or what `build` makes of its items; a process keeps the latest."""
        with _lock:
            if self not in _objects:
                value = pickle.loads(self)
                _objects[self] = value if build is None else build(*value)
            _objects.move_to_end(self)
            if len(_objects) > _MAX_OBJECTS:
                _objects.popitem(last=False)
            return _objects[self]


_MAX_OBJECTS = 16  # with their programs
_objects: OrderedDict[Packed, Any] = OrderedDict()
_lock = ForkLock()


def pack(name: str, value: Any) -> Packed:
    """Return a pickled object, by cloudpickle if that is installed."""
    try:
        dumps = import_module("cloudpickle").dumps
    except ImportError:
        dumps = pickle.dumps
    try:
        return Packed(dumps(value))
    except Exception as error:
        raise TypeError(
            f"{name}: functions for other processes must be pickled, with all that they use: "
            f"{type(error).__name__}: {error}. For lambdas and functions of a notebook, install "
            "cloudpickle, or define them in a module. Open files with distributed.files"
        ) from error


def failure(name: str, index: int | None, error: BaseException, is_remote: bool) -> BlockError:
    """Return an error that names the block, or the item of `map`."""
    what = "item" if name == "map" else "block"
    which = f"a {what}" if index is None else f"{what} {index}"
    text = f"{name}: {which} failed: {type(error).__name__}: {error}"
    named = BlockError(text, function=name, block=index)
    if is_remote:
        named.add_note("".join(traceback.format_exception(error)))
    return named


@contextmanager
def naming(name: str, index: int, is_remote: bool = False) -> Iterator[None]:
    """Raise `BlockError` instead of other exceptions."""
    try:
        yield
    except BlockError:
        raise
    except Exception as error:
        raise failure(name, index, error, is_remote) from error


def call(f: Any, is_remote: bool, index: int, item: Any) -> Any:
    """Return ``f(item)``, for `map`."""
    with naming("map", index, is_remote):
        return (f.unpack() if isinstance(f, Packed) else f)(item)


# Data ----------------------------------------------------------------------------------------


class SlicedArrays:
    """Blocks of consecutive rows of arrays, read when they are needed."""

    def __init__(self, arrays: Sequence[Any], size: int):
        self._arrays, self._size = arrays, size

    def __len__(self) -> int:
        return -(-self._arrays[0].shape[0] // self._size)

    def __iter__(self) -> Iterator[tuple[np.ndarray, ...]]:
        for start in range(0, self._arrays[0].shape[0], self._size):
            parts = [array[start : start + self._size] for array in self._arrays]
            yield tuple([np.array(p) if isinstance(p, np.memmap) else np.asarray(p) for p in parts])


def blocks(*arrays: Any, size: int) -> Iterable[tuple[np.ndarray, ...]]:
    """Return blocks of `size` rows of arrays with equal first axes, for `over`.

    Arrays of NumPy, h5py and Zarr, and memory maps: anything with a shape and slices. The last
    block may be shorter. This process reads each block when it is needed and sends it to a worker;
    with `files`, workers read. InvalidArgumentError if the first axes differ.

    Examples
    --------
    >>> [x.tolist() for x, in tf.distributed.blocks(np.arange(5), size=2)]
    [[0, 1], [2, 3], [4]]
    """
    shapes = [tuple(getattr(array, "shape", ())) for array in arrays]
    if len({shape[:1] for shape in shapes}) != 1 or () in shapes:
        raise InvalidArgumentError(
            "blocks: arrays must have first axes of the same size, got shapes "
            f"{', '.join(map(str, shapes)) or 'of none'}"
        )
    return SlicedArrays(arrays, as_count("blocks", "size", size, least=1))


class FileBlock:
    """A file, and the function that reads it where its block is computed."""

    def __init__(self, path: Any, reader: Any):
        self._path, self._reader = path, reader

    def read(self) -> Any:
        reader = self._reader
        return (reader.unpack() if isinstance(reader, Packed) else reader)(self._path)

    def __reduce__(self) -> Any:
        reader = self._reader  # packed, where a block arrived and is sent on
        packed = reader if isinstance(reader, Packed) else pack("files", reader)
        return FileBlock, (self._path, packed)


def files(paths: Iterable[Any], reader: Callable[[Any], Any]) -> Sequence[Any]:
    """Return a block for each file, ``reader(path)``, for `over`.

    The worker that computes a block reads its file. Without an executor, the next file is read
    while a block is computed. `paths` may be anything that `reader` takes and pickle sends, such as
    a path and a range of rows. A tuple that `reader` returns gives several arguments. TypeError if
    `paths` is one path, or `reader` is not a function.

    Examples
    --------
    >>> for number in range(2):
    ...     np.save(f"part{number}.npy", np.full(3, number))
    >>> data = tf.distributed.files(["part0.npy", "part1.npy"], np.load)
    >>> loss = lambda w, x: tf.reduce_sum(tf.cast(x, w.dtype) * w)
    >>> tf.distributed.grad(loss, over=data)(np.array(1.0))
    np.float64(3.0)
    """
    if isinstance(paths, (str, bytes, os.PathLike)):
        raise TypeError(f"files: paths must be a list of paths, got {paths!r}: write [{paths!r}]")
    if not callable(reader):
        raise TypeError(f"files: reader must be a function of a path, got {type(reader).__name__}")
    return [FileBlock(path, reader) for path in paths]


class BlockSource:
    """Data of the argument `over`: an iteration gives the parts of each block, as tuples."""

    def __init__(self, name: str, over: Any):
        self._sources: Sequence[Any] = over if type(over) is tuple else (over,)
        self.of_dask = all(hasattr(source, "__dask_graph__") for source in self._sources)
        if self.of_dask:
            self._alive = self._sources  # delayed objects alone do not keep persisted data
            self._sources = _partitions(name, self._sources)
        for source in self._sources:
            _check(name, source)
        # whether workers of a cluster get the parts by themselves
        self.is_remote = self.of_dask or all(
            isinstance(source, list) and all(type(part) is FileBlock for part in source)
            for source in self._sources
        )

    def rows(self) -> Generator[tuple]:
        """Yield the parts of each block, for Dask's collections as delayed objects."""
        sources: Any = [source() if callable(source) else source for source in self._sources]
        begun = [*map(iter, sources)]
        try:
            yield from zip(*begun, strict=True)
        finally:
            for iterator in begun:
                getattr(iterator, "close", tuple)()

    def read_rows(self) -> Generator[tuple]:
        """Yield the parts of each block, Dask's ones computed in this process."""
        if not self.of_dask:
            yield from self.rows()
        for row in self.rows() if self.of_dask else ():
            yield import_module("dask").compute(*row, scheduler="synchronous")


def _check(name: str, source: Any) -> None:
    if hasattr(source, "__dask_graph__"):
        remedy = "a tuple must have only Dask collections or no Dask collection"
    elif hasattr(source, "shape"):
        remedy = "cut it into blocks, distributed.blocks(array, size=10_000)"
    elif isinstance(source, (str, bytes, Mapping)):
        remedy = "files are read by distributed.files(paths, reader)"
    elif isinstance(source, Iterator):
        remedy = "it can be read once; pass a list, or a function that returns an iterator"
    elif not callable(source) and not isinstance(source, Iterable):
        remedy = "pass a single block as a list, [block]"
    else:
        return
    raise TypeError(
        f"{name}: over= must be an iterable of blocks, got {type(source).__name__}: {remedy}"
    )


def _partitions(name: str, collections: Sequence[Any]) -> list[list]:
    """Return the partitions of each of Dask's collections, as delayed objects."""
    for collection in collections:
        if not hasattr(type(collection), "to_delayed"):
            raise TypeError(
                f"{name}: over= takes Dask's arrays, dataframes and bags, got "
                f"{type(collection).__name__}: use dask.bag.from_delayed, or files()"
            )
        counts = getattr(collection, "numblocks", (1,))
        if not counts or any(count != 1 for count in counts[1:]):
            raise InvalidArgumentError(
                f"{name}: a Dask array of over= must be divided along its first axis only, got "
                f"{counts} chunks: use rechunk with -1 for the other axes"
            )
    parts = [np.ravel(collection.to_delayed()).tolist() for collection in collections]
    sizes = [each.chunks[0] for each in collections if hasattr(each, "chunks")]
    lengths = {axis for axis in sizes if not np.isnan(axis).any()}
    if len(lengths) > 1 or len({*map(len, parts)}) > 1:
        shown = lengths if len(lengths) > 1 else map(len, parts)
        raise InvalidArgumentError(
            f"{name}: the collections of over= must have the same partitions, got "
            f"{' and '.join(map(str, shown))}: use rechunk() or repartition()"
        )
    return parts


# The result of a block -----------------------------------------------------------------------

_TRANSFORMS: dict[str, Callable[..., Any]] = {
    "value_and_grad": functional.value_and_grad,
    "grad": functional.grad,
    "hvp": jacobians.hvp,
    "hessian": jacobians.hessian,
    "jacobian": jacobians.jacobian,
}


def compile_transform(name: str, f: Callable[..., Any], argnums: Any) -> Any:
    """Return the compiled transform of `f`; blocks of new sizes are no reason for a warning."""

    @functools.wraps(f, updated=())
    def with_rows(*args: Any) -> Any:
        output = f(*args)
        if not all(len(leaf.shape) for leaf in nest.flatten(output) if is_tensor(leaf)):
            raise InvalidArgumentError(
                "jacobian: f must return tensors whose first axis counts the rows of a block, got "
                "a scalar: use grad"
            )
        return output

    transform = _TRANSFORMS[name](with_rows if name == "jacobian" else f, argnums)
    return function(transform, reduce_retracing=True)


class Evaluation(NamedTuple):
    """A function that computes blocks, with the parameters as arrays."""

    name: str
    program: Any  # a function, or the packed arguments of `compile_transform`
    parameters: tuple
    vector: tuple  # for `hvp`
    needs_count: bool
    allow_nan: bool
    is_remote: bool

    def __call__(self, index: int, *parts: Any) -> tuple[int, Any] | None:
        """Return the number of examples in a block and its result; None for an empty block."""
        with naming(self.name, index, self.is_remote):
            arguments = [argument for part in parts for argument in _arguments(read(part))]
            block = nest.map_structure(_as_array, arguments)
            count = _length(block, self.needs_count)
            if not count:
                return None
            program = self.program
            if isinstance(program, Packed):
                program = program.unpack(compile_transform)
            # engines have a task for each core; products have other bits on several threads
            with threads.single_thread if self.is_remote else nullcontext(), blas.single_thread:
                result = program(*self.parameters, *block, *self.vector)
            result = nest.map_structure(_as_array, result)
            if not self.allow_nan and any(np.isnan(leaf).any() for leaf in nest.flatten(result)):
                raise FloatingPointError("its result has a NaN; allow_nan=True accepts it")
            return count, result


def read(part: Any) -> Any:
    """Return a part of a block, which is read if it is a file."""
    return part.read() if type(part) is FileBlock else part


def _arguments(part: Any) -> tuple:
    """Return the arguments that a part of a block gives: elements of a list are stacked."""
    part = [*part] if isinstance(part, Iterator) else part
    if type(part) is list:
        part = nest.map_structure(lambda *leaves: np.stack(leaves), *part) if part else np.empty(0)
    elif hasattr(part, "to_numpy") and hasattr(part, "columns"):
        part = {column: part[column].to_numpy() for column in part.columns}
    elif hasattr(part, "to_numpy"):
        part = part.to_numpy()
    return part if type(part) is tuple else (part,)


def _as_array(value: Any) -> np.ndarray:
    """Return an array in row-major or column-major order, as pickle sends it."""
    array = np.asarray(value)
    return array if array.flags.forc else array.copy()


def _length(block: Any, is_needed: bool) -> int:
    """Return the length of the first axis of the first array."""
    leaves = nest.flatten(block)
    if leaves and leaves[0].ndim:
        return len(leaves[0])
    if is_needed:
        raise InvalidArgumentError(
            'reduction="mean" weights a block by the length of the first axis of its first array, '
            "which has no axis"
        )
    return 1


# Sums ----------------------------------------------------------------------------------------


class BlockSum(NamedTuple):
    """The sum of the results of blocks, their mean, or their rows, by the name of `reduction`."""

    reduction: str

    def add(self, a: Any, b: Any) -> Any:
        """Return the result of two neighbours."""
        if a is None or b is None:
            return b if a is None else a
        count, join = a[0] + b[0], operator.add
        if self.reduction == "mean":
            first, second = a[0] / count, b[0] / count
            join = lambda x, y: x * first + y * second  # noqa: E731 (it is short)
        return count, nest.map_structure(join, a[1], b[1])

    def __call__(self, results: Iterable[Any]) -> Any:
        """Return the result of all; None of nothing."""
        if self.reduction == "rows":
            some = [result for result in results if result is not None]
            trees = [tree for _, tree in some]
            join = lambda *leaves: np.concatenate(leaves)  # noqa: E731 (it is short)
            return (len(some), nest.map_structure(join, *trees)) if some else None
        # as in a binary counter, two sums of equally many blocks become one: few are held at a time
        carries: list[tuple[int, Any]] = []
        for total in results:
            size = 1
            while carries and carries[-1][0] == size:
                total, size = self.add(carries.pop()[1], total), 2 * size
            carries.append((size, total))
        total = carries.pop()[1] if carries else None
        while carries:
            total = self.add(carries.pop()[1], total)
        return total
