"""Keras's ``keras.ops``. Integers that meet a function of reals become float32, as there.

Where a text says float32, it is what `keras.config.set_floatx` has set.
"""

from __future__ import annotations

import builtins
import re
from functools import update_wrapper
from typing import Any

import numpy as np

from .. import numpy
from .._core.conversion import any_tensor, convert, convert_each, convert_operands, is_tensor
from .._core.kinds import is_bool, is_exact, is_unsigned
from .._core.tensor import Tensor
from .._core.transformed import returns_transformed
from .._ops import searching
from .._ops.comparison import less, not_equal
from .._ops.complex import imag, real
from .._ops.complex_parts import complex_of
from .._ops.creation import constant
from .._ops.define import as_shape
from .._ops.elementwise import cos, log10, multiply, power, sin, square, subtract, where
from .._ops.factorizations import svd as _svd
from .._ops.factorizations import svdvals
from .._ops.indexing import getitem
from .._ops.matrices import adjoint
from .._ops.norms import matrix_norm, reduce_euclidean_norm, vector_norm
from .._ops.reductions import reduce_all, reduce_max, reduce_mean, reduce_sum
from .._ops.settings import settings
from .._ops.shape import broadcast_to, cast, concatenate, expand_dims, reshape, transpose
from .._ops.sorting import one_hot
from .._rules.custom_gradient import custom_gradient
from .._spellings.adapt import arg_extremum, space_evenly
from .._spellings.spell import spell
from .._transforms.batching import vectorized_map
from .._transforms.control_flow import cond
from .._transforms.functional import jvp as _jvp
from ..dtypes import int32, uint32
from ..errors import InvalidArgumentError
from ._associative import associative_scan
from ._loops import fori_loop, map, scan, switch, while_loop
from ._operands import as_real as _real

__all__ = [
    "associative_scan",
    "cond",
    "convert_to_numpy",
    "custom_gradient",
    "fori_loop",
    "is_tensor",
    "map",
    "scan",
]
__all__ += ["jvp", "switch", "vectorized_map", "while_loop"]


def convert_to_numpy(x: Any) -> np.ndarray:
    """Return `x` as a NumPy array of its own."""
    return np.array(convert(x) if isinstance(x, (list, tuple)) and any_tensor(x) else x)


