"""Elementwise kernels on the device, made from the scalar functions of the CPU's kernels.

A kernel is a loop over the result's elements, which all threads of the grid share. Operands are
vectors of memory. In a flat kernel, each is a row of all elements or one value. Otherwise,
positions follow from the result's index, and from sizes and steps, which are arguments. Loads
convert elements to the dtype of the computation, so no operand is copied.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tinygrad_cg_kernels.cuda import adapter, launches
from tinygrad_cg_kernels.cuda.adapter import cuda  # noqa: F401 (the simulator looks for it here)
from tinygrad_cg_kernels.cuda.layouts import DeviceLayout, merge, walk
from tinygrad_cg_kernels.loops.engine import DtypeSignature, Elementwise, Pointwise
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.promotion import broadcast_shapes, loop_dtype, no_kernel
from tinygrad_cg_kernels.runtime.texts import compiled, digest, title_of

_FLAT = """
def kernel(count, {parameters}):
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        {assign}
"""
_STRIDED = """
def kernel(count, sizes, {parameters}):
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        {begin}
        {walk}
        {assign}
"""


def _assignment(inputs: int, outputs: int, loads: Sequence[str]) -> str:
    """Return the statements that compute one element of each output."""
    arguments = ", ".join(f"c{k}({load})" for k, load in enumerate(loads))
    if outputs == 1:
        return f"r0[i] = f({arguments})"
    values = ", ".join(f"v{k}" for k in range(outputs))
    stores = "; ".join(f"r{k}[i] = v{k}" for k in range(outputs))
    return f"{values} = f({arguments}); {stores}"


def _flat_source(rows: tuple[bool, ...], outputs: int) -> str:
    inputs = range(len(rows))
    names = [f"x{k}" for k in inputs] + [f"r{k}" for k in range(outputs)]
    loads = [f"x{k}[i]" if rows[k] else f"x{k}[0]" for k in inputs]
    assign = _assignment(len(rows), outputs, loads)
    return _FLAT.format(parameters=", ".join(names), assign=assign)


def _strided_source(inputs: int, outputs: int) -> str:
    operands = range(inputs)
    names = [f"x{k}, s{k}, o{k}" for k in operands] + [f"r{k}" for k in range(outputs)]
    return _STRIDED.format(
        parameters=", ".join(names),
        begin="; ".join(f"p{k} = o{k}" for k in operands),
        walk=walk("i", "sizes", [(f"p{k}", f"s{k}") for k in operands], 2),
        assign=_assignment(inputs, outputs, [f"x{k}[p{k}]" for k in operands]),
    )


@jitable
def same(x: Any) -> Any:
    return x


@jitable
def truth(x: Any) -> Any:
    return x != 0


def converter(source: np.dtype, target: np.dtype) -> Callable:
    """Return a device function that converts a number."""
    if source == target:
        return adapter.device_function(same)
    return adapter.device_function(truth) if target.kind == "b" else target.type


def define(source: str, names: dict[str, Any], module: dict[str, Any]) -> launches.DeviceKernel:
    """Return the kernel that a text defines. It closes over the values of `names`.

    Its globals are those of `module`, in which the simulator looks for `cuda`.
    """
    text = f"def make({', '.join(names)}):" + source.replace("\n", "\n    ")
    code, scope = compiled(f"{text}\n    return kernel\n", title_of("device kernel")), {}
    exec(code, module, scope)
    kernel = scope["make"](**names)
    kernel.__qualname__ = f"kernel_{digest(text)}"
    return launches.DeviceKernel(adapter.device_kernel(kernel))


MAX_PLANS = 512
"""A function keeps its launches for this many combinations of dtypes, shapes and strides."""


def keep(plans: dict[tuple, Any], key: tuple, plan: Any) -> Any:
    """Keep a plan, and return it; the others are dropped if they are too many."""
    if len(plans) >= MAX_PLANS:
        plans.clear()
    plans[key] = plan
    return plan


def layout_of(arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Return the dtypes, shapes and strides of arrays, as a key."""
    key: tuple[Any, ...] = ()
    for array in arrays:
        key += (array.dtype, array.shape, array.strides)
    return key


def aligned(arrays: Sequence[Any]) -> Sequence[Any]:
    """Return arrays whose strides are multiples of elements: copies of others, as of fields."""
    for array in arrays:
        itemsize = array.dtype.itemsize
        for stride in array.strides:
            if stride % itemsize:
                copied = adapter.array_module().ascontiguousarray
                return [copied(x) for x in arrays]
    return arrays


