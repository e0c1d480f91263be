"""Products of matrices and vectors."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.linear import matmul as kmatmul
from tinygrad_cg_kernels.linear import products

from .._core import device_runs
from .._core.conversion import FLOAT32, FLOAT64, convert_operands, is_tensor, promote
from .._core.primitive import apply
from .._core.tensor import Aval, ExampleAval, Tensor
from ..errors import InvalidArgumentError
from .complex import conj
from .define import Case, Wrong, operation, public
from .elementwise import multiply
from .shape import expand_dims, reshape, squeeze, swap_last, transpose
from .validation import as_int, as_shape, broadcast_shapes, normalize_axis


def _right_gradient(dy: Tensor, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the gradient by the matrix on the right; if a stack shares it, by one product."""
    if len(shape) == 2 < x._data.ndim:
        rows = prod(x._data.shape[:-1])
        x, dy = (reshape(tensor, (rows, tensor._data.shape[-1])) for tensor in (x, dy))
    return apply(_matmul, (swap_last(x), dy), {})


_CONTIGUOUS = 3  # of NumPy's flags: in C order (1) or Fortran order (2)


def _is_plain(x: np.ndarray, y: np.ndarray) -> bool:
    """Return whether `x.dot(y)`, for a matrix and a matrix or vector, is what `matmul` gives.

    It has the same bits if both are contiguous, in either order, and takes half the time if they
    are small.
    """
    dtype = x.dtype
    if dtype is not y.dtype or (dtype is not FLOAT64 and dtype is not FLOAT32):
        return False
    if x.ndim != 2 or x.shape[1] != y.shape[0]:
        return False
    return bool(x.flags.num & _CONTIGUOUS and y.flags.num & _CONTIGUOUS)


