"""Helpers of operations on stacks of matrices: LAPACK's dtypes, builders, triangles, checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime import promotion
from tinygrad_cg_kernels.runtime.errstate import cast as cast_array
from tinygrad_cg_kernels.runtime.promotion import loop_dtype

from .._core import devices
from .._core.conversion import convert, promote
from .._core.kinds import is_exact
from .._core.primitive import Primitive
from .._core.tensor import Aval, ExampleAval, Tensor
from ..errors import InvalidArgumentError, MatrixError
from .complex import conj
from .define import Case, Wrong, operation
from .elementwise import where
from .indexing import getitem
from .linear_algebra import _matmul
from .shape import expand_dims, squeeze, swap_last
from .validation import broadcast_shapes

MATRIX = np.array([[3.0, 1.0, 0.5], [-1.0, 2.5, 0.25], [0.5, -0.5, 2.0]])
STACK = np.stack([MATRIX, np.eye(3) - 0.25 * MATRIX])
POSITIVE = np.stack([MATRIX @ MATRIX.T, np.eye(3) + 0.1 * MATRIX.T @ MATRIX])
product = _matmul  # of matrices alone
NOT_SQUARE = Wrong(InvalidArgumentError, "needs square matrices", (np.ones((2, 3)),))


def result_dtype(*dtypes: np.dtype) -> np.dtype:
    """Return the dtype of the result; float64 for integers."""
    dtype = dtypes[0] if len(dtypes) == 1 else promote(*dtypes)
    return np.dtype(np.float64) if is_exact(dtype) else dtype


def real_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of a real result: the width of the operand, float64 for integers."""
    return result_dtype(dtype).type(0).real.dtype


def complex_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of a complex result: complex64 for float16 and float32."""
    return np.result_type(result_dtype(dtype), np.complex64)


def by_lapack(
    name: str, function: Callable[..., Any], dtype_of: Callable[..., np.dtype] = result_dtype
) -> Callable[..., np.ndarray]:
    """Run `function` in a dtype that LAPACK has, and cast the result to the operands' dtype."""

    def run(*arrays: np.ndarray, **params: Any) -> np.ndarray:
        dtypes = [array.dtype for array in arrays]
        wide = [cast_array(array, loop_dtype(result_dtype(*dtypes))) for array in arrays]
        try:
            result = devices.library_of(wide[0]).asarray(function(*wide, **params))
            return cast_array(result, dtype_of(*dtypes))
        except np.linalg.LinAlgError as error:
            remedy = ": use tf.linalg.pinv or lstsq" if "ingular" in str(error) else ""
            raise MatrixError(f"{name}: {error}{remedy}") from None

    return run


def of_matrices(
    name: str,
    function: Any,
    vjp: Any,
    shape: Callable[..., tuple[int, ...]] = lambda shape, **params: shape,
    dtype_of: Callable[..., np.dtype] = result_dtype,
    samples: Sequence[np.ndarray] = (MATRIX, STACK),
    params: Sequence[dict[str, Any]] = ({},),
    label: str = "",
    **record: Any,
) -> Primitive:
    """Return an operation on each matrix of a stack.

    `shape` returns the shape of the result, given the shape of the operand and the parameters.
    """
    return operation(
        name,
        by_lapack(label or name, function, dtype_of),
        lambda x, **params: Aval(tuple(shape(x.shape, **params)), dtype_of(x.dtype)),
        None if vjp is None else (vjp,),
        kind="contraction",
        core=(2,),
        samples=[
            Case((sample.shape,), dict(settings), {0: sample})
            for sample in samples
            for settings in params
        ],
        label=label,
        **record,
    )


def of_systems(
    name: str, run: Any, vjp: Any, inputs: tuple[str, str] = ("x", "y"), **record: Any
) -> Primitive:
    """Return an operation on matrices and right-hand sides, whose leading axes broadcast."""

    def abstract(x: Aval, y: Aval, **params: Any) -> Aval:
        leading = broadcast_shapes(name, x.shape[:-2], y.shape[:-2])
        return Aval((*leading, *y.shape[-2:]), result_dtype(x.dtype, y.dtype))

    return operation(
        name,
        by_lapack(name, run),
        abstract,
        vjp,
        inputs=inputs,
        kind="contraction",
        core=(2, 2),
        **record,
    )


