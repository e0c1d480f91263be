"""sin, cos and tan, in arithmetic that LLVM vectorises, right for arguments of every size.

The argument is reduced by quarter turns, and the rest is computed by a polynomial. A near argument
is reduced by subtracting multiples of pi / 2 in three parts (Cody and Waite), any other by
multiplying it with the relevant bits of 2 / pi (Payne and Hanek, 1983). Coefficients are minimax
fits of (sin(x)/x - 1) / x**2, (cos(x) - 1 + x**2/2) / x**4 and (tan(x)/x - 1) / x**2 in x**2 for
|x| <= pi / 4, by Remez's exchange in 50 digits. For float32, they are rounded one after the other
from the lowest, and the rest is fitted again.
"""

from collections.abc import Callable

import numpy as np

from tinygrad_cg_kernels.elementary.exponential import SHIFT, SHIFT_32
from tinygrad_cg_kernels.elementary.of_complex import cos_complex, sin_complex, tan_complex
from tinygrad_cg_kernels.runtime.compile import GUARDED, by_type, jitable, of_numpy, of_width
from tinygrad_cg_kernels.runtime.intrinsics import (
    bits,
    by_width,
    float_absolute,
    float_fma,
    from_bits,
    inlined,
    like,
    polynomial,
)

F = np.float32

# --- quarter turns --------------------------------------------------------------------

TWO_OVER_PI = 0.6366197723675814
PIO2_1, PIO2_2, PIO2_3 = 1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33
TWO_OVER_PI_32 = F(0.6366197723675814)
PIO2_1_32, PIO2_2_32 = F(1.5707963705062866), F(-4.371395334601402e-08)
PIO2_3_32 = F(2.5633440682570896e-12)
NEAR, NEAR_32 = 1.0e9, 8192.0

TWO_OVER_PI_WORDS = np.array(
    [
        *(0x00000000, 0x00000000, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0),
        *(0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561, 0xB7246E3A, 0x424DD2E0),
        *(0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484),
        *(0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B),
        *(0x1FF897FF, 0xDE05980F, 0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7),
        *(0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B, 0x3D0739F7, 0x8A5292EA),
        *(0x6BFB5FB1, 0x1F8D5D08, 0x56033046, 0xFC7B6BAB, 0xF0CFBC20),
    ],
    np.int64,
)
"""The bits of 2 / pi, 32 at a time, after 64 that are 0."""
LEAD = 64
WORD = 0xFFFFFFFF
TWO_52, TWO_52_BITS = 4503599627370496.0, 0x4330000000000000
IMPLICIT_BIT, IMPLICIT_BIT_32 = 1 << 52, 1 << 23
MANTISSA, MANTISSA_32 = IMPLICIT_BIT - 1, IMPLICIT_BIT_32 - 1
FARTHEST_LEFT = -30  # the exponents of far arguments' last bits are larger


@by_type(
    float=lambda x: float_absolute(x) <= by_width(x, NEAR, NEAR_32),
    complex=lambda x: False,  # there is no fast version
)
def near(x):
    """Return whether `sin_near`, `cos_near` and `tan_near` serve x."""
    return np.abs(x) <= NEAR_32


@jitable
def _reduce_near64(x):
    """Return the quadrant of x, and its offset there in two parts, for |x| <= NEAR."""
    inlined()
    shifted = x * TWO_OVER_PI + SHIFT
    n = shifted - SHIFT
    first = float_fma(-n, PIO2_1, x)  # exact: it is below 1, and a multiple of 2**-52
    second = n * PIO2_2
    second_lost = float_fma(n, PIO2_2, -second)
    high = first - second
    back = high - first
    lost = (first - (high - back)) - (second + back)
    return bits(shifted), high, float_fma(-n, PIO2_3, lost - second_lost)


@jitable
def _reduce_near32(x):
    """Return `_reduce_near64` of a float32; n times the second part of pi / 2 is exact."""
    inlined()
    shift = F(SHIFT_32)
    shifted = x * TWO_OVER_PI_32 + shift
    n = shifted - shift
    first = float_fma(-n, PIO2_1_32, x)
    high = float_fma(-n, PIO2_2_32, first)
    lost = float_fma(-n, PIO2_2_32, first - high)
    return bits(shifted), high, float_fma(-n, PIO2_3_32, lost)


@jitable
def _word(k, shift, j):
    """Return 32 bits of 2 / pi from bit 32 * (k + j) + shift on."""
    above, below = TWO_OVER_PI_WORDS[np.uintp(k + j)], TWO_OVER_PI_WORDS[np.uintp(k + j + 1)]
    return (((above << 32) | below) >> (32 - shift)) & WORD


@jitable
def _upper(x):
    """Return the upper 32 of 64 bits."""
    return (x >> 32) & WORD


@jitable
def _to_float(word):
    """Return a word of 32 bits as a float64."""
    return from_bits(word | TWO_52_BITS) - TWO_52


