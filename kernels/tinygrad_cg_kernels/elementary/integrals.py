"""Dawson's, the exponential, Fresnel's and Spence's integrals, and derivatives of two of them.

On each of several intervals, a function of x, or of 1 / x, is a polynomial that interpolates at
Chebyshev's points, computed by mpmath in 45 digits. The integral of log(x) / (x - 1) is a power
series in log(x), with Bernoulli's numbers. Nothing is vectorised, and all dtypes compute in
float64.
"""

import math

import numpy as np

from tinygrad_cg_kernels.elementary.exponential import exp
from tinygrad_cg_kernels.elementary.logarithm import INF, NAN, log1p, log_real
from tinygrad_cg_kernels.elementary.special import sin_cos_quadrant
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.intrinsics import (
    float_absolute,
    float_copysign,
    float_floor,
    float_fma,
    number_by_number,
    polynomial,
)
from tinygrad_cg_kernels.runtime.service import in_float64

# --- Dawson's integral ------------------------------------------------------------------
# D(x) / x in x**2 up to 1.5, D in x from 1.5 to 3 and from 3 to 5, x D(x) in 1 / x**2 beyond.

DAWSON_NEAR = (
    *(0.5014241400133203, -0.31481422752164534, 0.131142594864667, -0.04040863347418886),
    *(0.009838627648841376, -0.0019765135732559415, 0.0003376577196608458, -5.0151763199420845e-05),
    *(6.586752812624009e-06, -7.751958612158781e-07, 8.263603768235818e-08, -8.049747146971687e-09),
    *(7.21726962057095e-10, -5.996019168520379e-11, 4.732821357698001e-12, -3.4231365883966134e-13),
)
DAWSON_MIDDLE = (
    *(0.25655426284484917, -0.1158706371013659, 0.051219927258327566, -0.01417092925260621),
    *(-0.0024488829845288936, 0.004841455096391591, -0.002264152931953595, 0.000313554166001817),
    *(0.0001861158409358506, -0.00010898771117099387, 1.5845326651551008e-05),
    *(6.284836307410129e-06, -3.253127707898431e-06, 3.006818031689128e-07, 1.8896007895847798e-07),
    *(-6.506736159265573e-08, 3.9833888002973613e-10, 4.22751582847546e-09, -7.87363568033726e-10),
    *(-1.1119819231713114e-10, 5.035045180575716e-11, -1.7370999901105696e-12),
)
DAWSON_BEYOND = (
    *(0.12934800123600512, -0.03478400988804094, 0.009788038316158598, -0.0029120955843946407),
    *(0.0009301720107112218, -0.0003234369834059328, 0.00012119197428356737),
    *(-4.6094546470303595e-05, 1.579655307692208e-05, -3.7981500207820175e-06),
    *(-1.2079150328876948e-07, 7.784294581132241e-07, -4.988181281371731e-07),
    *(1.8718479390637923e-07, -3.5709246778955385e-08, -5.875675391627304e-09),
    *(7.410372018061073e-09, -2.837682327772159e-09, 4.2947540168095336e-10),
    *(1.4710181852321267e-10, -9.682171704235588e-11, 1.1195750586896369e-11),
    *(3.0346388197997382e-12,),
)
DAWSON_FAR = (
    *(0.50515807824593, 0.005324873173532153, 0.00017621830990714445, 1.020778016703845e-05),
    *(8.731655993199014e-07, 1.018282126520626e-07, 1.549510731886928e-08, 3.0027961717831687e-09),
    *(7.340292849014575e-10, 2.2474436293755268e-10, 8.667866416584977e-11, 5.158363093964266e-11),
    *(3.920737291975783e-11, 1.076059522610143e-11, -1.6043943641803807e-11),
    *(-1.3789591192831554e-11, -3.715985339495539e-13, 2.6850785226021057e-12),
    *(6.485816457361607e-13,),
)
# What x**-(2 k + 1) has as factor in Dawson's function for large x: (2 k - 1)!! / 2**(k + 1).
DAWSON_SERIES = tuple(math.prod(range(1, 2 * k, 2)) / 2 ** (k + 1) for k in range(40))


@jitable
def _dawson(size):
    """Return exp(-x**2) times the integral of exp(t**2) from 0 to x, for x >= 0."""
    square = size * size
    if size < 1.5:
        return size * polynomial(float_fma(square, 1.0 / 1.125, -1.0), DAWSON_NEAR)
    if size < 3.0:
        return polynomial((size - 2.25) / 0.75, DAWSON_MIDDLE)
    if size < 5.0:
        return polynomial(size - 4.0, DAWSON_BEYOND)
    return polynomial(50.0 / square - 1.0, DAWSON_FAR) / size


