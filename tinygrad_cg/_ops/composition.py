"""Operations by name on arrays and on tensors, for decompositions.

A decomposition is written once, as a function of `ops`: ``ops.exp(x)`` applies the operation named
"exp" to whatever `x` is. `ARRAYS`, `ON_GPU` and `TENSORS` stand here; the compiler has one that
makes nodes.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .._core import device_runs, devices
from .._core.conversion import weak_arrays
from .._core.primitive import OPS, Primitive
from .._core.tensor import Tensor


class Operations(Protocol):
    """The operations that a decomposition may call, each by its name, with its parameters."""

    def number(self, value: float, like: Any) -> Any:
        """Return a constant with the dtype of `like`."""

    def count(self, value: int, like: Any) -> Any:
        """Return a whole number that follows from shapes, with the dtype of `like`."""

    def __getattr__(self, name: str) -> Any:
        """Return the operation of that name."""


class _ByName:
    """Find what runs an operation, by its name."""

    def __getattr__(self, name: str) -> Any:
        if name not in OPS:
            raise AttributeError(f"no operation is named {name!r}")
        run = self._run_of(OPS[name])
        setattr(self, name, run)  # the next look finds it at once
        return run

    def _run_of(self, primitive: Primitive) -> Any:
        return primitive


class _OnArrays(_ByName):
    """Run the kernels of operations on arrays."""

    def number(self, value: float, like: np.ndarray) -> np.ndarray:
        return weak_arrays[like.dtype][value]

    count = number

    def identity(self, x: np.ndarray) -> np.ndarray:
        return x.copy()  # what one operation returns is not memory of another

    def _run_of(self, primitive: Primitive) -> Any:
        return primitive.run


class _OnGPU(_OnArrays):
    """Run operations on arrays of a GPU."""

    def number(self, value: float, like: Any) -> Any:
        return devices.number(weak_arrays[like.dtype][value])

    count = number

    def _run_of(self, primitive: Primitive) -> Any:
        return lambda *arrays, **params: device_runs.run(primitive, arrays, params)


class _OnTensors(_ByName):
    """Apply operations to tensors, for all levels of this thread."""

    def number(self, value: float, like: Tensor) -> Tensor:
        return Tensor(weak_arrays[like.dtype][value])

    count = number


ARRAYS: Operations = _OnArrays()
ON_GPU: Operations = _OnGPU()
TENSORS: Operations = _OnTensors()
