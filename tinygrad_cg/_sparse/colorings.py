"""Colourings: which columns, and which rows, of a sparse matrix one product serves."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tinygrad_cg_kernels.sparse import coloring as kernels
from tinygrad_cg_kernels.sparse.index_sets import take_rows, transposed_places

from .._ops.validation import as_choice
from ..errors import InvalidArgumentError
from .sparsity import SparsityPattern

_INT32 = np.dtype(np.int32)

REVERSE_COST = 1.5
"""The cost of a product with the transposed matrix, in products with the matrix."""
_WORTH = 0.8
"""Another mode is tried if a bound of its cost is less than this part of the cost so far."""
_MAX_STEPS = 3e8  # of the greedy algorithm, for improving a colouring: about a second
_MAX_STEPS_OF_ORDERS = 3e5  # of trying orders, after the first
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

    The attribute `pattern` is a `SparsityPattern`. `mode` is "forward" (columns), "reverse" (rows),
    "both" or "symmetric". `columns` and `rows` are int32 arrays of colours, -1 for no colour; None
    if the mode does not use them. `count` is the number of products.

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

    __slots__ = ("_by_rows", "columns", "mode", "pattern", "rows")

    def __init__(
        self, pattern: Any, columns: Any = None, rows: Any = None, symmetric: bool = False
    ):
        pattern = SparsityPattern.of(pattern)
        if symmetric and (columns is None or rows is not None):
            raise TypeError("Coloring: a symmetric colouring has columns, and no rows")
        if columns is None and rows is None:
            raise TypeError("Coloring: expected colours of columns or rows, got none")
        if symmetric:
            _check_symmetric("Coloring", pattern)
        height, width = pattern.shape
        columns = None if columns is None else _colors("columns", columns, width)
        rows = None if rows is None else _colors("rows", rows, height)
        modes = {"symmetric": symmetric, "forward": rows is None, "reverse": columns is None}
        self.mode = next((name for name in modes if modes[name]), "both")
        self.pattern, self.columns, self.rows = pattern, columns, rows
        self._by_rows = self._choose()

    @classmethod
    def _of_one_side(cls, pattern: SparsityPattern, columns: Any, rows: Any) -> Coloring:
        """Return the colouring of one side by colours that are right."""
        coloring = cls.__new__(cls)
        coloring.mode = "forward" if rows is None else "reverse"
        coloring.pattern, coloring.columns, coloring.rows = pattern, columns, rows
        coloring._by_rows = np.full(pattern.nnz, columns is None)
        return coloring

    @property
    def count(self) -> int:
        """The number of products."""
        return _count(self.columns) + _count(self.rows)

    def _sides(self) -> list[np.ndarray]:
        """Return the colours of columns and of rows, -1 where there are none."""
        rows = self.columns if self.mode == "symmetric" else self.rows
        sides = zip((self.columns, rows), self.pattern.shape[::-1], strict=True)
        return [np.full(n, -1, _INT32) if colors is None else colors for colors, n in sides]

    def _choose(self) -> np.ndarray:
        """Return whether each entry is read by its row's colour, and drop unused colours."""
        pattern, (columns, rows) = self.pattern, self._sides()
        is_symmetric = self.mode == "symmetric"
        places = transposed_places(pattern.table, pattern.shape[1])
        by_columns = kernels.mark_unique(pattern.table, columns + 1).view(bool)
        by_rows = np.empty_like(by_columns)
        by_rows[places] = kernels.mark_unique(pattern.transposed().table, rows + 1)
        self._refuse(by_columns | by_rows)
        across, down = columns[pattern.indices], rows[pattern.rows()]
        kept, kept_rows = (np.zeros(_count(colors) + 1, bool) for colors in (columns, rows))
        if is_symmetric:
            kept_rows = kept
        # first the colours that an entry has to use, then those of columns for other entries
        kept[across[by_columns & ~by_rows]] = True
        kept_rows[down[by_rows & ~by_columns]] = True
        is_below = is_symmetric & (pattern.rows() > pattern.indices)
        kept[across[by_columns & ~(is_below | kept[across] | kept_rows[down])]] = True
        marks = ~(by_columns & kept[across])
        # both sides of the diagonal read the same element
        marks[is_below] = ~marks[places[is_below]]
        _renumber(columns, kept)
        if not is_symmetric:
            _renumber(rows, kept_rows)
        return marks

    def _refuse(self, is_alone: np.ndarray) -> None:
        """Raise an error if an entry is not alone."""
        if is_alone.all():
            return
        k = int(np.argmin(is_alone))
        row, column = int(self.pattern.rows()[k]), int(self.pattern.indices[k])
        names = {"forward": "column", "reverse": "row"}.get(self.mode, "column and its row")
        raise InvalidArgumentError(
            f"Coloring: the entry ({row}, {column}) cannot be read from a product of mode "
            f"{self.mode!r}: the colour of its {names} is negative, or another entry shares it; "
            "tf.jacobian_coloring and tf.hessian_coloring return valid colourings"
        )

    def products(self) -> np.ndarray:
        """Return the number of the product that each entry is read from, columns before rows."""
        columns, rows = self._sides()
        across = columns[self.pattern.indices]
        first = _count(self.columns) if self.mode == "both" else 0
        return np.where(self._by_rows, rows[self.pattern.rows()] + first, across)

    def lines(self) -> np.ndarray:
        """Return the position of each entry in its product: its row, or for rows its column."""
        return np.where(self._by_rows, self.pattern.indices, self.pattern.rows())

    def __repr__(self) -> str:
        height, width = self.pattern.shape
        noun = "color" if self.count == 1 else "colors"
        return f"<Coloring {self.mode}, {self.count} {noun} for {height} x {width}>"


