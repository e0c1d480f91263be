"""The inverse trigonometric and hyperbolic functions, in arithmetic that LLVM vectorises.

Coefficients are minimax fits by Remez's exchange in 50 digits. For float32, they are rounded one
after the other from the lowest, and the rest is fitted again. Rounding errors of intermediate steps
are kept where they would affect the result.
"""

import math

import numpy as np

from tinygrad_cg_kernels.elementary.exponential import LN2, LN2_HI_32, LN2_LO_32
from tinygrad_cg_kernels.elementary.logarithm import (
    INF,
    NAN,
    log_parts,
    log_sum,
)
from tinygrad_cg_kernels.elementary.of_complex import (
    arccos_complex,
    arccosh_complex,
    arcsin_complex,
    arcsinh_complex,
    arctan_complex,
    arctanh_complex,
)
from tinygrad_cg_kernels.runtime.compile import by_type, jitable, of_numpy
from tinygrad_cg_kernels.runtime.intrinsics import (
    bits,
    by_width,
    estrin,
    float_absolute,
    float_copysign,
    float_fma,
    float_minimum,
    from_bits,
    inlined,
    like,
    polynomial,
)

F = np.float32

# Two parts of pi / 2.
PIO2_HI, PIO2_LO = 1.5707963267948966, 6.123233995736766e-17

# (arctan(x)/x - 1) / x**2 in x**2, |x| <= 1.
ARCTAN = (
    *(-0.33333333333331994, 0.19999999999774834, -0.14285714272354458),
    *(0.11111110705510661, -0.090909016572422, 0.07692217310411258),
    *(-0.06665892109950863, 0.05877474762832625, -0.05239887378845158),
    *(0.046758932233906626, -0.04097058980029048, 0.03414512437763655),
    *(-0.025930542514514716, 0.017083878957348635, -0.009265158288013681),
    *(0.003900324044713443, -0.0011807235892457673, 0.00022683901634669494),
    -2.066130848608721e-05,
)
ARCTAN_32 = (
    *(-0.33333301544189453, 0.1999862641096115, -0.14265091717243195),
    *(0.1095665693283081, -0.08416455239057541, 0.058177925646305084),
    *(-0.03139429911971092, 0.0110288942232728, -0.0018187076784670353),
)
# (arcsin(x)/x - 1) / x**2 in x**2, |x| <= 1/2.
ARCSIN = (
    *(0.16666666666665383, 0.0750000000034306, 0.04464285682347774),
    *(0.030381959331213168, 0.022371753528401754, 0.017359770985939653),
    *(0.013884599949561552, 0.012173268509538131, 0.006510902514753399),
    *(0.019573768718885103, -0.016293857340146937, 0.0319588187855456),
)
ARCSIN_32 = (
    *(0.16666753590106964, 0.07495252043008804, 0.045476045459508896),
    *(0.024152053520083427, 0.04221193119883537),
)
# (arcsinh(x)/x - 1) / x**2 in x**2, |x| <= 1/2.
ARCSINH = (
    *(-0.16666666666665708, 0.07499999999773871, -0.04464285695717021),
    *(0.030381936823525166, -0.022371976716508563, 0.017350004736269995),
    *(-0.013937242958575022, 0.011365501687095185, -0.008910736477716922),
    *(0.005797464334802373, -0.002186735621209923),
)
# (arctanh(x)/x - 1) / x**2 in x**2, |x| <= 1/2; for float32 |x| <= 0.2735.
ARCTANH = (
    *(0.3333333333333402, 0.19999999999787382, 0.14285714308768077),
    *(0.11111109853730923, 0.09090949457918449, 0.07691477497343054),
    *(0.06678148540061046, 0.057727478262950015, 0.059915187170592465),
    *(0.014225159636167162, 0.14574315312147915, -0.15403309791786324),
    0.22547907222766123,
)
ARCTANH_32 = (
    *(0.3333331048488617, 0.20003031194210052),
    *(0.14165546000003815, 0.1295648068189621),
)
# (log((1 + s) / (1 - s)) - 2 s) / s**3 in s**2, for (1 + s) / (1 - s) within sqrt(2) of 1.
LOG_BRIEF = (0.6666677671012837, 0.3997749488532093, 0.2987310829474674)
HALF_LN2_HI_32, HALF_LN2_LO_32 = F(0.5 * LN2_HI_32), F(0.5 * LN2_LO_32)
ONE_BITS_32 = np.int32(0x3F800000)
ARCTANH_MOVE, ARCTANH_MOST = np.int32(1 << 21), np.int32(24 << 23)
EXPONENT_32 = np.int32(-1 << 23)
LARGE = 1.0e9  # its square is the same with 1 more or less


