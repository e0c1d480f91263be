"""Colourings: which columns, and which rows, of a sparse matrix one product serves."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_cg_kernels.sparse import coloring as kernels

from ..errors import InvalidArgumentError
from .sparsity import SparsityPattern

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)

REVERSE_COST = 1.5
"""The cost of a product with the transposed matrix, in products with the matrix."""
_WORTH = 0.8
"""Another mode is tried if a bound of its cost is less than this part of the cost so far."""
_MAX_STEPS = 3e8  # of the greedy algorithm, for improving a colouring: about a second
_MAX_STEPS_OF_ORDERS = 5e5  # after which no other order is tried
_ROUNDS = 12  # of improving a colouring by orders of its colours
_PATIENCE = 3  # rounds without an improvement
_MIN_PEELED = 1e7  # steps of a star colouring for which vertices of high degree are set apart


class Coloring:
    """Groups of columns and rows: one product for each group gives all entries.

    Parameters
    ----------
    pattern : anything that `SparsityPattern.of` accepts, of shape (m, n).
    columns : integers of shape (n,), or None. Columns of one colour are added up in one product
        with the matrix. A negative number means no colour.
    rows : integers of shape (m,), or None. Rows of one colour are added up in one product with the
        transposed matrix.
    symmetric : whether the matrix is symmetric. Then `columns` are the colours, and the entry
        (i, j) may be read as (j, i).

    Unused colours are dropped, and the others numbered from 0 in their order.

    Attributes ---------- pattern : the `SparsityPattern`. mode : "forward" (columns), "reverse"
    (rows), "both" or "symmetric". columns, rows : int32 arrays of colours, -1 for no colour; None
    if the mode does not use them. count : the number of products.

    Raises InvalidArgumentError unless each entry can be read from a product: it must be the only
    entry of its row among the columns of its colour, or of its column among the rows of its colour.
    Wrong sizes raise InvalidArgumentError, arrays that are not integers TypeError.

    After Gebremedhin, Manne and Pothen, "What color is your Jacobian?" (2005).

    Examples
    --------
    >>> pattern = tf.SparsityPattern.of([[1, 1, 0], [0, 1, 1]])
    >>> tf.Coloring(pattern, columns=[0, 1, 0])
    <Coloring forward, 2 colors for 2 x 3>
    """

    __slots__ = (
        *("_by_rows", "_first_of_rows", "_numbers"),
        *("columns", "count", "mode", "pattern", "rows"),
    )

    def __init__(
        self, pattern: Any, columns: Any = None, rows: Any = None, symmetric: bool = False
    ):
        self.pattern = pattern = SparsityPattern.of(pattern)
        height, width = pattern.shape
        if symmetric and (columns is None or rows is not None):
            raise TypeError("Coloring: a symmetric colouring has columns, and no rows")
        if columns is None and rows is None:
            raise TypeError("Coloring: expected colours of columns or rows, got none")
        self.columns = None if columns is None else _colors("columns", columns, width)
        self.rows = None if rows is None else _colors("rows", rows, height)
        sides = {"forward": self.rows is None, "reverse": self.columns is None, "both": True}
        self.mode = "symmetric" if symmetric else next(name for name in sides if sides[name])
        self._by_rows, self._numbers = self._choose()
        counts = [
            0 if colors is None else int(colors.max(initial=-1)) + 1
            for colors in (self.columns, self.rows)
        ]
        self.count, self._first_of_rows = sum(counts), counts[0]

    def _choose(self) -> tuple[np.ndarray, np.ndarray]:
        """Return whether each entry is read by its row, and the number of its colour.

        Colours that are not needed are dropped.
        """
        pattern, columns = self.pattern, self.columns
        rows = columns if self.mode == "symmetric" else self.rows
        by_columns, by_rows = np.zeros((2, pattern.nnz), bool)
        if columns is not None:
            by_columns = kernels.mark_unique(pattern_rows(pattern), columns + 1).view(bool)
        if rows is not None:
            if self.mode == "symmetric":
                _check_symmetric("Coloring", pattern)
            places = transposed_places(pattern)
            by_rows[places] = kernels.mark_unique(transposed(pattern), rows + 1)
        if columns is None or rows is None:
            colors, ends = (columns, pattern.indices) if rows is None else (rows, pattern.rows())
            assert colors is not None
            self._refuse(by_columns if rows is None else by_rows)
            numbers = colors[ends]
            kept = np.zeros(int(colors.max(initial=-1)) + 1, bool)
            kept[numbers] = True
            if not kept.all() or colors.min(initial=0) < 0:
                _renumber(colors, kept)
                numbers = colors[ends]
            return by_rows, numbers
        self._refuse(by_columns | by_rows)
        marks = _choose_sides(pattern, columns, rows, by_columns, by_rows)
        if columns is rows:  # both sides of the diagonal read the same element
            below = pattern.rows() > pattern.indices
            marks[below] = ~marks[places[below]]
        return marks, np.where(marks, rows[pattern.rows()], columns[pattern.indices])

    def _refuse(self, is_alone: np.ndarray) -> None:
        """Raise an error if an entry is not alone."""
        if is_alone.all():
            return
        k = int(np.argmin(is_alone))
        row = int(np.searchsorted(self.pattern.indptr, k, "right")) - 1
        column = int(self.pattern.indices[k])
        names = {"forward": "column", "reverse": "row"}.get(self.mode, "column and its row")
        raise InvalidArgumentError(
            f"Coloring: the entry ({row}, {column}) cannot be read from a product of mode "
            f"{self.mode!r}: the colour of its {names} is negative, or another entry shares it; "
            "tf.jacobian_coloring and tf.hessian_coloring return valid colourings"
        )

    def places(self, by_rows: bool) -> np.ndarray:
        """Return where each entry is in the products of all colours; -1 if it is not there.

        Product `c` begins at c times its size. It is a product with the matrix, or, if `by_rows`,
        with the transposed matrix.
        """
        pattern, marks, lines = self.pattern, self._by_rows, self.pattern.shape[by_rows]
        dtype = _INT32 if self.count * lines < 2**31 else _INT64
        places = self._numbers.astype(dtype) * dtype.type(lines)
        places += np.where(marks, pattern.indices, pattern.rows()).astype(dtype)
        if self.mode == "both":
            places[marks != by_rows] = -1
        return places

    def products(self) -> np.ndarray:
        """Return the number of the product that each entry is read from, columns before rows."""
        is_later = self._by_rows & (self.mode == "both")
        return self._numbers + self._first_of_rows * is_later

    def __repr__(self) -> str:
        height, width = self.pattern.shape
        noun = "color" if self.count == 1 else "colors"
        return f"<Coloring {self.mode}, {self.count} {noun} for {height} x {width}>"


def pattern_rows(pattern: SparsityPattern) -> tuple[np.ndarray, np.ndarray]:
    """Return `indptr` and `indices`, as the kernels take them."""
    return pattern.indptr, pattern.indices


def transposed(pattern: SparsityPattern) -> tuple[np.ndarray, np.ndarray]:
    """Return `indptr` and `indices` of the transposed pattern."""
    return kernels.transpose(pattern_rows(pattern), pattern.shape[1])[0]


def transposed_places(pattern: SparsityPattern) -> np.ndarray:
    """Return for each entry of the transposed pattern the place of it in the pattern."""
    return kernels.transpose(pattern_rows(pattern), pattern.shape[1], True)[1]


def _colors(name: str, values: Any, count: int) -> np.ndarray:
    """Return colours as a new int32 array, from 0; negative ones become -1."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"Coloring: {name} must be integers, got {array.dtype}")
    if array.shape != (count,):
        raise InvalidArgumentError(
            f"Coloring: {name} must have shape ({count},), got {array.shape}: a colour for each "
            "of the pattern's " + name
        )
    if array.size and (array.max() >= count or array.min() < -1):
        array = np.where(array < 0, -1, np.unique(array, return_inverse=True)[1])
    return array.astype(_INT32)


