"""Scans along one axis: cumulative sums and products, and the recurrence that their rules need."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_cg_kernels.reduce import scan as kscan
from tinygrad_cg_kernels.runtime import errstate

from .._core.annotations import Axes, TensorLike
from .._core.conversion import convert, promote
from .._core.device_runs import kernel_for
from .._core.primitive import Primitive, apply
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Aval, Tensor
from .comparison import equal, isfinite, logical_and, logical_not
from .creation import full_like
from .define import Case, later_axis, operation
from .elementwise import add, logaddexp, multiply_upstream, where
from .indexing import getitem
from .reductions import reduce_all
from .shape import concatenate, reshape
from .validation import as_int, normalize_axis

_SAMPLES = [
    Case(((2, 3),), {"axis": 1, "reverse": False, "exclusive": False}),
    Case(((3, 2, 2),), {"axis": 0, "reverse": True, "exclusive": False}),
    Case(((2, 4, 1),), {"axis": 1, "reverse": False, "exclusive": True}),
    Case(((3,),), {"axis": 0, "reverse": True, "exclusive": True}),
]


def _scan(name: str, kernel: kscan.Scan, **record: Any) -> Primitive:
    return operation(
        name,
        lambda x, axis, reverse, exclusive: kernel_for(x, kernel)(x, axis, reverse, exclusive),
        lambda x, axis, reverse, exclusive: Aval(x.shape, kernel.result_dtype(x.dtype)),
        kind="reduction",
        kernel=kernel,
        batch=later_axis,
        samples=_SAMPLES,
        **record,
    )


_cumsum = _scan(
    "cumsum",
    kscan.cumsum,
    linear=True,
    vjp=(
        lambda dy, axis, reverse, exclusive: apply(
            _cumsum, (dy,), {"axis": axis, "reverse": not reverse, "exclusive": exclusive}
        ),
    ),
)


# A recurrence r[i] = b[i] + a[i] * r[i - 1], from 0. Exclusive, it gives r[i - 1] at i. Its
# gradients are recurrences that run the other way, and so are those of a cumulative product,
# without a division: they are right where elements are 0, at every order.


def _recurrence_run(a: np.ndarray, b: np.ndarray, pulls: bool, **params: Any) -> np.ndarray:
    dtype = promote(a.dtype, b.dtype)
    kernel = kernel_for(a, kscan.pull if pulls else kscan.recurrence)
    return kernel(errstate.cast(a, dtype), y=errstate.cast(b, dtype), **params)


def _recur(
    a: Tensor, b: Tensor, axis: int, reverse: bool, exclusive: bool, pulls: bool = True
) -> Tensor:
    params = {"axis": axis, "reverse": reverse, "exclusive": exclusive, "pulls": pulls}
    return apply(_recurrence, (a, b), params)


def recurrence(a: Tensor, b: Tensor, axis: int) -> Tensor:
    """Return r with ``r[i] = b[i] + a[i] * r[i - 1]`` along a non-negative `axis`, from 0."""
    return _recur(a, b, axis, False, False, False)


def _pull_by_term(dy: Tensor, a: Tensor, axis: int, reverse: bool, exclusive: bool) -> Tensor:
    """Return the effect of b[i] on all later results, weighted by `dy`."""
    if exclusive:
        return _recur(a, dy, axis, not reverse, True)
    return add(dy, _recur(a, multiply_upstream(dy, a), axis, not reverse, True))


def _pull_by_factor(
    dy: Tensor, a: Tensor, b: Tensor, axis: int, reverse: bool, exclusive: bool, pulls: bool
) -> Tensor:
    pulled = _pull_by_term(dy, a, axis, reverse, exclusive)
    before = _recur(a, b, axis, reverse, True, pulls)
    pulled = _masked(pulled, before, dy, axis) if pulls else pulled
    return multiply_upstream(pulled, before)


def _pull_by_summand(
    dy: Tensor, a: Tensor, b: Tensor, axis: int, reverse: bool, exclusive: bool, pulls: bool
) -> Tensor:
    pulled = _pull_by_term(dy, a, axis, reverse, exclusive)
    return _masked(pulled, b, dy, axis) if pulls else pulled


def _masked(pulled: Tensor, term: Tensor, dy: Tensor, axis: int) -> Tensor:
    """Return `pulled`, and 0 where factors make it not finite for an upstream gradient `term` of 0.

    What `dy` makes is not hidden.
    """
    masks = logical_and(equal(term, 0), reduce_all(isfinite(dy), axis, True))
    return where(logical_and(masks, logical_not(isfinite(pulled))), 0, pulled)


_recurrence = operation(
    "recurrence",
    _recurrence_run,
    lambda a, b, **params: Aval(b.shape, kscan.recurrence.result_dtype(promote(a.dtype, b.dtype))),
    (_pull_by_factor, _pull_by_summand),
    inputs=("a", "b"),
    kind="scan",
    kernel=kscan.recurrence,
    batch=later_axis,
    samples=[
        Case(case.shapes * 2, case.params | {"pulls": pulls})
        for case in _SAMPLES
        for pulls in (False, True)
    ],
)


def _cumprod_rule(dy: Tensor, x: Tensor, axis: int, reverse: bool, exclusive: bool) -> Tensor:
    """Return the product of what comes before, times the weighted products of what comes after."""
    before = apply(_cumprod, (x,), {"axis": axis, "reverse": reverse, "exclusive": True})
    return multiply_upstream(_pull_by_term(dy, x, axis, reverse, exclusive), before)


_cumprod = _scan("cumprod", kscan.cumprod, vjp=(_cumprod_rule,))


def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """Return the sums of all elements up to each along `axis`; None means the flattened tensor."""
    return _run_scan(_cumsum, x, axis, exclusive, reverse)


def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """Return the products of all elements up to each along `axis`: parameters as for `cumsum`."""
    return _run_scan(_cumprod, x, axis, exclusive, reverse)


def _run_scan(primitive: Primitive, x: Any, axis: Any, exclusive: bool, reverse: bool) -> Tensor:
    x = convert(x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    name = primitive.name
    dim = normalize_axis(name, as_int(name, "axis", axis), x._data.ndim)
    params = {"axis": dim, "reverse": bool(reverse), "exclusive": bool(exclusive)}
    return apply(primitive, (x,), params)


@reads_own_arguments
def cumulative_logsumexp(
    x: TensorLike,
    axis: Axes = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the logarithms of sums of exp(x) up to each element along `axis`, without overflow.

    Modelled on ``tf.math.cumulative_logsumexp``: the result for no elements is -inf. Parameters as
    for `cumsum`. It takes log2(n) steps.
    """
    x = convert(x)
    dim = normalize_axis(
        "cumulative_logsumexp", as_int("cumulative_logsumexp", "axis", axis), x.ndim
    )
    before = (slice(None),) * dim
    size, reach = x.shape[dim], 1
    turned = (*before, slice(None, None, -1))
    x = getitem(x, turned) if reverse else x
    while reach < size:
        parts = slice(reach, None), slice(None, -reach), slice(None, reach)
        later, earlier, done = (getitem(x, (*before, part)) for part in parts)
        x = concatenate([done, logaddexp(later, earlier)], dim)
        reach *= 2
    if exclusive and size:
        first = full_like(getitem(x, (*before, slice(0, 1))), -np.inf)
        x = concatenate([first, getitem(x, (*before, slice(None, -1)))], dim)
    return getitem(x, turned) if reverse else x
