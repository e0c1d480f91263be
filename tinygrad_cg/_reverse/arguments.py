"""The arguments of a gradient: targets, sources, upstream gradients, checked alike everywhere."""

from __future__ import annotations

import enum
import reprlib
from typing import Any, NoReturn

from .. import nest
from .._core import devices
from .._core.conversion import FLOAT32, convert, is_tensor
from .._core.kinds import is_complex, is_differentiable
from .._core.tensor import Tensor
from ..errors import ArgumentTypeError, InvalidArgumentError, TapeWarning, warn

NO_TENSOR = "compute it with tensors (a tape does not record float() or numpy())"


class UnconnectedGradients(enum.Enum):
    """The gradient if the target does not depend on a source."""

    NONE = "none"
    ZERO = "zero"


def flat_targets(target: Any) -> list:
    if target is None:
        raise TypeError(
            "Argument `target` should be a list or nested structure of Tensors, Variables or "
            "CompositeTensors to be differentiated, but received None."
        )
    flat = nest.flatten(target)
    for leaf in flat:
        if not is_tensor(leaf):
            _refuse("the `target` of gradient() is {}, not a Tensor; " + NO_TENSOR, leaf)
    return flat


def check_source(source: Any) -> None:
    if not is_tensor(source):
        words = "source must be a Tensor or Variable, got {}: pass a tensor that the target uses"
        _refuse(words, source, _brief(source))
    if not is_differentiable(source._data.dtype):
        warn(
            "The dtype of the source tensor must be floating (e.g. float32) when calling "
            f"GradientTape.gradient, got {source.dtype}: its gradient is None",
            TapeWarning,
        )


def class_name(value: Any) -> str:
    """Return the name of a value's class, with its module unless it is built in."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _brief(value: Any) -> str:
    """Return the text of a number or string, or the shape of an array, after a space."""
    if isinstance(value, (bool, int, float, complex, str)):
        return f" {reprlib.repr(value)}"
    shape = getattr(value, "shape", None)
    return f" of shape {shape}" if isinstance(shape, tuple) else ""


def _refuse(words: str, value: Any, text: str = "") -> NoReturn:
    name = class_name(value) + text
    if value is None:
        theirs = "Cannot convert the argument `type_value`: None to a TensorFlow DType."
        words, name = f'{words} (TensorFlow raises this as "{theirs}")', "None"
    raise TypeError(words.format(name))


def check_upstream(output_gradients: Any, targets: list, optional: bool = False) -> list:
    """Return one upstream gradient per target, checked; None for the default if `optional`."""
    flat = nest.flatten(output_gradients)
    if len(flat) != len(targets):
        asked, count = len(targets), len(flat)
        raise ValueError(
            f"{asked} target{'s' * (asked != 1)}, {count} output gradient{'s' * (count != 1)}: "
            "output_gradients needs one entry for each target (wrap the values for one target "
            "in constant())"
        )
    checked: list = []
    for i, (gradient, target) in enumerate(zip(flat, targets, strict=True)):
        if gradient is None and optional:
            checked.append(None)
            continue
        if gradient is None:
            raise ValueError(
                f"output_gradients[{i}]: Attempt to convert a value (None) with an unsupported "
                "type to a Tensor; pass ones_like(target) for the default"
            )
        dtype = target.dtype if is_differentiable(target.dtype) else FLOAT32
        with devices.on_device_of(target):
            tensor = convert(gradient, dtype)
        if tensor.shape not in (target.shape, ()):
            raise InvalidArgumentError(
                f"output_gradients[{i}] has shape {tuple(tensor.shape)}, target has shape "
                f"{tuple(target.shape)}"
            )
        if is_complex(tensor.dtype) and not is_complex(target.dtype):
            raise TypeError(
                f"output_gradients[{i}] is {tensor.dtype}, but its target is {target.dtype}: pass "
                "its real part"
            )
        _check_device(i, tensor, target)
        checked.append(tensor)
    return checked


def _check_device(i: int, gradient: Tensor, target: Any) -> None:
    """Raise ArgumentTypeError for an upstream gradient on another device, unless it is single."""
    device, wanted = devices.elsewhere(gradient, target)
    if device is None or not gradient._data.ndim:
        return
    raise ArgumentTypeError(
        f"output_gradients[{i}] is on '{device}', its target on '{wanted}': pass it with "
        f".{wanted[:3]}()"
    )


def wants_zeros(choice: Any) -> bool:
    try:
        return UnconnectedGradients(choice) is UnconnectedGradients.ZERO
    except ValueError:
        raise ValueError(
            f"Unknown value for unconnected_gradients: {choice!r}: use 'none' or 'zero'"
        ) from None