def _renumber(colors: np.ndarray, kept: np.ndarray) -> None:
    """Number the colours that are kept from 0, in place; others become -1."""
    numbers = np.where(kept, np.cumsum(kept) - 1, -1).astype(_INT32)
    colors[:] = np.append(numbers, _INT32.type(-1))[colors]  # the last one is for -1


def _choose_sides(
    pattern: SparsityPattern,
    columns: np.ndarray,
    rows: np.ndarray,
    by_columns: np.ndarray,
    by_rows: np.ndarray,
) -> np.ndarray:
    """Return whether each entry is read by its row's colour, so that few colours are needed.

    `by_columns` and `by_rows` say what is possible. Colours that some entry has to use come first,
    then those that most of the remaining entries share. Others are dropped, in place.
    """
    is_one = columns is rows
    across, down = columns[pattern.indices], rows[pattern.rows()]
    counts = [int(colors.max(initial=-1)) + 1 for colors in (columns, rows)]
    kept = [np.zeros(count, bool) for count in counts]
    if is_one:
        kept[1] = kept[0]
    kept[0][across[by_columns & ~by_rows]] = True
    kept[1][down[by_rows & ~by_columns]] = True
    both = by_columns & by_rows
    both[both] = ~(kept[0][across[both]] | kept[1][down[both]])
    pairs = across[both].astype(_INT64) * counts[1] + down[both]
    pairs, weights = np.unique(pairs, return_counts=True)
    ends = np.divmod(pairs, max(counts[1], 1))
    while weights.size:
        sums = [np.bincount(end, weights, count) for end, count in zip(ends, counts, strict=True)]
        if is_one:
            sums = [sums[0] + sums[1]] * 2
        best = [int(part.argmax()) for part in sums]
        side = 0 if sums[0][best[0]] * REVERSE_COST >= sums[1][best[1]] else 1
        kept[side][best[side]] = True
        left = ~(kept[0][ends[0]] | kept[1][ends[1]])
        ends, weights = (ends[0][left], ends[1][left]), weights[left]
    marks = ~(by_columns & kept[0][across])
    _renumber(columns, kept[0])
    if not is_one:
        _renumber(rows, kept[1])
    return marks


