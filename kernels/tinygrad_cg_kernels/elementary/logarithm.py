"""The logarithms, in arithmetic that LLVM vectorises.

x is taken as 2**k * (1 + f), and log(1 + f) as a series in f / (2 + f). Constants named as
in fdlibm are fdlibm's.
"""

import cmath
from typing import Any

import numpy as np
from numba import types

from tinygrad_cg_kernels.elementary.exponential import (
    LN2_HI,
    LN2_LO,
    LOG2E,
    LOG2E_32,
    SHIFT,
    SHIFT_32,
    SHIFT_BITS,
    SHIFT_BITS_32,
)
from tinygrad_cg_kernels.runtime.compile import by_type, jitable
from tinygrad_cg_kernels.runtime.intrinsics import (
    bits,
    float_copysign,
    float_fma,
    from_bits,
    inlined,
    like,
    polynomial,
)

F = np.float32
NAN, INF = np.nan, np.inf
NAN32, INF32 = F(np.nan), F(np.inf)
ZERO32, HALF32, ONE32, TWO32 = F(0), F(0.5), F(1), F(2)

LG1, LG2, LG3 = 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01
LG4, LG5, LG6 = 2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01
LG7 = 1.479819860511658591e-01
LG1_32, LG2_32 = F(0.66666662693), F(0.40000972152)
LG3_32, LG4_32 = F(0.28498786688), F(0.24279078841)
LOG_LN2_HI_32, LOG_LN2_LO_32 = F(6.9313812256e-01), F(9.0580006145e-06)
LOG2E_TAIL, LOG2E_TAIL_32 = 2.0355273740931033e-17, F(1.925963e-08)
LOG10E, LOG10E_TAIL = 0.4342944819032518, 1.098319650216765e-17
LOG10E_32, LOG10E_TAIL_32 = F(0.4342944819), F(-1.010305e-08)
LOG10_2_HI, LOG10_2_LO = 0.30102999566395283, 2.8363394551044964e-14  # HI has 42 bits
LOG10_2_HI_32, LOG10_2_LO_32 = F(0.301025390625), F(4.605039e-06)  # HI has 13 bits
LOG_SERIES = (LG1, LG2, LG3, LG4, LG5, LG6, LG7)
LOG_SERIES_32 = tuple(map(float, (LG1_32, LG2_32, LG3_32, LG4_32)))
LOG2_SERIES = tuple(LOG2E * c for c in LOG_SERIES)
LOG2_SERIES_32 = tuple(LOG2E * c for c in LOG_SERIES_32)
LOG10_SERIES = tuple(LOG10E * c for c in LOG_SERIES)
LOG10_SERIES_32 = tuple(LOG10E * c for c in LOG_SERIES_32)
SQRT_HALF_BITS = 0x3FE6A09E00000000
SQRT_HALF_BITS_32 = np.int32(0x3F3504F3)
MANTISSA = 0x000FFFFFFFFFFFFF
MANTISSA_32 = np.int32(0x007FFFFF)
SMALLEST_NORMAL = 2.2250738585072014e-308
SMALLEST_NORMAL_32 = F(1.1754943508222875e-38)
NORMAL_BITS, NORMAL_COUNT = 1 << 52, np.uint64(2046 << 52)
NORMAL_BITS_32, NORMAL_COUNT_32 = np.int32(1 << 23), np.uint32(254 << 23)
TWO_54 = 18014398509481984.0
TWO_25 = F(33554432.0)


@jitable
def _log_parts64(x):
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
def _log_rest64(f):
    """Return h and q with log(1 + f) = f - h + q, h = f * f / 2."""
    inlined()
    half_square = 0.5 * f * f
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (LG2 + w * (LG4 + w * LG6))
    odd = z * (LG1 + w * (LG3 + w * (LG5 + w * LG7)))
    return half_square, s * (half_square + (even + odd))


@jitable
def _log_rest32(f):
    inlined()
    half_square = HALF32 * f * f
    s = f / (TWO32 + f)
    z = s * s
    w = z * z
    even = w * (LG2_32 + w * LG4_32)
    odd = z * (LG1_32 + w * LG3_32)
    return half_square, s * (half_square + (even + odd))