@jitable
def _dawson_far(n, x):
    """Return the size of the n-th derivative for x large beside n, each term differentiated."""
    inverse = 1.0 / x
    square, power = inverse * inverse, inverse
    for j in range(1, np.int64(n) + 1):
        power *= j * inverse
    total, rising = 0.0, 1.0  # (2 k + n)! / ((2 k)! n!)
    for k in range(len(DAWSON_SERIES)):
        term = DAWSON_SERIES[k] * power * rising
        if term <= 1e-18 * total:
            break
        total += term
        power *= square
        rising *= (2.0 * k + n + 1.0) * (2.0 * k + n + 2.0) / ((2.0 * k + 1.0) * (2.0 * k + 2.0))
    return total


@in_float64
def dawson_derivative(n, x):
    """Return the n-th derivative of Dawson's integral for whole n from 0 to 170.

    The recurrence is D(k + 1) = -2 (x D(k) + k D(k - 1)), and far out by the series.
    """
    if not (0.0 <= n <= 170.0 and n == float_floor(n)) or x != x:
        return NAN
    size = float_absolute(x)
    odd = n % 2.0 == 1.0
    if n > 0.0 and size >= 6.4 and 8.0 * n <= size * size:
        value = _dawson_far(n, size)
        value = -value if odd else value
    else:
        value = _dawson(size)
        low = value
        if n > 0.0:
            value = float_fma(-2.0 * size, low, 1.0)
        for k in range(1, np.int64(n)):
            low, value = value, -2.0 * float_fma(size, value, k * low)
    if size == 0.0 and n == 0.0:
        return x
    return -value if x < 0.0 and not odd else value


# --- the exponential integral -------------------------------------------------------------
# Above 0 log(x / root) and x - root times a polynomial in x up to 3; x exp(-x) Ei(x) in 1 / x from
# 3 to 6, to 12, to 24, and beyond. Below 0 a power series down to -1, x exp(x) E1(x) in
# (x - 3) / (x + 3) farther out.

ROOT, ROOT_LOW = 0.3725074107813666, 1.3140183414386028e-17
EI_NEAR = (
    *(1.6925361750703682, 0.8362669668507032, 0.3246334572913859, 0.10057866880994226),
    *(0.02581445353997904, 0.005650317159559071, 0.0010779341915273142, 0.0001822477988290124),
    *(2.7667827893895404e-05, 3.811649199367787e-06, 4.806630795449226e-07, 5.588655600597444e-08),
    *(6.028063770851597e-09, 6.06126177568589e-10, 5.712652225943078e-11, 5.211080111751299e-12),
    *(4.3551838345554066e-13,),
)
EI_3 = (
    *(1.4382080314544827, 0.10487469812114945, -0.062421329838390244, -0.0008327928417451509),
    *(0.005409975696946347, -0.0017292992019524083, 0.00017158156991210245, 9.116020378568878e-05),
    *(-5.846330440828323e-05, 1.9145519647027374e-05, -3.7264161872254945e-06),
    *(-1.4213199905207112e-08, 3.870053306971536e-07, -2.069552619147024e-07),
    *(7.347552550600781e-08, -1.930979397545178e-08, 3.121508386673942e-09, 1.866651851908515e-10),
    *(-3.701396879428571e-10, 2.3773232211452874e-10, -1.2683771806332017e-10),
    *(3.115472624350043e-11,),
)
EI_6 = (
    *(1.181847986987208, 0.09097863630348535, 0.010157308753614763, -0.003353388660169933),
    *(-0.0011258914511364376, 0.00037313842221168794, 4.205947124099479e-05),
    *(-4.5551153612023504e-05, 9.19663897399702e-06, 1.4333396048004571e-06),
    *(-1.4452260551969772e-06, 4.245281687484372e-07, -2.9677345061659614e-08),
    *(-3.0560803589086644e-08, 1.6870987483786506e-08, -4.761318064140845e-09),
    *(5.397253375230443e-10, 2.7905901089352965e-10, -2.0539947190629477e-10),
    *(5.477529028181542e-11, -3.654037740114076e-12),
)
EI_12 = (
    *(1.0723449766623854, 0.028391549978593562, 0.001940304027931447, 0.0002684049246182495),
    *(3.961169113365822e-05, -5.37275975225954e-06, -5.1601824361418225e-06),
    *(-2.2547676788072954e-07, 4.922896187248928e-07, 4.033117166877781e-09),
    *(-4.963298627277413e-08, 7.121042345237143e-09, 3.672995698476681e-09),
    *(-1.5907405176174908e-09, 3.3244058779267077e-11, 1.6705204248786374e-10),
    *(-5.116179338277017e-11, -6.270079689497129e-12, 5.141672387096858e-12),
)
EI_24 = (
    *(1.0217607036601566, 0.02275307202736118, 0.001063768785547162, 7.863790796106851e-05),
    *(8.211967484590294e-06, 1.1430194165809206e-06, 2.053127853729203e-07, 4.683932673507851e-08),
    *(1.3569421721248852e-08, 5.066618689029304e-09, 2.452510982656273e-09, 1.5501316315948285e-09),
    *(1.0652237994055902e-09, 1.3533583887966694e-10, -9.459864205562049e-10),
    *(-8.36950879209447e-10, 1.927160741385265e-10, 4.710006967535273e-10, 1.0585359469974157e-11),
    *(-1.352643885009758e-10, -7.958362416675076e-12, 1.7549760804295815e-11),
)
E1_FAR = (
    *(0.852110881423661, 0.1802644616671457, -0.045168050552841774, 0.017605114271024312),
    *(-0.006953270512547428, 0.0030822766202139654, -0.0013894159752765283, 0.0006605605052592126),
    *(-0.0003181732684835442, 0.00015805230502233657, -7.928271202238457e-05, 4.05849175549572e-05),
    *(-2.0925903120007937e-05, 1.094717432921422e-05, -5.771870046721366e-06),
    *(3.075335259599325e-06, -1.601025493646593e-06, 8.494394278132052e-07, -5.64647630858977e-07),
    *(3.3393954735139314e-07, 1.1696123986190568e-08, -4.42292968915131e-08, -2.37734333790695e-07),
    *(1.7048309661246801e-07, 1.6192577292137434e-07, -1.1824412573870862e-07),
    *(-1.1083389093485704e-07, 7.551414907126963e-08, 3.9071869102924054e-08),
    *(-2.583230217938175e-08, -7.920142362136383e-09, 4.972097651844548e-09),
)
EULER = 0.5772156649015329
# The integral of (1 - exp(-t)) / t from 0 to x, over x.
E1_NEAR = tuple((-1.0) ** k / ((k + 1) * math.factorial(k + 1)) for k in range(18))


