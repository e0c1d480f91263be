"""The values of a group of threads as one: by shuffles in a warp, then in shared memory.

A group has a power of two of the threads of a block, one after another. In a warp each step
combines half as many values, which threads read from each other's registers; the results of a
group's warps are combined one after another, by every thread. The order depends on the group's size
alone: the same bits at each run.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tinygrad_cg_kernels.cuda import adapter
from tinygrad_cg_kernels.cuda.adapter import cuda
from tinygrad_cg_kernels.runtime.texts import compiled, title_of

WARP = 2 if adapter.simulated() else 32  # threads that read each other's registers
WARPS = adapter.threads() // WARP
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
"""A function of device code. `lane` is a thread's number in its group, and all threads of the block
call it, with the same `group`. `combined` is an expression of `value` and `other`; `later` and
`first` are what `shuffles` returns."""


def tree(combine: Callable, dtype: np.dtype) -> Callable:
    """Return a function of device code that combines values of a dtype, see `TREE`."""
    later, first = shuffles(dtype)
    text = TREE.format(
        name="tree", later="later", first="first", kind="kind", combined="combine(value, other)"
    )
    names = {"later": later, "first": first, "combine": adapter.scalar_function(combine)}
    return adapter.device_function(_defined(text, "tree", dtype, names)["tree"])


def _defined(text: str, name: str, dtype: np.dtype, names: dict[str, Any]) -> dict[str, Any]:
    """Return what a text of device code for a dtype defines, and the names that it knows.

    The simulator tells shared arrays apart by file and line, so each dtype has a file.
    """
    scope = {
        "cuda": adapter.in_kernels(),
        "THREADS": adapter.threads(),
        "WARP": WARP,
        "WARPS": WARPS,
        "kind": adapter.scalar_type(dtype),
        **names,
    }
    exec(compiled(text, title_of(f"device function {name}")), scope)
    return scope


@cache
def shuffles(dtype: Any) -> tuple[Callable, Callable]:
    """Return two functions of device code that give a thread the value that another one has.

    The first takes the value and how many threads later in the warp, the second the value and which
    thread of the block, in the same warp.
    """
    dtype = np.dtype(dtype)
    if adapter.simulated():
        functions = _simulated(dtype)
    elif dtype.kind == "c":
        functions = _of_complex(dtype.type)
    elif dtype.kind == "f":
        functions = _of_real(np.float64 if dtype.itemsize > 4 else np.float32, dtype.type)
    else:
        functions = _of_real(np.int64 if dtype.itemsize > 2 else np.int32, dtype.type)
    return adapter.device_function(functions[0]), adapter.device_function(functions[1])


def _of_real(carried: Any, result: Any) -> tuple[Callable, Callable]:
    """Return functions that carry a value as a number of 32 or 64 bits."""

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


_SIMULATED = """
def exchange(value, k):
    shared = cuda.shared.array(THREADS, kind)
    shared[cuda.threadIdx.x] = value
    cuda.syncthreads()
    found = shared[k]
    cuda.syncthreads()
    return found

def later(value, step):
    k = cuda.threadIdx.x
    return exchange(value, k + step if k % WARP + step < WARP else k)

def first(value, thread):
    return exchange(value, thread)
"""


def _simulated(dtype: np.dtype) -> tuple[Callable, Callable]:
    """Return what stands for shuffles, which the simulator does not have."""
    scope = _defined(_SIMULATED, "shuffles", dtype, {})
    return scope["later"], scope["first"]
