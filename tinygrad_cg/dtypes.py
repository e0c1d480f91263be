"""Dtypes, which are NumPy's, under TensorFlow's names (``tf.dtypes``)."""

from __future__ import annotations

import numpy as np

from ._core.conversion import as_dtype
from ._spellings.spell import spell

__all__ = [
    "DType",
    "as_dtype",
    "bool",
    "complex64",
    "complex128",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

DType = np.dtype
bool = np.dtype(np.bool_)
int8, int16, int32, int64 = map(np.dtype, ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = map(np.dtype, ("uint8", "uint16", "uint32", "uint64"))
half = float16 = np.dtype(np.float16)
float32 = np.dtype(np.float32)
double = float64 = np.dtype(np.float64)
complex64, complex128 = np.dtype(np.complex64), np.dtype(np.complex128)

spell(globals(), "cast(x, dtype, name=None) = cast(x, dtype)")