@in_float64
def expint(x):
    """Return the exponential integral Ei(x).

    It is the integral of exp(t) / t from -inf to x, its principal value above 0.
    """
    number_by_number()  # takes .75 of the time of vectorised code, and a fifth to compile
    if x != x:
        return NAN
    if x == 0.0:
        return -INF
    if x < 0.0:
        size = -x
        if size < 1.0:
            return (EULER + log_real(size)) - size * polynomial(size, E1_NEAR)
        t = float_fma(4.0 / 3.0, (size - 3.0) / (size + 3.0), -1.0 / 3.0)
        root = exp(-0.5 * size) if size > 700.0 else exp(-size)
        value = root * (polynomial(t, E1_FAR) / size)
        return -(value * root if size > 700.0 else value) if size < INF else -0.0
    if x < 1e-20:
        return EULER + log_real(x)
    if x < 3.0:
        away = (x - ROOT) - ROOT_LOW
        log = log_real(x / ROOT) if float_absolute(away) > 0.2 else log1p(away / ROOT)
        return float_fma(away, polynomial(float_fma(x, 2.0 / 3.0, -1.0), EI_NEAR), log)
    if x == INF:
        return INF
    inverse = 1.0 / x
    if x < 6.0:
        value = polynomial(float_fma(inverse, 12.0, -3.0), EI_3)
    elif x < 12.0:
        value = polynomial(float_fma(inverse, 24.0, -3.0), EI_6)
    elif x < 24.0:
        value = polynomial(float_fma(inverse, 48.0, -3.0), EI_12)
    else:
        value = polynomial(float_fma(inverse, 48.0, -1.0), EI_24)
    root = exp(0.5 * x) if x > 700.0 else exp(x)
    value = root * (value * inverse)
    return value * root if x > 700.0 else value


# --- Fresnel's integrals --------------------------------------------------------------
# C(x) / x and S(x) / x**3 in x**4 up to 1.5; elsewhere C = 1/2 + f sin(u) - g cos(u) and
# S = 1/2 - f cos(u) - g sin(u) for u = pi x**2 / 2: pi x f and pi**2 x**3 g in x up to 2.5, in
# x**-4 beyond.