def _check_symmetric(name: str, pattern: SparsityPattern) -> None:
    height, width = pattern.shape
    if height != width:
        raise InvalidArgumentError(f"{name}: expected a square pattern, got {height} x {width}")
    if not all(map(np.array_equal, transposed(pattern), pattern_rows(pattern))):
        raise InvalidArgumentError(
            f"{name}: expected a symmetric pattern: the entry (i, j) needs the entry (j, i)"
        )


# Algorithms ----------------------------------------------------------------------------------


def jacobian_coloring(pattern: Any, mode: str = "auto", order: str = "best") -> Coloring:
    """Return a colouring of the rows or columns of a pattern, for a Jacobian.

    Parameters
    ----------
    pattern : anything that `SparsityPattern.of` accepts.
    mode : "forward" colours columns, "reverse" rows; "both" colours rows with many entries, and the
        columns of the other rows; "auto" takes the cheapest. A product with the transposed matrix
        counts as 1.5.
    order : the order in which vertices get the first free colour: "natural", "largest_first",
        "smallest_last", "incidence_degree". "best" takes the order with the fewest colours and then
        colours again, grouped by colour, which never needs more colours. For large patterns it
        tries fewer orders.

    Raises ValueError for another mode or order. Two columns have different colours if they share a
    row (a partial distance-2 colouring). After Gebremedhin, Manne and Pothen, "What color is your
    Jacobian?" (2005), and Culberson, "Iterated greedy graph coloring" (1992).

    Examples
    --------
    >>> arrow = np.eye(50) + (np.arange(50) == 0) + (np.arange(50) == 0)[:, None]
    >>> tf.jacobian_coloring(arrow, mode="forward").count, tf.jacobian_coloring(arrow).count
    (50, 3)
    """
    pattern = SparsityPattern.of(pattern)
    check_choice("jacobian_coloring", "mode", mode, ("auto", "forward", "reverse", "both"))
    check_choice("jacobian_coloring", "order", order, ("best", *kernels.ORDERS))
    columns = transposed(pattern)
    widest, tallest = (
        int(np.diff(starts).max(initial=0)) for starts in (pattern.indptr, columns[0])
    )
    long, estimate = _long_rows(pattern, tallest)
    bounds = {"forward": widest, "reverse": tallest * REVERSE_COST}
    if long.any() or mode == "both":
        bounds["both"] = estimate
    best: Coloring | None = None
    for name in sorted(bounds, key=bounds.__getitem__) if mode == "auto" else [mode]:
        if best is None or bounds[name] < _WORTH * _cost(best):
            coloring = _color_as(name, pattern, columns, order, long)
            best = coloring if best is None or _cost(coloring) < _cost(best) else best
    assert best is not None
    return best


def _cost(coloring: Coloring) -> float:
    rows = 0 if coloring.rows is None else int(coloring.rows.max(initial=-1)) + 1
    return coloring.count + (REVERSE_COST - 1) * rows


def _color_as(
    mode: str, pattern: SparsityPattern, columns: Any, order: str, long: np.ndarray
) -> Coloring:
    rows = pattern_rows(pattern)
    if mode == "forward":
        return Coloring(pattern, _distance2(columns, rows, order))
    if mode == "reverse":
        return Coloring(pattern, rows=_distance2(rows, columns, order))
    parts = [_select(pattern, keep) for keep in (long, ~long)]
    sides = [transposed(part) for part in parts]
    of_rows = _distance2(pattern_rows(parts[0]), sides[0], order)
    of_rows[~long] = -1
    return Coloring(pattern, _distance2(sides[1], pattern_rows(parts[1]), order), of_rows)


def _long_rows(pattern: SparsityPattern, tallest: int) -> tuple[np.ndarray, float]:
    """Return the rows that are best coloured as rows, beside columns, and a bound of the cost."""
    lengths = np.diff(pattern.indptr)
    if lengths.size and lengths.min() == lengths.max():
        return np.zeros(lengths.size, bool), float(lengths[0])
    sizes, counts = np.unique(lengths, return_counts=True)
    longer = counts.sum() - np.cumsum(counts)  # rows with more entries than each size
    costs = sizes + REVERSE_COST * np.minimum(longer, tallest)
    best = int(costs.argmin()) if costs.size else 0
    return lengths > (sizes[best] if costs.size else 0), float(costs.min(initial=np.inf))


