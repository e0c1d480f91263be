"""check_numerics: an operation that returns its operand if that is finite."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.conversion import convert
from .._core.kinds import is_differentiable
from .._core.primitive import Primitive, apply, same_parameters
from .._core.tensor import Aval, Tensor
from ..errors import NonFiniteError


def _run(x: np.ndarray, message: str) -> np.ndarray:
    nan, inf = bool(np.isnan(x).any()), bool(np.isinf(x).any())
    if nan or inf:
        kinds = " and ".join(["Inf"] * inf + ["NaN"] * nan)
        raise NonFiniteError(f"{message} : Tensor had {kinds} values")
    return x


def _rule(dy: Tensor, message: str) -> Tensor:
    words = "Not a number (NaN) or infinity (Inf) values detected in gradient. "
    return check_numerics(dy, message if message.startswith(words) else words + message)


_check = Primitive(
    "check_numerics",
    _run,
    ("x",),
    lambda x, message: Aval(x.shape, x.dtype),
    (_rule,),
    kind="impure",
    linear=True,
    aliases=True,
    batch=same_parameters,
)


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """Return `tensor` if all of it is finite; its gradient is checked in the same way.

    Raises NonFiniteError (an InvalidArgumentError) with `message` for a NaN or an infinity,
    TypeError for other dtypes than floats. In a `function`, use the result; otherwise it is not
    computed. Modelled on ``tf.debugging.check_numerics``.
    """
    x = convert(tensor)
    if not is_differentiable(x.dtype):
        raise TypeError(f"check_numerics: tensor must be floats, got {x.dtype}")
    return apply(_check, (x,), {"message": str(message)})


def assert_all_finite(x: Any, message: str, name: str | None = None) -> Tensor:
    """Return `check_numerics` of `x`. Modelled on ``tf.debugging.assert_all_finite``."""
    return check_numerics(x, message)