class Plan:
    """What a function does for operands of some dtypes, shapes and strides."""

    def __init__(self, shape: tuple[int, ...], dtypes: Sequence[np.dtype], launch: Any) -> None:
        self._shape, self._dtypes, self._launch = shape, dtypes, launch

    def __call__(self, arrays: Sequence[Any], outs: Sequence[Any] = ()) -> list[Any]:
        """Fill `outs`, or return new arrays."""
        if not outs:
            make, shape = adapter.array_module().empty, self._shape
            outs = [make(shape, dtype=dtype) for dtype in self._dtypes]
        if self._launch is not None:
            self._launch((*arrays, *outs))
        return list(outs)

    def one(self, arrays: Sequence[Any]) -> Any:
        """Return the only result, a new array."""
        out = adapter.array_module().empty(self._shape, dtype=self._dtypes[0])
        if self._launch is not None:
            self._launch((*arrays, out))
        return out


class Map:
    """A scalar function made into kernels, with any number of operands and outputs.

    `kernel` is the CPU's kernel, for the simulator (see `adapter.scalar_function`).
    """

    def __init__(self, name: str, function: Callable, kernel: Elementwise | None = None) -> None:
        self.name, self._function, self._kernel = name, function, kernel
        self._kernels: dict[tuple, Any] = {}
        self._plans: dict[tuple, Plan] = {}

    def __call__(
        self,
        arrays: Sequence[Any],
        loop: Sequence[np.dtype],
        results: Sequence[np.dtype],
        outs: Sequence[Any] = (),
    ) -> list[Any]:
        """Return new arrays of dtypes `results`, or fill `outs`. Operands are cast to `loop`."""
        arrays = aligned(arrays)
        return self.plan(arrays, loop, results)(arrays, outs)

    def plan(
        self, arrays: Sequence[Any], loop: Sequence[np.dtype], results: Sequence[np.dtype]
    ) -> Plan:
        """Return what to do for arrays such as these."""
        key = layout_of(arrays), tuple(loop), tuple(results)
        plan = self._plans.get(key)
        if plan is None:
            plan = keep(self._plans, key, self._make_plan(arrays, loop, results))
        return plan

    def _make_plan(
        self, arrays: Sequence[Any], loop: Sequence[np.dtype], results: Sequence[np.dtype]
    ) -> Plan:
        extents: Any = [adapter.extent(x.dtype.itemsize, x.shape, x.strides) for x in arrays]
        layout = self._merge(arrays, extents)
        if not layout.count:
            return Plan(layout.shape, results, None)
        dtypes = tuple([array.dtype for array in arrays])
        kernel = self._kernel_for(dtypes, tuple(loop), layout, len(results))
        places = [
            (launches.Place(dtype, offset, count), steps, first)
            for dtype, (offset, count, steps, first) in zip(dtypes, extents, strict=True)
        ]
        targets = [launches.Place(dtype, 0, layout.count) for dtype in results]
        arguments = _arguments(layout, places, targets)
        launch = launches.Prepared(kernel, adapter.blocks_for(layout.count), arguments)
        return Plan(layout.shape, results, launch)

    def _kernel_for(
        self, dtypes: tuple[np.dtype, ...], loop: tuple, layout: DeviceLayout, outputs: int
    ) -> launches.DeviceKernel:
        key = dtypes, loop, layout.flat, outputs
        kernel = self._kernels.get(key)
        if kernel is None:
            source = (
                _strided_source(len(dtypes), outputs)
                if layout.flat is None
                else _flat_source(layout.flat, outputs)
            )
            function = adapter.scalar_function(self._function, self._kernel)
            pairs = enumerate(zip(dtypes, loop, strict=True))
            names = {"f": function, **{f"c{k}": converter(*pair) for k, pair in pairs}}
            kernel = self._kernels[key] = define(source, names, globals())
        return kernel

    def _merge(self, arrays: Sequence[Any], extents: Sequence[tuple]) -> DeviceLayout:
        try:
            return merge(
                tuple([array.shape for array in arrays]), tuple([steps for *_, steps, _ in extents])
            )
        except ValueError:
            shapes = " and ".join(str(array.shape) for array in arrays)
            raise ValueError(f"{self.name}: shapes {shapes} do not broadcast") from None


def _arguments(layout: DeviceLayout, parts: Sequence[tuple], targets: Sequence[Any]) -> list[Any]:
    if layout.flat is not None:
        return [layout.count, *[part[0] for part in parts], *targets]
    arguments: list[Any] = [layout.count, layout.sizes]
    for (memory, _, first), steps in zip(parts, layout.steps, strict=True):
        arguments += [memory, steps, first]
    return [*arguments, *targets]