def solve_systems(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return ``numpy.linalg.solve(x, y)`` of matrices, whose leading axes broadcast on a GPU, too.

    CuPy's function needs equal ones.
    """
    if x.shape[:-2] != y.shape[:-2]:
        leading = promotion.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        x = np.broadcast_to(x, (*leading, *x.shape[-2:]))
        y = np.broadcast_to(y, (*leading, *y.shape[-2:]))
    return np.linalg.solve(x, y)


def largest(x: np.ndarray, axis: int | tuple[int, ...] | None, keepdims: bool = False) -> Any:
    """Return the largest of floating-point numbers along some axes, and not less than 0.

    That is ``x.max(axis, initial=0)``, a keyword that arrays on a GPU do not have.
    """
    if not x.size:
        return x.sum(axis, keepdims=keepdims)  # 0, where a largest does not exist
    return np.maximum(x.max(axis, keepdims=keepdims), 0)


def tolerance(dtype: np.dtype, size: int) -> float:
    """Return the relative distance below which computed eigenvalues count as equal."""
    return 8 * float(np.finfo(dtype).eps) * size**0.5


def copy_of(x: np.ndarray, *others: np.ndarray) -> np.ndarray:
    """Return a copy of matrices, for each of the leading axes of `others`."""
    leading = promotion.broadcast_shapes(x.shape[:-2], *[other.shape[:-2] for other in others])
    repeated = x if leading == x.shape[:-2] else np.broadcast_to(x, (*leading, *x.shape[-2:]))
    return repeated.copy()


def copied_aval(x: Aval, *others: Aval, **params: Any) -> Aval:
    """Return the shape and dtype of `copy_of`."""
    shapes = [array.shape[:-2] for array in (x, *others)]
    leading = broadcast_shapes("matrices", *shapes)
    return Aval((*leading, *x.shape[-2:]), x.dtype)


def adjoint(x: Tensor) -> Tensor:
    """Return the conjugate transpose of each matrix."""
    return conj(swap_last(x))


def rows(x: Tensor, start: int | None, stop: int | None = None) -> Tensor:
    """Return some rows of each matrix."""
    return getitem(x, (Ellipsis, slice(start, stop), slice(None)))


def columns(x: Tensor, start: int | None, stop: int | None = None) -> Tensor:
    """Return some columns of each matrix."""
    return getitem(x, (Ellipsis, slice(start, stop)))


def band(x: Tensor, lower: int | None, upper: int | None) -> Tensor:
    """Return each matrix with zeros outside a band of diagonals from -lower to upper; None: all."""
    height, width = x._data.shape[-2:]
    offsets = np.arange(width) - np.arange(height)[:, None]
    inside = np.ones(offsets.shape, bool)
    if lower is not None:
        inside &= offsets >= -lower
    if upper is not None:
        inside &= offsets <= upper
    return x if inside.all() else where(inside, x, 0)


def matrices(name: str, x: Any) -> Tensor:
    """Return a tensor of matrices; InvalidArgumentError for fewer than two dimensions."""
    x = convert(x)
    if x._data.ndim < 2:
        raise InvalidArgumentError(
            f"{name}: needs matrices in the last two axes, got shape {shape_in_words(x)}"
        )
    return x


def solution_of(systems: Primitive, x: Tensor, y: Tensor, **params: Any) -> Tensor:
    """Return the solutions for right-hand sides, matrices or a vector; InvalidArgumentError for
    other shapes."""
    column, rows = y._data.ndim == 1, x.shape[-2]
    columns = expand_dims(y, 1) if column else y
    if columns._data.ndim < 2 or columns._data.shape[-2] != rows:
        raise InvalidArgumentError(
            f"{systems.name}: for a matrix of shape {tuple(x.shape)}, the right-hand side must "
            f"have shape ({rows},) or (..., {rows}, k), got {tuple(y.shape)}"
        )
    solution = systems(x, columns, **params)
    return squeeze(solution, -1) if column else solution


def shape_in_words(x: Tensor) -> str:
    """Return the shape of a tensor, for errors; inside vmap it is that of an example."""
    return f"{tuple(x.shape)}{' inside vmap' * isinstance(x._data, ExampleAval)}"


def square_matrices(name: str, x: Any) -> Tensor:
    """Return a tensor of square matrices; InvalidArgumentError for others."""
    x = convert(x)
    if x._data.ndim < 2 or x._data.shape[-1] != x._data.shape[-2]:
        raise InvalidArgumentError(
            f"{name}: needs square matrices in the last two axes, got shape {shape_in_words(x)}"
        )
    return x
