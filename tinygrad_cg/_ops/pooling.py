"""Pooling: the largest or the mean element under a window that moves over images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinygrad_cg_kernels.linear import pool as kpool
from tinygrad_cg_kernels.linear.pool import Window

from .._core.conversion import convert
from .._core.kinds import REAL
from .._core.primitive import Primitive, apply, same_parameters
from .._core.tensor import Aval, Tensor
from ..errors import InvalidArgumentError
from .define import Case, operation
from .indexing import getitem
from .shape import reshape, stack
from .sorting import add_along_axis
from .validation import as_shape
from .windows import ImageLayout

_OVERLAPPING = Window((2, 3), (1, 2), ((1, 0), (1, 1)))
_APART = Window((2, 2), (2, 2))
_CASES = [Case(((2, 3, 5, 2),), {"window": _OVERLAPPING}), Case(((4, 5, 3),), {"window": _APART})]


def _pooled_shape(shape: tuple[int, ...], window: Window) -> tuple[int, ...]:
    return (*shape[:-3], *window.output_size((shape[-3], shape[-2])), shape[-1])


def _max_rule(dy: Tensor, x: Tensor, window: Window) -> Tensor:
    """Return each upstream gradient at the position that its element came from."""
    indices = _max_indices(x, window=window)
    (*lead, height, width, channels), out = x.shape, dy.shape
    flat = (*lead, out[-3] * out[-2], channels)
    scattered = add_along_axis(
        reshape(dy, flat), reshape(indices, flat), (*lead, height * width, channels), len(lead)
    )
    return reshape(scattered, x.shape)


def _of_images(
    kernel: Any, shape: Any, dtype: Any, vjp: Any = None, samples: Any = _CASES, **record: Any
) -> Primitive:
    """Return an operation on images; `shape` and `dtype` give those of the result."""
    return operation(
        kernel.__name__,
        kernel,
        lambda x, **params: Aval(shape(x.shape, **params), dtype(x.dtype)),
        None if vjp is None else (vjp,),
        kernel=kernel,
        batch=same_parameters,
        samples=samples,
        **record,
    )


_max_pool = _of_images(kpool.max_pool, _pooled_shape, np.dtype, _max_rule, dtypes=REAL)
_max_indices = _of_images(
    kpool.max_pool_indices, _pooled_shape, lambda dtype: np.dtype(np.int64), dtypes=REAL
)
_mean_pool = _of_images(
    kpool.mean_pool,
    _pooled_shape,
    kpool.mean_dtype,
    lambda dy, shape, window: _mean_pool_adjoint(dy, window=window, size=(shape[-3], shape[-2])),
    linear=True,
)
_mean_pool_adjoint = _of_images(
    kpool.mean_pool_adjoint,
    lambda shape, window, size: (*shape[:-3], *size, shape[-1]),
    kpool.mean_dtype,
    lambda dy, window: _mean_pool(dy, window=window),
    [
        Case(((2, 3, 3, 2),), {"window": _OVERLAPPING, "size": (3, 5)}),
        Case(((2, 2, 3),), {"window": _APART, "size": (4, 5)}),
    ],
    linear=True,
)


def max_pool(
    x: Any, size: Any, strides: Any = None, padding: Any = "VALID", data_format: Any = None
) -> Tensor:
    """Return the largest element under each window of `size`, channel by channel."""
    return _pool("max_pool", _max_pool, x, size, strides, padding, data_format)


def average_pool(
    x: Any, size: Any, strides: Any = None, padding: Any = "VALID", data_format: Any = None
) -> Tensor:
    """Return the mean of the elements under each window of `size`, channel by channel."""
    return _pool("average_pool", _mean_pool, x, size, strides, padding, data_format)


def _pool(
    name: str, primitive: Any, x: Any, size: Any, strides: Any, padding: Any, data_format: Any
) -> Tensor:
    x = convert(x)
    layout = ImageLayout(name, data_format, x._data.ndim - 2)
    x = layout.images(x)
    span = layout.sizes("the size of the window", size)
    steps = span if strides is None else layout.sizes("strides", strides)
    room = x._data.shape[1], x._data.shape[2]
    window = Window(span, steps, layout.padding(padding, room, span, steps))
    try:
        window.output_size(room)
    except ValueError as error:
        raise InvalidArgumentError(f"{name}: {error}") from None
    return layout.back(apply(primitive, (x,), {"window": window}))


def adaptive_pool(reduce: Callable, x: Any, output_size: Any, data_format: Any = None) -> Tensor:
    """Return images of `output_size`, each element the `reduce` of its share of `x`.

    `reduce` is `reduce_mean` or `reduce_max`; `x` has one to three spatial axes. Element i of n
    covers ``floor(i size / n)`` to ``ceil((i + 1) size / n)``. Modelled on
    ``keras.ops.adaptive_average_pool``. InvalidArgumentError for sizes that do not fit.
    """
    x = convert(x)
    space = x.ndim - 2
    sizes = as_shape("adaptive_pool", output_size)
    sizes = sizes * space if len(sizes) == 1 else sizes
    if space < 1 or len(sizes) != space or min(sizes) < 1:
        raise InvalidArgumentError(
            f"adaptive_pool: output_size must be a positive size for each axis of space of x, got "
            f"{output_size} and shape {tuple(x.shape)}"
        )
    first = 2 if data_format == "channels_first" else 1
    for axis, count in enumerate(sizes, first):
        size = x.shape[axis]
        lines = [
            getitem(x, (slice(None),) * axis + (slice(i * size // count, end),))
            for i in range(count)
            for end in [-(-(i + 1) * size // count)]
        ]
        x = stack([reduce(line, axis) for line in lines], axis)
    return x
