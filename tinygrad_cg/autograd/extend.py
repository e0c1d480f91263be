"""Functions with your own gradients: autograd's ``primitive``, ``defvjp`` and ``defjvp``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from .. import nest
from .._core.levels import state
from .._core.suggestions import refuse_name
from .._core.tensor import Tensor
from .._ops.shape import stop_gradient
from .._rules.custom_gradient import custom_gradient
from .._transforms.custom_derivatives import custom_derivatives

__all__ = ["defjvp", "defvjp", "notrace_primitive", "primitive"]
__dir__ = __all__.copy
__getattr__ = functools.partial(refuse_name, __name__)

_Makers = dict[int, Callable[..., Any] | None]


def primitive(f_raw: Callable[..., Any]) -> Callable[..., Any]:
    """Return `f_raw` as a function whose gradient `defvjp` defines; its body is not recorded.

    `defjvp` defines its forward mode, and both modes without a `defvjp`. A call before either of
    them raises TypeError. A gradient with respect to an argument without a rule raises
    NotImplementedError. The body and the gradient get arrays, unless the gradient is
    differentiated: then its ``answer`` has the derivative of the function, which is right at every
    order. Modelled on ``autograd.extend.primitive``.
    """
    vjp_makers: _Makers = {}
    jvp_makers: _Makers = {}

    @functools.wraps(f_raw)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not vjp_makers and not jvp_makers:
            raise TypeError(
                f"primitive: {f_raw.__name__} has no gradient yet: call defvjp(function, maker, "
                "...) with a maker for each argument before you call the function"
            )
        makers = vjp_makers or jvp_makers
        inputs = [
            x if i in makers else _without_gradient(x, f_raw.__name__, i)
            for i, x in enumerate(args)
        ]
        if not vjp_makers:
            return _by_jvp(f_raw, jvp_makers, kwargs)(*inputs)

        @custom_gradient
        @functools.wraps(f_raw)
        def ruled(*inputs: Any) -> tuple[Any, Callable[[Any], Any]]:
            answer = f_raw(*map(_array, inputs), **kwargs)

            def gradient(upstream: Any) -> Any:
                operands, result, upstream = inputs, answer, conjugated(upstream)
                if state.frame is not None:  # derivatives of the rule count the primitive's own
                    result = ruled(*inputs)
                else:
                    operands, upstream = tuple(map(_array, inputs)), _array(upstream)
                gradients = []
                for position, x in enumerate(inputs):
                    if x is None or callable(x) or isinstance(x, str):
                        continue  # this argument has no gradient
                    if position not in vjp_makers:
                        gradients.append(np.zeros_like(x) if isinstance(x, Tensor) else None)
                        continue
                    maker = vjp_makers[position]
                    product = maker and maker(result, *operands, **kwargs)(upstream)
                    gradients.append(conjugated(product))
                return gradients[0] if len(gradients) == 1 else gradients

            return answer, gradient

        return ruled(*inputs)

    run.__dict__["_vjp_makers"] = vjp_makers
    run.__dict__["_jvp_makers"] = jvp_makers
    return run


def _array(x: Any) -> Any:
    """Return a tensor's value as a writable array; a value without one unchanged."""
    return np.array(x._data) if type(x) is Tensor and type(x._data) is np.ndarray else x


def notrace_primitive(f_raw: Callable[..., Any]) -> Callable[..., Any]:
    """Return `f_raw` as a function of values: its result is a constant in all derivatives."""

    @functools.wraps(f_raw)
    def run(*args: Any, **kwargs: Any) -> Any:
        values = [stop_gradient(x) if isinstance(x, Tensor) else x for x in args]
        return f_raw(*values, **kwargs)

    return run


