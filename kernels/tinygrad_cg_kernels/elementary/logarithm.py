"""The logarithms, in arithmetic that LLVM vectorises.

x is taken as 2**k * (1 + f), and log(1 + f) as a series in f / (2 + f). Constants named as
in fdlibm are fdlibm's.
"""

from collections.abc import Callable

import numpy as np

from tinygrad_cg_kernels.elementary.exponential import (
    LN2_HI,
    LN2_HI_32,
    LN2_LO,
    LN2_LO_32,
    LOG2E,
    MANTISSA_BITS,
    MANTISSA_BITS_32,
    SHIFT,
    SHIFT_32,
)
from tinygrad_cg_kernels.elementary.of_complex import (
    log1p_complex,
    log2_complex,
    log10_complex,
    log_complex,
)
from tinygrad_cg_kernels.runtime.compile import jitable, of_numpy
from tinygrad_cg_kernels.runtime.intrinsics import (
    bits,
    by_width,
    float_copysign,
    float_fma,
    from_bits,
    inlined,
    like,
    polynomial,
)

NAN, INF = np.nan, np.inf

LG = (
    *(6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01),
    *(2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01),
    1.479819860511658591e-01,
)
LG_32 = tuple(
    float(np.float32(c)) for c in (0.66666662693, 0.40000972152, 0.28498786688, 0.24279078841)
)
LOG2E_TAIL, LOG2E_TAIL_32 = 2.0355273740931033e-17, 1.925963e-08
LOG10E, LOG10E_TAIL, LOG10E_TAIL_32 = 0.4342944819032518, 1.098319650216765e-17, -1.010305e-08
LOG10_2_HI, LOG10_2_LO = 0.30102999566395283, 2.8363394551044964e-14  # HI has 42 bits
LOG10_2_HI_32, LOG10_2_LO_32 = 0.301025390625, 4.605039e-06  # HI has 13 bits
LOG2_SERIES, LOG2_SERIES_32 = tuple(LOG2E * c for c in LG), tuple(LOG2E * c for c in LG_32)
LOG10_SERIES, LOG10_SERIES_32 = tuple(LOG10E * c for c in LG), tuple(LOG10E * c for c in LG_32)
SQRT_HALF_BITS, SQRT_HALF_BITS_32 = 0x3FE6A09E00000000, 0x3F3504F3
SMALLEST_NORMAL, SMALLEST_NORMAL_32 = 2.2250738585072014e-308, 1.1754943508222875e-38
UP, UP_32 = (54.0, 2.0**54), (25.0, 2.0**25)
"""The exponent and the factor that make the smallest numbers normal."""


@jitable
def parts_from(x, first, first_32):
    """Return k, m and the bits of x less those of the first m, with x = 2**k * m for normal x > 0.

    m is from the float64 with the bits `first` (float32: `first_32`) up to twice that.
    """
    inlined()
    pattern, shift = bits(x), by_width(x, SHIFT, SHIFT_32)
    start = by_width(pattern, first, first_32)
    width = by_width(pattern, MANTISSA_BITS, MANTISSA_BITS_32)
    moved = like(pattern - start, pattern)
    exponent = from_bits(like((moved >> width) + bits(shift), pattern)) - shift
    mantissa = moved & by_width(pattern, (1 << MANTISSA_BITS) - 1, (1 << MANTISSA_BITS_32) - 1)
    return exponent, from_bits(like(mantissa + start, pattern)), moved


@jitable
def log_parts(x):
    """Return k and m with x = 2**k * m, sqrt(1/2) <= m < sqrt(2), for positive normal x."""
    inlined()
    k, m, _ = parts_from(x, SQRT_HALF_BITS, SQRT_HALF_BITS_32)
    return k, m


@jitable
def log_split(x):
    """Return k and f with x = 2**k * (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), for 0 < x < inf."""
    inlined()
    digits, up = by_width(x, UP, UP_32)
    tiny = x < by_width(x, SMALLEST_NORMAL, SMALLEST_NORMAL_32)
    k, m = log_parts(x * up if tiny else x)
    return k - digits if tiny else k, m - like(1, x)


