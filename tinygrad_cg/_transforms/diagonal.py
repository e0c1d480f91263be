"""Batches in which each element is zero in all examples but one, kept without these zeros.

The unit vectors of a Jacobian are such a batch: a matrix with ones on its diagonal. An elementwise
operation that is linear in the batch scales the diagonal, an operation that moves elements moves
it, and a product with a matrix scales rows of the matrix. So gradient rules compute one number per
element, and zeros are added only where an operation needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.runtime import promotion
from tinygrad_cg_kernels.runtime.memory import empty

from .._core.devices import on_device_of, to_current
from .._core.levels import state
from .._core.primitive import OPS, Primitive, apply
from .._core.record import mark_expired
from .._core.tensor import Tensor
from .._ops.comparison import equal
from .._ops.define import reduced_shape
from .._ops.elementwise import add, multiply, negative, where
from .._ops.shape import expand_dims, reshape, swap_last


class Diagonal(NamedTuple):
    """The elements of a batched tensor that are not zero, at most one at each position.

    `rows` holds the example of each element, in an array that broadcasts to the shape of `values`;
    -1 stands for no example. If `rows` is None, element k in row-major order belongs to example k.
    """

    values: Tensor
    rows: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of one example."""
        return tuple(self.values._data.shape)

    @property
    def positions(self) -> np.ndarray:
        """Return `rows` as an array."""
        if self.rows is not None:
            return self.rows
        return np.arange(prod(self.shape), dtype=np.int32).reshape(self.shape)

    def dense(self, size: int) -> Tensor:
        """Return all examples along a first axis, zeros included."""
        shape, count = self.shape, prod(self.shape)
        flat = reshape(self.values, (count,))
        if self.rows is None:
            result = _scatter(flat, (size, size), (np.arange(size),) * 2)
        else:  # in two dimensions, which fuse best
            rows = np.broadcast_to(self.rows, shape).reshape(count)
            examples = np.arange(size, dtype=np.int32).reshape(size, 1)
            with on_device_of(flat):
                ours = equal(Tensor(to_current(rows)), Tensor(to_current(examples)))
            result = where(ours, flat, 0)
        return reshape(result, (size, *shape))


Sum = tuple[Diagonal, ...]
"""A batched tensor as a sum, of diagonals at different positions."""
MAX_TERMS = 8  # of a sum; with more it is computed with its zeros
MIN_EXAMPLES = 350  # with fewer examples, computing the zeros as well is faster


def dense(terms: Sum, size: int) -> Tensor:
    """Return all examples of a batched tensor along a first axis, zeros included."""
    if state.frame is None and all(type(term.values._data) is np.ndarray for term in terms):
        return _dense_unrecorded(terms, size)
    total = terms[0].dense(size)
    for term in terms[1:]:
        total = add(total, term.dense(size))
    return total


def _dense_unrecorded(terms: Sum, size: int) -> Tensor:
    """Do what `dense` does in one pass, where no level records it."""
    shape, count = terms[0].shape, prod(terms[0].shape)
    result = empty((size, count), terms[0].values._data.dtype)
    result.fill(0)
    for values, rows in terms:
        flat = values._data.reshape(count)
        if rows is None:
            result.reshape(-1)[:: size + 1] += flat
            continue
        rows = np.broadcast_to(rows, shape).reshape(count)
        positions = np.flatnonzero(rows >= 0)
        result[rows[positions], positions] += flat[positions]
    out = Tensor(result.reshape(size, *shape))
    mark_expired([term.values for term in terms], out)
    return out


def run(primitive: Primitive, inputs: Sequence, params: dict, size: int) -> Sum | Tensor | None:
    """Return the result of an operation, or None if it needs the zeros.

    Each of `inputs` is a sum of diagonals, or a tensor that is the same for all examples. The
    result is a sum of diagonals or the tensor of all examples.
    """
    rule = _RULES.get(primitive.name)
    if rule is None:
        return None
    terms = next(operand for operand in inputs if type(operand) is tuple)
    with on_device_of(terms[0].values):
        return rule(primitive, inputs, params, size)


# Elementwise ---------------------------------------------------------------------------------


