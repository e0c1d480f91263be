"""The accuracy of every elementary function: `python -m tests.support.accuracy`.

How far off a function may be stands in its record, what it computes by mpmath among the
references; here is where to look closely. The command prints the worst error found; a test fails
over the bound.

The error is in units of the last place (ulps) of the exact result: the distance between
neighbouring floats of its binade, and of the smallest subnormals below the normal range.
Overflow counts as the power of two where it sets in.
"""

from __future__ import annotations

import argparse
import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import mpmath
import numpy as np

from tests.support.references import exact_function
from tinygrad_cg._core.primitive import OPS
from tinygrad_cg._ops import load_all

INF = float("inf")
DTYPES = (np.dtype("float64"), np.dtype("float32"))
PRECISION = 140  # bits in which the exact values are computed
CHUNK = 4096  # arrays shorter than this stay on one thread


@dataclass(frozen=True)
class Domain:
    """Where to look at a function.

    `low` and `high` (exclusive, and finite samples only) bound the first operand; `points` are
    drawn besides 0 and +-1, near which to look closely: zeros, poles, overflow, changes of formula.
    A function of two operands has `second`, which draws the second ones next to the first. `scale`
    gives the number whose ulps are counted, where that is not the result.
    """

    low: float = -INF
    high: float = INF
    points: tuple[float, ...] = ()
    second: Callable[[np.random.Generator, np.ndarray], np.ndarray] | None = None
    scale: Callable[..., Any] | None = None


EVERYWHERE = Domain()


