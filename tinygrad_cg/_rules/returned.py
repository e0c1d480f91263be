"""Checks and conversion of gradients that a custom rule returned (docs/behaviour.md 0.3, 0.12)."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import nullcontext
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from .. import nest
from .._core import devices
from .._core.conversion import IndexedSlices, convert, is_tensor, is_weak
from .._core.kinds import is_complex, is_differentiable, is_exact
from .._core.levels import is_transposing
from .._core.tensor import Aval, Tensor, operations
from .._ops.comparison import isnan
from .._ops.elementwise import multiply, where
from .._ops.shape import broadcast_to, cast
from ..errors import ArgumentTypeError, GradientCountError, GradientShapeError
from .definition import source_line
from .user_source import definition_of, returns

_ARRAYS = (np.ndarray, IndexedSlices)


def gradients_of_inputs(call: Any, returned: Any, targets: Sequence) -> list:
    """Return one gradient (or None) for each input; ValueError if number or shapes are wrong.

    `targets` have the inputs' shapes and dtypes: their nodes, or None for an unwatched input.
    """
    flat = [] if returned is None and not call.count else nest.flatten(returned)
    if len(flat) != call.count:
        _refuse_count(call, len(flat), returned is None)
    if returned is None and call.count and ends_without_return(call.grad_fn):
        name = call.definition.name
        call.definition.warn(
            "return",
            f"the rule of `{name}` has no `return`, so the gradient with respect to "
            f"`{input_names(call)[0]}` is None. End the rule with `return gradient`, or, if None "
            f"is intended, with `return None` (the rule: {_where(call)}); `{name}`:",
        )
    homes = call.homes or [None] * call.count
    return [
        _fit_gradient(call, gradient, target, f"{i}", None, home)
        for i, (gradient, target, home) in enumerate(zip(flat, targets, homes, strict=True))
    ]


def gradients_of_variables(call: Any, returned: Any) -> tuple[Any, list]:
    """Split (grad_xs, grad_vars), and check the second part."""
    used = call.variables or []
    name, count = call.definition.name, len(used)
    names = [variable.name for variable in used]
    variables = f"{count} variable{'s' * (count != 1)} ({', '.join(names)})"
    if len({*names}) < count:
        variables += ", which tf.Variable(value, name=...) can tell apart"
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        is_scalar = is_tensor(returned) and getattr(returned, "shape", None) == ()
        theirs = ' (TensorFlow raises this as "Cannot iterate over a scalar tensor.")' * is_scalar
        raise TypeError(
            f"`{name}` uses {variables}, so its rule must return a pair, "
            "(gradients of the inputs, list of the gradients of its variables), got "
            f"{type(returned).__name__} ({_where(call)}){theirs}"
        )
    inputs, flat = returned
    if not isinstance(flat, (tuple, list)):
        flat = [flat]
    if len(flat) != count:
        raise ValueError(
            "Must return gradient for each variable from @custom_gradient grad_fn. "
            f"`{name}` uses {variables}. The second part of what its rule returns must be a list "
            f"of {count} gradients, got {len(flat)} ({_where(call)})"
        )
    homes = devices.homes(used) or [None] * count
    values = [variable._kept_value() for variable in used]  # a check may hold them in float64
    labels = [f"the variable `{variable.name}`" for variable in used]
    return inputs, [
        _fit_gradient(call, gradient, value, f"of variable {i}", label, home)
        for i, (gradient, value, label, home) in enumerate(
            zip(flat, values, labels, homes, strict=True)
        )
    ]


def _fit_gradient(
    call: Any, gradient: Any, target: Any, number: str, label: str | None, home: str | None
) -> Any:
    """Return `gradient` as a tensor of the shape and dtype of `target`, named by `label`.

    It is on the device `home`, unless that is None.
    """
    if gradient is None or target is None:
        return None
    wanted, dtype = target.shape, target.dtype
    if not is_differentiable(dtype):
        return None
    name = call.definition.name
    if not (is_tensor(gradient) or is_weak(gradient) or isinstance(gradient, _ARRAYS)):
        raise TypeError(
            f"the rule of `{name}` must return a tensor, an array, a number or None as the "
            f"gradient of {_label(call, number, label)}, got {type(gradient).__name__} "
            f"({_where(call)})"
        )
    with nullcontext() if home is None else devices.on(home):
        tensor = convert(gradient, dtype if is_weak(gradient) else None)
    if home is not None:
        tensor = _fit_device(call, tensor, home, number, label)
    if tensor._data.shape != wanted:
        tensor = _fit_shape(call, tensor, wanted, number, label)
    if tensor.dtype != dtype:
        loss = _loss(tensor, dtype)
        if loss:
            call.definition.warn(
                "dtype",
                f"the rule of `{name}` returned a gradient of dtype {tensor.dtype} for "
                f"{_label(call, number, label)}, which is {dtype}: {loss}",
                number,
            )
        tensor = cast(tensor, dtype)
    return _with_nan(tensor) if is_transposing() else tensor


def _loss(gradient: Tensor, dtype: np.dtype) -> str:
    """Return what a cast of a gradient to `dtype` loses, or "" for nothing; zeros lose nothing."""
    data = gradient._data
    if is_exact(data.dtype):
        return "integers have no fractions" if isinstance(data, Aval) or data.any() else ""
    if np.can_cast(data.dtype, dtype, "safe"):
        return ""
    is_real = is_complex(data.dtype) and not is_complex(dtype)
    return "the imaginary part is dropped" if is_real else "digits are lost"


def _with_nan(gradient: Tensor) -> Tensor:
    """Return a gradient whose transpose is NaN where the gradient is: 1 / inf would hide that."""
    is_nan = isnan(gradient)
    if not isinstance(is_nan._data, Aval) and not is_nan._data.any():
        return gradient
    return multiply(gradient, cast(where(is_nan, np.nan, 1.0), gradient.dtype))


def _label(call: Any, number: str, label: str | None) -> str:
    return label or f"input `{input_names(call)[int(number)]}`"


def _fit_device(call: Any, tensor: Tensor, wanted: str, number: str, label: str | None) -> Tensor:
    """Return a single value on a device; raise for others that are elsewhere."""
    device, _ = devices.elsewhere(tensor, wanted)
    if device is None:
        return tensor
    if not tensor._data.ndim:
        return operations.to_device(tensor, wanted)
    raise ArgumentTypeError(
        f"the rule of `{call.definition.name}` returned a gradient on '{device}' for "
        f"{_label(call, number, label)}, which is on '{wanted}': return it with .{wanted[:3]}() "
        f"(the rule: {_where(call)})"
    )


def _fit_shape(call: Any, tensor: Tensor, wanted: tuple, number: str, label: str | None) -> Tensor:
    """Return a scalar broadcast, with a warning; raise for any other wrong shape."""
    shape, name, label = tuple(tensor.shape), call.definition.name, _label(call, number, label)
    if shape:
        axes, remedy = _undo_broadcasting(shape, wanted)
        hint = f"; to undo broadcasting, sum over axes {axes}: {remedy}" if remedy else ""
        if len(shape) == 2 and shape[::-1] == wanted:
            remedy, hint = "transpose(gradient)", "; its transpose fits: transpose(gradient)"
        raise GradientShapeError(
            f"the rule of `{name}` returned a gradient of shape {shape} for {label}, which has "
            f"shape {tuple(wanted)}{hint} (the rule: {_where(call)})",
            function=name,
            line=source_line(call.grad_fn),
            index=int(number) if number.isdigit() else None,
            label=label,
            expected=tuple(wanted),
            returned=shape,
            axes=axes,
            remedy=remedy,
        )
    call.definition.warn(
        "scalar",
        f"the rule of `{name}` returned a scalar as the gradient of {label}, so each element of "
        f"the gradient is this scalar. Return a gradient of shape {tuple(wanted)}",
        number,
    )
    return broadcast_to(tensor, wanted)


def _undo_broadcasting(shape: tuple, wanted: tuple) -> tuple[list[int], str]:
    """Return the axes to sum over and a call that does it; nothing if that does not help."""
    extra = len(shape) - len(wanted)
    if extra < 0 or any(size not in (1, shape[i]) for i, size in enumerate(wanted, extra)):
        return [], ""
    keep = [i for i, size in enumerate(wanted, extra) if shape[i] != size]
    axes = [*range(extra), *keep]
    if not extra:
        return axes, f"reduce_sum(gradient, axis={axes}, keepdims=True)"
    if not keep:
        return axes, f"reduce_sum(gradient, axis={axes})"
    return axes, f"reshape(reduce_sum(gradient, axis={axes}), {wanted})"


@lru_cache
def _has_return(code: CodeType) -> bool:
    """Return whether the text of a function has a `return`, or is a lambda."""
    tree = definition_of(code)
    if tree is None or isinstance(tree, ast.Lambda):
        return True  # without its source, assume so; a lambda returns its value
    return bool(returns(tree))


def ends_without_return(function: Any) -> bool:
    """Return whether a function returns None because its text has no `return`."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is not None and not _has_return(code)


def _refuse_count(call: Any, returned: int, is_none: bool = False) -> None:
    names = input_names(call)
    name, expected = call.definition.name, len(names)
    gradients = "gradient" if returned == 1 else "gradients"
    inputs = "input" if expected == 1 else "inputs"
    forgotten = is_none and ends_without_return(call.grad_fn)
    hint = "grad_fn has no `return`: it returned None. " if forgotten else ""
    raise GradientCountError(
        f"the rule of `{name}` returned {returned} {gradients}, but `{name}` has {expected} "
        f"{inputs} ({', '.join(names)}). {hint}Return one gradient for each input, or None if an "
        f"input has no gradient, such as an integer (the rule: {_where(call)}). TensorFlow raises "
        f'this as "custom_gradient function expected to return '
        f'{expected} gradients, but returned {returned} instead."',
        function=name,
        line=source_line(call.grad_fn),
        expected=expected,
        returned=returned,
        names=names,
    )


def input_names(call: Any) -> list[str]:
    """Return the names of a call's inputs, from its function's signature."""
    paths = call.paths
    return call.definition.input_names(
        [(i, "") for i in range(call.count)] if paths is None else paths
    )


def _where(call: Any) -> str:
    return call.definition.where(call.grad_fn)