def _scale(primitive: Primitive, inputs: Sequence, params: dict, size: int) -> Sum | None:
    """Run an operation that is linear in the one operand that is a sum."""
    position = next(i for i, operand in enumerate(inputs) if type(operand) is tuple)
    name, rest = primitive.name, [operand for operand in inputs if type(operand) is not tuple]
    if len(rest) < len(inputs) - 1 or position not in _LINEAR_IN[name]:
        return None
    if name == "where" and not _is_zero(inputs[3 - position]):
        return None
    shape = inputs[position][0].shape
    if promotion.broadcast_shapes(shape, *[operand._data.shape for operand in rest]) != shape:
        return None  # the result would have more elements, each with its zeros

    def scaled(term: Diagonal) -> Diagonal:
        operands = tuple([term.values if i == position else x for i, x in enumerate(inputs)])
        return Diagonal(apply(primitive, operands, params), term.rows)

    return tuple(map(scaled, inputs[position]))


def _is_zero(tensor: Tensor) -> bool:
    data = tensor._data
    return type(data) is np.ndarray and data.size == 1 and not data.any()


def _add(primitive: Primitive, inputs: Sequence, params: dict, size: int) -> Sum | None:
    ones, others = inputs
    if type(ones) is not tuple or type(others) is not tuple:
        return None
    dtypes = {term.values._data.dtype for term in (*ones, *others)}
    if ones[0].shape != others[0].shape or len(dtypes) > 1:
        return None
    if primitive.name == "subtract":
        others = [Diagonal(negative(values), rows) for values, rows in others]
    terms = list(ones)
    for other in others:
        for i, term in enumerate(terms):
            total = _together(term, other, size)
            if total is not None:
                terms[i] = total
                break
        else:
            terms.append(other)
    return tuple(terms) if len(terms) <= MAX_TERMS else None


def _together(term: Diagonal, other: Diagonal, size: int) -> Diagonal | None:
    """Return the sum of two diagonals as one diagonal, if their positions agree."""
    if term.rows is None and other.rows is None:
        return Diagonal(add(term.values, other.values))
    first, second = np.broadcast_arrays(term.positions, other.positions)
    if not ((first == second) | (first < 0) | (second < 0)).all():
        return None
    values = [
        where(rows >= 0, term.values, 0) if rows.min(initial=0) < 0 else term.values
        for rows, term in ((first, term), (second, other))
    ]
    rows = np.where(first < 0, second, first)
    total = Diagonal(add(*values))
    if prod(total.shape) == size and np.array_equal(rows, total.positions):
        return total
    return Diagonal(total.values, rows)


# Elements in other positions --------------------------------------------------------------------


def _moving(rows_of: Callable[[Primitive, Diagonal, dict, Tensor], np.ndarray | None]) -> Any:
    """Return the rule of an operation that moves elements; `rows_of` moves their examples."""

    def run(primitive: Primitive, inputs: Sequence, params: dict, size: int) -> Sum:
        def moved(term: Diagonal) -> Diagonal:
            values = apply(primitive, (term.values,), params)
            return Diagonal(values, rows_of(primitive, term, params, values))

        return tuple(map(moved, inputs[0]))

    return run


def _reshaped(_: Any, term: Diagonal, params: dict, values: Tensor) -> np.ndarray | None:
    if term.rows is None:
        return None
    return np.broadcast_to(term.rows, term.shape).reshape(values._data.shape)


def _moved(primitive: Primitive, term: Diagonal, params: dict, _: Tensor) -> np.ndarray:
    return primitive.run(np.broadcast_to(term.positions, term.shape), **params)


def _put_at(_: Primitive, term: Diagonal, params: dict, values: Tensor) -> np.ndarray:
    rows = np.full(params["shape"], -1, np.int32)
    rows[params["key"]] = term.positions
    return rows


def _put(primitive: Primitive, inputs: Sequence, params: dict, size: int) -> Sum | None:
    """Write elements into zeros; no two have the same position."""
    if any(isinstance(part, np.ndarray) for part in params["key"]):
        return None
    return _moving(_put_at)(primitive, inputs, params, size)


# Sums and products ---------------------------------------------------------------------------


def _reduce(primitive: Primitive, inputs: Sequence, params: dict, size: int) -> Any:
    """Add up elements of one example, or all elements of all examples."""
    (terms,) = inputs
    axis, keepdims = params["axis"], params["keepdims"]
    shape = terms[0].shape
    all_rows = [_of_rank(term.positions, len(shape)) for term in terms]
    if all(rows.shape[i] == 1 for rows in all_rows for i in axis):
        pairs = zip(terms, all_rows, strict=True)
        return tuple(
            Diagonal(
                apply(primitive, (term.values,), params),
                rows.reshape(reduced_shape(rows.shape, axis, keepdims)),
            )
            for term, rows in pairs
        )
    if primitive.name == "sum" and len(axis) == len(shape) and _is_full(terms):
        return reshape(terms[0].values, (size, *reduced_shape(shape, axis, keepdims)))
    return None


