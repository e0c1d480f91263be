"""Other filters of images: separable filters, adjoints, responses, morphology."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.linear.conv import Geometry
from tinygrad_cg_kernels.linear.pool import Window

from .._core.annotations import TensorLike
from .._core.conversion import INT64, as_dtype, convert, convert_operands
from .._core.kinds import REAL, is_exact
from .._core.tensor import Tensor
from ..errors import InvalidArgumentError
from .convolution import _conv_filter, _conv_input, _geometry, conv, depthwise_conv
from .elementwise import add, divide, maximum, multiply, negative, power, square
from .indexing import getitem
from .padding import pad
from .pooling import _max_indices, average_pool, max_pool
from .shape import cast, floating, in_float32, reshape
from .validation import as_count, as_shape, check_kind, check_shapes
from .windows import ImageLayout


def separable_conv2d(
    input: TensorLike,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return ``depthwise_conv2d`` of images, followed by a convolution of single pixels.

    Modelled on ``tf.nn.separable_conv2d``: `depthwise_filter` is (height, width, channels,
    multiplier), `pointwise_filter` (1, 1, channels * multiplier, outputs). Raises
    InvalidArgumentError for other shapes.
    """
    x, first, second = convert_operands((input, depthwise_filter, pointwise_filter))
    kernels = {
        "depthwise_filter": (first, "height width channels multiplier"),
        "pointwise_filter": (second, "1 1 channels_times_multiplier outputs"),
    }
    outputs = prod(first.shape[2:]) if first.ndim == 4 else None
    check_shapes("separable_conv2d", kernels, channels_times_multiplier=outputs)
    x = depthwise_conv(x, first, strides, padding, data_format, dilations)
    return conv(x, second, 1, "VALID", data_format)


def _adjoint_geometry(
    name: str,
    filters: Tensor,
    strides: Any,
    padding: Any,
    data_format: Any,
    dilations: Any,
    shape: Any,
) -> tuple[ImageLayout, Geometry, tuple[int, int]]:
    """Return the layout of images, the geometry of windows on them, and their size."""
    layout = ImageLayout(name, data_format, 2)
    if len(shape) != 4 or min(shape) < 0:
        raise InvalidArgumentError(f"{name}: images must have 4 sizes, got {tuple(shape)}")
    size = layout.inner(shape)
    channels = filters.shape[2]
    flat = reshape(filters, (*filters.shape[:2], 1, channels * filters.shape[3]))
    return layout, _geometry(layout, flat, strides, padding, dilations, size, channels), size


def _check_output(
    name: str, layout: ImageLayout, geometry: Geometry, size: Any, filters: Any, dy: Any
) -> None:
    expected = (*geometry.output_size(size, filters[:2]), filters[2] * filters[3])
    if tuple(dy.shape[1:]) != expected:
        raise InvalidArgumentError(
            f"{name}: images of {size} and filters of shape {tuple(filters)} give outputs "
            f"{expected}, but out_backprop has, with channels last, shape {tuple(dy.shape)}"
        )


def depthwise_conv2d_backprop_input(
    input_sizes: Any,
    filter: TensorLike,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = 1,
    name: str | None = None,
) -> Tensor:
    """Return the gradient of ``depthwise_conv2d`` with respect to its images, whose shape is
    `input_sizes`.

    Modelled on ``tf.nn.depthwise_conv2d_backprop_input``. InvalidArgumentError for wrong shapes.
    """
    op_name = "depthwise_conv2d_backprop_input"
    filters, dy = convert_operands((filter, out_backprop))
    shape = as_shape(op_name, input_sizes)
    check_shapes(op_name, {"filter": (filters, "height width channels multiplier")})
    settings = strides, padding, data_format, dilations
    layout, geometry, size = _adjoint_geometry(op_name, filters, *settings, shape)
    dy = layout.images(dy)
    _check_output(op_name, layout, geometry, size, filters.shape, dy)
    flat = reshape(filters, (*filters.shape[:2], 1, prod(filters.shape[2:])))
    result = layout.back(_conv_input(dy, flat, geometry=geometry, size=size))
    if tuple(result.shape) != shape:
        raise InvalidArgumentError(
            f"{op_name}: input_sizes are {shape}, but batch and channels make {tuple(result.shape)}"
        )
    return result


def depthwise_conv2d_backprop_filter(
    input: TensorLike,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = 1,
    name: str | None = None,
) -> Tensor:
    """Return the gradient of ``depthwise_conv2d`` with respect to its filters, whose shape is
    `filter_sizes`.

    Modelled on ``tf.nn.depthwise_conv2d_backprop_filter``. InvalidArgumentError for wrong shapes.
    """
    op_name = "depthwise_conv2d_backprop_filter"
    x, dy = convert_operands((input, out_backprop))
    sizes = as_shape(op_name, filter_sizes)
    if len(sizes) != 4 or min(sizes) < 1:
        raise InvalidArgumentError(f"{op_name}: filter_sizes must be 4 positive sizes, got {sizes}")
    like = convert(np.zeros(sizes, x.dtype))
    settings = strides, padding, data_format, dilations
    layout, geometry, size = _adjoint_geometry(op_name, like, *settings, tuple(x.shape))
    x, dy = layout.images(x), layout.images(dy)
    _check_output(op_name, layout, geometry, size, sizes, dy)
    if x.shape[-1] != sizes[2] or x.shape[0] != dy.shape[0]:
        raise InvalidArgumentError(
            f"{op_name}: filters of shape {sizes} and out_backprop of shape {tuple(dy.shape)} do "
            f"not fit images of shape {tuple(x.shape)}"
        )
    return reshape(_conv_filter(x, dy, geometry=geometry, window=sizes[:2]), sizes)


