"""Keras's ``keras.ops``. Functions of reals convert integers to float32, as in Keras.

Where a docstring says float32, the dtype set by `keras.config.set_floatx` applies.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Never

import numpy as np

from .. import numpy
from .._core.annotations import Axes, DTypeLike, Shape, TensorLike
from .._core.conversion import (
    FLOAT32,
    any_tensor,
    convert,
    convert_each,
    convert_operands,
    is_tensor,
)
from .._core.kinds import is_bool, is_exact, is_unsigned
from .._core.suggestions import REQUIRED, hides_others, reads_own_arguments, refuse_call
from .._core.tensor import Tensor
from .._core.transformed import returns_transformed
from .._ops import activation_functions as _activations
from .._ops import block_moves as _blocks
from .._ops import casts as _casts
from .._ops import comparison as _comparison
from .._ops import complex_parts as _complex_parts
from .._ops import convolution as _convolution
from .._ops import creation as _creation
from .._ops import cumulative as _scans
from .._ops import decompositions as _decompositions
from .._ops import eigenvectors as _eigenvectors
from .._ops import einsum as _einsum
from .._ops import elementwise as _elementwise
from .._ops import factorizations as _factorizations
from .._ops import fourier as _fourier
from .._ops import indexing as _indexing
from .._ops import least_squares as _least_squares
from .._ops import linear_algebra as _linear_algebra
from .._ops import normalizations as _normalizations
from .._ops import padding as _padding
from .._ops import pooling as _pooling
from .._ops import reductions as _reductions
from .._ops import searching
from .._ops import segments as _segments
from .._ops import sequences as _sequences
from .._ops import shape as _shape
from .._ops import sorting as _sorting
from .._ops import special_functions as _special_functions
from .._ops import spectra as _spectra
from .._ops import tapers as _tapers
from .._ops import trigonometry as _trigonometry
from .._ops import updates as _updates
from .._ops import volumes as _volumes
from .._ops.activation_functions import glu
from .._ops.attention import dot_product_attention
from .._ops.block_moves import depth_to_space, fold, space_to_depth, unfold
from .._ops.casts import saturate_cast
from .._ops.complex import imag as _imag
from .._ops.complex import real as _real_part
from .._ops.complex_parts import complex_of
from .._ops.creation import constant, ones_like, zeros_like
from .._ops.decompositions import det, inv, slogdet
from .._ops.eigenvectors import eig
from .._ops.factorizations import eigh
from .._ops.indexing import getitem
from .._ops.loss_functions import (
    binary_crossentropy,
    categorical_crossentropy,
    sparse_categorical_crossentropy,
)
from .._ops.matrices import adjoint
from .._ops.namespaces.adapt import (
    arg_extremum,
    check_count,
    flattened,
    neither,
    space_evenly,
    taken,
    transposed_conv_sizes,
)
from .._ops.namespaces.namespace import export_functions, restates, spelled
from .._ops.norms import matrix_norm, reduce_euclidean_norm, vector_norm
from .._ops.reductions import reduce_all, reduce_max, reduce_mean, reduce_sum
from .._ops.settings import settings
from .._ops.sorting import TopK, in_top_k
from .._ops.validation import as_shape
from .._rules.custom_gradient import custom_gradient
from .._transforms.batching import vectorized_map
from .._transforms.control_flow import cond
from .._transforms.functional import jvp as _jvp
from ..dtypes import int32, uint32
from ..errors import InvalidArgumentError
from ._associative import associative_scan
from ._keras_loops import fori_loop, map, scan, switch, while_loop
from ._keras_records import *  # noqa: F403
from ._keras_records import cos, imag, log10, multiply, not_equal, real, sin, subtract
from ._operands import as_real as _real
from ._operands import as_reals as _reals

__all__ = [
    "associative_scan",
    "binary_crossentropy",
    "categorical_crossentropy",
    "cond",
    "custom_gradient",
    "depth_to_space",
    "dot_product_attention",
    "fold",
    "fori_loop",
    "glu",
    "in_top_k",
    "is_tensor",
    "map",
    "ones_like",
    "saturate_cast",
    "scan",
    "space_to_depth",
    "sparse_categorical_crossentropy",
    "unfold",
    "zeros_like",
]
__all__ += ["det", "eig", "eigh", "inv", "slogdet", "switch", "vectorized_map", "while_loop"]


def convert_to_numpy(x: Any) -> np.ndarray:
    """Return a copy of `x` as a NumPy array."""
    return np.array(convert(x) if isinstance(x, (list, tuple)) and any_tensor(x) else x)


def jvp(fun: Any, primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """Return ``(fun(*primals), tangent)``: see `tinygrad_cg.jvp`."""
    return _jvp(fun, primals, tangents, has_aux)


def _small(epsilon: float | None) -> float:
    return settings.epsilon if epsilon is None else epsilon


def _order(data_format: str | None) -> str:
    """Return the order of an image's axes: what `set_image_data_format` says where it is None."""
    return data_format or settings.image_data_format


@returns_transformed
def _vectorized(pyfunc: Any, excluded: Any, signature: Any) -> Any:
    """Return a function for all elements, which reads Python's floats as float32."""
    mapped = numpy.vectorize(pyfunc, excluded=excluded, signature=signature)

    def vectorized(*args: Any, **kwargs: Any) -> Any:
        operands = [x if i in excluded else convert(x) for i, x in enumerate(args)]
        named = {name: x if name in excluded else convert(x) for name, x in kwargs.items()}
        return mapped(*operands, **named)

    return update_wrapper(vectorized, pyfunc)


def _widen(x: Any) -> Tensor:
    """Return integers of less than 32 bits as such of 32, for their sum."""
    x = convert(x)
    if not is_exact(x.dtype) or x.dtype.itemsize >= 4:
        return x
    return cast(x, uint32 if is_unsigned(x.dtype) else int32)


def _true_coordinates(condition: Any) -> list[Tensor]:
    """Return the coordinates of the true elements, one tensor for each axis."""
    values = searching.values_of(convert(condition))
    return [cast(searching.tensor_of(along), int32) for along in searching.coordinates(values)]


def _complex(x: Any) -> Tensor:
    """Return the complex tensor of a pair of real and imaginary parts."""
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise TypeError("fft: x must be a pair of tensors, the real and the imaginary parts")
    return complex_of(*_reals(*x))


def _position(find: Any, limit: float, x: Any, axis: Any, keepdims: bool) -> Tensor:
    """Return where `find` finds an element that is not NaN; -1 if there is none."""
    x = _real(x)
    missing = not_equal(x, x)
    index = arg_extremum(find, where(missing, constant(limit, x.dtype), x), axis, keepdims)
    return where(reduce_all(missing, axis, keepdims), int32.type(-1), cast(index, int32))


def _parts(x: Tensor) -> tuple[Tensor, Tensor]:
    return real(x), imag(x)


def _part(x: Any, starts: Any, sizes: Any) -> tuple[Any, ...]:
    starts, sizes = as_shape("slice", starts), as_shape("slice", sizes)
    shape = tuple(convert(x).shape)
    ends = [start + size for start, size in zip(starts, sizes, strict=False)]
    bounds = zip(starts, ends, shape, strict=False)
    fits = builtins.all(0 <= start <= end <= whole for start, end, whole in bounds)
    if not fits or not len(starts) == len(sizes) == len(shape):
        raise InvalidArgumentError(f"slice: start {starts} and size {sizes} exceed shape {shape}")
    return tuple(builtins.map(builtins.slice, starts, ends))


def _of_ends(*ends: Any) -> np.dtype:
    """Return the dtype of numbers between two: `floatx` unless an end has a floating one."""
    if not builtins.any(hasattr(end, "dtype") for end in ends):
        return settings.floatx
    return _real(convert_operands(ends)[0]).dtype


