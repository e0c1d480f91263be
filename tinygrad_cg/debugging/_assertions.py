"""Assertions on tensors, which hold inside a `function` and a batch too.

Modelled on ``tf.debugging``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.conversion import as_dtype, convert
from .._core.kinds import is_floating
from .._ops.namespaces.namespace import own_functions, spelled
from .._ops.shape import stop_gradient
from .._rules.outside_code import numpy_function
from ..errors import InvalidArgumentError


def _check(name: str, holds: Callable[..., Any], message: Any, words: str, *operands: Any) -> None:
    """Raise InvalidArgumentError unless `holds` is true of all values of the operands."""
    tensors = [stop_gradient(convert(operand)) for operand in operands]

    def check(*arrays: np.ndarray) -> tuple[()]:
        try:
            true = np.asarray(holds(*arrays))
        except ValueError:
            shapes = " and ".join(str(array.shape) for array in arrays)
            raise InvalidArgumentError(f"{name}: shapes {shapes} do not broadcast") from None
        if true.all():
            return ()
        first = np.unravel_index(int(np.argmin(true)), true.shape)
        values = [np.broadcast_to(array, true.shape)[first] for array in arrays]
        named = zip("xy"[: len(values)], values, strict=True)
        shown = ", ".join(f"{letter} = {value}" for letter, value in named)
        raise _failure(
            f"{name}: Condition {words} did not hold element-wise: {true.size - true.sum()} of "
            f"{true.size} elements; at {tuple(map(int, first))}: {shown}",
            message,
        )

    numpy_function(check, tensors, [], name=name)


def _failure(words: str, message: Any) -> InvalidArgumentError:
    """Return the error of an assertion, after the user's message."""
    return InvalidArgumentError(words if message is None else f"{message} {words}")


def _of_two(name: str, holds: Callable[..., Any], symbol: str):
    """Return the assertion that a comparison is true of two tensors."""

    def check(x: Any, y: Any, message: Any = None, summarize: Any = None, name: Any = None) -> None:
        _check(check.__name__, holds, message, f"x {symbol} y", x, y)

    check.__doc__ = (
        f"Raise InvalidArgumentError unless ``x {symbol} y`` for all elements; x and y broadcast."
    )
    return spelled(check, name)


assert_equal = _of_two("assert_equal", np.equal, "==")
assert_less = _of_two("assert_less", np.less, "<")
assert_less_equal = _of_two("assert_less_equal", np.less_equal, "<=")
assert_greater = _of_two("assert_greater", np.greater, ">")
assert_greater_equal = _of_two("assert_greater_equal", np.greater_equal, ">=")


def assert_none_equal(
    x: Any, y: Any, summarize: Any = None, message: Any = None, name: Any = None
) -> None:
    """Raise InvalidArgumentError unless ``x != y`` for all elements; x and y broadcast."""
    _check("assert_none_equal", np.not_equal, message, "x != y", x, y)


def _of_zero(name: str, holds: Callable[..., Any], symbol: str):
    """Return the assertion that a comparison with 0 is true of a tensor."""

    def check(x: Any, message: Any = None, summarize: Any = None, name: Any = None) -> None:
        _check(check.__name__, lambda x: holds(x, 0), message, f"x {symbol} 0", x)

    check.__doc__ = f"Raise InvalidArgumentError unless ``x {symbol} 0`` for all elements."
    return spelled(check, name)


assert_positive = _of_zero("assert_positive", np.greater, ">")
assert_negative = _of_zero("assert_negative", np.less, "<")
assert_non_negative = _of_zero("assert_non_negative", np.greater_equal, ">=")
assert_non_positive = _of_zero("assert_non_positive", np.less_equal, "<=")


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    message: Any = None,
    summarize: Any = None,
    name: Any = None,
) -> None:
    """Raise InvalidArgumentError unless ``abs(x - y) <= atol + rtol * abs(y)`` for all elements.

    `x` and `y` broadcast. The tolerances are 10 times the machine epsilon of x's dtype by default.
    """
    dtype = convert(x).dtype
    least = 10 * float(np.finfo(dtype).eps) if is_floating(dtype) or dtype.kind == "c" else 0.0
    atol, rtol = (
        least if tolerance is None else float(convert(tolerance)) for tolerance in (atol, rtol)
    )

    def near(x: np.ndarray, y: np.ndarray) -> Any:
        with np.errstate(invalid="ignore"):  # equal infinities, and NaN
            return (x == y) | (np.abs(x - y) <= atol + rtol * np.abs(y))

    _check("assert_near", near, message, "|x - y| <= atol + rtol * |y|", x, y)


