"""Matrix products, through NumPy's BLAS."""

from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime.errstate import cast, quiet
from tinygrad_cg_kernels.runtime.promotion import loop_dtype, native, promote


def matmul(x: Any, y: Any, library: Any = np) -> Any:
    """Return the matrix product as `np.matmul`: batches broadcast, a vector is a row or a column.

    float16 is multiplied in float32. Integers wrap as NumPy's do. Floating point never warns.
    Arrays are those of a `library`. Raises ValueError for shapes that do not fit, TypeError for
    dtypes that are not supported.
    """
    if not x.ndim or not y.ndim:
        raise ValueError(f"matmul: shapes {x.shape} and {y.shape}: operands need a dimension")
    dtype = promote(native("matmul", x.dtype), native("matmul", y.dtype))
    loop = loop_dtype(dtype)
    x, y = cast(x, loop), cast(y, loop)
    shape = x.shape
    if x.ndim > 2 and y.ndim == 2 and x.flags.c_contiguous:
        x = x.reshape(-1, shape[-1]) if x.size else x  # one product instead of many
    try:
        product = quiet.run(np.matmul, x, y) if library is np else library.matmul(x, y)
    except ValueError:
        shapes = f"{shape} and {y.shape}"
        raise ValueError(f"matmul: shapes {shapes} do not fit together") from None
    if x.ndim < len(shape):
        product = product.reshape(*shape[:-1], y.shape[-1])
    return cast(library.ascontiguousarray(product), dtype).reshape(np.shape(product))
