"""The loops of elementwise kernels, and how a scalar function is bound into one.

Each loop takes the scalar function as its first argument; a variant is a loop for one
arrangement of operands.
"""

from collections.abc import Callable

import numpy as np

from tinygrad_cg_kernels.loops.interleave import interleaved
from tinygrad_cg_kernels.loops.pairs import (
    flat2,
    into_x,
    into_x_scalar_y,
    into_y,
    scalar_x,
    scalar_y,
)
from tinygrad_cg_kernels.runtime.compile import (
    integer,
    jitable,
    pointer,
    scalar,
    span,
    vector,
    vectorised,
    wide_vectors,
)
from tinygrad_cg_kernels.runtime.dtypes import INT64

GUARDED = 1024  # elements that are tested at a time
BUFFER = 1024  # elements of strided operands that are packed at a time


# --- the loops ------------------------------------------------------------------------
# Bounds are unsigned, or Numba's wrap-around of negative indices stays in the loop and
# stops vectorisation. In-place loops have one variable for input and output: two that alias
# would fail LLVM's overlap check and run its scalar loop.


@jitable
def _flat1(f, x, out):
    vectorised()
    for i in range(np.uintp(out.size)):
        out[i] = f(x[i])
    interleaved(out)


@jitable
def _flat3(f, x, y, z, out):
    vectorised()
    for i in range(np.uintp(out.size)):
        out[i] = f(x[i], y[i], z[i])
    interleaved(out)


@jitable
def _scalar_yz(f, x, y, z, out):
    vectorised()
    value_y, value_z = y[()], z[()]
    for i in range(np.uintp(out.size)):
        out[i] = f(x[i], value_y, value_z)
    interleaved(out)


@jitable
def _into1(f, x):
    vectorised()
    for i in range(np.uintp(x.size)):
        x[i] = f(x[i])
    interleaved(x)


@jitable
def _all_pass(test, x):
    vectorised()
    failed = False
    for i in range(np.uintp(x.size)):
        failed = failed | (not test(x[i]))
    return not failed


@jitable
def guarded_loop(f, test, fast, x, out):
    wide_vectors()
    for start in range(0, out.size, GUARDED):
        count = min(GUARDED, out.size - start)
        part = span(x, start * x.itemsize, count)
        if _all_pass(test, part):
            _flat1(fast, part, span(out, start * out.itemsize, count))
        else:
            _flat1(f, part, span(out, start * out.itemsize, count))


@jitable
def _into1_guarded(f, test, fast, x):
    wide_vectors()
    for start in range(0, x.size, GUARDED):
        part = span(x, start * x.itemsize, min(GUARDED, x.size - start))
        if _all_pass(test, part):
            _into1(fast, part)
        else:
            _into1(f, part)


@jitable
def packed(x, offset, step, count, buffer):
    """`count` elements from a byte offset on, copied only if their step leaves gaps."""
    vectorised()
    if step == x.itemsize:
        return span(x, offset, count)
    for i in range(np.uintp(count)):
        buffer[i] = span(x, offset + np.intp(i) * step, 1)[0]
    return span(buffer, 0, count)


LOOPS: dict[int, dict[str, Callable]] = {
    1: {"flat": _flat1, "into_x": _into1},
    2: {
        "flat": flat2,
        "scalar_x": scalar_x,
        "scalar_y": scalar_y,
        "into_x": into_x,
        "into_y": into_y,
        "into_x_scalar_y": into_x_scalar_y,
    },
    3: {"flat": _flat3, "scalar_yz": _scalar_yz},
}
"""The loops by number of inputs: what threads run block by block, and what runs in place."""

GUARDED_LOOPS = {"flat": guarded_loop, "into_x": _into1_guarded}

SCALARS = {
    "scalar_x": (0,),
    "scalar_y": (1,),
    "into_x_scalar_y": (1,),
    "scalar_yz": (1, 2),
}
"""Which arguments of a variant are 0-d."""