@jitable
def _half_pi(x):
    """Return pi / 2 in two parts, in the dtype of x."""
    inlined()
    high = like(PIO2_HI, x)
    return high, like((PIO2_HI - np.float64(high)) + PIO2_LO, x)


@jitable
def _add_to_pair(base, base_low, value, tail):
    """Return base + base_low + value + tail, where |base| >= |value| or base is 0."""
    inlined()
    high = base + value
    return high + ((value - (high - base)) + (base_low + tail))


# --- arctan, arctan2 --------------------------------------------------------------------


@jitable
def _arctan_tail(x):
    """Return arctan(x) - x for |x| <= 1; in float32 with what rounding took from the cube."""
    inlined()
    z = x * x
    cube = x * z
    cube_lost = float_fma(x, z, -cube) + x * float_fma(x, x, -z)
    r = polynomial(z, by_width(x, ARCTAN, ARCTAN_32))
    return by_width(x, cube * r, cube * r + cube_lost * r)


@jitable
def _arctan_sum(base, low, t):
    """Return base + (low + arctan(t) - t), |t| <= 1."""
    inlined()
    z = t * t
    cube = t * z
    r_32 = like(ARCTAN_32[0], z) + z * estrin(z, ARCTAN_32[1:])
    low_32 = float_fma(float_fma(t, z, -cube), r_32, low)
    return base + float_fma(cube, by_width(t, estrin(z, ARCTAN), r_32), by_width(t, low, low_32))


@jitable
def _slope(x):
    """Return the approximate derivative of arctan, for the rounding error of |x| <= 1."""
    return like(1, x) - like(0.5, x) * (x * x)


def _arctan_real(x):
    inlined()
    one, limit = like(1, x), like(1e30, x)
    right, right_low = _half_pi(x)
    size = float_minimum(float_absolute(x), limit)
    inverse = one / size
    # What rounding took from it, times the derivative of arctan at 1; farther out it is lost.
    lost = float_fma(-inverse, size, one)
    large = size > one
    t = -inverse if large else size
    high = right + t
    low = ((right - high) + t) + (right_low - lost * (like(0.5, x) * inverse))
    value = _arctan_sum(high if large else t, low if large else like(0, x), t)
    return float_copysign(value, x)


def _arctan2_real(y, x):
    """Return arctan2 from the quotient of the smaller by the larger, and its octant."""
    inlined()
    zero, one, infinity = like(0, x), like(1, x), like(INF, x)
    right, right_low = _half_pi(x)
    across, up = float_absolute(x), float_absolute(y)
    steep = up > across
    over, under = (across, up) if steep else (up, across)
    t = over / under
    lost = float_fma(-t, under, over) / under
    without = (under == zero) | (under == infinity)  # no quotient, or none to correct
    t = (one if over == infinity else over * zero) if without else t
    lost = zero if without else lost
    tail = _arctan_tail(t) + lost * _slope(t)
    backwards = bits(x) < 0
    base = like(2, x) * right if backwards else zero
    base_low = like(2, x) * right_low if backwards else zero
    base, base_low = (right, right_low) if steep else (base, base_low)
    minus = steep != backwards
    value = _add_to_pair(base, base_low, -t if minus else t, -tail if minus else tail)
    return float_copysign(value + (x - x if x != x else zero), y)


arctan = of_numpy(__name__, "arctan", float=_arctan_real, complex=arctan_complex)


@by_type(float=_arctan2_real)
def arctan2(y, x):
    """Return the angle, between -pi and pi, of (x, y); signed zeros and infinities as in C."""
    return np.arctan2(y, x)


