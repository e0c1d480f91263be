"""TensorFlow's ``tf.math``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Never

from . import _ops
from ._core.annotations import Axes, DTypeLike, Shape, TensorLike
from ._core.conversion import FLOAT32, INT32, INT64
from ._core.suggestions import hides_others, reads_own_arguments, refuse_call
from ._core.tensor import Tensor
from ._ops import comparison as _comparison
from ._ops import complex as _complex
from ._ops import cumulative as _scans
from ._ops import elementwise as _elementwise
from ._ops import reductions as _reductions
from ._ops import shape as _shape
from ._ops import sorting as _sorting
from ._ops import special_functions as _special_functions
from ._ops import trigonometry as _trigonometry
from ._ops.cumulative import cumulative_logsumexp
from ._ops.namespaces import math_names
from ._ops.namespaces.math_names import *  # noqa: F403
from ._ops.namespaces.namespace import (
    export_functions,
    find_later,
    named_binary,
    named_unary,
    restates,
    spelled,
    unary_of_features,
    unary_of_input,
)

if TYPE_CHECKING:
    from ._ops.counting import bincount as bincount
    from ._ops.counting import confusion_matrix as confusion_matrix
    from ._ops.counting import invert_permutation as invert_permutation
    from ._ops.counting import polyval as polyval
    from ._ops.distribution_functions import lbeta as lbeta
    from ._ops.distribution_functions import ndtri as ndtri
    from ._ops.namespaces import math_special as special
    from ._ops.namespaces.programs import is_non_decreasing as is_non_decreasing
    from ._ops.namespaces.programs import is_strictly_increasing as is_strictly_increasing
    from ._ops.sorting import TopK
    from ._ops.statistics import ApproxTopK

# Functions by the module of `_ops` that is loaded when one of them is asked for.
_LATER = {
    "counting": "bincount confusion_matrix invert_permutation polyval",
    "distribution_functions": "lbeta ndtri",
    "namespaces.programs": "is_non_decreasing is_strictly_increasing",
}
_HOMES = {name: home for home, names in _LATER.items() for name in names.split()}
__all__ = ["cumulative_logsumexp", "special", *_HOMES, *math_names.__all__]


def _find(name: str) -> Any:
    """Return what is loaded at its first use."""
    if name == "special":
        return import_module("._ops.namespaces.math_special", __package__)
    return find_later(globals(), _HOMES, name)


def add_n(inputs: TensorLike, name: str | None = None) -> Tensor:
    """Return the sum of a list of tensors of the same shape.

    Modelled on ``tf.add_n``. Raises InvalidArgumentError for no tensors or different shapes.
    """
    return _elementwise.add_n(inputs)


@restates(add_n)
def accumulate_n(
    inputs: TensorLike,
    shape: Shape | None = None,
    tensor_dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    return _elementwise.add_n(inputs)


def angle(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the angle of complex numbers in the plane, in radians."""
    return _trigonometry.arctan2(_complex.imag(input), _complex.real(input))


def _approximately(name: str, largest: bool):
    def top(
        operand: Any,
        k: int,
        reduction_dimension: Any = -1,
        recall_target: Any = 0.95,
        reduction_input_size_override: Any = -1,
        aggregate_to_topk: bool = True,
        name: str | None = None,
    ) -> ApproxTopK:
        """Return the `k` largest (``approx_min_k``: smallest) elements along `reduction_dimension`
        in order, and their indices. They are exact: `recall_target` has no effect."""
        return _ops.statistics.top_k_along(top.__name__, operand, k, reduction_dimension, largest)

    return spelled(top, name)


approx_max_k = _approximately("approx_max_k", True)
approx_min_k = _approximately("approx_min_k", False)


def _positions(find: Callable[..., Tensor], which: str):
    @hides_others
    def positions(
        input: TensorLike,
        axis: Axes = None,
        output_type: DTypeLike = INT64,
        name: str | None = None,
        **others: Never,
    ) -> Tensor:
        if others:
            refuse_call(positions, others)
        return _shape.cast(find(input, 0 if axis is None else axis), output_type)

    positions.__doc__ = f"""Return positions of the {which} elements along `axis`, by default the
    first axis; the first if several tie."""
    return spelled(positions, find.__name__)


argmax = _positions(_reductions.argmax, "largest")
argmin = _positions(_reductions.argmin, "smallest")


