"""Products of two matrices by BLAS, in blocks that threads share.

OpenBLAS computes each block on one thread. Its own threads wait for each other busily: beside
another process for up to 30 ms, and between kernels they keep a core from the kernels' threads.
"""

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tinygrad_cg_frontend import address_call, intrinsic
from tinygrad_cg_kernels.linear import blas
from tinygrad_cg_kernels.loops.ranges import Ranged
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.errstate import quiet
from tinygrad_cg_kernels.runtime.objects import ALIGNED, data_address
from tinygrad_cg_kernels.runtime.promotion import INT64
from tinygrad_cg_kernels.runtime.tile_intrinsics import stack_array
from tinygrad_cg_kernels.runtime.views import address_of

SHARED = 2**18
"""From so many multiplications on OpenBLAS shares a product between its threads."""
LARGE = 2**25
"""Products of more multiplications, times the bytes of a number, are left to OpenBLAS's threads."""
BLOCK = 2**19
"""Multiplications in a block, about. 256 x 256 times 256 x 64, in float32 on two cores, took 66 us;
57 to 66 with half or twice as many, 99 on one thread, 57 on OpenBLAS's own."""
NARROWEST = 32
"""The least number of rows or columns of a block: BLAS copies the other matrix for each block."""
_ROW_MAJOR, _CONTIGUOUS = 1, 3  # of NumPy's flags: in row-major order, or in either


@intrinsic(", ".join(["word"] * 14) + " ->", address_call)
def call_gemm(gemm, turn_x, turn_y, m, n, k, alpha, x, pitch_x, y, pitch_y, beta, out, pitch):
    """Call Fortran's product of matrices in column-major order; the arguments are addresses."""
    arguments = turn_x, turn_y, m, n, k, alpha, x, pitch_x, y, pitch_y, beta, out, pitch
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 13)(gemm)(*arguments)


@jitable
def _blocks(unused, none, first, count, sizes, x, y, out):
    """Compute blocks of ``x @ y``: of its columns (0) or rows (1), the axis that is cut.

    In column-major order, this is the product of the transposes: ``y.T @ x.T``. Sizes: columns,
    rows, the axis, its step, bytes from one to the next in `y`, `x` and `out`, the address of gemm;
    and what gemm reads: whether `y` and `x` are transposed, the inner size, the pitches of `y`, `x`
    and `out`, 1 and 0.
    """
    own, table = stack_array(2, INT64), address_of(sizes)
    axis, step = sizes[2], sizes[3]
    for unit in range(first, first + count):
        begin = unit * step
        own[0], own[1] = sizes[0], sizes[1]
        own[axis] = min(step, sizes[axis] - begin)
        call_gemm(
            sizes[7],
            table + 64,
            table + 72,
            address_of(own),
            address_of(own) + 8,
            table + 80,
            table + 112,
            address_of(y) + begin * sizes[4],
            table + 88,
            address_of(x) + begin * sizes[5],
            table + 96,
            table + 120,
            address_of(out) + begin * sizes[6],
            table + 104,
        )


_kernel = Ranged("matmul_blocks", _blocks, 16, (), BLOCK)


@lru_cache(maxsize=4096)
def _bound(
    m: int, k: int, n: int, dtype: np.dtype, turns: tuple[bool, bool], is_alone: bool
) -> Callable[..., object] | None:
    """Return a function of `x` (m, k), `y` (k, n) and the product; None without OpenBLAS.

    `turns` says which of `y` and `x` are in column-major order.
    """
    gemm = blas.product(dtype.char)
    if not gemm:
        return None
    size = dtype.itemsize
    pitches = k if turns[0] else n, m if turns[1] else k
    if m < n:
        axis, work, steps = 0, m * k, (pitches[0] * size if turns[0] else size, 0, size)
    else:
        axis, work, steps = 1, n * k, (0, size if turns[1] else pitches[1] * size, n * size)
    step = max(BLOCK // (work * NARROWEST), 1) * NARROWEST
    orders = [ord("NT"[turned]) for turned in turns]
    one = int.from_bytes(np.ones(1, dtype).tobytes(), "little")
    sizes = (n, m, axis, step, *steps, gemm, *orders, k, *pitches, n, one, 0)
    units = -(-max(m, n) // step)
    return _kernel.bound((dtype,) * 3, sizes, units, m * k * n, is_alone=is_alone)


def is_shared(m: int, k: int, n: int, dtype: np.dtype) -> bool:
    """Return whether the kernels' threads share a product of these sizes."""
    return SHARED < m * k * n <= LARGE // dtype.itemsize


def product(x: Any, y: Any, out: Any = None, is_alone: bool = False) -> np.ndarray:
    """Return ``x @ y`` for matrices of one dtype, float32 or float64; floating point never warns.

    If there is an `out`, `y` may be a vector. `is_alone` says that no threads of BLAS work in the
    program. A matrix times its own transpose is left to NumPy, which computes half of it.
    """
    (m, k), n = x.shape, y.shape[1] if y.ndim > 1 else 1
    if not is_shared(m, k, n, x.dtype):
        return quiet.run(x.dot, y, out)
    with blas.single_thread:
        x_flags, y_flags = x.flags.num, y.flags.num
        is_plain = x_flags & _CONTIGUOUS and y_flags & _CONTIGUOUS and x_flags & y_flags & ALIGNED
        if is_plain and data_address(x) != data_address(y):
            turns = not y_flags & _ROW_MAJOR, not x_flags & _ROW_MAJOR
            run = _bound(m, k, n, x.dtype, turns, is_alone)
            if run is not None:
                out = np.empty((m, n), x.dtype) if out is None else out
                run(x, y, out)
                return out
        return quiet.run(x.dot, y, out)
