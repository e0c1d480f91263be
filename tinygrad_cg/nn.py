"""TensorFlow's ``tf.nn``."""

from __future__ import annotations

from typing import Any

from ._core.conversion import convert
from ._core.tensor import Tensor
from ._ops.elementwise import add
from ._ops.shape import reshape
from ._spellings.spell import spell
from .errors import InvalidArgumentError
from .math import log_softmax, sigmoid, softmax, softplus, tanh, top_k

__all__ = ["log_softmax", "sigmoid", "softmax", "softplus", "tanh", "top_k"]


def _add_bias(value: Any, bias: Any, data_format: Any) -> Tensor:
    value, bias = convert(value), convert(bias)
    axis = 1 if data_format is not None and data_format.startswith("NC") else -1
    sizes = value._data.shape
    if len(sizes) < 2 or bias._data.shape != (sizes[axis],):
        raise InvalidArgumentError(
            f"bias_add: value has shape {tuple(sizes)}, bias has shape {tuple(bias.shape)}: it "
            f"must be a vector of the size of axis {axis} of value"
        )
    return add(value, reshape(bias, (-1, *[1] * (len(sizes) - 2))) if axis == 1 else bias)


_TABLE = """
    avg_pool(input, ksize, strides, padding, data_format=None, name=None)
        = average_pool(input, ksize, strides, padding, data_format)
    avg_pool1d(input, ksize, strides, padding, data_format="NWC", name=None)
        = average_pool(input, ksize, strides, padding, data_format)
    avg_pool2d(input, ksize, strides, padding, data_format="NHWC", name=None)
        = average_pool(input, ksize, strides, padding, data_format)
    batch_normalization(x, mean, variance, offset, scale, variance_epsilon, name=None)
        = batch_normalization(x, mean, variance, offset, scale, variance_epsilon)
    bias_add(value, bias, data_format=None, name=None) = _add_bias(value, bias, data_format)
        # Return `value` plus the vector `bias` along its last axis, or along the second with
        data_format="NC...".
    conv1d(input, filters, stride, padding, data_format="NWC", dilations=None, name=None)
        = conv(input, filters, stride, padding, data_format, dilations)
    conv1d_transpose(input, filters, output_shape, strides, padding="SAME", data_format="NWC",
        dilations=None, name=None)
        = conv_transpose(input, filters, output_shape, strides, padding, data_format, dilations)
    conv2d(input, filters, strides, padding, data_format="NHWC", dilations=None, name=None)
        = conv(input, filters, strides, padding, data_format, dilations)
    conv2d_transpose(input, filters, output_shape, strides, padding="SAME", data_format="NHWC",
        dilations=None, name=None)
        = conv_transpose(input, filters, output_shape, strides, padding, data_format, dilations)
    convolution(input, filters, strides=None, padding="VALID", data_format=None, dilations=None,
        name=None)
        = conv(input, filters, strides, padding, data_format, dilations)
    depthwise_conv2d(input, filter, strides, padding, data_format=None, dilations=None, name=None)
        = depthwise_conv(input, filter, strides, padding, data_format, dilations)
    depth_to_space space_to_depth(input, block_size, data_format="NHWC", name=None)
        = {}(input, block_size, data_format)
    crelu(features, axis=-1, name=None) = crelu(features, axis)
    dropout(x, rate, noise_shape=None, seed=None, name=None) = dropout(x, rate, noise_shape, seed)
    elu(features, name=None) = elu(features)
        # Return `features` where they are positive, and ``exp(features) - 1`` elsewhere.
    embedding_lookup(params, ids, max_norm=None, name=None)
        = embedding_lookup(params, ids, max_norm)
    gelu(features, approximate=False, name=None) = gelu(features, approximate)
    l2_loss(t, name=None) = divide(reduce_sum(square(t)), 2)
        # Return half the sum of squares of all elements.
    l2_normalize(x, axis=None, epsilon=1e-12, name=None) = l2_normalize(x, axis, epsilon)
    leaky_relu(features, alpha=0.2, name=None) = leaky_relu(features, alpha)
    log_poisson_loss(targets, log_input, compute_full_loss=False, name=None)
        = log_poisson_loss(targets, log_input, compute_full_loss)
    max_pool(input, ksize, strides, padding, data_format=None, name=None)
        = max_pool(input, ksize, strides, padding, data_format)
    max_pool1d(input, ksize, strides, padding, data_format="NWC", name=None)
        = max_pool(input, ksize, strides, padding, data_format)
    max_pool2d(input, ksize, strides, padding, data_format="NHWC", name=None)
        = max_pool(input, ksize, strides, padding, data_format)
    moments(x, axes, shift=None, keepdims=False, name=None) -> tuple[Tensor, Tensor]
        = mean_and_variance(x, axes, keepdims)
        # Return the mean and the variance of elements over `axes`, as a pair; float16 is summed in
        float32. `shift` makes no difference.
    relu relu6 selu softsign(features, name=None) = {}(features)
    sigmoid_cross_entropy_with_logits(labels=None, logits=None, name=None)
        = sigmoid_cross_entropy(labels, logits)
    silu swish(features, beta=1.0) = silu(features, beta)
    softmax_cross_entropy_with_logits(labels, logits, axis=-1, name=None)
        = softmax_cross_entropy(labels, logits, axis)
    sparse_softmax_cross_entropy_with_logits(labels, logits, name=None)
        = sparse_cross_entropy(labels, logits)
    weighted_cross_entropy_with_logits(labels, logits, pos_weight, name=None)
        = weighted_cross_entropy(labels, logits, pos_weight)
        # Return `sigmoid_cross_entropy` of `labels` and `logits`, elementwise, with its first term,
        that of the labels, multiplied by `pos_weight`. Both have one shape.
    weighted_moments(x, axes, frequency_weights, keepdims=False, name=None)
        -> tuple[Tensor, Tensor]
        = weighted_moments(x, axes, frequency_weights, keepdims)
        # Return the mean and the variance of elements over `axes`, each counted
        `frequency_weights` times.
    zero_fraction(value, name=None)
        = reduce_mean(cast(equal(value, 0), float32))
        # Return the share of elements that are 0, as float32; it has no gradient.
"""
spell(globals(), _TABLE)
