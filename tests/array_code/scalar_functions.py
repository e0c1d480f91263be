"""Functions of numbers in the style of code for Numba, with points for each: `CASES`.

The third entry of a case is the function in mpmath, where it has a name there.
"""

import math

import mpmath as mp
import numpy as np
from numba import njit

LANCZOS = (676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059)
LANCZOS += (12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7)
BERNOULLI = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
NODES = np.array([0.1488743389816312, 0.4333953941292472, 0.6794095682990244, 0.8650633666889845])
WEIGHTS = np.array([0.2955242247147529, 0.2692667193099964, 0.2190863625159820, 0.1494513491505806])
DENSITY = np.array([1.225, 1.112, 1.007, 0.9093, 0.8194, 0.7364, 0.6601])  # of air, each km
TEMPERATURES = np.array([0.0, 10.0, 25.0, 40.0, 60.0, 100.0])
VISCOSITIES = np.array([1.787, 1.307, 0.890, 0.653, 0.466, 0.282])  # of water, mPa s


def lanczos_gamma(x):
    if x < 0.5:
        return math.pi / (math.sin(math.pi * x) * lanczos_gamma_right(1.0 - x))
    return lanczos_gamma_right(x)


@njit
def lanczos_gamma_right(x):
    x -= 1.0
    total = 0.99999999999980993
    for i in range(8):
        total += LANCZOS[i] / (x + i + 1)
    t = x + 7.5
    return math.sqrt(2 * math.pi) * t ** (x + 0.5) * math.exp(-t) * total


@njit
def stirling(x):
    shift = 0.0
    while x < 12.0:
        shift += math.log(x)
        x += 1.0
    total, power = 0.0, 1.0 / x
    for c in BERNOULLI:
        total += c * power
        power /= x * x
    return (x - 0.5) * math.log(x) - x + 0.5 * math.log(2 * math.pi) + total - shift


def digamma(x):
    result = 0.0
    while x < 10.0:
        result -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    y *= 1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * 691 / 32760))))
    return result + math.log(x) - 0.5 / x - y


@njit
def kepler(eccentricity, anomaly):
    x = anomaly if eccentricity < 0.8 else math.pi
    for _ in range(50):
        step = (x - eccentricity * math.sin(x) - anomaly) / (1 - eccentricity * math.cos(x))
        x -= step
        if abs(step) < 1e-14:
            break
    return x


def true_anomaly(eccentricity, anomaly):
    x = kepler(eccentricity, anomaly)
    ratio = math.sqrt((1 + eccentricity) / (1 - eccentricity))
    return 2.0 * math.atan(ratio * math.tan(0.5 * x))


def hyperbolic_kepler(e, m):
    h = math.asinh(m / e)
    step, count = 1.0, 0
    while abs(step) > 1e-13 and count < 30:
        step = (e * math.sinh(h) - h - m) / (e * math.cosh(h) - 1)
        h -= step
        count += 1
    return h


def air_density(height):
    """Linear interpolation in a table, and an exponential above it."""
    if height >= 6.0:
        return DENSITY[6] * math.exp(-(height - 6.0) / 8.4)
    i = max(int(height), 0)
    t = height - i
    return DENSITY[i] * (1 - t) + DENSITY[i + 1] * t


@njit
def find(table, x):
    low, high = 0, len(table) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if table[middle] <= x:
            low = middle
        else:
            high = middle
    return low


def viscosity(t):
    """Cubic interpolation of the logarithms in a table whose steps differ."""
    i = min(max(find(TEMPERATURES, t) - 1, 0), 2)
    result = 0.0
    for j in range(i, i + 4):
        weight = 1.0
        for k in range(i, i + 4):
            if k != j:
                weight *= (t - TEMPERATURES[k]) / (TEMPERATURES[j] - TEMPERATURES[k])
        result += weight * math.log(VISCOSITIES[j])
    return math.exp(result)


def bessel_upward(x):
    half, j0, j1, term = 0.5 * x, 0.0, 0.0, 1.0
    for k in range(30):
        j0 += term
        j1 += term * half / (k + 1)
        term *= -half * half / ((k + 1) * (k + 1))
    for n in range(1, 3):
        j0, j1 = j1, 2 * n / x * j1 - j0
    return j1


