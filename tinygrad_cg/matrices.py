"""Differentiation of functions: jacobian, hessian and hvp, nested as those in transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import nest
from .batching import Batch, BatchTensor
from .differentiable import Differentiable, fitted, swept, wrapped
from .forward import ForwardAccumulator
from .jacobians import basis, rows
from .levels import push, remove
from .ops.creation import zeros
from .ops.shape import reshape, transpose
from .tensor import Tensor
from .transforms import grad


def jacobian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    mode: str | None = None,
) -> Callable[..., Any]:
    """A function that gives the Jacobian of `f`, with `has_aux` a pair (Jacobian, anything).

    For each tensor of the output, in its structure, and each tensor of the argument, in its
    structure: a tensor of shape ``output.shape + argument.shape``. All rows are computed in one
    batched sweep (`mode` "reverse"), or all columns in one batched forward pass ("forward"), for
    which `f` runs again; by default in the cheaper way. Arguments and errors are otherwise those
    of `value_and_grad`. After ``jax.jacrev`` and ``jax.jacfwd``.
    """
    if mode not in (None, "reverse", "forward"):
        raise ValueError(f"jacobian: mode must be 'reverse', 'forward' or None, got {mode!r}")
    transform = Differentiable("jacobian", f, argnums, has_aux)

    def run(args: tuple, kwargs: dict) -> Any:
        found, aux = _jacobian(transform, args, kwargs, mode)
        return (found, aux) if has_aux else found

    return wrapped(transform, run)


# A forward pass of a column takes about this many times as long as a sweep of a row.
_COLUMN = 2


def _jacobian(transform: Differentiable, args: tuple, kwargs: dict, mode: str | None) -> tuple:
    token, sources, output, aux = transform.record(args, kwargs)
    targets, flat = transform.tensors(output), nest.flatten(sources)
    if mode is None:
        height = sum(target.size for target in targets)
        width = sum(source.size for source in flat)
        mode = "forward" if _COLUMN * width < height else "reverse"
    if mode == "reverse":
        blocks = [rows(token, target, flat) for target in targets]
        token.alive = False
    else:
        token.alive = False
        columns = [_columns(transform, args, kwargs, place) for place in range(len(flat))]
        blocks = [list(row) for row in zip(*columns, strict=True)]
    packed = [
        transform.packed(sources, [_block(*pair, target) for pair in zip(row, flat, strict=True)])
        for row, target in zip(blocks, targets, strict=True)
    ]
    return nest.pack_sequence_as(output, packed), aux


def _block(found: Tensor | None, source: Tensor, target: Tensor) -> Tensor:
    return zeros((*target.shape, *source.shape), source.dtype) if found is None else found


def _columns(transform: Differentiable, args: tuple, kwargs: dict, place: int) -> list:
    """The Jacobian of each output by the source at `place`, by one batched forward pass."""
    inner, sources = transform.sources(args)
    source = nest.flatten(sources)[place]
    level = Batch(source.size)
    push(level)
    try:
        vectors = BatchTensor(basis(tuple(source.shape), source.dtype), level)
        with ForwardAccumulator(source, vectors) as accumulator:
            output, _ = transform.run(inner, kwargs)
        tangents = accumulator.jvp(transform.tensors(output))
    finally:
        remove(level)
    return [None if one is None else _last(level, one, source) for one in tangents]


def _last(level: Batch, tangent: Tensor, source: Tensor) -> Tensor:
    """The batch axis, which counts the elements of `source`, as the last ones."""
    physical = level.physical(tangent)
    shape = physical._data.shape[1:]
    moved = transpose(physical, (*range(1, len(shape) + 1), 0))
    return reshape(moved, (*shape, *source.shape))


def hessian(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the second derivatives of a scalar function `f`.

    For each tensor of the argument, in its structure, and each again: a tensor of shape
    ``first.shape + second.shape``. Arguments and errors are those of `value_and_grad`. After
    ``jax.hessian``.
    """
    return jacobian(grad(f, argnums, has_aux), argnums, has_aux, "reverse")


def hvp(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function of f's arguments and then a vector: the Hessian of `f` times the vector.

    The vector has the structure and shapes of the argument (with several `argnums` a tuple of
    them), and so has the result. It costs a few gradients, whatever the size. Arguments and
    errors are otherwise those of `value_and_grad`; ``scipy.optimize.minimize`` takes it as
    `hessp`. After ``autograd.hessian_vector_product``.
    """
    transform = Differentiable("hvp", f, argnums)
    gradient = grad(f, argnums)

    def run(args: tuple, kwargs: dict) -> Any:
        if len(args) < 2:
            raise TypeError("hvp: pass the function's arguments, and then the vector")
        args, vector = args[:-1], args[-1]
        outer = Differentiable("hvp", gradient, argnums)
        token, sources, output, _ = outer.record(args, kwargs)
        flat = nest.flatten(sources)
        vectors = fitted(transform, "vector", vector, output, flat)
        return transform.packed(sources, swept(token, nest.flatten(output), vectors, flat))

    return wrapped(transform, run)
