"""What operations must give, by NumPy and mpmath: `REFERENCES`, by the name of the record.

An operation that is a universal function of NumPy needs no entry here. Linear operations that
are adjoints of others, of which their derivatives are tested, need none either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import mpmath
import numpy as np

from tinygrad_cg._core.primitive import Primitive
from tinygrad_cg_kernels.linear.conv import Geometry
from tinygrad_cg_kernels.linear.pool import Window


def reference(primitive: Primitive) -> Callable[..., Any] | None:
    """Return the function of arrays that an operation must equal, None where there is none."""
    return REFERENCES.get(primitive.name, primitive.ufunc)


def takes(primitive: Primitive, dtype: Any) -> bool:
    """Return True if the record says that its operation takes this dtype."""
    return any(holds(np.dtype(dtype)) for holds in primitive.dtypes)


def exact_function(name: str) -> Callable[..., Any]:
    """Return the function of mpmath's numbers that an operation approximates."""
    return EXACT.get(name) or getattr(mpmath, name)


def _with_row(x: Any, value: Any, index: Any, batch_dims: int) -> np.ndarray:
    result = np.array(x)
    for place in np.ndindex(result.shape[:batch_dims]):
        result[(*place, index[place])] = value[place]
    return result


def _normalized(*operands: Any) -> Any:
    x, mean, factor, offset = (np.asarray(value) for value in operands)
    dtype = np.result_type(x, mean, factor, offset)
    wide = np.result_type(dtype, np.float32)  # float16 is rounded once
    return ((x.astype(wide) - mean) * factor + offset).astype(dtype)


# Special functions ---------------------------------------------------------------------------


def each(function: Callable[..., float]) -> Callable[..., np.ndarray]:
    """A NumPy function of one of Python numbers; integers give float64."""

    def call(*arrays: Any) -> np.ndarray:
        dtype = arrays[0].dtype if arrays[0].dtype.kind == "f" else np.dtype("d")
        return np.vectorize(function, otypes=[dtype])(*[array.astype("d") for array in arrays])

    return call


def _is_pole(x: float) -> bool:
    return x <= 0 and x == math.floor(x) if math.isfinite(x) else x == -math.inf


def lgamma(x: float) -> float:
    if _is_pole(x) or not math.isfinite(x):
        return abs(x) if math.isnan(x) else math.inf
    return float(mpmath.re(mpmath.loggamma(x)))  # math.lgamma loses digits near 1 and 2


def erfinv(x: float) -> float:
    if abs(x) == 1:
        return math.copysign(math.inf, x)
    return math.copysign(float(mpmath.erfinv(x)), x) if abs(x) < 1 else math.nan


def polygamma(n: float, x: float) -> float:
    if not 0 <= n <= 170 or n != math.floor(n) or math.isnan(x) or x == -math.inf:
        return math.nan
    if _is_pole(x):
        return math.inf if n % 2 else (math.copysign(math.inf, -x) if x == 0 else math.nan)
    if x == math.inf:
        return 0.0 if n else math.inf
    return float(mpmath.psi(int(n), x))


def erfcinv(x: float) -> float:
    if not 0 < x < 2:
        return math.inf if x == 0 else (-math.inf if x == 2 else math.nan)
    return float(exact_erfcinv(mpmath.mpf(x)))


def exact_erfcinv(x: Any) -> Any:
    """By Newton's method on the logarithm, since erfinv(1 - x) loses digits."""
    if x >= 0.5:
        return mpmath.erfinv(1 - x)
    y = mpmath.sqrt(-mpmath.log(x))
    for _ in range(9):
        value = mpmath.erfc(y)
        y += mpmath.log(value / x) * value * mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(y * y)
    return y


def bessel_i(n: float, x: float) -> float:
    if not 0 <= n <= 170 or n != math.floor(n) or math.isnan(x):
        return math.nan
    if math.isinf(x):
        return -math.inf if x < 0 and n % 2 else math.inf
    return float(mpmath.besseli(int(n), x))


def bessel_ie(n: float, x: float) -> float:
    if not 0 <= n <= 170 or n != math.floor(n) or math.isnan(x):
        return math.nan
    return float(mpmath.besseli(int(n), x) * mpmath.exp(-abs(x))) if math.isfinite(x) else 0.0


def _bessel(function: Callable[..., Any], at_zero: float, at_infinity: float) -> Any:
    """Return mpmath's function of whole orders, with SciPy's values at the edges."""

    def call(n: float, x: float) -> float:
        if not abs(n) <= 10_000 or n != math.floor(n) or math.isnan(x):
            return math.nan
        if function is not mpmath.besselj and (x < 0 or x == 0):
            negated = n < 0 and n % 2 and function is mpmath.bessely
            return math.nan if x < 0 else (-at_zero if negated else at_zero)
        return float(function(int(n), x)) if math.isfinite(x) else at_infinity

    return call


bessel_j = _bessel(mpmath.besselj, 0.0, math.nan)
bessel_y = _bessel(mpmath.bessely, -math.inf, math.nan)
_besselk = cache(mpmath.besselk)
bessel_k = _bessel(_besselk, math.inf, 0.0)


def bessel_ke(n: float, x: float) -> float:
    value = bessel_k(n, x)
    return float(_besselk(int(n), x) * mpmath.exp(x)) if 0 < value < math.inf else value


