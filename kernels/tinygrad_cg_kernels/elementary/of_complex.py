"""Elementary functions of complex numbers, with the zeros, infinities and NaN of C's Annex G.

Each is computed in float64 from real functions, and rounded once to complex64. Products of a large
exponential with a sine or cosine are formed in steps, so that a part only overflows if it is too
large itself. If the C standard leaves a sign open, it is that of NumPy.
"""

import math

import numpy as np

from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.intrinsics import (
    float_absolute,
    float_copysign,
    float_floor,
    float_fma,
    like,
)

INF, NAN = np.inf, np.nan
LN2, LOG2E, LOG10E = 0.6931471805599453, 1.4426950408889634, 0.4342944819032518
LARGE, EXP_LARGE = 709.0, 8.218407461554972e307  # the exponential of LARGE
VAST, FAR, NEAR = 4e307, 6e153, 1.5e-154  # squares of FAR and NEAR are finite and not denormal


@jitable
def _finite(x):
    return float_absolute(x) < INF


@jitable
def _scaled_exp(x, factor, share):
    """Return exp(x) * factor * share, where exp(x) alone may overflow; share is 1 or 1 / 2."""
    if x <= LARGE or x == INF or x != x:
        return math.exp(x) * factor * share
    root = math.exp(0.5 * (x - LARGE))
    return EXP_LARGE * share * factor * root * root


@jitable
def _exp(x):
    re, im = x.real, x.imag
    if im == 0.0:
        return complex(math.exp(re), im)
    if _finite(im):
        return complex(_scaled_exp(re, math.cos(im), 1.0), _scaled_exp(re, math.sin(im), 1.0))
    if re == -INF:
        return complex(0.0, float_copysign(0.0, im) if im == im else 0.0)
    return complex(INF if re == INF else NAN, NAN)


@jitable
def _expm1(x):
    re, im = x.real, x.imag
    if re > 50.0 or not _finite(re) or not _finite(im):
        value = _exp(x)
        return complex(value.real - 1.0, value.imag)
    if im == 0.0:
        return complex(math.expm1(re), im)
    half = math.sin(0.5 * im)
    return complex(math.expm1(re) * math.cos(im) - 2.0 * half * half, math.exp(re) * math.sin(im))


@jitable
def _log_near_one(high, low):
    """Return log(1 + high + low) / 2."""
    total = high + low
    return 0.5 * math.log1p(total)


