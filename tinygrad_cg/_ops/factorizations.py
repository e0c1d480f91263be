"""Spectral factorizations by LAPACK: eigenvalues, singular values, QR and LU.

An operation that computes several factors is one record, which returns them as one matrix, one
below the other, so that their gradients arrive together. The rules are those of M. Giles, "An
extended collection of matrix derivative results" (2008), and S. Walter and L. Lehmann, "Algorithmic
differentiation of linear algebra functions" (2010); for complex matrices K. Schreiber et al. and
PyTorch's documentation describe which functions of eigenvectors have a derivative.

Eigenvectors of equal eigenvalues are any basis of the space that they span. A derivative by them
exists only where the function does not depend on that choice, and then the terms between them are
0 unless it also depends on the eigenvalues: `_check_coincident` warns where those terms are
asked for. Eigenvalues alone need none of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime import promotion

from .._core import devices
from .._core.levels import is_transposing
from .._core.primitive import apply
from .._core.record import Node
from .._core.tensor import Aval, Tensor
from ..errors import DerivativeWarning, warn
from .complex import real
from .decompositions import _apply_triangular, hermitian, inv
from .define import Case, broadcast_shapes, operation, public
from .elementwise import add, divide, multiply, negative, subtract, where
from .indexing import getitem
from .matrices import (
    MATRIX,
    NOT_SQUARE,
    POSITIVE,
    STACK,
    adjoint,
    band,
    columns,
    largest,
    matrices,
    of_matrices,
    product,
    real_dtype,
    rows,
    square_matrices,
)
from .reductions import reduce_mean
from .shape import concatenate, expand_dims, swap_last

_SYMMETRIC = POSITIVE - 1.5 * np.eye(3)
_TALL = np.array([[1.0, 0.5], [-0.25, 2.0], [0.75, -1.0]])
_WIDE = np.stack([_TALL.T, 1.5 - _TALL.T])


# Equal eigenvalues -----------------------------------------------------------------------------


def _tolerance(dtype: np.dtype, size: int) -> float:
    """Return the relative distance below which computed eigenvalues count as equal."""
    return 8 * float(np.finfo(dtype).eps) * size**0.5


def _run_coincide(x: np.ndarray, sums: bool) -> np.ndarray:
    """Return where numbers in a row, or one and another's negative if `sums`, are equal."""
    column = np.swapaxes(x, -1, -2)
    distance = np.abs(x + column) if sums else np.abs(x - column)
    return distance <= largest(np.abs(x), -1, True) * _tolerance(x.dtype, x.shape[-1])


_coincide = operation(
    "coincide",
    lambda x, sums: _run_coincide(x if x.dtype.kind in "fc" else x.astype(np.float64), sums),
    lambda x, sums: Aval((*x.shape[:-2], x.shape[-1], x.shape[-1]), np.dtype(np.bool_)),
    kind="contraction",
    batch=lambda params, size: params,
    core=(2,),
    samples=[
        Case(((1, 3),), {"sums": False}, {0: np.array([[1.0, 2.0, 1.0]])}),
        Case(((2, 1, 3),), {"sums": True}, {0: np.array([[[1.0, 2.0, 0.0]], [[1.0, -1.0, 2.0]]])}),
    ],
)


def _run_check(
    x: np.ndarray, close: np.ndarray, like: np.ndarray, name: str, phase: bool
) -> np.ndarray:
    """Return `x`; warn if it is not 0 where values are `close`, up to the rounding of `like`."""
    size = np.abs(x)
    wrong = np.where(close & ~np.eye(x.shape[-1], dtype=bool), size, 0)
    if phase and x.dtype.kind == "c":
        turns = np.abs(np.einsum("...ii->...i", x).imag)
        wrong = np.concatenate([wrong, turns[..., None, :]], -2)
    scale = largest(np.abs(like), (-1, -2), True)
    if x.dtype.kind in "fc" and (wrong > 100 * _tolerance(x.dtype, x.shape[-1]) * scale).any():
        warn(
            f"{name}: the gradient by vectors of equal values (or by the phase of a complex "
            "vector) was asked for, and is taken as 0: it is right only if the result depends on "
            "no more than the space that these vectors span. Functions of a matrix have operations "
            "of their own: expm, logm, sqrtm, inv, pinv",
            DerivativeWarning,
        )
    return _copy(x, close, like)


