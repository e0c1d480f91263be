"""Reductions: operations that fold axes away, and the normalisations built on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_cg_kernels.reduce import moments, search
from tinygrad_cg_kernels.reduce import reduction as kreduce
from tinygrad_cg_kernels.reduce import softmax as ksoftmax
from tinygrad_cg_kernels.runtime import errstate
from tinygrad_cg_kernels.runtime.dtypes import computing

from .._core.conversion import convert, promote
from .._core.levels import state
from .._core.primitive import Primitive, apply, register
from .._core.tensor import Aval, Tensor
from .complex import imag, real
from .creation import ones
from .define import Case, as_int, folded_shape, normalize_axis, reduction
from .elementwise import add, divide, equal, exp, multiply, negative, power, sqrt, subtract, where
from .indexing import getitem
from .shape import cast, concatenate, repeat, reshape, stack, transpose

CASES = [
    Case(((2, 3),), {"axis": (0, 1), "keepdims": False}),
    Case(((2, 3, 2),), {"axis": (1,), "keepdims": True}),
    Case(((2, 3, 2),), {"axis": (0, 2), "keepdims": False}),
    Case(((),), {"axis": (), "keepdims": False}),
]


def unfold(dy: Tensor, shape: tuple[int, ...], axis: tuple[int, ...], keepdims: bool) -> Tensor:
    """`dy` with the folded axes back, of size 1, so that it broadcasts to `shape`."""
    if keepdims or not dy._data.ndim:
        return dy
    return reshape(dy, folded_shape(shape, axis, True))


def _spread(dy: Tensor, shape: tuple[int, ...], axis: tuple[int, ...], keepdims: bool) -> Tensor:
    data = dy._data
    if data.ndim:
        return repeat(unfold(dy, shape, axis, keepdims), shape)
    if shape == (1,) and dy._rec is None and state.frame is None and type(data) is np.ndarray:
        return Tensor(data.reshape(shape))  # the commonest, without a look at all that may be
    return repeat(dy, shape)


def _count(shape: tuple[int, ...], axis: tuple[int, ...]) -> int:
    return int(np.prod([shape[i] for i in axis], dtype=np.int64))


reduce_sum = reduction(
    "sum",
    kreduce.sum,
    doc="The sum of elements over axes.",
    vjp=_spread,
    linear=True,
    reference=lambda x, axis, keepdims: np.sum(x, axis, keepdims=keepdims),
    samples=CASES,
)


def _run_mean(x: np.ndarray, axis: tuple[int, ...], keepdims: bool) -> np.ndarray:
    if x.dtype.kind == "b":
        raise TypeError("mean: needs numbers, got bool; cast them to a float dtype first")
    wanted = {"i": np.dtype(np.int64), "u": np.dtype(np.uint64)}.get(x.dtype.kind)
    # a mean may fit where the sum does not
    wide = errstate.cast(x, computing(x.dtype) if wanted is None else wanted)
    total = kreduce.sum(wide, axis, keepdims)
    count = _count(x.shape, axis)
    if x.dtype.kind in "fc":
        return errstate.cast(errstate.quietly(np.divide, total, count, total), x.dtype)
    quotient = total // max(count, 1)
    inexact = (total < 0) & (quotient * count != total)  # towards zero, as the original
    return np.asarray(quotient + inexact, x.dtype)


reduce_mean = reduction(
    "mean",
    kreduce.sum,
    doc="The mean of elements over axes; of integers it is an integer, rounded towards zero.",
    run=_run_mean,
    vjp=lambda dy, shape, axis, keepdims: _spread(
        divide(dy, float(_count(shape, axis))), shape, axis, keepdims
    ),
    linear=True,
    reference=lambda x, axis, keepdims: np.mean(x, axis, keepdims=keepdims),
    samples=CASES,
)


def _prod_rule(dy: Tensor, x: Tensor, shape: Any, axis: tuple, keepdims: bool) -> Tensor:
    """For each element the product of the others, zeros or not, right at every order."""
    rest = tuple(i for i in range(len(shape)) if i not in axis)
    perm = (*rest, *axis)
    moved = transpose(x, perm)
    rows = reshape(moved, (_count(shape, rest), _count(shape, axis)))
    others = reshape(_others_product(rows), tuple(moved.shape))
    others = transpose(others, tuple(perm.index(i) for i in range(len(shape))))
    return multiply(unfold(dy, shape, axis, keepdims), others)


def _others_product(rows: Tensor) -> Tensor:
    """Products up a binary tree, and down again: 2 log n multiplications of whole rows."""
    height, count = rows.shape
    if count <= 1:
        return power(rows, 0)  # ones that stay connected: derivatives beyond are 0, not None
    if count % 2:
        rows = concatenate([rows, ones((height, 1), rows.dtype)], 1)
    even = getitem(rows, (slice(None), slice(0, None, 2)))
    odd = getitem(rows, (slice(None), slice(1, None, 2)))
    above = _others_product(multiply(even, odd))
    pairs = stack([multiply(above, odd), multiply(above, even)], 2)
    return getitem(reshape(pairs, tuple(rows.shape)), (slice(None), slice(0, count)))


reduce_prod = reduction(
    "prod",
    kreduce.prod,
    doc="The product of elements over axes.",
    vjp=_prod_rule,
    reference=lambda x, axis, keepdims: np.prod(x, axis, keepdims=keepdims),
    samples=CASES,
)


def _extremum_rule(
    dy: Tensor, x: Tensor, out: Tensor, shape: Any, axis: tuple, keepdims: bool
) -> Tensor:
    """Elements that tie share the gradient evenly."""
    ties = cast(equal(x, unfold(out, shape, axis, keepdims)), dy.dtype)
    count = reduce_sum(ties, axis, True)
    return multiply(ties, divide(unfold(dy, shape, axis, keepdims), count))


reduce_max = reduction(
    "max",
    kreduce.max,
    doc="The largest element over axes; elements that tie share the gradient. NaN if one is.",
    vjp=_extremum_rule,
    reference=lambda x, axis, keepdims: np.max(x, axis, keepdims=keepdims),
    samples=CASES,
)
reduce_min = reduction(
    "min",
    kreduce.min,
    doc="The smallest element over axes; elements that tie share the gradient. NaN if one is.",
    vjp=_extremum_rule,
    reference=lambda x, axis, keepdims: np.min(x, axis, keepdims=keepdims),
    samples=CASES,
)
reduce_any = reduction(
    "any",
    kreduce.any,
    doc="Whether any element over axes is true (not 0).",
    reference=lambda x, axis, keepdims: np.any(x, axis, keepdims=keepdims),
    samples=CASES,
)
reduce_all = reduction(
    "all",
    kreduce.all,
    doc="Whether all elements over axes are true (not 0).",
    reference=lambda x, axis, keepdims: np.all(x, axis, keepdims=keepdims),
    samples=CASES,
)


def _finite(x: Tensor) -> Tensor:
    """`x` with 0 for -inf, the logarithm of a sum of nothing: exp(-inf - 0) is 0 as it should."""
    return where(equal(x, -np.inf), 0, x)


reduce_logsumexp = reduction(
    "logsumexp",
    ksoftmax.logsumexp,
    doc="log(sum(exp(x))) over axes, without overflow.",
    vjp=lambda dy, x, out, shape, axis, keepdims: multiply(
        unfold(dy, shape, axis, keepdims),
        exp(subtract(x, _finite(unfold(out, shape, axis, keepdims)))),
    ),
    reference=lambda x, axis, keepdims: np.log(np.sum(np.exp(x), axis, keepdims=keepdims)),
    samples=CASES,
)


def _variance_rule(dy: Tensor, x: Tensor, shape: Any, axis: tuple, keepdims: bool) -> Tensor:
    scaled = multiply(unfold(dy, shape, axis, keepdims), 2.0)
    count = float(max(_count(shape, axis), 1))
    return multiply(divide(scaled, count), subtract(x, reduce_mean(x, axis, True)))


_variance = reduction(
    "variance",
    moments.variance,
    doc="The mean of squared distances from the mean over axes. Integers become float64.",
    vjp=_variance_rule,
    reference=lambda x, axis, keepdims: np.var(x, axis, keepdims=keepdims),
    samples=CASES,
)


def reduce_variance(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean of squared distances from the mean over axes; real for complex `x`.

    `axis` is one axis, several, or None for all; `keepdims` keeps them, with size 1. Integers
    become float64. Raises InvalidArgumentError for an axis that `x` does not have.
    """
    x = convert(x)
    if x.dtype.kind != "c":
        return _variance(x, axis, keepdims)
    return add(_variance(real(x), axis, keepdims), _variance(imag(x), axis, keepdims))


