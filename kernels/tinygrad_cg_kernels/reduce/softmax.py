"""logsumexp, softmax, log_softmax and cross-entropy over an axis, and gradients of the last three.

`exponentials` says what their values are at infinities.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.loops.engine import Elementwise
from tinygrad_cg_kernels.loops.ranges import Compound, Ranged
from tinygrad_cg_kernels.loops.rows import run
from tinygrad_cg_kernels.reduce import narrow
from tinygrad_cg_kernels.reduce import reduction as reductions
from tinygrad_cg_kernels.reduce.combine import SPAN, max_row, max_rows, row_of, sum_row, sum_span
from tinygrad_cg_kernels.reduce.exponentials import (
    apply,
    exp_of_difference,
    finite,
    log_softmax_of,
    plus_log,
    product,
    reciprocal,
)
from tinygrad_cg_kernels.reduce.reduction import Reduction
from tinygrad_cg_kernels.reduce.sums import Sums, sum_terms
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.errstate import cast, in_order
from tinygrad_cg_kernels.runtime.intrinsics import like, vectorised
from tinygrad_cg_kernels.runtime.memory import empty
from tinygrad_cg_kernels.runtime.promotion import INT64, loop_dtype
from tinygrad_cg_kernels.runtime.views import into, span

# --- logsumexp --------------------------------------------------------------------------


@jitable
def _exp_total(row, shift, powers):
    """Return the sum of exp(row - shift). `powers` gets the terms, of one span or of the row.

    A loop of its own adds them up, which is vectorised in both tiers (see `tiers`).
    """
    total = like(0, shift)
    for first in range(0, row.size, SPAN):
        size = min(SPAN, row.size - first)
        at = 0 if powers.size < row.size else first * powers.itemsize
        part, power = span(row, first * row.itemsize, size), span(powers, at, size)
        run(exp_of_difference, None, None, (part, shift), (power,), size)
        total += sum_span(power)
    return total


@jitable
def _logsumexp_of(row, powers):
    shift = finite(max_row(row))
    return plus_log(shift, _exp_total(row, shift, powers))


@jitable
def _logsumexp_row(row):
    return _logsumexp_of(row, np.empty(min(SPAN, row.size), row.dtype))


@jitable
def _logsumexp_core(unused, none, first, count, sizes, x, out):
    """Compute logsumexp of rows, or of blocks of long rows. Sizes are those of `rows_core`."""
    powers = np.empty(SPAN, x.dtype)
    for unit in range(first, first + count):
        offset, size = row_of(sizes, unit)
        out[np.uintp(unit)] = _logsumexp_of(span(x, offset, size), powers)


@jitable
def _plus_exp(total, x, shift):
    return total + elementary.exp(x - shift)


@jitable
def _logsumexp_rows(total, x, offset, step, height):
    """Compute logsumexp of columns, band by band, each with its own largest values."""
    shift = np.empty(total.size, x.dtype)
    max_rows(shift, x, offset, step, height)
    apply(finite, (shift,), into(0), total.size)
    total[:] = 0
    for i in range(height):
        line = span(x, offset + i * step, total.size)
        apply(_plus_exp, (total, line, shift), into(0), total.size)
    apply(plus_log, (shift, total), into(1), total.size)


class LogSumExp(Reduction):
    """logsumexp: a reduction that also has a kernel for narrow rows (see `narrow`)."""

    def __init__(self) -> None:
        super().__init__("logsumexp", _logsumexp_row, None, _logsumexp_rows, -np.inf, "float")
        rows = Ranged("logsumexp_rows", _logsumexp_core, 5, (), reductions.BLOCK)
        self.kernels["rows"] = self.kernels["fours"] = rows
        self.kernels["narrow"] = narrow.KERNELS[self.name]

    def __call__(self, x: np.ndarray, axes: tuple[int, ...], keepdims: bool = False) -> np.ndarray:
        """Reduce `x` over `axes`."""
        if narrow.serves(x, axes):
            return narrow.logsumexp(x, keepdims)
        return super().__call__(x, axes, keepdims)


logsumexp = LogSumExp()
"""log(sum(exp(x))), without overflow; integers become float64; -inf over an empty axis."""

# --- softmax ----------------------------------------------------------------------------


@jitable
def _softmax_row(row, out):
    total = _exp_total(row, finite(max_row(row)), out)
    apply(product, (out, 1 / total), into(0), out.size)


@jitable
def _log_softmax_row(row, out):
    shift = finite(max_row(row))
    group = row, shift, elementary.log(_exp_total(row, shift, out))
    apply(log_softmax_of, group, (out,), out.size)


@jitable
def _dot(dy, y):
    vectorised()
    return sum_terms(elementary.multiply_upstream, (dy, y), y.size, like(0, y[0]))


@jitable
def _sum_of_first(dy, y):
    return sum_row(dy)


@jitable
def softmax_pull(dy, y, total):
    return elementary.multiply_upstream(dy - total, y)


@jitable
def log_softmax_pull(dy, y, total):
    return dy - elementary.multiply_upstream(total, elementary.exp(y))


@jitable
def _rows(run, unused, first, count, sizes, x, out):
    """Normalise rows. Sizes: the length of a row."""
    length = sizes[0]
    for unit in range(first, first + count):
        at = unit * length * x.itemsize
        run(span(x, at, length), span(out, at, length))


@jitable
def _gradient_rows(total, pull, first, count, sizes, dy, y, out):
    """Compute gradients of rows. Sizes: the length of a row."""
    length = sizes[0]
    for unit in range(first, first + count):
        at = unit * length * y.itemsize
        a, b, target = span(dy, at, length), span(y, at, length), span(out, at, length)
        apply(pull, (a, b, total(a, b)), (target,), length)


@jitable
def _softmax_of(x, shift, factor):
    return elementary.exp(x - shift) * factor


_exp_sums = Sums("exp_sums", exp_of_difference)
_products = Sums("products", elementary.multiply_upstream)
_finite = Elementwise("finite", finite, 1)
_reciprocal = Elementwise("reciprocal_of_total", reciprocal, 1)
_log = Elementwise("log_of_total", elementary.log, 1)


class Normalisation(Compound):
    """softmax or log_softmax along one axis, or the gradient, from the upstream one and the result.

    Rows take one pass. Columns take three: the largest values, the sums of exponentials, and the
    result. Narrow rows have a kernel of their own (see `narrow`).
    """

    def __init__(
        self, name: str, core: Callable, functions: tuple, element: Callable, columns: Callable
    ) -> None:
        self.name, self._columns, self.functions = name, columns, functions
        self.kernels = {
            "rows": Ranged(f"{name}_rows", core, 1, functions),
            "columns": Elementwise(f"{name}_columns", element, 3),
        }
        self._is_of_narrow = name in narrow.KERNELS
        if self._is_of_narrow:
            self.kernels["narrow"] = narrow.KERNELS[name]

    def __call__(self, *operands: Any) -> np.ndarray:
        """Return an array of the shape of the operands. The last argument is the axis."""
        x, axis = operands[-2:]
        if self._is_of_narrow and narrow.serves(x, axis):
            return narrow.normalise(self.name, x)
        result = self.result_dtype(x.dtype)
        arrays = [in_order(array, loop_dtype(result)) for array in operands[:-1]]
        x = arrays[-1]
        if not x.size:
            return np.empty(x.shape, result)
        if prod(x.shape[axis + 1 :]) == 1:
            out = empty(x.shape, x.dtype)
            length = x.shape[axis]
            self.kernels["rows"]((*arrays, out), (length,), x.size // length, x.size)
        else:
            out = self.kernels["columns"](*self._columns(*arrays, axis))
        return cast(out, result)


def _normalise_columns(of_total: Elementwise) -> Callable:
    def columns(x: np.ndarray, axis: int) -> tuple[np.ndarray, ...]:
        shift = _finite(reductions.max(x, (axis,), True))
        return x, shift, of_total(_exp_sums(x, shift, axis, x.dtype))

    return columns


softmax = Normalisation(
    "softmax", _rows, (_softmax_row,), _softmax_of, _normalise_columns(_reciprocal)
)
log_softmax = Normalisation(
    "log_softmax", _rows, (_log_softmax_row,), log_softmax_of, _normalise_columns(_log)
)
softmax_grad = Normalisation(
    "softmax_grad",
    _gradient_rows,
    (_dot, softmax_pull),
    softmax_pull,
    lambda dy, y, axis: (dy, y, _products(dy, y, axis, dy.dtype)),
)
log_softmax_grad = Normalisation(
    "log_softmax_grad",
    _gradient_rows,
    (_sum_of_first, log_softmax_pull),
    log_softmax_pull,
    lambda dy, y, axis: (dy, y, reductions.sum(dy, (axis,), True)),
)

# --- cross-entropy ----------------------------------------------------------------------


@jitable
def _weighted_chance(power, factor, dy):
    return elementary.multiply_upstream(dy, power * factor)


@jitable
def _losses(unused, none, first, count, sizes, x, labels, out):
    """Compute cross-entropies of rows. Sizes: the length of a row."""
    length = sizes[0]
    powers = np.empty(SPAN, x.dtype)
    for unit in range(first, first + count):
        row, label = span(x, unit * length * x.itemsize, length), labels[np.uintp(unit)]
        shift = finite(max_row(row))
        total = elementary.log(_exp_total(row, shift, powers))
        out[np.uintp(unit)] = -log_softmax_of(row[np.uintp(label)], shift, total)


@jitable
def _loss_gradients(unused, none, first, count, sizes, dy, x, labels, out):
    """Compute gradients of cross-entropies of rows. Sizes: the length of a row."""
    length = sizes[0]
    for unit in range(first, first + count):
        at = unit * length * x.itemsize
        row, target = span(x, at, length), span(out, at, length)
        factor = 1 / _exp_total(row, finite(max_row(row)), target)
        upstream, label = dy[np.uintp(unit)], np.uintp(labels[np.uintp(unit)])
        of_label = elementary.multiply_upstream(upstream, target[label] * factor - 1)
        apply(_weighted_chance, (target, factor, upstream), into(0), length)
        target[label] = of_label


class CrossEntropy(Compound):
    """The cross-entropy of rows of scores and labels inside them, or its gradient by the scores.

    The operands are the upstream gradient, of a gradient alone, then the scores and the labels.
    """

    def __init__(self, name: str, core: Callable) -> None:
        self.name = name
        self.kernels = {"rows": Ranged(f"{name}_rows", core, 1, ())}

    def __call__(self, *operands: np.ndarray) -> np.ndarray:
        """Return losses, of the shape of the labels, or the gradient, of the shape of `x`."""
        *upstream, x, labels = operands
        result, shape = self.result_dtype(x.dtype), x.shape
        arrays = [in_order(array, loop_dtype(result)) for array in (*upstream, x)]
        out = empty(shape if upstream else labels.shape, arrays[0].dtype)
        if x.size:
            arrays += [in_order(labels, INT64), out]
            self.kernels["rows"](arrays, shape[-1:], labels.size, x.size)
        return cast(out, result)


cross_entropy = CrossEntropy("sparse_cross_entropy", _losses)
cross_entropy_grad = CrossEntropy("sparse_cross_entropy_grad", _loss_gradients)
