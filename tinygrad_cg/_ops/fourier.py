"""Discrete Fourier transforms, by NumPy's pocketfft.

There are three operations: the complex transform over any axes, and the two between real signals
and half of their spectrum, over one axis. All are linear: their gradients are transforms, too, with
the other direction and the other scale, after the convention of `complex`. Every public function is
made of these three.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime.errstate import cast as cast_array
from tinygrad_cg_kernels.runtime.promotion import loop_dtype

from .._core.annotations import TensorLike
from .._core.conversion import convert
from .._core.kinds import REAL, is_complex, is_exact
from .._core.tensor import Aval, Tensor
from ..errors import InvalidArgumentError
from .complex import conj
from .define import Case, later_axis, operation
from .elementwise import multiply
from .indexing import getitem
from .padding import pad
from .shape import cast, concatenate
from .validation import as_choice, as_int, as_shape, check_kind, normalize_axis

_NORMS = {None: "backward", "backward": "backward", "ortho": "ortho", "forward": "forward"}
_TRANSPOSED_NORM = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
_SIGNAL = np.array([[1 + 2j, 0.5 - 1j, -2j, 3.0], [0.25j, -1 + 1j, 2 + 0.5j, -0.75]])


def _loop_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which an operand is transformed: integers are float64."""
    return np.dtype(np.float64) if is_exact(dtype) else loop_dtype(dtype)


def _complex_dtype(dtype: np.dtype) -> np.dtype:
    return np.result_type(_loop_dtype(dtype), np.complex64)


def _run_fft(x: np.ndarray, axes: tuple[int, ...], inverse: bool, norm: Any) -> np.ndarray:
    transform = np.fft.ifftn if inverse else np.fft.fftn
    return transform(cast_array(x, _loop_dtype(x.dtype)), axes=axes, norm=norm)


_fft = operation(
    "fft",
    _run_fft,
    lambda x, axes, inverse, norm: Aval(x.shape, _complex_dtype(x.dtype)),
    (
        lambda dy, axes, inverse, norm: _fft(
            dy, axes=axes, inverse=not inverse, norm=_TRANSPOSED_NORM[norm]
        ),
    ),
    linear=True,
    batch=lambda params, size: params | {"axes": tuple(axis + 1 for axis in params["axes"])},
    samples=[
        Case(((2, 4),), {"axes": (1,), "inverse": False, "norm": "backward"}, {0: _SIGNAL}),
        Case(((2, 3),), {"axes": (0, 1), "inverse": True, "norm": "backward"}),
        Case(((2, 3, 2),), {"axes": (1,), "inverse": False, "norm": "ortho"}),
    ],
)


