"""Error functions, lgamma, digamma, polygamma and sinc, in arithmetic that LLVM vectorises.

Only polygamma and the derivatives of sinc are not vectorised, since the number of steps depends on
their order. Coefficients are minimax fits by Remez's exchange in 50 digits. ERF_32 and ERFC_BITS_32
were rounded one after the other from the lowest, with the rest fitted again. If intermediate
results need more digits than float32 has, they are float64.
"""

import math

import numpy as np

from tinygrad_cg_kernels.elementary.exponential import (
    LN2_HI,
    LN2_LO,
    LOG2E,
    expm1,
    nearest,
    nearest_product,
    power_of_two,
    scale_by_power,
)
from tinygrad_cg_kernels.elementary.inverse import log_brief
from tinygrad_cg_kernels.elementary.logarithm import INF, NAN, log1p, log_real
from tinygrad_cg_kernels.elementary.trigonometric import sin_or_cos
from tinygrad_cg_kernels.runtime.compile import by_type, jitable
from tinygrad_cg_kernels.runtime.intrinsics import (
    by_width,
    float_absolute,
    float_copysign,
    float_floor,
    float_fma,
    float_round,
    inlined,
    like,
    polynomial,
)
from tinygrad_cg_kernels.runtime.service import in_float64, outside

# --- erf, erfc --------------------------------------------------------------------------
# erf is x times a polynomial in x**2 near 0, and 1 - 2**-b farther out, where the bits b that
# 1 - erf is less than 1 are a polynomial in x.

# erf(x)/x - 1 in x**2, |x| <= 1; for float32 |x| <= 3/4.
ERF = (
    *(0.12837916709551256, -0.3761263890318355, 0.11283791670945253),
    *(-0.026866170643276215, 0.0052239776074234625, -0.0008548325989696735),
    *(0.00012055295320494279, -1.4924744663335474e-05, 1.6447517677871792e-06),
    *(-1.620917591174817e-07, 1.3722976265922403e-08, -7.801188874094099e-10),
)
ERF_32 = (
    *(0.12837916612625122, -0.376126229763031, 0.11283428221940994),
    *(-0.026836968958377838, 0.005118820816278458, -0.0006779939285479486),
)
# -log2(erfc(x)) at 1 in two parts, and what it is more at x, divided by x - 1, in x - 1, for
# 1 <= x <= 5.95; for float32 at 3/4, and up to 3.95. Beyond, erf rounds to 1.
BITS_AT_1, BITS_AT_1_LOW = 2.6684166967815997, -5.504279256272575e-17
BITS_AT_34, BITS_AT_34_LOW = 1.7916357517242432, -1.3300451406905722e-08
ERFC_BITS = (
    *(3.807225345853552, 1.2163466576898168, 0.0599599899526201, -0.014475749107719243),
    *(0.002853503471957952, -0.0003423549128572083, -3.799543309824017e-05),
    *(3.9354799836085435e-05, -1.4116387436251447e-05, 3.2446033818764514e-06),
    *(-4.227499347750455e-07, -1.391480248939905e-08, 2.0724667022110056e-08),
    *(-4.7625539263769446e-09, 5.399038281447991e-10, -2.5953797816404032e-11),
)
ERFC_BITS_32 = (
    *(3.211256265640259, 1.1654947996139526, 0.07626131922006607),
    *(-0.018227823078632355, 0.0032490768935531378, -0.0003092970000579953),
)
# (2**f - 1) / f, |f| <= 1/2.
EXP2 = (
    *(0.6931471805599453, 0.24022650695910097, 0.05550410866482166),
    *(0.00961812910760688, 0.001333355814639542, 0.00015403530441752034),
    *(1.5252733853790777e-05, 1.3215442578721577e-06, 1.0178051534652986e-07),
    *(7.072587674460732e-09, 4.4567022105781606e-10),
)
EXP2_BRIEF = (
    *(0.6931471805816517, 0.24022650921054578, 0.055504107274343704),
    *(0.009618056861547158, 0.0013333669349438215, 0.00015461390776848883),
    1.5252800713760628e-05,
)
EXP2_32 = (
    *(0.6931471880345832, 0.24022651091192532, 0.055503570595448526),
    *(0.009618029987681631, 0.0013390892029603546, 0.00015469939157882243),
)
# (e**r - 1 - r) / r**2, |r| <= log(2) / 2.
EXP_TAIL = (
    *(0.5000000000000001, 0.16666666666666644, 0.04166666666662411),
    *(0.008333333333356324, 0.0013888888917242609, 0.00019841269784441889),
    *(2.4801521233872096e-05, 2.755735560259632e-06, 2.7620123600193455e-07),
    2.5068188044261604e-08,
)
# (1 + 2 x) exp(x**2) erfc(x) in (x - 3) / (x + 3), 3/4 <= x <= 28, after Shepherd and Laframboise
# (1981).
ERFCX = (
    *(1.2530080582697296, -0.13562110612458173, -0.04756229435344321),
    *(0.12964515870283388, -0.11927366341584696, 0.06830802734111421),
    *(-0.023770514903424356, 0.002529391865841515, 0.0018886901364129813),
    *(-0.0007798327260369063, -0.00010515789991522868, 0.000125101657518837),
    *(4.9395251641567605e-06, -2.0106898987044563e-05, -6.989620952546162e-07),
    *(3.479707802134288e-06, 2.9186884027814763e-07, -6.123887801183991e-07),
    *(-6.741890322593815e-08, 8.314894954490433e-08),
)
SQRT_HALF, SQRT_HALF_LOW = 0.7071067811865476, -4.833646656726457e-17
DENSITY_AT_0, DENSITY_AT_0_LOW = 0.3989422804014327, -2.49232720227773e-17  # 1 / sqrt(2 pi)
ERFCX_LOW = 2.6599543606771002e-17  # what rounding took from the first
# (x + 3) exp(x**2) erfc(x) in the same, 0 <= x <= 11.
ERFCX_BRIEF = (
    *(1.0740069070983338, -0.8833944539507771, 0.5902283560165261),
    *(-0.31046722138311655, 0.11952779337184762, -0.026827820695500392),
    *(-0.001212919778451443, 0.0030375323575792773, -0.0005445267367389489),
    *(-0.0002855585931280602, 9.48225159155811e-05, 3.6786717369021055e-05),
    -1.1681597271297869e-06,
)


