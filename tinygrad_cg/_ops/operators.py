"""Python's operators and array methods on Tensors and Variables, from one table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.conversion import convert, is_tensor
from .._core.tensor import ArrayLike, Tensor
from .._spellings.adapt import rounded
from ..errors import InvalidArgumentError
from . import elementwise, indexing, protocol, reductions, shape
from . import linear_algebra as linalg
from . import trigonometry as trigonometric
from .define import as_int


def _reflected(op: Any) -> Callable:
    return getattr(op, "reflected", None) or (lambda self, other: op(other, self))


def _equal(self: Any, other: Any) -> Any:
    return False if other is None else elementwise.equal(self, other)


def _not_equal(self: Any, other: Any) -> Any:
    return True if other is None else elementwise.not_equal(self, other)


def _invert(x: Any) -> Tensor:
    if x.dtype.kind != "b":
        raise TypeError(f"~ needs a boolean tensor, got {x.dtype}")
    return elementwise.logical_not(x)


def _matrix_transpose(x: Any) -> Tensor:
    if x.ndim < 2:
        raise InvalidArgumentError(f"mT: needs at least 2 dimensions, got {x.ndim}")
    return shape.swap_last(convert(x))


def _round(x: Any, digits: Any = None) -> Tensor:
    return rounded(x, 0 if digits is None else as_int("round", "ndigits", digits))


def _logical(symbol: str, op: Callable) -> Callable:
    def logical(x: Any, y: Any) -> Tensor:
        for operand in (x, y):
            if is_tensor(operand) and operand.dtype.kind != "b":
                raise TypeError(f"{symbol} needs boolean tensors, got {operand.dtype}")
        return op(x, y)

    return logical


_UFUNCS = {
    np.add: elementwise.add,
    np.subtract: elementwise.subtract,
    np.multiply: elementwise.multiply,
    np.true_divide: elementwise.divide,
    np.floor_divide: elementwise.floor_divide,
    np.remainder: elementwise.remainder,
    np.power: elementwise.power,
    np.negative: elementwise.negative,
    np.positive: shape.identity,
    np.square: elementwise.square,
    np.sqrt: elementwise.sqrt,
    np.exp: elementwise.exp,
    np.log: elementwise.log,
    np.log1p: elementwise.log1p,
    np.expm1: elementwise.expm1,
    np.exp2: elementwise.exp2,
    np.log2: elementwise.log2,
    np.log10: elementwise.log10,
    np.sinh: elementwise.sinh,
    np.cosh: elementwise.cosh,
    np.cbrt: elementwise.cbrt,
    np.hypot: elementwise.hypot,
    np.logaddexp: elementwise.logaddexp,
    np.tanh: elementwise.tanh,
    np.sin: elementwise.sin,
    np.cos: elementwise.cos,
    np.tan: trigonometric.tan,
    np.arcsin: trigonometric.arcsin,
    np.arccos: trigonometric.arccos,
    np.arctan: trigonometric.arctan,
    np.arctan2: trigonometric.arctan2,
    np.arcsinh: trigonometric.arcsinh,
    np.arccosh: trigonometric.arccosh,
    np.arctanh: trigonometric.arctanh,
    np.absolute: elementwise.absolute,
    np.sign: elementwise.sign,
    np.rint: elementwise.round_half_even,
    np.floor: elementwise.floor,
    np.ceil: elementwise.ceil,
    np.maximum: elementwise.maximum,
    np.minimum: elementwise.minimum,
    np.equal: elementwise.equal,
    np.not_equal: elementwise.not_equal,
    np.less: elementwise.less,
    np.less_equal: elementwise.less_equal,
    np.greater: elementwise.greater,
    np.greater_equal: elementwise.greater_equal,
    np.logical_and: elementwise.logical_and,
    np.logical_or: elementwise.logical_or,
    np.logical_xor: elementwise.logical_xor,
    np.logical_not: elementwise.logical_not,
    np.isnan: elementwise.isnan,
    np.isinf: elementwise.isinf,
    np.isfinite: elementwise.isfinite,
    np.matmul: linalg.matmul,
    np.bitwise_and: _logical("&", elementwise.logical_and),
    np.bitwise_or: _logical("|", elementwise.logical_or),
    np.bitwise_xor: _logical("^", elementwise.logical_xor),
    np.invert: _invert,
}
_BINARY = {
    "add": elementwise.add,
    "sub": elementwise.subtract,
    "mul": elementwise.multiply,
    "truediv": elementwise.divide,
    "floordiv": elementwise.floor_divide,
    "mod": elementwise.remainder,
    "pow": elementwise.power,
    "matmul": linalg.matmul,
    "and": _logical("&", elementwise.logical_and),
    "or": _logical("|", elementwise.logical_or),
    "xor": _logical("^", elementwise.logical_xor),
}
_OTHERS = {
    "__lt__": elementwise.less,
    "__le__": elementwise.less_equal,
    "__gt__": elementwise.greater,
    "__ge__": elementwise.greater_equal,
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


def install() -> None:
    """Put the operators on the classes."""
    for name, op in _BINARY.items():
        setattr(ArrayLike, f"__{name}__", op)
        setattr(ArrayLike, f"__r{name}__", _reflected(op))
    for name, op in _OTHERS.items():
        setattr(ArrayLike, name, op)
    protocol.ufuncs.update(_UFUNCS)


install()
