"""A user's primitive on a GPU, by the scalar function of `elementwise` or a CUDA kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from .._core import device_runs, devices
from .._core.tensor import Aval
from ..errors import DeviceError

THREADS = 256
"""In a block, where no configuration is given: one thread for each element of the first result."""


class CudaKernel:
    """A kernel made by ``numba.cuda.jit``, and how it is launched.

    It is called as ``kernel(*inputs, *results, *attributes)``; the names of the last parameters
    say which attributes these are.
    """

    def __init__(self, name: str, cuda: Any) -> None:
        pair = isinstance(cuda, (tuple, list))
        if pair and len(cuda) != 2:
            raise TypeError(
                f"primitive {name!r}: cuda must be a kernel or a pair (kernel, configuration), got "
                f"{len(cuda)} values"
            )
        self.name = name
        self.kernel, self.configuration = cuda if pair else (cuda, None)
        if not hasattr(self.kernel, "__getitem__"):
            raise TypeError(
                f"primitive {name!r}: cuda must be a kernel of CUDA, got {self.kernel!r}: decorate "
                "the function with @numba.cuda.jit"
            )
        if self.configuration is not None and not callable(self.configuration):
            _check_configuration(name, self.configuration)
        function = getattr(self.kernel, "py_func", getattr(self.kernel, "fn", None))
        self._parameters = list(inspect.signature(function).parameters) if function else None

    def run(self, abstract: Callable[..., Any], *arrays: Any, **attrs: Any) -> Any:
        """Return new arrays, which the kernel has filled: one, or a list."""
        avals = [Aval(tuple(array.shape), array.dtype) for array in arrays]
        expected = abstract(*avals, **attrs)
        several = isinstance(expected, list)
        results = expected if several else [expected]
        library = devices.library()
        outs = [library.empty(aval.shape, aval.dtype) for aval in results]
        blocks, threads = self._configure(avals, results, attrs)
        if blocks:
            ins = [library.ascontiguousarray(array) for array in arrays]
            values = [*ins, *outs, *self._attributes(len(ins) + len(outs), attrs)]
            devices.adapter().launch(self.kernel, blocks, values, threads)
        return outs if several else outs[0]

    def _configure(
        self, avals: Sequence[Aval], results: Sequence[Aval], attrs: dict[str, Any]
    ) -> tuple[Any, Any]:
        if self.configuration is None:
            return -(-prod(results[0].shape) // THREADS), THREADS
        if not callable(self.configuration):
            return self.configuration
        return _check_configuration(self.name, self.configuration(*avals, **attrs))

    def _attributes(self, start: int, attrs: dict[str, Any]) -> list[Any]:
        if self._parameters is None:
            return list(attrs.values())
        names = self._parameters[start:]
        if len(self._parameters) < start or set(names) != set(attrs):
            raise TypeError(
                f"{self.name}: the CUDA kernel takes ({', '.join(self._parameters)}), expected "
                f"{start} arrays (inputs, then results) and after them the attributes "
                f"({', '.join(attrs) or 'none'}), by these names"
            )
        return [attrs[name] for name in names]


def _check_configuration(name: str, configuration: Any) -> tuple[Any, Any]:
    if not isinstance(configuration, (tuple, list)) or len(configuration) != 2:
        raise TypeError(
            f"primitive {name!r}: the configuration of a CUDA kernel must be (blocks, threads), "
            f"got {configuration!r}: a pair, or a function of the inputs that returns one"
        )
    return configuration[0], configuration[1]


def run_on_gpu(
    name: str, kernel: Any, shapes: Callable | None, /, *arrays: Any, **attrs: Any
) -> Any:
    """Run a scalar function as a kernel, or a function of NumPy's functions on the GPU's arrays."""
    run = device_runs.on_gpu(kernel)
    if run is not None:
        result = run(*arrays)
    else:
        try:  # NumPy's functions ask their operands, which are copies: a kernel may write to them
            result = kernel(*[array.copy() for array in arrays], **attrs)
        except Exception as error:
            refusal = isinstance(error, device_runs.REFUSALS)
            is_numba = type(error).__module__.startswith("numba.")  # it compiled the function
            if is_numba or (refusal and device_runs.is_of_library(error)):
                raise _absent(name) from error
            raise
    several = isinstance(result, (list, tuple))
    outs = list(result) if several else [result]
    if not outs or not all(isinstance(array, devices.array_types) for array in outs):
        raise _absent(name)
    check_shapes(name, shapes, arrays, attrs, outs)
    return outs if several else outs[0]


def check_shapes(
    name: str, shapes: Callable | None, arrays: Sequence, attrs: dict[str, Any], outs: Sequence
) -> None:
    """Raise ValueError unless results have the shapes that the user's rule gives, if any."""
    if shapes is None:
        return
    expected = shapes(*[Aval(tuple(array.shape), array.dtype) for array in arrays], **attrs)
    wanted = [aval.shape for aval in (expected if isinstance(expected, list) else [expected])]
    got = [tuple(array.shape) for array in outs]
    if got != wanted:
        raise ValueError(
            f"{name}: shape= gives {wanted}, but the kernel returned arrays of shapes {got}"
        )


def _absent(name: str) -> DeviceError:
    return DeviceError(
        f"{name}: its kernel does not run on a GPU. Pass primitive(cuda=kernel), with a kernel "
        "made by numba.cuda.jit, or elementwise=True for a function of numbers; or write x.cpu() "
        "for its operands, and .gpu() for the result"
    )