def _erf_real(x):
    inlined()
    one = like(1, x)
    edge, most = by_width(x, (1.0, 5.95), (0.75, 3.95))
    base, base_low = by_width(x, (BITS_AT_1, BITS_AT_1_LOW), (BITS_AT_34, BITS_AT_34_LOW))
    size = float_absolute(x)
    near = size + size * polynomial(size * size, by_width(x, ERF, ERF_32))
    u = (most if size > most else size) - edge
    more = polynomial(u, by_width(x, ERFC_BITS, ERFC_BITS_32))
    exponent, n = nearest(u * more + base)
    f = ((n - base) - u * more) - base_low
    power = power_of_two(like(-exponent, exponent))
    far = one - (power + power * (f * polynomial(f, by_width(x, EXP2, EXP2_32))))
    return float_copysign(far if size > edge else near, x)


@jitable
def _decay64(square, square_low):
    """Return n and r with exp(-square - square_low) = 2**n (1 + r)."""
    inlined()
    exponent, n = nearest_product(square, -LOG2E)
    nearly = float_fma(-n, LN2_HI, -square)
    low = float_fma(-n, LN2_LO, -square_low)
    r = nearly + low
    low -= r - nearly
    return exponent, r + (low + (r * r) * polynomial(r, EXP_TAIL))


@jitable
def _tail64(a, square, square_low):
    """Return erfc(a) as exp(-a**2) erfcx(a) / (1 + 2 a), errors carried along, for a >= 3/4.

    `square` and its rounding error are a**2.
    """
    inlined()
    t = (a - 3.0) / (a + 3.0)
    rest = t * polynomial(t, ERFCX[1:])
    over = ERFCX[0] + rest
    over_low = (rest - (over - ERFCX[0])) + ERFCX_LOW
    under = 1.0 + 2.0 * a
    under_low = 1.0 - (under - 2.0 * a)
    inverse = 1.0 / under
    quotient = over * inverse
    lost = float_fma(-quotient, under, over) + (over_low - quotient * under_low)
    exponent, grown = _decay64(square, square_low)
    value = quotient + (quotient * grown + lost * inverse * (1.0 + grown))
    return scale_by_power(value, exponent)