def bessel_downward(x):
    """J_5 by Miller's recurrence."""
    after, now, total, wanted = 0.0, 1e-30, 0.0, 0.0
    for n in range(40, 0, -1):
        after, now = now, 2 * n / x * now - after
        if n - 1 == 5:
            wanted = now
        if (n - 1) % 2 == 0:
            total += now if n == 1 else 2.0 * now
    return wanted / total


def bessel_i0(x):
    ax = abs(x)
    if ax < 3.75:
        y = (x / 3.75) ** 2
        return 1.0 + y * (3.5156229 + y * (3.0899424 + y * (1.2067492 + y * 0.2659732)))
    y = 3.75 / ax
    return math.exp(ax) / math.sqrt(ax) * (0.39894228 + y * (0.01328592 + y * 0.00225319))


def bessel_k0(x):
    h, total = 0.1, 0.5 * math.exp(-x)
    for i in range(1, 70):
        total += math.exp(-x * math.cosh(i * h))
    return h * total


def spherical_bessel(x):
    j0 = math.sin(x) / x
    j1 = (j0 - math.cos(x)) / x
    for n in range(1, 3):
        j0, j1 = j1, (2 * n + 1) / x * j1 - j0
    return j1


def lambert_w(x):
    w = math.log(1.0 + x) if x < 3.0 else math.log(x) - math.log(math.log(x))
    while True:
        e = math.exp(w)
        f = w * e - x
        step = f / (e * (w + 1) - (w + 2) * f / (2 * w + 2))
        w -= step
        if abs(step) <= 1e-12 * (1 + abs(w)):
            return w


def airy(x):
    f = g = 0.0
    a, b = 1.0, x
    k = 0
    while k < 40:
        f += a
        g += b
        a *= x * x * x / ((3 * k + 2) * (3 * k + 3))
        b *= x * x * x / ((3 * k + 3) * (3 * k + 4))
        k += 1
    return 0.355028053887817239 * f - 0.258819403792806798 * g


def legendre(x):
    p, q = 1.0, x
    for n in range(1, 7):
        p, q = q, ((2 * n + 1) * x * q - n * p) / (n + 1)
    return q


def chebyshev(x, degree):
    """The degree is a number, too; nothing depends on it smoothly."""
    n = int(degree)
    if n == 0:
        return 1.0
    p, q = 1.0, x
    while n > 1:
        p, q = q, 2 * x * q - p
        n -= 1
    return q


def oscillator(x):
    """The fifth eigenfunction of the harmonic oscillator."""
    p, q = 0.0, math.pi**-0.25 * math.exp(-0.5 * x * x)
    for n in range(5):
        p, q = q, math.sqrt(2 / (n + 1)) * x * q - math.sqrt(n / (n + 1)) * p
    return q


def laguerre(x, alpha):
    p, q = 1.0, 1.0 + alpha - x
    for n in range(1, 5):
        p, q = q, ((2 * n + 1 + alpha - x) * q - (n + alpha) * p) / (n + 1)
    return q


def clenshaw(x):
    b1 = b2 = 0.0
    for k in range(len(LANCZOS) - 1, 0, -1):
        b1, b2 = 2 * x * b1 - b2 + LANCZOS[k] * 1e-3, b1
    return x * b1 - b2 + LANCZOS[0] * 1e-3


def horner(x):
    result = 0.0
    for c in LANCZOS:
        result = result * x + c
    return result


@njit
def gamma_series(a, x):
    term = total = 1.0 / a
    n = a
    while abs(term) > abs(total) * 1e-17:
        n += 1.0
        term *= x / n
        total += term
    return total * math.exp(-x + a * math.log(x) - math.lgamma(a))


@njit
def gamma_fraction(a, x):
    tiny = 1e-300
    b = x + 1.0 - a
    c, d = 1.0 / tiny, 1.0 / b
    h = d
    for i in range(1, 300):
        an = -i * (i - a)
        b += 2.0
        d = 1.0 / (an * d + b)
        c = b + an / c
        change = d * c
        h *= change
        if abs(change - 1.0) < 1e-15:
            break
    return math.exp(-x + a * math.log(x) - math.lgamma(a)) * h


def incomplete_gamma(a, x):
    if x < a + 1.0:
        return gamma_series(a, x)
    return 1.0 - gamma_fraction(a, x)


