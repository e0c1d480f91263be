"""Types of parameters that many public functions share; they serve type checkers only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike as _Nested

from .conversion import IndexedSlices
from .tensor import ArrayLike

# Values that convert to a Tensor: numbers, arrays, Tensors, Variables, and sequences that mix them.
TensorLike: TypeAlias = "ArrayLike | IndexedSlices | _Nested | Sequence[TensorLike]"
Axes: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | None
Shape: TypeAlias = "SupportsIndex | Sequence[SupportsIndex] | np.ndarray | ArrayLike"
