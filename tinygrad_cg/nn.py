"""TensorFlow's ``tf.nn``."""

from __future__ import annotations

from typing import Any

from ._core.conversion import convert_each
from ._core.tensor import Tensor
from ._ops.elementwise import add
from ._ops.shape import reshape
from ._spellings.spell import spell
from .errors import InvalidArgumentError
from .math import (
    approx_max_k,
    approx_min_k,
    log_softmax,
    sigmoid,
    softmax,
    softplus,
    tanh,
    top_k,
    zero_fraction,
)

__all__ = [
    "approx_max_k",
    "approx_min_k",
    "log_softmax",
    "sigmoid",
    "softmax",
    "softplus",
    "tanh",
    "top_k",
    "zero_fraction",
]


def _add_bias(value: Any, bias: Any, data_format: Any) -> Tensor:
    value, bias = convert_each(value, bias)
    axis = 1 if data_format is not None and data_format.startswith("NC") else -1
    sizes = value._data.shape
    if len(sizes) < 2 or bias._data.shape != (sizes[axis],):
        raise InvalidArgumentError(
            f"bias_add: value has shape {tuple(sizes)}, bias has shape {tuple(bias.shape)}: it "
            f"must be a vector of the size of axis {axis} of value"
        )
    return add(value, reshape(bias, (-1, *[1] * (len(sizes) - 2))) if axis == 1 else bias)