def bessel_iv(n: float, x: float, scaled: bool = False) -> float:
    if math.isnan(n) or not abs(n) <= 170:
        return math.nan
    if n == math.floor(n):
        return (bessel_ie if scaled else bessel_i)(abs(n), x)
    if not 0 < x < math.inf:
        sign = -1 if n < -1 and math.floor(n) % 2 == 0 else 1
        at_zero = 0.0 if n > 0 else sign * math.inf
        return (at_zero if x == 0 else math.nan) if x != math.inf else (0.0 if scaled else x)
    return float(mpmath.besseli(n, x) * (mpmath.exp(-x) if scaled else 1))


def dawson_derivative(n: float, x: float) -> float:
    """By the recurrence from D and 1 - 2 x D, in 300 bits; beyond 12 by the asymptotic series."""
    if not 0 <= n <= 170 or n != math.floor(n) or math.isnan(x):
        return math.nan
    if abs(x) > 12:
        sign = -1.0 if n % 2 else math.copysign(1.0, x)
        size, order = mpmath.mpf(abs(x)), int(n)
        odd = [mpmath.fac2(2 * k - 1) / 2 ** (k + 1) for k in range(20)]
        terms = [mpmath.rf(2 * k + 1, order) / size ** (2 * k + 1 + order) for k in range(20)]
        return sign * float(mpmath.fdot(odd, terms)) if math.isfinite(x) else sign * 0.0
    with mpmath.workprec(300):
        low = mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-(mpmath.mpf(x) ** 2)) * mpmath.erfi(x)
        value = 1 - 2 * x * low
        for k in range(1, int(n)):
            low, value = value, -2 * (x * value + k * low)
        return math.copysign(float(low), x) if n == 0 else float(value)


def spence_derivative(n: float, x: float) -> float:
    """By Taylor's coefficients of log(x) / (1 - x), as a hypergeometric function."""
    if not 0 <= n <= 170 or n != math.floor(n) or not 0 <= x < math.inf:
        return math.nan
    if n == 0:
        return float(mpmath.re(mpmath.polylog(2, 1 - mpmath.mpf(x))))
    sign = -1 if n % 2 else 1
    if x == 0:
        return sign * math.inf
    value = mpmath.hyp2f1(n, n, n + 1, 1 - mpmath.mpf(x)) * mpmath.factorial(n) / n**2
    return sign * float(value)


def expint(x: float) -> float:
    if not math.isfinite(x):
        return x if x != -math.inf else -0.0
    return float(mpmath.ei(x)) if x else -math.inf


def _fresnel(function: Callable[..., Any]) -> Callable[[float], float]:
    def call(x: float) -> float:
        return math.copysign(float(function(x)), x) if math.isfinite(x) else math.copysign(0.5, x)

    return lambda x: x if math.isnan(x) else call(x)


def _of_square(function: Callable[..., Any]) -> Callable[[float], float]:
    """Return a function of x**2 / 2 in units of pi, x**2 without rounding."""

    def call(x: float) -> float:
        with mpmath.workprec(2200):
            return float(function(mpmath.mpf(x) ** 2 / 2)) if math.isfinite(x) else math.nan

    return call


def zeta(s: float, q: float) -> float:
    if math.isnan(s) or math.isnan(q) or s < 1:
        return math.nan
    if s == 1 or (_is_pole(q) and q != -math.inf):
        return math.inf
    if q == -math.inf:
        return math.inf
    if math.isinf(s):
        return math.inf if 0 < q < 1 else (1.0 if q == 1 else (0.0 if q > 1 else math.nan))
    if q < 0 and s != math.floor(s):
        return math.nan
    return 0.0 if q == math.inf else float(mpmath.re(mpmath.zeta(s, q)))


def lower_gamma(a: Any, x: Any) -> Any:
    """P(a, x) in mpmath's numbers, by a series of one sign."""
    term = total = mpmath.mpf(1)
    k = 0
    while term > total * mpmath.eps:
        k += 1
        term *= x / (a + k)
        total += term
    return total * mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(a + 1))


def lower_beta(a: Any, b: Any, x: Any) -> Any:
    """I_x(a, b) in mpmath's numbers, by a series of one sign."""
    term = total = mpmath.mpf(1)
    k = 0
    while term > total * mpmath.eps:
        term *= (a + b + k) / (a + 1 + k) * x
        k += 1
        total += term
    return total * x**a * (1 - x) ** b / (a * mpmath.beta(a, b))


@cache
def igamma(a: float, x: float, order: int = 0) -> float:
    """The derivative by a of P(a, x)."""
    if not (a >= 0 and x >= 0) or a == x == 0 or (math.isinf(a) and math.isinf(x)):
        return math.nan
    if x == 0 or math.isinf(a) or math.isinf(x) or (a == order == 0):
        return float(order == 0 and (a == 0 or math.isinf(x)))
    if not order and x > 500 + 2 * a:
        return 1.0
    with mpmath.workdps(60 if order else 40):
        at = mpmath.mpf(x)
        return float(mpmath.diff(lambda a: lower_gamma(a, at), a, order))


@cache
def gamma_density(a: float, x: float, order: int) -> float:
    """The same derivative of the derivative by x."""
    if not (x >= 0 and (a >= 0 or (x == 0 and a > 0))) or a == x == 0:
        return math.nan
    if math.isinf(a) or math.isinf(x):
        return math.nan if a == x else 0.0
    if x == 0:
        return 0.0 if a > 1 else (1.0 if a == 1 and not order else (-1) ** order * math.inf)
    with mpmath.workdps(60):
        at = mpmath.mpf(x)
        value = mpmath.diff(lambda a: at ** (a - 1) * mpmath.rgamma(a), a, order)
        return float(value * mpmath.exp(-at))


