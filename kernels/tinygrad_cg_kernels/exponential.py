"""exp, log and what is made of them, in arithmetic that LLVM vectorises.

Each is range reduction plus polynomial, since LLVM cannot vectorise calls to libm. float32
has its own constants and stays float32: every literal in a float32 formula is a float32.
Constants named as in fdlibm are fdlibm's.
"""

import cmath

import numpy as np
from numba import types

from tinygrad_cg_kernels.compile import (
    bits,
    by_type,
    float_absolute,
    float_copysign,
    from_bits,
    inlined,
    jitable,
    like,
)

F = np.float32
NAN, INF = np.nan, np.inf
NAN32, INF32 = F(np.nan), F(np.inf)
ZERO32, HALF32, ONE32, TWO32 = F(0), F(0.5), F(1), F(2)

# --- exp, expm1 -----------------------------------------------------------------------

LOG2E = 1.4426950408889634
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
E3_32, E4_32, E5_32 = (
    F(0.00833331048488617),
    F(0.0013933649752289057),
    F(0.00019890991097781807),
)


@jitable
def _power_of_two64(exponent):
    return from_bits((exponent + 1023) << 52)


@jitable
def _power_of_two32(exponent):
    return from_bits(np.int32((exponent + 127) << 23))


@jitable
def _exp_parts64(x):
    """n (as float and integer) and p with e**x == 2**n * (1 + p)."""
    inlined()
    shifted = x * LOG2E + SHIFT
    n = shifted - SHIFT
    nearly = x - n * LN2_HI
    r = nearly - n * LN2_LO
    lost = (nearly - r) - n * LN2_LO
    high = E5 + r * (E6 + r * (E7 + r * (E8 + r * E9)))
    tail = E0 + r * (E1 + r * (E2 + r * (E3 + r * (E4 + r * high))))
    return bits(shifted) - SHIFT_BITS, r + ((r * r) * tail + lost)


@jitable
def _exp_parts32(x):
    inlined()
    shifted = x * LOG2E_32 + SHIFT_32
    n = shifted - SHIFT_32
    nearly = x - n * LN2_HI_32
    r = nearly - n * LN2_LO_32
    lost = (nearly - r) - n * LN2_LO_32
    tail = E0_32 + r * (E1_32 + r * (E2_32 + r * (E3_32 + r * (E4_32 + r * E5_32))))
    return np.int32(bits(shifted) - SHIFT_BITS_32), r + ((r * r) * tail + lost)


@jitable
def exp64(x):
    inlined()
    y = 710.0 if x > 710.0 else x
    y = -746.0 if y < -746.0 else y
    n, p = _exp_parts64(y)
    half = n >> 1
    return (1.0 + p) * _power_of_two64(half) * _power_of_two64(n - half)


@jitable
def exp32(x):
    inlined()
    y = F(89.0) if x > F(89.0) else x
    y = F(-104.0) if y < F(-104.0) else y
    n, p = _exp_parts32(y)
    half = np.int32(n >> np.int32(1))
    rest = np.int32(n - half)
    return (ONE32 + p) * _power_of_two32(half) * _power_of_two32(rest)


@jitable
def expm1_64(x):
    inlined()
    y = 710.0 if x > 710.0 else x
    y = -50.0 if y < -50.0 else y
    n, p = _exp_parts64(y)
    half_scale = _power_of_two64(n - 1)  # half of 2**n, which overflows before the result
    value = (half_scale * p + (half_scale - 0.5)) * 2.0
    return x if float_absolute(x) < 1e-20 else value


@jitable
def expm1_32(x):
    inlined()
    y = F(89.0) if x > F(89.0) else x
    y = F(-30.0) if y < F(-30.0) else y
    n, p = _exp_parts32(y)
    half_scale = _power_of_two32(np.int32(n - np.int32(1)))
    value = (half_scale * p + (half_scale - HALF32)) * TWO32
    return x if float_absolute(x) < F(1e-12) else value


def exp(x):
    """e to the power x."""
    return np.exp(x)


def expm1(x):
    """e to the power x, less one, exact near zero."""
    return np.expm1(x)


@jitable
def _exp_complex(x):
    return cmath.exp(x)


@jitable
def _expm1_complex(x):
    return cmath.exp(x) - 1


by_type(exp, {types.float64: exp64, types.float32: exp32, types.Complex: _exp_complex})
by_type(expm1, {types.float64: expm1_64, types.float32: expm1_32, types.Complex: _expm1_complex})

# --- log, log1p -----------------------------------------------------------------------

LG1, LG2, LG3 = 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01
LG4, LG5, LG6 = 2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01
LG7 = 1.479819860511658591e-01
LG1_32, LG2_32 = F(0.66666662693), F(0.40000972152)
LG3_32, LG4_32 = F(0.28498786688), F(0.24279078841)
LOG_LN2_HI_32, LOG_LN2_LO_32 = F(6.9313812256e-01), F(9.0580006145e-06)
SQRT_HALF_BITS = 0x3FE6A09E00000000
SQRT_HALF_BITS_32 = np.int32(0x3F3504F3)
MANTISSA = 0x000FFFFFFFFFFFFF
MANTISSA_32 = np.int32(0x007FFFFF)
SMALLEST_NORMAL = 2.2250738585072014e-308
SMALLEST_NORMAL_32 = F(1.1754943508222875e-38)
TWO_54 = 18014398509481984.0
TWO_25 = F(33554432.0)