# --- tiles: strided and broadcast operands ---------------------------------------------
# An output of three dimensions is done in tiles of some rows and columns, the units that
# threads share. What an operand has there is used where it lies if its columns follow one
# another, and packed into a buffer if not. Sizes: rows and columns of the whole, rows and
# columns of a tile, tiles across each, whether tiles are stacked (then all operands are
# packed to one long row), and three steps in bytes for each operand.


@jitable
def _pack(x, offset, step, gap, rows, columns, buffer):
    for r in range(rows):
        target = span(buffer, r * columns * x.itemsize, columns)
        _spread(x, offset + r * step, gap, target)


@jitable
def _spread(x, offset, gap, out):
    """Fill a row with elements that lie apart, or with one that is repeated."""
    vectorised()
    if gap == 0:
        value = span(x, offset, 1)[0]
        for k in range(np.uintp(out.size)):
            out[k] = value
    else:
        for k in range(np.uintp(out.size)):
            out[k] = span(x, offset + np.intp(k) * gap, 1)[0]


@jitable
def _tile_of(x, offset, step, gap, rows, columns, stacked, buffer, known):
    """What holds an operand's tile, and from row to row how many elements apart.

    A buffer that is `known` holds what it should if rows repeat.
    """
    if gap == x.itemsize:
        if rows == 1 or step == columns * gap:
            return span(x, offset, rows * columns), columns
        if not stacked and step % gap == 0:
            return span(x, offset, columns), step // gap
    if not (known and step == 0):
        _pack(x, offset, step, gap, rows, columns, buffer)
    return span(buffer, 0, rows * columns), columns


@jitable
def _place(sizes, unit):
    """A tile's matrix, its first row and column, and how many of each it has."""
    n1, n2, rows, columns = sizes[0], sizes[1], sizes[2], sizes[3]
    left = unit % sizes[5] * columns
    above = unit // sizes[5]
    top = above % sizes[4] * rows
    return above // sizes[4], top, left, min(rows, n1 - top), min(columns, n2 - left)


@jitable
def _row(x, pitch, r, columns):
    return span(x, r * pitch * x.itemsize, columns)


@jitable
def run_plain(f, test, fast, x, out):
    """The loop of `tiles1` over one row."""
    _flat1(f, x, out)


@jitable
def run_guarded(f, test, fast, x, out):
    """The same with a fast version of the function."""
    guarded_loop(f, test, fast, x, out)


@jitable
def tiles1(run, f, test, fast, first, count, sizes, x, out):
    """Tiles of a function of one value."""
    n1, n2, stacked = sizes[0], sizes[1], sizes[6] != 0
    buffer_x = np.empty(BUFFER, x.dtype)
    for unit in range(first, first + count):
        i, top, left, rows, columns = _place(sizes, unit)
        known = stacked and unit > first and top > 0
        at_x = i * sizes[7] + top * sizes[8] + left * sizes[9]
        a, pitch = _tile_of(x, at_x, sizes[8], sizes[9], rows, columns, stacked, buffer_x, known)
        at = ((i * n1 + top) * n2 + left) * out.itemsize
        if pitch == columns and (rows == 1 or columns == n2):
            run(f, test, fast, a, span(out, at, rows * columns))
        else:
            for r in range(rows):
                target = span(out, at + r * n2 * out.itemsize, columns)
                run(f, test, fast, _row(a, pitch, r, columns), target)