def _shape_with(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _counts(shape: tuple[int, ...], axis: int, size: int) -> np.ndarray:
    """Return how often the whole spectrum of `size` elements has each of a half: once or twice."""
    counts = np.full(size // 2 + 1, 2.0)
    counts[0] = 1
    if size % 2 == 0:
        counts[-1] = 1
    return counts.reshape(-1, *[1] * (len(shape) - axis - 1))


def _weigh(x: Tensor, factors: np.ndarray) -> Tensor:
    return multiply(x, factors.astype(x.dtype))


_rfft = operation(
    "rfft",
    lambda x, axis, norm: np.fft.rfft(cast_array(x, _loop_dtype(x.dtype)), axis=axis, norm=norm),
    lambda x, axis, norm: Aval(
        _shape_with(x.shape, axis, x.shape[axis] // 2 + 1), _complex_dtype(x.dtype)
    ),
    (
        lambda dy, shape, axis, norm: _irfft(
            _weigh(dy, 1 / _counts(shape, axis, shape[axis])),
            axis=axis,
            size=shape[axis],
            norm=_TRANSPOSED_NORM[norm],
        ),
    ),
    linear=True,
    analytic=False,
    batch=later_axis,
    dtypes=REAL,
    samples=[
        Case(((2, 5),), {"axis": 1, "norm": "backward"}),
        Case(((4, 2),), {"axis": 0, "norm": "ortho"}),
        Case(((1,),), {"axis": 0, "norm": "forward"}),
    ],
)


def _run_irfft(x: np.ndarray, axis: int, size: int, norm: Any) -> np.ndarray:
    wide = cast_array(x, _complex_dtype(x.dtype))
    return np.fft.irfft(wide, size, axis=axis, norm=norm)


_irfft = operation(
    "irfft",
    _run_irfft,
    lambda x, axis, size, norm: Aval(
        _shape_with(x.shape, axis, size), _complex_dtype(x.dtype).type(0).real.dtype
    ),
    (
        lambda dy, axis, size, norm: _weigh(
            _rfft(dy, axis=axis, norm=_TRANSPOSED_NORM[norm]),
            _counts(dy._data.shape, axis, size),
        ),
    ),
    linear=True,
    analytic=False,
    batch=later_axis,
    samples=[
        Case(((2, 4),), {"axis": 1, "size": 6, "norm": "backward"}, {0: _SIGNAL}),
        Case(((2, 4),), {"axis": 0, "size": 3, "norm": "ortho"}, {0: _SIGNAL}),
        Case(((3, 2),), {"axis": 0, "size": 5, "norm": "forward"}),
    ],
)


# Arguments -----------------------------------------------------------------------------------


def _norm(name: str, norm: Any) -> Any:
    return _NORMS[as_choice(name, "norm", norm, _NORMS)]


def _fit(name: str, x: Tensor, axis: int, size: int) -> Tensor:
    """Return `x` cut at the end of an axis, or continued by zeros, to `size` elements."""
    if size < 1:
        raise InvalidArgumentError(
            f"{name}: a transform needs at least 1 element along axis {axis}, got {size}"
        )
    old = x._data.shape[axis]
    if size < old:
        return getitem(x, (*[slice(None)] * axis, slice(size)))
    if size == old:
        return x
    return pad(x, [(0, size - old if i == axis else 0) for i in range(x._data.ndim)])


def _plan(name: str, x: Tensor, sizes: Any, axes: Any) -> tuple[list, list[int]]:
    """Return the sizes of a transform, None where they stay, and its axes."""
    rank = x._data.ndim
    if sizes is not None:
        if not isinstance(sizes, (list, tuple)):
            sizes = as_shape(name, sizes)
        sizes = [None if size is None or size == -1 else as_int(name, "s", size) for size in sizes]
    if axes is None:
        axes = range(rank) if sizes is None else range(rank - len(sizes), rank)
    dims = [normalize_axis(name, axis, rank) for axis in axes]
    sizes = [None] * len(dims) if sizes is None else sizes
    if len(sizes) != len(dims):
        raise InvalidArgumentError(
            f"{name}: {len(sizes)} sizes are given for {len(dims)} axes: give one for each"
        )
    return sizes, dims


def _along(name: str, x: Any, sizes: Any, axes: Any, norm: Any, inverse: bool) -> Tensor:
    """Return the complex transform over some axes, or its inverse."""
    x = convert(x)
    scale = _norm(name, norm)
    sizes, dims = _plan(name, x, sizes, axes)
    for axis, size in zip(dims, sizes, strict=True):
        x = _fit(name, x, axis, x._data.shape[axis] if size is None else size)
    for group in [tuple(dims)] if len({*dims}) == len(dims) else [(axis,) for axis in dims]:
        if group:
            x = _fft(x, axes=group, inverse=inverse, norm=scale)
    return x if is_complex(x.dtype) else cast(x, _complex_dtype(x.dtype))


def _forward_real(name: str, x: Any, sizes: Any, axes: Any, norm: Any) -> Tensor:
    x = convert(x)
    check_kind(name, "x", x, REAL, "use fft, or take the real part", TypeError)
    scale = _norm(name, norm)
    sizes, dims = _plan(name, x, sizes, axes)
    if not dims:
        raise InvalidArgumentError(f"{name}: needs at least one axis")
    last = dims[-1]
    x = _fit(name, x, last, x._data.shape[last] if sizes[-1] is None else sizes[-1])
    result = _rfft(x, axis=last, norm=scale)
    return _along(name, result, sizes[:-1], dims[:-1], norm, False) if dims[:-1] else result


def _backward_real(name: str, x: Any, sizes: Any, axes: Any, norm: Any) -> Tensor:
    x = convert(x)
    scale = _norm(name, norm)
    sizes, dims = _plan(name, x, sizes, axes)
    if not dims:
        raise InvalidArgumentError(f"{name}: needs at least one axis")
    last, size = dims[-1], sizes[-1]
    if dims[:-1]:
        x = _along(name, x, sizes[:-1], dims[:-1], norm, True)
    size = 2 * (x._data.shape[last] - 1) if size is None else size
    if size < 1:
        raise InvalidArgumentError(f"{name}: the result needs at least 1 element, got {size}")
    x = _fit(name, x, last, size // 2 + 1)
    return _irfft(x, axis=last, size=size, norm=scale)


# Public functions ------------------------------------------------------------------------------


def fft(x: Any, n: Any = None, axis: Any = -1, norm: Any = None) -> Tensor:
    """Return the discrete Fourier transform along `axis`: complex, of `x` cut or padded to `n`.

    Modelled on ``np.fft.fft``: ``sum_k x[k] exp(-2j pi k m / n)``. `norm` says which direction is
    divided by n: "backward" (the inverse one, the default), "forward" (this one) or "ortho" (both,
    by its root). float16, float32 and complex64 give complex64, others complex128. Raises
    InvalidArgumentError for an axis that `x` does not have, another `norm`, and `n` < 1.
    """
    return _along("fft", x, [n], [axis], norm, False)


def ifft(x: Any, n: Any = None, axis: Any = -1, norm: Any = None) -> Tensor:
    """Return the inverse of `fft`: ``sum_k x[k] exp(2j pi k m / n) / n``; same arguments."""
    return _along("ifft", x, [n], [axis], norm, True)


def fftn(x: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Tensor:
    """Return the discrete Fourier transform over several axes, by default all; see `fft`.

    `x` is cut or padded to the sizes `s` along `axes` (None or -1: unchanged), by default the last.
    """
    return _along("fftn", x, s, axes, norm, False)


def ifftn(x: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Tensor:
    """Return the inverse of `fftn`; same arguments."""
    return _along("ifftn", x, s, axes, norm, True)


def rfft(x: Any, n: Any = None, axis: Any = -1, norm: Any = None) -> Tensor:
    """Return the first ``n // 2 + 1`` elements of the transform of real `x` along `axis`.

    The others are their conjugates. Modelled on ``np.fft.rfft``; see `fft` for the arguments.
    Raises TypeError for complex `x`.
    """
    return _forward_real("rfft", x, [n], [axis], norm)


def irfft(x: Any, n: Any = None, axis: Any = -1, norm: Any = None) -> Tensor:
    """Return the real signal of `n` elements whose `rfft` is `x`; see `fft`.

    By default `n` is even: 2 (m - 1) for m elements. Imaginary parts of the first element and, if
    `n` is even, of the last are not read.
    """
    return _backward_real("irfft", x, [n], [axis], norm)


def rfftn(x: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Tensor:
    """Return `rfft` along the last of `axes` and `fft` along the others; see `fftn`."""
    return _forward_real("rfftn", x, s, axes, norm)


def irfftn(x: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Tensor:
    """Return the inverse of `rfftn`: real; see `fftn`."""
    return _backward_real("irfftn", x, s, axes, norm)


def hfft(x: Any, n: Any = None, axis: Any = -1, norm: Any = None) -> Tensor:
    """Return the real spectrum, of `n` elements, of a signal whose second half mirrors its first.

    `x` is the first half; the other is its conjugate. Modelled on ``np.fft.hfft``; see `fft`.
    """
    norm = _TRANSPOSED_NORM[_norm("hfft", norm)]
    return _backward_real("hfft", conj(x), [n], [axis], norm)


def ihfft(x: Any, n: Any = None, axis: Any = -1, norm: Any = None) -> Tensor:
    """Return the first half of the signal whose `hfft` is the real `x`; see `fft`."""
    norm = _TRANSPOSED_NORM[_norm("ihfft", norm)]
    return conj(_forward_real("ihfft", x, [n], [axis], norm))


def fftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> Tensor:
    """Return `x` with the frequency 0 in the middle of each of `axes`, by default of all."""
    return _shift("fftshift", x, axes, lambda size: size - size // 2)


def ifftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> Tensor:
    """Return the inverse of `fftshift`."""
    return _shift("ifftshift", x, axes, lambda size: size // 2)


def _shift(name: str, x: Any, axes: Any, start: Any) -> Tensor:
    """Return `x` rolled along axes so that the element at `start(size)` comes first."""
    x = convert(x)
    rank = x._data.ndim
    chosen: Iterable = range(rank) if axes is None else as_shape(name, axes)
    for axis in [normalize_axis(name, axis, rank) for axis in chosen]:
        first = start(x._data.shape[axis])
        before = (slice(None),) * axis
        parts = getitem(x, (*before, slice(first, None))), getitem(x, (*before, slice(first)))
        x = concatenate(parts, axis)
    return x
