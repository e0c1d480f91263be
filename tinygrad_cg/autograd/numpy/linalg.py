"""``numpy.linalg``: NumPy's own functions for arrays, `tinygrad_cg.numpy.linalg` for tensors."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...numpy import linalg as ours
from ._numpy_functions import lookup

__getattr__ = partial(lookup, theirs=np.linalg, ours=ours, namespace=globals())
__dir__ = partial(dir, np.linalg)