def beta_fraction(a, b, x):
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    h = d
    for m in range(1, 200):
        even = m * (b - m) * x / ((a - 1.0 + 2 * m) * (a + 2 * m))
        d, c = 1.0 / (1.0 + even * d), 1.0 + even / c
        h *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 1.0 + 2 * m))
        d, c = 1.0 / (1.0 + odd * d), 1.0 + odd / c
        h *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(front + a * math.log(x) + b * math.log(1.0 - x)) * h / a


def erf_series(x):
    total, term, n = 0.0, x, 0
    while abs(term) > 1e-18:
        total += term / (2 * n + 1)
        n += 1
        term *= -x * x / n
    return 2 / math.sqrt(math.pi) * total


def erfc_fraction(x):
    t = 0.0
    for k in range(120, 0, -1):
        t = 0.5 * k / (x + t)
    return math.exp(-x * x) / (math.sqrt(math.pi) * (x + t))


def normal_quantile(p):
    """A rough start, and Halley's iteration."""
    t = math.sqrt(-2 * math.log(min(p, 1 - p)))
    x = t - (2.515517 + 0.802853 * t) / (1 + t * (1.432788 + 0.189269 * t))
    if p < 0.5:
        x = -x
    for _ in range(3):
        e = (0.5 * math.erfc(-x / math.sqrt(2.0)) - p) * math.sqrt(2 * math.pi)
        u = e * math.exp(0.5 * x * x)
        x -= u / (1 + 0.5 * x * u)
    return x


def voigt(x, sigma, gamma):
    """The convolution, by the trapezoidal rule."""
    total, h = 0.0, 0.1
    for i in range(-70, 71):
        t = i * h
        total += math.exp(-0.5 * t * t) * gamma / ((x - sigma * t) ** 2 + gamma * gamma)
    return h * total / (math.pi * math.sqrt(2 * math.pi))


def pseudo_voigt(x, fg, fl):
    f = fg**5 + 2.69269 * fg**4 * fl + 2.42843 * fg**3 * fl**2 + 4.47163 * fg**2 * fl**3
    f = (f + 0.07842 * fg * fl**4 + fl**5) ** 0.2
    r = fl / f
    eta = r * (1.36603 + r * (-0.47719 + 0.11116 * r))
    lorentz = 0.5 * f / (math.pi * (x * x + 0.25 * f * f))
    gauss = math.exp(-4 * math.log(2) * (x / f) ** 2) * 2 * math.sqrt(math.log(2) / math.pi) / f
    return eta * lorentz + (1 - eta) * gauss


def planck(micrometres, kelvins):
    h, c, k = 6.62607015e-34, 299792458.0, 1.380649e-23
    wavelength = micrometres * 1e-6
    exponent = h * c / (wavelength * k * kelvins)
    return 2 * h * c * c / wavelength**5 / math.expm1(exponent) * 1e-12


def wien(n):
    """The peak of x**n / (exp(x) - 1), by Newton's method."""
    x = n
    for _ in range(100):
        change = (x - n * (1 - math.exp(-x))) / (1 - n * math.exp(-x))
        x -= change
        if math.fabs(change) < 1e-14:
            break
    return x


def lennard_jones(r, epsilon, sigma):
    cutoff = 2.5 * sigma
    if r >= cutoff:
        return 0.0
    s6 = (sigma / r) ** 6
    c6 = (sigma / cutoff) ** 6
    return 4 * epsilon * (s6 * s6 - s6 - c6 * c6 + c6)


def switched_lennard_jones(r):
    energy = 4 * (r**-12 - r**-6)
    if r < 2.0:
        return energy
    if r > 2.5:
        return 0.0
    t = (r - 2.0) / 0.5
    return energy * (1 - t * t * t * (10 - 15 * t + 6 * t * t))


def morse(r, depth, width):
    e = math.exp(-width * (r - 1.4))
    return depth * (e * (e - 2))


@njit
def normal_cdf(x):
    return 0.5 * (1.0 + math.erf(x / math.sqrt(2.0)))


@njit
def black_scholes(spot, time, sigma, strike=100.0, rate=0.03):
    d1 = math.log(spot / strike) + (rate + 0.5 * sigma * sigma) * time
    d1 /= sigma * math.sqrt(time)
    d2 = d1 - sigma * math.sqrt(time)
    return spot * normal_cdf(d1) - strike * math.exp(-rate * time) * normal_cdf(d2)


