"""Primitives of the user's own: a kernel by name, and a gradient registered for that name.

Follows ``tf.RegisterGradient`` and ``tf.NotDifferentiable``: a gradient function takes
``(op, *grads)`` and returns the gradient of each of ``op.inputs``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tinygrad_cg_kernels.loops import Elementwise

from . import nest
from .convert import check_dtype, convert_operands, promote
from .custom_gradient import Call
from .functions import named
from .levels import Node, state
from .primitive import Primitive, apply
from .recipes import alias, bare
from .recording import part
from .registry import OPS, USER_OPS
from .returned import gradients_of_inputs
from .rules import Definition, Rule, place_of
from .sweep import fit_shape
from .tensor import Aval, Tensor

_gradients: dict[str, Callable[..., Any] | None] = {}


class RegisterGradient:
    """Decorator: ``@RegisterGradient("Name")`` registers a gradient for the primitive Name.

    The function takes ``(op, *grads)``, with one upstream gradient for each output, and returns
    the gradient of each of ``op.inputs`` (None: no gradient). ``op.inputs``, ``op.outputs``,
    ``op.get_attr(name)``, ``op.name`` and ``op.type`` are there for it. Raises KeyError if the
    name has a gradient already. It may come before the primitive is defined. After
    ``tf.RegisterGradient``.
    """

    def __init__(self, op_type: str):
        if not isinstance(op_type, str):
            raise TypeError(f"op_type must be a string, got {type(op_type).__name__}")
        self._op_type = op_type

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(function):
            raise TypeError(f"RegisterGradient decorates a function, got {function!r}")
        _register(self._op_type, function)
        return function


def NotDifferentiable(op_type: str) -> None:
    """Declare that the primitive of this name has no gradient: its inputs get None.

    Raises KeyError if the name has a gradient already. After ``tf.NotDifferentiable``.
    """
    if not isinstance(op_type, str):
        raise TypeError(f"op_type must be a string, got {type(op_type).__name__}")
    _register(op_type, None)


def _register(name: str, function: Callable[..., Any] | None) -> None:
    if name in OPS:
        raise KeyError(f"Registering two gradient with name '{name}'! The library defines it.")
    if name in _gradients:
        previous = _gradients[name]
        place = "NotDifferentiable"
        if previous is not None:
            place = 'File "{}", line {}'.format(*place_of(previous))
        raise KeyError(
            f"Registering two gradient with name '{name}'! (Previous registration: {place})"
        )
    _gradients[name] = function


def get_gradient_function(op_type: str) -> Callable[..., Any] | None:
    """The gradient registered for a name (None: not differentiable); else LookupError."""
    if op_type not in _gradients:
        raise LookupError(
            f"No gradient defined for operation '{op_type}' (op type: {op_type}). In general "
            "every operation must have an associated `@tf.RegisterGradient` for correct "
            f'autodiff: write one, or declare NotDifferentiable("{op_type}").'
        )
    return _gradients[op_type]


class Operation:
    """One use of a primitive, as its gradient function sees it."""

    def __init__(self, name: str, inputs: tuple, outputs: tuple, attrs: dict[str, Any]):
        self.type = name
        self.name = name
        self.inputs = inputs
        self.outputs = outputs
        self._attrs = attrs

    def get_attr(self, name: str) -> Any:
        """The attribute of that name; ValueError if the call had none."""
        if name not in self._attrs:
            raise ValueError(
                f"Operation '{self.name}' has no attr named '{name}'; it has "
                f"{', '.join(sorted(self._attrs)) or 'none'}"
            )
        return self._attrs[name]

    def __repr__(self) -> str:
        return f"<Operation {self.name!r} with {len(self.inputs)} inputs>"


def primitive(
    name: str,
    kernel: Callable[..., Any] | None = None,
    shape: Callable[..., Any] | None = None,
    elementwise: bool = False,
) -> Any:
    """Define an operation by its name and kernel; returns the function that applies it.

    Parameters
    ----------
    name:
        Unique. `RegisterGradient(name)` gives it a gradient.
    kernel:
        ``kernel(*arrays, **attrs)`` computes the result: an array, or a tuple of them for
        several outputs. A NumPy function, or one compiled by numba.njit. It gets read-only
        views, and what it returns is copied. If left out,
        `primitive` is a decorator of the kernel.
    shape:
        ``shape(*avals, **attrs)`` gives the shape of the result, or a pair (shape, dtype), from
        the inputs' `.shape` and `.dtype`; the kernel's result is checked against it.
    elementwise:
        The kernel is a function of numbers, which is compiled into a loop over broadcast arrays.

    The function takes tensors (or what converts to them) by position, attributes by keyword.
    Raises KeyError for a name in use, TypeError for a kernel that is no function.
    """
    if kernel is None:
        return lambda function: primitive(name, function, shape, elementwise)
    if not isinstance(name, str) or not name:
        raise TypeError(f"primitive: name must be a string, got {name!r}")
    if not callable(kernel):
        raise TypeError(f"primitive {name!r}: kernel must be callable, got {kernel!r}")
    if name in OPS or name in USER_OPS:
        raise KeyError(f"primitive: an operation named {name!r} is defined already")
    if elementwise:
        count = len(inspect.signature(getattr(kernel, "py_func", kernel)).parameters)
        run: Callable[..., Any] = Elementwise(name, kernel, count)
    else:
        run = _checked(name, kernel, shape)
    made = Primitive(
        name,
        run,
        ("inputs",),
        shape or _unknown_shape(name),
        save=_save(name, Definition(kernel, name)),
        rule=_rule,
        kind="user",
        doc=kernel.__doc__,
        kernel=run if elementwise else kernel,
    )
    USER_OPS[name] = made

    def op(*inputs: Any, **attrs: Any) -> Any:
        if not inputs:
            raise TypeError(f"{name}: needs at least one input")
        result = apply(made, convert_operands(inputs), attrs)
        return tuple(result) if isinstance(result, list) else result

    return named(op, made)


def _unknown_shape(name: str) -> Callable[..., Any]:
    def abstract(*avals: Aval, **attrs: Any) -> Any:
        raise TypeError(f"primitive {name!r} was defined without a shape rule: pass shape=")

    return abstract


def _checked(name: str, kernel: Callable[..., Any], shape: Any) -> Callable[..., Any]:
    def run(*arrays: np.ndarray, **attrs: Any) -> Any:
        views = []
        for array in arrays:
            view = array.view()
            view.flags.writeable = False
            views.append(view)
        result = kernel(*views, **attrs)
        if isinstance(result, (tuple, list)):
            return [_own(name, one, arrays) for one in result]
        data = _own(name, result, arrays)
        if shape is not None:
            _check_shape(name, data, shape(*[Aval(a.shape, a.dtype) for a in arrays], **attrs))
        return data

    return run


def _own(name: str, result: Any, arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    """What a kernel returned, as an array that nobody else can write to."""
    if isinstance(result, Tensor):
        raise TypeError(f"{name}: the kernel works on arrays, but returned a Tensor")
    if result is None:
        raise TypeError(f"{name}: the kernel returned None, expected an array")
    if isinstance(result, float):  # Python's floats have no precision of their own
        dtype = arrays[0].dtype
        for array in arrays[1:]:
            dtype = promote(dtype, array.dtype)
        return np.array(result, dtype if dtype.kind in "fc" else np.float64)
    data = np.asarray(result)
    return np.array(data, check_dtype(data.dtype, f"{name}: what the kernel returned"))


def _check_shape(name: str, data: np.ndarray, expected: Any) -> None:
    pair = isinstance(expected, tuple) and len(expected) == 2 and isinstance(expected[0], tuple)
    sizes = tuple(expected[0] if pair else expected)
    if data.shape != sizes or (pair and data.dtype != np.dtype(expected[1])):
        raise ValueError(
            f"{name}: the shape rule says {expected}, the kernel returned an array of shape "
            f"{data.shape} and dtype {data.dtype}"
        )


# Gradients -----------------------------------------------------------------------------------


def _save(name: str, definition: Definition) -> Callable[..., Any]:
    def save(inputs: tuple, attrs: dict | None, out: Any) -> tuple:
        outs = [bare(one) for one in out] if isinstance(out, list) else [bare(out)]
        return name, definition, inputs, attrs or {}, outs

    return save


def _rule(node: Node, dy: Any) -> list:
    name, definition, inputs, attrs, outs = node.saved
    function = get_gradient_function(name)
    if function is None:
        return [None] * len(inputs)
    if isinstance(dy, list):
        tensors = [
            alias(data, Node(node.group, (node,), part, i, data.shape, data.dtype))
            for i, data in enumerate(outs)
        ]
    else:
        tensors = [alias(outs[0], node)]
    state.rules.append(definition)
    try:
        operation = Operation(name, inputs, tuple(tensors), attrs)
        returned = function(operation, *(dy if isinstance(dy, list) else [dy]))
    finally:
        state.rules.pop()
    if isinstance(USER_OPS[name].kernel, Elementwise):
        returned = _unbroadcast(returned, inputs, outs[0].shape)
    call = Call(Rule(function), definition, function, len(inputs), None, None, None)
    return gradients_of_inputs(call, returned, node.inputs)


def _unbroadcast(returned: Any, inputs: tuple, shape: tuple[int, ...]) -> Any:
    """The library broadcast the operands of an elementwise kernel, so it undoes that here."""
    flat = [returned] if isinstance(returned, Tensor) else nest.flatten(returned)
    if len(flat) != len(inputs):
        return returned
    return [
        fit_shape(gradient, tensor._data.shape)
        if isinstance(gradient, Tensor) and gradient._data.shape == shape
        else gradient
        for gradient, tensor in zip(flat, inputs, strict=True)
    ]
