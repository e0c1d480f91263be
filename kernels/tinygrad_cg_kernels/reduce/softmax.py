"""Exponentials over an axis: logsumexp, softmax, log_softmax, and the gradients of the two.

Every exponential is of a value less the largest of its row or column, so none overflows.
That largest value is kept finite, so that infinities come out as limits: the logsumexp of a
row of -inf is -inf, and with an element of +inf all others have a softmax of 0.
"""

from collections.abc import Callable
from math import prod

import numpy as np
from numba import types

from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.loops.engine import Elementwise
from tinygrad_cg_kernels.loops.ranges import Compound, Ranged
from tinygrad_cg_kernels.reduce import reduction as reductions
from tinygrad_cg_kernels.reduce.combine import SPAN, max_row, max_rows, sum_row
from tinygrad_cg_kernels.reduce.reduction import Reduction
from tinygrad_cg_kernels.reduce.sums import Sums
from tinygrad_cg_kernels.runtime.compile import by_type, jitable
from tinygrad_cg_kernels.runtime.errstate import cast
from tinygrad_cg_kernels.runtime.intrinsics import like, reassociating_add, vectorised
from tinygrad_cg_kernels.runtime.memory import empty
from tinygrad_cg_kernels.runtime.promotion import loop_dtype, real_float
from tinygrad_cg_kernels.runtime.views import span

LARGEST64, LARGEST32 = np.finfo(np.float64).max, np.finfo(np.float32).max


def finite(x):
    """Return the nearest finite number; nan stays."""
    return np.clip(x, -LARGEST64, LARGEST64)


@jitable
def _finite64(x):
    x = LARGEST64 if x > LARGEST64 else x
    return -LARGEST64 if x < -LARGEST64 else x


@jitable
def _finite32(x):
    x = LARGEST32 if x > LARGEST32 else x
    return -LARGEST32 if x < -LARGEST32 else x


by_type(finite, {types.float64: _finite64, types.float32: _finite32})

# --- logsumexp --------------------------------------------------------------------------


@jitable
def _exp_total(row, shift):
    """Return the sum of exp(row - shift), span by span."""
    vectorised()
    total = like(0, shift)
    for first in range(0, row.size, SPAN):
        part = span(row, first * row.itemsize, min(SPAN, row.size - first))
        value = like(0, shift)
        for i in range(np.uintp(part.size)):
            value = reassociating_add(value, elementary.exp(part[i] - shift))
        total += value
    return total


@jitable
def _logsumexp_row(row):
    shift = finite(max_row(row))
    return shift + elementary.log(_exp_total(row, shift))


@jitable
def _make_finite(line):
    vectorised()
    for k in range(np.uintp(line.size)):
        line[k] = finite(line[k])


@jitable
def _add_exps(total, line, shift):
    vectorised()
    for k in range(np.uintp(total.size)):
        total[k] += elementary.exp(line[k] - shift[k])


@jitable
def _finish(total, shift):
    vectorised()
    for k in range(np.uintp(total.size)):
        total[k] = shift[k] + elementary.log(total[k])


@jitable
def _logsumexp_rows(total, x, offset, step, height):
    """Compute logsumexp of columns, band by band, each with its own largest values."""
    shift = np.empty(total.size, x.dtype)
    max_rows(shift, x, offset, step, height)
    _make_finite(shift)
    total[:] = 0
    for i in range(height):
        _add_exps(total, span(x, offset + i * step, total.size), shift)
    _finish(total, shift)


logsumexp = Reduction("logsumexp", _logsumexp_row, None, _logsumexp_rows, -np.inf, "float")
"""log(sum(exp(x))), without overflow; integers become float64; -inf over an empty axis."""

# --- softmax ----------------------------------------------------------------------------


@jitable
def _exp_into(row, shift, out):
    """Write exp(row - shift) to `out`, and return its sum."""
    vectorised()
    total = like(0, shift)
    for first in range(0, row.size, SPAN):
        size = min(SPAN, row.size - first)
        part = span(row, first * row.itemsize, size)
        target = span(out, first * out.itemsize, size)
        value = like(0, shift)
        for i in range(np.uintp(size)):
            power = elementary.exp(part[i] - shift)
            target[i] = power
            value = reassociating_add(value, power)
        total += value
    return total


@jitable
def _scale(row, factor):
    vectorised()
    for i in range(np.uintp(row.size)):
        row[i] *= factor


@jitable
def _softmax_row(row, out):
    total = _exp_into(row, finite(max_row(row)), out)
    _scale(out, 1 / total)


@jitable
def _subtract_both(row, shift, total, out):
    vectorised()
    for i in range(np.uintp(row.size)):
        out[i] = (row[i] - shift) - total


@jitable
def _log_softmax_row(row, out):
    shift = finite(max_row(row))
    _subtract_both(row, shift, elementary.log(_exp_total(row, shift)), out)


@jitable
def _dot(x, y):
    vectorised()
    total = like(0, x[0])
    for first in range(0, x.size, SPAN):
        size = min(SPAN, x.size - first)
        a, b = span(x, first * x.itemsize, size), span(y, first * y.itemsize, size)
        value = like(0, total)
        for i in range(np.uintp(size)):
            value = reassociating_add(value, a[i] * b[i])
        total += value
    return total


