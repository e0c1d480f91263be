"""Kernels that take Python objects: the quick way for arrays that one loop is enough for.

Called with arrays, boxes of arrays (`objects`) and, beside these, Python's numbers. They return
a new array, in a box if an operand was in one, or None if they are not for these operands: which
must be C-contiguous, of one shape or of one element without axes, and not many.

What the functions here close over is hashed for the disk cache: as in `inner`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tinygrad_cg_kernels.loops.inner import guarded_loop
from tinygrad_cg_kernels.loops.pairs import flat2
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import objects, threads
from tinygrad_cg_kernels.runtime.compile import jitable, wide_vectors
from tinygrad_cg_kernels.runtime.objects import (
    PLAIN,
    address,
    as_object,
    dtype_place,
    elements,
    nothing,
    prepared,
)

MOST = threads.THRESHOLD - 1
"""Elements at most: they are computed under the interpreter's lock, in some 100 us at most."""


def refuse(*operands: Any) -> None:
    """Stands for a direct kernel where there is none."""


@jitable
def unserved(status):
    """What is returned without a result: None, or nothing at all where memory was short."""
    return nothing() if status == 0 else as_object(0)


def unary(f: Callable, guard: tuple, dtypes: tuple[np.dtype, ...]) -> Callable:
    """The direct kernel of a function of one value; `guard` is that of `math.GUARDED`, or ()."""
    first, result = dtypes
    test, fast = guard or (f, f)
    guarded = bool(guard)

    def direct(x):
        wide_vectors()
        known = prepared(address(x), 0, 0, dtype_place(first), 0, 0, dtype_place(result), 0, 0)
        if known.status <= 0:
            return unserved(known.status)
        size = known.size
        values, line = elements(known.x, size, first), elements(known.line, size, result)
        if guarded and size != 1:
            guarded_loop(f, test, fast, values, line)
        else:
            for i in range(np.uintp(size)):
                line[i] = f(values[i])
        return as_object(known.result)

    return direct


def binary(f: Callable, guarded: bool, dtypes: tuple[np.dtype, ...]) -> Callable:
    """The direct kernel of a function of two values; `guarded` if it is in `GUARDED_PAIRS`."""
    first, second, result = dtypes
    width = first.itemsize if first.kind == "f" else 0

    def direct(x, y):
        wide_vectors()
        kinds = dtype_place(first), dtype_place(second), dtype_place(result)
        known = prepared(address(x), address(y), 0, kinds[0], kinds[1], 0, kinds[2], width, 0)
        if known.status <= 0:
            return unserved(known.status)
        size = known.size
        left, right = elements(known.x, size, first), elements(known.y, size, second)
        line = elements(known.line, size, result)
        if size == 1:
            line[0] = f(left[0], right[0])
        elif known.one == 1:
            u = left[0]
            if guarded:
                flat2(f, u, right, line)
            else:
                for i in range(np.uintp(size)):
                    line[i] = f(u, right[i])
        elif known.one == 2:
            v = right[0]
            if guarded:
                flat2(f, left, v, line)
            else:
                for i in range(np.uintp(size)):
                    line[i] = f(left[i], v)
        elif guarded:
            flat2(f, left, right, line)
        else:
            for i in range(np.uintp(size)):
                line[i] = f(left[i], right[i])
        return as_object(known.result)

    return direct


def ternary(f: Callable, guarded: bool, dtypes: tuple[np.dtype, ...]) -> Callable:
    """The direct kernel of a function of three values: of arrays of one shape, no numbers."""
    first, second, third, result = dtypes

    def direct(x, y, z):
        wide_vectors()
        kinds = dtype_place(first), dtype_place(second), dtype_place(third), dtype_place(result)
        known = prepared(address(x), address(y), address(z), *kinds, 0, 0)
        if known.status <= 0:
            return unserved(known.status)
        size = known.size
        u, v = elements(known.x, size, first), elements(known.y, size, second)
        w, line = elements(known.z, size, third), elements(known.line, size, result)
        for i in range(np.uintp(size)):
            line[i] = f(u[i], v[i], w[i])
        return as_object(known.result)

    return direct


def total(row: Callable, dtypes: tuple[np.dtype, ...]) -> Callable:
    """The direct kernel of a reduction of all elements, by its total of a row."""
    (dtype,) = dtypes

    def direct(x):
        wide_vectors()
        place = dtype_place(dtype)
        known = prepared(address(x), 0, 0, place, 0, 0, place, 0, 1)
        if known.status <= 0:
            return unserved(known.status)
        elements(known.line, 1, dtype)[0] = row(elements(known.x, known.size, dtype))
        return as_object(known.result)

    return direct


class Directs:
    """The direct kernels of one operation, by dtypes, each compiled at its first use.

    The one element of `latest` is the one that served last, for whoever calls it with operands
    as they are, and is ready for None.
    """

    def __init__(self, name: str, make: Callable[..., Callable], inputs: int) -> None:
        self.name, self.make, self.inputs = name, make, inputs
        self.latest: list[Callable] = [refuse]
        self.dispatchers: dict[str, Any] = {}
        self._entries: dict[tuple[np.dtype, ...], Callable] = {}

    def __call__(
        self, arrays: tuple[np.ndarray, ...], dtypes: tuple[np.dtype, ...], cached: bool = True
    ) -> np.ndarray | None:
        """The result for operands of these dtypes, of which the last is its own; None if none."""
        for array in arrays:
            if array.size > MOST or array.flags.num & PLAIN != PLAIN:
                return None
        if not objects.ready(MOST):
            return None
        enter = self._entries.get(dtypes)
        if enter is None:
            made = build.kernel(self.make(dtypes), f"{self.name}_direct", cached)
            self.dispatchers["direct"] = made
            enter = self._entries[dtypes] = build.entry(made, *[objects.OBJECT] * self.inputs)
        got = enter(*arrays)
        if got is not None:
            self.latest[0] = enter
        return got
