"""The exponential functions, in arithmetic that LLVM vectorises.

Each is range reduction plus polynomial, since LLVM cannot vectorise calls to libm. float32
has its own constants and stays float32: `like` and `by_width` give literals the type of x.
Constants named as in fdlibm are fdlibm's.
"""

from tinygrad_cg_kernels.elementary.of_complex import exp2_complex, exp_complex, expm1_complex
from tinygrad_cg_kernels.runtime.compile import jitable, of_numpy
from tinygrad_cg_kernels.runtime.intrinsics import (
    bits,
    by_width,
    estrin,
    float_absolute,
    float_fma,
    from_bits,
    inlined,
    like,
    polynomial,
)

LOG2E = 1.4426950408889634
LN2, LN2_TAIL = 0.6931471805599453, 2.3190468138462996e-17
LN2_HI, LN2_LO = 6.93147180369123816490e-01, 1.90821492927058770002e-10
LN2_HI_32, LN2_LO_32 = 6.9313812256e-01, 9.0580006145e-06
SHIFT = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, in the low bits
SHIFT_32 = 12582912.0
MANTISSA_BITS, MANTISSA_BITS_32 = 52, 23
TWO_BIASES = 2046, 254
# At these arguments both numbers of `two_powers` are 0. A product that underflows takes a processor
# a hundred times as long as others; e**x is 0 from -746 (-104) on, so few arguments are between.
LOWEST, LOWEST_32 = -1418.0, -176.0

# Minimax coefficients of (e**r - 1 - r) / r**2 for |r| <= log(2) / 2.
EXP_TAIL = (
    *(0.5000000000000001, 0.16666666666666669, 0.04166666666662413, 0.008333333333330062),
    *(0.0013888888917213717, 0.00019841269863053618, 2.4801521295954376e-05),
    *(2.7557268459997064e-06, 2.7620088445409746e-07, 2.510038549551032e-08),
)
EXP_TAIL_32 = (
    *(0.5, 0.1666666716337204, 0.04166646674275398),
    *(0.00833331048488617, 0.0013933649752289057, 0.00019890991097781807),
)
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
def power_of_biased(exponent):
    """Return 2**(exponent - bias), a normal number; bits of `exponent` beyond its field are lost.

    It is a float32 for an int32, a float64 for an int64, and the bias is 127 or 1023.
    """
    return from_bits(
        like(exponent << by_width(exponent, MANTISSA_BITS, MANTISSA_BITS_32), exponent)
    )


@jitable
def power_of_two(exponent):
    """Return 2**exponent, a normal number: float32 of an int32, float64 of an int64."""
    return power_of_biased(like(exponent + by_width(exponent, 1023, 127), exponent))


@jitable
def nearest_biased(x, y, bias):
    """Return an integer with n + bias in its low bits, and n as a float, for the n nearest x * y.

    n is an integer. n + bias is at least 0, and below 2**51 (2**22).
    """
    shift = by_width(x, SHIFT, SHIFT_32) + bias
    shifted = x * y + shift
    return bits(shifted), shifted - shift


@jitable
def nearest_product(x, y):
    """Return the integer nearest x * y, as an integer and a float, for one below 2**51 (2**22)."""
    shifted, count = nearest_biased(x, y, like(0, x))
    return like(shifted - bits(by_width(x, SHIFT, SHIFT_32)), shifted), count


@jitable
def nearest(x):
    """Return `nearest_product` of x and 1."""
    return nearest_product(x, like(1, x))


@jitable
def exp_parts(x, bias):
    """Return n + bias, r and t with e**x = 2**n * (1 + r + t); r is exact, and t much smaller."""
    inlined()
    ln2_hi, ln2_lo = by_width(x, (LN2_HI, LN2_LO), (LN2_HI_32, LN2_LO_32))
    n, count = nearest_biased(x, like(LOG2E, x), bias)
    high = x - count * ln2_hi
    low = count * ln2_lo
    r = high - low
    return n, high, (r * r) * polynomial(r, by_width(x, EXP_TAIL, EXP_TAIL_32)) - low


@jitable
def two_powers(exponent):
    """Return two normal numbers whose product is 2**(exponent - 2 * bias), if that is infinite
    or subnormal, too. They are 0 for the exponent 0.
    """
    inlined()
    half = like(exponent >> 1, exponent)
    return power_of_biased(half), power_of_biased(like(exponent - half, exponent))


@jitable
def scale_by_power(value, n):
    """Return value * 2**n, where that may be subnormal or overflow."""
    inlined()
    first, second = two_powers(like(n + by_width(n, *TWO_BIASES), n))
    return value * first * second


@jitable
def limited(x, low, high):
    """Return x limited to [low, high], or nan."""
    inlined()
    y = high if x > high else x
    return low if y < low else y


def _exp_real(x):
    inlined()
    low, high = by_width(x, (LOWEST, 710.0), (LOWEST_32, 89.0))
    n, r, t = exp_parts(limited(x, low, high), by_width(x, *TWO_BIASES))
    first, second = two_powers(n)
    return (first * (r + t) + first) * second


def _expm1_real(x):
    inlined()
    low, high, tiny = by_width(x, (-50.0, 710.0, 1e-20), (-30.0, 89.0, 1e-12))
    n, r, t = exp_parts(limited(x, low, high), by_width(x, 1022, 126))
    scale = power_of_biased(n)  # half of 2**n, which overflows before the result
    half = like(0.5, x)
    rounded = scale - half
    large = float_fma(scale, r, rounded)
    low = float_fma(scale, r, rounded - large) + ((scale - rounded) - half)
    value = large + (low + scale * t)
    return x if float_absolute(x) < tiny else value + value


def _exp2_real(x):
    inlined()
    low, high = by_width(x, (-2046.0, 1025.0), (-254.0, 129.0))  # see LOWEST
    y = limited(x, low, high)
    n, count = nearest_biased(y, like(1, x), by_width(x, *TWO_BIASES))
    part = y - count
    tail = part * part * estrin(part, by_width(x, EXP2, EXP2_32))
    first, second = two_powers(n)
    return (first * float_fma(part, like(LN2, x), tail) + first) * second


exp = of_numpy(__name__, "exp", float=_exp_real, complex=exp_complex)
exp2 = of_numpy(__name__, "exp2", float=_exp2_real, complex=exp2_complex)
expm1 = of_numpy(__name__, "expm1", float=_expm1_real, complex=expm1_complex)
