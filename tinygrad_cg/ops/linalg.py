"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_cg_kernels import contract

from ..convert import convert_operands, promote
from ..errors import InvalidArgumentError
from ..primitive import Primitive, apply, register
from ..tensor import Aval, Tensor
from .complex import conj
from .define import Case, broadcast_shapes
from .elementwise import multiply
from .shape import expand_dims, squeeze, swap_last, transpose


def _matmul_aval(x: Aval, y: Aval) -> Aval:
    batch = broadcast_shapes("matmul", x.shape[:-2], y.shape[:-2])
    return Aval((*batch, x.shape[-2], y.shape[-1]), promote(x.dtype, y.dtype))


_matmul = register(
    Primitive(
        "matmul",
        contract.matmul,
        ("x", "y"),
        _matmul_aval,
        (
            lambda dy, y: apply(_matmul, (dy, swap_last(y)), {}),
            lambda dy, x: apply(_matmul, (swap_last(x), dy), {}),
        ),
        kind="contraction",
        kernel=contract.matmul,
        batch=lambda params, size: params,
        core=(2, 2),
        reference=np.matmul,
        samples=[Case(((2, 3), (3, 2))), Case(((2, 2, 3), (3, 1))), Case(((1, 3), (2, 3, 2)))],
    )
)


def _matvec_aval(x: Aval, y: Aval) -> Aval:
    batch = broadcast_shapes("matvec", x.shape[:-2], y.shape[:-1])
    return Aval((*batch, x.shape[-2]), promote(x.dtype, y.dtype))


_matvec = register(
    Primitive(
        "matvec",
        lambda x, y: contract.matmul(x, y[..., None])[..., 0],
        ("x", "y"),
        _matvec_aval,
        (
            lambda dy, y: multiply(expand_dims(dy, -1), expand_dims(y, -2)),
            lambda dy, x: apply(_matvec, (swap_last(x), dy), {}),
        ),
        kind="contraction",
        kernel=contract.matmul,
        batch=lambda params, size: params,
        core=(2, 1),
        reference=lambda x, y: np.matmul(x, y[..., None])[..., 0],
        samples=[Case(((2, 3), (3,))), Case(((2, 2, 3), (3,))), Case(((2, 3), (4, 3)))],
    )
)


def matmul(
    x: Any,
    y: Any,
    transpose_x: bool = False,
    transpose_y: bool = False,
    adjoint_x: bool = False,
    adjoint_y: bool = False,
) -> Tensor:
    """The matrix product over the last two axes; the axes before them broadcast.

    A 1-D operand is a row on the left or a column on the right, as in NumPy. The flags
    transpose (adjoint: and conjugate) an operand's last two axes first.
    """
    x, y = convert_operands((x, y))
    row, column = x._data.ndim == 1, y._data.ndim == 1
    x = expand_dims(x, 0) if row else _turn(x, transpose_x, adjoint_x)
    y = expand_dims(y, 1) if column else _turn(y, transpose_y, adjoint_y)
    if min(x._data.ndim, y._data.ndim) < 2 or x._data.shape[-1] != y._data.shape[-2]:
        _refuse("matmul", x, y)
    out = apply(_matmul, (x, y), {})
    if row or column:
        out = squeeze(out, [-2] * row + [-1] * column)
    return out


def matvec(x: Any, y: Any, transpose_x: bool = False, adjoint_x: bool = False) -> Tensor:
    """A matrix (..., m, n) times a vector (..., n): shape (..., m)."""
    x, y = convert_operands((x, y))
    x = _turn(x, transpose_x, adjoint_x)
    if x._data.ndim < 2 or y._data.ndim < 1 or x._data.shape[-1] != y._data.shape[-1]:
        _refuse("matvec", x, y)
    return apply(_matvec, (x, y), {})


def tensordot(x: Any, y: Any, axes: Any = 2) -> Tensor:
    """The sum of products over `axes`: a number of axes, or two lists of them."""
    from .define import normalize_axis
    from .shape import reshape

    x, y = convert_operands((x, y))
    if isinstance(axes, int):
        left = list(range(x._data.ndim - axes, x._data.ndim))
        right = list(range(axes))
    else:
        left, right = ([one] if isinstance(one, int) else list(one) for one in axes)
    left = [normalize_axis("tensordot", axis, x._data.ndim) for axis in left]
    right = [normalize_axis("tensordot", axis, y._data.ndim) for axis in right]
    if [x._data.shape[i] for i in left] != [y._data.shape[i] for i in right]:
        _refuse("tensordot", x, y)
    rows = [i for i in range(x._data.ndim) if i not in left]
    columns = [i for i in range(y._data.ndim) if i not in right]
    folded = int(np.prod([x._data.shape[i] for i in left], dtype=np.int64))
    height = [x._data.shape[i] for i in rows]
    width = [y._data.shape[i] for i in columns]
    first = reshape(transpose(x, rows + left), (int(np.prod(height)), folded))
    second = reshape(transpose(y, right + columns), (folded, int(np.prod(width))))
    return reshape(apply(_matmul, (first, second), {}), (*height, *width))


def _turn(x: Tensor, transposed: bool, adjoint: bool) -> Tensor:
    if transposed and adjoint:
        raise InvalidArgumentError("matmul: transpose and adjoint exclude each other")
    if not (transposed or adjoint) or x._data.ndim < 2:
        return x
    return conj(swap_last(x)) if adjoint else swap_last(x)


def _refuse(name: str, x: Tensor, y: Tensor) -> None:
    raise InvalidArgumentError(
        f"{name}: shapes {tuple(x.shape)} and {tuple(y.shape)} do not fit: the folded sizes "
        "must be equal, and neither operand may be a scalar"
    )
