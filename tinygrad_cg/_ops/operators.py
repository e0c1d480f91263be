"""Python's operators and array methods on Tensors and Variables, from one table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .._core.conversion import convert, is_tensor
from .._core.kinds import is_exact
from .._core.primitive import OPS, answers_by_itself
from .._core.tensor import ArrayLike, Tensor
from ..errors import InvalidArgumentError
from . import comparison, elementwise, indexing, integers, protocol, shape
from . import complex as complex_parts
from . import linear_algebra as linalg
from .shape import reshape_in
from .validation import as_int


def _reflect(op: Any) -> Callable:
    return getattr(op, "reflected", None) or (lambda self, other: op(other, self))


_same, _different = comparison.equal.operator, comparison.not_equal.operator


def _equal(self: Any, other: Any) -> Any:
    return False if other is None else _same(self, other)


def _matmul(self: Any, other: Any) -> Any:
    return NotImplemented if answers_by_itself(other) else linalg.matmul(self, other)


def _bits(symbol: str, op: Callable) -> Callable:
    """Return Python's operator on bits; a TypeError says what it is for."""

    def operate(*operands: Any) -> Any:
        other = operands[-1]
        if type(other) is not Tensor and answers_by_itself(other):
            return NotImplemented
        for operand in operands:
            if is_tensor(operand) and not is_exact(operand.dtype):
                raise TypeError(f"{symbol} needs tensors of integers or bools, got {operand.dtype}")
        return op(*operands)

    return operate


def _matrix_transpose(x: Any) -> Tensor:
    if x.ndim < 2:
        raise InvalidArgumentError(f"mT: needs at least 2 dimensions, got {x.ndim}")
    return shape.swap_last(convert(x))


def _astype(
    x: Any,
    dtype: Any,
    order: str = "K",
    casting: Any = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> Tensor:
    wanted = np.dtype(dtype)  # which reads Python's float as float64, as arrays do
    if casting != "unsafe" and not np.can_cast(x.dtype, wanted, casting):
        raise TypeError(f"astype: {x.dtype} cannot be cast to {wanted} by the rule {casting!r}")
    return shape.cast(x, wanted)


def _reshape(x: Any, *shape: Any, order: str = "C", copy: Any = None) -> Tensor:
    return reshape_in(x, shape[0] if len(shape) == 1 else shape, order)


def _flatten(x: Any, order: str = "C") -> Tensor:
    return reshape_in(x, (-1,), order)


def _compress(x: Any, condition: Any, axis: Any = None, out: None = None) -> Tensor:
    return protocol.of_numpy("compress")(condition, x, axis, out)


def _array_namespace(x: Any, /, *, api_version: str | None = None) -> Any:
    """Return ``tinygrad_cg.numpy``, which has the names of the array API standard 2024.12.

    Raises ValueError for a version of the standard that is not known.
    """
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f"array API {api_version} is not supported: the latest is 2024.12")
    return protocol.namespace()


class _LoadedAttribute:
    """An attribute of tensors whose first use loads it; what it is takes its place then."""

    def __init__(self, name: str, load: Callable[[], Any]):
        self._name, self._load = name, load

    def __get__(self, x: Any, owner: type) -> Any:
        setattr(ArrayLike, self._name, self._load())
        return ArrayLike.__dict__[self._name].__get__(x, owner)


def _load_at() -> property:
    from .updates import At

    return property(At)


def _round(x: Any, digits: Any = None) -> Tensor:
    return elementwise.round_decimals(
        x, 0 if digits is None else as_int("round", "ndigits", digits)
    )


_BINARY = {
    "add": elementwise.add,
    "sub": elementwise.subtract,
    "mul": elementwise.multiply,
    "truediv": elementwise.divide,
    "floordiv": elementwise.floor_divide,
    "mod": elementwise.remainder,
    "pow": elementwise.power,
    "matmul": linalg.matmul,
    "and": _bits("&", integers.bitwise_and),
    "or": _bits("|", integers.bitwise_or),
    "xor": _bits("^", integers.bitwise_xor),
    "lshift": _bits("<<", integers.left_shift),
    "rshift": _bits(">>", integers.right_shift),
}
_OTHERS = {
    "__lt__": comparison.less.operator,
    "__le__": comparison.less_equal.operator,
    "__gt__": comparison.greater.operator,
    "__ge__": comparison.greater_equal.operator,
    "__eq__": _equal,
    "__ne__": lambda x, other: True if other is None else _different(x, other),
    "__matmul__": _matmul,
    "__neg__": elementwise.negative,
    "__abs__": elementwise.absolute,
    "__invert__": _bits("~", integers.invert),
    "__pos__": shape.identity,
    "__round__": _round,
    "__floor__": elementwise.floor,
    "__getitem__": indexing.getitem,
    "__array_ufunc__": protocol.array_ufunc,
    "__array_function__": protocol.array_function,
    "__array_namespace__": _array_namespace,
    "T": property(shape.transpose),
    "mT": property(_matrix_transpose),
    "at": _LoadedAttribute("at", _load_at),
    "real": property(complex_parts.real),
    "imag": property(complex_parts.imag),
    "astype": _astype,
    "compress": _compress,
    "flatten": _flatten,
    "reshape": _reshape,
    "transpose": lambda x, *axes: shape.transpose(x, (axes[0] if len(axes) == 1 else axes) or None),
}
# Methods that are the functions of ``tinygrad_cg.numpy`` of these names, with the tensor in front.
_OF_NUMPY = (
    *("all", "any", "argmax", "argmin", "argpartition", "argsort", "choose", "clip", "conj"),
    *("conjugate", "copy", "cumprod", "cumsum", "diagonal", "dot", "max", "mean", "min"),
    *("nonzero", "partition", "prod", "ravel", "repeat", "round", "searchsorted", "sort"),
    *("squeeze", "std", "sum", "swapaxes", "take", "trace", "var"),
)


def install() -> None:
    """Put the operators on the classes, and tell NumPy which functions its ufuncs are."""
    for name, op in _BINARY.items():
        setattr(ArrayLike, f"__{name}__", getattr(op, "operator", op))
        setattr(ArrayLike, f"__r{name}__", _reflect(op))
    for name, op in _OTHERS.items():
        setattr(ArrayLike, name, op)
    for name in _OF_NUMPY:
        load = partial(protocol.of_numpy, name)
        setattr(ArrayLike, name, _LoadedAttribute(name, load))
    of_records = {op.ufunc: op.function for op in OPS.values() if op.ufunc is not None}
    protocol.ufuncs.update(of_records)


install()
