"""Combining the values of a group of threads, by shuffles in a warp and then in shared memory.

The size of a group is a power of two, and its threads are neighbours in a block. In a warp, threads
read values from each other's registers, and each step halves the number of values. Then each thread
combines the results of the group's warps in order. The order depends on the group's size only, so
each run gives the same bits.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tinygrad_cg_kernels.cuda import adapter
from tinygrad_cg_kernels.cuda.adapter import cuda
from tinygrad_cg_kernels.cuda.elementwise import defined

WARP = adapter.THREADS // 2 if adapter.simulated() else 32
"""Threads that read each other's registers."""

WARPS = adapter.THREADS // WARP
ALL = 0xFFFFFFFF  # threads of a warp take part

TREE = """
def {name}(value, lane, group):
    step = min(group, WARP) // 2
    while step > 0:
        other = {later}(value, step)
        value = {combined}
        step = step // 2
    if group <= WARP:
        return {first}(value, cuda.threadIdx.x - lane)
    shared = cuda.shared.array(WARPS, {kind})
    k = cuda.threadIdx.x
    if k % WARP == 0:
        shared[k // WARP] = value
    cuda.syncthreads()
    start = (k - lane) // WARP
    value = shared[start]
    for j in range(start + 1, start + group // WARP):
        other = shared[j]
        value = {combined}
    cuda.syncthreads()
    return value
"""
"""A device function. All threads of the block call it with the same `group`. `lane` is a thread's
number in its group. `combined` is an expression of `value` and `other`; `later` and `first` are the
functions that `shuffles` returns."""


@cache
def tree(combine: Callable, dtype: np.dtype) -> Callable:
    """Return a device function that combines the values of a group (see `TREE`)."""
    later, first = shuffles(dtype)
    text = TREE.format(
        name="tree", later="later", first="first", kind="kind", combined="combine(value, other)"
    )
    names = {"later": later, "first": first, "combine": adapter.scalar_function(combine)}
    return _device_function(text, "tree", kind=dtype.type, WARP=WARP, WARPS=WARPS, **names)


_EXCHANGE = """
def exchange(value, k):
    shared = cuda.shared.array(THREADS, kind)
    shared[cuda.threadIdx.x] = value
    cuda.syncthreads()
    found = shared[k]
    cuda.syncthreads()
    return found
"""


@cache
def exchange(dtype: np.dtype) -> Callable:
    """Return a device function by which each thread of a block reads the value of thread `k`."""
    return _device_function(_EXCHANGE, "exchange", kind=dtype.type)


def _device_function(text: str, name: str, **names: Any) -> Callable:
    if adapter.simulated():
        names["cuda"] = adapter.in_kernels()
    return adapter.device_function(defined(text, name, names))


@cache
def shuffles(dtype: Any) -> tuple[Callable, Callable]:
    """Return two device functions by which a thread reads the value of another one.

    The first takes the value and a distance to a later thread of the warp. The second takes the
    value and the number, in the block, of a thread of the same warp.
    """
    dtype = np.dtype(dtype)
    if adapter.simulated():
        functions = _of_simulator(exchange(dtype))
    elif dtype.kind == "c":
        functions = _of_complex(dtype.type)
    elif dtype.kind == "f":
        functions = _of_real(np.float64 if dtype.itemsize > 4 else np.float32, dtype.type)
    else:
        functions = _of_real(np.int64 if dtype.itemsize > 2 else np.int32, dtype.type)
    return adapter.device_function(functions[0]), adapter.device_function(functions[1])


def _of_simulator(exchange: Callable) -> tuple[Callable, Callable]:
    """Return functions that use shared memory, as the simulator has no shuffles."""
    cuda = adapter.in_kernels()

    def later(value, step):
        k = cuda.threadIdx.x
        return exchange(value, k + step if k % WARP + step < WARP else k)

    return later, exchange


def _of_real(carried: Any, result: Any) -> tuple[Callable, Callable]:
    """Return functions that pass the value as a number of 32 or 64 bits."""

    def later(value, step):
        return result(cuda.shfl_down_sync(ALL, carried(value), step))

    def first(value, thread):
        return result(cuda.shfl_sync(ALL, carried(value), thread % WARP))

    return later, first


def _of_complex(result: Any) -> tuple[Callable, Callable]:
    def later(value, step):
        real = cuda.shfl_down_sync(ALL, value.real, step)
        return result(complex(real, cuda.shfl_down_sync(ALL, value.imag, step)))

    def first(value, thread):
        real = cuda.shfl_sync(ALL, value.real, thread % WARP)
        return result(complex(real, cuda.shfl_sync(ALL, value.imag, thread % WARP)))

    return later, first
