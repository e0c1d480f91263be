"""A stand-in for the errors of CuPy's linear algebra, and for ``cupyx.errstate``, which sets them.

By itself CuPy does not ask the GPU whether a matrix has the result that is wanted. Where NumPy
raises LinAlgError for a singular matrix, say, it returns numbers without meaning: here NaN.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

_state = threading.local()


@contextlib.contextmanager
def errstate(*, linalg: str) -> Iterator[None]:
    """Raise LinAlgError as NumPy does ("raise") or not ("ignore"), in this thread."""
    outer, _state.linalg = getattr(_state, "linalg", "ignore"), linalg
    try:
        yield
    finally:
        _state.linalg = outer


def run(function: Callable, x: np.ndarray, *arguments: Any, **named: Any) -> Any:
    """Return what one of NumPy's functions of matrices gives, and NaN where it finds no result.

    Raises ValueError for systems whose leading axes are not equal: CuPy's do not broadcast.
    """
    if function is np.linalg.solve and x.shape[:-2] != arguments[0].shape[:-2]:
        raise ValueError("a must have (..., M, M) shape and b must have (..., M) or (..., M, K)")
    try:
        return function(x, *arguments, **named)
    except np.linalg.LinAlgError:
        if getattr(_state, "linalg", "ignore") == "raise" or x.ndim < 2:
            raise
    unit = np.empty_like(x)
    unit[...] = np.eye(*x.shape[-2:])
    return _without_values(function(unit, *arguments, **named))


def _without_values(value: Any) -> Any:
    """Return results of the same shapes that are NaN."""
    if isinstance(value, tuple):
        parts = map(_without_values, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return np.full_like(value, np.nan) if np.asarray(value).dtype.kind in "fc" else value
