"""Linear systems whose matrices have few diagonals, or are given by their LU factors.

Elimination goes row by row: on Python's numbers for few systems, which are quicker there than
arrays of one element, and on arrays of NumPy for many.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime import promotion

from .._core import devices
from .._core.annotations import Axes, TensorLike
from .._core.conversion import convert, convert_operands, is_tensor
from .._core.kinds import is_complex
from .._core.tensor import Tensor
from ..errors import InvalidArgumentError, MatrixError
from .complex import conj, real
from .decompositions import triangular_solve
from .define import Case, Wrong, public
from .diagonals import band_part, matrix_diag, matrix_diag_part, matrix_set_diag
from .elementwise import add, multiply, negative
from .factorizations import eigh, eigvalsh
from .indexing import gather, getitem
from .matrices import matrices, of_systems, product, result_dtype, square_matrices
from .padding import pad
from .reductions import reduce_sum
from .shape import broadcast_to, cast, expand_dims, squeeze, stack, swap_last
from .sorting import argsort
from .validation import as_choice, as_int, broadcast_shapes, check_shapes

_FEW = 8  # systems


def _size(x: Any) -> Any:
    """Return a measure of size that does not overflow, as LAPACK's cabs1."""
    return abs(x.real) + abs(x.imag)


def _choose(condition: Any, x: Any, y: Any) -> Any:
    return x if condition else y