@jitable
def _reduce_far64(x):
    """Return the quadrant of x, and its offset there in two parts, for |x| > NEAR.

    x is an integer m times 2**e. m is multiplied with 192 bits of 2 / pi. They begin with the bit
    that stands for two turns times 2**-e; higher bits would only add whole circles.
    """
    inlined()
    pattern = bits(x) & 0x7FFFFFFFFFFFFFFF
    exponent = (pattern >> 52) - 1075
    position = LEAD - 2 + (exponent if exponent > FARTHEST_LEFT else FARTHEST_LEFT)
    k, shift = position >> 5, position & 31
    m = (pattern & MANTISSA) | IMPLICIT_BIT
    low, high = m & WORD, m >> 32
    w0, w1, w2 = _word(k, shift, 0), _word(k, shift, 1), _word(k, shift, 2)
    w3, w4, w5 = _word(k, shift, 3), _word(k, shift, 4), _word(k, shift, 5)
    low5 = w5 * low
    low4 = w4 * low
    total = (low4 & WORD) + w5 * high + _upper(low5)
    low3 = w3 * low
    total = (low3 & WORD) + w4 * high + _upper(low4) + _upper(total)
    p2 = total & WORD
    low2 = w2 * low
    total = (low2 & WORD) + w3 * high + _upper(low3) + _upper(total)
    p3 = total & WORD
    low1 = w1 * low
    total = (low1 & WORD) + w2 * high + _upper(low2) + _upper(total)
    p4 = total & WORD
    p5 = (w0 * low + w1 * high + _upper(low1) + _upper(total)) & WORD
    quadrant = (p5 + 0x20000000) >> 30
    f3 = ((p5 << 2) | (p4 >> 30)) & WORD
    f2 = ((p4 << 2) | (p3 >> 30)) & WORD
    f1 = ((p3 << 2) | (p2 >> 30)) & WORD
    negative = f3 >= 0x80000000
    flip = WORD if negative else 0
    a = _to_float(f3 ^ flip) * 2.0**-32
    b = _to_float(f2 ^ flip) * 2.0**-64
    c = _to_float(f1 ^ flip) * 2.0**-96 + _to_float(((p2 << 2) & WORD) ^ flip) * 2.0**-128
    first = a + b
    fraction = first + c
    rest = (b - (first - a)) + (c - (fraction - first))
    fraction, rest = (-fraction, -rest) if negative != (x < 0.0) else (fraction, rest)
    offset = fraction * PIO2_1
    low_offset = float_fma(fraction, PIO2_1, -offset) + (fraction * PIO2_2 + rest * PIO2_1)
    return (-quadrant if x < 0.0 else quadrant), offset + (x - x), low_offset


@jitable
def _reduce_far32(x):
    inlined()
    pattern = np.int64(bits(x)) & 0x7FFFFFFF
    exponent = (pattern >> 23) - 150
    position = LEAD - 2 + (exponent if exponent > FARTHEST_LEFT else FARTHEST_LEFT)
    k, shift = position >> 5, position & 31
    m = (pattern & MANTISSA_32) | IMPLICIT_BIT_32
    part2 = _word(k, shift, 2) * m
    part1 = _word(k, shift, 1) * m + _upper(part2)
    p1 = part1 & WORD
    p2 = (_word(k, shift, 0) * m + _upper(part1)) & WORD
    quadrant = (p2 + 0x20000000) >> 30
    f1 = ((p2 << 2) | (p1 >> 30)) & WORD
    f0 = (p1 << 2) & WORD
    fraction = (_to_float(f1) + _to_float(f0) * 2.0**-32) * 2.0**-32
    fraction = fraction - 1.0 if f1 >= 0x80000000 else fraction
    fraction = -fraction if x < F(0) else fraction
    offset = fraction * PIO2_1
    high = F(offset)
    signed = -quadrant if x < F(0) else quadrant
    return np.int32(signed), high + (x - x), F(offset - np.float64(high))


_reduce_near, _reduce_far = (
    of_width(_reduce_near64, _reduce_near32),
    of_width(_reduce_far64, _reduce_far32),
)


@jitable
def _reduce_argument(x):
    """Return the quadrant and offset of any x."""
    inlined()
    quadrant, high, low = _reduce_near(x)
    far_quadrant, far_high, far_low = _reduce_far(x)
    is_near = near(x)
    high, low = (high, low) if is_near else (far_high, far_low)
    return (quadrant if is_near else far_quadrant), high, low


# --- sin, cos, tan of a quadrant's offset -----------------------------------------------