def jvp(fun: Any, primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """Return ``(fun(*primals), tangent)``: see `tinygrad_cg.jvp`."""
    return _jvp(fun, primals, tangents, has_aux)


def _small(epsilon: float | None) -> float:
    return settings.epsilon if epsilon is None else epsilon


def _order(data_format: str | None) -> str:
    """Return the order of an image's axes: what `set_image_data_format` says where it is None."""
    return data_format or settings.image_data_format


def _reals(x1: Any, x2: Any) -> list[Tensor]:
    """Return two operands, both as float32 if neither is of a floating dtype."""
    return [_real(x) for x in convert_operands((x1, x2))]


@returns_transformed
def _vectorized(pyfunc: Any, excluded: Any, signature: Any) -> Any:
    """Return a function for all elements, which reads Python's floats as float32."""
    mapped = numpy.vectorize(pyfunc, excluded=excluded, signature=signature)

    def vectorized(*args: Any, **kwargs: Any) -> Any:
        given = [x if i in excluded else convert(x) for i, x in enumerate(args)]
        named = {name: x if name in excluded else convert(x) for name, x in kwargs.items()}
        return mapped(*given, **named)

    return update_wrapper(vectorized, pyfunc)


def _widen(x: Any) -> Tensor:
    """Return integers of less than 32 bits as such of 32, for their sum."""
    x = convert(x)
    if not is_exact(x.dtype) or x.dtype.itemsize >= 4:
        return x
    return cast(x, uint32 if is_unsigned(x.dtype) else int32)


def _as_int32(x: Any) -> Tensor:
    """Return booleans as int32."""
    x = convert(x)
    return cast(x, int32) if is_bool(x.dtype) else x


def _true_coordinates(condition: Any) -> list[Tensor]:
    """Return the coordinates of the true elements, one tensor for each axis."""
    return [
        cast(searching.tensor_of(one), int32)
        for one in searching.coordinates(searching.values_of(convert(condition)))
    ]


def _eye(rows: Any, columns: Any, diagonal: int, kind: Any) -> Tensor:
    return cast(constant(np.eye(rows, columns, diagonal)), kind or settings.floatx)


def _complex(x: Any) -> Tensor:
    """Return the complex tensor of a pair of real and imaginary parts."""
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise TypeError("fft: x must be a pair of tensors, the real and the imaginary parts")
    return complex_of(*_reals(*x))


def _eye_like(x: Any) -> np.ndarray:
    x = convert(x)
    return np.eye(x.shape[-1], dtype=x.dtype)


def _is_complete(mode: str) -> bool:
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode must be 'reduced' or 'complete', got {mode!r}")
    return mode == "complete"


def _singular(x: Any, full_matrices: bool, compute_uv: bool) -> Any:
    if not compute_uv:
        return svdvals(x)
    left, values, right = _svd(x, full_matrices)
    return left, values, adjoint(right)


def _position(find: Any, x: Any, limit: float, axis: Any, keepdims: bool) -> Tensor:
    """Return where `find` finds an element that is not NaN; -1 if there is none."""
    x = _real(x)
    missing = not_equal(x, x)
    found = arg_extremum(find, where(missing, constant(limit, x.dtype), x), axis, keepdims)
    return where(reduce_all(missing, axis, keepdims), int32.type(-1), cast(found, int32))


def _norm(x: Any, order: Any, axis: Any, keepdims: bool) -> Tensor:
    x = _real(x)
    if axis is None and order is not None and x.ndim == 2:
        axis = (0, 1)
    if isinstance(axis, (tuple, list)) and len(axis) == 2:
        return matrix_norm(x, order, axis, keepdims)
    return vector_norm(x, order, axis, keepdims)


def _parts(x: Tensor) -> tuple[Tensor, Tensor]:
    return real(x), imag(x)


def _fill_value(mode: str, constant_values: Any) -> Any:
    if constant_values is not None and mode != "constant":
        raise ValueError(f"pad: constant_values are for mode='constant', not for {mode!r}")
    return 0 if constant_values is None else constant_values


def _at_axis(x: Any, axis: int, *vectors: Any) -> list[Any]:
    """Return vectors of an axis so that they broadcast with `x`; None stays."""
    x = convert(x)
    sizes = [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]
    return [None if one is None else reshape(convert_each(one, x)[0], sizes) for one in vectors]


def _part(x: Any, starts: Any, sizes: Any) -> tuple[Any, ...]:
    starts, sizes = as_shape("slice", starts), as_shape("slice", sizes)
    shape = tuple(convert(x).shape)
    if not len(starts) == len(sizes) == len(shape) or not builtins.all(
        0 <= start <= start + size <= whole
        for start, size, whole in zip(starts, sizes, shape, strict=True)
    ):
        raise InvalidArgumentError(
            f"slice: a part of shape {sizes} from {starts} on is not within shape {shape}"
        )
    ends = [start + size for start, size in zip(starts, sizes, strict=True)]
    return tuple(builtins.map(builtins.slice, starts, ends))


def _reduction(reduction: Any) -> str:
    known = {None: "update", "add": "add", "max": "max", "min": "min", "mul": "mul"}
    if reduction not in known:
        raise ValueError(f"scatter_update: reduction must be one of {[*known]}, got {reduction!r}")
    return known[reduction]


def _values(x: Any) -> np.ndarray:
    return convert(x)._values()


def _linspace(
    start: Any, stop: Any, num: int, endpoint: bool, retstep: bool, dtype: Any, axis: int
) -> Any:
    spaced = space_evenly(start, stop, num, endpoint, dtype)
    spaced = spaced if axis == 0 else numpy.moveaxis(spaced, 0, axis)
    if not retstep:
        return spaced
    intervals = num - 1 if endpoint else num
    return spaced, cast(subtract(stop, start), dtype) / (intervals or np.nan)


def _of_ends(*ends: Any) -> np.dtype:
    """Return the dtype of numbers between two: `floatx` unless an end has a floating one."""
    return (
        settings.floatx
        if not builtins.any(hasattr(one, "dtype") for one in ends)
        else _real(convert_operands(ends)[0]).dtype
    )


def _of_range(*ends: Any) -> np.dtype | None:
    """Return `floatx` for Python's floats; None where the numbers themselves decide."""
    return settings.floatx if builtins.any(type(one) is float for one in ends) else None


def _geometric(start: Any, stop: Any, num: Any, endpoint: bool, kind: Any, axis: int) -> Tensor:
    """Return `geomspace` by NumPy's scaling: exact at both ends."""
    wanted = kind or _of_ends(start, stop)
    first, last = (cast(one, np.float64) for one in (start, stop))
    share = np.arange(num) / builtins.max(num - bool(endpoint), 1)
    share = share.reshape(-1, *[1] * builtins.max(first.ndim, last.ndim))
    sign = where(less(first, 0), -1.0, 1.0)
    steps = multiply(power(multiply(first, sign), 1 - share), power(multiply(last, sign), share))
    return cast(numpy.moveaxis(multiply(steps, sign), 0, axis), wanted)


def _digits(x: Any, bins: Any) -> Tensor:
    x, edges = convert_each(x, bins)
    if edges.ndim != 1:
        raise InvalidArgumentError(f"digitize: bins must be 1-D, got shape {tuple(edges.shape)}")
    return cast(numpy.searchsorted(edges, x, "right"), int32)


def _bin_counts(x: Any, weights: Any, minlength: int, sparse: bool) -> Tensor:
    if sparse:
        raise ValueError("bincount: there are no sparse tensors: leave out sparse=True")
    x = convert(x)
    weights = None if weights is None else convert(weights)
    if x.ndim == 1:
        found = numpy.bincount(x, weights, minlength)
        return cast(found, int32 if weights is None else weights.dtype)
    size = builtins.max(int(_values(x).max(initial=-1)) + 1, minlength)
    spread = one_hot(x, size, -1, int32 if weights is None else weights.dtype)
    if weights is not None:
        spread = multiply(spread, expand_dims(weights, -1))
    return reduce_sum(spread, -2)


def _counts(x: Any, bins: Any, limits: Any) -> tuple[Tensor, Tensor]:
    if limits is not None and (len(limits) != 2 or limits[0] > limits[1]):
        raise ValueError(f"histogram: range must be a pair (least, largest), got {limits!r}")
    x = _real(x)
    counts, edges = numpy.histogram(x, bins, limits)
    return cast(counts, x.dtype), cast(edges, x.dtype)


def _different(
    x: Any, index: bool, inverse: bool, counts: bool, axis: Any, size: Any, filler: Any
) -> Any:
    found = numpy.unique(convert(x), index, inverse, counts, axis)
    several = found if isinstance(found, tuple) else (found,)
    first, *others = several
    parts = [first, *[cast(one, int32) for one in others]]
    if size is not None:
        dim = 0 if axis is None else axis
        kept = [True, *[True] * index, *[False] * inverse, *[True] * counts]
        parts = [
            _sized(one, size, dim if i == 0 else 0, filler if i == 0 else 0) if cut else one
            for i, (one, cut) in enumerate(zip(parts, kept, strict=True))
        ]
    return tuple(parts) if isinstance(found, tuple) else parts[0]


def _sized(x: Tensor, size: int, axis: int, filler: Any) -> Tensor:
    """Return `x` cut or filled to a size along an axis; the filler is by default 0."""
    axis %= x.ndim
    have = x.shape[axis]
    before = (builtins.slice(None),) * axis
    if have >= size:
        return getitem(x, (*before, builtins.slice(None, size)))
    shape = [size - have if i == axis else one for i, one in enumerate(x.shape)]
    more = broadcast_to(cast(0 if filler is None else filler, x.dtype), shape)
    return concatenate([x, more], axis)


def _multi_hot(inputs: Any, num_classes: Any, axis: int, kind: Any, sparse: bool) -> Tensor:
    if sparse:
        raise ValueError("multi_hot: there are no sparse tensors: leave out sparse=True")
    x = convert(inputs)
    if num_classes is None:
        raise ValueError("multi_hot: num_classes must be given")
    return reduce_max(
        one_hot(x, num_classes, axis, kind or settings.floatx), 1 if x.ndim > 1 else 0
    )


def _weighted(x: Tensor, weights: Tensor, axis: Any) -> Tensor:
    return numpy.average(x, axis, weights)


def _of_polar(size: Tensor, angle: Tensor) -> Tensor:
    return complex_of(multiply(size, cos(angle)), multiply(size, sin(angle)))


def _signal_to_noise(x1: Tensor, x2: Tensor, largest: Any) -> Tensor:
    if x1.shape != x2.shape:
        raise InvalidArgumentError(
            f"psnr: x1 and x2 must have one shape, got {tuple(x1.shape)} and {tuple(x2.shape)}"
        )
    error = reduce_mean(square(subtract(x1, x2)))
    peak = log10(cast(largest, x1.dtype))
    return subtract(multiply(peak, 20.0), multiply(log10(error), 10.0))


def _distances(x: Tensor, y: Tensor) -> Tensor:
    return reduce_euclidean_norm(subtract(expand_dims(x, -2), expand_dims(y, -3)), -1)


def _side(pattern: str) -> list[list[str]]:
    """Return the axes of one side of a pattern, each the names that it is made of."""
    parts = re.findall(r"\([^()]*\)|[^\s()]+", pattern)
    if "".join(parts).replace(" ", "") != pattern.replace(" ", ""):
        raise InvalidArgumentError(f"rearrange: brackets do not fit in {pattern!r}")
    return [part.strip("()").split() if part != "1" else [] for part in parts]


def _by_pattern(tensor: Any, pattern: str, lengths: dict[str, int]) -> Tensor:
    x = convert(tensor)
    if pattern.count("->") != 1:
        raise InvalidArgumentError(f"rearrange: pattern must have one '->', got {pattern!r}")
    left, right = (_side(side) for side in pattern.split("->"))
    named = builtins.sum(part != ["..."] for part in left)
    rest = [[f"...{i}"] for i in builtins.range(x.ndim - named)]
    left, right = (
        [one for part in side for one in (rest if part == ["..."] else [part])]
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
    sizes = dict(lengths)
    for whole, part in zip(x.shape, left, strict=True):
        unknown = [name for name in part if name not in sizes]
        known = builtins.int(np.prod([sizes[name] for name in part if name in sizes], dtype=int))
        if len(unknown) == 1 and known and whole % known == 0:
            sizes[unknown[0]] = whole // known
        elif unknown or known != whole:
            raise InvalidArgumentError(
                f"rearrange: an axis of size {whole} is no ({' '.join(part)}) with {lengths}"
            )
    x = reshape(x, [sizes[name] for name in before])
    x = transpose(x, [before.index(name) for name in after])
    joined = [np.prod([sizes[name] for name in part], dtype=int) for part in right]
    return reshape(x, [builtins.int(one) for one in joined])


_TABLE = """
    all any(x, axis=None, keepdims=False) = reduce_{}(x, axis, keepdims)
    arange(start, stop=None, step=None, dtype=None)
        = arange(start, stop, 1 if step is None else step, dtype or _of_range(start, stop, step))
        # Return numbers from `start` (0 if only one bound is given) to below `stop`, in steps.
    arctan2(x1, x2) = arctan2(*_reals(x1, x2))
        # Return the angle, from -pi to pi, of the point with ordinate `x1` and abscissa `x2`;
        float32 where neither is of a floating dtype.
    argmax(x, axis=None, keepdims=False) = cast(arg_extremum(argmax, x, axis, keepdims), int32)
        # Return positions (int32) of the largest elements along `axis`, by default in the flattened
        tensor; the first where several tie.
    argmin(x, axis=None, keepdims=False) = cast(arg_extremum(argmin, x, axis, keepdims), int32)
        # Return positions (int32) of the smallest elements along `axis`, by default in the
        flattened tensor; the first where several tie.
    argsort(x, axis=-1) = cast(argsort(*flattened(x, axis)), int32)
        # Return the indices (int32) that sort `x` along `axis`, or the flattened tensor if it is
        None; equal ones stay in the order in which they stand.
    array convert_to_tensor(x, dtype=None)
        = convert(x) if dtype is None else cast(x, dtype)
        # Return `x` as a Tensor, cast to `dtype` where it has another.
    array_split(x, indices_or_sections, axis=0) -> list[Tensor]
        = split_at(x, indices_or_sections, axis, True)
        # Return the parts of `x` along `axis` between indices, or a number of parts, of which the
        first may be longer by one.
    average_pool(inputs, pool_size, strides=None, padding="valid", data_format=None)
        = pool_by_rank("AVG", inputs, pool_size, strides, padding, _order(data_format))
        # Return the means of windows of sequences, images or volumes, by the rank of `inputs`.
    max_pool(inputs, pool_size, strides=None, padding="valid", data_format=None)
        = pool_by_rank("MAX", inputs, pool_size, strides, padding, _order(data_format))
        # Return the largest elements of windows of sequences, images or volumes, by the rank of
        `inputs`.
    batch_normalization(x, mean, variance, axis, offset=None, scale=None, epsilon=0.001)
        = batch_normalization(x, *_at_axis(x, axis, mean, variance, offset, scale), epsilon)
        # Return ``(x - mean) / sqrt(variance + epsilon) * scale + offset`` with vectors along
        `axis`; None leaves a part out.
    binary_crossentropy(target, output, from_logits=False)
        = binary_crossentropy(target, output, from_logits)
    bartlett blackman hamming hanning(x) = cast({}(x), float32)
        # Return the window of this name with `x` points, float32.
    broadcast_to(x, shape) = broadcast_to(x, shape)
    cast(x, dtype) = cast(x, dtype)
    categorical_crossentropy(target, output, from_logits=False, axis=-1)
        = categorical_crossentropy(target, output, from_logits, axis)
    celu elu(x, alpha=1.0) = {}(_real(x), alpha)
    ceil floor(x) = {}(_real(x))
    cholesky(x, upper=False) = cholesky_upper(x) if upper else cholesky(x)
        # Return the lower triangular L of each positive definite matrix ``x = L adjoint(L)``, or
        its adjoint if `upper`.
    cholesky_inverse(x, upper=False) = cholesky_solve(x, _eye_like(x), upper)
        # Return the inverse of each matrix of which `x` is the Cholesky factor, the upper one if
        `upper`.
    det inv slogdet eig eigh = {}
    clip(x, x_min, x_max) = clip(x, x_min, x_max)
    concatenate(xs, axis=0) = concatenate(xs, axis)
    conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1)
        = convolve(inputs, kernel, strides, padding, _order(data_format), dilation_rate)
    depthwise_conv(inputs, kernel, strides=1, padding="valid", data_format=None,
        dilation_rate=1)
        = depthwise_conv(inputs, kernel, strides, padding, _order(data_format), dilation_rate)
    conv_transpose(inputs, kernel, strides=1, padding="valid", output_padding=None,
        data_format=None, dilation_rate=1)
        = convolve_transpose(inputs, kernel, transposed_conv_sizes(inputs, kernel, strides, padding,
        output_padding, _order(data_format), dilation_rate), strides, padding,
        _order(data_format), dilation_rate)
        # Return the transposed convolution of `inputs` with a `kernel` of shape (height, width,
        outputs, channels): the map back from what a convolution makes, to images enlarged by
        `strides`.
    ctc_loss(target, output, target_length, output_length, mask_index=0)
        = ctc_loss(target, _real(output), target_length, output_length, False, mask_index)
        # Return minus the logarithm of the probability of each sequence of labels, (batch,):
        `target` (batch, longest) has `target_length` labels in each row, `output` (batch, frames,
        classes) are logits of `output_length` frames, `mask_index` is the class of blanks.
    cumprod(x, axis=None, dtype=None) = cumprod(cast(x, dtype) if dtype else _widen(x), axis)
        # Return the products of all elements up to each along `axis`, by default of the flattened
        tensor.
    cumsum(x, axis=None, dtype=None) = cumsum(cast(x, dtype) if dtype else _widen(x), axis)
        # Return the sums of all elements up to each along `axis`, by default of the flattened
        tensor.
    divide_no_nan(x1, x2) = divide_no_nan(*_reals(x1, x2))
        # Return x1 / x2, and 0 where x2 is 0; float32 where neither is of a floating dtype.
    divide true_divide(x1, x2) = divide(*_reals(x1, x2))
        # Return x1 / x2; float32 where neither is of a floating dtype.
    dtype(x) -> str = convert(x).dtype.name  # Return the name of the dtype of `x`.
    einsum(subscripts, *operands) = einsum(subscripts, *operands)
    expand_dims(x, axis) = numpy.expand_dims(convert(x), axis)
        # Return `x` with a new axis of size 1 at position `axis` of the result, or at several.
    eye(N, M=None, k=0, dtype=None) = _eye(N, M, k, dtype)
        # Return `N` by `M` zeros (square by default) with ones on diagonal `k`, float32 by default.
    fft(x) -> tuple[Tensor, Tensor] = _parts(fft(_complex(x)))
        # Return the discrete Fourier transform over the last axis of `x`, a pair of real and
        imaginary parts, as such a pair.
    fft2(x) -> tuple[Tensor, Tensor] = _parts(fftn(_complex(x), None, (-2, -1)))
        # Return the discrete Fourier transform over the last two axes of `x`, a pair of real and
        imaginary parts, as such a pair.
    full(shape, fill_value, dtype=None) = full(shape, fill_value, dtype or settings.floatx)
        # Return a tensor of `shape` filled with `fill_value`, float32 by default.
    full_like(x, fill_value, dtype=None)
        = full_like(x, cast(fill_value, dtype or convert(x).dtype), dtype)
        if convert(fill_value).ndim == 0
        else numpy.full_like(convert(x), convert_each(fill_value, convert(x))[0], dtype)
        # Return `fill_value`, which broadcasts, with the shape and, unless `dtype` is given, the
        dtype of `x`. Its gradient is that of a broadcast value.
    gelu(x, approximate=True) = gelu(_real(x), approximate)
    glu(x, axis=-1) = glu(x, axis)
    hard_shrink soft_shrink(x, threshold=0.5) = {}(_real(x), threshold)
    hard_sigmoid hard_tanh relu6 selu sparse_plus sparse_sigmoid tanh_shrink(x) = {}(_real(x))
    hard_silu hard_swish(x) = hard_silu(_real(x))
    i0(x) = bessel_i(0, _real(x))
        # Return the modified Bessel function of the first kind of order 0.
    identity(n, dtype=None) = _eye(n, n, 0, dtype)
        # Return the identity matrix of `n` by `n`, float32 by default.
    ifft2(x) -> tuple[Tensor, Tensor] = _parts(ifftn(_complex(x), None, (-2, -1)))
        # Return the inverse of ``fft2``, as a pair of real and imaginary parts.
    istft(x, sequence_length, sequence_stride, fft_length, length=None, window="hann", center=True)
        = centred_inverse_stft(_complex(x), sequence_length, sequence_stride, fft_length, length,
        window, center)
        # Return the signals, of `length` elements, of which ``stft`` gives the pair `x` of real and
        imaginary parts for the same `window` (of which the squares that overlap divide the sum).
    irfft(x, fft_length=None) = irfft(_complex(x), fft_length)
        # Return the inverse of `rfft`, real, of `fft_length` elements; `x` is a pair of real and
        imaginary parts.
    linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0) -> Any
        = _linspace(start, stop, num, endpoint, retstep, dtype or _of_ends(start, stop), axis)
        # Return `num` evenly spaced numbers from `start` to `stop`, which `endpoint` includes,
        along a new `axis`; rounded down if integers are asked for. With `retstep`, a pair of them
        and the step between them.
    log_sigmoid(x) = log_sigmoid(_real(x))
        # Return the logarithm of sigmoid(x), without overflow; booleans and integers are float32
        first.
    kaiser(x, beta) = cast(kaiser(x, beta), float32)
        # Return Kaiser's window of `x` points with the shape parameter `beta`, float32.
    layer_normalization(x, gamma=None, beta=None, axis=-1, epsilon=None)
        = layer_normalization(_real(x), gamma, beta, axis, _small(epsilon))
        # Return `x` less its mean over `axis`, over its standard deviation, times `gamma`, plus
        `beta`, which have the sizes of the axes. `epsilon` (1e-7) is added to the variance.
    leaky_relu(x, negative_slope=0.2) = leaky_relu(_real(x), negative_slope)
    log_softmax(x, axis=-1) = log_softmax(_real(x), axis)
    logsumexp(x, axis=None, keepdims=False) = reduce_logsumexp(_real(x), axis, keepdims)
    logdet(x) = slogdet(x)[1]
        # Return the logarithm of the determinant of each positive definite matrix of `x`.
    lstsq(a, b, rcond=None) = lstsq(a, b, rcond)
        # Return the x of least length for which the length of ``a x - b`` is the least. Singular
        values of `a` below `rcond` times the largest count as 0.
    lu_factor(x) -> tuple[Tensor, Tensor] = lu(x)
        # Return L and U of matrices in one, L without its diagonal of ones, and the order of rows
        in which ``L U`` is `x`.
    matmul(x1, x2) = matmul(x1, x2)
        # Return the matrix product over the last two axes; the axes before them broadcast. A 1-D
        operand is a row on the left or a column on the right.
    amax(x, axis=None, keepdims=False) = reduce_max(x, axis, keepdims)
    max(x, axis=None, keepdims=False, initial=None)
        = reduce_max(x, axis, keepdims) if initial is None
        else numpy.max(convert(x), axis, keepdims=keepdims, initial=initial)
        # Return the maximum over axes, and of `initial`, if it is given.
    mean(x, axis=None, keepdims=False) = reduce_mean(_real(x), axis, keepdims)
        # Return the mean of elements over axes; booleans and integers are float32 first.
    amin(x, axis=None, keepdims=False) = reduce_min(x, axis, keepdims)
    min(x, axis=None, keepdims=False, initial=None)
        = reduce_min(x, axis, keepdims) if initial is None
        else numpy.min(convert(x), axis, keepdims=keepdims, initial=initial)
        # Return the minimum over axes, and of `initial`, if it is given.
    moments(x, axes, keepdims=False, synchronized=False) -> tuple[Tensor, Tensor]
        = mean_and_variance(_real(x), axes, keepdims)
        # Return the mean and the variance of elements over `axes`, as a pair; float16 is summed in
        float32. There is one device: `synchronized` makes no difference.
    ndim(x) -> int = convert(x).ndim  # Return the number of dimensions of `x`.
    norm(x, ord=None, axis=None, keepdims=False) = _norm(x, ord, axis, keepdims)
        # Return the norm of vectors along one axis or of all elements, of matrices along two or of
        2-D `x` where `ord` is given; see ``numpy.linalg.norm`` for the orders.
    normalize(x, axis=-1, order=2, epsilon=None)
        = normalize(_real(x), axis, order, _small(epsilon))
        # Return `x` over its norm of some `order` (at least 1) over `axis`; over `epsilon` (1e-7)
        where that is larger.
    one_hot(x, num_classes, axis=-1, dtype=None)
        = one_hot(x, num_classes, axis, dtype or settings.floatx)
        # Return ones at integers `x` along a new `axis` of size `num_classes`, and zeros elsewhere:
        everywhere for one outside 0 .. num_classes - 1. float32 by default.
    ones(shape, dtype=None) = ones(shape, dtype or settings.floatx)
        # Return a tensor of ones, float32 by default.
    ones_like zeros_like(x, dtype=None) = {}(x, dtype)
    pad(x, pad_width, mode="constant", constant_values=None)
        = pad(x, pad_width, mode, _fill_value(mode, constant_values))
        # Return `x` with more elements before and after along each axis: `pad_width` is a pair for
        each, one pair for all, or one number. `mode` is "constant", "reflect", "symmetric", "edge"
        or "wrap".
    prod(x, axis=None, keepdims=False) = reduce_prod(_widen(x), axis, keepdims)
        # Return the product of elements over axes; booleans and integers of fewer bits give
        integers of 32.
    qr(x, mode="reduced") -> tuple[Tensor, Tensor] = qr(x, _is_complete(mode))
        # Return Q, with orthonormal columns, and the upper triangular R of matrices ``x = Q R``; Q
        is square if `mode` is "complete".
    ravel(x) = reshape(x, (-1,))  # Return the elements of `x` in row-major order, in one dimension.
    reciprocal(x) = divide(1, _real(x))  # Return 1 / x; booleans and integers give float32.
    reshape(x, newshape) = reshape(x, newshape)
    rms_normalization(x, scale=None, axis=-1, epsilon=None)
        = rms_normalization(_real(x), scale, axis, _small(epsilon))
        # Return `x` over the root of its mean square over `axis`, times `scale`; `epsilon` (1e-7)
        is added to the mean square.
    rfft(x, fft_length=None) -> tuple[Tensor, Tensor] = _parts(rfft(_real(x), fft_length))
        # Return the first half of the transform of a real `x` over its last axis, cut or padded to
        `fft_length`, as a pair of real and imaginary parts.
    round(x, decimals=0) = round_decimals(x, decimals)
        # Return `x` to so many decimals, half to even. It has no gradient.
    scatter(indices, values, shape) = scatter_nd(indices, values, shape)
    scatter_update(inputs, indices, updates, reduction=None)
        = tensor_scatter(_reduction(reduction), inputs, indices, updates)
        # Return `inputs` with `updates` at `indices`, whose last axis has coordinates; or, with a
        `reduction` of "add", "max", "min" or "mul", what it makes of both.
    segment_sum segment_prod segment_max segment_min
        (data, segment_ids, num_segments=None, sorted=False)
        = unsorted_segments("{}".removeprefix("segment_"), data, segment_ids, num_segments)
        # Return the sum, product or extreme of rows of `data` with equal `segment_ids`, which have
        the first axes of `data`; by default there are as many segments as the largest id asks for.
        `sorted` makes no difference.
    shape(x) -> tuple[int, ...] = tuple(convert(x).shape)
        # Return the shape of `x`, as a tuple of integers.
    silu swish(x) = silu(_real(x))  # Return ``x * sigmoid(x)``, also called swish.
    size(x) = constant(convert(x).size)  # Return the number of elements of `x`, as a scalar tensor.
    slice(inputs, start_indices, shape) = getitem(inputs, _part(inputs, start_indices, shape))
        # Return the part of `inputs` of some `shape` that starts at `start_indices`.
    slice_update(inputs, start_indices, updates)
        = At(inputs)[_part(inputs, start_indices, convert(updates).shape)].set(updates)
        # Return `inputs` with the part that starts at `start_indices` replaced by `updates`.
    softmax(x, axis=-1) = softmax(_real(x), axis)
    sort(x, axis=-1) = sort(*flattened(x, axis))
        # Return `x` sorted along `axis`, or flattened first if it is None; NaN counts as larger
        than all else.
    sparse_categorical_crossentropy(target, output, from_logits=False, axis=-1)
        = sparse_categorical_crossentropy(target, output, from_logits, axis)
    sparsemax(x, axis=-1) = sparsemax(_real(x), axis)
    split(x, indices_or_sections, axis=0) -> list[Tensor]
        = split_at(x, indices_or_sections, axis)
        # Return the parts of `x` along `axis` between indices, or a number of equal ones.
    solve(a, b) = solve(a, b)
    solve_triangular(a, b, lower=False) = triangular_solve(a, b, lower)
    square(x) = square(_as_int32(x))
        # Return x * x; booleans are int32 first.
    squareplus(x, b=4) = squareplus(_real(x), b)
    squeeze(x, axis=None) = squeeze(x, axis)
    stack(x, axis=0) = stack(x, axis)
    std(x, axis=None, keepdims=False) = reduce_std(_real(x), axis, keepdims)
    stft(x, sequence_length, sequence_stride, fft_length, window="hann", center=True)
        -> tuple[Tensor, Tensor]
        = _parts(centred_stft(_real(x), sequence_length, sequence_stride, fft_length, window,
        center))
        # Return the spectra over time of `x`, as a pair of real and imaginary parts: of frames of
        `fft_length` elements every `sequence_stride`, with a `window` ("hann", "hamming", a tensor
        or None for ones) of `sequence_length` in their middle. If `center`, `x` is mirrored at its
        ends, so that frames have their middle at multiples of the stride.
    stop_gradient(variable) = stop_gradient(variable)
    sum(x, axis=None, keepdims=False) = reduce_sum(_widen(x), axis, keepdims)
        # Return the sum of elements over axes; booleans and integers of fewer bits give integers of
        32.
    svd(x, full_matrices=True, compute_uv=True) -> Tensor | Any
        = _singular(x, full_matrices, compute_uv)
        # Return U, the singular values s, falling, and the adjoint of V of matrices
        ``x = U diag(s) adjoint(V)``; s alone unless `compute_uv`. See `eigh` for what derivatives
        there are.
    take(x, indices, axis=None) = taken(gather, x, indices, axis)
        # Return slices of `x` along `axis`, by default of the flattened tensor, at integer
        `indices`.
    take_along_axis(x, indices, axis=None) = taken(take_along_axis, x, indices, axis)
        # Return the elements of `x` at integer `indices` along `axis`, line by line; by default of
        the flattened tensor.
    tensordot(x1, x2, axes=2) = tensordot(x1, x2, axes)
    threshold(x, threshold, default_value) = keep_above(_real(x), threshold, default_value)
    top_k(x, k, sorted=True) -> TopK
        = top_k(x, k)
        # Return the `k` largest elements along the last axis, largest first, and their indices
        (int32).
    transpose(x, axes=None) = transpose(x, axes)
    unstack(x, num=None, axis=0) -> list[Tensor]
        = check_count(unstack(x, axis), num)
        # Return the slices of `x` along `axis`, as a list, which must have `num` parts if that is
        given.
    var(x, axis=None, keepdims=False) = reduce_variance(_real(x), axis, keepdims)
    where(condition, x1=None, x2=None) -> Tensor | Any
        = _true_coordinates(condition) if neither(x1, x2) else where(condition, x1, x2)
        # Return `x1` where `condition` holds and `x2` elsewhere; without both, the coordinates of
        what is true, one tensor for each axis.
    zeros(shape, dtype=None) = zeros(shape, dtype or settings.floatx)
        # Return a tensor of zeros, float32 by default.
    adaptive_average_pool(inputs, output_size, data_format=None)
        = adaptive_pool(reduce_mean, _real(inputs), output_size, _order(data_format))
        # Return images of `output_size`, each element the mean of its share of `inputs`.
    adaptive_max_pool(inputs, output_size, data_format=None)
        = adaptive_pool(reduce_max, inputs, output_size, _order(data_format))
        # Return images of `output_size`, each element the largest of its share of `inputs`.
    cdist(x, y)
        = _distances(*_reals(x, y))
        # Return the distances of each vector of `x` from each of `y`, both (..., rows, size).
    depth_to_space space_to_depth(x, block_size, data_format="channels_last")
        = {}(x, block_size, data_format)
    dot_product_attention(query, key, value, bias=None, mask=None, scale=None, is_causal=False,
        flash_attention=None, attn_logits_soft_cap=None)
        = dot_product_attention(query, key, value, bias, mask, scale, is_causal,
        attn_logits_soft_cap)
        # Return ``softmax(query key' * scale + bias) value`` for each head: (batch, T, N, H) from
        queries of that shape and keys and values (batch, S, K, H), with N a multiple of K. `mask`
        is true where a key is seen. `flash_attention` makes no difference.
    empty(shape, dtype=None) = zeros(shape, dtype or settings.floatx)
        # Return a tensor of `shape` (float32 by default) with any values: here they are zeros.
    empty_like(x, dtype=None) = zeros_like(x, dtype)
        # Return a tensor of the shape and dtype of `x` with any values: here they are zeros.
    extract_sequences(x, sequence_length, sequence_stride)
        = frames(x, sequence_length, sequence_stride)
        # Return the parts of `sequence_length` elements of the last axis that begin at every
        `sequence_stride`.
    fold(x, output_size, kernel_size, dilation=1, padding=0, stride=1)
        = fold(x, output_size, kernel_size, dilation, padding, stride)
    get_item(x, key) = getitem(x, key)  # Return ``x[key]``.
    in_top_k(targets, predictions, k) = in_top_k(targets, predictions, k)
    multi_hot(inputs, num_classes=None, axis=-1, dtype=None, sparse=False)
        = _multi_hot(inputs, num_classes, axis, dtype, sparse)
        # Return ones along `axis`, of size `num_classes`, at the classes that rows of integers
        `inputs` name, and zeros elsewhere; float32 by default.
    polar(abs_, angle) = _of_polar(*_reals(abs_, angle))
        # Return complex numbers from their absolute values and angles.
    psnr(x1, x2, max_val) = _signal_to_noise(*_reals(x1, x2), max_val)
        # Return ``20 log10(max_val) - 10 log10(mean((x1 - x2)**2))``, in decibels.
    rearrange(tensor, pattern, **axes_lengths) = _by_pattern(tensor, pattern, axes_lengths)
        # Return `tensor` with axes named, split, joined and moved as `pattern` says, for example
        "b (h w) c -> b h w c" with ``h=2``. Raises InvalidArgumentError for a pattern that does not
        fit.
    saturate_cast(x, dtype) = saturate_cast(x, dtype)
    separable_conv(inputs, depthwise_kernel, pointwise_kernel, strides=1, padding="valid",
        data_format=None, dilation_rate=1)
        = conv(depthwise_conv(inputs, depthwise_kernel, strides, padding, _order(data_format),
        dilation_rate), pointwise_kernel, 1, "valid", _order(data_format))
        # Return `depthwise_conv` followed by a convolution with a `pointwise_kernel` of size 1.
    unfold(x, kernel_size, dilation=1, padding=0, stride=1)
        = unfold(x, kernel_size, dilation, padding, stride)
    view(x, dtype=None) = bitcast(x, dtype)
        # Return the bits of `x` read as another `dtype`; the last axis grows or shrinks with the
        size of elements. It has no gradient.
    view_as_complex(x) = complex_of_pairs(_real(x))
        # Return complex numbers from pairs of real and imaginary parts along the last axis.
    view_as_real(x) = stack([real(x), imag(x)], -1)
        # Return the real and the imaginary parts of `x` along a new last axis.
"""
_OF_NUMPY = """
    allclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False)
        = reduce_all(_np_isclose(*convert_each(x1, x2), rtol, atol, equal_nan))
        # Return whether no element differs by more than ``atol + rtol * abs(x2)``, as a tensor.
    angle(x) = _np_angle(_real(x))
        # Return the angle of complex numbers in the plane, in radians.
    argpartition(x, kth, axis=-1) = cast(argsort(*flattened(x, axis)), int32)
        # Return the indices (int32) that sort `x` along `axis`, or flattened if it is None: one of
        the orders that a partition may have.
    bincount(x, weights=None, minlength=0, sparse=False)
        = _bin_counts(x, weights, minlength, sparse)
        # Return how often each of 0, 1, 2, ... occurs in the integers `x`, along the last axis, as
        int32; or the sums of their `weights`.
    deg2rad(x) = multiply(_real(x), np.pi / 180)
        # Convert angles from degrees to radians.
    digitize(x, bins) = _digits(x, bins)
        # Return how many of the ascending `bins` are at most `x`, as int32.
    erfc(x) = erfc(_real(x))
    fabs(x) = absolute(_real(x))
        # Return the absolute values of real numbers, in floating point.
    fmax(x1, x2) = _np_fmax(*convert_each(x1, x2))
        # Return the larger of both, the other where one is NaN; in a tie `x1` has the gradient.
    fmin(x1, x2) = _np_fmin(*convert_each(x1, x2))
        # Return the smaller of both, the other where one is NaN; in a tie `x1` has the gradient.
    fmod(x1, x2) = _np_fmod(*convert_operands((x1, x2)))
        # Return the remainder of ``x1 / x2``, with the sign of `x1`; the operands broadcast.
    geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0)
        = _geometric(start, stop, num, endpoint, dtype, axis)
        # Return `num` numbers from `start` to `stop`, each the same multiple of the one before.
    heaviside(x1, x2) = _np_heaviside(*_reals(x1, x2))
        # Return 0 where `x1` is negative, 1 where positive, `x2` where it is 0; NaN where it is.
    histogram(x, bins=10, range=None) -> tuple[Tensor, Tensor] = _counts(x, bins, range)
        # Return how many elements of `x` lie in each of so many `bins` of one width (or between
        edges), in the dtype of `x`, and their edges. `range` is by default from the least to the
        largest.
    isin(x1, x2, assume_unique=False, invert=False)
        = _np_isin(*convert_each(x1, x2), assume_unique, invert)
        # Return whether each element of `x1` is one of `x2`; with `invert` whether it is none.
    isneginf isposinf isreal(x) = _np_{}(convert(x))
        # Return whether `x` is -inf, +inf, or without an imaginary part, as the name says.
    ldexp(x1, x2) = _np_ldexp(_real(x1), convert(x2))
        # Return ``x1 * 2**x2`` for integers `x2`; the operands broadcast.
    logaddexp2(x1, x2) = _np_logaddexp2(*_reals(x1, x2))
        # Return ``log2(2**x1 + 2**x2)`` without overflow; the operands broadcast.
    logspace(start, stop, num=50, endpoint=True, base=10, dtype=None, axis=0)
        = cast(_np_logspace(start, stop, num, endpoint, base, None, axis),
        dtype or _of_ends(start, stop))
        # Return `base` to the powers of `num` evenly spaced numbers from `start` to `stop`.
    nonzero(x) -> list[Tensor] = _true_coordinates(not_equal(x, 0))
        # Return the coordinates (int32) of what is not 0, one tensor for each axis.
    ptp(x, axis=None, keepdims=False)
        = subtract(reduce_max(x, axis, keepdims), reduce_min(x, axis, keepdims))
        # Return the difference of the largest and smallest element over axes.
    rad2deg(x) = multiply(_real(x), 180 / np.pi)
        # Convert angles from radians to degrees.
    searchsorted(sorted_sequence, values, side="left")
        = cast(_np_searchsorted(*convert_each(sorted_sequence, values), side), int32)
        # Return where each of `values` stands in `sorted_sequence` (int32): before those equal to
        it, or with side="right" behind them.
    signbit(x) = _np_signbit(convert(x))  # Return whether `x` is negative, -0.0 included.
    trunc(x) = _np_trunc(convert(x))  # Return `x` rounded towards zero. It has no gradient.
    unique(x, sorted=True, return_index=False, return_inverse=False, return_counts=False,
        axis=None, size=None, fill_value=None) -> Tensor | Any
        = _different(x, return_index, return_inverse, return_counts, axis, size, fill_value)
        # Return the different elements of `x` in ascending order, or its rows along `axis`, cut or
        filled to `size`; and, as asked, where the first of each stands, which of them each element
        is, and how many there are (int32).
    unravel_index(indices, shape) -> list[Tensor]
        = [constant(one, int32) for one in np.unravel_index(_values(indices), shape)]
        # Return the coordinates (int32) of elements at `indices` in row-major order, one tensor for
        each axis of `shape`.
    append(x1, x2, axis=None) = _np_append(*convert_each(x1, x2), axis)
        # Return `x2` joined to the end of `x1` along `axis`; both flattened if it is None.
    average(x, axis=None, weights=None)
        = _np_average(_real(x), axis)
        if weights is None
        else _weighted(*_reals(x, weights), axis)
        # Return the mean of elements over axes, each counted as often as `weights` say.
    corrcoef(x) = _np_corrcoef(_real(x))
        # Return the correlation coefficients of the rows of `x`.
    correlate(x1, x2, mode="valid") = _np_correlate(*convert_each(x1, x2), mode)
        # Return the cross-correlation of two 1-D tensors: "valid", "same" or "full".
    count_nonzero(x, axis=None) = cast(reduce_sum(cast(not_equal(x, 0), int32), axis), int32)
        # Return how many elements over axes are not 0, as int32.
    cross(x1, x2, axisa=-1, axisb=-1, axisc=-1, axis=None)
        = _np_cross(*convert_each(x1, x2), axisa, axisb, axisc, axis)
        # Return the cross products of vectors of 3 elements along the given axes; the others
        broadcast.
    diag(x, k=0) = _np_diag(convert(x), k)
        # Return the diagonal `k` of a matrix, or the matrix that has a vector there.
    diagflat(x, k=0) = _np_diag(reshape(x, (-1,)), k)
        # Return the matrix that has the elements of `x` on its diagonal `k`.
    diagonal(x, offset=0, axis1=0, axis2=1) = _np_diagonal(convert(x), offset, axis1, axis2)
        # Return the diagonals `offset` of the matrices along two axes, along a last axis.
    diff(a, n=1, axis=-1) = _np_diff(convert(a), n, axis)
        # Return the differences of neighbours along `axis`, `n` times.
    dot(x1, x2) = _np_dot(*convert_each(x1, x2))
        # Return the sum of products over the last axis of `x1` and the second last (or only) of
        `x2`.
    dsplit(x, indices_or_sections) -> list[Tensor] = _np_dsplit(convert(x), indices_or_sections)
        # Return the parts of `x` along its third axis between indices, or a number of equal ones.
    dstack(xs) = concatenate([_np_atleast_3d(x) for x in convert_each(*xs)], 2)
        # Return tensors of at least three axes joined along the third.
    flip(x, axis=None) = _np_flip(convert(x), axis)
        # Return `x` in reverse order along axes, by default all.
    fliplr(x) = _np_flip(convert(x), 1)
        # Return `x` in reverse order along its second axis.
    flipud(x) = _np_flip(convert(x), 0)
        # Return `x` in reverse order along its first axis.
    hsplit(x, indices_or_sections) -> list[Tensor] = _np_hsplit(convert(x), indices_or_sections)
        # Return the parts of `x` along its second axis, or the only one, between indices.
    hstack(xs) = _np_hstack(convert_each(*xs))
        # Return tensors side by side: joined along the second axis, 1-D ones along the first.
    inner(x1, x2) = _np_inner(*convert_each(x1, x2))
        # Return the sum of products over the last axes of `x1` and `x2`.
    isclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False)
        = _np_isclose(*convert_each(x1, x2), rtol, atol, equal_nan)
        # Return whether elements differ by no more than ``atol + rtol * abs(x2)``.
    kron(x1, x2) = _np_kron(*convert_each(x1, x2))
        # Return the Kronecker product: `x2` times each element of `x1`, as blocks.
    matrix_rank(x, tol=None) = cast(matrix_rank(x, tol), int32)
        # Return the number (int32) of singular values above `tol`, by default a multiple of the
        largest. It has no gradient.
    median(x, axis=None, keepdims=False) = _np_median(_real(x), axis, keepdims=keepdims)
        # Return the median of elements over axes.
    meshgrid(*x, indexing="xy") -> list[Tensor]
        = list(_np_meshgrid(*builtins.map(convert, x), indexing=indexing))
        # Return the coordinates of the points of a grid, a tensor for each axis; `indexing` is "xy"
        or "ij".
    moveaxis(x, source, destination) = _np_moveaxis(convert(x), source, destination)
        # Return `x` with axes `source` moved to `destination`, the others in their order.
    nan_to_num(x, nan=0.0, posinf=None, neginf=None)
        = _np_nan_to_num(convert(x), nan=nan, posinf=posinf, neginf=neginf)
        # Return `x` with NaN and infinities replaced, by default by 0 and the largest finite
        numbers.
    nanargmax(x, axis=None, keepdims=False)
        = _position(argmax, x, -np.inf, axis, keepdims)
        # Return positions (int32) of the largest elements along `axis` that are not NaN; by
        default in the flattened tensor.
    nanargmin(x, axis=None, keepdims=False)
        = _position(argmin, x, np.inf, axis, keepdims)
        # Return positions (int32) of the smallest elements along `axis` that are not NaN; by
        default in the flattened tensor.
    nancumprod(x, axis=None, dtype=None) = _np_nancumprod(_widen(x), axis, dtype or _widen(x).dtype)
        # Return the products of all elements up to each along `axis`, without those that are NaN.
    nancumsum(x, axis=None, dtype=None) = _np_nancumsum(_widen(x), axis, dtype or _widen(x).dtype)
        # Return the sums of all elements up to each along `axis`, without those that are NaN.
    nanmax(x, axis=None, keepdims=False) = _np_nanmax(convert(x), axis, keepdims=keepdims)
        # Return the largest elements over axes that are not NaN.
    nanmin(x, axis=None, keepdims=False) = _np_nanmin(convert(x), axis, keepdims=keepdims)
        # Return the smallest elements over axes that are not NaN.
    nanmean(x, axis=None, keepdims=False) = _np_nanmean(_real(x), axis, keepdims=keepdims)
        # Return the mean over axes of the elements that are not NaN.
    nanmedian(x, axis=None, keepdims=False) = _np_nanmedian(_real(x), axis, keepdims=keepdims)
        # Return the median over axes of the elements that are not NaN.
    nanstd(x, axis=None, keepdims=False) = _np_nanstd(_real(x), axis, keepdims=keepdims)
        # Return the standard deviation over axes of the elements that are not NaN.
    nanvar(x, axis=None, keepdims=False) = _np_nanvar(_real(x), axis, keepdims=keepdims)
        # Return the variance over axes of the elements that are not NaN.
    nanpercentile(x, q, axis=None, method="linear", keepdims=False)
        = _np_nanpercentile(_real(x), q, axis, method=method, keepdims=keepdims)
        # Return the elements below which `q` percent of those lie that are not NaN, over axes.
    nanquantile(x, q, axis=None, method="linear", keepdims=False)
        = _np_nanquantile(_real(x), q, axis, method=method, keepdims=keepdims)
        # Return the elements below which the share `q` of those lie that are not NaN, over axes.
    nanprod(x, axis=None, keepdims=False)
        = cast(_np_nanprod(_widen(x), axis, keepdims=keepdims), _widen(x).dtype)
        # Return the product over axes of the elements that are not NaN.
    nansum(x, axis=None, keepdims=False)
        = cast(_np_nansum(_widen(x), axis, keepdims=keepdims), _widen(x).dtype)
        # Return the sum over axes of the elements that are not NaN.
    outer(x1, x2) = _np_outer(*convert_each(x1, x2))
        # Return the products of each element of `x1` with each of `x2`, both flattened: a matrix.
    percentile(x, q, axis=None, method="linear", keepdims=False)
        = _np_percentile(_real(x), q, axis, method=method, keepdims=keepdims)
        # Return the elements below which `q` percent of them lie, over axes.
    pinv(x, rcond=None) = pinv(x, rcond)
    quantile(x, q, axis=None, method="linear", keepdims=False)
        = _np_quantile(_real(x), q, axis, method=method, keepdims=keepdims)
        # Return the elements below which the share `q` of them lies, over axes.
    repeat(x, repeats, axis=None) = _np_repeat(convert(x), repeats, axis)
        # Return `x` with each slice along `axis` repeated; flattened if it is None.
    roll(x, shift, axis=None) = _np_roll(convert(x), shift, axis)
        # Return `x` with its elements moved by `shift` along `axis`; the last come first.
    rot90(array, k=1, axes=(0, 1)) = _np_rot90(convert(array), k, axes)
        # Return `array` turned by `k` times 90 degrees in the plane of two axes.
    swapaxes(x, axis1, axis2) = _np_swapaxes(convert(x), axis1, axis2)
        # Return `x` with two axes exchanged.
    tile(x, repeats) = _np_tile(convert(x), repeats)
        # Return `x` side by side, `repeats` times along each axis.
    trace(x, offset=0, axis1=0, axis2=1)
        = reduce_sum(_widen(_np_diagonal(convert(x), offset, axis1, axis2)), -1)
        # Return the sums of the diagonals of the matrices along two axes.
    trapezoid(y, x=None, dx=1.0, axis=-1)
        = _np_trapezoid(_real(y), x if x is None else _real(convert_each(x, y)[0]), dx, axis)
        # Return the integral of `y` along `axis` by the trapezoidal rule.
    tri(N, M=None, k=0, dtype=None) = cast(constant(np.tri(N, M, k)), dtype or settings.floatx)
        # Return `N` by `M` ones on and below the diagonal `k`, and zeros above it.
    tril(x, k=0) = _np_tril(convert(x), k)
        # Return `x` with zeros above the diagonal `k`.
    triu(x, k=0) = _np_triu(convert(x), k)
        # Return `x` with zeros below the diagonal `k`.
    vander(x, N=None, increasing=False) = _np_vander(convert(x), N, increasing)
        # Return the powers of the elements of a vector, the highest first unless `increasing`, as
        rows.
    vdot(x1, x2) = _np_vdot(*convert_each(x1, x2))
        # Return the sum of products of all elements, those of a complex `x1` conjugated.
    select(condlist, choicelist, default=0)
        = _np_select(condlist, convert_each(*choicelist, default)[:-1], default)
        # Return elements of the first of `choicelist` whose condition holds, else `default`; all
        broadcast.
    vectorize(pyfunc, *, excluded=None, signature=None) -> Any
        = _vectorized(pyfunc, excluded or (), signature)
        # Return a function that calls `pyfunc` for each element of its arguments, or for the axes
        that `signature` names; see ``numpy.vectorize``.
    vsplit(x, indices_or_sections) -> list[Tensor] = _np_vsplit(convert(x), indices_or_sections)
        # Return the parts of `x` along its first axis between indices, or a number of equal ones.
    vstack(xs) = _np_vstack(convert_each(*xs))
        # Return tensors one above the other: joined along the first axis, 1-D ones as rows.
"""
# Those that are NumPy's but for their dtypes: lists of Python's floats are float32 here.
for _name in [*re.findall(r"_np_(\w+)\(", _OF_NUMPY), "isneginf", "isposinf", "isreal"]:
    globals()[f"_np_{_name}"] = getattr(numpy, _name)
_READINGS = {
    1: "(x) = {}(x)",
    2: "(x1, x2) = {}(x1, x2)",
    -1: "(x) = {}(_real(x))",
    -2: "(x1, x2) = {}(*_reals(x1, x2))",
}
spell(
    globals(),
    _TABLE + _OF_NUMPY,
    readers=("_real", "_reals", "_order"),
    records="keras.ops",
    readings=_READINGS,
)