def _copy(x: np.ndarray, *others: np.ndarray) -> np.ndarray:
    leading = promotion.broadcast_shapes(x.shape[:-2], *[one.shape[:-2] for one in others])
    return np.broadcast_to(x, (*leading, *x.shape[-2:])).copy()


def _checked_aval(x: Aval, *others: Aval, name: str, phase: bool) -> Aval:
    shapes = [one.shape[:-2] for one in (x, *others)]
    leading = broadcast_shapes("check_coincident", *shapes)
    return Aval((*leading, *x.shape[-2:]), x.dtype)


_check_coincident = operation(
    "check_coincident",
    _run_check,
    _checked_aval,
    (lambda dy: dy, None, None),
    inputs=("x", "close", "like"),
    kind="contraction",
    batch=lambda params, size: params,
    core=(2, 2, 2),
    samples=[
        Case(
            ((3, 3), (3, 3), (3, 3)),
            {"name": "eigh", "phase": True},
            {1: np.zeros((3, 3), bool)},
        )
    ],
)


_check_tangent = operation(
    "check_tangent",
    lambda x, close, name, phase: _copy(x, close),
    _checked_aval,
    (
        lambda dy, close, name, phase: apply(
            _check_coincident, (dy, close, dy), {"name": name, "phase": phase}
        ),
        None,
    ),
    inputs=("x", "close"),
    kind="contraction",
    batch=lambda params, size: params,
    core=(2, 2),
    samples=[Case(((3, 3), (3, 3)), {"name": "eigh", "phase": True}, {1: np.zeros((3, 3), bool)})],
)


def over_gaps(
    x: Tensor, gaps: Tensor, close: Tensor, like: Tensor, name: str, phase: bool = True
) -> Tensor:
    """Return the quotients of elements by the distances of eigenvalues, 0 where these are equal.

    Warns of what that drops (`phase`: and of imaginary parts on the diagonal): of the upstream
    gradients; of the tangents where the transpose of the rule is wanted, whose upstream gradients
    are random. `like` is what `x` was computed from, whose rounding is no reason.
    """
    checked = {"name": name, "phase": phase}
    if is_transposing():
        found = where(close, 0, divide(x, where(close, 1, gaps)))
        return apply(_check_tangent, (found, close), checked)
    x = apply(_check_coincident, (x, close, like), checked)
    return where(close, 0, divide(x, where(close, 1, gaps)))


# Functions of values alone ---------------------------------------------------------------------
# The gradient of f(values) is left diag(g) adjoint(right). Its derivative has quotients
# (g_i - g_j) / (v_i - v_j), for v_i = v_j the limit f_ii - f_ij, and g_i / v_i, for v_i = 0 the
# limit f_ii. Reverse mode does not know these second derivatives of f, and takes them as 0.


