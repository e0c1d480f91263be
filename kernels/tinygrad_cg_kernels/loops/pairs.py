"""Loops over a function of two values, which may have a fast version (`math.GUARDED_PAIRS`).

The fast version is tried on a block of elements while its test looks at them; the block is done
again if one of them fails.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from tinygrad_cg_kernels.elementary import GUARDED_PAIRS
from tinygrad_cg_kernels.loops.interleave import interleaved
from tinygrad_cg_kernels.runtime.compile import jitable, span, vectorised, wide_vectors

BLOCK = 1024  # elements that are tried at a time


def item(x, i):
    """Element i of a row, or the value that stands for all of them."""


def part(x, start, count):
    """Some elements of a row, or the value that stands for all of them."""


@overload(item)
def _item(x, i):
    if isinstance(x, types.Array):
        return lambda x, i: x[i]
    return lambda x, i: x


@overload(part)
def _part(x, start, count):
    if isinstance(x, types.Array):
        return lambda x, start, count: span(x, start * x.itemsize, count)
    return lambda x, start, count: x


@jitable
def _plain2(f, x, y, out):
    vectorised()
    for i in range(np.uintp(out.size)):
        out[i] = f(item(x, i), item(y, i))
    interleaved(out)


@jitable
def _plain_into_x(f, x, y):
    vectorised()
    for i in range(np.uintp(x.size)):
        x[i] = f(x[i], item(y, i))
    interleaved(x)


@jitable
def _plain_into_y(f, x, y):
    vectorised()
    for i in range(np.uintp(y.size)):
        y[i] = f(x[i], y[i])
    interleaved(y)


@jitable
def _try2(test, fast, x, y, out):
    vectorised()
    failed = False
    for i in range(np.uintp(out.size)):
        failed = failed | (not test(item(x, i), item(y, i)))
        out[i] = fast(item(x, i), item(y, i))
    interleaved(out)
    return failed


@jitable
def copy(line, out):
    """Copy a row."""
    vectorised()
    for i in range(np.uintp(out.size)):
        out[i] = line[i]


def flat2(f, x, y, out):
    """out[i] = f(x[i], y[i]); either operand may be one value."""


def into_x(f, x, y):
    """x[i] = f(x[i], y[i]); y may be one value."""


def into_y(f, x, y):
    """y[i] = f(x[i], y[i])."""


def _guard(f: Any, row: Any) -> tuple[Callable, Callable] | None:
    """The test and the fast version of a function, by the Numba types of it and of a row."""
    if not isinstance(row.dtype, types.Float):
        return None
    known: dict[Any, tuple[Callable, Callable]] = GUARDED_PAIRS
    return known.get(getattr(f, "typing_key", None))


@overload(flat2)
def _choose_flat2(f, x, y, out):
    guard = _guard(f, out)
    if guard is None:
        return _plain2
    test, fast = guard

    def guarded(f, x, y, out):
        wide_vectors()
        for start in range(0, out.size, BLOCK):
            count = min(BLOCK, out.size - start)
            a, b, target = part(x, start, count), part(y, start, count), part(out, start, count)
            if _try2(test, fast, a, b, target):
                _plain2(f, a, b, target)

    return guarded


def _choose_into(plain: Callable, place: int) -> Callable:
    """In place: what is tried goes to a buffer first."""

    def choose(f, x, y):
        if _guard(f, (x, y)[place]) is None:
            return plain

        def guarded(f, x, y):
            wide_vectors()
            row = (x, y)[place]
            buffer = np.empty(BLOCK, row.dtype)
            for start in range(0, row.size, BLOCK):
                count = min(BLOCK, row.size - start)
                target = part(buffer, 0, count)
                flat2(f, part(x, start, count), part(y, start, count), target)
                copy(target, part(row, start, count))

        return guarded

    return choose


overload(into_x)(_choose_into(_plain_into_x, 0))
overload(into_y)(_choose_into(_plain_into_y, 1))


@jitable
def scalar_x(f, x, y, out):
    flat2(f, x[()], y, out)


@jitable
def scalar_y(f, x, y, out):
    flat2(f, x, y[()], out)


@jitable
def into_x_scalar_y(f, x, y):
    into_x(f, x, y[()])
