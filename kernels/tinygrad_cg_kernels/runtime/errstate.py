"""Calls of NumPy functions without floating-point warnings. Results are those of IEEE arithmetic.

``np.errstate`` around a call costs more than a small matrix product. Running the call in a context
of the thread, in which warnings are off, costs next to nothing.
"""

import contextvars
import threading

import numpy as np


class QuietContext(threading.local):
    def __init__(self) -> None:
        inner = contextvars.Context()
        inner.run(np.seterr, all="ignore")
        self.run = inner.run


quiet = QuietContext()
"""`quiet.run(function, *arguments)` calls a compiled NumPy function, which runs no Python code."""


def cast(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return `array` cast to `dtype`, or itself. Numbers that are too large become infinite."""
    return array if array.dtype is dtype else quiet.run(array.astype, dtype)


def in_order(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return `np.require(array, dtype, ("C", "A"))`, in a tenth of the time for an array that is
    so already."""
    ordered = array.dtype is dtype and array.flags.c_contiguous and array.flags.aligned
    return array if ordered else np.require(array, dtype, ("C", "A"))