@cache
def igammac(a: float, x: float) -> float:
    """1 - P(a, x), of which much may cancel."""
    if not (a > 0 and 0 < x < math.inf and a < math.inf):
        return 1 - igamma(a, x)
    with mpmath.workdps(60 + int(x)):
        return float(1 - lower_gamma(mpmath.mpf(a), mpmath.mpf(x)))


@cache
def betainc(a: float, b: float, x: float, orders: tuple[int, int] = (0, 0)) -> float:
    """The derivative by a and b of I_x(a, b)."""
    if not (a >= 0 and b >= 0 and 0 <= x <= 1) or a == b == 0:
        return math.nan
    if math.isinf(a) and math.isinf(b):
        return math.nan
    if (a == 0 and x == 0) or (b == 0 and x == 1):
        return math.nan
    if sum(orders) and (x in (0, 1) or math.isinf(a) or math.isinf(b)):
        return 0.0
    if x in (0, 1) or a == 0 or b == 0 or math.isinf(a) or math.isinf(b):
        return float(x == 1 or (x > 0 and (a == 0 or math.isinf(b))))
    with mpmath.workdps(60):
        at = mpmath.mpf(x)
        return float(mpmath.diff(lambda a, b: lower_beta(a, b, at), (a, b), orders))


@cache
def beta_density(a: float, b: float, x: float, orders: tuple[int, int]) -> float:
    """The same derivative of the derivative by x; at 0 and 1 its limit, for whole parameters."""
    if math.isnan(a) or math.isnan(b) or not 0 <= x <= 1:
        return math.nan
    if x in (0, 1):
        a, b = (a, b) if x == 0 else (b, a)
        if a >= 1 or (math.isfinite(a) and a <= 0 and a == math.floor(a)):
            return b if a == 1 else 0.0
        return math.inf if a > 0 and b > 0 else math.nan
    if not (0 < a < math.inf and 0 < b < math.inf):
        return math.nan
    with mpmath.workdps(60):
        at = mpmath.mpf(x)
        return float(
            mpmath.diff(
                lambda a, b: at ** (a - 1) * (1 - at) ** (b - 1) / mpmath.beta(a, b), (a, b), orders
            )
        )


@cache
def gamma_transport(a: float, base: float, x: float) -> float:
    """y with P(a, y) = P(base, x), by bisection and then by Newton's method for log(y).

    The logarithms of P and of 1 - P are concave in log(y), so Newton's method does not overshoot
    from the end of the interval where its steps begin.
    """
    if not all(0 < number < math.inf for number in (a, base, x)):
        return math.nan
    if a == base:
        return x
    upper = x > base + 9
    with mpmath.workdps(370 if upper else 40):
        share = lower_gamma(mpmath.mpf(base), mpmath.mpf(x))
        if 1 - share < 1e-310 or share < 1e-310:
            return math.inf if x > base else 0.0
        low, high = mpmath.mpf(-1000), mpmath.log(4000)
        while high - low > 1 / 16:
            middle = (low + high) / 2
            below = lower_gamma(mpmath.mpf(a), mpmath.exp(middle)) < share
            low, high = (middle, high) if below else (low, middle)
        at, step = high if upper else low, 1
        while abs(step) > 1e-12:  # the error is about its square
            value = lower_gamma(mpmath.mpf(a), mpmath.exp(at))
            slope = mpmath.exp(a * at - mpmath.exp(at) - mpmath.loggamma(a))
            if upper:
                step = (1 - value) / slope * mpmath.log((1 - value) / (1 - share))
            else:
                step = value / slope * mpmath.log(share / value)
            at += step
        return float(mpmath.exp(at))


def zeta_derivative(s: float, q: float, order: int) -> float:
    """The derivative by s, for s > 1 and q > 0."""
    if order == 0:
        return zeta(s, q)
    with mpmath.workdps(40):
        return float(mpmath.diff(lambda s: mpmath.zeta(s, q), s, order))


def digamma(x: float) -> float:
    return polygamma(0, x)


def _of_gamma(function: Callable[..., Any], at_pole: float) -> Callable[[float], float]:
    """Return a function of mpmath's with its value at -1, -2, ...; at 0 it is infinite or 0."""

    def call(x: float) -> float:
        if x == math.inf or math.isnan(x):
            return x if at_pole or math.isnan(x) else 0.0
        if x == 0:
            return math.copysign(math.inf, x) if at_pole else x
        if _is_pole(x):
            return at_pole
        return float(function(x))

    return call


