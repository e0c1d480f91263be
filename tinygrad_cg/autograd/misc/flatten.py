"""Nested parameters as one vector, and back: autograd's ``misc.flatten``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import numpy as ours
from ..._core.tensor import Tensor

__all__ = ["flatten", "flatten_func"]
__dir__ = __all__.copy


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the numbers of nested lists, tuples and dicts as a vector, and the inverse function.

    Entries of dicts are in the order of sorted keys. The vector is an array, or a tensor if one of
    the entries is; the inverse function accepts both, and is differentiable. It raises ValueError
    for a vector of another size. Modelled on ``autograd.misc.flatten``.
    """
    parts: list[Any] = []
    rebuild = _take_apart(value, parts)
    library: Any = ours if any(isinstance(part, Tensor) for part in parts) else np
    flat = library.concatenate(parts) if parts else np.zeros(0)
    size = sum(math.prod(part.shape) for part in parts)

    def unflatten(vector: Any) -> Any:
        if np.shape(vector) != (size,):
            raise ValueError(
                f"unflatten: vector must have shape ({size},), as flatten gave it, got "
                f"{np.shape(vector)}"
            )
        return rebuild(vector, 0)[0]

    return flat, unflatten


def flatten_func(
    func: Callable[..., Any], example: Any
) -> tuple[Callable[..., Any], Callable[[Any], Any], Any]:
    """Return `func` as a function of vectors to vectors, the function back, and `example` flat."""
    flat, unflatten = flatten(example)
    return lambda x, *args: flatten(func(unflatten(x), *args))[0], unflatten, flat


def _take_apart(value: Any, parts: list[Any]) -> Callable[[Any, int], tuple[Any, int]]:
    """Append the flat leaves of `value`, and return a function that rebuilds it from an offset."""
    if isinstance(value, (list, tuple, dict)):
        keys = sorted(value) if isinstance(value, dict) else range(len(value))
        entries = [_take_apart(value[key], parts) for key in keys]

        def together(vector: Any, offset: int) -> tuple[Any, int]:
            rebuilt = []
            for entry in entries:
                part, offset = entry(vector, offset)
                rebuilt.append(part)
            if isinstance(value, dict):
                return dict(zip(keys, rebuilt, strict=True)), offset
            named = hasattr(value, "_fields")
            return type(value)(*rebuilt) if named else type(value)(rebuilt), offset

        return together
    leaf = value if isinstance(value, Tensor) else np.asarray(value)
    shape = tuple(leaf.shape)
    parts.append(ours.ravel(leaf) if isinstance(leaf, Tensor) else leaf.ravel())
    size = math.prod(shape)

    def cut(vector: Any, offset: int) -> tuple[Any, int]:
        return vector[offset : offset + size].reshape(shape), offset + size

    return cut