COSINE_NEAR = (
    *(0.5321015097925993, -0.33317978749623606, 0.11464907315830586, -0.0183018312057431),
    *(0.001665787205011, -9.786733752727695e-05, 4.019013747386435e-06, -1.2189463302692873e-07),
    *(2.8428199115550984e-09, -5.257682445125931e-11, 7.903992798368805e-13),
    *(-9.841734630350274e-15,),
)
SINE_NEAR = (
    *(0.3317014537101536, -0.15462472879775477, 0.033158344302986954, -0.0038273603282742877),
    *(0.00027319592380436916, -1.3218316630193985e-05, 4.6177062499591426e-07),
    *(-1.2191997668511405e-08, 2.518325929404381e-10, -4.1824336065981076e-12),
    *(5.701683306944383e-14,),
)
F_MIDDLE = (
    *(0.9838483090398938, 0.014093607066720555, -0.007245276230020188, 0.002781639289496972),
    *(-0.0008625271106833258, 0.00022216073803870358, -4.743673101032099e-05),
    *(8.046098168280642e-06, -9.095932948524262e-07, -9.979636319104518e-09, 4.031712727575287e-08),
    *(-1.3536059594773198e-08, 3.081454069853094e-09, -5.43661242727464e-10, 7.248091980442208e-11),
    *(-4.4062108206503694e-12, -6.771953160079603e-13),
)
G_MIDDLE = (
    *(0.9274738807730113, 0.0579622098401622, -0.026134395243897896, 0.00823715519191006),
    *(-0.0018556334297877603, 0.00024983859244338504, 1.1892915700007232e-05),
    *(-1.9169605410335947e-05, 6.726379856053512e-06, -1.53284310466467e-06),
    *(2.3282518783776332e-07, -1.255614255764348e-08, -5.743606155033869e-09),
    *(2.4699882310653915e-09, -6.000797421890403e-10, 1.0360321531834013e-10),
    *(-1.0588621201060478e-11,),
)
F_FAR = (
    *(0.9962673834758357, -0.0035898473856467985, 0.00012983993691447805, -1.1029493596192232e-05),
    *(1.5185799912021447e-06, -2.861122462757598e-07, 6.721277766999847e-08),
    *(-1.860264308223579e-08, 5.8451944059053254e-09, -2.0244559449552523e-09),
    *(7.593217319849054e-10, -3.3012062989793533e-10, 1.5299290826717456e-10),
    *(-2.198781469139003e-11, -6.145951362573856e-12, -5.754621176964845e-11),
    *(4.3436245705392424e-11, 2.5214399895484715e-11, -2.0366553346528832e-11),
    *(-1.00057640815932e-11, 7.013900488340693e-12),
)
G_FAR = (
    *(0.9819079939332481, -0.016910517432915575, 0.0010362055091541582, -0.00011908613704765354),
    *(2.0093612079390666e-05, -4.395247814057891e-06, 1.1594853602837117e-06),
    *(-3.5245092871631156e-07, 1.1972823094959986e-07, -4.4449376829558046e-08),
    *(1.7749515149428117e-08, -7.710157135484875e-09, 3.5703886247127136e-09),
    *(-1.175288978707149e-09, 3.061700076519097e-10, -1.239172226875911e-09),
    *(1.0794960132682376e-09, 1.0077189865887059e-09, -1.0137970544869015e-09),
    *(-9.82551375493127e-10, 8.736210923329674e-10, 4.610126391377304e-10, -3.939824457884161e-10),
    *(-1.1385679782092647e-10, 9.013800686161593e-11),
)


MULTIPLES = 2.0**54  # from here on, x**2 is a multiple of 4


@jitable
def _within_four(x):
    return x - 4.0 * float_floor(0.25 * x)


@jitable
def _sine_and_cosine(size):
    """Return sin(pi x**2 / 2) and cos(pi x**2 / 2), x**2 in two parts."""
    if size >= MULTIPLES:
        return 0.0, 1.0
    square = size * size
    lost = float_fma(size, size, -square)
    turns = _within_four(square) + (lost if float_absolute(lost) < 2.0 else _within_four(lost))
    return sin_cos_quadrant(0.5 * (turns if turns >= 0.0 else turns + 4.0))


@jitable
def _amplitudes(size):
    """Return f and g for x >= 1.5."""
    inverse = 1.0 / (math.pi * size)
    square = 1.0 / (size * size)
    if size < 2.5:
        t = (size - 2.0) * 2.0
        f, g = polynomial(t, F_MIDDLE), polynomial(t, G_MIDDLE)
    else:
        t = float_fma(78.125 * square, square, -1.0)
        f, g = polynomial(t, F_FAR), polynomial(t, G_FAR)
    return inverse * f, inverse * square * g / math.pi


