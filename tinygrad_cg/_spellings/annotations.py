"""Types of parameters that many functions share, for the stubs of functions made from tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike as _ArrayOrNested
from numpy.typing import DTypeLike as DTypeLike

from .._core.conversion import IndexedSlices
from .._core.tensor import Tensor
from .._reverse.variable import Variable

# What converts to a Tensor: numbers, arrays, Tensors, and nested sequences that mix them.
TensorLike: TypeAlias = "Tensor | Variable | IndexedSlices | _ArrayOrNested | Sequence[TensorLike]"
Axis: TypeAlias = SupportsIndex
Axes: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | None
Shape: TypeAlias = "SupportsIndex | Sequence[SupportsIndex] | np.ndarray | Tensor"
