"""NumPy's functions: NumPy's own for arrays, `tinygrad_cg.numpy` for tensors.

As ``autograd.numpy``: outside of a differentiated function all values are arrays, which item
assignment changes; inside, values that depend on its arguments are tensors. All other names are
NumPy's.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ... import numpy as ours
from . import fft, linalg, random
from ._numpy_functions import lookup

__all__ = ["fft", "linalg", "random"]


__getattr__ = partial(lookup, theirs=np, ours=ours, namespace=globals())
__dir__ = partial(dir, np)