SIN = (
    *(-0.16666666666666632, 0.008333333333322472, -0.0001984126982983567),
    *(2.755731369718563e-06, -2.5050758428029038e-08, 1.589679043844926e-10),
)
COS = (
    *(0.0416666666666666, -0.001388888888887446, 2.4801587289656836e-05),
    *(-2.7557314395198466e-07, 2.087572830389829e-09, -1.1359875274005708e-11),
)
TAN = (
    *(0.33333333333332693, 0.13333333333425318, 0.05396825392180701),
    *(0.021869489720217565, 0.008863217663989575, 0.0035923020778675613),
    *(0.001454681919227736, 0.0005953736780456798, 0.00022149806240610956),
    *(0.00013828787685252254, -2.8801280765089208e-05, 9.161407472643791e-05),
    *(-4.601485052342423e-05, 2.1130646271350084e-05),
)
SIN_32 = (-0.16666655242443085, 0.008332191035151482, -0.00019518569752108306)
COS_32 = (0.04166664555668831, -0.00138873013202101, 2.4430661142105237e-05)
TAN_32 = (
    *(0.3333335220813751, 0.13332583010196686, 0.05406865105032921),
    *(0.021238617599010468, 0.010945496149361134, -4.609583629644476e-05),
    0.004441775381565094,
)


@jitable
def _tan_tail64(x, y):
    """Return tan(x + y) - x for |x| <= pi / 4."""
    inlined()
    z = x * x
    increase = (x * z) * polynomial(z, TAN)
    tangent = x + increase
    return increase + (y + (tangent * tangent) * y)


@jitable
def _tan_tail32(x, y):
    """Return `_tan_tail64` of a float32, by a short series of the derivative."""
    inlined()
    z = x * x
    r = polynomial(z, TAN_32)
    cube = x * z
    lost = float_fma(x, float_fma(x, x, -z), float_fma(x, z, -cube))
    return float_fma(cube, r, float_fma(lost, r, float_fma(F(1.5) * z, y, y)))


_tan_tail = of_width(_tan_tail64, _tan_tail32)


@jitable
def sin_or_cos(quadrant, x, y):
    """Return the sine of x + y, |x| <= pi / 4, moved on by a quadrant."""
    inlined()
    half, z = like(0.5, x), x * x
    cube = x * z
    sine = x + (cube * polynomial(z, by_width(x, SIN, SIN_32)) + (y - (half * z) * y))
    slope = (cube * polynomial(z, by_width(x, COS, COS_32)) - y) - half * x
    cosine = x * slope + like(1, x)  # half * x is exact, so this rounds little but the result
    odd = quadrant & like(1, quadrant) != like(0, quadrant)
    value = cosine if odd else sine
    return value if quadrant & like(2, quadrant) == like(0, quadrant) else -value


@jitable
def _tangent(quadrant, x, y):
    """Return tan(x + y), |x| <= pi / 4, or -1 / tan(x + y) in the odd quadrants."""
    inlined()
    tail = _tan_tail(x, y)
    value = x + tail
    lost = tail - (value - x)
    inverse = like(-1, x) / value
    missing = float_fma(inverse, value, like(1, x)) + inverse * lost
    odd = quadrant & like(1, quadrant) != like(0, quadrant)
    return inverse + inverse * missing if odd else value


# --- sin, cos, tan ----------------------------------------------------------------------


@jitable
def _sin_at(x, quadrant, high, low):
    inlined()
    value = sin_or_cos(quadrant, high, low)
    return x if x == like(0, x) else value


@jitable
def _cos_at(x, quadrant, high, low):
    inlined()
    return sin_or_cos(like(quadrant + like(1, quadrant), quadrant), high, low)


@jitable
def _tan_at(x, quadrant, high, low):
    inlined()
    value = _tangent(quadrant, high, low)
    return x if x == like(0, x) else value


def _from_offset(function: Callable, reduce: Callable) -> Callable:
    """Return a function of x from one of x, its quadrant and its offset there."""

    def of_number(x):
        inlined()
        quadrant, high, low = reduce(x)
        return function(x, quadrant, high, low)

    return of_number


@by_type(float=_from_offset(_sin_at, _reduce_near), complex=sin_complex)
def sin_near(x):
    """Return sin of an x that is `near`, at less than half the cost."""
    return np.sin(x)


@by_type(float=_from_offset(_cos_at, _reduce_near), complex=cos_complex)
def cos_near(x):
    """Return cos of an x that is `near`, at less than half the cost."""
    return np.cos(x)


@by_type(float=_from_offset(_tan_at, _reduce_near), complex=tan_complex)
def tan_near(x):
    """Return tan of an x that is `near`, at less than half the cost."""
    return np.tan(x)


sin = of_numpy(__name__, "sin", float=_from_offset(_sin_at, _reduce_argument), complex=sin_complex)
cos = of_numpy(__name__, "cos", float=_from_offset(_cos_at, _reduce_argument), complex=cos_complex)
tan = of_numpy(__name__, "tan", float=_from_offset(_tan_at, _reduce_argument), complex=tan_complex)


GUARDED.update({sin: (near, sin_near), cos: (near, cos_near), tan: (near, tan_near)})
