"""``numpy.fft``: NumPy's own functions for arrays, `tinygrad_cg.numpy.fft` for tensors."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...numpy import fft as ours
from ._numpy_functions import lookup

__getattr__ = partial(lookup, theirs=np.fft, ours=ours, namespace=globals())
__dir__ = partial(dir, np.fft)