def _select(pattern: SparsityPattern, keep: np.ndarray) -> SparsityPattern:
    """Return the pattern with the rows that are not kept empty."""
    lengths = np.diff(pattern.indptr)
    indptr = np.concatenate([[0], np.cumsum(lengths * keep)])
    return SparsityPattern(indptr, pattern.indices[np.repeat(keep, lengths)], pattern.shape)


def _distance2(vertices: Any, lines: Any, order: str) -> np.ndarray:
    """Return colours from 0 of the vertices; see `jacobian_coloring`."""
    lengths = np.diff(lines[0])
    bound, count = int(lengths.max(initial=0)), vertices[0].size - 1
    if bound == count:
        return np.arange(count, dtype=_INT32)
    steps = float(np.square(lengths, dtype=float).sum())
    degrees = kernels.degrees(vertices, lines)
    is_regular = degrees.min() == degrees.max()
    best, fewest, spent = None, count + 1, 0.0
    for name in kernels.ORDERS if order == "best" else (order,):
        if best is None or not (is_regular and name == "largest_first"):  # "natural" is the same
            numbers = kernels.order_vertices(vertices, lines, name, degrees)
            colors = kernels.color_distance2(vertices, lines, numbers)
            if (most := int(colors.max())) < fewest:
                best, fewest = colors, most
        spent += steps * (1 if name == "natural" else 3)
        if fewest <= bound or spent > _MAX_STEPS_OF_ORDERS:
            break
    assert best is not None
    idle = 0
    for turn in range(_ROUNDS if order == "best" else 0):
        if fewest <= bound or spent > _MAX_STEPS or idle == _PATIENCE:
            break
        places = np.arange(fewest, -1, -1)  # of the colours
        if turn % 2:  # the largest colours first, each together
            places = np.argsort(np.argsort(np.bincount(best), kind="stable")[::-1])
        keys = places.astype(np.min_scalar_type(fewest))[best]
        numbers = np.argsort(keys, kind="stable").astype(_INT32)
        best = kernels.color_distance2(vertices, lines, numbers)
        previous, fewest = fewest, int(best.max())
        idle = idle + 1 if fewest == previous else 0
        spent += steps
    return best - 1


def hessian_coloring(pattern: Any, order: str = "best") -> Coloring:
    """Return a star colouring of a symmetric pattern, for a Hessian.

    `pattern` and `order` are those of `jacobian_coloring`. Neighbours have different colours, and
    each path of four vertices has at least three colours. So each entry, or its mirror image, can
    be read from one product without arithmetic. Raises InvalidArgumentError for patterns that are
    not symmetric, ValueError for another order.

    After Gebremedhin, Tarafdar, Manne and Pothen, "New acyclic and star coloring algorithms with
    application to computing Hessians" (2007).

    Examples
    --------
    >>> arrow = np.eye(50) + (np.arange(50) == 0) + (np.arange(50) == 0)[:, None]
    >>> tf.hessian_coloring(arrow)
    <Coloring symmetric, 2 colors for 50 x 50>
    """
    pattern = SparsityPattern.of(pattern)
    check_choice("hessian_coloring", "order", order, ("best", *kernels.ORDERS))
    _check_symmetric("hessian_coloring", pattern)
    degrees = np.diff(pattern.indptr)
    steps = np.square(degrees, dtype=float)
    apart = np.zeros(degrees.size, bool)  # a colour of its own is right for any vertex
    if steps.sum() > max(_MIN_PEELED, 100 * pattern.nnz):
        apart = degrees > max(16 * degrees.mean(), 16)
    keep = ~apart
    inner = _select(pattern, keep)
    chosen = keep[inner.indices]
    ends = np.concatenate([[0], np.cumsum(chosen)])[inner.indptr]
    inner = SparsityPattern(ends, inner.indices[chosen], pattern.shape)
    rows, reverse = pattern_rows(inner), transposed_places(inner)
    degrees_of_inner = kernels.degrees(rows, rows)
    best, spent = None, 0.0
    for name in kernels.ORDERS if order == "best" else (order,):
        numbers = kernels.order_vertices(rows, rows, name, degrees_of_inner)
        colors = kernels.color_star(rows, reverse, numbers) - 1
        colors[apart] = colors.max(initial=-1) + 1 + np.arange(apart.sum())
        coloring = Coloring(pattern, colors, symmetric=True)
        best = coloring if best is None or coloring.count < best.count else best
        spent += 4 * float(steps[keep].sum())
        if spent > _MAX_STEPS_OF_ORDERS:
            break
    assert best is not None
    return best


def check_choice(name: str, role: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name}: {role} must be one of {', '.join(choices)}, got {value!r}")
