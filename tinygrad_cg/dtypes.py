"""Dtypes, which are NumPy's, under TensorFlow's names (``tf.dtypes``)."""

from __future__ import annotations

import numpy as np

from ._core.annotations import DTypeLike, TensorLike
from ._core.conversion import as_dtype
from ._core.tensor import Tensor
from ._ops import shape as _shape
from ._ops.namespaces.namespace import export_functions, restates

__all__ = ["DType", "as_dtype", "bool", "complex64", "complex128", "double", "float16", "float32"]
__all__ += ["float64", "half", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]
__all__ += ["uint64"]

DType = np.dtype
bool = np.dtype(np.bool_)
complex64 = np.dtype(np.complex64)
complex128 = np.dtype(np.complex128)
double = np.dtype(np.float64)
float16 = np.dtype(np.float16)
float32 = np.dtype(np.float32)
float64 = np.dtype(np.float64)
half = np.dtype(np.float16)
int8 = np.dtype(np.int8)
int16 = np.dtype(np.int16)
int32 = np.dtype(np.int32)
int64 = np.dtype(np.int64)
uint8 = np.dtype(np.uint8)
uint16 = np.dtype(np.uint16)
uint32 = np.dtype(np.uint32)
uint64 = np.dtype(np.uint64)


@restates(_shape.cast)
def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    return _shape.cast(x, dtype)


__all__ += export_functions(globals())
