"""NumPy's ``numpy.random``, unchanged: draws are arrays and have no gradient."""

from __future__ import annotations

from functools import partial

import numpy as np

__getattr__ = partial(getattr, np.random)
__dir__ = partial(dir, np.random)
