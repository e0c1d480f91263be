"""Functions with gradients of one's own: autograd's ``primitive`` and ``defvjp``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .._rules.custom_gradient import custom_gradient

__all__ = ["defvjp", "primitive"]
__dir__ = __all__.copy


def primitive(f_raw: Callable[..., Any]) -> Callable[..., Any]:
    """Return `f_raw` as a function whose gradient `defvjp` defines; its body is not recorded.

    Before `defvjp` has been called for it, a call raises TypeError. After
    ``autograd.extend.primitive``.
    """
    makers: dict[int, Callable[..., Any] | None] = {}

    @functools.wraps(f_raw)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not makers:
            raise TypeError(
                f"primitive: {f_raw.__name__} has no gradient yet: call defvjp(function, maker, "
                "...) with a maker for each argument before you call the function"
            )

        @custom_gradient
        @functools.wraps(f_raw)
        def ruled(*inputs: Any) -> tuple[Any, Callable[[Any], Any]]:
            answer = f_raw(*inputs, **kwargs)

            def gradient(upstream: Any) -> Any:
                found = []
                for position in range(len(inputs)):
                    if position not in makers:
                        found.append(None)
                        continue
                    maker = makers[position]
                    found.append(maker and maker(answer, *inputs, **kwargs)(upstream))
                return found[0] if len(found) == 1 else found

            return answer, gradient

        return ruled(*args)

    run.__dict__["_vjp_makers"] = makers
    return run


def defvjp(
    fun: Callable[..., Any],
    *vjpmakers: Callable[..., Any] | None,
    argnums: Sequence[int] | None = None,
) -> None:
    """Define the gradient of a function that `primitive` has made.

    ``vjpmaker(answer, *args)`` gives a function from the upstream gradient to the gradient by one
    argument, the first, second, ... or those of `argnums`; None for an argument that has none.
    Written with differentiable functions it is right at every order. Raises TypeError for a
    function that `primitive` has not made. After ``autograd.extend.defvjp``.
    """
    makers = getattr(fun, "_vjp_makers", None)
    if makers is None:
        raise TypeError(
            f"defvjp: fun must be a function that primitive has made, got {fun!r}: write "
            "@primitive above its definition"
        )
    makers.update(
        zip(range(len(vjpmakers)) if argnums is None else argnums, vjpmakers, strict=False)
    )