def _limits(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where values are equal, and 0, or so near that quotients lose most digits."""
    near = largest(np.abs(values), -1, True) * float(np.finfo(values.dtype).eps) ** 0.625
    equal = np.abs(values - np.swapaxes(values, -1, -2)) <= near
    return equal & ~np.eye(values.shape[-1], dtype=bool), np.abs(values) <= near


def _run_check_limits(
    x: np.ndarray, left: np.ndarray, values: np.ndarray, right: np.ndarray, name: str
) -> np.ndarray:
    """Return `x`, the upstream gradient of such a gradient; warn if it asks for those limits."""
    equal, zero = _limits(values)
    if name != "svdvals":
        zero = np.zeros_like(zero)
    if equal.any() or zero.any():
        inner = np.swapaxes(left, -1, -2).conj() @ x @ right
        both = inner if name == "eigvals" else (inner + np.swapaxes(inner, -1, -2).conj()) / 2
        asked = [np.where(equal, np.abs(both), 0), np.where(equal & zero, np.abs(inner), 0)]
        if left.shape[-2] > left.shape[-1]:
            asked.append(np.where(zero, np.abs(x @ right - left @ inner), 0))
        if right.shape[-2] > right.shape[-1]:
            outside = np.swapaxes(x, -1, -2).conj() @ left
            outside -= right @ np.swapaxes(inner, -1, -2).conj()
            asked.append(np.where(zero, np.abs(outside), 0))
        room = 100 * _tolerance(values.dtype, max(x.shape[-2:])) * np.abs(x).max(initial=0)
        if any(one.max(initial=0) > room for one in asked):
            warn(
                f"{name}: a second derivative was asked for where values are equal, or 0, or "
                "nearly so. The terms between vectors of equal values are taken as 0: it is right "
                "only for sums of the values, and along what leaves these values equal. "
                "Functions of a matrix have operations of their own: expm, logm, sqrtm, inv, pinv",
                DerivativeWarning,
            )
    return _copy(x, left, values, right)


_LIMITS_CASE = Case(
    ((3, 3), (3, 3), (1, 3), (3, 3)),
    {"name": "eigvalsh"},
    {1: np.eye(3), 2: np.array([[1.0, 2.0, 4.0]]), 3: np.eye(3)},
)
_check_limits = operation(
    "check_limits",
    _run_check_limits,
    lambda *factors, name: _checked_aval(*factors, name=name, phase=False),
    (lambda dy: dy, None, None, None),
    inputs=("x", "left", "values", "right"),
    kind="contraction",
    batch=lambda params, size: params,
    core=(2, 2, 2, 2),
    samples=[_LIMITS_CASE],
)
_with_limits = operation(
    "with_limits",
    lambda *factors, name: _copy(*factors),
    lambda *factors, name: _checked_aval(*factors, name=name, phase=False),
    (
        lambda dy, left, values, right, name: (
            dy
            if is_transposing()
            else apply(_check_limits, (dy, left, values, right), {"name": name})
        ),
        None,
        None,
        None,
    ),
    inputs=("x", "left", "values", "right"),
    kind="contraction",
    batch=lambda params, size: params,
    core=(2, 2, 2, 2),
    samples=[_LIMITS_CASE],
)


_MOST_NODES = 1000


def _records(tensor: Tensor) -> list[Node]:
    found, record = [], tensor._rec
    while type(record) is Node:
        found.append(record)
        record = record.next
    return found


def _tangents(tensor: Tensor) -> dict[Any, Tensor]:
    """Return the tangents of a tensor by their accumulators, whose records have no operands."""
    records = _records(tensor)
    return {one.group: one.saved for one in records if one.rule is not None and not one.inputs}


def _depends_on(tensor: Tensor, other: Tensor) -> bool:
    """Return whether what is recorded leads from one tensor to another, or is too much to tell."""
    pending, seen, goals = _records(tensor), set(), set(_records(other))
    while pending and len(seen) < _MOST_NODES:
        record = pending.pop()
        if type(record) is Node and record not in seen:
            if record in goals:
                return True
            seen.add(record)
            pending += [*record.inputs, record.next]
    return bool(pending)


def with_limits(
    found: Tensor, x: Tensor, slopes: Tensor, left: Tensor, values: Tensor, right: Tensor, name: str
) -> Tensor:
    """Return the gradient by `x` so that a second derivative warns where it is not known.

    It is known where the slopes do not depend on `x`. What transposes the rule does not tell.
    """
    factors = (left, values, right)
    own, tangents = _tangents(slopes), _tangents(x)
    for group in own.keys() & tangents.keys():
        apply(_check_limits, (tangents[group], *factors), {"name": name})
    recorded = any(one.group not in tangents for one in _records(x))
    if recorded and (is_transposing() or _depends_on(slopes, x)):
        return apply(_with_limits, (found, *factors), {"name": name})
    return found


# Hermitian matrices ----------------------------------------------------------------------------


def _stack_rows(values: np.ndarray, *blocks: np.ndarray) -> np.ndarray:
    row = values[..., None, :].astype(blocks[0].dtype)
    return np.concatenate([row, *blocks], -2)


def _one_more_row(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-2], shape[-2] + 1, shape[-1])


def _eigh_rule(dy: Tensor, out: Tensor) -> Tensor:
    values, vectors = real(rows(out, 0, 1)), rows(out, 1)
    close = apply(_coincide, (values,), {"sums": False})
    inner = product(adjoint(vectors), rows(dy, 1))
    gaps = subtract(values, swap_last(values))
    inner = over_gaps(inner, gaps, close, rows(dy, 1), "eigh")
    found = product(product(vectors, inner), adjoint(vectors))
    found = add(found, _by_values(vectors, real(rows(dy, 0, 1)), vectors))
    return multiply(add(found, adjoint(found)), 0.5)


def _by_values(left: Tensor, slopes: Tensor, right: Tensor) -> Tensor:
    """Return left diag(slopes) adjoint(right)."""
    return product(multiply(left, slopes), adjoint(right))


_eigh = of_matrices(
    "eigh",
    lambda x: _stack_rows(*np.linalg.eigh(hermitian(x))),
    _eigh_rule,
    _one_more_row,
    samples=(_SYMMETRIC[0], _SYMMETRIC),
    analytic=False,
)


def _eigvalsh_rule(dy: Tensor, x: Tensor) -> Tensor:
    """Return V diag(dy) adjoint(V), as a multiple of the identity and the rest.

    So the trace, whose `dy` is constant, asks for no derivative of vectors.
    """
    factors = apply(_eigh, (x,), {})
    values, vectors = real(rows(factors, 0, 1)), rows(factors, 1)
    mean = expand_dims(reduce_mean(dy, -1, True), -1)
    found = _by_values(vectors, subtract(expand_dims(dy, -2), mean), vectors)
    found = add(found, multiply(mean, np.eye(x._data.shape[-1], dtype=dy.dtype)))
    return with_limits(found, x, dy, vectors, values, vectors, "eigvalsh")


_eigvalsh = of_matrices(
    "eigvalsh",
    lambda x: np.linalg.eigvalsh(hermitian(x)),
    _eigvalsh_rule,
    lambda shape: shape[:-1],
    real_dtype,
    samples=(_SYMMETRIC[0], _SYMMETRIC),
    analytic=False,
    errors=(NOT_SQUARE,),
)


def eigh(x: Any) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues, ascending, and the eigenvectors of symmetric or Hermitian matrices.

    `x` has shape (..., n, n); its two triangles count alike, half each. The values (..., n) are
    real; the vectors are the columns of (..., n, n). Integers become float64. The derivative by the
    vectors of equal values is taken as 0, with an errors.DerivativeWarning where it is asked for.
    Raises InvalidArgumentError for matrices that are not square.
    """
    found = apply(_eigh, (square_matrices("eigh", x),), {})
    return real(getitem(found, (Ellipsis, 0, slice(None)))), rows(found, 1)


@public(_eigvalsh)
def eigvalsh(x: Any) -> Tensor:
    """Return the eigenvalues, ascending, of symmetric or Hermitian matrices; see `eigh`.

    Symmetric functions of them, such as sums of f(value), have their right gradient at equal
    values, too. Their second derivative there is known for sums of the values alone; for others an
    errors.DerivativeWarning says so.
    """
    return apply(_eigvalsh, (square_matrices("eigvalsh", x),), {})


# Singular values -------------------------------------------------------------------------------


def _run_svd(x: np.ndarray) -> np.ndarray:
    left, values, right = np.linalg.svd(x, full_matrices=False)
    return _stack_rows(values, left, np.swapaxes(right, -1, -2).conj())


def _svd_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-2], 1 + shape[-2] + shape[-1], min(shape[-2:]))


