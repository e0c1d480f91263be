"""Builders: from one record to a registered primitive and its public function."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tinygrad_cg_kernels.loops.engine import Elementwise
from tinygrad_cg_kernels.loops.small import refuse

from .._core.conversion import convert, is_tensor
from .._core.functions import binary_op, named, unary_op
from .._core.levels import state
from .._core.primitive import Primitive, apply_one, register
from .._core.recording import record_one
from .._core.tensor import Aval, Tensor
from ..errors import InvalidArgumentError, OperatorNotAllowedInGraphError


@dataclass(frozen=True)
class Real:
    """Where an elementwise operand is sampled in tests: an interval, less some points."""

    low: float
    high: float
    avoid: tuple[float, ...] = ()


@dataclass(frozen=True)
class Case:
    """One way to call an operation in tests: shapes of the operands, and the parameters.

    `fixed` gives an operand (by position) that is not drawn at random, such as indices.
    """

    shapes: tuple[tuple[int, ...], ...]
    params: dict[str, Any] = field(default_factory=dict)
    fixed: dict[int, Any] = field(default_factory=dict)


def elementwise_aval(kernel: Elementwise) -> Callable[..., Aval]:
    def abstract(*avals: Aval, **params: Any) -> Aval:
        shape = broadcast_shapes(kernel.name, *[aval.shape for aval in avals])
        return Aval(shape, kernel.result_dtype(*[aval.dtype for aval in avals]))

    return abstract


def broadcast_shapes(name: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        text = " and ".join(str(tuple(shape)) for shape in shapes)
        raise InvalidArgumentError(f"{name}: shapes {text} do not broadcast") from None


def elementwise(
    name: str,
    function: Any,
    inputs: tuple[str, ...],
    kind: str,
    vjp: Any,
    bool_remedy: str | None = None,
    **record: Any,
) -> Primitive:
    """A registered elementwise operation; `bool_remedy` is what to use for bools, if not this."""
    kernel = Elementwise(name, function, len(inputs), kind)
    if bool_remedy is not None:
        _refuse_bool(kernel, bool_remedy)
    return register(
        Primitive(
            name,
            kernel,
            inputs,
            elementwise_aval(kernel),
            vjp,
            kind="elementwise",
            kernel=kernel,
            **record,
        )
    )


def _refuse_bool(kernel: Elementwise, remedy: str) -> None:
    """Have the kernel refuse bools where it settles dtypes, once for each choice of them."""
    settle = kernel._loop_dtypes

    def checked(dtypes: tuple[np.dtype, ...]) -> tuple[np.dtype, ...]:
        if all(dtype.kind == "b" for dtype in dtypes):
            raise TypeError(
                f"{kernel.name}: is not for bool: use {remedy}, or cast to a number's dtype first"
            )
        return settle(dtypes)

    kernel._loop_dtypes = checked


def unary(name: str, function: Any, kind: str = "float", vjp: Any = None, **record: Any) -> Any:
    """An elementwise operation on one operand, ``x``."""
    record["doc"] += "\n\nElementwise; the result has the shape of `x`, a tensor or what converts."
    rules = None if vjp is None else (vjp,)
    return unary_op(elementwise(name, function, ("x",), kind, rules, **record))


def binary(name: str, function: Any, kind: str = "same", vjp: Any = None, **record: Any) -> Any:
    """An elementwise operation on two operands that broadcast, ``x`` and ``y``."""
    record["doc"] += (
        "\n\nElementwise; `x` and `y`, tensors or what converts, broadcast to the shape of the "
        "result. Raises InvalidArgumentError if their shapes do not."
    )
    primitive = elementwise(name, function, ("x", "y"), kind, vjp, **record)
    return binary_op(primitive)


def reduction(
    name: str, kernel: Any, doc: str, vjp: Any = None, run: Any = None, **record: Any
) -> Any:
    """An operation that folds axes: ``op(x, axis=None, keepdims=False)``, all axes by default."""

    def run_kernel(x: np.ndarray, axis: tuple[int, ...], keepdims: bool) -> np.ndarray:
        return kernel(x, axis, keepdims)

    def abstract(x: Aval, axis: tuple[int, ...], keepdims: bool) -> Aval:
        return Aval(folded_shape(x.shape, axis, keepdims), kernel.result_dtype(x.dtype))

    def batch(params: dict, size: int) -> dict:
        return params | {"axis": tuple(axis + 1 for axis in params["axis"])}

    primitive = register(
        Primitive(
            name,
            run or run_kernel,
            ("x",),
            abstract,
            None if vjp is None else (vjp,),
            kind="reduction",
            kernel=kernel,
            batch=batch,
            **record,
        )
    )

    direct = [refuse] if run else getattr(kernel, "direct", [refuse])

    def op(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
        if axis is None and keepdims is False:
            frame = state.frame
            if frame is None or frame.level is None:
                out = direct[0](x)
                if type(out) is Tensor:
                    if x._rec is not None or (frame is not None and frame.everything):
                        record_one(frame, primitive, x, _WHOLE[x._data.ndim], out)
                    return out
        if type(x) is not Tensor:
            x = convert(x)
        ndim = x._data.ndim
        axes = _ALL_AXES[ndim] if axis is None else normalize_axes(name, axis, ndim)
        return apply_one(primitive, x, {"axis": axes, "keepdims": bool(keepdims)})

    primitive.doc = (
        f"{doc}\n\n`axis` is one axis, several, or None for all; `keepdims` keeps them, with size "
        "1. Raises InvalidArgumentError for an axis that `x` does not have."
    )
    return named(op, primitive)


def folded_shape(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    if keepdims:
        return tuple(1 if i in axes else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in axes)


def move(
    name: str, run: Any, abstract: Any, vjp: Any = None, inputs: tuple = ("x",), **record: Any
) -> Primitive:
    """An operation that moves elements; its public function is written by hand."""
    return register(Primitive(name, run, inputs, abstract, vjp, **record))


_ALL_AXES = tuple(tuple(range(ndim)) for ndim in range(65))
_WHOLE = tuple({"axis": axes, "keepdims": False} for axes in _ALL_AXES)
"""The parameters of a reduction of all elements, by the number of axes."""


def normalize_axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Non-negative axes in ascending order, from None (all), one number, or several."""
    if axis is None:
        return _ALL_AXES[ndim]
    if type(axis) is int:
        return (normalize_axis(name, axis, ndim),)
    if is_tensor(axis) or isinstance(axis, np.ndarray):
        axis = np.asarray(axis).tolist()
    if not isinstance(axis, (list, tuple)):
        return (normalize_axis(name, axis, ndim),)
    axes = tuple(sorted(normalize_axis(name, one, ndim) for one in axis))
    if len(set(axes)) != len(axes):
        raise InvalidArgumentError(f"{name}: axis {axis} names an axis twice")
    return axes