@jitable
def _log_sum64(k, f, correction):
    """Return log(2**k * (1 + f)) + correction; the logarithm is f - s (f - R)."""
    inlined()
    s = f / (2.0 + f)
    z = s * s
    series = z * (LG1 + z * (LG2 + z * (LG3 + z * (LG4 + z * (LG5 + z * (LG6 + z * LG7))))))
    low = s * (f - series) - (k * LN2_LO + correction)
    return (f - low) + k * LN2_HI


@jitable
def _log_sum32(k, f, correction):
    inlined()
    s = f / (TWO32 + f)
    z = s * s
    series = z * (LG1_32 + z * (LG2_32 + z * (LG3_32 + z * LG4_32)))
    low = s * (f - series) - (k * LOG_LN2_LO_32 + correction)
    return (f - low) + k * LOG_LN2_HI_32


@jitable
def _log_split64(x):
    """Return k and f with x = 2**k * (1 + f), for any positive x."""
    inlined()
    tiny = x < SMALLEST_NORMAL
    k, m = _log_parts64(x * TWO_54 if tiny else x)
    return k - 54.0 if tiny else k, m - 1.0


@jitable
def _log_split32(x):
    inlined()
    tiny = x < SMALLEST_NORMAL_32
    k, m = _log_parts32(x * TWO_25 if tiny else x)
    return k - F(25.0) if tiny else k, m - ONE32


@jitable
def log_edges(x, value):
    """Return the logarithm of x: `value`, except where x is zero, negative, infinite or nan."""
    inlined()
    zero = like(0, x)
    value = value if x < like(INF, x) else x
    value = like(NAN, x) if x < zero else value
    return like(-INF, x) if x == zero else value


@jitable
def log64(x):
    inlined()
    k, f = _log_split64(x)
    return log_edges(x, _log_sum64(k, f, 0.0))


@jitable
def log32(x):
    inlined()
    k, f = _log_split32(x)
    return log_edges(x, _log_sum32(k, f, ZERO32))


@jitable
def _log_pair(k_high, k_low, f, half_square, rest):
    """Return k_high + k_low + log(1 + f), as a number and its rounding error."""
    inlined()
    near = f - half_square
    lost = ((f - near) - half_square) + rest
    high = k_high + near
    return high, (near - (high - k_high)) + (lost + k_low)


@jitable
def _log_pair64(x):
    inlined()
    k, f = _log_split64(x)
    half_square, rest = _log_rest64(f)
    return _log_pair(k * LN2_HI, k * LN2_LO, f, half_square, rest)


@jitable
def _log_pair32(x):
    inlined()
    k, f = _log_split32(x)
    half_square, rest = _log_rest32(f)
    return _log_pair(k * LOG_LN2_HI_32, k * LOG_LN2_LO_32, f, half_square, rest)


@jitable
def _log_to_base(f, factor, factor_low, series, k_low):
    """Return log(1 + f) * (factor + factor_low) + k_low; the series is that of the logarithm,
    scaled.
    """
    inlined()
    s = f / (like(2, f) + f)
    z = s * s
    square, half = f * f, like(0.5, f) * factor
    rest = s * float_fma(z, polynomial(z, series), half * square)
    low = float_fma(f, factor_low, k_low) + rest
    return float_fma(f, factor, float_fma(-half, square, low))


@jitable
def _to_base2_64(k, f):
    inlined()
    return k + _log_to_base(f, LOG2E, LOG2E_TAIL, LOG2_SERIES, 0.0)


@jitable
def _to_base2_32(k, f):
    inlined()
    return k + _log_to_base(f, LOG2E_32, LOG2E_TAIL_32, LOG2_SERIES_32, ZERO32)


@jitable
def _to_base10_64(k, f):
    inlined()
    part = _log_to_base(f, LOG10E, LOG10E_TAIL, LOG10_SERIES, k * LOG10_2_LO)
    return float_fma(k, LOG10_2_HI, part)


@jitable
def _to_base10_32(k, f):
    inlined()
    part = _log_to_base(f, LOG10E_32, LOG10E_TAIL_32, LOG10_SERIES_32, k * LOG10_2_LO_32)
    return float_fma(k, LOG10_2_HI_32, part)


def _to_base2(k, f) -> Any:
    """Return the logarithm to base 2 of 2**k * (1 + f)."""


def _to_base10(k, f) -> Any:
    """Return the logarithm to base 10 of 2**k * (1 + f)."""


