"""NumPy's functions that are short: written down as programs read any function."""

import math

import numpy as np

from ..errors import MatrixError

OF_NUMBERS = {
    "degrees": lambda x: x * (180.0 / math.pi),
    "radians": lambda x: x * (math.pi / 180.0),
    "square": lambda x: x * x,
    "isnan": lambda x: x != x,
    "isinf": lambda x: abs(x) == math.inf,
    "isfinite": lambda x: abs(x) < math.inf,
    "trunc": lambda x: np.where(x < 0.0, np.ceil(x), np.floor(x)),
    "fmod": lambda x, y: x - y * np.trunc(x / y),
    "copysign": lambda x, y: np.where((x < 0.0) == (y < 0.0), x, -x),
    "ldexp": lambda x, y: x * 2.0**y,
    "reciprocal": lambda x: 1.0 / x,
    "heaviside": lambda x, y: np.where(x == 0.0, y, np.where(x < 0.0, 0.0, x / x)),
    "fmax": lambda x, y: np.where((x >= y) | (y != y), x, y),
    "fmin": lambda x, y: np.where((x <= y) | (y != y), x, y),
}
"""Functions that go over arrays element by element, by their names in NumPy and `math`."""
OF_ARRAYS = {
    "argmin": lambda a: np.argmax(-a),
    "cumprod": lambda a: accumulated(a, np.prod(a[:0]), np.multiply),
    "cumsum": lambda a: accumulated(a, np.sum(a[:0]), np.add),
    "diff": lambda a: a[1:] - a[:-1],
    "eye": lambda n: np.diag(np.ones(n)),
    "flip": lambda a: a[::-1],
    "inv": lambda a: np.linalg.solve(a, np.eye(len(a))),
    "norm": lambda a, axis=None: np.sqrt(np.sum(a * a, axis)),
    "outer": lambda a, b: a[:, None] * b,
    "roll": lambda a, shift: a[(np.arange(len(a)) - shift) % len(a)],
    "sort": lambda a: a[np.argsort(a)],
    "trace": lambda a: np.sum(np.diag(a)),
    "trapezoid": lambda y, x=None, dx=1.0: (
        (dx * np.sum(y[1:] + y[:-1]) if x is None else np.sum((x[1:] - x[:-1]) * (y[1:] + y[:-1])))
        / 2.0
    ),
    "vdot": lambda a, b: np.dot(a, b),
}
"""Functions of arrays that are one expression; those of more statements are defined below."""


def rounded(x, digits):
    scale = 10.0 ** abs(digits)
    return np.rint(x * scale) / scale if digits >= 0 else np.rint(x / scale) * scale


def argmax(a):
    if len(a) == 0:
        raise ValueError("an empty array")
    best = 0
    for i in range(1, len(a)):
        if a[i] > a[best]:
            best = i
    return best


def accumulated(a, total, function):
    out = np.full(len(a), total)
    for i in range(len(a)):
        total = function(total, a[i])
        out[i] = total
    return out


def searchsorted(a, v, side="left"):
    low, high = 0, len(a)
    while low < high:
        middle = (low + high) // 2
        if a[middle] < v or (side == "right" and a[middle] == v):
            low = middle + 1
        else:
            high = middle
    return low


def linspace(start, stop, num=50):
    gaps = max(num - 1, 1)
    k = np.arange(num)
    return np.where(k == gaps, stop * 1.0, start + (stop - start) / gaps * k)


def product(a, b):
    if b.ndim == 1:
        return np.sum(a * b, a.ndim - 1)
    if a.ndim == 1:
        return np.sum(a[:, None] * b, 0)
    out = np.zeros((len(a), b.shape[1]), a.dtype)
    for i in range(len(a)):
        for k in range(len(b)):
            for j in range(b.shape[1]):
                out[i, j] += a[i, k] * b[k, j]
    return out


def diag(a):
    if a.ndim == 2:
        out = np.empty(min(a.shape[0], a.shape[1]), a.dtype)
        for i in range(len(out)):
            out[i] = a[i, i]
        return out
    out = np.zeros((len(a), len(a)), a.dtype)
    for i in range(len(a)):
        out[i, i] = a[i]
    return out


