"""The device's counterparts of the CPU's kernels."""

from collections.abc import Callable
from functools import cache
from typing import Any

from tinygrad_cg_kernels.cuda import adapter, bounds, images, moves
from tinygrad_cg_kernels.cuda.elementwise import DeviceElementwise, DevicePointwise
from tinygrad_cg_kernels.cuda.normalisations import DeviceNormalisation
from tinygrad_cg_kernels.cuda.reductions import DeviceArgReduction, DeviceMoment, DeviceReduction
from tinygrad_cg_kernels.cuda.scans import DeviceScan
from tinygrad_cg_kernels.linear import conv, pool
from tinygrad_cg_kernels.linear.matmul import matmul
from tinygrad_cg_kernels.loops.engine import Elementwise, Pointwise
from tinygrad_cg_kernels.move import gather, order, scatter
from tinygrad_cg_kernels.reduce.moments import Moment
from tinygrad_cg_kernels.reduce.reduction import Reduction
from tinygrad_cg_kernels.reduce.scan import Scan
from tinygrad_cg_kernels.reduce.search import ArgReduction
from tinygrad_cg_kernels.reduce.softmax import LogSumExp, Normalisation

_MAKERS: dict[type, Callable[[Any], Callable[..., Any]]] = {
    Elementwise: DeviceElementwise,
    Pointwise: DevicePointwise,
    Reduction: DeviceReduction,
    LogSumExp: DeviceMoment,
    Moment: DeviceMoment,
    ArgReduction: DeviceArgReduction,
    Normalisation: DeviceNormalisation,
    Scan: DeviceScan,
}


def _with_library(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: function(*arguments, library=adapter.array_module())


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    gather.check_positions: bounds.positions,
    gather.gather: moves.gather,
    gather.scatter_add: moves.scatter_add,
    gather.index_add: moves.index_add,
    scatter.flat_positions: moves.flat_positions,
    scatter.last_sources: moves.last_sources,
    scatter.segment_extremum: moves.segment_extremum,
    order.take_along_axis: moves.take_along_axis,
    order.add_along_axis: moves.add_along_axis,
    order.sort: _with_library(order.sort),
    order.argsort: _with_library(order.argsort),
    order.one_hot: moves.one_hot,
    matmul: _with_library(matmul),
    conv.conv: images.conv,
    conv.conv_input: images.conv_input,
    conv.conv_filter: images.conv_filter,
    pool.max_pool: images.max_pool,
    pool.max_pool_indices: images.max_pool_indices,
    pool.mean_pool: images.mean_pool,
    pool.mean_pool_adjoint: images.mean_pool_adjoint,
}


@cache
def _made(kernel: Any) -> Callable[..., Any]:
    return _MAKERS[type(kernel)](kernel)


def device_run(kernel: Any) -> Callable[..., Any] | None:
    """Return the counterpart of a CPU kernel for device arrays; None if there is none.

    It takes the same arguments, and returns arrays of the same dtypes and shapes.
    """
    return _made(kernel) if type(kernel) in _MAKERS else _FUNCTIONS.get(kernel)