def call_price(spot, time, sigma):
    return black_scholes(spot, time, sigma)


def implied_volatility(price, spot, time):
    sigma, rate, strike = 0.3, 0.03, 100.0
    for _ in range(40):
        root = math.sqrt(time)
        d1 = (math.log(spot / strike) + (rate + 0.5 * sigma**2) * time) / (sigma * root)
        vega = spot * root * math.exp(-0.5 * d1 * d1) / math.sqrt(2 * math.pi)
        difference = black_scholes(spot, time, sigma) - price
        sigma -= difference / vega
        if abs(difference) < 1e-10:
            break
    return sigma


def binomial_tree(spot, sigma):
    """An American put, in an array."""
    n, strike = 12, 100.0
    up = math.exp(sigma * math.sqrt(1 / n))
    p = (math.exp(0.03 / n) - 1 / up) / (up - 1 / up)
    values = np.zeros(13)
    for j in range(n + 1):
        values[j] = max(strike - spot * up ** (2 * j - n), 0.0)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1):
            held = math.exp(-0.03 / n) * (p * values[j + 1] + (1 - p) * values[j])
            values[j] = max(held, strike - spot * up ** (2 * j - i))
    return values[0]


def smoothstep(x):
    t = min(max((x - 0.25) / 0.5, 0.0), 1.0)
    return t * t * (3.0 - 2.0 * t)


def smootherstep(x, low, high):
    if x <= low:
        return 0.0
    if x >= high:
        return 1.0
    t = (x - low) / (high - low)
    return t**3 * (t * (6 * t - 15) + 10)


def colebrook(reynolds, roughness):
    if reynolds < 2300.0:
        return 64.0 / reynolds
    x = 0.02**-0.5
    for _ in range(10):  # no test: the second derivative comes two rounds after the value
        inner = roughness / 3.7 + 2.51 * x / reynolds
        f = x + 2 * math.log10(inner)
        x -= f / (1 + 2 * 2.51 / (reynolds * inner * math.log(10.0)))
    return 1 / x**2


def sphere_drag(reynolds):
    if reynolds < 0.1:
        return 24 / reynolds
    if reynolds < 1000:
        return 24 / reynolds * (1 + 0.15 * reynolds**0.687)
    return 0.44


@njit
def saturation(celsius):
    if celsius >= 0:
        return 611.21 * math.exp((18.678 - celsius / 234.5) * (celsius / (257.14 + celsius)))
    return 611.15 * math.exp((23.036 - celsius / 333.7) * (celsius / (279.82 + celsius)))


def dew_point(celsius, humidity):
    g = math.log(humidity) + 17.625 * celsius / (243.04 + celsius)
    return 243.04 * g / (17.625 - g)


def wet_bulb(celsius, humidity):
    """Bisection, then two steps of Newton's method with a difference for a slope."""
    vapour = humidity * saturation(celsius)
    low, high = -20.0, celsius
    for _ in range(30):
        x = 0.5 * (low + high)
        if saturation(x) - 66.0 * (celsius - x) > vapour:
            high = x
        else:
            low = x
    x = 0.5 * (low + high)
    for _ in range(4):
        slope = (saturation(x + 1e-3) - saturation(x - 1e-3)) / 2e-3 + 66.0
        x -= (saturation(x) - 66.0 * (celsius - x) - vapour) / slope
    return x


def steam_pressure(kelvins):
    """Saturation pressure by the industrial formulation of 1997, region 4."""
    v = kelvins - 0.23855557567849 / (kelvins - 0.65017534844798e3)
    a = v * v + 0.11670521452767e4 * v - 0.72421316703206e6
    b = -0.17073846940092e2 * v * v + 0.12020824702470e5 * v - 0.32325550322333e7
    c = 0.14915108613530e2 * v * v - 0.48232657361591e4 * v + 0.40511340542057e6
    return (2 * c / (-b + math.sqrt(b * b - 4 * a * c))) ** 4


def stumpff(z):
    if z > 0.1:
        return (1 - math.cos(math.sqrt(z))) / z
    if z < -0.1:
        return (math.cosh(math.sqrt(-z)) - 1) / -z
    total, term = 0.0, 0.5
    for k in range(8):
        total += term
        term *= -z / ((2 * k + 3) * (2 * k + 4))
    return total