# --- arcsin, arccos ---------------------------------------------------------------------


@jitable
def _arcsin_parts(size):
    """Return whether |x| is above 1/2, and in two parts half of arccos|x| then, else arcsin|x|.

    The former is arcsin(sqrt((1 - x) / 2)), whose argument takes a correction.
    """
    inlined()
    one, half = like(1, size), like(0.5, size)
    large = size > half
    square = half * (one - size)
    root = math.sqrt(square)
    lost = float_fma(-root, root, square) * (half / root)
    lost = like(0, size) if size == one else lost
    t = root if large else size
    z = t * t
    series = polynomial(z, by_width(z, ARCSIN, ARCSIN_32))
    return large, t, (t * z) * series + (lost if large else like(0, size))


def _arcsin_real(x):
    inlined()
    two = like(2, x)
    high, low = _half_pi(x)
    large, t, tail = _arcsin_parts(float_absolute(x))
    value = _add_to_pair(high, low, -two * t, -two * tail) if large else t + tail
    return float_copysign(value, x)


def _arccos_real(x):
    inlined()
    zero, two = like(0, x), like(2, x)
    high, low = _half_pi(x)
    large, t, tail = _arcsin_parts(float_absolute(x))
    negative = x < zero
    # 2 t, pi - 2 t, or pi / 2 -+ t.
    factor = two if large else like(1, x)
    away = large == negative
    t, tail = (-factor * t, -factor * tail) if away else (factor * t, factor * tail)
    base, base_low = (two * high, two * low) if negative else (zero, zero)
    base, base_low = (base, base_low) if large else (high, low)
    return _add_to_pair(base, base_low, t, tail)


arcsin = of_numpy(__name__, "arcsin", float=_arcsin_real, complex=arcsin_complex)
arccos = of_numpy(__name__, "arccos", float=_arccos_real, complex=arccos_complex)


# --- arcsinh, arccosh, arctanh ----------------------------------------------------------
# Logarithms of sums and quotients whose rounding errors are carried along; near zero, where
# a logarithm would lose digits, polynomials.


@jitable
def log_brief(x):
    """Return log(x) of a normal float64 to the digits of a float32."""
    inlined()
    k, m = log_parts(x)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    return k * LN2 + (s + s + (s * z) * polynomial(z, LOG_BRIEF))


@jitable
def _log_of_sum(high, low, twice):
    """Return log(high + low) for high >= sqrt(2), plus log(2) where it represents twice the sum."""
    inlined()
    k, m = log_parts(high)
    return log_sum(k + 1.0 if twice else k, m - 1.0, low / high)


@jitable
def _root_of_sum(high, low):
    """Return sqrt(high + low) in two parts."""
    root = math.sqrt(high)
    lost = (float_fma(-root, root, high) + low) * (0.5 / root)
    return root, (0.0 if root == 0.0 else lost)


@jitable
def _root32(high, low):
    """Return sqrt(high + low) in two parts, with nothing undefined at zero."""
    inlined()
    root = math.sqrt(high)
    return root, (float_fma(-root, root, high) + low) / (root + (root + F(1e-30)))


@jitable
def _log_of_two32(x, total, low):
    """Return log(total + low), or log(2 x) where x is large."""
    inlined()
    large = x > F(LARGE)
    total = x if large else total
    k, m = log_parts(total)
    correction = F(0) if large else low / total
    return log_sum(k + F(1) if large else k, m - F(1), correction)


@jitable
def _arcsinh64(x):
    """Return log(|x| + sqrt(x**2 + 1))."""
    inlined()
    size = float_absolute(x)
    square = size * size
    near = size + (size * square) * polynomial(square, ARCSINH)
    under = square + 1.0
    back = under - square
    lost = (square - (under - back)) + (1.0 - back)
    root, low = _root_of_sum(under, lost + float_fma(size, size, -square))
    total = size + root
    large = size > LARGE
    low = 0.0 if large else (size - (total - root)) + low
    far = _log_of_sum(size if large else total, low, large)
    value = near if size <= 0.5 else far
    return float_copysign(value, x) if size < INF else x