by_type(_to_base2, {types.float64: _to_base2_64, types.float32: _to_base2_32})
by_type(_to_base10, {types.float64: _to_base10_64, types.float32: _to_base10_32})


@jitable
def _log2_real(x):
    inlined()
    k, f = log_split(x)
    return log_edges(x, _to_base2(k, f))


@jitable
def _log10_real(x):
    inlined()
    k, f = log_split(x)
    return log_edges(x, _to_base10(k, f))


@jitable
def _log2_normal(x):
    inlined()
    k, m = _log_parts(x)
    return _to_base2(k, m - like(1, x))


@jitable
def _log10_normal(x):
    inlined()
    k, m = _log_parts(x)
    return _to_base10(k, m - like(1, x))


@jitable
def _normal64(x):
    return np.uint64(bits(x) - NORMAL_BITS) < NORMAL_COUNT


@jitable
def _normal32(x):
    return np.uint32(bits(x) - NORMAL_BITS_32) < NORMAL_COUNT_32


@jitable
def nowhere(x):
    """Return the test of a type that has no fast version."""
    return False


@jitable
def log1p64(x):
    inlined()
    u = 1.0 + x
    k, m = _log_parts64(u)
    back = u - 1.0
    lost = (1.0 - (u - back)) + (x - back)
    value = float_copysign(_log_sum64(k, m - 1.0, lost / u), x)
    value = value if x < INF else x
    value = NAN if x < -1.0 else value
    return -INF if x == -1.0 else value


@jitable
def log1p32(x):
    inlined()
    u = ONE32 + x
    k, m = _log_parts32(u)
    back = u - ONE32
    lost = (ONE32 - (u - back)) + (x - back)
    value = float_copysign(_log_sum32(k, m - ONE32, lost / u), x)
    value = value if x < INF32 else x
    value = NAN32 if x < -ONE32 else value
    return -INF32 if x == -ONE32 else value


def log(x):
    """Return the natural logarithm of x."""
    return np.log(x)


def log1p(x):
    """Return log(1 + x), exact near zero."""
    return np.log1p(x)


def log2(x):
    """Return the logarithm of x to base 2."""
    return np.log2(x)


def log10(x):
    """Return the logarithm of x to base 10."""
    return np.log10(x)


def normal(x):
    """Return whether `log2_normal` and `log10_normal` serve x: it is positive, finite and
    normal.
    """
    return (x >= np.finfo(x.dtype).tiny) & (x < INF)


def log2_normal(x):
    """Return log2 of an x that is `normal`."""
    return np.log2(x)


def log10_normal(x):
    """Return log10 of an x that is `normal`."""
    return np.log10(x)


def _log_parts(x) -> Any:
    """Return k and m with x = 2**k * m, sqrt(1/2) <= m < sqrt(2), for positive normal x."""


def log_split(x) -> Any:
    """Return k and f with x = 2**k * (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), for positive finite
    x.
    """


def log_pair(x) -> Any:
    """Return log(x) for positive finite x, as a number and its rounding error."""


@jitable
def _log_complex(x):
    return cmath.log(x)


@jitable
def _log1p_complex(x):
    return cmath.log(1 + x)


@jitable
def _log2_complex(x):
    return cmath.log(x) * LOG2E


@jitable
def _log10_complex(x):
    return cmath.log(x) * LOG10E


by_type(log, {types.float64: log64, types.float32: log32, types.Complex: _log_complex})
by_type(log1p, {types.float64: log1p64, types.float32: log1p32, types.Complex: _log1p_complex})
by_type(log2, {types.Float: _log2_real, types.Complex: _log2_complex})
by_type(log10, {types.Float: _log10_real, types.Complex: _log10_complex})
by_type(normal, {types.float64: _normal64, types.float32: _normal32, types.Complex: nowhere})
by_type(log2_normal, {types.Float: _log2_normal, types.Complex: _log2_complex})
by_type(log10_normal, {types.Float: _log10_normal, types.Complex: _log10_complex})
by_type(_log_parts, {types.float64: _log_parts64, types.float32: _log_parts32})
by_type(log_split, {types.float64: _log_split64, types.float32: _log_split32})
by_type(log_pair, {types.float64: _log_pair64, types.float32: _log_pair32})

GUARDED_LOGS = {log2: (normal, log2_normal), log10: (normal, log10_normal)}
"""See `elementary.GUARDED`."""