def hohmann(r1, r2):
    first = math.sqrt(1 / r1) * (math.sqrt(2 * r2 / (r1 + r2)) - 1)
    second = math.sqrt(1 / r2) * (1 - math.sqrt(2 * r1 / (r1 + r2)))
    return abs(first) + abs(second)


def debye(x):
    """Simpson's rule for the heat capacity's integral."""
    n = 40
    h, total = x / n, 0.0
    for i in range(1, n + 1):
        t = i * h
        value = t**4 * math.exp(t) / math.expm1(t) ** 2
        total += value if i == n else (4 if i % 2 else 2) * value
    return 9 / x**3 * total * h / 3


@njit
def agm(a, b):
    while abs(a - b) > 1e-9 * abs(a):
        a, b = 0.5 * (a + b), math.sqrt(a * b)
    a, b = 0.5 * (a + b), math.sqrt(a * b)
    return 0.5 * (a + b)


def elliptic_k(m):
    return math.pi / (2 * agm(1.0, math.sqrt(1.0 - m)))


def elliptic_e(m):
    a, b, c = 1.0, math.sqrt(1 - m), math.sqrt(m)
    total, power = 0.5 * m, 0.5
    for _ in range(6):
        a, b, c = 0.5 * (a + b), math.sqrt(a * b), 0.5 * (a - b)
        power *= 2.0
        total += power * c * c
    return math.pi / (2 * a) * (1 - total)


def carlson_rf(x, y, z):
    for _ in range(9):
        r = math.sqrt(x) * math.sqrt(y) + math.sqrt(y) * math.sqrt(z) + math.sqrt(z) * math.sqrt(x)
        x, y, z = (x + r) / 4, (y + r) / 4, (z + r) / 4
    mean = (x + y + z) / 3
    dx, dy = 1 - x / mean, 1 - y / mean
    dz = -dx - dy
    e2, e3 = dx * dy - dz * dz, dx * dy * dz
    return (1 - e2 / 10 + e3 / 14 + e2 * e2 / 24 - 3 * e2 * e3 / 44) / math.sqrt(mean)


def root_by_bisection(a):
    """Solve x + x**5 = a; the last step is Newton's, since halving forgets the slope."""
    low, high = 0.0, 4.0
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        if middle + middle**5 < a:
            low = middle
        else:
            high = middle
    x = 0.5 * (low + high)
    for _ in range(3):
        x -= (x + x**5 - a) / (1 + 5 * x**4)
    return x


def exp_series(x):
    total, term, n = 0.0, 1.0, 0
    while abs(term) > 1e-17:
        total += term
        n += 1
        term *= x / n
    return total


def zeta(s):
    """Euler and Maclaurin's sum."""
    n, total = 12, 0.0
    for k in range(1, n):
        total += k**-s
    total += n ** (1 - s) / (s - 1) + 0.5 * n**-s
    total += s * n ** (-s - 1) / 12 - s * (s + 1) * (s + 2) * n ** (-s - 3) / 720
    term = s * (s + 1) * (s + 2) * (s + 3) * (s + 4) * n ** (-s - 5) / 30240
    return total + term - term * (s + 5) * (s + 6) / (40 * n * n)


def dilogarithm(x):
    if x > 0.5:
        return math.pi**2 / 6 - math.log(x) * math.log(1 - x) - dilogarithm_series(1 - x)
    return dilogarithm_series(x)


@njit
def dilogarithm_series(x):
    total, power = 0.0, 1.0
    for k in range(1, 80):
        power *= x
        total += power / k**2
    return total


def exponential_integral(x):
    if x <= 1.0:
        total, term = -0.57721566490153286 - math.log(x), -1.0
        for k in range(1, 25):
            term *= -x / k
            total += term / k
        return total
    f = 0.0
    for k in range(150, 0, -1):
        f = k / (1 + k / (x + f))
    return math.exp(-x) / (x + f)


def dawson(x):
    total, term = 0.0, x
    for k in range(60):
        total += term
        term *= -2 * x * x / (2 * k + 3)
    return total


def fresnel(x):
    total, n = 0.0, 0
    term = math.pi / 2 * x * x * x
    while True:
        change = term / (4 * n + 3)
        total += change
        if abs(change) < 1e-18:
            break
        n += 1
        term *= -((math.pi / 2 * x * x) ** 2) / ((2 * n) * (2 * n + 1))
    return total