def _arcsinh32(x):
    """Return `_arcsinh64` of a float32: the root is the larger of the two terms."""
    inlined()
    size = float_absolute(x)
    under = float_fma(size, size, F(1))
    root, low = _root32(under, float_fma(size, size, F(1) - under))
    total = root + size
    value = _log_of_two32(size, total, (size - (total - root)) + low)
    return float_copysign(value if F(1e-4) < size < F(INF) else size, x)


def _arccosh64(x):
    """Return log(x + sqrt(x**2 - 1)), as log(1 + ...) near x = 1."""
    inlined()
    square = x * x
    less = square - 1.0
    lost = ((square - less) - 1.0) + float_fma(x, x, -square)
    under = less + lost
    root, low = _root_of_sum(under, lost - (under - less))
    large = x > LARGE
    total = x if large else x + root
    k, m = log_parts(total)
    above = x - 1.0
    f = above + root
    near = k == 0.0
    lost = (above - (f - root)) if near else (root - (total - x))
    correction = 0.0 if large else (lost + low) / total
    value = log_sum(k + 1.0 if large else k, f if near else m - 1.0, correction)
    value = value if x < INF else x
    return value if x >= 1.0 else NAN


def _arccosh32(x):
    """Return arccosh(x) by the root of v**2 + 2 v with x = 1 + v."""
    inlined()
    v = x - F(1)
    twice = v + v
    under = float_fma(v, v, twice)
    root, low = _root32(under, float_fma(v, v, twice - under))
    total = x + root
    value = _log_of_two32(x, total, (root - (total - x)) + low)
    value = value if x < F(INF) else x
    return value if x >= F(1) else F(NAN)


def _arctanh64(x):
    """Return log((1 + |x|) / (1 - |x|)) / 2."""
    inlined()
    size = float_absolute(x)
    square = size * size
    near = size + (size * square) * polynomial(square, ARCTANH)
    over, under = 1.0 + size, 1.0 - size
    quotient = over / under
    lost = float_fma(-quotient, under, over) + (size - (over - 1.0))
    k, m = log_parts(quotient)
    far = 0.5 * log_sum(k, m - 1.0, lost / over)
    far = far if size < 1.0 else INF
    value = near if size <= 0.5 else far
    return float_copysign(value, x) if size <= 1.0 else NAN


def _arctanh32(x):
    """Return k log(2) / 2 + arctanh(s) with 2**k near (1 + |x|) / (1 - |x|); |s| <= 0.28."""
    inlined()
    size = float_absolute(x)
    under = F(1) - size
    moved = np.int32(np.int32(bits(F(1) + size) - bits(under)) + ARCTANH_MOVE)
    shift = np.int32(moved & EXPONENT_32)
    shift = shift if shift < ARCTANH_MOST else ARCTANH_MOST
    p = from_bits(np.int32(shift + ONE_BITS_32))
    k = F(np.int32(shift >> np.int32(23)))
    rest = float_fma(-p, size, p)
    over = float_fma(p, size, F(1) - p) + size
    total = float_fma(F(2), rest, over)
    s = over / total
    lost = F(0.4) * float_fma(-s, total, over)  # 0.4 is near 1 / total, and near is enough
    z = s * s
    tail = float_fma(s * z, polynomial(z, ARCTANH_32), float_fma(k, HALF_LN2_LO_32, lost))
    head = float_fma(k, HALF_LN2_HI_32, s)
    value = head + ((float_fma(k, HALF_LN2_HI_32, -head) + s) + tail)
    value = value if size < F(1) else F(INF)
    return float_copysign(value, x) if size <= F(1) else F(NAN)


arcsinh = of_numpy(
    __name__, "arcsinh", float64=_arcsinh64, float32=_arcsinh32, complex=arcsinh_complex
)
arccosh = of_numpy(
    __name__, "arccosh", float64=_arccosh64, float32=_arccosh32, complex=arccosh_complex
)
arctanh = of_numpy(
    __name__, "arctanh", float64=_arctanh64, float32=_arctanh32, complex=arctanh_complex
)
