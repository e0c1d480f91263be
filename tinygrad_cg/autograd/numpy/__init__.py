"""NumPy's functions: NumPy's own for arrays, `tinygrad_cg.numpy` for tensors.

As ``autograd.numpy``: outside of a differentiated function all values are arrays, which item
assignment changes; inside, values that depend on its arguments are tensors. All other names are
NumPy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import numpy as ours
from . import fft, linalg, random
from ._numpy_functions import lookup

__all__ = ["fft", "linalg", "random"]


def __getattr__(name: str) -> Any:
    return lookup(name, np, ours, globals())


def __dir__() -> list[str]:
    return dir(np)
