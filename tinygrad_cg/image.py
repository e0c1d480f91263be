"""TensorFlow's ``tf.image.resize``, with derivatives of every order."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ._core.conversion import FLOAT32, convert
from ._core.kinds import is_floating
from ._core.suggestions import refuse_name
from ._core.tensor import Tensor
from ._ops.elementwise import add, multiply, subtract
from ._ops.indexing import gather
from ._ops.shape import cast, expand_dims, squeeze
from ._ops.validation import as_sizes

__all__ = ["ResizeMethod", "resize"]
__dir__ = __all__.copy  # what dir() shows
__getattr__ = partial(refuse_name, __name__)


class ResizeMethod:
    """The names of the methods of `resize`."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"


def resize(
    images: Any,
    size: Any,
    method: str = ResizeMethod.BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return images of another size. Modelled on ``tf.image.resize``.

    Parameters
    ----------
    images:
        (batch, height, width, channels), or (height, width, channels).
    size:
        Two integers: the new height and width; upper limits with `preserve_aspect_ratio`.
    method:
        "bilinear", which gives floats (integers become float32), or "nearest", which keeps the
        dtype. Pixel centres are at half-integers.

    ValueError for another method, and for `antialias`, which is not supported.

    Examples
    --------
    >>> tf.image.resize([[[0.0], [1.0]]], [1, 4])[0, :, 0].numpy()
    array([0.  , 0.25, 0.75, 1.  ], dtype=float32)
    """
    if method not in (ResizeMethod.BILINEAR, ResizeMethod.NEAREST_NEIGHBOR):
        raise ValueError(f'resize: method must be "bilinear" or "nearest", got {method!r}')
    if antialias:
        raise ValueError("resize: antialias=True is not supported: smooth with tf.nn.conv2d first")
    x = convert(images)
    if x.ndim not in (3, 4):
        raise ValueError(f"resize: images must have 3 or 4 axes, got shape {tuple(x.shape)}")
    sizes = as_sizes("resize", size)
    if len(sizes) != 2 or min(sizes) < 1:
        raise ValueError(f"resize: size must be two positive integers, got {sizes}")
    is_one = x.ndim == 3
    x = expand_dims(x, 0) if is_one else x
    if preserve_aspect_ratio:
        factor = min(new / old for new, old in zip(sizes, x.shape[1:3], strict=True))
        sizes = tuple(max(1, round(factor * old)) for old in x.shape[1:3])
    if method == ResizeMethod.BILINEAR and not is_floating(x.dtype):
        x = cast(x, FLOAT32)
    for axis, new in zip((2, 1), reversed(sizes), strict=True):
        x = _along(x, axis, int(new), method)
    return squeeze(x, 0) if is_one else x


def _along(x: Tensor, axis: int, new: int, method: str) -> Tensor:
    """Return images resized along one axis: between two neighbours, or the nearest one."""
    old = x.shape[axis]
    is_nearest = method == ResizeMethod.NEAREST_NEIGHBOR
    kind: Any = np.float32 if is_nearest else np.float64  # so TensorFlow breaks ties
    centres = (np.arange(new, dtype=kind) + kind(0.5)) * kind(old / new)
    if is_nearest:
        return gather(x, np.minimum(np.floor(centres), old - 1).astype(np.int64), axis=axis)
    centres -= 0.5
    low, high = np.floor(centres), np.ceil(centres)  # equal where nothing is between
    share = (centres - low).reshape(-1, *[1] * (3 - axis)).astype(x.dtype)
    first, second = (
        gather(x, np.clip(at, 0, old - 1).astype(np.int64), axis=axis) for at in (low, high)
    )
    return add(first, multiply(subtract(second, first), share))
