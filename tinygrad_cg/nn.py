"""TensorFlow's ``tf.nn``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from . import _ops
from ._core.annotations import Axes, Shape, TensorLike
from ._core.conversion import convert_each
from ._core.tensor import Tensor
from ._ops import elementwise as _elementwise
from ._ops import reductions as _reductions
from ._ops.elementwise import add
from ._ops.namespaces.namespace import (
    export_functions,
    find_later,
    restates,
    spelled,
    unary_of_features,
)
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
    from ._ops.activation_functions import crelu as crelu
    from ._ops.block_moves import space_to_batch as space_to_batch
    from ._ops.candidates import all_candidate_sampler as all_candidate_sampler
    from ._ops.candidates import compute_accidental_hits as compute_accidental_hits
    from ._ops.candidates import nce_loss as nce_loss
    from ._ops.candidates import sampled_softmax_loss as sampled_softmax_loss
    from ._ops.filters import depthwise_conv2d_backprop_filter as depthwise_conv2d_backprop_filter
    from ._ops.filters import depthwise_conv2d_backprop_input as depthwise_conv2d_backprop_input
    from ._ops.filters import dilation2d as dilation2d
    from ._ops.filters import erosion2d as erosion2d
    from ._ops.filters import local_response_normalization as local_response_normalization
    from ._ops.filters import lrn as lrn
    from ._ops.filters import max_pool_with_argmax as max_pool_with_argmax
    from ._ops.filters import separable_conv2d as separable_conv2d
    from ._ops.loss_functions import log_poisson_loss as log_poisson_loss
    from ._ops.loss_functions import (
        sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits,
    )
    from ._ops.loss_functions import (
        sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
    )
    from ._ops.loss_functions import (
        weighted_cross_entropy_with_logits as weighted_cross_entropy_with_logits,
    )
    from ._ops.normalizations import batch_normalization as batch_normalization
    from ._ops.normalizations import dropout as dropout
    from ._ops.normalizations import embedding_lookup as embedding_lookup
    from ._ops.normalizations import weighted_moments as weighted_moments
    from ._ops.sequences import ctc_loss as ctc_loss
    from ._ops.statistics import (
        batch_norm_with_global_normalization as batch_norm_with_global_normalization,
    )
    from ._ops.statistics import collapse_repeated as collapse_repeated
    from ._ops.statistics import compute_average_loss as compute_average_loss
    from ._ops.statistics import ctc_unique_labels as ctc_unique_labels
    from ._ops.statistics import isotonic_regression as isotonic_regression
    from ._ops.statistics import normalize_moments as normalize_moments
    from ._ops.statistics import sufficient_statistics as sufficient_statistics
    from ._ops.volumes import conv3d as conv3d
    from ._ops.volumes import conv3d_transpose as conv3d_transpose
    from ._ops.volumes import conv_transpose as conv_transpose
    from ._ops.volumes import convolution as convolution
    from ._ops.volumes import pool as pool
    from ._ops.volumes import with_space_to_batch as with_space_to_batch

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
# Functions by the module of `_ops` that is loaded when one of them is asked for.
_LATER = {
    "activation_functions": "crelu",
    "block_moves": "space_to_batch",
    "candidates": "all_candidate_sampler compute_accidental_hits nce_loss sampled_softmax_loss",
    "filters": (
        "depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_input dilation2d erosion2d "
        "local_response_normalization lrn max_pool_with_argmax separable_conv2d"
    ),
    "loss_functions": (
        "log_poisson_loss sigmoid_cross_entropy_with_logits "
        "sparse_softmax_cross_entropy_with_logits weighted_cross_entropy_with_logits"
    ),
    "normalizations": "batch_normalization dropout embedding_lookup weighted_moments",
    "sequences": "ctc_loss",
    "statistics": (
        "batch_norm_with_global_normalization collapse_repeated compute_average_loss "
        "ctc_unique_labels isotonic_regression normalize_moments sufficient_statistics"
    ),
    "volumes": "conv3d conv3d_transpose conv_transpose convolution pool with_space_to_batch",
}
_HOMES = {name: home for home, names in _LATER.items() for name in names.split()}
__all__ += _HOMES


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


def _pool(name: str, layout: str | None, run: Callable[..., Tensor], doc: str):
    def pool(
        input: TensorLike,
        ksize: Any,
        strides: Any,
        padding: Any,
        data_format: str | None = layout,
        name: str | None = None,
    ) -> Tensor:
        return run(input, ksize, strides, padding, data_format)

    pool.__doc__ = doc
    return spelled(pool, name)


_MEAN = "Return the mean of the elements under each window of `ksize`"
_AVERAGE = f"""{_MEAN}, channel by channel.

    Modelled on ``tf.nn.avg_pool``: padding does not count. Integers become float64; otherwise
    as `max_pool`.
    """
_LARGEST = "Return the largest element under each window of `ksize`"
_MAXIMUM = f"""{_LARGEST}, channel by channel.

    Modelled on ``tf.nn.max_pool``: `input` is (batch, height, width, channels), without a height in
    one dimension, or channels first if `data_format` says so; the windows touch unless `strides`
    says otherwise; `padding` is "VALID", "SAME", or (before, after) pairs; padded elements are
    never the largest. NaN stays NaN. The gradient goes to the first of equal elements. Raises
    InvalidArgumentError for windows that do not fit, TypeError for complex numbers.
    """
_BY_RANK = "along one to three axes, channel by channel; see"
_VOLUMES = "in volumes (batch, depth, height, width, channels), channel by channel; see"
avg_pool = _pool(
    "avg_pool",
    None,
    lambda *args: _ops.volumes.pool_by_rank("AVG", *args),
    f"{_MEAN}, {_BY_RANK} ``avg_pool2d``.",
)
avg_pool1d = _pool("avg_pool1d", "NWC", lambda *args: _ops.pooling.average_pool(*args), _AVERAGE)
avg_pool2d = _pool("avg_pool2d", "NHWC", lambda *args: _ops.pooling.average_pool(*args), _AVERAGE)
avg_pool3d = _pool(
    "avg_pool3d",
    "NDHWC",
    lambda *args: _ops.volumes.pool3d("AVG", *args),
    f"{_MEAN} {_VOLUMES} ``avg_pool2d``.",
)
max_pool = _pool(
    "max_pool",
    None,
    lambda *args: _ops.volumes.pool_by_rank("MAX", *args),
    f"{_LARGEST}, {_BY_RANK} ``max_pool2d``.",
)
max_pool1d = _pool("max_pool1d", "NWC", lambda *args: _ops.pooling.max_pool(*args), _MAXIMUM)
max_pool2d = _pool("max_pool2d", "NHWC", lambda *args: _ops.pooling.max_pool(*args), _MAXIMUM)
max_pool3d = _pool(
    "max_pool3d",
    "NDHWC",
    lambda *args: _ops.volumes.pool3d("MAX", *args),
    f"{_LARGEST} {_VOLUMES} ``max_pool2d``.",
)


def bias_add(
    value: TensorLike, bias: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Return `value` plus the vector `bias` along its last axis, or along the second with
    data_format="NC..."."""
    value, bias = convert_each(value, bias)
    axis = 1 if data_format is not None and data_format.startswith("NC") else -1
    sizes = value._data.shape
    if len(sizes) < 2 or bias._data.shape != (sizes[axis],):
        raise InvalidArgumentError(
            f"bias_add: value has shape {tuple(sizes)}, bias has shape {tuple(bias.shape)}: it "
            f"must be a vector of the size of axis {axis} of value"
        )
    return add(value, reshape(bias, (-1, *[1] * (len(sizes) - 2))) if axis == 1 else bias)


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
        """Return the transpose of `conv` as a map of images, of `output_shape`: all axes, or space.

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


@restates(conv2d)
def conv1d(
    input: TensorLike,
    filters: TensorLike,
    stride: Any,
    padding: Any,
    data_format: str | None = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    return _ops.convolution.conv(input, filters, stride, padding, data_format, dilations)


def depthwise_conv2d(
    input: TensorLike,
    filter: TensorLike,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return `conv` of each channel with its own filters: (height, width, channels, multiplier).

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
    multiples of `block_size` (otherwise InvalidArgumentError).
    """
    return _ops.block_moves.space_to_depth(input, block_size, data_format)


