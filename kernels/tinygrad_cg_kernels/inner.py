"""The loops of elementwise kernels, and how a scalar function is bound into one.

Each loop takes the scalar function as its first argument; a variant is a loop for one
arrangement of operands.
"""

from collections.abc import Callable

import numpy as np

from tinygrad_cg_kernels import threads
from tinygrad_cg_kernels.compile import (
    fits,
    jitable,
    scalar,
    span,
    vector,
    vectorised,
    wide_vectors,
)

SPLIT = threads.THRESHOLD
BUFFER = 512  # elements of a strided row that are packed at a time


# --- the loops ------------------------------------------------------------------------
# Bounds are unsigned, or Numba's wrap-around of negative indices stays in the loop and
# stops vectorisation. In-place loops have one variable for input and output: two that alias
# would fail LLVM's overlap check and run its scalar loop.


@jitable
def _flat1(f, x, out):
    vectorised()
    for i in range(np.uintp(out.size)):
        out[i] = f(x[i])


@jitable
def _flat2(f, x, y, out):
    vectorised()
    for i in range(np.uintp(out.size)):
        out[i] = f(x[i], y[i])


@jitable
def _flat3(f, x, y, z, out):
    vectorised()
    for i in range(np.uintp(out.size)):
        out[i] = f(x[i], y[i], z[i])


@jitable
def _scalar_x(f, x, y, out):
    vectorised()
    value = x[()]
    for i in range(np.uintp(out.size)):
        out[i] = f(value, y[i])


@jitable
def _scalar_y(f, x, y, out):
    vectorised()
    value = y[()]
    for i in range(np.uintp(out.size)):
        out[i] = f(x[i], value)


@jitable
def _scalar_yz(f, x, y, z, out):
    vectorised()
    value_y, value_z = y[()], z[()]
    for i in range(np.uintp(out.size)):
        out[i] = f(x[i], value_y, value_z)


@jitable
def _into1(f, x):
    vectorised()
    for i in range(np.uintp(x.size)):
        x[i] = f(x[i])


@jitable
def _into_x(f, x, y):
    vectorised()
    for i in range(np.uintp(x.size)):
        x[i] = f(x[i], y[i])


@jitable
def _into_y(f, x, y):
    vectorised()
    for i in range(np.uintp(y.size)):
        y[i] = f(x[i], y[i])


@jitable
def _into_x_scalar_y(f, x, y):
    vectorised()
    value = y[()]
    for i in range(np.uintp(x.size)):
        x[i] = f(x[i], value)


@jitable
def _all_pass(test, x):
    vectorised()
    failed = 0
    for i in range(np.uintp(x.size)):
        failed |= 0 if test(x[i]) else 1
    return failed == 0


@jitable
def _flat1_guarded(f, test, fast, x, out):
    wide_vectors()
    for start in range(0, out.size, BUFFER):
        count = min(BUFFER, out.size - start)
        part = span(x, start * x.itemsize, count)
        if _all_pass(test, part):
            _flat1(fast, part, span(out, start * out.itemsize, count))
        else:
            _flat1(f, part, span(out, start * out.itemsize, count))


@jitable
def _into1_guarded(f, test, fast, x):
    wide_vectors()
    for start in range(0, x.size, BUFFER):
        part = span(x, start * x.itemsize, min(BUFFER, x.size - start))
        if _all_pass(test, part):
            _into1(fast, part)
        else:
            _into1(f, part)


@jitable
def _step(x, axis):
    """The stride of a dimension; none where a size of 1 is to be repeated."""
    return x.strides[axis] if x.shape[axis] > 1 else 0


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
        "flat": _flat2,
        "scalar_x": _scalar_x,
        "scalar_y": _scalar_y,
        "into_x": _into_x,
        "into_y": _into_y,
        "into_x_scalar_y": _into_x_scalar_y,
    },
    3: {"flat": _flat3, "scalar_yz": _scalar_yz},
}
"""The loops by number of inputs: what threads run block by block, and what runs in place."""

GUARDED_LOOPS = {"flat": _flat1_guarded, "into_x": _into1_guarded}

SCALARS = {
    "scalar_x": (0,),
    "scalar_y": (1,),
    "line_scalar_x": (0,),
    "line_scalar_y": (1,),
    "into_x_scalar_y": (1,),
    "scalar_yz": (1, 2),
}
"""Which arguments of a variant are 0-d."""


# --- a scalar function -> kernels -------------------------------------------------------
# What these close over is hashed for the disk cache: importable functions and dtypes only,
# since the hash of a closure, or of a dispatcher, differs in each process.
#
# The "line" kernels take rows that the caller has not looked at, and answer whether they
# served: to look here takes a nanosecond, in Python half as long as all the rest. They hold
# their loops themselves, since each helper with a loop in it is optimised once more.


def unary_kernels(f: Callable) -> dict[str, Callable]:
    """The kernels of a function of one value, by variant."""

    def point(x, out):
        out[()] = f(x[()])

    def line(x, out):
        wide_vectors()
        if not fits(x, out) or out.size >= SPLIT:
            return False
        a = span(x, 0, out.size)
        for i in range(np.uintp(out.size)):
            out[i] = f(a[i])
        return True

    def general(x, out):
        wide_vectors()
        buffer_x = np.empty(BUFFER, x.dtype)
        n0, n1, n2 = out.shape
        for i in range(n0):
            for j in range(n1):
                row_x = i * _step(x, 0) + j * _step(x, 1)
                row_out = i * out.strides[0] + j * out.strides[1]
                for start in range(0, n2, BUFFER):
                    count = min(BUFFER, n2 - start)
                    a = packed(x, row_x + start * _step(x, 2), _step(x, 2), count, buffer_x)
                    target = span(out, row_out + start * out.itemsize, count)
                    for k in range(np.uintp(count)):
                        target[k] = f(a[k])

    return {"point": point, "line": line, "general": general}


