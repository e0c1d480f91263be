"""The exponential functions, in arithmetic that LLVM vectorises.

Each is range reduction plus polynomial, since LLVM cannot vectorise calls to libm. float32
has its own constants and stays float32: every literal in a float32 formula is a float32.
Constants named as in fdlibm are fdlibm's.
"""

import cmath
from typing import Any

import numpy as np
from numba import types

from tinygrad_cg_kernels.runtime.compile import by_type, jitable
from tinygrad_cg_kernels.runtime.intrinsics import (
    bits,
    estrin,
    float_absolute,
    float_fma,
    from_bits,
    inlined,
    like,
)

F = np.float32

LOG2E = 1.4426950408889634
LN2, LN2_TAIL = 0.6931471805599453, 2.3190468138462996e-17
LN2_HI, LN2_LO = 6.93147180369123816490e-01, 1.90821492927058770002e-10
SHIFT = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, in the low bits
SHIFT_BITS = 0x4338000000000000
LOG2E_32 = F(1.44269504)
LN2_HI_32, LN2_LO_32 = F(0.693359375), F(-2.12194440e-4)
SHIFT_32 = F(12582912.0)
SHIFT_BITS_32 = np.int32(0x4B400000)

# Minimax coefficients of (e**r - 1 - r) / r**2 for |r| <= log(2) / 2.
E0, E1, E2 = 0.5000000000000001, 0.16666666666666669, 0.04166666666662413
E3, E4, E5 = 0.008333333333330062, 0.0013888888917213717, 0.00019841269863053618
E6, E7, E8 = 2.4801521295954376e-05, 2.7557268459997064e-06, 2.7620088445409746e-07
E9 = 2.510038549551032e-08
E0_32, E1_32, E2_32 = F(0.5), F(0.1666666716337204), F(0.04166646674275398)
E3_32, E4_32, E5_32 = (F(0.00833331048488617), F(0.0013933649752289057), F(0.00019890991097781807))
# Minimax coefficients of (2**r - 1 - r log(2)) / r**2 for |r| <= 1/2.
EXP2 = (
    *(0.24022650695910133, 0.05550410866482169, 0.009618129107593661, 0.0013333558146386747),
    *(0.0001540353045773436, 1.5252733862467906e-05, 1.3215434965788638e-06),
    *(1.017804803581655e-07, 7.073837472959913e-09, 4.4572005358914045e-10),
)
EXP2_32 = (
    *(0.24022650718688965, 0.055503617972135544, 0.009618022479116917),
    *(0.0013390431413426995, 0.00015471820370294154),
)


@jitable
def power_of_two64(exponent):
    return from_bits((exponent + 1023) << 52)


@jitable
def power_of_two32(exponent):
    return from_bits(np.int32((exponent + 127) << 23))


@jitable
def _nearest64(x):
    shifted = x + SHIFT
    return bits(shifted) - SHIFT_BITS, shifted - SHIFT


@jitable
def _nearest32(x):
    shifted = x + SHIFT_32
    return np.int32(bits(shifted) - SHIFT_BITS_32), shifted - SHIFT_32


@jitable
def _reduced64(x):
    inlined()
    n, count = _nearest64(x * LOG2E)
    nearly = x - count * LN2_HI
    r = nearly - count * LN2_LO
    return n, r, (nearly - r) - count * LN2_LO


@jitable
def _reduced32(x):
    inlined()
    n, count = _nearest32(x * LOG2E_32)
    nearly = x - count * LN2_HI_32
    r = nearly - count * LN2_LO_32
    return n, r, (nearly - r) - count * LN2_LO_32


@jitable
def _tail64(r):
    inlined()
    high = E5 + r * (E6 + r * (E7 + r * (E8 + r * E9)))
    return E0 + r * (E1 + r * (E2 + r * (E3 + r * (E4 + r * high))))


@jitable
def _tail32(r):
    inlined()
    return E0_32 + r * (E1_32 + r * (E2_32 + r * (E3_32 + r * (E4_32 + r * E5_32))))


