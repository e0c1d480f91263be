"""Kernels over a range of units: rows, strips of columns, blocks of a long vector.

A *core* is ``core(f, g, first, count, sizes, *arrays)``: it does the units from `first` on,
which touch disjoint outputs, with up to two functions, and reads what it needs to know of
shapes and steps (in bytes) from `sizes`. The arrays stand for their memory alone: the core
looks at it through `span`. Small work enters the core directly; large work, and work on
memory that is not one contiguous array, goes block by block through the thread splitter, on
one thread as one block. How work is cut into units never depends on the number of threads, so
neither do the bits of the results.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numba import types
from numba.core.errors import NumbaError

from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import threads
from tinygrad_cg_kernels.runtime.compile import integer, pointer, vector, wide_vectors
from tinygrad_cg_kernels.runtime.dtypes import INT64, no_kernel
from tinygrad_cg_kernels.runtime.objects import data_address, supported

SPLIT = threads.THRESHOLD


class Ranged:
    """A core made into kernels, compiled for each choice of dtypes at first use.

    Parameters
    ----------
    name : what errors, tracebacks and cache files call it.
    core : the function of units, see above, importable like all kernels close over.
    arrays : how many arrays it takes, 2 or 3.
    sizes : how many numbers `sizes` holds.
    functions : what it gets for `f` and `g`.
    block : how many elements are one block of the work that threads share.
    """

    def __init__(
        self,
        name: str,
        core: Callable,
        arrays: int,
        sizes: int,
        functions: tuple[Callable | None, ...],
        block: int = threads.BLOCK,
    ) -> None:
        self.name, self.core, self.sizes, self.block = name, core, sizes, block
        self.functions = (*functions, None, None)[:2]
        self.dispatchers: dict[str, Any] = {}
        self.entries: dict[Any, Callable] = {}
        self._direct = _direct(core, self.functions, arrays)
        self._blocks: dict[Any, tuple[int, Any]] = {}

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def __call__(
        self, arrays: Sequence[np.ndarray], sizes: tuple[int, ...], units: int, work: int
    ) -> None:
        """Do all units on arrays, of which the outputs come last.

        `work` says how many elements are looked at: it decides about threads.
        """
        if work < SPLIT and all(array.flags.c_contiguous for array in arrays):
            enter = self._entry(tuple([array.dtype for array in arrays]))
            enter(units, sizes, *[array.reshape(-1) for array in arrays])
        elif units:
            dtypes = tuple([array.dtype for array in arrays])
            share(self._block(dtypes), arrays, sizes, units, work, self.block)

    def bound(
        self, dtypes: tuple[np.dtype, ...], sizes: tuple[int, ...], units: int, work: int
    ) -> Callable[..., None]:
        """As when called, for arrays that are C-contiguous and of these dtypes."""
        if work < SPLIT:
            enter = self._entry(dtypes)
            return lambda *arrays: enter(units, sizes, *[array.ravel() for array in arrays])
        return sharing(self._block(dtypes), len(dtypes), sizes, units, work, self.block)

    def _entry(self, dtypes: tuple[np.dtype, ...]) -> Callable:
        """The compiled way in for small work: ``enter(units, sizes, *flat arrays)``."""
        found = self.entries.get(dtypes)
        if found is None:
            if "direct" not in self.dispatchers:
                self.dispatchers["direct"] = build.kernel(self._direct, self.name, nogil=True)
            kinds = [build.array_type(dtype, 1) for dtype in dtypes]
            sizes = types.UniTuple(types.intp, self.sizes)
            found = self._compiled(
                dtypes, build.entry, self.dispatchers["direct"], types.intp, sizes, *kinds
            )
            self.entries[dtypes] = found
        return found

    def _compiled(self, dtypes: tuple[np.dtype, ...], compiler: Callable, *arguments: Any) -> Any:
        try:
            return compiler(*arguments)
        except NumbaError as error:
            name = self.name.rpartition("_")[0]  # without the form
            raise TypeError(no_kernel(name, dtypes[0])) from error

    def _block(self, dtypes: tuple[np.dtype, ...]) -> int:
        """The address of the block kernel for large work."""
        block = self._blocks.get(dtypes)
        if block is None:
            template = _block(self.core, self.functions, dtypes, self.sizes)
            name = f"{self.name}_block"
            block = self._compiled(dtypes, build.block_address, template, name)
            self._blocks[dtypes] = block
        return block[0]


def share(
    address: int,
    arrays: Sequence[np.ndarray],
    sizes: tuple[int, ...],
    units: int,
    work: int,
    block: int = threads.BLOCK,
) -> None:
    """Have a block kernel do all units on all threads, in blocks of about so many elements."""
    sharing(address, len(arrays), sizes, units, work, block)(*arrays)


@lru_cache(maxsize=4096)
def sharing(
    address: int,
    count: int,
    sizes: tuple[int, ...],
    units: int,
    work: int,
    block: int = threads.BLOCK,
) -> Callable[..., None]:
    """As `share`, for so many arrays that are given later, and again.

    What a block kernel is told lies in tables, which are kept for the next call.
    """
    step = max(block * units // max(work, 1), 1)
    step -= step % 4 if step > 4 else 0  # see `folds.rows_core`
    weight = work / units
    nothing = (None,) * (4 - count)
    tables: list[tuple] = []  # that no call is using, with their tasks for several threads, and one

    def run(*arrays: np.ndarray) -> None:
        try:
            entry = tables.pop()
        except IndexError:
            table = np.array([0] * count + list(sizes), INT64)
            place = data_address(table), 0, 0, 0
            entry = table, *[(address, place, (0, k, 0, 0), units, k) for k in (step, units)]
        table, shared, alone = entry
        if supported:
            held = (count, *arrays, *nothing)
        else:
            held, table[:count] = threads.NONE, [*map(data_address, arrays)]
        threads.carry_out(alone if threads.get_num_threads() == 1 else shared, weight, held)
        tables.append(entry)

    return run


class Compound:
    """What is made of several kernels, each compiled at its first use."""

    name: str
    kernels: dict[str, Any]

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    @property
    def dispatchers(self) -> dict[str, Any]:
        """The Numba dispatchers in use so far."""
        return {
            f"{form}_{variant}": dispatcher
            for form, kernel in self.kernels.items()
            for variant, dispatcher in kernel.dispatchers.items()
        }


def _direct(core: Callable, functions: tuple[Any, ...], arrays: int) -> Callable:
    """The kernel for small work; the arrays are flat and contiguous."""
    f, g = functions

    def direct2(units, sizes, a, b):
        wide_vectors()
        core(f, g, 0, units, sizes, a, b)

    def direct3(units, sizes, a, b, c):
        wide_vectors()
        core(f, g, 0, units, sizes, a, b, c)

    return {2: direct2, 3: direct3}[arrays]


def _block(
    core: Callable, functions: tuple[Any, ...], dtypes: tuple[np.dtype, ...], sizes: int
) -> Callable:
    """The C function for the splitter: it gets addresses and sizes, and the first unit."""
    f, g = functions
    type_a, type_b, type_c = (*dtypes, dtypes[0])[:3]

    def block2(info, first, c, d, n):
        wide_vectors()
        known = vector(info, 2 + sizes, INT64)
        x, y = vector(pointer(known[0]), 1, type_a), vector(pointer(known[1]), 1, type_b)
        core(f, g, integer(first), n, known[2:], x, y)

    def block3(info, first, c, d, n):
        wide_vectors()
        known = vector(info, 3 + sizes, INT64)
        x, y = vector(pointer(known[0]), 1, type_a), vector(pointer(known[1]), 1, type_b)
        core(f, g, integer(first), n, known[3:], x, y, vector(pointer(known[2]), 1, type_c))

    return {2: block2, 3: block3}[len(dtypes)]