def sine_integral(x):
    total, term, k = 0.0, x, 1
    while abs(term) > 1e-18:
        total += term / k
        term *= -x * x / ((k + 1) * (k + 2))
        k += 2
    return total


def hypergeometric(a, b, x):
    total = term = 1.0
    for n in range(80):
        term *= (a + n) * (b + n) / (1.5 + n) * x / (n + 1)
        total += term
        if term == 0.0:
            break
    return total


def logistic_map(r, x):
    for _ in range(12):
        x = r * x * (1 - x)
    return x


def van_der_corput(x):
    """Integers, bits and a continuous rest."""
    n = math.floor(x)
    rest, total, scale = x - n, 0.0, 0.5
    while n > 0:
        if n & 1:
            total += scale
        n >>= 1
        scale *= 0.5
    return total + rest * rest * scale


def collatz(x):
    n, steps, y = int(x), 0, x
    while n != 1:
        if n % 2:
            n = 3 * n + 1
            y += 1 / y
        else:
            n //= 2
            y = math.sqrt(y)
        steps += 1
    return y * steps


def pendulum(angle, time):
    """The angle at a time, by Runge and Kutta's method."""
    h, y, v = time / 20, angle, 0.0
    for _ in range(20):
        k1, l1 = v, -math.sin(y)
        k2, l2 = v + 0.5 * h * l1, -math.sin(y + 0.5 * h * k1)
        k3, l3 = v + 0.5 * h * l2, -math.sin(y + 0.5 * h * k2)
        k4, l4 = v + h * l3, -math.sin(y + h * k3)
        y, v = y + h / 6 * (k1 + 2 * (k2 + k3) + k4), v + h / 6 * (l1 + 2 * (l2 + l3) + l4)
    return y


def gauss_quadrature(a):
    """The integral of exp(-a t^2) over (0, 1)."""
    total = 0.0
    for k in range(4):
        for sign in (-1, 1):
            t = 0.5 + 0.5 * sign * NODES[k]
            total += 0.5 * WEIGHTS[k] * math.exp(-a * t * t)
    return total


@njit
def cubic(z, a, b):
    return ((z - (1 - b)) * z + (a - 3 * b * b - 2 * b)) * z - (a * b - b * b - b**3)


def peng_robinson(t, p):
    """The compressibility of carbon dioxide at reduced temperature and pressure."""
    alpha = (1 + 0.708 * (1 - math.sqrt(t))) ** 2
    a, b = 0.45724 * alpha * p / t**2, 0.07780 * p / t
    z, iteration = 1.0, 0
    while iteration < 60:
        slope = 3 * z * z - 2 * (1 - b) * z + a - 3 * b * b - 2 * b
        change = cubic(z, a, b) / slope
        z -= change
        iteration += 1
        if abs(change) < 1e-13:
            break
    return z


def rate_of_channel(v):
    """Hodgkin and Huxley's alpha_n, with a series at its hole."""
    u = (v + 55.0) / 10.0
    if abs(u) < 1e-2:
        return 0.1 * (1 + u / 2 + u * u / 12 - u**4 / 720 + u**6 / 30240)
    return 0.1 * u / (1 - math.exp(-u))


def srgb(x):
    return 12.92 * x if x <= 0.0031308 else 1.055 * x ** (1 / 2.4) - 0.055


def haversine(latitude, other, longitude):
    a, b, c = math.radians(latitude), math.radians(other), math.radians(longitude)
    s = math.sin((b - a) / 2) ** 2 + math.cos(a) * math.cos(b) * math.sin(c / 2) ** 2
    return 2 * 6371.0 * math.asin(min(1.0, math.sqrt(s)))


def geodetic_latitude(p, z):
    e2 = 6.69437999014e-3
    latitude = math.atan2(z, p * (1 - e2))
    for _ in range(12):
        n = 1 / math.sqrt(1 - e2 * math.sin(latitude) ** 2)
        latitude = math.atan2(z + e2 * n * math.sin(latitude), p)
    return latitude


def wrapped(x):
    y = (x + math.pi) % (2 * math.pi) - math.pi
    return y * math.cos(0.3 * y) + x // 2.0