@in_float32
def local_response_normalization(
    input: TensorLike,
    depth_radius: Any = 5,
    bias: Any = 1,
    alpha: Any = 1,
    beta: Any = 0.5,
    name: str | None = None,
) -> Tensor:
    """Return ``input / (bias + alpha * s) ** beta``, where s sums the squares of nearby channels.

    Modelled on ``tf.nn.local_response_normalization``, of A. Krizhevsky et al. (2012): `input` is
    (batch, height, width, channels); nearby channels are up to `depth_radius` away. The other
    parameters may be tensors. Integers become float64. Raises InvalidArgumentError for another rank
    or radius.
    """
    op_name = "local_response_normalization"
    x, radius = convert(input), as_count(op_name, "depth_radius", depth_radius)
    check_kind(op_name, "images", x, REAL)
    check_shapes(op_name, {"images": (x, "batch height width channels")})
    x = floating(x)
    channels = x.shape[-1]
    width = 2 * radius + 1
    squares = pad(reshape(square(x), (-1, channels, 1)), [(0, 0), (radius, radius), (0, 0)])
    sums = multiply(average_pool(squares, width, 1, "VALID", "NWC"), width)
    total = add(multiply(reshape(sums, x.shape), alpha), bias)
    return divide(x, power(total, beta))


lrn = local_response_normalization


def dilation2d(
    input: TensorLike,
    filters: TensorLike,
    strides: Any,
    padding: Any,
    data_format: str | None,
    dilations: Any,
    name: str | None = None,
) -> Tensor:
    """Return the maximum over a window of elements plus `filters`, channel by channel.

    Modelled on ``tf.nn.dilation2d``: the grayscale dilation of images (batch, height, width,
    channels), or channels first, by `filters` (height, width, channels). Padding is never the
    largest. The gradient goes to the first of equal sums. Raises InvalidArgumentError for sizes
    that do not fit.
    """
    op_name = "dilation2d"
    x, filters = convert_operands((input, filters))
    layout = ImageLayout(op_name, data_format, 2)
    x = layout.images(x)
    check_kind(op_name, "images", x, REAL)
    check_shapes(op_name, {"filters": (filters, "height width channels")}, channels=x.shape[3])
    kernels = reshape(filters, (*filters.shape, 1))
    size = x.shape[1], x.shape[2]
    geometry = _geometry(layout, kernels, strides, padding, dilations, size, 1)
    window, (steps, gaps) = filters.shape[:2], (geometry.strides, geometry.dilations)
    out = geometry.output_size(size, window)
    kind = x.dtype
    if is_exact(kind):  # they have no infinity
        x, filters = cast(x, np.float64), cast(filters, np.float64)
    x = pad(x, [(0, 0), *geometry.padding, (0, 0)], value=-np.inf)
    result: Any = None
    for i in range(window[0]):
        for j in range(window[1]):
            rows, columns = (
                slice(at * gap, at * gap + (count - 1) * step + 1, step)
                for at, gap, count, step in zip((i, j), gaps, out, steps, strict=True)
            )
            part = add(getitem(x, (slice(None), rows, columns)), getitem(filters, (i, j)))
            result = part if result is None else maximum(result, part)
    return layout.back(cast(result, kind))


def erosion2d(
    value: TensorLike,
    filters: TensorLike,
    strides: Any,
    padding: Any,
    data_format: str | None,
    dilations: Any,
    name: str | None = None,
) -> Tensor:
    """Return the minimum over a window of elements minus `filters`, channel by channel.

    Modelled on ``tf.nn.erosion2d``: minus the ``dilation2d`` of minus `value`, with rotated
    filters.
    """
    x, filters = convert_operands((value, filters))
    turned = getitem(filters, (slice(None, None, -1), slice(None, None, -1)))
    return negative(dilation2d(negative(x), turned, strides, padding, data_format, dilations))


def max_pool_with_argmax(
    input: TensorLike,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    output_dtype: Any = INT64,
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Return ``max_pool2d`` of images, and where each largest element is, flattened.

    Modelled on ``tf.nn.max_pool_with_argmax``: the positions ``(y * width + x) * channels + c``
    count within an image, or within the batch if `include_batch_in_index`.
    """
    op_name, x = "max_pool_with_argmax", convert(input)
    layout = ImageLayout(op_name, data_format, 2)
    values = max_pool(x, ksize, strides, padding, data_format)
    x = layout.images(x)
    span, steps = layout.sizes("the size of the window", ksize), layout.sizes("strides", strides)
    batch, height, width, channels = x.shape
    window = Window(span, steps, layout.padding(padding, (height, width), span, steps))
    indices = _max_indices(x, window=window)
    indices = add(multiply(indices, channels), np.arange(channels))
    if include_batch_in_index:
        indices = add(indices, np.arange(batch)[:, None, None, None] * (height * width * channels))
    return values, cast(layout.back(indices), as_dtype(output_dtype))