@jitable
def _log_parts64(x):
    """k (as a float) and m in [sqrt(1/2), sqrt(2)) with x == 2**k * m, for normal x."""
    inlined()
    moved = bits(x) - SQRT_HALF_BITS
    exponent = from_bits((moved >> 52) + SHIFT_BITS) - SHIFT
    return exponent, from_bits((moved & MANTISSA) + SQRT_HALF_BITS)


@jitable
def _log_parts32(x):
    inlined()
    moved = np.int32(bits(x) - SQRT_HALF_BITS_32)
    exponent = from_bits(np.int32(np.int32(moved >> np.int32(23)) + SHIFT_BITS_32)) - SHIFT_32
    return exponent, from_bits(np.int32(np.int32(moved & MANTISSA_32) + SQRT_HALF_BITS_32))


@jitable
def _log_sum64(k, f, correction):
    """log(2**k * (1 + f)) + correction."""
    inlined()
    half_square = 0.5 * f * f
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (LG2 + w * (LG4 + w * LG6))
    odd = z * (LG1 + w * (LG3 + w * (LG5 + w * LG7)))
    low = s * (half_square + (even + odd)) + (k * LN2_LO + correction)
    return ((low - half_square) + f) + k * LN2_HI


@jitable
def _log_sum32(k, f, correction):
    inlined()
    half_square = HALF32 * f * f
    s = f / (TWO32 + f)
    z = s * s
    w = z * z
    even = w * (LG2_32 + w * LG4_32)
    odd = z * (LG1_32 + w * LG3_32)
    low = s * (half_square + (even + odd)) + (k * LOG_LN2_LO_32 + correction)
    return ((low - half_square) + f) + k * LOG_LN2_HI_32


@jitable
def log64(x):
    inlined()
    tiny = x < SMALLEST_NORMAL
    k, m = _log_parts64(x * TWO_54 if tiny else x)
    value = _log_sum64(k - 54.0 if tiny else k, m - 1.0, 0.0)
    value = value if x < INF else x
    value = NAN if x < 0.0 else value
    return -INF if x == 0.0 else value


@jitable
def log32(x):
    inlined()
    tiny = x < SMALLEST_NORMAL_32
    k, m = _log_parts32(x * TWO_25 if tiny else x)
    value = _log_sum32(k - F(25.0) if tiny else k, m - ONE32, ZERO32)
    value = value if x < INF32 else x
    value = NAN32 if x < ZERO32 else value
    return -INF32 if x == ZERO32 else value


@jitable
def log1p64(x):
    inlined()
    u = 1.0 + x
    k, m = _log_parts64(u)
    lost = (1.0 - (u - x)) if k >= 2.0 else (x - (u - 1.0))
    near = k == 0.0
    value = _log_sum64(k, x if near else m - 1.0, 0.0 if near else lost / u)
    value = value if x < INF else x
    value = NAN if x < -1.0 else value
    value = -INF if x == -1.0 else value
    return x if x == 0.0 else value


@jitable
def log1p32(x):
    inlined()
    u = ONE32 + x
    k, m = _log_parts32(u)
    lost = (ONE32 - (u - x)) if k >= TWO32 else (x - (u - ONE32))
    near = k == ZERO32
    value = _log_sum32(k, x if near else m - ONE32, ZERO32 if near else lost / u)
    value = value if x < INF32 else x
    value = NAN32 if x < -ONE32 else value
    value = -INF32 if x == -ONE32 else value
    return x if x == ZERO32 else value


def log(x):
    """Natural logarithm."""
    return np.log(x)


def log1p(x):
    """log(1 + x), exact near zero."""
    return np.log1p(x)


@jitable
def _log_complex(x):
    return cmath.log(x)


@jitable
def _log1p_complex(x):
    return cmath.log(1 + x)


by_type(log, {types.float64: log64, types.float32: log32, types.Complex: _log_complex})
by_type(log1p, {types.float64: log1p64, types.float32: log1p32, types.Complex: _log1p_complex})

# --- tanh, sigmoid, softplus ----------------------------------------------------------


@jitable
def _tanh_real(x):
    inlined()
    two = like(2, x)
    doubled = two * float_absolute(x)
    t = expm1(doubled if doubled < like(50, x) or x != x else like(50, x))
    large = doubled > like(1.1, x)
    quotient = (two if large else t) / (t + two)
    return float_copysign(like(1, x) - quotient if large else quotient, x)


@jitable
def _tanh_complex(x):
    return cmath.tanh(x)


def tanh(x):
    """Hyperbolic tangent."""
    return np.tanh(x)


by_type(tanh, {types.Float: _tanh_real, types.Complex: _tanh_complex})


@jitable
def sigmoid(x):
    """1 / (1 + exp(-x)), without overflow."""
    inlined()
    one = like(1, x)
    e = exp(-float_absolute(x))
    return (e if x < like(0, x) else one) / (one + e)


@jitable
def softplus(x):
    """log(1 + exp(x)), without overflow."""
    inlined()
    zero = like(0, x)
    return (zero if x < zero else x) + log1p(exp(-float_absolute(x)))