def huber(x, delta):
    a = abs(x)
    if a <= delta and not math.isnan(x):
        return 0.5 * x * x
    return delta * (a - 0.5 * delta)


@njit
def expansion(z, matter):
    return math.sqrt(matter * (1 + z) ** 3 + 1 - matter)


def comoving_distance(z, matter):
    n = 50
    h = z / n
    total = 0.5 * (1 / expansion(0.0, matter) + 1 / expansion(z, matter))
    for i in range(1, n):
        total += 1 / expansion(i * h, matter)
    return 299792.458 / 70 * total * h


def day_length(latitude, day):
    declination = 0.40928 * math.sin(2 * math.pi * (284 + day) / 365)
    cosine = -math.tan(latitude) * math.tan(declination)
    if cosine >= 1:
        return 0.0
    if cosine <= -1:
        return 24.0
    return 24 / math.pi * math.acos(cosine)


STIFFNESS = ((2.0, -1.0, 0.5), (-1.0, 2.0, -1.0))


def of_tuples_and_lists(x):
    point = (x, x * x, x**3)
    basis = np.array([[1.0, x], [x, 3 * x * x]])
    total = 0.0
    for i in range(2):
        for j in range(3):
            total += STIFFNESS[i][j] * point[j] * point[i - 1] + basis[i][j % 2] ** (j + 1)
    return total + round(x, 1) * x


def betainc(a, b, x):
    return mp.betainc(a, b, 0, x, regularized=True)