def reduce_std(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The standard deviation over axes, the root of `reduce_variance`, which see."""
    return sqrt(reduce_variance(x, axis, keepdims))


euclidean_norm = reduction(
    "euclidean_norm",
    moments.norm,
    doc="The root of the sum of squares over axes, of real numbers. Integers become float64.",
    vjp=lambda dy, x, out, shape, axis, keepdims: multiply(
        unfold(divide(dy, out), shape, axis, keepdims), x
    ),
    reference=lambda x, axis, keepdims: np.sqrt(np.sum(x * x, axis, keepdims=keepdims)),
    samples=CASES,
)


# Along one axis ------------------------------------------------------------------------------


def _arg_aval(x: Aval, axis: int) -> Aval:
    return Aval(folded_shape(x.shape, (axis,), False), np.dtype(np.int64))


def _along(name: str, kernel: Any, abstract: Any, kind: str, **record: Any) -> Primitive:
    return register(
        Primitive(
            name,
            lambda x, axis: kernel(x, axis),
            ("x",),
            abstract,
            kind=kind,
            kernel=kernel,
            batch=lambda params, size: {"axis": params["axis"] + 1},
            samples=[Case(((2, 3),), {"axis": 1}), Case(((3, 2, 2),), {"axis": 0})],
            **record,
        )
    )


_argmax = _along("argmax", search.argmax, _arg_aval, "reduction", reference=np.argmax)
_argmin = _along("argmin", search.argmin, _arg_aval, "reduction", reference=np.argmin)
_NORMALISED = [Case(((2, 3),), {"axis": 1}), Case(((3, 2, 2),), {"axis": 0})]
_NORMALISED_TWICE = [Case(case.shapes * 2, case.params) for case in _NORMALISED]


def _pull(name: str, kernel: Any, vjp: Any, reference: Any) -> Primitive:
    """The gradient of a normalisation: a function of the upstream one, and of the result."""
    return register(
        Primitive(
            name,
            lambda g, y, axis: kernel(*_alike(g, y), axis),
            ("g", "y"),
            lambda g, y, axis: Aval(y.shape, kernel.result_dtype(promote(g.dtype, y.dtype))),
            vjp,
            kind="normalisation",
            kernel=kernel,
            batch=lambda params, size: {"axis": params["axis"] + 1},
            reference=reference,
            samples=_NORMALISED_TWICE,
        )
    )


def _alike(g: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    dtype = promote(g.dtype, y.dtype)
    return errstate.cast(g, dtype), errstate.cast(y, dtype)


def _sum_along(x: Tensor, axis: int) -> Tensor:
    return reduce_sum(x, axis, keepdims=True)


def _softmax_pull_by_result(dy: Tensor, g: Tensor, y: Tensor, axis: int) -> Tensor:
    kept = multiply(dy, subtract(g, _sum_along(multiply(g, y), axis)))
    return subtract(kept, multiply(g, _sum_along(multiply(dy, y), axis)))


_softmax_pull = _pull(
    "softmax_pull",
    ksoftmax.softmax_grad,
    (
        lambda dy, y, axis: apply(_softmax_pull, (dy, y), {"axis": axis}),
        _softmax_pull_by_result,
    ),
    lambda g, y, axis: y * (g - np.sum(g * y, axis, keepdims=True)),
)
_log_softmax_pull = _pull(
    "log_softmax_pull",
    ksoftmax.log_softmax_grad,
    (
        lambda dy, y, axis: subtract(dy, _sum_along(multiply(dy, exp(y)), axis)),
        lambda dy, g, y, axis: multiply(multiply(dy, exp(y)), negative(_sum_along(g, axis))),
    ),
    lambda g, y, axis: g - np.exp(y) * np.sum(g, axis, keepdims=True),
)


def _normalisation(name: str, kernel: Any, pull: Primitive, reference: Any) -> Primitive:
    return _along(
        name,
        kernel,
        lambda x, axis: Aval(x.shape, kernel.result_dtype(x.dtype)),
        "reduction",
        vjp=(lambda dy, out, axis: apply(pull, (dy, out), {"axis": axis}),),
        reference=reference,
    )


_softmax = _normalisation(
    "softmax",
    ksoftmax.softmax,
    _softmax_pull,
    lambda x, axis: np.exp(x) / np.sum(np.exp(x), axis, keepdims=True),
)
_log_softmax = _normalisation(
    "log_softmax",
    ksoftmax.log_softmax,
    _log_softmax_pull,
    lambda x, axis: x - np.log(np.sum(np.exp(x), axis, keepdims=True)),
)


def argmax(x: Any, axis: Any = 0) -> Tensor:
    """Positions (int64) of the largest elements along `axis`; the first where several tie.

    After ``tf.argmax``: `axis` is 0 by default; None means the flattened tensor. Raises
    InvalidArgumentError for an axis that `x` does not have, and for an empty one.
    """
    return _arg(_argmax, x, axis)


def argmin(x: Any, axis: Any = 0) -> Tensor:
    """Positions (int64) of the smallest elements along `axis`; the first where several tie.

    `axis` and errors as for `argmax`.
    """
    return _arg(_argmin, x, axis)


def _arg(primitive: Primitive, x: Any, axis: Any) -> Tensor:
    x = convert(x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    return apply(primitive, (x,), {"axis": normalize_axis(primitive.name, axis, x._data.ndim)})


def log_softmax(x: Any, axis: Any = -1) -> Tensor:
    """``x - logsumexp(x)`` along `axis`, without overflow; the shape is that of `x`.

    Integers become float64. Raises InvalidArgumentError for an axis that `x` does not have.
    """
    return _normalised(_log_softmax, x, axis)


def softmax(x: Any, axis: Any = -1) -> Tensor:
    """``exp(x) / sum(exp(x))`` along `axis`, without overflow; as `log_softmax` otherwise."""
    return _normalised(_softmax, x, axis)


def _normalised(primitive: Primitive, x: Any, axis: Any) -> Tensor:
    x = convert(x)
    place = normalize_axis(primitive.name, as_int(primitive.name, "axis", axis), x._data.ndim)
    return apply(primitive, (x,), {"axis": place})
