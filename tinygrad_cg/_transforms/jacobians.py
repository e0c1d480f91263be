"""Jacobians and Hessians, of functions and of a tape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from .. import nest
from .._core.devices import on_device_of
from .._core.kinds import is_complex
from .._core.levels import Token, state
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Tensor
from .._core.transformed import returns_transformed
from .._ops.creation import zeros
from .._ops.indexing import getitem
from .._ops.shape import cast, repeat, reshape, stack, transpose
from .._reverse.graph_mode import gradients
from .._reverse.sweep import differentiate
from .batching import Batch, BatchTensor, move_axis, unit_vectors
from .differentiable import Differentiable, fit_tensors, sweep_once, wrap
from .explanation import reason_by_text
from .functional import gradient_function, linearize_sweep


@returns_transformed
@reads_own_arguments
def jacobian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Return a function that returns the Jacobian of `f`.

    With `has_aux` it returns a pair (Jacobian, anything). The result has a tensor of shape
    ``output.shape + argument.shape`` for each tensor of the output and each tensor of the argument,
    in their structures. All rows are computed in one batched backward pass (`mode` "reverse"), or
    all columns in one batched forward pass ("forward", the transpose of a backward pass); by
    default the cheaper one. It has the dtype of the argument. See `value_and_grad` for other
    arguments and errors; complex arguments have no mode "forward". Modelled on ``jax.jacrev`` and
    ``jax.jacfwd``.

    Examples
    --------
    >>> tf.jacobian(lambda x: x * x)(tf.constant([1.0, 2.0])).numpy()
    array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    if mode not in (None, "reverse", "forward"):
        raise ValueError(f"jacobian: mode must be 'reverse', 'forward' or None, got {mode!r}")
    transform = Differentiable("jacobian", f, argnums, has_aux)

    return wrap(transform, lambda args, kwargs: _jacobian(transform, args, kwargs, mode))


# The cost of a forward column, in rows of a sweep: 1 (large) to 1.7 (small) were measured.
_COLUMN = 1.5


def _jacobian(transform: Differentiable, args: tuple, kwargs: dict, mode: str | None) -> tuple:
    token, sources, output, aux = transform.record(args, kwargs)
    targets, flat = transform.tensors(output, real=True), nest.flatten(sources)
    if mode is None:
        height = sum(target.size for target in targets)
        width = sum(source.size for source in flat)
        real = not any(is_complex(source.dtype) for source in flat)
        mode = "forward" if real and _COLUMN * width < height else "reverse"
    if mode == "reverse":
        blocks = [rows(token, target, flat) for target in targets]
        token.alive = False
    else:
        blocks = _columns(transform, token, targets, flat)
    packed = [
        transform.pack(sources, [_block(*pair, target) for pair in zip(row, flat, strict=True)])
        for row, target in zip(blocks, targets, strict=True)
    ]
    return nest.pack_sequence_as(output, packed), aux


def _block(block: Tensor | None, source: Tensor, target: Tensor) -> Tensor:
    if block is None:
        with on_device_of(source):
            return zeros((*target.shape, *source.shape), source.dtype)
    return cast(block, source.dtype)


def _columns(
    transform: Differentiable, token: Token, targets: list[Tensor], sources: list[Tensor]
) -> list[list]:
    """Return each target's Jacobians, by one batched forward pass per source."""
    if any(is_complex(source.dtype) for source in sources):
        raise TypeError(
            f"{transform.name}: {transform.definition.name} has a complex argument, for which "
            "mode 'forward' is not defined: use mode 'reverse', whose rows are gradients"
        )
    transposition = linearize_sweep(token, targets, sources)
    columns = []
    for index, source in enumerate(sources):
        level = Batch(source.size)
        vectors: list = [None] * len(sources)
        with level:
            vectors[index] = level.unit_vectors(source)
            tangents = transposition(vectors)
        columns.append(
            [None if tangent is None else _last(level, tangent, source) for tangent in tangents]
        )
    return [list(row) for row in zip(*columns, strict=True)]


def _last(level: Batch, tangent: Tensor, source: Tensor) -> Tensor:
    """Return a tensor with its batch axis moved to the end."""
    shape = tangent._data.shape
    return reshape(move_axis(level.physical(tangent), 0, len(shape)), (*shape, *source.shape))


