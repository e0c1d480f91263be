"""Small kernels: they take Python objects, and run one loop over few elements.

Operands are arrays, boxes of arrays (`objects`) and, beside these, Python numbers. The result is a
new array, in a box if an operand is in one. It is None if the kernel does not take the operands:
they must be small and C-contiguous, and have one shape, or one element and no axes.

The closures of the functions here are hashed for the disk cache. They contain importable functions
and dtypes only, since the hash of a closure, or of a dispatcher, differs between processes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime import objects, service, signatures, threads, tiers
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.entries import Entries
from tinygrad_cg_kernels.runtime.intrinsics import wide_vectors
from tinygrad_cg_kernels.runtime.objects import CONTIGUOUS
from tinygrad_cg_kernels.runtime.objects.calls import call_prepare
from tinygrad_cg_kernels.runtime.objects.fields import (
    address_of,
    as_object,
    dtype_address,
    nothing,
)
from tinygrad_cg_kernels.runtime.objects.prepare import begin, ready
from tinygrad_cg_kernels.runtime.views import put, take, vector

MAX_SIZE = threads.MIN_BLOCKED - 1
"""Most elements that a small kernel takes. It holds the interpreter's lock for at most 100 us."""


def refuse(*operands: Any) -> None:
    """Return None, like a small kernel that does not take its operands."""


@jitable
def unserved(status):
    """Return None, or a null pointer if there was no memory."""
    return nothing() if status == 0 else as_object(0)


@jitable
def _one(f, ins, outs):
    put(ins, outs, 0, f(*take(ins, 0)))


def elementwise(
    loop: Callable, f: Callable, test: Callable, fast: Callable, dtypes: tuple[np.dtype, ...]
) -> Callable:
    """Return the small kernel of a function, with a loop of `rows`. The last dtype is the result's.

    One of two operands may be a number, or an array with one element and no axes. A single element
    is computed without the test.
    """
    first, second, third, result = (*dtypes[:-1], *dtypes[:1] * 2)[:3] + dtypes[-1:]
    width = first.itemsize if first.kind == "f" else 0

    tested = test is not f

    def direct1(x):
        wide_vectors()
        kinds = dtype_address(first), 0, 0, dtype_address(result)
        prepared = call_prepare(address_of(x), 0, 0, *kinds, 0, 0)
        if prepared.status <= 0:
            return unserved(prepared.status)
        size = prepared.size
        ins, outs = (vector(prepared.x, size, first),), (vector(prepared.line, size, result),)
        if tested and size == 1:
            _one(f, ins, outs)
        else:
            loop(f, test, fast, ins, outs, size)
        return as_object(prepared.result)

    def direct2(x, y):
        wide_vectors()
        kinds = dtype_address(first), dtype_address(second), 0, dtype_address(result)
        prepared = call_prepare(address_of(x), address_of(y), 0, *kinds, width, 0)
        if prepared.status <= 0:
            return unserved(prepared.status)
        size = prepared.size
        u, v = vector(prepared.x, size, first), vector(prepared.y, size, second)
        outs = (vector(prepared.line, size, result),)
        if size == 1:
            _one(f, (u, v), outs)
        elif prepared.single == 1:
            loop(f, test, fast, (u[0], v), outs, size)
        elif prepared.single == 2:
            loop(f, test, fast, (u, v[0]), outs, size)
        else:
            loop(f, test, fast, (u, v), outs, size)
        return as_object(prepared.result)

    def direct3(x, y, z):
        wide_vectors()
        kinds = dtype_address(first), dtype_address(second), dtype_address(third)
        operands = address_of(x), address_of(y), address_of(z)
        prepared = call_prepare(*operands, *kinds, dtype_address(result), 0, 0)
        if prepared.status <= 0:
            return unserved(prepared.status)
        size = prepared.size
        u, v = vector(prepared.x, size, first), vector(prepared.y, size, second)
        ins, outs = (u, v, vector(prepared.z, size, third)), (vector(prepared.line, size, result),)
        loop(f, test, fast, ins, outs, size)
        return as_object(prepared.result)

    return (direct1, direct2, direct3)[len(dtypes) - 2]


def total(row: Callable, dtypes: tuple[np.dtype, ...]) -> Callable:
    """Return the small kernel of a reduction of all elements, given its total of a row."""
    (dtype,) = dtypes

    def kernel(x):
        wide_vectors()
        index = dtype_address(dtype)
        prepared = call_prepare(address_of(x), 0, 0, index, 0, 0, index, 0, 1)
        if prepared.status <= 0:
            return unserved(prepared.status)
        vector(prepared.line, 1, dtype)[0] = row(vector(prepared.x, prepared.size, dtype))
        return as_object(prepared.result)

    return kernel


def expect_calls() -> None:
    """Have another core compile what all small kernels call, before the first one is needed."""
    if objects.supported:
        begin(MAX_SIZE)


class SmallKernels:
    """The small kernels of one operation, by dtypes. Each is compiled on first use.

    The only element of `latest` is the kernel that served last. Callers may pass it any operands,
    and have to expect None.
    """

    def __init__(self, name: str, make: Callable, inputs: int, cached: bool = True) -> None:
        def compiled(*dtypes: np.dtype) -> service.Entry:
            begin(MAX_SIZE)
            source = service.KernelSource(make(dtypes), f"{name}_small", cached)
            signature = signatures.objects_signature(inputs)
            return service.compile(source, signature, partial(ready, MAX_SIZE))

        self.latest: list[Callable] = [refuse]
        self.entries = Entries(name, compiled)

    def __call__(
        self, arrays: tuple[np.ndarray, ...], dtypes: tuple[np.dtype, ...]
    ) -> np.ndarray | None:
        """Return the result, of the last dtype; None if no small kernel takes the arrays."""
        for array in arrays:
            if array.size > MAX_SIZE or array.flags.num & CONTIGUOUS != CONTIGUOUS:
                return None
        if not objects.supported:
            return None
        enter = self.entries[dtypes]
        owner = self.entries.owners[dtypes]
        tiers.improve(owner)
        got = enter(*arrays)
        while got is None and tiers.improve(owner):
            got = enter(*arrays)
        if got is not None:
            self.latest[0] = enter
        return got
