"""Values of groups of threads, combined by a kernel of one block: see `groups` of the kernels."""

from functools import cache
from typing import Any

import numpy as np

from tinygrad_cg_kernels.cuda import adapter, elementwise, groups
from tinygrad_cg_kernels.reduce import combine

DTYPES = ["?", "b", "B", "h", "H", "i", "I", "q", "Q", "f", "d", "F", "D"]
KERNEL = """
def kernel(x, out, group):
    k = cuda.threadIdx.x
    out[k] = tree(x[k], k % group, group)
"""


@cache
def kernel(dtype: np.dtype) -> Any:
    chosen = combine.larger if dtype.kind in "?bBiIuf" else combine.add
    tree = groups.tree(chosen, dtype)
    return elementwise.define(KERNEL, tree=tree)


def combined(values: np.ndarray, group: int) -> np.ndarray:
    """Return for each thread of a block what its group has: the largest, or of complex the sum."""
    library = adapter.array_module()
    x, out = library.asarray(values), library.empty(values.shape, dtype=values.dtype)
    kernel(values.dtype).launch(1, (x, out), [group])
    return adapter.array_module().asnumpy(out)
