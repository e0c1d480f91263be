"""Bits of integers and bools, shifts, and common divisors and multiples."""

from tinygrad_cg_kernels.elementary.logic import logical_and, logical_or, logical_xor
from tinygrad_cg_kernels.runtime.compile import jitable, of_numpy
from tinygrad_cg_kernels.runtime.intrinsics import like

bitwise_and = of_numpy(__name__, "bitwise_and", exact=logical_and)
bitwise_or = of_numpy(__name__, "bitwise_or", exact=logical_or)
bitwise_xor = of_numpy(__name__, "bitwise_xor", exact=logical_xor)
invert = of_numpy(
    __name__, "invert", integer=lambda x: like(like(-1, x) - x, x), boolean=lambda x: not x
)


def _left_shift(x, y):
    return like(0, x) if y < 0 or y > 63 else like(x << y, x)


def _right_shift(x, y):
    if y < 0 or y > 63:
        return like(-1, x) if x < 0 else like(0, x)
    return like(x >> y, x)


left_shift = of_numpy(__name__, "left_shift", integer=_left_shift)
"""x times 2**y; 0 for a negative y, or one of as many as x has bits."""
right_shift = of_numpy(__name__, "right_shift", integer=_right_shift)
"""x over 2**y, rounded down; 0 or -1 for a negative y, or one of many bits."""


@jitable
def _gcd(x, y):
    """Return the common divisor by Euclid; the smallest integer has no opposite, and wraps."""
    a = like(-x, x) if x < 0 else x
    b = like(-y, y) if y < 0 else y
    while b != 0:
        rest = like(0, x) if like(b + 1, x) == 0 and b < 0 else like(a % b, x)
        a = b
        b = rest
    return like(-a, x) if a < 0 else a


def _lcm(x, y):
    divisor = _gcd(x, y)
    if divisor == 0:
        return like(0, x)
    a = like(-x, x) if x < 0 else x
    b = like(-y, y) if y < 0 else y
    return like((a // divisor) * b, x)


gcd = of_numpy(__name__, "gcd", integer=_gcd)
lcm = of_numpy(__name__, "lcm", integer=_lcm)
