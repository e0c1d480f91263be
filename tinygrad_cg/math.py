"""TensorFlow's ``tf.math``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ._core.suggestions import refuse_name
from ._spellings.spell import spell

# Those loaded at their first use, so that importing the library stays quick.
_LAZY = {
    "._spellings.programs": (
        "bincount confusion_matrix invert_permutation is_non_decreasing is_strictly_increasing "
        "polyval"
    ),
}
_HOMES = {name: home for home in _LAZY for name in _LAZY[home].split()}
__all__ = ["special", *_HOMES]  # noqa: F822 (they are found when asked for)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if name == "special":
        return import_module("._spellings.special", __package__)
    if home is None:
        refuse_name(__name__, name)
    globals()[name] = found = getattr(import_module(home, __package__), name)
    return found


_TABLE = """
    accumulate_n(inputs, shape=None, tensor_dtype=None, name=None) = add_n(inputs)
    add_n(inputs, name=None) = add_n(inputs)
    angle(input, name=None) = arctan2(imag(input), real(input))
        # Return the angle of complex numbers in the plane, in radians.
    approx_max_k approx_min_k(operand, k, reduction_dimension=-1, recall_target=0.95,
        reduction_input_size_override=-1, aggregate_to_topk=True, name=None) -> ApproxTopK
        = top_k_along("{}", operand, k, reduction_dimension, "max" in "{}")
        # Return the `k` largest (``approx_min_k``: smallest) elements along `reduction_dimension`,
        the first first, and their indices. They are exact, whatever `recall_target` asks for.
    argmax(input, axis=None, output_type=int64, name=None)
        = cast(argmax(input, 0 if axis is None else axis), output_type)
        # Return positions of the largest elements along `axis`, by default the first axis; the
        first where several tie.
    argmin(input, axis=None, output_type=int64, name=None)
        = cast(argmin(input, 0 if axis is None else axis), output_type)
        # Return positions of the smallest elements along `axis`, by default the first axis; the
        first where several tie.
    atan2(y, x, name=None) = arctan2(y, x)
    conj(x, name=None) = conj(x)
    count_nonzero(input, axis=None, keepdims=None, dtype=int64, name=None)
        = reduce_sum(cast(not_equal(input, 0), dtype), axis, bool(keepdims))
        # Return how many elements over axes are not 0, as int64 by default.
    cumulative_logsumexp(x, axis=0, exclusive=False, reverse=False, name=None)
        = cumulative_logsumexp(x, axis, exclusive, reverse)
    cumprod cumsum(x, axis=0, exclusive=False, reverse=False, name=None)
        = {}(x, axis, exclusive, reverse)
    divide_no_nan multiply_no_nan xdivy xlog1py(x, y, name=None) = {}(x, y)
    l2_normalize(x, axis=None, epsilon=1e-12, name=None) = l2_normalize(x, axis, epsilon)
    lbeta(x, name=None) = lbeta(x)
    ndtri bessel_i0 bessel_i0e bessel_i1 bessel_i1e(x, name=None) = {}(x)
    zeta(x, q, name=None) = zeta(x, q)
    betainc(a, b, x, name=None) = betainc(a, b, x)
    igamma igammac(a, x, name=None) = {}(a, x)
    in_top_k(targets, predictions, k, name=None) = in_top_k(targets, predictions, k)
    log_softmax(logits, axis=None, name=None)
        = log_softmax(logits, -1 if axis is None else axis)
        # Return ``logits - logsumexp(logits)`` along `axis`, by default the last, without overflow.
    polygamma(a, x, name=None) = polygamma(a, x)
    pow(x, y, name=None) = power(x, y)
    real imag(input, name=None) = {}(input)
    reciprocal_no_nan(x, name=None) = divide_no_nan(1, x)  # Return 1 / x, and 0 where x is 0.
    reciprocal(x, name=None) = divide(1, x)  # Return 1 / x.
    reduce_all reduce_any reduce_euclidean_norm reduce_logsumexp reduce_max reduce_mean reduce_min
        reduce_prod reduce_std reduce_sum reduce_variance
        (input_tensor, axis=None, keepdims=False, name=None) = {}(input_tensor, axis, keepdims)
    scalar_mul(scalar, x, name=None) = multiply(scalar, x)
    segment_sum segment_mean segment_prod segment_max segment_min(data, segment_ids, name=None)
        = sorted_segments("{}".rpartition("_")[2], data, segment_ids)
        # Return the sum, mean, product or extreme of rows of `data` with equal `segment_ids`: one
        for each row, not negative and in order. A segment without rows is 0, and 1 for products.
        Raises InvalidArgumentError for other ids.
    softmax(logits, axis=None, name=None) = softmax(logits, -1 if axis is None else axis)
        # Return ``exp(logits) / sum(exp(logits))`` along `axis`, by default the last, without
        overflow.
    softplus(features, name=None) = softplus(features)
    squared_difference(x, y, name=None) = square(subtract(x, y))
        # Return (x - y) squared; `x` and `y` broadcast.
    top_k(input, k=1, sorted=True, index_type=int32, name=None) -> TopK
        = top_k(input, k, index_type)
        # Return the `k` largest elements along the last axis, largest first, and their indices; of
        equal elements the one that stands first comes first. NaN counts as larger than all else.
    unsorted_segment_sum unsorted_segment_mean unsorted_segment_prod unsorted_segment_max
        unsorted_segment_min unsorted_segment_sqrt_n(data, segment_ids, num_segments, name=None)
        = unsorted_segments("{}".removeprefix("unsorted_segment_"), data, segment_ids, num_segments)
        # Return the sum, mean, product, extreme, or sum over the root of the count, of rows of
        `data` with equal `segment_ids`, which have the first axes of `data`, in any order. A
        negative id drops its row. Of no rows the sum and the mean are 0, the product is 1, and an
        extreme the last finite number of the dtype. Raises InvalidArgumentError for ids of another
        shape, or not below `num_segments`.
    zero_fraction(value, name=None)
        = reduce_mean(cast(equal(value, 0), float32))
        # Return the share of elements that are 0, as float32; it has no gradient.
"""
spell(globals(), _TABLE, records="math", lazily=True)