def _svd_rule(dy: Tensor, out: Tensor, shape: tuple[int, ...]) -> Tensor:
    height, width = shape[-2:]
    values, d_values = real(rows(out, 0, 1)), real(rows(dy, 0, 1))
    left, d_left = rows(out, 1, 1 + height), rows(dy, 1, 1 + height)
    right, d_right = rows(out, 1 + height), rows(dy, 1 + height)
    first, second = product(adjoint(left), d_left), product(adjoint(right), d_right)
    equal = apply(_coincide, (values,), {"sums": False})
    zero = apply(_coincide, (values,), {"sums": True})
    column = swap_last(values)
    distances, sums = subtract(values, column), add(values, column)
    both = over_gaps(add(first, second), distances, equal, rows(dy, 1), "svd")
    other = over_gaps(subtract(first, second), sums, zero, rows(dy, 1), "svd", False)
    inner = multiply(add(add(both, adjoint(both)), subtract(other, adjoint(other))), 0.5)
    found = product(product(left, inner), adjoint(right))
    found = add(found, _by_values(left, d_values, right))
    if height > width:
        outside = subtract(d_left, product(left, first))
        found = add(found, product(_over_values(outside, values), adjoint(right)))
    if width > height:
        outside = subtract(d_right, product(right, second))
        found = add(found, product(left, adjoint(_over_values(outside, values))))
    return found