def _run_matmul(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if y.ndim == 2 and _is_plain(x, y):
        return products.product(x, y)
    return kmatmul.matmul(x, y)


_matmul = operation(
    "matmul",
    _run_matmul,
    lambda x, y: Aval(
        (*broadcast_shapes("matmul", x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1]),
        promote(x.dtype, y.dtype),
    ),
    (lambda dy, y: apply(_matmul, (dy, swap_last(y)), {}), _right_gradient),
    inputs=("x", "y"),
    kind="contraction",
    kernel=kmatmul.matmul,
    on_gpu=lambda x, y: device_runs.on_gpu(kmatmul.matmul)(x, y),
    core=(2, 2),
    ufunc=np.matmul,
    samples=[Case(((2, 3), (3, 2))), Case(((2, 2, 3), (3, 1))), Case(((1, 3), (2, 3, 2)))],
    errors=(
        Wrong(InvalidArgumentError, "matmul: ", (np.ones((2, 3)), np.ones((2, 3)))),
        Wrong(InvalidArgumentError, "matmul: ", (np.ones(()), np.ones(2))),
    ),
)


def _run_matvec(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if y.ndim == 1 and _is_plain(x, y):
        return kmatmul.quiet.run(x.dot, y)
    if x.ndim == 2 <= y.ndim:  # one matrix, many vectors: one product
        return kmatmul.matmul(y, x.T)
    return kmatmul.matmul(x, y[..., None])[..., 0]


_matvec = operation(
    "matvec",
    _run_matvec,
    lambda x, y: Aval(
        (*broadcast_shapes("matvec", x.shape[:-2], y.shape[:-1]), x.shape[-2]),
        promote(x.dtype, y.dtype),
    ),
    (
        lambda dy, y: multiply(expand_dims(dy, -1), expand_dims(y, -2)),
        lambda dy, x: apply(_matvec, (swap_last(x), dy), {}),
    ),
    inputs=("x", "y"),
    kind="contraction",
    kernel=kmatmul.matmul,
    on_gpu=lambda x, y: device_runs.on_gpu(kmatmul.matmul)(x, y[..., None])[..., 0],
    core=(2, 1),
    samples=[Case(((2, 3), (3,))), Case(((2, 2, 3), (3,))), Case(((2, 3), (4, 3)))],
)


@public(_matmul)
def matmul(
    x: Any,
    y: Any,
    transpose_x: bool = False,
    transpose_y: bool = False,
    adjoint_x: bool = False,
    adjoint_y: bool = False,
) -> Tensor:
    """Return the matrix product over the last two axes; the axes before them broadcast. A 1-D
    operand is a row on the left or a column on the right."""
    x, y = given_x, given_y = convert_operands((x, y))
    row, column = x._data.ndim == 1, y._data.ndim == 1
    x = expand_dims(x, 0) if row else _transpose_operand("matmul", x, transpose_x, adjoint_x)
    y = expand_dims(y, 1) if column else _transpose_operand("matmul", y, transpose_y, adjoint_y)
    if min(x._data.ndim, y._data.ndim) < 2 or x._data.shape[-1] != y._data.shape[-2]:
        flags = transpose_x or adjoint_x, transpose_y or adjoint_y
        _refuse("matmul", given_x, given_y, *flags)
    out = apply(_matmul, (x, y), {})
    if row or column:
        out = squeeze(out, [-2] * row + [-1] * column)
    return out


def matvec(x: Any, y: Any, transpose_x: bool = False, adjoint_x: bool = False) -> Tensor:
    """Return a matrix (..., m, n) times a vector (..., n): shape (..., m).

    Modelled on ``tf.linalg.matvec``: leading axes broadcast. Dtypes and errors as for `matmul`.
    """
    matrix, y = x, y = convert_operands((x, y))
    x = _transpose_operand("matvec", x, transpose_x, adjoint_x)
    if x._data.ndim < 2 or y._data.ndim < 1 or x._data.shape[-1] != y._data.shape[-1]:
        _refuse("matvec", matrix, y, transpose_x or adjoint_x)
    return apply(_matvec, (x, y), {})


def tensordot(x: Any, y: Any, axes: Any = 2) -> Tensor:
    """Return the sum of products over `axes`: the number of last axes of `x` and first of `y`, or
    two lists.

    Modelled on ``np.tensordot``. The result has the other axes of `x`, then those of `y`. Raises
    InvalidArgumentError for axes that an operand does not have or that differ in size.
    """
    x, y = convert_operands((x, y))
    left, right = _contracted_axes(axes, x._data.ndim, y._data.ndim)
    if [x._data.shape[i] for i in left] != [y._data.shape[i] for i in right]:
        raise InvalidArgumentError(
            f"tensordot: axes {tuple(left)} of shape {tuple(x.shape)} and axes {tuple(right)} of "
            f"shape {tuple(y.shape)} must have equal sizes"
        )
    rows = [i for i in range(x._data.ndim) if i not in left]
    columns = [i for i in range(y._data.ndim) if i not in right]
    contracted = prod(x._data.shape[i] for i in left)
    height = [x._data.shape[i] for i in rows]
    width = [y._data.shape[i] for i in columns]
    first = _arranged(x, rows + left, (prod(height), contracted))
    second = _arranged(y, right + columns, (contracted, prod(width)))
    product = apply(_matmul, (first, second), {})
    return _arranged(product, [0, 1], (*height, *width))


def _arranged(x: Tensor, order: list[int], shape: tuple[int, ...]) -> Tensor:
    """Return `x` with its axes in an order, in another shape; itself if both are its own."""
    x = x if order == sorted(order) else transpose(x, order)
    return x if x._data.shape == shape else reshape(x, shape)


def _contracted_axes(axes: Any, rank_x: int, rank_y: int) -> tuple[list[int], list[int]]:
    """Return the axes that `tensordot` contracts, of each operand in its order."""
    if is_tensor(axes) or isinstance(axes, np.ndarray):
        axes = np.asarray(axes).tolist()
    if not isinstance(axes, (list, tuple)):
        count = as_int("tensordot", "axes", axes)
        if not 0 <= count <= min(rank_x, rank_y):
            raise InvalidArgumentError(
                f"tensordot: axes is {count}, but x has {rank_x} dimensions and y has {rank_y}: "
                "give a number that both have, or two lists of axes"
            )
        return list(range(rank_x - count, rank_x)), list(range(count))
    if len(axes) != 2:
        raise InvalidArgumentError(
            f"tensordot: axes must be a number or two lists, of x and of y; got {len(axes)} parts"
        )
    left, right = (
        [normalize_axis("tensordot", i, rank) for i in as_shape("tensordot", part)]
        for part, rank in zip(axes, (rank_x, rank_y), strict=True)
    )
    if len(left) != len(right) or len({*left}) != len(left) or len({*right}) != len(right):
        raise InvalidArgumentError(
            f"tensordot: axes {axes} must name equally many axes of x and y, each axis once"
        )
    return left, right


def _transpose_operand(name: str, x: Tensor, transposed: bool, adjoint: bool) -> Tensor:
    if transposed and adjoint:
        raise InvalidArgumentError(
            f"{name}: transpose and adjoint exclude each other: adjoint transposes and conjugates"
        )
    if not (transposed or adjoint) or x._data.ndim < 2:
        return x
    return conj(swap_last(x)) if adjoint else swap_last(x)


def _refuse(
    name: str, x: Tensor, y: Tensor, transposed_x: bool = False, transposed_y: bool = False
) -> None:
    left, right = (
        f"{tuple(operand.shape)}{' (transposed)' if transposed else ''}"
        for operand, transposed in ((x, transposed_x), (y, transposed_y))
    )
    remedy = "scalars are not supported: use multiply"
    if x.ndim and y.ndim:
        is_vector = name == "matvec" or y.ndim == 1
        m, n = (
            x.shape[-1 - (transposed_x and x.ndim > 1)],
            y.shape[-2 + (is_vector or transposed_y)],
        )
        axis = -1 if is_vector else -2
        remedy = f"axis -1 of the first ({m}) and axis {axis} of the second ({n}) must be equal"
        if name == "matvec" and x.ndim == 1:
            remedy = "the first must be a matrix; for two vectors use tf.tensordot(x, y, 1)"
        elif y.ndim > 1 and x.shape[:-2] == y.shape[:-1] and m == y.shape[-1]:
            remedy += "; for matrices times vectors use tf.linalg.matvec"
        elif x.ndim > 1 and not is_vector and m != n:
            of_x = ("first", transposed_x, x.shape[-2 + transposed_x] == n)
            of_y = ("second", transposed_y, y.shape[-1 - transposed_y] == m)
            for which, turned, fits in (of_x, of_y):
                remedy += f"; they fit if the {which} is {'not ' * turned}transposed" * fits
    where = " inside vmap" * any(isinstance(operand._data, ExampleAval) for operand in (x, y))
    raise InvalidArgumentError(f"{name}: shapes {left} and {right}{where} do not fit: {remedy}")
