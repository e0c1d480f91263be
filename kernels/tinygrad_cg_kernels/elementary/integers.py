"""Bits of integers and bools, shifts, and common divisors and multiples."""

import numpy as np

from tinygrad_cg_kernels.elementary.logic import logical_and, logical_or, logical_xor
from tinygrad_cg_kernels.runtime.compile import by_type, jitable
from tinygrad_cg_kernels.runtime.intrinsics import like


@by_type(exact=logical_and)
def bitwise_and(x, y):
    """Return the bits that are set in both."""
    return np.bitwise_and(x, y)


@by_type(exact=logical_or)
def bitwise_or(x, y):
    """Return the bits that are set in either."""
    return np.bitwise_or(x, y)


@by_type(exact=logical_xor)
def bitwise_xor(x, y):
    """Return the bits that are set in exactly one."""
    return np.bitwise_xor(x, y)


@by_type(integer=lambda x: like(like(-1, x) - x, x), boolean=lambda x: not x)
def invert(x):
    """Return the bits that are not set."""
    return np.invert(x)


def _left_shift(x, y):
    return like(0, x) if y < 0 or y > 63 else like(x << y, x)


def _right_shift(x, y):
    if y < 0 or y > 63:
        return like(-1, x) if x < 0 else like(0, x)
    return like(x >> y, x)


@by_type(integer=_left_shift)
def left_shift(x, y):
    """Return x times 2**y; 0 for a negative y, or one of as many as x has bits."""
    return np.left_shift(x, y)


@by_type(integer=_right_shift)
def right_shift(x, y):
    """Return x over 2**y, rounded down; 0 or -1 for a negative y, or one of many bits."""
    return np.right_shift(x, y)


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


@by_type(integer=_gcd)
def gcd(x, y):
    """Return the greatest common divisor, not negative."""
    return np.gcd(x, y)


@by_type(integer=_lcm)
def lcm(x, y):
    """Return the least common multiple, not negative; 0 if either is 0."""
    return np.lcm(x, y)
