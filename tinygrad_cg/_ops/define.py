"""Builders: from one record to a registered primitive and its public function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary as kmath
from tinygrad_cg_kernels.loops.engine import Elementwise
from tinygrad_cg_kernels.runtime import objects

from .._core import record as core_record
from .._core.conversion import convert
from .._core.device_runs import kernel_for
from .._core.kinds import is_bool
from .._core.primitive import (
    Primitive,
    apply,
    binary_function,
    no_kernel,
    public_function,
    register,
)
from .._core.tensor import Aval, Tensor
from ..errors import InvalidArgumentError
from .validation import INTEGRAL, broadcast_shapes, normalize_axes

_sample = np.zeros(1)
objects.register(Tensor, Tensor(_sample), _sample)  # kernels take and make tensors, few elements


@dataclass(frozen=True)
class Real:
    """The interval from which tests sample an elementwise operand, without some points."""

    low: float
    high: float
    avoid: tuple[float, ...] = ()


@dataclass(frozen=True)
class Case:
    """A call of an operation in tests: shapes of the operands, and the parameters.

    `fixed` has operands, by position, that are not drawn at random, such as indices.
    """

    shapes: tuple[tuple[int, ...], ...]
    params: dict[str, Any] = field(default_factory=dict)
    fixed: dict[int, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Wrong:
    """A call of the public function that must raise: `error`, with `words` (a pattern) in it."""

    error: type[Exception]
    words: str
    operands: tuple[Any, ...]
    params: dict[str, Any] = field(default_factory=dict)


ANY = Real(-2.0, 2.0)
NEAR = (2.0, 1.0)
"""The allowed error of a function of reals in float64 and float32, in units in the last place."""
_REDUCED = [
    Case(((2, 3),), {"axis": (0, 1), "keepdims": False}),
    Case(((2, 3, 2),), {"axis": (1,), "keepdims": True}),
    Case(((2, 3, 2),), {"axis": (0, 2), "keepdims": False}),
    Case(((),), {"axis": (), "keepdims": False}),
]
_UNFITTING = (np.ones(2, np.int64), np.ones(3, np.int64))


def later_axis(params: dict, size: int) -> dict:
    """Return the parameters of an operation along `axis` for a batch, whose axis comes first."""
    return params | {"axis": params["axis"] + 1}


def public(primitive: Primitive) -> Callable[[Any], Any]:
    """Return a decorator that makes a function the public one of `primitive`."""

    def declare(function: Any) -> Any:
        primitive.function = function
        return function

    return declare


def elementwise_aval(kernel: Elementwise) -> Callable[..., Aval]:
    def abstract(*avals: Aval, **params: Any) -> Aval:
        shape = broadcast_shapes(kernel.name, *[aval.shape for aval in avals])
        return Aval(shape, kernel.result_dtype(*[aval.dtype for aval in avals]))

    return abstract


def elementwise(
    name: str,
    inputs: tuple[str, ...],
    kind: str,
    vjp: Any,
    kernel: Any = None,
    bool_remedy: str | None = None,
    **record: Any,
) -> Primitive:
    """Return a registered elementwise operation, with the kernel and the ufunc of its name.

    `bool_remedy` is what to use for bools, if not this.
    """
    run = Elementwise(name, kernel or getattr(kmath, name), len(inputs), kind)
    if kind == "float":
        record.setdefault("ulps", NEAR)
    ufunc = getattr(np, name, None)
    if isinstance(ufunc, np.ufunc):
        record.setdefault("ufunc", ufunc)
    record.setdefault("samples", (ANY,) * len(inputs))
    if bool_remedy is not None:
        _refuse_bool(run, bool_remedy)
    aval = elementwise_aval(run)
    return register(
        Primitive(name, run, inputs, aval, vjp, kind="elementwise", kernel=run, **record)
    )


def _refuse_bool(kernel: Elementwise, remedy: str) -> None:
    """Have the kernel refuse bools where it promotes dtypes, once for each choice of them."""
    promote = kernel._loop_dtypes

    def check_dtypes(dtypes: tuple[np.dtype, ...]) -> tuple[np.dtype, ...]:
        if all(is_bool(dtype) for dtype in dtypes):
            raise TypeError(
                f"{kernel.name}: does not support bool: use {remedy}, or cast to a numeric dtype "
                "first"
            )
        return promote(dtypes)

    kernel._loop_dtypes = check_dtypes


def _everywhere(name: str) -> tuple[str, ...]:
    """Return the spellings of an operation that has one name in the three namespaces."""
    return f"math.{name}", f"keras.ops.{name}", f"numpy.{name}"


def unary(name: str, doc: str, kind: str = "float", vjp: Any = None, **record: Any) -> Any:
    """Return an elementwise operation on one operand, ``x``."""
    doc += "\n\nElementwise; the result has the shape of `x`, a tensor or array-like."
    rules = None if vjp is None else (vjp,)
    record.setdefault("spellings", _everywhere(name))
    primitive = elementwise(name, ("x",), kind, rules, doc=doc, **record)
    return public(primitive)(public_function(primitive))


def binary(name: str, doc: str, kind: str = "same", vjp: Any = None, **record: Any) -> Any:
    """Return an elementwise operation on two operands that broadcast, ``x`` and ``y``."""
    doc += (
        "\n\nElementwise; `x` and `y`, tensors or array-likes, broadcast to the shape of the "
        "result. Raises InvalidArgumentError if their shapes do not."
    )
    record["errors"] = (
        Wrong(InvalidArgumentError, f"{name}: shapes .* do not broadcast", _UNFITTING),
        *record.get("errors", ()),
    )
    record.setdefault("spellings", _everywhere(name))
    primitive = elementwise(name, ("x", "y"), kind, vjp, doc=doc, **record)
    return public(primitive)(binary_function(primitive))


def reduction(
    name: str, kernel: Any, doc: str, vjp: Any = None, run: Any = None, **record: Any
) -> Any:
    """Return an operation over axes: ``op(x, axis=None, keepdims=False)``, by default over all."""
    record.setdefault("samples", _REDUCED)
    record["errors"] = (
        Wrong(InvalidArgumentError, f"{name}: axis 2 is out of range", (np.ones((2, 3)), 2)),
        Wrong(InvalidArgumentError, f"{name}: .* twice", (np.ones((2, 3)), (0, 0))),
        *record.get("errors", ()),
    )

    def run_kernel(x: np.ndarray, axis: tuple[int, ...], keepdims: bool) -> np.ndarray:
        return kernel_for(x, kernel)(x, axis, keepdims)

    def abstract(x: Aval, axis: tuple[int, ...], keepdims: bool) -> Aval:
        return Aval(reduced_shape(x.shape, axis, keepdims), kernel.result_dtype(x.dtype))

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

    primitive.doc = (
        f"{doc}\n\n`axis` is one axis, several, or None for all; `keepdims` keeps them, with size "
        "1. Raises InvalidArgumentError for an axis that `x` does not have."
    )

    def by_axes(x: Any, axis: Any, keepdims: bool) -> Tensor:
        if type(x) is not Tensor:
            x = convert(x)
        axes = normalize_axes(name, axis, x._data.ndim)
        return apply(primitive, (x,), {"axis": axes, "keepdims": bool(keepdims)})

    function = public_function(
        primitive,
        "x, axis=None, keepdims=False",
        over_all_axes=("axis is None and keepdims is False", INTEGRAL),
        kernel=None if run is None else no_kernel,
        otherwise=by_axes,
    )
    return public(primitive)(function)


def reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    if keepdims:
        return tuple(1 if i in axes else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in axes)


def in_one_pass(name: str, rule: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a gradient function of elementwise operations that runs as one kernel.

    One of its parameters is ``dy``. The kernel is generated at the first call.
    """
    parameters = tuple(inspect.signature(rule).parameters)

    @cache
    def fused() -> Callable[..., Tensor]:
        return core_record.fuse_rule(name, rule, parameters)

    return lambda *operands: fused()(*operands)


def operation(
    name: str, run: Any, abstract: Any, vjp: Any = None, inputs: tuple = ("x",), **record: Any
) -> Primitive:
    """Return a registered operation; its public function is written by hand."""
    return register(Primitive(name, run, inputs, abstract, vjp, **record))