@jitable
def _near64(x, x_low):
    """Return erfc(x + x_low) near 0, as 1 - erf."""
    inlined()
    head = 1.0 - x
    return head + ((((1.0 - head) - x) - x_low) - x * polynomial(x * x, ERF))


def _erfc64(x):
    inlined()
    size = float_absolute(x)
    a = 28.0 if size > 28.0 else size
    square = a * a
    far = _tail64(a, square, float_fma(a, a, -square))
    far = 2.0 - far if x < 0.0 else far
    return _near64(x, 0.0) if size < 0.75 else far


@jitable
def _half_square(x, most):
    """Return |x|, at most `most`, and half of its square in two parts."""
    inlined()
    size = float_absolute(x)
    size = most if size > most else size
    square = size * size
    return size, 0.5 * square, 0.5 * float_fma(size, size, -square)


@jitable
def _ndtr64(x):
    """Return erfc(-x / sqrt(2)) / 2, where half the square of x, not of the quotient, counts."""
    inlined()
    size, half, half_low = _half_square(x, 39.5)
    a = size * SQRT_HALF
    far = _tail64(a, half, half_low)
    far = 2.0 - far if x > 0.0 else far
    z = -x * SQRT_HALF
    near = _near64(z, float_fma(-x, SQRT_HALF, -z) - x * SQRT_HALF_LOW)
    return 0.5 * (near if a < 0.75 else far)


@jitable
def _decay32(square):
    """Return exp(-square), for float32."""
    inlined()
    missing = square * LOG2E
    exponent, n = nearest(missing)
    f = n - missing
    return power_of_two(-exponent) * (1.0 + f * polynomial(f, EXP2_BRIEF))


@jitable
def _tail32(a, square):
    """Return erfc(a) to the precision of float32, for a >= 0; `square` is a**2."""
    inlined()
    inverse = 1.0 / (a + 3.0)
    return polynomial((a - 3.0) * inverse, ERFCX_BRIEF) * inverse * _decay32(square)


def _erfc32(x):
    inlined()
    size = float_absolute(np.float64(x))
    a = 11.0 if size > 11.0 else size
    value = _tail32(a, a * a)
    return np.float32(2.0 - value if x < 0 else value)


@jitable
def _ndtr_wide(x):
    """Return the distribution function to the precision of float32, in float64."""
    inlined()
    size, half, _ = _half_square(x, 15.5)
    value = 0.5 * _tail32(size * SQRT_HALF, half)
    return 1.0 - value if x > 0 else value


def _ndtr32(x):
    inlined()
    return np.float32(_ndtr_wide(np.float64(x)))


def _density64(x):
    inlined()
    _, half, half_low = _half_square(x, 39.5)
    exponent, grown = _decay64(half, half_low)
    return scale_by_power(DENSITY_AT_0 + (DENSITY_AT_0 * grown + DENSITY_AT_0_LOW), exponent)


def _density32(x):
    inlined()
    _, half, _ = _half_square(np.float64(x), 15.5)
    return np.float32(DENSITY_AT_0 * _decay32(half))


def _gelu64(x):
    inlined()
    return _ndtr64(x) * (-39.5 if x < -39.5 else x)


def _gelu32(x):
    inlined()
    wide = np.float64(x)
    return np.float32(_ndtr_wide(wide) * (-15.5 if wide < -15.5 else wide))


@by_type(float=_erf_real)
def erf(x):
    """Return the error function: 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x."""
    return np.vectorize(math.erf)(x)


@by_type(float64=_erfc64, float32=_erfc32)
def erfc(x):
    """Return 1 - erf(x), without cancellation."""
    return np.vectorize(math.erfc)(x)


@by_type(float64=_ndtr64, float32=_ndtr32)
def ndtr(x):
    """Return the distribution function of the normal distribution, without cancellation."""
    return 0.5 * erfc(-SQRT_HALF * x)


@by_type(float64=_density64, float32=_density32)
def normal_density(x):
    """Return the density of the normal distribution, exp(-x**2 / 2) / sqrt(2 pi)."""
    return np.exp(-0.5 * x * x) * DENSITY_AT_0


@by_type(float64=_gelu64, float32=_gelu32)
def gelu(x):
    """Return x times the normal distribution function at x; -0 at -inf."""
    return np.maximum(x, -39.5) * ndtr(x)