def _count(colors: np.ndarray | None) -> int:
    return 0 if colors is None else int(colors.max(initial=-1)) + 1


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
    """Number the colours that are kept from 0, in place; others become -1, as the last one is."""
    colors[:] = np.where(kept, np.cumsum(kept) - 1, -1)[colors]


def _check_symmetric(name: str, pattern: SparsityPattern) -> None:
    height, width = pattern.shape
    if height != width:
        raise InvalidArgumentError(f"{name}: expected a square pattern, got {height} x {width}")
    if pattern.transposed() != pattern:
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
    as_choice("jacobian_coloring", "mode", mode, ("auto", "forward", "reverse", "both"))
    as_choice("jacobian_coloring", "order", order, ("best", *kernels.ORDERS))
    columns = pattern.transposed()
    widest, tallest = (int(np.diff(x.indptr).max(initial=0)) for x in (pattern, columns))
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
    return coloring.count + (REVERSE_COST - 1) * _count(coloring.rows)


def _color_as(
    mode: str, pattern: SparsityPattern, columns: SparsityPattern, order: str, long: np.ndarray
) -> Coloring:
    if mode == "forward":
        return Coloring._of_one_side(pattern, _distance2(columns, pattern, order), None)
    if mode == "reverse":
        return Coloring._of_one_side(pattern, None, _distance2(pattern, columns, order))
    rows, others = (_select(pattern, keep) for keep in (long, ~long))
    of_rows = _distance2(rows, rows.transposed(), order)
    of_rows[~long] = -1
    return Coloring(pattern, _distance2(others.transposed(), others, order), of_rows)


def _long_rows(pattern: SparsityPattern, tallest: int) -> tuple[np.ndarray, float]:
    """Return the rows that are best coloured as rows, beside columns, and a bound of the cost."""
    lengths = np.diff(pattern.indptr)
    counts = np.bincount(lengths, minlength=1)
    longer = lengths.size - np.cumsum(counts)  # rows with more entries than each length
    costs = np.arange(counts.size) + REVERSE_COST * np.minimum(longer, tallest)
    costs[counts == 0] = np.inf
    return lengths > costs.argmin(), float(costs.min())


