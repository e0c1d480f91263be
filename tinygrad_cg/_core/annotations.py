"""Types of parameters that many public functions share; they serve type checkers only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex, TypeAlias

if TYPE_CHECKING:  # numpy.typing takes long to load
    import numpy as np
    from numpy.typing import ArrayLike as _Nested
    from numpy.typing import DTypeLike as _DTypeLike

    from .conversion import IndexedSlices
    from .tensor import ArrayLike

# Values that convert to a Tensor: numbers, arrays, Tensors, Variables, and sequences that mix them.
TensorLike: TypeAlias = "ArrayLike | IndexedSlices | _Nested | Sequence[TensorLike]"
Axes: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | None
Shape: TypeAlias = "SupportsIndex | Sequence[SupportsIndex] | np.ndarray | ArrayLike"
DTypeLike: TypeAlias = "_DTypeLike"
