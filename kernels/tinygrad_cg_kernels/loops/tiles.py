"""Tiles: strided and broadcast operands, brought into rows for elementwise loops.

An output of three dimensions is divided into tiles of some rows and columns, which threads share.
If an operand's columns are contiguous, its elements are used directly. Otherwise they are copied to
a buffer. One compiled function finds the rows of a tile for all kernels, which call it by its
symbol. Inlined, it would multiply the time to compile a kernel, for each dtype again.
"""

from collections.abc import Callable
from typing import Any

import llvmlite.binding
import numpy as np

from tinygrad_cg_frontend import intrinsic, symbol_call
from tinygrad_cg_kernels.runtime import service, signatures, tiers
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.intrinsics import vectorised, wide_vectors
from tinygrad_cg_kernels.runtime.promotion import INT64
from tinygrad_cg_kernels.runtime.views import vector

BUFFER = 1024  # elements of an operand that are copied at a time
WIDEST = 16  # bytes of an element
HEAD = 7  # numbers before the steps (see `find_rows`)
U1, U2, U4, U8, C16 = map(np.dtype, ("u1", "u2", "u4", "u8", "c16"))
SYMBOL = "tinygrad_cg_find_rows"


@jitable
def _copy(target, source, step, gap, rows, columns, size, dtype):
    """Copy strided elements, or a repeated one, to contiguous memory."""
    vectorised()
    for r in range(rows):
        out = vector(target + r * columns * size, columns, dtype)
        if gap == 0:
            value = vector(source + r * step, 1, dtype)[0]
            for k in range(np.uintp(columns)):
                out[k] = value
        else:
            for k in range(np.uintp(columns)):
                out[k] = vector(source + r * step + np.intp(k) * gap, 1, dtype)[0]


@jitable
def _copy_any(target, source, step, gap, rows, columns, itemsize):
    if itemsize == 8:
        _copy(target, source, step, gap, rows, columns, 8, U8)
    elif itemsize == 4:
        _copy(target, source, step, gap, rows, columns, 4, U4)
    elif itemsize == 1:
        _copy(target, source, step, gap, rows, columns, 1, U1)
    elif itemsize == 2:
        _copy(target, source, step, gap, rows, columns, 2, U2)
    else:
        _copy(target, source, step, gap, rows, columns, 16, C16)


def find_rows(table, inputs, outputs, unit, first, buffers, rows_table):
    """Find the rows of a tile, and return how many there are.

    The table has: the addresses of operands and outputs; the rows and columns of the whole, the
    rows and columns of a tile, the number of tiles down and across, and whether tiles are stacked
    (then each operand becomes one long row); for each operand three steps in bytes and the size of
    an element; and the size of an element of each output. The addresses of rows, their steps and
    the number of columns are written to `rows_table`. `first` is the first unit of a call: after
    it, a buffer of repeated rows is still right.
    """
    wide_vectors()
    arrays = inputs + outputs
    layout = vector(table, arrays + 7 + 4 * inputs + outputs, INT64)
    n1, n2 = layout[arrays], layout[arrays + 1]
    tall, wide = layout[arrays + 2], layout[arrays + 3]
    down, right = layout[arrays + 4], layout[arrays + 5]
    stacked = layout[arrays + 6] != 0
    left, above = unit % right * wide, unit // right
    top, matrix = above % down * tall, above // down
    rows, columns = min(tall, n1 - top), min(wide, n2 - left)
    places = vector(rows_table, 2 * arrays + 1, INT64)
    contiguous = rows == 1 or columns == n2  # whether rows are one, of outputs and of all so far
    for k in range(inputs):
        at = arrays + 7 + 4 * k
        step, gap, size = layout[at + 1], layout[at + 2], layout[at + 3]
        start = layout[k] + matrix * layout[at] + top * step + left * gap
        pitch = columns * size
        if gap == size and (rows == 1 or step == pitch or not stacked):
            pitch = pitch if rows == 1 else step
        elif gap == 0 and not stacked:  # one value in each row
            pitch = step
        else:
            buffer = buffers + k * BUFFER * WIDEST
            if not (stacked and unit > first and top > 0 and step == 0):
                _copy_any(buffer, start, step, gap, rows, columns, size)
            start = buffer
        places[k], places[arrays + k] = start, pitch
        contiguous = contiguous and (
            rows == 1 or pitch == (0 if gap == 0 and not stacked else columns * size)
        )
    for k in range(outputs):
        size = layout[arrays + 7 + 4 * inputs + k]
        places[inputs + k] = layout[inputs + k] + ((matrix * n1 + top) * n2 + left) * size
        places[arrays + inputs + k] = n2 * size
    places[2 * arrays] = rows * columns if contiguous else columns
    return 1 if contiguous else rows


rows_of = intrinsic(", ".join(["word"] * 7) + " -> word", symbol_call(SYMBOL))(find_rows)

_owner: Any = None


def prepare() -> None:
    """Compile what kernels of tiles call, once in a process, before they are loaded."""
    global _owner
    if _owner is None:
        source = service.KernelSource(find_rows, "find_rows")
        address, _owner = service.compile(source, signatures.words(7))
        llvmlite.binding.add_symbol(SYMBOL, address)


def counted(run: Callable[..., object], work: int) -> Callable[..., object]:
    """Return `run`, a kernel of tiles on `work` elements, with its work counted."""
    return tiers.counted(run, _owner, work)
