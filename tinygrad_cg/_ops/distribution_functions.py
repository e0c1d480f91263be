"""The normal distribution function, the gamma and beta functions, and the inverse of sigmoid."""

from __future__ import annotations

import math

from tinygrad_cg_kernels import elementary as kernels
from tinygrad_cg_kernels.elementary.hyperbolic import logit as logit_kernel
from tinygrad_cg_kernels.elementary.special import ndtr as ndtr_kernel

from .._core.annotations import TensorLike
from .._core.conversion import convert
from .._core.tensor import Tensor
from .comparison import less
from .cumulative import cumsum
from .define import Real
from .elementwise import (
    POSITIVE,
    add,
    cos,
    divide_upstream,
    multiply,
    multiply_upstream,
    negative,
    of_real,
    of_reals,
    round_half_even,
    sin,
    subtract,
    where,
)
from .reductions import reduce_sum
from .special_functions import digamma, erfcinv

normal_density = of_real(
    "normal_density",
    "Return the density of the normal distribution, exp(-x**2 / 2) / sqrt(2 pi).",
    vjp=lambda dy, x, out: negative(multiply_upstream(dy, multiply_upstream(out, x))),
    ulps=(2.0, 1.0),
    spellings=(),
)
ndtr = of_real(
    "ndtr",
    "Return the distribution function of the normal distribution, accurate in its left tail.",
    kernel=ndtr_kernel,
    vjp=lambda dy, x: multiply_upstream(dy, normal_density(x)),
    ulps=(4.0, 1.0),
    spellings=(),
)
gelu = of_real(
    "gelu",
    "Return x times the normal distribution function at x, which is 0 at -inf.",
    vjp=lambda dy, x: multiply_upstream(dy, add(ndtr(x), multiply_upstream(normal_density(x), x))),
    decomposition=lambda ops, x: ops.multiply_upstream(ops.ndtr(x), x),
    ulps=(4.0, 1.0),
    spellings=(),
)
logit = of_real(
    "logit",
    "Return log(x / (1 - x)), the inverse of sigmoid: infinite at 0 and 1, NaN beyond.",
    kernel=logit_kernel,
    vjp=lambda dy, x: divide_upstream(dy, multiply(x, subtract(1, x))),
    ulps=(3.0, 3.0),
    spellings=(),
    samples=(Real(0.1, 0.9),),
)
gamma = of_real(
    "gamma",
    "Return the gamma function: (x - 1)! at whole numbers, NaN at -1, -2, ...",
    kernel=kernels.gamma,
    vjp=lambda dy, x, out: multiply_upstream(dy, multiply(out, digamma(x))),
    ulps=(4.0, 1.0),
    spellings=(),
    samples=(Real(0.5, 4.0),),
)


def _rgamma_slope(x: Tensor, out: Tensor) -> Tensor:
    """Return the derivative of 1 / gamma(x), which is finite at the poles of gamma and digamma.

    Below 1/2 it follows from 1 / gamma(x) = gamma(1 - x) sin(pi x) / pi; the sine has period 2.
    """
    reflected = less(x, 0.5)
    mirror = where(reflected, subtract(1, x), 1)
    angle = multiply(subtract(x, multiply(2, round_half_even(multiply(x, 0.5)))), math.pi)
    logarithmic = multiply(digamma(mirror), multiply(sin(angle), 1 / math.pi))
    below = multiply(gamma(mirror), subtract(cos(angle), logarithmic))
    return where(reflected, below, negative(multiply(out, digamma(where(reflected, 1, x)))))


rgamma = of_real(
    "rgamma",
    "Return 1 / gamma(x): 0 where gamma has a pole.",
    kernel=kernels.rgamma,
    vjp=lambda dy, x, out: multiply_upstream(dy, _rgamma_slope(x, out)),
    ulps=(4.0, 1.0),
    spellings=(),
    samples=(Real(0.5, 4.0),),
)


def _slope(x: Tensor, y: Tensor) -> Tensor:
    """Return the derivative of betaln by x."""
    return subtract(digamma(x), digamma(add(x, y)))


betaln = of_reals(
    "betaln",
    "Return log(abs(beta(x, y))), the logarithm of the beta function.",
    kernel=kernels.betaln,
    vjp=(
        lambda dy, x, y: multiply_upstream(dy, _slope(x, y)),
        lambda dy, x, y: multiply_upstream(dy, _slope(y, x)),
    ),
    ulps=(4.0, 1.0),
    spellings=(),
    samples=(POSITIVE, POSITIVE),
)
beta = of_reals(
    "beta",
    "Return the beta function, gamma(x) gamma(y) / gamma(x + y).",
    kernel=kernels.beta,
    vjp=(
        lambda dy, x, y, out: multiply_upstream(dy, multiply(out, _slope(x, y))),
        lambda dy, x, y, out: multiply_upstream(dy, multiply(out, _slope(y, x))),
    ),
    ulps=(4.0, 1.0),
    spellings=(),
    samples=(POSITIVE, POSITIVE),
)


def ndtri(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the quantile `x`, from 0 to 1, of the standard normal distribution.

    Accurate for small `x`; infinite at 0 and 1, NaN beyond. Modelled on ``tf.math.ndtri``.
    """
    return subtract(0, multiply(erfcinv(multiply(x, 2)), math.sqrt(2)))


def lbeta(x: TensorLike, name: str | None = None) -> Tensor:
    """Return log(gamma(x1) gamma(x2) ... / gamma(x1 + x2 + ...)) of the last axis.

    It sums `betaln` of each number and the sum of the numbers before it, which avoids cancellation.
    Modelled on ``tf.math.lbeta``; without elements it is infinite.
    """
    x = convert(x)
    if x.ndim and x.shape[-1] == 0:
        return subtract(reduce_sum(x, -1), math.inf)
    return reduce_sum(betaln(x[..., 1:], cumsum(x, -1)[..., :-1]), -1)