def _over_values(x: Tensor, values: Tensor) -> Tensor:
    """Return columns divided by singular values; 0 by 0 is 0."""
    nothing = np.zeros((), x.dtype)
    empty = apply(_vanish, (x, values), {})
    return where(empty, nothing, divide(x, where(empty, 1, values)))


def _run_vanish(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    small = _tolerance(values.dtype, values.shape[-1])
    length = np.sqrt((np.abs(x) ** 2).sum(-2, keepdims=True))
    return (values <= small * largest(values, -1, True)) & (
        length <= 100 * small * largest(length, -1, True)
    )


_vanish = operation(
    "vanish",
    lambda x, y: _run_vanish(*(one.astype(np.result_type(one, np.float32)) for one in (x, y))),
    lambda x, y: Aval(
        (*broadcast_shapes("vanish", x.shape[:-2], y.shape[:-2]), 1, x.shape[-1]),
        np.dtype(np.bool_),
    ),
    inputs=("x", "y"),
    kind="contraction",
    batch=lambda params, size: params,
    core=(2, 2),
    samples=[
        Case(
            ((3, 2), (1, 2)),
            {},
            {0: np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 0.0]]), 1: np.array([[2.0, 0.0]])},
        )
    ],
)


_svd = of_matrices(
    "svd",
    _run_svd,
    _svd_rule,
    _svd_shape,
    samples=(MATRIX, _TALL, _WIDE),
    analytic=False,
)