def _direction(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    length = np.hypot(x, y)
    return np.where(length == 0, 0, x / np.where(length == 0, 1, length))


def _exact_betaln(x: Any, y: Any) -> Any:
    with mpmath.workprec(400):
        return mpmath.loggamma(x) + mpmath.loggamma(y) - mpmath.loggamma(x + y)


def betaln(x: float, y: float) -> float:
    if not (0 < x < math.inf and 0 < y < math.inf):
        return lgamma(x) + (lgamma(y) - lgamma(x + y))
    return float(_exact_betaln(mpmath.mpf(x), mpmath.mpf(y)))


def _gamma_sign(x: float) -> float:
    odd = -1.0 if math.isfinite(x) and math.floor(x) % 2 else 1.0
    return 1.0 if x >= 0 else (math.nan if _is_pole(x) or math.isnan(x) else odd)


def beta(x: float, y: float) -> float:
    sign = _gamma_sign(x) * _gamma_sign(y) * _gamma_sign(x + y)
    return sign * float(mpmath.exp(betaln(x, y)))


def sinc(x: float) -> float:
    return float(mpmath.sincpi(x)) if math.isfinite(x) else math.nan


def sinc_derivative(n: float, x: float) -> float:
    """By the recurrence of the derivatives, with more digits than it loses."""
    if not 0 <= n <= 170 or n != math.floor(n) or not math.isfinite(x):
        return math.nan
    if x == 0:
        return 0.0 if n % 2 else (-1) ** (n // 2) * math.pi**n / (n + 1)
    lost = n * max(0.0, 16 - math.log2(abs(x)))
    with mpmath.workprec(200 + int(lost)):
        u = mpmath.pi * x
        value = mpmath.sincpi(x)
        for k in range(1, int(n) + 1):
            value = (mpmath.sinpi(mpmath.mpf(x) + mpmath.mpf(k) / 2) - k * value) / u
        return float(value * mpmath.pi ** int(n))


# Elementwise ---------------------------------------------------------------------------------


def _xlogy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    zero = (x == 0) & ~np.isnan(y)
    return np.where(zero, x * 0, x * np.log(np.where(zero, y.dtype.type(1), y)))


def _nearest_finite(x: np.ndarray) -> np.ndarray:
    limit = np.finfo(x.dtype if x.dtype.kind == "f" else np.float64).max
    return np.clip(x, -limit, limit)


# Along axes, and by positions ----------------------------------------------------------------


def _over(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction of NumPy, with the parameters of ours."""
    return lambda x, axis, keepdims: function(x, axis=axis, keepdims=keepdims)


def _scanned(
    step: Any, start: float, *arrays: Any, axis: int, reverse: bool, exclusive: bool
) -> np.ndarray:
    """A scan by a loop over slices."""
    moved = [np.moveaxis(array, axis, 0) for array in arrays]
    out = np.empty(moved[0].shape, np.result_type(*arrays, np.int64(0)))
    state = np.full(out.shape[1:], start, out.dtype)
    indices = range(len(out))
    for i in reversed(indices) if reverse else indices:
        before, state = state, step(state, *[array[i] for array in moved])
        out[i] = before if exclusive else state
    return np.moveaxis(out, 0, axis)


def _take(x: np.ndarray, indices: np.ndarray, axis: int, batch_dims: int) -> np.ndarray:
    """Apply `np.take` for each element of the axes that `x` and `indices` share."""
    out = [
        np.take(x[tap], indices[tap], axis - batch_dims) for tap in np.ndindex(x.shape[:batch_dims])
    ]
    return np.reshape(out, x.shape[:batch_dims] + np.shape(out)[1:])


def _segment_extremum(
    x: np.ndarray, indices: np.ndarray, size: int, largest: bool, batch_dims: int
) -> np.ndarray:
    """The extremes of rows, one segment after the other."""
    if batch_dims:
        return np.stack(
            [
                _segment_extremum(rows, where, size, largest, batch_dims - 1)
                for rows, where in zip(x, indices, strict=True)
            ]
        )
    if x.dtype.kind == "f":
        limits = (-np.inf, np.inf)
    elif x.dtype == bool:
        limits = (False, True)
    else:
        limits = (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
    rows = [x[indices == i] for i in range(size)]
    start = limits[0] if largest else limits[1]
    return np.array([(np.max if largest else np.min)(row, 0, initial=start) for row in rows])


def _in_order(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    return np.flip(np.sort(x, axis), axis) if descending else np.sort(x, axis)


def _order(x: np.ndarray, axis: int, descending: bool, stable: bool) -> np.ndarray:
    """Return the order by Python's own sort, line by line."""

    def line(row: np.ndarray) -> list[int]:
        return sorted(range(row.size), key=lambda i: row[i], reverse=descending)

    return np.apply_along_axis(line, axis, x)


def _is_one_hot(indices: np.ndarray, depth: int, axis: int, dtype: np.dtype) -> np.ndarray:
    classes = np.arange(depth).reshape(-1, *(1,) * (indices.ndim - axis))
    return (np.expand_dims(indices, axis) == classes).astype(dtype)


# Factors of matrices, as one matrix -------------------------------------------------------------


def _one_below_another(values: np.ndarray, *vectors: np.ndarray) -> np.ndarray:
    return np.concatenate([values[..., None, :], *vectors], -2)


def _singular_vectors(x: np.ndarray) -> np.ndarray:
    left, values, right = np.linalg.svd(x, full_matrices=False)
    return _one_below_another(values, left, np.swapaxes(right, -1, -2).conj())


def _cofactor_change(x: np.ndarray, way: np.ndarray) -> np.ndarray:
    inverse = np.linalg.inv(x)
    change = np.trace(inverse @ way, axis1=-2, axis2=-1)[..., None, None] * inverse
    change = change - inverse @ way @ inverse
    return np.linalg.det(x)[..., None, None] * np.swapaxes(change, -1, -2)


def _of_each(x: np.ndarray, function: Callable, rank: int = 2) -> np.ndarray:
    results = [function(matrix) for matrix in x.reshape(-1, *x.shape[-2:])]
    return np.reshape(results, x.shape[: x.ndim - 2 + rank])


def _by_mpmath(function: Callable, x: np.ndarray) -> np.ndarray:
    with mpmath.workprec(200):
        return np.array(function(mpmath.matrix(x.tolist())).apply(mpmath.re).tolist(), float)


def _lu_by_determinants(x: np.ndarray) -> np.ndarray:
    """Return both factors as quotients of minors."""
    out = np.empty(x.shape)
    for i, j in np.ndindex(out.shape):
        k = min(i, j)
        taken = np.linalg.det(x[np.ix_([*range(k), i], [*range(k), j])])
        before = np.linalg.det(x[: k + (i > j), : k + (i > j)])
        out[i, j] = taken / before
    return out


def _order_of_pivots(x: np.ndarray) -> list[int]:
    """Return the order of rows by which Gauss's elimination finds the largest pivots."""
    order, left = [], list(range(len(x)))
    for k in range(len(x)):
        minors = [abs(np.linalg.det(x[[*order, row], : k + 1])) for row in left]
        order.append(left.pop(int(np.argmax(minors))))
    return order


# Transforms, by the matrix of the discrete Fourier transform ------------------------------------


def _fourier(x: np.ndarray, axes: tuple, inverse: bool, norm: str) -> np.ndarray:
    for axis in axes:
        size = x.shape[axis]
        sign = 2j if inverse else -2j
        matrix = np.exp(sign * np.pi / size * (np.outer(range(size), range(size)) % size))
        divisor = {"ortho": size**0.5, "backward": size**inverse, "forward": size ** (not inverse)}
        product = np.tensordot(matrix, x, (1, axis)) / divisor[norm]
        x = np.moveaxis(product, 0, axis)
    return x


def _whole_spectrum(x: np.ndarray, axis: int, size: int) -> np.ndarray:
    """Return the spectrum of a real signal from its first half."""
    half = np.moveaxis(x, axis, -1).astype(complex)
    half[..., 0] = half[..., 0].real
    if size % 2 == 0:
        half[..., -1] = half[..., -1].real
    return np.moveaxis(
        np.concatenate([half, half[..., (size - 1) // 2 : 0 : -1].conj()], -1), -1, axis
    )


# Convolution and pooling, one window or tap at a time ------------------------------------------


def _taps(padded: np.ndarray, window: Any, out: Any, geometry: Geometry) -> Iterator[tuple]:
    """Yield for each position in the window the view of the elements under it, by groups."""
    for tap in np.ndindex(*window):
        index = tuple(
            slice(i * dilation, i * dilation + stride * (count - 1) + 1, stride)
            for i, count, stride, dilation in zip(
                tap, out, geometry.strides, geometry.dilations, strict=True
            )
        )
        view = padded[(slice(None), *index)]
        yield tap, view.reshape(*view.shape[:3], geometry.groups, -1)


def _pad(x: np.ndarray, geometry: Geometry) -> np.ndarray:
    return np.pad(x, ((0, 0), *geometry.padding, (0, 0)))


def _grouped(x: np.ndarray, groups: int) -> np.ndarray:
    return x.reshape(*x.shape[:-1], groups, -1)


def _conv(x: np.ndarray, filters: np.ndarray, geometry: Geometry) -> np.ndarray:
    out = geometry.output_size(x.shape[1:3], filters.shape[:2])
    total: Any = 0
    for tap, view in _taps(_pad(x, geometry), filters.shape[:2], out, geometry):
        weights = _grouped(filters[tap], geometry.groups)
        total = total + np.einsum("nhwgc,cgo->nhwgo", view, weights)
    return total.reshape(x.shape[0], *out, filters.shape[3])


def _conv_input(x: np.ndarray, filters: np.ndarray, geometry: Geometry, size: Any) -> np.ndarray:
    channels = filters.shape[2] * geometry.groups
    padded = np.zeros((x.shape[0], *geometry.padded_size(size), channels), x.dtype)
    pairs = _taps(padded, filters.shape[:2], x.shape[1:3], geometry)
    for tap, view in pairs:
        weights = _grouped(filters[tap], geometry.groups)
        view += np.einsum("nhwgo,cgo->nhwgc", _grouped(x, geometry.groups), weights)
    (top, _), (left, _) = geometry.padding
    return padded[:, top : top + size[0], left : left + size[1]]


def _conv_filter(x: np.ndarray, y: np.ndarray, geometry: Geometry, window: Any) -> np.ndarray:
    parts = [
        np.einsum("nhwgc,nhwgo->cgo", view, _grouped(y, geometry.groups))
        for _, view in _taps(_pad(x, geometry), window, y.shape[1:3], geometry)
    ]
    return np.reshape(parts, (*window, parts[0].shape[0], y.shape[3]))


def _pool(reduce: Callable) -> Callable:
    """Return the function that reduces the elements under each window."""

    def reference(x: np.ndarray, window: Window) -> np.ndarray:
        rows, columns = window.output_size(x.shape[-3:-1])
        lines = [
            np.stack([reduce(_under(x, window, (i, j))) for j in range(columns)], -2)
            for i in range(rows)
        ]
        return np.stack(lines, -3)

    return reference


def _exchanges(order: np.ndarray, size: int) -> np.ndarray:
    """Return the positions to exchange with 0, 1, ... that bring rows into an order."""
    rows, pivots = list(range(len(order))), []
    for i, row in enumerate(order[:size]):
        pivots.append(rows.index(row))
        rows[i], rows[pivots[-1]] = rows[pivots[-1]], rows[i]
    return np.array(pivots)


def _under(x: np.ndarray, window: Window, tap: Any) -> np.ndarray:
    """Return the elements (..., elements, channels) under one window, without those outside the
    image.
    """
    index = []
    for i, size, stride, pads in zip(tap, window.size, window.strides, window.padding, strict=True):
        start = i * stride - pads[0]
        index.append(slice(max(start, 0), start + size))
    part = x[(..., *index, slice(None))]
    return part.reshape(*part.shape[:-3], -1, part.shape[-1])


def _first_largest(x: np.ndarray, window: Window) -> np.ndarray:
    """Return the first position of each largest element, by pooling the positions that have it."""
    height, width = x.shape[-3:-1]
    indices = np.broadcast_to(np.arange(height * width).reshape(height, width, 1), x.shape)
    pairs = np.stack([x, indices], -4)

    def reduce(part: np.ndarray) -> np.ndarray:
        values, indices = part[..., 0, :, :], part[..., 1, :, :]
        return np.take_along_axis(indices, values.argmax(-2, keepdims=True), -2)[..., 0, :]

    return _pool(reduce)(pairs, window).astype(np.int64)


def _exact_sigmoid(x: Any) -> Any:
    e = mpmath.exp(-abs(x))
    return (e if x < 0 else 1) / (1 + e)


def _exact_softplus(x: Any) -> Any:
    return max(x, 0) + mpmath.log1p(mpmath.exp(-abs(x)))


def _exact_sigmoid_slope(x: Any) -> Any:
    return _exact_sigmoid(x) * _exact_sigmoid(-x)


EXACT: dict[str, Callable[..., Any]] = {
    "arccos": mpmath.acos,
    "arccosh": mpmath.acosh,
    "arcsin": mpmath.asin,
    "arcsinh": mpmath.asinh,
    "arctan": mpmath.atan,
    "arctan2": mpmath.atan2,
    "arctanh": mpmath.atanh,
    "beta": lambda x, y: mpmath.exp(_exact_betaln(x, y)),
    "betaln": _exact_betaln,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "erfcinv": exact_erfcinv,
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "expint": lambda x: mpmath.ei(x) if x else -mpmath.ldexp(1, 2000),  # -inf has no exponent
    "fresnel_cos": mpmath.fresnelc,
    "fresnel_sin": mpmath.fresnels,
    "softsign": lambda x: x / (1 + abs(x)),
    "gamma": lambda x: mpmath.nan if _is_pole(x) else mpmath.gamma(x),
    "lgamma": mpmath.loggamma,
    "log2": lambda x: mpmath.log(x, 2),
    "logit": lambda x: mpmath.log(x / (1 - x)),
    "log_sigmoid": lambda x: -_exact_softplus(-x),
    "logaddexp": lambda x, y: max(x, y) + mpmath.log1p(mpmath.exp(-abs(x - y))),
    "gelu": lambda x: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "ndtr": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "normal_density": mpmath.npdf,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "sigmoid": _exact_sigmoid,
    "sigmoid_slope": _exact_sigmoid_slope,
    "sinc": mpmath.sincpi,
    "softplus": _exact_softplus,
    "tanh_slope": lambda x: mpmath.sech(x) ** 2,
    "xlogy": lambda x, y: x * mpmath.log(y) if x else mpmath.mpf(0),
}
"""Those that mpmath has under another name or not at all."""


def _candidates(seed: np.ndarray, sampler: str, count: int, size: int, unique: bool) -> np.ndarray:
    """Draw classes one after the other, those that were there before again if `unique`."""
    generator, kept, tries = np.random.Generator(np.random.Philox(int(seed))), [], 0
    while len(kept) < count:
        share, tries = generator.random(), tries + 1
        drawn_class = (
            int(share * size) if sampler == "uniform" else int(np.expm1(share * np.log1p(size)))
        )
        if not unique or drawn_class not in kept:
            kept.append(drawn_class)
    return np.array([*kept, tries])


def _searched(table: np.ndarray, values: np.ndarray, side: str) -> np.ndarray:
    """Count the elements of each row that stand before each value."""
    rows, keys = table[..., None, :], values[..., None]
    return np.sum(rows < keys if side == "left" else rows <= keys, -1)


def _isotonic_blocks(x: np.ndarray, decreasing: bool) -> np.ndarray:
    """Number the blocks of equal values of the regression, by its formula of means of ranges.

    The value at i is the least over ends j before i of the largest mean from there to an end k.
    """
    sign, size = (1 if decreasing else -1), x.shape[-1]
    boundaries = []
    for row in x.reshape(-1, size).astype(float) * sign:
        values = [
            min(max(row[j : k + 1].mean() for k in range(i, size)) for j in range(i + 1))
            for i in range(size)
        ]
        breaks = ~np.isclose(values[1:], values[:-1], rtol=1e-12, atol=1e-12)
        boundaries.append(np.r_[0, np.cumsum(breaks)])
    return np.array(boundaries).reshape(x.shape)


def _banded(bands: np.ndarray, first: int) -> np.ndarray:
    """Return matrices with the first row of `bands` on diagonal `first`, the others below it."""
    size = bands.shape[-1]
    places = np.arange(size)
    matrix = np.zeros((*bands.shape[:-2], size, size), bands.dtype)
    for row, k in enumerate(range(first, first - bands.shape[-2], -1)):
        inside = places[(places + k >= 0) & (places + k < size)]
        matrix[..., inside, inside + k] = bands[..., row, inside]
    return matrix


REFERENCES: dict[str, Callable[..., Any]] = {
    "flat_positions": lambda indices, sizes, name: np.ravel_multi_index(
        tuple(np.moveaxis(indices, -1, 0)), sizes
    ),
    "last_sources": lambda indices, size, batch_dims: np.array(
        [max(np.flatnonzero(indices == i), default=-1) for i in range(size)]
    ),
    "segment_rows": lambda ids, size, name: np.where(ids < 0, size, ids),
    "segment_extremum": _segment_extremum,
    "sign_bit": np.signbit,
    "real": np.real,
    "imag": np.imag,
    "scalar_power": lambda x, exponent: np.power(x, x.dtype.type(exponent)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.logaddexp(x, x.dtype.type(0)),
    "log_sigmoid": lambda x: -np.logaddexp(-x, x.dtype.type(0)),
    "xlogy": _xlogy,
    "softsign": lambda x: np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x))),
    "relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "round": np.round,
    "where": np.where,
    "clip": np.clip,
    "multiply_upstream": lambda x, y: np.where((x == 0) & ~np.isfinite(y), 0, x * y),
    "multiply_tangent": lambda x, y: np.where((x == 0) | (y == 0), 0, x * y),
    "divide_upstream": lambda x, y: np.where((x == 0) & ((y == 0) | np.isnan(y)), 0, x / y),
    "divide_unbounded": lambda x, y: np.where(
        (x == 0) & ~((y != 0) & np.isfinite(y)), 0, x / y + (y - y)
    ),
    "unless_masked": lambda upstream, slope, gradient: np.where(
        (upstream == 0) & ~np.isfinite(slope), 0, gradient
    ),
    "one_minus_square": lambda x: (1 - x) * (1 + x),
    "normalized": _normalized,
    "direction": _direction,
    "sigmoid_slope": each(lambda x: float(_exact_sigmoid_slope(x)) if x == x else x),
    "tanh_slope": each(
        lambda x: float(mpmath.sech(x)) ** 2 if abs(x) < 800 else x - x if x != x else 0.0
    ),
    "nearest_finite": _nearest_finite,
    "erf": each(math.erf),
    "erfc": each(math.erfc),
    "erfinv": each(erfinv),
    "lgamma": each(lgamma),
    "digamma": each(digamma),
    "erfcinv": each(erfcinv),
    "bessel_i": each(bessel_i),
    "bessel_ie": each(bessel_ie),
    "bessel_iv": each(bessel_iv),
    "bessel_ive": each(lambda n, x: bessel_iv(n, x, scaled=True)),
    "bessel_j": each(bessel_j),
    "bessel_y": each(bessel_y),
    "bessel_k": each(bessel_k),
    "bessel_ke": each(bessel_ke),
    "dawson_derivative": each(dawson_derivative),
    "spence_derivative": each(spence_derivative),
    "expint": each(expint),
    "fresnel_cos": each(_fresnel(mpmath.fresnelc)),
    "fresnel_sin": each(_fresnel(mpmath.fresnels)),
    "cos_square": each(_of_square(mpmath.cospi)),
    "sin_square": each(_of_square(mpmath.sinpi)),
    "zeta": each(zeta),
    "zeta_derivative": lambda s, q, order: each(lambda s, q: zeta_derivative(s, q, order))(s, q),
    "igamma": each(igamma),
    "igammac": each(igammac),
    "igamma_derivative": lambda a, x, order: each(lambda a, x: igamma(a, x, order))(a, x),
    "gamma_density": lambda a, x, order: each(lambda a, x: gamma_density(a, x, order))(a, x),
    "betainc": each(betainc),
    "gamma_transport": each(gamma_transport),
    "betainc_derivative": lambda a, b, x, orders: each(lambda *v: betainc(*v, orders))(a, b, x),
    "beta_density": lambda a, b, x, orders: each(lambda *v: beta_density(*v, orders))(a, b, x),
    "gelu": each(lambda x: x * math.erfc(-x / math.sqrt(2)) / 2 if x != -math.inf else -0.0),
    "ndtr": each(lambda x: math.erfc(-x / math.sqrt(2)) / 2),
    "normal_density": each(lambda x: math.exp(-x * x / 2) / math.sqrt(2 * math.pi)),
    "logit": lambda x: np.log(x / (1 - x)),
    "gamma": each(_of_gamma(mpmath.gamma, math.nan)),
    "rgamma": each(_of_gamma(mpmath.rgamma, 0.0)),
    "beta": each(beta),
    "betaln": each(betaln),
    "polygamma": each(polygamma),
    "sinc": each(sinc),
    "sinc_derivative": each(sinc_derivative),
    "sum": _over(np.sum),
    "mean": _over(np.mean),
    "prod": _over(np.prod),
    "max": _over(np.max),
    "min": _over(np.min),
    "any": _over(np.any),
    "all": _over(np.all),
    "variance": _over(np.var),
    "logsumexp": _over(lambda x, **over: np.log(np.sum(np.exp(x), **over))),
    "euclidean_norm": _over(lambda x, **over: np.sqrt(np.sum(x * x, **over))),
    "argmax": np.argmax,
    "argmin": np.argmin,
    "softmax": lambda x, axis: np.exp(x) / np.sum(np.exp(x), axis, keepdims=True),
    "log_softmax": lambda x, axis: x - np.log(np.sum(np.exp(x), axis, keepdims=True)),
    "standardize": lambda x, axis, epsilon: (
        (x - np.mean(x, axis, keepdims=True)) / np.sqrt(np.var(x, axis, keepdims=True) + epsilon)
    ),
    "softmax_pull": lambda g, y, axis: y * (g - np.sum(g * y, axis, keepdims=True)),
    "sparse_cross_entropy": lambda x, labels: (
        np.log(np.sum(np.exp(x), -1))
        - np.sum(x * (labels[..., None] == np.arange(x.shape[-1])), -1)
    ),
    "log_softmax_pull": lambda g, y, axis: g - np.exp(y) * np.sum(g, axis, keepdims=True),
    "cumsum": lambda x, **params: _scanned(lambda state, x: state + x, 0, x, **params),
    "cumprod": lambda x, **params: _scanned(lambda state, x: state * x, 1, x, **params),
    "recurrence": lambda a, b, pulls, **params: _scanned(
        lambda r, a, b: b + a * r, 0, a, b, **params
    ),
    "identity": np.array,
    "stop_gradient": np.array,
    "optimization_barrier": np.array,
    "cast": lambda x, dtype: x.astype(dtype),
    "reshape": lambda x, shape: np.reshape(x, shape),
    "expand_dims": np.expand_dims,
    "squeeze": np.squeeze,
    "transpose": lambda x, perm: np.transpose(x, perm),
    "broadcast_to": np.broadcast_to,
    "concatenate": lambda *arrays, axis: np.concatenate(arrays, axis),
    "stack": lambda *arrays, axis: np.stack(arrays, axis),
    "getitem": lambda x, key: x[key],
    "gather": _take,
    "set_row": _with_row,
    "take_along_axis": np.take_along_axis,
    "sort": _in_order,
    "argsort": _order,
    "one_hot": _is_one_hot,
    "labels": lambda labels, classes: labels,
    "pad": lambda x, value, widths: np.pad(x, widths, constant_values=value),
    "matvec": lambda x, y: np.matmul(x, y[..., None])[..., 0],
    "inverse": np.linalg.inv,
    "determinant": np.linalg.det,
    "cofactors": lambda x: (
        np.linalg.det(x)[..., None, None] * np.swapaxes(np.linalg.inv(x), -1, -2)
    ),
    "determinant_sign": lambda x: np.linalg.slogdet(x)[0],
    "log_abs_determinant": lambda x: np.linalg.slogdet(x)[1],
    "cholesky": lambda x: np.linalg.cholesky((x + np.swapaxes(x, -1, -2)) / 2),
    "solve": np.linalg.solve,
    "fft": _fourier,
    "rfft": lambda x, axis, norm: _fourier(x, (axis,), False, norm).take(
        range(x.shape[axis] // 2 + 1), axis
    ),
    "irfft": lambda x, axis, size, norm: (
        _fourier(_whole_spectrum(x, axis, size), (axis,), True, norm).real
    ),
    "determinant_phase": lambda x: np.linalg.slogdet(x)[0],
    "complex_of_pairs": lambda x: x[..., 0] + 1j * x[..., 1],
    "candidates": _candidates,
    "isotonic_blocks": _isotonic_blocks,
    "searchsorted": _searched,
    "invert_permutation": lambda x: np.argsort(x),
    "tridiagonal_solve": lambda x, y: np.linalg.solve(_banded(x, 1), y),
    "banded_triangular_solve": lambda x, y: np.linalg.solve(_banded(x, 0), y),
    "triangular_solve": lambda x, y, lower: np.linalg.solve((np.triu, np.tril)[lower](x), y),
    "eigh": lambda x: _one_below_another(*np.linalg.eigh(x)),
    "eigvalsh": np.linalg.eigvalsh,
    "check_coincident": lambda x, close, like, name, phase: x,
    "near_values": lambda x: x == np.swapaxes(x, -1, -2),
    "zero_values": lambda x, name: x == 0,
    "direction_of_values": lambda x, name: [[-1.5, 1.5, 1.0]],
    "weights_of_limits": lambda x, way, name: [[0.5, -0.5, 1.0]],
    "limits_of_quotients": lambda image, *rows, name: 0 * image,
    "check_limits": lambda x, left, values, right, limits, name, diagonal: x,
    "without_limits": lambda x, asked, left, values, right, name, diagonal: x,
    "gradient_by_values": lambda x, slopes, left, *others, name: left * slopes * others[1],
    "cofactor_change": _cofactor_change,
    "inverse_of_regular": np.linalg.inv,
    "values_of_factors": lambda x, matrix, factors, name: x,
    "check_tangent": lambda x, close, name, phase: x,
    "vanish": lambda x, y: (y == 0) & (x == 0).all(-2, keepdims=True),
    "svd": _singular_vectors,
    "svdvals": lambda x: np.linalg.svd(x, compute_uv=False),
    "complement": lambda x: np.linalg.qr(x, "complete")[0][..., x.shape[-1] :],
    "qr": lambda x: np.concatenate(np.linalg.qr(x), -2),
    "eig": lambda x: _one_below_another(*np.linalg.eig(x)),
    "eigvals": np.linalg.eigvals,
    "lu": lambda x: _of_each(x, _lu_by_determinants),
    "lu_order": lambda x: _of_each(x, _order_of_pivots, 1),
    "lu_pivots": lambda x, size: np.apply_along_axis(_exchanges, -1, x, size),
    "expm": lambda x: _of_each(x, lambda matrix: _by_mpmath(mpmath.expm, matrix)),
    "sqrtm": lambda x: _of_each(x, lambda matrix: _by_mpmath(mpmath.sqrtm, matrix)),
    "logm": lambda x: _of_each(x, lambda matrix: _by_mpmath(mpmath.logm, matrix)),
    "pinv": np.linalg.pinv,
    "lstsq": lambda x, y, rcond: np.linalg.pinv(x) @ y,
    "conv": _conv,
    "conv_input": _conv_input,
    "conv_filter": _conv_filter,
    "max_pool": _pool(lambda part: part.max(-2)),
    "max_pool_indices": _first_largest,
    "mean_pool": _pool(lambda part: part.mean(-2)),
}