@restates(_trigonometry.arctan2)
def atan2(y: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    return _trigonometry.arctan2(y, x)


@reads_own_arguments
def count_nonzero(
    input: TensorLike,
    axis: Axes = None,
    keepdims: bool | None = None,
    dtype: DTypeLike = INT64,
    name: str | None = None,
) -> Tensor:
    """Return how many elements over axes are not 0, as int64 by default."""
    return _reductions.reduce_sum(
        _shape.cast(_comparison.not_equal(input, 0), dtype), axis, bool(keepdims)
    )


def _running(operation: Callable[..., Tensor], doc: str):
    @hides_others
    def running(
        x: TensorLike,
        axis: Axes = 0,
        exclusive: bool = False,
        reverse: bool = False,
        name: str | None = None,
        **others: Never,
    ) -> Tensor:
        if others:
            refuse_call(running, others)
        return operation(x, axis, exclusive, reverse)

    running.__doc__ = doc
    return spelled(running, operation.__name__)


cumprod = _running(
    _scans.cumprod,
    "Return the products of all elements up to each along `axis`: parameters as for `cumsum`.",
)
cumsum = _running(
    _scans.cumsum,
    """Return the sums of all elements up to each along `axis`; None means the flattened tensor.

    `exclusive` leaves out the element itself; `reverse` sums from the end. Bool counts as int64;
    float32 is summed in float64. Raises InvalidArgumentError for an axis that `x` does not have.
    """,
)


divide_no_nan = named_binary(_elementwise.divide_no_nan, __name__)
multiply_no_nan = named_binary(_elementwise.multiply_no_nan, __name__)
xdivy = named_binary(_elementwise.xdivy, __name__)
xlog1py = named_binary(_elementwise.xlog1py, __name__)
pow = named_binary(_elementwise.power, __name__, "pow")

softplus = unary_of_features(_elementwise.softplus, __name__)
real = unary_of_input(_complex.real, __name__)
imag = unary_of_input(_complex.imag, __name__)
conj = named_unary(_complex.conj, __name__)


def l2_normalize(
    x: TensorLike, axis: Axes = None, epsilon: Any = 1e-12, name: str | None = None
) -> Tensor:
    """Return `x` divided by its Euclidean norm over `axis` (by default all), at least
    sqrt(epsilon).

    Raises InvalidArgumentError for an axis that `x` does not have.
    """
    return _ops.normalizations.l2_normalize(x, axis, epsilon)


bessel_i0 = named_unary(_special_functions.bessel_i0, __name__)
bessel_i0e = named_unary(_special_functions.bessel_i0e, __name__)
bessel_i1 = named_unary(_special_functions.bessel_i1, __name__)
bessel_i1e = named_unary(_special_functions.bessel_i1e, __name__)


def zeta(x: TensorLike, q: Any, name: str | None = None) -> Tensor:
    """Return Hurwitz's zeta function: the sum over k = 0, 1, ... of (q + k)**-x, infinite where x
    is 1 or q is 0, -1, -2, ...; NaN for x below 1, and below q = 0 unless x is whole. The gradients
    are right: with respect to q at every order, with respect to x, for positive q, up to order 2
    (not in TensorFlow).

    Elementwise; `x` and `q`, tensors or array-likes, broadcast to the shape of the result. Raises
    InvalidArgumentError if their shapes do not.
    """
    return _ops.hurwitz.zeta(x, q)


def betainc(a: TensorLike, b: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Return the regularized incomplete beta function: the integral of t**(a - 1) (1 - t)**(b - 1)
    from 0 to x, over beta(a, b).

    Elementwise; the arguments broadcast. NaN for parameters below 0 and for `x` outside of 0 to 1.
    The gradients are right with respect to `x` at every order, with respect to `a` and `b` (not in
    TensorFlow and JAX) up to order 2. Modelled on ``tf.math.betainc``.
    """
    return _ops.incomplete.betainc(a, b, x)


def igamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Return the regularized lower incomplete gamma function of `a` and `x`: the integral
    of t**(a - 1) exp(-t) from 0 to x, over gamma(a). NaN below 0. The gradients are right with
    respect to `x` at every order, with respect to `a` up to order 4. Modelled on
    ``tf.math.igamma``.

    Elementwise; `a` and `x`, tensors or array-likes, broadcast to the shape of the result. Raises
    InvalidArgumentError if their shapes do not.
    """
    return _ops.incomplete.igamma(a, x)


def igammac(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Return 1 - igamma(a, x), accurate for small results. The gradients are right with respect
    to `x` at every order, with respect to `a` up to order 4. Modelled on ``tf.math.igammac``.

    Elementwise; `a` and `x`, tensors or array-likes, broadcast to the shape of the result. Raises
    InvalidArgumentError if their shapes do not.
    """
    return _ops.incomplete.igammac(a, x)


@restates(_sorting.in_top_k)
def in_top_k(targets: Any, predictions: Any, k: int, name: str | None = None) -> Tensor:
    return _sorting.in_top_k(targets, predictions, k)


@hides_others
def log_softmax(
    logits: TensorLike, axis: Axes = None, name: str | None = None, **others: Never
) -> Tensor:
    """Return ``logits - logsumexp(logits)`` along `axis`, by default the last, without overflow."""
    if others:
        refuse_call(log_softmax, others)
    return _reductions.log_softmax(logits, -1 if axis is None else axis)


@restates(_special_functions.polygamma)
def polygamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    return _special_functions.polygamma(a, x)


def reciprocal_no_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """Return 1 / x, and 0 where x is 0."""
    return _elementwise.divide_no_nan(1, x)


def reciprocal(x: TensorLike, name: str | None = None) -> Tensor:
    """Return 1 / x."""
    return _elementwise.divide(1, x)


def _reduction(name: str, operation: Callable[..., Tensor]):
    @hides_others
    def reduce(
        input_tensor: TensorLike,
        axis: Axes = None,
        keepdims: bool = False,
        name: str | None = None,
        **others: Never,
    ) -> Tensor:
        if others:
            refuse_call(reduce, others)
        return operation(input_tensor, axis, keepdims)

    return spelled(reduce, name, operation)


def _norm(x: Any, axis: Any, keepdims: Any) -> Tensor:
    """Return the Euclidean norm over axes; complex `x` gives complex.

    `axis` is one axis, several, or None for all; `keepdims` keeps them, with size 1. Integers
    become float64. Raises InvalidArgumentError for an axis that `x` does not have.
    """
    return _ops.norms.reduce_euclidean_norm(x, axis, keepdims)


reduce_euclidean_norm = _reduction("reduce_euclidean_norm", _norm)
reduce_all = _reduction("reduce_all", _reductions.reduce_all)
reduce_any = _reduction("reduce_any", _reductions.reduce_any)
reduce_logsumexp = _reduction("reduce_logsumexp", _reductions.reduce_logsumexp)
reduce_max = _reduction("reduce_max", _reductions.reduce_max)
reduce_mean = _reduction("reduce_mean", _reductions.reduce_mean)
reduce_min = _reduction("reduce_min", _reductions.reduce_min)
reduce_prod = _reduction("reduce_prod", _reductions.reduce_prod)
reduce_std = _reduction("reduce_std", _reductions.reduce_std)
reduce_sum = _reduction("reduce_sum", _reductions.reduce_sum)
reduce_variance = _reduction("reduce_variance", _reductions.reduce_variance)


@restates(_elementwise.multiply)
def scalar_mul(scalar: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    return _elementwise.multiply(scalar, x)


def _segments(kind: str):
    def reduce(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
        """Return the sum, mean, product or extreme of rows of `data` with equal `segment_ids`: one
        for each row, not negative and in order. A segment without rows is 0, and 1 for products.
        Raises InvalidArgumentError for other ids."""
        return _ops.segments.sorted_segments(kind, data, segment_ids)

    return spelled(reduce, f"segment_{kind}")


segment_sum = _segments("sum")
segment_mean = _segments("mean")
segment_prod = _segments("prod")
segment_max = _segments("max")
segment_min = _segments("min")


def _unsorted_segments(kind: str):
    def reduce(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
        """Return the sum, mean, product, extreme, or sum over the root of the count, of rows of
        `data` with equal `segment_ids`, which have the first axes of `data`, in any order. A
        negative id drops its row. Without rows the sum and the mean are 0, the product is 1, and an
        extreme is the last finite number of the dtype. Raises InvalidArgumentError for ids of
        another shape, or not below `num_segments`."""
        return _ops.segments.unsorted_segments(kind, data, segment_ids, num_segments)

    return spelled(reduce, f"unsorted_segment_{kind}")


unsorted_segment_sum = _unsorted_segments("sum")
unsorted_segment_mean = _unsorted_segments("mean")
unsorted_segment_prod = _unsorted_segments("prod")
unsorted_segment_max = _unsorted_segments("max")
unsorted_segment_min = _unsorted_segments("min")
unsorted_segment_sqrt_n = _unsorted_segments("sqrt_n")


@hides_others
def softmax(
    logits: TensorLike, axis: Axes = None, name: str | None = None, **others: Never
) -> Tensor:
    """Return ``exp(logits) / sum(exp(logits))`` along `axis`, by default the last, without
    overflow."""
    if others:
        refuse_call(softmax, others)
    return _reductions.softmax(logits, -1 if axis is None else axis)


def squared_difference(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return (x - y) squared; `x` and `y` broadcast."""
    return _elementwise.square(_elementwise.subtract(x, y))


def top_k(
    input: TensorLike,
    k: int = 1,
    sorted: bool = True,
    index_type: DTypeLike = INT32,
    name: str | None = None,
) -> TopK:
    """Return the `k` largest elements along the last axis, largest first, and their indices; equal
    elements keep their order. NaN counts as the largest."""
    return _sorting.top_k(input, k, index_type)


def zero_fraction(value: TensorLike, name: str | None = None) -> Tensor:
    """Return the share of elements that are 0, as float32; it has no gradient."""
    return _reductions.reduce_mean(_shape.cast(_comparison.equal(value, 0), FLOAT32))


__all__ += export_functions(globals(), _find)
