"""Common parts of the kernels of exponentials over an axis.

The largest value of a row or column is subtracted from its values, so no exponential overflows.
The largest value is made finite first, so that infinities give limits: the logsumexp of a row of
-inf is -inf, and beside an element of +inf, all others have a softmax of 0.
"""

import numpy as np

from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.runtime.compile import by_type, jitable
from tinygrad_cg_kernels.runtime.intrinsics import by_width, vectorised
from tinygrad_cg_kernels.runtime.views import put, take

LARGEST64, LARGEST32 = np.finfo(np.float64).max, np.finfo(np.float32).max


def _finite_real(x):
    largest = by_width(x, LARGEST64, LARGEST32)
    x = largest if x > largest else x
    return -largest if x < -largest else x


@by_type(float=_finite_real)
def finite(x):
    """Return the nearest finite number; nan stays."""
    return np.clip(x, -LARGEST64, LARGEST64)


@jitable
def exp_of_difference(x, shift):
    return elementary.exp(x - shift)


@jitable
def log_softmax_of(x, shift, total):
    return (x - shift) - total


@jitable
def plus_log(shift, total):
    return shift + elementary.log(total)


@jitable
def product(x, y):
    return x * y


@jitable
def reciprocal(x):
    return 1 / x


@jitable
def apply(f, ins, outs, count):
    """Apply a function to rows and values. The loops of `loops.rows` are for longer rows."""
    vectorised()
    for i in range(np.uintp(count)):
        put(ins, outs, i, f(*take(ins, i)))
