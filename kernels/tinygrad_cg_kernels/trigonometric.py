"""sin and cos, in arithmetic that LLVM vectorises wherever the argument is not too large.

The argument is reduced by quarter turns in steps that are exact (Cody and Waite), then a
polynomial serves; a large one goes to libm. Constants named as in fdlibm are fdlibm's.
"""

import cmath
import math

import numpy as np
from numba import types

from tinygrad_cg_kernels.compile import (
    bits,
    by_type,
    float_absolute,
    inlined,
    jitable,
)
from tinygrad_cg_kernels.exponential import SHIFT, SHIFT_32

F = np.float32
ZERO32, HALF32, ONE32 = F(0), F(0.5), F(1)

# --- sin, cos -------------------------------------------------------------------------

TWO_OVER_PI = 0.6366197723675814
PIO2_1, PIO2_2 = 1.57079632673412561417e00, 6.07710050630396597660e-11
PIO2_3, PIO2_3T = 2.02226624871116645580e-21, 8.47842766036889956997e-32
S1, S2, S3 = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
)
S4, S5, S6 = 2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10
C1, C2, C3 = 4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05
C4, C5, C6 = (
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)
TWO_OVER_PI_32 = F(0.6366197723675814)
PIO2_1_32, PIO2_2_32 = F(1.5703125), F(4.837512969970703125e-4)
PIO2_3_32, PIO2_3T_32 = F(7.549533620476723e-08), F(2.5633440682570896e-12)
S1_32, S2_32, S3_32 = F(-1.6666654611e-1), F(8.3321608736e-3), F(-1.9515295891e-4)
C1_32, C2_32, C3_32 = F(4.166664568298827e-2), F(-1.388731625493765e-3), F(2.443315711809948e-5)
NEAR = 1.0e6
NEAR_32 = F(8192.0)


@jitable
def _near64(x):
    return float_absolute(x) <= NEAR


@jitable
def _near32(x):
    return float_absolute(x) <= NEAR_32


@jitable
def _quarter_turns64(x):
    """The quadrant of x, and its offset there in two parts, for |x| <= NEAR."""
    inlined()
    shifted = x * TWO_OVER_PI + SHIFT
    n = shifted - SHIFT
    first = x - n * PIO2_1
    w = n * PIO2_2
    second = first - w
    lost = (first - second) - w
    w = n * PIO2_3 + (n * PIO2_3T - lost)
    y = second - w
    return bits(shifted), y, (second - y) - w


@jitable
def _quarter_turns32(x):
    inlined()
    shifted = x * TWO_OVER_PI_32 + SHIFT_32
    n = shifted - SHIFT_32
    second = (x - n * PIO2_1_32) - n * PIO2_2_32
    third = second - n * PIO2_3_32
    lost = (second - third) - n * PIO2_3_32
    w = n * PIO2_3T_32 - lost
    y = third - w
    return bits(shifted), y, (third - y) - w


@jitable
def _sin_or_cos64(quadrant, x, y):
    """sin of x + y, |x| <= pi/4, moved on by quarter turns."""
    inlined()
    z = x * x
    w = z * z
    r = S2 + z * (S3 + z * S4) + z * w * (S5 + z * S6)
    v = z * x
    sine = x - ((z * (0.5 * y - v * r) - y) - v * S1)
    r = z * (C1 + z * (C2 + z * C3)) + w * w * (C4 + z * (C5 + z * C6))
    half = 0.5 * z
    head = 1.0 - half
    cosine = head + (((1.0 - head) - half) + (z * r - x * y))
    value = sine if quadrant & 1 == 0 else cosine
    return value if quadrant & 2 == 0 else -value


@jitable
def _sin_or_cos32(quadrant, x, y):
    inlined()
    z = x * x
    sine = x + (x * z * (S1_32 + z * (S2_32 + z * S3_32)) + y)
    tail = z * z * (C1_32 + z * (C2_32 + z * C3_32)) - x * y
    cosine = ONE32 - (HALF32 * z - tail)
    value = sine if quadrant & np.int32(1) == np.int32(0) else cosine
    return value if quadrant & np.int32(2) == np.int32(0) else -value


@jitable
def _sin_near64(x):
    inlined()
    quadrant, high, low = _quarter_turns64(x)
    value = _sin_or_cos64(quadrant, high, low)
    return x if x == 0.0 else value


@jitable
def _sin_near32(x):
    inlined()
    quadrant, high, low = _quarter_turns32(x)
    value = _sin_or_cos32(quadrant, high, low)
    return x if x == ZERO32 else value


@jitable
def _cos_near64(x):
    inlined()
    quadrant, high, low = _quarter_turns64(x)
    return _sin_or_cos64(quadrant + 1, high, low)


@jitable
def _cos_near32(x):
    inlined()
    quadrant, high, low = _quarter_turns32(x)
    return _sin_or_cos32(np.int32(quadrant + np.int32(1)), high, low)


def near(x):
    """Whether `sin_near` and `cos_near` serve x."""
    return np.abs(x) <= NEAR_32


def sin_near(x):
    """sin of an x that is `near`, in arithmetic that vectorises."""
    return np.sin(x)


def cos_near(x):
    """cos of an x that is `near`, in arithmetic that vectorises."""
    return np.cos(x)


@jitable
def _nowhere(x):
    return False


@jitable
def _sin_real(x):
    return sin_near(x) if near(x) else math.sin(x)


@jitable
def _cos_real(x):
    return cos_near(x) if near(x) else math.cos(x)


@jitable
def _sin_complex(x):
    return cmath.sin(x)


@jitable
def _cos_complex(x):
    return cmath.cos(x)


by_type(near, {types.float64: _near64, types.float32: _near32, types.Complex: _nowhere})
by_type(
    sin_near,
    {types.float64: _sin_near64, types.float32: _sin_near32, types.Complex: _sin_complex},
)
by_type(
    cos_near,
    {types.float64: _cos_near64, types.float32: _cos_near32, types.Complex: _cos_complex},
)


def sin(x):
    """Sine of x in radians."""
    return np.sin(x)


def cos(x):
    """Cosine of x in radians."""
    return np.cos(x)


by_type(sin, {types.Float: _sin_real, types.Complex: _sin_complex})
by_type(cos, {types.Float: _cos_real, types.Complex: _cos_complex})

GUARDED = {sin: (near, sin_near), cos: (near, cos_near)}
"""Functions right everywhere that vectorise only where a test holds: (test, fast version).
A loop takes the fast version for each block of elements that all pass the test."""