# --- erfinv -----------------------------------------------------------------------------
# x times a function of w = -log(1 - x**2), as Giles (2010): polynomials in w where it is small,
# in its square root elsewhere.

# erfinv(x)/x in w - 5/2, w <= 5.
ERFINV_NEAR = (
    *(1.501409351110792, 0.24664027674416708, -0.004177317724382917),
    *(-0.0012527079078118299, 0.00021825026433949758, -4.996079596125982e-06),
    *(-3.41661958510344e-06, 4.787252142598107e-07, 1.3416789020376846e-08),
    *(-1.0861165270693286e-08, 9.07314684090626e-10, 1.196050923874988e-10),
    *(-3.110793232301847e-11, 9.121801257790631e-13, 5.371738316724537e-13),
    *(-7.625227299458528e-14, -3.176770637753723e-15, 1.9124726248731954e-15),
    *(-1.013842775810736e-16, -2.793307518330739e-17, 2.5376898020240836e-18),
    2.032915390949625e-19,
)
# The same in sqrt(w) - 2.9375, 5 <= w <= 13.69.
ERFINV_MIDDLE = (
    *(2.770410946900615, 1.0003991786017232, 0.011021012563204521),
    *(-0.009211424728007036, 0.0068851879518029594, -0.0041231333756632715),
    *(0.0015135612301423963, 2.279365304034425e-05, -0.0004057996971841507),
    *(0.00022840127398357764, -2.470076863753718e-05, -4.0945868327718636e-05),
    *(2.596011840358626e-05, -3.5985932324202547e-06, -3.8598518397516405e-06),
    *(2.5753934393590445e-06, -3.6237614420547694e-07, -3.3817587633407376e-07),
    *(1.6838552754373664e-07, -1.4874228094119942e-08),
)
# The same in sqrt(w) - 4.875, up to the last number below 1.
ERFINV_FAR = (
    *(4.7236171149637975, 1.0103244465623917, -5.055681952830506e-05),
    *(-0.00025628873482982077, 8.94292613802529e-05, -2.3429530801719722e-05),
    *(5.5079802935213064e-06, -1.268334682195679e-06, 3.3147577368528435e-07),
    *(-1.209674015303116e-07, 6.034402508356696e-08, -3.236243151864791e-08),
    *(1.578910561396964e-08, -6.475057548954527e-09, 2.1321646081367888e-09),
    *(-4.86125859010619e-10, -2.4638187237245173e-11, 9.025277418418741e-11),
    *(-3.409756960060395e-11, 3.719424975442317e-12),
)
# To the digits of a float32: in w - 5/2, w <= 5, and in sqrt(w) - 3.125 beyond.
ERFINV_BRIEF = (
    *(1.5014093517108147, 0.2466402758219098, -0.004177324813226352),
    *(-0.0012527050467800208, 0.00021826382499420875, -4.99856082179733e-06),
    *(-3.4261499159360616e-06, 4.796093393827362e-07, 1.6485647008470405e-08),
    *(-1.1006249038353416e-08, 4.350080117757004e-10, 1.3171993445038843e-10),
)
ERFINV_FAR_BRIEF = (
    *(2.958320147215174, 1.0037186754036136, 0.007048112358448771),
    *(-0.005300579620953758, 0.0037915767266871784, -0.002522725928542798),
    *(0.0012740226682465923, -0.0003221618340840172, -0.00011871836332146907),
    *(0.0001329032283092695, -2.882943595418081e-05, -3.904358705730187e-06),
)


@jitable
def _erfinv64(x):
    inlined()
    size = float_absolute(x)
    w = -log_real((1.0 - size) * (1.0 + size))
    root = math.sqrt(w)
    near = polynomial(w - 2.5, ERFINV_NEAR)
    middle = polynomial(root - 2.9375, ERFINV_MIDDLE)
    far = polynomial(root - 4.875, ERFINV_FAR)
    value = x * (near if w < 5.0 else (middle if root < 3.7 else far))
    value = value if size < 1.0 else x * INF
    return value if size <= 1.0 else NAN


def _erfinv32(x):
    inlined()
    wide = np.float64(x)
    size = float_absolute(wide)
    w = -log_brief((1.0 - size) * (1.0 + size))
    near = polynomial(w - 2.5, ERFINV_BRIEF)
    far = polynomial(math.sqrt(w) - 3.125, ERFINV_FAR_BRIEF)
    value = wide * (near if w < 5.0 else far)
    value = value if size < 1.0 else wide * INF
    return np.float32(value if size <= 1.0 else NAN)