@jitable
def tiles2(f, first, count, sizes, x, y, out):
    """Tiles of a function of two values."""
    n1, n2, stacked = sizes[0], sizes[1], sizes[6] != 0
    buffer_x, buffer_y = np.empty(BUFFER, x.dtype), np.empty(BUFFER, y.dtype)
    for unit in range(first, first + count):
        i, top, left, rows, columns = _place(sizes, unit)
        known = stacked and unit > first and top > 0
        at_x = i * sizes[7] + top * sizes[8] + left * sizes[9]
        at_y = i * sizes[10] + top * sizes[11] + left * sizes[12]
        at = ((i * n1 + top) * n2 + left) * out.itemsize
        if rows == 1 and sizes[9] == 0 and sizes[12] == y.itemsize:
            target = span(out, at, columns)
            flat2(f, span(x, at_x, 1)[0], span(y, at_y, columns), target)
            continue
        if rows == 1 and sizes[12] == 0 and sizes[9] == x.itemsize:
            target = span(out, at, columns)
            flat2(f, span(x, at_x, columns), span(y, at_y, 1)[0], target)
            continue
        a, pitch_a = _tile_of(x, at_x, sizes[8], sizes[9], rows, columns, stacked, buffer_x, known)
        b, pitch_b = _tile_of(
            y, at_y, sizes[11], sizes[12], rows, columns, stacked, buffer_y, known
        )
        if pitch_a == columns and pitch_b == columns and (rows == 1 or columns == n2):
            flat2(f, a, b, span(out, at, rows * columns))
        else:
            for r in range(rows):
                target = span(out, at + r * n2 * out.itemsize, columns)
                flat2(f, _row(a, pitch_a, r, columns), _row(b, pitch_b, r, columns), target)


@jitable
def tiles3(f, first, count, sizes, x, y, z, out):
    """Tiles of a function of three values."""
    n1, n2, stacked = sizes[0], sizes[1], sizes[6] != 0
    buffer_x, buffer_y = np.empty(BUFFER, x.dtype), np.empty(BUFFER, y.dtype)
    buffer_z = np.empty(BUFFER, z.dtype)
    for unit in range(first, first + count):
        i, top, left, rows, columns = _place(sizes, unit)
        known = stacked and unit > first and top > 0
        at_x = i * sizes[7] + top * sizes[8] + left * sizes[9]
        at_y = i * sizes[10] + top * sizes[11] + left * sizes[12]
        at_z = i * sizes[13] + top * sizes[14] + left * sizes[15]
        a, pitch_a = _tile_of(x, at_x, sizes[8], sizes[9], rows, columns, stacked, buffer_x, known)
        b, pitch_b = _tile_of(
            y, at_y, sizes[11], sizes[12], rows, columns, stacked, buffer_y, known
        )
        c, pitch_c = _tile_of(
            z, at_z, sizes[14], sizes[15], rows, columns, stacked, buffer_z, known
        )
        at = ((i * n1 + top) * n2 + left) * out.itemsize
        for r in range(rows):
            target = span(out, at + r * n2 * out.itemsize, columns)
            row_a, row_b = _row(a, pitch_a, r, columns), _row(b, pitch_b, r, columns)
            _flat3(f, row_a, row_b, _row(c, pitch_c, r, columns), target)


def tile_kernel(inputs: int, run: Callable, functions: tuple[Callable, ...]) -> Callable:
    """The kernel that does all tiles: ``general(units, sizes, *operands, out)``."""
    f, test, fast = (functions * 3)[:3]

    def general1(units, sizes, x, out):
        wide_vectors()
        tiles1(run, f, test, fast, 0, units, sizes, x, out)

    def general2(units, sizes, x, y, out):
        wide_vectors()
        tiles2(f, 0, units, sizes, x, y, out)

    def general3(units, sizes, x, y, z, out):
        wide_vectors()
        tiles3(f, 0, units, sizes, x, y, z, out)

    return (general1, general2, general3)[inputs - 1]