def _by_rows(solve: Callable[..., list]) -> Callable[..., np.ndarray]:
    """Return a kernel on stacks of coefficients (c, m) and right sides (m, k).

    `solve` takes lists: for each of c a list of m coefficients, and the m rows of the right side.
    It returns the rows of the solution. Each entry is for one system, or one row for each system:
    that is for more than a few systems, and for arrays of a GPU.
    """

    def run(coefficients: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        lead = promotion.broadcast_shapes(coefficients.shape[:-2], rhs.shape[:-2])
        bands, (size, width) = coefficients.shape[-2], rhs.shape[-2:]
        kind = np.result_type(coefficients.dtype, rhs.dtype, np.float64)
        left = np.broadcast_to(coefficients, (*lead, bands, size)).reshape(-1, bands, size)
        right = np.broadcast_to(rhs, (*lead, size, width)).reshape(-1, size, width)
        left, right = left.astype(kind), right.astype(kind)
        out = np.empty_like(right, order="C")
        with np.errstate(all="ignore"):
            if not out.size:
                pass
            elif len(right) > _FEW or type(right) is not np.ndarray:
                lists = [[left[:, c, i, None] for i in range(size)] for c in range(bands)]
                solution = solve(lists, [right[:, i] for i in range(size)], np.where)
                out[...] = np.stack(solution, 1)
            else:
                for row, lists, rows in zip(out, left.tolist(), right, strict=True):
                    flat = rows[:, 0].tolist() if width == 1 else builtins.list(rows)
                    solution = solve(lists, flat, _choose)
                    row[...] = np.reshape(solution, row.shape)
        return out.reshape(*lead, size, width).astype(result_dtype(coefficients.dtype, rhs.dtype))

    return run


def _divide(x: Any, pivot: Any) -> Any:
    """Return the quotient; LinAlgError for a pivot that is 0."""
    if not np.all(pivot):
        raise np.linalg.LinAlgError("Singular matrix")
    return x / pivot


def _eliminate(coefficients: list, rhs: list, choose: Callable) -> list:
    """Return the solutions of tridiagonal systems by elimination with partial pivoting.

    The rows of `coefficients` are the diagonals above, on and below the main one.
    """
    above, main, below = ([*row] for row in coefficients)
    last = len(main) - 1
    second = [main[0] * 0] * (last + 1)  # the diagonal that swapped rows fill
    rhs, above[last] = [*rhs], main[0] * 0
    for i in range(last):
        low, high = below[i + 1], main[i]
        swap = _size(low) > _size(high)
        pivot, factor = choose(swap, low, high), choose(swap, high, low)
        first, other = choose(swap, main[i + 1], above[i]), choose(swap, above[i], main[i + 1])
        beyond, rest = choose(swap, above[i + 1], 0), choose(swap, 0, above[i + 1])
        top, bottom = choose(swap, rhs[i + 1], rhs[i]), choose(swap, rhs[i], rhs[i + 1])
        factor = _divide(factor, pivot)
        main[i], above[i], second[i], rhs[i] = pivot, first, beyond, top
        main[i + 1] = other - factor * first
        above[i + 1] = rest - factor * beyond
        rhs[i + 1] = bottom - factor * top
    for i in range(last, -1, -1):
        total = rhs[i]
        if i < last:
            total = total - above[i] * rhs[i + 1]
        if i < last - 1:
            total = total - second[i] * rhs[i + 2]
        rhs[i] = _divide(total, main[i])
    return rhs


def _substitute(coefficients: list, rhs: list, choose: Callable) -> list:
    """Return the solutions of lower triangular systems: row k of `coefficients` is k below."""
    main, *others = coefficients
    solution: list = []
    for i, total in enumerate(rhs):
        for k, band in enumerate(others[:i], 1):
            total = total - band[i] * solution[i - k]
        solution.append(_divide(total, main[i]))
    return solution


def _rows_moved(x: Tensor, steps: int) -> Tensor:
    """Return matrices with their rows `steps` further down (up if negative), and zeros there."""
    size = x._data.shape[-2]
    steps = max(-size, min(steps, size))
    kept = slice(None, size - steps) if steps > 0 else slice(-steps, None)
    none = [(0, 0)] * (x._data.ndim - 2)
    room = (max(steps, 0), max(-steps, 0))
    return pad(getitem(x, (Ellipsis, kept, slice(None))), [*none, room, (0, 0)])


def _moved(x: Tensor, steps: int) -> Tensor:
    """Return `_rows_moved` of the elements of the last axis."""
    return squeeze(_rows_moved(expand_dims(x, -1), steps), -1)


def _band(bands: Tensor, index: int) -> Tensor:
    return getitem(bands, (Ellipsis, index, slice(None)))


def _slopes(dy: Tensor, solution: Tensor, offsets: list[int]) -> Tensor:
    """Return the gradient by the diagonals at `offsets` of ``rhs - A x``, from that by `rhs`."""
    rows = [reduce_sum(multiply(dy, _rows_moved(solution, -offset)), -1) for offset in offsets]
    return negative(stack(rows, -2))


def _transposed(bands: Tensor) -> Tensor:
    """Return the three diagonals of the transposes."""
    above, main, below = (_band(bands, i) for i in range(3))
    return stack([_moved(below, -1), main, _moved(above, 1)], -2)


def _transpose_lower(bands: Tensor) -> Tensor:
    """Return the transposes of lower triangular matrices, with rows and columns in reverse order.

    These are lower triangular, too.
    """
    turned = getitem(bands, (Ellipsis, slice(None, None, -1)))
    return stack([_moved(_band(turned, k), k) for k in range(bands._data.shape[-2])], -2)


def _upside_down(x: Tensor) -> Tensor:
    return getitem(x, (Ellipsis, slice(None, None, -1), slice(None)))


def _solve_transpose(bands: Tensor, rhs: Tensor) -> Tensor:
    return _upside_down(_lower_banded(_transpose_lower(bands), _upside_down(rhs)))


_THREE = np.array([[1.0, -1.0, 1.25, 7.0], [2.0, 1.1, 1.5, -2.0], [9.0, 1.5, 1.75, 1.5]])
_tridiagonal = of_systems(
    "tridiagonal_solve",
    _by_rows(_eliminate),
    (
        lambda dy, bands, out: _slopes(_tridiagonal(_transposed(bands), dy), out, [1, 0, -1]),
        lambda dy, bands: _tridiagonal(_transposed(bands), dy),
    ),
    inputs=("bands", "rhs"),
    samples=[
        Case(((3, 4), (4, 2)), {}, {0: _THREE}),
        Case(((2, 3, 4), (4, 1)), {}, {0: np.stack([_THREE, 3.5 - _THREE])}),
    ],
    errors=(
        Wrong(MatrixError, "tridiagonal_solve: [Ss]ingular", (np.zeros((3, 2)), np.ones(2))),
        Wrong(InvalidArgumentError, "tridiagonal_solve: rhs must have shape", (_THREE, np.ones(3))),
    ),
)
_lower_banded = of_systems(
    "banded_triangular_solve",
    _by_rows(_substitute),
    (
        lambda dy, bands, out: _slopes(
            _solve_transpose(bands, dy), out, [-k for k in range(bands._data.shape[-2])]
        ),
        lambda dy, bands: _solve_transpose(bands, dy),
    ),
    inputs=("bands", "rhs"),
    samples=[
        Case(((3, 4), (4, 2)), {}, {0: _THREE[::-1]}),
        Case(((2, 2, 4), (4, 1)), {}, {0: np.stack([_THREE[1:], 3.5 - _THREE[:2]])}),
    ],
    errors=(
        Wrong(MatrixError, "banded_triangular_solve: [Ss]ingular", (np.zeros((1, 2)), np.eye(2))),
        Wrong(
            InvalidArgumentError, "banded_tri.*: rhs must have shape", (np.ones((2, 3)), np.eye(2))
        ),
    ),
)


def _three(name: str, diagonals: Any, form: str) -> Tensor:
    """Return the diagonals above, on and below the main one, of one length, one below the other."""
    as_choice(name, "diagonals_format", form, ("compact", "sequence", "matrix"))
    if form == "sequence":
        if is_tensor(diagonals) or len(diagonals) != 3:
            raise InvalidArgumentError(f"{name}: diagonals must be a sequence of 3 tensors")
        parts = convert_operands(tuple(diagonals))
    elif form == "matrix":
        x = square_matrices(name, diagonals)
        ends = (1, 0, -1) if x._data.shape[-1] > 1 else (0, 0, 0)
        parts = [matrix_diag_part(x, k) for k in ends]
    else:
        bands = matrices(name, diagonals)
        check_shapes(name, {"diagonals": (bands, "... 3 m")})
        return bands
    size = parts[1]._data.shape[-1] if parts[1]._data.ndim else -1
    rows = []
    for part, room in zip(parts, ((0, 1), (0, 0), (1, 0)), strict=True):
        length = part._data.shape[-1] if part._data.ndim else -1
        if (
            size < 0
            or length not in (size, size - 1)
            or part._data.shape[:-1] != (parts[1]._data.shape[:-1])
        ):
            shapes = [tuple(part.shape) for part in parts]
            raise InvalidArgumentError(
                f"{name}: diagonals must have shapes (..., m) or, beside the main one, "
                f"(..., m - 1), got {shapes}"
            )
        still = [(0, 0)] * (part._data.ndim - 1)
        rows.append(part if length == size else pad(part, [*still, room]))
    return stack(rows, -2)


def _fit(name: str, bands: Tensor, rhs: Tensor) -> None:
    check_shapes(name, {"rhs": (rhs, "... m k")}, m=bands._data.shape[-1])


@public(_tridiagonal)
def tridiagonal_solve(
    diagonals: Any,
    rhs: TensorLike,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Tensor:
    """Return the solutions x of ``matmul(a, x) = rhs`` for tridiagonal matrices ``a``.

    Modelled on ``tf.linalg.tridiagonal_solve``. `diagonals` are the diagonals above, on and below
    the main one: "compact" is one tensor (..., 3, m), whose elements [0, m - 1] and [2, 0] are
    ignored; a "sequence" is three tensors (..., m), or (..., m - 1) beside the main diagonal; a
    "matrix" is a tensor (..., m, m) with these diagonals. `rhs` is (..., m, k), or (..., m) for one
    column. It always pivots, even without `partial_pivoting`. Integers become float64. Raises
    errors.MatrixError for a singular matrix (`perturb_singular` is not supported),
    InvalidArgumentError for wrong shapes.
    """
    op_name = "tridiagonal_solve"
    if perturb_singular:
        raise InvalidArgumentError(
            f"{op_name}: perturb_singular is not supported, since the result has no derivative: "
            "add a small number to the main diagonal instead"
        )
    bands, y = convert_operands((_three(op_name, diagonals, diagonals_format), rhs))
    column = y._data.ndim == bands._data.ndim - 1
    if column:
        y = expand_dims(y, -1)
    elif transpose_rhs:
        y = swap_last(matrices(op_name, y))
    _fit(op_name, bands, y)
    solution = _tridiagonal(bands, conj(y) if conjugate_rhs else y)
    return squeeze(solution, -1) if column else solution


def tridiagonal_matmul(
    diagonals: Any, rhs: TensorLike, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """Return the products of tridiagonal matrices and matrices `rhs` (..., m, k).

    Modelled on ``tf.linalg.tridiagonal_matmul``; see ``tridiagonal_solve`` for `diagonals` and
    `diagonals_format`.
    """
    op_name = "tridiagonal_matmul"
    bands, y = convert_operands((_three(op_name, diagonals, diagonals_format), rhs))
    _fit(op_name, bands, y)
    terms = [multiply(expand_dims(_band(bands, i), -1), _rows_moved(y, i - 1)) for i in range(3)]
    return add(add(terms[0], terms[1]), terms[2])


@public(_lower_banded)
def banded_triangular_solve(
    bands: Any, rhs: TensorLike, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Return the solutions x of ``matmul(a, x) = rhs`` for triangular ``a`` with few diagonals.

    Modelled on ``tf.linalg.banded_triangular_solve``: `bands` (..., k, m) has, if `lower`, the main
    diagonal and the diagonals below it, aligned right (the first j elements of row j are ignored);
    else the diagonals above it and then the main diagonal, aligned left. `rhs` is (..., m, n).
    `adjoint` solves with the conjugate transposes. Integers become float64. Raises
    errors.MatrixError for a zero on the main diagonal, InvalidArgumentError for wrong shapes.
    """
    op_name = "banded_triangular_solve"
    diagonals, y = convert_operands((bands, rhs))
    diagonals = matrices(op_name, diagonals)
    _fit(op_name, diagonals, y)
    if adjoint:
        diagonals = conj(diagonals)
    solve = _solve_transpose if adjoint else _lower_banded
    if lower:
        return solve(diagonals, y)
    # Rows and columns in reverse order make it lower triangular.
    turned = getitem(diagonals, (Ellipsis, slice(None, None, -1), slice(None, None, -1)))
    return _upside_down(solve(turned, _upside_down(y)))


# Eigenvalues -------------------------------------------------------------------------------------


def eigh_tridiagonal(
    alpha: Any,
    beta: Any,
    eigvals_only: bool = True,
    select: str = "a",
    select_range: Any = None,
    tol: Any = None,
    name: str | None = None,
) -> Tensor | Any:
    """Return the eigenvalues, ascending, of Hermitian matrices of three diagonals.

    Modelled on ``tf.linalg.eigh_tridiagonal``: `alpha` (..., n) is the main diagonal (its real part
    is used), `beta` (..., n - 1) the diagonal above it. Unless `eigvals_only`, the result also has
    eigenvectors, which TensorFlow does not return. `select` is "a" for all, "i" for a range of
    indices `select_range`, or "v", for one matrix, for values in this interval without its lower
    end. LAPACK gets full matrices; see `eigh` for derivatives. Raises InvalidArgumentError for
    sizes that do not fit.
    """
    main, upper = convert_operands((alpha, beta))
    shape = main._data.shape
    if not shape or not shape[-1] or upper._data.shape != (*shape[:-1], shape[-1] - 1):
        raise InvalidArgumentError(
            "eigh_tridiagonal: alpha must have shape (..., n) and beta (..., n - 1), got "
            f"{tuple(shape)} and {tuple(upper.shape)}"
        )
    as_choice("eigh_tridiagonal", "select", select, ("a", "i", "v"))
    x = matrix_diag(cast(real(main), main.dtype) if is_complex(main.dtype) else main)
    if shape[-1] > 1:
        x = add(add(x, matrix_diag(upper, 1)), matrix_diag(conj(upper), -1))
    values, vectors = (eigvalsh(x), None) if eigvals_only else eigh(x)
    if select != "a":
        low, high = np.asarray(select_range).tolist()
        if select == "i":
            low, high = (as_int("eigh_tridiagonal", "select_range", i) for i in (low, high))
            if not 0 <= low <= high < shape[-1]:
                raise InvalidArgumentError(
                    f"eigh_tridiagonal: select_range must be two indices from 0 to {shape[-1] - 1}"
                    f" in order, got {select_range}"
                )
            kept: Any = slice(low, high + 1)
        else:
            if len(shape) != 1:
                raise InvalidArgumentError(
                    "eigh_tridiagonal: select='v' needs a single matrix, since the number of "
                    f"eigenvalues differs; got shape {tuple(shape)}"
                )
            array = values._values()
            kept = np.flatnonzero((array > low) & (array <= high))
        values = getitem(values, (Ellipsis, kept))
        vectors = None if vectors is None else getitem(vectors, (Ellipsis, kept))
    return values if vectors is None else (values, vectors)


# From LU factors ---------------------------------------------------------------------------------


def _factors(name: str, lower_upper: Any, perm: Any) -> tuple[Tensor, Tensor]:
    x, order = square_matrices(name, lower_upper), convert(perm)
    shape = " ".join(map(str, x._data.shape[:-1]))
    check_shapes(name, {"perm, as lu returns it,": (order, shape)})
    return x, order


def _lower(x: Tensor) -> Tensor:
    """Return matrices with ones on the diagonal."""
    return matrix_set_diag(x, np.ones(x._data.shape[:-1], x.dtype))


def lu_reconstruct(
    lower_upper: Any, perm: Axes, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Return the matrices whose ``lu`` is `lower_upper` and `perm`.

    Modelled on ``tf.linalg.lu_reconstruct``.
    """
    x, order = _factors("lu_reconstruct", lower_upper, perm)
    whole = product(_lower(band_part(x, -1, 0)), band_part(x, 0, -1))
    lead = x._data.ndim - 2
    return gather(whole, argsort(order, -1), lead, lead)


def lu_solve(
    lower_upper: Any,
    perm: Axes,
    rhs: TensorLike,
    validate_args: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the solutions x of ``matmul(a, x) = rhs`` from the results of ``lu`` for ``a``.

    Modelled on ``tf.linalg.lu_solve``: `rhs` is (..., m, k), and broadcasts over the leading axes.
    """
    x, order = _factors("lu_solve", lower_upper, perm)
    y = convert_operands((x, rhs))[1]
    check_shapes("lu_solve", {"lower_upper": (x, "... n n"), "rhs": (y, "... n k")})
    lead = broadcast_shapes("lu_solve", x._data.shape[:-2], y._data.shape[:-2])
    order = broadcast_to(order, (*lead, x._data.shape[-1]))
    y = gather(broadcast_to(y, (*lead, *y._data.shape[-2:])), order, len(lead), len(lead))
    return triangular_solve(x, triangular_solve(_lower(x), y), lower=False)


@devices.on_device_of_operands
def lu_matrix_inverse(
    lower_upper: Any, perm: Axes, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Return the inverses of the matrices whose ``lu`` is `lower_upper` and `perm`.

    Modelled on ``tf.linalg.lu_matrix_inverse``.
    """
    x, order = _factors("lu_matrix_inverse", lower_upper, perm)
    return lu_solve(x, order, np.eye(x._data.shape[-1], dtype=result_dtype(x.dtype)))
