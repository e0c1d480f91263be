"""TensorFlow's ``tf.nn``."""

from __future__ import annotations

from ._spellings.spell import spell
from .math import log_softmax, sigmoid, softmax, softplus, tanh, top_k

__all__ = ["log_softmax", "sigmoid", "softmax", "softplus", "tanh", "top_k"]

_TABLE = """
    avg_pool(input, ksize, strides, padding, data_format=None, name=None)
        = average_pool(input, ksize, strides, padding, data_format)
    avg_pool1d(input, ksize, strides, padding, data_format="NWC", name=None)
        = average_pool(input, ksize, strides, padding, data_format)
    avg_pool2d(input, ksize, strides, padding, data_format="NHWC", name=None)
        = average_pool(input, ksize, strides, padding, data_format)
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
    max_pool(input, ksize, strides, padding, data_format=None, name=None)
        = max_pool(input, ksize, strides, padding, data_format)
    max_pool1d(input, ksize, strides, padding, data_format="NWC", name=None)
        = max_pool(input, ksize, strides, padding, data_format)
    max_pool2d(input, ksize, strides, padding, data_format="NHWC", name=None)
        = max_pool(input, ksize, strides, padding, data_format)
    relu(features, name=None) = relu(features)
    softmax_cross_entropy_with_logits(labels, logits, axis=-1, name=None)
        = softmax_cross_entropy(labels, logits, axis)
    sparse_softmax_cross_entropy_with_logits(labels, logits, name=None)
        = sparse_cross_entropy(labels, logits)
"""
spell(globals(), _TABLE)