CASES = [
    (lanczos_gamma, ([0.3, 1.4, 3.7],), mp.gamma),
    (stirling, ([0.7, 3.2, 14.0],), mp.loggamma),
    (digamma, ([0.4, 2.5, 11.0],), mp.digamma),
    (kepler, ([0.1, 0.5, 0.9], [0.3, 1.1, 2.0]), None),
    (true_anomaly, ([0.1, 0.5, 0.9], [0.3, 1.1, 2.0]), None),
    (hyperbolic_kepler, ([1.2, 2.0], [0.7, 3.0]), None),
    (air_density, ([0.4, 3.3, 7.8],), None),
    (viscosity, ([5.0, 31.0, 77.0],), None),
    (bessel_upward, ([1.5, 2.5, 4.0],), lambda x: mp.besselj(3, x)),
    (bessel_downward, ([1.5, 2.5, 7.0],), lambda x: mp.besselj(5, x)),
    (bessel_i0, ([-1.3, 2.2, 5.0],), None),
    (bessel_k0, ([0.5, 1.3, 4.0],), lambda x: mp.besselk(0, x)),
    (
        spherical_bessel,
        ([0.9, 2.2, 6.0],),
        lambda x: mp.sqrt(mp.pi / 2 / x) * mp.besselj(3.5, x),
    ),
    (lambert_w, ([0.1, 1.7, 25.0],), lambda x: mp.lambertw(x).real),
    (airy, ([-2.0, 0.4, 1.5],), mp.airyai),
    (legendre, ([-0.6, 0.2, 0.9],), lambda x: mp.legendre(7, x)),
    (chebyshev, ([-0.6, 0.2, 0.9], [0.0, 4.5, 6.5]), None),
    (oscillator, ([-1.0, 0.3, 2.0],), None),
    (laguerre, ([0.3, 2.0], [0.5, 1.5]), lambda x, a: mp.laguerre(5, a, x)),
    (clenshaw, ([-0.6, 0.2, 0.9],), None),
    (horner, ([-0.6, 0.2, 0.9],), None),
    (
        incomplete_gamma,
        ([0.8, 2.5, 1.5], [1.0, 1.2, 6.0]),
        lambda a, x: mp.gammainc(a, 0, x, regularized=True),
    ),
    (beta_fraction, ([0.8, 2.5], [1.6, 3.2], [0.2, 0.35]), betainc),
    (erf_series, ([-0.7, 0.2, 1.4],), mp.erf),
    (erfc_fraction, ([1.5, 2.2, 3.0],), mp.erfc),
    (normal_quantile, ([0.02, 0.4, 0.9],), lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1)),
    (voigt, ([0.0, 1.2], [0.5, 0.8], [0.6, 0.9]), None),
    (pseudo_voigt, ([0.1, 1.2], [0.5, 0.8], [0.6, 0.9]), None),
    (planck, ([0.5, 2.0, 10.0], [5800.0, 1500.0, 300.0]), None),
    (wien, ([3.0, 4.0, 5.0],), lambda n: n + mp.lambertw(-n * mp.exp(-n)).real),
    (lennard_jones, ([1.05, 1.7, 4.0], [0.8, 1.0, 1.2], [1.0, 0.9, 1.1]), None),
    (switched_lennard_jones, ([1.1, 2.2, 2.7],), None),
    (morse, ([1.1, 1.9], [4.5, 4.0], [1.9, 2.0]), None),
    (call_price, ([95.0, 110.0], [0.5, 2.0], [0.2, 0.35]), None),
    (implied_volatility, ([6.0, 25.0], [100.0, 110.0], [0.5, 1.5]), None),
    (binomial_tree, ([91.3, 104.7], [0.2, 0.35]), None),
    (smoothstep, ([0.1, 0.4, 0.7, 0.9],), None),
    (smootherstep, ([0.1, 0.4, 0.9], [0.2, 0.25, 0.3], [0.7, 0.75, 0.8]), None),
    (colebrook, ([1500.0, 1e4, 1e5], [1e-3, 2e-3, 1e-4]), None),
    (sphere_drag, ([0.05, 20.0, 2000.0],), None),
    (dew_point, ([10.0, 25.0], [0.4, 0.8]), None),
    (wet_bulb, ([10.0, 25.0], [0.4, 0.8]), None),
    (steam_pressure, ([300.0, 373.15, 500.0],), None),
    (stumpff, ([-2.0, -0.05, 0.03, 1.5],), lambda z: ((1 - mp.cos(mp.sqrt(z))) / z).real),
    (hohmann, ([1.0, 2.0], [1.5, 6.0]), None),
    (debye, ([0.5, 2.0, 6.0],), None),
    (agm, ([1.0, 3.0], [0.3, 5.0]), mp.agm),
    (elliptic_k, ([0.1, 0.5, 0.9],), mp.ellipk),
    (elliptic_e, ([0.1, 0.5, 0.9],), mp.ellipe),
    (carlson_rf, ([0.5, 1.0], [1.5, 2.0], [2.5, 0.7]), None),
    (root_by_bisection, ([0.7, 3.0, 30.0],), None),
    (exp_series, ([-0.4, 0.3, 1.2],), mp.exp),
    (zeta, ([1.5, 2.2, 5.0],), mp.zeta),
    (dilogarithm, ([-0.6, 0.3, 0.8],), lambda x: mp.polylog(2, x).real),
    (exponential_integral, ([0.3, 0.9, 3.0],), mp.e1),
    (dawson, ([0.3, 1.2, 2.0],), lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)),
    (fresnel, ([-0.7, 0.4, 1.6],), mp.fresnels),
    (sine_integral, ([-0.7, 1.4, 3.6],), mp.si),
    (
        hypergeometric,
        ([0.5, -2.3], [1.2, 0.7], [0.3, 0.6]),
        lambda a, b, x: mp.hyp2f1(a, b, 1.5, x),
    ),
    (logistic_map, ([2.3, 3.1], [0.2, 0.6]), None),
    (van_der_corput, ([0.4, 5.3, 22.7],), None),
    (collatz, ([2.3, 6.4, 9.5],), None),
    (pendulum, ([0.3, 2.0], [1.0, 3.0]), None),
    (gauss_quadrature, ([-0.5, 0.4, 2.0],), None),
    (peng_robinson, ([1.1, 1.4], [0.3, 1.0]), None),
    (rate_of_channel, ([-70.0, -55.03, -20.0],), None),
    (srgb, ([0.001, 0.2, 0.8],), None),
    (haversine, ([51.5, -33.9], [48.9, 35.7], [2.4, -11.4]), None),
    (geodetic_latitude, ([0.7, 0.2], [0.71, 0.97]), None),
    (wrapped, ([-4.3, 1.3, 9.1],), None),
    (huber, ([-0.4, 0.3, 2.2], [1.0, 0.5, 1.5]), None),
    (comoving_distance, ([0.1, 1.2], [0.3, 0.25]), None),
    (of_tuples_and_lists, ([0.63, 1.34],), None),
    (day_length, ([0.8, -0.3, 1.5], [80.0, 172.5, 172.5]), None),
]
