"""``numpy.linalg``: NumPy's own functions for arrays, `tinygrad_cg.numpy.linalg` for tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...numpy import linalg as ours
from ._numpy_functions import lookup


def __getattr__(name: str) -> Any:
    return lookup(name, np.linalg, ours, globals())


def __dir__() -> list[str]:
    return dir(np.linalg)