@by_type(float64=_erfinv64, float32=_erfinv32)
def erfinv(x):
    """Return the number whose erf is x; nan beyond -1 and 1, which give infinities."""
    return outside(_erfinv64)(x)


# --- erfcinv ----------------------------------------------------------------------------


HALF_ROOT_PI = 0.886226925452758


@jitable
def _erfcinv_real(x):
    """Return erfinv(1 - x) where 1 - x loses little; else by Newton's method on log(erfc(y) / x).

    y**2 - log(erfcx(y)) + log(x) is nearly a parabola: five steps from sqrt(-log(x)) are enough.
    """
    inlined()
    wide = np.float64(x)
    near = _erfinv64(1.0 - wide)
    logarithm = log_real(wide)
    y = math.sqrt(-logarithm)
    y = y if 0.0 < wide < 0.25 else 1.0
    for _ in range(5):
        t = (y - 3.0) / (y + 3.0)
        scaled = (ERFCX[0] + t * polynomial(t, ERFCX[1:])) / (1.0 + 2.0 * y)
        value = (float_fma(y, y, logarithm) - log_real(scaled)) * scaled
        y -= value * HALF_ROOT_PI
    value = y if wide < 0.25 else near
    value = INF if wide == 0.0 else value
    return like(value if wide >= 0.0 else NAN, x)


@by_type(float=_erfcinv_real)
def erfcinv(x):
    """Return the number whose erfc is x; infinite at 0 and 2, nan beyond."""
    return outside(_erfcinv_real)(x)


# --- lgamma -----------------------------------------------------------------------------

PI, PI_LOW = 3.141592653589793, 1.2246467991473532e-16
# log(gamma(2 + d)) / d, |d| <= 1/2.
LGAMMA = (
    *(0.42278433509846713, 0.3224670334241133, -0.06735230105319577),
    *(0.020580808427765943, -0.00738555102892498, 0.0028905103318425363),
    *(-0.001192753901333091, 0.0005096694950992465, -0.00022315497224514546),
    *(9.945794424218403e-05, -4.49237717885517e-05, 2.0503544431529583e-05),
    *(-9.456080615485205e-06, 4.393515465622563e-06, -1.9748200949788922e-06),
    *(8.99920760064286e-07, -5.806203158763999e-07, 2.976826059940412e-07),
)
# Stirling's series: B(2k) / (2k (2k - 1)) in x**-2, times 1 / x.
STIRLING = (
    *(1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400),
)
STIRLING_HALF = 0.4189385332046727  # (log(2 pi) - 1) / 2


@jitable
def sin_cos_quadrant(x):
    """Return sin(pi x) and cos(pi x) for x >= 0."""
    inlined()
    quarters = float_round(2.0 * x)
    offset = x - 0.5 * quarters
    high = offset * PI
    low = float_fma(offset, PI, -high) + offset * PI_LOW
    quadrant = np.int64(quarters - 4.0 * float_floor(0.25 * quarters))
    return sin_or_cos(quadrant, high, low), sin_or_cos(quadrant + 1, high, low)


@jitable
def lgamma_positive(x):
    """Return log(gamma(x)): below 8.5 by a product and a number near 2, above by Stirling."""
    inlined()
    y, product = x, 1.0
    for _ in range(6):
        y, product = (y - 1.0, product * (y - 1.0)) if y > 2.5 else (y, product)
    tiny, small, large = x < 0.5, x < 1.5, x >= 8.5
    d = x if tiny else (x - 1.0 if small else y - 2.0)
    product = x * (1.0 + x) if tiny else (x if small or large else product)
    logarithm = log_real(product)
    low = d * polynomial(d, LGAMMA) + (-logarithm if small else logarithm)
    inverse = 1.0 / x
    series = inverse * polynomial(inverse * inverse, STIRLING)
    high = (x - 0.5) * (logarithm - 1.0) + (STIRLING_HALF + series)
    high = high if x < INF else x
    return high if large else low