@jitable
def _add(x, y):
    """Return x + y, and what rounding took from it."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


@jitable
def _log_size(re, im):
    """Return log|re + im i|; near 1 from the square less 1, to twice the digits."""
    first, second = float_absolute(re), float_absolute(im)
    a, b = (first, second) if first > second else (second, first)
    if 0.5 < a < 2.0 and b < 2.0:
        p, q = a * a, b * b
        lost = float_fma(a, a, -p) + float_fma(b, b, -q)
        less, less_lost = _add(-1.0, p)
        total, total_lost = _add(less, q)
        if -0.75 < total < 3.0:
            return _log_near_one(total, lost + (less_lost + total_lost))
    if 1e300 < a < INF:
        return math.log(math.hypot(re * 2.0**-4, im * 2.0**-4)) + 4.0 * LN2
    if 0.0 < a < 1e-290:
        return math.log(math.hypot(re * 2.0**100, im * 2.0**100)) - 100.0 * LN2
    return math.log(math.hypot(re, im))


@jitable
def _log(x):
    return complex(_log_size(x.real, x.imag), math.atan2(x.imag, x.real))


@jitable
def _log1p(x):
    re, im = x.real, x.imag
    angle = math.atan2(im, 1.0 + re)
    if float_absolute(re) < 4.0 and float_absolute(im) < 4.0:
        p, q = re * re, im * im
        lost = float_fma(re, re, -p) + float_fma(im, im, -q)
        first, first_lost = _add(2.0 * re, p)
        total, total_lost = _add(first, q)
        if -0.75 < total < 3.0:
            return complex(_log_near_one(total, lost + (first_lost + total_lost)), angle)
    return complex(_log_size(1.0 + re, im), angle)


def _log_to_base(factor):
    @jitable
    def logarithm(x):
        value = _log(x)
        return complex(value.real * factor, value.imag * factor)

    return logarithm


@jitable
def _sqrt(x):
    re, im = x.real, x.imag
    if re == 0.0 and im == 0.0:
        return complex(0.0, im)
    size, up = float_absolute(re), float_absolute(im)
    if up == INF:
        return complex(INF, im)
    if size == INF:
        small = NAN if im != im else 0.0
        if re > 0.0:
            return complex(INF, float_copysign(small, im))
        return complex(small, float_copysign(INF, im))
    large, tiny = max(size, up) > 1e300, max(size, up) < 1e-290
    scale = 2.0**-4 if large else (2.0**100 if tiny else 1.0)
    back = 4.0 if large else (2.0**-50 if tiny else 1.0)
    size, up = size * scale, up * scale
    root = math.sqrt(0.5 * (size + math.hypot(size, up)))
    other = 0.5 * up / root
    if re < 0.0:
        return complex(other * back, float_copysign(root * back, im))
    return complex(root * back, float_copysign(other * back, im))


@jitable
def _sinh(x):
    re, im = x.real, x.imag
    if im == 0.0:
        return complex(math.sinh(re), im)
    if not _finite(im):
        return complex(re if re == 0.0 or not _finite(re) else NAN, NAN)
    size = float_absolute(re)
    sine, cosine = math.sin(im), math.cos(im)
    if size > LARGE:
        signed = float_copysign(1.0, re) * cosine
        return complex(_scaled_exp(size, signed, 0.5), _scaled_exp(size, sine, 0.5))
    return complex(math.sinh(re) * cosine, math.cosh(re) * sine)


@jitable
def _cosh(x):
    re, im = x.real, x.imag
    if im == 0.0:
        return complex(math.cosh(re), im * float_copysign(1.0, re) if re == re else im)
    if not _finite(im):
        return complex(INF if float_absolute(re) == INF else NAN, 0.0 if re == 0.0 else NAN)
    size = float_absolute(re)
    sine, cosine = math.sin(im), math.cos(im)
    if size > LARGE:
        signed = float_copysign(1.0, re) * sine
        return complex(_scaled_exp(size, cosine, 0.5), _scaled_exp(size, signed, 0.5))
    return complex(math.cosh(re) * cosine, math.sinh(re) * sine)


@jitable
def _tanh(x):
    """Return tanh(x) as Kahan (1987) has it: sums of squares only."""
    re, im = x.real, x.imag
    size = float_absolute(re)
    if size == INF:
        sine = math.sin(im) * math.cos(im) if _finite(im) else im
        return complex(float_copysign(1.0, re), float_copysign(0.0, sine))
    if im == 0.0:
        return complex(math.tanh(re), im)
    if not _finite(im):
        return complex(re if re == 0.0 else NAN, NAN)
    if size > 22.0:
        decay = math.exp(-size)
        return complex(float_copysign(1.0, re), 4.0 * math.sin(im) * math.cos(im) * decay * decay)
    tangent, sine = math.tan(im), math.sinh(re)
    grown = 1.0 + tangent * tangent
    under = 1.0 + grown * sine * sine
    return complex(grown * math.sqrt(1.0 + sine * sine) * sine / under, tangent / under)


def _of_turned(function):
    """Return a trigonometric function, or its inverse, from the odd hyperbolic one."""

    @jitable
    def of_turned(x):
        value = function(complex(-x.imag, x.real))
        return complex(value.imag, -value.real)

    return of_turned


@jitable
def _cos(x):
    return _cosh(complex(-x.imag, x.real))


# The inverse functions are Kahan's, "Branch cuts for complex elementary functions" (1987): products
# of square roots, without cancellation. If x is so large that x + 1 is x, log(2 x) replaces them.


@jitable
def _is_vast(x):
    return float_absolute(x.real) > VAST or float_absolute(x.imag) > VAST


@jitable
def _log_twice(x):
    """Return log|2 x|, which may be too large for a number."""
    return math.log(math.hypot(0.5 * x.real, 0.5 * x.imag)) + 2.0 * LN2


@jitable
def _asinh(x):
    re, im = x.real, x.imag
    if im == 0.0 and re != re:
        return complex(NAN, im)
    if _is_vast(x):
        return complex(float_copysign(_log_twice(x), re), math.atan2(im, float_absolute(re)))
    first, second = _sqrt(complex(1.0 + im, -re)), _sqrt(complex(1.0 - im, re))
    product = first.real * second.imag - second.real * first.imag
    under = first.real * second.real - first.imag * second.imag
    return complex(math.asinh(product), math.atan2(im, under))


_turned_asinh = _of_turned(_asinh)


@jitable
def _asin(x):
    return complex(x.real, NAN) if x.real == 0.0 and x.imag != x.imag else _turned_asinh(x)


@jitable
def _acos(x):
    re, im = x.real, x.imag
    if re == 0.0 and im != im:
        return complex(0.5 * math.pi, NAN)
    if _is_vast(x):
        return complex(math.atan2(float_absolute(im), re), float_copysign(_log_twice(x), -im))
    first, second = _sqrt(complex(1.0 - re, -im)), _sqrt(complex(1.0 + re, im))
    product = second.real * first.imag - second.imag * first.real
    return complex(2.0 * math.atan2(first.real, second.real), math.asinh(product))


@jitable
def _acosh(x):
    re, im = x.real, x.imag
    if re == 0.0 and im != im:
        return complex(NAN, 0.5 * math.pi)
    if _is_vast(x):
        return complex(_log_twice(x), math.atan2(im, re))
    first, second = _sqrt(complex(re - 1.0, im)), _sqrt(complex(re + 1.0, im))
    product = first.real * second.real + first.imag * second.imag
    return complex(math.asinh(product), 2.0 * math.atan2(first.imag, second.real))


@jitable
def _atanh(x):
    re, im = x.real, x.imag
    size, up = float_absolute(re), float_absolute(im)
    quarter = float_copysign(0.5 * math.pi, im)
    if re != re:
        return complex(float_copysign(0.0, re), quarter) if up == INF else complex(NAN, NAN)
    if im != im:
        return complex(float_copysign(0.0, re) if size == INF or re == 0.0 else NAN, NAN)
    if size > FAR or up > FAR:  # 1 / x
        if size == INF or up == INF:
            return complex(float_copysign(0.0, re), quarter)
        half = math.hypot(0.5 * re, 0.5 * im)
        return complex(0.25 * re / half / half, quarter)
    if size == 1.0 and up < NEAR:
        if im == 0.0:
            return complex(float_copysign(INF, re), im)
        grown = math.log(math.sqrt(math.hypot(up, 2.0)) / math.sqrt(up))
        return complex(float_copysign(grown, re), float_copysign(0.5 * math.atan2(2.0, -up), im))
    less, square = 1.0 - size, up * up
    grown = 0.25 * math.log1p(4.0 * size / (less * less + square))
    angle = 0.5 * math.atan2(2.0 * im, less * (1.0 + size) - square)
    return complex(float_copysign(grown, re), angle)


@jitable
def _by_products(x, n):
    """Return x to the power of a whole n >= 0."""
    value, square = complex(1.0, 0.0), x
    while n > 0:
        if n & 1:
            value = complex(
                value.real * square.real - value.imag * square.imag,
                value.real * square.imag + value.imag * square.real,
            )
        square = complex(
            (square.real - square.imag) * (square.real + square.imag),
            2.0 * square.real * square.imag,
        )
        n >>= 1
    return value


@jitable
def power_complex(x, y):
    """Return exp(y log(x)); 0**y is 1 where y is 0, 0 where y.real > 0, and NaN elsewhere.

    Whole powers up to 100 are products, as in NumPy, unless these overflow.
    """
    wide, to = np.complex128(x), np.complex128(y)
    if to.real == 0.0 and to.imag == 0.0:
        return like(complex(1.0, 0.0), x)
    if to.real == 1.0 and to.imag == 0.0:
        return x
    if wide.real == 0.0 and wide.imag == 0.0:
        part = 0.0 if to.real > 0.0 else NAN
        return like(complex(part, part), x)
    if to.imag == 0.0 and float_absolute(to.real) <= 100.0 and to.real == float_floor(to.real):
        value = _by_products(wide, np.int64(float_absolute(to.real)))
        size = math.hypot(value.real, value.imag)
        if 1e-300 < size < 1e300:
            return like(value if to.real > 0.0 else 1.0 / value, x)
    logarithm, angle = _log_size(wide.real, wide.imag), math.atan2(wide.imag, wide.real)
    exponent = to.real * logarithm - (to.imag * angle if to.imag != 0.0 else 0.0)
    turn = to.real * angle + (to.imag * logarithm if to.imag != 0.0 else 0.0)
    size = math.pow(math.hypot(wide.real, wide.imag), to.real)
    if 1e-280 < size < 1e280 and float_absolute(to.imag) < 100.0:
        size *= math.exp(-to.imag * angle)
        return like(complex(size * math.cos(turn), size * math.sin(turn)), x)
    return like(_exp(complex(exponent, turn)), x)


def _of_any_width(function):
    """Return a function of complex128 for complex64 too."""

    @jitable
    def of_any_width(x):
        return like(function(np.complex128(x)), x)

    return of_any_width


exp_complex, expm1_complex = _of_any_width(_exp), _of_any_width(_expm1)
exp2_complex = _of_any_width(jitable(lambda x: _exp(complex(x.real * LN2, x.imag * LN2))))
sqrt_complex = _of_any_width(_sqrt)
log_complex, log1p_complex = _of_any_width(_log), _of_any_width(_log1p)
log2_complex = _of_any_width(_log_to_base(LOG2E))
log10_complex = _of_any_width(_log_to_base(LOG10E))
sinh_complex, cosh_complex, tanh_complex = map(_of_any_width, (_sinh, _cosh, _tanh))
sin_complex, tan_complex, arctan_complex = (
    _of_any_width(_of_turned(function)) for function in (_sinh, _tanh, _atanh)
)
cos_complex, arcsin_complex, arccos_complex = map(_of_any_width, (_cos, _asin, _acos))
arcsinh_complex, arccosh_complex, arctanh_complex = map(_of_any_width, (_asinh, _acosh, _atanh))