def assert_rank(x: Any, rank: Any, message: Any = None, name: Any = None) -> None:
    """Raise InvalidArgumentError, a ValueError, unless `x` has `rank` dimensions."""
    wanted = int(convert(rank))
    _check_rank("assert_rank", x, lambda rank: rank == wanted, wanted, message)


def assert_rank_at_least(x: Any, rank: Any, message: Any = None, name: Any = None) -> None:
    """Raise InvalidArgumentError, a ValueError, unless `x` has `rank` dimensions or more."""
    least = int(convert(rank))
    _check_rank("assert_rank_at_least", x, lambda rank: rank >= least, f"at least {least}", message)


def assert_rank_in(x: Any, ranks: Any, message: Any = None, name: Any = None) -> None:
    """Raise InvalidArgumentError, a ValueError, unless the rank of `x` is one of `ranks`."""
    allowed = [int(convert(rank)) for rank in ranks]
    _check_rank("assert_rank_in", x, allowed.__contains__, f"in {allowed}", message)


def assert_scalar(tensor: Any, message: Any = None, name: Any = None) -> None:
    """Raise InvalidArgumentError, a ValueError, unless `tensor` has no dimensions."""
    _check_rank("assert_scalar", tensor, lambda rank: rank == 0, 0, message)


def _check_rank(name: str, x: Any, holds: Callable[[int], bool], words: Any, message: Any) -> None:
    shape = tuple(convert(x).shape)
    if not holds(len(shape)):
        rank = f"Received rank {len(shape)}, shape {shape}"
        raise _failure(f"{name}: Tensor must have rank {words}. {rank}", message)


def assert_type(tensor: Any, tf_type: Any, message: Any = None, name: Any = None) -> None:
    """Raise TypeError unless `tensor` has the dtype `tf_type`."""
    dtype, wanted = convert(tensor).dtype, as_dtype(tf_type)
    if dtype != wanted:
        text = "" if message is None else f"{message} "
        raise TypeError(f"{text}assert_type: tensor must be of type {wanted}; got {dtype}")


def assert_shapes(
    shapes: Any, data: Any = None, summarize: Any = None, message: Any = None, name: Any = None
) -> None:
    """Raise InvalidArgumentError, a ValueError, unless tensors have shapes that fit each other.

    `shapes` are pairs (tensor, shape). In a shape, an integer is a size, a name such as "N" is one
    size in all shapes, None or "." is any size, and a first ... or "*" any number of axes.

    Examples
    --------
    >>> tf.debugging.assert_shapes([(tf.ones([5, 2]), ("N", 2)), (tf.ones([5]), "N")])
    """
    sizes: dict[str, int] = {}
    for tensor, symbols in shapes:
        own, wanted = tuple(convert(tensor).shape), list(symbols)
        if wanted[:1] in ([...], ["*"]):
            wanted = [None] * max(len(own) - len(wanted) + 1, 0) + wanted[1:]
        fits = len(own) == len(wanted)
        for size, symbol in zip(own, wanted, strict=False):
            if isinstance(symbol, str) and symbol != "." and not symbol.isdigit():
                fits = fits and sizes.setdefault(symbol, size) == size
            elif symbol not in (None, "."):
                fits = fits and size == int(symbol)
        if not fits:
            words = f"assert_shapes: a tensor of shape {own} must have shape {symbols}"
            raise _failure(f"{words}, where {sizes}", message)


def Assert(condition: Any, data: Any = (), summarize: Any = None, name: Any = None) -> None:
    """Raise InvalidArgumentError with `data` in its message unless `condition` is true."""
    operands = [stop_gradient(convert(operand)) for operand in (condition, *data)]

    def check(true: np.ndarray, *arrays: np.ndarray) -> tuple[()]:
        if true.all():
            return ()
        raise InvalidArgumentError(f"assertion failed: {' '.join(map(str, arrays))}")

    numpy_function(check, operands, [], name="Assert")


__all__ = own_functions(globals())