def normalize_axis(name: str, axis: Any, ndim: int) -> int:
    index = as_int(name, "axis", axis)
    if not -ndim <= index < ndim:
        raise InvalidArgumentError(
            f"{name}: axis {index} is out of range for a tensor with {ndim} dimensions"
        )
    return index % ndim


def as_int(name: str, argument: str, value: Any) -> int:
    try:
        return operator.index(value)
    except OperatorNotAllowedInGraphError:
        raise
    except TypeError:
        raise TypeError(
            f"{name}: {argument} must be an integer, got {type(value).__name__} {value!r}"
        ) from None


def as_shape(name: str, shape: Any) -> tuple[int, ...]:
    """A tuple of Python integers, from a number, a sequence or an integer tensor.

    Raises TypeError for what is no integer; sizes may be negative, see `as_sizes`.
    """
    if is_tensor(shape) or isinstance(shape, np.ndarray):
        shape = np.asarray(shape).tolist()
    if not isinstance(shape, (list, tuple)):
        shape = (shape,)
    return tuple([as_int(name, "each size in shape", size) for size in shape])


def as_sizes(name: str, shape: Any) -> tuple[int, ...]:
    """`as_shape` for a shape that a tensor is to have: InvalidArgumentError for negative sizes."""
    sizes = as_shape(name, shape)
    for size in sizes:
        if size < 0:
            raise InvalidArgumentError(
                f"{name}: sizes in shape must not be negative, got {sizes}: say how many elements"
            )
    return sizes