def _any_second(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Second operands of all sizes, half of them near the first in size."""
    size = np.exp2(rng.uniform(-30, 30, x.size))
    near = rng.choice([-1, 1], x.size) * np.abs(x) * np.where(rng.random(x.size) < 0.5, size, 1)
    return np.where(rng.random(x.size) < 0.5, near, rng.permutation(x))


def _exponents(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Exponents whose powers fill the range, and are seldom infinite or zero."""
    return rng.uniform(-1.02, 1.02, x.size) * rng.choice([88.7, 709.8], x.size) / np.log(x)


def _second_term(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return x + rng.uniform(-40, 40, x.size)


def _other_coordinate(rng: np.random.Generator, y: np.ndarray) -> np.ndarray:
    """Near a diagonal, or anywhere; none for a zero, whose sign mpmath does not know."""
    ratio = np.exp(rng.normal(0, 2, y.shape)) * rng.choice([-1, 1], y.shape)
    x = np.where(rng.uniform(0, 1, y.shape) < 0.7, y * ratio, rng.permutation(y))
    return np.where(y == 0, np.nan, x)


def _positive(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return np.exp(rng.uniform(-20, 14, x.size)) * rng.choice([1.0, 0.1, 1e-5], x.size)


def _largest_term(x: Any, y: Any) -> Any:
    """Return betaln, or what a relative change of an operand changes it by, if that is more."""
    slopes = [z * (mpmath.psi(0, z) - mpmath.psi(0, x + y)) for z in (x, y)]
    return max(abs(exact_function("betaln")(x, y)), *map(abs, slopes))


OVERFLOW = (709.782712893384, 88.72283905206835)  # log of the largest float64, float32
UNDERFLOW = (-745.1332191019411, -708.3964185322641, -103.97207708399179, -87.33654475055312)
BEYOND_ONE = 1 + 2.0**-52
NEAR_ONE = (0.9966, -0.9999994, 0.99999999, 0.9999999999999)
QUARTERS = tuple(k * 1.5707963267948966 for k in (-2, -1, 1, 2, 3, 4, 10, 1e5, 6e8))

DOMAINS = {
    "exp": Domain(points=OVERFLOW + UNDERFLOW),
    "exp2": Domain(points=(1024.0, -1075.0, 128.0, -149.0)),
    "expm1": Domain(points=OVERFLOW),
    "log": Domain(low=0.0),
    "log2": Domain(low=0.0, points=(0.7, 1.41)),
    "log10": Domain(low=0.0, points=(0.66, 1.31)),
    "log1p": Domain(low=-1.0),
    "sinh": Domain(points=(*OVERFLOW, 0.34657, 7.98, 18.38)),
    "cosh": Domain(points=(*OVERFLOW, 0.34657, 7.98, 18.38)),
    "tanh": Domain(points=(0.12, 0.516, 0.92, 9.01, 18.7)),
    "sigmoid": Domain(points=(*UNDERFLOW, -1.1, -16.65, -36.75)),
    "softplus": Domain(points=UNDERFLOW),
    "log_sigmoid": Domain(points=tuple(-x for x in UNDERFLOW)),
    "logaddexp": Domain(
        second=_second_term,
        scale=lambda x, y: max(abs(exact_function("logaddexp")(x, y)), abs(max(x, y))),
    ),
    "power": Domain(low=0.0, second=_exponents),
    "sqrt": Domain(low=0.0),
    "rsqrt": Domain(low=0.0),
    "hypot": Domain(second=_any_second),
    "xlogy": Domain(second=lambda rng, x: np.maximum(np.abs(_any_second(rng, x)), 1.5e-45)),
    "sin": Domain(points=QUARTERS),
    "cos": Domain(points=QUARTERS),
    "tan": Domain(points=QUARTERS),
    "arcsin": Domain(low=-BEYOND_ONE, high=BEYOND_ONE, points=(0.5, -0.5)),
    "arccos": Domain(low=-BEYOND_ONE, high=BEYOND_ONE, points=(0.5, -0.5)),
    "arctan2": Domain(second=_other_coordinate),
    "arcsinh": Domain(points=(0.25, 0.5, 1e9)),
    "arccosh": Domain(low=1 - 2**-53, points=(1.5, 1e9)),
    "arctanh": Domain(low=-1.0, high=1.0, points=(0.25, 0.5)),
    "erf": Domain(points=(0.75, -0.75, 3.9, 5.9)),
    "erfc": Domain(high=27.3, points=(0.5, 0.75, -5.9, 9.2, 10.05, 26.5)),
    "erfcinv": Domain(low=0.0, high=2.0, points=(0.5, 1e-300, 1.9999)),
    # Within what mpmath computes quickly; beyond, `fresnel_cos` is 1/2 and 1 / (pi x) away at most.
    "expint": Domain(low=-720.0, high=709.0, points=(0.3725074107813666, 3, 6, 12, 24, -3)),
    "fresnel_cos": Domain(low=-1e5, high=1e5, points=(1.5, 2.5)),
    "fresnel_sin": Domain(low=-1e5, high=1e5, points=(1.5, 2.5)),
    "erfinv": Domain(low=-1.0, high=1.0, points=NEAR_ONE),
    "tanh_slope": Domain(points=(0.12, 0.92, 20.0, 44.18, 354.8)),
    "sigmoid_slope": Domain(points=(1.1, 36.75, 87.3, 708.3)),
    "logit": Domain(low=0.0, high=1.0, points=(0.25, 0.5, 0.75)),
    "gelu": Domain(low=-37.5, points=(-37.0, -13.0, -1.06, 1.06)),
    "normal_density": Domain(points=(1.1, 13.0, 15.5, 38.0, 39.5)),
    "ndtr": Domain(high=38.6, low=-1e4, points=(-37.5, -13.0, -1.06, 1.06)),
    "gamma": Domain(low=-170.0, high=171.6, points=(-0.5, 1.5, 2.5, 10.0, 34.0, -10.0, -33.5)),
    "rgamma": Domain(low=-170.0, high=171.6, points=(-0.5, 1.5, 2.5, 10.0, 34.0, -10.0, -33.5)),
    "beta": Domain(
        low=1e-300,
        high=1e6,
        points=(10.0, 0.1, 100.0),
        second=_positive,
        scale=lambda x, y: mpmath.beta(x, y) * max(1, _largest_term(x, y)),
    ),
    "betaln": Domain(
        low=1e-300, high=1e6, points=(10.0, 0.1, 100.0), second=_positive, scale=_largest_term
    ),
    # Below 0 they are right to a few ulps of 1: see kernels/test_special.py.
    "lgamma": Domain(low=0.0, points=(1.46, 2.0, 2.5, 8.5)),
    "digamma": Domain(low=0.0, points=(1.4616321449683623, 2, 10)),
}
load_all()
NAMES = [name for name, record in OPS.items() if record.ulps is not None]
"""The functions whose records say how far off they may be."""


def domain(name: str) -> Domain:
    return DOMAINS.get(name, EVERYWHERE)


# Samples -------------------------------------------------------------------------------------


def samples(name: str, dtype: np.dtype, count: int) -> tuple[np.ndarray, ...]:
    """About `count` operands: intervals, all magnitudes, subnormals, and the points."""
    function = domain(name)
    rng = np.random.default_rng(0)
    share = count // 8
    near = [rng.uniform(-width, width, share) for width in (1e-3, 0.7, 1.5, 4, 20)]
    wide = rng.uniform(-1, 1, share) * OVERFLOW[dtype.itemsize == 4] * 1.1
    x = np.concatenate([*near, wide]).astype(dtype)
    close = [_around(rng, point, dtype, share) for point in (1.0, -1.0, *function.points)]
    x = np.concatenate([x, _any_bits(rng, dtype, share), *close])
    x = np.unique(x[np.isfinite(x) & (x > function.low) & (x < function.high)])
    if function.second is None:
        return (x,)
    with np.errstate(all="ignore"):
        y = function.second(rng, x.astype("d")).astype(dtype)
    kept = np.isfinite(y)
    return x[kept], y[kept]


def _around(rng: np.random.Generator, center: float, dtype: np.dtype, count: int) -> np.ndarray:
    """The floats next to a point, and more at all distances up to a quarter of it."""
    point = np.array(center, dtype)
    steps = np.arange(-(count // 4), count // 4) * np.spacing(np.abs(point))
    distances = np.exp2(rng.uniform(-30, -2, count // 2)) * rng.choice([-1, 1], count // 2)
    return np.concatenate([point + steps, point * (1 + distances)]).astype(dtype)


def _any_bits(rng: np.random.Generator, dtype: np.dtype, count: int) -> np.ndarray:
    """Random bit patterns, a quarter of them subnormal, and the ends of both ranges."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    info = np.finfo(dtype)
    bits = rng.integers(0, np.iinfo(unsigned).max, count, unsigned, endpoint=True)
    sign = np.array(-0.0, dtype).view(unsigned)
    smallest = int(np.array(info.tiny, dtype).view(unsigned))
    bits[: count // 4] = rng.integers(0, smallest, count // 4, unsigned) | (
        bits[: count // 4] & sign
    )
    ends = np.array([0, info.smallest_subnormal, info.tiny, info.max], dtype)
    return np.concatenate([bits.view(dtype), ends, -ends, np.nextafter(ends, dtype.type(0))])


# Errors --------------------------------------------------------------------------------------


class Worst(NamedTuple):
    """The largest error found, in ulps, and the operands that have it."""

    error: float
    operands: tuple[float, ...]


def worst(name: str, dtype: np.dtype, count: int, function: Any = None) -> Worst:
    """The largest error over about `count` samples, of the kernel or of another `function`."""
    function = OPS[name].kernel if function is None else function
    operands, scaled = samples(name, dtype, count), domain(name).scale
    compute = exact_function(name)
    parts = range(0, operands[0].size, CHUNK)
    got = [function(*[x[start : start + CHUNK] for x in operands]) for start in parts]
    results = np.concatenate(got).tolist()
    largest = Worst(0.0, ())
    with mpmath.workprec(PRECISION):
        for result, *values in zip(results, *[x.tolist() for x in operands], strict=True):
            numbers = [mpmath.mpf(value) for value in values]
            exact = compute(*numbers)
            if mpmath.isnan(exact):  # a pole
                continue
            error = _ulps(result, exact, exact, np.finfo(dtype))
            if scaled is not None and not error <= largest.error:  # a scale exceeds the result
                error = _ulps(result, exact, scaled(*numbers), np.finfo(dtype))
            if not error <= largest.error:
                largest = Worst(error, tuple(values))
    return largest


def _ulps(result: Any, exact: Any, scale: Any, info: np.finfo) -> float:
    limit = mpmath.ldexp(1, int(info.maxexp))
    exact = min(max(exact, -limit), limit)
    if result in (INF, -INF):
        result = limit if result > 0 else -limit
    exponent = min(mpmath.frexp(scale)[1], int(info.maxexp)) if scale else int(info.minexp)
    last = max(exponent - 1, int(info.minexp)) - int(info.nmant)
    return float(mpmath.ldexp(abs(result - exact), -last))


def scipy_function(name: str) -> Any:
    """SciPy's function of that name, which gets and gives arrays of the same dtype; or None."""
    special = importlib.import_module("scipy.special")
    return getattr(special, {"lgamma": "gammaln", "sigmoid": "expit"}.get(name, name), None)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.accuracy", description=__doc__)
    parser.add_argument("--samples", type=int, default=20_000, help="operands of each function")
    parser.add_argument("--scipy", action="store_true", help="SciPy's errors beside them")
    parser.add_argument("names", nargs="*", help="functions, by default all")
    options = parser.parse_args()
    print(f"Worst error in ulps (bound), about {options.samples} samples, and where.")
    for name in options.names or NAMES:
        cells = [name.ljust(12)]
        for dtype, bound in zip(DTYPES, OPS[name].ulps, strict=True):
            error, operands = worst(name, dtype, options.samples)
            if options.scipy:
                peer = scipy_function(name)
                other = worst(name, dtype, options.samples, peer).error if peer else math.nan
                cells.append(f"{dtype.name} {error:5.3f} ({bound:g}), SciPy {other:<12.4g}")
                continue
            where = ", ".join(f"{value:.9g}" for value in operands)
            cells.append(f"{dtype.name} {error:5.3f} ({bound:g}) {where:30}")
        print(" ".join(cells).rstrip(), flush=True)


if __name__ == "__main__":
    main()