def defvjp(
    fun: Callable[..., Any],
    *vjpmakers: Callable[..., Any] | None,
    argnums: Sequence[int] | None = None,
) -> None:
    """Define the gradient of a function created with `primitive`.

    ``vjpmaker(answer, *args)`` returns a function from the upstream gradient to the gradient with
    respect to one argument: the first, second, ... or those of `argnums`; None if it has no
    gradient. If it is written with differentiable functions, it is right at every order. Raises
    TypeError for other functions. Modelled on ``autograd.extend.defvjp``.
    """
    _declare("defvjp", fun, "_vjp_makers", vjpmakers, argnums)


def defjvp(
    fun: Callable[..., Any],
    *jvpfuns: Callable[..., Any] | str | None,
    argnums: Sequence[int] | None = None,
) -> None:
    """Define the forward mode of a function created with `primitive`.

    ``jvpfun(tangent, answer, *args)`` returns the tangent of the result for the tangent of one
    argument: the first, second, ... or those of `argnums`; "same" if the function is linear in it,
    None if it has no tangent. If `defvjp` has also been called for the function, forward mode is
    the transpose of that rule, which gives the same number. Raises TypeError for other functions.
    Modelled on ``autograd.extend.defjvp``.
    """
    for jvpfun in jvpfuns:
        if jvpfun is not None and jvpfun != "same" and not callable(jvpfun):
            raise TypeError(
                f'defjvp: each jvpfun must be a function, "same" or None, got {jvpfun!r}'
            )
    numbers = range(len(jvpfuns)) if argnums is None else argnums
    makers = [
        _linear(getattr(fun, "__wrapped__", fun), i) if jvpfun == "same" else jvpfun
        for i, jvpfun in zip(numbers, jvpfuns, strict=False)
    ]
    _declare("defjvp", fun, "_jvp_makers", makers, argnums)


def conjugated(structure: Any) -> Any:
    """Return a structure with its complex numbers conjugated.

    A gradient is the conjugate of autograd's, as TensorFlow's is.
    """
    return nest.map_structure(_conjugate, structure)


def _conjugate(leaf: Any) -> Any:
    return np.conj(leaf) if np.dtype(getattr(leaf, "dtype", type(leaf))).kind == "c" else leaf


def _linear(f_raw: Callable[..., Any], position: int) -> Callable[..., Any]:
    return lambda tangent, _, *args, **kwargs: f_raw(
        *args[:position], tangent, *args[position + 1 :], **kwargs
    )


def _declare(
    caller: str,
    fun: Callable[..., Any],
    attribute: str,
    makers: Sequence[Any],
    argnums: Sequence[int] | None,
) -> None:
    declared = getattr(fun, attribute, None)
    if declared is None:
        raise TypeError(
            f"{caller}: fun must be a function created by primitive, got {fun!r}: write "
            "@primitive above its definition"
        )
    declared.update(zip(range(len(makers)) if argnums is None else argnums, makers, strict=False))


def _by_jvp(f_raw: Callable[..., Any], makers: _Makers, kwargs: dict) -> Callable[..., Any]:
    def forward(ways: Any, *args: Any) -> Any:
        answer = f_raw(*args, **kwargs)
        total: Any = None
        for i, way in enumerate(ways if len(args) > 1 else (ways,)):
            maker = makers.get(i)
            if maker is not None and way is not None:
                part = maker(way, answer, *args, **kwargs)
                total = part if total is None else total + part
        return np.zeros_like(answer) if total is None else total

    return custom_derivatives(
        lambda *args: f_raw(*args, **kwargs), jvp=forward, beyond="differentiate"
    )


def _without_gradient(x: Any, name: str, position: int) -> Any:
    """Return `x`; a derivative with respect to it, if it is a tensor, raises an error."""
    if not isinstance(x, Tensor) or x.dtype.kind not in "fc":
        return x

    def refuse(_: Any) -> NoReturn:
        raise NotImplementedError(
            f"primitive: {name} has no gradient for argument {position}: call defvjp(function, "
            f"maker, argnums=({position},)), with None for maker if the gradient is zero"
        )

    @custom_gradient
    def identity(x: Any) -> tuple[Any, Callable[[Any], Any]]:
        return x, refuse

    return identity(x)
