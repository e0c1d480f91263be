"""Values of groups of threads, combined by a kernel of one block: see `groups` of the kernels."""

import numpy as np

from tinygrad_cg_kernels.cuda import adapter, elementwise, groups
from tinygrad_cg_kernels.reduce import combine

DTYPES = ["?", "b", "B", "h", "H", "i", "I", "q", "Q", "f", "d", "F", "D"]
KERNEL = """
def kernel(x, out, group):
    k = cuda.threadIdx.x
    out[k] = tree(x[k], k % group, group)
"""


def combined(values: np.ndarray, group: int) -> np.ndarray:
    """Return for each thread of a block what its group has: the largest, or of complex the sum."""
    library = adapter.array_module()
    x, out = library.asarray(values), library.empty(values.shape, dtype=values.dtype)
    chosen = combine.larger if values.dtype.kind in "?bBiIuf" else combine.add
    elementwise.launch(KERNEL, 1, (x, out), [group], tree=groups.tree(chosen, values.dtype))
    return adapter.array_module().asnumpy(out)