_TABLE = """
    atrous_conv2d(value, filters, rate, padding, name=None)
        = conv(value, filters, 1, padding, None, rate)
        # Return ``conv2d`` with the steps `rate` between what a filter reads.
    atrous_conv2d_transpose(value, filters, output_shape, rate, padding, name=None)
        = conv_transpose(value, filters, output_shape, 1, padding, None, rate)
        # Return the transpose of ``atrous_conv2d`` by its images, of `output_shape`.
    avg_pool(input, ksize, strides, padding, data_format=None, name=None)
        = pool_by_rank("AVG", input, ksize, strides, padding, data_format)
        # Return the mean of the elements under each window of `ksize`, along one to three axes,
        channel by channel; see ``avg_pool2d``.
    avg_pool1d(input, ksize, strides, padding, data_format="NWC", name=None)
        = average_pool(input, ksize, strides, padding, data_format)
    avg_pool3d(input, ksize, strides, padding, data_format="NDHWC", name=None)
        = pool3d("AVG", input, ksize, strides, padding, data_format)
        # Return the mean of the elements under each window of `ksize` in volumes (batch, depth,
        height, width, channels), channel by channel; see ``avg_pool2d``.
    avg_pool2d(input, ksize, strides, padding, data_format="NHWC", name=None)
        = average_pool(input, ksize, strides, padding, data_format)
    batch_norm_with_global_normalization(input, mean, variance, beta, gamma, variance_epsilon,
        scale_after_normalization, name=None)
        = globally_normalized(input, mean, variance, beta, gamma, variance_epsilon,
        scale_after_normalization)
    batch_normalization(x, mean, variance, offset, scale, variance_epsilon, name=None)
        = batch_normalization(x, mean, variance, offset, scale, variance_epsilon)
    bias_add(value, bias, data_format=None, name=None) = _add_bias(value, bias, data_format)
        # Return `value` plus the vector `bias` along its last axis, or along the second with
        data_format="NC...".
    collapse_repeated(labels, seq_length, name=None) -> tuple[Tensor, Tensor]
        = collapse_repeated(labels, seq_length)
    compute_average_loss(per_example_loss, sample_weight=None, global_batch_size=None)
        = average_loss(per_example_loss, sample_weight, global_batch_size)
    all_candidate_sampler(true_classes, num_true, num_sampled, unique, seed=None, name=None)
        -> Candidates
        = all_candidates(true_classes, num_true, num_sampled)
        # Return all `num_sampled` classes, each of which is expected once.
    compute_accidental_hits(true_classes, sampled_candidates, num_true, seed=None, name=None)
        -> tuple[Tensor, Tensor, Tensor]
        = accidental_hits(true_classes, sampled_candidates, num_true)
    ctc_loss(labels, logits, label_length, logit_length, logits_time_major=True, unique=None,
        blank_index=None, name=None)
        = ctc_loss(labels, logits, label_length, logit_length, logits_time_major, blank_index)
    ctc_unique_labels(labels, name=None) -> tuple[Tensor, Tensor] = unique_labels(labels)
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
    conv3d(input, filters, strides, padding, data_format="NDHWC", dilations=None, name=None)
        = conv3d(input, filters, strides, padding, data_format, dilations)
    conv3d_transpose(input, filters, output_shape, strides, padding="SAME", data_format="NDHWC",
        dilations=None, name=None)
        = conv3d_transpose(input, filters, output_shape, strides, padding, data_format, dilations)
    conv_transpose(input, filters, output_shape, strides, padding="SAME", data_format=None,
        dilations=None, name=None)
        = convolve_transpose(input, filters, output_shape, strides, padding, data_format, dilations)
    convolution(input, filters, strides=None, padding="VALID", data_format=None, dilations=None,
        name=None)
        = convolve(input, filters, strides, padding, data_format, dilations)
    depthwise_conv2d_backprop_filter(input, filter_sizes, out_backprop, strides, padding,
        data_format="NHWC", dilations=1, name=None)
        = depthwise_conv_filter_adjoint(input, filter_sizes, out_backprop, strides, padding,
        data_format, dilations)
    depthwise_conv2d_backprop_input(input_sizes, filter, out_backprop, strides, padding,
        data_format="NHWC", dilations=1, name=None)
        = depthwise_conv_adjoint(input_sizes, filter, out_backprop, strides, padding, data_format,
        dilations)
    dilation2d(input, filters, strides, padding, data_format, dilations, name=None)
        = dilation2d(input, filters, strides, padding, data_format, dilations)
    erosion2d(value, filters, strides, padding, data_format, dilations, name=None)
        = erosion2d(value, filters, strides, padding, data_format, dilations)
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
    in_top_k(targets, predictions, k, name=None) = in_top_k(targets, predictions, k)
    isotonic_regression(inputs, decreasing=True, axis=-1) -> tuple[Tensor, Tensor]
        = isotonic_regression(inputs, decreasing, axis)
    l2_loss(t, name=None) = divide(reduce_sum(square(t)), 2)
        # Return half the sum of squares of all elements.
    l2_normalize(x, axis=None, epsilon=1e-12, name=None) = l2_normalize(x, axis, epsilon)
    leaky_relu(features, alpha=0.2, name=None) = leaky_relu(features, alpha)
    local_response_normalization lrn
        (input, depth_radius=5, bias=1, alpha=1, beta=0.5, name=None)
        = local_response_normalization(input, depth_radius, bias, alpha, beta)
    log_poisson_loss(targets, log_input, compute_full_loss=False, name=None)
        = log_poisson_loss(targets, log_input, compute_full_loss)
    max_pool(input, ksize, strides, padding, data_format=None, name=None)
        = pool_by_rank("MAX", input, ksize, strides, padding, data_format)
        # Return the largest element under each window of `ksize`, along one to three axes, channel
        by channel; see ``max_pool2d``.
    max_pool1d(input, ksize, strides, padding, data_format="NWC", name=None)
        = max_pool(input, ksize, strides, padding, data_format)
    max_pool3d(input, ksize, strides, padding, data_format="NDHWC", name=None)
        = pool3d("MAX", input, ksize, strides, padding, data_format)
        # Return the largest element under each window of `ksize` in volumes (batch, depth, height,
        width, channels), channel by channel; see ``max_pool2d``.
    max_pool2d(input, ksize, strides, padding, data_format="NHWC", name=None)
        = max_pool(input, ksize, strides, padding, data_format)
    max_pool_with_argmax(input, ksize, strides, padding, data_format="NHWC", output_dtype=int64,
        include_batch_in_index=False, name=None) -> tuple[Tensor, Tensor]
        = max_pool_with_argmax(input, ksize, strides, padding, data_format, output_dtype,
        include_batch_in_index)
    moments(x, axes, shift=None, keepdims=False, name=None) -> tuple[Tensor, Tensor]
        = mean_and_variance(x, axes, keepdims)
        # Return the mean and the variance of elements over `axes`, as a pair; float16 is summed in
        float32. `shift` makes no difference.
    nce_loss(weights, biases, labels, inputs, num_sampled, num_classes, num_true=1,
        sampled_values=None, remove_accidental_hits=False, name="nce_loss")
        = nce_loss(weights, biases, labels, inputs, num_sampled, num_classes, num_true,
        sampled_values, remove_accidental_hits)
    normalize_moments(counts, mean_ss, variance_ss, shift, name=None) -> tuple[Tensor, Tensor]
        = normalize_moments(counts, mean_ss, variance_ss, shift)
    pool(input, window_shape, pooling_type, strides=None, padding="VALID", data_format=None,
        dilations=None, name=None)
        = pool(input, window_shape, pooling_type, strides, padding, data_format, dilations)
    relu relu6 selu softsign(features, name=None) = {}(features)
    sampled_softmax_loss(weights, biases, labels, inputs, num_sampled, num_classes, num_true=1,
        sampled_values=None, remove_accidental_hits=True, seed=None, name="sampled_softmax_loss")
        = sampled_softmax_loss(weights, biases, labels, inputs, num_sampled, num_classes, num_true,
        sampled_values, remove_accidental_hits, seed)
    scale_regularization_loss(regularization_loss) = reduce_sum(regularization_loss)
        # Return the sum of a loss, for the one replica that there is.
    separable_conv2d(input, depthwise_filter, pointwise_filter, strides, padding, data_format=None,
        dilations=None, name=None)
        = separable_conv(input, depthwise_filter, pointwise_filter, strides, padding, data_format,
        dilations)
    sigmoid_cross_entropy_with_logits(labels=None, logits=None, name=None)
        = sigmoid_cross_entropy(labels, logits)
    silu swish(features, beta=1.0) = silu(features, beta)
    softmax_cross_entropy_with_logits(labels, logits, axis=-1, name=None)
        = softmax_cross_entropy(labels, logits, axis)
    sparse_softmax_cross_entropy_with_logits(labels, logits, name=None)
        = sparse_cross_entropy(labels, logits)
    space_to_batch(input, block_shape, paddings, name=None)
        = space_to_batch(input, block_shape, paddings)
    sufficient_statistics(x, axes, shift=None, keepdims=False, name=None) -> tuple[Any, ...]
        = sufficient_statistics(x, axes, shift, keepdims)
    weighted_cross_entropy_with_logits(labels, logits, pos_weight, name=None)
        = weighted_cross_entropy(labels, logits, pos_weight)
        # Return `sigmoid_cross_entropy` of `labels` and `logits`, elementwise, with its first term,
        that of the labels, multiplied by `pos_weight`. Both have one shape.
    weighted_moments(x, axes, frequency_weights, keepdims=False, name=None)
        -> tuple[Tensor, Tensor]
        = weighted_moments(x, axes, frequency_weights, keepdims)
        # Return the mean and the variance of elements over `axes`, each counted
        `frequency_weights` times.
    with_space_to_batch(input, dilation_rate, padding, op, filter_shape=None, spatial_dims=None,
        data_format=None)
        = with_space_to_batch(input, dilation_rate, padding, op, filter_shape, spatial_dims,
        data_format)
"""
spell(globals(), _TABLE, lazily=True)
