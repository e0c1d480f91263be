"""Elementwise functions with declared partial derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime import promotion

from .._core.conversion import convert, convert_result, is_tensor, is_weak
from .._core.kinds import is_complex, is_inexact
from .._core.levels import state
from .._core.tensor import Tensor
from .._ops.complex import conj, real
from .._ops.elementwise import add, multiply, multiply_upstream
from .._ops.reductions import sum_to_shape
from .._ops.shape import cast, repeat
from .._rules.custom_gradient import Bind
from .._rules.outside_runs import run_rule
from .._rules.rebinding import TransformedCall, rebind_outputs
from ..errors import InvalidArgumentError
from .declared import CallContext, Declared, context_of, detach, refuse_captured
from .jacobian_products import Products


class PartialDerivatives(Declared):
    """A function with declared partial derivatives.

    An entry is a derivative with respect to several arguments in turn. Its `path` holds their
    positions.
    """

    def __init__(self, f: Callable[..., Any], derivatives: Sequence, beyond: str):
        super().__init__(f, beyond)
        self.functions: list[Any] = [f]
        self.last = 0
        for function in derivatives:
            self.derivative(function)

    def derivative(self, function: Any) -> Any:
        """Declare the derivative of the next order; returns it, so that it decorates, too."""
        if not _is_declaration(function):
            raise TypeError(
                f"custom_derivatives: derivative {len(self.functions)} of {self.definition.name} "
                f"must be a function or a tuple of functions, got {type(function).__name__}"
            )
        self.functions.append(function)
        self.last += 1
        return function

    def __call__(self, *args: Any, **options: Any) -> Tensor:
        context = context_of(self.definition, args, options)
        return self._entries(context, 0, [()], None)[0]

    # Entries ---------------------------------------------------------------------------------

    def _entries(self, context: CallContext, order: int, paths: list[tuple], y: Any) -> list:
        """Return the entries at `paths` as tensors with rules, or None where none is declared.

        `y` has the shape and dtype of the function's result.
        """
        values: dict[int, Any] = {}
        entries = []
        for path in paths:
            function, rest = self.functions[order], path
            while isinstance(function, (tuple, list)):
                function, rest = self._part(context, order, function, rest[0]), rest[1:]
            if function is None:
                entries.append(None)
                continue
            own = isinstance(
                function, (Bind, PartialDerivatives, Products)
            )  # a custom derivative with a rule of its own
            natural = 0 < order == self.last and (own or self.beyond == "differentiate")
            if id(function) not in values:
                args = context.args if natural else list(map(detach, context.args))
                values[id(function)] = run_rule(self.definition, function, args, context.options)
            value = values[id(function)]
            for position in rest:
                if len(context.positions) > 1 or isinstance(value, (tuple, list)):
                    value = None if value is None else self._part(context, order, value, position)
            if value is not None:
                value = self._fit_entry(context, order, value, y)
                if not natural:
                    value = self._attach_rule(context, path, value)
            entries.append(value)
        return entries

    def _part(self, context: CallContext, order: int, parts: Any, position: int) -> Any:
        count = len(context.positions)
        if not isinstance(parts, (tuple, list)) or len(parts) != count:
            got = len(parts) if isinstance(parts, (tuple, list)) else f"a {type(parts).__name__}"
            raise ValueError(
                f"`{self.definition.name}`: the derivative of order {order} must return {count} "
                f"value{'s' * (count != 1)}, one for each argument, but it returned {got} "
                f"({self.definition.where()})"
            )
        return parts[position]

    def _fit_entry(self, context: CallContext, order: int, value: Any, y: Any) -> Tensor:
        """Return an entry as a tensor with the shape and precision of the function's result."""
        if not order:
            return self._result(context, value)
        shape, dtype = y
        tensor = convert(value, dtype if is_weak(value) else None)
        got = tuple(tensor._data.shape)
        if got != shape:
            extra = len(shape) - len(got)
            if extra < 0 or any(size not in (1, shape[i + extra]) for i, size in enumerate(got)):
                raise InvalidArgumentError(
                    f"`{self.definition.name}`: derivative {order} has shape {got}, the "
                    f"function's result {shape}; for functions that are not elementwise declare "
                    f"vjp= or jvp= ({self.definition.where()})"
                )
            tensor = repeat(tensor, shape)
        if is_complex(tensor._data.dtype):
            if not is_complex(dtype):
                raise TypeError(
                    f"`{self.definition.name}`: derivative {order} is {tensor._data.dtype}, the "
                    f"function's result {dtype}: take the real part ({self.definition.where()})"
                )
        elif tensor._data.dtype != dtype and is_inexact(dtype):
            tensor = cast(tensor, dtype)
        return tensor

    def _result(self, context: CallContext, value: Any) -> Tensor:
        if not (is_tensor(value) or is_weak(value) or isinstance(value, np.ndarray)):
            raise TypeError(
                f"{self.definition.name} must return one tensor to have elementwise derivatives, "
                f"got {type(value).__name__}; for other functions declare vjp= or jvp= "
                f"({self.definition.where()})"
            )
        tensor = convert_result(value, context.args)
        shapes = {tuple(getattr(context.args[i], "shape", ())) for i in context.positions}
        if shapes != {tuple(tensor._data.shape)}:
            self._check_shape(tuple(tensor._data.shape), shapes)
        if not is_complex(tensor._data.dtype) and any(
            tensor is not None and is_complex(tensor._data.dtype) for tensor in context.inputs
        ):
            raise TypeError(
                f"`{self.definition.name}` of complex arguments is {tensor._data.dtype}, so it is "
                "not holomorphic, and has no complex derivative: declare vjp= or jvp= "
                f"({self.definition.where()})"
            )
        return tensor

    def _check_shape(self, shape: tuple[int, ...], shapes: set[tuple[int, ...]]) -> None:
        try:
            expected = f"to shape {promotion.broadcast_shapes(*shapes)}"
        except ValueError:
            expected = "to no shape"
        if expected != f"to shape {shape}":
            raise InvalidArgumentError(
                f"`{self.definition.name}` is not elementwise: its arguments broadcast {expected}, "
                f"its result has shape {shape}. Declare vjp= or jvp= ({self.definition.where()})"
            )

    # Rules -----------------------------------------------------------------------------------

    def _attach_rule(self, context: CallContext, path: tuple, value: Tensor) -> Tensor:
        """Return an entry with the entries of the next order as its rule."""
        refuse_captured(self.definition, value)
        if state.frame is None:
            return value
        y = tuple(value._data.shape), value._data.dtype

        def partials(inputs: Sequence) -> list[tuple[int, Tensor]]:
            """Return the positions of inputs that are not None, with the derivative by each."""
            asked = [i for i, tensor in enumerate(inputs) if tensor is not None]
            if asked and len(path) == self.last:
                self.refuse_order()
            entries = self._entries(context, len(path) + 1, [(*path, i) for i in asked], y)
            pairs = zip(asked, entries, strict=True)
            return [(i, partial) for i, partial in pairs if partial is not None]

        def vjp(dys: Sequence, targets: Sequence) -> list:
            gradients: list[Any] = [None] * len(targets)
            for i, partial in partials(targets):
                gradients[i] = _product(dys[0], partial, targets[i])
            return gradients

        def jvp(directions: Sequence) -> list:
            total = None
            for i, partial in partials(directions):
                part = cast(multiply(directions[i], partial), y[1])
                total = part if total is None else add(total, part)
            return [total]

        call = TransformedCall(self.definition, vjp, None, jvp)
        return rebind_outputs(state.frame, call, context.inputs, [value])[0]


def _is_declaration(function: Any) -> bool:
    if isinstance(function, (tuple, list)):
        return all(map(_is_declaration, function))
    return function is None or callable(function)


def _product(dy: Tensor, partial: Tensor, target: Any) -> Tensor:
    """Return the gradient of an input like `target`, from the conjugated partial derivative."""
    complex_partial = is_complex(partial._data.dtype)
    product = multiply_upstream(dy, conj(partial) if complex_partial else partial)
    if is_complex(product._data.dtype) and not is_complex(target.dtype):
        product = real(product)
    return sum_to_shape(product, tuple(target.shape))