def power_of_two(exponent) -> Any:
    """Return 2 to an integer power that gives a normal number: int32 gives float32, int64
    float64.
    """


def nearest(x) -> Any:
    """Return the integer nearest x, as an integer and as a float, for |x| below 2**51 (2**22)."""


def reduce_by_log2(x) -> Any:
    """Return n, r and the rounding error of r, with x = n log(2) + r + lost and |r| <= log(2) /
    2.
    """


def exp_tail(r) -> Any:
    """Return (e**r - 1 - r) / r**2 for |r| <= log(2) / 2."""


by_type(power_of_two, {types.int64: power_of_two64, types.int32: power_of_two32})
by_type(nearest, {types.float64: _nearest64, types.float32: _nearest32})
by_type(reduce_by_log2, {types.float64: _reduced64, types.float32: _reduced32})
by_type(exp_tail, {types.float64: _tail64, types.float32: _tail32})


@jitable
def exp_parts(x):
    """Return n, r and t with e**x = 2**n * (1 + r + t); t is at most a fifth of r."""
    inlined()
    n, r, lost = reduce_by_log2(x)
    return n, r, (r * r) * exp_tail(r) + lost


@jitable
def scale_by_power(value, n):
    """Return value * 2**n, where that may be subnormal or overflow."""
    inlined()
    half = like(n >> 1, n)
    return value * power_of_two(half) * power_of_two(like(n - half, n))


@jitable
def _exp_real(x, low, high):
    inlined()
    y = high if x > high else x
    n, r, t = exp_parts(low if y < low else y)
    return scale_by_power(like(1, x) + (r + t), n)


@jitable
def _expm1_real(x, low, high, tiny):
    inlined()
    y = high if x > high else x
    n, r, t = exp_parts(low if y < low else y)
    scale = power_of_two(like(n - 1, n))  # half of 2**n, which overflows before the result
    half = like(0.5, x)
    rounded = scale - half
    large = float_fma(scale, r, rounded)
    low = float_fma(scale, r, rounded - large) + ((scale - rounded) - half)
    value = large + (low + scale * t)
    return x if float_absolute(x) < tiny else value + value


@jitable
def exp64(x):
    inlined()
    return _exp_real(x, -746.0, 710.0)


@jitable
def exp32(x):
    inlined()
    return _exp_real(x, F(-104.0), F(89.0))


@jitable
def expm1_64(x):
    inlined()
    return _expm1_real(x, -50.0, 710.0, 1e-20)


@jitable
def expm1_32(x):
    inlined()
    return _expm1_real(x, F(-30.0), F(89.0), F(1e-12))


@jitable
def _exp2_real(x, low, high, coefficients):
    inlined()
    y = high if x > high else x
    y = low if y < low else y
    n, count = nearest(y)
    part = y - count
    tail = part * part * estrin(part, coefficients)
    return scale_by_power(like(1, x) + float_fma(part, like(LN2, x), tail), n)


@jitable
def _exp2_64(x):
    inlined()
    return _exp2_real(x, -1080.0, 1025.0, EXP2)


@jitable
def _exp2_32(x):
    inlined()
    return _exp2_real(x, F(-160.0), F(129.0), EXP2_32)


def exp(x):
    """Return e to the power x."""
    return np.exp(x)


def exp2(x):
    """Return 2 to the power x."""
    return np.exp2(x)


def expm1(x):
    """Return e to the power x, minus one, exact near zero."""
    return np.expm1(x)


@jitable
def _exp_complex(x):
    return cmath.exp(x)


@jitable
def _exp2_complex(x):
    return cmath.exp(x * LN2)


@jitable
def _expm1_complex(x):
    return cmath.exp(x) - 1


by_type(exp, {types.float64: exp64, types.float32: exp32, types.Complex: _exp_complex})
by_type(exp2, {types.float64: _exp2_64, types.float32: _exp2_32, types.Complex: _exp2_complex})
by_type(expm1, {types.float64: expm1_64, types.float32: expm1_32, types.Complex: _expm1_complex})