@returns_transformed
@reads_own_arguments
def hessian(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that returns the second derivatives of a scalar function `f`.

    The result has a tensor of shape ``first.shape + second.shape`` for each pair of tensors in the
    argument, in its structure. See `value_and_grad` for arguments and errors. Modelled on
    ``jax.hessian``.

    Examples
    --------
    >>> tf.hessian(lambda x: x[0] ** 2 * x[1])(tf.constant([1.0, 3.0])).numpy()
    array([[6., 2.],
           [2., 0.]], dtype=float32)
    """
    gradient = gradient_function(Differentiable("hessian", f, argnums, has_aux))
    transform = Differentiable("hessian", gradient, argnums, has_aux)
    transform.definition.name = f"the gradient of {transform.definition.name}"
    return wrap(transform, lambda args, kwargs: _jacobian(transform, args, kwargs, "reverse"))


@returns_transformed
@reads_own_arguments
def hvp(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return a function of f's arguments and then a vector: the Hessian of `f` times the vector.

    The vector and the result have the structure and shapes of the argument (with several `argnums`
    a tuple of them). It costs a few gradients, whatever the size. See `value_and_grad` for other
    arguments and errors; ``scipy.optimize.minimize`` takes it as `hessp`. Modelled on
    ``autograd.hessian_vector_product``.

    Examples
    --------
    >>> x, vector = tf.constant([1.0, 2.0]), tf.constant([1.0, 0.0])
    >>> tf.hvp(lambda x: tf.reduce_sum(x**3))(x, vector).numpy()
    array([6., 0.], dtype=float32)
    """
    transform = Differentiable("hvp", f, argnums)
    gradient = gradient_function(transform)
    outer = Differentiable("hvp", gradient, argnums)

    def run(args: tuple, kwargs: dict) -> Any:
        if len(args) < 2:
            raise TypeError("hvp: pass the function's arguments, and then the vector")
        args, vector = args[:-1], args[-1]
        token, sources, output, _ = outer.record(args, kwargs)
        vectors = fit_tensors(transform, "vector", vector, output, nest.flatten(sources))
        return sweep_once(transform, token, nest.flatten(output), vectors, sources), None

    return wrap(transform, run)


def hessians(
    ys: Any,
    xs: Any,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    name: str = "hessians",
) -> list[Any]:
    """Return the second derivatives of the sum of `ys` with respect to each of `xs`, as a list.

    Each has shape ``x.shape + x.shape``; None where ys do not depend on x. Works and raises like
    `gradients`. Modelled on ``tf.hessians``, whose other arguments are accepted and have no effect.
    """
    firsts = gradients(ys, xs, name=name)
    token = state.graphs[-1]._token
    return [
        None if first is None else rows(token, first, [x])[0]
        for first, x in zip(firsts, nest.flatten(xs), strict=True)
    ]


# The rows of a sweep -------------------------------------------------------------------------


def rows(token: Token, target: Tensor, sources: list, batched: bool = True) -> list:
    """Return the Jacobian of `target` with respect to each source, None if independent of it.

    Its shape is ``target.shape + source.shape``. One sweep computes it, with rules that see an
    upstream gradient for each element of the target; if not `batched`, one sweep per element.
    """
    shape = tuple(target._data.shape)
    gradients = _sweeps(token, target, None, sources, batched)
    return [
        None if gradient is None else reshape(gradient, (*shape, *gradient._data.shape[1:]))
        for gradient in gradients
    ]


def example_rows(token: Token, target: Tensor, source: Any, batched: bool = True) -> Tensor | None:
    """Return Jacobians of each slice of `target` with respect to the same slice of `source`."""
    count, *rest = target._data.shape
    units = unit_vectors(target, tuple(rest))
    size = units._data.shape[0]
    upstream = repeat(reshape(units, (size, 1, *rest)), (size, count, *rest))
    (gradient,) = _sweeps(token, target, upstream, [source], batched)
    if gradient is None:
        return None
    inner = gradient._data.shape[2:]
    swapped = transpose(gradient, (1, 0, *range(2, len(inner) + 2)))
    return reshape(swapped, (count, *rest, *inner))


def _sweeps(
    token: Token, target: Tensor, upstream: Tensor | None, sources: list, batched: bool
) -> list:
    """Return the stacked gradients for each slice of `upstream` along its first axis.

    The default slices are the unit vectors.
    """
    shape = tuple(target._data.shape)
    count = prod(shape) if upstream is None else upstream._data.shape[0]
    if count and not batched:
        upstream = unit_vectors(target) if upstream is None else upstream
        sweeps = [
            differentiate(token, [target], [getitem(upstream, i)], sources, explain=reason_by_text)[
                0
            ]
            for i in range(count)
        ]
        columns = zip(*sweeps, strict=True)
        return [None if column[0] is None else stack(list(column)) for column in columns]
    level = Batch(count)
    with level:
        vectors = level.unit_vectors(target) if upstream is None else BatchTensor(upstream, level)
        results, _ = differentiate(token, [target], [vectors], sources, explain=reason_by_text)
    return [None if result is None else level.physical(result) for result in results]