def guarded_kernels(f: Callable, test: Callable, fast: Callable) -> dict[str, Callable]:
    """The same for a function with a fast version, where all of a block pass its test."""

    def point(x, out):
        out[()] = f(x[()])

    def line(x, out):
        wide_vectors()
        if not fits(x, out) or out.size >= SPLIT:
            return False
        _flat1_guarded(f, test, fast, span(x, 0, out.size), out)
        return True

    def general(x, out):
        wide_vectors()
        buffer_x = np.empty(BUFFER, x.dtype)
        n0, n1, n2 = out.shape
        for i in range(n0):
            for j in range(n1):
                row_x = i * _step(x, 0) + j * _step(x, 1)
                row_out = i * out.strides[0] + j * out.strides[1]
                for start in range(0, n2, BUFFER):
                    count = min(BUFFER, n2 - start)
                    a = packed(x, row_x + start * _step(x, 2), _step(x, 2), count, buffer_x)
                    target = span(out, row_out + start * out.itemsize, count)
                    _flat1_guarded(f, test, fast, a, target)

    return {"point": point, "line": line, "general": general}


def binary_kernels(f: Callable) -> dict[str, Callable]:
    """The kernels of a function of two values, by variant."""

    def point(x, y, out):
        out[()] = f(x[()], y[()])

    def line(x, y, out):
        wide_vectors()
        if not (fits(x, out) and fits(y, out)) or out.size >= SPLIT:
            return False
        a, b = span(x, 0, out.size), span(y, 0, out.size)
        for i in range(np.uintp(out.size)):
            out[i] = f(a[i], b[i])
        return True

    def line_scalar_x(x, y, out):
        wide_vectors()
        if not fits(y, out) or out.size >= SPLIT:
            return False
        a, b = x[()], span(y, 0, out.size)
        for i in range(np.uintp(out.size)):
            out[i] = f(a, b[i])
        return True

    def line_scalar_y(x, y, out):
        wide_vectors()
        if not fits(x, out) or out.size >= SPLIT:
            return False
        a, b = span(x, 0, out.size), y[()]
        for i in range(np.uintp(out.size)):
            out[i] = f(a[i], b)
        return True

    def general(x, y, out):
        wide_vectors()
        buffer_x, buffer_y = np.empty(BUFFER, x.dtype), np.empty(BUFFER, y.dtype)
        n0, n1, n2 = out.shape
        for i in range(n0):
            for j in range(n1):
                row_x = i * _step(x, 0) + j * _step(x, 1)
                row_y = i * _step(y, 0) + j * _step(y, 1)
                row_out = i * out.strides[0] + j * out.strides[1]
                for start in range(0, n2, BUFFER):
                    count = min(BUFFER, n2 - start)
                    a = packed(x, row_x + start * _step(x, 2), _step(x, 2), count, buffer_x)
                    b = packed(y, row_y + start * _step(y, 2), _step(y, 2), count, buffer_y)
                    target = span(out, row_out + start * out.itemsize, count)
                    for k in range(np.uintp(count)):
                        target[k] = f(a[k], b[k])

    lines = {"line": line, "line_scalar_x": line_scalar_x, "line_scalar_y": line_scalar_y}
    return {"point": point, **lines, "general": general}


def ternary_kernels(f: Callable) -> dict[str, Callable]:
    """The kernels of a function of three values, by variant."""

    def point(x, y, z, out):
        out[()] = f(x[()], y[()], z[()])

    def line(x, y, z, out):
        wide_vectors()
        if not (fits(x, out) and fits(y, out) and fits(z, out)) or out.size >= SPLIT:
            return False
        a, b, c = span(x, 0, out.size), span(y, 0, out.size), span(z, 0, out.size)
        for i in range(np.uintp(out.size)):
            out[i] = f(a[i], b[i], c[i])
        return True

    def general(x, y, z, out):
        wide_vectors()
        buffer_x, buffer_y = np.empty(BUFFER, x.dtype), np.empty(BUFFER, y.dtype)
        buffer_z = np.empty(BUFFER, z.dtype)
        n0, n1, n2 = out.shape
        for i in range(n0):
            for j in range(n1):
                row_x = i * _step(x, 0) + j * _step(x, 1)
                row_y = i * _step(y, 0) + j * _step(y, 1)
                row_z = i * _step(z, 0) + j * _step(z, 1)
                row_out = i * out.strides[0] + j * out.strides[1]
                for start in range(0, n2, BUFFER):
                    count = min(BUFFER, n2 - start)
                    a = packed(x, row_x + start * _step(x, 2), _step(x, 2), count, buffer_x)
                    b = packed(y, row_y + start * _step(y, 2), _step(y, 2), count, buffer_y)
                    c = packed(z, row_z + start * _step(z, 2), _step(z, 2), count, buffer_z)
                    target = span(out, row_out + start * out.itemsize, count)
                    for k in range(np.uintp(count)):
                        target[k] = f(a[k], b[k], c[k])

    return {"point": point, "line": line, "general": general}


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
