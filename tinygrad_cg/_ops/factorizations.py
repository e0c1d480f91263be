"""Spectral factorizations by LAPACK: eigenvalues, singular values, QR and LU.

An operation that computes several factors is one record, which returns them as one matrix, one
below the other, so that their gradients arrive together (values have their own, `values_of`). The
rules are those of M. Giles, "An extended collection of matrix derivative results" (2008), and S.
Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions" (2010); for complex
matrices K. Schreiber et al. and PyTorch's documentation describe which functions of eigenvectors
have a derivative.

Eigenvectors of equal eigenvalues are any basis of the space that they span. A derivative by them
exists only where the function does not depend on that choice, and then the terms between them are
0 unless it also depends on the eigenvalues: `_check_coincident` warns where those terms are
asked for. Eigenvalues alone need none of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import devices
from .._core.levels import is_transposing
from .._core.tensor import Aval, Tensor
from ..errors import DerivativeWarning, warn
from .comparison import equal, less_equal
from .complex import real
from .decompositions import hermitian, inv, triangular
from .define import Case, operation, public
from .elementwise import absolute, add, divide, multiply, negative, subtract, where
from .matrices import (
    MATRIX,
    NOT_SQUARE,
    POSITIVE,
    STACK,
    adjoint,
    band,
    columns,
    copied_aval,
    copy_of,
    largest,
    matrices,
    of_matrices,
    product,
    real_dtype,
    rows,
    square_matrices,
    tolerance,
)
from .reductions import reduce_max
from .shape import concatenate, squeeze, stop_gradient, swap_last
from .spectral import for_vectors, gradient_by_values
from .validation import broadcast_shapes

_SYMMETRIC = POSITIVE - 1.5 * np.eye(3)
_TALL = np.array([[1.0, 0.5], [-0.25, 2.0], [0.75, -1.0]])
_ONE = np.ones((1, 1), bool)
_WIDE = np.stack([_TALL.T, 1.5 - _TALL.T])


# Equal eigenvalues -----------------------------------------------------------------------------


def coincide(values: Tensor, sums: bool = False) -> Tensor:
    """Return where numbers in a row, or one and another's negative if `sums`, are equal."""
    values, size = stop_gradient(values), values._data.shape[-1]
    if not size:
        return equal(values, swap_last(values))
    distances = (add if sums else subtract)(values, swap_last(values))
    scale = reduce_max(absolute(values), -1, True)
    return less_equal(absolute(distances), multiply(scale, tolerance(values.dtype, size)))


def _run_check(
    x: np.ndarray, close: np.ndarray, like: np.ndarray, name: str, phase: bool
) -> np.ndarray:
    """Return `x`; warn if it is not 0 where values are `close`, up to the rounding of `like`."""
    has_phase = phase and x.dtype.kind == "c"
    size = close.shape[-1]
    if not has_phase and size == x.shape[-1] and (close.sum((-1, -2)) <= size).all():
        return copy_of(x, close, like)  # each equals itself alone
    close = close & ~devices.library_of(x).eye(x.shape[-1], dtype=bool)
    wrong = np.where(close, np.abs(x), 0)
    if has_phase:
        turns = np.abs(np.einsum("...ii->...i", x).imag)
        wrong = np.concatenate([wrong, turns[..., None, :]], -2)
    scale = largest(np.abs(like), (-1, -2), True)
    if x.dtype.kind in "fc" and (wrong > 100 * tolerance(x.dtype, x.shape[-1]) * scale).any():
        warn(
            f"{name}: the gradient with respect to eigenvectors of equal eigenvalues (singular "
            "vectors of equal singular values, the phase of a complex vector) is set to 0. This is "
            "right only if the result depends only on the space that these vectors span. For "
            "functions of a matrix use expm, logm, sqrtm, inv, pinv",
            DerivativeWarning,
        )
    return copy_of(x, close, like)