def _refuse_wide(name: str, dtypes: Sequence[np.dtype]) -> None:
    """Raise TypeError for dtypes that devices do not have."""
    for dtype in dtypes:
        if loop_dtype(dtype).char in "gG":
            raise TypeError(f"{no_kernel(name, *dtypes)} on a GPU: cast to float64 first")


class DeviceElementwise:
    """A CPU kernel for device arrays, with the same arguments, dtypes, shapes and errors."""

    def __init__(self, kernel: Elementwise, function: Callable | None = None) -> None:
        self._kernel = kernel
        self._map = Map(kernel.name, function or kernel.function, kernel)
        self._accepted: DtypeSignature | None = None  # the last one that `check_loop` accepted
        self._plans: dict[tuple, Plan] = {}

    def __repr__(self) -> str:
        return f"<device kernel {self._kernel.name}>"

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """Apply the function to arrays, which are broadcast."""
        key = layout_of(arrays)
        plan = self._plans.get(key)
        if plan is not None and out is None:
            return plan.one(arrays)
        kernel = self._kernel
        if len(arrays) != kernel.inputs:
            raise TypeError(f"{kernel.name} takes {kernel.inputs} arrays, got {len(arrays)}")
        signature = kernel._signature(tuple([array.dtype for array in arrays]))
        _refuse_wide(kernel.name, signature.loop)
        if signature.checked and kernel._check is not None:
            kernel._check(kernel.name, *arrays)
        if signature is not self._accepted:
            kernel.check_loop(signature.loop)
            self._accepted = signature
        if out is None:
            results = (signature.result,)
            result = self._map(arrays, signature.loop, results)[0]
            if not (signature.checked and kernel._check is not None) and arrays is aligned(arrays):
                keep(self._plans, key, self._map.plan(arrays, signature.loop, results))
            return result
        self._fill(arrays, signature, out)
        return out

    def _fill(self, arrays: Sequence[Any], signature: Any, out: Any) -> None:
        name, result = self._kernel.name, signature.result
        shape = broadcast_shapes(*[array.shape for array in arrays])
        if out.shape != shape:
            raise ValueError(f"{name}: out has shape {out.shape}, the result {shape}")
        if not np.can_cast(result, out.dtype, "same_kind"):
            raise TypeError(f"{name}: out has dtype {out.dtype}, the result {result}")
        fits = out.dtype == result and out.flags.c_contiguous
        alone = all(array is out or not _may_overlap(array, out) for array in arrays)
        if fits and alone:
            self._map(arrays, signature.loop, (result,), (out,))
        else:
            out[...] = self._map(arrays, signature.loop, (result,))[0]


def _may_overlap(x: Any, y: Any) -> bool:
    """Return whether two arrays may share memory, by the ranges of their addresses."""
    (a, b), (c, d) = _range(x), _range(y)
    return a < d and c < b


def _range(array: Any) -> tuple[int, int]:
    low = high = array.__cuda_array_interface__["data"][0]
    for size, stride in zip(array.shape, array.strides, strict=True):
        low, high = low + min(0, stride * (size - 1)), high + max(0, stride * (size - 1))
    return low, high + array.dtype.itemsize


class DevicePointwise:
    """A user's scalar function, which may return a tuple, for device arrays."""

    def __init__(self, kernel: Pointwise) -> None:
        function = None if kernel.for_device is None else kernel.for_device()
        self._kernel, self._single = kernel, DeviceElementwise(kernel.single, function)

    def __repr__(self) -> str:
        return f"<device kernel {self._kernel.name}>"

    def __call__(self, *arrays: Any) -> Any:
        """Return an array, or a list of them where the function returns a tuple."""
        dtypes = tuple([array.dtype for array in arrays])
        results = self._kernel.result_dtypes(*dtypes)
        if results is None:
            return self._single(*arrays)
        loop = self._kernel.single._signature(dtypes).loop
        _refuse_wide(self._kernel.name, loop)
        return self._single._map(arrays, loop, results)


def elementwise(name: str, function: Callable, dtype: np.dtype) -> Callable[..., Any]:
    """Return a function of arrays that applies `function`, computed in one dtype."""
    kernel = Map(name, function)
    return partial(_apply, kernel, dtype)


def _apply(kernel: Map, dtype: np.dtype, *arrays: Any) -> Any:
    return kernel(arrays, (dtype,) * len(arrays), (dtype,))[0]