def _sized(x: Tensor, size: int, axis: int, filler: Any) -> Tensor:
    """Return `x` cut or filled to a size along an axis; the filler is by default 0."""
    axis %= x.ndim
    have = x.shape[axis]
    before = (builtins.slice(None),) * axis
    if have >= size:
        return getitem(x, (*before, builtins.slice(None, size)))
    shape = [size - have if i == axis else dim for i, dim in enumerate(x.shape)]
    more = broadcast_to(cast(0 if filler is None else filler, x.dtype), shape)
    return concatenate([x, more], axis)


def _side(pattern: str) -> list[list[str]]:
    """Return the axes of one side of a pattern, each the names that it is made of."""
    parts = re.findall(r"\([^()]*\)|[^\s()]+", pattern)
    if "".join(parts).replace(" ", "") != pattern.replace(" ", ""):
        raise InvalidArgumentError(f"rearrange: brackets do not match in {pattern!r}")
    return [part.strip("()").split() if part != "1" else [] for part in parts]


def _of_real(operation: Callable[..., Tensor], read: Any = _real):
    """Return an operation, with its name and docstring, of what `read` makes of its operand."""

    def unary(x: TensorLike) -> Tensor:
        return operation(read(x))

    return spelled(unary, operation.__name__, operation)


def _of_two(operation: Callable[..., Tensor], read: Any = convert_each):
    """Return an operation, with its name and docstring, of two operands that `read` converts."""

    def binary(x1: TensorLike, x2: TensorLike) -> Tensor:
        return operation(*read(x1, x2))

    return spelled(binary, operation.__name__, operation)


def _over_axes(operation: Callable[..., Tensor], read: Any = None, name: str = "", doc: str = ""):
    """Return a reduction of what `read` makes of its operand, with the operation's docstring."""

    @hides_others
    def reduction(
        x: TensorLike, axis: Axes = None, keepdims: bool = False, **others: Never
    ) -> Tensor:
        if others:
            refuse_call(reduction, others)
        return operation(x if read is None else read(x), axis, keepdims=keepdims)

    spelled(reduction, name or operation.__name__, operation)
    reduction.__doc__ = doc or reduction.__doc__
    return reduction


def _quantiles(operation: Callable[..., Tensor], doc: str):
    def quantiles(
        x: TensorLike, q: Any, axis: Axes = None, method: str = "linear", keepdims: bool = False
    ) -> Tensor:
        return operation(_real(x), q, axis, method=method, keepdims=keepdims)

    quantiles.__doc__ = doc
    return spelled(quantiles, operation.__name__)


def _window(operation: Callable[..., Tensor]):
    def window(x: TensorLike) -> Tensor:
        """Return the window of this name with `x` points, float32."""
        return _shape.cast(operation(x), FLOAT32)

    return spelled(window, operation.__name__)


def _of_diagonal(operation: Callable[..., Tensor]):
    """Return an operation, with its name and docstring, of a tensor and a diagonal `k`."""

    def moved(x: TensorLike, k: int = 0) -> Tensor:
        return operation(convert(x), k)

    return spelled(moved, operation.__name__, operation)


def _filled(name: str, fill: Callable[..., Tensor], doc: str):
    @hides_others
    def filled(shape: Shape, dtype: DTypeLike | None = None, **others: Never) -> Tensor:
        if others:
            refuse_call(filled, others)
        return fill(shape, dtype or settings.floatx)

    filled.__doc__ = doc
    return spelled(filled, name)


all = _over_axes(reduce_all)
any = _over_axes(_reductions.reduce_any)
amax = _over_axes(reduce_max, name="amax")
amin = _over_axes(_reductions.reduce_min, name="amin")
logsumexp = _over_axes(_reductions.reduce_logsumexp, _real)
mean = _over_axes(
    reduce_mean,
    _real,
    doc="Return the mean of elements over axes; booleans and integers become float32.",
)
prod = _over_axes(
    _reductions.reduce_prod,
    _widen,
    doc="Return the product of elements over axes; bools and shorter integers give 32-bit "
    "integers.",
)
sum = _over_axes(
    reduce_sum,
    _widen,
    doc="Return the sum of elements over axes; bools and shorter integers give 32-bit integers.",
)
std = _over_axes(_reductions.reduce_std, _real, "std")
var = _over_axes(
    _reductions.reduce_variance,
    _real,
    "var",
    "Return the mean of squared distances from the mean over axes; real for complex `x`. Booleans "
    "and integers become float32.",
)
median = _over_axes(numpy.median, _real)
nanmax = _over_axes(numpy.nanmax, convert)
nanmin = _over_axes(numpy.nanmin, convert)
nanmean = _over_axes(
    numpy.nanmean, _real, doc="Return the mean over axes of the elements that are not NaN."
)
nanmedian = _over_axes(numpy.nanmedian, _real)
nanstd = _over_axes(
    numpy.nanstd,
    _real,
    doc="Return the standard deviation over axes of the elements that are not NaN.",
)
nanvar = _over_axes(
    numpy.nanvar, _real, doc="Return the variance over axes of the elements that are not NaN."
)