@jitable
def log_sum(k, f, correction):
    """Return log(2**k * (1 + f)) + correction; the logarithm is f - s (f - R)."""
    inlined()
    ln2_hi, ln2_lo = by_width(f, (LN2_HI, LN2_LO), (LN2_HI_32, LN2_LO_32))
    s = f / (like(2, f) + f)
    z = s * s
    low = s * (f - z * polynomial(z, by_width(f, LG, LG_32))) - (k * ln2_lo + correction)
    return (f - low) + k * ln2_hi


@jitable
def log_edges(x, value):
    """Return the logarithm of x: `value`, except where x is zero, negative, infinite or nan."""
    inlined()
    zero = like(0, x)
    value = value if x < like(INF, x) else x
    value = like(NAN, x) if x < zero else value
    return like(-INF, x) if x == zero else value


@jitable
def log_pair(x):
    """Return log(x) for positive finite x, as a number and its rounding error."""
    inlined()
    ln2_hi, ln2_lo = by_width(x, (LN2_HI, LN2_LO), (LN2_HI_32, LN2_LO_32))
    k, f = log_split(x)
    half_square = like(0.5, x) * f * f  # log(1 + f) = f - half_square + rest
    s = f / (like(2, x) + f)
    z = s * s
    w = z * z
    even = polynomial(w, by_width(x, LG[1::2], LG_32[1::2]))
    odd = polynomial(w, by_width(x, LG[::2], LG_32[::2]))
    near = f - half_square
    lost = ((f - near) - half_square) + s * (half_square + (w * even + z * odd))
    k_high = k * ln2_hi
    high = k_high + near
    return high, (near - (high - k_high)) + (lost + k * ln2_lo)


@jitable
def _log_to_base(f, factor, factor_low, series, k_low):
    """Return log(1 + f) * (factor + factor_low) + k_low; the series has that factor in it."""
    inlined()
    s = f / (like(2, f) + f)
    z = s * s
    square, half = f * f, like(0.5, f) * factor
    rest = float_fma(z, polynomial(z, series), half * square)
    low = float_fma(f, factor_low, k_low) + s * rest
    return float_fma(f, factor, float_fma(-half, square, low))


@jitable
def _to_base2(k, f):
    """Return the logarithm to base 2 of 2**k * (1 + f)."""
    inlined()
    tail = by_width(f, LOG2E_TAIL, LOG2E_TAIL_32)
    series = by_width(f, LOG2_SERIES, LOG2_SERIES_32)
    return k + _log_to_base(f, like(LOG2E, f), tail, series, like(0, f))


@jitable
def _to_base10(k, f):
    """Return the logarithm to base 10 of 2**k * (1 + f)."""
    inlined()
    high, low = by_width(f, (LOG10_2_HI, LOG10_2_LO), (LOG10_2_HI_32, LOG10_2_LO_32))
    tail = by_width(f, LOG10E_TAIL, LOG10E_TAIL_32)
    series = by_width(f, LOG10_SERIES, LOG10_SERIES_32)
    return float_fma(k, high, _log_to_base(f, like(LOG10E, f), tail, series, k * low))


def _logarithm(formula: Callable) -> Callable:
    """Return a logarithm from its formula in k and f."""

    def logarithm(x):
        inlined()
        k, f = log_split(x)
        return log_edges(x, formula(k, f))

    return logarithm


@jitable
def log_real(x):
    inlined()
    k, f = log_split(x)
    return log_edges(x, log_sum(k, f, like(0, x)))


def _log1p_real(x):
    inlined()
    one, infinity = like(1, x), like(INF, x)
    u = one + x
    k, m = log_parts(u)
    back = u - one
    lost = (one - (u - back)) + (x - back)
    value = float_copysign(log_sum(k, m - one, lost / u), x)
    value = value if x < infinity else x
    value = like(NAN, x) if x < -one else value
    return -infinity if x == -one else value


log = of_numpy(__name__, "log", float=log_real, complex=log_complex)
log1p = of_numpy(__name__, "log1p", float=_log1p_real, complex=log1p_complex)
log2 = of_numpy(__name__, "log2", float=_logarithm(_to_base2), complex=log2_complex)
log10 = of_numpy(__name__, "log10", float=_logarithm(_to_base10), complex=log10_complex)
