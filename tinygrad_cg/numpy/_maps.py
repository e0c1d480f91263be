"""NumPy's ``vectorize``: a function of scalars, or of small arrays, for all elements."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

import numpy as np

from .._core.tensor import Tensor
from .._core.transformed import returns_transformed
from .._ops.indexing import getitem
from .._ops.shape import broadcast_to, cast, reshape
from .._ops.validation import broadcast_shapes, check_function
from ..errors import InvalidArgumentError
from ._readers import _array

_ONE = r"\((?:\w+(?:,\w+)*)?\)"
_SIGNATURE = re.compile(rf"({_ONE}(?:,{_ONE})*)?->({_ONE}(?:,{_ONE})*)")


@returns_transformed
def vectorize(
    pyfunc: Any = None,
    otypes: Any = None,
    doc: str | None = None,
    excluded: Any = None,
    cache: bool = False,
    signature: str | None = None,
) -> Callable[..., Any]:
    """Return a function that calls `pyfunc` for each element of its arguments, which broadcast.

    Parameters
    ----------
    pyfunc:
        A function of scalars to a scalar, or a tuple of several. It is called once for each
        element, with tensors: it may branch on their values, and gradients flow through it.
    otypes:
        The dtypes of the results: a string of their characters, or a list. By default the results
        of `pyfunc` promote to a common dtype. (NumPy uses the dtype of the first result.)
    excluded:
        Positions and names of arguments that are passed to each call unchanged.
    signature:
        The axes that one call gets: ``"(n),(n)->()"`` for a product of vectors. Sizes of one name
        must agree.

    Raises InvalidArgumentError for results that are not scalars without a `signature`, and for
    shapes that do not fit it; ValueError for an invalid `signature`, and without elements unless
    `otypes` are given. `doc` is the docstring of the result; `cache` has no effect. It calls in a
    loop, as in ``np.vectorize``: use `vmap` for speed. It is also a decorator.

    >>> relu = tf.numpy.vectorize(lambda x: x if x > 0 else 0.0)
    >>> relu([-1.0, 2.0]).numpy()
    array([0., 2.])
    """
    if pyfunc is None:
        return partial(
            vectorize, otypes=otypes, doc=doc, excluded=excluded, signature=signature
        )  # a decorator with options
    if not callable(pyfunc):
        check_function("vectorize", pyfunc, "pyfunc")
    left_out = set(excluded or ())
    cores = None if signature is None else _parse(signature)
    dtypes = None if otypes is None else [np.dtype(dtype) for dtype in otypes]

    def vectorized(*args: Any, **kwargs: Any) -> Any:
        mapped = [i for i in range(len(args)) if i not in left_out]
        names = [name for name in kwargs if name not in left_out]
        values = [_array(args[i]) for i in mapped] + [_array(kwargs[name]) for name in names]

        def call(*elements: Any) -> Any:
            positional, options = list(args), dict(kwargs)
            for i, element in zip(mapped, elements, strict=False):
                positional[i] = element
            options.update(zip(names, elements[len(mapped) :], strict=True))
            return pyfunc(*positional, **options)

        return _map(call, values, cores, dtypes)

    update_wrapper(vectorized, pyfunc)
    if doc is not None:
        vectorized.__doc__ = doc
    return vectorized


Axes = list[tuple[str, ...]]


def _parse(signature: str) -> tuple[Axes, Axes]:
    """Return the names of the axes of each argument and of each result."""
    match = _SIGNATURE.fullmatch(re.sub(r"\s+", "", signature))
    if match is None:
        raise ValueError(
            f"vectorize: {signature!r} is not a signature: write names of axes, as in '(n),(n)->()'"
        )
    left, right = (re.findall(_ONE, part or "") for part in match.groups())
    return [_names(operand) for operand in left], [_names(operand) for operand in right]


def _names(axes: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", axes))


def _map(call: Callable, values: list[Tensor], cores: Any, dtypes: Any) -> Any:
    """Return the results of all calls, in the broadcast shape of the arguments."""
    inputs, outputs = cores or ([()] * len(values), None)
    if len(inputs) != len(values):
        raise TypeError(
            f"vectorize: the signature has {len(inputs)} arguments, but the call {len(values)}"
        )
    sizes: dict[str, int] = {}
    for value, axes in zip(values, inputs, strict=True):
        _fit("an argument", value, axes, sizes, exactly=False)
    counts = [value.ndim - len(axes) for value, axes in zip(values, inputs, strict=True)]
    shapes = [tuple(value.shape[:n]) for value, n in zip(values, counts, strict=True)]
    outer = broadcast_shapes("vectorize", *shapes)
    rows = []
    for value, n in zip(values, counts, strict=True):
        core = tuple(value.shape[n:])
        rows.append(reshape(broadcast_to(value, (*outer, *core)), (-1, *core)))
    count = int(np.prod(outer, dtype=np.int64))
    results = [call(*[getitem(row, i) for row in rows]) for i in range(count)]
    if not results:
        return _nothing(outer, outputs, dtypes)
    several = isinstance(results[0], tuple)
    parts = list(zip(*results, strict=True)) if several else [results]
    if outputs is not None and len(parts) != len(outputs):
        raise InvalidArgumentError(
            f"vectorize: the signature has {len(outputs)} results, but the function {len(parts)}"
        )
    if dtypes is not None and len(dtypes) != len(parts):
        raise InvalidArgumentError(
            f"vectorize: {len(dtypes)} otypes for {len(parts)} results of the function"
        )
    outcomes = []
    for i, part in enumerate(parts):
        joined = _array(list(part))
        core = joined.shape[1:]
        if outputs is None and core:
            raise InvalidArgumentError(
                f"vectorize: the function must return a scalar, got shape {tuple(core)}: give a "
                "signature, as '()->(n)'"
            )
        if outputs is not None:
            _fit("a result", getitem(joined, 0), outputs[i], sizes, exactly=True)
        joined = reshape(joined, (*outer, *core))
        outcomes.append(joined if dtypes is None else cast(joined, dtypes[i]))
    return tuple(outcomes) if several else outcomes[0]


def _fit(
    role: str, value: Tensor, axes: tuple[str, ...], sizes: dict[str, int], exactly: bool
) -> None:
    """Raise InvalidArgumentError unless the last axes have the sizes of their names; new names are
    set."""
    if value.ndim < len(axes) or (exactly and value.ndim != len(axes)):
        raise InvalidArgumentError(
            f"vectorize: the signature gives {role} the axes {axes}, but it has shape "
            f"{tuple(value.shape)}"
        )
    for name, size in zip(axes, value.shape[value.ndim - len(axes) :], strict=True):
        if sizes.setdefault(name, size) != size:
            raise InvalidArgumentError(
                f"vectorize: the axes {name!r} of the signature have sizes {sizes[name]} and {size}"
            )


def _nothing(outer: tuple[int, ...], outputs: Any, dtypes: Any) -> Any:
    if dtypes is None or any(outputs or ()):
        raise ValueError("vectorize: without elements, otypes= must give the dtypes of the results")
    results = [_array(np.zeros(outer, dtype)) for dtype in dtypes]
    return tuple(results) if len(results) > 1 else results[0]
