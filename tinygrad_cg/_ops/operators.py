"""Python's operators and array methods on Tensors and Variables, from one table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.conversion import convert, is_tensor
from .._core.kinds import is_bool
from .._core.primitive import OPS
from .._core.tensor import ArrayLike, Tensor
from ..errors import InvalidArgumentError
from . import comparison, elementwise, indexing, protocol, reductions, shape
from . import linear_algebra as linalg
from .define import as_int


def _reflect(op: Any) -> Callable:
    return getattr(op, "reflected", None) or (lambda self, other: op(other, self))


def _equal(self: Any, other: Any) -> Any:
    return False if other is None else comparison.equal(self, other)


def _not_equal(self: Any, other: Any) -> Any:
    return True if other is None else comparison.not_equal(self, other)


def _invert(x: Any) -> Tensor:
    if not is_bool(x.dtype):
        raise TypeError(f"~ needs a boolean tensor, got {x.dtype}")
    return comparison.logical_not(x)


def _matrix_transpose(x: Any) -> Tensor:
    if x.ndim < 2:
        raise InvalidArgumentError(f"mT: needs at least 2 dimensions, got {x.ndim}")
    return shape.swap_last(convert(x))


def _round(x: Any, digits: Any = None) -> Tensor:
    return elementwise.round_decimals(
        x, 0 if digits is None else as_int("round", "ndigits", digits)
    )


def _logical(symbol: str, op: Callable) -> Callable:
    def logical(x: Any, y: Any) -> Tensor:
        for operand in (x, y):
            if is_tensor(operand) and not is_bool(operand.dtype):
                raise TypeError(f"{symbol} needs boolean tensors, got {operand.dtype}")
        return op(x, y)

    return logical


_BINARY = {
    "add": elementwise.add,
    "sub": elementwise.subtract,
    "mul": elementwise.multiply,
    "truediv": elementwise.divide,
    "floordiv": elementwise.floor_divide,
    "mod": elementwise.remainder,
    "pow": elementwise.power,
    "matmul": linalg.matmul,
    "and": _logical("&", comparison.logical_and),
    "or": _logical("|", comparison.logical_or),
    "xor": _logical("^", comparison.logical_xor),
}
_OTHERS = {
    "__lt__": comparison.less,
    "__le__": comparison.less_equal,
    "__gt__": comparison.greater,
    "__ge__": comparison.greater_equal,
    "__eq__": _equal,
    "__ne__": _not_equal,
    "__neg__": elementwise.negative,
    "__abs__": elementwise.absolute,
    "__invert__": _invert,
    "__pos__": shape.identity,
    "__round__": _round,
    "__floor__": elementwise.floor,
    "__getitem__": indexing.getitem,
    "__array_ufunc__": protocol.array_ufunc,
    "__array_function__": protocol.array_function,
    "T": property(shape.transpose),
    "mT": property(_matrix_transpose),
    "astype": shape.cast,
    "reshape": lambda x, *sizes: shape.reshape(x, sizes[0] if len(sizes) == 1 else sizes),
    "transpose": lambda x, *perm: shape.transpose(x, (perm[0] if len(perm) == 1 else perm) or None),
    "sum": reductions.reduce_sum,
    "mean": reductions.reduce_mean,
    "prod": reductions.reduce_prod,
    "max": reductions.reduce_max,
    "min": reductions.reduce_min,
    "any": reductions.reduce_any,
    "all": reductions.reduce_all,
}


_BITWISE = {
    np.bitwise_and: _BINARY["and"],
    np.bitwise_or: _BINARY["or"],
    np.bitwise_xor: _BINARY["xor"],
    np.invert: _invert,
}


def install() -> None:
    """Put the operators on the classes, and tell NumPy which functions its ufuncs are."""
    for name, op in _BINARY.items():
        setattr(ArrayLike, f"__{name}__", op)
        setattr(ArrayLike, f"__r{name}__", _reflect(op))
    for name, op in _OTHERS.items():
        setattr(ArrayLike, name, op)
    of_records = {one.ufunc: one.function for one in OPS.values() if one.ufunc is not None}
    protocol.ufuncs.update(of_records | _BITWISE)


install()