def _select(pattern: SparsityPattern, keep: np.ndarray) -> SparsityPattern:
    """Return the pattern with the rows that are not kept empty."""
    rows = np.where(keep, np.arange(keep.size), -1)
    return SparsityPattern(*take_rows(pattern.table, rows), pattern.shape)


def _distance2(vertices: SparsityPattern, lines: SparsityPattern, order: str) -> np.ndarray:
    """Return colours from 0 of the vertices; see `jacobian_coloring`."""
    bound = int(np.diff(lines.indptr).max(initial=0))
    count, height = vertices.shape
    if bound == count:
        return np.arange(count, dtype=_INT32)

    color = functools.partial(kernels.color_distance2, vertices.table, height)
    best, spent = _best_order(color, vertices, lines, order, vertices.nnz)
    fewest, idle = int(best.max()), 0
    for turn in range(_ROUNDS if order == "best" else 0):
        if fewest <= bound or spent > _MAX_STEPS or idle == _PATIENCE:
            break
        places = np.arange(fewest, -1, -1)  # of the colours
        if turn % 2:  # the largest colours first, each together
            places = np.argsort(np.argsort(np.bincount(best), kind="stable")[::-1])
        keys = places.astype(np.min_scalar_type(fewest))[best]
        best = color(np.argsort(keys, kind="stable").astype(_INT32))
        previous, fewest = fewest, int(best.max())
        idle = idle + 1 if fewest == previous else 0
        spent += vertices.nnz
    return best - 1


def _best_order(
    color: Callable[[np.ndarray], np.ndarray],
    vertices: SparsityPattern,
    lines: SparsityPattern,
    order: str,
    steps: float,  # of one colouring
) -> tuple[np.ndarray, float]:
    """Return the colours, from 1, of the order that needs the fewest, and the steps spent."""
    lengths = np.diff(lines.indptr)
    bound, degrees = lengths.max(initial=0), kernels.degrees(vertices.table, lines.table)
    updates = 3 * float(np.square(lengths, dtype=float).sum())  # of degrees that change
    prices: dict[str, float] = dict.fromkeys(kernels.ORDERS, steps + updates)
    prices["natural"] = prices["largest_first"] = steps
    if (degrees == degrees[:1]).all():
        prices["largest_first"] = np.inf  # this is "natural"
    best, spent = None, 0.0
    for name in kernels.ORDERS if order == "best" else (order,):
        if best is not None and spent + prices[name] > _MAX_STEPS_OF_ORDERS:
            continue
        numbers = kernels.order_vertices(vertices.table, lines.table, name, degrees)
        colors = color(numbers)
        best = colors if best is None or colors.max() < best.max() else best
        spent += prices[name]
        if best.max(initial=0) <= bound:
            break
    assert best is not None
    return best, spent


def hessian_coloring(pattern: Any, order: str = "best") -> Coloring:
    """Return a star colouring of a symmetric pattern, for a Hessian.

    See `jacobian_coloring` for `pattern` and `order`. Neighbours have different colours, and
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
    as_choice("hessian_coloring", "order", order, ("best", *kernels.ORDERS))
    _check_symmetric("hessian_coloring", pattern)
    degrees = np.diff(pattern.indptr)
    steps = np.square(degrees, dtype=float)
    apart = np.zeros(degrees.size, bool)  # a colour of its own is right for any vertex
    if steps.sum() > max(_MIN_PEELED, 100 * pattern.nnz):
        apart = degrees > max(16 * degrees.mean(), 16)
    inner = _select(_select(pattern, ~apart).transposed(), ~apart)
    color = functools.partial(kernels.color_star, inner.table)
    colors, _ = _best_order(color, inner, inner, order, 4 * float(steps[~apart].sum()))
    colors[apart] = colors.max(initial=0) + 1 + np.arange(apart.sum())
    return Coloring(pattern, colors - 1, symmetric=True)