def _lgamma_real(x):
    """Return log|gamma(x)|; below 0 by reflection: gamma(x) gamma(-x) = -pi / (x sin(pi x))."""
    inlined()
    wide = np.float64(x)
    size = float_absolute(wide)
    positive = lgamma_positive(size)
    sine, _ = sin_cos_quadrant(size)
    negative = -log_real(size * float_absolute(sine) / PI) - positive
    negative = positive if size < 1e-20 else negative
    negative = INF if size == float_floor(size) else negative
    return like(positive if wide > 0.0 or wide != wide else negative, x)


@by_type(float=_lgamma_real)
def lgamma(x):
    """Return log(|gamma(x)|); infinite at 0 and the negative integers."""
    return np.vectorize(math.lgamma)(x)


# --- digamma ----------------------------------------------------------------------------

# digamma(x) / (x - root) in x - 3/2, 1 <= x <= 2, and two parts of its root there.
DIGAMMA = (
    *(0.951055876031833, -0.4236274212814606, 0.24054248424077396),
    *(-0.14840492305388958, 0.09498872445497479, -0.06192213327472756),
    *(0.04076083381068782, -0.026975796690315936, 0.017907252484862714),
    *(-0.011908219433937455, 0.007926943962993718, -0.005279946131193548),
    *(0.0035190126610428747, -0.0023454213851051495, 0.0015565962760627856),
    *(-0.0010368407651053274, 0.0007234480480340845, -0.0004847303044716711),
    *(0.00022700316012803576, -0.00014698381212934687, 0.00025986991376586124),
    -0.00017655474818135863,
)
ROOT, ROOT_LOW = 1.4616321449683622, 9.549995429965697e-17
# B(2k) / (2k) in x**-2.
DIGAMMA_SERIES = (
    *(1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160),
)


@jitable
def digamma_positive(x):
    """Return digamma(x): below 10 by inverses and a number in [1, 2], above asymptotically."""
    inlined()
    small = x < 1.0
    y = x + 1.0 if small else x
    over, under = (-1.0, x) if small else (0.0, 1.0)
    for _ in range(8):
        less = y - 1.0
        y, over, under = (less, over * less + under, under * less) if y > 2.0 else (y, over, under)
    low = ((y - ROOT) - ROOT_LOW) * polynomial(y - 1.5, DIGAMMA) + over / under
    inverse = 1.0 / x
    square = inverse * inverse
    high = log_real(x) - (0.5 * inverse + square * polynomial(square, DIGAMMA_SERIES))
    return high if x >= 10.0 else low


@jitable
def _digamma_real(x):
    """Return digamma(x); below 0 it is digamma(-x) - 1 / x - pi / tan(pi x), by reflection."""
    inlined()
    wide = np.float64(x)
    size = float_absolute(wide)
    positive = digamma_positive(size)
    sine, cosine = sin_cos_quadrant(size)
    negative = positive + (1.0 / size + PI * (cosine / sine))
    negative = NAN if size == float_floor(size) else negative
    value = positive if wide > 0.0 or wide != wide else negative
    return like(-1.0 / wide if size < 1e-20 else value, x)


@by_type(float=_digamma_real)
def digamma(x):
    """Return the derivative of lgamma; -inf at 0, inf at -0, nan at the negative integers."""
    return outside(_digamma_real)(x)


# --- polygamma --------------------------------------------------------------------------

# B(2k) / (2k)!: the factors of the Euler-Maclaurin sum.
EULER_MACLAURIN = (
    *(1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000),
    *(1 / 74724249600, -3617 / 10670622842880000, 43867 / 5109094217170944000),
)


@jitable
def _term(n, x):
    """Return n! / x**(n + 1), factor by factor, or it would overflow before the result does."""
    value = 1.0 / x
    for k in range(1, np.int64(n) + 1):
        value *= k / x
    return value


@jitable
def _sum_of_terms(n, x):
    """Return n! zeta(n + 1, x), x > 0: terms of x, x + 1, ..., the last by Euler and Maclaurin."""
    total, limit = 0.0, 11.0 + n
    while x < limit:
        total += _term(n, x)
        x += 1.0
    term, inverse = _term(n, x), 1.0 / (x * x)
    total += term * (x / n + 0.5)
    factor = (n + 1.0) * term / x
    for k in range(len(EULER_MACLAURIN)):
        total += EULER_MACLAURIN[k] * factor
        factor *= (n + 2 * k + 2.0) * (n + 2 * k + 3.0) * inverse
    return total