@jitable
def _softmax_pull(dy, y, total):
    return y * (dy - total)


@jitable
def _log_softmax_pull(dy, y, total):
    return dy - elementary.exp(y) * total


@jitable
def _softmax_grad_row(dy, y, out):
    vectorised()
    total = _dot(dy, y)
    for i in range(np.uintp(out.size)):
        out[i] = _softmax_pull(dy[i], y[i], total)


@jitable
def _log_softmax_grad_row(dy, y, out):
    vectorised()
    total = sum_row(dy)
    for i in range(np.uintp(out.size)):
        out[i] = _log_softmax_pull(dy[i], y[i], total)


@jitable
def _rows_of_one(run, unused, first, count, sizes, x, out):
    """Normalise rows of an operand. Sizes: the length of a row."""
    length = sizes[0]
    for unit in range(first, first + count):
        row = span(x, unit * length * x.itemsize, length)
        run(row, span(out, unit * length * out.itemsize, length))


@jitable
def _rows_of_two(run, unused, first, count, sizes, x, y, out):
    """Normalise rows of two operands. Sizes: the length of a row."""
    length = sizes[0]
    for unit in range(first, first + count):
        at = unit * length * x.itemsize
        run(span(x, at, length), span(y, at, length), span(out, at, length))


@jitable
def _exp_of_difference(x, shift):
    return elementary.exp(x - shift)


@jitable
def _product(x, y):
    return x * y


@jitable
def _softmax_of(x, shift, factor):
    return elementary.exp(x - shift) * factor


@jitable
def _log_softmax_of(x, shift, total):
    return (x - shift) - total


@jitable
def _reciprocal_of(x):
    return 1 / x


_exp_sums = Sums("exp_sums", _exp_of_difference)
_products = Sums("products", _product)
_finite = Elementwise("finite", finite, 1)
_reciprocal = Elementwise("reciprocal_of_total", _reciprocal_of, 1)
_log = Elementwise("log_of_total", elementary.log, 1)


class Normalisation(Compound):
    """softmax or log_softmax along one axis, in one pass over rows.

    Columns take three passes: their largest values, the sums of exponentials, the result.
    """

    def __init__(self, name: str, row: Callable, element: Callable, of_total: Elementwise) -> None:
        self.name = name
        self.kernels = {
            "rows": Ranged(f"{name}_rows", _rows_of_one, 1, (row,)),
            "columns": Elementwise(f"{name}_columns", element, 3),
        }
        self._of_total = of_total

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        """Return the dtype itself; float64 for integers and bool."""
        return real_float(self.name, dtype)

    def __call__(self, x: np.ndarray, axis: int) -> np.ndarray:
        """Return an array of the shape of `x`."""
        result = self.result_dtype(x.dtype)
        x = np.require(x, loop_dtype(result), ("C", "A"))
        if not x.size:
            return np.empty(x.shape, result)
        if prod(x.shape[axis + 1 :]) == 1:
            out = empty(x.shape, x.dtype)
            length = x.shape[axis]
            self.kernels["rows"]((x, out), (length,), x.size // length, x.size)
        else:
            shift = _finite(reductions.max(x, (axis,), True))
            total = self._of_total(_exp_sums(x, shift, axis, x.dtype))
            out = self.kernels["columns"](x, shift, total)
        return cast(out, result)


class NormalisationGradient(Compound):
    """The gradient of a normalisation, from the upstream one and the result: as `Normalisation`."""

    def __init__(self, name: str, row: Callable, element: Callable, total: Callable) -> None:
        self.name = name
        self.kernels = {
            "rows": Ranged(f"{name}_rows", _rows_of_two, 1, (row,)),
            "columns": Elementwise(f"{name}_columns", element, 3),
        }
        self._total = total

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        """Return the dtype itself; float64 for integers and bool."""
        return real_float(self.name, dtype)

    def __call__(self, dy: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        """Return the gradient, of the shape of `dy` and `y`."""
        result = self.result_dtype(y.dtype)
        dy, y = (np.require(one, loop_dtype(result), ("C", "A")) for one in (dy, y))
        if not y.size:
            return np.empty(y.shape, result)
        if prod(y.shape[axis + 1 :]) == 1:
            out = empty(y.shape, y.dtype)
            length = y.shape[axis]
            self.kernels["rows"]((dy, y, out), (length,), y.size // length, y.size)
        else:
            out = self.kernels["columns"](dy, y, self._total(dy, y, axis))
        return cast(out, result)


def _dot_columns(dy: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    return _products(dy, y, axis, dy.dtype)


def _sum_columns(dy: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    return reductions.sum(dy, (axis,), True)


softmax = Normalisation("softmax", _softmax_row, _softmax_of, _reciprocal)
log_softmax = Normalisation("log_softmax", _log_softmax_row, _log_softmax_of, _log)
softmax_grad = NormalisationGradient("softmax_grad", _softmax_grad_row, _softmax_pull, _dot_columns)
log_softmax_grad = NormalisationGradient(
    "log_softmax_grad", _log_softmax_grad_row, _log_softmax_pull, _sum_columns
)