def stack(parts):
    out = np.empty((len(parts),) + parts[0].shape, parts[0].dtype)  # noqa: RUF005
    k = 0
    for part in parts:
        out[k] = part
        k += 1  # noqa: SIM113
    return out


def cross(a, b):
    if len(a) != 3 or len(b) != 3:
        raise ValueError("np.cross takes vectors of 3 elements here")
    out = np.empty(3, a.dtype)
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]
    return out


def concatenate(parts):
    size = 0
    for part in parts:
        size += len(part)
    out = np.empty(size, parts[0].dtype)
    start = 0
    for part in parts:
        out[start : start + len(part)] = part
        start += len(part)
    return out


def interp(x, xp, fp):
    if x <= xp[0]:
        return fp[0]
    if x >= xp[len(xp) - 1]:
        return fp[len(xp) - 1]
    i = 1
    while xp[i] <= x:
        i += 1
    return fp[i - 1] + (fp[i] - fp[i - 1]) * (x - xp[i - 1]) / (xp[i] - xp[i - 1])


def convolve(a, v, mode="full"):
    short, long = min(len(a), len(v)), max(len(a), len(v))
    out = np.zeros(short + long - 1, a.dtype)
    for i in range(len(a)):
        for j in range(len(v)):
            out[i + j] += a[i] * v[j]
    if mode == "same":
        return out[(short - 1) // 2 : (short - 1) // 2 + long]
    return out[short - 1 : long] if mode == "valid" else out


def argsort(a):
    """Merge sort, which is stable; NaN comes last."""
    order, other, width = np.arange(len(a)), np.arange(len(a)), 1
    while width < len(a):
        for part in range(-(-len(a) // (2 * width))):
            start = 2 * width * part
            middle, stop = min(start + width, len(a)), min(start + 2 * width, len(a))
            i, j = start, middle
            for k in range(start, stop):
                left, right = a[order[min(i, middle - 1)]], a[order[min(j, stop - 1)]]
                if i < middle and (j >= stop or left <= right or right != right):
                    other[k] = order[i]
                    i += 1
                else:
                    other[k] = order[j]
                    j += 1
        order[:] = other
        width *= 2
    return order


def median(a):
    ordered, middle = np.sort(a), len(a) // 2
    return ordered[middle] if len(a) % 2 else (ordered[middle - 1] + ordered[middle]) / 2.0


def solve(a, b):
    """Gaussian elimination with partial pivoting."""
    n = len(a)
    if a.shape[1] != n or len(b) != n:
        raise ValueError("np.linalg.solve: a must be square, with as many rows as b")
    rest, x = a * 1.0, b * 1.0
    for k in range(n):
        row = k
        for i in range(k + 1, n):
            if abs(rest[i, k]) > abs(rest[row, k]):
                row = i
        if rest[row, k] == 0.0:
            raise MatrixError("np.linalg.solve: the matrix is singular")
        for j in range(k, n):
            rest[k, j], rest[row, j] = rest[row, j], rest[k, j]
        swapped = x[row] * 1.0
        x[row] = x[k]
        x[k] = swapped
        for i in range(k + 1, n):
            factor = rest[i, k] / rest[k, k]
            for j in range(k + 1, n):
                rest[i, j] -= factor * rest[k, j]
            x[i] -= factor * x[k]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            x[k] -= rest[k, j] * x[j]
        x[k] /= rest[k, k]
    return x


def cholesky(a):
    n = len(a)
    low = np.zeros((n, n), a.dtype)
    for j in range(n):
        pivot = a[j, j] - np.sum(low[j, :j] ** 2)
        if not pivot > 0.0:
            raise MatrixError("np.linalg.cholesky: the matrix is not positive definite")
        low[j, j] = np.sqrt(pivot)
        for i in range(j + 1, n):
            low[i, j] = (a[i, j] - np.sum(low[i, :j] * low[j, :j])) / low[j, j]
    return low
