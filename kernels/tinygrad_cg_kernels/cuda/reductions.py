"""Reductions, moments and positions of extremes on the device."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.cuda import adapter
from tinygrad_cg_kernels.cuda.elementwise import Map, same, truth
from tinygrad_cg_kernels.cuda.folds import Fold
from tinygrad_cg_kernels.move.scatter import limits
from tinygrad_cg_kernels.reduce import moments, search, softmax
from tinygrad_cg_kernels.reduce.axes import reduced_shape
from tinygrad_cg_kernels.reduce.combine import add, larger, smaller
from tinygrad_cg_kernels.reduce.exponentials import finite
from tinygrad_cg_kernels.reduce.moments import Moment
from tinygrad_cg_kernels.reduce.reduction import Reduction
from tinygrad_cg_kernels.reduce.search import ArgReduction
from tinygrad_cg_kernels.reduce.softmax import LogSumExp
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.promotion import INT64, is_complex, loop_dtype, native, no_kernel


class DeviceReduction:
    """A CPU reduction for device arrays, with the same arguments, dtypes, shapes and errors."""

    def __init__(self, kernel: Reduction) -> None:
        assert kernel.of_two is not None
        self._kernel = kernel
        self._fold = Fold(truth if kernel.kind == "logical" else same, kernel.of_two)

    def __call__(self, x: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
        """Reduce `x` over `axes`."""
        kernel, logical = self._kernel, self._kernel.kind == "logical"
        result, shape = kernel.result_dtype(x.dtype), reduced_shape(x.shape, axes, keepdims)
        loop = native(kernel.name, x.dtype) if logical else loop_dtype(result)
        alone = not logical and all(x.shape[axis] == 1 for axis in axes)
        if kernel.kind == "order" and is_complex(loop):
            everything = x.ndim and len(axes) == x.ndim and not keepdims
            if everything or (x.size and not alone):
                raise TypeError(no_kernel(kernel.name, loop))
        if not x.size and prod(shape) and kernel.identity is None:
            raise ValueError(f"{kernel.name} of an empty axis has no identity")
        if alone:
            return x.astype(result).reshape(shape)
        start = kernel.identity
        if start is None:
            start = limits(loop)[0 if kernel.of_two is larger else 1]
        out = self._fold((x,), axes, loop, start, keepdims, result if logical else loop)
        return out.astype(result, copy=False)


@jitable
def exp_of_finite(x: Any, shift: Any) -> Any:
    return elementary.exp(x - finite(shift))


@jitable
def _plus_log(shift: Any, total: Any) -> Any:
    return finite(shift) + elementary.log(total)


_largest = Fold(same, larger)
_smallest = Fold(same, smaller)
_exp_sum = Fold(exp_of_finite, add)
_log_of_sum = Map("logsumexp", _plus_log)


def _logsumexp(x: Any, axes: tuple[int, ...], loop: np.dtype) -> Any:
    """Return log(sum(exp(x))), without overflow."""
    shift = _largest((x,), axes, loop, -np.inf)
    return _log_of_sum((shift, _exp_sum((x, shift), axes, loop, 0)), loop, loop)


@jitable
def _square_about_mean(x: Any, total: Any, count: Any) -> Any:
    centred = x - total / count
    return centred * centred


@jitable
def _scale(total: Any, least: Any, largest: Any, factor: Any) -> Any:
    one = factor / factor
    return factor if total < least else (one / factor if total > largest else one)


@jitable
def _unscaled_root(total: Any, scale: Any) -> Any:
    return elementary.sqrt(total) / scale


_sum = Fold(same, add)
_squares_about_mean = Fold(_square_about_mean, add)
_scaled_squares = Fold(moments.scaled_square, add)
_scale_of_total = Map("scale", _scale)
_root = Map("root", _unscaled_root)
_quotient = Map("quotient", elementary.divide)


def _variance(x: Any, axes: tuple[int, ...], loop: np.dtype) -> Any:
    count = adapter.array_module().full((), prod([x.shape[axis] for axis in axes]), dtype=loop)
    squares = _squares_about_mean((x, _sum((x,), axes, loop, 0), count), axes, loop, 0)
    return _quotient((squares, count), loop, loop)


def _norm(x: Any, axes: tuple[int, ...], loop: np.dtype) -> Any:
    """Return the norm. The first sum of squares says whether elements have to be scaled."""
    full = adapter.array_module().full
    one, *limits = (full((), number, dtype=loop) for number in (1.0, *moments.SQUARES[loop]))
    total = _scaled_squares((x, one), axes, loop, 0)
    scale = _scale_of_total((total, *limits), loop, loop)
    return _root((_scaled_squares((x, scale), axes, loop, 0), scale), loop, loop)


_SEVERAL: dict[Any, Callable[..., Any]] = {
    softmax.logsumexp: _logsumexp,
    moments.variance: _variance,
    moments.norm: _norm,
}
"""By kernel, the function that makes several launches."""


class DeviceMoment:
    """logsumexp, variance or Euclidean norm over axes."""

    def __init__(self, kernel: LogSumExp | Moment) -> None:
        self._kernel, self._run = kernel, _SEVERAL[kernel]

    def __call__(self, x: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
        """Reduce `x` over `axes`."""
        result = self._kernel.result_dtype(x.dtype)
        shape = reduced_shape(x.shape, axes, keepdims)
        if not x.size:
            return adapter.array_module().full(shape, self._kernel.identity, dtype=result)
        out = self._run(x, axes, loop_dtype(result))
        return out.reshape(shape).astype(result, copy=False)


_NOWHERE = np.iinfo(np.int64).max


@jitable
def _position(x: Any, best: Any, position: Any) -> Any:
    is_best = x == best or (x != x and best != best)
    return position if is_best else np.int64(_NOWHERE)


_first_position = Fold(_position, smaller)


class DeviceArgReduction:
    """The index of the best element along one axis. The first of equals wins, and nan is best."""

    def __init__(self, kernel: ArgReduction) -> None:
        self._kernel = kernel
        self._fold, self._limit = (_largest, 0) if kernel is search.argmax else (_smallest, 1)

    def __call__(self, x: Any, axis: int, keepdims: bool = False) -> Any:
        """Return indices along `axis`, which is dropped (or kept as 1)."""
        kernel = self._kernel
        loop = loop_dtype(native(kernel.name, x.dtype))
        library = adapter.array_module()
        shape = reduced_shape(x.shape, (axis,), keepdims)
        if not prod(shape):
            return library.empty(shape, dtype=INT64)
        if not x.size:
            raise ValueError(f"{kernel.name} of an empty axis has no identity")
        if is_complex(loop):
            raise TypeError(no_kernel(kernel.name, loop))
        best = self._fold((x,), (axis,), loop, limits(loop)[self._limit])
        positions = library.arange(x.shape[axis], dtype=INT64)
        operands = x, best, positions.reshape(-1, *(1,) * (x.ndim - 1 - axis))
        return _first_position(operands, (axis,), loop, _NOWHERE, keepdims, INT64)