_check_coincident = operation(
    "check_coincident",
    _run_check,
    copied_aval,
    (lambda dy: dy, None, None),
    inputs=("x", "close", "like"),
    kind="contraction",
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
    lambda x, close, name, phase: copy_of(x, close),
    copied_aval,
    (
        lambda dy, close, name, phase: _check_coincident(dy, close, dy, name=name, phase=phase),
        None,
    ),
    inputs=("x", "close"),
    kind="contraction",
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
        quotients = where(close, 0, divide(x, where(close, 1, gaps)))
        return _check_tangent(quotients, close, **checked)
    x = _check_coincident(x, close, like, **checked)
    return where(close, 0, divide(x, where(close, 1, gaps)))


# Hermitian matrices ----------------------------------------------------------------------------


def _stack_rows(values: np.ndarray, *blocks: np.ndarray) -> np.ndarray:
    row = values[..., None, :].astype(blocks[0].dtype)
    return np.concatenate([row, *blocks], -2)


def _eigh_rule(dy: Tensor, out: Tensor) -> Tensor:
    values, vectors = real(rows(out, 0, 1)), rows(out, 1)
    close = coincide(values)
    inner = product(adjoint(vectors), rows(dy, 1))
    gaps = subtract(values, swap_last(values))
    inner = over_gaps(inner, gaps, close, rows(dy, 1), "eigh")
    result = product(product(vectors, inner), adjoint(vectors))
    result = add(result, _by_values(vectors, real(rows(dy, 0, 1)), vectors))
    return multiply(add(result, adjoint(result)), 0.5)


def _by_values(left: Tensor, slopes: Tensor, right: Tensor) -> Tensor:
    """Return left diag(slopes) adjoint(right)."""
    return product(multiply(left, slopes), adjoint(right))


def _values_rule(dy: Tensor, factors: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
    left, right = rows(factors, 1, 1 + shape[-2]), rows(factors, 1 + shape[-2])
    if name == "svd":
        return _by_values(left, dy, right)
    if name == "eig":
        return _by_values(adjoint(inv(left)), dy, left)
    result = _by_values(left, dy, left)
    return multiply(add(result, adjoint(result)), 0.5)


_values_of_factors = operation(
    "values_of_factors",
    lambda x, matrix, factors, name: copy_of(x, matrix, factors),
    lambda x, matrix, factors, name: copied_aval(x, matrix, factors),
    (None, _values_rule, None),
    inputs=("x", "matrix", "factors"),
    kind="contraction",
    core=(2, 2, 2),
    samples=[Case(((1, 1), (1, 1), (2, 1)), {"name": "eigh"}, dict.fromkeys(range(3), _ONE))],
    analytic=False,
)


def values_of(x: Tensor, factors: Tensor, name: str) -> Tensor:
    """Return the values of `x`, the first row of `factors`, with a gradient of their own.

    So the rule of the vectors runs only if these have an upstream gradient.
    """
    row = rows(factors, 0, 1)
    row = row if name == "eig" else real(row)
    return squeeze(_values_of_factors(row, x, factors, name=name), -2)


_eigh = of_matrices(
    "eigh",
    lambda x: _stack_rows(*np.linalg.eigh(hermitian(x))),
    _eigh_rule,
    lambda shape: (*shape[:-2], shape[-2] + 1, shape[-1]),
    samples=(_SYMMETRIC[0], _SYMMETRIC),
    analytic=False,
)


def _eigvalsh_rule(dy: Tensor, x: Tensor, out: Tensor) -> Tensor:
    factors = _eigh(for_vectors(x))
    values, vectors = real(rows(factors, 0, 1)), rows(factors, 1)
    return gradient_by_values("eigvalsh", x, out, dy, vectors, values, vectors)


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

    `x` has shape (..., n, n); the mean of its two triangles is used. The values (..., n) are real;
    the vectors are the columns of (..., n, n). Integers become float64. With respect to vectors of
    equal eigenvalues the derivative is set to 0, with an errors.DerivativeWarning. Raises
    InvalidArgumentError for matrices that are not square.
    """
    x = square_matrices("eigh", x)
    result = _eigh(x)
    return values_of(x, result, "eigh"), rows(result, 1)


@public(_eigvalsh)
def eigvalsh(x: Any) -> Tensor:
    """Return the eigenvalues, ascending, of symmetric or Hermitian matrices; see `eigh`.

    For functions that do not depend on the order of the values, first and second derivatives are
    right at equal values, too. An errors.DerivativeWarning reports missing terms: at equal values
    in third derivatives, in derivatives of other functions, and in a tape around forward mode.
    """
    return _eigvalsh(square_matrices("eigvalsh", x))


# Singular values -------------------------------------------------------------------------------


def _run_svd(x: np.ndarray) -> np.ndarray:
    left, values, right = np.linalg.svd(x, full_matrices=False)
    return _stack_rows(values, left, np.swapaxes(right, -1, -2).conj())


def _svd_rule(dy: Tensor, out: Tensor, shape: tuple[int, ...]) -> Tensor:
    height, width = shape[-2:]
    values, d_values = real(rows(out, 0, 1)), real(rows(dy, 0, 1))
    left, d_left = rows(out, 1, 1 + height), rows(dy, 1, 1 + height)
    right, d_right = rows(out, 1 + height), rows(dy, 1 + height)
    first, second = product(adjoint(left), d_left), product(adjoint(right), d_right)
    same = coincide(values)
    zero = coincide(values, sums=True)
    column = swap_last(values)
    distances, sums = subtract(values, column), add(values, column)
    both = over_gaps(add(first, second), distances, same, rows(dy, 1), "svd")
    other = over_gaps(subtract(first, second), sums, zero, rows(dy, 1), "svd", False)
    inner = multiply(add(add(both, adjoint(both)), subtract(other, adjoint(other))), 0.5)
    result = product(product(left, inner), adjoint(right))
    result = add(result, _by_values(left, d_values, right))
    if height > width:
        outside = subtract(d_left, product(left, first))
        result = add(result, product(_over_values(outside, values), adjoint(right)))
    if width > height:
        outside = subtract(d_right, product(right, second))
        result = add(result, product(left, adjoint(_over_values(outside, values))))
    return result


def _over_values(x: Tensor, values: Tensor) -> Tensor:
    """Return columns divided by singular values; 0 by 0 is 0."""
    nothing = np.zeros((), x.dtype)
    empty = _vanish(x, values)
    return where(empty, nothing, divide(x, where(empty, 1, values)))


def _run_vanish(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    small = tolerance(values.dtype, values.shape[-1])
    length = np.sqrt((np.abs(x) ** 2).sum(-2, keepdims=True))
    return (values <= small * largest(values, -1, True)) & (
        length <= 100 * small * largest(length, -1, True)
    )


_vanish = operation(
    "vanish",
    lambda x, y: _run_vanish(
        *(array.astype(np.result_type(array, np.float32)) for array in (x, y))
    ),
    lambda x, y: Aval(
        (*broadcast_shapes("vanish", x.shape[:-2], y.shape[:-2]), 1, x.shape[-1]),
        np.dtype(np.bool_),
    ),
    inputs=("x", "y"),
    kind="contraction",
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
    lambda shape: (*shape[:-2], 1 + shape[-2] + shape[-1], min(shape[-2:])),
    samples=(MATRIX, _TALL, _WIDE),
    analytic=False,
)


def _svdvals_rule(dy: Tensor, x: Tensor, out: Tensor, shape: tuple[int, ...]) -> Tensor:
    factors = _svd(for_vectors(x))
    left, right = rows(factors, 1, 1 + shape[-2]), rows(factors, 1 + shape[-2])
    return gradient_by_values("svdvals", x, out, dy, left, real(rows(factors, 0, 1)), right)


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
    """Return U, the singular values s, descending, and V of matrices ``x = U diag(s) adjoint(V)``.

    `x` has shape (..., m, n), and k is the smaller of m and n: U is (..., m, k), s (..., k) and V
    (..., n, k), with orthonormal columns; with `full_matrices` these are completed to square
    matrices. Integers become float64. The derivative by vectors of equal values is taken as 0, with
    an errors.DerivativeWarning where it is asked for, as is that by which columns complete a basis.
    Raises InvalidArgumentError for fewer than two dimensions.
    """
    x = matrices("svd", x)
    height = x._data.shape[-2]
    result = _svd(x)
    left, right = rows(result, 1, 1 + height), rows(result, 1 + height)
    if full_matrices:
        left, right = complete_basis(left), complete_basis(right)
    return left, values_of(x, result, "svd"), right


@public(_svdvals)
def svdvals(x: Any) -> Tensor:
    """Return the singular values, descending, of matrices (..., m, n); see `svd`."""
    return _svdvals(matrices("svdvals", x))


# Orthogonal factors ----------------------------------------------------------------------------


def _run_complement(x: np.ndarray) -> np.ndarray:
    others = np.linalg.qr(x, "complete")[0][..., x.shape[-1] :]
    return devices.library_of(x).ascontiguousarray(others)


def _complement_rule(dy: Tensor, x: Tensor, out: Tensor) -> Tensor:
    """Return the gradient if the space that the new columns span turns as little as it can."""
    inner = product(adjoint(out), dy)
    if not is_transposing():
        turn = subtract(inner, adjoint(inner))
        every = Tensor(devices.library_of(devices.data_of(x)).ones((1, 1), bool))
        checked = {"name": "complete_basis", "phase": True}
        turn = _check_coincident(turn, every, dy, **checked)
        inner = multiply(add(add(inner, adjoint(inner)), turn), 0.5)
    outside = subtract(dy, product(out, inner))
    inverse = inv(product(adjoint(x), x))
    return negative(product(out, product(product(adjoint(outside), x), inverse)))


_complement = of_matrices(
    "complement",
    _run_complement,
    _complement_rule,
    lambda shape: (*shape[:-1], shape[-2] - shape[-1]),
    samples=(np.linalg.qr(_TALL)[0],),
    analytic=False,
)


def complete_basis(x: Any) -> Tensor:
    """Return matrices with orthonormal columns, completed by more of them to square ones."""
    x = matrices("complete_basis", x)
    if x._data.shape[-1] >= x._data.shape[-2]:
        return x
    return concatenate([x, _complement(x)], -1)


def _qr_rule(dy: Tensor, out: Tensor, shape: tuple[int, ...]) -> Tensor:
    height, width = shape[-2:]
    basis, d_basis = rows(out, 0, height), rows(dy, 0, height)
    triangle, d_triangle = rows(out, height), rows(dy, height)
    inner = subtract(product(d_triangle, adjoint(triangle)), product(adjoint(basis), d_basis))
    inner = band(inner, 0, None)
    halves = np.ones((width, width)) - 0.5 * np.eye(width)
    inner = multiply(add(inner, adjoint(inner)), halves.astype(real_dtype(out.dtype)))
    whole = add(d_basis, product(basis, inner))
    return adjoint(triangular(triangle, adjoint(whole), lower=False))


_qr = of_matrices(
    "qr",
    lambda x: np.concatenate(np.linalg.qr(x), -2),
    _qr_rule,
    lambda shape: (*shape[:-2], shape[-2] + shape[-1], shape[-1]),
    samples=(MATRIX, _TALL, STACK),
    analytic=False,
)


def qr(x: Any, full_matrices: bool = False) -> tuple[Tensor, Tensor]:
    """Return Q, with orthonormal columns, and the upper triangular R of matrices ``x = Q R``."""
    x = matrices("qr", x)
    height, width = x._data.shape[-2:]
    size = min(height, width)
    result = _qr(columns(x, 0, size) if width > height else x)
    basis, triangle = rows(result, 0, height), rows(result, height)
    if width > height:
        rest = product(adjoint(basis), columns(x, size))
        triangle = concatenate([triangle, rest], -1)
    if full_matrices and height > width:
        basis = complete_basis(basis)
        below = np.zeros((*triangle._data.shape[:-2], height - width, width), triangle.dtype)
        triangle = concatenate([triangle, Tensor(below)], -2)
    return basis, triangle
