"""TensorFlow's ``tf.math``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .dtypes import int64
from .spell import spell

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


_TABLE = """
    abs(x, name=None) = absolute(x)
    add(x, y, name=None) = add(x, y)
    argmax(input, axis=None, output_type=int64, name=None) = cast(argmax(input, axis or 0), output_type)
    argmin(input, axis=None, output_type=int64, name=None) = cast(argmin(input, axis or 0), output_type)
    ceil(x, name=None) = ceil(x)
    conj(x, name=None) = conj(x)
    cos(x, name=None) = cos(x)
    divide truediv(x, y, name=None) = divide(x, y)
    equal(x, y, name=None) = equal(x, y)
    exp(x, name=None) = exp(x)
    expm1(x, name=None) = expm1(x)
    floor(x, name=None) = floor(x)
    floordiv(x, y, name=None) = floor_divide(x, y)
    floormod mod(x, y, name=None) = remainder(x, y)
    greater(x, y, name=None) = greater(x, y)
    greater_equal(x, y, name=None) = greater_equal(x, y)
    imag(input, name=None) = imag(input)
    is_finite(x, name=None) = isfinite(x)
    is_inf(x, name=None) = isinf(x)
    is_nan(x, name=None) = isnan(x)
    less(x, y, name=None) = less(x, y)
    less_equal(x, y, name=None) = less_equal(x, y)
    log(x, name=None) = log(x)
    log1p(x, name=None) = log1p(x)
    log_sigmoid(x, name=None) = negative(softplus(negative(x)))
    log_softmax(logits, axis=None, name=None) = log_softmax(logits, -1 if axis is None else axis)
    logical_and(x, y, name=None) = logical_and(x, y)
    logical_not(x, name=None) = logical_not(x)
    logical_or(x, y, name=None) = logical_or(x, y)
    logical_xor(x, y, name=None) = logical_xor(x, y)
    maximum(x, y, name=None) = maximum(x, y)
    minimum(x, y, name=None) = minimum(x, y)
    multiply(x, y, name=None) = multiply(x, y)
    negative(x, name=None) = negative(x)
    not_equal(x, y, name=None) = not_equal(x, y)
    pow(x, y, name=None) = power(x, y)
    real(input, name=None) = real(input)
    reciprocal(x, name=None) = divide(1, x)
    reduce_all(input_tensor, axis=None, keepdims=False, name=None) = reduce_all(input_tensor, axis, keepdims)
    reduce_any(input_tensor, axis=None, keepdims=False, name=None) = reduce_any(input_tensor, axis, keepdims)
    reduce_euclidean_norm(input_tensor, axis=None, keepdims=False, name=None) = sqrt(reduce_sum(square(input_tensor), axis, keepdims))
    reduce_logsumexp(input_tensor, axis=None, keepdims=False, name=None) = reduce_logsumexp(input_tensor, axis, keepdims)
    reduce_max(input_tensor, axis=None, keepdims=False, name=None) = reduce_max(input_tensor, axis, keepdims)
    reduce_mean(input_tensor, axis=None, keepdims=False, name=None) = reduce_mean(input_tensor, axis, keepdims)
    reduce_min(input_tensor, axis=None, keepdims=False, name=None) = reduce_min(input_tensor, axis, keepdims)
    reduce_prod(input_tensor, axis=None, keepdims=False, name=None) = reduce_prod(input_tensor, axis, keepdims)
    reduce_sum(input_tensor, axis=None, keepdims=False, name=None) = reduce_sum(input_tensor, axis, keepdims)
    round rint(x, name=None) = round_half_even(x)
    scalar_mul(scalar, x, name=None) = multiply(scalar, x)
    sigmoid(x, name=None) = sigmoid(x)
    sign(x, name=None) = sign(x)
    sin(x, name=None) = sin(x)
    softmax(logits, axis=None, name=None) = softmax(logits, -1 if axis is None else axis)
    softplus(features, name=None) = softplus(features)
    sqrt(x, name=None) = sqrt(x)
    square(x, name=None) = square(x)
    squared_difference(x, y, name=None) = square(subtract(x, y))
    subtract(x, y, name=None) = subtract(x, y)
    tanh(x, name=None) = tanh(x)
"""
__all__ = spell(globals(), _TABLE)
