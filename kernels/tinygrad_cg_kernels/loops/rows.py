"""Elementwise loops: a scalar function applied to a row of each operand.

Every loop here is ``loop(f, test, fast, ins, outs, count)``. `ins` is a tuple of rows, and of
numbers for operands with one value per row. `outs` is a tuple of rows, or `Into` (see `views`).
`fast` replaces `f` where `test` holds; loops that are not guarded ignore both.

Bounds are unsigned. Otherwise the test for negative indices would stay in the loop, and prevent
vectorisation.
"""

import numpy as np

from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.intrinsics import (
    inlined,
    noalias,
    outlined,
    vectorised,
    wide_vectors,
)
from tinygrad_cg_kernels.runtime.views import interleave, parts, put, take

GUARDED_CHUNK = 1024
"""Elements for which one test decides whether a guarded function's quick formula holds."""


@jitable
def run(f, test, fast, ins, outs, count):
    """Apply a function, several vectors at a time."""
    vectorised()
    for i in range(np.uintp(count)):
        put(ins, outs, i, f(*take(ins, i)))
    interleave(ins, outs)


@jitable
def run_brief(f, test, fast, ins, outs, count):
    """Apply a function to short rows, one vector at a time, so that fewer elements remain."""
    inlined()
    for i in range(np.uintp(count)):
        put(ins, outs, i, f(*take(ins, i)))


@jitable
def run_noalias(f, test, fast, ins, outs, count):
    """Apply a function to rows of arrays that do not overlap."""
    outlined()
    noalias()
    for i in range(np.uintp(count)):
        put(ins, outs, i, f(*take(ins, i)))


@jitable
def _all_pass(test, ins, count):
    vectorised()
    failed = False
    for i in range(np.uintp(count)):
        failed = failed | (not test(*take(ins, i)))
    return not failed


@jitable
def run_guarded(f, test, fast, ins, outs, count):
    """Apply the fast version to each chunk whose elements all pass the test, `f` to the others."""
    wide_vectors()
    for start in range(0, count, GUARDED_CHUNK):
        size = min(GUARDED_CHUNK, count - start)
        some, target = parts(ins, start, size), parts(outs, start, size)
        if _all_pass(test, some, size):
            run(fast, test, fast, some, target, size)
        else:
            run(f, test, fast, some, target, size)


@jitable
def _try(test, fast, ins, outs, count):
    vectorised()
    failed = False
    for i in range(np.uintp(count)):
        values = take(ins, i)
        failed = failed | (not test(*values))
        put(ins, outs, i, fast(*values))
    interleave(ins, outs)
    return failed


@jitable
def run_tried(f, test, fast, ins, outs, count):
    """Apply the fast version and the test together; apply `f` to chunks where the test failed.

    This is for tests that share most of their work with the fast version. Outputs must not be
    operands.
    """
    wide_vectors()
    for start in range(0, count, GUARDED_CHUNK):
        size = min(GUARDED_CHUNK, count - start)
        some, target = parts(ins, start, size), parts(outs, start, size)
        if _try(test, fast, some, target, size):
            run(f, test, fast, some, target, size)
