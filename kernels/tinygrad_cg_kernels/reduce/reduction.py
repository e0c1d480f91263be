"""Reductions over any axes: sum, prod, max, min, any, all.

How an array is reduced, and in which order, is planned in `axes`; the loops are in `combine`.
"""

from collections.abc import Callable
from functools import partial
from math import prod as product
from typing import Any

import numpy as np
from numpy import empty

from tinygrad_cg_kernels.loops import small
from tinygrad_cg_kernels.loops.ranges import Compound, Ranged
from tinygrad_cg_kernels.reduce import combine
from tinygrad_cg_kernels.reduce.axes import ReductionPlan, plan
from tinygrad_cg_kernels.runtime import threads
from tinygrad_cg_kernels.runtime.errstate import cast
from tinygrad_cg_kernels.runtime.objects import CONTIGUOUS
from tinygrad_cg_kernels.runtime.promotion import BOOL, INT64, is_complex, loop_dtype, native

BLOCK = 4 * threads.BLOCK  # elements: a sum takes only a microsecond for `threads.BLOCK`
MAX_READY = 4096
"""One reduction keeps plans for at most this many shapes."""


class Reduction(Compound):
    """A reduction made into array kernels.

    The kernels are made from three functions: the total of a row, the totals of four rows at once
    (or None), and the totals of the columns of some rows (see `combine`). `of_two` is the function
    of two values that is repeated, if there is one.

    Called with an array, the axes (distinct, not negative) and `keepdims`, it returns a new
    C-contiguous array. Integers keep their dtype; bool sums to int64; float16 is accumulated in
    float32. The only element of `small_kernel` is the small kernel for all axes that served last
    (see `small`). It may return None.
    """

    def __init__(
        self,
        name: str,
        row: Callable,
        four: Callable | None,
        rows: Callable,
        identity: float | None,
        kind: str = "number",
        of_two: Callable | None = None,
    ) -> None:
        self.name, self.identity, self.kind, self.of_two = name, identity, kind, of_two
        self.row = row
        rows_alone = Ranged(f"{name}_rows", combine.rows_core, 5, (row,), BLOCK)
        fours = four and Ranged(f"{name}_fours", combine.fours_core, 5, (four,), BLOCK)
        self.kernels = {
            "rows": rows_alone,
            "fours": fours or rows_alone,
            "strided": Ranged(f"{name}_strided", combine.strided_core, 5, (row,), BLOCK),
            "columns": Ranged(f"{name}_columns", combine.columns_core, 8, (rows,)),
        }
        self._ready: dict[tuple, Callable[[np.ndarray], np.ndarray]] = {}
        self._copied: set[np.dtype] = set()  # dtypes without a kernel: scalars are copied
        self._small = small.SmallKernels(name, partial(small.total, row), 1)
        self.small_kernel = self._small.latest

    @property
    def dispatchers(self) -> dict[str, Any]:
        """Return the Numba dispatchers in use so far."""
        return super().dispatchers | self._small.entries.owners

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        """Return the dtype of the result."""
        dtype = native(self.name, dtype)
        if self.kind == "logical":
            return BOOL
        if self.kind == "float":
            return super().result_dtype(dtype)
        return INT64 if self.kind == "number" and dtype == BOOL else dtype

    def __call__(self, x: np.ndarray, axes: tuple[int, ...], keepdims: bool = False) -> np.ndarray:
        """Reduce `x` over `axes`."""
        if len(axes) == x.ndim and not keepdims:
            got = self.small_kernel[0](x)
            if got is None and x.size <= small.MAX_SIZE and self.result_dtype(x.dtype) is x.dtype:
                got = self._reduce_all(x)
            if got is not None:
                return got
        ready = self._ready.get((x.shape, axes, keepdims, x.dtype))
        if ready is not None and x.flags.num & CONTIGUOUS == CONTIGUOUS:
            return ready(x)
        return self._slow(x, axes, keepdims)

    def _reduce_all(self, x: np.ndarray) -> np.ndarray | None:
        """Reduce all elements by a small kernel; None if it does not take `x`."""
        if loop_dtype(x.dtype) is not x.dtype or x.dtype in self._copied:
            return None
        try:
            return self._small((x,), (x.dtype,))
        except TypeError:
            if not x.ndim:  # nothing has to be reduced, so any dtype is right
                self._copied.add(x.dtype)
                return None
            raise

    def _slow(self, x: np.ndarray, axes: tuple[int, ...], keepdims: bool) -> np.ndarray:
        result = self.result_dtype(x.dtype)
        # the truth of real numbers needs no conversion
        truths = self.kind == "logical" and not is_complex(x.dtype)
        loop = loop_dtype(native(self.name, x.dtype) if truths else result)
        if x.dtype != loop or not x.flags.aligned:
            x = np.array(x, loop)
        elif result is loop and x.flags.c_contiguous and x.size:
            layout = plan(x.shape, axes, keepdims, x.itemsize)
            if len(self._ready) >= MAX_READY:
                self._ready.clear()
            ready = self._make_ready(layout, x.size, result)
            self._ready[x.shape, axes, keepdims, x.dtype] = ready
            return ready(x)
        layout = plan(x.shape, axes, keepdims, x.itemsize, *x.strides)
        if layout.form == "empty":
            return self._empty(layout.shape, result)
        if layout.form == "none":
            return np.array(x, result, order="C").reshape(layout.shape)
        return cast(self._reduce(x, layout, loop_dtype(result)), result)

    def _make_ready(self, layout: ReductionPlan, size: int, dtype: np.dtype) -> Callable:
        """Return a function that reduces contiguous arrays of one shape and dtype."""
        shape = layout.shape
        if layout.form == "none":
            return lambda x: x.reshape(shape).copy()
        if layout.view or layout.back or (layout.partial and self.kind == "logical"):
            return lambda x: self._reduce(x, layout, dtype)
        run = self.kernels[layout.form].bound((dtype, dtype), layout.sizes, layout.units, size)
        first = layout.partial or shape

        def reduce(x: np.ndarray) -> np.ndarray:
            out = empty(first, dtype)
            run(x, out)
            return out

        if layout.partial is None:
            return reduce
        then = plan(layout.partial, layout.rest, False, dtype.itemsize)
        finish = self._make_ready(then, product(layout.partial), dtype)
        return lambda x: finish(reduce(x)).reshape(shape)

    def _reduce(self, x: np.ndarray, layout: ReductionPlan, dtype: np.dtype) -> np.ndarray:
        """Run a plan, and reduce what remains after its first stage."""
        if layout.view is not None:
            order, flips = layout.view
            x = x.transpose(order)[flips]
        if layout.copied:
            x = np.ascontiguousarray(x)
        out = empty(layout.partial or layout.shape, dtype)
        self.kernels[layout.form]((x, out), layout.sizes, layout.units, x.size)
        if layout.partial is not None and self.kind == "logical":
            out = self._truth(out, layout.rest)
        elif layout.partial is not None:
            out = self._reduce(out, plan(out.shape, layout.rest, False, out.itemsize), dtype)
        if layout.back is not None:
            sizes, order = layout.back
            out = np.ascontiguousarray(out.reshape(sizes).transpose(order))
        return out.reshape(layout.shape)

    def _truth(self, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        """Reduce a small array of truth values."""
        wanted = self.of_two is combine.either
        if len(axes) == x.ndim:  # NumPy's function takes ten times as long
            return np.array(b"\1" in x.tobytes() if wanted else b"\0" not in x.tobytes())
        return np.asarray((np.any if wanted else np.all)(x, axes))

    def _empty(self, shape: tuple[int, ...], result: np.dtype) -> np.ndarray:
        out = np.empty(shape, result)
        if out.size:
            if self.identity is None:
                raise ValueError(f"{self.name} of an empty axis has no identity")
            out[...] = self.identity
        return out


sum = Reduction("sum", combine.sum_row, combine.sum_four, combine.sum_rows, 0, of_two=combine.add)
prod = Reduction(
    "prod", combine.prod_row, combine.prod_four, combine.prod_rows, 1, of_two=combine.multiply
)
max = Reduction("max", combine.max_row, None, combine.max_rows, None, "order", combine.larger)
min = Reduction("min", combine.min_row, None, combine.min_rows, None, "order", combine.smaller)
any = Reduction(
    "any", combine.any_row, combine.any_four, combine.any_rows, 0, "logical", combine.either
)
all = Reduction(
    "all", combine.all_row, combine.all_four, combine.all_rows, 1, "logical", combine.both
)