def tile_block(
    run: Callable, functions: tuple[Callable, ...], dtypes: tuple[np.dtype, ...]
) -> Callable:
    """The same for the thread splitter: it gets addresses and sizes, and the first tile."""
    f, test, fast = (functions * 3)[:3]
    type_a, type_b, type_c, type_d = (*dtypes, *dtypes[:1] * 3)[:4]

    def block1(info, first, c, d, n):
        wide_vectors()
        known = vector(info, 12, INT64)
        x, out = vector(pointer(known[0]), 1, type_a), vector(pointer(known[1]), 1, type_b)
        tiles1(run, f, test, fast, integer(first), n, known[2:], x, out)

    def block2(info, first, c, d, n):
        wide_vectors()
        known = vector(info, 16, INT64)
        x, y = vector(pointer(known[0]), 1, type_a), vector(pointer(known[1]), 1, type_b)
        tiles2(f, integer(first), n, known[3:], x, y, vector(pointer(known[2]), 1, type_c))

    def block3(info, first, c, d, n):
        wide_vectors()
        known = vector(info, 20, INT64)
        x, y = vector(pointer(known[0]), 1, type_a), vector(pointer(known[1]), 1, type_b)
        z, out = vector(pointer(known[2]), 1, type_c), vector(pointer(known[3]), 1, type_d)
        tiles3(f, integer(first), n, known[4:], x, y, z, out)

    return (block1, block2, block3)[len(dtypes) - 2]


# --- a scalar function -> kernels -------------------------------------------------------
# What these close over is hashed for the disk cache: importable functions and dtypes only,
# since the hash of a closure, or of a dispatcher, differs in each process.


def bind(loop: Callable, f: Callable, arguments: int) -> Callable:
    """A loop over a function, as a kernel."""

    def run1(a):
        wide_vectors()
        return loop(f, a)

    def run2(a, b):
        wide_vectors()
        return loop(f, a, b)

    def run3(a, b, c):
        wide_vectors()
        return loop(f, a, b, c)

    def run4(a, b, c, d):
        wide_vectors()
        return loop(f, a, b, c, d)

    return (run1, run2, run3, run4)[arguments - 1]


def bind_guarded(loop: Callable, f: Callable, test: Callable, fast: Callable, arguments: int):
    def run1(a):
        wide_vectors()
        return loop(f, test, fast, a)

    def run2(a, b):
        wide_vectors()
        return loop(f, test, fast, a, b)

    return (run1, run2)[arguments - 1]


def bind_block(
    loop: Callable, f: Callable, dtypes: tuple[np.dtype, ...], scalars: tuple[int, ...]
) -> Callable:
    """The same as a function of addresses and a count, for the thread splitter."""
    missing = 4 - len(dtypes)
    type_a, type_b, type_c, type_d = (*dtypes, *(dtypes[:1] * missing))
    see_a, see_b, see_c, see_d = (scalar if k in scalars else vector for k in range(4))

    def block1(a, b, c, d, n):
        wide_vectors()
        loop(f, see_a(a, n, type_a))

    def block2(a, b, c, d, n):
        wide_vectors()
        loop(f, see_a(a, n, type_a), see_b(b, n, type_b))

    def block3(a, b, c, d, n):
        wide_vectors()
        loop(f, see_a(a, n, type_a), see_b(b, n, type_b), see_c(c, n, type_c))

    def block4(a, b, c, d, n):
        wide_vectors()
        x, y, z = see_a(a, n, type_a), see_b(b, n, type_b), see_c(c, n, type_c)
        loop(f, x, y, z, see_d(d, n, type_d))

    return (block1, block2, block3, block4)[len(dtypes) - 1]


def bind_guarded_block(
    loop: Callable, f: Callable, test: Callable, fast: Callable, dtypes: tuple[np.dtype, ...]
) -> Callable:
    type_a, type_b = dtypes[0], dtypes[-1]

    def block1(a, b, c, d, n):
        wide_vectors()
        loop(f, test, fast, vector(a, n, type_a))

    def block2(a, b, c, d, n):
        wide_vectors()
        loop(f, test, fast, vector(a, n, type_a), vector(b, n, type_b))

    return (block1, block2)[len(dtypes) - 1]