@jitable
def _difference_of_terms(n, x, y):
    """Return n! (zeta(n + 1, x) - zeta(n + 1, y)) of x and y near each other, x + y = 1.

    Each difference of powers is one of them times expm1 of the difference of their logarithms, so
    that no digits are lost where x and y are the same but for a few.
    """
    total, limit, gap = 0.0, 11.0 + n, y - x
    while y < limit:
        total += _term(n, y) * expm1((n + 1.0) * log1p(gap / x))
        x += 1.0
        y += 1.0
    log = log1p(gap / x)
    term, inverse = _term(n, y), 1.0 / (y * y)
    total += term * (y / n * expm1(n * log) + 0.5 * expm1((n + 1.0) * log))
    factor = (n + 1.0) * term / y
    for k in range(len(EULER_MACLAURIN)):
        total += EULER_MACLAURIN[k] * factor * expm1((n + 2.0 * k + 2.0) * log)
        factor *= (n + 2 * k + 2.0) * (n + 2 * k + 3.0) * inverse
    return total


@in_float64
def polygamma(n, x):
    """Return the n-th derivative of digamma for whole n from 0 to 170, nan for others.

    At 0 and the negative integers infinite for odd n, else nan (digamma(0) is -inf).

    It is (-1)**(n + 1) n! zeta(n + 1, x); below 0 it is found by its fraction, and the other
    side's.
    """
    if not (0.0 <= n <= 170.0 and n == float_floor(n)) or x != x or x == -INF:
        return NAN
    if n == 0.0:
        return _digamma_real(x)
    sign = 1.0 if n % 2.0 == 1.0 else -1.0
    if x > 0.0:
        return sign * (_sum_of_terms(n, x) if x < INF else 0.0)
    fraction = x - float_floor(x)
    if fraction == 0.0:  # a pole: of one sign on both sides for odd n
        return INF if sign > 0.0 else (-1.0 / x if x == 0.0 else NAN)
    if sign < 0.0 and 0.25 < fraction < 0.75:
        return -(_difference_of_terms(n, fraction, 1.0 - fraction) + _sum_of_terms(n, 1.0 - x))
    beyond = _sum_of_terms(n, (float_floor(x) + 1.0) - x) - _sum_of_terms(n, 1.0 - x)
    return sign * (_sum_of_terms(n, fraction) + sign * beyond)


# --- sinc -------------------------------------------------------------------------------


@jitable
def _sinc_real(x):
    """Return sin(pi x) / (pi x), with both computed to more than their digits."""
    inlined()
    size = float_absolute(np.float64(x))
    sine, _ = sin_cos_quadrant(size)
    high = size * PI
    low = float_fma(size, PI, -high) + size * PI_LOW
    quotient = sine / high
    value = quotient - quotient * (low / high)
    value = 0.0 if size > 1e300 and size < INF else value  # where pi x may overflow
    return like(1.0 if size < 1e-9 else value + 0.0, x)  # zeros are positive, as those of sinPi


@by_type(float=_sinc_real)
def sinc(x):
    """Return sin(pi x) / (pi x), 1 at 0."""
    return outside(_sinc_real)(x)


@jitable
def _sine_derivative(n, sine, cosine):
    """Return the n-th derivative of sin, from the sine and the cosine of its argument."""
    value = cosine if n % 2 else sine
    return -value if n % 4 >= 2 else value


@in_float64
def sinc_derivative(n, x):
    """Return the n-th derivative of sinc for whole n from 0 to 170, nan for others.

    The recurrence is u f(k) = sin(k)(u) - k f(k - 1), u = pi x, where f(k) is a
    derivative of sin(u) / u: upwards from f(0) where that shrinks errors, else downwards, as
    Miller.
    """
    if not (0.0 <= n <= 170.0 and n == float_floor(n)) or not float_absolute(x) < INF:
        return NAN
    order, size = np.int64(n), float_absolute(x)
    sine, cosine = sin_cos_quadrant(size)
    u = size * PI
    if u >= n + 1.0:
        value = sine / u
        for k in range(1, order + 1):
            value = (_sine_derivative(k, sine, cosine) - k * value) / u
    else:
        value = 0.0  # f(k) is less than 1 / k, and the error falls by u / k at each step
        for k in range(3 * order + 80, order, -1):
            value = (_sine_derivative(k, sine, cosine) - u * value) / k
    value *= PI**n
    return -value if x < 0.0 and order % 2 else value