def _of_rank(rows: np.ndarray, rank: int) -> np.ndarray:
    return rows.reshape((1,) * (rank - rows.ndim) + rows.shape)


def _is_full(terms: Sum) -> bool:
    return len(terms) == 1 and terms[0].rows is None


def _multiply(primitive: Primitive, inputs: Sequence, params: dict, size: int) -> Tensor | None:
    """Return a matrix product in which one operand is a sum of diagonals."""
    left, right = inputs
    if _is_sum(left) and _is_sum(right):
        return None
    if primitive.name == "matmul":
        if _is_sum(left):
            return _product_from_left(left, right, size)
        return _product_from_right(left, right, size)
    if _is_sum(left):
        product = _product_from_left(left, expand_dims(right, -1), size)
        return None if product is None else reshape(product, product._data.shape[:-1])
    if len(right[0].shape) != 1 or left._data.ndim != 2 or not _is_full(right):
        return None
    return _scale_rows(right[0].values, swap_last(left))


def _is_sum(operand: Any) -> bool:
    return type(operand) is tuple


def _scale_rows(values: Tensor, matrix: Tensor) -> Tensor:
    """Return a diagonal matrix times a matrix."""
    return multiply(reshape(values, (prod(values._data.shape), 1)), matrix)


def _product_from_left(terms: Sum, matrix: Tensor, size: int) -> Tensor | None:
    """Return a sum times a matrix: each example has one nonzero row."""
    if len(terms[0].shape) != 2 or matrix._data.ndim != 2:
        return None
    rows, columns = terms[0].shape
    if columns == 1:  # an outer product
        return multiply(dense(terms, size), matrix)
    if not _is_full(terms):
        return None
    width = matrix._data.shape[1]
    if rows == 1:
        return reshape(_scale_rows(terms[0].values, matrix), (size, 1, width))
    products = multiply(expand_dims(terms[0].values, 2), matrix)
    positions = np.arange(size), np.repeat(np.arange(rows), columns)
    return _scatter(reshape(products, (size, width)), (size, rows, width), positions)


def _product_from_right(matrix: Tensor, terms: Sum, size: int) -> Tensor | None:
    """Return a matrix times a sum: each example has one nonzero column."""
    if len(terms[0].shape) != 2 or matrix._data.ndim != 2:
        return None
    rows, columns = terms[0].shape
    if rows == 1:
        return multiply(matrix, dense(terms, size))
    if not _is_full(terms):
        return None
    height = matrix._data.shape[0]
    if columns == 1:
        products = _scale_rows(terms[0].values, swap_last(matrix))
        return reshape(products, (size, height, 1))
    products = multiply(expand_dims(terms[0].values, 2), expand_dims(swap_last(matrix), 1))
    positions = *np.ogrid[:size, :height], np.tile(np.arange(columns), rows)[:, None]
    return _scatter(reshape(products, (size, height)), (size, height, columns), positions)


def _scatter(values: Tensor, shape: tuple[int, ...], key: tuple[np.ndarray, ...]) -> Tensor:
    """Return zeros with `values` at distinct positions."""
    return apply(OPS["getitem_adjoint"], (values,), {"shape": shape, "key": key})


_LINEAR_IN = {
    **dict.fromkeys(("multiply", "multiply_tangent", "multiply_upstream"), (0, 1)),
    **dict.fromkeys(("divide", "divide_upstream", "divide_unbounded"), (0,)),
    **dict.fromkeys(("cast", "conj", "imag", "identity", "negative", "real"), (0,)),
    "optimization_barrier": (0,),
    "where": (1, 2),
    "unless_masked": (2,),
}
"""Operations that give zero where one of these operands is zero, whatever the others are."""

_RULES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_LINEAR_IN, _scale),
    **dict.fromkeys(("add", "subtract"), _add),
    **dict.fromkeys(("reshape", "expand_dims", "squeeze"), _moving(_reshaped)),
    **dict.fromkeys(("getitem", "transpose"), _moving(_moved)),
    "broadcast_to": _moving(lambda _, term, *__: term.positions),
    "getitem_adjoint": _put,
    **dict.fromkeys(("sum", "mean"), _reduce),
    **dict.fromkeys(("matmul", "matvec"), _multiply),
}
