"""Scalar functions for compiled loops, all exported from here.

The Python body of a function is its meaning in NumPy. Compiled code uses a version for the type of
the argument (`by_type`).
"""

import warnings

import numpy as np

from tinygrad_cg_kernels.elementary.arithmetic import (
    absolute,
    add,
    ceil,
    clip,
    conj,
    cube,
    divide,
    divide_unbounded,
    divide_upstream,
    floor,
    floor_divide,
    imag,
    maximum,
    minimum,
    multiply,
    multiply_tangent,
    multiply_upstream,
    negative,
    normalized,
    one_minus_square,
    power,
    real,
    relu,
    remainder,
    round,
    rsqrt,
    sign,
    softsign,
    sqrt,
    square,
    subtract,
    unless_masked,
    where,
)
from tinygrad_cg_kernels.elementary.bessel import bessel_i, bessel_ie, zeta
from tinygrad_cg_kernels.elementary.exponential import exp, exp2, expm1
from tinygrad_cg_kernels.elementary.gamma_functions import beta, betaln, gamma, rgamma
from tinygrad_cg_kernels.elementary.hyperbolic import (
    cosh,
    log_sigmoid,
    logaddexp,
    logit,
    sigmoid,
    sigmoid_slope,
    sigmoid_slope_of,
    sinh,
    softplus,
    tanh,
    tanh_slope,
    tanh_slope_of,
)
from tinygrad_cg_kernels.elementary.integers import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    gcd,
    invert,
    lcm,
    left_shift,
    right_shift,
)
from tinygrad_cg_kernels.elementary.inverse import (
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
)
from tinygrad_cg_kernels.elementary.logarithm import log, log1p, log2, log10
from tinygrad_cg_kernels.elementary.logic import (
    equal,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
)
from tinygrad_cg_kernels.elementary.powers import (
    cbrt,
    direction,
    hypot,
    ordinary,
    power_ordinary,
    xlogy,
)
from tinygrad_cg_kernels.elementary.special import (
    digamma,
    erf,
    erfc,
    erfcinv,
    erfinv,
    gelu,
    lgamma,
    ndtr,
    normal_density,
    polygamma,
    sinc,
    sinc_derivative,
)
from tinygrad_cg_kernels.elementary.trigonometric import cos, sin, tan
from tinygrad_cg_kernels.runtime.compile import GUARDED
from tinygrad_cg_kernels.runtime.promotion import is_signed

# --- checks of integer operands -------------------------------------------------------


def _check_power(name: str, x: np.ndarray, y: np.ndarray) -> None:
    if is_signed(y.dtype) and (y < 0).any():
        raise ValueError(f"{name}: integers to negative integer powers are not allowed")


def _check_divisor(name: str, x: np.ndarray, y: np.ndarray) -> None:
    if not y.all():
        message = f"divide by zero encountered in {name}"
        warnings.warn(message, RuntimeWarning, stacklevel=5)


CHECKS = {power: _check_power, floor_divide: _check_divisor, remainder: _check_divisor}
"""Checks of integer operands that run before the loop: ``check(name, *operands)``."""

GUARDED_PAIRS = {power: (ordinary, power_ordinary)}
"""GUARDED functions of two floats, whose loop tests and computes at once."""
GUARDED.update(GUARDED_PAIRS)
