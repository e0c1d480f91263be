"""Kernels over a range of units: rows, strips of columns, blocks of a long vector.

A *core* is ``core(f, g, first, count, sizes, *arrays)``. It processes `count` units from `first`
on, which write disjoint outputs, with up to two functions. `sizes` has what it needs to know of
shapes and steps (in bytes). The arrays only stand for memory, which the core reads through `span`.
The division of work into units never depends on the number of threads, so neither do the bits of
results.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime import threads, tiers
from tinygrad_cg_kernels.runtime.entries import Blocks
from tinygrad_cg_kernels.runtime.intrinsics import wide_vectors
from tinygrad_cg_kernels.runtime.promotion import INT64, real_float
from tinygrad_cg_kernels.runtime.views import layout, operands, vector

SPLIT = threads.MIN_BLOCKED


class Ranged:
    """A core made into kernels, each compiled for its dtypes on first use.

    Parameters
    ----------
    name : the name in errors, tracebacks and cache files.
    core : the function of units (see above), which must be importable.
    sizes : the number of entries of `sizes`; the least, if the first ones say how many there are.
    functions : the functions for `f` and `g`.
    block : the number of elements in a block, which one thread does at a time.
    """

    def __init__(
        self, name: str, core: Callable, sizes: int, functions: tuple, block: int = threads.BLOCK
    ) -> None:
        self.name, self.block = name, block
        f, g = (*functions, None, None)[:2]
        operation = name.rpartition("_")[0]  # without the form
        self.blocks = Blocks(operation, lambda *dtypes: (name, _kernel(core, f, g, dtypes, sizes)))
        self.dispatchers = self.blocks.owners

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def __call__(
        self, arrays: Sequence[np.ndarray], sizes: tuple[int, ...], units: int, work: int
    ) -> None:
        """Process all units of arrays, of which the outputs are the last.

        `work` is the number of elements that are read. It decides whether threads share the work.
        """
        if units:
            dtypes = tuple([array.dtype for array in arrays])
            self.bound(dtypes, sizes, units, work)(*arrays)

    def bound(
        self,
        dtypes: tuple[np.dtype, ...],
        sizes: tuple[int, ...],
        units: int,
        work: int,
        *,
        is_alone: bool = False,
    ) -> Callable[..., object]:
        """Return a function that does this for arrays of these dtypes; `is_alone` as in a task."""
        address, count = self.blocks[dtypes], len(dtypes)
        run = threads.bind(address, count, sizes, units, work, self.block, is_alone)
        return tiers.counted(run, self.blocks.owners[dtypes], work)


def _kernel(core: Callable, f: Any, g: Any, dtypes: tuple[np.dtype, ...], sizes: int) -> Callable:
    """Return the block kernel of a core. Its table has the arrays' addresses, then `sizes`."""
    arrays = len(dtypes)

    def block(table, first, count):
        wide_vectors()
        extents = vector(table + 8 * arrays, sizes, INT64)
        core(f, g, first, count, extents, *operands(layout(table, 0, 0, dtypes), 0, 1, dtypes))

    return block


class Compound:
    """Base class of functions that have several kernels, each compiled on first use."""

    name: str
    kernels: dict[str, Any]

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        """Return the dtype itself; float64 for integers and bool."""
        return real_float(self.name, dtype)

    @property
    def dispatchers(self) -> dict[Any, Any]:
        """Return the compiled kernels, by kernel and dtypes."""
        return {
            (form, *variant): owner
            for form, kernel in self.kernels.items()
            for variant, owner in kernel.dispatchers.items()
        }