@reads_own_arguments
def arange(
    start: TensorLike,
    stop: TensorLike | None = None,
    step: Any = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return numbers from `start` (0 if only one bound is given) to below `stop`, in steps."""
    if dtype is None and float in builtins.map(type, (start, stop, step)):  # Python's floats
        dtype = settings.floatx
    return _creation.arange(start, stop, 1 if step is None else step, dtype)


def arctan2(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Return the angle, from -pi to pi, of the point with ordinate `x1` and abscissa `x2`; float32
    where neither is of a floating dtype."""
    return _trigonometry.arctan2(*_reals(x1, x2))


def argmax(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return positions (int32) of the largest elements along `axis`, by default in the flattened
    tensor; the first if several tie."""
    return _shape.cast(arg_extremum(_reductions.argmax, x, axis, keepdims), int32)


def argmin(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return positions (int32) of the smallest elements along `axis`, by default in the flattened
    tensor; the first if several tie."""
    return _shape.cast(arg_extremum(_reductions.argmin, x, axis, keepdims), int32)


def nanargmax(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return positions (int32) of the largest elements along `axis` that are not NaN; by default in
    the flattened tensor."""
    return _position(_reductions.argmax, -np.inf, x, axis, keepdims)


def nanargmin(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return positions (int32) of the smallest elements along `axis` that are not NaN; by default
    in the flattened tensor."""
    return _position(_reductions.argmin, np.inf, x, axis, keepdims)


def argsort(x: TensorLike, axis: Axes = -1) -> Tensor:
    """Return the indices (int32) that sort `x` along `axis`, or the flattened tensor if it is None;
    equal elements keep their order."""
    return _shape.cast(_sorting.argsort(*flattened(x, axis)), int32)


def array(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return `x` as a Tensor, cast to `dtype` if necessary."""
    return convert(x) if dtype is None else _shape.cast(x, dtype)


convert_to_tensor = array


def array_split(x: TensorLike, indices_or_sections: Any, axis: Axes = 0) -> list[Tensor]:
    """Return the parts of `x` along `axis` between indices, or a number of parts; the first parts
    may be longer by one."""
    return _shape.split_at(x, indices_or_sections, axis, True)


def average_pool(
    inputs: TensorLike,
    pool_size: Any,
    strides: Any = None,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """Return the means of windows of sequences, images or volumes, by the rank of `inputs`."""
    return _volumes.pool_by_rank("AVG", inputs, pool_size, strides, padding, _order(data_format))


def max_pool(
    inputs: TensorLike,
    pool_size: Any,
    strides: Any = None,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """Return the largest elements of windows of sequences, images or volumes, by the rank of
    `inputs`."""
    return _volumes.pool_by_rank("MAX", inputs, pool_size, strides, padding, _order(data_format))


def batch_normalization(
    x: TensorLike,
    mean: Any,
    variance: Any,
    axis: int,
    offset: Any = None,
    scale: Any = None,
    epsilon: Any = 0.001,
) -> Tensor:
    """Return ``(x - mean) / sqrt(variance + epsilon) * scale + offset`` with vectors along `axis`;
    None leaves a part out."""
    x = convert(x)
    sizes = [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]
    vectors = [
        None if vector is None else reshape(convert_each(vector, x)[0], sizes)
        for vector in (mean, variance, offset, scale)
    ]
    return _normalizations.batch_normalization(x, *vectors, epsilon)


bartlett = _window(_tapers.bartlett)
blackman = _window(_tapers.blackman)
hamming = _window(_tapers.hamming)
hanning = _window(_tapers.hanning)


@restates(_shape.broadcast_to)
def broadcast_to(x: TensorLike, shape: Shape) -> Tensor:
    return _shape.broadcast_to(x, shape)


@restates(_shape.cast)
def cast(x: TensorLike, dtype: DTypeLike) -> Tensor:
    return _shape.cast(x, dtype)


def celu(x: TensorLike, alpha: Any = 1.0) -> Tensor:
    """Return `x` where it is positive, and ``alpha * (exp(x / alpha) - 1)`` elsewhere.

    After J. Barron, "Continuously differentiable exponential linear units" (2017).
    """
    return _activations.celu(_real(x), alpha)


def elu(x: TensorLike, alpha: Any = 1.0) -> Tensor:
    """Return `x` where it is positive, and ``alpha * (exp(x) - 1)`` elsewhere.

    After D.-A. Clevert, T. Unterthiner and S. Hochreiter, "Fast and accurate deep network learning
    by exponential linear units" (2015).
    """
    return _activations.elu(_real(x), alpha)


ceil = _of_real(_elementwise.ceil)
floor = _of_real(_elementwise.floor)


def cholesky(x: TensorLike, upper: bool = False) -> Tensor:
    """Return the lower triangular L of each positive definite matrix ``x = L adjoint(L)``, or its
    adjoint if `upper`."""
    return _decompositions.cholesky_upper(x) if upper else _decompositions.cholesky(x)


def cholesky_inverse(x: TensorLike, upper: bool = False) -> Tensor:
    """Return the inverse of each matrix whose Cholesky factor is `x`, the upper one if
    `upper`."""
    x = convert(x)
    return _decompositions.cholesky_solve(x, np.eye(x.shape[-1], dtype=x.dtype), upper)


@restates(_elementwise.clip)
def clip(x: TensorLike, x_min: TensorLike, x_max: TensorLike) -> Tensor:
    return _elementwise.clip(x, x_min, x_max)


@restates(_shape.concatenate)
def concatenate(xs: Any, axis: Axes = 0) -> Tensor:
    return _shape.concatenate(xs, axis)


def conv(
    inputs: TensorLike,
    kernel: TensorLike,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """Return the convolution (without flipping) of `inputs` with `kernel`, along one to three axes.

    Modelled on ``tf.nn.convolution``: `inputs` is (batch, spatial axes, channels), or channels
    first if `data_format` says so; `kernel` are (spatial axes, channels of a group, outputs).
    Channels are cut into as many groups as fit. `padding` is "VALID", "SAME", or pairs of before
    and after. Raises InvalidArgumentError for shapes that do not fit, TypeError for bool.
    """
    layout = _order(data_format)
    return _volumes.convolution(inputs, kernel, strides, padding, layout, dilation_rate)


def depthwise_conv(
    inputs: TensorLike,
    kernel: TensorLike,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """Return `conv` of each channel with its own filters: (height, width, channels, multiplier).

    Modelled on ``tf.nn.depthwise_conv2d``: the result has channels * multiplier channels.
    """
    layout = _order(data_format)
    return _convolution.depthwise_conv(inputs, kernel, strides, padding, layout, dilation_rate)


def conv_transpose(
    inputs: TensorLike,
    kernel: TensorLike,
    strides: Any = 1,
    padding: str = "valid",
    output_padding: Any = None,
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """Return the transposed convolution of `inputs` with a `kernel` of shape (height, width,
    outputs, channels), which enlarges images by `strides`."""
    layout = _order(data_format)
    sizes = transposed_conv_sizes(
        inputs, kernel, strides, padding, output_padding, layout, dilation_rate
    )
    return _volumes.conv_transpose(inputs, kernel, sizes, strides, padding, layout, dilation_rate)


def ctc_loss(
    target: Any, output: Any, target_length: Any, output_length: Any, mask_index: Any = 0
) -> Tensor:
    """Return minus the logarithm of the probability of each sequence of labels, (batch,): `target`
    (batch, longest) has `target_length` labels in each row, `output` (batch, frames, classes) are
    logits of `output_length` frames, `mask_index` is the class of blanks."""
    return _sequences.ctc_loss(
        target, _real(output), target_length, output_length, False, blank_index=mask_index
    )


def cumprod(x: TensorLike, axis: Axes = None, dtype: DTypeLike | None = None) -> Tensor:
    """Return the products of all elements up to each along `axis`, by default of the flattened
    tensor."""
    return _scans.cumprod(_shape.cast(x, dtype) if dtype else _widen(x), axis)


def cumsum(x: TensorLike, axis: Axes = None, dtype: DTypeLike | None = None) -> Tensor:
    """Return the sums of all elements up to each along `axis`, by default of the flattened
    tensor."""
    return _scans.cumsum(_shape.cast(x, dtype) if dtype else _widen(x), axis)


def divide_no_nan(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Return x1 / x2, and 0 where x2 is 0; float32 where neither is of a floating dtype."""
    return _elementwise.divide_no_nan(*_reals(x1, x2))


def divide(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Return x1 / x2; float32 where neither is of a floating dtype."""
    return _elementwise.divide(*_reals(x1, x2))


true_divide = divide


def dtype(x: TensorLike) -> str:
    """Return the name of the dtype of `x`."""
    return convert(x).dtype.name


def einsum(subscripts: Any, *operands: Any) -> Tensor:
    """Return the sum over products of elements with equal indices, as ``np.einsum``.

    `subscripts` has a letter for each axis of each operand and, after "->", of the result:
    "ij,jk->ik" is the matrix product. Without an arrow the result has the letters that occur once,
    in alphabetical order. A letter that an operand repeats takes its diagonal; "..." stands for
    axes that broadcast. BLAS multiplies two operands at a time, in the order with the fewest
    operations; transposed operands are not copied. The dtypes promote. Raises InvalidArgumentError
    for subscripts and shapes that do not fit, TypeError for bool.
    """
    return _einsum.einsum(subscripts, *operands)


@hides_others
def expand_dims(x: TensorLike, axis: Axes = REQUIRED, **others: Never) -> Tensor:
    """Return `x` with a new axis of size 1 at position `axis` of the result, or at several."""
    if others or axis is REQUIRED:
        refuse_call(expand_dims, others)
    return numpy.expand_dims(convert(x), axis)


@reads_own_arguments
def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """Return `N` by `M` zeros (square by default) with ones on diagonal `k`, float32 by default."""
    return cast(constant(np.eye(N, M, k)), dtype or settings.floatx)


def fft(x: TensorLike) -> tuple[Tensor, Tensor]:
    """Return the discrete Fourier transform over the last axis of `x`, a pair of real and imaginary
    parts, as a pair."""
    return _parts(_fourier.fft(_complex(x)))


def fft2(x: TensorLike) -> tuple[Tensor, Tensor]:
    """Return the discrete Fourier transform over the last two axes of `x`, a pair of real and
    imaginary parts, as a pair."""
    return _parts(_fourier.fftn(_complex(x), None, (-2, -1)))


@hides_others
def full(
    shape: Shape, fill_value: TensorLike, dtype: DTypeLike | None = None, **others: Never
) -> Tensor:
    """Return a tensor of `shape` filled with `fill_value`, float32 by default."""
    if others:
        refuse_call(full, others)
    return _creation.full(shape, fill_value, dtype or settings.floatx)


def full_like(x: TensorLike, fill_value: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return `fill_value`, which broadcasts, with the shape and, unless `dtype` is given, the dtype
    of `x`. Its gradient is the gradient of a broadcast value."""
    if convert(fill_value).ndim == 0:
        return _creation.full_like(x, _shape.cast(fill_value, dtype or convert(x).dtype), dtype)
    return numpy.full_like(convert(x), convert_each(fill_value, convert(x))[0], dtype)


def gelu(x: TensorLike, approximate: bool = True) -> Tensor:
    """Return ``x`` times the normal distribution function at `x`, or `approximate` it by tanh.

    After D. Hendrycks and K. Gimpel, "Gaussian error linear units" (2016).
    """
    return _activations.gelu(_real(x), approximate)


def hard_shrink(x: TensorLike, threshold: Any = 0.5) -> Tensor:
    """Return `x` where its absolute value is above `threshold`, and 0 elsewhere."""
    return _activations.hard_shrink(_real(x), threshold)


def soft_shrink(x: TensorLike, threshold: Any = 0.5) -> Tensor:
    """Return `x` moved by `threshold` towards 0, and 0 where `abs(x)` is at most `threshold`."""
    return _activations.soft_shrink(_real(x), threshold)


hard_sigmoid = _of_real(_activations.hard_sigmoid)
hard_tanh = _of_real(_activations.hard_tanh)
relu6 = _of_real(_activations.relu6)
selu = _of_real(_activations.selu)
sparse_plus = _of_real(_activations.sparse_plus)
sparse_sigmoid = _of_real(_activations.sparse_sigmoid)
tanh_shrink = _of_real(_activations.tanh_shrink)
hard_silu = _of_real(_activations.hard_silu)
hard_swish = hard_silu


i0 = _of_real(numpy.i0)


def identity(n: int, dtype: DTypeLike | None = None) -> Tensor:
    """Return the identity matrix of `n` by `n`, float32 by default."""
    return cast(constant(np.eye(n)), dtype or settings.floatx)


def ifft2(x: TensorLike) -> tuple[Tensor, Tensor]:
    """Return the inverse of ``fft2``, as a pair of real and imaginary parts."""
    return _parts(_fourier.ifftn(_complex(x), None, (-2, -1)))


def istft(
    x: TensorLike,
    sequence_length: Any,
    sequence_stride: Any,
    fft_length: Any,
    length: Any = None,
    window: str = "hann",
    center: bool = True,
) -> Tensor:
    """Return the signals of `length` elements whose ``stft`` is the pair `x` of real and imaginary
    parts, for the same `window`."""
    return _spectra.centred_inverse_stft(
        _complex(x), sequence_length, sequence_stride, fft_length, length, window, center
    )


def irfft(x: TensorLike, fft_length: Any = None) -> Tensor:
    """Return the inverse of `rfft`, real, of `fft_length` elements; `x` is a pair of real and
    imaginary parts."""
    return _fourier.irfft(_complex(x), fft_length)


def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: Axes = 0,
) -> Any:
    """Return `num` evenly spaced numbers from `start` to `stop` (included if `endpoint`), along a
    new `axis`; an integer `dtype` rounds down. With `retstep`, return the numbers and the step.
    """
    dtype = dtype or _of_ends(start, stop)
    spaced = space_evenly(start, stop, num, endpoint, dtype)
    spaced = spaced if axis == 0 else numpy.moveaxis(spaced, 0, axis)
    if not retstep:
        return spaced
    intervals = num - 1 if endpoint else num
    return spaced, cast(subtract(stop, start), dtype) / (intervals or np.nan)


log_sigmoid = _of_real(_elementwise.log_sigmoid)


def kaiser(x: TensorLike, beta: Any) -> Tensor:
    """Return Kaiser's window of `x` points with the shape parameter `beta`, float32."""
    return _shape.cast(_tapers.kaiser(x, beta), FLOAT32)


def layer_normalization(
    x: TensorLike, gamma: Any = None, beta: Any = None, axis: Axes = -1, epsilon: Any = None
) -> Tensor:
    """Return ``(x - mean) / sqrt(variance + epsilon) * gamma + beta`` over `axis`; `gamma` and
    `beta` have the sizes of the axes. `epsilon` is 1e-7 by default."""
    return _normalizations.layer_normalization(_real(x), gamma, beta, axis, _small(epsilon))


def leaky_relu(x: TensorLike, negative_slope: Any = 0.2) -> Tensor:
    """Return `x` where it is positive, and ``negative_slope * x`` elsewhere, at 0 too."""
    return _activations.leaky_relu(_real(x), negative_slope)


def _along(operation: Callable[..., Tensor]):
    """Return an operation, with its name and docstring, of real numbers along one axis."""

    def along(x: TensorLike, axis: Axes = -1) -> Tensor:
        return operation(_real(x), axis)

    return spelled(along, operation.__name__, operation)


log_softmax = _along(_reductions.log_softmax)
softmax = _along(_reductions.softmax)
sparsemax = _along(_activations.sparsemax)


def logdet(x: TensorLike) -> Tensor:
    """Return the logarithm of the determinant of each positive definite matrix of `x`."""
    return _decompositions.slogdet(x)[1]


def lstsq(a: TensorLike, b: TensorLike, rcond: Any = None) -> Tensor:
    """Return the shortest x that minimizes ``norm(a x - b)``. Singular values of `a` below `rcond`
    times the largest count as 0."""
    return _least_squares.lstsq(a, b, rcond)


def lu_factor(x: TensorLike) -> tuple[Tensor, Tensor]:
    """Return L and U in one matrix, L without its diagonal of ones, and the pivots: the row, from
    0, that each row was exchanged with in turn, as in LAPACK."""
    return _eigenvectors.lu_pivots(x)


@restates(_linear_algebra.matmul)
def matmul(x1: TensorLike, x2: TensorLike) -> Tensor:
    return _linear_algebra.matmul(x1, x2)


@hides_others
def max(
    x: TensorLike, axis: Axes = None, keepdims: bool = False, initial: Any = None, **others: Never
) -> Tensor:
    """Return the maximum over axes, and of `initial` if given."""
    if others:
        refuse_call(max, others)
    if initial is None:
        return reduce_max(x, axis, keepdims)
    return numpy.max(convert(x), axis, keepdims=keepdims, initial=initial)


@hides_others
def min(
    x: TensorLike, axis: Axes = None, keepdims: bool = False, initial: Any = None, **others: Never
) -> Tensor:
    """Return the minimum over axes, and of `initial` if given."""
    if others:
        refuse_call(min, others)
    if initial is None:
        return _reductions.reduce_min(x, axis, keepdims)
    return numpy.min(convert(x), axis, keepdims=keepdims, initial=initial)


def moments(
    x: TensorLike, axes: Any, keepdims: bool = False, synchronized: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance of elements over `axes`, as a pair; float16 is summed in
    float32. There is one device: `synchronized` has no effect."""
    return _normalizations.mean_and_variance(_real(x), axes, keepdims)


def ndim(x: TensorLike) -> int:
    """Return the number of dimensions of `x`."""
    return convert(x).ndim


def norm(x: TensorLike, ord: Any = None, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return the norm of vectors along one axis or of all elements, or of matrices along two axes
    or for 2-D `x` with an `ord`; see ``numpy.linalg.norm`` for the orders."""
    x = _real(x)
    if axis is None and ord is not None and x.ndim == 2:
        axis = (0, 1)
    if isinstance(axis, (tuple, list)) and len(axis) == 2:
        return matrix_norm(x, ord, axis, keepdims)
    return vector_norm(x, ord, axis, keepdims)


def normalize(x: TensorLike, axis: Axes = -1, order: Any = 2, epsilon: Any = None) -> Tensor:
    """Return `x` divided by its norm of `order` (at least 1) over `axis`, but at least by `epsilon`
    (1e-7)."""
    return _normalizations.normalize(_real(x), axis, order, _small(epsilon))


def one_hot(
    x: TensorLike, num_classes: int, axis: Axes = -1, dtype: DTypeLike | None = None
) -> Tensor:
    """Return ones at integers `x` along a new `axis` of size `num_classes`, and zeros elsewhere. An
    integer outside 0 .. num_classes - 1 gives zeros only. float32 by default."""
    return _sorting.one_hot(x, num_classes, axis, dtype or settings.floatx)


def pad(
    x: TensorLike, pad_width: Any, mode: str = "constant", constant_values: Any = None
) -> Tensor:
    """Return `x` with more elements before and after along each axis: `pad_width` is a pair for
    each, one pair for all, or one number. `mode` is "constant", "reflect", "symmetric", "edge" or
    "wrap"."""
    if constant_values is not None and mode != "constant":
        raise ValueError(f"pad: constant_values are for mode='constant', not for {mode!r}")
    return _padding.pad(x, pad_width, mode, 0 if constant_values is None else constant_values)


def qr(x: TensorLike, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Return Q, with orthonormal columns, and the upper triangular R of matrices ``x = Q R``; Q is
    square if `mode` is "complete"."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode must be 'reduced' or 'complete', got {mode!r}")
    return _factorizations.qr(x, mode == "complete")


def ravel(x: TensorLike) -> Tensor:
    """Return the elements of `x` in row-major order, in one dimension."""
    return _shape.reshape(x, (-1,))


def reciprocal(x: TensorLike) -> Tensor:
    """Return 1 / x; booleans and integers give float32."""
    return _elementwise.divide(1, _real(x))


@restates(_shape.reshape)
def reshape(x: TensorLike, newshape: Shape) -> Tensor:
    return _shape.reshape(x, newshape)


def rms_normalization(
    x: TensorLike, scale: Any = None, axis: Axes = -1, epsilon: Any = None
) -> Tensor:
    """Return ``x / sqrt(mean(x**2) + epsilon) * scale``, with the mean over `axis` and `epsilon`
    1e-7."""
    return _normalizations.rms_normalization(_real(x), scale, axis, _small(epsilon))


def rfft(x: TensorLike, fft_length: Any = None) -> tuple[Tensor, Tensor]:
    """Return the first half of the transform of a real `x` over its last axis, cut or padded to
    `fft_length`, as a pair of real and imaginary parts."""
    return _parts(_fourier.rfft(_real(x), fft_length))


def round(x: TensorLike, decimals: int = 0) -> Tensor:
    """Return `x` rounded to `decimals` decimals, half to even. It has no gradient."""
    return _elementwise.round_decimals(x, decimals)


def scatter(indices: TensorLike, values: Any, shape: Shape) -> Tensor:
    """Return zeros of `shape` with `values` added at `indices`, whose last axis has coordinates.

    The shape of `values` is the shape of `indices` without its last axis, then the shape of a slice
    (otherwise InvalidArgumentError). Indices that point outside are an InvalidArgumentError.
    """
    return _updates.scatter_nd(indices, values, shape)


def scatter_update(
    inputs: TensorLike, indices: TensorLike, updates: Any, reduction: Any = None
) -> Tensor:
    """Return `inputs` with `updates` at `indices`, whose last axis has coordinates. A `reduction`
    of "add", "max", "min" or "mul" combines both."""
    operations = {None: "update", "add": "add", "max": "max", "min": "min", "mul": "mul"}
    if reduction not in operations:
        raise ValueError(
            f"scatter_update: reduction must be one of {[*operations]}, got {reduction!r}"
        )
    return _updates.tensor_scatter(operations[reduction], inputs, indices, updates)


def _segments_of(kind: str):
    def reduce(
        data: Any, segment_ids: Any, num_segments: Any = None, sorted: bool = False
    ) -> Tensor:
        """Return the sum, product or extreme of rows of `data` with equal `segment_ids`, which have
        the first axes of `data`; by default the largest id determines the number of segments.
        `sorted` has no effect."""
        return _segments.unsorted_segments(kind, data, segment_ids, num_segments)

    return spelled(reduce, f"segment_{kind}")


segment_sum = _segments_of("sum")
segment_prod = _segments_of("prod")
segment_max = _segments_of("max")
segment_min = _segments_of("min")


def shape(x: TensorLike) -> tuple[int, ...]:
    """Return the shape of `x`, as a tuple of integers."""
    return tuple(convert(x).shape)


def silu(x: TensorLike) -> Tensor:
    """Return ``x * sigmoid(x)``, also called swish."""
    return _activations.silu(_real(x))


swish = silu


def size(x: TensorLike) -> Tensor:
    """Return the number of elements of `x`, as a scalar tensor."""
    return constant(convert(x).size)


def slice(inputs: TensorLike, start_indices: Any, shape: Shape) -> Tensor:
    """Return the part of `inputs` of some `shape` that starts at `start_indices`."""
    return getitem(inputs, _part(inputs, start_indices, shape))


def slice_update(inputs: TensorLike, start_indices: Any, updates: Any) -> Tensor:
    """Return `inputs` with the part that starts at `start_indices` replaced by `updates`."""
    return _updates.At(inputs)[_part(inputs, start_indices, convert(updates).shape)].set(updates)


@hides_others
def sort(x: TensorLike, axis: Axes = -1, **others: Never) -> Tensor:
    """Return `x` sorted along `axis`, or flattened first if it is None; NaN counts as the
    largest."""
    if others:
        refuse_call(sort, others)
    return _sorting.sort(*flattened(x, axis))


def split(x: TensorLike, indices_or_sections: Any, axis: Axes = 0) -> list[Tensor]:
    """Return the parts of `x` along `axis` between indices, or a number of equal parts."""
    return _shape.split_at(x, indices_or_sections, axis)


def solve(a: TensorLike, b: TensorLike) -> Tensor:
    """Return the solution z of ``matmul(a, z) = b`` for square matrices `a`; of the shape of `b`.

    `a` (..., n, n) and `b` (..., n, k) broadcast over their leading axes; a 1-D `b` is one column.
    Raises errors.MatrixError for a singular `a`, InvalidArgumentError for wrong shapes.
    """
    return _decompositions.solve(a, b)


def solve_triangular(a: TensorLike, b: TensorLike, lower: bool = False) -> Tensor:
    """Return the solution z of ``matmul(a, z) = b``, where only one triangle of `a` is read.

    `a` (..., n, n) and `b` (..., n, k) broadcast over their leading axes; a 1-D `b` is one column.
    Elements of the other triangle have the gradient 0. Raises errors.MatrixError for a zero on the
    diagonal, InvalidArgumentError for wrong shapes.
    """
    return _decompositions.triangular_solve(a, b, lower)


def square(x: TensorLike) -> Tensor:
    """Return x * x; booleans are int32 first."""
    x = convert(x)
    return _elementwise.square(cast(x, int32) if is_bool(x.dtype) else x)


def squareplus(x: TensorLike, b: TensorLike = 4) -> Tensor:
    """Return ``(x + sqrt(x**2 + b)) / 2``, without cancellation below 0.

    After J. Barron, "Squareplus" (2021).
    """
    return _activations.squareplus(_real(x), b)


@hides_others
@restates(_shape.squeeze)
def squeeze(x: TensorLike, axis: Axes = None, **others: Never) -> Tensor:
    if others:
        refuse_call(squeeze, others)
    return _shape.squeeze(x, axis)


@restates(_shape.stack)
def stack(x: TensorLike, axis: Axes = 0) -> Tensor:
    return _shape.stack(x, axis)


def stft(
    x: TensorLike,
    sequence_length: Any,
    sequence_stride: Any,
    fft_length: Any,
    window: str = "hann",
    center: bool = True,
) -> tuple[Tensor, Tensor]:
    """Return the spectra over time of `x`, as a pair of real and imaginary parts. Frames of
    `fft_length` elements start every `sequence_stride`, with a centred `window` ("hann", "hamming",
    a tensor or None for ones) of `sequence_length` elements. If `center`, `x` is mirrored at its
    ends, so that the frames are centred at multiples of the stride."""
    spectra = _spectra.centred_stft(
        _real(x), sequence_length, sequence_stride, fft_length, window, center
    )
    return _parts(spectra)


def stop_gradient(variable: TensorLike) -> Tensor:
    """Return the same value as a new tensor that does not depend on `variable`."""
    return _shape.stop_gradient(variable)


def svd(x: TensorLike, full_matrices: bool = True, compute_uv: bool = True) -> Tensor | Any:
    """Return U, the singular values s, descending, and the adjoint of V of matrices ``x = U diag(s)
    adjoint(V)``; only s unless `compute_uv`. See `eigh` for derivatives."""
    if not compute_uv:
        return _factorizations.svdvals(x)
    left, values, right = _factorizations.svd(x, full_matrices)
    return left, values, adjoint(right)


def take(x: TensorLike, indices: TensorLike, axis: Axes = None) -> Tensor:
    """Return slices of `x` along `axis`, by default of the flattened tensor, at integer
    `indices`."""
    return taken(_indexing.gather, x, indices, axis)


def take_along_axis(x: TensorLike, indices: TensorLike, axis: Axes = None) -> Tensor:
    """Return the elements of `x` at integer `indices` along `axis`, line by line; by default of the
    flattened tensor."""
    return taken(_sorting.take_along_axis, x, indices, axis)


@restates(_linear_algebra.tensordot)
def tensordot(x1: TensorLike, x2: TensorLike, axes: Any = 2) -> Tensor:
    return _linear_algebra.tensordot(x1, x2, axes)


def threshold(x: TensorLike, threshold: Any, default_value: Any) -> Tensor:
    """Return `x` where it is above `threshold`, and `default_value` elsewhere."""
    return _activations.keep_above(_real(x), threshold, default_value)


def top_k(x: TensorLike, k: int, sorted: bool = True) -> TopK:
    """Return the `k` largest elements along the last axis, largest first, and their indices
    (int32)."""
    return _sorting.top_k(x, k)


@restates(_shape.transpose)
def transpose(x: TensorLike, axes: Any = None) -> Tensor:
    return _shape.transpose(x, axes)


def unstack(x: TensorLike, num: int | None = None, axis: Axes = 0) -> list[Tensor]:
    """Return the slices of `x` along `axis`, as a list, which must have `num` parts if given."""
    return check_count(_shape.unstack(x, axis), num)


def where(
    condition: TensorLike, x1: TensorLike | None = None, x2: TensorLike | None = None
) -> Tensor | Any:
    """Return `x1` where `condition` holds and `x2` elsewhere; without both, the coordinates of true
    elements, one tensor for each axis."""
    if neither(x1, x2):
        return _true_coordinates(condition)
    return _elementwise.where(condition, x1, x2)


zeros = _filled("zeros", _creation.zeros, "Return a tensor of zeros, float32 by default.")
ones = _filled("ones", _creation.ones, "Return a tensor of ones, float32 by default.")
empty = _filled(
    "empty",
    _creation.zeros,
    "Return a tensor of `shape` (float32 by default) with any values: here they are zeros.",
)


def adaptive_average_pool(
    inputs: TensorLike, output_size: Any, data_format: str | None = None
) -> Tensor:
    """Return images of `output_size`; each element is the mean of a region of `inputs`."""
    return _pooling.adaptive_pool(reduce_mean, _real(inputs), output_size, _order(data_format))


def adaptive_max_pool(
    inputs: TensorLike, output_size: Any, data_format: str | None = None
) -> Tensor:
    """Return images of `output_size`; each element is the largest of a region of `inputs`."""
    return _pooling.adaptive_pool(reduce_max, inputs, output_size, _order(data_format))


def cdist(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the distances of each vector of `x` from each of `y`, both (..., rows, size)."""
    x, y = _reals(x, y)
    return reduce_euclidean_norm(subtract(expand_dims(x, -2), expand_dims(y, -3)), -1)


def empty_like(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return a tensor of the shape and dtype of `x` with any values: here they are zeros."""
    return _creation.zeros_like(x, dtype)


def extract_sequences(x: TensorLike, sequence_length: Any, sequence_stride: Any) -> Tensor:
    """Return the parts of `sequence_length` elements of the last axis that begin at every
    `sequence_stride`."""
    return _blocks.frames(x, sequence_length, sequence_stride)


def get_item(x: TensorLike, key: Any) -> Tensor:
    """Return ``x[key]``."""
    return getitem(x, key)


def multi_hot(
    inputs: TensorLike,
    num_classes: int | None = None,
    axis: Axes = -1,
    dtype: DTypeLike | None = None,
    sparse: bool = False,
) -> Tensor:
    """Return ones along `axis`, of size `num_classes`, at the classes in rows of integers `inputs`,
    and zeros elsewhere; float32 by default."""
    if sparse:
        raise ValueError("multi_hot: sparse tensors are not supported: leave out sparse=True")
    x = convert(inputs)
    if num_classes is None:
        raise ValueError("multi_hot: num_classes must be given")
    return reduce_max(one_hot(x, num_classes, axis, dtype), 1 if x.ndim > 1 else 0)


def polar(abs_: Any, angle: Any) -> Tensor:
    """Return complex numbers from their absolute values and angles."""
    size, angle = _reals(abs_, angle)
    return complex_of(multiply(size, cos(angle)), multiply(size, sin(angle)))


def psnr(x1: TensorLike, x2: TensorLike, max_val: Any) -> Tensor:
    """Return ``20 log10(max_val) - 10 log10(mean((x1 - x2)**2))``, in decibels."""
    x1, x2 = _reals(x1, x2)
    if x1.shape != x2.shape:
        raise InvalidArgumentError(
            f"psnr: x1 and x2 must have the same shape, got {tuple(x1.shape)} and {tuple(x2.shape)}"
        )
    error = reduce_mean(square(subtract(x1, x2)))
    peak = log10(cast(max_val, x1.dtype))
    return subtract(multiply(peak, 20.0), multiply(log10(error), 10.0))


def rearrange(tensor: TensorLike, pattern: Any, **axes_lengths: Any) -> Tensor:
    """Return `tensor` with axes named, split, joined and moved as `pattern` says, for example "b (h
    w) c -> b h w c" with ``h=2``. Raises InvalidArgumentError for a pattern that does not fit."""
    x = convert(tensor)
    if pattern.count("->") != 1:
        raise InvalidArgumentError(f"rearrange: pattern must have one '->', got {pattern!r}")
    left, right = (_side(side) for side in pattern.split("->"))
    named = builtins.sum(part != ["..."] for part in left)
    rest = [[f"...{i}"] for i in builtins.range(x.ndim - named)]
    left, right = (
        [group for part in side for group in (rest if part == ["..."] else [part])]
        for side in (left, right)
    )
    before, after = ([name for part in side for name in part] for side in (left, right))
    if (
        len(left) != x.ndim
        or len({*before}) != len(before)
        or builtins.sorted(before) != builtins.sorted(after)
    ):
        raise InvalidArgumentError(
            f"rearrange: {pattern!r} must name each axis of shape {tuple(x.shape)} once on each "
            "side"
        )
    sizes = dict(axes_lengths)
    for whole, part in zip(x.shape, left, strict=True):
        unknown = [name for name in part if name not in sizes]
        product = builtins.int(np.prod([sizes[name] for name in part if name in sizes], dtype=int))
        if len(unknown) == 1 and product and whole % product == 0:
            sizes[unknown[0]] = whole // product
        elif unknown or product != whole:
            raise InvalidArgumentError(
                f"rearrange: cannot split an axis of size {whole} into ({' '.join(part)}) with "
                f"{axes_lengths}"
            )
    x = reshape(x, [sizes[name] for name in before])
    x = transpose(x, [before.index(name) for name in after])
    joined = [np.prod([sizes[name] for name in part], dtype=int) for part in right]
    return reshape(x, [builtins.int(size) for size in joined])


def separable_conv(
    inputs: TensorLike,
    depthwise_kernel: Any,
    pointwise_kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """Return `depthwise_conv` followed by a convolution with a `pointwise_kernel` of size 1."""
    channels = depthwise_conv(
        inputs, depthwise_kernel, strides, padding, data_format, dilation_rate
    )
    return _convolution.conv(channels, pointwise_kernel, 1, "valid", _order(data_format))


def view(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return the bits of `x` read as another `dtype`; the last axis grows or shrinks with the size
    of elements. It has no gradient."""
    return _casts.bitcast(x, dtype)


def view_as_complex(x: TensorLike) -> Tensor:
    """Return complex numbers from pairs of real and imaginary parts along the last axis."""
    return _complex_parts.complex_of_pairs(_real(x))


def view_as_real(x: TensorLike) -> Tensor:
    """Return the real and the imaginary parts of `x` along a new last axis."""
    return _shape.stack([_real_part(x), _imag(x)], -1)


def allclose(
    x1: TensorLike, x2: TensorLike, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Return whether no element differs by more than ``atol + rtol * abs(x2)``, as a tensor."""
    return reduce_all(isclose(x1, x2, rtol, atol, equal_nan))


def angle(x: TensorLike) -> Tensor:
    """Return the angle of complex numbers in the plane, in radians."""
    return numpy.angle(_real(x))


def argpartition(x: TensorLike, kth: Any, axis: Axes = -1) -> Tensor:
    """Return the indices (int32) that sort `x` along `axis`, or flattened if it is None: a sorted
    array is also partitioned."""
    return _shape.cast(_sorting.argsort(*flattened(x, axis)), int32)


def bincount(
    x: TensorLike, weights: Any = None, minlength: Any = 0, sparse: bool = False
) -> Tensor:
    """Return how often each of 0, 1, 2, ... occurs in the integers `x`, along the last axis, as
    int32; or the sums of their `weights`."""
    if sparse:
        raise ValueError("bincount: sparse tensors are not supported: leave out sparse=True")
    x = convert(x)
    weights = None if weights is None else convert(weights)
    if x.ndim == 1:
        counts = numpy.bincount(x, weights, minlength)
        return cast(counts, int32 if weights is None else weights.dtype)
    size = builtins.max(int(x._values().max(initial=-1)) + 1, minlength)
    spread = one_hot(x, size, -1, int32 if weights is None else weights.dtype)
    if weights is not None:
        spread = multiply(spread, expand_dims(weights, -1))
    return reduce_sum(spread, -2)


def deg2rad(x: TensorLike) -> Tensor:
    """Convert angles from degrees to radians."""
    return _elementwise.multiply(_real(x), np.pi / 180)


def digitize(x: TensorLike, bins: Any) -> Tensor:
    """Return how many of the ascending `bins` are at most `x`, as int32."""
    x, edges = convert_each(x, bins)
    if edges.ndim != 1:
        raise InvalidArgumentError(f"digitize: bins must be 1-D, got shape {tuple(edges.shape)}")
    return cast(numpy.searchsorted(edges, x, "right"), int32)


erfc = _of_real(_special_functions.erfc)


def fabs(x: TensorLike) -> Tensor:
    """Return the absolute values of real numbers, in floating point."""
    return _elementwise.absolute(_real(x))


fmax = _of_two(numpy.fmax)
fmin = _of_two(numpy.fmin)


def fmod(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Return the remainder of ``x1 / x2``, with the sign of `x1`; the operands broadcast."""
    return numpy.fmod(*convert_operands((x1, x2)))


def geomspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: Axes = 0,
) -> Tensor:
    """Return `num` numbers from `start` to `stop`, each the same multiple of the previous
    number."""
    spaced = numpy.geomspace(start, stop, num, endpoint, np.float64, axis)
    return cast(spaced, dtype or _of_ends(start, stop))


heaviside = _of_two(numpy.heaviside, _reals)


def histogram(x: TensorLike, bins: Any = 10, range: Any = None) -> tuple[Tensor, Tensor]:
    """Return how many elements of `x` lie in each of `bins` equal bins (or between edges), in the
    dtype of `x`, and the edges. `range` is by default from the smallest to the largest element."""
    if range is not None and (len(range) != 2 or range[0] > range[1]):
        raise ValueError(f"histogram: range must be a pair (least, largest), got {range!r}")
    x = _real(x)
    counts, edges = numpy.histogram(x, bins, range)
    return cast(counts, x.dtype), cast(edges, x.dtype)


def isin(
    x1: TensorLike, x2: TensorLike, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Return whether each element of `x1` is in `x2`; with `invert` whether it is not."""
    return numpy.isin(*convert_each(x1, x2), assume_unique=assume_unique, invert=invert)


isneginf = _of_real(numpy.isneginf, convert)
isposinf = _of_real(numpy.isposinf, convert)
isreal = _of_real(numpy.isreal, convert)
signbit = _of_real(numpy.signbit, convert)
trunc = _of_real(numpy.trunc, convert)


def ldexp(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Return ``x1 * 2**x2`` for integers `x2`; the operands broadcast."""
    return numpy.ldexp(_real(x1), convert(x2))


logaddexp2 = _of_two(numpy.logaddexp2, _reals)


def logspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10,
    dtype: DTypeLike | None = None,
    axis: Axes = 0,
) -> Tensor:
    """Return `base` to the powers of `num` evenly spaced numbers from `start` to `stop`."""
    spaced = numpy.logspace(start, stop, num, endpoint, base, None, axis)
    return cast(spaced, dtype or _of_ends(start, stop))


def nonzero(x: TensorLike) -> list[Tensor]:
    """Return the coordinates (int32) of nonzero elements, one tensor for each axis."""
    return _true_coordinates(_comparison.not_equal(x, 0))


@hides_others
def ptp(x: TensorLike, axis: Axes = None, keepdims: bool = False, **others: Never) -> Tensor:
    """Return the difference of the largest and smallest element over axes."""
    if others:
        refuse_call(ptp, others)
    return _elementwise.subtract(
        reduce_max(x, axis, keepdims), _reductions.reduce_min(x, axis, keepdims)
    )


def rad2deg(x: TensorLike) -> Tensor:
    """Convert angles from radians to degrees."""
    return _elementwise.multiply(_real(x), 180 / np.pi)


def searchsorted(sorted_sequence: Any, values: Any, side: str = "left") -> Tensor:
    """Return the positions (int32) at which `values` can be inserted in `sorted_sequence`: before
    equal elements, or after them with side="right"."""
    return cast(numpy.searchsorted(*convert_each(sorted_sequence, values), side=side), int32)


def unique(
    x: TensorLike,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    size: Any = None,
    fill_value: TensorLike | None = None,
) -> Tensor | Any:
    """Return the distinct elements of `x` in ascending order, or its rows along `axis`, cut or
    padded to `size`. On request, also return the first index of each, the inverse indices, and the
    counts (int32)."""
    result = numpy.unique(convert(x), return_index, return_inverse, return_counts, axis)
    several = result if isinstance(result, tuple) else (result,)
    first, *numbers = several
    parts = [first, *[cast(indices, int32) for indices in numbers]]
    if size is not None:
        dim = 0 if axis is None else axis
        kept = [True, *[True] * return_index, *[False] * return_inverse, *[True] * return_counts]
        parts = [
            _sized(part, size, dim if i == 0 else 0, fill_value if i == 0 else 0) if cut else part
            for i, (part, cut) in enumerate(zip(parts, kept, strict=True))
        ]
    return tuple(parts) if isinstance(result, tuple) else parts[0]


def unravel_index(indices: TensorLike, shape: Shape) -> list[Tensor]:
    """Return the coordinates (int32) of elements at `indices` in row-major order, one tensor for
    each axis of `shape`."""
    coordinates = np.unravel_index(convert(indices)._values(), shape)
    return [constant(along, int32) for along in coordinates]


def append(x1: TensorLike, x2: TensorLike, axis: Axes = None) -> Tensor:
    """Return `x2` joined to the end of `x1` along `axis`; both flattened if it is None."""
    return numpy.append(*convert_each(x1, x2), axis=axis)


def average(x: TensorLike, axis: Axes = None, weights: Any = None) -> Tensor:
    """Return the mean of elements over axes, weighted by `weights`."""
    if weights is None:
        return numpy.average(_real(x), axis)
    x, weights = _reals(x, weights)
    return numpy.average(x, axis, weights)


def corrcoef(x: TensorLike) -> Tensor:
    """Return the correlation coefficients of the rows of `x`."""
    return numpy.corrcoef(_real(x))


def correlate(x1: TensorLike, x2: TensorLike, mode: str = "valid") -> Tensor:
    """Return the cross-correlation of two 1-D tensors: "valid", "same" or "full"."""
    return numpy.correlate(*convert_each(x1, x2), mode=mode)


@reads_own_arguments
def count_nonzero(x: TensorLike, axis: Axes = None) -> Tensor:
    """Return how many elements over axes are not 0, as int32."""
    return _shape.cast(reduce_sum(_shape.cast(_comparison.not_equal(x, 0), int32), axis), int32)


def cross(
    x1: TensorLike,
    x2: TensorLike,
    axisa: Any = -1,
    axisb: Any = -1,
    axisc: Any = -1,
    axis: Axes = None,
) -> Tensor:
    """Return the cross products of vectors of 3 elements along the given axes; the others
    broadcast."""
    x1, x2 = convert_each(x1, x2)
    return numpy.cross(x1, x2, axisa, axisb, axisc, axis)


def diagflat(x: TensorLike, k: int = 0) -> Tensor:
    """Return the matrix that has the elements of `x` on its diagonal `k`."""
    return numpy.diag(_shape.reshape(x, (-1,)), k)


def diagonal(x: TensorLike, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Tensor:
    """Return the diagonals `offset` of the matrices along two axes, along a last axis."""
    return numpy.diagonal(convert(x), offset, axis1, axis2)


def diff(a: TensorLike, n: int = 1, axis: int = -1) -> Tensor:
    """Return the differences of neighbours along `axis`, `n` times."""
    return numpy.diff(convert(a), n, axis)


dot = _of_two(numpy.dot)


def _parted(operation: Callable[..., list[Tensor]]):
    """Return an operation, with its name and docstring, that splits a tensor."""

    def parted(x: TensorLike, indices_or_sections: Any) -> list[Tensor]:
        return operation(convert(x), indices_or_sections)

    return spelled(parted, operation.__name__, operation)


dsplit = _parted(numpy.dsplit)
hsplit = _parted(numpy.hsplit)
vsplit = _parted(numpy.vsplit)


@reads_own_arguments
def flip(x: TensorLike, axis: Axes = None) -> Tensor:
    """Return `x` in reverse order along axes, by default all."""
    return numpy.flip(convert(x), axis)


fliplr = _of_real(numpy.fliplr, convert)
flipud = _of_real(numpy.flipud, convert)


def _joined(operation: Callable[..., Tensor]):
    """Return an operation, with its name and docstring, of several tensors."""

    def joined(xs: Any) -> Tensor:
        return operation(convert_each(*xs))

    return spelled(joined, operation.__name__, operation)


hstack = _joined(numpy.hstack)
vstack = _joined(numpy.vstack)
dstack = _joined(numpy.dstack)


inner = _of_two(numpy.inner)


def isclose(
    x1: TensorLike, x2: TensorLike, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Return whether elements differ by no more than ``atol + rtol * abs(x2)``."""
    return numpy.isclose(*convert_each(x1, x2), rtol=rtol, atol=atol, equal_nan=equal_nan)


kron = _of_two(numpy.kron)


def matrix_rank(x: TensorLike, tol: Any = None) -> Tensor:
    """Return the number (int32) of singular values above `tol`, by default a multiple of the
    largest. It has no gradient."""
    return _shape.cast(_least_squares.matrix_rank(x, tol), int32)


def meshgrid(*x: Any, indexing: str = "xy") -> list[Tensor]:
    """Return the coordinates of the points of a grid, a tensor for each axis; `indexing` is "xy" or
    "ij"."""
    return list(numpy.meshgrid(*builtins.map(convert, x), indexing=indexing))


def moveaxis(x: TensorLike, source: Any, destination: Any) -> Tensor:
    """Return `x` with axes `source` moved to `destination`, the others in their order."""
    return numpy.moveaxis(convert(x), source, destination)


def nan_to_num(x: TensorLike, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    """Return `x` with NaN and infinities replaced, by default by 0 and the largest finite
    numbers."""
    return numpy.nan_to_num(convert(x), nan=nan, posinf=posinf, neginf=neginf)


def nancumprod(x: TensorLike, axis: Axes = None, dtype: DTypeLike | None = None) -> Tensor:
    """Return the products of all elements up to each along `axis`, without those that are NaN."""
    return numpy.nancumprod(_widen(x), axis, dtype or _widen(x).dtype)


def nancumsum(x: TensorLike, axis: Axes = None, dtype: DTypeLike | None = None) -> Tensor:
    """Return the sums of all elements up to each along `axis`, without those that are NaN."""
    return numpy.nancumsum(_widen(x), axis, dtype or _widen(x).dtype)


def nanprod(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return the product over axes of the elements that are not NaN."""
    return _shape.cast(numpy.nanprod(_widen(x), axis, keepdims=keepdims), _widen(x).dtype)


def nansum(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return the sum over axes of the elements that are not NaN."""
    return _shape.cast(numpy.nansum(_widen(x), axis, keepdims=keepdims), _widen(x).dtype)


outer = _of_two(numpy.outer)


percentile = _quantiles(numpy.percentile, "Return the `q`-th percentiles over axes.")
quantile = _quantiles(numpy.quantile, "Return the `q`-quantiles over axes.")
nanpercentile = _quantiles(
    numpy.nanpercentile, "Return the `q`-th percentiles over axes, ignoring NaN."
)
nanquantile = _quantiles(numpy.nanquantile, "Return the `q`-quantiles over axes, ignoring NaN.")


@restates(_least_squares.pinv)
def pinv(x: TensorLike, rcond: Any = None) -> Tensor:
    return _least_squares.pinv(x, rcond)


def repeat(x: TensorLike, repeats: Any, axis: int | None = None) -> Tensor:
    """Return `x` with each slice along `axis` repeated; flattened if it is None."""
    return numpy.repeat(convert(x), repeats, axis)


def roll(x: TensorLike, shift: Any, axis: Axes = None) -> Tensor:
    """Return `x` with its elements shifted cyclically by `shift` along `axis`."""
    return numpy.roll(convert(x), shift, axis)


def rot90(array: TensorLike, k: int = 1, axes: Any = (0, 1)) -> Tensor:
    """Return `array` rotated by `k` times 90 degrees in the plane of two axes."""
    return numpy.rot90(convert(array), k, axes)


def swapaxes(x: TensorLike, axis1: Any, axis2: Any) -> Tensor:
    """Return `x` with two axes exchanged."""
    return numpy.swapaxes(convert(x), axis1, axis2)


def tile(x: TensorLike, repeats: Any) -> Tensor:
    """Return `x` repeated `repeats` times along each axis."""
    return numpy.tile(convert(x), repeats)


def trace(x: TensorLike, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Tensor:
    """Return the sums of the diagonals of the matrices along two axes."""
    return reduce_sum(_widen(numpy.diagonal(convert(x), offset, axis1, axis2)), -1)


def trapezoid(y: TensorLike, x: TensorLike | None = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """Return the integral of `y` along `axis` by the trapezoidal rule."""
    return numpy.trapezoid(_real(y), x if x is None else _real(convert_each(x, y)[0]), dx, axis)


@reads_own_arguments
def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """Return `N` by `M` ones on and below the diagonal `k`, and zeros above it."""
    return _shape.cast(constant(np.tri(N, M, k)), dtype or settings.floatx)


tril = _of_diagonal(numpy.tril)
triu = _of_diagonal(numpy.triu)
diag = _of_diagonal(numpy.diag)


def vander(x: TensorLike, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the powers of the elements of a vector, the highest first unless `increasing`, as
    rows."""
    tensor = convert(x)
    return _shape.cast(numpy.vander(tensor, N, increasing), tensor.dtype)


vdot = _of_two(numpy.vdot)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Tensor:
    """Return elements of the first of `choicelist` whose condition holds, else `default`; all
    broadcast."""
    return numpy.select(condlist, convert_each(*choicelist, default)[:-1], default)


def vectorize(pyfunc: Any, *, excluded: Any = None, signature: Any = None) -> Any:
    """Return a function that calls `pyfunc` for each element of its arguments, or for the axes that
    `signature` names; see ``numpy.vectorize``."""
    return _vectorized(pyfunc, excluded or (), signature)


__all__ += export_functions(globals())
