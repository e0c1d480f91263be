"""Dtypes, which are NumPy's, under TensorFlow's names (``tf.dtypes``)."""

from __future__ import annotations

import numpy as np

from ._core.conversion import as_dtype
from ._spellings.spell import spell

_NAMES = (
    "bool complex64 complex128 double float16 float32 float64 half "
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64"
)
DType = np.dtype
globals().update({name: np.dtype(name) for name in _NAMES.split()})
__all__ = ["DType", "as_dtype", *_NAMES.split()]

spell(globals(), "cast(x, dtype, name=None) = cast(x, dtype)")
