"""Operations on matrices and images for programs that Numba code calls, in one thread.

Functions of matrices call the LAPACK loops inside NumPy's functions, by their addresses. `words`
has the arguments of a loop. They compute in float64, as NumPy does.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from tinygrad_cg_kernels.linear.triangular import substitute
from tinygrad_cg_kernels.move.array_code import write
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.objects.ufuncs import call_loop
from tinygrad_cg_kernels.runtime.views import address_of


def words(sizes: tuple[int, ...], *shapes: tuple[int, ...]) -> np.ndarray:
    """Return the arguments of a loop for one matrix: the number, the sizes, steps; where these are.

    `shapes` are those of operands and results, which are contiguous.
    """
    steps = [8 * np.prod(shape[k + 1 :], dtype=int) for shape in shapes for k in range(len(shape))]
    table = [1, *sizes, *[0] * len(shapes), *steps]
    return np.array([*table, 8 * (1 + len(sizes))], np.int64)


@jitable
def lapack(loop, words, a, b, c, d):
    """Call a loop with up to four arrays."""
    addresses = np.array([address_of(a), address_of(b), address_of(c), address_of(d)])
    sizes = address_of(words)
    call_loop(loop, address_of(addresses), sizes, sizes + words[words.size - 1], 0)
    addresses[0] = 0  # it is in use until here


@cache
def on_matrices(function: Callable) -> Callable:
    """Return code that calls a function with each matrix of `out` and of one or two operands.

    `first` and `second` are the positions of these in their stacks. One operand is passed twice.
    """

    def run(out, *rest):
        first, second, loop, words, other, more = rest[-6:]
        x, y = rest[0], rest[-7]
        for b in range(first.size):
            function(out[b], x[first[b]], y[second[b]], loop, words, other, more)

    return run


@cache
def checked(function: Callable, message: str) -> Callable:
    """Return the function. It raises LinAlgError if only the result is NaN."""

    def run(out, x, y, loop, words, other, more):
        function(out, x, y, loop, words, other, more)
        if np.isnan(out[0, 0]) and not np.isnan(np.sum(x) + np.sum(y)):
            raise np.linalg.LinAlgError(message)

    return jitable(run)


@jitable
def of_one(out, x, y, loop, words, other, more):
    lapack(loop, words, x, out, x, x)


@jitable
def of_mean(out, x, y, loop, words, other, more):
    """Compute a function of the mean of a matrix and its transpose."""
    lapack(loop, words, 0.5 * (x + x.T), out, x, x)


@jitable
def solve(out, x, y, loop, words, other, more):
    lapack(loop, words, x, y, out, x)


@jitable
def log_abs_determinant(out, x, y, loop, words, other, more):
    lapack(loop, words, x, np.empty(1), out, x)


@jitable
def determinant_sign(out, x, y, loop, words, other, more):
    lapack(loop, words, x, out, np.empty(1), x)


@jitable
def eigh(out, x, y, loop, words, other, more):
    values, vectors = np.empty(x.shape[0]), np.empty(x.shape)
    lapack(loop, words, 0.5 * (x + x.T), values, vectors, x)
    write(out[0], values)
    write(out[1:], vectors)


@jitable
def svd(out, x, y, loop, words, other, more):
    height, size = x.shape[0], out.shape[1]
    left, values, right = np.empty((height, size)), np.empty(size), np.empty((size, x.shape[1]))
    lapack(loop, words, x.copy(), left, values, right)
    write(out[0], values)
    write(out[1 : 1 + height], left)
    write(out[1 + height :], right.T)


@jitable
def svdvals(out, x, y, loop, words, other, more):
    lapack(loop, words, x.copy(), out, x, x)


@jitable
def qr(out, x, y, loop, words, other, more):
    height, width = x.shape
    matrix, turns, basis = x.copy(), np.empty(width), np.empty(x.shape)
    lapack(loop, words, matrix, turns, x, x)
    for i, j in np.ndindex((width, width)):
        out[height + i, j] = matrix[i, j] if i <= j else 0.0
    lapack(other, more, matrix, turns, basis, x)
    write(out[:height], basis)


@jitable
def product(out, x, y, loop, words, other, more):
    out[:] = 0
    for i, k, j in np.ndindex((x.shape[0], x.shape[1], y.shape[1])):
        out[i, j] += x[i, k] * y[k, j]


@jitable
def cofactors(out, x, y, loop, words, other, more):
    inverse, value = np.empty(x.shape), np.empty(1)
    lapack(loop, words, x, inverse, x, x)
    lapack(other, more, x, value, x, x)
    write(out, value[0] * inverse.T)


@jitable
def cofactor_change(out, x, y, loop, words, other, more):
    inverse, value = np.empty(x.shape), np.empty(1)
    lapack(loop, words, x, inverse, x, x)
    lapack(other, more, x, value, x, x)
    inner, change = np.empty(x.shape), np.empty(x.shape)
    product(inner, inverse, y, loop, words, other, more)
    product(change, inner, inverse, loop, words, other, more)
    write(out, value[0] * (np.trace(inner) * inverse - change).T)


@cache
def triangular_solve(lower: bool) -> Callable:
    def run(out, x, y, loop, words, other, more):
        size, columns = y.shape
        write(out, y)
        sizes = size, columns, lower, size, 1
        substitute(x.reshape(-1), out.reshape(-1), sizes, 0, columns)
        for k in range(size):
            if x[k, k] == 0:
                out[:] = np.nan

    return jitable(run)


@cache
def vanish(limit: float) -> Callable:
    def run(out, x, values, loop, words, other, more):
        lengths = np.sqrt(np.sum(x * x, 0))
        for j in range(out.shape[1]):
            small = values[0, j] <= limit * max(np.max(values), 0.0)
            out[0, j] = small and lengths[j] <= 100 * limit * np.max(lengths)

    return jitable(run)


@cache
def convolution(name: str) -> Callable:
    """Return code of `conv.conv`, `conv_input` or `conv_filter`.

    Images are (n, height, width, groups, channels), filters (height, width, channels, groups, out).
    """
    forward, by_images = name == "conv", name == "conv_input"

    def run(out, first, second, strides, dilations, before):
        images, filters, windows = first, second, out
        if by_images:
            images, windows = out, first
        elif not forward:
            filters, windows = out, second
        out[:] = 0
        rows, columns = filters.shape[0], filters.shape[1]
        for n, r, c, i, j in np.ndindex((*windows.shape[:3], rows, columns)):
            y = r * strides[0] + i * dilations[0] - before[0]
            x = c * strides[1] + j * dilations[1] - before[1]
            if y < 0 or y >= images.shape[1] or x < 0 or x >= images.shape[2]:
                continue
            for p, g, o in np.ndindex(filters.shape[2:]):
                if forward:
                    out[n, r, c, g, o] += images[n, y, x, g, p] * filters[i, j, p, g, o]
                elif by_images:
                    out[n, y, x, g, p] += windows[n, r, c, g, o] * filters[i, j, p, g, o]
                else:
                    out[i, j, p, g, o] += images[n, y, x, g, p] * windows[n, r, c, g, o]

    return run


@cache
def pooling(kernel: Callable, by_images: bool) -> Callable:
    """Return code of a kernel of `pool`, over lines of windows or over images."""

    def run(out, x, plan):
        kernel(None, None, 0, plan[0] if by_images else plan[0] * plan[4], plan, x, out)

    return run
