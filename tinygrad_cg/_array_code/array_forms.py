"""NumPy's functions that are short loops: written down as programs read any function."""

import numpy as np


def diff(a):
    return a[1:] - a[:-1]


def trace(a):
    total = a.dtype.type(0.0)
    for i in range(min(a.shape[0], a.shape[1])):
        total += a[i, i]
    return total


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


def vdot(a, b):
    return np.dot(a, b)


def interp(x, xp, fp):
    if x <= xp[0]:
        return fp[0]
    if x >= xp[len(xp) - 1]:
        return fp[len(xp) - 1]
    i = 1
    while xp[i] <= x:
        i += 1
    return fp[i - 1] + (fp[i] - fp[i - 1]) * (x - xp[i - 1]) / (xp[i] - xp[i - 1])