def _svdvals_rule(dy: Tensor, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    factors = apply(_svd, (x,), {})
    left, right = rows(factors, 1, 1 + shape[-2]), rows(factors, 1 + shape[-2])
    values = real(rows(factors, 0, 1))
    found = _by_values(left, expand_dims(dy, -2), right)
    return with_limits(found, x, dy, left, values, right, "svdvals")


_svdvals = of_matrices(
    "svdvals",
    lambda x: np.linalg.svd(x, compute_uv=False),
    _svdvals_rule,
    lambda shape: (*shape[:-2], min(shape[-2:])),
    real_dtype,
    samples=(MATRIX, _TALL, _WIDE),
    analytic=False,
)


def svd(x: Any, full_matrices: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Return U, the singular values s, falling, and V of matrices ``x = U diag(s) adjoint(V)``.

    `x` has shape (..., m, n), and k is the smaller of m and n: U is (..., m, k), s (..., k) and V
    (..., n, k), with orthonormal columns; with `full_matrices` these are completed to square
    matrices. Integers become float64. The derivative by vectors of equal values is taken as 0, with
    an errors.DerivativeWarning where it is asked for, as is that by which columns complete a basis.
    Raises InvalidArgumentError for fewer than two dimensions.
    """
    x = matrices("svd", x)
    height = x._data.shape[-2]
    found = apply(_svd, (x,), {})
    left, right = rows(found, 1, 1 + height), rows(found, 1 + height)
    if full_matrices:
        left, right = complete_basis(left), complete_basis(right)
    return left, real(getitem(found, (Ellipsis, 0, slice(None)))), right


@public(_svdvals)
def svdvals(x: Any) -> Tensor:
    """Return the singular values, falling, of matrices (..., m, n); see `svd`.

    Symmetric functions of them have their right gradient at equal values, too.
    """
    return apply(_svdvals, (matrices("svdvals", x),), {})


# Orthogonal factors ----------------------------------------------------------------------------


def _complement_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-1], shape[-2] - shape[-1])


def _run_complement(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.linalg.qr(x, "complete")[0][..., x.shape[-1] :])


def _complement_rule(dy: Tensor, x: Tensor, out: Tensor) -> Tensor:
    """Return the gradient if the space that the new columns span turns as little as it can."""
    inner = product(adjoint(out), dy)
    if not is_transposing():
        turn = subtract(inner, adjoint(inner))
        every = Tensor(devices.arrays_like(x).ones((1, 1), bool))
        checked = {"name": "complete_basis", "phase": True}
        turn = apply(_check_coincident, (turn, every, dy), checked)
        inner = multiply(add(add(inner, adjoint(inner)), turn), 0.5)
    outside = subtract(dy, product(out, inner))
    inverse = inv(product(adjoint(x), x))
    return negative(product(out, product(product(adjoint(outside), x), inverse)))


_complement = of_matrices(
    "complement",
    _run_complement,
    _complement_rule,
    _complement_shape,
    samples=(np.linalg.qr(_TALL)[0],),
    analytic=False,
)


def complete_basis(x: Any) -> Tensor:
    """Return matrices with orthonormal columns, completed by more of them to square ones."""
    x = matrices("complete_basis", x)
    if x._data.shape[-1] >= x._data.shape[-2]:
        return x
    return concatenate([x, apply(_complement, (x,), {})], -1)


def _run_qr(x: np.ndarray) -> np.ndarray:
    return np.concatenate(np.linalg.qr(x), -2)


def _qr_rule(dy: Tensor, out: Tensor, shape: tuple[int, ...]) -> Tensor:
    height, width = shape[-2:]
    basis, d_basis = rows(out, 0, height), rows(dy, 0, height)
    triangle, d_triangle = rows(out, height), rows(dy, height)
    inner = subtract(product(d_triangle, adjoint(triangle)), product(adjoint(basis), d_basis))
    inner = band(inner, 0, None)
    halves = np.ones((width, width)) - 0.5 * np.eye(width)
    inner = multiply(add(inner, adjoint(inner)), halves.astype(real_dtype(out.dtype)))
    whole = add(d_basis, product(basis, inner))
    return adjoint(_apply_triangular(triangle, adjoint(whole), False))


_qr = of_matrices(
    "qr",
    _run_qr,
    _qr_rule,
    lambda shape: (*shape[:-2], shape[-2] + shape[-1], shape[-1]),
    samples=(MATRIX, _TALL, STACK),
    analytic=False,
)


def qr(x: Any, full_matrices: bool = False) -> tuple[Tensor, Tensor]:
    """Return Q, with orthonormal columns, and the upper triangular R of matrices ``x = Q R``.

    `x` has shape (..., m, n), and k is the smaller of m and n: Q is (..., m, k), R (..., k, n);
    with `full_matrices` (..., m, m) and (..., m, n). The derivative needs the first k columns to be
    independent, otherwise it raises errors.MatrixError. Integers become float64.
    """
    x = matrices("qr", x)
    height, width = x._data.shape[-2:]
    size = min(height, width)
    found = apply(_qr, (columns(x, 0, size) if width > height else x,), {})
    basis, triangle = rows(found, 0, height), rows(found, height)
    if width > height:
        rest = product(adjoint(basis), columns(x, size))
        triangle = concatenate([triangle, rest], -1)
    if full_matrices and height > width:
        basis = complete_basis(basis)
        below = np.zeros((*triangle._data.shape[:-2], height - width, width), triangle.dtype)
        triangle = concatenate([triangle, Tensor(below)], -2)
    return basis, triangle