@in_float64
def fresnel_cos(x):
    """Return the integral of cos(pi t**2 / 2) from 0 to x."""
    size = float_absolute(x)
    square = size * size
    if size < 1.5:
        quarters = float_fma(square * (2.0 / 5.0625), square, -1.0)
        return x * polynomial(quarters, COSINE_NEAR)
    f, g = _amplitudes(size)
    sine, cosine = _sine_and_cosine(size)
    return float_copysign(0.5 + float_fma(f, sine, -g * cosine), x)


@in_float64
def fresnel_sin(x):
    """Return the integral of sin(pi t**2 / 2) from 0 to x."""
    size = float_absolute(x)
    square = size * size
    if size < 1.5:
        quarters = float_fma(square * (2.0 / 5.0625), square, -1.0)
        return x * (square * polynomial(quarters, SINE_NEAR))
    f, g = _amplitudes(size)
    sine, cosine = _sine_and_cosine(size)
    return float_copysign(0.5 - float_fma(f, cosine, g * sine), x)


@in_float64
def sin_square(x):
    """Return sin(pi x**2 / 2), of x**2 to twice the digits."""
    if not float_absolute(x) < INF:
        return NAN
    sine, _ = _sine_and_cosine(float_absolute(x))
    return sine


@in_float64
def cos_square(x):
    """Return cos(pi x**2 / 2), of x**2 to twice the digits."""
    if not float_absolute(x) < INF:
        return NAN
    _, cosine = _sine_and_cosine(float_absolute(x))
    return cosine


# --- Spence's function --------------------------------------------------------------------
# In w = -log(x), from 1/2 to 2: w - w**2 / 4 and the sum of B(2k) w**(2k + 1) / (2k + 1)!.

DEBYE = (
    *(1 / 36, -1 / 3600, 1 / 211680, -1 / 10886400, 1 / 526901760),
    *(-691 / 16999766784000, 1 / 1120863744000, -3617 / 181400588328960000),
)
SIXTH_OF_SQUARE = math.pi**2 / 6


@jitable
def _spence_near(w):
    square = w * w
    return w + (w * square * polynomial(square, DEBYE) - 0.25 * square)


@jitable
def _spence(x):
    """Return the integral of log(t) / (1 - t) from 1 to x."""
    if x < 0.5:  # spence(x) + spence(1 - x) = pi**2 / 6 - log(x) log(1 - x)
        if x == 0.0:
            return SIXTH_OF_SQUARE
        other = log1p(-x)
        return SIXTH_OF_SQUARE - float_fma(log_real(x), other, _spence_near(-other))
    log = log_real(x)
    if x <= 2.0:
        return _spence_near(-log)
    other = log1p(-1.0 / x)  # spence(x) + spence(1 / x) = -log(x)**2 / 2
    rest = float_fma(-log, other, _spence_near(-other) - SIXTH_OF_SQUARE)
    return float_fma(-0.5 * log, log, rest)


@jitable
def _of_logarithm(m, x):
    """Return x**m times the integral a(m) of t**m / (1 + t (x - 1))**(m + 1) from 0 to 1.

    a(m - 1) = x**-m / m + (x - 1) a(m): downwards above 1, upwards from a(0) = log(x) / (x - 1)
    where little is lost; close below 1 a sum of one sign.
    """
    y, order = x - 1.0, np.int64(m)
    if m == 0.0:
        return log_real(x) / y if y != 0.0 else 1.0
    if 0.25 <= x < 1.0:
        total, term, j, scale = 0.0, 1.0, 0.0, 1.0
        while term > 1e-19 * total:
            total += term / (m + j + 1.0)
            j += 1.0
            term *= -y * (m + j) / j
        for _ in range(order):
            scale *= x
        return total * scale
    if 1.0 <= x < 8.0:
        ratio, value = y / x, 0.0
        for k in range(order + 24 + np.int64(42.0 * x), order, -1):
            value = float_fma(ratio, value, 1.0 / (k * x))
        return value
    value = log_real(x) / y
    for k in range(1, order + 1):
        value = float_fma(x, value, -1.0 / k) / y
    return value


@in_float64
def spence_derivative(n, x):
    """Return the n-th derivative of Spence's function for whole n from 0 to 170.

    That of order 1 is -log(x) / (x - 1).
    """
    if not (0.0 <= n <= 170.0 and n == float_floor(n)) or not 0.0 <= x < INF:
        return NAN
    if n == 0.0:
        return _spence(x)
    if x == 0.0:
        return -INF if n % 2.0 == 1.0 else INF
    value = _of_logarithm(n - 1.0, x)
    for k in range(1, np.int64(n)):
        value *= k / x
    return -value if n % 2.0 == 1.0 else value
