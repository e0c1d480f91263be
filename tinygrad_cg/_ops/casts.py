"""Casts with another reading of values than `cast`: within limits, and bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.annotations import DTypeLike, TensorLike
from .._core.conversion import as_dtype, convert, unrounded
from .._core.devices import on_device_of_operands
from .._core.kinds import is_bool, is_complex, is_exact
from .._core.tensor import Tensor
from ..errors import InvalidArgumentError
from .creation import constant
from .elementwise import clip, where
from .shape import cast


def saturate_cast(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """Return `x` as `dtype`, with values beyond its limits at them. NaN as integer is 0.

    Modelled on ``tf.saturate_cast``. The gradient is 0 beyond the limits. Raises TypeError for
    complex numbers that become real.
    """
    x, wanted = convert(unrounded(x)), as_dtype(dtype)
    if is_complex(x.dtype) or is_complex(wanted) or is_bool(x.dtype) or is_bool(wanted):
        if is_complex(x.dtype) and not is_complex(wanted):
            raise TypeError(f"saturate_cast: {x.dtype} cannot be {wanted}: take its real part")
        return cast(x, wanted)
    if np.can_cast(x.dtype, wanted):
        return cast(x, wanted)
    limits: Any = np.iinfo(wanted) if is_exact(wanted) else np.finfo(wanted)
    if is_exact(x.dtype):
        own: Any = np.iinfo(x.dtype)
        low, high = max(int(limits.min), int(own.min)), min(int(limits.max), int(own.max))
        return cast(clip(x, np.array(low, x.dtype), np.array(high, x.dtype)), wanted)
    low, high = (np.array(bound, x.dtype) for bound in (limits.min, limits.max))
    if not is_exact(wanted):
        return cast(clip(x, low, high), wanted)
    if int(high) > int(limits.max):  # rounded up: the limit itself does not fit
        high = np.nextafter(high, np.array(0, x.dtype))
        inside = clip(where(x == x, x, 0), low, high)
        return where(x > high, np.array(limits.max, wanted), cast(inside, wanted))
    return cast(clip(where(x == x, x, 0), low, high), wanted)


@on_device_of_operands
def bitcast(input: TensorLike, type: Any, name: str | None = None) -> Tensor:
    """Return the bits of `input` read as another dtype, as ``numpy.ndarray.view``; no gradient.

    The last axis grows or shrinks with the size of elements. Raises InvalidArgumentError where it
    cannot, TypeError for bool.
    """
    x = convert(input)
    wanted = x.dtype if type is None else as_dtype(type)
    if is_bool(x.dtype) != is_bool(wanted):
        raise TypeError(f"bitcast: {x.dtype} cannot be read as {wanted}: use cast")
    try:
        return constant(np.ascontiguousarray(x._values()).reshape(x.shape).view(wanted))
    except ValueError as error:
        raise InvalidArgumentError(
            f"bitcast: {x.dtype} of shape {tuple(x.shape)} cannot be read as {wanted}: {error}"
        ) from None
