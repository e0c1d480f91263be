"""Keras's ``keras.backend``, as far as it is public in Keras 3."""

from __future__ import annotations

from typing import Any

from .._core.conversion import as_dtype
from .._core.tensor import Tensor
from . import config
from .config import *  # noqa: F403
from .config import floatx

__all__ = [
    "clear_session",
    "is_float_dtype",
    "is_int_dtype",
    "is_keras_tensor",
    "standardize_dtype",
]
__all__ += config.__all__
__dir__ = __all__.copy


def standardize_dtype(dtype: Any) -> str:
    """Return the name of a dtype; `floatx` for None."""
    return floatx() if dtype is None else as_dtype(dtype).name


def is_float_dtype(dtype: Any) -> bool:
    """Return whether a dtype, or its name, is a real floating-point dtype."""
    return as_dtype(dtype).kind == "f"


def is_int_dtype(dtype: Any) -> bool:
    """Return whether a dtype, or its name, is an integer dtype; bool is not."""
    return as_dtype(dtype).kind in "iu"


def is_keras_tensor(x: Any) -> bool:
    """Return False for tensors: Keras's symbolic tensors are not supported."""
    if not isinstance(x, Tensor):
        raise ValueError(f"is_keras_tensor: x must be a tensor, got {type(x).__name__}")
    return False


def clear_session() -> None:
    """Do nothing: this library has no global graph and no state of names to clear."""
