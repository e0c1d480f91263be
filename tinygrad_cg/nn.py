"""TensorFlow's ``tf.nn``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

from . import _ops
from ._core.annotations import Axes, Shape, TensorLike
from ._core.conversion import INT64, convert_each
from ._core.suggestions import hides_others, reads_own_arguments, refuse_call
from ._core.tensor import Tensor
from ._ops import elementwise as _elementwise
from ._ops import reductions as _reductions
from ._ops.elementwise import add
from ._ops.namespaces.namespace import export_functions, spelled
from ._ops.shape import reshape
from .errors import InvalidArgumentError
from .math import (
    approx_max_k,
    approx_min_k,
    in_top_k,
    l2_normalize,
    log_softmax,
    sigmoid,
    softmax,
    softplus,
    tanh,
    top_k,
    zero_fraction,
)

if TYPE_CHECKING:
    from ._ops.candidates import Candidates

__all__ = [
    "approx_max_k",
    "approx_min_k",
    "in_top_k",
    "l2_normalize",
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


def atrous_conv2d(
    value: TensorLike, filters: TensorLike, rate: Any, padding: Any, name: str | None = None
) -> Tensor:
    """Return ``conv2d`` with filters dilated by `rate`."""
    return _ops.convolution.conv(value, filters, 1, padding, None, rate)


def atrous_conv2d_transpose(
    value: TensorLike,
    filters: TensorLike,
    output_shape: Shape,
    rate: Any,
    padding: Any,
    name: str | None = None,
) -> Tensor:
    """Return the transpose of ``atrous_conv2d`` as a map of images, of `output_shape`."""
    return _ops.convolution.conv_transpose(value, filters, output_shape, 1, padding, None, rate)


def avg_pool(
    input: TensorLike,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the mean of the elements under each window of `ksize`, along one to three axes,
    channel by channel; see ``avg_pool2d``."""
    return _ops.volumes.pool_by_rank("AVG", input, ksize, strides, padding, data_format)


def _average_pool(name: str, layout: str):
    def pool(
        input: TensorLike,
        ksize: Any,
        strides: Any,
        padding: Any,
        data_format: str | None = layout,
        name: str | None = None,
    ) -> Tensor:
        """Return the mean of the elements under each window of `ksize`, channel by channel.

        Modelled on ``tf.nn.avg_pool``: padding does not count. Integers become float64; else as
        `max_pool`.
        """
        return _ops.pooling.average_pool(input, ksize, strides, padding, data_format)

    return spelled(pool, name)


avg_pool1d = _average_pool("avg_pool1d", "NWC")
avg_pool2d = _average_pool("avg_pool2d", "NHWC")