def elu(features: TensorLike, name: str | None = None) -> Tensor:
    """Return `features` where they are positive, and ``exp(features) - 1`` elsewhere."""
    return _ops.activation_functions.elu(features)


def gelu(features: TensorLike, approximate: bool = False, name: str | None = None) -> Tensor:
    """Return ``features`` times the normal distribution function at `features`, or `approximate` it
    by tanh.

    After D. Hendrycks and K. Gimpel, "Gaussian error linear units" (2016).
    """
    return _ops.activation_functions.gelu(features, approximate)


def l2_loss(t: TensorLike, name: str | None = None) -> Tensor:
    """Return half the sum of squares of all elements."""
    return _elementwise.divide(_reductions.reduce_sum(_elementwise.square(t)), 2)


def leaky_relu(features: TensorLike, alpha: Any = 0.2, name: str | None = None) -> Tensor:
    """Return `features` where it is positive, and ``alpha * features`` elsewhere. The slope at 0 is
    `alpha`."""
    return _ops.activation_functions.leaky_relu(features, alpha)


def moments(
    x: TensorLike, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance of elements over `axes`, as a pair; float16 is summed in
    float32. `shift` has no effect."""
    return _ops.normalizations.mean_and_variance(x, axes, keepdims)


relu = unary_of_features(_elementwise.relu, __name__)
softsign = unary_of_features(_elementwise.softsign, __name__)


def relu6(features: TensorLike, name: str | None = None) -> Tensor:
    """Return `features` limited to [0, 6]; its gradient is 0 at both limits."""
    return _ops.activation_functions.relu6(features)


def selu(features: TensorLike, name: str | None = None) -> Tensor:
    """Return 1.0507 times `elu` with an alpha of 1.6733, which keeps mean 0 and variance 1.

    After G. Klambauer et al., "Self-normalizing neural networks" (2017).
    """
    return _ops.activation_functions.selu(features)


def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """Return the sum of a loss; there is only one replica."""
    return _reductions.reduce_sum(regularization_loss)


def silu(features: TensorLike, beta: Any = 1.0) -> Tensor:
    """Return ``features * sigmoid(beta * features)``, also called swish; `beta` has a gradient.

    After P. Ramachandran, B. Zoph and Q. Le, "Searching for activation functions" (2017).
    """
    return _ops.activation_functions.silu(features, beta)


swish = silu


def softmax_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, axis: Axes = -1, name: str | None = None
) -> Tensor:
    """Return ``-sum(labels * log_softmax(logits))`` along `axis`: cross-entropy of distributions.

    `labels` hold the weights of the classes, one_hot vectors for instance, and broadcast with
    `logits` (otherwise InvalidArgumentError); the result has the logits' dtype. Its gradient with
    respect to `logits` is ``softmax(logits) * sum(labels) - labels``, also if the labels do not sum
    to 1. TensorFlow's is then ``softmax(logits) - labels``, which is not the derivative.
    """
    return _ops.loss_functions.softmax_cross_entropy(labels, logits, axis)


__all__ += export_functions(globals(), partial(find_later, globals(), _HOMES))