def avg_pool3d(
    input: TensorLike,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Return the mean of the elements under each window of `ksize` in volumes (batch, depth,
    height, width, channels), channel by channel; see ``avg_pool2d``."""
    return _ops.volumes.pool3d("AVG", input, ksize, strides, padding, data_format)


def batch_norm_with_global_normalization(
    input: TensorLike,
    mean: Any,
    variance: Any,
    beta: Any,
    gamma: Any,
    variance_epsilon: Any,
    scale_after_normalization: Any,
    name: str | None = None,
) -> Tensor:
    """Return ``batch_normalization``; `scale_after_normalization` says whether `gamma` is used.

    Modelled on ``tf.nn.batch_norm_with_global_normalization``.
    """
    return _ops.statistics.globally_normalized(
        input, mean, variance, beta, gamma, variance_epsilon, scale_after_normalization
    )


def batch_normalization(
    x: TensorLike,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: Any,
    name: str | None = None,
) -> Tensor:
    """Return ``(x - mean) / sqrt(variance + epsilon) * scale + offset``; None leaves a part out.

    All broadcast. After S. Ioffe and C. Szegedy, "Batch normalization" (2015).
    """
    return _ops.normalizations.batch_normalization(
        x, mean, variance, offset, scale, variance_epsilon
    )


def bias_add(
    value: TensorLike, bias: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Return `value` plus the vector `bias` along its last axis, or along the second with
    data_format="NC..."."""
    return _add_bias(value, bias, data_format)


def collapse_repeated(
    labels: TensorLike, seq_length: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return sequences without consecutive repetitions of labels, and their lengths (int32).

    Modelled on ``tf.nn.collapse_repeated``: the first `seq_length` elements of each row of `labels`
    are used; the rest of the result is 0. Raises InvalidArgumentError for lengths that do not fit.
    """
    return _ops.statistics.collapse_repeated(labels, seq_length)


def compute_average_loss(
    per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None
) -> Tensor:
    """Return the weighted sum of losses, divided by the size of the batch.

    Modelled on ``tf.nn.compute_average_loss`` with one replica: the size is by default that of the
    first axis. Raises InvalidArgumentError for a scalar loss.
    """
    return _ops.statistics.average_loss(per_example_loss, sample_weight, global_batch_size)


def all_candidate_sampler(
    true_classes: Any,
    num_true: Any,
    num_sampled: Any,
    unique: Any,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Return all `num_sampled` classes, each expected once."""
    return _ops.candidates.all_candidates(true_classes, num_true, num_sampled)


def compute_accidental_hits(
    true_classes: Any,
    sampled_candidates: Any,
    num_true: Any,
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the rows, the positions, and weights of sampled classes that are true in a row.

    Modelled on ``tf.nn.compute_accidental_hits``: the weights are the least float32. Inside
    ``function`` and ``vmap`` the classes must be known.
    """
    return _ops.candidates.accidental_hits(true_classes, sampled_candidates, num_true)


def ctc_loss(
    labels: TensorLike,
    logits: TensorLike,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return minus the logarithm of the probability of each sequence of labels, (batch,).

    Modelled on ``tf.nn.ctc_loss`` of dense labels: `labels` (batch, longest) has `label_length`
    integers in each row; `logits` (frames, batch, classes), or (batch, frames, classes) unless
    `logits_time_major`, has `logit_length` frames. `blank_index` is the class of blanks, 0 by
    default; a negative one counts from the end. The softmax is part of the loss, which is infinite,
    with the gradient 0, where there are too few frames. It is computed in float32 at least. Raises
    InvalidArgumentError for sizes that do not fit.
    """
    return _ops.sequences.ctc_loss(
        labels, logits, label_length, logit_length, logits_time_major, blank_index
    )


def ctc_unique_labels(labels: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the distinct labels of each row, in order of appearance, and the index of each label.

    Modelled on ``tf.nn.ctc_unique_labels``: rows are padded with 0; the labels are int64, the
    indices int32.
    """
    return _ops.statistics.unique_labels(labels)


def conv1d(
    input: TensorLike,
    filters: TensorLike,
    stride: Any,
    padding: Any,
    data_format: str | None = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the convolution (without flipping) of images with filters, along one axis or two.

    Modelled on ``tf.nn.convolution``: `input` is (batch, height, width, channels), or channels
    first if `data_format` says so; `filters` are (height, width, channels of a group, outputs),
    without the height in one dimension. The channels are divided into groups of this size, each
    with its share of the outputs. `padding` is "VALID", "SAME", or (before, after) pairs. The
    dtypes promote. Raises InvalidArgumentError for shapes that do not fit, TypeError for bool.
    """
    return _ops.convolution.conv(input, filters, stride, padding, data_format, dilations)


def _conv_transpose(name: str, layout: str):
    def transpose(
        input: TensorLike,
        filters: TensorLike,
        output_shape: Shape,
        strides: Any,
        padding: str = "SAME",
        data_format: str | None = layout,
        dilations: Any = None,
        name: str | None = None,
    ) -> Tensor:
        """Return the transpose of `conv` by its images, of `output_shape`: all axes, or space.

        Modelled on ``tf.nn.conv2d_transpose``: `filters` are (height, width, outputs, channels),
        the filters of a `conv` from the result to the shape of `input`. Raises InvalidArgumentError
        if the shapes do not fit.
        """
        return _ops.convolution.conv_transpose(
            input, filters, output_shape, strides, padding, data_format, dilations
        )

    return spelled(transpose, name)


conv1d_transpose = _conv_transpose("conv1d_transpose", "NWC")
conv2d_transpose = _conv_transpose("conv2d_transpose", "NHWC")


def conv2d(
    input: TensorLike,
    filters: TensorLike,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the convolution (without flipping) of images with filters, along one axis or two.

    Modelled on ``tf.nn.convolution``: `input` is (batch, height, width, channels), or channels
    first if `data_format` says so; `filters` are (height, width, channels of a group, outputs),
    without the height in one dimension. The channels are divided into groups of this size, each
    with its share of the outputs. `padding` is "VALID", "SAME", or (before, after) pairs. The
    dtypes promote. Raises InvalidArgumentError for shapes that do not fit, TypeError for bool.
    """
    return _ops.convolution.conv(input, filters, strides, padding, data_format, dilations)


def conv3d(
    input: TensorLike,
    filters: TensorLike,
    strides: Any,
    padding: Any,
    data_format: str | None = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the convolution (without flipping) of volumes with filters, along three axes.

    Modelled on ``tf.nn.conv3d``: `input` is (batch, depth, height, width, channels), or channels
    first if `data_format` says so; `filters` are (depth, height, width, channels of a group,
    outputs). The channels are divided into groups of this size (TensorFlow has one group).
    `padding` is "VALID", "SAME", or three pairs. Raises InvalidArgumentError for shapes that do not
    fit, TypeError for bool.
    """
    return _ops.volumes.conv3d(input, filters, strides, padding, data_format, dilations)


def conv3d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: Shape,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the transpose of ``conv3d`` by its volumes, of `output_shape`: all axes, or of space.

    Modelled on ``tf.nn.conv3d_transpose``: `filters` are (depth, height, width, outputs, channels),
    the filters of a ``conv3d`` from the result to the shape of `input`. Raises InvalidArgumentError
    if the shapes do not fit.
    """
    return _ops.volumes.conv3d_transpose(
        input, filters, output_shape, strides, padding, data_format, dilations
    )


def conv_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: Shape,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the transpose of a convolution along one to three axes, of `output_shape`.

    Modelled on ``tf.nn.conv_transpose``: `filters` are (spatial axes, outputs, channels), the
    filters of a convolution from the result to the shape of `input`. Raises InvalidArgumentError if
    the shapes do not fit.
    """
    return _ops.volumes.convolve_transpose(
        input, filters, output_shape, strides, padding, data_format, dilations
    )


def convolution(
    input: TensorLike,
    filters: TensorLike,
    strides: Any = None,
    padding: str = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the convolution (without flipping) of `input` with `filters`, along one to three axes.

    Modelled on ``tf.nn.convolution``: `input` is (batch, spatial axes, channels), or channels first
    if `data_format` says so; `filters` are (spatial axes, channels of a group, outputs). Channels
    are cut into as many groups as fit. `padding` is "VALID", "SAME", or (before, after) pairs.
    Raises InvalidArgumentError for shapes that do not fit, TypeError for bool.
    """
    return _ops.volumes.convolve(input, filters, strides, padding, data_format, dilations)


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

    Modelled on ``tf.nn.depthwise_conv2d_backprop_filter``. InvalidArgumentError for what does not
    fit.
    """
    return _ops.filters.depthwise_conv_filter_adjoint(
        input, filter_sizes, out_backprop, strides, padding, data_format, dilations
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

    Modelled on ``tf.nn.depthwise_conv2d_backprop_input``. InvalidArgumentError for what does not
    fit.
    """
    return _ops.filters.depthwise_conv_adjoint(
        input_sizes, filter, out_backprop, strides, padding, data_format, dilations
    )


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
    return _ops.filters.dilation2d(input, filters, strides, padding, data_format, dilations)


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
    return _ops.filters.erosion2d(value, filters, strides, padding, data_format, dilations)


def depthwise_conv2d(
    input: TensorLike,
    filter: TensorLike,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return `conv` of each channel with filters of its own: (height, width, channels, multiplier).

    Modelled on ``tf.nn.depthwise_conv2d``: the result has channels * multiplier channels.
    """
    return _ops.convolution.depthwise_conv(input, filter, strides, padding, data_format, dilations)


def depth_to_space(
    input: TensorLike, block_size: Any, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Return images whose blocks of `block_size` by `block_size` are the channels of `input`.

    Modelled on ``tf.nn.depth_to_space``, the inverse of `space_to_depth`. InvalidArgumentError
    unless the channels are a multiple of the square of `block_size`.
    """
    return _ops.block_moves.depth_to_space(input, block_size, data_format)


def space_to_depth(
    input: TensorLike, block_size: Any, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Return images whose channels are the blocks of `block_size` by `block_size` of `input`.

    Modelled on ``tf.nn.space_to_depth``: height and width are that much smaller and must be
    multiples of `block_size` (else InvalidArgumentError).
    """
    return _ops.block_moves.space_to_depth(input, block_size, data_format)


@hides_others
def crelu(
    features: TensorLike, axis: Axes = -1, name: str | None = None, **others: Never
) -> Tensor:
    """Return ``relu(features)`` and ``relu(-features)``, joined along `axis`.

    After W. Shang et al., "Understanding and improving convolutional neural networks via
    concatenated rectified linear units" (2016).
    """
    if others:
        refuse_call(crelu, others)
    return _ops.activation_functions.crelu(features, axis)


def dropout(
    x: TensorLike,
    rate: Any,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return `x` with a share `rate` of its elements set to 0, the others divided by 1 - rate.

    `noise_shape` broadcasts to the shape of `x`: where it is 1 (or None: the size of `x`), the
    elements are dropped together. `seed` as for `random.uniform`. After N. Srivastava et al.,
    "Dropout" (2014). Raises ValueError for a rate outside [0, 1) or an `x` that is not a float,
    InvalidArgumentError for a `noise_shape` that does not broadcast.
    """
    return _ops.normalizations.dropout(x, rate, noise_shape, seed)


def elu(features: TensorLike, name: str | None = None) -> Tensor:
    """Return `features` where they are positive, and ``exp(features) - 1`` elsewhere."""
    return _ops.activation_functions.elu(features)


def embedding_lookup(
    params: TensorLike, ids: Any, max_norm: Any = None, name: str | None = None
) -> Tensor:
    """Return the rows of `params` at integer `ids`, of norm `max_norm` at most if that is given.

    `params` is a tensor, or a list with one. Raises InvalidArgumentError for `ids` that are not
    integers, IndexError for one out of bounds.
    """
    return _ops.normalizations.embedding_lookup(params, ids, max_norm)


def gelu(features: TensorLike, approximate: bool = False, name: str | None = None) -> Tensor:
    """Return ``features`` times the normal distribution function at `features`, or `approximate` it
    by tanh.

    After D. Hendrycks and K. Gimpel, "Gaussian error linear units" (2016).
    """
    return _ops.activation_functions.gelu(features, approximate)


@reads_own_arguments
def isotonic_regression(
    inputs: TensorLike, decreasing: bool = True, axis: Axes = -1
) -> tuple[Tensor, Tensor]:
    """Return the nearest non-increasing (or non-decreasing) numbers, and block numbers.

    Modelled on ``tf.nn.isotonic_regression``: nearest in the sum of squares, by the algorithm of M.
    Ayer et al. (1955). Each smallest possible block of elements is replaced by its mean, through
    which gradients flow; the choice of the blocks is constant. Integers become float64. TypeError
    for complex numbers.
    """
    return _ops.statistics.isotonic_regression(inputs, decreasing, axis)


def l2_loss(t: TensorLike, name: str | None = None) -> Tensor:
    """Return half the sum of squares of all elements."""
    return _elementwise.divide(_reductions.reduce_sum(_elementwise.square(t)), 2)


def leaky_relu(features: TensorLike, alpha: Any = 0.2, name: str | None = None) -> Tensor:
    """Return `features` where it is positive, and ``alpha * features`` elsewhere. The slope at 0 is
    `alpha`."""
    return _ops.activation_functions.leaky_relu(features, alpha)


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
    return _ops.filters.local_response_normalization(input, depth_radius, bias, alpha, beta)


lrn = local_response_normalization


def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """Return ``exp(log_input) - log_input * targets``: the loss of a Poisson distribution.

    With `compute_full_loss` Stirling's approximation of log(targets!) is added where `targets` is
    above 1. Both have one shape (else InvalidArgumentError).
    """
    return _ops.loss_functions.log_poisson_loss(targets, log_input, compute_full_loss)


def max_pool(
    input: TensorLike,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the largest element under each window of `ksize`, along one to three axes, channel by
    channel; see ``max_pool2d``."""
    return _ops.volumes.pool_by_rank("MAX", input, ksize, strides, padding, data_format)


def _max_pool(name: str, layout: str):
    def pool(
        input: TensorLike,
        ksize: Any,
        strides: Any,
        padding: Any,
        data_format: str | None = layout,
        name: str | None = None,
    ) -> Tensor:
        """Return the largest element under each window of `ksize`, channel by channel.

        Modelled on ``tf.nn.max_pool``: `input` is (batch, height, width, channels), without a
        height in one dimension, or channels first if `data_format` says so; the windows touch
        unless `strides` says otherwise; `padding` is "VALID", "SAME", or (before, after) pairs;
        padded elements are never the largest. NaN stays NaN. The gradient goes to the first of
        equal elements. Raises InvalidArgumentError for windows that do not fit, TypeError for
        complex numbers.
        """
        return _ops.pooling.max_pool(input, ksize, strides, padding, data_format)

    return spelled(pool, name)


max_pool1d = _max_pool("max_pool1d", "NWC")
max_pool2d = _max_pool("max_pool2d", "NHWC")


def max_pool3d(
    input: TensorLike,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Return the largest element under each window of `ksize` in volumes (batch, depth, height,
    width, channels), channel by channel; see ``max_pool2d``."""
    return _ops.volumes.pool3d("MAX", input, ksize, strides, padding, data_format)


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
    return _ops.filters.max_pool_with_argmax(
        input, ksize, strides, padding, data_format, output_dtype, include_batch_in_index
    )


@reads_own_arguments
def moments(
    x: TensorLike, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance of elements over `axes`, as a pair; float16 is summed in
    float32. `shift` has no effect."""
    return _ops.normalizations.mean_and_variance(x, axes, keepdims)


def nce_loss(
    weights: Any,
    biases: Any,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: Any,
    num_classes: int,
    num_true: Any = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    name: str | None = "nce_loss",
) -> Tensor:
    """Return the loss of noise-contrastive estimation, (batch,).

    Modelled on ``tf.nn.nce_loss`` (M. Gutmann and A. Hyvarinen, 2010); arguments as of
    ``sampled_softmax_loss``. It is the sum of the logistic losses of the true and of the sampled
    classes.
    """
    return _ops.candidates.nce_loss(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
    )


def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance from the results of ``sufficient_statistics``.

    Modelled on ``tf.nn.normalize_moments``.
    """
    return _ops.statistics.normalize_moments(counts, mean_ss, variance_ss, shift)


def pool(
    input: TensorLike,
    window_shape: Any,
    pooling_type: Any,
    strides: Any = None,
    padding: str = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the largest ("MAX") or the mean element ("AVG") under dilated windows.

    Modelled on ``tf.nn.pool``, along one to three axes: `window_shape`, `strides` (1 by default)
    and `dilations` have a number for each, or are one for all. Dilations above 1 need strides of 1
    and the padding "VALID"; otherwise this raises InvalidArgumentError.
    """
    return _ops.volumes.pool(
        input, window_shape, pooling_type, strides, padding, data_format, dilations
    )


def relu(features: TensorLike, name: str | None = None) -> Tensor:
    """Return the larger of features and 0; its gradient at 0 is 0.

    Elementwise; the result has the shape of `features`, a tensor or array-like.
    """
    return _elementwise.relu(features)


def relu6(features: TensorLike, name: str | None = None) -> Tensor:
    """Return `features` limited to [0, 6]; its gradient is 0 at both limits."""
    return _ops.activation_functions.relu6(features)


def selu(features: TensorLike, name: str | None = None) -> Tensor:
    """Return 1.0507 times `elu` with an alpha of 1.6733: what keeps mean 0 and variance 1.

    After G. Klambauer et al., "Self-normalizing neural networks" (2017).
    """
    return _ops.activation_functions.selu(features)


def softsign(features: TensorLike, name: str | None = None) -> Tensor:
    """Return features / (1 + |features|).

    Elementwise; the result has the shape of `features`, a tensor or array-like.
    """
    return _elementwise.softsign(features)


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: Any,
    num_classes: int,
    num_true: Any = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    seed: int | None = None,
    name: str | None = "sampled_softmax_loss",
) -> Tensor:
    """Return the cross-entropy of the true classes and of a sample of the others, (batch,).

    Modelled on ``tf.nn.sampled_softmax_loss`` (S. Jean et al., 2014): `weights` (classes, size), or
    a list of its parts, and `biases` (classes,) give the logits of `inputs` (batch, size); `labels`
    are (batch, num_true). The sample is `sampled_values`, or `num_sampled` different classes of a
    log-uniform distribution; the logarithms of expected counts are subtracted. Sampled classes that
    are true do not count if `remove_accidental_hits`. Raises InvalidArgumentError for sizes that do
    not fit.
    """
    return _ops.candidates.sampled_softmax_loss(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        seed,
    )


def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """Return the sum of a loss; there is only one replica."""
    return _reductions.reduce_sum(regularization_loss)


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
    return _ops.filters.separable_conv(
        input, depthwise_filter, pointwise_filter, strides, padding, data_format, dilations
    )


def sigmoid_cross_entropy_with_logits(
    labels: TensorLike | None = None, logits: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """Return ``-labels log(sigmoid(logits)) - (1 - labels) log(1 - sigmoid(logits))``, elementwise.

    Modelled on ``tf.nn.sigmoid_cross_entropy_with_logits``: `labels` are probabilities, of the
    shape of `logits` (else InvalidArgumentError) and cast to their dtype. It neither overflows nor
    cancels.
    """
    return _ops.loss_functions.sigmoid_cross_entropy(labels, logits)


def silu(features: TensorLike, beta: Any = 1.0) -> Tensor:
    """Return ``features * sigmoid(beta * features)``, also called swish; `beta` has a gradient.

    After P. Ramachandran, B. Zoph and Q. Le, "Searching for activation functions" (2017).
    """
    return _ops.activation_functions.silu(features, beta)


swish = silu


@reads_own_arguments
def softmax_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, axis: Axes = -1, name: str | None = None
) -> Tensor:
    """Return ``-sum(labels * log_softmax(logits))`` along `axis`: cross-entropy of distributions.

    `labels` hold the weights of the classes, one_hot vectors for instance, and broadcast with
    `logits` (else InvalidArgumentError); the result has the logits' dtype.
    """
    return _ops.loss_functions.softmax_cross_entropy(labels, logits, axis)


def sparse_softmax_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, name: str | None = None
) -> Tensor:
    """Return ``-log_softmax(logits)[..., label]``, the cross-entropy for integer labels.

    `logits` are scores, of shape (..., classes) and a float dtype, `labels` integers from 0 to
    classes - 1, of the shape before the last axis; the result has the labels' shape and the scores'
    dtype. Raises InvalidArgumentError for labels of other values or another shape.
    """
    return _ops.loss_functions.sparse_cross_entropy(labels, logits)


def space_to_batch(
    input: TensorLike, block_shape: Any, paddings: Any, name: str | None = None
) -> Tensor:
    """Return `input`, padded, cut into blocks of `block_shape` that become part of the batch.

    Modelled on ``tf.space_to_batch``: `paddings` is a pair for each axis of a block. The padded
    sizes must be multiples of the block's (else InvalidArgumentError).
    """
    return _ops.block_moves.space_to_batch(input, block_shape, paddings)


@reads_own_arguments
def sufficient_statistics(
    x: TensorLike, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Any, ...]:
    """Return the count, the sum and the sum of squares of elements minus `shift`, and the shift.

    Modelled on ``tf.nn.sufficient_statistics``: over `axes`; the count is a scalar, the shift None
    if it is not given. ``normalize_moments`` computes the mean and the variance from them.
    """
    return _ops.statistics.sufficient_statistics(x, axes, shift, keepdims)


def weighted_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, pos_weight: Any, name: str | None = None
) -> Tensor:
    """Return `sigmoid_cross_entropy` of `labels` and `logits`, elementwise, with the term of the
    labels multiplied by `pos_weight`. Both have one shape."""
    return _ops.loss_functions.weighted_cross_entropy(labels, logits, pos_weight)


@reads_own_arguments
def weighted_moments(
    x: TensorLike,
    axes: Any,
    frequency_weights: Any,
    keepdims: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance of elements over `axes`, weighted by `frequency_weights`."""
    return _ops.normalizations.weighted_moments(x, axes, frequency_weights, keepdims)


def with_space_to_batch(
    input: TensorLike,
    dilation_rate: Any,
    padding: Any,
    op: Any,
    filter_shape: Any = None,
    spatial_dims: Any = None,
    data_format: str | None = None,
) -> Tensor:
    """Return the dilated `op`: apply it to each part of `input` with every `dilation_rate`-th
    element.

    Modelled on ``tf.nn.with_space_to_batch``: ``op(part, number of axes, "VALID")`` is called once,
    with all parts as one batch, and its results are interleaved again; ``op(input, number of axes,
    padding)`` if all rates are 1. The axes are `spatial_dims`, ascending, by default those after
    the batch, or after the channels if `data_format` has them first. With the padding "SAME", zeros
    are added for filters of `filter_shape`. Raises InvalidArgumentError for sizes that do not fit.
    """
    return _ops.volumes.with_space_to_batch(
        input, dilation_rate, padding, op, filter_shape, spatial_dims, data_format
    )


__all__ += export_functions(globals())
